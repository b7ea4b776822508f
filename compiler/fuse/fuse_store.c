/* fuse_store.c - which values lie in memory between kernels, and which are computed again.
 *
 * In:  groups of nodes, at first with everything stored that another group reads.
 * Out: f->stored; each group's `rematerialized`: what others load and it computes itself. Values that nobody
 * loads have lost their home: whoever wants one computes it.
 * The one idea: what a group wants from others can be loaded, or computed from values further
 * up. The cheapest choice is a minimum cut: a value costs its bytes to load (and its share of
 * the bytes to store), or its work to compute again, in bytes that move in the same time.
 */
#include "fuse.h"

/* ---- who reads what ---- */

/* Once for each node and stamp: what is computed where it is wanted may be wanted along many
 * ways. */
static void mark_read(Fusion *f, int32_t reader, Val u)
{
    if (f->seen[u] == f->stamp || fuse_empty(f, u))
        return;
    f->seen[u] = f->stamp;
    int32_t home = f->home[u];
    if (reader < 0 ? home >= 0 : !fuse_rematerializes(f, (uint32_t)reader, u)) {
        if (home != reader || f->group.v[home].kind != GROUP_ROWS) {
            f->stored[u] = true;
            if (reader >= 0)
                fuse_add_pred(f, (uint32_t)reader, home);
        }
        return;
    }
    const Node *n = node_at(f->g, u);
    for (size_t k = 0; k < n->n_in; k++)
        mark_read(f, reader, n->in[k]);
}

static void mark_stored(Fusion *f)
{
    const Graph *g = f->g;
    memset(f->stored, 0, g->node.n);
    for (Val v = 1; v < g->node.n; v++)
        if (f->home[v] >= 0 && f->group.v[f->home[v]].kind != GROUP_ROWS)
            f->stored[v] = true;
    for (uint32_t i = 0; i < f->group.n; i++) {
        const Group *gr = &f->group.v[i];
        f->stamp++;
        for (size_t m = 0; m < gr->member.n; m++)
            for (size_t k = 0; k < node_at(g, gr->member.v[m])->n_in; k++)
                mark_read(f, (int32_t)i, node_at(g, gr->member.v[m])->in[k]);
    }
    f->stamp++;
    for (size_t i = 0; i < g->out.n; i++)
        mark_read(f, -1, g->out.v[i].value);
}

/* ---- flow ---- */

/* Edge e ^ 1 is the opposite one. Two networks are the same when the bytes of their edges are.
 */
typedef struct Edge {
    int64_t left;
    uint32_t to;
    uint32_t next; /* of the same node, 0 = none */
} Edge;

typedef struct Flow {
    Arena *arena;
    VEC(Edge) edge; /* numbers 0 and 1 are unused */
    VEC(uint32_t) first;
    uint32_t *level, *queue, *at; /* by node */
} Flow;

enum { SOURCE = 0, SINK = 1 };
static const int64_t NO_LIMIT = INT64_MAX / 4;

static uint32_t flow_node(Flow *w)
{
    vec_push(w->arena, &w->first, 0);
    return (uint32_t)w->first.n - 1;
}

static uint32_t flow_edge(Flow *w, uint32_t from, uint32_t to, int64_t most)
{
    uint32_t e = (uint32_t)w->edge.n;
    vec_push(w->arena, &w->edge, (Edge){most, to, w->first.v[from]});
    w->first.v[from] = e;
    vec_push(w->arena, &w->edge, (Edge){0, from, w->first.v[to]});
    w->first.v[to] = e + 1;
    return e;
}

static void flow_start(Flow *w)
{
    w->edge.n = w->first.n = 0;
    vec_push(w->arena, &w->edge, (Edge){0});
    vec_push(w->arena, &w->edge, (Edge){0});
    flow_node(w);
    flow_node(w);
}

/* The distance of each node from SOURCE, from 1 on, over edges with something left; 0: there is
 * no way. */
