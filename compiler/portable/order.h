/* order.h - which windows of a text come when.
 *
 * In:  stretches of tokens, a seed, a position in the run.   Out: where a window begins.
 * The one idea: the order is a pure function of (seed, position). Per epoch the text is cut at
 * a drawn offset into windows of `context` tokens that do not overlap, and a keyed permutation
 * (a Feistel network, no table) says which comes when. Plain C on its own, because the folder
 * that `vwn emit` writes takes its windows from this very text.
 */
#ifndef VWN_ORDER_H
#define VWN_ORDER_H

#include <stddef.h>
#include <stdint.h>

/* Tokens first .. first + count - 1 of one file. */
typedef struct Stretch {
    size_t file;
    int64_t first, count;
    int64_t windows;        /* of an epoch */
    int64_t windows_before; /* of the stretches before it */
} Stretch;
typedef struct Order {
    Stretch *range; /* those that have a window */
    size_t n, unused;
    int64_t context, windows; /* of an epoch */
    int64_t tokens;           /* those of unused stretches, too */
} Order;
typedef struct Window {
    size_t range;  /* which stretch */
    int64_t first; /* token of its file */
} Window;

/* Windows of an epoch in `count` tokens; 0 when there are too few. */
int64_t order_windows(int64_t count, int64_t context);
/* `range` has room for one more. */
void order_add(Order *o, size_t file, int64_t first, int64_t count);
/* All tokens of n files: the last share `val` of them is kept, the others are trained on. Both have room for n. */
void order_divide(Order *train, Order *kept, const int64_t *count, size_t n, double val);
/* Window number `ordinal` (from 0) of a run under `seed`; there is at least one. */
Window order_window(const Order *o, uint64_t seed, int64_t ordinal);
/* Window i of the `of` that evaluation uses: always the same, spread evenly, from offset 0. */
Window order_fixed(const Order *o, int64_t i, int64_t of);
int64_t order_fixed_windows(const Order *o);

/* Steps of a run of so many epochs. */
int64_t order_steps(double epochs, int64_t windows, int64_t batch);

/* The same of `rows` (at least 1) that are not cut: per epoch each comes once. */
int64_t order_row(int64_t rows, uint64_t seed, int64_t ordinal);
/* Number i of `of` that are spread evenly over `all`. */
int64_t order_spread(int64_t all, int64_t i, int64_t of);

/* Spreads the bits of x: near numbers give far ones. */
uint64_t mix64(uint64_t x);
/* A permutation of 0..n-1 drawn by `key`. */
uint64_t permute_index(uint64_t key, uint64_t n, uint64_t i);

#endif
