/* plan_build.h - a plan in the making; private to plan*.c.
 *
 * In:  groups of a graph.     Out: buffers, kernels and launches, as they are added one by one.
 */
#ifndef VWN_PLAN_BUILD_H
#define VWN_PLAN_BUILD_H

#include "kernel_cache.h"
#include "compiler/print/emit.h"
#include "compiler/fuse/fuse.h"
#include "compiler/kernel/kernel_text.h"
#include "compiler/lower/lower_kernel.h"
#include "plan.h"
#include "pipeline.h"

typedef struct PlanSorted {
    Val index;
    int64_t experts;       /* or groups of a table's rows: */
    int low;               /* of an index without so many last bits */
    uint32_t start, order; /* buffers */
} PlanSorted;

typedef struct Build {
    Ctx *ctx;
    Arena *arena;
    const Graph *g;
    Fusion *f;
    KernelCache *kernel_cache;
    Plan *plan;
    int64_t B, T;
    int64_t shared; /* PlanOptions.shared, or what stands for it */
    const Target *target;
    PassWatch *watch;
    bool *to_library; /* by value of the graph before decompose(): products of a row that kernels have no room for */
    bool programs, arena_only, counted, single;
    bool stream; /* stores of kernels bypass the cache */
    bool per_row, any_order;
    int32_t *buffer_of;  /* by Val, -1 = none yet */
    int32_t *ext_buffer; /* by ext, -1 = none yet */
    int32_t *direct;     /* by Val: the ext it is stored into by its own kernel, or -1 */
    bool *added;         /* by Val: a product that its library adds to what is there, and the sum that is made so */
    bool *cast;          /* by group: it makes a copy of a weight; NULL: none does */
    Val *leaf;           /* by ext: its EXT node, or 0 */
    Val *same;           /* by Val: whose memory it shares */
    VEC(PlanBuffer) buffer;
    VEC(PlanKernel) kernel;
    VEC(Launch) launch;
    Map kernel_at;          /* name -> number + 1 */
    Map text_at;            /* of written kernels: the hash of what a text is made of -> number + 1 */
    uintptr_t text;         /* that hash, while one is made */
    VEC(PlanSorted) sorted; /* of a device: pairs by expert, indices by groups of rows */
    VEC(PlanNumber) number; /* and what changes from run to run */
} Build;

/* ---- precision.c: the operands of products, and what kernels store for each other, in 16 bits ---- */
Graph *plan_round_operands(const Graph *from, Arena *arena, const PlanOptions *how);
Graph *plan_round_boundaries(const Graph *from, Arena *arena, const PlanOptions *how);

/* ---- plan.c: passes, in the order of passes.def; each says of how many things it was ---- */
size_t plan_choose_results(Build *b, Fusion *f, const PlanOptions *how); /* begins a plan of these groups */
/* Groups that make kernels which are too long, so that `members` is less now, or too large: their products are the library's. */
size_t plan_find_large(Build *b, const Decomposed *d, size_t *members);
size_t plan_save_overwritten(Build *b);
size_t plan_find_classes(Build *b);
size_t plan_launch_groups(Build *b);
void plan_finish_outputs(Build *b);
void plan_gather_and_place(Build *b, const PlanOptions *how);
void plan_seal(const Build *b, Plan *p); /* what has been added so far, as the plan's */

/* ---- plan_buffer.c: memory ---- */
uint32_t plan_buffer(Build *b, Val v);    /* of a stored value or an EXT node */
uint32_t plan_temporary(Build *b, Val v); /* a new one for v */
uint32_t plan_ext_buffer(Build *b, int32_t ext);
uint32_t plan_scratch(Build *b, DType dtype, int64_t elements, Name name);
int64_t plan_elements(const Build *b, Val v);
void plan_place(Build *b); /* lifetimes -> offsets, and the size of the arena */
void plan_choose_direct(Build *b);
void plan_choose_added(Build *b);      /* of a device */
Val plan_strip(const Build *b, Val v); /* behind reshapes */

/* ---- plan_copies.c: weights in 16 bits that stay ---- */
void plan_choose_copies(Build *b, const PlanLayout *layout);

/* ---- plan_layout.c: which tensors lie behind each other ---- */
bool plan_is_laid(const Build *b, const PlanLayout *layout,
                  uint32_t buffer); /* has the plan a say in where it lies? layout: or NULL */
bool plan_may_follow(const Build *b, const PlanLayout *layout, uint32_t before, uint32_t buffer); /* of such */
void plan_keep_layout(const Build *b, PlanLayout *layout);

/* ---- plan_launch.c: library launches ---- */
uint32_t plan_kernel(Build *b, Name name, const char *text, size_t length, size_t n_buffer, size_t n_int,
                     size_t n_scalar);
Launch *plan_launch(Build *b, LaunchKind kind, size_t n_buffer, Val of);
/* `written`: this argument is written. */
void plan_argument(Build *b, Launch *l, size_t i, uint32_t buffer, uint64_t shift, bool written);
void plan_ints(Build *b, Launch *l, const int64_t *v, size_t n);
void plan_library_kernel(Build *b, Launch *l, LibraryKernel which, const AttentionClass *a, size_t n_scalar);
void plan_parts(Build *b, Val v);   /* copies the slices of a row, but for what a kernel has stored there */
void plan_library(Build *b, Val v); /* any node of a LIBRARY or TABLE group */
int64_t plan_extent(const Build *b, Val v, int axis);
void plan_read(Build *b, Launch *l, size_t i, Val v, Operand *o); /* argument i, as it lies */
PlanExpert plan_expert(const Build *b, Val v);                    /* a product's sizes */
uint32_t plan_aux_buffer(Build *b, Val v, int64_t which, int64_t elements);
void plan_attention_args(Build *b, Launch *l, Val v, const Operand o[3], int grad);
/* What there is to do of attention n: multiply-adds for each score that mask and window leave. */
void plan_attention_work(Build *b, Launch *l, const Node *n, double products, bool backward);
/* shift: bytes into `from` */
void plan_copy(Build *b, uint32_t from, uint64_t shift, uint32_t to, int64_t elements, DType dtype, Val of);

/* ---- plan_device.c: those of a device ---- */
/* Argument i: the address of these entries of Plan.number. */
void plan_numbers(Build *b, Launch *l, size_t i, const PlanNumber *x, size_t n);
/* Written kernels: has the text that is made of this key been made already? Then l has its kernel. Else it is made now, and
 * plan_keep_text() is called when l has it. */
typedef enum PlanText { TEXT_OF_LIBRARY, TEXT_OF_ATTENTION, TEXT_OF_EXPERT } PlanText;
bool plan_has_text(Build *b, Launch *l, PlanText of, const void *key, size_t n);
void plan_keep_text(Build *b, const Launch *l);
const char *plan_comment(const Build *b, const Launch *x); /* "layer[1].norm gpt.vwn:7:5" */
void plan_device_kernel(Build *b, Launch *l, const char *library, const char *text, size_t length, const PlanGrid *grid,
                        size_t n_scalar);
void plan_device_sdpa(Build *b, Val v);
void plan_device_sdpa_grad(Build *b, Val v);
void plan_device_scatter(Build *b, Val v);
uint32_t plan_numbers_buffer(Build *b);         /* a new one, if there is none yet */
void plan_gather(Build *b, PlanLayout *layout); /* plan_gather.c; places the buffers, too */
/* plan_batch.c; the same; most: bytes that the arena may have */
void plan_batch(Build *b, PlanLayout *layout, uint64_t most);
void plan_device_expert(Build *b, Val v);

#endif
