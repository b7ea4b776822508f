/* chart.c - see chart.h. */
#include "chart.h"

#include <math.h>

#include "runtime/base/json.h"

/* LEFT: the least room for ticks; LABEL: of it what the name of the axis takes. RIGHT: the least room for names; NAMED: they begin so far behind the plot. LED: with more curves than colours, lines lead to names. */
enum {
    LEFT = 62,
    LABEL = 20,
    TICK = 8,
    TOP = 40,
    BOTTOM = 50,
    COLOURS = 8,
    LINE = 15,
    RIGHT = 150,
    NAMED = 27,
    LED = COLOURS
};

typedef struct ChartFrame {
    Buf *out;
    const Chart *c;
    ChartRange range;
    int wide, high, left, right; /* left, right: the room for ticks, for names */
} ChartFrame;

double chart_ticks(double lo, double hi, int most, double *first)
{
    static const double round[] = {1, 2, 5, 10};
    double raw = (hi - lo) / most, unit = pow(10, floor(log10(raw))), step = 10 * unit;
    for (int i = 3; i >= 0; i--)
        if (round[i] * unit >= raw * (1 - 1e-9))
            step = round[i] * unit;
    *first = ceil(lo / step - 1e-9) * step;
    return step;
}

static double at_x(const ChartFrame *f, double x)
{
    return f->left + (x - f->range.x0) / (f->range.x1 - f->range.x0) * (f->wide - f->left - f->right);
}

static double at_y(const ChartFrame *f, double y)
{
    return f->high - BOTTOM - (y - f->range.y0) / (f->range.y1 - f->range.y0) * (f->high - TOP - BOTTOM);
}

void xml_text(Buf *out, const char *s)
{
    uint32_t code;
    for (size_t n = strlen(s), k; n; s += k, n -= k) {
        size_t good = utf8_read(s, n, &code);
        k = good ? good : 1;
        if (!good)
            buf_puts(out, "\xef\xbf\xbd");
        else if (*s == '&')
            buf_puts(out, "&amp;");
        else if (*s == '<')
            buf_puts(out, "&lt;");
        else if (*s == '>')
            buf_puts(out, "&gt;");
        else if (*s == '"')
            buf_puts(out, "&quot;");
        else if (code >= ' ' && code != 0x7f && code != 0xfffe && code != 0xffff)
            buf_put(out, s, k);
        else if (code == '\n')
            buf_putc(out, '\n');
    }
}

void chart_tick(Buf *out, double v, double step)
{
    static const char *const unit[] = {"", "k", "M", "G", "T", "P", "E"};
    double most = fmax(fabs(v), step);
    int k = 0;
    if (most >= 1e21) {
        buf_printf(out, "%.3g", v);
        return;
    }
    while (most >= (k ? 999.5 : 9999.5) && k < 6) {
        most /= 1000;
        v /= 1000;
        step /= 1000;
        k++;
    }
    int digits = step < 1 ? (int)ceil(-log10(step) - 1e-9) : 0;
    if (digits > 6)
        buf_printf(out, "%.3g%s", v, v == 0 ? "" : unit[k]);
    else
        buf_printf(out, "%.*f%s", digits, v == 0 ? 0.0 : v, v == 0 ? "" : unit[k]);
}

/* How wide a text is at 12 px, about, and rather more. */
static double text_wide(const char *s)
{
    uint32_t code;
    double wide = 0;
    for (size_t n = strlen(s), k; n; s += k, n -= k) {
        size_t good = utf8_read(s, n, &code);
        k = good ? good : 1;
        if (!good || code >= 0x1100)
            wide += 12.5;
        else if (strchr("ijlfrtI.,:;'|!()[] ", (int)code) && code < 0x80)
            wide += 5;
        else
            wide += code < 0x80 && strchr("mwMW@%", (int)code) ? 12 : code >= 'A' && code <= 'Z' ? 9 : 7.6;
    }
    return wide;
}

/* ---- what is shown ---- */

