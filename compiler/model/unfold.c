/* unfold.c - see unfold.h. */
#include "unfold.h"

#include "compiler/graph/op.h"

/* ---- which values are linear in the sources ---- */

/* How a value depends on the sources. */
typedef enum UnfoldWay {
    WAY_HELD, /* not linearly, or not at all: it is what it is */
    WAY_MIXED, /* linearly, every path through a sum over coordinates: as a coefficient that is no function but a product */
    WAY_DIRECT /* linearly, coordinate by coordinate */
} UnfoldWay;

typedef struct Ways {
    const Graph *g;
    uint8_t *way; /* UnfoldWay, by value */
    int8_t *axis; /* of the coordinates */
    bool *source;
    uint8_t *carrier; /* of a product: which factor is not held */
} Ways;

/* Where the coordinates lie after a reshape: their axis as long as what stands before it keeps its size, else the last. */
static int8_t reshaped_axis(const Graph *g, const Node *n, int8_t axis)
{
    const Shape *from = shape_of(g, n->in[0]), *to = &n->shape;
    if (!to->rank || axis == from->rank - 1)
        return (int8_t)(to->rank - 1);
    Dim before = DIM(1), now = DIM(1);
    for (int k = 0; k < axis; k++)
        dim_mul(before, from->d[k], &before);
    for (int8_t k = 0; k < to->rank; k++) {
        if (dim_eq(before, now) && dim_eq(to->d[k], from->d[axis]))
            return k;
        dim_mul(now, to->d[k], &now);
    }
    return (int8_t)(to->rank - 1);
}

static void take(Ways *w, Val v, Val from)
{
    if (w->way[from] > w->way[v]) {
        w->way[v] = w->way[from];
        w->axis[v] = w->axis[from];
    }
}

/* Of two factors that both depend on the sources linearly the one that is a sum over coordinates is the coefficient. */
static void way_of_product(Ways *w, Val v)
{
    const Node *n = node_at(w->g, v);
    uint8_t a = w->way[n->in[0]], b = w->way[n->in[1]];
    if (a == b)
        return; /* neither does, or it is no linear function */
    w->carrier[v] = b > a;
    take(w, v, n->in[w->carrier[v]]);
    if (n->op != OP_MATMUL)
        return;
    const Shape *s = shape_of(w->g, n->in[w->carrier[v]]);
    bool transposed = n->a.i & (w->carrier[v] ? 2 : 1);
    int last = s->rank - 1, over = (w->carrier[v] == 0) != transposed ? last : last - 1;
    if (w->axis[v] == over)
        w->way[v] = WAY_MIXED;
    else if (transposed && w->axis[v] >= last - 1)
        w->axis[v] = (int8_t)(w->axis[v] == last ? last - 1 : last);
    w->axis[v] += (int8_t)(n->shape.rank - s->rank);
}

static void way_of(Ways *w, Val v)
{
    const Node *n = node_at(w->g, v);
    if (n->dtype != DT_REAL)
        return;
    switch ((Op)n->op) {
    case OP_NEG:
    case OP_ROUND_TO:
    case OP_STOP:
    case OP_BROADCAST:
    case OP_SLICE:
    case OP_PAD:
    case OP_SHIFT:
    case OP_ROLL:
    case OP_DIV:
    case OP_CUMSUM:
        take(w, v, n->in[0]);
        if (n->op == OP_CUMSUM && n->a.i == w->axis[v] && w->way[v])
            w->way[v] = WAY_MIXED;
        return;
    case OP_SUM:
        take(w, v, n->in[0]);
        if (w->way[v] && n->a.axes >> w->axis[v] & 1)
            w->way[v] = WAY_MIXED;
        return;
    case OP_RESHAPE:
        take(w, v, n->in[0]);
        w->axis[v] = reshaped_axis(w->g, n, w->axis[n->in[0]]);
        return;
    case OP_PERMUTE:
        take(w, v, n->in[0]);
        for (int k = 0; k < n->shape.rank; k++)
            if ((int)n->a.data[k] == w->axis[n->in[0]])
                w->axis[v] = (int8_t)k;
        return;
    case OP_ADD:
    case OP_SUB:
    case OP_CONCAT:
        for (size_t k = 0; k < n->n_in; k++)
            take(w, v, n->in[k]);
        return;
    case OP_WHERE:
        take(w, v, n->in[1]);
        take(w, v, n->in[2]);
        return;
    case OP_MUL:
    case OP_MATMUL: way_of_product(w, v); return;
    default: return;
    }
}

