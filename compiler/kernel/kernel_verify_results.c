/* kernel_verify_results.c - is each element of each result stored once?
 *
 * In:  a statement that stores, adds to a sum over rows or multiplies, and what is known where it stands.
 * Out: the first fault: an element that is stored twice or never, outside of its buffer, or of what is not there.
 * The one idea: places are forms of loops, so that no two rounds share one is arithmetic (kernel_bounds.c), and what is stored
 * in all is counted.
 */
#include "kernel_verify.h"

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
    if (sink && r->op != OP_SUM && r->op != OP_AMAX)
        verify_fault(c, "a sum over rows of no operator");
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
    if (b->dtype != DT_REAL || !b->written || !(b->tile || memory || (b->part >= 0 && x->add)))
        verify_fault(c, "a product is stored in the wrong way");
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

static void check_factors(Check *c, const KProduct *x)
{
    Dim depth = ix_info(c->k->ix, x->k)->extent;
    check_factor(c, x->a, x->a_at, x->m, x->k);
    check_factor(c, x->b, x->parts ? ix_add(c->k->ix, x->b_at, ix_dim(c->k->ix, depth, 1)) : x->b_at, x->k, x->n);
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
