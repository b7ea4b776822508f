/* products.c - matrix products and products by expert against plain loops in float64.
 *
 * In:  nothing.
 * Out: `N passed, N failed`. Each product is computed with 1, 2 and 4 threads: the results
 * must be near the float64 ones, equal to each other bit for bit, and stay in their place.
 * Products of bf16 operands, where there are any, are of whole numbers and must be exact.
 * When: quick, first, released, optimised.
 */
#include "runtime/cpu/cpu.h"
#include "support/drawn.h"
#include "support/harness.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <time.h>

static const int thread_counts[] = {1, 2, 4};
enum { POOLS = 3 };
enum { CANARY = 64 };
/* The loops take the sanitizers ten times as long. */
static const CaseDraw drawn = {.one_in = 3, .sanitized = 10};
static const float canary = 12345.5f;

static float *random_floats(int64_t n, uint64_t seed)
{
    float *v = malloc((size_t)(n + 1) * sizeof *v);
    for (int64_t i = 0; i < n; i++)
        v[i] = (float)harness_random(&seed);
    return v;
}

/* The sum of products and of their magnitudes. */
static void naive(const PlanMatmul *how, const float *a, const float *b, int64_t batch, int64_t i, int64_t j,
                  double *sum, double *size)
{
    *sum = *size = 0;
    for (int64_t l = 0; l < how->k; l++) {
        int64_t ia = how->transpose_a ? l * how->lda + i : i * how->lda + l;
        int64_t ib = how->transpose_b ? j * how->ldb + l : l * how->ldb + j;
        double t = (double)a[batch * how->step_a + ia] * (double)b[batch * how->step_b + ib];
        *sum += t;
        *size += fabs(t);
    }
}

static void test_product(Harness *h, Blas *blas, Pool *const *pools, bool ta, bool tb, bool accumulate, int64_t m,
                         int64_t n, int64_t k, int64_t batch, int64_t pad)
{
    PlanMatmul how = {
        .transpose_a = ta, .transpose_b = tb, .accumulate = accumulate, .m = m, .n = n, .k = k, .batch = batch};
    how.lda = (ta ? m : k) + pad;
    how.ldb = (tb ? k : n) + pad;
    how.ldc = n + pad;
    how.step_a = how.lda * (ta ? k : m);
    how.step_b = how.ldb * (tb ? n : k);
    how.step_c = how.ldc * m;
    char text[400];
    snprintf(text, sizeof text, "%s %lld x %lld x %lld, %d%d%d, batch %lld, pad %lld", blas->name, (long long)m,
             (long long)n, (long long)k, ta, tb, accumulate, (long long)batch, (long long)pad);
    float *a = random_floats(how.step_a * batch, 1), *b = random_floats(how.step_b * batch, 2);
    int64_t room = how.step_c * batch + 2 * CANARY;
    float *start = random_floats(room, 3), *first = malloc((size_t)room * sizeof *first);
    float *c = malloc((size_t)room * sizeof *c);
    for (int64_t i = 0; i < room; i++)
        if (i < CANARY || i >= room - CANARY || (i - CANARY) % how.ldc >= n)
            start[i] = canary;
    for (size_t t = 0; t < POOLS; t++) {
        memcpy(c, start, (size_t)room * sizeof *c);
        blas_matmul(blas, pools[t], &how, a, b, c + CANARY);
        if (t == 0)
            memcpy(first, c, (size_t)room * sizeof *c);
        CHECK_CASE(h, !memcmp(first, c, (size_t)room * sizeof *c), text);
    }
    bool near = true, kept = true;
    for (int64_t i = 0; i < room; i++)
        if (start[i] == canary)
            kept &= c[i] == canary;
    /* Neighbours are computed alike; fewer under the sanitizers, where these loops would take most of the time. */
    int64_t down = m > 200 ? 17 : SANITIZED && m > 16 ? 5 : 1, right = n > 200 ? 13 : SANITIZED && n > 16 ? 3 : 1;
    for (int64_t q = 0; q < batch; q++)
        for (int64_t i = 0; i < m; i += down)
            for (int64_t j = 0; j < n; j += right) {
                double sum, size;
                int64_t at = CANARY + q * how.step_c + i * how.ldc + j;
                naive(&how, a, b, q, i, j, &sum, &size);
                if (accumulate)
                    sum += (double)start[at];
                near &= fabs((double)c[at] - sum) <= 4 * FLT_EPSILON * (size + fabs(sum)) * (1 + sqrt((double)k) / 8);
            }
    CHECK_CASE(h, near, text);
    CHECK_CASE(h, kept, text);
    free(a);
    free(b);
    free(c);
    free(start);
    free(first);
}

