/* heat.c - see heat.h. */
#include "heat.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "chart.h"

enum {
    STEPS = 12, /* of colour, from the middle to an end */
    MARGIN = 14,
    HEAD = 40,
    PANEL_HEAD = 22,
    GAP = 26,
    FOOT = 44,
    SCALE_HIGH = 12,
    ALONE = 600,
    BESIDE = 270, /* the side of one panel, and of several */
    PART = 300,
    PART_WIDE = 380, /* of a part of a page: the side, the whole */
    PER_LINE = 3,
    DIGIT = 7,
    LABEL_MOST = 26
};

/* ---- colours ---- */

typedef struct Lab {
    double l, a, b;
} Lab;

static Lab lab_of(uint32_t rgb)
{
    double c[3], x[3];
    for (int i = 0; i < 3; i++) {
        double v = (double)(rgb >> (16 - 8 * i) & 255) / 255;
        c[i] = v <= 0.04045 ? v / 12.92 : pow((v + 0.055) / 1.055, 2.4);
    }
    x[0] = cbrt(0.4122214708 * c[0] + 0.5363325363 * c[1] + 0.0514459929 * c[2]);
    x[1] = cbrt(0.2119034982 * c[0] + 0.6806995451 * c[1] + 0.1073969566 * c[2]);
    x[2] = cbrt(0.0883024619 * c[0] + 0.2817188376 * c[1] + 0.6299787005 * c[2]);
    return (Lab){0.2104542553 * x[0] + 0.7936177850 * x[1] - 0.0040720468 * x[2],
                 1.9779984951 * x[0] - 2.4285922050 * x[1] + 0.4505937099 * x[2],
                 0.0259040371 * x[0] + 0.7827717662 * x[1] - 0.8086757660 * x[2]};
}

static void put_colour(Buf *out, Lab x)
{
    double l = pow(x.l + 0.3963377774 * x.a + 0.2158037573 * x.b, 3),
           m = pow(x.l - 0.1055613458 * x.a - 0.0638541728 * x.b, 3),
           s = pow(x.l - 0.0894841775 * x.a - 1.2914855480 * x.b, 3);
    double c[3] = {4.0767416621 * l - 3.3077115913 * m + 0.2309699292 * s,
                   -1.2684380046 * l + 2.6097574011 * m - 0.3413193965 * s,
                   -0.0041960863 * l - 0.7034186147 * m + 1.7076147010 * s};
    buf_putc(out, '#');
    for (int i = 0; i < 3; i++) {
        double v = c[i] <= 0.0031308 ? 12.92 * c[i] : 1.055 * pow(c[i], 1 / 2.4) - 0.055;
        buf_printf(out, "%02x", (unsigned)lround(fmin(fmax(v, 0), 1) * 255));
    }
}

/* Classes p0.. from the colour of the page to `high`, n1.. to `low`; numbers on them in black or white. */
static void palette(Buf *out, uint32_t page, uint32_t high, uint32_t low)
{
    Lab from = lab_of(page);
    for (int sign = 0; sign < 2; sign++) {
        Lab to = lab_of(sign ? low : high);
        for (int i = sign; i <= STEPS; i++) {
            double t = (double)i / STEPS;
            Lab x = {from.l + t * (to.l - from.l), from.a + t * (to.a - from.a), from.b + t * (to.b - from.b)};
            buf_printf(out, ".h .%c%d{fill:", sign ? 'n' : 'p', i);
            put_colour(out, x);
            buf_printf(out, "}.h .%c%dt{fill:%s}", sign ? 'n' : 'p', i, x.l < 0.6 ? "#fff" : "#111");
        }
    }
}

void heat_style(Buf *out)
{
    buf_puts(out, ".h text{font:11px system-ui,sans-serif;fill:#222}.h .b{fill:#fff}.h .a{stroke:#888;fill:none}.h "
                  ".l{stroke:#bbb}"
                  ".h .t{font-size:14px;font-weight:600}.h .c{text-anchor:middle}.h .e{text-anchor:end}");
    palette(out, 0xffffff, 0xb0182b, 0x2060b0);
    buf_puts(out, "@media(prefers-color-scheme:dark){.h text{fill:#e6e6e6}.h .b{fill:#16181d}.h .a{stroke:#777}.h "
                  ".l{stroke:#555}");
    palette(out, 0x16181d, 0xff8a70, 0x6fb6ff);
    buf_puts(out, "}");
}

/* ---- the picture ---- */

