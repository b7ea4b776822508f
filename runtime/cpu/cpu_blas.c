/* cpu_blas.c - matrix products of the CPU backend.
 *
 * In:  a PlanMatmul and three arrays.
 * Out: C, the same bits for every number of threads.
 * The one idea: libraries may sum in another order when they use more threads. So the product
 * is cut into tiles here, by a rule that knows the shape and nothing else, and the library
 * computes each tile on one thread. A long k with a small result is cut along k, the parts
 * added in order.
 */
/* clang-format off
 *
 * Measured by tests/runtime/bench_products.c on 2 cores of a Zen 5 server with AVX-512, oneDNN 2.6:
 * the share of the rate of oneDNN's own two threads, best of 12 runs each, (GFLOP/s).
 * Taken when the machine was quiet, with an OpenMP loop around the same tiles.
 *
 *     A B      2048 x 192 x 192    97 % (428)      A^T B    192 x  192 x 2048   98 % (430)
 *              2048 x 384 x 384   100 % (437)               384 x  384 x 2048   92 % (422)
 *              2048 x 768 x 768   109 % (421)               768 x  768 x 2048   94 % (397)
 *              2048 x 768 x 192    99 % (411)               192 x  768 x 2048   90 % (428)
 *              2048 x 192 x 768   100 % (422)               768 x  192 x 2048   99 % (423)
 *              4096 x 256 x 1024  106 % (380)               256 x 1024 x 4096   92 % (306)
 *     A B^T    2048 x 768 x 768   103 % (370)                64 x   16 x 65536  96 % (210)
 *              2048 x 192 x 768    89 % (342)                 8 x    8 x 32768 129 % (121)
 *              4096 x 1024 x 256   92 % (398)      batches of 256 x 256 x 64   131 % (296)
 * clang-format on */
#define _GNU_SOURCE
#include "cpu.h"

#include <dlfcn.h>
#include <stdatomic.h>
#include <stdio.h>

typedef int (*OneDnnSgemm)(char ta, char tb, int64_t m, int64_t n, int64_t k, float alpha, const float *a, int64_t lda,
                           const float *b, int64_t ldb, float beta, float *c, int64_t ldc);
typedef void (*CblasSgemm)(int order, int ta, int tb, int m, int n, int k, float alpha, const float *a, int lda,
                           const float *b, int ldb, float beta, float *c, int ldc);
enum { CBLAS_ROW_MAJOR = 101, CBLAS_AS_IS = 111, CBLAS_TRANSPOSED = 112 };

/* ---- finding a library ---- */

/* The beginning of oneDNN's dnnl_version_t, the same in versions 1 to 3. */
typedef struct OneDnnVersion {
    int major, minor, patch;
    const char *hash;
    unsigned cpu_runtime;
} OneDnnVersion;
enum { ONEDNN_SEQUENTIAL = 1, ONEDNN_OPENMP = 2 };

/* dlsym gives an object pointer; C has no conversion to a function pointer but by way of bytes.
 */
bool blas_symbol(void *library, const char *name, void *function)
{
    void *p = dlsym(library, name);
    memcpy(function, &p, sizeof p);
    return p != NULL;
}

/* The OpenMP that the library calls: the program's own where there is one, as the loader does.
 */
static void find_openmp(Blas *blas)
{
    void *const places[] = {RTLD_DEFAULT, blas->library};
    for (size_t i = 0; i < COUNT_OF(places); i++)
        if (blas_symbol(places[i], "omp_set_num_threads", &blas->set_threads) &&
            blas_symbol(places[i], "omp_get_max_threads", &blas->get_threads))
            return;
    blas->set_threads = NULL;
    blas->get_threads = NULL;
}

int blas_begin(const Blas *blas) { return blas->get_threads ? blas->get_threads() : 0; }

void blas_end(const Blas *blas, int outer)
{
    if (blas->set_threads)
        blas->set_threads(outer);
}

