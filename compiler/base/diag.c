/* diag.c - source texts and diagnostics: see diag.h.
 *
 * In:  spans and sentences.   Out: the text with carets, or one JSON line.
 * The one idea: a span becomes a Mark (line, display column, length) once, with every number
 * clamped to the text; from there on drawing is arithmetic on small integers and cannot go
 * wrong.
 */
#include "diag.h"

#include "compiler/portable/utf8.h"

#include <stdio.h>

typedef struct SourceText {
    const char *path, *text;
    const char *shown; /* for people, byte for byte in its place; NULL: the text itself */
    size_t n;
    uint32_t *line; /* offset of each line's first byte; made when a position is first asked for */
    size_t lines;
    VEC(LineCol) place; /* of a source known by places only: see source_place() */
    bool only_places;
} SourceText;

struct Sources {
    VEC(SourceText) list;
};

typedef struct Filed {
    uintptr_t place;
    size_t before; /* 1 + the list index of the one before it at its place, 0: none */
} Filed;
struct Diags {
    VEC(Diag *) list;
    size_t errors, warnings;
    size_t mistakes;  /* errors, with the duplicates that were not filed */
    VEC(Filed) filed; /* by list index */
    Map by_place;     /* of a file and an offset: 1 + the list index of the last there */
};

/* ---- sources ---- */

uint32_t source_add(Ctx *ctx, const char *path, const char *text, size_t n)
{
    if (n >= UINT32_MAX)
        ctx_raise(ctx, ST_ENVIRONMENT, "%s: a source text of %zu bytes is too large", path, n);
    if (!ctx->sources)
        ctx->sources = NEW(ctx->program, Sources);
    SourceText s = {
        .path = arena_copy(ctx->program, path, strlen(path)), .text = arena_copy(ctx->program, text, n), .n = n};
    vec_push(ctx->program, &ctx->sources->list, s);
    return (uint32_t)ctx->sources->list.n;
}

static SourceText *source_get(Ctx *ctx, uint32_t file)
{
    if (!ctx->sources || file == 0 || file > ctx->sources->list.n)
        return NULL;
    return &ctx->sources->list.v[file - 1];
}

const char *source_text(Ctx *ctx, uint32_t file, size_t *n)
{
    const SourceText *s = source_get(ctx, file);
    if (n)
        *n = s ? s->n : 0;
    return s ? s->text : "";
}

void source_show(Ctx *ctx, uint32_t file, const char *text)
{
    SourceText *s = source_get(ctx, file);
    s->shown = arena_copy(ctx->program, text, strlen(text));
}

const char *source_path(Ctx *ctx, uint32_t file)
{
    const SourceText *s = source_get(ctx, file);
    return s ? s->path : "";
}

const char *source_base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    if (!strcmp(path, "-"))
        return "<stdin>";
    return slash && strncmp(path, "std/", 4) != 0 ? slash + 1 : path;
}

static void index_lines(Ctx *ctx, SourceText *s)
{
    size_t count = 1;
    for (size_t i = 0; i < s->n; i++)
        count += s->text[i] == '\n';
    uint32_t *line = NEW_ARRAY(ctx->program, uint32_t, count);
    size_t k = 1;
    for (size_t i = 0; i < s->n; i++)
        if (s->text[i] == '\n')
            line[k++] = (uint32_t)(i + 1);
    s->line = line;
    s->lines = count;
}

/* The index of the line that holds `offset`; the offset must not be beyond the text. */
static size_t line_of(Ctx *ctx, SourceText *s, size_t offset)
{
    if (!s->line)
        index_lines(ctx, s);
    size_t lo = 0, hi = s->lines;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        if (s->line[mid] <= offset)
            lo = mid;
        else
            hi = mid;
    }
    return lo;
}

uint32_t source_named(Ctx *ctx, const char *path)
{
    for (size_t i = ctx->sources ? ctx->sources->list.n : 0; i-- > 0;)
        if (!ctx->sources->list.v[i].only_places && !strcmp(ctx->sources->list.v[i].path, path))
            return (uint32_t)i + 1;
    return 0;
}

