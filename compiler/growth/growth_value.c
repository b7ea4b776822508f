/* growth_value.c - see growth_value.h: blocks and what keeps their axes apart and together.
 *
 * The one idea: rules see blocks whose parts fit each other; cutting beforehand and joining afterwards is here.
 */
#include "growth_rules.h"

#include <math.h>

bool value_next(const GrowthValue *v, size_t *part)
{
    for (int k = v->shape.rank - 1; k >= 0; k--) {
        if (++part[k] < v->axis[k].n)
            return true;
        part[k] = 0;
    }
    return false;
}

GrowthBlock *value_block(const GrowthValue *v, const size_t *part)
{
    size_t at = 0;
    for (int k = 0; k < v->shape.rank; k++)
        at = at * v->axis[k].n + part[k];
    return &v->block[at];
}

GrowthValue *value_cut(Values *x, const Shape *s, const Cuts axis[MAX_RANK])
{
    static int64_t zero[1];
    GrowthValue *v = NEW(x->arena, GrowthValue);
    v->shape = *s;
    v->n = 1;
    for (int k = 0; k < s->rank; k++) {
        v->axis[k] = axis && axis[k].n ? axis[k] : (Cuts){zero, 1};
        v->n *= v->axis[k].n;
    }
    v->block = NEW_ARRAY(x->arena, GrowthBlock, v->n + 1);
    for (size_t i = 0; i < v->n; i++)
        v->block[i].why = x->at;
    return v;
}

GrowthValue *value_uniform(Values *x, const Shape *s, GrowthBlock b)
{
    GrowthValue *v = value_cut(x, s, NULL);
    v->block[0] = b;
    return v;
}

GrowthBlock block_number(Values *x, int rank, double c)
{
    if (!isfinite(c))
        return (GrowthBlock){.kind = BLOCK_ANY, .why = x->at};
    if (c == 0)
        return (GrowthBlock){.kind = BLOCK_ZERO};
    return (GrowthBlock){.kind = BLOCK_TERM, .term = term_one(x->terms, rank), .c = c};
}

GrowthBlock block_whole(Values *x, Op op, const Attr *a, const Shape *s, DType dtype)
{
    return (GrowthBlock){.kind = BLOCK_TERM, .c = 1, .term = term_make(x->terms, op, dtype, NULL, 0, a, s)};
}

bool block_is_number(const Values *x, const GrowthBlock *b)
{
    return b->kind == BLOCK_ZERO || (b->kind == BLOCK_TERM && term_is_one(x->terms, b->term));
}

double block_number_of(const GrowthBlock *b) { return b->kind == BLOCK_ZERO ? 0 : b->c; }

Dim term_dim(const Values *x, Term t, int k) { return term_at(x->terms, t)->shape.d[k]; }

bool block_varies(const Values *x, const GrowthBlock *b, int k)
{
    return b->kind == BLOCK_TERM && !dim_eq(term_dim(x, b->term, k), DIM(1));
}

GrowthValue *value_copy(Arena *arena, const GrowthValue *v)
{
    GrowthValue *out = NEW(arena, GrowthValue);
    *out = *v;
    out->block = NEW_ARRAY(arena, GrowthBlock, v->n + 1);
    memcpy(out->block, v->block, v->n * sizeof *v->block);
    for (int k = 0; k < v->shape.rank; k++) {
        out->axis[k].at = NEW_ARRAY(arena, int64_t, v->axis[k].n);
        memcpy(out->axis[k].at, v->axis[k].at, v->axis[k].n * sizeof *v->axis[k].at);
    }
    return out;
}

/* ---- cutting ---- */

Cuts cuts_union(Values *x, Cuts a, Cuts b)
{
    if (b.n == 1)
        return a;
    if (a.n == 1)
        return b;
    Cuts c = {NEW_ARRAY(x->arena, int64_t, a.n + b.n), 0};
    for (size_t i = 0, j = 0; i < a.n || j < b.n;) {
        int64_t at = j == b.n || (i < a.n && a.at[i] <= b.at[j]) ? a.at[i] : b.at[j];
        i += i < a.n && a.at[i] == at;
        j += j < b.n && b.at[j] == at;
        c.at[c.n++] = at;
    }
    return c;
}

static size_t part_at(const Cuts *c, int64_t at)
{
    size_t lo = 0, hi = c->n;
    while (hi - lo > 1) {
        size_t mid = (lo + hi) / 2;
        *(c->at[mid] <= at ? &lo : &hi) = mid;
    }
    return lo;
}

