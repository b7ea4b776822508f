/* growth_norms.c - which weights can make up for a norm that is taken over more coordinates.
 *
 * In:  the graph of a model.   Out: for each axis of a parameter over how many coordinates the norm before it is taken.
 * The one idea: a norm is a division by the root of a mean of squares, whatever block wrote it; what it yields reaches a
 * gain, which multiplies it, or products, which read it. Zeros beside old coordinates make the mean d / d' as large, so
 * the result times sqrt(d / d') is the old one.
 */
#include "growth_build.h"

#include <math.h>

typedef enum NormStage { NOTHING, SQUARES, MEAN, ROOT, INVERSE, NORMED } NormStage;
typedef struct Mark {
    NormStage stage;
    int64_t extent;        /* of the mean */
    size_t param;          /* + 1: the value is that parameter with its axes in another order */
    int8_t axis[MAX_RANK]; /* its axes; -1: none of them */
} Mark;
typedef struct Norms {
    const Graph *g;
    Mark *mark;
    int64_t **extent;
} Norms;

static bool number_of(const Graph *g, Val v, double *x)
{
    const Node *n = node_at(g, v);
    while (n->op == OP_BROADCAST || n->op == OP_RESHAPE)
        n = node_at(g, n->in[0]);
    *x = n->op == OP_FILL ? n->a.x : n->op == OP_CONST && n->a.n == 1 ? n->a.data[0] : (double)n->a.dim.n;
    return n->op == OP_FILL || (n->op == OP_CONST && n->a.n == 1) || (n->op == OP_DIM && dim_static(n->a.dim));
}

static void note(Norms *s, const Mark *weight, int k, int64_t extent)
{
    if (weight->axis[k] < 0)
        return;
    int64_t *e = &s->extent[weight->param - 1][weight->axis[k]];
    *e = *e == 0 || *e == extent ? extent : -1;
}

static Mark through(const Norms *s, Val v)
{
    const Node *n = node_at(s->g, v);
    Mark m = s->mark[n->in[0]];
    const Shape *was = shape_of(s->g, n->in[0]), *is = &n->shape;
    if (!m.param)
        return m;
    if (n->op == OP_PERMUTE) {
        for (int k = 0; k < is->rank; k++)
            m.axis[k] = s->mark[n->in[0]].axis[(int)n->a.data[k]];
    } else if (n->op == OP_RESHAPE) { /* axes of extent 1 more or less */
        int i = 0;
        for (int k = 0; k < is->rank; k++) {
            while (i < was->rank && dim_eq(was->d[i], DIM(1)) && !dim_eq(is->d[k], DIM(1)))
                i++;
            bool same = i < was->rank && dim_eq(was->d[i], is->d[k]);
            m.axis[k] = same ? s->mark[n->in[0]].axis[i] : -1;
            i += same;
        }
    }
    return m;
}

static Mark of_product(Norms *s, const Node *n)
{
    const Mark *x = &s->mark[n->in[0]], *w = &s->mark[n->in[1]];
    int r = shape_of(s->g, n->in[1])->rank;
    bool transposed = n->a.i & (n->op == OP_MATMUL ? 2 : 1);
    if (x->stage == NORMED && w->param)
        note(s, w, transposed ? r - 1 : r - 2, x->extent);
    return (Mark){0};
}

/* A sum, a product or a quotient: in[i] and the other. */
static Mark of_pair(Norms *s, const Node *n, int i)
{
    const Mark *a = &s->mark[n->in[i]], *b = &s->mark[n->in[1 - i]];
    double x = 0;
    bool by_number = number_of(s->g, n->in[1 - i], &x) && (n->op != OP_DIV || i == 0);
    if (a->stage == SQUARES && by_number && n->op != OP_ADD &&
        fabs((n->op == OP_MUL ? x : 1 / x) * (double)a->extent - 1) < 1e-9)
        return (Mark){.stage = MEAN, .extent = a->extent};
    if (by_number && a->stage == (n->op == OP_ADD ? MEAN : NORMED))
        return *a;
    if (n->op == OP_MUL && a->stage == INVERSE)
        return (Mark){.stage = NORMED, .extent = a->extent};
    for (int k = 0; n->op == OP_MUL && a->stage == NORMED && b->param && k < n->shape.rank; k++)
        note(s, b, k, a->extent);
    if (n->op == OP_DIV && i == 1 && a->stage == ROOT)
        return (Mark){.stage = number_of(s->g, n->in[0], &x) ? INVERSE : NORMED, .extent = a->extent};
    return (Mark){0};
}

static Mark of_two(Norms *s, const Node *n)
{
    Mark m = of_pair(s, n, 0);
    return m.stage == NOTHING ? of_pair(s, n, 1) : m;
}

static Mark mark_of(Norms *s, Val v)
{
    const Node *n = node_at(s->g, v);
    const Mark *a = &s->mark[first_input(n)];
    double x;
    switch ((Op)n->op) {
    case OP_BROADCAST:
    case OP_RESHAPE:
    case OP_PERMUTE:
    case OP_ROUND_TO: return through(s, v);
    case OP_SUM: {
        const Node *sq = node_at(s->g, n->in[0]);
        int64_t extent = 1;
        bool square = sq->op == OP_MUL && sq->in[0] == sq->in[1], fixed = true;
        for (int k = 0; k < n->shape.rank; k++)
            if (n->a.axes >> k & 1) {
                fixed &= dim_static(sq->shape.d[k]);
                extent *= sq->shape.d[k].n;
            }
        return square && fixed ? (Mark){.stage = SQUARES, .extent = extent} : (Mark){0};
    }
    case OP_ADD:
    case OP_MUL:
    case OP_DIV: return of_two(s, n);
    case OP_SQRT: return a->stage == MEAN ? (Mark){.stage = ROOT, .extent = a->extent} : (Mark){0};
    case OP_POW:
        if (a->stage != MEAN || !number_of(s->g, n->in[1], &x) || fabs(x) != 0.5)
            return (Mark){0};
        return (Mark){.stage = x > 0 ? ROOT : INVERSE, .extent = a->extent};
    case OP_MATMUL:
    case OP_EXPERT_MATMUL: return of_product(s, n);
    default: return (Mark){0};
    }
}

int64_t **growth_means(const Model *m, Arena *arena)
{
    Norms s = {.g = m->graph,
               .mark = NEW_ARRAY(arena, Mark, m->graph->node.n + 1),
               .extent = NEW_ARRAY(arena, int64_t *, m->param.n + 1)};
    size_t *param = NEW_ARRAY(arena, size_t, m->graph->node.n + 1);
    for (size_t i = 0; i < m->param.n; i++) {
        param[m->param.v[i].value] = i + 1;
        s.extent[i] = NEW_ARRAY(arena, int64_t, MAX_RANK);
    }
    for (Val v = 1; v < (Val)s.g->node.n; v++) {
        if (!param[v]) {
            s.mark[v] = mark_of(&s, v);
            continue;
        }
        s.mark[v] = (Mark){.param = param[v]};
        for (int k = 0; k < MAX_RANK; k++)
            s.mark[v].axis[k] = (int8_t)(k < node_at(s.g, v)->shape.rank ? k : -1);
    }
    return s.extent;
}
