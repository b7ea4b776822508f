/* torch_call.h - functions of a package for PyTorch.
 *
 * In:  nothing.     Out: the types of calls.c, and what it computes sizes with.
 * The one idea: a function is a list of calls of kernels. Where its values lie in the workspace follows from the sizes of a
 * call, so that one text is for all of them.
 */
#ifndef TORCH_CALL_H
#define TORCH_CALL_H

#include "rows.h"

/* From which call to which a value in the workspace lives. */
typedef struct Life {
    uint32_t first, last;
} Life;

typedef struct Function {
    unsigned tensors, read; /* that a call is given; so many of them, the first ones, are read, the others written */
    unsigned values;        /* in the workspace */
    void (*bytes)(int64_t B, int64_t T, uint64_t *bytes);
    const Life *life; /* ascending by `first` */
    /* past: stores bypass the cache, of kernels that can. */
    void (*run)(Run *run, char *const *tensor, char *arena, const uint64_t *place, int64_t B, int64_t T, int past);
} Function;
extern const Function *const function[];
extern const unsigned functions;

/* What the numbers of a tensor are in memory. Kernels compute with float32. */
typedef enum NumberType { AS_KERNELS_HAVE_IT, BF16, FP16 } NumberType;
void numbers_widen(Pool *pool, NumberType type, const void *from, float *to, int64_t n);
void numbers_round(Pool *pool, NumberType type, const float *from, void *to,
                   int64_t n); /* to the nearest, ties to even */

static inline int64_t ceil_of(int64_t n, int64_t by) { return (n + by - 1) / by; }

/* Few rows are shared out, many are taken some at a time. */
static inline int64_t rows_at_once(int64_t rows, int64_t most)
{
    int64_t n = rows / 16;
    return n < 1 ? 1 : n < most ? n : most;
}

#endif
