/* reference.c - the evaluator: every node, one after the other, in float64.
 *
 * In:  a graph, B, T, and a tensor for each external one.     Out: its outputs.
 * The one idea: this is the specification that every pass and backend is compared with, so it
 * does nothing clever; it only forgets a value after its last use, so that a model's graph fits
 * in memory.
 */
#include "op.h"

enum { MAX_AUX = 2 };

/* A node's results while somebody still needs them. */
typedef struct Slot {
    Tensor *value;
    Tensor *aux[MAX_AUX];
    Val last_use;  /* 0: never needed */
    bool borrowed; /* the caller's tensor */
} Slot;

typedef struct ReferenceRun {
    const Graph *g;
    RefRun *run;
    Slot *slot;
} ReferenceRun;

/* ---- tensors ---- */

static Tensor shaped(Ctx *ctx, DType dtype, uint8_t rank, const int64_t *d)
{
    Tensor t = {.dtype = dtype, .rank = rank, .size = 1};
    if (rank > MAX_RANK)
        vwn_bug(ctx, "a tensor of rank %d", rank);
    for (int k = 0; k < rank; k++) {
        t.d[k] = d[k];
        if (d[k] < 0 || !mul_i64(t.size, d[k], &t.size) || t.size > (int64_t)1 << 48)
            ctx_raise(ctx, ST_ENVIRONMENT, "a tensor is too large for this machine");
    }
    return t;
}

Tensor *tensor_new(Arena *arena, DType dtype, uint8_t rank, const int64_t *d)
{
    Tensor *t = NEW(arena, Tensor);
    *t = shaped(arena_ctx(arena), dtype, rank, d);
    if (dtype == DT_INT)
        t->integer = NEW_ARRAY(arena, int64_t, (size_t)t->size);
    else
        t->real = NEW_ARRAY(arena, double, (size_t)t->size);
    return t;
}

/* One block for the tensor and its numbers, so that it is freed as one. */
static Tensor *tensor_take(Ctx *ctx, DType dtype, uint8_t rank, const int64_t *d)
{
    Tensor t = shaped(ctx, dtype, rank, d);
    size_t head = (sizeof t + 15) & ~(size_t)15;
    Tensor *p = ctx_alloc(ctx, head + (size_t)t.size * 8);
    *p = t;
    if (dtype == DT_INT)
        p->integer = (int64_t *)(void *)((char *)p + head);
    else
        p->real = (double *)(void *)((char *)p + head);
    return p;
}

static void tensor_copy(Tensor *to, const Tensor *from)
{
    if (to->size == 0)
        return;
    if (to->dtype == DT_INT)
        memcpy(to->integer, from->integer, (size_t)to->size * sizeof *to->integer);
    else
        memcpy(to->real, from->real, (size_t)to->size * sizeof *to->real);
}

static bool tensor_fits(const Tensor *t, DType dtype, const Shape *s, const RefRun *run)
{
    if (t->dtype != dtype || t->rank != s->rank)
        return false;
    for (int k = 0; k < s->rank; k++)
        if (t->d[k] != dim_at(s->d[k], run->B, run->T))
            return false;
    return true;
}

static Tensor *take_for(const ReferenceRun *r, DType dtype, const Shape *s)
{
    int64_t d[MAX_RANK];
    for (int k = 0; k < s->rank; k++)
        d[k] = dim_at(s->d[k], r->run->B, r->run->T);
    return tensor_take(r->g->ctx, dtype, s->rank, d);
}

/* ---- lifetimes ---- */

/* Only what an output needs is computed: nodes are marked from the outputs down. */
static void find_last_uses(ReferenceRun *r)
{
    for (size_t i = 0; i < r->g->out.n; i++)
        r->slot[r->g->out.v[i].value].last_use = (Val)r->g->node.n;
    for (Val v = (Val)r->g->node.n; v-- > 1;) {
        const Node *n = node_at(r->g, v);
        if (!r->slot[v].last_use)
            continue;
        for (size_t k = 0; k < n->n_in; k++)
            if (r->slot[n->in[k]].last_use < v)
                r->slot[n->in[k]].last_use = v;
    }
}

