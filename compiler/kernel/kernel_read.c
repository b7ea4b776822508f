/* kernel_read.c - kernel programs from lines, as kernel_text.c prints them; what threads do: kernel_read_threads.c.
 *
 * In:  untrusted text.     Out: kernels that have passed kernel_check(), or diagnostics.
 * The one idea: a line is read into the tables directly, every number in it bounded so that no
 * later arithmetic can overflow; what the lines mean together is the verifier's business, which
 * names the statement that is wrong.
 */
#include "kernel_read.h"

enum {
    SIZE_BITS = 50, /* extents and indices stay below 2^50 */
    BUFFERS_MAX = 4096,
    EXPRESSIONS_MAX = 1 << 20
};

static const char *const type_names[] = {[KT_REAL] = "real", [KT_INT] = "int", [KT_BOOL] = "bool"};

void kernel_read_wrong(KernelReader *r, const char *at, const char *label)
{
    reader_fail(&r->t, "E0904", at, label, "this line of the kernel does not fit");
}

/* ---- numbers ---- */

int64_t kernel_read_below(KernelReader *r, int64_t below, const char *what)
{
    reader_spaces(&r->t);
    const char *at = r->t.p;
    int64_t n = reader_int(&r->t);
    if (!r->t.failed && (n < 0 || n >= below)) {
        reader_fail(&r->t, "E0905", at, "", arena_printf(r->t.ctx->program, "there is no %s %lld", what, (long long)n));
        return 0;
    }
    return r->t.failed ? 0 : n;
}

int64_t kernel_read_size(KernelReader *r)
{
    reader_spaces(&r->t);
    const char *at = r->t.p;
    int64_t n = reader_int(&r->t);
    if (!r->t.failed && (n < 0 || n >> SIZE_BITS))
        kernel_read_wrong(r, at, "this number is out of range");
    return r->t.failed ? 0 : n;
}

/* An extent that is at least 1 and whose size at B, T is bounded. */
Dim kernel_read_extent(KernelReader *r)
{
    reader_spaces(&r->t);
    const char *at = r->t.p;
    Dim d = reader_dim(&r->t);
    int64_t n = r->t.failed ? 1 : dim_at(d, r->all->B, r->all->T);
    if (n < 1 || n >> SIZE_BITS) {
        kernel_read_wrong(r, at, "this extent is out of range");
        return DIM(1);
    }
    return r->t.failed ? DIM(1) : d;
}

/* ---- index forms ---- */

IVar kernel_read_var(KernelReader *r)
{
    Kernel *k = r->k;
    reader_spaces(&r->t);
    const char *at = r->t.p;
    if (reader_accept(&r->t, "part")) {
        if (!k->part)
            kernel_read_wrong(r, at, "this kernel has no partitions");
        return k->part ? k->part : k->row;
    }
    if (reader_accept(&r->t, "r"))
        return k->row;
    reader_expect(&r->t, "i");
    return (IVar)kernel_read_below(r, (int64_t)k->ix->var.n, "index variable");
}

static IxTerm read_term(KernelReader *r, bool minus)
{
    IxTerm x = {.mult = 1, .coef = DIM(1)};
    const char *p = (reader_spaces(&r->t), r->t.p);
    bool more = true;
    if (*p >= '0' && *p <= '9') {
        x.mult = kernel_read_size(r);
        more = reader_accept(&r->t, "*");
    }
    if (more && reader_accept(&r->t, "{")) {
        x.coef = kernel_read_extent(r);
        reader_expect(&r->t, "}");
        more = reader_accept(&r->t, "*");
    }
    if (more)
        x.var = kernel_read_var(r);
    if (minus)
        x.mult = -x.mult;
    return x;
}

/* Adds the range of a term to [*lo, *hi]; false when it leaves what can be computed with. */
static bool add_range(const KernelReader *r, const IxTerm *x, int64_t *lo, int64_t *hi)
{
    const IVarInfo *v = ix_info(r->k->ix, x->var);
    int64_t coef = dim_at(x->coef, r->all->B, r->all->T), a, b, most = (int64_t)1 << SIZE_BITS;
    bool fits = coef >= 0 && mul_i64(coef, x->mult, &coef) && coef < most && coef > -most && mul_i64(coef, v->lo, &a) &&
                mul_i64(coef, v->hi, &b) && add_i64(*lo, a < b ? a : b, lo) && add_i64(*hi, a < b ? b : a, hi);
    return fits && *lo > -most && *hi < most;
}

Ix kernel_read_ix(KernelReader *r)
{
    IxTerm x[TERMS_MAX];
    uint32_t n = 0;
    int64_t lo = 0, hi = 0;
    const char *at = (reader_spaces(&r->t), r->t.p);
    reader_expect(&r->t, "[");
    bool minus = reader_accept(&r->t, "-");
    do {
        if (n == TERMS_MAX / 2) {
            kernel_read_wrong(r, at, "this index has too many terms");
            return 0;
        }
        x[n] = read_term(r, minus);
        if (!r->t.failed && !add_range(r, &x[n], &lo, &hi))
            kernel_read_wrong(r, at, "this index is out of range");
        n++;
        minus = reader_accept(&r->t, "-");
    } while (!r->t.failed && (minus || reader_accept(&r->t, "+")));
    reader_expect(&r->t, "]");
    return r->t.failed ? 0 : ix_of_terms(r->k->ix, x, n);
}

