/* fuse_chains.c - long computations with few numbers a row, which kernels of their own do.
 *
 * In:  a graph.     Out: Fusion.chain.
 * The one idea: a matrix of 4 x 4 a row that is normalised twenty times is more than a thousand operations, all written out. In the
 * kernel of a connection they stand between two loops over the row, one row after the other, and once more in each kernel that
 * reads what comes of them. By themselves they are one loop over rows, whose rounds are the elements of vectors, and the same
 * text for all layers. Where all that a row has is few numbers there is no other loop, and no chain.
 */
#include "fuse.h"

/* Elements at one row, up to what a reader of chains has; 0: it is the same for all rows. */
static int64_t elements_of_row(const Fusion *f, const Shape *s)
{
    bool rows = false;
    int64_t n = 1;
    for (int i = 0; i < s->rank; i++) {
        rows = rows || !dim_static(s->d[i]);
        n = dim_static(s->d[i]) && n < f->target->tuned->chain_readers ? n * s->d[i].n : n;
    }
    return rows ? n : 0;
}

/* Few elements, all of which are written out? */
static bool shape_is_few(const Fusion *f, const Shape *s)
{
    bool few = elements_of_row(f, s) <= f->target->tuned->chain_elements;
    for (int i = 0; i < s->rank; i++)
        few = few && (!dim_static(s->d[i]) || dim_literal(s->d[i]));
    return few;
}

/* Is v computed from few elements of its own row, and is itself few? */
static bool is_few(const Fusion *f, Val v)
{
    const Node *n = node_at(f->g, v);
    bool few = fuse_is_compute(f->g, v) && !fuse_is_view(f, v) && n->op != OP_MATMUL &&
               elements_of_row(f, &n->shape) > 0 && shape_is_few(f, &n->shape);
    for (size_t k = 0; k < n->n_in && few; k++)
        few = elements_of_row(f, shape_of(f->g, n->in[k])) == 0 || shape_is_few(f, shape_of(f->g, n->in[k]));
    return few;
}

typedef struct Chains {
    uint32_t *of;              /* of each value that is few: another of its chain, at last the one that stands for it */
    uint32_t *values, *length; /* of a chain, by who stands for it */
    uint32_t *depth;           /* of a value, in its chain */
    bool *many;                /* of a chain, by who stands for it: a loop over the row reads what comes of it */
} Chains;

static uint32_t who(Chains *c, uint32_t v)
{
    while (c->of[v] != v)
        v = c->of[v] = c->of[c->of[v]];
    return v;
}

/* Values of few elements that v reads, behind views, are of its chain. */
static void join(const Fusion *f, Chains *c, Val v)
{
    const Node *n = node_at(f->g, v);
    for (size_t k = 0; k < n->n_in; k++) {
        Val u = fuse_base(f, n->in[k]);
        if (!c->of[u])
            continue;
        uint32_t a = who(c, v), b = who(c, u);
        c->depth[v] = c->depth[u] >= c->depth[v] ? c->depth[u] + 1 : c->depth[v];
        if (a == b)
            continue;
        c->of[a] = b;
        c->values[b] += c->values[a];
        c->length[b] = c->length[a] > c->length[b] ? c->length[a] : c->length[b];
    }
    uint32_t a = who(c, v);
    c->length[a] = c->depth[v] > c->length[a] ? c->depth[v] : c->length[a];
}

/* A loop over the row that v is computed in reads chains. */
static void mark_readers(const Fusion *f, Chains *c, Val v)
{
    const Node *n = node_at(f->g, v);
    for (size_t k = 0; k < n->n_in; k++) {
        Val u = fuse_base(f, n->in[k]);
        if (c->of[u])
            c->many[who(c, u)] = true;
    }
}

void fuse_find_chains(Fusion *f)
{
    const Tuned *tuned = f->target->tuned;
    size_t n = f->g->node.n;
    f->chain = NEW_ARRAY(f->arena, bool, n);
    if (!f->target->chains || f->unfused)
        return;
    ArenaMark mark = arena_mark(f->tmp);
    Chains c = {NEW_ARRAY(f->tmp, uint32_t, n), NEW_ARRAY(f->tmp, uint32_t, n), NEW_ARRAY(f->tmp, uint32_t, n),
                NEW_ARRAY(f->tmp, uint32_t, n), NEW_ARRAY(f->tmp, bool, n)};
    for (Val v = 1; v < n; v++)
        if (is_few(f, v)) {
            c.of[v] = v;
            c.values[v] = c.depth[v] = 1;
            join(f, &c, v);
        }
    for (Val v = 1; v < n; v++)
        if (fuse_is_compute(f->g, v) && elements_of_row(f, shape_of(f->g, v)) >= tuned->chain_readers)
            mark_readers(f, &c, v);
    for (Val v = 1; v < n; v++)
        if (c.of[v]) {
            uint32_t of = who(&c, v);
            f->chain[v] = c.many[of] && c.values[of] >= tuned->chain_values && c.length[of] >= tuned->chain_length;
        }
    arena_reset(f->tmp, mark);
}
