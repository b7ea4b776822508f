/* steps.h - a kernel for the threads of a device is checked, run, and given faults in what the last passes make of it.
 *
 * In:  a scheduled kernel, and the same mapped to threads.
 * Out: the mapped one is a sound program and gives, run as it stands, the numbers of the scheduled one; without one of its
 *      steps, or with one in another place or of another statement, it is not sound; nor is it where of two products that are
 *      computed at one time one is left out, is computed twice, or takes what the other one gives; nor without a total of a sum
 *      that threads share, with one that is taken twice or by another lane, or where lanes compute, store or give what is not theirs;
 *      nor where a statement stands for other elements than its loop has, or says otherwise how these go together.
 */
#ifndef VWN_STEPS_H
#define VWN_STEPS_H

#include "support/drawn.h"
#include "support/harness.h"

#include "compiler/kernel/kernel.h"

typedef struct StepTally {
    int checked, run, faults, found;
    int pieces, rounds, sums;     /* kernels with steps of each kind */
    int pairs;                    /* products that are computed beside another one */
    int totals, lanes;            /* statements of totals, and of lanes, */
    int begins;                   /* statements of what a row begins with, */
    int parts;                    /* and of partial sums of a partition */
    int loaded;                   /* choices that are what was loaded */
    int ways;                     /* products whose ways are given faults, */
    size_t products;              /* of so many */
    CaseDraw of_totals, of_lanes; /* of which these are given faults */
    CaseDraw of_ways;             /* and of these products */
    int arguments;                /* faults in what kernels say of the arguments of their texts */
    int elements;                 /* statements of several elements that are given faults, */
    size_t wide;                  /* of so many, */
    CaseDraw of_elements;         /* these */
    char missed[200];             /* the first fault that was not found */
} StepTally;

void plant_steps(Harness *h, StepTally *t, const Kernel *k, const Kernel *mapped, const char *name);

#endif
