/* support.c - see support.h. */
#include "support.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- checks ---- */

void check(Tally *t, bool good, const char *fmt, ...)
{
    if (good) {
        t->passed++;
        return;
    }
    t->failed++;
    if (t->failed > 30)
        return;
    va_list ap;
    va_start(ap, fmt);
    printf("FAILED: ");
    vprintf(fmt, ap);
    printf("\n");
    va_end(ap);
}

int tally_end(const Tally *t, const char *what)
{
    printf("%s: %d passed, %d failed\n", what, t->passed, t->failed);
    return t->failed ? 1 : 0;
}

/* ---- a bench ---- */

static void print_bug(Ctx *ctx, const char *text)
{
    (void)ctx;
    printf("bug: %s\n", text);
}

Bench *bench_new(void)
{
    Ctx *ctx = ctx_new(NULL);
    if (!ctx)
        abort();
    ctx->on_bug = print_bug;
    Bench *b = calloc(1, sizeof *b);
    b->ctx = ctx;
    b->g = graph_new(ctx, ctx->program);
    b->B = 2;
    b->T = 3;
    b->seed = 1;
    return b;
}

void bench_free(Bench *b)
{
    ctx_free(b->ctx);
    free(b);
}

uint64_t bench_bits(Bench *b)
{
    uint64_t z = b->seed += 0x9e3779b97f4a7c15u;
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}

double bench_random(Bench *b, double lo, double hi)
{
    return lo + (hi - lo) * ((double)(bench_bits(b) >> 11) * 0x1p-53);
}

int bench_choice(Bench *b, int n) { return (int)(bench_bits(b) % (uint64_t)n); }

Name bench_name(Bench *b, const char *s) { return name_str(b->ctx, s); }

Shape bench_shape(int rank, ...)
{
    Shape s = {.rank = (uint8_t)rank};
    va_list ap;
    va_start(ap, rank);
    for (int k = 0; k < rank; k++)
        s.d[k] = va_arg(ap, Dim);
    va_end(ap);
    return s;
}

static Val bind_new(Bench *b, ExtKind kind, DType dtype, const Shape *s, Tensor **out)
{
    int64_t d[MAX_RANK];
    for (int k = 0; k < s->rank; k++)
        d[k] = dim_at(s->d[k], b->B, b->T);
    Name name = name_printf(b->ctx, "%c%zu", kind == EXT_PARAM ? 'p' : 'x', b->bind.n);
    Val v = ir_ext(b->g, kind, name, dtype, s);
    *out = tensor_new(b->ctx->program, dtype, s->rank, d);
    vec_push(b->ctx->program, &b->bind, (RefBinding){kind, name, *out});
    return v;
}

static double off_zero(double x) { return fabs(x) < 0.01 ? x + 0.02 : x; }

Val bench_param(Bench *b, const Shape *s, double lo, double hi)
{
    Tensor *t;
    Val v = bind_new(b, EXT_PARAM, DT_REAL, s, &t);
    double shift = 0.25 + 0.5 * (double)(b->params.n % 3) / 3;
    for (int64_t k = 0; k < t->size; k++)
        t->real[k] = off_zero(lo + (hi - lo) * ((double)k + shift) / (double)t->size);
    for (int64_t k = t->size - 1; k > 0; k--) {
        int64_t other = (int64_t)(bench_bits(b) % (uint64_t)(k + 1));
        double x = t->real[k];
        t->real[k] = t->real[other];
        t->real[other] = x;
    }
    vec_push(b->ctx->program, &b->params, v);
    return v;
}

Val bench_input(Bench *b, const Shape *s, double lo, double hi)
{
    Tensor *t;
    Val v = bind_new(b, EXT_BUFFER, DT_REAL, s, &t);
    for (int64_t k = 0; k < t->size; k++)
        t->real[k] = bench_random(b, lo, hi);
    return v;
}

