/* added.c - see added.h. */
#include "added.h"

#include "compiler/portable/utf8.h"

#include <stdlib.h>

static int longest_first(const void *x, const void *y)
{
    size_t a = *(const size_t *)x, b = *(const size_t *)y;
    return a < b ? 1 : a > b ? -1 : 0;
}

static void set_pair(Added *a, unsigned first, unsigned second)
{
    a->pair[(first << 8 | second) / 8] |= (unsigned char)(1u << second % 8);
}

static bool has_pair(const Added *a, unsigned first, unsigned second)
{
    return a->pair[(first << 8 | second) / 8] >> second % 8 & 1;
}

void added_open(Arena *arena, Added *a, const AddedToken *token, size_t n, bool normalized, const AddedForm *form)
{
    *a = (Added){.token = token, .length = NEW_ARRAY(arena, size_t, n + 1)};
    for (size_t i = 0; i < n; i++) {
        bool own = !form || !form[i].text;
        const unsigned char *s = (const unsigned char *)(own ? token[i].text : form[i].text);
        size_t length = own ? token[i].n : form[i].n;
        if (token[i].normalized != normalized || !length)
            continue;
        if (!a->index)
            a->index = vocabulary_new(arena, (int64_t)n, 16 * n);
        if (vocabulary_add(a->index, (int64_t)i, s, length, false) != ADD_FINE)
            continue; /* two have one normal form: the first is found */
        a->length[a->lengths++] = length;
        a->begin[s[0]] = true;
        if (length == 1)
            a->alone[s[0]] = true;
        for (unsigned second = 0; length == 1 && second < 256; second++)
            set_pair(a, s[0], second);
        if (length > 1)
            set_pair(a, s[0], s[1]);
    }
    qsort(a->length, a->lengths, sizeof *a->length, longest_first);
    size_t kept = 0;
    for (size_t i = 0; i < a->lengths; i++)
        if (!kept || a->length[kept - 1] != a->length[i])
            a->length[kept++] = a->length[i];
    a->lengths = kept;
}

static bool is_space(uint32_t c)
{
    return (c >= 9 && c <= 13) || c == 0x20 || c == 0x85 || c == 0xa0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) ||
           c == 0x2028 || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

/* The character that ends at `at`: where it begins. */
static size_t before(const char *text, size_t at)
{
    size_t i = at - 1;
    while (i && ((unsigned char)text[i] & 0xc0) == 0x80)
        i--;
    return i;
}

static bool is_word(const Added *a, void *data, const char *s, size_t n)
{
    size_t from, to;
    char why[WHY];
    return pattern_next(a->word, data, s, n, 0, &from, &to, why) == 1;
}

static bool stands_alone(const Added *a, void *data, const char *text, size_t n, size_t from, size_t to)
{
    uint32_t c;
    size_t left = from ? before(text, from) : 0;
    if (from && is_word(a, data, text + left, from - left))
        return false;
    size_t next = to < n ? utf8_read(text + to, n - to, &c) : 0;
    return !next || !is_word(a, data, text + to, next);
}

/* The longest token that begins at `at`, or -1. */
static int64_t token_here(const Added *a, const char *text, size_t n, size_t at)
{
    for (size_t i = 0; i < a->lengths; i++) {
        int64_t k =
            a->length[i] <= n - at ? vocabulary_find(a->index, (const unsigned char *)text + at, a->length[i]) : -1;
        if (k >= 0)
            return k;
    }
    return -1;
}

int64_t added_next(const Added *a, void *data, const char *text, size_t n, size_t at, size_t *from, size_t *to)
{
    const unsigned char *s = (const unsigned char *)text;
    if (!a->index)
        return -1;
    for (size_t i = at; i < n; i++) {
        if (!a->begin[s[i]] || !(i + 1 < n ? has_pair(a, s[i], s[i + 1]) : a->alone[s[i]]))
            continue;
        int64_t k = token_here(a, text, n, i);
        if (k < 0)
            continue;
        const AddedToken *t = &a->token[k];
        uint32_t c;
        *from = i;
        *to = i + a->index->token[k].length;
        if (t->single_word && !stands_alone(a, data, text, n, *from, *to)) {
            i = *to - 1; /* the next one begins behind it */
            continue;
        }
        for (size_t left; t->strips_left && *from > at; *from = left) {
            left = before(text, *from);
            if (!utf8_read(text + left, *from - left, &c) || !is_space(c))
                break;
        }
        for (size_t right; t->strips_right && *to < n; *to += right) {
            right = utf8_read(text + *to, n - *to, &c);
            if (!right || !is_space(c))
                break;
        }
        return k;
    }
    return -1;
}