static void drop(ReferenceRun *r, Val v)
{
    Slot *s = &r->slot[v];
    if (!s->borrowed)
        ctx_release(r->g->ctx, s->value);
    s->value = NULL;
    for (int k = 0; k < MAX_AUX; k++) {
        ctx_release(r->g->ctx, s->aux[k]);
        s->aux[k] = NULL;
    }
}

/* ---- one node ---- */

static Tensor *bound(const ReferenceRun *r, const Ext *x)
{
    for (size_t i = 0; i < r->run->n_bind; i++) {
        const RefBinding *b = &r->run->bind[i];
        if (b->kind != x->kind || b->name != x->name)
            continue;
        if (!tensor_fits(b->tensor, x->dtype, &x->shape, r->run))
            vwn_bug(r->g->ctx, "the tensor bound to %s has another shape or type", x->name);
        return b->tensor;
    }
    vwn_bug(r->g->ctx, "no tensor is bound to %s", x->name);
}

static void compute(ReferenceRun *r, Val v)
{
    const Graph *g = r->g;
    const Node *n = node_at(g, v);
    Slot *s = &r->slot[v];
    if (n->op == OP_EXT) {
        s->value = bound(r, &g->ext.v[n->a.i]);
        s->borrowed = true;
        return;
    }
    ArenaMark mark = arena_mark(g->ctx->scratch);
    Tensor **in = NEW_ARRAY(g->ctx->scratch, Tensor *, n->n_in);
    for (size_t k = 0; k < n->n_in; k++)
        in[k] = r->slot[n->in[k]].value;
    if (n->op == OP_AUX)
        in[0] = r->slot[n->in[0]].aux[n->a.i];
    s->value = take_for(r, (DType)n->dtype, &n->shape);
    for (int k = 0; k < op_aux_count((Op)n->op); k++) {
        Shape aux;
        if (op_aux_shape(g, v, k, &aux))
            vwn_bug(g->ctx, "%%%u has no further result %d", (unsigned)v, k);
        s->aux[k] = take_for(r, DT_REAL, &aux);
    }
    OpEval e = {g->ctx, g, r->run, n, in, s->value, s->aux, 0};
    e.drawn = r->run->first * (uint64_t)dim_at(draws_of_sequence(g, n), r->run->B, r->run->T);
    op_rules[n->op].eval(&e);
    for (size_t k = 0; k < n->n_in; k++)
        if (r->slot[n->in[k]].last_use == v)
            drop(r, n->in[k]);
    arena_reset(g->ctx->scratch, mark);
}

/* Results are copied before anything is stored: a stored tensor may be one that was read. */
static void deliver(ReferenceRun *r, Arena *arena, Tensor **results)
{
    const Graph *g = r->g;
    for (size_t i = 0; i < g->out.n; i++) {
        const Tensor *t = r->slot[g->out.v[i].value].value;
        results[i] = tensor_new(arena, t->dtype, t->rank, t->d);
        tensor_copy(results[i], t);
    }
    for (size_t i = 0; i < g->out.n; i++)
        if (g->out.v[i].ext >= 0)
            tensor_copy(bound(r, &g->ext.v[g->out.v[i].ext]), results[i]);
}

static void evaluate(ReferenceRun *r, Arena *arena, Tensor **results)
{
    find_last_uses(r);
    for (Val v = 1; v < r->g->node.n; v++)
        if (r->slot[v].last_use)
            compute(r, v);
    deliver(r, arena, results);
}

void ref_evaluate(const Graph *g, Arena *arena, RefRun *run, Tensor **results)
{
    Ctx *ctx = g->ctx;
    if (run->B < 0 || run->T < 0)
        vwn_bug(ctx, "an evaluation with a negative B or T");
    ReferenceRun r = {g, run, ctx_alloc(ctx, g->node.n * sizeof(Slot))};
    CtxGuard guard;
    volatile bool failed = false;
    if (CTX_TRY(ctx, &guard)) {
        evaluate(&r, arena, results);
        ctx_leave(ctx, &guard);
    } else {
        failed = true;
    }
    for (Val v = 1; v < g->node.n; v++)
        drop(&r, v);
    ctx_release(ctx, r.slot);
    if (failed) { /* on to the caller, with the same message */
        char text[sizeof ctx->message];
        memcpy(text, ctx->message, sizeof text);
        ctx_raise(ctx, ctx->raised, "%s", text);
    }
}
