/* sweep_ranks.c - a sweep of several processes, which may be on several machines.
 *
 * In:  the points of a stage.   Out: those that this process trains; then what became of all.
 * The one idea: a point does not know of the others, so any process may train it. Each takes its share of a stage's points, one after
 * the other, and at the end of the stage all hear of all; so which go on is decided alike everywhere. The first one alone writes the
 * manifest and tells of the sweep.
 */
#include <stdio.h>

#include "runtime/ranks/ranks.h"
#include "sweep.h"

bool sweep_writes(const SweepRun *s) { return !s->owner->ranks || ranks_rank(s->owner->ranks) == 0; }

bool sweep_is_here(const SweepRun *s, size_t k)
{
    const Ranks *r = s->owner->ranks;
    return !r || k % (size_t)ranks_size(r) == (size_t)ranks_rank(r);
}

static void check(const SweepRun *s, bool fine)
{
    if (!fine)
        ctx_raise(s->session.ctx, ST_ENVIRONMENT, "%s", ranks_why(s->owner->ranks));
}

void sweep_agree(SweepRun *s)
{
    Ranks *r = s->owner->ranks;
    if (!r)
        return;
    uint64_t(*all)[2] = arena_alloc_array(s->session.arena, (size_t)ranks_size(r), sizeof *all);
    all[ranks_rank(r)][0] = s->plan->hash;
    all[ranks_rank(r)][1] = s->plan->n;
    check(s, ranks_gather(r, all, sizeof *all));
    for (int i = 1; i < ranks_size(r); i++)
        if (memcmp(all[i], all[0], sizeof all[0]) != 0)
            ctx_raise(s->session.ctx, ST_INPUT, "rank %d has another file, or other points, than rank 0", i);
    sweep_hear(s, NULL, 0);
}

void sweep_hear(SweepRun *s, const size_t *queue, size_t n)
{
    enum { PATIENCE = 100000 }; /* a point may take days; a process that dies is known at once */
    Ranks *r = s->owner->ranks;
    if (!r)
        return;
    Arena *a = s->session.arena;
    ArenaMark mark = arena_mark(a);
    const size_t points = s->plan->n, rungs = s->plan->n_rungs, size = (size_t)ranks_size(r);
    const size_t each = points * (sizeof(PointResult) + rungs * sizeof(double)) + 1;
    char *all = arena_alloc_array(a, size, each), *own = all + (size_t)ranks_rank(r) * each;
    memcpy(own, s->result, points * sizeof *s->result);
    for (size_t i = 0; i < points; i++)
        memcpy(own + points * sizeof *s->result + i * rungs * sizeof(double), s->result[i].rung,
               rungs * sizeof(double));
    own[each - 1] = s->stopping;
    ranks_patience(r, PATIENCE);
    check(s, ranks_gather(r, all, each));
    ranks_patience(r, 1);
    for (size_t k = 0; k < (queue ? n : points); k++) {
        const size_t i = queue ? queue[k] : k;
        const char *from = all + (queue ? k % size : 0) * each;
        double *rung = s->result[i].rung;
        memcpy(&s->result[i], from + i * sizeof *s->result, sizeof *s->result);
        memcpy(rung, from + points * sizeof *s->result + i * rungs * sizeof(double), rungs * sizeof(double));
        s->result[i].rung = rung;
    }
    s->finished = 0;
    for (size_t i = 0; i < points; i++)
        s->finished += s->result[i].state != POINT_WAITING;
    for (size_t i = 0; i < size; i++)
        s->stopping = s->stopping || all[i * each + each - 1];
    arena_reset(a, mark);
}
