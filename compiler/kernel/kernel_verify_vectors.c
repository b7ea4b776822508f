/* kernel_verify_vectors.c - what must hold of loops that are printed as explicit vectors.
 *
 * In:  a statement of such a loop.     Out: Check.why, if it has no vector.
 * The one idea: a statement is done for all elements of a vector before the next one is, and
 * what it loads or stores are the elements behind the first. So every place moves by one
 * element a round, every value is real and is another in each round, and what rounds add up is
 * a sum.
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
    case KS_ARRAY_ADD:
    case KS_ARRAY_GET: check_array(c, s, loop->var); break;
    case KS_STORE:
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

/* What the kernel says of all its loops of vectors. */
void verify_vector_loop(Check *c, const KStmt *s)
{
    const Kernel *k = c->k;
    if (!s->vector)
        return;
    if (!s->simd)
        verify_fault(c, "a loop of vectors whose rounds are not any loop's of elements");
    else if (k->whole && ix_dim_at(k->ix, ix_info(k->ix, s->var)->extent) % VECTOR_LANES)
        verify_fault(c, "a rest of a vector in a kernel of whole ones");
    for (const KStmt *in = s + 1; k->lines && in->kind != KS_END; in++)
        if (in->kind == KS_STORE && !k->buffer.v[k->root.v[in->root].buffer].tile &&
            !on_lines(k, k->root.v[in->root].at, s->var))
            verify_fault(c, "a vector that is stored across lines in a kernel where none is");
}
