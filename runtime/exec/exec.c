/* exec.c - programs: a graph that was simplified, planned and compiled once, and is run many
 * times.
 *
 * In:  a graph, a store.
 * Out: stored tensors and host-read results after every run.
 * The one idea: everything a run needs lies ready: for each launch its addresses, sizes and
 * scalars. A run fills in what changes (host scalars, random keys, the step) and walks the
 * list; it allocates nothing. Addresses are looked up again only after the store has moved
 * something.
 */
#include "runtime/base/machine.h"
#include "store.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <time.h>

typedef struct PlannedCall { /* a launch with its arguments in memory */
    const Launch *launch;
    void **p;
    int64_t *n;
    double *s;
} PlannedCall;

struct Program {
    Store *store;
    Arena *arena; /* graph, plan, calls: all that lives as long as the program */
    const char *name;
    Graph *graph;
    int64_t B, T;
    char why[512];
    bool has_run;
    StoreEntry **ext; /* one for each ext of the graph */
    /* on a backend */
    Plan *plan;
    Module *module;
    PlannedCall *call;
    double *host;     /* values of plan->host in this run */
    uint64_t *number; /* and of plan->number, of which these are others in each run */
    size_t *changing;
    size_t n_changing;
    void *memory; /* the arena, or NULL: the store's */
    uint64_t generation;
    bool shared;
    StoreEntry **copy; /* of weights: those that the plan's first launches make */
    size_t n_copy;
    double *watch; /* seconds of each launch, added up over runs; NULL: not timed */
    /* in the reference evaluator */
    RefBinding *bind;
    Arena *ref; /* results of the last run */
    Tensor **result;
    size_t *output; /* host-read results: their places among the graph's outputs */
    size_t n_output;
};

__attribute__((format(printf, 3, 4))) static Status fail(Program *p, Status status, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(p->why, sizeof p->why, fmt, ap);
    va_end(ap);
    return status;
}

/* ---- building ---- */

/* Every external tensor of the graph, at this B and T, is in the store. */
static Status bind_exts(Program *p)
{
    Graph *g = p->graph;
    Ctx *ctx = p->store->ctx;
    p->ext = NEW_ARRAY(p->arena, StoreEntry *, g->ext.n);
    for (size_t i = 0; i < g->ext.n; i++) {
        const Ext *x = &g->ext.v[i];
        int64_t d[MAX_RANK] = {0};
        for (int k = 0; k < x->shape.rank; k++)
            if ((d[k] = dim_at(x->shape.d[k], p->B, p->T)) < 0)
                ctx_raise(ctx, ST_ENVIRONMENT, "the tensor %s is too large", x->name);
        Status status = store_add(p->store, x->kind, x->name, x->dtype, x->shape.rank, d, &p->ext[i]);
        if (status != ST_OK)
            return fail(p, status, "%s", store_why(p->store));
    }
    return ST_OK;
}

/* The entry of an external tensor of the plan: by kind and name, whatever the order. */
static StoreEntry *plan_entry(Program *p, int32_t ext)
{
    const PlanExt *x = &p->plan->ext[ext];
    return store_find(p->store, x->ext.kind, x->ext.name);
}

/* Copies of the weights of tensors x, which the plan adds to those of the graph. */
static Status add_copies(Program *p, const PlanExt *const *x, size_t n)
{
    Store *s = p->store;
    const StoreEntry **of = NEW_ARRAY(p->arena, const StoreEntry *, n);
    for (size_t i = 0; i < n; i++) {
        StoreEntry *like = NEW(p->arena, StoreEntry);
        *like = *store_find(s, EXT_PARAM, x[i]->ext.name);
        like->elements = x[i]->elements;
        for (int k = 0; k < like->rank; k++)
            like->d[k] = x[i]->ext.shape.d[k].n;
        of[i] = like;
    }
    return store_add_copies(s, of, n, x[0]->half);
}

