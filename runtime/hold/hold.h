/* hold.h - a model that stays open between calls: its values, weights and gradients by name, and steps that the caller drives.
 *
 * In:  a run or a checked file, batches of the caller's.   Out: tensors in memory that is shared with whoever holds it. Each raises,
 * but for closing and for memory.
 */
#ifndef VWN_HOLD_H
#define VWN_HOLD_H

#include "compiler/model/model.h"
#include "runtime/checkpoint/source.h"
#include "runtime/data/feed.h"
#include "runtime/train/trainer.h"

/* What the caller may ask for by name. */
typedef struct HeldNode {
    Name name;
    Val value; /* of the model's graph; 0: one of the losses, which is made of it */
} HeldNode;

typedef struct HeldInput {
    const Ext *ext;
    InputRange range;
} HeldInput;

/* Memory that a tensor of the store lies in. */
typedef struct HeldMemory {
    struct vwn_memory *memory;
} HeldMemory;

typedef enum HeldWhat { HELD_VALUES, HELD_TRAINING_VALUES, HELD_GRADIENT, HELD_MORE_GRADIENT } HeldWhat;
/* A program, as long as it is among those that were used last. */
typedef struct HeldProgram {
    Arena *arena; /* of its graph; NULL: there is none */
    Program *program;
    HeldWhat what;
    int64_t B, T;
    const Name *name; /* of values that it gives, or has the gradients of */
    size_t n;
    uint64_t used;
} HeldProgram;
enum { HELD_PROGRAMS = 8 };

struct vwn_model {
    vwn_context *owner;
    Ctx *ctx;
    Session own, *session; /* the trainer's, where it trains */
    bool trains, broken;   /* broken: a bug ended a call */
    Source source;
    const Model *m;
    const Train *t; /* NULL: the file has none */
    const Tokenizer *tokenizer;
    Half half;
    VEC(HeldNode) node;
    Map node_at, memory; /* by Name: its node; by a tensor of the store: HeldMemory */
    VEC(HeldMemory *) all_memory;
    HeldInput *input;
    size_t n_input;
    HeldProgram program[HELD_PROGRAMS];
    uint64_t uses;
    /* of one that trains */
    Trainer trainer;
    Unit alone;
    Train train;
    vwn_train_options how;
    Hooks hooks;
    const vwn_batch *batch; /* of the step at hand */
    bool has_gradient;      /* the store has one that no update has taken, */
    double loss;            /* and this is its loss, where that is the file's */
};

Status hold_open(vwn_context *owner, const vwn_model_options *how, vwn_model **model, const Hooks *hooks);
void hold_close(vwn_model *v);
Status hold_describe(vwn_model *v, const vwn_writer *json);
Status hold_run(vwn_model *v, const vwn_batch *batch, const char *const *name, size_t n, vwn_tensor *out);
Status hold_tensor(vwn_model *v, vwn_tensor_kind kind, const char *name, vwn_tensor *out);
Status hold_put(vwn_model *v, vwn_tensor_kind kind, const vwn_tensor *numbers);
Status hold_encode(vwn_model *v, const char *text, size_t n, vwn_tensor *ids);
Status hold_decode(vwn_model *v, const int64_t *id, size_t n, const vwn_writer *out);
/* drive.c */
Status hold_gradient(vwn_model *v, const vwn_batch *batch, double *loss);
Status hold_backward(vwn_model *v, const vwn_batch *batch, const vwn_tensor *gradient, size_t n, bool add);
Status hold_update(vwn_model *v, double loss, vwn_progress *progress);
Status hold_batch(vwn_model *v, vwn_tensor out[3], size_t *n);
Status hold_save(vwn_model *v);

/* ---- private to runtime/hold ---- */
/* How many sequences of how many positions a batch has; what it gives fits the model. */
void hold_measure_batch(vwn_model *v, const vwn_batch *batch, int64_t *B, int64_t *T);
/* Uploads the sequences first .. first + B - 1 of a batch, as far as the program reads them; `extra`: what else it reads. */
void hold_feed(vwn_model *v, Program *p, const vwn_batch *batch, int64_t first, const vwn_tensor *extra, size_t n);
Name hold_find(vwn_model *v, const char *name, Val *value);
/* Of values, under their names. */
HeldProgram *hold_program(vwn_model *v, HeldWhat what, int64_t B, int64_t T, const Name *name, const Val *value,
                          size_t n);
/* What a program of such values depends on besides; `training`: of the next step. vars: HV_COUNT numbers, which it fills. */
RunArgs hold_args(vwn_model *v, double *vars, bool training);
void hold_check_gradient(vwn_model *v, const vwn_tensor *x, const Shape *s, int64_t B, int64_t T);
/* Of a program of values: its graph stores them; each gets memory that nobody else holds, before the program is built and before
 * each run; the caller gets a hold on it. */
void hold_store_results(vwn_model *v, Graph *g, const HeldProgram *p, const Val *value);
void hold_place_results(vwn_model *v, const Graph *g, const HeldProgram *p);
void hold_give_results(vwn_model *v, const HeldProgram *p, vwn_tensor *out);
/* Adds the shape of a tensor, with B and T, "[B, T, 256]". */
void hold_print_shape(Buf *b, const Shape *s);
const char *hold_extents(vwn_model *v, int rank, const int64_t *extent); /* "[2, 16]" */
/* A new tensor of the caller's. */
void hold_new(vwn_model *v, const char *name, DType dtype, int rank, const int64_t *extent, vwn_tensor *out);
const char *hold_type(const vwn_model *v, DType dtype);

/* shared.c: never raises. NULL: there is none. */
struct vwn_memory *memory_new(uint64_t bytes);
struct vwn_memory *memory_keep(struct vwn_memory *m);
void memory_release(struct vwn_memory *m);
void *tensor_dlpack(const vwn_tensor *tensor);
void dlpack_unused(void *capsule);
void *memory_at(const struct vwn_memory *m);
bool memory_is_alone(const struct vwn_memory *m, uint64_t bytes); /* it has one holder, and is of this size */

#endif
