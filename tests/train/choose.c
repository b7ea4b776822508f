/* choose.c - which tokens `vwn sample` may take, against the definitions of Hugging Face's transformers (4.57, generation/logits_process.py).
 *
 * In:  random logits and filters.   Out: `N checks, N failures`.
 * The one idea: there each filter sets logits to minus infinity, and the next one makes probabilities anew; this does the same, step by step,
 * with arrays of the whole vocabulary: top-k removes what is below the k-th largest score; top-p sorts upwards and removes what a
 * running sum of at most 1 - p covers, but never the last; min-p removes what is below its share of the largest probability.
 */
#include "runtime/use/choose.h"
#include "support.h"

#include <math.h>

enum { VOCAB_MOST = 40 };

static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) / 9007199254740992.0;
}

static void softmax(const double *score, int n, double *p)
{
    double most = -INFINITY, sum = 0;
    for (int i = 0; i < n; i++)
        most = fmax(most, score[i]);
    for (int i = 0; i < n; i++)
        sum += p[i] = exp(score[i] - most);
    for (int i = 0; i < n; i++)
        p[i] /= sum;
}

/* The place of the `rank`th smallest score, from 0; scores differ, but for those that are removed. */
static int place_of(const double *score, int n, int rank)
{
    for (int i = 0; i < n; i++) {
        int below = 0;
        for (int k = 0; k < n; k++)
            below += score[k] < score[i] || (score[k] == score[i] && k < i);
        if (below == rank)
            return i;
    }
    return -1;
}

static void transformers(const ChooseFilters *f, const double *logits, int n, double *p)
{
    double score[VOCAB_MOST];
    for (int i = 0; i < n; i++)
        score[i] = logits[i] / f->temperature;
    if (f->top_k) {
        int k = f->top_k < n ? (int)f->top_k : n;
        double least = score[place_of(score, n, n - k)];
        for (int i = 0; i < n; i++)
            score[i] = score[i] < least ? -INFINITY : score[i];
    }
    if (f->top_p > 0 && f->top_p < 1) {
        int order[VOCAB_MOST];
        double sum = 0;
        softmax(score, n, p);
        for (int r = 0; r < n; r++)
            order[r] = place_of(score, n, r);
        for (int r = 0; r < n; r++) {
            sum += p[order[r]];
            if (sum <= 1 - f->top_p && r < n - 1)
                score[order[r]] = -INFINITY;
        }
    }
    if (f->min_p > 0) {
        double most = 0;
        softmax(score, n, p);
        for (int i = 0; i < n; i++)
            most = fmax(most, p[i]);
        for (int i = 0; i < n; i++)
            score[i] = p[i] < f->min_p * most ? -INFINITY : score[i];
    }
    softmax(score, n, p);
}

static void against(Tally *t, uint64_t seed)
{
    uint64_t s = seed * 977 + 5;
    int n = 1 + (int)(uniform(&s) * VOCAB_MOST);
    double logits[VOCAB_MOST], wanted[VOCAB_MOST], got[VOCAB_MOST] = {0}, sum, worst = 0;
    Candidate choice[VOCAB_MOST];
    for (int i = 0; i < n; i++)
        logits[i] = 6 * uniform(&s) - 3;
    ChooseFilters f = {.temperature = 0.3 + 2 * uniform(&s)};
    f.top_k = uniform(&s) < 0.5 ? 1 + (int)(uniform(&s) * (VOCAB_MOST + 5)) : 0;
    f.top_p = uniform(&s) < 0.6 ? uniform(&s) : uniform(&s) < 0.5;
    f.min_p = uniform(&s) < 0.5 ? uniform(&s) * uniform(&s) : 0;
    transformers(&f, logits, n, wanted);
    size_t kept = choose_among(&f, logits, (size_t)n, choice, &sum), there = 0;
    for (size_t i = 0; i < kept; i++)
        got[choice[i].id] += choice[i].p / sum;
    for (int i = 0; i < n; i++) {
        worst = fmax(worst, fabs(got[i] - wanted[i]));
        there += wanted[i] > 0;
    }
    CHECKF(t, kept == there && worst < 1e-12,
           "seed %llu: %zu tokens and not %zu, probabilities differ by %g (top_k %lld, top_p %g, min_p %g)",
           (unsigned long long)seed, kept, there, worst, (long long)f.top_k, f.top_p, f.min_p);
    /* every number falls on the token whose interval it is in: as many of 500 steps as its probability says */
    int hits[VOCAB_MOST] = {0};
    for (int k = 0; k < 500; k++)
        hits[choose_at(choice, kept, sum, (k + 0.5) / 500)]++;
    for (int i = 0; i < n; i++)
        CHECKF(t, fabs(hits[i] - 500 * wanted[i]) <= 1 + 1e-9, "seed %llu: token %d of probability %g has %d of 500",
               (unsigned long long)seed, i, wanted[i], hits[i]);
}

/* transformers' RepetitionPenaltyLogitsProcessor: what the text has is looked for at each token. */
static void repetition(Tally *t, uint64_t seed)
{
    enum { TEXT = 40 };
    uint64_t s = seed * 31 + 7;
    int n = 1 + (int)(uniform(&s) * VOCAB_MOST), length = (int)(uniform(&s) * TEXT);
    double logits[VOCAB_MOST], got[VOCAB_MOST], by = 0.5 + uniform(&s);
    unsigned char seen[VOCAB_MOST] = {0};
    int64_t id[TEXT] = {0};
    bool fine = true;
    for (int i = 0; i < n; i++)
        logits[i] = got[i] = 6 * uniform(&s) - 3;
    for (int i = 0; i < length; i++)
        id[i] = (int64_t)(uniform(&s) * n);
    choose_repetition(got, id, (size_t)length, by, seen);
    for (int i = 0; i < n; i++) {
        bool there = false;
        for (int k = 0; k < length; k++)
            there |= id[k] == i;
        double wanted = !there ? logits[i] : logits[i] < 0 ? logits[i] * by : logits[i] / by;
        fine &= got[i] == wanted && !seen[i];
    }
    CHECKF(t, fine, "seed %llu: repetition %g gives other logits", (unsigned long long)seed, by);
}

/* Where logits are equal transformers keeps more than k; here the lower ids are kept, so that top_k is a number of tokens. */
static void ties(Tally *t)
{
    double logits[5] = {1, 2, 1, 1, 0}, sum;
    Candidate choice[5];
    size_t n = choose_among(&(ChooseFilters){.temperature = 1, .top_k = 3}, logits, 5, choice, &sum);
    CHECK(t, n == 3 && choice[0].id == 1 && choice[1].id == 0 && choice[2].id == 2);
    n = choose_among(&(ChooseFilters){.temperature = 1, .min_p = 1}, (double[]){3, 1, 3, 2}, 4, choice, &sum);
    CHECK(t, n == 2 && choice[0].id == 0 && choice[1].id == 2);
}

int main(void)
{
    Tally t = {0};
    for (uint64_t seed = 1; seed <= 3000; seed++)
        against(&t, seed);
    for (uint64_t seed = 1; seed <= 300; seed++)
        repetition(&t, seed);
    ties(&t);
    return tally_end(&t, "choose");
}
