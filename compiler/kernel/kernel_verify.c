/* kernel_verify.c - is a scheduled kernel a program?
 *
 * In:  a Kernel with statements.
 * Out: the first thing that is wrong with it, and where.
 * The one idea: the statements are walked once, as a machine would run them, with what is known
 * at each: which expressions and variables are in scope, which accumulators and scratch arrays
 * are whole, which roots are stored. Nothing is taken from the scheduler but its statements.
 * Sums, arrays and batches are in kernel_verify_sums.c, what is stored and products in kernel_verify_results.c.
 */
#include "kernel_text.h"
#include "kernel_verify.h"

#include <stdio.h>

void verify_fault(Check *c, const char *fmt, ...)
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

bool verify_exists(Check *c, Ex e)
{
    if (e < c->k->ex.n)
        return true;
    verify_fault(c, "an expression that does not exist");
    return false;
}

void verify_use(Check *c, Ex e)
{
    if (!e || !verify_exists(c, e) || kx(c->k, e)->kind == KX_CONST)
        return;
    if (!c->have[e])
        verify_fault(c, "an expression is used before it is computed");
    else if (c->acc[e].live && !c->acc[e].whole)
        verify_fault(c, "an accumulator is read before its loops are done");
    else if (c->acc[e].live && c->acc[e].lanes != LANES_NONE)
        verify_fault(c, "a sum is read before the lanes of its vectors are added up");
    else if (c->acc[e].live && !verify_has_all(&c->acc[e].share))
        verify_fault(c, "a thread reads its part of a sum before that is the total");
}

/* Has a device's text 64 bits for it? What is loaded always has, what is computed from rows where the kernel says so. */
static bool is_wide(const Kernel *k, IVar v)
{
    const IVarInfo *x = ix_info(k->ix, v);
    uint64_t rows = ix_bit(k->ix, k->row) | (k->part ? ix_bit(k->ix, k->part) : 0);
    bool derived = x->kind == IV_DIV || x->kind == IV_MOD;
    return v && (k->device.mapping.index == INDEX_WIDE || x->kind == IV_VALUE ||
                 (derived && ix_reads_value(k->ix, x->base)) ||
                 (k->device.mapping.index == INDEX_WIDE_ROWS && x->deps & rows));
}

/* Of threads: do indices of 32 bits hold whatever its terms add up to, from any of them on? */
void verify_index(Check *c, Ix ix)
{
    const Kernel *k = c->k;
    const IxForm *f = ix_form(k->ix, ix);
    const int64_t most = INT32_MAX;
    bool falls = false;
    int64_t sum = 0;
    if (!k->device.mapping.row_threads || k->device.mapping.index == INDEX_WIDE)
        return;
    for (uint32_t i = 0; i < f->n; i++)
        falls = falls || f->t[i].mult < 0;
    if (!falls && f->hi <= most)
        return;
    for (uint32_t i = 0; i < f->n; i++) {
        const IxTerm *t = &f->t[i];
        const IVarInfo *v = ix_info(k->ix, t->var);
        int64_t reach = t->var ? (v->hi > -v->lo ? v->hi : -v->lo) : 1, step = t->mult < 0 ? -t->mult : t->mult;
        if (!mul_i64(step, ix_dim_at(k->ix, t->coef), &step) || !mul_i64(step, is_wide(k, t->var) ? 1 : reach, &step) ||
            !add_i64(sum, step, &sum) || sum > most) {
            verify_fault(c, "an index of more than 32 bits");
            return;
        }
    }
}

