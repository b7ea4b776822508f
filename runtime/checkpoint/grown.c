/* grown.c - a checkpoint of the model before a growth step, read into the model after it.
 *
 * In:  a plan, the checkpoint, a store with the initial values of the grown model.   Out: the store holds the grown
 * weights, their moments and averages.
 * The one idea: a tensor is put together block by block, each from one whole tensor: the old one of the file, or one
 * that is drawn in the size of the new one, so that a new number does not depend on what was there before.
 */
#include "checkpoint.h"
#include "compiler/model/optimizer.h"

#include <math.h>
#include <stdio.h>

typedef struct Growing {
    Session *s;
    const GrowthPlan *plan;
    const Checkpoint *c;
    const GrowthCall *how;
    char *why;
} Growing;

/* The next index below the extents, the last axis fastest; false behind the last one. */
static bool next_index(int64_t *at, const int64_t *extent, int rank)
{
    for (int k = rank - 1; k >= 0; k--) {
        if (++at[k] < extent[k])
            return true;
        at[k] = 0;
    }
    return false;
}

/* Puts `factor` times the block part[k] of each axis k into `to`, laid out as the new tensor, from `from`, laid out as that
 * or, for what is taken, as the old tensor. */
static void copy_block(const GrowthEntry *e, const size_t *part, bool old, double factor, const double *from,
                       double *to)
{
    int rank = e->after->shape.rank, rows = rank ? rank - 1 : 0, spread = old ? rank - e->before->shape.rank : 0;
    int64_t at[MAX_RANK] = {0}, count[MAX_RANK] = {0}, run = 1;
    bool empty = false;
    for (int k = 0; k < rank; k++) {
        count[k] = run = e->axis[k].part[part[k]].count;
        empty |= run == 0;
    }
    if (empty)
        return;
    do {
        int64_t here = 0, there = 0;
        for (int k = 0; k < rank; k++) {
            const GrowthPart *p = &e->axis[k].part[part[k]];
            int64_t in = k < rows ? at[k] : 0;
            here = here * e->after->shape.d[k].n + p->at + in;
            there = !old ? here : k < spread ? 0 : there * e->before->shape.d[k - spread].n + p->from + in;
        }
        for (int64_t i = 0; i < run; i++)
            to[here + i] = factor * from[there + i];
    } while (next_index(at, count, rows));
}

typedef enum Taking { TAKE_WEIGHTS, TAKE_FIRST, TAKE_SECOND } Taking; /* moments: of the gradient, of its square */

/* The next block of the tensor; false behind the last one. */
static bool next_block(const GrowthEntry *e, size_t *part)
{
    int64_t at[MAX_RANK] = {0}, parts[MAX_RANK] = {0};
    int rank = e->after->shape.rank;
    for (int k = 0; k < rank; k++) {
        at[k] = (int64_t)part[k];
        parts[k] = (int64_t)e->axis[k].n;
    }
    bool more = next_index(at, parts, rank);
    for (int k = 0; k < rank; k++)
        part[k] = (size_t)at[k];
    return more;
}

/* Blocks that are taken from the old tensor. Where weights are multiplied or copied the gradient has a factor, and so have
 * moments. */
static void take_old(const GrowthEntry *e, Taking what, const double *from, double *to)
{
    size_t part[MAX_RANK] = {0};
    do {
        double g = growth_gradient(e, part), factor = what == TAKE_FIRST    ? g
                                                      : what == TAKE_SECOND ? g * g
                                                                            : growth_weight(e, part);
        if (what == TAKE_WEIGHTS ? growth_taken(e, part) : growth_moments(e, part))
            copy_block(e, part, true, factor, from, to);
    } while (next_block(e, part));
}

/* Blocks of one role that are drawn. */
static void copy_role(const GrowthEntry *e, GrowthRole role, const double *from, double *to)
{
    size_t part[MAX_RANK] = {0};
    do {
        if (growth_role(e, part) == role)
            copy_block(e, part, false, 1, from, to);
    } while (next_block(e, part));
}

