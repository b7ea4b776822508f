/* torch_numbers.c - numbers of 16 bits to float32 and back, of whole tensors; see torch_call.h.
 *
 * The one idea: without branches, so that compilers make vectors of it.
 */
#include "torch_call.h"

#include <string.h>

static uint32_t bits_of(float x)
{
    uint32_t b;
    memcpy(&b, &x, sizeof b);
    return b;
}

static float number_of(uint32_t b)
{
    float x;
    memcpy(&x, &b, sizeof x);
    return x;
}

static float of_bf16(uint16_t h) { return number_of((uint32_t)h << 16); }

static uint16_t to_bf16(float x)
{
    const uint32_t b = bits_of(x);
    return (uint16_t)((b & 0x7fffffff) > 0x7f800000 ? 0x7fc0 | b >> 16 : (b + 0x7fff + (b >> 16 & 1)) >> 16);
}

/* The exponent of fp16 is 112 less; that of infinity and of what is no number stays all ones. */
static float of_fp16(uint16_t h)
{
    const uint32_t sign = (uint32_t)(h & 0x8000) << 16, rest = (uint32_t)(h & 0x7fff) << 13;
    return number_of(sign | (rest >= 0x7c00 << 13 ? rest | 0x7f800000 : bits_of(number_of(rest) * 0x1p112f)));
}

/* Below 2^-14 the spacing stays 2^-24: that of float32 at 1/2. From 65520 on it is infinite. */
static uint16_t to_fp16(float x)
{
    const uint32_t b = bits_of(x), sign = b >> 16 & 0x8000, size = b & 0x7fffffff;
    const uint32_t small = bits_of(number_of(size) + 0.5f) - bits_of(0.5f);
    const uint32_t normal = (size - (112u << 23) + 0xfff + (size >> 13 & 1)) >> 13;
    const uint32_t large = size > 0x7f800000 ? 0x7e00 | (size >> 13 & 0x3ff) : 0x7c00;
    return (uint16_t)(sign | (size < 113u << 23 ? small : size < 0x477ff000 ? normal : large));
}

/* ---- of a tensor, by all threads ---- */

typedef struct Numbers {
    NumberType type;
    const void *from;
    void *to;
} Numbers;

static void widen(void *user, int64_t lo, int64_t hi, int worker)
{
    const Numbers *all = user;
    const uint16_t *from = all->from;
    float *to = all->to;
    (void)worker;
    if (all->type == BF16)
        for (int64_t i = lo; i < hi; i++)
            to[i] = of_bf16(from[i]);
    else
        for (int64_t i = lo; i < hi; i++)
            to[i] = of_fp16(from[i]);
}

static void round_some(void *user, int64_t lo, int64_t hi, int worker)
{
    const Numbers *all = user;
    const float *from = all->from;
    uint16_t *to = all->to;
    (void)worker;
    if (all->type == BF16)
        for (int64_t i = lo; i < hi; i++)
            to[i] = to_bf16(from[i]);
    else
        for (int64_t i = lo; i < hi; i++)
            to[i] = to_fp16(from[i]);
}

enum { AT_ONCE = 1 << 15 };

void numbers_widen(Pool *pool, NumberType type, const void *from, float *to, int64_t n)
{
    parallel_for(pool, n, AT_ONCE, widen, &(Numbers){type, from, to});
}

void numbers_round(Pool *pool, NumberType type, const float *from, void *to, int64_t n)
{
    parallel_for(pool, n, AT_ONCE, round_some, &(Numbers){type, from, to});
}