/* Tensors that are behind each other, from buffer `at` on, which is behind nothing. */
static Status hold_chain(Program *p, uint32_t at, const uint32_t *next)
{
    Store *s = p->store;
    const PlanExt **x = NEW_ARRAY(p->arena, const PlanExt *, p->plan->n_buffer);
    StoreEntry **e = NEW_ARRAY(p->arena, StoreEntry *, p->plan->n_buffer);
    size_t n = 0;
    for (uint32_t i = at + 1; i; i = next[i - 1])
        x[n++] = &p->plan->ext[p->plan->buffer[i - 1].ext];
    bool copies = x[0]->ext.kind == EXT_COPY, there = store_find(s, x[0]->ext.kind, x[0]->ext.name);
    Status status = copies && !there ? add_copies(p, x, n) : ST_OK;
    if (status != ST_OK)
        return fail(p, status, "%s", store_why(s));
    for (size_t i = 0; i < n; i++)
        if (!(e[i] = store_find(s, x[i]->ext.kind, x[i]->ext.name)))
            vwn_bug(s->ctx, "the tensor %s of the plan is not there", x[i]->ext.name);
    if (!copies && n > 1 && !store_is_laid(e[1]))
        store_lay(s, e, n);
    for (size_t i = 0; i < n; i++) {
        if (i && !store_follows(s, e[i], e[i - 1]))
            vwn_bug(s->ctx, "the tensor %s does not lie as the plan says", e[i]->name);
        if (copies)
            p->copy[p->n_copy++] = e[i];
    }
    return ST_OK;
}

/* Copies of weights, and the tensors of a batch of products, lie as the plan says. */
static Status hold_layout(Program *p)
{
    const Plan *plan = p->plan;
    Status status = ST_OK;
    uint32_t *next = NEW_ARRAY(p->arena, uint32_t, plan->n_buffer + 1);
    p->copy = NEW_ARRAY(p->arena, StoreEntry *, plan->n_buffer + 1);
    for (uint32_t i = 0; i < plan->n_buffer; i++)
        if (plan->buffer[i].behind)
            next[plan->buffer[i].behind - 1] = i + 1;
    for (uint32_t i = 0; status == ST_OK && i < plan->n_buffer; i++) {
        const PlanBuffer *b = &plan->buffer[i];
        bool added = b->ext >= (int32_t)p->graph->ext.n;
        if (b->ext >= 0 && !b->behind && (added || next[i]))
            status = hold_chain(p, i, next);
    }
    return status;
}

/* Tensors that have memory already stay where they are. */
static void fix_places(Program *p, PlanLayout *layout)
{
    for (size_t i = 0; i < p->graph->ext.n; i++)
        if (p->ext[i]->memory)
            plan_layout_fix(layout, p->ext[i]->kind, p->ext[i]->name, p->ext[i]->name);
}

static void prepare_calls(Program *p)
{
    const Plan *plan = p->plan;
    Ctx *ctx = p->store->ctx;
    p->call = NEW_ARRAY(p->arena, PlannedCall, plan->n_launch);
    p->host = NEW_ARRAY(p->arena, double, plan->n_host);
    p->number = NEW_ARRAY(p->arena, uint64_t, plan->n_number);
    p->changing = NEW_ARRAY(p->arena, size_t, plan->n_number + 1);
    for (size_t i = 0; i < plan->n_number; i++) {
        const PlanNumber *x = &plan->number[i];
        if (x->host >= 0 || x->kind == INT_SEED || x->kind == INT_STEP || x->kind == INT_FIRST)
            p->changing[p->n_changing++] = i;
    }
    for (size_t i = 0; i < plan->n_launch; i++) {
        const Launch *l = &plan->launch[i];
        PlannedCall *c = &p->call[i];
        c->launch = l;
        c->p = NEW_ARRAY(p->arena, void *, l->n_buffer);
        c->n = NEW_ARRAY(p->arena, int64_t, l->n_int);
        c->s = NEW_ARRAY(p->arena, double, l->n_scalar);
        for (uint32_t k = 0; k < l->n_int; k++)
            c->n[k] = l->ints[k].value;
        for (uint32_t k = 0; k < l->n_scalar; k++)
            c->s[k] = l->scalars[k].value;
    }
    for (size_t i = 0; i < plan->n_buffer; i++) {
        const PlanBuffer *b = &plan->buffer[i];
        if (b->ext < 0)
            continue;
        StoreEntry *e = plan_entry(p, b->ext);
        if (!e || e->dtype != b->dtype || b->bytes > (uint64_t)e->elements * plan_item_bytes(b))
            vwn_bug(ctx, "buffer %zu of the plan does not fit its tensor", i);
    }
}

static void *buffer_address(Program *p, uint32_t buffer)
{
    const PlanBuffer *b = &p->plan->buffer[buffer];
    if (b->ext >= 0)
        return plan_entry(p, b->ext)->memory;
    char *base = p->shared ? p->store->common : p->memory;
    return base ? base + b->offset : NULL;
}

