/* growth_sums.c - rules of operators that sum over an axis.
 *
 * In:  blocks whose windows meet along the axis.   Out: blocks of the sum.
 * The one idea: a sum over a grown axis is the old one when the windows that do not vanish cover the old axis with one
 * factor; copies add up (Net2Net), so two halves of an old unit are as good as the unit.
 */
#include "growth_rules.h"

#include <math.h>

/* Windows of one term, or of a product of two, along the axis of a sum. */
typedef struct Range {
    int64_t lo, hi;
    double c;
} Range;
typedef struct SumGroup {
    GrowthBlock a, b; /* b.kind is BLOCK_ZERO where there is one factor only */
    int64_t delta;    /* how much further the window of b begins */
    VEC(Range) range;
} SumGroup;
typedef struct Sums {
    Values *x;
    int rank;
    VEC(SumGroup) group;
    GrowthBlock sum; /* of what needs no group */
} Sums;

static bool same_windows(const GrowthBlock *a, const GrowthBlock *b, int rank, int but)
{
    if (a->kind != b->kind || a->term != b->term)
        return false;
    for (int k = 0; k < rank; k++)
        if (k != but && a->from[k] != b->from[k])
            return false;
    return true;
}

static void add_range(Sums *s, GrowthBlock a, GrowthBlock b, int ka, int kb, int64_t count, double c)
{
    int64_t lo = a.from[ka], delta = b.kind == BLOCK_TERM ? b.from[kb] - lo : 0;
    size_t i = 0;
    while (i < s->group.n && !(same_windows(&s->group.v[i].a, &a, MAX_RANK, ka) && s->group.v[i].delta == delta &&
                               same_windows(&s->group.v[i].b, &b, MAX_RANK, kb)))
        i++;
    if (i == s->group.n)
        vec_push(s->x->arena, &s->group, (SumGroup){.a = a, .b = b, .delta = delta});
    vec_push(s->x->arena, &s->group.v[i].range, (Range){lo, lo + count, c});
}

/* The sum of factors between two neighbouring ends of ranges. */
static double factor_at(const SumGroup *g, int64_t at, double *largest)
{
    double c = 0;
    for (size_t i = 0; i < g->range.n; i++)
        if (g->range.v[i].lo <= at && at < g->range.v[i].hi) {
            c += g->range.v[i].c;
            *largest = fmax(*largest, fabs(g->range.v[i].c));
        }
    return c;
}

/* The next run of one factor that is not 0 from *lo on; false: there is none. */
static bool next_run(const SumGroup *g, int64_t *lo, int64_t *hi, double *c)
{
    double largest = 0;
    for (int64_t at = *lo;;) {
        int64_t end = INT64_MAX;
        for (size_t i = 0; i < g->range.n; i++) {
            const Range *r = &g->range.v[i];
            end = r->lo > at && r->lo < end ? r->lo : end;
            end = r->hi > at && r->hi < end ? r->hi : end;
        }
        if (end == INT64_MAX)
            return false;
        *c = factor_at(g, at, &largest);
        if (fabs(*c) > 1e-12 * largest) {
            *lo = at;
            *hi = end;
            break;
        }
        at = end;
    }
    for (;;) { /* as long as the factor stays */
        int64_t end = INT64_MAX;
        double c2 = factor_at(g, *hi, &largest);
        if (fabs(c2 - *c) > 1e-12 * largest)
            return true;
        for (size_t i = 0; i < g->range.n; i++) {
            const Range *r = &g->range.v[i];
            end = r->lo > *hi && r->lo < end ? r->lo : end;
            end = r->hi > *hi && r->hi < end ? r->hi : end;
        }
        if (end == INT64_MAX)
            return true;
        *hi = end;
    }
}

static void add_block(Sums *s, GrowthBlock b) { s->sum = block_add(s->x, s->sum, b, s->rank); }

/* c times the sum of a term over a part of axis k, which has extent 1 then. */
static GrowthBlock sum_of(Values *x, GrowthBlock b, int k, int64_t lo, int64_t hi, double c)
{
    Term t = term_slice(x->terms, b.term, k, lo, hi - lo);
    Shape s = term_at(x->terms, t)->shape;
    b.from[k] = 0;
    b.c = c;
    if (s.d[k].n > 1 || !dim_static(s.d[k])) {
        s.d[k] = DIM(1);
        t = term_make(x->terms, OP_SUM, DT_REAL, &(TermIn){1, t}, 1, &(Attr){.axes = 1u << k}, &s);
    }
    b.term = t;
    return b;
}

/* What is added up along an axis of which only some are not zero, whichever they are: their sum is none of data's where
 * nothing there is zero for sure. `bit`: which of the block's; `zero`: something is. */
static GrowthBlock close_sum(GrowthBlock sum, int bit, bool zero)
{
    if (sum.open >> bit & 1)
        sum.open = (uint16_t)((sum.open & ~(1u << bit)) | (zero ? 1u << OPEN_FOR_GOOD : 0));
    return sum;
}

