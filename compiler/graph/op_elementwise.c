/* op_elementwise.c - operators on one element of each input.
 *
 * In:  one to three tensors of equal shapes.     Out: one of the same shape.
 * The one idea: a comparison is a mask of 0.0 and 1.0, so that selecting, gating and the
 * gradients of min, max and where are arithmetic. At a tie of min and max each side gets half.
 */
#include "op.h"

#include <math.h>

/* ---- shapes ---- */

static const char *real_unary(const Ask *q, Shape *out, DType *dtype)
{
    *out = *ask_shape(q, 0);
    *dtype = DT_REAL;
    return ask_dtype(q, 0) == DT_REAL ? NULL : "the input is not real";
}

static const char *any_unary(const Ask *q, Shape *out, DType *dtype)
{
    *out = *ask_shape(q, 0);
    *dtype = ask_dtype(q, 0);
    return NULL;
}

SAME_SHAPE_RULE(NEG, any_unary)
SAME_SHAPE_RULE(EXP, real_unary)
SAME_SHAPE_RULE(LOG, real_unary)
SAME_SHAPE_RULE(SQRT, real_unary)
SAME_SHAPE_RULE(ABS, real_unary)
SAME_SHAPE_RULE(SIGN, real_unary)
SAME_SHAPE_RULE(FLOOR, real_unary)
SAME_SHAPE_RULE(CEIL, real_unary)
SAME_SHAPE_RULE(ROUND, real_unary)
SAME_SHAPE_RULE(SIN, real_unary)
SAME_SHAPE_RULE(COS, real_unary)
SAME_SHAPE_RULE(TANH, real_unary)
SAME_SHAPE_RULE(SIGMOID, real_unary)
SAME_SHAPE_RULE(ERF, real_unary)
SAME_SHAPE_RULE(RELU, real_unary)
SAME_SHAPE_RULE(GELU, real_unary)
SAME_SHAPE_RULE(GELU_SLOPE, real_unary)
SAME_SHAPE_RULE(GELU_TANH, real_unary)
SAME_SHAPE_RULE(SILU, real_unary)
SAME_SHAPE_RULE(SOFTPLUS, real_unary)
SAME_SHAPE_RULE(STOP, any_unary)

const char *shape_TO_REAL(const Ask *q, Shape *out, DType *dtype)
{
    *out = *ask_shape(q, 0);
    *dtype = DT_REAL;
    return ask_dtype(q, 0) == DT_INT ? NULL : "the input is not an integer";
}

const char *shape_TO_INT(const Ask *q, Shape *out, DType *dtype)
{
    *out = *ask_shape(q, 0);
    *dtype = DT_INT;
    return ask_dtype(q, 0) == DT_REAL ? NULL : "the input is not real";
}

const char *shape_ROUND_TO(const Ask *q, Shape *out, DType *dtype)
{
    if (!q->a->i || !half_info((Half)q->a->i))
        return "there is no such storage type";
    return real_unary(q, out, dtype);
}

static const char *any_binary(const Ask *q, Shape *out, DType *dtype)
{
    *out = *ask_shape(q, 0);
    *dtype = ask_dtype(q, 0);
    if (!shape_eq(out, ask_shape(q, 1)))
        return "the inputs have different shapes";
    return ask_dtype(q, 1) == *dtype ? NULL : "the inputs have different types";
}

static const char *real_binary(const Ask *q, Shape *out, DType *dtype)
{
    const char *wrong = any_binary(q, out, dtype);
    if (!wrong && *dtype != DT_REAL)
        wrong = "the inputs are not real";
    return wrong;
}

static const char *comparison(const Ask *q, Shape *out, DType *dtype)
{
    const char *wrong = any_binary(q, out, dtype);
    *dtype = DT_REAL;
    return wrong;
}

SAME_SHAPE_RULE(ADD, any_binary)
SAME_SHAPE_RULE(SUB, any_binary)
SAME_SHAPE_RULE(MUL, any_binary)
SAME_SHAPE_RULE(DIV, real_binary)
SAME_SHAPE_RULE(POW, real_binary)
SAME_SHAPE_RULE(MIN, any_binary)
SAME_SHAPE_RULE(MAX, any_binary)
SAME_SHAPE_RULE(MOD, any_binary)
SAME_SHAPE_RULE(LT, comparison)
SAME_SHAPE_RULE(LE, comparison)
SAME_SHAPE_RULE(EQ, comparison)