static KNest read_over(KernelReader *r, const char *word)
{
    KNest n = {0};
    if (word && !reader_accept(&r->t, word))
        return n;
    do {
        const char *at = (reader_spaces(&r->t), r->t.p);
        IVar v = kernel_read_var(r);
        if (r->t.failed)
            return n;
        bool loop = ix_info(r->k->ix, v)->kind == IV_LOOP;
        for (uint32_t i = 0; i < n.n; i++)
            loop = loop && n.var[i] != v;
        if (n.n == NEST_MAX || !loop) {
            kernel_read_wrong(r, at, "expected different loops, at most 6");
            return n;
        }
        n.var[n.n++] = v;
    } while (reader_accept(&r->t, ","));
    return n;
}

/* ---- expressions ---- */

static Ex constant(KernelReader *r, KType type, double value)
{
    Kernel *k = r->k;
    for (size_t i = 0; i < r->constant.n; i++) {
        const KEx *x = kx(k, r->constant.v[i]);
        if (x->type == type && memcmp(&x->value, &value, sizeof value) == 0)
            return r->constant.v[i];
    }
    vec_push(k->arena, &k->ex, (KEx){.kind = KX_CONST, .type = (uint8_t)type, .value = value});
    vec_push(r->t.arena, &r->constant, (Ex)(k->ex.n - 1));
    return (Ex)(k->ex.n - 1);
}

/* Expressions are numbered as they appear, so a new one has the next number. */
static Ex read_numbered(KernelReader *r)
{
    Kernel *k = r->k;
    reader_expect(&r->t, "x");
    const char *at = r->t.p;
    int64_t n = reader_int(&r->t);
    if (!r->t.failed && (n < 1 || n > (int64_t)r->ex.n + 1 || n > EXPRESSIONS_MAX))
        reader_fail(&r->t, "E0905", at, arena_printf(r->t.ctx->program, "expected at most %zu", r->ex.n + 1),
                    "expressions are numbered in order without gaps");
    if (r->t.failed)
        return 0;
    if (n == (int64_t)r->ex.n + 1) {
        vec_push(k->arena, &k->ex, (KEx){.kind = KX_NONE, .array = -1, .home = -1});
        vec_push(r->t.arena, &r->ex, (Ex)(k->ex.n - 1));
    }
    return r->ex.v[n - 1];
}

void kernel_read_number_of(KernelReader *r, Ex e)
{
    reader_spaces(&r->t);
    reader_expect(&r->t, "x");
    const char *at = r->t.p;
    int64_t n = reader_int(&r->t);
    if (r->t.failed)
        return;
    if (n != (int64_t)r->ex.n + 1 && (n < 1 || n > (int64_t)r->ex.n || r->ex.v[n - 1] != e))
        reader_fail(&r->t, "E0905", at, arena_printf(r->t.ctx->program, "expected %zu", r->ex.n + 1),
                    "expressions are numbered in order without gaps");
    else if (n == (int64_t)r->ex.n + 1)
        vec_push(r->t.arena, &r->ex, e);
}

Ex kernel_read_ex(KernelReader *r)
{
    reader_spaces(&r->t);
    if (*r->t.p == 'x')
        return read_numbered(r);
    const char *at = r->t.p;
    double value = reader_real(&r->t);
    if (r->t.failed)
        return 0;
    KType type = *r->t.p == 'i'   ? KT_INT
                 : *r->t.p == 'b' ? KT_BOOL
                                  : KT_REAL; /* "0i"; in "0 i=16" it is another word */
    r->t.p += type != KT_REAL;
    if (type != KT_REAL &&
        !(value >= -9007199254740992.0 && value <= 9007199254740992.0 && value == (double)(int64_t)value))
        kernel_read_wrong(r, at, "not a whole number");
    return r->t.failed ? 0 : constant(r, type, value);
}

bool kernel_read_kind(const char *word, KEx *x)
{
    static const struct {
        const char *word;
        KKind kind;
    } kinds[] = {{"scalar", KX_SCALAR}, {"index", KX_INDEX},   {"load", KX_LOAD},
                 {"inside", KX_INSIDE}, {"select", KX_SELECT}, {"and", KX_AND}};
    for (size_t i = 0; i < COUNT_OF(kinds); i++)
        if (!strcmp(kinds[i].word, word)) {
            x->kind = (uint8_t)kinds[i].kind;
            return true;
        }
    Op op = op_named(word);
    x->op = (uint16_t)op;
    x->kind = op == OP_RAND || op == OP_RANDN ? KX_RAND : op == OP_SUM || op == OP_AMAX ? KX_REDUCE : KX_OP;
    return op != OP_NONE;
}

