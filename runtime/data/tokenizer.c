/* tokenizer.c - see tokenizer.h. */
#include "tokenizer.h"
#include "mapped.h"

#include "compiler/portable/file.h"
#include "compiler/portable/tokens.h"
#include "runtime/base/sha256.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CODES = 0x110000, FILES_MOST = 40 << 20 /* a checkpoint has them in its header, each byte as at most two */ };

Tokenizer *tokenizer_plain(Arena *a, TokenizerKind kind)
{
    Tokenizer *t = NEW(a, Tokenizer);
    t->kind = kind;
    t->size = kind == TOKENIZER_BYTES ? 256 : 0;
    return t;
}

/* Takes `size` ascending code points. */
static Tokenizer *from_codes(Arena *a, const uint32_t *code, size_t size)
{
    Tokenizer *t = NEW(a, Tokenizer);
    t->kind = TOKENIZER_CHARS;
    t->size = (int64_t)size;
    t->code = NEW_ARRAY(a, uint32_t, size + 1);
    if (size)
        memcpy(t->code, code, size * sizeof *code);
    for (int i = 0; i < 128; i++)
        t->ascii[i] = -1;
    for (size_t i = 0; i < size && code[i] < 128; i++)
        t->ascii[code[i]] = (int64_t)i;
    return t;
}

Tokenizer *tokenizer_chars(Arena *a, const char *path, const char *text, size_t n, char why[WHY])
{
    Ctx *ctx = arena_ctx(a);
    ArenaMark mark = arena_mark(ctx->scratch);
    unsigned char *seen = arena_alloc(ctx->scratch, CODES / 8);
    size_t count = 0;
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t len = utf8_read(text + i, n - i, &c);
        if (!len) {
            snprintf(why, WHY,
                     "%.300s: byte %zu: not UTF-8; chars() needs UTF-8 text, bytes() takes "
                     "any file",
                     path, i);
            arena_reset(ctx->scratch, mark);
            return NULL;
        }
        count += !(seen[c / 8] & 1u << c % 8);
        seen[c / 8] = (unsigned char)(seen[c / 8] | 1u << c % 8);
        i += len;
    }
    uint32_t *code = NEW_ARRAY(ctx->scratch, uint32_t, count + 1);
    count = 0;
    for (uint32_t c = 0; c < CODES; c++)
        if (seen[c / 8] & 1u << c % 8)
            code[count++] = c;
    Tokenizer *t = from_codes(a, code, count);
    arena_reset(ctx->scratch, mark);
    return t;
}

static Tokenizer *chars_from(Arena *a, const char *vocabulary, size_t n)
{
    uint32_t *code = NEW_ARRAY(a, uint32_t, n + 1);
    size_t count = 0;
    for (size_t i = 0; i < n; count++) {
        size_t len = utf8_read(vocabulary + i, n - i, &code[count]);
        if (!len || (count && code[count] <= code[count - 1]))
            return NULL;
        i += len;
    }
    return from_codes(a, code, count);
}

/* ---- files ---- */

static const char files_mark[] = "vwn tokenizer 1";

/* A path as it is written, relative to the folder of its file. */
static BpeText read_file(Session *s, const TokenizerSpec *spec, const char *path, size_t before)
{
    const char *why, *full = path;
    struct stat st;
    if (path[0] != '/' && spec->folder && spec->folder[0])
        full = arena_printf(s->arena, "%s/%s", spec->folder, path);
    int fd = file_open(full, O_RDONLY, &why);
    if (fd < 0)
        ctx_raise(s->ctx, ST_ENVIRONMENT, "the tokenizer %.300s: %s%s", full, why,
                  mapped_named(s, spec->span, spec->folder, path));
    bool fine = fstat(fd, &st) == 0 && st.st_size <= FILES_MOST - (off_t)before;
    BpeText t = {path, NULL, 0};
    char *text = fine ? arena_take(s->arena, (size_t)st.st_size + 1) : NULL;
    while (fine && t.n < (size_t)st.st_size) {
        ssize_t n = read(fd, text + t.n, (size_t)st.st_size - t.n);
        fine = n > 0 || (n < 0 && errno == EINTR);
        t.n += n > 0 ? (size_t)n : 0;
    }
    close(fd);
    if (!fine)
        ctx_raise(s->ctx, ST_ENVIRONMENT,
                  "the tokenizer %.300s cannot be read: its files have at most 40 MiB together%s", full,
                  mapped_named(s, spec->span, NULL, NULL));
    text[t.n] = 0;
    t.text = text;
    return t;
}

static void close_work(void *work) { bpe_work_close(work); }

static void load(Session *s, Tokenizer *t, const char *named)
{
    char why[WHY];
    Bpe *b = NEW(s->arena, Bpe);
    BpeWork *w = NEW(s->arena, BpeWork);
    if (!bpe_open(s, t->files, b, why))
        ctx_raise(s->ctx, named && !b->no_library ? ST_INPUT : ST_ENVIRONMENT, "the tokenizer %s%s", why,
                  named ? named : "");
    session_defer(s, close_work, w);
    if (!bpe_work_open(w, b))
        ctx_raise(s->ctx, ST_ENVIRONMENT, "there is no memory for the tokenizer");
    t->bpe = b;
    t->work = w;
    t->size = b->vocabulary->size;
}