/* ---- SUM, AMAX ---- */

static GrowthValue *reduced(Values *x, const GrowthValue *v, int k)
{
    Cuts cuts[MAX_RANK];
    Shape s = v->shape;
    memcpy(cuts, v->axis, sizeof cuts);
    cuts[k] = (Cuts){0};
    s.d[k] = DIM(1);
    return value_cut(x, &s, cuts);
}

static GrowthValue *sum_axis(Values *x, const GrowthValue *v, int k)
{
    GrowthValue *out = reduced(x, v, k);
    size_t part[MAX_RANK] = {0};
    bool fixed = dim_static(v->shape.d[k]);
    do {
        Sums s = {.x = x, .rank = v->shape.rank, .sum = {.kind = BLOCK_ZERO}};
        size_t at[MAX_RANK];
        bool zero = false;
        memcpy(at, part, sizeof at);
        for (at[k] = 0; at[k] < v->axis[k].n; at[k]++) {
            GrowthBlock b = *value_block(v, at);
            int64_t count = part_end(v, k, at[k]) - v->axis[k].at[at[k]];
            zero |= b.kind == BLOCK_ZERO;
            if (b.kind != BLOCK_TERM) {
                add_block(&s, b);
            } else if (block_varies(x, &b, k)) {
                if (fixed)
                    add_range(&s, b, (GrowthBlock){.kind = BLOCK_ZERO}, k, 0, count, b.c);
                else
                    add_block(&s, sum_of(x, b, k, 0, term_dim(x, b.term, k).n, b.c));
            } else if (fixed) {
                b.c *= (double)count;
                add_block(&s, b);
            } else { /* so many times as there are */
                Term t = term_spread(x->terms, b.term, k, v->shape.d[k]);
                GrowthBlock all = b;
                all.term = t;
                add_block(&s, sum_of(x, all, k, 0, v->shape.d[k].n, b.c));
            }
        }
        for (size_t i = 0; i < s.group.n; i++) {
            const SumGroup *g = &s.group.v[i];
            double c;
            for (int64_t lo = 0, hi; next_run(g, &lo, &hi, &c); lo = hi)
                add_block(&s, sum_of(x, g->a, k, lo, hi, c));
        }
        *value_block(out, part) = close_sum(s.sum, k, zero);
    } while (value_next(out, part));
    return out;
}

GrowthValue *rule_sum(Values *x, const Node *n)
{
    GrowthValue *v = x->of[n->in[0]];
    if (x->sums[n->in[0]] && n->a.axes == 1u << x->along[n->in[0]])
        return x->sums[n->in[0]];
    if (n->a.axes & 2) {
        v = value_refine(x, v, v->axis);
        for (size_t i = 0; i < v->n; i++)
            if (v->block[i].balanced)
                v->block[i] = (GrowthBlock){.kind = BLOCK_ZERO};
    }
    for (int k = 0; k < n->shape.rank; k++)
        if (n->a.axes >> k & 1)
            v = sum_axis(x, v, k);
    return value_tidy(x, v);
}

/* Of windows that cover the whole old axis with one factor, and nothing else. */
static GrowthBlock max_of(Values *x, const GrowthValue *v, int k, const size_t *part)
{
    Sums s = {.x = x, .rank = v->shape.rank};
    size_t at[MAX_RANK];
    memcpy(at, part, sizeof at);
    at[k] = 0;
    GrowthBlock first = *value_block(v, at),
                bad = {.kind = BLOCK_ANY, .why = first.kind == BLOCK_ANY ? first.why : x->at};
    bool fixed = dim_static(v->shape.d[k]), same = true;
    for (; at[k] < v->axis[k].n; at[k]++) {
        GrowthBlock b = *value_block(v, at);
        if (b.kind != first.kind || b.kind == BLOCK_ANY)
            return bad;
        same &= b.kind == BLOCK_ZERO ||
                (same_windows(&b, &first, MAX_RANK, -1) && !block_varies(x, &b, k) && b.c == first.c);
        if (b.kind == BLOCK_TERM && fixed && block_varies(x, &b, k))
            add_range(&s, b, (GrowthBlock){.kind = BLOCK_ZERO}, k, 0, part_end(v, k, at[k]) - v->axis[k].at[at[k]],
                      b.c);
        if (b.kind == BLOCK_TERM && b.c != first.c)
            return bad;
    }
    if (same)
        return first;
    if (fixed) {
        int64_t covered = 0;
        for (size_t i = 0; s.group.n == 1 && i < s.group.v[0].range.n; i++)
            covered += s.group.v[0].range.v[i].hi - s.group.v[0].range.v[i].lo;
        int64_t lo = 0, hi = 0;
        double c;
        if (s.group.n != 1 || !next_run(&s.group.v[0], &lo, &hi, &c) || lo != 0 || hi != term_dim(x, first.term, k).n ||
            covered != v->shape.d[k].n)
            return bad;
    }
    Shape t = term_at(x->terms, first.term)->shape;
    t.d[k] = DIM(1);
    double inside = first.c < 0 ? -1 : 1;
    first.from[k] = 0;
    first.term = term_make(x->terms, OP_AMAX, DT_REAL, &(TermIn){inside, first.term}, 1, &(Attr){.axes = 1u << k}, &t);
    first.c = fabs(first.c);
    return first;
}

