/* kernel_verify_threads.c - has each thread what it uses of what threads compute together?
 *
 * In:  a statement of totals or of lanes, and what is known where it stands.
 * Out: the first fault: a part of a sum that is taken for the total, a total that is taken twice
 *      or of what each thread has all of, a lane that is asked for what it has not computed, a
 *      place that is another lane's.
 * The one idea: a sum in loops whose rounds threads share is a part in each of them. A total over
 * the threads of a warp, and one over all warps, make it whole, once each. Where one lane alone
 * has it then, no other statement may read it.
 */
#include "kernel_verify.h"

bool verify_has_all(const Share *s) { return s->by == SHARE_NONE || (s->has == HAS_ALL && !s->alone); }

/* ---- who has a part ---- */

void verify_shared(Check *c, Share *s, size_t depth)
{
    bool lanes = false, warps = false, row = false;
    for (size_t i = depth; i < c->by.n; i++) {
        const KStmt *loop = c->by.v[i];
        row = row || (loop->mapped && loop->threads == THREADS_OF_ROW);
        lanes = lanes || (loop->mapped && loop->threads == THREADS_OF_WARP);
        warps = warps || (loop->mapped && loop->threads == WARPS_OF_ROW);
    }
    if (warps && !lanes)
        verify_fault(c, "warps add to a sum what all of their threads have");
    s->by = row || (lanes && warps) ? SHARE_OF_ROW : lanes ? SHARE_OF_WARP : SHARE_NONE;
}

/* ---- totals ---- */

static Share *share_of(Check *c, const KTotal *t)
{
    if (t->ex) {
        bool live = verify_exists(c, t->ex) && c->acc[t->ex].live;
        if (!live || !c->acc[t->ex].whole || c->acc[t->ex].depth != c->loop.n)
            verify_fault(c, "a total of what is no accumulator whose loops have just ended");
        return live ? &c->acc[t->ex].share : NULL;
    }
    bool there = t->root < c->k->root.n && c->summed[t->root];
    if (!there || c->in_rows || !c->in_part)
        verify_fault(c, "a total of what is no sum over the rows that have ended");
    return there ? &c->sum[t->root] : NULL;
}

static bool is_real_sum(const Kernel *k, const KTotal *t)
{
    const KRoot *r = t->ex ? NULL : &k->root.v[t->root];
    return r ? r->op == OP_SUM && kx(k, r->value)->type == KT_REAL
             : kx(k, t->ex)->op == OP_SUM && kx(k, t->ex)->type == KT_REAL;
}

static bool same_total(const KTotal *a, const KTotal *b) { return a->ex == b->ex && a->root == b->root; }

/* Are both the same totals, in one order, or both no step? */
static bool same_step(const KTotals *a, const KTotals *b)
{
    bool same = a && b ? a->n == b->n : a == b;
    for (uint32_t j = 0; same && a && j < a->n; j++)
        same = same_total(&a->of[j], &b->of[j]);
    return same;
}

/* The column of a step: of thread j of a warp the total number j. */
static void check_step_column(Check *c, const KStmt *s, const KTotals *t)
{
    const Kernel *k = c->k;
    const KColumn *q = s->column <= k->device.column.n ? &k->device.column.v[s->column - 1] : NULL;
    bool is = t && q && !q->root && !q->first && q->n == t->n && !c->column[s->column - 1] && !c->loop.n && c->in_rows;
    for (uint32_t j = 0; is && j < t->n; j++)
        is = t->of[j].ex && q->ex[j] == t->of[j].ex;
    if (is)
        c->column[s->column - 1] = true;
    else
        verify_fault(c, "a column that is not that of a step of totals");
}

/* Several totals that are one step lie in slots that follow each other, with room for whole fours. */
static void check_step(Check *c, const KStmt *s, const KTotals *t)
{
    if (t->n < c->k->target->tuned->totals_least || t->n > LANES_MOST)
        verify_fault(c, "a step of more or fewer totals than there may be");
    else if (s->ex || s->root)
        verify_fault(c, "a step of totals that is one total, too");
    else if (s->kind != KS_WARP && s->at + (t->n + 3u) / 4 * 4 > c->k->device.mapping.slots)
        verify_fault(c, "a step of totals that has more than its slots");
}

