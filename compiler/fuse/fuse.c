/* fuse.c - see fuse.h: nodes into groups.
 *
 * The one idea: nodes are taken in order. Each joins the group of its producers when both can run over the
 * same rows, row by row, and no group would have to wait for itself; groups that then have a
 * common member become one.
 */
#include "fuse.h"
#include "compiler/pass/recompute.h"

#include <stdlib.h>

enum {
    WEIGHT_MAX = 6000,
    TREE_MAX = 256,  /* nodes on the ways from an element that is not stored to what is, counted along every way */
    DEPTH_MAX = 1000 /* values of a group that are computed one from the other */
};

/* ---- what a node is ---- */

bool fuse_is_compute(const Graph *g, Val v)
{
    const Node *n = node_at(g, v);
    switch (op_info((Op)n->op)->class) {
    case CLASS_UNARY:
    case CLASS_BINARY:
    case CLASS_TERNARY: return true;
    case CLASS_REDUCE: return n->op != OP_CUMSUM;
    default: return n->op == OP_RAND || n->op == OP_RANDN || product_is_of_row(g, v);
    }
}

static int by_value(const void *a, const void *b)
{
    Val x = *(const Val *)a, y = *(const Val *)b;
    return (x > y) - (x < y);
}

void fuse_sort(Val *v, size_t n)
{
    size_t sorted = 1;
    while (sorted < n && v[sorted - 1] <= v[sorted])
        sorted++;
    if (sorted < n)
        qsort(v, n, sizeof *v, by_value);
}

bool fuse_empty(const Fusion *f, Val v) { return f->elements[v] == 0; }

bool fuse_rematerializes(const Fusion *f, uint32_t group, Val v)
{
    const Group *gr = &f->group.v[group];
    size_t from = 0, to = gr->rematerialized.n;
    if (f->home[v] < 0)
        return true;
    while (from < to) {
        size_t middle = (from + to) / 2;
        if (gr->rematerialized.v[middle] < v)
            from = middle + 1;
        else
            to = middle;
    }
    return from < gr->rematerialized.n && gr->rematerialized.v[from] == v;
}

bool fuse_loads(const Fusion *f, uint32_t group, Val v)
{
    if (node_at(f->g, v)->op == OP_EXT)
        return true;
    return f->stored[v] && f->home[v] != (int32_t)group && !fuse_rematerializes(f, group, v);
}

bool fuse_is_view(const Fusion *f, Val v)
{
    bool view = op_is_view((Op)node_at(f->g, v)->op);
    return (view || (f->as_stored && f->as_stored[v])) && !f->copied[v];
}

Val fuse_base(const Fusion *f, Val v)
{
    while (fuse_is_view(f, v))
        v = node_at(f->g, v)->in[0];
    return v;
}

/* ---- coordinates ---- */

/* A coordinate moved by k along an axis of n: where the row plays no part the test that guards
 * it is taken as passed, so any place inside stands for it. */
static Ix moved(IxTable *t, Ix c, int64_t k, Dim n, int ordinal)
{
    Ix at = ix_add(t, c, ix_const(t, -k));
    const IxForm *f = ix_form(t, at);
    if ((f->lo >= 0 && f->hi < ix_dim_at(t, n)) || (f->deps & ix_bit(t, ROW_VAR)))
        return at;
    return ix_var(t, ix_loop(t, n, ordinal));
}

