/* growth_algebra.c - see growth_algebra.h.
 *
 * In:  the graph of a forward pass.   Out: an equal one, in which x - x is 0, a softmax over one entry 1, the cross-entropy of
 * one class 0, and a clamp of what never leaves its borders nothing.
 * The one idea: of every value three things are kept, a range of numbers that holds it, a sum and a product of other values
 * that it is. Where terms cancel the value is made again of what is left. No rule looks at a weight's number.
 */
#include "growth_algebra.h"

#include "compiler/graph/op.h"
#include "compiler/pass/rewrite.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

enum { MOST = 6 };                     /* other values in a sum or a product; of more the value stands for itself */
enum { SYMBOL_B = -1, SYMBOL_T = -2 }; /* the extents that a graph leaves open, among the factors of a product */

/* of[i] times n[i] added up, and c; or of[i] to the power n[i] multiplied, and c. */
typedef struct Form {
    double c, n[MOST];
    int64_t of[MOST];
    int count;
    bool loose; /* of a product: up to a sign that changes only at zeros */
} Form;
typedef struct Fact {
    double lo, hi;
    const Form *sum, *product; /* NULL: the value stands for itself */
} Fact;
typedef struct Algebra {
    Arena *memory;
    Graph *g;
    VEC(Fact) fact;    /* by value of g */
    VEC(Val) chain;    /* the value before it with the same hash */
    Map made;          /* hash -> the last value that has it */
    int64_t positions; /* of every sequence; 0: not known */
    bool drops;
} Algebra;

static Dim dim_of(const Algebra *s, Dim d)
{
    if (s->positions == 1)
        d.t = 0;
    return d;
}

static Shape shape_as(const Algebra *s, const Shape *shape)
{
    Shape out = *shape;
    for (int k = 0; k < out.rank; k++)
        out.d[k] = dim_of(s, out.d[k]);
    return out;
}

static bool is_one(Dim d) { return dim_eq(d, DIM(1)); }

/* 0: not known. */
static int64_t extent_of(const Algebra *s, Dim d) { return dim_static(d) ? d.n : dim_eq(d, DIM_T) ? s->positions : 0; }

static bool is_none(Dim d) { return dim_eq(d, DIM(0)); }

static const Fact *fact(const Algebra *s, Val v) { return &s->fact.v[v]; }

static bool is_number(const Algebra *s, Val v, double *c)
{
    *c = fact(s, v)->lo;
    return fact(s, v)->lo == fact(s, v)->hi && isfinite(*c);
}

static bool is_zero(const Algebra *s, Val v)
{
    double c;
    return is_number(s, v, &c) && c == 0;
}

/* ---- values that are made once ---- */

static uint64_t hash_of(Op op, const Val *in, size_t n, const Attr *a, const Shape *given)
{
    uint64_t h = (uint64_t)op * 31 + (uint64_t)a->i * 7 + (uint64_t)a->j * 5 + a->axes + (uintptr_t)a->site;
    for (size_t i = 0; i < n; i++)
        h = (h ^ in[i]) * 0x9e3779b97f4a7c15u;
    for (int k = 0; given && k < given->rank; k++)
        h = (h ^ (uint64_t)given->d[k].n) * 0x9e3779b97f4a7c15u + given->d[k].b * 3u + given->d[k].t;
    return (h ^ h >> 29) | 1;
}

static Val make(Algebra *s, Op op, const Val *in, size_t n, const Attr *a, const Shape *given)
{
    static const Attr none;
    a = a ? a : &none;
    void **last = map_at(&s->made, hash_of(op, in, n, a, given));
    for (Val v = (Val)(uintptr_t)*last; v; v = s->chain.v[v]) {
        const Node *m = node_at(s->g, v);
        if (m->op == op && m->n_in == n && (!n || !memcmp(m->in, in, n * sizeof *in)) && attr_same(&m->a, a) &&
            (!given || shape_eq(&m->shape, given)))
            return v;
    }
    Val v = ir_node(s->g, op, in, n, a, given);
    while (s->fact.n <= v) {
        vec_push(s->memory, &s->fact, ((Fact){-INFINITY, INFINITY, NULL, NULL}));
        vec_push(s->memory, &s->chain, 0);
    }
    s->chain.v[v] = (Val)(uintptr_t)*last;
    *last = (void *)(uintptr_t)v;
    return v;
}

/* A scalar, everywhere in a shape. */
static Val spread(Algebra *s, Val scalar, const Shape *to)
{
    Shape ones = {.rank = to->rank};
    for (int k = 0; k < to->rank; k++)
        ones.d[k] = DIM(1);
    Val v = to->rank ? make(s, OP_RESHAPE, &scalar, 1, NULL, &ones) : scalar;
    Val all = shape_eq(&ones, to) ? v : make(s, OP_BROADCAST, &v, 1, NULL, to);
    s->fact.v[v] = s->fact.v[all] = s->fact.v[scalar];
    return all;
}

static Val number(Algebra *s, double c, const Shape *shape, DType dtype)
{
    Val v = make(s, OP_FILL, NULL, 0, &(Attr){.x = c, .j = dtype == DT_INT}, NULL);
    s->fact.v[v].lo = s->fact.v[v].hi = c;
    return spread(s, v, shape);
}

/* ---- sums and products ---- */

