/* host.c - run-time scalars; see host.h.
 *
 * In:  constants, variables, operators.     Out: their value at a step, and text that reads
 * back.
 * The one idea: a run-time expression is a few float64 operations, so it stays on the host and
 * needs neither shapes nor gradients.
 */
#include "host.h"
#include "compiler/portable/host_value.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>

/* How an operator is written: infix between two operands, or a function of n operands. */
typedef struct HostOpInfo {
    const char *text, *c; /* in a file; in C */
    int n_in;
    bool infix;
} HostOpInfo;

#define OP(id, text, operands, infix, value) [HO_##id] = {text, #value, operands, infix},
#define VAR(id, name)
static const HostOpInfo op_infos[HO_COUNT] = {
    [HO_CONST] = {"", "", 0, false},
    [HO_VAR] = {"", "", 0, false},
#include "compiler/portable/host.def"
};
#undef OP
#undef VAR

#define OP(id, text, operands, infix, value)
#define VAR(id, name) [HV_##id] = {name, "HV_" #id},
static const struct {
    const char *name, *c;
} var_infos[HV_COUNT] = {
#include "compiler/portable/host.def"
};
#undef OP
#undef VAR

const char *host_var_name(HostVar var) { return (unsigned)var < HV_COUNT ? var_infos[var].name : "?"; }

const char *host_var_c(HostVar var) { return var_infos[var].c; }

const char *host_op_c(HostOp op) { return op_infos[op].c; }

HostOp host_op_called(const char *name)
{
    HostOp op = HO_COUNT;
    while (--op > HO_VAR && (op_infos[op].infix || strcmp(op_infos[op].text, name))) {}
    return op > HO_VAR ? op : HO_CONST;
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

const HostExpr *host_op(Arena *arena, HostOp op, const HostExpr *a, const HostExpr *b, const HostExpr *c)
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
    if (host_is_const(a, &unused) && (n < 2 || host_is_const(b, &unused)) && (n < 3 || host_is_const(c, &unused))) {
        const double none[HV_COUNT] = {0};
        return host_const(arena, host_eval(e, none));
    }
    return e;
}

double host_value(HostOp op, double a, double b, double c)
{
    switch (op) {
#define VAR(id, name)
#define OP(id, text, operands, infix, value)                                                                           \
    case HO_##id:                                                                                                      \
        return value;
#include "compiler/portable/host.def"
#undef VAR
#undef OP
    default: return NAN;
    }
}

double host_eval(const HostExpr *e, const double vars[HV_COUNT])
{
    if (e->op == HO_CONST || e->op == HO_VAR)
        return e->op == HO_VAR ? vars[e->var] : e->value;
    double a = host_eval(e->a, vars);
    if (e->op == HO_IF)
        return host_eval(a != 0 ? e->b : e->c, vars);
    return host_value(e->op, a, e->b ? host_eval(e->b, vars) : 0, 0);
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
    const HostExpr *a = host_if_skipped(arena, e->a), *b = host_if_skipped(arena, e->b),
                   *c = host_if_skipped(arena, e->c);
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
    for (size_t k = 0; k < COUNT_OF(in) && in[k]; k++) {
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
    for (int op = HO_ADD; op < HO_COUNT; op++)
        if (op_infos[op].infix == infix && strlen(op_infos[op].text) == n && !memcmp(op_infos[op].text, start, n))
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
        if (strlen(var_infos[v].name) == n && !memcmp(var_infos[v].name, start, n))
            return host_var(arena, (HostVar)v);
    int op = op_with_text(start, n, false);
    return n && op >= 0 && skip_char(s, '(') ? parse_call(arena, s, op, depth + 1) : NULL;
}

const HostExpr *host_read(Arena *arena, const char **text) { return parse(arena, text, 0); }
