/* op_matmul.c - matrix products, plain and with one matrix per expert.
 *
 * In:  matrices in the last two axes.     Out: their products.
 * The one idea: the gradient of a matrix that is shared by all rows is one product over all
 * rows (leading axes merged into rows), so that it becomes one call of a library.
 */
#include "op.h"

enum { TRANSPOSE_A = 1, TRANSPOSE_B = 2 };

/* ---- shapes ---- */

/* rows and columns of the last two axes as the product sees them */
static void matrix_of(const Shape *s, bool transposed, Dim *rows, Dim *columns)
{
    *rows = s->d[s->rank - (transposed ? 1 : 2)];
    *columns = s->d[s->rank - (transposed ? 2 : 1)];
}

const char *shape_MATMUL(const Ask *q, Shape *out, DType *dtype)
{
    const Shape *a = ask_shape(q, 0), *b = ask_shape(q, 1);
    *dtype = DT_REAL;
    if (ask_dtype(q, 0) != DT_REAL || ask_dtype(q, 1) != DT_REAL)
        return "the inputs are not real";
    if (a->rank < 2 || b->rank < 2 || q->a->i < 0 || q->a->i > 3)
        return "a matrix has two axes and i two bits";
    Dim m, ka, kb, n;
    matrix_of(a, q->a->i & TRANSPOSE_A, &m, &ka);
    matrix_of(b, q->a->i & TRANSPOSE_B, &kb, &n);
    if (!dim_eq(ka, kb))
        return "the inner extents differ";
    if (b->rank > 2) {
        if (a->rank != b->rank)
            return "the ranks differ";
        for (int k = 0; k < a->rank - 2; k++)
            if (!dim_eq(a->d[k], b->d[k]))
                return "the leading axes differ";
    }
    *out = *a;
    out->d[a->rank - 2] = m;
    out->d[a->rank - 1] = n;
    return NULL;
}

/* index [.., k]; x [.., k, I] or, the same for all k, [.., I] */
static const char *expert_rows(const Shape *x, const Shape *index)
{
    if (index->rank < 1 || x->rank < 1 || x->rank > index->rank + 1 || x->rank < index->rank)
        return "x has neither the rank of the index nor one more";
    int same = x->rank - 1;
    for (int k = 0; k < same; k++)
        if (!dim_eq(x->d[k], index->d[k]))
            return "x and the index have different leading axes";
    return NULL;
}

const char *shape_EXPERT_MATMUL(const Ask *q, Shape *out, DType *dtype)
{
    const Shape *x = ask_shape(q, 0), *w = ask_shape(q, 1), *index = ask_shape(q, 2);
    *dtype = DT_REAL;
    if (ask_dtype(q, 0) != DT_REAL || ask_dtype(q, 1) != DT_REAL || ask_dtype(q, 2) != DT_INT)
        return "x and w must be real and the index an integer";
    if (w->rank != 3 || q->a->i < 0 || q->a->i > 1 || index->rank >= MAX_RANK)
        return "w has three axes and i one bit";
    const char *wrong = expert_rows(x, index);
    if (wrong)
        return wrong;
    Dim in, columns;
    matrix_of(w, q->a->i & 1, &in, &columns);
    if (!dim_eq(in, x->d[x->rank - 1]))
        return "the inner extents differ";
    *out = *index;
    out->d[out->rank++] = columns;
    return NULL;
}

const char *shape_EXPERT_MATMUL_DW(const Ask *q, Shape *out, DType *dtype)
{
    const Shape *x = ask_shape(q, 0), *dy = ask_shape(q, 1), *index = ask_shape(q, 2);
    *dtype = DT_REAL;
    *out = *q->given;
    if (ask_dtype(q, 0) != DT_REAL || ask_dtype(q, 1) != DT_REAL || ask_dtype(q, 2) != DT_INT)
        return "x and dy must be real and the index an integer";
    const char *wrong = expert_rows(x, index);
    if (wrong || (wrong = expert_rows(dy, index)) != NULL)
        return wrong;
    if (dy->rank != index->rank + 1 || out->rank != 3)
        return "dy has one row for each index and the result three axes";
    if (!dim_eq(out->d[1], x->d[x->rank - 1]) || !dim_eq(out->d[2], dy->d[dy->rank - 1]))
        return "the result has other extents than x and dy";
    return NULL;
}

/* ---- gradients ---- */

static Val product(Graph *g, Val a, Val b, int flags) { return ir_op(g, OP_MATMUL, a, b, 0, (Attr){.i = flags}, NULL); }

