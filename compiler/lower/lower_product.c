/* lower_product.c - the matrix products of a group, and the tiles that hold what they multiply.
 *
 * In:  a group with products of one row each.
 * Out: Kernel.product; for each a tile, or a sum over rows; roots that fill the tiles of factors.
 * The one idea: a factor is taken as it lies, in memory or in the tile of another product; what is
 * computed is written to a tile first, and whoever else wants it reads it there. A result lies so
 * that its vectors run along what is contiguous in a factor.
 */
#include "lower_build.h"

typedef struct Factor {
    uint32_t buffer;
    Ix at;
    int stage; /* sweeps that must be over before it is there */
} Factor;

static bool is_product(const Graph *g, Val v) { return node_at(g, v)->op == OP_MATMUL; }

/* ---- what lies in tiles ---- */

const Held *lower_held(const Lower *l, Val v)
{
    for (size_t i = 0; i < l->held.n; i++)
        if (l->held.v[i].v == v)
            return &l->held.v[i];
    return NULL;
}

static Ix held_place(Lower *l, const Held *h, const Ix *c)
{
    IxTable *t = l->k->ix;
    const Shape *s = shape_of(l->g, h->v);
    Dim inner;
    if (h->transposed)
        return ix_add(t, c[s->rank - 2], ix_scale(t, c[s->rank - 1], s->d[s->rank - 2]));
    Ix at = ix_linear(t, s, c);
    if (!h->rows)
        return at;
    if (!dim_div(lower_size_of(l, h->v), l->k->rows, &inner))
        vwn_bug(l->f->ctx, "a tile of what has not the kernel's rows");
    return ix_add(t, at, ix_times(t, ix_scale(t, ix_var(t, l->k->row), inner), -1));
}

Ex lower_held_at(Lower *l, Val v, const Ix *c, Ex guard)
{
    const Held *h = lower_held(l, v);
    if (!h || h->near)
        return 0;
    uint32_t buffer = h->buffer;
    Ix at = held_place(l, h, c);
    const IxForm *f = ix_form(l->k->ix, at);
    bool here = f->lo >= 0 && f->hi < l->k->buffer.v[buffer].elements;
    return here || is_product(l->g, v) ? kx_load(l->k, buffer, at, guard) : 0;
}

/* Does the kernel overwrite this memory? */
static bool overwrites(const Lower *l, Val v)
{
    const Group *gr = &l->f->group.v[l->group];
    for (size_t i = 0; l->same && i < gr->store.n; i++)
        if (l->same[gr->store.v[i]] == l->same[v])
            return true;
    return false;
}

static bool sums_rows(const Lower *l)
{
    const Group *gr = &l->f->group.v[l->group];
    for (size_t i = 0; i < gr->member.n; i++)
        if (fuse_rows(l->g, gr->member.v[i], l->k->rows) == ROWS_SUMMED)
            return true;
    return false;
}

/* Is it a row of a table, which the next cache has when a tile was filled with it? On tensor cores loops load it from there: then its
 * numbers are split once for all products, since nothing else takes them from the tile (gpu/tile.c). A kernel that adds up rows has few
 * blocks of a multiprocessor at one time, which would wait for that. */
static bool is_near(const Lower *l, Val v)
{
    const Node *n = node_at(l->g, v);
    return l->f->target->threads && l->f->in_16bit && !fuse_is_half(l->f, v) && n->op == OP_GATHER &&
           !overwrites(l, fuse_base(l->f, n->in[0])) && !sums_rows(l);
}

