/* touches.h - what a statement of a kernel reads and writes, and what the rounds of a loop leave to each other. */
#ifndef VWN_TOUCHES_H
#define VWN_TOUCHES_H

#include "kernel.h"

/* What can be touched. An accumulator is the value that it becomes. */
typedef enum KThing { OF_VALUE, OF_VAR, OF_ARRAY, OF_BATCH, OF_BUFFER, OF_HELD, OF_COLUMN } KThing;

typedef struct KTouch {
    uint8_t thing, how; /* KThing; READS, WRITES */
    uint32_t number;    /* Ex, IVar, array, batch, buffer, KStmt.held, column and 1 */
    uint64_t deps;      /* of an array or a buffer: variables that the element changes with (ix_bit()) */
} KTouch;
typedef VEC(KTouch) KTouches;

/* Appends what s itself touches, not what stands in a loop that it begins. Owned by k's arena. */
void kernel_touches(const Kernel *k, const KStmt *s, KTouches *out);

/* What rounds of the loop at statement `loop` touch that others of its rounds touch too, one of them writing. */
enum {
    CARRIES_SUM = 1,     /* an accumulator declared outside of it */
    CARRIES_ELEMENT = 2, /* an element of an array or a buffer that is stored, or added to */
    CARRIES_SAME = 4,    /* an element of an array into which each round puts the same value */
    CARRIES_OTHER = 8    /* batches and products: not looked into */
};
unsigned kernel_carried(const Kernel *k, size_t loop);

#endif
