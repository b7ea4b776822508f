/* learn.c - see learn.h.
 *
 * A pair may stand in the heap more than once: what a merge makes is the token that has its bytes, which other merges may have made before,
 * so pairs with it come to stand in further words. Each entry has the words that were new when it was made.
 */
#include "learn.h"

#include "bulk.h"

#include <stdlib.h>

/* ---- pieces ---- */

static PieceCount *place_of(const Pieces *p, const char *s, size_t n, uint32_t hash)
{
    for (size_t i = hash & (p->slots - 1);; i = (i + 1) & (p->slots - 1)) {
        PieceCount *x = &p->slot[i];
        if (!x->count || (x->hash == hash && x->n == n && !memcmp(p->bytes + x->at, s, n)))
            return x;
    }
}

static bool grow_slots(Pieces *p)
{
    Pieces larger = *p;
    larger.slots = p->slots ? 2 * p->slots : 1 << 12;
    larger.slot = calloc(larger.slots, sizeof *larger.slot);
    if (!larger.slot)
        return false;
    for (size_t i = 0; i < p->slots; i++)
        if (p->slot[i].count)
            *place_of(&larger, p->bytes + p->slot[i].at, p->slot[i].n, p->slot[i].hash) = p->slot[i];
    free(p->slot);
    *p = larger;
    return true;
}

bool pieces_add(Pieces *p, const char *s, size_t n, uint64_t count)
{
    if (n > UINT32_MAX || (2 * (p->n + 1) > p->slots && !grow_slots(p)))
        return false;
    uint32_t hash = token_hash((const unsigned char *)s, n);
    PieceCount *x = place_of(p, s, n, hash);
    if (!x->count) {
        if (p->bytes_room - p->bytes_n < n) {
            size_t room = 2 * (p->bytes_n + n) + 4096;
            char *larger = realloc(p->bytes, room);
            if (!larger)
                return false;
            p->bytes = larger;
            p->bytes_room = room;
        }
        memcpy(p->bytes + p->bytes_n, s, n);
        *x = (PieceCount){0, p->bytes_n, (uint32_t)n, hash};
        p->bytes_n += n;
        p->n++;
    }
    x->count += count;
    return true;
}

bool pieces_add_all(Pieces *to, const Pieces *from)
{
    bool fine = true;
    for (size_t i = 0; fine && i < from->slots; i++)
        if (from->slot[i].count)
            fine = pieces_add(to, from->bytes + from->slot[i].at, from->slot[i].n, from->slot[i].count);
    return fine;
}

uint64_t pieces_prune(Pieces *p, size_t most)
{
    uint64_t least = 1; /* those that occur less often go */
    for (size_t left = p->n; left > most;) {
        left = 0;
        least++;
        for (size_t i = 0; i < p->slots; i++)
            left += p->slot[i].count >= least;
    }
    if (least == 1)
        return 0;
    Pieces kept = {0};
    bool fine = true;
    for (size_t i = 0; fine && i < p->slots; i++)
        if (p->slot[i].count >= least)
            fine = pieces_add(&kept, p->bytes + p->slot[i].at, p->slot[i].n, p->slot[i].count);
    if (!fine) {
        pieces_free(&kept);
        return UINT64_MAX;
    }
    pieces_free(p);
    *p = kept;
    return least - 1;
}

void pieces_clear(Pieces *p)
{
    if (p->slot)
        memset(p->slot, 0, p->slots * sizeof *p->slot);
    p->n = p->bytes_n = 0;
}

void pieces_free(Pieces *p)
{
    free(p->slot);
    free(p->bytes);
    *p = (Pieces){0};
}

/* ---- pairs ---- */

/* Left id above, right id below. */
typedef uint64_t TokenPair;

typedef struct WordList {
    uint32_t *v;
    size_t n, room;
} WordList;

typedef struct PairCount {
    TokenPair pair;
    int64_t count;
    bool used;
    WordList fresh; /* words in which it stands since the last entry was made */
} PairCount;

typedef struct PairEntry {
    TokenPair pair;
    int64_t count;
    WordList words;
} PairEntry;

typedef struct LearnWord {
    size_t at; /* of its ids */
    uint32_t n;
    uint64_t count;
} LearnWord;

typedef struct Learning {
    uint32_t *id;
    LearnWord *word;
    size_t words;
    PairCount *pair;
    size_t pair_slots, pairs;
    PairEntry *heap;
    size_t heap_n, heap_room;
    TokenPair *touched; /* pairs that have fresh words */
    size_t touched_n, touched_room;
} Learning;

static bool grown(void **v, size_t *room, size_t n, size_t item)
{
    if (*room >= n)
        return true;
    size_t want = 2 * n + 16;
    void *larger = realloc(*v, want * item);
    if (!larger)
        return false;
    *v = larger;
    *room = want;
    return true;
}

