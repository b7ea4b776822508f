/* host.c - run-time scalars; see host.h.
 *
 * In:  constants, variables, operators.     Out: their value at a step, and text that reads
 * back.
 * The one idea: a run-time expression is a few float64 operations, so it stays on the host and
 * needs neither shapes nor gradients.
 */
#include "host.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

static const char *const var_names[HV_COUNT] = {
    [HV_STEP] = "step",       [HV_UPDATES] = "updates",         [HV_TOKENS] = "tokens",           [HV_EPOCH] = "epoch",
    [HV_PROGRESS] = "progress", [HV_LENGTH] = "length",         [HV_TRAIN_LOSS] = "train.loss", [HV_LOSS_SCALE] = "loss_scale",
    [HV_SHARE] = "batch.share",
    [HV_EVAL_LOSS] = "eval.loss", [HV_GRAD_NORM] = "grad_norm",
    [HV_MAY_SKIP] = "may_skip", [HV_SKIPPED_UPDATES] = "skipped.updates", [HV_SKIPPED_LOSS_SCALE] = "skipped.loss_scale",
    [HV_SKIPPED_MAY_SKIP] = "skipped.may_skip",
};

/* How an operator is written: infix between two operands, or a function of n operands. */
typedef struct HostOpInfo {
    const char *text;
    int n_in;
    bool infix;
} HostOpInfo;

static const HostOpInfo op_infos[] = {
    [HO_CONST] = {"", 0, false},      [HO_VAR] = {"", 0, false},
    [HO_ADD] = {"+", 2, true},        [HO_SUB] = {"-", 2, true},
    [HO_MUL] = {"*", 2, true},        [HO_DIV] = {"/", 2, true},
    [HO_POW] = {"^", 2, true},        [HO_MOD] = {"mod", 2, true},
    [HO_MIN] = {"min", 2, false},     [HO_MAX] = {"max", 2, false},
    [HO_NEG] = {"neg", 1, false},     [HO_EXP] = {"exp", 1, false},
    [HO_LOG] = {"log", 1, false},     [HO_SQRT] = {"sqrt", 1, false},
    [HO_ABS] = {"abs", 1, false},     [HO_SIN] = {"sin", 1, false},
    [HO_COS] = {"cos", 1, false},     [HO_TANH] = {"tanh", 1, false},
    [HO_FLOOR] = {"floor", 1, false}, [HO_CEIL] = {"ceil", 1, false},
    [HO_ROUND] = {"round", 1, false}, [HO_LT] = {"<", 2, true},
    [HO_LE] = {"<=", 2, true},        [HO_EQ] = {"==", 2, true},
    [HO_NOT] = {"not", 1, false},     [HO_AND] = {"and", 2, true},
    [HO_OR] = {"or", 2, true},        [HO_IF] = {"if", 3, false},
};

const char *host_var_name(HostVar var)
{
    return (unsigned)var < HV_COUNT ? var_names[var] : "?";
}

const HostExpr *host_const(Arena *arena, double value)
{
    HostExpr *e = NEW(arena, HostExpr);
    e->op = HO_CONST;
    e->value = value;
    return e;
}

const HostExpr *host_var(Arena *arena, HostVar var)
{
    HostExpr *e = NEW(arena, HostExpr);
    e->op = HO_VAR;
    e->var = var;
    return e;
}

bool host_is_const(const HostExpr *e, double *value)
{
    if (e->op != HO_CONST)
        return false;
    *value = e->value;
    return true;
}

const HostExpr *host_op(Arena *arena, HostOp op, const HostExpr *a, const HostExpr *b,
                        const HostExpr *c)
{
    int n = op_infos[op].n_in;
    if ((n > 0 && !a) || (n > 1 && !b) || (n > 2 && !c))
        vwn_bug(arena_ctx(arena), "host scalar '%s' lacks an operand", op_infos[op].text);
    double condition;
    if (op == HO_IF && host_is_const(a, &condition))
        return condition != 0 ? b : c;
    HostExpr *e = NEW(arena, HostExpr);
    *e = (HostExpr){.op = op, .a = a, .b = n > 1 ? b : NULL, .c = n > 2 ? c : NULL};
    double unused;
    if (host_is_const(a, &unused) && (n < 2 || host_is_const(b, &unused)) &&
        (n < 3 || host_is_const(c, &unused))) {
        const double none[HV_COUNT] = {0};
        return host_const(arena, host_eval(e, none));
    }
    return e;
}

static double eval_unary(HostOp op, double a)
{
    switch (op) {
    case HO_NEG: return -a;
    case HO_EXP: return exp(a);
    case HO_LOG: return log(a);
    case HO_SQRT: return sqrt(a);
    case HO_ABS: return fabs(a);
    case HO_SIN: return sin(a);
    case HO_COS: return cos(a);
    case HO_TANH: return tanh(a);
    case HO_FLOOR: return floor(a);
    case HO_CEIL: return ceil(a);
    case HO_ROUND: return rint(a); /* of two the even one, as everywhere */
    case HO_NOT: return a == 0;
    default: return NAN;
    }
}

static double eval_binary(HostOp op, double a, double b)
{
    switch (op) {
    case HO_ADD: return a + b;
    case HO_SUB: return a - b;
    case HO_MUL: return a * b;
    case HO_DIV: return a / b;
    case HO_POW: return pow(a, b);
    case HO_MOD: return a - b * floor(a / b);
    case HO_MIN: return b < a || isnan(b) ? b : a;
    case HO_MAX: return b > a || isnan(b) ? b : a;
    case HO_LT: return a < b;
    case HO_LE: return a <= b;
    case HO_EQ: return a == b;
    default: return NAN;
    }
}

