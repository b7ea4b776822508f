/* kernel.c - see kernel.h: expressions of a kernel, its verifier and its dump. */
#include "kernel.h"

#include <math.h>

void kernel_init(Kernel *k, Ctx *ctx, Arena *arena, int64_t B, int64_t T, Dim rows)
{
    *k = (Kernel){.ctx = ctx, .arena = arena, .rows = rows};
    ix_init(&k->ix, ctx, arena, B, T);
    k->row = ix_row(&k->ix, rows);
    k->slots = 1024;
    k->slot = NEW_ARRAY(arena, uint32_t, k->slots);
    vec_push(arena, &k->ex, (KEx){.kind = KX_NONE});
}

/* ---- interning ---- */

static uint64_t ex_hash(const KEx *e)
{
    uint64_t bits;
    memcpy(&bits, &e->value, sizeof bits);
    uint64_t key[16] = {e->kind, e->type, e->op, e->in[0], e->in[1], e->in[2], e->ix,
                        (uint64_t)e->extent.n, (uint64_t)e->extent.b * 256 + e->extent.t,
                        e->slot, (uint64_t)e->i, bits, e->over.n};
    uint64_t h = hash_bytes(key, sizeof key, 17);
    return hash_bytes(e->over.var, e->over.n * sizeof e->over.var[0], h);
}

static bool ex_equal(const KEx *a, const KEx *b)
{
    return a->kind == b->kind && a->type == b->type && a->op == b->op && a->in[0] == b->in[0] &&
           a->in[1] == b->in[1] && a->in[2] == b->in[2] && a->ix == b->ix &&
           dim_eq(a->extent, b->extent) && a->slot == b->slot && a->i == b->i &&
           memcmp(&a->value, &b->value, sizeof a->value) == 0 && a->over.n == b->over.n &&
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
    const IxForm *f = ix_form(&k->ix, ix);
    *deps |= f->deps;
    for (uint32_t i = 0; i < f->n; i++) {
        const IVarInfo *v = ix_info(&k->ix, f->t[i].var);
        if (v->kind == IV_VALUE && *stage < kx(k, v->value)->stage)
            *stage = kx(k, v->value)->stage;
        if (v->kind == IV_DIV || v->kind == IV_MOD)
            ix_needs(k, v->base, deps, stage);
    }
}

static Ex intern(Kernel *k, KEx e)
{
    size_t at = ex_hash(&e) & (k->slots - 1);
    for (; k->slot[at]; at = (at + 1) & (k->slots - 1))
        if (ex_equal(&k->ex.v[k->slot[at]], &e))
            return k->slot[at];
    e.array = e.home = -1;
    for (int i = 0; i < 3; i++) {
        e.deps |= kx(k, e.in[i])->deps;
        if (e.stage < kx(k, e.in[i])->stage)
            e.stage = kx(k, e.in[i])->stage;
    }
    ix_needs(k, e.ix, &e.deps, &e.stage);
    if (e.kind == KX_REDUCE) {
        for (uint32_t i = 0; i < e.over.n; i++)
            e.deps &= ~ix_bit(&k->ix, e.over.var[i]);
        e.deps |= ix_bit(&k->ix, k->row);
        e.stage++;
    }
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
        vec_push(k->arena, &k->scalar, (KScalar){host, value, origin});
    return intern(k, (KEx){.kind = KX_SCALAR, .type = KT_REAL, .slot = (uint32_t)s});
}

Ex kx_index(Kernel *k, Ix ix)
{
    const IxForm *f = ix_form(&k->ix, ix);
    if (f->n == 1 && f->t[0].mult == 1 && dim_eq(f->t[0].coef, DIM(1)) &&
        ix_info(&k->ix, f->t[0].var)->kind == IV_VALUE)
        return ix_info(&k->ix, f->t[0].var)->value;
    return intern(k, (KEx){.kind = KX_INDEX, .type = KT_INT, .ix = ix});
}

