/* sweep.c - `vwn sweep`: every point of a sweep as a run, some at a time; which go on at a rung; what is told.
 *
 * In:  a file, axes.   Out: a folder of runs, a manifest, a table.
 * The one idea: workers take points from a queue, each in a thread and a context of its own, and leave results; the caller's
 * thread alone decides which points are next, writes the manifest and passes interrupts on. A point does not know of the
 * others, so results do not depend on how many run at a time.
 */
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "compiler/file/check_unit.h"
#include "compiler/report/report.h"
#include "sweep.h"
#include "compiler/portable/threads.h"
#include "runtime/base/machine.h"
#include "runtime/exec/workbench.h"

enum { JOBS_MOST = 256 };

/* ---- events ---- */

double sweep_eta(SweepRun *s, double point)
{
    pthread_mutex_lock(&s->lock);
    double took = clock_seconds() - s->began, left = (double)s->plan->n - (double)s->finished, ended = (double)s->ended;
    pthread_mutex_unlock(&s->lock);
    if (s->workers == 1 && isfinite(point)) /* the one at hand is one of those that are left */
        return point + (left - 1) * (took + point) / (ended + 1);
    return ended > 0 ? left * took / ended : NAN;
}

void sweep_tell(SweepRun *s, const vwn_sweep_event *e)
{
    if (!s->how->event)
        return;
    pthread_mutex_lock(&s->lock);
    s->how->event(s->how->user, e);
    pthread_mutex_unlock(&s->lock);
}

static const char *const kind_name[] = {"sweep_start", "point", "train", "wrong", "point_end", "note"};

/* START, POINT, END and NOTE with their JSON. */
static void tell(SweepRun *s, vwn_sweep_kind kind, size_t point, const char *text, bool failed)
{
    bool of_point = kind == VWN_SWEEP_POINT || kind == VWN_SWEEP_END;
    const PointResult *r = of_point ? &s->result[point] : NULL;
    const SweepPoint *p = of_point ? &s->plan->point[point] : NULL;
    char memory[2048];
    JsonText t;
    json_begin(&t, memory, sizeof memory);
    json_open(&t, NULL, '{');
    json_put_integer(&t, "v", 1);
    json_put_string(&t, "event", kind_name[kind]);
    json_put_integer(&t, "of", (int64_t)s->plan->n);
    json_put_integer(&t, "finished", (int64_t)s->finished);
    if (of_point) {
        json_put_string(&t, "point", p->name);
        json_put_integer(&t, "number", (int64_t)point + 1);
    }
    if (kind == VWN_SWEEP_END) {
        json_put_string(&t, "state", point_state[r->state]);
        json_put_number(&t, "step", r->step);
        json_put_number(&t, "train_loss", r->train_loss);
        json_put_number(&t, "eval_loss", r->eval_loss);
    }
    double eta = kind == VWN_SWEEP_END && !s->stopping && !s->listing ? sweep_eta(s, NAN) : NAN;
    if (kind == VWN_SWEEP_END)
        json_put_number(&t, "eta", round(eta));
    if (text)
        json_put_string(&t, "text", text);
    json_close(&t, '}');
    sweep_tell(s, &(vwn_sweep_event){.kind = kind,
                                     .point = p ? p->name : NULL,
                                     .number = point + 1,
                                     .of = s->plan->n,
                                     .finished = s->finished,
                                     .text = text,
                                     .json = t.full ? NULL : t.s,
                                     .failed = failed,
                                     .eta_seconds = eta});
}

/* An earlier point that failed in the same way, which was told: data that is missing is missing for all. NULL: none. */
static const char *failed_alike(SweepRun *s, size_t point)
{
    pthread_mutex_lock(&s->lock);
    size_t first = s->failed_first;
    bool alike = first && s->result[first - 1].state == s->result[point].state &&
                 !strcmp(s->result[first - 1].why, s->result[point].why);
    if (!alike)
        s->failed_first = point + 1;
    pthread_mutex_unlock(&s->lock);
    return alike ? s->plan->point[first - 1].name : NULL;
}