static void resolve_addresses(Program *p)
{
    for (size_t i = 0; i < p->plan->n_launch; i++) {
        PlannedCall *c = &p->call[i];
        for (uint32_t k = 0; k < c->launch->n_buffer; k++) {
            char *base = buffer_address(p, c->launch->buffer[k]);
            c->p[k] = base ? base + c->launch->shift[k] : NULL;
        }
    }
    for (size_t i = 0; i < p->plan->n_number; i++) {
        const PlanNumber *x = &p->plan->number[i];
        if (x->kind == INT_PLACE)
            p->number[i] = (uintptr_t)buffer_address(p, x->buffer) + x->bits;
        else if (x->kind == INT_CONST)
            p->number[i] = x->bits;
    }
    p->generation = p->store->generation;
}

/* Memory and kernels. */
static Status build_on_backend(Program *p, BuildReport *report)
{
    Backend *b = p->store->backend;
    uint64_t bytes = p->plan->arena_bytes;
    Status status;
    b->why[0] = 0;
    if (p->shared) {
        status = store_reserve_common(p->store, bytes);
        if (status != ST_OK)
            return fail(p, status, "%s", store_why(p->store));
    } else if (bytes) {
        status = b->ops->alloc(b, bytes, &p->memory);
        if (status != ST_OK)
            return fail(p, status, "%s", b->why);
    }
    status = b->ops->build(b, p->plan, &p->module, report);
    if (status != ST_OK)
        return fail(p, status, "%s", report->why);
    resolve_addresses(p);
    return ST_OK;
}

/* Headers over the store's memory, for the reference evaluator. */
static void bind_reference(Program *p)
{
    const Graph *g = p->graph;
    p->bind = NEW_ARRAY(p->arena, RefBinding, g->ext.n);
    for (size_t i = 0; i < g->ext.n; i++) {
        const Ext *x = &g->ext.v[i];
        Tensor *t = NEW(p->arena, Tensor);
        t->dtype = x->dtype;
        t->rank = x->shape.rank;
        t->size = 1;
        for (int k = 0; k < x->shape.rank; k++) {
            t->d[k] = dim_at(x->shape.d[k], p->B, p->T);
            t->size *= t->d[k];
        }
        p->bind[i] = (RefBinding){x->kind, x->name, t};
    }
    p->ref = arena_new(p->store->ctx);
    p->result = NEW_ARRAY(p->arena, Tensor *, g->out.n);
    p->output = NEW_ARRAY(p->arena, size_t, g->out.n);
    for (size_t i = 0; i < g->out.n; i++)
        if (g->out.v[i].ext < 0)
            p->output[p->n_output++] = i;
}

static PlanOptions plan_options(const Program *p, const ProgramOptions *o)
{
    return (PlanOptions){.B = p->B,
                         .T = p->T,
                         .no_fusion = o->no_fusion,
                         .single = o->single,
                         .per_row = o->per_row,
                         .half = o->half,
                         .shared = o->shared,
                         .kernel_cache = o->kernel_cache,
                         .layout = o->layout ? o->layout : &p->store->layout,
                         .target = p->store->backend ? p->store->backend->target : NULL};
}

/* The part that may leave when memory runs out or a stage finds a broken invariant. */
static Status build_guarded(Program *p, const Graph *g, const ProgramOptions *o, BuildReport *report)
{
    Ctx *ctx = p->store->ctx;
    CtxGuard guard;
    if (!CTX_TRY(ctx, &guard))
        return fail(p, ctx->raised, "%s", ctx->message);
    p->arena = arena_new(ctx);
    double began = clock_seconds();
    const PlanOptions how = plan_options(p, o);
    p->graph = plan_graph(g, p->arena, &how);
    graph_verify(p->graph);
    Status status = bind_exts(p);
    if (status == ST_OK && p->store->backend) {
        if (plan_target(&how)->own_library)
            fix_places(p, how.layout);
        p->plan = plan_build(ctx, p->arena, p->graph, &how);
        plan_verify(ctx, p->plan);
        status = hold_layout(p);
        if (status == ST_OK)
            prepare_calls(p);
        double planned = clock_seconds() - began;
        if (status == ST_OK)
            status = build_on_backend(p, report);
        report->plan_seconds = planned; /* the backend has filled in the rest */
    } else if (status == ST_OK) {
        bind_reference(p);
    }
    ctx_leave(ctx, &guard);
    return status;
}

/* ctx_alloc, but NULL instead of leaving. */
static void *small_block(Ctx *ctx, size_t bytes)
{
    CtxGuard guard;
    if (!CTX_TRY(ctx, &guard))
        return NULL;
    void *p = ctx_alloc(ctx, bytes);
    ctx_leave(ctx, &guard);
    return p;
}

