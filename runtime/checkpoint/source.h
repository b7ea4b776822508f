/* source.h - a trained model to evaluate or to sample from. */
#ifndef VWN_SOURCE_H
#define VWN_SOURCE_H

#include "checkpoint.h"

typedef struct Source {
    Checkpoint *checkpoint;
    Unit *unit; /* checked from the text in the checkpoint; model and, unless model_only, train */
} Source;

/* `where`: a run directory (its newest whole checkpoint), "DIRECTORY@STEP", or a checkpoint
 * file. Raises ST_USAGE or ST_ENVIRONMENT when there is none, ST_INPUT when its text does not
 * check. */
Source source_open(Session *s, const char *where, bool model_only, const Hooks *hooks);
/* Its two halves; they raise alike. */
Checkpoint *source_checkpoint(Session *s, const char *where);
Unit *source_unit(Session *s, const Checkpoint *c, bool model_only, const Hooks *hooks);
bool source_is_folder(const char *path);
/* The tensors of a run's newest whole checkpoint, of "DIRECTORY@STEP", or of any safetensors file; closed with the session. Raises
 * as above. */
const SafeFile *source_tensors(Session *s, const char *where);
/* Copies weights and buffers into the store, after the programs were built: the averages of
 * weights that the run kept, unless `last`. Whether they are averages. */
bool source_load(Session *s, const Source *source, bool last);

/* A dry line of text through a writer. */
void write_text(const vwn_writer *out, const char *s, size_t n);

#endif
