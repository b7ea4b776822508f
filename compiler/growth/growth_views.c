/* growth_views.c - rules of operators that only move elements.
 *
 * In:  the blocks of what is moved.   Out: the same windows at other places.
 * The one idea: a slice, a pad or a concatenation changes where blocks are and no term; only a reshape has to know
 * how the axes of the old value were split, and finds it in the widths of the windows.
 */
#include "growth_rules.h"

enum { MOST_CELLS = 1 << 16, MOST_SAME = 256 };

static GrowthValue *input(const Values *x, const Node *n, int i) { return x->of[n->in[i]]; }

static GrowthValue *unknown(Values *x, const Shape *s)
{
    return value_uniform(x, s, (GrowthBlock){.kind = BLOCK_ANY, .why = x->at});
}

/* ---- reshape ---- */

/* Whether the part of axis k that begins at `at` or holds it has one element. */
static bool is_single(const GrowthValue *v, int k, int64_t at)
{
    if (!dim_static(v->shape.d[k]))
        return false;
    for (size_t i = 0; i < v->axis[k].n; i++)
        if (at < part_end(v, k, i))
            return part_end(v, k, i) - v->axis[k].at[i] == 1;
    return false;
}

/* The same where the parts cannot be told apart afterwards: zero is left where all of them are. */
static GrowthValue *merge_kinds(Values *x, const GrowthValue *v, int k, const Shape *to)
{
    Cuts cuts[MAX_RANK] = {{0}};
    for (int i = 0; i < to->rank; i++)
        if (i != k)
            cuts[i] = v->axis[i < k ? i : i + 1];
    GrowthValue *out = value_cut(x, to, cuts);
    size_t part[MAX_RANK] = {0};
    for (size_t i = 0; i < out->n; i++)
        out->block[i].kind = BLOCK_ZERO;
    do {
        size_t at[MAX_RANK] = {0};
        for (int i = 0; i < to->rank; i++)
            at[i] = i == k ? 0 : part[i < k ? i : i + 1];
        const GrowthBlock *b = value_block(v, part);
        GrowthBlock *made = value_block(out, at);
        if (b->kind != BLOCK_ZERO)
            *made = block_add(
                x, *made,
                (GrowthBlock){.kind = BLOCK_ANY, .why = b->kind == BLOCK_ANY ? b->why : x->at, .open = b->open},
                to->rank);
    } while (value_next(v, part));
    return out;
}

