/* run_state.h - what a run says of itself, all at once: its curves, its last numbers, whether it goes on.
 *
 * In:  a run directory, of a run that may be going on, or have ended without a word.   Out: one value that `vwn watch` and
 * `vwn report` print.
 * The one idea: events.jsonl is read once; every number by a name that is known to be a curve becomes one. Whether
 * somebody trains is asked of the lock, which no process that was killed holds.
 */
#ifndef VWN_RUN_STATE_H
#define VWN_RUN_STATE_H

#include "runtime/checkpoint/history.h"

/* `killed`: there is no end among its events, and nobody trains there. */
typedef enum RunPhase {
    RUN_GOES_ON,
    RUN_TRAINED,
    RUN_STOPPED,
    RUN_INTERRUPTED,
    RUN_DIVERGED,
    RUN_FAILED,
    RUN_SILENT,
    RUN_PHASES
} RunPhase;
extern const char *const run_phase_names[RUN_PHASES];

typedef struct RunCurve {
    Name
        name; /* "loss", "eval_loss", "lr", "grad_norm", "tok_s", "bits_per_byte", "loss.next", "metric.ppl", "eval loss.next" */
    VEC(HistoryPoint) point;
    VEC(HistoryPoint) odd; /* where it was NaN or infinite, which events tell as null */
} RunCurve;
typedef struct RunNote {
    double step;
    const char *kind, *text; /* kind: "growth", "note", "warning" */
} RunNote;
typedef struct RankState { /* seconds, bytes */
    double computing, waiting, communicating, sent, memory;
} RankState;
typedef struct RunState {
    const char *path, *name; /* the name: the last part of the path */
    RunPhase phase;
    double quiet;        /* seconds since its last event was written */
    int64_t starts;      /* how often it was begun or went on */
    VEC(RunCurve) curve; /* those of the names below come first, and are there without points, too */
    VEC(HistoryGrowth) growth;
    VEC(RunNote) note;
    const char *start, *compile, *end;                              /* the last sentences; "": none */
    HistoryPoint last;                                              /* where it is; the value is not used */
    double steps, eta, memory, eval_step, flops_per_token, weights; /* NaN: not written */
    VEC(RankState) rank;                                            /* of a run of several: sums over its steps */
    Events events;
} RunState;

enum { CURVE_LOSS, CURVE_EVAL, CURVE_LR, CURVE_NORM, CURVE_RATE, CURVE_BITS, FIXED_CURVES };

/* Raises as history_read(). */
RunState run_state_read(Session *s, const char *run);
/* The last value of a curve; NaN: it has none. */
double run_curve_last(const RunState *r, size_t curve);
/* Whether it has ended in what is no finite number. */
bool run_curve_odd(const RunCurve *c);
/* What `vwn watch` says of it: "running", "trained", "ended without a word 3 min ago" ... */
const char *run_phase_text(Arena *a, const RunState *r);
const char *duration_text(Arena *a, double seconds); /* "0.4 s", "38 s", "4 min", "3.2 h", "12 days" */

#endif
