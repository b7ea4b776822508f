/* fit.c - see fit.h: least squares by Levenberg and Marquardt's method. */
#include "fit.h"

#include <math.h>
#include <stddef.h>

static const struct {
    const char *name;
    size_t at;
} constants[FIT_CONSTANTS] = {{"copy", offsetof(Gpu, copy)},
                              {"l2", offsetof(Gpu, l2)},
                              {"reached", offsetof(Gpu, reached)},
                              {"issue", offsetof(Gpu, issue)},
                              {"together", offsetof(Gpu, together)},
                              {"beyond", offsetof(Gpu, beyond)},
                              {"uncovered", offsetof(Gpu, uncovered)},
                              {"ramp", offsetof(Gpu, ramp)},
                              {"product_rate", offsetof(Gpu, product_rate)},
                              {"product_half", offsetof(Gpu, product_half)},
                              {"product_end", offsetof(Gpu, product_end)}};
#define FAR   0.15 /* a kernel that is further off counts less */
#define PRIOR 0.5  /* how far constants are taken to be from the table's, in logarithms */
#define NOISE 0.01 /* of a measurement, at least */
enum { STEPS = 60, N = FIT_CONSTANTS };

static double *constant(Gpu *g, int i) { return (double *)((char *)g + constants[i].at); }
static double value(const Gpu *g, int i) { return *(const double *)((const char *)g + constants[i].at); }

double fit_seconds(const Gpu *gpu, const FitKernel *k)
{
    if (k->m > 0)
        return perf_product(gpu, k->m, k->n, k->k, k->batch, k->half);
    if (!k->perf.blocks)
        return k->perf.bytes / gpu->copy + gpu->ramp;
    Perf p = k->perf;
    perf_time(gpu, &p);
    return p.seconds;
}

static double residual(const Gpu *g, const FitKernel *k) { return log(fit_seconds(g, k) / k->seconds); }

static double weight(double r) { return fabs(r) <= FAR ? 1 : FAR / fabs(r); }

static Gpu moved(const Gpu *table, const double x[N])
{
    Gpu g = *table;
    for (int i = 0; i < N; i++)
        *constant(&g, i) *= exp(x[i]);
    return g;
}

/* What is made small: squares of what is left, of far ones its size, and how far constants have
 * moved. */
static double loss(const Gpu *table, const FitKernel *k, size_t n, double noise, const double x[N])
{
    const Gpu g = moved(table, x);
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        const double r = residual(&g, &k[i]);
        sum += fabs(r) <= FAR ? r * r : FAR * (2 * fabs(r) - FAR);
    }
    for (int i = 0; i < N; i++)
        sum += x[i] * x[i] * noise * noise / PRIOR / PRIOR;
    return sum;
}

/* Of the system a y = b, where a is symmetric and positive: y, or with `b` NULL the diagonal of the
 * inverse. */
static void solve(double a[N][N], const double *b, double y[N])
{
    double l[N][N] = {{0}};
    for (int i = 0; i < N; i++)
        for (int j = 0; j <= i; j++) {
            double s = a[i][j];
            for (int k = 0; k < j; k++)
                s -= l[i][k] * l[j][k];
            l[i][j] = i == j ? sqrt(fmax(s, 1e-300)) : s / l[j][j];
        }
    for (int column = 0; column < (b ? 1 : N); column++) {
        double z[N], w[N];
        for (int i = 0; i < N; i++) {
            z[i] = b ? b[i] : i == column;
            for (int k = 0; k < i; k++)
                z[i] -= l[i][k] * z[k];
            z[i] /= l[i][i];
        }
        for (int i = N - 1; i >= 0; i--) {
            w[i] = z[i];
            for (int k = i + 1; k < N; k++)
                w[i] -= l[k][i] * w[k];
            w[i] /= l[i][i];
        }
        for (int i = 0; i < N && b; i++)
            y[i] = w[i];
        if (!b)
            y[column] = w[column];
    }
}