static void test_products(Harness *h, Blas *blas, Pool *const *pools)
{
    static const int64_t shapes[][4] = {{1, 1, 1, 1},        {1, 1, 5000, 1},     {7, 1, 13, 3},   {1, 11, 3, 2},
                                        {31, 33, 37, 1},     {97, 101, 103, 2},   {64, 64, 64, 5}, {193, 389, 61, 1},
                                        {513, 385, 129, 1},  {1031, 17, 5, 1},    {5, 2053, 9, 1}, {16, 16, 9001, 1},
                                        {3, 5, 40000, 1},    {127, 127, 5003, 1}, {2, 3, 4, 997},  {8, 64, 8, 50},
                                        {192, 192, 2048, 1}, {0, 5, 5, 1},        {5, 0, 5, 1},    {5, 7, 0, 2},
                                        {5, 7, 3, 0},        {700, 8, 600, 1},    {8, 700, 600, 1}};
    CaseDraw draw = drawn;
    for (size_t s = 0; s < COUNT_OF(shapes); s++)
        for (size_t flags = 0; flags < 8; flags++)
            if (case_drawn(&draw, 8 * s + flags))
                test_product(h, blas, pools, flags & 1, flags & 2, flags & 4, shapes[s][0], shapes[s][1], shapes[s][2],
                             shapes[s][3], flags == 5 || flags == 2 ? 3 : 0);
    cases_end(&draw);
}

/* ---- operands in bf16 ---- */

/* Small whole numbers, as float and as bf16: every sum below is exact. */
static void whole_numbers(float *real, uint16_t *bf16, int64_t n, uint64_t seed)
{
    for (int64_t i = 0; i < n; i++) {
        uint32_t bits;
        real[i] = (float)(int)(8 * harness_random(&seed));
        memcpy(&bits, &real[i], sizeof bits);
        bf16[i] = (uint16_t)(bits >> 16);
    }
}

static void test_bf16_product(Harness *h, Blas *blas, Pool *const *pools, bool ta, bool tb, const int64_t shape[4],
                              int64_t pad)
{
    int64_t m = shape[0], n = shape[1], k = shape[2], batch = shape[3];
    PlanMatmul how = {.transpose_a = ta, .transpose_b = tb, .half = HALF_BF16, .m = m, .n = n, .k = k, .batch = batch};
    how.lda = (ta ? m : k) + pad;
    how.ldb = (tb ? k : n) + pad;
    how.ldc = n + pad;
    how.step_a = how.lda * (ta ? k : m);
    how.step_b = how.ldb * (tb ? n : k);
    how.step_c = how.ldc * m;
    char text[200];
    snprintf(text, sizeof text, "bf16 %lld x %lld x %lld, %d%d, batch %lld, pad %lld", (long long)m, (long long)n,
             (long long)k, ta, tb, (long long)batch, (long long)pad);
    int64_t na = how.step_a * batch, nb = how.step_b * batch, room = how.step_c * batch;
    float *a = random_floats(na, 1), *b = random_floats(nb, 2), *c = random_floats(room, 3);
    uint16_t *ha = malloc((size_t)na * 2 + 2), *hb = malloc((size_t)nb * 2 + 2);
    whole_numbers(a, ha, na, 4);
    whole_numbers(b, hb, nb, 5);
    CHECK_CASE(h, blas_prepare(blas, &how), text);
    for (size_t t = 0; t < POOLS; t++) {
        bool good = true;
        for (int64_t i = 0; i < room; i++)
            c[i] = canary;
        CHECK_CASE(h, blas_matmul(blas, pools[t], &how, ha, hb, c), text);
        for (int64_t q = 0; q < batch; q++)
            for (int64_t i = 0; i < m; i++)
                for (int64_t j = 0; j < how.ldc; j += (m > 300 || SANITIZED) && j < n - 9 ? 7 : 1) {
                    double sum = canary, size;
                    if (j < n)
                        naive(&how, a, b, q, i, j, &sum, &size);
                    good &= (double)c[q * how.step_c + i * how.ldc + j] == sum;
                }
        CHECK_CASE(h, good, text);
    }
    free(a);
    free(b);
    free(c);
    free(ha);
    free(hb);
}

/* ---- by expert ---- */

