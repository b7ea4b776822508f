/* inside.c - see inside.h. */
#include "inside.h"

#include "compiler/graph/op.h"

const double inside_threshold[INSIDE_THRESHOLDS] = {0, 0.01, 0.03, 0.1, 0.3, 1, 3};

/* ---- activations ---- */

static bool is_activation_function(Op op)
{
    switch (op) {
    case OP_RELU:
    case OP_GELU:
    case OP_GELU_TANH:
    case OP_SILU:
    case OP_SIGMOID:
    case OP_TANH:
    case OP_ERF:
    case OP_SOFTPLUS:
    case OP_MAX:
    case OP_MIN: return true;
    default: return false;
    }
}

/* The nodes from what a sublayer reads to what it writes. */
typedef struct Search {
    const Graph *g;
    Val first;
    bool *depends;  /* on what it reads, by place behind that */
    uint8_t *known; /* 1: no activation, 2: one */
} Search;

static bool depends(const Search *s, Val v) { return v >= s->first && s->depends[v - s->first]; }

/* Whether v is made, element by element, of what an activation function returns. */
static bool is_activation(const Search *s, Val v)
{
    const Node *n = node_at(s->g, v);
    if (!depends(s, v))
        return false;
    uint8_t *known = &s->known[v - s->first];
    bool found = *known == 2 || is_activation_function((Op)n->op);
    if (!*known && !found && (op_is_map((Op)n->op) || op_is_view((Op)n->op)) && v != s->first)
        for (size_t k = 0; k < n->n_in && !found; k++)
            found = is_activation(s, n->in[k]);
    *known = found ? 2 : 1;
    return found;
}

typedef VEC(InsideActivation) Activations;

/* What product v reads, where that is an activation that is not listed yet. */
static void activation_of_product(const Search *s, Val v, size_t at, size_t first, Activations *out, Arena *arena)
{
    const Node *n = node_at(s->g, v);
    bool experts = n->op == OP_EXPERT_MATMUL;
    if ((n->op != OP_MATMUL && !experts) || depends(s, n->in[1]) || !is_activation(s, n->in[0]))
        return;
    for (size_t k = first; k < out->n; k++)
        if (out->v[k].value == n->in[0])
            return;
    const Shape *x = shape_of(s->g, n->in[0]);
    Dim last = x->d[x->rank - 1];
    if (!dim_static(last) || (experts && x->rank != shape_of(s->g, n->in[2])->rank + 1))
        return;
    vec_push(arena, out,
             ((InsideActivation){.value = n->in[0],
                                 .index = experts ? n->in[2] : 0,
                                 .experts = experts ? shape_of(s->g, n->in[1])->d[0].n : 1,
                                 .dims = last.n,
                                 .sublayer = at,
                                 .path = node_at(s->g, n->in[0])->name}));
}

static void activations_of(const Model *m, size_t at, Activations *out, Arena *arena)
{
    const ModelSublayer *l = &m->sublayer.v[at];
    if (l->wrote <= l->read)
        return;
    size_t n = l->wrote - l->read + 1, first = out->n;
    Search s = {m->graph, l->read, NEW_ARRAY(arena, bool, n), NEW_ARRAY(arena, uint8_t, n)};
    bool *needed = NEW_ARRAY(arena, bool, n);
    s.depends[0] = needed[n - 1] = true;
    for (Val v = l->read + 1; v <= l->wrote; v++)
        for (size_t k = 0; k < node_at(s.g, v)->n_in; k++)
            s.depends[v - l->read] |= depends(&s, node_at(s.g, v)->in[k]);
    for (Val v = l->wrote; v > l->read; v--)
        for (size_t k = 0; needed[v - l->read] && k < node_at(s.g, v)->n_in; k++)
            if (node_at(s.g, v)->in[k] > l->read)
                needed[node_at(s.g, v)->in[k] - l->read] = true;
    for (Val v = l->read + 1; v <= l->wrote; v++)
        if (needed[v - l->read])
            activation_of_product(&s, v, at, first, out, arena);
}

/* ---- the lens ---- */

