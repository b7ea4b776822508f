/* simplify_rules.c - the rules: arithmetic identities, moves that cancel, constants.
 *
 * In:  a draft of a node.     Out: a value that is equal to it, or 0.
 * The one idea: a rule may change how a value is rounded only where the new way rounds less
 * often (a sum of equal terms becomes one product). A division by a constant stays one unless
 * the constant is a power of two.
 */
#include "recompute.h"
#include "simplify_build.h"

#include <math.h>

enum { LARGEST_TABLE = 4096 };

/* ---- constants that are one number everywhere ---- */

Val emit_uniform(Simplifier *s, const Shape *shape, DType dtype, double x)
{
    Attr a = {.x = x, .j = dtype == DT_INT};
    Val v = make_node(s, OP_FILL, NULL, 0, &a, NULL);
    if (shape->rank == 0)
        return v;
    Shape ones = {.rank = shape->rank};
    for (int k = 0; k < ones.rank; k++)
        ones.d[k] = DIM(1);
    v = emit_shaped(s, OP_RESHAPE, v, &ones);
    return emit_shaped(s, OP_BROADCAST, v, shape);
}

static bool is_uniform(const Simplifier *s, Val v, double x)
{
    double value;
    return ir_is_uniform(s->g, v, &value) && value == x;
}

static bool is_elementwise(Op op) { return op_is_map(op) && op != OP_STOP; }

/* One element of each input in, one element out, by the operator's own rule. */
static Val fold_uniform(Simplifier *s, const Draft *d)
{
    double real[4] = {0};
    int64_t integer[4] = {0};
    Tensor t[4];
    Tensor *in[3] = {&t[0], &t[1], &t[2]};
    for (size_t k = 0; k < d->n_in; k++) {
        if (!ir_is_uniform(s->g, d->in[k], &real[k]))
            return 0;
        integer[k] = made(s, d->in[k])->dtype == DT_INT ? (int64_t)real[k] : 0;
        t[k] = (Tensor){.dtype = (DType)made(s, d->in[k])->dtype, .size = 1, .real = &real[k], .integer = &integer[k]};
    }
    t[3] = (Tensor){.dtype = d->dtype, .size = 1, .real = &real[3], .integer = &integer[3]};
    Node n = {.op = (uint8_t)d->op, .dtype = (uint8_t)d->dtype, .n_in = (uint16_t)d->n_in, .a = d->a};
    op_rules[d->op].eval(&(OpEval){s->g->ctx, s->g, NULL, &n, in, &t[3], NULL, 0});
    if (d->dtype == DT_REAL)
        return emit_uniform(s, &d->shape, DT_REAL, real[3]);
    int64_t most = (int64_t)1 << 53;
    if (integer[3] > most || integer[3] < -most)
        return 0;
    return emit_uniform(s, &d->shape, DT_INT, (double)integer[3]);
}

/* ---- arithmetic ---- */

static bool is_op(const Simplifier *s, Val v, Op op) { return made(s, v)->op == op; }

static Val input_of(const Simplifier *s, Val v) { return made(s, v)->in[0]; }

static Val zeros(Simplifier *s, const Draft *d) { return emit_uniform(s, &d->shape, d->dtype, 0); }

/* The sum of two tensors in zeros that follow one another along an axis (the gradients of two
 * slices) is their concatenation; 0 when they are anything else. */
static Val join_pads(Simplifier *s, Val x, Val y)
{
    const Node *a = made(s, x), *b = made(s, y);
    if (a->op != OP_PAD || b->op != OP_PAD || a->a.i != b->a.i)
        return 0;
    if (a->a.j > b->a.j) {
        const Node *later = a;
        a = b;
        b = later;
    }
    Shape whole = a->shape;
    Dim first = shape_of(s->g, a->in[0])->d[a->a.i];
    if (!dim_static(first) || !dim_static(shape_of(s->g, b->in[0])->d[a->a.i]) || a->a.j + first.n != b->a.j)
        return 0;
    Attr pad = a->a;
    Val both[2] = {a->in[0], b->in[0]};
    Val v = make_node(s, OP_CONCAT, both, 2, &(Attr){.i = pad.i}, NULL);
    return make_node(s, OP_PAD, &v, 1, &pad, &whole);
}

