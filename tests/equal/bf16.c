/* bf16.c - compiled products of bf16 operands against the evaluator that rounds them too.
 *
 * In:  models of models.h, wide enough for bf16, with randomised parameters; forward and backward.
 * Out: `N passed, N failed`; 77 where the processor or the library has no such products.
 * A float32 value beside the middle of two bf16 ones may be rounded the other way than its
 * float64 twin, so the bound is wider than that of float32; that it means something is seen from
 * the same program in float32, which lies farther off by a factor.
 * When: quick, optimised.
 */
#include "runtime/cpu/backend_cpu.h"
#include "support/models.h"

#include "runtime/exec/exec.h"

enum { B = 4, T = 24 };
static const double BOUND = 6e-3, FACTOR = 10;

typedef struct Subject {
    const char *name;
    const char *set[6];
    int products; /* of bf16 operands, at least */
} Subject;
#define WIDE "D=64", "sub=ffn(hidden = 72, activation = silu, gated = true)"
static const Subject subjects[] = {
    {"gpt", {WIDE, NULL}, 30},
    {"gelu, layer norm",
     {"D=80", "norm=layer_norm(eps = 1e-5)", "sub=ffn(hidden = 67, activation = gelu, bias = true)", NULL},
     24},
    {"ghc (2,3)", {WIDE, "wide=96", "conn=ghc(m = 2, n = 3, dynamic = true, reduce = linear(out = D))", NULL}, 30},
    {"moe",
     {"D=64",
      "sub=moe(experts = 3, active = 2, hidden = 72, activation = silu, "
      "scores = softmax, normalize = true, balance = 0.01, shared = 1)",
      NULL},
     20},
};

typedef struct Outcome {
    double **gradient; /* by ext */
    double loss;
    int products, all; /* of bf16 operands; all */
    int experts, all_experts;
} Outcome;

typedef struct Case {
    const Subject *s;
    double worst, plain; /* distance of the bf16 and of the float32 program */
    const char *at;
    int products, plain_products;
    bool experts; /* all of them, in the one program, and none in the other */
    bool same_bits, skipped;
    const char *why;
} Case;

static void fill(Ctx *ctx, Store *s, const Graph *g, RefBinding *bind)
{
    for (size_t i = 0; i < g->ext.n; i++) {
        StoreEntry *e = store_find(s, bind[i].kind, bind[i].name);
        const Tensor *t = bind[i].tensor;
        Status st = !e                   ? ST_BUG
                    : e->dtype == DT_INT ? store_put_i64(s, e, 0, t->size, t->integer)
                                         : store_put_f64(s, e, 0, t->size, t->real);
        if (st != ST_OK)
            vwn_bug(ctx, "store of %s: %s", bind[i].name, store_why(s));
    }
}

static void run(Ctx *ctx, Backend *b, const Graph *g, RefBinding *bind, bool bf16, Outcome *out)
{
    Store *s = store_new(ctx, b);
    Program *p;
    BuildReport report;
    ProgramOptions how = {.name = "train", .B = B, .T = T, .half = bf16 ? HALF_BF16 : HALF_NONE};
    if (program_build(s, g, &how, &p, &report) != ST_OK)
        vwn_bug(ctx, "build: %s", report.why);
    fill(ctx, s, g, bind);
    double vars[HV_COUNT] = {0};
    if (program_run(p, &(RunArgs){.host_vars = vars, .seed = 1}) != ST_OK ||
        program_scalar(p, name_str(ctx, "loss"), &out->loss) != ST_OK)
        vwn_bug(ctx, "run: %s", program_why(p));
    out->gradient = NEW_ARRAY(ctx->program, double *, g->ext.n + 1);
    for (size_t i = 0; i < g->ext.n; i++) {
        StoreEntry *e = store_find(s, g->ext.v[i].kind, g->ext.v[i].name);
        out->gradient[i] = NEW_ARRAY(ctx->program, double, e->elements + 1);
        if (g->ext.v[i].kind == EXT_GRAD)
            store_get_f64(s, e, 0, e->elements, out->gradient[i]);
    }
    const Plan *plan = program_plan(p);
    for (size_t i = 0; plan && i < plan->n_launch; i++) {
        const Launch *l = &plan->launch[i];
        bool product = l->kind == LAUNCH_MATMUL, expert = l->kind == LAUNCH_EXPERT;
        out->all += product;
        out->products += product && l->matmul.half == HALF_BF16;
        out->experts += expert && l->expert.half == HALF_BF16;
        out->all_experts += expert;
    }
    program_free(p);
    store_free(s);
}