static void tell_end(SweepRun *s, size_t point)
{
    const PointResult *r = &s->result[point];
    char text[600];
    bool failed = r->state >= POINT_WRONG;
    if (s->listing && !failed) {
        sweep_tell(s, &(vwn_sweep_event){.kind = VWN_SWEEP_COUNTED,
                                         .point = s->plan->point[point].name,
                                         .number = point + 1,
                                         .of = s->queued,
                                         .finished = s->finished});
        return;
    }
    const char *like = failed ? failed_alike(s, point) : NULL;
    if (like)
        snprintf(text, sizeof text, "%s, as %.300s", point_state[r->state], like);
    else if (failed)
        snprintf(text, sizeof text, "%s: %s", point_state[r->state], r->why);
    else if (isfinite(r->eval_loss))
        snprintf(text, sizeof text, "step %.0f, loss %.4f, eval %.4f", r->step, r->train_loss, r->eval_loss);
    else
        snprintf(text, sizeof text, "step %.0f, loss %.4f", r->step, r->train_loss);
    tell(s, VWN_SWEEP_END, point, text, failed);
}

/* ---- workers ---- */

/* Which device it is is the same for every point. */
static void on_chosen(void *user, const char *sentence, bool plain)
{
    SweepRun *s = user;
    pthread_mutex_lock(&s->lock);
    bool first = !s->reported_device;
    s->reported_device = true;
    if (first && s->owner->options.chosen)
        s->owner->options.chosen(s->owner->options.chosen_user, sentence, plain);
    pthread_mutex_unlock(&s->lock);
}

/* A context keeps what every file that it checked has left. So every point has its own, with the pages of the one before: where points
 * are trained through the workbench; where they are counted, what the compiler keeps is part of it, so blocks are as large as in a first one. */
static bool fresh_context(SweepWorker *w, bool prepares)
{
    SweepRun *s = w->sweep;
    vwn_options o = s->owner->options;
    int threads = o.threads > 0 ? o.threads : threads_available();
    o.threads = threads / s->workers > 1 ? threads / s->workers : 1;
    o.chosen = on_chosen;
    o.chosen_user = s;
    o.compiling = prepares ? o.compiling : NULL; /* points are told as they begin and end */
    if (!w->bench && !s->listing)
        w->bench = workbench_open();
    o.workbench = w->bench;
    if (s->listing && !o.resize) {
        o.resize = pages_resize;
        o.user = &w->pages;
    }
    vwn_context *was = w->context;
    pthread_mutex_lock(&s->lock);
    w->context = NULL;
    pthread_mutex_unlock(&s->lock);
    vwn_close(was);
    vwn_context *now = vwn_open(&o);
    if (now)
        now->local = s->owner->local;
    pthread_mutex_lock(&s->lock);
    w->context = now;
    pthread_mutex_unlock(&s->lock);
    return now != NULL;
}

static void run_point(SweepWorker *w)
{
    SweepRun *s = w->sweep;
    PointResult r = s->result[w->point];
    if (fresh_context(w, false)) {
        if (!s->listing)
            tell(s, VWN_SWEEP_POINT, w->point, NULL, false);
        sweep_point_run(w, &r);
    } else {
        r.state = POINT_FAILED;
        r.status = VWN_ENVIRONMENT;
        snprintf(r.why, sizeof r.why, "out of memory");
    }
    pthread_mutex_lock(&s->lock);
    s->result[w->point] = r;
    s->finished += r.state != POINT_WAITING;
    s->ended += !s->stopping;
    s->dirty = true;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
    if (!s->stopping || r.state != POINT_WAITING)
        tell_end(s, w->point);
}

static bool next_file(void *user, vwn_file_options *file)
{
    SweepRun *s = user;
    if (s->stopping || s->to_prepare >= s->queued)
        return false;
    size_t point = s->queue[s->to_prepare];
    *file = sweep_point_file(s, point);
    sweep_tell(s, &(vwn_sweep_event){.kind = VWN_SWEEP_PLANNED,
                                     .point = s->plan->point[point].name,
                                     .number = point + 1,
                                     .of = s->queued,
                                     .finished = s->to_prepare++});
    return true;
}

static void on_prepared(void *user, const vwn_event *e) { tell(user, VWN_SWEEP_NOTE, 0, e->text, false); }

/* The kernels of all points, before the first one begins: by one worker, for which the others wait. What cannot be prepared is
 * said by the point that wants it. */
static void prepare_points(SweepWorker *w)
{
    SweepRun *s = w->sweep;
    pthread_mutex_lock(&s->lock);
    bool mine = !s->preparing && !s->prepared;
    s->preparing = true;
    pthread_mutex_unlock(&s->lock);
    if (mine && s->queued > 1 && fresh_context(w, true))
        vwn_prepare(w->context,
                    &(vwn_prepare_options){.next = next_file, .user = s, .event = on_prepared, .event_user = s});
    pthread_mutex_lock(&s->lock);
    s->prepared |= mine;
    if (mine) {
        s->began = clock_seconds();
        pthread_cond_broadcast(&s->ready);
    }
    while (!s->prepared)
        pthread_cond_wait(&s->ready, &s->lock);
    pthread_mutex_unlock(&s->lock);
}

