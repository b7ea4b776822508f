/* plan_verify.c - what must hold in every plan, whatever made it.
 *
 * In:  a plan.     Out: nothing, or vwn_bug() with the launch and the rule.
 * The one idea: rules are about memory and order, not about what is computed: what is read was written, buffers that
 * live together lie apart, and launches made as one do not wait for each other.
 */
#include "plan.h"

#include <stdlib.h>

static const LaunchInfo infos[LAUNCH_KINDS] = {
#define LAUNCH(ID, name, n_buffer, where) [LAUNCH_##ID] = {#name, n_buffer, LAUNCH_##where},
#include "launches.def"
#undef LAUNCH
};

const LaunchInfo *launch_info(LaunchKind kind) { return &infos[kind]; }

/* Launches that are made as one run at the same time: none writes what another touches. */
static void verify_items(Ctx *ctx, const Plan *p, size_t i)
{
    const Launch *l = &p->launch[i];
    uint32_t each = (l->n_touched - l->n_buffer) / l->items;
    ArenaMark mark = arena_mark(ctx->scratch);
    uint32_t *toucher = NEW_ARRAY(ctx->scratch, uint32_t, p->n_buffer + 1); /* the last item, counted from 1 */
    uint32_t *writer = NEW_ARRAY(ctx->scratch, uint32_t, p->n_buffer + 1);
    for (uint32_t k = 0; k < l->n_touched - l->n_buffer; k++) {
        uint32_t x = l->buffer[l->n_buffer + k], item = 1 + k / each;
        if ((writer[x] && writer[x] != item) || (l->writes[l->n_buffer + k] && toucher[x] && toucher[x] != item))
            vwn_bug(ctx, "plan: launch %zu is made of some that wait for each other", i);
        toucher[x] = item;
        if (l->writes[l->n_buffer + k])
            writer[x] = item;
    }
    arena_reset(ctx->scratch, mark);
}

/* All that a map describes lies in its buffer. */
static bool map_fits(const Plan *p, const Launch *l, const LaunchMap *m)
{
    const PlanBuffer *x = &p->buffer[l->buffer[m->buffer]];
    int64_t last = 0;
    for (int i = 0; i < MAP_RANK; i++)
        last += (m->extent[i] - 1) * m->stride[i];
    return launch_map_fits(m) && x->half == m->half && l->shift[m->buffer] % MAP_PIECE == 0 &&
           l->shift[m->buffer] + (uint64_t)(last + 1) * plan_item_bytes(x) <= x->bytes;
}

static void verify_kernel(Ctx *ctx, const Plan *p, size_t i)
{
    const Launch *l = &p->launch[i];
    if (l->kernel >= p->n_kernel)
        vwn_bug(ctx, "plan: launch %zu has a kernel that does not exist", i);
    const PlanKernel *q = &p->kernel[l->kernel];
    if (q->n_buffer != l->n_buffer || q->n_int != l->n_int || q->n_scalar != l->n_scalar)
        vwn_bug(ctx, "plan: launch %zu does not fit the arguments of %s", i, q->name);
    if (q->grid.blocks && p->buffer[l->buffer[l->n_buffer - 1]].bytes !=
                              4 * (uint64_t)(plan_blocks(&q->grid, l->rows) * l->ints[q->grid.spilled].value))
        vwn_bug(ctx, "plan: launch %zu has not the memory that its blocks want", i);
    if (p->device_prelude && (!q->grid.threads || !q->grid.units))
        vwn_bug(ctx, "plan: launch %zu has a kernel that is no device's", i);
    for (uint32_t k = 0; q->size && k < q->n_int; k++)
        if (l->ints[k].kind == INT_CONST && !plan_size_fits(q->size[k], l->ints[k].value))
            vwn_bug(ctx, "plan: launch %zu has a size that %s is not for", i, q->name);
    for (uint32_t k = 0; k < q->n_map && l->rows; k++)
        if (!l->map || l->map[k].buffer >= l->n_buffer || !map_fits(p, l, &l->map[k]))
            vwn_bug(ctx, "plan: launch %zu has a tensor map that no device takes", i);
    for (uint32_t k = 0; k < l->n_scalar; k++)
        if (l->scalars[k].host >= (int32_t)p->n_host)
            vwn_bug(ctx, "plan: launch %zu wants a host value that does not exist", i);
    for (uint32_t k = 0; p->device_prelude && k < l->n_int + l->n_scalar; k++)
        if (k < l->n_int ? l->ints[k].kind != INT_CONST : l->scalars[k - l->n_int].host >= 0)
            vwn_bug(ctx, "plan: launch %zu is another in each run", i);
}

