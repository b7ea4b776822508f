/* yardsticks.c - measures the rates of rates.h.
 *
 * In:  a context.   Out: Rates.
 * The one idea: a yardstick is a small graph of primitives, planned, compiled and run like any
 * other, in which one kind of work takes all the time; what the plan says there is to do, by
 * the seconds of its launch, is the rate. So a rate counts what an estimate counts.
 */
#include <math.h>
#include <stdio.h>

#include "runtime/base/machine.h"
#include "runtime/cpu/cpu.h"
#include "rates.h"

/* A yardstick has run often enough when the best two runs of each launch agree, so that one
 * that was disturbed is not taken for the machine; or when patience ends. A launch takes a millisecond or
 * two: on a machine with other work, longer ones are hardly ever left alone. */
static const double ENOUGH = 0.05, PATIENCE = 3.0, AGREE = 1.05; /* seconds, seconds, ratio */

typedef struct Measure {
    Session session;
    vwn_context *owner;
    Rates *rates;
    Graph *g;
    int64_t sms; /* multiprocessors of a device; 0: the CPU is measured */
    BuildReport build;
    int tensors;
} Measure;

/* How much of it a device has to do, which is idle below that; or what a CPU has. */
static int64_t enough(const Measure *m, int64_t cpu, int64_t each_sm) { return m->sms ? m->sms * each_sm : cpu; }

/* ---- graphs: tensors of B x d1 x d2 x d3 numbers, all zero on a CPU ---- */

static Graph *fresh(Measure *m) { return m->g = graph_new(m->session.ctx, m->session.arena); }

static Name next_name(Measure *m)
{
    char name[32];
    snprintf(name, sizeof name, "yardstick.%d", m->tensors++);
    return name_str(m->session.ctx, name);
}

static Val tensor(Measure *m, int rank, Dim d0, int64_t d1, int64_t d2, int64_t d3)
{
    Shape s = {.rank = (uint8_t)rank, .d = {d0, DIM(d1), DIM(d2), DIM(d3)}};
    return ir_ext(m->g, EXT_BUFFER, next_name(m), DT_REAL, &s);
}

static void keep(Measure *m, Val v) { ir_store(m->g, v, EXT_BUFFER, next_name(m)); }

static Val number(Measure *m, double x) { return ir_fill(m->g, x); }

/* ---- running ---- */

typedef struct Timed {
    const Plan *plan;
    double *best; /* seconds of each launch in its fastest run */
} Timed;

static bool agree(const Timed *t, const double *second)
{
    for (size_t i = 0; i < t->plan->n_launch; i++)
        if (second[i] > AGREE * t->best[i])
            return false;
    return true;
}

/* A GPU multiplies zeros faster than other numbers. */
static void fill(Measure *m)
{
    enum { PIECE = 1 << 14 };
    Session *s = &m->session;
    double piece[PIECE];
    uint64_t key = philox_key(1, "yardstick");
    for (int i = 0; i < PIECE; i++)
        piece[i] = 2 * philox_uniform(key, 0, (uint64_t)i) - 1;
    for (size_t i = 0; i < store_count(s->store); i++) {
        StoreEntry *e = store_at(s->store, i);
        for (int64_t at = 0; e->kind == EXT_BUFFER && e->dtype == DT_REAL && at < e->elements; at += PIECE)
            session_store_ok(
                s, store_put_f64(s->store, e, at, e->elements - at < PIECE ? e->elements - at : PIECE, piece));
    }
}

static Timed run_yardstick(Measure *m, int64_t B, bool half)
{
    Session *s = &m->session;
    ProgramOptions how = {.name = "yardstick",
                          .B = B,
                          .T = 1,
                          .share_arena = true,
                          .half = half ? target_half(s->backend->target) : HALF_NONE};
    Program *p = session_program(s, m->g, &how, &m->build);
    Timed t = {.plan = program_plan(p)};
    size_t n = t.plan->n_launch;
    double *seconds = NEW_ARRAY(s->arena, double, n + 1);
    double *second = NEW_ARRAY(s->arena, double, n + 1);
    t.best = NEW_ARRAY(s->arena, double, n + 1);
    for (size_t i = 0; i < n; i++)
        t.best[i] = second[i] = INFINITY;
    if (m->sms)
        fill(m);
    session_run(s, p, NULL); /* pays for pages and clocks */
    program_watch(p, seconds);
    if (m->sms)
        session_run(s, p, NULL); /* is recorded anew */
    double began = clock_seconds(), took = 0;
    while (took < ENOUGH || (took < PATIENCE && !agree(&t, second))) {
        memset(seconds, 0, n * sizeof *seconds);
        session_run(s, p, NULL);
        for (size_t i = 0; i < n; i++) {
            second[i] = fmin(second[i], fmax(t.best[i], seconds[i]));
            t.best[i] = fmin(t.best[i], seconds[i]);
        }
        took = clock_seconds() - began;
    }
    program_watch(p, NULL);
    return t;
}

