/* op_index.c - reading and adding by index.
 *
 * In:  tensors and integer indices.     Out: chosen rows or elements, or their sums. Real ones, but that PICK chooses among integers, too.
 * The one idea: GATHER and SCATTER_ADD, PICK and PLACE are each other's gradients. An index
 * outside its range reads 0 and adds nothing, so that "no label" and "dropped" need no special
 * case.
 */
#include "op.h"

#include <math.h>

static const char *indexed(const Ask *q)
{
    if (ask_dtype(q, 0) != DT_REAL || ask_dtype(q, 1) != DT_INT)
        return "the first input must be real and the index an integer";
    return NULL;
}

const char *shape_GATHER(const Ask *q, Shape *out, DType *dtype)
{
    const Shape *table = ask_shape(q, 0), *index = ask_shape(q, 1);
    *dtype = DT_REAL;
    if (table->rank < 1 || table->rank - 1 + index->rank > MAX_RANK)
        return "the table has no axis, or the result too many";
    *out = *index;
    for (int k = 1; k < table->rank; k++)
        out->d[out->rank++] = table->d[k];
    return indexed(q);
}

const char *shape_SCATTER_ADD(const Ask *q, Shape *out, DType *dtype)
{
    const Shape *dy = ask_shape(q, 0), *index = ask_shape(q, 1);
    *dtype = DT_REAL;
    *out = *q->given;
    if (out->rank < 1 || dy->rank != index->rank + out->rank - 1)
        return "the ranks do not fit";
    for (int k = 0; k < dy->rank; k++) {
        Dim want = k < index->rank ? index->d[k] : out->d[k - index->rank + 1];
        if (!dim_eq(dy->d[k], want))
            return "the extents of dy are not those of the index and the rows";
    }
    return indexed(q);
}

/* two tensors that differ in the last axis at most */
static const char *same_rows(const Shape *a, const Shape *b)
{
    if (a->rank != b->rank || a->rank < 1)
        return "the ranks differ or are 0";
    for (int k = 0; k < a->rank - 1; k++)
        if (!dim_eq(a->d[k], b->d[k]))
            return "the leading axes differ";
    return NULL;
}

const char *shape_PICK(const Ask *q, Shape *out, DType *dtype)
{
    const char *wrong = same_rows(ask_shape(q, 0), ask_shape(q, 1));
    *out = *ask_shape(q, 1);
    *dtype = ask_dtype(q, 0);
    return wrong ? wrong : ask_dtype(q, 1) == DT_INT ? NULL : "the index must be an integer";
}

const char *shape_PLACE(const Ask *q, Shape *out, DType *dtype)
{
    const char *wrong = same_rows(q->given, ask_shape(q, 1));
    *out = *q->given;
    *dtype = DT_REAL;
    if (!wrong && !shape_eq(ask_shape(q, 0), ask_shape(q, 1)))
        wrong = "dy and the index have different shapes";
    return wrong ? wrong : indexed(q);
}

const char *shape_TOP_K(const Ask *q, Shape *out, DType *dtype)
{
    *out = *ask_shape(q, 0);
    *dtype = DT_INT;
    if (out->rank < 1 || ask_dtype(q, 0) != DT_REAL)
        return "the input has no axis or is not real";
    Dim *last = &out->d[out->rank - 1];
    if (q->a->j < 0 || !dim_static(*last) || q->a->j > last->n)
        return "the last axis has fewer elements than are asked for";
    *last = DIM(q->a->j);
    return NULL;
}

/* ---- gradients ---- */

/* linear in the first input; `back` undoes `v` with the same index */
static Val turn_round(Graph *g, Val v, Val d, Op back, bool given)
{
    Shape s = *shape_of(g, node_at(g, v)->in[0]);
    return ir_op(g, back, d, node_at(g, v)->in[1], 0, (Attr){0}, given ? &s : NULL);
}

void grad_GATHER(Graph *g, Val v, Val d, const bool *want, Val *din)
{
    if (want[0])
        din[0] = turn_round(g, v, d, OP_SCATTER_ADD, true);
}

void grad_SCATTER_ADD(Graph *g, Val v, Val d, const bool *want, Val *din)
{
    if (want[0])
        din[0] = turn_round(g, v, d, OP_GATHER, false);
}

void grad_PICK(Graph *g, Val v, Val d, const bool *want, Val *din)
{
    if (want[0])
        din[0] = turn_round(g, v, d, OP_PLACE, true);
}

void grad_PLACE(Graph *g, Val v, Val d, const bool *want, Val *din)
{
    if (want[0])
        din[0] = turn_round(g, v, d, OP_PICK, false);
}

NO_GRAD(TOP_K)

/* ---- values ---- */

void eval_GATHER(const OpEval *e)
{
    const Tensor *table = e->in[0], *index = e->in[1];
    int64_t row = around(table, 0).inner;
    for (int64_t r = 0; r < index->size; r++) {
        int64_t k = index->integer[r];
        for (int64_t c = 0; c < row && k >= 0 && k < table->d[0]; c++)
            e->out->real[r * row + c] = table->real[k * row + c];
    }
}

void eval_SCATTER_ADD(const OpEval *e)
{
    const Tensor *dy = e->in[0], *index = e->in[1];
    int64_t row = around(e->out, 0).inner;
    for (int64_t r = 0; r < index->size; r++) {
        int64_t k = index->integer[r];
        for (int64_t c = 0; c < row && k >= 0 && k < e->out->d[0]; c++)
            e->out->real[k * row + c] += dy->real[r * row + c];
    }
}

void eval_PICK(const OpEval *e)
{
    const Tensor *x = e->in[0], *index = e->in[1];
    int64_t n = x->d[x->rank - 1], k = index->d[index->rank - 1];
    for (int64_t p = 0; p < index->size; p++) {
        int64_t at = index->integer[p];
        bool there = at >= 0 && at < n;
        if (e->out->dtype == DT_INT)
            e->out->integer[p] = there ? x->integer[p / k * n + at] : 0;
        else
            e->out->real[p] = there ? x->real[p / k * n + at] : 0;
    }
}

void eval_PLACE(const OpEval *e)
{
    const Tensor *dy = e->in[0], *index = e->in[1];
    int64_t n = e->out->d[e->out->rank - 1], k = index->d[index->rank - 1];
    for (int64_t p = 0; p < index->size; p++) {
        int64_t at = index->integer[p];
        if (at >= 0 && at < n)
            e->out->real[p / k * n + at] += dy->real[p];
    }
}

/* Before any other, a larger number; NaN counts as the smallest; equals by their place. */
void eval_TOP_K(const OpEval *e)
{
    const Tensor *x = e->in[0];
    int64_t n = x->d[x->rank - 1], k = e->n->a.j;
    if (k == 0)
        return;
    bool *taken = ctx_alloc(e->ctx, (size_t)n);
    for (int64_t row = 0; row < x->size / n; row++) {
        const double *p = x->real + row * n;
        memset(taken, 0, (size_t)n);
        for (int64_t c = 0; c < k; c++) {
            int64_t best = -1;
            for (int64_t i = 0; i < n; i++)
                if (!taken[i] && (best < 0 || p[i] > p[best] || (isnan(p[best]) && !isnan(p[i]))))
                    best = i;
            taken[best] = true;
            e->out->integer[row * k + c] = best;
        }
    }
    ctx_release(e->ctx, taken);
}
