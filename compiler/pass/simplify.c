/* simplify.c - the same outputs from fewer nodes.
 *
 * In:  a graph.     Out: a new graph without doubles, foldable constants and dead nodes.
 * The one idea: nodes are made again one by one, each through make_node(), which first asks the
 * rules and then the table of nodes already made. What no output needs is left out at the end.
 * Nodes with a random stream are equal when site and shape are, because the numbers then are.
 */
#include "simplify.h"

static uint64_t hash_draft(Op op, const Val *in, size_t n_in, const Attr *a, const Shape *shape)
{
    uint64_t h = hash_bytes(in, n_in * sizeof *in, (uint64_t)op);
    int64_t key[7] = {a->i, a->j, a->axes, a->dim.n + a->dim.b * 7 + a->dim.t * 77};
    memcpy(key + 4, (double[3]){a->x, a->y, a->z}, 3 * sizeof *key);
    h = hash_bytes(key, sizeof key, h ^ (uintptr_t)a->site);
    if (a->n)
        h = hash_bytes(a->data, a->n * sizeof *a->data, h);
    for (int k = 0; k < shape->rank; k++)
        h = h * 31 + (uint64_t)shape->d[k].n + 3u * shape->d[k].b + 5u * shape->d[k].t;
    return h;
}

static void table_grow(Simplifier *s)
{
    s->n_bucket = s->n_bucket ? s->n_bucket * 2 : 1024;
    while (s->n_bucket <= s->g->node.cap)
        s->n_bucket *= 2;
    s->bucket = NEW_ARRAY(s->memory, Val, s->n_bucket);
    Val *chain = NEW_ARRAY(s->memory, Val, s->n_bucket);
    for (Val v = 1; v < s->g->node.n; v++) {
        const Node *n = made(s, v);
        size_t h = hash_draft((Op)n->op, n->in, n->n_in, &n->a, &n->shape) & (s->n_bucket - 1);
        chain[v] = s->bucket[h];
        s->bucket[h] = v;
    }
    s->chain = chain;
    s->n_chain = s->n_bucket;
}

static Val find(const Simplifier *s, const Draft *d, const Val *in)
{
    uint64_t h = hash_draft(d->op, in, d->n_in, &d->a, &d->shape);
    for (Val v = s->bucket[h & (s->n_bucket - 1)]; v; v = s->chain[v]) {
        const Node *n = made(s, v);
        if (n->op == d->op && n->n_in == d->n_in && shape_eq(&n->shape, &d->shape) &&
            attr_same(&n->a, &d->a) && (!d->n_in || !memcmp(n->in, in, d->n_in * sizeof *in)))
            return v;
    }
    return 0;
}

static Val make_once(Simplifier *s, const Draft *d)
{
    Val v = find(s, d, d->all);
    Val turned[2] = {d->in[1], d->in[0]};
    if (!v && (d->op == OP_ADD || d->op == OP_MUL || d->op == OP_EQ))
        v = find(s, d, turned);
    if (v)
        return v;
    v = ir_node(s->g, d->op, d->all, d->n_in, &d->a, d->given);
    if (v >= s->n_chain) {
        table_grow(s);
        return v;
    }
    size_t h = hash_draft(d->op, d->all, d->n_in, &d->a, &d->shape) & (s->n_bucket - 1);
    s->chain[v] = s->bucket[h];
    s->bucket[h] = v;
    return v;
}

Val make_node(Simplifier *s, Op op, const Val *in, size_t n_in, const Attr *a, const Shape *given)
{
    static const Attr none = {0};
    Draft d = {.op = op, .all = in, .n_in = n_in, .a = a ? *a : none, .given = given};
    for (size_t k = 0; k < n_in && k < 3; k++)
        d.in[k] = in[k];
    Ask q = {s->g, op, in, n_in, &d.a, given};
    const char *wrong = op_infer(&q, &d.shape, &d.dtype);
    if (wrong)
        vwn_bug(s->g->ctx, "simplifying makes a wrong %s: %s", op_info(op)->name, wrong);
    Val v = simplify_elementwise(s, &d);
    if (!v)
        v = simplify_layout(s, &d);
    if (!v)
        v = simplify_constant(s, &d);
    return v ? v : make_once(s, &d);
}

