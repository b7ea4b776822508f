/* emit_pieces.c - loops of a device that compute a few of a thread's contiguous elements at a time, and short ones that are written out.
 *
 * In:  a loop with KStmt.piece.     Out: its loads, for all elements; the rest, written out for one piece after the other;
 *      its stores, for all. Of a short loop: its loads, for all rounds; then the rounds. Of a loop that adds to sums over rows in
 *      memory: these; what it computes; its stores.
 * The one idea: accesses are as wide as memory likes them, and what is computed between them lives no longer than its
 * piece, so that it takes few registers.
 */
#include "emit_build.h"

#include <stdio.h>

static bool is_load(const Printer *p, const KStmt *s)
{
    const KEx *x = kx(p->k, s->ex);
    return s->kind == KS_ARRAY_GET || (s->kind == KS_LET && x->kind == KX_LOAD && x->deps & p->lane);
}

static bool is_store(const KStmt *s)
{
    return s->kind == KS_ARRAY_PUT || s->kind == KS_ARRAY_ADD || s->kind == KS_STORE || s->kind == KS_SINK;
}

static bool is_sum(const KStmt *s) { return s->kind == KS_ARRAY_ADD || s->kind == KS_SINK; }

/* The same for all elements. */
static bool is_same(const Printer *p, const KStmt *s)
{
    return s->kind == KS_LET && !(kx(p->k, s->ex)->deps & p->lane);
}

/* Where the first of the elements lies that a statement loads or stores, and its type. */
static char *place(Printer *p, const KStmt *s, Half *half)
{
    const KEx *x = kx(p->k, s->ex);
    const KRoot *r = s->kind == KS_LET || kernel_of_array(s) ? NULL : &p->k->root.v[s->root];
    uint32_t buffer = r ? r->buffer : x->slot;
    *half = kernel_of_array(s) ? HALF_NONE : p->k->buffer.v[buffer].half;
    return kernel_of_array(s) ? array_place(p, 't', s->array) : element_text(p, buffer, r ? r->at : x->ix);
}

/* Does that lie in shared memory as threads that take eight elements like it? */
static bool is_turned(const Printer *p, const KStmt *s)
{
    return kernel_of_array(s) ? p->k->array.v[s->array].turned : s->kind == KS_SINK && p->k->buffer.v[p->k->root.v[s->root].buffer].turned;
}

/* Where a row of them begins, and which of its elements is the first of a thread's. */
static char *turned(Printer *p, const KStmt *s)
{
    const Kernel *k = p->k;
    const KRoot *r = s->kind == KS_SINK ? &k->root.v[s->root] : NULL;
    Ix lane = ix_var(k->ix, r ? k->buffer.v[r->buffer].turned : k->array.v[s->array].turned), row = ix_add(k->ix, r ? r->at : kernel_array_at(k, s->array), ix_times(k->ix, lane, -1));
    Buf before = begin_piece(p);
    if (r)
        buf_printf(&p->body, "&q%zu[", slot_of(p, r->buffer, false));
    else
        buf_printf(&p->body, "&t%d[", s->array);
    put_ix(p, row);
    buf_puts(&p->body, "], ");
    put_ix(p, lane);
    return end_piece(p, before);
}

/* All elements of a thread, as memory has them. */
static void put_type(Printer *p, Half half)
{
    buf_printf(&p->body, half == HALF_NONE ? "vec<%u>" : half == HALF_BF16 ? "vec_pairs<%u>" : "vec_half<fp16, %u>", p->width);
}

/* A sum begins with what there is, so that it is under way with all else that is loaded. */
static void put_all(Printer *p, size_t i)
{
    const KStmt *s = &p->k->stmt.v[i];
    bool load = is_load(p, s);
    Half half;
    char *at = place(p, s, &half);
    begin_line(p);
    buf_puts(&p->body, load ? "const " : "");
    put_type(p, half);
    buf_printf(&p->body, " %c%zu", load ? 'm' : 'o', i);
    Ex guard = load && s->kind == KS_LET ? kx(p->k, s->ex)->in[0] : 0;
    if (is_turned(p, s) && (load || is_sum(s)))
        buf_printf(&p->body, " = vwn_many_turned(%s)", turned(p, s));
    else if (guard)
        buf_printf(&p->body, " = vwn_many_if<%u>(%s, &%s)", p->width, ex_text(p, guard), at);
    else if (load || is_sum(s))
        buf_printf(&p->body, " = vwn_many<%u>(&%s)", p->width, at);
    buf_puts(&p->body, ";\n");
}

static void put_piece(Printer *p, size_t i)
{
    const KStmt *s = &p->k->stmt.v[i];
    p->lanes = true;
    if (is_load(p, s)) {
        put_definition(p, s->ex);
        buf_printf(&p->body, "vwn_piece<%u>(m%zu, z);\n", p->width, i);
        return;
    }
    const KEx *x = kx(p->k, s->ex);
    Ex value = s->kind == KS_ARRAY_PUT ? s->ex : s->kind == KS_ARRAY_ADD ? x->in[0] : p->k->root.v[s->root].value;
    char *text = stored_text(p, value);
    begin_line(p);
    buf_printf(&p->body, "vwn_%s_piece(o%zu, z, %s);\n", is_sum(s) ? "add" : "put", i, text);
}

