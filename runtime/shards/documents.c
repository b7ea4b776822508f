/* documents.c - see documents.h. */
#define _DEFAULT_SOURCE
#include "documents.h"
#include "stream.h"

#include "compiler/portable/threads.h"

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum {
    PART = 1 << 16,  /* bytes of a part of a long document, about */
    PIECE = 1 << 20, /* that are read at a time */
    BATCHES = 2,     /* one is worked on, one is read */
    WAIT_NS = 100 << 20
};

struct Documents {
    DocumentsOptions how;
    BpeWork work;
    TextStream *stream;
    TextPlace at;    /* what has become parts, up to here */
    bool stream_end; /* the text has no more bytes than those that are kept */
    char *memory;    /* bytes of the text behind `at`: `kept` of them from `from` on */
    size_t from, kept, room;
    volatile int stop;
    pthread_t thread;
    bool started;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    TextBatch batch[BATCHES];
    size_t made, used; /* how many there were */
    bool in_use;       /* batch `used - 1` */
};

static bool no_memory(TextBatch *b)
{
    snprintf(b->why, WHY, "there is no memory for a batch of texts");
    return false;
}

static bool room(char **p, size_t *have, size_t n)
{
    if (*have >= n)
        return true;
    size_t want = n + n / 2 + 64;
    char *larger = realloc(*p, want);
    if (!larger)
        return false;
    *p = larger;
    *have = want;
    return true;
}

static const char *text_at(const Documents *d, size_t i) { return d->memory + d->from + i; }

/* Reads until n bytes are kept, or the text is over. */
static bool keep_bytes(Documents *d, TextBatch *b, size_t n)
{
    while (d->kept < n && !d->stream_end) {
        if (d->from) {
            memmove(d->memory, d->memory + d->from, d->kept);
            d->from = 0;
        }
        if (!room(&d->memory, &d->room, d->kept + PIECE))
            return no_memory(b);
        long long got = stream_read(d->stream, d->memory + d->kept, PIECE, b->why);
        if (got < 0)
            return false;
        d->kept += (size_t)got;
        d->stream_end = got < PIECE;
    }
    return true;
}

/* The first n bytes that are kept go into the batch, as a part of what they hold from `from` up to `to`; an empty one is none. */
static bool take(Documents *d, TextBatch *b, size_t n, size_t from, size_t to, bool begins)
{
    if (to > from) {
        if (b->parts == b->part_room) {
            size_t more = 2 * b->part_room + 256;
            TextPart *larger = realloc(b->part, more * sizeof *larger);
            if (!larger)
                return no_memory(b);
            b->part = larger;
            b->part_room = more;
        }
        if (!room(&b->text, &b->room, b->n + (to - from)))
            return no_memory(b);
        memcpy(b->text + b->n, text_at(d, from), to - from);
        b->part[b->parts++] =
            (TextPart){b->n, b->n + (to - from), d->at.input, d->at.offset + from, d->at.line + 1, begins};
        b->n += to - from;
    }
    d->at.offset += n;
    d->from += n;
    d->kept -= n;
    return true;
}

/* ---- parts ---- */

/* A part of a text that is one document. */
static bool take_text(Documents *d, TextBatch *b)
{
    for (size_t wanted = PART;; wanted *= 2) {
        size_t at = wanted;
        if (!keep_bytes(d, b, wanted + PART_AHEAD))
            return false;
        if (d->kept <= wanted) { /* it ends here */
            bool begins = !d->at.within && d->kept;
            d->at.within = false;
            return take(d, b, d->kept, 0, d->kept, begins);
        }
        if (!bpe_cut(&d->work, text_at(d, 0), wanted + PART_AHEAD < d->kept ? wanted + PART_AHEAD : d->kept, &at))
            continue;
        bool begins = !d->at.within;
        d->at.within = true;
        return take(d, b, at, 0, at, begins);
    }
}

static bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\r'; }

/* A line that is a document. */
static bool take_lines(Documents *d, TextBatch *b)
{
    size_t from = 0;
    const char *end = NULL;
    for (size_t wanted = PART; !end; wanted *= 2) {
        if (!keep_bytes(d, b, wanted))
            return false;
        end = d->kept > from ? memchr(text_at(d, from), '\n', d->kept - from) : NULL;
        from = d->kept;
        if (!end && d->stream_end)
            break;
    }
    size_t to = end ? (size_t)(end - text_at(d, 0)) : d->kept, n = to + (end != NULL);
    for (from = 0; from < to && is_blank(*text_at(d, from));)
        from++;
    while (to > from && is_blank(*text_at(d, to - 1)))
        to--;
    if (!take(d, b, n, from, to, true))
        return false;
    d->at.line++;
    return true;
}

