/* device_call.h - what the libraries of a GPU are told of a call.
 *
 * In:  buffers, sizes and numbers of a kernel; a product of matrices that lie row by row.
 * Out: the list of arguments that a driver reads, the blocks of a grid, the product as a library that counts by
 *      columns takes it.
 * The one idea: pure functions, and no word of CUDA, because the runtime and the folder that `vwn emit cuda` writes
 * launch the same kernels and multiply the same matrices, by other libraries.
 */
#ifndef VWN_DEVICE_CALL_H
#define VWN_DEVICE_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

enum {
    CALL_ARGUMENTS = 32764 / 8,      /* of a kernel at most: call_argument_bytes() */
    CALL_SHARED_UNASKED = 32 * 1024, /* of the 48 KiB that a kernel may have, its own included, without asking */
    CALL_BATCH = 65535               /* products of one call */
};

/* Bytes of arguments that a kernel may have: the drivers of CUDA 12.1 and later take eight times as many, on GPUs of capability 7.0
 * (70) and later (CUDA C++ Programming Guide, function parameters). driver: 1000 major + 10 minor. */
static inline size_t call_argument_bytes(long capability, long driver)
{
    return capability >= 70 && driver >= 12010 ? 32764 : 4096;
}

/* Numbers are computed in float64 by the host and are float32 to every kernel: the first four of eight bytes. */
static inline uint64_t call_number(double x)
{
    const float number = (float)x;
    uint64_t bits = 0;
    memcpy(&bits, &number, sizeof number);
    return bits;
}

typedef struct CallArguments {
    void *at[CALL_ARGUMENTS];
    uint64_t number[CALL_ARGUMENTS];
} CallArguments;

/* Each argument has eight bytes and is told by its address: buffers, integers, numbers, then the rows. Returns how
 * many there are; 0: too many. */
static inline size_t call_arguments(CallArguments *to, void *const *p, size_t buffers, const int64_t *n,
                                    size_t integers, const double *s, size_t numbers, const int64_t *rows)
{
    size_t count = 0;
    if (buffers > CALL_ARGUMENTS || integers > CALL_ARGUMENTS || numbers > CALL_ARGUMENTS ||
        buffers + integers + numbers + 1 > CALL_ARGUMENTS)
        return 0;
    for (size_t i = 0; i < buffers; i++) /* the driver reads what they point to */
        to->at[count++] = (void *)(uintptr_t)&p[i];
    for (size_t i = 0; i < integers; i++)
        to->at[count++] = (void *)(uintptr_t)&n[i];
    for (size_t i = 0; i < numbers; i++) {
        to->number[i] = call_number(s[i]);
        to->at[count++] = &to->number[i];
    }
    to->at[count++] = (void *)(uintptr_t)rows;
    return count;
}

/* A tensor map as a driver takes it: extents, and strides in bytes, of dimensions from the innermost on, of which that one's is
 * `bytes` of an element; a driver is told of the others. extent, stride: [rank] elements. */
static inline void call_map(int rank, size_t bytes, const int64_t *extent, const int64_t *stride, uint64_t *to_extent,
                            uint64_t *to_stride)
{
    for (int i = 0; i < rank; i++) {
        to_extent[i] = (uint64_t)extent[i];
        to_stride[i] = (uint64_t)stride[i] * bytes;
    }
}

/* Of a kernel that goes on to further rows by itself. */
static inline unsigned call_blocks(int64_t blocks) { return blocks < INT32_MAX ? (unsigned)blocks : INT32_MAX; }

/* C[i] = op(A[i]) op(B[i]), row by row; extents, pitches and steps in elements. */
typedef struct RowProduct {
    bool transpose_a, transpose_b;
    int64_t m, n, k, batch;
    int64_t lda, ldb, ldc, step_a, step_b, step_c;
} RowProduct;

/* The same by columns: the transpose of C is B times A, both transposed, and a matrix that lies row by row is its
 * transpose column by column. */
typedef struct ColumnMatrix {
    bool transposed;
    int64_t rows, columns, ld, step; /* as it lies in memory */
} ColumnMatrix;
typedef struct ColumnProduct {
    ColumnMatrix left, right, out; /* B, A, C */
} ColumnProduct;

/* A single column has no pitch, and a library wants one that spans it. */
static inline int64_t call_pitch(int64_t ld, int64_t rows) { return ld > rows ? ld : rows; }

static inline ColumnProduct call_by_columns(const RowProduct *p)
{
    ColumnProduct c;
    c.left.transposed = p->transpose_b;
    c.left.rows = p->transpose_b ? p->k : p->n;
    c.left.columns = p->transpose_b ? p->n : p->k;
    c.left.ld = c.left.columns == 1 ? call_pitch(p->ldb, c.left.rows) : p->ldb;
    c.left.step = p->step_b;
    c.right.transposed = p->transpose_a;
    c.right.rows = p->transpose_a ? p->m : p->k;
    c.right.columns = p->transpose_a ? p->k : p->m;
    c.right.ld = c.right.columns == 1 ? call_pitch(p->lda, c.right.rows) : p->lda;
    c.right.step = p->step_a;
    c.out.transposed = false;
    c.out.rows = p->n;
    c.out.columns = p->m;
    c.out.ld = c.out.columns == 1 ? call_pitch(p->ldc, c.out.rows) : p->ldc;
    c.out.step = p->step_c;
    return c;
}

/* How many of the products that are left the next call has. */
static inline int64_t call_batch(int64_t left) { return left < CALL_BATCH ? left : CALL_BATCH; }

#endif