Status program_build(Store *s, const Graph *g, const ProgramOptions *how, Program **out, BuildReport *report)
{
    BuildReport unused;
    *out = NULL;
    if (!report)
        report = &unused;
    *report = (BuildReport){0};
    Program *p = small_block(s->ctx, sizeof *p);
    if (!p) {
        snprintf(report->why, sizeof report->why, "%s", s->ctx->message);
        return ST_ENVIRONMENT;
    }
    *p = (Program){.store = s, .B = how->B, .T = how->T, .shared = how->share_arena && s->backend};
    Status status = build_guarded(p, g, how, report);
    if (status != ST_OK) {
        snprintf(report->why, sizeof report->why, "%s", p->why);
        program_free(p);
        return status;
    }
    p->name = how->name ? how->name : "program"; /* a literal of the caller */
    *out = p;
    return ST_OK;
}

/* Plans and kernels, without tensors. */
static Status prepare_guarded(Program *p, const Graph *g, const ProgramOptions *o, BuildReport *report)
{
    Ctx *ctx = p->store->ctx;
    Backend *b = p->store->backend;
    CtxGuard guard;
    if (!CTX_TRY(ctx, &guard))
        return fail(p, ctx->raised, "%s", ctx->message);
    p->arena = arena_new(ctx);
    const PlanOptions how = plan_options(p, o);
    p->graph = plan_graph(g, p->arena, &how);
    p->plan = plan_build(ctx, p->arena, p->graph, &how);
    Status status = ST_OK;
    if (o->gather) {
        status = kernel_set_add(o->gather, p->plan, p->why);
    } else {
        b->why[0] = 0;
        status = b->ops->build(b, p->plan, &p->module, report);
    }
    ctx_leave(ctx, &guard);
    return status;
}

Status program_prepare(Store *s, const Graph *g, const ProgramOptions *how, BuildReport *report)
{
    *report = (BuildReport){0};
    if (!s->backend)
        return ST_OK;
    Program p = {.store = s, .B = how->B, .T = how->T, .shared = true};
    Status status = prepare_guarded(&p, g, how, report);
    if (status != ST_OK && p.why[0])
        snprintf(report->why, sizeof report->why, "%s", p.why);
    if (p.module)
        s->backend->ops->drop(s->backend, p.module);
    arena_free(p.arena);
    return status;
}

const Graph *program_graph(const Program *p) { return p->graph; }

void program_extents(const Program *p, int64_t *B, int64_t *T)
{
    *B = p->B;
    *T = p->T;
}

void program_free(Program *p)
{
    if (!p)
        return;
    Ctx *ctx = p->store->ctx;
    Backend *b = p->store->backend;
    if (p->module)
        b->ops->drop(b, p->module);
    if (p->memory)
        b->ops->free(b, p->memory, p->plan->arena_bytes);
    arena_free(p->ref);
    arena_free(p->arena);
    ctx_release(ctx, p);
}

/* ---- running ---- */

/* What changes from run to run: host scalars, keys of random numbers, their step. */
static void fill_in(Program *p, const RunArgs *args)
{
    static const double none[HV_COUNT] = {
        [HV_SHARE] = 1,       [HV_FILLED] = 1,      [HV_LOSS_SCALE] = 1,        [HV_TRAIN_LOSS] = NAN,
        [HV_EVAL_LOSS] = NAN, [HV_GRAD_NORM] = NAN, [HV_SKIPPED_LOSS_SCALE] = 1};
    const double *vars = args->host_vars ? args->host_vars : none;
    const RandomKey key = {args->seed, args->step, args->first};
    for (size_t i = 0; i < p->plan->n_host; i++)
        p->host[i] = host_eval(p->plan->host[i], vars);
    for (size_t i = 0; i < p->n_changing; i++)
        p->number[p->changing[i]] = plan_number(p->plan, p->changing[i], &key, p->host);
    for (size_t i = 0; i < p->plan->n_launch; i++) {
        PlannedCall *c = &p->call[i];
        const Launch *l = c->launch;
        for (uint32_t k = 0; k < l->n_int; k++)
            if (l->ints[k].kind != INT_CONST)
                c->n[k] = plan_int(&l->ints[k], &key);
        for (uint32_t k = 0; k < l->n_scalar; k++)
            if (l->scalars[k].host >= 0)
                c->s[k] = p->host[l->scalars[k].host];
    }
}

