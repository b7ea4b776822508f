/* lower_kernel.c - see lower_kernel.h.
 *
 * The one idea: a value is asked for at coordinates. Views only change the coordinates,
 * elementwise operators ask their inputs at the same ones, a load turns them into a place in
 * memory. When an answer needs a quotient or a test of a loop variable, that loop is split in two
 * and all is asked again.
 */
#include "lower_build.h"

typedef struct Factors {
    int n;
    Dim d[FACTORS_MAX], below[FACTORS_MAX]; /* elements of one round: the product of those behind it */
} Factors;

/* ---- axes ---- */

static uint32_t site_of(Lower *l, Val v, int run)
{
    for (size_t i = 0; i < l->site.n; i++)
        if (l->site.v[i].v == v && l->site.v[i].run == run)
            return (uint32_t)i;
    vec_push(l->splits, &l->site, (LowerSite){.v = v, .run = run});
    return (uint32_t)l->site.n - 1;
}

static void factors_of(const Lower *l, uint32_t site, Dim extent, Dim below, Factors *out)
{
    const LowerSite *s = &l->site.v[site];
    for (size_t i = 0; i < s->split.n; i++) {
        const LoopSplit *x = &s->split.v[i];
        Dim outer, round;
        if (dim_eq(x->extent, extent) && dim_eq(x->below, below) && dim_div(extent, x->inner, &outer) &&
            !dim_eq(outer, DIM(1)) && dim_mul(x->inner, below, &round) && out->n + 2 < FACTORS_MAX) {
            factors_of(l, site, outer, round, out);
            factors_of(l, site, x->inner, below, out);
            return;
        }
    }
    if (out->n == FACTORS_MAX)
        vwn_bug(l->f->ctx, "an axis has too many factors");
    out->d[out->n] = extent;
    out->below[out->n++] = below;
}

/* The largest factor of v's that may be unrolled. On a processor sums of a long row by a thin matrix are: they read the row once. */
static int64_t factor_max(const Lower *l, Val v)
{
    const Node *n = node_at(l->g, v);
    int64_t thin = l->f->target->threads ? 0 : l->f->target->thin_product_max;
    bool rows = n->shape.rank > 0 && !dim_static(n->shape.d[0]);
    if (thin <= LITERAL_MAX || n->op != OP_SUM || !rows || node_at(l->g, n->in[0])->op != OP_MUL || !l->f->elements[v])
        return LITERAL_MAX;
    int64_t row = l->f->elements[n->in[0]] / l->f->elements[v];
    return row >= l->f->target->tuned->thin_row * thin ? thin : LITERAL_MAX;
}

/* Small static factors are unrolled, the last ones first, as long as the text stays short. */
static void unrolled(Lower *l, int64_t most, const Factors *f, bool *literal)
{
    int64_t budget = l->budget, elements = 1;
    for (int i = f->n - 1; i >= 0; i--) {
        literal[i] = dim_static(f->d[i]) && f->d[i].n <= most && f->d[i].n <= (l->table ? 1 : budget);
        if (literal[i] && f->d[i].n > 0) {
            budget /= f->d[i].n;
            elements *= f->d[i].n;
        }
    }
    if (elements > l->k->unrolled)
        l->k->unrolled = elements;
}

static int free_ordinal(Lower *l, uint32_t site, int factor, Dim extent, uint64_t used)
{
    int ordinal = 0;
    if (l->searching)
        return (int)site * SITE_LOOPS + factor;
    while (used & ix_bit(l->k->ix, ix_loop(l->k->ix, extent, ordinal)) && !l->k->ix->overfull)
        ordinal++;
    return ordinal;
}

static IVar loop_of(Lower *l, uint32_t site, int factor, Dim extent, Dim below, uint64_t used)
{
    IVar v = ix_loop(l->k->ix, extent, free_ordinal(l, site, factor, extent, used));
    while (l->owner.n <= v)
        vec_push(l->arena, &l->owner, (LoopOwner){0});
    LoopOwner *owner = &l->owner.v[v];
    bool same = owner->site == site + 1 && dim_eq(owner->below, below);
    *owner = (LoopOwner){owner->site == 0 || same ? site + 1 : SEVERAL_SITES, below};
    return v;
}

