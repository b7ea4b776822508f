/* blocks.h - calls of kernels on a GPU.
 *
 * In:  nothing.     Out: the table of kernels.cu, and the function that plan.c calls. C and C++.
 */
#ifndef BLOCKS_H
#define BLOCKS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* A function of kernels.cu. Its arguments: so many buffers, integers and numbers, then the rows. */
typedef struct Kernel {
    const char *name;
    const void *code;
    unsigned threads; /* of a block */
    int buffers, integers, numbers;
} Kernel;
extern const Kernel kernel[]; /* behind the last stands one without a name */

/* What changes from run to run, as kernels read it from the GPU's memory. */
typedef union Number {
    int64_t whole;
    float single;
} Number;

/* The kernel on rows 0 .. rows - 1 by so many blocks, each with `shared` bytes of dynamic shared
 * memory; p: buffers, n: sizes, s: numbers. The call returns before it is done. */
struct Run;
void blocks(struct Run *run, int which, int64_t rows, int64_t blocks, uint64_t shared, void *const *p, const int64_t *n,
            const double *s);
/* Rows of so many bytes; from, to: bytes from one row to the next. */
void copy_parts(struct Run *run, int64_t rows, int64_t bytes, int64_t from, int64_t to, const void *x, void *out);

#ifdef __cplusplus
}
#endif

#endif
