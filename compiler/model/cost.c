/* cost.c - counts over a model's graph.
 *
 * In:  a Model whose dead weights have been found.
 * Out: weights, forward FLOPs per token, elementwise work, key and value bytes; in total and by
 *      module.
 * The one idea: every operator states its own cost as a monomial in B and T (op_flops); a count
 * is the sum over the nodes that a loss or an output needs, at B = 1 and T = context, divided
 * by T. Attention counts the full square, as Variable-Width Transformers, section 2, does; what
 * masks and windows save stands in a column of its own.
 */
#include "cost.h"

#include <math.h>

/* ---- which nodes count ---- */

Val *model_roots(const Model *m, RootSet which, Arena *arena, size_t *n)
{
    bool outputs_only = which == ROOTS_PREDICT && m->output.n > 0;
    Val *root = NEW_ARRAY(arena, Val, m->loss.n + m->output.n + 1);
    *n = 0;
    for (size_t i = 0; i < m->loss.n && !outputs_only; i++)
        if (which != ROOTS_LEARNING || m->loss.v[i].trained)
            root[(*n)++] = m->loss.v[i].value;
    for (size_t i = 0; i < m->output.n; i++)
        root[(*n)++] = m->output.v[i].value;
    return root;
}

bool *graph_reached(const Graph *g, const Val *roots, size_t n, Arena *arena)
{
    bool *reached = NEW_ARRAY(arena, bool, g->node.n);
    for (size_t i = 0; i < n; i++)
        reached[roots[i]] = true;
    reached[0] = false;
    for (Val v = (Val)g->node.n; v-- > 1;)
        for (size_t k = 0; reached[v] && k < node_at(g, v)->n_in; k++)
            reached[node_at(g, v)->in[k]] = true;
    return reached;
}

/* ---- weights read per token ---- */

/* Expert products with one choice of experts that read a parameter. */
typedef struct Use {
    Val index;
    double share; /* choices / experts */
    struct Use *next;
} Use;
typedef struct Reads {
    Use *experts;
    bool otherwise;
} Reads;

static bool is_view(const Node *n)
{
    return n->op == OP_RESHAPE || n->op == OP_PERMUTE || n->op == OP_SLICE || n->op == OP_ROUND_TO;
}

static void add_use(Arena *arena, Reads *r, const Graph *g, const Node *n)
{
    const Shape *w = shape_of(g, n->in[1]), *index = shape_of(g, n->in[2]);
    double choices = (double)index->d[index->rank - 1].n;
    for (Use *u = r->experts; u; u = u->next)
        if (u->index == n->in[2])
            return;
    Use *u = NEW(arena, Use);
    *u = (Use){n->in[2], choices / (double)w->d[0].n, r->experts};
    r->experts = u;
}

/* How each external tensor is read; owner[v] is the leaf that node v is a view of. */
static Reads *find_reads(const Model *m, Arena *arena)
{
    const Graph *g = m->graph;
    size_t n_roots;
    const Val *root = model_roots(m, ROOTS_ALL, arena, &n_roots);
    const bool *reached = graph_reached(g, root, n_roots, arena);
    Val *owner = NEW_ARRAY(arena, Val, g->node.n);
    Reads *reads = NEW_ARRAY(arena, Reads, g->node.n);
    for (Val v = 1; v < g->node.n; v++) {
        const Node *n = node_at(g, v);
        if (n->op == OP_EXT)
            owner[v] = v;
        else if (is_view(n))
            owner[v] = owner[n->in[0]];
        if (!reached[v] || owner[v])
            continue;
        for (size_t k = 0; k < n->n_in; k++) {
            Reads *r = &reads[owner[n->in[k]]];
            if (n->op == OP_EXPERT_MATMUL && k == 1)
                add_use(arena, r, g, n);
            else
                r->otherwise = true;
        }
    }
    for (size_t i = 0; i < n_roots; i++)
        reads[owner[root[i]]].otherwise = true;
    return reads;
}

static double active_share(const Reads *r)
{
    double share = 0;
    if (r->otherwise || !r->experts)
        return 1;
    for (const Use *u = r->experts; u; u = u->next)
        share += u->share;
    return share < 1 ? share : 1;
}

void model_find_active(Model *m)
{
    Arena *scratch = m->graph->ctx->scratch;
    ArenaMark mark = arena_mark(scratch);
    const Reads *reads = find_reads(m, scratch);
    for (size_t i = 0; i < m->param.n; i++) {
        Param *p = &m->param.v[i];
        p->active = p->value ? active_share(&reads[p->value]) : 1;
    }
    arena_reset(scratch, mark);
}