void tokenizer_load(Session *s, Tokenizer *t)
{
    if (t->files && !t->bpe)
        load(s, t, NULL);
}

Tokenizer *tokenizer_file(Session *s, const TokenizerSpec *spec)
{
    Tokenizer *t = tokenizer_plain(s->arena, TOKENIZER_FILE);
    BpeSpecial *special = NEW_ARRAY(s->arena, BpeSpecial, spec->n_special + 1);
    for (size_t i = 0; i < spec->n_special; i++)
        special[i] = (BpeSpecial){spec->special[i].text, spec->special[i].id};
    t->files = NEW(s->arena, BpeFiles);
    *t->files = (BpeFiles){.file = read_file(s, spec, spec->path, 0),
                           .split = spec->split,
                           .special = special,
                           .n_special = spec->n_special};
    if (spec->merges)
        t->files->merges = read_file(s, spec, spec->merges, t->files->file.n);
    load(s, t, mapped_named(s, spec->span, NULL, NULL));
    return t;
}

bool tokenizer_has_text(const Tokenizer *t)
{
    return t->kind == TOKENIZER_BYTES || t->kind == TOKENIZER_CHARS || t->files;
}

/* A length and as many bytes. */
static void put_part(Buf *out, const char *s, size_t n)
{
    buf_printf(out, "%zu:", n);
    buf_put(out, s, n);
}

static bool take_part(Arena *a, const char **at, const char *end, const char **text, size_t *n)
{
    char *behind;
    unsigned long long length = strtoull(*at, &behind, 10); /* the text ends with a zero */
    if (behind == *at || *behind != ':' || length > (size_t)(end - behind) - 1)
        return false;
    *n = (size_t)length;
    *text = arena_copy(a, behind + 1, *n);
    *at = behind + 1 + length;
    return true;
}

/* Everything that makes the tokenizer, in parts; with `names`, by which messages call its files. */
static void put_files(const BpeFiles *f, bool names, Buf *out)
{
    const char *split = f->split ? f->split : "", *merges = !f->merges.path ? "" : names ? f->merges.path : "merges";
    buf_puts(out, files_mark);
    put_part(out, f->file.path, names ? strlen(f->file.path) : 0);
    put_part(out, f->file.text, f->file.n);
    put_part(out, merges, strlen(merges));
    put_part(out, f->merges.text ? f->merges.text : "", f->merges.n);
    put_part(out, split, strlen(split));
    for (size_t i = 0; i < f->n_special; i++) {
        put_part(out, f->special[i].text, strlen(f->special[i].text));
        buf_printf(out, "%lld;", (long long)f->special[i].id);
    }
}

static Tokenizer *files_from(Arena *a, const char *text, size_t n)
{
    Tokenizer *t = tokenizer_plain(a, TOKENIZER_FILE);
    const char *at = text + sizeof files_mark - 1, *end = text + n, *split;
    size_t length;
    if (!n)
        return t; /* ids only */
    BpeFiles *f = t->files = NEW(a, BpeFiles);
    if (n < sizeof files_mark || memcmp(text, files_mark, sizeof files_mark - 1) != 0 ||
        !take_part(a, &at, end, &f->file.path, &length) || !take_part(a, &at, end, &f->file.text, &f->file.n) ||
        !take_part(a, &at, end, &f->merges.path, &length) || !take_part(a, &at, end, &f->merges.text, &f->merges.n) ||
        !take_part(a, &at, end, &split, &length))
        return NULL;
    f->split = *split ? split : NULL;
    if (!*f->merges.path)
        f->merges = (BpeText){0};
    VEC(BpeSpecial) special = {0};
    while (at < end) {
        BpeSpecial one;
        char *behind;
        if (!take_part(a, &at, end, &one.text, &length))
            return NULL;
        one.id = strtoll(at, &behind, 10);
        if (*behind != ';')
            return NULL;
        at = behind + 1;
        vec_push(a, &special, one);
    }
    f->special = special.v;
    f->n_special = special.n;
    return t;
}

/* ---- between sessions ---- */

Tokenizer *tokenizer_from(Arena *a, TokenizerKind kind, const char *vocabulary, size_t n)
{
    return kind == TOKENIZER_CHARS ? chars_from(a, vocabulary, n) : files_from(a, vocabulary, n);
}

static void put_vocabulary(const Tokenizer *t, bool names, Buf *out)
{
    char bytes[4];
    for (int64_t i = 0; t->kind == TOKENIZER_CHARS && i < t->size; i++)
        buf_put(out, bytes, utf8_write(t->code[i], bytes));
    if (t->files)
        put_files(t->files, names, out);
}

void tokenizer_vocabulary(const Tokenizer *t, Buf *out) { put_vocabulary(t, true, out); }

