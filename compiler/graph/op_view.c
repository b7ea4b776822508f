/* op_view.c - views (the same numbers seen in another shape) and data movement.
 *
 * In:  a tensor.     Out: its elements in other places; PAD and SHIFT add constants.
 * The one idea: every one of them is linear, and its gradient is the one that moves things
 * back.
 */
#include "op.h"

#include <math.h>

/* ---- shapes ---- */

static bool axis_ok(const Ask *q) { return q->a->i >= 0 && q->a->i < ask_shape(q, 0)->rank; }

const char *shape_RESHAPE(const Ask *q, Shape *out, DType *dtype)
{
    Dim have, want;
    *out = *q->given;
    *dtype = ask_dtype(q, 0);
    if (!shape_size(ask_shape(q, 0), &have) || !shape_size(out, &want) || !dim_eq(have, want))
        return "the number of elements changes";
    return NULL;
}

const char *shape_PERMUTE(const Ask *q, Shape *out, DType *dtype)
{
    const Shape *in = ask_shape(q, 0);
    unsigned seen = 0;
    *dtype = ask_dtype(q, 0);
    out->rank = in->rank;
    if (q->a->n != in->rank)
        return "the permutation has another length than the rank";
    for (int k = 0; k < in->rank; k++) {
        double axis = q->a->data[k];
        if (!(axis >= 0 && axis < in->rank) || axis != (int)axis || seen >> (int)axis & 1)
            return "the axes are not a permutation";
        seen |= 1u << (int)axis;
        out->d[k] = in->d[(int)axis];
    }
    return NULL;
}

const char *shape_BROADCAST(const Ask *q, Shape *out, DType *dtype)
{
    const Shape *in = ask_shape(q, 0);
    *out = *q->given;
    *dtype = ask_dtype(q, 0);
    if (in->rank != out->rank)
        return "the rank changes";
    for (int k = 0; k < in->rank; k++)
        if (!dim_eq(in->d[k], out->d[k]) && !dim_eq(in->d[k], DIM(1)))
            return "an axis that is repeated has not extent 1";
    return NULL;
}

/* Whether `part` fits into `whole` from `start` on; of a symbolic extent only the evaluation
 * knows. */
static const char *range_fits(Dim whole, Dim part, int64_t start)
{
    if (start < 0 || start > (int64_t)1 << 53)
        return "the start of the range is not a position";
    if (dim_static(whole) ? !dim_static(part) || start + part.n > whole.n
                          : !dim_static(part) && (start != 0 || !dim_eq(part, whole)))
        return "the range does not fit into the axis";
    return NULL;
}

static const char *range_shape(const Ask *q, Shape *out, DType *dtype, bool slice)
{
    const Shape *in = ask_shape(q, 0);
    *out = *q->given;
    *dtype = ask_dtype(q, 0);
    if (!axis_ok(q) || in->rank != out->rank)
        return "the axis does not exist or the rank changes";
    for (int k = 0; k < in->rank; k++)
        if (k != q->a->i && !dim_eq(in->d[k], out->d[k]))
            return "another axis changes";
    Dim small = slice ? out->d[q->a->i] : in->d[q->a->i];
    Dim large = slice ? in->d[q->a->i] : out->d[q->a->i];
    return range_fits(large, small, q->a->j);
}

const char *shape_SLICE(const Ask *q, Shape *out, DType *dtype) { return range_shape(q, out, dtype, true); }

const char *shape_PAD(const Ask *q, Shape *out, DType *dtype) { return range_shape(q, out, dtype, false); }

const char *shape_CONCAT(const Ask *q, Shape *out, DType *dtype)
{
    *out = *ask_shape(q, 0);
    *dtype = ask_dtype(q, 0);
    if (!axis_ok(q))
        return "the axis does not exist";
    Dim *sum = &out->d[q->a->i];
    for (size_t k = 1; k < q->n_in; k++) {
        const Shape *s = ask_shape(q, k);
        if (s->rank != out->rank || ask_dtype(q, k) != *dtype)
            return "the inputs have different ranks or types";
        for (int x = 0; x < s->rank; x++)
            if (x != q->a->i && !dim_eq(s->d[x], out->d[x]))
                return "the inputs differ in another axis";
        Dim more = s->d[q->a->i];
        if (sum->n == 0) {
            *sum = more;
        } else if (more.n != 0) {
            if (more.b != sum->b || more.t != sum->t)
                return "the extents cannot be added";
            sum->n += more.n;
        }
    }
    return NULL;
}

