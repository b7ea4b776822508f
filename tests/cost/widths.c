/* widths.c - the published width schedules of Variable-Width Transformers, number by number.
 *
 * In:  the settings of table 2 and figure 2 (500M shapes).   Out: claims about solve_widths.
 * The one idea: the lists are written out (tests/support/widths.h), so that a solver that is off by one step of
 * rounding in one layer fails; budgets are recomputed by their definition, not by the solver's.
 * When: quick.
 */
#include "compiler/front/solve.h"
#include "support/widths.h"
#include "harness.h"

/* 0.3 d at 0.75 L, matched to a dense model with three projections of expansion 4. */
static WidthProblem problem(int64_t layers, double base)
{
    return (WidthProblem){.shape = WIDTH_GEOMETRIC,
                          .layers = layers,
                          .base = base,
                          .bottleneck = 0.3 * base,
                          .at = layers * 3 / 4,
                          .match = MATCH_DENSE,
                          .mlp_matrices = 3,
                          .expansion = 4,
                          .round = 32};
}

static double mean(const double *w, int64_t n)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += w[i];
    return sum / (double)n;
}

/* Weights of the blocks minus those of the first and last block that cannot learn. */
static double weights(const double *w, int64_t n, double d, double K, double router, double out)
{
    double sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += K * w[i] * w[i] + router * w[i];
    sum -= w[0] > d ? 3 * w[0] * (w[0] - d) : 0;
    return sum - (w[n - 1] > d ? out * w[n - 1] * (w[n - 1] - d) : 0);
}

/* Forward FLOPs of a sequence of 4096 tokens with 100,263 words, dense blocks. */
static double flops(const double *w, int64_t n, double d)
{
    double s = 4096, sum = 0;
    for (int64_t i = 0; i < n; i++)
        sum += w[i];
    return 2 * s * 100263 * d + 2 * s * weights(w, n, d, 16, 0, 4) + 4 * s * s * sum;
}

static double flops_percent(const double *w, int64_t n, double d)
{
    double same[40];
    for (int64_t i = 0; i < n; i++)
        same[i] = d;
    return 100 * (flops(w, n, d) / flops(same, n, d) - 1);
}

static void check_published(Tally *t, Arena *arena)
{
    for (size_t k = 0; k < COUNT_OF(published); k++) {
        const Published *p = &published[k];
        WidthProblem ask = problem(p->layers, p->base);
        WidthAnswer a = solve_widths(arena, &ask);
        CHECK(t, !a.why, "%s: %s", p->name, a.why ? a.why : "");
        if (a.why)
            continue;
        for (int64_t l = 0; l < p->layers; l++)
            CHECK(t, a.width[l] == p->width[l], "%s layer %lld: %g, not %g", p->name, (long long)l + 1, a.width[l],
                  p->width[l]);
        CHECK(t, fabs(a.ratio_down - p->alpha_down) < 1e-6, "%s: %.8f", p->name, a.ratio_down);
        CHECK(t, fabs(a.ratio_up - p->alpha_up) < 1e-6, "%s: %.8f", p->name, a.ratio_up);
        CHECK(t, fabs(a.continuous[0] - p->first) < 1e-3, "%s: %.6f", p->name, a.continuous[0]);
        CHECK(t, a.continuous[ask.at - 1] == ask.bottleneck, "%s: %.12g", p->name, a.continuous[ask.at - 1]);
        double average = mean(a.width, p->layers);
        CHECK(t, fabs(average - p->average) < 0.005, "%s: average %.4f", p->name, average);
        double percent = flops_percent(a.width, p->layers, p->base);
        CHECK(t, fabs(percent - p->flops_percent) < 0.005, "%s: %.4f %%", p->name, percent);
        double spent = weights(a.continuous, p->layers, p->base, 16, 0, 4);
        double budget = 16 * (double)p->layers * p->base * p->base;
        CHECK(t, fabs(spent / budget - 1) < 1e-12, "%s: off by %g", p->name, spent / budget - 1);
    }
}