Span source_place(Ctx *ctx, const char *path, LineCol at)
{
    uint32_t file = 0;
    for (size_t i = 0; ctx->sources && i < ctx->sources->list.n && !file; i++) {
        const SourceText *s = &ctx->sources->list.v[i];
        if (s->only_places && strcmp(s->path, path) == 0)
            file = (uint32_t)i + 1;
    }
    if (!file) {
        file = source_add(ctx, path, "", 0);
        source_get(ctx, file)->only_places = true;
    }
    SourceText *s = source_get(ctx, file);
    vec_push(ctx->program, &s->place, at);
    uint32_t n = (uint32_t)s->place.n;
    return (Span){file, n - 1, n};
}

LineCol source_position(Ctx *ctx, uint32_t file, uint32_t offset)
{
    SourceText *s = source_get(ctx, file);
    if (!s)
        return (LineCol){1, 1};
    if (s->only_places)
        return offset < s->place.n ? s->place.v[offset] : (LineCol){1, 1};
    if (offset > s->n)
        offset = (uint32_t)s->n;
    size_t line = line_of(ctx, s, offset);
    return (LineCol){(uint32_t)line + 1, offset - s->line[line] + 1};
}

Span span_join(Span a, Span b)
{
    if (!a.file)
        return b;
    if (!b.file || a.file != b.file)
        return a;
    return (Span){a.file, a.lo < b.lo ? a.lo : b.lo, a.hi > b.hi ? a.hi : b.hi};
}

size_t utf8_step(const char *text, size_t n)
{
    const unsigned char *s = (const unsigned char *)text;
    if (!n)
        return 0;
    if (s[0] < 0x80)
        return 1;
    size_t len = s[0] >= 0xc2 && s[0] < 0xe0   ? 2
                 : s[0] >= 0xe0 && s[0] < 0xf0 ? 3
                 : s[0] >= 0xf0 && s[0] < 0xf5 ? 4
                                               : 0;
    if (!len || len > n)
        return 0;
    for (size_t i = 1; i < len; i++)
        if ((s[i] & 0xc0) != 0x80)
            return 0;
    /* overlong forms, surrogates, beyond U+10FFFF */
    if ((s[0] == 0xe0 && s[1] < 0xa0) || (s[0] == 0xed && s[1] > 0x9f) || (s[0] == 0xf0 && s[1] < 0x90) ||
        (s[0] == 0xf4 && s[1] > 0x8f))
        return 0;
    return len;
}

/* ---- filing ---- */

static Diags *diags_of(Ctx *ctx)
{
    if (!ctx->diags) {
        Diags *all = NEW(ctx->program, Diags);
        map_init(&all->by_place, ctx->program);
        ctx->diags = all;
    }
    return ctx->diags;
}

static char *text_of(Ctx *ctx, const char *fmt, va_list ap)
{
    va_list again;
    va_copy(again, ap);
    char small[256];
    int n = vsnprintf(small, sizeof small, fmt, ap);
    size_t len = n > 0 ? (size_t)n : 0;
    char *s = arena_alloc(ctx->program, len + 1);
    if (len < sizeof small)
        memcpy(s, small, len);
    else
        vsnprintf(s, len + 1, fmt, again);
    va_end(again);
    return s;
}

static bool same_span(Span a, Span b) { return a.file == b.file && a.lo == b.lo && a.hi == b.hi; }

/* A key of by_place, never 0. */
static uintptr_t place_of(Span at) { return ((uintptr_t)at.file << 32 | (uintptr_t)at.lo) + 1; }

/* Those of a place are chained, so many warnings take no square of their number. */
static bool already_filed(const Diags *all, const char *code, Span at, const char *message)
{
    size_t i = (size_t)(uintptr_t)map_get(&all->by_place, place_of(at));
    for (; i; i = all->filed.v[i - 1].before) {
        const Diag *d = all->list.v[i - 1];
        if (same_span(d->labels.v[0].span, at) && !strcmp(d->code, code) && !strcmp(d->message, message))
            return true;
    }
    return false;
}

