/* same.c - whether two checked files are one and the same.
 *
 * In:  two Units.   Out: true when parameters, graphs, training, checks and growth agree, or sweeps
 * in every number.
 * The one idea: names of nodes and places in text are for people and are left out; all else
 * counts.
 */
#include "resolve.h"

static bool same_text(const char *a, const char *b) { return a == b || (a && b && strcmp(a, b) == 0); }

static bool same_number(double a, double b) { return a == b || (a != a && b != b); }

static bool same_init(const Init *a, const Init *b)
{
    return a->kind == b->kind && same_number(a->a, b->a) && same_number(a->b, b->b) && a->n == b->n &&
           (!a->n || memcmp(a->list, b->list, a->n * sizeof *a->list) == 0);
}

static bool same_param(const Param *a, const Param *b)
{
    return a->path == b->path && shape_eq(&a->shape, &b->shape) && a->dead == b->dead &&
           same_init(&a->init, &b->init) && a->group == b->group && a->buffer == b->buffer && a->frozen == b->frozen &&
           same_number(a->lr_scale, b->lr_scale) && same_number(a->decay, b->decay) && a->value == b->value;
}

static bool same_node(const Node *a, const Node *b)
{
    if (!node_same_function(a, b) || !shape_eq(&a->shape, &b->shape))
        return false;
    for (size_t i = 0; i < a->n_in; i++)
        if (a->in[i] != b->in[i])
            return false;
    return true;
}

static bool same_host(Arena *arena, const HostExpr *a, const HostExpr *b)
{
    if (!a || !b)
        return a == b;
    Buf x = buf_new(arena), y = buf_new(arena);
    host_print(&x, a);
    host_print(&y, b);
    return same_text(x.s, y.s);
}

static bool same_graph(const Graph *a, const Graph *b)
{
    if (a->node.n != b->node.n || a->ext.n != b->ext.n || a->host.n != b->host.n || a->out.n != b->out.n)
        return false;
    for (size_t i = 1; i < a->node.n; i++)
        if (!same_node(&a->node.v[i], &b->node.v[i]))
            return false;
    for (size_t i = 0; i < a->ext.n; i++)
        if (a->ext.v[i].kind != b->ext.v[i].kind || a->ext.v[i].name != b->ext.v[i].name)
            return false;
    for (size_t i = 0; i < a->host.n; i++)
        if (!same_host(a->ctx->scratch, a->host.v[i], b->host.v[i]))
            return false;
    return true;
}

static bool same_model(const Model *a, const Model *b)
{
    if (!a || !b)
        return a == b;
    if (a->name != b->name || a->context != b->context || a->param.n != b->param.n || a->loss.n != b->loss.n ||
        a->output.n != b->output.n || !same_graph(a->graph, b->graph))
        return false;
    for (size_t i = 0; i < a->param.n; i++)
        if (!same_param(&a->param.v[i], &b->param.v[i]))
            return false;
    for (size_t i = 0; i < a->loss.n; i++)
        if (a->loss.v[i].name != b->loss.v[i].name || a->loss.v[i].value != b->loss.v[i].value ||
            a->loss.v[i].trained != b->loss.v[i].trained)
            return false;
    for (size_t i = 0; i < a->output.n; i++)
        if (a->output.v[i].name != b->output.v[i].name || a->output.v[i].value != b->output.v[i].value)
            return false;
    return true;
}

static bool same_data(const DataSpec *a, const DataSpec *b) /* not the folder: that of the file */
{
    if (a->n_array != b->n_array)
        return false;
    for (size_t i = 0; i < a->n_array; i++)
        if (a->array[i].input != b->array[i].input || !same_text(a->array[i].path, b->array[i].path))
            return false;
    return a->kind == b->kind && same_text(a->path, b->path) && a->val == b->val &&
           same_text(a->val_path, b->val_path) && a->bits == b->bits && a->header == b->header;
}

static bool same_optimizer(Arena *arena, const Optimizer *a, const Optimizer *b, size_t params)
{
    if (a->kind != b->kind || a->constant.n != b->constant.n || !same_host(arena, a->lr, b->lr))
        return false;
    for (size_t i = 0; i < a->constant.n; i++)
        if (a->constant.v[i].name != b->constant.v[i].name || a->constant.v[i].value != b->constant.v[i].value)
            return false;
    for (size_t i = 0; i < params; i++)
        if (!same_number(a->lr_scale[i], b->lr_scale[i]) || !same_number(a->decay[i], b->decay[i]) ||
            a->frozen[i] != b->frozen[i])
            return false;
    return true;
}

static bool same_train(Arena *arena, const Train *a, const Train *b, size_t params)
{
    if (!a || !b)
        return a == b;
    return same_data(&a->data, &b->data) && same_data(&a->eval_data, &b->eval_data) &&
           same_tokenizer(&a->tokenizer, &b->tokenizer) && a->batch_seqs == b->batch_seqs &&
           a->micro_seqs == b->micro_seqs && a->lanes == b->lanes && a->length_steps == b->length_steps &&
           a->length_epochs == b->length_epochs && a->context == b->context && a->seed == b->seed &&
           a->compute == b->compute && a->clip == b->clip && a->eval_every == b->eval_every &&
           a->eval_batches == b->eval_batches && a->checkpoint_every == b->checkpoint_every &&
           a->checkpoint_keep == b->checkpoint_keep && a->log_every == b->log_every &&
           same_optimizer(arena, &a->optimizer, &b->optimizer, params);
}

static bool same_growth(const Unit *a, const Unit *b)
{
    if (a->grow.n != b->grow.n)
        return false;
    for (size_t i = 0; i < a->grow.n; i++) {
        const GrowStep *x = &a->grow.v[i], *y = &b->grow.v[i];
        if (x->name != y->name || x->n_lets != y->n_lets || !same_host(a->ctx->scratch, x->when, y->when) ||
            !same_model(x->before, y->before) || !same_model(x->after, y->after))
            return false;
    }
    return true;
}

bool unit_same_sweeps(const Unit *a, const Unit *b)
{
    if (a->sweep.n != b->sweep.n)
        return false;
    for (size_t i = 0; i < a->sweep.n; i++) {
        const SweepPlan *x = &a->sweep.v[i], *y = &b->sweep.v[i];
        if (x->name != y->name || x->n != y->n || x->n_axis != y->n_axis)
            return false;
        for (size_t k = 0; k < x->n; k++)
            if (!same_text(x->point[k].name, y->point[k].name))
                return false;
    }
    return true;
}

static bool same_checks(const Unit *a, const Unit *b)
{
    if (a->check.n != b->check.n)
        return false;
    for (size_t i = 0; i < a->check.n; i++)
        if (a->check.v[i].state != b->check.v[i].state || !same_text(a->check.v[i].where, b->check.v[i].where))
            return false;
    return true;
}

bool unit_same(const Unit *a, const Unit *b)
{
    return same_model(a->model, b->model) &&
           same_train(a->ctx->scratch, a->train, b->train, a->model ? a->model->param.n : 0) && same_checks(a, b) &&
           same_growth(a, b);
}
