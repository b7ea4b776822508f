/* growth_metrics.c - see growth_metrics.h. */
#include "growth_metrics.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* ---- overlap ---- */

size_t histogram_bin(double v, double lo, double hi, size_t bins)
{
    double at = hi > lo ? (v - lo) / (hi - lo) * (double)bins : 0;
    return at >= (double)bins ? bins - 1 : at > 0 ? (size_t)at : 0;
}

double overlap_of_histograms(const int64_t *x, int64_t nx, const int64_t *y, int64_t ny, size_t bins)
{
    double sum = 0;
    for (size_t i = 0; i < bins && nx && ny; i++)
        sum += fmin((double)x[i] / (double)nx, (double)y[i] / (double)ny);
    return nx && ny ? sum : NAN;
}

typedef struct Density {
    const double *v;
    size_t n;
    double width, lo, hi;
} Density;

static Density density_of(const double *v, size_t n)
{
    Density d = {.v = v, .n = n, .lo = INFINITY, .hi = -INFINITY};
    double mean = 0, square = 0;
    for (size_t i = 0; i < n; i++) {
        mean += v[i] / (double)n;
        d.lo = fmin(d.lo, v[i]);
        d.hi = fmax(d.hi, v[i]);
    }
    for (size_t i = 0; i < n; i++)
        square += (v[i] - mean) * (v[i] - mean);
    d.width = n > 1 && d.hi > d.lo ? sqrt(square / (double)(n - 1)) * pow((double)n, -0.2) : 0;
    return d;
}

static double density_at(const Density *d, double at)
{
    double sum = 0;
    for (size_t i = 0; i < d->n; i++) {
        double u = (at - d->v[i]) / d->width;
        sum += exp(-u * u / 2);
    }
    return sum / ((double)d->n * d->width * sqrt(2 * acos(-1)));
}

double overlap_of_densities(const double *x, size_t nx, const double *y, size_t ny)
{
    Density f = density_of(x, nx), g = density_of(y, ny);
    if (f.width == 0 || g.width == 0)
        return NAN;
    double lo = fmin(f.lo - 3 * f.width, g.lo - 3 * g.width), hi = fmax(f.hi + 3 * f.width, g.hi + 3 * g.width);
    double step = (hi - lo) / (KDE_POINTS - 1), sum = 0;
    for (int i = 0; i < KDE_POINTS; i++) {
        double at = lo + step * i, least = fmin(density_at(&f, at), density_at(&g, at));
        sum += i && i < KDE_POINTS - 1 ? least : least / 2;
    }
    return sum * step;
}

/* ---- ranks ---- */

static int ascending(const void *p, const void *q)
{
    double a = *(const double *)p, b = *(const double *)q;
    return (a > b) - (a < b);
}

double mann_whitney(double *x, size_t nx, double *y, size_t ny)
{
    if (!nx || !ny)
        return NAN;
    qsort(x, nx, sizeof *x, ascending);
    qsort(y, ny, sizeof *y, ascending);
    double n1 = (double)nx, n2 = (double)ny, n = n1 + n2, rank = 1, ranks = 0, ties = 0;
    for (size_t i = 0, k = 0; i < nx || k < ny;) {
        double least = i < nx && (k == ny || x[i] <= y[k]) ? x[i] : y[k], of_x = 0, of_y = 0;
        for (; i < nx && x[i] == least; i++)
            of_x++;
        for (; k < ny && y[k] == least; k++)
            of_y++;
        double t = of_x + of_y;
        ranks += of_x * (rank + (t - 1) / 2);
        ties += t * t * t - t;
        rank += t;
    }
    double u = ranks - n1 * (n1 + 1) / 2, mean = n1 * n2 / 2;
    double variance = n1 * n2 / 12 * (n + 1 - ties / (n * (n - 1)));
    double z = variance > 0 ? fmax(fabs(u - mean) - 0.5, 0) / sqrt(variance) : 0;
    return erfc(z / sqrt(2));
}

/* ---- a path ---- */

static double relative(double now, double first) { return (now - first) / fabs(first); }

