/* history.c - see history.h. */
#include "history.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "compiler/portable/file.h"
#include "runtime/checkpoint/run_dir.h"

const char *const history_axis_name[HISTORY_AXES] = {"step", "tokens", "FLOPs", "seconds"};

typedef struct Reading {
    Session *s;
    History *h;
    const char *metric;
    bool of_eval, of_step; /* "eval/NAME"; a step has had it */
    RunClock clock;
} Reading;

double event_number(const Json *event, const char *name)
{
    const Json *v = json_get(event, name);
    const char *at = v ? NULL : strchr(name, '[');
    if (at && (size_t)(at - name) < 256) {
        char list[256];
        memcpy(list, name, (size_t)(at - name));
        list[at - name] = '\0';
        const Json *of = json_get(event, list);
        char *end;
        long k = strtol(at + 1, &end, 10);
        v = of && of->kind == JSON_ARRAY && k > 0 && !strcmp(end, "]") ? of->first : NULL;
        while (v && --k > 0)
            v = v->next;
    }
    return v && v->kind == JSON_NUMBER ? v->number : NAN;
}

const char *growth_name(Arena *a, const char *text) { return arena_copy(a, text, strcspn(text, ":")); }

const char *run_name(Arena *a, const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    size_t from = n;
    while (from && path[from - 1] != '/')
        from--;
    return arena_copy(a, path + from, n - from);
}

RunClock run_clock(void) { return (RunClock){.rate = NAN}; }

bool run_clock_take(RunClock *c, const Json *event, double x[HISTORY_AXES])
{
    const char *kind = json_string(event, "event");
    double step = event_number(event, "step"), tokens = event_number(event, "tokens"),
           seconds = event_number(event, "seconds");
    if (!kind || isnan(step) || isnan(tokens) || isnan(seconds))
        return false;
    bool start = !strcmp(kind, "start"), told = !strcmp(kind, "warning") || !strcmp(kind, "note");
    if (tokens > c->tokens)
        c->flops += (tokens - c->tokens) * c->rate;
    c->tokens = tokens;
    if (start)
        c->rate = event_number(event, "train_flops_per_token");
    if (start || !strcmp(kind, "compile")) {
        c->last = seconds; /* what was planned and compiled up to here is no training */
    } else if (!told) {    /* a warning may stand before the start that it belongs to */
        c->seconds += seconds >= c->last ? seconds - c->last : seconds;
        c->last = seconds;
    }
    x[BY_STEP] = step;
    x[BY_TOKENS] = tokens;
    x[BY_FLOPS] = c->flops;
    x[BY_SECONDS] = c->seconds;
    return true;
}

static bool take_event(void *user, const Json *event)
{
    Reading *r = user;
    const char *kind = json_string(event, "event");
    HistoryPoint p = {.value = event_number(event, r->metric)};
    if (!run_clock_take(&r->clock, event, p.x))
        return false;
    bool wanted = strcmp(kind, "end") && (!r->of_eval || !strcmp(kind, "eval"));
    p.of_step = !strcmp(kind, "step");
    Arena *a = r->s->arena;
    if (!strcmp(kind, "growth") && json_string(event, "text")) {
        HistoryGrowth g = {.name = growth_name(a, json_string(event, "text"))};
        memcpy(g.x, p.x, sizeof g.x);
        vec_push(a, &r->h->growth, g);
    }
    if (isfinite(p.value) && wanted)
        vec_push(a, &r->h->point, p);
    r->of_step |= isfinite(p.value) && wanted && p.of_step;
    r->h->end = p;
    r->h->steps = event_number(event, "steps");
    return true;
}

static void release_line(void *what)
{
    char **line = what;
    free(*line);
    *line = NULL;
}

