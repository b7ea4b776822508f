/* sizes.c - every example and every model of models/ is planned at sizes that other tests do not have.
 *
 * In:  the examples, made small but for a width of 256 or 384, and all of models/; contexts of 128, 160, 1,024 and
 *      2,048 (images have their own), three sequences, products in bf16, for a CPU and for a GPU.
 * Out: `N passed, N failed`. The training step has a plan: every kernel of it is proved while it is lowered
 *      (kernel_check()), and the plan itself (plan_verify()).
 * The one idea: what is lowered depends on how long a loop is, and at some sizes on more than that: whether a bound is
 * known, which loops are split, how much is written out. To plan costs little more for a large size than for a small one.
 *
 * Each family is drawn with both targets and every context over the list; VWN_TEST_WHOLE=1 takes every pair of these.
 */
#include "support/examples.h"

#include "compiler/plan/plan.h"

static const int contexts[] = {128, 160, 1024, 2048};
static const Target *const targets[] = {&target_cpu, &target_gpu};
enum { SIZES = COUNT_OF(contexts) * COUNT_OF(targets), CASES = COUNT_OF(sources) * SIZES, SEQUENCES = 3, SET_MAX = 16 };

typedef struct Case {
    const Source *source;
    int context, width; /* of mechanisms */
    const Target *target;
    size_t kernels;
    double operations; /* of all kernels in a step */
} Case;

/* With another number behind the first of these words, if there is one. */
static const char *with_number(Ctx *ctx, const char *text, const char *words, int number)
{
    const char *at = strstr(text, words);
    at = at ? at + strlen(words) : text;
    at += strspn(at, " =");
    size_t digits = strspn(at, "0123456789_");
    return digits && at > text ? arena_printf(ctx->program, "%.*s%d%s", (int)(at - text), text, number, at + digits)
                               : text;
}

/* Contexts of images follow from these. */
static const char *with_context(Ctx *ctx, const char *text, int context)
{
    if (strstr(text, "head classify") || strstr(text, "head noise"))
        return text;
    return with_number(ctx, with_number(ctx, text, "  context", context), "embed position { size", context);
}

/* Widths become 256, or 384 where three heads share them, and what is as wide and wider follows. */
static const char *wider(Ctx *ctx, const char *const *set, size_t at)
{
    int64_t width = 0;
    for (size_t i = 0; set[i]; i++)
        if (strncmp(set[i], "D=", 2) == 0 || strncmp(set[i], "d=", 2) == 0)
            width = atoll(set[i] + 2);
    const char *value = strchr(set[at], '=') + 1;
    int64_t number = atoll(value) * (width % 3 ? 256 : 384);
    return width && atoll(value) >= width
               ? arena_printf(ctx->program, "%.*s%lld", (int)(value - set[at]), set[at], (long long)(number / width))
               : set[at];
}

/* They are small as they stand, and say what a longer context has more of. */
static bool is_mechanism(const Source *s) { return s->file && strncmp(s->file, MECHANISMS, strlen(MECHANISMS)) == 0; }

static bool is_recurrence(const Source *s)
{
    return is_mechanism(s) && (strstr(s->file, "kda") || strstr(s->file, "ttt"));
}

static void plan_case(Ctx *ctx, void *arg)
{
    Case *c = arg;
    const char *text = with_context(ctx, example_text(ctx, c->source), c->context), *set[SET_MAX] = {NULL};
    size_t n = 0;
    for (size_t i = 0; c->source->v.set[i] && !is_mechanism(c->source); i++)
        set[n++] = wider(ctx, c->source->v.set, i);
    if (is_mechanism(c->source))
        set[n++] = arena_printf(ctx->program, "D=%d", c->width);
    set[n++] = "train.precision=mixed(compute = bf16, master = fp32)";
    set[n++] = "train.batch=768 seqs";
    Unit *u = load_text(ctx, text, set);
    const Graph *g = step_gradient(u->model, u->train, true, ctx->program);
    PlanOptions how = {.B = SEQUENCES, .T = u->train->context, .half = HALF_BF16, .target = c->target};
    const Plan *p = plan_build(ctx, ctx->program, plan_graph(g, ctx->program, &how), &how);
    plan_verify(ctx, p);
    c->kernels = p->n_kernel;
    for (size_t i = 0; i < p->n_launch; i++)
        c->operations += p->launch[i].work.lane + p->launch[i].work.single + p->launch[i].work.call;
}

