/* decode.c - see decode.h: a prediction graph that goes on where an earlier run stopped.
 *
 * In:  a graph over T positions.   Out: the same outputs over T new positions, or a refusal.
 * The one idea: in the new graph T counts new positions, so every node that treats each
 * position by itself is copied as it is. For each value it is known where in the row-major
 * order the positions (and the sequences) lie; what an operator does to that axis says whether
 * it is such a node. Only those that look back or at the number of a position are built anew:
 * attention and shifts read tables of all positions so far, running sums a kept sum, indices
 * begin at DECODE_AT. Where each sequence has a DECODE_AT of its own, what depends on positions alone has one value for
 * each sequence: such nodes are raised.
 */
#include "decode.h"
#include "compiler/graph/op.h"

#include <ctype.h>
#include <stdio.h>

enum { SEQUENCES, POSITIONS, SYMBOLS };
static const char *const symbol_name[SYMBOLS] = {"sequences of a batch", "positions"};

/* Elements of a value between two neighbours along each symbol; n = 0: it has no such axis. */
typedef struct Place {
    Dim step[SYMBOLS];
} Place;

typedef struct Decode {
    Graph *g;
    const Graph *from;
    int64_t context;
    Arena *arena;
    Val *map;     /* by Val of `from`: the new value, 0 when no output needs it */
    Val *table;   /* by Val of `from`: the table of all its positions so far, or 0 */
    Place *place; /* by Val of `from` */
    bool *raised; /* by Val of `from`: the new value has an axis of sequences before the old axes, see raised_shape() */
    bool each;    /* sequences stand at positions of their own */
    Val at, on;   /* at: [], with `each` [B] */
    Val at_each;  /* [B] */
    int n_kept;
    DecodeRefusal *no;
} Decode;

/* ---- where the symbols lie ---- */

static int power(Dim d, int symbol) { return symbol == POSITIONS ? d.t : d.b; }

/* The axis that holds the symbol, -1 without one or without elements, -2 when there are
 * several. */
static int axis_of(const Shape *s, int symbol)
{
    int axis = -1;
    Dim size;
    if (shape_size(s, &size) && !size.n)
        return -1;
    for (int i = 0; i < s->rank; i++)
        for (int k = 0; k < power(s->d[i], symbol); k++)
            axis = axis == -1 ? i : -2;
    return axis;
}

static bool is_symbol(Dim d, int symbol) { return d.n == 1 && d.b + d.t == 1 && power(d, symbol) == 1; }

/* Elements of one step along an axis. */
static Dim behind(const Shape *s, int axis)
{
    Dim size = DIM(1);
    for (int i = axis + 1; i < s->rank; i++)
        if (!dim_mul(size, s->d[i], &size))
            return DIM(0);
    return size;
}

/* The part of the step that lies inside its own axis; n = 0 when the axis is torn apart. */
static Dim within(const Shape *s, int axis, Dim step)
{
    Dim inside, rest;
    if (!dim_div(step, behind(s, axis), &inside) || !dim_div(s->d[axis], inside, &rest))
        return DIM(0);
    return inside;
}

/* Of a leaf or of equal copies: an axis n B T is one of B times T times n. */
static Dim natural(const Shape *s, int axis, int symbol)
{
    Dim d = s->d[axis], step;
    Dim inside = {d.n, 0, symbol == SEQUENCES ? d.t : 0};
    return dim_mul(inside, behind(s, axis), &step) ? step : DIM(0);
}

/* ---- what operators do to an axis ---- */

/* Where axis `axis` of input k lies in the result of n, when each index along it is treated by
 * itself; -1 when it is not. Reshapes are another matter. */
