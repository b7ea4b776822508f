/* print.c - messages in short: what a text says itself is looked at and left out.
 *
 * In:  what the program printed, and the text that it is about.
 * Out: the same without place, margin and excerpts of a message, where each is what the text
 *      and the line that stays say; else the lines as they are, behind a `|`.
 *          error[E0504]: `m` = 3 does not divide the backbone width 1024
 *           ^ 11:20 [m = 3] 1024 / 3 is not an integer
 *           = help: use an m that divides 1024, or another width
 *          note: required here
 *           - std/connections.vwn:526:3 [check scope.width mod m == 0]
 *      A mark has its line and column, what it marks, and what is said of that; those of one line
 *      stand in the order of their columns.
 * The one idea: two outputs that differ are never the same in short.
 */
#define _XOPEN_SOURCE 700
#include "cases.h"

#include <stdlib.h>
#include <string.h>

typedef struct Print {
    const Lines *printed;
    size_t at;
    const Case *c;
    const Lines *text; /* of the case */
    int margin;        /* digits of the greatest line number of the message */
    Lines out;
} Print;

/* A message's excerpts. */
typedef struct Excerpt {
    int margin;
    char file[600];  /* as the message names it */
    Lines text;      /* its lines */
    char place[700]; /* line and column of the message */
    int placed;      /* one of the marks is there */
    size_t line;     /* the last that was printed */
    Lines out;
} Excerpt;

static const char *line_at(const Print *p, size_t i) { return i < p->printed->n ? p->printed->v[i] : ""; }

static int is_line(const Print *p, size_t i, char *wanted)
{
    int same = i < p->printed->n && !strcmp(p->printed->v[i], wanted);
    free(wanted);
    return same;
}

static Lines text_named(const Print *p, const char *file, const char *own)
{
    Lines l = {0};
    if (!strcmp(file, own))
        return *p->text;
    if (!strcmp(file, "<command line>"))
        return l;
    return lines_read(
        text_format("%s/%s/%s", VWN_SOURCE_DIR, strncmp(file, "std/", 4) ? "tests/errors" : "grammar", file));
}

/* The line of the file, where it is what the excerpt shows; of the command line that is a part
 * of the arguments. */
static const char *shown(const Print *p, const Excerpt *e, size_t i, size_t line)
{
    const char *printed = line_at(p, i), *all = line == 0 || line > e->text.n ? NULL : e->text.v[line - 1];
    if (!strcmp(e->file, "<command line>")) {
        all = strlen(printed) > (size_t)e->margin + 3 ? printed + e->margin + 3 : NULL;
        if (all && !strstr(p->c->arguments, all))
            all = NULL;
    }
    return all && is_line(p, i, text_format("%*zu |%s%s", e->margin, line, all[0] ? " " : "", all)) ? all : NULL;
}

static const char *letters_on(const char *s, size_t n)
{
    for (; n > 0 && *s; n--)
        for (s++; (*s & 0xc0) == 0x80;)
            s++;
    return s;
}

static size_t letters(const char *from, const char *to)
{
    size_t n = 0;
    for (; from < to; from++)
        n += (*from & 0xc0) != 0x80;
    return n;
}

typedef struct Mark {
    size_t column, length;
    const char *label; /* behind the last mark of a line; of others on lines of their own */
} Mark;

enum { MARKS_MOST = 8 };

static size_t marks_of(const char *line, Mark mark[MARKS_MOST])
{
    size_t n = 0;
    for (size_t at = strspn(line, " "); n < MARKS_MOST; at += strspn(line + at, " ")) {
        size_t length = strspn(line + at, line[at] == '^' ? "^" : "-");
        if (!length || (line[at + length] && line[at + length] != ' '))
            break;
        mark[n++] = (Mark){at, length, ""};
        at += length;
    }
    if (n > 0)
        mark[n - 1].label = line + mark[n - 1].column + mark[n - 1].length;
    return n;
}

/* The label of a mark, where the line i has one. */
static const char *label_line(const Print *p, const Excerpt *e, const Mark *m, size_t i)
{
    const char *line = line_at(p, i);
    char *before = text_format("%*s | %*s", e->margin, "", (int)m->column, "");
    size_t n = strlen(before);
    int is = !strncmp(line, before, n) && line[n] && line[n] != ' ';
    free(before);
    return is ? line + n - 1 : NULL; /* a blank stands in front of it */
}

static int put_mark(Print *p, Excerpt *e, const char *text, size_t line, const Mark *m, char kind)
{
    const char *from = letters_on(text, m->column), *to = letters_on(from, m->length);
    size_t there = letters(from, to);
    if (m->length != (there ? there : 1))
        return 0;
    char *place = text_format("%zu:%zu", line, m->column + 1), *own = text_format("%s.vwn", p->c->name);
    e->placed |= !strcmp(place, e->place);
    lines_add(&e->out, text_format(" %c %s%s%s [%.*s]%s", kind, strcmp(e->file, own) ? e->file : "",
                                   strcmp(e->file, own) ? ":" : "", place, (int)(to - from), from, m->label));
    return 1;
}

