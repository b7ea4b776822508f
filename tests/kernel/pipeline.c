/* pipeline.c - the list of passes: their order, what each does to a model, and what their dumps
 * say.
 *
 * In:  examples/quickstart.vwn, planned for a CPU and for a GPU in bf16.
 * Out: the passes run in the order of passes.def, for each what it changed; a pass that is run
 * without what it needs is found; lines that a pass removes stand in its dump; a barrier of a
 * dump orders what races without it.
 */
#include "compiler/file/check_unit.h"
#include "compiler/pass/simplify.h"
#include "support/harness.h"
#include "support/models.h"

#include "compiler/gpu/device.h"
#include "compiler/kernel/kernel_text.h"
#include "compiler/plan/pipeline.h"
#include "compiler/plan/plan.h"

#include <string.h>

static Harness h;

static const Graph *gradient_of(Ctx *ctx)
{
    CheckOptions how = {.path = VWN_SOURCE_DIR "/examples/quickstart.vwn"};
    const Unit *u = check_file(ctx, &how);
    if (!u->model || diag_errors(ctx)) {
        show_diagnostics(ctx);
        exit(1);
    }
    return step_gradient(u->model, u->train, true, ctx->program);
}

static PassWatch watched(Ctx *ctx, const Graph *g, const Target *target, Half half, PassId show, Plan **plan)
{
    PassWatch watch = {.show = show};
    PlanOptions how = {.B = 4, .T = 32, .target = target, .half = half, .watch = &watch};
    *plan = plan_build(ctx, ctx->program, plan_graph(g, ctx->program, &how), &how);
    return watch;
}

/* ---- order ---- */

/* In this order, whatever else happens to the table: what stands behind another needs what that
 * one leaves. */
static void check_order(void)
{
    static const char *const order[] = {"simplify", "join",   "operands", "boundaries", "decompose", "fuse",   "unroll",
                                        "lower",    "sums",   "schedule", "vectors",    "prefetch",  "check",  "tiles",
                                        "nests",    "choose", "map",      "spill",      "registers", "cut",    "grid",
                                        "hold",     "pair",   "rows",     "totals",     "lanes",     "loaded", "races",
                                        "print",    "launch", "gather"};
    PassId before = PASSES;
    for (size_t i = 0; i < COUNT_OF(order); i++) {
        PassId id = pass_of_name(order[i]);
        CHECK_CASE(&h, id < PASSES && (before == PASSES || id > before), order[i]);
        before = id;
    }
    CHECK(&h, pass_of_name("nonsense") == PASSES);
    for (int a = 0; a < PASSES; a++)
        for (int b = 0; b < a; b++)
            CHECK_CASE(&h, strcmp(pass_rows[a].name, pass_rows[b].name) != 0, pass_rows[a].name);
}

/* What a pass needs some pass before it gives, on that target; but for the graph, which is
 * there. */
static void check_needs(void)
{
    for (int on = 0; on < 2; on++) {
        const PlanOptions how = {.half = on ? HALF_BF16 : HALF_NONE};
        const PassState s = {.how = &how, .target = on ? &target_gpu : &target_cpu};
        uint32_t facts = IS_GRAPH;
        for (int id = 0; id < PASSES; id++) {
            if (!pass_applies((PassId)id, &s))
                continue;
            CHECK_CASE(&h, !(pass_rows[id].needs & ~facts), pass_rows[id].name);
            facts |= pass_rows[id].gives;
        }
    }
}

/* ---- counts ---- */

static size_t kept(const PassWatch *w, PassId id) { return w->count[id].runs - w->count[id].trials; }

