/* json.h - JSON in arenas, and numbers with as many digits as they need. */
#ifndef VWN_ARENA_JSON_H
#define VWN_ARENA_JSON_H

#include "compiler/base/base.h"
#include "compiler/portable/json.h"
#include "compiler/portable/utf8.h"

/* json_parse() in an arena. Raises when out of memory. */
Json *json_read(Arena *a, const char *text, size_t n, JsonError *error);
/* Makes all strings and keys of a tree text for people (utf8_plain): what others have written may hold what a
 * terminal acts on. */
void json_make_plain(Arena *a, Json *tree);
void json_put_number(JsonText *t, const char *key, double x); /* reads back; NaN, infinity: null */

#endif
