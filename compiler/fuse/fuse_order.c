/* fuse_order.c - which group waits for which, and the order of launches.
 *
 * In:  edges between groups, as nodes are placed, groups that become one.
 * Out: whether one group must run before another; all groups in an order that keeps to that.
 * The one idea: beside its edges each group has a row of bits, the groups that must run before
 * it. Groups are added behind most others, so a row is seldom changed after others were made of
 * it, and the question that fusion asks most is a bit.
 */
#include "fuse.h"

/* ---- rows of bits ---- */

enum { WORD = 64 };

static uint64_t *row_of(const Fusion *f, uint32_t group) { return f->above + (size_t)group * f->row_words; }

static bool has(const uint64_t *row, uint32_t group) { return row[group / WORD] >> group % WORD & 1; }

static void add(uint64_t *row, uint32_t group) { row[group / WORD] |= (uint64_t)1 << group % WORD; }

/* Words [from, to) of a row. */
typedef struct Words {
    size_t from, to;
} Words;

static void join(uint64_t *row, const uint64_t *other, Words w)
{
    for (size_t i = w.from; i < w.to; i++)
        row[i] |= other[i];
}

/* Where two rows differ. */
static Words difference(const Fusion *f, const uint64_t *row, const uint64_t *other)
{
    Words w = {0, (f->group.n + WORD - 1) / WORD};
    while (w.from < w.to && row[w.from] == other[w.from])
        w.from++;
    while (w.to > w.from && row[w.to - 1] == other[w.to - 1])
        w.to--;
    return w;
}

/* Room for one group more; rows become longer all together. */
static void make_room(Fusion *f, size_t groups)
{
    size_t words = f->row_words ? f->row_words : 4;
    if (groups <= f->rows_most)
        return;
    while (words * WORD < groups)
        words *= 2;
    uint64_t *above = NEW_ARRAY(f->tmp, uint64_t, words * WORD * words);
    for (size_t i = 0; i < f->rows_most; i++)
        memcpy(above + i * words, row_of(f, (uint32_t)i), f->row_words * sizeof *above);
    f->above = above;
    f->row_words = words;
    f->rows_most = words * WORD;
}

void fuse_new_row(Fusion *f, uint32_t group)
{
    make_room(f, (size_t)group + 1);
    add(row_of(f, group), group);
}

bool fuse_reaches(const Fusion *f, uint32_t from, uint32_t to) { return has(row_of(f, to), from); }

/* ---- edges ---- */

/* What waits for `group` waits for `pred`, and so for what that waits for: all in these words. */
static void pass_on(Fusion *f, uint32_t group, uint32_t pred, Words new)
{
    for (uint32_t i = 0; f->group.v[group].predecessors && i < f->group.n; i++)
        if (has(row_of(f, i), group) && !has(row_of(f, i), pred) && !f->group.v[i].dead)
            join(row_of(f, i), row_of(f, pred), new);
}

void fuse_add_pred(Fusion *f, uint32_t group, int32_t pred)
{
    Group *gr = &f->group.v[group];
    if (pred < 0 || pred == (int32_t)group)
        return;
    if (!fuse_reaches(f, (uint32_t)pred, group)) {
        Words new = difference(f, row_of(f, group), row_of(f, (uint32_t)pred));
        pass_on(f, group, (uint32_t)pred, new);
        join(row_of(f, group), row_of(f, (uint32_t)pred), new);
    } else {
        for (size_t i = 0; i < gr->pred.n; i++)
            if (gr->pred.v[i] == (uint32_t)pred)
                return;
    }
    f->group.v[pred].predecessors++;
    vec_push(f->arena, &gr->pred, (uint32_t)pred);
}

bool fuse_may_join(const Fusion *f, uint32_t a, uint32_t b)
{
    const Group *x = &f->group.v[a], *y = &f->group.v[b];
    for (size_t i = 0; i < y->pred.n; i++)
        if (y->pred.v[i] != a && fuse_reaches(f, a, y->pred.v[i]))
            return false;
    for (size_t i = 0; i < x->pred.n; i++)
        if (x->pred.v[i] != b && fuse_reaches(f, b, x->pred.v[i]))
            return false;
    return true;
}

/* a in place of b in what a group waits for. */
static void rename_pred(Fusion *f, uint32_t group, uint32_t a, uint32_t b)
{
    Group *gr = &f->group.v[group];
    for (size_t k = 0; k < gr->pred.n; k++)
        if (gr->pred.v[k] == b) {
            gr->pred.v[k] = a;
            f->group.v[a].predecessors++;
            f->group.v[b].predecessors--;
        }
}

static void drop_preds(Fusion *f, uint32_t group, uint32_t a, uint32_t b)
{
    Group *gr = &f->group.v[group];
    size_t keep = 0;
    for (size_t i = 0; i < gr->pred.n; i++)
        if (gr->pred.v[i] == a || gr->pred.v[i] == b)
            f->group.v[gr->pred.v[i]].predecessors--;
        else
            gr->pred.v[keep++] = gr->pred.v[i];
    gr->pred.n = keep;
}

/* Does a group that is not `other` wait for this one? */
static bool others_wait(const Fusion *f, uint32_t group, uint32_t other)
{
    const Group *gr = &f->group.v[other];
    uint32_t own = 0;
    for (size_t i = 0; i < gr->pred.n; i++)
        own += gr->pred.v[i] == group;
    return f->group.v[group].predecessors > own;
}