static bool flow_levels(Flow *w)
{
    size_t head = 0, tail = 0;
    memset(w->level, 0, w->first.n * sizeof *w->level);
    w->level[SOURCE] = 1;
    w->queue[tail++] = SOURCE;
    while (head < tail) {
        uint32_t at = w->queue[head++];
        for (uint32_t e = w->first.v[at]; e; e = w->edge.v[e].next) {
            uint32_t to = w->edge.v[e].to;
            if (!w->edge.v[e].left || w->level[to])
                continue;
            w->level[to] = w->level[at] + 1;
            w->queue[tail++] = to;
        }
    }
    return w->level[SINK] != 0;
}

/* Up to `most` from a node to SINK, each edge one level down; at[]: the edges not used up. */
static int64_t flow_push(Flow *w, uint32_t node, int64_t most)
{
    int64_t sent = 0;
    if (node == SINK)
        return most;
    for (; w->at[node]; w->at[node] = w->edge.v[w->at[node]].next) {
        Edge *e = &w->edge.v[w->at[node]];
        if (!e->left || w->level[e->to] != w->level[node] + 1)
            continue;
        int64_t got = flow_push(w, e->to, most - sent < e->left ? most - sent : e->left);
        e->left -= got;
        w->edge.v[w->at[node] ^ 1].left += got;
        sent += got;
        if (sent == most)
            return sent;
    }
    return sent;
}

/* Dinic, from edges and first on. Afterwards level[node] != 0 tells the nodes on the side of
 * SOURCE: which they are does not depend on the way the flow was found. */
static void flow_run(Flow *w, Arena *tmp)
{
    size_t n = w->first.n;
    w->level = NEW_ARRAY(tmp, uint32_t, n);
    w->queue = NEW_ARRAY(tmp, uint32_t, n);
    w->at = NEW_ARRAY(tmp, uint32_t, n);
    while (flow_levels(w)) {
        memcpy(w->at, w->first.v, n * sizeof *w->at);
        flow_push(w, SOURCE, NO_LIMIT);
    }
}

/* ---- costs, in bytes ---- */

enum {
    WRITE_COST = 3, /* of an element, in units of half its bytes: a store reads the line too */
    READ_COST = 2,
    GUARD_WORK = 8,  /* bytes in the time of an element that was moved along rows: whether it is there is tested */
    PLACES_FREE = 4, /* at so many places a value may be computed: halves that change places, rows of a small matrix.
                        That costs less than a launch which stores a small table */
    REDUCE_MAX = 16, /* terms of a sum that may be computed again */
    NODES_MAX = 2000 /* looked at for one group */
};

typedef VEC(Val) Loads;

/* Which values were loaded at these costs; a value is the number that the network gives it. */
typedef struct Solved {
    struct Solved *next; /* of the same hash */
    const int64_t *cost;
    size_t n;
    uint32_t *loaded;
} Solved;

/* Layers repeat, and so do networks. Value i has the nodes 2 i + 2, before it is loaded, and 2 i + 3;
 * what loading costs is left out. */
typedef struct Network {
    struct Network *next; /* of the same hash */
    const Edge *edge;
    const uint32_t *first, *load; /* load: by value, the edge that costs what loading costs, or 0 */
    size_t n_edge, n_first, n_seen;
    Map solved; /* by the hash of costs */
} Network;

/* The network of a group: which changes no more, but for what loading costs. */
typedef struct StoreCut {
    bool made, choice; /* choice: some of what it wants can be computed again */
    Network *network;
    const Val *seen; /* by value of the network: that of the graph */
    int64_t *cost;   /* by value of the network: of loading it, 0: it cannot be loaded */
} StoreCut;

typedef struct Choice {
    Fusion *f;
    uint32_t group;
    int64_t rows;
    bool *fixed;     /* stored whatever is chosen */
    uint32_t *loads; /* groups that chose to load a value */
    bool shared;     /* they share the cost of storing it; else only the first one pays */
    Loads *of;       /* what each group chose to load */
    StoreCut *last;  /* by group */
    Arena *kept;     /* of these */
    Map network;     /* by hash */
    Flow flow;
    uint32_t *in_of; /* flow node of a value, 0: not seen; its other side is the next */
    Loads seen;
    VEC(uint32_t) load, work;    /* the edges of each, 0: none */
    Loads wanted;                /* what the group reads from others */
    Loads between;               /* and what it computes on the way there, whatever is chosen */
    bool *is_wanted, *is_loaded; /* by value, of one group */
} Choice;