static const char *along_axis(const Ask *q, Shape *out, DType *dtype)
{
    *out = *ask_shape(q, 0);
    *dtype = ask_dtype(q, 0);
    if (q->a->j > (int64_t)1 << 53 || q->a->j < -((int64_t)1 << 53))
        return "the distance is too large";
    if (*dtype == DT_INT && !(q->a->x >= -2e9 && q->a->x <= 2e9 && q->a->x == floor(q->a->x)))
        return "the fill is not an integer below 2e9";
    return axis_ok(q) ? NULL : "the axis does not exist";
}
SAME_SHAPE_RULE(SHIFT, along_axis)
SAME_SHAPE_RULE(ROLL, along_axis)

/* ---- gradients ---- */

#define GRAD(id) void grad_##id(Graph *g, Val v, Val d, const bool *want, Val *din)
#define IN(k)    (node_at(g, v)->in[k])

GRAD(RESHAPE)
{
    if (!want[0])
        return;
    Shape s = *shape_of(g, IN(0));
    din[0] = ir_reshape(g, d, &s);
}

GRAD(PERMUTE)
{
    int back[MAX_RANK] = {0};
    const Node *n = node_at(g, v);
    for (int k = 0; k < n->shape.rank; k++)
        back[(int)n->a.data[k]] = k;
    if (want[0])
        din[0] = ir_permute(g, d, back);
}

GRAD(BROADCAST)
{
    const Shape *in = shape_of(g, IN(0)), *out = shape_of(g, v);
    uint32_t axes = 0;
    for (int k = 0; k < in->rank; k++)
        if (!dim_eq(in->d[k], out->d[k]))
            axes |= 1u << k;
    if (want[0])
        din[0] = ir_sum(g, d, axes, true);
}

GRAD(SLICE)
{
    if (!want[0])
        return;
    Shape s = *shape_of(g, IN(0));
    Attr a = node_at(g, v)->a;
    din[0] = ir_op(g, OP_PAD, d, 0, 0, a, &s);
}

GRAD(PAD)
{
    if (!want[0])
        return;
    Shape s = *shape_of(g, IN(0));
    Attr a = node_at(g, v)->a;
    din[0] = ir_op(g, OP_SLICE, d, 0, 0, a, &s);
}

/* The axis is seen as [parts, unit] where unit is the B and T of the extent, so that the pieces
 * are static ranges of an axis even when the extent is not static. */
GRAD(CONCAT)
{
    int axis = (int)node_at(g, v)->a.i;
    Shape s = *shape_of(g, v), split = {.rank = s.rank};
    Dim unit = {1, s.d[axis].b, s.d[axis].t};
    bool symbolic = !dim_static(unit) && s.rank < MAX_RANK;
    Val whole = d;
    if (symbolic) {
        for (int k = 0; k < s.rank; k++)
            split.d[k + (k > axis)] = s.d[k];
        split.d[axis] = DIM(s.d[axis].n);
        split.d[axis + 1] = unit;
        split.rank++;
        whole = ir_reshape(g, d, &split);
    }
    int64_t start = 0;
    for (size_t k = 0; k < node_at(g, v)->n_in; k++) {
        Shape own = *shape_of(g, IN(k));
        int64_t count = own.d[axis].n;
        if (want[k])
            din[k] = ir_reshape(g, ir_slice(g, whole, axis, start, count), &own);
        start += count;
    }
}

GRAD(SHIFT)
{
    Attr a = node_at(g, v)->a;
    if (want[0])
        din[0] = ir_shift(g, d, (int)a.i, -a.j, 0);
}

GRAD(ROLL)
{
    Attr a = node_at(g, v)->a;
    if (want[0])
        din[0] = ir_roll(g, d, (int)a.i, -a.j);
}

/* ---- values ---- */

static void copy_items(Tensor *to, int64_t at, const Tensor *from, int64_t start, int64_t n)
{
    if (n <= 0)
        return;
    if (to->dtype == DT_INT)
        memcpy(to->integer + at, from->integer + start, (size_t)n * sizeof *to->integer);
    else
        memcpy(to->real + at, from->real + start, (size_t)n * sizeof *to->real);
}

void eval_RESHAPE(const OpEval *e) { copy_items(e->out, 0, e->in[0], 0, e->out->size); }

