/* launches.c - how many launches a training step of a device takes.
 *
 * In:  models of 24 layers; no GPU and no compiler for one.     Out: the counts; `N passed, N failed`.
 * The one idea: what a step costs a host, and a device between two kernels, is its number of launches; so that is what
 * is held, of each program of a step, beside the plan that makes them one by one. The arena hardly grows for it.
 */
#include "models.h"
#include "runtime/harness.h"

#include "compiler/plan.h"

static const char text[] =
    "edition = 1\n"
    "import \"std/transformer\"\n"
    "import \"std/connections\"\n"
    "let conn = residual()\n"
    "let wide = 1024\n"
    "model large {\n"
    "  context = 1024, width = 1024, mask = causal, connection = conn, pre_norm = rms_norm(eps = 1e-6)\n"
    "  init = normal(std = 0.02), out_init = normal(std = 0.002)\n"
    "  embed tokens { vocab = 50304, width = wide }\n"
    "  for layer in 1..24 {\n"
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
    double arena;
} Count;

static void count_plan(Ctx *ctx, void *arg)
{
    Count *c = arg;
    Unit *u = load_text(ctx, text, c->set);
    const Graph *g = strcmp(c->program, "update") == 0 ? step_update(u->model, u->train, ctx->program)
                     : strcmp(c->program, "eval") == 0 ? step_held_out(u->model, u->train, ctx->program)
                                                       : step_gradient(u->model, u->train, c->program[0] == 't', ctx->program);
    PlanOptions how = {.B = u->train->micro_seqs, .T = u->train->context, .half = train_half(u->train), .cuda = true, .single = c->single};
    const Plan *p = plan_build(ctx, ctx->program, plan_graph(g, ctx->program, &how), &how);
    plan_verify(ctx, p);
    for (size_t i = 0; i < p->n_launch; i++) {
        c->calls += p->launch[i].kind == LAUNCH_MATMUL;
        c->products += p->launch[i].kind == LAUNCH_MATMUL ? (size_t)p->launch[i].matmul.batch : 0;
        c->added += p->launch[i].kind == LAUNCH_MATMUL && p->launch[i].matmul.accumulate;
        c->copies += p->launch[i].kind == LAUNCH_COPY;
    }
    c->launches = p->n_launch;
    c->kernels = p->n_kernel;
    c->arena = (double)p->arena_bytes;
}

static Count count(Harness *h, const char *what, const char *program, bool single, const char *const *set)
{
    Ctx *ctx = ctx_new(NULL);
    Count c = {.set = set, .program = program, .single = single};
    CHECK_CASE(h, guarded(ctx, count_plan, &c) && c.launches > 0, what);
    printf("%-6s %-10s %-11s %5zu launches: %4zu products in %3zu calls, %3zu copies; %3zu kernels; arena %.1f MiB\n", what, program,
           single ? "one by one" : "gathered", c.launches, c.products, c.calls, c.copies, c.kernels, c.arena / (1 << 20));
    ctx_free(ctx);
    return c;
}

int main(void)
{
    Harness h = {0};
    static const char *const gpt[] = {NULL};
    static const char *const vwn[] = {"conn=ghc(m = 2, n = 3, dynamic = true, reduce = linear(out = 1024))", "wide=1536", NULL};
    static const struct {
        const char *what, *program;
        const char *const *set;
        size_t most, calls, added;
    } held[] = {
        {"GPT", "train", gpt, 700, 420, 0},    {"GPT", "accumulate", gpt, 700, 420, 169},   {"GPT", "update", gpt, 20, 0, 0},
        {"GPT", "eval", gpt, 230, 97, 0},      {"(2,3)", "train", vwn, 700, 420, 0},        {"(2,3)", "update", vwn, 20, 0, 0},
        {"(2,3)", "eval", vwn, 230, 98, 0},    {"(2,3)", "accumulate", vwn, 700, 420, 170},
    };
    for (size_t i = 0; i < COUNT_OF(held); i++) {
        Count one = count(&h, held[i].what, held[i].program, true, held[i].set);
        Count now = count(&h, held[i].what, held[i].program, false, held[i].set);
        CHECK(&h, now.launches <= held[i].most && now.products == one.products && now.copies == one.copies);
        CHECK(&h, now.calls <= held[i].calls && one.calls == one.products);
        CHECK(&h, now.added == held[i].added); /* every matrix: layers have seven, the heads one or two */
        CHECK(&h, now.arena <= one.arena * (1 + 1.0 / 64) + (8 << 20));
    }
    return harness_end(&h);
}