/* Does something else follow than an expression or an attribute: who does the statement? */
static bool is_word(const KernelReader *r)
{
    static const char *const inputs[] = {"i=", "inf", "nan"};
    const char *p = r->t.p;
    for (size_t i = 0; i < COUNT_OF(inputs); i++)
        if (strncmp(p, inputs[i], strlen(inputs[i])) == 0)
            return false;
    return *p >= 'a' && *p <= 'z' && *p != 'x';
}

static void read_inputs(KernelReader *r, KEx *x)
{
    for (int i = 0; i < 3; i++) {
        reader_spaces(&r->t);
        if (r->t.failed || *r->t.p == '\n' || r->t.p == r->t.end || is_word(r))
            return;
        if (x->kind == KX_OP && reader_accept(&r->t, "i="))
            x->i = reader_int(&r->t);
        else
            x->in[i] = kernel_read_ex(r);
    }
    if (x->kind == KX_OP && reader_accept(&r->t, "i="))
        x->i = reader_int(&r->t);
}

static void read_kind(KernelReader *r, KEx *x)
{
    switch ((KKind)x->kind) {
    case KX_REDUCE: x->over = read_over(r, "over"); return;
    case KX_SCALAR:
        reader_expect(&r->t, "s");
        x->slot = (uint32_t)kernel_read_below(r, (int64_t)r->k->scalar.n, "scalar");
        return;
    case KX_LOAD:
        reader_expect(&r->t, "b");
        x->slot = (uint32_t)kernel_read_below(r, (int64_t)r->k->buffer.n, "buffer");
        break;
    case KX_RAND:
        reader_expect(&r->t, "n");
        x->slot = (uint32_t)kernel_read_below(r, (int64_t)r->k->seed.n, "seed");
        break;
    case KX_INDEX:
    case KX_INSIDE: break;
    case KX_SELECT:
        read_inputs(r, x);
        x->i = reader_accept(&r->t, "as loaded");
        return;
    default: read_inputs(r, x); return;
    }
    x->ix = kernel_read_ix(r);
    if (x->kind == KX_INSIDE) {
        reader_expect(&r->t, "below");
        x->extent = kernel_read_extent(r);
    }
    if (x->kind == KX_LOAD && reader_accept(&r->t, "if"))
        x->in[0] = kernel_read_ex(r);
}

/* "x3 real = mul x1 x2"; again, it must say the same. */
static Ex read_definition(KernelReader *r)
{
    reader_spaces(&r->t);
    const char *at = r->t.p;
    Ex e = read_numbered(r);
    KEx x = {.array = -1, .home = -1};
    x.type = (uint8_t)reader_choice(&r->t, type_names, COUNT_OF(type_names), "type");
    reader_expect(&r->t, "=");
    reader_spaces(&r->t);
    const char *word_at = r->t.p, *word = reader_word(&r->t);
    if (!r->t.failed && !kernel_read_kind(word, &x))
        reader_fail(&r->t, "E0903", word_at, "", arena_printf(r->t.ctx->program, "there is no operator `%s`", word));
    if (r->t.failed)
        return 0;
    read_kind(r, &x);
    if (r->t.failed)
        return 0;
    KEx *have = &r->k->ex.v[e];
    if (have->kind == KX_NONE) {
        kx_find_needs(r->k, &x);
        *have = x;
        ix_value_depends(r->k->ix, e, x.deps);
        return e;
    }
    x.in[0] = x.kind == KX_REDUCE ? have->in[0] : x.in[0];
    bool same = have->kind == x.kind && have->type == x.type && have->op == x.op &&
                memcmp(have->in, x.in, sizeof x.in) == 0 && have->ix == x.ix && dim_eq(have->extent, x.extent) &&
                have->slot == x.slot && have->i == x.i && have->over.n == x.over.n &&
                memcmp(have->over.var, x.over.var, sizeof x.over.var) == 0;
    if (!same)
        kernel_read_wrong(r, at, "this expression was another one above");
    return e;
}

/* ---- tables ---- */

static void read_rows(KernelReader *r)
{
    Kernel *k = r->k;
    kernel_init(k, r->t.ctx, r->t.arena, r->all->B, r->all->T, kernel_read_extent(r));
    vec_push(k->arena, &k->buffer, (KBuffer){0}); /* so that the vectors are not NULL */
    k->buffer.n = 0;
    if (reader_accept(&r->t, "parts")) {
        k->partitions = kernel_read_size(r);
        reader_expect(&r->t, "of");
        k->chunk = kernel_read_size(r);
    }
    while (reader_accept(&r->t, "argument"))
        k->ix->arguments |= 1u << kernel_read_below(r, LITERAL_MAX + 1, "small extent");
    k->flat = reader_accept(&r->t, "flat");
    if (reader_accept(&r->t, "device")) {
        k->target = &target_gpu;
        k->device.shared = target_gpu.shared;
        k->unrolled = reader_accept(&r->t, "unrolled") ? kernel_read_size(r) : 0;
    }
    k->device.tensor = reader_accept(&r->t, "tensor");
    k->whole = reader_accept(&r->t, "whole");
    k->lines = reader_accept(&r->t, "lines");
}

