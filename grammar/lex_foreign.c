/* lex_foreign.c - pieces of text that are written so in other languages: `//`, comments in other marks, 'text', 0x40, `1.`.
 *
 * In:  what the scanner matched.   Out: the error with the fix, and the token to go on with.
 * The one idea: what is meant is known, so that the item around it is read as if it had been written right.
 */
#include "parse.h"
#include "foreign.h"
#include "vwn_parser.h"

static Span scanned(const Lex *lx) { return (Span){lx->file, lx->lo, lx->hi}; }

static bool is_word_char(char c) { return c == '_' || (c >= '0' && c <= '9') || ((c | 32) >= 'a' && (c | 32) <= 'z'); }

static bool is_operator_word(const char *s, size_t n)
{
    static const char *const words[] = {"mod", "and", "or", "not", "if", "then", "else", "in", "for"};
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (strlen(words[i]) == n && !memcmp(words[i], s, n))
            return true;
    return false;
}

/* What follows reads as an operand: a number, a name or a bracket, and not as the words of a sentence. A single name behind a number
 * may be both, `64 // width`, and is a comment. */
bool lex_divides(const Lex *lx)
{
    if (!lex_ends_operand(lx->last.kind) || lx->newline)
        return false;
    uint32_t at = lx->lo + 2;
    while (at < lx->n && lx->text[at] == ' ')
        at++;
    if (at >= lx->n || !(is_word_char(lx->text[at]) || lx->text[at] == '('))
        return false;
    int depth = 0;
    size_t words = 0;
    bool adjacent = false, number = lx->text[at] >= '0' && lx->text[at] <= '9', bracket = lx->text[at] == '(';
    while (at < lx->n && !strchr("\n#,;}", lx->text[at])) {
        char c = lx->text[at];
        depth += (c == '(' || c == '[') - (c == ')' || c == ']');
        if (depth < 0)
            break;
        if (!is_word_char(c)) {
            adjacent = adjacent && c == ' ';
            at++;
            continue;
        }
        size_t n = 0;
        while (at + n < lx->n && is_word_char(lx->text[at + n]))
            n++;
        bool operator= is_operator_word(lx->text + at, n);
        if (adjacent && !operator)
            return false;
        adjacent = !operator;
        words++;
        at += (uint32_t)n;
    }
    return number || bracket || words > 1 || (lx->last.kind != T_NUMBER && lx->last.kind != T_STRING);
}

/* A comment of another language, as lines that begin with `#`; NULL when something follows on its line. */
static const char *as_comment(const Lex *lx, size_t open, size_t close)
{
    uint32_t end = lx->hi;
    while (end < lx->n && (lx->text[end] == ' ' || lx->text[end] == '\t' || lx->text[end] == '\r'))
        end++;
    if (end < lx->n && lx->text[end] != '\n')
        return NULL;
    uint32_t indent = lex_indent(lx, lx->lo, NULL), at = lx->lo + (uint32_t)open, hi = lx->hi - (uint32_t)close;
    Buf b = buf_new(lx->arena);
    while (at < hi) {
        uint32_t line = at;
        while (line < hi && lx->text[line] != '\n')
            line++;
        uint32_t lo = at, last = line;
        while (lo < last && strchr(" \t*", lx->text[lo]))
            lo++;
        while (last > lo && strchr(" \t\r", lx->text[last - 1]))
            last--;
        if (last > lo) {
            if (b.n)
                buf_printf(&b, "\n%*s", (int)indent, "");
            buf_printf(&b, "# %.*s", (int)(last - lo), lx->text + lo);
        }
        at = line + 1;
    }
    return name_of(lx->ctx, b.s ? b.s : "", b.n);
}

bool lex_remark(Lex *lx, size_t open, size_t close)
{
    Span at = scanned(lx), mark = {lx->file, lx->lo, lx->lo + (uint32_t)open};
    bool text = open == 3, value = text && !lx->newline && lx->last.kind != T_SEP && lx->last.kind != T_LBRACE;
    lx->value = name_str(lx->ctx, "");
    if (memchr(lx->text + lx->lo, '\n', lx->hi - lx->lo))
        lx->newline = lx->newline || !value;
    if (lex_quiet(lx))
        return value;
    Diag *d = text ? diag_error(lx->ctx, "E0004", mark, "not a quote", "a text in three quotes")
                   : diag_error(lx->ctx, "E0004", mark, "not an operator here", "unknown operator `%.*s`", (int)open,
                                lx->text + lx->lo);
    const char *with = value ? NULL : as_comment(lx, open, close);
    const char *help = text ? "a comment starts with `#`, and `##` above a block is what `vwn doc` prints"
                            : "a comment starts with `#`";
    if (value)
        diag_help(lx->ctx, d, "a string is `\"...\"` on one line; a line break in it is written `\\n`");
    else if (with)
        diag_fix(lx->ctx, d, at, with, FIX_CERTAIN, "%s", help);
    else
        diag_help(lx->ctx, d, "%s", help);
    return value;
}

