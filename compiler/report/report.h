/* report.h - what `vwn check`, `params`, `cost` and `resolve --origins` print.
 *
 * In:  a Unit.   Out: aligned text for people, or with `json` one JSON object per line.
 * The one idea: a report is a table of names, numbers and a remark; the text and the JSON come
 * from the same rows. Reports about a model raise ST_INPUT when the file has none.
 */
#ifndef VWN_REPORT_H
#define VWN_REPORT_H

#include "compiler/kernel/kernel_text.h"
#include "compiler/model/model.h"

typedef enum ReportBy { BY_SUMMARY, BY_LAYER, BY_NODE, BY_GROUP, BY_TENSOR } ReportBy;

/* Bytes that training needs as planned; the runtime knows them. */
typedef struct ReportMemory {
    int64_t batch_seqs;
    uint64_t weights, copies, buffers, gradients, optimizer, average, inputs, arena, program, total;
    uint64_t exchange;                     /* of a rank of several; 0: there is one */
    uint64_t arena_kept, arena_recomputed; /* without `recompute`; with it for these modules */
    const Name *recompute;
    size_t n_recompute; /* 0: no module is there to be computed again */
    bool asked;         /* the file asks for it */
    bool training;      /* false: the file does not train; one forward pass was planned */
    bool device;        /* the memory is a GPU's */
} ReportMemory;

/* How long training should take here; the runtime estimates it. */
typedef struct ReportTime {
    const char *why; /* there is no estimate; NULL: there is */
    int threads;
    const char *device;                           /* a GPU's name; "": this processor */
    double products, experts, attention, kernels; /* seconds of a step */
    int64_t launches;                             /* of a step */
} ReportTime;

/* Of several processes; the runtime plans it. Bytes. */
typedef struct RankCost {
    uint64_t optimizer, average, exchange, arena, total, sent; /* sent: in a step, of gradients and weights */
} RankCost;
typedef struct ReportRanks {
    int n;
    const RankCost *of;
    int64_t exchanges;         /* of a step */
    double bandwidth, latency; /* bytes a second of each rank, both ways at once, 0: not said; seconds of an exchange */
} ReportRanks;
/* What the exchange of a step takes where its bandwidth is said, else 0. */
double report_exchange_seconds(const ReportRanks *r);
void report_ranks(Buf *out, const ReportRanks *r, Arena *arena, bool json);

void report_check(Buf *out, const Unit *unit, bool json);
void report_params(Buf *out, Unit *unit, ReportBy by, bool json);
void report_losses(Buf *out, const Unit *unit, bool json);
/* `time`: NULL when the file does not train. `ranks`: NULL: one process; else memory and time are those of the first of them. */
void report_cost(Buf *out, Unit *unit, const ReportMemory *memory, const ReportTime *time, const ReportRanks *ranks,
                 bool json);
/* The plan and the proof of a growth step, as a difference, for people, or as one JSON object (schema "vwn.growth"). Whether it changes
 * anything. */
bool report_growth_step(Buf *out, const GrowStep *step, Arena *arena, bool json);
/* `layer`: "3", or a path of the model; NULL: all of it. DOT, or JSON. */
void report_graph(Buf *out, Unit *unit, const char *layer, bool json);
void report_origins(Buf *out, const Unit *unit, bool json);

/* ---- the stages of `vwn ir`, in the order in which data flows ---- */
typedef enum Stage {
    STAGE_AST,
    STAGE_TENSOR,
    STAGE_GRADIENT,
    STAGE_SIMPLE,
    STAGE_FUSE,
    STAGE_KERNEL,
    STAGE_THREADS,
    STAGE_C,
    STAGE_CUDA,
    STAGE_PLAN,
    STAGE_PASSES, /* the list of passes, with what each did */
    STAGE_PASS    /* behind one of them */
} Stage;
/* gpu: what STAGE_FUSE, STAGE_KERNEL, STAGE_PLAN and passes are of, instead of the CPU; a pass of GPUs alone is of one anyway.
 * pass: of STAGE_PASS (plan/passes.def). */
typedef struct StageOptions {
    const char *program; /* as below */
    const char *pass;
    bool gpu;
    int64_t batch_seqs;
} StageOptions;
void report_passes(Buf *out); /* their names, each with a sentence */
/* `program` is train, accumulate (train, adding to gradients), update, eval, count (targets of a batch) or predict; NULL: train if
 * the file trains, else predict. */
void report_stage(Buf *out, Unit *unit, Stage stage, const StageOptions *options);
struct PlanLayout; /* plan.h */
/* The plan of a program whose kernels are those of a GPU, `target`, in the scratch arena. layout: how weights, gradients and copies lie,
 * which the programs of a run share, in the order in which it makes their plans; NULL: each program by itself. */
struct Plan *report_device_plan(Unit *unit, const char *program, int64_t batch_seqs, const struct Target *target,
                                struct PlanLayout *layout);
/* Stages SIMPLE to PLAN of any graph; the earlier ones print it as it stands. */
void report_graph_stage(Buf *out, Ctx *ctx, const Graph *g, Stage stage, const StageOptions *options, int64_t B,
                        int64_t T);
/* Stages KERNEL and C of kernels that were read. */
void report_kernels_stage(Buf *out, Ctx *ctx, const KernelTexts *kernels, Stage stage);
/* Differentiates the output STEP_OBJECTIVE for the EXT_GRAD tensors that the graph declares and nothing
 * stores or reads, as step_gradient() does; without such tensors it is the same graph. */
Graph *report_add_gradient(Graph *g);

/* ---- texts about the language (doc.c) ---- */
/* What `vwn doc NAME` prints: a block or file of the library, a primitive, a node or statement, an
 * attribute, a quantity of the run; name NULL: the list of all. False: there is no such name, and *near is the nearest one or NULL. */
bool doc_write(Ctx *ctx, const char *name, Buf *out, Name *near);
/* What stands under a topic, by names, sentences and the words of other programs; the number of entries. */
size_t doc_search(Ctx *ctx, const char *word, Buf *out);
const char *doc_section(size_t i); /* of the reference; NULL behind the last */
typedef struct DocExample {
    const char *name, *call;
    const char *value; /* NULL: no numbers */
} DocExample;
const DocExample *doc_example(size_t i); /* of examples.def; NULL behind the last */

/* ---- shared by the reports ---- */
typedef struct Cell {
    const char *text;
    bool right; /* numbers */
} Cell;
typedef struct Table {
    Arena *arena;
    size_t columns;
    VEC(Cell) cell;
} Table;
/* Adds a cell; rows are filled from left to right. */
void table_text(Table *t, const char *text);
void table_texts(Table *t, const char *const *text, size_t n); /* so many */
void table_right(Table *t, const char *text);                  /* a number that is a text already */
void table_count(Table *t, int64_t n);
void table_print(Buf *out, const Table *t);         /* two spaces before and between columns */
const Model *report_model(const Unit *unit);        /* raises when there is none */
const char *bytes_text(Arena *arena, double bytes); /* "450.2 MiB" */

#endif
