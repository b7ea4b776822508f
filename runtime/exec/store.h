/* store.h - what programs know of the store beyond exec.h. Private to store.c and exec.c.
 *
 * The one idea: `generation` changes whenever memory that programs point to has moved, so
 * that a program looks its addresses up again only then.
 */
#ifndef VWN_STORE_H
#define VWN_STORE_H

#include "exec.h"

typedef struct StoreSlab {
    char *memory;
    uint64_t bytes, used;
} StoreSlab;

struct Store {
    Ctx *ctx;
    Backend *backend; /* NULL: reference evaluator */
    Arena *arena;     /* entries and the index */
    VEC(StoreEntry *) entry;
    Map index;    /* (kind, name) -> entry */
    void *common; /* the arena that programs share */
    uint64_t common_bytes, common_wanted;
    VEC(StoreSlab) slab; /* what small tensors that stay lie in; the last has room */
    uint64_t slab_bytes; /* of all */
    Half copies;         /* what copies of weights are */
    size_t settled;      /* of a device: so many entries have memory */
    uint64_t generation;
    PlanLayout layout; /* how weights, their gradients and copies lie, in the plans of all programs */
    char why[512];
};

/* Copies of the weights, in that type, which is one for all, of these names, in these shapes, one behind the other; they are stale. */
Status store_add_copies(Store *s, const StoreEntry *const *of, size_t n, Half half);
bool store_copy_stale(const StoreEntry *copy);
void store_copy_done(StoreEntry *copy);
void store_weight_changes(Store *s,
                          const StoreEntry *weight); /* any tensor: a weight's copy, if it has one, is stale now */
/* Tensors that have no memory yet, and no place, will lie one behind the other, without a gap. */
void store_lay(Store *s, StoreEntry *const *e, size_t n);
bool store_is_laid(const StoreEntry *e); /* behind another one */
bool store_follows(const Store *s, const StoreEntry *e, const StoreEntry *before);
/* Makes the shared arena at least so large; it holds nothing between runs. */
Status store_reserve_common(Store *s, uint64_t bytes);

#endif
