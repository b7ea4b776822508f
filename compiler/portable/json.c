/* json.c - see json.h. */
#include "json.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "utf8.h"

/* ---- reading ---- */

typedef struct JsonReader {
    const Region *memory;
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
        if (r->n - r->at < 6 || r->s[r->at] != '\\' || r->s[r->at + 1] != 'u' || (r->at += 2, !read_hex(r, &low)) ||
            low < 0xdc00 || low > 0xdfff) {
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
    char *out = region_take(r->memory, end - r->at + 1);
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
    char few[64], *copy = r->at - start < sizeof few ? few : region_take(r->memory, r->at - start + 1);
    memcpy(copy, r->s + start, r->at - start); /* the text may end here, without a zero */
    copy[r->at - start] = 0;
    j->kind = JSON_NUMBER;
    j->number = strtod(copy, NULL);
    /* exact: every digit is looked at again, with overflow checked */
    j->whole = whole;
    for (size_t i = digits; whole && i < r->at; i++) {
        int64_t d = r->s[i] - '0';
        j->whole = j->whole && !__builtin_mul_overflow(j->integer, (int64_t)10, &j->integer) &&
                   !__builtin_add_overflow(j->integer, r->s[start] == '-' ? -d : d, &j->integer);
    }
    return j;
}

static Json *read_value(JsonReader *r);

static int by_key(const void *x, const void *y)
{
    const Json *a = *(Json *const *)x, *b = *(Json *const *)y;
    int c = memcmp(a->key, b->key, a->key_n < b->key_n ? a->key_n : b->key_n);
    if (!c && a->key_n != b->key_n)
        c = a->key_n < b->key_n ? -1 : 1;
    return c ? c : a->key_at < b->key_at ? -1 : 1;
}

/* The first member whose key another one before it has, or NULL: sorted, so that a large object is not searched for each. */
static const Json *key_twice(JsonReader *r, const Json *object)
{
    enum { FEW = 16 };
    const Json *few[FEW], **all = object->n <= FEW ? few : region_take(r->memory, object->n * sizeof *all),
                          *first = NULL;
    size_t n = 0;
    for (const Json *k = object->first; k; k = k->next)
        all[n++] = k;
    qsort(all, n, sizeof *all, by_key);
    for (size_t i = 1; i < n; i++)
        if (all[i]->key_n == all[i - 1]->key_n && !memcmp(all[i]->key, all[i - 1]->key, all[i]->key_n) &&
            (!first || all[i]->key_at < first->key_at))
            first = all[i];
    return first;
}

static Json *read_members(JsonReader *r, Json *j, char close)
{
    Json **tail = &j->first;
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
        value->key_at = key_at;
        *tail = value;
        tail = &value->next;
        j->n++;
    } while (accept(r, ','));
    if (!accept(r, close))
        return fail(r, r->at, close == '}' ? "`,` or `}` is expected here" : "`,` or `]` is expected here");
    const Json *again = close == '}' ? key_twice(r, j) : NULL;
    return again ? fail(r, again->key_at, "this key stands here twice") : j;
}

static Json *read_word(JsonReader *r, Json *j)
{
    static const struct {
        const char *text;
        JsonKind kind;
    } words[] = {{"null", JSON_NULL}, {"true", JSON_TRUE}, {"false", JSON_FALSE}};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++) {
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
    Json *j = region_take(r->memory, sizeof *j);
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

Json *json_parse(const Region *m, const char *text, size_t n, JsonError *error)
{
    *error = (JsonError){0, NULL};
    JsonReader r = {.memory = m, .s = text, .n = n, .error = error};
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
    if (t->more && t->cap - t->n <= n) {
        char *larger = region_take(t->more, t->cap = 2 * (t->cap + n));
        memcpy(larger, t->s, t->n);
        t->s = larger;
    }
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

void json_put_string(JsonText *t, const char *key, const char *s) { json_put_bytes(t, key, s, strlen(s)); }

void json_pad(JsonText *t) { put(t, " ", 1); }

void json_put_raw(JsonText *t, const char *key, const char *value)
{
    put_key(t, key);
    put(t, value, strlen(value));
}

void json_put_integer(JsonText *t, const char *key, int64_t x)
{
    char text[24];
    snprintf(text, sizeof text, "%" PRId64, x);
    json_put_raw(t, key, text);
}

void json_put_bool(JsonText *t, const char *key, bool x) { json_put_raw(t, key, x ? "true" : "false"); }