const char *shape_WHERE(const Ask *q, Shape *out, DType *dtype)
{
    *out = *ask_shape(q, 1);
    *dtype = ask_dtype(q, 1);
    if (!shape_eq(out, ask_shape(q, 0)) || !shape_eq(out, ask_shape(q, 2)))
        return "the inputs have different shapes";
    if (ask_dtype(q, 0) != DT_REAL)
        return "the mask is not real";
    return ask_dtype(q, 2) == *dtype ? NULL : "the inputs have different types";
}

/* ---- gradients ---- */

#define GRAD(id)     void grad_##id(Graph *g, Val v, Val d, const bool *want, Val *din)
#define IN(k)        (node_at(g, v)->in[k])
#define U1(op, a)    ir_unary(g, OP_##op, a)
#define U2(op, a, b) ir_binary(g, OP_##op, a, b)
#define NUM(value)   ir_fill(g, value)

/* C leaves the order in which arguments are computed open. Of the arguments of one call at most
 * one may therefore make nodes, else the graph would depend on the compiler that built this
 * one. */
static Val plus(Graph *g, Val x, double number) { return U2(ADD, x, NUM(number)); }

static Val one_minus(Graph *g, Val x) { return U2(SUB, NUM(1), x); }

GRAD(NEG)
{
    (void)v;
    if (want[0])
        din[0] = U1(NEG, d);
}

GRAD(EXP)
{
    if (want[0])
        din[0] = U2(MUL, d, v);
}

GRAD(LOG)
{
    if (want[0])
        din[0] = U2(DIV, d, IN(0));
}

GRAD(SQRT)
{
    if (want[0])
        din[0] = U2(DIV, ir_scale(g, d, 0.5), v);
}

GRAD(ABS)
{
    if (want[0])
        din[0] = U2(MUL, d, U1(SIGN, IN(0)));
}

NO_GRAD(SIGN)
NO_GRAD(FLOOR)
NO_GRAD(CEIL)
NO_GRAD(ROUND)

GRAD(SIN)
{
    if (want[0])
        din[0] = U2(MUL, d, U1(COS, IN(0)));
}

GRAD(COS)
{
    if (want[0])
        din[0] = U1(NEG, U2(MUL, d, U1(SIN, IN(0))));
}

GRAD(TANH)
{
    if (want[0])
        din[0] = U2(MUL, d, one_minus(g, U2(MUL, v, v)));
}

GRAD(SIGMOID)
{
    if (want[0])
        din[0] = U2(MUL, d, U2(MUL, v, one_minus(g, v)));
}

static const double PI = 3.14159265358979323846;

/* exp(-x^2 * half) * factor, the bell of erf and of the normal distribution */
static Val bell(Graph *g, Val x, double half, double factor)
{
    return ir_scale(g, U1(EXP, ir_scale(g, U2(MUL, x, x), -half)), factor);
}

GRAD(ERF)
{
    if (want[0])
        din[0] = U2(MUL, d, bell(g, IN(0), 1, 2 / sqrt(PI)));
}

GRAD(RELU)
{
    if (want[0])
        din[0] = U2(MUL, d, U2(LT, NUM(0), IN(0)));
}

/* x P(x): P(x) + x p(x), one operator, since what it takes is what gelu takes, too: kernels that compute both compute it once */
GRAD(GELU)
{
    if (want[0])
        din[0] = U2(MUL, d, U1(GELU_SLOPE, IN(0)));
}

/* P(x) + x p(x): p(x) (2 - x^2) */
GRAD(GELU_SLOPE)
{
    if (!want[0])
        return;
    Val x = IN(0), less = plus(g, U1(NEG, U2(MUL, x, x)), 2);
    din[0] = U2(MUL, d, U2(MUL, bell(g, x, 0.5, 1 / sqrt(2 * PI)), less));
}

