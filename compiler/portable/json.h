/* json.h - a strict little JSON reader and a writer into fixed memory.
 *
 * In:  untrusted text.   Out: a tree, or a sentence and the byte where it went wrong.
 * The one idea: RFC 8259 and nothing more: no comments, no trailing commas, no duplicate keys,
 * valid UTF-8, a depth limit. The writer allocates nothing unless it is told to, so that a training
 * step can report itself.
 */
#ifndef VWN_JSON_H
#define VWN_JSON_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "region.h"

typedef enum JsonKind { JSON_NULL, JSON_FALSE, JSON_TRUE, JSON_NUMBER, JSON_STRING, JSON_ARRAY, JSON_OBJECT } JsonKind;

typedef struct Json Json;
struct Json {
    JsonKind kind;
    bool whole; /* NUMBER: written as an integer that fits int64_t, which is `integer` */
    int64_t integer;
    double number;
    const char *s;   /* STRING: decoded, NUL-terminated, may hold NULs before its end */
    size_t n;        /* STRING: bytes; ARRAY, OBJECT: children */
    size_t offset;   /* where it stands in the text */
    const char *key; /* of a member */
    size_t key_n, key_at;
    Json *first, *next; /* children; siblings */
};

typedef struct JsonError {
    size_t offset;
    const char *what; /* "a comma or `}` is missing" */
} JsonError;

enum { JSON_DEPTH = 64 };

/* NULL with *error filled when the text is not one JSON value. */
Json *json_parse(const Region *m, const char *text, size_t n, JsonError *error);
/* A member of an object by name, or NULL. */
const Json *json_get(const Json *object, const char *key);
/* The member's string when it is a string without a NUL inside, else NULL. */
const char *json_string(const Json *object, const char *key);

/* ---- writing: `full` is set, and the rest dropped, when the memory does not suffice ---- */
typedef struct JsonText {
    char *s;
    size_t n, cap; /* n < cap; s is always NUL-terminated */
    bool full;
    bool comma;         /* the next value follows another one */
    const Region *more; /* where `s` grows; NULL: it does not */
} JsonText;
void json_begin(JsonText *t, char *memory, size_t cap);
void json_open(JsonText *t, const char *key, char bracket); /* '{' or '['; key NULL inside an array */
void json_close(JsonText *t, char bracket);                 /* '}' or ']' */
void json_put_string(JsonText *t, const char *key, const char *s);
void json_put_bytes(JsonText *t, const char *key, const char *s, size_t n); /* invalid UTF-8: U+FFFD */
void json_put_integer(JsonText *t, const char *key, int64_t x);
void json_put_bool(JsonText *t, const char *key, bool x);
void json_pad(JsonText *t);                                         /* a blank */
void json_put_raw(JsonText *t, const char *key, const char *value); /* a value as it is */

#endif