static void read_buffer(KernelReader *r)
{
    enum { TYPES = 16 };
    const char *types[TYPES] = {"int"};
    size_t n = 1;
    for (const HalfInfo *h; n < TYPES && (h = half_at(n - 1)); n++)
        types[n] = h->word;
    Kernel *k = r->k;
    KBuffer b = {.value = (Val)k->buffer.n + 1, .part = -1};
    reader_number(&r->t, k->buffer.n);
    const char *at = r->t.p;
    b.read = reader_accept(&r->t, "read");
    b.written = reader_accept(&r->t, "write");
    b.partly = b.written && reader_accept(&r->t, "partly");
    b.part = reader_accept(&r->t, "part") ? 0 : -1;
    b.op = b.part >= 0 ? OP_SUM : OP_NONE;
    b.tile = b.part < 0 && reader_accept(&r->t, "tile");
    int type = (int)reader_choice(&r->t, types, n, "type");
    b.half = type > 0 ? half_at((size_t)type - 1)->half : HALF_NONE;
    b.dtype = type == 0 ? DT_INT : DT_REAL;
    b.elements = kernel_read_size(r);
    if (b.tile && reader_accept(&r->t, "of"))
        b.rounded = half_at((size_t)reader_choice(&r->t, types + 1, n - 1, "type"))->half;
    if (reader_accept(&r->t, "\""))
        r->t.p--, b.name = reader_string(&r->t);
    if (!r->t.failed && (k->buffer.n == BUFFERS_MAX || (b.part >= 0 && !k->partitions) ||
                         (b.tile && b.elements >> 30) || (b.partly && (b.tile || b.part >= 0))))
        kernel_read_wrong(r, at, "this kernel cannot have such a buffer");
    vec_push(k->arena, &k->buffer, b);
}

static void read_scalar(KernelReader *r)
{
    Kernel *k = r->k;
    KScalar s = {.host = -1, .origin = (Val)k->scalar.n + 1};
    reader_number(&r->t, k->scalar.n);
    reader_expect(&r->t, "=");
    if (reader_accept(&r->t, "host"))
        s.host = (int32_t)kernel_read_below(r, 1 << 20, "host value");
    else
        s.value = reader_real(&r->t);
    if (reader_accept(&r->t, "\""))
        r->t.p--, s.name = reader_string(&r->t);
    vec_push(k->arena, &k->scalar, s);
}

static void read_var_line(KernelReader *r)
{
    Kernel *k = r->k;
    IxTable *t = k->ix;
    const char *at = r->t.p;
    if (reader_accept(&r->t, "part")) {
        if (k->part || !k->partitions)
            kernel_read_wrong(r, at, "this kernel has no partitions, or has them twice");
        else
            k->part = ix_part(t, DIM(k->partitions));
        return;
    }
    reader_expect(&r->t, "i");
    reader_number(&r->t, t->var.n);
    IVarInfo v = {.kind = IV_LOOP, .ordinal = (int)t->var.n};
    if (reader_accept(&r->t, "loop")) {
        v.extent = kernel_read_extent(r);
    } else if (reader_accept(&r->t, "value")) {
        v.kind = IV_VALUE;
        v.value = kernel_read_ex(r);
        reader_expect(&r->t, "below");
        v.extent = kernel_read_extent(r);
    } else {
        reader_expect(&r->t, "=");
        v.base = kernel_read_ix(r);
        v.kind = reader_accept(&r->t, "/") ? IV_DIV : IV_MOD;
        if (v.kind == IV_MOD)
            reader_expect(&r->t, "%");
        v.by = kernel_read_extent(r);
    }
    if (!r->t.failed && (t->loops == 63 || t->var.n == 50000))
        kernel_read_wrong(r, at, "too many index variables");
    if (!r->t.failed)
        ix_append(t, &v);
}

static void read_root(KernelReader *r)
{
    static const char *const kinds[] = {"store", "sum", "amax"};
    Kernel *k = r->k;
    KRoot root = {0};
    reader_number(&r->t, k->root.n);
    int kind = reader_choice(&r->t, kinds, COUNT_OF(kinds), "result");
    root.kind = kind ? KR_SINK : KR_STORE;
    root.op = kind == 0 ? OP_NONE : kind == 1 ? OP_SUM : OP_AMAX;
    reader_expect(&r->t, "b");
    root.buffer = (uint32_t)kernel_read_below(r, (int64_t)k->buffer.n, "buffer");
    root.nest = read_over(r, "over");
    if (kind && !r->t.failed)
        k->buffer.v[root.buffer].op = root.op;
    vec_push(k->arena, &k->root, root);
}

