/* growth_plan.c - the plan of a growth step: both models side by side, tensor by tensor, axis by axis.
 *
 * In:  a GrowStep.   Out: growth.h's GrowthPlan.
 * The one idea: an axis that is a product of factors grows in each of them, so that a head which gets
 * wider has its new columns behind its old ones; one with segments grows at the end of each segment.
 */
#include "growth.h"

#include <string.h>

bool growth_selects(const char *s, const char *p)
{
    for (; *s; s++, p++) {
        if (*s == '*' && *p) {
            while (p[1] && p[1] != ']')
                p++;
        } else if (*s != *p)
            return false;
    }
    return !*p || *p == '.' || *p == '[';
}

typedef struct Parts {
    Arena *arena;
    VEC(GrowthPart) part;
} Parts;

static void add(Parts *p, int64_t at, int64_t count, int64_t from)
{
    GrowthPart *last = p->part.n ? &p->part.v[p->part.n - 1] : NULL;
    if (!count)
        return;
    if (last && last->from >= 0 && from == last->from + last->count)
        last->count += count;
    else
        vec_push(p->arena, &p->part, ((GrowthPart){at, count, from}));
}

/* Factors of both sides, outermost first: where each element of the new axis was. */
static void add_factors(Parts *p, const int64_t *had, const int64_t *now, size_t n, int64_t at, int64_t from)
{
    int64_t inner_had = 1, inner_now = 1;
    for (size_t i = 1; i < n; i++) {
        inner_had *= had[i];
        inner_now *= now[i];
    }
    if (n == 1 || (inner_had == inner_now && memcmp(had + 1, now + 1, (n - 1) * sizeof *had) == 0)) {
        add(p, at, had[0] * inner_had, from);
        add(p, at + had[0] * inner_had, (now[0] - had[0]) * inner_now, -1);
        return;
    }
    for (int64_t i = 0; i < had[0]; i++)
        add_factors(p, had + 1, now + 1, n - 1, at + i * inner_now, from + i * inner_had);
    add(p, at + had[0] * inner_now, (now[0] - had[0]) * inner_now, -1);
}

/* No factor and no segment gets smaller, and there are as many. */
static bool correspond(const int64_t *had, size_t n_had, const int64_t *now, size_t n_now)
{
    for (size_t i = 0; i < n_had && n_had == n_now; i++)
        if (now[i] < had[i])
            return false;
    return n_had == n_now;
}

static GrowthAxis axis_of(const AxisShape *was, const AxisShape *is, int64_t had, int64_t now, Arena *arena)
{
    Parts p = {.arena = arena};
    GrowthAxis a = {.reads = is->reads};
    if (is->n_factor && correspond(was->factor, was->n_factor, is->factor, is->n_factor)) {
        add_factors(&p, was->factor, is->factor, is->n_factor, 0, 0);
    } else if (is->n_segment && correspond(was->segment, was->n_segment, is->segment, is->n_segment)) {
        int64_t at = 0, from = 0;
        for (size_t i = 0; i < is->n_segment; i++) {
            add(&p, at, was->segment[i], from);
            add(&p, at + was->segment[i], is->segment[i] - was->segment[i], -1);
            at += is->segment[i];
            from += was->segment[i];
        }
    } else {
        a.recut = is->n_factor || is->n_segment || was->n_factor || was->n_segment;
        add(&p, 0, had, 0);
        add(&p, had, now - had, -1);
    }
    a.part = p.part.v;
    a.n = p.part.n;
    return a;
}

GrowthRole growth_role(const GrowthEntry *e, const size_t *part)
{
    bool read = false, written = false, product = false;
    for (int k = 0; k < e->after->shape.rank; k++) {
        bool fresh = e->axis[k].part[part[k]].from < 0;
        read |= fresh && e->axis[k].reads;
        written |= fresh && !e->axis[k].reads;
        product |= e->axis[k].reads;
    }
    if (!product && written)
        return ROLE_OWN;
    return read ? (written ? ROLE_INNER : ROLE_EXIT) : written ? ROLE_ENTRY : ROLE_OLD;
}

static const char *role_name(GrowthRole role)
{
    static const char *const names[] = {"old", "entry", "exit", "inner", "own"};
    return names[role];
}

static void find_fill(GrowthEntry *e, const GrowStep *step)
{
    for (int r = ROLE_ENTRY; r <= ROLE_OWN; r++) {
        e->init[r] = e->after->init;
        for (size_t i = 0; i < step->fill.n && r != ROLE_OWN; i++) {
            const FillRule *f = &step->fill.v[i];
            if (!f->is_init || strcmp(f->part, role_name((GrowthRole)r)) != 0 ||
                (*f->selector && !growth_selects(f->selector, e->path)))
                continue;
            e->init[r] = f->init;
            e->filled[r] = true;
        }
    }
}

