/* lex.c - the token layer between the scanner and the parser.
 *
 * In:  the scanner's tokens.   Out: the parser's tokens, with SEP between items and with
 * brackets that always match. The one idea: whatever is wrong with letters and brackets is
 * reported here and then repaired, so that one mistake gives one message and the parser sees a
 * well-formed stream.
 */
#include "parse.h"
#include "foreign.h"
#include "vwn_parser.h"

#include <math.h>
#include <stdlib.h>

static Span raw_span(const Lex *lx) { return (Span){lx->file, lx->lo, lx->hi}; }

void lex_limit(Lex *lx, Span at, const char *name, unsigned most)
{
    if (lx->stopped)
        return;
    lx->stopped = lx->muted = true;
    Diag *d = diag_error(lx->ctx, "E0008", at, "reached here", "limit reached: `%s` is at most %u", name, most);
    diag_note(lx->ctx, d, "nothing after this place was read");
}

/* ---- the text as a whole ---- */

/* Bytes that no part of a file may hold, comments and strings included: what is not UTF-8,
 * control characters, and the marks that make text read in another order than it is written. */
static const char *forbidden(const char *s, size_t n, size_t *step)
{
    unsigned char c = (unsigned char)s[0];
    *step = 1;
    if (c >= 0x20 && c < 0x7f)
        return NULL;
    if (c < 0x20 || c == 0x7f)
        return c == '\n' || c == '\t' || c == '\r' ? NULL : c ? "control character" : "NUL byte";
    *step = utf8_step(s, n);
    if (!*step) {
        *step = 1;
        return "byte that is not UTF-8";
    }
    if (!memcmp(s, "\xe2\x80", 2) && (unsigned char)s[2] >= 0xaa && (unsigned char)s[2] <= 0xae)
        return "invisible mark that turns the reading direction";
    if (!memcmp(s, "\xe2\x81", 2) && (unsigned char)s[2] >= 0xa6 && (unsigned char)s[2] <= 0xa9)
        return "invisible mark that turns the reading direction";
    return NULL;
}

static void check_bytes(Lex *lx)
{
    const char *what = NULL;
    size_t at = 0, more = 0;
    for (size_t i = 0, step; i < lx->n; i += step) {
        const char *bad = forbidden(lx->text + i, lx->n - i, &step);
        if (bad && !what) {
            what = bad;
            at = i;
        } else if (bad) {
            more++;
        }
    }
    if (!what)
        return;
    Span span = {lx->file, (uint32_t)at, (uint32_t)at + 1};
    Diag *d =
        diag_error(lx->ctx, "E0004", span, "here", "%s at offset %zu (0x%02x)", what, at, (unsigned char)lx->text[at]);
    if (more)
        diag_note(lx->ctx, d, "and %zu more such bytes", more);
    if (strstr(what, "UTF-8") || strstr(what, "NUL"))
        diag_help(lx->ctx, d, "save the file as UTF-8 text");
    else
        diag_help(lx->ctx, d, "delete it; in a string write `\\n` or `\\t`");
    lx->stopped = lx->muted = true;
}

void lex_open(Lex *lx, Ctx *ctx, Arena *arena, uint32_t file, Comments *comments)
{
    size_t n;
    memset(lx, 0, sizeof *lx);
    lx->ctx = ctx;
    lx->arena = arena;
    lx->file = file;
    lx->text = source_text(ctx, file, &n);
    lx->comments = comments;
    lx->last.kind = T_SEP;
    lx->close_next = UINT32_MAX;
    if (n > TEXT_LIMIT) {
        lex_limit(lx, (Span){file, 0, 0}, "bytes of text", TEXT_LIMIT);
        n = 0;
    }
    lx->n = (uint32_t)n;
    check_bytes(lx);
    if (lx->stopped)
        lx->n = 0;
    /* a byte order mark is passed over */
    uint32_t skip = lx->n >= 3 && !memcmp(lx->text, "\xef\xbb\xbf", 3) ? 3 : 0;
    char *copy = arena_alloc(arena, lx->n - skip + 2);
    memcpy(copy, lx->text + skip, lx->n - skip);
    lx->lo = lx->hi = skip;
    if (raw_init(lx, copy, lx->n - skip + 2))
        vwn_bug(ctx, "the scanner did not start");
}

