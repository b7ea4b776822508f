/* growth_term.c - see growth_term.h: a table of expressions without doubles.
 *
 * The one idea: what is equal by the rules of sums, slices and views is brought to one form when it is made.
 */
#include "growth_term.h"

#include <math.h>

enum { MOST_SUMMED = 256 }; /* longer sums stay nested */

bool factor_same(double a, double b)
{
    if (a == floor(a) && b == floor(b))
        return a == b;
    return fabs(a - b) <= 1e-12 * fmax(fabs(a), fabs(b));
}

Terms *terms_new(Arena *arena)
{
    Terms *t = NEW(arena, Terms);
    t->arena = arena;
    t->n_slot = 1024;
    t->slot = NEW_ARRAY(arena, uint32_t, t->n_slot);
    vec_push(arena, &t->node, (TermNode){0});
    map_init(&t->moved, arena);
    return t;
}

static uint64_t mix(uint64_t h, uint64_t x)
{
    h = (h ^ x) * 0x9e3779b97f4a7c15u;
    return h ^ h >> 29;
}

/* Factors are left out: they are compared with a tolerance. */
static uint64_t hash_of(const TermNode *n)
{
    uint64_t h = mix(mix(n->op, n->n_in), (uint64_t)n->a.i * 31 + (uint64_t)n->a.j);
    for (int k = 0; k < n->shape.rank; k++)
        h = mix(h, (uint64_t)n->shape.d[k].n * 64 + n->shape.d[k].b * 8u + n->shape.d[k].t);
    for (uint16_t i = 0; i < n->n_in; i++)
        h = mix(h, n->in[i].t);
    return mix(mix(h, n->a.axes), (uintptr_t)n->a.site);
}

static bool node_same(const TermNode *a, const TermNode *b)
{
    if (a->op != b->op || a->dtype != b->dtype || a->n_in != b->n_in || !shape_eq(&a->shape, &b->shape) ||
        !attr_same(&a->a, &b->a))
        return false;
    for (uint16_t i = 0; i < a->n_in; i++)
        if (a->in[i].t != b->in[i].t || !factor_same(a->in[i].c, b->in[i].c))
            return false;
    return true;
}

static void grow_slots(Terms *t)
{
    t->n_slot *= 2;
    t->slot = NEW_ARRAY(t->arena, uint32_t, t->n_slot);
    for (Term x = 1; x < t->node.n; x++) {
        size_t at = hash_of(&t->node.v[x]) & (t->n_slot - 1);
        while (t->slot[at])
            at = (at + 1) & (t->n_slot - 1);
        t->slot[at] = x;
    }
}

Term term_make(Terms *t, Op op, DType dtype, const TermIn *in, size_t n_in, const Attr *a, const Shape *shape)
{
    TermNode n = {
        .op = (uint8_t)op, .dtype = (uint8_t)dtype, .n_in = (uint16_t)n_in, .in = (TermIn *)in, .shape = *shape};
    if (a)
        n.a = *a;
    size_t at = hash_of(&n) & (t->n_slot - 1);
    for (; t->slot[at]; at = (at + 1) & (t->n_slot - 1))
        if (node_same(&t->node.v[t->slot[at]], &n))
            return t->slot[at];
    n.in = NEW_ARRAY(t->arena, TermIn, n_in + 1);
    for (size_t i = 0; i < n_in; i++)
        n.in[i] = in[i];
    t->slot[at] = (uint32_t)t->node.n;
    vec_push(t->arena, &t->node, n);
    Term made = (Term)t->node.n - 1;
    if (t->node.n * 2 > t->n_slot)
        grow_slots(t);
    return made;
}

Term term_one(Terms *t, int rank)
{
    Shape s = {.rank = (uint8_t)rank};
    for (int k = 0; k < rank; k++)
        s.d[k] = DIM(1);
    return term_make(t, OP_FILL, DT_REAL, NULL, 0, &(Attr){.x = 1}, &s);
}

bool term_is_one(const Terms *t, Term x) { return x && t->node.v[x].op == OP_FILL; }

