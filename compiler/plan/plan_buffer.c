/* plan_buffer.c - where every value lies.
 *
 * In:  launches and the values they use.     Out: buffers with offsets in one arena.
 * The one idea: a buffer lives from the first to the last launch that names it; the largest are
 * placed first, each at the lowest offset where nothing that lives at the same time lies.
 */
#include "plan_build.h"

int64_t plan_elements(const Build *b, Val v) { return b->f->elements[v]; }

static uint64_t bytes_of(DType dtype, int64_t elements)
{
    return (uint64_t)elements * (dtype == DT_INT ? sizeof(int64_t) : sizeof(float));
}

static uint32_t new_buffer(Build *b, PlanBuffer x)
{
    vec_push(b->arena, &b->buffer, x);
    return (uint32_t)b->buffer.n - 1;
}

uint32_t plan_ext_buffer(Build *b, int32_t ext)
{
    if (b->ext_buffer[ext] < 0) {
        const PlanExt *x = &b->plan->ext[ext];
        b->ext_buffer[ext] = (int32_t)new_buffer(b, (PlanBuffer){.ext = ext,
                                                                 .bytes = plan_ext_bytes(x),
                                                                 .dtype = x->ext.dtype,
                                                                 .half = x->half,
                                                                 .name = x->ext.name,
                                                                 .shape = &x->ext.shape});
    }
    return (uint32_t)b->ext_buffer[ext];
}

uint32_t plan_scratch(Build *b, DType dtype, int64_t elements, Name name)
{
    PlanBuffer x = {.ext = -1, .dtype = dtype, .name = name};
    x.bytes = bytes_of(dtype, elements);
    return new_buffer(b, x);
}

uint32_t plan_temporary(Build *b, Val v)
{
    const Node *n = node_at(b->g, v);
    Shape *shape = NEW(b->arena, Shape);
    *shape = n->shape;
    uint32_t x = plan_scratch(b, (DType)n->dtype, plan_elements(b, v), n->name);
    b->buffer.v[x].shape = shape;
    if (b->f->in_16bit && b->f->in_16bit[v]) {
        b->buffer.v[x].half = b->f->half;
        b->buffer.v[x].bytes /= 2;
    }
    return x;
}

uint32_t plan_buffer(Build *b, Val v)
{
    const Node *n = node_at(b->g, v);
    if (n->op == OP_EXT)
        return plan_ext_buffer(b, (int32_t)n->a.i);
    if (b->f->row_of[v])
        return plan_buffer(b, b->f->row_of[v]);
    if (b->direct[v] >= 0)
        return plan_ext_buffer(b, b->direct[v]);
    if (b->buffer_of[v] < 0)
        b->buffer_of[v] = (int32_t)plan_temporary(b, v);
    return (uint32_t)b->buffer_of[v];
}

/* ---- results that go straight into an external tensor ---- */

typedef VEC(uint32_t) Readers; /* groups */

Val plan_strip(const Build *b, Val v)
{
    while (node_at(b->g, v)->op == OP_RESHAPE && !b->f->copied[v])
        v = node_at(b->g, v)->in[0];
    return v;
}

/* Does v read `leaf` in this group, through what is computed where it is wanted? */
static bool reads(const Build *b, Val v, Val leaf, uint32_t group)
{
    const Node *n = node_at(b->g, v);
    for (size_t k = 0; k < n->n_in; k++) {
        Val u = n->in[k];
        if (u == leaf || (fuse_rematerializes(b->f, group, u) && reads(b, u, leaf, group)))
            return true;
    }
    return false;
}

/* Is every path from v to `leaf` or to another member one on which elements keep their
 * place? */
static bool in_place(const Build *b, Val v, Val leaf, uint32_t group, int64_t size)
{
    const Node *n = node_at(b->g, v);
    bool plain = op_is_map((Op)n->op) || n->op == OP_RESHAPE;
    for (size_t k = 0; k < n->n_in; k++) {
        Val u = n->in[k];
        bool matters = u == leaf || b->f->home[u] == (int32_t)group;
        if (matters && (!plain || plan_elements(b, u) != size || plan_elements(b, v) != size))
            return false;
        if (u != leaf && fuse_rematerializes(b->f, group, u) &&
            (plain ? !in_place(b, u, leaf, group, size) : reads(b, u, leaf, group)))
            return false;
    }
    return true;
}

