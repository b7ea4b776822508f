/* token_index.h - tokens.json, which `vwn tokenize` writes beside its shards: what their ids are.
 *
 * In:  a folder.   Out: shards, how ids are stored, which vocabulary they are of, and where the next shard begins.
 */
#ifndef VWN_TOKEN_INDEX_H
#define VWN_TOKEN_INDEX_H

#include "runtime/exec/session.h"

#define TOKEN_INDEX      "tokens.json"
#define TOKEN_INDEX_MARK "{\"v\":1,\"format\":\"vwn tokens\"" /* its first bytes */

typedef struct TokenShard {
    const char *file; /* in the folder */
    int64_t tokens, documents;
    int64_t bytes; /* of text, which its tokens stand for */
} TokenShard;

/* Where the next shard begins: the place of a batch, as documents.h has it, how many of its ids are in shards, and a sum of them. */
typedef struct TokenNext {
    int64_t input, offset, line, within, skip, sum;
} TokenNext;

typedef struct TokenIndex {
    const char *path;       /* of tokens.json */
    int width;              /* bytes of an id, little endian: 2 or 4 */
    int64_t vocab;          /* ids are below it */
    int64_t separator;      /* the id that documents begin with, -1: there is none */
    const char *vocabulary; /* tokenizer_ids_hash() */
    const char *made;       /* an object of strings: by what it was made */
    bool complete;
    TokenNext next;
    VEC(TokenShard) shard;
} TokenIndex;

/* NULL: there is none in the folder ("": the current one). Raises ST_ENVIRONMENT with what is wrong with it. */
TokenIndex *token_index_read(Session *s, const char *folder);
void token_index_put(const TokenIndex *x, Buf *out);
/* The shard of this name; NULL: it is not listed. */
const TokenShard *token_index_shard(const TokenIndex *x, const char *file);
/* Sums over all shards. */
TokenShard token_index_all(const TokenIndex *x);

#endif
