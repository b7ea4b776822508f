/* sums.c - sums in the order in which a device computes them by the fewest instructions.
 *
 * In:  the expressions of a kernel, before they are scheduled.     Out: some sums in another order.
 * The one idea: a sum that nothing but another sum wants is part of that, so a sum is a list of terms. Of terms with a factor in
 * common, the others of which fewer loops change, these are added up before the loop; and a device adds a product to
 * what there is by the instruction that multiplies, so products come last, one after the other. For the same reason a product of several
 * numbers that fewer loops change is one of one such number, and what all terms of a sum that is added to another have in common multiplies
 * the sum.
 */
#include "kernel.h"

enum { SUM_TERMS = 32, FACTORS_MAX = 6 };
typedef struct Term {
    Ex all;       /* few * more; 0: not made yet */
    Ex few, more; /* what fewer loops change, or 0: the number 1; what all loops of the sum change, or 0 */
} Term;

/* A product as its factors: what fewer loops change than the sum, and what all of its loops change. */
typedef struct Factors {
    Ex few[FACTORS_MAX], more[FACTORS_MAX];
    size_t n_few, n_more; /* either may be more than there is room for */
} Factors;

typedef struct Sums {
    Kernel *k;
    uint32_t *uses; /* by expression */
    bool *part;     /* it is a sum that is part of another one */
    bool *open;     /* it is a product that only products want which are terms of sums, and few of these */
    bool *added;    /* it is only added to another sum, one over rows or along a loop */
    uint64_t loops; /* that the sum changes with */
    Term term[SUM_TERMS];
    size_t n;
    int alone;      /* additions of which neither side is a product */
    bool many;      /* more terms than there is room for */
    bool regrouped; /* some terms are others now */
    Ex n_ex;        /* expressions that are no sums' own making */
} Sums;

static uint64_t loops_of(const Kernel *k, Ex e)
{
    return kx(k, e)->deps & ~ix_bit(k->ix, k->row) & ~(k->part ? ix_bit(k->ix, k->part) : 0);
}

static bool is_op(const Kernel *k, Ex e, Op op)
{
    const KEx *x = kx(k, e);
    return x->kind == KX_OP && x->op == op && x->type == KT_REAL;
}

/* ---- who wants what ---- */

static void use(Sums *s, Ex e);

static void use_places(Sums *s, Ix ix)
{
    const IxForm *f = ix_form(s->k->ix, ix);
    for (uint32_t i = 0; i < f->n; i++) {
        const IVarInfo *v = ix_info(s->k->ix, f->t[i].var);
        if (v->kind == IV_VALUE)
            use(s, v->value);
        else if (v->kind == IV_DIV || v->kind == IV_MOD)
            use_places(s, v->base);
    }
}

static void use(Sums *s, Ex e)
{
    if (!e || s->uses[e]++)
        return;
    const KEx x = *kx(s->k, e);
    for (int i = 0; i < 3; i++)
        use(s, x.in[i]);
    use_places(s, x.ix);
}

static void use_all(Sums *s)
{
    for (size_t r = 0; r < s->k->root.n; r++) {
        use(s, s->k->root.v[r].value);
        use_places(s, s->k->root.v[r].at);
    }
    for (size_t i = 0; i < s->k->product.n; i++) {
        use_places(s, s->k->product.v[i].a_at);
        use_places(s, s->k->product.v[i].b_at);
        use_places(s, s->k->product.v[i].c_at);
    }
}

static Ex real_op(Kernel *k, Op op, Ex a, Ex b) { return kx_op(k, op, KT_REAL, (Ex[]){a, b}, 2, 0); }

/* Which products are nothing but terms of sums, or factors of such. Numbers of a row would be too many for those that many terms want. */
static void find_open(Sums *s, Ex n)
{
    enum { MANY = 8 };
    const Kernel *k = s->k;
    uint32_t *terms = NEW_ARRAY(k->arena, uint32_t, n); /* how many uses of it are such products */
    bool *term = NEW_ARRAY(k->arena, bool, n);
    for (Ex e = n - 1; e > 0; e--) {
        const KEx *x = kx(k, e);
        if (!s->uses[e])
            continue;
        s->open[e] = is_op(k, e, OP_MUL) && (term[e] ? s->uses[e] == 1 : s->uses[e] == terms[e] && terms[e] <= MANY);
        for (int i = 0; i < 2; i++) {
            terms[x->in[i]] += s->open[e];
            term[x->in[i]] = term[x->in[i]] || is_op(k, e, OP_ADD);
        }
        if (x->kind == KX_REDUCE && x->op == OP_SUM)
            s->added[x->in[0]] = s->uses[x->in[0]] == 1;
    }
    for (size_t r = 0; r < k->root.n; r++)
        if (k->root.v[r].kind == KR_SINK && k->root.v[r].op == OP_SUM)
            s->added[k->root.v[r].value] = s->uses[k->root.v[r].value] == 1;
}

