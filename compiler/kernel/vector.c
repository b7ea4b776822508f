/* vector.c - which loops of a scheduled kernel can be printed as explicit vectors.
 *
 * In:  statements of a processor's Kernel.     Out: KStmt.vector of its innermost loops, KStmt.singly of those
 *      which a compiler may make no vectors of; KProduct.way; Kernel.whole, Kernel.lines (both at this B and T).
 * The one idea: where everything in a loop is arithmetic on contiguous elements, a statement
 * means the same for one element and for a vector of them. Such text compiles in a third of the
 * time that a compiler needs to find the vectors itself, and needs no remainder where all
 * extents are whole vectors.
 */
#include "kernel.h"

static bool contiguous(Kernel *k, Ix at, IVar v)
{
    int64_t slope;
    return ix_slope(k->ix, at, v, &slope) && slope == 1;
}

static bool real_array(const Kernel *k, int array) { return k->array.v[array].dtype == DT_REAL; }

static bool plain_value(Kernel *k, Ex e, IVar v)
{
    const KEx *x = kx(k, e);
    if (x->type != KT_REAL)
        return false;
    if (x->kind == KX_LOAD)
        return !x->in[0] && !k->buffer.v[x->slot].half && contiguous(k, x->ix, v);
    if (x->kind != KX_OP)
        return false;
    for (int i = 0; i < 3; i++)
        if (x->in[i] && kx(k, x->in[i])->type != KT_REAL)
            return false;
    return op_info((Op)x->op)->c_vector && (x->op != OP_ROUND_TO || half_info((Half)x->i)->c_vector);
}

static bool plain_statement(Kernel *k, const KStmt *s, IVar v)
{
    uint64_t bit = ix_bit(k->ix, v);
    const KEx *x = kx(k, s->ex);
    switch (s->kind) {
    case KS_LET: return (x->deps & bit) && plain_value(k, s->ex, v);
    case KS_ACC_ADD: return x->op == OP_SUM && x->type == KT_REAL && (kx(k, x->in[0])->deps & bit);
    case KS_ARRAY_ADD:
        if (x->op != OP_SUM)
            return false; /* fall through */
    case KS_ARRAY_PUT:
    case KS_ARRAY_GET: return real_array(k, s->array) && contiguous(k, kernel_array_at(k, s->array), v);
    case KS_STORE:
    case KS_SINK: {
        const KRoot *r = &k->root.v[s->root];
        return k->buffer.v[r->buffer].dtype == DT_REAL && contiguous(k, r->at, v) && kx(k, r->value)->type == KT_REAL &&
               (s->kind == KS_STORE || r->op == OP_SUM);
    }
    case KS_PREFETCH: return true;
    default: return false;
    }
}

/* Is the form a whole number of vectors where the loop's variable is one? */
static bool on_lines(const Kernel *k, Ix at)
{
    const IxForm *f = ix_form(k->ix, at);
    for (uint32_t i = 0; i < f->n; i++) {
        const IxTerm *t = &f->t[i];
        const IVarInfo *v = ix_info(k->ix, t->var);
        bool lane = v->kind == IV_LOOP && t->mult == 1 && dim_eq(t->coef, DIM(1));
        if (!lane && t->mult * ix_dim_at(k->ix, t->coef) % VECTOR_LANES != 0)
            return false;
    }
    return true;
}

size_t kernel_loop_end(const Kernel *k, size_t loop)
{
    int depth = 0;
    for (size_t i = loop;; i++) {
        depth += kernel_opens(&k->stmt.v[i]);
        depth -= k->stmt.v[i].kind == KS_END;
        if (depth == 0)
            return i;
    }
}

static bool is_tile(const Kernel *k, const KStmt *s) { return k->buffer.v[k->root.v[s->root].buffer].tile; }

/* The load of a statement that a guard of the loop over v leaves out in places, and that steps over elements; or
 * NULL. */
static const KEx *partial_load(const Kernel *k, const KStmt *s, IVar v)
{
    const KEx *x = s->kind == KS_LET ? kx(k, s->ex) : NULL;
    int64_t slope;
    if (!x || x->kind != KX_LOAD || !x->in[0] || !(kx(k, x->in[0])->deps & ix_bit(k->ix, v)))
        return NULL;
    return ix_slope(k->ix, x->ix, v, &slope) && slope > 1 ? x : NULL;
}

/* GCC 12 makes wrong vectors of two loads like p[2 * i] and p[2 * i + 1] under one guard that changes with i: some
 * elements are 0 that are not. Is there such a pair in the loop at s? */
static bool has_partial_pair(const Kernel *k, const KStmt *s)
{
    IVar v = s->kind == KS_ROWS ? k->row : s->var;
    const KStmt *all = k->stmt.v;
    size_t from = (size_t)(s - all) + 1, end = kernel_loop_end(k, from - 1);
    for (size_t i = from; i < end; i++) {
        const KEx *x = partial_load(k, &all[i], v);
        for (size_t j = i + 1; x && j < end; j++) {
            const KEx *y = partial_load(k, &all[j], v);
            if (y && y->slot == x->slot && y->in[0] == x->in[0])
                return true;
        }
    }
    return false;
}

