/* client.c - see client.h. */
#include "client.h"

void *heap_resize(void *user, void *p, size_t old_size, size_t new_size)
{
    Heap *h = user;
    if (!new_size) {
        h->blocks -= p != NULL;
        h->bytes -= old_size;
        free(p);
        return NULL;
    }
    h->calls++;
    h->taken += new_size > old_size ? new_size - old_size : 0;
    void *q = realloc(p, new_size);
    h->blocks += !p && q;
    h->bytes += new_size - old_size;
    h->peak = h->bytes > h->peak ? h->bytes : h->peak;
    return q;
}

static bool waiting(void *user)
{
    Client *c = user;
    c->asked++;
    return c->busy && --c->busy == 0 && (c->busy = 1) == 1;
}

static void receive(void *user, const char *text, size_t n)
{
    Client *c = user;
    const char *body = strstr(text, "\r\n\r\n");
    size_t length = body ? (size_t)atoll(text + strlen("Content-Length: ")) : 0;
    JsonError error;
    if (!CHECK(c->h, body && !strncmp(text, "Content-Length: ", 16) && (size_t)(body + 4 - text) + length == n))
        return;
    const Json *j = json_read(c->ctx->program, body + 4, length, &error);
    if (CHECK(c->h, j != NULL))
        vec_push(c->ctx->program, &c->got, j);
}

void client_bytes(Client *c, const char *s, size_t n)
{
    vwn_writer out = {receive, c};
    if (c->ctx)
        ctx_free(c->ctx);
    c->ctx = ctx_new(NULL);
    c->got.v = NULL;
    c->got.n = c->got.cap = 0;
    for (size_t i = 0; c->one_by_one && i < n; i++)
        vwn_server_take(c->server, s + i, 1, &out);
    if (!c->one_by_one)
        vwn_server_take(c->server, s, n, &out);
}

void client_send(Client *c, const char *json)
{
    size_t n = strlen(json);
    char *s = malloc(n + 64);
    int head = snprintf(s, n + 64,
                        "Content-Length: %zu\r\nContent-Type: application/vscode-jsonrpc; charset=utf-8\r\n\r\n", n);
    s = realloc(s, (size_t)head + n + 1);
    memcpy(s + head, json, n + 1);
    client_bytes(c, s, (size_t)head + n);
    free(s);
}

const Json *client_ask(Client *c, const char *method, const char *params, int64_t *error)
{
    size_t size = strlen(params) + strlen(method) + 100;
    char *s = malloc(size);
    snprintf(s, size, "{\"jsonrpc\":\"2.0\",\"id\":%lld,\"method\":\"%s\",\"params\":%s}", (long long)++c->id, method,
             params);
    client_send(c, s);
    free(s);
    *error = 0;
    for (size_t i = 0; i < c->got.n; i++)
        if (json_whole(c->got.v[i], "id") == c->id) {
            const Json *e = json_get(c->got.v[i], "error");
            *error = e ? json_whole(e, "code") : 0;
            return json_get(c->got.v[i], "result");
        }
    CHECK_CASE(c->h, false, method);
    return NULL;
}

void client_tell(Client *c, const char *method, const char *params)
{
    size_t size = strlen(params) + strlen(method) + 100;
    char *s = malloc(size);
    snprintf(s, size, "{\"jsonrpc\":\"2.0\",\"method\":\"%s\",\"params\":%s}", method, params);
    client_send(c, s);
    free(s);
}

void client_open(Client *c, Harness *h, const char *capabilities)
{
    *c = (Client){.h = h};
    vwn_server_options how = {.resize = heap_resize, .user = &c->heap, .waiting = waiting, .waiting_user = c};
    c->server = vwn_server_open(&how);
    if (!capabilities)
        return;
    char params[2000];
    int64_t error;
    snprintf(params, sizeof params, "{\"processId\":null,\"rootUri\":null,\"capabilities\":%s}", capabilities);
    CHECK(h, client_ask(c, "initialize", params, &error) && !error);
    client_tell(c, "initialized", "{}");
}

void client_close(Client *c)
{
    vwn_server_close(c->server);
    CHECK(c->h, c->heap.blocks == 0 && c->heap.bytes == 0);
    ctx_free(c->ctx);
}

static char *json_params(const char *uri, int64_t version, const Change *change, size_t n, bool open)
{
    enum { ROOM = 4096 };
    size_t size = ROOM;
    for (size_t i = 0; i < n; i++)
        size += 6 * change[i].n + 200;
    char *s = malloc(size);
    JsonText t;
    json_begin(&t, s, size);
    json_open(&t, NULL, '{');
    json_open(&t, "textDocument", '{');
    json_put_string(&t, "uri", uri);
    json_put_integer(&t, "version", version);
    if (open) {
        json_put_string(&t, "languageId", "vwn");
        json_put_bytes(&t, "text", change->text, change->n);
    }
    json_close(&t, '}');
    if (!open)
        json_open(&t, "contentChanges", '[');
    for (size_t i = 0; !open && i < n; i++) {
        json_open(&t, NULL, '{');
        if (change[i].line >= 0) {
            json_open(&t, "range", '{');
            json_open(&t, "start", '{');
            json_put_integer(&t, "line", change[i].line);
            json_put_integer(&t, "character", change[i].character);
            json_close(&t, '}');
            json_open(&t, "end", '{');
            json_put_integer(&t, "line", change[i].end_line);
            json_put_integer(&t, "character", change[i].end_character);
            json_close(&t, '}');
            json_close(&t, '}');
        }
        json_put_bytes(&t, "text", change[i].text, change[i].n);
        json_close(&t, '}');
    }
    if (!open)
        json_close(&t, ']');
    json_close(&t, '}');
    return s;
}

void client_text(Client *c, const char *uri, const char *text, size_t n)
{
    Change whole = {.line = -1, .text = text, .n = n};
    char *params = json_params(uri, 1, &whole, 1, true);
    client_tell(c, "textDocument/didOpen", params);
    free(params);
}

void client_change(Client *c, const char *uri, int64_t version, const Change *change, size_t n)
{
    char *params = json_params(uri, version, change, n, false);
    client_tell(c, "textDocument/didChange", params);
    free(params);
}

const Json *client_diagnostics(Client *c, const char *uri)
{
    for (size_t i = c->got.n; i-- > 0;) {
        const char *method = json_string(c->got.v[i], "method"),
                   *of = json_string(json_get(c->got.v[i], "params"), "uri");
        if (method && !strcmp(method, "textDocument/publishDiagnostics") && of && !strcmp(of, uri))
            return json_in(c->got.v[i], "params.diagnostics");
    }
    return NULL;
}

const Json *client_at(Client *c, const char *method, const char *uri, int line, int character, const char *more,
                      int64_t *error)
{
    char params[1000];
    snprintf(params, sizeof params, POSITION_PARAMS, uri, line, character, more);
    return client_ask(c, method, params, error);
}

const Json *json_at(const Json *list, size_t i)
{
    const Json *j = list ? list->first : NULL;
    while (j && i--)
        j = j->next;
    return j;
}

const Json *json_in(const Json *j, const char *path)
{
    char word[64];
    while (j && *path) {
        size_t n = strcspn(path, ".");
        snprintf(word, sizeof word, "%.*s", (int)n, path);
        j = j->kind == JSON_ARRAY ? json_at(j, (size_t)atoll(word)) : json_get(j, word);
        path += n + (path[n] == '.');
    }
    return j;
}

int64_t json_whole(const Json *j, const char *path)
{
    const Json *n = json_in(j, path);
    return n && n->kind == JSON_NUMBER && n->whole ? n->integer : -1;
}
