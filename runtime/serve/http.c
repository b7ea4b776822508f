/* http.c - see http.h.
 *
 * The one idea: what a request must be is looked at before its body is read, so that a page of another origin or a huge upload costs nothing.
 */
#define _DEFAULT_SOURCE
#include "http.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <strings.h>
#include <sys/socket.h>
#include <unistd.h>

enum { HEADERS = 32 << 10, STACK = 1 << 20, PIECE = 4096, BACKLOG = 64 };

struct Http {
    Microhttpd library;
    HttpOptions how;
    void *daemon;
    int port;
};

struct HttpRequest {
    Http *http;
    void *connection;
    char *body;
    size_t n, room;
    bool answered;
    bool (*next)(void *user, HttpRequest *request, const char **text, size_t *n);
    void (*end)(void *user);
    void *user;
    const char *piece; /* of an answer in pieces: what is left of the last one */
    size_t n_piece;
    bool over;
};

int http_port(const Http *h) { return h->port; }

/* ---- answers ---- */

static void put_response(HttpRequest *r, unsigned status, void *response, const char *type)
{
    const Microhttpd *m = &r->http->library;
    r->answered = true;
    if (!response)
        return;
    m->add_header(response, "Content-Type", type);
    m->add_header(response, "X-Content-Type-Options", "nosniff");
    m->queue(r->connection, status, response);
    m->destroy(response);
}

void http_answer(HttpRequest *r, unsigned status, const char *text, size_t n)
{
    put_response(r, status, r->http->library.from_buffer(n, (void *)text, MICROHTTPD_COPY), "application/json");
}

static long give_piece(void *user, uint64_t at, char *out, size_t most)
{
    HttpRequest *r = user;
    (void)at;
    while (!r->n_piece && !r->over)
        r->over = !r->next(r->user, r, &r->piece, &r->n_piece);
    if (!r->n_piece)
        return MICROHTTPD_END;
    size_t n = r->n_piece < most ? r->n_piece : most;
    memcpy(out, r->piece, n);
    r->piece += n;
    r->n_piece -= n;
    return (long)n;
}

void http_stream(HttpRequest *r, bool (*next)(void *user, HttpRequest *request, const char **text, size_t *n),
                 void (*end)(void *user), void *user)
{
    r->next = next;
    r->end = end;
    r->user = user;
    put_response(r, 200, r->http->library.from_callback(MICROHTTPD_UNKNOWN, PIECE, give_piece, r, NULL),
                 "text/event-stream");
}

bool http_gone(const HttpRequest *r)
{
    const int *fd = r->http->library.info(r->connection, MICROHTTPD_INFO_FD);
    char byte;
    if (!fd)
        return true;
    ssize_t n = recv(*fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT);
    return n == 0 || (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR);
}

static void refuse(HttpRequest *r, unsigned status, const char *why)
{
    char text[300];
    int n = snprintf(text, sizeof text,
                     "{\"error\":{\"message\":\"%s\",\"type\":\"invalid_request_error\",\"code\":%u}}\n", why, status);
    http_answer(r, status, text, (size_t)n);
}

/* ---- who may ask ---- */

/* Whether `text` is this machine's name, with or without our port. */
static bool is_here(const Http *h, const char *text)
{
    static const char *const name[] = {"127.0.0.1", "localhost", "[::1]"};
    char port[16];
    snprintf(port, sizeof port, ":%d", h->port);
    for (size_t i = 0; i < COUNT_OF(name); i++) {
        size_t n = strlen(name[i]);
        if (!strncasecmp(text, name[i], n) && (!text[n] || !strcmp(text + n, port)))
            return true;
    }
    return false;
}

/* Before the body is read; false: it is answered. */
static bool may_ask(HttpRequest *r)
{
    const Http *h = r->http;
    const char *host = h->library.header(r->connection, MICROHTTPD_HEADER, "Host");
    const char *origin = h->library.header(r->connection, MICROHTTPD_HEADER, "Origin");
    const char *length = h->library.header(r->connection, MICROHTTPD_HEADER, "Content-Length");
    if (!host || !is_here(h, host))
        refuse(r, 403, "the Host is not this machine");
    else if (origin && (strncmp(origin, "http://", 7) || !is_here(h, origin + 7)))
        refuse(r, 403, "pages of another origin may not ask");
    else if (length && strtoull(length, NULL, 10) > h->how.body)
        refuse(r, 413, "the request is too large");
    return !r->answered;
}

