/* analyse.c - checks a document, says what is wrong with it, and keeps what requests will ask of it.
 *
 * In:  a document whose text has changed.   Out: publishDiagnostics; the document's Facts.
 * The one idea: a check is `vwn check`'s own, in a context that is gone when it ends. It gets no more memory once the editor
 * has sent something: then it ends at once, and is done again when there is nothing else to do. What takes long comes last, so
 * before it what was said so far is published, with what the check before this one said of the rest.
 */
#include "compiler/file/check_unit.h"
#include "compiler/front/check.h"
#include "lsp.h"

typedef struct DocumentCheck {
    Server *server;
    Document *document;
    Ctx *ctx;
    Unit *unit;
    uint32_t source; /* of the document's own text */
    TextLines lines;
    OpenTexts texts;
    bool early;   /* it is not done yet */
    size_t first; /* messages of what comes last begin there; SIZE_MAX: it did not come to that */
} DocumentCheck;

static void *check_resize(void *user, void *p, size_t old_size, size_t new_size)
{
    Server *s = user;
    if (!s->given_up && new_size > old_size && s->options.waiting && s->options.waiting(s->options.waiting_user))
        s->given_up = true;
    if (s->given_up && new_size > old_size)
        return NULL;
    return s->mem.resize(s->mem.user, p, old_size, new_size);
}

const char *text_of_open(void *user, const char *path, size_t *n)
{
    OpenTexts *texts = user;
    const Document *d = document_of_path(texts->server, path);
    vec_push(texts->arena, &texts->wanted, path);
    if (!d)
        return NULL;
    *n = d->n;
    return d->text;
}

static const char *text_for_check(void *user, const char *path, size_t *n)
{
    DocumentCheck *c = user;
    return text_of_open(&c->texts, path, n);
}

/* ---- what is said ---- */

static bool in_document(const DocumentCheck *c, Span s) { return s.file && s.file == c->source; }

/* Where the document imports the file of `source`, directly or not, or is a variant of it; NO_SPAN: it does and is not. */
static Span import_of(const File *f, uint32_t source, int depth)
{
    enum { DEEPEST = 64 };
    for (const Base *b = f ? f->base : NULL; b && b->next; b = b->next)
        if (b->next->ast->span.file == source)
            return f->base->node->kid[1]->span;
    for (size_t i = 0; f && depth < DEEPEST && i < f->imports.n; i++)
        if (f->imports.v[i].file->source == source || import_of(f->imports.v[i].file, source, depth + 1).file)
            return f->imports.v[i].span;
    return NO_SPAN;
}

static Span place_of(const DocumentCheck *c, const Diag *d)
{
    Span at = d->labels.v[0].span;
    if (in_document(c, at))
        return at;
    for (size_t i = 0; i < d->labels.n + d->related.n; i++) {
        Span s = i < d->labels.n ? d->labels.v[i].span : d->related.v[i - d->labels.n].span;
        if (in_document(c, s))
            return s;
    }
    return at.file && c->unit && c->unit->file ? import_of(c->unit->file, at.file, 0) : NO_SPAN;
}

/* "std/x.vwn:3:5" */
static void put_place(Buf *b, Ctx *ctx, Span s)
{
    LineCol at = source_position(ctx, s.file, s.lo);
    buf_printf(b, "%s:%u:%u", source_path(ctx, s.file), at.line, at.column);
}

/* Whether an editor can open the file, so that a place in it is a link. */
static bool can_open(const DocumentCheck *c, Span s)
{
    return in_document(c, s) || (s.file && source_path(c->ctx, s.file)[0] == '/');
}

static void put_also(Buf *b, const DocumentCheck *c, const DiagLabel *l)
{
    if (!l->span.file || (c->server->related && can_open(c, l->span)))
        return;
    buf_printf(b, "\nnote: %s%s(", l->text, *l->text ? " " : "");
    put_place(b, c->ctx, l->span);
    buf_putc(b, ')');
}

