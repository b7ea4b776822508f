/* kernel_verify.c - is a scheduled kernel a program?
 *
 * In:  a Kernel with statements.
 * Out: the first thing that is wrong with it, and where.
 * The one idea: the statements are walked once, as a machine would run them, with what is known
 * at each: which expressions and variables are in scope, which accumulators and scratch arrays
 * are whole, which roots are stored. Nothing is taken from the scheduler but its statements.
 */
#include "kernel_text.h"

#include <stdio.h>

enum { OPEN_EX, OPEN_VAR, OPEN_SCOPE, OPEN_PIECES };
typedef struct Open { /* what ends with the innermost scope */
    int what;
    uint32_t number;
} Open;

typedef struct Acc {      /* by expression: an accumulator */
    bool live, whole;     /* declared; all loops over its body are done */
    size_t depth, adds;   /* loops that were open where it was declared */
} Acc;
typedef struct ArrayState {
    bool declared, whole;
    Ex holds;             /* the expression in it, 0: none yet */
    size_t depth, writes; /* loops that were open around the whole of its writing */
    size_t open;          /* loops that have been open since the last write */
} ArrayState;
typedef struct BatchState {
    uint32_t n, in; /* elements, how many are given */
    Op op;
    bool ran;
} BatchState;

typedef struct Check {
    const Kernel *k;
    Arena *arena;
    const char *why; /* the first fault */
    bool *have, *have_var, *stored, *multiplied;
    bool *filling;    /* by buffer: a tile that the open loops store into */
    bool *loaded;     /* by buffer: something has read it */
    uint64_t *varies; /* by expression: bits of the loops that it changes with */
    Acc *acc;
    ArrayState *array;
    VEC(BatchState) batch;
    VEC(Open) open;
    VEC(IVar) loop;  /* open loops, from the outermost in; the row and the part are not among them */
    VEC(bool) simd;
    VEC(Ex) live;    /* declared accumulators */
    bool in_part, in_rows, had_rows;
    uint32_t simd_from, simd_n; /* accumulators that the open simd loop carries */
} Check;

static void fault(Check *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void fault(Check *c, const char *fmt, ...)
{
    char text[240];
    va_list ap;
    if (c->why)
        return;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    c->why = arena_copy(c->arena, text, strlen(text));
}

/* ---- uses ---- */

static bool ex_exists(Check *c, Ex e)
{
    if (e < c->k->ex.n)
        return true;
    fault(c, "an expression that does not exist");
    return false;
}

static void use(Check *c, Ex e)
{
    if (!e || !ex_exists(c, e) || kx(c->k, e)->kind == KX_CONST)
        return;
    if (!c->have[e])
        fault(c, "an expression is used before it is computed");
    else if (c->acc[e].live && !c->acc[e].whole)
        fault(c, "an accumulator is read before its loops are done");
}

static void use_ix(Check *c, Ix ix)
{
    if (ix >= c->k->ix->form.n) {
        fault(c, "an index form that does not exist");
        return;
    }
    const IxForm *f = ix_form(c->k->ix, ix);
    for (uint32_t i = 0; i < f->n; i++) {
        IVar v = f->t[i].var;
        const IVarInfo *info = ix_info(c->k->ix, v);
        if (v && info->kind == IV_VALUE)
            use(c, info->value);
        else if (v && !c->have_var[v])
            fault(c, "an index variable is used outside its loop");
    }
}

static uint64_t ix_varies(const Check *c, Ix ix)
{
    const IxForm *f = ix_form(c->k->ix, ix);
    uint64_t m = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        const IVarInfo *v = ix_info(c->k->ix, f->t[i].var);
        if (v->kind == IV_LOOP)
            m |= ix_bit(c->k->ix, f->t[i].var);
        else if (v->kind == IV_VALUE)
            m |= c->varies[v->value];
        else if (v->kind == IV_DIV || v->kind == IV_MOD)
            m |= ix_varies(c, v->base);
    }
    return m;
}

static uint64_t nest_bits(const Check *c, const KNest *n)
{
    uint64_t m = 0;
    for (uint32_t i = 0; i < n->n; i++)
        m |= ix_bit(c->k->ix, n->var[i]);
    return m;
}

static void define(Check *c, Ex e)
{
    if (!ex_exists(c, e))
        return;
    const KEx *x = kx(c->k, e);
    for (int i = 0; i < 3 && x->kind != KX_REDUCE && !c->why; i++)
        c->varies[e] |= c->varies[x->in[i]];
    if (!c->why)
        c->varies[e] |= ix_varies(c, x->ix);
    if (c->have[e])
        fault(c, "an expression is computed twice in one scope");
    c->have[e] = true;
    vec_push(c->arena, &c->open, (Open){OPEN_EX, e});
}

static void define_var(Check *c, IVar v)
{
    if (c->have_var[v])
        fault(c, "an index variable is defined twice");
    c->have_var[v] = true;
    vec_push(c->arena, &c->open, (Open){OPEN_VAR, v});
}

