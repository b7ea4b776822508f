/* feed.h - from windows of text, or rows of arrays, to the input tensors of a program, and
 * evaluation over fixed windows. */
#ifndef VWN_FEED_H
#define VWN_FEED_H

#include "data.h"
#include "compiler/portable/loop.h"
#include "runtime/base/json.h"

/* An input that arrays give, and its numbers on the host: of one dtype, the other is NULL. */
typedef struct FeedInput {
    StoreEntry *entry;
    int64_t *integer;
    float *real;
    int64_t numbers; /* of a row */
} FeedInput;
/* The inputs of programs built for B sequences of T positions. */
typedef struct Feed {
    Session *session;
    StoreEntry *tokens, *labels, *document; /* NULL: the model does not read it */
    int64_t *token, *label, *begin;         /* B * T each, on the host */
    FeedInput *input;                       /* instead of text */
    size_t n_input;
    int64_t B, T;
    const Split *of; /* what is on the device, by the last feed_train(); NULL: something else */
    uint64_t seed;
    int64_t first;
} Feed;
/* After the programs were built on the session's store, for data of the kind that `of` is. */
Feed feed_open(Session *s, const Split *of, int64_t B, int64_t T);
/* Uploads windows first .. first + B - 1 of a run under `seed`, unless they are there. Raises ST_ENVIRONMENT. */
void feed_train(Feed *f, const Split *split, uint64_t seed, int64_t first);
/* Uploads evaluation windows first .. of `of`, and how many these are. The rest of the rows holds the first of them, and
 * must not count. */
int64_t feed_fixed(Feed *f, const Split *split, int64_t first, int64_t of);

/* Numbers of all results of a program, one result after the other. */
size_t results_size(const Program *p);
/* Copies them from the last run; raises ST_ENVIRONMENT. */
void results_read(Session *s, Program *p, double *v);
/* Where the numbers of a result begin among them, or -1. */
int result_index(const Program *p, const char *name);
/* The same of the loss that perplexity is made of: the next token's, which a head that trains on another one (smoothed labels) gives
 * as a metric, or the only one. */
int result_of_tokens(const Program *p);
/* Puts a result as one number or as an array of them. */
void result_put(JsonText *t, const char *key, const double *v, size_t n);
/* What draws random numbers without being a step of training, on evaluation windows from `first` on. */
static inline RunArgs run_untrained(const double *vars, int64_t first)
{
    return (RunArgs){vars, LOOP_NO_SEED, (uint64_t)LOOP_NO_STEP, (uint64_t)first};
}
/* Before the parts of a batch are counted. */
void count_begin(Session *s);
/* The lanes of an evaluation that are computed here, and what brings n numbers of each of the others into `all`; gather NULL: there are
 * none. */
typedef struct EvalShare {
    StepLanes lanes;
    void (*gather)(void *of, double *all, size_t n);
    void *of;
} EvalShare;
/* Runs `eval` (step_held_out) over `batches` times `batch` windows (0 batches, or fewer windows:
 * all), always the same ones, however many the program takes at a time; `count`: the program of step_count().
 * all[i] is number i of its results over all windows, whose number is returned; `part` is room for as many, and `all` for
 * those of each lane. */
int64_t evaluate(Feed *f, Program *eval, Program *count, const Split *split, int64_t batches, int64_t batch,
                 const EvalShare *share, const double *vars, double *part, double *all);

#endif