/* 0.5 x (1 + t), t = tanh(c (x + a x^3)): 0.5 (1 + t) + 0.5 x (1 - t^2) c (1 + 3 a x^2) */
static const double GELU_A = 0.044715;
#define GELU_C (sqrt(2 / PI))

GRAD(GELU_TANH)
{
    if (!want[0])
        return;
    Val x = IN(0), xx = U2(MUL, x, x);
    Val t = U1(TANH, U2(MUL, x, plus(g, ir_scale(g, xx, GELU_C * GELU_A), GELU_C)));
    Val first = ir_scale(g, plus(g, t, 1), 0.5);
    Val steep = plus(g, ir_scale(g, xx, 1.5 * GELU_A * GELU_C), 0.5 * GELU_C);
    Val flat = one_minus(g, U2(MUL, t, t));
    Val second = U2(MUL, U2(MUL, x, steep), flat);
    din[0] = U2(MUL, d, U2(ADD, first, second));
}

/* s (1 + x (1 - s)) */
GRAD(SILU)
{
    if (!want[0])
        return;
    Val x = IN(0), s = U1(SIGMOID, x);
    Val slope = U2(MUL, s, plus(g, U2(MUL, x, one_minus(g, s)), 1));
    din[0] = U2(MUL, d, slope);
}

GRAD(SOFTPLUS)
{
    if (want[0])
        din[0] = U2(MUL, d, U1(SIGMOID, IN(0)));
}

NO_GRAD(TO_REAL)
NO_GRAD(TO_INT)
NO_GRAD(STOP)

GRAD(ROUND_TO)
{
    (void)g, (void)v;
    if (want[0])
        din[0] = d;
}

GRAD(ADD)
{
    (void)g, (void)v;
    if (want[0])
        din[0] = d;
    if (want[1])
        din[1] = d;
}

GRAD(SUB)
{
    (void)v;
    if (want[0])
        din[0] = d;
    if (want[1])
        din[1] = U1(NEG, d);
}

GRAD(MUL)
{
    Val a = IN(0), b = IN(1);
    if (want[0])
        din[0] = U2(MUL, d, b);
    if (want[1])
        din[1] = U2(MUL, d, a);
}

GRAD(DIV)
{
    Val b = IN(1), q = U2(DIV, d, b);
    if (want[0])
        din[0] = q;
    if (want[1])
        din[1] = U1(NEG, U2(MUL, q, v));
}

/* d a^b / d a = b a^(b-1), 0 where b is 0, also at a = 0; d a^b / d b = a^b log a, 0 where a <=
 * 0 */
GRAD(POW)
{
    Val a = IN(0), b = IN(1);
    double exponent;
    if (want[0] && ir_is_uniform(g, b, &exponent)) {
        if (exponent == 1)
            din[0] = d;
        else if (exponent == 2)
            din[0] = U2(MUL, d, ir_scale(g, a, 2));
        else if (exponent != 0)
            din[0] = U2(MUL, d, ir_scale(g, U2(POW, a, NUM(exponent - 1)), exponent));
    } else if (want[0]) {
        Val slope = U2(MUL, b, U2(POW, a, plus(g, b, -1)));
        Val zero = NUM(0), flat = U2(EQ, b, zero);
        din[0] = U2(MUL, d, ir_where(g, flat, zero, slope));
    }
    if (want[1]) {
        Val zero = NUM(0), above = U2(LT, zero, a);
        Val log_a = U1(LOG, ir_where(g, above, a, NUM(1)));
        din[1] = U2(MUL, d, ir_where(g, above, U2(MUL, v, log_a), zero));
    }
}

/* wins = a is strictly better; each side of a tie gets half */
static void grad_choice(Graph *g, Val v, Val d, const bool *want, Val *din, bool largest)
{
    Val a = IN(0), b = IN(1);
    Val tie = ir_scale(g, U2(EQ, a, b), 0.5);
    if (want[0])
        din[0] = U2(MUL, d, U2(ADD, largest ? U2(LT, b, a) : U2(LT, a, b), tie));
    if (want[1])
        din[1] = U2(MUL, d, U2(ADD, largest ? U2(LT, a, b) : U2(LT, b, a), tie));
}