GrowthValue *rule_amax(Values *x, const Node *n)
{
    const GrowthValue *v = x->of[n->in[0]];
    for (int k = 0; k < n->shape.rank; k++) {
        if (!(n->a.axes >> k & 1))
            continue;
        GrowthValue *out = reduced(x, v, k);
        size_t part[MAX_RANK] = {0};
        do {
            *value_block(out, part) = max_of(x, v, k, part);
        } while (value_next(out, part));
        v = out;
    }
    return (GrowthValue *)v;
}

/* ---- products ---- */

typedef struct Product {
    Values *x;
    const Node *n;
    int ra, rb, r;      /* ranks of both sides and of the result */
    int ka, kb, ma, nb; /* axes: what is summed over, rows of a, columns of b */
    bool shared;        /* b has no leading axes */
} Product;

/* The block as one of the result's rank that stands for itself along axes of the other side. */
static GrowthBlock as_factor(const Product *p, GrowthBlock b, bool left)
{
    Values *x = p->x;
    if (term_is_one(x->terms, b.term)) {
        b.term = term_one(x->terms, p->r);
        return b;
    }
    Shape s = term_at(x->terms, b.term)->shape, to = {.rank = (uint8_t)p->r};
    int64_t from[MAX_RANK] = {0};
    int keep = left ? p->ma : p->nb, at = left ? p->r - 2 : p->r - 1, rank = left ? p->ra : p->rb;
    for (int k = 0; k < p->r; k++)
        to.d[k] = DIM(1);
    for (int k = 0; k < p->r - 2 && (left || !p->shared); k++) {
        to.d[k] = s.d[k];
        from[k] = b.from[k];
    }
    to.d[at] = s.d[keep];
    from[at] = b.from[keep];
    if (keep != rank - (left ? 2 : 1)) { /* the axis that is summed over has extent 1 here, so this moves nothing */
        Shape transposed = s;
        transposed.d[rank - 2] = s.d[rank - 1];
        transposed.d[rank - 1] = s.d[rank - 2];
        b.term = term_reshape(x->terms, b.term, &transposed);
    }
    b.term = term_reshape(x->terms, b.term, &to);
    memcpy(b.from, from, sizeof from);
    return b;
}

static GrowthBlock product_term(const Product *p, const SumGroup *g, int64_t lo, int64_t hi, double c)
{
    Values *x = p->x;
    GrowthBlock a = g->a, b = g->b, out = {.kind = BLOCK_TERM, .c = c};
    bool fixed = dim_static(term_dim(x, a.term, p->ka));
    Term ta = fixed ? term_slice(x->terms, a.term, p->ka, lo, hi - lo) : a.term;
    Term tb = fixed ? term_slice(x->terms, b.term, p->kb, lo + g->delta, hi - lo) : b.term;
    Shape s = {.rank = (uint8_t)p->r};
    for (int k = 0; k < p->r - 2; k++) {
        s.d[k] = term_dim(x, ta, k);
        out.from[k] = a.from[k];
        if (p->shared || !block_varies(x, &b, k))
            continue;
        if (block_varies(x, &a, k) && (a.from[k] != b.from[k] || !dim_eq(s.d[k], term_dim(x, tb, k))))
            return (GrowthBlock){.kind = BLOCK_ANY, .why = x->at};
        s.d[k] = term_dim(x, tb, k);
        out.from[k] = b.from[k];
    }
    s.d[p->r - 2] = term_dim(x, ta, p->ma);
    s.d[p->r - 1] = term_dim(x, tb, p->nb);
    out.from[p->r - 2] = a.from[p->ma];
    out.from[p->r - 1] = b.from[p->nb];
    out.term =
        term_make(x->terms, OP_MATMUL, DT_REAL, (TermIn[]){{1, ta}, {1, tb}}, 2, &(Attr){.i = p->n->a.i & 3}, &s);
    return out;
}

/* What of a product of two blocks data decides, along the axes of the result. */
static uint16_t open_product(const Product *p, const GrowthBlock *a, const GrowthBlock *b)
{
    uint32_t open = (a->open | b->open) & OPEN_STAYS;
    for (int k = 0; k < p->r - 2; k++)
        open |= (uint32_t)((a->open | (p->shared ? 0 : b->open)) & (1u << k));
    open |= a->open >> p->ma & 1 ? 1u << (p->r - 2) : 0;
    open |= b->open >> p->nb & 1 ? 1u << (p->r - 1) : 0;
    open |= a->open >> p->ka & 1 || b->open >> p->kb & 1 ? 1u << OPEN_SUMMED : 0;
    return (uint16_t)open;
}