/* ---- types ---- */

static KType type(const Check *c, Ex e) { return (KType)kx(c->k, e)->type; }

static void check_op(Check *c, const KEx *x)
{
    Op op = (Op)x->op;
    const OpInfo *info = op < OP_COUNT ? op_info(op) : NULL;
    if (!info || (!info->c_real && !info->c_integer)) {
        fault(c, "an operator that is not elementwise");
        return;
    }
    for (int i = 0; i < 3; i++)
        if ((x->in[i] != 0) != (i < info->n_in)) {
            fault(c, "%s has another number of inputs", info->name);
            return;
        }
    KType of = type(c, x->in[op == OP_WHERE ? 1 : 0]), out = of;
    bool fits = (of == KT_REAL && info->c_real) || (of == KT_INT && info->c_integer);
    if (op == OP_WHERE)
        fits = fits && type(c, x->in[0]) == KT_REAL && type(c, x->in[2]) == of;
    else if (info->n_in == 2)
        fits = fits && type(c, x->in[1]) == of;
    if (op == OP_TO_REAL || op == OP_TO_INT)
        out = op == OP_TO_REAL ? KT_REAL : KT_INT;
    if (op == OP_LT || op == OP_LE || op == OP_EQ)
        out = KT_REAL;
    if (!fits || x->type != out)
        fault(c, "%s of the wrong types", info->name);
    if (op == OP_ROUND_TO && x->i != 16 && x->i != 17)
        fault(c, "rounding to a type that does not exist");
}

static void want_type(Check *c, const KEx *x, KType want)
{
    if (x->type != want)
        fault(c, "an expression of the wrong type");
}

static void want_bool(Check *c, Ex e)
{
    if (e && type(c, e) != KT_BOOL)
        fault(c, "a guard that is not a truth value");
}

static bool in_list(const IVar *v, size_t n, IVar want)
{
    for (size_t i = 0; i < n; i++)
        if (v[i] == want)
            return true;
    return false;
}

/* In memory that the kernel also writes, an element may be read only where it will be stored,
 * and before that. */
static void check_in_place(Check *c, uint32_t buffer, Ix ix)
{
    const Kernel *k = c->k;
    for (size_t r = 0; r < k->root.n; r++)
        if (k->root.v[r].buffer == buffer && k->root.v[r].at == ix) {
            if (c->stored[r])
                fault(c, "a load of what has been overwritten");
            return;
        }
    fault(c, "a load of what another row or element stores");
}

/* Is all of a tile there? */
static bool tile_ready(const Check *c, uint32_t buffer, bool but_additions)
{
    const Kernel *k = c->k;
    bool ready = !c->filling[buffer];
    for (size_t r = 0; r < k->root.n; r++)
        ready = ready && (k->root.v[r].buffer != buffer || c->stored[r]);
    for (size_t i = 0; i < k->product.n; i++)
        if (k->product.v[i].c == buffer && !(but_additions && k->product.v[i].add))
            ready = ready && c->multiplied[i];
    return ready;
}

static void check_load(Check *c, const KEx *x)
{
    const Kernel *k = c->k;
    if (x->slot >= k->buffer.n) {
        fault(c, "a buffer that does not exist");
        return;
    }
    const KBuffer *b = &k->buffer.v[x->slot];
    want_type(c, x, b->dtype == DT_INT ? KT_INT : KT_REAL);
    want_bool(c, x->in[0]);
    if (!b->read)
        fault(c, "a load from a buffer that is not said to be read");
    if (b->part >= 0)
        fault(c, "a load from a partition's part");
    if (c->why)
        return;
    c->loaded[x->slot] = true;
    if (!kernel_in_bounds(k, x->ix, x->in[0], b->elements))
        fault(c, "an index may leave its buffer of %lld elements", (long long)b->elements);
    if (b->tile && !tile_ready(c, x->slot, false))
        fault(c, "a tile is read before all of it is there");
    if (b->written && !b->tile)
        check_in_place(c, x->slot, x->ix);
}

/* What an expression is made of, and of which type it must be; a reduction is not computed by one
 * statement. */
static void check_value(Check *c, const KEx *x)
{
    const Kernel *k = c->k;
    for (int i = 0; i < 3; i++)
        use(c, x->in[i]);
    use_ix(c, x->ix);
    if (c->why)
        return;
    switch ((KKind)x->kind) {
    case KX_SCALAR:
        want_type(c, x, KT_REAL);
        if (x->slot >= k->scalar.n)
            fault(c, "a scalar that does not exist");
        break;
    case KX_INDEX: want_type(c, x, KT_INT); break;
    case KX_LOAD: check_load(c, x); break;
    case KX_OP: check_op(c, x); break;
    case KX_INSIDE: want_type(c, x, KT_BOOL); break;
    case KX_AND:
        want_type(c, x, KT_BOOL);
        want_bool(c, x->in[0]);
        want_bool(c, x->in[1]);
        if (!x->in[0] || !x->in[1])
            fault(c, "`and` of one guard");
        break;
    case KX_SELECT:
        want_bool(c, x->in[0]);
        if (!x->in[0] || !x->in[1] || !x->in[2] || type(c, x->in[1]) != type(c, x->in[2]) ||
            x->type != type(c, x->in[1]))
            fault(c, "a choice between two types");
        break;
    case KX_RAND:
        want_type(c, x, KT_REAL);
        if (x->slot >= k->seed.n || (x->op != OP_RAND && x->op != OP_RANDN))
            fault(c, "a random number of no stream");
        break;
    default: fault(c, "an expression that one statement cannot compute"); break;
    }
}

