/* kernel_read.h - private to kernel_read.c and kernel_read_threads.c: a kernel whose lines are being read.
 *
 * In:  untrusted text.     Out: the tables and statements of a kernel, as far as they are read.
 */
#ifndef VWN_KERNEL_READ_H
#define VWN_KERNEL_READ_H

#include "compiler/graph/reader.h"
#include "kernel_text.h"

typedef struct KernelReader {
    Reader t;
    KernelTexts *all;
    Kernel *k;
    bool statements; /* after `begin` */
    VEC(Ex) ex;      /* by number - 1 */
    VEC(Ex) constant;
    VEC(KColumn) result; /* of lanes that store; values come before these in the table */
    VEC(Span) line;      /* of each statement */
    Span head;           /* of the kernel's first line */
    const char *start;   /* of the line that is being read */
} KernelReader;

/* kernel_read.c */
void kernel_read_wrong(KernelReader *r, const char *at, const char *label);
int64_t kernel_read_below(KernelReader *r, int64_t below, const char *what);
int64_t kernel_read_size(KernelReader *r);
Dim kernel_read_extent(KernelReader *r);
IVar kernel_read_var(KernelReader *r);
Ix kernel_read_ix(KernelReader *r);
Ex kernel_read_ex(KernelReader *r);
void kernel_read_number_of(KernelReader *r, Ex e); /* "x7", the next number, is e from here on */
uint32_t kernel_read_place(KernelReader *r, const char **at, Ix *ix);
bool kernel_read_kind(const char *word, KEx *x); /* "mul", "load": what x is; false: no expression */

/* kernel_read_threads.c: what only kernels for threads have */
bool kernel_read_mapping(KernelReader *r);                /* a line of a table; false: it is none of these */
bool kernel_read_arguments(KernelReader *r);              /* the same of the arguments of its text, of either target */
void kernel_read_sharing(KernelReader *r, KStmt *s);      /* what stands behind a statement */
void kernel_read_across(KernelReader *r, KStmt *s);       /* of it, what a loop of vectors of a CPU has, too */
void kernel_read_array_place(KernelReader *r, KArray *a); /* and behind the declaration of an array */
void kernel_read_prefetched(KernelReader *r, KPrefetch *x); /* " of [{64}] by warp 2, 1 of 3" */
void kernel_read_column(KernelReader *r, KStmt *s);         /* LANES, LANE_STORE */
void kernel_read_finish_columns(KernelReader *r);           /* when all is read */
void kernel_read_element(KernelReader *r, KStmt *s);        /* "l2[3]" of LANE_TAKE */

#endif
