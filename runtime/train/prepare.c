/* prepare.c - the kernels of many files, before the first of them is trained.
 *
 * In:  files, one after the other, from the caller.   Out: each different kernel is loaded, or compiled, once.
 * The one idea: a plan is made of each file in a context of its own, by as many threads as there are, and only its
 * kernels stay. Those that are not there yet are compiled together, in as many files as there are processors.
 */
#include <pthread.h>
#include <stdio.h>

#include "compiler/file/check_unit.h"
#include "compiler/portable/threads.h"
#include "trainer.h"
#include "runtime/exec/workbench.h"
#include "train.h"

typedef struct Prepare {
    Session session; /* with the backend that is to have the kernels */
    const vwn_prepare_options *how;
    const Hooks *hooks;
    KernelSet *set;
    Pool *pool;
    pthread_mutex_t lock; /* of what follows, and of the caller's next() */
    bool ended;
    size_t files, left_out;
    Status failed; /* and why: not for want of a file that is right */
    char why[512];
} Prepare;

/* One file, on the thread that has it. */
typedef struct Point {
    Prepare *of;
    vwn_context context;
    Trainer trainer;
    CheckOptions file;
} Point;

static char *copy(Ctx *ctx, const char *s) { return s ? arena_copy(ctx->program, s, strlen(s)) : NULL; }

/* The next file, which the caller may forget when it is asked for another one; false: there is none. */
static bool next_file(Prepare *p, Point *to)
{
    vwn_file_options file = {0};
    Ctx *ctx = to->context.ctx;
    CtxGuard guard;
    pthread_mutex_lock(&p->lock);
    bool some = !p->ended && p->failed == ST_OK && !p->session.owner->interrupted && p->how->next(p->how->user, &file);
    p->ended = p->ended || !some;
    if (some && CTX_TRY(ctx, &guard)) {
        const char **set = NEW_ARRAY(ctx->program, const char *, file.n_set + 1);
        for (size_t i = 0; i < file.n_set; i++)
            set[i] = copy(ctx, file.set[i]);
        to->file =
            (CheckOptions){.path = copy(ctx, file.path), .set = set, .n_set = file.n_set, .no_sweeps = file.no_sweeps};
        if (file.text)
            to->file.text = arena_copy(ctx->program, file.text, to->file.text_length = file.text_length);
        p->files++;
        ctx_leave(ctx, &guard);
    } else if (some) {
        p->failed = ctx->raised;
        snprintf(p->why, sizeof p->why, "%s", ctx->message);
        some = false;
    }
    pthread_mutex_unlock(&p->lock);
    return some;
}

static Status point_body(void *user)
{
    Point *x = user;
    Trainer *tr = &x->trainer;
    Ctx *ctx = x->context.ctx;
    Unit *u = x->of->hooks->check(ctx, &x->file);
    if (diag_errors(ctx) || !u->model || !u->train)
        return ST_INPUT; /* whoever trains it is told why */
    *tr = (Trainer){.ctx = ctx,
                    .file = u,
                    .unit = u,
                    .model = u->model,
                    .train = u->train,
                    .gather = x->of->set,
                    .session = {.owner = &x->context}};
    session_open(&tr->session, &x->context);
    const DataSpec *held_out =
        u->train->eval_every > 0 && u->train->eval_data.kind != DATA_NONE ? &u->train->eval_data : NULL;
    if (!data_is_there(&tr->session, &u->train->data) || (held_out && !data_is_there(&tr->session, held_out)))
        return ST_INPUT;                          /* nothing is compiled for what cannot be trained */
    tr->session.backend = x->of->session.backend; /* asked what it is, and nothing else */
    tr->session.store = store_new(ctx, tr->session.backend);
    train_gather(tr);
    return ST_OK;
}

static void note_end(Prepare *p, const Ctx *ctx, Status st)
{
    pthread_mutex_lock(&p->lock);
    if (st == ST_INPUT) {
        p->left_out++;
    } else if (st != ST_OK && p->failed == ST_OK) {
        p->failed = st;
        snprintf(p->why, sizeof p->why, "%s", ctx->message);
    }
    pthread_mutex_unlock(&p->lock);
}