static Diag *file_diag(Ctx *ctx, Level level, const char *code, const char *lint, Span at, const char *label,
                       const char *fmt, va_list ap)
{
    Diags *all = diags_of(ctx);
    Diag *d = NEW(ctx->program, Diag);
    d->level = level;
    d->code = code ? code : "";
    d->lint = lint;
    d->message = text_of(ctx, fmt, ap);
    d->owner = all;
    DiagLabel first = {at, label ? arena_copy(ctx->program, label, strlen(label)) : "", true};
    vec_push(ctx->program, &d->labels, first);
    all->mistakes += level == LEVEL_ERROR;
    /* a duplicate is handed out all the same, so that the caller can decorate it, but not filed
     */
    if (already_filed(all, d->code, at, d->message))
        return d;
    if (level == LEVEL_ERROR && all->errors >= DIAG_LIMIT)
        ctx_raise(ctx, ST_INPUT, "stopped after %d errors", DIAG_LIMIT);
    vec_push(ctx->program, &all->list, d);
    void **last = map_at(&all->by_place, place_of(at));
    Filed filed = {place_of(at), (size_t)(uintptr_t)*last};
    vec_push(ctx->program, &all->filed, filed);
    *last = (void *)(uintptr_t)all->list.n;
    all->errors += level == LEVEL_ERROR;
    all->warnings += level == LEVEL_WARNING;
    return d;
}

Diag *diag_error(Ctx *ctx, const char *code, Span at, const char *label, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    Diag *d = file_diag(ctx, LEVEL_ERROR, code, NULL, at, label, fmt, ap);
    va_end(ap);
    return d;
}

Diag *diag_warning(Ctx *ctx, const char *code, const char *lint, Span at, const char *label, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    Diag *d = file_diag(ctx, LEVEL_WARNING, code, lint, at, label, fmt, ap);
    va_end(ap);
    return d;
}

void diag_label(Ctx *ctx, Diag *d, Span at, const char *fmt, ...)
{
    if (!at.file)
        return;
    va_list ap;
    va_start(ap, fmt);
    DiagLabel label = {at, text_of(ctx, fmt, ap), false};
    va_end(ap);
    if (at.file == d->labels.v[0].span.file)
        vec_push(ctx->program, &d->labels, label);
    else
        vec_push(ctx->program, &d->related, label);
}

void diag_note(Ctx *ctx, Diag *d, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    const char *text = text_of(ctx, fmt, ap);
    va_end(ap);
    vec_push(ctx->program, &d->notes, text);
}

void diag_help(Ctx *ctx, Diag *d, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    DiagHelp help = {.text = text_of(ctx, fmt, ap), .replace = NO_SPAN};
    va_end(ap);
    vec_push(ctx->program, &d->helps, help);
}

void diag_fix(Ctx *ctx, Diag *d, Span replace, const char *with, Applicability how, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    DiagHelp help = {.text = text_of(ctx, fmt, ap), .replace = replace, .applicability = how};
    va_end(ap);
    help.with = arena_copy(ctx->program, with, strlen(with));
    vec_push(ctx->program, &d->helps, help);
}

void diag_related(Ctx *ctx, Diag *d, Span at, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    DiagLabel label = {at, text_of(ctx, fmt, ap), false};
    va_end(ap);
    vec_push(ctx->program, &d->related, label);
}

size_t diag_errors(const Ctx *ctx) { return ctx->diags ? ctx->diags->errors : 0; }

size_t diag_mistakes(const Ctx *ctx) { return ctx->diags ? ctx->diags->mistakes : 0; }

bool diag_only_checks(const Ctx *ctx, size_t from)
{
    for (size_t i = from; i < diag_count(ctx); i++) {
        const Diag *d = diag_get(ctx, i);
        if (d->level == LEVEL_ERROR && strcmp(d->code, "E0801") != 0)
            return false;
    }
    return true;
}

size_t diag_warnings(const Ctx *ctx) { return ctx->diags ? ctx->diags->warnings : 0; }

size_t diag_count(const Ctx *ctx) { return ctx->diags ? ctx->diags->list.n : 0; }

const Diag *diag_get(const Ctx *ctx, size_t i) { return i < diag_count(ctx) ? ctx->diags->list.v[i] : NULL; }

