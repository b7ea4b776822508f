/* budget.h - what kernels use at most, and the lines of a file that say what they may.
 *
 * In:  facts of cubins, a file of this folder.   Out: checks.
 */
#ifndef VWN_TEST_BUDGET_H
#define VWN_TEST_BUDGET_H

#include "cuda_texts.h"
#include "support/drawn.h"

enum { LIMITS = 256 };
typedef struct Limit {
    char what[64];
    int registers, frame, spilled;
    bool used;
} Limit;
typedef struct Budget {
    Limit limit[LIMITS];
    size_t n;
} Budget;

static inline void budget_read(Budget *b, const char *file)
{
    char line[256], path[512];
    snprintf(path, sizeof path, "%s/tests/nvrtc/%s", VWN_SOURCE_DIR, file);
    FILE *f = fopen(path, "r");
    while (f && b->n < LIMITS && fgets(line, sizeof line, f)) {
        Limit *l = &b->limit[b->n];
        *l = (Limit){0};
        b->n += line[0] != '#' && sscanf(line, "%63s %d %d %d", l->what, &l->registers, &l->frame, &l->spilled) == 4;
    }
    if (f)
        fclose(f);
}

/* What the kernels of one kind use at most. */
typedef struct Use {
    int kernels, registers;
    int64_t frame, spilled, shared;
} Use;

static inline void add_use(Use *u, const CubinKernel *k)
{
    u->kernels++;
    u->registers = k->registers > u->registers ? k->registers : u->registers;
    u->frame = k->frame > u->frame ? k->frame : u->frame;
    int64_t spilled = k->spill_stores + k->spill_loads;
    u->spilled = spilled > u->spilled ? spilled : u->spilled;
    u->shared = k->shared > u->shared ? k->shared : u->shared;
}

static inline void budget_check(Harness *h, Budget *b, const char *what, const char *arch, const Use *u,
                                int64_t dynamic)
{
    printf("%-28s %-7s %3d kernels: %3d registers, %lld frame, %lld spilled, %lld shared\n", what, arch, u->kernels,
           u->registers, (long long)u->frame, (long long)u->spilled, (long long)(u->shared + dynamic));
    bool found = false;
    for (size_t i = 0; i < b->n; i++) {
        Limit *l = &b->limit[i];
        if (strcmp(l->what, what) != 0)
            continue;
        found = l->used = true;
        CHECK_CASE(h, u->registers <= l->registers && u->frame <= l->frame && u->spilled <= l->spilled, what);
    }
    CHECK_CASE(h, found && u->kernels > 0, what);
}

/* A line that limits nothing is a mistake, where every kind is compiled. */
static inline void budget_end(Harness *h, const Budget *b)
{
    CHECK(h, b->n > 0);
    for (size_t i = 0; i < b->n; i++)
        CHECK_CASE(h, b->limit[i].used || !test_whole(), b->limit[i].what);
}

#endif
