/* tokenize.c - see tokenize.h.
 *
 * The one idea: ids are one long sequence, in which only shards are cut; tokens.json keeps behind each of them the place of the batch in
 * which it ended and how many of its ids are in shards, and from there all is made again.
 */
#define _DEFAULT_SOURCE
#include "tokenize.h"

#include "compiler/portable/file.h"
#include "compiler/portable/order.h"
#include "encode.h"
#include "runtime/base/folder.h"
#include "runtime/base/machine.h"
#include "runtime/base/sha256.h"
#include "runtime/checkpoint/run_dir.h"
#include "runtime/data/token_index.h"
#include "runtime/data/tokenizer.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BATCH = 4 << 20,  /* bytes of text */
    BLOCK = 64 << 20, /* the same where documents are shuffled */
    SLICE = 4 << 20,  /* whose ids are in memory */
    BUFFER = 1 << 20, /* bytes of a shard that are written at once */
    SHARD_TOKENS = 100000000
};

typedef struct Tokenizing {
    Session s;
    const vwn_tokenize_options *how;
    const vwn_writer *out;
    Tokenizer *tokenizer;
    RunDir *folder;
    TokenIndex index;
    Texts texts; /* in the order in which they are read */
    Documents *documents;
    Encoder *encoder;
    /* the batch that is worked on */
    const TextBatch *batch;
    size_t *order, order_room;
    PartIds *ids;
    int64_t seen, skip; /* ids of the batch so far; how many of them are in shards already */
    uint64_t sum;       /* of those that were seen */
    /* the shard that is written */
    int fd; /* -1: none */
    const char *temporary;
    TokenShard shard;
    int64_t most; /* tokens of a shard */
    unsigned char *buffer;
    size_t buffered;
    /* what this start has done */
    double began;
    int64_t bytes_now, tokens_now;
    double share_began;
    vwn_tokenize_event event;
} Tokenizing;

static _Noreturn void failed(Tokenizing *z, const char *path, const char *what)
{
    ctx_raise(z->s.ctx, ST_ENVIRONMENT, "%.300s could not be %s: %s", path, what, strerror(errno));
}

/* ---- the tokenizer ---- */

static void open_tokenizer(Tokenizing *z)
{
    Session *s = &z->s;
    const vwn_tokenize_options *how = z->how;
    TokenizerSpec plain = {.kind = TOKENIZER_FILE, .path = how->tokenizer, .folder = ""};
    const TokenizerSpec *spec = &plain;
    if (!how->tokenizer) {
        const Unit *unit = how->unit ? how->unit->unit : NULL;
        if (!unit)
            ctx_raise(s->ctx, how->unit ? ST_INPUT : ST_USAGE, how->unit ? NULL : "no tokenizer is named");
        if (!unit->train || unit->train->tokenizer.kind != TOKENIZER_FILE || !unit->train->tokenizer.path)
            ctx_raise(
                s->ctx, ST_INPUT,
                "%.300s names no `tokenizer = file(...)`; a text of bytes() or chars() is trained on as it is, by "
                "`text_file`",
                unit->path);
        spec = &unit->train->tokenizer;
    }
    z->tokenizer = tokenizer_file(s, spec);
}

static bool one_token(Tokenizing *z, const char *text, int64_t *id)
{
    char why[WHY];
    size_t n = strlen(text);
    int64_t *ids = NEW_ARRAY(z->s.arena, int64_t, tokenizer_room(z->tokenizer, n));
    bool one = tokenizer_encode(z->tokenizer, "the separator", text, n, ids, why) == 1;
    *id = one ? ids[0] : -1;
    return one;
}

static int64_t find_separator(Tokenizing *z)
{
    const char *asked = z->how->separator;
    int64_t id;
    if (asked && !*asked)
        return -1;
    if (asked && one_token(z, asked, &id))
        return id;
    if (asked)
        ctx_raise(z->s.ctx, ST_USAGE, "the separator `%.60s` is not one token", asked);
    if ((id = tokenizer_end(z->tokenizer)) >= 0)
        return id;
    ctx_raise(
        z->s.ctx, ST_USAGE,
        "the tokenizer has no token that ends a text: name the one that documents begin with, `--separator TEXT`, or "
        "`--separator none`");
}