static bool open_onednn(Blas *blas)
{
    static const char *const names[] = {"libdnnl.so.3", "libdnnl.so.2", "libdnnl.so"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (!library)
            continue;
        const OneDnnVersion *(*version)(void);
        if (blas_symbol(library, "dnnl_sgemm", &blas->sgemm) && blas_symbol(library, "dnnl_version", &version)) {
            const OneDnnVersion *v = version();
            /* Another runtime would bring its own threads. */
            if (v->cpu_runtime == ONEDNN_SEQUENTIAL || v->cpu_runtime == ONEDNN_OPENMP) {
                blas->kind = BLAS_ONEDNN;
                blas->library = library;
                find_openmp(blas);
                snprintf(blas->name, sizeof blas->name, "oneDNN %d.%d.%d (%s)", v->major, v->minor, v->patch, names[i]);
                return true;
            }
        }
        dlclose(library);
    }
    return false;
}

static void first_product(void *user, int64_t lo, int64_t hi, int worker);

/* One thread for each call, and a first call now, before several threads make theirs. */
static void single_openblas(Blas *blas)
{
    void (*set_threads)(int);
    int outer = blas_begin(blas); /* some builds change it */
    if (blas_symbol(blas->library, "openblas_set_num_threads", &set_threads))
        set_threads(1);
    first_product(blas, 0, 1, 0);
    blas_end(blas, outer);
}

static bool open_openblas(Blas *blas)
{
    static const char *const names[] = {"libopenblas.so.0", "libopenblas.so"};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        void *library = dlopen(names[i], RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
        if (!library)
            continue;
        if (blas_symbol(library, "cblas_sgemm", &blas->sgemm)) {
            char *(*config)(void);
            blas->kind = BLAS_OPENBLAS;
            blas->library = library;
            find_openmp(blas);
            single_openblas(blas);
            snprintf(blas->name, sizeof blas->name, "%.100s (%s)",
                     blas_symbol(library, "openblas_get_config", &config) ? config() : "OpenBLAS", names[i]);
            return true;
        }
        dlclose(library);
    }
    return false;
}

bool blas_open(Blas *blas, const char *only, char why[512])
{
    *blas = (Blas){.kind = BLAS_PLAIN};
    if ((!only || !strcmp(only, "onednn")) && open_onednn(blas))
        return true;
    if ((!only || !strcmp(only, "openblas")) && open_openblas(blas))
        return true;
    if (!only || !strcmp(only, "plain")) {
        snprintf(blas->name, sizeof blas->name, "plain loops (slow: install libdnnl2 or libopenblas0-openmp)");
        return true;
    }
    if (!strcmp(only, "onednn") || !strcmp(only, "openblas"))
        snprintf(why, 512, "the product library '%s' was asked for and cannot be loaded", only);
    else
        snprintf(why, 512, "unknown product library '%s': use onednn, openblas or plain", only);
    return false;
}

void blas_close(Blas *blas)
{
    if (blas->library)
        dlclose(blas->library);
    *blas = (Blas){.kind = BLAS_PLAIN};
}

/* ---- one tile ---- */

enum { PLAIN_ROWS = 6, PLAIN_COLUMNS = 64, PLAIN_DEPTH = 128 };

typedef struct PlainBlock {
    float b[PLAIN_DEPTH][PLAIN_COLUMNS];
    float a[PLAIN_ROWS][PLAIN_DEPTH];
} PlainBlock;

/* rows x PLAIN_COLUMNS results over `depth` terms, from packed operands; C takes `columns` of
 * them. */
static void plain_block(const PlainBlock *p, int64_t rows, int64_t columns, int64_t depth, bool add, float *c,
                        int64_t ldc)
{
    for (int64_t i = 0; i < rows; i++) {
        float sum[PLAIN_COLUMNS] = {0};
        for (int64_t l = 0; l < depth; l++) {
            float x = p->a[i][l];
            for (int j = 0; j < PLAIN_COLUMNS; j++)
                sum[j] += x * p->b[l][j];
        }
        float *to = c + i * ldc;
        for (int64_t j = 0; j < columns; j++)
            to[j] = add ? to[j] + sum[j] : sum[j];
    }
}

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

