/* growth_metrics.h - how far a grown model has moved from the weights before it (Nexusformer, sections 5.1, C and F).
 *
 * In:  two sets of numbers, or a path of indicators over training.   Out: the paper's indicators.
 * The one idea: the paper names its estimators and no settings; here every setting is an argument, and whoever prints a
 * result prints them with it. Nothing is allocated.
 */
#ifndef VWN_GROWTH_METRICS_H
#define VWN_GROWTH_METRICS_H

#include <stddef.h>
#include <stdint.h>

/* Eq. 15, NOC = integral of min(f, g), with f and g histograms: `bins` bins each on the same range, holding nx and ny
 * numbers. In 0..1; NaN when one of the sets is empty. */
double overlap_of_histograms(const int64_t *x, int64_t nx, const int64_t *y, int64_t ny, size_t bins);
/* The bin of v in lo..hi; the last one holds hi itself. All are in bin 0 where the range is empty. */
size_t histogram_bin(double v, double lo, double hi, size_t bins);

/* The same with Gaussian kernel densities: Scott's bandwidth, s n^(-1/5), for each set, trapezoids between 2,001 points,
 * from three bandwidths below the least to three above the greatest number. NaN when a set has no two different numbers. */
enum { KDE_POINTS = 2001 };
double overlap_of_densities(const double *x, size_t nx, const double *y, size_t ny);

/* U_P: the two-sided p-value of Mann and Whitney's U by the normal approximation, corrected for ties and for continuity.
 * Sorts both sets. 1 where all numbers are the same, NaN when a set is empty. */
double mann_whitney(double *x, size_t nx, double *y, size_t ny);

/* One model of a path: the grown one right after the step, then later ones. */
typedef struct GrowthState {
    double noc, u;               /* given */
    double score;                /* given: of the task, more is better; NaN: not measured */
    double noc_change, u_change; /* eq. 16, 17: relative to the first state */
    double score_change;         /* likewise, by the absolute value of the first */
    double radius;               /* eq. 18: R */
    double log_radius;           /* |ln R|; NaN where R is 0 */
    double z[2];                 /* the two main components of (U_P%, NOC%, score%) */
    double euclidean, grassmann; /* eq. 31 and 30: distances from the first state in those; NaN where undefined */
} GrowthState;
/* Fills what is not given. Components need three states with a score; their columns are centred and not scaled. The
 * Grassmann distance between span{(z, 0), e3} of two states is the angle between the lines through both z: it knows
 * neither their lengths nor their signs. */
void growth_path(GrowthState *s, size_t n);

/* Eq. 19: the line y = w x + b of least squares through n points; *share is the explained share of the variance (R^2 of
 * statistics). False where it is not determined: fewer than three points, or one x alone. */
typedef struct FittedLine {
    double w, b, share;
} FittedLine;
int line_through(const double *x, const double *y, size_t n, FittedLine *line);

#endif