/* ---- the folder ---- */

/* Everything that decides what is written, as an object of strings. */
static const char *made_of(Tokenizing *z, const char *texts)
{
    char hash[65];
    const char *field = z->how->field ? z->how->field : "";
    Buf b = buf_new(z->s.arena);
    tokenizer_hash(z->s.arena, z->tokenizer, hash);
    buf_printf(&b, "{\"texts\":\"%s\",\"tokenizer\":\"%s\",\"field\":", texts, hash);
    buf_json_string(&b, field, strlen(field));
    buf_printf(&b, ",\"separator\":\"%lld\",\"shard\":\"%lld\",\"shuffle\":\"", (long long)z->index.separator,
               (long long)z->most);
    if (z->how->shuffle)
        buf_printf(&b, "%llu", (unsigned long long)z->how->seed);
    buf_puts(&b, "\"}");
    return b.s;
}

/* Raises where the shards that are there were begun in another way. */
static void same_making(Tokenizing *z, const TokenIndex *there, const char *made)
{
    static const char *const row[][2] = {{"texts", "other texts"},
                                         {"tokenizer", "another tokenizer"},
                                         {"field", "another `--field`"},
                                         {"separator", "another `--separator`"},
                                         {"shard", "another `--shard-tokens`"},
                                         {"shuffle", "another `--shuffle`"}};
    JsonError e;
    Arena *a = z->s.arena;
    const Json *x = json_read(a, there->made, strlen(there->made), &e), *y = json_read(a, made, strlen(made), &e);
    for (size_t i = 0; i < COUNT_OF(row); i++) {
        const char *was = json_string(x, row[i][0]), *is = json_string(y, row[i][0]);
        if (!was || strcmp(was, is) != 0)
            ctx_raise(z->s.ctx, ST_USAGE, "%.300s: these shards were begun with %s; `--overwrite` begins anew",
                      there->path, row[i][1]);
    }
}

static void write_index(Tokenizing *z)
{
    ArenaMark mark = arena_mark(z->s.arena);
    Buf b = buf_new(z->s.arena);
    token_index_put(&z->index, &b);
    run_write_file(&z->s, z->folder, TOKEN_INDEX, b.s, b.n);
    run_sync_files(&z->s, z->folder);
    arena_reset(z->s.arena, mark);
}

/* Opens the folder; whether there is still something to do. */
static bool open_folder(Tokenizing *z, const char *texts)
{
    Session *s = &z->s;
    const char *folder = z->how->folder;
    struct stat st;
    bool is_there = stat(folder, &st) == 0;
    if (is_there && folder_is_foreign(folder, TOKEN_INDEX, TOKEN_INDEX_MARK) == 1)
        ctx_raise(s->ctx, ST_USAGE, "%.300s holds files that `vwn tokenize` has not written: name a folder of its own",
                  folder);
    TokenIndex *there = is_there ? token_index_read(s, folder) : NULL;
    if (there && !z->how->resume && !z->how->overwrite)
        ctx_raise(s->ctx, ST_USAGE, "%.300s holds shards %s `--overwrite` begins anew", folder,
                  there->complete ? "already:" : "of a call that did not come to its end: `--resume` goes on,");
    char hash[65];
    tokenizer_ids_hash(z->tokenizer, hash);
    z->index.vocabulary = arena_copy(s->arena, hash, 64);
    z->index.vocab = z->tokenizer->size;
    z->index.width = z->index.vocab > 1 << 16 ? 4 : 2;
    z->index.made = made_of(z, texts);
    if (there && z->how->resume)
        same_making(z, there, z->index.made);
    z->folder = run_open_folder(s, folder);
    if (there && z->how->resume) {
        z->index.shard = there->shard;
        z->index.next = there->next;
        z->index.complete = there->complete;
        return !there->complete;
    }
    write_index(z);
    for (size_t i = 0; there && i < there->shard.n; i++) {
        const char *path = arena_printf(s->arena, "%s/%s", folder, there->shard.v[i].file);
        if (unlink(path) && errno != ENOENT)
            failed(z, path, "removed");
    }
    return true;
}

