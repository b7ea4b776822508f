/* run_state.c - see run_state.h. */
#include "run_state.h"

#include <math.h>
#include <sys/stat.h>
#include <time.h>

#include "runtime/checkpoint/run_dir.h"

const char *const run_phase_names[RUN_PHASES] = {"running",  "trained", "stopped", "interrupted",
                                                 "diverged", "failed",  "killed"};

typedef struct Reading {
    Session *s;
    RunState *r;
    Map by_name; /* 1 + the place of a curve */
    RunClock clock;
    bool ended;
} Reading;

static RunCurve *curve_named(Reading *g, Name name)
{
    RunState *r = g->r;
    void **at = map_at(&g->by_name, (uintptr_t)name);
    if (!*at) {
        vec_push(g->s->arena, &r->curve, ((RunCurve){.name = name}));
        *at = (void *)r->curve.n;
    }
    return &r->curve.v[(uintptr_t)*at - 1];
}

static bool begins(const char *s, const char *with) { return strncmp(s, with, strlen(with)) == 0; }

static bool is_curve(const char *key)
{
    return !strcmp(key, "loss") || !strcmp(key, "eval_loss") || !strcmp(key, "lr") || !strcmp(key, "grad_norm") ||
           !strcmp(key, "tok_s") || !strcmp(key, "bits_per_byte") || begins(key, "loss.") || begins(key, "metric.");
}

/* Names that a step and an evaluation share are two curves. */
static void take_curves(Reading *g, const Json *event, bool eval)
{
    for (const Json *v = event->first; v; v = v->next) {
        if ((v->kind != JSON_NUMBER && v->kind != JSON_NULL) || !is_curve(v->key))
            continue;
        bool shared = eval && strcmp(v->key, "eval_loss") && strcmp(v->key, "bits_per_byte");
        RunCurve *c = curve_named(g, shared ? name_printf(g->s->ctx, "eval %s", v->key) : name_str(g->s->ctx, v->key));
        HistoryPoint p = g->r->last;
        p.value = v->kind == JSON_NUMBER ? v->number : NAN;
        if (isfinite(p.value))
            vec_push(g->s->arena, &c->point, p);
        else
            vec_push(g->s->arena, &c->odd, p);
    }
}

/* Lists by rank of a step, which may have another number of them than the step before. */
static void take_ranks(Reading *g, const Json *event)
{
    static const char *const name[] = {"computing", "waiting", "communicating", "sent", "rank_mem"};
    for (size_t k = 0; k < sizeof name / sizeof name[0]; k++) {
        const Json *list = json_get(event, name[k]), *v = list && list->kind == JSON_ARRAY ? list->first : NULL;
        for (size_t i = 0; v; v = v->next, i++) {
            if (i == g->r->rank.n)
                vec_push(g->s->arena, &g->r->rank, (RankState){0});
            RankState *of = &g->r->rank.v[i];
            double *sum[] = {&of->computing, &of->waiting, &of->communicating, &of->sent, &of->memory};
            double x = v->kind == JSON_NUMBER ? v->number : 0;
            *sum[k] = sum[k] == &of->memory ? x : *sum[k] + x;
        }
    }
}

static void take_end(RunState *r, const char *status)
{
    static const struct {
        const char *word;
        RunPhase phase;
    } of[] = {{"interrupted", RUN_INTERRUPTED}, {"diverged", RUN_DIVERGED}, {"failed", RUN_FAILED}};
    r->phase = r->last.x[BY_STEP] >= r->steps ? RUN_TRAINED : RUN_STOPPED;
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        if (!strcmp(status, of[i].word))
            r->phase = of[i].phase;
}

