/* structure.c - what may not change the kernels of a model.
 *
 * In:  examples/quickstart.vwn with other numbers of layers, widths and sequences.
 * Out: the same bytes when printed twice; no new kernel for more layers, another width or batch; names
 *      that are the hashes of the texts; a scheduled forward boundary between sublayers is one kernel; an
 *      update that keeps no copy of the weights, with and without clipping.
 */
#include "support/models.h"

#include "boundary.h"

#include "compiler/plan/plan.h"

static int bad;

static void expect(bool ok, const char *what)
{
    printf("%s%s\n", ok ? "" : "FAIL ", what);
    bad += !ok;
}

static Unit *unit_of(Ctx *ctx, const char *const *set)
{
    size_t n = 0;
    while (set && set[n])
        n++;
    CheckOptions how = {.path = VWN_SOURCE_DIR "/examples/quickstart.vwn", .set = set, .n_set = n};
    Unit *u = check_file(ctx, &how);
    if (!u->model || diag_errors(ctx)) {
        show_diagnostics(ctx);
        exit(1);
    }
    return u;
}

static Plan *plan_graph_of(Ctx *ctx, const Graph *g, int64_t B, int64_t T)
{
    PlanOptions options = {.B = B, .T = T};
    Plan *p = plan_build(ctx, ctx->program, graph_simplify(g, ctx->program), &options);
    plan_verify(ctx, p);
    return p;
}

static Plan *plan_of(Ctx *ctx, const char *const *set, int64_t B, int64_t T)
{
    const Unit *u = unit_of(ctx, set);
    return plan_graph_of(ctx, step_gradient(u->model, u->train, true, ctx->program), B, T);
}

/* Only sums of squares lie in the arena. */
static bool update_is_small(Ctx *ctx, const char *clip)
{
    const Unit *u = unit_of(ctx, (const char *const[]){clip, NULL});
    const Plan *p = plan_graph_of(ctx, step_update(u->model, u->train, ctx->program), 1, 1);
    uint64_t weights = 0;
    for (size_t i = 0; i < u->model->param.n; i++)
        weights += 4 * (uint64_t)u->model->param.v[i].elements;
    return p->arena_bytes < weights / 64;
}

static bool same_dump(Ctx *ctx, const Plan *a, const Plan *b)
{
    Buf x = buf_new(ctx->program), y = buf_new(ctx->program);
    plan_dump(&x, a);
    plan_dump_kernels(&x, a);
    plan_dump(&y, b);
    plan_dump_kernels(&y, b);
    return x.n == y.n && memcmp(x.s, y.s, x.n) == 0;
}

static void check_all(Ctx *ctx, void *arg)
{
    (void)arg;
    Plan *base = plan_of(ctx, NULL, 16, 128), *again = plan_of(ctx, NULL, 16, 128);
    expect(same_dump(ctx, base, again), "planning twice gives the same bytes");
    Plan *deep = plan_of(ctx, (const char *const[]){"L=7", NULL}, 16, 128);
    expect(deep->n_kernel == base->n_kernel && plan_missing(base, deep) == 0, "more layers, no more kernels");
    expect(plan_missing(base, plan_of(ctx, NULL, 5, 96)) == 0, "another batch and length, the same kernels");
    /* six heads, 48 and 64 wide: half a head is a whole vector or not */
    Plan *narrow = plan_of(ctx, (const char *const[]){"D=288", NULL}, 16, 128);
    Plan *wide = plan_of(ctx, (const char *const[]){"D=384", NULL}, 16, 128);
    expect(plan_missing(narrow, wide) <= 5, "another width, only what depends on the head size");
    bool named = true;
    for (size_t i = 0; i < base->n_kernel; i++)
        named = named && strstr(base->kernel[i].text, base->kernel[i].name) &&
                !strstr(base->kernel[i].text, "#include");
    expect(named, "every text carries its name and includes nothing");
    expect(update_is_small(ctx, "train.clip=1"), "an update with clipping keeps no weights");
    expect(update_is_small(ctx, "train.clip=0"), "an update without clipping keeps no weights");
    expect(base->n_kernel <= 40, "at most 40 kernels");
}

int main(void)
{
    Ctx *ctx = ctx_new(NULL);
    if (!guarded(ctx, check_all, NULL))
        bad++;
    ctx_free(ctx);
    return bad != 0;
}