static uint64_t nest_mask(const IxTable *t, const KNest *n)
{
    uint64_t m = 0;
    for (uint32_t i = 0; i < n->n; i++)
        m |= ix_bit(t, n->var[i]);
    return m;
}

/* Where the segment ends that a loop of a site has from here on. */
static int64_t segment_end(const Lower *l, uint32_t site, Dim d, Dim below, int64_t from)
{
    int64_t to = ix_dim_at(l->k->ix, d);
    const LowerSite *of = &l->site.v[site];
    for (size_t i = 0; i < of->segment.n; i++) {
        const Segment *s = &of->segment.v[i];
        if (dim_eq(s->extent, d) && dim_eq(s->below, below) && s->at > from && s->at < to)
            to = s->at;
    }
    return to;
}

typedef struct ValueWalk {
    Lower *l;
    uint32_t site;
    const Factors *f;
    bool literal[FACTORS_MAX];
    uint64_t used;
    Insts *out;
} ValueWalk;

static void walk_factor(ValueWalk *w, int i, Inst so_far);

static void walk_loop(ValueWalk *w, int i, Inst so_far, Dim d)
{
    Lower *l = w->l;
    IxTable *t = l->k->ix;
    int64_t from = 0, extent = ix_dim_at(t, d);
    while (from < extent) {
        int64_t to = segment_end(l, w->site, d, w->f->below[i], from);
        Dim piece = from == 0 && to == extent ? d : DIM(to - from);
        if (!dim_literal(d) && dim_literal(piece)) /* half a head, of whatever size, is one text */
            l->arguments |= 1u << piece.n;
        uint64_t used = l->searching ? 0 : w->used | nest_mask(l->k->ix, &so_far.nest);
        IVar v = loop_of(l, w->site, i, piece, w->f->below[i], used);
        Inst next = so_far;
        Ix here = ix_add(t, ix_var(t, v), ix_dim(t, DIM(from), 1)); /* written like the place at which it is split */
        next.at = ix_add(t, ix_scale(t, so_far.at, d), here);
        if (next.nest.n == NEST_MAX)
            vwn_bug(l->f->ctx, "a kernel nests too many loops");
        next.nest.var[next.nest.n++] = v;
        walk_factor(w, i + 1, next);
        from = to;
    }
}

static void walk_factor(ValueWalk *w, int i, Inst so_far)
{
    IxTable *t = w->l->k->ix;
    if (i == w->f->n) {
        vec_push(w->l->arena, w->out, so_far);
        return;
    }
    Dim d = w->f->d[i];
    if (!w->literal[i]) {
        walk_loop(w, i, so_far, d);
        return;
    }
    for (int64_t x = 0; x < d.n; x++) {
        Inst next = so_far;
        next.at = ix_add(t, ix_scale(t, so_far.at, d), ix_const(t, x));
        walk_factor(w, i + 1, next);
    }
}

Insts lower_instances(Lower *l, Val of, int run, Dim extent, uint64_t used)
{
    uint32_t site = site_of(l, of, run);
    Factors f = {0};
    Insts out = {0};
    factors_of(l, site, extent, DIM(1), &f);
    ValueWalk w = {.l = l, .site = site, .f = &f, .used = used, .out = &out};
    unrolled(l, factor_max(l, of), &f, w.literal);
    walk_factor(&w, 0, (Inst){0});
    return out;
}

/* ---- values at coordinates ---- */

/* Is the kernel too long already, or has it too many loops? */
bool lower_is_beyond(const Lower *l) { return l->k->ix->overfull || (l->most && l->k->ex.n > l->most); }

KType lower_type_of(const Lower *l, Val v) { return node_at(l->g, v)->dtype == DT_INT ? KT_INT : KT_REAL; }

