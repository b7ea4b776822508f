/* loop.c - see loop.h. */
#include "loop.h"

void loop_gradient(const LoopCalls *c, void *user, int64_t parts, bool counts)
{
    if (parts > 1)
        c->begin_count(user);
    for (int64_t k = 0; counts && parts > 1 && k < parts; k++)
        c->part(user, LOOP_COUNT, k);
    for (int64_t k = 0; k < parts; k++)
        c->part(user, k ? LOOP_MORE : LOOP_FRESH, k);
}

/* The program on all windows. */
static void pass(const EvalCalls *c, void *user, const EvalSize *size, int64_t of, LoopProgram which, double *part,
                 double *all)
{
    for (int64_t first = 0, rows; first < of; first += rows) {
        rows = c->feed(user, first, of);
        c->run(user, which, first, rows, of);
        if (which != LOOP_EVAL)
            continue;
        c->results(user, part);
        for (size_t i = 0; i < size->results; i++)
            all[i] += part[i];
    }
}

int64_t loop_evaluate(const EvalCalls *c, void *user, const EvalSize *size, bool counts, double *part, double *all)
{
    int64_t of =
        size->batches > 0 && size->batches <= size->there / size->batch ? size->batches * size->batch : size->there;
    for (size_t i = 0; i < size->results; i++)
        all[i] = 0;
    c->begin_count(user);
    if (counts)
        pass(c, user, size, of, LOOP_COUNT, part, all);
    pass(c, user, size, of, LOOP_EVAL, part, all);
    return of;
}