void diag_truncate(Ctx *ctx, size_t from)
{
    Diags *all = ctx->diags;
    while (all && all->list.n > from) {
        Level level = all->list.v[--all->list.n]->level;
        Filed filed = all->filed.v[--all->filed.n];
        *map_at(&all->by_place, filed.place) = (void *)(uintptr_t)filed.before;
        all->errors -= level == LEVEL_ERROR;
        all->warnings -= level == LEVEL_WARNING;
    }
}

/* ---- drawing ---- */

/* A label in one line of its source: columns and lengths count code points, from 0. */
typedef struct Mark {
    size_t line, col, len;
    const char *text;
    bool primary;
} Mark;

typedef struct Render {
    Ctx *ctx;
    Buf *out;
    bool color;
    int gutter; /* digits of the largest line number shown */
    Level level;
} Render;

enum { WIDE_LINE = 200, WINDOW = 160, WINDOW_LEFT = 60 };

static const char *const RESET = "\x1b[0m", *const BOLD = "\x1b[1m", *const BLUE = "\x1b[1;34m";

static const char *level_style(Level level)
{
    return level == LEVEL_ERROR ? "\x1b[1;31m" : level == LEVEL_WARNING ? "\x1b[1;33m" : BOLD;
}

static void style(Render *r, const char *sequence)
{
    if (r->color)
        buf_puts(r->out, sequence);
}

static void put_times(Buf *b, char c, size_t n)
{
    while (n-- > 0)
        buf_putc(b, c);
}

/* Columns [skip, skip + most) of a text. A tab is one space; what a terminal would act on, or
 * what is not UTF-8, is one replacement character: so every code point or stray byte is one
 * column. */
static void put_columns(Buf *b, const char *s, size_t n, size_t skip, size_t most)
{
    size_t col = 0;
    for (size_t i = 0; i < n && col < skip + most; col++) {
        const char *shown;
        size_t shown_n, step = utf8_plain(s + i, n - i, &shown, &shown_n);
        if (col >= skip && (s[i] == '\t' || s[i] == '\n'))
            buf_puts(b, s[i] == '\t' ? " " : UTF8_REPLACEMENT);
        else if (col >= skip)
            buf_put(b, shown, shown_n);
        i += step;
    }
}

static size_t columns(const char *s, size_t n)
{
    size_t col = 0;
    for (size_t i = 0; i < n; col++) {
        size_t step = utf8_step(s + i, n - i);
        i += step ? step : 1;
    }
    return col;
}

static void line_bounds(const SourceText *s, size_t line, size_t *lo, size_t *hi)
{
    *lo = s->line[line];
    *hi = line + 1 < s->lines ? s->line[line + 1] - 1 : s->n;
    if (*hi > *lo && s->text[*hi - 1] == '\r')
        --*hi;
}

/* A span over several lines is marked on its first line, up to the line's end. */
static Mark mark_of(Ctx *ctx, SourceText *s, const DiagLabel *label)
{
    size_t lo = label->span.lo < s->n ? label->span.lo : s->n;
    size_t hi = label->span.hi < s->n ? label->span.hi : s->n;
    size_t line = line_of(ctx, s, lo), first, last;
    line_bounds(s, line, &first, &last);
    if (hi > last)
        hi = last;
    Mark m = {.line = line, .text = label->text, .primary = label->primary};
    m.col = columns(s->text + first, lo - first);
    m.len = hi > lo ? columns(s->text + lo, hi - lo) : 0;
    if (m.len == 0)
        m.len = 1;
    return m;
}

static void put_gutter(Render *r, size_t number)
{
    style(r, BLUE);
    if (number)
        buf_printf(r->out, "%*zu |", r->gutter, number);
    else
        buf_printf(r->out, "%*s |", r->gutter, "");
    style(r, RESET);
}

