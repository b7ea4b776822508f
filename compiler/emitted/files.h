/* files.h - texts to train and evaluate on, and weights as safetensors files. */
#ifndef FILES_H
#define FILES_H

#include "compute.h"
#include "progress.h"
#include "tokens.h"

/* A file as token ids, in memory that begins at `bytes`. */
typedef struct Text {
    const char *path;
    void *bytes;
    Tokens tokens;
} Text;
/* Reads a whole file as the model's data says (Model.id_bits, .id_header, .symbol). */
Text read_text(const char *path);

/* Reads all weights, and with `states` those of the optimizer where the file has them. Every
 * weight must be there in its shape; other tensors are passed over. The file may be of this program or a
 * checkpoint of vwn. */
void read_weights(const char *path, Run *run, Progress *progress, bool states);
/* Writes weights and states; a file that was there is replaced at the end. */
void write_weights(const char *path, const Run *run, const Progress *progress);

#endif
