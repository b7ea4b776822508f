/* growth_rows.c - the published ways to grow a model, in runs on the reference and on the CPU (tests/support/growth_runs.h).
 *
 * In:  [part of a row's name].   Out: counts; what differs.
 * Of the reference one row of 24 is drawn, of the CPU, which compiles kernels, one of 120 and one whose kernels before and
 * after the step differ in the number of positions alone.
 * When: released, at most 7200 s.
 */
#define _GNU_SOURCE
#include "support/growth_runs.h"

/* Whole layers that are copies, at the end and in between; units; experts that were one layer. */
static const char frozen[] =
    "depth, stacked, o = down = 0|depth, interleaved, o = down = 0|copies that are not read|lemon, unequal shares|"
    "dense to experts, weights add up to 1";

int main(int argc, char **argv)
{
    CaseDraw reference = {.one_in = 48, .sanitized = 48}, cpu = {.one_in = 240, .sanitized = 240, .first = 2};
    int failed = growth_runs("reference", "", &reference, 1e-9, "", frozen, argc, argv);
    return growth_runs("cpu", NULL, &cpu, 1e-5, SANITIZED ? "" : "longer context, learned positions", "", argc, argv) ||
           failed;
}