/* The tensor of the file, in the session's arena; NULL with `why`. */
static double *read_old(const Growing *g, const Shape *s, Name name)
{
    const SafeTensor *t = safe_find(&g->c->file, name);
    bool same = t && t->rank == s->rank;
    int64_t n = 1;
    for (int k = 0; same && k < s->rank; k++) {
        same = t->d[k] == s->d[k].n;
        n *= s->d[k].n;
    }
    if (!same) {
        Buf there = buf_new(g->s->arena), here = buf_new(g->s->arena);
        Shape of = {.rank = t ? t->rank : 0};
        for (int k = 0; k < of.rank; k++)
            of.d[k] = DIM(t->d[k]);
        shape_print(&there, &of);
        shape_print(&here, s);
        if (t)
            snprintf(g->why, WHY,
                     "`%.100s` has the shape %.50s in %.150s, and the model before the growth step `%.60s` needs %.50s",
                     name, there.s, g->c->file.path, g->plan->step->name, here.s);
        else
            snprintf(g->why, WHY, "%.200s has no tensor `%.120s`, which the model before the growth step `%.80s` has",
                     g->c->file.path, name, g->plan->step->name);
        return NULL;
    }
    double *v = NEW_ARRAY(g->s->arena, double, n + 1);
    return safe_read(&g->c->file, t, 0, n, v, g->why) ? v : NULL;
}

/* Tensors of the grown model that are taken from one tensor. */
typedef struct Taker {
    const GrowthEntry *e;
    const struct Taker *next;
} Taker;

static bool store_ok(const Growing *g, Status st)
{
    if (st != ST_OK)
        snprintf(g->why, WHY, "%.400s", store_why(g->s->store));
    return st == ST_OK;
}

/* Old blocks of `to` from the tensor `name` of the file, then `to` into the store. */
static bool put_grown(const Growing *g, const GrowthEntry *e, Taking what, Name name, StoreEntry *into, double *to)
{
    double *old = read_old(g, &e->before->shape, name);
    if (old)
        take_old(e, what, old, to);
    return old && store_ok(g, store_put_f64(g->s->store, into, 0, e->after->elements, to));
}

/* The standard deviation of the old numbers; negative: they cannot be read. */
static double spread_of(const Growing *g, const GrowthEntry *e)
{
    const double *old = read_old(g, &e->before->shape, e->before->path);
    int64_t n = e->before->elements;
    double mean = 0, squares = 0;
    for (int64_t i = 0; old && i < n; i++)
        mean += old[i] / (double)n;
    for (int64_t i = 0; old && i < n; i++)
        squares += (old[i] - mean) * (old[i] - mean);
    return old ? sqrt(squares / (double)n) : -1;
}

/* The mean of the old numbers along the axes of the new tensor that `mask` has, laid out as the old tensor with an extent of 1
 * there. */
static double *mean_along(const Growing *g, const GrowthEntry *e, unsigned mask, const double *old,
                          int64_t extent[MAX_RANK])
{
    const Shape *was = &e->before->shape;
    int spread = e->after->shape.rank - was->rank;
    int64_t at[MAX_RANK] = {0}, had[MAX_RANK] = {0}, n = 1, of = 1;
    for (int k = 0; k < was->rank; k++) {
        bool along = mask >> (k + spread) & 1;
        had[k] = was->d[k].n;
        extent[k] = along ? 1 : had[k];
        n *= extent[k];
        of *= along ? had[k] : 1;
    }
    double *mean = NEW_ARRAY(g->s->arena, double, n + 1);
    for (int64_t i = 0; i < e->before->elements; i++) {
        int64_t to = 0;
        for (int k = 0; k < was->rank; k++)
            to = to * extent[k] + (extent[k] == had[k] ? at[k] : 0);
        mean[to] += old[i] / (double)of;
        next_index(at, had, was->rank);
    }
    return mean;
}

static unsigned fresh_axes(const GrowthEntry *e, const size_t *part)
{
    unsigned mask = 0;
    for (int k = 0; k < e->after->shape.rank; k++)
        mask |= (unsigned)e->axis[k].part[part[k]].fresh << k;
    return mask;
}

/* Blocks of which a rule says that they are the mean of what is old, from the tensor `name` of the file. */
static bool fill_means(const Growing *g, const GrowthEntry *e, Name name, double *to)
{
    if (!e->before)
        return true;
    int rank = e->after->shape.rank, spread = rank - e->before->shape.rank;
    size_t part[MAX_RANK] = {0};
    const double *old = NULL, *mean[1u << MAX_RANK] = {0};
    int64_t extent[1u << MAX_RANK][MAX_RANK];
    do {
        unsigned mask = fresh_axes(e, part);
        int64_t at[MAX_RANK] = {0}, count[MAX_RANK];
        if (!e->means[growth_role(e, part)])
            continue;
        if (!old && !(old = read_old(g, &e->before->shape, name)))
            return false;
        if (!mean[mask])
            mean[mask] = mean_along(g, e, mask, old, extent[mask]);
        bool empty = false;
        for (int k = 0; k < rank; k++) {
            count[k] = e->axis[k].part[part[k]].count;
            empty |= !count[k];
        }
        if (empty)
            continue;
        do {
            int64_t here = 0, there = 0;
            for (int k = 0; k < rank; k++) {
                const GrowthPart *p = &e->axis[k].part[part[k]];
                here = here * e->after->shape.d[k].n + p->at + at[k];
                if (k >= spread)
                    there = there * extent[mask][k - spread] + (mask >> k & 1 ? 0 : p->from + at[k]);
            }
            to[here] = mean[mask][there];
        } while (next_index(at, count, rank));
    } while (next_block(e, part));
    return true;
}

