/* vocabulary.h - tokens as bytes, by their ids and by their bytes, and which pairs of them become one.
 *
 * In:  tokens, merges.   Out: ids.
 */
#ifndef VWN_VOCABULARY_H
#define VWN_VOCABULARY_H

#include "compiler/base/base.h"

enum { TOKEN_NONE = -1, IDS_MOST = 1 << 22, TOKEN_MOST = 1 << 16 };

typedef struct VocabularyToken {
    uint32_t at, length; /* of its bytes; length 0: no token has this id */
    bool apart;          /* no text becomes it by merging: it is added, or holds what stands for no byte */
} VocabularyToken;

/* A place of the table by bytes: a token of at most 8 bytes is known by it alone. */
typedef struct VocabularySlot {
    uint64_t head; /* the first bytes */
    uint32_t hash;
    uint32_t id : 23, length : 9; /* the id plus 1, 0: free; the length, at most SLOT_LENGTH */
} VocabularySlot;
enum { SLOT_LENGTH = 511, FILTER_BITS = 21 };

/* What two bytes become; rank UINT32_MAX: they stay. */
typedef struct VocabularyTwo {
    uint32_t rank, id;
} VocabularyTwo;

typedef struct VocabularyMerge {
    uint32_t left, right, rank, id; /* the rank plus 1; 0: free */
} VocabularyMerge;

typedef struct Vocabulary {
    Arena *arena;
    unsigned char *bytes; /* of all tokens */
    size_t n_bytes, room;
    VocabularyToken *token;
    int64_t size, tokens; /* ids are below size; how many of them stand for something */
    int64_t token_room;
    VocabularySlot *slot;
    uint32_t slots;   /* a power of 2 */
    uint64_t *filter; /* a bit for each value of the first bits of a hash: most bytes that are no token end there */
    VocabularyMerge *merge; /* NULL: a pair becomes the token that has its bytes, the lowest id first */
    uint32_t merges, merge_slots;
    int32_t byte[256];  /* the id of each byte */
    VocabularyTwo *two; /* of each two bytes, the first one times 256 plus the second */
} Vocabulary;

Vocabulary *vocabulary_new(Arena *a, int64_t tokens, size_t bytes); /* room for about as much, more is made */
typedef enum Adding { ADD_FINE, ADD_ID_TWICE, ADD_BYTES_TWICE, ADD_TOO_LARGE } Adding;
/* `apart`: as in VocabularyToken; such a token may have the bytes of another one. */
Adding vocabulary_add(Vocabulary *v, int64_t id, const unsigned char *s, size_t n, bool apart);
int64_t vocabulary_find(const Vocabulary *v, const unsigned char *s,
                        size_t n); /* TOKEN_NONE without one; none that is apart */
/* Room for about as many merges, more is made; afterwards pairs become what vocabulary_merge() says. */
void vocabulary_merges(Vocabulary *v, size_t n);
bool vocabulary_merge(Vocabulary *v, uint32_t left, uint32_t right, uint32_t rank,
                      uint32_t id); /* false: the pair is there */
const VocabularyMerge *vocabulary_pair(const Vocabulary *v, uint32_t left, uint32_t right);
/* Fills byte[] and two[]; the first byte without a token, or -1. */
int vocabulary_bytes(Vocabulary *v);
uint32_t token_hash(const unsigned char *s, size_t n);

#endif
