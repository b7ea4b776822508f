/* bulk.c - see bulk.h. */
#include "bulk.h"

#include "compiler/portable/utf8.h"

#include <stdio.h>

enum { LETTERS = 0x144, MERGES_MOST = 1 << 24, DEPTH_MOST = 64 };

typedef struct Bulk {
    const char *text;
    size_t at, end;
    char *why;
    int16_t letter[LETTERS];
    unsigned char token[2][TOKEN_MOST], plain[TOKEN_MOST];
    size_t n[2], n_plain;
} Bulk;

/* The byte that a character stands for, or -1: what is printable stands for itself, the others for characters from U+0100 on. */
static void fill_letters(int16_t letter[LETTERS])
{
    int next = 0x100;
    for (int i = 0; i < LETTERS; i++)
        letter[i] = -1;
    for (int i = 0; i < 256; i++) {
        bool shown = (i >= '!' && i <= '~') || (i >= 0xa1 && i <= 0xac) || i >= 0xae;
        letter[shown ? i : next++] = (int16_t)i;
    }
}

size_t bulk_letters(const char *text, size_t n, unsigned char *out)
{
    int16_t letter[LETTERS];
    uint32_t code;
    size_t count = 0;
    fill_letters(letter);
    for (size_t i = 0, length; i < n; i += length) {
        length = utf8_read(text + i, n - i, &code);
        if (!length || code >= LETTERS || letter[code] < 0)
            return 0;
        out[count++] = (unsigned char)letter[code];
    }
    return count;
}

unsigned char bulk_byte(int place)
{
    int16_t letter[LETTERS];
    int code = 0;
    fill_letters(letter);
    for (; letter[code] < 0 || place-- > 0;)
        code++;
    return (unsigned char)letter[code];
}

void bulk_spell(Buf *out, const unsigned char *s, size_t n)
{
    int16_t letter[LETTERS];
    uint32_t code[256];
    char one[4];
    Buf b = buf_new(out->arena);
    fill_letters(letter);
    for (uint32_t i = 0; i < LETTERS; i++)
        if (letter[i] >= 0)
            code[letter[i]] = i;
    for (size_t i = 0; i < n; i++)
        buf_put(&b, one, utf8_write(code[s[i]], one));
    buf_json_string(out, b.s, b.n);
}

static bool wrong(Bulk *b, size_t at, const char *what)
{
    snprintf(b->why, WHY, "byte %zu: %s", at, what);
    return false;
}

static bool is_blank(char c) { return c == ' ' || c == '\n' || c == '\t' || c == '\r'; }

static int next_char(Bulk *b)
{
    while (b->at < b->end && is_blank(b->text[b->at]))
        b->at++;
    return b->at < b->end ? (unsigned char)b->text[b->at] : -1;
}

static bool take(Bulk *b, char c)
{
    if (next_char(b) != (unsigned char)c)
        return false;
    b->at++;
    return true;
}

static int hex_digit(int c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

static bool read_hex(Bulk *b, uint32_t *code)
{
    *code = 0;
    for (int i = 0; i < 4; i++, b->at++) {
        int d = b->at < b->end ? hex_digit((unsigned char)b->text[b->at]) : -1;
        if (d < 0)
            return false;
        *code = *code << 4 | (uint32_t)d;
    }
    return true;
}

/* One character of a string, behind its opening quote. */
static bool read_char(Bulk *b, uint32_t *code)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    size_t start = b->at;
    uint32_t low;
    if (b->text[b->at] != '\\') {
        size_t n = utf8_read(b->text + b->at, b->end - b->at, code);
        if (!n || *code < 32)
            return wrong(b, start, n ? "a control character in a string" : "invalid UTF-8");
        b->at += n;
        return true;
    }
    int c = b->at + 1 < b->end ? (unsigned char)b->text[b->at + 1] : 0;
    const char *simple = c ? strchr(from, c) : NULL;
    b->at += 2;
    if (simple) {
        *code = (uint32_t)to[simple - from];
        return true;
    }
    if (c != 'u' || !read_hex(b, code))
        return wrong(b, start, "this escape is not one of JSON's");
    if (*code >= 0xd800 && *code < 0xe000) {
        bool pair = *code < 0xdc00 && b->end - b->at > 6 && b->text[b->at] == '\\' && b->text[b->at + 1] == 'u';
        b->at += 2;
        if (!pair || !read_hex(b, &low) || low < 0xdc00 || low > 0xdfff)
            return wrong(b, start, "half of a surrogate pair");
        *code = 0x10000 + ((*code - 0xd800) << 10) + (low - 0xdc00);
    }
    return true;
}

