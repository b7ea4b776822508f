/* emit_build.h - private to emit.c, emit_values.c, emit_held.c, emit_lanes.c, emit_product.c and emit_threads.c: a text in the making.
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
    size_t use; /* how many uses of sizes have been printed */
    Buf body;
    int depth;
    uint32_t *number, *var_number; /* the numbers that expressions and index variables have in the text; 0: none yet */
    uint32_t next, next_var;       /* the last numbers that were given */
    bool lanes;                    /* what is printed stands for a vector of elements */
    uint32_t width;                /* of a device: elements of that vector */
    IVar vectors;                  /* of a CPU: the loop of the last KS_VECTORS */
    KAcross across;                /* KStmt.across of the statement that is printed */
    bool next_row;                 /* indices are those of the next row */
    uint32_t *column;              /* by column: the number of what a lane has of it; 0: none yet */
    VEC(uint32_t) tile;            /* buffers of the row, in the order in which they appear */
} Printer;

/* emit_values.c: what a statement is made of. The files below call it and each other in their order, and emit.c calls all of them. */
void put_dim(Printer *p, Dim d);
void put_ix(Printer *p, Ix ix);
char *element_text(Printer *p, uint32_t buffer, Ix ix);
void begin_line(Printer *p);
Buf begin_piece(Printer *p);             /* what is printed until end_piece() is a text of its own, */
char *end_piece(Printer *p, Buf before); /* which this returns */
void put_ex(Printer *p, Ex e);
void put_value_of(Printer *p, Ex e); /* the right side of its definition */
void put_var(Printer *p, IVar v);
void put_chunk(Printer *p);                /* rows of a partition */
char *in_lanes(Printer *p, char *element); /* the elements from this one on, where a vector is printed; else itself */
size_t next_argument(Printer *p, KArgument want); /* the argument that is used next, which is this integer */
bool next_literal(Printer *p, Dim d);             /* is the size that is used next, and is this one, a literal? */
size_t slot_of(Printer *p, uint32_t buffer);      /* the number of the argument that a buffer is */
void put_part_size(Printer *p, uint32_t buffer);
const char *type_name(const Printer *p, const KEx *x);
const char *neutral(const Printer *p, Op op);
char *ex_text(Printer *p, Ex e);
char *computed_text(Printer *p, Ex e); /* what it is computed from */
void put_definition(Printer *p, Ex e); /* "const real x5 = " */
void close_brace(Printer *p);
char *array_element(Printer *p, int array);            /* the same of all its lanes */
char *array_place(Printer *p, char letter, int array); /* its element at the variables of its loops */
char *root_text(Printer *p, const KRoot *r);           /* its element, or those of all lanes */
char *stored_text(Printer *p, Ex e); /* a value to be stored; one that is the same in all lanes becomes a vector */

/* emit_held.c */
void emit_step(Printer *p, const KStmt *s);   /* of a statement with a step */
void emit_pieces(Printer *p, const KStmt *s); /* the head of a loop over pieces */

/* emit_lanes.c */
uint32_t emit_column_number(Printer *p, uint32_t column); /* of what a lane has of it */
void emit_lanes(Printer *p, const KStmt *s);

/* emit_threads.c */
char *share_name(Printer *p, Ex ex, uint32_t root); /* what a thread holds of a sum over a row; ex is 0: over rows */
/* The head of a loop from 0, by one thread or by those that share it. */
void put_for(Printer *p, const char *type, const char *name, const char *extent, bool mapped, KThreads threads,
             uint32_t width, uint32_t warp); /* warp: the loop begins with the threads of this one */
void emit_row_prefetch(Printer *p, const KStmt *s);
void emit_row_places(Printer *p);             /* where this row lies in tiles of several rows */
void emit_thread(Printer *p, const KStmt *s); /* a barrier, or a total of one value */
void emit_array_sums(Printer *p, const KStmt *s);
void emit_totals(Printer *p, const KStmt *s); /* those of a step */
/* Stores the partial sum of x, the argument `slot` of so many elements, from shared memory. */
void emit_part_store(Printer *p, const KBuffer *x, size_t slot, const char *size);

void emit_product(Printer *p,
                  const KStmt *s); /* emit_product.c: a statement, with the next where both are one product */

#endif
