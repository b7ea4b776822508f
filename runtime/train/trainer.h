/* trainer.h - the state of one training run; private to train.c, train_open.c and
 * train_event.c. */
#ifndef VWN_TRAINER_H
#define VWN_TRAINER_H

#include "compiler/model/programs.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/data/data.h"
#include "runtime/data/feed.h"
#include "compiler/portable/loss_scale.h"
#include "compiler/portable/loop.h"
#include "runtime/exec/readback.h"
#include "runtime/checkpoint/record.h"
#include "runtime/checkpoint/start.h"

/* What an event says beside the common fields. */
typedef void TrainFields(JsonText *t, const void *of);

/* A step that is queued, and whose numbers have not been read. */
typedef struct QueuedStep {
    Readback *readback; /* results of its parts, and of its update */
    double lr;
} QueuedStep;
enum { STEPS_QUEUED = 2 }; /* at most: one is computed while the next one is made ready */

/* Where a run of several stages stands: the growth steps that are carried out, and who asked for the next one. */
typedef struct TrainGrowth {
    const GrowthPlan *plan; /* of the last of them, when this opening carries it out */
    const Train *was;       /* the training before it */
    const double *born;     /* updates that were done before each growth step that is carried out */
    bool begins;            /* the first opening of this call: the others follow it at growth steps */
    bool due;               /* the next one begins: the run is to be opened again */
} TrainGrowth;

/* Of `vwn grow`, else NULL: a run or a checkpoint, the step, the file to write. */
typedef struct TrainByHand {
    const char *source, *step, *apply_to;
} TrainByHand;

typedef struct TrainPrograms {
    Program *fresh, *more, *update, *eval;                      /* more: NULL when a lane is one micro-batch */
    Program *squares;                                           /* of several ranks; NULL: this one updates nothing */
    Program *keep[LOOP_LANES_LEVELS], *join[LOOP_LANES_LEVELS]; /* as many as the lanes have levels */
    Program *count, *eval_count; /* NULL also where nothing is computed in parts, or evaluated */
} TrainPrograms;

/* What programs give, as read. */
typedef struct TrainResults {
    int norm, halt; /* where they stand among the results of the update */
    double *part, *all,
        *updated; /* results of fresh: what a micro-batch adds, of each lane, then of a step; of the update */
    double *eval_part, *eval_all; /* results of eval: what some windows add; of each lane, then of all */
    int loss, eval_loss;          /* where "loss" stands among them */
    double eval_bytes;            /* that a token of the last evaluation stands for; 0: not known */
} TrainResults;

/* Steps that are queued on a device before the numbers of earlier ones are read. */
typedef struct TrainQueue {
    QueuedStep step[STEPS_QUEUED]; /* step n has the place n % STEPS_QUEUED */
    int64_t ahead;                 /* steps behind those of `now` that are queued */
    bool decides;      /* updates hold by themselves from a bad step on, so a step may follow one not yet known */
    StoreEntry *known; /* of the window of losses, for these; and what lies there */
    double is_known[3];
} TrainQueue;

/* Events: when the last was told, and the room for the next. */
typedef struct TrainReport {
    double began, reported; /* when the first step began, 0: not yet; when a rate was last told */
    int64_t reported_at, began_at;
    double rate;             /* tokens per second, smoothed over some seconds */
    bool started;            /* the start event is out */
    VEC(const char *) early; /* events before events.jsonl is open */
    char *json, text[1024];  /* json: `json_room` bytes, enough for every result */
    size_t json_room;
    TrainFields *fields; /* of the event at hand, or NULL */
    const void *fields_of;
} TrainReport;

/* What each rank has spent since a step was last told: seconds of an exchange that had begun here and not everywhere, of exchanges from
 * then on, and all others; bytes of gradients and weights that were sent. And its memory, of tensors and the arena. */
typedef enum SpentKind {
    SPENT_COMPUTING,
    SPENT_WAITING,
    SPENT_COMMUNICATING,
    SPENT_SENT,
    SPENT_MEMORY,
    SPENT_KINDS
} SpentKind;
/* What a rank of several exchanges in a step. */
typedef struct TrainOrder TrainOrder;
typedef struct TrainShare {
    TrainOrder *gradients, *weights; /* of what is trained; before the gradients the loss, where updates decide */
    TrainOrder *learning;            /* weights that have averages, also of what a growth step holds; NULL: none has */
    StoreEntry *loss, *squares;      /* what the update reads; loss: or NULL */
    int64_t each;                    /* numbers of a rank that are on their way at a time, */
    char *numbers,
        *set_aside; /* and room for those of all ranks; this rank's weights while averages are in their place */
    double *square; /* room for the loss, and a number of each trained parameter */
    uint64_t sent;  /* bytes of gradients and weights so far; */
    double (*spent)[SPENT_KINDS]; /* of each rank, */
    double told;                  /* since then, */
    RanksSpent before;            /* and what this one had spent until then */
    uint64_t sent_before;
} TrainShare;

