/* emit_values.c - see emit_build.h: names, indices, elements and expressions, in any dialect.
 *
 * In:  a kernel, its expressions and indices.     Out: texts; the arguments that they ask for, in Printer.out.
 * The one idea: nothing here knows a statement. What prints statements calls this, and never the other way round.
 */
#include "compiler/gpu/map_threads.h"
#include "emit_build.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>

void begin_line(Printer *p)
{
    for (int i = 0; i < p->depth; i++)
        buf_put(&p->body, "    ", 4);
}

/* "x12" */
static void put_name(Printer *p, char letter, size_t number)
{
    char text[24];
    size_t at = sizeof text;
    do {
        text[--at] = (char)('0' + number % 10);
        number /= 10;
    } while (number);
    text[--at] = letter;
    buf_put(&p->body, text + at, sizeof text - at);
}

void close_brace(Printer *p)
{
    p->depth--;
    begin_line(p);
    buf_puts(&p->body, "}\n");
}

Buf begin_piece(Printer *p)
{
    Buf before = p->body;
    p->body = buf_new(p->k->arena);
    return before;
}

char *end_piece(Printer *p, Buf before)
{
    char *text = p->body.s;
    p->body = before;
    return text;
}

/* ---- arguments ---- */

/* Which use of a size comes next: USE_LITERAL, or an argument and 1. That it is of `want` the program has been proved for
 * (kernel_check_arguments()); here it is that this walk is the same. */
static uint32_t next_use(Printer *p, const KArgument *want)
{
    const Kernel *k = p->k;
    uint32_t use = p->use < k->use.n ? k->use.v[p->use++] : (uint32_t)k->argument.n + 1;
    if (use > k->argument.n || (use && !kernel_same_argument(&k->argument.v[use - 1], want)))
        vwn_bug(k->ctx, "a text names another size than its program");
    return use;
}

size_t next_argument(Printer *p, KArgument want)
{
    uint32_t use = next_use(p, &want);
    if (use == USE_LITERAL)
        vwn_bug(p->k->ctx, "a literal that has to be an argument");
    return use - 1;
}

static void put_use(Printer *p, KArgument want, int64_t value)
{
    uint32_t use = next_use(p, &want);
    if (use == USE_LITERAL)
        buf_printf(&p->body, "%" PRId64, value);
    else
        put_name(p, 'n', use - 1);
}

size_t slot_of(Printer *p, uint32_t buffer)
{
    for (size_t i = 0; i < p->k->pointer.n; i++)
        if (p->k->pointer.v[i] == buffer)
            return i;
    vwn_bug(p->k->ctx, "a text names another tensor than its program");
}

static size_t scalar_slot(Printer *p, uint32_t scalar)
{
    Printed *out = p->out;
    for (size_t i = 0; i < out->scalar.n; i++)
        if (out->scalar.v[i] == scalar)
            return i;
    vec_push(p->k->arena, &out->scalar, scalar);
    return out->scalar.n - 1;
}

static KArgument of_dim(Dim d) { return (KArgument){.kind = KA_DIM, .dim = d}; }

void put_dim(Printer *p, Dim d) { put_use(p, of_dim(d), d.n); }

bool next_literal(Printer *p, Dim d)
{
    const KArgument want = of_dim(d);
    bool is = next_use(p, &want) == USE_LITERAL;
    p->use -= !is;
    return is;
}

void put_chunk(Printer *p) { put_name(p, 'n', next_argument(p, (KArgument){.kind = KA_CHUNK, .value = p->k->chunk})); }

void put_part_size(Printer *p, uint32_t buffer)
{
    int64_t size = p->k->buffer.v[buffer].elements;
    put_name(p, 'n', next_argument(p, (KArgument){.kind = KA_PART, .buffer = buffer, .value = size}));
}

/* ---- names ---- */