static void plain_tile(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const float *b,
                       int64_t ldb, bool accumulate, float *c, int64_t ldc)
{
    PlainBlock p;
    for (int64_t j = 0; j < n; j += PLAIN_COLUMNS) {
        int64_t columns = least(n - j, PLAIN_COLUMNS);
        memset(p.b, 0, sizeof p.b);
        for (int64_t l = 0; l < k; l += PLAIN_DEPTH) {
            int64_t depth = least(k - l, PLAIN_DEPTH);
            for (int64_t y = 0; y < depth; y++)
                for (int64_t x = 0; x < columns; x++)
                    p.b[y][x] = tb ? b[(j + x) * ldb + l + y] : b[(l + y) * ldb + j + x];
            for (int64_t i = 0; i < m; i += PLAIN_ROWS) {
                int64_t rows = least(m - i, PLAIN_ROWS);
                for (int64_t y = 0; y < rows; y++)
                    for (int64_t x = 0; x < depth; x++)
                        p.a[y][x] = ta ? a[(l + x) * lda + i + y] : a[(i + y) * lda + l + x];
                plain_block(&p, rows, columns, depth, accumulate || l, c + i * ldc + j, ldc);
            }
        }
    }
}

/* Calls of a library cost about as much as this many multiply-adds of plain loops. */
enum { SMALL_PRODUCT = 1024 };

static void tiny_tile(bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda, const float *b,
                      int64_t ldb, bool accumulate, float *c, int64_t ldc)
{
    int64_t ai = ta ? 1 : lda, al = ta ? lda : 1, bj = tb ? ldb : 1, bl = tb ? 1 : ldb;
    for (int64_t i = 0; i < m; i++)
        for (int64_t j = 0; j < n; j++) {
            float sum = accumulate ? c[i * ldc + j] : 0;
            for (int64_t l = 0; l < k; l++)
                sum += a[i * ai + l * al] * b[j * bj + l * bl];
            c[i * ldc + j] = sum;
        }
}

static bool is_small(int64_t m, int64_t n, int64_t k) { return m * n <= SMALL_PRODUCT && m * n * k <= SMALL_PRODUCT; }

void blas_tile(const Blas *blas, bool ta, bool tb, int64_t m, int64_t n, int64_t k, const float *a, int64_t lda,
               const float *b, int64_t ldb, bool accumulate, float *c, int64_t ldc)
{
    bool fits = (m | n | k | lda | ldb | ldc) <= INT32_MAX; /* OpenBLAS counts in int */
    if (m <= 0 || n <= 0)
        return;
    if (blas->set_threads)
        blas->set_threads(1); /* of this thread */
    if (k <= 0) {
        for (int64_t i = 0; !accumulate && i < m; i++)
            memset(c + i * ldc, 0, (size_t)n * sizeof *c);
    } else if (is_small(m, n, k)) {
        tiny_tile(ta, tb, m, n, k, a, lda, b, ldb, accumulate, c, ldc);
    } else if (blas->kind == BLAS_ONEDNN) {
        ((OneDnnSgemm)blas->sgemm)(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, 1, a, lda, b, ldb, accumulate ? 1.f : 0.f,
                                   c, ldc);
    } else if (blas->kind == BLAS_OPENBLAS && fits) {
        ((CblasSgemm)blas->sgemm)(CBLAS_ROW_MAJOR, ta ? CBLAS_TRANSPOSED : CBLAS_AS_IS,
                                  tb ? CBLAS_TRANSPOSED : CBLAS_AS_IS, (int)m, (int)n, (int)k, 1, a, (int)lda, b,
                                  (int)ldb, accumulate ? 1.f : 0.f, c, (int)ldc);
    } else {
        plain_tile(ta, tb, m, n, k, a, lda, b, ldb, accumulate, c, ldc);
    }
}

static void first_product(void *user, int64_t lo, int64_t hi, int worker)
{
    enum { SIDE = 64 };
    const Blas *blas = user;
    float a[SIDE * SIDE] = {0}, c[SIDE * SIDE];
    (void)lo;
    (void)hi;
    (void)worker;
    int outer = blas_begin(blas);
    blas_tile(blas, false, false, SIDE, SIDE, SIDE, a, SIDE, a, SIDE, false, c, SIDE);
    blas_end(blas, outer);
}

void blas_warm(Blas *blas, Ahead *ahead, const PlanMatmul *how)
{
    if (blas->warm || blas->kind != BLAS_ONEDNN || how->half || is_small(how->m, how->n, how->k))
        return;
    blas->warm = true;
    ahead_begin(ahead, 1, 1, first_product, blas);
}

/* ---- the whole product ---- */