static void read_table_line(KernelReader *r)
{
    Kernel *k = r->k;
    if (reader_accept(&r->t, "buffer ")) {
        read_buffer(r);
    } else if (reader_accept(&r->t, "scalar ")) {
        read_scalar(r);
    } else if (reader_accept(&r->t, "seed ")) {
        reader_number(&r->t, k->seed.n);
        KSeed seed = {.site = reader_string(&r->t)};
        reader_expect(&r->t, "each");
        seed.each = reader_dim(&r->t);
        vec_push(k->arena, &k->seed, seed);
    } else if (reader_accept(&r->t, "var ")) {
        read_var_line(r);
    } else if (reader_accept(&r->t, "root ")) {
        read_root(r);
    } else if (kernel_read_mapping(r) || kernel_read_arguments(r)) {
        return;
    } else if (reader_accept(&r->t, "begin")) {
        r->statements = true;
        if (k->partitions && !k->part)
            reader_expected(&r->t, "`var part` before `begin`");
    } else {
        reader_expected(&r->t, "`buffer`, `scalar`, `seed`, `var`, `root` or `begin`");
    }
}

/* ---- statements ---- */

/* "t0 real over i2, i3", a new one */
static void read_array(KernelReader *r, KStmt *s)
{
    Kernel *k = r->k;
    KArray a = {.elements = 1};
    Dim size = DIM(1);
    const char *at = (reader_spaces(&r->t), r->t.p);
    reader_expect(&r->t, "t");
    reader_number(&r->t, k->array.n);
    a.dtype = reader_accept(&r->t, "int") ? DT_INT : DT_REAL;
    if (a.dtype == DT_REAL)
        reader_expect(&r->t, "real");
    reader_expect(&r->t, "over");
    a.nest = read_over(r, NULL);
    for (uint32_t i = 0; i < a.nest.n; i++) {
        const IVarInfo *v = ix_info(k->ix, a.nest.var[i]);
        if (!mul_i64(a.elements, v->hi + 1, &a.elements) || a.elements >> 30 || !dim_mul(size, v->extent, &size)) {
            kernel_read_wrong(r, at, "this scratch array is too large");
            return;
        }
    }
    kernel_read_array_place(r, &a);
    s->array = (int)k->array.n;
    vec_push(k->arena, &k->array, a);
}

/* The body of the sum or maximum s->ex. */
static void read_body(KernelReader *r, const KStmt *s)
{
    const char *at = r->t.p;
    Ex body = kernel_read_ex(r);
    if (r->t.failed)
        return;
    KEx *x = &r->k->ex.v[s->ex];
    if (x->kind != KX_REDUCE || (x->in[0] && x->in[0] != body))
        kernel_read_wrong(r, at, "expected a sum or maximum that has no other body");
    x->in[0] = body;
    kx_find_needs(r->k, x);
}

uint32_t kernel_read_place(KernelReader *r, const char **at, Ix *ix)
{
    reader_expect(&r->t, "b");
    *at = r->t.p;
    uint32_t buffer = (uint32_t)kernel_read_below(r, (int64_t)r->k->buffer.n, "buffer");
    *ix = kernel_read_ix(r);
    return buffer;
}

static void read_root_place(KernelReader *r, KStmt *s)
{
    s->root = (uint32_t)kernel_read_below(r, (int64_t)r->k->root.n, "result");
    const char *at;
    Ix ix;
    uint32_t buffer = kernel_read_place(r, &at, &ix);
    reader_expect(&r->t, "=");
    Ex value = kernel_read_ex(r);
    if (r->t.failed)
        return;
    KRoot *root = &r->k->root.v[s->root];
    bool again = root->at == ix && root->value == value; /* a step of it, or of the rest of a loop of vectors */
    if (root->buffer != buffer || (root->value && !again))
        kernel_read_wrong(r, at, "this result belongs into another buffer, or is stored above");
    root->at = ix;
    root->value = value;
}

static void read_prefetch(KernelReader *r, KStmt *s)
{
    KPrefetch x = {0};
    const char *at;
    x.buffer = kernel_read_place(r, &at, &x.at);
    if (s->kind == KS_PREFETCH_ROW)
        kernel_read_prefetched(r, &x);
    s->root = (uint32_t)r->k->prefetch.n;
    vec_push(r->k->arena, &r->k->prefetch, x);
}

/* One of these words, of which the first stands for nothing. */
static uint32_t read_words(KernelReader *r, const char *const *words, uint32_t n, const char *what)
{
    reader_spaces(&r->t);
    const char *at = r->t.p;
    for (uint32_t i = 1; i < n && !r->t.failed; i++)
        if (reader_accept(&r->t, words[i]))
            return i;
    if (!r->t.failed)
        kernel_read_wrong(r, at, what);
    return 0;
}

static KLying read_lying(KernelReader *r)
{
    return (KLying)read_words(r, kernel_lying_words, LIES_COUNT, "expected how a factor lies");
}

