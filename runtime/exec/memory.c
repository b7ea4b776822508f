/* memory.c - the bytes that training needs, as planned, before anything is allocated.
 *
 * In:  a checked model, its Train, sequences at once.   Out: a MemoryNeed (session.h).
 * The one idea: it plans the very programs that a run would run, one after the other, and keeps
 * of each what its arena takes; groups that programs have in common are lowered once.
 */
#include "runtime/base/machine.h"
#include "session.h"

#include "compiler/plan/kernel_cache.h"
#include "compiler/model/optimizer.h"
#include "compiler/model/programs.h"
#include "compiler/pass/recompute.h"

typedef struct Planning {
    Ctx *ctx;
    const Model *m;
    int64_t batch;
    KernelCache *kernel_cache;
    const PlanWatch *watch;
    const Target *target; /* plans for a GPU are made whole: what lies between kernels is another */
    PlanLayout *layout;   /* of a device, of the tensors that its programs share */
    Map counted;          /* the names of the copies of weights, */
    uint64_t copy_bytes;  /* and what these take */
} Planning;

/* Copies of weights that no program before had. */
static void count_copies(Planning *p, const Plan *plan)
{
    for (size_t i = 0; i < plan->n_ext; i++) {
        const PlanExt *x = &plan->ext[i];
        if (x->ext.kind != EXT_COPY || map_get(&p->counted, (uintptr_t)x->ext.name))
            continue;
        *map_at(&p->counted, (uintptr_t)x->ext.name) = p;
        p->copy_bytes += plan_ext_bytes(x);
    }
}

/* The arena that one program needs; what was built for the answer is freed, and counted in
 * *program, unless that is NULL: a run keeps it. Kernels are never
 * made, and what they compute is counted only where somebody watches. */
static uint64_t arena_of(Planning *p, const Train *t, ProgramKind kind, uint64_t *program)
{
    Arena *a = arena_new(p->ctx);
    Graph *g = program_make(kind, p->m, t, 0, a);
    if (!g) {
        arena_free(a);
        return 0;
    }
    const int64_t runs = t ? program_runs(kind, t, p->batch) : 0;
    PlanOptions how = {.B = p->batch, .T = t ? t->context : p->m->context, .kernel_cache = p->kernel_cache};
    how.half = program_row(kind)->float32 ? HALF_NONE : train_half(t);
    bool watched = program && runs > 0 && p->watch;
    how.target = p->target;
    how.layout = p->layout;
    if (how.layout && kind == PROGRAM_UPDATE)
        plan_write_copies(g, how.layout);
    how.arena_only = !plan_target(&how)->whole_plans;
    how.counted = watched && how.arena_only;
    const Plan *plan = plan_build(p->ctx, a, plan_graph(g, a, &how), &how);
    uint64_t bytes = plan->arena_bytes;
    count_copies(p, plan);
    if (watched)
        p->watch->seen(p->watch->user, plan, runs);
    if (program)
        *program += plan->compiler_bytes;
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
        if (op_is_view((Op)node_at(g, v)->op))
            continue;
        if (!shape_size(shape_of(g, v), &n))
            return UINT64_MAX;
        bytes += (double)dim_at(n, batch, t->context) * 8 * VALUES;
    }
    for (size_t i = 0; i < m->param.n; i++)
        bytes += 4.0 * COPIES * (double)m->param.v[i].elements;
    return bytes < 1e18 ? (uint64_t)bytes : UINT64_MAX;
}

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

static void count_tensors(MemoryNeed *n, const Model *m, const Train *train)
{
    const StepLanes lanes = train ? lanes_of(train->lanes) : lanes_of(0);
    for (size_t i = 0; i < m->param.n; i++) {
        uint64_t bytes = 4 * (uint64_t)m->param.v[i].elements;
        *(m->param.v[i].buffer ? &n->buffers : &n->weights) += bytes;
        if (train && param_learns(m, train, i)) {
            n->gradients += param_is_trained(m, train, i) ? bytes * (uint64_t)(1 + lanes_levels(&lanes)) : 0;
            if (!param_is_here(train, i))
                continue;
            n->optimizer += bytes * (uint64_t)optimizer_states(&train->optimizer, i);
            n->average += train->average ? bytes : 0;
        }
    }
    if (train && train->owner) {
        Arena *a = arena_new(m->graph->ctx);
        n->exchange = ranks_room(m, train, train->ranks, a);
        arena_free(a);
    }
}

