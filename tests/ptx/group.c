/* group.c - products of matrices: of a warp (mma), and of a warpgroup (wgmma), which are waited for.
 *
 * Terms are multiplied exactly and added in float64, then rounded to float32 once: the ISA leaves the order open.
 */
#include "code.h"
#include "number.h"

#include <string.h>

enum { ROWS = 16, TERMS = 16, MOST_COLUMNS = 256 };

static float number_half(uint32_t u) { return (float)of_half((uint16_t)u); }
static float number_brain(uint32_t u) { return of_brain((uint16_t)u); }
typedef float Of(uint32_t);

/* Lane l has of word r of a: row l / 4, and 8 more where r is odd; terms 2 (l % 4) and the next, and 8 more from r = 2 on. */
static void gather_a(const Warp *w, const uint32_t *list, Of *of, int terms, float a[ROWS][TERMS])
{
    for (int r = 0; r < terms / 4; r++)
        for (int l = 0; l < LANES; l++) {
            const uint32_t x = ((const uint32_t *)(const void *)(w->file + list[r]))[l];
            float *to = &a[l / 4 + r % 2 * 8][l % 4 * 2 + r / 2 * 8];
            to[0] = of(x);
            to[1] = of(x >> 16);
        }
}

static void mma(Warp *w, const Inst *i, Of *of)
{
    const uint32_t *list = w->block->f->list;
    const int terms = strstr(i->name, "n8k16") ? 16 : 8;
    float a[ROWS][TERMS], b[TERMS][8], c[4][LANES];
    gather_a(w, list + i->at[1], of, terms, a);
    for (int r = 0; r < terms / 8; r++)
        for (int l = 0; l < LANES; l++) {
            const uint32_t x = LIST(uint32_t, 2, r)[l];
            b[l % 4 * 2 + r * 8][l / 4] = of(x);
            b[l % 4 * 2 + r * 8 + 1][l / 4] = of(x >> 16);
        }
    double sum[ROWS][8];
    for (int r = 0; r < ROWS; r++) {
        for (int n = 0; n < 8; n++)
            sum[r][n] = 0;
        for (int k = 0; k < terms; k++)
            for (int n = 0; n < 8; n++)
                sum[r][n] += (double)a[r][k] * (double)b[k][n];
    }
    for (int r = 0; r < 4; r++)
        for (int l = 0; l < LANES; l++)
            c[r][l] = (float)(sum[l / 4 + r / 2 * 8][l % 4 * 2 + r % 2] + (double)LIST(float, 3, r)[l]);
    for (int r = 0; r < 4; r++)
        memcpy(LIST(float, 0, r), c[r], sizeof c[r]);
}
Run mma_bf16, mma_f16;
void mma_bf16(Warp *w, const Inst *i) { mma(w, i, number_brain); }
void mma_f16(Warp *w, const Inst *i) { mma(w, i, number_half); }

/* ---- warpgroups ---- */

/* A matrix in shared memory as its descriptor has it: where it begins, how far apart panels of 64 and eights of rows are. Only lines of
 * 128 bytes in turned pieces are known. */
typedef struct Matrix {
    uint32_t at, panel, eights;
} Matrix;

static Matrix matrix_of(Warp *w, const Inst *i, uint64_t d)
{
    if (d >> 62 != 1)
        fault(w, i, "a matrix whose lines have no 128 bytes");
    if (d >> 49 & 7)
        fault(w, i, "a matrix whose pattern has a base of its own");
    return (Matrix){(uint32_t)(d & 0x3fff) << 4, (uint32_t)(d >> 16 & 0x3fff) << 4, (uint32_t)(d >> 32 & 0x3fff) << 4};
}

/* Number `own` of term k: terms lie along lines, or, turned, lines lie along the other extent. */
static uint32_t place(const Matrix *m, bool turned, uint32_t own, uint32_t k)
{
    uint32_t at = turned ? m->at + own / 64 * m->panel + k / 8 * m->eights + k % 8 * 128 + own % 64 * 2
                         : m->at + own / 8 * m->eights + own % 8 * 128 + k * 2;
    return at ^ (at >> 7 & 7) << 4;
}

/* The 16 bytes with these numbers: they have come when the product is asked for, and nobody writes them until it is done. */
static void piece(Warp *w, const Product *p, uint32_t at, bool asked)
{
    const Inst *i = p->inst;
    const uint8_t *state = w->block->state;
    shared_check(w, i, at, 16, 16);
    for (uint32_t q = at; q < at + 16; q++)
        if (state[q] != WRITTEN)
            fault(w, i, "byte %u of shared memory is multiplied, %s", q,
                  state[q] == UNWRITTEN ? "which nobody wrote" : "to which a copy is under way");
    order_product(w, i, at, 16, asked ? 0 : p->since);
}