void verify_use_ix(Check *c, Ix ix)
{
    if (ix >= c->k->ix->form.n) {
        verify_fault(c, "an index form that does not exist");
        return;
    }
    const IxForm *f = ix_form(c->k->ix, ix);
    for (uint32_t i = 0; i < f->n; i++) {
        IVar v = f->t[i].var;
        const IVarInfo *info = ix_info(c->k->ix, v);
        if (v && info->kind == IV_VALUE)
            verify_use(c, info->value);
        else if (v && !c->have_var[v])
            verify_fault(c, "an index variable is used outside its loop");
    }
    verify_index(c, ix);
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

uint64_t verify_nest_bits(const Check *c, const KNest *n)
{
    uint64_t m = 0;
    for (uint32_t i = 0; i < n->n; i++)
        m |= ix_bit(c->k->ix, n->var[i]);
    return m;
}

void verify_define(Check *c, Ex e)
{
    if (!verify_exists(c, e))
        return;
    const KEx *x = kx(c->k, e);
    for (int i = 0; i < 3 && x->kind != KX_REDUCE && !c->why; i++)
        c->varies[e] |= c->varies[x->in[i]];
    if (!c->why)
        c->varies[e] |= ix_varies(c, x->ix);
    if (c->have[e])
        verify_fault(c, "an expression is computed twice in one scope");
    c->have[e] = true;
    vec_push(c->arena, &c->open, (Open){OPEN_EX, e});
}

static void define_var(Check *c, IVar v)
{
    if (c->have_var[v])
        verify_fault(c, "an index variable is defined twice");
    c->have_var[v] = true;
    vec_push(c->arena, &c->open, (Open){OPEN_VAR, v});
}

/* ---- types ---- */

void verify_op(Check *c, const KEx *x)
{
    Op op = (Op)x->op;
    const OpInfo *info = op < OP_COUNT ? op_info(op) : NULL;
    if (!info || (!info->c_real && !info->c_integer)) {
        verify_fault(c, "an operator that is not elementwise");
        return;
    }
    for (int i = 0; i < 3; i++)
        if ((x->in[i] != 0) != (i < info->n_in)) {
            verify_fault(c, "%s has another number of inputs", info->name);
            return;
        }
    KType of = verify_type(c, x->in[op == OP_WHERE ? 1 : 0]), out = of;
    bool fits = (of == KT_REAL && info->c_real) || (of == KT_INT && info->c_integer);
    if (op == OP_WHERE)
        fits = fits && verify_type(c, x->in[0]) == KT_REAL && verify_type(c, x->in[2]) == of;
    else if (info->n_in == 2)
        fits = fits && verify_type(c, x->in[1]) == of;
    if (op == OP_TO_REAL || op == OP_TO_INT)
        out = op == OP_TO_REAL ? KT_REAL : KT_INT;
    if (op == OP_LT || op == OP_LE || op == OP_EQ)
        out = KT_REAL;
    if (!fits || x->type != out)
        verify_fault(c, "%s of the wrong types", info->name);
    if (op == OP_ROUND_TO && (!x->i || !half_info((Half)x->i)))
        verify_fault(c, "rounding to a type that does not exist");
}

static void want_type(Check *c, const KEx *x, KType want)
{
    if (x->type != want)
        verify_fault(c, "an expression of the wrong type");
}

static void want_bool(Check *c, Ex e)
{
    if (e && verify_type(c, e) != KT_BOOL)
        verify_fault(c, "a guard that is not a truth value");
}

bool verify_in_list(const IVar *v, size_t n, IVar want)
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
                verify_fault(c, "a load of what has been overwritten");
            return;
        }
    verify_fault(c, "a load of what another row or element stores");
}

void verify_row_known(Check *c, uint32_t buffer)
{
    if (c->k->device.mapping.row_threads && c->k->buffer.v[buffer].device.rows && !c->row_tiles)
        verify_fault(c, "a tile of several rows is touched before it is known which row this is");
}

bool verify_tile_ready(const Check *c, uint32_t buffer, bool but_additions)
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
        verify_fault(c, "a buffer that does not exist");
        return;
    }
    const KBuffer *b = &k->buffer.v[x->slot];
    want_type(c, x, b->dtype == DT_INT ? KT_INT : KT_REAL);
    want_bool(c, x->in[0]);
    if (!b->read)
        verify_fault(c, "a load from a buffer that is not said to be read");
    if (b->part >= 0)
        verify_fault(c, "a load from a partition's part");
    if (c->why)
        return;
    c->loaded[x->slot] = true;
    verify_row_known(c, x->slot);
    if (!kernel_in_bounds(k, x->ix, x->in[0], b->elements))
        verify_fault(c, "an index may leave its buffer of %lld elements", (long long)b->elements);
    if (b->tile && !verify_tile_ready(c, x->slot, false))
        verify_fault(c, "a tile is read before all of it is there");
    if (b->written && !b->tile)
        check_in_place(c, x->slot, x->ix);
}

