/* cases.c - see cases.h.
 *
 * The one idea: one graph, many runs: reference; fused and unfused; the kernel programs interpreted in
 * float64 and float32; buffers apart and in one arena; rows all at once and in uneven ranges. All must
 * agree, the last ones bit for bit.
 */
#include "cases.h"

#include "interpret.h"

#include <math.h>
#include <stdio.h>

typedef struct Case {
    const char *name;
    const Graph *g;
    int64_t B, T;
    double tolerance;
    Plan *plan[2]; /* fused, unfused */
    RefBinding *bind;
    size_t n_bind;
} Case;

struct Cases {
    Ctx *ctx;
    Arena *arena;
    Dice dice;
    Host *host;
    bool device;
    VEC(Case) v;
};

uint32_t dice(Dice *d, uint32_t n)
{
    d->state = d->state * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((d->state >> 33) % n);
}

double dice_real(Dice *d, double lo, double hi)
{
    return (double)(float)(lo + (hi - lo) * dice(d, 1u << 24) * 0x1p-24);
}

static void print_bug(Ctx *ctx, const char *text)
{
    (void)ctx;
    printf("%s\n", text);
}

Cases *cases_new(Ctx *ctx, const HostDevice *device)
{
    ctx->on_bug = print_bug;
    Cases *c = NEW(ctx->program, Cases);
    *c = (Cases){.ctx = ctx, .arena = ctx->program, .dice = {12345}, .host = host_new(NULL), .device = device != NULL};
    host_on_device(c->host, device);
    return c;
}

static Tensor *random_tensor(Cases *c, const Ext *x, int64_t B, int64_t T, int64_t limit)
{
    int64_t d[MAX_RANK];
    for (int i = 0; i < x->shape.rank; i++)
        d[i] = dim_at(x->shape.d[i], B, T);
    Tensor *t = tensor_new(c->arena, x->dtype, x->shape.rank, d);
    for (int64_t i = 0; i < t->size; i++)
        if (x->dtype == DT_INT)
            t->integer[i] = (int64_t)dice(&c->dice, (uint32_t)limit);
        else
            t->real[i] = dice_real(&c->dice, -1, 1);
    return t;
}

void cases_add(Cases *c, const char *name, const Graph *g, int64_t B, int64_t T, int64_t int_limit, double tolerance)
{
    Case x = {.name = arena_copy(c->arena, name, strlen(name)),
              .g = g,
              .B = B,
              .T = T,
              .tolerance = tolerance,
              .n_bind = g->ext.n};
    x.bind = NEW_ARRAY(c->arena, RefBinding, g->ext.n + 1);
    for (size_t i = 0; i < g->ext.n; i++)
        x.bind[i] = (RefBinding){g->ext.v[i].kind, g->ext.v[i].name, random_tensor(c, &g->ext.v[i], B, T, int_limit)};
    for (int k = 0; k < 2; k++) {
        PlanOptions how = {
            .B = B, .T = T, .no_fusion = k == 1, .programs = !c->device, .target = c->device ? &target_gpu : NULL};
        x.plan[k] = plan_build(c->ctx, c->arena, g, &how);
        plan_verify(c->ctx, x.plan[k]);
        host_add(c->host, x.plan[k]);
    }
    vec_push(c->arena, &c->v, x);
}

const Plan *cases_plan(const Cases *c, size_t i, bool fused) { return c->v.v[i].plan[!fused]; }
size_t cases_count(const Cases *c) { return c->v.n; }

