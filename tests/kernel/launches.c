/* launches.c - how many launches a training step of a device takes.
 *
 * In:  models of 24 layers; no GPU and no compiler for one.     Out: the counts; `N passed, N failed`.
 * The one idea: what a step costs a host, and a device between two kernels, is its number of launches; so that is what
 * is held, of each program of a step, beside the plan that makes them one by one. The arena hardly grows for it.
 * When: quick, slow. It counts what plans take; all tests of kernels see what makes plans.
 */
#include "support/models.h"
#include "support/harness.h"

#include "compiler/plan/plan.h"

static const char text[] =
    "edition = 1\n"
    "import \"std/transformer\"\n"
    "import \"std/connections\"\n"
    "let conn = residual()\n"
    "let D = 1024\n"
    "let L = 24\n"
    "let wide = D\n"
    "model large {\n"
    "  context = 1024, width = D, mask = causal, connection = conn, pre_norm = rms_norm(eps = 1e-6)\n"
    "  init = normal(std = 0.02), out_init = normal(std = 0.002)\n"
    "  embed tokens { vocab = 50304, width = wide }\n"
    "  for layer in 1..L {\n"
    "    attention { heads = 16, position = rope(base = 10_000) }\n"
    "    ffn { hidden = 2816, activation = silu, gated = true }\n"
    "  }\n"
    "  head lm { norm = rms_norm(eps = 1e-6) }\n"
    "}\n"
    "train {\n"
    "  data = text_file(\"none.txt\"), tokenizer = chars(), batch = 16 seqs, micro_batch = 8 seqs\n"
    "  length = 10 steps, seed = 1\n"
    "  precision = mixed(compute = bf16, master = fp32), clip = 1\n"
    "  optimizer adamw { lr = 1e-2, betas = [0.9, 0.95], eps = 1e-8, weight_decay = 0.1 }\n"
    "}\n";

typedef struct Count {
    const char *const *set;
    const char *program;
    bool single;
    size_t launches, calls, products, added, copies, kernels;
    size_t casts; /* of weights, in each run, one by one */
    double arena;
} Count;

static const Graph *graph_of(Ctx *ctx, Unit *u, const char *program, const PlanLayout *layout)
{
    if (strcmp(program, "eval") == 0)
        return step_held_out(u->model, u->train, ctx->program);
    if (strcmp(program, "update") != 0)
        return step_gradient(u->model, u->train, program[0] == 't', ctx->program);
    Graph *g = step_update(u->model, u->train, ctx->program);
    if (layout)
        plan_write_copies(g, layout);
    return g;
}

/* A launch that reads nothing but weights and writes as many numbers in 16 bits. */
static bool is_cast(const Plan *p, const Launch *l)
{
    size_t reads = 0, writes = 0, others = 0;
    for (uint32_t k = 0; k < l->n_touched && l->kind == LAUNCH_KERNEL; k++) {
        const PlanBuffer *x = &p->buffer[l->buffer[k]];
        bool weight = x->ext >= 0 && p->ext[x->ext].ext.kind == EXT_PARAM;
        reads += weight && !l->writes[k];
        writes += l->writes[k] && x->half;
        others += l->writes[k] ? !x->half : !weight && l->buffer[k] != p->numbers;
    }
    return reads > 0 && reads == writes && !others;
}

static size_t casts_of(const Plan *p)
{
    size_t n = 0;
    for (size_t i = p->n_cast; i < p->n_launch; i++)
        n += !is_cast(p, &p->launch[i]) ? 0 : p->launch[i].items ? p->launch[i].items : 1;
    return n;
}

static void count_plan(Ctx *ctx, void *arg)
{
    Count *c = arg;
    Unit *u = load_text(ctx, text, c->set);
    const Graph *g = graph_of(ctx, u, c->program, NULL);
    PlanOptions how = {.B = u->train->micro_seqs,
                       .T = u->train->context,
                       .half = train_half(u->train),
                       .target = &target_gpu,
                       .single = c->single};
    const Plan *p = plan_build(ctx, ctx->program, plan_graph(g, ctx->program, &how), &how);
    plan_verify(ctx, p);
    for (size_t i = 0; i < p->n_launch; i++) {
        c->calls += p->launch[i].kind == LAUNCH_MATMUL;
        c->products += p->launch[i].kind == LAUNCH_MATMUL ? (size_t)p->launch[i].matmul.batch : 0;
        c->added += p->launch[i].kind == LAUNCH_MATMUL && p->launch[i].matmul.accumulate;
        c->copies += p->launch[i].kind == LAUNCH_COPY;
    }
    c->launches = p->n_launch;
    c->casts = casts_of(p);
    c->kernels = p->n_kernel;
    c->arena = (double)p->arena_bytes;
}

