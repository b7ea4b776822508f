/* values.c - what operators compute, against formulas written out here.
 *
 * In:  small tensors.     Out: checks of values, random numbers, run-time scalars and extents.
 * The one idea: the expected side is computed in another way than the operator does it.
 * When: quick.
 */
#include "support.h"

#include "support/f8.h"
#include "support/half_bits.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static bool near(double a, double b)
{
    return a == b ||
           (isfinite(b) && fabs(a - b) <= 1e-12 * fmax(1, fabs(b))); /* of what is infinite anything would be near */
}

/* ---- random numbers ---- */

static void known_answers(Tally *t)
{
    static const uint32_t ones = 0xffffffffu;
    static const uint32_t table[3][10] = {
        {0, 0, 0, 0, 0, 0, 0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8},
        {ones, ones, ones, ones, ones, ones, 0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd},
        {0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344, 0xa4093822, 0x299f31d0, 0xd16cfe09, 0x94fdcceb, 0x5001e420,
         0x24126ea1}};
    for (int k = 0; k < 3; k++) {
        uint32_t out[4];
        philox4x32(table[k], table[k] + 4, out);
        for (int w = 0; w < 4; w++)
            check(t, out[w] == table[k][6 + w], "philox vector %d word %d: %08x", k, w, (unsigned)out[w]);
    }
}

static void distributions(Tally *t)
{
    enum { N = 100000 };
    double sum = 0, square = 0, normal = 0, normal2 = 0, normal4 = 0, lo = 1, hi = 0;
    uint64_t key = philox_key(1, "layer[3].drop");
    for (uint64_t k = 0; k < N; k++) {
        double u = philox_uniform(key, 5, k), z = philox_normal(key, 5, k);
        lo = fmin(lo, u), hi = fmax(hi, u);
        sum += u, square += u * u;
        normal += z, normal2 += z * z, normal4 += z * z * z * z;
    }
    check(t, lo >= 0 && hi < 1, "uniform numbers in [%g, %g]", lo, hi);
    check(t, fabs(sum / N - 0.5) < 0.004 && fabs(square / N - 1.0 / 3) < 0.004, "uniform moments");
    check(t, fabs(normal / N) < 0.012 && fabs(normal2 / N - 1) < 0.02 && fabs(normal4 / N - 3) < 0.15,
          "normal moments %g %g %g", normal / N, normal2 / N, normal4 / N);
    check(t, philox_key(1, "a") != philox_key(2, "a") && philox_key(1, "a") != philox_key(1, "b"),
          "keys of other seeds or sites are equal");
    check(t, philox_uniform(key, 5, 1) != philox_uniform(key, 6, 1), "steps draw the same");
    check(t, philox_uniform(key, 5, 7) == philox_uniform(key, 5, 7), "a draw is not repeatable");
}

/* Many at a time are the same numbers: the definition, from the words, in every batch. */
static void normals(Tally *t)
{
    enum { MOST = 200 };
    static const size_t lengths[] = {0, 1, 63, 64, 65, MOST};
    static const uint64_t places[] = {0, 37, 0xffffffc0u}; /* the last: over 32 bits */
    uint64_t key = philox_key(3, "normals"), step = 11;
    for (size_t l = 0; l < COUNT_OF(lengths); l++)
        for (size_t p = 0; p < COUNT_OF(places); p++) {
            double z[MOST + 1];
            size_t n = lengths[l], same = 0;
            z[n] = -7;
            philox_normals(key, step, places[p], n, z);
            for (size_t i = 0; i < n; i++) {
                uint64_t at = places[p] + i;
                uint32_t w[4], halves[2] = {(uint32_t)key, (uint32_t)(key >> 32)},
                               counter[4] = {(uint32_t)at, (uint32_t)(at >> 32), (uint32_t)step, 0};
                philox4x32(counter, halves, w);
                double u = ((double)(w[0] >> 8) + 1) * 0x1p-24, a = (double)(w[1] >> 8) * 0x1p-24;
                same += z[i] == sqrt(-2 * log(u)) * cos(2 * 3.14159265358979323846 * a) &&
                        z[i] == philox_normal(key, step, at);
            }
            check(t, same == n && z[n] == -7, "%zu of %zu normal numbers from %llx", same, n,
                  (unsigned long long)places[p]);
        }
}

/* In 24 bits they are what rounding gives, whatever the scale. Times 2^-142 a
 * float has few bits. */