/* v with axes k and k + 1 as one. */
static GrowthValue *merge(Values *x, const GrowthValue *v, int k)
{
    const Shape *s = &v->shape;
    Dim da = s->d[k], db = s->d[k + 1], dn = {0};
    Shape to = *s;
    to.rank--;
    for (int i = k; i < to.rank; i++)
        to.d[i] = s->d[i + 1];
    if (!dim_mul(da, db, &dn))
        return NULL;
    to.d[k] = dn;
    bool fixed = dim_static(da) && dim_static(db), rows = false;
    for (size_t i = 0; i < v->n; i++) { /* must rows stand apart? */
        const GrowthBlock *b = &v->block[i];
        bool full = b->kind != BLOCK_TERM || (!block_varies(x, b, k) && !block_varies(x, b, k + 1)) ||
                    (dim_eq(term_dim(x, b->term, k + 1), db) && b->from[k + 1] == 0);
        rows |= !full && (v->axis[k].n > 1 || v->axis[k + 1].n > 1 || block_varies(x, b, k + 1));
        /* rows that are all the same, as several copies of one head, are windows of one row */
        rows |=
            b->kind == BLOCK_TERM && fixed && da.n <= MOST_SAME && !block_varies(x, b, k) && block_varies(x, b, k + 1);
    }
    rows |= v->axis[k + 1].n > 1;
    if ((rows || v->axis[k].n > 1) && !fixed)
        return merge_kinds(x, v, k, &to);
    size_t n_rows = rows ? (size_t)da.n : v->axis[k].n, n = n_rows * v->axis[k + 1].n;
    if (n > MOST_CELLS)
        return NULL;
    Cuts cuts[MAX_RANK] = {{0}};
    for (int i = 0; i < to.rank; i++)
        cuts[i] = v->axis[i < k ? i : i + 1];
    cuts[k] = (Cuts){NEW_ARRAY(x->arena, int64_t, n + 1), 0};
    for (size_t r = 0; r < n_rows; r++)
        for (size_t p = 0; p < v->axis[k + 1].n; p++)
            cuts[k].at[cuts[k].n++] = (rows ? (int64_t)r : v->axis[k].at[r]) * db.n + v->axis[k + 1].at[p];
    GrowthValue *out = value_cut(x, &to, cuts);
    size_t part[MAX_RANK] = {0};
    do {
        int64_t at[MAX_RANK];
        for (int i = 0; i < s->rank; i++)
            at[i] = i <= k ? out->axis[i].at[part[i]] : i > k + 1 ? out->axis[i - 1].at[part[i - 1]] : 0;
        at[k + 1] = fixed ? at[k] % db.n : 0;
        at[k] = fixed ? at[k] / db.n : 0;
        GrowthBlock b = block_at(x, v, at), *made = value_block(out, part);
        *made = b;
        if (b.kind != BLOCK_TERM)
            continue;
        bool va = block_varies(x, &b, k), vb = block_varies(x, &b, k + 1);
        Term t = b.term;
        if (va && !vb && !is_single(v, k + 1, at[k + 1])) {
            t = term_spread(x->terms, t, k + 1, db);
            b.from[k + 1] = fixed ? at[k + 1] : 0;
        }
        if (vb && !va && !rows && !is_single(v, k, at[k])) {
            t = term_spread(x->terms, t, k, da);
            b.from[k] = at[k];
        }
        Shape old = term_at(x->terms, t)->shape, flat = old;
        flat.rank--;
        for (int i = k; i < flat.rank; i++)
            flat.d[i] = old.d[i + 1];
        if (!dim_mul(old.d[k], old.d[k + 1], &flat.d[k]))
            return NULL;
        made->from[k] = b.from[k] * old.d[k + 1].n + b.from[k + 1];
        if (!va && !vb)
            made->from[k] = 0;
        for (int i = k + 1; i < to.rank; i++)
            made->from[i] = b.from[i + 1];
        made->term = term_reshape(x->terms, t, &flat);
    } while (value_next(out, part));
    return value_tidy(x, out);
}

/* How wide the inner axis of a term is whose axis of extent `d` is split: the first row has so many. */
static int64_t old_inner(const Values *x, const GrowthValue *v, int k, Term t, int64_t inner)
{
    int64_t d = term_dim(x, t, k).n, low = INT64_MAX, high = 0;
    if (d == v->shape.d[k].n)
        return inner;
    int64_t at[MAX_RANK] = {0};
    for (size_t i = 0; i < v->n; i++) {
        if (v->block[i].kind != BLOCK_TERM || v->block[i].term != t)
            continue;
        size_t rest = i; /* other axes where this block is */
        for (int a = v->shape.rank - 1; a >= 0; a--) {
            at[a] = v->axis[a].at[rest % v->axis[a].n];
            rest /= v->axis[a].n;
        }
        break;
    }
    int64_t row = at[k] / inner;
    for (int64_t c = row * inner; c < (row + 1) * inner;) {
        at[k] = c;
        GrowthBlock b = block_at(x, v, at);
        size_t p = 0;
        while (p + 1 < v->axis[k].n && v->axis[k].at[p + 1] <= c)
            p++;
        int64_t end = part_end(v, k, p) < (row + 1) * inner ? part_end(v, k, p) : (row + 1) * inner;
        if (b.kind == BLOCK_TERM && b.term == t) { /* copies stand in it several times */
            low = b.from[k] < low ? b.from[k] : low;
            high = b.from[k] + end - c > high ? b.from[k] + end - c : high;
        }
        c = end;
    }
    if (high > low && d % (high - low) == 0)
        return high - low;
    return d % inner == 0 ? inner : 0;
}