int lex_raw(Lex *lx)
{
    lx->value = NULL;
    int token = raw_token(lx, lx->scanner);
    if (token == 0)
        lx->lo = lx->hi = lx->n;
    return token;
}

/* Something is wrong with this item already. */
static bool quiet(const Lex *lx) { return lx->muted || lx->muted_next; }

/* Newlines separate items here. */
static bool in_braces(const Lex *lx) { return lx->depth == 0 || lx->open[lx->depth - 1].kind == T_LBRACE; }

/* A piece of text is passed over: no further complaint about the item it belongs to. */
static void mute(Lex *lx)
{
    if (lx->newline && in_braces(lx))
        lx->muted_next = true;
    else
        lx->muted = true;
}

/* The same, for what has just been scanned. */
bool lex_quiet(const Lex *lx) { return lx->muted_next || (lx->muted && !(lx->newline && in_braces(lx))); }

/* ---- the scanner's longer actions ---- */

/* Whether plain digits name an integer that a double holds exactly. */
static bool exact_integer(const char *s)
{
    uint64_t v = 0;
    for (; *s; s++) {
        if (*s == '_')
            continue;
        if (*s < '0' || *s > '9')
            return true; /* a fraction or a suffix: not our business */
        if (v > (UINT64_MAX - 9) / 10)
            return false;
        v = v * 10 + (uint64_t)(*s - '0');
    }
    return v <= (uint64_t)1 << 53 || (v < UINT64_MAX - 4096 && (uint64_t)(double)v == v);
}

int lex_number(Lex *lx, const char *s, size_t n)
{
    Span at = {lx->file, lx->lo, lx->lo + (uint32_t)n};
    if (n > NUMBER_LIMIT) {
        diag_error(lx->ctx, "E0007", at, "too long", "a number has at most %d characters", NUMBER_LIMIT);
        s = "1";
        n = 1;
    }
    lx->value = name_of(lx->ctx, s, n);
    Ast number = {.kind = AST_NUM, .name = lx->value};
    AstNumber v = ast_number(lx->ctx, &number);
    bool zero = strspn(lx->value, "0_.") >= strcspn(lx->value, "eEkMBTKGdL%");
    const char *why = NULL;
    if (!isfinite(v.value))
        why = "larger than 1.8e308";
    else if (v.value == 0 ? !zero : v.value < 2.2250738585072014e-308)
        why = "closer to zero than 2.3e-308";
    else if (!exact_integer(lx->value))
        why = "an integer of this size would be rounded";
    if (why)
        diag_error(lx->ctx, "E0007", at, why, "number out of range");
    return T_NUMBER;
}

/* The length of the plain number at the start. */
static size_t digits_of(const char *s)
{
    char plain[NUMBER_LIMIT + 1];
    size_t k = 0, n;
    while (k < NUMBER_LIMIT &&
           ((s[k] >= '0' && s[k] <= '9') || s[k] == '.' || s[k] == '_' || s[k] == 'e' || s[k] == 'E'))
        k++;
    for (n = 0; n < k; n++)
        plain[n] = s[n] == '_' ? '0' : s[n];
    plain[n] = 0;
    char *end;
    strtod(plain, &end);
    n = (size_t)(end - plain);
    while (n > 1 && s[n - 1] == '_')
        n--;
    return n;
}

static const char *meant_suffix(const char *suffix)
{
    static const char *const pairs[][2] = {{"K", "k"},   {"m", "M"},   {"b", "B"},  {"t", "T"},
                                           {"G", "B"},   {"ki", "Ki"}, {"KB", "k"}, {"mi", "Mi"},
                                           {"gi", "Gi"}, {"l", "L"},   {"f", ""}};
    for (size_t i = 0; i < COUNT_OF(pairs); i++)
        if (!strcmp(suffix, pairs[i][0]))
            return pairs[i][1];
    return NULL;
}

