/* op_attention.c - softmax attention and its gradient.
 *
 * In:  q [B, T, H, d], k [B, S, K, d], v [B, S, K, dv]; head h of q reads head h / (H / K) of
 * k, v.
 * Out: [B, T, H, dv]; aux: the log-sum-exp of each query's scores, [B, T, H].
 * A fourth input, an integer per sequence, [B], is the position of the first query among the keys; without
 * it that is 0. Or it is an integer per query, [B, T]: the first key that the query sees.
 * The one idea: score = scale q.k, then softcap * tanh(score / softcap), then the mask, then
 * softmax, then dropout of the probabilities; a query without any key gives 0. The gradient
 * computes the probabilities again from the log-sum-exp, and the dropped ones again from the
 * site: element ((b H + h) T + t) S + u of the stream is kept when it is not below the rate.
 */
#include "op.h"

#include <math.h>

/* ---- shapes ---- */

static const char *heads_fit(const Ask *q)
{
    const Shape *sq = ask_shape(q, 0), *sk = ask_shape(q, 1), *sv = ask_shape(q, 2);
    if (sq->rank != 4 || sk->rank != 4 || sv->rank != 4)
        return "q, k and v have four axes";
    for (size_t k = 0; k < q->n_in; k++)
        if (ask_dtype(q, k) != DT_REAL && k != (q->op == OP_SDPA ? 3 : 6))
            return "the inputs are not real";
    if (!dim_eq(sq->d[0], sk->d[0]) || !dim_eq(sq->d[0], sv->d[0]) || !dim_eq(sk->d[1], sv->d[1]) ||
        !dim_eq(sk->d[2], sv->d[2]))
        return "the batch, the keys or the heads differ";
    if (!dim_eq(sq->d[3], sk->d[3]) || !dim_static(sq->d[3]) || !dim_static(sv->d[3]))
        return "q and k have different or symbolic head sizes";
    if (!dim_static(sq->d[2]) || !dim_static(sk->d[2]) || sk->d[2].n < 1 || sq->d[2].n % sk->d[2].n != 0)
        return "the heads of q are not a multiple of those of k";
    const Attr *a = q->a;
    if (a->i < 0 || a->i > 1 || a->j < 0 || !(a->y >= 0) || !(a->z >= 0 && a->z < 1))
        return "i, the window, the softcap or the dropout is out of range";
    return a->z > 0 && !a->site ? "the site is missing" : NULL;
}

static Shape output_shape(const Shape *q, const Shape *v)
{
    Shape s = *q;
    s.d[3] = v->d[3];
    return s;
}

static Shape lse_shape(const Shape *q)
{
    Shape s = *q;
    s.rank = 3;
    s.d[3] = (Dim){0};
    return s;
}

/* An integer per query, [B, T]. */
static bool is_oldest(const Ask *q, size_t k)
{
    const Shape *s = ask_shape(q, k), *sq = ask_shape(q, 0);
    return ask_dtype(q, k) == DT_INT && s->rank == 2 && dim_eq(s->d[0], sq->d[0]) && dim_eq(s->d[1], sq->d[1]);
}

bool sdpa_has_oldest(const Graph *g, const Node *n)
{
    size_t k = n->op == OP_SDPA ? 3 : 6;
    return n->n_in > k && shape_of(g, n->in[k])->rank == 2;
}

const char *shape_SDPA(const Ask *q, Shape *out, DType *dtype)
{
    const char *wrong = q->n_in == 3 || q->n_in == 4 ? NULL : "the number of inputs is wrong";
    *dtype = DT_REAL;
    if (!wrong)
        wrong = heads_fit(q);
    bool first = !wrong && q->n_in == 4 && !is_oldest(q, 3);
    if (first && !ask_is_each(q, 3))
        wrong = "the fourth input is an integer neither of each sequence nor of each query";
    if (!wrong && first && q->a->z > 0)
        wrong = "attention at a position has no dropout";
    if (!wrong)
        *out = output_shape(ask_shape(q, 0), ask_shape(q, 2));
    return wrong;
}

const char *shape_SDPA_GRAD(const Ask *q, Shape *out, DType *dtype)
{
    const char *wrong = q->n_in == 6 || q->n_in == 7 ? NULL : "the number of inputs is wrong";
    *dtype = DT_REAL;
    if (!wrong)
        wrong = heads_fit(q);
    if (wrong)
        return wrong;
    if (q->n_in == 7 && !is_oldest(q, 6))
        return "the first keys are not one integer per query";
    Shape result = output_shape(ask_shape(q, 0), ask_shape(q, 2)), lse = lse_shape(ask_shape(q, 0));
    if (!shape_eq(ask_shape(q, 3), &result) || !shape_eq(ask_shape(q, 5), &result) || !shape_eq(ask_shape(q, 4), &lse))
        return "out, lse or dout has another shape";
    *out = *ask_shape(q, 0);
    return NULL;
}

