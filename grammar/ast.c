/* ast.c - what can be said about a raw syntax tree without knowing what it means.
 *
 * In:  nodes.   Out: dumps, equality, the value of a number.
 * The one idea: the table in ast.h says everything about the kinds; this file only walks it.
 */
#include "parse.h"

#include <stdio.h>
#include <stdlib.h>

static const char *const kind_names[] = {
#define X(kind, text, name, kids) text,
    AST_KINDS(X)
#undef X
};

const char *ast_kind_name(AstKind kind) { return (unsigned)kind < AST_KIND_COUNT ? kind_names[kind] : "?"; }

/* ---- dump ---- */

static bool is_text(const Ast *a)
{
    return a->kind == AST_STR || a->kind == AST_IMPORT || a->kind == AST_ENTRY || a->kind == AST_LABEL ||
           a->kind == AST_QTY;
}

static void dump(Buf *out, const Ast *a, bool spans, int level)
{
    buf_printf(out, "%*s", level * 2, "");
    if (!a) {
        buf_puts(out, "-\n");
        return;
    }
    buf_puts(out, ast_kind_name(a->kind));
    if (a->name) {
        buf_putc(out, ' ');
        if (is_text(a))
            buf_json_string(out, a->name, strlen(a->name));
        else
            buf_puts(out, a->name);
    }
    if (spans) {
        buf_printf(out, " @%u..%u", a->span.lo, a->span.hi);
        if (a->name_span.lo != a->span.lo || a->name_span.hi != a->span.hi)
            buf_printf(out, " name %u..%u", a->name_span.lo, a->name_span.hi);
    }
    if (a->doc) {
        buf_puts(out, " ## ");
        buf_json_string(out, a->doc, strlen(a->doc));
    }
    buf_putc(out, '\n');
    for (uint32_t i = 0; i < a->n; i++)
        dump(out, a->kid[i], spans, level + 1);
}

void ast_dump(Buf *out, const Ast *ast, bool spans) { dump(out, ast, spans, 0); }

/* ---- equality ---- */

bool ast_equal(const Ast *a, const Ast *b)
{
    while (a && a->kind == AST_PAREN)
        a = a->kid[0];
    while (b && b->kind == AST_PAREN)
        b = b->kid[0];
    if (!a || !b)
        return a == b;
    if (a->kind != b->kind || a->n != b->n || !a->name != !b->name)
        return false;
    if (a->name && a->name != b->name && strcmp(a->name, b->name) != 0)
        return false;
    for (uint32_t i = 0; i < a->n; i++)
        if (!ast_equal(a->kid[i], b->kid[i]))
            return false;
    return true;
}

/* ---- numbers ---- */

static const struct {
    const char *word, *canonical;
} units[] = {
    {"steps", "step"},  {"step", "step"}, {"tokens", "token"}, {"token", "token"}, {"tok", "token"},
    {"seqs", "seq"},    {"seq", "seq"},   {"images", "image"}, {"image", "image"}, {"epochs", "epoch"},
    {"epoch", "epoch"}, {"h", "h"},       {"min", "min"},      {"s", "s"},         {"ms", "ms"},
    {"KiB", "KiB"},     {"MiB", "MiB"},   {"GiB", "GiB"},
};

const char *ast_unit(const char *s, size_t n)
{
    for (size_t i = 0; i < COUNT_OF(units); i++)
        if (!strncmp(units[i].word, s, n) && !units[i].word[n])
            return units[i].canonical;
    return NULL;
}

/* Decimal suffixes move the exponent instead of multiplying, so that 0.1% is the double nearest
 * to 0.001 and not a product of two roundings. */
static int decimal_suffix(const char *s)
{
    return *s == 'k' ? 3 : *s == 'M' ? 6 : *s == 'B' ? 9 : *s == 'T' ? 12 : *s == '%' ? -2 : 0;
}

/* digits * 10^exponent. Where both are small each factor is a double without rounding, so one operation gives the nearest
 * double. False: they are not. */
static bool small_decimal(uint64_t digits, long exponent, double *out)
{
    static const double power[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    long most = (long)COUNT_OF(power) - 1;
    if (digits >> 53 || exponent > most || exponent < -most)
        return false;
    *out = exponent < 0 ? (double)digits / power[-exponent] : (double)digits * power[exponent];
    return true;
}

AstNumber ast_number(Ctx *ctx, const Ast *number)
{
    AstNumber out = {0};
    char text[NUMBER_LIMIT + 32];
    size_t n = 0;
    uint64_t whole = 0; /* the digits as a number; from 2^53 on the first of them */
    long places = 0;    /* behind the point */
    const char *s = number->name;
    for (; n < NUMBER_LIMIT && ((*s >= '0' && *s <= '9') || *s == '.' || *s == '_'); s++) {
        out.fraction |= *s == '.';
        if (*s != '_')
            text[n++] = *s;
        if (*s >= '0' && *s <= '9') {
            whole = whole >> 53 ? whole : 10 * whole + (uint64_t)(*s - '0');
            places += out.fraction;
        }
    }
    long exponent = 0;
    if (*s == 'e' || *s == 'E') {
        char digits[NUMBER_LIMIT + 1];
        size_t k = 0;
        out.fraction = true;
        for (s++; k < NUMBER_LIMIT && ((*s >= '0' && *s <= '9') || *s == '-' || *s == '+' || *s == '_'); s++)
            if (*s != '_')
                digits[k++] = *s;
        digits[k] = 0;
        exponent = strtol(digits, NULL, 10);
        exponent = exponent > 100000 ? 100000 : exponent < -100000 ? -100000 : exponent;
    }
    out.fraction |= *s == '%';
    double factor = 1;
    if ((*s == 'K' || *s == 'M' || *s == 'G') && s[1] == 'i') {
        factor = *s == 'K' ? 0x1p10 : *s == 'M' ? 0x1p20 : 0x1p30;
        s += 2;
    } else if (decimal_suffix(s)) {
        exponent += decimal_suffix(s++);
    } else if (*s == 'd' || *s == 'L') {
        out.rel = *s++;
    }
    if (!small_decimal(whole, exponent - places, &out.value)) {
        snprintf(text + n, sizeof text - n, "e%ld", exponent);
        out.value = strtod(text, NULL);
    }
    out.value *= factor;
    while (*s == ' ')
        s++;
    const char *unit = *s ? ast_unit(s, strlen(s)) : NULL;
    if (unit)
        out.unit = name_str(ctx, unit);
    return out;
}
