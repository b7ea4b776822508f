/* steps.c - see steps.h. */
#include "steps.h"

#include "compiler/gpu/map_threads.h"
#include "interpret.h"

#include <math.h>
#include <stdio.h>

/* ---- the numbers ---- */

enum { ELEMENTS_MOST = 1 << 18, WORK_MOST = 1 << 18, ROWS = 3 };

/* Elements that the loops of a row run over, statement by statement. */
static double work_of(const Kernel *k)
{
    double work = 0, times[NEST_MAX + 4] = {1};
    size_t depth = 0;
    for (size_t i = 0; i < k->stmt.n; i++) {
        const KStmt *s = &k->stmt.v[i];
        depth -= s->kind == KS_END;
        if (s->kind == KS_PRODUCT) {
            const KProduct *x = &k->product.v[s->root];
            work += ((double)ix_info(k->ix, x->m)->hi + 1) * ((double)ix_info(k->ix, x->n)->hi + 1) *
                    ((double)ix_info(k->ix, x->k)->hi + 1);
        }
        work += times[depth];
        if (kernel_opens(s)) {
            times[depth + 1] = times[depth] * (s->kind == KS_LOOP ? (double)ix_info(k->ix, s->var)->hi + 1 : 1);
            depth++;
        }
    }
    return work;
}

/* Numbers between 1/2 and 3/2, which every function of kernels takes; places 0 and 1 of tables. */
static void fill(Cells *c, uint64_t key)
{
    for (int64_t i = 0; i < c->n; i++)
        if (c->dtype == DT_INT)
            c->integer[i] = i % 2;
        else
            c->real[i] = 0.5 + philox_uniform(key, 0, (uint64_t)i);
}

static Cells **cells_of(const Kernel *k)
{
    Cells **all = NEW_ARRAY(k->arena, Cells *, k->buffer.n + 1);
    for (size_t b = 0; b < k->buffer.n; b++) {
        const KBuffer *x = &k->buffer.v[b];
        int64_t n = x->elements * (x->part >= 0 ? k->partitions : 1);
        all[b] = NEW(k->arena, Cells);
        *all[b] = (Cells){.dtype = x->dtype, .n = x->tile ? 0 : n};
        all[b]->real = NEW_ARRAY(k->arena, double, (size_t)all[b]->n + 1);
        all[b]->integer = NEW_ARRAY(k->arena, int64_t, (size_t)all[b]->n + 1);
        fill(all[b], b);
    }
    return all;
}

static bool is_small(const Kernel *k)
{
    double elements = 0;
    for (size_t b = 0; b < k->buffer.n; b++)
        elements += (double)k->buffer.v[b].elements * (double)(k->buffer.v[b].part >= 0 ? k->partitions : 1);
    return elements < ELEMENTS_MOST && work_of(k) < WORK_MOST;
}

static Cells **run(const Kernel *k)
{
    Cells **cells = cells_of(k);
    double *scalar = NEW_ARRAY(k->arena, double, k->scalar.n + 1);
    for (size_t i = 0; i < k->scalar.n; i++)
        scalar[i] = k->scalar.v[i].host < 0 ? k->scalar.v[i].value : 0.75;
    KernelCall call = {.k = k, .buffer = cells, .scalar = scalar, .seed = 1, .step = 2};
    int64_t rows = k->part ? k->partitions : ix_dim_at(k->ix, k->rows);
    interpret_kernel(&call, 0, rows < ROWS ? rows : ROWS);
    return cells;
}

/* In float64, whatever the order of their sums. */
static bool same_numbers(const Cells *a, const Cells *b)
{
    for (int64_t i = 0; i < a->n; i++)
        if (a->dtype == DT_INT ? a->integer[i] != b->integer[i]
                               : !(fabs(a->real[i] - b->real[i]) <= 1e-9 * (1 + fabs(a->real[i]))) &&
                                     !(isnan(a->real[i]) && isnan(b->real[i])))
            return false;
    return true;
}

static bool same_results(const Kernel *k, Cells **a, Cells **b)
{
    for (size_t i = 0; i < k->buffer.n; i++)
        if (k->buffer.v[i].written && !k->buffer.v[i].tile && !same_numbers(a[i], b[i]))
            return false;
    return true;
}

