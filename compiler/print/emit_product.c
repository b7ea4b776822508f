/* emit_product.c - products of one row as statements of a text.
 *
 * In:  a KProduct with its places.     Out: a call of vwn_product in the printer's body.
 * The one idea: places are forms of the row and of three loops, so their slopes are the steps; a
 * device's text also says where fours of an operand begin, and relies on the sizes that make it so.
 * Whether it takes tensor cores is Kernel.tensor.
 */
#include "compiler/gpu/device.h"
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

/* Does the text count on fours, or eights, of an operand, which steps with `own` and `deep`? Then it does on the
 * sizes that let them begin at multiples of so many. */
static bool in_pieces(Printer *p, const KProduct *x, Ix at, IVar deep, bool along_sum, uint8_t piece)
{
    const IxForm *f = ix_form(p->k->ix, at);
    for (int assume = 0; assume < 2; assume++)
        for (uint32_t i = 0; i < f->n; i++) {
            const IxTerm *t = &f->t[i];
            bool one = dim_eq(t->coef, DIM(1)) && t->mult == 1;
            if (one && (t->var == x->m || t->var == x->n || t->var == x->k))
                continue;
            if (t->mult % piece && ix_dim_at(p->k->ix, t->coef) % piece)
                return false;
            if (assume && t->mult % piece)
                assume_multiple(p, t->coef, piece);
        }
    if (along_sum && (ix_info(p->k->ix, deep)->hi + 1) % piece)
        return false;
    if (along_sum)
        assume_multiple(p, ix_info(p->k->ix, deep)->extent, piece);
    return true;
}

/* ---- products of several rows ---- */

const KBuffer *emit_rows_of(const Kernel *k, size_t place)
{
    for (size_t i = 0; i < k->buffer.n; i++)
        if (k->buffer.v[i].together && k->buffer.v[i].slot == (int)place)
            return &k->buffer.v[i];
    return NULL;
}

void emit_row_places(Printer *p)
{
    bool some = false;
    for (size_t i = 0; i < p->k->tile_slot.n; i++) {
        const KBuffer *b = emit_rows_of(p->k, i);
        if (!b)
            continue;
        begin_line(p);
        if (!some) {
            buf_printf(&p->body, "const int nth = (int)(r - first) %% %u;\n", b->together);
            begin_line(p);
        }
        some = true;
        buf_printf(&p->body, "real *const u%zu = rows%zu + nth * ", i, i);
        put_dim(p, DIM(b->elements));
        buf_puts(&p->body, ";\n");
    }
}

/* ---- operands ---- */

/* An operand for threads: what it lies in and where it begins. */
static void put_operand(Printer *p, const KProduct *x, uint32_t buffer, Ix at)
{
    const KBuffer *b = &p->k->buffer.v[buffer];
    Ix first = kernel_product_place(p->k, x, at, 0);
    if (x->together && b->together) {
        buf_printf(&p->body, ", vwn_held_rows<%d>{rows%d, (uint32_t)(", b->bank, b->slot);
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
        bool loose = p->k->tensor && b->rounded && !half_info(b->rounded)->in_tiles;
        if (b->half || b->parts)
            buf_printf(&p->body, ", vwn_held_%s<%d>{vwn_bf16_tile(u%d), (uint32_t)(",
                       b->half ? half_word(b->half) : "parts", b->bank, b->slot);
        else if (loose)
            buf_printf(&p->body, ", vwn_rounded_%s<%d>{vwn_held_rows<%d>{u%d, (uint32_t)(", half_word(b->rounded),
                       b->bank, b->bank, b->slot);
        else if (p->k->tensor)
            buf_printf(&p->body, ", vwn_held_rows<%d>{u%d, (uint32_t)(", b->bank, b->slot);
        else
            buf_printf(&p->body, ", vwn_held{u%d, (uint32_t)(", b->slot);
        put_ix(p, first);
        buf_puts(&p->body, loose ? ")}}" : ")}");
    } else {
        buf_printf(&p->body, ", vwn_there<%s%s>{&%s}", b->written ? "" : "const ", half_word(b->half),
                   element_text(p, buffer, first));
    }
}

static const char *neighbours(Printer *p, const KProduct *x, uint32_t buffer, Ix at, IVar deep, int64_t own,
                              int64_t sum)
{
    const KBuffer *b = &p->k->buffer.v[buffer];
    bool along_sum = own != 1;
    if ((own != 1 && sum != 1) || !in_pieces(p, x, at, deep, along_sum, b->tile && p->k->tensor ? 8 : 4))
        return "VWN_APART";
    return along_sum ? "VWN_ALONG_SUM" : "VWN_ALONG_OWN";
}