int lex_quoted(Lex *lx, size_t quote)
{
    Span at = scanned(lx);
    const char *text = lx->text + at.lo + quote;
    int n = (int)(at.hi - at.lo - 2 * quote);
    lx->value = name_of(lx->ctx, text, (size_t)n);
    if (lex_quiet(lx))
        return T_STRING;
    Diag *d = diag_error(lx->ctx, "E0004", (Span){at.file, at.lo, at.lo + (uint32_t)quote}, "no token starts with it",
                         "unknown character `%.*s`", (int)quote, lx->text + at.lo);
    diag_fix(lx->ctx, d, at, name_printf(lx->ctx, "\"%.*s\"", n, text), FIX_CERTAIN, "strings are written with `\"`");
    return T_STRING;
}

int lex_hard_blank(Lex *lx, Span at, const char *s, size_t n, size_t *used)
{
    size_t blanks = 0;
    while (2 * blanks + 1 < n && !memcmp(s + 2 * blanks, "\xc2\xa0", 2))
        blanks++;
    *used = 2 * blanks;
    at.hi = at.lo + (uint32_t)*used;
    if (!lex_quiet(lx))
        diag_fix(lx->ctx, diag_error(lx->ctx, "E0004", at, "it looks like a blank", "a no-break space (U+00A0)"), at,
                 name_printf(lx->ctx, "%*s", (int)blanks, ""), FIX_CERTAIN, "write a blank");
    return 0;
}

int lex_dashed(Lex *lx, const char *s, size_t n)
{
    Span at = scanned(lx);
    size_t k = strcspn(s, "eE") + 1;
    lx->value = name_printf(lx->ctx, "%.*s-%.*s", (int)k, s, (int)(n - k - 3), s + k + 3);
    Span dash = {at.file, at.lo + (uint32_t)k, at.lo + (uint32_t)k + 3};
    if (!lex_quiet(lx))
        diag_fix(lx->ctx,
                 diag_error(lx->ctx, "E0004", dash, "no token starts with it", "unknown character `%.3s`", s + k), dash,
                 "-", FIX_CERTAIN, "write `%s`", lx->value);
    return T_NUMBER;
}

int lex_bare_point(Lex *lx, const char *s, size_t n)
{
    Span at = scanned(lx);
    lx->value = name_of(lx->ctx, s, n - 1);
    if (!lex_quiet(lx))
        diag_fix(lx->ctx, diag_error(lx->ctx, "E0002", at, "no digit behind the point", "a number ends with a digit"),
                 at, name_printf(lx->ctx, "%s.0", lx->value), FIX_CERTAIN, "write `%s.0`", lx->value);
    return T_NUMBER;
}

int lex_hexadecimal(Lex *lx, const char *s, size_t n)
{
    uint64_t v = 0;
    bool fits = true;
    for (size_t i = 2; i < n; i++) {
        if (s[i] == '_')
            continue;
        v = v * 16 + (uint64_t)(s[i] <= '9' ? s[i] - '0' : (s[i] | 32) - 'a' + 10);
        fits = fits && v <= (uint64_t)1 << 53;
    }
    Span at = scanned(lx);
    Diag *d = diag_error(lx->ctx, "E0002", at, "numbers are decimal", "`%.*s` is no number here", (int)n, s);
    lx->value = fits ? name_printf(lx->ctx, "%llu", (unsigned long long)v) : name_str(lx->ctx, "0");
    if (fits)
        diag_fix(lx->ctx, d, at, lx->value, FIX_CERTAIN, "write `%s`", lx->value);
    return T_NUMBER;
}

/* ---- files of other formats ---- */

static const char *behind_blanks(const char *s, const char *blanks) { return s + strspn(s, blanks); }

/* `[model]` or `[[axes]]` alone on its line. */
static bool toml_header(const char *s)
{
    size_t word;
    s += strspn(s, "[");
    word = strcspn(s, "]\n=,\" ");
    return word && s[word] == ']' && strchr("\r\n", *behind_blanks(s + word, "] \t"));
}

/* Lines `name = value` and remarks alone, at least three, one of them a name of another program. */
static bool python_settings(Ctx *ctx, const char *s)
{
    size_t lines = 0;
    bool known = false;
    for (; *s; s += strcspn(s, "\n"), s += *s == '\n') {
        size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ_0123456789");
        if (strchr("#\r\n", *s))
            continue;
        if (!n || *behind_blanks(s + n, " ") != '=' || (n == 7 && !memcmp(s, "edition", n)))
            return false;
        lines++;
        known = known || foreign_next(FOREIGN_ATTRIBUTE, name_of(ctx, s, n), NULL);
    }
    return known && lines >= 3;
}

bool foreign_file(Ctx *ctx, uint32_t file)
{
    size_t n;
    const char *text = source_text(ctx, file, &n), *s = behind_blanks(text, " \t\r\n");
    while (*s == '#')
        s = behind_blanks(s + strcspn(s, "\n"), " \t\r\n");
    const char *what = *s == '{' && *behind_blanks(s + 1, " \t\r\n") == '"' ? "JSON"
                       : *s == '[' && toml_header(s)                        ? "TOML"
                       : python_settings(ctx, text)                         ? "settings in Python"
                                                                            : NULL;
    if (!what)
        return false;
    uint32_t lo = (uint32_t)(s - text);
    Diag *d = diag_error(ctx, "E0001", (Span){file, lo, lo + 1 + (uint32_t)strcspn(s + 1, " \n\r")},
                         "not a file of this language", "this looks like %s", what);
    diag_help(ctx, d, "`vwn new FILE` writes a file to begin with");
    return true;
}
