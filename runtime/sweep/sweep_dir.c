/* sweep_dir.c - the folder of a sweep: sweep.json, and a run for each point.
 *
 * In:  a path, the plan.   Out: the manifest, and what an earlier one said about the same points.
 * The one idea: a manifest belongs to a file's text and its points; another text is refused, and so are points that leave one
 * of them out, so that no table holds numbers of two experiments. Points may be added.
 */
#include <math.h>
#include <stdio.h>
#include <sys/stat.h>

#include "sweep.h"

const char *const point_state[POINT_STATES] = {"waiting", "done", "pruned", "wrong", "diverged", "failed"};
static const char *const unit_name[] = {"end", "steps", "tokens", "seconds"};
static const char manifest[] = SWEEP_MANIFEST;

const char *sweep_point_folder(Arena *a, const SweepRun *s, size_t point)
{
    return arena_printf(a, "%s/%s", s->dir->path, s->plan->point[point].name);
}

/* ---- writing ---- */

void sweep_put_number(Buf *b, const char *key, double x)
{
    buf_printf(b, ",\"%s\":", key);
    if (isfinite(x))
        buf_number(b, x);
    else
        buf_puts(b, "null");
}

void sweep_put_string(Buf *b, const char *key, const char *s)
{
    buf_printf(b, ",\"%s\":", key);
    buf_json_string(b, s, strlen(s));
}

static void put_point(Buf *b, const SweepRun *s, size_t i)
{
    const SweepPoint *p = &s->plan->point[i];
    const PointResult *r = &s->seen[i];
    buf_puts(b, i ? ",\n{\"name\":" : "\n{\"name\":");
    buf_json_string(b, p->name, strlen(p->name));
    buf_puts(b, ",\"set\":[");
    for (size_t k = 0; k < p->n_set; k++) {
        buf_puts(b, k ? "," : "");
        buf_json_string(b, p->set[k], strlen(p->set[k]));
    }
    buf_puts(b, "]");
    sweep_put_string(b, "state", point_state[r->state]);
    if (r->cost.counted) {
        sweep_put_number(b, "params", r->cost.live);
        sweep_put_number(b, "stored", r->cost.stored);
        sweep_put_number(b, "flops_per_token", r->cost.flops);
        sweep_put_number(b, "mean_width", r->cost.width);
        sweep_put_number(b, "kv_bytes", r->cost.kv);
    }
    if (isfinite(r->step)) {
        sweep_put_number(b, "step", r->step);
        sweep_put_number(b, "tokens", r->tokens);
        sweep_put_number(b, "seconds", r->seconds);
        sweep_put_number(b, "train_loss", r->train_loss);
        sweep_put_number(b, "eval_loss", r->eval_loss);
    }
    for (size_t k = 0; k < r->rungs; k++) {
        buf_puts(b, k ? "," : ",\"rungs\":[");
        if (isfinite(r->rung[k]))
            buf_number(b, r->rung[k]);
        else
            buf_puts(b, "null");
    }
    buf_puts(b, r->rungs ? "]" : "");
    if (r->why[0]) {
        sweep_put_number(b, "status", r->status);
        sweep_put_string(b, "why", r->why);
    }
    buf_putc(b, '}');
}

static void put_bound(Buf *b, const char *key, const SweepBound *u)
{
    buf_printf(b, ",\"%s\":[\"%s\",", key, unit_name[u->unit]);
    buf_number(b, u->amount);
    buf_putc(b, ']');
}

static const char *prune_text(Arena *a, const SweepPlan *p)
{
    Buf b = buf_new(a);
    for (size_t i = 0; i < p->n_rungs; i++) {
        buf_number(&b, p->rung[i].amount);
        buf_printf(&b, " %s, ", unit_name[p->rung[i].unit]);
    }
    if (p->n_rungs) {
        buf_number(&b, p->keep);
        buf_puts(&b, p->by_train_loss ? " by train.loss" : " by eval.loss");
    }
    return b.s;
}

void sweep_write_manifest(SweepRun *s, bool clearing)
{
    if (!sweep_writes(s))
        return;
    ArenaMark mark = arena_mark(s->session.arena);
    pthread_mutex_lock(&s->lock); /* workers go on meanwhile */
    memcpy(s->seen, s->result, s->plan->n * sizeof *s->seen);
    pthread_mutex_unlock(&s->lock);
    Buf b = buf_new(s->session.arena);
    buf_puts(&b, "{\"v\":1,\"event\":\"sweep\"");
    sweep_put_string(&b, "name", s->plan->name);
    sweep_put_string(&b, "file", s->plan->file);
    buf_printf(&b, ",\"hash\":\"%016llx\"", (unsigned long long)s->plan->hash);
    put_bound(&b, "until", &s->plan->until);
    sweep_put_string(&b, "prune", prune_text(s->session.arena, s->plan));
    buf_printf(&b, ",\"clearing\":%s,\"points\":[", clearing ? "true" : "false");
    for (size_t i = 0; i < s->plan->n; i++)
        put_point(&b, s, i);
    buf_puts(&b, "]}\n");
    run_write_file(&s->session, s->dir, manifest, b.s, b.n);
    arena_reset(s->session.arena, mark);
}

