/* server.c - the conversation: who may say what when, and which function answers.
 *
 * In:  bytes.   Out: an answer to every request, and an error where there is none.
 * The one idea: a method is a row. What raises in it, as no memory does, is an answer, too, and the server goes on.
 */
#include "lsp.h"

#include <stdlib.h>

typedef struct Method {
    const char *name;
    void (*run)(Request *r);
    bool answers; /* a request; else a notification */
    bool of_document;
} Method;

/* ---- beginning and end ---- */

static bool lists(const Json *list, const char *word)
{
    for (const Json *j = list && list->kind == JSON_ARRAY ? list->first : NULL; j; j = j->next)
        if (j->kind == JSON_STRING && !strcmp(j->s, word))
            return true;
    return false;
}

static const Json *get_path(const Json *j, const char *a, const char *b, const char *c)
{
    return json_get(json_get(json_get(j, a), b), c);
}

static void choose_encoding(Request *r)
{
    const Json *can = get_path(r->params, "capabilities", "general", "positionEncodings");
    Server *s = r->server;
    s->encoding = lists(can, "utf-8") ? IN_UTF8 : lists(can, "utf-32") && !lists(can, "utf-16") ? IN_UTF32 : IN_UTF16;
}

static void put_words(JsonText *t, const char *key, const char *const *word)
{
    json_open(t, key, '[');
    for (; *word; word++)
        json_put_string(t, NULL, *word);
    json_close(t, ']');
}

static void initialize(Request *r)
{
    Server *s = r->server;
    if (s->phase != PHASE_NEW) {
        request_fail(r, RPC_INVALID, "`initialize` has come before");
        return;
    }
    static const char *const encodings[] = {"utf-16", "utf-8", "utf-32"}, *const kinds[] = {"quickfix", NULL};
    choose_encoding(r);
    const Json *related =
        json_get(get_path(r->params, "capabilities", "textDocument", "publishDiagnostics"), "relatedInformation");
    s->related = related && related->kind == JSON_TRUE;
    s->phase = PHASE_RUNNING;
    JsonText *t = &r->t;
    json_open(t, "result", '{');
    json_open(t, "capabilities", '{');
    json_put_string(t, "positionEncoding", encodings[s->encoding]);
    json_open(t, "textDocumentSync", '{');
    json_put_bool(t, "openClose", true);
    json_put_integer(t, "change", 2);
    json_put_bool(t, "save", true);
    json_close(t, '}');
    static const char *const able[] = {"hoverProvider",
                                       "definitionProvider",
                                       "referencesProvider",
                                       "documentHighlightProvider",
                                       "documentFormattingProvider",
                                       "documentSymbolProvider"},
                             *const points[] = {".", NULL};
    for (size_t i = 0; i < COUNT_OF(able); i++)
        json_put_bool(t, able[i], true);
    json_open(t, "completionProvider", '{');
    put_words(t, "triggerCharacters", points);
    json_close(t, '}');
    json_open(t, "renameProvider", '{');
    json_put_bool(t, "prepareProvider", true);
    json_close(t, '}');
    json_open(t, "codeActionProvider", '{');
    put_words(t, "codeActionKinds", kinds);
    json_close(t, '}');
    json_close(t, '}');
    json_open(t, "serverInfo", '{');
    json_put_string(t, "name", "vwn");
    json_put_string(t, "version", vwn_version());
    json_close(t, '}');
    json_close(t, '}');
}

static void nothing(Request *r) { (void)r; }

static void shut_down(Request *r)
{
    r->server->phase = PHASE_SHUT_DOWN;
    json_put_raw(&r->t, "result", "null");
}

static const Method methods[] = {
    {"initialize", initialize, true, false},
    {"initialized", nothing, false, false},
    {"shutdown", shut_down, true, false},
    {"textDocument/didOpen", document_open, false, false},
    {"textDocument/didChange", document_change, false, true},
    {"textDocument/didSave", document_save, false, true},
    {"textDocument/didClose", document_close, false, true},
    {"workspace/didChangeWatchedFiles", documents_of_disk, false, false},
    {"textDocument/hover", answer_hover, true, true},
    {"textDocument/completion", answer_complete, true, true},
    {"textDocument/definition", answer_definition, true, true},
    {"textDocument/references", answer_references, true, true},
    {"textDocument/documentHighlight", answer_highlight, true, true},
    {"textDocument/prepareRename", answer_prepare_rename, true, true},
    {"textDocument/rename", answer_rename, true, true},
    {"textDocument/codeAction", answer_actions, true, true},
    {"textDocument/formatting", answer_format, true, true},
    {"textDocument/documentSymbol", answer_symbols, true, true},
};

/* ---- one message ---- */

static void put_id(JsonText *t, const Json *id)
{
    if (id && id->kind == JSON_STRING)
        json_put_bytes(t, "id", id->s, id->n);
    else if (id && id->kind == JSON_NUMBER && id->whole)
        json_put_integer(t, "id", id->integer);
    else
        json_put_raw(t, "id", "null");
}

static void send_error(Request *r)
{
    message_begin(r);
    put_id(&r->t, r->id);
    json_open(&r->t, "error", '{');
    json_put_integer(&r->t, "code", r->error);
    json_put_string(&r->t, "message", r->why);
    json_close(&r->t, '}');
    message_send(r);
}