/* ---- steps ---- */

/* Does the statement do this of itself? Without steps it does all but make room. */
static bool does(const KStmt *s, int step) { return s->step ? s->step & step : step != STEP_NEW; }

/* ---- scopes ---- */

static void open_scope(Check *c, IVar v)
{
    vec_push(c->arena, &c->open, (Open){OPEN_SCOPE, 0});
    define_var(c, v);
}

static void end_loop(Check *c)
{
    c->loop.n--;
    c->simd.n--;
    for (size_t i = 0; i < c->live.n; i++) {
        Acc *a = &c->acc[c->live.v[i]];
        a->whole = a->whole || (a->live && a->adds && a->depth >= c->loop.n);
    }
    for (size_t i = 0; i < c->k->array.n; i++) {
        ArrayState *a = &c->array[i];
        a->whole = a->whole || (a->writes && a->depth >= c->loop.n);
        a->open = a->open < c->loop.n ? a->open : c->loop.n;
    }
    if (c->loop.n == 0)
        memset(c->filling, 0, c->k->buffer.n);
}

static void close_scope(Check *c)
{
    while (c->open.n && c->open.v[c->open.n - 1].what < OPEN_SCOPE) {
        Open o = c->open.v[--c->open.n];
        if (o.what == OPEN_VAR) {
            c->have_var[o.number] = false;
        } else {
            c->have[o.number] = false;
            if (c->acc[o.number].live && !c->acc[o.number].adds)
                fault(c, "an accumulator to which nothing is added");
            c->acc[o.number] = (Acc){0};
        }
    }
    if (c->open.n == 0) {
        fault(c, "an `end` without its loop");
        return;
    }
    if (c->open.v[--c->open.n].what == OPEN_PIECES)
        return;
    if (c->loop.n)
        end_loop(c);
    else if (c->in_rows)
        c->in_rows = false;
    else
        c->in_part = false;
}

static bool is_loop(const Check *c, IVar v)
{
    return v < c->k->ix->var.n && ix_info(c->k->ix, v)->kind == IV_LOOP;
}

static void check_loop(Check *c, const KStmt *s)
{
    if (!c->in_rows) {
        fault(c, "a loop outside the rows");
    } else if (!is_loop(c, s->var)) {
        fault(c, "a loop over what is no loop variable");
    } else if (c->loop.n && c->simd.v[c->simd.n - 1]) {
        fault(c, "a loop inside a loop of vectors");
    } else if (s->acc + s->n_acc > c->k->acc.n) {
        fault(c, "an accumulator that does not exist");
    }
    if (c->why)
        return;
    vec_push(c->arena, &c->loop, s->var);
    vec_push(c->arena, &c->simd, s->simd);
    open_scope(c, s->var);
    c->simd_from = s->acc;
    c->simd_n = s->n_acc;
    for (uint32_t i = 0; i < s->n_acc; i++) {
        Ex e = c->k->acc.v[s->acc + i];
        if ((!s->simd && !c->k->mapping.row_threads) || !ex_exists(c, e) || !c->acc[e].live || c->acc[e].whole)
            fault(c, "a loop carries what is no accumulator around it");
    }
}

static void check_rows(Check *c, const KStmt *s)
{
    bool part = s->kind == KS_PART;
    if (part ? c->in_part || c->had_rows || !c->k->part
             : c->had_rows || c->in_part != (c->k->part != 0)) {
        fault(c, "the loops over partitions and rows are not once outside of all others");
        return;
    }
    c->in_part = c->in_part || part;
    c->in_rows = c->had_rows = !part;
    open_scope(c, part ? c->k->part : c->k->row);
}

/* ---- sums ---- */

/* Are the loops opened since `depth` exactly those of one or two nests? */
static bool loops_are(const Check *c, size_t depth, const KNest *a, const KNest *b)
{
    if (depth > c->loop.n || c->loop.n - depth != a->n + (b ? b->n : 0))
        return false;
    for (size_t i = depth; i < c->loop.n; i++) {
        IVar v = c->loop.v[i];
        if (!in_list(a->var, a->n, v) && !(b && in_list(b->var, b->n, v)))
            return false;
    }
    return true;
}