/* The launch that took longest; the others only bring its operands about. */
static size_t longest(const Timed *t)
{
    size_t at = 0;
    for (size_t i = 1; i < t->plan->n_launch; i++)
        if (t->best[i] > t->best[at])
            at = i;
    return at;
}

static double positive(Measure *m, double x, const char *what)
{
    if (!(x > 0) || !isfinite(x))
        ctx_raise(m->session.ctx, ST_ENVIRONMENT, "the machine could not be measured: %s took no time", what);
    return x;
}

/* ---- kernels ---- */

static void measure_launches(Measure *m)
{
    fresh(m);
    keep(m, ir_binary(m->g, OP_ADD, tensor(m, 2, DIM_B, 1024, 1, 1), number(m, 1)));
    Timed t = run_yardstick(m, 32, false);
    m->rates->v[RATE_LAUNCHES] = positive(m, 1 / t.best[longest(&t)], "a launch");
}

static void measure_moves(Measure *m)
{
    enum { PART = 6 }; /* MiB of a launch: each finds its memory where a long round left it */
    static const int64_t mib[RATE_MOVES] = {3, 24, 96, 384};
    double *rate = m->rates->v + RATE_MOVE, *size = m->rates->v + RATE_MOVE_BYTES;
    for (int i = 0; i < RATE_MOVES; i++) {
        int64_t total, left = memory_available(&total);
        if (i && left >= 0 && mib[i] << 20 > left / 8)
            return; /* larger ones take the last rate */
        if (i && m->sms && mib[i] > 4 * m->sms)
            return;
        fresh(m);
        int64_t part = mib[i] < PART || m->sms ? mib[i] : PART; /* a device is idle between launches */
        for (int64_t k = 0; k < mib[i] / part; k++) {
            Val x = tensor(m, 2, DIM_B, 1024, 1, 1), y = tensor(m, 2, DIM_B, 1024, 1, 1);
            keep(m, ir_binary(m->g, OP_ADD, ir_scale(m->g, x, 0.5), y));
        }
        Timed t = run_yardstick(m, (part << 20) / (3 * 4096), false);
        double bytes = 0, seconds = 0;
        for (size_t k = 0; k < t.plan->n_launch; k++) {
            bytes += t.plan->launch[k].bytes;
            seconds += t.best[k];
        }
        rate[i] = positive(m, bytes / seconds, "moving");
        size[i] = (double)(mib[i] << 20);
    }
}

/* A small matrix by n streams, for each row: y = a x. `steps` of arithmetic on the matrix,
 * which is numbers of the row, come before. */
static Timed time_streams(Measure *m, int64_t rows, int64_t n, int64_t width, int steps)
{
    Graph *g = fresh(m);
    Val a = tensor(m, 3, DIM_B, n, n, 1), x = tensor(m, 3, DIM_B, n, width, 1), v = a;
    for (int i = 0; i < steps; i++) {
        v = ir_binary(g, OP_ADD, ir_binary(g, OP_MUL, v, v), a);
        v = ir_binary(g, OP_MUL, v, ir_binary(g, OP_ADD, ir_sum(g, v, 4, true), number(m, 1)));
    }
    keep(m, ir_matmul(g, v, x));
    return run_yardstick(m, rows, false);
}

static void measure_kernels(Measure *m)
{
    double *rate = m->rates->v;
    Timed t = time_streams(m, enough(m, 64, 16), 8, 1024, 0);
    size_t at = longest(&t);
    rate[RATE_LANE] = positive(m, t.plan->launch[at].work.lane / t.best[at], "arithmetic");

    t = time_streams(m, enough(m, 1024, 128), 8, 32, 4);
    at = longest(&t);
    const PlanWork *w = &t.plan->launch[at].work;
    double rest = fmax(t.best[at] - w->lane / rate[RATE_LANE], 0.25 * t.best[at]);
    rate[RATE_SINGLE] = positive(m, w->single / rest, "arithmetic of single numbers");

    fresh(m);
    keep(m, ir_unary(m->g, OP_SILU, tensor(m, 2, DIM_B, 1024, 1, 1)));
    t = run_yardstick(m, enough(m, 256, 64), false);
    at = longest(&t);
    rate[RATE_CALL] = positive(m, t.plan->launch[at].work.call / t.best[at], "a function");

    fresh(m);
    Shape s = *shape_of(m->g, tensor(m, 2, DIM_B, 256, 1, 1));
    keep(m, ir_random(m->g, OP_RAND, &s, next_name(m)));
    t = run_yardstick(m, enough(m, 256, 64), false);
    at = longest(&t);
    rate[RATE_RANDOM] = positive(m, t.plan->launch[at].work.random / t.best[at], "random numbers");

    Graph *g = fresh(m);
    keep(m, ir_matmul(g, tensor(m, 3, DIM_B, 32, 32, 1), tensor(m, 3, DIM_B, 32, 128, 1)));
    t = run_yardstick(m, enough(m, 64, 16), false);
    at = longest(&t);
    rate[RATE_PRODUCT] = positive(m, t.plan->launch[at].work.product / t.best[at], "a product of a row");
}

