/* library.h - the kernels that are written rather than derived.
 *
 * In:  -     Out: which there are, their names, their arguments, and what an attention's text depends on.
 * The one idea: a written kernel is called like a printed one, with buffers, integers (n) and scalars (s); its text is a
 * file of compiler/library/texts.
 */
#ifndef VWN_LIBRARY_H
#define VWN_LIBRARY_H

#include "compiler/base/base.h"

typedef enum LibraryKernel {
    LIB_COPY,      /* x, out; n: words of 4 bytes per row */
    LIB_PART,      /* a slice into a row, on a CPU; x, out; n: bytes of a row, from row to row of x, of out */
    LIB_TABLE,     /* out; s: its 64 elements */
    LIB_SUM_PARTS, /* partial sums, out; n: how many, elements of one */
    LIB_MAX_PARTS,
    LIB_SUM_PARTS_AT, /* the same; n: .., 6 extents, 6 strides */
    LIB_MAX_PARTS_AT,
    LIB_CUMSUM,               /* x, out; n: count, inner, back */
    LIB_TOP_K,                /* x, out; n: count, k */
    LIB_SCATTER_ADD,          /* dy, index, out; n: indices, width */
    LIB_DYNAMIC_UPDATE_SLICE, /* x, start, on, table; n: rows of x and of the table, words of a row */
    LIB_DYNAMIC_SLICE,        /* table, start, out; n: rows out and of the table, words, fill */
    LIB_SDPA_AT,              /* q, k, v, first, out, lse; n, s: as LIB_SDPA */
    LIB_SDPA,                 /* q, k, v, out, lse; n: 19; s: scale, cap, rate */
    LIB_SDPA_GRAD,            /* q, k, v, out, lse, dout, dq, dk, dv; n: .., which gradients */
    LIB_COUNT
} LibraryKernel;

typedef struct AttentionClass {
    int64_t d, dv; /* padded to multiples of 16 */
    bool capped, dropped;
    bool oldest; /* a further argument, behind the others: the first key of each query */
} AttentionClass;
enum { TABLE_PART = 64, PARTS_AXES = 6, CUMSUM_THREADS = 512 };
/* Attention. A row of the forward kernel is ATTENTION_BLOCK_Q queries of a head. A row of the
 * backward kernel is a head of the keys with all its queries, or one of these for one gradient
 * alone: ATTENTION_RANGE queries of a head (dq), ATTENTION_SLICE keys of a head (dk, dv). */
enum {
    ATTENTION_BLOCK_Q = 64,
    ATTENTION_BLOCK_K = 32,
    BACK_BLOCK_Q = 32,
    BACK_BLOCK_K = 64,
    ATTENTION_RANGE = 64,
    ATTENTION_SLICE = 64,
    ATTENTION_D = 4, /* places in n[] of the sizes of a head: queries and keys, values */
    ATTENTION_DV = 5,
    ATTENTION_STRIDE = 8, /* and of the nine strides of q, k and v */
    GRAD_OF_Q = 1,        /* the last integer of LIB_SDPA_GRAD */
    GRAD_OF_K = 2,
};

const char *library_name(LibraryKernel which); /* "sum_parts" */
bool library_has_class(LibraryKernel which);   /* attention */

#endif
