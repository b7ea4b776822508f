/* chart.h - curves as an SVG picture, or as characters.
 *
 * In:  series of points, names of the axes.   Out: a text that any browser shows, light or dark as the reader has it; or lines for
 * a terminal.
 * The one idea: a chart is data; what it looks like, ticks and colours and labels that do not cover each other, is
 * decided here alone.
 */
#ifndef VWN_CHART_H
#define VWN_CHART_H

#include "compiler/base/base.h"

typedef struct ChartSeries {
    const char *name; /* UTF-8 */
    const double *x, *y;
    const double *low, *high; /* a band around y; NULL: none */
    size_t n;
    bool points; /* a dot at each point; in characters nothing between them */
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
    int wide, high; /* of the picture; 0: 760 x 420 */
    const char *
        id; /* NULL: a file of its own; else a part of a page that has chart_style(), with names of two letters at most */
    bool whole; /* what is on the axis of x is counted: no ticks between whole numbers */
    bool
        falls; /* curves that begin high, as losses do: what lies above all values behind the first twentieth is cut off */
} Chart;
/* Whether it is a number, and small enough for differences of two to be numbers. */
static inline bool chart_shows(double v) { return v >= -1e300 && v <= 1e300; }
/* The rules for colours, light and dark, for the pictures of a page. */
void chart_style(Buf *out);
/* Appends `<svg ...>...</svg>\n`, the charts below each other; of a part of a page one. Points that chart_shows() says no of break a curve. */
void chart_svg(Buf *out, const Chart *c, size_t n);
/* chart_text.c: the same for a terminal, in at most so many columns and rows, of which there is nothing below 16 and 4; what lines
 * upright mean stands in further rows. `unicode`: with signs that ASCII has not, and the first curve that is no `points` in dots of
 * an eighth of a character; every other curve has a sign of its own. `title` may be NULL. */
void chart_text(Buf *out, const Chart *c, int columns, int rows, bool unicode);
/* What the axes of a picture show: all points, with some room above and below; x0 < x1, y0 < y1. */
typedef struct ChartRange {
    double x0, x1, y0, y1;
} ChartRange;
ChartRange chart_range(const Chart *c);
void chart_tick(Buf *out, double v, double step); /* 12000 as 12k, and 1200 as it is */
/* Text of a user in XML, also between quotes: escaped; control characters are left out, and what is no UTF-8 is U+FFFD. */
void xml_text(Buf *out, const char *s);
/* Round numbers a, a + step ... inside lo..hi, at most `most` of them; the step. lo < hi. */
double chart_ticks(double lo, double hi, int most, double *first);
double chart_x_ticks(const Chart *c, const ChartRange *r, int most,
                     double *first); /* the same for its axis of x, with what `whole` says */

#endif
