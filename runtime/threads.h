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

/* Threads that wait for loops. They start with the first loop, block all signals, and are
 * started anew in a child after fork(). One loop at a time; loops must not be nested. */
typedef struct Pool Pool;
Pool *pool_open(int threads); /* the caller counts as one; NULL when there is no memory */
void pool_close(Pool *p);     /* NULL is fine */
int pool_threads(const Pool *p);

/* Calls fn on [0, n) in chunks of `grain` items (less than 1 counts as 1) and returns when all
 * are done. NULL is a pool of one. Never fails: with fewer threads to be had the loop merely
 * takes longer. */
void parallel_for(Pool *p, int64_t n, int64_t grain, RangeFn fn, void *user);

/* How many threads the process may use: its affinity mask, cut by the quota of its control
 * group, rounded up. At least 1. */
int threads_available(void);

#endif