static void rounded_normals(Tally *t)
{
    enum { MANY = 1 << 21, ODD = 77 };
    static const double scales[] = {1, 0.02, -1.0 / 3, 1e30, 0x1p-142, 0};
    double *z = malloc(MANY * sizeof *z);
    float *f = malloc((MANY + 1) * sizeof *f);
    for (size_t s = 0; z && f && s < COUNT_OF(scales); s++) {
        uint64_t key = philox_key(s, "rounded"), from = s % 2 ? 0xffffffc1u : 0;
        size_t n = s < 2 ? MANY : MANY / 8 + ODD * s, same = 0;
        philox_normals(key, s, from, n, z);
        f[n] = -7;
        philox_normals_float(key, s, from, n, scales[s], f);
        for (size_t i = 0; i < n; i++) {
            float want = (float)(z[i] * scales[s]);
            same += memcmp(&f[i], &want, sizeof want) == 0;
        }
        check(t, same == n && f[n] == -7, "%zu of %zu rounded normal numbers, times %g", same, n, scales[s]);
    }
    check(t, z && f, "no memory");
    free(z);
    free(f);
}

/* The same where the number lies in the middle between two floats, but for its last bits. */
static void normals_between(Tally *t)
{
    enum { MANY = 4096 };
    uint64_t key = philox_key(9, "between");
    size_t same = 0;
    for (uint64_t i = 0; i < MANY; i++) {
        double z[8], middle = 1 + (double)(2 * i + 1) * 0x1p-24;
        float f[8];
        philox_normals(key, 0, i / 8 * 8, 8, z);
        double scale = middle / z[i % 8];
        philox_normals_float(key, 0, i / 8 * 8, 8, scale, f);
        same += f[i % 8] == (float)(z[i % 8] * scale);
    }
    check(t, same == MANY, "%zu of %d numbers between two floats are rounded as they should be", same, (int)MANY);
}

/* ---- cross-entropy and attention, by the definition ---- */

static double naive_cross_entropy(const double *x, int64_t n, int64_t label, double smoothing)
{
    long double sum = 0, loss = 0;
    for (int64_t k = 0; k < n; k++)
        sum += expl((long double)x[k]);
    for (int64_t k = 0; k < n; k++) {
        long double target = smoothing / (double)n + (k == label ? 1 - smoothing : 0);
        loss -= target * logl(expl((long double)x[k]) / sum);
    }
    return (double)loss;
}

static void cross_entropy(Tally *t, double smoothing, int64_t ignore, double spread)
{
    Bench *b = bench_new();
    b->T = 9;
    Shape s = bench_shape(3, DIM_B, DIM_T, DIM(7)), ids = bench_shape(2, DIM_B, DIM_T);
    Val logits = bench_param(b, &s, -spread, spread), labels = bench_index(b, &ids, -2, 7);
    ir_output(b->g, bench_name(b, "y"), ir_cross_entropy(b->g, logits, labels, ignore, smoothing));
    Tensor **r = bench_run(b, b->g), *x = bench_tensor(b, logits), *l = bench_tensor(b, labels);
    for (int64_t k = 0; k < l->size; k++) {
        int64_t label = l->integer[k];
        double want = label < 0 || label == ignore ? 0 : naive_cross_entropy(x->real + 7 * k, 7, label, smoothing);
        check(t, r && near(r[0]->real[k], want), "cross-entropy %g instead of %g", r ? r[0]->real[k] : NAN, want);
    }
    bench_free(b);
}

/* Extreme logits neither overflow nor lose the loss. */
static void stable_cross_entropy(Tally *t)
{
    Bench *b = bench_new();
    Shape s = bench_shape(2, DIM(2), DIM(3)), ids = bench_shape(1, DIM(2));
    Val logits = bench_param(b, &s, -1, 1), labels = bench_index(b, &ids, 0, 1);
    const double values[6] = {-1e4, 0, 0, 1e4, 0, 0};
    memcpy(bench_tensor(b, logits)->real, values, sizeof values);
    ir_output(b->g, bench_name(b, "y"), ir_cross_entropy(b->g, logits, labels, -1, 0));
    Tensor **r = bench_run(b, b->g);
    check(t, r && near(r[0]->real[0], 1e4 + log(2)) && r[0]->real[1] == 0, "large logits: %g %g",
          r ? r[0]->real[0] : NAN, r ? r[0]->real[1] : NAN);
    bench_free(b);
}

typedef struct Heads {
    int64_t B, T, S, H, K, d, dv;
    const double *q, *k, *v;
} Heads;

