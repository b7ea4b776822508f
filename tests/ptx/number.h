/* number.h - numbers of 16 bits and their bits, by the definition of their formats.
 *
 * In: a number or bits.  Out: the other. Rounding is to the nearest, ties to even.
 */
#ifndef VWN_TEST_PTX_NUMBER_H
#define VWN_TEST_PTX_NUMBER_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline uint32_t bits_of(float x)
{
    uint32_t u;
    memcpy(&u, &x, sizeof u);
    return u;
}
static inline float number_of(uint32_t u)
{
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}
/* Without denormal numbers, with their sign. */
static inline float flushed(float x)
{
    const uint32_t u = bits_of(x);
    return u & 0x7f800000 ? x : number_of(u & 0x80000000);
}
/* The nearest float that is not more. */
static inline float down(double x)
{
    const float y = (float)x;
    return (double)y > x ? nextafterf(y, -INFINITY) : y;
}
static inline float of_brain(uint16_t u) { return number_of((uint32_t)u << 16); }
static inline uint16_t to_brain(float x)
{
    const uint32_t u = bits_of(x);
    if (x != x)
        return 0x7fff;
    return (uint16_t)((u + 0x7fff + (u >> 16 & 1)) >> 16);
}
/* Five bits of exponent, ten behind the point. */
static inline double of_half(uint16_t u)
{
    const int e = u >> 10 & 31;
    const double m = u & 1023;
    const double x = e == 31 ? u & 1023 ? (double)NAN : (double)INFINITY : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
    return u & 0x8000 ? -x : x;
}
static inline uint16_t to_half(double x)
{
    const uint16_t sign = signbit(x) ? 0x8000 : 0;
    int e;
    x = fabs(x);
    if (x != x)
        return 0x7fff;
    if (x >= 65520) /* half way from the largest number to the one that would be next */
        return sign | 0x7c00;
    if (x < 0x1p-14)
        return sign | (uint16_t)rint(ldexp(x, 24));
    frexp(x, &e);                                       /* x = 1.m 2^(e - 1) */
    const double m = rint(ldexp(x, 11 - e));            /* 1024 to 2048 */
    return sign | (uint16_t)((e + 13) * 1024 + (int)m); /* a carry goes into the exponent */
}

#endif
