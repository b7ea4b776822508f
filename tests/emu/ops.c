/* ops.c - every operator at awkward sizes: plans for a device, emulated, against the reference evaluator.
 *
 * In:  the graphs of tests/kernel/graphs.c, fused and not.     Out: the number of failures; 77 without a C++ compiler.
 * Blocks from the first to the last with one for each group of rows, and threads from the last to the first with a
 * few blocks, give the same bits; buffers have marks around them. What has no text for a device fails.
 */
#include "backend_emu.h"

#include "kernel/cases.h"

#include <stdio.h>
#include <stdlib.h>

static const PlanKernel *const *kernels;
static EmuKernel *made;
static size_t n_made;

static bool compile(const Plan *first, const PlanKernel *const *kernel, size_t n, char why[512])
{
    EmuText *text = calloc(n + 1, sizeof *text);
    made = calloc(n + 1, sizeof *made);
    kernels = kernel;
    n_made = n;
    bool good = true;
    for (size_t i = 0; i < n; i++) {
        text[i] = (EmuText){kernel[i]->name, kernel[i]->text, kernel[i]->length};
        if (!kernel[i]->grid.threads) {
            snprintf(why, 512, "%s has no text for a device", kernel[i]->name);
            good = false;
        }
    }
    good = good && emu_compile(first->device_prelude, first->device_prelude_length, text, n, made, why);
    free(text);
    return good;
}

static const char *launch(const PlanKernel *kernel, void **argument, int64_t blocks, uint64_t shared, int64_t chunk)
{
    size_t at = 0;
    while (at < n_made && strcmp(kernels[at]->name, kernel->name) != 0)
        at++;
    EmuOptions how = {.descending = chunk > 0, .blocks_max = kernel->grid.whole ? 0 : (uint32_t)chunk};
    return emu_launch(&made[at], argument, &how, (uint32_t)blocks, kernel->grid.threads, shared);
}

int main(void)
{
    static const HostDevice device = {compile, launch};
    char why[512];
    if (!emu_possible(why)) {
        printf("skipped: %s\n", why);
        return 77;
    }
    Ctx *ctx = ctx_new(NULL);
    CtxGuard guard;
    int bad = 1;
    static const struct { int B, T, n; } size[] = {{1, 1, 1}, {2, 31, 33}, {2, 67, 17}};
    if (CTX_TRY(ctx, &guard)) {
        Cases *cases = cases_new(ctx, &device);
        for (size_t i = 0; i < COUNT_OF(size); i++)
            graphs_add(ctx, cases, size[i].B, size[i].T, size[i].n);
        bad = cases_run(cases);
        ctx_leave(ctx, &guard);
    } else {
        printf("FAIL %s\n", ctx->message);
    }
    free(made);
    ctx_free(ctx);
    return bad != 0;
}
