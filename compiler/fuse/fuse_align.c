/* fuse_align.c - over how many rows a value may be computed, and what it reads at rows that are
 * not its own.
 *
 * In:  a value, a number of rows.     Out: whether the one fits the other; the members of
 * groups that the value reads elsewhere. The one idea: what a value reads, through views and
 * all else that is computed where it is wanted, does not change any more when it is placed;
 * only whose members these are does. So each value is looked at once for each number of rows,
 * and groups are compared by the few values that are read at other rows.
 */
#include "fuse.h"

/* What is known of a value over so many rows. */
typedef struct RowFacts {
    struct RowFacts *next;
    Dim rows;
    bool suit, suit_known;
    bool looked;    /* at what it reads */
    bool never;     /* it cannot be told that it reads anything at its own row */
    Vals elsewhere; /* members of groups that it reads at other rows, or at rows that cannot be
                       told */
} RowFacts;

/* What a value reads, written down; layers repeat, so most of it was read before. */
typedef struct Seen {
    struct Seen *next; /* whose hash is the same */
    const uint64_t *word;
    size_t n;
    bool never;
    const bool *elsewhere; /* by number of the member, in the order in which they were met */
} Seen;

typedef struct ByRows {
    RowFacts **of;
    Map seen;
} ByRows;

struct ByRows *fuse_new_by_rows(Arena *arena, size_t values)
{
    ByRows *b = NEW(arena, ByRows);
    b->of = NEW_ARRAY(arena, RowFacts *, values);
    map_init(&b->seen, arena);
    return b;
}

static RowFacts *facts_of(const Fusion *f, Val v, Dim rows)
{
    RowFacts **first = &f->by_rows->of[v];
    for (RowFacts *x = *first; x; x = x->next)
        if (dim_eq(x->rows, rows))
            return x;
    RowFacts *x = NEW(f->arena, RowFacts);
    *x = (RowFacts){.next = *first, .rows = rows};
    return *first = x;
}

/* ---- rows ---- */

/* Do the leading axes of a shape make up `rows`, an axis being split if need be? *axis: the
 * first axis that is not wholly rows; *cut: a part of it is. */
static bool rows_fit(const Shape *s, Dim rows, int *axis, bool *cut)
{
    Dim rest = rows, q;
    *cut = false;
    for (*axis = 0; *axis < s->rank; ++*axis) {
        if (dim_eq(rest, DIM(1)))
            return true;
        if (dim_div(rest, s->d[*axis], &q)) {
            rest = q;
            continue;
        }
        *cut = true;
        return dim_div(s->d[*axis], rest, &q);
    }
    return dim_eq(rest, DIM(1));
}

/* The only row count of a product of one row each, or of one that is summed over rows. */
static Dim product_rows(const Graph *g, Val v, RowPart *part)
{
    const Shape *s = &node_at(g, v)->shape;
    Dim rows = DIM(1), K = product_depth(g, v);
    *part = s->rank > 2 ? ROWS_KEPT : ROWS_SUMMED;
    for (int i = 0; i < s->rank - 2; i++)
        if (!dim_mul(rows, s->d[i], &rows))
            vwn_bug(g->ctx, "the size of a tensor overflows");
    return s->rank > 2 ? rows : (Dim){1, K.b, K.t};
}

RowPart fuse_rows(const Graph *g, Val v, Dim rows)
{
    const Node *n = node_at(g, v);
    int axis;
    bool cut;
    if (n->op == OP_MATMUL) {
        RowPart part;
        return dim_eq(product_rows(g, v, &part), rows) ? part : ROWS_BAD;
    }
    if (op_info((Op)n->op)->class != CLASS_REDUCE)
        return rows_fit(&n->shape, rows, &axis, &cut) ? ROWS_KEPT : ROWS_BAD;
    const Shape *s = shape_of(g, n->in[0]);
    if (!rows_fit(s, rows, &axis, &cut))
        return ROWS_BAD;
    bool kept = true, summed = true;
    for (int i = 0; i < axis + cut; i++) {
        bool r = (n->a.axes >> i & 1) && !dim_eq(s->d[i], DIM(1));
        kept = kept && !r;
        summed = summed && (r || dim_eq(s->d[i], DIM(1)));
    }
    if (axis + cut == 0 || dim_eq(rows, DIM(1)))
        return ROWS_KEPT;
    return kept ? ROWS_KEPT : summed ? ROWS_SUMMED : ROWS_BAD;
}