typedef struct HeatFrame {
    Buf *out;
    const Heat *h;
    double most, cell, tall, wide, high; /* a cell, a panel */
    int left;                            /* room for labels of rows */
    size_t per_line;
    bool numbers;
} HeatFrame;

static void put_class(const HeatFrame *f, double v, const char *more)
{
    int step = (int)lround(fmin(fabs(v) / f->most, 1) * STEPS);
    buf_printf(f->out, "class=\"%c%d%s\"", v < 0 && step ? 'n' : 'p', step, more);
}

static void put_number(Buf *out, double v)
{
    char text[32];
    snprintf(text, sizeof text, "%.2f", v);
    buf_puts(out, !strcmp(text, "-0.00") ? "0.00" : text);
}

static void cells(const HeatFrame *f, const HeatPanel *p, double x0, double y0)
{
    Buf *out = f->out;
    for (size_t i = 0; i < f->h->row.n; i++)
        for (size_t k = 0; k < f->h->column.n; k++) {
            double v = p->v[i * f->h->column.n + k], x = x0 + (double)k * f->cell, y = y0 + (double)i * f->tall;
            if (!isfinite(v))
                continue;
            buf_puts(out, "<rect ");
            put_class(f, v, "");
            buf_printf(out, " x=\"%.1f\" y=\"%.1f\" width=\"%.2f\" height=\"%.2f\"><title>%.4g</title></rect>", x, y,
                       f->cell + 0.05, f->tall + 0.05, v);
            if (!f->numbers)
                continue;
            buf_puts(out, "<text ");
            put_class(f, v, "t c");
            buf_printf(out, " x=\"%.1f\" y=\"%.1f\">", x + f->cell / 2, y + f->tall / 2 + 4);
            put_number(out, v);
            buf_puts(out, "</text>\n");
        }
    buf_putc(out, '\n');
    for (size_t i = 1; f->h->row.begins && i < f->h->row.n; i++)
        if (f->h->row.begins[i])
            buf_printf(out, "<path class=\"l\" d=\"M%.1f %.1fh%.1f\"/>", x0, y0 + (double)i * f->tall, f->wide);
    for (size_t k = 1; f->h->column.begins && k < f->h->column.n; k++)
        if (f->h->column.begins[k])
            buf_printf(out, "<path class=\"l\" d=\"M%.1f %.1fv%.1f\"/>", x0 + (double)k * f->cell, y0, f->high);
    buf_printf(out, "<rect class=\"a\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\"/>\n", x0, y0, f->wide,
               f->high);
}

/* Labels, those left out that would cover the one before. */
static void labels(const HeatFrame *f, double x0, double y0, bool rows)
{
    const HeatAxis *a = rows ? &f->h->row : &f->h->column;
    double last = -1e9;
    for (size_t i = 0; i < a->n; i++) {
        if (!a->label || !a->label[i])
            continue;
        double at = ((double)i + 0.5) * (rows ? f->tall : f->cell),
               room = rows ? 12 : 4 + DIGIT * (double)strlen(a->label[i]);
        if (at - last < room)
            continue;
        last = at;
        if (rows)
            buf_printf(f->out, "<text class=\"e\" x=\"%.1f\" y=\"%.1f\">", x0 - 6, y0 + at + 4);
        else
            buf_printf(f->out, "<text class=\"c\" x=\"%.1f\" y=\"%.1f\">", x0 + at, y0 + f->high + 14);
        char cut[LABEL_MOST + 4];
        snprintf(cut, sizeof cut, strlen(a->label[i]) > LABEL_MOST ? "%.25s.." : "%s", a->label[i]);
        xml_text(f->out, cut);
        buf_puts(f->out, "</text>\n");
    }
}

static void scale(const HeatFrame *f, double x, double y)
{
    int first = f->h->is_signed ? -STEPS : 0, n = STEPS - first + 1;
    double wide = 240.0 / n;
    for (int i = 0; i < n; i++) {
        int at = first + i;
        buf_printf(f->out, "<rect class=\"%c%d\" x=\"%.1f\" y=\"%.1f\" width=\"%.2f\" height=\"%d\"/>",
                   at < 0 ? 'n' : 'p', abs(at), x + i * wide, y, wide + 0.05, SCALE_HIGH);
    }
    buf_printf(f->out, "<rect class=\"a\" x=\"%.1f\" y=\"%.1f\" width=\"240\" height=\"%d\"/>\n", x, y, SCALE_HIGH);
    const double mark[] = {f->h->is_signed ? -f->most : 0, f->h->is_signed ? 0 : f->most / 2, f->most};
    for (int i = 0; i < 3; i++)
        buf_printf(f->out, "<text class=\"c\" x=\"%.1f\" y=\"%.1f\">%.3g</text>\n", x + 120.0 * i, y + SCALE_HIGH + 13,
                   mark[i]);
}

