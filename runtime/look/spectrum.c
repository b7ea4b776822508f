/* spectrum.c - see spectrum.h. */
#include "spectrum.h"

#include <math.h>
#include <stdlib.h>

/* One reflection for each row from the last: a becomes d, the diagonal, and e, what stands beside it (e[0] = 0). */
static void tridiagonal(double *restrict a, size_t n, double *restrict d, double *restrict e)
{
    for (size_t i = n; i-- > 1;) {
        double *row = a + i * n, scale = 0, h = 0;
        for (size_t k = 0; k < i; k++)
            scale += fabs(row[k]);
        d[i] = 0;
        if (i == 1 || scale == 0) {
            e[i] = row[i - 1];
            continue;
        }
        for (size_t k = 0; k < i; k++) {
            row[k] /= scale;
            h += row[k] * row[k];
        }
        double f = row[i - 1], g = f >= 0 ? -sqrt(h) : sqrt(h), dot = 0;
        e[i] = scale * g;
        h -= f * g;
        row[i - 1] = f - g;
        for (size_t j = 0; j < i; j++)
            e[j] = 0;
        for (size_t j = 0; j < i; j++) { /* the lower half of a times the row, each number read once */
            enum { SUMS = 4 };
            double part[SUMS] = {0}, x = row[j];
            const double *aj = a + j * n;
            size_t k = 0;
            for (; k + SUMS <= j; k += SUMS)
                for (size_t u = 0; u < SUMS; u++) {
                    part[u] += aj[k + u] * row[k + u];
                    e[k + u] += aj[k + u] * x;
                }
            for (; k < j; k++) {
                part[0] += aj[k] * row[k];
                e[k] += aj[k] * x;
            }
            e[j] += part[0] + part[1] + part[2] + part[3] + aj[j] * x;
        }
        for (size_t j = 0; j < i; j++) {
            e[j] /= h;
            dot += e[j] * row[j];
        }
        double half = dot / (h + h);
        for (size_t j = 0; j < i; j++)
            e[j] -= half * row[j];
        for (size_t j = 0; j < i; j++) {
            double x = row[j], y = e[j], *aj = a + j * n;
            for (size_t k = 0; k <= j; k++)
                aj[k] -= x * e[k] + y * row[k];
        }
    }
    for (size_t i = 0; i < n; i++)
        d[i] = a[i * n + i];
    e[0] = 0;
}

static int falling(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}

/* One sweep from m up to l, with the shift of the two eigenvalues at l. */
static void sweep(double *d, double *e, size_t l, size_t m)
{
    double g = (d[l + 1] - d[l]) / (2 * e[l]), r = sqrt(g * g + 1), s = 1, c = 1, p = 0;
    g = d[m] - d[l] + e[l] / (g + copysign(r, g));
    for (size_t i = m; i-- > l;) {
        double f = s * e[i], b = c * e[i];
        r = sqrt(f * f + g * g); /* of sums of squares of float32: nothing overflows */
        e[i + 1] = r;
        if (r == 0) {
            d[i + 1] -= p;
            e[m] = 0;
            return;
        }
        s = f / r;
        c = g / r;
        g = d[i + 1] - p;
        r = (d[i] - g) * s + 2 * c * b;
        p = s * r;
        d[i + 1] = g + p;
        g = c * r - b;
    }
    d[l] -= p;
    e[l] = g;
    e[m] = 0;
}

int symmetric_eigenvalues(double *a, size_t n, double *d, double *e)
{
    enum { SWEEPS = 60 };
    if (!n)
        return 1;
    tridiagonal(a, n, d, e);
    for (size_t i = 1; i < n; i++)
        e[i - 1] = e[i];
    e[n - 1] = 0;
    for (size_t l = 0; l < n; l++)
        for (int round = 0;; round++) {
            size_t m = l;
            while (m + 1 < n && fabs(e[m]) > 0x1p-53 * (fabs(d[m]) + fabs(d[m + 1])))
                m++;
            if (m == l)
                break;
            if (round == SWEEPS || !isfinite(d[l]) || !isfinite(e[l]))
                return 0;
            sweep(d, e, l, m);
        }
    for (size_t i = 0; i < n; i++)
        if (!isfinite(d[i]))
            return 0;
    qsort(d, n, sizeof *d, falling);
    return 1;
}

double normalized_entropy(const double *value, size_t n, double least, size_t *r)
{
    double sum = 0, h = 0;
    *r = 0;
    for (size_t i = 0; i < n; i++)
        sum += value[i] > 0 ? value[i] : 0;
    while (*r < n && value[*r] > least && value[*r] > 0)
        (*r)++;
    for (size_t i = 0; i < *r; i++)
        h -= value[i] / sum * log(value[i] / sum);
    return *r > 1 ? h / log((double)*r) : *r ? 0 : NAN;
}

double participation_ratio(const double *e, size_t n)
{
    double sum = 0, squares = 0;
    for (size_t i = 0; i < n; i++) {
        sum += e[i];
        squares += e[i] * e[i];
    }
    return squares > 0 ? sum * sum / squares : NAN;
}