static void put_place(Render *r, Span span)
{
    LineCol at = source_position(r->ctx, span.file, span.lo);
    style(r, BLUE);
    buf_printf(r->out, "%*s-->", r->gutter, "");
    style(r, RESET);
    buf_putc(r->out, ' ');
    const char *path = source_path(r->ctx, span.file);
    put_columns(r->out, path, strlen(path), 0, SIZE_MAX / 2);
    buf_printf(r->out, ":%u:%u\n", at.line, at.column);
    put_gutter(r, 0);
    buf_putc(r->out, '\n');
}

/* One source line; a very long one is cut to a window around `focus`. The marks are moved
 * along. */
static void put_source_line(Render *r, const SourceText *s, size_t line, Mark *row, size_t n, size_t focus)
{
    size_t lo, hi, skip = 0, most = SIZE_MAX / 2;
    line_bounds(s, line, &lo, &hi);
    size_t total = columns(s->text + lo, hi - lo);
    if (total > WIDE_LINE) {
        skip = focus > WINDOW_LEFT ? focus - WINDOW_LEFT : 0;
        most = WINDOW;
    }
    put_gutter(r, line + 1);
    if (total)
        buf_putc(r->out, ' ');
    if (skip)
        buf_puts(r->out, "...");
    hi = s->shown && strlen(s->shown) < hi ? strlen(s->shown) : hi;
    put_columns(r->out, (s->shown ? s->shown : s->text) + lo, hi - lo, skip, most);
    if (total > skip && total - skip > most)
        buf_puts(r->out, "...");
    buf_putc(r->out, '\n');
    for (size_t i = 0; i < n && most == WINDOW; i++) {
        size_t end = row[i].col + row[i].len;
        end = end > skip + most ? skip + most : end;
        size_t col = row[i].col < skip ? skip : row[i].col;
        col = col > skip + most ? skip + most : col;
        row[i].len = end > col ? end - col : 1;
        row[i].col = col - skip + (skip ? 3 : 0);
    }
}

static void put_label_text(Render *r, const Mark *m)
{
    style(r, m->primary ? level_style(r->level) : BLUE);
    put_columns(r->out, m->text, strlen(m->text), 0, SIZE_MAX / 2);
    style(r, RESET);
}

/* The carets of all marks of a line; where two overlap the primary one wins. */
static void put_carets(Render *r, const Mark *row, size_t n)
{
    size_t width = 0;
    for (size_t i = 0; i < n; i++)
        if (row[i].col + row[i].len > width)
            width = row[i].col + row[i].len;
    put_gutter(r, 0);
    buf_putc(r->out, ' ');
    char now = ' ';
    for (size_t c = 0; c < width; c++) {
        char want = ' ';
        for (size_t i = 0; i < n; i++)
            if (c >= row[i].col && c < row[i].col + row[i].len && want != '^')
                want = row[i].primary ? '^' : '-';
        if (want != now && now != ' ')
            style(r, RESET);
        if (want != now && want != ' ')
            style(r, want == '^' ? level_style(r->level) : BLUE);
        buf_putc(r->out, want);
        now = want;
    }
    style(r, RESET);
}

static void put_row(Render *r, const SourceText *s, Mark *row, size_t n)
{
    size_t focus = row[0].col;
    for (size_t i = 0; i < n; i++)
        if (row[i].primary)
            focus = row[i].col;
    put_source_line(r, s, row[0].line, row, n, focus);
    put_carets(r, row, n);
    if (row[n - 1].text[0]) {
        buf_putc(r->out, ' ');
        put_label_text(r, &row[n - 1]);
    }
    buf_putc(r->out, '\n');
    for (size_t i = n - 1; i-- > 0;) {
        if (!row[i].text[0])
            continue;
        put_gutter(r, 0);
        buf_putc(r->out, ' ');
        put_times(r->out, ' ', row[i].col);
        put_label_text(r, &row[i]);
        buf_putc(r->out, '\n');
    }
}

static void sort_marks(Mark *m, size_t n)
{
    for (size_t i = 1; i < n; i++)
        for (size_t j = i;
             j > 0 && (m[j].line < m[j - 1].line || (m[j].line == m[j - 1].line && m[j].col < m[j - 1].col)); j--) {
            Mark t = m[j];
            m[j] = m[j - 1];
            m[j - 1] = t;
        }
}

/* All labels of the primary file, in the order of the text. A gap of one line is shown, a
 * longer one is three dots. */