/* The statement about the element at `at` of each axis, as of a window that begins there. */
GrowthBlock block_at(const Values *x, const GrowthValue *v, const int64_t *at)
{
    size_t part[MAX_RANK];
    for (int k = 0; k < v->shape.rank; k++)
        part[k] = part_at(&v->axis[k], at[k]);
    GrowthBlock b = *value_block(v, part);
    for (int k = 0; k < v->shape.rank; k++)
        if (block_varies(x, &b, k))
            b.from[k] += at[k] - v->axis[k].at[part[k]];
    return b;
}

GrowthValue *value_refine(Values *x, const GrowthValue *v, const Cuts axis[MAX_RANK])
{
    GrowthValue *out = value_cut(x, &v->shape, axis);
    if (out->n == v->n) { /* cuts are only added, so these are the same */
        memcpy(out->block, v->block, v->n * sizeof *v->block);
        return out;
    }
    size_t part[MAX_RANK] = {0};
    do {
        int64_t at[MAX_RANK];
        for (int k = 0; k < v->shape.rank; k++)
            at[k] = out->axis[k].at[part[k]];
        *value_block(out, part) = block_at(x, v, at);
    } while (value_next(out, part));
    return out;
}

/* ---- joining ---- */

static bool continues(const Values *x, const GrowthValue *v, const GrowthBlock *a, const GrowthBlock *b, int axis,
                      int64_t count)
{
    if (a->kind != b->kind || a->balanced != b->balanced || a->open != b->open)
        return false;
    if (a->kind != BLOCK_TERM)
        return true;
    if (a->term != b->term || !factor_same(a->c, b->c))
        return false;
    for (int k = 0; k < v->shape.rank; k++)
        if (block_varies(x, a, k) && b->from[k] != a->from[k] + (k == axis ? count : 0))
            return false;
    return true;
}

static GrowthValue *join_axis(Values *x, GrowthValue *v, int k)
{
    size_t inner = 1, n = v->axis[k].n;
    for (int i = k + 1; i < v->shape.rank; i++)
        inner *= v->axis[i].n;
    bool *stays = NEW_ARRAY(x->arena, bool, n + 1);
    Cuts cuts[MAX_RANK];
    memcpy(cuts, v->axis, sizeof cuts);
    cuts[k] = (Cuts){NEW_ARRAY(x->arena, int64_t, n + 1), 0};
    for (size_t p = 0; p < n; p++) {
        stays[p] = p == 0;
        for (size_t i = 0; i < v->n / n && !stays[p]; i++) {
            const GrowthBlock *b = &v->block[(i / inner * n + p) * inner + i % inner];
            stays[p] = !continues(x, v, b - inner, b, k, v->axis[k].at[p] - v->axis[k].at[p - 1]);
        }
        if (stays[p])
            cuts[k].at[cuts[k].n++] = v->axis[k].at[p];
    }
    if (cuts[k].n == n)
        return v;
    GrowthValue *out = value_cut(x, &v->shape, cuts);
    size_t to = 0;
    for (size_t i = 0; i < v->n; i++)
        if (stays[i / inner % n])
            out->block[to++] = v->block[i];
    return out;
}

GrowthValue *value_tidy(Values *x, GrowthValue *v)
{
    for (int k = 0; k < v->shape.rank; k++)
        if (v->axis[k].n > 1)
            v = join_axis(x, v, k);
    return v;
}

GrowthValue *value_table(Values *x, const Shape *s, const double *data, size_t n)
{
    enum { MOST = 64 };
    if (n > MOST || s->rank > 2)
        return value_uniform(x, s, block_whole(x, OP_CONST, &(Attr){.data = data, .n = n}, s, DT_REAL));
    Cuts cuts[MAX_RANK] = {{0}};
    for (int k = 0; k < s->rank; k++) {
        cuts[k] = (Cuts){NEW_ARRAY(x->arena, int64_t, MOST), (size_t)s->d[k].n};
        for (int64_t i = 0; i < s->d[k].n; i++)
            cuts[k].at[i] = i;
    }
    GrowthValue *v = value_cut(x, s, cuts);
    for (size_t i = 0; i < n; i++)
        v->block[i] = block_number(x, s->rank, data[i]);
    return value_tidy(x, v);
}

/* ---- windows ---- */