static int axis_through(const Graph *g, const Node *n, size_t k, int axis)
{
    const Shape *in = shape_of(g, n->in[k]);
    int last = in->rank - 1;
    switch ((Op)n->op) {
    case OP_PERMUTE:
        for (int i = 0; i < n->shape.rank; i++)
            if ((int)n->a.data[i] == axis)
                return i;
        return -1;
    case OP_SLICE:
    case OP_PAD:
    case OP_CONCAT:
    case OP_SHIFT:
    case OP_ROLL:
    case OP_CUMSUM: return axis == n->a.i ? -1 : axis;
    case OP_SUM:
    case OP_AMAX: return n->a.axes >> axis & 1 ? -1 : axis;
    case OP_MATMUL: {
        bool transposed = n->a.i >> k & 1;
        int row = transposed ? last : last - 1, column = transposed ? last - 1 : last;
        if (axis == (k ? row : column))
            return -1;
        return axis != row && axis != column ? axis : n->shape.rank - (k ? 1 : 2);
    }
    case OP_EXPERT_MATMUL: return k == 1 || (k == 0 && axis == last) ? -1 : axis;
    case OP_GATHER: return k == 0 ? -1 : axis;
    case OP_PICK:
    case OP_PLACE: return k == 0 && axis == last ? -1 : axis;
    case OP_TOP_K: return axis == last ? -1 : axis;
    case OP_SDPA: return axis == 0 ? 0 : -1;
    case OP_SCATTER_ADD:
    case OP_EXPERT_MATMUL_DW:
    case OP_SDPA_GRAD:
    case OP_AUX:
    case OP_DYNAMIC_UPDATE_SLICE:
    case OP_DYNAMIC_SLICE: return -1;
    default: return axis;
    }
}

__attribute__((format(printf, 3, 4))) static bool refuse(Decode *d, Val v, const char *fmt, ...)
{
    const Node *n = node_at(d->from, v);
    va_list ap;
    va_start(ap, fmt);
    char text[200];
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    *d->no = (DecodeRefusal){arena_printf(d->arena, "`%s` %s", op_info((Op)n->op)->name, text), n->name, n->span};
    return false;
}

/* The step of the symbol in v as its inputs give it, or a refusal. */
static bool find_step(Decode *d, Val v, int symbol)
{
    const Node *n = node_at(d->from, v);
    int axis = axis_of(&n->shape, symbol);
    Dim *step = &d->place[v].step[symbol], inside = DIM(0);
    Dim size;
    if (shape_size(&n->shape, &size) && !size.n)
        return true;
    if (axis == -2)
        return refuse(d, v, "makes a value of each pair of %s", symbol_name[symbol]);
    for (size_t k = 0; k < n->n_in; k++) {
        const Shape *in = shape_of(d->from, n->in[k]);
        int from = axis_of(in, symbol);
        if (from < 0)
            continue;
        Dim had = d->place[n->in[k]].step[symbol];
        if (n->op == OP_RESHAPE) {
            *step = had;
            inside = axis < 0 ? DIM(0) : within(&n->shape, axis, had);
            return inside.n || refuse(d, v, "tears %s apart", symbol_name[symbol]);
        }
        int to = axis_through(d->from, n, k, from);
        if (to < 0 || to != axis)
            return refuse(d, v, "mixes the %s", symbol_name[symbol]);
        Dim own = within(in, from, had);
        if (inside.n && !dim_eq(own, inside))
            return refuse(d, v, "takes the %s in two orders", symbol_name[symbol]);
        inside = own;
    }
    if (axis < 0)
        return true;
    if (!inside.n)
        *step = natural(&n->shape, axis, symbol);
    else if (!dim_mul(inside, behind(&n->shape, axis), step))
        *step = DIM(0);
    return step->n || refuse(d, v, "has no place for the %s", symbol_name[symbol]);
}

/* ---- nodes that look at other positions ---- */

static Name next_name(Decode *d) { return name_printf(d->g->ctx, "decode.%d", d->n_kept++); }

/* Are sequences and positions the first two axes of v, each alone? */
static bool in_rows(const Decode *d, Val v)
{
    const Shape *s = shape_of(d->from, v);
    return s->rank >= 2 && is_symbol(s->d[0], SEQUENCES) && is_symbol(s->d[1], POSITIONS);
}

/* All positions so far of value v of the old graph, the new ones among them. */
static Val table_of(Decode *d, Val v)
{
    if (d->table[v])
        return d->table[v];
    Shape s = *shape_of(d->from, v);
    DType type = (DType)node_at(d->from, v)->dtype;
    s.d[1] = DIM(d->context);
    Name name = next_name(d);
    Val kept = ir_ext(d->g, EXT_STATE, name, type, &s);
    Val all = ir_put(d->g, kept, d->map[v], d->at_each, d->on);
    ir_store(d->g, all, EXT_STATE, name);
    return d->table[v] = all;
}

