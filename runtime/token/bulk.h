/* bulk.h - the long lists in the file of a tokenizer, read without a tree.
 *
 * In:  JSON.   Out: where a member of an object lies; a vocabulary, merges.
 * The one idea: a vocabulary and its merges are nearly all of such a file and of one form, so they are read in one pass as bytes; all
 * else is small, and read as a tree from a text in which they are left out.
 */
#ifndef VWN_BULK_H
#define VWN_BULK_H

#include "compiler/portable/safetensors.h"
#include "vocabulary.h"

typedef struct BulkRange {
    size_t from, to; /* from == to: it is not there */
} BulkRange;
/* The values of n members of the object that stands in text[within]; false where that is none or has no end. */
bool bulk_members(const char *text, BulkRange within, size_t n, const char *const *key, BulkRange *out);

/* The bytes that a text stands for as letters of a vocabulary, for which `out` has room for n: how many; 0: it has other characters. */
size_t bulk_letters(const char *text, size_t n, unsigned char *out);

/* The byte of letter number `place`, 0 to 255, in the order of their characters; bytes as a JSON string of letters. */
unsigned char bulk_byte(int place);
void bulk_spell(Buf *out, const unsigned char *s, size_t n);

/* {"token": id, ...} and ["a b", ...] or [["a", "b"], ...], tokens as letters that stand for bytes. False with `why`, which has the byte. */
Vocabulary *bulk_vocabulary(Arena *a, const char *text, BulkRange at, char why[WHY]);
bool bulk_merges(Vocabulary *v, const char *text, BulkRange at, char why[WHY]);
/* Lines "a b" behind a first line with a version. */
bool bulk_merge_lines(Vocabulary *v, const char *text, size_t n, char why[WHY]);

#endif