static bool push_word(WordList *l, uint32_t word)
{
    if (l->n && l->v[l->n - 1] == word) /* words are gone through one after the other */
        return true;
    void *v = l->v;
    if (!grown(&v, &l->room, l->n + 1, sizeof *l->v))
        return false;
    l->v = v;
    l->v[l->n++] = word;
    return true;
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ x >> 32) * 0x9e3779b97f4a7c15u;
    return x ^ x >> 29;
}

static PairCount *pair_place(PairCount *slot, size_t slots, TokenPair pair)
{
    size_t i = mix(pair) & (slots - 1);
    while (slot[i].used && slot[i].pair != pair)
        i = (i + 1) & (slots - 1);
    return &slot[i];
}

/* NULL: no memory. It is there until the next call. */
static PairCount *pair_of(Learning *l, TokenPair pair)
{
    if (2 * (l->pairs + 1) > l->pair_slots) {
        size_t slots = l->pair_slots ? 2 * l->pair_slots : 1 << 16;
        PairCount *larger = calloc(slots, sizeof *larger);
        if (!larger)
            return NULL;
        for (size_t i = 0; i < l->pair_slots; i++)
            if (l->pair[i].used)
                *pair_place(larger, slots, l->pair[i].pair) = l->pair[i];
        free(l->pair);
        l->pair = larger;
        l->pair_slots = slots;
    }
    PairCount *p = pair_place(l->pair, l->pair_slots, pair);
    if (!p->used) {
        *p = (PairCount){.pair = pair, .used = true};
        l->pairs++;
    }
    return p;
}

/* A pair stands so many times more in a word. */
static bool count_pair(Learning *l, uint32_t left, uint32_t right, int64_t by, uint32_t word)
{
    PairCount *p = pair_of(l, (TokenPair)left << 32 | right);
    if (!p)
        return false;
    p->count += by;
    if (by < 0)
        return true;
    if (!p->fresh.n) {
        void *v = l->touched;
        if (!grown(&v, &l->touched_room, l->touched_n + 1, sizeof *l->touched))
            return false;
        l->touched = v;
        l->touched[l->touched_n++] = p->pair;
    }
    return push_word(&p->fresh, word);
}

/* ---- the heap: the most frequent first, of equals the lower pair ---- */

static bool goes_before(const PairEntry *a, const PairEntry *b)
{
    return a->count != b->count ? a->count > b->count : a->pair < b->pair;
}

static bool heap_push(Learning *l, PairEntry e)
{
    void *v = l->heap;
    if (!grown(&v, &l->heap_room, l->heap_n + 1, sizeof *l->heap))
        return false;
    l->heap = v;
    size_t i = l->heap_n++;
    for (; i && goes_before(&e, &l->heap[(i - 1) / 2]); i = (i - 1) / 2)
        l->heap[i] = l->heap[(i - 1) / 2];
    l->heap[i] = e;
    return true;
}

static PairEntry heap_pop(Learning *l)
{
    PairEntry top = l->heap[0], e = l->heap[--l->heap_n];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < l->heap_n; i = child) {
        child += child + 1 < l->heap_n && goes_before(&l->heap[child + 1], &l->heap[child]);
        if (!goes_before(&l->heap[child], &e))
            break;
        l->heap[i] = l->heap[child];
    }
    if (l->heap_n)
        l->heap[i] = e;
    return top;
}

/* An entry for each pair that stands in further words. */
static bool push_touched(Learning *l)
{
    for (size_t i = 0; i < l->touched_n; i++) {
        PairCount *p = pair_of(l, l->touched[i]);
        if (!p)
            return false;
        PairEntry e = {p->pair, p->count, p->fresh};
        p->fresh = (WordList){0};
        if (e.count <= 0)
            free(e.words.v);
        else if (!heap_push(l, e)) {
            free(e.words.v);
            return false;
        }
    }
    l->touched_n = 0;
    return true;
}

/* ---- words ---- */