/* The programs of a run, which share copies of weights. */
typedef struct Shared {
    const char *const *set;
    size_t copies;                               /* of weights, that training wants */
    size_t casts[4], written, of_eval, calls[4]; /* in each run; by the update; that the evaluation has besides */
    bool apart;                                  /* launches that make copies do nothing else, and nothing else does */
} Shared;

static void count_shared(Ctx *ctx, void *arg)
{
    static const char *const programs[] = {"train", "accumulate", "update", "eval"};
    Shared *c = arg;
    Unit *u = load_text(ctx, text, c->set);
    PlanLayout layout;
    plan_layout_init(&layout, ctx->program);
    c->apart = true;
    for (size_t i = 0; i < COUNT_OF(programs); i++) {
        PlanOptions how = {.B = u->train->micro_seqs,
                           .T = u->train->context,
                           .half = train_half(u->train),
                           .target = &target_gpu,
                           .layout = &layout};
        const Graph *g = graph_of(ctx, u, programs[i], &layout);
        const Plan *p = plan_build(ctx, ctx->program, plan_graph(g, ctx->program, &how), &how);
        plan_verify(ctx, p);
        size_t held = 0;
        for (size_t k = 0; k < p->n_ext; k++)
            held += p->ext[k].ext.kind == EXT_COPY;
        for (size_t k = 0; k < p->n_launch; k++) {
            c->calls[i] += p->launch[k].kind == LAUNCH_MATMUL;
            c->apart = c->apart && (k >= p->n_cast || is_cast(p, &p->launch[k]));
        }
        c->casts[i] = casts_of(p);
        *(i == 2 ? &c->written : i == 3 ? &c->of_eval : &c->copies) = held;
        printf(
            "%-10s %4zu copies of weights, %2zu launches make them where they are not there; %2zu casts in each run, "
            "%3zu of %zu launches products; arena %.1f MiB\n",
            programs[i], held, p->n_cast, c->casts[i], c->calls[i], p->n_launch - p->n_cast,
            (double)p->arena_bytes / (1 << 20));
    }
}

static Count count(Harness *h, const char *what, const char *program, bool single, const char *const *set)
{
    Ctx *ctx = ctx_new(NULL);
    Count c = {.set = set, .program = program, .single = single};
    CHECK_CASE(h, guarded(ctx, count_plan, &c) && c.launches > 0, what);
    printf("%-6s %-10s %-11s %5zu launches: %4zu products in %3zu calls, %3zu copies; %3zu kernels; arena %.1f MiB\n",
           what, program, single ? "one by one" : "gathered", c.launches, c.products, c.calls, c.copies, c.kernels,
           c.arena / (1 << 20));
    ctx_free(ctx);
    return c;
}

/* ---- routers ---- */

static const char routed[] =
    "edition = 1\nimport \"std/transformer\"\nimport \"std/connections\"\n"
    "let E = 16\n"
    "model small {\n"
    "  context = 16, width = 192, mask = causal, connection = residual()\n"
    "  pre_norm = rms_norm(eps = 1e-6), init = normal(std = 0.02), out_init = normal(std = 0.02)\n"
    "  embed tokens { vocab = 256 }\n"
    "  moe { experts = E, active = 3, hidden = 64, activation = silu, scores = softmax, normalize = true, balance = "
    "0.01 }\n"
    "  head lm { norm = rms_norm(eps = 1e-6) }\n"
    "}\n"
    "train {\n"
    "  data = text_file(\"none.txt\"), tokenizer = chars(), batch = 4 seqs, length = 10 steps, seed = 1\n"
    "  precision = mixed(compute = bf16, master = fp32)\n"
    "  optimizer sgd { lr = 1e-2, momentum = 0, weight_decay = 0 }\n"
    "}\n";

typedef struct Routed {
    const Target *target;
    const char *experts;
    int64_t n;
    size_t of_rows; /* products of all rows by a router's matrix, or by it turned */
} Routed;

static void count_routed(Ctx *ctx, void *arg)
{
    Routed *c = arg;
    const char *set[] = {c->experts, NULL};
    Unit *u = load_text(ctx, routed, set);
    PlanOptions how = {.B = 4, .T = 16, .target = c->target, .half = train_half(u->train)};
    const Plan *p = plan_build(
        ctx, ctx->program, plan_graph(step_gradient(u->model, u->train, true, ctx->program), ctx->program, &how), &how);
    for (size_t i = 0; i < p->n_launch; i++) {
        const PlanMatmul *m = &p->launch[i].matmul;
        c->of_rows += p->launch[i].kind == LAUNCH_MATMUL && m->m == how.B * how.T && (m->n == c->n || m->k == c->n);
    }
}