static int64_t item_bytes(const Fusion *f, Val v)
{
    return node_at(f->g, v)->dtype == DT_INT ? 8 : half_bytes(f->in_16bit && f->in_16bit[v] ? f->half : HALF_NONE);
}

static bool is_memory(const Fusion *f, Val v) { return node_at(f->g, v)->op == OP_EXT || f->home[v] >= 0; }

static int64_t read_cost(const Fusion *f, Val v) { return f->elements[v] * item_bytes(f, v) * READ_COST / 2 + 1; }

static int64_t store_cost(const Fusion *f, Val v) { return f->elements[v] * item_bytes(f, v) * WRITE_COST / 2; }

/* To load v, with a share in storing it. */
static int64_t load_cost(const Choice *c, Val v)
{
    int64_t cost = read_cost(c->f, v), store = store_cost(c->f, v);
    const Node *n = node_at(c->f->g, v);
    if (n->op == OP_EXT || c->fixed[v] || c->f->group.v[c->f->home[v]].kind != GROUP_ROWS)
        return cost;
    if (c->shared)
        return cost + store / (c->loads[v] ? c->loads[v] : 1);
    return c->loads[v] ? cost : cost + store;
}

static int64_t group_rows(const Fusion *f, const Group *gr)
{
    int64_t most = 1;
    for (size_t i = 0; i < gr->choice.n; i++) {
        int64_t n = dim_at(gr->choice.v[i], f->B, f->T);
        most = n > most ? n : most;
    }
    return most;
}

/* Is what v moves no vector on a processor? */
static bool is_tested(const Fusion *f, Val v)
{
    const Node *n = node_at(f->g, v);
    bool test = (n->op == OP_SHIFT || n->op == OP_PAD) && !dim_static(n->shape.d[n->a.i]);
    return f->target->tests_are_slow && (test || n->op == OP_ROLL);
}

/* One element of what a kernel is given with its arguments: computed before its rows. */
static bool is_argument(const Fusion *f, Val v)
{
    const Node *n = node_at(f->g, v);
    bool all = f->elements[v] == 1;
    for (size_t k = 0; k < n->n_in && all; k++) {
        uint16_t op = node_at(f->g, n->in[k])->op;
        all = op == OP_FILL || op == OP_HOST || op == OP_DIM;
    }
    return all;
}

/* To compute v once more, in this group. */
static int64_t work_cost(const Choice *c, Val v)
{
    const Fusion *f = c->f;
    const Node *n = node_at(f->g, v);
    OpClass class = op_info((Op)n->op)->class;
    if (is_tested(f, v))
        return f->elements[v] * GUARD_WORK + 1;
    if (fuse_is_view(f, v) || class == CLASS_VIEW || class == CLASS_MOVE || class == CLASS_LEAF)
        return 0;
    bool reduce = class == CLASS_REDUCE;
    if (f->target->fused_add && n->op == OP_SUM && node_at(f->g, n->in[0])->op == OP_MUL)
        return 1;
    int64_t count = f->elements[reduce ? n->in[0] : v];
    int64_t own = f->home[v] >= 0 ? group_rows(f, &f->group.v[f->home[v]]) : c->rows;
    bool scalar = true;
    const Shape *s = reduce ? shape_of(f->g, n->in[0]) : &n->shape;
    for (int i = 0; i < s->rank; i++)
        scalar = scalar && (s->d[i].b || s->d[i].t || dim_literal(s->d[i]));
    if (own < c->rows && own > 0 && !is_argument(f, v))
        count = count / own * c->rows;
    int64_t cost = op_info((Op)n->op)->cost / (n->op == OP_EXP && f->target->fast_exp ? 2 : 1);
    return count * cost * (scalar ? 2 : 1) / (scalar ? 1 : f->target->at_once) + 1;
}

/* May a group that is not its home compute v? Not what is random, goes by index, or is a long
 * sum. */