/* One pair of blocks, for so many rows of the result: what it adds to the sum, now or as a range. */
static void add_pair(const Product *p, Sums *s, GrowthBlock a, GrowthBlock b, int64_t count, int64_t rows)
{
    Values *x = p->x;
    if (a.kind == BLOCK_ZERO || b.kind == BLOCK_ZERO)
        return;
    if (a.kind == BLOCK_ANY || b.kind == BLOCK_ANY) {
        GrowthBlock made = a.kind == BLOCK_ANY ? a : b;
        made.open = open_product(p, &a, &b);
        add_block(s, made);
        return;
    }
    bool va = block_varies(x, &a, p->ka), vb = block_varies(x, &b, p->kb);
    bool fixed = (!va || dim_static(term_dim(x, a.term, p->ka))) && (!vb || dim_static(term_dim(x, b.term, p->kb))) &&
                 dim_static(x->of[p->n->in[0]]->shape.d[p->ka]);
    double c = a.c * b.c;
    if (va && vb && fixed) {
        add_range(s, a, b, p->ka, p->kb, count, c);
    } else if (va && vb) {
        add_block(s, product_term(p, &(SumGroup){.a = a, .b = b}, 0, 0, c));
    } else if (!fixed) {
        add_block(s, (GrowthBlock){.kind = BLOCK_ANY, .why = x->at});
    } else if (count == 1 && rows == 1 && vb && term_is_one(x->terms, a.term) && !p->shared && p->kb == p->rb - 2) {
        b.c = c; /* a row of b times a number, as a window of one row */
        add_block(s, b);
    } else {
        if (va)
            a = sum_of(x, a, p->ka, a.from[p->ka], a.from[p->ka] + count, 1);
        if (vb)
            b = sum_of(x, b, p->kb, b.from[p->kb], b.from[p->kb] + count, 1);
        a.c = va || vb ? c : c * (double)count;
        b.c = 1;
        add_block(s, block_times(x, as_factor(p, a, true), as_factor(p, b, false), p->r));
    }
}

/* Where a block of the result stands in a side. */
static void side_parts(const Product *p, const size_t *out, size_t k, bool left, size_t *part)
{
    for (int i = 0; i < p->r - 2 && (left || !p->shared); i++)
        part[i] = out[i];
    part[left ? p->ka : p->kb] = k;
    part[left ? p->ma : p->nb] = out[left ? p->r - 2 : p->r - 1];
}

/* x by rows of the identity: the coordinates of x to which they belong. False: the window is no piece of its diagonal, nor
 * beside it, so nothing is added. */
static bool add_selected(const Product *p, Sums *s, GrowthBlock a, const GrowthBlock *b, int64_t rows, int64_t columns)
{
    Values *x = p->x;
    if (!p->shared || p->ka != p->ra - 1 || b->kind != BLOCK_TERM || !term_is_identity(x->terms, b->term))
        return false;
    int64_t row = b->from[p->kb], column = b->from[p->nb];
    if (a.kind == BLOCK_ZERO || row + rows <= column || column + columns <= row)
        return true;
    if (row != column || rows != columns)
        return false;
    a.c *= b->c; /* the axis that was summed over is that of the result; the window stays */
    a.balanced = false;
    add_block(s, a);
    return true;
}

/* Cuts the axis that is written where the other is cut, so that pieces of an identity are whole or beside its diagonal. */
static Cuts cut_diagonal(Values *x, const Product *p, const GrowthValue *b, Cuts read, Cuts written)
{
    size_t part[MAX_RANK] = {0};
    do {
        const GrowthBlock *i = value_block(b, part);
        if (!p->shared || i->kind != BLOCK_TERM || !term_is_identity(x->terms, i->term))
            continue;
        int64_t row = b->axis[p->kb].at[part[p->kb]], column = b->axis[p->nb].at[part[p->nb]];
        int64_t by = column - i->from[p->nb] - (row - i->from[p->kb]), end = part_end(b, p->nb, part[p->nb]);
        Cuts more = {NEW_ARRAY(x->arena, int64_t, read.n + 1), 1};
        more.at[0] = 0;
        for (size_t k = 0; k < read.n; k++)
            if (read.at[k] + by > column && read.at[k] + by < end)
                more.at[more.n++] = read.at[k] + by;
        written = cuts_union(x, written, more);
    } while (value_next(b, part));
    return written;
}