/* out[c] of one query: sum over the allowed keys of softmax(f(q.k)) v[c], all in one formula */
static double naive_attention(const Heads *h, const Sdpa *how, int64_t b, int64_t t, int64_t head, int64_t c,
                              double *lse)
{
    long double total = 0, sum = 0;
    int64_t kv = head * h->K / h->H;
    uint64_t key = how->dropout > 0 ? philox_key(42, how->site) : 0;
    for (int64_t u = 0; u < h->S; u++) {
        bool allowed = (!how->causal || u <= t) && (how->window == 0 || llabs(t - u) <= how->window - 1);
        long double score = 0;
        for (int64_t i = 0; i < h->d; i++)
            score += h->q[((b * h->T + t) * h->H + head) * h->d + i] * h->k[((b * h->S + u) * h->K + kv) * h->d + i];
        score *= how->scale;
        if (how->softcap > 0)
            score = how->softcap * tanhl(score / how->softcap);
        if (!allowed)
            continue;
        uint64_t index = (uint64_t)(((b * h->H + head) * h->T + t) * h->S + u);
        bool keep = !key || philox_uniform(key, 7, index) >= how->dropout;
        sum += expl(score);
        if (keep)
            total += expl(score) / (1 - how->dropout) * h->v[((b * h->S + u) * h->K + kv) * h->dv + c];
    }
    *lse = (double)logl(sum);
    return sum > 0 ? (double)(total / sum) : 0;
}

static void attention(Tally *t, Sdpa how, int64_t H, int64_t K, int64_t S)
{
    Bench *b = bench_new();
    b->T = 6;
    how.site = bench_name(b, "attention.drop");
    Shape q = bench_shape(4, DIM_B, DIM_T, DIM(H), DIM(4));
    Shape k = bench_shape(4, DIM_B, DIM(S), DIM(K), DIM(4));
    Shape v = bench_shape(4, DIM_B, DIM(S), DIM(K), DIM(3));
    Val vq = bench_param(b, &q, -2, 2), vk = bench_param(b, &k, -2, 2);
    Val vv = bench_param(b, &v, -2, 2), y = ir_sdpa(b->g, vq, vk, vv, &how);
    Val lse = ir_op(b->g, OP_AUX, y, 0, 0, (Attr){0}, NULL);
    ir_output(b->g, bench_name(b, "y"), y);
    ir_output(b->g, bench_name(b, "lse"), lse);
    Tensor **r = bench_run(b, b->g);
    Heads h = {
        b->B, b->T, S, H, K, 4, 3, bench_tensor(b, vq)->real, bench_tensor(b, vk)->real, bench_tensor(b, vv)->real};
    double worst = 0, want_lse;
    for (int64_t p = 0; r && p < r[0]->size; p++) {
        int64_t c = p % 3, head = p / 3 % H, at = p / 3 / H % b->T, batch = p / 3 / H / b->T;
        double want = naive_attention(&h, &how, batch, at, head, c, &want_lse);
        worst = fmax(worst, fabs(r[0]->real[p] - want));
        if (want_lse != r[1]->real[p / 3])
            worst = fmax(worst, fabs(r[1]->real[p / 3] - want_lse));
    }
    check(t, r && worst < 1e-12, "attention H=%d K=%d S=%d window=%d: off by %g", (int)H, (int)K, (int)S,
          (int)how.window, worst);
    bench_free(b);
}

static void all_attention(Tally *t)
{
    for (int k = 0; k < 32; k++) {
        Sdpa how = {.causal = k & 1,
                    .scale = 0.6,
                    .softcap = k & 2 ? 1.7 : 0,
                    .dropout = k & 4 ? 0.3 : 0,
                    .window = k & 8 ? 3 : 0};
        attention(t, how, k & 16 ? 6 : 4, k & 16 ? 2 : 4, k & 16 ? 9 : 6);
    }
    attention(t, (Sdpa){.scale = 1, .window = 2}, 2, 1, 3); /* queries without any key */
}

/* What a query does not see does not matter, be it far larger or no number: a softmax over the others is the definition. */
static void hidden_keys(Tally *t)
{
    static const double keys[3] = {1, 2000, NAN}, values[3] = {3, 5, NAN};
    Bench *b = bench_new();
    Shape s = bench_shape(4, DIM(1), DIM(3), DIM(1), DIM(1));
    Val q = bench_param(b, &s, 1, 1), k = bench_param(b, &s, 1, 1), v = bench_param(b, &s, 1, 1);
    for (int i = 0; i < 3; i++)
        bench_tensor(b, q)->real[i] = 1, bench_tensor(b, k)->real[i] = keys[i], bench_tensor(b, v)->real[i] = values[i];
    Val y = ir_sdpa(b->g, q, k, v, &(Sdpa){.causal = true, .scale = 1});
    ir_output(b->g, bench_name(b, "y"), y);
    ir_output(b->g, bench_name(b, "lse"), ir_op(b->g, OP_AUX, y, 0, 0, (Attr){0}, NULL));
    Tensor **r = bench_run(b, b->g);
    check(t, r && r[0]->real[0] == 3 && r[1]->real[0] == 1, "the first query sees %g, lse %g", r ? r[0]->real[0] : NAN,
          r ? r[1]->real[0] : NAN);
    check(t, r && r[0]->real[1] == 5 && r[1]->real[1] == 2000, "the second query sees %g, lse %g",
          r ? r[0]->real[1] : NAN, r ? r[1]->real[1] : NAN);
    check(t, r && isnan(r[0]->real[2]) && isnan(r[1]->real[2]), "the third query sees no NaN");
    bench_free(b);
}