bool fuse_input_coords(IxTable *t, const Graph *g, Val v, const Ix *c, size_t k, int ordinal, Ix *in)
{
    const Node *n = node_at(g, v);
    const Shape *s = shape_of(g, n->in[k]);
    memcpy(in, c, n->shape.rank * sizeof *in);
    switch ((Op)n->op) {
    case OP_RESHAPE: ix_unlinear(t, s, ix_linear(t, &n->shape, c), in); return true;
    case OP_PERMUTE:
        for (int i = 0; i < n->shape.rank; i++)
            in[(int)n->a.data[i]] = c[i];
        return true;
    case OP_BROADCAST:
        for (int i = 0; i < s->rank; i++)
            if (dim_eq(s->d[i], DIM(1)))
                in[i] = 0;
        return true;
    case OP_SLICE: in[n->a.i] = ix_add(t, c[n->a.i], ix_const(t, n->a.j)); return true;
    case OP_ROLL: in[n->a.i] = ix_mod(t, ix_add(t, c[n->a.i], ix_const(t, -n->a.j)), s->d[n->a.i]); return true;
    case OP_PAD:
    case OP_SHIFT: in[n->a.i] = moved(t, c[n->a.i], n->a.j, s->d[n->a.i], ordinal); return true;
    case OP_CONCAT: {
        int64_t offset = 0;
        for (size_t i = 0; i < k; i++)
            offset += ix_dim_at(t, shape_of(g, n->in[i])->d[n->a.i]);
        in[n->a.i] = moved(t, c[n->a.i], offset, s->d[n->a.i], ordinal);
        return true;
    }
    case OP_SUM:
    case OP_AMAX:
        for (int i = 0; i < s->rank; i++)
            if (n->a.axes >> i & 1)
                in[i] = ix_var(t, ix_loop(t, s->d[i], ordinal + i));
        return true;
    case OP_PLACE: in[s->rank - 1] = ix_var(t, ix_loop(t, s->d[s->rank - 1], ordinal)); return true;
    case OP_MATMUL: {
        bool inner_last = (k == 0) != (n->a.i >> k & 1);
        Dim depth = s->d[s->rank - (inner_last ? 1 : 2)];
        Ix own = c[n->shape.rank - (k == 0 ? 2 : 1)], inner = ix_var(t, ix_loop(t, depth, ordinal));
        in[s->rank - 2] = inner_last ? own : inner;
        in[s->rank - 1] = inner_last ? inner : own;
        return true;
    }
    case OP_GATHER: return k == 1;
    case OP_PICK:
        if (k == 0)
            in[s->rank - 1] = ix_var(t, ix_loop(t, s->d[s->rank - 1], ordinal));
        return true;
    default: return true;
    }
}

/* ---- groups ---- */

/* Values of groups a and b, which are one or shall be, that v is computed from, one from the other. */
static int depth_in(const Fusion *f, Val v, int32_t a, int32_t b)
{
    const Node *n = node_at(f->g, v);
    int depth = 0;
    for (size_t k = 0; k < n->n_in; k++) {
        Val u = n->in[k];
        bool own = f->home[u] >= 0 && (f->home[u] == a || f->home[u] == b);
        int below = fuse_empty(f, u) ? 0 : own ? f->depth[u] : f->home[u] < 0 ? depth_in(f, u, a, b) : 0;
        depth = below > depth ? below : depth;
    }
    return depth + 1;
}

typedef VEC(int32_t) Groups;

/* The groups of what v reads, behind what is computed wherever it is wanted. */
static void find_producers(Fusion *f, Val v, Groups *out)
{
    const Node *n = node_at(f->g, v);
    for (size_t k = 0; k < n->n_in; k++) {
        Val u = n->in[k];
        bool known = fuse_empty(f, u);
        if (!known && f->home[u] < 0)
            find_producers(f, u, out);
        for (size_t i = 0; i < out->n; i++)
            known = known || out->v[i] == f->home[u];
        if (!known && f->home[u] >= 0)
            vec_push(f->arena, out, f->home[u]);
    }
}

/* Would `group` wait for itself if v, which reads from `met`, were in it? */
static bool waits(const Fusion *f, uint32_t group, const int32_t *met, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (met[i] != (int32_t)group && fuse_reaches(f, group, (uint32_t)met[i]))
            return true;
    return false;
}

static uint32_t new_group(Fusion *f, GroupKind kind, Val v)
{
    vec_push(f->arena, &f->group, (Group){.kind = kind, .anchor = v, .chain = f->chain[v], .first = v, .last = v});
    uint32_t id = (uint32_t)f->group.n - 1;
    vec_push(f->arena, &f->group.v[id].member, v);
    fuse_new_row(f, id);
    f->home[v] = (int32_t)id;
    return id;
}

/* Row counts that suit v, which alone could have `mine`, and all members, with every edge between
 * them at the same row. */