/* Between numbers that differ by their last digits there is no room for ticks. */
static void widen(double *lo, double *hi)
{
    static const double NEAR = 1e-12, LEAST = 1e-300;
    double size = fmax(fabs(*lo), fabs(*hi));
    if (!(*hi - *lo > fmax(NEAR * size, LEAST))) {
        double at = chart_shows(*lo) ? *lo : 0, by = fabs(at) > LEAST ? fabs(at) * 0.1 : 1;
        *lo = at - by;
        *hi = at + by;
    }
}

ChartRange chart_range(const Chart *c)
{
    ChartRange r = {INFINITY, -INFINITY, INFINITY, -INFINITY};
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < c->series[i].n; k++)
            if (chart_shows(c->series[i].x[k]) && chart_shows(c->series[i].y[k])) {
                r.x0 = fmin(r.x0, c->series[i].x[k]);
                r.x1 = fmax(r.x1, c->series[i].x[k]);
            }
    widen(&r.x0, &r.x1);
    double from = c->falls ? r.x0 + 0.05 * (r.x1 - r.x0) : r.x0;
    for (size_t i = 0; i < c->n; i++) {
        const ChartSeries *s = &c->series[i];
        for (size_t k = 0; k < s->n; k++)
            if (chart_shows(s->x[k]) && chart_shows(s->y[k]) && s->x[k] >= from) {
                r.y0 = fmin(r.y0, s->low && chart_shows(s->low[k]) ? s->low[k] : s->y[k]);
                r.y1 = fmax(r.y1, s->high && chart_shows(s->high[k]) ? s->high[k] : s->y[k]);
            }
    }
    widen(&r.y0, &r.y1);
    double room = 0.04 * (r.y1 - r.y0);
    r.y0 -= room;
    r.y1 += room;
    return r;
}

double chart_x_ticks(const Chart *c, const ChartRange *r, int most, double *first)
{
    double step = chart_ticks(r->x0, r->x1, most, first);
    if (!c->whole || step >= 1)
        return step;
    *first = ceil(r->x0);
    return 1;
}

/* ---- parts of the picture ---- */

void chart_style(Buf *out)
{
    static const char *const light[COLOURS] = {"#0072b2", "#d55e00", "#009e73", "#a3529a",
                                               "#8a6d00", "#2f9fd0", "#555555", "#b0003a"};
    static const char *const dark[COLOURS] = {"#56b4e9", "#ff8c42", "#2fd6a3", "#e09fd6",
                                              "#f0e442", "#9ad9ff", "#bbbbbb", "#ff6f91"};
    buf_puts(out, "text{font:12px system-ui,sans-serif;fill:#222}.b{fill:#fff}.g{stroke:#e2e2e2}.a{stroke:#666}"
                  ".t{font-size:14px;font-weight:600}.m{stroke-dasharray:4 "
                  "4}.d{stroke-width:.7;stroke-opacity:.6}.c{fill:none;stroke-width:1.8;stroke-linejoin:round}");
    for (int i = 0; i < COLOURS; i++)
        buf_printf(out, ".s%d{stroke:%s}.f%d{fill:%s}", i, light[i], i, light[i]);
    buf_puts(out, ".r{fill-opacity:.18}.w{stroke-width:2;stroke-opacity:.45}@media(prefers-color-scheme:dark){text{"
                  "fill:#e6e6e6}.b{fill:#16181d}.g{stroke:#32363f}.a{stroke:#9a9a9a}");
    for (int i = 0; i < COLOURS; i++)
        buf_printf(out, ".s%d{stroke:%s}.f%d{fill:%s}", i, dark[i], i, dark[i]);
    buf_puts(out, "}");
}