static Form form_of(const Algebra *s, Val v, bool product)
{
    const Form *f = product ? fact(s, v)->product : fact(s, v)->sum;
    double c;
    if (is_number(s, v, &c))
        return (Form){.c = c};
    return f ? *f : (Form){.c = product, .of = {v}, .n = {1}, .count = 1};
}

/* Adds `times` of b, or multiplies by b to that power; false: too many. */
static bool join(Form *a, const Form *b, double times, bool product)
{
    a->c = product ? a->c * pow(b->c, times) : a->c + times * b->c;
    a->loose |= b->loose;
    for (int i = 0; i < b->count; i++) {
        int k = 0;
        while (k < a->count && a->of[k] != b->of[i])
            k++;
        if (k == MOST)
            return false;
        if (k == a->count) {
            a->of[k] = b->of[i];
            a->n[k] = 0;
            a->count++;
        }
        double sum = a->n[k] + times * b->n[i];
        a->n[k] = fabs(sum) <= 1e-12 * fabs(a->n[k]) ? 0 : sum;
    }
    int left = 0;
    for (int k = 0; k < a->count; k++)
        if (a->n[k] != 0) {
            a->of[left] = a->of[k];
            a->n[left++] = a->n[k];
        }
    a->count = left;
    return isfinite(a->c);
}

/* The root of a product, or another power that is no whole number: of what may be negative the sign is lost. */
static bool power(const Algebra *s, Form *a, double times)
{
    bool positive = a->c >= 0;
    for (int k = 0; k < a->count && times != floor(times); k++) {
        bool above = a->of[k] < 0 || fact(s, (Val)a->of[k])->lo >= 0, even = fmod(a->n[k], 2) == 0;
        positive &= above || even;
        a->loose |= !above;
    }
    Form one = {.c = 1};
    if (!positive || !join(&one, a, times, true))
        return false;
    *a = one;
    return true;
}

static const Form *keep(Algebra *s, const Form *f)
{
    Form *own = NEW(s->memory, Form);
    *own = *f;
    return own;
}

static Val settle(Algebra *s, Val v);

/* As make(), and what is known of it. */
static Val made(Algebra *s, Op op, const Val *in, size_t n, const Shape *given)
{
    return settle(s, make(s, op, in, n, NULL, given));
}

/* What a sum or a product is when it is one number, or one value as it is, or a sum of fewer than it was made of; 0: none. */
static Val remade(Algebra *s, const Form *f, int made_of, bool product, Val old)
{
    const Node *n = node_at(s->g, old);
    Shape shape = n->shape;
    if (f->count == 0 && !f->loose)
        return number(s, f->c, &shape, (DType)n->dtype);
    if (f->count == 0) /* a sign */
        return make(s, OP_STOP, &old, 1, &(Attr){.i = STOP_GRADIENT}, NULL);
    double first = product ? f->c : f->n[0];
    bool itself = f->count == 1 && first == 1 && f->n[0] == 1 && (product || f->c == 0);
    if (f->loose || (!itself && f->count >= made_of))
        return 0;
    for (int k = 0; k < f->count; k++)
        if (f->of[k] < 0 || (product && f->n[k] != 1))
            return 0;
    Val sum = (Val)f->of[0];
    if (first != 1)
        sum = made(s, OP_MUL, (Val[]){number(s, first, &shape, DT_REAL), sum}, 2, NULL);
    for (int k = 1; k < f->count; k++) {
        Val next = (Val)f->of[k];
        if (!product && f->n[k] != 1)
            next = made(s, OP_MUL, (Val[]){number(s, f->n[k], &shape, DT_REAL), next}, 2, NULL);
        sum = made(s, product ? OP_MUL : OP_ADD, (Val[]){sum, next}, 2, NULL);
    }
    if (!product && f->c != 0)
        sum = made(s, OP_ADD, (Val[]){sum, number(s, f->c, &shape, DT_REAL)}, 2, NULL);
    if (!itself)
        *(product ? &s->fact.v[sum].product : &s->fact.v[sum].sum) = keep(s, f);
    return sum == old ? 0 : sum;
}

/* The sum that v is; *of: how many values it is made of. False: it is none. */
static bool sum_of(const Algebra *s, const Node *n, Form *f, int *of)
{
    double c;
    *f = form_of(s, n->in[0], false);
    *of = f->count;
    Form zero = {0};
    switch ((Op)n->op) {
    case OP_NEG:
        *f = zero;
        {
            Form a = form_of(s, n->in[0], false);
            return join(f, &a, -1, false);
        }
    case OP_ADD:
    case OP_SUB: {
        Form b = form_of(s, n->in[1], false);
        *of += b.count;
        return join(f, &b, n->op == OP_ADD ? 1 : -1, false);
    }
    case OP_MUL:
        for (int i = 0; i < 2; i++)
            if (is_number(s, n->in[1 - i], &c)) {
                Form a = form_of(s, n->in[i], false);
                *f = zero;
                *of = a.count;
                return join(f, &a, c, false);
            }
        return false;
    case OP_DIV:
        if (!is_number(s, n->in[1], &c) || c == 0)
            return false;
        *f = zero;
        {
            Form a = form_of(s, n->in[0], false);
            return join(f, &a, 1 / c, false);
        }
    default: return false;
    }
}