static Dims joint(Fusion *f, Val v, const Dims *mine, uint32_t group)
{
    Group *gr = &f->group.v[group];
    Dims all = {0}, out = {0};
    for (size_t i = 0; i < gr->choice.n; i++)
        fuse_add_rows(&all, f->arena, gr->choice.v[i]);
    for (size_t i = 0; i < mine->n; i++)
        fuse_add_rows(&all, f->arena, mine->v[i]);
    for (size_t i = 0; i < all.n; i++) {
        bool old = i < gr->choice.n, ok = fuse_rows_suit(f, v, all.v[i]);
        for (size_t m = 0; ok && !old && m < gr->member.n; m++)
            ok = fuse_rows_suit(f, gr->member.v[m], all.v[i]) &&
                 fuse_reads_own_row(f, gr->member.v[m], (int32_t)group, all.v[i]);
        if (ok && fuse_reads_own_row(f, v, (int32_t)group, all.v[i]))
            vec_push(f->arena, &out, all.v[i]);
    }
    return out;
}

/* What the backward pass shall compute again must not join a group of the forward pass: that runs too early. */
static bool too_early(const Fusion *f, Val group, Val v)
{
    return f->recompute_from && group < f->recompute_from && v >= f->recompute_from &&
           (node_at(f->g, v)->recomputed || v == f->recompute_from);
}

static bool has_choice(const Group *gr, Dim rows)
{
    for (size_t i = 0; i < gr->choice.n; i++)
        if (dim_eq(gr->choice.v[i], rows))
            return true;
    return false;
}

/* Do the members of a group read those of `other` at their own rows? `new`: that the row count
 * suits them is not known yet. */
static bool group_aligned(Fusion *f, uint32_t group, uint32_t other, Dim rows, bool new)
{
    const Group *gr = &f->group.v[group];
    for (size_t m = 0; m < gr->member.n; m++)
        if ((new && !fuse_rows_suit(f, gr->member.v[m], rows)) ||
            !fuse_reads_own_row(f, gr->member.v[m], (int32_t)other, rows))
            return false;
    return true;
}

/* Row counts that suit both groups as one; what is within each has been looked at before. */
static Dims shared_choices(Fusion *f, uint32_t a, uint32_t b)
{
    const Group *x = &f->group.v[a], *y = &f->group.v[b];
    Dims all = {0}, out = {0};
    for (size_t i = 0; i < x->choice.n; i++)
        fuse_add_rows(&all, f->arena, x->choice.v[i]);
    for (size_t i = 0; i < y->choice.n; i++)
        fuse_add_rows(&all, f->arena, y->choice.v[i]);
    for (size_t i = 0; i < all.n; i++)
        if ((has_choice(x, all.v[i]) || group_aligned(f, a, a, all.v[i], true)) &&
            (has_choice(y, all.v[i]) || group_aligned(f, b, b, all.v[i], true)) &&
            group_aligned(f, a, b, all.v[i], false) && group_aligned(f, b, a, all.v[i], false))
            vec_push(f->arena, &out, all.v[i]);
    return out;
}

/* Members stay in graph order. */
static void take_members(Fusion *f, Group *x, const Group *y)
{
    size_t i = x->member.n, j = y->member.n;
    for (size_t m = 0; m < j; m++)
        vec_push(f->arena, &x->member, y->member.v[m]);
    for (size_t at = i + j; j > 0; at--)
        x->member.v[at - 1] = i > 0 && x->member.v[i - 1] > y->member.v[j - 1] ? x->member.v[--i] : y->member.v[--j];
}

/* Finds the depth of members when both groups are one; false, and all is as before: that is too much. */
static bool deepen(Fusion *f, uint32_t a, uint32_t b)
{
    const Group *x = &f->group.v[a], *y = &f->group.v[b];
    size_t n = x->member.n + y->member.n, i = 0, j = 0, done = 0;
    ArenaMark mark = arena_mark(f->tmp);
    Val *member = NEW_ARRAY(f->tmp, Val, n);
    int *old = NEW_ARRAY(f->tmp, int, n);
    bool ok = true;
    for (; done < n && ok; done++) {
        bool first = j == y->member.n || (i < x->member.n && x->member.v[i] < y->member.v[j]);
        Val v = member[done] = first ? x->member.v[i++] : y->member.v[j++];
        old[done] = f->depth[v];
        f->depth[v] = depth_in(f, v, (int32_t)a, (int32_t)b);
        ok = f->depth[v] <= DEPTH_MAX;
    }
    while (!ok && done-- > 0)
        f->depth[member[done]] = old[done];
    arena_reset(f->tmp, mark);
    return ok;
}