static bool same_number(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

/* 0 when equal to the bound; else how far off, relative to it */
static double distance(const Tensor *got, const Tensor *want, double tolerance)
{
    double most = 0, worst = 0;
    if (got->size != want->size || got->dtype != want->dtype)
        return 1e30;
    for (int64_t i = 0; i < want->size; i++) {
        if (want->dtype == DT_INT) {
            if (got->integer[i] != want->integer[i])
                return 1e29;
            continue;
        }
        if (isfinite(want->real[i]) && fabs(want->real[i]) > most)
            most = fabs(want->real[i]);
    }
    for (int64_t i = 0; i < want->size && want->dtype == DT_REAL; i++) {
        double a = got->real[i], b = want->real[i];
        if (same_number(a, b))
            continue;
        double e = fabs(a - b) / (1 + most);
        if (!(e <= worst))
            worst = isnan(e) ? 1e28 : e;
    }
    return worst <= tolerance ? 0 : worst / tolerance;
}

static bool same_bits(const Tensor *a, const Tensor *b)
{
    for (int64_t i = 0; i < a->size; i++)
        if (a->dtype == DT_INT ? a->integer[i] != b->integer[i] : !same_number(a->real[i], b->real[i]))
            return false;
    return true;
}

typedef struct Outcome {
    Tensor **results, **stored;
} Outcome;

static Outcome reference(Cases *c, const Case *x, const double *vars)
{
    Outcome o = {NEW_ARRAY(c->arena, Tensor *, x->g->out.n + 1), NEW_ARRAY(c->arena, Tensor *, x->n_bind + 1)};
    Tensor **all = NEW_ARRAY(c->arena, Tensor *, x->g->out.n + 1);
    RefBinding *bind = NEW_ARRAY(c->arena, RefBinding, x->n_bind + 1);
    for (size_t i = 0; i < x->n_bind; i++) {
        const Tensor *t = x->bind[i].tensor;
        bind[i] = x->bind[i];
        bind[i].tensor = o.stored[i] = tensor_new(c->arena, t->dtype, t->rank, t->d);
        for (int64_t k = 0; k < t->size; k++)
            if (t->dtype == DT_INT)
                bind[i].tensor->integer[k] = t->integer[k];
            else
                bind[i].tensor->real[k] = t->real[k];
    }
    RefRun run = {.B = x->B, .T = x->T, .seed = 7, .step = 3, .host_vars = vars, .bind = bind, .n_bind = x->n_bind};
    ref_evaluate(x->g, c->arena, &run, all);
    for (size_t i = 0, k = 0; i < x->g->out.n; i++)
        if (x->g->out.v[i].ext < 0)
            o.results[k++] = all[i];
    return o;
}

static Outcome run(Cases *c, const Case *x, const double *vars, bool fused, HostMemory memory, int64_t chunk)
{
    const Plan *p = x->plan[!fused];
    Outcome o = {NEW_ARRAY(c->arena, Tensor *, p->n_result + 1), NEW_ARRAY(c->arena, Tensor *, x->n_bind + 1)};
    HostRun how = {.B = x->B,
                   .T = x->T,
                   .seed = 7,
                   .step = 3,
                   .host_vars = vars,
                   .bind = x->bind,
                   .n_bind = x->n_bind,
                   .memory = memory,
                   .chunk = chunk};
    host_run(c->host, p, &how, c->arena, o.results, o.stored);
    return o;
}

/* The k-th result as the operator that made it, or the tensor that was written, with the element that is furthest off. */
static void told(const Case *x, const char *what, size_t k, bool result, const Tensor *got, const Tensor *want,
                 double off)
{
    const Graph *g = x->g;
    Buf made = buf_new(g->ctx->program);
    size_t i = 0;
    for (size_t left = k; result && i < g->out.n && (g->out.v[i].ext >= 0 || left); i++)
        left -= g->out.v[i].ext < 0;
    if (result && i < g->out.n) {
        const Node *n = node_at(g, g->out.v[i].value);
        buf_printf(&made, "result %zu, `%s` of ", k, op_info((Op)n->op)->name);
        for (size_t m = 0; m < n->n_in; m++) {
            buf_puts(&made, m ? ", " : "");
            shape_print(&made, shape_of(g, n->in[m]));
        }
    } else {
        buf_printf(&made, "stored tensor `%s`", x->bind[k].name);
    }
    int64_t at = 0, same = got->size == want->size;
    for (int64_t e = 0; same && e < want->size; e++)
        if (want->dtype == DT_INT ? got->integer[e] != want->integer[e] && got->integer[at] == want->integer[at]
                                  : !(fabs(got->real[e] - want->real[e]) <= fabs(got->real[at] - want->real[at])))
            at = e;
    double is = !same || !want->size ? NAN : want->dtype == DT_INT ? (double)got->integer[at] : got->real[at];
    double was = !same || !want->size ? NAN : want->dtype == DT_INT ? (double)want->integer[at] : want->real[at];
    printf("FAIL %s: %s: %s is off by %.3g times the bound: element %lld is %.9g and should be %.9g\n", x->name, what,
           made.s, off, (long long)at, is, was);
}

static int differences(const Case *x, const Outcome *got, const Outcome *want, size_t n_result, bool bits,
                       const char *what)
{
    int bad = 0;
    for (size_t i = 0; i < n_result + x->n_bind; i++) {
        const Tensor *a = i < n_result ? got->results[i] : got->stored[i - n_result];
        const Tensor *b = i < n_result ? want->results[i] : want->stored[i - n_result];
        if (!a || !b)
            continue;
        double off = bits ? !same_bits(a, b) : distance(a, b, x->tolerance);
        if (off > 0) {
            told(x, what, i < n_result ? i : i - n_result, i < n_result, a, b, off);
            bad++;
        }
    }
    return bad;
}

enum { INTERPRETED_MAX = 1 << 20 }; /* elements of all buffers: what is done in reasonable time */

static int interpreted(Cases *c, const Case *x, const double *vars, bool fused, const Outcome *want)
{
    const Plan *p = x->plan[!fused];
    Case exact = *x;
    int bad = 0;
    uint64_t bytes = 0;
    for (size_t i = 0; i < p->n_buffer; i++)
        bytes += p->buffer[i].bytes;
    exact.tolerance = 1e-10;
    HostRun how = {.B = x->B, .T = x->T, .seed = 7, .step = 3, .host_vars = vars, .bind = x->bind, .n_bind = x->n_bind};
    for (int single = 0; single < 2 && bytes < 4 * INTERPRETED_MAX; single++) {
        Outcome o = {NEW_ARRAY(c->arena, Tensor *, p->n_result + 1), NEW_ARRAY(c->arena, Tensor *, x->n_bind + 1)};
        interpret_plan(c->ctx, p, &how, single, o.results, o.stored);
        bad += differences(single ? x : &exact, &o, want, p->n_result, false,
                           single ? "interpreted in float32" : "interpreted");
    }
    return bad;
}

static int run_case(Cases *c, const Case *x)
{
    double vars[HV_COUNT] = {0};
    for (int i = 0; i < HV_COUNT; i++)
        vars[i] = i + 1;
    Outcome want = reference(c, x, vars), first[2];
    int bad = 0;
    for (int fused = 1; fused >= 0; fused--) {
        size_t n = x->plan[!fused]->n_result;
        first[fused] = run(c, x, vars, fused, HOST_APART, 0);
        bad += differences(x, &first[fused], &want, n, false, fused ? "fused" : "unfused");
        if (!c->device)
            bad += interpreted(c, x, vars, fused, &want);
        Outcome o = run(c, x, vars, fused, HOST_ARENA, 0);
        bad += differences(x, &o, &first[fused], n, true, "one arena");
        o = run(c, x, vars, fused, HOST_APART, 3);
        bad += differences(x, &o, &first[fused], n, true, "ranges of rows");
    }
    return bad > 0;
}

int cases_run(Cases *c)
{
    int bad = 0;
    host_compile(c->host);
    for (size_t i = 0; i < c->v.n; i++)
        bad += run_case(c, &c->v.v[i]);
    host_free(c->host);
    printf("%zu graphs, %d failures\n", c->v.n, bad);
    return bad;
}
