/* mail.h - results of programs that are read later, while more is queued; private to runtime/.
 *
 * A Mail has room for some numbers. Each run that is posted puts all its results behind those that are there; reading
 * waits for the runs that were posted, and not for what was queued behind them. It goes with its session.
 */
#ifndef VWN_MAIL_H
#define VWN_MAIL_H

#include "session.h"

typedef struct Mail Mail;
/* For `numbers` numbers at a time. Raises, as all of these do. */
Mail *mail_open(Session *s, size_t numbers);
/* What was in it has been read. */
void mail_empty(Mail *m);
/* All results of the last run of a program. The program may run again at once. */
void mail_post(Mail *m, Program *p);
/* Numbers from .. from + n - 1 of what was posted, in order. */
void mail_read(Mail *m, size_t from, size_t n, double *v);

#endif
