/* vocabulary_of.c - see vocabulary_of.h.
 *
 * The one idea: the tokenizer that cuts the texts is the one that is written, but for its merges: both are the same text of JSON.
 */
#include "vocabulary_of.h"

#include "encode.h"
#include "runtime/base/machine.h"
#include "runtime/token/bulk.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { PIECES_MOST = 16000000, COUNT_BATCH = 4 << 20, BYTES = 256 };

typedef struct Teaching {
    Session s;
    const vwn_vocabulary_options *how;
    const vwn_writer *out;
    const char *special; /* "": none */
    Texts texts;
    Bpe bpe;
    Documents *documents;
    Encoder *encoder;
    size_t *order;
    PartIds *ids;
    size_t room;
    Pieces pieces;
    uint64_t dropped; /* pieces that occur more often were all counted */
    uint64_t bytes;
    double began;
} Teaching;

/* ---- the file ---- */

/* NULL: bytes alone. */
static void put_tokenizer(const Teaching *z, const Learned *l, Buf *b)
{
    static const char level[] =
        "\"type\":\"ByteLevel\",\"add_prefix_space\":%s,\"trim_offsets\":true,\"use_regex\":%s}";
    const char *split = z->how->split;
    int64_t first = *z->special != 0, tokens = l ? l->vocabulary->size : BYTES;
    buf_puts(b, "{\n\"version\":\"1.0\",\n\"truncation\":null,\n\"padding\":null,\n\"added_tokens\":[");
    if (first) {
        buf_puts(b, "{\"id\":0,\"content\":");
        buf_json_string(b, z->special, strlen(z->special));
        buf_puts(b, ",\"single_word\":false,\"lstrip\":false,\"rstrip\":false,\"normalized\":false,\"special\":true}");
    }
    buf_puts(b, "],\n\"normalizer\":null,\n\"pre_tokenizer\":{");
    if (split) {
        buf_puts(b, "\"type\":\"Sequence\",\"pretokenizers\":[{\"type\":\"Split\",\"pattern\":{\"Regex\":");
        buf_json_string(b, split, strlen(split));
        buf_puts(b, "},\"behavior\":\"Isolated\",\"invert\":false},{");
    }
    buf_printf(b, level, "false", split ? "false" : "true");
    buf_puts(b, split ? "]},\n\"post_processor\":{" : ",\n\"post_processor\":{");
    buf_printf(b, level, "true", "true");
    buf_puts(b, ",\n\"decoder\":{");
    buf_printf(b, level, "true", "true");
    buf_puts(
        b,
        ",\n\"model\":{\"type\":\"BPE\",\"dropout\":null,\"unk_token\":null,\"continuing_subword_prefix\":null,"
        "\"end_of_word_suffix\":null,\"fuse_unk\":false,\"byte_fallback\":false,\"ignore_merges\":false,\n\"vocab\":{");
    if (first) {
        buf_json_string(b, z->special, strlen(z->special));
        buf_puts(b, ":0,\n");
    }
    for (int64_t id = 0; id < tokens; id++) {
        unsigned char byte = l ? 0 : bulk_byte((int)id);
        const VocabularyToken *t = l ? &l->vocabulary->token[id] : NULL;
        buf_puts(b, id ? ",\n" : "");
        bulk_spell(b, t ? l->vocabulary->bytes + t->at : &byte, t ? t->length : 1);
        buf_printf(b, ":%lld", (long long)(id + first));
    }
    buf_puts(b, "},\n\"merges\":[");
    for (size_t i = 0; l && i < l->merges; i++) {
        const uint32_t of[2] = {l->merge[i].left, l->merge[i].right};
        buf_puts(b, i ? ",\n[" : "\n[");
        for (int k = 0; k < 2; k++) {
            const VocabularyToken *t = &l->vocabulary->token[of[k]];
            bulk_spell(b, l->vocabulary->bytes + t->at, t->length);
            buf_puts(b, k ? "]" : ",");
        }
    }
    buf_puts(b, "]}}\n");
}

static void open_cutting(Teaching *z)
{
    char why[WHY];
    Buf b = buf_new(z->s.arena);
    put_tokenizer(z, NULL, &b);
    BpeFiles files = {.file = {"the tokenizer", b.s, b.n}};
    if (!bpe_open(&z->s, &files, &z->bpe, why))
        ctx_raise(z->s.ctx, z->bpe.no_library ? ST_ENVIRONMENT : ST_USAGE, "%s", why);
}

/* ---- counting ---- */

static void tell(Teaching *z, double share, int64_t tokens, const char *text)
{
    double seconds = clock_seconds() - z->began;
    vwn_tokenize_event e = {.share = share,
                            .bytes = (int64_t)z->bytes,
                            .tokens = tokens,
                            .bytes_per_second = seconds > 0 ? (double)z->bytes / seconds : NAN,
                            .tokens_per_second = NAN,
                            .eta_seconds = share > 0 ? seconds * (1 - share) / share : NAN,
                            .text = text};
    if (z->how->event)
        z->how->event(z->how->user, &e);
}

static void stop_if_asked(Teaching *z)
{
    vwn_context *c = z->s.owner;
    if (!c->interrupted)
        return;
    c->interrupted = 0;
    ctx_raise(z->s.ctx, ST_INTERRUPTED, "interrupted: nothing was written");
}

static _Noreturn void no_memory(Teaching *z)
{
    ctx_raise(z->s.ctx, ST_ENVIRONMENT, "there is no memory for the pieces of texts");
}