/* The largest arena of the programs first .. last, as far as a run has them. */
static uint64_t arenas_of(Planning *p, const Train *t, ProgramKind first, ProgramKind last, uint64_t *program)
{
    uint64_t bytes = 0;
    for (ProgramKind kind = first; kind <= last; kind++)
        if (program_is_run(kind, t, p->batch))
            bytes = larger(bytes, arena_of(p, t, kind, program));
    return bytes;
}

/* Of a choice that the file has not made: only of the program that runs most. Adding to gradients
 * needs no less than writing them. */
static uint64_t other_arena(Planning *p, const Train *t)
{
    return arena_of(p, t, program_runs(PROGRAM_ACCUMULATE, t, p->batch) ? PROGRAM_ACCUMULATE : PROGRAM_TRAIN, NULL);
}

/* Without `recompute` when the file has it, else with that of the modules that repeat. The names lie in `arena`. */
static void choose_other(const Model *m, Train *t, Arena *arena)
{
    if (t->n_recompute)
        t->n_recompute = 0;
    else
        t->recompute = recompute_repeated(m->graph, arena, &t->n_recompute);
}

/* What the arena would be with and without `recompute`. */
static void both_arenas(Planning *p, const Train *t, uint64_t gradient, uint64_t others, const MemoryAsk *ask,
                        MemoryNeed *n)
{
    Train other = *t;
    choose_other(p->m, &other, ask->both);
    const Train *with = t->n_recompute ? t : &other;
    n->recompute = with->recompute;
    n->n_recompute = with->n_recompute;
    const uint64_t *known = ask->other ? ask->other(ask->other_user) : NULL;
    uint64_t changed = !n->n_recompute ? gradient : known ? *known : other_arena(p, &other);
    n->arena_kept = larger(others, t->n_recompute ? changed : gradient);
    n->arena_recomputed = larger(others, t->n_recompute ? gradient : changed);
}

/* Without training nothing reads labels, and a text is one document. */
static uint64_t input_bytes(const Model *m, bool train, int64_t batch, int64_t context)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < m->graph->ext.n; i++) {
        const Ext *e = &m->graph->ext.v[i];
        bool read = train || (strcmp(e->name, "labels") && strcmp(e->name, "document"));
        uint64_t size = e->dtype == DT_INT ? 8 : 4;
        for (int k = 0; k < e->shape.rank; k++)
            size *= (uint64_t)dim_at(e->shape.d[k], batch, context);
        bytes += e->kind == EXT_INPUT && read ? size : 0;
    }
    return bytes;
}

bool session_room(Session *s, uint64_t *left)
{
    Backend *b = s->backend;
    uint64_t all;
    int64_t total, host = memory_available(&total);
    if (b && b->ops->room && !b->ops->room(b, left, &all))
        ctx_raise(s->ctx, ST_ENVIRONMENT, "%s", b->why);
    if (b && !b->ops->room)
        *left = host < 0 ? 0 : (uint64_t)host + b->spare;
    return b && (b->ops->room || host >= 0);
}

uint64_t session_program_need(Session *s, const Graph *g, const ProgramOptions *how)
{
    Arena *a = arena_new(s->ctx);
    PlanOptions plan = {.B = how->B,
                        .T = how->T,
                        .per_row = how->per_row,
                        .half = how->half,
                        .target = s->backend->target,
                        .arena_only = !s->backend->target->whole_plans};
    if (plan.target->layout) {
        plan.layout = NEW(a, PlanLayout);
        plan_layout_init(plan.layout, a);
    }
    const Plan *made = plan_build(s->ctx, a, plan_graph(g, a, &plan), &plan);
    uint64_t bytes = made->arena_bytes;
    for (size_t i = 0; i < made->n_ext; i++)
        bytes += made->ext[i].ext.kind == EXT_COPY ? plan_ext_bytes(&made->ext[i]) : 0;
    for (size_t i = 0; i < g->ext.n; i++) {
        const Ext *e = &g->ext.v[i];
        uint64_t size = e->dtype == DT_INT ? 8 : 4;
        for (int k = 0; k < e->shape.rank; k++)
            size *= (uint64_t)dim_at(e->shape.d[k], how->B, how->T);
        bytes += size;
    }
    arena_free(a);
    return bytes + s->backend->target->beside;
}

/* Sets how many sequences a step has, and returns how many of them a plan has at once. */
static int64_t sized(Train *t, int64_t batch)
{
    if (batch > 0) {
        t->micro_seqs = batch;
        int64_t least = batch * lanes_of(t->lanes).all;
        t->batch_seqs = t->batch_seqs > least ? (t->batch_seqs + least - 1) / least * least : least;
    }
    return t->micro_seqs > 0 ? t->micro_seqs : t->batch_seqs > 0 ? t->batch_seqs : 1;
}

