/* vocabulary.c - see vocabulary.h. */
#include "vocabulary.h"

static const uint64_t odd = 0x9e3779b97f4a7c15u;

/* The first bytes of a token: of two that are as long and at most 8 bytes they are equal only when the tokens are. */
static uint64_t head_of(const unsigned char *s, size_t n)
{
    uint64_t w = 0;
    if (n >= 8) {
        memcpy(&w, s, 8);
    } else if (n >= 4) {
        uint32_t low, high;
        memcpy(&low, s, 4);
        memcpy(&high, s + n - 4, 4);
        w = (uint64_t)high << 32 | low;
    } else if (n) {
        w = (uint64_t)s[0] << 16 | (uint64_t)s[n / 2] << 8 | s[n - 1];
    }
    return w;
}

static uint32_t hash_behind(uint64_t head, const unsigned char *s, size_t n)
{
    uint64_t h = (head ^ n * odd) * odd, w;
    for (; n > 8; n = n > 16 ? n - 8 : 8) {
        s += n > 16 ? 8 : n - 8; /* the last 8 bytes may overlap those before */
        memcpy(&w, s, 8);
        h = ((h ^ h >> 29) ^ w) * odd;
    }
    h ^= h >> 32;
    return (uint32_t)(h * odd >> 32);
}

uint32_t token_hash(const unsigned char *s, size_t n) { return hash_behind(head_of(s, n), s, n); }

static uint32_t power_above(size_t n)
{
    uint32_t p = 64;
    while (p < n)
        p *= 2;
    return p;
}

Vocabulary *vocabulary_new(Arena *a, int64_t tokens, size_t bytes)
{
    Vocabulary *v = NEW(a, Vocabulary);
    v->arena = a;
    v->token_room = tokens + 64;
    v->token = NEW_ARRAY(a, VocabularyToken, (size_t)v->token_room);
    v->room = bytes + 64;
    v->bytes = arena_take(a, v->room);
    v->slots = power_above(2 * (size_t)tokens + 64);
    v->slot = NEW_ARRAY(a, VocabularySlot, v->slots);
    v->filter = NEW_ARRAY(a, uint64_t, 1 << (FILTER_BITS - 6));
    return v;
}

static void put_slot(Vocabulary *v, VocabularySlot slot)
{
    uint32_t i = slot.hash & (v->slots - 1), bit = slot.hash >> (32 - FILTER_BITS);
    v->filter[bit / 64] |= 1ull << bit % 64;
    while (v->slot[i].id)
        i = (i + 1) & (v->slots - 1);
    v->slot[i] = slot;
}

static void more_slots(Vocabulary *v)
{
    VocabularySlot *old = v->slot;
    uint32_t n = v->slots;
    v->slots *= 2;
    v->slot = NEW_ARRAY(v->arena, VocabularySlot, v->slots);
    for (uint32_t i = 0; i < n; i++)
        if (old[i].id)
            put_slot(v, old[i]);
}

static void make_room(Vocabulary *v, int64_t id, size_t n)
{
    if (v->n_bytes + n > v->room) {
        unsigned char *bytes = arena_take(v->arena, v->room = 2 * (v->room + n));
        memcpy(bytes, v->bytes, v->n_bytes);
        v->bytes = bytes;
    }
    if (id >= v->token_room) {
        VocabularyToken *token = NEW_ARRAY(v->arena, VocabularyToken, (size_t)(v->token_room = 2 * (id + 1)));
        memcpy(token, v->token, (size_t)v->size * sizeof *token);
        v->token = token;
    }
}

Adding vocabulary_add(Vocabulary *v, int64_t id, const unsigned char *s, size_t n, bool apart)
{
    if (id < 0 || id >= IDS_MOST || !n || n > TOKEN_MOST || v->n_bytes + n > UINT32_MAX / 2)
        return ADD_TOO_LARGE;
    if (id < v->size && v->token[id].length)
        return ADD_ID_TWICE;
    if (!apart && vocabulary_find(v, s, n) != TOKEN_NONE)
        return ADD_BYTES_TWICE;
    make_room(v, id, n);
    memcpy(v->bytes + v->n_bytes, s, n);
    v->token[id] = (VocabularyToken){(uint32_t)v->n_bytes, (uint32_t)n, apart};
    v->n_bytes += n;
    v->size = id >= v->size ? id + 1 : v->size;
    v->tokens++;
    if (!apart) {
        if (2 * v->tokens > v->slots)
            more_slots(v);
        put_slot(v, (VocabularySlot){.head = head_of(s, n),
                                     .hash = token_hash(s, n),
                                     .id = (uint32_t)id + 1,
                                     .length = n < SLOT_LENGTH ? (uint32_t)n : SLOT_LENGTH});
    }
    return ADD_FINE;
}

