/* index.c - see index.h. */
#include "index.h"

void ix_init(IxTable *t, Ctx *ctx, Arena *arena, int64_t B, int64_t T)
{
    *t = (IxTable){.ctx = ctx, .arena = arena, .B = B, .T = T};
    t->slots = 256;
    t->slot = NEW_ARRAY(arena, uint32_t, t->slots);
    t->sum = NEW_ARRAY(arena, IxSum, IX_SUMS);
    vec_push(arena, &t->var, (IVarInfo){.kind = IV_ONE, .lo = 1, .hi = 1});
    vec_push(arena, &t->form, (IxForm){.hash = 0}); /* the constant 0 */
}

int64_t ix_dim_at(const IxTable *t, Dim d)
{
    int64_t v = dim_at(d, t->B, t->T);
    if (v < 0)
        vwn_bug(t->ctx, "an extent overflows at B = %lld, T = %lld", (long long)t->B, (long long)t->T);
    return v;
}

/* ---- variables ---- */

static IVar new_var(IxTable *t, IVarInfo info)
{
    if (t->var.n > 60000)
        vwn_bug(t->ctx, "too many index variables in one kernel");
    vec_push(t->arena, &t->var, info);
    return (IVar)(t->var.n - 1);
}

static IVar new_loop(IxTable *t, IVarKind kind, Dim extent, int ordinal)
{
    int64_t n = ix_dim_at(t, extent);
    IVar v = new_var(t, (IVarInfo){.kind = kind, .extent = extent, .ordinal = ordinal, .hi = n > 0 ? n - 1 : 0});
    t->overfull = t->overfull || (t->loops >= 64 && !t->loose);
    int bit = t->loops < 64 ? t->loops++ : 63;
    t->loop[bit] = v;
    t->var.v[v].bit = (uint8_t)bit;
    t->var.v[v].deps = ix_bit(t, v);
    return v;
}

IVar ix_row(IxTable *t, Dim extent) { return new_loop(t, IV_ROW, extent, 0); }
IVar ix_part(IxTable *t, Dim extent) { return new_loop(t, IV_PART, extent, 0); }

IVar ix_loop(IxTable *t, Dim extent, int ordinal)
{
    for (size_t k = 1; k < t->var.n; k++) {
        const IVarInfo *v = &t->var.v[k];
        if (v->kind == IV_LOOP && dim_eq(v->extent, extent) && v->ordinal == ordinal)
            return (IVar)k;
    }
    return new_loop(t, IV_LOOP, extent, ordinal);
}

static IVar new_value(IxTable *t, uint32_t value, Dim extent, uint64_t deps)
{
    int64_t n = ix_dim_at(t, extent);
    return new_var(
        t,
        (IVarInfo){
            .kind = IV_VALUE, .extent = extent, .hi = n > 0 ? n - 1 : 0, .value = value, .reads = true, .deps = deps});
}

IVar ix_value(IxTable *t, uint32_t value, Dim extent, uint64_t deps)
{
    for (size_t k = 1; k < t->var.n; k++)
        if (t->var.v[k].kind == IV_VALUE && t->var.v[k].value == value && dim_eq(t->var.v[k].extent, extent))
            return (IVar)k;
    return new_value(t, value, extent, deps);
}

void ix_value_depends(IxTable *t, uint32_t value, uint64_t deps)
{
    bool more = false;
    for (size_t k = 1; k < t->var.n; k++) {
        IVarInfo *v = &t->var.v[k];
        more = more || (v->kind == IV_VALUE && v->value == value && (deps & ~v->deps));
        v->deps |= v->kind == IV_VALUE && v->value == value ? deps : 0;
    }
    while (more) { /* forms are of variables, and variables of forms */
        more = false;
        for (size_t i = 0; i < t->form.n; i++) {
            IxForm *f = &t->form.v[i];
            for (uint32_t j = 0; j < f->n; j++)
                f->deps |= t->var.v[f->t[j].var].deps;
        }
        for (size_t k = 1; k < t->var.n; k++) {
            IVarInfo *v = &t->var.v[k];
            uint64_t of = v->kind == IV_DIV || v->kind == IV_MOD ? t->form.v[v->base].deps : 0;
            more = more || (of & ~v->deps);
            v->deps |= of;
        }
    }
}

/* ---- interning ---- */

