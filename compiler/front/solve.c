/* solve.c - width schedules over depth.
 *
 * In:  a WidthProblem: shape, depth, base width d, bottleneck d* at layer l*, and a parameter
 *      budget or the first width.
 * Out: one width per layer, before and after rounding, or why there is none.
 * The one idea: a schedule interpolates between its free end x and d*, in the exponent
 * (geometric) or directly (arithmetic). Every width, hence the number of weights, grows with x,
 * so one bisection on x finds the schedule that spends exactly the budget. This is the equation
 * of Variable-Width Transformers, appendix A, without its case distinction over the ends:
 *     K sum d_l^2 + N sum d_l - W(d_1, d_L) = K L d^2 + N L d
 * where W are weights of the first and last layer that nothing feeds or reads, and N (one
 * router column per expert) is 0 for dense layers.
 *
 * The shapes: 1 < l* < L is x (d* < d) or a diamond (d* > d), with d_1 = d_L = x; l* = 1 is V
 * with d_1 = d* and d_L = x; l* = L is ^ with d_1 = x and d_L = d*. Without a budget x is
 * `first`. With a budget `first` is a bound that d_1 must not exceed (0: none). A matched
 * diamond has to be asked for with a bound of at most d: without one, a bottleneck above the
 * base is taken for a mistake.
 *
 * ratio_down and ratio_up are d_l / d_{l-1} before and after l* (geometric, constant), or the
 * step in units of d_1 (arithmetic).
 */
#include "solve.h"

#include <math.h>
#include <stdio.h>

static const double LARGEST_WIDTH = 1099511627776.0; /* 2^40: squares stay far from overflow */
static const int64_t MOST_LAYERS = 1000000;

/* What a layer of width w costs, square w^2 + line w, and the rows of its last projection per
 * width: columns of it that nothing reads cost out w (w - d). */
typedef struct Budget {
    double square, line, out;
} Budget;

static Budget budget_of(const WidthProblem *p)
{
    if (p->match == MATCH_MOE) {
        double hidden = p->experts * p->expert_ratio;
        return (Budget){4 + 3 * hidden, p->experts, hidden};
    }
    double out = p->mlp_matrices > 0 ? p->expansion : 0;
    return (Budget){4 + p->mlp_matrices * p->expansion, 0, out};
}

/* How near layer l (from 1) is to the bottleneck: 1 at l*, 0 at a free end. */
static double nearness(const WidthProblem *p, int64_t l)
{
    if (l == p->at)
        return 1;
    if (l > p->at)
        return (double)(p->layers - l) / (double)(p->layers - p->at);
    return (double)(l - 1) / (double)(p->at - 1);
}

static double width_at(const WidthProblem *p, double x, int64_t l)
{
    double t = nearness(p, l);
    if (p->shape == WIDTH_ARITHMETIC)
        return (1 - t) * x + t * p->bottleneck;
    if (t == 1)
        return p->bottleneck;
    return t == 0 ? x : x * pow(p->bottleneck / x, t);
}

/* Weights that learn: Variable-Width Transformers, appendix A, with W_end in its two parts,
 * since V and ^ have different ends: q, k, v rows of layer 1, columns of the last projection of
 * the last layer. */
static double spent(const WidthProblem *p, const Budget *b, double x)
{
    double sum = 0;
    for (int64_t l = 1; l <= p->layers; l++) {
        double w = width_at(p, x, l);
        sum += (b->square * w + b->line) * w;
    }
    double first = width_at(p, x, 1), last = width_at(p, x, p->layers);
    if (first > p->base)
        sum -= 3 * first * (first - p->base);
    if (last > p->base)
        sum -= b->out * last * (last - p->base);
    return sum;
}

/* The free end that spends the budget, or 0 when the bottleneck alone is over it. */
static double solve_free_end(const WidthProblem *p)
{
    Budget b = budget_of(p);
    double target = (double)p->layers * (b.square * p->base + b.line) * p->base;
    double low = p->base * 1e-9, high = p->base;
    if (spent(p, &b, low) >= target)
        return 0;
    while (spent(p, &b, high) < target)
        high *= 2;
    for (int i = 0; i < 400; i++) { /* down to neighbouring numbers of float64 */
        double mid = low + (high - low) / 2;
        if (mid <= low || mid >= high)
            break;
        if (spent(p, &b, mid) < target)
            low = mid;
        else
            high = mid;
    }
    return high;
}

