/* tokenizer.h - text to token ids and back: bytes() and chars().
 *
 * In:  UTF-8 text.   Out: ids, or a sentence with the byte that has none.
 * The one idea: the vocabulary of chars() is the sorted list of the distinct characters of the
 * training text; it travels in the checkpoint, so that ids keep their meaning.
 */
#ifndef VWN_TOKENIZER_H
#define VWN_TOKENIZER_H

#include "compiler/model/model.h"
#include "compiler/portable/safetensors.h"
#include "runtime/base/json.h"

typedef struct Tokenizer {
    TokenizerKind kind; /* TOKENIZER_FILE: ids only, no text */
    int64_t size;       /* ids are below it; 0 for TOKENIZER_FILE and TOKENIZER_NONE */
    uint32_t *code;     /* CHARS: code points, ascending */
    int64_t ascii[128]; /* CHARS: id of each ASCII character, -1 without one */
} Tokenizer;

/* BYTES, FILE or NONE. */
Tokenizer *tokenizer_plain(Arena *a, TokenizerKind kind);
/* CHARS over a text. NULL with `why` (naming `path` and the byte) when it is not UTF-8. */
Tokenizer *tokenizer_chars(Arena *a, const char *path, const char *text, size_t n, char why[WHY]);
/* CHARS from the text that tokenizer_vocabulary gave; NULL when it is not ascending UTF-8. */
Tokenizer *tokenizer_from(Arena *a, const char *vocabulary, size_t n);
void tokenizer_vocabulary(const Tokenizer *t, Buf *out);

int64_t tokenizer_id(const Tokenizer *t, uint32_t code); /* CHARS; -1 without one */
/* Ids of `text` into `out` (room for n). The number of ids, or -1 with `why`. */
int64_t tokenizer_encode(const Tokenizer *t, const char *what, const char *text, size_t n, int64_t *out, char why[WHY]);
/* The bytes of one id (BYTES, CHARS), at most 4; 0 for an id that stands for nothing. */
size_t tokenizer_decode(const Tokenizer *t, int64_t id, char out[4]);

#endif