/* ---- shards ---- */

static void flush(Tokenizing *z)
{
    for (size_t done = 0; done < z->buffered;) {
        ssize_t n = write(z->fd, z->buffer + done, z->buffered - done);
        if (n < 0 && errno != EINTR)
            failed(z, z->temporary, "written");
        done += n > 0 ? (size_t)n : 0;
    }
    z->buffered = 0;
}

static void begin_shard(Tokenizing *z)
{
    const char *why;
    z->shard = (TokenShard){.file = arena_printf(z->s.arena, "tokens_%06zu.bin", z->index.shard.n)};
    z->temporary = arena_printf(z->s.arena, "%s/.%s.tmp", z->folder->path, z->shard.file);
    z->fd = file_open(z->temporary, O_WRONLY | O_CREAT | O_TRUNC, &why);
    if (z->fd < 0)
        ctx_raise(z->s.ctx, ST_ENVIRONMENT, "%.300s: %s", z->temporary, why);
}

static void tell(Tokenizing *z, double share, const char *text)
{
    vwn_tokenize_event *e = &z->event;
    TokenShard all = token_index_all(&z->index);
    double seconds = clock_seconds() - z->began, done = share - z->share_began;
    if (z->fd >= 0) {
        all.tokens += z->shard.tokens;
        all.bytes += z->shard.bytes;
        all.documents += z->shard.documents;
    }
    *e = (vwn_tokenize_event){.share = share,
                              .bytes = all.bytes,
                              .tokens = all.tokens,
                              .documents = all.documents,
                              .shards = (int64_t)z->index.shard.n,
                              .bytes_per_second = seconds > 0 ? (double)z->bytes_now / seconds : NAN,
                              .tokens_per_second = seconds > 0 ? (double)z->tokens_now / seconds : NAN,
                              .eta_seconds = share >= 0 && done > 0 ? seconds * (1 - share) / done : NAN,
                              .text = text};
    if (z->how->event)
        z->how->event(z->how->user, e);
}

static void end_shard(Tokenizing *z, double share)
{
    const char *path = arena_printf(z->s.arena, "%s/%s", z->folder->path, z->shard.file);
    const TextPlace *at = &z->batch->start;
    flush(z);
    bool fine = !fsync(z->fd);
    fine = !close(z->fd) && fine;
    z->fd = -1;
    if (!fine || rename(z->temporary, path))
        failed(z, path, "written");
    vec_push(z->s.arena, &z->index.shard, z->shard);
    z->index.next = (TokenNext){.input = (int64_t)at->input,
                                .offset = (int64_t)at->offset,
                                .line = (int64_t)at->line,
                                .within = at->within,
                                .skip = z->seen,
                                .sum = (int64_t)(z->sum >> 1)};
    write_index(z);
    char text[128];
    snprintf(text, sizeof text, "%s: %lld tokens", z->shard.file, (long long)z->shard.tokens);
    tell(z, share, text);
}

static _Noreturn void other_texts(Tokenizing *z)
{
    ctx_raise(z->s.ctx, ST_USAGE, "these are not the texts of the shards that are in %.300s: `--overwrite` begins anew",
              z->how->folder);
}

/* One more of the batch; `begins`: of a document. */
static void put_id(Tokenizing *z, uint32_t id, bool begins, double share)
{
    if (z->seen < z->skip) {
        z->sum = mix64(z->sum ^ id);
        if (++z->seen == z->skip && (int64_t)(z->sum >> 1) != z->index.next.sum)
            other_texts(z);
        return;
    }
    if (z->fd >= 0 && z->shard.tokens == z->most)
        end_shard(z, share);
    if (z->fd < 0)
        begin_shard(z);
    if (z->buffered + 4 > BUFFER)
        flush(z);
    for (int i = 0; i < z->index.width; i++)
        z->buffer[z->buffered++] = (unsigned char)(id >> 8 * i);
    int64_t bytes = id == z->index.separator ? 0 : (int64_t)z->tokenizer->bpe->vocabulary->token[id].length;
    z->shard.tokens++;
    z->shard.documents += begins;
    z->shard.bytes += bytes;
    z->bytes_now += bytes;
    z->tokens_now++;
    z->sum = mix64(z->sum ^ id);
    z->seen++;
}

