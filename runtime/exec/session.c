/* session.c - see session.h. */
#include "session.h"

#include <stdio.h>
#include <stdlib.h>

#include "compiler/plan/kernel_cache.h"
#include "compiler/model/init.h"
#include "compiler/model/optimizer.h" /* average_name */
#include "compiler/portable/threads.h"
#include "backends.h"
#include "workbench.h"

Status guarded(Ctx *ctx, Status (*body)(void *user), void *user)
{
    CtxGuard guard;
    if (!CTX_TRY(ctx, &guard))
        return ctx->raised;
    Status st = body(user);
    ctx_leave(ctx, &guard);
    return st;
}

void session_open(Session *s, vwn_context *owner)
{
    s->owner = owner;
    s->ctx = owner->ctx;
    s->arena = arena_new(s->ctx);
}

void session_defer(Session *s, void (*release)(void *what), void *what)
{
    Cleanup *c = NEW(s->arena, Cleanup);
    *c = (Cleanup){release, what, s->cleanup};
    s->cleanup = c;
}

Status session_end(Session *s, Status st)
{
    char last_words[512] = "";
    if (s->backend)
        ahead_drop(s->backend->ahead); /* it writes into what is given back now */
    for (Cleanup *c = s->cleanup; c; c = c->next)
        c->release(c->what);
    s->cleanup = NULL;
    if (s->store)
        store_free(s->store);
    if (s->backend && (!s->bench || st == ST_ENVIRONMENT || st == ST_BUG || !bench_put(s->bench, s->backend))) {
        s->backend->last_words = last_words;
        s->backend->ops->close(s->backend);
    }
    s->bench = NULL;
    s->store = NULL;
    s->backend = NULL;
    arena_free(s->arena);
    s->arena = NULL;
    if (s->lifted)
        s->ctx->byte_limit = s->byte_limit;
    s->lifted = false;
    if (st != ST_OK || !last_words[0])
        return st;
    snprintf(s->ctx->message, sizeof s->ctx->message, "%s", last_words);
    return ST_ENVIRONMENT;
}

void session_close(Session *s) { session_end(s, ST_OK); }

static void leave(void *what)
{
    Session *s = what;
    s->backend = NULL; /* it is not its own */
    if (s->arena)
        session_end(s, ST_OK);
}

void session_leave(Session *s) { leave(s); }

void session_beside(Session *s, Session *of)
{
    *s = (Session){.owner = of->owner, .ctx = of->ctx};
    session_defer(of, leave, s);
    session_open(s, of->owner);
    s->backend = of->backend;
    s->store = store_new(s->ctx, s->backend);
}

/* Tells who asked for a GPU, or for whatever is best, where it runs. */
__attribute__((format(printf, 3, 4))) static void report_device(Session *s, bool plain, const char *fmt, ...)
{
    char text[768];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    if (s->owner->options.chosen)
        s->owner->options.chosen(s->owner->options.chosen_user, text, plain);
}

static BackendUser user_of(Session *s)
{
    const vwn_options *o = &s->owner->options;
    return (BackendUser){s->ctx, o->compiling, o->compiling_user, &s->owner->interrupted};
}

/* A backend's memory is that of `home`: of the workbench, where it outlives the session. */
static Status open_in(Session *s, Ctx *home, BackendId id, const BackendOptions *how, char why[512])
{
    CtxGuard guard;
    if (home != s->ctx && !CTX_TRY(home, &guard))
        ctx_raise(s->ctx, home->raised, "%s", home->message);
    Status st = backend_open(id, home, how, &s->backend, why);
    if (home != s->ctx)
        ctx_leave(home, &guard);
    return st;
}

/* False with `why`. */
static bool open_at(Session *s, BackendId id, int ordinal, char why[512])
{
    const vwn_options *o = &s->owner->options;
    const BackendOptions how = {.ordinal = ordinal,
                                .local = s->owner->local,
                                .threads = o->threads,
                                .cache_dir = o->cache_dir,
                                .compiler = o->compiler,
                                .compile_seconds = o->compile_seconds,
                                .user = user_of(s)};
    if (open_in(s, s->bench ? s->bench->ctx : s->ctx, id, &how, why) != ST_OK) {
        s->backend = NULL;
        return false;
    }
    s->backend->kept = s->bench != NULL;
    const char *trouble = s->backend->ops->cache_trouble(s->backend);
    if (o->cache_dir && *o->cache_dir && trouble)
        ctx_raise(s->ctx, ST_ENVIRONMENT, "%s", trouble);
    return true;
}

static void report_backend(Session *s)
{
    char text[256];
    if (!s->backend->ops->say)
        return;
    s->backend->ops->say(s->backend, text);
    report_device(s, false, "%s", text);
}

static void use_reference(Session *s, const char *why)
{
    const char *compiler = s->owner->options.compiler, *named = compiler ? compiler : getenv("CC");
    if (named && *named)
        ctx_raise(s->ctx, ST_ENVIRONMENT, "%s", why); /* asked for: no other is taken */
    snprintf(s->note, sizeof s->note,
             "no C compiler works here (%.400s); running in the "
             "float64 reference evaluator, which is much slower: install gcc or clang, or "
             "name one in CC",
             why);
}

