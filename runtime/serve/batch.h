/* batch.h - texts that are continued together, each in a row of one cache.
 *
 * In:  texts of several threads.   Out: their tokens and log-probabilities.
 * The one idea: between two runs of the model texts come and go; a text waits until a row is free, and takes the one that has most of its
 * beginning.
 */
#ifndef VWN_BATCH_H
#define VWN_BATCH_H

#include <pthread.h>

#include "runtime/use/choose.h"
#include "runtime/use/predict.h"

enum { BATCH_ROWS = 16, BATCH_TOP = 5 };

typedef enum TextState { TEXT_WAITS, TEXT_RUNS, TEXT_DONE, TEXT_FAILED } TextState;

/* Whoever puts one owns it, and all that it points to, until it is done or failed, and fills in what stands above `state`. */
typedef struct BatchText {
    int64_t *id;            /* the prompt, with room for `most` more */
    int64_t n_prompt, most; /* at least 1 together with `echo` */
    ChooseFilters filters;  /* temperature 0: the likeliest token */
    uint64_t seed, place;   /* of the draws; the text among those of its request */
    const char *const *stop;
    size_t stops;
    bool scores;     /* log-probabilities of the prompt, too: nothing of it is taken from a row */
    double deadline; /* clock_seconds() */
    /* with room for n_prompt + most positions: of position i those of id[i + 1], and of the likeliest tokens; or NULL */
    double *score, *top_score;
    int64_t *top_id;
    char *text; /* made so far, without a stop; grows by malloc, the owner frees it */
    TextState state;
    const char *finish; /* DONE: "stop" or "length"; FAILED: a sentence */
    int64_t n;          /* tokens so far */
    size_t n_text, room;
    bool cancelled;         /* nobody waits for it any more */
    struct BatchText *next; /* in the queue */
} BatchText;

typedef struct LiveBatch {
    Predictor predictor;
    const Tokenizer *tokenizer;
    int64_t usable, end; /* ids below may be drawn; the token that ends a text, or -1 */
    bool *hole;          /* ids that stand for nothing */
    Candidate *choice;
    BatchText *text[BATCH_ROWS]; /* NULL: the row is free */
    PredictRow row[BATCH_ROWS];
    int64_t *have[BATCH_ROWS], n_have[BATCH_ROWS]; /* tokens that a free row has computed */
    pthread_mutex_t lock;                          /* of what stands below, and of texts that are queued or run */
    pthread_cond_t work, news;
    BatchText *first, **last;
    size_t waiting, running, most_waiting;
    int64_t computed, runs; /* positions, and runs of the model, so far */
    bool stops;
} LiveBatch;

/* Raises. What is opened is closed by batch_close(), which fails all texts, after which nobody may put one. */
void batch_open(LiveBatch *b, Session *s, const Source *source, size_t most_waiting, bool last);
void batch_stop(LiveBatch *b);
void batch_close(LiveBatch *b);
/* Computes until `*stop` is set. */
void batch_run(LiveBatch *b, const volatile int *stop);
/* Puts all of n texts, or none: false where the queue has no room. */
bool batch_put(LiveBatch *b, BatchText *const *text, size_t n);
/* Waits for news of any text, at most `seconds`; the caller holds the lock. */
void batch_wait(LiveBatch *b, double seconds);
/* So many bytes of its text stay as they are: not those that may begin a stop or a character. The caller holds the lock. */
size_t batch_settled(const BatchText *t);
/* The bytes of a token, in `few` or where the tokenizer has them. */
const char *batch_token(const LiveBatch *b, int64_t id, char few[24], size_t *n);

#endif