/* Roots that fill a tile with the elements of v. */
static const Held *fill(Lower *l, Val v)
{
    IxTable *t = l->k->ix;
    Dim size = lower_size_of(l, v), inner;
    Held h = {.v = v, .rows = dim_div(size, l->k->rows, &inner)};
    int stage = 0;
    if (!h.rows)
        inner = size;
    h.buffer = kernel_tile(l->k, v, ix_dim_at(t, inner));
    l->k->buffer.v[h.buffer].rounded = fuse_is_half(l->f, v) ? l->f->half : HALF_NONE;
    bool loads = fuse_loads(l->f, l->group, v);
    Insts in = lower_instances(l, v, RUN_OF_ROW, inner, ix_bit(t, l->k->row));
    for (size_t i = 0; i < in.n; i++) {
        Ix c[MAX_RANK] = {0}, at = in.v[i].at;
        Ix whole = h.rows ? ix_add(t, ix_scale(t, ix_var(t, l->k->row), inner), at) : at;
        ix_unlinear(t, shape_of(l->g, v), whole, c);
        Ex x = loads ? lower_load_at(l, v, c, 0) : lower_compute_at(l, v, c, 0);
        KRoot root = {.kind = KR_STORE, .buffer = h.buffer, .at = at, .value = x};
        root.nest = in.v[i].nest;
        vec_push(l->arena, &l->k->root, root);
        stage = kx(l->k, x)->stage > stage ? kx(l->k, x)->stage : stage;
    }
    l->k->buffer.v[h.buffer].stage = stage + 1;
    h.near = is_near(l, v);
    vec_push(l->arena, &l->held, h);
    return &l->held.v[l->held.n - 1];
}

/* ---- factors ---- */

/* What a view is a view of, as far as this kernel computes it; c: the coordinates there. */
static Val behind_views(Lower *l, Val v, Ix *c)
{
    while (op_is_view((Op)node_at(l->g, v)->op) && !fuse_loads(l->f, l->group, v) && !lower_held(l, v)) {
        Ix in[MAX_RANK] = {0};
        fuse_input_coords(l->k->ix, l->g, v, c, 0, 0, in);
        memcpy(c, in, sizeof in);
        v = node_at(l->g, v)->in[0];
    }
    return v;
}

/* Does the form grow by fixed steps with both loops, and hold nothing else but the row? Are all
 * elements there? */
static bool is_affine(const Lower *l, const Factor *of, IVar v, IVar w)
{
    const IxForm *f = ix_form(l->k->ix, of->at);
    if (f->lo < 0 || f->hi >= l->k->buffer.v[of->buffer].elements)
        return false;
    for (uint32_t i = 0; i < f->n; i++) {
        IVar x = f->t[i].var;
        if (x && x != v && x != w && x != l->k->row)
            return false;
    }
    return true;
}

static Factor held_factor(Lower *l, const Held *h, const Ix *c)
{
    return (Factor){h->buffer, held_place(l, h, c), l->k->buffer.v[h->buffer].stage};
}

/* The factor x at coordinates c, which change with the loops v and w. copy: in a tile of its own,
 * whatever it is. */
static Factor factor_at(Lower *l, Val x, const Ix *c, IVar v, IVar w, bool copy)
{
    Ix at[MAX_RANK] = {0};
    memcpy(at, c, shape_of(l->g, x)->rank * sizeof *at);
    Val u = copy ? x : behind_views(l, x, at);
    const Held *h = lower_held(l, u);
    if (h && !copy) {
        Factor f = held_factor(l, h, at);
        if (is_affine(l, &f, v, w))
            return f;
    } else if (!copy && fuse_loads(l->f, l->group, u) && !overwrites(l, u)) {
        Factor f = {lower_memory_of(l, u), ix_linear(l->k->ix, shape_of(l->g, u), at), 0};
        if (is_affine(l, &f, v, w)) {
            l->k->buffer.v[f.buffer].read = true;
            return f;
        }
    }
    h = lower_held(l, x);
    return held_factor(l, h ? h : fill(l, x), c);
}

/* ---- products ---- */

typedef struct ProductMaking {
    Val v;
    Dim M, N, K; /* K: of one row */
    IVar m, n, k;
    Ix a[MAX_RANK], b[MAX_RANK];
    Factor fa, fb;
    ProductSteps s;
} ProductMaking;

