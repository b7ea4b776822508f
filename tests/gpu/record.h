/* record.h - a backend before the emulator that writes launches down, for make_cases.c.
 *
 * In:  kernels that are wanted; launches of the programs that are run on it.
 * Out: the first launch of each of them as a file of cases.h: what it read, what it wrote, by how much a GPU's numbers may differ.
 *      Without an emulator nothing runs: what plans would launch is hashed.
 * The one idea: a GPU fuses multiplications with additions and has functions of its own. What the last bits of all that a launch
 * reads and the roundings inside of it are worth in what it writes, where sums cancel as where they do not, the emulator shows:
 * it launches again, with other last bits and rounding up, down and towards zero.
 */
#ifndef VWN_TEST_RECORD_H
#define VWN_TEST_RECORD_H

#include "cases.h"
#include "emu/backend_emu.h"
#include "runtime/base/sha256.h"

#include <stdio.h>

enum { RECORD_PLANS = 8 };

typedef VEC(const PlanKernel *) PlanKernels;
typedef struct Recorder {
    Backend base;
    Backend *emu; /* NULL: nothing is run */
    Ctx *ctx;
    const char *program, *folder; /* what is run now; where cases.bin is written */
    FILE *out;                    /* NULL: no case yet */
    uint64_t at;                  /* bytes written */
    Map blob;                     /* hash of bytes -> where they lie */
    struct {
        const Module *module;
        const Plan *plan;
        size_t next; /* the launch that comes next */
    } known[RECORD_PLANS];
    size_t n_known;
    Map wanted;         /* names of kernels that are still to be written down */
    PlanKernels kernel; /* that were: they outlive their plan */
    PlanKernels met;    /* without an emulator: all kernels of the plans */
    Sha256 hash;        /* and what they are and launch */
    const char *prelude;
    size_t prelude_length;
    int loose; /* regions whose bound is large beside their numbers */
} Recorder;

/* emu NULL: to look at plans alone. */
void record_start(Recorder *r, Ctx *ctx, Backend *emu, const char *folder);
void record_end(Recorder *r);

#endif
