/* tokenizer.h - text to token ids and back: bytes(), chars() and file("tokenizer.json").
 *
 * In:  UTF-8 text.   Out: ids, or a sentence with the byte that has none.
 * The one idea: the vocabulary of chars() is the sorted list of the distinct characters of the
 * training text; it travels in the checkpoint, as the files of a tokenizer do, so that ids keep their meaning.
 */
#ifndef VWN_TOKENIZER_H
#define VWN_TOKENIZER_H

#include "compiler/model/model.h"
#include "compiler/portable/safetensors.h"
#include "runtime/base/json.h"
#include "runtime/token/bpe.h"

typedef struct Tokenizer {
    TokenizerKind kind; /* TOKENIZER_FILE without `files`: ids only, no text */
    int64_t size;       /* ids are below it; 0 for TOKENIZER_NONE, and for TOKENIZER_FILE until it is loaded */
    uint32_t *code;     /* CHARS: code points, ascending */
    int64_t ascii[128]; /* CHARS: id of each ASCII character, -1 without one */
    BpeFiles *files;    /* FILE: what it is made of */
    Bpe *bpe;           /* FILE: NULL until it is loaded */
    BpeWork *work;
} Tokenizer;

/* BYTES, FILE or NONE. */
Tokenizer *tokenizer_plain(Arena *a, TokenizerKind kind);
/* CHARS over a text. NULL with `why` (naming `path` and the byte) when it is not UTF-8. */
Tokenizer *tokenizer_chars(Arena *a, const char *path, const char *text, size_t n, char why[WHY]);
/* FILE, loaded. Raises ST_ENVIRONMENT when its files cannot be read or a library is missing, ST_INPUT when they hold
 * what is not read. */
Tokenizer *tokenizer_file(Session *s, const TokenizerSpec *spec);
/* What tokenizer_vocabulary() gave; NULL when it is none: of CHARS it is ascending UTF-8. */
Tokenizer *tokenizer_from(Arena *a, TokenizerKind kind, const char *vocabulary, size_t n);
void tokenizer_vocabulary(const Tokenizer *t, Buf *out);
/* Whether both make the same ids of all texts, wherever their files lie. */
bool tokenizer_same(Arena *a, const Tokenizer *x, const Tokenizer *y);
/* The digits of a hash of everything that makes the tokenizer, and of one of the bytes of its ids alone (a FILE that is loaded): one
 * vocabulary may be written in several ways. */
void tokenizer_hash(Arena *a, const Tokenizer *t, char hex[65]);
void tokenizer_ids_hash(const Tokenizer *t, char hex[65]);
/* FILE from a checkpoint: reads its files, once. Raises ST_ENVIRONMENT. */
void tokenizer_load(Session *s, Tokenizer *t);
bool tokenizer_has_text(const Tokenizer *t); /* texts have ids */

int64_t tokenizer_id(const Tokenizer *t, uint32_t code); /* CHARS; -1 without one */
/* The token that ends a text, -1: a FILE that is loaded may have one among its added tokens. */
int64_t tokenizer_end(const Tokenizer *t);
/* A line break, where there is one and it is below `vocab`, else 0. */
int64_t tokenizer_line(const Tokenizer *t, int64_t vocab);
/* At most how many ids a text of n bytes has. */
size_t tokenizer_room(const Tokenizer *t, size_t n);
/* Ids of `text` into `out`. The number of ids, or -1 with `why`. A tokenizer that is not loaded has none. */
int64_t tokenizer_encode(const Tokenizer *t, const char *what, const char *text, size_t n, int64_t *out, char why[WHY]);
/* The bytes of one id, of which BYTES and CHARS have at most 4, in `few`; NULL for an id that stands for nothing. */
const char *tokenizer_decode(const Tokenizer *t, int64_t id, char few[4], size_t *n);

#endif
