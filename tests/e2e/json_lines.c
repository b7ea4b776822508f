/* json_lines.c - judges whether every line of the standard input is one JSON value.
 *
 * In:  with the argument "-", text on stdin; without, its own cases.   Out: 0, or 1 and the bad
 * line. The one idea: a strict reader of RFC 8259 that shares no code with what it judges.
 * When: quick.
 */
#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *value(const char *s, int depth);

static const char *blank(const char *s)
{
    while (*s == ' ' || *s == '\t' || *s == '\r' || *s == '\n')
        s++;
    return s;
}

static const char *string(const char *s)
{
    if (*s++ != '"')
        return NULL;
    for (; *s != '"'; s++) {
        if ((unsigned char)*s < 0x20)
            return NULL;
        if (*s != '\\')
            continue;
        s++;
        if (*s == 'u') {
            for (int i = 1; i <= 4; i++)
                if (!isxdigit((unsigned char)s[i]))
                    return NULL;
            s += 4;
        } else if (!*s || !strchr("\"\\/bfnrt", *s)) {
            return NULL;
        }
    }
    return s + 1;
}

static const char *digits(const char *s)
{
    if (!isdigit((unsigned char)*s))
        return NULL;
    while (isdigit((unsigned char)*s))
        s++;
    return s;
}

static const char *number(const char *s)
{
    if (*s == '-')
        s++;
    s = *s == '0' ? s + 1 : digits(s);
    if (s && *s == '.')
        s = digits(s + 1);
    if (s && (*s == 'e' || *s == 'E')) {
        s++;
        s = digits(*s == '+' || *s == '-' ? s + 1 : s);
    }
    return s;
}

/* The members of an object or the items of an array, from behind the opening bracket. */
static const char *members(const char *s, char close, int depth)
{
    s = blank(s);
    if (*s == close)
        return s + 1;
    for (;;) {
        if (close == '}') {
            s = string(blank(s));
            if (!s || *(s = blank(s)) != ':')
                return NULL;
            s++;
        }
        s = value(s, depth + 1);
        if (!s)
            return NULL;
        s = blank(s);
        if (*s == close)
            return s + 1;
        if (*s++ != ',')
            return NULL;
    }
}

static const char *value(const char *s, int depth)
{
    s = blank(s);
    if (depth > 64)
        return NULL;
    if (*s == '{')
        return members(s + 1, '}', depth);
    if (*s == '[')
        return members(s + 1, ']', depth);
    if (*s == '"')
        return string(s);
    if (strncmp(s, "true", 4) == 0 || strncmp(s, "null", 4) == 0)
        return s + 4;
    if (strncmp(s, "false", 5) == 0)
        return s + 5;
    return number(s);
}

static bool is_json(const char *s)
{
    s = value(s, 0);
    return s && !*blank(s);
}

static int self_test(void)
{
    static const char *const good[] = {
        "{}", "[]", "0", "-1.5e+3", "\"\\u00e4\"", "[1, true]", "{\"a\":{\"b\":[null]}}"};
    static const char *const bad[] = {"",           "{",       "[1,]",  "{\"a\" 1}", "01",   "1.",    "nan",   "\"\n\"",
                                      "{\"a\":1,}", "\"\\x\"", "[1 2]", "{} {}",     "-inf", "{a:1}", "\"open"};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (!is_json(good[i]))
            return printf("refused: %s\n", good[i]), 1;
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (is_json(bad[i]))
            return printf("accepted: %s\n", bad[i]), 1;
    return 0;
}

int main(int argc, char **argv)
{
    if (argc < 2 || strcmp(argv[1], "-") != 0)
        return self_test();
    char *line = NULL;
    size_t cap = 0;
    int status = 0, lines = 0;
    while (getline(&line, &cap, stdin) > 0) {
        lines++;
        if (!is_json(line)) {
            printf("not JSON, line %d: %s\n", lines, line);
            status = 1;
        }
    }
    free(line);
    if (!lines)
        printf("no lines\n");
    return lines ? status : 1;
}
