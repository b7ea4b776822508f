/* recompute.c - see recompute.h: what is not kept for the backward pass.
 *
 * In:  a differentiated graph, names of modules.   Out: a graph whose backward nodes read copies.
 * The one idea: a value of a module that other modules read is kept; everything else in it is
 * computed a second time from what the module reads, by nodes that stand where the backward pass
 * first wants them. A guard is an OP_STOP of kind STOP_RECOMPUTE: an identity which makes a copy differ from
 * its original as long as equal nodes are merged, and is taken out after that (graph_release). Random numbers are
 * keyed by their site, so a copy draws the same ones.
 * Whatever is named, an operand of a large product that the backward pass reads for that product alone is
 * computed again too when it comes, element by element, from results of products that the backward pass reads
 * anyway: the kernel that does it reads nothing more for it, and what an activation function has made need not lie
 * in memory until then.
 */
#include "recompute.h"
#include "compiler/graph/op.h"
#include "rewrite.h"

void recompute_begin_copy(Graph *g, Name of)
{
    g->name = name_printf(g->ctx, "%s:again", of ? of : ""); /* for people; no path has a colon */
    g->recomputed = true;
}

/* ---- names ---- */

/* The next segment of a path such as layer[2].ffn.up, without its index: letters and length. What
 * is in brackets may hold dots. */
static const char *next_segment(const char *path, const char **word, size_t *n)
{
    const char *s = path;
    *word = path;
    *n = strcspn(path, ".[");
    for (int depth = 0; *s && (depth || *s != '.'); s++)
        depth += (*s == '[') - (*s == ']');
    return s;
}

/* How long the path is up to and with the first segment that is one of the words; 0: none is. */
static size_t module_length(const char *path, const Name *word, size_t n_word)
{
    for (const char *s = path; s && *s;) {
        const char *text;
        size_t n;
        const char *end = next_segment(s, &text, &n);
        for (size_t i = 0; i < n_word; i++)
            if (strlen(word[i]) == n && !memcmp(word[i], text, n))
                return (size_t)(end - path);
        s = *end ? end + 1 : end;
    }
    return 0;
}

bool recompute_names(const Graph *g, Name word)
{
    for (Val v = 1; v < g->node.n; v++) {
        const Node *n = node_at(g, v);
        if (n->name && n->op != OP_EXT && module_length(n->name, &word, 1))
            return true;
    }
    return false;
}

const Name *recompute_words(const Graph *g, Arena *arena, size_t *n)
{
    VEC(Name) list = {0};
    Map seen;
    map_init(&seen, arena);
    for (Val v = 1; v < g->node.n; v++) {
        const Node *node = node_at(g, v);
        for (const char *s = node->op == OP_EXT ? NULL : node->name; s && *s;) {
            const char *text;
            size_t length;
            const char *end = next_segment(s, &text, &length);
            Name word = name_of(g->ctx, text, length);
            void **slot = map_at(&seen, (uintptr_t)word);
            if (!*slot)
                vec_push(arena, &list, word);
            *slot = (void *)word;
            s = *end ? end + 1 : end;
        }
    }
    *n = list.n;
    return list.v;
}

const Name *recompute_repeated(const Graph *g, Arena *arena, size_t *n)
{
    VEC(Name) list = {0};
    for (Val v = 1; v < g->node.n; v++) {
        const Node *node = node_at(g, v);
        const char *path = node->op == OP_EXT || !node->name ? "" : node->name;
        const char *open = strchr(path, '['), *word = open;
        while (word && word > path && word[-1] != '.')
            word--;
        Name name = word ? name_of(g->ctx, word, (size_t)(open - word)) : NULL;
        bool known = !name;
        for (size_t i = 0; i < list.n; i++)
            known = known || list.v[i] == name;
        if (!known)
            vec_push(arena, &list, name);
    }
    *n = list.n;
    return list.v;
}

/* ---- the second computation ---- */

typedef struct Recompute {
    Rewrite *w;
    const Graph *from; /* of w, as are g and map */
    Graph *g;
    Val last;
    Name *module;             /* by Val of `from`: the path of its module, NULL: it is in none that is named */
    bool *kept;               /* read by what is not in its module */
    uint8_t *use;             /* by Val: how what is behind `last` reads it, of USE_... */
    Val *map, *again, *guard; /* by Val of `from`: the node, its copy, its guard; 0: not made */
} Recompute;

