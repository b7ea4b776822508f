/* merge.c - see merge.h.
 *
 * The one idea: most pieces are tokens, most others were seen before. What is left is merged pair by pair, the lowest rank first and of
 * these the first one: short pieces by looking at all pairs each time, long ones with a heap of pairs.
 */
#include "merge.h"

#include <stdlib.h>

enum {
    KNOWN = 1 << 14, /* pieces that are remembered: 1.5 MB */
    KNOWN_BYTES = 32,
    KNOWN_IDS = 12,
    SHORT = 48
};
#define NO_RANK UINT32_MAX

struct MergeKnown {
    uint32_t hash;
    uint8_t bytes, ids;
    unsigned char text[KNOWN_BYTES];
    uint32_t id[KNOWN_IDS];
};

struct MergePart {
    uint32_t at, id;
    uint32_t rank, becomes; /* of the pair that begins here */
    uint32_t before, behind;
};

bool ids_room(IdList *l, size_t more)
{
    if (l->room - l->n >= more)
        return true;
    size_t room = 2 * (l->n + more) + 64;
    uint32_t *v = room > SIZE_MAX / sizeof *v ? NULL : realloc(l->v, room * sizeof *v);
    if (!v)
        return false;
    l->v = v;
    l->room = room;
    return true;
}

bool merging_open(Merging *m, const Vocabulary *v)
{
    *m = (Merging){.whole = calloc((size_t)v->size + 1, 1), .known = calloc(KNOWN, sizeof *m->known)};
    return m->whole && m->known;
}

void merging_close(Merging *m)
{
    free(m->whole);
    free(m->known);
    free(m->part);
    free(m->heap);
    *m = (Merging){0};
}

static bool parts_room(Merging *m, size_t n)
{
    if (m->room >= n)
        return true;
    free(m->part);
    m->part = malloc(n * sizeof *m->part);
    m->room = m->part ? n : 0;
    return m->part != NULL;
}

/* The rank of the pair of parts i and j, which follow each other, and what it becomes. */
static void rank_pair(const Vocabulary *v, const unsigned char *s, MergePart *i, const MergePart *j, size_t end)
{
    i->rank = NO_RANK;
    if (v->merge) {
        const VocabularyMerge *m = vocabulary_pair(v, i->id, j->id);
        if (m) {
            i->rank = m->rank;
            i->becomes = m->id;
        }
        return;
    }
    int64_t id = vocabulary_find(v, s + i->at, end - i->at);
    if (id >= 0)
        i->rank = i->becomes = (uint32_t)id;
}

/* The same where both are bytes. */
static void rank_two(const Vocabulary *v, const unsigned char *s, MergePart *i)
{
    const VocabularyTwo *two = &v->two[s[i->at] << 8 | s[i->at + 1]];
    i->rank = two->rank;
    i->becomes = two->id;
}

/* Parts lie behind each other; a merge moves those behind it. */
static size_t merge_short(const Vocabulary *v, const unsigned char *s, size_t n, MergePart *p)
{
    size_t k = n;
    for (size_t i = 0; i < n; i++)
        p[i] = (MergePart){.at = (uint32_t)i, .id = (uint32_t)v->byte[s[i]]};
    for (size_t i = 0; i + 1 < n; i++)
        rank_two(v, s, &p[i]);
    for (;;) {
        uint32_t best = NO_RANK;
        size_t at = 0;
        for (size_t i = 0; i + 1 < k; i++)
            if (p[i].rank < best) {
                best = p[i].rank;
                at = i;
            }
        if (best == NO_RANK)
            return k;
        p[at].id = p[at].becomes;
        memmove(p + at + 1, p + at + 2, (k - at - 2) * sizeof *p);
        k--;
        if (at + 1 < k)
            rank_pair(v, s, &p[at], &p[at + 1], at + 2 < k ? p[at + 2].at : n);
        if (at)
            rank_pair(v, s, &p[at - 1], &p[at], at + 1 < k ? p[at + 1].at : n);
    }
}

/* ---- long pieces: pairs in a heap, which may be of the past ---- */

static void sift_up(uint64_t *heap, size_t i)
{
    for (uint64_t x = heap[i]; i && heap[(i - 1) / 2] > x; i = (i - 1) / 2) {
        heap[i] = heap[(i - 1) / 2];
        heap[(i - 1) / 2] = x;
    }
}

static void sift_down(uint64_t *heap, size_t n)
{
    uint64_t x = heap[0];
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < n; i = child) {
        child += child + 1 < n && heap[child + 1] < heap[child];
        if (heap[child] >= x)
            break;
        heap[i] = heap[child];
    }
    heap[i] = x;
}

