/* harness.h - the few lines a test program needs.
 *
 * In:  claims, CHECK(condition, "format", ...).   Out: one line for each claim that fails, then
 * "N passed, N failed"; the program returns finish(), which is 0 only when claims were made and
 * all of them hold.
 */
#ifndef VWN_TEST_COST_HARNESS_H
#define VWN_TEST_COST_HARNESS_H

#include <math.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>

typedef struct Tally {
    int passed, failed;
} Tally;

__attribute__((format(printf, 5, 6))) static inline void claim(Tally *t, bool holds, const char *text, int line,
                                                               const char *fmt, ...)
{
    if (holds) {
        t->passed++;
        return;
    }
    t->failed++;
    printf("line %d: %s is false: ", line, text);
    va_list args;
    va_start(args, fmt);
    vprintf(fmt, args);
    va_end(args);
    printf("\n");
}
#define CHECK(tally, holds, ...) claim((tally), (holds), #holds, __LINE__, __VA_ARGS__)

static inline int finish(const Tally *t)
{
    printf("%d passed, %d failed\n", t->passed, t->failed);
    return t->failed || !t->passed;
}

#endif
