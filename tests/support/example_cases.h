/* example_cases.h - the gradients of every example, by a backend, against the float64 reference evaluator.
 *
 * In:  how gradients are computed and compared, the sizes of each example.
 * Out: the exit status of a test with a case for each; a line for a case. Every loss and every gradient agrees to
 *      float32 bounds, and all runs give the same bits.
 */
#ifndef TEST_EXAMPLE_CASES_H
#define TEST_EXAMPLE_CASES_H

#include "examples.h"
#include "gradients.h"

/* Where large numbers cancel, as in the gradients of a condition, the CPU's kernels differ by up to 3e-5. */
#define EXAMPLE_WORST 5e-5

typedef void CompareGradients(Ctx *ctx, const Unit *u, Agreement *c);

typedef struct ExampleCase {
    const Source *source;
    CompareGradients *compare;
    Agreement is;
} ExampleCase;

static inline void compare_example(Ctx *ctx, void *arg)
{
    ExampleCase *c = arg;
    c->compare(ctx, load_text(ctx, example_text(ctx, c->source), c->source->v.set), &c->is);
}

static inline bool example_agrees(const Source *s, CompareGradients *compare, int64_t B, int64_t T)
{
    Ctx *ctx = ctx_new(NULL);
    ExampleCase c = {s, compare, {.B = B, .T = T, .worst = INFINITY, .name = ""}};
    guarded(ctx, compare_example, &c);
    bool ok = c.is.worst < EXAMPLE_WORST && c.is.compared >= 7 && c.is.same_bits;
    printf("%-18s B %lld T %-2lld %3zu gradients, worst %.1e at %s%s%s\n", s->v.name, (long long)B, (long long)T,
           c.is.compared, c.is.worst, c.is.name, c.is.same_bits ? "" : ", runs differ", ok ? "" : "  FAILED");
    fflush(stdout);
    ctx_free(ctx);
    return ok;
}

static inline const char *example_name(size_t i) { return sources[i].v.name; }

#endif