/* "by rows along i3, a strided, b along its own, in few rows, lines of 4, of sixteens" */
static void read_way(KernelReader *r, KProductWay *way)
{
    if (!reader_accept(&r->t, "by "))
        return;
    way->by_rows = reader_accept(&r->t, "rows");
    if (!way->by_rows)
        reader_expect(&r->t, "columns");
    reader_expect(&r->t, "along");
    way->along = kernel_read_var(r);
    reader_expect(&r->t, ", a");
    way->a = read_lying(r);
    reader_expect(&r->t, ", b");
    way->b = read_lying(r);
    if (reader_accept(&r->t, ", in"))
        way->cut = (ProductCut)read_words(r, kernel_cut_words, CUT_COUNT, "expected how a product is cut");
    if (reader_accept(&r->t, ", lines of"))
        way->line = (uint8_t)kernel_read_below(r, 64, "line");
    way->sixteens = reader_accept(&r->t, ", of sixteens");
}

/* "b0[16*i2 + i4] * b1[i3 + 8*i4] over i2, i3, i4" */
static void read_factors(KernelReader *r, KProduct *x)
{
    const char *at = r->t.p, *place;
    x->a = kernel_read_place(r, &place, &x->a_at);
    reader_expect(&r->t, "*");
    x->b = kernel_read_place(r, &place, &x->b_at);
    KNest over = read_over(r, "over");
    if (!r->t.failed && over.n != 3)
        kernel_read_wrong(r, at, "a product runs over three loops");
    x->m = over.var[0];
    x->n = over.var[1];
    x->k = over.var[2];
}

static uint32_t add_product(KernelReader *r, KProduct x)
{
    vec_push(r->k->arena, &r->k->product, x);
    return (uint32_t)r->k->product.n;
}

/* "and b1[..] * b2[..] over i2, i3, i4": a product whose terms are added up with another one's */
static uint32_t read_also(KernelReader *r, const KProduct *x)
{
    KProduct also = {.c = x->c, .c_at = x->c_at};
    read_factors(r, &also);
    read_way(r, &also.way);
    return add_product(r, also);
}

static uint32_t read_one_product(KernelReader *r)
{
    KProduct x = {0};
    const char *place;
    x.c = kernel_read_place(r, &place, &x.c_at);
    x.add = reader_accept(&r->t, "+=");
    if (!x.add)
        reader_expect(&r->t, "=");
    read_factors(r, &x);
    if (reader_accept(&r->t, "and "))
        x.also = read_also(r, &x);
    x.split = reader_accept(&r->t, "in two parts");
    x.rows = reader_accept(&r->t, "of two rows") ? 2 : reader_accept(&r->t, "of four rows") ? 4 : 0;
    read_way(r, &x.way);
    return add_product(r, x);
}

static void read_product(KernelReader *r, KStmt *s)
{
    s->root = read_one_product(r) - 1;
    if (r->t.failed || !reader_accept(&r->t, "beside "))
        return;
    uint32_t beside = read_one_product(r);
    r->k->product.v[s->root].beside = beside;
}

static void read_accumulators(KernelReader *r, KStmt *s)
{
    s->acc = (uint32_t)r->k->acc.n;
    while (reader_spaces(&r->t), !r->t.failed && *r->t.p == 'x') {
        vec_push(r->k->arena, &r->k->acc, kernel_read_ex(r));
        s->n_acc++;
    }
}

/* An accumulator, or the root of a sum over rows. */
static KTotal read_total(KernelReader *r)
{
    KTotal t = {0};
    if (reader_accept(&r->t, "root"))
        t.root = (uint32_t)kernel_read_below(r, (int64_t)r->k->root.n, "result");
    else
        t.ex = kernel_read_ex(r);
    return t;
}

/* One total, or those of a step. */
static void read_totals(KernelReader *r, KStmt *s)
{
    KTotals t = {.of = NEW_ARRAY(r->k->arena, KTotal, LANES_MOST)};
    do {
        const char *at = r->t.p;
        t.of[t.n] = read_total(r);
        t.of[t.n].alone = reader_accept(&r->t, "alone");
        if (++t.n == LANES_MOST && reader_accept(&r->t, ","))
            kernel_read_wrong(r, at, "a step of more totals than a warp has threads");
    } while (!r->t.failed && reader_accept(&r->t, ","));
    if (t.n == 1 && !t.of[0].alone) {
        s->ex = t.of[0].ex;
        s->root = t.of[0].root;
        return;
    }
    vec_push(r->k->arena, &r->k->device.totals, t);
    s->totals = (uint32_t)r->k->device.totals.n;
}