static bool is_reduce(Check *c, Ex e)
{
    if (!ex_exists(c, e))
        return false;
    const KEx *x = kx(c->k, e);
    bool ok = x->kind == KX_REDUCE && (x->op == OP_SUM || x->op == OP_AMAX) && x->over.n &&
              ex_exists(c, x->in[0]) && x->in[0] && x->type == type(c, x->in[0]) &&
              x->type != KT_BOOL;
    if (!ok)
        fault(c, "a sum or maximum of nothing that could be one");
    return ok;
}

static void check_acc(Check *c, Ex e)
{
    if (!is_reduce(c, e))
        return;
    define(c, e);
    c->acc[e] = (Acc){.live = true, .depth = c->loop.n};
    vec_push(c->arena, &c->live, e);
}

static void check_acc_add(Check *c, Ex e)
{
    if (!is_reduce(c, e))
        return;
    const KEx *x = kx(c->k, e);
    Acc *a = &c->acc[e];
    use(c, x->in[0]);
    if (!c->have[e] || !a->live || a->whole || a->adds++)
        fault(c, "an addition to what is no open accumulator");
    else if (!loops_are(c, a->depth, &x->over, NULL))
        fault(c, "a sum does not run over its own loops");
    c->varies[e] |= c->varies[x->in[0]] & ~nest_bits(c, &x->over);
    if (c->why)
        return;
    if (c->simd.v[c->simd.n - 1]) {
        bool carried = false;
        for (uint32_t i = 0; i < c->simd_n; i++)
            carried |= c->k->acc.v[c->simd_from + i] == e;
        if (!carried)
            fault(c, "a loop of vectors does not carry its accumulator");
    }
}

/* ---- arrays ---- */

static ArrayState *array_of(Check *c, const KStmt *s)
{
    bool there = s->array >= 0 && (size_t)s->array < c->k->array.n;
    if (!there || (s->kind != KS_ARRAY && !c->array[s->array].declared)) {
        fault(c, "a scratch array that does not exist");
        return NULL;
    }
    return &c->array[s->array];
}

static void array_index(Check *c, const KArray *a)
{
    for (uint32_t i = 0; i < a->nest.n; i++)
        if (!c->have_var[a->nest.var[i]])
            fault(c, "a scratch array is used outside the loops over it");
}

static void check_array(Check *c, const KStmt *s, ArrayState *state)
{
    const KArray *a = &c->k->array.v[s->array];
    int64_t n = 1;
    if (state->declared || c->in_part || c->in_rows)
        fault(c, "a scratch array is not declared once, before the rows");
    state->declared = true;
    for (uint32_t i = 0; i < a->nest.n; i++) {
        if (!is_loop(c, a->nest.var[i]))
            fault(c, "a scratch array over what is no loop");
        else if (!mul_i64(n, ix_info(c->k->ix, a->nest.var[i])->hi + 1, &n))
            n = -1;
    }
    if (a->nest.n == 0 || n != a->elements)
        fault(c, "a scratch array of another size than its loops");
}

static void array_type(Check *c, const KStmt *s)
{
    KType want = c->k->array.v[s->array].dtype == DT_INT ? KT_INT : KT_REAL;
    if (ex_exists(c, s->ex) && type(c, s->ex) != want)
        fault(c, "a scratch array of another type than what it holds");
}

/* Is the element there that the open loops name? Either all are, or the loops that are still open are the array's own. */
static bool is_there(const Check *c, const KArray *a, const ArrayState *state)
{
    bool there = state->writes > 0;
    for (size_t i = state->depth; i < state->open && !state->whole; i++)
        there = there && in_list(a->nest.var, a->nest.n, c->loop.v[i]);
    return state->whole || there;
}

static void array_get(Check *c, const KStmt *s, ArrayState *state)
{
    if (does(s, STEP_LOAD)) {
        array_index(c, &c->k->array.v[s->array]);
        if (state->holds != s->ex || !is_there(c, &c->k->array.v[s->array], state))
            fault(c, "a scratch array is read before it holds this");
    }
    if (!does(s, STEP_VALUE))
        return;
    define(c, s->ex);
    if (!c->why)
        c->varies[s->ex] = nest_bits(c, &c->k->array.v[s->array].nest);
}

static void array_put(Check *c, const KStmt *s, ArrayState *state)
{
    const KArray *a = &c->k->array.v[s->array];
    array_index(c, a);
    if (does(s, STEP_VALUE))
        use(c, s->ex);
    if (!does(s, STEP_STORE))
        return;
    if (state->holds && state->holds != s->ex)
        fault(c, "a scratch array holds two things");
    if (c->why)
        return;
    if (c->varies[s->ex] & ~nest_bits(c, &a->nest))
        fault(c, "an element of a scratch array holds what other loops change");
    state->holds = s->ex;
    state->whole = false;
    state->depth = 0;
    state->writes++;
    state->open = c->loop.n;
    while (state->depth < c->loop.n && !in_list(a->nest.var, a->nest.n, c->loop.v[state->depth]))
        state->depth++;
}