static void *work(void *user)
{
    SweepWorker *w = user;
    SweepRun *s = w->sweep;
    if (!s->listing)
        prepare_points(w);
    for (;;) {
        pthread_mutex_lock(&s->lock);
        bool more = !s->stopping && s->next < s->queued;
        if (more)
            w->point = s->queue[s->next++];
        pthread_mutex_unlock(&s->lock);
        if (!more)
            break;
        run_point(w);
    }
    pthread_mutex_lock(&s->lock);
    s->busy--;
    pthread_cond_signal(&s->changed);
    pthread_mutex_unlock(&s->lock);
    return NULL;
}

/* ---- the caller's thread ---- */

/* Passes an interrupt on; true: the manifest is to be written. The lock is held. */
static bool look_around(SweepRun *s)
{
    if (s->owner->interrupted)
        s->stopping = true;
    for (int i = 0; i < s->workers && s->stopping; i++)
        if (s->worker[i].context)
            vwn_interrupt(s->worker[i].context);
    bool dirty = s->dirty && !s->listing;
    s->dirty = false;
    return dirty;
}

static Status wait_body(void *user)
{
    SweepRun *s = user;
    pthread_mutex_lock(&s->lock);
    while (s->busy) {
        struct timespec until;
        clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 50000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        pthread_cond_timedwait(&s->changed, &s->lock, &until);
        if (!look_around(s))
            continue;
        pthread_mutex_unlock(&s->lock);
        sweep_write_manifest(s, false);
        pthread_mutex_lock(&s->lock);
    }
    bool dirty = look_around(s);
    pthread_mutex_unlock(&s->lock);
    if (dirty)
        sweep_write_manifest(s, false);
    return ST_OK;
}

static void stop_workers(SweepRun *s)
{
    pthread_mutex_lock(&s->lock);
    s->stopping = true;
    for (int i = 0; i < s->workers; i++)
        if (s->worker[i].context && s->busy)
            vwn_interrupt(s->worker[i].context);
    pthread_mutex_unlock(&s->lock);
}

/* All points of the queue; here all that are to be run are known before the first one begins. */
static void run_queue(SweepRun *s)
{
    int started = 0;
    s->next = 0;
    s->busy = s->workers;
    for (; started < s->workers; started++)
        if (pthread_create(&s->worker[started].thread, NULL, work, &s->worker[started]))
            break;
    pthread_mutex_lock(&s->lock);
    s->busy -= s->workers - started;
    pthread_mutex_unlock(&s->lock);
    if (!started)
        ctx_raise(s->session.ctx, ST_ENVIRONMENT, "no thread could be started: %s", strerror(errno));
    Ctx *ctx = s->session.ctx;
    Status st = guarded(ctx, wait_body, s);
    if (st != ST_OK)
        stop_workers(s); /* the manifest could not be written: nobody goes on */
    for (int i = 0; i < started; i++)
        pthread_join(s->worker[i].thread, NULL);
    if (st != ST_OK)
        ctx_raise(ctx, st, "%s", arena_copy(s->session.arena, ctx->message, strlen(ctx->message)));
}

/* ---- stages ---- */

/* Points of this stage: those that have reached the rungs before it and not the one it ends at. */
static void fill_queue(SweepRun *s)
{
    s->queued = 0;
    for (size_t i = 0; i < s->plan->n; i++)
        if (s->result[i].state == POINT_WAITING && s->result[i].rungs <= s->stage)
            s->queue[s->queued++] = i;
}

/* For `--list`: one point of each configuration. */
static void queue_configs(SweepRun *s)
{
    bool *seen = NEW_ARRAY(s->session.arena, bool, s->plan->configs + 1);
    s->queued = 0;
    for (size_t i = 0; i < s->plan->n; i++)
        if (!seen[s->plan->point[i].config]) {
            seen[s->plan->point[i].config] = true;
            s->queue[s->queued++] = i;
        }
}

typedef struct Rank {
    size_t config;
    double loss; /* mean over seeds; infinite: a seed has none */
} Rank;

static int by_loss(const void *x, const void *y)
{
    const Rank *a = x, *b = y;
    if (a->loss != b->loss)
        return a->loss < b->loss ? -1 : 1;
    return (a->config > b->config) - (a->config < b->config);
}

