/* region.h - where code that travels takes its memory from. */
#ifndef VWN_REGION_H
#define VWN_REGION_H

#include <stddef.h>

/* `take` gives zeros and never NULL; whoever made it gives all of it back at once. */
typedef struct Region {
    void *(*take)(void *user, size_t bytes);
    void *user;
} Region;
static inline void *region_take(const Region *m, size_t bytes) { return m->take(m->user, bytes); }

#endif
