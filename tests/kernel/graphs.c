/* graphs.c - graphs of every operator, for sizes that are awkward.
 *
 * In:  cases, sizes B, T and a width.     Out: more cases.
 */
#include "cases.h"

#include <stdio.h>

typedef struct Suite {
    Ctx *ctx;
    Cases *cases;
    int64_t B, T, n; /* n: a width */
    Graph *g;
    char name[96];
} Suite;

static void begin(Suite *s, const char *name)
{
    s->g = graph_new(s->ctx, s->ctx->program);
    snprintf(s->name, sizeof s->name, "%s B=%d T=%d n=%d", name, (int)s->B, (int)s->T, (int)s->n);
}

static Shape shape(int rank, Dim a, Dim b, Dim c, Dim d) { return (Shape){.rank = (uint8_t)rank, .d = {a, b, c, d}}; }

static Val input(Suite *s, const char *name, Shape sh)
{
    return ir_ext(s->g, EXT_INPUT, name_str(s->ctx, name), DT_REAL, &sh);
}

static Val index_input(Suite *s, const char *name, Shape sh)
{
    return ir_ext(s->g, EXT_INPUT, name_str(s->ctx, name), DT_INT, &sh);
}

static void out(Suite *s, Val v) { ir_output(s->g, name_printf(s->ctx, "y%zu", s->g->out.n), v); }

static void end(Suite *s, int64_t limit, double tolerance)
{
    cases_add(s->cases, s->name, s->g, s->B, s->T, limit, tolerance);
}

static Shape btn(const Suite *s) { return shape(3, DIM_B, DIM_T, DIM(s->n), DIM(1)); }

static void elementwise(Suite *s)
{
    for (int op = 1; op < OP_COUNT; op++) {
        const OpInfo *info = op_info((Op)op);
        if (info->class == CLASS_UNARY && op != OP_TO_REAL && op != OP_TO_INT && op != OP_ROUND_TO) {
            begin(s, info->name);
            Val x = input(s, "x", btn(s));
            if (op == OP_LOG || op == OP_SQRT)
                x = ir_binary(s->g, OP_ADD, x, ir_fill(s->g, 1.5));
            else
                x = ir_scale(s->g, x, 4);
            out(s, ir_unary(s->g, (Op)op, x));
            end(s, 9, 2e-6);
        }
        if (info->class == CLASS_BINARY) {
            begin(s, info->name);
            Val a = input(s, "a", btn(s)), b = input(s, "b", shape(2, DIM_T, DIM(s->n), DIM(1), DIM(1)));
            Val i = index_input(s, "i", btn(s)), j = index_input(s, "j", shape(1, DIM(s->n), DIM(1), DIM(1), DIM(1)));
            if (op == OP_POW)
                a = ir_binary(s->g, OP_ADD, a, ir_fill(s->g, 2));
            if (op == OP_DIV || op == OP_MOD)
                b = ir_binary(s->g, OP_ADD, b, ir_fill(s->g, 2));
            out(s, ir_binary(s->g, (Op)op, a, b));
            if (op != OP_DIV && op != OP_POW)
                out(s, ir_binary(s->g, (Op)op, ir_binary(s->g, OP_SUB, i, ir_int(s->g, 4)), j));
            end(s, 9, 3e-6);
        }
    }
    begin(s, "casts");
    /* by a power of two: what is rounded is the same number in float32 and float64 */
    Val x = ir_scale(s->g, input(s, "x", btn(s)), 128), i = index_input(s, "i", btn(s));
    out(s, ir_cast(s->g, x, DT_INT));
    out(s, ir_cast(s->g, i, DT_REAL));
    out(s, ir_where(s->g, ir_binary(s->g, OP_LT, i, ir_int(s->g, 5)), x, ir_fill(s->g, 0.25)));
    out(s, ir_where(s->g, ir_binary(s->g, OP_LT, i, ir_int(s->g, 5)), i, ir_int(s->g, -7)));
    for (size_t type = 1; half_at(type); type++)
        out(s, ir_node(s->g, OP_ROUND_TO, &x, 1, &(Attr){.i = half_at(type)->half}, NULL));
    end(s, 9, 2e-6);
}

