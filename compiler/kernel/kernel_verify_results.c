/* kernel_verify_results.c - is each element of each result stored once?
 *
 * In:  a statement that stores, adds to a sum over rows or multiplies, and what is known where it stands.
 * Out: the first fault: an element that is stored twice or never, outside of its buffer, or of what is not there; a product whose way
 *      its shape and its places do not allow (KProductWay).
 * The one idea: places are forms of loops, so that no two rounds share one is arithmetic (kernel_bounds.c), and what is stored
 * in all is counted.
 */
#include "kernel_verify.h"

/* ---- partial sums ---- */

/* Those of a buffer have a place, in memory or in the shared memory of a block, begin with their neutral element unless threads hold
 * them in registers, and are stored when they lie in shared memory. */
void verify_part(Check *c, const KStmt *s)
{
    const Kernel *k = c->k;
    const KBuffer *b = s->root < k->buffer.n ? &k->buffer.v[s->root] : NULL;
    if (!b || b->part < 0) {
        verify_fault(c, "partial sums that do not exist");
        return;
    }
    const bool room = s->kind == KS_PART_ROOM, held = b->device.shared, by_row = k->device.mapping.by_row;
    const PartSums is = (PartSums)c->sums[s->root];
    if (c->in_rows || c->in_part == room || c->had_rows != (s->kind == KS_PART_STORE))
        verify_fault(c, "partial sums are made ready before the rows of their partition, and stored behind them");
    else if (room || s->kind == KS_PART_PLACE ? is != SUMS_NOWHERE || held != room : is == SUMS_NOWHERE)
        verify_fault(c, "partial sums that do not lie in one place");
    else if (s->kind == KS_PART_FILL && (is != SUMS_PLACED || by_row))
        verify_fault(c, "partial sums that are filled twice, or held in registers");
    else if (s->kind == KS_PART_STORE && (is != SUMS_FILLED || !held))
        verify_fault(c, "partial sums that are stored twice, or in memory already");
    c->sums[s->root] = s->kind == KS_PART_FILL ? SUMS_FILLED : s->kind == KS_PART_STORE ? SUMS_STORED : SUMS_PLACED;
}

/* Has a buffer of partial sums what is added to it? */
static bool is_ready(const Check *c, uint32_t buffer)
{
    return c->sums[buffer] == (c->k->device.mapping.by_row ? SUMS_PLACED : SUMS_FILLED);
}

static void verify_parts_whole(Check *c)
{
    const Kernel *k = c->k;
    for (uint32_t b = 0; b < k->buffer.n; b++)
        if (k->buffer.v[b].part >= 0 && (k->buffer.v[b].device.shared ? c->sums[b] != SUMS_STORED : !is_ready(c, b)))
            verify_fault(c, "partial sums that are never filled or stored");
}

/* ---- stores ---- */

static void root_places(Check *c, const KRoot *r)
{
    const Kernel *k = c->k;
    IVar v[NEST_MAX + 1];
    uint32_t n = 0;
    for (; n < r->nest.n; n++)
        v[n] = r->nest.var[n];
    if (r->kind == KR_STORE && !k->buffer.v[r->buffer].tile)
        v[n++] = k->row;
    if (!kernel_injective(k, r->at, v, n))
        verify_fault(c, "two elements are stored in one place");
    if (!kernel_in_bounds(k, r->at, 0, k->buffer.v[r->buffer].elements))
        verify_fault(c, "a store may leave its buffer of %lld elements", (long long)k->buffer.v[r->buffer].elements);
}

void verify_store(Check *c, const KStmt *s)
{
    const Kernel *k = c->k;
    if (s->root >= k->root.n || k->root.v[s->root].buffer >= k->buffer.n) {
        verify_fault(c, "a result that does not exist");
        return;
    }
    const KRoot *r = &k->root.v[s->root];
    bool stored = verify_does(s, STEP_STORE);
    if (verify_does(s, STEP_VALUE))
        verify_use(c, r->value);
    if (!verify_does(s, STEP_STORE | STEP_LOAD))
        return;
    if ((s->kind == KS_SINK) != (r->kind == KR_SINK))
        verify_fault(c, "a result is stored in the wrong way");
    if (s->kind == KS_SINK && k->device.mapping.by_row)
        verify_row_sum(c, s);
    verify_result(c, s->root);
    c->stored[s->root] = stored;
}

