/* emit_lanes.c - what threads of a warp compute alike, each of a total of its own.
 *
 * In:  a statement of lanes and its column (gpu/lanes.c).
 * Out: its lines. What this thread has of a column has the number of that column.
 */
#include "emit_build.h"

#include <inttypes.h>

uint32_t emit_column_number(Printer *p, uint32_t column)
{
    return p->column[column] ? p->column[column] : (p->column[column] = ++p->next);
}

/* Which of a column's elements is the lane's, from the first on. */
static char *place_text(const Printer *p, const KColumn *c)
{
    const KPlaces *x = &c->place;
    return x->of == c->n && x->along == 1 && !x->base
               ? arena_printf(p->k->arena, "vwn_column<%u, %u>()", c->first, c->n)
               : arena_printf(p->k->arena, "vwn_column_place<%u, %u, %u, %" PRId64 ", %" PRId64 ", %" PRId64 ">()",
                              c->first, c->n, x->of, x->base, x->along, x->across);
}

static char *rest_text(Printer *p, Ix rest)
{
    Buf before = begin_piece(p);
    put_ix(p, rest);
    return end_piece(p, before);
}

/* The lane's element. */
static char *lane_element(Printer *p, char letter, uint32_t buffer, const KColumn *c)
{
    Ix rest = kernel_column_place(p->k, c);
    bool alone = !ix_form(p->k->ix, rest)->n;
    return arena_printf(p->k->arena, "%c%zu[%s%s%s]", letter, slot_of(p, buffer), alone ? "" : rest_text(p, rest),
                        alone ? "" : " + ", place_text(p, c));
}

/* What is computed of columns is what is computed of their first elements. */
static char *op_text(Printer *p, const KColumn *c)
{
    const KEx *x = kx(p->k, c->ex[0]);
    uint32_t before[3];
    for (int i = 0; i < 3; i++) {
        before[i] = p->number[x->in[i]];
        p->number[x->in[i]] = c->in[i] ? emit_column_number(p, c->in[i]) : before[i];
    }
    char *text = computed_text(p, c->ex[0]);
    for (int i = 3; i-- > 0;)
        p->number[x->in[i]] = before[i];
    return text;
}

static void put_values(Printer *p, uint32_t column)
{
    const KColumn *c = &p->k->device.column.v[column - 1];
    const KEx *x = kx(p->k, c->ex[0]);
    char *text;
    if (x->kind == KX_LOAD && c->here)
        text = arena_printf(p->k->arena, "vwn_load_here(&p%zu[%s], %s)", slot_of(p, x->slot),
                            rest_text(p, kernel_column_place(p->k, c)), place_text(p, c));
    else
        text = x->kind == KX_LOAD ? lane_element(p, 'p', x->slot, c) : op_text(p, c);
    begin_line(p);
    buf_printf(&p->body, "const %s x%u = %s;\n", p->d->real, emit_column_number(p, column), text);
}

static void put_results(Printer *p, const KColumn *c)
{
    const KRoot *r = &p->k->root.v[c->root[0]];
    char *element = lane_element(p, p->k->buffer.v[r->buffer].part >= 0 ? 'q' : 'p', r->buffer, c);
    begin_line(p);
    if (c->first)
        buf_printf(&p->body, "if (thread >= %u && thread < %u) ", c->first, c->first + c->n);
    else
        buf_printf(&p->body, "if (thread < %u) ", c->n);
    buf_printf(&p->body, "%s %s x%u;\n", element, r->kind == KR_SINK ? "+=" : "=", emit_column_number(p, c->in[0]));
}

void emit_lanes(Printer *p, const KStmt *s)
{
    if (s->kind == KS_LANES) {
        put_values(p, s->column);
    } else if (s->kind == KS_LANE_STORE) {
        put_results(p, &p->k->device.column.v[s->column - 1]);
    } else {
        put_definition(p, s->ex);
        buf_printf(&p->body, "vwn_from_lane(x%u, %u);\n", emit_column_number(p, s->column), s->lane);
    }
}