/* The field of a statement that has this letter in kstmts.def. */
static void read_field(KernelReader *r, KStmt *s, char field)
{
    switch (field) {
    case 'v': s->var = kernel_read_var(r); break;
    case 's':
        s->simd = reader_accept(&r->t, "simd");
        s->vector = reader_accept(&r->t, "vector");
        s->rest = reader_accept(&r->t, "rest");
        s->singly = reader_accept(&r->t, "singly");
        break;
    case 'd': s->ex = read_definition(r); break;
    case 'x':
        if (s->kind == KS_LANE_TAKE)
            kernel_read_number_of(r, s->ex);
        else
            s->ex = kernel_read_ex(r);
        break;
    case 'b': read_body(r, s); break;
    case 't':
        reader_expect(&r->t, "t");
        s->array = (int)kernel_read_below(r, (int64_t)r->k->array.n, "scratch array");
        break;
    case 'n': read_array(r, s); break;
    case 'q':
        reader_expect(&r->t, "v");
        s->array = (int)kernel_read_below(r, 1 << 16, "batch");
        break;
    case 'a': s->at = (uint32_t)kernel_read_below(r, 1 << 16, "element"); break;
    case 'c': s->n_acc = (uint32_t)kernel_read_below(r, 1 << 16, "element"); break;
    case 'r': read_root_place(r, s); break;
    case 'p': read_product(r, s); break;
    case 'f': read_prefetch(r, s); break;
    case 'u':
        reader_expect(&r->t, "b");
        s->root = (uint32_t)kernel_read_below(r, (int64_t)r->k->buffer.n, "buffer");
        break;
    case 'A': read_accumulators(r, s); break;
    case 'g': read_totals(r, s); break;
    case 'l': kernel_read_column(r, s); break;
    case 'e': kernel_read_element(r, s); break;
    default: vwn_bug(r->k->ctx, "kstmts.def names a field `%c` that nothing reads", field);
    }
}

/* What the first field of a statement begins with, where that tells it from another one. */
static bool field_begins(char field, char here)
{
    switch (field) {
    case 'd': return here == 'x';
    case 't': return here == 't';
    case 'q': return here == 'v';
    case 'e': return here == 'l';
    default: return true;
    }
}

/* How many characters of a row's text stand here, up to its first field, which is to follow; -1: another statement. */
static int begins(KernelReader *r, const KStmtInfo *info)
{
    size_t n = strcspn(info->text, "%");
    const char *field = info->text + n;
    if ((info->device && !r->k->device.mapping.row_threads) || strncmp(r->t.p, info->text, n) != 0 ||
        (*field && !(field[1] == 'd' && n > 0) && !field_begins(field[1], r->t.p[n])))
        return -1;
    return (int)n;
}

static void read_statement(KernelReader *r)
{
    int longest = -1;
    KStmt s = {0};
    reader_spaces(&r->t);
    for (int kind = 0; kind < KS_COUNT; kind++) {
        int n = begins(r, &kstmt_info[kind]);
        if (n >= longest && n >= 0) { /* of two, the one that names an array comes later */
            longest = n;
            s.kind = (KStmtKind)kind;
        }
    }
    if (longest < 0) {
        reader_expected(&r->t, "a statement of a kernel");
        return;
    }
    r->t.p += longest;
    for (const char *t = kstmt_info[s.kind].text + longest; *t && !r->t.failed; t++) {
        char word[2] = {*t};
        if (*t == '%')
            read_field(r, &s, *++t);
        else if (*t != ' ')
            reader_expect(&r->t, word);
    }
    if (!r->t.failed && r->k->device.mapping.row_threads)
        kernel_read_sharing(r, &s);
    else if (!r->t.failed)
        kernel_read_across(r, &s);
    if (!r->t.failed)
        vec_push(r->k->arena, &r->k->stmt, s);
}

/* ---- kernels ---- */

static Span line_span(const KernelReader *r)
{
    const char *start = r->start;
    while (*start == ' ')
        start++;
    return (Span){r->t.file, (uint32_t)(start - r->t.text), (uint32_t)(r->t.p - r->t.text)};
}

static void finish_kernel(KernelReader *r)
{
    Kernel *k = r->k;
    size_t at;
    if (!k || r->t.failed)
        return;
    Span where = r->head;
    const char *why = r->statements ? NULL : "it has no `begin`";
    for (size_t i = 0; i < r->ex.n && !why; i++)
        if (kx(k, r->ex.v[i])->kind == KX_NONE)
            why = arena_printf(k->arena, "x%zu is never computed", i + 1);
    for (size_t i = 0; i < k->root.n && !why && !k->device.mapping.row_threads; i++) /* a product may store it */
        if (!k->root.v[i].value)
            why = arena_printf(k->arena, "result %zu is never stored", i);
    kernel_read_finish_columns(r);
    if (!why) {
        why = kernel_check(k, &at);
        if (why && at != SIZE_MAX)
            where = r->line.v[at];
    }
    if (why) {
        diag_error(r->t.ctx, "E0904", where, why, "this kernel is no program");
        r->t.failed = true;
    }
    r->k = NULL;
}