int64_t vocabulary_find(const Vocabulary *v, const unsigned char *s, size_t n)
{
    uint64_t head = head_of(s, n);
    uint32_t hash = hash_behind(head, s, n), mask = v->slots - 1, length = n < SLOT_LENGTH ? (uint32_t)n : SLOT_LENGTH;
    uint32_t bit = hash >> (32 - FILTER_BITS);
    if (!(v->filter[bit / 64] >> bit % 64 & 1))
        return TOKEN_NONE;
    for (uint32_t i = hash & mask; v->slot[i].id; i = (i + 1) & mask) {
        const VocabularySlot *slot = &v->slot[i];
        if (slot->hash != hash || slot->head != head || slot->length != length)
            continue;
        const VocabularyToken *t = n > 8 ? &v->token[slot->id - 1] : NULL;
        if (!t || (t->length == n && !memcmp(v->bytes + t->at, s, n)))
            return slot->id - 1;
    }
    return TOKEN_NONE;
}

void vocabulary_merges(Vocabulary *v, size_t n)
{
    v->merge_slots = power_above(2 * n + 64);
    v->merge = NEW_ARRAY(v->arena, VocabularyMerge, v->merge_slots);
}

static uint32_t pair_place(const Vocabulary *v, uint32_t left, uint32_t right)
{
    uint64_t h = ((uint64_t)left << 32 | right) * 0x9e3779b97f4a7c15u;
    uint32_t mask = v->merge_slots - 1, i = (uint32_t)(h >> 32) & mask;
    while (v->merge[i].rank && (v->merge[i].left != left || v->merge[i].right != right))
        i = (i + 1) & mask;
    return i;
}

static void more_merges(Vocabulary *v)
{
    VocabularyMerge *old = v->merge;
    uint32_t n = v->merge_slots;
    v->merge_slots *= 2;
    v->merge = NEW_ARRAY(v->arena, VocabularyMerge, v->merge_slots);
    for (uint32_t i = 0; i < n; i++)
        if (old[i].rank)
            v->merge[pair_place(v, old[i].left, old[i].right)] = old[i];
}

bool vocabulary_merge(Vocabulary *v, uint32_t left, uint32_t right, uint32_t rank, uint32_t id)
{
    uint32_t i = pair_place(v, left, right);
    if (v->merge[i].rank)
        return false;
    v->merge[i] = (VocabularyMerge){left, right, rank + 1, id};
    if (2 * ++v->merges > v->merge_slots)
        more_merges(v);
    return true;
}

const VocabularyMerge *vocabulary_pair(const Vocabulary *v, uint32_t left, uint32_t right)
{
    const VocabularyMerge *m = &v->merge[pair_place(v, left, right)];
    return m->rank ? m : NULL;
}

int vocabulary_bytes(Vocabulary *v)
{
    int missing = -1;
    for (int b = 255; b >= 0; b--) {
        unsigned char s = (unsigned char)b;
        v->byte[b] = (int32_t)vocabulary_find(v, &s, 1);
        if (v->byte[b] < 0)
            missing = b;
    }
    v->two = arena_take(v->arena, sizeof *v->two << 16);
    for (int b = 0; b < 1 << 16; b++) {
        const unsigned char s[2] = {(unsigned char)(b >> 8), (unsigned char)b};
        int64_t id = v->merge ? TOKEN_NONE : vocabulary_find(v, s, 2);
        const VocabularyMerge *m =
            v->merge ? vocabulary_pair(v, (uint32_t)v->byte[s[0]], (uint32_t)v->byte[s[1]]) : NULL;
        v->two[b] = m         ? (VocabularyTwo){m->rank, m->id}
                    : id >= 0 ? (VocabularyTwo){(uint32_t)id, (uint32_t)id}
                              : (VocabularyTwo){UINT32_MAX, 0};
    }
    return missing;
}
