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
    uint32_t counter[4] = {(uint32_t)index, (uint32_t)(index >> 32), (uint32_t)step, (uint32_t)(step >> 32)};
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
WITH_AVX2 static void eight_at(uint64_t key, uint64_t step, uint64_t index, uint32_t *w0, uint32_t *w1)
{
    for (uint64_t i = 0; i < 8; i++) {
        w0[i] = (uint32_t)(index + i);
        w1[i] = (uint32_t)((index + i) >> 32);
    }
    __m256i c0 = _mm256_loadu_si256((const __m256i *)w0), c2 = _mm256_set1_epi32((int)step),
            c1 = _mm256_loadu_si256((const __m256i *)w1), c3 = _mm256_set1_epi32((int)(step >> 32));
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
static void words_at(uint64_t key, uint64_t step, uint64_t index, size_t n, uint32_t *w0, uint32_t *w1)
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

/* ---- numbers of normal distribution that are wanted in 24 bits ---- */

#if defined __x86_64__
/* Coefficients of fdlibm: log(1 + f) by s = f / (2 + f), sin and cos on [-pi/4, pi/4]. */
static const double LOG[] = {6.666666666666735130e-01, 3.999999999940941908e-01, 2.857142874366239149e-01,
                             2.222219843214978396e-01, 1.818357216161805012e-01, 1.531383769920937332e-01,
                             1.479819860511658591e-01};
static const double SIN[] = {-1.66666666666666324348e-01, 8.33333333332248946124e-03,  -1.98412698298579493134e-04,
                             2.75573137070700676789e-06,  -2.50507602534068634195e-08, 1.58969099521155010221e-10};
static const double COS[] = {4.16666666666666019037e-02,  -1.38888888888741095749e-03, 2.48015872894767294178e-05,
                             -2.75573143513906633035e-07, 2.08757232129817482790e-09,  -1.13596475577881948265e-11};
static const double LN2_HIGH = 6.93147180369123816490e-01, LN2_LOW = 1.90821492927058770002e-10;         /* sum: ln 2 */
static const double QUARTER_HIGH = 1.57079632673412561417e+00, QUARTER_LOW = 6.07710050650619224932e-11; /* pi / 2 */

typedef __m256d Four;

WITH_AVX2 static inline Four all(double x) { return _mm256_set1_pd(x); }
WITH_AVX2 static inline Four plus(Four x, Four y) { return _mm256_add_pd(x, y); }
WITH_AVX2 static inline Four minus(Four x, Four y) { return _mm256_sub_pd(x, y); }
WITH_AVX2 static inline Four times(Four x, Four y) { return _mm256_mul_pd(x, y); }

/* c[0] + c[1] x + ... c[5] x^5, in pairs: so no step waits long for the one before. */
WITH_AVX2 static inline Four polynomial(Four x, const double c[6])
{
    Four low = plus(all(c[0]), times(x, all(c[1]))), middle = plus(all(c[2]), times(x, all(c[3]))),
         high = plus(all(c[4]), times(x, all(c[5]))), square = times(x, x);
    return plus(low, times(square, plus(middle, times(square, high))));
}

/* Of four integers over 2^24, which are more than 0. */
WITH_AVX2 static inline Four logs(__m128i over)
{
    const __m256i fraction = _mm256_set1_epi64x(0xfffffffffffff), one = _mm256_castpd_si256(all(1));
    __m256i bits = _mm256_castpd_si256(_mm256_cvtepi32_pd(over));
    __m256i high = _mm256_permutevar8x32_epi32(bits, _mm256_setr_epi32(1, 3, 5, 7, 1, 3, 5, 7));
    __m128i power = _mm_sub_epi32(_mm_srli_epi32(_mm256_castsi256_si128(high), 20), _mm_set1_epi32(1023 + 24));
    Four x = _mm256_castsi256_pd(_mm256_or_si256(_mm256_and_si256(bits, fraction), one));
    Four large = _mm256_cmp_pd(x, all(1.4142135623730951), _CMP_GT_OQ);
    Four f = minus(_mm256_blendv_pd(x, times(x, all(0.5)), large), all(1));
    Four e = plus(_mm256_cvtepi32_pd(power), _mm256_and_pd(large, all(1)));
    Four s = _mm256_div_pd(f, plus(all(2), f)), z = times(s, s), half = times(all(0.5), times(f, f));
    Four rest = plus(times(s, plus(half, times(z, plus(all(LOG[0]), times(z, polynomial(z, LOG + 1)))))),
                     times(e, all(LN2_LOW)));
    return minus(times(e, all(LN2_HIGH)), minus(minus(half, rest), f));
}

/* The cosine of 2 pi times four integers over 2^24, of the angle as it is rounded above. */
WITH_AVX2 static inline Four cosines(__m128i over)
{
    Four angle = times(all(2 * 3.14159265358979323846), times(_mm256_cvtepi32_pd(over), all(0x1p-24)));
    __m128i quarter = _mm_srli_epi32(_mm_add_epi32(over, _mm_set1_epi32(1 << 21)), 22);
    Four q = _mm256_cvtepi32_pd(quarter);
    Four x = minus(minus(angle, times(q, all(QUARTER_HIGH))), times(q, all(QUARTER_LOW))), z = times(x, x);
    Four sine = plus(x, times(times(x, z), polynomial(z, SIN)));
    Four cosine = plus(minus(all(1), times(all(0.5), z)), times(times(z, z), polynomial(z, COS)));
    __m256i wide = _mm256_cvtepi32_epi64(quarter), next = _mm256_add_epi64(wide, _mm256_set1_epi64x(1));
    Four odd = _mm256_castsi256_pd(_mm256_slli_epi64(wide, 63));
    Four sign = _mm256_castsi256_pd(_mm256_slli_epi64(_mm256_srli_epi64(next, 1), 63));
    return _mm256_xor_pd(_mm256_blendv_pd(cosine, sine, odd), sign);
}

/* Four numbers in 24 bits; which of them are not certain. */
WITH_AVX2 static inline int round_four(Four x, __m128i angle, float *out)
{
    __m128 low = _mm256_cvtpd_ps(times(x, all(1 - 0x1p-46))), high = _mm256_cvtpd_ps(times(x, all(1 + 0x1p-46)));
    __m128i between = _mm_and_si128(angle, _mm_set1_epi32((1 << 22) - 1)); /* whole quarters: 0 */
    __m128 doubt = _mm_or_ps(_mm_cmpneq_ps(low, high), _mm_castsi128_ps(_mm_cmpeq_epi32(between, _mm_setzero_si128())));
    _mm_storeu_ps(out, low);
    return _mm_movemask_ps(doubt);
}

/* The upper 24 bits of four words. */
WITH_AVX2 static inline __m128i upper(const uint32_t *w)
{
    return _mm_srli_epi32(_mm_loadu_si128((const __m128i *)w), 8);
}

/* Eight numbers from words 0 and 1 of their blocks, four beside four; which of them are not certain: bits. */
WITH_AVX2 static inline int eight_rounded(const uint32_t *w0, const uint32_t *w1, double scale, float *out)
{
    const __m128i one = _mm_set1_epi32(1);
    __m128i a = upper(w1), b = upper(w1 + 4);
    Four lx = logs(_mm_add_epi32(upper(w0), one)), ly = logs(_mm_add_epi32(upper(w0 + 4), one));
    Four cx = cosines(a), cy = cosines(b);
    Four x = times(times(_mm256_sqrt_pd(times(all(-2), lx)), cx), all(scale));
    Four y = times(times(_mm256_sqrt_pd(times(all(-2), ly)), cy), all(scale));
    return round_four(x, a, out) | round_four(y, b, out + 4) << 4;
}

/* The first of n numbers, in whole eights; returns how many. */
WITH_AVX2 static size_t eights_at(uint64_t key, uint64_t step, uint64_t index, size_t n, double scale, float *out)
{
    size_t i = 0;
    uint32_t w0[8], w1[8];
    for (; i + 8 <= n; i += 8) {
        eight_at(key, step, index + i, w0, w1);
        int doubt = eight_rounded(w0, w1, scale, out + i);
        for (int k = 0; k < 8 && doubt >> k; k++)
            if (doubt >> k & 1)
                out[i + (size_t)k] = (float)(philox_normal(key, step, index + i + (uint64_t)k) * scale);
    }
    return i;
}
#endif

/* Logarithms and cosines within some last bits of the C library's tell the first 24 bits of a product, unless these would
 * be others 2^-46 of it below or above, or the cosine is as good as 0: then the C library has the word. */
void philox_normals_float(uint64_t key, uint64_t step, uint64_t index, size_t n, double scale, float *out)
{
    size_t i = 0;
#if defined __x86_64__
    if (__builtin_cpu_supports("avx2"))
        i = eights_at(key, step, index, n, scale, out);
#endif
    for (double some[64]; i < n; i += COUNT_OF(some)) {
        size_t m = n - i < COUNT_OF(some) ? n - i : COUNT_OF(some);
        philox_normals(key, step, index + i, m, some);
        for (size_t k = 0; k < m; k++)
            out[i + k] = (float)(some[k] * scale);
    }
}