static bool group_reads_pinned(Fusion *f, uint32_t group, uint32_t of)
{
    const Group *gr = &f->group.v[group];
    for (size_t m = 0; m < gr->member.n; m++)
        if (fuse_reads_pinned(f, gr->member.v[m], (int32_t)of))
            return true;
    return false;
}

bool fuse_merge(Fusion *f, uint32_t a, uint32_t b)
{
    Group *x = &f->group.v[a], *y = &f->group.v[b];
    if (x->kind != GROUP_ROWS || y->kind != GROUP_ROWS || x->chain != y->chain ||
        x->member.n + y->member.n > f->members || x->weight + y->weight > WEIGHT_MAX ||
        x->scratch + y->scratch > f->target->row_scratch || x->parts + y->parts > PARTS_MAX ||
        too_early(f, x->first, y->first) || too_early(f, y->first, x->first) || !fuse_may_join(f, a, b))
        return false;
    if (group_reads_pinned(f, a, b) || group_reads_pinned(f, b, a))
        return false;
    Dims out = shared_choices(f, a, b);
    if (out.n == 0 || ((x->moves || y->moves) && !fuse_few_places(f, x, y, 0)) || !deepen(f, a, b))
        return false;
    for (size_t m = 0; m < y->member.n; m++)
        f->home[y->member.v[m]] = (int32_t)a;
    memcpy(&x->choice, &out, sizeof out);
    take_members(f, x, y);
    x->moves = x->moves || y->moves;
    x->pins = x->pins || y->pins;
    x->weight += y->weight;
    x->scratch += y->scratch;
    x->parts += y->parts;
    x->first = x->first < y->first ? x->first : y->first;
    x->last = x->last > y->last ? x->last : y->last;
    fuse_join_edges(f, a, b);
    y->dead = true;
    y->member.n = 0;
    return true;
}

/* elements of scratch that a row needs for v */
static int64_t scratch_of(const Graph *g, Val v)
{
    const Shape *s = &node_at(g, v)->shape;
    return node_at(g, v)->op == OP_MATMUL ? s->d[s->rank - 2].n * s->d[s->rank - 1].n : 0;
}

/* how many copies of an operation small literal axes may make */
static int64_t unroll_weight(const Graph *g, Val v)
{
    const Node *n = node_at(g, v);
    bool reduce = op_info((Op)n->op)->class == CLASS_REDUCE;
    const Shape *s = reduce ? shape_of(g, n->in[0]) : &n->shape;
    int64_t w = 1;
    for (int i = 0; i < s->rank && n->op != OP_MATMUL; i++)
        if (dim_literal(s->d[i]) && s->d[i].n > 0 && w * s->d[i].n <= 256)
            w *= s->d[i].n;
    return w;
}

/* The largest number below `below` among these groups, or -1. */
static int32_t newest(const Groups *of, int32_t below)
{
    int32_t most = -1;
    for (size_t i = 0; i < of->n; i++)
        most = of->v[i] < below && of->v[i] > most ? of->v[i] : most;
    return most;
}