/* The characters of a string up to its quote, or to a blank where `stops`: as bytes and as UTF-8. *raw: some stand for no byte. */
static bool read_token(Bulk *b, int which, bool stops, bool *raw)
{
    size_t start = b->at, n = 0, plain = 0;
    *raw = false;
    while (b->at < b->end && b->text[b->at] != '"' && (b->text[b->at] != ' ' || !stops)) {
        uint32_t code;
        if (!read_char(b, &code))
            return false;
        int byte = code < LETTERS ? b->letter[code] : -1;
        if (plain + 4 > TOKEN_MOST)
            return wrong(b, start, "this token is too long");
        plain += utf8_write(code, (char *)b->plain + plain);
        *raw |= byte < 0;
        b->token[which][n++] = (unsigned char)byte;
    }
    b->n[which] = n;
    b->n_plain = plain;
    return b->at < b->end || wrong(b, start, "this string has no end");
}

/* ---- finding members ---- */

static size_t skip_string(const char *s, size_t at, size_t end)
{
    for (at++; at < end && s[at] != '"'; at++)
        at += s[at] == '\\';
    return at < end ? at + 1 : end;
}

/* Behind a value, or SIZE_MAX. */
static size_t skip_value(const char *s, size_t at, size_t end)
{
    int depth = 0;
    while (at < end) {
        char c = s[at];
        if (c == ' ' || c == '\n') {
            at++;
            continue;
        }
        if (c == '"') {
            at = skip_string(s, at, end);
            if (!depth)
                return at;
            continue;
        }
        if (c == '{' || c == '[') {
            if (++depth > DEPTH_MOST)
                return SIZE_MAX;
        } else if (c == '}' || c == ']') {
            if (depth-- == 0)
                return at;
            if (!depth)
                return at + 1;
        } else if (c == ',' && !depth) {
            return at;
        }
        at++;
    }
    return SIZE_MAX;
}

bool bulk_members(const char *text, BulkRange within, size_t n, const char *const *key, BulkRange *out)
{
    Bulk b = {.text = text, .at = within.from, .end = within.to};
    for (size_t i = 0; i < n; i++)
        out[i] = (BulkRange){0, 0};
    if (!take(&b, '{'))
        return false;
    while (next_char(&b) == '"') {
        size_t name = b.at + 1, behind = skip_string(text, b.at, b.end);
        b.at = behind;
        if (!take(&b, ':'))
            return false;
        next_char(&b);
        size_t from = b.at, to = skip_value(text, from, b.end);
        if (to == SIZE_MAX)
            return false;
        for (size_t i = 0; i < n; i++)
            if (behind - name == strlen(key[i]) + 1 && !memcmp(text + name, key[i], strlen(key[i])))
                out[i] = (BulkRange){from, to};
        b.at = to;
        if (!take(&b, ','))
            break;
    }
    return true;
}

/* ---- reading them ---- */

static Bulk *bulk_new(Arena *a, const char *text, BulkRange at, char *why)
{
    Bulk *b = arena_take(a, sizeof *b);
    b->text = text;
    b->at = at.from;
    b->end = at.to;
    b->why = why;
    fill_letters(b->letter);
    return b;
}

static bool read_id(Bulk *b, int64_t *id)
{
    size_t start = (next_char(b), b->at);
    *id = 0;
    while (b->at < b->end && b->text[b->at] >= '0' && b->text[b->at] <= '9' && *id < IDS_MOST)
        *id = *id * 10 + (b->text[b->at++] - '0');
    if (b->at == start || *id >= IDS_MOST)
        return wrong(b, start, "this is no id from 0 to 4,194,303");
    return true;
}

static bool read_entry(Bulk *b, Vocabulary *v)
{
    size_t start = (next_char(b), b->at);
    bool raw;
    int64_t id;
    if (!take(b, '"'))
        return wrong(b, start, "a token in quotes is expected here");
    if (!read_token(b, 0, false, &raw))
        return false;
    b->at++;
    if (!take(b, ':'))
        return wrong(b, b->at, "`:` is expected here");
    if (!read_id(b, &id))
        return false;
    Adding how = vocabulary_add(v, id, raw ? b->plain : b->token[0], raw ? b->n_plain : b->n[0], raw);
    if (how == ADD_ID_TWICE)
        return wrong(b, start, "two tokens have this id");
    return how == ADD_FINE ||
           wrong(b, start,
                 how == ADD_BYTES_TWICE ? "this token stands here twice" : "this token is empty or too large");
}

Vocabulary *bulk_vocabulary(Arena *a, const char *text, BulkRange at, char why[WHY])
{
    Bulk *b = bulk_new(a, text, at, why);
    Vocabulary *v = vocabulary_new(a, (int64_t)((at.to - at.from) / 20), (at.to - at.from) / 2);
    if (!take(b, '{')) {
        wrong(b, b->at, "a vocabulary is expected here, `{ \"token\": id, ... }`");
        return NULL;
    }
    if (take(b, '}'))
        return v;
    do {
        if (!read_entry(b, v))
            return NULL;
    } while (take(b, ','));
    if (take(b, '}') && next_char(b) < 0)
        return v;
    wrong(b, b->at, "`,` or `}` is expected here");
    return NULL;
}

