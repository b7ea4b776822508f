/* kernel.c - see kernel.h: expressions of a kernel. */
#include "kernel.h"

#include <math.h>

enum { _ = 0, R = READS, W = WRITES, RW = READS | WRITES, OPENS = 1, DEVICE = 1 };
const KStmtInfo kstmt_info[KS_COUNT] = {
#define KSTMT(kind, text, ex, inputs, element, opens, where) [KS_##kind] = {text, ex, inputs, element, opens, where},
#include "kstmts.def"
};

void kernel_init(Kernel *k, Ctx *ctx, Arena *arena, int64_t B, int64_t T, Dim rows)
{
    *k = (Kernel){.ctx = ctx, .arena = arena, .target = &target_cpu, .rows = rows};
    k->ix = NEW(arena, IxTable);
    ix_init(k->ix, ctx, arena, B, T);
    k->row = ix_row(k->ix, rows);
    k->slots = 1024;
    k->slot = NEW_ARRAY(arena, uint32_t, k->slots);
    vec_push(arena, &k->ex, (KEx){.kind = KX_NONE});
}

/* ---- interning ---- */

static uint64_t ex_hash(const KEx *e)
{
    uint64_t bits;
    memcpy(&bits, &e->value, sizeof bits);
    uint64_t key[7] = {e->kind | e->type << 8 | (uint64_t)e->op << 16 | (uint64_t)e->over.n << 32,
                       e->in[0] | (uint64_t)e->in[1] << 32,
                       e->in[2] | (uint64_t)e->ix << 32,
                       (uint64_t)e->extent.n,
                       e->extent.b | (uint64_t)e->extent.t << 8 | (uint64_t)e->slot << 16,
                       (uint64_t)e->i,
                       bits};
    uint64_t h = hash_bytes(key, sizeof key, 17);
    return e->over.n ? hash_bytes(e->over.var, e->over.n * sizeof e->over.var[0], h) : h;
}

static bool ex_equal(const KEx *a, const KEx *b)
{
    return a->kind == b->kind && a->type == b->type && a->op == b->op && a->in[0] == b->in[0] && a->in[1] == b->in[1] &&
           a->in[2] == b->in[2] && a->ix == b->ix && dim_eq(a->extent, b->extent) && a->slot == b->slot &&
           a->i == b->i && memcmp(&a->value, &b->value, sizeof a->value) == 0 && a->over.n == b->over.n &&
           memcmp(a->over.var, b->over.var, a->over.n * sizeof a->over.var[0]) == 0;
}

static void slots_grow(Kernel *k)
{
    size_t n = k->slots * 2;
    uint32_t *slot = NEW_ARRAY(k->arena, uint32_t, n);
    for (size_t e = 1; e < k->ex.n; e++) {
        size_t at = ex_hash(&k->ex.v[e]) & (n - 1);
        while (slot[at])
            at = (at + 1) & (n - 1);
        slot[at] = (uint32_t)e;
    }
    k->slot = slot;
    k->slots = n;
}

/* what an index depends on and waits for, with the values read into it */
static void ix_needs(const Kernel *k, Ix ix, uint64_t *deps, int *stage)
{
    const IxForm *f = ix_form(k->ix, ix);
    *deps |= f->deps;
    for (uint32_t i = 0; i < f->n; i++) {
        const IVarInfo *v = ix_info(k->ix, f->t[i].var);
        if (v->kind == IV_VALUE && *stage < kx(k, v->value)->stage)
            *stage = kx(k, v->value)->stage;
        if (v->kind == IV_DIV || v->kind == IV_MOD)
            ix_needs(k, v->base, deps, stage);
    }
}

void kx_find_needs(const Kernel *k, KEx *e)
{
    for (int i = 0; i < 3; i++) {
        e->deps |= kx(k, e->in[i])->deps;
        if (e->stage < kx(k, e->in[i])->stage)
            e->stage = kx(k, e->in[i])->stage;
    }
    ix_needs(k, e->ix, &e->deps, &e->stage);
    if (e->kind == KX_LOAD && k->buffer.v[e->slot].tile) { /* what it holds changes with the row */
        e->deps |= ix_bit(k->ix, k->row);
        if (e->stage < k->buffer.v[e->slot].stage)
            e->stage = k->buffer.v[e->slot].stage;
    }
    if (e->kind == KX_REDUCE) {
        for (uint32_t i = 0; i < e->over.n; i++)
            e->deps &= ~ix_bit(k->ix, e->over.var[i]);
        e->deps |= ix_bit(k->ix, k->row);
        e->stage++;
    }
}

static Ex intern(Kernel *k, KEx e)
{
    size_t at = ex_hash(&e) & (k->slots - 1);
    for (; k->slot[at]; at = (at + 1) & (k->slots - 1))
        if (ex_equal(&k->ex.v[k->slot[at]], &e))
            return k->slot[at];
    e.array = e.home = -1;
    kx_find_needs(k, &e);
    vec_push(k->arena, &k->ex, e);
    k->slot[at] = (uint32_t)(k->ex.n - 1);
    Ex made = k->slot[at];
    if (k->ex.n * 2 > k->slots)
        slots_grow(k);
    return made;
}

