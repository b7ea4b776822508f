/* simplify.c - the same outputs from fewer nodes.
 *
 * In:  a graph.     Out: a new graph without doubles, foldable constants and dead nodes.
 * The one idea: nodes are made again one by one, each through make_node(), which first asks the
 * rules and then the table of nodes already made. What no output needs is left out at the end.
 * Nodes with a random stream are equal when site and shape are, because the numbers then are.
 */
#include "simplify_build.h"
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
        if (n->op == d->op && n->n_in == d->n_in && shape_eq(&n->shape, &d->shape) && attr_same(&n->a, &d->a) &&
            (!d->n_in || !memcmp(n->in, in, d->n_in * sizeof *in)))
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

static Val simplified(Rewrite *r, Val v, void *user)
{
    Simplifier *s = user;
    const Node *n = node_at(r->from, v);
    return make_node(s, (Op)n->op, rewrite_inputs(r, s->memory, v), n->n_in, &n->a, op_given(n));
}

static Val same(Rewrite *r, Val v, void *user) { return rewrite_same(r, v, rewrite_inputs(r, user, v)); }

/* First every node by the rules, then what is still needed. */
Graph *graph_simplify(const Graph *g, Arena *arena)
{
    Arena *memory = arena_new(g->ctx);
    Rewrite first = rewrite_begin(g, memory, memory, g->node.n);
    Simplifier s = {.g = first.to, .drop_stop = g->differentiated, .memory = memory};
    table_grow(&s);
    graph_rewrite(&first, graph_live(g, memory), simplified, &s);
    const bool *live = graph_live(first.to, memory);
    size_t count = 0;
    for (Val v = 1; v < first.to->node.n; v++)
        count += live[v];
    Rewrite second = rewrite_begin(first.to, arena, memory, count + 1);
    Graph *result = graph_rewrite(&second, live, same, memory);
    arena_free(memory);
    return result;
}
