/* growth_plan.c - the plan of a growth step: both models side by side, tensor by tensor, axis by axis.
 *
 * In:  a GrowStep.   Out: growth.h's GrowthPlan.
 * The one idea: a rule of `fill` decides about blocks of a role; whether they are drawn or copied, where the copies stand
 * and what is shared out among them then stands in the parts of the axes.
 */
#include "growth_build.h"

#include <math.h>
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

static double product(const GrowthEntry *e, const size_t *part, bool gradient)
{
    double c = 1;
    for (int k = 0; k < e->after->shape.rank; k++)
        c *= gradient ? e->axis[k].part[part[k]].gradient : e->axis[k].part[part[k]].weight;
    return c;
}

double growth_weight(const GrowthEntry *e, const size_t *part) { return product(e, part, false); }

double growth_gradient(const GrowthEntry *e, const size_t *part) { return product(e, part, true); }

bool growth_same(const GrowthEntry *e)
{
    bool same = e->kind == GROWTH_TAKEN && !e->copied;
    for (int k = 0; same && k < e->after->shape.rank; k++)
        same = e->axis[k].n == 1 && e->axis[k].part[0].weight == 1;
    return same;
}

bool growth_added(const GrowthEntry *e) { return e->kind == GROWTH_NEW || (e->copied && !e->moved); }

bool growth_taken(const GrowthEntry *e, const size_t *part)
{
    GrowthRole r = growth_role(e, part);
    bool taken = r == ROLE_OLD || e->copies[r];
    for (int k = 0; k < e->after->shape.rank; k++)
        taken &= e->axis[k].part[part[k]].from >= 0;
    return taken;
}

bool growth_moments(const GrowthEntry *e, const size_t *part)
{
    bool carried = growth_taken(e, part);
    for (int k = 0; k < e->after->shape.rank; k++)
        carried &= !e->axis[k].part[part[k]].fresh || e->axis[k].carried;
    return carried;
}

GrowthRole growth_role(const GrowthEntry *e, const size_t *part)
{
    bool read = false, written = false, product = false;
    for (int k = 0; k < e->after->shape.rank; k++) {
        bool fresh = e->axis[k].part[part[k]].fresh;
        read |= fresh && e->axis[k].reads;
        written |= fresh && !e->axis[k].reads;
        product |= e->axis[k].reads;
    }
    if (!product && written)
        return ROLE_OWN;
    return read ? (written ? ROLE_INNER : ROLE_EXIT) : written ? ROLE_ENTRY : ROLE_OLD;
}

static bool copying(FillKind kind) { return kind == FILL_COPY || kind == FILL_SPLIT || kind == FILL_REPLICATE; }

bool growth_copies(const GrowStep *step)
{
    bool copies = false;
    for (size_t i = 0; i < step->fill.n; i++)
        copies |= copying(step->fill.v[i].kind);
    return copies;
}

bool growth_carries(const GrowStep *step) { return growth_copies(step) && !step->fresh_moments; }

typedef struct Planning {
    const GrowStep *step;
    Arena *arena;
    AxisShape **was, **is;          /* by parameter of each model */
    const size_t *reader;           /* by class of the grown model: a parameter that reads it, + 1 */
    int64_t **had_mean, **has_mean; /* NULL: nothing is rescaled */
} Planning;

/* The last rule of this part that fits; NULL: none. */
static const FillRule *rule_of(const GrowStep *step, const char *part, const char *path)
{
    const FillRule *last = NULL;
    for (size_t i = 0; i < step->fill.n; i++) {
        const FillRule *f = &step->fill.v[i];
        if (!strcmp(f->part, part) && (!*f->selector || growth_selects(f->selector, path)))
            last = f;
    }
    return last;
}

/* What decides about blocks of a role. Gains and biases of coordinates that are copies are copies, unless `norms` says
 * something else; so is what connects copies with copies, unless `inner` does. */
static const FillRule *rule_for(const GrowStep *step, GrowthRole role, const char *path)
{
    static const char *const name[] = {"layers", "entry", "exit", "inner", "norms"};
    const FillRule *f = rule_of(step, name[role], path), *entry = rule_of(step, "entry", path);
    bool copies = entry && copying(entry->kind);
    if (role == ROLE_INNER && !f && copies) {
        const FillRule *exit = rule_of(step, "exit", path);
        return exit && copying(exit->kind) ? exit : NULL;
    }
    if (role == ROLE_OWN && (!f || f->kind == FILL_RESCALE))
        return copies ? entry : NULL;
    return f;
}