static void place_compute(Fusion *f, Val v)
{
    Groups from = {0};
    find_producers(f, v, &from);
    int32_t best = -1;
    bool moves = fuse_reads_moved(f, v);
    int64_t weight = unroll_weight(f->g, v), scratch = scratch_of(f->g, v);
    size_t parts = concat_of_parts(f->g, v) ? node_at(f->g, v)->n_in : 0;
    Dims own = {0}, choice = {0};
    fuse_own_rows(f, v, &own);
    for (int32_t id = newest(&from, INT32_MAX); id >= 0 && best < 0 && !f->unfused; id = newest(&from, id)) {
        Group *gr = &f->group.v[id];
        if (gr->kind != GROUP_ROWS || gr->chain != f->chain[v] || gr->member.n >= f->members ||
            gr->weight + weight > WEIGHT_MAX || gr->scratch + scratch > f->target->row_scratch ||
            gr->parts + parts > PARTS_MAX || too_early(f, gr->first, v) || fuse_reads_pinned(f, v, id) ||
            waits(f, (uint32_t)id, from.v, from.n) || depth_in(f, v, id, id) > DEPTH_MAX ||
            ((moves || gr->moves) && !fuse_few_places(f, gr, NULL, v)))
            continue;
        choice = joint(f, v, &own, (uint32_t)id);
        best = choice.n ? id : -1;
    }
    if (best < 0) {
        best = (int32_t)new_group(f, GROUP_ROWS, v);
        memcpy(&f->group.v[best].choice, &own, sizeof own);
        f->group.v[best].alone = own.n == 0;
        f->group.v[best].weight = weight;
        f->group.v[best].scratch = scratch;
        f->group.v[best].parts = parts;
    } else {
        Group *gr = &f->group.v[best];
        memcpy(&gr->choice, &choice, sizeof choice);
        vec_push(f->arena, &gr->member, v);
        gr->last = v;
        gr->alone = false;
        gr->weight += weight;
        gr->scratch += scratch;
        gr->parts += parts;
        f->home[v] = best;
    }
    f->depth[v] = depth_in(f, v, best, best);
    f->group.v[best].moves = f->group.v[best].moves || moves;
    f->group.v[best].pins = f->group.v[best].pins || f->pinned[v];
    for (size_t i = 0; i < from.n; i++)
        fuse_add_pred(f, (uint32_t)best, from.v[i]);
    for (size_t i = 0; i < from.n && !f->unfused; i++)
        if (from.v[i] != best && f->home[v] == best)
            fuse_merge(f, (uint32_t)best, (uint32_t)from.v[i]);
    if (f->target->threads && !f->unfused)
        fuse_meet_sums(f, v);
}

static void place_node(Fusion *f, Val v)
{
    const Node *n = node_at(f->g, v);
    if (fuse_empty(f, v) || (fuse_is_view(f, v) && fuse_is_compute(f->g, v)))
        return;
    if (fuse_is_place(f->g, v) && !f->copied[v])
        return; /* computed wherever it is wanted: two groups that read it need not become one for that */
    if (n->op == OP_AUX) {
        f->home[v] = f->home[n->in[0]];
    } else if (n->op == OP_CONST || node_is_library(f->g, v)) {
        uint32_t id = new_group(f, n->op == OP_CONST ? GROUP_TABLE : GROUP_LIBRARY, v);
        Groups from = {0};
        find_producers(f, v, &from);
        for (size_t i = 0; i < from.n; i++)
            fuse_add_pred(f, id, from.v[i]);
    } else if (fuse_is_compute(f->g, v) || f->copied[v]) {
        place_compute(f, v);
    }
}

/* ---- what libraries and readers want in memory ---- */

/* A value that is read as it lies must be one that some launch writes. */
static void want_stored(Fusion *f, Val v)
{
    const Node *n = node_at(f->g, v);
    if (n->op != OP_EXT && n->op != OP_CONST && n->op != OP_AUX && !node_is_library(f->g, v) &&
        !fuse_is_compute(f->g, v))
        f->copied[v] = true;
}

static Val strip_reshapes(const Fusion *f, Val v)
{
    while (node_at(f->g, v)->op == OP_RESHAPE && !f->copied[v])
        v = node_at(f->g, v)->in[0];
    return v;
}

static bool operand_fits(const Fusion *f, Val v, size_t k)
{
    const Node *n = node_at(f->g, v);
    Operand o;
    MatrixView m;
    if (!fuse_operand(f, n->in[k], &o))
        return false;
    if (n->op == OP_MATMUL) {
        bool shared = shape_of(f->g, n->in[1])->rank == 2 && shape_of(f->g, n->in[0])->rank > 2;
        return operand_matrix(&o, shared && k == 0 && !(n->a.i & 1), &m);
    }
    if (n->op == OP_CONCAT || (op_is_expert((Op)n->op) && k < 2 && f->target->own_library))
        return operand_rows(&o, &m.rows, &m.ld);
    if ((n->op == OP_SDPA || n->op == OP_SDPA_GRAD) && k < 3)
        return o.stride[3] == 1 || o.extent[3] == 1;
    return operand_contiguous(&o);
}