static bool product_of(const Algebra *s, const Node *n, Form *f, int *of)
{
    double c;
    *f = form_of(s, n->in[0], true);
    *of = f->count;
    switch ((Op)n->op) {
    case OP_NEG: f->c = -f->c; return true;
    case OP_MUL:
    case OP_DIV: {
        Form b = form_of(s, n->in[1], true);
        *of += b.count;
        return (n->op == OP_MUL || b.c != 0) && join(f, &b, n->op == OP_MUL ? 1 : -1, true);
    }
    case OP_SQRT: return power(s, f, 0.5);
    case OP_POW: return is_number(s, n->in[1], &c) && power(s, f, c);
    default: return false;
    }
}

/* ---- ranges ---- */

#define BELOW_ONE (1 - DBL_EPSILON / 2)

static double value_at(const Algebra *s, Op op, double x) { return op_of_number(s->g->ctx, op, x); }

static void widen(Fact *f, double x)
{
    if (isnan(x)) {
        f->lo = -INFINITY;
        f->hi = INFINITY;
    }
    f->lo = x < f->lo ? x : f->lo;
    f->hi = x > f->hi ? x : f->hi;
}

/* Of two ranges, by their ends; 0 times what has no end is taken as 0. */
static Fact by_ends(Op op, Fact a, Fact b)
{
    Fact out = {INFINITY, -INFINITY, NULL, NULL};
    if (op == OP_ADD)
        return (Fact){a.lo + b.lo, a.hi + b.hi, NULL, NULL};
    if (op == OP_SUB)
        return (Fact){a.lo - b.hi, a.hi - b.lo, NULL, NULL};
    for (int i = 0; i < 4; i++) {
        double x = i & 1 ? a.hi : a.lo, y = i & 2 ? b.hi : b.lo;
        widen(&out, op == OP_DIV ? x / y : x == 0 || y == 0 ? 0 : x * y);
    }
    return out;
}

static Fact range_of_one(const Algebra *s, const Node *n, Fact a)
{
    Op op = (Op)n->op;
    Fact all = {-INFINITY, INFINITY, NULL, NULL};
    switch (op) {
    case OP_NEG: return (Fact){-a.hi, -a.lo, NULL, NULL};
    case OP_LOG:
    case OP_SQRT:
        if (!(a.lo > 0) && !(op == OP_SQRT && a.lo >= 0))
            return op == OP_SQRT ? (Fact){0, INFINITY, NULL, NULL} : all;
        return (Fact){value_at(s, op, a.lo), value_at(s, op, a.hi), NULL, NULL};
    case OP_EXP:
    case OP_SIGMOID:
    case OP_SOFTPLUS: { /* above 0, how far down x may go, and below 1 */
        double least = value_at(s, op, a.lo), most = value_at(s, op, a.hi);
        return (Fact){least > 0 ? least : DBL_TRUE_MIN, op == OP_SIGMOID ? fmin(most, BELOW_ONE) : most, NULL, NULL};
    }
    case OP_TANH:
    case OP_ERF:
        return (Fact){fmax(value_at(s, op, a.lo), -BELOW_ONE), fmin(value_at(s, op, a.hi), BELOW_ONE), NULL, NULL};
    case OP_RELU:
    case OP_FLOOR:
    case OP_CEIL:
    case OP_ROUND:
    case OP_SIGN: {
        Fact f = {value_at(s, op, a.lo), value_at(s, op, a.hi), NULL, NULL};
        return isnan(f.lo) || isnan(f.hi) ? all : f;
    }
    case OP_ABS: return a.lo >= 0 ? a : (Fact){a.hi < 0 ? -a.hi : 0, fmax(fabs(a.lo), fabs(a.hi)), NULL, NULL};
    case OP_SIN:
    case OP_COS: return (Fact){-1, 1, NULL, NULL};
    case OP_GELU:
    case OP_GELU_TANH:
    case OP_SILU: return (Fact){a.lo >= 0 ? 0 : -0.3, fmax(0, a.hi), NULL, NULL};
    case OP_TO_INT: return (Fact){trunc(a.lo), trunc(a.hi), NULL, NULL};
    case OP_TO_REAL:
    case OP_ROUND_TO:
    case OP_STOP: return a;
    default: return all;
    }
}

/* Whether a is never below b, for what they are made of. */
static bool at_least(const Algebra *s, Val a, Val b, int depth)
{
    const Node *m = node_at(s->g, a), *n = node_at(s->g, b);
    if (a == b || fact(s, a)->lo >= fact(s, b)->hi)
        return true;
    if (!depth)
        return false;
    if (m->op == OP_MAX && (at_least(s, m->in[0], b, depth - 1) || at_least(s, m->in[1], b, depth - 1)))
        return true;
    if (n->op == OP_MIN && (at_least(s, a, n->in[0], depth - 1) || at_least(s, a, n->in[1], depth - 1)))
        return true;
    if ((m->op == OP_RELU || m->op == OP_ABS) && at_least(s, m->in[0], b, depth - 1))
        return true;
    return m->op == OP_MIN && at_least(s, m->in[0], b, depth - 1) && at_least(s, m->in[1], b, depth - 1);
}

enum { DEEP = 4 };

/* Whether in[1] of a quotient is the sum of in[0] over *axes. */
static bool by_own_sum(const Algebra *s, const Node *n, uint32_t *axes)
{
    const Node *d = n->op == OP_DIV ? node_at(s->g, n->in[1]) : NULL;
    while (d && d->op == OP_BROADCAST)
        d = node_at(s->g, d->in[0]);
    if (!d || d->op != OP_SUM || d->in[0] != n->in[0])
        return false;
    *axes = d->a.axes;
    return true;
}