static void check_counts(Ctx *ctx)
{
    Plan *cpu, *gpu, *again;
    const Graph *g = gradient_of(ctx);
    const PassWatch c = watched(ctx, g, &target_cpu, HALF_NONE, PASSES, &cpu),
                    d = watched(ctx, g, &target_gpu, HALF_BF16, PASSES, &gpu);
    const PassWatch same = watched(ctx, g, &target_gpu, HALF_BF16, PASSES, &again);
    size_t texts = 0, library = 0;
    for (int id = 0; id < PASSES; id++) {
        CHECK_CASE(&h, d.count[id].runs == same.count[id].runs && d.count[id].changed == same.count[id].changed,
                   pass_rows[id].name);
        /* a CPU's plan runs no others, and a device's none of a CPU */
        CHECK_CASE(&h,
                   pass_rows[id].where == ON_VECTORS ? c.count[id].runs && !d.count[id].runs
                                                     : pass_rows[id].where == ON_ANY || !c.count[id].runs,
                   pass_rows[id].name);
    }
    /* by what came out */
    const Graph *simple = graph_simplify(g, ctx->program);
    CHECK(&h, c.count[PASS_SIMPLIFY].changed == g->node.n - simple->node.n);
    CHECK(&h, c.count[PASS_LAUNCH].changed == cpu->n_launch);
    CHECK(&h, d.count[PASS_LAUNCH].changed - d.count[PASS_GATHER].changed == gpu->n_launch);
    for (size_t i = 0; i < cpu->n_kernel; i++) {
        bool ours = strstr(cpu->kernel[i].text, "/* rows") || strstr(cpu->kernel[i].text, "/* elements");
        texts += ours;
        library += !ours;
    }
    CHECK(&h, texts > 10 && library > 0 && c.count[PASS_PRINT].runs >= texts &&
                  kept(&c, PASS_CHECK) == kept(&c, PASS_UNROLL));
    CHECK(&h, c.count[PASS_LOWER].runs > kept(&c, PASS_UNROLL)); /* attempts */
    CHECK(&h, d.count[PASS_OPERANDS].changed > 0 && d.count[PASS_BOUNDARIES].changed > 0);
    /* what an attempt has mapped to see what it costs is not made again: as many as are proved
     * are kept */
    CHECK(&h, kept(&d, PASS_RACES) == d.count[PASS_RACES].runs && d.count[PASS_MAP].changed > 0);
    CHECK(&h, kept(&d, PASS_TILES) == kept(&d, PASS_RACES) && kept(&d, PASS_MAP) == kept(&d, PASS_RACES));
    CHECK(&h, d.count[PASS_TILES].runs <= kept(&d, PASS_UNROLL) + d.count[PASS_UNROLL].changed);
}

/* ---- a pass too early ---- */

static const char *said;
static void on_bug(Ctx *ctx, const char *text)
{
    (void)ctx;
    said = text;
}

static void run_early(Ctx *ctx, PassState *s)
{
    (void)ctx;
    pipeline_run(s, LEVEL_THREADS);
}

static void check_early(void)
{
    Ctx *ctx = ctx_new(NULL);
    CtxGuard guard;
    PassState s = {
        .ctx = ctx, .arena = ctx->program, .target = &target_gpu, .facts = IS_CHECKED | IS_TILES | IS_CHOICE};
    ctx->on_bug = on_bug;
    if (CTX_TRY(ctx, &guard)) {
        run_early(ctx, &s);
        ctx_leave(ctx, &guard);
        CHECK_CASE(&h, false, "`map` has run without nests in order");
    } else {
        CHECK_CASE(&h,
                   strstr(ctx->message, "`map`") && strstr(ctx->message, "nests in order") &&
                       !strstr(ctx->message, "a choice"),
                   ctx->message);
    }
    ctx_free(ctx);
}

/* ---- dumps ---- */

