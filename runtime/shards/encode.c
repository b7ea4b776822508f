/* encode.c - see encode.h. */
#include "encode.h"

#include "compiler/portable/json.h"

#include <stdio.h>
#include <stdlib.h>

/* Memory for the tree of a line, which is taken anew for each. */
typedef struct LineMemory {
    char *at;
    size_t n, room;
} LineMemory;

typedef struct EncodeThread {
    BpeWork work;
    IdList ids;
    LineMemory line;
    Pieces pieces;
    size_t wrong; /* place in the order of the first part that is; SIZE_MAX: none */
    char why[WHY];
} EncodeThread;

struct Encoder {
    EncoderOptions how;
    Pool *pool;
    EncodeThread *thread;
    int threads;
    const TextBatch *batch;
    const size_t *order;
    PartIds *out;
};

/* ---- the member of a line ---- */

/* A value takes a byte at least, and as much as this of a tree. */
enum { OF_A_BYTE = sizeof(Json) + 24 };

static void *take(void *user, size_t bytes)
{
    LineMemory *m = user;
    char *p = m->at + m->n;
    m->n += (bytes + 15) & ~(size_t)15;
    memset(p, 0, bytes);
    return p;
}

static bool line_room(LineMemory *m, size_t n)
{
    size_t want = (n + 64) * OF_A_BYTE;
    m->n = 0;
    if (m->room >= want)
        return true;
    free(m->at);
    m->at = n < SIZE_MAX / OF_A_BYTE / 2 ? malloc(want) : NULL;
    m->room = m->at ? want : 0;
    return m->at != NULL;
}

/* The document of a line: *text, *n. False with `why`. */
static bool document_of(EncodeThread *t, const char *field, const char **text, size_t *n, char why[WHY])
{
    JsonError error;
    Region region = {take, &t->line};
    if (!line_room(&t->line, *n)) {
        snprintf(why, WHY, "there is no memory for it");
        return false;
    }
    const Json *j = json_parse(&region, *text, *n, &error);
    const Json *member = j && j->kind == JSON_OBJECT ? json_get(j, field) : NULL;
    if (!j)
        snprintf(why, WHY, "byte %zu of the line: %s", error.offset, error.what);
    else if (j->kind != JSON_OBJECT)
        snprintf(why, WHY, "the line is no object, {\"%.100s\": \"...\"}", field);
    else if (!member)
        snprintf(why, WHY, "the object has no member `%.100s`; `--field` says which one is the document", field);
    else if (member->kind != JSON_STRING)
        snprintf(why, WHY, "the member `%.100s` is no text", field);
    else {
        *text = member->s;
        *n = member->n;
        return true;
    }
    return false;
}

/* ---- parts ---- */

static void encode_one(Encoder *e, EncodeThread *t, size_t i)
{
    const TextPart *p = &e->batch->part[e->order[i]];
    const char *text = e->batch->text + p->from, *field = e->how.texts->field[p->input];
    size_t n = p->to - p->from, at = t->ids.n;
    char why[WHY] = "";
    t->work.before = field ? 0 : p->offset;
    bool fine = !field || document_of(t, field, &text, &n, why);
    fine = fine && bpe_encode(&t->work, text, n, &t->ids, why);
    e->out[i] = (PartIds){fine && n ? &t->ids : NULL, at, t->ids.n - at};
    if (fine || t->wrong < i)
        return;
    t->wrong = i;
    if (field)
        snprintf(t->why, WHY, "%.250s:%llu: %.200s", e->how.texts->name[p->input], (unsigned long long)p->line, why);
    else
        snprintf(t->why, WHY, "%.250s: %.200s", e->how.texts->name[p->input], why);
}

static void encode_range(void *user, int64_t lo, int64_t hi, int worker)
{
    Encoder *e = user;
    for (int64_t i = lo; i < hi; i++)
        encode_one(e, &e->thread[worker], (size_t)i);
}

bool encode_parts(Encoder *e, const TextBatch *b, const size_t *order, size_t n, PartIds *out, char why[WHY])
{
    enum { CHUNKS = 16 }; /* of each thread, so that none waits long for the others */
    e->batch = b;
    e->order = order;
    e->out = out;
    for (int i = 0; i < e->threads; i++) {
        e->thread[i].ids.n = 0;
        e->thread[i].wrong = SIZE_MAX;
    }
    parallel_for(e->pool, (int64_t)n, (int64_t)n / (e->threads * CHUNKS), encode_range, e);
    const EncodeThread *first = NULL;
    for (int i = 0; i < e->threads; i++)
        if (e->thread[i].wrong != SIZE_MAX && (!first || e->thread[i].wrong < first->wrong))
            first = &e->thread[i];
    if (first)
        memcpy(why, first->why, WHY);
    return !first;
}

static bool add_piece(void *user, const char *s, size_t n) { return pieces_add(user, s, n, 1); }

bool encoder_pieces(Encoder *e, Pieces *all)
{
    bool fine = true;
    for (int i = 0; i < e->threads; i++) {
        fine = fine && pieces_add_all(all, &e->thread[i].pieces);
        pieces_clear(&e->thread[i].pieces);
    }
    return fine;
}

Encoder *encoder_open(const EncoderOptions *how)
{
    Encoder *e = calloc(1, sizeof *e);
    if (!e)
        return NULL;
    e->how = *how;
    e->pool = pool_open(how->threads);
    e->threads = e->pool ? pool_threads(e->pool) : 0;
    e->thread = calloc((size_t)e->threads + 1, sizeof *e->thread);
    bool fine = e->pool && e->thread;
    for (int i = 0; fine && i < e->threads; i++) {
        EncodeThread *t = &e->thread[i];
        fine = bpe_work_open(&t->work, how->bpe);
        t->work.piece = how->counts ? add_piece : NULL;
        t->work.piece_user = &t->pieces;
    }
    if (fine)
        return e;
    encoder_close(e);
    return NULL;
}

void encoder_close(Encoder *e)
{
    if (!e)
        return;
    pool_close(e->pool);
    for (int i = 0; e->thread && i < e->threads; i++) {
        if (e->thread[i].work.bpe)
            bpe_work_close(&e->thread[i].work);
        free(e->thread[i].ids.v);
        free(e->thread[i].line.at);
        pieces_free(&e->thread[i].pieces);
    }
    free(e->thread);
    free(e);
}
