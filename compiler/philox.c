/* philox.c - random numbers that are a function of (seed, site, step, index).
 *
 * In:  a key and a counter.     Out: a uniform or normal number.
 * The one idea: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3")
 * has no state, so every backend, thread count and resumed run draws the same numbers.
 */
#include "ir.h"

#include <math.h>
#if defined __x86_64__
#include <immintrin.h>
#endif

/* Of a round, and what is added to the keys after each. */
enum { ROUNDS = 10 };
#define TIMES_0 0xD2511F53u
#define TIMES_1 0xCD9E8D57u
#define STEP_0  0x9E3779B9u
#define STEP_1  0xBB67AE85u

void philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < ROUNDS; round++) {
        uint64_t p0 = (uint64_t)TIMES_0 * c0, p1 = (uint64_t)TIMES_1 * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += STEP_0;
        k1 += STEP_1;
    }
    out[0] = c0;
    out[1] = c1;
    out[2] = c2;
    out[3] = c3;
}

/* FNV-1a over the site, started from the seed, then mixed so that near seeds give far keys.
 * These steps are part of the format: a change changes every run. */
uint64_t philox_key(uint64_t seed, const char *site)
{
    uint64_t h = 0xcbf29ce484222325u ^ (seed * 0x9e3779b97f4a7c15u);
    for (const unsigned char *s = (const unsigned char *)site; *s; s++)
        h = (h ^ *s) * 0x100000001b3u;
    h = (h ^ (h >> 30)) * 0xbf58476d1ce4e5b9u;
    h = (h ^ (h >> 27)) * 0x94d049bb133111ebu;
    return h ^ (h >> 31);
}

static void block_at(uint64_t key, uint64_t step, uint64_t index, uint32_t out[4])
{
    uint32_t counter[4] = {(uint32_t)index, (uint32_t)(index >> 32), (uint32_t)step,
                           (uint32_t)(step >> 32)};
    uint32_t halves[2] = {(uint32_t)key, (uint32_t)(key >> 32)};
    philox4x32(counter, halves, out);
}

#if defined __x86_64__
#define WITH_AVX2 __attribute__((target("avx2")))

/* The high and low halves of eight products. */
WITH_AVX2 static inline void multiply(__m256i x, uint32_t by, __m256i *high, __m256i *low)
{
    __m256i y = _mm256_set1_epi32((int)by), even = _mm256_mul_epu32(x, y),
            odd = _mm256_mul_epu32(_mm256_srli_epi64(x, 32), y);
    *high = _mm256_blend_epi32(_mm256_srli_epi64(even, 32), odd, 0xaa);
    *low = _mm256_blend_epi32(even, _mm256_slli_epi64(odd, 32), 0xaa);
}

/* Words 0 and 1 of eight blocks, as philox4x32() makes them. */
WITH_AVX2 static void eight_at(uint64_t key, uint64_t step, uint64_t index, uint32_t *w0,
                               uint32_t *w1)
{
    for (uint64_t i = 0; i < 8; i++) {
        w0[i] = (uint32_t)(index + i);
        w1[i] = (uint32_t)((index + i) >> 32);
    }
    __m256i c0 = _mm256_loadu_si256((const __m256i *)w0), c2 = _mm256_set1_epi32((int)step),
            c1 = _mm256_loadu_si256((const __m256i *)w1),
            c3 = _mm256_set1_epi32((int)(step >> 32));
    uint32_t k0 = (uint32_t)key, k1 = (uint32_t)(key >> 32);
    for (int round = 0; round < ROUNDS; round++, k0 += STEP_0, k1 += STEP_1) {
        __m256i high0, low0, high1, low1;
        multiply(c0, TIMES_0, &high0, &low0);
        multiply(c2, TIMES_1, &high1, &low1);
        c0 = _mm256_xor_si256(_mm256_xor_si256(high1, c1), _mm256_set1_epi32((int)k0));
        c1 = low1;
        c2 = _mm256_xor_si256(_mm256_xor_si256(high0, c3), _mm256_set1_epi32((int)k1));
        c3 = low0;
    }
    _mm256_storeu_si256((__m256i *)w0, c0);
    _mm256_storeu_si256((__m256i *)w1, c1);
}
#endif

/* Words 0 and 1 of n blocks. */
static void words_at(uint64_t key, uint64_t step, uint64_t index, size_t n, uint32_t *w0,
                     uint32_t *w1)
{
    size_t i = 0;
#if defined __x86_64__
    for (; __builtin_cpu_supports("avx2") && i + 8 <= n; i += 8)
        eight_at(key, step, index + i, w0 + i, w1 + i);
#endif
    for (; i < n; i++) {
        uint32_t w[4];
        block_at(key, step, index + i, w);
        w0[i] = w[0];
        w1[i] = w[1];
    }
}

double philox_uniform(uint64_t key, uint64_t step, uint64_t index)
{
    uint32_t w[4];
    block_at(key, step, index, w);
    return (double)(w[0] >> 8) * 0x1p-24;
}

/* Box-Muller: the radius from word 0, in (0, 1], the angle from word 1. Each step is done for many
 * numbers before the next: one number alone is a chain of 100 cycles and more. */
void philox_normals(uint64_t key, uint64_t step, uint64_t index, size_t n, double *out)
{
    enum { BATCH = 64 };
    double angle[BATCH];
    uint32_t w0[BATCH], w1[BATCH];
    for (size_t done = 0; done < n; done += BATCH, index += BATCH, out += BATCH) {
        size_t m = n - done < BATCH ? n - done : BATCH;
        words_at(key, step, index, m, w0, w1);
        for (size_t i = 0; i < m; i++) {
            out[i] = ((double)(w0[i] >> 8) + 1) * 0x1p-24;
            angle[i] = (double)(w1[i] >> 8) * 0x1p-24;
        }
        for (size_t i = 0; i < m; i++)
            out[i] = log(out[i]);
        for (size_t i = 0; i < m; i++)
            angle[i] = cos(2 * 3.14159265358979323846 * angle[i]);
        for (size_t i = 0; i < m; i++)
            out[i] = sqrt(-2 * out[i]) * angle[i];
    }
}

double philox_normal(uint64_t key, uint64_t step, uint64_t index)
{
    double x;
    philox_normals(key, step, index, 1, &x);
    return x;
}
