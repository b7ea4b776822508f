/* added.h - tokens that stand for a text as it is, which no pattern cuts.
 *
 * In:  texts with flags.   Out: the first of them in a text, the longest where several begin.
 */
#ifndef VWN_ADDED_H
#define VWN_ADDED_H

#include "pattern.h"
#include "vocabulary.h"

typedef struct AddedToken {
    const char *text;
    size_t n;
    int64_t id;
    bool single_word;               /* only where no letter stands beside it */
    bool strips_left, strips_right; /* white space beside it is a part of it */
    bool normalized;                /* it is looked for in the normal form of a text */
} AddedToken;

typedef struct Added {
    const AddedToken *token;
    Vocabulary *index; /* ids are places in token[] */
    size_t *length;    /* of tokens, each once, the longest first */
    size_t lengths;
    bool begin[256], alone[256]; /* first bytes; of tokens of one byte */
    unsigned char pair[1 << 13]; /* a bit for each two first bytes */
    const TextPattern *word;     /* a character of a word; NULL where no token is a single word */
} Added;
enum { ADDED_LENGTHS = 512 }; /* at most so many different ones */
typedef struct AddedForm {
    const char *text; /* NULL: the token's own */
    size_t n;
} AddedForm;
/* Looks for those whose `normalized` is as said; `form[i]`, where there are any, is the text of token i to look for. */
void added_open(Arena *a, Added *out, const AddedToken *token, size_t n, bool normalized, const AddedForm *form);
/* A token in text[at, n): its place in token[], and where it begins and ends with what it strips, not before `at`; -1: there is none. */
int64_t added_next(const Added *a, void *data, const char *text, size_t n, size_t at, size_t *from, size_t *to);

#endif
