/* moves.c - random graphs in which elements move beside products and sums, against the reference evaluator.
 *
 * In:  a seed per graph (first argument: where to start, second: how many).
 * Out: results and gradients agree with the reference, fused and not, in any split of rows; what moves along an axis
 *      of rows is proved to stay inside its tensor, in seven times as many.
 * When: quick.
 */
#include "moved.h"

int main(int argc, char **argv) { return moved_run(argc, argv, NULL, 20) != 0; }
