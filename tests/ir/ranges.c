/* ranges.c - ranges of run-time scalars: no value is outside, and stretches of a schedule are decided at once.
 *
 * In:  expressions made at random, and schedules.   Out: every value of every step inside the range of its stretch.
 * When: quick.
 */
#include "compiler/base/host.h"
#include "runtime/train/forecast.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

static uint64_t seed = 1;
static uint32_t draw(uint32_t n)
{
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)(seed >> 33) % n;
}

static const HostExpr *made(Arena *a, int depth)
{
    static const double numbers[] = {0, 1, -1, 2, 3, 0.5, -0.25, 10, 1e-3, 1e9, -7, INFINITY};
    if (!depth || draw(6) == 0)
        return draw(2) ? host_var(a, (HostVar)draw(HV_COUNT)) : host_const(a, numbers[draw(COUNT_OF(numbers))]);
    HostOp op = (HostOp)(HO_ADD + draw(HO_IF - HO_ADD + 1));
    return host_op(a, op, made(a, depth - 1), made(a, depth - 1), made(a, depth - 1));
}

/* Variables as a run has them: steps, tokens and progress grow, the rest stays. */
static void vars_of(double step, double vars[HV_COUNT])
{
    for (int k = 0; k < HV_COUNT; k++)
        vars[k] = 2;
    vars[HV_STEP] = step;
    vars[HV_TOKENS] = 64 * step;
    vars[HV_EPOCH] = step / 100;
    vars[HV_PROGRESS] = step / 1000;
    vars[HV_LENGTH] = 1000;
    vars[HV_TRAIN_LOSS] = INFINITY;
}

static HostRange range_of(const HostExpr *e, double from, double to)
{
    double lo[HV_COUNT], hi[HV_COUNT];
    HostRange vars[HV_COUNT];
    vars_of(from, lo);
    vars_of(to, hi);
    for (int k = 0; k < HV_COUNT; k++)
        vars[k] = (HostRange){lo[k], hi[k], false};
    return host_range(e, vars);
}

static bool holds(const HostExpr *e, double from, double to, HostRange r)
{
    double vars[HV_COUNT];
    for (double step = from; step <= to; step++) {
        vars_of(step, vars);
        double x = host_eval(e, vars);
        if (isnan(x) ? !r.nan : x < r.lo || x > r.hi)
            return false;
    }
    return true;
}

/* How often a forecast has asked for a step. */
static void vars_at(void *user, int64_t step, double vars[HV_COUNT])
{
    ++*(int64_t *)user;
    vars_of((double)step, vars);
}

/* The first step outside is the one that a walk over all steps finds; with few evaluations, that or none. */
static int wrong_forecasts(const HostExpr *e, int64_t from, int64_t end)
{
    int64_t first = from, asked = 0;
    double vars[HV_COUNT];
    for (; first < end; first++) {
        vars_of((double)first, vars);
        double x = host_eval(e, vars);
        if (!(isfinite(x) && x >= 0 && x <= 5))
            break;
    }
    Forecast all = {.e = e, .vars_at = vars_at, .user = &asked, .most = 5, .left = 1000}, few = all;
    int wrong = forecast_outside(&all, from, end) != first;
    wrong += all.left < 1000 - 2 * (end - from);
    asked = 0;
    few.left = 3;
    int64_t found = forecast_outside(&few, from, end);
    return wrong + (found != first && found != end) + (asked > 2 * 3);
}

int main(void)
{
    enum { TRIALS = 40000 };
    int failures = 0, narrow = 0;
    Ctx *ctx = ctx_new(NULL);
    if (!ctx)
        return 1;
    for (int i = 0; i < TRIALS; i++) {
        ArenaMark mark = arena_mark(ctx->program);
        const HostExpr *e = made(ctx->program, 1 + (int)draw(5));
        double from = draw(300), to = from + draw(40);
        HostRange r = range_of(e, from, to);
        narrow += !r.nan && isfinite(r.lo) && isfinite(r.hi);
        if (!holds(e, from, to, r)) {
            Buf b = buf_new(ctx->program);
            host_print(&b, e);
            printf("%s: a value of steps %.0f to %.0f is outside %.17g .. %.17g\n", b.s, from, to, r.lo, r.hi);
            failures++;
        }
        int wrong = i % 8 ? 0 : wrong_forecasts(e, (int64_t)from, (int64_t)to);
        if (wrong)
            printf("%d forecasts of steps %.0f to %.0f are wrong\n", wrong, from, to);
        failures += wrong;
        arena_reset(ctx->program, mark);
    }
    /* half a cosine from 1 to 0.1 over a whole run, and what follows a step */
    const char *cosine = "(0.1 + (0.9 * (0.5 * (1 + cos((3.14159265358979 * min(max((step / 1000), 0), 1)))))))";
    const char *late = "if((step < 100000000000), 0.5, 2)";
    HostRange all = range_of(host_read(ctx->program, &cosine), 0, 1e12);
    const HostExpr *jump = host_read(ctx->program, &late);
    HostRange before = range_of(jump, 0, 99999999999), after = range_of(jump, 1e11, 1e12);
    failures += !(all.lo >= 0.0999 && all.hi <= 1.0001 && !all.nan);
    failures += !(before.lo == 0.5 && before.hi == 0.5 && after.lo == 2 && after.hi == 2);
    failures += narrow < TRIALS / 3;
    printf("%d expressions, %d with a finite range, %d failures\n", TRIALS, narrow, failures);
    ctx_free(ctx);
    return failures > 0;
}