void verify_result(Check *c, uint32_t root)
{
    const Kernel *k = c->k;
    const KRoot *r = &k->root.v[root];
    const KBuffer *b = &k->buffer.v[r->buffer];
    bool sink = r->kind == KR_SINK;
    verify_row_known(c, r->buffer);
    if (c->stored[root])
        verify_fault(c, "a result is stored twice");
    c->stored[root] = true;
    if (sink != (b->part >= 0) || !b->written || (sink && b->half))
        verify_fault(c, "a result is stored in the wrong way");
    if (!c->in_rows || (sink && !c->in_part) || !verify_loops_are(c, 0, &r->nest, NULL))
        verify_fault(c, "a result is not stored in its own loops");
    verify_use_ix(c, r->at);
    if (c->why)
        return;
    if (verify_type(c, r->value) != (b->dtype == DT_INT ? KT_INT : KT_REAL))
        verify_fault(c, "a result of the wrong type");
    if (sink && !is_ready(c, r->buffer))
        verify_fault(c, "a sum over rows is added to what nobody has set to begin with");
    if (sink && ((r->op != OP_SUM && r->op != OP_AMAX) || b->op != r->op))
        verify_fault(c, "a sum over rows of no operator, or of another one than its partial sums begin with");
    c->filling[r->buffer] = c->loop.n > 0;
    root_places(c, r);
}

/* ---- what the next row loads ---- */

/* Its place in the next row is that of this one with another row: quotients and remainders of the
 * row are not known there. */
static bool is_known_in_next_row(const Kernel *k, Ix ix)
{
    const IxForm *f = ix_form(k->ix, ix);
    for (uint32_t i = 0; i < f->n; i++) {
        const IVarInfo *v = ix_info(k->ix, f->t[i].var);
        if ((v->kind == IV_DIV || v->kind == IV_MOD) && v->deps & ix_bit(k->ix, k->row))
            return false;
    }
    return true;
}

/* Is the prefetch before or behind it, of those that its warp does one after the other, really there? step: -1 or 1. */
static bool has_neighbour(const Kernel *k, const KStmt *s, int step)
{
    const KPrefetch *x = &k->prefetch.v[s->root];
    const KStmt *other = s + step, *all = k->stmt.v;
    if (step < 0 ? s == all : other == all + k->stmt.n)
        return false;
    const KPrefetch *y =
        other->kind == KS_PREFETCH_ROW && other->root < k->prefetch.n ? &k->prefetch.v[other->root] : NULL;
    return y && y->warp == x->warp && y->of == x->of && y->nth == x->nth + step;
}

/* Rows of one warp stand together, and say how many they are. */
static bool is_in_order(const Kernel *k, const KStmt *s)
{
    const KPrefetch *x = &k->prefetch.v[s->root];
    return x->nth >= 1 && x->nth <= x->of && has_neighbour(k, s, -1) == (x->nth > 1) &&
           has_neighbour(k, s, 1) == (x->nth < x->of);
}

void verify_prefetch(Check *c, const KStmt *s)
{
    const Kernel *k = c->k;
    const KPrefetch *x = s->root < k->prefetch.n ? &k->prefetch.v[s->root] : NULL;
    if (!x || x->buffer >= k->buffer.n || x->at >= k->ix->form.n || x->length >= k->ix->form.n) {
        verify_fault(c, "a prefetch that does not exist");
        return;
    }
    const KBuffer *b = &k->buffer.v[x->buffer];
    bool row = s->kind == KS_PREFETCH_ROW;
    verify_use_ix(c, x->at);
    if (c->why)
        return;
    if (!c->in_rows || !b->read || b->tile || b->part >= 0)
        verify_fault(c, "a prefetch of what no row loads");
    else if (!(ix_form(k->ix, x->at)->deps & ix_bit(k->ix, k->row)) || !is_known_in_next_row(k, x->at))
        verify_fault(c, "a prefetch of what lies where this row has it");
    else if (!kernel_in_bounds(k, x->at, 0, b->elements))
        verify_fault(c, "a prefetch may leave its buffer of %lld elements", (long long)b->elements);
    else if (row && (c->loop.n || !c->in_part || b->written || x->warp >= k->device.mapping.row_threads / 32))
        verify_fault(c, "a row is prefetched by no warp of its block");
    else if (row && !is_in_order(k, s))
        verify_fault(c, "rows that a warp prefetches do not stand together");
    else if (row &&
             !kernel_in_bounds(k, ix_add(k->ix, x->at, ix_add(k->ix, x->length, ix_const(k->ix, -1))), 0, b->elements))
        verify_fault(c, "a prefetch of more than a row");
}