/* The best share of the configurations that reached the rung goes on, seeds together. */
static void prune(SweepRun *s)
{
    Arena *a = s->session.arena;
    const SweepPlan *p = s->plan;
    Rank *rank = NEW_ARRAY(a, Rank, p->configs + 1);
    size_t *count = NEW_ARRAY(a, size_t, p->configs + 1), n = 0, out = 0;
    bool *there = NEW_ARRAY(a, bool, p->configs + 1), *stays = NEW_ARRAY(a, bool, p->configs + 1);
    double *sum = NEW_ARRAY(a, double, p->configs + 1);
    for (size_t i = 0; i < p->n; i++) {
        const PointResult *r = &s->result[i];
        size_t c = p->point[i].config;
        bool reached = r->rungs > s->stage && isfinite(r->rung[s->stage]);
        there[c] |= r->rungs > s->stage;
        sum[c] += reached ? r->rung[s->stage] : INFINITY;
        count[c]++;
    }
    for (size_t c = 0; c < p->configs; c++)
        if (there[c])
            rank[n++] = (Rank){c, sum[c] / (double)count[c]};
    if (n)
        qsort(rank, n, sizeof *rank, by_loss);
    size_t keep = (size_t)ceil(p->keep * (double)n - 1e-9);
    for (size_t k = 0; k < keep; k++)
        stays[rank[k].config] = true;
    for (size_t i = 0; i < p->n; i++)
        if (s->result[i].state == POINT_WAITING && !stays[p->point[i].config]) {
            s->result[i].state = POINT_PRUNED;
            s->finished++;
            out++;
        }
    sweep_write_manifest(s, false);
    if (out)
        tell(s, VWN_SWEEP_NOTE, 0,
             arena_printf(a, "rung %zu of %zu: %zu of %zu settings go on", s->stage + 1, p->n_rungs, keep, n), false);
}

/* The points of the queue, of which others may train some. */
static void run_stage(SweepRun *s)
{
    size_t n = s->queued, *all = NEW_ARRAY(s->session.arena, size_t, n + 1);
    memcpy(all, s->queue, n * sizeof *all);
    s->queued = 0;
    for (size_t k = 0; k < n; k++)
        if (sweep_is_here(s, k))
            s->queue[s->queued++] = all[k];
    if (s->queued)
        run_queue(s);
    sweep_hear(s, all, n);
    for (size_t k = 0; k < n; k++)
        if (!sweep_is_here(s, k) && (!s->stopping || s->result[all[k]].state != POINT_WAITING))
            tell_end(s, all[k]);
    sweep_write_manifest(s, false);
}

static void train_all(SweepRun *s)
{
    for (s->stage = 0; s->stage <= s->plan->n_rungs && !s->stopping; s->stage++) {
        fill_queue(s);
        run_stage(s);
        if (!s->stopping && s->stage < s->plan->n_rungs)
            prune(s);
    }
}

/* ---- the call ---- */

/* The worst of what happened. */
static Status verdict(const SweepRun *s)
{
    static const Status order[] = {ST_BUG, ST_ENVIRONMENT, ST_DIVERGED, ST_INPUT, ST_USAGE, ST_CHECK};
    if (s->stopping)
        return ST_INTERRUPTED;
    for (size_t k = 0; k < COUNT_OF(order); k++)
        for (size_t i = 0; i < s->plan->n; i++)
            if (s->result[i].state >= POINT_WRONG && (Status)s->result[i].status == order[k])
                return order[k] == ST_USAGE ? ST_ENVIRONMENT : order[k];
    return ST_OK;
}

static void open_plan(SweepRun *s)
{
    const vwn_sweep_options *how = s->how;
    Ctx *ctx = s->session.ctx;
    SweepAsk ask = {.name = how->name,
                    .vary = how->vary,
                    .n_vary = how->n_vary,
                    .seeds = how->seeds,
                    .until = how->until,
                    .random = how->random};
    CheckOptions check = {.path = how->file.path,
                          .text = how->file.text,
                          .text_length = how->file.text_length,
                          .set = how->file.set,
                          .n_set = how->file.n_set,
                          .sweep = &ask};
    const Unit *u = check_file(ctx, &check);
    if (diag_errors(ctx) || !u->sweep.n)
        ctx_raise(ctx, diag_errors(ctx) && diag_only_checks(ctx, 0) ? ST_CHECK : ST_INPUT, NULL);
    s->plan = &u->sweep.v[0];
    double *rungs = NEW_ARRAY(s->session.arena, double, s->plan->n * s->plan->n_rungs + 1);
    s->result = NEW_ARRAY(s->session.arena, PointResult, s->plan->n);
    s->seen = NEW_ARRAY(s->session.arena, PointResult, s->plan->n);
    s->queue = NEW_ARRAY(s->session.arena, size_t, s->plan->n);
    for (size_t i = 0; i < s->plan->n; i++)
        s->result[i] = (PointResult){.rung = rungs + i * s->plan->n_rungs,
                                     .step = NAN,
                                     .tokens = NAN,
                                     .seconds = NAN,
                                     .train_loss = NAN,
                                     .eval_loss = NAN};
}