/* Does the text count on whole pieces of a loop? */
static bool is_multiple(Printer *p, IVar loop, uint8_t piece)
{
    Dim extent = ix_info(p->k->ix, loop)->extent;
    if (ix_dim_at(p->k->ix, extent) % piece)
        return false;
    assume_multiple(p, extent, piece);
    return true;
}

static const char *const cut_name[] = {[CUT_WIDE_PIECES] = "VWN_WIDE_PIECES",     [CUT_FEW_COLUMNS] = "VWN_FEW_COLUMNS",
                                       [CUT_FEW_ROWS] = "VWN_FEW_ROWS",           [CUT_LONG_ROWS] = "VWN_LONG_ROWS",
                                       [CUT_LONG_COLUMNS] = "VWN_LONG_COLUMNS",   [CUT_SHORT_ROWS] = "VWN_SHORT_ROWS",
                                       [CUT_SHORT_COLUMNS] = "VWN_SHORT_COLUMNS", [CUT_FEW_NUMBERS] = "VWN_FEW_NUMBERS",
                                       [CUT_MORE_NUMBERS] = "VWN_MORE_NUMBERS"};

/* A literal is a type, so that the function which is called has it, too. */
static void put_size(Printer *p, Dim d)
{
    if (kernel_calls_products(p->k) && ix_literal(p->k->ix, d))
        buf_printf(&p->body, "vwn_is<%" PRId64 ">()", d.n);
    else
        put_dim(p, d);
}

/* Does a long extent of a result come in 32s, and a tile's lines begin at multiples of these? */
static bool in_lines(Printer *p, const KProduct *x, IVar along)
{
    enum { LINE = 32 };
    return is_multiple(p, along, LINE) && (!p->k->buffer.v[x->c].tile || in_pieces(p, x, x->c_at, x->k, false, LINE));
}

/* How a product is cut. Of a few numbers both factors may lie along the sum, in eights, which is of 32s: then a thread loads eight terms
 * at one time. */
static const char *cut_of(Printer *p, const KProduct *x, const ProductSteps *s)
{
    enum { EIGHT = 8, TERMS = 32 };
    ProductCut cut = kernel_product_cut(p->k, x);
    bool numbers = cut == CUT_FEW_NUMBERS || cut == CUT_MORE_NUMBERS;
    if (!numbers || s->ak != 1 || s->bk != 1 || !in_pieces(p, x, x->a_at, x->k, true, EIGHT) ||
        !in_pieces(p, x, x->b_at, x->k, true, EIGHT) || !is_multiple(p, x->k, TERMS))
        return cut_name[cut];
    return cut == CUT_FEW_NUMBERS ? "VWN_FEW_EIGHTS" : "VWN_MORE_EIGHTS";
}

/* Do rows of a result begin at multiples of four? Then of eight terms and less its long extent may come in 32s, which are a warp's; lines of a
 * tile begin at multiples of these, too. */