/* A choice that is a load under the same guard, which leaves 0 where that does not hold. */
static bool is_loaded(const Kernel *k, const KEx *x)
{
    const KEx *load = kx(k, x->in[1]), *none = kx(k, x->in[2]);
    return x->i == 1 && load->kind == KX_LOAD && load->in[0] == x->in[0] && none->kind == KX_CONST && none->value == 0;
}

/* What an expression is made of, and of which type it must be; a reduction is not computed by one
 * statement. */
void verify_value(Check *c, const KEx *x)
{
    const Kernel *k = c->k;
    for (int i = 0; i < 3; i++)
        verify_use(c, x->in[i]);
    verify_use_ix(c, x->ix);
    if (c->why)
        return;
    switch ((KKind)x->kind) {
    case KX_SCALAR:
        want_type(c, x, KT_REAL);
        if (x->slot >= k->scalar.n)
            verify_fault(c, "a scalar that does not exist");
        break;
    case KX_INDEX: want_type(c, x, KT_INT); break;
    case KX_LOAD: check_load(c, x); break;
    case KX_OP: verify_op(c, x); break;
    case KX_INSIDE: want_type(c, x, KT_BOOL); break;
    case KX_AND:
        want_type(c, x, KT_BOOL);
        want_bool(c, x->in[0]);
        want_bool(c, x->in[1]);
        if (!x->in[0] || !x->in[1])
            verify_fault(c, "`and` of one guard");
        break;
    case KX_SELECT:
        want_bool(c, x->in[0]);
        if (!x->in[0] || !x->in[1] || !x->in[2] || verify_type(c, x->in[1]) != verify_type(c, x->in[2]) ||
            x->type != verify_type(c, x->in[1]))
            verify_fault(c, "a choice between two types");
        else if (x->i && !is_loaded(k, x))
            verify_fault(c, "a choice that is not what was loaded");
        break;
    case KX_RAND:
        want_type(c, x, KT_REAL);
        if (x->slot >= k->seed.n || (x->op != OP_RAND && x->op != OP_RANDN))
            verify_fault(c, "a random number of no stream");
        break;
    default: verify_fault(c, "an expression that one statement cannot compute"); break;
    }
}

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
    c->by.n--;
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
                verify_fault(c, "an accumulator to which nothing is added");
            else if (c->acc[o.number].lanes != LANES_NONE)
                verify_fault(c, "lanes of vectors whose sums are never added up");
            c->acc[o.number] = (Acc){0};
        }
    }
    if (c->open.n == 0) {
        verify_fault(c, "an `end` without its loop");
        return;
    }
    const int what = c->open.v[--c->open.n].what;
    if (what == OPEN_PIECES || what == OPEN_VECTORS) {
        *(what == OPEN_PIECES ? &c->pieces : &c->vectors) = NULL;
        return;
    }
    if (c->loop.n)
        end_loop(c);
    else if (c->in_rows)
        c->in_rows = false;
    else
        c->in_part = false;
}

bool verify_is_loop(const Check *c, IVar v) { return v < c->k->ix->var.n && ix_info(c->k->ix, v)->kind == IV_LOOP; }