/* ---- expressions ---- */

/* These numbers are structure; any other (1 / sqrt(width), eps) is an argument, so that layers
 * of other widths share the text. */
static bool structural(double x)
{
    return isinf(x) || isnan(x) || x == 0 || fabs(x) == 0.5 || fabs(x) == 1 || fabs(x) == 2;
}

Ex kx_number(Kernel *k, KType type, double value, Val origin)
{
    if (type == KT_REAL && !structural(value))
        return kx_scalar(k, -1, value, origin);
    return intern(k, (KEx){.kind = KX_CONST, .type = (uint8_t)type, .value = value});
}

Ex kx_scalar(Kernel *k, int32_t host, double value, Val origin)
{
    size_t s = 0;
    for (; s < k->scalar.n; s++)
        if (k->scalar.v[s].origin == origin && k->scalar.v[s].value == value)
            break;
    if (s == k->scalar.n)
        vec_push(k->arena, &k->scalar, (KScalar){host, value, origin, NULL});
    return intern(k, (KEx){.kind = KX_SCALAR, .type = KT_REAL, .slot = (uint32_t)s});
}

Ex kx_index(Kernel *k, Ix ix)
{
    const IxForm *f = ix_form(k->ix, ix);
    if (f->n == 1 && f->t[0].mult == 1 && dim_eq(f->t[0].coef, DIM(1)) && ix_info(k->ix, f->t[0].var)->kind == IV_VALUE)
        return ix_info(k->ix, f->t[0].var)->value;
    return intern(k, (KEx){.kind = KX_INDEX, .type = KT_INT, .ix = ix});
}

Ex kx_load(Kernel *k, uint32_t buffer, Ix ix, Ex guard)
{
    KBuffer *b = &k->buffer.v[buffer];
    b->read = true;
    return intern(
        k,
        (KEx){.kind = KX_LOAD, .type = b->dtype == DT_INT ? KT_INT : KT_REAL, .slot = buffer, .ix = ix, .in = {guard}});
}

bool kx_is_number(const Kernel *k, Ex e, double *value)
{
    *value = kx(k, e)->value;
    return kx(k, e)->kind == KX_CONST;
}

static bool is_const(const Kernel *k, Ex e, double want)
{
    double x;
    return e && kx_is_number(k, e, &x) && x == want && !(want == 0 && signbit(x));
}

static uint64_t loops_of(const Kernel *k, Ex e) { return kx(k, e)->deps & ~ix_bit(k->ix, k->row); }

/* Does b change with fewer loops than a? */
static bool changes_less(const Kernel *k, Ex a, Ex b)
{
    return kx(k, b)->deps && (loops_of(k, a) & ~loops_of(k, b)) && !(loops_of(k, b) & ~loops_of(k, a));
}

Ex kx_op(Kernel *k, Op op, KType type, const Ex *in, int n, int64_t i)
{
    if (op == OP_STOP || (op == OP_TO_REAL && kx(k, in[0])->type == KT_REAL) ||
        (op == OP_TO_INT && kx(k, in[0])->type == KT_INT))
        return in[0];
    if (op == OP_MUL && is_const(k, in[1], 1))
        return in[0];
    if (op == OP_MUL && is_const(k, in[0], 1))
        return in[1];
    if ((op == OP_ADD && is_const(k, in[1], 0)) || (op == OP_SUB && is_const(k, in[1], 0)))
        return in[0];
    if (op == OP_ADD && is_const(k, in[0], 0))
        return in[1];
    if (op == OP_DIV && changes_less(k, in[0], in[1])) {
        Ex one[2] = {kx_number(k, KT_REAL, 1, 0), in[1]}; /* one division where in[1] is computed */
        return kx_op(k, OP_MUL, type, (Ex[]){in[0], kx_op(k, OP_DIV, type, one, 2, 0)}, 2, 0);
    }
    KEx e = {.kind = KX_OP, .type = (uint8_t)type, .op = (uint16_t)op, .i = i};
    for (int j = 0; j < n; j++)
        e.in[j] = in[j];
    return intern(k, e);
}

Ex kx_inside(Kernel *k, Ix ix, Dim extent)
{
    const IxForm *f = ix_form(k->ix, ix);
    int64_t n = ix_dim_at(k->ix, extent);
    bool value = ix_reads_value(k->ix, ix);
    if (!value && f->lo >= 0 && f->hi < n)
        return 0;
    if (!value && (f->hi < 0 || f->lo >= n))
        return intern(k, (KEx){.kind = KX_CONST, .type = KT_BOOL, .value = 0});
    return intern(k, (KEx){.kind = KX_INSIDE, .type = KT_BOOL, .ix = ix, .extent = extent});
}

Ex kx_and(Kernel *k, Ex a, Ex b)
{
    if (!a || a == b || is_const(k, b, 0))
        return b;
    if (!b || is_const(k, a, 0))
        return a;
    Ex low = a < b ? a : b, high = a < b ? b : a;
    return intern(k, (KEx){.kind = KX_AND, .type = KT_BOOL, .in = {low, high}});
}

