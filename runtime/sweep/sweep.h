/* sweep.h - a sweep under way; private to sweep.c, sweep_dir.c, sweep_point.c and sweep_table.c.
 *
 * In:  the plan of a sweep (model.h).   Out: a run for each point, a manifest, tables.
 * The one idea: a point's run is an ordinary run directory that resumes by itself. The manifest says which points there are
 * and what became of them; it is written by one thread and put in place by a rename.
 */
#ifndef VWN_SWEEP_H
#define VWN_SWEEP_H

#include <pthread.h>

#include "runtime/checkpoint/run_dir.h"

typedef enum PointState {
    POINT_WAITING, /* or under way */
    POINT_DONE,
    POINT_PRUNED, /* by `prune`: its run stays at the rung */
    POINT_WRONG,  /* its file has errors, or a check that is false */
    POINT_DIVERGED,
    POINT_FAILED, /* memory, files, ...: tried again by the next resume */
    POINT_STATES
} PointState;
extern const char *const point_state[POINT_STATES];

/* What a point costs. Memory and time are of `--list`. */
typedef struct PointCost {
    bool counted;
    double live, stored, flops, width,
        kv;                      /* width: coordinates that a sublayer reads, on average; kv: bytes at the context */
    double memory, step_seconds; /* NaN: not asked for, or nobody knows */
} PointCost;
typedef struct PointResult {
    PointState state;
    vwn_status status;                                   /* of a point that failed */
    size_t rungs;                                        /* that it has reached */
    double *rung;                                        /* and its loss there */
    double step, tokens, seconds, train_loss, eval_loss; /* NaN: none */
    PointCost cost;
    char why[400]; /* it failed */
} PointResult;

typedef struct SweepRun {
    Session session;
    vwn_context *owner;
    const vwn_sweep_options *how;
    const vwn_writer *out;
    const SweepPlan *plan;
    RunDir *dir;
    PointResult *result; /* by point */
    PointResult *seen;   /* the same, as the manifest is to say it */
    bool listing;        /* nothing is trained */
    /* what workers share */
    size_t failed_first; /* 1 + the point whose failure was told in full */
    pthread_mutex_t lock;
    pthread_cond_t changed, ready; /* ready: all points are prepared */
    struct SweepWorker *worker;
    int workers, busy;
    size_t *queue, queued, next; /* points of this stage */
    size_t stage;                /* rungs that are behind it */
    _Atomic size_t finished;     /* points that need no more work */
    _Atomic bool stopping;
    bool dirty, reported_device, preparing, prepared;
    char wrong[8][400]; /* what points that do not check were told, the last eight kinds */
    size_t n_wrong;     /* kinds that were told */
    size_t to_prepare;  /* of the queue */
    size_t added;       /* points that a resumed sweep had not */
    double began;       /* the first point of this call, on a clock of seconds */
    size_t ended;       /* points that this call has brought to an end, or to a rung */
} SweepRun;

/* One thread with a context of its own, which runs one point after the other. */
typedef struct SweepWorker {
    SweepRun *sweep;
    vwn_context *context;
    Pages pages;          /* while listing: of one point's context after the other's */
    vwn_workbench *bench; /* keeps the device, its threads and kernels from point to point */
    pthread_t thread;
    size_t point;
    double before;  /* seconds that the point was trained by earlier calls */
    int64_t until;  /* steps; 0: to the end */
    double seconds; /* 0: no limit */
    bool timed_out;
    bool count_all; /* memory and time, too */
    PointCost cost;
    vwn_unit *unit;
} SweepWorker;

/* ---- sweep_point.c: one point, in the thread and the context of a worker ---- */
/* Counts it and, unless the sweep only lists, trains it up to the end of this stage; fills *r. */
void sweep_point_run(SweepWorker *w, PointResult *r);
/* What it is checked from: the file that is varied, the settings. */
vwn_file_options sweep_point_file(const SweepRun *s, size_t point);

/* ---- sweep_ranks.c: of several processes; with one, all of it is its own. They raise. ---- */
bool sweep_writes(const SweepRun *s);            /* files: the first of them does */
bool sweep_is_here(const SweepRun *s, size_t k); /* whether this one trains the k-th point of a stage */
void sweep_agree(SweepRun *s); /* that they have the same points; all hear what became of them before */
/* What became of these n points of a stage, which is over here; NULL: of all of them, as the first one knows it. */
void sweep_hear(SweepRun *s, const size_t *queue, size_t n);

/* ---- sweep_dir.c ---- */
const char *sweep_point_folder(Arena *a, const SweepRun *s, size_t point);
/* Takes the folder. Reads what a manifest there says into `result`, or refuses; clears what is to be begun anew. */
void sweep_open_folder(SweepRun *s);
void sweep_write_manifest(SweepRun *s, bool clearing);
void sweep_put_number(Buf *b, const char *key, double x); /* `,"key":x`; null where it is not finite */
void sweep_put_string(Buf *b, const char *key, const char *text);

/* sweep.c: the work behind vwn_sweep; it raises */
Status sweep_run(vwn_context *owner, const vwn_sweep_options *how, const vwn_writer *out);

/* ---- sweep_table.c ---- */
void sweep_print(SweepRun *s);
void sweep_svg(SweepRun *s);
void sweep_want_axis(
    SweepRun *s); /* raises where the picture cannot be over what is asked for; before anything is trained */

/* Seconds until all points are done, as long as those before them took; `point`: until the point at hand ends, NaN: it has not begun.
 * NaN: nothing tells yet. */
double sweep_eta(SweepRun *s, double point);
/* Tells the caller, one thread at a time. */
void sweep_tell(SweepRun *s, const vwn_sweep_event *e);

#endif