/* Axis k as two, the second of extent `inner`. */
static GrowthValue *split(Values *x, const GrowthValue *v, int k, Dim outer, Dim inner)
{
    const Shape *s = &v->shape;
    Shape to = *s;
    to.rank++;
    for (int i = to.rank - 1; i > k + 1; i--)
        to.d[i] = s->d[i - 1];
    to.d[k] = outer;
    to.d[k + 1] = inner;
    bool whole = v->axis[k].n == 1;
    for (size_t i = 0; i < v->n && whole; i++)
        whole = !block_varies(x, &v->block[i], k) || dim_eq(term_dim(x, v->block[i].term, k), s->d[k]);
    bool fixed = dim_static(outer) && dim_static(inner);
    if (!whole && (!fixed || s->d[k].n > 1 << 20 || outer.n > MOST_CELLS))
        return NULL;
    Cuts cuts[MAX_RANK] = {{0}};
    for (int i = 0; i < to.rank; i++)
        cuts[i] = v->axis[i <= k ? i : i - 1];
    cuts[k] = cuts[k + 1] = (Cuts){0};
    if (!whole) {
        cuts[k] = (Cuts){NEW_ARRAY(x->arena, int64_t, outer.n + 1), (size_t)outer.n};
        for (int64_t i = 0; i < outer.n; i++)
            cuts[k].at[i] = i;
        bool *begins = NEW_ARRAY(x->arena, bool, inner.n + 1);
        for (size_t p = 0; p < v->axis[k].n; p++)
            begins[v->axis[k].at[p] % inner.n] = true;
        begins[0] = true;
        cuts[k + 1] = (Cuts){NEW_ARRAY(x->arena, int64_t, inner.n + 1), 0};
        for (int64_t i = 0; i < inner.n; i++)
            if (begins[i])
                cuts[k + 1].at[cuts[k + 1].n++] = i;
    }
    GrowthValue *out = value_cut(x, &to, cuts);
    size_t part[MAX_RANK] = {0};
    Term known = 0;
    int64_t width = 0;
    do {
        int64_t at[MAX_RANK] = {0};
        for (int i = 0; i < s->rank; i++)
            at[i] = out->axis[i <= k ? i : i + 1].at[part[i <= k ? i : i + 1]];
        if (!whole)
            at[k] = out->axis[k].at[part[k]] * inner.n + out->axis[k + 1].at[part[k + 1]];
        GrowthBlock b = block_at(x, v, at), *made = value_block(out, part);
        *made = b;
        if (b.kind != BLOCK_TERM)
            continue;
        Shape old = term_at(x->terms, b.term)->shape, two = old;
        two.rank++;
        for (int i = two.rank - 1; i > k + 1; i--) {
            two.d[i] = old.d[i - 1];
            made->from[i] = b.from[i - 1];
        }
        made->from[k] = made->from[k + 1] = 0;
        if (!block_varies(x, &b, k)) {
            two.d[k] = two.d[k + 1] = DIM(1);
        } else if (whole) {
            two.d[k] = outer;
            two.d[k + 1] = inner;
        } else {
            if (b.term != known) {
                known = b.term;
                width = outer.n == 1 ? old.d[k].n : old_inner(x, v, k, b.term, inner.n);
            }
            int64_t count = part_end(out, k + 1, part[k + 1]) - out->axis[k + 1].at[part[k + 1]];
            if (!width || b.from[k] % width + count > width)
                return NULL;
            two.d[k] = DIM(old.d[k].n / width);
            two.d[k + 1] = DIM(width);
            made->from[k] = two.d[k].n > 1 ? b.from[k] / width : 0;
            made->from[k + 1] = width > 1 ? b.from[k] % width : 0;
        }
        made->term = term_reshape(x->terms, b.term, &two);
    } while (value_next(out, part));
    return value_tidy(x, out);
}

