/* fuse_places.c - see fuse.h: at how many places a kernel would compute a value for one element of another.
 *
 * In:  members of groups, and what is computed wherever they want it.     Out: places, by how far away they are.
 * The one idea: readers that want an element of a value at their own place share one computation of it. A reader that
 * moves the value (a shift, a concatenation) wants another element of it, and of all that the value comes from.
 */
#include "fuse.h"

enum {
    PLACES_MAX = 8,  /* at which a kernel computes a member for one element of another */
    PLACES_MOST = 64 /* that are told apart: more is as bad */
};

/* How many elements away, ascending. */
typedef struct Places {
    int n;
    const int64_t *away;
} Places;

/* By how many elements v moves its input k along an axis that is more than a few long. Loops over shorter axes are written
 * out: what is wanted twice is computed once there. */
static int64_t moved_by(const Fusion *f, Val v, size_t k)
{
    const Node *n = node_at(f->g, v);
    const Shape *s = shape_of(f->g, n->in[k]);
    int axis = (int)n->a.i;
    int64_t by = n->a.j;
    switch ((Op)n->op) {
    case OP_SLICE:
    case OP_PAD:
    case OP_SHIFT:
    case OP_ROLL: break;
    case OP_CONCAT:
        by = 0;
        for (size_t i = 0; i < k; i++)
            by += dim_at(shape_of(f->g, n->in[i])->d[axis], f->B, f->T);
        break;
    default: return 0;
    }
    if (dim_literal(n->shape.d[axis]) && dim_literal(s->d[axis]))
        return 0;
    for (int i = axis + 1; i < s->rank; i++)
        by *= dim_at(s->d[i], f->B, f->T);
    return n->op == OP_SLICE ? -by : by;
}

struct Places *fuse_new_places(Arena *arena, size_t values) { return NEW_ARRAY(arena, Places, values); }

int64_t fuse_places(const Fusion *f, Val v) { return f->places[v].n ? f->places[v].n : 1; }

/* Adds to the places of v those of `from`, each moved by `by`. */
static void add_places(Fusion *f, Val v, const Places *from, int64_t by)
{
    Places old = f->places[v];
    int64_t *away = arena_take(f->tmp, PLACES_MOST * sizeof *away);
    int i = 0, j = 0, n = 0;
    while (n < PLACES_MOST && (i < old.n || j < from->n)) {
        bool first = j == from->n || (i < old.n && old.away[i] <= from->away[j] + by);
        int64_t next = first ? old.away[i] : from->away[j] + by;
        i += i < old.n && old.away[i] == next;
        j += j < from->n && from->away[j] + by == next;
        away[n++] = next;
    }
    f->places[v] = (Places){n, away};
}

void fuse_count_places(Fusion *f, Vals *all)
{
    static const int64_t here = 0;
    fuse_sort(all->v, all->n);
    for (size_t i = all->n; i-- > 0;) {
        const Node *n = node_at(f->g, all->v[i]);
        Places *p = &f->places[all->v[i]];
        if (!p->n)
            *p = (Places){1, &here};
        for (size_t k = 0; k < n->n_in; k++) {
            Places *in = &f->places[n->in[k]];
            int64_t by = moved_by(f, all->v[i], k);
            if (!in->n && by == 0)
                *in = *p;
            else if (in->away != p->away || in->n != p->n || by)
                add_places(f, n->in[k], p, by);
        }
    }
}

void fuse_forget_places(Fusion *f, const Vals *all)
{
    for (size_t i = 0; i < all->n; i++) {
        const Node *n = node_at(f->g, all->v[i]);
        f->places[all->v[i]].n = 0;
        for (size_t k = 0; k < n->n_in; k++)
            f->places[n->in[k]].n = 0;
    }
}

/* v, and what is computed wherever it wants it. *moves: something of that is moved. */
static void add_way(Fusion *f, Val v, Vals *all, bool *moves)
{
    const Node *n = node_at(f->g, v);
    vec_push(f->tmp, all, v);
    for (size_t k = 0; k < n->n_in; k++) {
        Val u = n->in[k];
        if (fuse_empty(f, u))
            continue;
        *moves = *moves || moved_by(f, v, k);
        if (f->home[u] < 0 && f->seen[u] != f->stamp) {
            f->seen[u] = f->stamp;
            add_way(f, u, all, moves);
        }
    }
}

bool fuse_reads_moved(Fusion *f, Val v)
{
    ArenaMark mark = arena_mark(f->tmp);
    Vals all = {0};
    bool moves = false;
    f->stamp++;
    add_way(f, v, &all, &moves);
    arena_reset(f->tmp, mark);
    return moves;
}

bool fuse_few_places(Fusion *f, const Group *a, const Group *b, Val v)
{
    const Group *both[2] = {a, b};
    ArenaMark mark = arena_mark(f->tmp);
    Vals all = {0};
    bool few = true, moves = false;
    f->stamp++;
    for (int i = 0; i < 2; i++)
        for (size_t m = 0; both[i] && m < both[i]->member.n; m++)
            add_way(f, both[i]->member.v[m], &all, &moves);
    if (v)
        add_way(f, v, &all, &moves);
    if (moves) {
        fuse_count_places(f, &all);
        for (size_t i = 0; i < all.n; i++)
            few = few && (f->home[all.v[i]] < 0 || fuse_places(f, all.v[i]) <= PLACES_MAX);
        fuse_forget_places(f, &all);
    }
    arena_reset(f->tmp, mark);
    return few;
}

bool fuse_is_place(const Graph *g, Val v)
{
    const Node *n = node_at(g, v);
    while (n->op == OP_TO_REAL || n->op == OP_RESHAPE)
        n = node_at(g, n->in[0]);
    return n->op == OP_IOTA;
}