static void array_add(Check *c, const KStmt *s, ArrayState *state)
{
    const KArray *a = &c->k->array.v[s->array];
    if (!is_reduce(c, s->ex))
        return;
    array_index(c, a);
    if (does(s, STEP_VALUE))
        use(c, kx(c->k, s->ex)->in[0]);
    if (does(s, STEP_STORE))
        state->open = c->loop.n;
    if (state->holds != s->ex || state->whole || (does(s, STEP_STORE) && state->writes++))
        fault(c, "an addition to a scratch array that was not set to begin with");
    else if (!loops_are(c, state->depth, &a->nest, &kx(c->k, s->ex)->over))
        fault(c, "a sum does not run over its own loops");
    else if (c->simd.v[c->simd.n - 1] && !in_list(a->nest.var, a->nest.n, c->loop.v[c->loop.n - 1]))
        fault(c, "a loop of vectors adds to one element");
}

static void check_arrays(Check *c, const KStmt *s)
{
    ArrayState *state = array_of(c, s);
    if (!state)
        return;
    if (s->kind != KS_ARRAY)
        array_type(c, s);
    switch (s->kind) {
    case KS_ARRAY: check_array(c, s, state); break;
    case KS_ARRAY_GET: array_get(c, s, state); break;
    case KS_ARRAY_PUT: array_put(c, s, state); break;
    case KS_ARRAY_ADD: array_add(c, s, state); break;
    default:
        if (is_reduce(c, s->ex))
            *state = (ArrayState){.declared = true, .holds = s->ex, .depth = c->loop.n};
        break;
    }
}

/* ---- batches ---- */

static void batch_in(Check *c, const KStmt *s)
{
    const KEx *x = kx(c->k, s->ex);
    bool fits = x->kind == KX_OP && x->op < OP_COUNT && x->type == KT_REAL &&
                op_info((Op)x->op)->class == CLASS_UNARY && op_info((Op)x->op)->c_real &&
                x->op != OP_ROUND_TO;
    check_value(c, x);
    if (c->why)
        return;
    if (!fits) {
        fault(c, "a batch of what is no function of one number");
        return;
    }
    if (s->array < 0 || (size_t)s->array > c->batch.n || s->n_acc == 0) {
        fault(c, "a batch that does not exist");
        return;
    }
    if ((size_t)s->array == c->batch.n)
        vec_push(c->arena, &c->batch, (BatchState){.n = s->n_acc, .op = (Op)x->op});
    BatchState *b = &c->batch.v[s->array];
    if (s->at != b->in++ || s->at >= b->n || s->n_acc != b->n || b->op != (Op)x->op || b->ran)
        fault(c, "a batch is not given its elements in order");
}

static void check_batch(Check *c, const KStmt *s)
{
    if (!ex_exists(c, s->ex))
        return;
    if (c->loop.n || !c->in_rows) {
        fault(c, "a batch that is not the row's");
        return;
    }
    if (s->kind == KS_BATCH_IN) {
        batch_in(c, s);
        return;
    }
    BatchState *b = s->array >= 0 && (size_t)s->array < c->batch.n ? &c->batch.v[s->array] : NULL;
    const KEx *x = kx(c->k, s->ex);
    if (!b || x->kind != KX_OP || (Op)x->op != b->op || b->in != b->n) {
        fault(c, "a batch that has not all its elements");
    } else if (s->kind == KS_BATCH_RUN) {
        if (b->ran || s->n_acc != b->n)
            fault(c, "a batch is run twice");
        b->ran = true;
    } else {
        if (!b->ran || s->at >= b->n)
            fault(c, "a batch is read before it has run");
        define(c, s->ex);
    }
}

/* ---- stores ---- */

static void root_places(Check *c, const KRoot *r)
{
    const Kernel *k = c->k;
    IVar v[NEST_MAX + 1];
    uint32_t n = 0;
    for (; n < r->nest.n; n++)
        v[n] = r->nest.var[n];
    if (r->kind == KR_STORE && !k->buffer.v[r->buffer].tile)
        v[n++] = k->row;
    if (!kernel_injective(k, r->at, v, n))
        fault(c, "two elements are stored in one place");
    if (!kernel_in_bounds(k, r->at, 0, k->buffer.v[r->buffer].elements))
        fault(c, "a store may leave its buffer of %lld elements",
              (long long)k->buffer.v[r->buffer].elements);
}

