/* utf8.h - characters of a text in UTF-8, and back. */
#ifndef VWN_UTF8_H
#define VWN_UTF8_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* The length of the valid UTF-8 sequence at s, 1 to 4, or 0. Its code point goes to *code. */
static inline size_t utf8_read(const char *text, size_t n, uint32_t *code)
{
    const unsigned char *s = (const unsigned char *)text;
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
    if (n == 0)
        return 0;
    if (s[0] < 0x80) {
        *code = s[0];
        return 1;
    }
    size_t len = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    if (s[0] < 0xc2 || s[0] > 0xf4 || n < len)
        return 0;
    uint32_t c = s[0] & (0xffu >> (len + 1));
    for (size_t i = 1; i < len; i++) {
        if ((s[i] & 0xc0) != 0x80)
            return 0;
        c = c << 6 | (s[i] & 0x3f);
    }
    if (c < least[len] || c > 0x10ffff || (c >= 0xd800 && c < 0xe000))
        return 0;
    *code = c;
    return len;
}

static inline bool utf8_valid(const char *s, size_t n)
{
    uint32_t code;
    for (size_t at = 0, length; at < n; at += length)
        if (!(length = utf8_read(s + at, n - at, &code)))
            return false;
    return true;
}

/* Whether a text of 1 to 3 bytes is the beginning of a character that is not all there. */
static inline bool utf8_begins(const char *s, size_t n)
{
    char whole[4] = {0, (char)0x80, (char)0x80, (char)0x80};
    uint32_t code;
    for (size_t i = 0; i < n && i < 4; i++)
        whole[i] = s[i];
    if (n == 1 && ((unsigned char)s[0] == 0xe0 || (unsigned char)s[0] == 0xf0))
        whole[1] = (char)(s[0] == (char)0xe0 ? 0xa0 : 0x90); /* less would be another form of a shorter one */
    return n && utf8_read(whole, 4, &code) > n;
}

/* The bytes at the end of a text that begin a character which is not all there yet. */
static inline size_t utf8_unfinished(const char *s, size_t n)
{
    for (size_t k = 1; k <= 3 && k <= n; k++)
        if (utf8_begins(s + n - k, k))
            return k;
    return 0;
}

/* What a terminal acts on instead of showing it: controls, new lines and tabs among them, and marks that turn
 * the reading direction. */
static inline bool utf8_acts(uint32_t c)
{
    return c < 0x20 || (c >= 0x7f && c < 0xa0) || (c >= 0x202a && c <= 0x202e) || (c >= 0x2066 && c <= 0x2069);
}

#define UTF8_REPLACEMENT "\xef\xbf\xbd"

/* The next piece of a text for people: its length, and in *shown what stands for it. What is no UTF-8, and
 * what a terminal acts on but for new lines and tabs, is the replacement character. 0 at the end. */
static inline size_t utf8_plain(const char *s, size_t n, const char **shown, size_t *shown_n)
{
    uint32_t code = 0;
    size_t step = utf8_read(s, n, &code);
    bool plain = step && (!utf8_acts(code) || code == '\n' || code == '\t');
    *shown = plain ? s : UTF8_REPLACEMENT;
    *shown_n = plain ? step : sizeof UTF8_REPLACEMENT - 1;
    return step ? step : n ? 1 : 0;
}

/* Bytes written; the code must be valid. */
static inline size_t utf8_write(uint32_t c, char out[4])
{
    static const unsigned char mark[5] = {0, 0, 0xc0, 0xe0, 0xf0};
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t len = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    for (size_t i = len; i-- > 1; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(mark[len] | c);
    return len;
}

#endif