/* [L.., M, N] -> [L * M, N] */
static Val merge_rows(Graph *g, Val x)
{
    Shape s = *shape_of(g, x), flat = {.rank = 2};
    flat.d[1] = s.d[s.rank - 1];
    s.rank--;
    if (!shape_size(&s, &flat.d[0]))
        vwn_bug(g->ctx, "the number of rows overflows");
    return ir_reshape(g, x, &flat);
}

static Val grad_left(Graph *g, Val a, Val b, Val d, bool ta, bool tb)
{
    bool shared = shape_of(g, b)->rank == 2 && shape_of(g, a)->rank > 2;
    if (ta && !shared)
        return product(g, b, d, (tb ? TRANSPOSE_A : 0) | TRANSPOSE_B);
    Val da = product(g, d, b, tb ? 0 : TRANSPOSE_B);
    return ta ? ir_transpose(g, da) : da;
}

static Val grad_right(Graph *g, Val a, Val b, Val d, bool ta, bool tb)
{
    if (shape_of(g, b)->rank == 2 && shape_of(g, a)->rank > 2) {
        a = merge_rows(g, ta ? ir_transpose(g, a) : a);
        d = merge_rows(g, d);
        ta = false;
    }
    if (tb)
        return product(g, d, a, TRANSPOSE_A | (ta ? TRANSPOSE_B : 0));
    return product(g, a, d, ta ? 0 : TRANSPOSE_A);
}

void grad_MATMUL(Graph *g, Val v, Val d, const bool *want, Val *din)
{
    const Node *n = node_at(g, v);
    Val a = n->in[0], b = n->in[1];
    bool ta = n->a.i & TRANSPOSE_A, tb = n->a.i & TRANSPOSE_B;
    if (want[0])
        din[0] = grad_left(g, a, b, d, ta, tb);
    if (want[1])
        din[1] = grad_right(g, a, b, d, ta, tb);
}

/* [.., k, I] summed over k when x was [.., I] */
static Val sum_choices(Graph *g, Val dx, Val x)
{
    int rank = shape_of(g, dx)->rank;
    if (shape_of(g, x)->rank == rank)
        return dx;
    return ir_sum(g, dx, 1u << (rank - 2), false);
}

/* x with one row for each index, [.., k, I] */
static Val each_choice(Graph *g, Val x, Val index)
{
    Shape s = *shape_of(g, index), one;
    if (shape_of(g, x)->rank > s.rank)
        return x;
    Dim last = shape_of(g, x)->d[s.rank - 1];
    one = s;
    one.d[one.rank - 1] = DIM(1);
    one.d[one.rank++] = last;
    s.d[s.rank++] = last;
    return ir_broadcast(g, ir_reshape(g, x, &one), &s);
}

void grad_EXPERT_MATMUL(Graph *g, Val v, Val d, const bool *want, Val *din)
{
    Val x = node_at(g, v)->in[0], w = node_at(g, v)->in[1], index = node_at(g, v)->in[2];
    int64_t transposed = node_at(g, v)->a.i;
    if (want[0]) {
        Val dx = ir_op(g, OP_EXPERT_MATMUL, d, w, index, (Attr){.i = !transposed}, NULL);
        din[0] = sum_choices(g, dx, x);
    }
    if (want[1]) {
        Shape s = *shape_of(g, w);
        if (transposed)
            din[1] = ir_op(g, OP_EXPERT_MATMUL_DW, d, each_choice(g, x, index), index, (Attr){0}, &s);
        else
            din[1] = ir_op(g, OP_EXPERT_MATMUL_DW, x, d, index, (Attr){0}, &s);
    }
}

/* dW[e] = sum of x^T dy over the rows of e: its inputs get dW[e]^T-products of the others. */
void grad_EXPERT_MATMUL_DW(Graph *g, Val v, Val d, const bool *want, Val *din)
{
    Val x = node_at(g, v)->in[0], dy = node_at(g, v)->in[1], index = node_at(g, v)->in[2];
    if (want[0])
        din[0] = sum_choices(g, ir_op(g, OP_EXPERT_MATMUL, dy, d, index, (Attr){.i = 1}, NULL), x);
    if (want[1])
        din[1] = ir_op(g, OP_EXPERT_MATMUL, x, d, index, (Attr){0}, NULL);
}

/* ---- values ---- */

/* A matrix in memory: element (r, c) is at p[r * row + c * column]. */
typedef struct Matrix {
    const double *p;
    int64_t row, column;
} Matrix;

static Matrix matrix_at(const double *p, int64_t stored_columns, bool transposed)
{
    return transposed ? (Matrix){p, 1, stored_columns} : (Matrix){p, stored_columns, 1};
}

/* out[M, N] += a[M, K] b[K, N], four rows at a time. For each element the terms are added in
 * ascending order of k, as the plain triple loop does. */
