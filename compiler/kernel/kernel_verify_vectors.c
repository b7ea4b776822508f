/* kernel_verify_vectors.c - what must hold of loops that are printed as explicit vectors.
 *
 * In:  a statement of such a loop.     Out: Check.why, if it has no vector.
 * The one idea: a statement is done for all elements of a vector before the next one is, and
 * what it loads or stores are the elements behind the first. So every place moves by one
 * element a round, every value is real and is another in each round, and what rounds add up is
 * a sum. A thread of a device that takes several elements of a loop at one time does so at places that are multiples of as many.
 */
#include "kernel_verify.h"

static bool moves_by_one(const Kernel *k, Ix at, IVar v)
{
    const IxForm *f = ix_form(k->ix, at);
    int64_t step = 0;
    for (uint32_t i = 0; i < f->n; i++)
        if (f->t[i].var == v)
            step += f->t[i].mult * ix_dim_at(k->ix, f->t[i].coef);
        else if (ix_info(k->ix, f->t[i].var)->deps & ix_bit(k->ix, v))
            return false;
    return step == 1;
}

static bool is_real(const Check *c, Ex e) { return !e || verify_type(c, e) == KT_REAL; }

static bool changes(const Check *c, Ex e, IVar v)
{
    return kx(c->k, e)->kind != KX_CONST && c->varies[e] & ix_bit(c->k->ix, v);
}

static void check_value(Check *c, Ex e, IVar v)
{
    const KEx *x = kx(c->k, e);
    if (x->type != KT_REAL || !changes(c, e, v)) {
        verify_fault(c, "a vector of what is not real, or the same in all rounds");
    } else if (x->kind == KX_LOAD) {
        if (x->in[0] || c->k->buffer.v[x->slot].half || !moves_by_one(c->k, x->ix, v))
            verify_fault(c, "a load that is no vector");
    } else if (x->kind != KX_OP || !op_info((Op)x->op)->c_vector ||
               (x->op == OP_ROUND_TO && !half_info((Half)x->i)->c_vector) || !is_real(c, x->in[0]) ||
               !is_real(c, x->in[1]) || !is_real(c, x->in[2])) {
        verify_fault(c, "an operation that has no vector");
    }
}

static void check_place(Check *c, const KStmt *s, IVar v)
{
    const KRoot *r = &c->k->root.v[s->root];
    const KBuffer *b = &c->k->buffer.v[r->buffer];
    if (b->dtype != DT_REAL || !moves_by_one(c->k, r->at, v) || !is_real(c, r->value) ||
        (s->kind == KS_SINK && r->op != OP_SUM))
        verify_fault(c, "a store that is no vector");
}

static bool lies_along(const Kernel *k, const KArray *a, IVar v)
{
    int64_t behind = 1; /* elements of the loops within */
    for (uint32_t i = a->nest.n; i-- > 0; behind *= ix_dim_at(k->ix, ix_info(k->ix, a->nest.var[i])->extent))
        if (a->nest.var[i] == v)
            return behind == 1;
    return false;
}

static void check_array(Check *c, const KStmt *s, IVar v)
{
    const KArray *a = &c->k->array.v[s->array];
    if (a->dtype != DT_REAL || !lies_along(c->k, a, v) || (s->kind == KS_ARRAY_ADD && kx(c->k, s->ex)->op != OP_SUM))
        verify_fault(c, "elements of an array that are no vector");
}

/* What a statement stores or adds is one value for all elements of the loop over v, and it says so; or it is another one for each. */
static void check_stored(Check *c, const KStmt *s, Ex value, IVar v)
{
    if (s->across != (kx(c->k, value)->deps & ix_bit(c->k->ix, v) ? ACROSS_NONE : ACROSS_VALUE))
        verify_fault(c, "one value for several elements, or several for one");
}