/* Before anything of the row touches such a tile. */
void verify_row_tiles(Check *c)
{
    if (!c->in_rows || !c->in_part || c->loop.n || c->row_tiles)
        verify_fault(c, "tiles of several rows that do not know which one it is");
    c->row_tiles = true;
}

/* A tile of several rows has a place of its own, which says how many there are and how long each is. */
void verify_tile_place(Check *c, uint32_t buffer)
{
    const KBuffer *b = &c->k->buffer.v[buffer];
    if (!c->k->device.mapping.row_threads || !b->tile || b->device.slot < 0 || !c->k->device.tile_slot.n)
        return;
    const KTilePlace *x = &c->k->device.tile_slot.v[b->device.slot];
    if (x->rows != b->device.rows || (x->rows && x->each != b->elements))
        verify_fault(c, "a tile of other rows than its place has");
}

/* ---- products ---- */

/* A place of the row and of two loops, one step of which is known to be one element. */
static bool form_is_of(const Check *c, Ix ix, bool row, IVar v, IVar w)
{
    if (ix >= c->k->ix->form.n)
        return false;
    const IxForm *f = ix_form(c->k->ix, ix);
    for (uint32_t i = 0; i < f->n; i++) {
        IVar x = f->t[i].var;
        if (x && x != v && x != w && !(row && x == c->k->row))
            return false;
    }
    return true;
}

static void check_factor(Check *c, uint32_t buffer, Ix at, IVar v, IVar w)
{
    if (buffer >= c->k->buffer.n) {
        verify_fault(c, "a buffer that does not exist");
        return;
    }
    const KBuffer *b = &c->k->buffer.v[buffer];
    c->loaded[buffer] = true;
    verify_row_known(c, buffer);
    if (b->dtype != DT_REAL || (b->half && !c->k->target->threads) || b->part >= 0 || !b->read)
        verify_fault(c, "a product of what it cannot read");
    else if (b->tile ? !verify_tile_ready(c, buffer, false) : b->written)
        verify_fault(c,
                     b->tile ? "a product of a tile before all of it is there" : "a product of what the kernel stores");
    else if (!form_is_of(c, at, true, v, w))
        verify_fault(c, "a factor is not placed by the row and its own two loops");
    else if (!kernel_in_bounds(c->k, at, 0, b->elements))
        verify_fault(c, "a factor may leave its buffer of %lld elements", (long long)b->elements);
    else
        verify_index(c, at);
}

/* On a device a product goes to memory where nothing else wants it (gpu/tile.c). */
static bool is_result(const Kernel *k, const KProduct *x)
{
    const KBuffer *b = &k->buffer.v[x->c];
    return k->device.mapping.row_threads && !x->add && !b->tile && !b->read && b->part < 0;
}

static void check_result(Check *c, const KProduct *x)
{
    const Kernel *k = c->k;
    if (x->c >= k->buffer.n) {
        verify_fault(c, "a buffer that does not exist");
        return;
    }
    const KBuffer *b = &k->buffer.v[x->c];
    const bool memory = is_result(k, x);
    verify_row_known(c, x->c);
    IVar v[3] = {x->m, x->n, k->row};
    if (b->dtype != DT_REAL || !b->written || !(b->tile || memory || (b->part >= 0 && x->add && b->op == OP_SUM)))
        verify_fault(c, "a product is stored in the wrong way");
    else if (b->part >= 0 && !is_ready(c, x->c))
        verify_fault(c, "a product is added to what nobody has set to begin with");
    else if (x->add && b->tile && !verify_tile_ready(c, x->c, true))
        verify_fault(c, "a product is added to a tile before all of it is there");
    else if (!form_is_of(c, x->c_at, memory, x->m, x->n) || !kernel_injective(k, x->c_at, v, memory ? 3 : 2))
        verify_fault(c, "two elements are stored in one place");
    else if (!kernel_in_bounds(k, x->c_at, 0, b->elements))
        verify_fault(c, "a product may leave its buffer of %lld elements", (long long)b->elements);
    else
        verify_index(c, x->c_at);
}

/* Along the loop in which c is contiguous a factor must be contiguous too. Or it is along the terms of the
 * sum: then it is transposed first. */