/* One row only for single elements, so that what is small does not all end up in one kernel
 * that grows with the model, nor a long sum in one thread. */
static bool single(const Graph *g, Val v)
{
    const Node *n = node_at(g, v);
    bool reduce = op_info((Op)n->op)->class == CLASS_REDUCE;
    return dim_eq(fuse_size(g, reduce ? n->in[0] : v), DIM(1));
}

/* A whole sequence as a row, where its positions could be rows and still be vectors. A kernel
 * would have to keep all of it, or compute it again for every sum of it. */
static bool whole_sequence(const Fusion *f, Val v, Dim rows)
{
    const Node *n = node_at(f->g, v);
    bool reduce = op_info((Op)n->op)->class == CLASS_REDUCE;
    const Shape *s = reduce ? shape_of(f->g, n->in[0]) : &n->shape;
    Dim size, finer = DIM(1), left;
    if (!dim_eq(rows, DIM_B) || !shape_size(s, &size) || !dim_div(size, rows, &left) ||
        dim_at(left, f->B, f->T) <= f->target->tuned->sequence_elements)
        return false;
    for (int i = 0; i < s->rank; i++) {
        if (!dim_mul(finer, s->d[i], &finer) || dim_eq(finer, rows) || !dim_div(size, finer, &left))
            continue;
        if (dim_at(left, f->B, f->T) >= f->target->tuned->row_lanes && fuse_rows(f->g, v, finer) == ROWS_KEPT)
            return true;
    }
    return false;
}

static bool suits(const Fusion *f, Val v, Dim rows)
{
    if (dim_eq(rows, DIM(1)))
        return single(f->g, v);
    if (whole_sequence(f, v, rows))
        return false;
    RowPart p = fuse_rows(f->g, v, rows);
    if (p == ROWS_SUMMED)
        return dim_at(fuse_size(f->g, v), f->B, f->T) * 4 <= f->target->tuned->row_sum_bytes;
    return p == ROWS_KEPT;
}

bool fuse_rows_suit(const Fusion *f, Val v, Dim rows)
{
    RowFacts *known = facts_of(f, v, rows);
    if (!known->suit_known)
        known->suit = suits(f, v, rows);
    known->suit_known = true;
    return known->suit;
}

void fuse_add_rows(Dims *d, Arena *arena, Dim x)
{
    for (size_t i = 0; i < d->n; i++)
        if (dim_eq(d->v[i], x))
            return;
    vec_push(arena, d, x);
}

void fuse_own_rows(const Fusion *f, Val v, Dims *out)
{
    const Node *n = node_at(f->g, v);
    bool reduce = op_info((Op)n->op)->class == CLASS_REDUCE;
    const Shape *s = reduce ? shape_of(f->g, n->in[0]) : &n->shape;
    Dim prod = DIM(1);
    RowPart part;
    if (n->op == OP_MATMUL) {
        fuse_add_rows(out, f->arena, product_rows(f->g, v, &part));
        return;
    }
    if (single(f->g, v))
        fuse_add_rows(out, f->arena, DIM(1));
    for (int i = 0; i < s->rank; i++) {
        if (!dim_mul(prod, s->d[i], &prod))
            vwn_bug(f->ctx, "the size of a tensor overflows");
        if (!dim_eq(prod, DIM(1)) && fuse_rows_suit(f, v, prod))
            fuse_add_rows(out, f->arena, prod);
    }
}

/* ---- what is read at other rows ---- */

typedef struct Look {
    const Fusion *f;
    RowFacts *facts;
    IxTable t;
    Ix row;
    int depth;
} Look;

enum { DEPTH_MOST = 500 }; /* of what is computed where it is wanted */