int lex_bad_number(Lex *lx, const char *s, size_t n)
{
    if (n > NAME_LIMIT)
        n = NAME_LIMIT;
    size_t k = digits_of(s);
    const char *number = name_of(lx->ctx, s, k);
    const char *unit = name_of(lx->ctx, s + k, n - k);
    Span at = raw_span(lx);
    if (k == 1 && *s == '0' && (s[1] | 32) == 'x' && n > 2 && strspn(s + 2, "0123456789abcdefABCDEF_") == n - 2)
        return lex_hexadecimal(lx, s, n);
    bool word = ast_unit(unit, n - k) != NULL;
    Diag *d = diag_error(lx->ctx, "E0002", at,
                         word ? "a unit word needs a space before it" : "a number and a name without an operator",
                         "unknown unit `%s` in `%s%s`", unit, number, unit);
    if (word) {
        diag_fix(lx->ctx, d, at, name_printf(lx->ctx, "%s %s", number, unit), FIX_CERTAIN, "write `%s %s`", number,
                 unit);
    } else {
        diag_note(lx->ctx, d,
                  "units are k M B T, Ki Mi Gi, %%, d (times the base width) and L (times the "
                  "number of layers)");
        const char *meant = unit[strspn(unit, "_")] ? meant_suffix(unit) : "";
        if (meant)
            diag_fix(lx->ctx, d, at, name_printf(lx->ctx, "%s%s", number, meant), FIX_MAYBE, "did you mean `%s%s`?",
                     number, meant);
        else
            diag_fix(lx->ctx, d, at, name_printf(lx->ctx, "%s * %s", number, unit), FIX_MAYBE,
                     "to multiply, write `%s * %s`", number, unit);
    }
    lx->value = number;
    return T_NUMBER;
}

int lex_name(Lex *lx, const char *s, size_t n)
{
    if (n > NAME_LIMIT) {
        diag_error(lx->ctx, "E0007", raw_span(lx), "too long", "a name has at most %d bytes", NAME_LIMIT);
        n = NAME_LIMIT;
    }
    lx->value = name_of(lx->ctx, s, n);
    return T_IDENT;
}

/* After a string that never ended, the brackets of its line whose closers it swallowed are
 * closed without a further word. */
static void heal_line(Lex *lx, const char *swallowed, size_t n)
{
    uint32_t line = lx->lo;
    while (line > 0 && lx->text[line - 1] != '\n')
        line--;
    uint32_t keep = lx->depth;
    while (keep > 0 && lx->open[keep - 1].at >= line) {
        int kind = lx->open[keep - 1].kind;
        char closer = kind == T_LPAREN ? ')' : kind == T_LBRACKET ? ']' : '}';
        if (!memchr(swallowed, closer, n))
            break;
        keep--;
    }
    if (keep < lx->depth)
        lx->close_next = keep;
    lx->muted_next = true;
}

static void bad_escape(Lex *lx, uint32_t at, const char *s, size_t n)
{
    size_t step = utf8_step(s, n);
    Span span = {lx->file, at, at + 1 + (uint32_t)(step ? step : 1)};
    Diag *d = diag_error(lx->ctx, "E0005", span, "unknown escape", "unknown escape `\\%.*s` in a string",
                         (int)(step ? step : 1), s);
    diag_note(lx->ctx, d, "a string knows \\\" \\\\ \\n and \\t");
    diag_help(lx->ctx, d, "to write a backslash, double it: `\\\\`");
}

int lex_string(Lex *lx, const char *s, size_t n, bool closed)
{
    size_t end = closed ? n - 1 : n;
    while (!closed && end > 1 && (s[end - 1] == '\r' || s[end - 1] == ' ' || s[end - 1] == '\t'))
        end--;
    if (!closed) {
        Span at = {lx->file, lx->lo,
                   lx->lo + (uint32_t)end}; /* without blanks at its end, which the scanner has passed, too */
        Diag *d = diag_error(lx->ctx, "E0003", at, "no closing quote on this line", "string is not closed");
        diag_help(lx->ctx, d, "strings end on the line they start; a line break is written `\\n`");
    }
    Buf b = buf_new(lx->arena);
    for (size_t i = 1; i < end; i++) {
        if (s[i] != '\\') {
            buf_putc(&b, s[i]);
            continue;
        }
        i++;
        if (i < end && (s[i] == '"' || s[i] == '\\'))
            buf_putc(&b, s[i]);
        else if (i < end && (s[i] == 'n' || s[i] == 't'))
            buf_putc(&b, s[i] == 'n' ? '\n' : '\t');
        else if (i < end)
            bad_escape(lx, lx->lo + (uint32_t)i - 1, s + i, end - i);
    }
    lx->value = name_of(lx->ctx, b.s, b.n);
    if (!closed)
        heal_line(lx, s, end);
    return T_STRING;
}

