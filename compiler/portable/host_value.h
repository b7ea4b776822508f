/* host_value.h - what run-time scalars read and are computed with.
 *
 * In:  host.def.     Out: the variables' places in a table of numbers; functions that C has not, or in another way.
 * The one idea: the runtime evaluates an expression and an emitted folder compiles it, by the same C.
 */
#ifndef VWN_HOST_VALUE_H
#define VWN_HOST_VALUE_H

#include <math.h>

typedef enum HostVar {
#define VAR(id, name) HV_##id,
#define OP(id, text, operands, infix, value)
#include "host.def"
#undef VAR
#undef OP
    HV_COUNT,
    HV_NAMED = HV_MAY_SKIP /* what a file can ask for is below */
} HostVar;

static inline double host_mod(double a, double b) /* with the sign of b */ { return a - b * floor(a / b); }

static inline double host_min(double a, double b) /* not a number when one of them is not */
{
    return b < a || isnan(b) ? b : a;
}

static inline double host_max(double a, double b) { return b > a || isnan(b) ? b : a; }

#endif