static void check_layout(Check *c, const KProduct *x)
{
    const Kernel *k = c->k;
    ProductSteps s;
    bool steps = product_steps(k, x, &s);
    bool along_n = steps && product_along_n(&s) && (s.bn == 1 || s.bk == 1);
    bool along_m = steps && s.cm == 1 && (s.am == 1 || s.ak == 1);
    if (!(steps && product_along_n(&s) ? along_n : along_m))
        verify_fault(c, "a product without neighbours to make vectors of");
    if (!k->device.tensor &&
        ((ix_info(k->ix, x->m)->hi + 1) % PRODUCT_LANES || (ix_info(k->ix, x->n)->hi + 1) % PRODUCT_LANES))
        verify_fault(c, "a product of other sizes than multiples of %d", (int)PRODUCT_LANES);
}

/* ---- ways of products: what each takes for granted is computed here from the steps of the operands, at the kernel's own sizes ---- */

enum { FEW = 16, LESS = 8, SUM_OF_WARP = 32 };

static int64_t length(const Check *c, IVar v) { return ix_dim_at(c->k->ix, ix_info(c->k->ix, v)->extent); }

/* Is each step of a place a multiple, but for that of `along`? */
static bool begins_at(const Check *c, Ix at, IVar along, int64_t multiple)
{
    const IxForm *f = ix_form(c->k->ix, at);
    for (uint32_t i = 0; i < f->n; i++)
        if (f->t[i].var != along && f->t[i].mult * ix_dim_at(c->k->ix, f->t[i].coef) % multiple)
            return false;
    return true;
}

static void check_lying(Check *c, KLying how, Ix at, IVar own, IVar sum, int64_t own_step, int64_t sum_step,
                        int64_t piece)
{
    bool by_sum = how == LIES_ALONG_SUM;
    if (how > LIES_ALONG_OWN)
        verify_fault(c, "a factor that lies in no way");
    if (how != LIES_ALONG_SUM && how != LIES_ALONG_OWN)
        return;
    if ((by_sum ? sum_step : own_step) != 1 || (piece && !begins_at(c, at, by_sum ? sum : own, piece)))
        verify_fault(c, "neighbours of a factor that do not lie next to each other");
    else if (by_sum && piece && length(c, sum) % piece)
        verify_fault(c, "neighbours of a factor that are not all terms of the sum");
}

static void check_lyings(Check *c, const KProduct *x, const ProductSteps *s, bool device)
{
    const KBuffer *a = &c->k->buffer.v[x->a], *b = &c->k->buffer.v[x->b];
    check_lying(c, x->way.a, x->a_at, x->m, x->k, s->am, s->ak,
                device ? product_piece(a->tile, c->k->device.tensor) : 0);
    check_lying(c, x->way.b, x->b_at, x->n, x->k, s->bn, s->bk,
                device ? product_piece(b->tile, c->k->device.tensor) : 0);
}

/* Which results do pieces of a cut have all of? m and n: as they are multiplied. */
static bool has_all(ProductCut cut, int64_t m, int64_t n)
{
    switch (cut) {
    case CUT_WIDE_PIECES: return true;
    case CUT_FEW_COLUMNS:
    case CUT_LONG_COLUMNS:
    case CUT_SHORT_COLUMNS: return n <= FEW;
    case CUT_FEW_ROWS:
    case CUT_LONG_ROWS:
    case CUT_SHORT_ROWS: return m <= FEW;
    case CUT_FEW_NUMBERS:
    case CUT_FEW_EIGHTS: return m <= FEW && n <= LESS;
    case CUT_MORE_NUMBERS:
    case CUT_MORE_EIGHTS: return m <= 2 * FEW && n <= LESS;
    case CUT_ROWS_BY_PARTS: return m <= LESS;
    default: return false;
    }
}

static void check_cut(Check *c, const KProduct *x, const ProductSteps *s)
{
    const KProductWay *way = &x->way;
    const int64_t m = length(c, x->m), n = length(c, x->n), sum = length(c, x->k);
    const bool is_short = way->cut == CUT_SHORT_ROWS || way->cut == CUT_SHORT_COLUMNS,
               eights = way->cut == CUT_FEW_EIGHTS || way->cut == CUT_MORE_EIGHTS,
               parts = way->cut == CUT_ROWS_BY_PARTS, transposed = product_cut_shares(way->cut) && !way->by_rows;
    if (!c->k->device.tensor && way->cut != CUT_WIDE_PIECES && way->cut != CUT_FEW_COLUMNS)
        verify_fault(c, "pieces of tensor cores where there are none");
    else if (c->k->device.tensor && !has_all(way->cut, transposed ? n : m, transposed ? m : n))
        verify_fault(c, "a product whose pieces leave out some of it");
    else if (is_short && sum > FEW)
        verify_fault(c, "a product whose pieces leave out terms of its sum");
    else if ((eights || parts) && (s->ak != 1 || s->bk != 1 || !begins_at(c, x->a_at, x->k, LESS) || sum % LESS))
        verify_fault(c, "eights of terms that do not lie next to each other");
    else if (eights && (!begins_at(c, x->b_at, x->k, LESS) || sum % SUM_OF_WARP))
        verify_fault(c, "eights of terms that are not all of the sum");
    else if (parts != x->split || (parts && (sum != FEW || s->bn != 2 * FEW || n % SUM_OF_WARP || !way->by_rows)))
        verify_fault(c, "a product by two parts of other sizes");
}

