/* emit_product.c - products of one row as statements of a text.
 *
 * In:  a KProduct with its places.     Out: a call of vwn_product in the printer's body.
 * The one idea: places are forms of the row and of three loops, so their slopes are the steps; a
 * device's text also says where fours of an operand begin (KProduct.way), and relies on the sizes that make it so.
 */
#include "emit_build.h"

#include <inttypes.h>

static void put_factor_of(Printer *p, const KProduct *x, uint32_t buffer, Ix at)
{
    buf_printf(&p->body, ", &%s", element_text(p, buffer, kernel_product_place(p->k, x, at, 0)));
}

static void put_step(Printer *p, const KProduct *x, Ix at, IVar v)
{
    buf_puts(&p->body, ", ");
    put_ix(p, kernel_product_place(p->k, x, at, v));
}

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
static void put_operand(Printer *p, const KProduct *x, uint32_t buffer, Ix at)
{
    const KBuffer *b = &p->k->buffer.v[buffer];
    Ix first = kernel_product_place(p->k, x, at, 0);
    if (x->together && b->device.together) {
        buf_printf(&p->body, ", vwn_held_rows<%d>{rows%d, (uint32_t)(", b->device.bank, b->device.slot);
        put_ix(p, first);
        buf_puts(&p->body, ")}");
        return;
    }
    if (x->together && buffer != x->c) {
        buf_printf(&p->body, ", vwn_there<const %s>{&%s - nth * %" PRId64 " * (", half_word(b->half),
                   element_text(p, buffer, first), ix_info(p->k->ix, x->k)->extent.n);
        put_ix(p, kernel_product_place(p->k, x, at, x->k));
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
        put_ix(p, first);
        buf_puts(&p->body, loose ? ")}}" : ")}");
    } else {
        buf_printf(&p->body, ", vwn_there<%s%s>{&%s}", b->written ? "" : "const ", half_word(b->half),
                   element_text(p, buffer, first));
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

/* A literal is a type, so that the function which is called has it, too. */
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

/* ---- two products as one ---- */

/* An operand and how it steps with two loops. */
static void put_stepped(Printer *p, const KProduct *x, uint32_t buffer, Ix at, IVar v, IVar w)
{
    put_operand(p, x, buffer, at);
    put_step(p, x, at, v);
    if (w)
        put_step(p, x, at, w);
}

static void two_products(Printer *p, const KProduct *x, const KProduct *y)
{
    const IxTable *t = p->k->ix;
    begin_line(p);
    buf_printf(&p->body, "vwn_two_products_%s<THREADS / 32, ", p->k->calls ? "called" : "bf16");
    buf_printf(&p->body, "%s, ", left(x));
    buf_printf(&p->body, "%s, ", left(y));
    buf_printf(&p->body, "%s, ", right(x));
    buf_printf(&p->body, "%s, ", fours(x));
    buf_printf(&p->body, "%s>(", fours(y));
    const IVar size[4] = {x->m, y->m, x->n, x->k};
    for (int i = 0; i < 4; i++) {
        buf_puts(&p->body, i ? ", " : "");
        put_size(p, ix_info(t, size[i])->extent);
    }
    put_stepped(p, x, x->a, x->a_at, x->m, x->k);
    put_stepped(p, y, y->a, y->a_at, y->m, y->k);
    put_stepped(p, x, x->b, x->b_at, x->k, x->n);
    put_stepped(p, x, x->c, x->c_at, x->m, 0);
    put_stepped(p, y, y->c, y->c_at, y->m, 0);
    buf_puts(&p->body, ");\n");
}

/* The sum of two products, the first by both parts of a factor. */
static void sum_of_products(Printer *p, const KProduct *x, const KProduct *also)
{
    begin_line(p);
    buf_printf(&p->body, "vwn_sum_of_products_bf16<THREADS / 32, %s, ", left(also));
    buf_printf(&p->body, "%s>(", right(also));
    const IVar size[3] = {also->m, also->n, also->k};
    for (int i = 0; i < 3; i++) {
        buf_puts(&p->body, i ? ", " : "");
        put_size(p, ix_info(p->k->ix, size[i])->extent);
    }
    put_stepped(p, also, also->a, also->a_at, also->m, also->k);
    put_stepped(p, also, also->b, also->b_at, also->k, also->n);
    put_stepped(p, x, x->a, x->a_at, x->m, 0);
    put_operand(p, x, x->b, x->b_at);
    put_stepped(p, x, x->c, x->c_at, x->m, 0);
    buf_puts(&p->body, ");\n");
}

/* ---- one product ---- */

static void product_of_threads(Printer *p, const KProduct *x)
{
    const IxTable *t = p->k->ix;
    if (x->also) {
        sum_of_products(p, x, &p->k->product.v[x->also - 1]);
        return;
    }
    const char *a = left(x), *b = right(x), *c = lying_name[x->way.by_rows ? LIES_ALONG_OWN : LIES_STRIDED];
    const IVar loop[3] = {x->m, x->n, x->k};
    const char *lines = fours(x);
    if (x->together) {
        begin_line(p);
        buf_printf(&p->body, "if (nth == %d || r + 1 == last)\n    ", x->together - 1);
    }
    buf_printf(&p->body, "%*s", p->depth * 4, "");
    buf_printf(&p->body, "vwn_product%s<THREADS / 32, %s, %s, %s, %s",
               p->k->calls           ? "_called"
               : p->k->device.tensor ? "_bf16"
                                     : "",
               cut_name[x->way.cut], a, b, c);
    if (p->k->device.tensor)
        buf_printf(&p->body, ", %s, %s", x->way.sixteens ? "true" : "false", lines);
    buf_puts(&p->body, ">(");
    for (int i = 0; i < 3; i++) {
        buf_puts(&p->body, i ? ", " : "");
        Dim extent = ix_info(t, loop[i])->extent;
        if (i == 2 && x->together)
            buf_printf(&p->body, "(nth + 1) * %" PRId64, extent.n);
        else
            put_size(p, extent);
    }
    put_stepped(p, x, x->a, x->a_at, x->m, x->k);
    put_stepped(p, x, x->b, x->b_at, x->k, x->n);
    put_stepped(p, x, x->c, x->c_at, x->m, x->n);
    buf_puts(&p->body, ", ");
    put_size(p, DIM(x->add));
    buf_puts(&p->body, ");\n");
}

static void emit_product_of_threads(Printer *p, const KProduct *x)
{
    if (x->beside)
        two_products(p, x, &p->k->product.v[x->beside - 1]);
    else
        product_of_threads(p, x);
}

/* Where c lies transposed it is the product of the transposed factors in the other order. */
void emit_product(Printer *p, const KStmt *st)
{
    const IxTable *t = p->k->ix;
    const KProduct *x = &p->k->product.v[st->root];
    const bool rows = x->way.by_rows;
    if (!x->way.a)
        vwn_bug(p->k->ctx, "a product that nobody has found a way for");
    if (p->d->threads) {
        emit_product_of_threads(p, x);
        return;
    }
    IVar m = rows ? x->m : x->n, n = rows ? x->n : x->m;
    uint32_t a = rows ? x->a : x->b, b = rows ? x->b : x->a;
    Ix a_at = rows ? x->a_at : x->b_at, b_at = rows ? x->b_at : x->a_at;
    bool transposed = (rows ? x->way.b : x->way.a) != LIES_ALONG_OWN;
    buf_printf(&p->body, "%*s", p->depth * 4, "");
    buf_printf(&p->body, "%s(", transposed ? p->d->transposed : p->d->product);
    put_dim(p, ix_info(t, m)->extent);
    buf_puts(&p->body, ", ");
    put_dim(p, ix_info(t, n)->extent);
    buf_puts(&p->body, ", ");
    put_dim(p, ix_info(t, x->k)->extent);
    put_factor_of(p, x, a, a_at);
    put_step(p, x, a_at, m);
    put_step(p, x, a_at, x->k);
    put_factor_of(p, x, b, b_at);
    put_step(p, x, b_at, transposed ? n : x->k);
    put_factor_of(p, x, x->c, x->c_at);
    put_step(p, x, x->c_at, m);
    buf_printf(&p->body, ", %d);\n", x->add);
}