static Status run_kernel(Backend *b, Module *m, const PlannedCall *c)
{
    const Launch *l = c->launch;
    return l->rows > 0 ? b->ops->launch(b, m, l->kernel, c->p, c->n, c->s, l->map, l->rows, l->grain) : ST_OK;
}

static Status run_matmul(Backend *b, Module *m, const PlannedCall *c)
{
    (void)m;
    return b->ops->matmul(b, &c->launch->matmul, c->p[0], c->p[1], c->p[2]);
}

static Status run_expert(Backend *b, Module *m, const PlannedCall *c)
{
    (void)m;
    return b->ops->expert(b, &c->launch->expert, c->p[0], c->p[1], c->p[2], c->p[3]);
}

static Status run_copy(Backend *b, Module *m, const PlannedCall *c)
{
    (void)m;
    return b->ops->copy(b, &c->launch->copy, c->launch->rows, c->p[0], c->p[1]);
}

static Status run_call(Program *p, const PlannedCall *c)
{
    static Status (*const of_kind[LAUNCH_KINDS])(Backend *, Module *, const PlannedCall *) = {
#define LAUNCH(ID, name, ...) [LAUNCH_##ID] = run_##name,
#include "compiler/plan/launches.def"
#undef LAUNCH
    };
    Backend *b = p->store->backend;
    b->at.launch = c->launch;
    return of_kind[c->launch->kind](b, p->module, c);
}

/* With moments around them where they are watched, on a device that notes these. */
static Status make_calls(Program *p)
{
    Backend *b = p->store->backend;
    size_t first = p->plan->n_cast;
    bool marked = p->watch && b->ops->mark;
    Status status = marked ? b->ops->mark(b, first) : ST_OK;
    for (size_t i = first; status == ST_OK && i < p->plan->n_launch; i++) {
        status = run_call(p, &p->call[i]);
        if (status == ST_OK && marked)
            status = b->ops->mark(b, i + 1);
    }
    return status;
}

static Status run_calls(Program *p)
{
    Backend *b = p->store->backend;
    bool replayed = false;
    Status status = b->ops->begin ? b->ops->begin(b, p->module, p->generation, p->watch != NULL, &replayed) : ST_OK;
    if (status != ST_OK || replayed)
        return status;
    status = make_calls(p);
    return b->ops->end ? b->ops->end(b, p->module, status) : status;
}

/* The device notes the times, and is waited for in the end. */
static Status run_marked(Program *p)
{
    Backend *b = p->store->backend;
    Status status = run_calls(p);
    if (status == ST_OK)
        status = b->ops->sync(b);
    for (size_t i = p->plan->n_cast; status == ST_OK && i < p->plan->n_launch; i++) {
        double seconds;
        status = b->ops->between(b, i, &seconds);
        p->watch[i] += seconds;
    }
    return status;
}

/* As run_calls(), with the time of each launch, which is waited for. */
static Status run_watched(Program *p)
{
    Backend *b = p->store->backend;
    Status status = ST_OK;
    double before = clock_seconds();
    for (size_t i = p->plan->n_cast; status == ST_OK && i < p->plan->n_launch; i++) {
        status = run_call(p, &p->call[i]);
        if (status == ST_OK)
            status = b->ops->sync(b);
        double after = clock_seconds();
        p->watch[i] += after - before;
        before = after;
    }
    return status;
}

/* What kernels read of this run comes up before the first of them. */
static Status put_numbers(Program *p)
{
    Backend *b = p->store->backend;
    if (!p->plan->n_number)
        return ST_OK;
    return b->ops->upload(b, buffer_address(p, p->plan->numbers), p->number, p->plan->n_number * sizeof *p->number);
}

/* Weights that somebody else than an update has written are rounded first: once, or in each run where no program writes
 * their copies. */
static Status make_copies(Program *p)
{
    bool stale = false;
    Status status = ST_OK;
    for (size_t i = 0; i < p->n_copy; i++)
        stale = stale || store_copy_stale(p->copy[i]);
    for (size_t i = 0; stale && status == ST_OK && i < p->plan->n_cast; i++)
        status = run_call(p, &p->call[i]);
    for (size_t i = 0; stale && status == ST_OK && i < p->n_copy; i++)
        store_copy_done(p->copy[i]);
    return status;
}

/* A program that writes weights begins, or has ended: copies that it writes are as new as these. */
static void note_written(Program *p, bool ended)
{
    const Graph *g = p->graph;
    for (size_t i = 0; i < g->out.n; i++) {
        StoreEntry *e = g->out.v[i].ext >= 0 ? p->ext[g->out.v[i].ext] : NULL;
        if (e && !ended)
            store_weight_changes(p->store, e);
        else if (e && e->kind == EXT_COPY)
            store_copy_done(e);
    }
}