static void count_batch(Teaching *z, const TextBatch *b)
{
    char why[WHY];
    if (b->why[0])
        ctx_raise(z->s.ctx, ST_ENVIRONMENT, "%s", b->why);
    if (z->room < b->parts) {
        free(z->order);
        free(z->ids);
        z->room = 2 * b->parts;
        z->order = malloc(z->room * sizeof *z->order);
        z->ids = malloc(z->room * sizeof *z->ids);
        if (!z->order || !z->ids)
            no_memory(z);
        for (size_t i = 0; i < z->room; i++)
            z->order[i] = i;
    }
    if (!encode_parts(z->encoder, b, z->order, b->parts, z->ids, why))
        ctx_raise(z->s.ctx, ST_INPUT, "%s", why);
    size_t most = z->how->pieces_most > 0 ? (size_t)z->how->pieces_most : PIECES_MOST;
    if (!encoder_pieces(z->encoder, &z->pieces))
        no_memory(z);
    /* at the end of a batch, so that it does not depend on threads */
    uint64_t dropped = z->pieces.n > most ? pieces_prune(&z->pieces, most / 2) : 0;
    if (dropped == UINT64_MAX)
        no_memory(z);
    z->dropped = dropped > z->dropped ? dropped : z->dropped;
    z->bytes += b->n;
    tell(z, b->behind, 0, NULL);
}

static void count_all(Teaching *z)
{
    const vwn_options *o = &z->s.owner->options;
    DocumentsOptions read = {.texts = &z->texts, .batch = COUNT_BATCH, .bpe = &z->bpe};
    EncoderOptions work = {.bpe = &z->bpe,
                           .threads = o->threads > 0 ? o->threads : threads_available(),
                           .texts = &z->texts,
                           .counts = true};
    z->encoder = encoder_open(&work);
    z->documents = z->encoder ? documents_open(&read) : NULL;
    if (!z->documents)
        no_memory(z);
    for (bool last = false; !last;) {
        stop_if_asked(z);
        const TextBatch *b = documents_next(z->documents);
        if (!b)
            continue;
        last = b->last;
        count_batch(z, b);
    }
    if (!z->pieces.n)
        ctx_raise(z->s.ctx, ST_INPUT, "the texts are empty");
}

/* ---- the call ---- */

static bool go_on(void *user, int64_t tokens)
{
    Teaching *z = user;
    tell(z, (double)(tokens - BYTES) / (double)(z->how->tokens - BYTES), tokens, NULL);
    return !z->s.owner->interrupted;
}

static void close_teaching(void *what)
{
    Teaching *z = what;
    documents_close(z->documents);
    encoder_close(z->encoder);
    pieces_free(&z->pieces);
    free(z->order);
    free(z->ids);
}

static void report(const Teaching *z, const Learned *l)
{
    Buf b = buf_new(z->s.arena);
    const long long tokens = (long long)l->vocabulary->size + (*z->special != 0);
    if (z->how->json)
        buf_printf(&b,
                   "{\"v\":1,\"event\":\"vocabulary\",\"tokens\":%lld,\"merges\":%zu,\"bytes\":%llu,\"pieces\":%zu,"
                   "\"dropped\":%llu}\n",
                   tokens, l->merges, (unsigned long long)z->bytes, z->pieces.n, (unsigned long long)z->dropped);
    else {
        buf_printf(&b, "%lld tokens, %zu merges, of %zu different pieces of ", tokens, l->merges, z->pieces.n);
        buf_count(&b, (int64_t)z->bytes);
        buf_puts(&b, " bytes\n");
    }
    if (z->dropped)
        session_warn((Session *)&z->s, arena_printf(z->s.arena,
                                                    "there were more different pieces than `--pieces` keeps: of those "
                                                    "that occur at most %llu times between "
                                                    "two cuts some were not counted",
                                                    (unsigned long long)z->dropped));
    z->out->put(z->out->user, b.s, b.n);
}

static Status teach_body(void *user)
{
    Teaching *z = user;
    const vwn_vocabulary_options *how = z->how;
    TextsAsk ask = {.text = how->text, .n = how->n_texts, .field = how->field};
    char hash[65];
    Learned l;
    session_open(&z->s, z->s.owner);
    z->special = how->separator ? how->separator : "<|endoftext|>";
    if (how->tokens < BYTES + (*z->special != 0) || how->tokens > IDS_MOST)
        ctx_raise(z->s.ctx, ST_USAGE, "a vocabulary has at least %d tokens, one for each byte%s, and at most %d",
                  BYTES + (*z->special != 0), *z->special ? " and the separator" : "", IDS_MOST);
    open_cutting(z);
    session_defer(&z->s, close_teaching, z); /* before the patterns are closed, by which threads may still work */
    texts_list(&z->s, &ask, &z->texts, hash);
    z->began = clock_seconds();
    count_all(z);
    tell(z, 1, 0, "Counted");
    z->began = clock_seconds();
    if (!learn_merges(z->s.arena, &z->pieces, how->tokens - (*z->special != 0), go_on, z, &l)) {
        stop_if_asked(z);
        no_memory(z);
    }
    Buf b = buf_new(z->s.arena);
    put_tokenizer(z, &l, &b);
    how->file->put(how->file->user, b.s, b.n);
    report(z, &l);
    return ST_OK;
}

Status train_tokenizer(vwn_context *owner, const vwn_vocabulary_options *how, const vwn_writer *out)
{
    Teaching z = {.s.owner = owner, .how = how, .out = out};
    Status st = guarded(owner->ctx, teach_body, &z);
    session_close(&z.s);
    return st;
}