/* Loops over M, N and K; those of the same extent are different ones. */
static void open_loops(Lower *l, ProductMaking *p)
{
    IxTable *t = l->k->ix;
    p->m = ix_loop(t, p->M, 0);
    p->n = ix_loop(t, p->N, dim_eq(p->N, p->M));
    p->k = ix_loop(t, p->K, dim_eq(p->K, p->M) + dim_eq(p->K, p->N));
}

/* Where the factors are asked for. */
static void place_factors(Lower *l, ProductMaking *p, bool summed)
{
    IxTable *t = l->k->ix;
    const Node *n = node_at(l->g, p->v);
    bool ta = n->a.i & 1, tb = n->a.i >> 1 & 1;
    int ra = shape_of(l->g, product_left(l->g, p->v))->rank, rb = shape_of(l->g, n->in[1])->rank;
    Ix m = ix_var(t, p->m), c = ix_var(t, p->n), k = ix_var(t, p->k), row = ix_var(t, l->k->row);
    if (summed) {
        k = ix_add(t, ix_scale(t, row, p->K), k);
    } else {
        Dim size;
        Ix lead[MAX_RANK] = {0};
        if (!dim_mul(p->M, p->N, &size))
            vwn_bug(l->f->ctx, "the size of a product overflows");
        ix_unlinear(t, &n->shape, ix_scale(t, row, size), lead);
        memcpy(p->a, lead, sizeof lead);
        if (rb > 2)
            memcpy(p->b, lead, sizeof lead);
    }
    p->a[ra - (ta ? 1 : 2)] = m;
    p->a[ra - (ta ? 2 : 1)] = k;
    p->b[rb - (tb ? 1 : 2)] = k;
    p->b[rb - (tb ? 2 : 1)] = c;
}

static void find_steps(const Lower *l, ProductMaking *p)
{
    KProduct x = {.m = p->m, .n = p->n, .k = p->k, .a_at = p->fa.at, .b_at = p->fb.at};
    if (!product_steps(l->k, &x, &p->s))
        vwn_bug(l->f->ctx, "a factor without steps");
}

/* Do all who want v, in this kernel, want it transposed? */
static bool wanted_transposed(const Lower *l, Val v)
{
    const Group *gr = &l->f->group.v[l->group];
    bool any = false;
    for (Val u = v + 1; u <= gr->last; u++) {
        const Node *n = node_at(l->g, u);
        for (size_t k = 0; k < n->n_in; k++) {
            if (n->in[k] != v)
                continue;
            int r = n->shape.rank;
            if (n->op != OP_PERMUTE || n->a.data[r - 1] != r - 2 || n->a.data[r - 2] != r - 1)
                return false;
            any = true;
        }
    }
    return any;
}

/* Vectors run along N or, transposed, along M: where a factor is contiguous, whole vectors first. */
static bool choose_layout(Lower *l, ProductMaking *p)
{
    const Node *n = node_at(l->g, p->v);
    p->fa = factor_at(l, product_left(l->g, p->v), p->a, p->m, p->k, false);
    p->fb = factor_at(l, n->in[1], p->b, p->k, p->n, false);
    find_steps(l, p);
    bool whole_m = p->M.n % VECTOR_LANES == 0, whole_n = p->N.n % VECTOR_LANES == 0;
    if (p->s.bn == 1 && (whole_n || !whole_m || p->s.am != 1))
        return false;
    if (p->s.am == 1)
        return true;
    if (p->s.bn != 1 && p->s.bk == 1 && p->s.ak == 1 && n->a.made == PRODUCT_OF_ROW && wanted_transposed(l, p->v))
        return true;
    if (p->s.bn != 1 && p->s.bk != 1) {
        p->fb = factor_at(l, n->in[1], p->b, p->k, p->n, true);
        find_steps(l, p);
    }
    return false;
}

