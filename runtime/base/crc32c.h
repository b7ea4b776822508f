/* crc32c.h - the Castagnoli checksum, as TensorBoard's records have it.
 *
 * In:  bytes.   Out: 32 bits.   Bit by bit reflected, polynomial 0x1EDC6F41; RFC 3720 has its examples.
 */
#ifndef VWN_CRC32C_H
#define VWN_CRC32C_H

#include <stddef.h>
#include <stdint.h>

static inline uint32_t crc32c(const void *p, size_t n)
{
    const unsigned char *s = p;
    uint32_t c = 0xffffffffu;
    for (size_t i = 0; i < n; i++) {
        c ^= s[i];
        for (int k = 0; k < 8; k++)
            c = c >> 1 ^ (c & 1 ? 0x82f63b78u : 0);
    }
    return ~c;
}

/* A checksum of bytes that hold checksums is worth little, so records have them rotated and moved. */
static inline uint32_t crc32c_masked(const void *p, size_t n)
{
    uint32_t c = crc32c(p, n);
    return (c >> 15 | c << 17) + 0xa282ead8u;
}

#endif