static void put_parts(Tokenizing *z, const size_t *order, size_t n, double share)
{
    for (size_t i = 0; i < n; i++) {
        const PartIds *ids = &z->ids[i];
        bool begins = z->batch->part[order[i]].begins;
        if (!ids->list)
            continue;
        if (begins && z->index.separator >= 0) {
            put_id(z, (uint32_t)z->index.separator, true, share);
            begins = false;
        }
        for (size_t k = 0; k < ids->n; k++)
            put_id(z, ids->list->v[ids->at + k], begins && k == 0, share);
    }
}

/* ---- batches ---- */

/* Documents that begin and end in a batch come in another order; what goes on from the batch before stays first, and what goes on in the
 * next one last. */
static void shuffle(const Tokenizing *z, size_t *order, size_t *document)
{
    const TextBatch *b = z->batch;
    size_t n = 0, put = 0, first = b->parts && !b->part[0].begins;
    for (size_t i = 0; i < b->parts; i++)
        if (b->part[i].begins || !i)
            document[n++] = i;
    document[n] = b->parts;
    size_t moved = n - first - (b->open && n > first);
    uint64_t key = mix64(z->how->seed ^ mix64(mix64((uint64_t)b->start.input) ^ b->start.offset));
    for (size_t i = 0; i < n; i++) {
        bool stays = i < first || i >= first + moved;
        size_t k = stays ? i : first + (size_t)permute_index(key, moved, i - first);
        for (size_t part = document[k]; part < document[k + 1]; part++)
            order[put++] = part;
    }
}

static void make_room(Tokenizing *z, size_t parts)
{
    if (z->order_room >= 2 * parts + 2)
        return;
    free(z->order);
    free(z->ids);
    z->order_room = 2 * (2 * parts + 2);
    z->order = malloc(z->order_room * sizeof *z->order);
    z->ids = malloc(z->order_room * sizeof *z->ids);
    if (!z->order || !z->ids)
        ctx_raise(z->s.ctx, ST_ENVIRONMENT, "there is no memory for a batch of texts");
}

static void stop_if_asked(Tokenizing *z)
{
    vwn_context *c = z->s.owner;
    if (!c->interrupted)
        return;
    c->interrupted = 0;
    ctx_raise(z->s.ctx, ST_INTERRUPTED,
              "interrupted: %zu whole shards are in %.300s; the same call goes on with `--resume`", z->index.shard.n,
              z->how->folder);
}

static void do_batch(Tokenizing *z)
{
    const TextBatch *b = z->batch;
    char why[WHY];
    if (b->why[0])
        ctx_raise(z->s.ctx, ST_ENVIRONMENT, "%s", b->why);
    make_room(z, b->parts);
    for (size_t i = 0; i < b->parts; i++)
        z->order[i] = i;
    if (z->how->shuffle)
        shuffle(z, z->order, z->order + b->parts);
    z->seen = 0;
    z->sum = 0;
    size_t bytes = 0;
    for (size_t at = 0, n; at < b->parts; at += n) {
        size_t slice = 0;
        for (n = 0; at + n < b->parts && slice < SLICE; n++)
            slice += b->part[z->order[at + n]].to - b->part[z->order[at + n]].from;
        stop_if_asked(z);
        if (!encode_parts(z->encoder, b, z->order + at, n, z->ids, why))
            ctx_raise(z->s.ctx, ST_INPUT, "%s", why);
        bytes += slice;
        double share = b->before < 0 ? -1 : b->before + (b->behind - b->before) * (double)bytes / (double)b->n;
        put_parts(z, z->order + at, n, share);
        tell(z, share, NULL);
    }
    if (z->seen < z->skip)
        other_texts(z);
    z->skip = 0;
}

static void close_all(void *what)
{
    Tokenizing *z = what;
    documents_close(z->documents);
    encoder_close(z->encoder);
    if (z->fd >= 0)
        close(z->fd);
    free(z->order);
    free(z->ids);
    free(z->buffer);
}

