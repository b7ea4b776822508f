/* export.h - a model as a folder of C, or of CUDA C, that builds without vwn.
 *
 * In:  a model, how it is trained, what its data looks like.
 * Out: texts with their names: kernels, plans as calls, and the files that every folder shares.
 * The one idea: the folder is the plan written down. Kernels are the very texts that a backend
 * compiles; a launch becomes a call with its numbers; main.c and the like are plain files
 * (compiler/emitted/, and of the runtime what needs nothing else), copied as they are. A folder
 * for a GPU has another layer of calls and other kernels, and is the same else.
 */
#ifndef VWN_EXPORT_H
#define VWN_EXPORT_H

#include "compiler/model/model.h"

typedef struct ExportOptions {
    const Unit *unit;
    const Train *train; /* NULL: evaluation only, see `data` */
    int64_t batch;      /* sequences of one run of a program */
    int64_t context;
    const DataSpec *data;   /* NULL: a text of bytes */
    const uint32_t *symbol; /* the characters of a chars() tokenizer, ascending; NULL: bytes or ids */
    int64_t n_symbols;
    int64_t separator; /* the token that documents begin with, -1: none */
    uint64_t seed;     /* of the order of the data and of dropout */
    bool cuda;         /* for a GPU */
    bool fast;         /* where it is faster, sums are added up in any order */
} ExportOptions;

typedef struct ExportFile {
    const char *name, *text;
    size_t length;
} ExportFile;
typedef VEC(ExportFile) ExportFolder;

/* Everything but the weights, which main.c reads from EXPORT_WEIGHTS. The first file is plan.c,
 * whose first line is EXPORT_MARK. Raises ST_INPUT for a model that text cannot feed, or that
 * needs kernels which a GPU has not. */
void export_folder(ExportFolder *out, Ctx *ctx, Arena *arena, const ExportOptions *how);
#define EXPORT_MARK    "/* plan.c - written by `vwn emit`:"
#define EXPORT_WEIGHTS "weights.safetensors"

/* The files that every folder shares; generated from compiler/emitted/ and runtime/. */
size_t emitted_count(void);
const char *emitted_path(size_t i);
const char *emitted_text(const char *path, size_t *n);

#endif
