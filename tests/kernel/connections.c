/* connections.c - random connections are one kernel between sublayers, and compute what they
 * say.
 *
 * In:  a seed per connection (first argument: where to start, second: how many).
 * Out: each is written as a block of the language and put into a small transformer. Between the
 *      product that ends a sublayer and the products that begin what comes behind runs exactly
 *      one kernel over rows, in the training and in the prediction program (the rotation of
 *      queries and keys stands behind such a product); results and all gradients equal the
 *      reference's, with every parameter randomised. A failing connection is printed.
 * The one idea: n slots of width w; a sublayer reads m w numbers. The grammar below picks how
 * slots are normalised, coefficients made, read, carried and written.
 */
#include "../models.h"

#include "boundary.h"
#include "cases.h"
#include "plan_host.h"

typedef struct Text {
    Buf b;
    Dice d;
    int n, m, w; /* slots, slots that a sublayer reads, width of a slot */
    int names;
} Text;

static int pick(Text *t, int n)
{
    return (int)dice(&t->d, (uint32_t)n);
}

/* ---- pieces of a step; each prints statements and returns the name it binds ---- */

typedef struct Piece {
    char name[8];
} Piece;

static Piece fresh(Text *t, const char *letter)
{
    Piece p;
    snprintf(p.name, sizeof p.name, "%s%d", letter, t->names++);
    return p;
}

/* x [.., slots, w] made tame: normalised per slot, over all slots or across them, clamped */
static Piece normalised(Text *t, const char *x, int slots)
{
    Piece z = fresh(t, "z"), g = fresh(t, "g");
    Buf *b = &t->b;
    switch (pick(t, 8)) {
    case 0:
        buf_printf(b, "    let %s = rms_norm(eps = 1e-5)\n    %s = %s(%s)\n", g.name, z.name,
                   g.name, x);
        break;
    case 1:
        buf_printf(b, "    let %s = layer_norm(eps = 1e-4)\n    %s = %s(%s)\n", g.name, z.name,
                   g.name, x);
        break;
    case 2: /* a gain of each slot's own */
        buf_printf(b, "    param %s : [%d, %d] = ones\n", g.name, slots, t->w);
        buf_printf(b, "    %s = %s / sqrt(mean(%s * %s, over = -1, keep = true) + 1e-4) * %s\n",
                   z.name, x, x, x, g.name);
        break;
    case 3:
        buf_printf(b, "    %s = %s / (sqrt(sum(%s * %s, over = -1, keep = true)) + 0.1)\n",
                   z.name, x, x, x);
        break;
    case 4: /* over all slots */
        buf_printf(b, "    let %s = rms_norm(eps = 1e-5)\n", g.name);
        buf_printf(b, "    %s = reshape(%s(reshape(%s, [.., %d])), [.., %d, %d])\n", z.name,
                   g.name, x, slots * t->w, slots, t->w);
        break;
    case 5: /* across slots */
        buf_printf(b, "    %s = %s / sqrt(mean(%s * %s, over = -2, keep = true) + 0.3)\n",
                   z.name, x, x, x);
        break;
    case 6: buf_printf(b, "    %s = clamp(%s, -1.5, 1.5)\n", z.name, x); break;
    default:
        buf_printf(b, "    param %s : [%d, 1] = ones { group = static }\n", g.name, slots);
        buf_printf(b, "    %s = tanh(%s * %s)\n", z.name, x, g.name);
    }
    return z;
}

/* A product with more columns than this is a library's (decompose.c). */
enum { WIDEST = 32 };

/* [.., n, k] from z [.., n, w] */
static Piece linear_of(Text *t, const char *z, int k)
{
    Piece u = fresh(t, "u"), W = fresh(t, "W");
    Buf *b = &t->b;
    switch (t->n * k > WIDEST ? pick(t, 3) : pick(t, 4)) {
    case 0:
    case 1:
        buf_printf(b, "    param %s : [%d, %d] = normal(std = 0.1)\n", W.name, t->w, k);
        buf_printf(b, "    %s = %s @ %s / %d\n", u.name, z, W.name, 2 + pick(t, 3));
        break;
    case 2: /* of the mean: the same for all slots */
        buf_printf(b, "    param %s : [%d, %d] = normal(std = 0.1)\n", W.name, t->w, k);
        buf_printf(b,
                   "    %s = broadcast(mean(%s, over = -2, keep = true) @ %s, [.., %d, %d])\n",
                   u.name, z, W.name, t->n, k);
        break;
    default: /* of all slots together */
        buf_printf(b, "    param %s : [%d, %d] = normal(std = 0.1)\n", W.name, t->n * t->w,
                   t->n * k);
        buf_printf(b, "    %s = reshape(reshape(%s, [.., %d]) @ %s, [.., %d, %d])\n", u.name, z,
                   t->n * t->w, W.name, t->n, k);
    }
    return u;
}

