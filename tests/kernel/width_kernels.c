/* width_kernels.c - how many kernels a device needs for a model of variable widths, beside constant ones.
 *
 * In:  examples/08, with its widths, with other ones and with one width, and examples/24 with experts; no GPU and no compiler for one.
 * Out: the counts; `N passed, N failed`.
 * The one idea: sizes are arguments, so the number of texts depends on structure alone: neither more layers nor
 * more widths need more. A boundary that gets narrower or wider is the kernel of one that does not; attention has
 * its kernels for each class of head sizes, products by expert have theirs for each way of multiplying and each tile.
 * When: slow. It counts what plans take; all tests of kernels see what makes plans.
 */
#include "compiler/file/check_unit.h"
#include "support/examples.h"
#include "support/harness.h"

#include "compiler/library/cuda_attention.h"
#include "compiler/kernel/library.h"
#include "compiler/plan/plan.h"
#include "compiler/report/report.h"

enum { HEAD_MOST = 256 };

typedef struct Count {
    const char *file;
    const char *const *set;
    size_t kernels, launches;
    size_t attention, experts; /* of the kernels */
    size_t heads, classes;     /* head sizes, and classes of them */
    double bytes;              /* of launches of kernels in a step */
    bool head[HEAD_MOST + 1], class[HEAD_MOST + 1];
} Count;

static void count_head(Count *c, int64_t d)
{
    int class = cuda_attention_pad(d);
    c->heads += !c->head[d];
    c->classes += !c->class[class];
    c->head[d] = c->class[class] = true;
}

static void count_launches(Count *c, const Plan *p)
{
    for (size_t i = 0; i < p->n_launch; i++) {
        const Launch *l = &p->launch[i];
        bool kernel = l->kind == LAUNCH_KERNEL;
        const char *library = kernel ? p->kernel[l->kernel].library : NULL;
        c->bytes += kernel || l->kind == LAUNCH_COPY ? l->bytes : 0;
        if (library && strncmp(library, "sdpa", 4) == 0)
            count_head(c, l->ints[ATTENTION_D].value);
    }
    c->launches += p->n_launch;
}

/* Different texts of all that training does. */
static void count_example(Ctx *ctx, void *arg)
{
    static const char *const programs[] = {"train", "update", "eval"};
    Count *c = arg;
    Map seen;
    const char *path = arena_printf(ctx->program, "%s/examples/%s.vwn", VWN_SOURCE_DIR, c->file);
    CheckOptions how = {.path = path, .set = c->set};
    while (how.set[how.n_set])
        how.n_set++;
    Unit *u = check_file(ctx, &how); /* what the file claims of its widths is false of others */
    map_init(&seen, ctx->program);
    for (size_t i = 0; u->model && i < COUNT_OF(programs); i++) {
        const Plan *p = report_device_plan(u, programs[i], 0, &target_gpu, NULL);
        for (size_t k = 0; k < p->n_kernel; k++) {
            const PlanKernel *x = &p->kernel[k];
            void **slot = map_at(&seen, hash_bytes(x->text, x->length, 0) | 1);
            bool new = x->grid.threads && !*slot;
            c->kernels += new;
            c->attention += new && x->library &&strncmp(x->library, "sdpa", 4) == 0;
            c->experts += new &&strstr(x->text, "tensor cores. A block") && strstr(x->text, "expert");
            *slot = c;
        }
        count_launches(c, p);
    }
}

static Count count_of(Harness *h, const char *file, const char *what, const char *const *set)
{
    Ctx *ctx = ctx_new(NULL);
    Count c = {.file = file, .set = set};
    CHECK_CASE(h, guarded(ctx, count_example, &c) && c.kernels > 0, what);
    printf("%-28s %4zu kernels, %zu of attention for %zu head sizes in %zu classes; %5zu launches, %.0f GB\n", what,
           c.kernels, c.attention, c.heads, c.classes, c.launches, c.bytes / 1e9);
    ctx_free(ctx);
    return c;
}

static Count count(Harness *h, const char *what, const char *const *set)
{
    return count_of(h, "08_xformer_500m", what, set);
}

static size_t others(const Count *c) { return c->kernels - c->attention; }

int main(void)
{
    enum { OF_ATTENTION = 3, MOST_KERNELS = 48, OF_EXPERTS = 3, TILES = 2 };
    Harness h = {0};
    Count variable = count(&h, "variable widths", (const char *const[]){NULL});
    Count deep = count(&h, "variable, twice as deep", (const char *const[]){"L=48", NULL});
    Count deeper = count(&h, "variable, thrice as deep", (const char *const[]){"L=72", NULL});
    Count constant = count(&h, "one width", (const char *const[]){"width=constant(layers = L, width = d)", NULL});
    Count constant_deep = count(&h, "one width, twice as deep",
                                (const char *const[]){"width=constant(layers = L, width = d)", "L=48", NULL});
    Count shallow = count(&h, "one width, half as deep",
                          (const char *const[]){"width=constant(layers = L, width = d)", "L=12", NULL});
    Count residual = count(&h, "one width, residual",
                           (const char *const[]){"width=constant(layers = L, width = d)", "conn=residual()", NULL});
    CHECK(&h, constant.kernels == shallow.kernels && constant.launches > shallow.launches);
    CHECK(&h, constant.kernels == residual.kernels && constant.launches == residual.launches);
    CHECK(&h, variable.heads > 20 && constant.attention == OF_ATTENTION);
    CHECK(&h, variable.attention == OF_ATTENTION * variable.classes);
    /* whether a row shrinks, grows or stays, forward or backward, is no other kernel; and the driver copies */
    CHECK(&h, others(&variable) <= others(&constant));
    CHECK(&h, others(&deep) <= others(&constant_deep));
    CHECK(&h, deeper.heads > deep.heads && others(&deeper) == others(&deep));
    CHECK(&h, variable.kernels <= MOST_KERNELS);
    CHECK(&h, variable.bytes < constant.bytes); /* the mean width is 0.89 of the constant one */
    /* rows of any number of elements, of which most are no multiple of anything */
    Count experts = count_of(&h, "24_xformer_moe", "experts", (const char *const[]){NULL});
    printf("%zu of products by expert\n", experts.experts);
    CHECK(&h, experts.experts == OF_EXPERTS * TILES);
    return harness_end(&h);
}
