/* kernel_bounds.c - what an index can be, given the guards around it.
 *
 * In:  an index form, a guard (a conjunction of 0 <= form < extent), the number of elements.
 * Out: whether every element the form names exists.
 * The one idea: all that is known is linear. A guard says lo <= form <= hi; a quotient and a remainder say
 * base - by * quotient - remainder = 0. Each such bound narrows the variables in it by what the others can be,
 * until nothing changes; then the index is looked at as it is, and with multiples of bounds taken out of it, since
 * variables that stand in one bound together can do less than each alone. All of it is computed with whole numbers
 * below 2^53, of which double has every one, so extents may be of any size: of what is larger nothing is known.
 */
#include "kernel.h"

#include <math.h>
#include <stdlib.h>

enum {
    ROUNDS = 24,             /* of narrowing: far more than chains of quotients are long */
    TAKEN_OUT_MAX = 4,       /* bounds at one time, */
    TAKEN_OUT_NARROWING = 2, /* and while variables are narrowed */
    LOOKS_MAX = 4000         /* at one sum with some taken out */
};

static const double EXACT = 0x1p53;

typedef struct Interval {
    double lo, hi;
} Interval;

typedef struct Term {
    uint32_t var; /* of Known */
    double coef;
} Term;

typedef struct Linear { /* the sum of coef * var, and a constant */
    uint32_t n;
    Term t[TERMS_MAX];
    double constant; /* NAN: it has too many terms or too large ones, nothing is known of it */
} Linear;

typedef struct Bound {
    Linear form;
    Interval is;
} Bound;

typedef struct Pair { /* of one base and divisor, by which the bound is known again */
    Ix base;
    Dim by;
    uint32_t quotient, remainder;
} Pair;

typedef struct Known {
    const Kernel *k;
    Arena *arena;
    VEC(Interval) var;
    VEC(IVar) of; /* by variable: 0 for the quotient or remainder that the kernel has no use for */
    VEC(Bound) bound;
    VEC(Pair) pair;
    bool never; /* the guards contradict each other */
    int looks;
} Known;

static const Interval anything = {-INFINITY, INFINITY};

static double size_of(const Known *g, Dim d) { return (double)ix_dim_at(g->k->ix, d); }
static double exactly(double x) { return fabs(x) < EXACT ? x : NAN; }
/* What is known of a lower and of an upper bound. */
static double lowest(double x) { return x <= -EXACT ? -INFINITY : fmin(x, EXACT - 1); }
static double highest(double x) { return x >= EXACT ? INFINITY : fmax(x, 1 - EXACT); }

/* ---- sums ---- */

static void add_term(Linear *a, uint32_t v, double coef)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (a->t[i].var == v) {
            a->t[i].coef += coef;
            if (fabs(a->t[i].coef) >= EXACT)
                a->constant = NAN;
            if (a->t[i].coef == 0)
                a->t[i] = a->t[--a->n];
            return;
        }
    if (a->n == TERMS_MAX || fabs(coef) >= EXACT)
        a->constant = NAN;
    else
        a->t[a->n++] = (Term){v, coef};
}

static void add_linear(Linear *a, const Linear *b, double times)
{
    a->constant = exactly(a->constant + exactly(times * b->constant));
    for (uint32_t i = 0; i < b->n; i++)
        add_term(a, b->t[i].var, times * b->t[i].coef);
}

static double coef_of(const Linear *a, uint32_t v)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (a->t[i].var == v)
            return a->t[i].coef;
    return 0;
}

static Interval plus(Interval a, double times, Interval b)
{
    double x = times * b.lo, y = times * b.hi;
    return (Interval){lowest(a.lo + lowest(fmin(x, y))), highest(a.hi + highest(fmax(x, y)))};
}

static Interval range(const Known *g, const Linear *a)
{
    Interval out = {a->constant, a->constant};
    if (isnan(a->constant))
        return anything;
    for (uint32_t i = 0; i < a->n; i++)
        out = plus(out, a->t[i].coef, g->var.v[a->t[i].var]);
    return out;
}

/* ---- what is known at first ---- */

static Linear linear_of(Known *g, Ix ix);

static uint32_t new_variable(Known *g, IVar of, Interval is)
{
    vec_push(g->arena, &g->var, is);
    vec_push(g->arena, &g->of, of);
    return (uint32_t)g->var.n - 1;
}

