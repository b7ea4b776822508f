/* exec.h - programs: a graph made runnable, on a backend or in the reference evaluator.
 *
 * A Program is built once (simplify, plan, compile) and run many times without allocating. External
 * tensors live in a Store that several programs share (training step, update, evaluation).
 */
#ifndef VWN_EXEC_H
#define VWN_EXEC_H

#include "runtime/base/backend.h"
#include "kernel_set.h"

/* ---- external tensors, by kind and name ---- */
typedef struct Store Store;
typedef struct StoreEntry {
    ExtKind kind;
    Name name;
    DType dtype;
    uint8_t rank;
    int64_t d[MAX_RANK];
    int64_t elements;
    void *memory; /* on the backend: float or int64_t; double with the reference evaluator. On a device NULL
                     before it is used */
    int holder;   /* 0: every rank has it; k + 1: rank k alone does, */
    bool
        elsewhere; /* and it is another one: here are its name and its shape. Nothing is read from it; what is put into it (as
                       float64: from a file, or drawn) is let go, as all ranks put the same */
} StoreEntry;
/* backend NULL: reference evaluator, float64 on the host. */
Store *store_new(Ctx *ctx, Backend *backend);
void store_free(Store *s);
/* Makes room (zeroed) for a tensor of this exact shape, or finds it; inputs may grow with B, T. */
Status store_add(Store *s, ExtKind kind, Name name, DType dtype, uint8_t rank, const int64_t *d, StoreEntry **out);
/* The same of a tensor that rank `holder` alone has. */
Status store_add_held(Store *s, ExtKind kind, Name name, uint8_t rank, const int64_t *d, int holder, bool here,
                      StoreEntry **out);
/* The same of a tensor whose numbers lie in memory of the caller's from now on, which is aligned as the store's own, and stays
 * until another takes its place or the store is freed. One that is there already has its numbers copied there, unless they were
 * in memory of the caller's before; then its shape may be another one. Not on a device with memory of its own. */
Status store_place(Store *s, ExtKind kind, Name name, DType dtype, uint8_t rank, const int64_t *d, void *memory,
                   StoreEntry **out);
/* Memory for the tensors and arenas of a device that have none yet; else it is had when one of them is first used. */
Status store_settle(Store *s);
StoreEntry *store_find(Store *s, ExtKind kind, Name name); /* NULL when absent */
size_t store_count(const Store *s);
StoreEntry *store_at(Store *s, size_t i);
uint64_t store_bytes(const Store *s);
/* Host numbers in and out; `n` elements from `at`. Reals travel as float64 or float32. */
Status store_put_f64(Store *s, StoreEntry *e, int64_t at, int64_t n, const double *v);
Status store_put_f32(Store *s, StoreEntry *e, int64_t at, int64_t n, const float *v);
Status store_put_i64(Store *s, StoreEntry *e, int64_t at, int64_t n, const int64_t *v);
Status store_get_f64(Store *s, const StoreEntry *e, int64_t at, int64_t n, double *v);
Status store_get_f32(Store *s, const StoreEntry *e, int64_t at, int64_t n, float *v);
/* The real numbers of a tensor where they lie, if a processor's backend has them; else NULL, and store_get_f32() brings them. */
const float *store_floats(const Store *s, const StoreEntry *e);
const char *store_why(const Store *s); /* sentence of the last failure */

/* ---- programs ---- */
typedef struct Program Program;
typedef struct ProgramOptions {
    const char *name; /* "train", "update", "eval", for messages */
    int64_t B, T;
    bool no_fusion, single; /* see PlanOptions: for tests */
    bool per_row;           /* see PlanOptions */
    bool share_arena;       /* use the store's common arena (programs that never run at once) */
    Half half;              /* see PlanOptions; bf16 on a backend that has it, or in the evaluator */
    int64_t shared;         /* see PlanOptions */
    PlanLayout *layout;     /* see PlanOptions; NULL: the store's */
    struct KernelCache *
        kernel_cache; /* see PlanOptions; outlives the program. Not for a device, whose texts depend on what was met before */
    KernelSet *gather; /* of program_prepare(): the kernels are only noted there; NULL: they are found or compiled */
} ProgramOptions;
/* Adds missing ext tensors of the graph to the store. `g` must live as long as the program, which
 * shares its tables and host scalars. On failure *out is NULL, `why` says it. */
Status program_build(Store *s, const Graph *g, const ProgramOptions *how, Program **out, BuildReport *report);
/* To the graph of an update, built after all programs that read weights in 16 bits: it writes these, too. */
void program_write_copies(Store *s, Graph *g);
const Graph *program_graph(const Program *p); /* as it is planned: of plan_graph() */
void program_extents(const Program *p, int64_t *B, int64_t *T);
void program_free(Program *p);
/* Finds the kernels of a program that is built later, or compiles them into the cache; nothing else is kept. */
Status program_prepare(Store *s, const Graph *g, const ProgramOptions *how, BuildReport *report);
typedef struct RunArgs {
    const double *host_vars;    /* HV_COUNT values */
    uint64_t seed, step, first; /* random numbers: RandomKey */
} RunArgs;
Status program_run(Program *p, const RunArgs *args);
/* From now on each run adds the seconds of launch i of program_plan() to seconds[i]; NULL: no more.
 * The array stays the caller's. Without effect in the reference evaluator, which has no launches. */
void program_watch(Program *p, double *seconds);
/* How launch i lies on a device; false where it is no kernel of one. */
bool program_shape(Program *p, size_t i, LaunchShape *out);
/* Host-read outputs of the last run. */
size_t program_results(const Program *p);
Name program_result_name(const Program *p, size_t i);
size_t program_result_size(const Program *p, size_t i); /* its numbers */
/* Where result i of the last run lies: on the backend, or, in the reference evaluator, as float64; and its type. */
const void *program_result_memory(Program *p, size_t i, DType *dtype);
Status program_scalar(Program *p, Name result, double *v);
/* Copies the tensor as float64; d and rank are set; `v` holds at most `capacity` numbers. */
Status program_tensor(Program *p, Name result, uint8_t *rank, int64_t d[MAX_RANK], double *v, size_t capacity);
uint64_t program_arena_bytes(const Program *p);
const Plan *program_plan(const Program *p); /* NULL in the reference evaluator */
const char *program_why(const Program *p);  /* sentence of the last failure */
/* The first node, in order, whose value holds a NaN or an infinity in a run with `args`, by a replay in
 * the reference evaluator at the store's present values: its module path and span. False if none. */
bool program_first_bad(Program *p, const RunArgs *args, Name *path, Span *span);

#endif