static const char *message_of(const DocumentCheck *c, const Diag *d)
{
    Buf b = buf_new(c->ctx->program);
    const DiagLabel *first = &d->labels.v[0];
    buf_puts(&b, d->message);
    if (in_document(c, first->span) && *first->text)
        buf_printf(&b, "\n%s", first->text);
    if (!in_document(c, first->span))
        put_also(&b, c, first);
    for (size_t i = 1; i < d->labels.n; i++)
        put_also(&b, c, &d->labels.v[i]);
    for (size_t i = 0; i < d->notes.n; i++)
        buf_printf(&b, "\nnote: %s", d->notes.v[i]);
    for (size_t i = 0; i < d->helps.n; i++)
        buf_printf(&b, "\nhelp: %s", d->helps.v[i].text);
    for (size_t i = 0; i < d->related.n; i++)
        put_also(&b, c, &d->related.v[i]);
    return b.s;
}

static void put_link(JsonText *t, const DocumentCheck *c, const DiagLabel *l, bool *any)
{
    if (!can_open(c, l->span))
        return;
    if (!*any)
        json_open(t, NULL, '[');
    *any = true;
    size_t n;
    const char *text = source_text(c->ctx, l->span.file, &n);
    bool own = in_document(c, l->span);
    TextLines lines = own ? c->lines : lines_of(c->ctx->program, text, n, c->server->encoding);
    json_open(t, NULL, '{');
    json_open(t, "location", '{');
    json_put_string(t, "uri", own ? c->document->uri : uri_of_path(c->ctx->program, source_path(c->ctx, l->span.file)));
    put_range(t, "range", &lines, l->span.lo, l->span.hi);
    json_close(t, '}');
    json_put_string(t, "message", *l->text ? l->text : "here");
    json_close(t, '}');
}

/* The other places, as JSON; NULL: there are none, or the editor does not show them. */
static const char *links_of(const DocumentCheck *c, const Diag *d)
{
    enum { ROOM = 1024 };
    Arena *a = c->ctx->program;
    Region memory = arena_region(a);
    JsonText t;
    bool any = false;
    json_begin(&t, arena_take(a, ROOM), ROOM);
    t.more = &memory;
    for (size_t i = in_document(c, d->labels.v[0].span); c->server->related && i < d->labels.n; i++)
        put_link(&t, c, &d->labels.v[i], &any);
    for (size_t i = 0; c->server->related && i < d->related.n; i++)
        put_link(&t, c, &d->related.v[i], &any);
    if (any)
        json_close(&t, ']');
    return any ? t.s : NULL;
}

static Remark said_of(const DocumentCheck *c, const Diag *d)
{
    Span at = place_of(c, d);
    return (Remark){.severity = d->level == LEVEL_ERROR     ? 1
                                : d->level == LEVEL_WARNING ? 2
                                                            : 3,
                    .code = d->code,
                    .message = message_of(c, d),
                    .links = links_of(c, d),
                    .lo = at.lo,
                    .hi = at.hi};
}

static void put_diagnostic(JsonText *t, const DocumentCheck *c, const Remark *m)
{
    json_open(t, NULL, '{');
    put_range(t, "range", &c->lines, m->lo, m->hi);
    json_put_integer(t, "severity", m->severity);
    json_put_string(t, "code", m->code);
    json_put_string(t, "source", "vwn");
    json_put_string(t, "message", m->message);
    if (m->links)
        json_put_raw(t, "relatedInformation", m->links);
    json_close(t, '}');
}

static void put_failure(JsonText *t, const DocumentCheck *c)
{
    json_open(t, NULL, '{');
    put_range(t, "range", &c->lines, 0, 0);
    json_put_integer(t, "severity", 1);
    json_put_string(t, "source", "vwn");
    json_put_string(t, "message", c->ctx->message);
    json_close(t, '}');
}

