/* emulated.h - the gradient program of a model, emulated, against the float64 reference evaluator.
 *
 * In:  a checked unit with `train`, sizes B and T.     Out: the Agreement of gradients.h, over the four ways
 *      of backend_emu.h.
 */
#ifndef VWN_TEST_EMULATED_H
#define VWN_TEST_EMULATED_H

#include "../gradients.h"

#include "backend_emu.h"

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

/* run_cases(), skipped where nothing can be emulated. */
static inline int emulated_cases(int argc, char **argv, size_t n, const char *(*name)(size_t), bool (*run)(size_t))
{
    if (emu_missing())
        return EMU_SKIPPED;
    return run_cases(argc, argv, n, name, run);
}

#endif