/* The quotient and the remainder of one base are known together, whichever of them the kernel asks for. */
static Pair *pair_of(Known *g, Ix base, Dim by)
{
    for (size_t i = 0; i < g->pair.n; i++)
        if (g->pair.v[i].base == base && dim_eq(g->pair.v[i].by, by))
            return &g->pair.v[i];
    Bound b = {.form = linear_of(g, base)};
    double d = size_of(g, by);
    Interval whole = range(g, &b.form);
    Pair p = {base, by, new_variable(g, 0, (Interval){floor(whole.lo / d), floor(whole.hi / d)}),
              new_variable(g, 0, (Interval){0, d - 1})};
    add_term(&b.form, p.quotient, -d);
    add_term(&b.form, p.remainder, -1);
    vec_push(g->arena, &g->bound, b);
    vec_push(g->arena, &g->pair, p);
    return &g->pair.v[g->pair.n - 1];
}

/* What a tensor holds may be anything; only a guard bounds it. */
static uint32_t variable(Known *g, IVar v)
{
    const IVarInfo *info = ix_info(g->k->ix, v);
    for (uint32_t i = 0; i < g->of.n; i++)
        if (g->of.v[i] == v)
            return i;
    if (info->kind == IV_DIV || info->kind == IV_MOD) {
        const Pair *p = pair_of(g, info->base, info->by);
        uint32_t at = info->kind == IV_DIV ? p->quotient : p->remainder;
        g->of.v[at] = v;
        return at;
    }
    bool held = info->kind == IV_VALUE;
    Interval is = {lowest((double)info->lo), highest((double)info->hi)};
    return new_variable(g, v, held ? anything : is);
}

static Linear linear_of(Known *g, Ix ix)
{
    Linear a = {0};
    const IxForm *f = ix_form(g->k->ix, ix);
    for (uint32_t i = 0; i < f->n; i++) {
        double coef = (double)f->t[i].mult * size_of(g, f->t[i].coef);
        if (f->t[i].var == 0)
            a.constant = exactly(a.constant + coef);
        else
            add_term(&a, variable(g, f->t[i].var), coef);
    }
    return a;
}

static void collect(Known *g, Ex e)
{
    const KEx *x = kx(g->k, e);
    if (x->kind == KX_AND) {
        collect(g, x->in[0]);
        collect(g, x->in[1]);
    } else if (x->kind == KX_INSIDE) {
        Bound b = {linear_of(g, x->ix), {0, highest(size_of(g, x->extent) - 1)}};
        vec_push(g->arena, &g->bound, b);
    }
}

/* Of a sum of whole numbers the part whose factors are multiples of `by` is a multiple of it too: what the rest
 * leaves to it is rounded inwards (Gomory's cut). */
static void cut_part(Known *g, const Bound *b, double by)
{
    Linear part = {0}, rest = {.constant = b->form.constant};
    for (uint32_t i = 0; i < b->form.n; i++)
        add_term(fmod(b->form.t[i].coef, by) == 0 ? &part : &rest, b->form.t[i].var, b->form.t[i].coef);
    Interval left = range(g, &rest), is = range(g, &part);
    Bound cut = {part, {by * ceil((b->is.lo - left.hi) / by), by * floor((b->is.hi - left.lo) / by)}};
    if (cut.is.lo > is.lo || cut.is.hi < is.hi)
        vec_push(g->arena, &g->bound, cut);
}

/* For each factor. */
static void cut_bound(Known *g, const Bound *b)
{
    for (uint32_t i = 0; i < b->form.n && !isnan(b->form.constant); i++)
        if (fabs(b->form.t[i].coef) > 1)
            cut_part(g, b, fabs(b->form.t[i].coef));
}

/* The guards, bounds `from` up to `to`, as they are, and said with a quotient and a remainder in place of a variable
 * that those are made of, whole times. */
static void cut_all(Known *g, size_t from, size_t to)
{
    size_t known = g->bound.n;
    for (size_t j = from; j < to; j++) {
        const Bound guard = g->bound.v[j];
        cut_bound(g, &guard);
        for (size_t i = 0; i < known; i++) {
            const Bound pair = g->bound.v[i];
            bool zero = pair.is.lo == 0 && pair.is.hi == 0;
            for (uint32_t t = 0; t < pair.form.n && zero && i != j; t++) {
                Bound said = guard;
                double times = coef_of(&guard.form, pair.form.t[t].var) / pair.form.t[t].coef;
                add_linear(&said.form, &pair.form, -times);
                if (times != 0 && times == trunc(times))
                    cut_bound(g, &said);
            }
        }
    }
}

/* ---- looking ---- */

static double divisor(double a, double b)
{
    int64_t x = (int64_t)fabs(a), y = (int64_t)fabs(b);
    while (y) {
        int64_t rest = x % y;
        x = y;
        y = rest;
    }
    return (double)x;
}

/* Every bound that is found holds, so they may be combined: `scale` times a whole number that lies in *out is a, with
 * `beside` added. */