static void naive_expert(const PlanExpert *how, const float *x, const float *w, const int64_t *index, double *out)
{
    int64_t pairs = how->tokens * how->choices, in = how->in, far = how->out;
    int64_t size = how->what == EXPERT_Y ? pairs * far : how->experts * in * far;
    memset(out, 0, (size_t)size * sizeof *out);
    for (int64_t p = 0; p < pairs; p++) {
        const float *row = x + (how->x_per_pair ? p : p / how->choices) * in;
        int64_t e = index[p];
        if (e < 0 || e >= how->experts)
            continue;
        for (int64_t i = 0; i < in; i++)
            for (int64_t j = 0; j < far; j++)
                if (how->what == EXPERT_DW)
                    out[(e * in + i) * far + j] += (double)row[i] * (double)w[p * far + j];
                else
                    out[p * far + j] +=
                        (double)row[i] * (double)w[how->transpose_w ? (e * far + j) * in + i : (e * in + i) * far + j];
    }
}

/* How the rows are dealt out: evenly, all to one, none to the last half, with strays. */
static int64_t deal(int kind, int64_t p, int64_t experts, uint64_t *seed)
{
    double r = (harness_random(seed) + 1) / 2;
    if (kind == 1)
        return experts - 1;
    if (kind == 2)
        return (int64_t)(r * (double)((experts + 1) / 2));
    if (kind == 3 && p % 5 == 0)
        return p % 2 ? -1 : experts;
    return (int64_t)(r * (double)experts);
}

static void test_expert(Harness *h, const Blas *blas, Pool *const *pools, const PlanExpert *how, int kind)
{
    int64_t pairs = how->tokens * how->choices;
    int64_t size = how->what == EXPERT_Y ? pairs * how->out : how->experts * how->in * how->out;
    int64_t second = how->what == EXPERT_Y ? how->experts * how->in * how->out : pairs * how->out;
    int64_t first_size = (how->x_per_pair ? pairs : how->tokens) * how->in;
    float *x = random_floats(first_size, 4);
    uint16_t *hx = malloc((size_t)first_size * 2 + 2), *hw = malloc((size_t)second * 2 + 2);
    float *w = random_floats(second, 5), *y = malloc((size_t)(size + CANARY) * sizeof *y);
    float *first = malloc((size_t)(size + CANARY) * sizeof *first);
    double *exact = malloc((size_t)(size + 1) * sizeof *exact);
    int64_t *index = malloc((size_t)(pairs + 1) * sizeof *index);
    uint64_t seed = 6;
    char text[400];
    snprintf(text, sizeof text,
             "expert: what %d, %lld tokens, %lld choices, %lld experts, "
             "%lld -> %lld, transposed %d, per pair %d, dealt %d",
             (int)how->what, (long long)how->tokens, (long long)how->choices, (long long)how->experts,
             (long long)how->in, (long long)how->out, how->transpose_w, how->x_per_pair, kind);
    if (how->half) { /* sums of these are exact */
        whole_numbers(x, hx, first_size, 4);
        whole_numbers(w, hw, second, 5);
    }
    CHECK_CASE(h, expert_prepare(blas, how), text);
    for (int64_t p = 0; p < pairs; p++)
        index[p] = deal(kind, p, how->experts, &seed);
    naive_expert(how, x, w, index, exact);
    for (size_t t = 0; t < POOLS; t++) {
        int64_t bytes = expert_scratch(how, thread_counts[t]);
        char *scratch = malloc((size_t)bytes + CANARY);
        memset(scratch, 0xff, (size_t)bytes + CANARY);
        for (int64_t i = 0; i < size + CANARY; i++)
            y[i] = canary;
        CHECK_CASE(
            h,
            expert_run(blas, pools[t], how, how->half ? (void *)hx : x, how->half ? (void *)hw : w, index, y, scratch),
            text);
        if (t == 0)
            memcpy(first, y, (size_t)(size + CANARY) * sizeof *y);
        bool kept = true;
        for (int i = 0; i < CANARY; i++)
            kept &= y[size + i] == canary && (unsigned char)scratch[bytes + i] == 0xff;
        CHECK_CASE(h, kept, text);
        CHECK_CASE(h, !memcmp(first, y, (size_t)size * sizeof *y), text);
        free(scratch);
    }
    double worst = 0;
    for (int64_t i = 0; i < size; i++)
        worst = fmax(worst, fabs((double)y[i] - exact[i]));
    CHECK_CASE(h, how->half ? worst == 0 : worst < 1e-5 * (2 + sqrt((double)(how->what == EXPERT_Y ? how->in : pairs))),
               text);
    free(x);
    free(w);
    free(y);
    free(first);
    free(exact);
    free(index);
    free(hx);
    free(hw);
}