/* Sums of terms of which none changes with all loops of a row. */
static void outer_sums(Suite *s)
{
    begin(s, "outer sums");
    Graph *g = s->g;
    Val x = input(s, "x", shape(4, DIM_B, DIM_T, DIM(s->n), DIM(1))),
        y = input(s, "y", shape(4, DIM_B, DIM_T, DIM(1), DIM(5)));
    Val z = input(s, "z", shape(4, DIM_B, DIM_T, DIM(s->n), DIM(5))),
        a = input(s, "a", shape(2, DIM(s->n), DIM(1), DIM(1), DIM(1)));
    Val both = ir_binary(g, OP_ADD, x, y);
    out(s, both);
    out(s, ir_binary(g, OP_ADD, both, ir_binary(g, OP_ADD, a, y)));
    out(s, ir_sum(g, ir_binary(g, OP_MUL, z, ir_binary(g, OP_ADD, a, y)), 4, true));
    out(s, ir_binary(g, OP_ADD, ir_binary(g, OP_ADD, a, y), ir_binary(g, OP_MUL, x, z)));
    out(s, ir_binary(g, OP_SUB, ir_binary(g, OP_MUL, x, x), y));
    end(s, 9, 2e-6);
}

static void leaves(Suite *s)
{
    begin(s, "leaves");
    Shape sh = btn(s);
    double table[100];
    for (int i = 0; i < 100; i++)
        table[i] = i * 0.375 - 7;
    Shape flat = shape(1, DIM(100), DIM(1), DIM(1), DIM(1));
    out(s, ir_const(s->g, &flat, table));
    out(s, ir_fill(s->g, 0.1));
    out(s, ir_int(s->g, 12345678901));
    out(s, ir_host(s->g,
                   host_op(s->g->arena, HO_MUL, host_var(s->g->arena, HV_STEP), host_const(s->g->arena, 0.3), NULL)));
    out(s, ir_dim(s->g, (Dim){3, 1, 1}));
    for (int a = 0; a < 3; a++)
        out(s, ir_iota(s->g, &sh, a));
    out(s, ir_random(s->g, OP_RAND, &sh, name_str(s->ctx, "here")));
    out(s, ir_random(s->g, OP_RANDN, &sh, name_str(s->ctx, "there")));
    out(s, input(s, "x", sh));
    end(s, 9, 2e-6);
}

static void views(Suite *s)
{
    Graph *g;
    begin(s, "views");
    g = s->g;
    Val x = input(s, "x", shape(4, DIM_B, DIM_T, DIM(3), DIM(s->n)));
    Shape merged = shape(3, DIM_B, DIM_T, DIM(3 * s->n), DIM(1));
    Val m = ir_reshape(g, x, &merged);
    out(s, m);
    out(s, ir_permute(g, x, (int[]){2, 0, 3, 1}));
    out(s, ir_unary(g, OP_EXP, ir_permute(g, x, (int[]){0, 1, 3, 2})));
    out(s, ir_slice(g, m, 2, s->n, s->n));
    out(s, ir_slice(g, x, 2, 1, 2));
    out(s, ir_pad(g, x, 2, 1, 2));
    out(s, ir_pad(g, m, 2, 2, 3));
    out(s, ir_concat(g, (Val[]){m, ir_scale(g, m, 2), x}, 2, 2));
    out(s, ir_concat(g, (Val[]){x, ir_scale(g, x, 0.7)}, 2, 1));
    for (int k = -2; k <= 2; k++) {
        out(s, ir_shift(g, x, 1, k, 0.5));
        out(s, ir_roll(g, x, 3, k));
        out(s, ir_shift(g, ir_unary(g, OP_TANH, x), 3, k, 0));
    }
    out(s, ir_roll(g, m, 1, 1));
    /* two neighbours at a time, in another order, from rows of which some are not there */
    Val pair = input(s, "pair", shape(2, DIM(12), DIM(2), DIM(1), DIM(1)));
    Val moved = ir_roll(g, ir_shift(g, pair, 0, -4, 0), 1, 1);
    out(s, ir_binary(g, OP_MUL, moved, ir_sum(g, pair, 2, true)));
    Shape wide = shape(4, DIM_B, DIM_T, DIM(3), DIM(s->n));
    out(s, ir_broadcast(g, input(s, "y", shape(3, DIM_T, DIM(1), DIM(s->n), DIM(1))), &wide));
    end(s, 9, 2e-6);
}

