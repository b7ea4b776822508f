/* http.h - requests over HTTP on the loopback interface, a thread for each connection; over libmicrohttpd.
 *
 * In:  a port, who answers.   Out: requests of this machine, whole and of bounded size.
 */
#ifndef VWN_HTTP_H
#define VWN_HTTP_H

#include "runtime/token/system_library.h"

typedef struct Http Http;
typedef struct HttpRequest HttpRequest;
typedef struct HttpOptions {
    int port;      /* 0: any that is free */
    size_t body;   /* bytes of a request, at most */
    int seconds;   /* that a client may be silent in the middle of a request or an answer */
    unsigned most; /* connections */
    /* Answers by one of the functions below, on the connection's thread. */
    void (*answer)(void *user, HttpRequest *request, const char *method, const char *path, const char *body, size_t n);
    void *user;
} HttpOptions;

/* NULL with `why`: the library is missing, or the port is taken. */
Http *http_open(const HttpOptions *how, char why[WHY]);
int http_port(const Http *h);
void http_close(Http *h); /* waits for the threads of all connections; NULL is fine */

/* A whole answer of JSON. */
void http_answer(HttpRequest *r, unsigned status, const char *text, size_t n);
/* The pieces that next() gives, as server-sent events, until it returns false; the text of a piece lives until the next call. end() is
 * called in every case, also where the client has gone. */
void http_stream(HttpRequest *r, bool (*next)(void *user, HttpRequest *request, const char **text, size_t *n),
                 void (*end)(void *user), void *user);
/* Whether the client has closed the connection. */
bool http_gone(const HttpRequest *r);

#endif