/* Of steps that a caller drives with batches of its own, one at a time; nothing of it in `vwn train`. */
typedef struct TrainDriver {
    bool driven;
    void (*feed)(void *user, int64_t first); /* uploads the sequences of a micro-batch, from that one of the step on;
                                                NULL: the data of the file */
    void *user;
} TrainDriver;

typedef struct Trainer {
    Session session;
    Ctx *ctx;
    Unit *file; /* as it was given */
    Unit *unit; /* the same after the growth steps that are carried out */
    const Model *model;
    const Train *train;
    const vwn_train_options *how;
    const Hooks *hooks;
    const Start *start; /* weights that a new run begins with, or NULL */
    TrainGrowth growth;
    TrainByHand by_hand;
    TrainDriver driver;
    bool over; /* it is a run to be resumed that has reached its end and keeps no checkpoint: nothing is opened */

    Data *data, *eval_data;  /* data: opened unless the caller has */
    const Split *eval_split; /* NULL: no evaluation */
    TrainPrograms program;
    Feed feed;
    RunDir *run;                      /* NULL in a dry run */
    StartRecord *record;              /* of this start; NULL: growth steps open a run again */
    Checkpoint *from;                 /* resumed from it, else NULL */
    Drawing *drawing;                 /* of the initial values, else */
    int64_t micro, parts;             /* sequences per micro-batch, micro-batches per step */
    StepLanes lanes;                  /* of a step, and those of this process */
    TrainShare *share;                /* NULL: there is one rank */
    int64_t steps, stop_at;           /* of the whole run; of this call */
    uint64_t bytes;                   /* memory of tensors and the arena */
    BuildReport build;                /* of all programs */
    struct KernelCache *kernel_cache; /* of all programs */
    KernelSet *gather; /* nothing is trained: the kernels of all that the file trains go there; else NULL */

    RunMeta meta;
    Progress now;
    double vars[HV_COUNT];
    double lr; /* of the last step of `now` */
    TrainQueue queue;
    TrainResults out;
    int64_t saved_at, evaluated_at; /* steps, -1 = not yet */
    TrainReport report;
} Trainer;

/* train_open.c: everything up to the first step. Raises. */
void train_open(Trainer *tr);
/* What expressions read `ahead` steps after what is known. */
void train_set_vars(Trainer *tr, int64_t ahead);
/* The learning rate of step `step` (from 0) under tr->vars; files E0208 and raises when it, or the
 * decay of the average, is none. */
double train_rate(Trainer *tr, int64_t step);

/* The growth step that begins after as many steps as are done and `ahead` more; NULL: none. Steps come in the order of the
 * file. */
const GrowStep *train_growth_due(Trainer *tr, int64_t ahead);
/* Whether the steps of such a stage may be queued before the numbers of the last are known: its expressions and `next`,
 * the growth step that is to come, or NULL, do not ask for them. */
bool train_runs_ahead(const Trainer *tr, const Model *m, const Train *t, const GrowStep *next);

/* train_grow.c: the parts of the weights of `m`, the model after the first n growth steps, with their rates; `updates`: how
 * many were done before each. */
GrownParts train_births(Trainer *tr, const Model *m, size_t n, const double *updates);
/* Compiles what growth steps to come will want, so that none waits for a compiler in mid-run. */
void train_prepare(Trainer *tr);
/* The kernels of all that the file trains, into tr->gather; the session has a backend and a store. Raises. */
void train_gather(Trainer *tr);
/* After each step: the window that the next growth step looks at, where it waits for a plateau. */
void train_plateau(Trainer *tr);
/* The next growth step begins a stage of the run: the progress of what comes behind it. */
void train_enter_progress(Progress *p, const GrowStep *g);
/* The file again, with other settings, after its first `grown` growth steps. NULL: it has errors then. */
Unit *train_check_again(Trainer *tr, const char *const *set, size_t n_set, size_t grown);
/* How many growth steps of the file tr->from has behind it; sets tr->growth.born, which has room for one more. */
size_t train_steps_behind(Trainer *tr);
const char *train_run_path(Trainer *tr);
int64_t train_weights(const Trainer *tr); /* that are stored; buffers are none */
bool train_reads_length(
    const Trainer *tr); /* whether a schedule, or what else follows the run, depends on how long it is */
