/* protocol.c - messages: headers in front of JSON, in both directions.
 *
 * In:  bytes as they come.   Out: whole messages, or a sentence about what is none.
 * The one idea: whatever is no header is passed over up to the next one, so no input ends the conversation.
 */
#include "lsp.h"

#include <ctype.h>
#include <stdio.h>
#include <strings.h>

enum { MOST_HEADER = 8 << 10, MOST_BODY = 64 << 20 };

void input_put(Server *s, const char *bytes, size_t n)
{
    Input *in = &s->input;
    if (in->skip) {
        size_t gone = in->skip < n ? (size_t)in->skip : n;
        in->skip -= gone;
        bytes += gone;
        n -= gone;
    }
    if (in->at) {
        memmove(in->s, in->s + in->at, in->n - in->at);
        in->n -= in->at;
        in->at = 0;
    }
    if (in->cap - in->n < n) {
        size_t cap = 2 * (in->n + n);
        in->s = ctx_resize(s->ctx, in->s, cap);
        in->cap = cap;
    }
    if (n)
        memcpy(in->s + in->n, bytes, n);
    in->n += n;
}

/* The end of the header, behind its blank line; NULL: it is not all there. */
static const char *header_end(const char *s, size_t n)
{
    for (size_t i = 0; i + 1 < n; i++) {
        if (s[i] == '\n' && s[i + 1] == '\n')
            return s + i + 2;
        if (s[i] == '\n' && s[i + 1] == '\r' && i + 2 < n && s[i + 2] == '\n')
            return s + i + 3;
    }
    return NULL;
}

/* The number behind "Content-Length:" in a header, before which the end of a body of a wrong length may stand; false: there is none. */
static bool content_length(const char *s, const char *end, uint64_t *length)
{
    static const char name[] = "Content-Length:";
    const size_t n = sizeof name - 1;
    for (; (size_t)(end - s) > n; s++) {
        if (strncasecmp(s, name, n) != 0)
            continue;
        const char *p = s + n;
        while (p < end && (*p == ' ' || *p == '\t'))
            p++;
        const char *digits = p;
        for (*length = 0; p < end && isdigit((unsigned char)*p) && p - digits < 18; p++)
            *length = *length * 10 + (uint64_t)(*p - '0');
        while (p < end && (*p == ' ' || *p == '\t'))
            p++;
        return p > digits && p < end && (*p == '\r' || *p == '\n');
    }
    return false;
}

/* What is no header goes away, up to where one may begin. */
static FrameKind broken(Input *in, size_t gone, const char **body, const char *why)
{
    in->at += gone;
    *body = why;
    return FRAME_BROKEN;
}

FrameKind input_next(Server *s, const char **body, size_t *n)
{
    Input *in = &s->input;
    const char *from = in->s + in->at;
    size_t left = in->n - in->at;
    const char *end = left ? header_end(from, left) : NULL;
    if (!end)
        return left > MOST_HEADER ? broken(in, left, body, "a header of more than 8 KiB") : FRAME_NONE;
    uint64_t length;
    if (!content_length(from, end, &length))
        return broken(in, (size_t)(end - from), body, "a header without Content-Length");
    if (length > MOST_BODY) {
        uint64_t have = left - (size_t)(end - from), gone = have < length ? have : length;
        in->skip = length - gone;
        return broken(in, (size_t)(end - from) + (size_t)gone, body, "a message of more than 64 MiB");
    }
    if ((uint64_t)(from + left - end) < length)
        return FRAME_NONE;
    *body = end;
    *n = (size_t)length;
    in->at += (size_t)(end - from) + (size_t)length;
    return FRAME_MESSAGE;
}

/* ---- what is sent ---- */

void message_begin(Request *r)
{
    enum { ROOM = 1024 };
    json_begin(&r->t, arena_take(r->arena, ROOM), ROOM);
    r->memory = arena_region(r->arena);
    r->t.more = &r->memory;
    json_open(&r->t, NULL, '{');
    json_put_string(&r->t, "jsonrpc", "2.0");
}

void message_send(Request *r)
{
    json_close(&r->t, '}');
    Buf b = buf_new(r->arena);
    buf_printf(&b, "Content-Length: %zu\r\n\r\n", r->t.n);
    buf_put(&b, r->t.s, r->t.n);
    r->server->out->put(r->server->out->user, b.s, b.n);
}

void request_fail(Request *r, int error, const char *fmt, ...)
{
    char text[512];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    r->error = error;
    r->why = arena_copy(r->arena, text, strlen(text));
}