const char *op_aux_shape(const Graph *g, Val producer, int64_t which, Shape *out)
{
    const Node *n = node_at(g, producer);
    if (which < 0 || which >= op_aux_count((Op)n->op))
        return "the node has no such further result";
    if (n->op == OP_SDPA)
        *out = lse_shape(shape_of(g, n->in[0]));
    else
        *out = *shape_of(g, n->in[1 + which]);
    return NULL;
}

const char *shape_AUX(const Ask *q, Shape *out, DType *dtype)
{
    *dtype = DT_REAL;
    return op_aux_shape(q->g, q->in[0], q->a->i, out);
}

/* ---- gradients ---- */

void grad_SDPA(Graph *g, Val v, Val d, const bool *want, Val *din)
{
    const Node *n = node_at(g, v);
    bool oldest = sdpa_has_oldest(g, n);
    if (n->n_in > 3 && !oldest)
        vwn_bug(g->ctx, "%%%u: attention at a position has no gradient", (unsigned)v);
    Attr a = n->a;
    Val in[7] = {n->in[0], n->in[1], n->in[2], v, 0, d, oldest ? n->in[3] : 0};
    in[4] = ir_op(g, OP_AUX, v, 0, 0, (Attr){.i = 0}, NULL);
    Val dq = ir_node(g, OP_SDPA_GRAD, in, oldest ? 7 : 6, &a, NULL);
    if (want[0])
        din[0] = dq;
    for (int k = 1; k <= 2; k++)
        if (want[k])
            din[k] = ir_op(g, OP_AUX, dq, 0, 0, (Attr){.i = k - 1}, NULL);
}

void grad_SDPA_GRAD(Graph *g, Val v, Val d, const bool *want, Val *din)
{
    (void)d, (void)want, (void)din;
    vwn_bug(g->ctx, "%%%u: the gradient of attention has no gradient itself", (unsigned)v);
}

void grad_AUX(Graph *g, Val v, Val d, const bool *want, Val *din)
{
    (void)d, (void)want, (void)din;
    vwn_bug(g->ctx, "%%%u: a further result has no gradient", (unsigned)v);
}

/* ---- values ---- */

typedef struct Attention {
    int64_t B, T, H, S, K, d, dv; /* extents */
    const Attr *a;
    uint64_t key, step, drawn; /* dropout */
    const int64_t *first;      /* [B], position of query 0 among the keys, or NULL */
    const int64_t *oldest;     /* [B, T], the first key that a query sees, or NULL */
} Attention;

static Attention attention_of(const OpEval *e)
{
    const Tensor *q = e->in[0], *k = e->in[1], *v = e->in[2];
    Attention at = {q->d[0],  q->d[1], q->d[2],      k->d[1],  k->d[2], q->d[3], v->d[3],
                    &e->n->a, 0,       e->run->step, e->drawn, NULL,    NULL};
    size_t more = e->n->op == OP_SDPA ? 3 : 6; /* a further input stands there */
    if (e->n->n_in > more && e->in[more]->rank == 2)
        at.oldest = e->in[more]->integer;
    else if (e->n->n_in > more)
        at.first = e->in[3]->integer;
    if (at.a->z > 0)
        at.key = philox_key(e->run->seed, at.a->site);
    return at;
}

/* The row of a [B, rows, heads, size] tensor. */
static int64_t row_at(int64_t b, int64_t row, int64_t head, int64_t rows, int64_t heads, int64_t size)
{
    return ((b * rows + row) * heads + head) * size;
}

static bool visible(const Attention *at, int64_t b, int64_t t, int64_t u)
{
    bool causal = at->a->i & 1;
    int64_t window = at->a->j;
    if (at->oldest && u < at->oldest[b * at->T + t])
        return false;
    t += at->first ? at->first[b] : 0;
    if (causal && u > t)
        return false;
    return !window || (t - u < window && u - t < window);
}

static double dot(const double *a, const double *b, int64_t n)
{
    double sum = 0;
    for (int64_t k = 0; k < n; k++)
        sum += a[k] * b[k];
    return sum;
}

/* The score after the softcap. */
static double score_of(const Attention *at, const double *q, const double *k)
{
    double s = at->a->x * dot(q, k, at->d);
    return at->a->y > 0 ? at->a->y * tanh(s / at->a->y) : s;
}

