/* workbench.h - what runs leave open for those that come after them.
 *
 * In:  sessions of one context or of many, one at a time.   Out: an open backend: its threads, its loaded kernels,
 * its products.
 * The one idea: a backend that a run has used as it should is put down here, in a context of the workbench's own, and
 * the next session that asks for the same takes it up. One that has failed, or was asked for otherwise, is closed.
 */
#ifndef VWN_WORKBENCH_H
#define VWN_WORKBENCH_H

#include "session.h"

enum {
    BENCH_ASKED = 2048,
    BENCH_SPARE =
        512 << 20 /* bytes of a context that is closed are kept for the next one, whose pages need not be asked for */
};
struct vwn_workbench {
    Ctx *ctx;                /* the backend's */
    Backend *idle;           /* NULL: it is lent, or there is none */
    char asked[BENCH_ASKED]; /* what it was opened for */
};

vwn_workbench *workbench_open(void);    /* NULL: no memory */
void workbench_close(vwn_workbench *w); /* NULL is fine */
/* The backend that lies there for these options and this device; NULL: there is none. Another one is closed. */
Backend *bench_take(vwn_workbench *w, const vwn_options *o, const DeviceAsked *asked);
/* A backend of w->ctx, when all that was taken from it is given back; `asked` as it was at bench_take(). False: it could
 * not be waited for; it is the caller's. */
bool bench_put(vwn_workbench *w, Backend *b);

#endif
