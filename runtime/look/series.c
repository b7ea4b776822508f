/* series.c - see series.h. */
#include "series.h"

#include <math.h>
#include <string.h>

SeriesSet series_new(Arena *a, size_t n, size_t positions, double numbers)
{
    SeriesSet s = {.n = n, .sum = NEW_ARRAY(a, double, n + 1), .squares = NEW_ARRAY(a, double, n + 1)};
    double room = numbers / (double)(n + 1);
    s.every = room >= (double)positions ? 1 : (size_t)ceil((double)positions / fmax(room, 64));
    s.room = positions / s.every + 1;
    s.kept = NEW_ARRAY(a, double, n *s.room + 1);
    return s;
}

void series_add(SeriesSet *s, const double *v, size_t positions)
{
    for (size_t t = 0; t < positions; t++, v += s->n, s->seen++) {
        bool keep = s->seen % s->every == 0 && s->n_kept < s->room;
        for (size_t i = 0; i < s->n; i++) {
            s->sum[i] += v[i];
            s->squares[i] += v[i] * v[i];
            if (keep)
                s->kept[i * s->room + s->n_kept] = v[i];
        }
        s->n_kept += keep;
    }
}

/* Moves v about until v[k] is what it would be in order, with nothing larger before it and nothing smaller behind. */
static void select_place(double *v, size_t n, size_t k)
{
    size_t lo = 0, hi = n - 1;
    while (lo < hi) {
        double x = v[lo], y = v[lo + (hi - lo) / 2], z = v[hi];
        double middle = x < y ? (y < z ? y : x < z ? z : x) : x < z ? x : y < z ? z : y;
        size_t i = lo, j = hi;
        for (;;) {
            while (v[i] < middle)
                i++;
            while (v[j] > middle)
                j--;
            if (i >= j)
                break;
            double t = v[i];
            v[i++] = v[j];
            v[j--] = t;
        }
        if (k <= j)
            hi = j;
        else
            lo = j + 1;
    }
}

/* Between the two numbers around it, in proportion; moves v about. */
static double quantile(double *v, size_t n, double q)
{
    double at = q * (double)(n - 1);
    size_t i = (size_t)at;
    select_place(v, n, i);
    double next = v[i];
    for (size_t k = i + 1; k < n; k++)
        next = k == i + 1 || v[k] < next ? v[k] : next;
    return v[i] + (at - (double)i) * (next - v[i]);
}

Spread series_spread(const SeriesSet *s, size_t first, size_t count, double *room)
{
    double sum = 0, squares = 0, all = (double)count * (double)s->seen;
    size_t n = 0;
    for (size_t i = first; i < first + count; i++) {
        sum += s->sum[i] / all;
        squares += s->squares[i] / all;
        memcpy(room + n, s->kept + i * s->room, s->n_kept * sizeof *room);
        n += s->n_kept;
    }
    if (!n)
        return (Spread){NAN, NAN, NAN, NAN, NAN};
    return (Spread){sum, sqrt(fmax(squares - sum * sum, 0)), quantile(room, n, 0.05), quantile(room, n, 0.5),
                    quantile(room, n, 0.95)};
}