static void reductions(Suite *s)
{
    begin(s, "reductions");
    Graph *g = s->g;
    Val x = input(s, "x", shape(4, DIM_B, DIM_T, DIM(3), DIM(s->n)));
    Val e = ir_unary(g, OP_EXP, x);
    for (uint32_t axes = 1; axes < 16; axes++) {
        out(s, ir_sum(g, x, axes, axes & 1));
        out(s, ir_max(g, e, axes, true));
    }
    end(s, 9, 1e-5);
    begin(s, "softmax");
    x = input(s, "x", shape(4, DIM_B, DIM_T, DIM(3), DIM(s->n)));
    for (int axis = 0; axis < 4; axis++)
        out(s, ir_softmax(s->g, x, axis));
    out(s, ir_logsumexp(s->g, x, 3, true));
    Val q = ir_mean(s->g, ir_binary(s->g, OP_MUL, x, x), 8, true);
    out(s, ir_binary(s->g, OP_DIV, x, ir_unary(s->g, OP_SQRT, ir_binary(s->g, OP_ADD, q, ir_fill(s->g, 1e-6)))));
    end(s, 9, 1e-5);
    begin(s, "cumsum");
    x = input(s, "x", btn(s));
    for (int axis = 0; axis < 3; axis++)
        for (int back = 0; back < 2; back++)
            out(s, ir_cumsum(s->g, ir_scale(s->g, x, 0.5), axis, back));
    end(s, 9, 1e-5);
    begin(s, "sums beside a maximum"); /* of a row that a block has: the totals of warps lie side by side */
    x = input(s, "x", shape(4, DIM_B, DIM_T, DIM(1), DIM(1024)));
    Val squares = ir_binary(s->g, OP_MUL, x, x), total = ir_sum(s->g, x, 8, true);
    total = ir_binary(s->g, OP_MUL, total, ir_sum(s->g, squares, 8, true));
    total = ir_binary(s->g, OP_ADD, total, ir_sum(s->g, ir_binary(s->g, OP_MUL, squares, x), 8, true));
    out(s, ir_binary(s->g, OP_ADD, ir_scale(s->g, total, 1e-4), ir_max(s->g, x, 8, true)));
    end(s, 9, 1e-3);
    begin(s, "one of 64"); /* told by its place, eight or four at a time */
    Val label = index_input(s, "label", shape(4, DIM_B, DIM_T, DIM(1), DIM(1)));
    x = input(s, "x", shape(4, DIM_B, DIM_T, DIM(1), DIM(64)));
    Val is = ir_cast(s->g, ir_binary(s->g, OP_EQ, label, ir_iota(s->g, shape_of(s->g, x), 3)), DT_REAL);
    out(s, ir_binary(s->g, OP_SUB, ir_unary(s->g, OP_EXP, x), is));
    end(s, 9, 1e-5);
    begin(s, "cumsum of 1,030"); /* by many threads of a device, in lines side by side and one by one */
    x = input(s, "x", shape(3, DIM_B, DIM(1030), DIM(3), DIM(1)));
    for (int back = 0; back < 2; back++) {
        out(s, ir_cumsum(s->g, x, 1, back));
        out(s, ir_cumsum(s->g, ir_transpose(s->g, x), 2, back));
    }
    end(s, 9, 1e-5);
}

static void product_pair(Suite *s, Shape a, Shape b)
{
    Val x = input(s, "a", a), y = input(s, "b", b);
    out(s, ir_matmul(s->g, x, y));
    int last = a.rank - 1;
    Shape at = a, bt = b;
    at.d[last] = a.d[last - 1], at.d[last - 1] = a.d[last];
    bt.d[b.rank - 1] = b.d[b.rank - 2], bt.d[b.rank - 2] = b.d[b.rank - 1];
    Val xt = input(s, "at", at), yt = input(s, "bt", bt);
    for (int flags = 1; flags < 4; flags++) {
        Val in[2] = {flags & 1 ? xt : x, flags & 2 ? yt : y};
        out(s, ir_node(s->g, OP_MATMUL, in, 2, &(Attr){.i = flags}, NULL));
    }
    out(s, ir_matmul(s->g, ir_transpose(s->g, xt), ir_unary(s->g, OP_TANH, y)));
}