static void publish(Server *s, DocumentCheck *c, Status status)
{
    Request r = {.server = s, .ctx = c->ctx, .arena = c->ctx->program};
    message_begin(&r);
    json_put_string(&r.t, "method", "textDocument/publishDiagnostics");
    json_open(&r.t, "params", '{');
    json_put_string(&r.t, "uri", c->document->uri);
    if (c->document->has_version)
        json_put_integer(&r.t, "version", c->document->version);
    json_open(&r.t, "diagnostics", '[');
    for (size_t i = 0; i < diag_count(c->ctx); i++) {
        Remark m = said_of(c, diag_get(c->ctx, i));
        put_diagnostic(&r.t, c, &m);
    }
    const Facts *had = c->early ? c->document->facts : NULL;
    for (size_t i = 0; had && i < had->late.n; i++)
        put_diagnostic(&r.t, c, &had->late.v[i]);
    if (status != ST_OK && status != ST_INPUT && status != ST_CHECK)
        put_failure(&r.t, c);
    json_close(&r.t, ']');
    json_close(&r.t, '}');
    message_send(&r);
}

void publish_none(Request *r, const char *uri)
{
    Request note = {.server = r->server, .ctx = r->ctx, .arena = r->arena};
    message_begin(&note);
    json_put_string(&note.t, "method", "textDocument/publishDiagnostics");
    json_open(&note.t, "params", '{');
    json_put_string(&note.t, "uri", uri);
    json_open(&note.t, "diagnostics", '[');
    json_close(&note.t, ']');
    json_close(&note.t, '}');
    message_send(&note);
}

/* ---- what is kept ---- */

static const char *kept(const Facts *f, const char *text) { return arena_copy(f->ctx->program, text, strlen(text)); }

static void keep_mends(Facts *f, const DocumentCheck *c)
{
    for (size_t i = 0; i < diag_count(c->ctx); i++) {
        const Diag *d = diag_get(c->ctx, i);
        Span at = place_of(c, d);
        for (size_t k = 0; k < d->helps.n; k++) {
            const DiagHelp *h = &d->helps.v[k];
            if (!in_document(c, h->replace) || !h->with)
                continue;
            Mend m = {.code = kept(f, d->code),
                      .message = kept(f, d->message),
                      .title = kept(f, h->text),
                      .with = kept(f, h->with),
                      .lo = at.lo,
                      .hi = at.hi,
                      .from = h->replace.lo,
                      .to = h->replace.hi,
                      .certain = h->applicability == FIX_CERTAIN};
            vec_push(f->ctx->program, &f->mend, m);
        }
    }
}

/* Of what the check has not come to, what was said before holds. */
static void keep_late(Facts *f, const DocumentCheck *c)
{
    const Facts *had = c->first == SIZE_MAX || c->early ? c->document->facts : NULL;
    for (size_t i = 0; had && i < had->late.n; i++)
        vec_push(f->ctx->program, &f->late, had->late.v[i]);
    for (size_t i = c->early ? SIZE_MAX : c->first; i < diag_count(c->ctx); i++)
        vec_push(f->ctx->program, &f->late, said_of(c, diag_get(c->ctx, i)));
    for (size_t i = 0; i < f->late.n; i++) {
        Remark *m = &f->late.v[i];
        m->code = kept(f, m->code);
        m->message = kept(f, m->message);
        m->links = m->links ? kept(f, m->links) : NULL;
    }
}

static Facts *facts_new(Ctx *ctx, const DocumentCheck *c)
{
    Facts *f = NEW(ctx->program, Facts);
    f->ctx = ctx;
    keep_mends(f, c);
    keep_late(f, c);
    for (size_t i = 0; c->unit && i < c->unit->seen.n; i++) {
        SeenValue s = c->unit->seen.v[i];
        s.text = kept(f, s.text);
        vec_push(ctx->program, &f->seen, s);
    }
    for (size_t i = 0; i < c->texts.wanted.n; i++)
        vec_push(ctx->program, &f->file, kept(f, c->texts.wanted.v[i]));
    return f;
}

static void keep_facts(Server *s, const DocumentCheck *c)
{
    Ctx *ctx = ctx_new(&s->mem);
    CtxGuard guard;
    Facts *volatile f = NULL;
    if (ctx && CTX_TRY(ctx, &guard)) {
        f = facts_new(ctx, c);
        ctx_leave(ctx, &guard);
    } else if (ctx) {
        ctx_free(ctx); /* no memory: what is known of the text before is known no more, either */
    }
    facts_free(c->document->facts);
    c->document->facts = f;
    c->document->known = f != NULL;
}

