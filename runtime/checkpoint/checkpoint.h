/* checkpoint.h - the state of a run as a safetensors file.
 *
 * In:  a store of tensors and what the host knows of a run.   Out: a file that resumes bit for
 * bit.
 * The one idea: a checkpoint is enough to go on, to sample and to evaluate: it carries the
 * resolved text of the model, the tokenizer's vocabulary and the fingerprint of the data beside
 * the tensors.
 */
#ifndef VWN_CHECKPOINT_H
#define VWN_CHECKPOINT_H

#include "compiler/growth/growth.h"
#include "compiler/portable/progress.h"
#include "runtime/exec/session.h"
#include "runtime/data/tokenizer.h"

/* What does not change during a run. Strings are UTF-8. */
typedef struct RunMeta {
    const char *version, *model, *text, *lets, *data;
    const char *
        folder; /* that the paths in `text` are relative to; in a file from its own folder on, so that runs may be moved with it */
    const char *grown; /* growth steps that are carried out: "wider 20 deeper 40 ", with the updates before each */
    const Tokenizer *tokenizer;
    uint64_t seed;
} RunMeta;

/* Whether every number that a checkpoint would hold, and this rank has, is finite: ST_DIVERGED with `why`, or ST_ENVIRONMENT. */
Status checkpoint_look(Session *s, const Model *m, char why[WHY]);
/* Writes folder/NAME: parameters, buffers, optimizer states, metadata. ST_ENVIRONMENT with `why`, or ST_DIVERGED where a
 * number is not finite: no such checkpoint is ever there. Then nothing has changed in the folder. Raises only when out of
 * memory. Of several ranks the first calls it, and all others checkpoint_give() at the same time: states that one of them has come a
 * small piece at a time. */
Status checkpoint_write(Session *s, const Model *m, const RunMeta *meta, const Progress *p, const char *folder,
                        const char *name, char why[WHY]);
Status checkpoint_give(Session *s, const Model *m, char why[WHY]);

/* Opens and verifies a checkpoint written by vwn; the file is closed with the session. */
typedef struct Checkpoint {
    SafeFile file;
    Progress progress;
    RunMeta meta;
} Checkpoint;
bool checkpoint_open(Session *s, const char *path, Checkpoint *c, char why[WHY]);
typedef enum CheckpointPart {
    CHECKPOINT_ALL,     /* weights, buffers and states: to go on with training */
    CHECKPOINT_WEIGHTS, /* weights of the last step, and buffers */
    CHECKPOINT_AVERAGE  /* the same, but averages in the place of weights that have one */
} CheckpointPart;
/* Copies a part into the store, where it must have its place. False with `why` when a tensor is
 * missing, unknown or of another shape. */
bool checkpoint_load(Session *s, const Model *m, const Checkpoint *c, CheckpointPart part, char why[WHY]);
typedef struct GrowthCall {
    uint64_t seed;
    size_t number;     /* of the step, in the order of the file, from 1 */
    bool weights_only; /* the store has no places for states, as nothing is trained in it */
} GrowthCall;
/* grown.c: the checkpoint of the model before the step into a store of the model after it, which holds the initial
 * values drawn under the seed: blocks that are taken, with their moments, times what the plan says; new ones drawn, with moments of 0.
 * False with `why` when the checkpoint is not of that model. */
bool checkpoint_grow(Session *s, const GrowthPlan *plan, const Checkpoint *c, const GrowthCall *how, char why[WHY]);
/* The state of a parameter that the optimizer keeps, and the average; NULL: there is none. */
typedef enum StateKind { STATE_FIRST, STATE_SECOND, STATE_AVERAGE, STATE_KINDS } StateKind;
Name checkpoint_state_name(const Session *s, const Param *p, StateKind which);
StoreEntry *checkpoint_state(const Session *s, const Param *p, StateKind which);
StoreEntry *checkpoint_entry(const Session *s, const Param *p);
/* States of parameters that a growth step holds still, in the rank that has them: no program has them, and checkpoints keep them. */
void checkpoint_hold(Session *s, const Model *m, const Train *t);
StoreEntry *checkpoint_born(const Session *s, const Param *p, int axis);  /* born_name() of it */
StoreEntry *checkpoint_since(const Session *s, const Param *p, int axis); /* since_name() */
/* Whether the run kept averages of its weights. */
bool checkpoint_has_average(const Checkpoint *c);
/* "layer[1].ffn.up.W:m": what the optimizer keeps, an average, or with which step a part or its moments came. */
bool checkpoint_is_state(const char *name);
/* Whether its numbers are of the type that this session computes in (else resuming is not
 * exact). */
bool checkpoint_is_exact(const Session *s, const Checkpoint *c);

#endif