static Dim coef_dim(IxTerm x)
{
    Dim d = x.coef;
    d.n *= x.mult;
    return d;
}

static int term_order(const IxTerm *a, const IxTerm *b)
{
    if (a->var != b->var)
        return a->var < b->var ? -1 : 1;
    if (a->coef.b != b->coef.b)
        return a->coef.b < b->coef.b ? 1 : -1;
    if (a->coef.t != b->coef.t)
        return a->coef.t < b->coef.t ? 1 : -1;
    return a->coef.n == b->coef.n ? 0 : a->coef.n < b->coef.n ? 1 : -1;
}

/* Sorts, merges equal terms, drops zeros; small static coefficients become multipliers. */
static uint32_t canonical(const IxTable *t, IxTerm *x, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (ix_literal(t, x[i].coef)) {
            x[i].mult *= x[i].coef.n;
            x[i].coef = DIM(1);
        }
    for (uint32_t i = 1; i < n; i++)
        for (uint32_t k = i; k > 0 && term_order(&x[k - 1], &x[k]) > 0; k--) {
            IxTerm y = x[k];
            x[k] = x[k - 1];
            x[k - 1] = y;
        }
    uint32_t m = 0;
    for (uint32_t i = 0; i < n; i++) {
        if (m > 0 && term_order(&x[m - 1], &x[i]) == 0)
            x[m - 1].mult += x[i].mult;
        else
            x[m++] = x[i];
        if (x[m - 1].mult == 0)
            m--;
    }
    return m;
}

/* One pair q * (base / d) + m * (base % d) with q = m * d becomes m * base. */
static bool rejoin(IxTable *t, IxTerm *x, uint32_t n, Ix *whole, IxTerm *scale, uint32_t drop[2])
{
    for (uint32_t i = 0; i < n && n > 1; i++) {
        const IVarInfo *m = ix_info(t, x[i].var);
        if (m->kind != IV_MOD)
            continue;
        for (uint32_t k = 0; k < n; k++) {
            const IVarInfo *q = ix_info(t, x[k].var);
            Dim want;
            if (q->kind == IV_DIV && q->base == m->base && dim_eq(q->by, m->by) &&
                dim_mul(coef_dim(x[i]), m->by, &want) && dim_eq(want, coef_dim(x[k]))) {
                *whole = m->base;
                *scale = x[i];
                drop[0] = i;
                drop[1] = k;
                return true;
            }
        }
    }
    return false;
}

static uint64_t terms_hash(const IxTerm *x, uint32_t n)
{
    const uint64_t odd = 0x9e3779b97f4a7c15u;
    uint64_t h = odd + n;
    for (uint32_t i = 0; i < n; i++) {
        Dim d = x[i].coef;
        h = (h ^ (uint64_t)x[i].mult ^ (uint64_t)x[i].var << 48) * odd;
        h = (h ^ h >> 29 ^ (uint64_t)d.n ^ (uint64_t)d.b << 56 ^ (uint64_t)d.t << 60) * odd;
        h ^= h >> 31;
    }
    return h;
}

static bool terms_equal(const IxTerm *a, const IxTerm *b, uint32_t n)
{
    for (uint32_t i = 0; i < n; i++)
        if (a[i].var != b[i].var || a[i].mult != b[i].mult || !dim_eq(a[i].coef, b[i].coef))
            return false;
    return true;
}

static void slots_grow(IxTable *t)
{
    size_t n = t->slots * 2;
    uint32_t *slot = NEW_ARRAY(t->arena, uint32_t, n);
    for (size_t k = 1; k < t->form.n; k++) {
        size_t at = t->form.v[k].hash & (n - 1);
        while (slot[at])
            at = (at + 1) & (n - 1);
        slot[at] = (uint32_t)k;
    }
    t->slot = slot;
    t->slots = n;
}

static void range_of(const IxTable *t, IxForm *f)
{
    for (uint32_t i = 0; i < f->n; i++) {
        const IVarInfo *v = ix_info(t, f->t[i].var);
        int64_t k = f->t[i].mult * ix_dim_at(t, f->t[i].coef);
        f->lo += k < 0 ? k * v->hi : k * v->lo;
        f->hi += k < 0 ? k * v->lo : k * v->hi;
        f->deps |= v->deps;
        f->reads = f->reads || v->reads;
    }
}