static void axes(const ChartFrame *f)
{
    Buf *out = f->out;
    double first, step = chart_ticks(f->range.y0, f->range.y1, 6, &first);
    for (double v = first; v <= f->range.y1; v += step) {
        double y = at_y(f, v);
        buf_printf(out, "<path class=\"g\" d=\"M%d %.1fH%d\"/><text x=\"%d\" y=\"%.1f\" text-anchor=\"end\">", f->left,
                   y, f->wide - f->right, f->left - TICK, y + 4);
        chart_tick(out, fabs(v) < step * 1e-6 ? 0 : v, step);
        buf_puts(out, "</text>\n");
    }
    step = chart_x_ticks(f->c, &f->range, f->wide / 100, &first);
    for (double v = first; v <= f->range.x1 + step * 1e-9; v += step) {
        double x = at_x(f, v);
        buf_printf(out, "<path class=\"a\" d=\"M%.1f %dv5\"/><text x=\"%.1f\" y=\"%d\" text-anchor=\"middle\">", x,
                   f->high - BOTTOM, x, f->high - BOTTOM + 19);
        chart_tick(out, fabs(v) < step * 1e-6 ? 0 : v, step);
        buf_puts(out, "</text>\n");
    }
    buf_printf(out, "<path class=\"a\" d=\"M%d %dH%d\"/>\n<text class=\"t\" x=\"%d\" y=\"24\">", f->left,
               f->high - BOTTOM, f->wide - f->right, f->left);
    xml_text(out, f->c->title);
    buf_printf(out, "</text>\n<text x=\"%d\" y=\"%d\" text-anchor=\"middle\">", (f->left + f->wide - f->right) / 2,
               f->high - 10);
    xml_text(out, f->c->x_label);
    buf_printf(out, "</text>\n<text transform=\"translate(14 %d) rotate(-90)\" text-anchor=\"middle\">",
               (TOP + f->high - BOTTOM) / 2);
    xml_text(out, f->c->y_label);
    buf_puts(out, "</text>\n");
}

static bool shown(const ChartSeries *s, size_t k) { return chart_shows(s->x[k]) && chart_shows(s->y[k]); }

/* Ranges of points, as opposed to those along a curve, stand beside each other where there are several: areas would cover each other. */
static bool is_beside(const Chart *c, const ChartSeries *s)
{
    size_t n = 0;
    for (size_t i = 0; i < c->n; i++)
        n += c->series[i].points && c->series[i].low && c->series[i].high;
    return n > 1 && s->points && s->low && s->high;
}

/* Where point k stands: of several series with ranges each a little aside, in their order. */
static double point_x(const ChartFrame *f, const ChartSeries *s, size_t k)
{
    enum { APART = 5 };
    double x = at_x(f, s->x[k]), gap = INFINITY;
    size_t before = 0, n = 0;
    if (!is_beside(f->c, s))
        return x;
    for (size_t i = 0; i < f->c->n; i++) {
        const ChartSeries *one = &f->c->series[i];
        before += one < s && is_beside(f->c, one);
        n += is_beside(f->c, one);
        for (size_t j = 1; j < one->n; j++)
            if (one->x[j] > one->x[j - 1])
                gap = fmin(gap, at_x(f, one->x[j]) - at_x(f, one->x[j - 1]));
    }
    return x + ((double)before - (double)(n - 1) / 2) * fmin(APART, 0.6 * gap / (double)n);
}

static void ranges(const ChartFrame *f, const ChartSeries *s, size_t colour)
{
    for (size_t k = 0; k < s->n; k++)
        if (shown(s, k) && chart_shows(s->low[k]) && chart_shows(s->high[k]))
            buf_printf(f->out, "<path class=\"w s%zu\" d=\"M%.1f %.1fV%.1f\"/>\n", colour, point_x(f, s, k),
                       at_y(f, s->high[k]), at_y(f, s->low[k]));
}

/* There and back: along the upper edge, then along the lower one. */
static void band(const ChartFrame *f, const ChartSeries *s, size_t colour)
{
    buf_printf(f->out, "<path class=\"r f%zu\" d=\"", colour);
    char pen = 'M';
    for (size_t i = 0; i < 2 * s->n; i++) {
        size_t k = i < s->n ? i : 2 * s->n - 1 - i;
        double y = i < s->n ? s->high[k] : s->low[k];
        if (!shown(s, k) || !chart_shows(y))
            continue;
        buf_printf(f->out, "%c%.1f %.1f", pen, at_x(f, s->x[k]), at_y(f, y));
        pen = 'L';
    }
    buf_puts(f->out, pen == 'L' ? "Z\"/>\n" : "\"/>\n");
}

