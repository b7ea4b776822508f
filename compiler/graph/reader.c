/* reader.c - see reader.h. */
#include "reader.h"

#include <errno.h>
#include <stdlib.h>

Reader reader_start(Ctx *ctx, Arena *arena, uint32_t source_file)
{
    size_t n;
    const char *text = source_text(ctx, source_file, &n);
    return (Reader){.ctx = ctx, .arena = arena, .file = source_file, .text = text, .end = text + n, .p = text};
}

void reader_fail(Reader *r, const char *code, const char *at, const char *label, const char *what)
{
    if (r->failed)
        return;
    uint32_t lo = (uint32_t)(at - r->text), hi = (uint32_t)(r->p - r->text);
    diag_error(r->ctx, code, (Span){r->file, lo, hi > lo ? hi : lo}, label, "%s", what);
    r->failed = true;
}

void reader_expected(Reader *r, const char *what)
{
    reader_fail(r, "E0902", r->p, arena_printf(r->ctx->program, "expected %s", what), "this line cannot be read");
}

void reader_spaces(Reader *r)
{
    while (*r->p == ' ')
        r->p++;
}

bool reader_accept(Reader *r, const char *s)
{
    reader_spaces(r);
    size_t n = strlen(s);
    if (strncmp(r->p, s, n) != 0)
        return false;
    r->p += n;
    return true;
}

void reader_expect(Reader *r, const char *s)
{
    if (!r->failed && !reader_accept(r, s))
        reader_expected(r, arena_printf(r->ctx->program, "`%s`", s));
}

int64_t reader_int(Reader *r)
{
    char *end = NULL;
    reader_spaces(r);
    errno = 0;
    long long value = strtoll(r->p, &end, 10);
    if (r->failed || end == r->p || errno || *r->p == '\n') {
        reader_expected(r, "an integer");
        return 0;
    }
    r->p = end;
    return value;
}

double reader_real(Reader *r)
{
    char *end = NULL;
    reader_spaces(r);
    double value = strtod(r->p, &end);
    if (r->failed || end == r->p || *r->p == '\n') {
        reader_expected(r, "a number");
        return 0;
    }
    r->p = end;
    return value;
}

bool reader_word_char(char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_'; }

const char *reader_word(Reader *r)
{
    reader_spaces(r);
    const char *start = r->p;
    while (reader_word_char(*r->p))
        r->p++;
    return arena_copy(r->ctx->program, start, (size_t)(r->p - start));
}

int reader_choice(Reader *r, const char *const *names, size_t n, const char *what)
{
    reader_spaces(r);
    const char *at = r->p, *word = reader_word(r);
    for (size_t k = 0; k < n; k++)
        if (!strcmp(names[k], word))
            return (int)k;
    reader_fail(r, "E0903", at, "", arena_printf(r->ctx->program, "there is no %s `%s`", what, word));
    return 0;
}

static int hex_digit(char c) { return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1; }

/* After a backslash: the character meant, or -1. */
static int read_escape(Reader *r)
{
    char c = *r->p++;
    if (c == '"' || c == '\\')
        return c;
    if (c == 'n')
        return '\n';
    if (c == 't')
        return '\t';
    if (c != 'u' || strncmp(r->p, "00", 2) != 0)
        return -1;
    int high = hex_digit(r->p[2]), low = high < 0 ? -1 : hex_digit(r->p[3]);
    if (low < 0 || high * 16 + low == 0)
        return -1;
    r->p += 4;
    return high * 16 + low;
}

Name reader_string(Reader *r)
{
    Buf b = buf_new(r->arena);
    reader_expect(r, "\"");
    while (!r->failed && *r->p != '"') {
        if (*r->p == 0 || *r->p == '\n') {
            reader_expected(r, "`\"`");
        } else if (*r->p == '\\' && r->p[1]) {
            r->p++;
            int c = read_escape(r);
            if (c < 0)
                reader_expected(r, "an escape");
            else
                buf_putc(&b, (char)c);
        } else {
            buf_putc(&b, *r->p++);
        }
    }
    reader_expect(r, "\"");
    return r->failed ? NULL : name_of(r->ctx, b.s, b.n);
}

Dim reader_dim(Reader *r)
{
    Dim d = DIM(1);
    const char *at = r->p;
    do {
        Dim factor = DIM(0);
        if (reader_accept(r, "B"))
            factor = DIM_B;
        else if (reader_accept(r, "T"))
            factor = DIM_T;
        else
            factor.n = reader_int(r);
        int64_t power = !dim_static(factor) && reader_accept(r, "^") ? reader_int(r) : 1;
        bool fits = factor.n >= 0 && factor.n <= (int64_t)1 << 53 && power >= 1 && power <= 15;
        for (int64_t k = 0; k < power && fits; k++)
            fits = dim_mul(d, factor, &d);
        if (!fits)
            reader_fail(r, "E0904", at, "", "this extent is out of range");
    } while (!r->failed && reader_accept(r, "*"));
    return d;
}

void reader_number(Reader *r, size_t want)
{
    reader_spaces(r);
    const char *at = r->p;
    int64_t number = reader_int(r);
    if (!r->failed && number != (int64_t)want)
        reader_fail(r, "E0905", at, arena_printf(r->ctx->program, "expected %zu", want),
                    "these lines are numbered without gaps");
}

void reader_end_of_line(Reader *r)
{
    if (!r->failed && !reader_accept(r, "\n") && r->p != r->end)
        reader_expected(r, "the end of the line");
}
