/* chart_text.c - curves as lines of characters; see chart.h.
 *
 * In:  a chart, and how many columns and rows there are.   Out: lines: the title, the curves between their axes, their names with
 * their signs, what lines upright mean.
 * The one idea: a character of Braille is 2 x 4 dots, so one curve is drawn in dots; where it must be ASCII, or curves must be told
 * apart, in characters. A curve is the straight lines between its points.
 */
#include <math.h>

#include "chart.h"

enum { LEAST_LABEL = 6, SIGNS = 8, UPRIGHT = 255 };
static const char *const sign[2][SIGNS] = {{"*", "o", "+", "x", "#", "@", "%", "&"},
                                           {"●", "○", "▲", "△", "■", "□", "◆", "◇"}};

typedef struct Grid {
    Buf *out;
    const Chart *c;
    ChartRange range;
    int margin;          /* characters left of the axis of y */
    int wide, high;      /* characters */
    int dots_x, dots_y;  /* of a character */
    size_t dotted;       /* the series that is drawn in dots: the first that is no points */
    unsigned char *dot;  /* of each character: the eight dots of Braille, or 1 */
    unsigned char *mark; /* of each character: 1 + the series that stands there, UPRIGHT, or 0 */
    bool unicode;
} Grid;

static const char *sign_of(const Grid *g, size_t series) { return sign[g->unicode][series % SIGNS]; }

static double column(const Grid *g, double x)
{
    return (x - g->range.x0) / (g->range.x1 - g->range.x0) * (g->wide * g->dots_x - 1);
}

/* A point in dots from the left and from above; false: it is not shown. */
static bool place(const Grid *g, double x, double y, double *px, double *py)
{
    const ChartRange *r = &g->range;
    if (!chart_shows(x) || !chart_shows(y) || y < r->y0 || y > r->y1)
        return false;
    *px = column(g, x);
    *py = (r->y1 - y) / (r->y1 - r->y0) * (g->high * g->dots_y - 1);
    return true;
}

static void set_dot(Grid *g, double px, double py, size_t series)
{
    static const unsigned char braille[4][2] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};
    long x = lround(px), y = lround(py), at = y / g->dots_y * g->wide + x / g->dots_x;
    if (series != g->dotted)
        g->mark[at] = (unsigned char)(1 + series % SIGNS);
    else
        g->dot[at] |= g->dots_x == 2 ? braille[y % 4][x % 2] : 1;
}

/* Points, and between neighbours as many as a line needs. */
static void draw(Grid *g, size_t i)
{
    const ChartSeries *s = &g->c->series[i];
    bool pen = false;
    double px = 0, py = 0, qx = 0, qy = 0;
    for (size_t k = 0; k < s->n; k++) {
        bool shown = place(g, s->x[k], s->y[k], &px, &py);
        double far = shown && pen && !s->points ? fmax(fabs(px - qx), fabs(py - qy)) : 0;
        for (int t = 1; t < far; t++)
            set_dot(g, qx + (px - qx) * t / far, qy + (py - qy) * t / far, i);
        if (shown)
            set_dot(g, px, py, i);
        pen = shown;
        qx = px;
        qy = py;
    }
}

static bool in_range(const Grid *g, const ChartMark *m) { return m->x >= g->range.x0 && m->x <= g->range.x1; }

static void draw_upright(Grid *g)
{
    for (size_t i = 0; i < g->c->n_marks; i++)
        for (int y = 0; y < g->high && in_range(g, &g->c->mark[i]); y++)
            g->mark[y * g->wide + lround(column(g, g->c->mark[i].x)) / g->dots_x] = UPRIGHT;
}

static void put_cell(const Grid *g, int at)
{
    if (g->mark[at] && (g->mark[at] != UPRIGHT || !g->dot[at]))
        buf_puts(g->out, g->mark[at] != UPRIGHT ? sign_of(g, g->mark[at] - 1u) : g->unicode ? "┊" : "|");
    else if (!g->dot[at])
        buf_putc(g->out, ' ');
    else if (g->dots_x == 1)
        buf_puts(g->out, sign_of(g, g->dotted));
    else
        buf_put(g->out, (const char[]){(char)0xe2, (char)(0xa0 | g->dot[at] >> 6), (char)(0x80 | (g->dot[at] & 0x3f))},
                3);
}

/* The row in which a value of the axis of y stands. */
static int row_of(const Grid *g, double y)
{
    return (int)lround((g->range.y1 - y) / (g->range.y1 - g->range.y0) * (g->high - 1));
}

static Buf tick_text(const Grid *g, double v, double step)
{
    Buf label = buf_new(g->out->arena);
    chart_tick(&label, fabs(v) < step * 1e-6 ? 0 : v, step);
    return label;
}

/* Each label of the axis of y at its row; the width of the widest. */
static int y_labels(const Grid *g, const char **label)
{
    double first, step = chart_ticks(g->range.y0, g->range.y1,
                                     g->high > 12      ? 6
                                     : g->high / 2 > 1 ? g->high / 2
                                                       : 1,
                                     &first);
    size_t widest = LEAST_LABEL;
    for (double v = first; v <= g->range.y1; v += step) {
        Buf text = tick_text(g, v, step);
        label[row_of(g, v)] = text.s;
        widest = text.n > widest ? text.n : widest;
    }
    return (int)widest;
}