/* ---- the passes over the graph ---- */

static bool *live_nodes(const Graph *g, Arena *memory)
{
    bool *live = NEW_ARRAY(memory, bool, g->node.n);
    for (size_t i = 0; i < g->out.n; i++)
        live[g->out.v[i].value] = true;
    for (Val v = (Val)g->node.n; v-- > 1;)
        for (size_t k = 0; live[v] && k < node_at(g, v)->n_in; k++)
            live[node_at(g, v)->in[k]] = true;
    return live;
}

Graph *graph_like(const Graph *g, Arena *arena)
{
    Graph *copy = graph_new(g->ctx, arena);
    copy->differentiated = g->differentiated;
    for (size_t i = 0; i < g->ext.n; i++)
        ext_add(copy, &g->ext.v[i]);
    for (size_t i = 0; i < g->host.n; i++)
        vec_push(arena, &copy->host, g->host.v[i]);
    return copy;
}

static void map_outputs(const Graph *from, Graph *to, const Val *map)
{
    for (size_t i = 0; i < from->out.n; i++) {
        Output o = from->out.v[i];
        o.value = map[o.value];
        vec_push(to->arena, &to->out, o);
    }
}

/* Inputs of the old node in the new graph. */
static Val *mapped(Arena *memory, const Node *n, const Val *map)
{
    Val *in = NEW_ARRAY(memory, Val, n->n_in);
    for (size_t k = 0; k < n->n_in; k++)
        in[k] = map[n->in[k]];
    return in;
}

static const Shape *given_shape(const Node *n)
{
    return op_uses((Op)n->op, 'S') ? &n->shape : NULL;
}

static Graph *rebuild(const Graph *g, Arena *memory)
{
    Simplifier s = {
        .g = graph_like(g, memory), .drop_stop = g->differentiated, .memory = memory};
    graph_reserve(s.g, g->node.n);
    table_grow(&s);
    const bool *live = live_nodes(g, memory);
    Val *map = NEW_ARRAY(memory, Val, g->node.n);
    for (Val v = 1; v < g->node.n; v++) {
        const Node *n = node_at(g, v);
        if (!live[v])
            continue;
        s.g->span = n->span;
        s.g->name = n->name;
        map[v] = make_node(&s, (Op)n->op, mapped(memory, n, map), n->n_in, &n->a, given_shape(n));
    }
    map_outputs(g, s.g, map);
    return s.g;
}

static Graph *compact(const Graph *g, Arena *arena, Arena *memory)
{
    Graph *out = graph_like(g, arena);
    const bool *live = live_nodes(g, memory);
    size_t count = 0;
    for (Val v = 1; v < g->node.n; v++)
        count += live[v];
    graph_reserve(out, count + 1);
    Val *map = NEW_ARRAY(memory, Val, g->node.n);
    for (Val v = 1; v < g->node.n; v++) {
        const Node *n = node_at(g, v);
        if (!live[v])
            continue;
        out->span = n->span;
        out->name = n->name;
        map[v] =
            ir_node(out, (Op)n->op, mapped(memory, n, map), n->n_in, &n->a, given_shape(n));
        if (n->op == OP_EXT)
            ext_set_leaf(out, map[v]);
    }
    map_outputs(g, out, map);
    out->span = g->span;
    out->name = NULL;
    return out;
}

Graph *graph_simplify(const Graph *g, Arena *arena)
{
    Arena *memory = arena_new(g->ctx);
    Graph *rebuilt = rebuild(g, memory);
    Graph *result = compact(rebuilt, arena, memory);
    result->span = g->span;
    result->name = g->name;
    arena_free(memory);
    return result;
}