/* The same inside a longer sum: x + pad + pad. Each element gets the same terms as before. */
static Val join_pads_in_sum(Simplifier *s, Val sum, Val pad)
{
    if (!is_op(s, sum, OP_ADD) || !is_op(s, pad, OP_PAD))
        return 0;
    const Node *n = made(s, sum);
    for (int k = 0; k < 2; k++) {
        Val joined = join_pads(s, n->in[k], pad);
        if (joined)
            return emit_op(s, OP_ADD, n->in[1 - k], joined, 0);
    }
    return 0;
}

static Val sums(Simplifier *s, const Draft *d)
{
    Val a = d->in[0], b = d->in[1];
    bool minus = d->op == OP_SUB;
    if (is_uniform(s, b, 0))
        return a;
    if (is_uniform(s, a, 0))
        return minus ? emit_op(s, OP_NEG, b, 0, 0) : b;
    if (is_op(s, b, OP_NEG))
        return emit_op(s, minus ? OP_ADD : OP_SUB, a, input_of(s, b), 0);
    if (minus)
        return 0;
    if (is_op(s, a, OP_NEG))
        return emit_op(s, OP_SUB, b, input_of(s, a), 0);
    Val joined = join_pads(s, a, b);
    if (!joined)
        joined = join_pads_in_sum(s, a, b);
    return joined ? joined : join_pads_in_sum(s, b, a);
}

static Val products(Simplifier *s, const Draft *d)
{
    Val a = d->in[0], b = d->in[1];
    if (is_uniform(s, a, 0) || is_uniform(s, b, 0))
        return zeros(s, d);
    if (is_uniform(s, b, 1))
        return a;
    if (is_uniform(s, a, 1))
        return b;
    if (is_uniform(s, b, -1))
        return emit_op(s, OP_NEG, a, 0, 0);
    if (is_uniform(s, a, -1))
        return emit_op(s, OP_NEG, b, 0, 0);
    if (is_op(s, a, OP_NEG) && is_op(s, b, OP_NEG))
        return emit_op(s, OP_MUL, input_of(s, a), input_of(s, b), 0);
    return 0;
}

static Val quotients(Simplifier *s, const Draft *d)
{
    double x;
    int exponent;
    if (!ir_is_uniform(s->g, d->in[1], &x))
        return 0;
    if (x == 1)
        return d->in[0];
    const Shape *t = &d->shape;
    if (t->rank && dim_eq(t->d[t->rank - 1], DIM(1))) /* one number of a row: a mean whatever its count is */
        return 0;
    if (!isfinite(x) || fabs(frexp(x, &exponent)) != 0.5 || exponent < -120 || exponent > 120)
        return 0;
    return emit_op(s, OP_MUL, d->in[0], emit_uniform(s, &d->shape, DT_REAL, 1 / x), 0);
}

static Val powers(Simplifier *s, const Draft *d)
{
    double x;
    if (!ir_is_uniform(s->g, d->in[1], &x))
        return 0;
    if (x == 0)
        return emit_uniform(s, &d->shape, DT_REAL, 1);
    if (x == 1)
        return d->in[0];
    if (x == 2)
        return emit_op(s, OP_MUL, d->in[0], d->in[0], 0);
    if (x == 0.5)
        return emit_op(s, OP_SQRT, d->in[0], 0, 0);
    if (x == -1)
        return emit_op(s, OP_DIV, emit_uniform(s, &d->shape, DT_REAL, 1), d->in[0], 0);
    return 0;
}

static Val arithmetic(Simplifier *s, const Draft *d)
{
    double mask;
    Val x = d->in[0];
    switch (d->op) {
    case OP_ADD:
    case OP_SUB: return sums(s, d);
    case OP_MUL: return products(s, d);
    case OP_DIV: return quotients(s, d);
    case OP_POW: return powers(s, d);
    case OP_NEG: return is_op(s, x, OP_NEG) ? input_of(s, x) : 0;
    case OP_STOP: return s->drop_stop && !recompute_is_guard(d->op, &d->a) ? x : 0;
    case OP_ROUND_TO: return is_op(s, x, OP_ROUND_TO) && made(s, x)->a.i == d->a.i ? x : 0;
    case OP_MIN:
    case OP_MAX: return x == d->in[1] ? x : 0;
    case OP_WHERE:
        if (ir_is_uniform(s->g, x, &mask))
            return d->in[mask != 0 ? 1 : 2];
        return d->in[1] == d->in[2] ? d->in[1] : 0;
    default: return 0;
    }
}

