/* compare.h - runs side by side; private to compare.c and compare_facts.c.
 *
 * In:  what `vwn compare` was asked.   Out: groups of runs with their curves, and what is to be said beside them.
 * The one idea: a group is runs that are averaged; a fact is what the files of runs say, so that what they do not share is told.
 */
#ifndef VWN_COMPARE_H
#define VWN_COMPARE_H

#include "runtime/base/interval.h"
#include "runtime/checkpoint/history.h"
#include "runtime/checkpoint/settings.h"

/* What is known of a run besides its curve. */
typedef struct RunFacts {
    SettingList setting;
    const char *seed;      /* "" where nobody knows */
    const char *data;      /* names, sizes and marks of what was read, in the last start's record; "" */
    const char *tokenizer; /* as the file names it; "" */
    const char *machine;   /* "vm, AMD EPYC, cpu, 2 threads"; "" */
} RunFacts;

/* One run or several that are averaged. */
typedef struct RunGroup {
    const char *name, *operand;
    bool alone; /* it was named by itself */
    VEC(const char *) path;
    RunFacts *fact; /* by run */
    History *run;
    size_t n;
    double *x, *mean, *low, *high; /* the curve at the points of the first run that all have reached */
    size_t points;
} RunGroup;

typedef struct RunComparison {
    Session session;
    const vwn_compare_options *how;
    const vwn_writer *out;
    const char *metric;
    VEC(RunGroup) groups;
    RunGroup *group; /* the same */
    size_t n, runs;
    VEC(const char *) note;
    bool mixed; /* runs have different tokenizers, so that their losses are of different tokens */
} RunComparison;

/* The value at x between two points of a run; NaN outside. */
double compare_value(const History *h, HistoryAxis by, double x);
/* Reads what is known of all runs; with how->group makes those one that differ in the seed alone. */
void compare_read_facts(RunComparison *c);
/* What differs besides the settings that are compared: seeds, data, lengths, machines; runs compared in mid-schedule at `at` of each axis
 * (NaN: not compared there). Into c->note. */
void compare_note(RunComparison *c, const double at[HISTORY_AXES]);

#endif