/* ---- values of positions alone, where each sequence has its own ---- */

/* B takes the place of a first axis of one element; else it is a further axis. Either way the elements of a sequence lie together, in
 * their old order. */
static Shape raised_shape(const Shape *s)
{
    Shape r = *s;
    if (!s->rank || !dim_eq(s->d[0], DIM(1))) {
        memmove(r.d + 1, s->d, s->rank * sizeof *r.d);
        r.rank++;
    }
    r.d[0] = DIM_B;
    return r;
}

/* The new value of v with an axis of sequences. */
static Val raise_value(Decode *d, Val v)
{
    Shape s = raised_shape(shape_of(d->from, v));
    return d->raised[v] ? d->map[v] : ir_broadcast(d->g, d->map[v], &s);
}

/* [B] as a factor of shape `s`, whose axis `axis` is that of sequences. */
static Val along_sequences(Decode *d, Val each, const Shape *s, int axis)
{
    Shape marks = {.rank = s->rank};
    for (int i = 0; i < marks.rank; i++)
        marks.d[i] = i == axis ? DIM_B : DIM(1);
    return ir_reshape(d->g, each, &marks);
}

/* It meets values that have sequences: it is made as wide as these, which have them first. */
static bool lower_raised(Decode *d, Val v)
{
    const Node *n = node_at(d->from, v);
    bool first = n->op == OP_BROADCAST && dim_eq(shape_of(d->from, n->in[0])->d[0], DIM(1));
    if (!first || !is_symbol(n->shape.d[0], SEQUENCES))
        return refuse(d, v, "gives positions that are of no sequence to sequences");
    d->map[v] = ir_broadcast(d->g, d->map[n->in[0]], &n->shape);
    return true;
}

static bool has_room(Decode *d, Val v)
{
    return node_at(d->from, v)->shape.rank < MAX_RANK || refuse(d, v, "has no room for an axis of sequences");
}

/* A node with an input that is raised, and no sequences of its own. */
static bool copy_raised(Decode *d, Val v)
{
    const Node *n = node_at(d->from, v);
    Graph *g = d->g;
    if (!has_room(d, v))
        return false;
    Shape s = raised_shape(&n->shape), in = *shape_of(d->from, n->in[0]);
    int more = s.rank - n->shape.rank, axis;
    Val x = d->map[n->in[0]], *all = NEW_ARRAY(d->arena, Val, n->n_in);
    switch ((Op)n->op) {
    case OP_RESHAPE: d->map[v] = ir_reshape(g, x, &s); break;
    case OP_BROADCAST:
        memmove(in.d + 1, in.d + !more, (size_t)(in.rank - !more) * sizeof *in.d);
        in.d[0] = DIM_B;
        in.rank = (uint8_t)(in.rank + more);
        d->map[v] = ir_broadcast(g, ir_reshape(g, x, &in), &s);
        break;
    case OP_GATHER:
        if (d->raised[n->in[0]])
            return refuse(d, v, "reads a table of positions");
        d->map[v] = ir_reshape(g, ir_gather(g, x, d->map[n->in[1]]), &s);
        break;
    case OP_SLICE:
        axis = (int)n->a.i + shape_of(g, x)->rank - in.rank;
        if (!axis)
            return refuse(d, v, "takes a part of one sequence");
        d->map[v] = ir_reshape(g, ir_slice(g, x, axis, n->a.j, n->shape.d[n->a.i].n), &s);
        break;
    case OP_MATMUL:
        if (d->raised[n->in[1]] || n->a.i & 1)
            return refuse(d, v, "multiplies by positions");
        d->map[v] = ir_node(g, OP_MATMUL, (Val[]){x, d->map[n->in[1]]}, 2, &n->a, NULL);
        break;
    default:
        if (!op_is_map((Op)n->op) && (n->op != OP_CONCAT || !n->a.i))
            return refuse(d, v, "is computed of positions alone");
        for (size_t i = 0; i < n->n_in; i++)
            all[i] = raise_value(d, n->in[i]);
        d->map[v] = n->op == OP_CONCAT ? ir_concat(g, all, n->n_in, (int)n->a.i + more)
                                       : ir_node(g, (Op)n->op, all, n->n_in, &n->a, NULL);
    }
    return d->raised[v] = true;
}