/* After the statement itself was found sound. */
void verify_vector(Check *c, const KStmt *s)
{
    const KStmt *loop = c->by.n ? c->by.v[c->by.n - 1] : NULL;
    const KEx *x = kx(c->k, s->ex);
    if (c->why || !loop || !loop->vector || loop == s)
        return;
    switch (s->kind) {
    case KS_LET: check_value(c, s->ex, loop->var); break;
    case KS_ACC_ADD:
        if (x->op != OP_SUM || x->type != KT_REAL || !changes(c, x->in[0], loop->var))
            verify_fault(c, "a sum that is none of vectors");
        break;
    case KS_ARRAY_PUT:
        check_array(c, s, loop->var);
        check_stored(c, s, s->ex, loop->var);
        break;
    case KS_ARRAY_ADD:
    case KS_ARRAY_GET: check_array(c, s, loop->var); break;
    case KS_STORE: check_stored(c, s, c->k->root.v[s->root].value, loop->var); /* fall through */
    case KS_SINK: check_place(c, s, loop->var); break;
    case KS_PREFETCH: break;
    default: verify_fault(c, "a statement that has no vector"); break;
    }
}

/* Do vectors that begin at multiples of their length begin at such a place? */
static bool on_lines(const Kernel *k, Ix at, IVar v)
{
    const IxForm *f = ix_form(k->ix, at);
    for (uint32_t i = 0; i < f->n; i++)
        if (f->t[i].var != v && f->t[i].mult * ix_dim_at(k->ix, f->t[i].coef) % VECTOR_LANES)
            return false;
    return true;
}

/* The statement behind a loop that has no loop in it; NULL: there is none. */
static const KStmt *behind(const Kernel *k, const KStmt *loop)
{
    const KStmt *end = k->stmt.v + k->stmt.n;
    while (loop < end && loop->kind != KS_END)
        loop++;
    return loop + 1 < end ? loop + 1 : NULL;
}

/* Are these the statements of the loop of vectors once more, but for its prefetches? */
static bool is_rest(const Kernel *k, const KStmt *vectors, const KStmt *rest)
{
    const KStmt *end = k->stmt.v + k->stmt.n, *a = vectors + 1, *b = rest + 1;
    bool same = rest->kind == KS_LOOP && rest->rest && rest->var == vectors->var && !rest->simd;
    for (; same && b < end; a++, b++) {
        while (a->kind == KS_PREFETCH)
            a++;
        same = a->kind == b->kind && a->ex == b->ex && a->root == b->root && a->array == b->array && a->var == b->var;
        if (a->kind == KS_END)
            return same;
    }
    return false;
}

/* A loop of whole vectors, and, where they leave something, another one of the same statements, which begins where that one ended. */
void verify_vectors(Check *c, const KStmt *s)
{
    const Kernel *k = c->k;
    const KStmt *loop = s + 1, *rest = loop < k->stmt.v + k->stmt.n ? behind(k, loop) : NULL;
    if (k->target->threads || !c->in_rows || c->vectors || !rest || loop->kind != KS_LOOP || !loop->vector ||
        loop->var != s->var)
        verify_fault(c, "vectors without a loop of them");
    else if (!k->whole && !(is_rest(k, loop, rest) && (rest = behind(k, rest))))
        verify_fault(c, "a loop of vectors that leaves other statements than its own");
    else if (rest->kind != KS_END)
        verify_fault(c, "vectors that are more than a loop and its rest");
    c->vectors = s;
    vec_push(c->arena, &c->open, (Open){OPEN_VECTORS, 0});
}

