/* drawn.h - which cases of a long list a test takes.
 *
 * In:  of how many cases one is taken, and of how many under the sanitizers, which look for other faults: memory that
 *      is not the program's. VWN_TEST_WHOLE=1 in the environment (`sh tests/run.sh whole`): all, there too.
 * Out: case_drawn(): is case i taken? cases_end() says how many were.
 * The one idea: cases are drawn by their number, so every run takes the same ones. What must never be left out (a
 * dialect, a type, a family of models) is `always` or is kept by another list; the header of each test says which.
 */
#ifndef VWN_TESTS_DRAWN_H
#define VWN_TESTS_DRAWN_H

#include "sanitized.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct CaseDraw {
    size_t one_in, sanitized; /* at least 1 */
    size_t first;             /* this case is the first one that is taken */
    size_t taken, cases;      /* counted by case_drawn() */
} CaseDraw;

static inline bool test_whole(void)
{
    const char *whole = getenv("VWN_TEST_WHOLE");
    return whole && strcmp(whole, "1") == 0;
}

/* Of how many one is taken in this run. */
static inline size_t drawn_share(const CaseDraw *d) { return test_whole() ? 1 : SANITIZED ? d->sanitized : d->one_in; }

static inline bool case_drawn(CaseDraw *d, size_t i)
{
    size_t share = drawn_share(d);
    bool take = i % share == d->first % share;
    d->cases++;
    d->taken += take;
    return take;
}

/* Of n cases that come from seeds: so many, from the first seed on. */
static inline size_t drawn_count(const CaseDraw *d, size_t n)
{
    size_t count = (n + drawn_share(d) - 1) / drawn_share(d);
    if (count < n)
        printf("%zu of %zu seeds; VWN_TEST_WHOLE=1 takes all\n", count, n);
    return count;
}

/* Silent where nothing was left out. */
static inline void cases_end(const CaseDraw *d)
{
    if (d->taken < d->cases)
        printf("%zu of %zu cases; VWN_TEST_WHOLE=1 takes all\n", d->taken, d->cases);
}

#endif