/* ---- products of the library ---- */

/* Rows by d x d, by its transpose, and the sum over rows of d by d. */
static Timed time_products(Measure *m, int64_t rows, int64_t d, bool bf16)
{
    Graph *g = fresh(m);
    keep(m, ir_matmul(g, tensor(m, 2, DIM_B, d, 1, 1), tensor(m, 2, DIM(d), d, 1, 1)));
    keep(m, ir_matmul(g, tensor(m, 2, DIM_B, d, 1, 1), ir_transpose(g, tensor(m, 2, DIM(d), d, 1, 1))));
    keep(m, ir_matmul(g, ir_transpose(g, tensor(m, 2, DIM_B, d, 1, 1)), tensor(m, 2, DIM_B, d, 1, 1)));
    return run_yardstick(m, rows, bf16);
}

static const Launch *product_launch(const Timed *t, ProductKind kind, double *seconds)
{
    for (size_t i = 0; i < t->plan->n_launch; i++) {
        const PlanMatmul *p = &t->plan->launch[i].matmul;
        if (t->plan->launch[i].kind == LAUNCH_MATMUL && product_kind(p->transpose_a, p->transpose_b) == kind) {
            *seconds = t->best[i];
            return &t->plan->launch[i];
        }
    }
    return NULL;
}

/* The two rates that explain a product with much to do for each number and one with little. */
static void measure_products(Measure *m, bool bf16)
{
    double *rate = m->rates->v + (bf16 ? RATE_BF16 : RATE_MATMUL);
    int64_t rows = enough(m, 512, 128);
    Timed wide = time_products(m, rows, m->sms ? 1024 : 384, bf16);
    Timed thin = time_products(m, rows, m->sms ? 256 : 128, bf16);
    for (int kind = 0; kind < 3; kind++) {
        double tw, tt;
        const Launch *w = product_launch(&wide, (ProductKind)kind, &tw);
        const Launch *h = product_launch(&thin, (ProductKind)kind, &tt);
        if (!w || !h)
            ctx_raise(m->session.ctx, ST_BUG, "a product of the library was planned as a kernel");
        double nw = product_numbers(&w->matmul), nt = product_numbers(&h->matmul);
        /* tw = fw x + nw y, tt = ft x + nt y; both are at least a little */
        double det = w->flops * nt - h->flops * nw;
        double x = (tw * nt - tt * nw) / det, y = (w->flops * tt - h->flops * tw) / det;
        x = fmax(x, 0.5 * tw / w->flops);
        y = fmax(y, 0.01 * tt / nt);
        rate[kind] = positive(m, 1 / x, "a product");
        rate[RATE_MATMUL_NUMBERS - RATE_MATMUL + kind] = 1 / y;
    }
}

