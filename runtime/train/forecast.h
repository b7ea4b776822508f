/* forecast.h - numbers of a run in steps that are to come.
 *
 * In:  an expression of the run, and what it reads in any step.   Out: the first step in which it leaves a range.
 * The one idea: a number that provably holds over a stretch of steps costs one evaluation, however long the stretch is.
 */
#ifndef VWN_FORECAST_H
#define VWN_FORECAST_H

#include "compiler/base/host.h"

typedef struct Forecast {
    const HostExpr *e;
    /* What expressions read in a step; none of it falls from step to step. */
    void (*vars_at)(void *user, int64_t step, double vars[HV_COUNT]);
    void *user;
    double most;
    int64_t left; /* evaluations; what they do not decide is not found */
} Forecast;
/* The first step of from .. end - 1 in which the number is not from 0 to `most`; `end` when there is none. With `most` = 0: in
 * which a condition is true. */
int64_t forecast_outside(Forecast *f, int64_t from, int64_t end);

#endif
