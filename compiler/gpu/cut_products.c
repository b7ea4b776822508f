/* cut_products.c - how the threads of a block multiply for one row.
 *
 * In:  a kernel that is mapped to threads.     Out: KProduct.way: the pieces of the result, along which loop factors are loaded, what
 *      extents and places are multiples of; Kernel.calls.
 * Requires: tiles have places.     Proved by: kernel_check(), kernel_race().
 * The one idea: the shape of a product says how it is cut (kernel_product_cut()), and whether two of them, or those of several rows, fill
 * the fragments of tensor cores together; no other file asks for its extents. Places of factors are forms, so their terms say whether neighbours can be loaded together. What a text relies on
 * holds at the kernel's own sizes, and a launch of other sizes is refused.
 */
#include "device.h"

/* What a fragment of tensor cores has of rows and of columns at most. */
enum { FEW = 16, LESS = 8 };

static int64_t length(const Kernel *k, IVar v) { return ix_dim_at(k->ix, ix_info(k->ix, v)->extent); }

/* At least eight elements for each thread; on tensor cores 32 x 32, or, where one extent is that of a piece at most, pieces that leave none of
 * the warps without one; of a short sum each warp has one factor in registers for all of its pieces. A few numbers are one piece, of whose sum
 * each warp has a share. */
ProductCut kernel_product_cut(const Kernel *k, const KProduct *x)
{
    const Tuned *tuned = k->target->tuned;
    Dim depth = ix_info(k->ix, x->k)->extent;
    int64_t m = length(k, x->m), n = length(k, x->n);
    if (!k->device.tensor)
        return m * n >= (int64_t)k->device.mapping.row_threads * tuned->product_each ? CUT_WIDE_PIECES
                                                                                     : CUT_FEW_COLUMNS;
    bool is_few = (m <= FEW && n <= LESS) || (m <= LESS && n <= FEW),
         is_more = (m <= 2 * FEW && n <= LESS) || (m <= LESS && n <= 2 * FEW);
    if (is_more && ix_dim_at(k->ix, depth) >= tuned->deep_sum)
        return is_few ? CUT_FEW_NUMBERS : CUT_MORE_NUMBERS;
    bool is_short = ix_literal(k->ix, depth) && depth.n <= FEW;
    if (n <= FEW)
        return m < tuned->long_side ? CUT_FEW_COLUMNS : is_short ? CUT_SHORT_COLUMNS : CUT_LONG_COLUMNS;
    return m > FEW ? CUT_WIDE_PIECES : n < tuned->long_side ? CUT_FEW_ROWS : is_short ? CUT_SHORT_ROWS : CUT_LONG_ROWS;
}

bool kernel_product_shares(const Kernel *k, const KProduct *x)
{
    return k->device.tensor && product_cut_shares(kernel_product_cut(k, x));
}

bool kernel_product_is_half(const Kernel *k, const KProduct *x)
{
    return kernel_product_cut(k, x) == CUT_SHORT_ROWS && length(k, x->m) <= LESS;
}

/* Does the factor of the next row begin where the terms of this one end? Then several rows are one longer sum. */
static bool goes_on(const Kernel *k, const KProduct *p, uint32_t buffer, Ix at, int64_t deep)
{
    const KBuffer *b = &k->buffer.v[buffer];
    int64_t terms = ix_dim_at(k->ix, ix_info(k->ix, p->k)->extent), row = 0;
    if (b->tile)
        return !b->half && !b->device.split && terms * deep == b->elements &&
               b->elements % ((int64_t)8 << b->device.bank) == 0; /* whose elements keep their places (vwn_bank_rows) */
    return !b->written && ix_slope(k->ix, at, k->row, &row) && row == terms * deep;
}

/* A sum over rows of products whose sums have eight terms and less: tensor cores take sixteen, and what has to be read and written for
 * each row is the whole result. Of four rows where a thread loads four neighbours of a factor (vwn_tensor_four_rows), else of two; 0: of each. */
uint8_t kernel_product_rows(const Kernel *k, const KProduct *p)
{
    enum { EIGHT = 8, LINE = 32, FOUR = 4 };
    ProductSteps s;
    ProductCut cut = kernel_product_cut(k, p);
    const KBuffer *a = &k->buffer.v[p->a], *b = &k->buffer.v[p->b];
    Dim depth = ix_info(k->ix, p->k)->extent;
    if (!k->part || !p->add || k->buffer.v[p->c].tile || (cut != CUT_SHORT_ROWS && cut != CUT_SHORT_COLUMNS) ||
        a->tile == b->tile || !ix_literal(k->ix, depth) || depth.n > EIGHT || !product_steps(k, p, &s) ||
        !goes_on(k, p, p->a, p->a_at, s.ak) || !goes_on(k, p, p->b, p->b_at, s.bk))
        return 0;
    bool fours = cut == CUT_SHORT_COLUMNS && s.cn == 1 && s.am == 1 && !a->tile &&
                 ix_dim_at(k->ix, ix_info(k->ix, p->m)->extent) % LINE == 0 &&
                 ix_dim_at(k->ix, ix_info(k->ix, p->n)->extent) % FOUR == 0;
    return fours ? 4 : 2;
}

