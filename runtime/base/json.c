/* json.c - see json.h. */
#include "json.h"

#include <math.h>
#include <stdio.h>

Json *json_read(Arena *a, const char *text, size_t n, JsonError *error)
{
    const Region memory = arena_region(a);
    return json_parse(&memory, text, n, error);
}

void json_put_number(JsonText *t, const char *key, double x)
{
    char text[40] = "null";
    if (isfinite(x))
        snprintf(text, sizeof text, "%.*g", number_digits(x), x);
    json_put_raw(t, key, text);
}