/* Characters that look like one of the language's. */
static const struct {
    const char *bytes, *plain;
    int token;
} lookalikes[] = {
    {"\xc3\x97", "*", T_STAR},      {"\xe2\x88\x92", "-", T_MINUS},
    {"\xe2\x80\x93", "-", T_MINUS}, {"\xe2\x80\x94", "-", T_MINUS},
    {"\xe2\x89\xa4", "<=", T_LE},   {"\xe2\x89\xa5", ">=", T_GE},
    {"\xe2\x89\xa0", "!=", T_NE},   {"\xe2\x86\x92", "->", T_ARROW},
    {"\xc2\xb7", "*", T_STAR},      {"\xe2\x80\xa6", "..", T_DOTDOT},
    {"\xc3\xb7", "/", T_SLASH},     {"\xe2\x80\x9c", "\"", 0},
    {"\xe2\x80\x9d", "\"", 0},      {"\xe2\x80\x98", "\"", 0},
    {"\xe2\x80\x99", "\"", 0},      {"\xc2\xa0", " ", 0},
};

static Diag *unknown_character(Lex *lx, Span at, const char *s, size_t n, const char *rest)
{
    return diag_error(lx->ctx, "E0004", at, "no token starts with it", "unknown character `%.*s`%s", (int)n, s, rest);
}

static int odd_ascii(Lex *lx, char c)
{
    if (lex_quiet(lx))
        return 0;
    Diag *d = unknown_character(lx, raw_span(lx), &c, 1, "");
    if (c == '\'')
        diag_help(lx->ctx, d, "strings are written with `\"`");
    if (c == '?')
        diag_help(lx->ctx, d, "a choice is `if condition then a else b`");
    if (c == '~')
        diag_help(lx->ctx, d, "write `not c`, and of a tensor `1 - c`");
    if (c == '$')
        diag_help(lx->ctx, d, "a let is read by its name: `let heads = 4`, then `heads`");
    if (c == '`' || c == '\\' || c == '$' || c == '?' || c == '~')
        diag_note(lx->ctx, d, "the language does not use this character outside strings");
    mute(lx);
    return 0;
}

int lex_odd(Lex *lx, const char *s, size_t n, size_t *used)
{
    *used = 1;
    if ((unsigned char)s[0] < 0x80 && n == 1)
        return odd_ascii(lx, s[0]);
    size_t at = 0;
    while (at < n && (unsigned char)s[at] < 0x80)
        at++;
    size_t step = utf8_step(s + at, n - at);
    Span place = {lx->file, lx->lo + (uint32_t)at, lx->lo + (uint32_t)(at + step)};
    for (size_t i = 0; i < COUNT_OF(lookalikes); i++) {
        if (strlen(lookalikes[i].bytes) != step || memcmp(s + at, lookalikes[i].bytes, step))
            continue;
        *used = at ? at : step;
        if (at) /* the name before it first; the character comes back in the next call */
            return lex_name(lx, s, at);
        const char *plain = lookalikes[i].plain;
        if (*plain == ' ')
            return lex_hard_blank(lx, place, s + at, n - at, used);
        if (!lex_quiet(lx))
            diag_fix(lx->ctx, unknown_character(lx, place, s, step, ""), place, plain,
                     lookalikes[i].token ? FIX_CERTAIN : FIX_MAYBE, "write `%s`", plain);
        if (!lookalikes[i].token)
            mute(lx);
        return lookalikes[i].token;
    }
    *used = n;
    const char *word = name_of(lx->ctx, s, n < NAME_LIMIT ? n : NAME_LIMIT);
    if (!lex_quiet(lx)) {
        Diag *d = unknown_character(lx, place, s + at, step, n > step ? " in a name" : "");
        if (n > step)
            diag_note(lx->ctx, d, "names have the letters A to Z, a to z, digits and `_`");
    }
    if (n == step) {
        mute(lx);
        return 0;
    }
    lx->value = word;
    return T_IDENT;
}

