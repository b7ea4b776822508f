/* document.c - the texts that an editor has open, their edits, and positions in them.
 *
 * In:  notifications.   Out: texts, byte for byte what the editor shows.
 * The one idea: a position beyond a line or a text is its end, as the protocol says, so no edit can miss the text.
 */
#include "lsp.h"

#include <stdio.h>

/* ---- positions ---- */

TextLines lines_of(Arena *a, const char *text, size_t n, Encoding encoding)
{
    TextLines l = {.text = text, .n = n, .count = 1, .encoding = encoding};
    for (int pass = 0; pass < 2; pass++) {
        size_t count = 1;
        for (size_t i = 0; i < n; i++) {
            if (text[i] != '\n' && (text[i] != '\r' || (i + 1 < n && text[i + 1] == '\n')))
                continue;
            if (pass)
                l.at[count] = i + 1;
            count++;
        }
        l.count = count;
        if (!pass)
            l.at = NEW_ARRAY(a, size_t, count);
    }
    return l;
}

/* Where the line ends, without what ends it. */
static size_t line_end(const TextLines *l, size_t line)
{
    size_t end = line + 1 < l->count ? l->at[line + 1] : l->n;
    if (line + 1 < l->count) {
        end--;
        if (l->text[end] == '\n' && end > l->at[line] && l->text[end - 1] == '\r')
            end--;
    }
    return end;
}

/* A character: its bytes, and what it counts. */
static size_t character(const TextLines *l, size_t at, size_t end, size_t *units)
{
    uint32_t code;
    size_t n = utf8_read(l->text + at, end - at, &code);
    n = n ? n : 1;
    *units = l->encoding == IN_UTF8 ? n : l->encoding == IN_UTF16 && n == 4 ? 2 : 1;
    return n;
}

size_t lines_offset(const TextLines *l, int64_t line, int64_t wanted)
{
    if (line < 0)
        return 0;
    if ((uint64_t)line >= l->count)
        return l->n;
    size_t at = l->at[line], end = line_end(l, (size_t)line), units, n;
    for (int64_t seen = 0; at < end; at += n) {
        n = character(l, at, end, &units);
        seen += (int64_t)units;
        if (seen > wanted)
            break;
    }
    return at;
}

bool lines_read(const TextLines *l, const Json *position, size_t *offset)
{
    const Json *line = json_get(position, "line"), *column = json_get(position, "character");
    if (!line || !column || line->kind != JSON_NUMBER || column->kind != JSON_NUMBER || !line->whole || !column->whole)
        return false;
    *offset = lines_offset(l, line->integer, column->integer);
    return true;
}

void put_position(JsonText *t, const char *key, const TextLines *l, size_t offset)
{
    size_t lo = 0, hi = l->count, column = 0, units, n;
    offset = offset < l->n ? offset : l->n;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        *(l->at[mid] <= offset ? &lo : &hi) = mid;
    }
    for (size_t at = l->at[lo]; at < offset; at += n, column += units)
        n = character(l, at, l->n, &units);
    json_open(t, key, '{');
    json_put_integer(t, "line", (int64_t)lo);
    json_put_integer(t, "character", (int64_t)column);
    json_close(t, '}');
}

void put_range(JsonText *t, const char *key, const TextLines *l, size_t lo, size_t hi)
{
    json_open(t, key, '{');
    put_position(t, "start", l, lo);
    put_position(t, "end", l, hi);
    json_close(t, '}');
}

/* ---- names of files ---- */

static int hex(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : (c | 32) >= 'a' && (c | 32) <= 'f' ? (c | 32) - 'a' + 10 : -1;
}

char *path_of_uri(Arena *a, const char *uri)
{
    if (strncmp(uri, "file://", 7) != 0)
        return NULL;
    const char *p = strchr(uri + 7, '/'); /* behind the host, which is this one */
    if (!p)
        return NULL;
    Buf b = buf_new(a);
    for (; *p; p++) {
        int high = *p == '%' ? hex(p[1]) : -1, low = high >= 0 ? hex(p[2]) : -1;
        char c = low >= 0 ? (char)(high * 16 + low) : *p;
        if (!c)
            return NULL;
        buf_putc(&b, c);
        p += low >= 0 ? 2 : 0;
    }
    return b.s;
}

char *uri_of_path(Arena *a, const char *path)
{
    Buf b = buf_new(a);
    buf_puts(&b, "file://");
    for (const char *p = path; *p; p++) {
        bool plain = (*p >= '0' && *p <= '9') || ((*p | 32) >= 'a' && (*p | 32) <= 'z') || strchr("/-_.~", *p);
        if (plain)
            buf_putc(&b, *p);
        else
            buf_printf(&b, "%%%02X", (unsigned char)*p);
    }
    return b.s;
}

/* ---- open documents ---- */

Document *document_find(Server *s, const char *uri)
{
    Document *d = s->document;
    while (d && strcmp(d->uri, uri) != 0)
        d = d->next;
    return d;
}

Document *document_of_path(Server *s, const char *path)
{
    Document *d = s->document;
    while (d && strcmp(d->path, path) != 0)
        d = d->next;
    return d;
}

