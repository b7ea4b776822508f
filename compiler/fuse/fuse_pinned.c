/* fuse_pinned.c - values that are computed once, because they are compared with selections of themselves.
 *
 * In:  a graph.     Out: Fusion.pinned, and who may not be in one group with a value that is.
 * The one idea: x == max(x) holds where both are the same bits. Two kernels, or two loops of one, may compute x with
 * different last bits (a division here, a product with the inverse there), and then it holds nowhere: a maximum
 * would have no gradient. So x is stored, and whoever reads it loads it; what only moves or selects keeps the bits.
 * Two more are pinned. The pieces of a concatenation of many (decompose.c), since each is to have a kernel of its own.
 * And costly functions of positions that several read, as tables of angles: however many layers read them, they are one
 * kernel.
 */
#include "fuse.h"

/* Is each element of v an element that it reads, whichever? Those are of its inputs from `first` on. */
static bool selects(const Graph *g, Val v, size_t *first)
{
    const Node *n = node_at(g, v);
    OpClass class = op_info((Op)n->op)->class;
    *first = n->op == OP_WHERE ? 1 : 0;
    return class == CLASS_VIEW || class == CLASS_MOVE || n->op == OP_AMAX || n->op == OP_MAX || n->op == OP_MIN ||
           n->op == OP_WHERE;
}

/* The computed values that v is selected from: with the stamp of this walk in f->seen; those that also have the stamp
 * `other` are pinned. */
static void walk_selected(Fusion *f, Val v, uint32_t other)
{
    VEC(Val) left = {0};
    vec_push(f->tmp, &left, v);
    while (left.n) {
        Val u = left.v[--left.n];
        const Node *n = node_at(f->g, u);
        size_t first;
        if (n->dtype != DT_REAL || f->seen[u] == f->stamp)
            continue;
        bool met = other && f->seen[u] == other;
        f->seen[u] = f->stamp;
        if (selects(f->g, u, &first)) {
            for (size_t k = first; k < n->n_in; k++)
                vec_push(f->tmp, &left, n->in[k]);
        } else if (met && fuse_is_compute(f->g, u)) {
            f->pinned[u] = true;
        }
    }
}

static bool compares(const Graph *g, Val v)
{
    const Node *n = node_at(g, v);
    bool real = n->n_in == 2 && node_at(g, n->in[0])->dtype == DT_REAL && node_at(g, n->in[1])->dtype == DT_REAL;
    return real && (n->op == OP_EQ || n->op == OP_LT || n->op == OP_LE);
}

/* Costly functions of places and constants alone, wanted more than once. */
static void pin_tables(Fusion *f)
{
    enum { OTHER, FIXED, PLACES };
    const Graph *g = f->g;
    size_t n = g->node.n;
    char *of = NEW_ARRAY(f->tmp, char, n);
    uint32_t *readers = NEW_ARRAY(f->tmp, uint32_t, n);
    for (Val v = 1; v < n; v++) {
        const Node *node = node_at(g, v);
        Op op = (Op)node->op;
        bool moves = op_is_map(op) || op_is_view(op);
        of[v] = op == OP_IOTA ? PLACES : op == OP_CONST || op == OP_FILL ? FIXED : OTHER;
        for (size_t k = 0; k < node->n_in; k++)
            readers[node->in[k]]++;
        for (size_t k = 0; k < node->n_in && moves; k++) {
            char in = of[node->in[k]];
            of[v] = in == OTHER || (k && of[v] == OTHER) ? OTHER : in > of[v] ? in : of[v];
        }
    }
    for (Val v = (Val)n - 1; v; v--) /* who reads a view reads what it shows */
        if (op_is_view((Op)node_at(g, v)->op))
            readers[node_at(g, v)->in[0]] += readers[v] > 1;
    for (Val v = 1; v < n; v++) {
        Op op = (Op)node_at(g, v)->op;
        bool costly = op_is_map(op) && op_info(op)->cost >= OP_CALL;
        f->pinned[v] = f->pinned[v] || (of[v] == PLACES && costly && readers[v] > 1);
    }
}

void fuse_find_pinned(Fusion *f)
{
    f->pinned = NEW_ARRAY(f->arena, bool, f->g->node.n);
    for (Val v = 1; v < f->g->node.n; v++) {
        if (concat_of_parts(f->g, v))
            f->pinned[v] = true;
        if (!compares(f->g, v))
            continue;
        ArenaMark mark = arena_mark(f->tmp);
        uint32_t one = ++f->stamp;
        walk_selected(f, node_at(f->g, v)->in[0], 0);
        ++f->stamp;
        walk_selected(f, node_at(f->g, v)->in[1], one);
        arena_reset(f->tmp, mark);
    }
    ArenaMark mark = arena_mark(f->tmp);
    pin_tables(f);
    arena_reset(f->tmp, mark);
}

bool fuse_reads_pinned(Fusion *f, Val v, int32_t group)
{
    if (!f->group.v[group].pins)
        return false;
    ArenaMark mark = arena_mark(f->tmp);
    VEC(Val) left = {0};
    bool found = false;
    f->stamp++;
    vec_push(f->tmp, &left, v);
    while (left.n && !found) {
        const Node *n = node_at(f->g, left.v[--left.n]);
        for (size_t k = 0; k < n->n_in; k++) {
            Val u = n->in[k];
            if (f->seen[u] == f->stamp)
                continue;
            f->seen[u] = f->stamp;
            found = found || (f->pinned[u] && f->home[u] == group);
            if (f->home[u] < 0)
                vec_push(f->tmp, &left, u);
        }
    }
    arena_reset(f->tmp, mark);
    return found;
}
