/* kernel_verify_ways.c - is a product computed in a way that its shape and its places allow?
 *
 * In:  a product whose factors and result are sound, and its KProductWay.
 * Out: the first fault: pieces that leave out some of the result, neighbours that do not lie next to each other or begin where no
 *      load of several begins, a sum with a rest where there is to be none.
 * The one idea: what each way takes for granted is computed here from the steps of the operands, at the kernel's own sizes.
 */
#include "kernel_verify.h"

enum { FEW = 16, LESS = 8, SUM_OF_WARP = 32 };

static int64_t length(const Check *c, IVar v) { return ix_dim_at(c->k->ix, ix_info(c->k->ix, v)->extent); }

/* Is each step of a place a multiple, but for that of `along`? */
static bool begins_at(const Check *c, Ix at, IVar along, int64_t multiple)
{
    const IxForm *f = ix_form(c->k->ix, at);
    for (uint32_t i = 0; i < f->n; i++)
        if (f->t[i].var != along && f->t[i].mult * ix_dim_at(c->k->ix, f->t[i].coef) % multiple)
            return false;
    return true;
}

static void check_lying(Check *c, KLying how, Ix at, IVar own, IVar sum, int64_t own_step, int64_t sum_step,
                        int64_t piece)
{
    bool by_sum = how == LIES_ALONG_SUM;
    if (how > LIES_ALONG_OWN)
        verify_fault(c, "a factor that lies in no way");
    if (how != LIES_ALONG_SUM && how != LIES_ALONG_OWN)
        return;
    if ((by_sum ? sum_step : own_step) != 1 || (piece && !begins_at(c, at, by_sum ? sum : own, piece)))
        verify_fault(c, "neighbours of a factor that do not lie next to each other");
    else if (by_sum && piece && length(c, sum) % piece)
        verify_fault(c, "neighbours of a factor that are not all terms of the sum");
}

static void check_lyings(Check *c, const KProduct *x, const ProductSteps *s, bool device)
{
    const KBuffer *a = &c->k->buffer.v[x->a], *b = &c->k->buffer.v[x->b];
    check_lying(c, x->way.a, x->a_at, x->m, x->k, s->am, s->ak,
                device ? product_piece(a->tile, c->k->device.tensor) : 0);
    check_lying(c, x->way.b, x->b_at, x->n, x->k, s->bn, s->bk,
                device ? product_piece(b->tile, c->k->device.tensor) : 0);
}

/* Which results do pieces of a cut have all of? m and n: as they are multiplied. */
static bool has_all(ProductCut cut, int64_t m, int64_t n)
{
    switch (cut) {
    case CUT_WIDE_PIECES: return true;
    case CUT_FEW_COLUMNS:
    case CUT_LONG_COLUMNS:
    case CUT_SHORT_COLUMNS: return n <= FEW;
    case CUT_FEW_ROWS:
    case CUT_LONG_ROWS:
    case CUT_SHORT_ROWS: return m <= FEW;
    case CUT_FEW_NUMBERS:
    case CUT_FEW_EIGHTS: return m <= FEW && n <= LESS;
    case CUT_MORE_NUMBERS:
    case CUT_MORE_EIGHTS: return m <= 2 * FEW && n <= LESS;
    case CUT_ROWS_BY_PARTS: return m <= LESS;
    default: return false;
    }
}

static void check_cut(Check *c, const KProduct *x, const ProductSteps *s)
{
    const KProductWay *way = &x->way;
    const int64_t m = length(c, x->m), n = length(c, x->n), sum = length(c, x->k);
    const bool is_short = way->cut == CUT_SHORT_ROWS || way->cut == CUT_SHORT_COLUMNS,
               eights = way->cut == CUT_FEW_EIGHTS || way->cut == CUT_MORE_EIGHTS,
               parts = way->cut == CUT_ROWS_BY_PARTS, turned = product_cut_shares(way->cut) && !way->by_rows;
    if (!c->k->device.tensor && way->cut != CUT_WIDE_PIECES && way->cut != CUT_FEW_COLUMNS)
        verify_fault(c, "pieces of tensor cores where there are none");
    else if (c->k->device.tensor && !has_all(way->cut, turned ? n : m, turned ? m : n))
        verify_fault(c, "a product whose pieces leave out some of it");
    else if (is_short && sum > FEW)
        verify_fault(c, "a product whose pieces leave out terms of its sum");
    else if ((eights || parts) && (s->ak != 1 || s->bk != 1 || !begins_at(c, x->a_at, x->k, LESS) || sum % LESS))
        verify_fault(c, "eights of terms that do not lie next to each other");
    else if (eights && (!begins_at(c, x->b_at, x->k, LESS) || sum % SUM_OF_WARP))
        verify_fault(c, "eights of terms that are not all of the sum");
    else if (parts != x->parts || (parts && (sum != FEW || s->bn != 2 * FEW || n % SUM_OF_WARP || !way->by_rows)))
        verify_fault(c, "a product by two parts of other sizes");
}

/* A few numbers are stored one by one; all else in rows, or in rows of the turned product. */
static void check_lines(Check *c, const KProduct *x, const ProductSteps *s)
{
    enum { FOUR = 4 };
    const KProductWay *way = &x->way;
    const bool rows = way->cut == CUT_SHORT_ROWS || way->cut == CUT_ROWS_BY_PARTS;
    const IVar lines = rows ? x->n : x->m;
    if (way->along != x->m && way->along != x->n)
        verify_fault(c, "a result that is contiguous along no loop of it");
    else if ((way->along == x->n ? s->cn : s->cm) != 1 ||
             (!product_cut_shares(way->cut) && way->by_rows != (way->along == x->n)))
        verify_fault(c, "a result that is not contiguous along its rows");
    else if (way->line && way->line != FOUR && way->line != SUM_OF_WARP)
        verify_fault(c, "lines of a result of another length");
    else if (way->line
                 ? !begins_at(c, x->c_at, way->along, FOUR) || (c->k->device.tensor && length(c, way->along) % FOUR)
                 : !c->k->device.tensor)
        verify_fault(c, "rows of a result that do not begin at multiples of four");
    else if (way->line == SUM_OF_WARP &&
             ((!rows && way->cut != CUT_SHORT_COLUMNS) || length(c, lines) % SUM_OF_WARP ||
              (c->k->buffer.v[x->c].tile && !begins_at(c, x->c_at, way->along, SUM_OF_WARP))))
        verify_fault(c, "lines of a result that are not whole");
    else if (way->sixteens && length(c, x->k) % FEW)
        verify_fault(c, "a sum of sixteens with a rest");
}

/* Nothing is said of a product before its pass has run; it is not printed then. */
void verify_way(Check *c, const KProduct *x)
{
    const bool device = c->k->device.mapping.row_threads;
    ProductSteps s;
    if (c->why || (!x->way.a && !x->way.b && !x->way.cut && !(device && c->k->device.grid.threads)))
        return;
    if (!x->way.a || !x->way.b || device != (x->way.cut != CUT_NONE) || !product_steps(c->k, x, &s)) {
        verify_fault(c, "a product of which it is not said how it is computed");
        return;
    }
    check_lyings(c, x, &s, device);
    if (device && !c->why)
        check_cut(c, x, &s);
    if (device && !c->why)
        check_lines(c, x, &s);
    else if (!device && !c->why &&
             (x->way.by_rows ? s.cn != 1 || x->way.b == LIES_APART : s.cm != 1 || x->way.a == LIES_APART))
        verify_fault(c, "a product without neighbours to make vectors of");
}