static void put_snippet(Render *r, const Diag *d, SourceText *s)
{
    Mark *marks = NEW_ARRAY(r->out->arena, Mark, d->labels.n);
    size_t n = d->labels.n;
    for (size_t i = 0; i < n; i++)
        marks[i] = mark_of(r->ctx, s, &d->labels.v[i]);
    sort_marks(marks, n);
    for (size_t i = 0, j; i < n; i = j) {
        for (j = i + 1; j < n && marks[j].line == marks[i].line;)
            j++;
        if (i > 0 && marks[i].line == marks[i - 1].line + 2)
            put_source_line(r, s, marks[i].line - 1, NULL, 0, 0);
        else if (i > 0 && marks[i].line > marks[i - 1].line + 2)
            buf_puts(r->out, "...\n");
        put_row(r, s, marks + i, j - i);
    }
    put_gutter(r, 0);
    buf_putc(r->out, '\n');
}

static void put_remark(Render *r, const char *kind, const char *text)
{
    style(r, BLUE);
    buf_printf(r->out, "%*s =", r->gutter, "");
    style(r, RESET);
    buf_putc(r->out, ' ');
    style(r, BOLD);
    buf_printf(r->out, "%s:", kind);
    style(r, RESET);
    buf_putc(r->out, ' ');
    for (;;) {
        size_t n = strcspn(text, "\n");
        put_columns(r->out, text, n, 0, SIZE_MAX / 2);
        buf_putc(r->out, '\n');
        if (!text[n])
            return;
        text += n + 1;
        put_times(r->out, ' ', (size_t)r->gutter + 9);
    }
}

static void put_related(Render *r, const DiagLabel *label)
{
    style(r, BOLD);
    buf_puts(r->out, "note");
    style(r, RESET);
    buf_puts(r->out, ": ");
    put_columns(r->out, label->text, strlen(label->text), 0, SIZE_MAX / 2);
    buf_putc(r->out, '\n');
    SourceText *s = source_get(r->ctx, label->span.file);
    if (!s)
        return;
    put_place(r, label->span);
    DiagLabel bare = {label->span, "", false};
    Mark m = mark_of(r->ctx, s, &bare);
    put_row(r, s, &m, 1);
}

static int gutter_width(Ctx *ctx, const Diag *d)
{
    uint32_t most = 1;
    for (size_t i = 0; i < d->labels.n + d->related.n; i++) {
        const DiagLabel *l = i < d->labels.n ? &d->labels.v[i] : &d->related.v[i - d->labels.n];
        uint32_t line = source_position(ctx, l->span.file, l->span.lo).line;
        most = line > most ? line : most;
    }
    return snprintf(NULL, 0, "%u", most);
}

static const char *level_word(Level level)
{
    return level == LEVEL_ERROR ? "error" : level == LEVEL_WARNING ? "warning" : "note";
}

void diag_render(Ctx *ctx, Buf *out, const Diag *d, bool color)
{
    Render r = {ctx, out, color, gutter_width(ctx, d), d->level};
    style(&r, level_style(d->level));
    buf_puts(out, level_word(d->level));
    if (d->code[0])
        buf_printf(out, "[%s]", d->code);
    style(&r, RESET);
    style(&r, BOLD);
    buf_puts(out, ": ");
    put_columns(out, d->message, strlen(d->message), 0, SIZE_MAX / 2);
    style(&r, RESET);
    buf_putc(out, '\n');
    SourceText *s = source_get(ctx, d->labels.v[0].span.file);
    if (s) {
        put_place(&r, d->labels.v[0].span);
        put_snippet(&r, d, s);
    }
    for (size_t i = 0; i < d->notes.n; i++)
        put_remark(&r, "note", d->notes.v[i]);
    for (size_t i = 0; i < d->helps.n; i++)
        put_remark(&r, "help", d->helps.v[i].text);
    for (size_t i = 0; i < d->related.n; i++)
        put_related(&r, &d->related.v[i]);
}

