/* plans.h - small plans written by hand, for tests of a backend without the compiler's
 * stages, and folders that belong to one test.
 */
#ifndef VWN_TEST_PLANS_H
#define VWN_TEST_PLANS_H

#include "runtime/base/backend.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define HAND_PRELUDE                                                                                                   \
    "typedef long int64_t;\n"                                                                                          \
    "static inline float hand_twice(float x) { return x + x; }\n"
#define HAND_SIGNATURE(name)                                                                                           \
    "void " name "(void *const *p, const int64_t *n, const double *s, int64_t lo, int64_t "                            \
    "hi)\n"
/* p[1][i] = s[0] p[0][i] + n[0] */
#define HAND_SCALE                                                                                                     \
    HAND_SIGNATURE("k_scale")                                                                                          \
    "{\n    const float *x = p[0];\n    float *y = p[1];\n"                                                            \
    "    for (int64_t i = lo; i < hi; i++)\n        y[i] = (float)s[0] * x[i] + "                                      \
    "(float)n[0];\n}\n"
#define HAND_TWICE                                                                                                     \
    HAND_SIGNATURE("k_twice")                                                                                          \
    "{\n    float *x = p[0];\n    (void)n, (void)s;\n"                                                                 \
    "    for (int64_t i = lo; i < hi; i++)\n        x[i] = hand_twice(x[i]);\n}\n"

typedef struct HandPlan {
    Plan plan;
    PlanKernel kernel[8];
} HandPlan;

/* Names and texts by turns, ended by NULL. */
static inline void hand_plan(HandPlan *h, Ctx *ctx, const char *const *name_text)
{
    memset(h, 0, sizeof *h);
    h->plan.prelude = HAND_PRELUDE;
    h->plan.prelude_length = strlen(HAND_PRELUDE);
    h->plan.kernel = h->kernel;
    for (size_t i = 0; name_text[2 * i]; i++) {
        PlanKernel *k = &h->kernel[h->plan.n_kernel++];
        k->name = name_str(ctx, name_text[2 * i]);
        k->text = name_text[2 * i + 1];
        k->length = strlen(k->text);
    }
}

/* Files and folders in a folder; -1 when it cannot be read. */
static inline int count_files(const char *path, const char *part)
{
    DIR *dir = opendir(path);
    struct dirent *e;
    int n = 0;
    if (!dir)
        return -1;
    while ((e = readdir(dir)))
        n += strcmp(e->d_name, ".") && strcmp(e->d_name, "..") && strstr(e->d_name, part);
    closedir(dir);
    return n;
}

/* A fresh folder below the present one, and its removal with one level of files and folders. */
static inline const char *make_folder(char path[256])
{
    char here[200];
    if (!getcwd(here, sizeof here))
        return NULL;
    snprintf(path, 256, "%s/test-XXXXXX", here);
    return mkdtemp(path);
}

static inline void remove_folder(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *e;
    while (dir && (e = readdir(dir))) {
        char inner[600];
        if (!strcmp(e->d_name, ".") || !strcmp(e->d_name, ".."))
            continue;
        int n = snprintf(inner, sizeof inner, "%s/%s", path, e->d_name);
        if (n > 0 && (size_t)n < sizeof inner && unlink(inner) != 0)
            remove_folder(inner);
    }
    if (dir)
        closedir(dir);
    rmdir(path);
}

#endif
