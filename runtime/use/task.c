/* task.c - see task.h. */
#include "task.h"

#include <stdio.h>

#include "runtime/base/json.h"
#include "runtime/shards/stream.h"

enum { CHOICES_MOST = 1 << 16, PIECE = 1 << 20 };

typedef struct Reading {
    Session *s;
    const char *path;
    size_t line;
} Reading;

__attribute__((format(printf, 2, 3))) static _Noreturn void wrong(const Reading *r, const char *fmt, ...)
{
    char text[300];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    ctx_raise(r->s->ctx, ST_INPUT, "%.300s:%zu: %s", r->path, r->line, text);
}

/* The whole text of the file. */
static Buf read_file(Reading *r)
{
    char why[WHY];
    Arena *a = r->s->arena;
    Buf b = buf_new(a);
    char *piece = NEW_ARRAY(a, char, PIECE);
    TextStream *stream = stream_open(r->path, &r->s->owner->interrupted, why);
    long long n = -1;
    if (stream)
        while ((n = stream_read(stream, piece, PIECE, why)) > 0)
            buf_put(&b, piece, (size_t)n);
    stream_close(stream);
    if (n < 0)
        ctx_raise(r->s->ctx, ST_ENVIRONMENT, "%s", why);
    return b;
}

/* ---- a line ---- */

static void only_known(const Reading *r, const Json *object)
{
    static const char *const known[] = {"id", "context", "contexts", "continuation", "continuations", "gold"};
    for (const Json *m = object->first; m; m = m->next) {
        bool found = false;
        for (size_t i = 0; i < COUNT_OF(known) && !found; i++)
            found = m->key_n == strlen(known[i]) && !memcmp(m->key, known[i], m->key_n);
        if (!found)
            wrong(r,
                  "a request has no member `%.60s`: it has `context` and `continuations`, or `contexts` and "
                  "`continuation`; `gold`; `id`",
                  m->key);
    }
}

/* The texts of `one`, or of the list `several`: either of them is there. *n is how many. */
static TaskText *texts(const Reading *r, const Json *object, const char *one, const char *several, size_t *n)
{
    const Json *single = json_get(object, one), *list = json_get(object, several);
    if (!single == !list)
        wrong(r, single ? "`%s` and `%s` exclude each other" : "`%s` or `%s` is missing", one, several);
    if (list && (list->kind != JSON_ARRAY || !list->n || list->n > CHOICES_MOST))
        wrong(r, "`%s` is a list of 1 to %d texts", several, CHOICES_MOST);
    *n = list ? list->n : 1;
    TaskText *out = NEW_ARRAY(r->s->arena, TaskText, *n);
    const Json *each = list ? list->first : single;
    for (size_t i = 0; i < *n; i++, each = each->next) {
        if (each->kind != JSON_STRING)
            wrong(r, "entry %zu of `%s` is no text", i + 1, list ? several : one);
        out[i] = (TaskText){each->s, each->n};
    }
    return out;
}

static size_t gold_of(const Reading *r, const Json *object, size_t n)
{
    const Json *gold = json_get(object, "gold");
    if (!gold && n == 1)
        return 0;
    if (!gold)
        wrong(r, "`gold` is missing: the place of the right one, from 0");
    if (gold->kind != JSON_NUMBER || !gold->whole || gold->integer < 0 || gold->integer >= (int64_t)n)
        wrong(r, "`gold` is a place among the %zu, from 0 to %zu", n, n - 1);
    return (size_t)gold->integer;
}

static const char *id_of(const Reading *r, const Json *object)
{
    const Json *id = json_get(object, "id");
    if (!id)
        return NULL;
    if (id->kind != JSON_STRING && !(id->kind == JSON_NUMBER && id->whole))
        wrong(r, "`id` is a text or a whole number");
    Buf b = buf_new(r->s->arena);
    if (id->kind == JSON_STRING)
        buf_json_string(&b, id->s, id->n);
    else
        buf_printf(&b, "%lld", (long long)id->integer);
    return b.s;
}

static TaskRequest read_line(const Reading *r, const char *text, size_t n)
{
    JsonError error;
    const Json *object = json_read(r->s->arena, text, n, &error);
    if (!object)
        wrong(r, "byte %zu of the line: %s", error.offset + 1, error.what);
    if (object->kind != JSON_OBJECT)
        wrong(r, "the line is no object, {\"context\": ..., \"continuations\": [...], \"gold\": 0}");
    only_known(r, object);
    size_t continuations;
    TaskRequest q = {.line = r->line, .id = id_of(r, object)};
    q.context = texts(r, object, "context", "contexts", &q.contexts);
    TaskText *text_of = texts(r, object, "continuation", "continuations", &continuations);
    if (q.contexts > 1 && continuations > 1)
        wrong(r, "several `contexts` have one `continuation`");
    q.n = q.contexts * continuations;
    q.gold = gold_of(r, object, q.n);
    q.choice = NEW_ARRAY(r->s->arena, TaskChoice, q.n);
    for (size_t i = 0; i < q.n; i++) {
        q.choice[i] = (TaskChoice){continuations > 1 ? 0 : i, text_of[continuations > 1 ? i : 0]};
        if (!q.choice[i].text.n)
            wrong(r, "continuation %zu is empty", i + 1);
    }
    return q;
}

void task_read(Session *s, const char *path, Task *out)
{
    Reading r = {s, path, 0};
    VEC(TaskRequest) all = {0};
    Buf b = read_file(&r);
    for (const char *at = b.s, *end = b.s + b.n; at < end;) {
        const char *line_end = memchr(at, '\n', (size_t)(end - at));
        size_t n = line_end ? (size_t)(line_end - at) : (size_t)(end - at);
        r.line++;
        if (n && !(n == 1 && *at == '\r'))
            vec_push(s->arena, &all, read_line(&r, at, n));
        at += n + 1;
    }
    if (!all.n)
        ctx_raise(s->ctx, ST_INPUT, "%.300s holds no request", path);
    *out = (Task){path, all.v, all.n};
}