static void curve(const ChartFrame *f, const ChartSeries *s, size_t colour)
{
    bool pen = false;
    buf_printf(f->out, "<path class=\"c s%zu\" d=\"", colour);
    for (size_t k = 0; k < s->n; k++) {
        if (shown(s, k))
            buf_printf(f->out, "%s%.1f %.1f", pen ? " " : "M", point_x(f, s, k), at_y(f, s->y[k]));
        pen = shown(s, k);
    }
    buf_puts(f->out, "\"/>\n");
    for (size_t k = 0; k < s->n && s->points; k++)
        if (shown(s, k))
            buf_printf(f->out, "<circle class=\"f%zu\" r=\"2.6\" cx=\"%.1f\" cy=\"%.1f\"/>", colour, point_x(f, s, k),
                       at_y(f, s->y[k]));
    buf_puts(f->out, s->points ? "\n" : "");
}

/* From the last point of a curve to where its name stands. */
static void lead(const ChartFrame *f, size_t i, double to)
{
    const ChartSeries *s = &f->c->series[i];
    size_t k = s->n;
    while (k && !shown(s, k - 1))
        k--;
    if (k)
        buf_printf(f->out, "<path class=\"d s%zu\" d=\"M%.1f %.1fL%d %.1f\"/>", i % COLOURS, point_x(f, s, k - 1),
                   fmin(fmax(at_y(f, s->y[k - 1]), TOP), f->high - BOTTOM), f->wide - f->right + 8, to);
}

/* The last point of each series has its name beside it; names that would cover each other move apart, in order. */
static void names(const ChartFrame *f)
{
    size_t n = f->c->n, *order = NEW_ARRAY(f->out->arena, size_t, n + 1);
    double *y = NEW_ARRAY(f->out->arena, double, n + 1);
    for (size_t i = 0; i < n; i++) {
        const ChartSeries *s = &f->c->series[i];
        y[i] = TOP;
        for (size_t k = 0; k < s->n; k++)
            if (shown(s, k))
                y[i] = fmin(fmax(at_y(f, s->y[k]), TOP), f->high - BOTTOM);
        size_t at = i;
        for (; at && y[order[at - 1]] > y[i]; at--)
            order[at] = order[at - 1];
        order[at] = i;
    }
    for (size_t i = 1; i < n; i++)
        y[order[i]] = fmax(y[order[i]], y[order[i - 1]] + LINE);
    double over = n ? fmax(y[order[n - 1]] - (f->high - BOTTOM), 0) : 0;
    for (size_t i = n; i-- > 0 && over > 0;) {
        double most = i + 1 < n ? y[order[i + 1]] - LINE : f->high - BOTTOM;
        y[order[i]] = fmin(y[order[i]], most);
    }
    for (size_t i = 0; i < n; i++) {
        if (n > LED)
            lead(f, i, y[i]);
        buf_printf(f->out, "<path class=\"s%zu\" stroke-width=\"3\" d=\"M%d %.1fh14\"/><text x=\"%d\" y=\"%.1f\">",
                   i % COLOURS, f->wide - f->right + 8, y[i], f->wide - f->right + NAMED, y[i] + 4);
        xml_text(f->out, f->c->series[i].name);
        buf_puts(f->out, "</text>\n");
    }
}

static void marks(const ChartFrame *f)
{
    for (size_t i = 0; i < f->c->n_marks; i++) {
        const ChartMark *m = &f->c->mark[i];
        bool again = m->x < f->range.x0 || m->x > f->range.x1;
        for (size_t k = 0; k < i; k++)
            again |= !strcmp(m->text, f->c->mark[k].text) && fabs(at_x(f, m->x) - at_x(f, f->c->mark[k].x)) < 1;
        if (again)
            continue;
        double x = at_x(f, m->x);
        bool left = x + 4 + text_wide(m->text) > f->wide - (f->c->id || f->c->n > 1 ? f->right : 0) &&
                    x - 4 - text_wide(m->text) > 0;
        buf_printf(f->out, "<path class=\"m s%zu\" d=\"M%.1f %dV%d\"/><text x=\"%.1f\" y=\"%d\"%s>",
                   m->series % COLOURS, x, TOP, f->high - BOTTOM, left ? x - 4 : x + 4, TOP + 10 + (int)(i % 4) * LINE,
                   left ? " text-anchor=\"end\"" : "");
        xml_text(f->out, m->text);
        buf_puts(f->out, "</text>\n");
    }
}