static Fact range_of_map(const Algebra *s, const Node *n)
{
    Fact a = *fact(s, n->in[0]), b = n->n_in > 1 ? *fact(s, n->in[1]) : a, all = {-INFINITY, INFINITY, NULL, NULL};
    uint32_t axes;
    double c;
    switch ((Op)n->op) {
    case OP_ADD:
    case OP_SUB: return by_ends((Op)n->op, a, b);
    case OP_MUL:
        return n->in[0] == n->in[1] ? (Fact){0, fmax(a.lo * a.lo, a.hi * a.hi), NULL, NULL} : by_ends(OP_MUL, a, b);
    case OP_DIV:
        if (by_own_sum(s, n, &axes) && a.lo >= 0)
            return (Fact){a.lo > 0 ? DBL_TRUE_MIN : 0, 1, NULL, NULL};
        return b.lo > 0 && isfinite(b.hi) ? by_ends(OP_DIV, a, b)
               : b.lo > 0 && a.lo >= 0    ? (Fact){a.lo > 0 ? DBL_TRUE_MIN : 0, a.hi / b.lo, NULL, NULL}
                                          : all;
    case OP_POW:
        if (is_number(s, n->in[1], &c) && (a.lo > 0 || (a.lo >= 0 && c >= 0)))
            return (Fact){fmin(pow(a.lo, c), pow(a.hi, c)), fmax(pow(a.lo, c), pow(a.hi, c)), NULL, NULL};
        return is_number(s, n->in[1], &c) && fmod(c, 2) == 0 ? (Fact){0, INFINITY, NULL, NULL} : all;
    case OP_MIN: return (Fact){fmin(a.lo, b.lo), fmin(a.hi, b.hi), NULL, NULL};
    case OP_MAX: return (Fact){fmax(a.lo, b.lo), fmax(a.hi, b.hi), NULL, NULL};
    case OP_LT: return (Fact){a.hi < b.lo, !at_least(s, n->in[0], n->in[1], DEEP), NULL, NULL};
    case OP_LE: return (Fact){at_least(s, n->in[1], n->in[0], DEEP), !(a.lo > b.hi), NULL, NULL};
    case OP_EQ:
        return n->in[0] == n->in[1]           ? (Fact){1, 1, NULL, NULL}
               : a.hi < b.lo || a.lo > b.hi   ? (Fact){0, 0, NULL, NULL}
               : a.lo == b.hi && a.hi == b.lo ? (Fact){1, 1, NULL, NULL}
                                              : (Fact){0, 1, NULL, NULL};
    case OP_WHERE:
        b = *fact(s, n->in[1]);
        widen(&b, fact(s, n->in[2])->lo);
        widen(&b, fact(s, n->in[2])->hi);
        return b;
    case OP_MOD: return all;
    default: return range_of_one(s, n, a);
    }
}

static Fact range_of(const Algebra *s, Val v)
{
    const Node *n = node_at(s->g, v);
    Fact f = n->n_in ? *fact(s, n->in[0]) : (Fact){-INFINITY, INFINITY, NULL, NULL};
    if (op_is_map((Op)n->op))
        return range_of_map(s, n);
    switch ((Op)n->op) {
    case OP_FILL: return (Fact){n->a.x, n->a.x, NULL, NULL};
    case OP_DIM:
        return dim_static(n->a.dim) ? (Fact){(double)n->a.dim.n, (double)n->a.dim.n, NULL, NULL}
                                    : (Fact){1, INFINITY, NULL, NULL};
    case OP_CONST:
        f = (Fact){INFINITY, -INFINITY, NULL, NULL};
        for (size_t i = 0; i < n->a.n; i++)
            widen(&f, n->a.data[i]);
        return f;
    case OP_IOTA:
        return dim_static(n->shape.d[n->a.i]) ? (Fact){0, (double)n->shape.d[n->a.i].n - 1, NULL, NULL}
                                              : (Fact){0, INFINITY, NULL, NULL};
    case OP_RAND: return (Fact){0, BELOW_ONE, NULL, NULL};
    case OP_RESHAPE:
    case OP_PERMUTE:
    case OP_BROADCAST:
    case OP_SLICE:
    case OP_AMAX:
    case OP_ROLL: return f;
    case OP_PAD:
    case OP_GATHER:
    case OP_PICK: widen(&f, 0); return f;
    case OP_SHIFT: widen(&f, n->a.x); return f;
    case OP_CONCAT:
        for (uint16_t i = 1; i < n->n_in; i++) {
            widen(&f, fact(s, n->in[i])->lo);
            widen(&f, fact(s, n->in[i])->hi);
        }
        return f;
    case OP_SUM:
    case OP_CUMSUM: {
        double least = 1, most = 1; /* so many are added up */
        for (int k = 0; k < n->shape.rank; k++)
            if (n->op == OP_SUM ? n->a.axes >> k & 1 : n->a.i == k) {
                Dim d = shape_of(s->g, n->in[0])->d[k];
                if (dim_static(d) && d.n == 0)
                    return (Fact){0, 0, NULL, NULL};
                least *= dim_static(d) ? (double)d.n : 1;
                most *= dim_static(d) ? (double)d.n : INFINITY;
            }
        least = n->op == OP_SUM ? least : 1;
        f.lo = f.lo == 0 ? 0 : f.lo * (f.lo < 0 ? most : least);
        f.hi = f.hi == 0 ? 0 : f.hi * (f.hi > 0 ? most : least);
        return f;
    }
    case OP_MATMUL:
    case OP_EXPERT_MATMUL: {
        const Fact *b = fact(s, n->in[1]);
        if (is_zero(s, n->in[0]) || is_zero(s, n->in[1]))
            return (Fact){0, 0, NULL, NULL};
        return f.lo >= 0 && b->lo >= 0 ? (Fact){0, INFINITY, NULL, NULL} : (Fact){-INFINITY, INFINITY, NULL, NULL};
    }
    default: return (Fact){-INFINITY, INFINITY, NULL, NULL};
    }
}