/* A few numbers are stored one by one, so that it is the shape of a fragment that counts, and not how they lie. */
static bool is_by_rows(const Kernel *k, const KProduct *x, const ProductSteps *s)
{
    if (!product_cut_shares(x->way.cut))
        return s->cn == 1;
    return length(k, x->n) <= LESS && (s->cn == 1 || length(k, x->m) > LESS);
}

/* Do pieces of so many elements of an operand begin at multiples of as many? */
static bool in_pieces(const Kernel *k, const KProduct *x, Ix at, bool along_sum, int64_t piece)
{
    const IxForm *f = ix_form(k->ix, at);
    for (uint32_t i = 0; i < f->n; i++) {
        const IxTerm *t = &f->t[i];
        bool one = dim_eq(t->coef, DIM(1)) && t->mult == 1 && (t->var == x->m || t->var == x->n || t->var == x->k);
        if (!one && t->mult % piece && ix_dim_at(k->ix, t->coef) % piece)
            return false;
    }
    return !along_sum || length(k, x->k) % piece == 0;
}

static KLying lies(const Kernel *k, const KProduct *x, uint32_t buffer, Ix at, int64_t own, int64_t sum)
{
    bool along_sum = own != 1;
    if ((along_sum && sum != 1) ||
        !in_pieces(k, x, at, along_sum, product_piece(k->buffer.v[buffer].tile, k->device.tensor)))
        return LIES_STRIDED;
    return along_sum ? LIES_ALONG_SUM : LIES_ALONG_OWN;
}

/* Both factors of a product of few numbers may lie along the sum, in eights, and the sum may be of 32s. Then a thread loads eight terms at
 * one time. */
static ProductCut cut_of(const Kernel *k, const KProduct *x, const ProductSteps *s)
{
    enum { EIGHT = 8, TERMS = 32 };
    ProductCut cut = x->split ? CUT_ROWS_BY_PARTS : kernel_product_cut(k, x);
    if (!k->device.tensor || !product_cut_shares(cut) || s->ak != 1 || s->bk != 1 ||
        !in_pieces(k, x, x->a_at, true, EIGHT) || !in_pieces(k, x, x->b_at, true, EIGHT) || length(k, x->k) % TERMS)
        return cut;
    return cut == CUT_FEW_NUMBERS ? CUT_FEW_EIGHTS : CUT_MORE_EIGHTS;
}

/* The length of the lines in which a result is stored: 4 where its rows begin at multiples of four; 32, one for each thread of a warp,
 * where besides it is a sum of sixteen terms or less and its long extent is of 32s; 0 where neither holds. Lines of a tile begin at
 * multiples of their length. */
static uint8_t line_of(const Kernel *k, const KProduct *x)
{
    enum { FOUR = 4, LINE = 32 };
    ProductCut cut = x->way.cut;
    if (!in_pieces(k, x, x->c_at, false, FOUR) || (k->device.tensor && length(k, x->way.along) % FOUR))
        return 0;
    bool rows = cut == CUT_SHORT_ROWS || cut == CUT_ROWS_BY_PARTS;
    bool lines = (rows || cut == CUT_SHORT_COLUMNS) && length(k, rows ? x->n : x->m) % LINE == 0 &&
                 (!k->buffer.v[x->c].tile || in_pieces(k, x, x->c_at, false, LINE));
    return lines ? LINE : FOUR;
}

/* A kernel of several products on tensor cores calls them, which takes a compiler less time and no more
 * registers. One with sums over rows and only some products does not: what it keeps in registers across a
 * call would cost it its second block. */
static bool calls_products(const Kernel *k)
{
    const Tuned *tuned = k->target->tuned;
    return k->device.tensor && (int64_t)k->product.n >= (k->part ? tuned->calls_of_sums_least : tuned->calls_least);
}

void kernel_cut_products(Kernel *k)
{
    enum { SIXTEEN = 16 };
    const KProduct *from = k->product.v;
    k->calls = calls_products(k);
    if (!k->product.n)
        return;
    k->product.v = memcpy(NEW_ARRAY(k->arena, KProduct, k->product.n), from, k->product.n * sizeof *from);
    for (size_t i = 0; i < k->product.n; i++) {
        KProduct *x = &k->product.v[i];
        KProductWay *way = &x->way;
        ProductSteps s;
        if (!product_steps(k, x, &s))
            vwn_bug(k->ctx, "a product without steps");
        way->along = s.cn == 1 ? x->n : x->m;
        way->cut = cut_of(k, x, &s);
        way->a = lies(k, x, x->a, x->a_at, s.am, s.ak);
        way->b = lies(k, x, x->b, x->b_at, s.bn, s.bk);
        way->by_rows = is_by_rows(k, x, &s);
        way->line = line_of(k, x);
        way->sixteens = k->device.tensor && length(k, x->k) % SIXTEEN == 0;
    }
}
