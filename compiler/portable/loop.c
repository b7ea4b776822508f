/* loop.c - see loop.h. */
#include "loop.h"

void lanes_add(double *v, int64_t lanes, size_t n)
{
    for (int64_t step = 1; step < lanes; step *= 2)
        for (int64_t i = 0; i < lanes; i += 2 * step)
            for (size_t k = 0; k < n; k++)
                v[(size_t)i * n + k] += v[(size_t)(i + step) * n + k];
}

void loop_gradient(const LoopCalls *c, void *user, int64_t parts, const StepLanes *lanes, bool counts)
{
    int64_t each = parts / lanes->all;
    if (parts > 1)
        c->begin_count(user);
    for (int64_t k = 0; counts && parts > 1 && k < parts; k++)
        c->part(user, LOOP_COUNT, k);
    for (int64_t l = 0; l < lanes->here; l++) {
        for (int64_t k = 0; k < each; k++)
            c->part(user, k ? LOOP_MORE : LOOP_FRESH, (lanes->first + l) * each + k);
        int level = 0; /* the lane ends a pair, that pair one of pairs, and so on */
        for (int64_t i = l; i % 2; i /= 2)
            c->join(user, level++);
        if (l + 1 < lanes->here)
            c->keep(user, level);
    }
}

/* The program on the windows of runs lo .. hi - 1, added into `sum`. */
static void pass(const EvalCalls *c, void *user, const EvalSize *size, int64_t of, LoopProgram which, int64_t lo,
                 int64_t hi, double *part, double *sum)
{
    for (int64_t k = lo; k < hi; k++) {
        int64_t first = k * size->micro, rows = c->feed(user, first, of);
        c->run(user, which, first, rows, of);
        if (which != LOOP_EVAL)
            continue;
        c->results(user, part);
        for (size_t i = 0; i < size->results; i++)
            sum[i] += part[i];
    }
}

int64_t loop_evaluate(const EvalCalls *c, void *user, const EvalSize *size, bool counts, double *part, double *all)
{
    const StepLanes *l = &size->lanes;
    int64_t of =
        size->batches > 0 && size->batches <= size->there / size->batch ? size->batches * size->batch : size->there;
    int64_t runs = of / size->micro + (of % size->micro != 0);
    for (size_t i = 0; i < (size_t)l->all * size->results; i++)
        all[i] = 0;
    c->begin_count(user);
    if (counts)
        pass(c, user, size, of, LOOP_COUNT, 0, runs, part, all);
    for (int64_t k = l->first; k < l->first + l->here; k++)
        pass(c, user, size, of, LOOP_EVAL, k * runs / l->all, (k + 1) * runs / l->all, part,
             all + (size_t)k * size->results);
    if (c->gather)
        c->gather(user, all);
    lanes_add(all, l->all, size->results);
    return of;
}