/* The order of the released code changes layer 20 at 500M and layer 38 at 2B, nothing else. */
static void check_early_rounding(Tally *t, Arena *arena)
{
    static const double average[] = {576.0, 856.0, 1145.0, 1424.8};
    static const double percent[] = {-3.20, -3.60, -2.60, -2.61};
    for (size_t k = 0; k < COUNT_OF(published); k++) {
        const Published *p = &published[k];
        WidthProblem ask = problem(p->layers, p->base);
        ask.round_early = true;
        WidthAnswer a = solve_widths(arena, &ask);
        for (int64_t l = 0; l < p->layers; l++) {
            double want = p->width[l];
            want = k == 1 && l == 19 ? 544 : k == 3 && l == 37 ? 2080 : want;
            CHECK(t, a.width[l] == want, "%s layer %lld: %g, not %g", p->name, (long long)l + 1, a.width[l], want);
        }
        double got = mean(a.width, p->layers);
        double change = flops_percent(a.width, p->layers, p->base);
        CHECK(t, fabs(got - average[k]) < 0.005, "%s: average %.4f", p->name, got);
        CHECK(t, fabs(change - percent[k]) < 0.0055, "%s: %.4f %%", p->name, change);
    }
}

/* 22 experts of width 512 / 1600 of the layer. */
static void check_experts(Tally *t, Arena *arena)
{
    WidthProblem ask = problem(40, 1600);
    ask.match = MATCH_MOE;
    ask.experts = 22;
    ask.expert_ratio = 512.0 / 1600;
    WidthAnswer a = solve_widths(arena, &ask);
    double hidden = 22 * 512.0 / 1600, average = mean(a.width, 40);
    CHECK(t, fabs(average - 1424.0) < 1e-9, "average %.4f", average);
    double spent = weights(a.continuous, 40, 1600, 4 + 3 * hidden, 22, hidden);
    double budget = 40 * ((4 + 3 * hidden) * 1600 * 1600 + 22 * 1600);
    CHECK(t, fabs(spent / budget - 1) < 1e-12, "off by %g", spent / budget - 1);
    CHECK(t, a.width[0] == 3040 && a.width[29] == 480 && a.width[39] == 3040, "%g %g %g", a.width[0], a.width[29],
          a.width[39]);
}

/* Other shapes at 500M: figure 2. */
static void check_shapes(Tally *t, Arena *arena)
{
    static const struct {
        const char *name;
        WidthShape shape;
        int64_t at;
        double bottleneck, first, average, percent;
    } row[] = {
        {"V", WIDTH_GEOMETRIC, 1, 0.3, 0, 850.67, -3.49},
        {"^", WIDTH_GEOMETRIC, 24, 0.3, 0, 850.67, -3.23},
        {"diamond", WIDTH_GEOMETRIC, 12, 1.5, 960, 925.33, -0.99},
        {"x in steps", WIDTH_ARITHMETIC, 18, 0.3, 0, 898.67, -1.85},
    };
    for (size_t k = 0; k < COUNT_OF(row); k++) {
        WidthProblem ask = problem(24, 960);
        ask.shape = row[k].shape;
        ask.at = row[k].at;
        ask.bottleneck = row[k].bottleneck * 960;
        ask.first = row[k].first;
        WidthAnswer a = solve_widths(arena, &ask);
        CHECK(t, !a.why, "%s: %s", row[k].name, a.why ? a.why : "");
        if (a.why)
            continue;
        double average = mean(a.width, 24), percent = flops_percent(a.width, 24, 960);
        CHECK(t, fabs(average - row[k].average) < 0.005, "%s: %.4f", row[k].name, average);
        CHECK(t, fabs(percent - row[k].percent) < 0.005, "%s: %.4f %%", row[k].name, percent);
        double spent = weights(a.continuous, 24, 960, 16, 0, 4), budget = 16 * 24 * 960.0 * 960;
        CHECK(t, fabs(spent / budget - 1) < 1e-12, "%s: off by %g", row[k].name, spent / budget - 1);
        CHECK(t, fabs(a.continuous[ask.at - 1] - ask.bottleneck) < 1e-9, "%s", row[k].name);
        for (int64_t l = 2; l < 23 && row[k].shape == WIDTH_GEOMETRIC; l++) {
            double r = l < ask.at ? a.ratio_down : a.ratio_up; /* [l] is layer l + 1 */
            CHECK(t, fabs(a.continuous[l] / a.continuous[l - 1] - r) < 1e-9, "%s layer %lld", row[k].name,
                  (long long)l + 1);
        }
    }
}