static bool take(void *user, const Json *event)
{
    Reading *g = user;
    RunState *r = g->r;
    Arena *a = g->s->arena;
    const char *kind = json_string(event, "event"), *text = json_string(event, "text");
    if (!run_clock_take(&g->clock, event, r->last.x))
        return false;
    const char *copy = text ? arena_copy(a, text, strlen(text)) : "";
    r->steps = event_number(event, "steps");
    g->ended = false;
    if (!strcmp(kind, "start")) {
        r->start = copy;
        r->starts++;
        r->flops_per_token = event_number(event, "train_flops_per_token");
        r->weights = event_number(event, "weights");
    } else if (!strcmp(kind, "compile")) {
        r->compile = copy;
    } else if (!strcmp(kind, "step")) {
        take_curves(g, event, false);
        take_ranks(g, event);
        r->eta = event_number(event, "eta");
        r->memory = event_number(event, "mem");
    } else if (!strcmp(kind, "eval")) {
        take_curves(g, event, true);
        r->eval_step = r->last.x[BY_STEP];
    } else if (!strcmp(kind, "growth")) {
        HistoryGrowth grown = {.name = growth_name(a, copy)};
        memcpy(grown.x, r->last.x, sizeof grown.x);
        vec_push(a, &r->growth, grown);
    } else if (!strcmp(kind, "end")) {
        r->end = copy;
        take_end(r, json_string(event, "status") ? json_string(event, "status") : "");
        g->ended = true;
    }
    if (*copy && (!strcmp(kind, "growth") || !strcmp(kind, "note") || !strcmp(kind, "warning")))
        vec_push(a, &r->note, ((RunNote){r->last.x[BY_STEP], arena_copy(a, kind, strlen(kind)), copy}));
    return true;
}

RunState run_state_read(Session *s, const char *run)
{
    static const char *const fixed[FIXED_CURVES] = {"loss", "eval_loss", "lr", "grad_norm", "tok_s", "bits_per_byte"};
    RunState r = {.path = run,
                  .name = run_name(s->arena, run),
                  .start = "",
                  .compile = "",
                  .end = "",
                  .steps = NAN,
                  .eta = NAN,
                  .memory = NAN,
                  .eval_step = NAN,
                  .flops_per_token = NAN,
                  .weights = NAN};
    Reading g = {.s = s, .r = &r, .clock = run_clock()};
    struct stat st;
    map_init(&g.by_name, s->arena);
    for (int i = 0; i < FIXED_CURVES; i++)
        curve_named(&g, name_str(s->ctx, fixed[i]));
    bool held =
        run_exists(s, run) && run_is_held(s, run); /* before the events: a run that ends meanwhile has its end there */
    r.events = events_read(s, run, take, &g);
    if (!g.ended || held)
        r.phase = held ? RUN_GOES_ON : RUN_SILENT;
    if (stat(arena_printf(s->arena, "%s/events.jsonl", run), &st) == 0)
        r.quiet = fmax(difftime(time(NULL), st.st_mtime), 0);
    return r;
}

double run_curve_last(const RunState *r, size_t curve)
{
    const RunCurve *c = &r->curve.v[curve];
    return c->point.n ? c->point.v[c->point.n - 1].value : NAN;
}

bool run_curve_odd(const RunCurve *c)
{
    return c->odd.n && (!c->point.n || c->odd.v[c->odd.n - 1].x[BY_STEP] >= c->point.v[c->point.n - 1].x[BY_STEP]);
}

const char *duration_text(Arena *a, double seconds)
{
    if (seconds < 100)
        return arena_printf(a, seconds < 9.95 ? "%.1f s" : "%.0f s", seconds);
    if (seconds < 6000)
        return arena_printf(a, "%.0f min", seconds / 60);
    if (seconds < 72 * 3600.0)
        return arena_printf(a, "%.1f h", seconds / 3600);
    return arena_printf(a, "%.0f days", seconds / 86400);
}

const char *run_phase_text(Arena *a, const RunState *r)
{
    const char *ago = duration_text(a, r->quiet);
    if (r->phase == RUN_SILENT)
        return arena_printf(a, "ended without a word, %s ago", ago);
    if (r->phase == RUN_GOES_ON && r->quiet >= 10)
        return arena_printf(a, "running, silent for %s", ago);
    return r->phase == RUN_GOES_ON ? "running" : arena_printf(a, "%s, %s ago", run_phase_names[r->phase], ago);
}
