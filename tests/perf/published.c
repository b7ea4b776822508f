/* published.c - times that others have published of their kernels, beside what the model of
 * tests/perf/tool predicts.
 *
 * In:  the tables below, each figure with its source; what the kernels do, counted by hand from
 *      their sources.
 * Out: `N passed, N failed`; with `all` each figure. Every one is predicted at most 15 % off.
 * The one idea: nobody here has a GPU, so the model is held against other people's. The exponents of
 * its norms were fitted to the tables of attention, the constants of perf_product.c to that of
 * products; fitted anew, they come out about the same (test_constants). What is counted by hand has
 * choices in it: how many instructions a compiler adds (COMPILED), where a block waits.
 *
 * Where no figure was found: those of llm.c's softmax are of GPUs that are in no table here (RTX 3070 and 4060, A30), those of its
 * layer norm on an H100 do not say of which. The backward kernels of FlashAttention-3 are published without a causal mask alone.
 * When: quick, released.
 */
#include "perf/tool/fit.h"
#include "support/harness.h"

#include <math.h>

enum { FITTED_MOST = 200 };
typedef struct Published {
    Harness h;
    bool all;
    double worst, sum;
    int n;
    FitKernel fitted[FITTED_MOST]; /* what constants were fitted to: kernels on an H100 of one launch */
    size_t n_fitted;
} Published;

static void beside(Published *p, const char *what, double published, double predicted)
{
    const double off = predicted / published - 1;
    char text[200];
    snprintf(text, sizeof text, "%s: published %.4g, predicted %.4g, %+.0f %%", what, published, predicted, 100 * off);
    if (p->all)
        printf("%s\n", text);
    CHECK_CASE(&p->h, fabs(off) <= 0.15, text);
    p->worst = fmax(p->worst, fabs(off));
    p->sum += off * off;
    p->n++;
}

/* ---- products ---- */

/* cuBLAS in bf16 on an H100: batch, m, n, k, TFLOP/s. XLA's table of measured products, key
 * "sm_90", "bf16xbf16->bf16" (github.com/tensorflow/tensorflow,
 * third_party/xla/xla/service/gpu/model/matmul_interpolator_data.h, commit 372d578). */
