/* structure.c - what may not change the kernels of a model.
 *
 * In:  examples/quickstart.vwn with other numbers of layers, widths and sequences.
 * Out: the same bytes when printed twice; no new kernel for more layers, another width or batch; names
 *      that are the hashes of the texts; buffers that overlap found by plan_verify(); a scheduled forward boundary between sublayers is one kernel; an
 *      update that keeps no copy of the weights, with and without clipping.
 * When: quick.
 */
#include "compiler/file/check_unit.h"
#include "compiler/pass/simplify.h"
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

/* Is there a launch between the first that touches x and the last that does, of both? By looking at every pair. */
static bool there_together(const Plan *p, uint32_t x, uint32_t y)
{
    size_t first[2] = {SIZE_MAX, SIZE_MAX}, last[2] = {0, 0};
    for (size_t i = 0; i < p->n_launch; i++)
        for (uint32_t k = 0; k < p->launch[i].n_touched; k++)
            for (int w = 0; w < 2; w++)
                if (p->launch[i].buffer[k] == (w ? y : x)) {
                    first[w] = first[w] < i ? first[w] : i;
                    last[w] = i;
                }
    return first[0] <= last[1] && first[1] <= last[0];
}

static bool refused(Ctx *ctx, const Plan *p)
{
    CtxGuard guard;
    if (!CTX_TRY(ctx, &guard))
        return strstr(ctx->message, "overlap") != NULL;
    plan_verify(ctx, p);
    ctx_leave(ctx, &guard);
    return false;
}

/* Of buffers that are there together each is moved to where another begins, or ends, one at a time. */
static void check_overlaps(Ctx *ctx)
{
    Plan *p = plan_of(ctx, NULL, 2, 16);
    size_t moved = 0, found = 0;
    for (uint32_t x = 0; x < p->n_buffer; x++)
        for (uint32_t y = 0; y < p->n_buffer; y += 7) {
            PlanBuffer *a = &p->buffer[x], *b = &p->buffer[y];
            uint64_t was = a->offset, end = b->bytes ? (b->bytes - 1) / PLAN_ALIGN * PLAN_ALIGN : 0;
            uint64_t to = b->offset + (y % 2 ? end : 0);
            bool free_to_move = x != y && a->ext < 0 && b->ext < 0 && a->bytes && b->bytes && !a->behind &&
                                !b->behind && to + a->bytes <= p->arena_bytes;
            for (uint32_t k = 0; k < p->n_buffer; k++)
                free_to_move = free_to_move && p->buffer[k].behind != x + 1;
            if (!free_to_move || !there_together(p, x, y))
                continue;
            a->offset = to;
            moved++;
            found += refused(ctx, p);
            a->offset = was;
        }
    printf("%zu buffers moved onto another, %zu refused\n", moved, found);
    expect(moved > 200 && found == moved, "buffers that overlap are refused");
    expect(!refused(ctx, p), "and those of the plan are not");
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
        named =
            named && strstr(base->kernel[i].text, base->kernel[i].name) && !strstr(base->kernel[i].text, "#include");
    expect(named, "every text carries its name and includes nothing");
    expect(update_is_small(ctx, "train.clip=1"), "an update with clipping keeps no weights");
    expect(update_is_small(ctx, "train.clip=0"), "an update without clipping keeps no weights");
    expect(base->n_kernel <= 40, "at most 40 kernels");
    check_overlaps(ctx);
}

int main(void)
{
    Ctx *ctx = ctx_new(NULL);
    if (!guarded(ctx, check_all, NULL))
        bad++;
    ctx_free(ctx);
    return bad != 0;
}