/* Slices terms so that the windows of all blocks begin at the same place of terms of equal extents. */
bool blocks_align(Values *x, GrowthBlock *b, size_t n, int rank)
{
    for (int k = 0; k < rank; k++) {
        int64_t lo = INT64_MIN, hi = INT64_MAX;
        const GrowthBlock *first = NULL;
        bool same = true;
        for (size_t i = 0; i < n; i++) {
            if (!block_varies(x, &b[i], k))
                continue;
            Dim d = term_dim(x, b[i].term, k);
            first = first ? first : &b[i];
            same &= first->from[k] == b[i].from[k] && dim_eq(d, term_dim(x, first->term, k));
            lo = -b[i].from[k] > lo ? -b[i].from[k] : lo;
            hi = d.n - b[i].from[k] < hi ? d.n - b[i].from[k] : hi;
        }
        for (size_t i = 0; i < n && !same; i++) {
            if (!block_varies(x, &b[i], k))
                continue;
            if (!dim_static(term_dim(x, b[i].term, k)))
                return false;
            b[i].term = term_slice(x->terms, b[i].term, k, lo + b[i].from[k], hi - lo);
            b[i].from[k] = -lo;
        }
    }
    return true;
}

/* The window of terms that are aligned, and its extents. */
GrowthBlock block_of_aligned(const Values *x, const GrowthBlock *b, size_t n, int rank, Shape *s)
{
    GrowthBlock out = {.kind = BLOCK_TERM, .c = 1};
    s->rank = (uint8_t)rank;
    for (int k = 0; k < rank; k++) {
        s->d[k] = DIM(1);
        for (size_t i = 0; i < n; i++)
            if (block_varies(x, &b[i], k)) {
                s->d[k] = term_dim(x, b[i].term, k);
                out.from[k] = b[i].from[k];
            }
    }
    return out;
}

/* Of two that are added: what one of them has for sure the sum has. */
static uint16_t open_sum(const GrowthBlock *a, const GrowthBlock *b)
{
    const uint16_t chance = 1u << OPEN_CHANCE, data = (uint16_t)~chance;
    if (a->kind == BLOCK_ZERO || b->kind == BLOCK_ZERO || (a->open & data && b->open & data))
        return a->open | b->open;
    return a->open && b->open ? chance : 0;
}

GrowthBlock block_add(Values *x, GrowthBlock a, GrowthBlock b, int rank)
{
    if (a.kind == BLOCK_ANY || b.kind == BLOCK_ANY) {
        GrowthBlock sum = a.kind == BLOCK_ANY ? a : b;
        sum.open = open_sum(&a, &b);
        return sum;
    }
    if (a.kind == BLOCK_ZERO)
        return b;
    if (b.kind == BLOCK_ZERO)
        return a;
    GrowthBlock in[2] = {a, b};
    if (!blocks_align(x, in, 2, rank))
        return (GrowthBlock){.kind = BLOCK_ANY, .why = x->at};
    Shape s;
    GrowthBlock out = block_of_aligned(x, in, 2, rank, &s);
    TermIn sum = term_sum(x->terms, (TermIn){in[0].c, in[0].term}, (TermIn){in[1].c, in[1].term});
    if (!sum.t)
        return (GrowthBlock){.kind = BLOCK_ZERO};
    out.term = sum.t;
    out.c = sum.c;
    for (int k = 0; k < rank; k++)
        if (dim_eq(term_dim(x, sum.t, k), DIM(1)))
            out.from[k] = 0;
    return out;
}

bool value_scales(Values *x, const GrowthValue *a, const GrowthValue *b, double *factor, Val *why)
{
    Cuts cuts[MAX_RANK] = {{0}};
    *factor = 0;
    *why = 0;
    if (!shape_eq(&a->shape, &b->shape))
        return false;
    for (int k = 0; k < a->shape.rank; k++)
        cuts[k] = cuts_union(x, a->axis[k], b->axis[k]);
    const GrowthValue *p = value_refine(x, a, cuts), *q = value_refine(x, b, cuts);
    for (size_t i = 0; i < p->n; i++) {
        const GrowthBlock *v = &p->block[i], *w = &q->block[i];
        if (v->kind == BLOCK_ZERO && w->kind == BLOCK_ZERO)
            continue;
        *why = v->why;
        if (v->kind != BLOCK_TERM || w->kind != BLOCK_TERM || v->term != w->term)
            return false;
        for (int k = 0; k < a->shape.rank; k++)
            if (v->from[k] != w->from[k])
                return false;
        double f = v->c / w->c;
        if (*factor != 0 && fabs(*factor - f) > 1e-9 * fabs(f))
            return false;
        *factor = f;
    }
    *factor = *factor == 0 ? 1 : *factor;
    return true;
}
