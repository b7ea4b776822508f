/* sweep_point.c - one point of a sweep: checked, counted, trained to the end of its stage.
 *
 * In:  a worker's context, the settings of the point.   Out: a PointResult.
 * The one idea: it is `vwn train FILE --set ... --run SWEEP/POINT`, resumed where a run is there already; what it has learned
 * is read from its events, so it is the same whether it was trained in one piece or in many.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "compiler/model/cost.h"
#include "runtime/checkpoint/history.h"
#include "runtime/measure/rates.h"
#include "sweep.h"

static const SweepPoint *point_of(const SweepWorker *w) { return &w->sweep->plan->point[w->point]; }

/* ---- costs ---- */

static Status count_body(void *user)
{
    SweepWorker *w = user;
    const Unit *u = w->unit->unit;
    const Model *m = u->model;
    if (!m)
        ctx_raise(u->ctx, ST_INPUT, "%s has no model", u->path);
    ModelCount n = model_count(m);
    w->cost = (PointCost){.counted = true,
                          .live = (double)n.live,
                          .stored = (double)n.stored,
                          .flops = model_flops_per_token(m),
                          .width = m->steps_of_state ? (double)m->reads / (double)m->steps_of_state : NAN,
                          .kv = model_kv_cache(m, 4).at_context,
                          .memory = NAN,
                          .step_seconds = NAN};
    if (!w->count_all || !u->train)
        return ST_OK;
    Estimating e = {.sum = {0}};
    char why[512];
    bool known = rates_find(w->context, &e.rates, why);
    PlanWatch watch = {estimate_plan, &e};
    bool cuda = e.rates.device[0] != 0;
    MemoryAsk ask = {.target = cuda ? &target_gpu : NULL, .watch = known ? &watch : NULL};
    w->cost.memory = (double)session_memory(u->ctx, m, u->train, 0, &ask).total;
    if (known)
        w->cost.step_seconds = estimate_seconds(&e.sum);
    return ST_OK;
}

static Status count_point(SweepWorker *w)
{
    Ctx *ctx = w->context->ctx;
    ArenaMark mark = arena_mark(ctx->scratch);
    Status st = guarded(ctx, count_body, w);
    arena_reset(ctx->scratch, mark);
    return st;
}

/* ---- what the run has written ---- */

typedef struct Reading {
    Session session;
    const char *path;
    double bound; /* events up to this step */
    bool there;
    HistoryPoint end;
    double train_loss, eval_loss;
    int64_t damaged;
} Reading;

static double last_value(const History *h, double bound)
{
    for (size_t i = h->point.n; i-- > 0;)
        if (h->point.v[i].x[BY_STEP] <= bound)
            return h->point.v[i].value;
    return NAN;
}

static Status reading_body(void *user)
{
    Reading *r = user;
    session_open(&r->session, r->session.owner);
    r->there = run_exists(&r->session, r->path);
    if (!r->there)
        return ST_OK;
    History train = history_read(&r->session, r->path, "loss"), eval = history_read(&r->session, r->path, "eval_loss");
    r->end = train.end;
    r->damaged = train.events.damaged;
    r->train_loss = last_value(&train, r->bound);
    r->eval_loss = last_value(&eval, r->bound);
    return ST_OK;
}

static Status read_run(SweepWorker *w, const char *folder, double bound, Reading *r)
{
    *r = (Reading){.session.owner = w->context, .path = folder, .bound = bound, .train_loss = NAN, .eval_loss = NAN};
    Ctx *ctx = w->context->ctx;
    ArenaMark mark = arena_mark(ctx->scratch);
    Status st = session_end(&r->session, guarded(ctx, reading_body, r));
    arena_reset(ctx->scratch, mark);
    return st;
}

/* ---- training ---- */

