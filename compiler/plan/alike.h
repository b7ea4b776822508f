/* alike.h - groups of one structure are lowered and printed once.
 *
 * In:  a group of Fusion.     Out: its kernel, made anew or that of an earlier group with other
 *      values in its place.
 */
#ifndef VWN_ALIKE_H
#define VWN_ALIKE_H

#include "compiler/print/emit.h"
#include "compiler/lower/lower_kernel.h"

typedef struct Alike Alike;

/* What lower_group() and emit_kernel() make of a group. */
typedef struct Made {
    Lowered low;
    Printed printed;
    const Kernel *mapped; /* of a device: for its threads, as it was printed; else NULL */
} Made;

/* It serves any number of fusions, of any graphs, at one B and T and in one dialect. */
Alike *alike_new(Ctx *ctx, Arena *arena);
void alike_free(Alike *a);
/* The sentence above the text. */
typedef const char *(*About)(const Fusion *f, const Group *gr, const Kernel *k, Arena *arena);
/* Of a device: all groups, before the first of them is made. */
void alike_meet(Alike *a, const Fusion *f, uint32_t group, const Val *same, const Dialect *d,
                About about);
/* What `out` points to lives until alike_free(); what it says of one group until the next call. */
void alike_make(Alike *a, Made *out, const Fusion *f, uint32_t group, const Val *same,
                const Dialect *d, About about);

/* Does the group make a kernel that is too long, and may be made smaller? There is no kernel of it then. `counted`:
 * only alike_count() will be asked. */
bool alike_is_long(Alike *a, const Fusion *f, uint32_t group, const Val *same, bool counted);

/* What a launch of the group computes; the kernel is not kept, nor printed. Not for a device. */
Counted alike_count(Alike *a, const Fusion *f, uint32_t group, const Val *same);

#endif
