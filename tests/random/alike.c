/* alike.c - see generate.h: texts of the same kind as a valid one, most of them valid.
 *
 * The one idea: an edit looks at tokens and lines and does what a person may do without thinking: move a line beside its like,
 * repeat it, put it in a loop, rename, write a number in another way, or set an attribute to a value of the kind it has.
 */
#include "generate.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

typedef struct Line {
    Piece at;
    size_t indent;
    bool whole; /* brackets that it opens it closes */
} Line;
typedef struct Lines {
    Line *v;
    size_t n;
} Lines;

static char *copied(Arena *arena, const char *text, Piece p) { return arena_copy(arena, text + p.from, p.to - p.from); }

static Lines lines_of(Arena *arena, const char *s)
{
    VEC(Line) all = {0};
    for (size_t i = 0; s[i]; i += strcspn(s + i, "\n"), i += s[i] == '\n') {
        Line l = {.at = {i, i + strcspn(s + i, "\n")}, .whole = true};
        int depth = 0;
        for (size_t k = i; k < l.at.to; k++) {
            depth += strchr("([{", s[k]) != NULL;
            depth -= strchr(")]}", s[k]) != NULL;
            l.whole = l.whole && depth >= 0 && s[k] != '#' && s[k] != '"';
        }
        l.whole = l.whole && depth == 0;
        l.indent = strspn(s + i, " ");
        vec_push(arena, &all, l);
    }
    return (Lines){all.v, all.n};
}

static bool begins(const char *s, const Line *l, const char *word)
{
    size_t n = strlen(word), at = l->at.from + l->indent;
    return strncmp(s + at, word, n) == 0 && !isalnum((unsigned char)s[at + n]) && s[at + n] != '_';
}

/* A sublayer with a label, on a line of its own. */
static bool is_sublayer(const char *s, const Line *l)
{
    static const char *const words[] = {"attention", "ffn", "moe", "own0", "own1", "own2", "linear"};
    for (size_t i = 0; l->whole && i < sizeof words / sizeof *words; i++)
        if (begins(s, l, words[i]) && l->indent > 0 && memchr(s + l->at.from, '{', l->at.to - l->at.from))
            return true;
    return false;
}

static const Line *any_line(Writer *w, const char *s, Lines all, bool (*fits)(const char *, const Line *),
                            const Line *beside)
{
    for (int i = 0; i < 200 && all.n; i++) {
        const Line *l = &all.v[roll(w, (uint32_t)all.n)];
        if (l != beside && fits(s, l) && (!beside || l->indent == beside->indent))
            return l;
    }
    return NULL;
}

/* What stands at two places, the other way round. */
static char *swapped(Arena *arena, const char *s, Piece a, Piece b)
{
    if (a.from > b.from) {
        Piece c = a;
        a = b;
        b = c;
    }
    if (a.to > b.from)
        return NULL;
    return arena_printf(arena, "%.*s%.*s%.*s%.*s%s", (int)a.from, s, (int)(b.to - b.from), s + b.from,
                        (int)(b.from - a.to), s + a.to, (int)(a.to - a.from), s + a.from, s + b.to);
}

/* ---- edits; each returns NULL where there is nothing for it ---- */

static char *swap_sublayers(Writer *w, Arena *arena, const char *s)
{
    Lines all = lines_of(arena, s);
    const Line *a = any_line(w, s, all, is_sublayer, NULL), *b = a ? any_line(w, s, all, is_sublayer, a) : NULL;
    return b ? swapped(arena, s, a->at, b->at) : NULL;
}

/* The line again, under another label. */
static char *repeat_sublayer(Writer *w, Arena *arena, const char *s)
{
    const Line *l = any_line(w, s, lines_of(arena, s), is_sublayer, NULL);
    if (!l)
        return NULL;
    const char *line = copied(arena, s, l->at), *brace = strchr(line, '{');
    size_t word = l->indent + strcspn(line + l->indent, " {");
    return text_replaced(arena, s, (Piece){l->at.to, l->at.to},
                         arena_printf(arena, "\n%.*s again%d %s", (int)word, line, (int)roll(w, 1000), brace));
}

static char *wrap_sublayer(Writer *w, Arena *arena, const char *s)
{
    const Line *l = any_line(w, s, lines_of(arena, s), is_sublayer, NULL);
    static const char *const how[] = {"for again in 1..2 { %s }", "if 2 > 1 { %s }", "for again in [3, 1] { %s }",
                                      "if 1 > 2 { } else { %s }"};
    return l ? text_replaced(arena, s, l->at, arena_printf(arena, ANY(w, how), copied(arena, s, l->at))) : NULL;
}

static bool is_item(const char *s, const Line *l)
{
    return l->whole && l->indent == 0 && (begins(s, l, "let") || begins(s, l, "check"));
}

static char *swap_items(Writer *w, Arena *arena, const char *s)
{
    Lines all = lines_of(arena, s);
    const Line *a = any_line(w, s, all, is_item, NULL), *b = a ? any_line(w, s, all, is_item, a) : NULL;
    return b ? swapped(arena, s, a->at, b->at) : NULL;
}

