/* gradients.c - every operator's gradient rule against central differences in float64.
 *
 * In:  ops.def: for each row a function case_ID, so that a row without a test does not link.
 * Out: the number of checks; a rule that is wrong by more than 1e-6 fails.
 * The one idea: sum(op(params) * weights) is differentiated both ways; inputs are spread so
 * that no kink lies within the steps of the differences.
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
#define P(shape) bench_param(c->b, &(shape), c->lo, c->hi)
#define SHAPE(...) bench_shape(__VA_ARGS__)

/* Builds variant `c->variant`; 0 when there is no such variant. */
typedef Val CaseRule(Case *c);
#define OP(id, ...) static CaseRule case_##id;
#include "compiler/graph/ops.def"
#undef OP

#define NO_CASE(id)                                                                     \
    static Val case_##id(Case *c)                                                       \
    {                                                                                   \
        (void)c;                                                                        \
        return 0;                                                                       \
    }
/* no input, an integer or a step function, or without a second gradient */
NO_CASE(EXT)
NO_CASE(CONST)
NO_CASE(FILL)
NO_CASE(HOST)
NO_CASE(DIM)
NO_CASE(IOTA)
NO_CASE(RAND)
NO_CASE(RANDN)
NO_CASE(SIGN)
NO_CASE(FLOOR)
NO_CASE(CEIL)
NO_CASE(ROUND)
NO_CASE(TO_REAL)
NO_CASE(TO_INT)
NO_CASE(ROUND_TO) /* checked in values.c: the gradient passes the rounding */
NO_CASE(STOP)     /* checked in values.c */
NO_CASE(LT)
NO_CASE(LE)
NO_CASE(EQ)
NO_CASE(TOP_K)
NO_CASE(DYNAMIC_UPDATE_SLICE)
NO_CASE(DYNAMIC_SLICE)
NO_CASE(SDPA_GRAD)
NO_CASE(AUX)

static bool some_shape(int k, Shape *s)
{
    const Shape list[] = {SHAPE(0),           SHAPE(1, DIM(1)),         SHAPE(1, DIM(7)),
                          SHAPE(2, DIM(1), DIM(1)), SHAPE(2, DIM(3), DIM(5)),
                          SHAPE(3, DIM_B, DIM_T, DIM(5)), SHAPE(3, DIM_B, DIM(1), DIM(2)),
                          SHAPE(2, ((Dim){2, 1, 0}), DIM_T)};
    if (k >= (int)COUNT_OF(list))
        return false;
    *s = list[k];
    return true;
}

