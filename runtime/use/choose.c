/* choose.c - see choose.h.
 *
 * The one idea: probabilities behind the temperature stand in a list, the likeliest first where a filter asks for that, and each
 * filter cuts its end: `top_k` counts, `top_p` adds up what is before a token, `min_p` compares with the first. So what is left
 * need not be divided by its sum in between: both shares are of what the filter before left.
 */
#include "choose.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

static int likeliest_first(const void *a, const void *b)
{
    const Candidate *x = a, *y = b;
    if (x->p != y->p)
        return x->p > y->p ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static double sum_of(const Candidate *choice, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++)
        sum += choice[i].p;
    return sum;
}

void choose_repetition(double *logits, const int64_t *id, size_t n, double by, unsigned char *seen)
{
    for (size_t i = 0; i < n; i++) {
        double *x = &logits[id[i]];
        if (!seen[id[i]])
            *x = *x > 0 ? *x / by : *x * by;
        seen[id[i]] = 1;
    }
    for (size_t i = 0; i < n; i++)
        seen[id[i]] = 0;
}

size_t choose_among(const ChooseFilters *f, const double *logits, size_t n, Candidate *out, double *sum)
{
    double best = logits[0];
    for (size_t i = 1; i < n; i++)
        best = logits[i] > best ? logits[i] : best;
    for (size_t i = 0; i < n; i++)
        out[i] = (Candidate){exp((logits[i] - best) / f->temperature), (int64_t)i};
    bool count = f->top_k > 0 && (size_t)f->top_k<n, share = f->top_p> 0 && f->top_p < 1;
    if (count || share || f->min_p > 0)
        qsort(out, n, sizeof *out, likeliest_first);
    if (count)
        n = (size_t)f->top_k;
    if (share) {
        double most = f->top_p * sum_of(out, n), before = 0;
        size_t kept = 0;
        while (kept < n && before < most)
            before += out[kept++].p;
        n = kept;
    }
    while (n > 1 && f->min_p > 0 && out[n - 1].p < f->min_p * out[0].p)
        n--;
    *sum = sum_of(out, n);
    return n;
}

int64_t choose_at(const Candidate *choice, size_t n, double sum, double u)
{
    u *= sum;
    for (size_t i = 0; i < n; i++) {
        u -= choice[i].p;
        if (u < 0)
            return choice[i].id;
    }
    while (n > 1 && choice[n - 1].p <= 0) /* rounding has left something of u */
        n--;
    return choice[n - 1].id;
}

int64_t choose_token(const ChooseFilters *f, const double *logits, size_t n, Candidate *work, double u)
{
    size_t best = 0;
    double sum;
    for (size_t i = 1; i < n; i++)
        if (logits[i] > logits[best])
            best = i;
    if (!isfinite(logits[best]))
        return -1;
    if (f->temperature <= 0)
        return (int64_t)best;
    size_t kept = choose_among(f, logits, n, work, &sum);
    return choose_at(work, kept, sum, u);
}