/* ---- texts ---- */

static bool open_text(Documents *d, TextBatch *b)
{
    d->stream = stream_open(d->how.texts->path[d->at.input], &d->stop, b->why);
    d->stream_end = false;
    d->from = d->kept = 0;
    if (!d->stream)
        return false;
    for (uint64_t left = d->at.offset; left;) { /* it goes on behind this */
        if (!room(&d->memory, &d->room, PIECE))
            return no_memory(b);
        long long got = stream_read(d->stream, d->memory, left < PIECE ? (size_t)left : PIECE, b->why);
        if (got <= 0) {
            if (!got)
                snprintf(b->why, WHY, "%.300s: it ends before the place where the shards end that are there",
                         d->how.texts->path[d->at.input]);
            return false;
        }
        left -= (uint64_t)got;
    }
    return true;
}

static void close_text(Documents *d)
{
    stream_close(d->stream);
    d->stream = NULL;
    d->at = (TextPlace){.input = d->at.input + 1};
}

static double share(const Documents *d)
{
    double all = 0, taken = 0;
    for (size_t i = 0; i < d->how.texts->n; i++) {
        if (d->how.texts->bytes[i] < 0)
            return -1;
        all += (double)d->how.texts->bytes[i];
        taken += i < d->at.input ? (double)d->how.texts->bytes[i] : 0;
    }
    taken += d->stream ? (double)stream_taken(d->stream) : 0;
    return all > 0 ? taken / all : 1;
}

static bool fill(Documents *d, TextBatch *b)
{
    while (b->n < d->how.batch && d->at.input < d->how.texts->n && !d->stop) {
        if (!d->stream && !open_text(d, b))
            return false;
        if (!(d->how.texts->field[d->at.input] ? take_lines : take_text)(d, b))
            return false;
        if (d->stream_end && !d->kept)
            close_text(d);
    }
    return true;
}

static void make(Documents *d, TextBatch *b)
{
    b->n = b->parts = 0;
    b->why[0] = '\0';
    b->start = d->at;
    b->before = share(d);
    bool fine = fill(d, b);
    b->open = d->at.within;
    b->last = !fine || d->stop || d->at.input == d->how.texts->n;
    b->behind = share(d);
}

/* ---- the thread ---- */

static void *read_all(void *user)
{
    Documents *d = user;
    for (bool last = false; !last && !d->stop;) {
        pthread_mutex_lock(&d->lock);
        while (d->made - d->used + d->in_use >= BATCHES && !d->stop)
            pthread_cond_wait(&d->changed, &d->lock);
        TextBatch *b = &d->batch[d->made % BATCHES];
        pthread_mutex_unlock(&d->lock);
        if (d->stop)
            break;
        make(d, b);
        last = b->last;
        pthread_mutex_lock(&d->lock);
        d->made++;
        pthread_cond_broadcast(&d->changed);
        pthread_mutex_unlock(&d->lock);
    }
    return NULL;
}

Documents *documents_open(const DocumentsOptions *how)
{
    Documents *d = calloc(1, sizeof *d);
    if (!d)
        return NULL;
    d->how = *how;
    d->at = how->start;
    pthread_mutex_init(&d->lock, NULL);
    pthread_cond_init(&d->changed, NULL);
    if (bpe_work_open(&d->work, how->bpe))
        d->started = thread_start(&d->thread, read_all, d) == 0;
    if (d->started)
        return d;
    documents_close(d);
    return NULL;
}

TextBatch *documents_next(Documents *d)
{
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += WAIT_NS;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    pthread_mutex_lock(&d->lock);
    d->in_use = false;
    pthread_cond_broadcast(&d->changed);
    int late = 0;
    while (d->made == d->used && !late)
        late = pthread_cond_timedwait(&d->changed, &d->lock, &until);
    TextBatch *b = d->made > d->used ? &d->batch[d->used++ % BATCHES] : NULL;
    d->in_use = b != NULL;
    pthread_mutex_unlock(&d->lock);
    return b;
}

void documents_close(Documents *d)
{
    if (!d)
        return;
    pthread_mutex_lock(&d->lock);
    d->stop = 1;
    pthread_cond_broadcast(&d->changed);
    pthread_mutex_unlock(&d->lock);
    if (d->started)
        pthread_join(d->thread, NULL);
    stream_close(d->stream);
    for (size_t i = 0; i < BATCHES; i++) {
        free(d->batch[i].text);
        free(d->batch[i].part);
    }
    free(d->memory);
    bpe_work_close(&d->work);
    pthread_cond_destroy(&d->changed);
    pthread_mutex_destroy(&d->lock);
    free(d);
}
