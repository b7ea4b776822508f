/* client.h - a client of the language server in the same process: it sends texts of JSON and keeps what comes back. */
#ifndef VWN_TESTS_LSP_CLIENT_H
#define VWN_TESTS_LSP_CLIENT_H

#include "runtime/lsp/lsp.h"
#include "support/harness.h"

#include <stdlib.h>

/* Memory that is counted. */
typedef struct Heap {
    size_t blocks, bytes, peak, calls, taken; /* taken: bytes that were asked for, all together */
} Heap;
void *heap_resize(void *user, void *p, size_t old_size, size_t new_size);

typedef struct Client {
    Harness *h;
    Heap heap;
    vwn_server *server;
    Ctx *ctx;              /* of what came back */
    VEC(const Json *) got; /* since the last send */
    int64_t id;
    size_t busy; /* the next so many questions whether more has come are answered with no, then with yes; 0: no */
    size_t asked;
    bool one_by_one; /* bytes */
} Client;
/* `capabilities`: JSON, or NULL: none, and `initialize` is not sent. */
void client_open(Client *c, Harness *h, const char *capabilities);
void client_close(Client *c);
void client_bytes(Client *c, const char *s, size_t n);
void client_send(Client *c, const char *json);
/* params: JSON. What the request came to: the value of "result", or NULL and *error. */
const Json *client_ask(Client *c, const char *method, const char *params, int64_t *error);
void client_tell(Client *c, const char *method, const char *params);
void client_text(Client *c, const char *uri, const char *text, size_t n); /* didOpen */
/* One change; line < 0: the whole text. */
typedef struct Change {
    int64_t line, character, end_line, end_character;
    const char *text;
    size_t n;
} Change;
void client_change(Client *c, const char *uri, int64_t version, const Change *change, size_t n);
/* The last publishDiagnostics of a document since the last send: its list; NULL: there was none. */
const Json *client_diagnostics(Client *c, const char *uri);
#define POSITION_PARAMS "{\"textDocument\":{\"uri\":\"%s\"},\"position\":{\"line\":%d,\"character\":%d}%s}"
const Json *client_at(Client *c, const char *method, const char *uri, int line, int character, const char *more,
                      int64_t *error);
const Json *json_at(const Json *list, size_t i);
const Json *json_in(const Json *j, const char *path); /* "range.start.line" */
int64_t json_whole(const Json *j, const char *path);  /* -1: there is none */

#endif