static WidthAnswer refuse(Arena *arena, const char *what, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
static WidthAnswer refuse(Arena *arena, const char *what, const char *fmt, ...)
{
    char text[200];
    va_list args;
    va_start(args, fmt);
    vsnprintf(text, sizeof text, fmt, args);
    va_end(args);
    return (WidthAnswer){.what = what, .why = arena_copy(arena, text, strlen(text))};
}

static bool is_width(double w) { return w > 0 && w <= LARGEST_WIDTH; } /* false for NaN */
static bool is_count(double n) { return n >= 0 && n <= LARGEST_WIDTH; }

/* What is wrong with the arguments one by one; why is NULL when nothing is. */
static WidthAnswer check_arguments(Arena *arena, const WidthProblem *p)
{
    static const char not_width[] = "%.10g is not a width";
    if (p->layers < 1 || p->layers > MOST_LAYERS)
        return refuse(arena, "layers", "%lld is not a number of layers", (long long)p->layers);
    if (p->round < 1)
        return refuse(arena, "round", "widths cannot be multiples of %lld", (long long)p->round);
    bool needs_base = p->shape == WIDTH_CONSTANT || p->match != MATCH_NONE;
    if (needs_base && !is_width(p->base))
        return refuse(arena, "base", not_width, p->base);
    if (p->shape == WIDTH_CONSTANT)
        return (WidthAnswer){0};
    if (!is_width(p->bottleneck))
        return refuse(arena, "bottleneck", not_width, p->bottleneck);
    if (p->at < 1 || p->at > p->layers)
        return refuse(arena, "at", "layer %lld is not one of 1..%lld", (long long)p->at, (long long)p->layers);
    if ((p->match == MATCH_NONE || p->first != 0) && !is_width(p->first))
        return refuse(arena, "first", not_width, p->first);
    if (p->match == MATCH_DENSE && !(is_count(p->mlp_matrices) && is_count(p->expansion)))
        return refuse(arena, "match", "its number of matrices or expansion is not a count");
    if (p->match == MATCH_MOE && !(is_width(p->experts) && is_width(p->expert_ratio)))
        return refuse(arena, "match", "the number and width of its experts must be positive");
    return (WidthAnswer){0};
}

/* What is wrong with the arguments taken together. */
static WidthAnswer check_shape(Arena *arena, const WidthProblem *p)
{
    if (p->match == MATCH_NONE) {
        if (p->at == 1 && p->layers > 1)
            return refuse(arena, "first",
                          "with the bottleneck at layer 1 it does not say how "
                          "wide the last layer is, which takes `match`");
        if (p->layers == 1 && p->first != p->bottleneck)
            return refuse(arena, "first", "the only layer is the bottleneck, %.10g wide", p->bottleneck);
        return (WidthAnswer){0};
    }
    bool two_sided = p->at > 1 && p->at < p->layers;
    bool diamond = p->first > 0 && p->first <= p->base;
    if (two_sided && p->bottleneck > p->base && !diamond)
        return refuse(arena, "bottleneck", "%.10g is wider than the base width %.10g", p->bottleneck, p->base);
    if (p->layers == 1 && p->bottleneck != p->base)
        return refuse(arena, "bottleneck", "the only layer must have the base width %.10g", p->base);
    return (WidthAnswer){0};
}

static void fill_ratios(const WidthProblem *p, WidthAnswer *a)
{
    const double *w = a->continuous;
    int64_t last = p->layers - 1;
    bool steps = p->shape == WIDTH_ARITHMETIC;
    a->ratio_down = a->ratio_up = steps ? 0 : 1;
    if (p->shape == WIDTH_CONSTANT)
        return;
    if (p->at > 1)
        a->ratio_down = steps ? (w[1] - w[0]) / w[0] : w[1] / w[0];
    if (p->at < p->layers)
        a->ratio_up = steps ? (w[last] - w[last - 1]) / w[0] : w[last] / w[last - 1];
}

/* Rounds to the nearest multiple. The early order scales the schedule to a whole first width,
 * which is what multiplying on from it does. */
static WidthAnswer round_widths(Arena *arena, const WidthProblem *p, WidthAnswer a)
{
    double unit = (double)p->round, scale = 1;
    if (p->round_early)
        scale = floor(a.continuous[0] + 0.5) / a.continuous[0];
    a.width = NEW_ARRAY(arena, double, (size_t)p->layers);
    for (int64_t l = 0; l < p->layers; l++) {
        a.width[l] = floor(a.continuous[l] * scale / unit + 0.5) * unit;
        if (a.width[l] <= 0)
            return refuse(arena, "round", "layer %lld is %.4g wide, which rounds to 0", (long long)l + 1,
                          a.continuous[l]);
    }
    return a;
}

WidthAnswer solve_widths(Arena *arena, const WidthProblem *p)
{
    WidthAnswer a = check_arguments(arena, p);
    bool constant = p->shape == WIDTH_CONSTANT, matched = !constant && p->match != MATCH_NONE;
    if (!a.why && !constant)
        a = check_shape(arena, p);
    if (a.why)
        return a;
    double x = matched && p->layers > 1 ? solve_free_end(p) : p->first;
    if (matched && p->layers > 1 && x == 0)
        return refuse(arena, "bottleneck",
                      "%.10g leaves nothing of the parameter budget to "
                      "the other layers",
                      p->bottleneck);
    a.continuous = NEW_ARRAY(arena, double, (size_t)p->layers);
    for (int64_t l = 1; l <= p->layers; l++)
        a.continuous[l - 1] = constant ? p->base : width_at(p, x, l);
    if (matched && p->first > 0 && a.continuous[0] > p->first * (1 + 1e-9))
        return refuse(arena, "first",
                      "the parameter budget makes layer 1 %.10g wide, more "
                      "than %.10g",
                      a.continuous[0], p->first);
    fill_ratios(p, &a);
    return round_widths(arena, p, a);
}