static const struct {
    int batch, m, n, k;
    double tflops;
} xla[] = {
    {2, 1024, 1024, 512, 238.4},  {4, 2048, 512, 256, 213.4},   {2, 256, 2048, 256, 81.8},
    {1, 512, 512, 1024, 71.2},    {4, 256, 4096, 4096, 664},    {4, 2048, 4096, 2048, 752.5},
    {1, 256, 2048, 2048, 215.8},  {1, 2048, 2048, 4096, 738},   {4, 512, 4096, 256, 295},
    {2, 2048, 512, 1024, 371.8},  {1, 4096, 2048, 1024, 593.2}, {2, 512, 2048, 4096, 644.1},
    {4, 4096, 4096, 1024, 725.5}, {4, 256, 2048, 512, 228.7},   {4, 1024, 2048, 4096, 743.6},
    {2, 256, 1024, 4096, 295.3},  {1, 256, 512, 2048, 62.4},    {1, 1024, 512, 256, 42.9},
    {1, 2048, 512, 4096, 451.2},  {4, 512, 1024, 512, 236.3},   {1, 1024, 4096, 2048, 634.2},
    {1, 2048, 1024, 256, 141.6},  {4, 1024, 512, 4096, 642.2},  {4, 1024, 1024, 256, 214.7},
    {2, 1024, 4096, 256, 298.3},  {1, 512, 256, 2048, 60.1},    {2, 512, 512, 4096, 312.1},
    {2, 2048, 256, 2048, 310},    {2, 1024, 2048, 512, 339.8},  {2, 256, 512, 4096, 175.2},
    {2, 256, 1024, 256, 43},      {4, 4096, 256, 512, 335.1},   {1, 256, 256, 1024, 19.5},
    {2, 1024, 4096, 4096, 747.7}, {1, 2048, 1024, 4096, 653.1}, {1, 4096, 256, 256, 82.2},
    {2, 512, 1024, 4096, 461.2},  {4, 512, 512, 512, 142.2},    {4, 256, 512, 512, 80.7},
    {4, 256, 1024, 512, 140.1},   {2, 4096, 256, 1024, 366.2},  {2, 512, 1024, 256, 82},
    {4, 1024, 1024, 4096, 735.9}, {1, 256, 1024, 2048, 119},    {2, 4096, 1024, 2048, 713.4},
    {1, 512, 2048, 512, 143.4},   {4, 2048, 2048, 256, 394.8},  {2, 2048, 2048, 512, 447},
    {2, 256, 4096, 2048, 462.8},  {4, 512, 4096, 512, 442.2},   {1, 4096, 256, 4096, 376.2},
    {2, 1024, 256, 2048, 209.7},  {2, 256, 512, 256, 22.3},     {4, 256, 512, 1024, 135},
    {1, 512, 4096, 4096, 644.1},  {4, 512, 1024, 1024, 375.4},  {1, 1024, 1024, 4096, 470.1},
    {2, 2048, 4096, 4096, 779.3}, {2, 4096, 512, 2048, 622.8},  {4, 2048, 2048, 4096, 779.1},
    {1, 512, 4096, 256, 134.2},   {1, 4096, 4096, 1024, 677.4}, {4, 1024, 4096, 2048, 718.7},
    {1, 2048, 512, 256, 83.9},    {4, 512, 512, 1024, 237.1},   {4, 256, 1024, 1024, 228.3},
    {4, 256, 4096, 512, 335.1},   {2, 512, 4096, 2048, 627.2},  {4, 2048, 512, 4096, 730.4},
    {4, 4096, 2048, 1024, 687.9}, {2, 1024, 512, 1024, 237.6},  {1, 1024, 1024, 256, 82},
    {4, 2048, 1024, 256, 300.9},  {4, 1024, 512, 256, 134.5},   {2, 2048, 1024, 512, 342.4},
    {2, 4096, 2048, 2048, 733.3}, {4, 256, 256, 2048, 117.7},   {2, 2048, 4096, 256, 393.9},
    {1, 1024, 512, 4096, 298.9},  {2, 512, 512, 256, 43.4},     {1, 512, 1024, 512, 80.5},
    {1, 2048, 4096, 2048, 715.4}, {1, 1024, 2048, 4096, 653.5}, {2, 1024, 4096, 512, 445.9},
    {1, 4096, 256, 512, 137.2},   {2, 1024, 1024, 1024, 373.9}, {1, 512, 512, 512, 40.7},
    {2, 2048, 512, 512, 234.2},   {4, 2048, 1024, 4096, 745},   {4, 4096, 256, 256, 206.5},
    {4, 512, 256, 2048, 210.4},   {1, 1024, 2048, 256, 139.5},
};
/* The same of others: github.com/pranjalssh/fast.cu, README (cuBLAS, bf16);
 * github.com/stas00/ml-engineering, compute/accelerator/README.md, table of achieved products
 * (torch 2.7 on an H100, 2.6 on an A100); github.com/waynehacking8/blackwell-tensorcore-kernels,
 * results/bench.csv, commit c289bde (H100, cublas_tc: fp16, timed with a launch each). */
static const struct {
    const char *gpu;
    int m, n, k;
    bool launch;
    double tflops;
} others[] = {{"h100", 4096, 4096, 4096, false, 716},    {"h100", 8192, 8192, 8192, false, 795},
              {"h100", 2048, 2048, 13312, false, 794.5}, {"a100", 1024, 10240, 5120, false, 271.2},
              {"h100", 1024, 1024, 1024, true, 178.01},  {"h100", 2048, 2048, 2048, true, 554.96},
              {"h100", 4096, 4096, 4096, true, 732.58},  {"h100", 8192, 8192, 8192, true, 761.71}};

static double product_tflops(const Gpu *g, double batch, double m, double n, double k, double more)
{
    return 2e-12 * batch * m * n * k / (perf_product(g, m, n, k, batch, true) + more);
}