static void source_at(Ways *w, Val v)
{
    w->source[v] = true;
    w->way[v] = WAY_DIRECT;
    w->axis[v] = (int8_t)(node_at(w->g, v)->shape.rank - 1);
}

static Ways find_ways(const Model *m, Arena *arena)
{
    size_t n = m->graph->node.n;
    Ways w = {m->graph, NEW_ARRAY(arena, uint8_t, n), NEW_ARRAY(arena, int8_t, n), NEW_ARRAY(arena, bool, n),
              NEW_ARRAY(arena, uint8_t, n)};
    source_at(&w, m->embedded);
    for (size_t i = 0; i < m->sublayer.n; i++)
        source_at(&w, m->sublayer.v[i].wrote);
    for (Val v = 1; v < n; v++)
        if (!w.source[v])
            way_of(&w, v);
    return w;
}

/* Whether what input k of v owes to the sources goes on in v. */
static bool goes_on(const Ways *w, Val v, size_t k)
{
    Op op = (Op)node_at(w->g, v)->op;
    if (w->source[v] || !w->way[v])
        return false;
    return op == OP_MUL || op == OP_MATMUL ? k == w->carrier[v] : op == OP_DIV ? k == 0 : op == OP_WHERE ? k > 0 : true;
}

/* ---- segments ---- */

static int64_t last_extent(const Graph *g, Val v)
{
    const Shape *s = shape_of(g, v);
    return s->rank && dim_static(s->d[s->rank - 1]) ? s->d[s->rank - 1].n : 0;
}

/* The same positions as the embedding, and coordinates behind them. */
static bool by_position(const Graph *g, Val v, Val embedded)
{
    const Shape *s = shape_of(g, v), *e = shape_of(g, embedded);
    if (s->rank < e->rank)
        return false;
    for (int k = 0; k + 1 < e->rank; k++)
        if (!dim_eq(s->d[k], e->d[k]))
            return false;
    for (int k = e->rank - 1; k < s->rank; k++)
        if (!dim_static(s->d[k]) || !s->d[k].n)
            return false;
    return true;
}

static UnfoldPart part_of(const Model *m, Val v, int64_t width)
{
    const Shape *s = shape_of(m->graph, v);
    int64_t all = 1;
    for (int k = shape_of(m->graph, m->embedded)->rank - 1; k < s->rank; k++)
        all *= s->d[k].n;
    bool cut = width && all % width == 0;
    return (UnfoldPart){cut ? all / width : 1, cut ? width : all, 0};
}

static const char *refusal(const Model *m)
{
    const Graph *g = m->graph;
    if (!m->sublayer.n)
        return "the model has no sublayers";
    bool plain = by_position(g, m->embedded, m->embedded) && by_position(g, m->opened, m->embedded) &&
                 shape_of(g, m->embedded)->rank >= 2 && (!m->closed || by_position(g, m->closed, m->embedded));
    for (size_t i = 0; i < m->sublayer.n; i++) {
        const ModelSublayer *s = &m->sublayer.v[i];
        if (s->read == s->wrote)
            return "a sublayer returns what it reads as it is, so nothing tells one from the other";
        plain = plain && by_position(g, s->read, m->embedded) && by_position(g, s->wrote, m->embedded) &&
                by_position(g, s->after, m->embedded);
    }
    return plain ? NULL : "states and sublayers have other positions than the embedding";
}

Unfolding unfolding_of(const Model *m, Arena *arena)
{
    Unfolding u = {.why_not = refusal(m), .n = m->sublayer.n, .closed = m->closed != 0};
    if (u.why_not)
        return u;
    const Graph *g = m->graph;
    bool streams = shape_of(g, m->opened)->rank > shape_of(g, m->embedded)->rank;
    int64_t width = streams ? last_extent(g, m->opened) : 0;
    u.rows = u.n + u.closed;
    u.source = NEW_ARRAY(arena, UnfoldPart, u.n + 1);
    u.read = NEW_ARRAY(arena, UnfoldPart, u.n + 1);
    u.state = NEW_ARRAY(arena, UnfoldPart, u.n + 1);
    for (size_t i = 0; i <= u.n; i++) {
        u.source[i] = part_of(m, i ? m->sublayer.v[i - 1].wrote : m->embedded, width);
        u.source[i].first = u.segments;
        u.segments += (size_t)u.source[i].segments;
        u.state[i] = part_of(m, i ? m->sublayer.v[i - 1].after : m->opened, width);
        if (i < u.rows)
            u.read[i] = part_of(m, i < u.n ? m->sublayer.v[i].read : m->closed, width);
    }
    return u;
}