/* Which groups read an external tensor, through what is computed where it is wanted. */
static void note_reads(Build *b, Readers *of, uint32_t group, Val v)
{
    Fusion *f = b->f;
    const Node *n = node_at(b->g, v);
    for (size_t k = 0; k < n->n_in; k++) {
        Val u = n->in[k];
        if (f->seen[u] == f->stamp)
            continue;
        f->seen[u] = f->stamp;
        if (node_at(b->g, u)->op == OP_EXT)
            vec_push(f->arena, &of[node_at(b->g, u)->a.i], group);
        else if (fuse_rematerializes(f, group, u))
            note_reads(b, of, group, u);
    }
}

static Readers *find_readers(Build *b)
{
    Fusion *f = b->f;
    Readers *of = NEW_ARRAY(f->arena, Readers, b->g->ext.n + 1);
    for (uint32_t i = 0; i < f->group.n; i++) {
        f->stamp++;
        for (size_t m = 0; !f->group.v[i].dead && m < f->group.v[i].member.n; m++)
            note_reads(b, of, i, f->group.v[i].member.v[m]);
    }
    return of;
}

/* Does v replace rows of `leaf`, and read it for nothing else? */
static bool puts_into(const Build *b, Val v, Val leaf)
{
    const Node *n = node_at(b->g, v);
    if (n->op != OP_DYNAMIC_UPDATE_SLICE || plan_strip(b, n->in[0]) != leaf)
        return false;
    for (size_t k = 1; k < n->n_in; k++)
        if (n->in[k] == leaf || (b->f->home[n->in[k]] < 0 && reads(b, n->in[k], leaf, (uint32_t)b->f->home[v])))
            return false;
    return true;
}

static bool may_overwrite(Build *b, Val v, Val leaf, const Readers *readers)
{
    Fusion *f = b->f;
    int32_t home = f->home[v];
    for (size_t i = 0; i < readers->n; i++) {
        const Group *gr = &f->group.v[readers->v[i]];
        if ((int32_t)readers->v[i] != home) {
            if (fuse_reaches(f, (uint32_t)home, readers->v[i]))
                return false;
            continue;
        }
        if (gr->kind != GROUP_ROWS && puts_into(b, v, leaf))
            continue;
        if (gr->kind != GROUP_ROWS)
            return false;
        int64_t size = plan_elements(b, v);
        for (size_t m = 0; m < gr->member.n; m++)
            if (!in_place(b, gr->member.v[m], leaf, (uint32_t)home, size))
                return false;
    }
    return true;
}

void plan_choose_direct(Build *b)
{
    const Graph *g = b->g;
    const Readers *readers = find_readers(b);
    for (size_t i = 0; i < g->out.n; i++) {
        const Output *o = &g->out.v[i];
        if (o->ext < 0)
            continue;
        Val v = plan_strip(b, o->value), leaf = b->leaf[o->ext];
        if (b->f->home[v] < 0 || !b->f->stored[v] || b->direct[v] >= 0)
            continue;
        if (leaf && !may_overwrite(b, v, leaf, &readers[o->ext]))
            continue;
        b->direct[v] = o->ext;
        if (leaf) {
            b->same[v] = leaf;
            for (size_t k = 0; k < readers[o->ext].n; k++) /* every other reader runs first */
                fuse_add_pred(b->f, (uint32_t)b->f->home[v], (int32_t)readers[o->ext].v[k]);
        }
    }
    fuse_order(b->f);
}

/* ---- products that are added to an external tensor ---- */

/* How many nodes and outputs want each value. */
static uint32_t *count_readers(const Build *b)
{
    const Graph *g = b->g;
    uint32_t *n = NEW_ARRAY(b->f->tmp, uint32_t, g->node.n);
    for (Val v = 1; v < g->node.n; v++)
        for (size_t k = 0; k < node_at(g, v)->n_in; k++)
            n[node_at(g, v)->in[k]]++;
    for (size_t i = 0; i < g->out.n; i++)
        n[g->out.v[i].value]++;
    return n;
}