static bool may_rematerialize(const Fusion *f, Val v)
{
    const Node *n = node_at(f->g, v);
    OpClass class = op_info((Op)n->op)->class;
    switch (class) {
    case CLASS_VIEW:
    case CLASS_UNARY:
    case CLASS_BINARY:
    case CLASS_TERNARY: break;
    case CLASS_LEAF: return n->op == OP_FILL || n->op == OP_HOST || n->op == OP_DIM || n->op == OP_IOTA;
    case CLASS_MOVE: break;
    case CLASS_REDUCE: {
        const Shape *s = shape_of(f->g, n->in[0]);
        int64_t terms = 1;
        for (int i = 0; i < s->rank; i++)
            if (n->a.axes >> i & 1) {
                if (!dim_literal(s->d[i]) || s->d[i].n > REDUCE_MAX)
                    return false;
                terms *= s->d[i].n;
            }
        if (n->op == OP_CUMSUM || terms > REDUCE_MAX)
            return false;
        break;
    }
    default: return false;
    }
    if (f->pinned[v] || (f->home[v] >= 0 && (f->group.v[f->home[v]].kind != GROUP_ROWS || f->copied[v])))
        return false;
    return true;
}

/* Is loading v cheaper than computing it, whoever else loads it? */
static bool never_rematerialized(const Choice *c, Val v, int64_t work)
{
    return is_memory(c->f, v) && work > read_cost(c->f, v) + store_cost(c->f, v);
}

/* ---- the cut of one group ---- */

/* The flow node behind which v is available; adds v and what it comes from, as far as group `from`
 * computes it, or the home of what is wanted anyway: a chain through many kernels would be computed
 * again in each of them. */
static uint32_t add_value(Choice *c, Val v, int32_t from, int hops)
{
    Fusion *f = c->f;
    const Node *n = node_at(f->g, v);
    if (c->in_of[v])
        return c->in_of[v] + 1;
    if (c->is_wanted[v])
        from = f->home[v], hops = f->target->remat_kernels;
    else if (hops && f->home[v] >= 0 && f->home[v] != from)
        from = f->home[v], hops--;
    uint32_t in = flow_node(&c->flow), out = flow_node(&c->flow);
    c->in_of[v] = in;
    bool memory = is_memory(f, v);
    uint32_t load = flow_edge(&c->flow, in, out, memory ? 0 : NO_LIMIT);
    vec_push(c->kept, &c->seen, v);
    vec_push(c->kept, &c->load, memory ? load : 0);
    vec_push(c->kept, &c->work, 0);
    size_t number = c->seen.n - 1;
    bool again = may_rematerialize(f, v) && (f->home[v] < 0 || f->home[v] == from) && c->seen.n <= NODES_MAX &&
                 (!f->chain[v] || f->group.v[c->group].chain);
    int64_t work = again ? work_cost(c, v) : 0;
    if (!again || never_rematerialized(c, v, work)) {
        flow_edge(&c->flow, SOURCE, in, NO_LIMIT);
        return out;
    }
    if (work)
        c->work.v[number] = flow_edge(&c->flow, SOURCE, in, work);
    for (size_t k = 0; k < n->n_in; k++)
        if (!fuse_empty(f, n->in[k]))
            flow_edge(&c->flow, add_value(c, n->in[k], from, hops), in, NO_LIMIT);
    return out;
}

/* What a member reads from other groups, through what is computed where it is wanted. */
static void find_wanted(Choice *c, Val u)
{
    Fusion *f = c->f;
    if (fuse_empty(f, u) || f->home[u] == (int32_t)c->group || f->seen[u] == f->stamp)
        return;
    f->seen[u] = f->stamp;
    if (f->home[u] >= 0) {
        vec_push(c->kept, &c->wanted, u);
        return;
    }
    vec_push(c->kept, &c->between, u);
    const Node *n = node_at(f->g, u);
    for (size_t k = 0; k < n->n_in; k++)
        find_wanted(c, n->in[k]);
}

