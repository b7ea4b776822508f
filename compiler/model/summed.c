/* summed.c - which axes of weights products sum over.
 *
 * In:  a model.   Out: for each parameter a bit of each such axis: of W in x @ W the last but one, in x @ W.T the last; of a table in
 * which something is looked up none.
 * The one idea: an axis is followed back from each product through what is made of weights alone: transposes, scales, slices, sums with
 * other weights.
 */
#include "model.h"

typedef struct Summed {
    const Graph *g;
    bool *weights; /* of a node: made of parameters and numbers alone */
    uint8_t *axes; /* of a node: those that a product sums over */
    Val *todo;
    size_t n_todo;
} Summed;

static bool is_of_weights(const Summed *s, Val v, const Node *n)
{
    if (n->op == OP_EXT)
        return s->g->ext.v[n->a.i].kind == EXT_PARAM || s->g->ext.v[n->a.i].kind == EXT_BUFFER;
    bool of = n->op != OP_RAND && n->op != OP_RANDN && n->op != OP_GATHER;
    for (uint16_t i = 0; i < n->n_in; i++)
        of &= s->weights[n->in[i]] && n->in[i] < v;
    return of;
}

static void mark(Summed *s, Val v, int axis)
{
    if (!s->weights[v] || s->axes[v] >> axis & 1)
        return;
    s->axes[v] |= (uint8_t)(1 << axis);
    s->todo[s->n_todo++] = v;
}

static void mark_product(Summed *s, const Node *n)
{
    for (int i = 0; i < 2; i++) {
        int r = shape_of(s->g, n->in[i])->rank;
        bool transposed = n->a.i & (n->op == OP_MATMUL ? 1 << i : i);
        mark(s, n->in[i], (i == 0) != transposed ? r - 1 : r - 2);
    }
}

/* The axis of x that axis k of its reshape is, -1: none; axes of extent 1 may come and go. */
static int before_reshape(const Shape *x, const Shape *y, int k)
{
    for (int i = 0, j = 0; !dim_eq(y->d[k], DIM(1)); j++) {
        if (dim_eq(y->d[j], DIM(1)))
            continue;
        while (i < x->rank && dim_eq(x->d[i], DIM(1)))
            i++;
        if (i == x->rank || !dim_eq(x->d[i], y->d[j]))
            break;
        if (j == k)
            return i;
        i++;
    }
    return -1;
}

static void back(Summed *s, Val v)
{
    const Node *n = node_at(s->g, v);
    for (int k = 0; k < n->shape.rank; k++) {
        if (!(s->axes[v] >> k & 1))
            continue;
        if (n->op == OP_PERMUTE)
            mark(s, n->in[0], (int)n->a.data[k]);
        else if (n->op == OP_RESHAPE) {
            int at = before_reshape(shape_of(s->g, n->in[0]), &n->shape, k);
            if (at >= 0)
                mark(s, n->in[0], at);
        } else if (op_is_map((Op)n->op) || n->op == OP_SLICE || n->op == OP_PAD || n->op == OP_CONCAT ||
                   n->op == OP_BROADCAST)
            for (uint16_t i = 0; i < n->n_in; i++)
                mark(s, n->in[i], k);
    }
}

uint8_t *model_summed(const Model *m, Arena *arena)
{
    size_t nodes = m->graph->node.n;
    Summed s = {.g = m->graph,
                .weights = NEW_ARRAY(arena, bool, nodes + 1),
                .axes = NEW_ARRAY(arena, uint8_t, nodes + 1),
                .todo = NEW_ARRAY(arena, Val, MAX_RANK * (nodes + 1))};
    for (Val v = 1; v < (Val)nodes; v++)
        s.weights[v] = is_of_weights(&s, v, node_at(s.g, v));
    for (Val v = 1; v < (Val)nodes; v++)
        if (node_at(s.g, v)->op == OP_MATMUL || node_at(s.g, v)->op == OP_EXPERT_MATMUL)
            mark_product(&s, node_at(s.g, v));
    while (s.n_todo)
        back(&s, s.todo[--s.n_todo]);
    uint8_t *of = NEW_ARRAY(arena, uint8_t, m->param.n + 1);
    for (Val v = 1; v < (Val)nodes; v++)
        if (node_at(s.g, v)->op == OP_GATHER)
            s.axes[node_at(s.g, v)->in[0]] = 0;
    for (size_t i = 0; i < m->param.n; i++)
        of[i] = s.axes[m->param.v[i].value];
    return of;
}