/* ---- reading ---- */

static double number(const Json *o, const char *key)
{
    const Json *v = json_get(o, key);
    return v && v->kind == JSON_NUMBER ? v->number : NAN;
}

static _Noreturn void other(SweepRun *s, const char *what)
{
    ctx_raise(s->session.ctx, ST_USAGE,
              "`%.200s` holds %s; choose another directory with --run, or start anew with --overwrite", s->dir->path,
              what);
}

static _Noreturn void damaged(SweepRun *s, const char *what)
{
    ctx_raise(s->session.ctx, ST_ENVIRONMENT,
              "%.200s/%s is damaged: %.120s; the runs of its points are untouched: put the file back, or use another "
              "directory",
              s->dir->path, manifest, what);
}

/* Which point here has the name of this one, and its settings; SIZE_MAX: none. */
static size_t point_like(SweepRun *s, const Map *by_name, const char *name, const Json *set)
{
    size_t i = (size_t)(uintptr_t)map_get(by_name, (uintptr_t)name_str(s->session.ctx, name));
    const SweepPoint *p = i ? &s->plan->point[i - 1] : NULL;
    bool same = p && set->n == p->n_set;
    size_t k = 0;
    for (const Json *v = set->first; v && same; v = v->next, k++)
        same = v->kind == JSON_STRING && !strcmp(v->s, p->set[k]);
    return same ? i - 1 : SIZE_MAX;
}

/* What the point of this name was started with, and no point of this name has here; NULL: that is not what differs. */
static const char *setting_lacking(SweepRun *s, const Map *by_name, const char *name, const Json *set)
{
    size_t i = (size_t)(uintptr_t)map_get(by_name, (uintptr_t)name_str(s->session.ctx, name));
    const SweepPoint *p = i ? &s->plan->point[i - 1] : NULL;
    for (const Json *v = set->first; v && p; v = v->next) {
        bool has = v->kind != JSON_STRING;
        for (size_t k = 0; k < p->n_set && !has; k++)
            has = !strcmp(v->s, p->set[k]);
        if (!has)
            return v->s;
    }
    return NULL;
}

/* The i-th of the manifest. */
static void take_point(SweepRun *s, const Map *by_name, size_t i, const Json *j)
{
    const Json *set = json_get(j, "set"), *rungs = json_get(j, "rungs");
    const char *name = json_string(j, "name"), *state = json_string(j, "state"), *why = json_string(j, "why");
    if (!name || !state || !set || set->kind != JSON_ARRAY)
        damaged(s, arena_printf(s->session.arena, "point %zu lacks its name, its settings or its state", i + 1));
    size_t at = point_like(s, by_name, name, set);
    const char *setting = at == SIZE_MAX ? setting_lacking(s, by_name, name, set) : NULL;
    if (setting)
        ctx_raise(
            s->session.ctx, ST_USAGE,
            "the sweep in `%.200s` was started with `--set '%.200s'`: give that again; or choose another directory "
            "with --run, or start anew with --overwrite",
            s->dir->path, setting);
    if (at == SIZE_MAX)
        other(s,
              arena_printf(s->session.arena,
                           "a sweep with other points: its point %zu, `%.80s`, is none of the %zu that this call has "
                           "(give the `--vary` and `--set` of its first call again)",
                           i + 1, name, s->plan->n));
    PointResult *r = &s->result[at];
    r->state = POINT_STATES;
    for (int v = 0; v < POINT_STATES; v++)
        if (!strcmp(state, point_state[v]))
            r->state = (PointState)v;
    if (r->state == POINT_STATES)
        damaged(s, arena_printf(s->session.arena, "the point `%.60s` is in no known state", name));
    r->cost = (PointCost){.counted = isfinite(number(j, "params")),
                          .live = number(j, "params"),
                          .stored = number(j, "stored"),
                          .flops = number(j, "flops_per_token"),
                          .width = number(j, "mean_width"),
                          .kv = number(j, "kv_bytes"),
                          .memory = NAN,
                          .step_seconds = NAN};
    r->step = number(j, "step");
    r->tokens = number(j, "tokens");
    r->seconds = number(j, "seconds");
    r->train_loss = number(j, "train_loss");
    r->eval_loss = number(j, "eval_loss");
    for (const Json *v = rungs && rungs->kind == JSON_ARRAY ? rungs->first : NULL; v && r->rungs < s->plan->n_rungs;
         v = v->next)
        r->rung[r->rungs++] = v->kind == JSON_NUMBER ? v->number : NAN;
    if (why) {
        r->status = (vwn_status)(isfinite(number(j, "status")) ? number(j, "status") : VWN_ENVIRONMENT);
        snprintf(r->why, sizeof r->why, "%s", why);
    }
}

/* What failed for want of something is tried again; what was done goes on where the end is another one. */
static void reopen_points(SweepRun *s, bool same_end)
{
    for (size_t i = 0; i < s->plan->n; i++) {
        PointResult *r = &s->result[i];
        if (r->state == POINT_FAILED || (r->state == POINT_DONE && !same_end)) {
            r->state = POINT_WAITING;
            r->why[0] = 0;
        }
    }
}

