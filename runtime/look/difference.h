/* difference.h - what `vwn diff` has found: rows, as text or as JSON; private to runtime/.
 *
 * In:  findings, one by one.   Out: a table of each kind, and whether there was one.
 * The one idea: files, runs and checkpoints differ in things that have a name and a value on one side or on both.
 */
#ifndef VWN_DIFFERENCE_H
#define VWN_DIFFERENCE_H

#include "runtime/exec/session.h"

typedef struct Finding {
    const char *kind;         /* "let", "attribute", "weight", "count", "setting", "result", "tensor" */
    const char *name, *a, *b; /* NULL: that side has it not */
    bool numbers;             /* of a tensor: */
    double apart, relative, cosine;
} Finding;
typedef struct Difference {
    Session *session;
    VEC(Finding) found;
    VEC(Finding) same; /* kind, and how many in `apart` */
    const char *a, *b; /* what is compared */
} Difference;
void difference_put(Difference *d, const char *kind, const char *name, const char *a, const char *b);
void difference_put_numbers(Difference *d, const char *name, const char *shape, double apart, double relative,
                            double cosine);
void difference_same(Difference *d, const char *kind, int64_t n); /* so many of this kind are equal */
/* tensors.c: of two checkpoints, each a run, "DIR@STEP" or a safetensors file. */
void difference_of_tensors(Difference *d, const char *a, const char *b, const char *selector, bool states);

#endif