/* Axes along which every input only repeats itself: compute without them, then repeat. */
static Val repeat_later(Simplifier *s, const Draft *d)
{
    double x;
    Shape small = d->shape;
    for (int k = 0; k < small.rank && k < MAX_RANK; k++) {
        bool repeated = true;
        for (size_t i = 0; i < d->n_in; i++) {
            const Node *n = made(s, d->in[i]);
            repeated = repeated && (ir_is_uniform(s->g, d->in[i], &x) ||
                                    (n->op == OP_BROADCAST && dim_eq(shape_of(s->g, n->in[0])->d[k], DIM(1))));
        }
        if (repeated)
            small.d[k] = DIM(1);
    }
    if (shape_eq(&small, &d->shape))
        return 0;
    Val in[3];
    for (size_t i = 0; i < d->n_in; i++) {
        DType dtype = (DType)made(s, d->in[i])->dtype;
        in[i] = ir_is_uniform(s->g, d->in[i], &x) ? emit_uniform(s, &small, dtype, x)
                                                  : emit_shaped(s, OP_BROADCAST, input_of(s, d->in[i]), &small);
    }
    Val v = make_node(s, d->op, in, d->n_in, &d->a, NULL);
    return emit_shaped(s, OP_BROADCAST, v, &d->shape);
}

Val simplify_elementwise(Simplifier *s, const Draft *d)
{
    if (!is_elementwise(d->op) && d->op != OP_STOP)
        return 0;
    Val v = arithmetic(s, d);
    if (v || d->op == OP_STOP)
        return v;
    v = fold_uniform(s, d);
    return v ? v : repeat_later(s, d);
}

/* ---- views, moves, reductions, products ---- */

/* A permutation that leaves the axes of extent other than 1 in order moves nothing. */
static Val permutes(Simplifier *s, const Draft *d)
{
    Val x = d->in[0];
    const Node *n = made(s, x);
    if (n->op == OP_PERMUTE) {
        double data[MAX_RANK];
        for (size_t k = 0; k < d->a.n; k++)
            data[k] = n->a.data[(int)d->a.data[k]];
        Val from = n->in[0];
        return make_node(s, OP_PERMUTE, &from, 1, &(Attr){.data = data, .n = d->a.n}, NULL);
    }
    double last = -1;
    for (int k = 0; k < d->shape.rank; k++) {
        if (dim_eq(d->shape.d[k], DIM(1)))
            continue;
        if (d->a.data[k] < last)
            return 0;
        last = d->a.data[k];
    }
    return emit_shaped(s, OP_RESHAPE, x, &d->shape);
}

static Val slices(Simplifier *s, const Draft *d)
{
    Val x = d->in[0];
    const Node *n = made(s, x);
    int axis = (int)d->a.i;
    Dim count = d->shape.d[axis];
    if (n->op == OP_SLICE && n->a.i == axis) {
        Val from = n->in[0];
        return make_node(s, OP_SLICE, &from, 1, &(Attr){.i = axis, .j = n->a.j + d->a.j}, d->given);
    }
    if (n->op == OP_PAD && n->a.i == axis && n->a.j == d->a.j && shape_eq(shape_of(s->g, n->in[0]), &d->shape))
        return n->in[0];
    if (n->op == OP_BROADCAST && dim_eq(shape_of(s->g, n->in[0])->d[axis], DIM(1)))
        return emit_shaped(s, OP_BROADCAST, n->in[0], &d->shape);
    int64_t start = d->a.j;
    for (size_t k = 0; n->op == OP_CONCAT && n->a.i == axis && k < n->n_in; k++) {
        Dim part = shape_of(s->g, n->in[k])->d[axis];
        if (!dim_static(part) || !dim_static(count))
            return 0;
        if (start >= 0 && start + count.n <= part.n) {
            Val from = n->in[k];
            return make_node(s, OP_SLICE, &from, 1, &(Attr){.i = axis, .j = start}, d->given);
        }
        start -= part.n;
    }
    return 0;
}