/* ---- values that are others ---- */

/* Of an elementwise operator: one of its inputs, or what it is the other way round of. */
static Val same_as_map(const Algebra *s, Val v)
{
    const Node *n = node_at(s->g, v);
    Val a = n->in[0], b = n->n_in > 1 ? n->in[1] : 0;
    const Fact *fa = fact(s, a);
    const Node *of = node_at(s->g, a);
    switch ((Op)n->op) {
    case OP_RELU:
    case OP_ABS: return fa->lo >= 0 ? a : 0;
    case OP_MAX: return at_least(s, a, b, DEEP) ? a : at_least(s, b, a, DEEP) ? b : 0;
    case OP_MIN: return at_least(s, a, b, DEEP) ? b : at_least(s, b, a, DEEP) ? a : 0;
    case OP_LOG: return of->op == OP_EXP ? of->in[0] : 0;
    case OP_EXP: return of->op == OP_LOG ? of->in[0] : 0;
    case OP_WHERE: {
        double c;
        if (is_number(s, a, &c))
            return n->in[c != 0 ? 1 : 2];
        return b == n->in[2] ? b : 0;
    }
    default: return 0;
    }
}

static bool sums_one(const Algebra *s, const Node *n)
{
    uint32_t axes;
    return by_own_sum(s, node_at(s->g, n->in[0]), &axes) && axes == n->a.axes;
}

/* Attention of one key: the heads of the values, each as often as queries read it. */
static Val one_key(Algebra *s, const Node *n)
{
    const Shape *k = shape_of(s->g, n->in[1]);
    Shape v = *shape_of(s->g, n->in[2]), five = {.rank = 5}, out = n->shape;
    bool itself = n->a.j == 1 && dim_eq(k->d[1], out.d[1]), drops = s->drops && n->a.z > 0;
    if ((!is_one(k->d[1]) && !itself) || drops)
        return 0;
    if (dim_eq(v.d[2], out.d[2]) && dim_eq(v.d[1], out.d[1]))
        return n->in[2];
    if (!dim_static(out.d[2]) || !dim_eq(v.d[1], out.d[1]))
        return 0;
    five = (Shape){.rank = 5, .d = {v.d[0], v.d[1], v.d[2], DIM(1), v.d[3]}};
    Val split = make(s, OP_RESHAPE, &n->in[2], 1, NULL, &five);
    five.d[3] = DIM(out.d[2].n / v.d[2].n);
    Val all = make(s, OP_BROADCAST, &split, 1, NULL, &five);
    return make(s, OP_RESHAPE, &all, 1, NULL, &out);
}

static const Node *behind_views(const Algebra *s, Val v)
{
    const Node *n = node_at(s->g, v);
    while (n->op == OP_BROADCAST || n->op == OP_RESHAPE)
        n = node_at(s->g, n->in[0]);
    return n;
}

/* The only entry there is, where the index is one: ids of files that a table has not are refused
 * when they are read, and those below 0 are no ids. 0: there are more, or the index is computed. */
static Val only_entry(Algebra *s, const Node *n)
{
    const Node *index = behind_views(s, n->in[1]);
    Shape shape = n->shape;
    bool ids = index->op == OP_EXT && s->g->ext.v[index->a.i].kind == EXT_INPUT;
    const Shape *of = shape_of(s->g, n->in[0]);
    if (!ids || !is_one(of->d[shape.rank - 1]) || !shape_eq(of, &shape))
        return 0;
    Val there = made(s, OP_LE, (Val[]){number(s, 0, &shape, DT_INT), n->in[1]}, 2, NULL);
    Val none = number(s, 0, &shape, (DType)n->dtype);
    return made(s, OP_WHERE, (Val[]){there, n->in[0], none}, 3, NULL);
}

/* A choice, or a comparison, of what has one element along its last axis, without that axis: of
 * values without it. 0: it is another, or another reshape. */
static Val chosen_without(Algebra *s, const Node *n)
{
    const Node of = *node_at(s->g, n->in[0]);
    Shape shape = n->shape;
    Val in[3];
    bool compares = of.op == OP_LE && behind_views(s, of.in[1])->op == OP_EXT;
    bool more = of.shape.rank == shape.rank + 1 && is_one(of.shape.d[shape.rank]);
    if ((of.op != OP_WHERE && !compares) || !more)
        return 0;
    for (int k = 0; k < shape.rank; k++)
        if (!dim_eq(shape.d[k], of.shape.d[k]))
            return 0;
    for (uint16_t i = 0; i < of.n_in; i++) {
        const Node *was = node_at(s->g, of.in[i]);
        bool back = compares && was->op == OP_RESHAPE && shape_eq(shape_of(s->g, was->in[0]), &shape);
        in[i] = back ? was->in[0] : made(s, OP_RESHAPE, &of.in[i], 1, &shape);
    }
    return made(s, (Op)of.op, in, of.n_in, NULL);
}