/* The product that v adds to `leaf`, where nobody else wants either of them; else 0. */
static Val product_added(const Build *b, Val v, Val leaf, const uint32_t *readers)
{
    const Node *n = node_at(b->g, v);
    if (n->op != OP_ADD || !leaf || readers[leaf] != 1 || (n->in[0] != leaf && n->in[1] != leaf))
        return 0;
    Val x = n->in[n->in[0] == leaf];
    while (readers[x] == 1 && node_at(b->g, x)->op == OP_RESHAPE && !b->f->copied[x])
        x = node_at(b->g, x)->in[0];
    bool product =
        node_at(b->g, x)->op == OP_MATMUL && b->f->home[x] >= 0 && b->f->group.v[b->f->home[x]].kind == GROUP_LIBRARY;
    return product && readers[x] == 1 && b->direct[x] < 0 && plan_elements(b, x) == plan_elements(b, v) &&
                   !fuse_empty(b->f, x) && !(b->f->in_16bit && b->f->in_16bit[x])
               ? x
               : 0;
}

void plan_choose_added(Build *b)
{
    ArenaMark mark = arena_mark(b->f->tmp);
    const uint32_t *readers = count_readers(b);
    for (size_t i = 0; i < b->f->order.n; i++) {
        const Group *gr = &b->f->group.v[b->f->order.v[i]];
        Val v = gr->kind == GROUP_ROWS && gr->member.n == 1 ? gr->member.v[0] : 0;
        if (!v || b->direct[v] < 0 || b->same[v] != b->leaf[b->direct[v]])
            continue;
        Val x = product_added(b, v, b->leaf[b->direct[v]], readers);
        if (x) {
            b->added[x] = b->added[v] = true;
            b->direct[x] = b->direct[v];
        }
    }
    arena_reset(b->f->tmp, mark);
}

/* ---- offsets ---- */

static uint64_t rounded(uint64_t bytes) { return (bytes + PLAN_ALIGN - 1) / PLAN_ALIGN * PLAN_ALIGN; }

/* From the first launch that names a buffer to the last one. */
typedef struct Life {
    uint32_t first, last;
} Life;

/* bytes: by buffer. */
static bool larger(const uint64_t *bytes, uint32_t x, uint32_t y)
{
    return bytes[x] != bytes[y] ? bytes[x] > bytes[y] : x < y;
}

static void sort_buffers(const uint64_t *bytes, uint32_t *v, uint32_t *tmp, size_t n)
{
    if (n < 2)
        return;
    size_t half = n / 2, i = 0, j = half, k = 0;
    sort_buffers(bytes, v, tmp, half);
    sort_buffers(bytes, v + half, tmp, n - half);
    while (i < half || j < n)
        tmp[k++] = j == n || (i < half && larger(bytes, v[i], v[j])) ? v[i++] : v[j++];
    memcpy(v, tmp, n * sizeof *v);
}

/* What is placed, in order of offset. Lives are apart from places: most do not meet, and the others
 * alone are asked where they lie. */
typedef struct Placed {
    size_t n;
    uint64_t *when; /* bits of the parts of all launches in which it lives; AT_ONCE more: never */
    Life *life;
    uint64_t *offset, *end;
    uint32_t part; /* launches of a part */
} Placed;

enum { PARTS = 64, AT_ONCE = 4 };

/* The bits of the parts in which x lives. */
static uint64_t when(const Placed *p, Life x)
{
    uint32_t first = x.first / p->part, last = x.last / p->part;
    if (x.first > x.last)
        return 0;
    uint64_t to = last < PARTS - 1 ? ((uint64_t)2 << last) - 1 : UINT64_MAX;
    return to & ~(((uint64_t)1 << first) - 1);
}

static uint64_t lowest_gap(const Placed *p, Life x, uint64_t bytes)
{
    uint64_t at = 0, bits = when(p, x);
    for (size_t from = 0; from < p->n; from += AT_ONCE) {
        const uint64_t *w = p->when + from;
        if (!((w[0] | w[1] | w[2] | w[3]) & bits))
            continue;
        for (size_t i = from; i < from + AT_ONCE; i++) {
            if (!(p->when[i] & bits) || p->life[i].last < x.first || x.last < p->life[i].first)
                continue;
            if (p->offset[i] >= at + bytes)
                return at;
            at = p->end[i] > at ? p->end[i] : at;
        }
    }
    return at;
}