GRAD(MIN) { grad_choice(g, v, d, want, din, false); }

GRAD(MAX) { grad_choice(g, v, d, want, din, true); }

/* a - b floor(a / b): 1 and -floor(a / b), also where it jumps */
GRAD(MOD)
{
    if (want[0])
        din[0] = d;
    if (want[1])
        din[1] = U1(NEG, U2(MUL, d, U1(FLOOR, U2(DIV, IN(0), IN(1)))));
}

NO_GRAD(LT)
NO_GRAD(LE)
NO_GRAD(EQ)

GRAD(WHERE)
{
    Val mask = IN(0);
    if (want[1])
        din[1] = ir_where(g, mask, d, NUM(0));
    if (want[2])
        din[2] = ir_where(g, mask, NUM(0), d);
}

/* ---- values ---- */

static double sigmoid(double x) { return x >= 0 ? 1 / (1 + exp(-x)) : exp(x) / (1 + exp(x)); }

static double gelu_tanh(double x) { return 0.5 * x * (1 + tanh(GELU_C * (x + GELU_A * x * x * x))); }

static double softplus(double x) { return (x > 0 ? x : 0) + log1p(exp(-fabs(x))); }

/* To so many significant bits, ties to even; below 2^least the spacing stays 2^(least-digits+1). */
static double round_to(double x, const HalfInfo *to)
{
    const double over = copysign(to->saturates ? to->largest : INFINITY, x);
    if (x == 0 || !isfinite(x))
        return isinf(x) ? over : x;
    int e;
    frexp(x, &e); /* |x| = m 2^e with m in [0.5, 1) */
    int unit = (e - 1 < to->least ? to->least : e - 1) - to->digits + 1;
    double r = ldexp(nearbyint(ldexp(x, -unit)), unit);
    return fabs(r) > to->largest ? over : r;
}

#define EVAL_UNARY(id, expr)                                                                                           \
    void eval_##id(const OpEval *e)                                                                                    \
    {                                                                                                                  \
        const double *in = e->in[0]->real;                                                                             \
        double *out = e->out->real;                                                                                    \
        for (int64_t k = 0; k < e->out->size; k++) {                                                                   \
            double x = in[k];                                                                                          \
            out[k] = (expr);                                                                                           \
        }                                                                                                              \
    }

EVAL_UNARY(EXP, exp(x))
EVAL_UNARY(LOG, log(x))
EVAL_UNARY(SQRT, sqrt(x))
EVAL_UNARY(ABS, fabs(x))
EVAL_UNARY(SIGN, (x > 0) - (x < 0))
EVAL_UNARY(FLOOR, floor(x))
EVAL_UNARY(CEIL, ceil(x))
EVAL_UNARY(ROUND, rint(x))
EVAL_UNARY(SIN, sin(x))
EVAL_UNARY(COS, cos(x))
EVAL_UNARY(TANH, tanh(x))
EVAL_UNARY(SIGMOID, sigmoid(x))
EVAL_UNARY(ERF, erf(x))
EVAL_UNARY(RELU, x < 0 ? 0 : x) /* NaN stays NaN */
EVAL_UNARY(GELU, 0.5 * x * (1 + erf(x * sqrt(0.5))))
EVAL_UNARY(GELU_SLOPE, 0.5 * (1 + erf(x * sqrt(0.5))) + x * exp(-0.5 * x * x) / sqrt(2 * PI))
EVAL_UNARY(GELU_TANH, gelu_tanh(x))
EVAL_UNARY(SILU, x *sigmoid(x))
EVAL_UNARY(SOFTPLUS, softplus(x))

void eval_ROUND_TO(const OpEval *e)
{
    const HalfInfo *to = half_info((Half)e->n->a.i);
    for (int64_t k = 0; k < e->out->size; k++)
        e->out->real[k] = round_to(e->in[0]->real[k], to);
}

void eval_NEG(const OpEval *e)
{
    for (int64_t k = 0; k < e->out->size; k++)
        if (e->out->dtype == DT_INT)
            e->out->integer[k] = (int64_t)(0 - (uint64_t)e->in[0]->integer[k]);
        else
            e->out->real[k] = -e->in[0]->real[k];
}