static void rows_of_plot(const Grid *g, const char *const *label)
{
    for (int y = 0; y < g->high; y++) {
        buf_printf(g->out, "%*s %s", g->margin - 1, label[y] ? label[y] : "",
                   g->unicode ? (label[y] ? "┤" : "│") : "|");
        int end = g->wide;
        while (end && !g->dot[y * g->wide + end - 1] && !g->mark[y * g->wide + end - 1])
            end--;
        for (int x = 0; x < end; x++)
            put_cell(g, y * g->wide + x);
        buf_putc(g->out, '\n');
    }
}

static void axis_of_x(const Grid *g)
{
    char *line = NEW_ARRAY(g->out->arena, char, (size_t)g->wide + 1),
         *tick = NEW_ARRAY(g->out->arena, char, (size_t)g->wide + 1);
    memset(line, ' ', (size_t)g->wide);
    memset(tick, 0, (size_t)g->wide);
    double first, step = chart_x_ticks(g->c, &g->range, g->wide / 12 > 2 ? g->wide / 12 : 2, &first);
    int free = 0, n = g->wide;
    for (double v = first; v <= g->range.x1 + step * 1e-9; v += step) {
        Buf label = tick_text(g, v, step);
        int x = (int)(lround(column(g, v)) / g->dots_x), size = (int)label.n, at = x - size / 2;
        at = at + size > g->wide ? g->wide - size : at < 0 && !free ? 0 : at;
        if (x < 0 || x >= g->wide || at < free || at < 0)
            continue;
        tick[x] = 1;
        memcpy(line + at, label.s, label.n);
        free = at + size + 1;
    }
    buf_printf(g->out, "%*s%s", g->margin, "", g->unicode ? "└" : "+");
    for (int x = 0; x < g->wide; x++)
        buf_puts(g->out, g->unicode ? (tick[x] ? "┬" : "─") : tick[x] ? "+" : "-");
    while (n && line[n - 1] == ' ')
        n--;
    buf_printf(g->out, "\n%*s%.*s\n", g->margin + 1, "", n, line);
}

typedef struct Names {
    Buf text;
    int at, lines, columns;
} Names;

static int width_of(const char *s)
{
    int n = 0;
    for (; *s; s++)
        n += ((unsigned char)*s & 0xc0) != 0x80;
    return n;
}

/* A piece goes on the next line where this one is full, and to its beginning where it is long. */
static void put_name(Names *n, const char *name)
{
    int size = width_of(name), indent = LEAST_LABEL + 2 + size < n->columns ? LEAST_LABEL + 2 : 0;
    if (n->at && n->at + 3 + size >= n->columns) {
        n->at = 0;
        buf_putc(&n->text, '\n');
    }
    indent = n->at ? 3 : indent;
    n->lines += !n->at;
    buf_printf(&n->text, "%*s%s", indent, "", name);
    n->at += indent + size;
}

/* What the signs mean, and what the axis of x is: "loss   o eval_loss   by step". */
static Names names_of(const Grid *g, int columns)
{
    Arena *a = g->out->arena;
    Names n = {.text = buf_new(a), .columns = columns};
    for (size_t i = 0; i < g->c->n; i++) {
        const char *name = g->c->series[i].name;
        if (*name)
            put_name(&n, i == g->dotted && g->unicode ? name : arena_printf(a, "%s %s", sign_of(g, i), name));
    }
    put_name(&n, arena_printf(a, "by %s", g->c->x_label));
    buf_putc(&n.text, '\n');
    return n;
}

void chart_text(Buf *out, const Chart *c, int columns, int rows, bool unicode)
{
    Grid g = {.out = out,
              .c = c,
              .range = chart_range(c),
              .unicode = unicode,
              .dots_x = unicode ? 2 : 1,
              .dots_y = unicode ? 4 : 1};
    while (g.dotted < c->n && c->series[g.dotted].points)
        g.dotted++;
    Names below = names_of(&g, columns);
    g.high = rows - 2 - below.lines - (c->title ? 1 : 0);
    if (g.high < 1)
        return;
    const char **label = NEW_ARRAY(out->arena, const char *, (size_t)g.high);
    g.margin = y_labels(&g, label) + 1;
    g.wide = columns - 2 - g.margin;
    if (g.wide < 7)
        return;
    size_t cells = (size_t)g.wide * (size_t)g.high;
    g.dot = NEW_ARRAY(out->arena, unsigned char, cells);
    g.mark = NEW_ARRAY(out->arena, unsigned char, cells);
    draw_upright(&g);
    for (size_t i = 0; i < c->n; i++)
        draw(&g, i);
    if (c->title)
        buf_printf(out, "%*s%s\n", g.margin + 1, "", c->title);
    rows_of_plot(&g, label);
    axis_of_x(&g);
    buf_put(out, below.text.s, below.text.n);
    for (size_t i = 0; i < c->n_marks; i++)
        if (in_range(&g, &c->mark[i])) {
            buf_printf(out, "%*s%s at ", g.margin + 1, "", unicode ? "┊" : "|");
            buf_number(out, c->mark[i].x);
            buf_printf(out, ": %s\n", c->mark[i].text);
        }
}