/* True: its points are to be cleared before anything else. */
static bool read_manifest(SweepRun *s, const char *path)
{
    Arena *a = s->session.arena;
    size_t n;
    JsonError e;
    char *text = run_read_file(a, path, &n);
    if (!text)
        ctx_raise(s->session.ctx, ST_ENVIRONMENT, "%.300s cannot be read", path);
    const Json *j = json_read(a, text, n, &e);
    if (!j || j->kind != JSON_OBJECT)
        damaged(s, j ? "it is no object" : arena_printf(a, "%s at byte %zu", e.what, e.offset));
    const char *file = json_string(j, "file"), *hash = json_string(j, "hash"), *prune = json_string(j, "prune");
    const Json *points = json_get(j, "points"), *until = json_get(j, "until"), *clearing = json_get(j, "clearing");
    if (!file || !hash || !prune || !points || points->kind != JSON_ARRAY || !until || until->kind != JSON_ARRAY ||
        until->n != 2)
        damaged(s, "it lacks its file, its end or its points");
    if (strcmp(file, s->plan->file))
        other(s, arena_printf(a, "a sweep of `%.120s`, not of `%.120s`", file, s->plan->file));
    if (strcmp(hash, arena_printf(a, "%016llx", (unsigned long long)s->plan->hash)))
        other(s, arena_printf(a, "a sweep of an earlier text of `%.200s`", file));
    if (strcmp(prune, prune_text(a, s->plan)))
        other(s, "a sweep that is pruned in another way");
    if (points->n != s->plan->n && s->plan->n_rungs)
        other(s, arena_printf(a, "a sweep that is pruned, of %zu points; with %zu others would go on", points->n,
                              s->plan->n));
    Map by_name;
    map_init(&by_name, a);
    for (size_t i = 0; i < s->plan->n; i++)
        *map_at(&by_name, (uintptr_t)name_str(s->session.ctx, s->plan->point[i].name)) = (void *)(uintptr_t)(i + 1);
    size_t i = 0;
    for (const Json *p = points->first; p; p = p->next)
        take_point(s, &by_name, i++, p);
    s->added = points->n < s->plan->n ? s->plan->n - points->n : 0;
    const Json *unit = until->first, *amount = unit->next;
    reopen_points(s, unit->kind == JSON_STRING && !strcmp(unit->s, unit_name[s->plan->until.unit]) &&
                         amount->kind == JSON_NUMBER && amount->number == s->plan->until.amount);
    return clearing && clearing->kind == JSON_TRUE;
}

/* ---- opening ---- */

typedef struct Clearing {
    Session session;
    const char *path;
} Clearing;

static Status clear_body(void *user)
{
    Clearing *c = user;
    session_open(&c->session, c->session.owner);
    if (run_exists(&c->session, c->path))
        run_clear(&c->session, run_open(&c->session, c->path));
    return ST_OK;
}

static void clear_points(SweepRun *s)
{
    for (size_t i = 0; i < s->plan->n; i++) {
        Clearing c = {.session.owner = s->owner, .path = sweep_point_folder(s->session.arena, s, i)};
        Status st = session_end(&c.session, guarded(s->session.ctx, clear_body, &c));
        if (st != ST_OK)
            ctx_raise(s->session.ctx, st, "%s",
                      arena_copy(s->session.arena, s->session.ctx->message, strlen(s->session.ctx->message)));
    }
}

void sweep_open_folder(SweepRun *s)
{
    Arena *a = s->session.arena;
    struct stat st;
    bool beside = s->plan->model == s->plan->name; /* where `vwn train` has its run */
    const char *folder =
        s->how->run ? s->how->run : arena_printf(a, "runs/%s%s", s->plan->name, beside ? "-sweep" : "");
    const char *path = arena_printf(a, "%s/%s", folder, manifest);
    bool there = !stat(path, &st), clear = s->how->overwrite;
    if (!sweep_writes(s)) { /* the first one has it */
        s->dir = NEW(a, RunDir);
        *s->dir = (RunDir){.path = folder, .lock_fd = -1, .events_fd = -1};
        return;
    }
    if (run_exists(&s->session, folder))
        ctx_raise(s->session.ctx, ST_USAGE, "`%.300s` holds a run: choose another directory with --run NAME", folder);
    if (s->how->resume && !there)
        ctx_raise(s->session.ctx, ST_USAGE, "there is no sweep in `%.300s` to resume", folder);
    if (there && !s->how->resume && !s->how->overwrite)
        ctx_raise(s->session.ctx, ST_USAGE,
                  "`%.300s` already holds a sweep: go on with --resume, start anew with --overwrite, or choose another "
                  "directory with --run NAME",
                  folder);
    s->dir = run_open_folder(&s->session, folder);
    if (s->how->resume)
        clear = read_manifest(s, path);
    if (clear) {
        sweep_write_manifest(s, true);
        clear_points(s);
    }
    sweep_write_manifest(s, false);
}