/* ---- single operators ---- */

/* Evaluates op on a vector; the result lives until the bench is freed. */
static Tensor *on_vector(Bench *b, const Attr *a, Op op, const double *x, int64_t n)
{
    Shape s = bench_shape(1, DIM(n));
    Val v = bench_param(b, &s, -1, 1);
    memcpy(bench_tensor(b, v)->real, x, (size_t)n * sizeof *x);
    b->g->out.n = 0;
    ir_output(b->g, bench_name(b, "y"), ir_node(b->g, op, &v, 1, a, NULL));
    Tensor **r = bench_run(b, b->g);
    if (!r)
        exit(1);
    return r[0];
}

static void expect_vector(Tally *t, Op op, const Attr *a, const double *x, const double *want, int64_t n)
{
    Bench *b = bench_new();
    Tensor *y = on_vector(b, a, op, x, n);
    for (int64_t k = 0; k < n; k++)
        check(t, near(y->real[k], want[k]) || (isnan(want[k]) && isnan(y->real[k])), "%s(%g) = %.17g instead of %.17g",
              op_info(op)->name, x[k], y->real[k], want[k]);
    bench_free(b);
}

/* Each number of a type is itself, what lies between two goes to the nearer one, and what lies in the middle to the one whose last bit is 0:
 * of all numbers that 16 bits can be. */
static void rounded_between(Tally *t, Half type, double (*of)(uint16_t))
{
    enum { CODES = 1 << 15, POINTS = 4 };
    const HalfInfo *info = half_info(type);
    double *x = malloc(POINTS * CODES * sizeof *x), *want = malloc(POINTS * CODES * sizeof *want);
    int64_t n = 0, wrong = 0;
    for (unsigned c = 0; isfinite(of((uint16_t)c)); c++) {
        double low = of((uint16_t)c), high = of((uint16_t)(c + 1)), step = low - (c ? of((uint16_t)(c - 1)) : 0);
        double middle = low + (isfinite(high) ? high - low : step) / 2;
        const double at[POINTS] = {low, nextafter(middle, low), middle, nextafter(middle, INFINITY)};
        high = info->saturates && !isfinite(high) ? low : high;
        const double to[POINTS] = {low, low, c & 1 ? high : low, high};
        for (int i = 0; i < POINTS; i++, n++) {
            x[n] = n & 4 ? -at[i] : at[i];
            want[n] = n & 4 ? -to[i] : to[i];
        }
    }
    Bench *b = bench_new();
    const Tensor *y = on_vector(b, &(Attr){.i = type}, OP_ROUND_TO, x, n);
    for (int64_t i = 0; i < n; i++)
        wrong += y->real[i] != want[i];
    check(t, n > POINTS * 3 << (8 * info->bytes - 3) && !wrong, "%lld of %lld roundings to %s are wrong",
          (long long)wrong, (long long)n, half_word(type));
    bench_free(b);
    free(x);
    free(want);
}

static void roundings(Tally *t)
{
    double x[] = {1, 1.00390625, 1.01171875, -3.14159265, 3.4e38, 1e-40, 0, 1e30, -3.4e38, -INFINITY, NAN};
    double bf16[] = {1, 1, 1.015625, -3.140625, INFINITY, 0x1.16p-133, 0, 0x1.94p99, -INFINITY, -INFINITY, NAN};
    expect_vector(t, OP_ROUND_TO, &(Attr){.i = 16}, x, bf16, COUNT_OF(x));
    double y[] = {1, 1.00048828125, 65504, 65519, 65520, 5.9604644775390625e-8, 2e-8, -0.1, -65519, -65520};
    double f16[] = {1, 1, 65504, 65504, INFINITY, 5.9604644775390625e-8, 0, -0.0999755859375, -65504, -INFINITY};
    expect_vector(t, OP_ROUND_TO, &(Attr){.i = 17}, y, f16, COUNT_OF(y));
    rounded_between(t, HALF_BF16, of_bf16);
    rounded_between(t, HALF_FP16, of_fp16);
    rounded_between(t, HALF_FP8_E4M3, of_e4m3);
    rounded_between(t, HALF_FP8_E5M2, of_e5m2);
    /* as PyTorch 2.15 has them: E4M3 saturates */
    double z[] = {463.9,   464,      480,           INFINITY, -465,  -INFINITY, NAN,
                  0x1p-10, 0x1.8p-9, 0x1.00001p-10, 61439,    61440, 0x1p-17};
    double e4m3[] = {448, 448, 448, 448, -448, -448, NAN, 0, 0x1p-8, 0x1p-9, 448, 448, 0};
    double e5m2[] = {448, 448, 512, INFINITY, -448, -INFINITY, NAN, 0x1p-10, 0x1.8p-9, 0x1p-10, 57344, INFINITY, 0};
    expect_vector(t, OP_ROUND_TO, &(Attr){.i = HALF_FP8_E4M3}, z, e4m3, COUNT_OF(z));
    expect_vector(t, OP_ROUND_TO, &(Attr){.i = HALF_FP8_E5M2}, z, e5m2, COUNT_OF(z));
}

