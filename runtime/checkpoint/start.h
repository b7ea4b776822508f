/* start.h - weights that a run begins with instead of drawn ones.
 *
 * In:  a StartSpec, the model.   Out: an account of every tensor of both sides, and the weights in the store.
 * The one idea: both sides are compared before anything is touched; what would be lost or drawn without a word
 * of the file is an error that shows both.
 */
#ifndef VWN_START_H
#define VWN_START_H

#include "source.h"

typedef enum StartFate {
    FATE_TAKEN, /* as it is */
    FATE_GROWN, /* an axis of the model is longer: the rest is drawn */
    FATE_CUT,   /* an axis of the model is shorter: the rest is dropped; another may be longer */
    FATE_NEW,   /* the model only */
    FATE_LEFT,  /* the other side only */
    FATES
} StartFate;
extern const char *const fate_name[FATES];

/* A tensor that a `names` table has for a part of a weight, or for several weights. */
typedef struct StartPart {
    const ModelAlias *alias;
    const SafeFile *file;
    const SafeTensor *tensor;
} StartPart;

typedef struct StartEntry {
    StartFate fate;
    const Param *param;       /* LEFT: NULL */
    const SafeFile *file;     /* NEW: NULL, */
    const SafeTensor *tensor; /* as this */
    bool transposed;          /* by a `names` table */
    const StartPart *part; /* of a weight that does not lie there by itself: all of it, or what there is of it; TAKEN */
    size_t n_part;         /* and `tensor` is that of the first */
    Name lacks;            /* of which there is no tensor of this name; NULL: there are all */
    bool grows;            /* an axis is longer */
    const GrowthAxis *axis; /* of GROWN from a run: how its axes grow; NULL: old numbers stand at the beginning */
} StartEntry;

typedef struct Start {
    const StartSpec *spec;
    const char *path;
    const Model *model;     /* that begins */
    Checkpoint *checkpoint; /* of a run, */
    const Unit *unit;       /* its model; NULL for other files */
    bool average;           /* the averages that the run kept */
    SafeFile *file;
    size_t n_file;
    Map *shard;        /* of a name in an index, the file that has it, or NULL; no index: NULL */
    StartEntry *entry; /* in the order of the model, then what is left behind */
    size_t n, count[FATES];
    int64_t taken, drawn, dropped; /* numbers */
} Start;

/* Opens and compares. Files diagnostics and raises ST_INPUT where the file does not allow what would happen,
 * ST_ENVIRONMENT where nothing can be read. */
Start *start_open(Session *s, const StartSpec *spec, const Model *m, const Hooks *hooks);
/* Into the store, which holds drawn values, averages included. */
void start_load(Session *s, const Start *start);

/* Entries that differ in their layers alone, as one: the first, and how many there are from *i on, which is moved on. */
typedef struct StartRow {
    const StartEntry *first;
    const char *path; /* "layer[*].ffn.up.W" */
    size_t n;
} StartRow;
/* All rows, by fate and then in the order of the entries. */
StartRow *start_rows(const Start *start, Arena *a, size_t *n);
/* "[16, 32]" of the model's side, and of the other; "" where there is none. */
void start_shapes(const StartEntry *e, char there[100], char here[100]);
/* "layer[3].attention.W" as "layer[*].attention.W". */
const char *path_pattern(Arena *a, const char *path);

#endif