/* terms that canonical() has sorted */
static Ix intern_sorted(IxTable *t, const IxTerm *x, uint32_t n)
{
    if (n == 0)
        return 0;
    uint64_t h = terms_hash(x, n);
    size_t at = h & (t->slots - 1);
    for (; t->slot[at]; at = (at + 1) & (t->slots - 1)) {
        const IxForm *f = ix_form(t, t->slot[at]);
        if (f->hash == h && f->n == n && terms_equal(f->t, x, n))
            return t->slot[at];
    }
    IxForm f = {.n = n, .hash = h};
    f.t = memcpy(arena_take(t->arena, n * sizeof *x), x, n * sizeof *x);
    range_of(t, &f);
    vec_push(t->arena, &t->form, f);
    t->slot[at] = (uint32_t)(t->form.n - 1);
    Ix made = t->slot[at];
    if (t->form.n * 2 > t->slots)
        slots_grow(t);
    return made;
}

static Ix intern(IxTable *t, IxTerm *x, uint32_t n)
{
    n = canonical(t, x, n);
    Ix whole;
    IxTerm scale;
    uint32_t drop[2];
    while (rejoin(t, x, n, &whole, &scale, drop)) {
        uint32_t m = 0;
        for (uint32_t i = 0; i < n; i++)
            if (i != drop[0] && i != drop[1])
                x[m++] = x[i];
        const IxForm *f = ix_form(t, whole);
        if (m + f->n > TERMS_MAX)
            vwn_bug(t->ctx, "an index has too many terms");
        for (uint32_t i = 0; i < f->n; i++) {
            Dim c;
            if (!dim_mul(f->t[i].coef, scale.coef, &c))
                vwn_bug(t->ctx, "an index overflows");
            x[m++] = (IxTerm){f->t[i].var, f->t[i].mult * scale.mult, c};
        }
        n = canonical(t, x, m);
    }
    return intern_sorted(t, x, n);
}

/* ---- arithmetic ---- */

Ix ix_const(IxTable *t, int64_t c)
{
    IxTerm x = {0, c, DIM(1)};
    return intern(t, &x, 1);
}

Ix ix_var(IxTable *t, IVar v)
{
    const IVarInfo *info = ix_info(t, v);
    if (info->lo == info->hi && info->kind != IV_VALUE) /* an extent of 1 */
        return ix_const(t, info->lo);
    IxTerm x = {v, 1, DIM(1)};
    return intern(t, &x, 1);
}

Ix ix_dim(IxTable *t, Dim d, int64_t mult)
{
    IxTerm x = {0, mult, d};
    return intern(t, &x, 1);
}

static Ix add_forms(IxTable *t, Ix a, Ix b)
{
    const IxForm *fa = ix_form(t, a), *fb = ix_form(t, b);
    IxTerm x[TERMS_MAX];
    if (fa->n + fb->n > TERMS_MAX)
        vwn_bug(t->ctx, "an index has too many terms");
    if (fa->n)
        memcpy(x, fa->t, fa->n * sizeof *x);
    if (fb->n)
        memcpy(x + fa->n, fb->t, fb->n * sizeof *x);
    return intern(t, x, fa->n + fb->n);
}

/* Views ask for the same sums again and again. */
Ix ix_add(IxTable *t, Ix a, Ix b)
{
    if (!a || !b)
        return a ? a : b;
    IxSum *known = &t->sum[(a * 31 + b) % IX_SUMS];
    if (known->a != a || known->b != b)
        *known = (IxSum){a, b, add_forms(t, a, b)};
    return known->sum;
}

Ix ix_scale(IxTable *t, Ix a, Dim d)
{
    if (!a || dim_eq(d, DIM(1)))
        return a;
    const IxForm *f = ix_form(t, a);
    IxTerm x[TERMS_MAX];
    for (uint32_t i = 0; i < f->n; i++) {
        x[i] = f->t[i];
        if (!dim_mul(x[i].coef, d, &x[i].coef))
            vwn_bug(t->ctx, "an index overflows");
    }
    return intern(t, x, dim_eq(d, DIM(0)) ? 0 : f->n);
}

Ix ix_times(IxTable *t, Ix a, int64_t k)
{
    const IxForm *f = ix_form(t, a);
    IxTerm x[TERMS_MAX];
    for (uint32_t i = 0; i < f->n; i++) {
        x[i] = f->t[i];
        x[i].mult *= k;
    }
    return intern(t, x, f->n);
}