Val bench_index(Bench *b, const Shape *s, int64_t lo, int64_t hi)
{
    Tensor *t;
    Val v = bind_new(b, EXT_INPUT, DT_INT, s, &t);
    for (int64_t k = 0; k < t->size; k++)
        t->integer[k] = lo + (int64_t)(bench_bits(b) % (uint64_t)(hi - lo));
    return v;
}

Tensor *bench_tensor(Bench *b, Val leaf)
{
    const Ext *x = &b->g->ext.v[node_at(b->g, leaf)->a.i];
    for (size_t i = 0; i < b->bind.n; i++)
        if (b->bind.v[i].kind == x->kind && b->bind.v[i].name == x->name)
            return b->bind.v[i].tensor;
    abort();
}

Tensor **bench_run(Bench *b, const Graph *g)
{
    CtxGuard guard;
    Tensor **results = NEW_ARRAY(b->ctx->program, Tensor *, g->out.n + 1);
    double host[HV_COUNT] = {[HV_STEP] = 7, [HV_LENGTH] = 100, [HV_TOKENS] = 1000};
    RefRun run = {b->B, b->T, 42, 7, host, b->bind.v, b->bind.n, 0};
    if (!CTX_TRY(b->ctx, &guard)) {
        printf("raised: %s\n", b->ctx->message);
        return NULL;
    }
    ref_evaluate(g, b->ctx->program, &run, results);
    ctx_leave(b->ctx, &guard);
    return results;
}

/* ---- gradients ---- */

/* A graph with the loss alone, evaluated many times. */
static double loss_at(Bench *b, const Graph *g)
{
    ArenaMark mark = arena_mark(b->ctx->program);
    Tensor **r = bench_run(b, g);
    double loss = r ? r[0]->real[0] : NAN;
    arena_reset(b->ctx->program, mark);
    return loss;
}

static double central(Bench *b, const Graph *g, double *at, double h)
{
    double x = *at;
    *at = x + h;
    double up = loss_at(b, g);
    *at = x - h;
    double down = loss_at(b, g);
    *at = x;
    return (up - down) / (2 * h);
}

double bench_gradient_error(Bench *b, Val y, size_t *compared)
{
    Graph *g = b->g;
    Shape s = *shape_of(g, y);
    Val loss = ir_sum(g, ir_binary(g, OP_MUL, y, bench_input(b, &s, 0.5, 1.5)), (1u << s.rank) - 1, false);
    ir_output(g, bench_name(b, "loss"), loss);
    Graph forward = *g; /* shares the nodes made so far */
    Val *d = NEW_ARRAY(b->ctx->program, Val, b->params.n + 1);
    graph_gradient(g, loss, b->params.v, b->params.n, d);
    graph_verify(g);
    for (size_t p = 0; p < b->params.n; p++)
        if (d[p])
            ir_output(g, name_printf(b->ctx, "d%zu", p), d[p]);
    Tensor **r = bench_run(b, g);
    if (!r)
        return INFINITY;
    double worst = 0;
    size_t at = 1;
    for (size_t p = 0; p < b->params.n; p++) {
        Tensor *x = bench_tensor(b, b->params.v[p]), *analytic = d[p] ? r[at++] : NULL;
        int64_t step = x->size > 400 ? x->size / 100 : 1;
        for (int64_t k = 0; k < x->size; k += step) {
            double h = 2e-3 * (fabs(x->real[k]) < 1 ? 1 : fabs(x->real[k]));
            double wide = central(b, &forward, &x->real[k], h);
            double num = (4 * central(b, &forward, &x->real[k], h / 2) - wide) / 3;
            double ana = analytic ? analytic->real[k] : 0;
            double error = fabs(num - ana) / fmax(fmax(fabs(num), fabs(ana)), 1e-3);
            worst = error > worst || isnan(error) ? (isnan(error) ? INFINITY : error) : worst;
            ++*compared;
        }
    }
    return worst;
}

/* ---- a small decoder ---- */