static void find_fill(GrowthEntry *e, const GrowStep *step)
{
    for (GrowthRole r = ROLE_ENTRY; r <= ROLE_OWN; r++) {
        const FillRule *f = rule_for(step, r, e->path);
        e->init[r] = e->after->init;
        e->copies[r] = f && copying(f->kind);
        e->means[r] = f && f->kind == FILL_MEAN;
        e->filled[r] = f && (f->kind == FILL_INIT || f->kind == FILL_NOISE || e->means[r]);
        e->noise[r] = e->filled[r] && f->kind == FILL_NOISE ? f->share : 0;
        if (e->filled[r]) /* of a mean it is known only that it is a number */
            e->init[r] = e->means[r]        ? (Init){.kind = INIT_NORMAL, .a = 1}
                         : e->noise[r] != 0 ? (Init){.kind = INIT_NORMAL, .a = f->share}
                                            : f->init;
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
        bool identity = f->kind == FILL_IDENTITY;
        if (strcmp(f->part, "layers") != 0 || (!identity && f->kind != FILL_INIT) || (identity && !out) ||
            (*f->selector && !growth_selects(f->selector, e->path)))
            continue;
        e->init[ROLE_OLD] = identity ? (Init){.kind = INIT_FILL} : f->init;
        e->filled[ROLE_OLD] = true;
    }
}

/* How an axis of a tensor gets its new coordinates. What is read is shared out by the tensor's own rule, gradients of what
 * is written by that of the tensor that reads it: where none is known all copies are alike, and where it copies nothing
 * new coordinates have no part in the result. */
static GrowthAxis plan_axis(const Planning *p, const GrowthEntry *e, const AxisShape *was, const AxisShape *is,
                            int64_t had, int64_t now, bool own)
{
    const FillRule *f = rule_for(p->step, own ? ROLE_OWN : is->reads ? ROLE_EXIT : ROLE_ENTRY, e->path);
    const FillRule *inner = rule_for(p->step, ROLE_INNER, e->path);
    if (!own && (!f || !copying(f->kind)))
        f = inner;
    Copying how = {.copies = f && copying(f->kind)};
    how.beside = how.copies && f->kind == FILL_REPLICATE;
    how.share = how.copies ? f->share : EQUAL_SHARES;
    if (!is->reads && how.copies) {
        size_t reader = p->reader[is->class];
        const FillRule *exit = reader ? rule_for(p->step, ROLE_EXIT, p->step->after->param.v[reader - 1].path) : NULL;
        how.share = !reader ? EQUAL_SHARES : exit && copying(exit->kind) ? exit->share : 0;
    }
    return growth_axis(was, is, had, now, &how, how.copies && f->kind != FILL_COPY, p->arena);
}

/* Whether all blocks that are new along axis k are copies, so that they may have moments of what they copy. */
static bool carries(const GrowthEntry *e, int k, bool own)
{
    bool other = false;
    for (int i = 0; i < e->after->shape.rank; i++)
        for (size_t j = 0; j < e->axis[i].n; j++)
            other |= i != k && e->axis[i].part[j].fresh && e->axis[i].reads != e->axis[k].reads;
    GrowthRole role = own ? ROLE_OWN : e->axis[k].reads ? ROLE_EXIT : ROLE_ENTRY;
    return e->copies[role] && (!other || e->copies[ROLE_INNER]);
}

/* A gain, or what reads a norm without one: sqrt(d / d') takes back what the mean over more coordinates does. */
static void rescale(const Planning *p, GrowthEntry *e, int k, size_t before, size_t after)
{
    const FillRule *f = rule_of(p->step, "norms", e->path);
    int64_t had = p->had_mean ? p->had_mean[before][k] : 0, has = p->has_mean ? p->has_mean[after][k] : 0;
    if (!f || f->kind != FILL_RESCALE || had <= 0 || has <= had)
        return;
    GrowthPart *part = NEW_ARRAY(p->arena, GrowthPart, e->axis[k].n + 1);
    memcpy(part, e->axis[k].part, e->axis[k].n * sizeof *part);
    double s = sqrt((double)had / (double)has);
    for (size_t i = 0; i < e->axis[k].n; i++) {
        part[i].weight *= s;
        part[i].gradient /= s;
    }
    e->axis[k].part = part;
}