/* ---- a request ---- */

static bool take_body(HttpRequest *r, const char *text, size_t n)
{
    if (n > r->http->how.body - r->n)
        return false;
    if (r->n + n + 1 > r->room) {
        size_t room = 2 * r->room + n + 1;
        char *grown = realloc(r->body, room);
        if (!grown)
            return false;
        r->body = grown;
        r->room = room;
    }
    memcpy(r->body + r->n, text, n);
    r->n += n;
    return true;
}

/* Called when the headers are there, with each part of the body, and behind it. */
static int on_access(void *user, void *connection, const char *path, const char *method, const char *version,
                     const char *part, size_t *n, void **kept)
{
    Http *h = user;
    HttpRequest *r = *kept;
    (void)version;
    if (!r) {
        if (!(r = calloc(1, sizeof *r)))
            return MICROHTTPD_NO;
        r->http = h;
        r->connection = connection;
        *kept = r;
        may_ask(r);
        return MICROHTTPD_YES;
    }
    if (*n) { /* one that has no length beforehand and is too large is cut off */
        bool fine = r->answered || take_body(r, part, *n);
        *n = 0;
        return fine ? MICROHTTPD_YES : MICROHTTPD_NO;
    }
    if (!r->answered)
        h->how.answer(h->how.user, r, method, path, r->body ? r->body : "", r->n);
    return r->answered ? MICROHTTPD_YES : MICROHTTPD_NO;
}

static void on_completed(void *user, void *connection, void **kept, int how)
{
    HttpRequest *r = *kept;
    (void)user, (void)connection, (void)how;
    if (!r)
        return;
    if (r->end)
        r->end(r->user);
    free(r->body);
    free(r);
    *kept = NULL;
}

/* ---- the whole ---- */

/* A socket on 127.0.0.1 that listens; -1 with `why`. */
static int listen_here(Http *h, char why[WHY])
{
    struct sockaddr_in at = {.sin_family = AF_INET, .sin_port = htons((uint16_t)h->how.port)};
    socklen_t n = sizeof at;
    at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), on = 1;
    bool fine = fd >= 0 && !setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on) &&
                !bind(fd, (struct sockaddr *)&at, sizeof at) && !listen(fd, BACKLOG) &&
                !getsockname(fd, (struct sockaddr *)&at, &n);
    if (!fine) {
        snprintf(why, WHY, "the port %d of 127.0.0.1 cannot be listened to: %s", h->how.port, strerror(errno));
        if (fd >= 0)
            close(fd);
        return -1;
    }
    h->port = ntohs(at.sin_port);
    return fd;
}

Http *http_open(const HttpOptions *how, char why[WHY])
{
    Http *h = calloc(1, sizeof *h);
    if (!h) {
        snprintf(why, WHY, "there is no memory for a server");
        return NULL;
    }
    h->how = *how;
    int fd = library_microhttpd(&h->library, why) ? listen_here(h, why) : -1;
    if (fd >= 0)
        h->daemon = h->library.start(MICROHTTPD_THREAD_PER_CONNECTION | MICROHTTPD_INTERNAL_THREAD | MICROHTTPD_POLL, 0,
                                     NULL, NULL, on_access, h, MICROHTTPD_LISTEN_SOCKET, fd,
                                     MICROHTTPD_CONNECTION_MEMORY, (size_t)HEADERS, MICROHTTPD_CONNECTIONS, how->most,
                                     MICROHTTPD_TIMEOUT, (unsigned)how->seconds, MICROHTTPD_COMPLETED, on_completed,
                                     NULL, MICROHTTPD_STACK, (size_t)STACK, MICROHTTPD_OPTIONS_END);
    if (fd >= 0 && !h->daemon) {
        snprintf(why, WHY, "libmicrohttpd could not start a server: %s", strerror(errno));
        close(fd);
    }
    if (h->daemon)
        return h;
    free(h);
    return NULL;
}

void http_close(Http *h)
{
    if (!h)
        return;
    h->library.stop(h->daemon);
    free(h);
}