static void add_elsewhere(Look *l, Val u)
{
    for (size_t i = 0; i < l->facts->elsewhere.n; i++)
        if (l->facts->elsewhere.v[i] == u)
            return;
    vec_push(l->f->arena, &l->facts->elsewhere, u);
}

/* Others are never one with what reads them. */
static bool may_be_member(const Fusion *f, Val u)
{
    return f->home[u] >= 0 && f->group.v[f->home[u]].kind == GROUP_ROWS;
}

/* Does v read a value that may be a member, through what is computed where it is wanted? Said
 * yes to when the way is too long to tell. */
static bool reads_members(const Fusion *f, Val v, int depth)
{
    const Node *n = node_at(f->g, v);
    for (size_t k = 0; k < n->n_in; k++) {
        Val u = n->in[k];
        if (!fuse_empty(f, u) &&
            (f->home[u] >= 0 ? may_be_member(f, u) : depth > 100 || reads_members(f, u, depth + 1)))
            return true;
    }
    return false;
}

/* All of them, wherever they are read. */
static void add_members(Look *l, Val u)
{
    const Node *n = node_at(l->f->g, u);
    if (l->facts->never || fuse_empty(l->f, u))
        return;
    if (l->f->home[u] >= 0) {
        add_elsewhere(l, u);
        return;
    }
    l->facts->never = ++l->depth > DEPTH_MOST;
    for (size_t k = 0; k < n->n_in; k++)
        add_members(l, n->in[k]);
    l->depth--;
}

/* u is stored or a member: is it asked for at the row itself? */
static void look_at_member(Look *l, Val u, const Ix *c)
{
    const Graph *g = l->f->g;
    Dim rows = l->facts->rows, inner;
    if (!may_be_member(l->f, u))
        return;
    if (fuse_rows(g, u, rows) != ROWS_KEPT || !dim_div(fuse_size(g, u), rows, &inner) || inner.n == 0 ||
        ix_div(&l->t, ix_linear(&l->t, shape_of(g, u), c), inner) != l->row)
        add_elsewhere(l, u);
}

static void look_at(Look *l, Val u, const Ix *c)
{
    const Graph *g = l->f->g;
    if (l->facts->never || fuse_empty(l->f, u))
        return;
    if (l->f->home[u] >= 0) {
        look_at_member(l, u, c);
        return;
    }
    const Node *n = node_at(g, u);
    l->facts->never = ++l->depth > DEPTH_MOST;
    for (size_t k = 0; k < n->n_in && !l->facts->never; k++) {
        Ix in[MAX_RANK] = {0};
        if (fuse_input_coords(&l->t, g, u, c, k, 8 + l->depth * 8, in))
            look_at(l, n->in[k], in);
        else /* read by what another tensor holds: all of it must be there */
            add_members(l, n->in[k]);
    }
    l->depth--;
}

/* The factors of a product that is summed over rows, at the terms of one row. */
static void look_at_factors(Look *l, Val v, Dim inner)
{
    const Node *n = node_at(l->f->g, v);
    Ix k = ix_add(&l->t, ix_scale(&l->t, l->row, inner), ix_var(&l->t, ix_loop(&l->t, inner, 0)));
    for (int i = 0; i < 2; i++) {
        bool first = (i == 0) == (n->a.i >> i & 1); /* is K the first axis? */
        Dim other = shape_of(l->f->g, n->in[i])->d[first];
        Ix in[MAX_RANK] = {0};
        in[!first] = k;
        in[first] = ix_var(&l->t, ix_loop(&l->t, other, 1));
        look_at(l, n->in[i], in);
    }
}

/* Most inputs are answered here, without indices: none that is a member, or elements of one of
 * v's own shape. */
static bool is_plain(const Fusion *f, Val v, Val u, Dim rows)
{
    const Graph *g = f->g;
    const Node *n = node_at(g, v);
    bool reduce = op_info((Op)n->op)->class == CLASS_REDUCE, map = op_is_map((Op)n->op);
    if (fuse_empty(f, u))
        return true;
    if (f->home[u] < 0)
        return !reads_members(f, u, 1);
    return !may_be_member(f, u) ||
           ((reduce || (map && shape_eq(shape_of(g, u), &n->shape))) && fuse_rows(g, u, rows) == ROWS_KEPT);
}

