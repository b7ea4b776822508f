/* step.c - the graphs that training, evaluation and sampling run, made of a model's forward
 * graph.
 *
 * In:  a Model and its Train.   Out: graphs whose outputs are host-read scalars and stored
 * tensors.
 * The one idea: a step is the model's own nodes copied into a new graph, then more nodes behind
 * them; nothing is changed in place, so one Model serves any number of graphs.
 */
#include <math.h>
#include <string.h>

#include "programs.h"
#include "compiler/graph/op.h"
#include "compiler/pass/rewrite.h"
#include "optimizer.h"
#include "parts.h"
#include "compiler/pass/recompute.h"

/* ---- copying the forward graph ---- */

/* A dropout mask; ones where no dropout is wanted. */
static bool is_dropout_mask(const Node *n) { return n->op == OP_STOP && n->a.i == STOP_DROPOUT; }

/* How a copy differs from the model: without dropout; with other tensors for its parameters; with
 * attention over everything before; of an evaluation, not all of whose sequences count. */
typedef struct StepChange {
    bool dropout, one_document;
    int times;              /* as many nodes as the model has are to come, so many times; 0: as 1 */
    const Ext *const *leaf; /* by Val of the model: this external tensor instead, or NULL */
    const Parts *filled;    /* see parts_filled(); NULL: all sequences count */
} StepChange;

static Val copy_node(Graph *g, const Graph *from, Val v, const Val *map, const StepChange *change)
{
    const Node *n = node_at(from, v);
    bool dropout = change->dropout;
    const Ext *leaf = change->leaf ? change->leaf[v] : NULL;
    if (leaf)
        return ir_ext(g, leaf->kind, leaf->name, leaf->dtype, &leaf->shape);
    if (!dropout && is_dropout_mask(n))
        return ir_broadcast(g, ir_fill(g, 1.0), &n->shape);
    if (change->filled && n->op == OP_DIM)
        return parts_filled_dim(g, n->a.dim);
    Val counts = change->filled && n->n_in ? parts_filled(change->filled, g, v, map[n->in[0]]) : 0;
    Val copy = ir_copy(g, from, v, map);
    if (counts)
        node_at(g, copy)->in[0] = counts;
    if (!dropout && n->op == OP_SDPA)
        node_at(g, copy)->a.z = 0;
    if (change->one_document && n->op == OP_SDPA && sdpa_has_oldest(from, n))
        node_at(g, copy)->n_in = 3;
    return copy;
}

/* The nodes that the roots need; nothing is needed for a leaf. */
static bool *needed_by(const Model *m, Arena *arena, const StepChange *change, const Val *root, size_t n)
{
    const Graph *g = m->graph;
    bool *needed = NEW_ARRAY(arena, bool, g->node.n);
    for (size_t i = 0; i < n; i++)
        needed[root[i]] = true;
    for (Val v = (Val)g->node.n; v-- > 1;) {
        const Node *node = node_at(g, v);
        bool short_of = change->one_document && node->op == OP_SDPA && sdpa_has_oldest(g, node);
        bool goes_on = needed[v] && !(change->leaf && change->leaf[v]);
        for (size_t i = 0; goes_on && i < (short_of ? 3u : node->n_in); i++)
            needed[node->in[i]] = true;
    }
    return needed;
}

static Val step_node(Rewrite *r, Val v, void *user) { return copy_node(r->to, r->from, v, r->map, user); }

/* map[v] becomes the copy of node v of the model, 0 where no root needs it. Order, spans and
 * names are kept. */
static Graph *copy_forward(const Model *m, Arena *arena, const StepChange *change, const Val *root, size_t n, Val **map)
{
    const Graph *from = m->graph;
    Rewrite r = {from, graph_new(from->ctx, arena), NEW_ARRAY(arena, Val, from->node.n)};
    StepChange how = *change;
    graph_reserve(r.to, from->node.n * (size_t)(change->times ? change->times : 1));
    rewrite_nodes(&r, needed_by(m, arena, change, root, n), step_node, &how);
    r.to->span = NO_SPAN;
    r.to->name = NULL;
    *map = r.map;
    return r.to;
}