/* What the kernel says of all its loops of vectors. */
void verify_vector_loop(Check *c, const KStmt *s)
{
    const Kernel *k = c->k;
    if (!s->vector)
        return;
    if (k->numbered && !c->vectors)
        verify_fault(c, "a loop of vectors to which nothing gives what they leave");
    else if (!s->simd)
        verify_fault(c, "a loop of vectors whose rounds are not any loop's of elements");
    else if (k->whole && ix_dim_at(k->ix, ix_info(k->ix, s->var)->extent) % VECTOR_LANES)
        verify_fault(c, "a rest of a vector in a kernel of whole ones");
    for (const KStmt *in = s + 1; k->lines && in->kind != KS_END; in++)
        if (in->kind == KS_STORE && !k->buffer.v[k->root.v[in->root].buffer].tile &&
            !on_lines(k, k->root.v[in->root].at, s->var))
            verify_fault(c, "a vector that is stored across lines in a kernel where none is");
}

/* ---- several elements of a thread ---- */

/* Is each step of a place but that of v a multiple? */
static bool begins_at(const Kernel *k, Ix at, IVar v, int64_t multiple)
{
    const IxForm *f = ix_form(k->ix, at);
    for (uint32_t i = 0; i < f->n; i++)
        if (f->t[i].var != v && f->t[i].mult * ix_dim_at(k->ix, f->t[i].coef) % multiple)
            return false;
    return true;
}

/* Float32 numbers of a tile lie together in fours. */
static bool is_wide_place(const Kernel *k, uint32_t buffer, Ix at, IVar v, int64_t width)
{
    const KBuffer *b = &k->buffer.v[buffer];
    return b->dtype == DT_REAL && moves_by_one(k, at, v) && begins_at(k, at, v, width) &&
           (b->part < 0 || b->elements % width == 0) && !(b->tile && !b->half && width > 4);
}

/* The places of the elements, or whether one of them is at a place that is the same for all. */
static bool is_of_places(const Check *c, const KEx *x, IVar v)
{
    const KEx *in[2] = {kx(c->k, x->in[0]), kx(c->k, x->in[1])};
    const uint64_t bit = ix_bit(c->k->ix, v);
    if (x->kind == KX_INDEX)
        return moves_by_one(c->k, x->ix, v);
    return x->kind == KX_OP && x->op == OP_EQ && in[0]->type == KT_INT && in[1]->type == KT_INT &&
           !(in[0]->deps & in[1]->deps & bit);
}

static void check_wide_value(Check *c, const KEx *x, IVar v, int64_t width)
{
    const Kernel *k = c->k;
    const uint64_t bit = ix_bit(k->ix, v);
    const bool guarded = x->kind == KX_LOAD || x->kind == KX_SELECT;
    if (is_of_places(c, x, v))
        return;
    if (x->type != KT_REAL || !(guarded || x->kind == KX_OP) || (guarded && kx(k, x->in[0])->deps & bit))
        verify_fault(c, "a value that is none of several elements");
    else if (x->kind == KX_LOAD && !is_wide_place(k, x->slot, x->ix, v, width))
        verify_fault(c, "a load of several elements that begins at no multiple of them");
    for (int i = guarded ? 1 : 0; i < 3 && x->kind != KX_LOAD; i++)
        if (!is_real(c, x->in[i]))
            verify_fault(c, "a value that is none of several elements");
}

static void check_wide_array(Check *c, const KStmt *s, IVar v, int64_t width)
{
    const KArray *a = &c->k->array.v[s->array];
    if (s->kind == KS_ARRAY_ADD ? a->sums : !(kx(c->k, s->ex)->deps & ix_bit(c->k->ix, v)))
        return;
    if (a->dtype != DT_REAL || !lies_along(c->k, a, v) || (s->kind == KS_ARRAY_ADD && kx(c->k, s->ex)->op != OP_SUM) ||
        (a->nest.n > 1 && ix_dim_at(c->k->ix, ix_info(c->k->ix, v)->extent) % width))
        verify_fault(c, "several elements of an array that do not lie next to each other");
}

/* The innermost open loop of which a thread takes several elements at one time; or NULL. */
static const KStmt *wide_loop(const Check *c)
{
    for (size_t i = c->by.n; i-- > 0;)
        if (c->by.v[i]->width > 1)
            return c->by.v[i];
    return NULL;
}

