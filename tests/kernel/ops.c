/* ops.c - every operator, at sizes that are awkward, against the reference evaluator.
 *
 * When: quick, first, computes.
 */
#include "cases.h"
#include "support/drawn.h"

#include <stdio.h>

int main(void)
{
    Ctx *ctx = ctx_new(NULL);
    CtxGuard guard;
    int bad = 1;
    static const struct {
        int B, T, n;
    } size[] = {{1, 1, 1}, {2, 31, 33}, {3, 33, 31}, {2, 67, 17}};
    if (CTX_TRY(ctx, &guard)) {
        Cases *cases = cases_new(ctx, NULL);
        CaseDraw draw = {.one_in = 2, .sanitized = 48, .first = 2};
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
