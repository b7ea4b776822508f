/* tokens.h - token ids of texts, and windows of them as a program reads them.
 *
 * In:  a text, or a file of ids, in memory.     Out: tokens, labels, and where the document of a position begins.
 * The one idea: a label is the token that follows.
 */
#ifndef VWN_TOKENS_H
#define VWN_TOKENS_H

#include "order.h"

/* Ids that lie behind each other; bytes of ASCII text may be characters. */
typedef struct Tokens {
    const unsigned char *at;
    int width;            /* bytes of an id: 1, 2, 4 or 8 */
    const int64_t *ascii; /* width 1: what a byte stands for; NULL: itself */
    int64_t count;
} Tokens;

/* The id of a character, -1 where it has none; `code`: n code points, ascending. */
int64_t tokens_id(const uint32_t *code, int64_t n, uint32_t character);
/* The ids of `bytes` bytes of UTF-8, for which `id` has room: how many, or -1 and the byte that is none of the characters, or
 * not UTF-8 (*length = 0). */
int64_t tokens_of_text(const uint32_t *code, int64_t n, const char *text, size_t bytes, uint32_t *id, size_t *at,
                       size_t *length);

int64_t token_at(const Tokens *t, int64_t i);
/* Window w of a stretch as `context` tokens each; a position without a next token has the label -1, and a separator begins
 * the document that follows it. What is NULL is not asked for. -1, or which token of the file is not below `vocab`
 * (0: not checked). */
int64_t tokens_window(const Tokens *t, const Order *o, Window w, int64_t vocab, int64_t separator, int64_t *token,
                      int64_t *label, int64_t *document);

#endif
