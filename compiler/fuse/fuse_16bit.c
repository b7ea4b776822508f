/* fuse_16bit.c - which values lie in memory in 16 bits.
 *
 * In:  groups of a graph in which values are rounded (plan/precision.c).     Out: Fusion.in_16bit, Fusion.as_stored.
 * The one idea: a value has 16-bit storage when all that read it can load it so; else it stays in float32.
 */
#include "fuse.h"
#include "compiler/graph/op.h"

bool fuse_is_attention(const Graph *g, Val v)
{
    return node_at(g, v)->op == OP_SDPA || node_at(g, v)->op == OP_SDPA_GRAD;
}

/* Gradients of queries, keys and values are results of one node. */
bool fuse_is_attention_result(const Graph *g, Val v)
{
    const Node *n = node_at(g, v);
    return fuse_is_attention(g, v) || (n->op == OP_AUX && node_at(g, n->in[0])->op == OP_SDPA_GRAD);
}

/* Whole attention is computed in 16 bits, or none. The operands that are elements of heads: all but the
 * logarithms of sums, and first keys. */
bool fuse_attention_takes(const Graph *g, Val v, size_t k)
{
    return k < 3 || (node_at(g, v)->op == OP_SDPA_GRAD && (k == 3 || k == 5));
}

/* A product of the library, or by expert: of its first two operands. */
static bool is_product(const Graph *g, Val v)
{
    return op_is_expert((Op)node_at(g, v)->op) || (node_at(g, v)->op == OP_MATMUL && node_is_library(g, v));
}

bool fuse_half_product(const Fusion *f, Val v)
{
    const Node *n = node_at(f->g, v);
    return f->in_16bit && is_product(f->g, v) && f->in_16bit[fuse_base(f, n->in[0])] &&
           f->in_16bit[fuse_base(f, n->in[1])];
}

bool fuse_is_half(const Fusion *f, Val v)
{
    while (op_is_view((Op)node_at(f->g, v)->op) && !(f->in_16bit && f->in_16bit[v]))
        v = node_at(f->g, v)->in[0];
    return node_is_rounded(f->g, v, f->half) || (f->in_16bit && f->in_16bit[v]);
}

/* What is rounded, and what a device's library rounds when it stores: all who read that round it. */
static void find_candidates(Fusion *f)
{
    const Graph *g = f->g;
    bool *read = NEW_ARRAY(f->tmp, bool, g->node.n), *other = NEW_ARRAY(f->tmp, bool, g->node.n);
    for (size_t i = 0; i < g->out.n; i++)
        other[g->out.v[i].value] = true;
    for (Val v = 1; v < g->node.n; v++)
        for (size_t k = 0; k < node_at(g, v)->n_in; k++) {
            Val u = node_at(g, v)->in[k];
            read[u] = read[u] || node_is_rounded(g, v, f->half);
            other[u] = other[u] || (!node_is_rounded(g, v, f->half) && node_at(g, v)->op != OP_AUX);
        }
    f->in_16bit = NEW_ARRAY(f->arena, bool, g->node.n);
    f->as_stored = NEW_ARRAY(f->arena, bool, g->node.n);
    for (Val v = 1; v < g->node.n; v++) {
        bool library = is_product(g, v) || fuse_is_attention_result(g, v);
        f->in_16bit[v] = node_is_rounded(g, v, f->half) ||
                         (f->target->half_kernels && library && read[v] && !other[v]) ||
                         (f->target->half_kernels && concat_stored(g, v));
        f->as_stored[v] = node_is_rounded(g, v, f->half) && !node_is_rounded(g, node_at(g, v)->in[0], f->half) &&
                          f->in_16bit[node_at(g, v)->in[0]];
    }
}

static bool give_up(Fusion *f, Val v)
{
    bool was = f->in_16bit[v];
    f->in_16bit[v] = false;
    return was;
}

/* The further results of each node, one after the other: the first by its node, the next by itself; 0: none. */
static Val *find_results(const Fusion *f)
{
    const Graph *g = f->g;
    Val *next = NEW_ARRAY(f->tmp, Val, g->node.n);
    for (Val v = (Val)g->node.n - 1; v > 0; v--)
        if (node_at(g, v)->op == OP_AUX) {
            Val of = node_at(g, v)->in[0];
            next[v] = next[of];
            next[of] = v;
        }
    return next;
}

/* Takes or gives node v, of a library, everything that may lie in 16 bits so? Else nothing is. results: of find_results(). */
static bool settle(Fusion *f, Val v, const Val *results)
{
    const Graph *g = f->g;
    const Node *n = node_at(g, v);
    bool product = is_product(g, v), attention = f->target->half_kernels && fuse_is_attention(g, v);
    bool row = f->target->half_kernels && concat_stored(g, v), copies = row && node_is_library(g, v);
    bool changed = false;
    bool all = !row || f->in_16bit[v];
    for (size_t k = 0; (product || attention || row) && k < n->n_in; k++)
        if (product ? k < 2 : row || fuse_attention_takes(g, v, k))
            all = all && f->in_16bit[fuse_base(f, n->in[k])];
    for (Val u = v; attention && u; u = results[u])
        all = all && (!fuse_is_attention_result(g, u) || f->in_16bit[u]);
    for (size_t k = 0; k < n->n_in; k++) {
        bool takes = (product && k < 2) || copies || (attention && fuse_attention_takes(g, v, k));
        if (takes ? !all : !(row || (f->target->half_kernels && n->op == OP_SCATTER_ADD)))
            changed |= give_up(f, fuse_base(f, n->in[k]));
    }
    for (Val u = v; !all && u; u = results[u])
        changed |= give_up(f, u);
    return changed;
}

/* What is stored rounded, and read in 16 bits by all who read it: products, and on a device attention and
 * kernels. */
void fuse_choose_16bit(Fusion *f)
{
    const Graph *g = f->g;
    const Val *results = find_results(f);
    find_candidates(f);
    for (bool changed = true; changed;) {
        changed = false;
        for (size_t i = 0; i < g->out.n; i++)
            if (g->out.v[i].ext < 0 || g->ext.v[g->out.v[i].ext].kind != EXT_COPY)
                changed |= give_up(f, fuse_base(f, g->out.v[i].value));
        for (Val v = 1; v < g->node.n; v++) {
            if (node_is_library(g, v) || concat_stored(g, v))
                changed |= settle(f, v, results);
            for (size_t k = 0;
                 !f->target->half_kernels && !fuse_is_view(f, v) && !node_is_library(g, v) && k < node_at(g, v)->n_in;
                 k++)
                changed |= give_up(f, fuse_base(f, node_at(g, v)->in[k]));
        }
        for (Val v = 1; v < g->node.n; v++) /* what its library does not round is rounded behind it */
            if (f->as_stored[v] && !f->in_16bit[node_at(g, v)->in[0]])
                f->as_stored[v] = false;
    }
}