static int64_t floor_div(int64_t a, int64_t b)
{
    int64_t q = a / b;
    return q - (a % b != 0 && (a < 0) != (b < 0));
}

static IVar new_derived(IxTable *t, IVarKind kind, Ix base, Dim by)
{
    const IxForm *f = ix_form(t, base);
    int64_t d = ix_dim_at(t, by);
    IVarInfo v = {.kind = kind, .base = base, .by = by, .next = f->derived, .reads = f->reads, .deps = f->deps};
    v.lo = kind == IV_DIV ? floor_div(f->lo, d) : 0;
    v.hi = kind == IV_DIV ? floor_div(f->hi, d) : d - 1;
    return t->form.v[base].derived = new_var(t, v);
}

/* Never a constant, though it may be one at these sizes: only so a quotient and its remainder are
 * put together again. */
static Ix derived(IxTable *t, IVarKind kind, Ix base, Dim by)
{
    IxTerm x = {0, 1, DIM(1)};
    for (IVar k = ix_form(t, base)->derived; k && !x.var; k = ix_info(t, k)->next)
        if (ix_info(t, k)->kind == kind && dim_eq(ix_info(t, k)->by, by))
            x.var = k;
    if (!x.var)
        x.var = new_derived(t, kind, base, by);
    return intern(t, &x, 1);
}

IVar ix_append(IxTable *t, const IVarInfo *v)
{
    switch (v->kind) {
    case IV_DIV:
    case IV_MOD: return new_derived(t, v->kind, v->base, v->by);
    case IV_VALUE: return new_value(t, v->value, v->extent, v->deps);
    default: return new_loop(t, v->kind, v->extent, v->ordinal);
    }
}

Ix ix_of_terms(IxTable *t, const IxTerm *term, uint32_t n)
{
    IxTerm x[TERMS_MAX];
    if (n > TERMS_MAX)
        vwn_bug(t->ctx, "an index has too many terms");
    memcpy(x, term, n * sizeof *x);
    return intern_sorted(t, x, canonical(t, x, n));
}

/* Splits a into a multiple of d and a rest: a = d * quotient + rest. Negative bases of
 * quotients are moved up by a multiple of d, so that the printed / and % are those of numbers
 * >= 0. */
static void split(IxTable *t, Ix a, Dim d, Ix *quotient, Ix *rest)
{
    const IxForm *f = ix_form(t, a);
    IxTerm q[TERMS_MAX], r[TERMS_MAX];
    uint32_t nq = 0, nr = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        IxTerm x = f->t[i];
        Dim c;
        if (dim_div(x.coef, d, &c)) {
            q[nq++] = (IxTerm){x.var, x.mult, c};
        } else if (dim_div(coef_dim(x), d, &c)) {
            q[nq++] = (IxTerm){x.var, 1, c};
        } else if (x.var == 0 && dim_static(d) && dim_eq(x.coef, DIM(1))) {
            int64_t whole = floor_div(x.mult, d.n);
            q[nq++] = (IxTerm){0, whole, DIM(1)};
            r[nr++] = (IxTerm){0, x.mult - whole * d.n, DIM(1)};
        } else {
            r[nr++] = x;
        }
    }
    *quotient = intern(t, q, nq);
    *rest = intern(t, r, nr);
    int64_t dv = ix_dim_at(t, d), lo = ix_form(t, *rest)->lo;
    if (lo < 0) {
        int64_t up = floor_div(lo, dv); /* rest - up * d >= 0 */
        *quotient = ix_add(t, *quotient, ix_const(t, up));
        *rest = ix_add(t, *rest, ix_dim(t, d, -up));
    }
}

/* a = x + low with 0 <= low < the coefficient of x, which divides d: then a / d is that of x's variable
 * alone, whose loop can be split. The variable counts up to `by` in each d. */
static bool divide_high(IxTable *t, Ix a, Dim d, IxTerm *x, Dim *by, Ix *low)
{
    uint32_t n = ix_form(t, a)->n;
    for (uint32_t i = 0; i < n; i++) {
        const IxTerm *of = ix_form(t, a)->t;
        IxTerm rest[TERMS_MAX];
        uint32_t m = 0;
        *x = of[i];
        if (x->var == 0 || coef_dim(*x).n <= 0 || !dim_div(d, coef_dim(*x), by))
            continue;
        for (uint32_t k = 0; k < n; k++)
            if (k != i)
                rest[m++] = of[k];
        *low = intern(t, rest, m);
        if (ix_form(t, *low)->lo >= 0 && ix_form(t, *low)->hi < ix_dim_at(t, coef_dim(*x)))
            return true;
    }
    return false;
}

