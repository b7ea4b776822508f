/* product.c - see product.h.
 *
 * The one idea: both operands are copied as float32 so that the innermost loop goes over neighbours; every sum goes
 * over k in one order, whatever is done side by side.
 */
#include "product.h"

#include "abi.h"

#include "support/half.h"

#include <stdlib.h>

enum { WIDE = 64, DEEP = 4 };

static double element(const ProductMatrix *x, int64_t i)
{
    if (x->type == R_32F)
        return (double)((const float *)(const void *)x->at)[i];
    return of_half(((const uint16_t *)(const void *)x->at)[i], x->type == R_16F ? HALF_FP16 : HALF_BF16);
}

static void set_element(const ProductMatrix *x, int64_t i, float y)
{
    if (x->type == R_32F)
        ((float *)(void *)x->at)[i] = y;
    else
        ((uint16_t *)(void *)x->at)[i] = to_half((double)y, x->type == R_16F ? HALF_FP16 : HALF_BF16);
}

static float shorter(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    if ((u & 0x7f800000) != 0x7f800000)
        u = (u + 0xfff + (u >> 13 & 1)) & ~(uint32_t)0x1fff;
    memcpy(&x, &u, sizeof u);
    return x;
}

/* to[i * columns + j] = element (i, j); of malloc. */
static float *packed(const ProductMatrix *x, int64_t batch, int64_t rows, int64_t columns, int64_t row, int64_t column,
                     bool tf32)
{
    float *to = malloc((size_t)(rows * columns + 1) * sizeof *to);
    for (int64_t i = 0; i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            float y = (float)element(x, batch * x->step + i * row + j * column);
            to[i * columns + j] = tf32 ? shorter(y) : y;
        }
    return to;
}

typedef struct Tile {
    const float *a, *b; /* [k][m], [n][k] */
    int64_t m, k, i, j, wide, deep;
} Tile;

/* sum[y][x] = sum over k from `first`, `count` of them, of a(i + x, k) b(k, j + y). */
static void sum_tile(const Tile *t, int64_t first, int64_t count, int64_t step, float sum[DEEP][WIDE])
{
    memset(sum, 0, sizeof(float[DEEP][WIDE]));
    for (int64_t q = 0, k = first; q < count; q++, k += step)
        for (int64_t y = 0; y < t->deep; y++) {
            const float *a = t->a + k * t->m + t->i, b = t->b[(t->j + y) * t->k + k];
            float *s = sum[y];
            if (t->wide == WIDE)
                for (int x = 0; x < WIDE; x++)
                    s[x] += a[x] * b;
            else
                for (int64_t x = 0; x < t->wide; x++)
                    s[x] += a[x] * b;
        }
}

static void run_tile(const Product *p, const Tile *t, int64_t batch)
{
    float sum[DEEP][WIDE], other[DEEP][WIDE];
    int64_t half = p->sum == SUM_HALVES ? t->k / 2 : t->k;
    if (p->sum == SUM_DOWN)
        sum_tile(t, t->k - 1, t->k, -1, sum);
    else
        sum_tile(t, 0, half, 1, sum);
    if (p->sum == SUM_HALVES)
        sum_tile(t, half, t->k - half, 1, other);
    for (int64_t y = 0; y < t->deep; y++)
        for (int64_t x = 0; x < t->wide; x++) {
            int64_t r = t->i + x, c = t->j + y;
            float z = p->sum == SUM_HALVES ? sum[y][x] + other[y][x] : sum[y][x];
            z *= p->alpha;
            if (p->beta != 0)
                z += p->beta * (float)element(&p->c, batch * p->c.step + r * p->c.row + c * p->c.column);
            set_element(&p->d, batch * p->d.step + r * p->d.row + c * p->d.column, z);
        }
}

bool product_is_zero(const Product *p)
{
    for (int64_t batch = 0; batch < p->batch; batch++)
        for (int64_t r = 0; r < p->m; r++)
            for (int64_t c = 0; c < p->n; c++)
                if (element(&p->d, batch * p->d.step + r * p->d.row + c * p->d.column) != 0)
                    return false;
    return true;
}

void product_run(const Product *p)
{
    for (int64_t batch = 0; batch < p->batch; batch++) {
        float *a = packed(&p->a, batch, p->k, p->m, p->a.column, p->a.row, p->tf32);
        float *b = packed(&p->b, batch, p->n, p->k, p->b.column, p->b.row, p->tf32);
        for (int64_t j = 0; j < p->n; j += DEEP)
            for (int64_t i = 0; i < p->m; i += WIDE) {
                Tile t = {a, b, p->m, p->k, i, j, p->m - i < WIDE ? p->m - i : WIDE, p->n - j < DEEP ? p->n - j : DEEP};
                run_tile(p, &t, batch);
            }
        free(a);
        free(b);
    }
}
