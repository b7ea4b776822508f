/* files.h - texts to train and evaluate on, and weights as safetensors files. */
#ifndef FILES_H
#define FILES_H

#include "compute.h"

/* A file as token ids. */
typedef struct Text {
    const char *path;
    uint32_t *id;
    int64_t count;
} Text;
/* Reads a whole file as the model's data says (Model.id_bits, .id_header, .symbol). */
Text read_text(const char *path);

/* How far training has come. */
typedef struct Progress {
    int64_t step, tokens, sequences;         /* done */
    double train_loss, eval_loss, grad_norm; /* the latest; infinite before the first */
    double loss_scale;                       /* of the next step; 0: the loss is not scaled */
    int64_t good_steps;                      /* since the scale has changed */
    int64_t skipped;                         /* of the steps those that changed no weight */
} Progress;
extern const Progress no_progress;

/* Reads all weights, and with `states` those of the optimizer where the file has them. Every
 * weight must be there in its shape; other tensors are passed over. F32 and F64 are understood.
 */
void read_weights(const char *path, Run *run, Progress *progress, bool states);
/* Writes weights and states; a file that was there is replaced at the end. */
void write_weights(const char *path, const Run *run, const Progress *progress);

#endif