static uint64_t deps_of(const Lower *l, const Ix *c, int n)
{
    uint64_t deps = 0;
    for (int i = 0; i < n; i++)
        deps |= ix_form(l->k->ix, c[i])->deps;
    return deps;
}

Dim lower_size_of(const Lower *l, Val v)
{
    Dim n;
    if (!shape_size(shape_of(l->g, v), &n))
        vwn_bug(l->f->ctx, "the size of a tensor overflows");
    return n;
}

uint32_t lower_memory_of(Lower *l, Val v)
{
    Val row = l->f->row_of[v], at = row ? row : l->same ? l->same[v] : v;
    uint32_t b = kernel_buffer(l->k, at, -1, (DType)node_at(l->g, v)->dtype,
                               ix_dim_at(l->k->ix, lower_size_of(l, row ? row : v)));
    l->k->buffer.v[b].half = l->f->in_16bit && l->f->in_16bit[v] ? l->f->half : HALF_NONE;
    return b;
}

Ex lower_load_at(Lower *l, Val v, const Ix *c, Ex guard)
{
    uint32_t b = lower_memory_of(l, v);
    return kx_load(l->k, b, ix_linear(l->k->ix, fuse_layout(l->f, v), c), guard);
}

/* ---- reductions ---- */

typedef struct Partial {
    KNest nest; /* loops that the sum runs over */
    Ex sum;
} Partial;

typedef struct Sums {
    Op op;
    Val v, u;          /* the reduction and its input */
    const Shape *view; /* the shape the coordinates below are in */
    uint32_t reduced;  /* axes of it */
    Ix c[MAX_RANK + 1];
    Ex guard;
    uint64_t used;
    VEC(Partial) part;
} Sums;

static void sum_leaf(Lower *l, Sums *s, const KNest *nest)
{
    Ix c[MAX_RANK];
    ix_unlinear(l->k->ix, shape_of(l->g, s->u), ix_linear(l->k->ix, s->view, s->c), c);
    Ex x = lower_value_at(l, s->u, c, s->guard);
    for (size_t i = 0; i < s->part.n; i++)
        if (s->part.v[i].nest.n == nest->n &&
            memcmp(s->part.v[i].nest.var, nest->var, nest->n * sizeof nest->var[0]) == 0) {
            s->part.v[i].sum = kx_fold(l->k, s->op, s->part.v[i].sum, x);
            return;
        }
    vec_push(l->arena, &s->part, (Partial){*nest, x});
}

/* Walks through the reduced axes from `axis` on, adjacent ones as one. */
static void sum_axes(Lower *l, Sums *s, int axis, const KNest *nest)
{
    while (axis < s->view->rank && !(s->reduced >> axis & 1))
        axis++;
    if (axis == s->view->rank) {
        sum_leaf(l, s, nest);
        return;
    }
    Shape run = {0};
    int end = axis;
    Dim extent = DIM(1);
    for (; end < s->view->rank && s->reduced >> end & 1; end++) {
        run.d[run.rank++] = s->view->d[end];
        if (!dim_mul(extent, s->view->d[end], &extent))
            vwn_bug(l->f->ctx, "the size of a reduction overflows");
    }
    Insts in = lower_instances(l, s->v, axis, extent, s->used | nest_mask(l->k->ix, nest));
    for (size_t i = 0; i < in.n; i++) {
        KNest next = *nest;
        for (uint32_t j = 0; j < in.v[i].nest.n; j++) {
            if (next.n == NEST_MAX)
                vwn_bug(l->f->ctx, "a kernel nests too many loops");
            next.var[next.n++] = in.v[i].nest.var[j];
        }
        ix_unlinear(l->k->ix, &run, in.v[i].at, s->c + axis);
        sum_axes(l, s, end, &next);
    }
}