static void test_products(Published *p)
{
    char what[100];
    for (size_t i = 0; i < COUNT_OF(xla); i++) {
        snprintf(what, sizeof what, "cuBLAS, %d of %d x %d by %d", xla[i].batch, xla[i].m, xla[i].n, xla[i].k);
        beside(p, what, xla[i].tflops,
               product_tflops(gpu_named("h100"), xla[i].batch, xla[i].m, xla[i].n, xla[i].k, 0));
        const FitKernel k = {.m = xla[i].m, .n = xla[i].n, .k = xla[i].k, .batch = xla[i].batch, .half = true};
        p->fitted[p->n_fitted] = k;
        p->fitted[p->n_fitted++].seconds = 2e-12 * k.m * k.n * k.k * k.batch / xla[i].tflops;
    }
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        snprintf(what, sizeof what, "cuBLAS, %s, %d x %d by %d", others[i].gpu, others[i].m, others[i].n, others[i].k);
        const Gpu *g = gpu_named(others[i].gpu);
        beside(p, what, others[i].tflops,
               product_tflops(g, 1, others[i].m, others[i].n, others[i].k, others[i].launch ? g->launch : 0));
    }
    /* whatever the shape, no product is faster than the best one known */
    for (int m = 64; m <= 1 << 17; m *= 2)
        for (int k = 64; k <= 1 << 15; k *= 2)
            for (size_t g = 0; g < GPU_COUNT; g++)
                CHECK(&p->h, product_tflops(&gpus[g], 1, m, 8192, k, 0) <= gpus[g].reached * 1.000001e-12);
}

/* ---- rows ---- */

/* Kernels over rows, timed one by one: microseconds of so many numbers read and written for each element of rows x columns.
 * Liger: github.com/linkedin/Liger-Kernel, benchmark/data/all_benchmark_data.csv (commit ead96b6), the median, provider liger,
 * forward: megatron_swiglu (2026-07-26) and megatron_rms_norm (2026-06-10) in bf16, layer_norm in float32 (2024-09-03, 2025-07-17)
 * and rms_norm in bf16 (2024-09-03); all_benchmark_data_cutile.csv: softmax in bf16, providers liger_triton and liger_cutile
 * (2026-07-24). llm.c: github.com/karpathy/llm.c, pull request 645, layernorm_forward 6 on an A100 80GB in float32, 256 threads,
 * before and behind it. QuACK: github.com/Dao-AILab/quack, media/2025-07-10-membound-sol.md, softmax in float32 at 3.01 TB/s. */
static const struct {
    const char *what, *gpu;
    int rows, columns, bytes; /* of an element, read and written */
    double us;
} rows[] = {{"SwiGLU of Liger", "h100", 8192, 1024, 6, 23.3},
            {"SwiGLU of Liger", "h100", 8192, 2048, 6, 39.6},
            {"SwiGLU of Liger", "h100", 8192, 4096, 6, 72.5},
            {"SwiGLU of Liger", "h100", 8192, 8192, 6, 137.1},
            {"SwiGLU of Liger", "h100", 8192, 16384, 6, 267.0},
            {"SwiGLU of Liger", "h100", 8192, 32768, 6, 527.5},
            {"RMS norm of Liger", "h100", 4096, 1024, 4, 12.2},
            {"RMS norm of Liger", "h100", 4096, 2048, 4, 17.6},
            {"RMS norm of Liger", "h100", 4096, 4096, 4, 29.2},
            {"RMS norm of Liger", "h100", 4096, 8192, 4, 50.9},
            {"RMS norm of Liger", "h100", 4096, 16384, 4, 95.0},
            {"layer norm of Liger", "h100", 4096, 1024, 8, 18.8},
            {"layer norm of Liger", "h100", 4096, 2048, 8, 29.2},
            {"layer norm of Liger", "h100", 4096, 4096, 8, 51.0},
            {"layer norm of Liger", "h100", 4096, 8192, 8, 94.8},
            {"layer norm of Liger", "h100", 4096, 16384, 8, 184.8},
            {"layer norm of Liger", "a100", 4096, 1024, 8, 30.3},
            {"layer norm of Liger", "a100", 4096, 2048, 8, 49.9},
            {"layer norm of Liger", "a100", 4096, 4096, 8, 88.2},
            {"layer norm of Liger", "a100", 4096, 8192, 8, 165.2},
            {"layer norm of Liger", "a100", 4096, 16384, 8, 322.3},
            {"RMS norm of Liger", "a100", 2048, 1024, 4, 13.6},
            {"RMS norm of Liger", "a100", 2048, 2048, 4, 20.0},
            {"RMS norm of Liger", "a100", 2048, 4096, 4, 31.1},
            {"RMS norm of Liger", "a100", 2048, 8192, 4, 51.7},
            {"RMS norm of Liger", "a100", 2048, 16384, 4, 95.3},
            {"softmax of Liger", "b200", 1024, 4096, 4, 10.2},
            {"softmax of Liger in cuTile", "b200", 1024, 4096, 4, 10.2},
            {"softmax of Liger", "b200", 2048, 4096, 4, 12.3},
            {"softmax of Liger in cuTile", "b200", 2048, 4096, 4, 12.3},
            {"softmax of Liger", "b200", 4096, 4096, 4, 18.5},
            {"softmax of Liger in cuTile", "b200", 4096, 4096, 4, 16.4},
            {"softmax of Liger", "b200", 8192, 4096, 4, 28.7},
            {"softmax of Liger in cuTile", "b200", 8192, 4096, 4, 26.7},
            {"layer norm of llm.c", "a100", 8192, 768, 8, 42.5},
            {"layer norm of llm.c, its variance in one pass", "a100", 8192, 768, 8, 39.7},
            {"softmax of QuACK", "h100", 16384, 131072, 8, 5708}};