static Val row_value(const Model *m, size_t i) { return i < m->sublayer.n ? m->sublayer.v[i].read : m->closed; }

static Val state_value(const Model *m, size_t i) { return i ? m->sublayer.v[i - 1].after : m->opened; }

/* ---- tangents ---- */

typedef struct Tangents {
    const Model *m;
    const Unfolding *u;
    Ways w;
    Graph *g;
    const Val *map; /* values of the model */
    Val *tangent;   /* by value of the model: [impulses, ..]; 0: no source reaches it */
    Dim impulses;
    Val select; /* of impulses; 0: one of all sources with what they hold */
    Val signs;  /* [1, positions.., widest] */
} Tangents;

static Shape before(Dim first, const Shape *s)
{
    Shape out = {.rank = (uint8_t)(s->rank + 1)};
    out.d[0] = first;
    for (int k = 0; k < s->rank; k++)
        out.d[k + 1] = s->d[k];
    return out;
}

/* The model's own value of v, for every impulse. */
static Val held(const Tangents *t, Val v)
{
    Shape s = before(DIM(1), shape_of(t->g, t->map[v]));
    return ir_reshape(t->g, t->map[v], &s);
}

static Val tangent_or_zero(const Tangents *t, Val v)
{
    Shape s = before(t->impulses, shape_of(t->g, t->map[v]));
    return t->tangent[v] ? t->tangent[v] : ir_broadcast(t->g, ir_fill(t->g, 0), &s);
}

/* The positions of the embedding, with extents `a`, `b` behind them and `first` in front. */
static Shape positions(const Tangents *t, Dim first, int64_t a, int64_t b)
{
    const Shape *e = shape_of(t->m->graph, t->m->embedded);
    Shape s = {.rank = (uint8_t)(e->rank + 2)};
    s.d[0] = first;
    for (int k = 0; k + 1 < e->rank; k++)
        s.d[k + 1] = e->d[k];
    s.d[e->rank] = DIM(a);
    s.d[e->rank + 1] = DIM(b);
    return s;
}

static Val signs_of(const Tangents *t, int64_t width)
{
    Shape s = positions(t, DIM(1), 1, width);
    Val v = t->signs;
    int axis = shape_of(t->g, v)->rank - 1;
    if (shape_of(t->g, v)->d[axis].n != width)
        v = ir_slice(t->g, v, axis, 0, width);
    return ir_reshape(t->g, v, &s);
}

/* What each impulse is in source i. */
static Val impulse(const Tangents *t, size_t i, Val v)
{
    Graph *g = t->g;
    const UnfoldPart *p = &t->u->source[i];
    Shape out = before(t->impulses, shape_of(g, t->map[v]));
    if (!t->select)
        return held(t, v);
    Shape chosen = positions(t, t->impulses, p->segments, 1);
    for (int k = 1; k + 2 < chosen.rank; k++)
        chosen.d[k] = DIM(1);
    Val on = ir_slice(g, t->select, 1, (int64_t)p->first, p->segments);
    on = ir_reshape(g, on, &chosen);
    return ir_reshape(g, ir_binary(g, OP_MUL, on, signs_of(t, p->width)), &out);
}

/* One operator that treats each impulse alike. */
static Val same_operator(const Tangents *t, Val v, const Val *in)
{
    const Node *n = node_at(t->w.g, v);
    double data[MAX_RANK] = {0};
    Attr a = n->a;
    Shape shape = before(t->impulses, &n->shape);
    a.axes = a.axes << 1;
    if (n->op == OP_PERMUTE) {
        for (size_t k = 0; k < a.n; k++)
            data[k + 1] = a.data[k] + 1;
        a.data = data;
        a.n++;
    }
    if (n->op == OP_SLICE || n->op == OP_PAD || n->op == OP_CONCAT || n->op == OP_SHIFT || n->op == OP_ROLL ||
        n->op == OP_CUMSUM)
        a.i++;
    if (n->op == OP_SHIFT)
        a.x = 0;
    return ir_node(t->g, (Op)n->op, in, n->n_in, &a, op_uses((Op)n->op, 'S') ? &shape : NULL);
}