Events events_read(Session *s, const char *run, bool (*take)(void *user, const Json *event), void *user)
{
    Events e = {0};
    const char *why;
    run_want(s, run);
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
        JsonError error;
        ArenaMark mark = arena_mark(s->ctx->scratch);
        if ((*line)[n - 1] != '\n')
            break; /* it is being written */
        at++;
        Json *event = json_read(s->ctx->scratch, *line, (size_t)n, &error);
        if (event)
            json_make_plain(s->ctx->scratch, event);
        if (!take(user, event) && !e.damaged++)
            e.first_damaged = at;
        arena_reset(s->ctx->scratch, mark);
    }
    if (ferror(*f))
        ctx_raise(s->ctx, ST_ENVIRONMENT, "%.300s/events.jsonl cannot be read: %s", run, strerror(errno));
    run_close_stream(f);
    return e;
}

void events_warn(Session *s, const char *run, const Events *e)
{
    if (e->damaged)
        session_warn(s, arena_printf(s->arena, "%.200s/events.jsonl:%lld: %lld damaged line%s passed over", run,
                                     (long long)e->first_damaged, (long long)e->damaged,
                                     e->damaged == 1 ? " is" : "s are"));
}

typedef struct Naming {
    Session *s;
    NameVec *names;
    Map seen;
} Naming;

static void take_name(Naming *n, Name name)
{
    void **seen = map_at(&n->seen, (uintptr_t)name);
    if (!*seen)
        vec_push(n->s->arena, n->names, name);
    *seen = n;
}

static bool take_names(void *user, const Json *event)
{
    Naming *n = user;
    Ctx *ctx = n->s->ctx;
    if (!json_string(event, "event"))
        return false;
    for (const Json *v = event->first; v; v = v->next) {
        int at = 0;
        if (v->kind == JSON_NUMBER && strcmp(v->key, "v"))
            take_name(n, name_str(ctx, v->key));
        for (const Json *k = v->kind == JSON_ARRAY ? v->first : NULL; k; k = k->next)
            if (++at && k->kind == JSON_NUMBER)
                take_name(n, name_printf(ctx, "%s[%d]", v->key, at));
    }
    return true;
}

Events events_names(Session *s, const char *run, NameVec *names)
{
    Naming n = {.s = s, .names = names};
    map_init(&n.seen, s->arena);
    return events_read(s, run, take_names, &n);
}

History history_read(Session *s, const char *run, const char *metric)
{
    History h = {.path = run, .steps = NAN};
    Reading r = {.s = s, .h = &h, .metric = metric, .clock = run_clock()};
    if (!strncmp(metric, "eval/", 5)) {
        r.of_eval = true;
        r.metric += 5;
    }
    h.events = events_read(s, run, take_event, &r);
    size_t n = h.point.n;
    h.point.n = 0;
    for (size_t i = 0; i < n; i++)
        if (!r.of_step || h.point.v[i].of_step)
            h.point.v[h.point.n++] = h.point.v[i];
    return h;
}

void history_need(Session *s, const History *h, HistoryAxis by)
{
    if (!isfinite(h->end.x[by]))
        ctx_raise(s->ctx, ST_USAGE, "the run %.250s has not written its FLOPs: it was trained by an earlier version",
                  h->path);
}

_Noreturn void events_lack(Session *s, const char *run, const char *name)
{
    Ctx *ctx = s->ctx;
    NameVec names = {0};
    Buf b = buf_new(ctx->scratch);
    events_names(s, run, &names);
    Name near = nearest_name(name_str(ctx, name), names.v, names.n);
    for (size_t i = 0; i < names.n && b.n < 300; i++) {
        buf_printf(&b, "%s%.60s", i ? ", " : "", names.v[i]);
        if (!near && !strncmp(name, "val", 3) && strstr(names.v[i], "eval_loss"))
            near = names.v[i];
    }
    if (near)
        ctx_raise(ctx, ST_USAGE, "the run %.200s has written no `%.80s`; did you mean `%.80s`?", run, name, near);
    ctx_raise(ctx, ST_USAGE, "the run %.120s has written no `%.60s`; it has %.310s", run, name,
              b.n ? b.s : "no numbers");
}
