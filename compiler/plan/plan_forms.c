/* plan_forms.c - see plan_forms.h. */
#include "plan_forms.h"

#include <inttypes.h>
#include "kernel_cache.h"

/* Sums over fewer than 1,024 rows have fewer parts, which is another plan and no other result. */
static const struct {
    int64_t B, T;
} size[PLAN_SIZES] = {{1033, 1039}, {1511, 1733}, {1307, 2003}, {2017, 1213}, {1129, 1523}};

/* ---- plans ---- */

static bool same_launch(const Plan *p, const Plan *q, const Launch *x, const Launch *y)
{
    if (x->kind != y->kind || x->n_buffer != y->n_buffer || x->n_int != y->n_int || x->n_scalar != y->n_scalar)
        return false;
    for (uint32_t k = 0; k < x->n_buffer; k++)
        if (x->buffer[k] != y->buffer[k] || x->writes[k] != y->writes[k])
            return false;
    return x->kind != LAUNCH_KERNEL || !strcmp(p->kernel[x->kernel].name, q->kernel[y->kernel].name);
}

static bool same_plan(const Plan *p, const Plan *q)
{
    bool same =
        p->n_launch == q->n_launch && p->n_buffer == q->n_buffer && p->n_ext == q->n_ext && p->n_kernel == q->n_kernel;
    for (size_t i = 0; same && i < p->n_launch; i++)
        same = same_launch(p, q, &p->launch[i], &q->launch[i]);
    for (size_t i = 0; same && i < p->n_buffer; i++)
        same = p->buffer[i].ext == q->buffer[i].ext && p->buffer[i].dtype == q->buffer[i].dtype;
    return same;
}

void plan_build_sizes(PlanSizes *out, Ctx *ctx, Arena *arena, const Graph *g, const PlanOptions *how, const char *what)
{
    for (size_t i = 0; i < PLAN_SIZES; i++) {
        PlanOptions at = *how;
        at.B = size[i].B;
        at.T = size[i].T;
        Plan *plan = plan_build(ctx, arena, plan_graph(g, arena, &at), &at);
        plan_verify(ctx, plan);
        out->plan[i] = plan;
        if (!same_plan(out->plan[0], plan))
            ctx_raise(ctx, ST_INPUT, "%s is planned in another way for other numbers of sequences and positions", what);
    }
}

/* ---- forms ---- */

static int64_t power(int64_t x, int n) { return n ? x * power(x, n - 1) : 1; }

static int64_t ceil_of(int64_t n, int64_t by) { return (n + by - 1) / by; }

int64_t plan_form_at(const PlanForm *f, int64_t B, int64_t T)
{
    int64_t n = dim_at(f->times, B, T);
    return f->by ? n * ceil_of(dim_at(f->of, B, T), f->by) : n;
}

static bool holds(const int64_t *v, const PlanForm *f)
{
    for (size_t i = 0; i < PLAN_SIZES; i++)
        if (plan_form_at(f, size[i].B, size[i].T) != v[i])
            return false;
    return true;
}

/* Of what is left when these powers are taken out. */
static bool monomial(const int64_t *v, PlanForm *f)
{
    for (uint8_t b = 0; b <= 2; b++)
        for (uint8_t t = 0; t <= 2; t++) {
            int64_t by = power(size[0].B, b) * power(size[0].T, t);
            *f = (PlanForm){.times = {v[0] / by, b, t}};
            if (v[0] % by == 0 && holds(v, f))
                return true;
        }
    return false;
}

static int64_t greatest_divisor(int64_t a, int64_t b) { return b ? greatest_divisor(b, a % b) : a; }

/* The least m for which all v[i] are parts of m q[i] in `by`; 0: there is none. */
static int64_t least_times(const int64_t *v, const int64_t *q, int64_t by)
{
    int64_t low = 1, high = INT64_MAX;
    for (size_t i = 0; i < PLAN_SIZES; i++) {
        int64_t above = by * (v[i] - 1) / q[i] + 1, most = by * v[i] / q[i];
        low = above > low ? above : low;
        high = most < high ? most : high;
    }
    return low <= high ? low : 0;
}

/* n of them, or n for each sequence or position, each of parts of m B T, or m T, in `by`: the least m, then the least `by`. */
static bool parts(const int64_t *v, PlanForm *f)
{
    enum { MOST_BY = 4096, MOST_TIMES = 4096 };
    static const Dim outer[] = {{1, 0, 0}, {1, 1, 0}, {1, 0, 1}}, inner[] = {{1, 1, 1}, {1, 0, 1}, {1, 1, 0}};
    bool found = false;
    for (size_t o = 0; o < COUNT_OF(outer); o++) {
        int64_t all[PLAN_SIZES], each[PLAN_SIZES], q[PLAN_SIZES], common = 0;
        bool whole = true;
        for (size_t p = 0; p < PLAN_SIZES; p++) {
            int64_t by = dim_at(outer[o], size[p].B, size[p].T);
            whole = whole && v[p] > 0 && v[p] % by == 0;
            all[p] = v[p] / by;
            common = greatest_divisor(all[p], common);
        }
        for (int64_t n = 1; whole && n <= common && n <= MOST_TIMES; n++)
            for (size_t i = 0; common % n == 0 && i < COUNT_OF(inner); i++) {
                for (size_t p = 0; p < PLAN_SIZES; p++) {
                    each[p] = all[p] / n;
                    q[p] = dim_at(inner[i], size[p].B, size[p].T);
                }
                for (int64_t by = 2; by <= MOST_BY; by++) {
                    int64_t m = least_times(each, q, by);
                    if (!m || (found && m >= f->of.n))
                        continue;
                    *f = (PlanForm){{n, outer[o].b, outer[o].t}, {m, inner[i].b, inner[i].t}, by};
                    found = true;
                }
            }
    }
    return found && holds(v, f);
}

bool plan_form(const PlanSizes *sizes, PlanNumberAt *at, size_t i, size_t k, PlanForm *out)
{
    int64_t v[PLAN_SIZES];
    for (size_t p = 0; p < PLAN_SIZES; p++)
        v[p] = at(sizes->plan[p], i, k);
    return monomial(v, out) || parts(v, out);
}

static void print_dim(Buf *out, Dim d)
{
    if (d.n != 1 || (!d.b && !d.t))
        buf_printf(out, "%" PRId64, d.n);
    const char *between = d.n != 1 ? " * " : "";
    for (int i = 0; i < d.b + d.t; i++) {
        buf_printf(out, "%s%s", between, i < d.b ? "B" : "T");
        between = " * ";
    }
}

void plan_form_print(Buf *out, const PlanForm *f)
{
    if (!f->by || f->times.n != 1 || f->times.b || f->times.t) {
        print_dim(out, f->times);
        if (f->by)
            buf_puts(out, " * ");
    }
    if (!f->by)
        return;
    buf_puts(out, "ceil_of(");
    print_dim(out, f->of);
    buf_printf(out, ", %" PRId64 ")", f->by);
}

bool plan_form_of_rows(const PlanForm *f) { return f->times.b == f->times.t && (!f->by || f->of.b == f->of.t); }
