/* history.h - what a run wrote about itself, read back.
 *
 * In:  the events.jsonl of a run directory, of a run that may still be going on.   Out: curves of any number in it.
 * The one idea: a line is an event with numbers by name; a curve is every event that has the name. What was done before a
 * resume goes on counting: seconds add up, and so do FLOPs of models of several sizes.
 */
#ifndef VWN_HISTORY_H
#define VWN_HISTORY_H

#include "session.h"

typedef enum HistoryAxis { BY_STEP, BY_TOKENS, BY_FLOPS, BY_SECONDS, HISTORY_AXES } HistoryAxis;
typedef struct HistoryPoint {
    double x[HISTORY_AXES]; /* tokens trained, FLOPs forward and backward (NaN: the run has not written them), seconds */
    double value;
} HistoryPoint;
typedef struct HistoryGrowth {
    double x[HISTORY_AXES];
    const char *name; /* of the growth step */
} HistoryGrowth;
typedef struct History {
    const char *path;
    VEC(HistoryPoint) point;
    VEC(HistoryGrowth) growth;
    HistoryPoint end;    /* the last event; its value is not used */
    int64_t damaged;     /* lines that are passed over */
    int64_t first_damaged; /* the number of the first, from 1 */
} History;
/* The curve of `metric`, "loss" or "eval_loss" or any name of events.jsonl, in s->arena. Raises ST_USAGE where there is no
 * run, ST_ENVIRONMENT where its events cannot be read. A line that is no event is passed over and counted. */
History history_read(Session *s, const char *run, const char *metric);

#endif