bool tokenizer_same(Arena *a, const Tokenizer *x, const Tokenizer *y)
{
    Buf of_x = buf_new(a), of_y = buf_new(a);
    put_vocabulary(x, false, &of_x);
    put_vocabulary(y, false, &of_y);
    return x->kind == y->kind && of_x.n == of_y.n && (!of_x.n || !memcmp(of_x.s, of_y.s, of_x.n));
}

void tokenizer_hash(Arena *a, const Tokenizer *t, char hex[65])
{
    Sha256 h;
    ArenaMark mark = arena_mark(a);
    Buf b = buf_new(a);
    put_vocabulary(t, false, &b);
    sha256_start(&h);
    sha256_add(&h, b.s, b.n);
    sha256_hex(&h, hex);
    arena_reset(a, mark);
}

void tokenizer_ids_hash(const Tokenizer *t, char hex[65])
{
    Sha256 h;
    sha256_start(&h);
    for (int64_t id = 0; id < t->size; id++) {
        size_t n = 0;
        const char *text = bpe_decode(t->bpe, id, &n);
        sha256_add_string(&h, text ? text : "", n);
    }
    sha256_hex(&h, hex);
}

/* ---- ids ---- */

int64_t tokenizer_id(const Tokenizer *t, uint32_t code) { return tokens_id(t->code, t->size, code); }

/* By what names tokenizers have the end of a text. */
static const char *const ends_of_text[] = {"<|endoftext|>",
                                           "<|end_of_text|>",
                                           "<\xef\xbd\x9c"
                                           "end\xe2\x96\x81of\xe2\x96\x81sentence\xef\xbd\x9c>",
                                           "</s>",
                                           "<eos>",
                                           "<|eos|>"};

int64_t tokenizer_end(const Tokenizer *t)
{
    const Bpe *b = t->bpe;
    for (size_t k = 0; b && k < COUNT_OF(ends_of_text); k++)
        for (size_t i = 0; i < b->tokens; i++)
            if (b->token[i].n == strlen(ends_of_text[k]) && !memcmp(b->token[i].text, ends_of_text[k], b->token[i].n))
                return b->token[i].id;
    return -1;
}

int64_t tokenizer_line(const Tokenizer *t, int64_t vocab)
{
    int64_t line = 0;
    if (t->kind == TOKENIZER_BYTES)
        line = '\n';
    else if (t->kind == TOKENIZER_CHARS)
        line = tokenizer_id(t, '\n');
    else if (t->bpe)
        line = vocabulary_find(t->bpe->vocabulary, (const unsigned char *)"\n", 1);
    return line >= 0 && line < vocab ? line : 0;
}

size_t tokenizer_room(const Tokenizer *t, size_t n) { return t->files ? 4 * n + 4 : n; }

static int64_t encode_by_files(const Tokenizer *t, const char *what, const char *text, size_t n, int64_t *out,
                               char why[WHY])
{
    IdList ids = {0};
    char inner[WHY] = "the tokenizer is not loaded";
    bool fine = t->work && bpe_encode(t->work, text, n, &ids, inner) && ids.n <= tokenizer_room(t, n);
    for (size_t i = 0; fine && i < ids.n; i++)
        out[i] = ids.v[i];
    free(ids.v);
    if (!fine)
        snprintf(why, WHY, "%.200s: %.300s", what, inner);
    return fine ? (int64_t)ids.n : -1;
}

int64_t tokenizer_encode(const Tokenizer *t, const char *what, const char *text, size_t n, int64_t *out, char why[WHY])
{
    int64_t count = 0;
    if (t->kind == TOKENIZER_BYTES) {
        for (size_t i = 0; i < n; i++)
            out[count++] = (unsigned char)text[i];
        return count;
    }
    if (t->files)
        return encode_by_files(t, what, text, n, out, why);
    if (t->kind != TOKENIZER_CHARS) {
        snprintf(why, WHY, "%.200s: this model has no tokenizer for text, only token ids", what);
        return -1;
    }
    for (size_t i = 0; i < n;) {
        uint32_t c;
        size_t len = utf8_read(text + i, n - i, &c);
        if (!len) {
            snprintf(why, WHY, "%.300s: byte %zu: not UTF-8", what, i);
            return -1;
        }
        out[count] = tokenizer_id(t, c);
        if (out[count++] < 0) {
            snprintf(why, WHY,
                     "%.300s: byte %zu: `%.*s` (U+%04X) is not among the %lld characters of "
                     "the training text",
                     what, i, (int)len, text + i, (unsigned)c, (long long)t->size);
            return -1;
        }
        i += len;
    }
    return count;
}

const char *tokenizer_decode(const Tokenizer *t, int64_t id, char few[4], size_t *n)
{
    if (t->bpe)
        return bpe_decode(t->bpe, id, n);
    if (id < 0 || id >= t->size)
        return NULL;
    *n = 1;
    few[0] = (char)(unsigned char)id;
    if (t->kind == TOKENIZER_CHARS)
        *n = utf8_write(t->code[id], few);
    return few;
}
