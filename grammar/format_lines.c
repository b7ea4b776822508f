/* format_lines.c - the formatter's lines: see format.h.
 *
 * In:  pieces of code and the places where lines end.   Out: aligned text.
 * The one idea: a comment belongs to the gap between two tokens; it is printed when the token
 * behind that gap is, so no layout can lose one.
 */
#include "format.h"

void fmt_put(Format *f, const char *s, size_t n) { buf_put(&f->code, s, n); }

void fmt_cell(Format *f)
{
    if (!f->flat)
        buf_putc(&f->code, CELL);
}

static bool line_empty(const Format *f) { return f->code.n == f->line_lo; }

static void push_line(Format *f, Span comment, uint32_t wanted)
{
    while (f->code.n > f->line_lo && f->code.s[f->code.n - 1] == ' ')
        f->code.n--;
    Line line = {
        .lo = f->line_lo, .hi = f->code.n, .indent = f->indent, .run = f->run, .comment = comment, .wanted = wanted};
    vec_push(f->arena, &f->lines, line);
    f->line_lo = f->code.n;
    f->run = RUN_NONE;
}

void fmt_newline(Format *f, uint32_t indent)
{
    if (!line_empty(f))
        push_line(f, NO_SPAN, 0);
    f->indent = indent;
}

void fmt_blank(Format *f)
{
    fmt_newline(f, f->indent);
    Line line = {.lo = f->line_lo, .hi = f->line_lo, .blank = true};
    vec_push(f->arena, &f->lines, line);
}

bool fmt_broken(const Format *f, uint32_t lo, uint32_t hi)
{
    return f->text && hi > lo && memchr(f->text + lo, '\n', hi - lo) != NULL;
}

bool fmt_comment_in(const Format *f, uint32_t lo, uint32_t hi)
{
    size_t i = f->next, end = f->comments.n;
    while (i < end) { /* comments are in the order of the text */
        size_t mid = i + (end - i) / 2;
        if (f->comments.v[mid].lo < lo)
            i = mid + 1;
        else
            end = mid;
    }
    return i < f->comments.n && f->comments.v[i].lo < hi;
}

static uint32_t line_of_text(const Format *f, uint32_t at)
{
    while (at > 0 && f->text[at - 1] != '\n')
        at--;
    return at;
}

/* Prints the next comment behind the current line, or on a line of its own. Ends the line. */
static void put_comment(Format *f, bool own_line)
{
    Span c = f->comments.v[f->next++];
    while (c.hi > c.lo && strchr(" \t\r", f->text[c.hi - 1]))
        c.hi--;
    uint32_t start = line_of_text(f, c.lo);
    if (own_line && !line_empty(f))
        fmt_newline(f, f->indent);
    push_line(f, c, fmt_width(f->text + start, c.lo - start));
}

void fmt_flush(Format *f, uint32_t offset)
{
    while (f->next < f->comments.n && f->comments.v[f->next].lo < offset) {
        uint32_t at = f->comments.v[f->next].lo, lo = line_of_text(f, at);
        while (f->text[lo] == ' ' || f->text[lo] == '\t')
            lo++;
        if (lo == at && !line_empty(f))
            fmt_newline(f, f->base + 2);
        put_comment(f, lo == at);
        f->indent = f->base + 2;
    }
}

void fmt_token(Format *f, uint32_t offset, bool space, const char *s)
{
    fmt_flush(f, offset);
    if (space && !line_empty(f))
        buf_putc(&f->code, ' ');
    buf_puts(&f->code, s);
}

bool fmt_trailing(Format *f, uint32_t after, uint32_t before)
{
    if (f->next >= f->comments.n)
        return false;
    uint32_t at = f->comments.v[f->next].lo;
    if (at < after || at >= before || fmt_broken(f, after, at))
        return false;
    put_comment(f, false);
    return true;
}

/* A blank line between two places of the source. */
static bool blank_between(const Format *f, uint32_t lo, uint32_t hi)
{
    int newlines = 0;
    for (uint32_t i = lo; i < hi && newlines < 2; i++)
        newlines += f->text[i] == '\n';
    return newlines >= 2;
}

void fmt_own_lines(Format *f, uint32_t offset, uint32_t *prev_end, bool first)
{
    while (f->next < f->comments.n && f->comments.v[f->next].lo < offset) {
        Span c = f->comments.v[f->next];
        if (!first && blank_between(f, *prev_end, c.lo))
            fmt_blank(f);
        first = false;
        put_comment(f, true);
        *prev_end = c.hi;
    }
    if (!first && blank_between(f, *prev_end, offset))
        fmt_blank(f);
}

uint32_t fmt_width(const char *s, size_t n)
{
    uint32_t width = 0;
    for (size_t i = 0; i < n; i++)
        width += s[i] != CELL && ((unsigned char)s[i] & 0xc0) != 0x80;
    return width;
}

uint32_t fmt_column(const Format *f) { return f->indent + fmt_width(f->code.s + f->line_lo, f->code.n - f->line_lo); }

/* ---- alignment ---- */

