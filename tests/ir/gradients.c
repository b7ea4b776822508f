/* gradients.c - every operator's gradient rule against central differences in float64, in every operand.
 *
 * In:  ops.def: for each row a function case_ID, so that a row without a test does not link.
 * Out: the number of checks; a rule that is wrong by more than 1e-6 fails, and so does an operator with a real operand
 * that no case differentiates.
 * The one idea: sum(op(params) * weights) is differentiated both ways; inputs are spread so
 * that no kink lies within the steps of the differences. At kinks a table says what the slope is.
 * When: quick.
 */
#include "support.h"

#include <math.h>
#include <stdio.h>

typedef struct Case {
    Bench *b;
    Graph *g;
    int variant; /* counts up until the case says there are no more */
    double lo, hi;
} Case;
#define P(shape)   bench_param(c->b, &(shape), c->lo, c->hi)
#define SHAPE(...) bench_shape(__VA_ARGS__)

/* Builds variant `c->variant`; 0 when there is no such variant. */
typedef Val CaseRule(Case *c);
#define OP(id, ...) static CaseRule case_##id;
#include "compiler/graph/ops.def"
#undef OP

#define NO_CASE(id)                                                                                                    \
    static Val case_##id(Case *c)                                                                                      \
    {                                                                                                                  \
        (void)c;                                                                                                       \
        return 0;                                                                                                      \
    }
/* no real input */
NO_CASE(EXT)
NO_CASE(CONST)
NO_CASE(FILL)
NO_CASE(HOST)
NO_CASE(DIM)
NO_CASE(IOTA)
NO_CASE(RAND)
NO_CASE(RANDN)
NO_CASE(TO_REAL)
/* whose gradient is none of differences: the rounding is passed, the other ends it; see values.c */
NO_CASE(ROUND_TO)
NO_CASE(STOP)
/* who asks for it is told that there is none: see refused() */
NO_CASE(DYNAMIC_UPDATE_SLICE)
NO_CASE(DYNAMIC_SLICE)
NO_CASE(SDPA_GRAD)
NO_CASE(AUX)

static bool some_shape(int k, Shape *s)
{
    const Shape list[] = {SHAPE(0),
                          SHAPE(1, DIM(1)),
                          SHAPE(1, DIM(7)),
                          SHAPE(2, DIM(1), DIM(1)),
                          SHAPE(2, DIM(3), DIM(5)),
                          SHAPE(3, DIM_B, DIM_T, DIM(5)),
                          SHAPE(3, DIM_B, DIM(1), DIM(2)),
                          SHAPE(2, ((Dim){2, 1, 0}), DIM_T)};
    if (k >= (int)COUNT_OF(list))
        return false;
    *s = list[k];
    return true;
}