/* ---- the faults ---- */

/* Memory is kept: checks may add index forms to the table that copies share. */
static Kernel copy_of(const Kernel *mapped)
{
    Kernel k = *mapped;
    k.stmt.v = memcpy(NEW_ARRAY(k.arena, KStmt, k.stmt.n), mapped->stmt.v, k.stmt.n * sizeof *k.stmt.v);
    k.product.v = NEW_ARRAY(k.arena, KProduct, k.product.n + 1);
    for (size_t i = 0; i < k.product.n; i++)
        k.product.v[i] = mapped->product.v[i];
    k.root.v = NEW_ARRAY(k.arena, KRoot, k.root.n + 1);
    for (size_t i = 0; i < k.root.n; i++)
        k.root.v[i] = mapped->root.v[i];
    k.device.column.v = NEW_ARRAY(k.arena, KColumn, k.device.column.n + 1);
    for (size_t i = 0; i < k.device.column.n; i++) {
        KColumn *c = &k.device.column.v[i];
        *c = mapped->device.column.v[i];
        c->ex = memcpy(NEW_ARRAY(k.arena, Ex, c->n + 1), c->ex, c->n * sizeof *c->ex);
        if (c->root)
            c->root = memcpy(NEW_ARRAY(k.arena, uint32_t, c->n + 1), c->root, c->n * sizeof *c->root);
    }
    return k;
}

static void expect_fault(StepTally *t, const Kernel *k, const char *what, size_t i)
{
    size_t at;
    bool found = kernel_check(k, &at) || kernel_race(k) != SIZE_MAX;
    t->faults++;
    t->found += found;
    if (!found && !t->missed[0])
        snprintf(t->missed, sizeof t->missed, "%s, statement %zu", what, i);
}

static void without(StepTally *t, const Kernel *mapped, size_t i, const char *what)
{
    Kernel k = copy_of(mapped);
    memmove(&k.stmt.v[i], &k.stmt.v[i + 1], (k.stmt.n - i - 1) * sizeof *k.stmt.v);
    k.stmt.n--;
    expect_fault(t, &k, what, i);
}

/* The statement comes behind statement j. */
static void behind(StepTally *t, const Kernel *mapped, size_t i, size_t j, const char *what)
{
    Kernel k = copy_of(mapped);
    memmove(&k.stmt.v[i], &k.stmt.v[i + 1], (j - i) * sizeof *k.stmt.v);
    k.stmt.v[j] = mapped->stmt.v[i];
    expect_fault(t, &k, what, i);
}

static void with(StepTally *t, const Kernel *mapped, size_t i, KStmt s, const char *what)
{
    Kernel k = copy_of(mapped);
    k.stmt.v[i] = s;
    expect_fault(t, &k, what, i);
}

static bool is_load(const KStmt *s) { return s->kind == KS_LET || s->kind == KS_ARRAY_GET; }

/* All steps of statement `store` store to where statement `load` loads from, an array or a buffer; false: one is of an array, the
 * other is not. */
static bool store_there(Kernel *k, size_t load, size_t store)
{
    const KStmt from = k->stmt.v[load], to = k->stmt.v[store];
    bool array = to.kind == KS_ARRAY_PUT || to.kind == KS_ARRAY_ADD;
    if (from.kind == KS_ARRAY_GET && array) {
        for (size_t i = 0; i < k->stmt.n; i++)
            if (i == store || (to.step && k->stmt.v[i].step && k->stmt.v[i].held == to.held))
                k->stmt.v[i].array = from.array;
    } else if (from.kind == KS_LET && kx(k, from.ex)->kind == KX_LOAD && (to.kind == KS_STORE || to.kind == KS_SINK)) {
        k->root.v[to.root].buffer = kx(k, from.ex)->slot;
    } else {
        return false;
    }
    return true;
}