static Val tangent_of_product(const Tangents *t, Val v)
{
    const Node *n = node_at(t->w.g, v);
    bool right = t->w.carrier[v];
    Val d = t->tangent[n->in[right]];
    if (!d)
        return 0;
    Val other = t->map[n->in[!right]];
    if (n->op == OP_MUL)
        return ir_binary(t->g, OP_MUL, d, held(t, n->in[!right]));
    if (right || shape_of(t->g, other)->rank > 2)
        other = held(t, n->in[!right]);
    Val a = right ? other : d, b = right ? d : other;
    a = n->a.i & 1 ? ir_transpose(t->g, a) : a;
    b = n->a.i & 2 ? ir_transpose(t->g, b) : b;
    return ir_matmul(t->g, a, b);
}

static Val tangent_of(const Tangents *t, Val v)
{
    const Node *n = node_at(t->w.g, v);
    Graph *g = t->g;
    if (t->w.way[v] == WAY_HELD)
        return 0;
    bool some = false;
    for (size_t k = 0; k < n->n_in; k++)
        some = some || t->tangent[n->in[k]];
    if (!some)
        return 0;
    switch ((Op)n->op) {
    case OP_MUL:
    case OP_MATMUL: return tangent_of_product(t, v);
    case OP_DIV: return t->tangent[n->in[0]] ? ir_binary(g, OP_DIV, t->tangent[n->in[0]], held(t, n->in[1])) : 0;
    case OP_WHERE: return ir_where(g, held(t, n->in[0]), tangent_or_zero(t, n->in[1]), tangent_or_zero(t, n->in[2]));
    case OP_ADD:
    case OP_SUB: {
        Val a = t->tangent[n->in[0]], b = t->tangent[n->in[1]];
        return a && b ? ir_binary(g, (Op)n->op, a, b) : a ? a : n->op == OP_SUB ? ir_unary(g, OP_NEG, b) : b;
    }
    default: {
        Val *in = NEW_ARRAY(g->arena, Val, n->n_in);
        for (size_t k = 0; k < n->n_in; k++)
            in[k] = tangent_or_zero(t, n->in[k]);
        return same_operator(t, v, in);
    }
    }
}

/* The values between sources and what is measured. */
static bool *on_the_way(const Tangents *t)
{
    const Graph *from = t->w.g;
    bool *wanted = NEW_ARRAY(t->g->arena, bool, from->node.n);
    for (size_t i = 0; i < t->u->rows; i++)
        wanted[row_value(t->m, i)] = true;
    for (size_t i = 0; i <= t->u->n && t->select; i++)
        wanted[state_value(t->m, i)] = true;
    for (Val v = (Val)from->node.n; v-- > 1;) {
        const Node *n = node_at(from, v);
        for (size_t k = 0; wanted[v] && k < n->n_in; k++)
            wanted[n->in[k]] |= goes_on(&t->w, v, k);
    }
    return wanted;
}

/* A source's place among them; there may be two of one value. */
static size_t source_of(const Tangents *t, Val v)
{
    size_t i = t->u->n;
    while (i && t->m->sublayer.v[i - 1].wrote != v)
        i--;
    return i;
}

/* `made` is called for each row, and each state where it wants them, once its tangent is there: then the tangent is measured
 * before later ones are computed, and no plan keeps it. */
static void find_tangents(Tangents *t, void (*made)(Tangents *t, bool state, size_t i))
{
    Val end = (Val)t->w.g->node.n;
    t->tangent = NEW_ARRAY(t->g->arena, Val, end);
    const bool *wanted = on_the_way(t);
    bool *ends = NEW_ARRAY(t->g->arena, bool, end);
    for (size_t i = 0; i <= t->u->n; i++) {
        ends[state_value(t->m, i)] = true;
        if (i < t->u->rows)
            ends[row_value(t->m, i)] = true;
    }
    for (Val v = 1; v < end; v++) {
        if (wanted[v])
            t->tangent[v] = t->w.source[v] ? impulse(t, source_of(t, v), v) : tangent_of(t, v);
        for (size_t i = 0; ends[v] && i <= t->u->n; i++) {
            if (i < t->u->rows && row_value(t->m, i) == v)
                made(t, false, i);
            if (t->select && state_value(t->m, i) == v)
                made(t, true, i);
        }
    }
}

