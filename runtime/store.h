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
    uint64_t common_bytes;
    VEC(StoreSlab) slab; /* what small tensors that stay lie in; the last has room */
    uint64_t slab_bytes; /* of all */
    uint64_t generation;
    char why[512];
};

/* Makes the shared arena at least so large; it holds nothing between runs. */
Status store_reserve_common(Store *s, uint64_t bytes);

#endif
