/* json.c - the JSON reader takes what RFC 8259 allows and nothing else; the writer reads back.
 *
 * When: quick, checked.
 */
#include <math.h>
#include <stdlib.h>

#include "runtime/base/json.h"
#include "support.h"

static const char *const good[] = {
    "null",
    "true",
    " false ",
    "0",
    "-0",
    "12",
    "-12.5e+3",
    "1E2",
    "\"\"",
    "\"a\\u0041\\n\"",
    "[]",
    "[1,2 , 3]",
    "{}",
    "{\"a\":1,\"b\":[{}]}",
    "\"\\ud83d\\ude00\"",
    "\"\xc3\xa9\"",
    "[[[[]]]]",
    "{\"\":0}",
    "1e400",
    "\t\r\n[ ]\n",
};
static const char *const bad[] = {
    "",
    " ",
    "nul",
    "nulll",
    "True",
    "01",
    "-",
    "+1",
    "1.",
    ".5",
    "1e",
    "1e+",
    "0x10",
    "NaN",
    "Infinity",
    "'a'",
    "\"",
    "\"\\x\"",
    "\"\\u12\"",
    "\"\\ud800\"",
    "\"\\udc00\"",
    "\"a\nb\"",
    "\"\xff\"",
    "\"\xc0\x80\"",
    "\"\xed\xa0\x80\"",
    "\"\xf5\x80\x80\x80\"",
    "[1,]",
    "[,1]",
    "[1 2]",
    "[",
    "]",
    "{",
    "}",
    "{a:1}",
    "{\"a\"}",
    "{\"a\":}",
    "{\"a\":1,}",
    "{\"a\":1 \"b\":2}",
    "{\"a\":1,\"a\":2}",
    "{\"a\":1,\"b\":2,\"a\":3}",
    "1 2",
    "[1] x",
    "// a\n1",
    "\"\\ud800\\u0041\"",
    "\"\\\"",
    "{\"a\":1,\"\\u0061\":2}",
};

static void cases(Tally *t, Ctx *ctx)
{
    JsonError e;
    for (size_t i = 0; i < COUNT_OF(good); i++)
        CHECKF(t, json_read(ctx->program, good[i], strlen(good[i]), &e), "`%s`: byte %zu: %s", good[i], e.offset,
               e.what);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        bool taken = json_read(ctx->program, bad[i], strlen(bad[i]), &e) != NULL;
        CHECKF(t, !taken, "`%s` was taken", bad[i]);
        CHECKF(t, e.what && e.offset <= strlen(bad[i]), "`%s`: no place", bad[i]);
    }
    CHECK(t, !json_read(ctx->program, "1\0", 2, &e) && e.offset == 1);
    char deep[300];
    memset(deep, '[', 150);
    memset(deep + 150, ']', 150);
    CHECK(t, !json_read(ctx->program, deep, 300, &e) && e.offset == JSON_DEPTH);
}

static void values(Tally *t, Ctx *ctx)
{
    JsonError e;
    const char *text = "{\"n\":9223372036854775807,\"m\":-9223372036854775808,"
                       "\"big\":9223372036854775808,\"x\":0.1,\"s\":\"a\\u0000b\",\"u\":\"\\u20ac\"}";
    const Json *j = json_read(ctx->program, text, strlen(text), &e);
    CHECK(t, j && j->n == 6);
    CHECK(t, json_get(j, "n")->whole && json_get(j, "n")->integer == INT64_MAX);
    CHECK(t, json_get(j, "m")->whole && json_get(j, "m")->integer == INT64_MIN);
    CHECK(t, !json_get(j, "big")->whole && json_get(j, "big")->number == 9223372036854775808.0);
    CHECK(t, json_get(j, "x")->number == 0.1 && !json_get(j, "x")->whole);
    CHECK(t, !json_string(j, "s") && json_get(j, "s")->n == 3);
    CHECK(t, json_string(j, "u") && !strcmp(json_string(j, "u"), "\xe2\x82\xac"));
    CHECK(t, !json_get(j, "y") && !json_string(j, "n"));
}

