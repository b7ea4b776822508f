/* session.h - what a public call of the runtime holds open while it works; private to runtime/.
 *
 * In:  a context and its options.   Out: a backend (or the reference evaluator), a store of
 * tensors.
 * The one idea: everything that is not arena memory (file descriptors, maps, a backend,
 * programs, a lock) hangs on the Session, and session_close() gives it back on every path, also
 * after ctx_raise().
 */
#ifndef VWN_SESSION_H
#define VWN_SESSION_H

#include <signal.h>

#include "compiler/file/check_unit.h"
#include "compiler/model/model.h"
#include "exec.h"
#include "runtime/ranks/ranks.h"
#include "runtime/vwn.h"

struct vwn_context {
    Ctx *ctx;
    vwn_options options;
    /* set by vwn_interrupt, cleared by the run that obeys it */
    volatile sig_atomic_t interrupted;
    char warning[768]; /* what the call that succeeded passed over, or "" */
    Ranks *ranks;      /* the processes that this one works with; NULL: none */
    int local;         /* which of those on its machine it is, from 1; 0: nobody says it */
};

/* A checked file as the public interface hands it out. */
struct vwn_unit {
    vwn_context *context;
    Unit *unit;
    double check_seconds; /* that checking it took */
};

struct Session;
/* A checked file and its resolved text. */
typedef struct FileText {
    Unit *unit;
    const char *text;
} FileText;
/* What the runtime asks of the compiler besides graphs; vwn_train, vwn_eval and vwn_sample fill
 * it with check_file and unit_resolved_text. */
typedef struct Hooks {
    /* the file, self-contained, as one text */
    char *(*resolved_text)(Unit *unit, Arena *arena);
    Unit *(*check)(Ctx *ctx, const CheckOptions *how);
    /* what two files with these texts differ in, as `vwn diff` has it, a few names: "model.mask causal -> full"; "": in nothing else
     * than comments and layout */
    const char *(*changes)(struct Session *s, const FileText *then, const FileText *now);
    const char *version; /* of vwn, kept in checkpoints */
    const char *build;   /* vwn_build_id() */
} Hooks;

/* Something to give back when the session closes, last in first out. */
typedef struct Cleanup {
    void (*release)(void *what);
    void *what;
    struct Cleanup *next;
} Cleanup;

typedef struct Session {
    vwn_context *owner;
    Ctx *ctx;
    Arena *arena;     /* lives until session_close */
    Backend *backend; /* NULL: the reference evaluator */
    Store *store;
    Cleanup *cleanup;
    size_t byte_limit; /* the context's, while it is lifted */
    bool lifted;
    bool may_change;      /* the device was not asked for: session_use_cpu() may leave it */
    vwn_workbench *bench; /* where the backend is from, and goes back to; NULL: it is the session's own */
    char note[768];       /* why the reference evaluator runs without being asked for, or "" */
} Session;

/* Runs body(user) with a landing place for ctx_raise: the status it returns or raises. */
Status guarded(Ctx *ctx, Status (*body)(void *user), void *user);

/* The session must be zeroed; both raise, and session_close is due in every case. */
void session_open(Session *s, vwn_context *owner);
/* Opens the backend that vwn_options ask for and an empty store. Without a C compiler: the
 * reference evaluator, and `note` says so and what to install. A GPU that was asked for and cannot be used is
 * ST_ENVIRONMENT. */
void session_open_backend(Session *s);
/* From a GPU that was taken for want of another wish back to the processor, before anything is in the store; false
 * where the device was asked for. */
bool session_use_cpu(Session *s, const char *why);
/* A store of its own on the backend of another session, which is where it is closed, too, unless session_leave() was before. */
void session_beside(Session *s, Session *of);
void session_leave(Session *s);
void session_close(Session *s);
/* The same at the end of a call: `st`, or, where that is ST_OK and the device has failed in the end, ST_ENVIRONMENT
 * with its sentence. */
Status session_end(Session *s, Status st);
/* What programs of one B and T are to share of their kernels' making; NULL on a device. Freed behind the programs. */
struct KernelCache *session_kernel_cache(Session *s);
void session_defer(Session *s, void (*release)(void *what), void *what);

/* Keeps a sentence for vwn_warning(), behind those that are there; "" and NULL are fine. */
void session_warn(Session *s, const char *sentence);

/* Raises ST_ENVIRONMENT (or `st`) with the store's sentence unless st is ST_OK. */
void session_store_ok(Session *s, Status st);
/* Builds a program that is freed with the session. Raises with the reason when it cannot. */
Program *session_program(Session *s, const Graph *g, const ProgramOptions *how, BuildReport *total);
/* program_prepare() of one that is built later. */
void session_prepare(Session *s, const Graph *g, const ProgramOptions *how, BuildReport *total);
/* Runs it; raises ST_ENVIRONMENT with the reason when the backend fails. */
void session_run(Session *s, Program *p, const RunArgs *args);