static Ex sum_result(Lower *l, Sums *s)
{
    Ex total = 0;
    s->used = deps_of(l, s->c, s->view->rank) | (s->guard ? kx(l->k, s->guard)->deps : 0);
    sum_axes(l, s, 0, &(KNest){0});
    for (size_t i = 0; i < s->part.n; i++)
        total = kx_fold(l->k, s->op, total, kx_reduce(l->k, s->op, s->part.v[i].sum, &s->part.v[i].nest));
    double neutral = s->op == OP_SUM ? 0 : -1.0 / 0.0;
    return total ? total : kx_number(l->k, KT_REAL, neutral, 0);
}

static Ex reduce_at(Lower *l, Val v, const Ix *c, Ex guard)
{
    const Node *n = node_at(l->g, v);
    Sums s = {
        .op = (Op)n->op, .v = v, .u = n->in[0], .view = shape_of(l->g, n->in[0]), .reduced = n->a.axes, .guard = guard};
    for (int i = 0; i < s.view->rank; i++)
        s.c[i] = s.reduced >> i & 1 ? 0 : c[i];
    return sum_result(l, &s);
}

/* ---- by index ---- */

/* The element of x whose coordinate on `axis` is what `index` holds; 0 outside. */
static Ex indexed_at(Lower *l, Val x, int axis, Ix *c, Ex index, Ex guard)
{
    IxTable *t = l->k->ix;
    Dim extent = shape_of(l->g, x)->d[axis];
    double fixed;
    Ix at;
    if (kx_is_number(l->k, index, &fixed))
        at = ix_const(t, (int64_t)fixed);
    else
        at = ix_var(t, ix_value(t, index, extent, kx(l->k, index)->deps));
    Ex inside = kx_inside(l->k, at, extent);
    c[axis] = at;
    Ex value = lower_value_at(l, x, c, kx_and(l->k, guard, inside));
    return kx_select(l->k, inside, value, kx_number(l->k, lower_type_of(l, x), 0, 0));
}

static Ex gather_at(Lower *l, const Node *n, const Ix *c, Ex guard)
{
    int ri = shape_of(l->g, n->in[1])->rank, rt = shape_of(l->g, n->in[0])->rank;
    Ix at[MAX_RANK] = {0};
    for (int i = 1; i < rt; i++)
        at[i] = c[ri + i - 1];
    Ex index = lower_value_at(l, n->in[1], c, guard);
    return indexed_at(l, n->in[0], 0, at, index, guard);
}

static Ex pick_at(Lower *l, const Node *n, const Ix *c, Ex guard)
{
    int last = n->shape.rank - 1;
    Ix at[MAX_RANK];
    memcpy(at, c, sizeof at);
    Ex index = lower_value_at(l, n->in[1], c, guard);
    return indexed_at(l, n->in[0], last, at, index, guard);
}

/* sum over k of (index[k] == c ? dy[k] : 0) */
static Ex place_at(Lower *l, const Node *n, const Ix *c, Ex guard)
{
    int last = n->shape.rank - 1;
    Ix at[MAX_RANK];
    memcpy(at, c, sizeof at);
    Insts in = lower_instances(l, n->in[0], 100, shape_of(l->g, n->in[0])->d[last], deps_of(l, c, n->shape.rank));
    Ex total = 0, zero = kx_number(l->k, KT_REAL, 0, 0);
    for (size_t i = 0; i < in.n; i++) {
        at[last] = in.v[i].at;
        Ex eq[2] = {lower_value_at(l, n->in[1], at, guard), kx_index(l->k, c[last])};
        Ex hit = kx_op(l->k, OP_EQ, KT_REAL, eq, 2, 0);
        Ex where[3] = {hit, lower_value_at(l, n->in[0], at, guard), zero};
        Ex x = kx_op(l->k, OP_WHERE, KT_REAL, where, 3, 0);
        total = kx_fold(l->k, OP_SUM, total, kx_reduce(l->k, OP_SUM, x, &in.v[i].nest));
    }
    return total ? total : zero;
}

