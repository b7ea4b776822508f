/* chart.h - curves as one SVG picture.
 *
 * In:  series of points, names of the axes.   Out: a text that any browser shows, light or dark as the reader has it.
 * The one idea: a chart is data; what it looks like, ticks and colours and labels that do not cover each other, is
 * decided here alone.
 */
#ifndef VWN_CHART_H
#define VWN_CHART_H

#include "../compiler/base.h"

typedef struct ChartSeries {
    const char *name; /* UTF-8 */
    const double *x, *y;
    const double *low, *high; /* a band around y; NULL: none */
    size_t n;
    bool points; /* a dot at each point */
} ChartSeries;
typedef struct ChartMark {
    double x;
    const char *text; /* beside a vertical line */
    size_t series;    /* whose colour it has */
} ChartMark;
typedef struct Chart {
    const char *title, *x_label, *y_label;
    const ChartSeries *series;
    size_t n;
    const ChartMark *mark;
    size_t n_marks;
    bool falls; /* curves that begin high, as losses do: what lies above all values behind the first twentieth is cut off */
} Chart;
/* Appends `<svg ...>...</svg>\n`. Points that are not finite break a curve. */
void chart_svg(Buf *out, const Chart *c);
/* Round numbers a, a + step ... inside lo..hi, at most `most` of them; the step. lo < hi. */
double chart_ticks(double lo, double hi, int most, double *first);

#endif
