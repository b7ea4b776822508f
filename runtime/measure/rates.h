/* rates.h - how fast this machine does what plans are made of, and what a plan should take.
 *
 * Rates are measured once, kept in the cache folder, and read where a plan is judged without
 * being run. No rate is ever made up: without measured ones there is no estimate.
 */
#ifndef VWN_RATES_H
#define VWN_RATES_H

#include "runtime/exec/session.h"

enum { RATE_MOVES = 4 };
typedef enum RateKind {
    /* bytes read and written a second by kernels that do little else, and the bytes of all
     * their tensors: what lies in a cache is faster */
    RATE_MOVE,
    RATE_MOVE_BYTES = RATE_MOVE + RATE_MOVES,
    /* operations a second of kernels: PlanWork */
    RATE_LANE = RATE_MOVE_BYTES + RATE_MOVES,
    RATE_CALL,
    RATE_SINGLE,
    RATE_RANDOM,
    RATE_PRODUCT,
    /* of products of the library, by what is transposed (ProductKind): operations a second, and
     * numbers of the operands and of the result */
    RATE_MATMUL,
    RATE_MATMUL_NUMBERS = RATE_MATMUL + 3,
    RATE_BF16 = RATE_MATMUL_NUMBERS + 3, /* the same of bf16 operands; 0: there are none here */
    RATE_BF16_NUMBERS = RATE_BF16 + 3,
    RATE_EXPERT = RATE_BF16_NUMBERS + 3, /* of products by expert */
    /* of attention, forward and backward: operations a second, and scores */
    RATE_ATTENTION = RATE_EXPERT + 3,
    RATE_SCORES = RATE_ATTENTION + 2,
    RATE_LAUNCHES = RATE_SCORES + 2, /* of empty kernels, a second */
    RATE_COUNT
} RateKind;
typedef enum ProductKind { PRODUCT_PLAIN, PRODUCT_RIGHT, PRODUCT_LEFT } ProductKind;

typedef struct Rates {
    double v[RATE_COUNT];
    int threads;
    char products[160]; /* the library of products */
    char device[192];   /* "cuda:0, NVIDIA H100"; "": the CPU */
} Rates;

static inline ProductKind product_kind(bool left, bool right)
{
    return left ? PRODUCT_LEFT : right ? PRODUCT_RIGHT : PRODUCT_PLAIN;
}
static inline ProductKind expert_kind(const PlanExpert *e)
{
    return product_kind(e->what == EXPERT_DW, e->transpose_w);
}
static inline double product_numbers(const PlanMatmul *m) /* of operands and result */
{
    return (double)m->batch * ((double)m->m * (double)m->k + (double)m->k * (double)m->n + (double)m->m * (double)m->n);
}

/* All of them are of what a run would be on (vwn_options.device): a GPU, or the CPU with the threads that the
 * context may use. A GPU that was asked for by name and cannot be used raises. */
/* Measures, in about a second. Raises when it cannot. */
void rates_measure(vwn_context *owner, Rates *out);
/* Is there a place for them? False with a sentence in `why`: then nothing needs to be measured. */
bool rates_can_keep(vwn_context *owner, char why[512]);
/* Keeps them for this machine, these threads, this version. False with a sentence in `why`. */
bool rates_keep(vwn_context *owner, const Rates *r, char why[512]);
/* Those that were kept. False with a sentence in `why`: there are none. */
bool rates_find(vwn_context *owner, Rates *out, char why[512]);

/* For people, "key: value" lines. */
void rates_describe(const Rates *r, Buf *out);

/* Seconds, by what takes them. */
typedef struct Estimate {
    double products, experts, attention, kernels; /* a step */
    int64_t launches;
} Estimate;
static inline double estimate_seconds(const Estimate *e)
{
    return e->products + e->experts + e->attention + e->kernels;
}
/* Adds `runs` runs of a plan. */
void estimate_add(Estimate *e, const Rates *r, const Plan *plan, int64_t runs);
/* For PlanWatch: adds the plans that it is shown. */
typedef struct Estimating {
    Rates rates;
    Estimate sum;
} Estimating;
void estimate_plan(void *estimating, const Plan *plan, int64_t runs);
double estimate_launch(const Rates *r, const Launch *l, double plan_bytes);
double estimate_plan_bytes(const Plan *plan); /* of all that it touches */

#endif