/* Is a value another one for each element? Of an accumulator that is known before anything is added to it. */
static bool is_of_each(const Check *c, Ex e, IVar v) { return kx(c->k, e)->deps & ix_bit(c->k->ix, v); }

/* A sum of several elements, and a place among places. */
static KAcross wanted_across(const Check *c, const KStmt *s, IVar v)
{
    const KEx *x = kx(c->k, s->ex);
    if (s->kind == KS_ACC_ADD)
        return is_of_each(c, s->ex, v) ? ACROSS_NONE : ACROSS_SUM;
    if (s->kind == KS_LET && x->kind == KX_OP && verify_type(c, x->in[0]) == KT_INT)
        return is_of_each(c, x->in[0], v) ? ACROSS_FIRST : ACROSS_SECOND;
    return ACROSS_NONE;
}

/* Does a statement say for how many elements it stands? loop: the loop of which a thread takes several, or NULL. */
static void check_elements(Check *c, const KStmt *s, const KStmt *loop)
{
    const KEx *x = kx(c->k, s->ex);
    loop = c->k->device.mapping.vectors ? loop : NULL; /* nobody has said it yet */
    const bool store = s->kind == KS_STORE || s->kind == KS_SINK, held = s->step && s->piece;
    bool many = loop && (held || store || s->kind == KS_ARRAY_ADD);
    if (loop && (s->kind == KS_LET || s->kind == KS_ACC || s->kind == KS_ARRAY_GET || s->kind == KS_ARRAY_PUT))
        many = many || is_of_each(c, s->ex, loop->var);
    if (loop && s->kind == KS_ACC_ADD)
        many = is_of_each(c, x->in[0], loop->var);
    if (s->width != (!many ? 0 : c->pieces ? c->pieces->piece : loop->width))
        verify_fault(c, "a statement of more or fewer elements than there are");
    else if (many && verify_does(s, STEP_VALUE) && (store || s->kind == KS_ARRAY_PUT || s->kind == KS_ARRAY_ADD))
        check_stored(c, s, store ? c->k->root.v[s->root].value : s->kind == KS_ARRAY_PUT ? s->ex : x->in[0], loop->var);
    else if (s->across != (many ? wanted_across(c, s, loop->var) : ACROSS_NONE))
        verify_fault(c, "several elements that are one value, or one that is several");
}

/* After the statement itself was found sound. */
void verify_width(Check *c, const KStmt *s)
{
    const KStmt *loop = c->k->device.mapping.row_threads && !c->why ? wide_loop(c) : NULL;
    const KRoot *r = s->kind == KS_STORE || s->kind == KS_SINK ? &c->k->root.v[s->root] : NULL;
    if (!c->why && c->k->device.mapping.row_threads && !kernel_opens(s))
        check_elements(c, s, loop);
    if (!loop)
        return;
    const IVar v = loop->var;
    if (loop == s && ix_dim_at(c->k->ix, ix_info(c->k->ix, v)->extent) % s->width)
        verify_fault(c, "a loop with a rest of what a thread takes at one time");
    else if (s->kind == KS_LET && kx(c->k, s->ex)->deps & ix_bit(c->k->ix, v))
        check_wide_value(c, kx(c->k, s->ex), v, loop->width);
    else if (s->kind == KS_ARRAY_PUT || s->kind == KS_ARRAY_ADD || s->kind == KS_ARRAY_GET)
        check_wide_array(c, s, v, loop->width);
    else if (r && (!is_wide_place(c->k, r->buffer, r->at, v, loop->width) || !is_real(c, r->value) ||
                   (s->kind == KS_SINK && r->op != OP_SUM)))
        verify_fault(c, "a store of several elements that begins at no multiple of them");
    else if (s->kind == KS_VAR)
        verify_fault(c, "a quotient among several elements");
}
