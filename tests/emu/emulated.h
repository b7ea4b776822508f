/* emulated.h - the gradient program of a model, emulated, against the float64 reference evaluator.
 *
 * In:  a checked unit with `train`, sizes B and T.     Out: the Agreement of gradients.h, over the four ways
 *      of backend_emu.h; how much of the program is in 16 bits.
 */
#ifndef VWN_TEST_EMULATED_H
#define VWN_TEST_EMULATED_H

#include "support/gradients.h"

#include "backend_emu.h"

#include "compiler/plan/plan.h"

static inline void gradients_emulated(Ctx *ctx, const Unit *u, Agreement *c)
{
    char why[512];
    if (backend_emu_open(ctx, &(EmuOptions){0}, &c->on, why) != ST_OK)
        vwn_bug(ctx, "no backend: %s", why);
    c->runs = EMU_RUNS;
    c->before = backend_emu_way;
    gradients_compare(ctx, u, c);
    c->on->ops->close(c->on);
}

/* Parameters of kernels that are loaded from two bytes, products with such results, products on tensor cores inside
 * kernels over rows. */
typedef struct Narrow {
    int loads, products, inside;
} Narrow;

static inline int count_of(const char *text, const char *what)
{
    int n = 0;
    for (; (text = strstr(text, what)); text += strlen(what))
        n++;
    return n;
}

static inline Narrow count_narrow(Ctx *ctx, const Unit *u, Half half, int64_t B, int64_t T)
{
    Narrow is = {0};
    PlanOptions how = {.B = B, .T = T, .half = half, .target = &target_gpu};
    const char *load = arena_printf(ctx->program, "const %s *__restrict__", half_word(half));
    Graph *g = step_gradient(u->model, u->train, true, ctx->program);
    Plan *p = plan_build(ctx, ctx->program, plan_graph(g, ctx->program, &how), &how);
    for (size_t i = 0; i < p->n_kernel; i++) {
        const char *text = p->kernel[i].text;
        is.loads += count_of(text, load);
        is.inside += count_of(text, "vwn_product_bf16<") + count_of(text, "vwn_product_called<");
    }
    for (size_t i = 0; i < p->n_launch; i++)
        if (p->launch[i].kind == LAUNCH_MATMUL && p->launch[i].matmul.rounded)
            is.products += p->launch[i].matmul.batch > 1 ? (int)p->launch[i].matmul.batch : 1;
    return is;
}

/* run_drawn(), skipped where nothing can be emulated. */
static inline int emulated_drawn(int argc, char **argv, CaseDraw *d, size_t n, const char *(*name)(size_t),
                                 bool (*run)(size_t))
{
    if (emu_missing())
        return EMU_SKIPPED;
    return run_drawn(argc, argv, d, n, name, run);
}

static inline int emulated_cases(int argc, char **argv, size_t n, const char *(*name)(size_t), bool (*run)(size_t))
{
    return emulated_drawn(argc, argv, &(CaseDraw){.one_in = 1, .sanitized = 1}, n, name, run);
}

#endif