/* The part of the model that its losses and metrics need. */
static Graph *copy_losses(const Model *m, Arena *arena, const StepChange *change, Val **map)
{
    Val *root = NEW_ARRAY(arena, Val, m->loss.n + 1);
    for (size_t i = 0; i < m->loss.n; i++)
        root[i] = m->loss.v[i].value;
    return copy_forward(m, arena, change, root, m->loss.n, map);
}

/* ---- losses ---- */

/* The mean over the instances of loss `first` that follow it under the same name. */
static Val mean_of_instances(Graph *g, const Model *m, const Val *map, size_t first)
{
    const ModelLoss *l = &m->loss.v[first];
    Val sum = 0;
    size_t count = 0;
    for (size_t i = first; i < m->loss.n; i++) {
        const ModelLoss *k = &m->loss.v[i];
        if (k->name != l->name || k->trained != l->trained)
            continue;
        Val v = map[k->value];
        sum = sum ? ir_binary(g, OP_ADD, sum, v) : v;
        count++;
    }
    return count > 1 ? ir_scale(g, sum, 1.0 / (double)count) : sum;
}

static bool is_first_instance(const Model *m, size_t i)
{
    for (size_t k = 0; k < i; k++)
        if (m->loss.v[k].name == m->loss.v[i].name && m->loss.v[k].trained == m->loss.v[i].trained)
            return false;
    return true;
}

/* each[i]: loss i, where it is the first of its name. Returns the sum of the trained ones, 0 without any. */
static Val sum_losses(Graph *g, const Model *m, const Val *map, Val *each)
{
    Val total = 0;
    for (size_t i = 0; i < m->loss.n; i++) {
        if (!is_first_instance(m, i))
            continue;
        g->span = node_at(m->graph, m->loss.v[i].value)->span;
        each[i] = mean_of_instances(g, m, map, i);
        if (m->loss.v[i].trained)
            total = total ? ir_binary(g, OP_ADD, total, each[i]) : each[i];
    }
    return total;
}

Val step_add_losses(Graph *g, const Model *m, const Val *map)
{
    Val *each = NEW_ARRAY(g->arena, Val, m->loss.n + 1), total = sum_losses(g, m, map, each);
    if (total)
        ir_output(g, name_str(g->ctx, "loss"), total);
    for (size_t i = 0; i < m->loss.n; i++) {
        const ModelLoss *l = &m->loss.v[i];
        if (each[i])
            ir_output(g, name_printf(g->ctx, "%s.%s", l->trained ? "loss" : "metric", l->name), each[i]);
    }
    return total;
}

Val step_loss(const Model *m)
{
    Graph *g = m->graph;
    Val *same = NEW_ARRAY(g->arena, Val, g->node.n + 1), *each = NEW_ARRAY(g->arena, Val, m->loss.n + 1);
    for (Val v = 1; v < g->node.n; v++)
        same[v] = v;
    return sum_losses(g, m, same, each);
}

/* ---- the graphs of model.h ---- */

/* The gradients that training asks for, in the order of the parameters. */
static Ext *wanted_gradients(const Model *m, const Train *t, Arena *arena, size_t *n)
{
    Ext *want = NEW_ARRAY(arena, Ext, m->param.n + 1);
    *n = 0;
    for (size_t i = 0; i < m->param.n; i++)
        if (param_is_trained(m, t, i))
            want[(*n)++] = (Ext){EXT_GRAD, m->param.v[i].path, DT_REAL, m->param.v[i].shape};
    return want;
}