Ex kx_select(Kernel *k, Ex guard, Ex a, Ex b)
{
    if (!guard || a == b)
        return a;
    if (is_const(k, guard, 0))
        return b;
    return intern(k, (KEx){.kind = KX_SELECT, .type = kx(k, a)->type, .in = {guard, a, b}});
}

Ex kx_rand(Kernel *k, Op op, Name site, Dim each, Ix ix)
{
    size_t s = 0;
    while (s < k->seed.n && (k->seed.v[s].site != site || !dim_eq(k->seed.v[s].each, each)))
        s++;
    if (s == k->seed.n)
        vec_push(k->arena, &k->seed, (KSeed){site, each});
    return intern(k, (KEx){.kind = KX_RAND, .type = KT_REAL, .op = (uint16_t)op, .slot = (uint32_t)s, .ix = ix});
}

/* The factors of a product that changes with these loops, from the first on; more than FACTORS_MAX: too many to look at. */
enum { FACTORS_MAX = 8 };
static size_t factors_of(const Kernel *k, Ex e, uint64_t loops, Ex *factor, size_t n)
{
    const KEx *x = kx(k, e);
    if (n > FACTORS_MAX)
        return n;
    if (x->kind == KX_OP && x->op == OP_MUL && x->deps & loops)
        return factors_of(k, x->in[1], loops, factor, factors_of(k, x->in[0], loops, factor, n));
    if (n < FACTORS_MAX)
        factor[n] = e;
    return n + 1;
}

/* On a device a sum along a row does not wait for a factor that all of its terms have: it is one of an earlier sweep, over what a sweep
 * before that has left. (The first one, which loads the row, has no registers for more sums.) Returns the factor and what is left
 * of the terms, or 0. */
static Ex late_factor(Kernel *k, Ex *terms, const KNest *over)
{
    Ex factor[FACTORS_MAX], part[2] = {0};
    uint64_t loops = 0;
    int stage[2] = {0}; /* of what is the same in all terms, and of what is not */
    for (uint32_t i = 0; i < over->n; i++)
        loops |= ix_bit(k->ix, over->var[i]);
    size_t n = factors_of(k, *terms, loops, factor, 0);
    for (size_t i = 0; i < n && n <= FACTORS_MAX; i++) {
        const KEx *x = kx(k, factor[i]);
        int *most = &stage[(x->deps & loops) != 0];
        *most = x->stage > *most ? x->stage : *most;
    }
    if (!(kx(k, *terms)->deps & loops) || stage[1] == 0 || stage[0] <= stage[1])
        return 0;
    for (size_t i = 0; i < n; i++) {
        Ex *to = &part[(kx(k, factor[i])->deps & loops) != 0];
        *to = *to ? kx_op(k, OP_MUL, KT_REAL, (Ex[]){*to, factor[i]}, 2, 0) : factor[i];
    }
    *terms = part[1];
    return part[0];
}

Ex kx_reduce(Kernel *k, Op op, Ex body, const KNest *over)
{
    if (over->n == 0)
        return body;
    bool along = k->target->threads && op == OP_SUM && kx(k, body)->type == KT_REAL &&
                 !dim_literal(ix_info(k->ix, over->var[over->n - 1])->extent);
    Ex factor = along ? late_factor(k, &body, over) : 0;
    Ex sum =
        intern(k, (KEx){.kind = KX_REDUCE, .type = kx(k, body)->type, .op = (uint16_t)op, .in = {body}, .over = *over});
    return factor ? kx_op(k, OP_MUL, KT_REAL, (Ex[]){sum, factor}, 2, 0) : sum;
}

Ex kx_fold(Kernel *k, Op op, Ex a, Ex b)
{
    if (!a)
        return b;
    if (!b)
        return a;
    return kx_op(k, op == OP_SUM ? OP_ADD : OP_MAX, (KType)kx(k, a)->type, (Ex[]){a, b}, 2, 0);
}

int kx_cost(const KEx *e) { return e->kind == KX_RAND ? 40 : e->kind == KX_OP ? op_info((Op)e->op)->cost : 1; }

uint32_t kernel_buffer(Kernel *k, Val value, int part, DType dtype, int64_t elements)
{
    for (size_t b = 0; b < k->buffer.n; b++)
        if (k->buffer.v[b].value == value && k->buffer.v[b].part == part && !k->buffer.v[b].tile)
            return (uint32_t)b;
    vec_push(k->arena, &k->buffer, (KBuffer){.value = value, .part = part, .dtype = dtype, .elements = elements});
    return (uint32_t)(k->buffer.n - 1);
}

uint32_t kernel_tile(Kernel *k, Val value, int64_t elements)
{
    vec_push(k->arena, &k->buffer,
             (KBuffer){.value = value,
                       .part = -1,
                       .dtype = DT_REAL,
                       .tile = true,
                       .elements = elements,
                       .read = true,
                       .written = true});
    return (uint32_t)(k->buffer.n - 1);
}