static Ex leaf_at(Lower *l, Val v, const Ix *c)
{
    const Node *n = node_at(l->g, v);
    switch ((Op)n->op) {
    case OP_FILL: return kx_number(l->k, lower_type_of(l, v), n->a.x, v);
    case OP_HOST: return kx_scalar(l->k, (int32_t)n->a.i, 0, v);
    case OP_DIM: return kx_scalar(l->k, -1, (double)ix_dim_at(l->k->ix, n->a.dim), v);
    case OP_IOTA: return kx_index(l->k, c[n->a.i]);
    default: return kx_rand(l->k, (Op)n->op, n->a.site, draws_of_sequence(l->g, n), ix_linear(l->k->ix, &n->shape, c));
    }
}

Ex lower_compute_at(Lower *l, Val v, const Ix *c, Ex guard)
{
    const Node *n = node_at(l->g, v);
    Ix at[MAX_RANK];
    Ex in[3];
    if (fuse_is_view(l->f, v) && n->op == OP_ROUND_TO)
        return lower_value_at(l, n->in[0], c, guard);
    switch (op_info((Op)n->op)->class) {
    case CLASS_LEAF: return leaf_at(l, v, c);
    case CLASS_REDUCE: return reduce_at(l, v, c, guard);
    case CLASS_VIEW: fuse_input_coords(l->k->ix, l->g, v, c, 0, 0, at); return lower_value_at(l, n->in[0], at, guard);
    case CLASS_UNARY:
    case CLASS_BINARY:
    case CLASS_TERNARY:
        for (int i = 0; i < n->n_in; i++)
            in[i] = lower_value_at(l, n->in[i], c, guard);
        return kx_op(l->k, (Op)n->op, lower_type_of(l, v), in, n->n_in, n->a.i);
    default: break;
    }
    switch ((Op)n->op) {
    case OP_CONCAT: return lower_concat_at(l, n, c, guard);
    case OP_PAD:
    case OP_SHIFT: return lower_moved_at(l, v, c, guard);
    case OP_ROLL: fuse_input_coords(l->k->ix, l->g, v, c, 0, 0, at); return lower_value_at(l, n->in[0], at, guard);
    case OP_GATHER: return gather_at(l, n, c, guard);
    case OP_PICK: return pick_at(l, n, c, guard);
    case OP_PLACE: return place_at(l, n, c, guard);
    default: vwn_bug(l->f->ctx, "%s is not computed inside a kernel", op_info((Op)n->op)->name);
    }
}

/* Of a guard what keeps coordinates inside that change with one of `deps`. */
static Ex guard_of(Lower *l, Ex guard, uint64_t deps)
{
    const KEx *g = kx(l->k, guard);
    if (g->kind == KX_AND) {
        Ex a = g->in[0], b = g->in[1];
        return kx_and(l->k, guard_of(l, a, deps), guard_of(l, b, deps));
    }
    return g->deps && !(g->deps & deps) ? 0 : guard;
}

/* A test is needed only where a coordinate may leave the tensor, and only of what that coordinate changes with: a sum
 * over the axis that a test is of would be computed again for each of its elements. */
static Ex guard_at(Lower *l, Val v, const Ix *c, Ex guard)
{
    const Shape *s = shape_of(l->g, v);
    bool inside = true;
    for (int i = 0; i < s->rank; i++) {
        const IxForm *f = ix_form(l->k->ix, c[i]);
        if (ix_reads_value(l->k->ix, c[i]))
            return guard;
        inside = inside && f->lo >= 0 && f->hi < ix_dim_at(l->k->ix, s->d[i]);
    }
    return inside || !guard ? 0 : guard_of(l, guard, deps_of(l, c, s->rank));
}

static uint64_t memo_hash(Val v, Ex guard, const Ix *c, int rank)
{
    return hash_bytes(c, (size_t)rank * sizeof *c, (uint64_t)v << 32 | guard);
}