void step_store_gradients(Graph *g, Val loss, const Ext *want, size_t n, bool fresh)
{
    Map leaf; /* name of a parameter -> its node */
    map_init(&leaf, g->arena);
    for (Val v = 1; v < g->node.n; v++) {
        const Ext *e = node_at(g, v)->op == OP_EXT ? &g->ext.v[node_at(g, v)->a.i] : NULL;
        if (e && e->kind == EXT_PARAM)
            *map_at(&leaf, (uintptr_t)e->name) = (void *)(uintptr_t)v;
    }
    size_t n_wrt = 0;
    Val *wrt = NEW_ARRAY(g->arena, Val, n + 1), *grad = NEW_ARRAY(g->arena, Val, n + 1);
    for (size_t i = 0; i < n; i++)
        if (map_get(&leaf, (uintptr_t)want[i].name))
            wrt[n_wrt++] = (Val)(uintptr_t)map_get(&leaf, (uintptr_t)want[i].name);
    graph_gradient(g, loss, wrt, n_wrt, grad);
    for (size_t i = 0, k = 0; i < n; i++) {
        const Ext *e = &want[i];
        Val of = (Val)(uintptr_t)map_get(&leaf, (uintptr_t)e->name), d = of ? grad[k++] : 0;
        g->name = e->name;
        g->span = of ? node_at(g, of)->span : NO_SPAN;
        if (!d && !fresh)
            continue; /* the first micro-batch has written the zeros */
        if (!d)
            d = ir_broadcast(g, ir_fill(g, 0.0), &e->shape);
        if (!fresh)
            d = ir_binary(g, OP_ADD, ir_ext(g, EXT_GRAD, e->name, DT_REAL, &e->shape), d);
        ir_store(g, d, EXT_GRAD, e->name);
    }
    g->name = NULL;
    g->span = NO_SPAN;
}

/* The loss of a step, for its update. */
static void store_loss(Graph *g, Val loss, bool fresh)
{
    Name name = name_str(g->ctx, "loss");
    if (!fresh)
        loss = ir_binary(g, OP_ADD, ir_ext(g, EXT_STEP, name, DT_REAL, shape_of(g, loss)), loss);
    ir_store(g, loss, EXT_STEP, name);
}

/* In fp16 the loss times a scale, so that small gradients are none that the type has not. */
static Val scaled(Graph *g, const Train *t, Val objective)
{
    return half_info(t->compute)->scaled
               ? ir_binary(g, OP_MUL, objective, step_scalar(g, t, host_var(g->arena, HV_LOSS_SCALE)))
               : objective;
}

/* What one micro-batch adds to the losses; *objective is what is differentiated. */
static Graph *forward(const Model *m, const Train *t, Arena *arena, Val *objective, Val *loss_of_all)
{
    Val *map;
    Graph *g = copy_losses(m, arena, &(StepChange){.dropout = true, .times = 4}, &map);
    int64_t parts = t->micro_seqs > 0 ? t->batch_seqs / t->micro_seqs : 1;
    if (parts > 1)
        parts_apply(parts_of(m, arena), g, map, ir_fill(g, 1.0 / (double)parts), false);
    Val loss = *objective = *loss_of_all = step_add_losses(g, m, map);
    if (!loss)
        ctx_raise(g->ctx, ST_INPUT, "model `%s` has no loss to train on", m->name);
    *objective = scaled(g, t, *objective);
    return g;
}

Graph *step_forward(const Model *m, const Train *t, Arena *arena)
{
    Val objective, loss;
    size_t n;
    Graph *g = forward(m, t, arena, &objective, &loss);
    Name name = name_str(g->ctx, STEP_OBJECTIVE);
    ir_output(g, name, objective);
    const Ext *want = wanted_gradients(m, t, arena, &n);
    for (size_t i = 0; i < n; i++)
        ext_add(g, &want[i]);
    return g;
}

Graph *step_gradient(const Model *m, const Train *t, bool fresh, Arena *arena)
{
    Val objective, loss;
    size_t n;
    Graph *g = forward(m, t, arena, &objective, &loss);
    const Ext *want = wanted_gradients(m, t, arena, &n);
    Val last = (Val)g->node.n - 1;
    step_store_gradients(g, objective, want, n, fresh);
    if (t->decides)
        store_loss(g, loss, fresh);
    return graph_recompute(g, last, t->recompute, t->n_recompute, arena);
}

