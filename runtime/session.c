/* session.c - see session.h. */
#include "session.h"

#include <stdio.h>
#include <stdlib.h>

#include "../compiler/init.h"
#include "../compiler/optimizer.h"
#include "threads.h"

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

void session_close(Session *s)
{
    for (Cleanup *c = s->cleanup; c; c = c->next)
        c->release(c->what);
    s->cleanup = NULL;
    if (s->store)
        store_free(s->store);
    if (s->backend)
        s->backend->ops->close(s->backend);
    s->store = NULL;
    s->backend = NULL;
    arena_free(s->arena);
    s->arena = NULL;
    if (s->lifted)
        s->ctx->byte_limit = s->byte_limit;
    s->lifted = false;
}

void session_open_backend(Session *s)
{
    const vwn_options *o = &s->owner->options;
    CpuOptions cpu = {
        .threads = o->threads, .cache_dir = o->cache_dir, .compiler = o->compiler};
    char why[512] = "";
    if (!o->reference) {
        Status st = backend_cpu_open(s->ctx, &cpu, &s->backend, why);
        const char *named = o->compiler ? o->compiler : getenv("CC");
        if (st != ST_OK && named && *named)
            ctx_raise(s->ctx, ST_ENVIRONMENT, "%s", why); /* asked for: no other is taken */
        if (st == ST_OK && o->cache_dir && *o->cache_dir && cpu_cache_trouble(s->backend))
            ctx_raise(s->ctx, ST_ENVIRONMENT, "%s", cpu_cache_trouble(s->backend));
        if (st != ST_OK) {
            s->backend = NULL;
            snprintf(
                s->note, sizeof s->note,
                "no C compiler works here (%.400s); running in the "
                "float64 reference evaluator, which is much slower: install gcc or clang, or "
                "name one in CC",
                why);
        }
    }
    s->byte_limit = s->ctx->byte_limit; /* of the compiler's own data; tensors are not that */
    s->ctx->byte_limit = 0;
    s->lifted = true;
    s->store = store_new(s->ctx, s->backend);
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

Program *session_program(Session *s, const Graph *g, const ProgramOptions *how,
                         BuildReport *total)
{
    Program **slot = NEW(s->arena, Program *);
    session_defer(s, free_program, slot);
    BuildReport r = {0};
    Status st = program_build(s->store, g, how, slot, &r);
    if (st != ST_OK)
        ctx_raise(s->ctx, st, "the %s program could not be built: %s", how->name, r.why);
    if (r.note[0])
        memcpy(total->note, r.note, sizeof total->note);
    total->kernels += r.kernels;
    total->cached += r.cached;
    total->compiled += r.compiled;
    total->seconds += r.seconds;
    total->plan_seconds += r.plan_seconds;
    return *slot;
}

bool session_bf16(const Session *s, const Train *t)
{
    return t->compute == COMPUTE_BF16 && (!s->backend || s->backend->bf16);
}

void session_run(Session *s, Program *p, const RunArgs *args)
{
    Status st = program_run(p, args);
    if (st != ST_OK)
        ctx_raise(s->ctx, st, "%s", program_why(p));
}

double session_scalar(Session *s, Program *p, Name result)
{
    double v = 0;
    Status st = program_scalar(p, result, &v);
    if (st != ST_OK)
        ctx_raise(s->ctx, st, "%s", program_why(p));
    return v;
}

/* ---- parameters ---- */

static ExtKind kind_of(const Param *p)
{
    return p->buffer ? EXT_BUFFER : EXT_PARAM;
}

void session_add_params(Session *s, const Model *m)
{
    for (size_t i = 0; i < m->param.n; i++) {
        const Param *p = &m->param.v[i];
        int64_t d[MAX_RANK];
        for (int k = 0; k < p->shape.rank; k++)
            d[k] = p->shape.d[k].n;
        StoreEntry *e;
        session_store_ok(
            s, store_add(s->store, kind_of(p), p->path, DT_REAL, p->shape.rank, d, &e));
    }
}

/* Consecutive elements of one parameter, drawn by several threads. */
typedef struct Draw {
    const Param *param;
    uint64_t seed;
    int64_t from, n;
    double *v;
} Draw;
enum { PIECE = 1 << 13, PIECES = 16 };

static void draw_pieces(void *user, int64_t lo, int64_t hi, int worker)
{
    const Draw *d = user;
    (void)worker;
    int64_t from = lo * PIECE, to = hi * PIECE < d->n ? hi * PIECE : d->n;
    param_init_range(d->param, d->seed, d->from + from, to - from, d->v + from);
}

void session_init_params(Session *s, const Model *m, uint64_t seed)
{
    ArenaMark mark = arena_mark(s->arena);
    Draw d = {.seed = seed, .v = NEW_ARRAY(s->arena, double, PIECE * PIECES)};
    Pool *pool = pool_open(s->backend ? s->backend->threads : 1); /* NULL draws all the same */
    for (size_t i = 0; i < m->param.n; i++) {
        const Param *p = &m->param.v[i];
        StoreEntry *e = store_find(s->store, kind_of(p), p->path);
        StoreEntry *average = store_find(s->store, EXT_STATE, average_name(s->ctx, p));
        d.param = p;
        for (d.from = 0; d.from < p->elements; d.from += d.n) {
            d.n = p->elements - d.from < PIECE * PIECES ? p->elements - d.from : PIECE * PIECES;
            parallel_for(pool, (d.n + PIECE - 1) / PIECE, 1, draw_pieces, &d);
            session_store_ok(s, store_put_f64(s->store, e, d.from, d.n, d.v));
            if (average)
                session_store_ok(s, store_put_f64(s->store, average, d.from, d.n, d.v));
        }
    }
    pool_close(pool);
    arena_reset(s->arena, mark);
}

/* ---- memory ---- */

/* The arena that one graph needs; what was built for the answer is freed, and counted in
 * `program`: a run keeps it. */
static uint64_t arena_of(Ctx *ctx, const Model *m, const Train *t, int which, int64_t batch,
                         uint64_t *program)
{
    size_t before = ctx->bytes;
    Arena *a = arena_new(ctx);
    Graph *g = which == 0   ? step_gradient(m, t, true, a)
               : which == 1 ? step_gradient(m, t, false, a)
               : which == 2 ? step_update(m, t, a)
               : which == 3 ? step_held_out(m, t, a)
                            : step_predict(m, a);
    PlanOptions how = {.B = batch, .T = t ? t->context : m->context};
    how.bf16 = t && t->compute == COMPUTE_BF16;
    uint64_t bytes = plan_build(ctx, a, plan_graph(g, a, &how), &how)->arena_bytes;
    *program += ctx->bytes - before;
    arena_free(a);
    return bytes;
}

/* More than a run can need, without a plan: an arena in which nothing is ever used again, with
 * up to five values of its backward pass beside each value that the model computes. */
uint64_t session_memory_most(const Model *m, const Train *t)
{
    enum { VALUES = 6, COPIES = 5, REST = 256 << 20 };
    const Graph *g = m->graph;
    double bytes = REST;
    int64_t batch = t->micro_seqs > 0 ? t->micro_seqs : t->batch_seqs;
    for (Val v = 1; v < g->node.n; v++) {
        Dim n;
        if (op_info((Op)node_at(g, v)->op)->class == CLASS_VIEW)
            continue;
        if (!shape_size(shape_of(g, v), &n))
            return UINT64_MAX;
        bytes += (double)dim_at(n, batch, t->context) * 8 * VALUES;
    }
    for (size_t i = 0; i < m->param.n; i++)
        bytes += 4.0 * COPIES * (double)m->param.v[i].elements;
    return bytes < 1e18 ? (uint64_t)bytes : UINT64_MAX;
}

static uint64_t larger(uint64_t a, uint64_t b)
{
    return a > b ? a : b;
}

MemoryNeed session_memory(Ctx *ctx, const Model *m, const Train *train, int64_t batch)
{
    MemoryNeed n = {0};
    Train t = train ? *train : (Train){.context = m->context};
    if (batch > 0) {
        t.micro_seqs = batch;
        t.batch_seqs =
            t.batch_seqs > batch ? (t.batch_seqs + batch - 1) / batch * batch : batch;
    }
    batch = t.micro_seqs > 0 ? t.micro_seqs : t.batch_seqs > 0 ? t.batch_seqs : 1;
    for (size_t i = 0; i < m->param.n; i++) {
        uint64_t bytes = 4 * (uint64_t)m->param.v[i].elements;
        *(m->param.v[i].buffer ? &n.buffers : &n.weights) += bytes;
        if (train && param_is_trained(m, train, i)) {
            n.gradients += bytes;
            n.optimizer += bytes * (uint64_t)optimizer_states(&train->optimizer, i);
            n.average += train->average ? bytes : 0;
        }
    }
    n.inputs = (train ? 2u + model_reads(m, "document") : 1u) * 8 * (uint64_t)batch * (uint64_t)t.context;
    if (train) {
        n.arena = arena_of(ctx, m, &t, 0, batch, &n.program);
        n.arena = larger(n.arena, arena_of(ctx, m, &t, 2, batch, &n.program));
        if (t.batch_seqs > batch)
            n.arena = larger(n.arena, arena_of(ctx, m, &t, 1, batch, &n.program));
        if (t.eval_every > 0)
            n.arena = larger(n.arena, arena_of(ctx, m, &t, 3, batch, &n.program));
    } else {
        n.arena = arena_of(ctx, m, NULL, 4, batch, &n.program);
    }
    enum { LIBRARIES = 20 << 20 }; /* vwn itself, the C library, oneDNN and what it compiles */
    n.program += ctx->bytes + LIBRARIES;
    n.total = n.weights + n.buffers + n.gradients + n.optimizer + n.average + n.inputs +
              n.arena + n.program;
    return n;
}