/* A few numbers are stored one by one; all else in rows, or in rows of the transposed product. */
static void check_lines(Check *c, const KProduct *x, const ProductSteps *s)
{
    enum { FOUR = 4 };
    const KProductWay *way = &x->way;
    const bool rows = way->cut == CUT_SHORT_ROWS || way->cut == CUT_ROWS_BY_PARTS;
    const IVar lines = rows ? x->n : x->m;
    if (way->along != x->m && way->along != x->n)
        verify_fault(c, "a result that is contiguous along no loop of it");
    else if ((way->along == x->n ? s->cn : s->cm) != 1 ||
             (!product_cut_shares(way->cut) && way->by_rows != (way->along == x->n)))
        verify_fault(c, "a result that is not contiguous along its rows");
    else if (way->line && way->line != FOUR && way->line != SUM_OF_WARP)
        verify_fault(c, "lines of a result of another length");
    else if (way->line
                 ? !begins_at(c, x->c_at, way->along, FOUR) || (c->k->device.tensor && length(c, way->along) % FOUR)
                 : !c->k->device.tensor)
        verify_fault(c, "rows of a result that do not begin at multiples of four");
    else if (way->line == SUM_OF_WARP &&
             ((!rows && way->cut != CUT_SHORT_COLUMNS) || length(c, lines) % SUM_OF_WARP ||
              (c->k->buffer.v[x->c].tile && !begins_at(c, x->c_at, way->along, SUM_OF_WARP))))
        verify_fault(c, "lines of a result that are not whole");
    else if (way->sixteens && length(c, x->k) % FEW)
        verify_fault(c, "a sum of sixteens with a rest");
}

/* Nothing is said of a product before its pass has run; it is not printed then. */
static void verify_way(Check *c, const KProduct *x)
{
    const bool device = c->k->device.mapping.row_threads;
    ProductSteps s;
    if (c->why || (!x->way.a && !x->way.b && !x->way.cut && !(device && c->k->device.grid.threads)))
        return;
    if (!x->way.a || !x->way.b || device != (x->way.cut != CUT_NONE) || !product_steps(c->k, x, &s)) {
        verify_fault(c, "a product of which it is not said how it is computed");
        return;
    }
    check_lyings(c, x, &s, device);
    if (device && !c->why)
        check_cut(c, x, &s);
    if (device && !c->why)
        check_lines(c, x, &s);
    else if (!device && !c->why &&
             (x->way.by_rows ? s.cn != 1 || x->way.b == LIES_STRIDED : s.cm != 1 || x->way.a == LIES_STRIDED))
        verify_fault(c, "a product without neighbours to make vectors of");
}

static void check_factors(Check *c, const KProduct *x)
{
    Dim depth = ix_info(c->k->ix, x->k)->extent;
    check_factor(c, x->a, x->a_at, x->m, x->k);
    check_factor(c, x->b, x->split ? ix_add(c->k->ix, x->b_at, ix_dim(c->k->ix, depth, 1)) : x->b_at, x->k, x->n);
}

/* Its terms are added up with those of another product, whose result they are. */
static void check_also(Check *c, uint32_t product)
{
    if (product >= c->k->product.n || c->multiplied[product]) {
        verify_fault(c, "a product is added to another one twice");
        return;
    }
    check_factors(c, &c->k->product.v[product]);
    verify_way(c, &c->k->product.v[product]);
    c->multiplied[product] = true;
}

/* Where the right factor of a row begins. */
static Ix factor_begin(const Kernel *k, const KProduct *x)
{
    const IxForm *f = ix_form(k->ix, x->b_at);
    IxTerm t[TERMS_MAX];
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->n; i++)
        if (f->t[i].var != x->k && f->t[i].var != x->n)
            t[n++] = f->t[i];
    return ix_of_terms(k->ix, t, n);
}