static void memo_put(Lower *l, const Memo *m)
{
    if (l->memo.n * 2 >= l->slots) {
        l->slots = l->slots ? l->slots * 2 : 256;
        l->slot = NEW_ARRAY(l->arena, uint32_t, l->slots);
        for (size_t i = 0; i < l->memo.n; i++) {
            const Memo *x = &l->memo.v[i];
            size_t at = x->hash & (l->slots - 1);
            while (l->slot[at])
                at = (at + 1) & (l->slots - 1);
            l->slot[at] = (uint32_t)i + 1;
        }
    }
    size_t at = m->hash & (l->slots - 1);
    while (l->slot[at])
        at = (at + 1) & (l->slots - 1);
    vec_push(l->arena, &l->memo, *m);
    l->slot[at] = (uint32_t)l->memo.n;
}

static Ex memo_get(const Lower *l, const Memo *m)
{
    if (!l->slots)
        return 0;
    size_t at = m->hash & (l->slots - 1);
    for (; l->slot[at]; at = (at + 1) & (l->slots - 1)) {
        const Memo *x = &l->memo.v[l->slot[at] - 1];
        if (x->hash == m->hash && x->v == m->v && x->guard == m->guard && memcmp(x->c, m->c, sizeof x->c) == 0)
            return x->value;
    }
    return 0;
}

Ex lower_value_at(Lower *l, Val v, const Ix *c, Ex guard)
{
    if (lower_is_beyond(l)) /* it is dropped */
        return kx_number(l->k, lower_type_of(l, v), 0, v);
    Memo m = {.v = v, .guard = guard_at(l, v, c, guard)};
    Ex held = lower_held_at(l, v, c, m.guard);
    if (held)
        return held;
    int rank = shape_of(l->g, v)->rank;
    memcpy(m.c, c, (size_t)rank * sizeof *c);
    m.hash = memo_hash(v, m.guard, c, rank);
    m.value = memo_get(l, &m);
    if (m.value)
        return m.value;
    if (++l->depth > 4000)
        vwn_bug(l->f->ctx, "a kernel is too deep");
    m.value = fuse_loads(l->f, l->group, v) ? lower_load_at(l, v, m.c, m.guard) : lower_compute_at(l, v, m.c, m.guard);
    l->depth--;
    memo_put(l, &m);
    return m.value;
}

/* ---- roots ---- */

static Dim inner_size(Lower *l, Val v)
{
    Dim inner;
    if (!dim_div(lower_size_of(l, v), l->k->rows, &inner))
        vwn_bug(l->f->ctx, "%%%u does not consist of the kernel's rows", (unsigned)v);
    return inner;
}

/* The store of some types rounds. */
static Ex unrounded(const Kernel *k, uint32_t buffer, Ex e)
{
    const KEx *x = kx(k, e);
    bool once = x->kind == KX_OP && x->op == OP_ROUND_TO && x->i == (int64_t)k->buffer.v[buffer].half &&
                half_info(k->buffer.v[buffer].half)->store_rounds;
    return once ? x->in[0] : e;
}

static void add_store(Lower *l, Val v)
{
    IxTable *t = l->k->ix;
    const Node *n = node_at(l->g, v);
    Dim inner = inner_size(l, v);
    uint64_t row = ix_bit(l->k->ix, l->k->row);
    const Held *held = lower_held(l, v);
    bool again = held && node_at(l->g, v)->op != OP_MATMUL; /* shares the sweep of its tile */
    bool in_row = l->f->row_of[v] != 0;                     /* the rest of which is copied */
    Insts in = lower_instances(l, v, RUN_OF_ROW, inner, row);
    uint32_t b = lower_memory_of(l, v);
    for (size_t i = 0; i < in.n; i++) {
        Ix c[MAX_RANK] = {0};
        Ix at = ix_add(t, ix_scale(t, ix_var(t, l->k->row), inner), in.v[i].at);
        ix_unlinear(t, &n->shape, at, c);
        Ex x = again ? lower_compute_at(l, v, c, 0) : lower_value_at(l, v, c, 0);
        at = in_row ? ix_linear(t, fuse_layout(l->f, v), c) : at;
        KRoot root = {.kind = KR_STORE, .buffer = b, .at = at, .value = unrounded(l->k, b, x)};
        root.nest = in.v[i].nest;
        vec_push(l->arena, &l->k->root, root);
    }
    l->k->buffer.v[b].written = true;
    l->k->buffer.v[b].partly = in_row;
}