void put_var(Printer *p, IVar v)
{
    const IVarInfo *info = ix_info(p->k->ix, v);
    if (info->kind == IV_VALUE) {
        put_name(p, 'k', p->number[info->value]);
        return;
    }
    if (v == p->k->row) {
        buf_puts(&p->body, p->next_row ? "(r + 1)" : "r");
        return;
    }
    if (!p->var_number[v])
        p->var_number[v] = ++p->next_var;
    put_name(p, info->kind == IV_LOOP ? 'i' : 'd', p->var_number[v]);
}

static void put_real(Printer *p, double x)
{
    if (isinf(x) || isnan(x)) {
        buf_puts(&p->body, isnan(x) ? "NOT_A_NUMBER" : x < 0 ? "-INFINITE" : "INFINITE");
        return;
    }
    char text[40];
    snprintf(text, sizeof text, "%.9g", x);
    buf_printf(&p->body, "%s%sf", text, strpbrk(text, ".e") ? "" : ".0");
}

static char type_letter(const KEx *e) { return e->type == KT_REAL ? 'x' : e->type == KT_INT ? 'k' : 'g'; }

void put_ex(Printer *p, Ex e)
{
    const KEx *x = kx(p->k, e);
    if (x->kind == KX_CONST && x->type == KT_REAL)
        put_real(p, x->value);
    else if (x->kind == KX_CONST)
        buf_printf(&p->body, "%" PRId64, (int64_t)x->value);
    else
        put_name(p, type_letter(x), p->number[e]);
}

static void put_term(Printer *p, const IxTerm *t, bool first)
{
    int64_t m = t->mult < 0 ? -t->mult : t->mult;
    bool one = dim_eq(t->coef, DIM(1)), any = kernel_is_place(t) || m != 1;
    buf_puts(&p->body, t->mult < 0 ? (first ? "-" : " - ") : first ? "" : " + ");
    if (any)
        put_use(p, (KArgument){.kind = KA_VALUE, .value = m}, m);
    if (t->var) {
        buf_puts(&p->body, any ? " * " : "");
        put_var(p, t->var);
        any = true;
    }
    if (!one) {
        buf_puts(&p->body, any ? " * " : "");
        put_dim(p, t->coef);
    }
}

/* The terms of a form: all, those that have 64 bits, or the others. Returns how many there are. */
typedef enum TermsWanted { TERMS_ALL, TERMS_WIDE, TERMS_NARROW } TermsWanted;
static int put_terms(Printer *p, const IxForm *f, TermsWanted which)
{
    int n = 0;
    for (int constants = 0; constants < 2; constants++)
        for (uint32_t j = 0; j < f->n; j++)
            if ((f->t[j].var == 0) == constants &&
                (which == TERMS_ALL || kernel_var_is_wide(p->k, f->t[j].var) == (which == TERMS_WIDE)))
                put_term(p, &f->t[j], n++ == 0);
    return n;
}

/* Where rows are wide and the rest is not, the rest is added up first. */
void put_ix(Printer *p, Ix ix)
{
    const IxForm *f = ix_form(p->k->ix, ix);
    bool split = p->k->device.mapping.index == INDEX_WIDE_ROWS;
    int n = put_terms(p, f, split ? TERMS_WIDE : TERMS_ALL);
    if (split) {
        Buf before = begin_piece(p);
        int rest = put_terms(p, f, TERMS_NARROW);
        char *text = end_piece(p, before);
        if (rest)
            buf_printf(&p->body, n ? " + (%s)" : "%s", text);
        n += rest;
    }
    if (!n)
        buf_putc(&p->body, '0');
}

/* ---- expressions ---- */

static void put_pattern(Printer *p, const KEx *x, const char *pattern)
{
    for (; *pattern; pattern++) {
        if (*pattern != '$') {
            buf_putc(&p->body, *pattern);
        } else if (*++pattern == 'i') {
            buf_printf(&p->body, "%" PRId64, x->i);
        } else {
            Ex in = x->in[*pattern - 'a'];
            double c;
            bool negative = kx_is_number(p->k, in, &c) && c < 0;
            buf_puts(&p->body, negative ? "(" : "");
            put_ex(p, in);
            buf_puts(&p->body, negative ? ")" : "");
        }
    }
}