static void count_param(ModelCount *c, const Param *p, double active)
{
    if (p->buffer) {
        c->buffers += p->elements;
        return;
    }
    int64_t live = p->elements - p->dead;
    c->stored += p->elements;
    c->dead += p->dead;
    c->live += live;
    c->active += (int64_t)llround((double)live * active);
}

ModelCount model_count(const Model *m)
{
    Arena *scratch = m->graph->ctx->scratch;
    ArenaMark mark = arena_mark(scratch);
    const Reads *reads = find_reads(m, scratch);
    ModelCount c = {0};
    for (size_t i = 0; i < m->param.n; i++) {
        const Param *p = &m->param.v[i];
        count_param(&c, p, p->value ? active_share(&reads[p->value]) : 1);
    }
    arena_reset(scratch, mark);
    return c;
}

/* ---- work ---- */

static int64_t tokens_of(const Model *m) { return m->context > 0 ? m->context : 1; }

/* The monomial at B = 1 and T = tokens, divided by T; whole while a power of T is left. */
static double per_token(Dim f, int64_t tokens)
{
    double x = (double)f.n;
    if (f.t == 0)
        return x / (double)tokens;
    for (int i = 1; i < f.t; i++)
        x *= (double)tokens;
    return x;
}

/* Pairs of query and key that count, of T^2: query t sees t - window < u <= t, or on both
 * sides. */
static double visible_pairs(double T, bool causal, int64_t window)
{
    double w = window > 0 && (double)window < T ? (double)window : T;
    return causal ? w * (w + 1) / 2 + (T - w) * w : T * (2 * w - 1) - w * (w - 1);
}

/* Queries and keys of different lengths are not one sequence: no order between them, no saving.
 * */
static double hidden_work(const Graph *g, const Node *n, int64_t tokens)
{
    const Shape *q = shape_of(g, n->in[0]), *k = shape_of(g, n->in[1]);
    const Shape *v = shape_of(g, n->in[2]);
    if (!dim_eq(q->d[1], k->d[1]))
        return 0;
    double T = (double)dim_at(q->d[1], 1, tokens);
    double each = 2.0 * (double)q->d[2].n * (double)(q->d[3].n + v->d[3].n);
    return each * (T * T - visible_pairs(T, n->a.i & 1, n->a.j)) / (double)tokens;
}

static double elements_per_token(const Shape *s, int64_t tokens)
{
    Dim size;
    return shape_size(s, &size) ? per_token(size, tokens) : 0;
}

static void add_node_work(Work *w, const Graph *g, Val v, int64_t tokens)
{
    const Node *n = node_at(g, v);
    double flops = per_token(op_flops(g, v), tokens);
    switch (op_info((Op)n->op)->class) {
    case CLASS_ATTENTION:
        w->attention += flops;
        if (n->op == OP_SDPA)
            w->causal_saving += hidden_work(g, n, tokens);
        break;
    case CLASS_UNARY:
        if (n->op == OP_STOP || n->op == OP_TO_REAL || n->op == OP_TO_INT || n->op == OP_ROUND_TO)
            break;
        w->elementwise += elements_per_token(&n->shape, tokens);
        break;
    case CLASS_BINARY:
    case CLASS_TERNARY: w->elementwise += elements_per_token(&n->shape, tokens); break;
    case CLASS_REDUCE: w->elementwise += elements_per_token(shape_of(g, n->in[0]), tokens); break;
    default: w->products += flops;
    }
}

Work model_work(const Model *m)
{
    Arena *scratch = m->graph->ctx->scratch;
    ArenaMark mark = arena_mark(scratch);
    size_t n_roots;
    const Val *root = model_roots(m, ROOTS_ALL, scratch, &n_roots);
    const bool *reached = graph_reached(m->graph, root, n_roots, scratch);
    Work w = {0};
    for (Val v = 1; v < m->graph->node.n; v++)
        if (reached[v])
            add_node_work(&w, m->graph, v, tokens_of(m));
    arena_reset(scratch, mark);
    return w;
}

