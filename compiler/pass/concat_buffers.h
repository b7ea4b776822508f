/* concat_buffers.h - private to concat_*.c: rows that are concatenated of slices of different age.
 *
 * In:  a graph.     Out: which of its values are made in another way, and of what they are then made.
 * The one idea: all is decided before the first node is made again.
 */
#ifndef VWN_CONCAT_BUFFERS_H
#define VWN_CONCAT_BUFFERS_H

#include "decompose.h"

typedef struct Part {
    Val of;
    int64_t from, n;
} Part;
typedef VEC(Part) Parts;

/* How a value is made. */
typedef enum Making {
    MAKE_AS_IT_IS,
    MAKE_OF_ROWS,  /* f(concatenated rows), in place of a concatenation of f's results */
    MAKE_OF_PIECE, /* f(slices), in place of a slice of f's result */
    MAKE_IN_PLACE, /* a row into which older slices are copied, */
    MAKE_AS_ROW,   /* a function of it, the last one such a row again, */
    MAKE_OF_WHOLE  /* and the same of a wider row, made of all of it */
} Making;

struct ConcatLayout {
    const Graph *g;
    Arena *arena;
    const struct PlanOptions *how;
    uint32_t *level; /* by value: how many results of the library stand one above the other */
    bool *read;      /* by something else than slices and concats, */
    uint32_t *until; /* and the highest level of what such a reader takes with it */
    uint8_t *making; /* by value; NULL: all is made as it is */
    bool *wanted;    /* by value, when some are not */
    Val *before,
        *after; /* by value: what one of MAKE_AS_ROW or MAKE_OF_WHOLE is a function of; and the other way round */
    Val *made;  /* by value: of MAKE_AS_ROW the new slice, of MAKE_OF_WHOLE all of it */
};

/* Does v only say which elements of others stand where? */
bool concat_moves(const Graph *g, Val v);
bool concat_is_library(const ConcatLayout *a, Val v);
/* Is v a row of slices of different age? Which, from left to right. */
bool concat_parts(const ConcatLayout *a, Val v, Parts *parts);
void concat_find_parts(const ConcatLayout *a, Val v, Parts *parts);
Val concat_copies(Graph *g, const Val *part, size_t n);

/* concat_same.c */
bool concat_find_same(ConcatLayout *a); /* are there any? */
void concat_want_same(const ConcatLayout *a, Val v);
Val concat_same(const ConcatLayout *a, Graph *g, Val v, Val *map);
/* concat_place.c */
bool concat_find_places(ConcatLayout *a);
void concat_want_place(const ConcatLayout *a, Val v);
Val concat_place(const ConcatLayout *a, Graph *g, Val v, const Val *map);

#endif