GrowthValue *rule_matmul(Values *x, const Node *n)
{
    const GrowthValue *a = x->of[n->in[0]], *b = x->of[n->in[1]];
    Product p = {.x = x, .n = n, .ra = a->shape.rank, .rb = b->shape.rank, .r = n->shape.rank};
    bool ta = n->a.i & 1, tb = n->a.i & 2;
    p.ka = ta ? p.ra - 2 : p.ra - 1;
    p.ma = ta ? p.ra - 1 : p.ra - 2;
    p.kb = tb ? p.rb - 1 : p.rb - 2;
    p.nb = tb ? p.rb - 2 : p.rb - 1;
    p.shared = p.rb == 2;
    Cuts ca[MAX_RANK], cb[MAX_RANK], cuts[MAX_RANK] = {{0}};
    memcpy(ca, a->axis, sizeof ca);
    memcpy(cb, b->axis, sizeof cb);
    ca[p.ka] = cb[p.kb] = cuts_union(x, a->axis[p.ka], b->axis[p.kb]);
    for (int k = 0; k < p.r - 2; k++) {
        if (!p.shared)
            ca[k] = cb[k] = cuts_union(x, ca[k], cb[k]);
        cuts[k] = ca[k];
    }
    cb[p.nb] = cut_diagonal(x, &p, b, cb[p.kb], cb[p.nb]);
    cuts[p.r - 2] = ca[p.ma];
    cuts[p.r - 1] = cb[p.nb];
    a = value_refine(x, a, ca);
    b = value_refine(x, b, cb);
    GrowthValue *out = value_cut(x, &n->shape, cuts);
    size_t part[MAX_RANK] = {0};
    do {
        Sums s = {.x = x, .rank = p.r, .sum = {.kind = BLOCK_ZERO}};
        bool zero = false;
        for (size_t k = 0; k < ca[p.ka].n; k++) {
            size_t at[MAX_RANK] = {0}, bt[MAX_RANK] = {0};
            side_parts(&p, part, k, true, at);
            side_parts(&p, part, k, false, bt);
            zero |= value_block(a, at)->kind == BLOCK_ZERO || value_block(b, bt)->kind == BLOCK_ZERO;
            int64_t count = part_end(a, p.ka, k) - a->axis[p.ka].at[k];
            if (p.shared && add_selected(&p, &s, *value_block(a, at), value_block(b, bt), count,
                                         part_end(b, p.nb, bt[p.nb]) - b->axis[p.nb].at[bt[p.nb]]))
                continue;
            add_pair(&p, &s, *value_block(a, at), *value_block(b, bt), count,
                     dim_static(a->shape.d[p.ma]) ? part_end(a, p.ma, part[p.r - 2]) - a->axis[p.ma].at[part[p.r - 2]]
                                                  : 0);
        }
        for (size_t i = 0; i < s.group.n; i++) {
            const SumGroup *g = &s.group.v[i];
            double c;
            for (int64_t lo = 0, hi; next_run(g, &lo, &hi, &c); lo = hi)
                add_block(&s, product_term(&p, g, lo, hi, c));
        }
        *value_block(out, part) = close_sum(s.sum, OPEN_SUMMED, zero);
    } while (value_next(out, part));
    return value_tidy(x, out);
}

/* x [B, T, I] or [B, T, 1, I] by the one matrix that all experts have: [B, T, 1, O], whoever is chosen. */
static Term term_alike(Values *x, Term a, Term w, bool transposed)
{
    int ra = term_at(x->terms, a)->shape.rank;
    Shape sa = {.rank = 3, .d = {term_dim(x, a, 0), term_dim(x, a, 1), term_dim(x, a, ra - 1)}};
    Shape sw = {.rank = 2, .d = {term_dim(x, w, 1), term_dim(x, w, 2)}}, s = sa;
    a = term_reshape(x->terms, a, &sa);
    w = term_reshape(x->terms, w, &sw);
    s.d[2] = sw.d[transposed ? 0 : 1];
    Term product =
        term_make(x->terms, OP_MATMUL, DT_REAL, (TermIn[]){{1, a}, {1, w}}, 2, &(Attr){.i = transposed ? 2 : 0}, &s);
    s.rank = 4;
    s.d[3] = s.d[2];
    s.d[2] = DIM(1);
    return term_reshape(x->terms, product, &s);
}

static uint64_t expert_bit(const GrowthValue *w, size_t block)
{
    size_t part = block / (w->n / w->axis[0].n);
    return part < 64 ? 1ull << part : 0;
}

