/* zero_init.c - weights that begin at zero and can never leave it.
 *
 * In:  a Model's graph, its initial values.   Out: by parameter, whether it stays zero.
 * The one idea: the gradient of a factor of a product has the other factor in it. What is zero is followed through the graph from
 * the weights that begin so, and gradients from the losses back; weights that get one may move, so they are zero no
 * longer, and both are followed again until nothing changes. All rules err on the side of "may move".
 */
#include "cost.h"

typedef struct Zeros {
    const Graph *g;
    bool *zero;  /* by value: it is zero in every element */
    bool *moves; /* by value: a gradient may arrive at it */
} Zeros;

static bool begins_at_zero(const Param *p)
{
    const Init *i = &p->init;
    if (!p->elements || (i->kind != INIT_FILL && i->kind != INIT_NORMAL && i->kind != INIT_LIST))
        return false;
    bool zero = i->a == 0;
    for (size_t k = 0; i->kind == INIT_LIST && k < i->n; k++)
        zero = i->list[k] == 0 && (zero || !k);
    return zero && (i->kind != INIT_LIST || i->n);
}

static bool is_zero(const Zeros *z, const Node *n)
{
    const bool *of = z->zero;
    switch ((Op)n->op) {
    case OP_MUL:
    case OP_MATMUL:
    case OP_EXPERT_MATMUL: return of[n->in[0]] || of[n->in[1]];
    case OP_ADD:
    case OP_SUB:
    case OP_MIN:
    case OP_MAX: return of[n->in[0]] && of[n->in[1]];
    case OP_DIV:
    case OP_GATHER:
    case OP_PICK: return of[n->in[0]];
    case OP_WHERE: return of[n->in[1]] && of[n->in[2]];
    case OP_SDPA: return of[n->in[2]];
    case OP_SHIFT: return n->a.x == 0 && of[n->in[0]];
    case OP_CONCAT:
        for (size_t k = 0; k < n->n_in; k++)
            if (!of[n->in[k]])
                return false;
        return true;
    case OP_FILL: return n->a.x == 0;
    default: return n->n_in == 1 && n->op != OP_AUX && op_info((Op)n->op)->zero == ZERO_YES && of[n->in[0]];
    }
}

/* Whether a gradient of the node goes on to its input k. */
static bool passes(const Zeros *z, const Node *n, size_t k)
{
    const bool *zero = z->zero;
    switch ((Op)n->op) {
    case OP_MUL:
    case OP_MATMUL:
    case OP_EXPERT_MATMUL: return k > 1 || !zero[n->in[1 - k]];
    case OP_DIV: return k == 0 || !zero[n->in[0]];
    case OP_SDPA: return k >= 2 || !(zero[n->in[1 - k]] || zero[n->in[2]]);
    case OP_STOP: return false;
    default: return true;
    }
}

static void follow(Zeros *z, const Val *roots, size_t n_roots)
{
    for (Val v = 1; v < z->g->node.n; v++) {
        const Node *n = node_at(z->g, v);
        z->moves[v] = false;
        if (n->op != OP_EXT)
            z->zero[v] = is_zero(z, n);
    }
    for (size_t i = 0; i < n_roots; i++)
        z->moves[roots[i]] = true;
    for (Val v = (Val)z->g->node.n; v-- > 1;) {
        const Node *n = node_at(z->g, v);
        for (size_t k = 0; z->moves[v] && k < n->n_in; k++)
            z->moves[n->in[k]] |= passes(z, n, k);
    }
}

bool *model_stays_zero(const Model *m, Arena *arena)
{
    size_t n_roots;
    const Val *roots = model_roots(m, ROOTS_LEARNING, arena, &n_roots);
    bool *stays = NEW_ARRAY(arena, bool, m->param.n + 1);
    Zeros z = {m->graph, NEW_ARRAY(arena, bool, m->graph->node.n), NEW_ARRAY(arena, bool, m->graph->node.n)};
    for (size_t i = 0; i < m->param.n; i++)
        if (m->param.v[i].value)
            stays[i] = z.zero[m->param.v[i].value] = begins_at_zero(&m->param.v[i]);
    for (bool changed = true; changed;) {
        changed = false;
        follow(&z, roots, n_roots);
        for (size_t i = 0; i < m->param.n; i++) {
            const Param *p = &m->param.v[i];
            if (!stays[i] || p->buffer || p->frozen || !z.moves[p->value])
                continue;
            stays[i] = z.zero[p->value] = false;
            changed = true;
        }
    }
    return stays;
}
