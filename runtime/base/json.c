/* json.c - see json.h. */
#include "json.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- UTF-8 ---- */

size_t utf8_read(const char *text, size_t n, uint32_t *code)
{
    const unsigned char *s = (const unsigned char *)text;
    if (n == 0)
        return 0;
    if (s[0] < 0x80) {
        *code = s[0];
        return 1;
    }
    size_t len = s[0] >= 0xf0 ? 4 : s[0] >= 0xe0 ? 3 : 2;
    static const uint32_t least[5] = {0, 0, 0x80, 0x800, 0x10000};
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

size_t utf8_write(uint32_t c, char out[4])
{
    if (c < 0x80) {
        out[0] = (char)c;
        return 1;
    }
    size_t len = c < 0x800 ? 2 : c < 0x10000 ? 3 : 4;
    static const unsigned char mark[5] = {0, 0, 0xc0, 0xe0, 0xf0};
    for (size_t i = len; i-- > 1; c >>= 6)
        out[i] = (char)(0x80 | (c & 0x3f));
    out[0] = (char)(mark[len] | c);
    return len;
}

/* ---- reading ---- */

typedef struct JsonReader {
    Arena *arena;
    const char *s;
    size_t n, at;
    int depth;
    JsonError *error;
} JsonReader;

static Json *fail(JsonReader *r, size_t offset, const char *what)
{
    if (!r->error->what)
        *r->error = (JsonError){offset, what};
    return NULL;
}

static void skip_space(JsonReader *r)
{
    while (r->at < r->n && strchr(" \t\r\n", r->s[r->at]) && r->s[r->at])
        r->at++;
}

static bool accept(JsonReader *r, char c)
{
    skip_space(r);
    if (r->at >= r->n || r->s[r->at] != c)
        return false;
    r->at++;
    return true;
}

static bool read_hex(JsonReader *r, uint32_t *out)
{
    *out = 0;
    if (r->n - r->at < 4)
        return false;
    for (int i = 0; i < 4; i++) {
        char c = r->s[r->at++];
        int d = c >= '0' && c <= '9'   ? c - '0'
                : c >= 'a' && c <= 'f' ? c - 'a' + 10
                : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                       : -1;
        if (d < 0)
            return false;
        *out = *out << 4 | (uint32_t)d;
    }
    return true;
}

/* After a backslash. Appends the decoded bytes at out; returns their number, 0 on error. */
static size_t read_escape(JsonReader *r, char *out)
{
    static const char from[] = "\"\\/bfnrt", to[] = "\"\\/\b\f\n\r\t";
    size_t start = r->at - 1;
    char c = r->at < r->n ? r->s[r->at++] : 0;
    const char *simple = c ? strchr(from, c) : NULL;
    if (simple) {
        *out = to[simple - from];
        return 1;
    }
    uint32_t code, low;
    if (c != 'u' || !read_hex(r, &code)) {
        fail(r, start, "this escape is not one of JSON's");
        return 0;
    }
    if (code >= 0xd800 && code < 0xdc00) {
        if (r->n - r->at < 6 || r->s[r->at] != '\\' || r->s[r->at + 1] != 'u' ||
            (r->at += 2, !read_hex(r, &low)) || low < 0xdc00 || low > 0xdfff) {
            fail(r, start, "half of a surrogate pair");
            return 0;
        }
        code = 0x10000 + ((code - 0xd800) << 10) + (low - 0xdc00);
    } else if (code >= 0xdc00 && code < 0xe000) {
        fail(r, start, "half of a surrogate pair");
        return 0;
    }
    return utf8_write(code, out);
}

/* At an opening quote. The decoded text is never longer than the source. */
static const char *read_text(JsonReader *r, size_t *length)
{
    size_t start = r->at++, end = r->at;
    while (end < r->n && r->s[end] != '"')
        end += r->s[end] == '\\' ? 2 : 1;
    if (end >= r->n) {
        fail(r, start, "this string has no end");
        return NULL;
    }
    char *out = arena_alloc(r->arena, end - r->at + 1);
    size_t n = 0;
    while (r->s[r->at] != '"') {
        unsigned char c = (unsigned char)r->s[r->at];
        uint32_t code;
        size_t len;
        if (c == '\\') {
            r->at++;
            len = read_escape(r, out + n);
            if (!len)
                return NULL;
            n += len;
            continue;
        }
        len = c < 0x20 ? 0 : utf8_read(r->s + r->at, r->n - r->at, &code);
        if (!len) {
            fail(r, r->at, c < 0x20 ? "a control character in a string" : "invalid UTF-8");
            return NULL;
        }
        memcpy(out + n, r->s + r->at, len);
        n += len;
        r->at += len;
    }
    r->at++;
    *length = n;
    return out;
}

static bool read_digits(JsonReader *r)
{
    size_t start = r->at;
    while (r->at < r->n && r->s[r->at] >= '0' && r->s[r->at] <= '9')
        r->at++;
    return r->at > start;
}

static Json *read_number(JsonReader *r, Json *j)
{
    size_t start = r->at;
    bool whole = true;
    if (r->s[r->at] == '-')
        r->at++;
    size_t digits = r->at;
    if (!read_digits(r) || (r->s[digits] == '0' && r->at - digits > 1))
        return fail(r, start, "this is not a JSON number");
    if (r->at < r->n && r->s[r->at] == '.') {
        whole = false;
        r->at++;
        if (!read_digits(r))
            return fail(r, start, "digits are missing after the point");
    }
    if (r->at < r->n && (r->s[r->at] == 'e' || r->s[r->at] == 'E')) {
        whole = false;
        r->at++;
        if (r->at < r->n && (r->s[r->at] == '+' || r->s[r->at] == '-'))
            r->at++;
        if (!read_digits(r))
            return fail(r, start, "digits are missing in the exponent");
    }
    ArenaMark mark = arena_mark(r->arena);
    char *copy = arena_copy(r->arena, r->s + start, r->at - start);
    j->kind = JSON_NUMBER;
    j->number = strtod(copy, NULL);
    arena_reset(r->arena, mark);
    /* exact: every digit is looked at again, with overflow checked */
    j->whole = whole;
    for (size_t i = digits; whole && i < r->at; i++) {
        int64_t d = r->s[i] - '0';
        j->whole = j->whole && mul_i64(j->integer, 10, &j->integer) &&
                   add_i64(j->integer, r->s[start] == '-' ? -d : d, &j->integer);
    }
    return j;
}

static Json *read_value(JsonReader *r);

static bool is_duplicate(const Json *object, const Json *member)
{
    for (const Json *k = object->first; k; k = k->next)
        if (k->key_n == member->key_n && !memcmp(k->key, member->key, k->key_n))
            return true;
    return false;
}

/* Members by hash, so that a large object is not searched from its start for each key. */
static bool seen_before(Map *seen, const Json *object, const Json *member)
{
    uintptr_t h = (uintptr_t)hash_bytes(member->key, member->key_n, 7) | 1u;
    void **slot = map_at(seen, h);
    bool was = *slot != NULL;
    *slot = (void *)member;
    return was && is_duplicate(object, member);
}

static Json *read_members(JsonReader *r, Json *j, char close)
{
    Json **tail = &j->first;
    Map seen;
    map_init(&seen, r->arena);
    if (accept(r, close))
        return j;
    do {
        const char *key = NULL;
        size_t key_n = 0;
        skip_space(r);
        size_t key_at = r->at;
        if (close == '}') {
            if (r->at >= r->n || r->s[r->at] != '"')
                return fail(r, r->at, "a key in quotes is expected here");
            key = read_text(r, &key_n);
            if (!key)
                return NULL;
            if (!accept(r, ':'))
                return fail(r, r->at, "`:` is expected here");
        }
        Json *value = read_value(r);
        if (!value)
            return NULL;
        value->key = key;
        value->key_n = key_n;
        if (key && seen_before(&seen, j, value))
            return fail(r, key_at, "this key stands here twice");
        *tail = value;
        tail = &value->next;
        j->n++;
    } while (accept(r, ','));
    if (!accept(r, close))
        return fail(r, r->at,
                    close == '}' ? "`,` or `}` is expected here"
                                 : "`,` or `]` is expected here");
    return j;
}

static Json *read_word(JsonReader *r, Json *j)
{
    static const struct {
        const char *text;
        JsonKind kind;
    } words[] = {{"null", JSON_NULL}, {"true", JSON_TRUE}, {"false", JSON_FALSE}};
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        size_t n = strlen(words[i].text);
        if (r->n - r->at >= n && !memcmp(r->s + r->at, words[i].text, n)) {
            r->at += n;
            j->kind = words[i].kind;
            return j;
        }
    }
    return fail(r, r->at, "a value is expected here");
}