/* Coefficients [.., n, k], or [n, k]: static, dynamic, or both. */
static Piece coefficient(Text *t, const char *z, int k, bool square)
{
    Piece c = fresh(t, "c"), a = fresh(t, "A"), s = fresh(t, "s");
    Buf *b = &t->b;
    int kind = pick(t, 5);
    buf_printf(b, "    param %s : [%d, %d] = normal(std = 0.4) { group = static }\n", a.name,
               t->n, k);
    if (kind == 0) {
        buf_printf(b, "    %s = %s\n", c.name, a.name);
    } else {
        Piece u = linear_of(t, z, k);
        static const char *const squash[] = {"tanh(%s)",
                                             "sigmoid(%s)",
                                             "softmax(%s, over = -2)",
                                             "softmax(%s)",
                                             "exp(clamp(%s, -2, 1)) / 3",
                                             "%s",
                                             "tanh(%s) * sigmoid(-1 * %s)"};
        char x[96];
        const char *how = squash[pick(t, COUNT_OF(squash))];
        snprintf(x, sizeof x, how, u.name, u.name);
        if (pick(t, 2))
            buf_printf(b, "    param %s : [] = fill(0.5) { group = static }\n", s.name);
        else
            buf_printf(b, "    param %s : [%d, %d] = fill(0.5) { group = static }\n", s.name,
                       t->n, k);
        buf_printf(b, "    %s = %s + %s * %s\n", c.name, a.name, s.name, x);
    }
    if (!square || pick(t, 3) == 0)
        return c;
    Piece p = fresh(t, "P"); /* made nearly doubly stochastic */
    buf_printf(b, "    %s = exp(clamp(%s, -3, 2))\n", p.name, c.name);
    buf_printf(b, "    for i in 1..%d {\n", 1 + pick(t, 3));
    buf_printf(b, "      %s = %s / sum(%s, over = -1, keep = true)\n", p.name, p.name, p.name);
    buf_printf(b, "      %s = %s / sum(%s, over = -2, keep = true)\n    }\n", p.name, p.name,
               p.name);
    return p;
}

/* [.., m, w] of what the sublayer reads */
static Piece read_slots(Text *t, const char *z)
{
    Piece h = fresh(t, "h"), a = fresh(t, "a");
    Buf *b = &t->b;
    const char *of = pick(t, 3) ? "H" : z;
    switch (pick(t, 5)) {
    case 0: buf_printf(b, "    %s = first(%s, %d, axis = -2)\n", h.name, of, t->m); break;
    case 1: { /* one slot and a mixture of all */
        Piece c = coefficient(t, z, t->m, false);
        buf_printf(b, "    %s = first(H, %d, axis = -2) + %s.T @ %s\n", h.name, t->m, c.name,
                   of);
        break;
    }
    case 2: { /* each number gated by itself */
        Piece c = coefficient(t, z, t->m, false);
        buf_printf(b, "    %s = %s.T @ %s\n", a.name, c.name, of);
        buf_printf(b, "    %s = %s * sigmoid(%s)\n", h.name, a.name, a.name);
        break;
    }
    default: {
        Piece c = coefficient(t, z, t->m, false);
        buf_printf(b, "    %s = %s.T @ %s\n", h.name, c.name, of);
    }
    }
    return h;
}

/* [.., n, w] of what the state keeps */
static Piece carry(Text *t, const char *z)
{
    Piece r = fresh(t, "r"), g = fresh(t, "g");
    Buf *b = &t->b;
    switch (pick(t, 7)) {
    case 0: buf_printf(b, "    %s = H\n", r.name); break;
    case 1: { /* a gate of each slot */
        Piece c = coefficient(t, z, 1, false);
        buf_printf(b, "    %s = sigmoid(%s) * H\n", r.name, c.name);
        break;
    }
    case 2: /* a gate of each number */
        buf_printf(b, "    param %s : [%d, %d] = normal(std = 0.5)\n", g.name, t->n, t->w);
        buf_printf(b, "    %s = sigmoid(%s + %s) * H\n", r.name, g.name, z);
        break;
    case 3: /* slots change places */
        if (t->n > 1) {
            buf_printf(b,
                       "    %s = 0.5 * H + 0.5 * concat(rest(H, 1, axis = -2), first(H, 1, "
                       "axis = -2), axis = -2)\n",
                       r.name);
            break;
        } /* fall through */
    default: {
        Piece c = coefficient(t, z, t->n, true);
        buf_printf(b, "    %s = %s.T @ H\n", r.name, c.name);
    }
    }
    return r;
}