/* What operands of the products of `t` are rounded to here. The evaluator rounds them too. */
Half session_half(const Session *s, const Train *t);

/* Puts parameters and buffers of the model into the store, without values. */
void session_add_params(Session *s, const Model *m);
/* Draws every initial value under `seed`, buffers too; averages of weights, which may come into the
 * store in between, begin with the same. From begin to end helpers draw while the caller compiles:
 * nobody else reads or writes parameters then. */
typedef struct Drawing Drawing;
Drawing *session_begin_params(Session *s, const Model *m, uint64_t seed);
void session_end_params(Session *s, const Drawing *d);

/* Bytes that training (or one forward pass, train == NULL) needs at `batch` sequences per
 * micro-batch (0: as the file says), as planned for the
 * precision that `train` asks for: what `vwn cost` prints. `arena` is
 * the largest arena of the programs, which share one; `program` what the compiler keeps and the
 * libraries take. Needs no device. */
typedef struct MemoryNeed {
    uint64_t weights, buffers, gradients, optimizer, average, inputs, arena, program, total;
    uint64_t exchange;   /* room for what is on its way between ranks */
    uint64_t arena_step; /* the largest arena but that of the update */
    uint64_t copies;     /* of weights in 16 bits, of a GPU */
    /* MemoryAsk.both: the arena without `recompute`, and with the file's, or with that of the
     * modules that repeat when the file has none */
    uint64_t arena_kept, arena_recomputed;
    const Name *recompute;
    size_t n_recompute;
} MemoryNeed;
/* Is shown the programs of a training step, and how often the step runs them. */
typedef struct PlanWatch {
    void (*seen)(void *user, const Plan *plan, int64_t runs);
    void *user;
} PlanWatch;
typedef struct MemoryAsk {
    Arena *both;          /* where the names go; NULL: one arena will do */
    const Target *target; /* whose memory; NULL: the CPU's. Not a GPU's with `both` */
    const PlanWatch *watch;
    /* what session_memory_other() said meanwhile, NULL: nothing; NULL: nobody has asked it */
    const uint64_t *(*other)(void *user);
    void *other_user;
} MemoryAsk;
uint64_t session_memory_most(const Model *m, const Train *t); /* bytes, far above the need */
MemoryNeed session_memory(Ctx *ctx, const Model *m, const Train *train, int64_t batch,
                          const MemoryAsk *ask); /* NULL: the need alone */
/* Bytes of the device's memory, or the host's, that the session may take; false: nobody knows. */
bool session_room(Session *s, uint64_t *left);
/* What a program that is not built yet will take: its tensors, its arena, and what a device needs beside them. */
uint64_t session_program_need(Session *s, const Graph *g, const ProgramOptions *how);
/* The part of MemoryAsk.both that takes long: the arena of a step of training with the choice of
 * `recompute` that the file has not made. */
uint64_t session_memory_other(Ctx *ctx, const Model *m, const Train *train, int64_t batch);

/* ---- several ranks, as the programs of each are planned ---- */
/* NULL: so many ranks can share so many lanes; else a sentence that says which number could. */
const char *ranks_refused(Arena *a, int64_t lanes, int64_t ranks);
/* Numbers of each rank that are on their way at a time, where the longest range has so many. */
int64_t ranks_turn(int64_t longest, int ranks);
/* The training that each of them has: its lanes of a step. */
Train ranks_train(const Train *t, int ranks);
/* Bytes of a rank for what is on its way: t->owner is set. */
uint64_t ranks_room(const Model *m, const Train *t, int ranks, Arena *a);
typedef struct RanksNeed {
    int n;
    MemoryNeed *memory; /* of each, */
    uint64_t *
        sent; /* and bytes of gradients and weights that it sends in a step, in numbers of 4 bytes, and receives, too */
    int64_t exchanges; /* of a step */
} RanksNeed;
typedef struct RanksAskNeed {
    int ranks; /* which can share the lanes */
    int64_t batch;
    const MemoryAsk *memory;
} RanksAskNeed;
RanksNeed ranks_need(Ctx *ctx, const Model *m, const Train *train, const RanksAskNeed *how, Arena *a);
/* The need of a rank, where that of another one is known: they differ in what they update. */
MemoryNeed session_memory_update(Ctx *ctx, const Model *m, const Train *train, int64_t batch, const MemoryAsk *ask,
                                 const MemoryNeed *other);

#endif