/* Rows of tables from `start` on in the first, one later in each further one, wherever that is: written where a mark is on, and read. */
static void table_rows(Tally *t, int64_t start)
{
    enum { TABLES = 3, ROWS = 5, NEW = 2, SIZE = 4 };
    Bench *b = bench_new();
    Graph *g = b->g;
    Shape tables = bench_shape(3, DIM(TABLES), DIM(ROWS), DIM(SIZE)),
          more = bench_shape(3, DIM(TABLES), DIM(NEW), DIM(SIZE));
    Shape each = bench_shape(1, DIM(TABLES));
    Val table = bench_param(b, &tables, -1, 1), x = bench_param(b, &more, -1, 1), on = bench_index(b, &each, 0, 2);
    Val from = ir_binary(g, OP_ADD, ir_iota(g, &each, 0), ir_int(g, start)), put = ir_put(g, table, x, from, on);
    ir_output(g, bench_name(b, "put"), put);
    ir_output(g, bench_name(b, "taken"), ir_take(g, table, from, DIM(NEW), 7));
    Val whole = ir_iota(g, &tables, 1);
    ir_output(g, bench_name(b, "row numbers"), ir_take(g, whole, from, DIM(NEW), -3));
    for (int i = 0; i < TABLES; i++)
        bench_tensor(b, on)->integer[i] = i != 1;
    Tensor **r = bench_run(b, g);
    const double *was = bench_tensor(b, table)->real, *rows = bench_tensor(b, x)->real;
    size_t wrong = 0;
    for (int64_t i = 0; r && i < TABLES * ROWS * SIZE; i++) {
        int64_t of = i / SIZE / ROWS, row = i / SIZE % ROWS - start - of;
        bool is_new = of != 1 && row >= 0 && row < NEW;
        wrong += r[0]->real[i] != (is_new ? rows[(of * NEW + row) * SIZE + i % SIZE] : was[i]);
    }
    for (int64_t i = 0; r && i < TABLES * NEW * SIZE; i++) {
        int64_t of = i / SIZE / NEW, row = start + of + i / SIZE % NEW;
        bool inside = row >= 0 && row < ROWS;
        wrong += r[1]->real[i] != (inside ? was[(of * ROWS + row) * SIZE + i % SIZE] : 7);
        wrong += r[2]->integer[i] != (inside ? row : -3);
    }
    check(t, r && !wrong, "rows of tables from %d on: %zu numbers are wrong", (int)start, wrong);
    bench_free(b);
}

static void extremes(Tally *t)
{
    double x[] = {-1000, 1000, 0, -40};
    expect_vector(t, OP_SIGMOID, NULL, x, (double[]){0, 1, 0.5, exp(-40)}, 4);
    expect_vector(t, OP_SOFTPLUS, NULL, x, (double[]){0, 1000, log(2), exp(-40)}, 4);
    expect_vector(t, OP_GELU, NULL, x, (double[]){0, 1000, 0, 0}, 3);
    expect_vector(t, OP_RELU, NULL, (double[]){NAN, -1, 2}, (double[]){NAN, 0, 2}, 3);
    double half[] = {-2.5, -1.5, -0.2, 0.5, 2.5, 2.6};
    expect_vector(t, OP_CEIL, NULL, half, (double[]){-2, -1, 0, 1, 3, 3}, 6);
    expect_vector(t, OP_ROUND, NULL, half, (double[]){-2, -2, 0, 0, 2, 3}, 6); /* ties to even */
    expect_vector(t, OP_SIGN, NULL, (double[]){-3, 0, 5}, (double[]){-1, 0, 1}, 3);
    double z[] = {0.5, -1.5, 3};
    double erf_form[] = {0.5 * 0.5 * (1 + erf(0.5 / sqrt(2))), -1.5 * 0.5 * erfc(1.5 / sqrt(2)),
                         3 * 0.5 * erfc(-3 / sqrt(2))};
    expect_vector(t, OP_GELU, NULL, z, erf_form, 3);
    expect_vector(t, OP_SILU, NULL, z, (double[]){0.5 / (1 + exp(-0.5)), -1.5 / (1 + exp(1.5)), 3 / (1 + exp(-3))}, 3);
    expect_vector(t, OP_CUMSUM, &(Attr){.j = 1}, z, (double[]){2, 1.5, 3}, 3);
    expect_vector(t, OP_CUMSUM, &(Attr){.j = 0}, z, (double[]){0.5, -1, 2}, 3);
    expect_vector(t, OP_SHIFT, &(Attr){.j = 1, .x = 9}, z, (double[]){9, 0.5, -1.5}, 3);
    expect_vector(t, OP_SHIFT, &(Attr){.j = -1, .x = 9}, z, (double[]){-1.5, 3, 9}, 3);
    expect_vector(t, OP_ROLL, &(Attr){.j = 4}, z, (double[]){3, 0.5, -1.5}, 3);
}