#define UNARY_CASE(id, low, high)                                                       \
    static Val case_##id(Case *c)                                                       \
    {                                                                                   \
        Shape s;                                                                        \
        if (!some_shape(c->variant, &s))                                                \
            return 0;                                                                   \
        c->lo = low, c->hi = high;                                                      \
        return ir_unary(c->g, OP_##id, P(s));                                           \
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
    if (op == OP_MIN || op == OP_MAX) {
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

#define BINARY_CASE(id, lo, hi, lo2, hi2)                                               \
    static Val case_##id(Case *c)                                                       \
    {                                                                                   \
        return binary_case(c, OP_##id, lo, hi, lo2, hi2);                               \
    }
BINARY_CASE(ADD, -2, 2, -2, 2)
BINARY_CASE(SUB, -2, 2, -2, 2)
BINARY_CASE(MUL, -2, 2, -2, 2)
BINARY_CASE(DIV, -2, 2, 0.7, 2)

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

static Val case_MOD(Case *c)
{
    Shape s;
    if (!some_shape(c->variant, &s))
        return 0;
    return ir_binary(c->g, OP_MOD, bench_param(c->b, &s, 0.1, 0.9), ir_fill(c->g, 1.0));
}

static Val case_WHERE(Case *c)
{
    Shape s;
    if (!some_shape(c->variant, &s))
        return 0;
    Val mask = ir_binary(c->g, OP_LT, bench_input(c->b, &s, -1, 1), ir_fill(c->g, 0));
    return ir_where(c->g, mask, P(s), P(s));
}

static Val case_RESHAPE(Case *c)
{
    const Shape pairs[][2] = {
        {SHAPE(0), SHAPE(2, DIM(1), DIM(1))},
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
    const Shape from[] = {SHAPE(0), SHAPE(1, DIM(1)), SHAPE(2, DIM_T, DIM(1)),
                          SHAPE(3, DIM(1), DIM(1), DIM(5))};
    Shape to = SHAPE(3, DIM_B, DIM_T, DIM(5));
    return c->variant < 4 ? ir_broadcast(c->g, P(from[c->variant]), &to) : 0;
}

static Val case_SLICE(Case *c)
{
    Shape s = SHAPE(3, DIM_B, DIM_T, DIM(7)), flat = SHAPE(1, DIM(5));
    switch (c->variant) {
    case 0:
        return ir_slice(c->g, P(s), 2, 2, 3);
    case 1:
        return ir_slice(c->g, P(s), 1, 1, 1); /* one position of a symbolic axis */
    case 2:
        return ir_slice(c->g, P(flat), 0, 4, 1);
    case 3:
        return ir_slice(c->g, P(flat), 0, 0, 5);
    default:
        return 0;
    }
}

static Val case_PAD(Case *c)
{
    Shape s = SHAPE(3, DIM_B, DIM_T, DIM(3)), one = SHAPE(1, DIM(1));
    switch (c->variant) {
    case 0:
        return ir_pad(c->g, P(s), 2, 2, 3);
    case 1:
        return ir_pad(c->g, P(one), 0, 0, 1);
    case 2:
        return ir_pad(c->g, P(one), 0, 3, 0);
    default:
        return 0;
    }
}

static Val case_CONCAT(Case *c)
{
    Shape s = SHAPE(3, DIM_B, DIM_T, DIM(3)), t = SHAPE(3, DIM_B, DIM_T, DIM(1));
    Val x[3];
    switch (c->variant) {
    case 0:
        x[0] = P(s), x[1] = P(t), x[2] = P(s);
        return ir_concat(c->g, x, 3, 2);
    case 1: /* 3 T positions */
        x[0] = P(s), x[2] = P(s);
        x[1] = ir_concat(c->g, (Val[]){x[0], x[2]}, 2, 1);
        return ir_concat(c->g, x, 3, 1);
    case 2: /* one tensor twice */
        x[0] = x[1] = P(s);
        return ir_concat(c->g, x, 2, 0);
    default:
        return 0;
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

static Val case_SUM(Case *c)
{
    return reduce_case(c, ir_sum);
}

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
    Shape la = SHAPE(4, DIM_B, DIM_T, rows, columns),
          lb = SHAPE(4, DIM_B, DIM_T, rows_b, columns_b);
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
    case 0:
        return ir_gather(c->g, P(table), bench_index(c->b, &index, -1, 6));
    case 1:
        return ir_gather(c->g, P(flat), bench_index(c->b, &index, 0, 2));
    case 2:
        return ir_gather(c->g, P(table), bench_index(c->b, &none, 0, 5));
    default:
        return 0;
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
    return ir_pick(c->g, p,
                   c->variant ? ir_top_k(c->g, p, 3) : bench_index(c->b, &index, -1, 6));
}

static Val case_PLACE(Case *c)
{
    Shape dy = SHAPE(3, DIM_B, DIM_T, DIM(2)), x = SHAPE(3, DIM_B, DIM_T, DIM(5));
    if (c->variant)
        return 0;
    Val in[2] = {P(dy), bench_index(c->b, &dy, -1, 6)};
    return ir_node(c->g, OP_PLACE, in, 2, NULL, &x);
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
        {.causal = false, .scale = 0.5, .softcap = 2, .dropout = 0.3, .window = 2,
         .site = bench_name(c->b, "drop")},
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

/* false when there is no such variant */
static bool run_variant(Tally *t, Op op, CaseRule *rule, int variant, size_t *compared)
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
        error = y ? bench_gradient_error(b, y, compared) : 0;
        ctx_leave(b->ctx, &guard);
    } else {
        error = INFINITY;
        there = false;
    }
    if (there || error > 0)
        check(t, error < 1e-6, "%s variant %d: gradient wrong by %g", op_info(op)->name,
              variant, error);
    bench_free(b);
    return there;
}

static void run_cases(Tally *t, Op op, CaseRule *rule, size_t *compared)
{
    for (int variant = 0; run_variant(t, op, rule, variant, compared);)
        variant++;
}

int main(void)
{
    Tally t = {0};
    size_t compared = 0;
#define OP(id, ...) run_cases(&t, OP_##id, case_##id, &compared);
#include "compiler/graph/ops.def"
#undef OP
    printf("%zu derivatives compared\n", compared);
    return tally_end(&t, "gradients");
}
