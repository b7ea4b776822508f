/* function.c - see function.h. */
#include "function.h"

#include "compiler/graph/op.h"

/* ---- what a function is made of ---- */

static void give(ModelFunction *f, Arena *arena, const char *name, Val value)
{
    vec_push(arena, &f->given, ((FunctionPort){name_str(f->m->graph->ctx, name), value}));
}

static void want(ModelFunction *f, Arena *arena, const char *name, Val value)
{
    vec_push(arena, &f->wanted, ((FunctionPort){name_str(f->m->graph->ctx, name), value}));
}

static void begin(ModelFunction *f, const Model *m, const char *name, Name owner)
{
    *f = (ModelFunction){.m = m, .name = name_str(m->graph->ctx, name), .owner = owner};
}

static Val state_before(const Model *m, size_t i) { return i ? m->sublayer.v[i - 1].after : m->opened; }

void function_of_read(ModelFunction *f, const Model *m, size_t i, Arena *arena)
{
    begin(f, m, "read", m->sublayer.v[i].path);
    give(f, arena, "state", state_before(m, i));
    want(f, arena, "x", m->sublayer.v[i].read);
}

void function_of_write(ModelFunction *f, const Model *m, size_t i, Arena *arena)
{
    begin(f, m, "write", m->sublayer.v[i].path);
    give(f, arena, "state", state_before(m, i));
    give(f, arena, "y", m->sublayer.v[i].wrote);
    want(f, arena, "state", m->sublayer.v[i].after);
}

/* ---- gates ---- */

/* What depends on a value. */
static bool *depending(const Graph *g, Val on, Arena *arena)
{
    bool *depends = NEW_ARRAY(arena, bool, g->node.n + 1);
    depends[on] = true;
    for (Val v = on + 1; v < g->node.n; v++)
        for (size_t k = 0; k < node_at(g, v)->n_in && !depends[v]; k++)
            depends[v] = depends[node_at(g, v)->in[k]];
    return depends;
}

/* A few numbers for each position, beside a state of many. */
static bool is_few(const Graph *g, Val v, Val state)
{
    const Shape *s = shape_of(g, v);
    enum { MANY = 4 };
    if (node_at(g, v)->dtype != DT_REAL || s->rank < 2 || !dim_eq(s->d[0], DIM_B) || !dim_eq(s->d[1], DIM_T))
        return false;
    for (int i = 2; i < s->rank; i++)
        if (!dim_static(s->d[i]))
            return false;
    return coordinates(s) * MANY <= coordinates(shape_of(g, state));
}

typedef struct Gates {
    const Graph *g;
    const bool *on_state, *on_result;
    bool *seen;
    Val state, wrote;
    Val found[GATES_MOST + 1];
    size_t n;
} Gates;

/* The first such values on the ways from v back to the state. */
static void find_gates(Gates *x, Val v)
{
    if (x->seen[v] || v == x->state || v == x->wrote || !x->on_state[v])
        return;
    x->seen[v] = true;
    if (!x->on_result[v] && is_few(x->g, v, x->state)) {
        if (x->n <= GATES_MOST)
            x->found[x->n++] = v;
        return;
    }
    for (size_t k = 0; k < node_at(x->g, v)->n_in; k++)
        find_gates(x, node_at(x->g, v)->in[k]);
}

size_t function_gates(const Model *m, size_t i, Val gate[GATES_MOST], Arena *arena)
{
    const Graph *g = m->graph;
    const ModelSublayer *s = &m->sublayer.v[i];
    Gates x = {.g = g, .state = state_before(m, i), .wrote = s->wrote, .seen = NEW_ARRAY(arena, bool, g->node.n + 1)};
    x.on_state = depending(g, x.state, arena);
    x.on_result = depending(g, x.wrote, arena);
    find_gates(&x, s->after);
    if (x.n > GATES_MOST)
        return 0;
    memcpy(gate, x.found, x.n * sizeof *gate);
    return x.n;
}

static Name gate_name(Ctx *ctx, size_t i) { return name_printf(ctx, FUNCTION_GATE "%zu", i); }

static void want_gates(ModelFunction *f, const Val *gate, size_t n, Arena *arena)
{
    for (size_t k = 0; k < n; k++)
        want(f, arena, gate_name(f->m->graph->ctx, k), gate[k]);
}

void function_of_begin(ModelFunction *f, const Model *m, size_t i, const Val *gate, size_t n, Arena *arena)
{
    function_of_read(f, m, i, arena);
    f->name = name_str(m->graph->ctx, "begin");
    want_gates(f, gate, n, arena);
}