static void check_removed(Ctx *ctx)
{
    Buf out = buf_new(ctx->program);
    put_with_removed(&out, ctx->program, "a %1\n  x3 = mul x1 x2\nb\nb\n  gone\n", "a %7\nb\n  x4 = mul x2 x3\nc\n");
    CHECK_CASE(&h, !strcmp(out.s, "a %7\nb\n# removed: b\n  # removed: gone\n  x4 = mul x2 x3\nc\n"), out.s);
    Plan *plan;
    PassWatch w = watched(ctx, gradient_of(ctx), &target_cpu, HALF_NONE, PASS_SIMPLIFY, &plan);
    size_t removed = 0;
    for (const char *p = w.text; (p = strstr(p, "# removed: %")); p++)
        removed++;
    CHECK(&h, removed >= w.count[PASS_SIMPLIFY].changed); /* some nodes are new */
}

static size_t words(const char *s, const char *word)
{
    size_t n = 0;
    while (s && (s = strstr(s, word)))
        s++, n++;
    return n;
}

/* Of every kernel the dump behind `lanes`: a barrier that orders something, left out, is a
 * race; one that orders nothing is none. */
static void check_barriers(Ctx *ctx)
{
    Plan *plan;
    watched(ctx, gradient_of(ctx), &target_gpu, HALF_NONE, PASS_LANES, &plan);
    size_t barriers = 0, reasons = 0;
    for (size_t i = 0; i < plan->n_kernel; i++) {
        barriers += words(plan->kernel[i].shown, "  barrier");
        reasons += words(plan->kernel[i].shown, "  barrier  # orders ");
    }
    CHECK(&h, barriers > 10 && reasons > 10);
}

/* Does the comment behind this barrier say what kernel_race() says of the kernel without it? */
static bool is_true(Ctx *ctx, const Kernel *k, size_t barrier)
{
    Kernel without = *k;
    Buf why = buf_new(ctx->program);
    without.stmt.v = NEW_ARRAY(ctx->program, KStmt, k->stmt.n);
    without.stmt.n = 0;
    for (size_t s = 0; s < k->stmt.n; s++)
        if (s != barrier)
            without.stmt.v[without.stmt.n++] = k->stmt.v[s];
    kernel_put_reasons(&why, k, barrier);
    bool orders = !strstr(why.s, "orders nothing");
    return CHECK_CASE(&h, orders == (kernel_race(&without) != SIZE_MAX), why.s) && orders;
}

/* Kernels with totals, arrays, partial sums and tiles. */
static void check_reasons(Ctx *ctx)
{
    static const char *const files[] = {"map", "row", "tile"};
    size_t ordered = 0;
    for (size_t f = 0; f < COUNT_OF(files); f++) {
        Buf path = buf_new(ctx->program);
        buf_printf(&path, VWN_SOURCE_DIR "/tests/golden/%s.in", files[f]);
        FILE *file = fopen(path.s, "r");
        char *text = NEW_ARRAY(ctx->program, char, 1 << 20);
        size_t n = file ? fread(text, 1, 1 << 20, file) : 0;
        if (file)
            fclose(file);
        const KernelTexts *all = kernels_read(ctx, ctx->program, source_add(ctx, files[f], text, n));
        for (size_t i = 0; CHECK_CASE(&h, all != NULL, files[f]) && i < all->kernel.n; i++) {
            Kernel k = *all->kernel.v[i].kernel, mapped;
            k.target = &target_gpu;
            k.device.shared = target_gpu.shared;
            pipeline_map(&mapped, &k, NULL);
            for (size_t s = 0; s < mapped.stmt.n && mapped.device.mapping.row_threads && !mapped.device.mapping.by_row;
                 s++)
                ordered += mapped.stmt.v[s].kind == KS_BARRIER && is_true(ctx, &mapped, s);
        }
    }
    CHECK(&h, ordered > 10);
}

static void check_all(Ctx *ctx, void *user)
{
    (void)user;
    check_order();
    check_needs();
    check_counts(ctx);
    check_early();
    check_removed(ctx);
    check_reasons(ctx);
    check_barriers(ctx);
}

int main(void)
{
    Ctx *ctx = ctx_new(NULL);
    if (!guarded(ctx, check_all, NULL))
        h.failed++;
    ctx_free(ctx);
    return harness_end(&h);
}
