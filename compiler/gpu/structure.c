/* structure.c - what kernels that differ in sizes alone have in common.
 *
 * In:  a scheduled kernel, not yet mapped to threads.
 * Out: its canonical form: a text in which every size that would be an argument is "?", and buffers, expressions and
 *      variables have numbers in the order in which statements name them.
 * The one idea: equal forms print equal texts where threads share them in one way. So kernels are compared before any
 * mapping is chosen, and none is printed to learn whom it is like.
 */
#include "device.h"

typedef struct Form {
    const Kernel *k;
    Buf out;
    uint32_t *ex, *var, *buffer; /* numbers, 0: not named yet */
    uint32_t n_ex, n_var, n_buffer;
} Form;

/* The tag and the number, in digits of 64 from the lowest on, and a blank. */
static void put(Form *f, char tag, int64_t x)
{
    char s[16];
    size_t n = 0;
    s[n++] = tag;
    for (uint64_t left = (uint64_t)x << 1 ^ (x < 0 ? UINT64_MAX : 0); left || n == 1; left >>= 6)
        s[n++] = (char)('0' + (left & 63));
    s[n++] = ' ';
    buf_put(&f->out, s, n);
}

static void put_dim(Form *f, Dim d)
{
    if (ix_literal(f->k->ix, d))
        put(f, '=', d.n);
    else
        buf_puts(&f->out, "? ");
}

static void put_ex(Form *f, Ex e);
static void put_ix(Form *f, Ix ix);

static void put_var(Form *f, IVar v)
{
    const IVarInfo *info = ix_info(f->k->ix, v);
    if (info->kind == IV_VALUE) {
        put_ex(f, info->value);
        return;
    }
    if (f->var[v]) {
        put(f, 'v', f->var[v]);
        return;
    }
    f->var[v] = ++f->n_var;
    put(f, 'V', info->kind);
    if (info->kind == IV_LOOP) {
        put_dim(f, info->extent);
    } else if (info->kind == IV_DIV || info->kind == IV_MOD) {
        put_ix(f, info->base);
        put_dim(f, info->by);
    }
}

static void put_ix(Form *f, Ix ix)
{
    const IxForm *form = ix_form(f->k->ix, ix);
    bool away = kernel_has_row_offset(f->k, form);
    put(f, 'x', form->n);
    for (uint32_t i = 0; i < form->n; i++) {
        const IxTerm *t = &form->t[i];
        bool place = kernel_is_place(t);
        put(f, t->mult < 0 ? '-' : '+', 0);
        if (kernel_is_argument(f->k, t, away, true))
            buf_puts(&f->out, "? ");
        else
            put(f, place ? 'p' : 'm', t->mult);
        if (t->var)
            put_var(f, t->var);
        put_dim(f, t->coef);
    }
}

static void put_buffer(Form *f, uint32_t buffer)
{
    const KBuffer *b = &f->k->buffer.v[buffer];
    if (f->buffer[buffer]) {
        put(f, 'b', f->buffer[buffer]);
        return;
    }
    f->buffer[buffer] = ++f->n_buffer;
    put(f, 'B', b->dtype | b->half << 4 | b->written << 12 | b->read << 13 | (b->part >= 0) << 14);
}

/* An expression as it is named where it is used. */
static void put_ex(Form *f, Ex e)
{
    const KEx *x = kx(f->k, e);
    if (x->kind == KX_CONST && x->type == KT_REAL)
        buf_printf(&f->out, "%.9g ", x->value);
    else if (x->kind == KX_CONST)
        put(f, 'i', (int64_t)x->value);
    else
        put(f, 'e', f->ex[e]);
}

static void define(Form *f, Ex e)
{
    if (!f->ex[e])
        f->ex[e] = ++f->n_ex;
    put(f, 'E', f->ex[e]);
    put(f, 't', kx(f->k, e)->type);
}

