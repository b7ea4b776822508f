/* history.c - see history.h. */
#include "history.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "../compiler/file.h"
#include "run_dir.h"

typedef struct Reading {
    Session *s;
    History *h;
    const char *metric;
    double before;  /* seconds of what was done before the last start */
    double seconds; /* of the last event since */
    double flops, rate, tokens; /* up to the last event; for each token since the last start */
} Reading;

static double number(const Json *event, const char *key)
{
    const Json *v = json_get(event, key);
    return v && v->kind == JSON_NUMBER ? v->number : NAN;
}

/* Up to the first colon: "wider: 13,712 numbers stay ...". */
static const char *step_name(Arena *a, const char *text)
{
    return arena_copy(a, text, strcspn(text, ":"));
}

static bool take_event(Reading *r, const Json *event)
{
    const char *kind = json_string(event, "event");
    double step = number(event, "step"), tokens = number(event, "tokens"), seconds = number(event, "seconds");
    if (!kind || isnan(step) || isnan(tokens) || isnan(seconds))
        return false;
    if (tokens > r->tokens)
        r->flops += (tokens - r->tokens) * r->rate;
    r->tokens = tokens;
    if (!strcmp(kind, "start")) {
        r->before += r->seconds;
        r->rate = number(event, "train_flops_per_token");
    }
    r->seconds = seconds;
    HistoryPoint p = {{step, tokens, r->flops, r->before + seconds}, number(event, r->metric)};
    Arena *a = r->s->arena;
    if (!strcmp(kind, "growth") && json_string(event, "text")) {
        HistoryGrowth g = {.name = step_name(a, json_string(event, "text"))};
        memcpy(g.x, p.x, sizeof g.x);
        vec_push(a, &r->h->growth, g);
    }
    if (isfinite(p.value) && strcmp(kind, "end"))
        vec_push(a, &r->h->point, p);
    r->h->end = p;
    return true;
}

static void release_line(void *what)
{
    char **line = what;
    free(*line);
    *line = NULL;
}

History history_read(Session *s, const char *run, const char *metric)
{
    History h = {.path = run};
    Reading r = {.s = s, .h = &h, .metric = metric, .rate = NAN};
    const char *why;
    if (!run_exists(s, run))
        ctx_raise(s->ctx, ST_USAGE, "`%.300s` is no run directory", run);
    FILE **f = NEW(s->arena, FILE *);
    char **line = NEW(s->arena, char *);
    *line = NULL;
    *f = file_stream(arena_printf(s->arena, "%s/events.jsonl", run), "r", &why);
    if (!*f)
        ctx_raise(s->ctx, ST_ENVIRONMENT, "%.300s/events.jsonl cannot be read: %s", run, why);
    session_defer(s, run_close_stream, f);
    session_defer(s, release_line, line);
    size_t room = 0;
    int64_t at = 0;
    for (ssize_t n; (n = getline(line, &room, *f)) >= 0;) {
        JsonError e;
        ArenaMark mark = arena_mark(s->ctx->scratch);
        if ((*line)[n - 1] != '\n')
            break; /* it is being written */
        at++;
        if (!take_event(&r, json_read(s->ctx->scratch, *line, (size_t)n, &e)) && !h.damaged++)
            h.first_damaged = at;
        arena_reset(s->ctx->scratch, mark);
    }
    if (ferror(*f))
        ctx_raise(s->ctx, ST_ENVIRONMENT, "%.300s/events.jsonl cannot be read: %s", run, strerror(errno));
    return h;
}
