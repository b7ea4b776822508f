/* grad.c - reverse mode.
 *
 * In:  a graph and a scalar of it.     Out: new nodes of the same graph, one gradient per asked
 * value.
 * The one idea: one sweep from the loss down. A node is visited when all its users have been,
 * so its gradient is complete; the operator's rule then builds the contributions to its inputs,
 * and only to those that lead to an asked value.
 */
#include "op.h"

typedef struct GradSweep {
    Graph *g;
    Val loss;
    bool *leads; /* node v depends on an asked value */
    Val *d;      /* d loss / d v so far; 0 = none */
    Arena *memory;
} GradSweep;

static bool has_gradient(const Node *n) { return n->dtype == DT_REAL && n->op != OP_STOP; }

static void mark_leads(GradSweep *s, const Val *wrt, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (wrt[i] <= s->loss && node_at(s->g, wrt[i])->dtype == DT_REAL)
            s->leads[wrt[i]] = true;
    for (Val v = 1; v <= s->loss; v++) {
        const Node *node = node_at(s->g, v);
        for (size_t k = 0; k < node->n_in && !s->leads[v]; k++)
            s->leads[v] = s->leads[node->in[k]] && has_gradient(node);
    }
}

static void add_gradient(GradSweep *s, Val v, Val d)
{
    if (!shape_eq(shape_of(s->g, v), shape_of(s->g, d)))
        vwn_bug(s->g->ctx, "the gradient %%%u of %%%u (%s) has another shape", (unsigned)d, (unsigned)v,
                op_info((Op)node_at(s->g, v)->op)->name);
    s->d[v] = s->d[v] ? ir_binary(s->g, OP_ADD, s->d[v], d) : d;
}

static void visit(GradSweep *s, Val v)
{
    Graph *g = s->g;
    const Node n = *node_at(g, v); /* the array may move */
    bool *want = NEW_ARRAY(s->memory, bool, n.n_in);
    Val *din = NEW_ARRAY(s->memory, Val, n.n_in);
    bool any = false;
    for (size_t k = 0; k < n.n_in; k++)
        any |= want[k] = s->leads[n.in[k]];
    if (any && has_gradient(&n)) {
        g->span = n.span;
        g->name = n.name ? name_printf(g->ctx, "%s.grad", n.name) : NULL;
        op_rules[n.op].grad(g, v, s->d[v], want, din);
        for (size_t k = 0; k < n.n_in; k++)
            if (din[k] && want[k])
                add_gradient(s, n.in[k], din[k]);
    }
}

void graph_gradient(Graph *g, Val loss, const Val *wrt, size_t n, Val *out)
{
    if (shape_of(g, loss)->rank != 0 || node_at(g, loss)->dtype != DT_REAL)
        vwn_bug(g->ctx, "the gradient of %%%u, which is not a real scalar", (unsigned)loss);
    Span span = g->span;
    Name name = g->name;
    Arena *memory = arena_new(g->ctx);
    GradSweep s = {g, loss, NULL, NULL, memory};
    s.leads = NEW_ARRAY(memory, bool, (size_t)loss + 1);
    s.d = NEW_ARRAY(memory, Val, (size_t)loss + 1);
    mark_leads(&s, wrt, n);
    g->span = node_at(g, loss)->span;
    g->name = NULL;
    if (s.leads[loss])
        s.d[loss] = ir_fill(g, 1);
    for (Val v = loss; v > 0; v--)
        if (s.d[v])
            visit(&s, v);
    for (size_t i = 0; i < n; i++)
        out[i] = wrt[i] <= loss ? s.d[wrt[i]] : 0;
    g->span = span;
    g->name = name;
    g->differentiated = true;
    arena_free(memory);
}