/* What is computed again costs its work at every place that the group would want it at, computed all the way. */
static void count_work(Choice *c)
{
    Fusion *f = c->f;
    const Group *gr = &f->group.v[c->group];
    ArenaMark mark = arena_mark(f->tmp);
    Vals all = {0};
    for (size_t i = 0; i < gr->member.n; i++)
        vec_push(f->tmp, &all, gr->member.v[i]);
    for (size_t i = 0; i < c->between.n; i++)
        vec_push(f->tmp, &all, c->between.v[i]);
    for (size_t i = 0; i < c->seen.n; i++)
        vec_push(f->tmp, &all, c->seen.v[i]);
    fuse_count_places(f, &all);
    for (size_t i = 0; i < c->seen.n; i++)
        if (c->work.v[i]) {
            Edge *e = &c->flow.edge.v[c->work.v[i]];
            int64_t places = fuse_places(f, c->seen.v[i]);
            if (places > PLACES_FREE || is_tested(f, c->seen.v[i]))
                e->left = e->left < NO_LIMIT / places ? e->left * places : NO_LIMIT;
        }
    fuse_forget_places(f, &all);
    arena_reset(f->tmp, mark);
}

static void *keep_bytes(Choice *c, const void *p, size_t size)
{
    void *kept = arena_alloc(c->kept, size + 1);
    memcpy(kept, p, size);
    return kept;
}

/* One word for each edge and its opposite. */
static uintptr_t hash_edges(const Flow *w)
{
    uint64_t h = w->first.n;
    for (size_t e = 2; e < w->edge.n; e += 2) {
        uint64_t ends = (uint64_t)w->edge.v[e].to << 32 | w->edge.v[e + 1].to;
        h = (h ^ (uint64_t)w->edge.v[e].left ^ ends) * 0x9e3779b97f4a7c15u;
    }
    return (uintptr_t)(h ^ h >> 32) | 1;
}

/* The one with these edges. */
static Network *same_network(Choice *c)
{
    const Flow *w = &c->flow;
    size_t size = w->edge.n * sizeof *w->edge.v;
    void **slot = map_at(&c->network, hash_edges(w));
    for (Network *x = *slot; x; x = x->next)
        if (x->n_edge == w->edge.n && !memcmp(x->edge, w->edge.v, size))
            return x;
    Network *x = NEW(c->kept, Network);
    *x = (Network){.next = *slot, .n_edge = w->edge.n, .n_first = w->first.n, .n_seen = c->seen.n};
    x->edge = keep_bytes(c, w->edge.v, size);
    x->first = keep_bytes(c, w->first.v, w->first.n * sizeof *w->first.v);
    x->load = keep_bytes(c, c->load.v, c->load.n * sizeof *c->load.v);
    map_init(&x->solved, c->kept);
    *slot = x;
    return x;
}

/* What loading costs now; false: as before. */
static bool update_costs(const Choice *c, StoreCut *x)
{
    bool changed = false;
    for (size_t i = 0; x->choice && i < x->network->n_seen; i++) {
        int64_t cost = x->network->load[i] ? load_cost(c, x->seen[i]) : 0;
        changed = changed || cost != x->cost[i];
        x->cost[i] = cost;
    }
    return changed;
}

static void make_network(Choice *c, StoreCut *x)
{
    Flow *w = &c->flow;
    flow_start(w);
    c->seen.n = c->load.n = c->work.n = 0;
    for (size_t i = 0; i < c->wanted.n; i++)
        c->is_wanted[c->wanted.v[i]] = true;
    for (size_t i = 0; i < c->wanted.n; i++)
        flow_edge(w, add_value(c, c->wanted.v[i], -1, 0), SINK, NO_LIMIT);
    for (size_t i = 0; i < c->wanted.n; i++)
        c->is_wanted[c->wanted.v[i]] = false;
    for (size_t i = 0; i < c->seen.n; i++)
        c->in_of[c->seen.v[i]] = 0;
    count_work(c);
    x->network = same_network(c);
    x->seen = keep_bytes(c, c->seen.v, c->seen.n * sizeof *c->seen.v);
    x->cost = NEW_ARRAY(c->kept, int64_t, c->seen.n + 1);
    update_costs(c, x);
}