static void integers(Tally *t)
{
    Bench *b = bench_new();
    Graph *g = b->g;
    Tensor *top = on_vector(b, &(Attr){.j = 4}, OP_TOP_K, (double[]){2, 7, NAN, 7, -1, 2}, 6);
    const int64_t want[4] = {1, 3, 0, 5};
    for (int k = 0; k < 4; k++)
        check(t, top->integer[k] == want[k], "top_k: place %d is %d", k, (int)top->integer[k]);
    static const int64_t cases[][3] = {{7, 3, 1},    {-7, 3, 2}, {7, -3, -2},
                                       {-7, -3, -1}, {5, 0, 0},  {INT64_C(1) << 52, -1, 0}};
    for (size_t k = 0; k < COUNT_OF(cases); k++) {
        g->out.n = 0;
        ir_output(g, bench_name(b, "m"), ir_binary(g, OP_MOD, ir_int(g, cases[k][0]), ir_int(g, cases[k][1])));
        Tensor **r = bench_run(b, g);
        check(t, r && r[0]->integer[0] == cases[k][2], "%d mod %d = %d", (int)cases[k][0], (int)cases[k][1],
              r ? (int)r[0]->integer[0] : -99);
    }
    bench_free(b);
}

/* An integer beside a real number becomes one, on either side, and nothing else does. */
static void mixed_types(Tally *t)
{
    for (int k = 0; k < 8; k++) {
        Bench *b = bench_new();
        Graph *g = b->g;
        bool whole_a = k & 1, whole_b = k & 2, first = k & 4;
        Val a = whole_a ? ir_int(g, 7) : ir_fill(g, 7.5), c = whole_b ? ir_int(g, 2) : ir_fill(g, 2.5);
        Val mask = ir_binary(g, OP_LT, ir_int(g, first ? 0 : 1), ir_int(g, 1)), where = ir_where(g, mask, a, c);
        Val sum = ir_binary(g, OP_ADD, a, c);
        bool whole = whole_a && whole_b;
        double want = first ? whole_a ? 7 : 7.5 : whole_b ? 2 : 2.5, added = (whole_a ? 7 : 7.5) + (whole_b ? 2 : 2.5);
        check(t, (node_at(g, where)->dtype == DT_INT) == whole && (node_at(g, sum)->dtype == DT_INT) == whole,
              "types %d", k);
        ir_output(g, bench_name(b, "where"), where);
        ir_output(g, bench_name(b, "sum"), sum);
        Tensor **r = bench_run(b, g);
        check(t, r && (whole ? (double)r[0]->integer[0] : r[0]->real[0]) == want, "where of types %d", k);
        check(t, r && (whole ? (double)r[1]->integer[0] : r[1]->real[0]) == added, "sum of types %d", k);
        bench_free(b);
    }
}

/* Ties share a gradient: 1 / ties each for amax, half each for min and max. */
static void ties(Tally *t)
{
    Bench *b = bench_new();
    Graph *g = b->g;
    Shape s = bench_shape(1, DIM(4));
    Val x = bench_param(b, &s, -1, 1), y = bench_param(b, &s, -1, 1), d[2];
    memcpy(bench_tensor(b, x)->real, (double[]){1, 3, 3, 2}, 4 * sizeof(double));
    memcpy(bench_tensor(b, y)->real, (double[]){1, 4, 3, 1}, 4 * sizeof(double));
    Val top = ir_max(g, x, 1, false), both = ir_sum(g, ir_binary(g, OP_MAX, x, y), 1, false);
    graph_gradient(g, top, &x, 1, d);
    ir_output(g, bench_name(b, "a"), d[0]);
    graph_gradient(g, both, (Val[]){x, y}, 2, d);
    ir_output(g, bench_name(b, "b"), d[0]);
    ir_output(g, bench_name(b, "c"), d[1]);
    Val rounded = ir_node(g, OP_ROUND_TO, &x, 1, &(Attr){.i = 16}, NULL);
    graph_gradient(g, ir_sum(g, rounded, 1, false), &x, 1, d);
    ir_output(g, bench_name(b, "d"), d[0]);
    static const double want[4][4] = {{0, 0.5, 0.5, 0}, {0.5, 0, 0.5, 1}, {0.5, 1, 0.5, 0}, {1, 1, 1, 1}};
    Tensor **r = bench_run(b, g);
    for (int i = 0; i < 4; i++)
        for (int k = 0; k < 4; k++)
            check(t, r && r[i]->real[k] == want[i][k], "tie %d: gradient %d is %g", i, k, r ? r[i]->real[k] : NAN);
    graph_gradient(g, ir_sum(g, ir_stop(g, x, STOP_GRADIENT), 1, false), &x, 1, d);
    check(t, d[0] == 0, "stop_gradient has a gradient");
    Val power = ir_binary(g, OP_POW, ir_scale(g, x, 0), ir_fill(g, 2));
    graph_gradient(g, ir_sum(g, power, 1, false), &x, 1, d);
    g->out.n = 0;
    ir_output(g, bench_name(b, "p"), d[0]);
    r = bench_run(b, g);
    check(t, r && r[0]->real[0] == 0, "the gradient of x ^ 2 at 0 is %g", r ? r[0]->real[0] : NAN);
    bench_free(b);
}