static void open_work(Tokenizing *z)
{
    const vwn_options *o = &z->s.owner->options;
    const TokenNext *next = &z->index.next;
    DocumentsOptions read = {
        .texts = &z->texts,
        .batch = z->how->shuffle ? BLOCK : BATCH,
        .bpe = z->tokenizer->bpe,
        .start = {(size_t)next->input, (uint64_t)next->offset, (uint64_t)next->line, next->within},
    };
    EncoderOptions work = {
        .bpe = z->tokenizer->bpe, .threads = o->threads > 0 ? o->threads : threads_available(), .texts = &z->texts};
    z->skip = next->skip;
    z->buffer = malloc(BUFFER);
    z->encoder = encoder_open(&work);
    z->documents = z->encoder ? documents_open(&read) : NULL;
    if (!z->buffer || !z->documents)
        ctx_raise(z->s.ctx, ST_ENVIRONMENT, "there is no memory for the ids of texts");
}

static void do_all(Tokenizing *z)
{
    open_work(z);
    z->began = clock_seconds();
    z->share_began = -1;
    for (bool last = false; !last;) {
        stop_if_asked(z);
        TextBatch *b = documents_next(z->documents);
        if (!b)
            continue;
        if (z->share_began < 0)
            z->share_began = b->before;
        z->batch = b;
        last = b->last;
        do_batch(z);
    }
    if (z->fd >= 0)
        end_shard(z, 1);
    if (!z->index.shard.n)
        ctx_raise(z->s.ctx, ST_INPUT, "the texts are empty: no shard was written");
    z->index.complete = true;
    write_index(z);
}

/* ---- the call ---- */

static void report(const Tokenizing *z)
{
    const TokenIndex *x = &z->index;
    TokenShard all = token_index_all(x);
    const char *folder = z->folder->path;
    double per = (double)all.bytes / (double)all.tokens;
    Buf b = buf_new(z->s.arena);
    if (z->how->json) {
        buf_puts(&b, "{\"v\":1,\"event\":\"tokenize\",\"folder\":");
        buf_json_string(&b, folder, strlen(folder));
        buf_printf(&b,
                   ",\"shards\":%zu,\"tokens\":%lld,\"documents\":%lld,\"bytes\":%lld,\"width\":%d,\"vocab\":%lld,"
                   "\"separator\":%lld}\n",
                   x->shard.n, (long long)all.tokens, (long long)all.documents, (long long)all.bytes, x->width,
                   (long long)x->vocab, (long long)x->separator);
    } else {
        buf_count(&b, all.tokens);
        buf_puts(&b, " tokens of ");
        buf_count(&b, all.documents);
        buf_printf(&b, " document%s in %zu shard%s of %s, %.3g bytes a token", all.documents == 1 ? "" : "s",
                   x->shard.n, x->shard.n == 1 ? "" : "s", x->width == 2 ? "u16" : "u32", per);
        if (x->separator >= 0)
            buf_printf(&b, "; documents begin with the token %lld", (long long)x->separator);
        buf_printf(&b, "\ndata = token_files(\"%s/*.bin\")\n", folder);
    }
    z->out->put(z->out->user, b.s, b.n);
}

static Status tokenize_body(void *user)
{
    Tokenizing *z = user;
    const vwn_tokenize_options *how = z->how;
    TextsAsk ask = {how->text, how->n_texts, how->field, how->shuffle, how->seed};
    char texts[65];
    session_open(&z->s, z->s.owner);
    z->most = z->how->shard_tokens > 0 ? z->how->shard_tokens : SHARD_TOKENS;
    open_tokenizer(z);
    session_defer(&z->s, close_all, z); /* before the tokenizer is closed, by which threads may still work */
    z->index.separator = find_separator(z);
    texts_list(&z->s, &ask, &z->texts, texts);
    if (open_folder(z, texts))
        do_all(z);
    report(z);
    return ST_OK;
}

Status tokenize_texts(vwn_context *owner, const vwn_tokenize_options *how, const vwn_writer *out)
{
    Tokenizing z = {.s.owner = owner, .how = how, .out = out, .fd = -1};
    Status st = guarded(owner->ctx, tokenize_body, &z);
    session_close(&z.s);
    return st;
}