int64_t train_length(const Trainer *tr, const Train *t); /* steps of such a training on this data */
/* ---- train_resume.c: what the checkpoint says about the run against what the file says now ---- */
void train_compare(Trainer *tr);
bool train_is_over(const Trainer *tr); /* of a run that goes on: nothing is left to train, as far as the call goes */
void train_report_end(Trainer *tr);    /* where nothing, or less than was asked for, is left to train */
/* grow.c: the step tr->by_hand.step, which must be the next one of `unit`; raises. */
const GrowStep *train_step_wanted(Trainer *tr, const Unit *unit);

/* ---- train_ranks.c: what ranks say to each other; nothing where there are none. All raise, with who has failed. ---- */
bool train_writes(const Trainer *tr);                  /* files and events: rank 0 does, or who is alone */
void train_agree(Trainer *tr);                         /* raises where ranks were started for different things */
void train_share_lanes(Trainer *tr);                   /* tr->lanes: those of this rank */
const char *train_told(Trainer *tr, const char *text); /* what rank 0 gives; NULL and "" are NULL then */
/* Kernels are compiled by the first rank of each machine, and found by the others: before they are built, and behind it. */
void train_wait_for_kernels(Trainer *tr, bool before);
void train_check(Trainer *tr, bool fine);                    /* raises after a call of ranks.h that was not */
void train_gather_lanes(void *trainer, double *v, size_t n); /* n numbers of each lane of a step */
bool train_interrupted(Trainer *tr);                         /* whether somebody was */
/* ---- train_share.c: what each of them updates; nothing where there are none ---- */
void train_own(const Trainer *tr, const Model *m, Train *t); /* t->owner and t->rank of a training of `m` */
void train_share(Trainer *tr);                               /* tr->share; behind the program of the update */
void train_add_gradients(Trainer *tr); /* those of this rank's parameters become sums over all ranks */
void train_add_squares(Trainer *tr, const RunArgs *args); /* what an update reads of all of them */
void train_spread_weights(Trainer *tr);                   /* those of this rank's parameters go to all */
void train_begin_spent(Trainer *tr);                      /* training begins */
void train_gather_spent(Trainer *tr);                     /* tr->share->spent; a step is told */
void train_swap_averages(Trainer *tr, bool in); /* into the place of the weights, where evaluations read them; or out */

/* train.c: one optimizer step, and nothing of what happens between steps; `more`: the one behind it is queued before this
 * one is waited for, where train_may_follow(). Raises. */
void train_step(Trainer *tr, bool more);
bool train_may_follow(Trainer *tr);
/* The halves of a step of a Trainer that is driven: the gradient of the file's losses, as train_step() has it, into the store,
 * and the loss; then the update by what the store has as gradients, however it came there, and what follows from it. A loss
 * that is NaN is not known. All raise; the weights are then as before. */
double train_gradient(Trainer *tr);
void train_update(Trainer *tr, double loss);
void train_begin(Trainer *tr); /* the clock of the steps of this start */
void train_save(Trainer *tr);  /* a checkpoint of a run that has a folder */

/* train_start.c: the weights that the file names for the beginning, NULL: none; and their account, told. */
const Start *train_start_open(Trainer *tr);
void train_start_say(Trainer *tr, const Start *start);
/* train_measure.c: what the growth step, or the beginning, at hand does, measured in stores of its own: outputs of the old
 * and the new model beside each other, gradients of new blocks. Tells it; raises ST_DIVERGED when outputs change by
 * more than the file says. */
void train_measure(Trainer *tr);

/* train_event.c: tells the caller and events.jsonl. Raises when the file cannot be written. */
void train_event(Trainer *tr, vwn_event_kind kind, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
void train_event_room(Trainer *tr); /* before the first event, and when the programs are known */
/* The same with fields of its own. */
void train_row(Trainer *tr, vwn_event_kind kind, TrainFields *fields, const void *of, const char *text);
void train_end_event(Trainer *tr, Status status); /* never raises */
void train_flush_early(Trainer *tr);              /* events.jsonl is open now */

#endif