static void frame(HeatFrame *f)
{
    const Heat *h = f->h;
    size_t most = h->row.n > h->column.n ? h->row.n : h->column.n, longest = 0;
    f->most = h->most;
    for (size_t i = 0; i < h->n; i++)
        for (size_t k = 0; k < h->row.n * h->column.n && !(h->most > 0); k++)
            f->most = fmax(f->most, isfinite(h->panel[i].v[k]) ? fabs(h->panel[i].v[k]) : 0);
    f->most = f->most > 0 ? f->most : 1;
    double side = h->part ? PART : h->n > 1 ? BESIDE : ALONE;
    f->cell = fmin(side / fmax((double)most, 1), 44);
    f->tall = f->cell;
    if (h->row.n * 2 <= h->column.n) /* few long rows are no squares */
        f->tall = fmax(f->cell, fmin(side / 2 / fmax((double)h->row.n, 1), 24));
    f->wide = f->cell * (double)h->column.n;
    f->high = f->tall * (double)h->row.n;
    f->numbers = f->cell >= 30 && f->tall >= 14;
    f->per_line = h->n < PER_LINE ? h->n : PER_LINE;
    for (size_t i = 0; h->row.label && i < h->row.n; i++)
        longest = h->row.label[i] && strlen(h->row.label[i]) > longest ? strlen(h->row.label[i]) : longest;
    longest = longest > LABEL_MOST ? LABEL_MOST : longest;
    f->left = MARGIN + 16 + (int)longest * DIGIT;
}

void heat_svg(Buf *out, const Heat *h)
{
    HeatFrame f = {.out = out, .h = h};
    frame(&f);
    size_t lines = (h->n + f.per_line - 1) / f.per_line;
    double step_x = f.wide + GAP + 20, step_y = f.high + PANEL_HEAD + GAP;
    double wide = fmax(f.left + step_x * (double)f.per_line + MARGIN, 2 * MARGIN + 9.0 * (double)strlen(h->title));
    wide = h->part ? PART_WIDE : fmax(wide, f.left + 262.0 + DIGIT * (double)strlen(h->column.title) + MARGIN);
    double head = h->part ? 0 : HEAD, high = head + step_y * (double)lines + FOOT + (h->part ? 16 : 0);
    double upright = DIGIT * (double)strlen(h->row.title); /* beside the first panels, below the title */
    double middle = head + fmax(PANEL_HEAD + f.high / 2, upright / 2);
    high = fmax(high, middle + upright / 2 + 4);
    buf_printf(out,
               "<svg class=\"h\" xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 %.0f %.0f\" width=\"%.0f\" "
               "role=\"img\">\n<title>",
               wide, high, wide);
    xml_text(out, h->title);
    buf_puts(out, "</title>\n");
    buf_printf(out, "<rect class=\"b\" width=\"%.0f\" height=\"%.0f\"/>\n", wide, high);
    if (!h->part) {
        buf_puts(out, "<style>");
        heat_style(out);
        buf_printf(out, "</style>\n<text class=\"t\" x=\"%d\" y=\"24\">", MARGIN);
        xml_text(out, h->title);
        buf_puts(out, "</text>\n");
    }
    for (size_t i = 0; i < h->n; i++) {
        double x = f.left + step_x * (double)(i % f.per_line),
               y = head + PANEL_HEAD + step_y * (double)(i / f.per_line);
        buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\">", x, y - 7);
        xml_text(out, h->panel[i].title);
        buf_puts(out, "</text>\n");
        cells(&f, &h->panel[i], x, y);
        labels(&f, x, y, false);
        if (i % f.per_line == 0)
            labels(&f, x, y, true);
    }
    double foot = head + step_y * (double)lines + 12, beside = h->part ? 0 : 262;
    scale(&f, f.left, foot + (h->part ? 16 : 0));
    buf_printf(out, "<text x=\"%.1f\" y=\"%.1f\">", f.left + beside, foot + (h->part ? 2 : 10));
    xml_text(out, h->column.title);
    buf_puts(out, "</text>\n");
    buf_printf(out, "<text transform=\"translate(14 %.0f) rotate(-90)\" class=\"c\">", middle);
    xml_text(out, h->row.title);
    buf_puts(out, "</text>\n</svg>\n");
}
