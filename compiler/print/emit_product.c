/* emit_product.c - products of one row as statements of a text.
 *
 * In:  a KProduct with its places.     Out: a call of vwn_product in the printer's body.
 * The one idea: places are forms of the row and of three loops, so their slopes are the steps; a
 * device's text also says where fours of an operand begin (KProduct.way), and relies on the sizes that make it so.
 */
#include "emit_build.h"

#include <inttypes.h>

/* ---- products of several rows ---- */

void emit_row_places(Printer *p)
{
    bool some = false;
    for (size_t i = 0; i < p->k->device.tile_slot.n; i++) {
        const KTilePlace *x = &p->k->device.tile_slot.v[i];
        if (!x->rows)
            continue;
        begin_line(p);
        if (!some) {
            buf_printf(&p->body, "const int nth = (int)(r - first) %% %u;\n", x->rows);
            begin_line(p);
        }
        some = true;
        buf_printf(&p->body, "real *const u%zu = rows%zu + nth * ", i, i);
        put_dim(p, DIM(x->each));
        buf_puts(&p->body, ";\n");
    }
}

/* ---- operands ---- */

/* An operand for threads: what it lies in and where it begins. */
static void put_place(Printer *p, const KOperand *o)
{
    const KBuffer *b = &p->k->buffer.v[o->buffer];
    if (o->of->rows && b->device.rows) {
        buf_printf(&p->body, ", vwn_held_rows<%d>{rows%d, (uint32_t)(", b->device.bank, b->device.slot);
        put_ix(p, o->first);
        buf_puts(&p->body, ")}");
        return;
    }
    if (o->rows) {
        buf_printf(&p->body, ", vwn_there<const %s>{&%s - nth * %" PRId64 " * (", half_word(b->half),
                   element_text(p, o->buffer, o->first), ix_info(p->k->ix, o->of->k)->extent.n);
        put_ix(p, o->row);
        buf_puts(&p->body, ")}");
        return;
    }
    if (b->tile) {
        bool loose = p->k->device.tensor && b->rounded && !half_info(b->rounded)->in_tiles;
        if (b->half || b->device.split)
            buf_printf(&p->body, ", vwn_held_%s<%d>{vwn_bf16_tile(u%d), (uint32_t)(",
                       b->half ? half_word(b->half) : "parts", b->device.bank, b->device.slot);
        else if (loose)
            buf_printf(&p->body, ", vwn_rounded_%s<%d>{vwn_held_rows<%d>{u%d, (uint32_t)(", half_word(b->rounded),
                       b->device.bank, b->device.bank, b->device.slot);
        else if (p->k->device.tensor)
            buf_printf(&p->body, ", vwn_held_rows<%d>{u%d, (uint32_t)(", b->device.bank, b->device.slot);
        else
            buf_printf(&p->body, ", vwn_held{u%d, (uint32_t)(", b->device.slot);
        put_ix(p, o->first);
        buf_puts(&p->body, loose ? ")}}" : ")}");
    } else {
        buf_printf(&p->body, ", vwn_there<%s%s>{&%s}", b->written ? "" : "const ", half_word(b->half),
                   element_text(p, o->buffer, o->first));
    }
}

static void put_operands(Printer *p, const KProductCall *c)
{
    for (int i = 0; i < c->n_operand; i++) {
        const KOperand *o = &c->operand[i];
        if (p->d->threads)
            put_place(p, o);
        else
            buf_printf(&p->body, ", &%s", element_text(p, o->buffer, o->first));
        for (int j = 0; j < o->n_step; j++) {
            buf_puts(&p->body, ", ");
            put_ix(p, o->step[j]);
        }
    }
}

static const char *const lying_name[] = {
    [LIES_STRIDED] = "VWN_APART", [LIES_ALONG_SUM] = "VWN_ALONG_SUM", [LIES_ALONG_OWN] = "VWN_ALONG_OWN"};

static const char *left(const KProduct *x) { return lying_name[x->way.a]; }
static const char *right(const KProduct *x) { return lying_name[x->way.b]; }