/* The processor stands in for a device, unless that was asked for. */
static void use_processor(Session *s, BackendAbsence absence, const DeviceAsked *asked, const char *why)
{
    if (absence == ABSENT_LOST) /* what began on a device does not go on elsewhere */
        ctx_raise(s->ctx, ST_ENVIRONMENT, "%s", why);
    if (asked->how == DEVICE_NAMED)
        ctx_raise(s->ctx, ST_ENVIRONMENT, "%.440s; `--device cpu` runs on the processor", why);
    if (absence == ABSENT_STUB) /* `vwn doctor` says so */
        report_device(s, true, "the CPU");
    else
        report_device(s, absence == ABSENT_DEVICE, "the CPU: %s", why);
}

static void open_backend(Session *s, const DeviceAsked *asked)
{
    char why[512] = "";
    for (int id = BACKEND_COUNT - 1; id >= 0 && !s->backend; id--) {
        if (asked->how == DEVICE_NAMED && asked->id != (BackendId)id)
            continue;
        if (open_at(s, (BackendId)id, asked->ordinal, why))
            report_backend(s);
        else if (backend_kinds[id].host)
            use_reference(s, why);
        else
            use_processor(s, backend_absence((BackendId)id), asked, why);
    }
    s->may_change = asked->how == DEVICE_AUTO && s->backend && !s->backend->kind->host;
}

/* The tensors of a run are not the compiler's own data, which the limit is for. */
static void open_store(Session *s)
{
    if (!s->lifted)
        s->byte_limit = s->ctx->byte_limit;
    s->ctx->byte_limit = 0;
    s->lifted = true;
    s->store = store_new(s->ctx, s->backend);
}

/* As an earlier session has left it. */
static void take_up(Session *s, const DeviceAsked *asked)
{
    s->backend->user = user_of(s);
    s->backend->why[0] = 0;
    s->may_change = asked->how == DEVICE_AUTO && !s->backend->kind->host;
    report_backend(s);
    open_store(s);
}

void session_open_backend(Session *s)
{
    const vwn_options *o = &s->owner->options;
    DeviceAsked asked;
    if (!device_read(o->device, &asked)) {
        Buf words = buf_new(s->arena);
        device_words(&words);
        ctx_raise(s->ctx, ST_USAGE, "`%.40s` is no device: %s are", o->device, words.s);
    }
    if (o->reference)
        asked.how = DEVICE_REFERENCE;
    s->bench = s->owner->options.workbench;
    s->backend = s->bench ? bench_take(s->bench, o, &asked) : NULL;
    if (s->backend) {
        take_up(s, &asked);
        return;
    }
    if (asked.how != DEVICE_REFERENCE)
        open_backend(s, &asked);
    open_store(s);
}

bool session_use_cpu(Session *s, const char *why)
{
    if (!s->may_change)
        return false;
    s->may_change = false;
    s->bench = NULL; /* others of this workbench may fit */
    store_free(s->store);
    s->store = NULL;
    s->backend->ops->close(s->backend);
    s->backend = NULL;
    report_device(s, false, "the CPU: %s", why);
    open_backend(s, &(DeviceAsked){DEVICE_NAMED, BACKEND_cpu, -1});
    open_store(s);
    return true;
}

void session_warn(Session *s, const char *sentence)
{
    char *to = s->owner->warning;
    size_t n = strlen(to), cap = sizeof s->owner->warning;
    if (sentence && *sentence)
        snprintf(to + n, cap - n, "%s%s", n ? "; " : "", sentence);
}

void session_store_ok(Session *s, Status st)
{
    if (st != ST_OK)
        ctx_raise(s->ctx, st, "%s", store_why(s->store));
}

static void free_program(void *slot)
{
    Program **p = slot;
    if (*p)
        program_free(*p);
    *p = NULL;
}

/* Adds what was built to the total; raises when it was not. */
static void built(Session *s, const char *name, Status st, const BuildReport *r, BuildReport *total)
{
    if (st == ST_INTERRUPTED)
        ctx_raise(s->ctx, st, "%s", r->why);
    if (st != ST_OK)
        ctx_raise(s->ctx, st, "the %s program could not be built: %s", name, r->why);
    if (r->note[0])
        memcpy(total->note, r->note, sizeof total->note);
    total->kernels += r->kernels;
    total->cached += r->cached;
    total->compiled += r->compiled;
    total->seconds += r->seconds;
    total->plan_seconds += r->plan_seconds;
}

static void free_kernel_cache(void *kernel_cache) { kernel_cache_free(kernel_cache); }

struct KernelCache *session_kernel_cache(Session *s)
{
    if (!s->backend || s->backend->target->layout)
        return NULL;
    KernelCache *a = kernel_cache_new(s->ctx, s->arena);
    session_defer(s, free_kernel_cache, a);
    return a;
}

