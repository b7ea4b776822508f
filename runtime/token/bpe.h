/* bpe.h - a byte-level tokenizer: from texts to ids and back.
 *
 * In:  the file of a tokenizer, any bytes.   Out: ids, or a sentence.
 * The one idea: what is not UTF-8 is a piece by itself, so that any bytes have ids and come back.
 */
#ifndef VWN_BPE_H
#define VWN_BPE_H

#include "added.h"
#include "merge.h"

typedef enum BpeStepKind {
    STEP_ISOLATED, /* matches and what is between them are pieces */
    STEP_MATCHES,  /* matches alone */
    STEP_BETWEEN,  /* what is between them alone */
    STEP_BLANK     /* a piece that begins with no blank gets one */
} BpeStepKind;
typedef struct BpeStep {
    BpeStepKind kind;
    TextPattern pattern;
} BpeStep;
enum { BPE_STEPS = 16 };

typedef struct Bpe {
    Vocabulary *vocabulary;
    bool direct; /* as merge_piece() takes it */
    bool nfc;
    bool lacks;      /* some byte has no token */
    bool no_library; /* why it could not be opened: one of the system is missing */
    BpeStep step[BPE_STEPS];
    size_t steps;
    AddedToken *token; /* added ones */
    size_t tokens;
    Added raw, normal; /* looked for before and behind the normal form */
    Pcre2 *pcre2;
    Utf8proc utf8proc;
    TextPattern word;
} Bpe;

/* A special token that a file of ranks does not name. */
typedef struct BpeSpecial {
    const char *text;
    int64_t id; /* -1: the next one, or the one that the vocabulary has for it */
} BpeSpecial;
typedef struct BpeText {
    const char *path; /* for messages */
    const char *text;
    size_t n;
} BpeText;
typedef struct BpeFiles {
    BpeText file, merges; /* merges.path NULL: there are none */
    const char *split;    /* NULL: none */
    const BpeSpecial *special;
    size_t n_special;
} BpeFiles;
/* False with `why`: a sentence that names the file and what in it is wrong or not read. Raises when out of memory. */
bool bpe_open(Session *s, const BpeFiles *files, Bpe *out, char why[WHY]);

/* What one thread needs to make ids. */
typedef struct BpeWork {
    Merging merging;
    void *data; /* of a match */
    const Bpe *bpe;
    const char *text; /* whose ids are made */
    size_t n;
    uint64_t before; /* bytes of what it is a part of, for messages */
    IdList *out;
    char *why;
    bool (*piece)(void *user, const char *s,
                  size_t n); /* not NULL: is given pieces, of which no ids are made; false: no memory */
    void *piece_user;
} BpeWork;
bool bpe_work_open(BpeWork *w, const Bpe *b); /* false: no memory */
void bpe_work_close(BpeWork *w);
/* Appends; false with `why`. */
bool bpe_encode(BpeWork *w, const char *text, size_t n, IdList *out, char why[WHY]);
/* A place in text[0, n), at most *at and above 0, where a text may be cut: the ids of both parts are those of the whole. It is the end of
 * a line, where the pieces around it were seen to be so; what no pattern cuts has none. What is behind *at is looked at, PART_AHEAD bytes,
 * where there are so many. False: there is none among the PART_BACK bytes before it. */
enum { PART_AHEAD = 256, PART_BACK = 1 << 16 };
bool bpe_cut(BpeWork *w, const char *text, size_t n, size_t *at);
/* The bytes of an id, NULL for one that stands for nothing. */
const char *bpe_decode(const Bpe *b, int64_t id, size_t *n);

/* ---- between the files of this folder ---- */
bool bpe_read_json(Session *s, const BpeFiles *files, Bpe *b,
                   char why[WHY]); /* tokenizer.json, or vocab.json and merges */
bool bpe_read_ranks(Session *s, const BpeFiles *files, Bpe *b, char why[WHY]); /* lines of base64 and a rank */
/* Adds a pattern as a step; `of`: what it is called in messages. */
bool bpe_add_split(Session *s, Bpe *b, PatternDialect dialect, BpeStepKind kind, const char *pattern, size_t n,
                   char why[WHY]);
bool bpe_add_special(Session *s, const BpeFiles *files, Bpe *b, char why[WHY]);
extern const char bpe_gpt2_split[]; /* what `ByteLevel` cuts by */

#endif