static Val final_state(const Model *m) { return m->sublayer.n ? m->sublayer.v[m->sublayer.n - 1].after : 0; }

static Val labels_of(const Model *m)
{
    const Graph *g = m->graph;
    for (Val v = 1; v < g->node.n; v++)
        if (node_at(g, v)->op == OP_EXT && g->ext.v[node_at(g, v)->a.i].kind == EXT_INPUT &&
            !strcmp(g->ext.v[node_at(g, v)->a.i].name, "labels"))
            return v;
    return 0;
}

static bool reaches(const Graph *g, Val from, Val to, Arena *arena)
{
    bool *depends = NEW_ARRAY(arena, bool, to + 1);
    for (Val v = from; v <= to; v++) {
        depends[v] = v == from;
        for (size_t k = 0; k < node_at(g, v)->n_in; k++)
            depends[v] |= depends[node_at(g, v)->in[k]];
    }
    return from <= to && depends[to];
}

static void find_lens(Inside *in, Arena *arena)
{
    const Model *m = in->m;
    const Graph *g = m->graph;
    Val labels = labels_of(m);
    in->no_lens = "the model has no `output.logits` that depends on its last state";
    for (size_t i = 0; i < m->output.n && !in->logits && m->sublayer.n; i++)
        if (!strcmp(m->output.v[i].name, "logits") && reaches(g, final_state(m), m->output.v[i].value, arena))
            in->logits = m->output.v[i].value;
    if (!in->logits)
        return;
    Shape lead = *shape_of(g, in->logits);
    lead.rank -= lead.rank > 0;
    in->no_lens = NULL;
    if (!labels || !shape_eq(&lead, shape_of(g, labels)))
        in->no_lens = "the model reads no `labels`, one for each prediction";
    for (size_t i = 0; i < m->sublayer.n; i++)
        if (!shape_eq(shape_of(g, i ? m->sublayer.v[i - 1].after : m->opened), shape_of(g, final_state(m))))
            in->no_lens = "its connection changes the shape of the state, so nothing can read an earlier one in place "
                          "of the last";
    if (in->no_lens)
        in->logits = 0;
}

Inside inside_of(const Model *m, Arena *arena)
{
    Inside in = {.m = m, .u = unfolding_of(m, arena)};
    Activations a = {0};
    for (size_t i = 0; i < m->sublayer.n; i++)
        activations_of(m, i, &a, arena);
    in.activation = a.v;
    in.n_activations = a.n;
    if (!in.u.why_not)
        in.factor = unfold_factors(m, &in.u, &in.n_factors, arena);
    find_lens(&in, arena);
    return in;
}

/* ---- the graph ---- */

typedef struct InsideBuild {
    const Inside *in;
    Graph *g;
    const Val *map;
} InsideBuild;

static uint32_t all_but(const Shape *s, int last) { return (1u << (s->rank - last)) - 1; }

static Val flat(Graph *g, Val v)
{
    Dim n;
    if (!shape_size(shape_of(g, v), &n))
        vwn_bug(g->ctx, "a tensor of too many elements");
    return ir_reshape(g, v, &(Shape){.rank = 1, .d = {n}});
}

static void put(InsideBuild *b, const char *name, size_t i, Val v)
{
    ir_output(b->g, name_printf(b->g->ctx, "%s.%zu", name, i), v);
}

static void put_factors(InsideBuild *b)
{
    int lead = shape_of(b->in->m->graph, b->in->m->embedded)->rank - 1;
    for (size_t i = 0; i < b->in->n_factors; i++) {
        const UnfoldFactor *f = &b->in->factor[i];
        put(b, "factor", i, b->map[f->value]);
        if (f->fixed)
            put(b, "fixed", i, flat(b->g, ir_mean(b->g, b->map[f->fixed], (1u << lead) - 1, false)));
    }
}