double model_dead_flops(const Model *m)
{
    Arena *scratch = m->graph->ctx->scratch;
    ArenaMark mark = arena_mark(scratch);
    const Graph *g = m->graph;
    size_t n_roots;
    const Val *root = model_roots(m, ROOTS_ALL, scratch, &n_roots);
    const bool *reached = graph_reached(g, root, n_roots, scratch);
    const Param **of = NEW_ARRAY(scratch, const Param *, g->node.n); /* of views of it, too */
    for (size_t i = 0; i < m->param.n; i++)
        of[m->param.v[i].value] = &m->param.v[i];
    of[0] = NULL;
    double flops = 0;
    for (Val v = 1; v < g->node.n; v++) {
        const Node *n = node_at(g, v);
        if (is_view(n))
            of[v] = of[n->in[0]];
        const Param *w = NULL;
        for (size_t k = 0; k < n->n_in && !w; k++)
            w = of[n->in[k]];
        bool product = n->op == OP_MATMUL || n->op == OP_EXPERT_MATMUL;
        if (!reached[v] || !product || !w || !w->elements)
            continue;
        double share = (double)w->dead / (double)w->elements; /* every element costs the same */
        flops += share * per_token(op_flops(g, v), tokens_of(m));
    }
    arena_reset(scratch, mark);
    return flops;
}

double model_flops_per_token(const Model *m)
{
    Work w = model_work(m);
    return w.products + w.attention;
}

/* ---- keys and values ---- */

typedef struct Kept {
    Val v;
    double elements; /* per token */
    double growth;   /* tokens kept per token of the text */
    double tokens;   /* at T = context */
} Kept;
typedef VEC(Kept) KeptList;

static void keep(KeptList *list, Arena *arena, const Graph *g, Val v, int64_t window, int64_t T)
{
    const Shape *s = shape_of(g, v);
    double tokens = (double)dim_at(s->d[1], 1, T), most = (double)window;
    if (window > 0 && most < tokens)
        tokens = most;
    for (size_t i = 0; i < list->n; i++)
        if (list->v[i].v == v) {
            list->v[i].tokens = fmax(list->v[i].tokens, tokens);
            return;
        }
    double elements = (double)s->d[2].n * (double)s->d[3].n;
    double growth = s->d[1].t ? per_token(s->d[1], T) : 0;
    vec_push(arena, list, (Kept){v, elements, growth, tokens});
}

KvCache model_kv_cache(const Model *m, double bytes_per_element)
{
    Arena *scratch = m->graph->ctx->scratch;
    ArenaMark mark = arena_mark(scratch);
    const Graph *g = m->graph;
    size_t n_roots;
    const Val *root = model_roots(m, ROOTS_PREDICT, scratch, &n_roots);
    const bool *reached = graph_reached(g, root, n_roots, scratch);
    KeptList list = {0};
    for (Val v = 1; v < g->node.n; v++) {
        const Node *n = node_at(g, v);
        if (!reached[v] || n->op != OP_SDPA || !(n->a.i & 1))
            continue;
        keep(&list, scratch, g, n->in[1], n->a.j, tokens_of(m));
        keep(&list, scratch, g, n->in[2], n->a.j, tokens_of(m));
    }
    KvCache kv = {0};
    for (size_t i = 0; i < list.n; i++) {
        kv.per_token += list.v[i].elements * list.v[i].growth * bytes_per_element;
        kv.at_context += list.v[i].elements * list.v[i].tokens * bytes_per_element;
    }
    arena_reset(scratch, mark);
    return kv;
}

/* ---- by module ---- */

/* The first `depth` parts of a path (0: all); indices become * when `any`. */
static Name cut_path(Ctx *ctx, const char *path, int depth, bool any)
{
    ArenaMark mark = arena_mark(ctx->scratch);
    Buf b = buf_new(ctx->scratch);
    int dots = 0;
    bool inside = false;
    for (const char *s = path; *s; s++) {
        if (*s == '.' && !inside && ++dots == depth)
            break;
        if (*s == '[' || *s == ']')
            inside = *s == '[';
        if (any && inside && *s != '[') {
            if (s[-1] == '[')
                buf_putc(&b, '*');
        } else {
            buf_putc(&b, *s);
        }
    }
    Name name = name_of(ctx, b.s, b.n);
    arena_reset(ctx->scratch, mark);
    return name;
}

Name cost_path(Ctx *ctx, const char *path, int depth) { return cut_path(ctx, path, depth, true); }

typedef struct Grouping {
    Ctx *ctx;
    Arena *arena;
    int depth;
    Map of_path; /* path as written -> index in list + 1 */
    Map of_group, of_instance;
    VEC(CostGroup) list;
} Grouping;

