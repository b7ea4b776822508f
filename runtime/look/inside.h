/* inside.h - what `vwn inspect` has found; private to runtime/. */
#ifndef VWN_RUNTIME_INSIDE_H
#define VWN_RUNTIME_INSIDE_H

#include "compiler/model/inside.h"
#include "runtime/checkpoint/held_out.h"
#include "series.h"

/* What every source segment gives to the segments of one value: [sources, segments]. */
typedef struct Contribution {
    double *mean, *std, *gain; /* gain: root of the mean square of what a coordinate of an impulse becomes */
} Contribution;
typedef struct FactorFound {
    size_t entries, fixed_entries;
    Spread *entry, all;  /* of each entry of the matrix, and of all together */
    const double *fixed; /* NULL: the factor has no fixed part */
} FactorFound;
/* How one entry of a factor is distributed over tokens: shares of equal bins from lo to hi, which are the same for all. */
enum { HISTOGRAMS_MOST = 8, HISTOGRAM_BINS = 40 };
typedef struct Histogram {
    size_t factor, entry;
    double lo, hi, share[HISTOGRAM_BINS];
} Histogram;
typedef struct ActivationFound {
    double density[INSIDE_THRESHOLDS];
    double *used, *energy; /* [experts * dims], of the rows of their expert */
    double ratio;          /* participation ratio */
    size_t never;          /* dimensions that no row uses */
} ActivationFound;
typedef struct StateFound {
    bool spectrum;         /* measured */
    double entropy, ratio; /* of the squares of singular values: normalized entropy, participation ratio */
    size_t rank;
    double target, uncertainty,
        moved; /* of the lens: mean log probability of targets, entropy, divergence; NaN: not measured */
} StateFound;

typedef struct Findings {
    Session session;
    const vwn_inside_options *how;
    const vwn_writer *text, *json;
    const Hooks *hooks;
    Buf page; /* of the pictures so far, where a page is asked for */
    Source source;
    HeldOut data;
    Inside in;
    const Model *m;
    unsigned what;
    bool part; /* only connections, as pictures of a page; what would take more is only counted, unless `large` */
    bool large, plain,
        left_out;       /* plain: every sublayer reads the sum of all before it; left_out: it would take too long */
    double flops;       /* of what is measured, about */
    uint64_t bytes;     /* that it takes, on a GPU there */
    VEC(Name) of_heads; /* sublayers that are left out */
    int64_t windows, positions; /* positions: in all windows, of states */
    bool averaged;
    double *unexplained;        /* by row: share of the square of what is read */
    Contribution *read, *state; /* rows; sublayers + 1 */
    FactorFound *factor;
    Histogram *histogram; /* of the entries of the last sublayer's factors that vary most */
    size_t n_histograms;
    double *cosine; /* [n, n] */
    Spread *next;   /* n - 1 */
    ActivationFound *activation;
    StateFound *at;      /* sublayers + 1 */
    int64_t coordinates; /* of a state */
} Findings;

/* "embedding", "layer[1].ffn", ..; `row` of what the head reads: "head". */
const char *findings_source(const Findings *f, size_t j);
const char *findings_row(const Findings *f, size_t row);
/* "A_r[2,1]": the entry of a histogram. */
const char *findings_entry(const Findings *f, const Histogram *h);
/* Contribution of source j to a row, each segment to those of its own place: their mean. */
double findings_own(const Findings *f, const Contribution *c, const UnfoldPart *to, size_t j);

/* For a page: the pictures of a run's connections by how->picture, as parts of a page that has heat_style(). `large`: also where that
 * takes more than about a second. */
typedef struct InsidePart {
    const char *run;
    bool large;
    void (*picture)(void *user, const char *name, const char *title, const char *caption, const char *svg, size_t n);
    void *user;
    bool plain,
        left_out; /* out: nothing was drawn, since connections have neither weights nor streams; since it takes long */
    double flops; /* out: of what was measured, or would be */
    int64_t tokens; /* out */
} InsidePart;
Status inside_part(vwn_context *owner, InsidePart *part, const Hooks *hooks);

Buf findings_text(const Findings *f); /* the summary */
void findings_json(const Findings *f);
/* Hands over each picture, which the page shows. */
void findings_draw(Findings *f);
/* Writes the page of these pictures, which lie beside it as NAME.svg, and of the summary. */
void findings_page(Findings *f, const Buf *summary);

#endif