static void written(Tally *t, Ctx *ctx)
{
    char memory[400];
    JsonText w;
    JsonError e;
    json_begin(&w, memory, sizeof memory);
    json_open(&w, NULL, '{');
    json_put_string(&w, "a \"quoted\"\n", "\x01 caf\xc3\xa9");
    json_put_number(&w, "third", 1.0 / 3);
    json_put_number(&w, "nan", NAN);
    json_open(&w, "list", '[');
    json_put_integer(&w, NULL, -5);
    json_put_bool(&w, NULL, true);
    json_close(&w, ']');
    json_put_bytes(&w, "bytes", "x\xff", 2);
    json_close(&w, '}');
    const Json *j = json_read(ctx->program, w.s, w.n, &e);
    CHECKF(t, j != NULL, "%s at %zu: %s", w.s, e.offset, e.what);
    CHECK(t, !strcmp(json_string(j, "a \"quoted\"\n"), "\x01 caf\xc3\xa9"));
    CHECK(t, json_get(j, "third")->number == 1.0 / 3);
    CHECK(t, json_get(j, "nan")->kind == JSON_NULL);
    CHECK(t, json_get(j, "list")->n == 2 && json_get(j, "list")->first->integer == -5);
    CHECK(t, !strcmp(json_string(j, "bytes"), "x\xef\xbf\xbd"));
    json_begin(&w, memory, 10);
    json_put_string(&w, NULL, "longer than ten");
    CHECK(t, w.full && w.n < 10 && strlen(memory) == w.n);
}

/* Random bytes, and good texts with bytes changed, cut and doubled: never a crash. */
static void noise(Tally *t, Ctx *ctx)
{
    static const char alphabet[] = "{}[]\",:\\u0129ed-+.tfn ax\xc3\xa9\xf0";
    uint64_t state = 7;
    int taken = 0;
    for (int round = 0; round < 20000; round++) {
        char text[64];
        size_t n = 0;
        state = state * 6364136223846793005u + 1442695040888963407u;
        if (round % 2) {
            const char *base = good[(state >> 33) % COUNT_OF(good)];
            n = strlen(base) < 60 ? strlen(base) : 60;
            memcpy(text, base, n);
            if (n)
                text[(state >> 20) % n] = alphabet[(state >> 50) % (sizeof alphabet - 1)];
            n -= n ? (state >> 10) % 2 : 0;
        } else {
            for (n = 0; n < (state >> 33) % 24; n++) {
                uint64_t bits = state >> (n % 40);
                text[n] = alphabet[(bits * 2654435761u >> 7) % (sizeof alphabet - 1)];
            }
        }
        char *exact = malloc(n ? n : 1); /* so that reading past the end is noticed */
        memcpy(exact, text, n);
        ArenaMark mark = arena_mark(ctx->scratch);
        JsonError e;
        Json *j = json_read(ctx->scratch, exact, n, &e);
        taken += j != NULL;
        if (!j && (!e.what || e.offset > n))
            CHECKF(t, false, "no place in `%.*s`", (int)n, text);
        arena_reset(ctx->scratch, mark);
        free(exact);
    }
    CHECK(t, taken > 100 && taken < 19000);
}

/* Digits are counted in three tries; here by trying every number of them. */
static int digits_by_trying(double x)
{
    char text[40];
    int digits = 1;
    for (; digits < 17; digits++) {
        snprintf(text, sizeof text, "%.*g", digits, x);
        if (strtod(text, NULL) == x)
            break;
    }
    return digits;
}

static void shortest(Tally *t)
{
    uint64_t state = 11;
    int seen[18] = {0};
    for (int i = 0; i < 60000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        uint64_t bits = state ^ state >> 29;
        double x = 0;
        char text[40];
        switch (i % 6) {
        case 0: memcpy(&x, &bits, sizeof x); break; /* any double */
        case 1: x = (double)(bits % 100000) / 1000; break;
        case 2: x = (float)((double)(bits % 1000000) * 1e-9); break; /* as losses are */
        case 3:
            x = ldexp(1, (int)(bits % 2098) - 1074);
            break; /* powers of two, of which neighbours lie at two distances */
        case 4:
            snprintf(text, sizeof text, "-%llue%d", (unsigned long long)(bits % 1000), (int)(bits >> 20 & 511) - 256);
            x = strtod(text, NULL);
            break;
        case 5:
            x = ldexp((double)(bits >> 12), -(int)(bits % 64) - (bits & 64 ? 1050 : 0));
            break; /* the smallest, too */
        }
        if (!isfinite(x))
            continue;
        int digits = number_digits(x);
        seen[digits >= 1 && digits <= 17 ? digits : 0]++;
        if (digits != digits_by_trying(x))
            CHECKF(t, false, "%.17g has %d digits, not %d", x, digits_by_trying(x), digits);
    }
    CHECK(t, !seen[0] && seen[1] > 100 && seen[9] > 100 && seen[15] > 100 && seen[16] > 100 && seen[17] > 100);
}

int main(void)
{
    Tally t = {0};
    Ctx *ctx = ctx_new(NULL);
    cases(&t, ctx);
    values(&t, ctx);
    written(&t, ctx);
    noise(&t, ctx);
    shortest(&t);
    ctx_free(ctx);
    return tally_end(&t, "json");
}