static int by_bytes(const void *a, const void *b)
{
    const PieceCount *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

/* Pieces become words of ids, in the order in which they came. */
static bool open_words(Learning *l, const Pieces *p, const uint32_t of_byte[256])
{
    PieceCount *all = malloc((p->n + 1) * sizeof *all);
    size_t n = 0, at = 0;
    l->word = malloc((p->n + 1) * sizeof *l->word);
    l->id = malloc((p->bytes_n + 1) * sizeof *l->id);
    bool fine = all && l->word && l->id && p->n < UINT32_MAX;
    for (size_t i = 0; fine && i < p->slots; i++)
        if (p->slot[i].count)
            all[n++] = p->slot[i];
    if (fine)
        qsort(all, n, sizeof *all, by_bytes);
    for (size_t i = 0; fine && i < n; i++) {
        l->word[i] = (LearnWord){at, all[i].n, all[i].count};
        for (size_t k = 0; k < all[i].n; k++)
            l->id[at++] = of_byte[(unsigned char)p->bytes[all[i].at + k]];
        for (size_t k = 1; fine && k < all[i].n; k++)
            fine = count_pair(l, l->id[at - all[i].n + k - 1], l->id[at - all[i].n + k], (int64_t)all[i].count,
                              (uint32_t)i);
    }
    l->words = n;
    free(all);
    return fine && push_touched(l);
}

/* Each place of the pair in a word becomes `id`; the pairs beside it are other ones then. */
static bool merge_word(Learning *l, uint32_t word, uint32_t left, uint32_t right, uint32_t id)
{
    LearnWord *w = &l->word[word];
    uint32_t *s = l->id + w->at;
    int64_t count = (int64_t)w->count;
    size_t put = 0;
    bool fine = true;
    for (size_t i = 0; fine && i < w->n; i++) {
        if (i + 1 >= w->n || s[i] != left || s[i + 1] != right) {
            s[put++] = s[i];
            continue;
        }
        if (put)
            fine = count_pair(l, s[put - 1], left, -count, word) && count_pair(l, s[put - 1], id, count, word);
        if (i + 2 < w->n)
            fine = fine && count_pair(l, right, s[i + 2], -count, word) && count_pair(l, id, s[i + 2], count, word);
        s[put++] = id;
        i++;
    }
    w->n = (uint32_t)put;
    return fine;
}

/* ---- all merges ---- */

/* The token with the bytes of both, which may be there; TOKEN_NONE: it would be too long. */
static int64_t token_of(Vocabulary *v, unsigned char *room, TokenPair pair)
{
    const VocabularyToken *x = &v->token[pair >> 32], *y = &v->token[(uint32_t)pair];
    size_t n = (size_t)x->length + y->length;
    if (n > TOKEN_MOST)
        return TOKEN_NONE;
    memcpy(room, v->bytes + x->at, x->length);
    memcpy(room + x->length, v->bytes + y->at, y->length);
    int64_t id = vocabulary_find(v, room, n);
    if (id != TOKEN_NONE)
        return id;
    id = v->size;
    return vocabulary_add(v, id, room, n, false) == ADD_FINE ? id : TOKEN_NONE;
}

static void close_learning(Learning *l)
{
    for (size_t i = 0; i < l->pair_slots; i++)
        free(l->pair[i].fresh.v);
    for (size_t i = 0; i < l->heap_n; i++)
        free(l->heap[i].words.v);
    free(l->pair);
    free(l->heap);
    free(l->touched);
    free(l->word);
    free(l->id);
}

/* A pair that was merged twice has the later rank. */
static void each_once(Arena *a, Learned *out)
{
    size_t n = 0;
    bool *again = NEW_ARRAY(a, bool, out->merges + 1);
    Vocabulary *seen = vocabulary_new(a, 1, 1);
    vocabulary_merges(seen, out->merges + 1);
    for (size_t i = out->merges; i-- > 0;)
        again[i] = !vocabulary_merge(seen, out->merge[i].left, out->merge[i].right, 0, 0);
    for (size_t i = 0; i < out->merges; i++)
        if (!again[i])
            out->merge[n++] = out->merge[i];
    out->merges = n;
}

bool learn_merges(Arena *a, const Pieces *p, int64_t tokens, LearnGoesOn *go_on, void *user, Learned *out)
{
    enum { ASK = 64 };
    Learning l = {0};
    uint32_t of_byte[256];
    unsigned char *room = arena_take(a, TOKEN_MOST);
    VEC(LearnedMerge) merges = {0};
    Vocabulary *v = vocabulary_new(a, tokens, 8 * (size_t)tokens);
    for (int64_t i = 0; i < 256; i++) {
        unsigned char byte = bulk_byte((int)i);
        of_byte[byte] = (uint32_t)i;
        vocabulary_add(v, i, &byte, 1, false);
    }
    bool fine = open_words(&l, p, of_byte), goes = true;
    while (fine && goes && v->size < tokens && l.heap_n) {
        PairEntry top = heap_pop(&l);
        const PairCount *now = pair_of(&l, top.pair);
        fine = now != NULL;
        if (fine && now->count != top.count) {
            top.count = now->count;
            fine = heap_push(&l, top);
            if (!fine)
                free(top.words.v);
            continue;
        }
        int64_t id = fine && top.count > 0 ? token_of(v, room, top.pair) : TOKEN_NONE;
        if (id != TOKEN_NONE)
            vec_push(a, &merges, (LearnedMerge){(uint32_t)(top.pair >> 32), (uint32_t)top.pair, (uint32_t)id});
        for (size_t i = 0; fine && id != TOKEN_NONE && i < top.words.n; i++)
            fine = merge_word(&l, top.words.v[i], (uint32_t)(top.pair >> 32), (uint32_t)top.pair, (uint32_t)id);
        free(top.words.v);
        fine = fine && push_touched(&l);
        if (fine && top.count <= 0)
            break;
        if (merges.n % ASK == 0)
            goes = go_on(user, v->size);
    }
    close_learning(&l);
    *out = (Learned){v, merges.v, merges.n};
    each_once(a, out);
    return fine && goes;
}