/* The facts f(0) and f'(0) of ops.def. */
static void facts_at_zero(Tally *t)
{
    for (int op = OP_NONE + 1; op < OP_COUNT; op++) {
        const OpInfo *info = op_info((Op)op);
        if (info->class != CLASS_UNARY || op == OP_TO_REAL || op == OP_TO_INT)
            continue;
        Bench *b = bench_new();
        Attr a = {.i = op == OP_ROUND_TO ? 16 : 0};
        double y = on_vector(b, &a, (Op)op, (double[]){0}, 1)->real[0];
        if (info->zero != ZERO_UNKNOWN)
            check(t, (y == 0) == (info->zero == ZERO_YES), "%s(0) = %g", info->name, y);
        Val x = b->params.v[0], v = ir_node(b->g, (Op)op, &x, 1, &a, NULL), d;
        graph_gradient(b->g, ir_sum(b->g, v, 1, false), &x, 1, &d);
        b->g->out.n = 0;
        double slope = 0;
        if (d) {
            ir_output(b->g, bench_name(b, "d"), d);
            slope = bench_run(b, b->g)[0]->real[0];
        }
        if (info->slope0 != ZERO_UNKNOWN)
            check(t, (slope != 0) == (info->slope0 == ZERO_YES), "%s'(0) = %g", info->name, slope);
        bench_free(b);
    }
}

/* ---- extents, FLOPs, run-time scalars ---- */

static const char *dim_text(Bench *b, Dim d)
{
    Buf out = buf_new(b->ctx->program);
    dim_print(&out, d);
    return out.s;
}

static void extents(Tally *t)
{
    Bench *b = bench_new();
    Dim d, bt = {4, 1, 1}, big = DIM((int64_t)1 << 40);
    check(t,
          !strcmp(dim_text(b, bt), "4*B*T") && !strcmp(dim_text(b, DIM_B), "B") && !strcmp(dim_text(b, DIM(1)), "1") &&
              !strcmp(dim_text(b, (Dim){1, 2, 0}), "B^2"),
          "extents print wrongly");
    check(t, dim_at(bt, 3, 5) == 60 && dim_at((Dim){1, 15, 15}, 1 << 20, 1 << 20) == -1, "dim_at");
    check(t, !dim_mul(big, big, &d), "an overflow is not noticed");
    check(t, dim_mul(DIM(0), DIM_T, &d) && dim_eq(d, DIM(0)), "0 * T is not 0");
    check(t, dim_div(bt, (Dim){2, 0, 1}, &d) && dim_eq(d, (Dim){2, 1, 0}), "4BT / 2T is not 2B");
    check(t, !dim_div(bt, DIM(3), &d) && !dim_div(DIM_B, DIM_T, &d) && !dim_div(bt, DIM(0), &d),
          "a division that is not exact");
    Shape x = bench_shape(3, DIM_B, DIM(1), DIM(4)), y = bench_shape(2, DIM_T, DIM(4)), s;
    check(t, shape_broadcast(&x, &y, &s) && s.rank == 3 && dim_eq(s.d[1], DIM_T), "broadcast");
    y.d[1] = DIM(5);
    check(t, !shape_broadcast(&x, &y, &s), "shapes that do not broadcast do");
    Shape q = bench_shape(4, DIM_B, DIM_T, DIM(4), DIM(8)), k = bench_shape(4, DIM_B, DIM_T, DIM(2), DIM(8));
    Val vq = bench_param(b, &q, -1, 1), vk = bench_param(b, &k, -1, 1);
    Val a = ir_sdpa(b->g, vq, vk, vk, &(Sdpa){.causal = true, .scale = 1});
    Dim flops = op_flops(b->g, a); /* 2 (8 + 8) for each of 4 heads and T * T pairs */
    check(t, dim_eq(flops, (Dim){128, 1, 2}), "attention has %s FLOPs", dim_text(b, flops));
    Shape w = bench_shape(2, DIM(8), DIM(5));
    flops = op_flops(b->g, ir_matmul(b->g, vq, bench_param(b, &w, -1, 1)));
    check(t, dim_eq(flops, (Dim){320, 1, 1}), "a product has %s FLOPs", dim_text(b, flops));
    bench_free(b);
}