/* x [.., I] or [.., k, I] by w [E, I, O] at index [.., k]; of DW: x, dy [.., k, O] -> [E, I, O]. */
GrowthValue *rule_expert_matmul(Values *x, const Node *n)
{
    const GrowthValue *a = x->of[n->in[0]], *w = x->of[n->in[1]], *idx = x->of[n->in[2]];
    bool dw = n->op == OP_EXPERT_MATMUL_DW, transposed = !dw && n->a.i & 1;
    int la = a->shape.rank - 1, r = n->shape.rank, lw = w->shape.rank - 1;
    int kw = transposed ? lw : lw - 1, ow = dw ? lw : transposed ? lw - 1 : lw;
    Cuts cuts[MAX_RANK] = {{0}}, ca[MAX_RANK], cw[MAX_RANK];
    memcpy(ca, a->axis, sizeof ca);
    memcpy(cw, w->axis, sizeof cw);
    cuts[r - 1] = w->axis[ow];
    if (dw)
        cuts[1] = a->axis[la];
    else
        ca[la] = cw[kw] = cuts_union(x, ca[la], cw[kw]);
    bool plain = w->axis[0].n == 1, known = idx->n == 1 && idx->block[0].kind == BLOCK_TERM && idx->block[0].c == 1;
    for (int k = 0; k < la; k++)
        plain &= a->axis[k].n == 1;
    a = value_refine(x, a, ca);
    w = value_refine(x, w, cw);
    GrowthValue *out = value_cut(x, &n->shape, cuts);
    size_t part[MAX_RANK] = {0};
    do {
        Sums s = {.x = x, .rank = r, .sum = {.kind = BLOCK_ZERO}};
        uint64_t some = 0; /* parts of the experts of which it is not zero for sure */
        GrowthBlock unknown = {.kind = BLOCK_ANY, .why = x->at};
        for (size_t i = 0; i < a->n; i++) {
            size_t k = i % a->axis[la].n;
            if (dw && k != part[1])
                continue;
            for (size_t j = 0; j < w->n; j++) {
                size_t last = j % w->axis[lw].n, second = j / w->axis[lw].n % w->axis[lw - 1].n;
                size_t summed = kw == lw ? last : second, written = ow == lw ? last : second;
                if (written != part[r - 1] || (!dw && summed != k))
                    continue;
                const GrowthBlock *u = &a->block[i], *v = &w->block[j];
                if (u->kind == BLOCK_ZERO || v->kind == BLOCK_ZERO)
                    continue;
                bool alike = v->kind == BLOCK_TERM && !block_varies(x, v, 0) && (la == 2 || !block_varies(x, u, 2));
                if (dw || !plain || u->kind == BLOCK_ANY || v->kind == BLOCK_ANY || !block_varies(x, u, la) ||
                    !block_varies(x, v, kw) || !(alike || (known && block_varies(x, v, 0)))) {
                    GrowthBlock made = u->kind == BLOCK_ANY ? *u : v->kind == BLOCK_ANY ? *v : unknown;
                    made.open = open_wholly(u->open | (v->open & (dw ? ~0u : ~1u))); /* some expert is chosen */
                    add_block(&s, made);
                    some |= made.open >> OPEN_FOR_GOOD ? 0 : expert_bit(w, j);
                } else {
                    some |= expert_bit(w, j);
                    add_range(&s, *u, *v, la, kw, part_end(a, la, k) - a->axis[la].at[k], u->c * v->c);
                }
            }
        }
        for (size_t i = 0; i < s.group.n; i++) {
            const SumGroup *g = &s.group.v[i];
            double c;
            for (int64_t lo = 0, hi; next_run(g, &lo, &hi, &c); lo = hi) {
                Term ta = term_slice(x->terms, g->a.term, la, lo, hi - lo);
                Term tw = term_slice(x->terms, g->b.term, kw, lo + g->delta, hi - lo);
                GrowthBlock b = {.kind = BLOCK_TERM, .c = c};
                Shape t = n->shape;
                t.d[r - 1] = term_dim(x, tw, ow);
                b.from[r - 1] = g->b.from[ow];
                b.term = dim_eq(term_dim(x, tw, 0), DIM(1))
                             ? term_alike(x, ta, tw, transposed)
                             : term_make(x->terms, OP_EXPERT_MATMUL, DT_REAL,
                                         (TermIn[]){{1, ta}, {1, tw}, {1, idx->block[0].term}}, 3, &n->a, &t);
                add_block(&s, b);
            }
        }
        bool each = dw || w->axis[0].n > 63 || some == (1ull << w->axis[0].n) - 1 ||
                    value_chooses_all(x, n->in[2], w->shape.d[0]);
        if (s.sum.kind == BLOCK_ANY && x->data && !each)
            s.sum.open |= 1u << OPEN_FOR_GOOD;
        *value_block(out, part) = s.sum;
    } while (value_next(out, part));
    return value_tidy(x, out);
}

/* ---- attention ---- */

static GrowthBlock head_at(const Values *x, const GrowthValue *v, int64_t head, int64_t at)
{
    return block_at(x, v, (int64_t[MAX_RANK]){0, 0, head, at});
}

/* Cuts at every head, and along the last axis as `last` is. */
static GrowthValue *by_head(Values *x, const Shape *s, Cuts last)
{
    Cuts cuts[MAX_RANK] = {{0}};
    cuts[2] = (Cuts){NEW_ARRAY(x->arena, int64_t, s->d[2].n + 1), (size_t)s->d[2].n};
    for (int64_t h = 0; h < s->d[2].n; h++)
        cuts[2].at[h] = h;
    cuts[3] = last;
    return value_cut(x, s, cuts);
}