Program *session_program(Session *s, const Graph *g, const ProgramOptions *how, BuildReport *total)
{
    Program **slot = NEW(s->arena, Program *);
    session_defer(s, free_program, slot);
    BuildReport r = {0};
    Status st = program_build(s->store, g, how, slot, &r);
    built(s, how->name, st, &r, total);
    return *slot;
}

void session_prepare(Session *s, const Graph *g, const ProgramOptions *how, BuildReport *total)
{
    BuildReport r = {0};
    Status st = program_prepare(s->store, g, how, &r);
    built(s, how->name, st, &r, total);
}

Half session_half(const Session *s, const Train *t)
{
    Half half = train_half(t);
    return s->backend && !s->backend->bf16 && target_multiplies(s->backend->target, half) ? HALF_NONE : half;
}

void session_run(Session *s, Program *p, const RunArgs *args)
{
    Status st = program_run(p, args);
    if (st != ST_OK)
        ctx_raise(s->ctx, st, "%s", program_why(p));
}

/* ---- parameters ---- */

static ExtKind kind_of(const Param *p) { return p->buffer ? EXT_BUFFER : EXT_PARAM; }

void session_add_params(Session *s, const Model *m)
{
    for (size_t i = 0; i < m->param.n; i++) {
        const Param *p = &m->param.v[i];
        int64_t d[MAX_RANK];
        for (int k = 0; k < p->shape.rank; k++)
            d[k] = p->shape.d[k].n;
        StoreEntry *e;
        session_store_ok(s, store_add(s->store, kind_of(p), p->path, DT_REAL, p->shape.rank, d, &e));
    }
}

/* All initial values, in pieces that any thread may draw. */
enum { PIECE = 1 << 13 };
struct Drawing {
    const Model *model;
    uint64_t seed;
    StoreEntry **entry; /* of each parameter */
    int64_t *first;     /* the first piece of each parameter; behind the last: all pieces */
    bool begun;         /* by helpers, straight into memory */
};

/* The parameter that piece i belongs to. */
static size_t owner_of(const Drawing *d, int64_t i)
{
    size_t lo = 0, hi = d->model->param.n;
    while (hi - lo > 1) {
        size_t mid = lo + (hi - lo) / 2;
        *(d->first[mid] <= i ? &lo : &hi) = mid;
    }
    return lo;
}

/* How many numbers piece i has, and from which element of which parameter. */
static int64_t piece_at(const Drawing *d, int64_t i, size_t *param, int64_t *from)
{
    *param = owner_of(d, i);
    *from = (i - d->first[*param]) * PIECE;
    const Param *p = &d->model->param.v[*param];
    return p->elements - *from < PIECE ? p->elements - *from : PIECE;
}

static void draw_ahead(void *user, int64_t lo, int64_t hi, int worker)
{
    const Drawing *d = user;
    (void)worker;
    for (int64_t i = lo; i < hi; i++) {
        size_t param;
        int64_t from, n = piece_at(d, i, &param, &from);
        param_init_floats(&d->model->param.v[param], d->seed, from, n, (float *)d->entry[param]->memory + from);
    }
}

Drawing *session_begin_params(Session *s, const Model *m, uint64_t seed)
{
    size_t n = m->param.n;
    Drawing *d = NEW(s->arena, Drawing);
    *d = (Drawing){.model = m, .seed = seed, .begun = s->backend && s->backend->ahead};
    d->entry = NEW_ARRAY(s->arena, StoreEntry *, n);
    d->first = NEW_ARRAY(s->arena, int64_t, n + 1);
    for (size_t i = 0; i < n; i++) {
        const Param *p = &m->param.v[i];
        d->entry[i] = store_find(s->store, kind_of(p), p->path);
        d->first[i + 1] = d->first[i] + (p->elements + PIECE - 1) / PIECE;
    }
    if (d->begun)
        ahead_begin(s->backend->ahead, d->first[n], 1, draw_ahead, d);
    return d;
}

/* What helpers do not draw goes the way of all numbers. */
static void draw_now(Session *s, const Drawing *d)
{
    double v[PIECE];
    for (int64_t i = 0; i < d->first[d->model->param.n]; i++) {
        size_t param;
        int64_t from, n = piece_at(d, i, &param, &from);
        param_init_range(&d->model->param.v[param], d->seed, from, n, v);
        session_store_ok(s, store_put_f64(s->store, d->entry[param], from, n, v));
    }
}

void session_end_params(Session *s, const Drawing *d)
{
    double v[PIECE];
    if (d->begun)
        ahead_drain(s->backend->ahead);
    else
        draw_now(s, d);
    for (size_t i = 0; i < d->model->param.n; i++) {
        const Param *p = &d->model->param.v[i];
        StoreEntry *average = store_find(s->store, EXT_STATE, average_name(s->ctx, p));
        for (int64_t from = 0, n; average && from < p->elements; from += n) {
            n = p->elements - from < PIECE ? p->elements - from : PIECE;
            session_store_ok(s, store_get_f64(s->store, d->entry[i], from, n, v));
            session_store_ok(s, store_put_f64(s->store, average, from, n, v));
        }
    }
}
