/* examples.c - the CUDA kernels of every example, emulated, against the float64 reference evaluator.
 *
 * In:  the examples, each made small, with randomised parameters, forward and backward; sizes of 1, 31, 33, primes.
 *      Every second one: tests/equal/examples.c compiles the others.
 * Out: `N passed, N failed`; 77 without a C++ compiler. Every loss and every gradient agrees to float32 bounds, the four
 *      ways of backend_emu.h give the same bits. An example with a model of its own that is not listed is a failure.
 * When: first.
 */
#include "support/example_cases.h"

#include "emulated.h"

/* Rows that are alone, that fill a warp but for one, that leave one over, that nothing divides. */
static const int64_t positions[] = {7, 31, 1, 33, 13, 37};
/* Rows of these are long, and a few show what many would. */
static const char *const wide[] = {"vwn 1.5x, mtp", "vwn (4,8)",  "vwn x8, moe", "quickstart",
                                   "ghc (8,16)",    "ghc (8,32)", "mtp chain"};

static bool run_one(size_t i)
{
    int64_t T = positions[i % COUNT_OF(positions)];
    for (size_t k = 0; k < COUNT_OF(wide); k++)
        T = strcmp(wide[k], sources[i].v.name) == 0 ? 3 : T;
    return example_agrees(&sources[i], gradients_emulated, T == 7 ? 2 : 1, T);
}

int main(int argc, char **argv)
{
    int missing = examples_not_listed(sources, COUNT_OF(sources), "\nmodel ");
    int status = emulated_drawn(argc, argv, &(CaseDraw){.one_in = 12, .sanitized = 12}, COUNT_OF(sources), example_name,
                                run_one);
    return missing ? 1 : status;
}