static Ix result_place(Lower *l, const ProductMaking *p, bool transposed)
{
    IxTable *t = l->k->ix;
    Ix m = ix_var(t, p->m), n = ix_var(t, p->n);
    return transposed ? ix_add(t, ix_scale(t, n, p->M), m) : ix_add(t, ix_scale(t, m, p->N), n);
}

static void add_product(Lower *l, Val v)
{
    const Node *n = node_at(l->g, v);
    const Shape *a = shape_of(l->g, product_left(l->g, v));
    bool summed = fuse_rows(l->g, v, l->k->rows) == ROWS_SUMMED;
    ProductMaking p = {.v = v, .M = n->shape.d[n->shape.rank - 2], .N = n->shape.d[n->shape.rank - 1]};
    p.K = a->d[a->rank - (n->a.i & 1 ? 2 : 1)];
    if (summed && !dim_div(p.K, l->k->rows, &p.K))
        vwn_bug(l->f->ctx, "a product that is not summed over the kernel's rows");
    open_loops(l, &p);
    place_factors(l, &p, summed);
    bool transposed = choose_layout(l, &p);
    int64_t size = p.M.n * p.N.n;
    KProduct x = {.m = p.m,
                  .n = p.n,
                  .k = p.k,
                  .a = p.fa.buffer,
                  .b = p.fb.buffer,
                  .a_at = p.fa.at,
                  .b_at = p.fb.at,
                  .c_at = result_place(l, &p, transposed),
                  .add = summed,
                  .split = n->a.made == PRODUCT_OF_PARTS,
                  .stage = p.fa.stage > p.fb.stage ? p.fa.stage : p.fb.stage};
    if (summed) {
        Sink sink = {.v = v,
                     .op = OP_SUM,
                     .size = size,
                     .n_factor = 2,
                     .extent = {p.M.n, p.N.n},
                     .stride = {transposed ? 1 : p.N.n, transposed ? p.M.n : 1}};
        x.c = sink.buffer = kernel_buffer(l->k, v, 0, DT_REAL, size);
        l->k->buffer.v[x.c].written = true;
        l->k->buffer.v[x.c].op = OP_SUM;
        vec_push(l->arena, &l->sink, sink);
    } else {
        x.c = kernel_tile(l->k, v, size);
        l->k->buffer.v[x.c].stage = x.stage;
        vec_push(l->arena, &l->held, ((Held){.v = v, .buffer = x.c, .rows = true, .transposed = transposed}));
    }
    vec_push(l->arena, &l->k->product, x);
}

/* What is computed here, multiplied, and made of the kernel's rows. */
static void mark_factors(Lower *l, Val v, bool *mark)
{
    for (int k = 0; k < 2; k++) {
        Ix c[MAX_RANK] = {0};
        Dim inner;
        Val u = behind_views(l, k ? node_at(l->g, v)->in[1] : product_left(l->g, v), c);
        if (!fuse_loads(l->f, l->group, u) && !is_product(l->g, u) && dim_div(lower_size_of(l, u), l->k->rows, &inner))
            mark[u] = true;
    }
}

bool lower_has_products(const Lower *l)
{
    const Group *gr = &l->f->group.v[l->group];
    for (size_t i = 0; i < gr->member.n; i++)
        if (is_product(l->g, gr->member.v[i]))
            return true;
    return false;
}

void lower_products(Lower *l)
{
    const Group *gr = &l->f->group.v[l->group];
    if (!lower_has_products(l))
        return;
    bool *mark = NEW_ARRAY(l->arena, bool, l->g->node.n);
    for (size_t i = 0; i < gr->member.n; i++) {
        Val v = gr->member.v[i];
        if (is_product(l->g, v)) {
            mark[v] = true;
            mark_factors(l, v, mark);
        }
    }
    for (Val v = 1; v <= gr->last; v++)
        if (mark[v] && is_product(l->g, v))
            add_product(l, v);
        else if (mark[v])
            fill(l, v);
}
