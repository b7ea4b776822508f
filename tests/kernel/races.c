/* races.c - kernels for the threads of a device with a barrier, or a thread's part, taken away.
 *
 * In:  the gradient programs of connections of every kind, in float32 and bf16.
 * Out: `N passed, N failed`. Every kernel as it is mapped is without a race; with a barrier taken out most have one
 *      (map_threads.c has two where one would do), and so have many of which a loop is given to threads in another way, or
 *      an element to all of them. A product or the total of a warp that is moved into a loop of which threads have their
 *      own rounds is found in every kernel; so is a barrier that is missing between two products on tensor cores, and the first
 *      barrier or total of a warp in a row of half a warp, of which another has the other half. Each mapped kernel is a sound
 *      program and gives the numbers of the scheduled one; with a fault in the steps of a statement it is not sound (steps.h).
 * When: quick, slow. It walks over what other tests make under the sanitizers.
 */
#include "compiler/gpu/map_threads.h"
#include "steps.h"
#include "support/examples.h"
#include "support/harness.h"

#include "compiler/kernel/kernel_text.h"
#include "compiler/plan/plan.h"
#include "compiler/plan/pipeline.h"

static const char *const names[] = {"olmo hyper",    "olmo frac",      "vwn (4,8)", "mhc",
                                    "over-encoding", "own connection", "ghc (8,32)"};

/* Whose arrays are so large that few threads have many registers each; of which two products are one. */
static const Source wide[] = {
    {"02_olmo_1b.vwn", {"wide hyper", {"D=512", "L=1", "conn=hyper(n = 4, dynamic = true)", NULL}}},
    {"pays.vwn", {"wide ghc", {"D=1024", "L=1", "E=2048", "conn=ghc(m = 4, n = 8, dynamic = true)", NULL}}},
};

typedef struct Tally {
    Harness h;
    int kernels, read, barriers, needed, widths, caught, ones, all, together, found, between, apart, first, halves,
        totals, warps, elsewhere;
    StepTally step;
} Tally;

typedef struct Job {
    Tally *t;
    const Source *source;
    Half half;
} Job;

/* The mapped kernel without statement i. */
static size_t race_without(const Kernel *mapped, size_t i)
{
    Kernel k = *mapped;
    memset(&k.stmt, 0, sizeof k.stmt);
    for (size_t j = 0; j < mapped->stmt.n; j++)
        if (j != i)
            vec_push(k.arena, &k.stmt, mapped->stmt.v[j]);
    return kernel_race(&k);
}

static size_t race_with(const Kernel *mapped, size_t i, KStmt s)
{
    Kernel k = *mapped;
    memset(&k.stmt, 0, sizeof k.stmt);
    for (size_t j = 0; j < mapped->stmt.n; j++)
        vec_push(k.arena, &k.stmt, j == i ? s : mapped->stmt.v[j]);
    return kernel_race(&k);
}

/* With statement i in the mapped loop that begins at `loop`, too. */
static size_t race_inside(const Kernel *mapped, size_t i, size_t loop)
{
    Kernel k = *mapped;
    memset(&k.stmt, 0, sizeof k.stmt);
    for (size_t j = 0; j < mapped->stmt.n; j++) {
        vec_push(k.arena, &k.stmt, mapped->stmt.v[j]);
        if (j == loop)
            vec_push(k.arena, &k.stmt, mapped->stmt.v[i]);
    }
    return kernel_race(&k);
}

/* What threads do together, once in a loop that is shared among them. */
static void plant_inside(Tally *t, const Kernel *mapped, size_t i)
{
    for (size_t j = 0; j < mapped->stmt.n; j++) {
        const KStmt *s = &mapped->stmt.v[j];
        if (s->kind != KS_LOOP || !s->mapped || s->threads == WARPS_OF_ROW)
            continue;
        t->together++;
        t->found += race_inside(mapped, i, j) == j + 1;
        return;
    }
}

/* Rows of half a warp: not all threads of a warp come by at one time. */
static void plant_half(Tally *t, const Kernel *mapped)
{
    Kernel k = *mapped;
    size_t i = 0;
    while (i < k.stmt.n && k.stmt.v[i].kind != KS_BARRIER && k.stmt.v[i].kind != KS_WARP)
        i++;
    if (i == k.stmt.n)
        return;
    k.device.mapping.row_threads = 16;
    t->first++;
    *(k.stmt.v[i].kind == KS_BARRIER ? &t->halves : &t->totals) += kernel_race(&k) == i;
}

