/* tokens.c - see tokens.h. */
#include "tokens.h"

#include <string.h>

#include "utf8.h"

int64_t tokens_id(const uint32_t *code, int64_t n, uint32_t character)
{
    int64_t lo = 0, hi = n;
    while (lo < hi) {
        int64_t middle = lo + (hi - lo) / 2;
        if (code[middle] < character)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo < n && code[lo] == character ? lo : -1;
}

int64_t tokens_of_text(const uint32_t *code, int64_t n, const char *text, size_t bytes, uint32_t *id, size_t *at,
                       size_t *length)
{
    int64_t ascii[128], count = 0;
    for (uint32_t i = 0; i < 128; i++)
        ascii[i] = tokens_id(code, n, i);
    for (*at = 0; *at < bytes; *at += *length) {
        uint32_t c = 0;
        *length = utf8_read(text + *at, bytes - *at, &c);
        int64_t known = !*length ? -1 : c < 128 ? ascii[c] : tokens_id(code, n, c);
        if (known < 0)
            return -1;
        id[count++] = (uint32_t)known;
    }
    return count;
}

int64_t token_at(const Tokens *t, int64_t i)
{
    const unsigned char *p = t->at + i * t->width;
    uint16_t half;
    uint32_t full;
    uint64_t twice;
    switch (t->width) {
    case 1: return t->ascii ? t->ascii[*p] : *p;
    case 2: memcpy(&half, p, sizeof half); return half;
    case 4: memcpy(&full, p, sizeof full); return full;
    default:
        memcpy(&twice, p, sizeof twice);
        return twice > INT64_MAX ? INT64_MAX : (int64_t)twice; /* below no vocabulary */
    }
}

int64_t tokens_window(const Tokens *t, const Order *o, Window w, int64_t vocab, int64_t separator, int64_t *token,
                      int64_t *label, int64_t *document)
{
    int64_t end = o->range[w.range].first + o->range[w.range].count, begin = 0;
    for (int64_t i = 0; i <= o->context; i++) {
        int64_t at = w.first + i, id = at < end ? token_at(t, at) : -1;
        if (vocab && id >= vocab)
            return at;
        if (label && i > 0)
            label[i - 1] = id;
        if (i == o->context)
            break;
        begin = id == separator ? i : begin;
        if (token)
            token[i] = id < 0 ? 0 : id;
        if (document)
            document[i] = begin;
    }
    return -1;
}
