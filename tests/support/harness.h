/* harness.h - the smallest harness: CHECK counts, harness_end() reports and gives the exit
 * code.
 */
#ifndef VWN_TEST_HARNESS_H
#define VWN_TEST_HARNESS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

typedef struct Harness {
    int passed, failed;
} Harness;

static inline bool harness_check(Harness *h, bool ok, const char *file, int line, const char *what)
{
    if (ok)
        h->passed++;
    else if (++h->failed <= 40)
        fprintf(stderr, "%s:%d: failed: %s\n", file, line, what);
    return ok;
}
#define CHECK(h, condition) harness_check((h), (condition), __FILE__, __LINE__, #condition)
/* With a sentence that says which case it was. */
#define CHECK_CASE(h, condition, text) harness_check((h), (condition), __FILE__, __LINE__, (text))

static inline int harness_end(const Harness *h)
{
    printf("%d passed, %d failed\n", h->passed, h->failed);
    return h->failed != 0;
}

/* Numbers in [-1, 1) that are the same on every machine. */
static inline double harness_random(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(*state >> 11) / (double)(1ull << 52) - 1;
}

#endif