static void check_loop(Check *c, const KStmt *s)
{
    if (!c->in_rows) {
        verify_fault(c, "a loop outside the rows");
    } else if (!verify_is_loop(c, s->var)) {
        verify_fault(c, "a loop over what is no loop variable");
    } else if (c->loop.n && c->simd.v[c->simd.n - 1]) {
        verify_fault(c, "a loop inside a loop of vectors");
    } else if (s->rest) {
        verify_fault(c, "the rest of no loop of vectors");
    } else if (s->acc + s->n_acc > c->k->acc.n) {
        verify_fault(c, "an accumulator that does not exist");
    }
    if (c->why)
        return;
    vec_push(c->arena, &c->loop, s->var);
    vec_push(c->arena, &c->simd, s->simd);
    vec_push(c->arena, &c->by, s);
    open_scope(c, s->var);
    c->simd_from = s->acc;
    c->simd_n = s->n_acc;
    for (uint32_t i = 0; i < s->n_acc; i++) {
        Ex e = c->k->acc.v[s->acc + i];
        if ((!s->simd && !c->k->device.mapping.row_threads) || !verify_exists(c, e) || !c->acc[e].live ||
            c->acc[e].whole)
            verify_fault(c, "a loop carries what is no accumulator around it");
    }
    verify_vector_loop(c, s);
}

static void check_rows(Check *c, const KStmt *s)
{
    bool part = s->kind == KS_PART;
    if (part ? c->in_part || c->had_rows || !c->k->part : c->had_rows || c->in_part != (c->k->part != 0)) {
        verify_fault(c, "the loops over partitions and rows are not once outside of all others");
        return;
    }
    c->in_part = c->in_part || part;
    c->in_rows = c->had_rows = !part;
    open_scope(c, part ? c->k->part : c->k->row);
}
bool verify_loops_are(const Check *c, size_t depth, const KNest *a, const KNest *b)
{
    if (depth > c->loop.n || c->loop.n - depth != a->n + (b ? b->n : 0))
        return false;
    for (size_t i = depth; i < c->loop.n; i++) {
        IVar v = c->loop.v[i];
        if (!verify_in_list(a->var, a->n, v) && !(b && verify_in_list(b->var, b->n, v)))
            return false;
    }
    return true;
}

/* ---- the whole ---- */

static void check_var(Check *c, IVar v)
{
    const IVarInfo *info = v < c->k->ix->var.n ? ix_info(c->k->ix, v) : NULL;
    if (!info || (info->kind != IV_DIV && info->kind != IV_MOD)) {
        verify_fault(c, "an index variable that is no quotient");
        return;
    }
    verify_use_ix(c, info->base);
    if (!c->why && ix_form(c->k->ix, info->base)->lo < 0)
        verify_fault(c, "a quotient of what may be negative");
    define_var(c, v);
}

static void check_stmt(Check *c, const KStmt *s)
{
    if (s->kind < KS_COUNT && kstmt_info[s->kind].device && !c->k->device.mapping.row_threads) {
        verify_fault(c, "a statement of threads where there is one");
        return;
    }
    switch (s->kind) {
    case KS_VAR: check_var(c, s->var); break;
    case KS_LET:
        if (!verify_exists(c, s->ex))
            break;
        if (verify_does(s, STEP_LOAD))
            verify_value(c, kx(c->k, s->ex));
        if (verify_does(s, STEP_VALUE))
            verify_define(c, s->ex);
        break;
    case KS_PART:
    case KS_ROWS: check_rows(c, s); break;
    case KS_PART_ROOM:
    case KS_PART_PLACE:
    case KS_PART_FILL:
    case KS_PART_STORE: verify_part(c, s); break;
    case KS_LOOP: check_loop(c, s); break;
    case KS_END: close_scope(c); break;
    case KS_ACC: verify_acc(c, s->ex); break;
    case KS_ACC_ADD: verify_acc_add(c, s->ex); break;
    case KS_VECTORS: verify_vectors(c, s); break;
    case KS_VECTOR_ACC:
    case KS_VECTOR_SUM: verify_lane_sums(c, s); break;
    case KS_ARRAY:
    case KS_ARRAY_FILL:
    case KS_ARRAY_PUT:
    case KS_ARRAY_ADD:
    case KS_ARRAY_GET: verify_arrays(c, s); break;
    case KS_BATCH_IN:
    case KS_BATCH_RUN:
    case KS_BATCH_OUT: verify_batch(c, s); break;
    case KS_STORE:
    case KS_SINK: verify_store(c, s); break;
    case KS_PRODUCT: verify_product(c, s->root); break;
    case KS_PIECES:
        vec_push(c->arena, &c->open, (Open){OPEN_PIECES, 0});
        c->pieces = s;
        break;
    case KS_BARRIER: break;
    case KS_PREFETCH:
    case KS_PREFETCH_ROW: verify_prefetch(c, s); break;
    case KS_ROW_TILES: verify_row_tiles(c); break;
    case KS_WARP:
    case KS_WARP_PUT:
    case KS_WARP_TAKE: verify_total(c, s); break;
    case KS_SUM_NEW:
    case KS_SUM_PUT: verify_row_sum(c, s); break;
    case KS_ARRAY_GIVE:
    case KS_ARRAY_TAKE: verify_array_sums(c, s); break;
    case KS_LANES:
    case KS_LANE_TAKE:
    case KS_LANE_STORE: verify_lanes(c, s); break;
    default: verify_fault(c, "a statement of no kind"); break;
    }
}