static void find_modules(Recompute *r, const Name *word, size_t n_word)
{
    for (Val v = 1; v <= r->last; v++) {
        const Node *n = node_at(r->from, v);
        size_t length = n->op == OP_EXT || !n->name ? 0 : module_length(n->name, word, n_word);
        r->module[v] = length ? name_of(r->from->ctx, n->name, length) : NULL;
        for (size_t k = 0; k < n->n_in; k++)
            r->kept[n->in[k]] |= r->module[n->in[k]] != r->module[v];
    }
    for (size_t i = 0; i < r->from->out.n; i++)
        r->kept[r->from->out.v[i].value] = true;
}

static bool is_random(const Node *n) { return n->op == OP_RAND || n->op == OP_RANDN; }

/* A kept value as copies read it. Weights and integers are read as they are. */
static Val guarded_value(Recompute *r, Val v)
{
    const Node *n = node_at(r->from, v);
    if (n->op == OP_EXT || n->dtype != DT_REAL || (!n->n_in && !is_random(n)))
        return r->map[v];
    if (!r->guard[v])
        r->guard[v] = ir_stop(r->g, r->map[v], STOP_RECOMPUTE);
    return r->guard[v];
}

static Val make_copy(Recompute *r, Val v, const Val *in)
{
    const Node *n = node_at(r->from, v);
    r->g->span = n->span;
    recompute_begin_copy(r->g, n->name);
    return rewrite_same(r->w, v, in);
}

static Val copy_of(Recompute *r, Val v)
{
    const Node *n = node_at(r->from, v);
    if (is_random(n))
        return guarded_value(r, v);
    if (r->again[v])
        return r->again[v];
    Val *in = NEW_ARRAY(r->g->arena, Val, n->n_in + 1u);
    for (size_t k = 0; k < n->n_in; k++) {
        Val u = n->in[k];
        bool inner = r->module[u] == r->module[v] && !r->kept[u];
        in[k] = inner ? copy_of(r, u) : guarded_value(r, u);
    }
    return r->again[v] = make_copy(r, v, in);
}

/* ---- operands of products ---- */

enum {
    USE_OPERAND = 1,    /* by a large product, perhaps as a view */
    USE_VALUE = 2,      /* by anything else */
    OPERAND_LEAST = 64, /* extents of its result; smaller ones are parts of kernels that have their operands */
    STEPS_MAX = 16      /* nodes that an operand is computed again by */
};

static bool is_large(Dim d) { return !dim_static(d) || d.n >= OPERAND_LEAST; }

static bool is_large_product(const Node *n)
{
    const Shape *s = &n->shape;
    return n->op == OP_EXPERT_MATMUL || n->op == OP_EXPERT_MATMUL_DW ||
           (n->op == OP_MATMUL && s->rank >= 2 && is_large(s->d[s->rank - 2]) && is_large(s->d[s->rank - 1]));
}

/* A view is used as its readers use it. */
static void find_uses(Recompute *r)
{
    for (Val v = (Val)r->from->node.n - 1; v > 0; v--) {
        const Node *n = node_at(r->from, v);
        unsigned use = op_is_view((Op)n->op) ? r->use[v]
                       : v <= r->last        ? 0
                       : is_large_product(n) ? USE_OPERAND
                                             : USE_VALUE;
        for (size_t k = 0; k < n->n_in; k++)
            r->use[n->in[k]] |= (uint8_t)use;
    }
}

/* Functions whose derivative takes another function as costly: it is computed beside the value and kept in place of
 * what both come from, which then is not at hand. */
static bool keeps_derivative(Op op)
{
    return op == OP_GELU || op == OP_GELU_TANH || op == OP_ERF || op == OP_SOFTPLUS || op == OP_POW;
}

static bool lies_in_memory(const Node *n)
{
    return n->op == OP_EXT || n->dtype != DT_REAL || n->op == OP_SDPA || is_large_product(n);
}

/* Is v computed element by element from what libraries leave in memory, past a value on each way that the
 * backward pass reads anyway? `met`: there was one. */
