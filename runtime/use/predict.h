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
 */
#ifndef VWN_PREDICT_H
#define VWN_PREDICT_H

#include "compiler/model/decode.h"
#include "runtime/checkpoint/source.h"

enum { PREDICT_TEXTS = 4 };

typedef struct GrowingText {
    int64_t *id; /* the caller's, with room for what is added */
    int64_t n;   /* tokens so far; at least 1 */
    int64_t n_prompt;
    bool open; /* wants a further token */
} GrowingText;

/* The logits [vocab] of the token behind text->id[n - 1]: adds it, and closes the text when it
 * was the last. */
typedef void PredictReady(void *user, GrowingText *text, const double *logits);

typedef struct Predictor {
    Session *session;
    const Source *source;
    const Graph *graph;
    Name next;
    int64_t context, vocab, texts;
    bool whole;            /* each token from the whole context */
    bool in_order;         /* the graph itself shows that no position reads later ones */
    DecodeRefusal ahead;   /* where one may, when it does not */
    const char *why_whole; /* a warning, or NULL */
    Program *one, *many;
    StoreEntry *tokens, *rows, *at, *on; /* inputs; NULL: the program does not read it */
    int64_t *ids;
    double *logits; /* [texts, vocab] */
} Predictor;

int64_t window_start(int64_t n, int64_t context);

/* Opens the session's backend, builds programs and loads the weights. `recompute`: without what
 * earlier tokens left; `last`: no averages of weights. What it falls back to is said by
 * session_warn(). Raises. */
void predictor_open(Predictor *p, Session *s, const Source *source, bool recompute, bool last);
/* Calls ready() until all of at most PREDICT_TEXTS texts are closed. ST_INTERRUPTED when the
 * session's owner asked for it. `seed`: of random numbers in the model. */
Status predictor_run(Predictor *p, GrowingText *text, size_t n, uint64_t seed, PredictReady *ready, void *user);

#endif
