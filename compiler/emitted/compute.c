/* compute.c - see compute.h and rows.h: kernels on ranges of rows, products of matrices.
 *
 * Products are plain loops, or calls of a BLAS when this is compiled with -DUSE_CBLAS (see the
 * Makefile). What is computed never depends on the number of threads.
 */
#include "rows.h"

#include <stdlib.h>
#include <string.h>

#ifdef USE_CBLAS
#include <cblas.h>
#endif

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* ---- kernels ---- */

typedef struct RowLoop {
    Kernel *kernel;
    void *const *p;
    const int64_t *n;
    const double *s;
} RowLoop;

static void some_rows(void *user, int64_t lo, int64_t hi, int worker)
{
    const RowLoop *loop = user;
    (void)worker;
    loop->kernel(loop->p, loop->n, loop->s, lo, hi);
}

void rows(Run *run, Kernel *kernel, int64_t rows, int64_t grain, void *const *p, const int64_t *n, const double *s)
{
    RowLoop loop = {kernel, p, n, s};
    if (rows > 0)
        parallel_for(run->device->pool, rows, grain, some_rows, &loop);
}

/* ---- one product ---- */

#ifdef USE_CBLAS

static void multiply(const Product *how, const real *a, const real *b, real *c)
{
    if (((how->m | how->n | how->k | how->lda | how->ldb | how->ldc) >> 31) != 0)
        stop("a product of %lld x %lld x %lld is too large for this BLAS", (long long)how->m, (long long)how->n,
             (long long)how->k);
    cblas_sgemm(CblasRowMajor, how->transpose_a ? CblasTrans : CblasNoTrans,
                how->transpose_b ? CblasTrans : CblasNoTrans, (int)how->m, (int)how->n, (int)how->k, 1, a,
                (int)how->lda, b, (int)how->ldb, how->accumulate ? 1 : 0, c, (int)how->ldc);
}

#else

/* A block of B lies in panels of PANEL columns, with zeros behind the last one. ROWS rows of A and a panel make a tile of C in
 * registers: each element is added up in the order of k, whatever the tile. */
enum { PANEL = 16, PANELS = 4, BLOCK_N = PANEL * PANELS, BLOCK_K = 128 };
#ifdef __AVX512F__
enum { ROWS = 8 };
#else
enum { ROWS = 4 };
#endif
typedef real panel __attribute__((vector_size(4 * PANEL), aligned(4), may_alias));

/* rows of c[.. width) (+)= those of a[0 .. depth) times a panel */
static inline __attribute__((always_inline)) void tile(int rows, const real *a, int64_t row, int64_t step,
                                                       real (*block)[PANEL], int64_t depth, int64_t width, bool add,
                                                       real *c, int64_t ldc)
{
    panel sum[ROWS] = {{0}};
    for (int64_t l = 0; l < depth; l++) {
        const panel b = *(const panel *)block[l];
        for (int i = 0; i < rows; i++)
            sum[i] += a[i * row + l * step] * b;
    }
    for (int i = 0; i < rows; i++)
        for (int64_t j = 0; j < width; j++)
            c[i * ldc + j] = add ? c[i * ldc + j] + sum[i][j] : sum[i][j];
}

static void multiply(const Product *how, const real *a, const real *b, real *c)
{
    int64_t row = how->transpose_a ? 1 : how->lda, step = how->transpose_a ? how->lda : 1;
    real block[PANELS][BLOCK_K][PANEL];
    for (int64_t j = 0; j < how->n; j += BLOCK_N) {
        int64_t width = least(how->n - j, BLOCK_N);
        memset(block, 0, sizeof block);
        for (int64_t l = 0; l < how->k; l += BLOCK_K) {
            int64_t depth = least(how->k - l, BLOCK_K);
            bool add = how->accumulate || l > 0;
            for (int64_t y = 0; y < depth; y++)
                for (int64_t x = 0; x < width; x++)
                    block[x / PANEL][y][x % PANEL] =
                        how->transpose_b ? b[(j + x) * how->ldb + l + y] : b[(l + y) * how->ldb + j + x];
            for (int64_t i = 0; i < how->m; i += ROWS)
                for (int64_t x = 0; x < width; x += PANEL) {
                    const real *from = a + i * row + l * step;
                    real *to = c + i * how->ldc + j + x;
                    int64_t columns = least(width - x, PANEL);
                    if (how->m - i >= ROWS)
                        tile(ROWS, from, row, step, block[x / PANEL], depth, columns, add, to, how->ldc);
                    else
                        for (int64_t k = 0; k < how->m - i; k++)
                            tile(1, from + k * row, row, step, block[x / PANEL], depth, columns, add, to + k * how->ldc,
                                 how->ldc);
                }
        }
    }
}

#endif

