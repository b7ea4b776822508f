/* lsp.h - inside the language server: messages, documents, answers.
 *
 * In:  bytes of an editor.   Out: bytes for it.
 * The one idea: a document is its text, and what its last check said. A request is answered from the text alone, parsed anew
 * in memory that ends with the answer; a check runs when nothing else is to be done, and is given up when something comes.
 */
#ifndef VWN_LSP_H
#define VWN_LSP_H

#include "runtime/base/json.h"
#include "runtime/vwn.h"
#include "compiler/model/model.h"

/* What a `character` of a position counts. */
typedef enum Encoding { IN_UTF16, IN_UTF8, IN_UTF32 } Encoding;

/* ---- documents ---- */

/* A mend that a message of the last check has: bytes from..to become `with`. */
typedef struct Mend {
    const char *code, *message, *title, *with;
    uint32_t lo, hi, from, to; /* lo..hi: of the message */
    bool certain;
} Mend;
/* A message as the editor gets it, at bytes lo..hi. */
typedef struct Remark {
    int severity;
    const char *code, *message, *links; /* links: JSON, or NULL */
    size_t lo, hi;
} Remark;
/* What the last check said of a text. It lives in a context of its own, beside a copy of the text. */
typedef struct Facts {
    Ctx *ctx;
    VEC(Mend) mend;
    VEC(Remark) late;       /* of what a check does last; it moves along with edits until that was checked anew */
    VEC(SeenValue) seen;    /* in the order of the evaluation */
    VEC(const char *) file; /* what it imported, directly or not, or wanted to */
} Facts;

typedef struct Document {
    struct Document *next;
    char *uri, *path; /* path: "-" for what is in no file */
    char *text;
    size_t n;
    int64_t version;
    bool has_version;
    bool stale;   /* its text, or one that it imports, is not the one that was checked */
    bool known;   /* facts are of its text, as far as they go */
    Facts *facts; /* NULL before the first check */
} Document;

/* Where lines begin: behind \n, \r\n or \r. */
typedef struct TextLines {
    const char *text;
    size_t n, *at, count;
    Encoding encoding;
} TextLines;
TextLines lines_of(Arena *a, const char *text, size_t n, Encoding encoding);
/* A byte of the text; what lies beyond a line or the text is its end. */
size_t lines_offset(const TextLines *l, int64_t line, int64_t character);
/* {"line": 0, "character": 0} of a request; false: there is none. */
bool lines_read(const TextLines *l, const Json *position, size_t *offset);
void put_position(JsonText *t, const char *key, const TextLines *l, size_t offset);
void put_range(JsonText *t, const char *key, const TextLines *l, size_t lo, size_t hi);

/* "file:///a/b%20c.vwn" is "/a/b c.vwn"; NULL: it names no file. */
char *path_of_uri(Arena *a, const char *uri);
char *uri_of_path(Arena *a, const char *path);

/* ---- the server ---- */

/* One message that is being handled. An answer puts one value under "result" into `t`, or says what is wrong. */
typedef struct vwn_server Server;
typedef struct Request {
    Server *server;
    Ctx *ctx; /* ends with the request */
    Arena *arena;
    Region memory;
    const Json *id; /* NULL: a notification */
    const Json *params;
    Document *document;
    TextLines lines; /* of the document */
    JsonText t;
    int error;
    const char *why;
} Request;

/* What has come and was not taken yet. */
typedef struct Input {
    char *s;
    size_t n, cap, at; /* at: bytes that are done with */
    uint64_t skip;     /* bytes of a message that is too long */
} Input;
typedef enum Phase { PHASE_NEW, PHASE_RUNNING, PHASE_SHUT_DOWN, PHASE_ENDED } Phase;
struct vwn_server {
    Allocator mem;
    vwn_server_options options;
    Ctx *ctx; /* owns documents and input */
    Input input;
    Document *document;
    Phase phase;
    Encoding encoding;
    bool related, given_up; /* the editor shows places beside a message; the check under way was given up */
    const vwn_writer *out;
    Request request; /* the one that is being handled */
    vwn_server_counts counts;
};

/* server.c: the work behind vwn_server_open and the others */
Server *server_open(const vwn_server_options *options);
bool server_take(Server *s, const char *bytes, size_t n, const vwn_writer *out);
void server_close(Server *s);

/* protocol.c */
typedef enum FrameKind { FRAME_NONE, FRAME_MESSAGE, FRAME_BROKEN } FrameKind;
void input_put(Server *s, const char *bytes, size_t n);
/* The next message; FRAME_BROKEN: *body is a sentence that says why there is none. */
FrameKind input_next(Server *s, const char **body, size_t *n);

enum {
    RPC_PARSE = -32700,
    RPC_INVALID = -32600,
    RPC_NO_METHOD = -32601,
    RPC_PARAMS = -32602,
    RPC_INTERNAL = -32603,
    RPC_NOT_YET = -32002,
    RPC_FAILED = -32803
};
void message_begin(Request *r);
void message_send(Request *r);
void request_fail(Request *r, int error, const char *fmt, ...) __attribute__((format(printf, 3, 4)));

/* document.c */
Document *document_find(Server *s, const char *uri);
Document *document_of_path(Server *s, const char *path);
void document_open(Request *r);
void document_change(Request *r);
void document_save(Request *r);
void document_close(Request *r);
void documents_of_disk(Request *r); /* files have changed outside of the editor */
void documents_free(Server *s);
void facts_free(Facts *f);

/* analyse.c */
void server_idle(Server *s); /* checks what is stale, until something comes */
void publish_none(Request *r, const char *uri);
void answer_actions(Request *r);

/* What the editor shows is newer than what the disk has: CheckOptions.text_of, with OpenTexts, which notes all that a check asks for. */
typedef struct OpenTexts {
    Server *server;
    Arena *arena;
    VEC(const char *) wanted;
} OpenTexts;
const char *text_of_open(void *user, const char *path, size_t *n);

/* answer.c */
/* Of the document's text, without items when it has too many errors; errors are in r->ctx. */
const Ast *request_parse(Request *r, uint32_t *source);
void answer_format(Request *r);
void answer_symbols(Request *r);
/* navigate.c */
void answer_definition(Request *r);
void answer_references(Request *r);
void answer_highlight(Request *r);
void answer_rename(Request *r);
void answer_prepare_rename(Request *r);
/* hover.c, offer.c */
void answer_hover(Request *r);
void answer_complete(Request *r);

#endif
