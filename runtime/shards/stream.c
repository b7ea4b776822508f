/* stream.c - see stream.h. */
#define _DEFAULT_SOURCE
#include "stream.h"

#include "compiler/portable/file.h"

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { ROOM = 1 << 18, LOOK_MS = 100 };
typedef enum Packing { PLAIN, GZIP, ZSTD } Packing;

struct TextStream {
    const char *path;
    const volatile int *stop;
    int fd;
    bool waits; /* a read may wait for somebody */
    Packing packing;
    bool over;  /* of the file */
    bool whole; /* what is packed ends here */
    uint64_t taken;
    size_t at, n; /* of what was read */
    Zlib zlib;
    ZlibStream z;
    bool z_open;
    Zstd zstd;
    void *zstd_stream;
    char in[ROOM];
};

static bool wrong(TextStream *s, char why[WHY], const char *what)
{
    snprintf(why, WHY, "%.300s: byte %llu: %.150s", s->path, (unsigned long long)s->taken, what);
    return false;
}

/* Waits until there is something to read; false: it was asked to stop. */
static bool wait_for(TextStream *s)
{
    struct pollfd p = {.fd = s->fd, .events = POLLIN};
    while (s->waits && !*s->stop && poll(&p, 1, LOOK_MS) == 0)
        ;
    return !*s->stop;
}

/* More of the file behind what is there, of which nothing is left; s->over at its end. */
static bool fill(TextStream *s, char why[WHY])
{
    ssize_t got = 0;
    s->at = s->n = 0;
    do
        got = wait_for(s) ? read(s->fd, s->in, ROOM) : 0;
    while (got < 0 && errno == EINTR);
    if (got < 0)
        return wrong(s, why, strerror(errno));
    s->n = (size_t)got;
    s->taken += (uint64_t)got;
    s->over = !got;
    return true;
}

static bool begin_gzip(TextStream *s, char why[WHY])
{
    char what[WHY];
    if (!library_zlib(&s->zlib, what))
        return wrong(s, why, what);
    s->z_open = s->zlib.init(&s->z, ZLIB_GZIP_WINDOW, ZLIB_VERSION_1, (int)sizeof s->z) == ZLIB_OK;
    return s->z_open || wrong(s, why, "there is no memory to unpack it");
}

static bool begin_zstd(TextStream *s, char why[WHY])
{
    char what[WHY];
    if (!library_zstd(&s->zstd, what))
        return wrong(s, why, what);
    s->zstd_stream = s->zstd.create();
    return (s->zstd_stream && !s->zstd.is_error(s->zstd.set(s->zstd_stream, ZSTD_WINDOW_LOG_MAX, ZSTD_WINDOW_LOG))) ||
           wrong(s, why, "there is no memory to unpack it");
}

static bool begin(TextStream *s, char why[WHY])
{
    static const unsigned char gzip[] = {0x1f, 0x8b}, zstd[] = {0x28, 0xb5, 0x2f, 0xfd};
    if (!fill(s, why))
        return false;
    /* a pipe may give the first bytes one by one */
    while (!s->over && s->n < sizeof zstd) {
        ssize_t got = wait_for(s) ? read(s->fd, s->in + s->n, ROOM - s->n) : 0;
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return wrong(s, why, strerror(errno));
        if (!got)
            s->over = true;
        s->n += (size_t)got;
        s->taken += (uint64_t)got;
    }
    s->whole = true;
    if (s->n >= sizeof gzip && !memcmp(s->in, gzip, sizeof gzip))
        s->packing = GZIP;
    else if (s->n >= sizeof zstd && !memcmp(s->in, zstd, sizeof zstd))
        s->packing = ZSTD;
    return s->packing == PLAIN || (s->packing == GZIP ? begin_gzip(s, why) : begin_zstd(s, why));
}

TextStream *stream_open(const char *path, const volatile int *stop, char why[WHY])
{
    const char *what = "there is no memory for it";
    bool input = !strcmp(path, "-");
    TextStream *s = calloc(1, sizeof *s);
    if (!s) {
        snprintf(why, WHY, "%.300s: %s", path, what);
        return NULL;
    }
    s->path = input ? "the standard input" : path;
    s->stop = stop;
    s->waits = input;
    s->fd = input ? STDIN_FILENO : file_open(path, O_RDONLY, &what);
    if (s->fd < 0)
        snprintf(why, WHY, "%.300s: %.150s", path, what);
    if (s->fd >= 0 && begin(s, why))
        return s;
    stream_close(s);
    return NULL;
}

/* Each unpacks some bytes of s->in into `out`: how many, or -1 with `why`. */
static long long plain(TextStream *s, char *out, size_t n, char why[WHY])
{
    (void)why;
    size_t left = s->n - s->at, some = n < left ? n : left;
    memcpy(out, s->in + s->at, some);
    s->at += some;
    return (long long)some;
}

static long long unpack_gzip(TextStream *s, char *out, size_t n, char why[WHY])
{
    enum { MOST = 1 << 30 };
    unsigned room = n < MOST ? (unsigned)n : MOST;
    if (s->whole && s->zlib.reset(&s->z) != ZLIB_OK) /* one more behind another one */
        return wrong(s, why, "it cannot be unpacked") - 1;
    s->z.next_in = (const unsigned char *)s->in + s->at;
    s->z.avail_in = (unsigned)(s->n - s->at);
    s->z.next_out = (unsigned char *)out;
    s->z.avail_out = room;
    int code = s->zlib.inflate(&s->z, 0);
    s->at = s->n - s->z.avail_in;
    s->whole = code == ZLIB_STREAM_END;
    if (code != ZLIB_OK && code != ZLIB_STREAM_END && code != ZLIB_BUF_ERROR)
        return wrong(s, why, s->z.msg ? s->z.msg : "what gzip has packed is damaged") - 1;
    return room - s->z.avail_out;
}

static long long unpack_zstd(TextStream *s, char *out, size_t n, char why[WHY])
{
    ZstdIn in = {s->in, s->n, s->at};
    ZstdOut to = {out, n, 0};
    size_t code = s->zstd.decompress(s->zstd_stream, &to, &in);
    s->at = in.pos;
    if (s->zstd.is_error(code))
        return wrong(s, why, s->zstd.error_name(code)) - 1;
    s->whole = code == 0;
    return (long long)to.pos;
}

long long stream_read(TextStream *s, char *out, size_t n, char why[WHY])
{
    static long long (*const unpack[])(TextStream *, char *, size_t, char *) = {plain, unpack_gzip, unpack_zstd};
    size_t have = 0;
    bool drained = false; /* nothing more comes of what was read */
    while (have < n && !*s->stop) {
        if (s->at == s->n && (s->whole || drained)) {
            if (!s->over && !fill(s, why))
                return -1;
            if (s->over)
                break;
        }
        long long some = unpack[s->packing](s, out + have, n - have, why);
        if (some < 0)
            return -1;
        have += (size_t)some;
        drained = have < n;
    }
    if (s->over && !s->whole && have < n && !*s->stop)
        return wrong(s, why, "the packed file ends in the middle: it is cut") - 1;
    return (long long)have;
}

uint64_t stream_taken(const TextStream *s) { return s->taken - (s->n - s->at); }

void stream_close(TextStream *s)
{
    if (!s)
        return;
    if (s->z_open)
        s->zlib.end(&s->z);
    if (s->zstd_stream)
        s->zstd.free(s->zstd_stream);
    if (s->fd > STDIN_FILENO)
        close(s->fd);
    free(s);
}