static void plant(Tally *t, const Kernel *mapped)
{
    plant_half(t, mapped);
    for (size_t i = 0; i < mapped->stmt.n; i++) {
        KStmt s = mapped->stmt.v[i];
        if (s.kind == KS_BARRIER) {
            t->barriers++;
            t->needed += race_without(mapped, i) != SIZE_MAX;
            if (mapped->device.tensor && mapped->stmt.v[i - 1].kind == KS_PRODUCT &&
                mapped->stmt.v[i + 1].kind == KS_PRODUCT) {
                t->between++;
                t->apart += race_without(mapped, i) != SIZE_MAX;
            }
        } else if (s.kind == KS_PRODUCT || s.kind == KS_WARP) {
            plant_inside(t, mapped, i);
        } else if (s.kind == KS_LOOP && s.mapped && s.threads == THREADS_OF_ROW) {
            s.width = s.width > 1 ? 0 : 4;
            t->widths++;
            t->caught += race_with(mapped, i, s) != SIZE_MAX;
            s = mapped->stmt.v[i];
            s.first ^= 1; /* the threads of another warp */
            t->warps++;
            t->elsewhere += race_with(mapped, i, s) != SIZE_MAX;
        } else if (s.kind == KS_ARRAY_PUT && s.one) {
            s.one = false;
            t->ones++;
            t->all += race_with(mapped, i, s) != SIZE_MAX;
        }
    }
}

/* What the text of a mapped kernel says is the same kernel: it prints the same lines, and the same CUDA. */
static void read_back(Job *j, Ctx *ctx, const Plan *p, const Kernel *mapped)
{
    const char *name = j->source->v.name;
    KernelText x = {.kernel = mapped, .about = "rows"};
    Buf text = buf_new(ctx->program), again = buf_new(ctx->program);
    Printed cuda, same;
    kernels_begin(&text, p->B, p->T);
    kernels_put(&text, &x);
    const KernelTexts *all = kernels_read(ctx, ctx->program, source_add(ctx, "mapped", text.s, text.n));
    if (!CHECK_CASE(&j->t->h, all && all->kernel.n == 1, name)) {
        Buf why = buf_new(ctx->program);
        diag_render(ctx, &why, diag_get(ctx, 0), false);
        printf("%s", why.s);
        return;
    }
    kernels_begin(&again, p->B, p->T);
    kernels_put(&again, &all->kernel.v[0]);
    pipeline_print(&cuda, mapped, &dialect_cuda, "rows", NULL);
    pipeline_print(&same, all->kernel.v[0].kernel, &dialect_cuda, "rows", NULL);
    if (!CHECK_CASE(&j->t->h, strcmp(text.s, again.s) == 0, name))
        printf("%s--- read, it is\n%s", text.s, again.s);
    else if (!CHECK_CASE(&j->t->h, cuda.length == same.length && strcmp(cuda.text, same.text) == 0, name))
        printf("%s--- read, it is\n%s", cuda.text, same.text);
    CHECK_CASE(&j->t->h, kernel_race(all->kernel.v[0].kernel) == SIZE_MAX, name);
    j->t->read++;
}

static void look(Ctx *ctx, void *arg)
{
    Job *j = arg;
    Unit *u = load_text(ctx, example_text(ctx, j->source), j->source->v.set);
    PlanOptions how = {.B = 2, .T = 7, .programs = true, .target = &target_gpu, .half = j->half};
    Graph *g = plan_graph(step_gradient(u->model, u->train, true, ctx->program), ctx->program, &how);
    const Plan *p = plan_build(ctx, ctx->program, g, &how);
    Buf text = buf_new(ctx->program);
    kernels_begin(&text, p->B, p->T);
    for (size_t i = 0; i < p->n_kernel; i++)
        if (p->kernel[i].program) /* the library's have none */
            buf_puts(&text, p->kernel[i].program);
    KernelTexts *all = kernels_read(ctx, ctx->program, source_add(ctx, "test", text.s, text.n));
    if (!CHECK_CASE(&j->t->h, all && all->kernel.n > 5, j->source->v.name))
        return;
    for (size_t i = 0; i < all->kernel.n; i++) {
        if (!all->kernel.v[i].kernel)
            continue;
        Kernel k = *all->kernel.v[i].kernel, mapped;
        k.target = &target_gpu;
        k.device.shared = target_gpu.shared;
        k.device.tensor = j->half != HALF_NONE;
        pipeline_map(&mapped, &k, NULL);
        CHECK_CASE(&j->t->h, kernel_race(&mapped) == SIZE_MAX, j->source->v.name);
        read_back(j, ctx, p, &mapped);
        plant_steps(&j->t->h, &j->t->step, &k, &mapped, j->source->v.name);
        j->t->kernels++;
        if (!mapped.device.mapping.by_row && (j->source < wide || j->source > &wide[COUNT_OF(wide) - 1]))
            plant(j->t, &mapped);
    }
}