/* Reads the cut: a value is loaded when its two nodes lie on different sides. */
static const Solved *solve(Choice *c, const StoreCut *x)
{
    Flow *w = &c->flow;
    Network *net = x->network;
    size_t size = net->n_seen * sizeof *x->cost;
    void **slot = map_at(&net->solved, (uintptr_t)hash_bytes(x->cost, size, 1) | 1);
    for (Solved *s = *slot; s; s = s->next)
        if (!memcmp(s->cost, x->cost, size))
            return s;
    Solved *s = NEW(c->kept, Solved);
    *s = (Solved){.next = *slot, .cost = keep_bytes(c, x->cost, size)};
    s->loaded = NEW_ARRAY(c->kept, uint32_t, net->n_seen + 1);
    w->edge.n = net->n_edge; /* there is room: every network was made in this place */
    w->first.n = net->n_first;
    memcpy(w->edge.v, net->edge, net->n_edge * sizeof *net->edge);
    memcpy(w->first.v, net->first, net->n_first * sizeof *net->first);
    for (size_t i = 0; i < net->n_seen; i++)
        if (net->load[i])
            w->edge.v[net->load[i]].left = x->cost[i];
    flow_run(w, c->f->tmp);
    for (uint32_t i = 0; i < net->n_seen; i++)
        if (w->level[2 * i + 2] && !w->level[2 * i + 3])
            s->loaded[s->n++] = i;
    *slot = s;
    return s;
}

static void find_all_wanted(Choice *c, uint32_t group)
{
    Fusion *f = c->f;
    const Group *gr = &f->group.v[group];
    c->group = group;
    c->wanted.n = c->between.n = 0;
    f->stamp++;
    for (size_t m = 0; m < gr->member.n; m++)
        for (size_t k = 0; k < node_at(f->g, gr->member.v[m])->n_in; k++)
            find_wanted(c, node_at(f->g, gr->member.v[m])->in[k]);
}

/* What the group reads from others, and whether it could compute some of that. */
static void make_cut(Choice *c, uint32_t group, StoreCut *x)
{
    Fusion *f = c->f;
    c->rows = group_rows(f, &f->group.v[group]);
    find_all_wanted(c, group);
    for (size_t i = 0; i < c->wanted.n && !x->choice; i++)
        x->choice = may_rematerialize(f, c->wanted.v[i]);
    x->made = true;
    if (x->choice)
        make_network(c, x);
    for (size_t i = 0; i < c->wanted.n && !x->choice; i++)
        vec_push(f->arena, &c->of[group], c->wanted.v[i]);
}

/* Leaves in c->of[group] what this group would load. */
static void choose_for(Choice *c, uint32_t group)
{
    Fusion *f = c->f;
    StoreCut *x = &c->last[group];
    bool fresh = !x->made;
    c->group = group;
    if (fresh)
        make_cut(c, group, x);
    else if (!update_costs(c, x))
        return;
    if (!x->choice)
        return;
    ArenaMark mark = arena_mark(f->tmp);
    const Solved *s = solve(c, x);
    c->of[group].n = 0;
    for (size_t i = 0; i < s->n; i++)
        vec_push(f->arena, &c->of[group], x->seen[s->loaded[i]]);
    arena_reset(f->tmp, mark);
}

/* ---- all groups ---- */

/* Results of the graph, operands of libraries and what is computed once lie in memory. */
static bool *find_fixed(const Fusion *f)
{
    const Graph *g = f->g;
    bool *fixed = NEW_ARRAY(f->arena, bool, g->node.n);
    for (size_t i = 0; i < g->out.n; i++)
        fixed[fuse_base(f, g->out.v[i].value)] = true;
    for (Val v = 1; v < g->node.n; v++) {
        fixed[v] = fixed[v] || f->pinned[v];
        for (size_t k = 0; node_is_library(g, v) && k < node_at(g, v)->n_in; k++)
            fixed[fuse_base(f, node_at(g, v)->in[k])] = true;
    }
    return fixed;
}

static void leave_home(Fusion *f, Val v)
{
    Group *gr = &f->group.v[f->home[v]];
    size_t keep = 0;
    for (size_t m = 0; m < gr->member.n; m++)
        if (gr->member.v[m] != v)
            gr->member.v[keep++] = gr->member.v[m];
    gr->member.n = keep;
    f->home[v] = -1;
}

/* Adds to c->loads what a group chose, or takes it away. */
static void count_loads(Choice *c, uint32_t group, int32_t by)
{
    for (size_t i = 0; i < c->of[group].n; i++)
        c->loads[c->of[group].v[i]] += (uint32_t)by;
}