static void test_experts(Harness *h, const Blas *blas, Pool *const *pools, Half half)
{
    static const int64_t shapes[][5] = {/* tokens, choices, experts, in, out */
                                        {1, 1, 1, 1, 1},       {37, 2, 5, 13, 29}, {300, 2, 8, 64, 48},
                                        {601, 1, 3, 200, 131}, {5, 3, 64, 7, 11},  {0, 2, 4, 8, 8},
                                        {9, 2, 4, 0, 8},       {9, 2, 4, 8, 0}};
    CaseDraw draw = drawn;
    for (size_t s = 0; s < COUNT_OF(shapes); s++)
        for (size_t flags = 0; flags < 16; flags++) {
            if (!case_drawn(&draw, 16 * s + flags))
                continue;
            PlanExpert how = {.what = flags & 1 ? EXPERT_DW : EXPERT_Y,
                              .half = half,
                              .transpose_w = flags & 2 && !(flags & 1),
                              .x_per_pair = flags & 2,
                              .per_row = (flags & 8) && !(flags & 1),
                              .tokens = shapes[s][0],
                              .choices = shapes[s][1],
                              .experts = shapes[s][2],
                              .in = shapes[s][3],
                              .out = shapes[s][4]};
            test_expert(h, blas, pools, &how, (int)flags >> 2);
        }
    cases_end(&draw);
}

/* ---- both in bf16 ---- */

static void test_bf16(Harness *h, Blas *blas, Pool *const *pools)
{
    static const int64_t shapes[][4] = {{64, 64, 64, 1},   {97, 101, 103, 2}, {1, 65, 70, 1},     {193, 389, 61, 1},
                                        {513, 65, 129, 1}, {80, 70, 5003, 1}, {192, 96, 2048, 1}, {31, 33, 37, 3}};
    Ctx *ctx = ctx_new(NULL);
    char why[512] = "";
    if (!bf16_open(blas, ctx, thread_counts[POOLS - 1], why)) {
        CHECK(h, why[0] && !blas->bf16);
        printf("no products of bf16 operands: %s\n", why);
        ctx_free(ctx);
        return;
    }
    CaseDraw draw = drawn;
    for (size_t s = 0; s < COUNT_OF(shapes); s++)
        for (size_t flags = 0; flags < 4; flags++)
            if (case_drawn(&draw, 4 * s + flags))
                test_bf16_product(h, blas, pools, flags & 1, flags & 2, shapes[s], s % 2 ? 3 : 0);
    cases_end(&draw);
    test_experts(h, blas, pools, HALF_BF16);
    PlanMatmul unknown = {.half = HALF_BF16, .m = 77, .n = 78, .k = 79, .batch = 1, .lda = 79, .ldb = 78, .ldc = 78};
    CHECK(h, !blas_matmul(blas, pools[0], &unknown, NULL, NULL, NULL)); /* nobody prepared it */
    PlanExpert stranger = {.half = HALF_BF16, .tokens = 3, .choices = 1, .experts = 2, .in = 777, .out = 3};
    CHECK(h, !expert_run(blas, pools[0], &stranger, NULL, NULL, NULL, NULL, NULL));
    unknown.accumulate = true;
    CHECK(h, !blas_prepare(blas, &unknown));
    bf16_close(blas->bf16);
    blas->bf16 = NULL;
    ctx_free(ctx);
}

int main(void)
{
    Harness h = {0};
    char why[512];
    static const char *const names[] = {"onednn", "openblas", "plain"};
    Pool *pools[POOLS];
    for (int i = 0; i < POOLS; i++)
        pools[i] = pool_open(thread_counts[i]);
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        Blas blas;
        if (!blas_open(&blas, names[i], why)) {
            printf("skipped: %s\n", why);
            continue;
        }
        blas.scratch = malloc(BLAS_SCRATCH * sizeof *blas.scratch);
        test_products(&h, &blas, pools);
        test_experts(&h, &blas, pools, HALF_NONE);
        test_bf16(&h, &blas, pools);
        free(blas.scratch);
        blas_close(&blas);
    }
    for (int i = 0; i < POOLS; i++)
        pool_close(pools[i]);
    Blas blas;
    CHECK(&h, !blas_open(&blas, "nonsense", why) && strstr(why, "nonsense"));
    return harness_end(&h);
}
