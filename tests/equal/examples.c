/* examples.c - compiled kernels of the examples against the float64 reference evaluator.
 *
 * In:  the examples, each made small, with randomised parameters, forward and backward.
 * Out: `N passed, N failed`. Every loss and every gradient tensor agrees to float32 bounds; 1, 2 and 4 threads
 *      give the same bits. Every second one: tests/emu/examples.c emulates the
 *      others. What an example shares with the models of models.h is compared there at more sizes.
 * When: first, slow. kernel.ops, kernel.random and equal.models go the same ways.
 */
#include "support/example_cases.h"

static bool run_one(size_t i) { return example_agrees(&sources[i], gradients_compare, 2, 7); }

int main(int argc, char **argv)
{
    return run_drawn(argc, argv, &(CaseDraw){.one_in = 8, .sanitized = 8, .first = 1}, COUNT_OF(sources), example_name,
                     run_one);
}