static void roots_of(const Model *m, const Unfolding *u, Val *root, size_t *n)
{
    *n = 0;
    for (size_t i = 0; i < u->rows; i++)
        root[(*n)++] = row_value(m, i);
    for (size_t i = 0; i <= u->n; i++)
        root[(*n)++] = state_value(m, i);
}

/* The three means of unfold.h. */
static void measure(Tangents *t, bool state, size_t row)
{
    Graph *g = t->g;
    Val v = state ? state_value(t->m, row) : row_value(t->m, row);
    const UnfoldPart *p = state ? &t->u->state[row] : &t->u->read[row];
    if (!t->tangent[v])
        return;
    Shape cut = positions(t, t->impulses, p->segments, p->width),
          flat = {.rank = 3, .d = {DIM(1), t->impulses, DIM(p->segments)}};
    uint32_t coordinate = 1u << (cut.rank - 1), all = coordinate;
    for (int k = 1; k < cut.rank - 2; k++)
        all |= 1u << k;
    Val d = ir_reshape(g, t->tangent[v], &cut);
    Val q = ir_mean(g, ir_binary(g, OP_MUL, d, signs_of(t, p->width)), coordinate, true), part[3];
    part[0] = ir_mean(g, q, all, true);
    part[1] = ir_mean(g, ir_binary(g, OP_MUL, q, q), all, true);
    part[2] = ir_mean(g, ir_binary(g, OP_MUL, d, d), all, true);
    for (int k = 0; k < 3; k++)
        part[k] = ir_reshape(g, part[k], &flat);
    ir_output(g, name_printf(g->ctx, "%s.%zu", state ? "state" : "read", row), ir_concat(g, part, 3, 0));
}

Graph *unfold_impulses(const Model *m, const Unfolding *u, int64_t impulses, Arena *arena)
{
    Val *root = NEW_ARRAY(arena, Val, u->rows + u->n + 2), *map;
    size_t n;
    roots_of(m, u, root, &n);
    Graph *g = step_values(m, root, n, &map, arena);
    Tangents t = {.m = m, .u = u, .w = find_ways(m, arena), .g = g, .map = map, .impulses = DIM(impulses)};
    int64_t widest = 1;
    for (size_t i = 0; i <= u->n; i++) {
        const UnfoldPart *p[] = {&u->source[i], &u->state[i], &u->read[i]};
        for (int k = 0; k < 3; k++)
            widest = p[k]->width > widest ? p[k]->width : widest;
    }
    Shape select = {.rank = 2, .d = {DIM(impulses), DIM((int64_t)u->segments)}},
          draw = positions(&t, DIM(1), 1, widest);
    t.select = ir_ext(g, EXT_STATE, name_str(g->ctx, UNFOLD_SELECT), DT_REAL, &select);
    Val drawn = ir_random(g, OP_RAND, &draw, name_str(g->ctx, "unfold"));
    Val half = ir_binary(g, OP_LT, drawn, ir_fill(g, 0.5));
    t.signs = ir_binary(g, OP_SUB, ir_scale(g, half, 2), ir_fill(g, 1));
    find_tangents(&t, measure);
    return g;
}

static void explain(Tangents *t, bool state, size_t i)
{
    (void)state;
    Graph *g = t->g;
    Val v = row_value(t->m, i), x = held(t, v), left = t->tangent[v] ? ir_binary(g, OP_SUB, x, t->tangent[v]) : x;
    uint32_t all = (1u << shape_of(g, x)->rank) - 1;
    ir_output(g, name_printf(g->ctx, "left.%zu", i), ir_mean(g, ir_binary(g, OP_MUL, left, left), all, false));
    ir_output(g, name_printf(g->ctx, "size.%zu", i), ir_mean(g, ir_binary(g, OP_MUL, x, x), all, false));
}

void unfold_explain(Graph *g, const Model *m, const Unfolding *u, const Val *map)
{
    Tangents t = {.m = m, .u = u, .w = find_ways(m, g->arena), .g = g, .map = map, .impulses = DIM(1)};
    find_tangents(&t, explain);
}

