/* ops.c - every operator at awkward sizes: plans for a device, emulated, against the reference evaluator.
 *
 * In:  the graphs of tests/kernel/graphs.c, fused and not.     Out: the number of failures; 77 without a C++ compiler.
 * The two orders of host_emu.h give the same bits; buffers have marks around them. What has no text for a device
 * fails.
 * When: quick.
 */
#include "backend_emu.h"
#include "host_emu.h"

#include "kernel/cases.h"
#include "support/drawn.h"

#include <stdio.h>

int main(void)
{
    if (emu_missing())
        return EMU_SKIPPED;
    Ctx *ctx = ctx_new(NULL);
    CtxGuard guard;
    int bad = 1;
    static const struct {
        int B, T, n;
    } size[] = {{1, 1, 1}, {2, 67, 17}, {2, 31, 33}};
    if (CTX_TRY(ctx, &guard)) {
        Cases *cases = cases_new(ctx, &host_emu);
        CaseDraw draw = {.one_in = 2, .sanitized = 2};
        for (size_t i = 0; i < COUNT_OF(size); i++)
            if (case_drawn(&draw, i))
                graphs_add(ctx, cases, size[i].B, size[i].T, size[i].n);
        cases_end(&draw);
        bad = cases_run(cases);
        ctx_leave(ctx, &guard);
    } else {
        printf("FAIL %s\n", ctx->message);
    }
    ctx_free(ctx);
    return bad != 0;
}