static const char *fours_of(Printer *p, const KProduct *x, const ProductSteps *s)
{
    enum { FOUR = 4 };
    ProductCut cut = p->k->tensor ? kernel_product_cut(p->k, x) : CUT_WIDE_PIECES;
    if (!in_pieces(p, x, x->c_at, x->k, false, FOUR) ||
        (p->k->tensor && !is_multiple(p, s->cn == 1 ? x->n : x->m, FOUR)))
        return "false";
    bool is_short = cut == CUT_SHORT_ROWS || cut == CUT_SHORT_COLUMNS;
    return is_short && in_lines(p, x, cut == CUT_SHORT_ROWS ? x->n : x->m) ? "32" : "true";
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
    ProductSteps s, u;
    if (!product_steps(p->k, x, &s) || !product_steps(p->k, y, &u))
        vwn_bug(p->k->ctx, "a product without steps");
    begin_line(p);
    buf_printf(&p->body, "vwn_two_products_%s<THREADS / 32, ", kernel_calls_products(p->k) ? "called" : "bf16");
    buf_printf(&p->body, "%s, ", neighbours(p, x, x->a, x->a_at, x->k, s.am, s.ak));
    buf_printf(&p->body, "%s, ", neighbours(p, y, y->a, y->a_at, y->k, u.am, u.ak));
    buf_printf(&p->body, "%s, ", neighbours(p, x, x->b, x->b_at, x->k, s.bn, s.bk));
    buf_printf(&p->body, "%s, ", fours_of(p, x, &s));
    buf_printf(&p->body, "%s>(", fours_of(p, y, &u));
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
    ProductSteps s;
    if (!product_steps(p->k, also, &s))
        vwn_bug(p->k->ctx, "a product without steps");
    begin_line(p);
    buf_printf(&p->body, "vwn_sum_of_products_bf16<THREADS / 32, %s, ",
               neighbours(p, also, also->a, also->a_at, also->k, s.am, s.ak));
    buf_printf(&p->body, "%s>(", neighbours(p, also, also->b, also->b_at, also->k, s.bn, s.bk));
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

/* A product by both parts of a factor, which decompose() makes of such sizes alone. */
static const char *cut_by_parts(Printer *p, const KProduct *x, const ProductSteps *s)
{
    enum { EIGHT = 8, TERMS = 16 };
    if (kernel_product_cut(p->k, x) != CUT_SHORT_ROWS || !kernel_product_by_rows(p->k, x) || s->ak != 1 || s->bk != 1 ||
        s->bn != 2 * TERMS || ix_info(p->k->ix, x->m)->hi >= EIGHT || ix_info(p->k->ix, x->k)->hi + 1 != TERMS ||
        !in_pieces(p, x, x->a_at, x->k, true, EIGHT) || !in_lines(p, x, x->n))
        vwn_bug(p->k->ctx, "a product by two parts of other sizes");
    return "VWN_ROWS_BY_PARTS";
}

static void product_of_threads(Printer *p, const KProduct *x, const ProductSteps *s)
{
    const IxTable *t = p->k->ix;
    const char *cut = x->parts ? cut_by_parts(p, x, s) : cut_of(p, x, s);
    if (x->also) {
        sum_of_products(p, x, &p->k->product.v[x->also - 1]);
        return;
    }
    const char *c = kernel_product_by_rows(p->k, x) ? "VWN_ALONG_OWN" : "VWN_APART";
    const char *a = neighbours(p, x, x->a, x->a_at, x->k, s->am, s->ak);
    const char *b = neighbours(p, x, x->b, x->b_at, x->k, s->bn, s->bk);
    const IVar loop[3] = {x->m, x->n, x->k};
    const char *fours = fours_of(p, x, s);
    if (x->together) {
        begin_line(p);
        buf_printf(&p->body, "if (nth == %d || r + 1 == last)\n    ", x->together - 1);
    }
    if (!p->k->tensor && !strcmp(fours, "false"))
        vwn_bug(p->k->ctx, "a product of a row whose rows do not begin at multiples of four");
    buf_printf(&p->body, "%*s", p->depth * 4, "");
    buf_printf(&p->body, "vwn_product%s<THREADS / 32, %s, %s, %s, %s",
               kernel_calls_products(p->k) ? "_called"
               : p->k->tensor              ? "_bf16"
                                           : "",
               cut, a, b, c);
    if (p->k->tensor)
        buf_printf(&p->body, ", %s, %s", is_multiple(p, x->k, 16) ? "true" : "false", fours);
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
    if (!p->k->tensor) {
        assume_multiple(p, ix_info(t, x->m)->extent, PRODUCT_LANES);
        assume_multiple(p, ix_info(t, x->n)->extent, PRODUCT_LANES);
    }
}

static void emit_product_of_threads(Printer *p, const KStmt *st)
{
    const KProduct *x = &p->k->product.v[st->root];
    ProductSteps s;
    if (x->beside) {
        two_products(p, x, &p->k->product.v[x->beside - 1]);
        return;
    }
    if (!product_steps(p->k, x, &s))
        vwn_bug(p->k->ctx, "a product without steps");
    product_of_threads(p, x, &s);
}

/* Where c lies transposed it is the product of the transposed factors in the other order. */
void emit_product(Printer *p, const KStmt *st)
{
    const IxTable *t = p->k->ix;
    const KProduct *x = &p->k->product.v[st->root];
    ProductSteps s;
    if (p->d->threads) {
        emit_product_of_threads(p, st);
        return;
    }
    if (!product_steps(p->k, x, &s))
        vwn_bug(p->k->ctx, "a product without steps");
    bool along_n = product_along_n(&s);
    IVar m = along_n ? x->m : x->n, n = along_n ? x->n : x->m;
    uint32_t a = along_n ? x->a : x->b, b = along_n ? x->b : x->a;
    Ix a_at = along_n ? x->a_at : x->b_at, b_at = along_n ? x->b_at : x->a_at;
    bool transposed = (along_n ? s.bn : s.am) != 1;
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
    assume_multiple(p, ix_info(t, m)->extent, PRODUCT_LANES);
    assume_multiple(p, ix_info(t, n)->extent, PRODUCT_LANES);
}
