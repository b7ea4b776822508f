/* bench_products.c - how fast the tiled products are, beside the library's own threads.
 *
 * In:  nothing, or `processor`: one thread and its processor time, for a machine with other work.
 * Out: one line per shape: GFLOP/s of oneDNN with its own threads, ours, the share; ours with
 *      bf16 operands, the share of ours, and that share when A must first be rounded into a copy.
 */
#define _GNU_SOURCE
#include "runtime/cpu/cpu.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef int (*Sgemm)(char, char, int64_t, int64_t, int64_t, float, const float *, int64_t, const float *, int64_t,
                     float, float *, int64_t);

static double now(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* What a kernel does that rounds an operand for products: four bytes in, two out. */
typedef struct Rounding {
    const float *from;
    uint16_t *to;
} Rounding;

static void round_rows(void *user, int64_t lo, int64_t hi, int worker)
{
    const Rounding *r = user;
    (void)worker;
    for (int64_t i = lo; i < hi; i++) {
        uint32_t u;
        memcpy(&u, &r->from[i], sizeof u);
        r->to[i] = (uint16_t)((u + 0x7fffu + (u >> 16 & 1u)) >> 16);
    }
}

static float *numbers(int64_t n)
{
    float *v = aligned_alloc(64, ((size_t)n * sizeof *v + 63) / 64 * 64);
    for (int64_t i = 0; v && i < n; i++)
        v[i] = (float)(i * 7919 % 13) - 6;
    return v;
}

int main(int argc, char **argv)
{
    bool alone = argc > 1 && !strcmp(argv[1], "processor");
    clockid_t clock = alone ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC;
    static const int64_t shapes[][6] = {
        {2048, 192, 192, 0, 0, 1},  {2048, 384, 384, 0, 0, 1}, {2048, 768, 768, 0, 0, 1},  {2048, 768, 192, 0, 0, 1},
        {2048, 192, 768, 0, 0, 1},  {2048, 768, 768, 0, 1, 1}, {2048, 192, 768, 0, 1, 1},  {4096, 256, 1024, 0, 0, 1},
        {4096, 1024, 256, 0, 1, 1}, {192, 192, 2048, 1, 0, 1}, {384, 384, 2048, 1, 0, 1},  {768, 768, 2048, 1, 0, 1},
        {192, 768, 2048, 1, 0, 1},  {768, 192, 2048, 1, 0, 1}, {256, 1024, 4096, 1, 0, 1}, {768, 8, 4096, 1, 0, 1},
        {4096, 8, 768, 0, 0, 1},    {64, 16, 65536, 1, 0, 1},  {64, 64, 65536, 1, 0, 1},   {8, 8, 32768, 1, 0, 1},
        {16, 16, 16, 0, 0, 4096},   {8, 64, 8, 0, 0, 4096},    {256, 256, 64, 0, 1, 64},   {4096, 256, 256, 0, 0, 1},
        {4096, 256, 256, 0, 1, 1},  {256, 256, 4096, 1, 0, 1}, {4096, 704, 256, 0, 0, 1},  {4096, 256, 704, 0, 1, 1},
        {256, 704, 4096, 1, 0, 1},  {4096, 128, 256, 0, 0, 1}, {4096, 64, 256, 0, 0, 1},   {4096, 32, 256, 0, 0, 1},
        {4096, 16, 256, 0, 0, 1},   {4096, 256, 64, 0, 0, 1},  {4096, 256, 32, 0, 0, 1},   {64, 256, 256, 0, 0, 1},
        {32, 256, 256, 0, 0, 1},    {64, 64, 4096, 1, 0, 1}};
    Blas blas;
    char why[512];
    if (!blas_open(&blas, "onednn", why)) {
        fprintf(stderr, "%s\n", why);
        return 1;
    }
    blas.scratch = numbers(BLAS_SCRATCH);
    if (alone && blas.set_threads)
        blas.set_threads(1);
    int threads = alone ? 1 : threads_available();
    Pool *pool = pool_open(threads);
    Ctx *ctx = ctx_new(NULL);
    bool bf16 = bf16_open(&blas, ctx, threads, why);
    printf("%s, %d threads, bf16: %s\n", blas.name, threads, bf16 ? bf16_implementation(blas.bf16) : why);
    for (size_t s = 0; s < COUNT_OF(shapes); s++) {
        const int64_t *v = shapes[s];
        int64_t m = v[0], n = v[1], k = v[2], batch = v[5];
        bool ta = v[3], tb = v[4];
        PlanMatmul how = {.transpose_a = ta,
                          .transpose_b = tb,
                          .m = m,
                          .n = n,
                          .k = k,
                          .batch = batch,
                          .lda = ta ? m : k,
                          .ldb = tb ? k : n,
                          .ldc = n,
                          .step_a = m * k,
                          .step_b = k * n,
                          .step_c = m * n};
        float *a = numbers(m * k * batch), *b = numbers(k * n * batch), *c = numbers(m * n * batch);
        double flops = 2.0 * (double)(m * n * k * batch), best[4] = {1e9, 1e9, 1e9, 1e9};
        uint16_t *ha = (uint16_t *)numbers(m * k * batch), *hb = (uint16_t *)numbers(k * n * batch);
        Rounding ra = {a, ha}, rb = {b, hb};
        round_rows(&ra, 0, m * k * batch, 0);
        round_rows(&rb, 0, k * n * batch, 0);
        PlanMatmul half = how;
        half.half = HALF_BF16;
        if (bf16 && !blas_prepare(&blas, &half))
            return 1;
        int repeat = 1 + (int)(4e8 / flops);
        for (int round = 0; round < (bf16 ? 48 : 24); round++) {
            int which = round % (bf16 ? 4 : 2);
            double start = now(clock);
            for (int r = 0; r < repeat; r++) {
                for (int64_t i = 0; which == 0 && i < batch; i++)
                    ((Sgemm)blas.sgemm)(ta ? 'T' : 'N', tb ? 'T' : 'N', m, n, k, 1, a + i * m * k, how.lda,
                                        b + i * k * n, how.ldb, 0, c + i * m * n, n);
                if (which == 1)
                    blas_matmul(&blas, pool, &how, a, b, c);
                if (which == 3)
                    parallel_for(pool, m * k * batch, 16384, round_rows, &ra);
                if (which >= 2)
                    blas_matmul(&blas, pool, &half, ha, hb, c);
            }
            double t = (now(clock) - start) / repeat;
            best[which] = t < best[which] ? t : best[which];
        }
        printf("%5lld x %4lld x %5lld %c%c batch %4lld: %4.0f library, %4.0f ours, %3.0f %%; bf16 %4.0f, "
               "%3.0f %%, %3.0f %%\n",
               (long long)m, (long long)n, (long long)k, ta ? 'T' : 'N', tb ? 'T' : 'N', (long long)batch,
               1e-9 * flops / best[0], 1e-9 * flops / best[1], 100 * best[0] / best[1],
               bf16 ? 1e-9 * flops / best[2] : 0, bf16 ? 100 * best[1] / best[2] : 0,
               bf16 ? 100 * best[1] / best[3] : 0);
        free(ha);
        free(hb);
        free(a);
        free(b);
        free(c);
    }
    pool_close(pool);
    bf16_close(blas.bf16);
    ctx_free(ctx);
    free(blas.scratch);
    blas_close(&blas);
    return 0;
}