static Json *read_value(JsonReader *r)
{
    skip_space(r);
    Json *j = NEW(r->arena, Json);
    j->offset = r->at;
    if (r->at >= r->n)
        return fail(r, r->at, "the text ends where a value is expected");
    char c = r->s[r->at];
    if (c == '{' || c == '[') {
        if (r->depth == JSON_DEPTH)
            return fail(r, r->at, "nested too deeply");
        r->depth++;
        r->at++;
        j->kind = c == '{' ? JSON_OBJECT : JSON_ARRAY;
        j = read_members(r, j, c == '{' ? '}' : ']');
        r->depth--;
        return j;
    }
    if (c == '"') {
        j->kind = JSON_STRING;
        j->s = read_text(r, &j->n);
        return j->s ? j : NULL;
    }
    if (c == '-' || (c >= '0' && c <= '9'))
        return read_number(r, j);
    return read_word(r, j);
}

Json *json_read(Arena *a, const char *text, size_t n, JsonError *error)
{
    *error = (JsonError){0, NULL};
    JsonReader r = {.arena = a, .s = text, .n = n, .error = error};
    Json *j = read_value(&r);
    if (!j)
        return NULL;
    skip_space(&r);
    return r.at == n ? j : fail(&r, r.at, "there is more text after the value");
}