static void check_store(Check *c, const KStmt *s)
{
    const Kernel *k = c->k;
    if (s->root >= k->root.n || k->root.v[s->root].buffer >= k->buffer.n) {
        fault(c, "a result that does not exist");
        return;
    }
    const KRoot *r = &k->root.v[s->root];
    const KBuffer *b = &k->buffer.v[r->buffer];
    bool sink = s->kind == KS_SINK;
    if (does(s, STEP_VALUE))
        use(c, r->value);
    if (!does(s, STEP_STORE | STEP_LOAD))
        return;
    if (c->stored[s->root])
        fault(c, "a result is stored twice");
    c->stored[s->root] = does(s, STEP_STORE);
    if (sink != (r->kind == KR_SINK) || sink != (b->part >= 0) || !b->written || (sink && b->half))
        fault(c, "a result is stored in the wrong way");
    if (!c->in_rows || (sink && !c->in_part) || !loops_are(c, 0, &r->nest, NULL))
        fault(c, "a result is not stored in its own loops");
    use_ix(c, r->at);
    if (c->why)
        return;
    if (type(c, r->value) != (b->dtype == DT_INT ? KT_INT : KT_REAL))
        fault(c, "a result of the wrong type");
    if (sink && r->op != OP_SUM && r->op != OP_AMAX)
        fault(c, "a sum over rows of no operator");
    c->filling[r->buffer] = c->loop.n > 0;
    root_places(c, r);
}

/* ---- products ---- */

/* A place of the row and of two loops, one step of which is known to be one element. */
static bool form_is_of(const Check *c, Ix ix, bool row, IVar v, IVar w)
{
    if (ix >= c->k->ix->form.n)
        return false;
    const IxForm *f = ix_form(c->k->ix, ix);
    for (uint32_t i = 0; i < f->n; i++) {
        IVar x = f->t[i].var;
        if (x && x != v && x != w && !(row && x == c->k->row))
            return false;
    }
    return true;
}

static void check_factor(Check *c, uint32_t buffer, Ix at, IVar v, IVar w)
{
    if (buffer >= c->k->buffer.n) {
        fault(c, "a buffer that does not exist");
        return;
    }
    const KBuffer *b = &c->k->buffer.v[buffer];
    c->loaded[buffer] = true;
    if (b->dtype != DT_REAL || (b->half && !c->k->target->threads) || b->part >= 0 || !b->read)
        fault(c, "a product of what it cannot read");
    else if (b->tile ? !tile_ready(c, buffer, false) : b->written)
        fault(c, b->tile ? "a product of a tile before all of it is there"
                         : "a product of what the kernel stores");
    else if (!form_is_of(c, at, true, v, w))
        fault(c, "a factor is not placed by the row and its own two loops");
    else if (!kernel_in_bounds(c->k, at, 0, b->elements))
        fault(c, "a factor may leave its buffer of %lld elements", (long long)b->elements);
}

/* On a device a product goes to memory where nothing else wants it (gpu/tile.c). */
static bool is_result(const Kernel *k, const KProduct *x)
{
    const KBuffer *b = &k->buffer.v[x->c];
    return k->mapping.row_threads && !x->add && !b->tile && !b->read && b->part < 0;
}

static void check_result(Check *c, const KProduct *x)
{
    const Kernel *k = c->k;
    if (x->c >= k->buffer.n) {
        fault(c, "a buffer that does not exist");
        return;
    }
    const KBuffer *b = &k->buffer.v[x->c];
    const bool memory = is_result(k, x);
    IVar v[3] = {x->m, x->n, k->row};
    if (b->dtype != DT_REAL || !b->written || !(b->tile || memory || (b->part >= 0 && x->add)))
        fault(c, "a product is stored in the wrong way");
    else if (x->add && b->tile && !tile_ready(c, x->c, true))
        fault(c, "a product is added to a tile before all of it is there");
    else if (!form_is_of(c, x->c_at, memory, x->m, x->n) || !kernel_injective(k, x->c_at, v, memory ? 3 : 2))
        fault(c, "two elements are stored in one place");
    else if (!kernel_in_bounds(k, x->c_at, 0, b->elements))
        fault(c, "a product may leave its buffer of %lld elements", (long long)b->elements);
}

/* Along the loop in which c is contiguous a factor must be contiguous too. Or it is along the terms of the
 * sum: then it is transposed first. */
static void check_layout(Check *c, const KProduct *x)
{
    const Kernel *k = c->k;
    ProductSteps s;
    bool steps = product_steps(k, x, &s);
    bool along_n = steps && product_along_n(&s) && (s.bn == 1 || s.bk == 1);
    bool along_m = steps && s.cm == 1 && (s.am == 1 || s.ak == 1);
    if (!(steps && product_along_n(&s) ? along_n : along_m))
        fault(c, "a product without neighbours to make vectors of");
    if (!k->tensor && ((ix_info(k->ix, x->m)->hi + 1) % PRODUCT_LANES || (ix_info(k->ix, x->n)->hi + 1) % PRODUCT_LANES))
        fault(c, "a product of other sizes than multiples of %d", (int)PRODUCT_LANES);
}

static void check_factors(Check *c, const KProduct *x)
{
    Dim depth = ix_info(c->k->ix, x->k)->extent;
    check_factor(c, x->a, x->a_at, x->m, x->k);
    check_factor(c, x->b, x->parts ? ix_add(c->k->ix, x->b_at, ix_dim(c->k->ix, depth, 1)) : x->b_at, x->k, x->n);
}