/* ---- terms ---- */

/* Does only the sum want it, and does the loop of the sum compute it? */
static bool is_own(const Sums *s, Ex e, Op op)
{
    return is_op(s->k, e, op) && s->uses[e] == 1 && loops_of(s->k, e) == s->loops;
}

static Term term_of(const Sums *s, Ex e)
{
    const KEx *x = kx(s->k, e);
    if (loops_of(s->k, e) != s->loops)
        return (Term){.all = e, .few = e};
    for (int i = 0; i < 2 && is_op(s->k, e, OP_MUL); i++)
        if (loops_of(s->k, x->in[i]) != s->loops && loops_of(s->k, x->in[!i]) == s->loops)
            return (Term){e, x->in[i], x->in[!i]};
    return (Term){.all = e, .more = e};
}

static void collect(Sums *s, Ex sum)
{
    const KEx x = *kx(s->k, sum);
    s->alone += !is_own(s, x.in[0], OP_MUL) && !is_own(s, x.in[1], OP_MUL);
    for (int i = 0; i < 2 && !s->many; i++) {
        if (is_own(s, x.in[i], OP_ADD)) {
            s->part[x.in[i]] = true;
            collect(s, x.in[i]);
        } else if (s->n == SUM_TERMS) {
            s->many = true;
        } else {
            s->term[s->n++] = term_of(s, x.in[i]);
        }
    }
}

static void put_factors(const Sums *s, Ex e, Factors *f)
{
    bool more = loops_of(s->k, e) == s->loops;
    if (more && e < s->n_ex && s->open[e]) {
        put_factors(s, kx(s->k, e)->in[0], f);
        put_factors(s, kx(s->k, e)->in[1], f);
        return;
    }
    size_t *n = more ? &f->n_more : &f->n_few;
    if (*n < FACTORS_MAX)
        (more ? f->more : f->few)[*n] = e;
    *n += 1;
}

static Ex product_of(Kernel *k, const Ex *factor, size_t n, Ex without)
{
    Ex all = 0;
    for (size_t i = 0; i < n; i++)
        if (factor[i] == without)
            without = 0;
        else
            all = all ? real_op(k, OP_MUL, all, factor[i]) : factor[i];
    return all;
}

/* What all terms have in common and can do without. */
static Ex common_factor(const Factors *f, size_t n)
{
    for (size_t i = 0; i < f[0].n_more; i++) {
        size_t have = 0;
        for (size_t t = 0; t < n; t++)
            for (size_t j = 0; j < f[t].n_more; j++)
                if (f[t].more[j] == f[0].more[i]) {
                    have += f[t].n_more > 1;
                    break;
                }
        if (have == n)
            return f[0].more[i];
    }
    return 0;
}

/* Terms whose factors are put together anew. Returns what multiplies the sum of all, or 0. */
static Ex regroup(Sums *s, Ex e)
{
    Kernel *k = s->k;
    Factors f[SUM_TERMS];
    bool all = s->n > 1;
    memset(f, 0, sizeof f);
    for (size_t i = 0; i < s->n; i++) {
        put_factors(s, s->term[i].all, &f[i]);
        all = all && f[i].n_few <= FACTORS_MAX && f[i].n_more <= FACTORS_MAX;
    }
    Ex common = all && s->added[e] ? common_factor(f, s->n) : 0;
    for (size_t i = 0; i < s->n && all; i++) {
        Ex few = product_of(k, f[i].few, f[i].n_few, 0);
        if (!common && (f[i].n_few < 2 || loops_of(k, few) == s->loops)) /* nothing is won */
            continue;
        s->term[i] = (Term){.few = few, .more = product_of(k, f[i].more, f[i].n_more, common)};
        s->regrouped = true;
    }
    return common;
}

