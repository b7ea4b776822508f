/* growth_rows.c - the published ways to grow a model, in runs on the fake CUDA (tests/support/growth_runs.h).
 *
 * In:  [part of a row's name].   Out: counts; what differs. One row is drawn.
 * When: slow, whole, at most 3600 s. cuda.growth and train.growth_rows go the same ways.
 */
#define _GNU_SOURCE
#include "support/growth_runs.h"

int main(int argc, char **argv)
{
    CaseDraw draw = {.one_in = 200, .sanitized = 200, .first = 13};
#if !defined __x86_64__
    printf("skipped: no emulator here\n");
    return 77;
#endif
    return growth_runs("cuda", NULL, &draw, 1e-5, "", "", argc, argv);
}
