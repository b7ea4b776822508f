/* kernel_verify_sums.c - is each sum complete before it is read?
 *
 * In:  a statement of an accumulator, of a scratch array or of a batch, and what is known where it stands.
 * Out: the first fault: a sum over other loops than its own, an element that is read before it is there, a batch out of order.
 * The one idea: an accumulator is whole when the loops over its body have ended, an array when those over its elements have.
 */
#include "kernel_verify.h"

/* ---- sums ---- */

static bool is_reduce(Check *c, Ex e)
{
    if (!verify_exists(c, e))
        return false;
    const KEx *x = kx(c->k, e);
    bool ok = x->kind == KX_REDUCE && (x->op == OP_SUM || x->op == OP_AMAX) && x->over.n &&
              verify_exists(c, x->in[0]) && x->in[0] && x->type == verify_type(c, x->in[0]) && x->type != KT_BOOL;
    if (!ok)
        verify_fault(c, "a sum or maximum of nothing that could be one");
    return ok;
}

void verify_acc(Check *c, Ex e)
{
    if (!is_reduce(c, e))
        return;
    verify_define(c, e);
    c->acc[e] = (Acc){.live = true, .depth = c->loop.n};
    vec_push(c->arena, &c->live, e);
}

void verify_acc_add(Check *c, Ex e)
{
    if (!is_reduce(c, e))
        return;
    const KEx *x = kx(c->k, e);
    Acc *a = &c->acc[e];
    verify_use(c, x->in[0]);
    if (!c->have[e] || !a->live || a->whole || a->adds++)
        verify_fault(c, "an addition to what is no open accumulator");
    else if (!verify_loops_are(c, a->depth, &x->over, NULL))
        verify_fault(c, "a sum does not run over its own loops");
    verify_shared(c, &a->share, a->depth);
    c->varies[e] |= c->varies[x->in[0]] & ~verify_nest_bits(c, &x->over);
    if (c->vectors && a->lanes != LANES_NEW)
        verify_fault(c, "lanes of vectors that have no sum of their own");
    else if (c->vectors)
        a->lanes = LANES_ADDED;
    if (c->why)
        return;
    if (c->simd.v[c->simd.n - 1]) {
        bool carried = false;
        for (uint32_t i = 0; i < c->simd_n; i++)
            carried |= c->k->acc.v[c->simd_from + i] == e;
        if (!carried)
            verify_fault(c, "a loop of vectors does not carry its accumulator");
    }
}

/* Each lane of a loop of vectors has a sum, which begins before the loop and is added behind it. */
void verify_lane_sums(Check *c, const KStmt *s)
{
    if (!is_reduce(c, s->ex))
        return;
    Acc *a = &c->acc[s->ex];
    const bool begins = s->kind == KS_VECTOR_ACC;
    if (c->k->target->threads || !a->live || kx(c->k, s->ex)->op != OP_SUM || kx(c->k, s->ex)->type != KT_REAL)
        verify_fault(c, "lanes of vectors add to what is no accumulator of numbers");
    else if (a->lanes != (begins ? LANES_NONE : LANES_ADDED) || (begins && a->whole))
        verify_fault(c, "lanes of vectors whose sums do not begin once, or to which nothing is added");
    a->lanes = begins ? LANES_NEW : LANES_NONE;
}

/* ---- arrays ---- */

static ArrayState *array_of(Check *c, const KStmt *s)
{
    bool there = s->array >= 0 && (size_t)s->array < c->k->array.n;
    if (!there || (s->kind != KS_ARRAY && !c->array[s->array].declared)) {
        verify_fault(c, "a scratch array that does not exist");
        return NULL;
    }
    return &c->array[s->array];
}

static void array_index(Check *c, const KArray *a)
{
    for (uint32_t i = 0; i < a->nest.n; i++)
        if (!c->have_var[a->nest.var[i]])
            verify_fault(c, "a scratch array is used outside the loops over it");
}

static void check_array(Check *c, const KStmt *s, ArrayState *state)
{
    const KArray *a = &c->k->array.v[s->array];
    int64_t n = 1;
    if (state->declared || c->in_part || c->in_rows)
        verify_fault(c, "a scratch array is not declared once, before the rows");
    state->declared = true;
    for (uint32_t i = 0; i < a->nest.n; i++) {
        if (!verify_is_loop(c, a->nest.var[i]))
            verify_fault(c, "a scratch array over what is no loop");
        else if (!mul_i64(n, ix_info(c->k->ix, a->nest.var[i])->hi + 1, &n))
            n = -1;
    }
    if (a->nest.n == 0 || n != a->elements)
        verify_fault(c, "a scratch array of another size than its loops");
}

static void array_type(Check *c, const KStmt *s)
{
    KType want = c->k->array.v[s->array].dtype == DT_INT ? KT_INT : KT_REAL;
    if (verify_exists(c, s->ex) && verify_type(c, s->ex) != want)
        verify_fault(c, "a scratch array of another type than what it holds");
}

