/* test.h - the few things every test of this folder needs.
 *
 * In:  conditions and texts.   Out: a line for each failure, and the exit status.
 * The one idea: a test goes on after a failure, so that one run shows all of them.
 */
#ifndef FRONT_TEST_H
#define FRONT_TEST_H

#include "grammar/ast.h"

#include <stdio.h>
#include <stdlib.h>

typedef struct Test {
    int checks, failures;
} Test;

#define EXPECT(t, ...)                                                                                                 \
    ((t)->checks++,                                                                                                    \
     (__VA_ARGS__) ? (void)0 : ((t)->failures++, (void)printf("%s:%d: %s\n", __FILE__, __LINE__, #__VA_ARGS__)))

static inline int test_same(Test *t, const char *what, const char *got, const char *want)
{
    t->checks++;
    if (!strcmp(got, want))
        return 1;
    t->failures++;
    printf("---- %s: got\n%s---- wanted\n%s----\n", what, got, want);
    return 0;
}

static inline int test_end(const Test *t)
{
    printf("%d checks, %d failures\n", t->checks, t->failures);
    return t->failures > 0 || t->checks == 0;
}

/* The whole file, to be freed; NULL when it cannot be read. */
static inline char *test_read(const char *path, size_t *n)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        return NULL;
    char *s = NULL;
    size_t used = 0, got;
    do {
        s = realloc(s, used + 65537);
        if (!s)
            abort();
        got = fread(s + used, 1, 65536, f);
        used += got;
    } while (got > 0);
    s[used] = 0;
    fclose(f);
    if (n)
        *n = used;
    return s;
}

#endif