double host_eval(const HostExpr *e, const double vars[HV_COUNT])
{
    switch (e->op) {
    case HO_CONST:
        return e->value;
    case HO_VAR:
        return vars[e->var];
    case HO_IF:
        return host_eval(host_eval(e->a, vars) != 0 ? e->b : e->c, vars);
    case HO_AND:
        return host_eval(e->a, vars) != 0 && host_eval(e->b, vars) != 0;
    case HO_OR:
        return host_eval(e->a, vars) != 0 || host_eval(e->b, vars) != 0;
    default:
        if (op_infos[e->op].n_in == 1)
            return eval_unary(e->op, host_eval(e->a, vars));
        return eval_binary(e->op, host_eval(e->a, vars), host_eval(e->b, vars));
    }
}

const HostExpr *host_if_skipped(Arena *arena, const HostExpr *e)
{
    if (!e)
        return NULL;
    if (e->op == HO_VAR)
        switch (e->var) {
        case HV_UPDATES: return host_var(arena, HV_SKIPPED_UPDATES);
        case HV_LOSS_SCALE: return host_var(arena, HV_SKIPPED_LOSS_SCALE);
        case HV_MAY_SKIP: return host_var(arena, HV_SKIPPED_MAY_SKIP);
        default: return e;
        }
    const HostExpr *a = host_if_skipped(arena, e->a), *b = host_if_skipped(arena, e->b), *c = host_if_skipped(arena, e->c);
    return a == e->a && b == e->b && c == e->c ? e : host_op(arena, e->op, a, b, c);
}

bool reads_losses(const HostExpr *e)
{
    return e && ((e->op == HO_VAR && e->var >= HV_TRAIN_LOSS && e->var < HV_NAMED) || reads_losses(e->a) ||
                 reads_losses(e->b) || reads_losses(e->c));
}

/* ---- text ---- */

void host_print_number(Buf *out, double x)
{
    if (isnan(x))
        buf_puts(out, "nan");
    else if (x == 0 && signbit(x))
        buf_puts(out, "-0");
    else
        buf_number(out, x);
}

void host_print(Buf *out, const HostExpr *e)
{
    const HostOpInfo *info = &op_infos[e->op];
    if (e->op == HO_CONST) {
        host_print_number(out, e->value);
        return;
    }
    if (e->op == HO_VAR) {
        buf_puts(out, host_var_name(e->var));
        return;
    }
    if (!info->infix)
        buf_puts(out, info->text);
    buf_putc(out, '(');
    const HostExpr *in[3] = {e->a, e->b, e->c};
    for (int k = 0; k < info->n_in; k++) {
        if (k && info->infix)
            buf_printf(out, " %s ", info->text);
        else if (k)
            buf_puts(out, ", ");
        host_print(out, in[k]);
    }
    buf_putc(out, ')');
}

/* A word or a run of operator characters; moves *s past it. */
static size_t token(const char **s, const char **start)
{
    while (**s == ' ')
        ++*s;
    *start = *s;
    if (isalpha((unsigned char)**s))
        while (isalnum((unsigned char)**s) || **s == '_' || **s == '.')
            ++*s;
    else
        while (**s && strchr("+-*/^<=", **s))
            ++*s;
    return (size_t)(*s - *start);
}

static bool skip_char(const char **s, char c)
{
    while (**s == ' ')
        ++*s;
    if (**s != c)
        return false;
    ++*s;
    return true;
}

static int op_with_text(const char *start, size_t n, bool infix)
{
    for (int op = HO_ADD; op <= HO_IF; op++)
        if (op_infos[op].infix == infix && strlen(op_infos[op].text) == n &&
            !memcmp(op_infos[op].text, start, n))
            return op;
    return -1;
}

static const HostExpr *parse(Arena *arena, const char **s, int depth);

static const HostExpr *parse_infix(Arena *arena, const char **s, int depth)
{
    const char *start;
    const HostExpr *a = parse(arena, s, depth);
    size_t n = a ? token(s, &start) : 0;
    int op = n ? op_with_text(start, n, true) : -1;
    const HostExpr *b = op >= 0 ? parse(arena, s, depth) : NULL;
    return b && skip_char(s, ')') ? host_op(arena, (HostOp)op, a, b, NULL) : NULL;
}

static const HostExpr *parse_call(Arena *arena, const char **s, int op, int depth)
{
    const HostExpr *in[3] = {0};
    for (int k = 0; k < op_infos[op].n_in; k++)
        if ((k && !skip_char(s, ',')) || !(in[k] = parse(arena, s, depth)))
            return NULL;
    return skip_char(s, ')') ? host_op(arena, (HostOp)op, in[0], in[1], in[2]) : NULL;
}

static const HostExpr *parse(Arena *arena, const char **s, int depth)
{
    if (depth > 200)
        return NULL;
    if (skip_char(s, '('))
        return parse_infix(arena, s, depth + 1);
    char *end;
    double value = strtod(*s, &end);
    if (end != *s) {
        *s = end;
        return host_const(arena, value);
    }
    const char *start;
    size_t n = token(s, &start);
    for (int v = 0; v < HV_COUNT; v++)
        if (strlen(var_names[v]) == n && !memcmp(var_names[v], start, n))
            return host_var(arena, (HostVar)v);
    int op = op_with_text(start, n, false);
    return n && op >= 0 && skip_char(s, '(') ? parse_call(arena, s, op, depth + 1) : NULL;
}

const HostExpr *host_read(Arena *arena, const char **text)
{
    return parse(arena, text, 0);
}