static void put_op(Printer *p, const KEx *x)
{
    Op op = (Op)x->op;
    bool integer = kx(p->k, x->in[op == OP_WHERE ? 1 : 0])->type == KT_INT;
    if (p->across == ACROSS_FIRST || p->across == ACROSS_SECOND) {
        buf_printf(&p->body, "vwn_is_place<%u>(", p->width);
        put_pattern(p, x, p->across == ACROSS_FIRST ? "vwn_isub($b, $a))" : "vwn_isub($a, $b))");
        return;
    }
    const OpInfo *info = op_info(op);
    const char *pattern = integer ? info->c_integer : p->lanes && !p->d->threads ? info->c_vector : info->c_real;
    if (!pattern)
        vwn_bug(p->k->ctx, "%s has no text in a kernel", info->name);
    double one;
    bool inverse = op == OP_DIV && !integer && p->d->inverse && kx_is_number(p->k, x->in[0], &one) && one == 1;
    put_pattern(p, x, inverse ? p->d->inverse : pattern);
}

static size_t tile_slot(Printer *p, uint32_t buffer)
{
    for (size_t i = 0; i < p->tile.n; i++)
        if (p->tile.v[i] == buffer)
            return i;
    vec_push(p->k->arena, &p->tile, buffer);
    return p->tile.n - 1;
}

static void put_element(Printer *p, uint32_t buffer, Ix ix)
{
    const KBuffer *b = &p->k->buffer.v[buffer];
    if (b->tile && b->half && p->d->threads)
        buf_printf(&p->body, "vwn_bf16_tile(u%d)[vwn_bank_bf16<%d>(", b->device.slot, b->device.bank);
    else if (b->tile && p->k->device.tensor && p->d->threads)
        buf_printf(&p->body, "u%d[vwn_bank_rows<%d>(", b->device.slot, b->device.bank);
    else if (b->tile && p->d->threads)
        buf_printf(&p->body, "u%d[vwn_bank(", b->device.slot);
    else if (b->tile)
        buf_printf(&p->body, "u%zu[", tile_slot(p, buffer));
    else
        buf_printf(&p->body, "%c%zu[", b->part >= 0 ? 'q' : 'p', slot_of(p, buffer));
    put_ix(p, ix);
    buf_puts(&p->body, b->tile && p->d->threads ? ")]" : "]");
}

char *element_text(Printer *p, uint32_t buffer, Ix ix)
{
    Buf before = begin_piece(p);
    put_element(p, buffer, ix);
    return end_piece(p, before);
}

/* An element; in a vector loop the contiguous elements that begin there. */
char *in_lanes(Printer *p, char *element)
{
    if (!p->lanes)
        return element;
    Buf b = buf_new(p->k->arena);
    buf_printf(&b, p->d->at, element, p->width);
    return b.s;
}

static void put_load(Printer *p, const KEx *x)
{
    char *element = element_text(p, x->slot, x->ix);
    Half half = p->k->buffer.v[x->slot].half;
    if (!half)
        buf_puts(&p->body, in_lanes(p, element));
    else if (p->lanes)
        buf_printf(&p->body, "vwn_get_%s<%u>(&%s)", half_word(half), p->width, element);
    else
        buf_printf(&p->body, "vwn_of_%s(%s)", half_word(half), element);
}

