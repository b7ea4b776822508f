/* tokenizer.c - see tokenizer.h. */
#include "tokenizer.h"

#include "compiler/portable/tokens.h"

#include <stdio.h>

enum { CODES = 0x110000 };

Tokenizer *tokenizer_plain(Arena *a, TokenizerKind kind)
{
    Tokenizer *t = NEW(a, Tokenizer);
    t->kind = kind;
    t->size = kind == TOKENIZER_BYTES ? 256 : 0;
    return t;
}

/* Takes `size` ascending code points. */
static Tokenizer *from_codes(Arena *a, const uint32_t *code, size_t size)
{
    Tokenizer *t = NEW(a, Tokenizer);
    t->kind = TOKENIZER_CHARS;
    t->size = (int64_t)size;
    t->code = NEW_ARRAY(a, uint32_t, size + 1);
    if (size)
        memcpy(t->code, code, size * sizeof *code);
    for (int i = 0; i < 128; i++)
        t->ascii[i] = -1;
    for (size_t i = 0; i < size && code[i] < 128; i++)
        t->ascii[code[i]] = (int64_t)i;
    return t;
}

Tokenizer *tokenizer_chars(Arena *a, const char *path, const char *text, size_t n, char why[WHY])
{
    Ctx *ctx = arena_ctx(a);
    ArenaMark mark = arena_mark(ctx->scratch);
    unsigned char *seen = arena_alloc(ctx->scratch, CODES / 8);
    size_t count = 0;
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t len = utf8_read(text + i, n - i, &c);
        if (!len) {
            snprintf(why, WHY,
                     "%.300s: byte %zu: not UTF-8; chars() needs UTF-8 text, bytes() takes "
                     "any file",
                     path, i);
            arena_reset(ctx->scratch, mark);
            return NULL;
        }
        count += !(seen[c / 8] & 1u << c % 8);
        seen[c / 8] = (unsigned char)(seen[c / 8] | 1u << c % 8);
        i += len;
    }
    uint32_t *code = NEW_ARRAY(ctx->scratch, uint32_t, count + 1);
    count = 0;
    for (uint32_t c = 0; c < CODES; c++)
        if (seen[c / 8] & 1u << c % 8)
            code[count++] = c;
    Tokenizer *t = from_codes(a, code, count);
    arena_reset(ctx->scratch, mark);
    return t;
}

Tokenizer *tokenizer_from(Arena *a, const char *vocabulary, size_t n)
{
    uint32_t *code = NEW_ARRAY(a, uint32_t, n + 1);
    size_t count = 0;
    for (size_t i = 0; i < n; count++) {
        size_t len = utf8_read(vocabulary + i, n - i, &code[count]);
        if (!len || (count && code[count] <= code[count - 1]))
            return NULL;
        i += len;
    }
    return from_codes(a, code, count);
}

void tokenizer_vocabulary(const Tokenizer *t, Buf *out)
{
    char bytes[4];
    for (int64_t i = 0; t->kind == TOKENIZER_CHARS && i < t->size; i++)
        buf_put(out, bytes, utf8_write(t->code[i], bytes));
}

int64_t tokenizer_id(const Tokenizer *t, uint32_t code) { return tokens_id(t->code, t->size, code); }

int64_t tokenizer_encode(const Tokenizer *t, const char *what, const char *text, size_t n, int64_t *out, char why[WHY])
{
    int64_t count = 0;
    if (t->kind == TOKENIZER_BYTES) {
        for (size_t i = 0; i < n; i++)
            out[count++] = (unsigned char)text[i];
        return count;
    }
    if (t->kind != TOKENIZER_CHARS) {
        snprintf(why, WHY, "%.200s: this model has no tokenizer for text, only token ids", what);
        return -1;
    }
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t len = utf8_read(text + i, n - i, &c);
        if (!len) {
            snprintf(why, WHY, "%.300s: byte %zu: not UTF-8", what, i);
            return -1;
        }
        out[count] = tokenizer_id(t, c);
        if (out[count++] < 0) {
            snprintf(why, WHY,
                     "%.300s: byte %zu: `%.*s` (U+%04X) is not among the %lld characters of "
                     "the training text",
                     what, i, (int)len, text + i, (unsigned)c, (long long)t->size);
            return -1;
        }
        i += len;
    }
    return count;
}

size_t tokenizer_decode(const Tokenizer *t, int64_t id, char out[4])
{
    if (id < 0 || id >= t->size)
        return 0;
    if (t->kind == TOKENIZER_CHARS)
        return utf8_write(t->code[id], out);
    out[0] = (char)(unsigned char)id;
    return 1;
}