int lex_foreign(Lex *lx, const char *what, const char *help, const char *ours, int token)
{
    Span at = raw_span(lx);
    Diag *d = diag_error(lx->ctx, "E0004", at, "not an operator here", "unknown operator `%s`", what);
    if (!ours) {
        diag_help(lx->ctx, d, "%s", help);
        return token;
    }
    if (token == T_CARET && (lx->last.kind == T_LPAREN || lx->last.kind == T_COMMA)) { /* **kwargs */
        diag_help(lx->ctx, d, "each parameter has its name and its type, and each argument its name: `f(hidden = 64)`");
        lx->muted = true;
        return token;
    }
    uint32_t next = at.hi, end = at.lo;
    while (next < lx->n && lx->text[next] == ' ')
        next++;
    while (end > 0 && strchr(" \t", lx->text[end - 1]))
        end--;
    if (token == T_MOD && (next >= lx->n || strchr(",;)]}\n\r#", lx->text[next]))) { /* 10 % */
        diag_fix(lx->ctx, d, (Span){at.file, end, at.hi}, "%",
                 lx->last.kind == T_NUMBER && lx->last.span.hi == end && end < at.lo ? FIX_CERTAIN : FIX_MAYBE,
                 "a share is written without a blank, as in `10%%`");
        lx->muted = true;
        return token;
    }
    const Foreign *power = token == T_CARET && lx->last.kind == T_IDENT && !strcmp(lx->last.text, "relu")
                               ? foreign_next(FOREIGN_VALUE, "relu2", NULL)
                               : NULL;
    if (power) { /* relu ** 2: of a function, not of a number */
        diag_help(lx->ctx, d, "%s", power->text);
        return token;
    }
    bool word = (ours[0] | 32) >= 'a' && (ours[0] | 32) <= 'z'; /* with blanks on both sides */
    bool before = word && at.lo > 0 && !strchr(" \t\n", lx->text[at.lo - 1]);
    bool after = word && at.hi < lx->n && !strchr(" \t\n", lx->text[at.hi]);
    diag_fix(lx->ctx, d, at, name_printf(lx->ctx, "%s%s%s", before ? " " : "", ours, after ? " " : ""), FIX_CERTAIN,
             "%s", help);
    return token;
}

/* ---- brackets ---- */

static bool is_opener(int kind) { return kind == T_LPAREN || kind == T_LBRACKET || kind == T_LBRACE; }

static bool is_closer(int kind) { return kind == T_RPAREN || kind == T_RBRACKET || kind == T_RBRACE; }

static int closer_of(int opener)
{
    return opener == T_LPAREN ? T_RPAREN : opener == T_LBRACKET ? T_RBRACKET : T_RBRACE;
}

static char letter_of(int kind)
{
    return kind == T_LPAREN     ? '('
           : kind == T_RPAREN   ? ')'
           : kind == T_LBRACKET ? '['
           : kind == T_RBRACKET ? ']'
           : kind == T_LBRACE   ? '{'
                                : '}';
}

uint32_t lex_indent(const Lex *lx, uint32_t at, bool *first)
{
    uint32_t line = at;
    while (line > 0 && at - line < 4096 && lx->text[line - 1] != '\n')
        line--;
    uint32_t i = line;
    while (i < at && (lx->text[i] == ' ' || lx->text[i] == '\t'))
        i++;
    if (first)
        *first = i == at;
    return i - line;
}

/* Nothing but blanks and a comment up to the end of the line. */
static bool ends_line(const Lex *lx, uint32_t at)
{
    while (at < lx->n && (lx->text[at] == ' ' || lx->text[at] == '\t' || lx->text[at] == '\r'))
        at++;
    return at >= lx->n || lx->text[at] == '\n' || lx->text[at] == '#';
}

