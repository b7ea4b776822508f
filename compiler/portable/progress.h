/* progress.h - what the host carries from step to step, and how a file keeps it.
 *
 * In:  the numbers of a step.     Out: what run-time scalars read before the next one; texts under keys, and back.
 * The one idea: a step changes a progress in one way, and a file has one key for each of its fields.
 */
#ifndef VWN_PROGRESS_H
#define VWN_PROGRESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "host_value.h"
#include "json.h"

enum { RECENT = 100 }; /* losses kept to notice a spike */

typedef struct Progress {
    int64_t step, tokens, sequences;                    /* done so far */
    int64_t eval_step;                                  /* of eval_loss; -1: none, or not recorded */
    double train_loss, eval_loss, grad_norm, best_eval; /* NaN before the first */
    double recent[RECENT];                              /* the last losses, oldest first */
    int n_recent;
    double loss_scale;              /* of fp16, of the next step; 0: there is none */
    int64_t good_steps;             /* since the scale has changed */
    int64_t skipped;                /* steps without an update: a gradient was not finite */
    int64_t from_step, from_tokens; /* where the schedule's time began: 0, or at a growth step with `train { }` */
    bool due;                       /* the next growth step begins here */
    struct {
        double sum, last; /* of the window that is open; the mean of the one before, NaN: there is none */
        int64_t n, steps; /* numbers in the sum; steps of the window */
        bool over;        /* that window was no better */
    } plateau;            /* of the next growth step */
} Progress;
extern const Progress progress_none; /* before the first step */

/* What run-time expressions read after this progress. A loss or a norm that has not been measured
 * yet is infinite. `length` in steps; `per_epoch`: tokens of an epoch, 0 when unknown. */
void progress_vars(const Progress *p, double length, double per_epoch, double vars[HV_COUNT]);
/* Then, where the last step of that progress is not known yet: what they read if it was skipped. */
void progress_skipped(const Progress *p, double vars[HV_COUNT]);

/* What the norm of a step's gradient says of it. What is computed in fp16 may leave its range: then no weight was changed
 * (STEP_SKIPPED), and the next loss is scaled by half as much. Where the scale cannot be halved, or there is none, the gradient
 * itself is not finite (STEP_BAD), and the progress is as it was. */
typedef enum StepEnd { STEP_GOOD, STEP_SKIPPED, STEP_BAD } StepEnd;
StepEnd progress_norm(Progress *p, double norm);
/* The step is done. */
void progress_step(Progress *p, double loss, int64_t sequences, int64_t context);
/* Held-out data were evaluated behind it, with this loss. */
void progress_evaluated(Progress *p, double loss);
/* The last step of a schedule of `length` steps: a growth step that began it anew is not its step 0. */
int64_t progress_end(const Progress *p, int64_t length);

/* ---- in a file ---- */

enum { PROGRESS_TEXT = 64 + 32 * RECENT };
/* The key of field i below progress_fields, and its text; NULL: it has nothing to say. */
const char *progress_text(const Progress *p, size_t i, char text[PROGRESS_TEXT]);
extern const size_t progress_fields;
/* From an object of strings, the metadata of a file. Returns NULL, or the key whose text is `missing`, or not one of
 * progress_text(): a NUL within it is damage, and not the end of a text that is fine. */
const char *progress_read(Progress *p, const Json *metadata, bool *missing);

#endif