/* The largest difference of the loss or of a gradient, relative to its tensor's largest entry, or
 * to a tenth of the model's. */
static double distance(const Graph *g, const Outcome *x, const Outcome *want, RefBinding *bind, const char **at)
{
    double largest = 0, all = fabs(x->loss - want->loss) / fabs(want->loss);
    *at = "loss";
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < g->ext.n; i++) {
            double size = largest / 10, worst = 0;
            for (int64_t k = 0; g->ext.v[i].kind == EXT_GRAD && k < bind[i].tensor->size; k++) {
                double y = want->gradient[i][k], d = fabs(x->gradient[i][k] - y);
                size = fmax(size, fabs(y));
                worst = isnan(d) ? INFINITY : fmax(worst, d);
            }
            if (pass == 0)
                largest = fmax(largest, size);
            else if (worst / size > all)
                all = worst / size, *at = g->ext.v[i].name;
        }
    return all;
}

static Backend *open_cpu(Ctx *ctx, int threads)
{
    char why[512];
    Backend *b;
    if (backend_cpu_open(ctx, &(BackendOptions){.threads = threads}, &b, why) != ST_OK)
        vwn_bug(ctx, "no backend: %s", why);
    return b;
}

static void compare(Ctx *ctx, void *arg)
{
    Case *c = arg;
    Unit *u = load_text(ctx, model_text, c->s->set);
    Graph *g = step_gradient(u->model, u->train, true, ctx->program);
    RefBinding *bind = bind_all(ctx->program, g, u->model, B, T, 0.1);
    Outcome one = {0}, four = {0}, plain = {0}, want = {0};
    Backend *b = open_cpu(ctx, 1);
    c->skipped = !b->bf16;
    c->why = arena_copy(ctx->program, b->no_bf16, sizeof b->no_bf16);
    if (!c->skipped) {
        run(ctx, b, g, bind, true, &one);
        run(ctx, b, g, bind, false, &plain);
    }
    b->ops->close(b);
    if (c->skipped)
        return;
    b = open_cpu(ctx, 4);
    run(ctx, b, g, bind, true, &four);
    b->ops->close(b);
    run(ctx, NULL, g, bind, true, &want);
    const char *unused;
    c->worst = distance(g, &one, &want, bind, &c->at);
    c->plain = distance(g, &plain, &want, bind, &unused);
    c->products = one.products;
    c->plain_products = plain.products;
    c->experts = one.experts == one.all_experts && plain.experts == 0 && plain.all_experts == one.all_experts;
    c->same_bits = one.loss == four.loss;
    for (size_t i = 0; i < g->ext.n; i++)
        c->same_bits &= g->ext.v[i].kind != EXT_GRAD ||
                        !memcmp(one.gradient[i], four.gradient[i], (size_t)bind[i].tensor->size * sizeof(double));
}

int main(void)
{
    int passed = 0, failed = 0;
    for (size_t i = 0; i < COUNT_OF(subjects); i++) {
        Ctx *ctx = ctx_new(NULL);
        Case c = {.s = &subjects[i], .worst = INFINITY, .at = ""};
        guarded(ctx, compare, &c);
        if (c.skipped) {
            printf("skipped: %s\n", c.why);
            ctx_free(ctx);
            return 77;
        }
        bool ok = c.worst < BOUND && c.plain > FACTOR * c.worst && c.same_bits && c.products >= c.s->products &&
                  c.plain_products == 0 && c.experts;
        printf("%-18s %d products, worst %.1e at %s; in float32 %.1e%s%s\n", c.s->name, c.products, c.worst, c.at,
               c.plain, c.same_bits ? "" : ", threads differ", ok ? "" : "  FAILED");
        fflush(stdout);
        ok ? passed++ : failed++;
        ctx_free(ctx);
    }
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