static bool have_one_factor(const Kernel *k, const KProduct *x, const KProduct *y)
{
    ProductSteps s, u;
    return x->b == y->b && product_steps(k, x, &s) && product_steps(k, y, &u) && s.bk == u.bk && s.bn == u.bn &&
           ix_info(k->ix, x->k)->hi == ix_info(k->ix, y->k)->hi &&
           ix_info(k->ix, x->n)->hi == ix_info(k->ix, y->n)->hi && factor_begin(k, x) == factor_begin(k, y);
}

void verify_product(Check *c, uint32_t product)
{
    const Kernel *k = c->k;
    if (product >= k->product.n) {
        verify_fault(c, "a product that does not exist");
        return;
    }
    const KProduct *x = &k->product.v[product];
    if (!c->in_rows || c->loop.n || c->multiplied[product]) {
        verify_fault(c, "a product is not computed once for each row");
        return;
    }
    if (!verify_is_loop(c, x->m) || !verify_is_loop(c, x->n) || !verify_is_loop(c, x->k) || x->m == x->n ||
        x->m == x->k || x->n == x->k) {
        verify_fault(c, "a product that is not over three loops");
        return;
    }
    check_factors(c, x);
    check_result(c, x);
    if (!c->why)
        check_layout(c, x);
    verify_way(c, x);
    c->multiplied[product] = true;
    if (x->also)
        check_also(c, x->also - 1);
    if (x->beside)
        verify_product(c, x->beside - 1);
    if (x->beside && !c->why && !have_one_factor(k, x, &k->product.v[x->beside - 1]))
        verify_fault(c, "products at one time by two factors");
}

/* Is a result what a product stores? */
static bool is_product(const Kernel *k, uint32_t buffer)
{
    for (size_t i = 0; i < k->product.n; i++)
        if (k->product.v[i].c == buffer && is_result(k, &k->product.v[i]))
            return true;
    return false;
}

/* Is it computed with another one? */
static bool is_also(const Kernel *k, size_t product)
{
    for (size_t i = 0; i < k->product.n; i++)
        if (k->product.v[i].also == product + 1)
            return true;
    return false;
}

/* All of a buffer is stored: as many elements as it has, each root's in places of their own; or what one root
 * has of it. */
void verify_whole(Check *c)
{
    const Kernel *k = c->k;
    verify_parts_whole(c);
    double *n = NEW_ARRAY(c->arena, double, k->buffer.n + 1);
    size_t *roots = NEW_ARRAY(c->arena, size_t, k->buffer.n + 1);
    for (size_t i = 0; i < k->root.n; i++) {
        const KRoot *r = &k->root.v[i];
        bool each_row = r->kind == KR_STORE && !k->buffer.v[r->buffer].tile;
        double count = each_row ? (double)ix_dim_at(k->ix, k->rows) : 1;
        if (!c->stored[i] && is_product(k, r->buffer))
            continue;
        if (!c->stored[i]) {
            verify_fault(c, "result %zu is never stored", i);
            return;
        }
        for (uint32_t j = 0; j < r->nest.n; j++)
            count *= (double)ix_info(k->ix, r->nest.var[j])->hi + 1;
        n[r->buffer] += count;
        roots[r->buffer]++;
    }
    for (size_t i = 0; i < k->product.n; i++) {
        const KProduct *x = &k->product.v[i];
        if (is_also(k, i))
            continue;
        if (!c->multiplied[i])
            verify_fault(c, "a product is never computed");
        else if (!x->add || k->buffer.v[x->c].part >= 0)
            n[x->c] += ((double)ix_info(k->ix, x->m)->hi + 1) * ((double)ix_info(k->ix, x->n)->hi + 1) *
                       (is_result(k, x) ? (double)ix_dim_at(k->ix, k->rows) : 1);
    }
    for (size_t b = 0; b < k->buffer.n; b++)
        if (k->device.mapping.row_threads && k->buffer.v[b].tile && n[b] == 0 && !c->loaded[b])
            continue; /* another one is in its place */
        else if (k->buffer.v[b].partly ? roots[b] != 1
                                       : k->buffer.v[b].written && n[b] != (double)k->buffer.v[b].elements)
            verify_fault(c, "%.0f of the %lld elements of buffer %zu are stored", n[b],
                         (long long)k->buffer.v[b].elements, b);
}