static void store_all(Printer *p, size_t i)
{
    const KStmt *s = &p->k->stmt.v[i];
    Half half;
    char *at = place(p, s, &half);
    begin_line(p);
    if (is_turned(p, s))
        buf_printf(&p->body, "vwn_put_turned(%s, o%zu);\n", turned(p, s), i);
    else
        buf_printf(&p->body, "vwn_put_many(&%s, o%zu);\n", at, i);
}

void emit_pieces(Printer *p, size_t loop)
{
    const Kernel *k = p->k;
    size_t end = kernel_loop_end(k, loop);
    const uint32_t width = k->stmt.v[loop].width, piece = k->stmt.v[loop].piece;
    put_statement(p, &k->stmt.v[loop]);
    for (size_t i = loop + 1; i < end; i++) {
        const KStmt *s = &k->stmt.v[i];
        p->lanes = !is_same(p, s);
        if (is_load(p, s) || is_store(s))
            put_all(p, i);
        else if (is_same(p, s))
            put_statement(p, s);
    }
    begin_line(p);
    buf_puts(&p->body, "#pragma unroll\n");
    begin_line(p);
    buf_printf(&p->body, "for (int z = 0; z < %u; z++) {\n", width / piece);
    p->depth++;
    p->width = piece;
    for (size_t i = loop + 1; i < end; i++) {
        const KStmt *s = &k->stmt.v[i];
        if (is_load(p, s) || is_store(s))
            put_piece(p, i);
        else if (!is_same(p, s))
            put_statement(p, s);
    }
    close_brace(p);
    p->width = width;
    p->lanes = true;
    for (size_t i = loop + 1; i < end; i++)
        if (is_store(&k->stmt.v[i]))
            store_all(p, i);
    put_statement(p, &k->stmt.v[end]);
}

/* ---- loads that come first (KStmt.ahead) ---- */

/* Of all rounds of a short loop. */
static void load_rounds(Printer *p, size_t loop)
{
    const Kernel *k = p->k;
    const size_t end = kernel_loop_end(k, loop);
    const KStmt *s = &k->stmt.v[loop];
    Buf before = begin_piece(p);
    put_ix(p, ix_var(k->ix, s->var));
    const char *round = end_piece(p, before);
    for (size_t i = loop + 1; i < end; i++)
        if (k->stmt.v[i].ahead) {
            begin_line(p);
            put_statement_lanes(p, &k->stmt.v[i]);
            buf_printf(&p->body, "%s m%zu[%u];\n", type_name(p, kx(k, k->stmt.v[i].ex)), i, s->unroll);
        }
    put_statement(p, s);
    for (size_t i = loop + 1; i < end; i++)
        if (k->stmt.v[i].ahead) {
            const KStmt *x = &k->stmt.v[i];
            put_statement_lanes(p, x);
            char *at = x->kind == KS_LET ? computed_text(p, x->ex) : array_element(p, x->array);
            begin_line(p);
            buf_printf(&p->body, "m%zu[%s] = %s;\n", i, round, at);
        }
    close_brace(p);
    put_statement(p, s);
    for (size_t i = loop + 1; i < end; i++) {
        if (!k->stmt.v[i].ahead) {
            put_statement(p, &k->stmt.v[i]);
            continue;
        }
        put_statement_lanes(p, &k->stmt.v[i]);
        put_definition(p, k->stmt.v[i].ex);
        buf_printf(&p->body, "m%zu[%s];\n", i, round);
    }
    put_statement(p, &k->stmt.v[end]);
}

/* Of the sums over rows that a round adds to. */
static void load_sums(Printer *p, size_t loop)
{
    const Kernel *k = p->k;
    const size_t end = kernel_loop_end(k, loop);
    put_statement(p, &k->stmt.v[loop]);
    for (size_t i = loop + 1; i < end; i++) {
        const KStmt *s = &k->stmt.v[i];
        if (s->kind != KS_SINK)
            continue;
        put_statement_lanes(p, s);
        char *at = root_text(p, &k->root.v[s->root]);
        begin_line(p);
        buf_printf(&p->body, "const auto o%zu = %s;\n", i, at);
    }
    for (size_t i = loop + 1; i < end; i++)
        if (!is_store(&k->stmt.v[i])) {
            put_statement_lanes(p, &k->stmt.v[i]);
            put_statement(p, &k->stmt.v[i]);
        }
    for (size_t i = loop + 1; i < end; i++) {
        const KStmt *s = &k->stmt.v[i];
        if (!is_store(s))
            continue;
        put_statement_lanes(p, s);
        if (s->kind == KS_STORE) {
            put_statement(p, s);
            continue;
        }
        const KRoot *r = &k->root.v[s->root];
        char *at = root_text(p, r), *value = ex_text(p, r->value);
        begin_line(p);
        buf_printf(&p->body, "%s = o%zu + %s;\n", at, i, value);
    }
    put_statement(p, &k->stmt.v[end]);
}

void emit_ahead(Printer *p, size_t loop)
{
    if (p->k->stmt.v[loop].mapped)
        load_sums(p, loop);
    else
        load_rounds(p, loop);
}