static void products(Suite *s)
{
    static const int small[] = {1, 2, 3, 7};
    Dim w = DIM(s->n + 40), v = DIM(s->n + 17);
    for (int i = 0; i < 4; i++) {
        Dim k = DIM(small[i]), l = DIM(small[(i + 1) % 4]);
        begin(s, "product [BT, n, w] [w, k]");
        product_pair(s, shape(4, DIM_B, DIM_T, l, w), shape(2, w, k, DIM(1), DIM(1)));
        end(s, 9, 2e-5);
        begin(s, "product [BT, n, k] [k, w]");
        product_pair(s, shape(4, DIM_B, DIM_T, l, k), shape(2, k, w, DIM(1), DIM(1)));
        end(s, 9, 2e-5);
        begin(s, "product per token, all small but one");
        product_pair(s, shape(4, DIM_B, DIM_T, l, k), shape(4, DIM_B, DIM_T, k, w));
        s->g = graph_new(s->ctx, s->ctx->program);
        product_pair(s, shape(4, DIM_B, DIM_T, l, w), shape(4, DIM_B, DIM_T, w, k));
        end(s, 9, 2e-5);
        begin(s, "product per token, long rows");
        product_pair(s, shape(4, DIM_B, DIM_T, w, l), shape(4, DIM_B, DIM_T, l, k));
        end(s, 9, 2e-5);
        begin(s, "gradient of a shared matrix");
        product_pair(s, shape(2, w, (Dim){3, 1, 1}, DIM(1), DIM(1)), shape(2, (Dim){3, 1, 1}, k, DIM(1), DIM(1)));
        end(s, 9, 1e-4);
    }
    begin(s, "product, large");
    product_pair(s, shape(3, DIM_B, DIM_T, w, DIM(1)), shape(2, w, v, DIM(1), DIM(1)));
    end(s, 9, 2e-5);
    begin(s, "product, batched");
    product_pair(s, shape(3, DIM_B, DIM_T, w, DIM(1)), shape(3, DIM_B, w, v, DIM(1)));
    end(s, 9, 2e-5);
    begin(s, "product of views");
    Val x = input(s, "x", shape(4, DIM_B, DIM_T, DIM(4), w)), y = input(s, "y", shape(4, DIM_B, DIM_T, DIM(4), w));
    Val p = ir_permute(s->g, x, (int[]){0, 2, 1, 3}), q = ir_permute(s->g, y, (int[]){0, 2, 3, 1});
    out(s, ir_matmul(s->g, p, q));
    Shape sh = shape(3, DIM_B, DIM_T, DIM(4 * (s->n + 40)), DIM(1));
    Val h = ir_slice(s->g, ir_reshape(s->g, x, &sh), 2, s->n, s->n + 3);
    out(s, ir_matmul(s->g, h, input(s, "w", shape(2, DIM(s->n + 3), v, DIM(1), DIM(1)))));
    end(s, 9, 2e-5);
}

