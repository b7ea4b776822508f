/* run_list.h - which runs there are: those below a folder, and the points of a sweep.
 *
 * In:  a folder.   Out: run directories, in order.
 * The one idea: what is a run is told by its files, and what is a point by the manifest of the folder above it.
 */
#ifndef VWN_RUN_LIST_H
#define VWN_RUN_LIST_H

#include "run_dir.h"

/* A point of a sweep, as its manifest has it. */
typedef struct ListedPoint {
    const char *path, *name; /* "runs/sizes/D-16_seed-1", "D-16_seed-1" */
    const char *config;      /* the name without its seed: equal for points that differ in that alone */
    const char *state;       /* "waiting", "done", ... */
    double params;           /* NaN: not counted yet */
    bool there;              /* its run has begun */
} ListedPoint;
typedef struct ListedSweep {
    const char *name; /* of the sweep */
    VEC(ListedPoint) point;
    size_t waiting;
} ListedSweep;
/* Raises ST_ENVIRONMENT where the manifest is none. */
ListedSweep sweep_list(Session *s, const char *folder);

typedef struct ListedRun {
    const char *path;
    bool sweep; /* it is the folder of one; its runs follow */
} ListedRun;
typedef VEC(ListedRun) RunList;
/* All runs and sweeps in the folder and below it, or the folder itself, which is one. Links are followed to runs alone. Folders that
 * cannot be read are warned of. Raises ST_USAGE where there is no such folder. */
RunList run_list(Session *s, const char *folder);

/* Behind a sentence that says of `where` that there is no such run: "; did you mean `nano`?", those that stand there, or "". */
const char *run_meant(Session *s, const char *where);

/* Operands of a verb for runs: each folder of a sweep in the place of its runs that have begun, any other folder in that of all runs
 * below it. Raises ST_USAGE where no point of a sweep has begun; what has no runs stays as it is. */
typedef VEC(const char *) RunPaths;
RunPaths run_paths(Session *s, const char *const *operand, size_t n);

#endif
