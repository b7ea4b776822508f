/* pattern.c - see pattern.h.
 *
 * The one idea: what tokenizers write is a small language, whose words mean the same everywhere once classes are written out. It is
 * read here word by word and written for PCRE2; what is no such word is an error, so that nothing means two things.
 */
#include "pattern.h"

#include "compiler/portable/utf8.h"
#include "unicode.h"

#include <stdio.h>

enum {
    PATTERN_MOST = 1 << 14,
    GROUPS_MOST = 64,
    REPEATS_MOST = 1000,
    MATCH_LIMIT = 10000000 /* steps of one match */
};
#define SPACES                                                                                                         \
    "\\x{9}-\\x{d}\\x{20}\\x{85}\\x{a0}\\x{1680}\\x{2000}-\\x{200a}\\x{2028}\\x{2029}\\x{202f}\\x{205f}\\x{3000}"
#define NOT_SPACES                                                                                                     \
    "\\x{0}-\\x{8}\\x{e}-\\x{1f}\\x{21}-\\x{84}\\x{86}-\\x{9f}\\x{a1}-\\x{167f}\\x{1681}-\\x{1fff}\\x{200b}-\\x{2027}" \
    "\\x{202a}-\\x{202e}\\x{2030}-\\x{205e}\\x{2060}-\\x{2fff}\\x{3001}-\\x{d7ff}\\x{e000}-\\x{10ffff}"

typedef struct PatternReading {
    PatternDialect dialect;
    const char *text;
    size_t n, at;
    Buf *out;
    char *why;
    int depth;
    bool folds[GROUPS_MOST]; /* groups that ignore case */
    bool atom;               /* something stands before that can be repeated */
} PatternReading;

static bool wrong(PatternReading *r, size_t at, const char *what)
{
    size_t n = r->n - at < 12 ? r->n - at : 12;
    while (n && at + n < r->n && ((unsigned char)r->text[at + n] & 0xc0) == 0x80)
        n--;
    snprintf(r->why, WHY, "byte %zu of the pattern, `%.*s`: %s", at, (int)n, r->text + at, what);
    return false;
}

static int peek(const PatternReading *r, size_t ahead)
{
    return r->at + ahead < r->n ? (unsigned char)r->text[r->at + ahead] : -1;
}

static bool is_digit(int c) { return c >= '0' && c <= '9'; }

/* \x41, \x{41}, \u0041, \u{41}: behind the letter. */
static bool read_code(PatternReading *r, size_t start, int letter)
{
    bool braces = peek(r, 0) == '{';
    size_t most = braces ? 6 : letter == 'x' ? 2 : 4, digits = 0;
    uint32_t code = 0;
    r->at += braces;
    for (; digits < most; digits++, r->at++) {
        int c = peek(r, 0), d = is_digit(c) ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
        if (d < 0)
            break;
        code = code << 4 | (uint32_t)d;
    }
    if (!digits || (!braces && digits < most) || (braces && peek(r, 0) != '}'))
        return wrong(r, start, "this is no character by its number");
    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ||
        (r->dialect == DIALECT_ONIGURUMA && letter == 'x' && !braces && code > 127))
        return wrong(r, start, "this is no character");
    r->at += braces;
    buf_printf(r->out, "\\x{%x}", (unsigned)code);
    return true;
}

/* \p{L}, \pL, in or outside of a class. */
static bool read_category(PatternReading *r, size_t start, bool in_class)
{
    bool negative = r->text[r->at - 1] == 'P';
    const char *name = r->text + r->at;
    size_t n = 1;
    if (peek(r, 0) == '{') {
        const char *end = memchr(name, '}', r->n - r->at);
        if (!end)
            return wrong(r, start, "`}` is missing");
        name++;
        n = (size_t)(end - name);
        r->at += n + 2;
    } else {
        r->at += r->at < r->n;
    }
    if (!unicode_category(name, n))
        return wrong(r, start,
                     "this class of characters is not read, only general categories such as \\p{L} or \\p{Lu}");
    if (r->folds[r->depth])
        return wrong(r, start, "a category where case is ignored is not read");
    if (in_class && negative)
        return wrong(r, start, "a category that is negated inside of brackets is not read");
    if (!in_class)
        buf_puts(r->out, negative ? "[^" : "[");
    buf_printf(r->out, "\\p{%.*s}", (int)n, name);
    unicode_newer(name, n, r->out);
    if (!in_class)
        buf_putc(r->out, ']');
    return true;
}

