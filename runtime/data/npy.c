/* npy.c - see npy.h. */
#include "npy.h"

#include <stdio.h>
#include <string.h>

/* The header's dictionary, a Python literal: {'descr': '<f4', 'fortran_order': False, 'shape':
 * (3,), } */
typedef struct NpyReader {
    const unsigned char *bytes;
    size_t at, end;
    char *why;
} NpyReader;

static bool wrong(NpyReader *r, const char *what)
{
    snprintf(r->why, NPY_WHY, "byte %zu: %s", r->at, what);
    return false;
}

static void skip_blanks(NpyReader *r)
{
    while (r->at < r->end && strchr(" \t\n", r->bytes[r->at]) && r->bytes[r->at])
        r->at++;
}

static bool take(NpyReader *r, char c)
{
    skip_blanks(r);
    if (r->at == r->end || r->bytes[r->at] != (unsigned char)c)
        return false;
    r->at++;
    return true;
}

static bool word(NpyReader *r, const char *text)
{
    size_t n = strlen(text);
    skip_blanks(r);
    if (r->end - r->at < n || memcmp(r->bytes + r->at, text, n))
        return false;
    r->at += n;
    return true;
}

/* A string without escapes. */
static bool string(NpyReader *r, char *out, size_t room)
{
    char quote = take(r, '\'') ? '\'' : take(r, '"') ? '"' : 0;
    size_t n = 0;
    if (!quote)
        return wrong(r, "a string in quotes was expected");
    for (; r->at < r->end && r->bytes[r->at] != (unsigned char)quote; r->at++) {
        unsigned char c = r->bytes[r->at];
        if (c < ' ' || c > '~' || c == '\\' || n + 1 == room)
            return wrong(r, "this string is none that a header has");
        out[n++] = (char)c;
    }
    out[n] = 0;
    return r->at < r->end ? (r->at++, true) : wrong(r, "a string does not end");
}

static bool extent(NpyReader *r, int64_t *out)
{
    enum { DIGITS = 15 };
    int digits = 0;
    for (*out = 0; r->at < r->end; r->at++, digits++) {
        unsigned char c = r->bytes[r->at];
        if (c < '0' || c > '9' || digits == DIGITS)
            break;
        *out = 10 * *out + (c - '0');
    }
    return (digits > 0 && digits < DIGITS) || wrong(r, "an extent of the shape is no whole number below 10^14");
}

static bool shape(NpyReader *r, Npy *out)
{
    if (!take(r, '('))
        return wrong(r, "the shape is no tuple");
    for (out->rank = 0; !take(r, ')'); out->rank++) {
        if (out->rank == NPY_RANK)
            return wrong(r, "an array of more than 8 axes");
        skip_blanks(r);
        if (!extent(r, &out->d[out->rank]))
            return false;
        if (take(r, ','))
            continue;
        if (!take(r, ')'))
            return wrong(r, "the shape does not end");
        out->rank++;
        break;
    }
    return true;
}

static bool entry(NpyReader *r, Npy *out, unsigned *seen)
{
    static const char *const keys[] = {"descr", "fortran_order", "shape"};
    char key[16];
    unsigned k = 0;
    if (!string(r, key, sizeof key))
        return false;
    while (k < 3 && strcmp(key, keys[k]))
        k++;
    if (k == 3 || *seen & 1u << k)
        return wrong(r, "a header has descr, fortran_order and shape, once each");
    *seen |= 1u << k;
    if (!take(r, ':'))
        return wrong(r, "`:` was expected");
    if (k == 0 && take(r, '['))
        return wrong(r, "the array holds records, not numbers");
    if (k == 0)
        return string(r, out->type, sizeof out->type);
    if (k == 2)
        return shape(r, out);
    out->fortran = word(r, "True");
    return out->fortran || word(r, "False") || wrong(r, "fortran_order is True or False");
}

static bool dictionary(NpyReader *r, Npy *out)
{
    unsigned seen = 0;
    if (!take(r, '{'))
        return wrong(r, "the header is no dictionary");
    while (!take(r, '}')) {
        if (!entry(r, out, &seen))
            return false;
        if (!take(r, ',') && r->at < r->end && r->bytes[r->at] != '}')
            return wrong(r, "`,` or `}` was expected");
        if (r->at == r->end)
            return wrong(r, "the header does not end");
    }
    if (seen != 7)
        return wrong(r, "a header has descr, fortran_order and shape, once each");
    skip_blanks(r);
    return r->at == r->end || wrong(r, "something stands behind the header's dictionary");
}

bool npy_read(const unsigned char *bytes, size_t n, Npy *out, char why[NPY_WHY])
{
    static const unsigned char magic[] = {0x93, 'N', 'U', 'M', 'P', 'Y'};
    NpyReader r = {bytes, 0, n, why};
    if (n < sizeof magic || memcmp(bytes, magic, sizeof magic))
        return wrong(&r, "not a .npy file");
    r.at = sizeof magic;
    int version = n > r.at ? bytes[r.at] : 0;
    size_t begin = version == 1 ? 10 : 12, size = 0;
    if (n <= r.at || version < 1 || version > 3)
        return wrong(&r, "not a version of .npy that is known: 1, 2 or 3");
    r.at = n;
    if (n < begin)
        return wrong(&r, "the file ends within its header");
    for (size_t i = begin; i-- > 8;)
        size = size << 8 | bytes[i];
    if (size > n - begin)
        return wrong(&r, "the file ends within its header");
    r.at = begin;
    r.end = out->header = begin + size;
    return dictionary(&r, out);
}