/* [.., n, w] of what the sublayer's result y [.., m, w] adds */
static Piece write_slots(Text *t, const char *z, const char *h)
{
    Piece o = fresh(t, "o"), y = fresh(t, "y"), q = fresh(t, "q");
    Buf *b = &t->b;
    buf_printf(b, "    %s = reshape(f(reshape(%s, [.., %d])), [.., %d, %d])\n", y.name, h,
               t->m * t->w, t->m, t->w);
    switch (pick(t, 6)) {
    case 0: /* normalised once more */ y = normalised(t, y.name, t->m); break;
    case 1: /* gated by what was read */
        buf_printf(b, "    %s = %s * sigmoid(mean(%s * %s, over = -1, keep = true))\n", q.name,
                   y.name, y.name, h);
        y = q;
        break;
    case 2: /* the difference to what was read */
        buf_printf(b, "    %s = %s - 0.5 * %s\n", q.name, y.name, h);
        y = q;
        break;
    default: break;
    }
    if (pick(t, 5) == 0 && t->n > t->m)
        buf_printf(b, "    %s = concat(%s, 0.3 * rest(H, %d, axis = -2), axis = -2)\n", o.name,
                   y.name, t->m);
    else {
        Piece c = coefficient(t, z, t->m, false);
        buf_printf(b, "    %s = %s @ %s\n", o.name, c.name, y.name);
    }
    return o;
}

static void step_body(Text *t)
{
    Buf *b = &t->b;
    Piece z = normalised(t, "H", t->n);
    Piece h = read_slots(t, z.name);
    if (pick(t, 2)) /* coefficients of what is written may come from another norm */
        z = normalised(t, "H", t->n);
    Piece r = carry(t, z.name), o = write_slots(t, z.name, h.name);
    switch (pick(t, 4)) {
    case 0: buf_printf(b, "    return clamp(%s + %s, -8, 8)\n", o.name, r.name); break;
    case 1: { /* how much is written back */
        Piece c = coefficient(t, z.name, 1, false);
        buf_printf(b, "    return %s + sigmoid(%s) * (%s - %s)\n", r.name, c.name, o.name,
                   r.name);
        break;
    }
    default: buf_printf(b, "    return %s + %s\n", o.name, r.name);
    }
}

/* ---- the file ---- */

static const char *file_text(Arena *arena, int seed)
{
    static const int widths[] = {33, 36, 40, 48, 52};
    Text t = {.b = buf_new(arena), .d = {(uint64_t)seed * 104729 + 71}};
    Buf *b = &t.b;
    dice(&t.d, 2);
    t.n = 1 + pick(&t, 6);
    t.m = 1 + pick(&t, t.n < 3 ? t.n : 3);
    t.w = widths[pick(&t, COUNT_OF(widths))];
    int D = t.m * t.w, close = pick(&t, 3);
    buf_puts(b, "edition = 1\nimport \"std/transformer\"\n\nblock mixed() {\n");
    buf_printf(
        b, "  block open()(e: [.., E]) -> [.., %d, %d] { return reshape(e, [.., %d, %d]) }\n",
        t.n, t.w, t.n, t.w);
    buf_printf(b, "  block step(k: int)(H: [.., %d, %d], f: block) -> [.., %d, %d] {\n", t.n,
               t.w, t.n, t.w);
    step_body(&t);
    buf_puts(b, "  }\n");
    static const char *const closes[] = {"reshape(H, [.., %d])", "sum(H, over = -2)",
                                         "mean(H, over = -2)"};
    buf_printf(b, "  block close()(H: [.., %d, %d]) -> [.., _] { return ", t.n, t.w);
    buf_printf(b, closes[close], t.n * t.w);
    buf_puts(b, " }\n}\n\n");
    buf_printf(
        b, "model small {\n  context = 8, width = %d, mask = causal, connection = mixed()\n",
        D);
    buf_puts(b, "  pre_norm = rms_norm(eps = 1e-5), init = normal(std = 0.2), out_init = "
                "normal(std = 0.2)\n");
    buf_printf(b, "  embed tokens { vocab = 37, width = %d }\n", t.n * t.w);
    buf_puts(b, "  attention { heads = 2, head_dim = 20, position = rope(base = 100) }\n");
    buf_puts(b, "  ffn one { hidden = 40, activation = silu, gated = true }\n");
    buf_puts(b, "  ffn two { hidden = 40, activation = silu, gated = true }\n");
    buf_puts(b, "  head lm { norm = rms_norm(eps = 1e-5) }\n}\n\n");
    buf_puts(b, "train {\n  data = text_file(\"none.txt\"), tokenizer = chars(), batch = 4 "
                "seqs, length = 10 steps\n"
                "  seed = 1, precision = fp32\n"
                "  optimizer sgd { lr = 1e-2, momentum = 0, weight_decay = 0 }\n}\n");
    return b->s;
}