/* What stands between the loads of a loop and its stores stores to where it loads from. */
static void one_place(StepTally *t, const Kernel *mapped, size_t i)
{
    size_t end = mapped->stmt.n;
    for (size_t j = i + 1; j < end && mapped->stmt.v[j].kind != KS_ROWS; j++) {
        const KStmt *s = &mapped->stmt.v[j];
        if (s->kind == KS_BARRIER || s->kind == KS_PRODUCT)
            return;
        Kernel k = copy_of(mapped);
        if (s->step != STEP_VALUE || !store_there(&k, i, j))
            continue;
        expect_fault(t, &k, "a store to where a load is held", i);
        return;
    }
}

static void plant(StepTally *t, const Kernel *mapped, size_t i)
{
    const KStmt *all = mapped->stmt.v;
    KStmt s = all[i];
    without(t, mapped, i, "a step that is left out");
    for (size_t j = i + 1; j < mapped->stmt.n; j++) {
        if (!all[j].step)
            continue;
        if (all[j].held == s.held) {
            behind(t, mapped, i, j, "a step behind the next one");
            break;
        }
    }
    for (size_t j = 0; j < mapped->stmt.n; j++)
        if (all[j].step && all[j].step == s.step && all[j].held != s.held) {
            s.held = all[j].held;
            with(t, mapped, i, s, "a step of another statement");
            break;
        }
    s = all[i];
    s.step = STEP_VALUE;
    if (all[i].step != STEP_VALUE)
        with(t, mapped, i, s, "another step");
    s = all[i];
    s.piece ^= 4;
    with(t, mapped, i, s, "pieces of another width");
    if (is_load(&all[i]) && all[i].step == STEP_LOAD)
        one_place(t, mapped, i);
}

/* ---- totals and lanes ---- */

static void twice(StepTally *t, const Kernel *mapped, size_t i, const char *what)
{
    Kernel k = copy_of(mapped);
    k.stmt.v = NEW_ARRAY(k.arena, KStmt, k.stmt.n + 1);
    for (size_t j = 0; j <= k.stmt.n; j++)
        k.stmt.v[j] = mapped->stmt.v[j <= i ? j : j - 1];
    k.stmt.n++;
    expect_fault(t, &k, what, i);
}

/* What all threads of a row do for a sum of which each has a part. */
static bool is_total(const KStmt *s)
{
    return s->kind == KS_WARP || s->kind == KS_WARP_PUT || s->kind == KS_WARP_TAKE || s->kind == KS_ARRAY_GIVE ||
           s->kind == KS_ARRAY_TAKE || s->kind == KS_SUM_NEW || s->kind == KS_SUM_PUT;
}

static bool is_of_lanes(const KStmt *s)
{
    return s->kind == KS_LANES || s->kind == KS_LANE_TAKE || s->kind == KS_LANE_STORE;
}

/* Does another statement read this value, so that it is lost if one lane alone has it? */
static bool is_read(const Kernel *k, size_t total, Ex e)
{
    for (size_t i = total + 1; i < k->stmt.n && k->stmt.v[i].kind != KS_END; i++) {
        const KStmt *s = &k->stmt.v[i];
        const KEx *x = kx(k, s->ex);
        if ((s->kind == KS_LET && (x->in[0] == e || x->in[1] == e || x->in[2] == e)) ||
            (s->kind == KS_STORE && k->root.v[s->root].value == e))
            return true;
    }
    return false;
}

/* The kernel with totals of its own in statement i, a step. */
static Kernel with_own_totals(const Kernel *mapped, size_t i, KTotals **of)
{
    Kernel k = copy_of(mapped);
    const size_t n = k.device.totals.n;
    k.device.totals.v = memcpy(NEW_ARRAY(k.arena, KTotals, n), k.device.totals.v, n * sizeof *k.device.totals.v);
    *of = &k.device.totals.v[k.stmt.v[i].totals - 1];
    (*of)->of = memcpy(NEW_ARRAY(k.arena, KTotal, (*of)->n), (*of)->of, (*of)->n * sizeof *(*of)->of);
    return k;
}

/* Totals a and b of a step change places, and so many of the last ones are left out. */
static void with_totals(StepTally *t, const Kernel *mapped, size_t i, uint32_t a, uint32_t b, uint32_t without,
                        const char *what)
{
    KTotals *of = NULL;
    Kernel k = with_own_totals(mapped, i, &of);
    const KTotal first = of->of[a];
    of->of[a] = of->of[b];
    of->of[b] = first;
    of->n -= without;
    expect_fault(t, &k, what, i);
}

