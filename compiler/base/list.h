/* list.h - things that are told in a row. */
#ifndef VWN_LIST_H
#define VWN_LIST_H

#include <stddef.h>

/* What stands before the i-th of n things that are told in a row: nothing, ", " or `last`, as in "a, b and c". */
static inline const char *list_gap(size_t i, size_t n, const char *last)
{
    return i == 0 ? "" : i + 1 < n ? ", " : last;
}

#endif
