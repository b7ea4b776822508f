/* ahead.h - work that goes on while its caller does something else.
 *
 * In:  loops, as for parallel_for().
 * Out: ahead_drain() returns when all of them are done.
 * The one idea: a start has one long thread, the compiler's, and work that does not wait for it:
 * drawing weights, touching memory, the product library's own code. Helpers take its chunks in
 * the order in which it was given, but a loop of one chunk first: at the end it could not be
 * shared. Whoever drains takes chunks as well. With one thread there are no helpers, and drain does
 * everything: what a loop computes never depends on who computes it.
 */
#ifndef VWN_AHEAD_H
#define VWN_AHEAD_H

#include <stdbool.h>

#include "compiler/portable/threads.h"

/* One thread at a time may call these. Helpers live from the first ahead_begin() to the end of
 * a drain and block all signals; in a child after fork() the loops begin anew, so a chunk must
 * bear to be done twice. */
typedef struct Ahead Ahead;
Ahead *ahead_open(int threads); /* the caller counts as one; NULL when there is no memory */
void ahead_close(Ahead *a);     /* drops as ahead_drop() does; NULL is fine */

/* fn on [0, n) in chunks of `grain` items, sometime before the next ahead_drain() returns.
 * `user` must last so long. The worker that fn is told is always 0. NULL does it at once. */
void ahead_begin(Ahead *a, int64_t n, int64_t grain, RangeFn fn, void *user);
bool ahead_pending(const Ahead *a); /* NULL: false */
void ahead_drain(Ahead *a);
void ahead_drop(Ahead *a); /* ends what was begun and leaves the rest undone */

#endif