/* At a backslash. */
static bool read_escape(PatternReading *r, bool in_class)
{
    static const char plain[] = "nrtf", code[] = "\n\r\t\f";
    size_t start = r->at++;
    int c = peek(r, 0);
    if (c < 0)
        return wrong(r, start, "the pattern ends here");
    r->at++;
    const char *known = strchr(plain, c);
    if (c && known)
        buf_printf(r->out, "\\x{%x}", (unsigned)code[known - plain]);
    else if (c == 'v')
        buf_puts(r->out, "\\x{b}");
    else if (c == 'x' || c == 'u')
        return read_code(r, start, c);
    else if (c == 'p' || c == 'P')
        return read_category(r, start, in_class);
    else if (c == 's')
        buf_puts(r->out, in_class ? SPACES : "[" SPACES "]");
    else if (c == 'S')
        buf_puts(r->out, in_class ? NOT_SPACES : "[^" SPACES "]");
    else if (c == 'd' || (c == 'D' && !in_class)) {
        buf_puts(r->out, in_class ? "\\p{Nd}" : c == 'd' ? "[\\p{Nd}" : "[^\\p{Nd}");
        unicode_newer("Nd", 2, r->out);
        buf_puts(r->out, in_class ? "" : "]");
    } else if (!in_class && (c == 'A' || c == 'z')) {
        buf_printf(r->out, "\\%c", c);
    } else if (c < 128 && c > 32 && !is_digit(c) && !((c | 32) >= 'a' && (c | 32) <= 'z')) {
        buf_printf(r->out, "\\%c", c);
    } else {
        return wrong(r, start, "this escape is not read");
    }
    return true;
}

/* One character as it is. */
static bool read_plain(PatternReading *r)
{
    uint32_t c;
    size_t n = utf8_read(r->text + r->at, r->n - r->at, &c);
    if (!n)
        return wrong(r, r->at, "not UTF-8");
    if (c < 32)
        buf_printf(r->out, "\\x{%x}", (unsigned)c);
    else
        buf_put(r->out, r->text + r->at, n);
    r->at += n;
    return true;
}

/* At `[`. */
static bool read_class(PatternReading *r)
{
    size_t start = r->at++;
    buf_putc(r->out, '[');
    if (peek(r, 0) == '^') {
        buf_putc(r->out, '^');
        r->at++;
    }
    for (size_t first = r->at;;) {
        int c = peek(r, 0), next = peek(r, 1);
        if (c < 0)
            return wrong(r, start, "`]` is missing");
        if (c == ']' && r->at > first)
            break;
        if (c == ']' || c == '[')
            return wrong(r, r->at, "brackets within brackets are not read");
        if ((c == '&' || c == '-' || c == '~') && c == next)
            return wrong(r, r->at, "sets of classes are not read");
        if (c == '\\' ? !read_escape(r, true) : !read_plain(r))
            return false;
    }
    r->at++;
    buf_putc(r->out, ']');
    return true;
}

/* At `(`. */
static bool read_group(PatternReading *r)
{
    static const struct {
        const char *in, *out;
        bool folds, both;
    } kinds[] = {{"?:", "?:", false, true}, {"?i:", "?i:", true, true},  {"?=", "?=", false, true},
                 {"?!", "?!", false, true}, {"?<=", "?<=", false, true}, {"?<!", "?<!", false, true},
                 {"?>", "?>", false, true}};
    size_t start = r->at++;
    if (++r->depth == GROUPS_MOST)
        return wrong(r, start, "groups are nested too deeply");
    r->folds[r->depth] = r->folds[r->depth - 1];
    r->atom = false;
    if (peek(r, 0) != '?') {
        buf_puts(r->out, "(?:");
        return true;
    }
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        size_t n = strlen(kinds[i].in);
        if (r->n - r->at < n || memcmp(r->text + r->at, kinds[i].in, n) != 0)
            continue;
        r->folds[r->depth] |= kinds[i].folds;
        buf_printf(r->out, "(%s", kinds[i].out);
        r->at += n;
        return true;
    }
    return wrong(r, start, "a group of this kind is not read");
}

/* At `{`: how often. */
static bool read_times(PatternReading *r)
{
    size_t start = r->at++;
    unsigned number[2] = {0, 0};
    int n = 0;
    bool comma = false;
    buf_putc(r->out, '{');
    for (; n < 2; n++) {
        size_t digits = 0;
        for (; is_digit(peek(r, 0)) && digits < 5; digits++)
            number[n] = number[n] * 10 + (unsigned)(r->text[r->at++] - '0');
        if ((!digits && n == 0) || number[n] > REPEATS_MOST)
            return wrong(r, start, "this is no number of repeats up to 1,000");
        if (digits)
            buf_printf(r->out, "%u", number[n]);
        if (comma || peek(r, 0) != ',')
            break;
        comma = true;
        buf_putc(r->out, ',');
        r->at++;
    }
    if (peek(r, 0) != '}')
        return wrong(r, start, "`}` is missing");
    r->at++;
    buf_putc(r->out, '}');
    if (r->dialect == DIALECT_ONIGURUMA && (peek(r, 0) == '+' || peek(r, 0) == '?'))
        return wrong(r, start, "what follows these repeats means another thing elsewhere, and is not read");
    return true;
}

static bool read_repeat(PatternReading *r)
{
    size_t start = r->at;
    if (!r->atom)
        return wrong(r, start, "there is nothing to repeat");
    if (peek(r, 0) == '{') {
        if (!read_times(r))
            return false;
    } else {
        buf_putc(r->out, r->text[r->at++]);
    }
    int c = peek(r, 0);
    if (c == '+' || c == '?') {
        buf_putc(r->out, (char)c);
        r->at++;
    }
    r->atom = false;
    return true;
}