static void check_partitions(Check *c)
{
    const Kernel *k = c->k;
    int64_t rows = ix_dim_at(k->ix, k->rows);
    if (k->part && (k->chunk < 1 || k->partitions != (rows + k->chunk - 1) / k->chunk))
        verify_fault(c, "%lld partitions of %lld rows for %lld rows", (long long)k->partitions, (long long)k->chunk,
                     (long long)rows);
}

const char *kernel_check(const Kernel *k, size_t *at)
{
    enum { MULTIPROCESSOR_THREADS = 2048 };
    Arena *arena = k->arena;
    Check c = {.k = k, .arena = arena};
    c.have = NEW_ARRAY(arena, bool, k->ex.n);
    c.have_var = NEW_ARRAY(arena, bool, k->ix->var.n);
    c.varies = NEW_ARRAY(arena, uint64_t, k->ex.n);
    c.stored = NEW_ARRAY(arena, bool, k->root.n + 1);
    c.multiplied = NEW_ARRAY(arena, bool, k->product.n + 1);
    c.filling = NEW_ARRAY(arena, bool, k->buffer.n + 1);
    c.loaded = NEW_ARRAY(arena, bool, k->buffer.n + 1);
    c.sums = NEW_ARRAY(arena, uint8_t, k->buffer.n + 1);
    c.acc = NEW_ARRAY(arena, Acc, k->ex.n);
    c.array = NEW_ARRAY(arena, ArrayState, k->array.n + 1);
    c.sum = NEW_ARRAY(arena, Share, k->root.n + 1);
    c.summed = NEW_ARRAY(arena, bool, k->root.n + 1);
    c.slot = NEW_ARRAY(arena, SlotState, k->device.mapping.slots + 1);
    c.column = NEW_ARRAY(arena, bool, k->device.column.n + 1);
    *at = SIZE_MAX;
    check_partitions(&c);
    for (uint32_t b = 0; b < k->buffer.n; b++)
        verify_tile_place(&c, b);
    for (size_t i = 0; i < k->stmt.n && !c.why; i++) {
        if (k->stmt.v[i].rest && c.vectors) { /* which verify_vectors() has compared with its loop */
            i = kernel_loop_end(k, i);
            continue;
        }
        check_stmt(&c, &k->stmt.v[i]);
        verify_vector(&c, &k->stmt.v[i]);
        verify_width(&c, &k->stmt.v[i]);
        if (c.why)
            *at = i;
    }
    for (size_t i = 0; i < c.open.n; i++)
        if (c.open.v[i].what >= OPEN_SCOPE)
            verify_fault(&c, "a loop that does not end");
    if (!c.had_rows)
        verify_fault(&c, "no loop over rows");
    verify_whole(&c);
    verify_sums_whole(&c);
    if (k->device.grid.at_once * k->device.grid.threads > MULTIPROCESSOR_THREADS)
        verify_fault(&c, "more blocks at one time than a multiprocessor has");
    const char *why = c.why ? c.why : kernel_check_arguments(k);
    return why ? why : kernel_check_held(k, at);
}

_Noreturn void kernel_broken(const Kernel *k, size_t at, const char *why)
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
        kernel_broken(k, at, why);
}