/* Adjacent slices of one tensor that make up all of it. */
static Val joins_again(const Simplifier *s, const Draft *d)
{
    int axis = (int)d->a.i;
    int64_t at = 0;
    Val source = 0;
    for (size_t k = 0; k < d->n_in; k++) {
        const Node *n = made(s, d->all[k]);
        if (n->op != OP_SLICE || n->a.i != axis || n->a.j != at || (k && n->in[0] != source))
            return 0;
        source = n->in[0];
        at += n->shape.d[axis].n;
    }
    return shape_eq(shape_of(s->g, source), &d->shape) ? source : 0;
}

/* Without empty inputs, and with the inputs of an inner concatenation instead of it. */
static Val concats(Simplifier *s, const Draft *d)
{
    bool nested = false;
    int axis = (int)d->a.i;
    VEC(Val) in = {0};
    for (size_t k = 0; k < d->n_in; k++) {
        const Node *n = made(s, d->all[k]);
        bool inner = n->op == OP_CONCAT && n->a.i == axis;
        nested = nested || inner;
        for (size_t i = 0; inner && i < n->n_in; i++)
            vec_push(s->memory, &in, n->in[i]);
        if (!inner && n->shape.d[axis].n != 0)
            vec_push(s->memory, &in, d->all[k]);
    }
    if (in.n == 0)
        return d->all[0];
    if (in.n == 1)
        return in.v[0];
    if (nested || in.n < d->n_in)
        return make_node(s, OP_CONCAT, in.v, in.n, &d->a, NULL);
    return joins_again(s, d);
}

static Val moves(Simplifier *s, const Draft *d)
{
    Val x = d->in[0];
    Dim n = d->shape.d[d->a.i];
    double value;
    bool uniform = ir_is_uniform(s->g, x, &value);
    if (d->op == OP_ROLL) {
        if (d->a.j == 0 || uniform)
            return x;
        if (!dim_static(n) || n.n == 0 || (d->a.j > 0 && d->a.j < n.n))
            return 0;
        Attr a = {.i = d->a.i, .j = (d->a.j % n.n + n.n) % n.n};
        return make_node(s, OP_ROLL, &x, 1, &a, NULL);
    }
    if (d->a.j == 0 || (uniform && value == d->a.x))
        return x;
    if (dim_static(n) && (d->a.j >= n.n || -d->a.j >= n.n))
        return emit_uniform(s, &d->shape, d->dtype, d->a.x);
    return 0;
}

/* Axes of extent 1 need no reduction; a sum over repeated elements is a multiple; one of negatives is the
 * negative. */
static Val reductions(Simplifier *s, const Draft *d)
{
    Val x = d->in[0];
    const Node *n = made(s, x);
    const Shape *in = &n->shape;
    uint32_t axes = d->a.axes, repeated = 0;
    for (int k = 0; k < in->rank; k++) {
        if (dim_eq(in->d[k], DIM(1)))
            axes &= ~(1u << k);
        else if (n->op == OP_BROADCAST && axes >> k & 1 && in->d[k].n != 0 &&
                 dim_eq(shape_of(s->g, n->in[0])->d[k], DIM(1)))
            repeated |= 1u << k;
    }
    if (!axes)
        return x;
    if (axes != d->a.axes)
        return make_node(s, d->op, &x, 1, &(Attr){.axes = axes}, NULL);
    if (n->op == d->op) {
        Val from = n->in[0];
        return make_node(s, d->op, &from, 1, &(Attr){.axes = axes | n->a.axes}, NULL);
    }
    if (n->op == OP_NEG && d->op == OP_SUM) {
        Val from = n->in[0];
        return emit_op(s, OP_NEG, make_node(s, OP_SUM, &from, 1, &d->a, NULL), 0, 0);
    }
    if (!repeated)
        return 0;
    Dim count = DIM(1);
    Shape narrow = *in;
    for (int k = 0; k < in->rank; k++)
        if (repeated >> k & 1) {
            narrow.d[k] = DIM(1);
            if (!dim_mul(count, in->d[k], &count))
                return 0;
        }
    Val v = emit_shaped(s, OP_BROADCAST, n->in[0], &narrow);
    if (axes & ~repeated)
        v = make_node(s, d->op, &v, 1, &(Attr){.axes = axes & ~repeated}, NULL);
    if (d->op == OP_AMAX)
        return v;
    Val factor = dim_static(count) ? emit_uniform(s, &(Shape){.rank = 0}, DT_REAL, (double)count.n)
                                   : make_node(s, OP_DIM, NULL, 0, &(Attr){.dim = count}, NULL);
    Shape ones = {.rank = d->shape.rank};
    for (int k = 0; k < ones.rank; k++)
        ones.d[k] = DIM(1);
    factor = emit_shaped(s, OP_BROADCAST, emit_shaped(s, OP_RESHAPE, factor, &ones), &d->shape);
    return emit_op(s, OP_MUL, v, factor, 0);
}