/* ---- checking ---- */

static void tell(DocumentCheck *c, Status status)
{
    Server *s = c->server;
    size_t n;
    c->source = source_text(c->ctx, 1, &n) ? 1 : 0; /* the document's text is the first that a check reads */
    c->lines = lines_of(c->ctx->program, c->document->text, c->document->n, s->encoding);
    publish(s, c, status);
    keep_facts(s, c);
}

static void tell_so_far(void *user, Unit *unit)
{
    DocumentCheck *c = user;
    c->unit = unit;
    c->first = diag_count(c->ctx);
    c->early = true;
    tell(c, ST_OK);
    c->early = false;
    c->server->counts.early++;
}

static Status run_checks(DocumentCheck *c)
{
    const Document *d = c->document;
    CheckOptions how = {.path = d->path,
                        .text = d->text,
                        .text_length = d->n,
                        .remember = true,
                        .text_of = text_for_check,
                        .so_far = tell_so_far,
                        .user = c};
    CtxGuard guard;
    Status st = ST_OK;
    if (CTX_TRY(c->ctx, &guard)) {
        c->unit = check_file(c->ctx, &how);
        ctx_leave(c->ctx, &guard);
    } else {
        st = c->ctx->raised;
    }
    return st;
}

static void end_check(DocumentCheck *c, Status status)
{
    CtxGuard guard;
    if (!CTX_TRY(c->ctx, &guard))
        return;
    tell(c, status);
    ctx_leave(c->ctx, &guard);
}

static void check(Server *s, Document *d)
{
    s->given_up = false;
    Allocator mem = {check_resize, s};
    DocumentCheck c = {.server = s, .document = d, .ctx = ctx_new(&mem), .first = SIZE_MAX};
    d->stale = false;
    s->counts.checks++;
    if (c.ctx) {
        c.texts = (OpenTexts){.server = s, .arena = c.ctx->program};
        c.ctx->byte_limit = (size_t)1 << 30;
        Status status = run_checks(&c);
        if (!s->given_up)
            end_check(&c, status);
    }
    if (s->given_up) {
        d->stale = true;
        s->counts.given_up++;
    }
    ctx_free(c.ctx);
}

void server_idle(Server *s)
{
    for (Document *d = s->document; d; d = d->next) {
        if (!d->stale)
            continue;
        if (s->options.waiting && s->options.waiting(s->options.waiting_user))
            return;
        check(s, d);
    }
}

/* ---- mends ---- */

static bool touches(const Mend *m, size_t lo, size_t hi)
{
    return (m->lo <= hi && lo <= m->hi) || (m->from <= hi && lo <= m->to);
}

void answer_actions(Request *r)
{
    const Json *range = json_get(r->params, "range");
    size_t lo, hi;
    if (!lines_read(&r->lines, json_get(range, "start"), &lo) || !lines_read(&r->lines, json_get(range, "end"), &hi)) {
        request_fail(r, RPC_PARAMS, "a range is missing");
        return;
    }
    const Document *d = r->document;
    json_open(&r->t, "result", '[');
    for (size_t i = 0; d->facts && d->known && i < d->facts->mend.n; i++) {
        const Mend *m = &d->facts->mend.v[i];
        if (!touches(m, lo, hi))
            continue;
        json_open(&r->t, NULL, '{');
        json_put_string(&r->t, "title", m->title);
        json_put_string(&r->t, "kind", "quickfix");
        json_put_bool(&r->t, "isPreferred", m->certain);
        json_open(&r->t, "edit", '{');
        json_open(&r->t, "changes", '{');
        json_open(&r->t, d->uri, '[');
        json_open(&r->t, NULL, '{');
        put_range(&r->t, "range", &r->lines, m->from, m->to);
        json_put_string(&r->t, "newText", m->with);
        json_close(&r->t, '}');
        json_close(&r->t, ']');
        json_close(&r->t, '}');
        json_close(&r->t, '}');
        json_close(&r->t, '}');
    }
    json_close(&r->t, ']');
}
