/* host_range.c - between which numbers a run-time scalar stays while its variables move.
 *
 * In:  an expression, a range for every variable.   Out: a range that has every value it takes, see host.h.
 * The one idea: rounding is monotone, so the ends of sums, products and the like are computed as host_eval() would; what
 * a library of functions rounds as it likes is widened. A range may be too large, never too small.
 */
#include <math.h>

#include "host.h"

static HostRange range(double lo, double hi, bool nan)
{
    if (isnan(lo) || isnan(hi))
        return (HostRange){-INFINITY, INFINITY, true};
    return (HostRange){lo, hi, nan};
}

static HostRange anything(void) { return range(-INFINITY, INFINITY, true); }

static bool has(HostRange a, double x) { return a.lo <= x && x <= a.hi; }
static bool endless(HostRange a) { return isinf(a.lo) || isinf(a.hi); }

static HostRange widened(double lo, double hi, double least, double most, bool nan)
{
    const double share = 1e-14;
    return range(fmax(least, lo - share * fabs(lo)), fmin(most, hi + share * fabs(hi)), nan);
}

static HostRange corners(double a, double b, double c, double d, bool nan)
{
    return range(fmin(fmin(a, b), fmin(c, d)), fmax(fmax(a, b), fmax(c, d)), nan);
}

static HostRange product(HostRange a, HostRange b)
{
    if ((has(a, 0) && endless(b)) || (has(b, 0) && endless(a)))
        return anything();
    return corners(a.lo * b.lo, a.lo * b.hi, a.hi * b.lo, a.hi * b.hi, a.nan || b.nan);
}

static HostRange quotient(HostRange a, HostRange b)
{
    if (has(b, 0) || (endless(a) && endless(b)))
        return anything();
    return corners(a.lo / b.lo, a.lo / b.hi, a.hi / b.lo, a.hi / b.hi, a.nan || b.nan);
}

static HostRange power(HostRange a, HostRange b)
{
    if (a.lo > 0) {
        HostRange r = corners(pow(a.lo, b.lo), pow(a.lo, b.hi), pow(a.hi, b.lo), pow(a.hi, b.hi), a.nan || b.nan);
        return widened(r.lo, r.hi, 0, INFINITY, r.nan);
    }
    if (b.lo != b.hi || b.nan || b.lo < 1 || b.lo != floor(b.lo))
        return anything();
    double x = pow(a.lo, b.lo), y = pow(a.hi, b.lo), turn = has(a, 0) ? 0 : x;
    HostRange r = corners(x, y, turn, turn, a.nan);
    return widened(r.lo, r.hi, -INFINITY, INFINITY, r.nan);
}

static HostRange remainder_of(HostRange a, HostRange b)
{
    if (has(b, 0) || endless(a) || endless(b))
        return anything();
    bool nan = a.nan || b.nan;
    if (b.lo == b.hi && floor(a.lo / b.lo) == floor(a.hi / b.lo)) {
        double x = a.lo - b.lo * floor(a.lo / b.lo), y = a.hi - b.lo * floor(a.hi / b.lo);
        return range(fmin(x, y), fmax(x, y), nan); /* the subtrahend is the same all along */
    }
    double slack = 1e-15 * fmax(fabs(a.lo), fabs(a.hi)); /* of the quotient's rounding */
    return b.lo > 0 ? range(-slack, b.hi + slack, nan) : range(b.lo - slack, slack, nan);
}

/* The cosine, or with a quarter of a turn the sine. */
static HostRange wave(HostRange a, double turn, double (*f)(double))
{
    const double pi = 3.14159265358979323846;
    if (endless(a) || a.nan)
        return a.nan && !endless(a) ? range(-1, 1, true) : anything();
    double slack = 1e-12 * fmax(1, fmax(fabs(a.lo), fabs(a.hi))), lo = a.lo - turn - slack, hi = a.hi - turn + slack;
    if (hi - lo >= 2 * pi)
        return range(-1, 1, false);
    bool top = floor(hi / (2 * pi)) != floor(lo / (2 * pi)),
         bottom = floor(hi / (2 * pi) - 0.5) != floor(lo / (2 * pi) - 0.5);
    double x = f(a.lo), y = f(a.hi);
    return range(bottom ? -1 : fmax(-1, fmin(x, y) - 1e-14), top ? 1 : fmin(1, fmax(x, y) + 1e-14), false);
}