static bool swaps_last_two(const Node *n)
{
    if (n->op != OP_PERMUTE)
        return false;
    int rank = n->shape.rank;
    for (int k = 0; k < rank - 2; k++)
        if (n->a.data[k] != k)
            return false;
    return n->a.data[rank - 1] == rank - 2;
}

/* The matrix under a BROADCAST that repeats it over all leading axes, or 0. */
static Val shared_matrix(Simplifier *s, Val b)
{
    const Node *n = made(s, b);
    if (n->op != OP_BROADCAST || n->shape.rank < 3)
        return 0;
    Shape in = *shape_of(s->g, n->in[0]), flat = {.rank = 2};
    for (int k = 0; k < in.rank - 2; k++)
        if (!dim_eq(in.d[k], DIM(1)))
            return 0;
    for (int k = 0; k < 2; k++) {
        flat.d[k] = in.d[in.rank - 2 + k];
        if (!dim_eq(flat.d[k], n->shape.d[in.rank - 2 + k]))
            return 0;
    }
    return emit_shaped(s, OP_RESHAPE, n->in[0], &flat);
}

static Val matrix_products(Simplifier *s, const Draft *d)
{
    Val in[2] = {d->in[0], d->in[1]};
    Attr a = d->a;
    if (is_uniform(s, in[0], 0) || is_uniform(s, in[1], 0))
        return zeros(s, d);
    for (int k = 0; k < 2; k++)
        if (swaps_last_two(made(s, in[k]))) {
            in[k] = input_of(s, in[k]);
            a.i ^= 1 << k;
        }
    Val shared = shared_matrix(s, in[1]);
    if (shared)
        in[1] = shared;
    if (in[0] == d->in[0] && in[1] == d->in[1])
        return 0;
    return make_node(s, OP_MATMUL, in, 2, &a, NULL);
}

Val simplify_layout(Simplifier *s, const Draft *d)
{
    Val x = d->n_in ? d->in[0] : 0;
    const Node *n = made(s, x);
    switch (d->op) {
    case OP_RESHAPE:
    case OP_BROADCAST:
        if (shape_eq(&n->shape, &d->shape))
            return x;
        return n->op == d->op ? emit_shaped(s, d->op, n->in[0], &d->shape) : 0;
    case OP_PERMUTE: return permutes(s, d);
    case OP_SLICE: return shape_eq(&n->shape, &d->shape) ? x : slices(s, d);
    case OP_PAD:
        if (is_uniform(s, x, 0) || dim_eq(n->shape.d[d->a.i], DIM(0)))
            return zeros(s, d);
        return shape_eq(&n->shape, &d->shape) ? x : 0;
    case OP_CONCAT: return concats(s, d);
    case OP_SHIFT:
    case OP_ROLL: return moves(s, d);
    case OP_SUM:
    case OP_AMAX: return reductions(s, d);
    case OP_CUMSUM: return dim_eq(d->shape.d[d->a.i], DIM(1)) ? x : 0;
    case OP_MATMUL: return matrix_products(s, d);
    default: return 0;
    }
}

/* ---- tables ---- */