static void host_scalars(Tally *t)
{
    static const struct {
        const char *text;
        double value;
    } cases[] = {
        {"(step * 2)", 14},
        {"min(step, 3)", 3},
        {"((step + 1) / (step - 3))", 2},
        {"if((step < 5), 1, -0.25)", -0.25},
        {"(step mod 4)", 3},
        {"cos((step - 7))", 1},
        {"not((step == 7))", 0},
        {"((step <= 7) and (epoch or 0))", 0},
        {"(train.loss + 1)", NAN},
        {"round(exp(log(step)))", 7},
        {"(step ^ -0)", 1},
        {"max(neg(step), -inf)", -7},
        {"(1e-300 * step)", 7e-300},
        {"(step mod -4)", -1},
        {"(neg(step) mod 4)", 1},
    };
    double vars[HV_COUNT] = {[HV_STEP] = 7, [HV_LENGTH] = 100, [HV_PROGRESS] = 0.07, [HV_TRAIN_LOSS] = NAN};
    Bench *b = bench_new();
    for (size_t k = 0; k < COUNT_OF(cases); k++) {
        const char *p = cases[k].text;
        const HostExpr *e = host_read(b->ctx->program, &p);
        Buf out = buf_new(b->ctx->program);
        check(t, e && *p == 0, "%s does not read", cases[k].text);
        if (!e)
            continue;
        host_print(&out, e);
        double have = host_eval(e, vars);
        check(t, !strcmp(out.s, cases[k].text), "%s prints as %s", cases[k].text, out.s);
        check(t, near(have, cases[k].value) || (isnan(have) && isnan(cases[k].value)), "%s = %g", cases[k].text, have);
    }
    static const char *const wrong[] = {"",       "(step",  "(step ? 2)", "sin(step", "steps",
                                        "(1 + )", "max(1)", "()",         "if(1, 2)"};
    for (size_t k = 0; k < COUNT_OF(wrong); k++) {
        const char *p = wrong[k];
        check(t, !host_read(b->ctx->program, &p), "`%s` reads", wrong[k]);
    }
    double value;
    const HostExpr *two = host_const(b->ctx->program, 2), *five;
    five = host_op(b->ctx->program, HO_ADD, two,
                   host_op(b->ctx->program, HO_MUL, two, host_const(b->ctx->program, 1.5), NULL), NULL);
    check(t, host_is_const(five, &value) && value == 5, "constants are not folded");
    bench_free(b);
}

/* A value is forgotten after its last use: a long chain needs the memory of a few links. */
static void memory(Tally *t)
{
    enum { LINKS = 100, SIZE = 100000 };
    Bench *b = bench_new();
    Shape s = bench_shape(1, DIM(SIZE));
    Val x = bench_input(b, &s, -1, 1);
    for (int k = 0; k < LINKS; k++)
        x = ir_unary(b->g, OP_NEG, x);
    ir_output(b->g, bench_name(b, "y"), ir_sum(b->g, x, 1, false));
    size_t before = b->ctx->peak_bytes = b->ctx->bytes;
    Tensor **r = bench_run(b, b->g);
    size_t used = b->ctx->peak_bytes - before;
    check(t, r && used < 3 * SIZE * sizeof(double), "%d tensors in a chain take %zu bytes", LINKS, used);
    check(t, b->ctx->bytes - before < SIZE, "%zu bytes stay", b->ctx->bytes - before);
    bench_free(b);
}

int main(void)
{
    Tally t = {0};
    known_answers(&t);
    distributions(&t);
    normals(&t);
    rounded_normals(&t);
    normals_between(&t);
    cross_entropy(&t, 0, -1, 3);
    cross_entropy(&t, 0.1, -1, 3);
    cross_entropy(&t, 0.1, 3, 30);
    stable_cross_entropy(&t);
    all_attention(&t);
    hidden_keys(&t);
    roundings(&t);
    extremes(&t);
    for (int64_t start = -3; start <= 6; start++)
        table_rows(&t, start);
    for (int64_t start = -3; start <= 6; start++)
        table_rows(&t, start);
    integers(&t);
    mixed_types(&t);
    ties(&t);
    facts_at_zero(&t);
    extents(&t);
    host_scalars(&t);
    memory(&t);
    return tally_end(&t, "values");
}