/* The inputs of v at all elements of a row of v or, when v is a sum, of what it sums. */
static void look_at_inputs(Look *l, Val v, Dim inner)
{
    const Graph *g = l->f->g;
    const Node *n = node_at(g, v);
    bool reduce = op_info((Op)n->op)->class == CLASS_REDUCE;
    const Shape *s = reduce ? shape_of(g, n->in[0]) : &n->shape;
    Ix c[MAX_RANK] = {0};
    Ix inside = ix_var(&l->t, ix_loop(&l->t, inner, 0));
    ix_unlinear(&l->t, s, ix_add(&l->t, ix_scale(&l->t, l->row, inner), inside), c);
    for (size_t k = 0; k < n->n_in; k++) {
        Ix in[MAX_RANK] = {0};
        if (is_plain(l->f, v, n->in[k], l->facts->rows))
            continue;
        if (reduce)
            memcpy(in, c, sizeof in);
        else if (!fuse_input_coords(&l->t, g, v, c, k, 2, in))
            continue;
        look_at(l, n->in[k], in);
    }
}

static bool all_plain(const Fusion *f, Val v, Dim rows)
{
    const Node *n = node_at(f->g, v);
    for (size_t k = 0; k < n->n_in; k++)
        if (!is_plain(f, v, n->in[k], rows))
            return false;
    return true;
}

/* By indices. */
static void look_closely(Fusion *f, Val v, RowFacts *facts, bool summed, Dim inner)
{
    ArenaMark mark = arena_mark(f->tmp);
    Look l = {.f = f, .facts = facts};
    ix_init(&l.t, f->ctx, f->tmp, f->B, f->T);
    l.t.loose = true;
    l.row = ix_var(&l.t, ix_row(&l.t, facts->rows));
    if (summed)
        look_at_factors(&l, v, inner);
    else
        look_at_inputs(&l, v, inner);
    arena_reset(f->tmp, mark);
}

/* ---- the same again ---- */

enum { WORDS_MAX = 1500 }; /* what is longer is looked at each time */

typedef struct Written {
    const Fusion *f;
    size_t n;
    Vals member;
    uint64_t word[WORDS_MAX];
} Written;

static void put_word(Written *w, uint64_t x)
{
    if (w->n < WORDS_MAX)
        w->word[w->n++] = x;
}

static void put_shape(Written *w, const Shape *s)
{
    uint64_t symbols = 0;
    for (int i = 0; i < s->rank; i++) {
        put_word(w, (uint64_t)s->d[i].n);
        symbols = symbols << 8 | (uint64_t)s->d[i].b << 4 | (uint64_t)s->d[i].t;
    }
    put_word(w, symbols);
}

/* What fuse_input_coords() and fuse_rows() ask of v. */
static void put_node(Written *w, Val v)
{
    const Graph *g = w->f->g;
    const Node *n = node_at(g, v);
    put_word(w, n->op | (uint64_t)n->shape.rank << 16 | (uint64_t)n->n_in << 32);
    put_shape(w, &n->shape);
    if (!n->n_in)
        return;
    put_word(w, (uint64_t)n->a.i);
    put_word(w, (uint64_t)n->a.j);
    put_word(w, n->a.axes | (uint64_t)n->a.n << 32);
    for (size_t i = 0; i < n->a.n; i++)
        put_word(w, (uint64_t)n->a.data[i]);
    for (size_t k = 0; k < n->n_in && op_info((Op)n->op)->class != CLASS_BINARY; k++)
        put_shape(w, shape_of(g, n->in[k]));
}

static uint64_t number_of(Written *w, Val u)
{
    for (size_t i = 0; i < w->member.n; i++)
        if (w->member.v[i] == u)
            return i;
    vec_push(w->f->tmp, &w->member, u);
    return w->member.n - 1;
}