/* ---- a batch of products ---- */

/* A product is cut into parts of so many rows of C, one for a thread at a time. */
enum { PART_ROWS = 128 };

typedef struct Products {
    const Product *how;
    const real *a, *b;
    real *c;
    int64_t parts; /* of one product */
} Products;

static void some_products(void *user, int64_t lo, int64_t hi, int worker)
{
    const Products *all = user;
    const Product *how = all->how;
    (void)worker;
    for (int64_t i = lo; i < hi; i++) {
        int64_t batch = i / all->parts, first = i % all->parts * PART_ROWS;
        Product part = *how;
        part.m = least(how->m - first, PART_ROWS);
        multiply(&part, all->a + batch * how->step_a + first * (how->transpose_a ? 1 : how->lda),
                 all->b + batch * how->step_b, all->c + batch * how->step_c + first * how->ldc);
    }
}

void product(Run *run, const Product *how, const void *a, const void *b, void *c)
{
    Products all = {how, a, b, c, (how->m + PART_ROWS - 1) / PART_ROWS};
    if (how->m <= 0 || how->n <= 0)
        return;
    if (how->k > 0) {
        parallel_for(run->device->pool, all.parts * how->batch, 1, some_products, &all);
        return;
    }
    for (int64_t i = 0; i < how->batch * how->m && !how->accumulate; i++) /* empty sums */
        memset(all.c + i / how->m * how->step_c + i % how->m * how->ldc, 0, (size_t)how->n * sizeof(real));
}

/* ---- products by expert ---- */

enum { GATHERED = 64 }; /* pairs multiplied at a time */

typedef struct Experts {
    const ExpertProduct *how;
    const real *x, *w;
    const integer *index;
    real *y;
} Experts;

/* The numbers of the next pairs of expert e from *at on, at most GATHERED. */
static int64_t next_pairs(const Experts *all, int64_t e, int64_t *at, int64_t pair[GATHERED])
{
    int64_t n = 0, end = all->how->tokens * all->how->choices;
    for (; *at < end && n < GATHERED; ++*at)
        if (all->index[*at] == e)
            pair[n++] = *at;
    return n;
}

static const real *row_of_x(const Experts *all, int64_t pair)
{
    int64_t row = all->how->x_per_pair ? pair : pair / all->how->choices;
    return all->x + row * all->how->in;
}

static void copy_row(real *to, const real *from, int64_t n) { memcpy(to, from, (size_t)n * sizeof *to); }

/* All pairs of expert e; xs and ys have room for GATHERED rows. */
static void one_expert(const Experts *all, int64_t e, real *xs, real *ys)
{
    const ExpertProduct *how = all->how;
    int64_t in = how->in, out = how->out, at = 0, n, pair[GATHERED];
    Product forward = {
        .transpose_b = how->transpose_w, .n = out, .k = in, .lda = in, .ldb = how->transpose_w ? in : out, .ldc = out};
    Product weights = {.transpose_a = true, .accumulate = true, .m = in, .n = out, .lda = in, .ldb = out, .ldc = out};
    real *dw = all->y + e * in * out;
    if (how->weights)
        memset(dw, 0, (size_t)(in * out) * sizeof *dw);
    while ((n = next_pairs(all, e, &at, pair)) > 0) {
        for (int64_t i = 0; i < n; i++) {
            copy_row(xs + i * in, row_of_x(all, pair[i]), in);
            if (how->weights)
                copy_row(ys + i * out, all->w + pair[i] * out, out);
        }
        forward.m = weights.k = n;
        if (how->weights) {
            multiply(&weights, xs, ys, dw);
            continue;
        }
        multiply(&forward, xs, all->w + e * in * out, ys);
        for (int64_t i = 0; i < n; i++)
            copy_row(all->y + pair[i] * out, ys + i * out, out);
    }
}

static void some_experts(void *user, int64_t lo, int64_t hi, int worker)
{
    const Experts *all = user;
    real *xs = room((uint64_t)(GATHERED * (all->how->in + all->how->out)) * sizeof *xs);
    (void)worker;
    for (int64_t e = lo; e < hi; e++)
        one_expert(all, e, xs, xs + GATHERED * all->how->in);
    free(xs);
}

void expert_product(Run *run, const ExpertProduct *how, const void *x, const void *w, const void *index, void *y)
{
    Experts all = {how, x, w, index, y};
    for (int64_t i = 0; !how->weights && i < how->tokens * how->choices; i++)
        if (how->in <= 0 || all.index[i] < 0 || all.index[i] >= how->experts)
            memset(all.y + i * how->out, 0, (size_t)how->out * sizeof *all.y);
    if (how->in > 0 && how->out > 0)
        parallel_for(run->device->pool, how->experts, 1, some_experts, &all);
}