static void place(Placed *p, Life x, uint64_t offset, uint64_t bytes)
{
    size_t low = 0, high = p->n, behind;
    while (low < high) { /* behind those of the same offset */
        size_t middle = (low + high) / 2;
        if (p->offset[middle] > offset)
            high = middle;
        else
            low = middle + 1;
    }
    behind = p->n++ - low;
    memmove(p->when + low + 1, p->when + low, behind * sizeof *p->when);
    memmove(p->life + low + 1, p->life + low, behind * sizeof *p->life);
    memmove(p->offset + low + 1, p->offset + low, behind * sizeof *p->offset);
    memmove(p->end + low + 1, p->end + low, behind * sizeof *p->end);
    p->when[low] = when(p, x);
    p->life[low] = x;
    p->offset[low] = offset;
    p->end[low] = offset + bytes;
}

/* By buffer; results live to the end. */
static Life *lives_of(const Build *b)
{
    Life *life = NEW_ARRAY(b->f->tmp, Life, b->buffer.n + 1);
    for (uint32_t i = 0; i < b->buffer.n; i++)
        life[i] = (Life){UINT32_MAX, 0};
    for (uint32_t i = 0; i < b->launch.n; i++)
        for (uint32_t k = 0; k < b->launch.v[i].n_touched; k++) {
            Life *x = &life[b->launch.v[i].buffer[k]];
            x->first = x->first < i ? x->first : i;
            x->last = x->last > i ? x->last : i;
        }
    for (size_t i = 0; i < b->plan->n_result; i++)
        life[b->plan->result[i].buffer].last = UINT32_MAX;
    if (b->number.n) /* a run writes them before its first launch */
        life[b->plan->numbers] = (Life){0, UINT32_MAX};
    return life;
}

/* Buffers that lie behind each other are placed as one: the first has the bytes of all, and lives as long as any. */
static uint64_t *join_chains(const Build *b, Life *life)
{
    uint64_t *bytes = NEW_ARRAY(b->f->tmp, uint64_t, b->buffer.n + 1);
    for (uint32_t i = 0; i < b->buffer.n; i++) {
        uint32_t first = i;
        while (b->buffer.v[first].behind)
            first = b->buffer.v[first].behind - 1;
        bytes[first] += b->buffer.v[i].ext < 0 ? rounded(b->buffer.v[i].bytes) : 0;
        life[first].first = life[i].first < life[first].first ? life[i].first : life[first].first;
        life[first].last = life[i].last > life[first].last ? life[i].last : life[first].last;
    }
    return bytes;
}

static void place_chains(Build *b)
{
    for (uint32_t i = 0; i < b->buffer.n; i++) {
        uint64_t bytes = 0;
        uint32_t first = i;
        for (; b->buffer.v[first].behind; bytes += b->buffer.v[first].bytes)
            first = b->buffer.v[first].behind - 1;
        if (first != i)
            b->buffer.v[i].offset = b->buffer.v[first].offset + bytes;
    }
}

void plan_place(Build *b)
{
    Arena *tmp = b->f->tmp;
    size_t n = 0, most = b->buffer.n + 1;
    Life *life = lives_of(b);
    const uint64_t *bytes = join_chains(b, life);
    uint32_t *order = NEW_ARRAY(tmp, uint32_t, most);
    Placed placed = {.when = NEW_ARRAY(tmp, uint64_t, most + AT_ONCE),
                     .life = NEW_ARRAY(tmp, Life, most),
                     .offset = NEW_ARRAY(tmp, uint64_t, most),
                     .end = NEW_ARRAY(tmp, uint64_t, most),
                     .part = (uint32_t)(b->launch.n / PARTS + 1)};
    b->plan->arena_bytes = 0;
    for (uint32_t i = 0; i < b->buffer.n; i++)
        if (bytes[i])
            order[n++] = i;
    sort_buffers(bytes, order, NEW_ARRAY(tmp, uint32_t, most), n);
    for (size_t i = 0; i < n; i++) {
        PlanBuffer *x = &b->buffer.v[order[i]];
        x->offset = lowest_gap(&placed, life[order[i]], bytes[order[i]]);
        place(&placed, life[order[i]], x->offset, bytes[order[i]]);
        if (x->offset + bytes[order[i]] > b->plan->arena_bytes)
            b->plan->arena_bytes = x->offset + bytes[order[i]];
    }
    place_chains(b);
}