/* Without a budget the first width is given: both sides, both directions. */
static void check_given(Tally *t, Arena *arena)
{
    WidthProblem ask = {.shape = WIDTH_GEOMETRIC, .layers = 5, .bottleneck = 256, .at = 3, .first = 64, .round = 8};
    WidthAnswer a = solve_widths(arena, &ask);
    CHECK(t, !a.why && a.ratio_down == 2 && a.ratio_up == 0.5, "%s", a.why ? a.why : "ratios");
    static const double diamond[] = {64, 128, 256, 128, 64};
    for (int l = 0; l < 5; l++)
        CHECK(t, a.width[l] == diamond[l], "layer %d: %g", l + 1, a.width[l]);
    ask =
        (WidthProblem){.shape = WIDTH_ARITHMETIC, .layers = 4, .bottleneck = 400, .at = 4, .first = 1000, .round = 100};
    a = solve_widths(arena, &ask);
    CHECK(t, !a.why && fabs(a.ratio_down + 0.2) < 1e-12 && a.ratio_up == 0, "%g %g", a.ratio_down, a.ratio_up);
    for (int l = 0; l < 4; l++)
        CHECK(t, a.width[l] == 1000 - 200 * l, "layer %d: %g", l + 1, a.width[l]);
    ask = (WidthProblem){.shape = WIDTH_CONSTANT, .layers = 3, .base = 100, .round = 32};
    a = solve_widths(arena, &ask);
    CHECK(t, !a.why && a.width[0] == 96 && a.width[2] == 96 && a.continuous[1] == 100 && a.ratio_down == 1, "constant");
    ask = problem(1, 640);
    ask.at = 1;
    ask.bottleneck = 640;
    a = solve_widths(arena, &ask);
    CHECK(t, !a.why && a.width[0] == 640, "one layer");
    ask = problem(24, 960);
    ask.bottleneck = 960; /* the limit of both x and diamond */
    a = solve_widths(arena, &ask);
    CHECK(t, !a.why && fabs(a.continuous[0] / 960 - 1) < 1e-12, "constant as an x: %.15g", a.why ? 0 : a.continuous[0]);
}

/* A refusal names the argument and says a sentence: lower case, no full stop, the numbers. */
static void refused(Tally *t, Arena *arena, WidthProblem ask, const char *what, const char *part)
{
    WidthAnswer a = solve_widths(arena, &ask);
    CHECK(t, a.why && a.what && !strcmp(a.what, what), "%s / %s, not %s", a.what ? a.what : "-", a.why ? a.why : "-",
          what);
    CHECK(t, a.why && strstr(a.why, part), "%s", a.why ? a.why : "-");
    CHECK(t, a.why && a.why[strlen(a.why) - 1] != '.', "%s", a.why ? a.why : "-");
}

static void check_refusals(Tally *t, Arena *arena)
{
    WidthProblem p = problem(24, 960);
    p.bottleneck = 1152;
    refused(t, arena, p, "bottleneck", "1152 is wider than the base width 960");
    p.at = 12;
    p.bottleneck = 960 * 5; /* layer 12 alone has more weights than the budget */
    p.first = 960;
    refused(t, arena, p, "bottleneck", "4800 leaves nothing of the parameter budget");
    p = problem(24, 960), p.first = 1000;
    refused(t, arena, p, "first", "makes layer 1 1774.65");
    p = problem(24, 960), p.at = 0;
    refused(t, arena, p, "at", "layer 0 is not one of 1..24");
    p.at = 25;
    refused(t, arena, p, "at", "layer 25 is not one of 1..24");
    p = problem(24, 960), p.round = 0;
    refused(t, arena, p, "round", "0");
    p = problem(0, 960);
    refused(t, arena, p, "layers", "0");
    p = problem(24, 0);
    refused(t, arena, p, "base", "0 is not a width");
    p = problem(24, 960), p.bottleneck = -5;
    refused(t, arena, p, "bottleneck", "-5 is not a width");
    p.bottleneck = NAN;
    refused(t, arena, p, "bottleneck", "is not a width");
    p = problem(24, 960), p.bottleneck = 10;
    refused(t, arena, p, "round", "layer 17 is 13.91 wide, which rounds to 0");
    p = problem(24, 960), p.match = MATCH_NONE;
    refused(t, arena, p, "first", "0 is not a width");
    p.first = 960, p.at = 1;
    refused(t, arena, p, "first", "the last layer is");
    p = problem(24, 960), p.expansion = -4;
    refused(t, arena, p, "match", "is not a count");
    p = problem(24, 960), p.match = MATCH_MOE;
    refused(t, arena, p, "match", "must be positive");
    p = problem(1, 960), p.at = 1;
    refused(t, arena, p, "bottleneck", "must have the base width 960");
}

int main(void)
{
    Tally t = {0};
    Ctx *ctx = ctx_new(NULL);
    if (!ctx)
        return 1;
    check_published(&t, ctx->program);
    check_early_rounding(&t, ctx->program);
    check_experts(&t, ctx->program);
    check_shapes(&t, ctx->program);
    check_given(&t, ctx->program);
    check_refusals(&t, ctx->program);
    ctx_free(ctx);
    return finish(&t);
}