/* Weights of new layers: what they are drawn with. Of layers that add nothing those that write an axis which old weights
 * have too, as the width of the stream, are zeros: the output projections. Static numbers stay what they are. */
static void fill_layers(GrowthEntry *e, const GrowStep *step, const AxisShape *is, const bool *old)
{
    bool reads = false, out = false;
    e->init[ROLE_OLD] = e->after->init;
    for (int k = 0; k < e->after->shape.rank; k++) {
        reads |= is[k].reads;
        out |= !is[k].reads && (old[is[k].class] || old[is[k].within]);
    }
    InitKind kind = e->after->init.kind;
    if (!reads || (kind != INIT_NORMAL && kind != INIT_TRUNC_NORMAL && kind != INIT_UNIFORM))
        return;
    for (size_t i = 0; i < step->fill.n; i++) {
        const FillRule *f = &step->fill.v[i];
        if (strcmp(f->part, "layers") != 0 || !fill_is_carried(f) || (f->identity && !out) ||
            (*f->selector && !growth_selects(f->selector, e->path)))
            continue;
        e->init[ROLE_OLD] = f->identity ? (Init){.kind = INIT_FILL} : f->init;
        e->filled[ROLE_OLD] = true;
    }
}

static void compare(GrowthEntry *e, const GrowStep *step, const AxisShape *was, const AxisShape *is, Arena *arena)
{
    const Shape *s = &e->before->shape, *t = &e->after->shape;
    bool cut = s->rank != t->rank || e->before->buffer != e->after->buffer;
    e->kind = GROWTH_TAKEN;
    for (int k = 0; k < t->rank && !cut; k++) {
        cut = t->d[k].n < s->d[k].n;
        if (t->d[k].n > s->d[k].n)
            e->kind = GROWTH_GROWN;
    }
    if (cut) {
        e->kind = GROWTH_CUT;
        return;
    }
    for (int k = 0; k < t->rank; k++)
        e->axis[k] = axis_of(&was[k], &is[k], s->d[k].n, t->d[k].n, arena);
    e->old_elements = e->before->elements;
    find_fill(e, step);
}

GrowthPlan *growth_plan(const GrowStep *step, Arena *arena)
{
    const Model *a = step->before, *b = step->after;
    GrowthPlan *plan = NEW(arena, GrowthPlan);
    *plan = (GrowthPlan){.step = step, .entry = NEW_ARRAY(arena, GrowthEntry, a->param.n + b->param.n + 1)};
    AxisShape **was = growth_axes(a, arena), **is = growth_axes(b, arena);
    Map had;
    map_init(&had, arena);
    for (size_t i = 0; i < a->param.n; i++)
        *map_at(&had, (uintptr_t)a->param.v[i].path) = (void *)(uintptr_t)(i + 1);
    bool *met = NEW_ARRAY(arena, bool, a->param.n + 1);
    for (size_t i = 0; i < b->param.n; i++) {
        GrowthEntry *e = &plan->entry[plan->n++];
        *e = (GrowthEntry){.kind = GROWTH_NEW, .path = b->param.v[i].path, .after = &b->param.v[i]};
        size_t at = (size_t)(uintptr_t)map_get(&had, (uintptr_t)e->path);
        if (at) {
            met[at - 1] = true;
            e->before = &a->param.v[at - 1];
            compare(e, step, was[at - 1], is[i], arena);
        }
        plan->taken += e->old_elements;
        plan->added += e->after->elements - e->old_elements;
    }
    uint32_t classes = 0;
    for (size_t i = 0; i < b->param.n; i++)
        for (int k = 0; k < b->param.v[i].shape.rank; k++)
            classes = is[i][k].class + is[i][k].within + 1 > classes ? is[i][k].class + is[i][k].within + 1 : classes;
    bool *old = NEW_ARRAY(arena, bool, classes + 1u);
    for (size_t i = 0; i < b->param.n; i++)
        for (int k = 0; k < b->param.v[i].shape.rank && plan->entry[i].before; k++)
            old[is[i][k].class] = old[is[i][k].within] = true;
    for (size_t i = 0; i < b->param.n; i++)
        if (plan->entry[i].kind == GROWTH_NEW)
            fill_layers(&plan->entry[i], step, is[i], old);
    for (size_t i = 0; i < a->param.n; i++)
        if (!met[i])
            plan->entry[plan->n++] =
                (GrowthEntry){.kind = GROWTH_LEFT, .path = a->param.v[i].path, .before = &a->param.v[i]};
    return plan;
}
