/* sha256.c - see sha256.h. */
#include "sha256.h"

#include <string.h>

/* The first 32 bits of the fractions of the cube roots of the first 64 primes. */
static const uint32_t round_constant[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, int k) { return x >> k | x << (32 - k); }

/* `h` becomes the first number of the next round, `d` its fifth. */
static inline void one_round(uint32_t a, uint32_t b, uint32_t c, uint32_t *d, uint32_t e, uint32_t f, uint32_t g,
                             uint32_t *h, uint32_t term)
{
    uint32_t t1 = *h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + ((e & f) ^ (~e & g)) + term;
    *d += t1;
    *h = t1 + (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + ((a & b) ^ (a & c) ^ (b & c));
}

static void mix(uint32_t h[8], const unsigned char *p)
{
    uint32_t w[64];
    for (int i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 | (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    for (int i = 16; i < 64; i++) {
        uint32_t a = w[i - 15], b = w[i - 2];
        w[i] =
            w[i - 16] + w[i - 7] + (rotate(a, 7) ^ rotate(a, 18) ^ a >> 3) + (rotate(b, 17) ^ rotate(b, 19) ^ b >> 10);
    }
    uint32_t a = h[0], b = h[1], c = h[2], d = h[3], e = h[4], f = h[5], g = h[6], j = h[7];
    for (int i = 0; i < 64; i += 8) { /* names go round instead of numbers */
        one_round(a, b, c, &d, e, f, g, &j, round_constant[i] + w[i]);
        one_round(j, a, b, &c, d, e, f, &g, round_constant[i + 1] + w[i + 1]);
        one_round(g, j, a, &b, c, d, e, &f, round_constant[i + 2] + w[i + 2]);
        one_round(f, g, j, &a, b, c, d, &e, round_constant[i + 3] + w[i + 3]);
        one_round(e, f, g, &j, a, b, c, &d, round_constant[i + 4] + w[i + 4]);
        one_round(d, e, f, &g, j, a, b, &c, round_constant[i + 5] + w[i + 5]);
        one_round(c, d, e, &f, g, j, a, &b, round_constant[i + 6] + w[i + 6]);
        one_round(b, c, d, &e, f, g, j, &a, round_constant[i + 7] + w[i + 7]);
    }
    const uint32_t v[8] = {a, b, c, d, e, f, g, j};
    for (int i = 0; i < 8; i++)
        h[i] += v[i];
}

void sha256_start(Sha256 *s)
{
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memset(s, 0, sizeof *s);
    memcpy(s->h, start, sizeof start);
}

void sha256_add(Sha256 *s, const void *data, size_t n)
{
    const unsigned char *p = data;
    size_t used = s->bytes % 64;
    s->bytes += n;
    if (used) {
        size_t take = 64 - used < n ? 64 - used : n;
        memcpy(s->block + used, p, take);
        if (used + take < 64)
            return;
        mix(s->h, s->block);
        p += take;
        n -= take;
    }
    for (; n >= 64; p += 64, n -= 64)
        mix(s->h, p);
    if (n)
        memcpy(s->block, p, n);
}

void sha256_add_string(Sha256 *s, const char *text, size_t n)
{
    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)((uint64_t)n >> (8 * i));
    sha256_add(s, length, sizeof length);
    if (n)
        sha256_add(s, text, n);
}

void sha256_hex(Sha256 *s, char hex[65])
{
    uint64_t bits = s->bytes * 8;
    unsigned char tail[72] = {0x80};
    size_t used = s->bytes % 64;
    size_t pad = (used < 56 ? 56 : 120) - used;
    for (int i = 0; i < 8; i++)
        tail[pad + (size_t)i] = (unsigned char)(bits >> (56 - 8 * i));
    sha256_add(s, tail, pad + 8);
    for (int i = 0; i < 64; i++)
        hex[i] = "0123456789abcdef"[s->h[i / 8] >> (28 - 4 * (i % 8)) & 15];
    hex[64] = 0;
}