static void by_index(Suite *s)
{
    Graph *g;
    begin(s, "gather and friends");
    g = s->g;
    Dim n = DIM(s->n + 2);
    Val table = input(s, "table", shape(2, DIM(11), n, DIM(1), DIM(1)));
    Val i = ir_binary(g, OP_SUB, index_input(s, "i", shape(2, DIM_B, DIM_T, DIM(1), DIM(1))), ir_int(g, 1));
    Val e = ir_gather(g, table, i);
    out(s, e);
    out(s, ir_sum(g, ir_binary(g, OP_MUL, e, e), 4, true));
    Shape ts = *shape_of(g, table);
    Val d = ir_unary(g, OP_TANH, e);
    Val in[2] = {d, i};
    out(s, ir_node(g, OP_SCATTER_ADD, in, 2, &(Attr){0}, &ts));
    Val x = input(s, "x", shape(3, DIM_B, DIM_T, n, DIM(1)));
    Val k = index_input(s, "k", shape(3, DIM_B, DIM_T, DIM(2), DIM(1)));
    Val p = ir_pick(g, ir_unary(g, OP_EXP, x), k);
    out(s, p);
    Shape xs = *shape_of(g, x);
    out(s, ir_pick(g, ir_iota(g, &xs, 2), k)); /* of integers */
    Val in2[2] = {p, k};
    out(s, ir_node(g, OP_PLACE, in2, 2, &(Attr){0}, &xs));
    out(s, ir_top_k(g, x, s->n < 2 ? 1 : 3));
    out(s, ir_one_hot(g, i, 13));
    out(s, ir_cross_entropy(g, x, i, 1, 0.1));
    Val z = input(s, "z", shape(4, DIM_B, DIM_T, DIM(3), n)); /* positions of the sequence by index */
    Shape rows = shape(2, (Dim){1, 1, 1}, DIM(3 * (s->n + 2)), DIM(1), DIM(1));
    out(s, ir_gather(g, ir_reshape(g, z, &rows), i));
    end(s, 12, 1e-5);

    begin(s, "experts");
    g = s->g;
    Val w = input(s, "w", shape(3, DIM(5), n, DIM(6), DIM(1)));
    x = input(s, "x", shape(3, DIM_B, DIM_T, n, DIM(1)));
    k = index_input(s, "k", shape(3, DIM_B, DIM_T, DIM(2), DIM(1)));
    Val y = ir_expert_matmul(g, ir_scale(g, x, 2), w, k);
    out(s, y);
    Val back[3] = {y, w, k};
    out(s, ir_node(g, OP_EXPERT_MATMUL, back, 3, &(Attr){.i = 1}, NULL));
    Shape ws = *shape_of(g, w);
    Val dw[3] = {x, y, k};
    out(s, ir_node(g, OP_EXPERT_MATMUL_DW, dw, 3, &(Attr){0}, &ws));
    end(s, 5, 1e-5);
}

/* Products of one row by parts of one weight, and by the whole of others: where they run as one, each has its own matrix. */
static void parts_of_a_weight(Suite *s)
{
    enum { WIDE = 48 };
    begin(s, "products by parts of a weight");
    Graph *g = s->g;
    Val x = input(s, "x", shape(3, DIM_B, DIM_T, DIM(WIDE), DIM(1)));
    Val w = input(s, "w", shape(3, DIM(3), DIM(WIDE), DIM(WIDE), DIM(1))), sum = 0;
    for (int i = 0; i < 3; i++) {
        Val part = ir_slice(g, w, 0, i, 1);
        Shape flat = shape(2, DIM(WIDE), DIM(WIDE), DIM(1), DIM(1));
        Val y = ir_matmul(g, x, ir_reshape(g, part, &flat));
        out(s, y);
        sum = sum ? ir_binary(g, OP_ADD, sum, ir_unary(g, OP_TANH, y)) : y;
    }
    out(s, sum);
    end(s, 9, 2e-5);
}

/* Of rows in which most are equal to some other, as the zeros of both signs are, and in which some are not numbers. */
static void ties(Suite *s)
{
    begin(s, "top_k of ties");
    Graph *g = s->g;
    Val x = ir_unary(g, OP_FLOOR, ir_scale(g, input(s, "x", btn(s)), 2));
    Val sign = input(s, "sign", btn(s)), zero = ir_fill(g, 0), one = ir_fill(g, 1), less = ir_fill(g, -1);
    Val signed_x = ir_binary(g, OP_MUL, x, ir_where(g, ir_binary(g, OP_LT, sign, zero), less, one));
    Val no_number = ir_unary(g, OP_SQRT, ir_where(g, ir_binary(g, OP_EQ, x, one), less, one));
    int most = s->n < 8 ? (int)s->n : 8;
    out(s, ir_top_k(g, x, most));
    out(s, ir_top_k(g, signed_x, most));
    out(s, ir_top_k(g, ir_binary(g, OP_MUL, signed_x, no_number), (int)s->n));
    end(s, 9, 0);
}

/* Slopes where a function has two: of whole numbers from -2 to 1, most of which are equal to some other. What they are
 * tests/grad/models.c says. */