/* New blocks of the parameter: as they were drawn with it, or drawn as a rule of `fill` says. */
static bool fill_new(const Growing *g, const GrowthEntry *e, double *to)
{
    double *drawn = NULL;
    for (GrowthRole r = ROLE_ENTRY; r <= ROLE_OWN; r++) {
        if (!e->filled[r] || e->means[r])
            continue;
        if (!drawn)
            drawn = NEW_ARRAY(g->s->arena, double, e->after->elements + 1);
        Param p = *e->after;
        p.init = e->init[r];
        double spread = e->noise[r] != 0 ? spread_of(g, e) : 0;
        if (spread < 0)
            return false;
        if (e->noise[r] != 0)
            p.init.a = e->noise[r] * spread;
        param_init(&p, g->how->seed, drawn);
        copy_role(e, r, drawn, to);
    }
    return true;
}

static bool grow_tensor(const Growing *g, const GrowthEntry *e)
{
    Session *s = g->s;
    StoreEntry *own = checkpoint_entry(s, e->after);
    int64_t n = e->after->elements;
    double *value = NEW_ARRAY(s->arena, double, n + 1), *state = NEW_ARRAY(s->arena, double, n + 1);
    if (!store_ok(g, store_get_f64(s->store, own, 0, n, value)))
        return false;
    if (!fill_new(g, e, value) || !fill_means(g, e, e->before->path, value) ||
        !put_grown(g, e, TAKE_WEIGHTS, e->before->path, own, value))
        return false;
    static const Taking what[STATE_KINDS] = {[STATE_FIRST] = TAKE_FIRST, [STATE_SECOND] = TAKE_SECOND};
    for (StateKind k = 0; k < STATE_KINDS; k++) {
        StoreEntry *into = checkpoint_state(s, e->after, k);
        for (int64_t i = 0; i < n; i++)
            state[i] = k == STATE_AVERAGE ? value[i] : 0;
        Name name = checkpoint_state_name(s, e->before, k);
        bool average = k == STATE_AVERAGE, none = average && growth_added(e) && !safe_find(&g->c->file, name);
        if (!into || (!average && growth_added(e) && g->plan->step->fresh_moments))
            continue;
        if (none ? !store_ok(g, store_put_f64(s->store, into, 0, n, state))
                 : (average && !fill_means(g, e, name, state)) || !put_grown(g, e, what[k], name, into, state))
            return false;
    }
    return true;
}

/* A tensor that is new as a whole has its initial values already, but for a rule of `fill`. */
static bool fill_tensor(const Growing *g, const GrowthEntry *e)
{
    if (!e->filled[ROLE_OLD])
        return true;
    StoreEntry *into[] = {checkpoint_entry(g->s, e->after), checkpoint_state(g->s, e->after, STATE_AVERAGE)};
    double *value = NEW_ARRAY(g->s->arena, double, e->after->elements + 1);
    Param p = *e->after;
    p.init = e->init[ROLE_OLD];
    param_init(&p, g->how->seed, value);
    for (size_t i = 0; i < COUNT_OF(into); i++)
        if (into[i] && !store_ok(g, store_put_f64(g->s->store, into[i], 0, e->after->elements, value)))
            return false;
    return true;
}

/* With which step each index of an axis came, or its moments, which copies may have of what they copy. A file has that of no
 * parameter that has not grown before, and that of moments only where some were carried: else they came with the weights. */
