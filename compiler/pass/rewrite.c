/* rewrite.c - see rewrite.h. */
#include "rewrite.h"

#include "compiler/graph/op.h"

Rewrite rewrite_begin(const Graph *from, Arena *arena, Arena *memory, size_t room)
{
    Graph *to = graph_new(from->ctx, arena);
    to->differentiated = from->differentiated;
    for (size_t i = 0; i < from->ext.n; i++)
        ext_add(to, &from->ext.v[i]);
    for (size_t i = 0; i < from->host.n; i++)
        vec_push(arena, &to->host, from->host.v[i]);
    graph_reserve(to, room);
    return (Rewrite){from, to, NEW_ARRAY(memory, Val, from->node.n)};
}

Val *rewrite_inputs(const Rewrite *r, Arena *memory, Val v)
{
    const Node *n = node_at(r->from, v);
    Val *in = NEW_ARRAY(memory, Val, n->n_in + 1u);
    for (size_t k = 0; k < n->n_in; k++)
        in[k] = r->map[n->in[k]];
    return in;
}

Val rewrite_same(Rewrite *r, Val v, const Val *in)
{
    const Node *n = node_at(r->from, v);
    if (!in)
        in = rewrite_inputs(r, r->to->arena, v);
    Val copy = ir_node(r->to, (Op)n->op, in, n->n_in, &n->a, op_given(n));
    if (n->op == OP_EXT)
        ext_set_leaf(r->to, copy);
    return copy;
}

void rewrite_nodes(Rewrite *r, const bool *wanted, RewriteRule *rule, void *user)
{
    for (Val v = 1; v < r->from->node.n; v++) {
        if (wanted && !wanted[v])
            continue;
        r->to->span = node_at(r->from, v)->span;
        r->to->name = node_at(r->from, v)->name;
        r->map[v] = rule(r, v, user);
    }
    r->to->span = r->from->span;
    r->to->name = r->from->name;
}

Graph *graph_rewrite(Rewrite *r, const bool *wanted, RewriteRule *rule, void *user)
{
    rewrite_nodes(r, wanted, rule, user);
    for (size_t i = 0; i < r->from->out.n; i++) {
        Output o = r->from->out.v[i];
        o.value = r->map[o.value];
        vec_push(r->to->arena, &r->to->out, o);
    }
    return r->to;
}

bool *graph_live(const Graph *g, Arena *memory)
{
    bool *live = NEW_ARRAY(memory, bool, g->node.n);
    for (size_t i = 0; i < g->out.n; i++)
        live[g->out.v[i].value] = true;
    for (Val v = (Val)g->node.n; v-- > 1;)
        for (size_t k = 0; live[v] && k < node_at(g, v)->n_in; k++)
            live[node_at(g, v)->in[k]] = true;
    return live;
}