/* A block a row, of 256 to 1,024 threads with 16 numbers each and 32 registers: a load that misses,
 * a sum over the block, a store. */
static void test_rows(Published *p)
{
    char what[120];
    for (size_t i = 0; i < COUNT_OF(rows); i++) {
        const Gpu *g = gpu_named(rows[i].gpu);
        const double elements = (double)rows[i].rows * rows[i].columns;
        const int threads = rows[i].columns <= 4096 ? 256 : rows[i].columns <= 8192 ? 512 : 1024;
        Perf x = {.blocks = rows[i].rows,
                  .threads = threads,
                  .resident = perf_resident(g, threads, 32, 0),
                  .bytes = elements * rows[i].bytes};
        x.counts.slots = elements / 32 * 6; /* of a warp for 32 numbers: half a load and a store,
                                               conversions, a product, two sums */
        x.counts.unit[UNIT_FMA] = elements / 32 * 3;
        x.counts.cycles = 2 * g->latency.global + 10 * g->latency.shuffle + 2 * g->latency.barrier;
        perf_time(g, &x);
        snprintf(what, sizeof what, "%s, %s, %d x %d, us", rows[i].what, rows[i].gpu, rows[i].rows, rows[i].columns);
        beside(p, what, rows[i].us, 1e6 * (x.seconds + g->launch));
    }
}

/* ---- attention ---- */

/* FlashAttention-2 and 3, 16-bit, 16,384 tokens in sequences of 1k, 2k, 4k, 8k, 16k, heads of d,
 * together 2,048 wide; TFLOP/s, where half of the work counts with a causal mask and 2.5 times as
 * much backward; 0: no figure, or one that cannot be read. H100 SXM5: Shah et al.,
 * FlashAttention-3, arXiv 2407.08608, figures 5 and 6 (assets/flash3_fp16_fwd.png of
 * github.com/Dao-AILab/flash-attention). A100 SXM4, forward and backward together:
 * assets/flash2_a100_fwd_bwd_benchmark.png there. */