static bool chooses(const Fusion *f, uint32_t group)
{
    return !f->group.v[group].dead && f->group.v[group].kind == GROUP_ROWS;
}

enum { ROUNDS = 2 };

/* At first all choose at once and share the cost of a store, as if all who want a value loaded it; then
 * one after the other, knowing what the others load: what is stored anyway costs a load only. */
static void choose_all(Choice *c)
{
    uint32_t n = (uint32_t)c->f->group.n;
    c->shared = true;
    for (uint32_t i = 0; i < n; i++)
        if (chooses(c->f, i)) {
            find_all_wanted(c, i);
            for (size_t k = 0; k < c->wanted.n; k++)
                c->loads[c->wanted.v[k]]++;
        }
    for (int round = 0; round < ROUNDS; round++) {
        for (uint32_t i = 0; i < n; i++)
            if (chooses(c->f, i))
                choose_for(c, i);
        memset(c->loads, 0, c->f->g->node.n * sizeof *c->loads);
        for (uint32_t i = 0; i < n; i++)
            count_loads(c, i, 1);
    }
    c->shared = false;
    for (uint32_t i = 0; i < n; i++)
        if (chooses(c->f, i)) {
            count_loads(c, i, -1);
            choose_for(c, i);
            count_loads(c, i, 1);
        }
}

/* Notes as rematerialized what lies between u and what the group chose to load. */
static void note_again(Choice *c, Group *gr, Val u)
{
    Fusion *f = c->f;
    if (c->is_loaded[u] || f->home[u] == (int32_t)c->group || f->seen[u] == f->stamp || fuse_empty(f, u))
        return;
    f->seen[u] = f->stamp;
    if (f->home[u] >= 0)
        vec_push(f->arena, &gr->rematerialized, u);
    const Node *n = node_at(f->g, u);
    for (size_t k = 0; k < n->n_in; k++)
        note_again(c, gr, n->in[k]);
}

static void keep_again(Choice *c, uint32_t group)
{
    Fusion *f = c->f;
    Group *gr = &f->group.v[group];
    c->group = group;
    for (size_t i = 0; i < c->of[group].n; i++)
        c->is_loaded[c->of[group].v[i]] = true;
    f->stamp++;
    for (size_t m = 0; m < gr->member.n; m++)
        for (size_t k = 0; k < node_at(f->g, gr->member.v[m])->n_in; k++)
            note_again(c, gr, node_at(f->g, gr->member.v[m])->in[k]);
    for (size_t i = 0; i < c->of[group].n; i++)
        c->is_loaded[c->of[group].v[i]] = false;
    fuse_sort(gr->rematerialized.v, gr->rematerialized.n);
}

void fuse_choose_stores(Fusion *f)
{
    size_t n = f->g->node.n;
    Choice c = {.f = f};
    mark_stored(f);
    if (f->unfused)
        return;
    c.fixed = find_fixed(f);
    c.in_of = NEW_ARRAY(f->arena, uint32_t, n);
    c.loads = NEW_ARRAY(f->arena, uint32_t, n);
    c.is_wanted = NEW_ARRAY(f->arena, bool, n);
    c.is_loaded = NEW_ARRAY(f->arena, bool, n);
    c.of = NEW_ARRAY(f->arena, Loads, f->group.n);
    c.kept = arena_new(f->ctx);
    c.last = NEW_ARRAY(c.kept, StoreCut, f->group.n);
    c.flow.arena = c.kept;
    map_init(&c.network, c.kept);
    choose_all(&c);
    arena_free(c.kept);
    /* From the last to the first: what a value without a home comes from is wanted in its
     * place. */
    for (bool again = true; again;) {
        again = false;
        for (Val v = (Val)n - 1; v > 0; v--)
            if (f->home[v] >= 0 && f->stored[v] && !c.loads[v] && !c.fixed[v] && may_rematerialize(f, v)) {
                leave_home(f, v);
                again = true;
            }
        mark_stored(f);
    }
    for (uint32_t i = 0; i < f->group.n; i++)
        if (chooses(f, i))
            keep_again(&c, i);
    mark_stored(f);
}