/* What sublayers read, of length 1, one below the other: [positions.., n, widest]. */
static Val directions(InsideBuild *b)
{
    const Model *m = b->in->m;
    Graph *g = b->g;
    int lead = shape_of(m->graph, m->embedded)->rank - 1;
    int64_t widest = 1;
    Val *row = NEW_ARRAY(g->arena, Val, m->sublayer.n + 1);
    for (size_t i = 0; i < m->sublayer.n; i++) {
        const UnfoldPart *p = &b->in->u.read[i];
        widest = p->segments * p->width > widest ? p->segments * p->width : widest;
    }
    for (size_t i = 0; i < m->sublayer.n; i++) {
        Val x = b->map[m->sublayer.v[i].read];
        const UnfoldPart *p = &b->in->u.read[i];
        Shape s = *shape_of(g, x);
        s.rank = (uint8_t)(lead + 2);
        s.d[lead] = DIM(1);
        s.d[lead + 1] = DIM(p->segments * p->width);
        x = ir_reshape(g, x, &s);
        Val length = ir_unary(g, OP_SQRT, ir_sum(g, ir_binary(g, OP_MUL, x, x), 1u << (lead + 1), true));
        x = ir_binary(g, OP_DIV, x, ir_binary(g, OP_MAX, length, ir_fill(g, 1e-30)));
        row[i] = widest > s.d[lead + 1].n ? ir_pad(g, x, lead + 1, 0, widest - s.d[lead + 1].n) : x;
    }
    return ir_concat(g, row, m->sublayer.n, lead);
}

static void put_inputs(InsideBuild *b)
{
    Graph *g = b->g;
    Val x = directions(b), cosine = ir_matmul(g, x, ir_transpose(g, x));
    ir_output(g, name_str(g->ctx, "cosine"), ir_mean(g, cosine, all_but(shape_of(g, cosine), 2), false));
    int last = shape_of(g, x)->rank - 1;
    int64_t n = (int64_t)b->in->m->sublayer.n - 1;
    if (n < 1)
        return;
    Val product = ir_binary(g, OP_MUL, ir_slice(g, x, last - 1, 0, n), ir_slice(g, x, last - 1, 1, n));
    ir_output(g, name_str(g->ctx, "next"), ir_sum(g, product, 1u << last, false));
}

/* The mean over all rows of each dimension: of each expert apart, over all rows of all. */
static Val by_dimension(InsideBuild *b, const InsideActivation *a, Val x)
{
    Graph *g = b->g;
    if (!a->index)
        return flat(g, ir_mean(g, x, all_but(shape_of(g, x), 1), false));
    Val whose = ir_one_hot(g, b->map[a->index], a->experts);
    Dim rows;
    Shape count = *shape_of(g, x);
    count.rank--;
    if (!shape_size(&count, &rows))
        vwn_bug(g->ctx, "a tensor of too many elements");
    Val each = ir_reshape(g, x, &(Shape){.rank = 2, .d = {rows, DIM(a->dims)}});
    whose = ir_reshape(g, whose, &(Shape){.rank = 2, .d = {rows, DIM(a->experts)}});
    Val sum = ir_matmul(g, ir_transpose(g, whose), each);
    return flat(g, ir_binary(g, OP_DIV, sum, ir_dim(g, rows)));
}

static void put_activation(InsideBuild *b, size_t i)
{
    Graph *g = b->g;
    const InsideActivation *a = &b->in->activation[i];
    Val x = b->map[a->value], size = ir_unary(g, OP_ABS, x), share[INSIDE_THRESHOLDS];
    uint32_t all = all_but(shape_of(g, x), 0);
    for (int k = 0; k < INSIDE_THRESHOLDS; k++)
        share[k] = flat(g, ir_mean(g, ir_binary(g, OP_LT, ir_fill(g, inside_threshold[k]), size), all, true));
    put(b, "active", i, ir_concat(g, share, INSIDE_THRESHOLDS, 0));
    put(b, "used", i, by_dimension(b, a, ir_binary(g, OP_LT, ir_fill(g, INSIDE_USED), size)));
    put(b, "energy", i, by_dimension(b, a, ir_binary(g, OP_MUL, x, x)));
    if (a->index) {
        Val each = ir_one_hot(g, b->map[a->index], a->experts);
        put(b, "chosen", i, flat(g, ir_mean(g, each, all_but(shape_of(g, each), 1), false)));
    }
}