/* A thread of a device has a sum of 16 terms by itself, so these stay in kernels; those of 24 are products of the library, forward and
 * backward, as a warp would share each sum with most of its threads idle. A CPU has both in kernels. */
static void test_routers(Harness *h)
{
    Routed c[] = {{&target_gpu, "E=16", 16, 0},
                  {&target_gpu, "E=24", 24, 0},
                  {&target_cpu, "E=16", 16, 0},
                  {&target_cpu, "E=24", 24, 0}};
    for (size_t i = 0; i < COUNT_OF(c); i++) {
        Ctx *ctx = ctx_new(NULL);
        CHECK(h, guarded(ctx, count_routed, &c[i]));
        CHECK_CASE(h, c[i].of_rows == (i == 1 ? 2 : 0), c[i].experts);
        printf("routers, %s of a %s: %zu products of the library\n", c[i].experts, c[i].target->name, c[i].of_rows);
        ctx_free(ctx);
    }
}

int main(void)
{
    Harness h = {0};
    static const char *const gpt[] = {NULL};
    static const char *const vwn[] = {"conn=ghc(m = 2, n = 3, dynamic = true, reduce = linear(out = 1024))",
                                      "wide=1536", NULL};
    static const char *const mhc[] = {"conn=mhc(n = 4)", "D=2048", "L=3", NULL};
    static const struct {
        const char *what, *program;
        const char *const *set;
        size_t most, calls, added;
    } held[] = {
        {"GPT", "train", gpt, 700, 420, 0},
        {"GPT", "accumulate", gpt, 700, 420, 169},
        {"GPT", "update", gpt, 20, 0, 0},
        {"GPT", "eval", gpt, 230, 97, 0},
        {"(2,3)", "train", vwn, 700, 420, 0},
        {"(2,3)", "update", vwn, 20, 0, 0},
        {"(2,3)", "eval", vwn, 230, 98, 0},
        {"(2,3)", "accumulate", vwn, 700, 420, 170},
        /* The gradient of a connection is one kernel: the steps of what a thread holds are one operation. */
        {"mHC 4", "train", mhc, 130, 72, 0},
    };
    for (size_t i = 0; i < COUNT_OF(held); i++) {
        Count one = count(&h, held[i].what, held[i].program, true, held[i].set);
        Count now = count(&h, held[i].what, held[i].program, false, held[i].set);
        CHECK(&h, now.launches <= held[i].most && now.products == one.products && now.copies == one.copies);
        CHECK(&h, now.calls <= held[i].calls && one.calls == one.products);
        CHECK(&h, now.added == held[i].added); /* every matrix: layers have seven, the heads one or two */
        CHECK(&h, now.arena <= one.arena * (1 + 1.0 / 64) + (8 << 20));
    }
    for (int i = 0; i < 2; i++) {
        Ctx *ctx = ctx_new(NULL);
        Shared c = {.set = i ? vwn : gpt};
        CHECK(&h, guarded(ctx, count_shared, &c) && c.apart);
        Count alone = count(&h, "casts", "train", false, c.set);
        CHECK(&h, alone.casts > 0 && c.copies >= alone.casts);
        CHECK(&h, c.casts[0] == 0 && c.casts[1] == 0 &&
                      c.casts[3] == 0); /* and no product is apart from its neighbours for it: */
        CHECK(&h, c.written == c.copies && c.of_eval == c.copies);
        CHECK(&h, c.calls[0] + 48 <=
                      alone.calls);          /* in each layer the gradients of two pairs of weights are a batch each, */
        CHECK(&h, c.calls[1] == c.calls[0]); /* which the program that adds to them finds as they lie */
        CHECK(&h, c.calls[3] <= 122);        /* values lie apart from queries and keys, as training wants them */
        ctx_free(ctx);
    }
    /* in float32 products read weights themselves, which lie so that queries, keys and values are a batch as well */
    static const char *const exact[] = {"train.precision=fp32", NULL};
    Ctx *ctx = ctx_new(NULL);
    Shared c = {.set = exact};
    CHECK(&h, guarded(ctx, count_shared, &c) && !c.copies);
    Count alone = count(&h, "fp32", "train", false, exact);
    CHECK(&h, c.calls[0] + 6 * 24 <= alone.calls && c.calls[1] == c.calls[0]); /* six of each layer's 21 */
    ctx_free(ctx);
    test_routers(&h);
    return harness_end(&h);
}
