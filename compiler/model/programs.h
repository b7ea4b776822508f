/* programs.h - the programs of a run: each a graph that is made of a model. step.c has the functions. */
#ifndef VWN_PROGRAMS_H
#define VWN_PROGRAMS_H

#include "model.h"

typedef enum ProgramKind {
#define PROGRAM(kind, name, about, graph, trains, held_out, levels, float32) PROGRAM_##kind,
#include "programs.def"
#undef PROGRAM
    PROGRAM_KINDS
} ProgramKind;

typedef struct ProgramRow {
    const char *name, *about;
    bool trains, held_out, levels, float32; /* see programs.def */
} ProgramRow;
const ProgramRow *program_row(ProgramKind kind);
/* PROGRAM_KINDS: there is no program of this name. */
ProgramKind program_named(const char *name);
/* Those names, with commas between them. */
const char *program_names(Arena *arena);
/* The graph of a program, in `arena`. `t` may be NULL for those that are not of training. NULL: the model has nothing for it to
 * count. */
Graph *program_make(ProgramKind kind, const Model *m, const Train *t, int level, Arena *arena);
/* How often a step of parts of `micro` sequences runs a program, over all levels of its lanes; 0: never. */
int64_t program_runs(ProgramKind kind, const Train *t, int64_t micro);
/* Whether a run has this program: a step runs it, or an evaluation does, and there are any. */
bool program_is_run(ProgramKind kind, const Train *t, int64_t micro);

#endif
