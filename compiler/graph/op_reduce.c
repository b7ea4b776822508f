/* op_reduce.c - sums, maxima and running sums.
 *
 * In:  a tensor and axes.     Out: the same rank; reduced axes have extent 1.
 * The one idea: axes are kept, so that the gradient is a broadcast; dropping them is a reshape.
 */
#include "op.h"

#include <math.h>

static const char *reduced(const Ask *q, Shape *out, DType *dtype)
{
    *dtype = ask_dtype(q, 0);
    if (!q->a->axes)
        return "no axes";
    if (!shape_reduce(ask_shape(q, 0), q->a->axes, out))
        return "an axis does not exist";
    return *dtype == DT_REAL ? NULL : "the input is not real";
}
SAME_SHAPE_RULE(SUM, reduced)
SAME_SHAPE_RULE(AMAX, reduced)

const char *shape_CUMSUM(const Ask *q, Shape *out, DType *dtype)
{
    *out = *ask_shape(q, 0);
    *dtype = ask_dtype(q, 0);
    if (q->a->i < 0 || q->a->i >= out->rank)
        return "the axis does not exist";
    if (q->a->j != 0 && q->a->j != 1)
        return "j is neither 0 nor 1";
    return *dtype == DT_REAL ? NULL : "the input is not real";
}

void grad_SUM(Graph *g, Val v, Val d, const bool *want, Val *din)
{
    Shape s = *shape_of(g, node_at(g, v)->in[0]);
    if (want[0])
        din[0] = ir_broadcast(g, d, &s);
}

/* The elements that equal the maximum share its gradient. */
void grad_AMAX(Graph *g, Val v, Val d, const bool *want, Val *din)
{
    if (!want[0])
        return;
    Val x = node_at(g, v)->in[0];
    Val mask = ir_binary(g, OP_EQ, x, v);
    Val ties = ir_sum(g, mask, node_at(g, v)->a.axes, true);
    din[0] = ir_binary(g, OP_MUL, mask, ir_binary(g, OP_DIV, d, ties));
}

void grad_CUMSUM(Graph *g, Val v, Val d, const bool *want, Val *din)
{
    Attr a = node_at(g, v)->a;
    if (want[0])
        din[0] = ir_cumsum(g, d, (int)a.i, !a.j);
}

/* Calls the loop body with p, the place in the input, and r, the place in the result. */
static void reduce_with(const OpEval *e, void (*combine)(double *, double))
{
    const Tensor *in = e->in[0];
    int64_t stride[MAX_RANK] = {0}, index[MAX_RANK] = {0}, s = 1, r = 0;
    for (int k = in->rank - 1; k >= 0; k--) {
        stride[k] = e->n->a.axes >> k & 1 ? 0 : s;
        s *= e->out->d[k];
    }
    for (int64_t p = 0; p < in->size; p++) {
        combine(&e->out->real[r], in->real[p]);
        for (int k = in->rank - 1; k >= 0; k--) {
            r += stride[k];
            if (++index[k] < in->d[k])
                break;
            r -= stride[k] * in->d[k];
            index[k] = 0;
        }
    }
}

static void add_to(double *r, double x) { *r += x; }

static void raise_to(double *r, double x)
{
    if (x > *r || isnan(x))
        *r = x;
}

void eval_SUM(const OpEval *e) { reduce_with(e, add_to); }

void eval_AMAX(const OpEval *e)
{
    for (int64_t k = 0; k < e->out->size; k++)
        e->out->real[k] = -INFINITY;
    reduce_with(e, raise_to);
}

void eval_CUMSUM(const OpEval *e)
{
    Around r = around(e->out, (int)e->n->a.i);
    const double *in = e->in[0]->real;
    for (int64_t o = 0; o < r.outer; o++)
        for (int64_t i = 0; i < r.inner; i++) {
            double sum = 0;
            for (int64_t k = 0; k < r.n; k++) {
                int64_t place = e->n->a.j ? r.n - 1 - k : k;
                int64_t at = (o * r.n + place) * r.inner + i;
                e->out->real[at] = sum += in[at];
            }
        }
}