/* The input of a sum over rows as [rows, ..]: an axis that the rows end in is split there. */
static void view_rows(Lower *l, Val v, Shape *view, uint32_t *reduced)
{
    const Node *n = node_at(l->g, v);
    const Shape *s = shape_of(l->g, n->in[0]);
    Dim rest = l->k->rows;
    *view = (Shape){.rank = 1, .d = {l->k->rows}};
    *reduced = 0;
    for (int i = 0; i < s->rank; i++) {
        Dim d = s->d[i], q;
        if (!dim_eq(rest, DIM(1))) {
            if (dim_div(rest, d, &q)) {
                rest = q;
                continue;
            }
            if (!dim_div(d, rest, &d))
                vwn_bug(l->f->ctx, "a sum over rows that are not those of the kernel");
            rest = DIM(1);
        }
        if (view->rank == MAX_RANK)
            vwn_bug(l->f->ctx, "a sum over rows has too many axes");
        *reduced |= (n->a.axes >> i & 1) << view->rank;
        view->d[view->rank++] = d;
    }
}

/* Where the elements of a partial sum lie: unrolled factors outside, loops inside, so that the
 * innermost loop writes consecutive elements. */
static void part_layout(Lower *l, Sink *s, const Factors *f, const bool *literal)
{
    int64_t stride = 1;
    s->n_factor = f->n;
    for (int pass = 0; pass < 2; pass++)
        for (int i = f->n - 1; i >= 0; i--)
            if (literal[i] == (pass == 1)) {
                s->extent[i] = ix_dim_at(l->k->ix, f->d[i]);
                s->stride[i] = stride;
                stride *= s->extent[i];
            }
    s->size = stride;
}

typedef struct SinkWalk {
    Lower *l;
    Sums sums;
    Sink *sink;
    const Factors *f;
    const int *axis;      /* of the view, of each factor */
    const uint32_t *site; /* of each factor */
    const int *place;     /* of each factor among those of its site */
    const bool *literal;
    Ix part_at;
    Dim part_stride[FACTORS_MAX];
} SinkWalk;

static void sink_factor(SinkWalk *w, int i, Ix at, const KNest *nest)
{
    Lower *l = w->l;
    IxTable *t = l->k->ix;
    if (i == w->f->n) {
        Sums s = w->sums;
        s.part.n = s.part.cap = 0;
        s.part.v = NULL;
        Ex x = sum_result(l, &s);
        KRoot root = {
            .kind = KR_SINK, .buffer = w->sink->buffer, .at = at, .value = x, .op = w->sink->op, .nest = *nest};
        vec_push(l->arena, &l->k->root, root);
        return;
    }
    Dim d = w->f->d[i];
    int axis = w->axis[i];
    bool first = i == 0 || w->axis[i - 1] != axis;
    Ix before = first ? 0 : w->sums.c[axis];
    int64_t count = ix_dim_at(t, d);
    uint64_t used = ix_bit(l->k->ix, l->k->row) | nest_mask(l->k->ix, nest);
    for (int64_t x = 0, to; x < count; x = to) {
        KNest next = *nest;
        Ix c = ix_const(t, x);
        to = x + 1;
        if (!w->literal[i]) {
            to = l->f->target->threads ? segment_end(l, w->site[i], d, w->f->below[i], x) : count;
            Dim piece = x == 0 && to == count ? d : DIM(to - x);
            IVar v = loop_of(l, w->site[i], w->place[i], piece, w->f->below[i], used);
            if (next.n == NEST_MAX)
                vwn_bug(l->f->ctx, "a kernel nests too many loops");
            next.var[next.n++] = v;
            c = ix_add(t, ix_var(t, v), ix_dim(t, DIM(x), 1)); /* written like the place at which it is split */
        }
        w->sums.c[axis] = ix_add(t, ix_scale(t, before, d), c);
        sink_factor(w, i + 1, ix_add(t, at, ix_scale(t, c, w->part_stride[i])), &next);
    }
    w->sums.c[axis] = before;
}

