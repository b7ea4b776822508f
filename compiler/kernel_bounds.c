/* kernel_bounds.c - what an index can be, given the guards around it.
 *
 * In:  an index form, a guard (a conjunction of 0 <= form < extent), the number of elements.
 * Out: whether every element the form names exists.
 * The one idea: intervals of affine forms at the kernel's B and T; where a guard bounds a form,
 * the multiple of that form that stands in the index is replaced by the guard's interval. Where that
 * does not do, each variable is bounded by the guards first.
 */
#include "kernel.h"

#include <math.h>

enum { ATOMS_MAX = 8, DEPTH_MAX = 12, KNOWN_MAX = 16, ROUNDS = 3 };

typedef struct Affine { /* sum of coef * var + constant, as numbers */
    uint32_t n;
    IVar var[TERMS_MAX];
    double coef[TERMS_MAX], constant;
} Affine;

typedef struct Atom {
    Affine form;
    double extent;
} Atom;

typedef struct Interval {
    double lo, hi;
} Interval;

typedef struct Guards {
    const Kernel *k;
    int n, n_known;
    Atom atom[ATOMS_MAX];
    IVar known[KNOWN_MAX]; /* variables that tighten() has bounded */
    Interval is[KNOWN_MAX];
} Guards;

static const Interval anything = {-INFINITY, INFINITY};

static void add_term(Affine *a, IVar v, double coef)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (a->var[i] == v) {
            a->coef[i] += coef;
            return;
        }
    if (a->n == TERMS_MAX) /* more than a form can have: nothing is known of it */
        coef = NAN;
    else
        a->var[a->n] = v, a->coef[a->n++] = coef;
    a->constant += isnan(coef) ? NAN : 0;
}

static Affine affine_of(const Kernel *k, Ix ix)
{
    Affine a = {0};
    const IxForm *f = ix_form(&k->ix, ix);
    for (uint32_t i = 0; i < f->n; i++) {
        double coef = (double)f->t[i].mult * (double)ix_dim_at(&k->ix, f->t[i].coef);
        if (f->t[i].var == 0)
            a.constant += coef;
        else
            add_term(&a, f->t[i].var, coef);
    }
    return a;
}

static void collect(Guards *g, Ex e)
{
    const KEx *x = kx(g->k, e);
    if (x->kind == KX_AND) {
        collect(g, x->in[0]);
        collect(g, x->in[1]);
    } else if (x->kind == KX_INSIDE && g->n < ATOMS_MAX) {
        g->atom[g->n++] = (Atom){affine_of(g->k, x->ix),
                                 (double)ix_dim_at(&g->k->ix, x->extent)};
    }
}

static double coef_of(const Affine *a, IVar v)
{
    for (uint32_t i = 0; i < a->n; i++)
        if (a->var[i] == v)
            return a->coef[i];
    return 0;
}

static Interval meet(Interval a, Interval b)
{
    return (Interval){fmax(a.lo, b.lo), fmin(a.hi, b.hi)};
}

static Interval range(const Guards *g, const Affine *a, uint32_t used, int depth);

/* What is held by a tensor may be anything; only a guard bounds it. */
static Interval alone(const Guards *g, IVar v, uint32_t used, int depth)
{
    const IVarInfo *info = ix_info(&g->k->ix, v);
    if (info->kind == IV_VALUE)
        return anything;
    if (info->kind != IV_DIV && info->kind != IV_MOD)
        return (Interval){(double)info->lo, (double)info->hi};
    Affine base = affine_of(g->k, info->base);
    double by = (double)ix_dim_at(&g->k->ix, info->by);
    Interval whole = range(g, &base, used, depth + 1);
    Interval q = {floor(whole.lo / by), floor(whole.hi / by)};
    if (info->kind == IV_DIV)
        return q;
    if (q.lo == q.hi && isfinite(q.lo))
        return (Interval){whole.lo - q.lo * by, whole.hi - q.lo * by};
    return (Interval){0, by - 1};
}

/* A guard bounds each of its variables by what the others can be; variables are whole. */
static Interval variable(const Guards *g, IVar v, uint32_t used, int depth)
{
    Interval out = alone(g, v, used, depth);
    for (int i = 0; i < g->n_known; i++)
        if (g->known[i] == v)
            out = meet(out, g->is[i]);
    for (int j = 0; j < g->n; j++) {
        const Atom *t = &g->atom[j];
        uint32_t bit = 1u << (2 * ATOMS_MAX + j);
        double coef = coef_of(&t->form, v);
        if (coef == 0 || used & bit)
            continue;
        Affine rest = t->form;
        add_term(&rest, v, -coef);
        Interval r = range(g, &rest, used | bit, depth + 1);
        double x = -r.hi / coef, y = (t->extent - 1 - r.lo) / coef;
        if (!isnan(x) && !isnan(y))
            out = meet(out, (Interval){ceil(fmin(x, y)), floor(fmax(x, y))});
    }
    return out;
}

