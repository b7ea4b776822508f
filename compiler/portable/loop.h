/* loop.h - the order of work in a training step and in an evaluation.
 *
 * In:  functions that feed and run programs.     Out: they were called.
 * The one idea: the runtime, which queues calls of a device, and an emitted folder, which waits for each, do the same in the
 * same order, so that their numbers are the same.
 */
#ifndef VWN_LOOP_H
#define VWN_LOOP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* count: what a batch has of labels, added up over its parts; fresh: gradients are written; more: they are added. */
typedef enum LoopProgram { LOOP_COUNT, LOOP_FRESH, LOOP_MORE, LOOP_EVAL } LoopProgram;

typedef struct LoopCalls {
    void (*begin_count)(void *user);                        /* before the parts of a batch are counted: totals are 0 */
    void (*part)(void *user, LoopProgram which, int64_t k); /* feeds micro-batch k of the step, and runs the program */
} LoopCalls;
/* Forward and backward over all parts, once the labels of all are counted (`counts`: there is such a program). */
void loop_gradient(const LoopCalls *c, void *user, int64_t parts, bool counts);

/* Random numbers of an evaluation are keyed by the window's place in it, by no seed and by no step: the same weights give the
 * same numbers, whatever was trained before, and in however many parts. */
enum { LOOP_NO_SEED = 0, LOOP_NO_STEP = -1 };

typedef struct EvalCalls {
    void (*begin_count)(void *user);
    int64_t (*feed)(void *user, int64_t first, int64_t of); /* windows first .. of `of`; how many there was room for */
    void (*run)(void *user, LoopProgram which, int64_t first, int64_t rows, int64_t of); /* on these windows of `of` */
    void (*results)(void *user, double *out);                                            /* of the eval program */
} EvalCalls;
typedef struct EvalSize {
    int64_t there;   /* windows of the data */
    int64_t batches; /* so many of them are asked for, of `batch` windows; 0, or more than there are: all */
    int64_t batch;
    size_t results; /* numbers of the eval program */
} EvalSize;
/* Sums of the results over all windows into `all`; `part` is room for as many. How many windows. */
int64_t loop_evaluate(const EvalCalls *c, void *user, const EvalSize *size, bool counts, double *part, double *all);

/* Whether what comes every so many steps comes after this one; 0: never. */
static inline bool loop_due(int64_t step, int64_t every) { return every > 0 && step % every == 0; }

#endif
