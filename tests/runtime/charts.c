/* charts.c - pictures of curves whose numbers lie as near together, or as far apart, as float64 allows.
 *
 * In:  pairs of numbers, as a curve's values and as its places.   Out: `N passed, N failed`.
 * The one idea: a picture is small and shows what it is made of, whatever the numbers are: ticks between two neighbours of
 * float64 never come to an end.
 */
#include "runtime/draw/chart.h"
#include "support/harness.h"

#include <math.h>
#include <stdlib.h>

static const double pairs[][2] = {
    {0, 1},
    {1, 1},
    {0, -0.0},
    {1, 1 + 0x1p-52},
    {1 - 0x1p-53, 1},
    {-1, -1 + 0x1p-53},
    {0, 0x1p-1074},
    {0x1p-1074, 0x1p-1073},
    {0, 0x1p-1022},
    {1e-300, 3e-300},
    {9e299, 9e299 * (1 + 0x1p-52)},
    {-9e299, 9e299},
    {-1.7e308, 1.7e308},
    {1.7e308, 1.7e308},
    {1, 1.7e308},
    {4e9, 4e9 + 1},
    {1e15, 1e15 + 0.125},
};

/* Every point of the picture, of which there are n, lies within it: of 760 x 420. */
static bool points_inside(const char *svg, size_t n)
{
    size_t seen = 0;
    for (const char *s = svg; (s = strstr(s, "cx=\"")); seen++) {
        double x = strtod(s + 4, (char **)&s), y = strtod(s + 6, (char **)&s);
        if (!(x >= 0 && x <= 760 && y >= 0 && y <= 420))
            return false;
    }
    return seen == n;
}

static int lines(const char *s)
{
    int n = 0;
    for (; *s; s++)
        n += *s == '\n';
    return n;
}

static void drawn(Harness *t, Ctx *ctx, const double *x, const double *y, const char *what)
{
    const ChartSeries s = {.name = "curve", .x = x, .y = y, .n = 2, .points = true};
    const Chart c = {.title = "title", .x_label = "x", .y_label = "y", .series = &s, .n = 1};
    Buf svg = buf_new(ctx->program);
    chart_svg(&svg, &c, 1);
    CHECK_CASE(t, svg.n < 20000, arena_printf(ctx->program, "%s: a picture of %zu bytes", what, svg.n));
    size_t points = (size_t)chart_shows(x[0] + y[0]) + (size_t)chart_shows(x[1] + y[1]);
    CHECK_CASE(t, points_inside(svg.s, points), arena_printf(ctx->program, "%s: points outside:\n%s", what, svg.s));
    CHECK_CASE(t, !strstr(svg.s, "nan") && !strstr(svg.s, "inf"),
               arena_printf(ctx->program, "%s: no numbers:\n%s", what, svg.s));
    for (int unicode = 0; unicode < 2; unicode++) {
        Buf text = buf_new(ctx->program);
        chart_text(&text, &c, 60, 16, unicode);
        CHECK_CASE(t, text.n < 5000 && lines(text.s) == 16,
                   arena_printf(ctx->program, "%s: %zu bytes:\n%s", what, text.n, text.s));
    }
}

/* A mark is a line and a word at its place: not beside the curve, and not twice in one place. */
static void test_marks(Harness *t)
{
    static const double x[] = {10, 20}, y[] = {1, 2};
    static const ChartMark mark[] = {{9.99, "before", 0}, {10, "first", 0}, {15, "word", 0},
                                     {15, "word", 0},     {15, "other", 0}, {20.01, "behind", 0}};
    const ChartSeries s = {.name = "curve", .x = x, .y = y, .n = 2};
    const Chart c = {.title = "title",
                     .x_label = "x",
                     .y_label = "y",
                     .series = &s,
                     .n = 1,
                     .mark = mark,
                     .n_marks = COUNT_OF(mark)};
    Ctx *ctx = ctx_new(NULL);
    Buf svg = buf_new(ctx->program);
    chart_svg(&svg, &c, 1);
    static const int times[] = {0, 1, 1, 1, 1, 0};
    for (size_t i = 0; i < COUNT_OF(mark); i++) {
        int seen = 0;
        for (const char *at = svg.s; (at = strstr(at, arena_printf(ctx->program, ">%s</text>", mark[i].text))); at++)
            seen++;
        CHECK_CASE(t, seen == times[i],
                   arena_printf(ctx->program, "the mark %s is there %d times", mark[i].text, seen));
    }
    ctx_free(ctx);
}

/* Ranges of several series of points are lines beside each other at every place, none in another's; of one it is an area. */
static void test_ranges(Harness *t)
{
    enum { SERIES = 5, POINTS = 3 };
    static const double x[] = {1, 2, 3}, y[] = {1, 2, 1}, low[] = {0, 1, 0}, high[] = {2, 3, 2};
    static const char *const name[SERIES] = {"a", "b", "c", "d", "e"};
    for (size_t n = 1; n <= SERIES; n++) {
        ChartSeries s[SERIES];
        for (size_t i = 0; i < n; i++)
            s[i] =
                (ChartSeries){.name = name[i], .x = x, .y = y, .low = low, .high = high, .n = POINTS, .points = true};
        const Chart c = {.title = "title", .x_label = "x", .y_label = "y", .series = s, .n = n};
        Ctx *ctx = ctx_new(NULL);
        Buf svg = buf_new(ctx->program);
        chart_svg(&svg, &c, 1);
        double at[SERIES * POINTS], nearest = INFINITY;
        size_t seen = 0;
        for (const char *p = svg.s; (p = strstr(p, "<path class=\"w ")) && seen < COUNT_OF(at); p++)
            at[seen++] = strtod(strstr(p, "d=\"M") + 4, NULL);
        for (size_t i = 0; i < seen; i++)
            for (size_t k = 0; k < i; k++)
                nearest = fmin(nearest, fabs(at[i] - at[k]));
        CHECK_CASE(t, seen == (n > 1 ? n * POINTS : 0) && nearest >= 3,
                   arena_printf(ctx->program, "%zu ranges of %zu series, %g apart", seen, n, nearest));
        CHECK_CASE(t, !strstr(svg.s, "class=\"r ") == (n > 1), arena_printf(ctx->program, "an area of %zu series", n));
        ctx_free(ctx);
    }
}

int main(void)
{
    Harness t = {0};
    test_marks(&t);
    test_ranges(&t);
    static const double plain[] = {3, 5};
    for (volatile size_t i = 0; i < 2 * COUNT_OF(pairs); i++) {
        const double *pair = pairs[i / 2];
        const bool values = i % 2;
        char what[100];
        snprintf(what, sizeof what, "%s %a and %a", values ? "values" : "places", pair[0], pair[1]);
        Ctx *ctx = ctx_new(NULL);
        CtxGuard guard;
        ctx->byte_limit = (size_t)1 << 24;
        bool ended = CTX_TRY(ctx, &guard);
        if (ended) {
            drawn(&t, ctx, values ? plain : pair, values ? pair : plain, what);
            ctx_leave(ctx, &guard);
        }
        CHECK_CASE(&t, ended, what);
        ctx_free(ctx);
    }
    return harness_end(&t);
}
