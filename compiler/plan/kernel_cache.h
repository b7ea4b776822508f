/* kernel_cache.h - groups of one structure are lowered and printed once.
 *
 * In:  a group of Fusion.     Out: its kernel, made anew or that of an earlier group with other
 *      values in its place.
 * The one idea: layers repeat, so a walk from what a group stores to what it loads is the key of its kernel.
 */
#ifndef VWN_KERNEL_CACHE_H
#define VWN_KERNEL_CACHE_H

#include "compiler/print/emit.h"
#include "compiler/lower/lower_kernel.h"

typedef struct KernelCache KernelCache;

/* What lower_group() and emit_kernel() make of a group. */
typedef struct CachedKernel {
    Lowered low;
    Printed printed;
    const char *about;    /* the sentence above the text */
    const Kernel *mapped; /* of a device: for its threads, as it was printed; else NULL */
} CachedKernel;

/* It serves any number of fusions, of any graphs, at one B and T and in one dialect. */
KernelCache *kernel_cache_new(Ctx *ctx, Arena *arena);
void kernel_cache_free(KernelCache *a);
struct PassWatch;
/* A plan begins: groups are other ones. watch: who looks at what is made; or NULL. */
void kernel_cache_begin(KernelCache *a, struct PassWatch *watch);
size_t kernel_cache_classes(const KernelCache *a); /* of a device's kernels that differ in sizes alone */
/* The sentence above the text, of the group that it is printed for: others that it serves may have their members in another
 * order. */
typedef const char *(*About)(const Fusion *f, const Group *gr, const Kernel *k, Arena *arena);
/* Of a device: all groups, before the first of them is made. */
void kernel_cache_visit(KernelCache *a, const Fusion *f, uint32_t group, const Val *same, About about);
/* What `out` points to lives until kernel_cache_free(); what it says of one group until the next call. */
void kernel_cache_make(KernelCache *a, CachedKernel *out, const Fusion *f, uint32_t group, const Val *same,
                       const Dialect *d, About about);

/* Of a device: bytes of shared memory that a block has, of a kernel with products of a row; of others 0. Nothing is printed. */
uint64_t kernel_cache_shared(KernelCache *a, const Fusion *f, uint32_t group, const Val *same);

/* Does the group make a kernel that is too long, and may be made smaller? There is no kernel of it then. `counted`:
 * only kernel_cache_count() will be asked. */
bool kernel_cache_is_long(KernelCache *a, const Fusion *f, uint32_t group, const Val *same, bool counted);

/* What a launch of the group computes; the kernel is not kept, nor printed. Not for a device. */
Counted kernel_cache_count(KernelCache *a, const Fusion *f, uint32_t group, const Val *same);

/* The passes `variants` and `sizes` of a class (pipeline.c): how many kernels it has, and how many arguments for sizes. */
struct VariantClass;
size_t kernel_cache_settle(KernelCache *a, struct VariantClass *class);
size_t kernel_cache_find_sizes(KernelCache *a, struct VariantClass *class);

#endif
