/* forecast.c - see forecast.h. */
#include "forecast.h"

#include <math.h>

int64_t forecast_outside(Forecast *f, int64_t from, int64_t end)
{
    double first[HV_COUNT], last[HV_COUNT];
    HostRange vars[HV_COUNT];
    if (from >= end || f->left-- <= 0)
        return end;
    f->vars_at(f->user, from, first);
    if (end - from == 1) {
        double x = host_eval(f->e, first);
        return isfinite(x) && x >= 0 && x <= f->most ? end : from;
    }
    f->vars_at(f->user, end - 1, last);
    for (int k = 0; k < HV_COUNT; k++)
        vars[k] = (HostRange){first[k], last[k], false}; /* none of them falls */
    HostRange r = host_range(f->e, vars);
    if (!r.nan && r.lo >= 0 && isfinite(r.hi) && r.hi <= f->most)
        return end;
    int64_t middle = from + (end - from) / 2, found = forecast_outside(f, from, middle);
    return found < middle ? found : forecast_outside(f, middle, end);
}
