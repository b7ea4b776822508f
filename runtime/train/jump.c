/* jump.c - see jump.h.
 *
 * In:  the last losses.     Out: whether one jumps; or what a device has to know to see that.
 * The one idea: one loss more in a sorted window moves its median by one place at most, so three of the others and that
 * one are enough.
 */
#include "jump.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { UNDER_WAY = 200 }; /* steps */

static int ascending(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

double jump_median(const Progress *p)
{
    double sorted[RECENT];
    memcpy(sorted, p->recent, sizeof sorted);
    qsort(sorted, RECENT, sizeof *sorted, ascending);
    return 0.5 * (sorted[RECENT / 2 - 1] + sorted[RECENT / 2]);
}

bool jump_is(const Progress *p, double loss)
{
    if (p->step < UNDER_WAY || p->n_recent < RECENT)
        return false;
    double median = jump_median(p);
    return loss > 4 * median && loss > median + 2;
}

void jump_known(const Progress *p, int64_t ahead, double known[3])
{
    enum { KNOWN = RECENT - 1 }; /* the device has the last one */
    double sorted[KNOWN];
    int n = p->n_recent - (ahead ? 0 : 1);
    known[0] = known[1] = known[2] = INFINITY;
    if (p->step + ahead < UNDER_WAY || n < KNOWN)
        return;
    memcpy(sorted, p->recent + n - KNOWN, sizeof sorted);
    qsort(sorted, KNOWN, sizeof *sorted, ascending);
    memcpy(known, sorted + KNOWN / 2 - 1, 3 * sizeof *known);
}