/* Where the index along one axis is that along the other. */
Term term_identity(Terms *t, int64_t n)
{
    Shape whole = {.rank = 2, .d = {DIM(n), DIM(n)}};
    TermIn index[2];
    for (int k = 0; k < 2; k++) {
        Shape s = {.rank = 2, .d = {DIM(1), DIM(1)}};
        s.d[k] = DIM(n);
        index[k] = (TermIn){1, term_make(t, OP_IOTA, DT_INT, NULL, 0, &(Attr){.i = k}, &s)};
    }
    return term_make(t, OP_EQ, DT_REAL, index, 2, NULL, &whole);
}

bool term_is_identity(const Terms *t, Term x)
{
    const TermNode *n = term_at(t, x);
    return x && n->op == OP_EQ && n->shape.rank == 2 && term_at(t, n->in[0].t)->op == OP_IOTA &&
           term_at(t, n->in[1].t)->op == OP_IOTA && term_at(t, n->in[0].t)->a.i == 0 &&
           term_at(t, n->in[1].t)->a.i == 1 && dim_eq(n->shape.d[0], n->shape.d[1]);
}

bool term_is_updated(const Terms *t, Term x, Name site)
{
    const TermNode *n = term_at(t, x);
    return n->op == OP_MIN && n->a.site == site;
}

Term term_slice(Terms *t, Term x, int axis, int64_t from, int64_t count)
{
    Shape s = term_at(t, x)->shape;
    if (from == 0 && s.d[axis].n == count)
        return x;
    s.d[axis] = DIM(count);
    const TermNode *n = term_at(t, x);
    if (n->op == OP_SLICE && n->a.i == axis) {
        from += n->a.j;
        x = n->in[0].t;
        if (from == 0 && term_at(t, x)->shape.d[axis].n == count)
            return x;
    }
    return term_make(t, OP_SLICE, (DType)term_at(t, x)->dtype, &(TermIn){1, x}, 1, &(Attr){.i = axis, .j = from}, &s);
}

/* The shape of an input `had` of an elementwise term of shape `s` that becomes one of shape `to`: of axes that are split or
 * joined together it must have all or, as it does not vary along them, none. */
static bool move_shape(const Shape *s, const Shape *to, const Shape *had, Shape *out)
{
    out->rank = to->rank;
    for (int i = 0, j = 0; i < s->rank || j < to->rank;) {
        int i0 = i, j0 = j;
        Dim p = i < s->rank ? s->d[i++] : DIM(1), q = j < to->rank ? to->d[j++] : DIM(1);
        while (!dim_eq(p, q)) {
            bool less = p.n <= q.n && p.b <= q.b && p.t <= q.t;
            if (less && i < s->rank ? !dim_mul(p, s->d[i++], &p) : j == to->rank || !dim_mul(q, to->d[j++], &q))
                return false;
        }
        bool all = true, none = true;
        for (int k = i0; k < i; k++) {
            all &= dim_eq(had->d[k], s->d[k]);
            none &= dim_eq(had->d[k], DIM(1));
        }
        if (!all && !none)
            return false;
        for (int k = j0; k < j; k++)
            out->d[k] = all ? to->d[k] : DIM(1);
    }
    return true;
}

/* An elementwise term whose inputs are moved instead. 0: it cannot be. */
static Term move_inputs(Terms *t, Term x, const Shape *to)
{
    const TermNode n = *term_at(t, x); /* the array may move */
    TermIn *in = NEW_ARRAY(t->arena, TermIn, n.n_in + 1u);
    for (uint16_t i = 0; i < n.n_in; i++) {
        Shape s;
        if (!move_shape(&n.shape, to, &term_at(t, n.in[i].t)->shape, &s))
            return 0;
        in[i] = (TermIn){n.in[i].c, term_reshape(t, n.in[i].t, &s)};
    }
    if (n.op == OP_ADD || n.op == OP_MUL) /* in the order of terms, as when they are made */
        for (uint16_t i = 1; i < n.n_in; i++)
            for (uint16_t k = i; k > 0 && in[k].t < in[k - 1].t; k--) {
                TermIn swapped = in[k];
                in[k] = in[k - 1];
                in[k - 1] = swapped;
            }
    bool in_form = n.op != OP_ADD || in[0].c == 1;
    return in_form ? term_make(t, (Op)n.op, (DType)n.dtype, in, n.n_in, &n.a, to) : 0;
}