/* Files, until there are none. */
static void work(void *user, int64_t lo, int64_t hi, int worker)
{
    Prepare *p = user;
    (void)lo, (void)hi, (void)worker;
    Ctx *home = ctx_new(NULL); /* of memory that one point leaves to the next */
    if (!home)
        return;
    ctx_keep_spare(home, BENCH_SPARE);
    for (bool more = true; more;) {
        Ctx *ctx = ctx_new(NULL);
        if (!ctx)
            break;
        ctx_keep_spare(ctx, BENCH_SPARE);
        ctx_hand_spare(home, ctx);
        ctx->byte_limit = p->session.byte_limit;
        Point x = {.of = p, .context = {.ctx = ctx, .options = p->session.owner->options}};
        more = next_file(p, &x);
        if (more)
            note_end(p, ctx, guarded(ctx, point_body, &x));
        x.trainer.session.backend = NULL; /* it is not its own */
        if (x.trainer.session.store)
            store_free(x.trainer.session.store);
        ctx_free_to(ctx, home);
    }
    ctx_free(home);
}

static void end_pool(void *pool) { pool_close(pool); }

static void end_set(void *set) { kernel_set_free(set); }

static void say(Prepare *p, const BuildReport *r)
{
    char text[256];
    if (p->files == p->left_out)
        return;
    vwn_event e = {.kind = VWN_EVENT_COMPILE, .text = text, .seconds = r->seconds};
    int n = snprintf(text, sizeof text, "%d kernels of %zu files: %d cached, %d compiled in %.1f s", r->kernels,
                     p->files - p->left_out, r->cached, r->compiled, r->seconds);
    if (p->left_out)
        snprintf(text + n, sizeof text - (size_t)n, "; %zu files have errors and are left out", p->left_out);
    if (p->how->event)
        p->how->event(p->how->event_user, &e);
    e = (vwn_event){.kind = VWN_EVENT_WARNING, .text = r->note};
    if (p->how->event && r->note[0])
        p->how->event(p->how->event_user, &e);
}

static Status prepare_body(void *user)
{
    Prepare *p = user;
    Session *s = &p->session;
    BuildReport report = {0};
    session_open(s, s->owner);
    session_open_backend(s);
    if (!s->backend) /* the reference evaluator has no kernels */
        return ST_OK;
    const vwn_options *o = &s->owner->options;
    int threads = o->resize ? 1 : o->threads > 0 ? o->threads : threads_available();
    p->set = kernel_set_new();
    p->pool = pool_open(threads);
    session_defer(s, end_set, p->set);
    session_defer(s, end_pool, p->pool);
    if (!p->set || !p->pool)
        ctx_raise(s->ctx, ST_ENVIRONMENT, "out of memory: no room for threads");
    parallel_for(p->pool, threads, 1, work, p);
    if (p->failed != ST_OK)
        ctx_raise(s->ctx, p->failed, "%s", p->why);
    if (s->owner->interrupted)
        ctx_raise(s->ctx, ST_INTERRUPTED, "interrupted while kernels were prepared");
    const Plan *all = kernel_set_plan(p->set, s->ctx, s->arena);
    Module *module = NULL;
    s->backend->why[0] = 0;
    Status st = s->backend->ops->build(s->backend, all, &module, &report);
    if (st != ST_OK)
        ctx_raise(s->ctx, st, "%s", report.why);
    s->backend->ops->drop(s->backend, module);
    say(p, &report);
    return ST_OK;
}

Status prepare_files(vwn_context *owner, const vwn_prepare_options *how, const Hooks *hooks)
{
    Prepare p = {.session.owner = owner, .how = how, .hooks = hooks};
    pthread_mutex_init(&p.lock, NULL);
    Status st = session_end(&p.session, guarded(owner->ctx, prepare_body, &p));
    pthread_mutex_destroy(&p.lock);
    if (st == ST_INTERRUPTED)
        owner->interrupted = 0;
    return st;
}