uint64_t session_memory_other(Ctx *ctx, const Model *m, const Train *train, int64_t batch)
{
    Train t = *train;
    batch = sized(&t, batch);
    choose_other(m, &t, ctx->scratch);
    Arena *own = arena_new(ctx);
    Planning p = {.ctx = ctx, .m = m, .batch = batch, .kernel_cache = kernel_cache_new(ctx, own)};
    uint64_t bytes = other_arena(&p, &t);
    kernel_cache_free(p.kernel_cache);
    arena_free(own);
    return bytes;
}

/* What is planned with; freed by end_planning(). */
static Planning begin_planning(Ctx *ctx, const Model *m, int64_t batch, const MemoryAsk *ask, Arena *own)
{
    const Target *on = ask->target ? ask->target : &target_cpu;
    Planning p = {.ctx = ctx, .m = m, .batch = batch, .watch = ask->watch, .target = on};
    p.kernel_cache = on->layout ? NULL : kernel_cache_new(ctx, own);
    p.layout = on->layout ? NEW(own, PlanLayout) : NULL;
    map_init(&p.counted, own);
    if (p.layout)
        plan_layout_init(p.layout, own);
    return p;
}

static void end_planning(Planning *p, Arena *own)
{
    if (p->kernel_cache)
        kernel_cache_free(p->kernel_cache);
    arena_free(own);
}

static void add_up(MemoryNeed *n)
{
    n->total = n->weights + n->copies + n->buffers + n->gradients + n->optimizer + n->average + n->exchange +
               n->inputs + n->arena + n->program;
}

MemoryNeed session_memory_update(Ctx *ctx, const Model *m, const Train *train, int64_t batch, const MemoryAsk *ask,
                                 const MemoryNeed *other)
{
    MemoryNeed n = *other;
    Train t = *train;
    uint64_t program = 0;
    MemoryAsk how = *ask;
    how.watch = NULL;
    batch = sized(&t, batch);
    n.weights = n.buffers = n.gradients = n.optimizer = n.average = n.exchange = 0;
    count_tensors(&n, m, train);
    Arena *own = arena_new(ctx);
    Planning p = begin_planning(ctx, m, batch, &how, own);
    n.arena = larger(n.arena_step, arenas_of(&p, &t, PROGRAM_SQUARES, PROGRAM_UPDATE, &program));
    end_planning(&p, own);
    add_up(&n);
    return n;
}

MemoryNeed session_memory(Ctx *ctx, const Model *m, const Train *train, int64_t batch, const MemoryAsk *ask)
{
    enum { SPARE = 64 << 20 };
    static const MemoryAsk nothing = {0};
    ask = ask ? ask : &nothing;
    MemoryNeed n = {0};
    Train t = train ? *train : (Train){.context = m->context};
    batch = sized(&t, batch);
    count_tensors(&n, m, train);
    n.inputs = input_bytes(m, train != NULL, batch, t.context);
    enum { LIBRARIES = 20 << 20 }; /* vwn itself, the C library, oneDNN and what it compiles */
    n.program = ctx->bytes + LIBRARIES;
    bool keeps = ctx->spare_most > 0;
    if (!keeps)
        ctx_keep_spare(ctx, SPARE);
    Arena *own = arena_new(ctx);
    Planning p = begin_planning(ctx, m, batch, ask, own);
    if (train) {
        uint64_t gradient = arenas_of(&p, &t, PROGRAM_TRAIN, PROGRAM_JOIN, &n.program); /* which `recompute` changes */
        uint64_t update = arenas_of(&p, &t, PROGRAM_SQUARES, PROGRAM_UPDATE, &n.program);
        uint64_t others = arenas_of(&p, &t, PROGRAM_EVAL, PROGRAM_EVAL_COUNT, &n.program);
        n.arena_step = larger(gradient, others);
        n.arena = larger(n.arena_step, update);
        if (ask->both)
            both_arenas(&p, &t, gradient, larger(update, others), ask, &n);
    } else {
        n.arena = arena_of(&p, NULL, PROGRAM_PREDICT, &n.program);
    }
    n.copies = p.copy_bytes;
    n.program = p.target->beside ? p.target->beside : n.program;
    end_planning(&p, own);
    if (!keeps)
        ctx_keep_spare(ctx, 0);
    add_up(&n);
    return n;
}