static bool is_at_hand(const Recompute *r, Val v, bool met, int *steps)
{
    const Node *n = node_at(r->from, v);
    met = met || n->op == OP_EXT || n->dtype != DT_REAL || r->use[v] & USE_VALUE;
    if (lies_in_memory(n) || is_random(n))
        return met;
    bool map = op_is_map((Op)n->op) || op_is_view((Op)n->op);
    bool ok = (map || !n->n_in) && !keeps_derivative((Op)n->op) && ++*steps <= STEPS_MAX;
    for (size_t k = 0; ok && k < n->n_in; k++)
        ok = is_at_hand(r, n->in[k], met, steps);
    return ok;
}

static bool is_operand(const Recompute *r, Val v)
{
    Val base = v;
    while (op_is_view((Op)node_at(r->from, base)->op))
        base = node_at(r->from, base)->in[0];
    const Node *n = node_at(r->from, base);
    int steps = 0;
    return r->use[v] == USE_OPERAND && r->use[base] == USE_OPERAND && n->n_in && !lies_in_memory(n) &&
           is_at_hand(r, base, false, &steps);
}

static Val operand_copy(Recompute *r, Val v)
{
    const Node *n = node_at(r->from, v);
    if (r->use[v] & USE_VALUE)
        return guarded_value(r, v);
    if (n->op == OP_EXT || n->dtype != DT_REAL || !n->n_in)
        return r->map[v];
    if (r->again[v])
        return r->again[v];
    Val *in = NEW_ARRAY(r->g->arena, Val, n->n_in + 1u);
    for (size_t k = 0; k < n->n_in; k++)
        in[k] = operand_copy(r, n->in[k]);
    return r->again[v] = make_copy(r, v, in);
}

/* What a node behind the forward pass reads in place of u. */
static Val value_behind(Recompute *r, Val u)
{
    if (u > r->last)
        return r->map[u];
    if (r->module[u] && !r->kept[u])
        return copy_of(r, u);
    return is_operand(r, u) ? operand_copy(r, u) : r->map[u];
}

static Val recomputed(Rewrite *w, Val v, void *user)
{
    Recompute *r = user;
    const Node *n = node_at(r->from, v);
    Val *in = rewrite_inputs(w, w->to->arena, v);
    for (size_t k = 0; k < n->n_in && v > r->last; k++)
        in[k] = value_behind(r, n->in[k]);
    w->to->span = n->span; /* copies have names of their own */
    w->to->name = n->name;
    w->to->recomputed = n->recomputed;
    return rewrite_same(w, v, in);
}

Graph *graph_recompute(const Graph *g, Val last, const Name *word, size_t n_word, Arena *arena)
{
    size_t n = g->node.n;
    Rewrite w = rewrite_begin(g, arena, arena, n + n / 2);
    Recompute r = {.w = &w, .from = g, .g = w.to, .map = w.map, .last = last};
    r.module = NEW_ARRAY(arena, Name, n);
    r.kept = NEW_ARRAY(arena, bool, n);
    r.again = NEW_ARRAY(arena, Val, n);
    r.guard = NEW_ARRAY(arena, Val, n);
    r.use = NEW_ARRAY(arena, uint8_t, n);
    find_modules(&r, word, n_word);
    find_uses(&r);
    return graph_rewrite(&w, NULL, recomputed, &r);
}

/* ---- afterwards ---- */

bool recompute_is_guard(Op op, const Attr *a) { return op == OP_STOP && a->i == STOP_RECOMPUTE; }

static bool is_guard(const Node *n) { return recompute_is_guard((Op)n->op, &n->a); }

static Val released(Rewrite *w, Val v, void *user)
{
    const Node *n = node_at(w->from, v);
    (void)user;
    if (!is_guard(n))
        return rewrite_same(w, v, NULL);
    bool drawn = is_random(node_at(w->from, n->in[0])); /* a second time */
    return drawn ? rewrite_same(w, n->in[0], NULL) : w->map[n->in[0]];
}

Graph *graph_release(const Graph *g, Arena *arena)
{
    bool any = false;
    for (Val v = 1; v < g->node.n && !any; v++)
        any = is_guard(node_at(g, v));
    if (!any)
        return (Graph *)g;
    Rewrite w = rewrite_begin(g, arena, arena, g->node.n);
    return graph_rewrite(&w, NULL, released, NULL);
}
