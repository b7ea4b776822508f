/* token_index.c - see token_index.h. */
#define _DEFAULT_SOURCE
#include "token_index.h"
#include "mapped.h"

#include "runtime/token/vocabulary.h"

#include <errno.h>
#include <unistd.h>

typedef struct Reading {
    Session *s;
    const char *path;
} Reading;

static int64_t number(const Reading *r, const Json *of, const char *key, int64_t least, int64_t most)
{
    const Json *j = json_get(of, key);
    if (!j || !j->whole || j->integer < least || j->integer > most)
        mapped_wrong(r->s, r->path, "byte %zu: `%s` is no number from %lld to %lld", j ? j->offset : of->offset, key,
                     (long long)least, (long long)most);
    return j->integer;
}

static const char *text(const Reading *r, const Json *of, const char *key)
{
    const char *s = json_string(of, key);
    if (!s)
        mapped_wrong(r->s, r->path, "byte %zu: it has no text `%s`", of->offset, key);
    return s;
}

/* An object of strings, as it is written. */
static const char *put_made(const Reading *r, const Json *made)
{
    Buf b = buf_new(r->s->arena);
    if (!made || made->kind != JSON_OBJECT)
        mapped_wrong(r->s, r->path, "it has no object `made`");
    for (const Json *k = made->first; k; k = k->next) {
        if (k->kind != JSON_STRING)
            mapped_wrong(r->s, r->path, "byte %zu: this is no text", k->offset);
        buf_puts(&b, b.n ? "," : "{");
        buf_json_string(&b, k->key, k->key_n);
        buf_puts(&b, ":");
        buf_json_string(&b, k->s, k->n);
    }
    buf_puts(&b, b.n ? "}" : "{}");
    return b.s;
}

static void read_index(const Reading *r, const Json *j, TokenIndex *x)
{
    const Json *next = json_get(j, "next"), *list = json_get(j, "shards"), *complete = json_get(j, "complete");
    if (j->kind != JSON_OBJECT || strcmp(text(r, j, "format"), "vwn tokens") || number(r, j, "v", 1, 1) != 1)
        mapped_wrong(r->s, r->path, "`vwn tokenize` has not written it");
    x->width = (int)number(r, j, "width", 2, 4);
    if (x->width == 3 || !next || next->kind != JSON_OBJECT || !list || list->kind != JSON_ARRAY || !complete)
        mapped_wrong(r->s, r->path, "it does not say how ids are stored, or in which shards");
    x->vocab = number(r, j, "vocab", 1, IDS_MOST);
    x->separator = number(r, j, "separator", -1, x->vocab - 1);
    x->vocabulary = text(r, j, "vocabulary");
    x->complete = complete->kind == JSON_TRUE;
    x->made = put_made(r, json_get(j, "made"));
    x->next = (TokenNext){.input = number(r, next, "input", 0, INT64_MAX),
                          .offset = number(r, next, "offset", 0, INT64_MAX),
                          .line = number(r, next, "line", 0, INT64_MAX),
                          .within = number(r, next, "within", 0, 1),
                          .skip = number(r, next, "skip", 0, INT64_MAX),
                          .sum = number(r, next, "sum", 0, INT64_MAX)};
    for (const Json *k = list->first; k; k = k->next) {
        TokenShard one = {.file = text(r, k, "file"),
                          .tokens = number(r, k, "tokens", 1, INT64_MAX / 8),
                          .documents = number(r, k, "documents", 0, INT64_MAX / 8),
                          .bytes = number(r, k, "bytes", 0, INT64_MAX / 8)};
        if (!*one.file || strchr(one.file, '/'))
            mapped_wrong(r->s, r->path, "byte %zu: this is no file of the folder", k->offset);
        vec_push(r->s->arena, &x->shard, one);
    }
}

TokenIndex *token_index_read(Session *s, const char *folder)
{
    Reading r = {s, *folder ? arena_printf(s->arena, "%s/" TOKEN_INDEX, folder) : TOKEN_INDEX};
    if (access(r.path, F_OK) && errno == ENOENT)
        return NULL;
    TokenIndex *x = NEW(s->arena, TokenIndex);
    Mapped file;
    JsonError e;
    mapped_open(s, &file, r.path);
    const Json *j = json_read(s->arena, (const char *)file.map, file.bytes, &e);
    if (!j)
        mapped_wrong(s, r.path, "byte %zu: %s", e.offset, e.what);
    x->path = r.path;
    read_index(&r, j, x);
    return x;
}

void token_index_put(const TokenIndex *x, Buf *b)
{
    const TokenNext *n = &x->next;
    buf_printf(b, TOKEN_INDEX_MARK ",\"width\":%d,\"vocab\":%lld,\"separator\":%lld,\"vocabulary\":", x->width,
               (long long)x->vocab, (long long)x->separator);
    buf_json_string(b, x->vocabulary, strlen(x->vocabulary));
    buf_printf(
        b,
        ",\"complete\":%s,\n\"made\":%s,\n\"next\":{\"input\":%lld,\"offset\":%lld,\"line\":%lld,\"within\":%lld,"
        "\"skip\":%lld,\"sum\":%lld},\n\"shards\":[",
        x->complete ? "true" : "false", x->made, (long long)n->input, (long long)n->offset, (long long)n->line,
        (long long)n->within, (long long)n->skip, (long long)n->sum);
    for (size_t i = 0; i < x->shard.n; i++) {
        const TokenShard *k = &x->shard.v[i];
        buf_puts(b, i ? ",\n{\"file\":" : "\n{\"file\":");
        buf_json_string(b, k->file, strlen(k->file));
        buf_printf(b, ",\"tokens\":%lld,\"documents\":%lld,\"bytes\":%lld}", (long long)k->tokens,
                   (long long)k->documents, (long long)k->bytes);
    }
    buf_puts(b, "]}\n");
}

const TokenShard *token_index_shard(const TokenIndex *x, const char *file)
{
    for (size_t i = 0; i < x->shard.n; i++)
        if (!strcmp(x->shard.v[i].file, file))
            return &x->shard.v[i];
    return NULL;
}

TokenShard token_index_all(const TokenIndex *x)
{
    TokenShard all = {0};
    for (size_t i = 0; i < x->shard.n; i++) {
        all.tokens += x->shard.v[i].tokens;
        all.documents += x->shard.v[i].documents;
        all.bytes += x->shard.v[i].bytes;
    }
    return all;
}
