/* cases.c - reads the cases and makes their texts. cases.h has the form. */
#define _XOPEN_SOURCE 700
#include "cases.h"

#include <ctype.h>
#include <dirent.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

char *text_format(const char *format, ...)
{
    va_list a, b;
    va_start(a, format);
    va_copy(b, a);
    size_t n = (size_t)vsnprintf(NULL, 0, format, a) + 1;
    char *s = malloc(n);
    vsnprintf(s, n, format, b);
    va_end(a);
    va_end(b);
    return s;
}

void lines_add(Lines *l, char *line)
{
    l->v = realloc(l->v, (l->n + 1) * sizeof *l->v);
    l->v[l->n++] = line;
}

Lines lines_of(const char *text)
{
    Lines l = {0};
    while (*text) {
        size_t n = strcspn(text, "\n");
        lines_add(&l, text_format("%.*s", (int)n, text));
        text += n + (text[n] == '\n');
    }
    return l;
}

Lines lines_read(const char *path)
{
    Lines l = {0};
    FILE *f = fopen(path, "rb");
    char *line = NULL;
    size_t room = 0;
    for (ssize_t n; f && (n = getline(&line, &room, f)) >= 0;) {
        line[n - (n > 0 && line[n - 1] == '\n')] = 0;
        lines_add(&l, text_format("%s", line));
    }
    free(line);
    if (f)
        fclose(f);
    return l;
}

static _Noreturn void wrong(const Case *c, const char *what, const char *line)
{
    printf("%s: case %s: %s: %s\n", c->file, c->name, what, line);
    exit(1);
}

/* ---- reading ---- */

static void section_begin(Cases *all, const char *file, const char *head, Lines *before)
{
    char name[100] = "", base[100] = "", more[2] = "";
    Case c = {.file = text_format("%s", file), .before = *before, .arguments = text_format("%s", "")};
    int words = sscanf(head, "%99s %99s %1s", name, base, more);
    c.name = text_format("%s", name);
    c.base = text_format("%s", base);
    *before = (Lines){0};
    if (words < 1 || words > 2)
        wrong(&c, "a section is `== NAME`, `== NAME BASE` or `== base NAME`", head);
    all->v = realloc(all->v, (all->n + 1) * sizeof *all->v);
    all->v[all->n++] = c;
}

static int is_base(const Case *c) { return !strcmp(c->name, "base"); }

static void section_line(Case *c, char *line)
{
    if (is_base(c) || (line[0] && strchr("@~-+*#", line[0])))
        lines_add(&c->edits, line);
    else if (line[0] == '$')
        c->arguments = text_format("%s", line + 1 + strspn(line + 1, " "));
    else if (line[0])
        lines_add(&c->wanted, line);
}

/* The empty line before the next section is no line of a base. */
static void section_end(Case *c)
{
    while (is_base(c) && c->edits.n > 0 && !c->edits.v[c->edits.n - 1][0])
        c->edits.n--;
}

static void file_read(Cases *all, const char *folder, const char *file)
{
    Lines l = lines_read(text_format("%s/%s", folder, file)), before = {0};
    size_t first = all->n;
    for (size_t i = 0; i < l.n; i++) {
        if (!strncmp(l.v[i], "== ", 3))
            section_begin(all, file, l.v[i] + 3, &before);
        else if (all->n > first)
            section_line(&all->v[all->n - 1], l.v[i]);
        else
            lines_add(&before, l.v[i]);
    }
    for (size_t i = first; i < all->n; i++)
        section_end(&all->v[i]);
}

static int is_listed(const struct dirent *e)
{
    const char *end = strrchr(e->d_name, '.');
    if (end && (!strcmp(end, ".vwn") || !strcmp(end, ".err"))) {
        printf("%s: a case is a section of a .txt file of tests/errors now; cases.h has the "
               "form\n",
               e->d_name);
        exit(1);
    }
    return end && !strcmp(end, ".txt");
}