static void close_workers(void *what)
{
    SweepRun *s = what;
    for (int i = 0; i < s->workers; i++) {
        vwn_close(s->worker[i].context);
        pages_free(&s->worker[i].pages);
        workbench_close(s->worker[i].bench);
    }
}

static void open_workers(SweepRun *s)
{
    int jobs = s->how->jobs > 0 ? s->how->jobs : 1;
    if (s->listing && s->how->jobs <= 0)
        jobs = s->owner->options.threads > 0 ? s->owner->options.threads : threads_available();
    if (s->owner->options.resize) /* memory of the caller's may be for one thread alone */
        jobs = 1;
    jobs = jobs < JOBS_MOST ? jobs : JOBS_MOST;
    jobs = (size_t)jobs < s->plan->n ? jobs : (int)s->plan->n;
    s->worker = NEW_ARRAY(s->session.arena, SweepWorker, (size_t)jobs);
    s->workers = jobs;
    for (int i = 0; i < jobs; i++)
        s->worker[i] = (SweepWorker){.sweep = s, .count_all = s->listing};
    session_defer(&s->session, close_workers, s);
}

/* A single number was perhaps meant as how many there shall be. */
static void report_seeds(SweepRun *s)
{
    enum { MOST = 9 };
    char *end;
    long n = s->how->seeds ? strtol(s->how->seeds, &end, 10) : 0;
    if (n < 2 || n > MOST || *end)
        return;
    Buf b = buf_new(s->session.arena);
    buf_printf(&b, "`--seeds %ld` is one seed, %ld; %ld of them are `--seeds 1", n, n, n);
    for (long i = 2; i <= n; i++)
        buf_printf(&b, ",%ld", i);
    buf_puts(&b, "`");
    tell(s, VWN_SWEEP_NOTE, 0, b.s, false);
}

static Status sweep_body(void *user)
{
    SweepRun *s = user;
    session_open(&s->session, s->owner);
    open_plan(s);
    report_seeds(s);
    open_workers(s);
    if (s->listing) {
        queue_configs(s);
        run_queue(s);
    } else {
        if (s->how->svg)
            sweep_want_axis(s);
        sweep_open_folder(s);
        sweep_agree(s);
        s->finished = 0;
        for (size_t i = 0; i < s->plan->n; i++)
            s->finished += s->result[i].state != POINT_WAITING;
        tell(s, VWN_SWEEP_START, 0,
             arena_printf(s->session.arena, "%s: %zu points%s in %s, %zu of them finished%s", s->plan->name, s->plan->n,
                          s->plan->n_rungs ? ", pruned," : "", s->dir->path, s->finished,
                          s->added ? arena_printf(s->session.arena, ", %zu new", s->added) : ""),
             false);
        train_all(s);
    }
    Status st = verdict(s);
    if (st == ST_INTERRUPTED)
        s->owner->interrupted = 0;
    if (st == ST_INTERRUPTED && s->listing)
        return st;
    sweep_print(s);
    if (s->how->svg && sweep_writes(s))
        sweep_svg(s);
    return st;
}

Status sweep_run(vwn_context *owner, const vwn_sweep_options *how, const vwn_writer *out)
{
    SweepRun s = {.owner = owner, .session.owner = owner, .how = how, .out = out, .listing = how->list};
    pthread_mutex_init(&s.lock, NULL);
    pthread_cond_init(&s.changed, NULL);
    pthread_cond_init(&s.ready, NULL);
    Status st = session_end(&s.session, guarded(owner->ctx, sweep_body, &s));
    pthread_cond_destroy(&s.changed);
    pthread_cond_destroy(&s.ready);
    pthread_mutex_destroy(&s.lock);
    return st;
}
