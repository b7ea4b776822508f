/* half_bits.h - the numbers that two bytes are, as bf16 and as fp16.
 *
 * In:  the two bytes.     Out: the number. Includes nothing of the compiler: it is also carried to where only a
 *      folder of texts is.
 */
#ifndef TEST_HALF_BITS_H
#define TEST_HALF_BITS_H

#include <math.h>
#include <stdint.h>
#include <string.h>

static inline double of_bf16(uint16_t u)
{
    uint32_t bits = (uint32_t)u << 16;
    float x;
    memcpy(&x, &bits, sizeof x);
    return (double)x;
}

static inline double of_fp16(uint16_t u)
{
    int e = u >> 10 & 31, m = u & 1023;
    double y = e == 31 ? (m ? (double)NAN : (double)INFINITY) : e ? ldexp(1024 + m, e - 25) : ldexp(m, -24);
    return u >> 15 ? -y : y;
}

#endif