/* Its terms are added up with those of another product, whose result they are. */
static void check_also(Check *c, uint32_t product)
{
    if (product >= c->k->product.n || c->multiplied[product]) {
        fault(c, "a product is added to another one twice");
        return;
    }
    check_factors(c, &c->k->product.v[product]);
    c->multiplied[product] = true;
}

/* Where the right factor of a row begins. */
static Ix factor_begin(const Kernel *k, const KProduct *x)
{
    const IxForm *f = ix_form(k->ix, x->b_at);
    IxTerm t[TERMS_MAX];
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->n; i++)
        if (f->t[i].var != x->k && f->t[i].var != x->n)
            t[n++] = f->t[i];
    return ix_of_terms(k->ix, t, n);
}

static bool have_one_factor(const Kernel *k, const KProduct *x, const KProduct *y)
{
    ProductSteps s, u;
    return x->b == y->b && product_steps(k, x, &s) && product_steps(k, y, &u) && s.bk == u.bk && s.bn == u.bn &&
           ix_info(k->ix, x->k)->hi == ix_info(k->ix, y->k)->hi && ix_info(k->ix, x->n)->hi == ix_info(k->ix, y->n)->hi &&
           factor_begin(k, x) == factor_begin(k, y);
}

static void check_product(Check *c, uint32_t product)
{
    const Kernel *k = c->k;
    if (product >= k->product.n) {
        fault(c, "a product that does not exist");
        return;
    }
    const KProduct *x = &k->product.v[product];
    if (!c->in_rows || c->loop.n || c->multiplied[product]) {
        fault(c, "a product is not computed once for each row");
        return;
    }
    if (!is_loop(c, x->m) || !is_loop(c, x->n) || !is_loop(c, x->k) || x->m == x->n ||
        x->m == x->k || x->n == x->k) {
        fault(c, "a product that is not over three loops");
        return;
    }
    check_factors(c, x);
    check_result(c, x);
    if (!c->why)
        check_layout(c, x);
    c->multiplied[product] = true;
    if (x->also)
        check_also(c, x->also - 1);
    if (x->beside)
        check_product(c, x->beside - 1);
    if (x->beside && !c->why && !have_one_factor(k, x, &k->product.v[x->beside - 1]))
        fault(c, "products at one time by two factors");
}

/* Is a result what a product stores? */
static bool is_product(const Kernel *k, uint32_t buffer)
{
    for (size_t i = 0; i < k->product.n; i++)
        if (k->product.v[i].c == buffer && is_result(k, &k->product.v[i]))
            return true;
    return false;
}

/* Is it computed with another one? */
static bool is_also(const Kernel *k, size_t product)
{
    for (size_t i = 0; i < k->product.n; i++)
        if (k->product.v[i].also == product + 1)
            return true;
    return false;
}

/* All of a buffer is stored: as many elements as it has, each root's in places of their own; or what one root
 * has of it. */
static void check_whole(Check *c)
{
    const Kernel *k = c->k;
    double *n = NEW_ARRAY(c->arena, double, k->buffer.n + 1);
    size_t *roots = NEW_ARRAY(c->arena, size_t, k->buffer.n + 1);
    for (size_t i = 0; i < k->root.n; i++) {
        const KRoot *r = &k->root.v[i];
        bool each_row = r->kind == KR_STORE && !k->buffer.v[r->buffer].tile;
        double count = each_row ? (double)ix_dim_at(k->ix, k->rows) : 1;
        if (!c->stored[i] && is_product(k, r->buffer))
            continue;
        if (!c->stored[i]) {
            fault(c, "result %zu is never stored", i);
            return;
        }
        for (uint32_t j = 0; j < r->nest.n; j++)
            count *= (double)ix_info(k->ix, r->nest.var[j])->hi + 1;
        n[r->buffer] += count;
        roots[r->buffer]++;
    }
    for (size_t i = 0; i < k->product.n; i++) {
        const KProduct *x = &k->product.v[i];
        if (is_also(k, i))
            continue;
        if (!c->multiplied[i])
            fault(c, "a product is never computed");
        else if (!x->add || k->buffer.v[x->c].part >= 0)
            n[x->c] += ((double)ix_info(k->ix, x->m)->hi + 1) * ((double)ix_info(k->ix, x->n)->hi + 1) *
                       (is_result(k, x) ? (double)ix_dim_at(k->ix, k->rows) : 1);
    }
    for (size_t b = 0; b < k->buffer.n; b++)
        if (k->mapping.row_threads && k->buffer.v[b].tile && n[b] == 0 && !c->loaded[b])
            continue; /* another one is in its place */
        else if (k->buffer.v[b].partly ? roots[b] != 1 : k->buffer.v[b].written && n[b] != (double)k->buffer.v[b].elements)
            fault(c, "%.0f of the %lld elements of buffer %zu are stored", n[b],
                  (long long)k->buffer.v[b].elements, b);
}

/* ---- the whole ---- */