/* v with one axis of extent 1 more or less at the end. */
static GrowthValue *add_axis(Values *x, const GrowthValue *v, int more)
{
    Shape s = v->shape;
    s.rank = (uint8_t)(s.rank + more);
    if (more > 0)
        s.d[s.rank - 1] = DIM(1);
    GrowthValue *out = value_cut(x, &s, v->axis);
    for (size_t i = 0; i < v->n; i++) {
        out->block[i] = v->block[i];
        if (v->block[i].kind != BLOCK_TERM)
            continue;
        Shape t = term_at(x->terms, v->block[i].term)->shape;
        t.rank = s.rank;
        if (more > 0)
            t.d[s.rank - 1] = DIM(1);
        out->block[i].term = term_reshape(x->terms, v->block[i].term, &t);
    }
    return out;
}

/* Makes axis k of *v, and as many behind it as it takes, into the next axes of `to`; false: not known how. */
static bool reshape_group(Values *x, GrowthValue **v, int *k, const Shape *to)
{
    GrowthValue *now = *v;
    int from = *k, end = from + 1, last = from + 1;
    bool none = from == now->shape.rank; /* only extents of 1 are left of `to` */
    Dim p = none ? DIM(1) : now->shape.d[from], q = from < to->rank ? to->d[from] : DIM(1);
    if (none || from == to->rank)
        end = none ? from : end, last = none ? last : from;
    while (!dim_eq(p, q)) {
        Dim r;
        bool less = p.n <= q.n && p.b <= q.b && p.t <= q.t;
        if (less && end < now->shape.rank && dim_mul(p, now->shape.d[end], &r)) {
            p = r;
            end++;
        } else if (last < to->rank && dim_mul(q, to->d[last], &r)) {
            q = r;
            last++;
        } else {
            return false;
        }
    }
    if (last == to->rank) /* trailing ones of the old shape */
        while (end < now->shape.rank && dim_eq(now->shape.d[end], DIM(1)))
            end++;
    if (none) {
        *v = add_axis(x, now, 1);
        *k = from + 1;
        return true;
    }
    if (from == to->rank) { /* an axis of extent 1 more than `to` has */
        *v = from > 0 ? merge(x, now, from - 1) : now->shape.rank > 1 ? merge(x, now, 0) : add_axis(x, now, -1);
        return *v != NULL;
    }
    for (int i = end - 1; i > from && now; i--)
        now = merge(x, now, i - 1);
    for (int i = from; i + 1 < last && now; i++) {
        Dim rest = DIM(1);
        for (int j = i + 1; j < last; j++)
            if (!dim_mul(rest, to->d[j], &rest))
                return false;
        now = split(x, now, i, to->d[i], rest);
    }
    *v = now;
    *k = last;
    return now != NULL;
}

/* Where axis k of a shape is after a reshape; -1: it is split or part of another. */
static int axis_after(const Shape *was, const Shape *is, int k)
{
    Dim before = DIM(1), at = DIM(1);
    for (int i = 0; i < k; i++)
        if (!dim_mul(before, was->d[i], &before))
            return -1;
    for (int i = 0; i < is->rank; i++) {
        if (dim_eq(at, before) && dim_eq(is->d[i], was->d[k]) && !dim_eq(is->d[i], DIM(1)))
            return i;
        if (!dim_mul(at, is->d[i], &at))
            return -1;
    }
    return -1;
}

static uint16_t open_moved(uint16_t open, const int *to, int rank)
{
    uint16_t moved = open & OPEN_STAYS;
    for (int k = 0; k < rank; k++)
        if (open >> k & 1)
            moved |= (uint16_t)(1u << (to[k] < 0 ? OPEN_FOR_GOOD : to[k]));
    return moved;
}