enum { FORWARD, BACKWARD, BOTH, LENGTHS = 5, TOKENS = 16384, WIDTH = 2048 };
static const struct {
    const char *gpu;
    int version, pass, d;
    bool causal;
    double tflops[LENGTHS];
} flash[] = {{"h100", 3, FORWARD, 64, false, {392, 460, 476, 496, 497}},
             {"h100", 3, FORWARD, 64, true, {265, 371, 420, 460, 473}},
             {"h100", 3, FORWARD, 128, false, {565, 625, 638, 646, 648}},
             {"h100", 3, FORWARD, 128, true, {423, 521, 579, 602, 616}},
             {"h100", 3, FORWARD, 256, false, {0, 707, 736, 746, 756}},
             {"h100", 3, FORWARD, 256, true, {427, 537, 612, 628, 642}},
             {"h100", 2, FORWARD, 64, false, {306, 318, 321, 322, 324}},
             {"h100", 2, FORWARD, 64, true, {229, 262, 284, 295, 299}},
             {"h100", 2, FORWARD, 128, false, {350, 362, 368, 370, 370}},
             {"h100", 2, FORWARD, 128, true, {260, 298, 319, 333, 335}},
             {"h100", 2, FORWARD, 256, false, {313, 321, 323, 324, 326}},
             {"h100", 2, FORWARD, 256, true, {251, 278, 293, 297, 298}},
             {"h100", 3, BACKWARD, 64, false, {363, 422, 453, 472, 474}},
             {"h100", 3, BACKWARD, 128, false, {424, 501, 542, 559, 561}},
             {"h100", 2, BACKWARD, 64, false, {238, 264, 279, 287, 291}},
             {"h100", 2, BACKWARD, 128, false, {260, 291, 310, 318, 322}},
             {"a100", 2, BOTH, 64, false, {153, 162, 171, 175, 176}},
             {"a100", 2, BOTH, 64, true, {119, 140, 156, 165, 171}},
             {"a100", 2, BOTH, 128, false, {0, 187, 196, 201, 203}},
             {"a100", 2, BOTH, 128, true, {133, 155, 173, 182, 189}}};

/* Machine code has instructions that no source shows, for addresses, loops and moves: attention of
 * ours has a third more of an element than are counted so (8.1 by tests/perf/tool, heads of 128,
 * forward). */
#define COMPILED 1.33

/* What a tile asks for, and what its block waits for beside. */
typedef struct Tile {
    double elements, multiply_adds, issued, fma, alu, shared, operands,
        loaded;   /* issued, fma, alu: of warps; loaded: bytes */
    double waits; /* cycles in which nobody of the block multiplies */
} Tile;

/* A launch of blocks of so many tiles, in the mean, the first of which waits `begins` cycles. */
static Perf launched(const Gpu *g, const Tile *t, bool grouped, double blocks, double tiles, int resident, double bytes,
                     double begins)
{
    const double all = blocks * tiles;
    Perf x = {.blocks = (int64_t)blocks, .resident = resident, .bytes = bytes};
    GpuCounts *c = &x.counts;
    c->slots = t->issued * COMPILED * all;
    c->unit[UNIT_FMA] = t->fma * all;
    c->unit[UNIT_ALU] = t->alu * all;
    c->unit[UNIT_XU] = t->elements / 32 * all;
    c->tensor = t->multiply_adds * all;
    c->grouped = grouped ? c->tensor : 0;
    c->operands = t->operands * all;
    c->wavefronts = (t->shared + t->operands) * all;
    c->sectors_missed = t->loaded / 32 * all;
    const double tensor = t->multiply_adds / (grouped ? g->grouped : g->lanes[UNIT_TENSOR]);
    const double busiest =
        fmax(fmax(t->issued * COMPILED / 4, t->elements / g->lanes[UNIT_XU]), fmax(tensor, t->shared + t->operands));
    c->cycles = tiles * (busiest + t->waits) + begins;
    perf_time(g, &x);
    return x;
}

/* Cycles until the first tile is there, and until the last results are stored. */
static double ends(const Gpu *g) { return 2 * (g->latency.global + GPU_COPY_BEGINS) + g->latency.second + 300; }

/* Forward, m queries by n keys. Of an element: a product with the scale, a maximum, an exponential,
 * a sum, half a conversion; of a row of the output a product a tile; where the mask cuts a tile,
 * three more. mma.sync: each of 4 or 8 warps loads all keys and values from shared memory, and its
 * queries. Tiles: tile_size_fwd_sm90() and run_mha_fwd_hdim*() of the sources. FlashAttention-2
 * begins with the shortest blocks of a causal head, so that half of what the longest takes beyond
 * the mean is left at the end. */
