/* vocabulary.c - see vocabulary.h. */
#include "vocabulary.h"

uint32_t token_hash(const unsigned char *s, size_t n)
{
    const uint64_t odd = 0x9e3779b97f4a7c15u;
    uint64_t h = n * odd, w = 0;
    for (; n >= 8; n -= 8, s += 8) {
        memcpy(&w, s, 8);
        h = (h ^ w) * odd;
        h ^= h >> 29;
    }
    if (n >= 4) {
        uint32_t low, high;
        memcpy(&low, s, 4);
        memcpy(&high, s + n - 4, 4);
        w = (uint64_t)high << 32 | low;
    } else if (n) {
        w = (uint64_t)s[0] << 16 | (uint64_t)s[n / 2] << 8 | s[n - 1];
    }
    h = (h ^ w) * odd;
    h ^= h >> 32;
    return (uint32_t)(h * odd >> 32);
}

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
    return v;
}

static void put_slot(Vocabulary *v, uint32_t hash, uint32_t id)
{
    uint32_t i = hash & (v->slots - 1);
    while (v->slot[i].id)
        i = (i + 1) & (v->slots - 1);
    v->slot[i] = (VocabularySlot){hash, id + 1};
}

static void more_slots(Vocabulary *v)
{
    VocabularySlot *old = v->slot;
    uint32_t n = v->slots;
    v->slots *= 2;
    v->slot = NEW_ARRAY(v->arena, VocabularySlot, v->slots);
    for (uint32_t i = 0; i < n; i++)
        if (old[i].id)
            put_slot(v, old[i].hash, old[i].id - 1);
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
        put_slot(v, token_hash(s, n), (uint32_t)id);
    }
    return ADD_FINE;
}

int64_t vocabulary_find(const Vocabulary *v, const unsigned char *s, size_t n)
{
    uint32_t hash = token_hash(s, n), mask = v->slots - 1;
    for (uint32_t i = hash & mask; v->slot[i].id; i = (i + 1) & mask) {
        if (v->slot[i].hash != hash)
            continue;
        const VocabularyToken *t = &v->token[v->slot[i].id - 1];
        if (t->length == n && !memcmp(v->bytes + t->at, s, n))
            return v->slot[i].id - 1;
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

bool vocabulary_merge(Vocabulary *v, uint32_t left, uint32_t right, uint32_t rank, uint32_t id)
{
    uint32_t i = pair_place(v, left, right);
    if (v->merge[i].rank)
        return false;
    v->merge[i] = (VocabularyMerge){left, right, rank + 1, id};
    v->merges++;
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
    return missing;
}