/* What it is made of. */
static void put_value(Form *f, Ex e)
{
    const KEx *x = kx(f->k, e);
    put(f, 'k', x->kind);
    put(f, 'o', x->op);
    put(f, 'i', x->i);
    for (int i = 0; i < 3; i++)
        if (x->in[i])
            put_ex(f, x->in[i]);
    switch ((KKind)x->kind) {
    case KX_SCALAR:
        put(f, 's', x->slot);
        put(f, 'h', f->k->scalar.v[x->slot].host >= 0); /* it lies in memory */
        break;
    case KX_INDEX: put_ix(f, x->ix); break;
    case KX_LOAD:
        put_buffer(f, x->slot);
        put_ix(f, x->ix);
        break;
    case KX_INSIDE:
        put_ix(f, x->ix);
        put_dim(f, x->extent);
        break;
    case KX_RAND:
        put(f, 'r', x->slot);
        put(f, 'f', f->k->seed.v[x->slot].each.n != 0);
        put_ix(f, x->ix);
        break;
    default: break;
    }
}

static void put_root(Form *f, const KRoot *r)
{
    put(f, 'o', r->op);
    put_buffer(f, r->buffer);
    put_ix(f, r->at);
    put_ex(f, r->value);
}

static void put_array(Form *f, int array)
{
    const KArray *a = &f->k->array.v[array];
    put(f, 'a', array);
    put(f, 't', a->dtype);
    put(f, 'n', a->nest.n);
    for (uint32_t i = 0; i < a->nest.n; i++)
        put_var(f, a->nest.var[i]);
}

/* The field of a statement that has this letter in kstmts.def. */
static void put_field(Form *f, const KStmt *s, char field)
{
    const KEx *x = kx(f->k, s->ex);
    switch (field) {
    case 'v': put_var(f, s->var); break;
    case 's': put(f, 's', s->simd); break;
    case 'd':
        define(f, s->ex);
        if (x->kind == KX_REDUCE)
            put(f, 'o', x->op);
        else
            put_value(f, s->ex);
        break;
    case 'x':
        if (kstmt_info[s->kind].ex == WRITES)
            define(f, s->ex);
        else
            put_ex(f, s->ex);
        break;
    case 'b':
        put(f, 'o', x->op);
        put_ex(f, x->in[0]);
        break;
    case 't': put_array(f, s->array), put_ix(f, kernel_array_at(f->k, s->array)); break;
    case 'n': put_array(f, s->array); break;
    case 'q': put(f, 'a', s->array); break;
    case 'a': put(f, '@', s->at); break;
    case 'c': put(f, 'n', s->n_acc); break;
    case 'r': put_root(f, &f->k->root.v[s->root]); break;
    case 'u': put_buffer(f, s->root); break;
    default: break; /* accumulators are declared above; kernels with products have no variant class */
    }
}

static void put_statement(Form *f, const KStmt *s)
{
    buf_putc(&f->out, '\n');
    put(f, 'S', s->kind);
    if (s->kind == KS_PART) /* partitions end with the last row */
        put_dim(f, f->k->rows);
    for (const char *p = kstmt_info[s->kind].text; *p; p++)
        if (*p == '%')
            put_field(f, s, *++p);
}

Name kernel_structure(const Kernel *k)
{
    Form f = {.k = k, .out = buf_new(k->arena)};
    f.ex = NEW_ARRAY(k->arena, uint32_t, k->ex.n + 1);
    f.var = NEW_ARRAY(k->arena, uint32_t, k->ix->var.n + 1);
    f.buffer = NEW_ARRAY(k->arena, uint32_t, k->buffer.n + 1);
    put(&f, k->part ? 'P' : 'R', k->flat);
    Kernel block = *k;
    kernel_spill_arrays(&block, (uint32_t)block.target->tuned->block_threads, 1);
    for (size_t i = 0; i < k->array.n; i++)
        put(&f, 'A', block.array.v[i].spilled);
    for (size_t i = 0; i < k->stmt.n; i++)
        put_statement(&f, &k->stmt.v[i]);
    return name_of(k->ctx, f.out.s, f.out.n);
}