void program_write_copies(Store *s, Graph *g) { plan_write_copies(g, &s->layout); }

static Status run_on_backend(Program *p, const RunArgs *args)
{
    Backend *b = p->store->backend;
    b->why[0] = 0;
    Status status = store_settle(p->store);
    if (status != ST_OK)
        return fail(p, status, "%s", store_why(p->store));
    if (p->generation != p->store->generation)
        resolve_addresses(p);
    fill_in(p, args);
    b->at = (CallPlace){NULL, p->name, args->step};
    status = put_numbers(p);
    if (status == ST_OK)
        status = make_copies(p);
    note_written(p, false);
    if (status == ST_OK)
        status = !p->watch ? run_calls(p) : b->ops->mark ? run_marked(p) : run_watched(p);
    if (status == ST_OK && !b->queues) /* else whoever reads a result waits, and meanwhile the next input comes up */
        status = b->ops->sync(b);
    if (status == ST_OK)
        note_written(p, true);
    b->at = (CallPlace){0};
    return status == ST_OK ? ST_OK : fail(p, status, "%s program: %s", p->name, b->why);
}

static RefRun reference_of(const Program *p, const RunArgs *args, RefBinding *bind, size_t n)
{
    return (RefRun){.B = p->B,
                    .T = p->T,
                    .seed = args->seed,
                    .step = args->step,
                    .first = args->first,
                    .host_vars = args->host_vars,
                    .bind = bind,
                    .n_bind = n};
}

static Status run_reference(Program *p, const RunArgs *args)
{
    Ctx *ctx = p->store->ctx;
    CtxGuard guard;
    RefRun run = reference_of(p, args, p->bind, p->graph->ext.n);
    for (size_t i = 0; i < p->graph->ext.n; i++) {
        p->bind[i].tensor->real = p->ext[i]->dtype == DT_REAL ? p->ext[i]->memory : NULL;
        p->bind[i].tensor->integer = p->ext[i]->dtype == DT_INT ? p->ext[i]->memory : NULL;
    }
    arena_reset(p->ref, (ArenaMark){0});
    if (!CTX_TRY(ctx, &guard))
        return fail(p, ctx->raised, "%s program: %s", p->name, ctx->message);
    ref_evaluate(p->graph, p->ref, &run, p->result);
    ctx_leave(ctx, &guard);
    return ST_OK;
}

Status program_run(Program *p, const RunArgs *args)
{
    static const RunArgs defaults;
    if (!args)
        args = &defaults;
    p->has_run = false;
    Status status = p->store->backend ? run_on_backend(p, args) : run_reference(p, args);
    p->has_run = status == ST_OK;
    return status;
}

void program_watch(Program *p, double *seconds) { p->watch = p->plan ? seconds : NULL; }

bool program_shape(Program *p, size_t i, LaunchShape *out)
{
    Backend *b = p->store->backend;
    if (!p->plan || !b->ops->shape || p->plan->launch[i].kind != LAUNCH_KERNEL)
        return false;
    const PlannedCall *c = &p->call[i];
    return b->ops->shape(b, p->module, c->launch->kernel, c->n, c->launch->rows, out) == ST_OK;
}

/* ---- results ---- */

size_t program_results(const Program *p) { return p->plan ? p->plan->n_result : p->n_output; }

Name program_result_name(const Program *p, size_t i)
{
    return p->plan ? p->plan->result[i].name : p->graph->out.v[p->output[i]].name;
}

size_t program_result_size(const Program *p, size_t i)
{
    int64_t n = 1;
    if (p->plan) {
        for (int k = 0; k < p->plan->result[i].rank; k++)
            n *= p->plan->result[i].d[k];
    } else {
        const Shape *s = shape_of(p->graph, p->graph->out.v[p->output[i]].value);
        for (int k = 0; k < s->rank; k++)
            n *= dim_at(s->d[k], p->B, p->T);
    }
    return (size_t)n;
}

/* A result as the backend or the evaluator left it. */
typedef struct View {
    DType dtype;
    uint8_t rank;
    const int64_t *d;
    int64_t size;
    const void *memory;
} View;

