/* compose.c - functions of several primitives, used by the language and by gradient rules.
 *
 * In:  nodes.     Out: nodes.
 * The one idea: none of these is an operator; they are written in the stable form (largest
 * element subtracted under stop_gradient), and fusion puts them back together.
 */
#include "op.h"

bool ir_is_uniform(const Graph *g, Val v, double *value)
{
    for (;;) {
        const Node *n = node_at(g, v);
        if (n->op == OP_FILL) {
            *value = n->a.x;
            return true;
        }
        if (n->op != OP_BROADCAST && n->op != OP_RESHAPE && n->op != OP_PERMUTE)
            return false;
        v = n->in[0];
    }
}

Val ir_count(Graph *g, const Shape *s, uint32_t axes)
{
    Dim n = DIM(1);
    for (int k = 0; k < s->rank; k++)
        if (axes >> k & 1 && !dim_mul(n, s->d[k], &n))
            vwn_bug(g->ctx, "the number of elements overflows");
    return ir_dim(g, n);
}

Val ir_scale(Graph *g, Val x, double factor) { return factor == 1 ? x : ir_binary(g, OP_MUL, x, ir_fill(g, factor)); }

Val ir_mean(Graph *g, Val x, uint32_t axes, bool keep)
{
    Val n = ir_count(g, shape_of(g, x), axes);
    return ir_binary(g, OP_DIV, ir_sum(g, x, axes, keep), n);
}

/* exp(x - max) and, through *top, the maximum along the axis. */
static Val shifted_exp(Graph *g, Val x, int axis, Val *top)
{
    *top = ir_stop(g, ir_max(g, x, 1u << axis, true), STOP_GRADIENT);
    return ir_unary(g, OP_EXP, ir_binary(g, OP_SUB, x, *top));
}

Val ir_softmax(Graph *g, Val x, int axis)
{
    Val top, e = shifted_exp(g, x, axis, &top);
    return ir_binary(g, OP_DIV, e, ir_sum(g, e, 1u << axis, true));
}

Val ir_logsumexp(Graph *g, Val x, int axis, bool keep)
{
    Val top, e = shifted_exp(g, x, axis, &top);
    Val sum = ir_sum(g, e, 1u << axis, true);
    Val v = ir_binary(g, OP_ADD, ir_unary(g, OP_LOG, sum), top);
    if (keep)
        return v;
    Shape s = {0};
    for (int k = 0; k < shape_of(g, x)->rank; k++)
        if (k != axis)
            s.d[s.rank++] = shape_of(g, x)->d[k];
    return ir_reshape(g, v, &s);
}

/* (x1, x2) -> (x1 cos - x2 sin, x2 cos + x1 sin), where x1 and x2 are n long along an axis, one behind the other, and the angle is
 * the position along axis 1 times a frequency of the table. */
static void rotary_turn(Graph *g, Val x, int axis, int64_t n, const Shape *table, const double *freq, Val part[2])
{
    Shape positions = {.rank = shape_of(g, x)->rank};
    for (int k = 0; k < positions.rank; k++)
        positions.d[k] = k == 1 ? shape_of(g, x)->d[1] : DIM(1);
    Val p = ir_cast(g, ir_iota(g, &positions, 1), DT_REAL);
    Val angle = ir_binary(g, OP_MUL, p, ir_const(g, table, freq));
    Val cos = ir_unary(g, OP_COS, angle), sin = ir_unary(g, OP_SIN, angle);
    Val x1 = ir_slice(g, x, axis, 0, n), x2 = ir_slice(g, x, axis, n, n);
    Val c1 = ir_binary(g, OP_MUL, x1, cos), s2 = ir_binary(g, OP_MUL, x2, sin);
    Val c2 = ir_binary(g, OP_MUL, x2, cos), s1 = ir_binary(g, OP_MUL, x1, sin);
    part[0] = ir_binary(g, OP_SUB, c1, s2);
    part[1] = ir_binary(g, OP_ADD, c2, s1);
}

/* x [.., T at axis 1, .., 2 n], whose pairs are neighbours: [.., n, 2]. */
static Val rotary_neighbours(Graph *g, Val x, const double *freq, int64_t n)
{
    const Shape s = *shape_of(g, x), table = {.rank = 2, .d = {DIM(n), DIM(1)}};
    Shape pairs = s;
    Val part[2];
    pairs.d[s.rank - 1] = DIM(n);
    pairs.d[pairs.rank++] = DIM(2);
    rotary_turn(g, ir_reshape(g, x, &pairs), s.rank, 1, &table, freq, part);
    return ir_reshape(g, ir_concat(g, part, 2, s.rank), &s);
}

/* x [.., T at axis 1, .., d] */
Val ir_rotary(Graph *g, Val x, const double *freq, size_t n_freq, bool neighbours)
{
    Shape s = *shape_of(g, x), table = {.rank = 1, .d = {DIM((int64_t)n_freq)}};
    int last = s.rank - 1;
    int64_t n = (int64_t)n_freq;
    if (s.rank < 3 || !dim_static(s.d[last]) || s.d[last].n < 2 * n)
        vwn_bug(g->ctx, "rotary of %lld pairs does not fit %%%u", (long long)n, (unsigned)x);
    if (n == 0)
        return x;
    int64_t rest = s.d[last].n - 2 * n;
    size_t parts = 0;
    Val part[3];
    if (neighbours)
        part[parts++] = rotary_neighbours(g, rest ? ir_slice(g, x, last, 0, 2 * n) : x, freq, n);
    else
        rotary_turn(g, x, last, n, &table, freq, part), parts = 2;
    if (rest)
        part[parts++] = ir_slice(g, x, last, 2 * n, rest);
    return parts > 1 ? ir_concat(g, part, parts, last) : part[0];
}

Val ir_cross_entropy(Graph *g, Val logits, Val labels, int64_t ignore, double smoothing)
{
    Shape s = *shape_of(g, labels), column = s;
    int last = shape_of(g, logits)->rank - 1;
    if (last != s.rank)
        vwn_bug(g->ctx, "cross_entropy of logits of rank %d and labels of rank %d", last + 1, s.rank);
    column.d[column.rank++] = DIM(1);
    Val lse = ir_logsumexp(g, logits, last, false);
    Val picked = ir_reshape(g, ir_pick(g, logits, ir_reshape(g, labels, &column)), &s);
    if (smoothing != 0) {
        Val mean = ir_scale(g, ir_mean(g, logits, 1u << last, false), smoothing);
        picked = ir_binary(g, OP_ADD, ir_scale(g, picked, 1 - smoothing), mean);
    }
    Val loss = ir_binary(g, OP_SUB, lse, picked);
    Val valid = ir_binary(g, OP_LE, ir_int(g, 0), labels);
    if (ignore >= 0) {
        Val skip = ir_binary(g, OP_EQ, labels, ir_int(g, ignore));
        valid = ir_where(g, skip, ir_fill(g, 0), valid);
    }
    return ir_where(g, valid, loss, ir_fill(g, 0));
}