/* ---- sums of lanes ---- */

/* The n tensors that are summed over lanes. */
static Ext *lane_sums(Ctx *ctx, const Model *m, const Train *t, Arena *arena, size_t *n)
{
    Ext *sum = wanted_gradients(m, t, arena, n); /* has room for one more */
    if (t->decides)
        sum[(*n)++] = (Ext){EXT_STEP, name_str(ctx, "loss"), DT_REAL, {0}};
    return sum;
}

static Graph *lane_graph(const Model *m, const Train *t, int level, bool join, Arena *arena)
{
    Graph *g = graph_new(m->graph->ctx, arena);
    size_t n;
    const Ext *sum = lane_sums(g->ctx, m, t, arena, &n);
    g->exact = true;
    for (size_t i = 0; i < n; i++) {
        Name kept = name_printf(g->ctx, "%s:lanes%d", sum[i].name, level);
        g->name = sum[i].name;
        Val now = ir_ext(g, sum[i].kind, sum[i].name, DT_REAL, &sum[i].shape);
        if (join)
            ir_store(g, ir_binary(g, OP_ADD, ir_ext(g, EXT_STEP, kept, DT_REAL, &sum[i].shape), now), sum[i].kind,
                     sum[i].name);
        else
            ir_store(g, now, EXT_STEP, kept);
    }
    g->name = NULL;
    return g;
}

Graph *step_keep(const Model *m, const Train *t, int level, Arena *arena)
{
    return lane_graph(m, t, level, false, arena);
}

Graph *step_join(const Model *m, const Train *t, int level, Arena *arena)
{
    return lane_graph(m, t, level, true, arena);
}

Graph *step_update(const Model *m, const Train *t, Arena *arena)
{
    Graph *g = graph_new(m->graph->ctx, arena);
    g->exact = true;
    Val norm = optimizer_update(g, m, t);
    ir_output(g, name_str(g->ctx, "grad_norm"), norm);
    return g;
}

Graph *step_squares(const Model *m, const Train *t, Arena *arena)
{
    Graph *g = graph_new(m->graph->ctx, arena);
    g->exact = true;
    return optimizer_squares(g, m, t) ? g : NULL;
}

/* Losses; change->filled: of a part. */
static Graph *evaluate_with(const Model *m, const StepChange *change, Arena *arena)
{
    Val *map;
    Graph *g = copy_losses(m, arena, change, &map);
    if (change->filled)
        parts_apply(change->filled, g, map, ir_host(g, host_var(arena, HV_SHARE)), true);
    if (!step_add_losses(g, m, map))
        ctx_raise(g->ctx, ST_INPUT, "model `%s` has no loss to evaluate", m->name);
    return g;
}

Graph *step_evaluate(const Model *m, Arena *arena) { return evaluate_with(m, &(StepChange){.times = 2}, arena); }

Graph *step_trained(const Model *m, Arena *arena)
{
    return evaluate_with(m, &(StepChange){.dropout = true, .times = 4}, arena);
}

Graph *step_held_out(const Model *m, const Train *t, Arena *arena)
{
    StepChange part = {.filled = parts_of(m, arena), .times = 2};
    if (!t || !t->average || t->owner)
        return evaluate_with(m, &part, arena);
    const Ext **leaf = NEW_ARRAY(arena, const Ext *, m->graph->node.n + 1);
    Ext *average = NEW_ARRAY(arena, Ext, m->param.n + 1);
    for (size_t i = 0; i < m->param.n; i++)
        if (param_learns(m, t, i)) {
            average[i] = (Ext){EXT_STATE, average_name(m->graph->ctx, &m->param.v[i]), DT_REAL, m->param.v[i].shape};
            leaf[m->param.v[i].value] = &average[i];
        }
    part.leaf = leaf;
    return evaluate_with(m, &part, arena);
}

