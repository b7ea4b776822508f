/* documents.h - texts as documents, in batches that are read while others are worked on.
 *
 * In:  the names of texts.   Out: batches of documents and of parts of long ones, in their order.
 * The one idea: where a batch begins and ends depends on the texts alone, so a place in them is all that is kept to go on there.
 */
#ifndef VWN_DOCUMENTS_H
#define VWN_DOCUMENTS_H

#include "runtime/token/bpe.h"
#include "texts.h"

/* Where a batch begins. */
typedef struct TextPlace {
    size_t input;    /* which text */
    uint64_t offset; /* of its bytes, unpacked */
    uint64_t line;   /* lines before that */
    bool within;     /* in the middle of a document */
} TextPlace;

/* A document, or a part of one. */
typedef struct TextPart {
    size_t from, to; /* of the batch's text */
    size_t input;
    uint64_t offset, line; /* where it stands in its text, bytes before it and the line from 1 */
    bool begins;           /* a document begins here */
} TextPart;

typedef struct TextBatch {
    char *text;
    size_t n, room;
    TextPart *part;
    size_t parts, part_room;
    TextPlace start;
    bool open; /* its last document goes on in the next one */
    bool last; /* there are no more */
    double before,
        behind; /* shares of the bytes of all texts that were read before it, and with it; negative: that is not known */
    char why[WHY]; /* not "": the texts cannot be read */
} TextBatch;

typedef struct Documents Documents;
typedef struct DocumentsOptions {
    const Texts *texts;
    size_t
        batch; /* bytes of text of a batch, at least; it ends with the document, or the part, in which it has so many */
    const Bpe *bpe; /* by which long documents are cut */
    TextPlace start;
} DocumentsOptions;
/* Starts a thread that reads. NULL: no memory. */
Documents *documents_open(const DocumentsOptions *how);
/* The next batch, which lives until the next call; NULL, while it is not read yet, after a tenth of a second. */
TextBatch *documents_next(Documents *d);
void documents_close(Documents *d); /* NULL is fine */

#endif