/* Terms of one factor become one, where the first of them stands; so does what is added twice, as in the derivative of a square. Returns whether
 * some did. */
static bool join_terms(Sums *s)
{
    Kernel *k = s->k;
    size_t n = 0;
    for (size_t i = 0; i < s->n; i++) {
        Term t = s->term[i];
        size_t to = 0;
        while (to < n && !(s->term[to].more == t.more && s->term[to].few && t.few))
            to++;
        if (to == n) {
            s->term[n++] = t;
            continue;
        }
        s->term[to].few = real_op(k, OP_ADD, s->term[to].few, t.few);
        s->term[to].all = 0;
    }
    bool some = n < s->n || s->regrouped;
    for (size_t i = 0; i < n; i++) {
        Term *t = &s->term[i];
        if (!t->all)
            t->all = t->more && t->few ? real_op(k, OP_MUL, t->few, t->more) : t->more ? t->more : t->few;
    }
    s->n = n;
    return some;
}

/* Is it multiplied where it is added? What was joined just now nothing else wants. */
static bool is_product(const Sums *s, Ex e, Ex made)
{
    return is_op(s->k, e, OP_MUL) && loops_of(s->k, e) == s->loops && (e >= made || s->uses[e] == 1);
}

/* Does a product leave it in a tile? Such are added up first: then they may be one (gpu/tile.c). */
static bool is_result(const Kernel *k, Ex e)
{
    const KEx *x = kx(k, e);
    for (size_t i = 0; i < k->product.n && x->kind == KX_LOAD; i++)
        if (k->product.v[i].c == x->slot && k->buffer.v[x->slot].tile)
            return true;
    return false;
}

/* Longer sums of nothing that can be joined stay as they are: parts of them are added at one time, and what comes first would have to
 * be there early. */
static void order_sum(Sums *s, Ex e, Ex made)
{
    enum { LONG = 8 };
    Kernel *k = s->k;
    int alone = 0, results = 0;
    s->loops = loops_of(k, e);
    s->n = 0;
    s->alone = 0;
    s->many = s->regrouped = false;
    collect(s, e);
    if (s->many || !s->loops)
        return;
    Ex common = regroup(s, e);
    bool joined = join_terms(s);
    for (size_t i = 0; i < s->n; i++)
        alone += !is_product(s, s->term[i].all, made), results += is_result(k, s->term[i].all);
    if (!joined && (s->n > LONG || (results < 2 && (alone ? alone - 1 : 0) >= s->alone)))
        return;
    Ex term[SUM_TERMS], sum;
    size_t n = 0;
    for (int turn = 0; turn < 3; turn++)
        for (size_t i = 0; i < s->n; i++)
            if ((is_product(s, s->term[i].all, made) ? 2 : is_result(k, s->term[i].all) ? 0 : 1) == turn)
                term[n++] = s->term[i].all;
    sum = term[0];
    for (size_t i = 1; i + 1 < n; i++)
        sum = real_op(k, OP_ADD, sum, term[i]);
    Ex last = n > 1 ? term[n - 1] : 0;
    if (common) {
        sum = last ? real_op(k, OP_ADD, sum, last) : sum;
        last = common;
    }
    /* one term is left: a product, or the sum of two that all of the loops change together only */
    if (!last && !is_op(k, sum, OP_MUL) && !is_op(k, sum, OP_ADD))
        return;
    k->ex.v[e].op = !last ? kx(k, sum)->op : common ? OP_MUL : OP_ADD;
    k->ex.v[e].in[0] = last ? sum : kx(k, sum)->in[0];
    k->ex.v[e].in[1] = last ? last : kx(k, sum)->in[1];
}

void kernel_order_sums(Kernel *k)
{
    Ex n = (Ex)k->ex.n;
    Sums s = {.k = k,
              .n_ex = n,
              .uses = NEW_ARRAY(k->arena, uint32_t, n),
              .part = NEW_ARRAY(k->arena, bool, n),
              .open = NEW_ARRAY(k->arena, bool, n),
              .added = NEW_ARRAY(k->arena, bool, n)};
    use_all(&s);
    find_open(&s, n);
    for (Ex e = n - 1; e > 0; e--) /* a sum comes before those that are part of it */
        if (s.uses[e] && !s.part[e] && is_op(k, e, OP_ADD))
            order_sum(&s, e, n);
}