/* Two of eight experts for each row, all equally often. */
static void measure_experts(Measure *m)
{
    enum { CHOICES = 2, EXPERTS = 8 };
    const int64_t ROWS = enough(m, 1024, 64), WIDTH = m->sms ? 128 : 256;
    double *rate = m->rates->v + RATE_EXPERT;
    Graph *g = fresh(m);
    Shape s = {.rank = 2, .d = {DIM_B, DIM(CHOICES)}};
    Val row = ir_iota(g, &s, 0), choice = ir_iota(g, &s, 1), wrt[2], grad[2];
    Val index = ir_binary(g, OP_MOD, ir_binary(g, OP_ADD, row, choice), ir_int(g, EXPERTS));
    wrt[0] = tensor(m, 2, DIM_B, WIDTH, 1, 1);
    wrt[1] = tensor(m, 3, DIM(EXPERTS), WIDTH, WIDTH, 1);
    Val y = ir_expert_matmul(g, wrt[0], wrt[1], index);
    y = ir_binary(g, OP_MUL, y, tensor(m, 3, DIM_B, CHOICES, WIDTH, 1));
    Val loss = ir_sum(g, y, 7, false);
    graph_gradient(g, loss, wrt, 2, grad);
    keep(m, grad[0]);
    keep(m, grad[1]);
    ir_output(g, next_name(m), loss);
    Timed t = run_yardstick(m, ROWS, false);
    double flops = 0, seconds = 0; /* of a device, whose kernels do not say which product they are */
    for (size_t i = 0; i < t.plan->n_launch; i++) {
        const Launch *l = &t.plan->launch[i];
        if (l->kind == LAUNCH_EXPERT)
            rate[expert_kind(&l->expert)] = positive(m, l->flops / t.best[i], "a product by expert");
        flops += l->work.expert;
        seconds += l->work.expert > 0 ? t.best[i] : 0;
    }
    for (int kind = 0; kind < 3 && m->sms; kind++)
        rate[kind] = flops / seconds;
    for (int kind = 0; kind < 3; kind++)
        positive(m, rate[kind], "a product by expert");
}

/* ---- attention ---- */

static Timed time_attention(Measure *m, int64_t heads, int64_t width)
{
    const int64_t SEQUENCES = enough(m, 2, 1), POSITIONS = m->sms ? 128 : 64;
    Graph *g = fresh(m);
    Val x[3], dx[3];
    for (int i = 0; i < 3; i++)
        x[i] = tensor(m, 4, DIM_B, POSITIONS, heads, width);
    Sdpa how = {.causal = true, .scale = 0.125};
    Val y = ir_sdpa(g, x[0], x[1], x[2], &how);
    Val loss = ir_sum(g, ir_binary(g, OP_MUL, y, tensor(m, 4, DIM_B, POSITIONS, heads, width)), 15, false);
    graph_gradient(g, loss, x, 3, dx);
    for (int i = 0; i < 3; i++)
        keep(m, dx[i]);
    ir_output(g, next_name(m), loss);
    return run_yardstick(m, SEQUENCES, false);
}

static void attention_launches(const Timed *t, bool backward, PlanWork *w, double *seconds)
{
    *w = (PlanWork){0};
    *seconds = 0;
    for (size_t i = 0; i < t->plan->n_launch; i++) {
        const PlanWork *x = &t->plan->launch[i].work;
        if (x->scores <= 0 || x->backward != backward)
            continue;
        w->attention += x->attention;
        w->scores += x->scores;
        *seconds += t->best[i];
    }
}

/* As products: heads that are wide and heads that are narrow. */
static void measure_attention(Measure *m)
{
    double *rate = m->rates->v;
    const int64_t heads = m->sms ? 4 : 16;
    Timed wide = time_attention(m, heads, 64), thin = time_attention(m, heads, 16);
    for (int back = 0; back < 2; back++) {
        PlanWork w, h;
        double tw, tt;
        attention_launches(&wide, back, &w, &tw);
        attention_launches(&thin, back, &h, &tt);
        double det = w.attention * h.scores - h.attention * w.scores;
        double x = (tw * h.scores - tt * w.scores) / det;
        double y = (w.attention * tt - h.attention * tw) / det;
        x = fmax(x, 0.25 * tw / w.attention);
        y = fmax(y, 0.01 * tt / h.scores);
        rate[RATE_ATTENTION + back] = positive(m, 1 / x, "attention");
        rate[RATE_SCORES + back] = positive(m, 1 / y, "attention");
    }
}

/* ---- the whole ---- */

static Status measure_body(void *user)
{
    Measure *m = user;
    Session *s = &m->session;
    session_open(s, m->owner);
    session_open_backend(s);
    if (!s->backend)
        ctx_raise(s->ctx, ST_ENVIRONMENT, "the machine could not be measured: %s",
                  s->note[0] ? s->note : "the reference evaluator was asked for");
    m->rates->threads = s->backend->threads;
    m->sms = s->backend->multiprocessors;
    measure_launches(m);
    measure_kernels(m);
    measure_products(m, false);
    if (s->backend->bf16)
        measure_products(m, true);
    measure_experts(m);
    measure_attention(m);
    measure_moves(m);
    return ST_OK;
}

void rates_measure(vwn_context *owner, Rates *out)
{
    *out = (Rates){0};
    Measure m = {.owner = owner, .rates = out};
    Status st = guarded(owner->ctx, measure_body, &m);
    session_close(&m.session);
    if (st != ST_OK)
        ctx_raise(owner->ctx, st, "%s", owner->ctx->message);
}