void function_of_end(ModelFunction *f, const Model *m, size_t i, const Val *gate, size_t n, Arena *arena)
{
    function_of_write(f, m, i, arena);
    f->name = name_str(m->graph->ctx, "end");
    for (size_t k = 0; k < n; k++)
        give(f, arena, gate_name(m->graph->ctx, k), gate[k]);
}

void function_of_next(ModelFunction *f, const Model *m, size_t i, const Val *gate, size_t n, const Val *then,
                      size_t n_then, Arena *arena)
{
    function_of_end(f, m, i, gate, n, arena);
    f->name = name_str(m->graph->ctx, "next");
    want(f, arena, "x", m->sublayer.v[i + 1].read);
    want_gates(f, then, n_then, arena);
}

void function_of_open(ModelFunction *f, const Model *m, Arena *arena)
{
    begin(f, m, "open", name_str(m->graph->ctx, "connection.open"));
    give(f, arena, "x", m->embedded);
    want(f, arena, "state", m->opened);
}

bool function_of_close(ModelFunction *f, const Model *m, Arena *arena)
{
    begin(f, m, "close", name_str(m->graph->ctx, "connection.close"));
    give(f, arena, "state", state_before(m, m->sublayer.n));
    want(f, arena, "x", m->closed);
    return m->closed != 0;
}

void function_of_module(ModelFunction *f, const Model *m, size_t module, Arena *arena)
{
    const ModelModule *x = &m->module.v[module];
    begin(f, m, "block", x->path);
    for (size_t i = 0; i < m->sublayer.n; i++)
        if (m->sublayer.v[i].path == x->path) {
            give(f, arena, "x", m->sublayer.v[i].read);
            want(f, arena, "y", m->sublayer.v[i].wrote);
            return;
        }
    for (size_t i = 0; i < x->n; i++)
        give(f, arena, x->name[i], x->given[i]);
    want(f, arena, "y", x->result);
}

bool function_of_output(ModelFunction *f, const Model *m, Arena *arena)
{
    const ModelOutput *out = model_output(m);
    begin(f, m, "output", name_str(m->graph->ctx, ""));
    if (out)
        want(f, arena, out->name, out->value);
    return out != NULL;
}

bool function_of_loss(ModelFunction *f, const Model *m, Arena *arena)
{
    Val loss = step_loss(m);
    begin(f, m, "loss", name_str(m->graph->ctx, ""));
    if (loss)
        want(f, arena, "loss", loss);
    return loss != 0;
}

/* ---- leaves ---- */

/* By Val: the tensor that stands for a value that is given. */
static const Ext *const *leaves(const ModelFunction *f, Arena *arena)
{
    const Graph *g = f->m->graph;
    const Ext **leaf = NEW_ARRAY(arena, const Ext *, g->node.n + 1);
    Ext *ext = NEW_ARRAY(arena, Ext, f->given.n + 1);
    for (size_t i = 0; i < f->given.n; i++) {
        const Node *n = node_at(g, f->given.v[i].value);
        ext[i] = (Ext){EXT_INPUT, f->given.v[i].name, (DType)n->dtype, n->shape};
        leaf[f->given.v[i].value] = &ext[i];
    }
    return leaf;
}

static Val *wanted_values(const ModelFunction *f, Arena *arena)
{
    Val *value = NEW_ARRAY(arena, Val, f->wanted.n + 1);
    for (size_t i = 0; i < f->wanted.n; i++)
        value[i] = f->wanted.v[i].value;
    return value;
}

static bool is_given(const ModelFunction *f, Name name)
{
    for (size_t i = 0; i < f->given.n; i++)
        if (f->given.v[i].name == name)
            return true;
    return false;
}

void function_give_inputs(ModelFunction *f, Arena *arena)
{
    const Graph *g = f->m->graph;
    const Ext *const *leaf = leaves(f, arena);
    const bool *needed = step_needs(f->m, wanted_values(f, arena), f->wanted.n, leaf, arena);
    for (size_t i = 0; i < g->ext.n; i++) /* in the order of the model */
        for (Val v = 1; v < g->node.n; v++) {
            const Node *n = node_at(g, v);
            if (needed[v] && !leaf[v] && n->op == OP_EXT && (size_t)n->a.i == i && g->ext.v[i].kind == EXT_INPUT &&
                !is_given(f, g->ext.v[i].name))
                give(f, arena, g->ext.v[i].name, v);
        }
}