/* Turns the symmetric matrix until its off-diagonal elements vanish (Jacobi); column k of v is the vector of a[k][k]. */
static void eigenvectors(double a[3][3], double v[3][3])
{
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++)
            v[i][k] = i == k;
    for (int sweep = 0; sweep < 30; sweep++)
        for (int p = 0; p < 2; p++)
            for (int q = p + 1; q < 3; q++) {
                double angle = 0.5 * atan2(2 * a[p][q], a[p][p] - a[q][q]), c = cos(angle), s = sin(angle);
                for (int i = 0; i < 3; i++) {
                    double ip = a[i][p], iq = a[i][q];
                    a[i][p] = c * ip + s * iq;
                    a[i][q] = c * iq - s * ip;
                }
                for (int i = 0; i < 3; i++) {
                    double pi = a[p][i], qi = a[q][i], vp = v[i][p], vq = v[i][q];
                    a[p][i] = c * pi + s * qi;
                    a[q][i] = c * qi - s * pi;
                    v[i][p] = c * vp + s * vq;
                    v[i][q] = c * vq - s * vp;
                }
            }
}

/* The two main components of every state. */
static void components(GrowthState *s, size_t n)
{
    double mean[3] = {0}, a[3][3] = {{0}}, v[3][3];
    for (size_t t = 0; t < n; t++) {
        const double x[3] = {s[t].u_change, s[t].noc_change, s[t].score_change};
        for (int k = 0; k < 3; k++)
            mean[k] += x[k] / (double)n;
    }
    for (size_t t = 0; t < n; t++) {
        const double x[3] = {s[t].u_change - mean[0], s[t].noc_change - mean[1], s[t].score_change - mean[2]};
        for (int i = 0; i < 3; i++)
            for (int k = 0; k < 3; k++)
                a[i][k] += x[i] * x[k];
    }
    eigenvectors(a, v);
    int least = 0, order[2], n_order = 0;
    for (int k = 1; k < 3; k++)
        if (a[k][k] < a[least][least])
            least = k;
    for (int k = 0; k < 3; k++)
        if (k != least)
            order[n_order++] = k;
    if (a[order[0]][order[0]] < a[order[1]][order[1]]) {
        int first = order[0];
        order[0] = order[1];
        order[1] = first;
    }
    for (size_t t = 0; t < n; t++) {
        const double x[3] = {s[t].u_change - mean[0], s[t].noc_change - mean[1], s[t].score_change - mean[2]};
        for (int j = 0; j < 2; j++) {
            s[t].z[j] = 0;
            for (int i = 0; i < 3; i++)
                s[t].z[j] += x[i] * v[i][order[j]];
        }
    }
}

static double line_angle(const double a[2], const double b[2])
{
    double la = hypot(a[0], a[1]), lb = hypot(b[0], b[1]);
    if (la == 0 || lb == 0)
        return NAN;
    return acos(fmin(fabs(a[0] * b[0] + a[1] * b[1]) / (la * lb), 1));
}

void growth_path(GrowthState *s, size_t n)
{
    bool scored = n >= 3;
    for (size_t t = 0; t < n; t++) {
        s[t].noc_change = relative(s[t].noc, s[0].noc);
        s[t].u_change = relative(s[t].u, s[0].u);
        s[t].score_change = relative(s[t].score, s[0].score);
        s[t].radius = hypot(s[t].noc_change, s[t].u_change);
        s[t].log_radius = s[t].radius > 0 ? fabs(log(s[t].radius)) : NAN;
        s[t].z[0] = s[t].z[1] = s[t].euclidean = s[t].grassmann = NAN;
        scored = scored && isfinite(s[t].score_change) && isfinite(s[t].radius);
    }
    if (!scored)
        return;
    components(s, n);
    for (size_t t = 0; t < n; t++) {
        s[t].euclidean = hypot(s[t].z[0] - s[0].z[0], s[t].z[1] - s[0].z[1]);
        s[t].grassmann = line_angle(s[0].z, s[t].z);
    }
}

int line_through(const double *x, const double *y, size_t n, FittedLine *line)
{
    double mx = 0, my = 0, xx = 0, xy = 0, yy = 0;
    for (size_t i = 0; i < n; i++) {
        mx += x[i] / (double)n;
        my += y[i] / (double)n;
    }
    for (size_t i = 0; i < n; i++) {
        xx += (x[i] - mx) * (x[i] - mx);
        xy += (x[i] - mx) * (y[i] - my);
        yy += (y[i] - my) * (y[i] - my);
    }
    if (n < 3 || xx <= 0)
        return 0;
    line->w = xy / xx;
    line->b = my - line->w * mx;
    line->share = yy > 0 ? xy * xy / (xx * yy) : 1;
    return 1;
}
