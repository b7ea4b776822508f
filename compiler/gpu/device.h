/* device.h - decisions about a kernel for the threads of a device; private to gpu/ and what prints its kernels.
 *
 * In:  a Kernel.     Out: shared memory and grid, who multiplies how, what kernels of other sizes have in common.
 * The one idea: what a device's text relies on is decided from the kernel, before anything is printed.
 */
#ifndef VWN_DEVICE_H
#define VWN_DEVICE_H

#include "map_threads.h"

enum { ROW_SUMS_MAX = 64 }; /* sums over rows that a thread holds at one time */

/* device.c */
int64_t kernel_array_bytes(const Kernel *k); /* of the scratch arrays of a row */
int64_t kernel_sum_bytes(const KBuffer *b);  /* of one partial sum, in shared memory */
int64_t kernel_sums_bytes(
    const Kernel *k,
    const bool *shared); /* of the partial sums of a partition; shared: by buffer, of these; NULL: of all */
/* Arrays for which a block of so many threads has no room lie in memory, the largest first. */
void kernel_spill_arrays(Kernel *k, uint32_t lanes, uint32_t units);
int64_t kernel_partitions(const Kernel *k, int64_t rows); /* of a sum over rows on a device */
/* Rows of a block of a device's kernel without loops: half of the most where few blocks would have something to do, fewer where a row
 * has many results. */
int64_t kernel_flat_rows(const Kernel *k, int64_t most, int64_t rows);
void kernel_choose_grid(Kernel *k);            /* of a mapped kernel */
uint64_t kernel_shared_bytes(const Kernel *k); /* of a block, dynamic, when the grid is chosen; at its B and T */
bool kernel_has_small_tiles(
    const Kernel *k); /* of rows: so small that a multiprocessor has many blocks; when tiles have places */
void kernel_choose_resident(Kernel *k); /* KGrid.at_once, when its arguments are known */

/* cut_products.c */
ProductCut kernel_product_cut(const Kernel *k, const KProduct *x); /* as its shape wants it */
bool kernel_product_is_half(const Kernel *k, const KProduct *x);   /* of half the rows of a fragment, by a short sum? */
uint8_t kernel_product_rows(const Kernel *k,
                            const KProduct *x); /* of how many rows it is computed at one time; 0: of each */
bool kernel_product_shares(const Kernel *k,
                           const KProduct *x); /* do warps have shares of its sum, in shared memory of its own? */
void kernel_cut_products(Kernel *k);           /* KProduct.way, Kernel.calls; of a mapped kernel */
void kernel_pair_products(Kernel *k);          /* pair_products.c: KProduct.beside */
void kernel_begin_rows(Kernel *k);             /* begin_rows.c: KPrefetch, ROW_TILES */
void kernel_join_totals(Kernel *k);            /* join_totals.c: KStmt.totals */
void kernel_use_lanes(Kernel *k);              /* lanes.c: KColumn */
void kernel_find_loaded(Kernel *k);            /* loaded.c: KEx.i of choices */
void kernel_find_elements(Kernel *k);          /* elements.c: KStmt.width of statements, KStmt.across */

void kernel_swizzle(Kernel *k); /* swizzle.c: KArray.swizzled, KBuffer.device.swizzled */

/* nests.c */
void kernel_interchange_nests(Kernel *k);                     /* loops of a row as its threads like them */
int64_t kernel_elements_inside(const Kernel *k, size_t loop); /* how many elements the loops in a loop run over */
/* Has each loop in it at most Tuned.whole_loop_max elements, so that a thread does all of a round? */
bool kernel_has_few_inside(const Kernel *k, size_t loop);
/* Elements of the arrays that a loop adds up over its rounds, where each thread can have them in registers; -1: it does
 * something else. */
int64_t kernel_sums_of(const Kernel *k, size_t loop);
bool kernel_fills_along(const Kernel *k,
                        IVar var); /* is an array filled along this loop, by threads from the first on? */
bool kernel_puts_along(const Kernel *k, size_t loop); /* does it put an element into an array in each round? */

/* registers.c: how many rounds of a loop a thread that takes `width` elements loads at one time, so that 64 bytes are under way. A loop whose
 * rounds are long, or compute for longer than they wait for memory, has 1. */
int64_t kernel_rounds_in_flight(const Kernel *k, size_t loop, uint8_t width);

/* Sets what KMapping says of the registers of a mapped kernel. Its indices are as narrow as `most` or wider. */
void kernel_count_registers(Kernel *k, KIndex most);

/* widths.c */
uint32_t kernel_widest(const Kernel *k); /* so many elements of the narrowest type in memory are 16 bytes */
/* How many contiguous elements of a loop a thread takes. threads: so many threads have something to do; 0: any number of them. of_warp:
 * these threads are a warp, and other warps have other rounds of an enclosing loop. values: at most so many values of all statements of
 * the loop. shared: by buffer, the partial sums that lie in shared memory. */
uint32_t kernel_width_of_loop(const Kernel *k, size_t loop, uint32_t threads, bool of_warp, uint32_t values,
                              const bool *shared);
/* Can a thread load all of its contiguous elements, compute a few of them at a time, and then store all? */
bool kernel_has_pieces(const Kernel *k, size_t loop);
enum { PIECE = 2 };                                         /* elements of a piece: a word of 16-bit numbers */
void kernel_hold(Kernel *k);                                /* hold.c: KStmt.step */
uint32_t kernel_loops_inside(const Kernel *k, size_t loop); /* map_threads.c: how many loops are in it */

/* barriers.c: what the part of a row that begins at statement i touches that is not its threads' own, READS and WRITES by thing, is added to
 * `how`; the result: whether it stores what other threads may still have to load. mapped: whose arrays of sums are known. */
size_t kernel_row_things(const Kernel *k);
bool kernel_row_touches(const Kernel *k, size_t i, const Kernel *mapped, const bool *own, uint8_t *how);
bool kernel_in_one_place(const Kernel *k, size_t x, size_t y); /* are these buffers tiles that lie in one? */
bool kernel_row_meets(const Kernel *k, const uint8_t *a,
                      const uint8_t *b); /* does one touch what the other does, and one of them writes? */

/* kernel_races.c: the accesses that a barrier orders, as a comment: what would race without it. */
void kernel_put_reasons(Buf *out, const Kernel *k, size_t barrier);

/* structure.c: kernels with equal names differ in sizes alone: with one thread mapping they print one text. Of a
 * scheduled kernel without products. */
Name kernel_structure(const Kernel *k);

#endif
