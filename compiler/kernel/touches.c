/* touches.c - what statements of a kernel read and write, and where it lies.
 *
 * In:  a scheduled kernel.     Out: for a statement the values, variables, arrays, batches and buffers that it touches; for a
 *      loop what its rounds leave to each other; forms of the places of arrays, columns and products; the call that is printed of a
 *      product, whose order sizes.c numbers and the printer spells (KProductCall).
 * The one idea: order, barriers, who may do a round alone and how long a value lives are questions about the same dependences,
 * so all of them ask here. Only proofs (kernel_verify.c, gpu/kernel_races.c) look for themselves.
 */
#include "touches.h"

typedef struct Toucher {
    const Kernel *k;
    KTouches *out;
} Toucher;

static void touch(const Toucher *t, KThing thing, uint32_t number, int how, uint64_t deps)
{
    vec_push(t->k->arena, t->out,
             (KTouch){.thing = (uint8_t)thing, .how = (uint8_t)how, .number = number, .deps = deps});
}

static void touch_value(const Toucher *t, Ex e, int how)
{
    if (e)
        touch(t, OF_VALUE, e, how, 0);
}

/* A place is made of values that tensors hold, and of quotients and remainders, which are statements of their own. */
static void read_place(const Toucher *t, Ix ix)
{
    const IxForm *f = ix_form(t->k->ix, ix);
    for (uint32_t i = 0; i < f->n; i++) {
        const IVarInfo *v = ix_info(t->k->ix, f->t[i].var);
        if (v->kind == IV_VALUE)
            touch_value(t, v->value, READS);
        if (v->kind == IV_DIV || v->kind == IV_MOD) {
            touch(t, OF_VAR, f->t[i].var, READS, 0);
            read_place(t, v->base);
        }
    }
}

static void touch_buffer(const Toucher *t, uint32_t buffer, Ix at, int how)
{
    touch(t, OF_BUFFER, buffer, how, ix_form(t->k->ix, at)->deps);
}

/* What e is computed from. */
static void read_inputs(const Toucher *t, Ex e)
{
    const KEx *x = kx(t->k, e);
    for (int i = 0; i < 3; i++)
        touch_value(t, x->in[i], READS);
    read_place(t, x->ix);
    if (x->kind == KX_LOAD)
        touch_buffer(t, x->slot, x->ix, READS);
}

static void touch_array(const Toucher *t, int array, int how)
{
    const KNest *nest = &t->k->array.v[array].nest;
    uint64_t deps = 0;
    for (uint32_t i = 0; i < nest->n; i++)
        deps |= ix_bit(t->k->ix, nest->var[i]);
    touch(t, OF_ARRAY, (uint32_t)array, how, deps);
}

static void touch_root(const Toucher *t, const KRoot *r, int how)
{
    read_place(t, r->at);
    touch_buffer(t, r->buffer, r->at, how);
}

static void touch_product(const Toucher *t, const KProduct *p)
{
    touch_buffer(t, p->a, p->a_at, READS);
    touch_buffer(t, p->b, p->b_at, READS);
    touch_buffer(t, p->c, p->c_at, p->add ? READS | WRITES : WRITES);
    if (p->also) {
        const KProduct *also = &t->k->product.v[p->also - 1];
        touch_buffer(t, also->a, also->a_at, READS);
        touch_buffer(t, also->b, also->b_at, READS);
    }
    if (p->beside)
        touch_product(t, &t->k->product.v[p->beside - 1]);
}

/* What lanes compute an element of, or store; which element one step gives to all is an element of a column. */
static void touch_column(const Toucher *t, const KStmt *s, int how)
{
    const Kernel *k = t->k;
    const KColumn *c = &k->device.column.v[s->column - 1];
    for (int i = 0; i < 3; i++)
        if (c->in[i])
            touch(t, OF_COLUMN, c->in[i], READS, 0);
    for (uint32_t j = 0; j < c->n; j++) {
        const KEx *x = kx(k, c->ex[j]);
        for (int i = 0; i < 3 && !c->root; i++)
            touch_value(t, c->in[i] ? 0 : x->in[i], READS);
        if (c->root)
            touch_root(t, &k->root.v[c->root[j]], k->root.v[c->root[j]].kind == KR_STORE ? WRITES : how);
        else if (x->kind == KX_LOAD)
            read_place(t, x->ix), touch_buffer(t, x->slot, x->ix, READS);
    }
    if (!c->root)
        touch(t, OF_COLUMN, s->column, how, 0);
}

/* What the field of this letter names, but for ex and what it is made of. */
static void touch_field(const Toucher *t, const KStmt *s, char field, int how)
{
    switch (field) {
    case 'v':
        touch(t, OF_VAR, (uint32_t)s->var, how, 0);
        read_place(t, ix_info(t->k->ix, s->var)->base);
        break;
    case 't': touch_array(t, s->array, how); break;
    case 'q': touch(t, OF_BATCH, (uint32_t)s->array, how, 0); break;
    case 'r': touch_root(t, &t->k->root.v[s->root], how); break;
    case 'f': read_place(t, t->k->prefetch.v[s->root].at); break;
    case 'u': touch(t, OF_BUFFER, s->root, how, 0); break;
    case 'l': touch_column(t, s, how); break;
    case 'e': touch(t, OF_COLUMN, s->column, how, 0); break;
    case 'p': touch_product(t, &t->k->product.v[s->root]); break;
    default: break;
    }
}