static void on_event(void *user, const vwn_event *e)
{
    SweepWorker *w = user;
    SweepRun *s = w->sweep;
    sweep_tell(s, &(vwn_sweep_event){.kind = VWN_SWEEP_TRAIN,
                                     .point = point_of(w)->name,
                                     .number = w->point + 1,
                                     .of = s->plan->n,
                                     .finished = s->finished,
                                     .train = e,
                                     .eta_seconds = e->kind == VWN_EVENT_STEP ? sweep_eta(s, e->eta_seconds) : NAN});
    if (e->kind == VWN_EVENT_STEP && w->seconds > 0 && w->before + e->seconds >= w->seconds && e->step < e->steps) {
        w->timed_out = true;
        vwn_interrupt(w->context);
    }
}

/* Steps at which this stage of the point ends; 0: with the run. */
static int64_t bound_steps(const SweepBound *b, const Train *t)
{
    double per = b->unit == SWEEP_TOKENS ? (double)t->batch_seqs * (double)t->context : 1;
    return b->unit == SWEEP_STEPS || b->unit == SWEEP_TOKENS ? (int64_t)fmax(1, ceil(b->amount / per - 1e-9)) : 0;
}

static void set_bounds(SweepWorker *w)
{
    const SweepPlan *p = w->sweep->plan;
    const SweepBound *end = w->sweep->stage < p->n_rungs ? &p->rung[w->sweep->stage] : &p->until;
    const Train *t = w->unit->unit->train;
    w->until = bound_steps(end, t);
    w->seconds = p->until.unit == SWEEP_SECONDS ? p->until.amount : 0;
}

/* What became of a run that ended with this status. */
static void judge(SweepWorker *w, vwn_status st, PointResult *r)
{
    static const PointState state[] = {
        [VWN_INPUT] = POINT_WRONG, [VWN_CHECK] = POINT_WRONG, [VWN_DIVERGED] = POINT_DIVERGED};
    bool known = st == VWN_INPUT || st == VWN_CHECK || st == VWN_DIVERGED;
    r->state = st == VWN_OK ? POINT_DONE : known ? state[st] : POINT_FAILED;
    r->status = st;
    if (st == VWN_OK)
        r->why[0] = 0;
    else if (!r->why[0])
        snprintf(r->why, sizeof r->why, "%.390s", vwn_message(w->context));
}

static void train_point(SweepWorker *w, PointResult *r)
{
    SweepRun *s = w->sweep;
    char *folder = malloc(strlen(s->dir->path) + strlen(point_of(w)->name) + 2);
    Reading had, has;
    vwn_status st = VWN_ENVIRONMENT;
    if (folder) {
        sprintf(folder, "%s/%s", s->dir->path, point_of(w)->name);
        st = (vwn_status)read_run(w, folder, INFINITY, &had);
    }
    if (st == VWN_OK) {
        w->before = had.there ? had.end.x[BY_SECONDS] : 0;
        set_bounds(w);
        bool over = w->seconds > 0 && w->before >= w->seconds; /* it was killed before anybody wrote that down */
        vwn_train_options how = {
            .run = folder, .resume = had.there, .until_steps = w->until, .event = on_event, .user = w};
        st = over ? VWN_OK : vwn_train(w->unit, &how);
        if (st == VWN_INTERRUPTED && w->timed_out && !s->stopping)
            st = VWN_OK;
    }
    if (st != VWN_INTERRUPTED)
        judge(w, st, r);
    if (folder && read_run(w, folder, w->until ? (double)w->until : INFINITY, &has) == ST_OK && has.there) {
        r->step = has.end.x[BY_STEP];
        r->tokens = has.end.x[BY_TOKENS];
        r->seconds = has.end.x[BY_SECONDS];
        r->train_loss = has.train_loss;
        r->eval_loss = has.eval_loss;
        if (has.damaged)
            sweep_tell(s, &(vwn_sweep_event){.kind = VWN_SWEEP_NOTE,
                                             .point = point_of(w)->name,
                                             .text = "damaged lines of its events are passed over"});
    }
    if (st == VWN_OK && s->stage < s->plan->n_rungs) {
        r->state = POINT_WAITING;
        r->rungs = s->stage + 1;
        r->rung[s->stage] = s->plan->by_train_loss ? r->train_loss : r->eval_loss;
    }
    free(folder);
}