void fuse_join_edges(Fusion *f, uint32_t a, uint32_t b)
{
    Group *y = &f->group.v[b];
    uint64_t *row = row_of(f, a);
    Words new = difference(f, row, row_of(f, b));
    bool others = others_wait(f, a, b) || others_wait(f, b, a);
    join(row, row_of(f, b), new);
    for (uint32_t i = 0; others && i < f->group.n; i++) {
        bool first = has(row_of(f, i), a), second = has(row_of(f, i), b);
        if (second && i != a && !f->group.v[i].dead)
            rename_pred(f, i, a, b);
        if (first != second && i != a && !f->group.v[i].dead) {
            join(row_of(f, i), row, new);
            add(row_of(f, i), a);
        }
    }
    for (size_t i = 0; i < y->pred.n; i++) {
        fuse_add_pred(f, a, (int32_t)y->pred.v[i]);
        f->group.v[y->pred.v[i]].predecessors--;
    }
    y->pred.n = 0;
    drop_preds(f, a, a, b);
}

/* ---- the order ---- */

typedef struct Sorting {
    const Fusion *f;
    uint32_t *waits;        /* by group: for how many that have not run */
    uint32_t *begin, *next; /* who waits for a group: next[begin[g] .. begin[g + 1]) */
    uint32_t *ready;        /* a heap: the group that is to run first above */
    bool *at_once;          /* by group: it runs as soon as it can */
    size_t n_ready;
} Sorting;

/* In the order of the graph, in which each group comes by what it ends with. */
static bool earlier(const Sorting *s, uint32_t a, uint32_t b)
{
    if (s->at_once[a] != s->at_once[b])
        return s->at_once[a];
    Val x = s->f->group.v[a].last, y = s->f->group.v[b].last;
    return x != y ? x < y : a < b;
}

static void put_ready(Sorting *s, uint32_t group)
{
    size_t at = s->n_ready++;
    for (; at > 0 && earlier(s, group, s->ready[(at - 1) / 2]); at = (at - 1) / 2)
        s->ready[at] = s->ready[(at - 1) / 2];
    s->ready[at] = group;
}

static uint32_t take_ready(Sorting *s)
{
    uint32_t first = s->ready[0], moved = s->ready[--s->n_ready];
    size_t at = 0;
    for (;;) {
        size_t child = 2 * at + 1;
        if (child + 1 < s->n_ready && earlier(s, s->ready[child + 1], s->ready[child]))
            child++;
        if (child >= s->n_ready || !earlier(s, s->ready[child], moved))
            break;
        s->ready[at] = s->ready[child];
        at = child;
    }
    s->ready[at] = moved;
    return first;
}

/* An edge that counts: dead groups run never and are waited for by nobody. */
static bool counts(const Fusion *f, size_t group, uint32_t pred)
{
    return pred != group && !f->group.v[group].dead && !f->group.v[pred].dead;
}

static void find_waiting(Sorting *s)
{
    const Fusion *f = s->f;
    size_t n = f->group.n;
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < f->group.v[i].pred.n; k++)
            if (counts(f, i, f->group.v[i].pred.v[k])) {
                s->waits[i]++;
                s->begin[f->group.v[i].pred.v[k] + 1]++;
            }
    for (size_t i = 0; i < n; i++)
        s->begin[i + 1] += s->begin[i];
    uint32_t *at = NEW_ARRAY(f->tmp, uint32_t, n + 1);
    memcpy(at, s->begin, n * sizeof *at);
    s->next = NEW_ARRAY(f->tmp, uint32_t, s->begin[n] + 1);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < f->group.v[i].pred.n; k++)
            if (counts(f, i, f->group.v[i].pred.v[k]))
                s->next[at[f->group.v[i].pred.v[k]]++] = (uint32_t)i;
}

/* What adds to a gradient stands at the end of the graph; until it has run, what it adds takes memory. */
static void find_additions(const Sorting *s)
{
    const Fusion *f = s->f;
    const Graph *g = f->g;
    for (size_t i = 0; i < g->out.n; i++) {
        const Node *n = node_at(g, fuse_base(f, g->out.v[i].value));
        int32_t ext = g->out.v[i].ext, home = f->home[fuse_base(f, g->out.v[i].value)];
        if (ext < 0 || home < 0 || g->ext.v[ext].kind != EXT_GRAD || n->op != OP_ADD)
            continue;
        for (size_t k = 0; k < n->n_in; k++) {
            const Node *u = node_at(g, fuse_base(f, n->in[k]));
            bool alone = s->begin[home] == s->begin[home + 1]; /* nobody waits for it */
            s->at_once[home] |= alone && u->op == OP_EXT && u->a.i == ext;
        }
    }
}

void fuse_order(Fusion *f)
{
    size_t n = f->group.n, live = 0;
    ArenaMark mark = arena_mark(f->tmp);
    Sorting s = {.f = f};
    s.waits = NEW_ARRAY(f->tmp, uint32_t, n + 1);
    s.begin = NEW_ARRAY(f->tmp, uint32_t, n + 1);
    s.ready = NEW_ARRAY(f->tmp, uint32_t, n + 1);
    s.at_once = NEW_ARRAY(f->tmp, bool, n + 1);
    find_waiting(&s);
    find_additions(&s);
    f->order.n = 0;
    for (uint32_t i = 0; i < n; i++) {
        live += !f->group.v[i].dead;
        if (!f->group.v[i].dead && !s.waits[i])
            put_ready(&s, i);
    }
    while (s.n_ready) {
        uint32_t group = take_ready(&s);
        vec_push(f->arena, &f->order, group);
        for (uint32_t k = s.begin[group]; k < s.begin[group + 1]; k++)
            if (!--s.waits[s.next[k]])
                put_ready(&s, s.next[k]);
    }
    if (f->order.n < live)
        vwn_bug(f->ctx, "groups wait for each other");
    arena_reset(f->tmp, mark);
}
