/* host.h - run-time scalars: learning rates, loss weights, triggers.
 *
 * A small float64 expression DAG over what only training knows (`step`, `tokens`, ...),
 * evaluated on the host once per step and handed to kernels as scalars. Nothing in it needs a
 * device.
 */
#ifndef VWN_HOST_H
#define VWN_HOST_H

#include "base.h"

typedef enum HostVar {
    HV_STEP,     /* optimizer steps done before this one; 0 in the first */
    HV_UPDATES,  /* of them those that were not skipped: in fp16 a gradient may leave its range */
    HV_TOKENS,   /* tokens seen before this step */
    HV_EPOCH,    /* tokens / tokens of the training split */
    HV_PROGRESS, /* step / length, 0..1 */
    HV_LENGTH,   /* the run's length in steps */
    HV_SHARE,    /* of the batch that one part of it is: 1 in a whole one */
    HV_LOSS_SCALE, /* what the loss is multiplied by before it is differentiated; 1 but in fp16 */
    HV_TRAIN_LOSS, HV_EVAL_LOSS, HV_GRAD_NORM, /* latest values; infinite before the first */
    HV_NAMED,    /* what a file can ask for ends here */
    HV_MAY_SKIP = HV_NAMED, /* 1: a step whose gradient is not finite is skipped, which halves the scale; 0: it ends the run */
    /* the same where the step before, whose end is not known yet, was skipped */
    HV_SKIPPED_UPDATES, HV_SKIPPED_LOSS_SCALE, HV_SKIPPED_MAY_SKIP,
    HV_COUNT
} HostVar;

typedef enum HostOp {
    HO_CONST, HO_VAR, HO_ADD, HO_SUB, HO_MUL, HO_DIV, HO_POW, HO_MOD, HO_MIN, HO_MAX, HO_NEG,
    HO_EXP, HO_LOG, HO_SQRT, HO_ABS, HO_SIN, HO_COS, HO_TANH, HO_FLOOR, HO_CEIL, HO_ROUND,
    HO_LT, HO_LE, HO_EQ, HO_NOT,
    HO_AND, HO_OR, HO_IF /* a ? b : c, lazily */
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
const HostExpr *host_op(Arena *arena, HostOp op, const HostExpr *a, const HostExpr *b,
                        const HostExpr *c);
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
void host_print_number(Buf *out, double x); /* like buf_number, and exact for -0, inf and nan */
/* Moves *text past the expression; NULL when it is malformed. */
const HostExpr *host_read(Arena *arena, const char **text);
const char *host_var_name(HostVar var);       /* "step", "train.loss", ... */

#endif