static bool read_end_of_line(PatternReading *r)
{
    if (r->dialect == DIALECT_ONIGURUMA)
        return wrong(r, r->at, "ends of lines are not read");
    buf_puts(r->out, r->text[r->at++] == '^' ? "\\A" : "\\z");
    return true;
}

bool pattern_translate(PatternDialect dialect, const char *text, size_t n, Buf *out, char why[WHY])
{
    PatternReading r = {.dialect = dialect, .text = text, .n = n, .out = out, .why = why};
    if (n > PATTERN_MOST) {
        snprintf(why, WHY, "the pattern has %zu bytes, more than %d", n, PATTERN_MOST);
        return false;
    }
    while (r.at < n) {
        char c = text[r.at];
        bool fine = true, atom = true;
        if (c == '*' || c == '+' || c == '?' || c == '{') {
            if (!read_repeat(&r))
                return false;
            continue;
        }
        if (c == '(') {
            fine = read_group(&r);
            atom = false;
        } else if (c == ')') {
            if (r.depth-- == 0)
                return wrong(&r, r.at, "`(` is missing");
            buf_putc(out, c);
            r.at++;
        } else if (c == '|') {
            buf_putc(out, c);
            r.at++;
            atom = false;
        } else if (c == '^' || c == '$') {
            fine = read_end_of_line(&r);
            atom = r.dialect == DIALECT_FANCY; /* `\s++$` is no repeat, `$+` stays one */
        } else if (c == '.') {
            buf_puts(out, "[^\\n]");
            r.at++;
        } else if (c == '[') {
            fine = read_class(&r);
        } else if (c == '\\') {
            fine = read_escape(&r, false);
        } else if (c == ']' || c == '}') {
            fine = wrong(&r, r.at, "this bracket closes nothing");
        } else {
            fine = read_plain(&r);
        }
        if (!fine)
            return false;
        r.atom = atom;
    }
    return !r.depth || wrong(&r, n, "`)` is missing");
}

static void close_pattern(void *what)
{
    TextPattern *p = what;
    if (p->code)
        p->library->code_free(p->code);
    if (p->limits)
        p->library->match_context_free(p->limits);
}

bool pattern_open(Session *s, const Pcre2 *library, PatternDialect dialect, const char *text, size_t n,
                  TextPattern *out, char why[WHY])
{
    ArenaMark mark = arena_mark(s->ctx->scratch);
    Buf b = buf_new(s->ctx->scratch);
    bool fine = pattern_translate(dialect, text, n, &b, why);
    *out = (TextPattern){.library = library};
    if (fine) {
        TextPattern *own = NEW(s->arena, TextPattern);
        int error = 0;
        size_t at = 0;
        void *how = library->context_create(NULL);
        if (how)
            library->set_newline(how, PCRE2_NEWLINE_LF);
        out->code = how ? library->compile((const unsigned char *)b.s, b.n, PCRE2_UTF | PCRE2_NEVER_BACKSLASH_C, &error,
                                           &at, how)
                        : NULL;
        if (how)
            library->context_free(how);
        out->limits = library->match_context_create(NULL);
        *own = *out;
        session_defer(s, close_pattern, own);
        if (!out->code || !out->limits) {
            unsigned char text_of[160] = "no memory";
            if (error)
                library->message(error, text_of, sizeof text_of);
            snprintf(why, WHY, "the pattern cannot be compiled: %.150s", text_of);
            fine = false;
        } else {
            library->set_match_limit(out->limits, MATCH_LIMIT);
            library->set_depth_limit(out->limits, MATCH_LIMIT);
            out->jit = library->jit_compile(out->code, PCRE2_JIT_COMPLETE) == 0;
        }
    }
    arena_reset(s->ctx->scratch, mark);
    return fine;
}

int pattern_next(const TextPattern *p, void *data, const char *text, size_t n, size_t at, size_t *from, size_t *to,
                 char why[WHY])
{
    const unsigned char *u = (const unsigned char *)text;
    int r = p->jit ? p->library->jit_match(p->code, u, n, at, PCRE2_NO_UTF_CHECK, data, p->limits)
                   : PCRE2_JIT_STACK_IS_FULL;
    if (r == PCRE2_JIT_STACK_IS_FULL) /* it is small; the other way takes what it needs */
        r = p->library->match(p->code, u, n, at, PCRE2_NO_UTF_CHECK | PCRE2_NO_JIT, data, p->limits);
    if (r >= 0) {
        const size_t *ends = p->library->ovector(data);
        *from = ends[0];
        *to = ends[1];
        return 1;
    }
    if (r == PCRE2_NO_MATCH)
        return 0;
    unsigned char what[160] = "";
    p->library->message(r, what, sizeof what);
    snprintf(why, WHY, "the pattern gives up at byte %zu of a text: %.150s", at, what);
    return -1;
}