static const char *read_kernel_comment(KernelReader *r)
{
    if (r->t.failed || !reader_accept(&r->t, "#"))
        return NULL;
    if (*r->t.p == ' ')
        r->t.p++;
    const char *start = r->t.p;
    while (*r->t.p && *r->t.p != '\n')
        r->t.p++;
    return arena_copy(r->t.arena, start, (size_t)(r->t.p - start));
}

/* What stands above the emitted text is a comment there. */
static const char *read_about(KernelReader *r)
{
    reader_spaces(&r->t);
    const char *at = r->t.p, *about = reader_string(&r->t);
    if (about && strstr(about, "*/"))
        kernel_read_wrong(r, at, "a comment cannot hold `*/`");
    return about;
}

static void read_kernel(KernelReader *r)
{
    KernelText x = {.about = read_about(r)};
    x.comment = read_kernel_comment(r);
    r->head = line_span(r);
    reader_end_of_line(&r->t);
    x.kernel = r->k = NEW(r->t.arena, Kernel);
    r->statements = false;
    r->ex.n = r->constant.n = r->line.n = r->result.n = 0;
    r->start = r->t.p;
    reader_expect(&r->t, "rows ");
    if (!r->t.failed)
        read_rows(r);
    vec_push(r->t.arena, &r->all->kernel, x);
}

static void read_library(KernelReader *r)
{
    KernelText x = {0};
    reader_spaces(&r->t);
    const char *at = r->t.p, *word = reader_word(&r->t);
    while (x.library < LIB_COUNT && strcmp(library_name(x.library), word) != 0)
        x.library++;
    if (!r->t.failed && x.library == LIB_COUNT)
        reader_fail(&r->t, "E0903", at, "",
                    arena_printf(r->t.ctx->program, "there is no kernel `%s` in the library", word));
    if (!r->t.failed && library_has_class(x.library)) {
        reader_expect(&r->t, "d=");
        x.attention.d = kernel_read_size(r);
        reader_expect(&r->t, "dv=");
        x.attention.dv = kernel_read_size(r);
        x.attention.capped = reader_accept(&r->t, "capped");
        x.attention.dropped = reader_accept(&r->t, "dropped");
        x.attention.oldest = reader_accept(&r->t, "oldest");
        bool fits =
            x.attention.d % 16 == 0 && x.attention.dv % 16 == 0 && x.attention.d <= 4096 && x.attention.dv <= 4096;
        if (!r->t.failed && !fits)
            kernel_read_wrong(r, at, "heads are padded to multiples of 16, up to 4096");
    }
    vec_push(r->t.arena, &r->all->kernel, x);
}

/* What a dump says beside the program: why a barrier stands, which line a pass has removed. */
static bool skip_comment(KernelReader *r)
{
    if (r->t.failed || !reader_accept(&r->t, "#"))
        return false;
    while (*r->t.p && *r->t.p != '\n')
        r->t.p++;
    return true;
}

static void read_line(KernelReader *r)
{
    bool between = !r->k || r->statements;
    r->start = r->t.p;
    if (skip_comment(r)) {
        /* nothing else */
    } else if (between && reader_accept(&r->t, "kernel ")) {
        finish_kernel(r);
        if (!r->t.failed)
            read_kernel(r);
    } else if (between && reader_accept(&r->t, "library ")) {
        finish_kernel(r);
        if (!r->t.failed)
            read_library(r);
    } else if (between && (reader_spaces(&r->t), *r->t.p == '\n')) {
        /* an empty line */
    } else if (!r->k) {
        reader_expected(&r->t, "`kernel` or `library`");
    } else if (!r->statements) {
        read_table_line(r);
    } else {
        size_t n = r->k->stmt.n;
        read_statement(r);
        if (r->k->stmt.n > n)
            vec_push(r->t.arena, &r->line, line_span(r));
    }
    skip_comment(r);
    reader_end_of_line(&r->t);
}

bool kernels_are(Ctx *ctx, uint32_t source_file)
{
    size_t n;
    return strncmp(source_text(ctx, source_file, &n), "vwn kernels ", 12) == 0;
}

KernelTexts *kernels_read(Ctx *ctx, Arena *arena, uint32_t source_file)
{
    KernelReader r = {.t = reader_start(ctx, arena, source_file)};
    r.all = NEW(arena, KernelTexts);
    int64_t *size[2] = {&r.all->B, &r.all->T};
    if (!reader_accept(&r.t, "vwn kernels 1"))
        reader_fail(&r.t, "E0901", r.t.p, "expected `vwn kernels 1`", "these are no kernels");
    for (int i = 0; i < 2; i++) {
        reader_expect(&r.t, i ? "T=" : "B=");
        const char *at = r.t.p;
        *size[i] = reader_int(&r.t);
        if (!r.t.failed && (*size[i] < 1 || *size[i] > 1 << 30))
            kernel_read_wrong(&r, at, "this number is out of range");
    }
    reader_end_of_line(&r.t);
    while (!r.t.failed && r.t.p < r.t.end)
        read_line(&r);
    finish_kernel(&r);
    return r.t.failed ? NULL : r.all;
}