/* ---- what must hold ---- */

typedef struct Case {
    int seed;
    const char *text;
    Unit *unit;
    const Graph *g;
    Plan *plan;
} Case;

typedef struct Run {
    int from, count, bad, now;
    Case *of;
    Host *host;
    double worst;       /* difference from the reference, of what is allowed */
    size_t backward[8]; /* boundaries by their number of backward kernels */
} Run;

enum { SEQUENCES = 2, POSITIONS = 7 };

static const BoundaryWeights between[] = {
    {"attention.o_proj.W", {"ffn.one.up.W", "ffn.one.gate.W"}},
    {"ffn.one.down.W", {"ffn.two.up.W", "ffn.two.gate.W"}},
    {"ffn.two.down.W", {"head.lm.W"}},
};

static void failed(Run *run, const Case *c, const char *what)
{
    if (run->bad++ < 5)
        printf("%s", c->text);
    printf("FAIL connection %d: %s\n", c->seed, what);
}

static void check_forward(Run *run, Ctx *ctx, const Case *c, const Plan *p, const char *program)
{
    for (size_t i = 0; i < COUNT_OF(between); i++) {
        Boundary b = boundary_forward(ctx->program, p, &between[i]);
        if (b.rows == 1 && b.n == 1)
            continue;
        char what[160];
        snprintf(what, sizeof what,
                 "%zu kernels and %zu of a library behind %s in the %s program", b.rows,
                 b.library, between[i].end, program);
        failed(run, c, what);
        boundary_print(p, &b);
    }
}

static void prepare(Ctx *ctx, Run *run, Case *c, int seed)
{
    *c = (Case){.seed = seed, .text = file_text(ctx->program, seed)};
    c->unit = load_text(ctx, c->text, NULL);
    PlanOptions how = {.B = SEQUENCES, .T = POSITIONS};
    Graph *g = step_gradient(c->unit->model, c->unit->train, true, ctx->program);
    c->g = g;
    c->plan = plan_build(ctx, ctx->program, graph_simplify(g, ctx->program), &how);
    plan_verify(ctx, c->plan);
    check_forward(run, ctx, c, c->plan, "training");
    for (size_t i = 0; i + 1 < COUNT_OF(between); i++) {
        Boundary b = boundary_backward(ctx->program, c->plan, &between[i]);
        run->backward[b.rows < COUNT_OF(run->backward) ? b.rows
                                                       : COUNT_OF(run->backward) - 1]++;
    }
    Graph *predict = graph_simplify(step_predict(c->unit->model, ctx->program), ctx->program);
    Plan *p = plan_build(ctx, ctx->program, predict, &how);
    plan_verify(ctx, p);
    check_forward(run, ctx, c, p, "prediction");
    host_add(run->host, c->plan);
}

static double largest(const Tensor *t)
{
    double most = 0;
    for (int64_t i = 0; i < t->size; i++)
        most = fmax(most, fabs(t->real[i]));
    return most;
}

/* The worst difference relative to the largest number of the tensor, or to a tenth of `scale`.
 */
static double distance(const Tensor *got, const Tensor *want, double scale)
{
    double size = fmax(largest(want), scale / 10), worst = 0;
    for (int64_t i = 0; i < want->size; i++) {
        double e = fabs(got->real[i] - want->real[i]);
        worst = isfinite(e) ? fmax(worst, e) : INFINITY;
    }
    return size > 0 ? worst / size : worst;
}

/* Rounding the parameters alone moves results: FACTOR times the most that it moves any of them,
 * for the many roundings in between, and FLOOR is how far one may be off. */
static const double FLOOR = 3e-5, FACTOR = 40, ROUNDING = 6e-8;

typedef struct Reference {
    RefBinding *bind;
    Tensor **result;
} Reference;