/* The document that the request is about. An answer without one is an error; a notification of one that is not open says nothing. */
static bool find_document(Request *r, const Method *m)
{
    const char *uri = json_string(json_get(r->params, "textDocument"), "uri");
    r->document = uri ? document_find(r->server, uri) : NULL;
    if (!r->document) {
        if (m->answers)
            request_fail(r, RPC_PARAMS, uri ? "%s is not open" : "a document is missing", uri);
        return false;
    }
    if (m->answers)
        r->lines = lines_of(r->arena, r->document->text, r->document->n, r->server->encoding);
    return true;
}

static void run_method(Request *r, const Method *m)
{
    if (m->of_document && !find_document(r, m)) {
        if (r->error)
            send_error(r);
        return;
    }
    if (!m->answers) {
        m->run(r);
        return;
    }
    message_begin(r);
    put_id(&r->t, r->id);
    m->run(r);
    if (r->error)
        send_error(r);
    else
        message_send(r);
}

/* Whether the method may come now; else what is wrong is in r->error, or it is passed over. */
static bool in_turn(Request *r, const char *name, const Method *m)
{
    Phase phase = r->server->phase;
    if (phase == PHASE_NEW && strcmp(name, "initialize") != 0)
        request_fail(r, RPC_NOT_YET, "`initialize` has not come yet");
    else if (phase == PHASE_SHUT_DOWN)
        request_fail(r, RPC_INVALID, "`shutdown` has come before");
    else if (!m)
        request_fail(r, RPC_NO_METHOD, "no method `%.200s`", name);
    else if (m->answers && !r->id)
        request_fail(r, RPC_INVALID, "`%s` is a request and has no id", name);
    return !r->error;
}

static void handle_json(Request *r, const Json *message)
{
    r->id = json_get(message, "id");
    r->params = json_get(message, "params");
    const char *name = json_string(message, "method");
    if (message->kind != JSON_OBJECT || (!name && !json_get(message, "result") && !json_get(message, "error"))) {
        request_fail(r, RPC_INVALID, "a message is an object with a method");
        send_error(r);
        return;
    }
    if (!name) /* an answer: nothing was asked */
        return;
    if (!strcmp(name, "exit")) {
        r->server->counts.well = r->server->phase == PHASE_SHUT_DOWN;
        r->server->phase = PHASE_ENDED;
        return;
    }
    const Method *m = NULL;
    for (size_t i = 0; i < COUNT_OF(methods) && !m; i++)
        m = strcmp(methods[i].name, name) ? NULL : &methods[i];
    if (in_turn(r, name, m) && m)
        run_method(r, m);
    else if (r->id)
        send_error(r);
}

static void handle(Request *r, FrameKind kind, const char *body, size_t n)
{
    JsonError error = {.what = "it is no message"};
    const Json *message = kind == FRAME_MESSAGE ? json_read(r->arena, body, n, &error) : NULL;
    if (message) {
        handle_json(r, message);
        return;
    }
    request_fail(r, RPC_PARSE, "%s", kind == FRAME_BROKEN ? body : error.what);
    send_error(r);
}

/* In memory that ends with the message. */
static void handle_in(Ctx *ctx, Server *s, FrameKind kind, const char *body, size_t n)
{
    CtxGuard guard;
    Request *r = &s->request;
    *r = (Request){.server = s, .ctx = ctx, .arena = ctx->program};
    ctx->byte_limit = (size_t)1 << 30;
    if (CTX_TRY(ctx, &guard)) {
        handle(r, kind, body, n);
        ctx_leave(ctx, &guard);
    } else if (r->id && CTX_TRY(ctx, &guard)) {
        request_fail(r, RPC_INTERNAL, "%s", *ctx->message ? ctx->message : "the file has too many errors");
        send_error(r);
        ctx_leave(ctx, &guard);
    }
}

static void take_message(Server *s, FrameKind kind, const char *body, size_t n)
{
    Ctx *ctx = ctx_new(&s->mem);
    CtxGuard guard;
    s->counts.messages++;
    if (ctx && CTX_TRY(s->ctx, &guard)) { /* what stays, as texts do, is taken from there */
        handle_in(ctx, s, kind, body, n);
        ctx_leave(s->ctx, &guard);
    }
    ctx_free(ctx);
}

/* ---- the interface ---- */

static void *plain_memory(void *user, void *p, size_t old_size, size_t new_size)
{
    (void)user, (void)old_size;
    if (new_size)
        return realloc(p, new_size);
    free(p);
    return NULL;
}

Server *server_open(const vwn_server_options *options)
{
    Allocator mem = {options && options->resize ? options->resize : plain_memory, options ? options->user : NULL};
    Ctx *ctx = ctx_new(&mem);
    CtxGuard guard;
    Server *volatile s = NULL;
    if (ctx && CTX_TRY(ctx, &guard)) {
        s = NEW(ctx->program, Server);
        s->mem = mem;
        s->ctx = ctx;
        ctx_leave(ctx, &guard);
    } else {
        ctx_free(ctx);
    }
    if (s && options)
        s->options = *options;
    return s;
}

bool server_take(Server *s, const char *bytes, size_t n, const vwn_writer *out)
{
    CtxGuard guard;
    s->out = out;
    if (CTX_TRY(s->ctx, &guard)) {
        const char *body;
        FrameKind kind;
        size_t size = 0;
        input_put(s, bytes, n);
        while (s->phase != PHASE_ENDED && (kind = input_next(s, &body, &size)) != FRAME_NONE)
            take_message(s, kind, body, size);
        if (s->phase != PHASE_ENDED)
            server_idle(s);
        ctx_leave(s->ctx, &guard);
    } /* no memory for what has come: it is gone */
    return s->phase != PHASE_ENDED;
}

void server_close(Server *s)
{
    if (!s)
        return;
    documents_free(s);
    ctx_free(s->ctx);
}