static void plant_total(StepTally *t, const Kernel *mapped, size_t i)
{
    KStmt s = mapped->stmt.v[i];
    without(t, mapped, i, "a total that is left out");
    twice(t, mapped, i, "a total that is taken twice");
    if (s.kind == KS_ARRAY_GIVE || s.kind == KS_ARRAY_TAKE || s.kind == KS_SUM_NEW || s.kind == KS_SUM_PUT)
        return;
    if (s.kind != KS_WARP) {
        s.at++;
        with(t, mapped, i, s, "a total of another slot");
        s.at--;
    }
    if (!s.totals)
        return;
    if (s.kind != KS_WARP || s.column || kernel_totals(mapped, &s)->of[0].alone) /* else each thread has all of them */
        with_totals(t, mapped, i, 0, 1, 0, "the total of another lane");
    with_totals(t, mapped, i, 0, 0, 1, "a step without one of its totals");
    KTotals *of = NULL;
    Kernel k = with_own_totals(mapped, i, &of);
    of->of[0] = of->of[1];
    expect_fault(t, &k, "a total twice in one step", i);
}

/* A total that others read is its lane's alone; one that is its lane's alone every thread is said to have. */
static void plant_alone(StepTally *t, const Kernel *mapped, size_t i)
{
    const KStmt *s = &mapped->stmt.v[i];
    KTotals *of = NULL;
    Kernel k = with_own_totals(mapped, i, &of);
    of->of[0].alone = !of->of[0].alone;
    if (of->of[0].alone ? is_read(mapped, i, of->of[0].ex) : s->kind == KS_WARP && !s->column)
        expect_fault(t, &k, "a total that one lane alone has, or not", i);
}

static void plant_lanes(StepTally *t, const Kernel *mapped, size_t i)
{
    const KStmt s = mapped->stmt.v[i];
    without(t, mapped, i, "lanes that are left out");
    twice(t, mapped, i, "lanes that do it twice");
    for (int fault = 0; fault < 8; fault++) {
        Kernel k = copy_of(mapped);
        KColumn *c = &k.device.column.v[s.column - 1];
        KStmt *to = &k.stmt.v[i];
        if (fault == 0 && s.kind == KS_LANE_TAKE)
            to->lane = (uint8_t)(c->first + (to->lane - c->first + 1) % c->n);
        else if (fault == 1 && s.kind != KS_LANE_TAKE)
            c->first++;
        else if (fault == 2 && s.kind != KS_LANE_TAKE)
            c->n++;
        else if (fault == 3 && s.kind == KS_LANES && c->ex[0] != c->ex[1])
            c->ex[0] = c->ex[1];
        else if (fault == 4 && c->root)
            c->root[0] = c->root[1];
        else if (fault == 5 && c->place.of && s.kind != KS_LANE_TAKE)
            c->place.along++;
        else if (fault == 6 && c->in[0] && s.kind != KS_LANE_TAKE)
            c->in[0] = 0;
        else if (fault == 7 && c->in[0] && s.kind != KS_LANE_TAKE)
            c->in[0] = s.column;
        else
            continue;
        static const char *const what[] = {"another lane's element",
                                           "lanes from another one on",
                                           "one lane more",
                                           "a lane of what the next one has",
                                           "a result twice",
                                           "another place",
                                           "an input that is the same for all",
                                           "a column of itself"};
        expect_fault(t, &k, what[fault], i);
    }
}

/* ---- what the next row loads ---- */