static void take_warp(Check *c, const KTotals *step, bool alone, Share *of)
{
    bool all = of->by == SHARE_OF_WARP || c->k->device.mapping.row_threads == WARP_THREADS;
    if (of->by == SHARE_NONE)
        verify_fault(c, "a total of what each thread has all of");
    else if (of->has != HAS_PART)
        verify_fault(c, "a total that is taken twice");
    else if (c->k->device.mapping.lanes != WARP_THREADS && of->by == SHARE_OF_WARP)
        verify_fault(c, "a total of fewer threads than a warp");
    of->has = all ? HAS_ALL : HAS_WARP;
    of->alone = alone;
    of->step = step;
    if (step && !all && !alone)
        verify_fault(c, "totals of warps that are one step are their lanes' alone");
}

/* Total number `lane` of its step. */
static void cross_warps(Check *c, const KStmt *s, const KTotals *step, const KTotal *t, uint32_t lane, Share *of)
{
    SlotState *slot = s->at + lane < c->k->device.mapping.slots ? &c->slot[s->at + lane] : NULL;
    const KTotals *put = slot && slot->put ? kernel_totals(c->k, slot->put) : NULL;
    bool take = s->kind == KS_WARP_TAKE;
    if (!slot)
        verify_fault(c, "a slot that does not exist");
    else if (of->by != SHARE_OF_ROW || of->has != HAS_WARP)
        verify_fault(c, "warps exchange what is not the total of each");
    else if (!take && (of->alone != (step != NULL) || !same_step(of->step, step)))
        verify_fault(c, "a total is put by threads that do not have it");
    else if (!take && slot->put)
        verify_fault(c, "a total is put where another one has not been taken");
    else if (take && (!slot->put || !same_step(put, step) || slot->lane != lane ||
                      (!step && (slot->put->ex != t->ex || slot->put->root != t->root))))
        verify_fault(c, "a total is taken that was not put there");
    if (c->why)
        return;
    *slot = take ? (SlotState){0} : (SlotState){s, lane};
    if (take)
        of->has = HAS_ALL, of->alone = t->alone;
}

void verify_total(Check *c, const KStmt *s)
{
    const KTotal one = {s->ex, s->root, false};
    if (s->totals > c->k->device.totals.n) {
        verify_fault(c, "a step of totals that does not exist");
        return;
    }
    const KTotals *step = kernel_totals(c->k, s);
    if (step)
        check_step(c, s, step);
    for (uint32_t j = 0; !c->why && j < (step ? step->n : 1); j++) {
        const KTotal *t = step ? &step->of[j] : &one;
        Share *of = share_of(c, t);
        if (c->why)
            return;
        if (step && !is_real_sum(c->k, t))
            verify_fault(c, "a step of totals of what is no sum of numbers");
        else if (s->kind == KS_WARP)
            take_warp(c, step, t->alone, of);
        else
            cross_warps(c, s, step, t, j, of);
        if (s->column && of->has != HAS_ALL)
            verify_fault(c, "a column of what is no total yet");
    }
    if (s->column && !c->why)
        check_step_column(c, s, step);
}

/* ---- sums over rows of which each thread has some ---- */

void verify_row_sum(Check *c, const KStmt *s)
{
    const Kernel *k = c->k;
    if (s->ex || s->root >= k->root.n || k->root.v[s->root].kind != KR_SINK || !k->device.mapping.by_row ||
        !c->in_part) {
        verify_fault(c, "a sum over rows that threads do not hold");
        return;
    }
    Share *of = &c->sum[s->root];
    if (s->kind == KS_SUM_NEW ? c->summed[s->root] || c->in_rows : !c->summed[s->root])
        verify_fault(c, "a sum over rows is not declared once, before its rows");
    else if (s->kind == KS_SUM_NEW)
        *of = (Share){.by = SHARE_OF_ROW};
    else if (s->kind == KS_SUM_PUT && c->sums[k->root.v[s->root].buffer] != SUMS_PLACED)
        verify_fault(c, "a sum over rows is stored where nothing has a place");
    else if (s->kind == KS_SINK ? of->has != HAS_PART : c->in_rows || of->by != SHARE_OF_ROW || !verify_has_all(of))
        verify_fault(c, "a sum over rows is stored before it is the total, or added to afterwards");
    c->summed[s->root] = s->kind != KS_SUM_PUT;
    if (s->kind == KS_SUM_PUT)
        of->by = SHARE_NONE;
}

