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

/* A lane is a fixed share of each step's sequences, in parts whose sums are added in order; lanes are added by one binary tree:
 * neighbours first. So what a step sums to depends on the number of its lanes, and not on who computes which of them. */
typedef struct StepLanes {
    int64_t all; /* of a step: a power of two */
    int64_t
        first; /* those computed here are first .. first + here - 1; `here` is a power of two that divides `first` */
    int64_t here;
} StepLanes;
enum { LOOP_LANES_MOST = 1024, LOOP_LANES_LEVELS = 10 };
/* All lanes of a step, as one process computes them; 0: the only one. */
static inline StepLanes lanes_of(int64_t n) { return (StepLanes){n > 0 ? n : 1, 0, n > 0 ? n : 1}; }
/* Kept sums at a time beside the sum at hand: level i waits for the 2^i lanes behind its own. */
static inline int lanes_levels(const StepLanes *l)
{
    int n = 0;
    for (int64_t i = l->here; i > 1; i /= 2)
        n++;
    return n;
}
/* v holds n numbers of each of `lanes` lanes, one lane after the other; the first n become the sums over all. */
void lanes_add(double *v, int64_t lanes, size_t n);

/* count: what a batch has of labels, added up over its parts; fresh: gradients are written; more: they are added. */
typedef enum LoopProgram { LOOP_COUNT, LOOP_FRESH, LOOP_MORE, LOOP_EVAL } LoopProgram;

typedef struct LoopCalls {
    void (*begin_count)(void *user);                        /* before the parts of a batch are counted: totals are 0 */
    void (*part)(void *user, LoopProgram which, int64_t k); /* feeds micro-batch k of the step, and runs the program */
    void (*keep)(void *user, int level);                    /* the gradients become those of the level */
    void (*join)(void *user, int level);                    /* those of the level are added to the gradients */
} LoopCalls;
/* Forward and backward over the `parts` parts of a step, of which each lane has as many, once the labels of all are counted
 * (`counts`: there is such a program). Gradients are then the sums over the lanes that are computed here. */
void loop_gradient(const LoopCalls *c, void *user, int64_t parts, const StepLanes *lanes, bool counts);

/* Random numbers of an evaluation are keyed by the window's place in it, by no seed and by no step: the same weights give the
 * same numbers, whatever was trained before, and in however many parts. */
enum { LOOP_NO_SEED = 0, LOOP_NO_STEP = -1 };

typedef struct EvalCalls {
    void (*begin_count)(void *user);
    int64_t (*feed)(void *user, int64_t first, int64_t of); /* windows first .. of `of`; how many there was room for */
    void (*run)(void *user, LoopProgram which, int64_t first, int64_t rows, int64_t of); /* on these windows of `of` */
    void (*results)(void *user, double *out);                                            /* of the eval program */
    void (*gather)(void *user, double *all); /* sums of the lanes that are computed elsewhere; NULL: there are none */
} EvalCalls;
typedef struct EvalSize {
    int64_t there;   /* windows of the data */
    int64_t batches; /* so many of them are asked for, of `batch` windows; 0, or more than there are: all */
    int64_t batch;
    int64_t micro;  /* windows of a run of the program; a lane has equally many runs, give or take one */
    size_t results; /* numbers of the eval program */
    StepLanes lanes;
} EvalSize;
/* Sums of the results over all windows into `all`, which has room for as many of each lane; `part` is room for those of one run.
 * How many windows. */
int64_t loop_evaluate(const EvalCalls *c, void *user, const EvalSize *size, bool counts, double *part, double *all);

/* Whether what comes every so many steps comes after this one; 0: never. */
static inline bool loop_due(int64_t step, int64_t every) { return every > 0 && step % every == 0; }

#endif
