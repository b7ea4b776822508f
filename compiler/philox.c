/* philox.c - random numbers that are a function of (seed, site, step, index).
 *
 * In:  a key and a counter.     Out: a uniform or normal number.
 * The one idea: Philox4x32-10 (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3")
 * has no state, so every backend, thread count and resumed run draws the same numbers.
 */
#include "ir.h"

#include <math.h>

void philox4x32(const uint32_t counter[4], const uint32_t key[2], uint32_t out[4])
{
    uint32_t c0 = counter[0], c1 = counter[1], c2 = counter[2], c3 = counter[3];
    uint32_t k0 = key[0], k1 = key[1];
    for (int round = 0; round < 10; round++) {
        uint64_t p0 = (uint64_t)0xD2511F53u * c0, p1 = (uint64_t)0xCD9E8D57u * c2;
        c0 = (uint32_t)(p1 >> 32) ^ c1 ^ k0;
        c1 = (uint32_t)p1;
        c2 = (uint32_t)(p0 >> 32) ^ c3 ^ k1;
        c3 = (uint32_t)p0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
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
    for (size_t done = 0; done < n; done += BATCH, index += BATCH, out += BATCH) {
        size_t m = n - done < BATCH ? n - done : BATCH;
        for (size_t i = 0; i < m; i++) {
            uint32_t w[4];
            block_at(key, step, index + i, w);
            out[i] = ((double)(w[0] >> 8) + 1) * 0x1p-24;
            angle[i] = (double)(w[1] >> 8) * 0x1p-24;
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
