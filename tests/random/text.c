/* text.c - see generate.h: where the pieces of a text begin and end. */
#include "generate.h"

#include <ctype.h>
#include <string.h>

/* Behind the string or comment that begins at i, or i. */
static size_t skip_quoted(const char *s, size_t i)
{
    if (s[i] == '#')
        return i + strcspn(s + i, "\n");
    if (s[i] != '"')
        return i;
    for (i++; s[i] && s[i] != '"'; i++)
        i += s[i] == '\\' && s[i + 1];
    return i + (s[i] == '"');
}

typedef VEC(Piece) Pieces;

static void add_piece(Arena *arena, Pieces *all, const char *s, size_t from, size_t to)
{
    while (from < to && isspace((unsigned char)s[from]))
        from++;
    while (to > from && isspace((unsigned char)s[to - 1]))
        to--;
    if (from < to)
        vec_push(arena, all, ((Piece){from, to}));
}

size_t text_pieces(Arena *arena, const char *s, Piece **out)
{
    enum { DEEPEST = 300 };
    struct {
        char kind;
        size_t from;
    } open[DEEPEST] = {{'{', 0}};
    Pieces all = {0};
    int depth = 0;
    size_t i = 0;
    for (; s[i]; i++) {
        size_t behind = skip_quoted(s, i);
        if (behind > i) {
            i = behind - 1;
            continue;
        }
        bool ends = s[i] == ',' || s[i] == ';' || (s[i] == '\n' && open[depth].kind == '{');
        bool closes = strchr(")]}", s[i]) && depth > 0;
        if (ends || closes)
            add_piece(arena, &all, s, open[depth].from, i);
        depth -= closes;
        if (ends)
            open[depth].from = i + 1;
        if (strchr("([{", s[i]) && depth + 1 < DEEPEST) {
            open[++depth].kind = s[i];
            open[depth].from = i + 1;
        }
    }
    add_piece(arena, &all, s, open[depth].from, i);
    *out = all.v;
    return all.n;
}

size_t text_tokens(Arena *arena, const char *s, Piece **out)
{
    Pieces all = {0};
    for (size_t i = 0; s[i];) {
        size_t to = skip_quoted(s, i);
        if (s[i] == '#' || isspace((unsigned char)s[i])) {
            i = to > i ? to : i + 1;
            continue;
        }
        if (to == i)
            while (isalnum((unsigned char)s[to]) || s[to] == '_' ||
                   (s[to] == '.' && s[to + 1] != '.' && isdigit((unsigned char)s[i])))
                to++;
        if (to == i)
            to++;
        vec_push(arena, &all, ((Piece){i, to}));
        i = to;
    }
    *out = all.v;
    return all.n;
}

char *text_replaced(Arena *arena, const char *text, Piece at, const char *by)
{
    return arena_printf(arena, "%.*s%s%s", (int)at.from, text, by, text + at.to);
}