static void look(Known *g, const Linear *a, Interval beside, double scale, size_t from, int depth, Interval *out)
{
    Interval is = plus(range(g, a), 1, beside);
    out->lo = fmax(out->lo, ceil(is.lo / scale));
    out->hi = fmin(out->hi, floor(is.hi / scale));
    if (depth == 0)
        return;
    for (size_t j = from; j < g->bound.n; j++)
        for (uint32_t i = 0; i < g->bound.v[j].form.n; i++) {
            const Bound *b = &g->bound.v[j];
            double of = b->form.t[i].coef, times = coef_of(a, b->form.t[i].var);
            if (times == 0 || g->looks++ > LOOKS_MAX)
                continue;
            double both = copysign(divisor(times, of), of), by = of / both;
            Linear rest = {.constant = 0};
            add_linear(&rest, a, by);
            add_linear(&rest, &b->form, -times / both);
            if (scale * by < EXACT)
                look(g, &rest, plus(plus((Interval){0, 0}, by, beside), times / both, b->is), scale * by, j + 1,
                     depth - 1, out);
        }
}

/* ---- narrowing ---- */

/* By what the others in b can be, looked at with `depth` other bounds taken out. Variables are whole numbers. */
static bool narrow(Known *g, const Bound *b, Term t, int depth)
{
    Linear rest = b->form;
    Interval of = anything, *is = &g->var.v[t.var];
    add_term(&rest, t.var, -t.coef);
    g->looks = 0;
    look(g, &rest, (Interval){0, 0}, 1, 0, depth, &of);
    Interval left = plus(b->is, -1, of);
    double lo = ceil(fmin(left.lo / t.coef, left.hi / t.coef)), hi = floor(fmax(left.lo / t.coef, left.hi / t.coef));
    bool better = lo > is->lo || hi < is->hi;
    is->lo = fmax(is->lo, lo);
    is->hi = fmin(is->hi, hi);
    g->never |= is->lo > is->hi;
    return better;
}

static void narrow_all(Known *g, int depth)
{
    bool better = true;
    for (int round = 0; round < ROUNDS && better && !g->never; round++) {
        better = false;
        for (size_t j = 0; j < g->bound.n; j++)
            for (uint32_t i = 0; i < g->bound.v[j].form.n; i++)
                better |= narrow(g, &g->bound.v[j], g->bound.v[j].form.t[i], depth);
    }
}

/* Does `a` lie below `elements`, and not below 0? */
static bool proves(Known *g, const Linear *a, int64_t elements)
{
    bool good = false;
    for (int depth = 0; depth <= TAKEN_OUT_MAX && !good; depth++) {
        Interval is = anything;
        if (depth <= TAKEN_OUT_NARROWING)
            narrow_all(g, depth);
        g->looks = 0;
        look(g, a, (Interval){0, 0}, 1, 0, depth, &is);
        good = g->never || (is.lo >= 0 && is.hi < (double)elements);
    }
    return good;
}

bool kernel_in_bounds(const Kernel *k, Ix ix, Ex guard, int64_t elements)
{
    double never;
    const IxForm *f = ix_form(k->ix, ix);
    if (f->lo >= 0 && f->hi < elements && !ix_reads_value(k->ix, ix))
        return true;
    if (guard && kx_is_number(k, guard, &never) && never == 0)
        return true;
    ArenaMark mark = arena_mark(k->arena);
    Known g = {.k = k, .arena = k->arena};
    Linear a = linear_of(&g, ix);
    size_t from = g.bound.n;
    if (guard)
        collect(&g, guard);
    size_t to = g.bound.n;
    bool good = proves(&g, &a, elements);
    if (!good && to > from) {
        cut_all(&g, from, to);
        good = proves(&g, &a, elements);
    }
    arena_reset(k->arena, mark);
    return good;
}

/* ---- places of their own ---- */

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return x < y ? -1 : x > y;
}

/* Does every combination of the variables name its own element? Sorted by what they step over,
 * each must step over all that the smaller ones reach. */
bool kernel_injective(const Kernel *k, Ix at, const IVar *v, uint32_t n)
{
    struct {
        double step, span;
    } s[NEST_MAX + 1];
    for (uint32_t i = 0; i < n; i++) {
        int64_t slope;
        if (!ix_slope(k->ix, at, v[i], &slope))
            return false;
        s[i].step = slope < 0 ? -(double)slope : (double)slope;
        s[i].span = (double)(ix_info(k->ix, v[i])->hi);
    }
    qsort(s, n, sizeof s[0], by_size);
    double reach = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (s[i].span > 0 && s[i].step <= reach)
            return false;
        reach += s[i].step * s[i].span;
    }
    return true;
}