Graph *step_count(const Model *m, bool held_out, Arena *arena)
{
    const Parts *p = parts_of(m, arena);
    size_t n = parts_totals(p);
    Val *root = NEW_ARRAY(arena, Val, n + 1), *map;
    Name name;
    for (size_t i = 0; i < n; i++)
        root[i] = parts_total(p, i, &name);
    if (!n)
        return NULL;
    Graph *g =
        copy_forward(m, arena, &(StepChange){.dropout = !held_out, .filled = held_out ? p : NULL}, root, n, &map);
    for (size_t i = 0; i < n; i++) {
        Val of = parts_total(p, i, &name);
        g->span = node_at(m->graph, of)->span;
        g->name = node_at(m->graph, of)->name;
        Val before = ir_ext(g, EXT_TOTAL, name, DT_REAL, shape_of(g, map[of]));
        ir_store(g, ir_binary(g, OP_ADD, before, map[of]), EXT_TOTAL, name);
    }
    return g;
}

bool model_reads(const Model *m, const char *input)
{
    for (size_t i = 0; i < m->graph->ext.n; i++) {
        const Ext *e = &m->graph->ext.v[i];
        if (e->kind == EXT_INPUT && !strcmp(e->name, input))
            return true;
    }
    return false;
}

Graph *step_outputs(const Model *m, Arena *arena)
{
    Val *root = NEW_ARRAY(arena, Val, m->output.n + 1), *map;
    for (size_t i = 0; i < m->output.n; i++)
        root[i] = m->output.v[i].value;
    Graph *g = copy_forward(m, arena, &(StepChange){0}, root, m->output.n, &map);
    for (size_t i = 0; i < m->output.n; i++) {
        size_t before = 0;
        for (size_t k = 0; k < i; k++)
            before += m->output.v[k].name == m->output.v[i].name;
        Name name = m->output.v[i].name;
        ir_output(g, before ? name_printf(g->ctx, "%s#%zu", name, before + 1) : name, map[root[i]]);
    }
    return g;
}

Graph *step_values(const Model *m, const Val *value, size_t n, Val **map, Arena *arena)
{
    return copy_forward(m, arena, &(StepChange){.times = 2}, value, n, map);
}

Graph *step_training_values(const Model *m, const Val *value, size_t n, Val **map, Arena *arena)
{
    return copy_forward(m, arena, &(StepChange){.dropout = true, .times = 4}, value, n, map);
}

/* Of the sum over values of each number times the factor that is given for it. */
Graph *step_outer_gradient(const Model *m, const Train *t, const Val *value, const Name *factor, size_t n, bool fresh,
                           Arena *arena)
{
    Val *map, objective = 0;
    Graph *g = step_training_values(m, value, n, &map, arena);
    for (size_t i = 0; i < n; i++) {
        const Shape shape = *shape_of(g, map[value[i]]);
        Val by = ir_ext(g, EXT_INPUT, factor[i], DT_REAL, &shape);
        Val sum = ir_sum(g, ir_binary(g, OP_MUL, map[value[i]], by), (1u << shape.rank) - 1, false);
        objective = objective ? ir_binary(g, OP_ADD, objective, sum) : sum;
    }
    objective = scaled(g, t, objective);
    const Ext *want = wanted_gradients(m, t, arena, &n);
    Val last = (Val)g->node.n - 1;
    step_store_gradients(g, objective, want, n, fresh);
    return graph_recompute(g, last, t->recompute, t->n_recompute, arena);
}

Graph *step_part(const Model *m, const Val *value, size_t n, const Ext *const *leaf, Val **map, Arena *arena)
{
    return copy_forward(m, arena, &(StepChange){.leaf = leaf, .times = 4}, value, n, map);
}

