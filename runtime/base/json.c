/* json.c - see json.h. */
#include "json.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

Json *json_read(Arena *a, const char *text, size_t n, JsonError *error)
{
    const Region memory = arena_region(a);
    return json_parse(&memory, text, n, error);
}

static const char *plain(Arena *a, const char *s, size_t *n)
{
    const char *shown;
    size_t shown_n, step, room = 0;
    bool same = true;
    for (size_t i = 0; i < *n; i += step, room += shown_n) {
        step = utf8_plain(s + i, *n - i, &shown, &shown_n);
        same = same && shown == s + i;
    }
    if (same) /* nearly always */
        return s;
    char *out = NEW_ARRAY(a, char, room + 1);
    size_t to = 0;
    for (size_t i = 0; i < *n; i += step, to += shown_n) {
        step = utf8_plain(s + i, *n - i, &shown, &shown_n);
        memcpy(out + to, shown, shown_n);
    }
    *n = to;
    return out;
}

void json_make_plain(Arena *a, Json *tree)
{
    if (tree->key)
        tree->key = plain(a, tree->key, &tree->key_n);
    if (tree->kind == JSON_STRING)
        tree->s = plain(a, tree->s, &tree->n);
    for (Json *child = tree->first; child; child = child->next)
        json_make_plain(a, child);
}

void json_put_number(JsonText *t, const char *key, double x)
{
    char text[40] = "null";
    if (isfinite(x))
        snprintf(text, sizeof text, "%.*g", number_digits(x), x);
    json_put_raw(t, key, text);
}
