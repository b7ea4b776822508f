/* texts.h - the texts of a call: where they lie, and what of them is a document.
 *
 * In:  names of files, "-" for the standard input.   Out: the same in the order in which they are read, and a hash of what they are.
 */
#ifndef VWN_TEXTS_H
#define VWN_TEXTS_H

#include "runtime/exec/session.h"

typedef struct Texts {
    const char **path, **name; /* "-" is the standard input; what messages call it */
    const char **field;        /* a line is a document: this member of its object; NULL: the text is one */
    int64_t *bytes;            /* as it lies on the disk, -1: that is not known */
    size_t n;
} Texts;
typedef struct TextsAsk {
    const char *const *text;
    size_t n;
    const char *field; /* of all; NULL: "text" of those named .jsonl or .ndjson, which may be packed */
    bool shuffle;      /* in an order that `seed` decides */
    uint64_t seed;
} TextsAsk;
/* Raises ST_ENVIRONMENT when one cannot be read, ST_USAGE when the standard input is named twice. */
void texts_list(Session *s, const TextsAsk *ask, Texts *out, char hash[65]);

#endif