/* Whether query head i of H reads head j of K. */
static bool reads_head(const Values *x, const GrowthBlock *q, const GrowthBlock *k)
{
    int64_t H = term_dim(x, q->term, 2).n, K = term_dim(x, k->term, 2).n;
    return K && H % K == 0 && k->from[2] == q->from[2] / (H / K);
}

/* The scores of one head: a sum of products of terms, factors with the first of each pair. */
typedef struct Scores {
    BlockKind kind; /* ANY: not known as such, ZERO: all are zero */
    Val why;
    GrowthBlock query, key; /* of the first pair: which heads they are */
    VEC(TermIn) pair;
} Scores;

static Scores scores(Values *x, const GrowthValue *q, const GrowthValue *k, Cuts d, int64_t h, int64_t hk)
{
    Sums s = {.x = x, .rank = 4, .sum = {.kind = BLOCK_ZERO}};
    Scores out = {.kind = BLOCK_ANY, .why = x->at};
    for (size_t i = 0; i < d.n; i++) {
        GrowthBlock a = head_at(x, q, h, d.at[i]), b = head_at(x, k, hk, d.at[i]);
        int64_t end = i + 1 < d.n ? d.at[i + 1] : q->shape.d[3].n;
        if (a.kind == BLOCK_ZERO || b.kind == BLOCK_ZERO)
            continue;
        if (a.kind == BLOCK_ANY || b.kind == BLOCK_ANY) {
            out.why = a.kind == BLOCK_ANY ? a.why : b.why;
            return out;
        }
        bool va = block_varies(x, &a, 3), vb = block_varies(x, &b, 3);
        if (va != vb)
            return out;
        add_range(&s, a, b, 3, 3, va ? end - d.at[i] : 1, a.c * b.c * (va ? 1 : (double)(end - d.at[i])));
    }
    for (size_t i = 0; i < s.group.n; i++) {
        const SumGroup *g = &s.group.v[i];
        double c;
        for (int64_t lo = 0, hi; next_run(g, &lo, &hi, &c); lo = hi) {
            out.query = out.pair.n ? out.query : g->a;
            out.key = out.pair.n ? out.key : g->b;
            if (!reads_head(x, &g->a, &g->b) || g->a.from[2] != out.query.from[2] || g->b.from[2] != out.key.from[2] ||
                !dim_eq(term_dim(x, g->a.term, 2), term_dim(x, out.query.term, 2)) ||
                !dim_eq(term_dim(x, g->b.term, 2), term_dim(x, out.key.term, 2)))
                return out;
            TermIn a = {c, term_slice(x->terms, g->a.term, 3, lo, hi - lo)};
            TermIn b = {1, term_slice(x->terms, g->b.term, 3, lo + g->delta, hi - lo)};
            size_t at = out.pair.n; /* in the order of terms */
            vec_push(x->arena, &out.pair, a);
            vec_push(x->arena, &out.pair, b);
            for (; at > 0 && out.pair.v[at - 2].t > a.t; at -= 2)
                memcpy(out.pair.v + at, out.pair.v + at - 2, 2 * sizeof a);
            out.pair.v[at] = a;
            out.pair.v[at + 1] = b;
        }
    }
    out.kind = out.pair.n ? BLOCK_TERM : BLOCK_ZERO;
    return out;
}

static bool whole_rows(const GrowthValue *v) { return v->axis[0].n == 1 && v->axis[1].n == 1; }

/* Terms of which only some heads are read, as one third of a product that makes queries, keys and values, are cut to these. */
static const GrowthValue *heads_read(Values *x, const GrowthValue *v)
{
    typedef struct Heads {
        int64_t lo, hi;
    } Heads;
    GrowthValue *out = value_refine(x, v, v->axis);
    Map read; /* term -> its Heads */
    map_init(&read, x->arena);
    for (size_t i = 0; i < v->n; i++) {
        const GrowthBlock *b = &v->block[i];
        if (!block_varies(x, b, 2))
            continue;
        size_t part = i / v->axis[3].n % v->axis[2].n;
        int64_t lo = b->from[2], hi = lo + part_end(v, 2, part) - v->axis[2].at[part];
        void **at = map_at(&read, b->term);
        Heads *h = *at ? *at : (*at = NEW(x->arena, Heads));
        *h = (Heads){h->hi && h->lo < lo ? h->lo : lo, h->hi > hi ? h->hi : hi};
    }
    for (size_t i = 0; i < v->n; i++) {
        const GrowthBlock *b = &v->block[i];
        const Heads *h = block_varies(x, b, 2) ? map_get(&read, b->term) : NULL;
        if (!h)
            continue;
        out->block[i].term = term_slice(x->terms, b->term, 2, h->lo, h->hi - h->lo);
        out->block[i].from[2] = h->hi - h->lo > 1 ? b->from[2] - h->lo : 0;
    }
    return out;
}