enum {
    TILE_ROWS = 512, /* at most, of a tile */
    TILE_COLUMNS = 384,
    TILE_LEAST = 96,     /* an extent is not cut below this */
    TILES_WANTED = 16,   /* so that some cores share a product evenly */
    DEPTH_LEAST = 2048,  /* of a part, when k is cut */
    CHUNK_WORK = 1 << 19 /* multiply-adds worth handing to a thread */
};

typedef struct BlasCut {
    const Blas *blas;
    const PlanMatmul *how;
    const char *a, *b; /* items of `item` bytes */
    float *c;
    size_t item;
    int64_t tile_m, tile_n, tiles_m, tiles_n;
    int64_t parts, depth;       /* of k */
    const Bf16Tile *bf16[2][2]; /* by whether it is the last in its column, its row; of parts:
                                   whether it is the last */
    atomic_bool failed;
} BlasCut;

static int64_t ceil_div(int64_t a, int64_t b) { return a / b + (a % b != 0); }

/* The extent of `count` equal tiles of n, a multiple of `step` where there are several. */
static int64_t tile_extent(int64_t n, int64_t count, int64_t step)
{
    return count <= 1 ? n : ceil_div(ceil_div(n, count), step) * step;
}

static void choose_tiles(BlasCut *cut)
{
    const PlanMatmul *how = cut->how;
    int64_t rows = ceil_div(how->m, TILE_ROWS), columns = ceil_div(how->n, TILE_COLUMNS);
    while (rows * columns * how->batch < TILES_WANTED) {
        int64_t m = ceil_div(how->m, rows), n = ceil_div(how->n, columns);
        bool can_m = m >= 2 * TILE_LEAST, can_n = n >= 2 * TILE_LEAST;
        if (!can_m && !can_n)
            break;
        if (can_m && (m >= n || !can_n))
            rows++;
        else
            columns++;
    }
    cut->tile_m = tile_extent(how->m, rows, 16);
    cut->tile_n = tile_extent(how->n, columns, 16);
    cut->tiles_m = ceil_div(how->m, cut->tile_m);
    cut->tiles_n = ceil_div(how->n, cut->tile_n);
    cut->parts = 1;
    cut->depth = how->k;
    if (cut->tiles_m * cut->tiles_n * how->batch == 1 && how->k >= 2 * DEPTH_LEAST &&
        how->m * how->n <= BLAS_SCRATCH_RESULT) {
        cut->parts = least(how->k / DEPTH_LEAST, BLAS_SCRATCH_PARTS);
        cut->depth = tile_extent(how->k, cut->parts, 64);
        cut->parts = ceil_div(how->k, cut->depth);
    }
}

/* Rows, columns and depth of a tile or part. */
static TileShape shape_of_tile(const BlasCut *cut, bool last_m, bool last_n, bool last_k)
{
    const PlanMatmul *how = cut->how;
    return (TileShape){how->transpose_a,
                       how->transpose_b,
                       last_m ? how->m - (cut->tiles_m - 1) * cut->tile_m : cut->tile_m,
                       last_n ? how->n - (cut->tiles_n - 1) * cut->tile_n : cut->tile_n,
                       last_k ? how->k - (cut->parts - 1) * cut->depth : cut->depth,
                       how->lda,
                       how->ldb,
                       cut->parts > 1 ? how->n : how->ldc};
}

static void run_tile(BlasCut *cut, const TileShape *s, const Bf16Tile *bf16, int64_t a, int64_t b, float *c, int worker)
{
    const char *at = cut->a + (size_t)a * cut->item, *bt = cut->b + (size_t)b * cut->item;
    if (!cut->how->half)
        blas_tile(cut->blas, s->ta, s->tb, s->m, s->n, s->k, (const float *)at, s->lda, (const float *)bt, s->ldb,
                  cut->parts == 1 && cut->how->accumulate, c, s->ldc);
    else if (!bf16_run(bf16, worker, (const uint16_t *)at, (const uint16_t *)bt, c))
        atomic_store(&cut->failed, true);
}