void diag_render_all(Ctx *ctx, Buf *out, bool color)
{
    for (size_t i = 0; i < diag_count(ctx); i++) {
        if (i)
            buf_putc(out, '\n');
        diag_render(ctx, out, diag_get(ctx, i), color);
    }
}

/* ---- JSON ---- */

/* JSON must be UTF-8 whatever a path or a message holds. */
static void json_text(Buf *out, const char *s)
{
    size_t n = strlen(s), bad = 0;
    for (size_t i = 0, step; i < n; i += step ? step : 1) {
        step = utf8_step(s + i, n - i);
        bad += step == 0;
    }
    if (!bad) {
        buf_json_string(out, s, n);
        return;
    }
    Buf clean = buf_new(out->arena);
    for (size_t i = 0, step; i < n; i += step ? step : 1) {
        step = utf8_step(s + i, n - i);
        if (step)
            buf_put(&clean, s + i, step);
        else
            buf_puts(&clean, "\xef\xbf\xbd");
    }
    buf_json_string(out, clean.s, clean.n);
}

static void json_span(Ctx *ctx, Buf *out, const DiagLabel *l)
{
    LineCol a = source_position(ctx, l->span.file, l->span.lo);
    LineCol b = source_position(ctx, l->span.file, l->span.hi);
    buf_puts(out, "{\"file\":");
    json_text(out, source_path(ctx, l->span.file));
    buf_printf(out, ",\"line\":%u,\"column\":%u,\"end_line\":%u,\"end_column\":%u", a.line, a.column, b.line, b.column);
    buf_printf(out, ",\"primary\":%s,\"label\":", l->primary ? "true" : "false");
    json_text(out, l->text);
    buf_putc(out, '}');
}

static void json_help(Ctx *ctx, Buf *out, const DiagHelp *h)
{
    buf_puts(out, "{\"text\":");
    json_text(out, h->text);
    if (!h->replace.file) {
        buf_puts(out, ",\"replace\":null}");
        return;
    }
    LineCol a = source_position(ctx, h->replace.file, h->replace.lo);
    LineCol b = source_position(ctx, h->replace.file, h->replace.hi);
    buf_printf(out, ",\"replace\":{\"line\":%u,\"column\":%u", a.line, a.column);
    if (b.line != a.line)
        buf_printf(out, ",\"end_line\":%u", b.line);
    buf_printf(out, ",\"end_column\":%u,\"with\":", b.column);
    json_text(out, h->with);
    buf_printf(out, "},\"applicability\":\"%s\"}",
               h->applicability == FIX_CERTAIN ? "machine_applicable" : "maybe_incorrect");
}

void diag_render_json(Ctx *ctx, Buf *out, const Diag *d)
{
    buf_printf(out, "{\"v\":1,\"event\":\"diagnostic\",\"level\":\"%s\",\"code\":", level_word(d->level));
    json_text(out, d->code);
    buf_puts(out, ",\"lint\":");
    if (d->lint)
        json_text(out, d->lint);
    else
        buf_puts(out, "null");
    buf_puts(out, ",\"message\":");
    json_text(out, d->message);
    buf_puts(out, ",\"spans\":[");
    const char *comma = "";
    for (size_t i = 0; i < d->labels.n; i++) {
        if (!source_get(ctx, d->labels.v[i].span.file))
            continue;
        buf_puts(out, comma);
        json_span(ctx, out, &d->labels.v[i]);
        comma = ",";
    }
    buf_puts(out, "],\"notes\":[");
    for (size_t i = 0; i < d->notes.n; i++) {
        buf_puts(out, i ? "," : "");
        json_text(out, d->notes.v[i]);
    }
    buf_puts(out, "],\"help\":[");
    for (size_t i = 0; i < d->helps.n; i++) {
        buf_puts(out, i ? "," : "");
        json_help(ctx, out, &d->helps.v[i]);
    }
    buf_putc(out, ']');
    if (d->related.n)
        buf_puts(out, ",\"related\":[");
    for (size_t i = 0; i < d->related.n; i++) {
        buf_puts(out, i ? "," : "");
        json_span(ctx, out, &d->related.v[i]);
    }
    buf_puts(out, d->related.n ? "]}\n" : "}\n");
}