static Reference reference(Arena *arena, const Case *c, double rounding)
{
    const Graph *g = c->g;
    double vars[HV_COUNT] = {0};
    Reference r = {bind_all(arena, g, c->unit->model, SEQUENCES, POSITIONS, 0.3),
                   NEW_ARRAY(arena, Tensor *, g->out.n + 1)};
    uint64_t state = 5;
    for (size_t i = 0; i < g->ext.n && rounding > 0; i++)
        for (int64_t k = 0; r.bind[i].kind == EXT_PARAM && k < r.bind[i].tensor->size; k++)
            r.bind[i].tensor->real[k] *= 1 + rounding * noise(&state);
    RefRun how = {.B = SEQUENCES,
                  .T = POSITIONS,
                  .seed = 1,
                  .host_vars = vars,
                  .bind = r.bind,
                  .n_bind = g->ext.n};
    ref_evaluate(g, arena, &how, r.result);
    return r;
}

typedef struct Worst {
    double off, moved;
    const char *name;
    size_t compared;
} Worst;

static void see(Worst *w, const char *name, const Tensor *got, const Tensor *want,
                const Tensor *moved, double scale)
{
    double off = distance(got, want, scale);
    w->moved = fmax(w->moved, distance(moved, want, scale));
    w->compared++;
    if (!(off <= w->off)) {
        w->off = off;
        w->name = name;
    }
}

static void compare(Ctx *ctx, Run *run, const Case *c)
{
    const Graph *g = c->g;
    Arena *arena = ctx->program;
    RefBinding *bind = bind_all(arena, g, c->unit->model, SEQUENCES, POSITIONS, 0.3);
    double vars[HV_COUNT] = {0}, scale = 0;
    Tensor **results = NEW_ARRAY(arena, Tensor *, g->out.n + 1);
    Tensor **stored = NEW_ARRAY(arena, Tensor *, g->ext.n + 1);
    HostRun how = {.B = SEQUENCES,
                   .T = POSITIONS,
                   .seed = 1,
                   .host_vars = vars,
                   .bind = bind,
                   .n_bind = g->ext.n,
                   .memory = HOST_ARENA};
    host_run(run->host, c->plan, &how, arena, results, stored);
    Reference want = reference(arena, c, 0), moved = reference(arena, c, ROUNDING);
    Worst worst = {0};
    for (size_t i = 0; i < g->ext.n; i++)
        if (bind[i].kind == EXT_GRAD)
            scale = fmax(scale, largest(want.bind[i].tensor));
    for (size_t i = 0, k = 0; i < g->out.n; i++)
        if (g->out.v[i].ext < 0)
            see(&worst, g->out.v[i].name, results[k++], want.result[i], moved.result[i], 0);
    for (size_t i = 0; i < g->ext.n; i++)
        if (bind[i].kind == EXT_GRAD && stored[i])
            see(&worst, bind[i].name, stored[i], want.bind[i].tensor, moved.bind[i].tensor,
                scale);
    double share = worst.off / (FLOOR + FACTOR * worst.moved);
    run->worst = fmax(run->worst, share);
    if (share < 1 && worst.moved < 1e-4 && worst.compared > 15 && scale > 1e-6)
        return;
    char what[200];
    snprintf(what, sizeof what,
             "off by %.1e at %s, %.1f of the bound, %zu tensors, gradients up to %.1e",
             worst.off, worst.name ? worst.name : "nothing", share, worst.compared, scale);
    failed(run, c, what);
}

static void check_all(Ctx *ctx, void *arg)
{
    Run *run = arg;
    run->of = NEW_ARRAY(ctx->program, Case, (size_t)run->count + 1);
    for (run->now = 0; run->now < run->count; run->now++)
        prepare(ctx, run, &run->of[run->now], run->from + run->now);
    host_compile(run->host);
    for (run->now = 0; run->now < run->count; run->now++)
        compare(ctx, run, &run->of[run->now]);
}

int main(int argc, char **argv)
{
    setenv("VWN_TEST_CFLAGS", "-O0", 0); /* the texts are tested here; other tests optimise */
    Ctx *ctx = ctx_new(NULL);
    Run run = {.from = argc > 1 ? atoi(argv[1]) : 0,
               .count = argc > 2 ? atoi(argv[2]) : 50,
               .host = host_new(NULL)};
    if (argc > 3) { /* only the text */
        printf("%s", file_text(ctx->program, run.from));
        return 0;
    }
    if (!guarded(ctx, check_all, &run)) {
        if (run.of && run.of[run.now].text)
            printf("%s", run.of[run.now].text);
        printf("FAIL connection %d\n", run.from + run.now);
        run.bad++;
    }
    printf("%d connections, %d failures, %.2f of the bound; boundaries by backward kernels:",
           run.count, run.bad, run.worst);
    for (size_t i = 0; i < COUNT_OF(run.backward); i++)
        printf(" %zu", run.backward[i]);
    printf("\n");
    host_free(run.host);
    ctx_free(ctx);
    return run.bad != 0;
}