/* Is the element there that the open loops name? Either all are, or the loops that are still open are the array's own. */
static bool is_there(const Check *c, const KArray *a, const ArrayState *state)
{
    bool there = state->writes > 0;
    for (size_t i = state->depth; i < state->open && !state->whole; i++)
        there = there && verify_in_list(a->nest.var, a->nest.n, c->loop.v[i]);
    return state->whole || there;
}

static void array_get(Check *c, const KStmt *s, ArrayState *state)
{
    if (verify_does(s, STEP_LOAD) && !verify_has_all(&state->share))
        verify_fault(c, "a thread reads its part of the sums of an array before these are the totals");
    if (verify_does(s, STEP_LOAD)) {
        array_index(c, &c->k->array.v[s->array]);
        if (state->holds != s->ex || !is_there(c, &c->k->array.v[s->array], state))
            verify_fault(c, "a scratch array is read before it holds this");
    }
    if (!verify_does(s, STEP_VALUE))
        return;
    verify_define(c, s->ex);
    if (!c->why)
        c->varies[s->ex] = verify_nest_bits(c, &c->k->array.v[s->array].nest);
}

static void array_put(Check *c, const KStmt *s, ArrayState *state)
{
    const KArray *a = &c->k->array.v[s->array];
    array_index(c, a);
    if (verify_does(s, STEP_VALUE))
        verify_use(c, s->ex);
    if (!verify_does(s, STEP_STORE))
        return;
    if (state->holds && state->holds != s->ex)
        verify_fault(c, "a scratch array holds two things");
    if (c->why)
        return;
    if (c->varies[s->ex] & ~verify_nest_bits(c, &a->nest))
        verify_fault(c, "an element of a scratch array holds what other loops change");
    state->holds = s->ex;
    state->whole = false;
    state->depth = 0;
    state->writes++;
    state->open = c->loop.n;
    while (state->depth < c->loop.n && !verify_in_list(a->nest.var, a->nest.n, c->loop.v[state->depth]))
        state->depth++;
}

static void array_add(Check *c, const KStmt *s, ArrayState *state)
{
    const KArray *a = &c->k->array.v[s->array];
    if (!is_reduce(c, s->ex))
        return;
    array_index(c, a);
    if (a->sums)
        verify_shared(c, &state->share, state->depth);
    if (verify_does(s, STEP_VALUE))
        verify_use(c, kx(c->k, s->ex)->in[0]);
    if (verify_does(s, STEP_STORE))
        state->open = c->loop.n;
    if (state->holds != s->ex || state->whole || (verify_does(s, STEP_STORE) && state->writes++))
        verify_fault(c, "an addition to a scratch array that was not set to begin with");
    else if (!verify_loops_are(c, state->depth, &a->nest, &kx(c->k, s->ex)->over))
        verify_fault(c, "a sum does not run over its own loops");
    else if (c->simd.v[c->simd.n - 1] && !verify_in_list(a->nest.var, a->nest.n, c->loop.v[c->loop.n - 1]))
        verify_fault(c, "a loop of vectors adds to one element");
}

void verify_arrays(Check *c, const KStmt *s)
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

enum { BATCHES_MOST = 1 << 16 };

static void batch_in(Check *c, const KStmt *s)
{
    const KEx *x = kx(c->k, s->ex);
    bool fits = x->kind == KX_OP && x->op < OP_COUNT && x->type == KT_REAL &&
                op_info((Op)x->op)->class == CLASS_UNARY && op_info((Op)x->op)->c_real && x->op != OP_ROUND_TO;
    verify_value(c, x);
    if (c->why)
        return;
    if (!fits) {
        verify_fault(c, "a batch of what is no function of one number");
        return;
    }
    if (s->array < 0 || s->array >= BATCHES_MOST || s->n_acc == 0) {
        verify_fault(c, "a batch that does not exist");
        return;
    }
    while (c->batch.n <= (size_t)s->array)
        vec_push(c->arena, &c->batch, (BatchState){0});
    BatchState *b = &c->batch.v[s->array];
    if (!b->n)
        *b = (BatchState){.n = s->n_acc, .op = (Op)x->op};
    if (s->at != b->in++ || s->at >= b->n || s->n_acc != b->n || b->op != (Op)x->op || b->ran)
        verify_fault(c, "a batch is not given its elements in order");
}

void verify_batch(Check *c, const KStmt *s)
{
    if (!verify_exists(c, s->ex))
        return;
    if (c->loop.n || !c->in_rows) {
        verify_fault(c, "a batch that is not the row's");
        return;
    }
    if (s->kind == KS_BATCH_IN) {
        batch_in(c, s);
        return;
    }
    BatchState *b = s->array >= 0 && (size_t)s->array < c->batch.n ? &c->batch.v[s->array] : NULL;
    const KEx *x = kx(c->k, s->ex);
    if (!b || x->kind != KX_OP || (Op)x->op != b->op || b->in != b->n) {
        verify_fault(c, "a batch that has not all its elements");
    } else if (s->kind == KS_BATCH_RUN) {
        if (b->ran || s->n_acc != b->n)
            verify_fault(c, "a batch is run twice");
        b->ran = true;
    } else {
        if (!b->ran || s->at >= b->n)
            verify_fault(c, "a batch is read before it has run");
        verify_define(c, s->ex);
    }
}