static void multiply(double *restrict out, Matrix a, Matrix b, int64_t M, int64_t K, int64_t N)
{
    int64_t r = 0;
    for (; r + 4 <= M; r += 4) {
        double *restrict o0 = out + r * N, *restrict o1 = o0 + N;
        double *restrict o2 = o1 + N, *restrict o3 = o2 + N;
        const double *pa = a.p + r * a.row;
        for (int64_t k = 0; k < K; k++) {
            const double *restrict pb = b.p + k * b.row;
            double a0 = pa[k * a.column], a1 = pa[k * a.column + a.row];
            double a2 = pa[k * a.column + 2 * a.row], a3 = pa[k * a.column + 3 * a.row];
            for (int64_t c = 0; c < N; c++) {
                double x = pb[c];
                o0[c] += a0 * x;
                o1[c] += a1 * x;
                o2[c] += a2 * x;
                o3[c] += a3 * x;
            }
        }
    }
    for (; r < M; r++)
        for (int64_t k = 0; k < K; k++) {
            const double *restrict pb = b.p + k * b.row;
            double *restrict o = out + r * N, x = a.p[r * a.row + k * a.column];
            for (int64_t c = 0; c < N; c++)
                o[c] += x * pb[c];
        }
}

/* A copy of b[K, N] whose columns are next to each other; p must be released. */
static double *straighten(Ctx *ctx, Matrix *b, int64_t K, int64_t N)
{
    if (b->column == 1)
        return NULL;
    double *copy = ctx_alloc(ctx, (size_t)(K * N + 1) * sizeof *copy);
    for (int64_t k = 0; k < K; k++)
        for (int64_t c = 0; c < N; c++)
            copy[k * N + c] = b->p[k * b->row + c * b->column];
    *b = (Matrix){copy, N, 1};
    return copy;
}

void eval_MATMUL(const OpEval *e)
{
    const Tensor *a = e->in[0], *b = e->in[1];
    bool ta = e->n->a.i & TRANSPOSE_A, tb = e->n->a.i & TRANSPOSE_B;
    int64_t ca = a->d[a->rank - 1], cb = b->d[b->rank - 1];
    int64_t M = e->out->d[a->rank - 2], N = e->out->d[a->rank - 1];
    int64_t K = ta ? a->d[a->rank - 2] : ca, matrices = 1;
    for (int k = 0; k < a->rank - 2; k++)
        matrices *= a->d[k];
    bool shared = b->rank == 2;
    if (shared && !ta) { /* all rows at once */
        M *= matrices;
        matrices = 1;
    }
    for (int64_t m = 0; m < matrices; m++) {
        Matrix ma = matrix_at(a->real + m * M * K, ca, ta);
        Matrix mb = matrix_at(b->real + (shared ? 0 : m * K * N), cb, tb);
        double *copy = straighten(e->ctx, &mb, K, N);
        multiply(e->out->real + m * M * N, ma, mb, M, K, N);
        ctx_release(e->ctx, copy);
    }
}

void eval_EXPERT_MATMUL(const OpEval *e)
{
    const Tensor *x = e->in[0], *w = e->in[1], *index = e->in[2];
    int64_t in = x->d[x->rank - 1], out = e->out->d[e->out->rank - 1];
    int64_t choices = index->d[index->rank - 1], size = in * out;
    bool each = x->rank > index->rank;
    for (int64_t r = 0; r < index->size; r++) {
        int64_t expert = index->integer[r];
        if (expert < 0 || expert >= w->d[0])
            continue;
        Matrix row = {x->real + (each ? r : r / choices) * in, in, 1};
        Matrix mw = matrix_at(w->real + expert * size, w->d[2], e->n->a.i & 1);
        double *y = e->out->real + r * out;
        if (mw.column == 1) {
            multiply(y, row, mw, 1, in, out);
            continue;
        }
        for (int64_t o = 0; o < out; o++)
            for (int64_t k = 0; k < in; k++)
                y[o] += row.p[k] * mw.p[k * mw.row + o * mw.column];
    }
}

void eval_EXPERT_MATMUL_DW(const OpEval *e)
{
    const Tensor *x = e->in[0], *dy = e->in[1], *index = e->in[2];
    int64_t in = x->d[x->rank - 1], out = dy->d[dy->rank - 1];
    int64_t choices = index->d[index->rank - 1];
    bool each = x->rank > index->rank;
    for (int64_t r = 0; r < index->size; r++) {
        int64_t expert = index->integer[r];
        if (expert < 0 || expert >= e->out->d[0])
            continue;
        Matrix column = {x->real + (each ? r : r / choices) * in, 1, in};
        Matrix row = {dy->real + r * out, out, 1};
        multiply(e->out->real + expert * in * out, column, row, in, 1, out);
    }
}