/* A line of the text, the line of marks below it, and lines of their labels, the last first. */
static int marked(Print *p, Excerpt *e)
{
    size_t line = strtoul(line_at(p, p->at), NULL, 10), next = p->at + 2;
    const char *text = shown(p, e, p->at, line), *marks = line_at(p, p->at + 1);
    size_t margin = (size_t)e->margin + 3;
    Mark mark[MARKS_MOST];
    if (!text || strlen(marks) < margin || strncmp(marks + e->margin, " | ", 3) != 0 ||
        strspn(marks, " ") != (size_t)e->margin + 1)
        return 0;
    size_t n = marks_of(marks + margin, mark);
    for (size_t i = n; i-- > 1;) {
        const char *label = label_line(p, e, &mark[i - 1], next);
        mark[i - 1].label = label ? label : "";
        next += label != NULL;
    }
    for (size_t i = 0; i < n; i++)
        if (!put_mark(p, e, text, line, &mark[i], marks[margin + mark[i].column]))
            return 0;
    if (n > 0)
        p->at = next;
    e->line = line;
    return n > 0;
}

/* Two marks with a line between them show it, with more of them dots. */
static int between(Print *p, Excerpt *e)
{
    size_t next = strtoul(line_at(p, p->at + 1), NULL, 10), line = e->line + 1;
    if (!strcmp(line_at(p, p->at), "..."))
        return next > e->line + 2 ? 1 : 0;
    return next == e->line + 2 && shown(p, e, p->at, line) ? 1 : 0;
}

/* From the line `--> file:line:column` on; 0 where anything is not as it would be made of the
 * file. */
static int excerpt(Print *p, Excerpt *e, int is_note)
{
    const char *arrow = line_at(p, p->at);
    e->margin = (int)strspn(arrow, " ");
    if (e->margin != p->margin || strncmp(arrow + e->margin, "--> ", 4) != 0)
        return 0;
    snprintf(e->file, sizeof e->file, "%s", arrow + e->margin + 4);
    for (int i = 0; i < 2 && strrchr(e->file, ':'); i++) {
        char *colon = strrchr(e->file, ':');
        snprintf(e->place, sizeof e->place, "%s", arrow + e->margin + 4 + (colon - e->file) + 1);
        *colon = 0;
    }
    e->text = text_named(p, e->file, text_format("%s.vwn", p->c->name));
    if (!is_line(p, ++p->at, text_format("%*s |", e->margin, "")))
        return 0;
    p->at++;
    if (!marked(p, e))
        return 0;
    while (!is_note) {
        size_t before = e->line;
        int jump = between(p, e);
        p->at += (size_t)jump;
        if (!marked(p, e)) {
            p->at -= (size_t)jump;
            break;
        }
        if (!jump && e->line != before + 1)
            return 0;
    }
    return e->placed && (is_note || is_line(p, p->at++, text_format("%*s |", e->margin, "")));
}

static int begins_message(const char *line) { return !strncmp(line, "error", 5) || !strncmp(line, "warning", 7); }

static int is_head(const char *line) { return begins_message(line) || !strncmp(line, "note: ", 6); }

/* The notes of a message have its margin. */
static int margin_of(const Print *p)
{
    int most = 1;
    for (size_t i = p->at + 1; i < p->printed->n; i++) {
        const char *line = line_at(p, i);
        if (begins_message(line))
            break;
        int digits = (int)strspn(line + strspn(line, " "), "0123456789");
        if (!strncmp(line + strspn(line, " ") + digits, " |", 2) && digits > most)
            most = digits;
    }
    return most;
}

static void remarks(Print *p, int margin)
{
    char *first = text_format("%*s = ", margin, ""), *more = text_format("%*s", margin + 9, "");
    for (;; p->at++) {
        const char *line = line_at(p, p->at);
        if (!strncmp(line, first, strlen(first)))
            lines_add(&p->out, text_format(" = %s", line + strlen(first)));
        else if (!strncmp(line, more, strlen(more)))
            lines_add(&p->out, text_format("          %s", line + strlen(more)));
        else
            break;
    }
    free(first);
    free(more);
}

static void message(Print *p)
{
    const char *head = line_at(p, p->at);
    if (begins_message(head)) {
        p->margin = margin_of(p);
        if (p->at > 0 && line_at(p, p->at - 1)[0])
            lines_add(&p->out, text_format("<no empty line>"));
    }
    p->at++;
    size_t begin = p->at;
    Excerpt e = {0};
    lines_add(&p->out, text_format("%s", head));
    if (!excerpt(p, &e, !strncmp(head, "note: ", 6))) {
        p->at = begin;
        return;
    }
    for (size_t i = 0; i < e.out.n; i++)
        lines_add(&p->out, e.out.v[i]);
    remarks(p, e.margin);
}

Lines print_shorten(const Lines *printed, const Case *c, const Lines *text)
{
    Print p = {.printed = printed, .c = c, .text = text};
    while (p.at < printed->n) {
        if (is_head(line_at(&p, p.at)))
            message(&p);
        else if (p.at > 0 && !line_at(&p, p.at)[0] && begins_message(line_at(&p, p.at + 1)))
            p.at++; /* an empty line stands before the next message */
        else
            lines_add(&p.out, text_format("|%s", line_at(&p, p.at++)));
    }
    return p.out;
}