static CostGroup *group_of(Grouping *g, Name path)
{
    path = path ? path : name_str(g->ctx, "");
    void **known = map_at(&g->of_path, (uintptr_t)path);
    if (*known)
        return &g->list.v[(uintptr_t)*known - 1];
    Name name = cost_path(g->ctx, path, g->depth);
    void **slot = map_at(&g->of_group, (uintptr_t)name);
    if (!*slot) {
        vec_push(g->arena, &g->list, (CostGroup){.path = name});
        *slot = (void *)(uintptr_t)g->list.n;
    }
    CostGroup *group = &g->list.v[(uintptr_t)*slot - 1];
    Name own = cut_path(g->ctx, path, g->depth, false);
    void **instance = map_at(&g->of_instance, (uintptr_t)own);
    if (!*instance)
        group->instances++;
    *instance = *known = *slot;
    return group;
}

CostGroups model_cost_groups(const Model *m, int depth, Arena *arena)
{
    Ctx *ctx = m->graph->ctx;
    Grouping g = {.ctx = ctx, .arena = arena, .depth = depth};
    map_init(&g.of_path, arena);
    map_init(&g.of_group, arena);
    map_init(&g.of_instance, arena);
    const Reads *reads = find_reads(m, arena);
    for (size_t i = 0; i < m->param.n; i++) {
        const Param *p = &m->param.v[i];
        CostGroup *group = group_of(&g, p->path);
        group->tensors += !p->buffer;
        count_param(&group->count, p, p->value ? active_share(&reads[p->value]) : 1);
    }
    size_t n_roots;
    const Val *root = model_roots(m, ROOTS_ALL, arena, &n_roots);
    const bool *reached = graph_reached(m->graph, root, n_roots, arena);
    for (Val v = 1; v < m->graph->node.n; v++) {
        Work w = {0};
        if (reached[v])
            add_node_work(&w, m->graph, v, tokens_of(m));
        if (w.products + w.attention + w.elementwise == 0)
            continue;
        Work *sum = &group_of(&g, node_at(m->graph, v)->name)->work;
        sum->products += w.products;
        sum->attention += w.attention;
        sum->causal_saving += w.causal_saving;
        sum->elementwise += w.elementwise;
    }
    return (CostGroups){g.list.v, g.list.n};
}

CostGroups cost_largest(CostGroups all, size_t most, Arena *arena)
{
    CostGroups out = {NEW_ARRAY(arena, CostGroup, all.n), 0};
    for (size_t i = 0; i < all.n; i++) {
        int64_t own = all.v[i].count.stored;
        size_t larger = 0; /* groups that are taken before this one */
        for (size_t k = 0; k < all.n; k++) {
            int64_t other = all.v[k].count.stored;
            larger += other > own || (other == own && k < i);
        }
        if (larger < most && own > 0)
            out.v[out.n++] = all.v[i];
    }
    return out;
}

typedef struct ShapeCount {
    Shape shape;
    int64_t tensors, stored; /* stored is -1 once it has been printed */
} ShapeCount;

void cost_shapes(Buf *out, const Model *m, const CostGroup *group, int depth, size_t most)
{
    Ctx *ctx = m->graph->ctx;
    VEC(ShapeCount) kind = {0};
    for (size_t i = 0; i < m->param.n; i++) {
        const Param *p = &m->param.v[i];
        if (p->buffer || cost_path(ctx, p->path, depth) != group->path)
            continue;
        size_t k = 0;
        while (k < kind.n && !shape_eq(&kind.v[k].shape, &p->shape))
            k++;
        if (k == kind.n)
            vec_push(out->arena, &kind, (ShapeCount){.shape = p->shape});
        kind.v[k].tensors++;
        kind.v[k].stored += p->elements;
    }
    size_t shown = 0;
    for (; shown < kind.n && shown < most; shown++) {
        ShapeCount *best = kind.v;
        for (size_t k = 1; k < kind.n; k++)
            if (kind.v[k].stored > best->stored)
                best = &kind.v[k];
        best->stored = -1;
        buf_puts(out, shown ? ", " : "");
        if (best->tensors > 1)
            buf_printf(out, "%lld x ", (long long)best->tensors);
        shape_print(out, &best->shape);
    }
    if (shown < kind.n)
        buf_printf(out, ", %zu more", kind.n - shown);
}
