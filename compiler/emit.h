/* emit.h - kernels as text.
 *
 * In:  a scheduled Kernel, a dialect.     Out: the text of one function and what a launch must
 *      bring.
 * The one idea: the printer decides nothing; names are numbered in the order in which they
 * appear, sizes become arguments, so equal structure prints equal bytes. A dialect is a table.
 */
#ifndef VWN_EMIT_H
#define VWN_EMIT_H

#include "kernel.h"
#include "plan.h"

typedef struct Dialect {
    const char *name;
    const char *real, *integer; /* types */
    const char *bf16;           /* type of two bytes; vwn_bf16() makes it of a rounded real */
    const char *header;         /* format: kernel name */
    const char *row_loop;       /* format: row variable */
    const char *simd;           /* line before a loop whose iterations may be vectors */
    /* Explicit vectors, or NULL: their type; an element's neighbours; a store that may pass the
     * cache; the sum of the lanes; one number in all lanes. */
    const char *vector, *at, *put, *lanes_sum, *all;
    const char *fetch;          /* format: an element that will be loaded soon */
    const char *zero, *lowest;  /* neutral elements of + and max */
    const char *array;          /* format: type, name, size */
    const char *const *op;      /* by Op: text with $a $b $c $i; NULL: ops.def has it */
    const char *const *int_op;  /* the same for integers */
    const char *const *vector_op; /* and for vectors */
} Dialect;
extern const Dialect dialect_c;

/* Where an argument of a printed kernel comes from. */
typedef struct PrintedInt {
    enum { PI_DIM, PI_VALUE, PI_CHUNK, PI_PART, PI_SEED, PI_STEP, PI_STREAM } kind;
    Dim dim;
    int64_t value;
    uint32_t buffer; /* PI_PART: whose part's size; equal sizes of two buffers mean nothing */
    Name site;
    bool whole; /* the text holds only for multiples of VECTOR_LANES */
} PrintedInt;

typedef struct Printed {
    Name name;
    const char *text;
    size_t length;
    VEC(uint32_t) buffer; /* numbers of Kernel.buffer in the order of p[] */
    VEC(PrintedInt) ints;
    VEC(uint32_t) scalar; /* numbers of Kernel.scalar in the order of s[] */
} Printed;

void emit_kernel(Printed *out, const Kernel *k, const Dialect *d, const char *about);
const char *prelude_c(Arena *arena, size_t *length);
/* "k_" and 16 digits of the text with @NAME@ in place of its own name; replaces it in *text. */
Name emit_name(Ctx *ctx, Arena *arena, const char **text, size_t *length);

#endif