Cases cases_read(const char *folder)
{
    Cases all = {0};
    struct dirent **files;
    int n = scandir(folder, &files, is_listed, alphasort);
    for (int i = 0; i < n; i++) {
        file_read(&all, folder, files[i]->d_name);
        free(files[i]);
    }
    if (n >= 0)
        free(files);
    for (size_t i = 0; i < all.n; i++)
        for (size_t k = 0; k < i; k++)
            if (!is_base(&all.v[i]) && !strcmp(all.v[i].name, all.v[k].name))
                wrong(&all.v[i], "there are two", all.v[i].name);
    return all;
}

/* ---- edits ---- */

typedef struct Edit {
    const Case *c;
    const Lines *base;
    size_t at; /* lines of the base before it are done */
    Lines out;
} Edit;

static const char *first_letter(const char *s) { return s + strspn(s, " "); }

static int begins(const char *line, const char *text) { return !strncmp(first_letter(line), text, strlen(text)); }

static size_t word_length(const char *s)
{
    size_t n = 0;
    while (isalnum((unsigned char)s[n]) || s[n] == '_')
        n++;
    return n ? n : 1;
}

static int same_word(const char *a, const char *b)
{
    a = first_letter(a), b = first_letter(b);
    size_t n = word_length(a);
    return n == word_length(b) && !strncmp(a, b, n);
}

/* Up to the next line that `is` of this text, which is not copied. */
static void go_to(Edit *e, int (*is)(const char *, const char *), const char *text)
{
    while (e->at < e->base->n && !is(e->base->v[e->at], text))
        lines_add(&e->out, e->base->v[e->at++]);
    if (e->at == e->base->n)
        wrong(e->c, "no further line of the base is like", text);
}

static void leave_out(Edit *e, const char *text)
{
    const char *dots = strstr(text, " ... ");
    char *from = text_format("%.*s", dots ? (int)(dots - text) : (int)strlen(text), text);
    go_to(e, begins, from);
    size_t last = e->at;
    while (dots && last < e->base->n && !begins(e->base->v[last], dots + 5))
        last++;
    if (last == e->base->n)
        wrong(e->c, "no further line of the base is like", text);
    e->at = last + 1;
    free(from);
}

/* A NUL byte is written as the byte 1, which no text has: texts are strings here. */
static char *with_bytes(const char *line)
{
    char *s = text_format("%s", line), *to = s;
    for (const char *p = s; *p; to++) {
        unsigned byte = 0;
        int is = !strncmp(p, "\\x", 2) && sscanf(p + 2, "%2x", &byte) == 1;
        *to = is ? (char)(byte ? byte : 1) : *p;
        p += is ? 4 : 1;
    }
    *to = 0;
    return s;
}

static void edit(Edit *e, const char *line)
{
    const char *text = line + 1;
    if (line[0] == '#')
        return;
    if (line[0] == '+') {
        lines_add(&e->out, with_bytes(text));
    } else if (line[0] == '*') {
        char *end;
        for (long n = strtol(text, &end, 10); n > 0; n--)
            lines_add(&e->out, end + 1);
    } else if (line[0] == '-') {
        leave_out(e, text);
    } else if (line[0] == '~') {
        go_to(e, same_word, text);
        lines_add(&e->out, with_bytes(text));
        e->at++;
    } else if (text[0]) {
        go_to(e, begins, text);
        lines_add(&e->out, e->base->v[e->at++]);
    } else {
        while (e->at < e->base->n)
            lines_add(&e->out, e->base->v[e->at++]);
    }
}

Lines case_text(const Cases *all, const Case *c)
{
    static const Lines none;
    Edit e = {.c = c, .base = c->base[0] ? NULL : &none};
    for (size_t i = 0; i < all->n && c->base[0]; i++)
        if (is_base(&all->v[i]) && !strcmp(all->v[i].base, c->base))
            e.base = &all->v[i].edits;
    if (!e.base)
        wrong(c, "no such base", c->base);
    for (size_t i = 0; i < c->edits.n; i++)
        edit(&e, c->edits.v[i]);
    edit(&e, "@");
    return e.out;
}
