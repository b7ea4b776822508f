/* growth_parts.c - the parts of an axis that grows.
 *
 * In:  what an axis consists of before and after, how new coordinates copy old ones.   Out: its parts.
 * The one idea: an axis that is a product of factors grows in each of them, so that a head which gets
 * wider has its new columns behind its old ones; one with segments grows at the end of each segment.
 */
#include "growth_build.h"

#include <string.h>

__extension__ typedef unsigned __int128 Wider; /* holds a product of extents */

typedef struct GrowthParts {
    Arena *arena;
    const Copying *how;
    VEC(GrowthPart) part;
    bool crowded;
} GrowthParts;
/* Where a run of coordinates comes from. */
typedef struct Origin {
    int64_t from;
    bool fresh;
    double share; /* of the coordinate that it is, or is a copy of */
} Origin;

static void add(GrowthParts *p, int64_t at, int64_t count, Origin o)
{
    GrowthPart *last = p->part.n ? &p->part.v[p->part.n - 1] : NULL;
    if (!count || p->crowded)
        return;
    p->crowded = p->part.n == PARTS_MOST;
    if (last && last->from >= 0 && o.from == last->from + last->count && o.fresh == last->fresh &&
        o.share == last->weight)
        last->count += count;
    else
        vec_push(p->arena, &p->part, ((GrowthPart){at, count, o.from, o.fresh, o.share, 1}));
}

/* Coordinate i of `now` where there were `had`. */
static Origin origin_of(const Copying *how, int64_t i, int64_t had, int64_t now)
{
    if (!how->copies || had == now)
        return (Origin){i < had ? i : -1, i >= had, 1};
    Wider h = (Wider)had, n = (Wider)now;
    int64_t from = how->beside ? (int64_t)((Wider)i * h / n) : i % had, f = from;
    int64_t first = how->beside ? (int64_t)(((Wider)f * n + h - 1) / h) : f;
    int64_t copies = how->beside ? (int64_t)(((Wider)f * n + n + h - 1) / h) - first : now / had + (f < now % had);
    Origin o = {from, i != first, 1};
    if (copies > 1 && how->share == EQUAL_SHARES)
        o.share = 1 / (double)copies;
    else if (copies > 1)
        o.share = o.fresh ? how->share / (double)(copies - 1) : 1 - how->share;
    return o;
}

/* How many coordinates from i on, of those up to `now`, come from coordinates that follow each other in the same way. */
static int64_t run_of(const Copying *how, int64_t i, int64_t had, int64_t now)
{
    if (!how->copies || had == now)
        return (i < had ? had : now) - i;
    if (how->beside)
        return 1;
    int64_t from = i % had, more = now % had; /* the first `more` have one copy more than the others */
    int64_t run = (from < more ? more : had) - from;
    return run < now - i ? run : now - i;
}

/* Factors of both sides, outermost first: where each element of the new axis was. */
static void add_factors(GrowthParts *p, const int64_t *had, const int64_t *now, size_t n, int64_t at, Origin from)
{
    int64_t inner_had = 1, inner_now = 1;
    for (size_t i = 1; i < n; i++) {
        inner_had *= had[i];
        inner_now *= now[i];
    }
    bool whole = n == 1 || (inner_had == inner_now && memcmp(had + 1, now + 1, (n - 1) * sizeof *had) == 0);
    for (int64_t i = 0, run = 1; i < now[0] && !p->crowded; i += run) {
        Origin o = origin_of(p->how, i, had[0], now[0]);
        if (o.from < 0) { /* and all behind it */
            add(p, at + i * inner_now, (now[0] - i) * inner_now, o);
            return;
        }
        o.from = from.from + o.from * inner_had;
        o.fresh |= from.fresh;
        o.share *= from.share;
        run = whole ? run_of(p->how, i, had[0], now[0]) : 1;
        if (whole)
            add(p, at + i * inner_now, run * inner_now, o);
        else
            add_factors(p, had + 1, now + 1, n - 1, at + i * inner_now, o);
    }
}

/* No factor and no segment gets smaller, and there are as many. */
static bool correspond(const int64_t *had, size_t n_had, const int64_t *now, size_t n_now)
{
    for (size_t i = 0; i < n_had && n_had == n_now; i++)
        if (now[i] < had[i])
            return false;
    return n_had == n_now;
}

/* What the old axis has for the factors of the new one: its own, or, of one that was whole (in one part, [1 * 96]), as many
 * of the inner ones as fit. NULL: it is cut in another way. */
static const int64_t *factors_of(const AxisShape *was, const AxisShape *is, int64_t had, Arena *arena)
{
    if (was->n_factor && correspond(was->factor, was->n_factor, is->factor, is->n_factor))
        return was->factor;
    bool whole = !was->n_segment && (!was->n_factor || (was->n_factor == 2 && was->factor[0] == 1));
    int64_t inner = 1;
    for (size_t i = 1; i < is->n_factor; i++)
        inner *= is->factor[i];
    if (!whole || !inner || had % inner)
        return NULL;
    int64_t *f = NEW_ARRAY(arena, int64_t, is->n_factor);
    memcpy(f, is->factor, is->n_factor * sizeof *f);
    f[0] = had / inner;
    return f;
}

GrowthAxis growth_axis(const AxisShape *was, const AxisShape *is, int64_t had, int64_t now, const Copying *how,
                       bool shares, Arena *arena)
{
    static const Copying none = {0};
    GrowthParts p = {.arena = arena, .how = had > 0 ? how : &none};
    GrowthAxis a = {.reads = is->reads};
    Origin start = {0, false, 1};
    const int64_t *factor = is->n_factor ? factors_of(was, is, had, arena) : NULL;
    if (factor) {
        add_factors(&p, factor, is->factor, is->n_factor, 0, start);
    } else if (is->n_segment && correspond(was->segment, was->n_segment, is->segment, is->n_segment)) {
        int64_t at = 0;
        for (size_t i = 0; i < is->n_segment; i++) {
            if (!was->segment[i])
                add(&p, at, is->segment[i], (Origin){-1, true, 1});
            else
                add_factors(&p, &was->segment[i], &is->segment[i], 1, at, start);
            at += is->segment[i];
            start.from += was->segment[i];
        }
    } else {
        a.recut = is->n_factor || is->n_segment || was->n_factor || was->n_segment;
        add_factors(&p, &had, &now, 1, 0, start);
    }
    if (!p.part.n) /* of extent 0: an axis has a part */
        vec_push(arena, &p.part, ((GrowthPart){.weight = 1, .gradient = 1}));
    for (size_t i = 0; i < p.part.n; i++) {
        GrowthPart *q = &p.part.v[i];
        if (!a.reads)
            q->gradient = q->weight;
        if (!a.reads || !shares)
            q->weight = 1;
    }
    a.crowded = p.crowded;
    a.part = p.part.v;
    a.n = p.part.n;
    return a;
}