void verify_sums_whole(Check *c)
{
    const Kernel *k = c->k;
    for (size_t i = 0; i < k->root.n; i++)
        if (c->summed[i] || (k->device.mapping.by_row && k->root.v[i].kind == KR_SINK && c->sum[i].has != HAS_ALL))
            verify_fault(c, "a sum over rows is never stored");
}

/* ---- sums of an array in registers ---- */

void verify_array_sums(Check *c, const KStmt *s)
{
    const Kernel *k = c->k;
    ArrayState *state = s->array >= 0 && (size_t)s->array < k->array.n ? &c->array[s->array] : NULL;
    if (!state || !k->array.v[s->array].sums || !state->writes || c->loop.n) {
        verify_fault(c, "totals of an array that is none of sums");
        return;
    }
    Share *of = &state->share;
    bool block = k->device.mapping.row_threads > WARP_THREADS;
    if (s->kind == KS_ARRAY_GIVE && (of->by != SHARE_OF_ROW || of->has != HAS_PART))
        verify_fault(c, "sums of an array are given that are no parts");
    else if (s->kind == KS_ARRAY_TAKE && of->has != HAS_WARP)
        verify_fault(c, "sums of an array are taken that were not given");
    else if (block && s->at + (uint64_t)k->array.v[s->array].elements > k->device.mapping.slots)
        verify_fault(c, "a slot that does not exist");
    else if (block && s->kind == KS_ARRAY_TAKE && state->slot != s->at)
        verify_fault(c, "sums of an array are taken from elsewhere");
    state->slot = s->at;
    of->has = s->kind == KS_ARRAY_GIVE ? HAS_WARP : HAS_ALL;
}

/* ---- lanes ---- */

/* The column of values with this number, and 1, of which lanes have these of a column. */
static const KColumn *values_of(Check *c, uint32_t number, const KColumn *of)
{
    const KColumn *q = number && number <= c->k->device.column.n ? &c->k->device.column.v[number - 1] : NULL;
    if (q && !q->root && c->column[number - 1] && q->first <= of->first && of->first + of->n <= q->first + q->n)
        return q;
    verify_fault(c, "lanes use what they have not computed");
    return NULL;
}

/* Element j of values, which the same lane has as element `of` of another column. */
static Ex value_of_lane(const KColumn *values, const KColumn *of, uint32_t j)
{
    return values->ex[of->first + j - values->first];
}

static void check_place(Check *c, const KColumn *q, Ix first, Ix at, uint32_t j)
{
    if (!q->place.of) {
        verify_fault(c, "a column without places");
        return;
    }
    int64_t behind = kernel_place_of(&q->place, j) - kernel_place_of(&q->place, 0);
    if (ix_add(c->k->ix, first, ix_const(c->k->ix, behind)) != at)
        verify_fault(c, "a lane has another place than its own");
}

static bool are_alike(const KEx *a, const KEx *b)
{
    return a->kind == b->kind && a->type == b->type && a->op == b->op && a->i == b->i && a->slot == b->slot &&
           !a->in[0] == !b->in[0] && !a->in[1] == !b->in[1] && !a->in[2] == !b->in[2];
}

/* Input i of all elements of an operator: of lanes, or one that all have. */
static void check_input(Check *c, const KColumn *q, int i)
{
    const Kernel *k = c->k;
    const KColumn *from = q->in[i] ? values_of(c, q->in[i], q) : NULL;
    for (uint32_t j = 0; j < q->n && !c->why; j++) {
        Ex in = kx(k, q->ex[j])->in[i];
        if (from ? value_of_lane(from, q, j) != in : in != kx(k, q->ex[0])->in[i])
            verify_fault(c, "a lane computes of what is not its own");
    }
    if (!q->in[i])
        verify_use(c, kx(k, q->ex[0])->in[i]);
}