static bool put_came(const Growing *g, const GrowthEntry *e, int axis, bool moments)
{
    Session *s = g->s;
    StoreEntry *into = moments ? checkpoint_since(s, e->after, axis) : checkpoint_born(s, e->after, axis);
    if (!into)
        return true;
    bool carried = moments && e->copied && !g->plan->step->fresh_moments, fresh = growth_added(e) && !carried;
    int was = axis - (e->before ? e->after->shape.rank - e->before->shape.rank : 0);
    Name born = e->before && was >= 0 ? born_name(s->ctx, e->before, was) : NULL;
    Name since = moments && born ? since_name(s->ctx, e->before, was) : NULL, name = born;
    if (since && safe_find(&g->c->file, since))
        name = since;
    bool known = !fresh && name && e->before->shape.rank && safe_find(&g->c->file, name);
    double *came = NEW_ARRAY(s->arena, double, into->elements + 1), *old = NULL;
    if (known && !(old = read_old(g, &(Shape){.rank = 1, .d = {e->before->shape.d[was]}}, name)))
        return false;
    const GrowthAxis none = {0}, *a = e->before && e->after->shape.rank ? &e->axis[axis] : &none;
    for (int64_t k = 0; k < into->elements; k++)
        came[k] = fresh ? (double)g->how->number : 0;
    for (size_t i = 0; i < a->n && !fresh; i++)
        for (int64_t k = 0; k < a->part[i].count; k++) {
            bool now = a->part[i].fresh && !(moments && a->carried);
            came[a->part[i].at + k] = now ? (double)g->how->number : old ? old[a->part[i].from + k] : 0;
        }
    return store_ok(g, store_put_f64(s->store, into, 0, into->elements, came));
}

/* Whether some tensor of the grown model takes this one over: a weight, "PATH", or what is kept of one, "PATH:m". */
static bool has_place(const Growing *g, Map *taken, const char *name)
{
    const char *state = strchr(name, ':');
    Ctx *ctx = g->s->ctx;
    for (const Taker *t = map_get(taken, (uintptr_t)name_printf(ctx, "%.*s", (int)strcspn(name, ":"), name)); t;
         t = t->next) {
        Name kept = state ? name_printf(ctx, "%s%s", t->e->after->path, state) : NULL;
        bool part = state && (!strncmp(state, ":born", 5) || !strncmp(state, ":since", 6));
        if (!state || part || g->how->weights_only || store_find(g->s->store, EXT_STATE, kept))
            return true;
    }
    return false;
}

/* Every tensor of the file is one of the model before the step, and one of the model after it takes it over. */
static bool all_have_places(const Growing *g)
{
    const char *lost = NULL, *made = NULL;
    Map taken;
    map_init(&taken, g->s->arena);
    for (size_t i = 0; i < g->plan->n; i++) {
        const GrowthEntry *e = &g->plan->entry[i];
        if (!e->before || !e->after)
            continue;
        void **at = map_at(&taken, (uintptr_t)e->before->path);
        Taker *t = NEW(g->s->arena, Taker);
        *t = (Taker){e, *at};
        *at = t;
    }
    for (size_t i = 0; i < g->c->file.n && !lost; i++)
        if (!has_place(g, &taken, g->c->file.tensor[i].name))
            lost = g->c->file.tensor[i].name;
    for (size_t i = 0; i < g->plan->n && lost; i++)
        if (g->plan->entry[i].kind == GROWTH_NEW && !strcmp(g->plan->entry[i].path, lost))
            made = lost;
    if (made)
        snprintf(g->why, WHY, "%.200s has `%.150s` already, which the growth step `%.80s` is to make", g->c->file.path,
                 made, g->plan->step->name);
    else if (lost)
        snprintf(g->why, WHY, "the model behind the growth step `%.80s` has no place for `%.150s` of %.200s",
                 g->plan->step->name, lost, g->c->file.path);
    return !lost;
}

bool checkpoint_grow(Session *s, const GrowthPlan *plan, const Checkpoint *c, const GrowthCall *how, char why[WHY])
{
    const Growing g = {s, plan, c, how, why};
    bool ok = all_have_places(&g);
    for (size_t i = 0; i < plan->n && ok; i++) {
        const GrowthEntry *e = &plan->entry[i];
        ArenaMark mark = arena_mark(s->arena);
        if (e->kind == GROWTH_TAKEN || e->kind == GROWTH_GROWN) {
            ok = grow_tensor(&g, e);
        } else if (e->kind == GROWTH_NEW) {
            ok = fill_tensor(&g, e);
        } else {
            snprintf(why, WHY, "the growth step `%.80s` would lose numbers of `%.150s`", plan->step->name, e->path);
            ok = false;
        }
        for (int k = 0; e->after && k < MAX_RANK && ok; k++)
            ok = put_came(&g, e, k, false) && put_came(&g, e, k, true);
        arena_reset(s->arena, mark);
    }
    return ok;
}