static Case case_of(size_t i)
{
    return (Case){.source = &sources[i / SIZES],
                  .context = contexts[i % SIZES / COUNT_OF(targets)],
                  .width = 256,
                  .target = targets[i % COUNT_OF(targets)]};
}

static const char *case_name(size_t i)
{
    static char name[128];
    Case c = case_of(i);
    snprintf(name, sizeof name, "%s, %d, %s", c.source->v.name, c.context, c.target->name);
    return name;
}

static bool run_one(size_t i)
{
    Ctx *ctx = ctx_new(NULL);
    Case c = case_of(i);
    bool ok = guarded(ctx, plan_case, &c) && c.kernels > 0;
    printf("%-40s %3zu kernels, %5.1f MB%s\n", case_name(i), c.kernels, (double)ctx->peak_bytes / 1e6,
           ok ? "" : "  FAILED");
    fflush(stdout);
    ctx_free(ctx);
    return ok;
}

/* What planning takes, of memory that was given out. */
static double work_of(const Source *source, int context, const Target *target)
{
    Ctx *ctx = ctx_new(NULL);
    Case c = {.source = source, .context = context, .width = 128, .target = target};
    double work = guarded(ctx, plan_case, &c) ? (double)ctx->taken : INFINITY;
    ctx_free(ctx);
    return work;
}

/* A recurrence over twice as many chunks has twice as many nodes, and takes about twice as much to plan. With 32 chunks
 * of 32 positions and heads of 32 three loops of one axis have one extent: what is done to one is not done to the others. */
static bool plans_in_time_of_nodes(const Source *s, const Target *target)
{
    enum { CHUNK = 32 };
    double equal = work_of(s, 32 * CHUNK, target), work = work_of(s, 64 * CHUNK, target),
           twice = work_of(s, 128 * CHUNK, target);
    bool ok = equal < work && twice <= 2.3 * work;
    printf("%s, %s: 128 chunks take %.2f times the work of 64, 32 chunks %.2f times%s\n", s->v.name, target->name,
           twice / work, equal / work, ok ? "" : "; more than 2.3, or than 1  FAILED");
    return ok;
}

static double operations_of(const Source *source, int context)
{
    Ctx *ctx = ctx_new(NULL);
    Case c = {.source = source, .context = context, .width = 64, .target = &target_cpu};
    bool ok = guarded(ctx, plan_case, &c);
    ctx_free(ctx);
    return ok ? c.operations : INFINITY;
}

/* Moved scores are as many as the pairs of positions. The sum over keys in the gradient of a softmax is one of each query,
 * whatever key its element is moved to; a sum for each pair would be eight times the work for twice the positions. */
static bool takes_work_of_pairs(const Source *s)
{
    double work = operations_of(s, 128), twice = operations_of(s, 256);
    bool ok = work > 0 && twice <= 4.2 * work;
    printf("%s: twice the positions take %.2f times the operations%s\n", s->v.name, twice / work,
           ok ? "" : "; more than 4.2  FAILED");
    return ok;
}

int main(int argc, char **argv)
{
    int failed = 0;
    for (size_t i = 0; i < COUNT_OF(sources) && argc < 2; i++)
        if (is_mechanism(&sources[i]) && strstr(sources[i].file, "shifts"))
            failed += !takes_work_of_pairs(&sources[i]);
    for (size_t i = 0; i < COUNT_OF(sources) && argc < 2 && !SANITIZED; i++)
        for (size_t t = 0; t < COUNT_OF(targets) && is_recurrence(&sources[i]); t++)
            failed += !plans_in_time_of_nodes(&sources[i], targets[t]);
    return run_drawn(argc, argv, &(CaseDraw){.one_in = 67, .sanitized = 67, .first = 2}, CASES, case_name, run_one) ||
           failed;
}