bool *step_needs(const Model *m, const Val *value, size_t n, const Ext *const *leaf, Arena *arena)
{
    return needed_by(m, arena, &(StepChange){.leaf = leaf}, value, n);
}

Val step_again(Graph *g, const Model *m, const Val *map, Val from, Val to, Val instead)
{
    const Graph *of = m->graph;
    Val *again = NEW_ARRAY(g->arena, Val, to + 1);
    bool *depends = NEW_ARRAY(g->arena, bool, to + 1), *needed = needed_by(m, g->arena, &(StepChange){0}, &to, 1);
    depends[from] = true;
    again[from] = instead;
    for (Val v = 1; v <= to; v++) {
        const Node *n = node_at(of, v);
        for (size_t i = 0; i < n->n_in; i++)
            depends[v] |= depends[n->in[i]];
        if (!depends[v])
            again[v] = map[v];
        else if (v != from && needed[v])
            again[v] = copy_node(g, of, v, again, &(StepChange){0});
    }
    return depends[to] ? again[to] : 0;
}

const ModelOutput *model_output(const Model *m)
{
    for (size_t i = 0; i < m->output.n; i++)
        if (!strcmp(m->output.v[i].name, "logits"))
            return &m->output.v[i];
    return m->output.n ? &m->output.v[0] : NULL;
}

Graph *step_predict(const Model *m, Arena *arena)
{
    const ModelOutput *out = model_output(m);
    if (!out)
        ctx_raise(m->graph->ctx, ST_INPUT, "model `%s` has no output to predict", m->name);
    Val *map;
    Graph *g = copy_forward(m, arena, &(StepChange){.one_document = true}, &out->value, 1, &map);
    ir_output(g, out->name, map[out->value]);
    return g;
}

/* ---- the programs of a run ---- */

const ProgramRow *program_row(ProgramKind kind)
{
    static const ProgramRow row[PROGRAM_KINDS] = {
#define PROGRAM(kind, name, about, graph, trains, held_out, levels, float32)                                           \
    [PROGRAM_##kind] = {name, about, trains, held_out, levels, float32},
#include "programs.def"
#undef PROGRAM
    };
    return &row[kind];
}

ProgramKind program_named(const char *name)
{
    ProgramKind kind = 0;
    while (kind < PROGRAM_KINDS && strcmp(name, program_row(kind)->name) != 0)
        kind++;
    return kind;
}

const char *program_names(Arena *arena)
{
    Buf b = buf_new(arena);
    for (ProgramKind kind = 0; kind < PROGRAM_KINDS; kind++)
        buf_printf(&b, "%s%s", kind ? ", " : "", program_row(kind)->name);
    return b.s;
}

Graph *program_make(ProgramKind kind, const Model *m, const Train *t, int level, Arena *arena)
{
    switch (kind) {
#define PROGRAM(kind, name, about, graph, trains, held_out, levels, float32)                                           \
    case PROGRAM_##kind:                                                                                               \
        return graph;
#include "programs.def"
#undef PROGRAM
    case PROGRAM_KINDS: break;
    }
    return NULL;
}

int64_t program_runs(ProgramKind kind, const Train *t, int64_t micro)
{
    const int64_t parts = (t->batch_seqs + micro - 1) / micro, lanes = lanes_of(t->lanes).all;
    switch (kind) {
    case PROGRAM_TRAIN: return lanes;
    case PROGRAM_ACCUMULATE: return parts > lanes ? parts - lanes : 0;
    case PROGRAM_KEEP:
    case PROGRAM_JOIN: return lanes - 1;
    case PROGRAM_SQUARES: return t->owner != NULL;
    case PROGRAM_UPDATE: return 1;
    case PROGRAM_COUNT: return parts > 1 ? parts : 0;
    default: return 0;
    }
}

bool program_is_run(ProgramKind kind, const Train *t, int64_t micro)
{
    return program_runs(kind, t, micro) > 0 || (program_row(kind)->held_out && t->eval_every > 0);
}