/* The value where `mask` is not 0. */
static Val where_true(Algebra *s, Val v, Val mask, int depth)
{
    const Node n = *node_at(s->g, v);
    Val in[3];
    bool other = false;
    if (n.op == OP_WHERE && n.in[0] == mask)
        return n.in[1];
    if (!depth || !op_is_map((Op)n.op) || n.n_in > COUNT_OF(in))
        return v;
    for (uint16_t i = 0; i < n.n_in; i++) {
        in[i] = where_true(s, n.in[i], mask, depth - 1);
        other |= in[i] != n.in[i];
    }
    return other ? settle(s, make(s, (Op)n.op, in, n.n_in, &n.a, NULL)) : v;
}

/* A choice, or a product with a mask, of what only matters where that is not 0. 0: it is none, or
 * that says nothing. */
static Val masked(Algebra *s, const Node *n)
{
    for (uint16_t i = 0; i < 2; i++) {
        Op mask = (Op)node_at(s->g, n->in[i])->op;
        bool is_mask = mask == OP_LE || mask == OP_LT || mask == OP_EQ;
        if (n->op == OP_MUL ? !is_mask : n->op != OP_WHERE || i)
            continue;
        Val in[3] = {n->in[0], n->in[1], n->n_in > 2 ? n->in[2] : 0};
        in[1 - i] = where_true(s, n->in[1 - i], n->in[i], DEEP);
        if (in[1 - i] != n->in[1 - i])
            return made(s, (Op)n->op, in, n->n_in, NULL);
    }
    return 0;
}

/* A comparison of two sums of which some values cancel, as one of 0 with what is left. 0: nothing cancels. */
static Val compared(Algebra *s, const Node *n)
{
    bool compares = n->op == OP_LT || n->op == OP_LE || n->op == OP_EQ;
    if (!compares || node_at(s->g, n->in[0])->dtype != DT_REAL)
        return 0;
    Form rest = form_of(s, n->in[1], false), less = form_of(s, n->in[0], false);
    int of = rest.count + less.count;
    Shape shape = n->shape;
    if (!join(&rest, &less, -1, false) || rest.count > of - 2)
        return 0;
    Val left = remade(s, &rest, of, false, n->in[0]);
    return left ? made(s, (Op)n->op, (Val[]){number(s, 0, &shape, DT_REAL), left}, 2, NULL) : 0;
}

/* How often each index is among all of them: once for each row that was looked at. */
static bool counts_all(const Algebra *s, const Node *n)
{
    const Node *eq = node_at(s->g, n->in[0]);
    int r = n->shape.rank;
    if (eq->op != OP_EQ || r < 2 || !(n->a.axes >> (r - 2) & 1) || n->a.axes >> (r - 1) & 1)
        return false;
    for (int i = 0; i < 2; i++) {
        const Node *top = behind_views(s, eq->in[i]), *each = behind_views(s, eq->in[1 - i]);
        Dim d = eq->shape.d[r - 1];
        if (top->op == OP_TOP_K && each->op == OP_IOTA && each->a.i == each->shape.rank - 1 &&
            dim_eq(d, DIM(top->a.j)) && dim_eq(shape_of(s->g, top->in[0])->d[top->shape.rank - 1], d) &&
            dim_eq(eq->shape.d[r - 2], d))
            return true;
    }
    return false;
}

/* c times the number of elements along these axes, but for one. */
static Val count(Algebra *s, const Node *n, double c, int but)
{
    Shape in = *shape_of(s->g, n->in[0]), out = n->shape;
    Dim d = DIM(1);
    for (int k = 0; k < in.rank; k++)
        if (n->a.axes >> k & 1 && k != but && !dim_mul(d, in.d[k], &d))
            return 0;
    if (dim_static(d))
        return number(s, c * (double)d.n, &out, DT_REAL);
    Val v = make(s, OP_DIM, NULL, 0, &(Attr){.dim = d}, NULL);
    Form f = {.c = (double)d.n};
    if (d.b)
        f.of[f.count] = SYMBOL_B, f.n[f.count++] = d.b;
    if (d.t)
        f.of[f.count] = SYMBOL_T, f.n[f.count++] = d.t;
    s->fact.v[v] = (Fact){1, INFINITY, NULL, keep(s, &f)};
    Val all = spread(s, v, &out);
    if (c == 1)
        return all;
    Val times = make(s, OP_MUL, (Val[]){number(s, c, &out, DT_REAL), all}, 2, NULL, NULL);
    f.c *= c;
    s->fact.v[times].product = keep(s, &f);
    return times;
}

/* An elementwise value whose inputs are all the same along some axes: computed once and repeated. 0: they are not. */
static Val repeated(Algebra *s, Val v)
{
    const Node n = *node_at(s->g, v);
    Shape small = n.shape;
    uint32_t same = 0;
    Val in[3];
    for (int k = 0; k < n.shape.rank; k++) {
        bool flat = !is_one(n.shape.d[k]) && n.n_in <= COUNT_OF(in);
        for (uint16_t i = 0; i < n.n_in && flat; i++) {
            const Node *of = node_at(s->g, n.in[i]);
            flat = of->op == OP_BROADCAST && is_one(shape_of(s->g, of->in[0])->d[k]);
        }
        same |= flat ? 1u << k : 0;
        small.d[k] = flat ? DIM(1) : small.d[k];
    }
    if (!same)
        return 0;
    for (uint16_t i = 0; i < n.n_in; i++) {
        in[i] = node_at(s->g, n.in[i])->in[0];
        in[i] = shape_eq(shape_of(s->g, in[i]), &small) ? in[i] : made(s, OP_BROADCAST, &in[i], 1, &small);
    }
    Val once = settle(s, make(s, (Op)n.op, in, n.n_in, &n.a, NULL));
    return made(s, OP_BROADCAST, &once, 1, &n.shape);
}