void put_value_of(Printer *p, Ex e)
{
    const KEx *x = kx(p->k, e);
    switch ((KKind)x->kind) {
    case KX_SCALAR: buf_printf(&p->body, p->d->scalar, p->d->real, scalar_slot(p, x->slot)); break;
    case KX_INDEX: put_ix(p, x->ix); break;
    case KX_LOAD:
        if (x->in[0]) {
            put_ex(p, x->in[0]);
            buf_puts(&p->body, " ? ");
        }
        put_load(p, x);
        if (x->in[0] && p->lanes && p->d->threads)
            buf_printf(&p->body, " : vwn_all<%u>(0.0f)", p->width);
        else if (x->in[0])
            buf_puts(&p->body, x->type == KT_INT ? " : 0" : " : 0.0f");
        break;
    case KX_OP: put_op(p, x); break;
    case KX_INSIDE:
        buf_puts(&p->body, "(uint64_t)(");
        put_ix(p, x->ix);
        buf_puts(&p->body, ") < (uint64_t)");
        put_dim(p, x->extent);
        break;
    case KX_AND: put_pattern(p, x, "$a & $b"); break;
    case KX_SELECT:
        put_pattern(p, x, x->i ? "$b" : p->lanes && p->d->threads ? "vwn_choose($a, $b, $c)" : "$a ? $b : $c");
        break;
    case KX_RAND: {
        const KSeed *seed = &p->k->seed.v[x->slot];
        size_t step = next_argument(p, (KArgument){.kind = KA_STEP}),
               key = next_argument(p, (KArgument){.kind = KA_SEED, .site = seed->site});
        buf_printf(&p->body, "%s(n%zu, n%zu, ", x->op == OP_RAND ? "vwn_uniform" : "vwn_normal", key, step);
        if (seed->each.n)
            buf_printf(&p->body, "n%zu + ", next_argument(p, (KArgument){.kind = KA_FIRST, .dim = seed->each}));
        put_ix(p, x->ix);
        buf_putc(&p->body, ')');
        break;
    }
    default: vwn_bug(p->k->ctx, "an expression without text"); break;
    }
}

char *computed_text(Printer *p, Ex e)
{
    Buf before = begin_piece(p);
    put_value_of(p, e);
    return end_piece(p, before);
}

const char *type_name(const Printer *p, const KEx *x)
{
    if (p->lanes && x->type == KT_REAL) /* an integer is the place of the first element */
        return !p->d->threads ? p->d->vector : p->width == 8 ? "vec<8>" : p->width == 4 ? "vec<4>" : "vec<2>";
    return x->type == KT_REAL ? p->d->real : x->type == KT_INT ? p->d->integer : "int";
}

void put_definition(Printer *p, Ex e)
{
    if (!p->number[e])
        p->number[e] = ++p->next;
    const KEx *x = kx(p->k, e);
    begin_line(p);
    buf_printf(&p->body, "const %s %c%u = ", type_name(p, x), type_letter(x), p->number[e]);
}

const char *neutral(const Printer *p, Op op) { return op == OP_SUM ? p->d->zero : p->d->lowest; }

char *ex_text(Printer *p, Ex e)
{
    Buf before = begin_piece(p);
    put_ex(p, e);
    return end_piece(p, before);
}

/* ---- elements ---- */

char *array_place(Printer *p, char letter, int array)
{
    Buf before = begin_piece(p);
    buf_printf(&p->body, "%c%d[", letter, array);
    /* the table only grows: printing may intern one more form */
    put_ix(p, kernel_array_at(p->k, array));
    buf_putc(&p->body, ']');
    return end_piece(p, before);
}

char *array_element(Printer *p, int array) { return in_lanes(p, array_place(p, 't', array)); }

char *root_text(Printer *p, const KRoot *r) { return in_lanes(p, element_text(p, r->buffer, r->at)); }

/* A value to be stored; one that is the same in all lanes becomes a vector. */
char *stored_text(Printer *p, Ex e)
{
    char *text = ex_text(p, e);
    if (!p->lanes || p->across != ACROSS_VALUE)
        return text;
    Buf b = buf_new(p->k->arena);
    buf_printf(&b, p->d->all, text, p->width);
    return b.s;
}