GrowthValue *rule_reshape(Values *x, const Node *n)
{
    GrowthValue *v = input(x, n, 0);
    const Shape *was = &v->shape;
    bool same_rows =
        was->rank > 1 && n->shape.rank > 1 && dim_eq(was->d[0], n->shape.d[0]) && dim_eq(was->d[1], n->shape.d[1]);
    if (v->n == 1 && v->block[0].kind != BLOCK_TERM) {
        v = value_uniform(x, &n->shape, v->block[0]);
    } else {
        for (int k = 0; k < n->shape.rank || k < v->shape.rank;)
            if (!reshape_group(x, &v, &k, &n->shape))
                return unknown(x, &n->shape);
        if (!shape_eq(&v->shape, &n->shape))
            return unknown(x, &n->shape);
    }
    if (v == input(x, n, 0))
        return v;
    int to[MAX_RANK];
    for (int k = 0; k < was->rank; k++)
        to[k] = axis_after(was, &n->shape, k);
    for (size_t i = 0; i < v->n; i++) {
        v->block[i].balanced &= same_rows;
        v->block[i].open = open_moved(v->block[i].open, to, was->rank);
    }
    return v;
}

/* ---- the others ---- */

GrowthValue *rule_permute(Values *x, const Node *n)
{
    const GrowthValue *v = input(x, n, 0);
    Cuts cuts[MAX_RANK] = {{0}};
    int r = n->shape.rank;
    int to_axis[MAX_RANK] = {0};
    for (int k = 0; k < r; k++) {
        cuts[k] = v->axis[(int)n->a.data[k]];
        to_axis[(int)n->a.data[k]] = k;
    }
    GrowthValue *out = value_cut(x, &n->shape, cuts);
    size_t part[MAX_RANK] = {0};
    do {
        size_t from[MAX_RANK];
        for (int k = 0; k < r; k++)
            from[(int)n->a.data[k]] = part[k];
        GrowthBlock b = *value_block(v, from), *made = value_block(out, part);
        *made = b;
        made->open = open_moved(b.open, to_axis, r);
        if (b.kind != BLOCK_TERM || term_is_one(x->terms, b.term))
            continue;
        Shape s = term_at(x->terms, b.term)->shape, to = s;
        for (int k = 0; k < r; k++) {
            to.d[k] = s.d[(int)n->a.data[k]];
            made->from[k] = b.from[(int)n->a.data[k]];
        }
        made->term = term_make(x->terms, OP_PERMUTE, (DType)n->dtype, &(TermIn){1, b.term}, 1, &n->a, &to);
    } while (value_next(out, part));
    return out;
}

GrowthValue *rule_broadcast(Values *x, const Node *n)
{
    const GrowthValue *v = input(x, n, 0);
    GrowthValue *out = value_cut(x, &n->shape, v->axis);
    for (size_t i = 0; i < v->n; i++) {
        GrowthBlock b = v->block[i];
        for (int k = 0; k < n->shape.rank; k++)
            if (!dim_eq(v->shape.d[k], n->shape.d[k]) && block_varies(x, &b, k)) {
                b.term = term_slice(x->terms, b.term, k, b.from[k], 1);
                b.from[k] = 0;
            }
        out->block[i] = b;
    }
    return out;
}

/* The parts of `v` from `lo` on, as the parts of `out` from `to` on. */
static void place(Values *x, GrowthValue *out, const GrowthValue *v, int k, int64_t lo, int64_t to, int64_t count)
{
    size_t part[MAX_RANK] = {0};
    do {
        int64_t at[MAX_RANK];
        for (int i = 0; i < out->shape.rank; i++)
            at[i] = out->axis[i].at[part[i]];
        if (at[k] < to || at[k] >= to + count)
            continue;
        at[k] += lo - to;
        *value_block(out, part) = block_at(x, v, at);
    } while (value_next(out, part));
}

/* The cuts of an axis within lo .. lo + count, moved to begin at `to`. */
static void add_cuts(Cuts *c, const Cuts *a, int64_t lo, int64_t to, int64_t count)
{
    if (!count)
        return;
    c->at[c->n++] = to;
    for (size_t i = 0; i < a->n; i++)
        if (a->at[i] > lo && a->at[i] < lo + count)
            c->at[c->n++] = to + a->at[i] - lo;
}