static Val matrix(Bench *b, int64_t rows, int64_t columns)
{
    Shape s = bench_shape(2, DIM(rows), DIM(columns));
    double r = 1 / sqrt((double)rows);
    return bench_param(b, &s, -r, r);
}

static Val scaled(Bench *b, Val x, int64_t width)
{
    Graph *g = b->g;
    Shape s = bench_shape(1, DIM(width));
    int last = shape_of(g, x)->rank - 1;
    Val square = ir_mean(g, ir_binary(g, OP_MUL, x, x), 1u << last, true);
    Val root = ir_unary(g, OP_SQRT, ir_binary(g, OP_ADD, square, ir_fill(g, 1e-5)));
    Val unit = ir_binary(g, OP_DIV, x, root);
    return ir_binary(g, OP_MUL, unit, bench_param(b, &s, 0.5, 1.5));
}

static Val heads_of(Bench *b, Val x, int64_t heads, int64_t size)
{
    Shape s = bench_shape(4, DIM_B, DIM_T, DIM(heads), DIM(size));
    return ir_reshape(b->g, x, &s);
}

static Val attention(Bench *b, Val x, int64_t width, int64_t heads)
{
    Graph *g = b->g;
    int64_t size = width / heads;
    double freq[64];
    for (int64_t k = 0; k < size / 2; k++)
        freq[k] = pow(10000, -2.0 * (double)k / (double)size);
    Val q = heads_of(b, ir_matmul(g, x, matrix(b, width, width)), heads, size);
    Val k = heads_of(b, ir_matmul(g, x, matrix(b, width, width / 2)), heads / 2, size);
    Val v = heads_of(b, ir_matmul(g, x, matrix(b, width, width / 2)), heads / 2, size);
    q = ir_rotary(g, q, freq, (size_t)(size / 2), false);
    k = ir_rotary(g, k, freq, (size_t)(size / 2), false);
    Sdpa how = {.causal = true, .scale = 1 / sqrt((double)size)};
    Shape flat = bench_shape(3, DIM_B, DIM_T, DIM(width));
    Val a = ir_reshape(g, ir_sdpa(g, q, k, v, &how), &flat);
    return ir_matmul(g, a, matrix(b, width, width));
}

Val bench_decoder(Bench *b, int layers, int64_t width, int64_t heads, int64_t vocabulary)
{
    Graph *g = b->g;
    Shape ids = bench_shape(2, DIM_B, DIM_T);
    Val tokens = bench_index(b, &ids, 0, vocabulary);
    Val labels = bench_index(b, &ids, -1, vocabulary);
    Val table = matrix(b, vocabulary, width);
    Val x = ir_gather(g, table, tokens);
    for (int l = 0; l < layers; l++) {
        g->name = name_printf(b->ctx, "layer[%d].attention", l);
        x = ir_binary(g, OP_ADD, x, attention(b, scaled(b, x, width), width, heads));
        g->name = name_printf(b->ctx, "layer[%d].ffn", l);
        Val y = scaled(b, x, width);
        Val gate = ir_unary(g, OP_SILU, ir_matmul(g, y, matrix(b, width, 2 * width)));
        Val up = ir_matmul(g, y, matrix(b, width, 2 * width));
        Val h = ir_binary(g, OP_MUL, gate, up);
        x = ir_binary(g, OP_ADD, x, ir_matmul(g, h, matrix(b, 2 * width, width)));
    }
    g->name = bench_name(b, "head");
    x = scaled(b, x, width);
    Val logits = ir_matmul(g, x, ir_transpose(g, table));
    Val loss = ir_mean(g, ir_cross_entropy(g, logits, labels, -1, 0.1), 3, false);
    g->name = NULL;
    return loss;
}

/* ---- random graphs ---- */

/* Everything stays smooth and bounded: what may grow goes through tanh. */
static Val tame(Bench *b, Val x) { return ir_unary(b->g, OP_TANH, x); }