static void slopes_of_ties(Suite *s)
{
    begin(s, "slopes of ties");
    Graph *g = s->g;
    Val x = ir_unary(g, OP_FLOOR, ir_scale(g, input(s, "x", btn(s)), 2));
    Val y = ir_unary(g, OP_FLOOR, ir_scale(g, input(s, "y", shape(2, DIM_T, DIM(s->n), DIM(1), DIM(1))), 2));
    Val at[] = {x, y}, d[2], low = ir_fill(g, -1), loss = 0;
    Val value[] = {ir_binary(g, OP_MAX, x, y),
                   ir_binary(g, OP_MIN, x, y),
                   ir_binary(g, OP_MOD, x, ir_fill(g, 2)),
                   ir_max(g, x, 4, true),
                   ir_max(g, y, 1, true),
                   ir_unary(g, OP_NEG, ir_max(g, ir_unary(g, OP_NEG, x), 6, true)),
                   ir_unary(g, OP_RELU, x),
                   ir_unary(g, OP_ABS, y),
                   ir_binary(g, OP_MIN, ir_binary(g, OP_MAX, x, low), ir_fill(g, 0)),
                   ir_where(g, ir_binary(g, OP_LE, x, y), x, y),
                   ir_pick(g, x, ir_top_k(g, x, 5)),
                   ir_pick(g, y, ir_top_k(g, y, 1))};
    for (size_t i = 0; i < COUNT_OF(value); i++) {
        out(s, value[i]);
        /* each with a factor of its own, a power of two, so that no slope hides behind another and all sums are exact */
        Val all = ir_scale(g, ir_sum(g, value[i], shape_of(g, value[i])->rank == 3 ? 7 : 3, false), (double)(1 << i));
        loss = loss ? ir_binary(g, OP_ADD, loss, all) : all;
        graph_gradient(g, all, at, 2, d);
        for (int k = 0; k < 2; k++)
            if (d[k])
                out(s, d[k]);
    }
    graph_gradient(g, loss, at, 2, d);
    out(s, d[0]);
    out(s, d[1]);
    end(s, 9, 1e-6);
}

static void attention(Suite *s)
{
    static const struct {
        int H, K, d, dv;
        bool causal;
        int window;
        double cap, drop;
        bool oldest;
    } way[] = {{2, 2, 8, 8, true, 0, 0, 0, true},    {4, 2, 16, 24, false, 9, 2, 0.2, true},
               {3, 1, 20, 8, true, 6, 0, 0, true},   {2, 2, 8, 8, true, 0, 0, 0, false},
               {4, 2, 24, 40, true, 0, 0, 0, false}, {3, 1, 16, 16, false, 0, 0, 0, false},
               {2, 1, 33, 5, true, 7, 0, 0, false},  {2, 2, 16, 16, false, 5, 3, 0, false},
               {2, 1, 8, 8, true, 0, 2, 0.3, false}, {1, 1, 64, 128, true, 0, 0, 0.1, false}};
    for (size_t i = 0; i < COUNT_OF(way); i++) {
        begin(s, "attention");
        Graph *g = s->g;
        Val q = input(s, "q", shape(4, DIM_B, DIM_T, DIM(way[i].H), DIM(way[i].d)));
        Val kv = input(s, "kv", shape(3, DIM_B, DIM_T, DIM(way[i].K * (way[i].d + way[i].dv)), DIM(1)));
        Shape ks = shape(4, DIM_B, DIM_T, DIM(way[i].K), DIM(way[i].d));
        Shape vs = shape(4, DIM_B, DIM_T, DIM(way[i].K), DIM(way[i].dv));
        int64_t kn = way[i].K * way[i].d, vn = way[i].K * way[i].dv;
        Val k = ir_reshape(g, ir_slice(g, kv, 2, 0, kn), &ks);
        Val v = ir_reshape(g, ir_slice(g, kv, 2, kn, vn), &vs);
        Sdpa how = {.causal = way[i].causal,
                    .scale = 0.6,
                    .softcap = way[i].cap,
                    .dropout = way[i].drop,
                    .window = way[i].window,
                    .site = name_str(s->ctx, "drop")};
        if (way[i].oldest) /* where runs of some numbers begin, and some that no key reaches */
            how.oldest =
                ir_binary(g, OP_MUL, index_input(s, "old", shape(2, DIM_B, DIM_T, DIM(1), DIM(1))), ir_int(g, 3));
        Val y = ir_sdpa(g, q, k, v, &how);
        out(s, y);
        Val dy = ir_unary(g, OP_COS, ir_scale(g, y, 3));
        Val in[7] = {q, k, v, y, ir_node(g, OP_AUX, &y, 1, &(Attr){0}, NULL), dy, how.oldest};
        out(s, in[4]);
        Attr a = node_at(g, y)->a;
        Val dq = ir_node(g, OP_SDPA_GRAD, in, how.oldest ? 7 : 6, &a, NULL);
        out(s, dq);
        out(s, ir_node(g, OP_AUX, &dq, 1, &(Attr){.i = 0}, NULL));
        out(s, ir_node(g, OP_AUX, &dq, 1, &(Attr){.i = 1}, NULL));
        end(s, 9, 2e-5);
    }
}