/* What is the same along all these axes, without them; 0: it is not. */
static Val one_of_same(Algebra *s, Val v, uint32_t axes)
{
    const Node *of = node_at(s->g, v);
    if (of->op != OP_BROADCAST)
        return 0;
    Val source = of->in[0];
    Shape shape = of->shape;
    for (int k = 0; k < shape.rank; k++)
        if (axes >> k & 1) {
            if (!is_one(shape_of(s->g, source)->d[k]))
                return 0;
            shape.d[k] = DIM(1);
        }
    return shape_eq(shape_of(s->g, source), &shape) ? source : made(s, OP_BROADCAST, &source, 1, &shape);
}

/* The axes of what a reshape reads that are these of its own, where it only puts in and takes out axes of one element; false:
 * it does more. */
static bool axes_before(const Shape *was, const Shape *is, uint32_t axes, uint32_t *before)
{
    int k = 0;
    *before = 0;
    for (int i = 0; i < is->rank; i++) {
        if (is_one(is->d[i]))
            continue;
        while (k < was->rank && is_one(was->d[k]))
            k++;
        if (k == was->rank || !dim_eq(was->d[k], is->d[i]))
            return false;
        *before |= axes >> i & 1 ? 1u << k : 0;
        k++;
    }
    return true;
}

static Val sum_over(Algebra *s, Val v, uint32_t axes)
{
    return settle(s, make(s, OP_SUM, &v, 1, &(Attr){.axes = axes}, NULL));
}

/* The sum of v over these axes where it depends on extents alone: shares of one that are added up, once more or in
 * another order. 0: it may be anything. */
static Val constant_sum(Algebra *s, Val v, uint32_t axes, int depth)
{
    const Node n = *node_at(s->g, v);
    const Form *f = fact(s, v)->sum;
    double c;
    Val of = 0, by = 0;
    uint32_t before;
    if (!depth || !n.n_in)
        return 0;
    if (is_number(s, v, &c) || (n.op == OP_DIV && by_own_sum(s, &n, &before) && before == axes))
        return sum_over(s, v, axes);
    if (f && f->count == 1 && f->c == 0 && f->of[0] != (int64_t)v) {
        double times = f->n[0];
        if (!(of = constant_sum(s, (Val)f->of[0], axes, depth - 1)))
            return 0;
        Shape shape = *shape_of(s->g, of);
        return settle(s, make(s, OP_MUL, (Val[]){number(s, times, &shape, DT_REAL), of}, 2, NULL, NULL));
    }
    if (n.op == OP_DIV && (by = one_of_same(s, n.in[1], axes)) && (of = constant_sum(s, n.in[0], axes, depth - 1)))
        return settle(s, make(s, OP_DIV, (Val[]){of, by}, 2, NULL, NULL));
    if (n.op == OP_SUM && !(n.a.axes & axes) && (of = constant_sum(s, n.in[0], axes, depth - 1)))
        return sum_over(s, of, n.a.axes);
    if (n.op != OP_RESHAPE || !axes_before(shape_of(s->g, n.in[0]), &n.shape, axes, &before) ||
        !(of = constant_sum(s, n.in[0], before, depth - 1)))
        return 0;
    Shape shape = n.shape;
    for (int k = 0; k < shape.rank; k++)
        shape.d[k] = axes >> k & 1 ? DIM(1) : shape.d[k];
    return made(s, OP_RESHAPE, &of, 1, &shape);
}