GrowthValue *rule_slice(Values *x, const Node *n)
{
    const GrowthValue *v = input(x, n, 0);
    int k = (int)n->a.i;
    if (dim_eq(v->shape.d[k], n->shape.d[k]))
        return (GrowthValue *)v;
    if (!dim_static(n->shape.d[k]) || !dim_static(v->shape.d[k])) {
        if (v->n == 1 && v->block[0].kind != BLOCK_TERM)
            return value_uniform(x, &n->shape, v->block[0]);
        if (v->axis[k].n > 1)
            return unknown(x, &n->shape);
        GrowthValue *out = value_cut(x, &n->shape, v->axis);
        for (size_t i = 0; i < v->n; i++) {
            GrowthBlock b = v->block[i];
            if (block_varies(x, &b, k)) {
                Shape s = term_at(x->terms, b.term)->shape;
                s.d[k] = n->shape.d[k];
                b.term = term_make(x->terms, OP_SLICE, (DType)n->dtype, &(TermIn){1, b.term}, 1, &n->a, &s);
            }
            out->block[i] = b;
        }
        return out;
    }
    Cuts cuts[MAX_RANK];
    memcpy(cuts, v->axis, sizeof cuts);
    cuts[k] = (Cuts){NEW_ARRAY(x->arena, int64_t, v->axis[k].n + 1), 0};
    add_cuts(&cuts[k], &v->axis[k], n->a.j, 0, n->shape.d[k].n);
    GrowthValue *out = value_cut(x, &n->shape, cuts);
    place(x, out, v, k, n->a.j, 0, n->shape.d[k].n);
    return value_tidy(x, out);
}

GrowthValue *rule_pad(Values *x, const Node *n)
{
    const GrowthValue *v = input(x, n, 0);
    int k = (int)n->a.i;
    int64_t before = n->a.j, count = v->shape.d[k].n, all = n->shape.d[k].n;
    if (!dim_static(n->shape.d[k]) || !dim_static(v->shape.d[k]))
        return v->n == 1 && v->block[0].kind == BLOCK_ZERO ? value_uniform(x, &n->shape, v->block[0])
                                                           : unknown(x, &n->shape);
    Cuts cuts[MAX_RANK];
    memcpy(cuts, v->axis, sizeof cuts);
    cuts[k] = (Cuts){NEW_ARRAY(x->arena, int64_t, v->axis[k].n + 3), 0};
    static const Cuts none = {0};
    add_cuts(&cuts[k], &none, 0, 0, before);
    add_cuts(&cuts[k], &v->axis[k], 0, before, count);
    add_cuts(&cuts[k], &none, 0, before + count, all - before - count);
    GrowthValue *out = value_cut(x, &n->shape, cuts);
    for (size_t i = 0; i < out->n; i++)
        out->block[i] = (GrowthBlock){.kind = BLOCK_ZERO};
    place(x, out, v, k, 0, before, count);
    return value_tidy(x, out);
}

GrowthValue *rule_concat(Values *x, const Node *n)
{
    int k = (int)n->a.i;
    Cuts cuts[MAX_RANK];
    size_t most = 0;
    memcpy(cuts, input(x, n, 0)->axis, sizeof cuts);
    for (int i = 0; i < n->n_in; i++) {
        most += input(x, n, i)->axis[k].n;
        for (int a = 0; a < n->shape.rank; a++)
            if (a != k)
                cuts[a] = cuts_union(x, cuts[a], input(x, n, i)->axis[a]);
        if (!dim_static(input(x, n, i)->shape.d[k]))
            return unknown(x, &n->shape);
    }
    cuts[k] = (Cuts){NEW_ARRAY(x->arena, int64_t, most + 1), 0};
    int64_t to = 0;
    for (int i = 0; i < n->n_in; i++) {
        int64_t count = input(x, n, i)->shape.d[k].n;
        add_cuts(&cuts[k], &input(x, n, i)->axis[k], 0, to, count);
        to += count;
    }
    GrowthValue *out = value_cut(x, &n->shape, cuts);
    to = 0;
    for (int i = 0; i < n->n_in; i++) {
        place(x, out, input(x, n, i), k, 0, to, input(x, n, i)->shape.d[k].n);
        to += input(x, n, i)->shape.d[k].n;
    }
    return value_tidy(x, out);
}