bool kernel_has_vectors(const Kernel *k)
{
    for (size_t i = 0; i < k->stmt.n; i++)
        if (k->stmt.v[i].vector)
            return true;
    return false;
}

/* A processor's product: vectors run along the loop in which its result is contiguous, and the second factor in the order in which
 * it is multiplied is contiguous along that loop, or transposed first. */
static void find_way(Kernel *k, KProduct *x)
{
    ProductSteps s;
    if (!product_steps(k, x, &s))
        vwn_bug(k->ctx, "a product without steps");
    x->way = (KProductWay){.a = s.am == 1   ? LIES_ALONG_OWN
                                : s.ak == 1 ? LIES_ALONG_SUM
                                            : LIES_STRIDED,
                           .b = s.bn == 1   ? LIES_ALONG_OWN
                                : s.bk == 1 ? LIES_ALONG_SUM
                                            : LIES_STRIDED,
                           .by_rows = product_along_n(&s),
                           .along = product_along_n(&s) ? x->n : x->m};
}

/* Does it store what is the same in all rounds of a loop? */
static bool is_one_value(const Kernel *k, const KStmt *s, uint64_t loop)
{
    Ex value = s->kind == KS_STORE ? k->root.v[s->root].value : s->kind == KS_ARRAY_PUT ? s->ex : 0;
    return value && !(kx(k, value)->deps & loop);
}

void kernel_find_vectors(Kernel *k)
{
    for (size_t i = 0; i < k->product.n; i++)
        find_way(k, &k->product.v[i]);
    for (size_t i = 0; i < k->stmt.n; i++)
        if (k->stmt.v[i].kind == KS_LOOP || k->stmt.v[i].kind == KS_ROWS)
            k->stmt.v[i].singly = has_partial_pair(k, &k->stmt.v[i]);
    k->whole = k->lines = true;
    for (size_t i = 0; i < k->stmt.n; i++) {
        KStmt *s = &k->stmt.v[i];
        if (s->kind != KS_LOOP || !s->simd)
            continue;
        size_t end = kernel_loop_end(k, i);
        s->vector = true;
        for (size_t j = i + 1; s->vector && j < end; j++)
            s->vector = plain_statement(k, &k->stmt.v[j], s->var);
        if (!s->vector)
            continue;
        for (size_t j = i + 1; j < end; j++)
            k->stmt.v[j].across = is_one_value(k, &k->stmt.v[j], ix_bit(k->ix, s->var)) ? ACROSS_VALUE : ACROSS_NONE;
        const IVarInfo *v = ix_info(k->ix, s->var);
        k->whole = k->whole && (v->hi + 1) % VECTOR_LANES == 0;
        for (size_t j = i + 1; j < end; j++)
            if (k->stmt.v[j].kind == KS_STORE && !is_tile(k, &k->stmt.v[j]))
                k->lines = k->lines && on_lines(k, k->root.v[k->stmt.v[j].root].at);
    }
    k->lines = k->lines && k->whole;
}

/* ---- whole vectors and what they leave ---- */

static void put(Kernel *k, KStmt s) { vec_push(k->arena, &k->stmt, s); }

/* The statements of the loop that begins at `loop`: as whole vectors, or, of one element each, as the rest, in which nothing is prefetched
 * any more. */
static void put_loop(Kernel *k, const Kernel *from, size_t loop, bool rest)
{
    KStmt head = from->stmt.v[loop];
    if (rest)
        head = (KStmt){.kind = KS_LOOP, .var = head.var, .rest = true};
    put(k, head);
    for (size_t i = loop + 1, end = kernel_loop_end(from, loop); i < end; i++) {
        KStmt s = from->stmt.v[i];
        if (rest && s.kind == KS_PREFETCH)
            continue;
        s.across = rest ? ACROSS_NONE : s.across;
        put(k, s);
    }
    put(k, (KStmt){.kind = KS_END});
}

/* Every lane of a vector has a sum of its own, and all of them are added up behind the loop. */
void kernel_split_vectors(Kernel *k)
{
    const Kernel from = *k;
    bool split = !kernel_has_vectors(&from);
    for (size_t i = 0; i < from.stmt.n; i++)
        split = split || from.stmt.v[i].kind == KS_VECTORS;
    if (split)
        return;
    k->stmt.v = NULL;
    k->stmt.n = k->stmt.cap = 0;
    for (size_t i = 0; i < from.stmt.n; i++) {
        const KStmt *s = &from.stmt.v[i];
        if (!s->vector) {
            put(k, *s);
            continue;
        }
        for (uint32_t j = 0; j < s->n_acc; j++)
            put(k, (KStmt){.kind = KS_VECTOR_ACC, .ex = k->acc.v[s->acc + j]});
        put(k, (KStmt){.kind = KS_VECTORS, .var = s->var});
        put_loop(k, &from, i, false);
        if (!k->whole)
            put_loop(k, &from, i, true);
        put(k, (KStmt){.kind = KS_END});
        for (uint32_t j = 0; j < s->n_acc; j++)
            put(k, (KStmt){.kind = KS_VECTOR_SUM, .ex = k->acc.v[s->acc + j]});
        i = kernel_loop_end(&from, i);
    }
}
