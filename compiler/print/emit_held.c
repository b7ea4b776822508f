/* emit_held.c - steps of statements of which a thread holds elements in registers (KStmt.step, chosen by gpu/hold.c).
 *
 * In:  a statement with a step.     Out: its line. Of a loop of pieces what is held are all elements of a thread, of which a step
 *      takes or puts a piece; of a loop that is written out it is one number of each round; of a sum over rows in memory the sum.
 */
#include "emit_build.h"

#include <stdio.h>

static bool is_sum(const KStmt *s) { return s->kind == KS_ARRAY_ADD || s->kind == KS_SINK; }

static bool is_load(const KStmt *s) { return s->kind == KS_LET || s->kind == KS_ARRAY_GET; }

/* ---- pieces ---- */

/* Where the first of the elements lies that a statement loads or stores, and its type. */
static char *place(Printer *p, const KStmt *s, Half *half)
{
    const KEx *x = kx(p->k, s->ex);
    const KRoot *r = s->kind == KS_LET || kernel_of_array(s) ? NULL : &p->k->root.v[s->root];
    uint32_t buffer = r ? r->buffer : x->slot;
    *half = kernel_of_array(s) ? HALF_NONE : p->k->buffer.v[buffer].half;
    return kernel_of_array(s) ? array_place(p, 't', s->array) : element_text(p, buffer, r ? r->at : x->ix);
}

/* Where a row of swizzled elements begins, and which of them is the first of a thread's. NULL: the elements lie in their own order. */
static char *swizzled_place(Printer *p, const KStmt *s)
{
    Ix row;
    const IVar along = kernel_swizzled(p->k, s, &row);
    if (!along)
        return NULL;
    Buf before = begin_piece(p);
    if (s->kind == KS_SINK)
        buf_printf(&p->body, "&q%zu[", slot_of(p, p->k->root.v[s->root].buffer));
    else
        buf_printf(&p->body, "&t%d[", s->array);
    put_ix(p, row);
    buf_puts(&p->body, "], ");
    put_ix(p, ix_var(p->k->ix, along));
    return end_piece(p, before);
}

/* All elements of a thread, as memory has them. */
static void put_type(Printer *p, Half half) { buf_printf(&p->body, "%s%u>", half_info(half)->vector, p->width); }

static void begin_elements(Printer *p, const KStmt *s)
{
    bool load = is_load(s), from_memory = s->step & STEP_LOAD;
    Half half;
    char *at = place(p, s, &half);
    begin_line(p);
    buf_puts(&p->body, load ? "const " : "");
    put_type(p, half);
    buf_printf(&p->body, " %c%u", load ? 'm' : 'o', s->held);
    Ex guard = s->kind == KS_LET ? kx(p->k, s->ex)->in[0] : 0;
    const char *swizzled = from_memory ? swizzled_place(p, s) : NULL;
    if (swizzled)
        buf_printf(&p->body, " = vwn_many_turned(%s)", swizzled);
    else if (from_memory && guard)
        buf_printf(&p->body, " = vwn_many_if<%u>(%s, &%s)", p->width, ex_text(p, guard), at);
    else if (from_memory)
        buf_printf(&p->body, " = vwn_many<%u>(&%s)", p->width, at);
    buf_puts(&p->body, ";\n");
}

static void value_of_piece(Printer *p, const KStmt *s)
{
    if (is_load(s)) {
        put_definition(p, s->ex);
        buf_printf(&p->body, "vwn_piece<%u>(m%u, z);\n", p->width, s->held);
        return;
    }
    const KEx *x = kx(p->k, s->ex);
    Ex value = s->kind == KS_ARRAY_PUT ? s->ex : s->kind == KS_ARRAY_ADD ? x->in[0] : p->k->root.v[s->root].value;
    char *text = stored_text(p, value);
    begin_line(p);
    buf_printf(&p->body, "vwn_%s_piece(o%u, z, %s);\n", is_sum(s) ? "add" : "put", s->held, text);
}

static void store_elements(Printer *p, const KStmt *s)
{
    Half half;
    char *at = place(p, s, &half), *swizzled = swizzled_place(p, s);
    begin_line(p);
    if (swizzled)
        buf_printf(&p->body, "vwn_put_turned(%s, o%u);\n", swizzled, s->held);
    else
        buf_printf(&p->body, "vwn_put_many(&%s, o%u);\n", at, s->held);
}

static void step_of_pieces(Printer *p, const KStmt *s)
{
    if (s->step & (STEP_NEW | STEP_LOAD))
        begin_elements(p, s);
    else if (s->step & STEP_VALUE)
        value_of_piece(p, s);
    else
        store_elements(p, s);
}

void emit_pieces(Printer *p, const KStmt *s)
{
    begin_line(p);
    buf_puts(&p->body, "#pragma unroll\n");
    begin_line(p);
    buf_printf(&p->body, "for (int z = 0; z < %u; z++) {\n", s->width / s->piece);
    p->depth++;
}

/* ---- rounds, and sums over rows ---- */

static void step_of_rounds(Printer *p, const KStmt *s)
{
    Buf before = begin_piece(p);
    if (s->step != STEP_NEW)
        put_ix(p, ix_var(p->k->ix, s->var));
    const char *round = end_piece(p, before);
    if (s->step == STEP_NEW) {
        begin_line(p);
        buf_printf(&p->body, "%s m%u[%u];\n", type_name(p, kx(p->k, s->ex)), s->held, s->unroll);
    } else if (s->step == STEP_LOAD) {
        char *at = s->kind == KS_LET ? computed_text(p, s->ex) : array_element(p, s->array);
        begin_line(p);
        buf_printf(&p->body, "m%u[%s] = %s;\n", s->held, round, at);
    } else {
        put_definition(p, s->ex);
        buf_printf(&p->body, "m%u[%s];\n", s->held, round);
    }
}

static void step_of_sum(Printer *p, const KStmt *s)
{
    const KRoot *r = &p->k->root.v[s->root];
    char *at = root_text(p, r);
    if (s->step == STEP_LOAD) {
        begin_line(p);
        buf_printf(&p->body, "const auto o%u = %s;\n", s->held, at);
        return;
    }
    char *value = ex_text(p, r->value);
    begin_line(p);
    buf_printf(&p->body, "%s = o%u + %s;\n", at, s->held, value);
}

void emit_step(Printer *p, const KStmt *s)
{
    if (s->piece)
        step_of_pieces(p, s);
    else if (is_load(s))
        step_of_rounds(p, s);
    else
        step_of_sum(p, s);
}