static void verify_sizes(Ctx *ctx, size_t i, bool fits)
{
    if (!fits)
        vwn_bug(ctx, "plan: launch %zu has an extent below 0, or rows that overlap", i);
}

static void verify_matmul(Ctx *ctx, const Plan *p, size_t i)
{
    const PlanMatmul *m = &p->launch[i].matmul;
    verify_sizes(ctx, i, m->m >= 0 && m->n >= 0 && m->k >= 0 && m->batch >= 0 && (m->m <= 1 || m->ldc >= m->n));
}

static void verify_expert(Ctx *ctx, const Plan *p, size_t i)
{
    const PlanExpert *e = &p->launch[i].expert;
    verify_sizes(ctx, i, e->tokens >= 0 && e->choices >= 0 && e->experts >= 0 && e->in >= 0 && e->out >= 0);
}

static void verify_copy(Ctx *ctx, const Plan *p, size_t i)
{
    const PlanCopy *c = &p->launch[i].copy;
    verify_sizes(ctx, i, c->bytes >= 0 && (p->launch[i].rows <= 1 || c->to >= c->bytes));
}

static void (*const verify_of_kind[LAUNCH_KINDS])(Ctx *, const Plan *, size_t) = {
#define LAUNCH(ID, name, ...) [LAUNCH_##ID] = verify_##name,
#include "launches.def"
#undef LAUNCH
};

static void verify_launch(Ctx *ctx, const Plan *p, size_t i, bool *written)
{
    const Launch *l = &p->launch[i];
    for (uint32_t k = 0; k < l->n_touched; k++) {
        if (l->buffer[k] >= p->n_buffer)
            vwn_bug(ctx, "plan: launch %zu has a buffer that does not exist", i);
        const PlanBuffer *x = &p->buffer[l->buffer[k]];
        if (l->shift[k] > x->bytes)
            vwn_bug(ctx, "plan: launch %zu begins behind its buffer", i);
        if (!l->writes[k] && x->ext < 0 && x->bytes && !written[l->buffer[k]])
            vwn_bug(ctx, "plan: launch %zu (%s) reads what nothing has written", i, l->name ? l->name : "");
    }
    for (uint32_t k = 0; k < l->n_touched; k++)
        if (l->writes[k])
            written[l->buffer[k]] = true;
    if (l->items)
        verify_items(ctx, p, i);
    const LaunchInfo *info = launch_info(l->kind);
    if (info->where == (p->device_prelude ? LAUNCH_CPU_ALONE : LAUNCH_DEVICE_ALONE))
        vwn_bug(ctx, "plan: launch %zu is no device's, or a device's alone", i);
    if (info->n_buffer && l->n_buffer != info->n_buffer)
        vwn_bug(ctx, "plan: launch %zu has %u buffers, not %u", i, l->n_buffer, info->n_buffer);
    verify_of_kind[l->kind](ctx, p, i);
}

/* They are there before the first launch, and until the last. */
static void verify_numbers(Ctx *ctx, const Plan *p, bool *written, size_t *first, size_t *last)
{
    if (!p->n_number)
        return;
    if (!p->device_prelude || p->numbers >= p->n_buffer || p->buffer[p->numbers].bytes != 8 * p->n_number)
        vwn_bug(ctx, "plan: its numbers have no place");
    for (size_t i = 0; i < p->n_number; i++)
        if (p->number[i].host >= (int32_t)p->n_host)
            vwn_bug(ctx, "plan: number %zu is a host value that does not exist", i);
        else if (p->number[i].kind == INT_PLACE &&
                 (p->number[i].buffer >= p->n_buffer || p->number[i].bits > p->buffer[p->number[i].buffer].bytes))
            vwn_bug(ctx, "plan: number %zu is the place of no buffer", i);
    written[p->numbers] = true;
    first[p->numbers] = 0;
    last[p->numbers] = SIZE_MAX;
}

/* Without a gap: both in the arena, or both tensors of one kind. */
static bool may_lie(const Plan *p, const PlanBuffer *x, const PlanBuffer *before)
{
    bool apart = x->ext < 0 || before->ext < 0 ? x->ext >= 0 || before->ext >= 0
                                               : p->ext[x->ext].ext.kind != p->ext[before->ext].ext.kind;
    return !apart && x != before && before->bytes % PLAN_ALIGN == 0;
}

typedef struct Stay {   /* of a buffer in the arena */
    size_t first, last; /* launches */
    uint32_t buffer;
} Stay;

static int by_first(const void *a, const void *b)
{
    const Stay *x = a, *y = b;
    return x->first != y->first ? (x->first > y->first) - (x->first < y->first)
                                : (x->buffer > y->buffer) - (x->buffer < y->buffer);
}