/* Of another row of threads, of no buffer, outside of it, where this row has it; a tile of several rows that does not know which. */
static void plant_row(StepTally *t, const Kernel *mapped, size_t i)
{
    t->begins++;
    if (mapped->stmt.v[i].kind == KS_ROW_TILES) {
        without(t, mapped, i, "tiles that do not know their row");
        twice(t, mapped, i, "tiles that ask for their row twice");
        for (size_t place = 0; place < mapped->device.tile_slot.n; place++)
            for (int fault = 0; fault < 2; fault++) {
                Kernel k = copy_of(mapped);
                size_t n = k.device.tile_slot.n;
                k.device.tile_slot.v = memcpy(NEW_ARRAY(k.arena, KTilePlace, n), mapped->device.tile_slot.v,
                                              n * sizeof *k.device.tile_slot.v);
                KTilePlace *x = &k.device.tile_slot.v[place];
                if (!x->rows)
                    continue;
                if (fault)
                    x->each++;
                else
                    x->rows = 0;
                expect_fault(t, &k, "a place of other rows", i);
            }
        return;
    }
    for (int fault = 0; fault < 7; fault++) {
        Kernel k = copy_of(mapped);
        k.prefetch.v = memcpy(NEW_ARRAY(k.arena, KPrefetch, k.prefetch.n), mapped->prefetch.v,
                              k.prefetch.n * sizeof *k.prefetch.v);
        KPrefetch *x = &k.prefetch.v[k.stmt.v[i].root];
        if (fault == 0)
            x->warp = (uint8_t)(k.device.mapping.row_threads / 32);
        else if (fault == 1)
            x->buffer = (uint32_t)k.buffer.n;
        else if (fault == 2)
            x->at = ix_add(k.ix, x->at, ix_const(k.ix, k.buffer.v[x->buffer].elements));
        else if (fault == 3)
            x->length = ix_add(k.ix, x->length, ix_const(k.ix, k.buffer.v[x->buffer].elements));
        else if (fault == 4)
            x->nth++;
        else if (fault == 5)
            x->of++;
        else
            x->at = ix_const(k.ix, 0);
        expect_fault(t, &k, "a prefetch of something else", i);
    }
}

/* Two products at one time: without the second, with one that is there already, of what the other gives, by another factor. */
static void plant_pair(StepTally *t, const Kernel *mapped, size_t i)
{
    uint32_t first = mapped->stmt.v[i].root;
    for (int fault = 0; fault < 6; fault++) {
        Kernel k = copy_of(mapped);
        KProduct *x = &k.product.v[first], *y = &k.product.v[x->beside - 1];
        if (fault == 0)
            x->beside = 0;
        else if (fault == 1)
            x->beside = first + 1;
        else if (fault == 2)
            y->a = x->c;
        else if (fault == 3)
            y->c = x->a;
        else if (fault == 4)
            y->b = y->a;
        else
            y->b_at = ix_add(k.ix, y->b_at, ix_var(k.ix, y->k));
        expect_fault(t, &k, "products at one time", i);
    }
    t->pairs++;
}

/* A product with this way in place of its own: checks find it. */
static void with_way(StepTally *t, const Kernel *mapped, size_t product, KProductWay way, const char *what)
{
    Kernel k = copy_of(mapped);
    k.product.v[product].way = way;
    expect_fault(t, &k, what, product);
}

static int64_t extent_of(const Kernel *k, IVar v) { return ix_info(k->ix, v)->hi + 1; }

/* Neighbours along another loop, pieces that are too few, lines and sixteens where there are none, the other order. */
static void plant_way(StepTally *t, const Kernel *mapped, size_t product)
{
    const KProduct *x = &mapped->product.v[product];
    const KProductWay own = x->way;
    const bool sums = product_cut_shares(own.cut), many = extent_of(mapped, x->m) > 32 || extent_of(mapped, x->n) > 32;
    t->ways++;
    with_way(t, mapped, product, (KProductWay){0}, "a product without a way");
    for (int side = 0; side < 2; side++) {
        KProductWay way = own;
        KLying *to = side ? &way.b : &way.a;
        *to = *to == LIES_ALONG_OWN ? LIES_ALONG_SUM : LIES_ALONG_OWN;
        with_way(t, mapped, product, way, "neighbours along another loop");
    }
    for (ProductCut cut = CUT_NONE; cut < CUT_COUNT; cut++) {
        KProductWay way = own;
        way.cut = cut;
        bool few = cut == CUT_NONE || cut >= CUT_ROWS_BY_PARTS || (product_cut_shares(cut) && many) ||
                   ((cut == CUT_SHORT_ROWS || cut == CUT_SHORT_COLUMNS) && extent_of(mapped, x->k) > 16);
        if (cut != own.cut && few && !(x->split && cut == CUT_ROWS_BY_PARTS) && mapped->device.tensor)
            with_way(t, mapped, product, way, "pieces of another cut");
    }
    KProductWay way = own;
    way.along = own.along == x->m ? x->n : x->m;
    with_way(t, mapped, product, way, "a result along another loop");
    way = own;
    way.by_rows = !own.by_rows;
    if (!sums)
        with_way(t, mapped, product, way, "a product in the other order");
    way = own;
    way.line = own.line == 32 ? 8 : own.line ? 32 : 4;
    with_way(t, mapped, product, way, "lines of another length");
    way = own;
    way.sixteens = true;
    if (!own.sixteens && mapped->device.tensor)
        with_way(t, mapped, product, way, "sixteens of a sum that has a rest");
}