static void check_column(Check *c, const KColumn *q)
{
    const Kernel *k = c->k;
    for (uint32_t j = 0; j < q->n; j++)
        if (!verify_exists(c, q->ex[j]) || kx(k, q->ex[j])->type != KT_REAL ||
            !are_alike(kx(k, q->ex[0]), kx(k, q->ex[j])))
            verify_fault(c, "lanes that do not compute alike");
    for (uint32_t j = 0; j < q->n && !c->why; j++) {
        const KEx *x = kx(k, q->ex[j]);
        if (x->kind == KX_OP)
            verify_op(c, x);
        else if ((x->kind == KX_LOAD && !x->in[0]) || x->kind == KX_SCALAR)
            verify_value(c, x);
        else
            verify_fault(c, "an expression that lanes cannot compute");
        if (x->kind == KX_LOAD &&
            (k->buffer.v[x->slot].tile || k->buffer.v[x->slot].half || k->buffer.v[x->slot].written))
            verify_fault(c, "lanes load what does not lie in memory as it is");
        if (x->kind == KX_LOAD)
            check_place(c, q, kx(k, q->ex[0])->ix, x->ix, j);
    }
    for (int i = 0; i < 3 && !c->why; i++)
        if (kx(k, q->ex[0])->in[i])
            check_input(c, q, i);
}

static void store_column(Check *c, const KColumn *q)
{
    const Kernel *k = c->k;
    const KColumn *values = values_of(c, q->in[0], q);
    for (uint32_t j = 0; j < q->n && !c->why; j++) {
        const KRoot *r = q->root[j] < k->root.n ? &k->root.v[q->root[j]] : NULL, *first = &k->root.v[q->root[0]];
        if (!r || r->buffer >= k->buffer.n || r->kind != first->kind || r->buffer != first->buffer ||
            r->op != first->op)
            verify_fault(c, "lanes that do not store alike");
        else if (r->value != value_of_lane(values, q, j))
            verify_fault(c, "a lane stores what is not its own");
        else if (k->buffer.v[r->buffer].tile || k->buffer.v[r->buffer].half ||
                 (r->kind == KR_SINK && r->op != OP_SUM) || k->device.mapping.by_row)
            verify_fault(c, "lanes store what does not lie in memory as it is");
        if (c->why)
            return;
        check_place(c, q, first->at, r->at, j);
        verify_result(c, q->root[j]);
    }
}

static void take_element(Check *c, const KStmt *s, const KColumn *q)
{
    if (!verify_exists(c, s->ex) || q->root || !c->column[s->column - 1] || s->lane < q->first ||
        s->lane - q->first >= q->n)
        verify_fault(c, "what a lane has not computed is taken from it");
    else if (q->ex[s->lane - q->first] != s->ex)
        verify_fault(c, "a lane gives what is not its own");
    else
        verify_define(c, s->ex);
}

void verify_lanes(Check *c, const KStmt *s)
{
    const Kernel *k = c->k;
    const KColumn *q = s->column && s->column <= k->device.column.n ? &k->device.column.v[s->column - 1] : NULL;
    if (!q || !q->n || q->first + q->n > LANES_MOST || (!q->root) != (s->kind != KS_LANE_STORE)) {
        verify_fault(c, "a column that does not exist");
    } else if (!c->in_rows || c->loop.n || k->device.mapping.lanes != WARP_THREADS ||
               k->device.mapping.row_threads % WARP_THREADS) {
        verify_fault(c, "lanes that are not those of a row");
    } else if (s->kind == KS_LANES) {
        if (c->column[s->column - 1])
            verify_fault(c, "a column is computed twice");
        c->column[s->column - 1] = true;
        check_column(c, q);
    } else if (s->kind == KS_LANE_STORE) {
        store_column(c, q);
    } else {
        take_element(c, s, q);
    }
}