static void run_tiles(void *user, int64_t lo, int64_t hi, int worker)
{
    BlasCut *cut = user;
    const PlanMatmul *how = cut->how;
    if (how->half && cut->blas->set_threads)
        cut->blas->set_threads(1); /* of this thread */
    for (int64_t t = lo; t < hi; t++) {
        int64_t column = t % cut->tiles_n, row = t / cut->tiles_n % cut->tiles_m;
        int64_t batch = t / cut->tiles_n / cut->tiles_m;
        int64_t i = row * cut->tile_m, j = column * cut->tile_n;
        bool last_m = row == cut->tiles_m - 1, last_n = column == cut->tiles_n - 1;
        TileShape s = shape_of_tile(cut, last_m, last_n, true);
        run_tile(cut, &s, cut->bf16[last_m][last_n], batch * how->step_a + (how->transpose_a ? i : i * how->lda),
                 batch * how->step_b + (how->transpose_b ? j * how->ldb : j),
                 cut->c + batch * how->step_c + i * how->ldc + j, worker);
    }
}

static void run_parts(void *user, int64_t lo, int64_t hi, int worker)
{
    BlasCut *cut = user;
    const PlanMatmul *how = cut->how;
    if (how->half && cut->blas->set_threads)
        cut->blas->set_threads(1);
    for (int64_t part = lo; part < hi; part++) {
        int64_t l = part * cut->depth;
        bool last = part == cut->parts - 1;
        TileShape s = shape_of_tile(cut, true, true, last);
        run_tile(cut, &s, cut->bf16[last][last], how->transpose_a ? l * how->lda : l,
                 how->transpose_b ? l : l * how->ldb, cut->blas->scratch + part * how->m * how->n, worker);
    }
}

static void add_parts(const BlasCut *cut)
{
    const PlanMatmul *how = cut->how;
    const float *part = cut->blas->scratch;
    for (int64_t i = 0; i < how->m; i++)
        for (int64_t j = 0; j < how->n; j++) {
            float sum = 0;
            for (int64_t p = 0; p < cut->parts; p++)
                sum += part[(p * how->m + i) * how->n + j];
            float *c = &cut->c[i * how->ldc + j];
            *c = how->accumulate ? *c + sum : sum;
        }
}

/* The shape of the tile that stands at [y][x] of Cut.bf16. */
static TileShape corner(const BlasCut *cut, int y, int x)
{
    return cut->parts > 1 ? shape_of_tile(cut, true, true, y) : shape_of_tile(cut, y, x, true);
}

bool blas_prepare(const Blas *blas, const PlanMatmul *how)
{
    if (!how->half || how->m <= 0 || how->n <= 0 || how->batch <= 0)
        return true;
    BlasCut cut = {.blas = blas, .how = how};
    choose_tiles(&cut);
    int outer = blas_begin(blas);
    if (blas->set_threads)
        blas->set_threads(1);
    bool good = how->k > 0 && !how->accumulate;
    for (int i = 0; good && i < 4; i++) {
        TileShape s = corner(&cut, i / 2, i % 2);
        good = bf16_make(blas->bf16, &s);
    }
    blas_end(blas, outer);
    return good;
}

static bool find_tiles(BlasCut *cut)
{
    for (int i = 0; i < 4; i++) {
        TileShape s = corner(cut, i / 2, i % 2);
        if (!(cut->bf16[i / 2][i % 2] = bf16_find(cut->blas->bf16, &s)))
            return false;
    }
    return true;
}

bool blas_matmul(const Blas *blas, Pool *pool, const PlanMatmul *how, const void *a, const void *b, float *c)
{
    if (how->m <= 0 || how->n <= 0 || how->batch <= 0)
        return true;
    BlasCut cut = {.blas = blas, .how = how, .a = a, .b = b, .c = c};
    cut.item = how->half ? sizeof(uint16_t) : sizeof(float);
    choose_tiles(&cut);
    if (how->half && !find_tiles(&cut))
        return false;
    int outer = blas_begin(blas);
    if (cut.parts > 1) {
        parallel_for(pool, cut.parts, 1, run_parts, &cut);
        add_parts(&cut);
    } else {
        int64_t tiles = cut.tiles_m * cut.tiles_n * how->batch;
        double work = (double)cut.tile_m * (double)cut.tile_n * (double)how->k;
        int64_t grain = work >= CHUNK_WORK ? 1 : (int64_t)(CHUNK_WORK / (work < 1 ? 1 : work));
        parallel_for(pool, tiles, grain, run_tiles, &cut);
    }
    blas_end(blas, outer);
    return !atomic_load(&cut.failed);
}