static const char *const cut_name[] = {
    [CUT_WIDE_PIECES] = "VWN_WIDE_PIECES",     [CUT_FEW_COLUMNS] = "VWN_FEW_COLUMNS",
    [CUT_FEW_ROWS] = "VWN_FEW_ROWS",           [CUT_LONG_ROWS] = "VWN_LONG_ROWS",
    [CUT_LONG_COLUMNS] = "VWN_LONG_COLUMNS",   [CUT_SHORT_ROWS] = "VWN_SHORT_ROWS",
    [CUT_SHORT_COLUMNS] = "VWN_SHORT_COLUMNS", [CUT_FEW_NUMBERS] = "VWN_FEW_NUMBERS",
    [CUT_MORE_NUMBERS] = "VWN_MORE_NUMBERS",   [CUT_FEW_EIGHTS] = "VWN_FEW_EIGHTS",
    [CUT_MORE_EIGHTS] = "VWN_MORE_EIGHTS",     [CUT_ROWS_BY_PARTS] = "VWN_ROWS_BY_PARTS"};

/* A literal is a type, so that the function of a device which is called has it, too. */
static void put_size(Printer *p, Dim d)
{
    if (p->k->calls && next_literal(p, d))
        buf_printf(&p->body, "vwn_is<%" PRId64 ">()", d.n);
    else
        put_dim(p, d);
}

/* Rows of a result that begin at multiples of four, or are of whole lines. */
static const char *fours(const KProduct *x)
{
    enum { FOUR = 4 };
    return !x->way.line ? "false" : x->way.line == FOUR ? "true" : "32";
}

static void put_sizes(Printer *p, const KProductCall *c)
{
    for (int i = 0; i < c->n_size; i++) {
        buf_puts(&p->body, i ? ", " : "");
        put_size(p, c->size[i]);
    }
}

/* ---- calls ---- */

static void two_products(Printer *p, const KProduct *x, const KProduct *y)
{
    buf_printf(&p->body, "vwn_two_products_%s<THREADS / 32, ", p->k->calls ? "called" : "bf16");
    buf_printf(&p->body, "%s, %s, %s, %s, %s>(", left(x), left(y), right(x), fours(x), fours(y));
}

/* The sum of two products, the first by both parts of a factor. */
static void sum_of_products(Printer *p, const KProduct *also)
{
    buf_printf(&p->body, "vwn_sum_of_products_bf16<THREADS / 32, %s, %s>(", left(also), right(also));
}

static void one_product(Printer *p, const KProduct *x)
{
    buf_printf(&p->body, "vwn_product%s<THREADS / 32, %s, %s, %s, %s",
               p->k->calls           ? "_called"
               : p->k->device.tensor ? "_bf16"
                                     : "",
               cut_name[x->way.cut], left(x), right(x), lying_name[x->way.by_rows ? LIES_ALONG_OWN : LIES_STRIDED]);
    if (p->k->device.tensor)
        buf_printf(&p->body, ", %s, %s", x->way.sixteens ? "true" : "false", fours(x));
    buf_puts(&p->body, ">(");
}

/* A product of several rows is computed in the last of them, of the terms that there are then. */
void emit_product(Printer *p, const KStmt *st)
{
    const Kernel *k = p->k;
    const KProduct *x = &k->product.v[st->root];
    const KProductCall c = kernel_product_call(k, x);
    if (!x->way.a)
        vwn_bug(k->ctx, "a product that nobody has found a way for");
    begin_line(p);
    if (x->rows)
        buf_printf(&p->body, "if (nth == %d || r + 1 == last)\n    %*s", x->rows - 1, p->depth * 4, "");
    if (!p->d->threads)
        buf_printf(&p->body, "%s(", c.transposed ? p->d->transposed : p->d->product);
    else if (x->beside)
        two_products(p, x, &k->product.v[x->beside - 1]);
    else if (x->also)
        sum_of_products(p, &k->product.v[x->also - 1]);
    else
        one_product(p, x);
    put_sizes(p, &c);
    if (x->rows)
        buf_printf(&p->body, ", (nth + 1) * %" PRId64, ix_info(k->ix, x->k)->extent.n);
    put_operands(p, &c);
    if (c.adds) {
        buf_puts(&p->body, ", ");
        put_size(p, DIM(x->add));
    } else if (!p->d->threads) {
        buf_printf(&p->body, ", %d", x->add);
    }
    buf_puts(&p->body, ");\n");
}