GrowthValue *rule_sdpa(Values *x, const Node *n)
{
    const GrowthValue *q = heads_read(x, x->of[n->in[0]]), *k = heads_read(x, x->of[n->in[1]]),
                      *v = heads_read(x, x->of[n->in[2]]);
    Cuts d = cuts_union(x, q->axis[3], k->axis[3]);
    GrowthValue *out = by_head(x, &n->shape, v->axis[3]);
    int64_t group = q->shape.d[2].n / k->shape.d[2].n;
    bool plain = whole_rows(q) && whole_rows(k) && whole_rows(v);
    Term oldest = 0;
    if (n->n_in > 3) {
        const GrowthBlock *b = &x->of[n->in[3]]->block[0];
        plain &= x->of[n->in[3]]->n == 1 && b->kind == BLOCK_TERM && b->c == 1;
        oldest = b->term;
    }
    for (int64_t h = 0; h < n->shape.d[2].n; h++) {
        Scores score = scores(x, q, k, d, h, h / group);
        for (size_t i = 0; i < v->axis[3].n; i++) {
            size_t part[MAX_RANK] = {0, 0, (size_t)h, i};
            GrowthBlock *made = value_block(out, part), value = head_at(x, v, h / group, v->axis[3].at[i]);
            if (value.kind == BLOCK_ZERO) {
                *made = value;
                continue;
            }
            if (value.kind == BLOCK_ANY || score.kind == BLOCK_ANY)
                made->why = value.kind == BLOCK_ANY ? value.why : score.why;
            if (value.kind != BLOCK_TERM || score.kind != BLOCK_TERM || !plain ||
                !reads_head(x, &score.query, &value) ||
                !dim_eq(term_dim(x, score.key.term, 2), term_dim(x, value.term, 2)))
                continue;
            Shape s = term_at(x->terms, score.pair.v[0].t)->shape;
            s.d[2] = term_dim(x, score.query.term, 2);
            s.d[3] = term_dim(x, value.term, 3);
            Attr a = n->a;
            size_t n_in = score.pair.n + 2;
            TermIn *in = NEW_ARRAY(x->arena, TermIn, n_in);
            memcpy(in + 2, score.pair.v, score.pair.n * sizeof *in);
            in[0] = (TermIn){1, value.term};
            in[1] = (TermIn){1, oldest};
            for (size_t j = 2; j < n_in; j += 2)
                in[j].c *= a.x;
            a.x = 0;
            if (!x->drops) {
                a.z = 0;
                a.site = NULL;
            }
            *made = (GrowthBlock){.kind = BLOCK_TERM, .c = value.c};
            made->from[2] = score.query.from[2];
            made->from[3] = value.from[3];
            made->term = term_make(x->terms, OP_SDPA, DT_REAL, in, n_in, &a, &s);
        }
    }
    return value_tidy(x, out);
}

static bool is_there(const Values *x, const GrowthValue *v, int64_t head, int64_t at)
{
    return head_at(x, v, head, at).kind != BLOCK_ZERO;
}

/* Which of d q, d k and d v (0, 1, 2) are zero: they are products of what stands at the same head. */
GrowthValue *rule_sdpa_grad(Values *x, const Node *n, int64_t which)
{
    const GrowthValue *q = x->of[n->in[0]], *k = x->of[n->in[1]], *v = x->of[n->in[2]], *dout = x->of[n->in[5]];
    const GrowthValue *like = which == 0 ? q : which == 1 ? k : v;
    const GrowthValue *other = which == 0 ? k : which == 1 ? q : dout; /* of whose columns it is made */
    Cuts d = cuts_union(x, v->axis[3], dout->axis[3]);
    GrowthValue *out = by_head(x, &like->shape, other->axis[3]);
    int64_t H = q->shape.d[2].n, group = H / k->shape.d[2].n;
    for (size_t i = 0; i < out->n; i++)
        out->block[i].kind = BLOCK_ZERO;
    for (int64_t h = 0; h < H; h++) {
        bool moves = which == 2; /* the scores of this head have a gradient */
        for (size_t i = 0; i < d.n; i++)
            moves |= is_there(x, v, h / group, d.at[i]) && is_there(x, dout, h, d.at[i]);
        for (size_t i = 0; i < other->axis[3].n && moves; i++) {
            size_t part[MAX_RANK] = {0, 0, (size_t)(which == 0 ? h : h / group), i};
            if (is_there(x, other, which == 0 ? h / group : h, other->axis[3].at[i])) {
                value_block(out, part)->kind = BLOCK_ANY;
                value_block(out, part)->balanced = which == 1 && n->a.y == 0; /* each row of the softmax sums to 1 */
            }
        }
    }
    return value_tidy(x, out);
}