/* What is held is written where it is loaded, or put together, and read from then on. */
static void touch_held(const Toucher *t, const KStmt *s, bool load)
{
    int how = s->step & (STEP_NEW | STEP_LOAD) ? WRITES : s->step == STEP_VALUE && !load ? READS | WRITES : READS;
    touch(t, OF_HELD, s->held, how, 0);
}

/* What is touched by one step, or by all of them: a load takes its inputs where it loads, all else where it has its value. */
void kernel_touches(const Kernel *k, const KStmt *s, KTouches *out)
{
    const Toucher t = {k, out};
    const KStmtInfo *info = &kstmt_info[s->kind];
    const int step = s->step ? s->step : STEP_LOAD | STEP_VALUE | STEP_STORE;
    const bool load = info->ex == WRITES;
    const int element = info->element & ((step & STEP_LOAD ? READS : 0) | (step & STEP_STORE ? WRITES : 0));
    if (info->inputs && step & (load ? STEP_LOAD : STEP_VALUE))
        read_inputs(&t, s->ex);
    if (info->ex & READS && step & STEP_VALUE)
        touch_value(&t, s->ex, info->ex);
    if ((s->kind == KS_STORE || s->kind == KS_SINK) && step & STEP_VALUE)
        touch_value(&t, k->root.v[s->root].value, READS);
    for (const char *p = info->text; (element || s->kind == KS_PREFETCH) && *p; p++)
        if (*p == '%')
            touch_field(&t, s, p[1], element);
    if (load && step & STEP_VALUE)
        touch_value(&t, s->ex, WRITES);
    for (uint32_t j = 0; s->totals && j < kernel_totals(k, s)->n; j++)
        touch_value(&t, kernel_totals(k, s)->of[j].ex, info->ex);
    if (s->totals && s->column)
        touch(&t, OF_COLUMN, s->column, WRITES, 0);
    if (s->step)
        touch_held(&t, s, load);
}

static bool declares(const Kernel *k, size_t from, size_t to, Ex sum)
{
    for (size_t i = from; i < to; i++)
        if (k->stmt.v[i].kind == KS_ACC && k->stmt.v[i].ex == sum)
            return true;
    return false;
}

unsigned kernel_carried(const Kernel *k, size_t loop)
{
    ArenaMark mark = arena_mark(k->arena);
    uint64_t round = ix_bit(k->ix, k->stmt.v[loop].var);
    KTouches all = {0};
    unsigned carried = 0;
    for (size_t i = loop + 1, end = kernel_loop_end(k, loop); i < end; i++) {
        const KStmt *s = &k->stmt.v[i];
        size_t n = all.n;
        kernel_touches(k, s, &all);
        for (; n < all.n; n++) {
            const KTouch *t = &all.v[n];
            bool element = t->thing == OF_ARRAY || t->thing == OF_BUFFER;
            if (s->kind == KS_PRODUCT || t->thing == OF_BATCH)
                carried |= CARRIES_OTHER;
            else if (element && t->how & WRITES && !(t->deps & round))
                carried |= s->kind == KS_ARRAY_PUT ? CARRIES_SAME : CARRIES_ELEMENT;
            else if (s->kind == KS_ACC_ADD && t->thing == OF_VALUE && t->how & WRITES &&
                     !declares(k, loop + 1, i, s->ex))
                carried |= CARRIES_SUM;
        }
    }
    arena_reset(k->arena, mark);
    return carried;
}

/* ---- where it lies ---- */

Ix kernel_array_at(const Kernel *k, int array)
{
    const KNest *nest = &k->array.v[array].nest;
    Ix at = 0;
    for (uint32_t i = 0; i < nest->n; i++)
        at = ix_add(k->ix, ix_scale(k->ix, at, ix_info(k->ix, nest->var[i])->extent), ix_var(k->ix, nest->var[i]));
    return at;
}

IVar kernel_swizzled(const Kernel *k, const KStmt *s, Ix *row)
{
    const bool array = kernel_of_array(s);
    const KRoot *r = s->kind == KS_SINK ? &k->root.v[s->root] : NULL;
    const IVar along = array ? k->array.v[s->array].swizzled : r ? k->buffer.v[r->buffer].device.swizzled : 0;
    if (along)
        *row = ix_add(k->ix, array ? kernel_array_at(k, s->array) : r->at, ix_times(k->ix, ix_var(k->ix, along), -1));
    return along;
}

Ix kernel_column_place(const Kernel *k, const KColumn *c)
{
    const Ix first = c->root ? k->root.v[c->root[0]].at : kx(k, c->ex[0])->ix;
    return ix_add(k->ix, first, ix_const(k->ix, -c->place.base));
}