/* What v is, in other words; 0: nothing shorter. */
static Val same_as(Algebra *s, Val v)
{
    const Node *n = node_at(s->g, v);
    const Shape *in = shape_of(s->g, first_input(n));
    double c;
    const Node as_it_is = *n;
    if (op_is_map((Op)n->op)) {
        Val same = same_as_map(s, v);
        same = same ? same : compared(s, &as_it_is);
        return same || n->n_in < 2 ? same : masked(s, &as_it_is);
    }
    switch ((Op)n->op) {
    case OP_PICK: return only_entry(s, &as_it_is);
    case OP_RESHAPE: return shape_eq(in, &n->shape) ? n->in[0] : chosen_without(s, &as_it_is);
    case OP_BROADCAST:
    case OP_SLICE: return shape_eq(in, &n->shape) ? n->in[0] : 0;
    case OP_MATMUL: { /* of nothing it is 0; i & 1: the first one's axes are swapped */
        Shape shape = n->shape;
        return is_none(in->d[in->rank - (n->a.i & 1 ? 2 : 1)]) ? number(s, 0, &shape, DT_REAL) : 0;
    }
    case OP_SUM:
    case OP_AMAX: {
        bool one = true, none = false;
        for (int k = 0; k < in->rank; k++) {
            one &= !(n->a.axes >> k & 1) || is_one(in->d[k]);
            none |= (n->a.axes >> k & 1) && is_none(in->d[k]);
        }
        if (one)
            return n->in[0];
        const Node copy = as_it_is;
        Val same = none ? 0 : one_of_same(s, copy.in[0], copy.a.axes);
        if (n->op == OP_AMAX)
            return same;
        if (same && !is_number(s, copy.in[0], &c)) {
            Val times = count(s, &copy, 1, -1);
            return times ? settle(s, make(s, OP_MUL, (Val[]){times, same}, 2, NULL, NULL)) : 0;
        }
        same = none || is_number(s, copy.in[0], &c) || sums_one(s, &copy)
                   ? 0
                   : constant_sum(s, copy.in[0], copy.a.axes, 2 * DEEP);
        if (same)
            return same;
        n = node_at(s->g, v);
        Shape shape = n->shape;
        if (none)
            return number(s, 0, &shape, DT_REAL);
        if (sums_one(s, n))
            return number(s, 1, &shape, DT_REAL);
        if (counts_all(s, n))
            return count(s, n, 1, n->shape.rank - 2);
        return is_number(s, n->in[0], &c) ? count(s, n, c, -1) : 0;
    }
    case OP_CUMSUM:
    case OP_ROLL: return is_one(in->d[n->a.i]) ? n->in[0] : 0;
    case OP_SHIFT: {
        Shape shape = n->shape;
        int64_t extent = extent_of(s, in->d[n->a.i]);
        return extent && llabs(n->a.j) >= extent ? number(s, n->a.x, &shape, (DType)n->dtype) : 0;
    }
    case OP_TOP_K: {
        Shape shape = n->shape;
        return is_one(in->d[in->rank - 1]) ? number(s, 0, &shape, DT_INT) : 0;
    }
    case OP_SDPA: return one_key(s, &as_it_is);
    default: return 0;
    }
}

/* A product of extents alone is the same in every shape. */
static const Form *extents_of(const Algebra *s, const Node *n)
{
    const Form *f = (n->op == OP_RESHAPE || n->op == OP_BROADCAST || n->op == OP_PERMUTE || n->op == OP_STOP)
                        ? fact(s, n->in[0])->product
                        : NULL;
    for (int k = 0; f && k < f->count; k++)
        if (f->of[k] >= 0)
            return NULL;
    return f;
}

/* What is known of a new value, or of one again; the one that it is instead. */
static Val settle(Algebra *s, Val v)
{
    const Node *n = node_at(s->g, v);
    DType dtype = (DType)n->dtype;
    Shape shape = n->shape;
    double c;
    s->fact.v[v] = range_of(s, v);
    s->fact.v[v].sum = s->fact.v[v].product = NULL;
    if (is_number(s, v, &c) && !(n->op == OP_FILL))
        return number(s, c, &shape, dtype);
    Val other = same_as(s, v);
    other = other || !op_is_map((Op)n->op) ? other : repeated(s, v);
    if (other)
        return other;
    n = node_at(s->g, v);
    if (n->op == OP_DIM) {
        Form f = {.c = (double)n->a.dim.n};
        if (n->a.dim.b)
            f.of[f.count] = SYMBOL_B, f.n[f.count++] = n->a.dim.b;
        if (n->a.dim.t)
            f.of[f.count] = SYMBOL_T, f.n[f.count++] = n->a.dim.t;
        s->fact.v[v].product = keep(s, &f);
    }
    if (n->n_in && extents_of(s, n))
        s->fact.v[v].product = extents_of(s, n);
    for (int product = 0; product < 2 && op_is_map((Op)n->op) && dtype == DT_REAL; product++) {
        Form f;
        int of;
        const Node now = *node_at(s->g, v);
        if (!(product ? product_of(s, &now, &f, &of) : sum_of(s, &now, &f, &of)))
            continue;
        *(product ? &s->fact.v[v].product : &s->fact.v[v].sum) = keep(s, &f);
        if ((other = remade(s, &f, of, product, v)) && other != v)
            return other;
    }
    return v;
}

static Val rule(Rewrite *r, Val v, void *user)
{
    Algebra *s = user;
    const Node *n = node_at(r->from, v);
    Val *in = rewrite_inputs(r, s->memory, v);
    Attr a = n->a;
    Shape shape = shape_as(s, &n->shape);
    a.dim = dim_of(s, a.dim);
    Val made = make(s, (Op)n->op, in, n->n_in, &a, op_uses((Op)n->op, 'S') ? &shape : NULL);
    if (n->op == OP_EXT)
        ext_set_leaf(s->g, made);
    return settle(s, made);
}

Graph *growth_algebra(const Graph *g, int64_t positions, bool drops, Arena *arena, const Val **map,
                      const ValueRange **range)
{
    Arena *memory = arena_new(g->ctx);
    Rewrite r = rewrite_begin(g, arena, map ? arena : memory, g->node.n);
    Algebra s = {.memory = memory, .g = r.to, .positions = positions, .drops = drops};
    map_init(&s.made, memory);
    for (size_t i = 0; i < r.to->ext.n; i++)
        r.to->ext.v[i].shape = shape_as(&s, &r.to->ext.v[i].shape);
    graph_rewrite(&r, NULL, rule, &s);
    if (map)
        *map = r.map;
    ValueRange *of = range ? NEW_ARRAY(arena, ValueRange, r.to->node.n + 1) : NULL;
    for (Val v = 1; of && v < (Val)r.to->node.n; v++)
        of[v] = (ValueRange){fact(&s, v)->lo, fact(&s, v)->hi};
    if (range)
        *range = of;
    arena_free(memory);
    return r.to;
}