static Val random_unary(Bench *b, Val x)
{
    static const Op smooth[] = {OP_NEG,       OP_SIN,  OP_COS,      OP_TANH, OP_SIGMOID, OP_ERF, OP_GELU,
                                OP_GELU_TANH, OP_SILU, OP_SOFTPLUS, OP_STOP, OP_RELU,    OP_ABS};
    Graph *g = b->g;
    int k = bench_choice(b, (int)COUNT_OF(smooth) + 4);
    if (k < (int)COUNT_OF(smooth))
        return ir_unary(g, smooth[k], x);
    Val above = ir_binary(g, OP_ADD, ir_binary(g, OP_MUL, x, x), ir_fill(g, 1));
    static const Op partial[] = {OP_LOG, OP_SQRT};
    if (k < (int)COUNT_OF(smooth) + 2)
        return ir_unary(g, partial[k - (int)COUNT_OF(smooth)], above);
    if (k == (int)COUNT_OF(smooth) + 2)
        return ir_unary(g, OP_EXP, tame(b, x));
    static const double powers[] = {0, 1, 2, 0.5, -1, 3};
    return tame(b, ir_binary(g, OP_POW, above, ir_fill(g, powers[bench_choice(b, 6)])));
}

static Val random_constant(Bench *b, const Shape *s)
{
    static const double values[] = {0, 1, -1, 2, 4, 0.25, 3, -0.5};
    Dim last = s->rank ? s->d[s->rank - 1] : DIM(1);
    if (dim_static(last) && last.n > 1 && last.n < 20 && bench_choice(b, 3) == 0) {
        double v[20];
        for (int64_t k = 0; k < last.n; k++)
            v[k] = bench_random(b, -1, 1);
        Shape row = bench_shape(1, last);
        return ir_const(b->g, &row, v);
    }
    return ir_fill(b->g, values[bench_choice(b, 8)]);
}

static Val random_binary(Bench *b, Val x, Val y)
{
    Graph *g = b->g;
    Shape s;
    if (!shape_broadcast(shape_of(g, x), shape_of(g, y), &s))
        y = random_constant(b, shape_of(g, x));
    switch (bench_choice(b, 8)) {
    case 0: return ir_binary(g, OP_ADD, x, y);
    case 1: return ir_binary(g, OP_SUB, y, x);
    case 2: return tame(b, ir_binary(g, OP_MUL, x, y));
    case 3: return ir_binary(g, OP_DIV, x, ir_unary(g, OP_EXP, tame(b, y)));
    case 4: return ir_binary(g, OP_MIN, x, y);
    case 5: return ir_binary(g, OP_MAX, x, y);
    case 6: return ir_where(g, ir_binary(g, OP_LT, x, y), x, ir_unary(g, OP_NEG, y));
    default: return ir_binary(g, OP_DIV, x, ir_fill(g, bench_choice(b, 2) ? 4 : 3));
    }
}

static Val random_reshape(Bench *b, Val x)
{
    Graph *g = b->g;
    Shape s = *shape_of(g, x), to = {0};
    if (bench_choice(b, 2) && shape_size(&s, &to.d[0])) {
        to.rank = 1;
        return ir_reshape(g, x, &to);
    }
    if (s.rank >= 5)
        return x;
    int at = bench_choice(b, s.rank + 1);
    for (int k = 0; k <= s.rank; k++)
        to.d[k] = k < at ? s.d[k] : k == at ? DIM(1) : s.d[k - 1];
    to.rank = (uint8_t)(s.rank + 1);
    return ir_reshape(g, x, &to);
}

static Val random_permute(Bench *b, Val x)
{
    int perm[MAX_RANK], rank = shape_of(b->g, x)->rank;
    for (int k = 0; k < rank; k++)
        perm[k] = k;
    if (rank >= 2 && bench_choice(b, 2))
        return ir_transpose(b->g, x);
    for (int k = rank - 1; k > 0; k--) {
        int other = bench_choice(b, k + 1), t = perm[k];
        perm[k] = perm[other];
        perm[other] = t;
    }
    return ir_permute(b->g, x, perm);
}