/* A rule that wants old numbers along axis k, where there are none; or more parts than a plan has room for. */
static void find_faults(const Planning *p, GrowthPlan *plan, const GrowthEntry *e, int k, int64_t had, bool own)
{
    GrowthRole role = own ? ROLE_OWN : e->axis[k].reads ? ROLE_EXIT : ROLE_ENTRY;
    bool none = false;
    for (size_t i = 0; i < e->axis[k].n; i++)
        none |= e->axis[k].part[i].fresh && e->axis[k].part[i].from < 0;
    if (none && (e->copies[role] || (e->means[role] && !had))) {
        plan->nothing = e;
        plan->nothing_rule = rule_for(p->step, role, e->path);
    }
    if (e->axis[k].crowded)
        plan->crowded = e;
}

static void compare(const Planning *p, GrowthPlan *plan, GrowthEntry *e, size_t before, size_t after)
{
    static const GrowthPart none = {.weight = 1, .gradient = 1};
    const Shape *s = &e->before->shape, *t = &e->after->shape;
    const AxisShape *was = p->was[before], *is = p->is[after];
    int spread = e->copied && t->rank == s->rank + 1; /* the axis in front: one for each of several copies */
    bool cut = s->rank + spread != t->rank || e->before->buffer != e->after->buffer, own = true;
    e->kind = GROWTH_TAKEN;
    for (int k = 0; k < t->rank && !cut; k++) {
        cut = k >= spread && t->d[k].n < s->d[k - spread].n;
        if (k < spread || t->d[k].n > s->d[k - spread].n)
            e->kind = GROWTH_GROWN;
        own &= !is[k].reads;
    }
    if (cut) {
        e->kind = GROWTH_CUT;
        return;
    }
    find_fill(e, p->step);
    for (int k = 0; k < t->rank; k++) {
        if (k < spread) {
            GrowthPart *all = NEW(p->arena, GrowthPart);
            *all = none;
            all->count = t->d[k].n;
            e->axis[k] = (GrowthAxis){.part = all, .n = 1, .spread = true};
        } else {
            e->axis[k] = plan_axis(p, e, &was[k - spread], &is[k], s->d[k - spread].n, t->d[k].n, own);
            find_faults(p, plan, e, k, s->d[k - spread].n, own);
        }
    }
    for (int k = 0; k < t->rank; k++)
        e->axis[k].carried = !p->step->fresh_moments && carries(e, k, own);
    for (int k = 0; k < t->rank && !spread; k++)
        rescale(p, e, k, before, after);
}

/* By class of the grown model: a parameter that reads an axis of it, + 1. */
static size_t *find_readers(const Planning *p, size_t *classes)
{
    const Model *m = p->step->after;
    *classes = 0;
    for (size_t i = 0; i < m->param.n; i++)
        for (int k = 0; k < m->param.v[i].shape.rank; k++) {
            size_t most = (p->is[i][k].class > p->is[i][k].within ? p->is[i][k].class : p->is[i][k].within) + 1u;
            *classes = most > *classes ? most : *classes;
        }
    size_t *reader = NEW_ARRAY(p->arena, size_t, *classes + 1);
    for (size_t i = 0; i < m->param.n; i++)
        for (int k = 0; k < m->param.v[i].shape.rank; k++)
            if (p->is[i][k].reads)
                reader[p->is[i][k].class] = i + 1;
    return reader;
}

