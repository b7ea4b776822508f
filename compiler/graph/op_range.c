/* op_range.c - rows of a table from a computed start on: written, or read.
 *
 * In:  a table [b, s, ..], the rows `start` [b], rows x [b, n, ..], marks on [b].
 * Out: PUT: the table with x over its rows start, start + 1, .. of each b; TAKE: those rows.
 * The one idea: what came before stays in tables that live outside the graph; a plan writes
 * them in place. Rows outside the table are not written and read as the fill. Neither is ever
 * differentiated.
 */
#include "op.h"

#include <math.h>

static const char *rows_fit(const Shape *table, const Shape *x)
{
    if (table->rank < 2 || x->rank != table->rank)
        return "the table and the rows have fewer than two axes or different ranks";
    for (int k = 0; k < x->rank; k++)
        if (k != 1 && !dim_eq(x->d[k], table->d[k]))
            return "the rows are not those of the table";
    return NULL;
}

static const char *start_fits(const Ask *q, size_t k)
{
    return ask_is_each(q, k) ? NULL : "the starts are not one integer for each table";
}

const char *shape_DYNAMIC_UPDATE_SLICE(const Ask *q, Shape *out, DType *dtype)
{
    *out = *ask_shape(q, 0);
    *dtype = ask_dtype(q, 0);
    const char *wrong = rows_fit(ask_shape(q, 0), ask_shape(q, 1));
    if (!wrong)
        wrong = start_fits(q, 2);
    if (!wrong && ask_dtype(q, 1) != *dtype)
        wrong = "the table and the rows have different types";
    if (!wrong && !ask_is_each(q, 3))
        wrong = "the marks are not one integer for each table";
    return wrong;
}

const char *shape_DYNAMIC_SLICE(const Ask *q, Shape *out, DType *dtype)
{
    *out = *q->given;
    *dtype = ask_dtype(q, 0);
    const char *wrong = rows_fit(ask_shape(q, 0), q->given);
    if (!wrong)
        wrong = start_fits(q, 1);
    if (!wrong && *dtype == DT_INT && (q->a->x != floor(q->a->x) || fabs(q->a->x) > 2e9))
        wrong = "the fill is not an integer below 2e9";
    return wrong;
}

void grad_DYNAMIC_UPDATE_SLICE(Graph *g, Val v, Val d, const bool *want, Val *din)
{
    (void)d, (void)want, (void)din;
    vwn_bug(g->ctx, "%%%u: a put has no gradient", (unsigned)v);
}

void grad_DYNAMIC_SLICE(Graph *g, Val v, Val d, const bool *want, Val *din)
{
    (void)d, (void)want, (void)din;
    vwn_bug(g->ctx, "%%%u: a take has no gradient", (unsigned)v);
}

/* Both types have elements of eight bytes. */
static char *element(const Tensor *t, int64_t at)
{
    return t->dtype == DT_INT ? (char *)(t->integer + at) : (char *)(t->real + at);
}

void eval_DYNAMIC_UPDATE_SLICE(const OpEval *e)
{
    const Tensor *x = e->in[1];
    Around in = around(x, 1), out = around(e->out, 1);
    if (e->out->size)
        memcpy(element(e->out, 0), element(e->in[0], 0), (size_t)e->out->size * 8);
    for (int64_t b = 0; b < in.outer; b++)
        for (int64_t i = 0; i < in.n; i++) {
            int64_t to = e->in[2]->integer[b] + i;
            if (e->in[3]->integer[b] && to >= 0 && to < out.n && in.inner)
                memcpy(element(e->out, (b * out.n + to) * in.inner), element(x, (b * in.n + i) * in.inner),
                       (size_t)in.inner * 8);
        }
}

void eval_DYNAMIC_SLICE(const OpEval *e)
{
    Around in = around(e->in[0], 1), out = around(e->out, 1);
    for (int64_t p = 0; p < e->out->size; p++) {
        int64_t b = p / out.inner / out.n, from = e->in[1]->integer[b] + p / out.inner % out.n;
        int64_t at = (b * in.n + from) * out.inner + p % out.inner;
        bool inside = from >= 0 && from < in.n;
        if (e->out->dtype == DT_INT)
            e->out->integer[p] = inside ? e->in[0]->integer[at] : (int64_t)e->n->a.x;
        else
            e->out->real[p] = inside ? e->in[0]->real[at] : e->n->a.x;
    }
}