/* A choice that is said to be what was loaded, and is not: of other values, or by another guard. */
static void plant_loaded(StepTally *t, const Kernel *mapped, size_t i)
{
    Kernel k = copy_of(mapped);
    Ex e = k.stmt.v[i].ex;
    k.ex.v = memcpy(NEW_ARRAY(k.arena, KEx, k.ex.n), mapped->ex.v, k.ex.n * sizeof *k.ex.v);
    KEx *x = &k.ex.v[e];
    t->loaded += x->i == 1;
    if (x->i)
        x->in[2] = x->in[1];
    x->i = 1;
    expect_fault(t, &k, "a choice that is not what was loaded", i);
}

static void plant_sum(StepTally *t, const Kernel *mapped, size_t i)
{
    Kernel k = copy_of(mapped);
    KBuffer *all = memcpy(NEW_ARRAY(k.arena, KBuffer, k.buffer.n), k.buffer.v, k.buffer.n * sizeof *all);
    KBuffer *b = &all[k.root.v[mapped->stmt.v[i].root].buffer];
    k.buffer.v = all;
    b->op = b->op == OP_SUM ? OP_AMAX : OP_SUM;
    expect_fault(t, &k, "partial sums that begin with another operator's number", i);
}

/* Partial sums that have no place, are not filled, not stored, or those of another buffer; where they lie is said otherwise. */
static void plant_part(StepTally *t, const Kernel *mapped, size_t i)
{
    without(t, mapped, i, "partial sums without a place, a beginning or an end");
    twice(t, mapped, i, "partial sums that are placed, filled or stored twice");
    KStmt s = mapped->stmt.v[i];
    for (s.root = 0; s.root < mapped->buffer.n; s.root++)
        if (s.root != mapped->stmt.v[i].root)
            with(t, mapped, i, s, "partial sums of another buffer");
    Kernel k = copy_of(mapped);
    k.buffer.v = memcpy(NEW_ARRAY(k.arena, KBuffer, k.buffer.n), k.buffer.v, k.buffer.n * sizeof *k.buffer.v);
    bool *held = &k.buffer.v[mapped->stmt.v[i].root].device.shared;
    *held = !*held;
    expect_fault(t, &k, "partial sums that lie elsewhere than their place", i);
    t->parts++;
}

/* It stands for more elements, for one, and these are one value or are none. */
static void plant_elements(StepTally *t, const Kernel *mapped, size_t i)
{
    KStmt s = mapped->stmt.v[i];
    t->elements++;
    s.width ^= 6;
    with(t, mapped, i, s, "a statement of another number of elements");
    s.width = 0;
    with(t, mapped, i, s, "a statement of one element");
    s.width = mapped->stmt.v[i].width;
    for (uint8_t across = 0; across < ACROSS_COUNT; across++) {
        s.across = across;
        if (across != mapped->stmt.v[i].across)
            with(t, mapped, i, s, "elements that go together otherwise");
    }
}

/* ---- arguments of its text ---- */

static Kernel numbered(const Kernel *mapped)
{
    Kernel k = copy_of(mapped);
    kernel_find_arguments(&k, NULL);
    return k;
}