void eval_STOP(const OpEval *e)
{
    if (e->out->size == 0)
        return;
    if (e->out->dtype == DT_INT)
        memcpy(e->out->integer, e->in[0]->integer, (size_t)e->out->size * sizeof(int64_t));
    else
        memcpy(e->out->real, e->in[0]->real, (size_t)e->out->size * sizeof(double));
}

void eval_TO_REAL(const OpEval *e)
{
    for (int64_t k = 0; k < e->out->size; k++)
        e->out->real[k] = (double)e->in[0]->integer[k];
}

/* Towards zero; what does not fit, NaN among it, becomes the nearest integer that does, or
 * 0. */
void eval_TO_INT(const OpEval *e)
{
    for (int64_t k = 0; k < e->out->size; k++) {
        double x = e->in[0]->real[k];
        if (x >= 9223372036854775808.0)
            e->out->integer[k] = INT64_MAX;
        else if (x < -9223372036854775808.0)
            e->out->integer[k] = INT64_MIN;
        else
            e->out->integer[k] = isnan(x) ? 0 : (int64_t)x;
    }
}

static double mod_real(double a, double b) { return a - b * floor(a / b); }

/* Integers wrap around and a division by 0 gives 0: no input of a graph may stop the
 * process. */
static int64_t mod_int(int64_t a, int64_t b)
{
    if (b == 0 || b == -1)
        return 0;
    int64_t r = a % b;
    return r != 0 && (r < 0) != (b < 0) ? r + b : r;
}

#define EVAL_BINARY(id, real_expr, int_expr)                                                                           \
    void eval_##id(const OpEval *e)                                                                                    \
    {                                                                                                                  \
        if (e->in[0]->dtype == DT_INT) {                                                                               \
            for (int64_t k = 0; k < e->out->size; k++) {                                                               \
                int64_t a = e->in[0]->integer[k], b = e->in[1]->integer[k];                                            \
                int_expr;                                                                                              \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        const double *pa = e->in[0]->real, *pb = e->in[1]->real;                                                       \
        double *out = e->out->real;                                                                                    \
        for (int64_t k = 0; k < e->out->size; k++) {                                                                   \
            double a = pa[k], b = pb[k];                                                                               \
            out[k] = (real_expr);                                                                                      \
        }                                                                                                              \
    }
#define INT_RESULT(expr)  e->out->integer[k] = (int64_t)(expr)
#define REAL_RESULT(expr) e->out->real[k] = (expr)

EVAL_BINARY(ADD, a + b, INT_RESULT((uint64_t)a + (uint64_t)b))
EVAL_BINARY(SUB, a - b, INT_RESULT((uint64_t)a - (uint64_t)b))
EVAL_BINARY(MUL, a *b, INT_RESULT((uint64_t)a *(uint64_t)b))
EVAL_BINARY(DIV, a / b, REAL_RESULT((double)a / (double)b))
EVAL_BINARY(POW, pow(a, b), REAL_RESULT(pow((double)a, (double)b)))
EVAL_BINARY(MIN, b < a || isnan(b) ? b : a, INT_RESULT(b < a ? b : a))
EVAL_BINARY(MAX, b > a || isnan(b) ? b : a, INT_RESULT(b > a ? b : a))
EVAL_BINARY(MOD, mod_real(a, b), INT_RESULT(mod_int(a, b)))
EVAL_BINARY(LT, a < b, REAL_RESULT(a < b))
EVAL_BINARY(LE, a <= b, REAL_RESULT(a <= b))
EVAL_BINARY(EQ, a == b, REAL_RESULT(a == b))

void eval_WHERE(const OpEval *e)
{
    const double *mask = e->in[0]->real;
    for (int64_t k = 0; k < e->out->size; k++)
        if (e->out->dtype == DT_INT)
            e->out->integer[k] = e->in[mask[k] != 0 ? 1 : 2]->integer[k];
        else
            e->out->real[k] = e->in[mask[k] != 0 ? 1 : 2]->real[k];
}