const Json *json_get(const Json *object, const char *key)
{
    if (!object || object->kind != JSON_OBJECT)
        return NULL;
    size_t n = strlen(key);
    for (const Json *k = object->first; k; k = k->next)
        if (k->key_n == n && !memcmp(k->key, key, n))
            return k;
    return NULL;
}

const char *json_string(const Json *object, const char *key)
{
    const Json *j = json_get(object, key);
    return j && j->kind == JSON_STRING && strlen(j->s) == j->n ? j->s : NULL;
}

/* ---- writing ---- */

void json_begin(JsonText *t, char *memory, size_t cap)
{
    *t = (JsonText){.s = memory, .cap = cap};
    memory[0] = 0;
}

static void put(JsonText *t, const char *s, size_t n)
{
    if (t->full || t->cap - t->n <= n) {
        t->full = true;
        return;
    }
    memcpy(t->s + t->n, s, n);
    t->n += n;
    t->s[t->n] = 0;
}

static void put_quoted(JsonText *t, const char *s, size_t n)
{
    put(t, "\"", 1);
    for (size_t i = 0; i < n;) {
        unsigned char c = (unsigned char)s[i];
        uint32_t code;
        size_t len = utf8_read(s + i, n - i, &code);
        char escape[8];
        if (!len) {
            put(t, "\xef\xbf\xbd", 3);
            len = 1;
        } else if (c == '"' || c == '\\') {
            put(t, (char[2]){'\\', (char)c}, 2);
        } else if (c == '\n') {
            put(t, "\\n", 2);
        } else if (c < 0x20) {
            put(t, escape, (size_t)snprintf(escape, sizeof escape, "\\u%04x", c));
        } else {
            put(t, s + i, len);
        }
        i += len;
    }
    put(t, "\"", 1);
}

static void put_key(JsonText *t, const char *key)
{
    if (t->comma)
        put(t, ",", 1);
    t->comma = true;
    if (key) {
        put_quoted(t, key, strlen(key));
        put(t, ":", 1);
    }
}

void json_open(JsonText *t, const char *key, char bracket)
{
    put_key(t, key);
    put(t, &bracket, 1);
    t->comma = false;
}

void json_close(JsonText *t, char bracket)
{
    put(t, &bracket, 1);
    t->comma = true;
}

void json_put_bytes(JsonText *t, const char *key, const char *s, size_t n)
{
    put_key(t, key);
    put_quoted(t, s, n);
}

void json_put_string(JsonText *t, const char *key, const char *s)
{
    json_put_bytes(t, key, s, strlen(s));
}

void json_put_number(JsonText *t, const char *key, double x)
{
    put_key(t, key);
    char text[40] = "null";
    if (isfinite(x))
        for (int digits = 1; digits <= 17; digits++) {
            snprintf(text, sizeof text, "%.*g", digits, x);
            if (strtod(text, NULL) == x)
                break;
        }
    put(t, text, strlen(text));
}

void json_put_integer(JsonText *t, const char *key, int64_t x)
{
    put_key(t, key);
    char text[24];
    put(t, text, (size_t)snprintf(text, sizeof text, "%lld", (long long)x));
}

void json_put_bool(JsonText *t, const char *key, bool x)
{
    put_key(t, key);
    put(t, x ? "true" : "false", x ? 4 : 5);
}