static Perf forward(const Gpu *g, int version, double length, double d, bool causal)
{
    const bool three = version == 3, small = g->number == 80;
    const double m = three ? d == 64 ? 192 : 128 : d == 256 && !small ? 64 : 128;
    const double n = three ? d == 256 ? 80 : d == 64 || causal ? 128 : 176 : d == 64 ? 128 : 64;
    const double groups = m / 64, warps = 4;
    double tiles = ceil(length / n), masked = causal ? ceil(m / n) : 0;
    const double blocks = TOKENS / length * (WIDTH / d) * ceil(length / m);
    if (causal) {
        tiles = 0;
        for (double i = 1; i <= ceil(length / m); i++)
            tiles += fmin(ceil(length / n), ceil(i * m / n)) / ceil(length / m);
        tiles += three ? 0 : (ceil(length / n) - tiles) / 2 / (blocks / g->multiprocessors / 2);
    }
    Tile t = {.elements = m * n, .multiply_adds = 2 * m * n * d, .loaded = 4 * n * d};
    t.issued = (4.5 * t.elements + m * d + masked / tiles * 3 * t.elements) / 32;
    t.fma = (2 * t.elements + m * d) / 32;
    t.alu = 1.5 * t.elements / 32;
    double chain; /* a tile of a group: scores, weights, values */
    if (three) {
        t.issued += t.multiply_adds / (64 * 16 * n) * 4;
        t.operands = groups * (64 * d * 2 + 2 * n * d * 2) / 128;
        t.shared = 2 * n * d * 2 / 128;
        chain = 2 * 64 * n * d / g->grouped + 64 * n / g->lanes[UNIT_XU];
    } else {
        const double read = warps * 2 * n * d * 2 + m * d * 2;
        t.issued += t.multiply_adds / 2048 + read / 512;
        t.shared = (read + 2 * n * d * 2) / 128;
        chain = t.multiply_adds / g->lanes[UNIT_TENSOR] + t.elements / groups / g->lanes[UNIT_XU];
    }
    return launched(g, &t, three, blocks, tiles, three ? 1 : 2, TOKENS * (double)WIDTH * 2 * 4, ends(g) + chain);
}

/* Bytes that 8 warps, in `down` rows of warps, load from shared memory for m x n by k. */
static double fetched(double m, double n, double k, double down) { return 2 * (8 / down * m * k + down * n * k); }

/* Backward, m queries by n keys a tile, five products; of an element a product with the scale, an
 * exponential, a difference, a product, two halves of conversions. Slopes of scores go through
 * shared memory, those of queries, in float32, to the second cache. In FlashAttention-3 both groups
 * of warps meet in each tile, so nobody multiplies during exponentials and stores. Before and
 * behind: sums of rows of dO O, zeros, and slopes of queries to 16 bits. Tiles:
 * flash_bwd_launch_template.h of both. */
