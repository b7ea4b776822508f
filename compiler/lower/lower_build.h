/* lower_build.h - private to lower_*.c: a kernel that is being made.
 *
 * In:  a group.     Out: expressions, roots and products of its kernel.
 */
#ifndef VWN_LOWER_BUILD_H
#define VWN_LOWER_BUILD_H

#include "lower_kernel.h"

/* A loop of an axis is known by its extent and by how many elements one of its rounds is: others of the axis may have its extent. */
typedef struct LoopSplit {
    Dim extent, below;
    Dim inner; /* it becomes extent / inner loops of inner */
} LoopSplit;
typedef struct Segment {
    Dim extent, below;
    int64_t at; /* it is done in two pieces */
} Segment;
typedef struct LoopOwner {
    uint32_t site; /* and 1, or SEVERAL_SITES; 0: none */
    Dim below;
} LoopOwner;

/* One axis, or run of adjacent axes, that something walks through: its own splits. */
typedef struct LowerSite {
    Val v;
    int run;
    VEC(LoopSplit) split;
    VEC(Segment) segment;
} LowerSite;

enum { SITE_LOOPS = 16 }; /* of a site, in a search */
static const uint32_t SEVERAL_SITES = UINT32_MAX;

typedef struct Memo {
    uint64_t hash;
    Val v;
    Ex guard, value;
    Ix c[MAX_RANK];
} Memo;

/* A value whose elements at one row lie in a tile. */
typedef struct Held {
    Val v;
    uint32_t buffer;
    bool rows;       /* of the kernel's rows; else the same for all */
    bool transposed; /* a product that lies transposed: its columns are contiguous */
    bool near;       /* loops read it where it comes from */
} Held;

typedef struct Lower {
    const Fusion *f;
    const Graph *g;
    uint32_t group;
    const Val *same;
    const LowerPasses *passes;
    Kernel *k;
    Arena *arena;
    Arena *splits; /* of sites, which outlive the kernels that are built to find them */
    VEC(LowerSite) site;
    int64_t budget;       /* how many copies of a site may be unrolled */
    size_t most;          /* expressions; what has more is not wanted. 0: any number */
    uint32_t arguments;   /* IxTable.arguments, of all that has been built of the group */
    bool table;           /* see is_table() */
    bool searching;       /* for splits: every site has its own loops, so that a split finds its site */
    VEC(LoopOwner) owner; /* by loop */
    bool unsure;          /* a loop is to be split that several sites share, or two places in one */
    bool unsplit;         /* loops in pieces were too many: loops stay whole, with tests in them */
    VEC(Memo) memo;
    uint32_t *slot;
    size_t slots;
    VEC(Sink) sink;
    VEC(Held) held;
    int depth;
} Lower;

/* One piece of an axis: where it is, and the loops that walk through it. */
typedef struct Inst {
    Ix at;
    KNest nest;
} Inst;
typedef VEC(Inst) Insts;

/* lower_kernel.c: all pieces of an axis of this extent; `used`: loops that are in use already. */
Insts lower_instances(Lower *l, Val of, int run, Dim extent, uint64_t used);
enum { RUN_OF_ROW = 200 };                                 /* the run that is all of a value's row */
Ex lower_value_at(Lower *l, Val v, const Ix *c, Ex guard); /* loaded, from a tile, or computed */
Ex lower_compute_at(Lower *l, Val v, const Ix *c, Ex guard);
Ex lower_load_at(Lower *l, Val v, const Ix *c, Ex guard);
uint32_t lower_memory_of(Lower *l, Val v);
KType lower_type_of(const Lower *l, Val v);
Dim lower_size_of(const Lower *l, Val v);

/* lower_move.c */
Ex lower_concat_at(Lower *l, const Node *n, const Ix *c, Ex guard);
Ex lower_moved_at(Lower *l, Val v, const Ix *c, Ex guard); /* pad and shift */

/* Is it more than `most` expressions, or of more loops than there can be? Then it was not built to its end. */
bool lower_is_beyond(const Lower *l);
/* split_loops.c: notes the splits that the kernel's loops want, and whether there are new ones; *row_work:
 * something in it is not the same for all rows. */
bool lower_find_splits(Lower *l, bool *row_work);

/* lower_product.c */
bool lower_has_products(const Lower *l);
void lower_products(Lower *l); /* all of the group's, and the tiles they read */
const Held *lower_held(const Lower *l, Val v);
Ex lower_held_at(Lower *l, Val v, const Ix *c, Ex guard); /* from its tile; 0: it is not there */

#endif