Ex kx_load(Kernel *k, uint32_t buffer, Ix ix, Ex guard)
{
    KBuffer *b = &k->buffer.v[buffer];
    b->read = true;
    return intern(k, (KEx){.kind = KX_LOAD, .type = b->dtype == DT_INT ? KT_INT : KT_REAL,
                           .slot = buffer, .ix = ix, .in = {guard}});
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

static bool in_loops(const Kernel *k, Ex e)
{
    return kx(k, e)->deps & ~ix_bit(&k->ix, k->row);
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
    if (op == OP_DIV && in_loops(k, in[0]) && !in_loops(k, in[1]) && kx(k, in[1])->deps) {
        Ex one[2] = {kx_number(k, KT_REAL, 1, 0), in[1]}; /* one division per row */
        return kx_op(k, OP_MUL, type, (Ex[]){in[0], kx_op(k, OP_DIV, type, one, 2, 0)}, 2, 0);
    }
    KEx e = {.kind = KX_OP, .type = (uint8_t)type, .op = (uint16_t)op, .i = i};
    for (int j = 0; j < n; j++)
        e.in[j] = in[j];
    return intern(k, e);
}

Ex kx_inside(Kernel *k, Ix ix, Dim extent)
{
    const IxForm *f = ix_form(&k->ix, ix);
    int64_t n = ix_dim_at(&k->ix, extent);
    bool value = false; /* what a tensor holds may be anything */
    for (uint32_t i = 0; i < f->n; i++)
        value |= ix_info(&k->ix, f->t[i].var)->kind == IV_VALUE;
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

Ex kx_rand(Kernel *k, Op op, Name site, Ix ix)
{
    size_t s = 0;
    while (s < k->seed.n && k->seed.v[s] != site)
        s++;
    if (s == k->seed.n)
        vec_push(k->arena, &k->seed, site);
    return intern(k, (KEx){.kind = KX_RAND, .type = KT_REAL, .op = (uint16_t)op,
                           .slot = (uint32_t)s, .ix = ix});
}

Ex kx_reduce(Kernel *k, Op op, Ex body, const KNest *over)
{
    if (over->n == 0)
        return body;
    return intern(k, (KEx){.kind = KX_REDUCE, .type = kx(k, body)->type, .op = (uint16_t)op,
                           .in = {body}, .over = *over});
}

Ex kx_fold(Kernel *k, Op op, Ex a, Ex b)
{
    if (!a)
        return b;
    if (!b)
        return a;
    return kx_op(k, op == OP_SUM ? OP_ADD : OP_MAX, (KType)kx(k, a)->type, (Ex[]){a, b}, 2, 0);
}

int kernel_op_cost(Op op)
{
    switch (op) {
    case OP_EXP: case OP_LOG: case OP_SIN: case OP_COS: case OP_TANH: case OP_SIGMOID:
    case OP_ERF: case OP_GELU: case OP_GELU_TANH: case OP_SILU: case OP_SOFTPLUS: case OP_POW:
        return 16;
    case OP_MOD: return 8;
    case OP_SQRT: case OP_DIV: return 4;
    default: return 1;
    }
}

int kx_cost(const KEx *e)
{
    return e->kind == KX_RAND ? 40 : e->kind == KX_OP ? kernel_op_cost((Op)e->op) : 1;
}

uint32_t kernel_buffer(Kernel *k, Val value, int part, DType dtype, int64_t elements)
{
    for (size_t b = 0; b < k->buffer.n; b++)
        if (k->buffer.v[b].value == value && k->buffer.v[b].part == part)
            return (uint32_t)b;
    vec_push(k->arena, &k->buffer,
             (KBuffer){.value = value, .part = part, .dtype = dtype, .elements = elements});
    return (uint32_t)(k->buffer.n - 1);
}

/* ---- verifier ---- */

typedef struct Check {
    Kernel *k;
    bool *have;     /* expressions in scope */
    bool *have_var; /* index variables in scope */
    VEC(uint32_t) open; /* what to forget: expression e, variable v as v | VAR_BIT, mark 0 */
} Check;
enum { VAR_BIT = 1 << 30 };

static void check_ix(Check *c, Ix ix)
{
    const IxForm *f = ix_form(&c->k->ix, ix);
    for (uint32_t i = 0; i < f->n; i++) {
        IVar v = f->t[i].var;
        const IVarInfo *info = ix_info(&c->k->ix, v);
        bool ok = v == 0 || (info->kind == IV_VALUE ? c->have[info->value] : c->have_var[v]);
        if (!ok)
            vwn_bug(c->k->ctx, "kernel: index variable %u is used outside its loop", v);
    }
}

static void check_use(Check *c, Ex e)
{
    if (!e || kx(c->k, e)->kind == KX_CONST)
        return;
    if (!c->have[e])
        vwn_bug(c->k->ctx, "kernel: expression %u is used before it is computed", e);
}

static void check_bounds(Check *c, uint32_t buffer, Ix ix, Ex guard)
{
    const IxForm *f = ix_form(&c->k->ix, ix);
    const KBuffer *b = &c->k->buffer.v[buffer];
    if (!guard && (f->lo < 0 || f->hi >= b->elements))
        vwn_bug(c->k->ctx, "kernel: index %lld..%lld of a buffer of %lld", (long long)f->lo,
                (long long)f->hi, (long long)b->elements);
}

static void check_define(Check *c, Ex e)
{
    if (c->have[e])
        vwn_bug(c->k->ctx, "kernel: expression %u is computed twice in one scope", e);
    c->have[e] = true;
    vec_push(c->k->arena, &c->open, e);
}

static void check_open(Check *c, IVar v)
{
    vec_push(c->k->arena, &c->open, 0);
    if (v) {
        c->have_var[v] = true;
        vec_push(c->k->arena, &c->open, v | VAR_BIT);
    }
}

static void check_close(Check *c)
{
    while (c->open.n && c->open.v[c->open.n - 1] != 0) {
        uint32_t x = c->open.v[--c->open.n];
        if (x & VAR_BIT)
            c->have_var[x & ~VAR_BIT] = false;
        else
            c->have[x] = false;
    }
    if (c->open.n == 0)
        vwn_bug(c->k->ctx, "kernel: a loop ends that did not begin");
    c->open.n--;
}

static void check_let(Check *c, Ex e)
{
    const KEx *x = kx(c->k, e);
    if (x->kind == KX_REDUCE)
        vwn_bug(c->k->ctx, "kernel: a reduction without its loop");
    for (int i = 0; i < 3; i++)
        check_use(c, x->in[i]);
    check_ix(c, x->ix);
    if (x->kind == KX_LOAD)
        check_bounds(c, x->slot, x->ix, x->in[0]);
    check_define(c, e);
}

static void check_stmt(Check *c, const KStmt *s)
{
    Kernel *k = c->k;
    switch (s->kind) {
    case KS_VAR:
        check_ix(c, ix_info(&k->ix, s->var)->base);
        c->have_var[s->var] = true;
        vec_push(k->arena, &c->open, s->var | VAR_BIT);
        break;
    case KS_LET: check_let(c, s->ex); break;
    case KS_PART: check_open(c, k->part); break;
    case KS_ROWS: check_open(c, k->row); break;
    case KS_LOOP: check_open(c, s->var); break;
    case KS_END: check_close(c); break;
    case KS_ACC: case KS_ARRAY_GET: case KS_BATCH_OUT: check_define(c, s->ex); break;
    case KS_BATCH_IN: check_use(c, kx(k, s->ex)->in[0]); break;
    case KS_ACC_ADD:
        check_use(c, s->ex);
        check_use(c, kx(k, s->ex)->in[0]);
        break;
    case KS_ARRAY_ADD: check_use(c, kx(k, s->ex)->in[0]); break;
    case KS_ARRAY_PUT: check_use(c, s->ex); break;
    case KS_STORE: case KS_SINK: {
        const KRoot *r = &k->root.v[s->root];
        check_use(c, r->value);
        check_ix(c, r->at);
        check_bounds(c, r->buffer, r->at, 0);
        KType want = k->buffer.v[r->buffer].dtype == DT_INT ? KT_INT : KT_REAL;
        if (kx(k, r->value)->type != want)
            vwn_bug(k->ctx, "kernel: a store of the wrong type");
        break;
    }
    default: break;
    }
}

void kernel_verify(Kernel *k)
{
    Check c = {.k = k};
    c.have = NEW_ARRAY(k->arena, bool, k->ex.n);
    c.have_var = NEW_ARRAY(k->arena, bool, k->ix.var.n);
    size_t stored = 0;
    for (size_t i = 0; i < k->stmt.n; i++) {
        check_stmt(&c, &k->stmt.v[i]);
        stored += k->stmt.v[i].kind == KS_STORE || k->stmt.v[i].kind == KS_SINK;
    }
    for (size_t i = 0; i < c.open.n; i++)
        if (c.open.v[i] == 0)
            vwn_bug(k->ctx, "kernel: a loop does not end");
    if (stored != k->root.n)
        vwn_bug(k->ctx, "kernel: %zu stores for %zu roots", stored, k->root.n);
}

/* ---- dump ---- */

void kernel_dump(Buf *out, const Kernel *k)
{
    static const char *const names[KS_COUNT] = {
        "var", "let", "parts", "rows", "loop", "end", "acc", "acc+=", "array", "fill",
        "put", "array+=", "get", "batch in", "batch", "batch out", "store", "sink"};
    int depth = 1;
    buf_puts(out, "kernel rows ");
    dim_print(out, k->rows);
    buf_printf(out, ", %zu buffers, %zu expressions\n", k->buffer.n, k->ex.n - 1);
    for (size_t i = 0; i < k->stmt.n; i++) {
        const KStmt *s = &k->stmt.v[i];
        depth -= s->kind == KS_END;
        buf_printf(out, "%*s%s", depth * 2, "", names[s->kind]);
        if (s->ex)
            buf_printf(out, " x%u", s->ex);
        if (s->kind == KS_LET && kx(k, s->ex)->kind == KX_OP)
            buf_printf(out, " %s", op_info((Op)kx(k, s->ex)->op)->name);
        for (int j = 0; s->kind == KS_LET && j < 3; j++)
            if (kx(k, s->ex)->in[j])
                buf_printf(out, " x%u", kx(k, s->ex)->in[j]);
        if (s->var)
            buf_printf(out, " i%u%s", s->var, s->simd ? " simd" : "");
        if (s->kind == KS_STORE || s->kind == KS_SINK)
            buf_printf(out, " %u of x%u", k->root.v[s->root].buffer, k->root.v[s->root].value);
        buf_putc(out, '\n');
        depth += s->kind == KS_PART || s->kind == KS_ROWS || s->kind == KS_LOOP;
    }
}
