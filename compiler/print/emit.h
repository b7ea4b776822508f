/* emit.h - kernels as text.
 *
 * In:  a scheduled Kernel, a dialect.     Out: the text of one function and what a launch must
 *      bring.
 * The one idea: the program says everything, and the printer spells it: what it writes for a statement follows from that statement,
 * the types of what it names and the uses of sizes that stand in Kernel.use. Names are numbered in the order in which they appear, so
 * equal structure prints equal bytes. A dialect is a table.
 */
#ifndef VWN_EMIT_H
#define VWN_EMIT_H

#include "compiler/graph/target.h"
#include "compiler/kernel/kernel.h"
#include "compiler/kernel/launch.h"

struct Printed;
typedef struct Dialect {
    const char *name;
    const char *real, *integer; /* types; bf16 and vwn_bf16(), fp16 and vwn_fp16() are those of 16 bits */
    const char *row_loop;       /* format: row variable, type of an index */
    const char *simd;           /* line before a loop whose iterations may be vectors, or NULL */
    const char *singly;         /* first line in a loop of which no vectors may be made; NULL: none ever are */
    const char *scalar;         /* format: type, number of a run-time scalar */
    const char *inverse;        /* pattern of 1 / $b where that is an instruction, else NULL */
    /* Explicit vectors, or NULL: their type; the vector that begins at an element; a store that may bypass
     * the cache; the sum of the lanes, their maximum; one value in all lanes. A device's take the vector
     * width as last argument. */
    const char *vector, *at, *put, *lanes_sum, *lanes_add, *lanes_max, *all;
    const char *prefetch;      /* format: an element that will be loaded soon; or NULL */
    const char *zero, *lowest; /* neutral elements of + and max */
    const char *array;         /* format: type, name, size */
    const char *tile;          /* the same, so aligned that vectors are whole lines */
    /* Of a product: rows, columns, depth, a, its steps down and along, b, its step down, c, its
     * step down, whether it adds. `transposed`: b's columns are what is contiguous. */
    const char *product, *transposed;
    bool threads; /* a device's: of kernels that are mapped to threads (map_threads.c) */
    /* What stands before the body: the comment, the function's head, its arguments. */
    void (*put_header)(Buf *out, const Kernel *k, const struct Printed *p, const char *about);
} Dialect;
extern const Dialect dialect_c, dialect_cuda;
static inline const Dialect *dialect_of(const Target *t) { return t->threads ? &dialect_cuda : &dialect_c; }

typedef struct Printed {
    Name name;
    const char *text;
    size_t length;
    VEC(uint32_t) buffer; /* indices in Kernel.buffer, in the order of p[] */
    VEC(KArgument) ints;
    VEC(uint32_t) scalar; /* indices in Kernel.scalar, in the order of s[] */
    PlanGrid grid;        /* of a device */
} Printed;

/* k: numbered (kernel_find_arguments()). */
void emit_kernel(Printed *out, const Kernel *k, const Dialect *d, const char *about);
const char *emit_index_type(const Kernel *k, IVar v); /* 32 bits are a register of a device, 64 are two */
/* How many of its arguments change from run to run: a device finds these in memory, integers first. */
size_t emit_changing(const Kernel *k, const Printed *p);
const char *prelude_c(Arena *arena, size_t *length);
const char *prelude_cuda(Arena *arena, size_t *length);
/* "k_" and 16 digits of the text with @NAME@ in place of its own name; replaces it in *text. */
Name emit_name(Ctx *ctx, Arena *arena, const char **text, size_t *length);

#endif
