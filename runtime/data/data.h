/* data.h - training and evaluation text as windows of token ids, arrays as rows.
 *
 * In:  a `data` of the file (text_file, token_files, arrays).   Out: batches of tokens and
 * labels, or of what the arrays hold. The one idea: the order is a pure function of (seed,
 * position in the run), see order.h; so nothing has to be stored to resume.
 */
#ifndef VWN_DATA_H
#define VWN_DATA_H

#include "arrays.h"
#include "compiler/portable/tokens.h"
#include "runtime/exec/session.h"
#include "tokenizer.h"

typedef struct Shard Shard;

typedef struct Split {
    Order order;          /* of a text; of arrays context, windows and tokens */
    const Shard *shard;   /* its files */
    int64_t vocab;        /* 0: not checked */
    int64_t separator;    /* the token that documents begin with, -1: there is none */
    const Arrays *arrays; /* not NULL: a window is a row */
    int64_t first;        /* where the rows begin in an order that is drawn once */
    int64_t mark;     /* of token files: the token that documents begin with and that no text stands for; -1: none */
    double bytes;     /* of text that a token stands for, by the index of the shards; 0: that is not known */
    const char *name; /* "training text", "validation text", for messages */
} Split;

typedef struct Data {
    Shard *shard;
    size_t n;
    Arrays *arrays; /* instead of shards */
    Tokenizer *tokenizer;
    Split train, val; /* val.order.n == 0: there is none */
} Data;

/* Opens and maps the files; they are closed with the session. Raises ST_ENVIRONMENT with the
 * file and byte offset of what is wrong with them, or files E0601 and raises ST_INPUT when the
 * tokenizer has more ids than the model. `known`: the tokenizer of a checkpoint, or NULL. */
typedef struct DataOptions {
    const DataSpec *spec;
    const TokenizerSpec *tokenizer;
    Tokenizer *known;
    const Model *model;
    int64_t context;
} DataOptions;
Data *data_open(Session *s, const DataOptions *how);
/* The id of the token that documents begin with, -1 where the file names none. Raises ST_INPUT
 * when the tokenizer does not know the character. */
int64_t data_separator(Session *s, const DataSpec *spec, const Tokenizer *t);
/* Whether the files that `spec` names exist at all. */
bool data_is_there(Session *s, const DataSpec *spec);
/* Tokens, or rows, drawn at random, that the model knows, instead of files: what a step costs
 * does not depend on them. They are the same in every run. */
Data *data_synthetic(Session *s, const DataOptions *how);
/* Raises ST_ENVIRONMENT when a split has no window. */
void split_need_window(Session *s, const Split *split);

/* Which files, of which size and content (first and last block): one JSON array. */
void data_fingerprint(const Data *d, Buf *out);
/* NULL when both describe the same files, else a sentence in the arena that names the
 * difference. */
const char *data_difference(Arena *a, const char *then, const char *now);

/* Window number `ordinal` (from 0) of a run under `seed`. */
Window split_window(const Split *s, uint64_t seed, int64_t ordinal);
/* Window i of the `of` that evaluation uses: always the same, spread evenly, from offset 0. */
Window split_fixed(const Split *s, int64_t i, int64_t of);
int64_t split_fixed_windows(const Split *s); /* at most this many do not overlap */
/* How many bytes a token that is predicted stands for, on average over `of` such windows, which are read; 0: that is not known. */
double split_bytes_per_token(Session *s, const Split *split, const Tokenizer *t, int64_t of);
/* One window as tokens_window() gives it. False with `why` (file and byte offset) when the shard changed, or a token is
 * not below vocab. */
bool split_read(const Split *s, Window w, int64_t *token, int64_t *label, int64_t *document, char why[WHY]);

#endif