static void report_unclosed(Lex *lx, uint32_t index, Span found)
{
    const Bracket *b = &lx->open[index];
    Span at = {lx->file, b->at, b->at + 1};
    bool muted = quiet(lx);
    lx->muted = true;
    if (muted)
        return;
    Diag *d = diag_error(lx->ctx, "E0001", at, "opened here", "`%c` is never closed", letter_of(b->kind));
    if (found.file && found.lo < lx->n)
        diag_label(lx->ctx, d, found, "`%c` is missing before this", letter_of(closer_of(b->kind)));
}

/* The end of the file with brackets open. A `{` whose `}` has another indentation is the
 * likelier culprit than the outermost one, which is what is left over. */
static void report_open_at_end(Lex *lx)
{
    uint32_t index = lx->depth - 1;
    if (lx->open[index].kind != T_LBRACE || !lx->suspect || quiet(lx)) {
        report_unclosed(lx, index, NO_SPAN);
        return;
    }
    Span at = {lx->file, lx->suspect - 1, lx->suspect};
    Diag *d = diag_error(lx->ctx, "E0001", at, "opened here", "`{` is never closed");
    diag_note(lx->ctx, d,
              "the `}` that closes it has another indentation, so it was probably meant "
              "for an outer `{`");
    lx->muted = true;
}

/* How many brackets stay open when everything inside the innermost `{` is closed. */
static uint32_t brace_level(const Lex *lx)
{
    uint32_t k = lx->depth;
    while (k > 0 && lx->open[k - 1].kind != T_LBRACE)
        k--;
    return k;
}

/* A node inside an expression is passed over as a whole. */
static void skip_braces(Lex *lx)
{
    Span at = raw_span(lx);
    if (!quiet(lx)) {
        Diag *d = diag_error(lx->ctx, "E0001", at, "braces belong to nodes", "`{` cannot stand inside an expression");
        if (lx->last.kind == T_IDENT)
            diag_help(lx->ctx, d, "a configured block is written with parentheses: `%s(...)`", lx->last.text);
        else if (lx->item[0].kind == T_IDENT && !strcmp(lx->item[0].text, "param_groups"))
            diag_help(lx->ctx, d, "groups are nodes in the optimizer: `group \"*norm*\" { weight_decay = 0 }`");
        else
            diag_help(lx->ctx, d, "lists are written with `[` and `]`");
    }
    lx->muted = true;
    for (size_t open = 1; open > 0;) {
        int kind = lex_raw(lx);
        if (kind == 0)
            return;
        open += kind == T_LBRACE;
        open -= kind == T_RBRACE;
    }
}

/* True when the token is dealt with and the next one is wanted. */
static bool admit_opener(Lex *lx)
{
    if (lx->raw.kind == T_LBRACE && !in_braces(lx)) {
        if (!ends_line(lx, lx->hi)) {
            skip_braces(lx);
            return true;
        }
        report_unclosed(lx, lx->depth - 1, lx->raw.span);
        lx->close_to = brace_level(lx);
    }
    if (lx->close_to >= NESTING_LIMIT) {
        lex_limit(lx, lx->raw.span, "nesting", NESTING_LIMIT);
        lx->raw.kind = 0;
    }
    return false;
}

/* `{ heads = 4 ]` on one line, with nothing behind it: a mistyped `}`. */
static bool closes_line(const Lex *lx)
{
    uint32_t at = lx->open[lx->depth - 1].at;
    return lx->hi - at < 4096 && !memchr(lx->text + at, '\n', lx->hi - at) && ends_line(lx, lx->hi);
}