/* a / d = q + r / d, a % d = r % d: of split(). */
static Ix quotient(IxTable *t, Ix q, Ix r, Dim d)
{
    const IxForm *f = ix_form(t, r);
    int64_t dv = ix_dim_at(t, d);
    int64_t lo = floor_div(f->lo, dv), hi = floor_div(f->hi, dv);
    if (lo == hi)
        return ix_add(t, q, ix_const(t, lo));
    IxTerm x;
    Dim by;
    Ix low;
    if (divide_high(t, r, d, &x, &by, &low))
        return ix_add(t, q, derived(t, IV_DIV, ix_var(t, x.var), by));
    return ix_add(t, q, derived(t, IV_DIV, r, d));
}

static Ix remainder_of(IxTable *t, Ix r, Dim d)
{
    const IxForm *f = ix_form(t, r);
    int64_t dv = ix_dim_at(t, d);
    int64_t lo = floor_div(f->lo, dv), hi = floor_div(f->hi, dv);
    if (lo == hi)
        return lo == 0 ? r : ix_add(t, r, ix_dim(t, d, -lo));
    IxTerm x;
    Dim by;
    Ix low;
    if (divide_high(t, r, d, &x, &by, &low)) {
        Ix high = ix_scale(t, derived(t, IV_MOD, ix_var(t, x.var), by), x.coef);
        return ix_add(t, ix_times(t, high, x.mult), low);
    }
    return derived(t, IV_MOD, r, d);
}

Ix ix_div(IxTable *t, Ix a, Dim d)
{
    if (!a || dim_eq(d, DIM(1)))
        return a;
    Ix q, r;
    split(t, a, d, &q, &r);
    return quotient(t, q, r, d);
}

Ix ix_mod(IxTable *t, Ix a, Dim d)
{
    if (!a || dim_eq(d, DIM(1)))
        return 0;
    Ix q, r;
    split(t, a, d, &q, &r);
    return remainder_of(t, r, d);
}

/* ---- questions ---- */

bool ix_is_var(const IxTable *t, Ix a, IVar *v, int64_t *c)
{
    const IxForm *f = ix_form(t, a);
    int found = 0;
    *c = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        int64_t k = f->t[i].mult * ix_dim_at(t, f->t[i].coef);
        if (f->t[i].var == 0) {
            *c += k;
        } else {
            *v = f->t[i].var;
            found += k == 1 ? 1 : 2;
        }
    }
    return found == 1;
}

bool ix_slope(const IxTable *t, Ix a, IVar v, int64_t *slope)
{
    const IxForm *f = ix_form(t, a);
    *slope = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        if (f->t[i].var == v)
            *slope += f->t[i].mult * ix_dim_at(t, f->t[i].coef);
        else if (ix_info(t, f->t[i].var)->deps & ix_bit(t, v))
            return false;
    }
    return true;
}

/* ---- shapes ---- */

Ix ix_linear(IxTable *t, const Shape *s, const Ix *c)
{
    Ix sum = 0;
    Dim stride = DIM(1);
    for (int k = s->rank - 1; k >= 0; k--) {
        sum = ix_add(t, sum, ix_scale(t, c[k], stride));
        if (!dim_mul(stride, s->d[k], &stride))
            vwn_bug(t->ctx, "the size of a tensor overflows");
    }
    return sum;
}

void ix_unlinear(IxTable *t, const Shape *s, Ix linear, Ix *c)
{
    Ix rest = linear;
    int first = 0;
    while (first < s->rank && dim_eq(s->d[first], DIM(1)))
        c[first++] = 0;
    for (int k = s->rank - 1; k >= first; k--) {
        if (dim_eq(s->d[k], DIM(1))) {
            c[k] = 0;
        } else if (k == first) {
            c[k] = rest;
        } else {
            Ix q, r;
            split(t, rest, s->d[k], &q, &r);
            c[k] = remainder_of(t, r, s->d[k]);
            rest = quotient(t, q, r, s->d[k]);
        }
    }
}