/* Queries from a position on: keys [B, 11, ..], of which some queries see none. */
static void attention_at(Suite *s)
{
    static const struct {
        int H, K, d, dv;
        bool causal;
        int window;
        double cap;
    } way[] = {{2, 2, 8, 8, true, 0, 0},
               {4, 2, 24, 40, true, 3, 0},
               {3, 1, 33, 5, false, 4, 2},
               {2, 1, 16, 64, true, 100, 3},
               {1, 1, 4, 4, false, 0, 0}};
    for (size_t i = 0; i < COUNT_OF(way); i++) {
        begin(s, "attention at a position");
        Graph *g = s->g;
        Val q = input(s, "q", shape(4, DIM_B, DIM_T, DIM(way[i].H), DIM(way[i].d)));
        Val k = input(s, "k", shape(4, DIM_B, DIM(11), DIM(way[i].K), DIM(way[i].d)));
        Val v = input(s, "v", shape(4, DIM_B, DIM(11), DIM(way[i].K), DIM(way[i].dv)));
        Sdpa how = {.causal = way[i].causal,
                    .scale = 0.6,
                    .softcap = way[i].cap,
                    .window = way[i].window,
                    .first = index_input(s, "first", shape(1, DIM_B, DIM(1), DIM(1), DIM(1)))};
        Val y = ir_sdpa(g, q, k, v, &how);
        out(s, y);
        out(s, ir_node(g, OP_AUX, &y, 1, &(Attr){0}, NULL));
        end(s, 14, 2e-5);
    }
}

/* Rows put into tables in place and aside, and taken again, also beyond both ends. */
static void ranges(Suite *s)
{
    for (int type = 0; type < 2; type++) {
        begin(s, type ? "ranges of integers" : "ranges");
        Graph *g = s->g;
        Shape table = shape(3, DIM_B, DIM(6), DIM(s->n), DIM(1)), each = shape(1, DIM_B, DIM(1), DIM(1), DIM(1));
        DType t = type ? DT_INT : DT_REAL;
        Name kept = name_str(s->ctx, "kept"), other = name_str(s->ctx, "other");
        Shape rows = btn(s);
        Val x = ir_ext(g, EXT_INPUT, name_str(s->ctx, "x"), t, &rows);
        Val start = ir_binary(g, OP_SUB, index_input(s, "start", each), ir_int(g, 2));
        Val on = ir_binary(g, OP_MOD, index_input(s, "on", each), ir_int(g, 2));
        Val in_place = ir_put(g, ir_ext(g, EXT_STATE, kept, t, &table), x, start, on);
        Val old = ir_ext(g, EXT_STATE, other, t, &table);
        Val aside = ir_put(g, old, x, start, on);
        Val before = ir_binary(g, OP_SUB, start, ir_int(g, 3));
        out(s, ir_take(g, in_place, before, DIM_T, -3));
        out(s, ir_take(g, aside, start, DIM(9), 7));
        out(s, ir_take(g, old, ir_broadcast(g, ir_int(g, 4), &each), DIM(3), -1));
        ir_store(g, in_place, EXT_STATE, kept);
        ir_store(g, ir_binary(g, OP_ADD, aside, old), EXT_STATE, other);
        end(s, 7, 1e-6);
    }
}