static bool admit_closer(Lex *lx)
{
    int top = lx->depth ? lx->open[lx->depth - 1].kind : 0;
    if (top && lx->raw.kind == closer_of(top))
        return false;
    /* an opener of this kind further out, not hidden by a brace: what is inside was not closed
     */
    for (uint32_t k = lx->depth; k-- > 0;) {
        if (lx->raw.kind == closer_of(lx->open[k].kind)) {
            report_unclosed(lx, lx->depth - 1, lx->raw.span);
            lx->close_to = k + 1;
            return false;
        }
        if (lx->open[k].kind == T_LBRACE)
            break;
    }
    char found = letter_of(lx->raw.kind);
    if (top && (top != T_LBRACE || closes_line(lx))) {
        Span opened = {lx->file, lx->open[lx->depth - 1].at, lx->open[lx->depth - 1].at + 1};
        char right = letter_of(closer_of(top));
        Diag *d = lex_quiet(lx)
                      ? NULL
                      : diag_error(lx->ctx, "E0001", lx->raw.span, "", "expected `%c`, found `%c`", right, found);
        if (d)
            diag_label(lx->ctx, d, opened, "opened here");
        lx->raw.kind = closer_of(top);
        lx->muted = true;
        return false;
    }
    if (!lex_quiet(lx))
        diag_error(lx->ctx, "E0001", lx->raw.span, "nothing is open here that it could close", "stray `%c`", found);
    return true;
}

static bool starts_operand(int kind)
{
    switch (kind) {
    case T_IDENT:
    case T_NUMBER:
    case T_QUANTITY:
    case T_STRING:
    case T_BOOL: return true;
    default: return false;
    }
}

bool lex_ends_operand(int kind) { return starts_operand(kind) || kind == T_RPAREN || kind == T_RBRACKET; }

/* A line inside ( or [ that can only be the start of an item: the bracket above was forgotten.
 */
static void admit_line(Lex *lx)
{
    bool item = false;
    switch (lx->raw.kind) {
    case T_IMPORT:
    case T_LET:
    case T_PARAM:
    case T_BUFFER:
    case T_RETURN:
    case T_CHECK: item = true; break;
    case T_IDENT:
    case T_STRING: item = lex_ends_operand(lx->last.kind) && !ends_line(lx, lx->open[lx->depth - 1].at + 1); break;
    default: break;
    }
    if (!item)
        return;
    report_unclosed(lx, lx->depth - 1, lx->raw.span);
    lx->close_to = brace_level(lx);
}

/* Behind a header that ended with `:` what is indented more is its body, as in Python; so is an `else` of it, and a `}` that
 * nothing else opened. The token behind them. */
static int pass_suite(Lex *lx, int kind)
{
    uint32_t base = lx->suite - 1;
    uint32_t outer = lx->depth ? lx->open[lx->depth - 1].indent : UINT32_MAX;
    lx->suite = 0;
    for (bool first = true; kind; kind = lex_raw(lx)) {
        uint32_t indent = lex_indent(lx, lx->lo, &first);
        bool other = kind == T_ELSE || (kind == T_IDENT && !strcmp(lx->value, "elif"));
        bool closes = kind == T_RBRACE && (outer == UINT32_MAX || outer < base);
        if (first && indent <= base && !(indent == base && (other || closes)))
            break;
        if (first && indent == base && closes) {
            kind = lex_raw(lx);
            break;
        }
    }
    lx->newline = true;
    return kind;
}

/* Reads the next raw token and repairs the brackets around it. */
static void fetch(Lex *lx)
{
    lx->newline = false;
    for (;;) {
        lx->close_to = lx->depth;
        lx->have_raw = true;
        if (lx->split) {
            lx->split = false;
            lx->raw = (Token){T_MINUS, {lx->file, lx->hi - 1, lx->hi}, NULL};
            return;
        }
        int kind = lx->stopped ? 0 : lex_raw(lx);
        while (kind && lx->lo < lx->passed)
            kind = lex_raw(lx);
        if (lx->suite && lx->newline)
            kind = pass_suite(lx, kind);
        lx->raw = (Token){kind, raw_span(lx), lx->value};
        bool again = false;
        if (is_opener(kind))
            again = admit_opener(lx);
        else if (is_closer(kind))
            again = admit_closer(lx);
        else if (kind && lx->newline && !in_braces(lx))
            admit_line(lx);
        else if (!kind && lx->depth && !lx->stopped)
            report_open_at_end(lx);
        if (lx->stopped || !kind) {
            lx->raw = (Token){0, {lx->file, lx->n, lx->n}, NULL};
            lx->close_to = 0;
        }
        if (!again)
            return;
    }
}

