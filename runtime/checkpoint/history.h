/* history.h - what a run wrote about itself, read back.
 *
 * In:  the events.jsonl of a run directory, of a run that may still be going on.   Out: curves of any number in it.
 * The one idea: a line is an event with numbers by name; a curve is every event that has the name. What was done before a
 * resume goes on counting: seconds add up, and so do FLOPs of models of several sizes.
 */
#ifndef VWN_HISTORY_H
#define VWN_HISTORY_H

#include "runtime/base/json.h"
#include "runtime/exec/session.h"

typedef enum HistoryAxis { BY_STEP, BY_TOKENS, BY_FLOPS, BY_SECONDS, HISTORY_AXES } HistoryAxis;
extern const char *const history_axis_name[HISTORY_AXES]; /* "step", "tokens", "FLOPs", "seconds" */
typedef struct HistoryPoint {
    double
        x[HISTORY_AXES]; /* tokens trained, FLOPs forward and backward (NaN: the run has not written them), seconds */
    double value;
    bool of_step; /* a training step's */
} HistoryPoint;
typedef struct HistoryGrowth {
    double x[HISTORY_AXES];
    const char *name; /* of the growth step */
} HistoryGrowth;
typedef struct Events {
    int64_t damaged, first_damaged; /* lines that are passed over; the number of the first, from 1 */
} Events;
typedef struct History {
    const char *path;
    VEC(HistoryPoint) point;
    VEC(HistoryGrowth) growth;
    HistoryPoint end; /* the last event; its value is not used */
    double steps;     /* of the whole run, as it says at the end; NaN: it does not */
    Events events;
} History;
/* The curve of `metric`, "loss" or "eval_loss" or any name of events.jsonl, in s->arena; where steps and evaluations have the name,
 * of steps. "eval/NAME" is of evaluations alone. Raises ST_USAGE where there is no
 * run, ST_ENVIRONMENT where its events cannot be read. A line that is no event is passed over and counted. */
History history_read(Session *s, const char *run, const char *metric);

/* Raises ST_USAGE where the run has not written what an axis counts. */
void history_need(Session *s, const History *h, HistoryAxis by);

/* Every event of a run, in order, in memory that is taken back behind each; what `take` does not know, false, is counted as damaged. */
Events events_read(Session *s, const char *run, bool (*take)(void *user, const Json *event), void *user);
/* Where a run is at each of its events: steps, tokens, FLOPs, and the seconds of training, evaluations and checkpoints of all its
 * starts, without those of planning and compiling. */
typedef struct RunClock {
    double seconds, last;       /* of training, over all starts; those of the last event that counts */
    double flops, rate, tokens; /* up to the last event; for each token since the last start */
} RunClock;
RunClock run_clock(void);
/* False: it is no event. */
bool run_clock_take(RunClock *c, const Json *event, double x[HISTORY_AXES]);
/* The last part of a path. */
const char *run_name(Arena *a, const char *path);
/* Up to the first colon of a growth event's text, "wider: 13,712 numbers stay ...": the name of the step. */
const char *growth_name(Arena *a, const char *text);
/* Warns of damaged lines, where there are some. */
void events_warn(Session *s, const char *run, const Events *e);
/* A number of an event: "loss", or "load[3]" of a list, counted from 1; NaN: there is none. */
double event_number(const Json *event, const char *name);
/* The names of all numbers in a run's events, in the order in which they appear. */
typedef VEC(Name) NameVec;
Events events_names(Session *s, const char *run, NameVec *names);
/* Raises that the run has no number of this name: the nearest one, or those that it has. */
_Noreturn void events_lack(Session *s, const char *run, const char *name);

#endif
