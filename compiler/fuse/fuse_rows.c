/* fuse_rows.c - how many rows each group runs over.
 *
 * In:  groups with the row counts that would fit.     Out: the one to take; bytes read and
 *      written.
 * The one idea: tokens where there are tokens, so that everything of a token stays in one row;
 * a flat loop where nothing but elements is needed; else the finest rows that leave a vector.
 */
#include "fuse.h"

static bool is_reduce(const Fusion *f, Val v) { return op_info((Op)node_at(f->g, v)->op)->class == CLASS_REDUCE; }

/* the largest thing a group walks through */
static int64_t group_extent(const Fusion *f, const Group *gr)
{
    int64_t most = 1;
    for (size_t m = 0; m < gr->member.n; m++) {
        Val v = gr->member.v[m];
        int64_t size = f->elements[is_reduce(f, v) ? node_at(f->g, v)->in[0] : v];
        most = size > most ? size : most;
    }
    return most;
}

/* Only elements, all results of one size. */
static bool only_maps(const Fusion *f, const Group *gr)
{
    for (size_t m = 0; m < gr->member.n; m++)
        if (is_reduce(f, gr->member.v[m]) || node_at(f->g, gr->member.v[m])->op == OP_MATMUL)
            return false;
    for (size_t i = 1; i < gr->store.n; i++)
        if (f->elements[gr->store.v[i]] != f->elements[gr->store.v[0]])
            return false;
    return true;
}

/* A reduction that no row count fits: rows of its result, its last axis left as the vector. */
static Dim rows_alone(const Fusion *f, Val v)
{
    const Shape *s = shape_of(f->g, v);
    Dim rows = DIM(1), all = DIM(1);
    bool ok = true;
    for (int i = 0; i < s->rank; i++) {
        ok = ok && (i + 1 == s->rank || dim_mul(rows, s->d[i], &rows));
        ok = ok && dim_mul(all, s->d[i], &all);
    }
    if (!ok)
        vwn_bug(f->ctx, "the size of a tensor overflows");
    return dim_at(rows, f->B, f->T) == 1 ? all : rows;
}

static bool flat(const Fusion *f, uint32_t group, Dim rows)
{
    const Group *gr = &f->group.v[group];
    if (dim_at(rows, f->B, f->T) != f->elements[gr->store.v[0]])
        return false;
    ArenaMark mark = arena_mark(f->tmp);
    bool yes = f->is_flat(f->tmp, f, group, rows);
    arena_reset(f->tmp, mark);
    return yes;
}

/* Symbols first, then a vector inside, then coarse rows of tokens or fine ones of anything
 * else. */
static int64_t score(const Fusion *f, Dim d, int64_t whole)
{
    bool tokens = d.b + d.t > 0;
    int64_t rows = dim_at(d, f->B, f->T), lanes = whole / (rows ? rows : 1);
    int64_t s = (int64_t)(d.b + d.t) << 50;
    s += lanes >= f->target->tuned->row_lanes ? (int64_t)1 << 40 : lanes;
    s += tokens ? -d.n : d.n < (1 << 30) ? d.n : 1 << 30;
    return lanes <= 1 && tokens ? s - ((int64_t)1 << 55) : s;
}

static Dim best_rows(const Fusion *f, uint32_t group)
{
    const Group *gr = &f->group.v[group];
    if (gr->alone || gr->choice.n == 0)
        return rows_alone(f, gr->store.v[0]);
    for (size_t i = 0; i < gr->choice.n; i++)
        if (only_maps(f, gr) && flat(f, group, gr->choice.v[i]))
            return gr->choice.v[i];
    int64_t whole = group_extent(f, gr);
    Dim best = gr->choice.v[0];
    for (size_t i = 1; i < gr->choice.n; i++)
        if (score(f, gr->choice.v[i], whole) > score(f, best, whole))
            best = gr->choice.v[i];
    return best;
}

static void add_reads(Fusion *f, Group *gr, uint32_t group, Val v);

/* most: elements of u that are wanted */
static void add_read(Fusion *f, Group *gr, uint32_t group, Val u, int64_t most)
{
    const Node *n = node_at(f->g, u);
    if (f->seen[u] == f->stamp || fuse_empty(f, u))
        return;
    f->seen[u] = f->stamp;
    if (n->op == OP_EXT || !fuse_rematerializes(f, group, u)) {
        if (f->home[u] == (int32_t)group)
            return;
        gr->bytes += (double)(f->elements[u] < most ? f->elements[u] : most) * (n->dtype == DT_INT ? 8 : 4);
        if (f->elements[u] > most)
            vec_push(f->arena, &gr->unread, ((Unread){u, f->elements[u] - most}));
        return;
    }
    add_reads(f, gr, group, u);
}

/* What the group reads for v; of a table the rows that are read by index. */
static void add_reads(Fusion *f, Group *gr, uint32_t group, Val v)
{
    const Node *n = node_at(f->g, v);
    for (size_t k = 0; k < n->n_in; k++)
        add_read(f, gr, group, n->in[k], n->op == OP_GATHER && k == 0 ? f->elements[v] : INT64_MAX);
}

void fuse_choose_rows(Fusion *f)
{
    for (uint32_t i = 0; i < f->group.n; i++) {
        Group *gr = &f->group.v[i];
        if (gr->dead)
            continue;
        if (gr->kind == GROUP_ROWS)
            gr->rows = best_rows(f, i);
        f->stamp++;
        for (size_t m = 0; m < gr->member.n; m++)
            add_reads(f, gr, i, gr->member.v[m]);
        for (size_t m = 0; m < gr->store.n; m++)
            gr->bytes += (double)f->elements[gr->store.v[m]] * (node_at(f->g, gr->store.v[m])->dtype == DT_INT ? 8 : 4);
    }
}