static void put_states(InsideBuild *b)
{
    const Model *m = b->in->m;
    for (size_t i = 0; i <= m->sublayer.n; i++)
        if (!b->in->state || b->in->state[i])
            put(b, "state", i, b->map[i ? m->sublayer.v[i - 1].after : m->opened]);
}

static void put_lens(InsideBuild *b)
{
    const Model *m = b->in->m;
    Graph *g = b->g;
    Val labels = b->map[labels_of(m)], last_log = 0, last_p = 0;
    Val target = ir_binary(g, OP_LE, ir_int(g, 0), labels);
    Shape one = *shape_of(g, labels);
    one.d[one.rank++] = DIM(1);
    uint32_t all = all_but(&one, 1);
    for (size_t i = 0; i <= m->sublayer.n; i++) {
        Val state = b->map[i ? m->sublayer.v[i - 1].after : m->opened];
        Val logits =
            i == m->sublayer.n ? b->map[b->in->logits] : step_again(g, m, b->map, final_state(m), b->in->logits, state);
        int axis = shape_of(g, logits)->rank - 1;
        Val log = ir_binary(g, OP_SUB, logits, ir_logsumexp(g, logits, axis, true)), p = ir_unary(g, OP_EXP, log),
            part[3];
        Val said = ir_pick(g, log, ir_reshape(g, labels, &one));
        part[0] = ir_binary(g, OP_MUL, ir_reshape(g, said, shape_of(g, labels)), target);
        part[1] = target;
        part[2] = ir_unary(g, OP_NEG, ir_sum(g, ir_binary(g, OP_MUL, p, log), 1u << axis, false));
        for (int k = 0; k < 3; k++)
            part[k] = flat(g, ir_mean(g, part[k], all, true));
        put(b, "lens", i, ir_concat(g, part, 3, 0));
        if (i) {
            Val both = ir_binary(g, OP_MUL, ir_binary(g, OP_SUB, p, last_p), ir_binary(g, OP_SUB, log, last_log));
            put(b, "moved", i, ir_scale(g, ir_mean(g, ir_sum(g, both, 1u << axis, false), all, false), 0.5));
        }
        last_log = log;
        last_p = p;
    }
}

Graph *inside_graph(const Inside *in, unsigned what, Arena *arena)
{
    const Model *m = in->m;
    Val *root = NEW_ARRAY(arena, Val, 2 * m->sublayer.n + 2 * (in->n_factors + in->n_activations) + 8), *map;
    size_t n = 0;
    root[n++] = m->opened;
    for (size_t i = 0; i < m->sublayer.n; i++) {
        root[n++] = m->sublayer.v[i].read;
        root[n++] = m->sublayer.v[i].after;
    }
    if (m->closed && what & INSIDE_CONNECTIONS)
        root[n++] = m->closed;
    for (size_t i = 0; i < in->n_factors && what & INSIDE_WEIGHTS; i++) {
        root[n++] = in->factor[i].value;
        if (in->factor[i].fixed)
            root[n++] = in->factor[i].fixed;
    }
    for (size_t i = 0; i < in->n_activations && what & INSIDE_ACTIVATIONS; i++) {
        root[n++] = in->activation[i].value;
        if (in->activation[i].index)
            root[n++] = in->activation[i].index;
    }
    bool lens = in->logits && what & INSIDE_LENS;
    if (lens) {
        root[n++] = in->logits;
        root[n++] = labels_of(m);
    }
    InsideBuild b = {.in = in, .g = step_values(m, root, n, &map, arena), .map = map};
    if (what & INSIDE_CONNECTIONS && !in->u.why_not)
        unfold_explain(b.g, m, &in->u, map);
    if (what & INSIDE_WEIGHTS)
        put_factors(&b);
    if (what & INSIDE_INPUTS && !in->u.why_not && m->sublayer.n)
        put_inputs(&b);
    for (size_t i = 0; i < in->n_activations && what & INSIDE_ACTIVATIONS; i++)
        put_activation(&b, i);
    if (what & INSIDE_STATES && !in->u.why_not)
        put_states(&b);
    if (lens)
        put_lens(&b);
    return b.g;
}