typedef struct Long {
    const Vocabulary *v;
    const unsigned char *s;
    size_t n, heap_n;
    MergePart *p;
    uint64_t *heap;
} Long;

/* The rank above, the place below: the lowest rank comes first, of equal ones the first place. */
static void push_pair(Long *l, size_t i)
{
    MergePart *p = &l->p[i];
    p->rank = NO_RANK;
    if (p->behind >= l->n)
        return;
    uint32_t end = l->p[p->behind].behind;
    size_t to = end < l->n ? l->p[end].at : l->n;
    if (to - p->at == 2)
        rank_two(l->v, l->s, p);
    else
        rank_pair(l->v, l->s, p, &l->p[p->behind], to);
    if (p->rank == NO_RANK)
        return;
    l->heap[l->heap_n] = (uint64_t)p->rank << 32 | (uint32_t)i;
    sift_up(l->heap, l->heap_n++);
}

static size_t merge_long(const Vocabulary *v, const unsigned char *s, size_t n, MergePart *p, uint64_t *heap)
{
    Long l = {v, s, n, 0, p, heap};
    for (size_t i = 0; i < n; i++)
        p[i] = (MergePart){(uint32_t)i, (uint32_t)v->byte[s[i]], NO_RANK, 0, (uint32_t)i - 1, (uint32_t)i + 1};
    for (size_t i = 0; i + 1 < n; i++)
        push_pair(&l, i);
    while (l.heap_n) {
        uint64_t top = heap[0];
        size_t i = (uint32_t)top;
        heap[0] = heap[--l.heap_n];
        sift_down(heap, l.heap_n);
        if (p[i].rank != (uint32_t)(top >> 32))
            continue; /* the pair became another one, or part of one */
        size_t gone = p[i].behind;
        p[i].id = p[i].becomes;
        p[i].behind = p[gone].behind;
        p[gone].rank = NO_RANK;
        if (p[i].behind < n)
            p[p[i].behind].before = (uint32_t)i;
        push_pair(&l, i);
        if (i)
            push_pair(&l, p[i].before);
    }
    size_t k = 0;
    for (size_t i = 0; i < n; i = p[i].behind)
        p[k++].id = p[i].id;
    return k;
}

/* Into m->part: how many, 0 without memory. */
static size_t merge_parts(Merging *m, const Vocabulary *v, const unsigned char *s, size_t n)
{
    if (n >= UINT32_MAX / 4 || !parts_room(m, n < SHORT ? SHORT : n))
        return 0;
    if (n <= SHORT)
        return merge_short(v, s, n, m->part);
    if (m->heap_room < 3 * n) {
        free(m->heap);
        m->heap = malloc(3 * n * sizeof *m->heap); /* a pair each at first, two more with each merge */
        m->heap_room = m->heap ? 3 * n : 0;
    }
    return m->heap ? merge_long(v, s, n, m->part, m->heap) : 0;
}

/* Whether a token is what its bytes merge to. */
static bool is_whole(Merging *m, const Vocabulary *v, uint32_t id, const unsigned char *s, size_t n)
{
    if (!m->whole[id]) {
        size_t k = merge_parts(m, v, s, n);
        m->whole[id] = k == 1 && m->part[0].id == id ? 1 : 2;
    }
    return m->whole[id] == 1;
}

bool merge_piece(Merging *m, const Vocabulary *v, bool direct, const unsigned char *s, size_t n, IdList *out)
{
    if (!ids_room(out, n))
        return false;
    uint32_t hash = token_hash(s, n);
    int64_t id = vocabulary_find(v, s, n);
    if (id >= 0 && (direct || is_whole(m, v, (uint32_t)id, s, n))) {
        out->v[out->n++] = (uint32_t)id;
        return true;
    }
    MergeKnown *known = &m->known[hash & (KNOWN - 1)];
    if (known->bytes == n && known->hash == hash && !memcmp(known->text, s, n)) {
        memcpy(out->v + out->n, known->id, known->ids * sizeof *known->id);
        out->n += known->ids;
        return true;
    }
    size_t k = merge_parts(m, v, s, n);
    if (!k)
        return false;
    for (size_t i = 0; i < k; i++)
        out->v[out->n + i] = m->part[i].id;
    if (n <= KNOWN_BYTES && k <= KNOWN_IDS) {
        known->hash = hash;
        known->bytes = (uint8_t)n;
        known->ids = (uint8_t)k;
        memcpy(known->text, s, n);
        memcpy(known->id, out->v + out->n, k * sizeof *known->id);
    }
    out->n += k;
    return true;
}
