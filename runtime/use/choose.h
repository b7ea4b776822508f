/* choose.h - which tokens may come next, and one of them.
 *
 * In:  logits, the filters of `vwn sample`, a number in [0, 1).   Out: the id of a token.
 */
#ifndef VWN_CHOOSE_H
#define VWN_CHOOSE_H

#include <stddef.h>
#include <stdint.h>

typedef struct Candidate {
    double p; /* not yet divided by the sum of all */
    int64_t id;
} Candidate;

/* Applied in this order. A logit of minus infinity is never chosen, unless it is the only one. */
typedef struct ChooseFilters {
    double temperature; /* above 0, but for choose_token(): 0 is the likeliest, of equals the lower id */
    int64_t top_k;      /* 0: all */
    double top_p;       /* 0 or 1: all */
    double min_p;       /* 0: all */
} ChooseFilters;

/* Logits of the tokens in id[0, n), each once, are divided by `by`, negative ones multiplied; `seen` has a zero for each token, and again
 * behind. */
void choose_repetition(double *logits, const int64_t *id, size_t n, double by, unsigned char *seen);
/* The tokens that may come next, into `out`, which has room for n: at least one. Returns how many; *sum is that of their p. */
size_t choose_among(const ChooseFilters *f, const double *logits, size_t n, Candidate *out, double *sum);
/* The one that a number u in [0, 1) falls on. */
int64_t choose_at(const Candidate *choice, size_t n, double sum, double u);
/* All of it, `work` having room for n; -1: the greatest logit is not finite. */
int64_t choose_token(const ChooseFilters *f, const double *logits, size_t n, Candidate *work, double u);

#endif
