/* sha256.h - SHA-256 (FIPS 180-4).
 *
 * In:  bytes, in any number of pieces.
 * Out: their 32-byte digest, or its 64 hexadecimal digits.
 * The one idea: the state is a plain value, so a hash of a common beginning can be copied and
 * continued.
 */
#ifndef VWN_SHA256_H
#define VWN_SHA256_H

#include <stddef.h>
#include <stdint.h>

typedef struct Sha256 {
    uint32_t h[8];
    uint64_t bytes;
    unsigned char block[64];
} Sha256;

void sha256_start(Sha256 *s);
void sha256_add(Sha256 *s, const void *p, size_t n);
/* A string with its length before it, so that neighbouring strings cannot be confused. */
void sha256_add_string(Sha256 *s, const char *text, size_t n);
/* Ends the hash and writes 64 digits and a NUL. The state is used up. */
void sha256_hex(Sha256 *s, char hex[65]);

#endif