/* A use more or less, of another argument, of a literal or none; another size, another multiple, another tensor. */
static void plant_arguments(StepTally *t, const Kernel *mapped)
{
    static const char *const what[] = {
        "a size that is left out",           "a size more",      "an argument that is a literal",
        "an argument of another size",       "another argument", "a multiple that is forgotten",
        "a multiple that nothing relies on", "another tensor",   "a tensor more",
        "more blocks than there are"};
    for (size_t fault = 0; fault < COUNT_OF(what); fault++) {
        Kernel k = numbered(mapped);
        const size_t n = k.argument.n;
        size_t use = 0, multiple = 0;
        while (use < k.use.n && k.use.v[use] == USE_LITERAL)
            use++;
        while (multiple < n && !k.argument.v[multiple].multiple)
            multiple++;
        if (fault == 0)
            k.use.n--;
        else if (fault == 1)
            vec_push(k.arena, &k.use, USE_LITERAL);
        else if (fault == 2 && use < k.use.n)
            k.use.v[use] = USE_LITERAL;
        else if (fault == 3 && n)
            k.argument.v[0] = (KArgument){.kind = KA_VALUE, .value = 12345};
        else if (fault == 4 && use < k.use.n)
            k.use.v[use]++;
        else if (fault == 5 && multiple < n)
            k.argument.v[multiple].multiple = 0;
        else if (fault == 6 && n)
            k.argument.v[0].multiple = (uint8_t)(k.argument.v[0].multiple + 3);
        else if (fault == 7 && k.pointer.n > 1)
            k.pointer.v[0] = k.pointer.v[1];
        else if (fault == 8)
            vec_push(k.arena, &k.pointer, 0);
        else if (fault == 9)
            k.device.grid.at_once = 100;
        else
            continue;
        expect_fault(t, &k, what[fault], fault);
        t->arguments++;
    }
}

void plant_steps(Harness *h, StepTally *t, const Kernel *k, const Kernel *mapped, const char *name)
{
    size_t at;
    bool pieces = false, rounds = false, sums = false;
    const char *why = kernel_check(mapped, &at);
    if (!CHECK_CASE(h, !why, name))
        printf("statement %zu: %s\n", at, why);
    t->checked++;
    plant_arguments(t, mapped);
    for (size_t i = 0; i < mapped->stmt.n; i++) {
        const KStmt *s = &mapped->stmt.v[i];
        pieces = pieces || s->kind == KS_PIECES;
        rounds = rounds || (s->step == STEP_NEW && !s->piece);
        sums = sums || s->step == (STEP_VALUE | STEP_STORE);
        if (s->step)
            plant(t, mapped, i);
        if (s->width && !kernel_opens(s) && case_drawn(&t->of_elements, (size_t)++t->wide))
            plant_elements(t, mapped, i);
        if (s->kind == KS_SINK && !s->step)
            plant_sum(t, mapped, i);
        if (s->kind >= KS_PART_ROOM && s->kind <= KS_PART_STORE)
            plant_part(t, mapped, i);
        if (s->kind == KS_PREFETCH_ROW || s->kind == KS_ROW_TILES)
            plant_row(t, mapped, i);
        t->totals += is_total(s);
        t->lanes += is_of_lanes(s);
        if (s->totals && s->kind != KS_WARP_PUT)
            plant_alone(t, mapped, i);
        if (is_total(s) && case_drawn(&t->of_totals, (size_t)t->totals))
            plant_total(t, mapped, i);
        if (is_of_lanes(s) && case_drawn(&t->of_lanes, (size_t)t->lanes))
            plant_lanes(t, mapped, i);
        if (s->kind == KS_PRODUCT && mapped->product.v[s->root].beside)
            plant_pair(t, mapped, i);
        if (s->kind == KS_LET && !s->step && kx(mapped, s->ex)->kind == KX_SELECT)
            plant_loaded(t, mapped, i);
        if (s->kind == KS_PRODUCT && case_drawn(&t->of_ways, ++t->products))
            plant_way(t, mapped, s->root);
    }
    t->pieces += pieces;
    t->rounds += rounds;
    t->sums += sums;
    if (!is_small(k))
        return;
    ArenaMark mark = arena_mark(k->arena);
    CHECK_CASE(h, same_results(k, run(k), run(mapped)), name);
    t->run++;
    arena_reset(k->arena, mark);
}
