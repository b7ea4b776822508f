/* learn.h - a vocabulary of merges from the pieces of texts (byte-pair encoding).
 *
 * In:  pieces and how often each occurs.   Out: tokens in the order of their ids, merges in the order of their ranks.
 * The one idea: the pair of tokens that occurs most often becomes a token, again and again; of equally frequent ones the pair of the lower
 * ids, the first one's before the second one's. Ids 0 to 255 are bytes, in the order of the letters that stand for them; the next ones are
 * made by merges. The merges are those of BpeTrainer of Hugging Face's tokenizers, whose counts have 32 bits, and these 64.
 */
#ifndef VWN_LEARN_H
#define VWN_LEARN_H

#include "vocabulary.h"

/* Pieces, each once, with the number of its places. Memory of malloc(). */
typedef struct PieceCount {
    uint64_t count; /* 0: free */
    size_t at;      /* of its bytes */
    uint32_t n, hash;
} PieceCount;
typedef struct Pieces {
    PieceCount *slot;
    size_t slots, n; /* a power of 2; that are taken */
    char *bytes;
    size_t bytes_n, bytes_room;
} Pieces;
bool pieces_add(Pieces *p, const char *s, size_t n, uint64_t count); /* false: no memory */
bool pieces_add_all(Pieces *to, const Pieces *from);
/* Drops the rarest until at most `most` are left: those that occur once, then those that occur twice, and so on. How often the dropped
 * ones occur at most, 0: none was; SIZE_MAX: no memory. */
uint64_t pieces_prune(Pieces *p, size_t most);
void pieces_clear(Pieces *p); /* keeps the memory */
void pieces_free(Pieces *p);

typedef struct LearnedMerge {
    uint32_t left, right, id;
} LearnedMerge;
typedef struct Learned {
    Vocabulary *vocabulary; /* ids from 0 on */
    LearnedMerge *merge;    /* each pair once */
    size_t merges;
} Learned;
/* Until there are `tokens` of them, at least 256, or no pair is left. `go_on` is asked now and then with how many there are; false: it ends,
 * and so it does without memory: then false is returned. */
typedef bool LearnGoesOn(void *user, int64_t tokens);
bool learn_merges(Arena *a, const Pieces *p, int64_t tokens, LearnGoesOn *go_on, void *user, Learned *out);

#endif