/* The room for ticks: as much as the longest takes, beside the name of the axis. */
static int left_of(const ChartFrame *f)
{
    double first, step = chart_ticks(f->range.y0, f->range.y1, 6, &first), most = 0;
    for (double v = first; v <= f->range.y1; v += step) {
        Buf b = buf_new(f->out->arena);
        chart_tick(&b, fabs(v) < step * 1e-6 ? 0 : v, step);
        most = fmax(most, text_wide(b.s));
    }
    return (int)fmax(LEFT, ceil(most) + TICK + (*f->c->y_label ? LABEL : 4));
}

/* The room for names: as much as the longest takes. In a page they are short. */
static int right_of(const Chart *c)
{
    double most = RIGHT;
    if (c->id)
        return c->n > 1 ? 50 : 16;
    for (size_t i = 0; i < c->n; i++)
        most = fmax(most, NAMED + text_wide(c->series[i].name) + 6);
    return (int)ceil(most);
}

static int wide_of(const Chart *c)
{
    int wide = c->wide ? c->wide : 760;
    return c->id ? wide : wide - RIGHT + right_of(c);
}

/* Each name has a line of its own. */
static int high_of(const Chart *c)
{
    int high = c->high ? c->high : 420, least = TOP + BOTTOM + (int)c->n * LINE;
    return c->id || high > least ? high : least;
}

static void draw(Buf *out, const Chart *c, size_t place, size_t top)
{
    const char *id = c->id ? c->id : arena_printf(out->arena, "area%zu", place);
    ChartFrame frame = {.out = out, .c = c, .range = chart_range(c), .wide = wide_of(c), .high = high_of(c)},
               *f = &frame;
    f->left = left_of(f);
    f->right = right_of(c);
    buf_printf(out, "<g transform=\"translate(0 %zu)\">\n", top);
    axes(f);
    buf_printf(out,
               "<clipPath id=\"%s\"><rect x=\"%d\" y=\"%d\" width=\"%d\" height=\"%d\"/></clipPath>\n<g "
               "clip-path=\"url(#%s)\">\n",
               id, f->left, TOP, f->wide - f->left - f->right + 3, f->high - TOP - BOTTOM, id);
    for (size_t i = 0; i < c->n; i++)
        if (is_beside(c, &c->series[i]))
            ranges(f, &c->series[i], i % COLOURS);
        else if (c->series[i].low && c->series[i].high)
            band(f, &c->series[i], i % COLOURS);
    for (size_t i = 0; i < c->n; i++)
        curve(f, &c->series[i], i % COLOURS);
    buf_puts(out, "</g>\n");
    marks(f);
    if (!c->id || c->n > 1)
        names(f);
    buf_puts(out, "</g>\n");
}

void chart_svg(Buf *out, const Chart *c, size_t n)
{
    int wide = 0;
    size_t high = 0;
    for (size_t i = 0; i < n; i++) {
        wide = wide_of(&c[i]) > wide ? wide_of(&c[i]) : wide;
        high += (size_t)high_of(&c[i]);
    }
    buf_printf(out, "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %d %zu\" role=\"img\">\n<title>", wide,
               high);
    xml_text(out, c->title);
    buf_puts(out, "</title>\n");
    if (!c->id) {
        buf_puts(out, "<style>");
        chart_style(out);
        buf_puts(out, "</style>\n");
    }
    buf_printf(out, "<rect class=\"b\" width=\"%d\" height=\"%zu\"/>\n", wide, high);
    for (size_t i = 0, top = 0; i < n; top += (size_t)high_of(&c[i]), i++)
        draw(out, &c[i], i, top);
    buf_puts(out, "</svg>\n");
}