/* a with `from` taken out as often as it stands in it, by its first variable; 0: not at all */
static double without(const Affine *a, const Affine *from, Affine *rest)
{
    if (from->n == 0 || from->coef[0] == 0)
        return 0;
    double times = coef_of(a, from->var[0]) / from->coef[0];
    if (times == 0)
        return 0;
    *rest = *a;
    rest->constant -= times * from->constant;
    for (uint32_t i = 0; i < from->n; i++)
        add_term(rest, from->var[i], -times * from->coef[i]);
    return times;
}

static Interval plus(Interval a, double times, Interval b)
{
    double x = times * b.lo, y = times * b.hi;
    return (Interval){a.lo + fmin(x, y), a.hi + fmax(x, y)};
}

/* The guard speaks of v, a quotient or remainder of some base, and the index holds the base
 * itself: base = by * quotient + remainder brings v into it. */
static Interval rejoined(const Guards *g, const Affine *a, IVar v, uint32_t used, int depth)
{
    const IVarInfo *info = ix_info(&g->k->ix, v);
    Affine rest;
    if (info->kind != IV_DIV && info->kind != IV_MOD)
        return anything;
    Affine base = affine_of(g->k, info->base);
    double times = without(a, &base, &rest), by = (double)ix_dim_at(&g->k->ix, info->by);
    if (times == 0)
        return anything;
    bool mod = info->kind == IV_MOD;
    add_term(&rest, v, mod ? times : times * by);
    Interval whole = range(g, &base, used, depth + 1), other = {0, by - 1};
    if (mod)
        other = (Interval){floor(whole.lo / by), floor(whole.hi / by)};
    return plus(range(g, &rest, used, depth + 1), mod ? times * by : times, other);
}

/* Every bound that is found holds, so they may be combined. */
static Interval range(const Guards *g, const Affine *a, uint32_t used, int depth)
{
    Interval out = {a->constant, a->constant};
    if (depth > DEPTH_MAX || isnan(a->constant))
        return anything;
    for (uint32_t i = 0; i < a->n; i++) {
        if (a->coef[i] == 0)
            continue;
        Interval v = variable(g, a->var[i], used, depth);
        bool up = a->coef[i] > 0;
        out.lo += a->coef[i] * (up ? v.lo : v.hi);
        out.hi += a->coef[i] * (up ? v.hi : v.lo);
    }
    if (isnan(out.lo) || isnan(out.hi))
        out = anything;
    for (int j = 0; j < g->n; j++) {
        const Atom *t = &g->atom[j];
        Affine rest;
        if (!(used >> j & 1)) {
            double times = without(a, &t->form, &rest);
            if (times != 0)
                out = meet(out, plus(range(g, &rest, used | 1u << j, depth + 1), times,
                                     (Interval){0, t->extent - 1}));
        }
        if (!(used >> (ATOMS_MAX + j) & 1))
            for (uint32_t i = 0; i < t->form.n; i++)
                out = meet(out, rejoined(g, a, t->form.var[i], used | 1u << (ATOMS_MAX + j),
                                         depth));
    }
    return out;
}

/* What the guards say of each variable, again with what they said of the others: of the digits of a number, as in
 * 2 <= 4 i + 2 j + k < 4, one after the other becomes known. */
static void tighten(Guards *g)
{
    for (int round = 0; round < ROUNDS; round++)
        for (int j = 0; j < g->n; j++)
            for (uint32_t i = 0; i < g->atom[j].form.n; i++) {
                IVar v = g->atom[j].form.var[i];
                int at = 0;
                while (at < g->n_known && g->known[at] != v)
                    at++;
                if (at == KNOWN_MAX)
                    continue;
                Interval is = variable(g, v, 0, 0);
                g->known[at] = v, g->is[at] = is;
                g->n_known = at == g->n_known ? at + 1 : g->n_known;
            }
}

bool kernel_in_bounds(const Kernel *k, Ix ix, Ex guard, int64_t elements)
{
    double never;
    if (guard && kx_is_number(k, guard, &never) && never == 0)
        return true;
    Guards g = {.k = k};
    if (guard)
        collect(&g, guard);
    Affine a = affine_of(k, ix);
    Interval r = range(&g, &a, 0, 0);
    if (g.n > 0 && !(r.lo >= 0 && r.hi < (double)elements)) {
        tighten(&g);
        r = range(&g, &a, 0, 0);
    }
    return r.lo >= 0 && r.hi < (double)elements;
}