static void put_inputs(Written *w, Val v)
{
    enum { EMPTY, OTHER, MEMBER, HERE };
    const Fusion *f = w->f;
    const Node *n = node_at(f->g, v);
    put_node(w, v);
    for (size_t k = 0; k < n->n_in && w->n < WORDS_MAX; k++) {
        Val u = n->in[k];
        bool home = f->home[u] >= 0;
        int is = fuse_empty(f, u) ? EMPTY : !home ? HERE : may_be_member(f, u) ? MEMBER : OTHER;
        put_word(w, (uint64_t)is | (is == MEMBER ? number_of(w, u) << 8 : 0));
        if (is == MEMBER)
            put_node(w, u);
        else if (is == HERE)
            put_inputs(w, u);
    }
}

static Seen *find_seen(const Written *w, Seen *of)
{
    while (of && !(of->n == w->n && memcmp(of->word, w->word, w->n * sizeof *w->word) == 0))
        of = of->next;
    return of;
}

static Seen *add_seen(const Fusion *f, const Written *w, const RowFacts *facts)
{
    Seen *x = NEW(f->arena, Seen);
    bool *elsewhere = NEW_ARRAY(f->arena, bool, w->member.n + 1);
    for (size_t i = 0; i < w->member.n; i++)
        for (size_t k = 0; k < facts->elsewhere.n; k++)
            elsewhere[i] = elsewhere[i] || facts->elsewhere.v[k] == w->member.v[i];
    const uint64_t *word = memcpy(NEW_ARRAY(f->arena, uint64_t, w->n), w->word, w->n * sizeof *w->word);
    *x = (Seen){NULL, word, w->n, facts->never, elsewhere};
    return x;
}

/* As it was written down before, or looked at now. */
static void look_or_know(Fusion *f, Val v, RowFacts *facts, bool summed, Dim inner)
{
    Written w;
    w.f = f;
    w.n = 0;
    w.member = (Vals){0};
    ArenaMark mark = arena_mark(f->tmp);
    put_shape(&w, &(Shape){.rank = 1, .d = {facts->rows}});
    put_inputs(&w, v);
    if (w.n == WORDS_MAX) {
        look_closely(f, v, facts, summed, inner);
    } else {
        void **first = map_at(&f->by_rows->seen, (uintptr_t)hash_bytes(w.word, w.n * sizeof *w.word, 5) | 1);
        const Seen *same = find_seen(&w, *first);
        for (size_t i = 0; same && i < w.member.n; i++)
            if (same->elsewhere[i])
                vec_push(f->arena, &facts->elsewhere, w.member.v[i]);
        facts->never = same && same->never;
        if (!same) {
            look_closely(f, v, facts, summed, inner);
            Seen *now = add_seen(f, &w, facts);
            now->next = *first;
            *first = now;
        }
    }
    arena_reset(f->tmp, mark);
}

static void look(Fusion *f, Val v, RowFacts *facts)
{
    const Graph *g = f->g;
    const Node *n = node_at(g, v);
    Dim rows = facts->rows, size, inner;
    bool summed = n->op == OP_MATMUL && fuse_rows(g, v, rows) == ROWS_SUMMED;
    bool reduce = op_info((Op)n->op)->class == CLASS_REDUCE;
    facts->looked = true;
    if (summed)
        size = product_depth(g, v);
    else if (!shape_size(reduce ? shape_of(g, n->in[0]) : &n->shape, &size))
        size = DIM(0);
    facts->never = !dim_div(size, rows, &inner) || inner.n == 0;
    if (facts->never || all_plain(f, v, rows))
        return;
    look_or_know(f, v, facts, summed, inner);
}

bool fuse_reads_own_row(Fusion *f, Val v, int32_t group, Dim rows)
{
    RowFacts *facts = facts_of(f, v, rows);
    if (!facts->looked)
        look(f, v, facts);
    for (size_t i = 0; i < facts->elsewhere.n; i++)
        if (f->home[facts->elsewhere.v[i]] == group)
            return false;
    return !facts->never;
}