/* ---- products ---- */

bool product_steps(const Kernel *k, const KProduct *p, ProductSteps *s)
{
    return ix_slope(k->ix, p->a_at, p->m, &s->am) && ix_slope(k->ix, p->a_at, p->k, &s->ak) &&
           ix_slope(k->ix, p->b_at, p->k, &s->bk) && ix_slope(k->ix, p->b_at, p->n, &s->bn) &&
           ix_slope(k->ix, p->c_at, p->m, &s->cm) && ix_slope(k->ix, p->c_at, p->n, &s->cn);
}

Ix kernel_product_place(const Kernel *k, const KProduct *x, Ix ix, IVar v)
{
    const IxForm *f = ix_form(k->ix, ix);
    IxTerm t[TERMS_MAX];
    uint32_t n = 0;
    for (uint32_t i = 0; i < f->n; i++) {
        IVar of = f->t[i].var;
        if (v ? of == v : of != x->m && of != x->n && of != x->k) {
            t[n] = f->t[i];
            t[n++].var = v ? 0 : of;
        }
    }
    return ix_of_terms(k->ix, t, n); /* the table only grows */
}

/* ---- the call ---- */

static void add_size(const Kernel *k, KProductCall *c, IVar loop)
{
    c->size[c->n_size++] = ix_info(k->ix, loop)->extent;
}

/* An operand, with its steps along two loops, one or none. */
static void add_operand(const Kernel *k, KProductCall *c, const KProduct *x, uint32_t buffer, Ix at, IVar u, IVar v)
{
    KOperand *o = &c->operand[c->n_operand++];
    *o = (KOperand){.buffer = buffer, .of = x, .first = kernel_product_place(k, x, at, 0)};
    o->rows = x->rows && !k->buffer.v[buffer].device.rows && buffer != x->c;
    if (o->rows)
        o->row = kernel_product_place(k, x, at, x->k);
    if (u)
        o->step[o->n_step++] = kernel_product_place(k, x, at, u);
    if (v)
        o->step[o->n_step++] = kernel_product_place(k, x, at, v);
}

static void call_of_vectors(const Kernel *k, const KProduct *x, KProductCall *c)
{
    const bool rows = x->way.by_rows;
    const IVar m = rows ? x->m : x->n, n = rows ? x->n : x->m;
    c->transposed = (rows ? x->way.b : x->way.a) != LIES_ALONG_OWN;
    add_size(k, c, m);
    add_size(k, c, n);
    add_size(k, c, x->k);
    add_operand(k, c, x, rows ? x->a : x->b, rows ? x->a_at : x->b_at, m, x->k);
    add_operand(k, c, x, rows ? x->b : x->a, rows ? x->b_at : x->a_at, c->transposed ? n : x->k, 0);
    add_operand(k, c, x, x->c, x->c_at, m, 0);
}

static void call_of_two(const Kernel *k, const KProduct *x, const KProduct *y, KProductCall *c)
{
    add_size(k, c, x->m);
    add_size(k, c, y->m);
    add_size(k, c, x->n);
    add_size(k, c, x->k);
    add_operand(k, c, x, x->a, x->a_at, x->m, x->k);
    add_operand(k, c, y, y->a, y->a_at, y->m, y->k);
    add_operand(k, c, x, x->b, x->b_at, x->k, x->n);
    add_operand(k, c, x, x->c, x->c_at, x->m, 0);
    add_operand(k, c, y, y->c, y->c_at, y->m, 0);
}

static void call_of_sum(const Kernel *k, const KProduct *x, const KProduct *also, KProductCall *c)
{
    add_size(k, c, also->m);
    add_size(k, c, also->n);
    add_size(k, c, also->k);
    add_operand(k, c, also, also->a, also->a_at, also->m, also->k);
    add_operand(k, c, also, also->b, also->b_at, also->k, also->n);
    add_operand(k, c, x, x->a, x->a_at, x->m, 0);
    add_operand(k, c, x, x->b, x->b_at, 0, 0);
    add_operand(k, c, x, x->c, x->c_at, x->m, 0);
}

static void call_of_one(const Kernel *k, const KProduct *x, KProductCall *c)
{
    add_size(k, c, x->m);
    add_size(k, c, x->n);
    if (!x->rows) /* else the terms of a few rows, which is no size of the program */
        add_size(k, c, x->k);
    add_operand(k, c, x, x->a, x->a_at, x->m, x->k);
    add_operand(k, c, x, x->b, x->b_at, x->k, x->n);
    add_operand(k, c, x, x->c, x->c_at, x->m, x->n);
    c->adds = true;
}

KProductCall kernel_product_call(const Kernel *k, const KProduct *x)
{
    KProductCall c = {0};
    if (!k->target->threads)
        call_of_vectors(k, x, &c);
    else if (x->beside)
        call_of_two(k, x, &k->product.v[x->beside - 1], &c);
    else if (x->also)
        call_of_sum(k, x, &k->product.v[x->also - 1], &c);
    else
        call_of_one(k, x, &c);
    return c;
}