static View view_of(Program *p, size_t i)
{
    if (p->plan) {
        const PlanResult *r = &p->plan->result[i];
        return (View){r->dtype, r->rank, r->d, (int64_t)program_result_size(p, i), buffer_address(p, r->buffer)};
    }
    const Tensor *t = p->result[p->output[i]];
    return (View){t->dtype, t->rank, t->d, t->size, t->dtype == DT_INT ? (const void *)t->integer : t->real};
}

static Status find_result(Program *p, Name name, View *out)
{
    if (!p->has_run)
        return fail(p, ST_USAGE, "the %s program has not run", p->name);
    for (size_t i = 0; i < program_results(p); i++) {
        if (program_result_name(p, i) != name)
            continue;
        *out = view_of(p, i);
        return ST_OK;
    }
    return fail(p, ST_USAGE, "the %s program has no result %s", p->name, name);
}

const void *program_result_memory(Program *p, size_t i, DType *dtype)
{
    View v = view_of(p, i);
    *dtype = v.dtype;
    return v.memory;
}

/* `n` numbers as float64, by pieces: no memory is needed. */
static Status copy_out(Program *p, const View *r, double *v)
{
    enum { PIECE = 1024 };
    Backend *b = p->store->backend;
    size_t item = r->dtype == DT_INT || !b ? 8 : sizeof(float);
    for (int64_t i = 0; i < r->size; i += PIECE) {
        union {
            float real[PIECE];
            double exact[PIECE];
            int64_t integer[PIECE];
        } piece;
        int64_t n = r->size - i < PIECE ? r->size - i : PIECE;
        const char *from = (const char *)r->memory + (size_t)i * item;
        if (b) {
            b->why[0] = 0;
            Status status = b->ops->download(b, &piece, from, (uint64_t)n * item);
            if (status != ST_OK)
                return fail(p, status, "%s", b->why);
        } else {
            memcpy(&piece, from, (size_t)n * item);
        }
        for (int64_t j = 0; j < n; j++)
            v[i + j] = r->dtype == DT_INT ? (double)piece.integer[j] : b ? (double)piece.real[j] : piece.exact[j];
    }
    return ST_OK;
}

Status program_scalar(Program *p, Name result, double *v)
{
    View r = {0};
    Status status = find_result(p, result, &r);
    if (status != ST_OK)
        return status;
    if (r.size != 1)
        return fail(p, ST_USAGE, "the result %s is no scalar", result);
    return copy_out(p, &r, v);
}

Status program_tensor(Program *p, Name result, uint8_t *rank, int64_t d[MAX_RANK], double *v, size_t capacity)
{
    View r = {0};
    Status status = find_result(p, result, &r);
    if (status != ST_OK)
        return status;
    *rank = r.rank;
    for (int i = 0; i < r.rank; i++)
        d[i] = r.d[i];
    if ((uint64_t)r.size > capacity)
        return fail(p, ST_USAGE, "the result %s has %lld numbers, there is room for %zu", result, (long long)r.size,
                    capacity);
    return copy_out(p, &r, v);
}

uint64_t program_arena_bytes(const Program *p) { return p->plan ? p->plan->arena_bytes : 0; }

const Plan *program_plan(const Program *p) { return p->plan; }

const char *program_why(const Program *p) { return p->why; }

/* ---- where a bad number began ---- */

/* Two scalars for a node: the sum of x * 0, which is NaN exactly when x holds a NaN or an
 * infinity, and the sum of (x != x), the number of its NaNs; and the largest |x|. */
typedef struct Probe {
    Val node;
    size_t zero, nan, largest; /* places among the outputs */
} Probe;

static size_t add_probe(Graph *g, Val v)
{
    int rank = shape_of(g, v)->rank;
    uint32_t all = (1u << rank) - 1;
    ir_output(g, name_str(g->ctx, "probe"), rank ? ir_sum(g, v, all, true) : v);
    return g->out.n - 1;
}