/* The input as numbers: a table, or one number everywhere. */
static bool as_table(Simplifier *s, Val v, Arena *memory, Tensor **out)
{
    const Node *n = made(s, v);
    Dim size;
    double x = 0;
    bool uniform = ir_is_uniform(s->g, v, &x);
    if (n->op != OP_CONST && !uniform)
        return false;
    if (!shape_size(&n->shape, &size) || !dim_static(size) || size.n > LARGEST_TABLE)
        return false;
    int64_t d[MAX_RANK];
    for (int k = 0; k < n->shape.rank; k++)
        d[k] = n->shape.d[k].n;
    *out = tensor_new(memory, (DType)n->dtype, n->shape.rank, d);
    for (int64_t k = 0; k < size.n; k++)
        if (n->dtype == DT_INT)
            (*out)->integer[k] = (int64_t)x;
        else
            (*out)->real[k] = uniform ? x : n->a.data[k];
    return true;
}

static Val emit_table(Simplifier *s, const Shape *shape, const Tensor *t)
{
    for (int64_t k = 1; k < t->size; k++)
        if (memcmp(&t->real[k], &t->real[0], sizeof t->real[0]))
            return make_node(s, OP_CONST, NULL, 0, &(Attr){.data = t->real, .n = (size_t)t->size}, shape);
    return t->size ? emit_uniform(s, shape, DT_REAL, t->real[0]) : 0;
}

static bool foldable(const Draft *d)
{
    OpClass c = op_info(d->op)->class;
    return d->n_in && d->dtype == DT_REAL && d->op != OP_BROADCAST && d->op != OP_STOP &&
           (is_elementwise(d->op) || c == CLASS_VIEW || c == CLASS_MOVE || c == CLASS_REDUCE || d->op == OP_MATMUL);
}

static Val fold_table(Simplifier *s, const Draft *d, Arena *memory)
{
    Dim size;
    bool table = false;
    if (!shape_size(&d->shape, &size) || !dim_static(size) || size.n > LARGEST_TABLE)
        return 0;
    Tensor **in = NEW_ARRAY(memory, Tensor *, d->n_in);
    for (size_t k = 0; k < d->n_in; k++) {
        table = table || is_op(s, d->all[k], OP_CONST);
        if (!as_table(s, d->all[k], memory, &in[k]))
            return 0;
    }
    /* of one number everywhere only what reads many of them is worth a table */
    bool one_number = op_info(d->op)->class == CLASS_VIEW && d->op != OP_SLICE;
    if (!table && one_number)
        return 0;
    int64_t extent[MAX_RANK];
    for (int k = 0; k < d->shape.rank; k++)
        extent[k] = d->shape.d[k].n;
    Tensor *out = tensor_new(memory, DT_REAL, d->shape.rank, extent);
    Node n = {
        .op = (uint8_t)d->op, .dtype = DT_REAL, .n_in = (uint16_t)d->n_in, .in = NULL, .shape = d->shape, .a = d->a};
    op_rules[d->op].eval(&(OpEval){s->g->ctx, s->g, NULL, &n, in, out, NULL, 0});
    return emit_table(s, &d->shape, out);
}

/* One number everywhere has one form: FILL, RESHAPE to ones, BROADCAST. */
static Val one_form(Simplifier *s, const Draft *d)
{
    double x;
    if (op_info(d->op)->class != CLASS_VIEW || !ir_is_uniform(s->g, d->in[0], &x))
        return 0;
    const Node *n = made(s, d->in[0]);
    if (d->op == OP_RESHAPE && n->op == OP_FILL)
        for (int k = 0; k <= d->shape.rank; k++) {
            if (k == d->shape.rank)
                return 0;
            if (!dim_eq(d->shape.d[k], DIM(1)))
                break;
        }
    if (d->op == OP_BROADCAST && (n->op == OP_RESHAPE || n->op == OP_FILL))
        return 0;
    return emit_uniform(s, &d->shape, d->dtype, x);
}

Val simplify_constant(Simplifier *s, const Draft *d)
{
    if (d->op == OP_CONST) {
        for (size_t k = 1; k < d->a.n; k++)
            if (memcmp(&d->a.data[k], &d->a.data[0], sizeof d->a.data[0]))
                return 0;
        return d->a.n ? emit_uniform(s, &d->shape, DT_REAL, d->a.data[0]) : 0;
    }
    Val v = one_form(s, d);
    if (v || !foldable(d))
        return v;
    ArenaMark mark = arena_mark(s->g->ctx->scratch);
    v = fold_table(s, d, s->g->ctx->scratch);
    arena_reset(s->g->ctx->scratch, mark);
    return v;
}
