/* width_kernels.c - how many kernels a device needs for a model of variable widths, beside constant ones.
 *
 * In:  examples/08, with its widths and with one width; no GPU and no compiler for one.
 * Out: the counts; `N passed, N failed`.
 * The one idea: sizes are arguments, so the number of texts depends on structure: constant widths need
 * no more for more layers; variable ones need more where a row is made of pieces of several layers.
 */
#include "examples.h"
#include "runtime/harness.h"

#include "compiler/plan.h"
#include "compiler/report.h"

typedef struct Count {
    const char *const *set;
    size_t kernels, launches;
} Count;

/* Different texts of all that training does. */
static void count_example(Ctx *ctx, void *arg)
{
    static const char *const programs[] = {"train", "update", "eval"};
    Count *c = arg;
    Map seen;
    const char *path = arena_printf(ctx->program, "%s/examples/08_xformer_500m.vwn", VWN_SOURCE_DIR);
    CheckOptions how = {.path = path, .set = c->set};
    while (how.set[how.n_set])
        how.n_set++;
    Unit *u = check_file(ctx, &how); /* what the file claims of its widths is false of others */
    map_init(&seen, ctx->program);
    for (size_t i = 0; u->model && i < COUNT_OF(programs); i++) {
        const Plan *p = report_device_plan(u, programs[i], 0);
        for (size_t k = 0; k < p->n_kernel; k++) {
            const PlanKernel *x = &p->kernel[k];
            void **slot = map_at(&seen, hash_bytes(x->text, x->length, 0) | 1);
            c->kernels += x->grid.threads && !*slot;
            *slot = c;
        }
        c->launches += p->n_launch;
    }
}

static Count count(Harness *h, const char *what, const char *const *set)
{
    Ctx *ctx = ctx_new(NULL);
    Count c = {.set = set};
    CHECK_CASE(h, guarded(ctx, count_example, &c) && c.kernels > 0, what);
    printf("%-28s %4zu kernels, %5zu launches\n", what, c.kernels, c.launches);
    ctx_free(ctx);
    return c;
}

int main(void)
{
    enum { LAYERS = 24, EACH = 5 };
    Harness h = {0};
    Count variable = count(&h, "variable widths", (const char *const[]){NULL});
    Count constant = count(&h, "one width",
                           (const char *const[]){"width=constant(layers = L, width = d)", NULL});
    Count shallow = count(&h, "one width, half as deep",
                          (const char *const[]){"width=constant(layers = L, width = d)", "L=12", NULL});
    Count residual = count(&h, "one width, residual",
                           (const char *const[]){"width=constant(layers = L, width = d)",
                                                 "conn=residual()", NULL});
    CHECK(&h, constant.kernels == shallow.kernels && constant.launches > shallow.launches);
    CHECK(&h, constant.kernels == residual.kernels && constant.launches == residual.launches);
    /* A layer's state is made of pieces that layers of other widths left: at most so many more for each. */
    CHECK(&h, variable.kernels <= constant.kernels + EACH * LAYERS);
    return harness_end(&h);
}