/* ---- factors ---- */

/* Values that vary with the data. */
static bool *varying(const Graph *g, Arena *arena)
{
    bool *varies = NEW_ARRAY(arena, bool, g->node.n);
    for (Val v = 1; v < g->node.n; v++) {
        const Node *n = node_at(g, v);
        varies[v] = n->op == OP_EXT && g->ext.v[n->a.i].kind == EXT_INPUT;
        for (size_t k = 0; k < n->n_in; k++)
            varies[v] = varies[v] || varies[n->in[k]];
    }
    return varies;
}

/* The same numbers as they were before they were permuted or repeated. */
static Val behind_views(const Graph *g, Val v)
{
    while (node_at(g, v)->op == OP_RESHAPE || node_at(g, v)->op == OP_PERMUTE || node_at(g, v)->op == OP_BROADCAST ||
           node_at(g, v)->op == OP_STOP)
        v = node_at(g, v)->in[0];
    return v;
}

typedef struct Factors {
    const Model *m;
    const Unfolding *u;
    Ways w;
    const bool *varies;
    bool *seen, *known;
    VEC(UnfoldFactor) found;
    Arena *arena;
} Factors;

/* What people call a factor: the weight that is its fixed part, or that of what functions make it of. */
static Name factor_name(const Factors *f, Val v)
{
    const Graph *g = f->w.g;
    Name module = node_at(g, v)->name;
    for (;;) {
        v = behind_views(g, v);
        const Node *n = node_at(g, v);
        if (n->op == OP_ADD && !(f->varies[n->in[0]] && f->varies[n->in[1]])) {
            const Node *fixed = node_at(g, behind_views(g, n->in[f->varies[n->in[0]]]));
            if (fixed->op == OP_EXT)
                return g->ext.v[fixed->a.i].name;
            v = n->in[!f->varies[n->in[0]]];
        } else if (op_info((Op)n->op)->class == CLASS_UNARY || n->op == OP_DIV) {
            v = n->in[0];
        } else if (n->op == OP_MUL && !(f->varies[n->in[0]] && f->varies[n->in[1]])) {
            v = n->in[f->varies[n->in[1]]];
        } else {
            return module;
        }
    }
}

static Val fixed_addend(const Graph *g, Val v, const bool *varies)
{
    const Node *n = node_at(g, v);
    if (n->op != OP_ADD)
        return 0;
    for (int k = 0; k < 2; k++)
        if (!varies[n->in[k]])
            return n->in[k];
    return 0;
}

static void add_factor(Factors *f, Val held, size_t row, bool divides)
{
    Val v = behind_views(f->w.g, held);
    if (!f->varies[held] || f->known[v] || !by_position(f->w.g, v, f->m->embedded))
        return;
    f->known[v] = true;
    vec_push(f->arena, &f->found,
             ((UnfoldFactor){v, fixed_addend(f->w.g, v, f->varies), factor_name(f, v), row, divides}));
}

static void factors_of(Factors *f, Val v, size_t row)
{
    if (f->seen[v] || f->w.source[v] || !f->w.way[v])
        return;
    f->seen[v] = true;
    const Node *n = node_at(f->w.g, v);
    for (size_t k = 0; k < n->n_in; k++)
        if (goes_on(&f->w, v, k))
            factors_of(f, n->in[k], row);
    if (n->op == OP_DIV)
        add_factor(f, n->in[1], row, true);
    if (n->op == OP_MUL || n->op == OP_MATMUL)
        add_factor(f, n->in[!f->w.carrier[v]], row, false);
}

UnfoldFactor *unfold_factors(const Model *m, const Unfolding *u, size_t *n, Arena *arena)
{
    Factors f = {.m = m, .u = u, .w = find_ways(m, arena), .varies = varying(m->graph, arena), .arena = arena};
    f.seen = NEW_ARRAY(arena, bool, m->graph->node.n);
    f.known = NEW_ARRAY(arena, bool, m->graph->node.n);
    for (size_t i = 0; i < u->rows; i++) {
        factors_of(&f, row_value(m, i), i);
        if (i < u->n)
            factors_of(&f, m->sublayer.v[i].after, i);
    }
    *n = f.found.n;
    return f.found.v;
}