/* A name that the file gives, everywhere. */
static char *rename_all(Writer *w, Arena *arena, const char *s)
{
    static const char *const gives[] = {"let", "block", "param", "for"};
    Piece *t;
    size_t n = text_tokens(arena, s, &t);
    const char *name = NULL;
    for (int i = 0; i < 300 && !name && n > 1; i++) {
        size_t k = roll(w, (uint32_t)n - 1);
        const char *word = copied(arena, s, t[k]), *next = copied(arena, s, t[k + 1]);
        for (size_t g = 0; g < sizeof gives / sizeof *gives; g++)
            if (strcmp(word, gives[g]) == 0 && isalpha((unsigned char)*next))
                name = next;
    }
    if (!name)
        return NULL;
    Buf b = buf_new(arena);
    size_t from = 0;
    for (size_t i = 0; i < n; i++)
        if (t[i].to - t[i].from == strlen(name) && memcmp(s + t[i].from, name, strlen(name)) == 0) {
            const char *before = s + t[i].from;
            while (before > s && before[-1] == ' ')
                before--;
            bool set = i + 1 < n && s[t[i + 1].from] == '=' && s[t[i + 1].to] != '=' && before > s &&
                       strchr("(,{\n", before[-1]);
            buf_put(&b, s + from, t[i].from - from);
            buf_printf(&b, set ? "%s" : "%s_", name); /* an attribute or an argument keeps its name */
            from = t[i].to;
        }
    buf_puts(&b, s + from);
    return b.s;
}

/* A number as an expression, or with another look. */
static char *rewrite_number(Writer *w, Arena *arena, const char *s)
{
    static const char *const how[] = {"(%s + 0)", "(%s)",        "(2 * %s / 2)", "(if 1 < 2 then %s else 0)",
                                      "[%s][1]",  "max(%s, %s)", "(%s - 0)",     "(1 * %s)"};
    Piece *t;
    size_t n = text_tokens(arena, s, &t);
    for (int i = 0; i < 100 && n > 2; i++) {
        Piece p = t[1 + roll(w, (uint32_t)n - 2)];
        bool ends = s[p.to] == ',' || s[p.to] == '\n' || s[p.to] == ')' || (s[p.to] == ' ' && s[p.to + 1] == '}');
        bool set = p.from > 2 && s[p.from - 1] == ' ' && s[p.from - 2] == '=';
        const char *number = copied(arena, s, p), *line = s + p.from;
        while (line > s && line[-1] != '\n')
            line--;
        if (!isdigit((unsigned char)*number) || !ends || !set || strncmp(line, "edition", 7) == 0)
            continue;
        return text_replaced(arena, s, p, arena_printf(arena, ANY(w, how), number, number));
    }
    return NULL;
}

/* Another value of the kind that stands there. */
static char *change_value(Writer *w, Arena *arena, const char *s)
{
    Axis *axis;
    size_t n = text_axes(arena, s, &axis);
    for (int i = 0; i < 30 && n; i++) {
        const Axis *a = &axis[roll(w, (uint32_t)n)];
        const char *other = axis_other(w, arena, a);
        if (other && strcmp(other, a->value))
            return text_replaced(arena, s, a->at, other);
    }
    return NULL;
}

/* What says nothing: a comment, an unused let, an item that is switched off. */
static char *add_idle(Writer *w, Arena *arena, const char *s)
{
    static const char *const items[] = {"# nothing",
                                        "let idle%d = [i * %d for i in 1..3 if i != 2]",
                                        "/-let off%d = %d + \"x\"",
                                        "block idle%d()(x: [.., D]) -> [.., D] { return x + %d }",
                                        "check 1 + 1 == 2 \"sums\"",
                                        "## About what follows.\nlet told%d = %d"};
    Lines all = lines_of(arena, s);
    for (int i = 0; i < 60 && all.n; i++) {
        const Line *l = &all.v[roll(w, (uint32_t)all.n)];
        if (is_item(s, l) || begins(s, l, "import"))
            return text_replaced(
                arena, s, (Piece){l->at.to, l->at.to},
                arena_printf(arena, "\n%s", arena_printf(arena, ANY(w, items), (int)roll(w, 1000), 3)));
    }
    return arena_printf(arena, "%s\n# at the end", s);
}

/* Lines as items of one line, and blanks. */
static char *respace(Writer *w, Arena *arena, const char *s)
{
    Lines all = lines_of(arena, s);
    for (int i = 0; i < 100 && all.n > 2; i++) {
        size_t k = roll(w, (uint32_t)all.n - 1);
        const Line *a = &all.v[k], *b = &all.v[k + 1];
        if (a->whole && b->whole && a->indent == b->indent && a->at.to > a->at.from && b->at.to > b->at.from)
            return text_replaced(arena, s, (Piece){a->at.to, b->at.from + b->indent}, one_in(w, 2) ? " ; " : "\n\n   ");
    }
    return NULL;
}

char *edit_alike(Arena *arena, uint64_t seed, const char *text)
{
    static char *(*const how[])(Writer *, Arena *,
                                const char *) = {swap_sublayers, repeat_sublayer, wrap_sublayer, swap_items, rename_all,
                                                 rewrite_number, rewrite_number,  change_value,  add_idle,   respace};
    Writer w = {.state = (seed + 31) * 0x9e3779b97f4a7c15u};
    roll(&w, 2);
    const char *now = text;
    for (int left = range(&w, 1, 3), i = 0; left > 0 && i < 40; i++) {
        const char *then = ANY(&w, how)(&w, arena, now);
        if (then)
            now = then, left--;
    }
    return (char *)now;
}