/* A node that treats each position by itself. */
static bool copy_plain(Decode *d, Val v)
{
    const Node *n = node_at(d->from, v);
    bool raised = false;
    for (size_t i = 0; i < n->n_in; i++)
        raised |= d->raised[n->in[i]];
    if (raised)
        return axis_of(&n->shape, SEQUENCES) == -1 ? copy_raised(d, v) : lower_raised(d, v);
    d->map[v] = ir_copy(d->g, d->from, v, d->map);
    return true;
}

static bool decode_iota(Decode *d, Val v)
{
    const Node *n = node_at(d->from, v);
    Dim extent = n->shape.d[n->a.i];
    if (!is_symbol(extent, POSITIONS))
        return refuse(d, v, "numbers more than positions");
    d->map[v] = ir_copy(d->g, d->from, v, d->map);
    Val at = d->at;
    int axis = axis_of(&n->shape, SEQUENCES);
    if (d->each && axis < 0) {
        if (!has_room(d, v))
            return false;
        d->map[v] = raise_value(d, v);
        d->raised[v] = true;
        axis = 0;
    }
    if (d->each)
        at = along_sequences(d, d->at, shape_of(d->g, d->map[v]), axis);
    d->map[v] = ir_binary(d->g, OP_ADD, d->map[v], at);
    return true;
}

static bool decode_shift(Decode *d, Val v)
{
    const Node *n = node_at(d->from, v);
    if (n->a.j < 0)
        return refuse(d, v, "reads later positions");
    if (!in_rows(d, v) || n->a.i != 1)
        return refuse(d, v, "moves positions that are not the second axis of [B, T, ..]");
    Val table = table_of(d, n->in[0]);
    Val from = ir_binary(d->g, OP_SUB, d->at_each, ir_int(d->g, n->a.j));
    d->map[v] = ir_take(d->g, table, from, DIM_T, n->a.x);
    return true;
}

/* The sum of earlier positions is kept; at position 0 there is none. */
static bool decode_cumsum(Decode *d, Val v)
{
    const Node *n = node_at(d->from, v);
    int axis = (int)n->a.i, first = axis_of(&n->shape, SEQUENCES);
    if (n->a.j)
        return refuse(d, v, "sums later positions");
    if (!is_symbol(n->shape.d[axis], POSITIONS) || first < 0 || !is_symbol(n->shape.d[first], SEQUENCES))
        return refuse(d, v, "runs over positions that are no axis beside that of sequences");
    Graph *g = d->g;
    Shape one = n->shape;
    one.d[axis] = DIM(1);
    Name name = next_name(d);
    Val x = d->map[n->in[0]], kept = ir_ext(g, EXT_STATE, name, DT_REAL, &one);
    Val at = d->each ? along_sequences(d, d->at, &one, first) : d->at;
    Val start = ir_binary(g, OP_EQ, at, ir_int(g, 0));
    Val before = ir_where(g, start, ir_fill(g, 0), kept);
    Val sums = ir_cumsum(g, x, axis, false);
    d->map[v] = ir_binary(g, OP_ADD, sums, before);
    Val after = ir_binary(g, OP_ADD, before, ir_sum(g, x, 1u << axis, true));
    Val off = ir_binary(g, OP_EQ, along_sequences(d, d->on, &one, first), ir_int(g, 0));
    ir_store(g, ir_where(g, off, kept, after), EXT_STATE, name);
    return true;
}

/* Keys and values over positions stand in tables; others are the same for every position. */
static bool decode_attention(Decode *d, Val v)
{
    const Node *n = node_at(d->from, v);
    bool over = axis_of(shape_of(d->from, n->in[1]), POSITIONS) == 1;
    for (size_t k = 0; k < 3; k++) {
        int axis = axis_of(shape_of(d->from, n->in[k]), POSITIONS);
        if (axis != (k == 0 || over ? 1 : -1) || (axis == 1 && !in_rows(d, n->in[k])))
            return refuse(d, v, "has positions in other axes than [B, T, heads, ..]");
    }
    if (sdpa_has_oldest(d->from, n))
        return refuse(d, v, "sees a part of the positions that an input decides");
    if (over && !(n->a.i & 1))
        return refuse(d, v, "reads later positions (its mask is not causal)");
    Val in[4] = {d->map[n->in[0]], d->map[n->in[1]], d->map[n->in[2]], d->at_each};
    for (size_t k = 1; over && k < 3; k++)
        in[k] = table_of(d, n->in[k]);
    bool same = !over && !(n->a.i & 1) && !n->a.j; /* every query sees all keys */
    d->map[v] = ir_node(d->g, OP_SDPA, in, same ? 3 : 4, &n->a, NULL);
    return true;
}