#define UNARY_CASE(id, low, high)                                                                                      \
    static Val case_##id(Case *c)                                                                                      \
    {                                                                                                                  \
        Shape s;                                                                                                       \
        if (!some_shape(c->variant, &s))                                                                               \
            return 0;                                                                                                  \
        c->lo = low, c->hi = high;                                                                                     \
        return ir_unary(c->g, OP_##id, P(s));                                                                          \
    }
UNARY_CASE(NEG, -2, 2)
UNARY_CASE(EXP, -2, 2)
UNARY_CASE(LOG, 0.5, 3)
UNARY_CASE(SQRT, 0.5, 3)
UNARY_CASE(ABS, -2, 2)
UNARY_CASE(SIN, -2, 2)
UNARY_CASE(COS, -2, 2)
UNARY_CASE(TANH, -2, 2)
UNARY_CASE(SIGMOID, -3, 3)
UNARY_CASE(ERF, -2, 2)
UNARY_CASE(RELU, -2, 2)
UNARY_CASE(GELU, -3, 3)
UNARY_CASE(GELU_SLOPE, -3, 3)
UNARY_CASE(GELU_TANH, -3, 3)
UNARY_CASE(SILU, -3, 3)
UNARY_CASE(SOFTPLUS, -3, 3)

/* Multiples of 0.1, and the same moved a little: no ties within the steps of the
 * differences. */
static void keep_apart(Tensor *t, double by)
{
    for (int64_t k = 0; k < t->size; k++)
        t->real[k] = floor(t->real[k] * 10) / 10 + by;
}

/* A step function: flat between its jumps, which lie at multiples of a half. */
static Val steps_case(Case *c, Op op)
{
    Shape s;
    if (!some_shape(c->variant, &s))
        return 0;
    Val x = P(s);
    keep_apart(bench_tensor(c->b, x), 0.05);
    Val y = ir_unary(c->g, op, x);
    return op == OP_TO_INT ? ir_cast(c->g, y, DT_REAL) : y;
}
static Val case_SIGN(Case *c) { return steps_case(c, OP_SIGN); }
static Val case_FLOOR(Case *c) { return steps_case(c, OP_FLOOR); }
static Val case_CEIL(Case *c) { return steps_case(c, OP_CEIL); }
static Val case_ROUND(Case *c) { return steps_case(c, OP_ROUND); }
static Val case_TO_INT(Case *c) { return steps_case(c, OP_TO_INT); }

/* variants: equal shapes, then pairs that broadcast */
static Val binary_case(Case *c, Op op, double lo, double hi, double lo2, double hi2)
{
    Shape a, b;
    const Shape pairs[][2] = {{SHAPE(0), SHAPE(2, DIM(3), DIM(2))},
                              {SHAPE(2, DIM(3), DIM(1)), SHAPE(2, DIM(1), DIM(5))},
                              {SHAPE(3, DIM_B, DIM_T, DIM(5)), SHAPE(1, DIM(5))},
                              {SHAPE(2, DIM_T, DIM(1)), SHAPE(3, DIM_B, DIM(1), DIM(3))}};
    if (!some_shape(c->variant, &a)) {
        int more = c->variant - 8;
        if (more >= (int)COUNT_OF(pairs))
            return 0;
        a = pairs[more][0];
        b = pairs[more][1];
    } else {
        b = a;
    }
    Val x = bench_param(c->b, &a, lo, hi), y = bench_param(c->b, &b, lo2, hi2);
    if (op == OP_MIN || op == OP_MAX || op == OP_LT || op == OP_LE || op == OP_EQ) {
        keep_apart(bench_tensor(c->b, x), 0);
        keep_apart(bench_tensor(c->b, y), 0.05);
    }
    return ir_binary(c->g, op, x, y);
}
/* At a tie the central difference is half of each side's slope, and so is what the rules share out. */
static Val choice_case(Case *c, Op op)
{
    if (c->variant != 12)
        return binary_case(c, op, -2, 2, -2, 2);
    Shape s = SHAPE(2, DIM(3), DIM(5));
    Val x = P(s), y = P(s);
    const Tensor *from = bench_tensor(c->b, x);
    memcpy(bench_tensor(c->b, y)->real, from->real, (size_t)from->size * sizeof *from->real);
    return ir_binary(c->g, op, x, y);
}

#define BINARY_CASE(id, lo, hi, lo2, hi2)                                                                              \
    static Val case_##id(Case *c) { return binary_case(c, OP_##id, lo, hi, lo2, hi2); }
BINARY_CASE(ADD, -2, 2, -2, 2)
BINARY_CASE(SUB, -2, 2, -2, 2)
BINARY_CASE(MUL, -2, 2, -2, 2)
BINARY_CASE(DIV, -2, 2, 0.7, 2)
BINARY_CASE(LT, -2, 2, -2, 2)
BINARY_CASE(LE, -2, 2, -2, 2)
BINARY_CASE(EQ, -2, 2, -2, 2)

static Val case_MIN(Case *c) { return choice_case(c, OP_MIN); }
static Val case_MAX(Case *c) { return choice_case(c, OP_MAX); }

static Val case_POW(Case *c)
{
    static const double exponents[] = {0, 1, 2, 3, 0.5, -1, -0.5, 2.5};
    int k = c->variant - 12;
    if (k < 0)
        return binary_case(c, OP_POW, 0.5, 2, -2, 2);
    if (k >= (int)COUNT_OF(exponents))
        return 0;
    Shape s = SHAPE(2, DIM(3), DIM(5));
    bool whole = exponents[k] >= 0 && exponents[k] == floor(exponents[k]);
    Val x = bench_param(c->b, &s, whole ? -2 : 0.5, 2);
    return ir_binary(c->g, OP_POW, x, ir_fill(c->g, exponents[k]));
}

/* a = (q + r) b, with whole q and r well inside of 0 to 1, so that no jump is near; b above and below 0. */
static Val case_MOD(Case *c)
{
    Val y = binary_case(c, OP_MOD, -2, 2, -2, 2);
    if (!y)
        return 0;
    int64_t k = 0;
    for (size_t p = 0; p < 2; p++) {
        Tensor *t = bench_tensor(c->b, c->b->params.v[p]);
        for (int64_t i = 0; i < t->size; i++, k++)
            t->real[i] = p ? (k % 2 ? -1 : 1) * (1 + 0.002 * (double)(k % 5))
                           : (double)(k % 7 - 3) + 0.5 + 0.01 * (double)(k % 3);
    }
    return y;
}

static Val case_WHERE(Case *c)
{
    Shape s;
    if (!some_shape(c->variant, &s))
        return 0;
    Val mask = P(s); /* what is not 0 is true, whatever its size */
    Tensor *m = bench_tensor(c->b, mask);
    for (int64_t k = 0; k < m->size; k++)
        m->real[k] = m->real[k] < 0 ? 0 : 1;
    mask = ir_binary(c->g, OP_LT, ir_fill(c->g, 0.5), mask);
    return ir_where(c->g, mask, P(s), P(s));
}

static Val case_RESHAPE(Case *c)
{
    const Shape pairs[][2] = {{SHAPE(0), SHAPE(2, DIM(1), DIM(1))},
                              {SHAPE(2, DIM(6), DIM(5)), SHAPE(3, DIM(2), DIM(3), DIM(5))},
                              {SHAPE(3, DIM_B, DIM_T, DIM(6)), SHAPE(2, ((Dim){2, 1, 1}), DIM(3))}};
    if (c->variant >= (int)COUNT_OF(pairs))
        return 0;
    return ir_reshape(c->g, P(pairs[c->variant][0]), &pairs[c->variant][1]);
}

static Val case_PERMUTE(Case *c)
{
    static const int perm[][3] = {{2, 0, 1}, {1, 0, 2}, {0, 2, 1}, {2, 1, 0}};
    Shape s = SHAPE(3, DIM_B, DIM_T, DIM(5));
    return c->variant < 4 ? ir_permute(c->g, P(s), perm[c->variant]) : 0;
}

static Val case_BROADCAST(Case *c)
{
    const Shape from[] = {SHAPE(0), SHAPE(1, DIM(1)), SHAPE(2, DIM_T, DIM(1)), SHAPE(3, DIM(1), DIM(1), DIM(5))};
    Shape to = SHAPE(3, DIM_B, DIM_T, DIM(5));
    return c->variant < 4 ? ir_broadcast(c->g, P(from[c->variant]), &to) : 0;
}

static Val case_SLICE(Case *c)
{
    Shape s = SHAPE(3, DIM_B, DIM_T, DIM(7)), flat = SHAPE(1, DIM(5));
    switch (c->variant) {
    case 0: return ir_slice(c->g, P(s), 2, 2, 3);
    case 1: return ir_slice(c->g, P(s), 1, 1, 1); /* one position of a symbolic axis */
    case 2: return ir_slice(c->g, P(flat), 0, 4, 1);
    case 3: return ir_slice(c->g, P(flat), 0, 0, 5);
    default: return 0;
    }
}

static Val case_PAD(Case *c)
{
    Shape s = SHAPE(3, DIM_B, DIM_T, DIM(3)), one = SHAPE(1, DIM(1));
    switch (c->variant) {
    case 0: return ir_pad(c->g, P(s), 2, 2, 3);
    case 1: return ir_pad(c->g, P(one), 0, 0, 1);
    case 2: return ir_pad(c->g, P(one), 0, 3, 0);
    default: return 0;
    }
}

static Val case_CONCAT(Case *c)
{
    Shape s = SHAPE(3, DIM_B, DIM_T, DIM(3)), t = SHAPE(3, DIM_B, DIM_T, DIM(1));
    Val x[3];
    switch (c->variant) {
    case 0: x[0] = P(s), x[1] = P(t), x[2] = P(s); return ir_concat(c->g, x, 3, 2);
    case 1: /* 3 T positions */
        x[0] = P(s), x[2] = P(s);
        x[1] = ir_concat(c->g, (Val[]){x[0], x[2]}, 2, 1);
        return ir_concat(c->g, x, 3, 1);
    case 2: /* one tensor twice */ x[0] = x[1] = P(s); return ir_concat(c->g, x, 2, 0);
    default: return 0;
    }
}

static Val case_SHIFT(Case *c)
{
    static const int64_t distance[] = {1, -2, 0, 9};
    Shape s = SHAPE(3, DIM_B, DIM_T, DIM(5));
    if (c->variant >= 8)
        return 0;
    return ir_shift(c->g, P(s), c->variant % 2 ? 1 : 2, distance[c->variant / 2], 0.7);
}

static Val case_ROLL(Case *c)
{
    static const int64_t distance[] = {1, -2, 0, 11};
    Shape s = SHAPE(3, DIM_B, DIM_T, DIM(5));
    if (c->variant >= 8)
        return 0;
    return ir_roll(c->g, P(s), c->variant % 2 ? 1 : 2, distance[c->variant / 2]);
}

static Val reduce_case(Case *c, Val (*reduce)(Graph *, Val, uint32_t, bool))
{
    Shape s = SHAPE(3, DIM_B, DIM_T, DIM(5)), one = SHAPE(2, DIM(1), DIM(7));
    if (c->variant < 7)
        return reduce(c->g, P(s), (uint32_t)c->variant + 1, c->variant % 2);
    return c->variant < 10 ? reduce(c->g, P(one), (uint32_t)c->variant - 6, true) : 0;
}

static Val case_SUM(Case *c) { return reduce_case(c, ir_sum); }

/* The last variant has pairs of equal elements, whose central differences are halves. */
static Val case_AMAX(Case *c)
{
    if (c->variant != 10)
        return reduce_case(c, ir_max);
    Shape s = SHAPE(2, DIM(2), DIM(5));
    Val x = P(s);
    Tensor *t = bench_tensor(c->b, x);
    memcpy(t->real + 5, t->real, 5 * sizeof *t->real);
    return ir_max(c->g, x, 1, false);
}

static Val case_CUMSUM(Case *c)
{
    Shape s = SHAPE(3, DIM_B, DIM_T, DIM(5));
    return c->variant < 6 ? ir_cumsum(c->g, P(s), c->variant % 3, c->variant / 3) : 0;
}

/* All four flag pairs times: two matrices, a shared matrix, a batch of each. */
static Val case_MATMUL(Case *c)
{
    if (c->variant >= 20)
        return 0;
    int kind = c->variant / 4, flags = c->variant % 4;
    Dim m = kind == 3 ? DIM(1) : DIM(4), k = kind == 3 ? DIM(1) : DIM(3), n = DIM(5);
    if (kind == 4)
        m = n = DIM(1);
    Dim rows = flags & 1 ? k : m, columns = flags & 1 ? m : k;
    Dim rows_b = flags & 2 ? n : k, columns_b = flags & 2 ? k : n;
    Shape a = SHAPE(2, rows, columns), b = SHAPE(2, rows_b, columns_b);
    Shape la = SHAPE(4, DIM_B, DIM_T, rows, columns), lb = SHAPE(4, DIM_B, DIM_T, rows_b, columns_b);
    Val in[2] = {kind == 0 || kind == 3 ? P(a) : P(la), kind == 2 ? P(lb) : P(b)};
    return ir_node(c->g, OP_MATMUL, in, 2, &(Attr){.i = flags}, NULL);
}

static Val expert_inputs(Case *c, Val in[3], int64_t *transposed)
{
    Shape x = SHAPE(3, DIM_B, DIM_T, DIM(3)), each = SHAPE(4, DIM_B, DIM_T, DIM(2), DIM(3));
    Shape index = SHAPE(3, DIM_B, DIM_T, DIM(2));
    Shape w = SHAPE(3, DIM(4), DIM(3), DIM(5)), wt = SHAPE(3, DIM(4), DIM(5), DIM(3));
    *transposed = c->variant / 2;
    in[0] = c->variant % 2 ? P(each) : P(x);
    in[1] = *transposed ? P(wt) : P(w);
    in[2] = bench_index(c->b, &index, -1, 5); /* some outside the experts */
    return in[0];
}

static Val case_EXPERT_MATMUL(Case *c)
{
    Val in[3];
    int64_t transposed;
    if (c->variant >= 4)
        return 0;
    expert_inputs(c, in, &transposed);
    return ir_node(c->g, OP_EXPERT_MATMUL, in, 3, &(Attr){.i = transposed}, NULL);
}

static Val case_EXPERT_MATMUL_DW(Case *c)
{
    Val in[3];
    int64_t transposed;
    Shape dy = SHAPE(4, DIM_B, DIM_T, DIM(2), DIM(5)), w = SHAPE(3, DIM(4), DIM(3), DIM(5));
    if (c->variant >= 2)
        return 0;
    expert_inputs(c, in, &transposed);
    c->b->params.n--; /* the weights are not an input here */
    in[1] = P(dy);
    return ir_node(c->g, OP_EXPERT_MATMUL_DW, in, 3, NULL, &w);
}

static Val case_GATHER(Case *c)
{
    Shape table = SHAPE(2, DIM(5), DIM(3)), flat = SHAPE(1, DIM(5));
    Shape index = SHAPE(2, DIM_B, DIM_T), none = SHAPE(0);
    switch (c->variant) {
    case 0: return ir_gather(c->g, P(table), bench_index(c->b, &index, -1, 6));
    case 1: return ir_gather(c->g, P(flat), bench_index(c->b, &index, 0, 2));
    case 2: return ir_gather(c->g, P(table), bench_index(c->b, &none, 0, 5));
    default: return 0;
    }
}

static Val case_SCATTER_ADD(Case *c)
{
    Shape dy = SHAPE(3, DIM_B, DIM_T, DIM(3)), index = SHAPE(2, DIM_B, DIM_T);
    Shape table = SHAPE(2, DIM(4), DIM(3));
    if (c->variant)
        return 0;
    Val in[2] = {P(dy), bench_index(c->b, &index, -1, 5)};
    return ir_node(c->g, OP_SCATTER_ADD, in, 2, NULL, &table);
}

static Val case_PICK(Case *c)
{
    Shape x = SHAPE(3, DIM_B, DIM_T, DIM(5)), index = SHAPE(3, DIM_B, DIM_T, DIM(2));
    if (c->variant >= 2)
        return 0;
    Val p = P(x);
    return ir_pick(c->g, p, c->variant ? ir_top_k(c->g, p, 3) : bench_index(c->b, &index, -1, 6));
}

static Val case_PLACE(Case *c)
{
    Shape dy = SHAPE(3, DIM_B, DIM_T, DIM(2)), x = SHAPE(3, DIM_B, DIM_T, DIM(5));
    if (c->variant)
        return 0;
    Val in[2] = {P(dy), bench_index(c->b, &dy, -1, 6)};
    return ir_node(c->g, OP_PLACE, in, 2, NULL, &x);
}

/* The chosen are the same within the steps of the differences. */
static Val case_TOP_K(Case *c)
{
    Shape x = SHAPE(3, DIM_B, DIM_T, DIM(5));
    return c->variant ? 0 : ir_cast(c->g, ir_top_k(c->g, P(x), 2), DT_REAL);
}

static Val case_SDPA(Case *c)
{
    const Sdpa list[] = {
        {.causal = true, .scale = 0.5},
        {.causal = false, .scale = 0.5},
        {.causal = true, .scale = 0.7, .window = 2},
        {.causal = false, .scale = 0.7, .window = 2},
        {.causal = true, .scale = 0.5, .softcap = 1.5},
        {.causal = true, .scale = 0.5, .dropout = 0.4, .site = bench_name(c->b, "drop")},
        {.causal = false, .scale = 0.5, .softcap = 2, .dropout = 0.3, .window = 2, .site = bench_name(c->b, "drop")},
    };
    if (c->variant >= 3 * (int)COUNT_OF(list) + 3)
        return 0;
    if (c->variant >= 3 * (int)COUNT_OF(list)) { /* a first key for each query, perhaps none */
        Shape rows = SHAPE(2, DIM_B, DIM_T), x = SHAPE(4, DIM_B, DIM_T, DIM(2), DIM(3));
        int kind = c->variant % 3;
        Val number = ir_iota(c->g, &rows, 1);
        Val odd = ir_binary(c->g, OP_MOD, number, ir_int(c->g, 2));
        Sdpa how = {.causal = kind != 1, .scale = 0.6, .window = kind == 2 ? 3 : 0};
        how.oldest = ir_binary(c->g, kind ? OP_MUL : OP_SUB, number, kind ? number : odd);
        return ir_sdpa(c->g, P(x), P(x), P(x), &how);
    }
    int heads = c->variant / (int)COUNT_OF(list); /* 4 over 2, 2 over 2, 3 over 1 */
    Dim h = DIM(heads == 0 ? 4 : heads == 1 ? 2 : 3), kv = DIM(heads == 2 ? 1 : 2);
    Dim s = heads == 1 ? DIM(5) : DIM_T; /* other keys than queries */
    Shape q = SHAPE(4, DIM_B, DIM_T, h, DIM(4)), k = SHAPE(4, DIM_B, s, kv, DIM(4));
    Shape v = SHAPE(4, DIM_B, s, kv, DIM(heads == 2 ? 3 : 4));
    return ir_sdpa(c->g, P(q), P(k), P(v), &list[c->variant % (int)COUNT_OF(list)]);
}

/* Operands of an operator, as bits: those that are real in some variant, and those that a parameter leads to. */
typedef struct Operands {
    uint32_t real, asked;
} Operands;

static void look_at_operands(const Bench *b, Op op, Operands *o)
{
    const Graph *g = b->g;
    bool *leads = NEW_ARRAY(b->ctx->program, bool, g->node.n);
    for (size_t i = 0; i < b->params.n; i++)
        leads[b->params.v[i]] = true;
    for (Val v = 1; v < g->node.n; v++) {
        const Node *n = node_at(g, v);
        for (size_t k = 0; k < n->n_in; k++) {
            leads[v] |= leads[n->in[k]];
            if (n->op == op && node_at(g, n->in[k])->dtype == DT_REAL)
                o->real |= 1u << k;
            if (n->op == op && leads[n->in[k]])
                o->asked |= 1u << k;
        }
    }
}

/* false when there is no such variant */
static bool run_variant(Tally *t, Op op, CaseRule *rule, int variant, size_t *compared, Operands *o)
{
    Bench *b = bench_new();
    b->seed = (uint64_t)op * 1000 + (uint64_t)variant;
    Case c = {b, b->g, variant, -2, 2};
    volatile double error = 0;
    volatile bool there = true;
    CtxGuard guard;
    if (CTX_TRY(b->ctx, &guard)) {
        Val y = rule(&c);
        there = y != 0;
        look_at_operands(b, op, o);
        error = y ? bench_gradient_error(b, y, compared) : 0;
        ctx_leave(b->ctx, &guard);
    } else {
        error = INFINITY;
        there = false;
    }
    if (there || error > 0)
        check(t, error < 1e-6, "%s variant %d: gradient wrong by %g", op_info(op)->name, variant, error);
    bench_free(b);
    return there;
}

/* Without a case there is no real operand, or the gradient is not of differences. */
static bool has_no_case(Op op)
{
    return op_info(op)->n_in == 0 || op == OP_TO_REAL || op == OP_ROUND_TO || op == OP_STOP || op == OP_SDPA_GRAD ||
           op == OP_AUX || op == OP_DYNAMIC_UPDATE_SLICE || op == OP_DYNAMIC_SLICE;
}

static void run_cases(Tally *t, Op op, CaseRule *rule, size_t *compared)
{
    Operands o = {0};
    int variant = 0;
    while (run_variant(t, op, rule, variant, compared, &o))
        variant++;
    check(t, (variant > 0) != has_no_case(op), "%s: no case", op_info(op)->name);
    check(t, (o.real & ~o.asked) == 0, "%s: no case asks for the gradient in operands %#x", op_info(op)->name,
          (unsigned)(o.real & ~o.asked));
}

/* What has no gradient at all says so, and gives no zeros. */
static Val put_case(Bench *b, Val x)
{
    Shape each = SHAPE(1, DIM_B);
    return ir_put(b->g, x, x, bench_index(b, &each, 0, 2), bench_index(b, &each, 0, 2));
}
static Val take_case(Bench *b, Val x)
{
    Shape each = SHAPE(1, DIM_B);
    return ir_take(b->g, x, bench_index(b, &each, 0, 2), DIM(2), 0);
}
static Val attention_at_case(Bench *b, Val x)
{
    Shape each = SHAPE(1, DIM_B);
    return ir_sdpa(b->g, x, x, x, &(Sdpa){.causal = true, .scale = 1, .first = bench_index(b, &each, 0, 2)});
}

static void refused(Tally *t, const char *what, Val (*make)(Bench *, Val))
{
    Bench *b = bench_new();
    Shape s = SHAPE(4, DIM_B, DIM_T, DIM(1), DIM(2));
    Val x = bench_param(b, &s, -1, 1), d;
    CtxGuard guard;
    volatile bool told = true;
    b->ctx->on_bug = NULL;
    if (CTX_TRY(b->ctx, &guard)) {
        graph_gradient(b->g, ir_sum(b->g, make(b, x), 15, false), &x, 1, &d);
        told = false;
        ctx_leave(b->ctx, &guard);
    }
    check(t, told && strstr(b->ctx->message, "no gradient"), "the gradient of a %s: `%s`", what, b->ctx->message);
    bench_free(b);
}

/* Slopes where a function has two, or none, as grammar/README.md has them. In the last columns what PyTorch 2.15 has there; (by
 * `torch.autograd` in float64); where a row has something else, it says why. */
typedef struct Kink {
    const char *what;
    Op op;
    double a, b, da, db;
    double torch_a, torch_b;
} Kink;
static const Kink kinks[] = {
    {"relu at 0", OP_RELU, 0, 0, 0, 0, 0, 0},
    {"relu at -0", OP_RELU, -0.0, 0, 0, 0, 0, 0},
    {"abs at 0", OP_ABS, 0, 0, 0, 0, 0, 0},
    {"sign at 0", OP_SIGN, 0, 0, 0, 0, 0, 0},
    {"floor at 1", OP_FLOOR, 1, 0, 0, 0, 0, 0},
    {"ceil at 1", OP_CEIL, 1, 0, 0, 0, 0, 0},
    {"round at 0.5", OP_ROUND, 0.5, 0, 0, 0, 0, 0},
    {"sqrt at 0", OP_SQRT, 0, 0, INFINITY, 0, INFINITY, 0},
    {"max of equals", OP_MAX, 2, 2, 0.5, 0.5, 0.5, 0.5},
    {"min of equals", OP_MIN, 2, 2, 0.5, 0.5, 0.5, 0.5},
    {"max of 0 and -0", OP_MAX, 0, -0.0, 0.5, 0.5, 0.5, 0.5},
    {"mod at a multiple", OP_MOD, 6, 2, 1, -3, 1, -3},
    {"mod below 0", OP_MOD, -7, 2, 1, 4, 1, 4},
    {"mod of a negative number", OP_MOD, 7, -2, 1, 4, 1, 4},
    {"0 ^ 0", OP_POW, 0, 0, 0, 0, 0, 0}, /* in b, where log 0 would be */
    {"0 ^ 2", OP_POW, 0, 2, 0, 0, 0, 0},
    {"0 ^ 0.5", OP_POW, 0, 0.5, INFINITY, 0, INFINITY, 0},
    {"(-2) ^ 3", OP_POW, -2, 3, 12, 0, 12, NAN}, /* 0 in b, where log(-2) would be */
    {"lt of equals", OP_LT, 1, 1, 0, 0, 0, 0},
    {"eq of equals", OP_EQ, 1, 1, 0, 0, 0, 0},
};

static void slopes(Tally *t)
{
    for (size_t i = 0; i < COUNT_OF(kinks); i++) {
        const Kink *k = &kinks[i];
        Bench *b = bench_new();
        Graph *g = b->g;
        bool two = op_info(k->op)->class == CLASS_BINARY;
        Shape s = SHAPE(1, DIM(1));
        Val x[2] = {bench_param(b, &s, 0, 1), bench_param(b, &s, 0, 1)}, d[2];
        bench_tensor(b, x[0])->real[0] = k->a;
        bench_tensor(b, x[1])->real[0] = k->b;
        Val y = two ? ir_binary(g, k->op, x[0], x[1]) : ir_unary(g, k->op, x[0]);
        graph_gradient(g, ir_sum(g, y, 1, false), x, 2, d);
        double got[2] = {0, 0};
        for (int n = 0; n < 2; n++)
            if (d[n])
                ir_output(g, name_printf(b->ctx, "d%d", n), d[n]);
        Tensor **r = bench_run(b, g);
        for (int n = 0, at = 0; r && n < 2; n++)
            if (d[n])
                got[n] = r[at++]->real[0];
        check(t, got[0] == k->da && (!two || got[1] == k->db),
              "%s: the slopes are %g and %g, not %g and %g (PyTorch: %g and %g)", k->what, got[0], got[1], k->da, k->db,
              k->torch_a, k->torch_b);
        bench_free(b);
    }
}

int main(void)
{
    Tally t = {0};
    size_t compared = 0;
#define OP(id, ...) run_cases(&t, OP_##id, case_##id, &compared);
#include "compiler/graph/ops.def"
#undef OP
    refused(&t, "put", put_case);
    refused(&t, "take", take_case);
    refused(&t, "attention at a position", attention_at_case);
    slopes(&t);
    printf("%zu derivatives compared\n", compared);
    return tally_end(&t, "gradients");
}