static void look_at(Tally *t, const Source *source)
{
    for (int half = 0; half < 2; half++) {
        Ctx *ctx = ctx_new(NULL);
        CHECK_CASE(&t->h, guarded(ctx, look, &(Job){t, source, half ? HALF_BF16 : HALF_NONE}), source->v.name);
        ctx_free(ctx);
    }
}

int main(void)
{
    Tally t = {.step = {.of_totals = {.one_in = 133, .sanitized = 257},
                        .of_lanes = {.one_in = 83, .sanitized = 163},
                        .of_ways = {.one_in = 5, .sanitized = 41},
                        .of_elements = {.one_in = 421, .sanitized = 2011}}};
    for (size_t n = 0; n < COUNT_OF(names); n++)
        for (size_t i = 0; i < COUNT_OF(sources); i++)
            if (!strcmp(sources[i].v.name, names[n]))
                look_at(&t, &sources[i]);
    for (size_t i = 0; i < COUNT_OF(wide); i++)
        look_at(&t, &wide[i]);
    printf(
        "%d kernels, %d read back: %d barriers, %d of them needed; %d loops, %d of them by other threads; %d elements, "
        "%d of them by "
        "all; "
        "%d things done together, %d found where not all come by; %d barriers between products, %d needed; "
        "%d rows of half a warp, %d found at a barrier, %d at a total; %d loops of another warp, %d found; %d kernels "
        "checked, %d run, %d with pieces, %d with rounds, %d with sums that are held, %d products beside others, %d "
        "ways of products, %d choices that are loads, %d statements of several elements, %d "
        "totals, %d statements of lanes, %d prefetches and tiles of rows, %d statements of partial sums: %d faults in "
        "these, %d found %s\n",
        t.kernels, t.read, t.barriers, t.needed, t.widths, t.caught, t.ones, t.all, t.together, t.found, t.between,
        t.apart, t.first, t.halves, t.totals, t.warps, t.elsewhere, t.step.checked, t.step.run, t.step.pieces,
        t.step.rounds, t.step.sums, t.step.pairs, t.step.ways, t.step.loaded, t.step.elements, t.step.totals,
        t.step.lanes, t.step.begins, t.step.parts, t.step.faults, t.step.found, t.step.missed);
    CHECK(&t.h, t.kernels > 200 && t.read == t.kernels && 100 * t.needed > 87 * t.barriers && t.caught > 30 &&
                    5 * t.all > 2 * t.ones);
    CHECK(&t.h, t.together > 400 && t.found == t.together);
    CHECK(&t.h, t.between > 10 && t.apart == t.between);
    CHECK(&t.h, t.elsewhere > 30 && t.elsewhere < t.warps);
    CHECK(&t.h, t.halves > 30 && t.totals > 30 && t.halves + t.totals == t.first);
    CHECK(&t.h, t.step.faults > 1000 && t.step.found == t.step.faults);
    cases_end(&t.step.of_totals);
    cases_end(&t.step.of_lanes);
    cases_end(&t.step.of_ways);
    cases_end(&t.step.of_elements);
    CHECK(&t.h, t.step.elements > 20 && t.step.arguments > 1000);
    CHECK(&t.h, t.step.ways > 20 && t.step.loaded > 20 && t.step.pairs > 1 && t.step.totals > 500 &&
                    t.step.lanes > 100 && t.step.begins > 20 && t.step.parts > 200);
    CHECK(&t.h, 4 * t.step.run > t.step.checked && t.step.pieces > 3 && t.step.rounds > 5 && t.step.sums > 5);
    return harness_end(&t.h);
}