/* ---- checking ---- */

typedef struct Said {
    char *s;
    size_t n;
} Said;

static void keep_text(void *user, const char *text, size_t n)
{
    Said *t = user;
    char *more = realloc(t->s, t->n + n + 1);
    if (!more)
        return;
    memcpy(more + t->n, text, n);
    t->s = more;
    t->n += n;
    t->s[t->n] = 0;
}

/* Do the sentences differ in their numbers alone? */
static bool same_words(const char *x, const char *y)
{
    static const char numbers[] = "0123456789.";
    for (;; x++, y++) {
        x += strspn(x, numbers);
        y += strspn(y, numbers);
        if (*x != *y || !*x)
            return *x == *y;
    }
}

/* Is this another sentence than those of the points before that were wrong, too? */
static bool is_news(SweepRun *s, const char *why)
{
    bool news = true;
    pthread_mutex_lock(&s->lock);
    for (size_t i = 0; i < COUNT_OF(s->wrong) && i < s->n_wrong; i++)
        news = news && !same_words(s->wrong[i], why);
    if (news)
        snprintf(s->wrong[s->n_wrong++ % COUNT_OF(s->wrong)], sizeof s->wrong[0], "%.390s", why);
    pthread_mutex_unlock(&s->lock);
    return news;
}

/* Its errors are told, but those that points before had; warnings are those of every point, and `vwn check` shows them. */
static void tell_wrong(SweepWorker *w, PointResult *r)
{
    Said said = {0};
    vwn_writer out = {keep_text, &said};
    Ctx *ctx = w->context->ctx;
    for (size_t i = 0; i < diag_count(ctx) && !r->why[0]; i++)
        if (diag_get(ctx, i)->level == LEVEL_ERROR)
            snprintf(r->why, sizeof r->why, "%.390s", diag_get(ctx, i)->message);
    vwn_diagnostics(w->context, &out, false, w->sweep->how->color, NULL);
    if (said.s && is_news(w->sweep, r->why))
        sweep_tell(w->sweep, &(vwn_sweep_event){.kind = VWN_SWEEP_WRONG,
                                                .point = point_of(w)->name,
                                                .number = w->point + 1,
                                                .of = w->sweep->plan->n,
                                                .text = said.s});
    free(said.s);
}

static void drop_text(void *user, const char *text, size_t n) { (void)user, (void)text, (void)n; }

vwn_file_options sweep_point_file(const SweepRun *s, size_t point)
{
    const SweepPoint *p = &s->plan->point[point];
    const vwn_file_options *given = &s->how->file;
    bool standard = !strcmp(given->path, "-") && !strcmp(s->plan->file, "<stdin>");
    vwn_file_options file = {
        .path = standard ? "-" : s->plan->file, .set = p->set, .n_set = p->n_set, .no_sweeps = true};
    if (standard) {
        file.text = given->text;
        file.text_length = given->text_length;
    }
    return file;
}

static vwn_status check_point(SweepWorker *w, PointResult *r)
{
    const SweepRun *s = w->sweep;
    vwn_file_options file = sweep_point_file(s, w->point);
    vwn_status st = vwn_check(w->context, &file, &w->unit);
    if (st == VWN_OK)
        vwn_diagnostics(w->context, &(vwn_writer){drop_text, NULL}, false, false, NULL);
    else
        tell_wrong(w, r);
    return st;
}

void sweep_point_run(SweepWorker *w, PointResult *r)
{
    r->why[0] = 0;
    w->timed_out = false;
    w->unit = NULL;
    w->cost = r->cost;
    vwn_status st = check_point(w, r);
    if (st == VWN_OK)
        st = (vwn_status)count_point(w);
    r->cost = w->cost;
    if (st != VWN_OK || w->sweep->listing)
        judge(w, st, r);
    else if (!w->unit->unit->train) {
        snprintf(r->why, sizeof r->why, "%.300s has no `train`", w->sweep->plan->file);
        judge(w, VWN_INPUT, r);
    } else
        train_point(w, r);
}