/* ---- truth: what is not 0, also what is not a number ---- */

static bool may_be_true(HostRange a) { return a.nan || a.lo != 0 || a.hi != 0; }
static bool may_be_false(HostRange a) { return has(a, 0); }
static HostRange truth(bool yes, bool no) { return range(no ? 0 : 1, yes ? 1 : 0, false); }

static HostRange compared(HostOp op, HostRange a, HostRange b)
{
    bool nan = a.nan || b.nan;
    if (op == HO_LT)
        return truth(a.lo < b.hi, nan || a.hi >= b.lo);
    if (op == HO_LE)
        return truth(a.lo <= b.hi, nan || a.hi > b.lo);
    return truth(a.lo <= b.hi && b.lo <= a.hi, nan || a.lo != a.hi || b.lo != b.hi || a.lo != b.lo);
}

/* Of an operator of one operand, a, or two. All stand here, so that the compiler names a new one without a range. */
static HostRange of_operator(HostOp op, HostRange a, HostRange b)
{
    bool nan = a.nan || b.nan;
    switch (op) {
    case HO_NEG: return range(-a.hi, -a.lo, a.nan);
    case HO_EXP: return widened(exp(a.lo), exp(a.hi), 0, INFINITY, a.nan);
    case HO_LOG:
        if (a.hi < 0)
            return anything();
        return widened(a.lo > 0 ? log(a.lo) : -INFINITY, log(a.hi), -INFINITY, INFINITY, a.nan || a.lo < 0);
    case HO_SQRT: return a.hi < 0 ? anything() : range(sqrt(fmax(a.lo, 0)), sqrt(a.hi), a.nan || a.lo < 0);
    case HO_ABS: return range(has(a, 0) ? 0 : fmin(fabs(a.lo), fabs(a.hi)), fmax(fabs(a.lo), fabs(a.hi)), a.nan);
    case HO_COS: return wave(a, 0, cos);
    case HO_SIN: return wave(a, 3.14159265358979323846 / 2, sin);
    case HO_TANH: return widened(tanh(a.lo), tanh(a.hi), -1, 1, a.nan);
    case HO_FLOOR: return range(floor(a.lo), floor(a.hi), a.nan);
    case HO_CEIL: return range(ceil(a.lo), ceil(a.hi), a.nan);
    case HO_ROUND: return range(rint(a.lo), rint(a.hi), a.nan);
    case HO_NOT: return truth(may_be_false(a), may_be_true(a));
    case HO_ADD: return range(a.lo + b.lo, a.hi + b.hi, nan || (endless(a) && endless(b)));
    case HO_SUB: return range(a.lo - b.hi, a.hi - b.lo, nan || (endless(a) && endless(b)));
    case HO_MUL: return product(a, b);
    case HO_DIV: return quotient(a, b);
    case HO_POW: return power(a, b);
    case HO_MOD: return remainder_of(a, b);
    case HO_MIN: return range(fmin(a.lo, b.lo), fmin(a.hi, b.hi), nan);
    case HO_MAX: return range(fmax(a.lo, b.lo), fmax(a.hi, b.hi), nan);
    case HO_AND: return truth(may_be_true(a) && may_be_true(b), may_be_false(a) || may_be_false(b));
    case HO_OR: return truth(may_be_true(a) || may_be_true(b), may_be_false(a) && may_be_false(b));
    case HO_LT:
    case HO_LE:
    case HO_EQ: return compared(op, a, b);
    case HO_CONST:
    case HO_VAR:
    case HO_IF:
    case HO_COUNT: break; /* of other operands */
    }
    return anything();
}

HostRange host_range(const HostExpr *e, const HostRange vars[HV_COUNT])
{
    if (e->op == HO_CONST)
        return range(e->value, e->value, false);
    if (e->op == HO_VAR)
        return vars[e->var];
    HostRange a = host_range(e->a, vars);
    if (e->op == HO_IF) {
        if (!may_be_false(a) || !may_be_true(a))
            return host_range(may_be_true(a) ? e->b : e->c, vars);
        HostRange b = host_range(e->b, vars), c = host_range(e->c, vars);
        return range(fmin(b.lo, c.lo), fmax(b.hi, c.hi), b.nan || c.nan);
    }
    return of_operator(e->op, a, e->b ? host_range(e->b, vars) : range(0, 0, false));
}
