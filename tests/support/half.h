/* half.h - numbers of 16 bits as tests write and read them: bf16 and fp16, by arithmetic on float64.
 *
 * In:  a number, or its two bytes.     Out: the two bytes of the nearest one, ties to even; the number.
 */
#ifndef TEST_HALF_H
#define TEST_HALF_H

#include "half_bits.h"

#include "compiler/graph/ir.h"

static inline double of_half(uint16_t u, Half type) { return type == HALF_FP16 ? of_fp16(u) : of_bf16(u); }

static inline uint16_t to_half(double x, Half type)
{
    bool bf16 = type == HALF_BF16;
    int e, least = bf16 ? -133 : -24, infinite = bf16 ? 0x7f80 : 0x7c00;
    if (!isfinite(x))
        return (uint16_t)(infinite | (signbit(x) ? 0x8000 : 0) | (isnan(x) ? 0x40 : 0));
    frexp(x, &e);
    int unit = e - (bf16 ? 8 : 11) > least ? e - (bf16 ? 8 : 11) : least;
    double y = ldexp(nearbyint(ldexp(x, -unit)), unit), size = fabs(y);
    if (bf16) {
        float z = (float)y;
        uint32_t bits;
        memcpy(&bits, &z, sizeof bits);
        return (uint16_t)(bits >> 16);
    }
    int code = infinite;
    if (size < 0x1p-14)
        code = (int)ldexp(size, 24);
    else if (size < 65536) {
        double part = frexp(size, &e); /* 0.5 <= part < 1 */
        code = ((e + 14) << 10) + (int)ldexp(part, 11) - 1024;
    }
    return (uint16_t)(code | (signbit(x) ? 0x8000 : 0));
}

#endif