/* The piece of a line between two cells, counted from 0; false when there are not so many. */
static bool piece(const Format *f, const Line *line, size_t k, size_t *lo, size_t *hi)
{
    size_t at = line->lo;
    for (;; k--) {
        const char *cell = memchr(f->code.s + at, CELL, line->hi - at);
        size_t end = cell ? (size_t)(cell - f->code.s) : line->hi;
        if (k == 0) {
            *lo = at;
            *hi = end;
            return true;
        }
        if (!cell)
            return false;
        at = end + 1;
    }
}

static size_t cells(const Format *f, const Line *line)
{
    size_t n = 0;
    for (size_t i = line->lo; i < line->hi; i++)
        n += f->code.s[i] == CELL;
    return n;
}

enum { MOST_CELLS = 4 };

/* Sets pad[line][k], the blanks to put at cell k, for the run of lines [lo, hi). The braces
 * behind tensors are optional, so they align with direct neighbours only; the other cells over
 * the run. */
static void align_run(const Format *f, uint8_t (*pad)[MOST_CELLS], size_t lo, size_t hi)
{
    for (size_t k = 0; k < MOST_CELLS; k++) {
        for (size_t i = lo, end; i < hi; i = end) {
            uint32_t widest = 0;
            size_t a, b;
            end = i;
            while (end < hi && (f->lines.v[i].run != RUN_TENSOR || k < 3 ||
                                (cells(f, &f->lines.v[end]) > k) == (cells(f, &f->lines.v[i]) > k)))
                end++;
            for (size_t j = i; j < end; j++)
                if (cells(f, &f->lines.v[j]) > k && piece(f, &f->lines.v[j], k, &a, &b)) {
                    uint32_t width = fmt_width(f->code.s + a, b - a);
                    widest = width > widest ? width : widest;
                }
            for (size_t j = i; j < end; j++)
                if (cells(f, &f->lines.v[j]) > k && piece(f, &f->lines.v[j], k, &a, &b)) {
                    uint32_t blanks = widest - fmt_width(f->code.s + a, b - a);
                    pad[j][k] = blanks < 255 ? (uint8_t)blanks : 0;
                }
        }
    }
}

static void put_blanks(Buf *out, uint32_t n)
{
    while (n-- > 0)
        buf_putc(out, ' ');
}

static uint32_t put_code(const Format *f, Buf *out, const Line *line, const uint8_t *pad)
{
    size_t start = out->n, k = 0;
    put_blanks(out, line->indent);
    for (size_t at = line->lo; at < line->hi;) {
        const char *cell = memchr(f->code.s + at, CELL, line->hi - at);
        size_t end = cell ? (size_t)(cell - f->code.s) : line->hi;
        buf_put(out, f->code.s + at, end - at);
        if (cell && line->run != RUN_NONE && k < MOST_CELLS)
            put_blanks(out, pad[k++]);
        at = cell ? end + 1 : end;
    }
    return fmt_width(out->s + start, out->n - start);
}

/* Comments keep their column where the code leaves room; those of adjacent lines share one. */
static void comment_columns(const Format *f, const uint32_t *width, uint32_t *column)
{
    for (size_t i = 0, end; i < f->lines.n; i = end) {
        const Line *a = &f->lines.v[i];
        uint32_t most = 0;
        for (end = i; end < f->lines.n; end++) {
            const Line *b = &f->lines.v[end];
            if (!b->comment.file || b->lo == b->hi || b->indent != a->indent)
                break;
            uint32_t least = width[end] + 2 > b->wanted ? width[end] + 2 : b->wanted;
            most = least > most ? least : most;
        }
        for (size_t j = i; j < end; j++)
            column[j] = most;
        if (end == i)
            end++;
    }
}

void fmt_render(Format *f, Buf *out)
{
    fmt_newline(f, 0);
    size_t n = f->lines.n;
    uint8_t(*pad)[MOST_CELLS] = arena_alloc_array(f->arena, n + 1, sizeof *pad);
    uint32_t *width = NEW_ARRAY(f->arena, uint32_t, n + 1);
    uint32_t *column = NEW_ARRAY(f->arena, uint32_t, n + 1);
    for (size_t i = 0, end; i < n; i = end) {
        const Line *a = &f->lines.v[i];
        for (end = i + 1;
             end < n && a->run != RUN_NONE && f->lines.v[end].run == a->run && f->lines.v[end].indent == a->indent;)
            end++;
        if (a->run != RUN_NONE)
            align_run(f, pad, i, end);
    }
    Buf scratch = buf_new(f->arena);
    for (size_t i = 0; i < n; i++) {
        scratch.n = 0;
        width[i] = put_code(f, &scratch, &f->lines.v[i], pad[i]);
    }
    comment_columns(f, width, column);
    for (size_t i = 0; i < n; i++) {
        const Line *line = &f->lines.v[i];
        if (!line->blank && (line->lo < line->hi || line->comment.file))
            put_code(f, out, line, pad[i]);
        if (line->comment.file) {
            if (line->lo < line->hi)
                put_blanks(out, column[i] - width[i]);
            buf_put(out, f->text + line->comment.lo, line->comment.hi - line->comment.lo);
        }
        buf_putc(out, '\n');
    }
}