const char *function_close(ModelFunction *f, Arena *arena)
{
    const Graph *g = f->m->graph;
    for (size_t i = 0; i < f->given.n; i++)
        for (size_t k = 0; k < i; k++)
            if (f->given.v[i].value == f->given.v[k].value || f->given.v[i].name == f->given.v[k].name)
                return arena_printf(arena, "`%s` and `%s` of it are one tensor", f->given.v[k].name,
                                    f->given.v[i].name);
    const Ext *const *leaf = leaves(f, arena);
    const bool *needed = step_needs(f->m, wanted_values(f, arena), f->wanted.n, leaf, arena);
    bool any = false;
    for (Val v = 1; v < g->node.n; v++) {
        const Node *n = node_at(g, v);
        if (!needed[v])
            continue;
        any = any || leaf[v];
        if (leaf[v])
            continue;
        if (n->op == OP_EXT && g->ext.v[n->a.i].kind == EXT_INPUT)
            return arena_printf(arena, "it reads `%s` of the model besides", g->ext.v[n->a.i].name);
        if (n->op == OP_RAND || n->op == OP_RANDN || (n->op == OP_SDPA && n->a.z > 0))
            return "it draws random numbers (dropout is taken out with `--set PATH=0`)";
        if (n->op == OP_HOST)
            return "it depends on the step of training";
    }
    if (!any)
        return "it depends on nothing that it is given";
    for (size_t i = 0; i < f->m->param.n; i++)
        if (needed[f->m->param.v[i].value])
            vec_push(arena, &f->param, i);
    return NULL;
}

/* ---- graphs ---- */

static Graph *part(const ModelFunction *f, Val **map, Arena *arena)
{
    return step_part(f->m, wanted_values(f, arena), f->wanted.n, leaves(f, arena), map, arena);
}

Graph *function_forward(const ModelFunction *f, Arena *arena)
{
    Val *map;
    Graph *g = part(f, &map, arena);
    for (size_t i = 0; i < f->wanted.n; i++)
        ir_store(g, map[f->wanted.v[i].value], EXT_STEP, f->wanted.v[i].name);
    return g;
}

Name function_gradient_name(Ctx *ctx, Name wanted) { return name_printf(ctx, "%s.grad", wanted); }

/* The scalar whose gradient is that of the function: what is wanted, each number times its own factor. */
static Val weighted(Graph *g, const ModelFunction *f, const Val *map)
{
    Val total = ir_fill(g, 0);
    for (size_t i = 0; i < f->wanted.n; i++) {
        Val v = map[f->wanted.v[i].value];
        Shape shape = *shape_of(g, v);
        if (node_at(g, v)->dtype != DT_REAL)
            continue;
        Val factor = ir_ext(g, EXT_INPUT, function_gradient_name(g->ctx, f->wanted.v[i].name), DT_REAL, &shape);
        total = ir_binary(g, OP_ADD, total, ir_sum(g, ir_binary(g, OP_MUL, v, factor), (1u << shape.rank) - 1, false));
    }
    return total;
}

Graph *function_gradient(const ModelFunction *f, Arena *arena)
{
    const Graph *of = f->m->graph;
    Val *map;
    Graph *g = part(f, &map, arena);
    size_t n = 0, most = f->given.n + f->param.n;
    Val *wrt = NEW_ARRAY(arena, Val, most + 1), *grad = NEW_ARRAY(arena, Val, most + 1);
    Ext *to = NEW_ARRAY(arena, Ext, most + 1);
    for (size_t i = 0; i < f->given.n; i++) {
        const Node *x = node_at(of, f->given.v[i].value);
        const Ext e = {EXT_INPUT, f->given.v[i].name, DT_REAL, x->shape};
        if (x->dtype != DT_REAL)
            continue;
        wrt[n] = ir_ext(g, e.kind, e.name, e.dtype, &e.shape);
        to[n++] = (Ext){EXT_STEP, e.name, DT_REAL, e.shape};
    }
    for (size_t i = 0; i < f->param.n; i++) {
        const Param *p = &f->m->param.v[f->param.v[i]];
        if (p->buffer)
            continue;
        wrt[n] = map[p->value];
        to[n++] = (Ext){EXT_GRAD, p->path, DT_REAL, p->shape};
    }
    graph_gradient(g, weighted(g, f, map), wrt, n, grad);
    for (size_t i = 0; i < n; i++)
        ir_store(g, grad[i] ? grad[i] : ir_broadcast(g, ir_fill(g, 0), &to[i].shape), to[i].kind, to[i].name);
    return g;
}