/* out[index] = in[sum of index[k] * stride[k]] in row-major order of out */
static void gather_strided(const OpEval *e, const int64_t *stride)
{
    const Tensor *in = e->in[0];
    Tensor *out = e->out;
    int64_t index[MAX_RANK] = {0}, from = 0;
    for (int64_t p = 0; p < out->size; p++) {
        if (out->dtype == DT_INT)
            out->integer[p] = in->integer[from];
        else
            out->real[p] = in->real[from];
        for (int k = out->rank - 1; k >= 0; k--) {
            from += stride[k];
            if (++index[k] < out->d[k])
                break;
            from -= stride[k] * out->d[k];
            index[k] = 0;
        }
    }
}

static void strides_of(const Tensor *t, int64_t *stride)
{
    int64_t s = 1;
    for (int k = t->rank - 1; k >= 0; k--) {
        stride[k] = s;
        s *= t->d[k];
    }
}

void eval_PERMUTE(const OpEval *e)
{
    int64_t own[MAX_RANK], stride[MAX_RANK] = {0};
    strides_of(e->in[0], own);
    for (int k = 0; k < e->out->rank; k++)
        stride[k] = own[(int)e->n->a.data[k]];
    gather_strided(e, stride);
}

void eval_BROADCAST(const OpEval *e)
{
    int64_t stride[MAX_RANK] = {0};
    strides_of(e->in[0], stride);
    for (int k = 0; k < e->out->rank; k++)
        if (e->in[0]->d[k] == 1)
            stride[k] = 0;
    gather_strided(e, stride);
}

static void need_range(const OpEval *e, int64_t whole, int64_t part)
{
    if (e->n->a.j + part > whole)
        ctx_raise(e->ctx, ST_INPUT, "%s: positions %lld to %lld of an axis of %lld", op_info((Op)e->n->op)->name,
                  (long long)e->n->a.j, (long long)(e->n->a.j + part), (long long)whole);
}

void eval_SLICE(const OpEval *e)
{
    int axis = (int)e->n->a.i;
    Around in = around(e->in[0], axis), out = around(e->out, axis);
    need_range(e, in.n, out.n);
    for (int64_t o = 0; o < out.outer; o++)
        copy_items(e->out, o * out.n * out.inner, e->in[0], (o * in.n + e->n->a.j) * in.inner, out.n * out.inner);
}

void eval_PAD(const OpEval *e)
{
    int axis = (int)e->n->a.i;
    Around in = around(e->in[0], axis), out = around(e->out, axis);
    need_range(e, out.n, in.n);
    for (int64_t o = 0; o < out.outer; o++)
        copy_items(e->out, (o * out.n + e->n->a.j) * out.inner, e->in[0], o * in.n * in.inner, in.n * in.inner);
}

void eval_CONCAT(const OpEval *e)
{
    int axis = (int)e->n->a.i;
    Around out = around(e->out, axis);
    int64_t start = 0;
    for (size_t k = 0; k < e->n->n_in; k++) {
        Around in = around(e->in[k], axis);
        for (int64_t o = 0; o < out.outer; o++)
            copy_items(e->out, (o * out.n + start) * out.inner, e->in[k], o * in.n * in.inner, in.n * in.inner);
        start += in.n;
    }
}

static void fill_items(Tensor *t, int64_t at, int64_t n, double x)
{
    for (int64_t k = 0; k < n; k++)
        if (t->dtype == DT_INT)
            t->integer[at + k] = (int64_t)x;
        else
            t->real[at + k] = x;
}

void eval_SHIFT(const OpEval *e)
{
    Around r = around(e->out, (int)e->n->a.i);
    for (int64_t o = 0; o < r.outer; o++)
        for (int64_t p = 0; p < r.n; p++) {
            int64_t from = p - e->n->a.j, at = (o * r.n + p) * r.inner;
            if (from >= 0 && from < r.n)
                copy_items(e->out, at, e->in[0], (o * r.n + from) * r.inner, r.inner);
            else
                fill_items(e->out, at, r.inner, e->n->a.x);
        }
}

void eval_ROLL(const OpEval *e)
{
    Around r = around(e->out, (int)e->n->a.i);
    for (int64_t o = 0; o < r.outer; o++)
        for (int64_t p = 0; p < r.n; p++) {
            int64_t from = (p - e->n->a.j % r.n + r.n) % r.n;
            copy_items(e->out, (o * r.n + p) * r.inner, e->in[0], (o * r.n + from) * r.inner, r.inner);
        }
}