/* Does the node look along positions, or at their numbers, or at chance? */
static bool looks_along(const Decode *d, const Node *n)
{
    int axis = axis_of(&n->shape, POSITIONS);
    if (n->op == OP_IOTA)
        return power(n->shape.d[n->a.i], POSITIONS) > 0;
    if (n->op == OP_SHIFT)
        return axis == n->a.i && n->a.j != 0;
    if (n->op == OP_CUMSUM)
        return axis == n->a.i;
    if (n->op != OP_SDPA)
        return false;
    for (size_t k = 0; k < 3; k++)
        if (axis_of(shape_of(d->from, n->in[k]), POSITIONS) > 0)
            return true;
    return false;
}

/* The steps of a node that looks along positions: its positions stay where they are. */
static bool find_steps_along(Decode *d, Val v)
{
    const Node *n = node_at(d->from, v);
    int axis = axis_of(&n->shape, POSITIONS);
    if (axis < 0)
        return refuse(d, v, "mixes the positions");
    d->place[v].step[POSITIONS] = natural(&n->shape, axis, POSITIONS);
    return find_step(d, v, SEQUENCES);
}

/* What no later step can know: how many there are, which one this is, what was drawn. */
static bool is_open(Decode *d, Val v)
{
    const Node *n = node_at(d->from, v);
    bool symbolic = axis_of(&n->shape, POSITIONS) != -1 || axis_of(&n->shape, SEQUENCES) != -1;
    if (n->op == OP_DIM && !dim_static(n->a.dim))
        return refuse(d, v, "reads the number of %s", symbol_name[n->a.dim.t ? POSITIONS : SEQUENCES]);
    if ((n->op == OP_RAND || n->op == OP_RANDN) && symbolic)
        return refuse(d, v, "draws for each position");
    if (n->op == OP_IOTA && n->shape.d[n->a.i].b)
        return refuse(d, v, "reads the number of a sequence");
    return true;
}

static bool decode_node(Decode *d, Val v)
{
    const Node *n = node_at(d->from, v);
    d->g->span = n->span;
    d->g->name = n->name;
    if (!is_open(d, v))
        return false;
    if (!looks_along(d, n)) {
        for (int symbol = 0; symbol < SYMBOLS; symbol++)
            if (!find_step(d, v, symbol))
                return false;
        return copy_plain(d, v);
    }
    if (!find_steps_along(d, v))
        return false;
    switch ((Op)n->op) {
    case OP_IOTA: return decode_iota(d, v);
    case OP_SHIFT: return decode_shift(d, v);
    case OP_CUMSUM: return decode_cumsum(d, v);
    default: return decode_attention(d, v);
    }
}

/* ---- the whole ---- */

static bool *needed_nodes(const Graph *g, Arena *arena)
{
    bool *needed = NEW_ARRAY(arena, bool, g->node.n);
    for (size_t i = 0; i < g->out.n; i++)
        needed[g->out.v[i].value] = true;
    for (Val v = (Val)g->node.n; v-- > 1;)
        for (size_t i = 0; needed[v] && i < node_at(g, v)->n_in; i++)
            needed[node_at(g, v)->in[i]] = true;
    return needed;
}

static bool holds_positions(const Graph *g, Val v, int64_t axis)
{
    const Shape *s = shape_of(g, v);
    return axis >= 0 && axis < s->rank && power(s->d[axis], POSITIONS) > 0;
}

const char *decode_moves_back(const Graph *g, const Node *n)
{
    switch ((Op)n->op) {
    case OP_SHIFT: return n->a.j < 0 && holds_positions(g, n->in[0], n->a.i) ? "reads later positions" : NULL;
    case OP_ROLL: return holds_positions(g, n->in[0], n->a.i) ? "moves later positions to the front" : NULL;
    case OP_CUMSUM: return n->a.j && holds_positions(g, n->in[0], n->a.i) ? "sums later positions" : NULL;
    default: return NULL;
    }
}

