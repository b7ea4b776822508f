/* emit_build.h - private to emit.c and emit_product.c: a text in the making.
 *
 * In:  a kernel and a dialect.     Out: Printer.body; what a launch must bring, in Printer.out.
 */
#ifndef VWN_EMIT_BUILD_H
#define VWN_EMIT_BUILD_H

#include "emit.h"

typedef struct Printer {
    const Kernel *k;
    const Dialect *d;
    Printed *out;
    const EmitSizes *sizes; /* or NULL: equal ones are one argument */
    Buf body;
    int depth;
    uint32_t *number, *var_number; /* of expressions and index variables, 0 = none yet */
    uint32_t next, next_var;
    bool lanes;    /* what is printed stands for a vector of elements */
    uint32_t width; /* of a device's vectors */
    uint64_t lane; /* the bit of the loop they run over; of a device: 0 outside of it */
    int lane_depth; /* of a device: where that loop stands */
    bool next_row; /* indices are those of the row after */
    Prefetches prefetch;
    VEC(uint32_t) tile; /* buffers of the row, in the order in which they appear */
} Printer;

/* emit.c */
void put_dim(Printer *p, Dim d);
void put_ix(Printer *p, Ix ix);
char *element_text(Printer *p, uint32_t buffer, Ix ix);
void assume_multiple(Printer *p, Dim d, uint8_t of); /* the text relies on it */

void emit_product(Printer *p, const KProduct *x); /* emit_product.c: a statement */

#endif