static void stores(Suite *s)
{
    begin(s, "stores into external tensors");
    Graph *g = s->g;
    Shape sh = shape(2, DIM(s->n), DIM(7), DIM(1), DIM(1)), row = shape(1, DIM(7), DIM(1), DIM(1), DIM(1));
    Name w = name_str(s->ctx, "w"), m = name_str(s->ctx, "m"), e = name_str(s->ctx, "e"), b = name_str(s->ctx, "b");
    Name c = name_str(s->ctx, "c"), t = name_str(s->ctx, "t");
    Val vw = ir_ext(g, EXT_PARAM, w, DT_REAL, &sh), vm = ir_ext(g, EXT_STATE, m, DT_REAL, &sh);
    Val ve = ir_ext(g, EXT_STATE, e, DT_REAL, &sh), vb = ir_ext(g, EXT_PARAM, b, DT_REAL, &row);
    Val grad = ir_unary(g, OP_TANH, vw);
    Val m2 = ir_binary(g, OP_ADD, ir_scale(g, vm, 0.9), ir_scale(g, grad, 0.1));
    Val w2 = ir_binary(g, OP_SUB, vw, ir_binary(g, OP_MUL, m2, ir_fill(g, 0.01)));
    ir_store(g, m2, EXT_STATE, m);
    ir_store(g, w2, EXT_PARAM, w);
    ir_store(g, vw, EXT_STATE, e); /* the old weights */
    ir_store(g, ir_sum(g, ve, 1, false), EXT_PARAM, b);
    ir_store(g, ir_binary(g, OP_ADD, vb, ir_fill(g, 1)), EXT_STATE, c); /* a tensor nobody reads */
    out(s, vw);
    out(s, ir_sum(g, vb, 1, false));
    Val vt = ir_ext(g, EXT_BUFFER, t, DT_REAL, &sh);
    ir_store(g, ir_binary(g, OP_DIV, vt, ir_sum(g, vt, 3, true)), EXT_BUFFER, t); /* not in place */
    /* elements that other elements of the new tensor need: of its row, through what is computed on the way, and
     * in another place of it */
    Name u = name_str(s->ctx, "u"), r = name_str(s->ctx, "r"), q = name_str(s->ctx, "q");
    Val vu = ir_ext(g, EXT_STATE, u, DT_REAL, &sh), vr = ir_ext(g, EXT_STATE, r, DT_REAL, &sh);
    Val square = ir_binary(g, OP_MUL, vu, vu), apart = ir_binary(g, OP_SUB, square, ir_sum(g, square, 2, true));
    ir_store(g, ir_scale(g, vu, 2), EXT_STATE, u);
    out(s, ir_sum(g, ir_binary(g, OP_MUL, apart, apart), 2, true));
    ir_store(g, ir_binary(g, OP_ADD, vr, ir_roll(g, vr, 1, 1)), EXT_STATE, r);
    /* and through what is another kernel's, over columns, and computed again on the way */
    Val vq = ir_ext(g, EXT_STATE, q, DT_REAL, &sh), twice = ir_scale(g, vq, 2);
    Val most = ir_max(g, twice, 1, true), below = ir_binary(g, OP_SUB, twice, most);
    out(s, ir_sum(g, ir_unary(g, OP_EXP, below), 1, true));
    ir_store(g, ir_binary(g, OP_ADD, ir_scale(g, vq, 0.9), ir_shift(g, twice, 1, 1, 0)), EXT_STATE, q);
    end(s, 9, 1e-5);
}

/* More sums of a row than a block exchanges at one time. */
static void many_sums(Suite *s)
{
    enum { SUMS = 96, WIDE = 640 }; /* a row of a block, in one kernel */
    begin(s, "many sums");
    Val x = input(s, "x", shape(3, DIM_B, DIM_T, DIM(WIDE), DIM(1))), total = ir_fill(s->g, 0);
    for (int i = 0; i < SUMS; i++) {
        Val each = ir_unary(s->g, OP_SIN, ir_scale(s->g, x, 0.25 + 0.125 * i));
        total = ir_binary(s->g, i % 3 ? OP_ADD : OP_SUB, total, ir_sum(s->g, each, 4, true));
    }
    out(s, ir_binary(s->g, OP_MUL, x, ir_scale(s->g, total, 1.0 / 64)));
    end(s, 9, 2e-5);
}

void graphs_add(Ctx *ctx, Cases *cases, int64_t B, int64_t T, int64_t n)
{
    Suite s = {.ctx = ctx, .cases = cases, .B = B, .T = T, .n = n};
    elementwise(&s);
    outer_sums(&s);
    leaves(&s);
    views(&s);
    reductions(&s);
    products(&s);
    by_index(&s);
    ties(&s);
    if (n > 17) /* of the sizes that a part is drawn of, too */
        slopes_of_ties(&s);
    parts_of_a_weight(&s);
    attention(&s);
    attention_at(&s);
    ranges(&s);
    stores(&s);
    if (n == 33) /* more than one row */
        many_sums(&s);
}