const char *decode_written(const Graph *g, const Node *n, Arena *arena)
{
    size_t size = 0, k = 0;
    const char *text = n->span.file ? source_text(g->ctx, n->span.file, &size) : "";
    const char *at = n->span.lo < size ? text + n->span.lo : "";
    while (isalnum((unsigned char)at[k]) || at[k] == '_')
        k++;
    if (k && at[k] == '(')
        return arena_copy(arena, at, k);
    return n->op == OP_MATMUL ? "@" : op_info((Op)n->op)->name;
}

const char *decode_looks(const Graph *g, const Node *n)
{
    switch ((Op)n->op) {
    case OP_SDPA:
        return !(n->a.i & 1) && holds_positions(g, n->in[1], 1) ? "reads later positions (its mask is not causal)"
                                                                : NULL;
    case OP_SUM:
    case OP_AMAX:
        for (int i = 0; i < shape_of(g, n->in[0])->rank; i++)
            if (n->a.axes >> i & 1 && holds_positions(g, n->in[0], i))
                return "runs over all positions";
        return NULL;
    case OP_MATMUL: {
        int last = shape_of(g, n->in[0])->rank - 1;
        return holds_positions(g, n->in[0], n->a.i & 1 ? last - 1 : last) ? "sums over all positions" : NULL;
    }
    default: return decode_moves_back(g, n);
    }
}

bool decode_looks_ahead(const Graph *g, Arena *arena, DecodeRefusal *where)
{
    const bool *needed = needed_nodes(g, arena);
    for (Val v = 1; v < g->node.n; v++) {
        const Node *n = node_at(g, v);
        const char *why = needed[v] ? decode_looks(g, n) : NULL;
        if (!why)
            continue;
        *where = (DecodeRefusal){arena_printf(arena, "`%s` %s", decode_written(g, n, arena), why), n->name, n->span};
        return true;
    }
    return false;
}

bool model_may_look_ahead(const Model *m, Arena *arena, DecodeRefusal *where)
{
    return m->vocab > 0 && model_reads(m, "tokens") && decode_looks_ahead(step_predict(m, arena), arena, where);
}

const char *decode_place(Ctx *ctx, Arena *arena, const DecodeRefusal *no)
{
    const char *name = no->name ? no->name : "the model";
    if (!no->span.file)
        return name;
    LineCol at = source_position(ctx, no->span.file, no->span.lo);
    return arena_printf(arena, "%.200s:%u:%u (%.100s)", source_path(ctx, no->span.file), at.line, at.column, name);
}

bool decode_goes_back(const Graph *g)
{
    for (size_t i = 0; i < g->out.n; i++) {
        const Output *o = &g->out.v[i];
        if (o->ext >= 0 && node_at(g, o->value)->op != OP_DYNAMIC_UPDATE_SLICE)
            return false;
    }
    return true;
}

Graph *decode_graph(const Graph *predict, int64_t context, bool each, Arena *arena, DecodeRefusal *no)
{
    Decode d = {.g = graph_new(predict->ctx, arena),
                .from = predict,
                .context = context,
                .arena = arena,
                .each = each,
                .no = no};
    size_t n = predict->node.n;
    d.map = NEW_ARRAY(arena, Val, n);
    d.table = NEW_ARRAY(arena, Val, n);
    d.place = NEW_ARRAY(arena, Place, n);
    d.raised = NEW_ARRAY(arena, bool, n);
    const bool *needed = needed_nodes(predict, arena);
    Shape one = {0}, sequences = {.rank = 1, .d = {DIM_B}};
    d.at = ir_ext(d.g, EXT_INPUT, name_str(d.g->ctx, DECODE_AT), DT_INT, each ? &sequences : &one);
    d.at_each = ir_broadcast(d.g, d.at, &sequences);
    d.on = ir_ext(d.g, EXT_INPUT, name_str(d.g->ctx, DECODE_ON), DT_INT, &sequences);
    for (Val v = 1; v < n; v++)
        if (needed[v] && !decode_node(&d, v))
            return NULL;
    d.g->span = NO_SPAN;
    d.g->name = NULL;
    for (size_t i = 0; i < predict->out.n; i++)
        ir_output(d.g, predict->out.v[i].name, d.map[predict->out.v[i].value]);
    return d.g;
}