static void check_var(Check *c, IVar v)
{
    const IVarInfo *info = v < c->k->ix->var.n ? ix_info(c->k->ix, v) : NULL;
    if (!info || (info->kind != IV_DIV && info->kind != IV_MOD)) {
        fault(c, "an index variable that is no quotient");
        return;
    }
    use_ix(c, info->base);
    if (!c->why && ix_form(c->k->ix, info->base)->lo < 0)
        fault(c, "a quotient of what may be negative");
    define_var(c, v);
}

static void check_stmt(Check *c, const KStmt *s)
{
    switch (s->kind) {
    case KS_VAR: check_var(c, s->var); break;
    case KS_LET:
        if (!ex_exists(c, s->ex))
            break;
        if (does(s, STEP_LOAD))
            check_value(c, kx(c->k, s->ex));
        if (does(s, STEP_VALUE))
            define(c, s->ex);
        break;
    case KS_PART: case KS_ROWS: check_rows(c, s); break;
    case KS_LOOP: check_loop(c, s); break;
    case KS_END: close_scope(c); break;
    case KS_ACC: check_acc(c, s->ex); break;
    case KS_ACC_ADD: check_acc_add(c, s->ex); break;
    case KS_ARRAY: case KS_ARRAY_FILL: case KS_ARRAY_PUT: case KS_ARRAY_ADD: case KS_ARRAY_GET:
        check_arrays(c, s);
        break;
    case KS_BATCH_IN: case KS_BATCH_RUN: case KS_BATCH_OUT: check_batch(c, s); break;
    case KS_STORE: case KS_SINK: check_store(c, s); break;
    case KS_PRODUCT: check_product(c, s->root); break;
    case KS_PIECES: vec_push(c->arena, &c->open, (Open){OPEN_PIECES, 0}); break;
    case KS_BARRIER: case KS_WARP: case KS_WARP_PUT: case KS_WARP_TAKE: case KS_SUM_NEW: case KS_SUM_PUT: case KS_ARRAY_GIVE: case KS_ARRAY_TAKE:
        break;
    default: fault(c, "a statement of no kind"); break;
    }
}

static void check_partitions(Check *c)
{
    const Kernel *k = c->k;
    int64_t rows = ix_dim_at(k->ix, k->rows);
    if (k->part && (k->chunk < 1 || k->partitions != (rows + k->chunk - 1) / k->chunk))
        fault(c, "%lld partitions of %lld rows for %lld rows", (long long)k->partitions,
              (long long)k->chunk, (long long)rows);
}

const char *kernel_check(const Kernel *k, size_t *at)
{
    Arena *arena = k->arena;
    Check c = {.k = k, .arena = arena};
    c.have = NEW_ARRAY(arena, bool, k->ex.n);
    c.have_var = NEW_ARRAY(arena, bool, k->ix->var.n);
    c.varies = NEW_ARRAY(arena, uint64_t, k->ex.n);
    c.stored = NEW_ARRAY(arena, bool, k->root.n + 1);
    c.multiplied = NEW_ARRAY(arena, bool, k->product.n + 1);
    c.filling = NEW_ARRAY(arena, bool, k->buffer.n + 1);
    c.loaded = NEW_ARRAY(arena, bool, k->buffer.n + 1);
    c.acc = NEW_ARRAY(arena, Acc, k->ex.n);
    c.array = NEW_ARRAY(arena, ArrayState, k->array.n + 1);
    *at = SIZE_MAX;
    check_partitions(&c);
    for (size_t i = 0; i < k->stmt.n && !c.why; i++) {
        check_stmt(&c, &k->stmt.v[i]);
        if (c.why)
            *at = i;
    }
    for (size_t i = 0; i < c.open.n; i++)
        if (c.open.v[i].what >= OPEN_SCOPE)
            fault(&c, "a loop that does not end");
    if (!c.had_rows)
        fault(&c, "no loop over rows");
    check_whole(&c);
    return c.why ? c.why : kernel_check_held(k, at);
}

static _Noreturn void broken(const Kernel *k, size_t at, const char *why)
{
    if (k->ctx->on_bug) {
        Buf dump = buf_new(k->arena);
        kernel_print(&dump, k);
        k->ctx->on_bug(k->ctx, dump.s);
    }
    vwn_bug(k->ctx, "kernel, statement %lld: %s", at == SIZE_MAX ? -1ll : (long long)at, why);
}

void kernel_verify(const Kernel *k)
{
    size_t at;
    const char *why = kernel_check(k, &at);
    if (why)
        broken(k, at, why);
}

void kernel_verify_mapping(const Kernel *k)
{
    kernel_verify(k);
    size_t at = kernel_race(k);
    if (at != SIZE_MAX)
        broken(k, at, "a thread touches what another may still be at, or waits where not all of them come by");
    uint64_t warps = k->mapping.row_threads / 32;
    if (k->mapping.slots * warps * sizeof(int64_t) > KERNEL_SLOTS_ROOM)
        broken(k, SIZE_MAX, "totals of warps have more shared memory than is kept for them");
}
