/* fuse_siblings.c - groups that read one result of a library become one.
 *
 * In:  groups, while nodes are placed and when all are.     Out: fewer groups.
 * The one idea: what a library stores is read once. Where another library's product stands between two readers they can
 * no longer be one, so a reading of which few numbers are left is put beside another before that.
 */
#include "fuse.h"

/* The terms of a sum along rows that leaves few numbers of them, or 0: those of a product are its own factors. */
static Val terms_of_few(const Fusion *f, Val v)
{
    enum { FEW = 64 };
    const Node *n = node_at(f->g, v);
    bool few = n->op == OP_SUM || n->op == OP_MATMUL;
    for (size_t k = 0; k < n->n_in; k++)
        few = few && f->elements[v] * FEW <= f->elements[n->in[k]];
    return !few ? 0 : n->op == OP_SUM ? n->in[0] : v;
}

void fuse_meet_sums(Fusion *f, Val v)
{
    Val terms = terms_of_few(f, v);
    const Node *n = node_at(f->g, terms ? terms : v);
    for (size_t k = 0; k < n->n_in; k++) {
        Val u = fuse_base(f, n->in[k]);
        FuseReaders *r = &f->readers[u];
        if (!node_is_library(f->g, u))
            continue;
        Val other = !terms ? r->few : f->home[r->last] == f->home[v] ? r->before : r->last;
        if (other && f->home[other] != f->home[v])
            fuse_merge(f, (uint32_t)f->home[other], (uint32_t)f->home[v]);
        if (terms) {
            r->few = v;
        } else {
            r->before = f->home[r->last] == f->home[v] ? r->before : r->last;
            r->last = v;
        }
    }
}

/* Does v, of a group that may merge, read a result that another group read before? */
static void meet_siblings(Fusion *f, Val v, Val *reader)
{
    const Node *n = node_at(f->g, v);
    for (size_t k = 0; k < n->n_in; k++) {
        Val u = fuse_base(f, n->in[k]);
        if (!node_is_library(f->g, u))
            continue;
        int32_t mine = f->home[v], other = f->home[reader[u]];
        if (!reader[u] || (other != mine && !fuse_merge(f, (uint32_t)other, (uint32_t)mine)))
            reader[u] = v;
    }
}

void fuse_merge_siblings(Fusion *f)
{
    Val *reader = NEW_ARRAY(f->tmp, Val, f->g->node.n); /* the last one, 0 = none */
    for (Val v = 1; v < f->g->node.n; v++)
        if (f->home[v] >= 0 && f->group.v[f->home[v]].kind == GROUP_ROWS)
            meet_siblings(f, v, reader);
}
