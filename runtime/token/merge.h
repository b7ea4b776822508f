/* merge.h - the ids of a piece of text.
 *
 * In:  bytes.   Out: ids, in memory of one thread.
 */
#ifndef VWN_MERGE_H
#define VWN_MERGE_H

#include "vocabulary.h"

/* Ids as they come; memory of malloc(), since threads have none of the context's. */
typedef struct IdList {
    uint32_t *v;
    size_t n, room;
} IdList;
bool ids_room(IdList *l, size_t more); /* false: no memory */

typedef struct MergeKnown MergeKnown; /* a piece that was merged before */
typedef struct MergePart MergePart;
/* What one thread needs. */
typedef struct Merging {
    unsigned char *whole; /* of a token: 1, merging its bytes gives it; 2, it does not; 0, not yet known */
    MergeKnown *known;
    MergePart *part;
    uint64_t *heap;
    size_t room, heap_room;
} Merging;
bool merging_open(Merging *m, const Vocabulary *v); /* false: no memory */
void merging_close(Merging *m);
/* `direct`: a piece that is a token is that, whatever merging would give. Appends; false: no memory. */
bool merge_piece(Merging *m, const Vocabulary *v, bool direct, const unsigned char *s, size_t n, IdList *out);

#endif