/* Coordinates of an axis that all weights around it copy, and none tells apart. */
static int64_t count_alike(const Planning *p, const GrowthPlan *plan, size_t classes)
{
    typedef struct Class {
        int64_t fresh;
        bool read, written, other;
    } Class;
    Class *c = NEW_ARRAY(p->arena, Class, classes + 1);
    int64_t alike = 0;
    for (size_t i = 0; i < p->step->after->param.n; i++) {
        const GrowthEntry *e = &plan->entry[i];
        bool own = true;
        for (int k = 0; k < e->after->shape.rank; k++)
            own &= !p->is[i][k].reads;
        for (int k = 0; k < e->after->shape.rank && e->kind == GROWTH_GROWN; k++) {
            const FillRule *f = rule_for(p->step, ROLE_EXIT, e->path);
            Class *of = &c[p->is[i][k].class];
            int64_t fresh = 0;
            for (size_t j = 0; j < e->axis[k].n; j++)
                fresh += e->axis[k].part[j].fresh ? e->axis[k].part[j].count : 0;
            if (!fresh)
                continue;
            of->fresh = fresh;
            *(e->axis[k].reads ? &of->read : &of->written) = true;
            of->other |= !carries(e, k, own) || (e->axis[k].reads && f && f->share != EQUAL_SHARES);
        }
    }
    for (size_t i = 0; i < classes; i++)
        alike += c[i].read && c[i].written && !c[i].other ? c[i].fresh : 0;
    return alike;
}

bool growth_rescales(const GrowStep *step)
{
    bool some = false;
    for (size_t i = 0; i < step->fill.n; i++)
        some |= step->fill.v[i].kind == FILL_RESCALE;
    return some;
}

/* Where the tensor comes from: the one of its path, or what it is a copy of. */
static Name source_of(const GrowStep *step, size_t i)
{
    return step->source && step->source[i] ? step->source[i] : step->after->param.v[i].path;
}

static void plan_entry(const Planning *p, GrowthPlan *plan, size_t i, const Map *had, bool *met)
{
    const Model *a = p->step->before, *b = p->step->after;
    GrowthEntry *e = &plan->entry[plan->n++];
    *e = (GrowthEntry){.kind = GROWTH_NEW, .path = b->param.v[i].path, .after = &b->param.v[i]};
    Name from = source_of(p->step, i);
    size_t at = (size_t)(uintptr_t)map_get(had, (uintptr_t)from);
    if (at) {
        e->before = &a->param.v[at - 1];
        e->copied = from != e->path;
        e->moved = e->copied && p->step->moved[i];
        compare(p, plan, e, at - 1, i);
        e->old_elements = met[at - 1] || e->kind == GROWTH_CUT ? 0 : e->before->elements;
        met[at - 1] = true;
    }
    plan->taken += e->old_elements;
    plan->added += e->after->elements - e->old_elements;
}

GrowthPlan *growth_plan(const GrowStep *step, Arena *arena)
{
    const Model *a = step->before, *b = step->after;
    GrowthPlan *plan = NEW(arena, GrowthPlan);
    *plan = (GrowthPlan){.step = step, .entry = NEW_ARRAY(arena, GrowthEntry, a->param.n + b->param.n + 1)};
    Planning p = {.step = step, .arena = arena, .was = growth_axes(a, arena), .is = growth_axes(b, arena)};
    size_t classes;
    p.reader = find_readers(&p, &classes);
    if (growth_rescales(step)) {
        p.had_mean = growth_means(a, arena);
        p.has_mean = growth_means(b, arena);
    }
    Map had;
    map_init(&had, arena);
    for (size_t i = 0; i < a->param.n; i++)
        *map_at(&had, (uintptr_t)a->param.v[i].path) = (void *)(uintptr_t)(i + 1);
    bool *met = NEW_ARRAY(arena, bool, a->param.n + 1), *old = NEW_ARRAY(arena, bool, classes + 1);
    for (size_t i = 0; i < b->param.n; i++) {
        plan_entry(&p, plan, i, &had, met);
        for (int k = 0; k < b->param.v[i].shape.rank && plan->entry[i].before; k++)
            old[p.is[i][k].class] = old[p.is[i][k].within] = true;
    }
    for (size_t i = 0; i < b->param.n; i++)
        if (plan->entry[i].kind == GROWTH_NEW)
            fill_layers(&plan->entry[i], step, p.is[i], old);
    plan->alike = count_alike(&p, plan, classes);
    for (size_t i = 0; i < a->param.n; i++)
        if (!met[i])
            plan->entry[plan->n++] =
                (GrowthEntry){.kind = GROWTH_LEFT, .path = a->param.v[i].path, .before = &a->param.v[i]};
    return plan;
}