/* Numbers first ... first + n - 1, sixteen terms of each. to: NULL when the product is asked for. */
static void gather(Warp *w, const Product *p, uint64_t descriptor, bool turned, uint32_t first, uint32_t n,
                   float (*to)[TERMS])
{
    Of *of = p->inst->bf16 ? number_brain : number_half;
    const Matrix m = matrix_of(w, p->inst, descriptor);
    for (uint32_t r = 0; r < n; r++)
        for (uint32_t k = 0; k < TERMS; k++) {
            const uint32_t at = place(&m, turned, first + r, k);
            uint16_t x;
            if (at % 16 == 0)
                piece(w, p, at, !to);
            if (!to)
                continue;
            memcpy(&x, w->block->shared + at, sizeof x);
            to[r][k] = of(x);
        }
}

static void factors(Warp *w, const Product *p, float (*a)[TERMS], float (*b)[TERMS])
{
    const Inst *i = p->inst;
    if (!i->held)
        gather(w, p, p->a, i->at[6], ROWS * ((uint32_t)w->index % 4), ROWS, a);
    gather(w, p, p->b, i->held ? i->at[6] : i->at[7], 0, i->n * 2, b);
}

static void product_finish(Warp *w, Product *p)
{
    const Inst *i = p->inst;
    float a[ROWS][TERMS], b[MOST_COLUMNS][TERMS];
    factors(w, p, a, b);
    if (i->held)
        gather_a(w, w->block->f->list + i->at[1], i->bf16 ? number_brain : number_half, TERMS, a);
    for (uint32_t k = 0; k < i->n; k++)
        for (uint32_t l = 0; l < LANES; l++) {
            const float *x = a[l / 4 + k % 4 / 2 * 8], *y = b[k / 4 * 8 + l % 4 * 2 + k % 2];
            float *d = &LIST(float, 0, k)[l];
            double sum = p->more ? (double)*d : 0;
            for (uint32_t t = 0; t < TERMS; t++)
                sum += (double)x[t] * (double)y[t];
            *d = (float)sum;
        }
    p->done = true;
}

void products_finish(Warp *w, uint32_t left)
{
    size_t kept = 0;
    for (size_t k = 0; k < w->n_product; k++) {
        Product *p = &w->product[k];
        if (p->group + left >= w->groups)
            w->product[kept++] = *p;
        else if (!p->done)
            product_finish(w, p);
    }
    w->n_product = kept;
}

/* All four warps ask for the same: whoever comes second is compared with the first. */
static void same_for_all(Warp *w, const Inst *i, uint64_t a, uint64_t b)
{
    struct Asked *asked = &w->block->asked[w->index / 4][w->asked++ % PRODUCTS];
    const uint64_t what = (uint64_t)(uintptr_t)i * 31 + a * 1000003 + b;
    if (asked->n % 4 == 0)
        asked->what = what;
    if (asked->what != what)
        fault(w, i, "the warps of a group ask for different products");
    asked->n++;
}

static uint64_t of_all(Warp *w, const Inst *i, int k)
{
    const uint64_t *x = AT(uint64_t, k);
    for (int l = 1; l < LANES; l++)
        if (x[l] != x[0])
            fault(w, i, "threads of a warp name different matrices");
    return x[0];
}

Run group_product, group_fence, group_commit, group_wait;
void group_product(Warp *w, const Inst *i)
{
    Block *b = w->block;
    const uint64_t x = i->held ? 0 : of_all(w, i, 1), y = of_all(w, i, 2);
    if (w->n_product == PRODUCTS)
        fault(w, i, "too many products under way");
    if (!w->fenced)
        fault(w, i, "a product takes registers that no fence was in front of");
    if (i->at[4] != 1 || i->at[5] != 1)
        fault(w, i, "a product of negated factors");
    same_for_all(w, i, x, y);
    Product *p = &w->product[w->n_product++];
    *p = (Product){.inst = i, .a = x, .b = y, .more = *AT(uint32_t, 3) & 1, .group = w->groups, .since = b->now++};
    factors(w, p, NULL, NULL);
    if (b->late == AT_ONCE || (b->late == BY_CHANCE && chance(b, 2)))
        for (size_t k = 0; k < w->n_product; k++) /* in their order */
            if (!w->product[k].done)
                product_finish(w, &w->product[k]);
}
void group_fence(Warp *w, const Inst *i)
{
    (void)i;
    w->fenced = true;
}
void group_commit(Warp *w, const Inst *i)
{
    (void)i;
    w->groups++;
    w->fenced = false;
}
void group_wait(Warp *w, const Inst *i) { products_finish(w, i->at[0]); }