/* a = J'J and b = -J'r, with weights and what keeps constants near the table's. */
static void system_of(const Gpu *table, const FitKernel *k, size_t n, double noise, const double x[N], double a[N][N],
                      double b[N])
{
    const double step = 1e-3, near = noise * noise / PRIOR / PRIOR;
    const Gpu here = moved(table, x);
    Gpu beside[N];
    memset(a, 0, sizeof(double[N][N]));
    for (int i = 0; i < N; i++) {
        double y[N];
        memcpy(y, x, sizeof y);
        y[i] += step;
        beside[i] = moved(table, y);
        a[i][i] = near;
        b[i] = -x[i] * near;
    }
    for (size_t c = 0; c < n; c++) {
        const double r = residual(&here, &k[c]), w = weight(r);
        double j[N];
        for (int i = 0; i < N; i++) {
            j[i] = (residual(&beside[i], &k[c]) - r) / step;
            b[i] -= w * j[i] * r;
            for (int h = 0; h <= i; h++)
                a[i][h] += w * j[i] * j[h];
        }
    }
    for (int i = 0; i < N; i++)
        for (int h = 0; h < i; h++)
            a[h][i] = a[i][h];
}

/* From x on, to where the loss is least. */
static void descend(const Gpu *table, const FitKernel *k, size_t n, double noise, double x[N])
{
    double damp = 1e-3, best = loss(table, k, n, noise, x);
    for (int s = 0; s < STEPS && damp < 1e9; s++) {
        double a[N][N], b[N], move[N], to[N];
        system_of(table, k, n, noise, x, a, b);
        for (int i = 0; i < N; i++)
            a[i][i] *= 1 + damp;
        solve(a, b, move);
        for (int i = 0; i < N; i++)
            to[i] = x[i] + fmax(-0.3, fmin(0.3, move[i]));
        const double there = loss(table, k, n, noise, to);
        damp = there < best ? damp / 5 : damp * 4;
        if (there < best) {
            const bool done = best - there < 1e-9 * best;
            best = there;
            memcpy(x, to, sizeof to);
            if (done)
                break;
        }
    }
}

static double rms(const Gpu *g, const FitKernel *k, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += pow(residual(g, &k[i]), 2);
    return n ? sqrt(sum / (double)n) : 0;
}

/* Of what is left the size that half of the kernels keep to, as that of normal noise; whatever a
 * few far ones do. */
static double noise_of(const Gpu *g, FitKernel *k, size_t n)
{
    double least = 0, most = 2;
    for (size_t i = 0; i < n; i++)
        k[i].after = fabs(residual(g, &k[i]));
    for (int step = 0; step < 40; step++) {
        const double middle = (least + most) / 2;
        size_t below = 0;
        for (size_t i = 0; i < n; i++)
            below += k[i].after <= middle;
        *(2 * below < n ? &least : &most) = middle;
    }
    return fmax(NOISE, 1.4826 * most);
}

void fit_constants(const Gpu *table, FitKernel *k, size_t n, Fit *out)
{
    double x[N] = {0}, a[N][N], b[N], inverse[N], noise = 0.05;
    descend(table, k, n, noise, x);
    const Gpu first = moved(table, x);
    noise = noise_of(&first, k, n);
    descend(table, k, n, noise, x);
    *out = (Fit){.gpu = moved(table, x)};
    system_of(table, k, n, noise, x, a, b);
    solve(a, NULL, inverse);
    for (int i = 0; i < N; i++)
        out->constant[i] = (FitConstant){.name = constants[i].name,
                                         .before = value(table, i),
                                         .value = value(&out->gpu, i),
                                         .error = noise * sqrt(inverse[i])};
    out->rms_before = rms(table, k, n);
    out->rms = rms(&out->gpu, k, n);
    for (size_t i = 0; i < n; i++) {
        k[i].before = fit_seconds(table, &k[i]);
        k[i].after = fit_seconds(&out->gpu, &k[i]);
    }
}