/* Adjacent kept axes of the view become one, so that their loop is split only where
 * needed. */
static void merge_kept(Shape *view, uint32_t *reduced)
{
    Shape out = {.rank = 1, .d = {view->d[0]}};
    uint32_t flags = 0;
    for (int i = 1; i < view->rank; i++) {
        bool r = *reduced >> i & 1, last = flags >> (out.rank - 1) & 1;
        if (out.rank > 1 && r == last && dim_mul(out.d[out.rank - 1], view->d[i], &out.d[out.rank - 1]))
            continue;
        flags |= (uint32_t)r << out.rank;
        out.d[out.rank++] = view->d[i];
    }
    *view = out;
    *reduced = flags;
}

static void add_sink(Lower *l, Val v)
{
    const Node *n = node_at(l->g, v);
    IxTable *t = l->k->ix;
    Shape view;
    uint32_t reduced;
    view_rows(l, v, &view, &reduced);
    merge_kept(&view, &reduced);
    Factors f = {0};
    int axis[FACTORS_MAX] = {0}, place[FACTORS_MAX] = {0};
    uint32_t site[FACTORS_MAX] = {0};
    bool literal[FACTORS_MAX];
    for (int i = 1; i < view.rank; i++)
        if (!(reduced >> i & 1)) {
            int from = f.n;
            uint32_t here = site_of(l, v, 300 + i);
            factors_of(l, here, view.d[i], DIM(1), &f);
            for (int j = from; j < f.n; j++) {
                axis[j] = i;
                site[j] = here;
                place[j] = j - from;
            }
        }
    unrolled(l, LITERAL_MAX, &f, literal);
    Sink sink = {.v = v, .op = (Op)n->op};
    part_layout(l, &sink, &f, literal);
    sink.buffer = kernel_buffer(l->k, v, 0, DT_REAL, sink.size);
    l->k->buffer.v[sink.buffer].op = sink.op;
    l->k->buffer.v[sink.buffer].written = true;
    SinkWalk w = {.l = l, .sink = &sink, .f = &f, .axis = axis, .literal = literal};
    w.site = site;
    w.place = place;
    w.sums = (Sums){.op = sink.op, .v = v, .u = n->in[0], .view = &view, .reduced = reduced};
    w.sums.c[0] = ix_var(t, l->k->row);
    Dim stride = DIM(1);
    for (int pass = 0; pass < 2; pass++)
        for (int i = f.n - 1; i >= 0; i--)
            if (literal[i] == (pass == 1)) {
                w.part_stride[i] = stride;
                if (!dim_mul(stride, f.d[i], &stride))
                    vwn_bug(l->f->ctx, "a sum over rows overflows");
            }
    sink_factor(&w, 0, 0, &(KNest){0});
    vec_push(l->arena, &l->sink, sink);
}

/* ---- a group ---- */

void lower_build(Lower *l, Dim rows)
{
    const Group *gr = &l->f->group.v[l->group];
    l->k = NEW(l->arena, Kernel);
    kernel_init(l->k, l->f->ctx, l->arena, l->f->B, l->f->T, rows);
    l->k->target = l->f->target;
    l->k->ix->loose = l->searching;
    l->k->ix->arguments = l->arguments;
    memset(&l->memo, 0, sizeof l->memo); /* what an earlier kernel had has gone with it */
    memset(&l->sink, 0, sizeof l->sink);
    memset(&l->held, 0, sizeof l->held);
    memset(&l->owner, 0, sizeof l->owner);
    l->slot = NULL;
    l->slots = 0;
    lower_products(l);
    for (size_t i = 0; i < gr->store.n; i++) {
        Val v = gr->store.v[i];
        if (fuse_empty(l->f, v))
            continue;
        if (fuse_rows(l->g, v, rows) != ROWS_SUMMED)
            add_store(l, v);
        else if (node_at(l->g, v)->op != OP_MATMUL) /* its sink is the product's */
            add_sink(l, v);
    }
}