/* A copy of the graph whose outputs are the probes of its real nodes. Nothing is stored. */
static Graph *probe_graph(Program *p, Arena *arena, Probe **probes, size_t *n_probe)
{
    const Graph *from = p->graph;
    Graph *g = graph_new(from->ctx, arena);
    size_t n = from->node.n;
    g->node.n = 0;
    for (size_t i = 0; i < n; i++)
        vec_push(arena, &g->node, from->node.v[i]);
    for (size_t i = 0; i < from->ext.n; i++)
        vec_push(arena, &g->ext, from->ext.v[i]);
    for (size_t i = 0; i < from->host.n; i++)
        vec_push(arena, &g->host, from->host.v[i]);
    *probes = NEW_ARRAY(arena, Probe, n);
    *n_probe = 0;
    Val zero = ir_fill(g, 0), one = ir_fill(g, 1);
    for (Val v = 1; v < n; v++) {
        Dim size;
        if (node_at(g, v)->dtype != DT_REAL || !shape_size(shape_of(g, v), &size) || size.n == 0)
            continue;
        int rank = shape_of(g, v)->rank;
        Val largest = ir_unary(g, OP_ABS, v);
        if (rank)
            largest = ir_max(g, largest, (1u << rank) - 1, true);
        Probe *probe = &(*probes)[(*n_probe)++];
        probe->node = v;
        probe->zero = add_probe(g, ir_binary(g, OP_MUL, v, zero));
        probe->nan = add_probe(g, ir_binary(g, OP_SUB, one, ir_binary(g, OP_EQ, v, v)));
        probe->largest = add_probe(g, largest);
    }
    return g;
}

/* The store's values in float64, as the evaluator wants them. */
static bool copy_values(Program *p, Arena *arena, RefBinding *bind)
{
    for (size_t i = 0; i < p->graph->ext.n; i++) {
        const Ext *x = &p->graph->ext.v[i];
        int64_t d[MAX_RANK] = {0};
        for (int k = 0; k < x->shape.rank; k++)
            d[k] = dim_at(x->shape.d[k], p->B, p->T);
        Tensor *t = tensor_new(arena, x->dtype, x->shape.rank, d);
        bind[i] = (RefBinding){x->kind, x->name, t};
        Store *s = p->store;
        if (x->dtype == DT_REAL) {
            if (store_get_f64(s, p->ext[i], 0, t->size, t->real) != ST_OK)
                return false;
        } else if (!s->backend) {
            memcpy(t->integer, p->ext[i]->memory, (size_t)t->size * sizeof *t->integer);
        } else if (s->backend->ops->download(s->backend, t->integer, p->ext[i]->memory,
                                             (uint64_t)t->size * sizeof *t->integer) != ST_OK) {
            return false;
        }
    }
    return true;
}

/* An infinity that was written down (a mask's -inf) is meant, and so is one that merely comes
 * of it without a NaN. */
static bool is_meant(const Graph *g, Val v, bool has_nan, const bool *meant)
{
    const Node *n = node_at(g, v);
    if (has_nan)
        return false;
    if (n->op == OP_FILL || n->op == OP_CONST || n->op == OP_SHIFT)
        return true;
    for (size_t k = 0; k < n->n_in; k++)
        if (meant[n->in[k]])
            return true;
    return false;
}

static bool first_bad(Program *p, Arena *arena, const RunArgs *args, Val *bad)
{
    Probe *probe;
    size_t n;
    Graph *g = probe_graph(p, arena, &probe, &n);
    RefBinding *bind = NEW_ARRAY(arena, RefBinding, g->ext.n);
    Tensor **result = NEW_ARRAY(arena, Tensor *, g->out.n);
    bool *meant = NEW_ARRAY(arena, bool, g->node.n);
    if (!copy_values(p, arena, bind))
        return false;
    RefRun run = reference_of(p, args, bind, g->ext.n);
    ref_evaluate(g, arena, &run, result);
    /* Backends count in float32: there a finite number beyond its range is an infinity. */
    double most = p->store->backend ? (double)FLT_MAX : DBL_MAX;
    for (size_t i = 0; i < n; i++) {
        bool has_nan = !(result[probe[i].nan]->real[0] == 0);
        bool finite = result[probe[i].zero]->real[0] == 0;
        if (finite && result[probe[i].largest]->real[0] <= most)
            continue;
        *bad = probe[i].node;
        if (!is_meant(g, *bad, has_nan, meant))
            return true;
        meant[*bad] = true;
    }
    return false;
}

bool program_first_bad(Program *p, const RunArgs *args, Name *path, Span *span)
{
    static const RunArgs defaults;
    Ctx *ctx = p->store->ctx;
    CtxGuard guard;
    Arena *volatile arena = NULL;
    if (!CTX_TRY(ctx, &guard)) {
        fail(p, ctx->raised, "%s", ctx->message);
        arena_free(arena);
        return false;
    }
    Val bad = 0;
    arena = arena_new(ctx);
    bool found = first_bad(p, arena, args ? args : &defaults, &bad);
    if (found) {
        const Node *n = node_at(p->graph, bad);
        *path = n->op == OP_EXT ? p->graph->ext.v[n->a.i].name : n->name;
        *span = n->span;
    }
    arena_free(arena);
    ctx_leave(ctx, &guard);
    return found;
}
