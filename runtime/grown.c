/* grown.c - a checkpoint of the model before a growth step, read into the model after it.
 *
 * In:  a plan, the checkpoint, a store with the initial values of the grown model.   Out: the store holds the grown
 * weights, their moments and averages.
 * The one idea: a tensor is put together block by block, each from one whole tensor: the old one of the file, or one
 * that is drawn in the size of the new one, so that a new number does not depend on what was there before.
 */
#include "checkpoint.h"

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

/* Copies the block part[k] of each axis k into `to`, laid out as the new tensor, from `from`, laid out as that or, for
 * the old block, as the old tensor. */
static void copy_block(const GrowthEntry *e, const int64_t *part, bool old, const double *from, double *to)
{
    int rank = e->after->shape.rank, rows = rank ? rank - 1 : 0;
    int64_t at[MAX_RANK] = {0}, count[MAX_RANK] = {0}, run = 1;
    for (int k = 0; k < rank; k++)
        count[k] = run = e->axis[k].part[part[k]].count;
    do {
        int64_t here = 0, there = 0;
        for (int k = 0; k < rank; k++) {
            const GrowthPart *p = &e->axis[k].part[part[k]];
            int64_t in = k < rows ? at[k] : 0;
            here = here * e->after->shape.d[k].n + p->at + in;
            there = old ? there * e->before->shape.d[k].n + p->from + in : here;
        }
        memcpy(to + here, from + there, (size_t)run * sizeof *to);
    } while (next_index(at, count, rows));
}

/* The blocks of one role. */
static void copy_role(const GrowthEntry *e, GrowthRole role, const double *from, double *to)
{
    int64_t part[MAX_RANK] = {0}, parts[MAX_RANK] = {0};
    int rank = e->after->shape.rank;
    for (int k = 0; k < rank; k++)
        parts[k] = (int64_t)e->axis[k].n;
    do {
        size_t at[MAX_RANK] = {0};
        for (int k = 0; k < rank; k++)
            at[k] = (size_t)part[k];
        if (growth_role(e, at) == role)
            copy_block(e, part, role == ROLE_OLD, from, to);
    } while (next_index(part, parts, rank));
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
            snprintf(g->why, WHY, "`%.100s` has the shape %.50s in %.150s, and the model before the growth step `%.60s` needs %.50s",
                     name, there.s, g->c->file.path, g->plan->step->name, here.s);
        else
            snprintf(g->why, WHY, "%.200s has no tensor `%.120s`, which the model before the growth step `%.80s` has",
                     g->c->file.path, name, g->plan->step->name);
        return NULL;
    }
    double *v = NEW_ARRAY(g->s->arena, double, n + 1);
    return safe_read(&g->c->file, t, 0, n, v, g->why) ? v : NULL;
}

static bool store_ok(const Growing *g, Status st)
{
    if (st != ST_OK)
        snprintf(g->why, WHY, "%.400s", store_why(g->s->store));
    return st == ST_OK;
}

/* Old blocks of `to` from the file, then `to` into the store. */
static bool put_grown(const Growing *g, const GrowthEntry *e, StoreEntry *into, double *to)
{
    double *old = read_old(g, &e->before->shape, into->name);
    if (old)
        copy_role(e, ROLE_OLD, old, to);
    return old && store_ok(g, store_put_f64(g->s->store, into, 0, e->after->elements, to));
}

/* New blocks of the parameter: as they were drawn with it, or drawn as a rule of `fill` says. */
static void fill_new(const Growing *g, const GrowthEntry *e, double *to)
{
    double *drawn = NULL;
    for (GrowthRole r = ROLE_ENTRY; r <= ROLE_OWN; r++) {
        if (!e->filled[r])
            continue;
        if (!drawn)
            drawn = NEW_ARRAY(g->s->arena, double, e->after->elements + 1);
        Param p = *e->after;
        p.init = e->init[r];
        param_init(&p, g->how->seed, drawn);
        copy_role(e, r, drawn, to);
    }
}

static bool grow_tensor(const Growing *g, const GrowthEntry *e)
{
    Session *s = g->s;
    StoreEntry *own = checkpoint_entry(s, e->after);
    int64_t n = e->after->elements;
    double *value = NEW_ARRAY(s->arena, double, n + 1), *state = NEW_ARRAY(s->arena, double, n + 1);
    if (!store_ok(g, store_get_f64(s->store, own, 0, n, value)))
        return false;
    fill_new(g, e, value);
    if (!put_grown(g, e, own, value))
        return false;
    for (StateKind k = 0; k < STATE_KINDS; k++) {
        StoreEntry *into = checkpoint_state(s, e->after, k);
        for (int64_t i = 0; i < n; i++)
            state[i] = k == STATE_AVERAGE ? value[i] : 0;
        if (into && !put_grown(g, e, into, state))
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

/* With which step each index of an axis came; no file has that of a parameter which has not grown before. */
static bool put_born(const Growing *g, const GrowthEntry *e, int axis)
{
    Session *s = g->s;
    StoreEntry *into = checkpoint_born(s, e->after, axis);
    if (!into)
        return true;
    const GrowthPart all = {0, into->elements, e->before ? 0 : -1};
    const GrowthAxis whole = {.part = &all, .n = 1}, *a = e->before && e->after->shape.rank ? &e->axis[axis] : &whole;
    bool known = e->before && safe_find(&g->c->file, into->name);
    Shape had = {.rank = 1, .d = {e->before && e->before->shape.rank ? e->before->shape.d[axis] : DIM(1)}};
    double *born = NEW_ARRAY(s->arena, double, into->elements + 1), *old = known ? read_old(g, &had, into->name) : NULL;
    for (size_t i = 0; i < a->n; i++)
        for (int64_t k = 0; k < a->part[i].count; k++)
            born[a->part[i].at + k] = a->part[i].from < 0 ? (double)g->how->number : old ? old[a->part[i].from + k] : 0;
    return (old || !known) && store_ok(g, store_put_f64(s->store, into, 0, into->elements, born));
}

/* Every tensor of the file is one of the model before the step, and has a place in the model after it. */
static bool all_have_places(const Growing *g)
{
    static const ExtKind kinds[] = {EXT_PARAM, EXT_BUFFER, EXT_STATE};
    const char *lost = NULL, *made = NULL;
    for (size_t i = 0; i < g->c->file.n && !lost; i++) {
        Name name = name_str(g->s->ctx, g->c->file.tensor[i].name);
        lost = name;
        for (size_t k = 0; k < COUNT_OF(kinds); k++)
            lost = store_find(g->s->store, kinds[k], name) ? NULL : lost;
    }
    for (size_t i = 0; i < g->plan->n && !lost && !made; i++)
        if (g->plan->entry[i].kind == GROWTH_NEW && safe_find(&g->c->file, g->plan->entry[i].path))
            made = g->plan->entry[i].path;
    if (lost)
        snprintf(g->why, WHY, "the model behind the growth step `%.80s` has no place for `%.150s` of %.200s",
                 g->plan->step->name, lost, g->c->file.path);
    else if (made)
        snprintf(g->why, WHY, "%.200s has `%.150s` already, which the growth step `%.80s` is to make", g->c->file.path, made,
                 g->plan->step->name);
    return !lost && !made;
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
            ok = put_born(&g, e, k);
        arena_reset(s->arena, mark);
    }
    return ok;
}