static Val random_move(Bench *b, Val x)
{
    Graph *g = b->g;
    Shape s = *shape_of(g, x);
    if (s.rank == 0)
        return x;
    int axis = bench_choice(b, s.rank);
    bool fixed = dim_static(s.d[axis]);
    int64_t n = s.d[axis].n;
    switch (bench_choice(b, 6)) {
    case 0:
        if (!fixed || n < 2)
            return x;
        return ir_slice(g, x, axis, bench_choice(b, (int)(n - 1)), 1 + bench_choice(b, 2) % n);
    case 1: return fixed && n < 16 ? ir_pad(g, x, axis, bench_choice(b, 3), bench_choice(b, 2)) : x;
    case 2: {
        Val parts[2] = {x, bench_choice(b, 2) ? x : ir_unary(g, OP_NEG, x)};
        return n < 16 ? ir_concat(g, parts, 2, axis) : x;
    }
    case 3: return ir_shift(g, x, axis, bench_choice(b, 5) - 2, bench_choice(b, 2));
    case 4: return ir_roll(g, x, axis, bench_choice(b, 7) - 3);
    default:
        if (!fixed || n < 2)
            return x;
        Val halves[2] = {ir_slice(g, x, axis, 0, 1), ir_slice(g, x, axis, 1, n - 1)};
        return ir_concat(g, halves, 2, axis);
    }
}

static Val random_reduce(Bench *b, Val x)
{
    Graph *g = b->g;
    int rank = shape_of(g, x)->rank;
    if (rank == 0)
        return x;
    uint32_t axes = 1u + (uint32_t)bench_choice(b, (1 << rank) - 1);
    int axis = bench_choice(b, rank);
    bool keep = bench_choice(b, 3);
    switch (bench_choice(b, 7)) {
    case 0: return tame(b, ir_sum(g, x, axes, keep));
    case 1: return ir_max(g, x, axes, keep);
    case 2: return ir_mean(g, x, axes, keep);
    case 3: return tame(b, ir_cumsum(g, x, axis, bench_choice(b, 2)));
    case 4: return ir_softmax(g, x, axis);
    case 5: return ir_logsumexp(g, x, axis, keep);
    default: return ir_broadcast(g, ir_sum(g, x, axes, true), shape_of(g, x));
    }
}

static Val random_product(Bench *b, Val x)
{
    Graph *g = b->g;
    const Shape *s = shape_of(g, x);
    if (s->rank < 2)
        return x;
    Dim inner = s->d[s->rank - 1];
    if (bench_choice(b, 3) == 0 || !dim_static(inner))
        return tame(b, ir_matmul(g, x, ir_transpose(g, x)));
    Shape w = bench_shape(2, inner, DIM(2 + bench_choice(b, 3)));
    if (bench_choice(b, 2))
        return tame(b, ir_matmul(g, x, bench_param(b, &w, -1, 1)));
    Shape turned = bench_shape(2, w.d[1], w.d[0]);
    Val t = ir_transpose(g, bench_param(b, &turned, -1, 1));
    if (bench_choice(b, 2) && s->rank > 2) {
        Shape lifted = *s;
        for (int k = 0; k < 2; k++)
            lifted.d[s->rank - 2 + k] = shape_of(g, t)->d[k];
        t = ir_broadcast(g, t, &lifted);
    }
    return tame(b, ir_matmul(g, x, t));
}

static Val random_by_index(Bench *b, Val x)
{
    Graph *g = b->g;
    Shape s = *shape_of(g, x);
    if (s.rank == 0 || !dim_static(s.d[s.rank - 1]) || s.d[s.rank - 1].n < 2 || s.rank > 5)
        return ir_scale(g, x, 0.5);
    if (bench_choice(b, 2))
        return ir_pick(g, x, ir_top_k(g, x, 1 + bench_choice(b, 2)));
    Shape ids = bench_shape(2, DIM_B, DIM(2));
    if (!dim_static(s.d[0]))
        return x;
    return ir_gather(g, x, bench_index(b, &ids, -1, s.d[0].n + 1));
}

