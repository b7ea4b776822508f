/* encode.h - the ids of many documents, by several threads.
 *
 * In:  a batch, an order of its parts.   Out: the ids of each.
 */
#ifndef VWN_ENCODE_H
#define VWN_ENCODE_H

#include "compiler/portable/threads.h"
#include "documents.h"

typedef struct PartIds {
    const IdList *list; /* of a thread; NULL: the part has no text */
    size_t at, n;
} PartIds;

typedef struct Encoder Encoder;
typedef struct EncoderOptions {
    const Bpe *bpe;
    int threads;
    const char *const *name;  /* of texts, for messages */
    const char *const *field; /* of each text: which member of a line is the document; NULL: the text itself */
} EncoderOptions;
Encoder *encoder_open(const EncoderOptions *how); /* NULL: no memory */
/* Of parts order[0, n), each into out[i], which lives until the next call. False with `why`: of what comes first in the order. */
bool encode_parts(Encoder *e, const TextBatch *b, const size_t *order, size_t n, PartIds *out, char why[WHY]);
void encoder_close(Encoder *e); /* NULL is fine */

#endif