/* ---- the newline rule ---- */

/* After one of these a newline can end the item (`=` too: a value starts on its line). */
static bool can_end(int kind)
{
    return lex_ends_operand(kind) || kind == T_RBRACE || kind == T_RETURN || kind == T_ASSIGN;
}

/* A line that starts with one of these continues the line before. */
static bool continues(int kind)
{
    switch (kind) {
    case T_PLUS:
    case T_MINUS:
    case T_STAR:
    case T_SLASH:
    case T_CARET:
    case T_AT:
    case T_DOT:
    case T_COMMA:
    case T_COLON:
    case T_ASSIGN:
    case T_LT:
    case T_GT:
    case T_EQ:
    case T_NE:
    case T_LE:
    case T_GE:
    case T_DOTDOT:
    case T_ARROW:
    case T_AND:
    case T_OR:
    case T_MOD:
    case T_THEN:
    case T_ELSE:
    case T_AS:
    case T_LPAREN:
    case T_LBRACKET:
    case T_LBRACE:
    case T_RPAREN:
    case T_RBRACKET: return true;
    default: return false;
    }
}

static Token hand_out(Lex *lx, Token t)
{
    if (is_opener(t.kind)) {
        lx->open[lx->depth++] = (Bracket){t.kind, t.span.lo, lex_indent(lx, t.span.lo, NULL)};
    } else if (is_closer(t.kind) && lx->depth) {
        const Bracket *b = &lx->open[--lx->depth];
        bool first;
        uint32_t indent = lex_indent(lx, t.span.lo, &first);
        if (t.kind == T_RBRACE && first && indent != b->indent && !lx->suspect)
            lx->suspect = b->at + 1;
    }
    lx->item_before = lx->item_tokens;
    if (t.kind == T_SEP || t.kind == T_LBRACE || t.kind == T_RBRACE)
        lx->item_tokens = 0;
    else if (lx->item_tokens < 2)
        lx->item[lx->item_tokens++] = t;
    lx->before_last = lx->last;
    return lx->last = t;
}

static Token separator(Lex *lx, bool by_newline)
{
    lx->by_newline = by_newline;
    return hand_out(lx, (Token){T_SEP, {lx->file, lx->last.span.hi, lx->last.span.hi}, NULL});
}

Token lex_next(Lex *lx)
{
    if ((lx->last.kind == T_SEP || lx->last.kind == T_LBRACE) && !lx->stopped)
        lx->muted = false;
    if (!lx->have_raw && lx->close_next < lx->depth) {
        lx->close_to = lx->close_next;
    } else if (!lx->have_raw) {
        lx->close_next = UINT32_MAX;
        fetch(lx);
    }
    bool blank = lx->last.kind == T_SEP || lx->last.kind == T_LBRACE;
    if (lx->depth > lx->close_to) {
        int closer = closer_of(lx->open[lx->depth - 1].kind);
        if (closer == T_RBRACE && !blank)
            return separator(lx, false);
        uint32_t at = lx->last.span.hi;
        return hand_out(lx, (Token){closer, {lx->file, at, at}, NULL});
    }
    int kind = lx->raw.kind;
    if (in_braces(lx)) {
        if (!blank && (kind == 0 || kind == T_RBRACE))
            return separator(lx, false);
        if (lx->newline && can_end(lx->last.kind) && !continues(kind))
            return separator(lx, true);
        if (kind == T_COMMA || kind == T_SEMICOLON) {
            lx->raw.kind = T_SEP;
            lx->by_newline = false;
        }
    }
    if (kind == T_SLASHDASH && lex_ends_operand(lx->last.kind)) {
        lx->split = true;
        lx->raw = (Token){T_SLASH, {lx->file, lx->raw.span.lo, lx->raw.span.lo + 1}, NULL};
    }
    lx->have_raw = false;
    lx->newline = false;
    Token t = hand_out(lx, lx->raw);
    lx->muted = lx->muted || lx->muted_next;
    lx->muted_next = false;
    return t;
}
