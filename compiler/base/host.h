/* host.h - run-time scalars: learning rates, loss weights, triggers.
 *
 * A small float64 expression DAG over what only training knows (`step`, `tokens`, ...),
 * evaluated on the host once per step and handed to kernels as scalars. Nothing in it needs a
 * device.
 */
#ifndef VWN_HOST_H
#define VWN_HOST_H

#include "base.h"
#include "compiler/portable/host_value.h"

typedef enum HostOp {
    HO_CONST,
    HO_VAR,
#define VAR(id, name)
#define OP(id, text, operands, infix, value) HO_##id,
#include "compiler/portable/host.def"
#undef VAR
#undef OP
    HO_COUNT
} HostOp;

typedef struct HostExpr HostExpr;
struct HostExpr {
    HostOp op;
    double value; /* HO_CONST */
    HostVar var;  /* HO_VAR */
    const HostExpr *a, *b, *c;
};

const HostExpr *host_const(Arena *arena, double value);
const HostExpr *host_var(Arena *arena, HostVar var);
/* Folds constants. Unused operands are NULL. */
const HostExpr *host_op(Arena *arena, HostOp op, const HostExpr *a, const HostExpr *b, const HostExpr *c);
double host_value(HostOp op, double a, double b, double c); /* of an operator of host.def */
double host_eval(const HostExpr *e, const double vars[HV_COUNT]);
bool host_is_const(const HostExpr *e, double *value);
/* The expression of the variables as they are where the step before was skipped; `e` itself: it reads none of them. */
const HostExpr *host_if_skipped(Arena *arena, const HostExpr *e);
bool reads_losses(const HostExpr *e); /* or a norm, which nobody knows ahead; NULL: it does not */
/* Numbers from lo to hi, and perhaps what is none. */
typedef struct HostRange {
    double lo, hi;
    bool nan;
} HostRange;
/* A range that holds every value while each variable is in its own; it may be too large. */
HostRange host_range(const HostExpr *e, const HostRange vars[HV_COUNT]);
void host_print(Buf *out, const HostExpr *e); /* fully parenthesised, reads back */
void host_print_number(Buf *out, double x);   /* like buf_number, and exact for -0, inf and nan */
/* Moves *text past the expression; NULL when it is malformed. */
const HostExpr *host_read(Arena *arena, const char **text);
const char *host_var_name(HostVar var);  /* "step", "train.loss", ... */
HostOp host_op_called(const char *name); /* "exp"; HO_CONST: there is none */
/* As C: "HV_STEP"; "pow(a, b)" of operands a, b and c. */
const char *host_var_c(HostVar var);
const char *host_op_c(HostOp op);

#endif