static void want_operands(Fusion *f, Val v)
{
    const Node *n = node_at(f->g, v);
    for (size_t k = 0; node_is_library(f->g, v) && k < n->n_in; k++) {
        want_stored(f, fuse_base(f, n->in[k]));
        if (!fuse_empty(f, v) && !fuse_empty(f, n->in[k]) && !operand_fits(f, v, k))
            f->copied[n->in[k]] = true;
    }
}

/* What kernels compute for a concatenation in place lies in it, unless somebody must have it as it is. */
static void find_rows_of_parts(Fusion *f)
{
    const Graph *g = f->g;
    f->row_of = NEW_ARRAY(f->arena, Val, g->node.n);
    for (Val v = 1; v < g->node.n; v++) {
        Val x = concat_in_place(g, v) ? node_at(g, v)->in[0] : 0;
        if (x && !f->row_of[x] && fuse_is_compute(g, x) && !fuse_is_view(f, x))
            f->row_of[x] = v;
    }
    for (size_t i = 0; i < g->out.n; i++)
        f->row_of[fuse_base(f, g->out.v[i].value)] = 0;
    for (Val v = 1; v < g->node.n; v++)
        for (size_t k = 0; node_is_library(g, v) && k < node_at(g, v)->n_in; k++) {
            Val *row = &f->row_of[fuse_base(f, node_at(g, v)->in[k])];
            *row = *row == v ? v : 0;
        }
}

static void find_wanted(Fusion *f)
{
    const Graph *g = f->g;
    find_rows_of_parts(f);
    for (size_t i = 0; i < g->out.n; i++)
        want_stored(f, strip_reshapes(f, g->out.v[i].value));
    for (Val v = 1; v < g->node.n; v++)
        want_operands(f, v);
}

/* What is moved many times is stored on the way: a kernel walks from an element to all that it may come from,
 * so a concatenation of two slices of one value would double that with each step. */
static void keep_long_ways(Fusion *f)
{
    const Graph *g = f->g;
    int64_t *tree = NEW_ARRAY(f->tmp, int64_t, g->node.n);
    for (Val v = 1; v < g->node.n; v++) {
        const Node *n = node_at(g, v);
        tree[v] = 1;
        if (node_is_library(g, v) || n->op == OP_AUX || (fuse_is_compute(g, v) && !fuse_is_view(f, v)))
            continue;
        for (size_t k = 0; k < n->n_in; k++)
            tree[v] += f->copied[n->in[k]] ? 1 : tree[n->in[k]];
        f->copied[v] = f->copied[v] || tree[v] > TREE_MAX;
    }
}

/* ---- rows ---- */

static void collect_stores(Fusion *f)
{
    for (size_t i = 0; i < f->group.n; i++) {
        Group *gr = &f->group.v[i];
        for (size_t m = 0; m < gr->member.n; m++)
            if (f->stored[gr->member.v[m]])
                vec_push(f->arena, &gr->store, gr->member.v[m]);
        gr->dead = gr->dead || (gr->kind == GROUP_ROWS && gr->store.n == 0);
    }
}

/* Sizes in bytes, and sums of them, are far below 2^63. */
static const int64_t MOST_ELEMENTS = (int64_t)1 << 53;

