/* threads.h - the one parallel loop of the CPU backend.
 *
 * In:  a range [0, n), a grain, a function.
 * Out: the function was called on every chunk once.
 * The one idea: chunks are cut by the grain alone, and threads take them as they come. What a
 * chunk computes therefore never depends on how many threads there are, nor on which thread
 * took it.
 */
#ifndef VWN_THREADS_H
#define VWN_THREADS_H

#include <stdint.h>

/* Computes items lo <= i < hi. `worker` is in [0, threads): an index for scratch memory. */
typedef void (*RangeFn)(void *user, int64_t lo, int64_t hi, int worker);

/* Calls fn on [0, n) in chunks of `grain` items (less than 1 counts as 1) from at most
 * `threads` threads, and returns when all are done. Inside fn a library that uses OpenMP runs
 * on one thread. Must not be nested. Never fails: with fewer threads to be had the loop merely
 * takes longer. */
void parallel_for(int threads, int64_t n, int64_t grain, RangeFn fn, void *user);

/* How many threads the process may use: its affinity mask, cut by the quota of its control
 * group, rounded up. At least 1. */
int threads_available(void);

/* Makes fork() safe from now on: a child cannot use the idle threads of its parent, so they are
 * ended before every fork. Costs nothing when called again. */
void threads_survive_fork(void);

#endif