/* Those that were there at one time do not overlap: of all with lower places the last one ends
 * last. */
typedef struct There {
    const Stay *stay;
    const Plan *p;
    uint32_t *at; /* of stay, by place */
    size_t n;
} There;

static const PlanBuffer *there_at(const There *t, size_t i) { return &t->p->buffer[t->stay[t->at[i]].buffer]; }

static void take_away(There *t, size_t i) { memmove(t->at + i, t->at + i + 1, (--t->n - i) * sizeof *t->at); }

/* Stay i is there from now on. Of its neighbours those that are over go, until one is there that is
 * not. Returns the stay that overlaps it, or i. */
static size_t put_there(There *t, size_t i)
{
    const PlanBuffer *x = &t->p->buffer[t->stay[i].buffer];
    size_t low = 0, high = t->n;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (there_at(t, middle)->offset < x->offset)
            low = middle + 1;
        else
            high = middle;
    }
    while (low < t->n && t->stay[t->at[low]].last < t->stay[i].first)
        take_away(t, low);
    if (low < t->n && there_at(t, low)->offset < x->offset + x->bytes)
        return t->at[low];
    while (low > 0 && t->stay[t->at[low - 1]].last < t->stay[i].first)
        take_away(t, --low);
    if (low > 0 && x->offset < there_at(t, low - 1)->offset + there_at(t, low - 1)->bytes)
        return t->at[low - 1];
    memmove(t->at + low + 1, t->at + low, (t->n++ - low) * sizeof *t->at);
    t->at[low] = (uint32_t)i;
    return i;
}

/* Buffers that are there at one time do not overlap. */
static void verify_places(Ctx *ctx, const Plan *p, const size_t *first, const size_t *last)
{
    Stay *stay = NEW_ARRAY(ctx->scratch, Stay, p->n_buffer + 1);
    There there = {.stay = stay, .p = p, .at = NEW_ARRAY(ctx->scratch, uint32_t, p->n_buffer + 1)};
    size_t n = 0;
    for (size_t i = 0; i < p->n_buffer; i++) {
        const PlanBuffer *x = &p->buffer[i];
        if (x->behind && !may_lie(p, x, &p->buffer[x->behind - 1]))
            vwn_bug(ctx, "plan: buffer %zu cannot lie behind its neighbour", i);
        if (x->ext >= 0 || !x->bytes)
            continue;
        if (x->behind && x->offset != p->buffer[x->behind - 1].offset + p->buffer[x->behind - 1].bytes)
            vwn_bug(ctx, "plan: buffer %zu does not lie behind its neighbour", i);
        if (x->offset % PLAN_ALIGN || x->offset + x->bytes > p->arena_bytes)
            vwn_bug(ctx, "plan: buffer %zu lies outside the arena", i);
        if (first[i] <= last[i]) /* else no launch touches it */
            stay[n++] = (Stay){first[i], last[i], (uint32_t)i};
    }
    qsort(stay, n, sizeof *stay, by_first);
    for (size_t i = 0; i < n; i++) {
        size_t other = put_there(&there, i);
        if (other != i)
            vwn_bug(ctx, "plan: buffers %u and %u overlap", (unsigned)stay[other].buffer, (unsigned)stay[i].buffer);
    }
}

void plan_verify(Ctx *ctx, const Plan *p)
{
    ArenaMark mark = arena_mark(ctx->scratch);
    bool *written = NEW_ARRAY(ctx->scratch, bool, p->n_buffer + 1);
    size_t *first = NEW_ARRAY(ctx->scratch, size_t, p->n_buffer + 1);
    size_t *last = NEW_ARRAY(ctx->scratch, size_t, p->n_buffer + 1);
    memset(first, 0xff, (p->n_buffer + 1) * sizeof *first);
    verify_numbers(ctx, p, written, first, last);
    for (size_t i = 0; i < p->n_launch; i++) {
        verify_launch(ctx, p, i, written);
        for (uint32_t k = 0; k < p->launch[i].n_touched; k++) {
            uint32_t x = p->launch[i].buffer[k];
            first[x] = first[x] < i ? first[x] : i;
            last[x] = last[x] > i ? last[x] : i;
        }
    }
    for (size_t i = 0; i < p->n_result; i++) {
        const PlanBuffer *x = &p->buffer[p->result[i].buffer];
        last[p->result[i].buffer] = SIZE_MAX;
        if (x->ext < 0 && x->bytes && !written[p->result[i].buffer])
            vwn_bug(ctx, "plan: the result %s is never written", p->result[i].name);
    }
    verify_places(ctx, p, first, last);
    arena_reset(ctx->scratch, mark);
}