void facts_free(Facts *f)
{
    if (f)
        ctx_free(f->ctx);
}

static char *keep(Server *s, const char *text)
{
    size_t n = strlen(text) + 1;
    return memcpy(ctx_alloc(s->ctx, n), text, n);
}

static void is_stale(Document *d)
{
    d->stale = true;
    d->known = false;
}

/* What imports the file has another text now. */
static void text_changed(Server *s, const char *path)
{
    for (Document *d = s->document; d; d = d->next)
        for (size_t i = 0; d->facts && i < d->facts->file.n; i++)
            if (strcmp(d->facts->file.v[i], path) == 0)
                is_stale(d);
}

/* Bytes lo..hi become n others: what was said of other bytes moves along, the rest is gone. */
static void move_late(Facts *f, size_t lo, size_t hi, size_t n)
{
    size_t kept = 0;
    for (size_t i = 0; f && i < f->late.n; i++) {
        Remark m = f->late.v[i];
        if (m.lo >= hi) {
            m.lo = m.lo - hi + lo + n;
            m.hi = m.hi - hi + lo + n;
        } else if (m.hi > lo) {
            continue;
        }
        f->late.v[kept++] = m;
    }
    if (f)
        f->late.n = kept;
}

/* Bytes lo..hi become `with`. */
static void replace(Server *s, Document *d, size_t lo, size_t hi, const char *with, size_t n)
{
    size_t size = d->n - (hi - lo) + n;
    char *text = ctx_alloc(s->ctx, size + 1);
    memcpy(text, d->text, lo);
    memcpy(text + lo, with, n);
    memcpy(text + lo + n, d->text + hi, d->n - hi);
    ctx_release(s->ctx, d->text);
    d->text = text;
    d->n = size;
    move_late(d->facts, lo, hi, n);
    is_stale(d);
    s->counts.changes++;
}

static void read_version(Document *d, const Json *document)
{
    const Json *v = json_get(document, "version");
    d->has_version = v && v->kind == JSON_NUMBER && v->whole;
    d->version = d->has_version ? v->integer : 0;
}

static void drop(Server *s, Document *d)
{
    for (Document **at = &s->document; *at; at = &(*at)->next)
        if (*at == d) {
            *at = d->next;
            break;
        }
    facts_free(d->facts);
    ctx_release(s->ctx, d->uri);
    ctx_release(s->ctx, d->path);
    ctx_release(s->ctx, d->text);
    ctx_release(s->ctx, d);
}

void document_open(Request *r)
{
    Server *s = r->server;
    const Json *given = json_get(r->params, "textDocument"), *text = json_get(given, "text");
    const char *uri = json_string(given, "uri"), *path;
    if (!uri || !text || text->kind != JSON_STRING)
        return;
    Document *d = document_find(s, uri);
    if (!d) {
        d = ctx_alloc(s->ctx, sizeof *d);
        path = path_of_uri(r->arena, uri);
        d->uri = keep(s, uri);
        d->path = keep(s, path ? path : "-");
        d->text = ctx_alloc(s->ctx, 1);
        d->next = s->document;
        s->document = d;
    }
    read_version(d, given);
    replace(s, d, 0, d->n, text->s, text->n);
    text_changed(s, d->path);
}

/* A change without a range is the whole text. One that is no change is passed over. */
static void change_one(Request *r, Document *d, const Json *change)
{
    const Json *range = json_get(change, "range"), *text = json_get(change, "text");
    size_t lo = 0, hi = d->n;
    if (!text || text->kind != JSON_STRING)
        return;
    if (range && range->kind != JSON_NULL) {
        TextLines l = lines_of(r->arena, d->text, d->n, r->server->encoding);
        if (!lines_read(&l, json_get(range, "start"), &lo) || !lines_read(&l, json_get(range, "end"), &hi))
            return;
    }
    replace(r->server, d, lo < hi ? lo : hi, lo < hi ? hi : lo, text->s, text->n);
}

void document_change(Request *r)
{
    Document *d = r->document;
    const Json *changes = json_get(r->params, "contentChanges");
    if (!d || !changes || changes->kind != JSON_ARRAY)
        return;
    read_version(d, json_get(r->params, "textDocument"));
    for (const Json *c = changes->first; c; c = c->next) {
        ArenaMark mark = arena_mark(r->arena);
        change_one(r, d, c);
        arena_reset(r->arena, mark);
    }
    text_changed(r->server, d->path);
}

void document_save(Request *r)
{
    if (r->document)
        text_changed(r->server, r->document->path);
}

void document_close(Request *r)
{
    Document *d = r->document;
    if (!d)
        return;
    char *path = arena_copy(r->arena, d->path, strlen(d->path)), *uri = arena_copy(r->arena, d->uri, strlen(d->uri));
    drop(r->server, d);
    text_changed(r->server, path);
    publish_none(r, uri);
}

void documents_of_disk(Request *r)
{
    for (Document *d = r->server->document; d; d = d->next)
        if (d->facts && d->facts->file.n > 0)
            is_stale(d);
}

void documents_free(Server *s)
{
    while (s->document)
        drop(s, s->document);
}