Term term_reshape(Terms *t, Term x, const Shape *to)
{
    if (term_is_one(t, x))
        return term_one(t, to->rank);
    if (term_at(t, x)->op == OP_RESHAPE)
        x = term_at(t, x)->in[0].t;
    if (shape_eq(&term_at(t, x)->shape, to))
        return x;
    Term plain = term_make(t, OP_RESHAPE, (DType)term_at(t, x)->dtype, &(TermIn){1, x}, 1, NULL, to);
    if (!op_is_map((Op)term_at(t, x)->op))
        return plain;
    void **known = map_at(&t->moved, plain);
    if (!*known) {
        Term moved = move_inputs(t, x, to);
        moved = moved ? moved : plain;
        *map_at(&t->moved, plain) = (void *)(uintptr_t)moved;
        return moved;
    }
    return (Term)(uintptr_t)*known;
}

Term term_spread(Terms *t, Term x, int axis, Dim extent)
{
    Shape s = term_at(t, x)->shape;
    if (dim_eq(s.d[axis], extent))
        return x;
    s.d[axis] = extent;
    if (term_at(t, x)->op == OP_BROADCAST)
        x = term_at(t, x)->in[0].t;
    return term_make(t, OP_BROADCAST, (DType)term_at(t, x)->dtype, &(TermIn){1, x}, 1, NULL, &s);
}

typedef struct Addends {
    TermIn v[2 * MOST_SUMMED];
    double largest[2 * MOST_SUMMED]; /* of what was added up to v[i].c: a part of it that is smaller is rounding */
    size_t n;
} Addends;

static void add_one(Addends *a, TermIn x)
{
    size_t i = 0;
    while (i < a->n && a->v[i].t < x.t)
        i++;
    if (i < a->n && a->v[i].t == x.t) {
        a->v[i].c += x.c;
        a->largest[i] = fmax(a->largest[i], fabs(x.c));
        return;
    }
    memmove(a->v + i + 1, a->v + i, (a->n - i) * sizeof *a->v);
    memmove(a->largest + i + 1, a->largest + i, (a->n - i) * sizeof *a->largest);
    a->v[i] = x;
    a->largest[i] = fabs(x.c);
    a->n++;
}

static void add_all(const Terms *t, Addends *a, TermIn x)
{
    const TermNode *n = term_at(t, x.t);
    if (n->op != OP_ADD || n->n_in + a->n >= MOST_SUMMED)
        add_one(a, x);
    else
        for (uint16_t i = 0; i < n->n_in; i++)
            add_one(a, (TermIn){x.c * n->in[i].c, n->in[i].t});
}

TermIn term_sum(Terms *t, TermIn x, TermIn y)
{
    Addends a;
    a.n = 0;
    add_all(t, &a, x);
    add_all(t, &a, y);
    size_t n = 0;
    for (size_t i = 0; i < a.n; i++)
        if (fabs(a.v[i].c) > 1e-12 * a.largest[i])
            a.v[n++] = a.v[i];
    if (n == 0)
        return (TermIn){0, 0};
    double c = a.v[0].c;
    Shape s = term_at(t, a.v[0].t)->shape;
    for (size_t i = 0; i < n; i++) {
        const Shape *other = &term_at(t, a.v[i].t)->shape;
        a.v[i].c /= c;
        for (int k = 0; k < s.rank; k++)
            if (dim_eq(s.d[k], DIM(1)))
                s.d[k] = other->d[k];
    }
    if (n == 1)
        return (TermIn){c, a.v[0].t};
    return (TermIn){c, term_make(t, OP_ADD, (DType)term_at(t, x.t)->dtype, a.v, n, NULL, &s)};
}
