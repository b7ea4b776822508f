/* readback.h - results of programs that are read later, while more is queued; private to runtime/.
 *
 * A Readback has room for some numbers. Each run that is posted puts all its results behind those that are there; reading
 * waits for the runs that were posted, and not for what was queued behind them. It goes with its session.
 */
#ifndef VWN_READBACK_H
#define VWN_READBACK_H

#include "session.h"

typedef struct Readback Readback;
/* For `numbers` numbers at a time. Raises, as all of these do. */
Readback *readback_new(Session *s, size_t numbers);
/* What was in it has been read. */
void readback_empty(Readback *m);
/* All results of the last run of a program. The program may run again at once. */
void readback_post(Readback *m, Program *p);
/* Numbers from .. from + n - 1 of what was posted, in order. */
void readback_read(Readback *m, size_t from, size_t n, double *v);

#endif
