/* plan_layout.c - which tensors that outlive a run lie behind each other.
 *
 * In:  the plans of one run, one after the other.     Out: a PlanLayout, which whoever gives tensors memory keeps to.
 * The one idea: the products of a batch want their matrices at equal steps. The plan lays what is its own so; weights, their
 * gradients and their copies in 16 bits are the run's, and lie where all of its plans want them. The first plan that
 * has a tensor decides: behind which other one it lies, or behind none.
 */
#include "plan_build.h"

/* Of which kinds there are many alike, that products read or write. */
static bool has_say(ExtKind kind) { return kind == EXT_PARAM || kind == EXT_GRAD || kind == EXT_COPY; }

void plan_layout_init(PlanLayout *layout, Arena *arena)
{
    *layout = (PlanLayout){.half = HALF_NONE};
    for (int k = 0; k < EXT_KINDS; k++)
        map_init(&layout->before[k], arena);
}

void plan_layout_fix(PlanLayout *layout, ExtKind kind, Name name, Name before)
{
    if (has_say(kind) && !map_get(&layout->before[kind], (uintptr_t)name))
        *map_at(&layout->before[kind], (uintptr_t)name) = (void *)(uintptr_t)before;
}

Name plan_layout_before(const PlanLayout *layout, ExtKind kind, Name name)
{
    Name before = map_get(&layout->before[kind], (uintptr_t)name);
    return before ? before : name;
}

static const Ext *ext_of(const Build *b, uint32_t buffer)
{
    int32_t ext = b->buffer.v[buffer].ext;
    return ext < 0 ? NULL : &b->plan->ext[ext].ext;
}

bool plan_is_laid(const Build *b, const PlanLayout *layout, uint32_t buffer)
{
    const Ext *x = ext_of(b, buffer);
    return !x || (layout && has_say(x->kind));
}

bool plan_may_follow(const Build *b, const PlanLayout *layout, uint32_t before, uint32_t buffer)
{
    const Ext *x = ext_of(b, before), *y = ext_of(b, buffer);
    if (!x || !y || x->kind != y->kind)
        return !x && !y;
    const Map *map = &layout->before[x->kind];
    Name of_x = map_get(map, (uintptr_t)x->name), of_y = map_get(map, (uintptr_t)y->name);
    return of_y ? of_y == x->name && x != y : !of_x;
}

void plan_keep_layout(const Build *b, PlanLayout *layout)
{
    if (b->cast)
        layout->half = b->f->half;
    for (uint32_t i = 0; i < b->buffer.n; i++) {
        const Ext *x = ext_of(b, i);
        uint32_t behind = b->buffer.v[i].behind;
        if (x)
            plan_layout_fix(layout, x->kind, x->name, behind ? ext_of(b, behind - 1)->name : x->name);
    }
}