static double backward(const Gpu *g, int version, double length, double d, bool causal)
{
    const bool three = version == 3;
    const double n = 128, m = d == 64 ? 128 : three ? 80 : 64, row = TOKENS * (double)WIDTH;
    const double blocks = row / length / d * ceil(length / n);
    double tiles = ceil(length / m);
    if (causal) {
        tiles = 0;
        for (double i = 0; i < ceil(length / n); i++)
            tiles += (ceil(length / m) - floor(i * n / m)) / ceil(length / n);
    }
    Tile t = {.elements = m * n, .multiply_adds = 5 * m * n * d, .loaded = 2 * m * d * 2 + m * d * 4};
    t.issued = (5 * t.elements + (causal ? fmax(1, n / m) / tiles * 3 * t.elements : 0)) / 32;
    t.fma = 3 * t.elements / 32;
    t.alu = t.elements / 32;
    const double slopes = m * n * 2 / 128, out = m * d * 4 / 128;
    double chain;
    if (three) {
        t.issued += m * d / 32 * 1.5 + 100;
        t.operands = (4 * (n / 2 * d * 2 + m * d * 2) + 4 * m * d * 2 + 2 * (m / 2 * n * 2 + n * d * 2)) / 128;
        t.shared = slopes + 2 * m * d * 2 / 128 + 2 * out;
        t.waits = t.elements / g->lanes[UNIT_XU] + slopes + out + 4 * g->latency.barrier + 3 * g->latency.tensor +
                  2 * g->latency.shared;
        chain = t.multiply_adds / g->grouped / 2 + t.elements / 2 / g->lanes[UNIT_XU];
    } else {
        const double down[] = {d == 64 ? 4 : 2, 4, d == 64 ? 4 : 2};
        const double read = 2 * fetched(m, n, d, down[0]) + 2 * fetched(n, d, m, down[1]) + fetched(m, d, n, down[2]);
        t.issued += t.multiply_adds / 2048 + read / 512 + 2 * slopes / 4 + m * d / 32 * 2;
        t.shared = read / 128 + 2 * slopes + 2 * m * d * 2 / 128 + m * d / 32;
        chain = t.multiply_adds / g->lanes[UNIT_TENSOR] / 2 + t.elements / g->lanes[UNIT_XU];
    }
    return launched(g, &t, three, blocks, tiles, 1, row * 2 * 7, ends(g) + chain).seconds +
           row * (4 + 4 + 6) / g->copy + 3 * g->ramp;
}

static void test_attention(Published *p)
{
    static const char *const pass[] = {"forward", "backward", "both"};
    char what[100];
    for (size_t i = 0; i < COUNT_OF(flash); i++)
        for (int k = 0; k < LENGTHS; k++) {
            const Gpu *g = gpu_named(flash[i].gpu);
            const double length = 1024 << k, d = flash[i].d,
                         flops = 4 * length * TOKENS * WIDTH * (flash[i].causal ? 0.5 : 1);
            double seconds = 0, work = 0;
            if (flash[i].pass != BACKWARD) {
                const Perf x = forward(g, flash[i].version, length, d, flash[i].causal);
                seconds += x.seconds;
                work += flops;
                if (flash[i].pass == FORWARD && flash[i].tflops[k] > 0)
                    p->fitted[p->n_fitted++] = (FitKernel){.perf = x, .seconds = 1e-12 * flops / flash[i].tflops[k]};
            }
            if (flash[i].pass != FORWARD) {
                seconds += backward(g, flash[i].version, length, d, flash[i].causal);
                work += 2.5 * flops;
            }
            snprintf(what, sizeof what, "FlashAttention-%d %s, %s, heads of %.0f%s, %.0f", flash[i].version,
                     pass[flash[i].pass], flash[i].gpu, d, flash[i].causal ? ", causal" : "", length);
            if (flash[i].tflops[k] > 0)
                beside(p, what, flash[i].tflops[k], 1e-12 * work / seconds);
        }
}

/* Fitted to these figures anew, the constants are those of the table; what the figures say little
 * of may move. */
static void test_constants(Published *p)
{
    const Gpu *g = gpu_named("h100");
    char text[160];
    Fit f;
    fit_constants(g, p->fitted, p->n_fitted, &f);
    for (int i = 0; i < FIT_CONSTANTS; i++) {
        const FitConstant *c = &f.constant[i];
        snprintf(text, sizeof text, "%s: %.4g in the table, %.4g fitted, error %.0f %%", c->name, c->before, c->value,
                 100 * c->error);
        if (p->all)
            printf("%s\n", text);
        CHECK_CASE(&p->h, fabs(log(c->value / c->before)) < fmax(0.25, 3 * c->error), text);
    }
    if (p->all)
        printf("%zu figures: %.1f %% off in the mean, %.1f %% with these\n", p->n_fitted, 100 * f.rms_before,
               100 * f.rms);
}

int main(int argc, char **argv)
{
    static Published p;
    p = (Published){.all = argc > 1 && !strcmp(argv[1], "all")};
    test_products(&p);
    test_rows(&p);
    test_attention(&p);
    test_constants(&p);
    printf("%d published figures: %.0f %% off at most, %.1f %% in the mean (root of squares)\n", p.n, 100 * p.worst,
           100 * sqrt(p.sum / p.n));
    return harness_end(&p.h);
}
