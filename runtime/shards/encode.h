/* encode.h - the ids of many documents, by several threads.
 *
 * In:  a batch, an order of its parts.   Out: the ids of each.
 */
#ifndef VWN_ENCODE_H
#define VWN_ENCODE_H

#include "compiler/portable/threads.h"
#include "documents.h"
#include "runtime/token/learn.h"

typedef struct PartIds {
    const IdList *list; /* of a thread; NULL: the part has no text */
    size_t at, n;
} PartIds;

typedef struct Encoder Encoder;
typedef struct EncoderOptions {
    const Bpe *bpe;
    int threads;
    const Texts *texts;
    bool counts; /* pieces are counted instead of making ids */
} EncoderOptions;
Encoder *encoder_open(const EncoderOptions *how); /* NULL: no memory */
/* Of parts order[0, n), each into out[i], which lives until the next call. False with `why`: of what comes first in the order. */
bool encode_parts(Encoder *e, const TextBatch *b, const size_t *order, size_t n, PartIds *out, char why[WHY]);
/* The pieces since the last call are added, and forgotten. False: no memory. */
bool encoder_pieces(Encoder *e, Pieces *all);
void encoder_close(Encoder *e); /* NULL is fine */

#endif