/* What dropout multiplies a probability with: 0 or 1 / (1 - rate). */
static double kept(const Attention *at, int64_t b, int64_t h, int64_t t, int64_t u)
{
    if (at->a->z <= 0)
        return 1;
    uint64_t index = at->drawn + (uint64_t)(((b * at->H + h) * at->T + t) * at->S + u);
    return philox_uniform(at->key, at->step, index) < at->a->z ? 0 : 1 / (1 - at->a->z);
}

/* One query: scores into `s`, then out[dv] and the log-sum-exp. */
static double attend(const Attention *at, const OpEval *e, int64_t b, int64_t t, int64_t h, double *s, double *out)
{
    int64_t hk = h / (at->H / at->K);
    const double *q = e->in[0]->real + row_at(b, t, h, at->T, at->H, at->d);
    double top = -INFINITY, sum = 0;
    for (int64_t u = 0; u < at->S; u++) {
        if (!visible(at, b, t, u))
            continue;
        s[u] = score_of(at, q, e->in[1]->real + row_at(b, u, hk, at->S, at->K, at->d));
        if (s[u] > top || isnan(s[u]))
            top = s[u];
    }
    for (int64_t u = 0; u < at->S; u++)
        if (visible(at, b, t, u))
            sum += s[u] = exp(s[u] - top);
    for (int64_t u = 0; u < at->S; u++) {
        double p = visible(at, b, t, u) ? s[u] / sum * kept(at, b, h, t, u) : 0;
        const double *v = e->in[2]->real + row_at(b, u, hk, at->S, at->K, at->dv);
        for (int64_t c = 0; c < at->dv && p != 0; c++)
            out[c] += p * v[c];
    }
    return top + log(sum); /* -inf without any key */
}

void eval_SDPA(const OpEval *e)
{
    Attention at = attention_of(e);
    double *s = ctx_alloc(e->ctx, (size_t)(at.S + 1) * sizeof *s);
    for (int64_t b = 0; b < at.B; b++)
        for (int64_t t = 0; t < at.T; t++)
            for (int64_t h = 0; h < at.H; h++) {
                int64_t row = row_at(b, t, h, at.T, at.H, 1);
                double lse = attend(&at, e, b, t, h, s, e->out->real + row * at.dv);
                e->aux[0]->real[row] = lse;
            }
    ctx_release(e->ctx, s);
}

/* One query: P = exp(s - lse), dP = (dout . v) kept, ds = P (dP - dout . out), then through the
 * softcap and the scale into dq, dk, dv. */
static void attend_back(const Attention *at, const OpEval *e, int64_t b, int64_t t, int64_t h)
{
    int64_t hk = h / (at->H / at->K), row = row_at(b, t, h, at->T, at->H, 1);
    const double *q = e->in[0]->real + row * at->d, *dout = e->in[5]->real + row * at->dv;
    double *dq = e->out->real + row * at->d, lse = e->in[4]->real[row];
    double mean = dot(dout, e->in[3]->real + row * at->dv, at->dv);
    for (int64_t u = 0; u < at->S; u++) {
        if (!visible(at, b, t, u))
            continue;
        int64_t key = row_at(b, u, hk, at->S, at->K, 1);
        const double *k = e->in[1]->real + key * at->d, *v = e->in[2]->real + key * at->dv;
        double s = score_of(at, q, k), p = exp(s - lse), keep = kept(at, b, h, t, u);
        double ds = p * (keep * dot(dout, v, at->dv) - mean);
        if (at->a->y > 0)
            ds *= 1 - s / at->a->y * (s / at->a->y);
        double *dk = e->aux[0]->real + key * at->d, *dv = e->aux[1]->real + key * at->dv;
        for (int64_t c = 0; c < at->d; c++) {
            dq[c] += at->a->x * ds * k[c];
            dk[c] += at->a->x * ds * q[c];
        }
        for (int64_t c = 0; c < at->dv; c++)
            dv[c] += p * keep * dout[c];
    }
}

void eval_SDPA_GRAD(const OpEval *e)
{
    Attention at = attention_of(e);
    for (int64_t b = 0; b < at.B; b++)
        for (int64_t t = 0; t < at.T; t++)
            for (int64_t h = 0; h < at.H; h++)
                attend_back(&at, e, b, t, h);
}

/* The evaluator hands the further result itself in as the input. */
void eval_AUX(const OpEval *e)
{
    if (e->out->size)
        memcpy(e->out->real, e->in[0]->real, (size_t)e->out->size * sizeof(double));
}
