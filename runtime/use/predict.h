/* predict.h - logits of the next token of texts that grow; private to runtime/.
 *
 * In:  a trained model, a few texts as token ids.   Out: logits behind each text, one after the
 * other.
 * The one idea: what earlier tokens left is kept (decode.h), so that a token costs one
 * position. A model whose positions cannot be computed in this order is run over its whole
 * context for each token; predictor_open says so.
 *
 * A text longer than the context is seen from a window on: token n - 1 is followed by what the
 * model says of tokens [window_start(n), n). Windows move on by half a context, so that what is
 * kept serves many tokens.
 *
 * The logits of a text do not depend on the other texts, to the bit: a program always has
 * PREDICT_TEXTS texts, and which of them are fed by blocks and which one by one follows from
 * each text alone.
 *
 * With `top`, texts are rows at positions of their own, which come and go by themselves: predictor_feed().
 */
#ifndef VWN_PREDICT_H
#define VWN_PREDICT_H

#include "compiler/model/decode.h"
#include "runtime/checkpoint/source.h"

enum { PREDICT_TEXTS = 4, PREDICT_BLOCK = 32, PREDICT_PROGRAMS = 3 };

typedef struct GrowingText {
    int64_t *id; /* the caller's, with room for what is added */
    int64_t n;   /* tokens so far; at least 1 */
    int64_t n_prompt;
    bool open; /* wants a further token */
} GrowingText;

typedef struct PredictorOptions {
    const char *use;      /* "`vwn sample` continues texts": begins the message to who has a model that cannot */
    int64_t texts;        /* at once, at most */
    bool recompute, last; /* without what earlier tokens left; no averages of weights */
    int64_t top;          /* tokens that are named for each position of predictor_feed(), 0: it is not called */
} PredictorOptions;

/* A text in a row of the cache. */
typedef struct PredictRow {
    const int64_t *id; /* the caller's; NULL: the row is free */
    int64_t known;     /* tokens of it, at least n */
    int64_t n, at;     /* so many tokens are to be computed, n - at of which are left; n is at most the context */
    bool next;         /* the logits behind token n - 1 are wanted */
    /* Of position i: the log-probability of id[i + 1], where i + 1 < known; the likeliest tokens and theirs, `top` of each position.
     * The caller's, all or none. */
    double *score, *top_score;
    int64_t *top_id;
} PredictRow;

/* The logits [vocab] of the token behind text->id[n - 1]: adds it, and closes the text when it
 * was the last. */
typedef void PredictReady(void *user, GrowingText *text, const double *logits);

typedef struct Predictor {
    Session *session;
    const Source *source;
    const Graph *graph;
    Name next;
    const char *use;
    int64_t context, vocab, texts, top;
    bool whole;            /* each token from the whole context */
    bool in_order;         /* the graph itself shows that no position reads later ones */
    DecodeRefusal ahead;   /* where one may, when it does not */
    const char *why_whole; /* a warning, or NULL */
    bool each;             /* rows stand at positions of their own; else those at the earliest one are computed */
    bool averaged;         /* the weights are averages over steps */
    bool goes_back;        /* a row may go on from any position before `at` */
    Program *program[PREDICT_PROGRAMS];           /* NULL until it is needed */
    StoreEntry *tokens, *rows, *at, *on, *target; /* inputs; NULL: the program does not read it */
    int64_t *ids, *targets;
    double *logits; /* [texts, vocab] */
    Name score_name, top_name, top_score_name;
    double *score, *top_id, *top_score; /* [texts, positions], [texts, positions, top] */
    int64_t *row_on, *row_at, *row_last;
    int64_t computed, runs; /* positions of rows so far, and runs of programs */
} Predictor;

int64_t window_start(int64_t n, int64_t context);

/* Opens the session's backend, builds programs and loads the weights. What it falls back to is said by session_warn(). Raises. */
void predictor_open(Predictor *p, Session *s, const Source *source, const PredictorOptions *how);
/* Calls ready() until all of at most PREDICT_TEXTS texts are closed. ST_INTERRUPTED when the
 * session's owner asked for it. `seed`: of random numbers in the model. */
Status predictor_run(Predictor *p, GrowingText *text, size_t n, uint64_t seed, PredictReady *ready, void *user);
/* Computes up to PREDICT_BLOCK further positions of each of row[texts] and moves `at` on; without a cache all of one. At least one row
 * has some left. Where `at` has become n and `next` is set, p->logits + row * vocab are the logits of what comes next. Where the
 * predictor goes back, `at` may be set to any position whose tokens before it are those that the row has computed; else to 0. */
void predictor_feed(Predictor *p, PredictRow *row, uint64_t seed);

#endif