/* The pair in token[] becomes the token that has the bytes of both. */
static bool add_merge(Bulk *b, Vocabulary *v, size_t start, uint32_t rank)
{
    int64_t id[3];
    if (b->n[0] + b->n[1] > TOKEN_MOST)
        return wrong(b, start, "what this merge makes is too long");
    for (int i = 0; i < 2; i++)
        id[i] = b->n[i] ? vocabulary_find(v, b->token[i], b->n[i]) : TOKEN_NONE;
    memcpy(b->token[0] + b->n[0], b->token[1], b->n[1]);
    id[2] = vocabulary_find(v, b->token[0], b->n[0] + b->n[1]);
    if (id[0] < 0 || id[1] < 0 || id[2] < 0)
        return wrong(b, start,
                     id[2] < 0 && id[0] >= 0 && id[1] >= 0 ? "what this merge makes is not in the vocabulary"
                                                           : "this merge is of a token that is not in the vocabulary");
    if (rank == MERGES_MOST)
        return wrong(b, start, "there are more than 16,777,216 merges");
    return vocabulary_merge(v, (uint32_t)id[0], (uint32_t)id[1], rank, (uint32_t)id[2]) ||
           wrong(b, start, "this merge stands here twice");
}

/* "a b" or ["a", "b"]. */
static bool read_merge(Bulk *b, Vocabulary *v, uint32_t rank)
{
    bool list = take(b, '['), raw[2];
    size_t start = (next_char(b), b->at);
    for (int i = 0; i < 2; i++) {
        if ((list || !i) && !take(b, '"'))
            return wrong(b, b->at, "a merge is expected here, \"a b\" or [\"a\", \"b\"]");
        if (!read_token(b, i, !list, &raw[i]))
            return false;
        if (b->text[b->at++] != (list || i ? '"' : ' ') || (list && !i && !take(b, ',')))
            return wrong(b, start, "a merge has two tokens");
    }
    if (list && !take(b, ']'))
        return wrong(b, b->at, "`]` is expected here");
    if (raw[0] || raw[1])
        return wrong(b, start, "this merge is of a token that is not in the vocabulary");
    return add_merge(b, v, start, rank);
}

bool bulk_merges(Vocabulary *v, const char *text, BulkRange at, char why[WHY])
{
    Bulk *b = bulk_new(v->arena, text, at, why);
    vocabulary_merges(v, 2 * (size_t)v->tokens);
    if (!take(b, '['))
        return wrong(b, b->at, "a list of merges is expected here");
    if (take(b, ']'))
        return true;
    uint32_t rank = 0;
    do {
        if (!read_merge(b, v, rank++))
            return false;
    } while (take(b, ','));
    return (take(b, ']') && next_char(b) < 0) || wrong(b, b->at, "`,` or `]` is expected here");
}

/* "a b" behind b->at, to the end of the line. */
static bool read_line(Bulk *b, Vocabulary *v, size_t end, uint32_t rank)
{
    size_t start = b->at;
    for (int i = 0; i < 2; i++) {
        size_t n = 0;
        while (b->at < end && b->text[b->at] != ' ') {
            uint32_t code;
            size_t length = utf8_read(b->text + b->at, end - b->at, &code);
            if (!length || code >= LETTERS || b->letter[code] < 0 || n == TOKEN_MOST)
                return wrong(b, b->at, "this is no letter of a token");
            b->token[i][n++] = (unsigned char)b->letter[code];
            b->at += length;
        }
        b->n[i] = n;
        if ((b->at < end) != !i)
            return wrong(b, start, "a merge has two tokens, `a b`");
        b->at += !i;
    }
    return add_merge(b, v, start, rank);
}

bool bulk_merge_lines(Vocabulary *v, const char *text, size_t n, char why[WHY])
{
    Bulk *b = bulk_new(v->arena, text, (BulkRange){0, n}, why);
    uint32_t rank = 0;
    vocabulary_merges(v, 2 * (size_t)v->tokens);
    while (b->at < n) {
        const char *line = text + b->at, *stop = memchr(line, '\n', n - b->at);
        size_t end = stop ? (size_t)(stop - text) : n, next = end + (stop != NULL);
        if (end > b->at && text[end - 1] == '\r')
            end--;
        bool version = b->at == 0 && end >= 8 && !memcmp(line, "#version", 8);
        if (end > b->at && !version && !read_line(b, v, end, rank++))
            return false;
        b->at = next;
    }
    return true;
}