Fusion *fuse_graph(Ctx *ctx, Arena *arena, const Graph *g, const PlanOptions *how, const bool *copied, size_t members,
                   IsFlat is_flat)
{
    Fusion *f = NEW(arena, Fusion);
    *f = (Fusion){.ctx = ctx,
                  .arena = arena,
                  .tmp = arena_new(ctx),
                  .g = g,
                  .B = how->B,
                  .T = how->T,
                  .members = members,
                  .unfused = how->no_fusion,
                  .target = plan_target(how),
                  .half = how->half,
                  .shared = how->shared ? how->shared : plan_target(how)->shared,
                  .is_flat = is_flat};
    f->home = NEW_ARRAY(arena, int32_t, g->node.n);
    f->stored = NEW_ARRAY(arena, bool, g->node.n);
    for (Val v = 1; v < g->node.n && !f->recompute_from; v++)
        f->recompute_from = node_at(g, v)->recomputed ? v : 0;
    f->copied = NEW_ARRAY(arena, bool, g->node.n);
    f->seen = NEW_ARRAY(arena, uint32_t, g->node.n);
    f->elements = NEW_ARRAY(arena, int64_t, g->node.n);
    f->depth = NEW_ARRAY(arena, int, g->node.n);
    f->readers = NEW_ARRAY(arena, FuseReaders, g->node.n);
    f->places = fuse_new_places(arena, g->node.n);
    f->by_rows = fuse_new_by_rows(arena, g->node.n);
    int64_t all = 0;
    for (Val v = 0; v < g->node.n; v++) {
        f->elements[v] = dim_at(fuse_size(g, v), how->B, how->T);
        if (f->elements[v] < 0 || f->elements[v] > MOST_ELEMENTS - all)
            ctx_raise(ctx, ST_INPUT,
                      "limit `tensor size` reached: with %lld sequences of %lld positions the tensors of a step have"
                      " more than 2^53 elements",
                      (long long)how->B, (long long)how->T);
        all += f->elements[v];
        f->home[v] = -1;
        f->copied[v] = copied && copied[v];
    }
    if (how->half && f->target->half_kernels) /* what a library stores rounded shapes the groups */
        fuse_choose_16bit(f);
    find_wanted(f);
    fuse_find_pinned(f);
    keep_long_ways(f);
    fuse_find_chains(f);
    for (Val v = 1; v < g->node.n && f->in_16bit; v++)
        if (f->copied[v] && op_is_view((Op)node_at(g, v)->op))
            f->in_16bit[v] = f->in_16bit[fuse_base(f, node_at(g, v)->in[0])];
    for (Val v = 1; v < g->node.n; v++)
        place_node(f, v);
    if (!how->no_fusion)
        fuse_merge_siblings(f);
    fuse_choose_stores(f);
    collect_stores(f);
    fuse_choose_rows(f);
    fuse_order(f);
    if (!f->target->half_kernels && target_multiplies(f->target, how->half))
        fuse_choose_16bit(f);
    for (Val v = 1; v < g->node.n && f->in_16bit; v++)
        f->in_16bit[v] = f->in_16bit[v] && f->stored[v] && f->home[v] >= 0;
    return f;
}

void fuse_free(Fusion *f)
{
    arena_free(f->tmp);
    f->tmp = NULL;
}

void fuse_dump(Buf *out, const Fusion *f)
{
    for (size_t i = 0; i < f->order.n; i++) {
        const Group *gr = &f->group.v[f->order.v[i]];
        buf_printf(out, "group %zu ", i);
        if (gr->kind != GROUP_ROWS) {
            buf_printf(out, "library %s %%%u bytes %.0f\n", op_info((Op)node_at(f->g, gr->anchor)->op)->name,
                       (unsigned)gr->anchor, gr->bytes);
            continue;
        }
        buf_puts(out, "rows ");
        dim_print(out, gr->rows);
        buf_puts(out, " computes");
        for (size_t m = 0; m < gr->member.n; m++)
            buf_printf(out, " %%%u=%s", (unsigned)gr->member.v[m],
                       op_info((Op)node_at(f->g, gr->member.v[m])->op)->name);
        if (gr->rematerialized.n)
            buf_puts(out, " again");
        for (size_t m = 0; m < gr->rematerialized.n; m++)
            buf_printf(out, " %%%u=%s", (unsigned)gr->rematerialized.v[m],
                       op_info((Op)node_at(f->g, gr->rematerialized.v[m])->op)->name);
        buf_puts(out, " stores");
        for (size_t m = 0; m < gr->store.n; m++)
            buf_printf(out, " %%%u", (unsigned)gr->store.v[m]);
        buf_printf(out, " bytes %.0f\n", gr->bytes);
    }
}
