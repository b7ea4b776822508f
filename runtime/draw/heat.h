/* heat.h - matrices as coloured cells, in one SVG picture.
 *
 * In:  panels of numbers with one scale.   Out: a text that any browser shows, light or dark as the reader has it.
 * The one idea: colours are steps of equal distance for the eye (between two colours in OKLab), from the middle to both sides
 * where numbers have a sign, so that 0 is the colour of the page and equal sizes are equally strong.
 */
#ifndef VWN_HEAT_H
#define VWN_HEAT_H

#include "compiler/base/base.h"

typedef struct HeatAxis {
    size_t n;
    const char *const *label; /* of each; NULL: none stands there */
    const bool *begins;       /* a line in front of it, as of the first segment of a source; NULL: no lines */
    const char *title;
} HeatAxis;
typedef struct HeatPanel {
    const char *title;
    const double *v; /* [rows, columns]; NaN: no cell */
} HeatPanel;
typedef struct Heat {
    const char *title;
    HeatAxis row, column; /* of all panels */
    const HeatPanel *panel;
    size_t n;
    bool is_signed; /* numbers below 0 have colours of their own */
    double most;    /* the end of the scale; 0: the largest size among the numbers */
    bool part; /* of a page that has heat_style(), which says elsewhere what the picture is: small enough for a phone */
} Heat;
/* The rules for colours, light and dark, for the pictures of a page. */
void heat_style(Buf *out);
/* Appends `<svg ...>...</svg>\n`. Cells that are large enough show their number, all say it when pointed at. */
void heat_svg(Buf *out, const Heat *h);

#endif