static Val random_node(Bench *b, Val x, Val y)
{
    switch (bench_choice(b, 14)) {
    case 0:
    case 1: return random_unary(b, x);
    case 2:
    case 3:
    case 4: return random_binary(b, x, y);
    case 5: return random_binary(b, x, random_constant(b, shape_of(b->g, x)));
    case 6: return random_reshape(b, x);
    case 7: return random_permute(b, x);
    case 8: return random_move(b, x);
    case 9:
    case 10: return random_reduce(b, x);
    case 11: return random_product(b, x);
    case 12: return random_by_index(b, x);
    default:
        if (bench_choice(b, 2))
            return ir_binary(b->g, OP_MUL, x, ir_random(b->g, OP_RAND, shape_of(b->g, x), bench_name(b, "noise")));
        return ir_binary(b->g, OP_MUL, x, ir_dim(b->g, bench_choice(b, 2) ? DIM_B : DIM_T));
    }
}

static bool small_enough(const Graph *g, Val v)
{
    Dim size;
    const Shape *s = shape_of(g, v);
    return s->rank <= 5 && shape_size(s, &size) && dim_at(size, 3, 4) <= 3000;
}

void bench_random_graph(Bench *b, int nodes, bool differentiate)
{
    Graph *g = b->g;
    VEC(Val) pool = {0};
    Shape shapes[] = {bench_shape(0),
                      bench_shape(1, DIM(3)),
                      bench_shape(2, DIM(5), DIM(3)),
                      bench_shape(3, DIM_B, DIM_T, DIM(3)),
                      bench_shape(3, DIM_B, DIM(1), DIM(4)),
                      bench_shape(2, DIM(4), DIM(4))};
    for (size_t k = 0; k < COUNT_OF(shapes); k++)
        vec_push(b->ctx->program, &pool, bench_param(b, &shapes[k], -1.5, 1.5));
    vec_push(b->ctx->program, &pool,
             ir_host(g, host_op(g->arena, HO_MUL, host_var(g->arena, HV_STEP), host_const(g->arena, 0.1), NULL)));
    for (int k = 0; k < nodes; k++) {
        g->name = name_printf(b->ctx, "step[%d]", k);
        Val x = pool.v[bench_choice(b, (int)pool.n)], y = pool.v[bench_choice(b, (int)pool.n)];
        if (bench_choice(b, 2))
            x = pool.v[pool.n - 1];
        Val v = random_node(b, x, y);
        if (small_enough(g, v))
            vec_push(b->ctx->program, &pool, v);
    }
    g->name = NULL;
    Val loss = ir_fill(g, 0);
    for (int k = 0; k < 4; k++) {
        Val v = pool.v[pool.n - 1 - (size_t)bench_choice(b, (int)pool.n / 2)];
        ir_output(g, name_printf(b->ctx, "out%d", k), v);
        Val mean = ir_mean(g, v, (1u << shape_of(g, v)->rank) - 1, false);
        loss = ir_binary(g, OP_ADD, loss, mean);
    }
    ir_output(g, bench_name(b, "loss"), loss);
    if (!differentiate)
        return;
    Val *d = NEW_ARRAY(b->ctx->program, Val, b->params.n);
    graph_gradient(g, loss, b->params.v, b->params.n, d);
    for (size_t p = 0; p < b->params.n; p++)
        if (d[p])
            ir_output(g, name_printf(b->ctx, "d%zu", p), d[p]);
}

/* ---- text ---- */

const char *bench_dump(Bench *b, const Graph *g)
{
    Buf out = buf_new(b->ctx->program);
    graph_dump(&out, g);
    return out.s;
}

Graph *bench_read(Bench *b, const char *text)
{
    uint32_t file = source_add(b->ctx, "test.ir", text, strlen(text));
    return graph_read(b->ctx, b->ctx->program, file);
}
