/* data.c - see data.h. */
#define _DEFAULT_SOURCE
#include "data.h"
#include "mapped.h"
#include "token_header.h"
#include "token_index.h"

#include <sys/stat.h>
#include <errno.h>
#include <glob.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

struct Shard {
    Mapped file;
    size_t header; /* bytes before the first token */
    Tokens tokens;
    uint32_t *ids; /* text that is not ASCII: its ids, in memory of its own */
    size_t ids_bytes;
    IdList list; /* the same of a tokenizer's file */
};

static const char *base_name(const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? slash + 1 : path;
}

/* ---- files ---- */

static void free_ids(void *what)
{
    Shard *s = what;
    if (s->ids)
        munmap(s->ids, s->ids_bytes);
    s->ids = NULL;
    free(s->list.v);
    s->list = (IdList){0};
}

/* ---- text_file ---- */

static bool is_ascii(const unsigned char *p, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (p[i] >= 128)
            return false;
    return true;
}

/* Characters and bytes differ: keep the ids. */
static void decode_text(Session *s, Shard *x, const Tokenizer *t)
{
    size_t at, length;
    x->ids_bytes = x->file.bytes * sizeof *x->ids;
    void *ids = mmap(NULL, x->ids_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (ids == MAP_FAILED)
        mapped_wrong(s, x->file.path, "no memory for its characters");
    x->ids = ids;
    int64_t count = tokens_of_text(t->code, t->size, (const char *)x->file.map, x->file.bytes, ids, &at, &length);
    if (count < 0)
        mapped_wrong(s, x->file.path, "byte %zu: %s", at,
                     length ? "a character that the training text of this model did not have"
                            : "not UTF-8; chars() needs UTF-8 text");
    x->tokens = (Tokens){ids, 4, NULL, count};
}

/* In parts, so that somebody who stops it is heard. */
static void encode_text(Session *s, Shard *x, const Tokenizer *t)
{
    enum { PART = 1 << 20 };
    char why[WHY];
    BpeWork *w = t->work;
    const char *text = (const char *)x->file.map;
    for (size_t at = 0, part = PART, left; (left = x->file.bytes - at);) {
        size_t n = part;
        bool cut = left > part && bpe_cut(w, text + at, left, &n);
        if (left > part && !cut) {
            part *= 2;
            continue;
        }
        if (s->owner->interrupted)
            ctx_raise(s->ctx, ST_INTERRUPTED, "interrupted while %.300s was tokenized: %.0f %% were done", x->file.path,
                      100 * (double)at / (double)x->file.bytes);
        w->before = at;
        if (!bpe_encode(w, text + at, cut ? n : left, &x->list, why))
            mapped_wrong(s, x->file.path, "%s", why);
        at += cut ? n : left;
        part = PART;
    }
    w->before = 0;
    x->tokens = (Tokens){(const unsigned char *)x->list.v, 4, NULL, (int64_t)x->list.n};
}

static void open_text(Session *s, Data *d, const DataOptions *how)
{
    char why[WHY];
    Shard *x = d->shard = NEW(s->arena, Shard);
    d->n = 1;
    session_defer(s, free_ids, x);
    mapped_open(s, &x->file, mapped_path(s->arena, how->spec->folder, how->spec->path));
    TokenizerKind kind = how->known ? how->known->kind : how->tokenizer->kind;
    d->tokenizer = how->known;
    if (kind == TOKENIZER_CHARS && !d->tokenizer)
        d->tokenizer = tokenizer_chars(s->arena, x->file.path, (const char *)x->file.map, x->file.bytes, why);
    else if (kind == TOKENIZER_BYTES && !d->tokenizer)
        d->tokenizer = tokenizer_plain(s->arena, TOKENIZER_BYTES);
    else if (kind == TOKENIZER_FILE && !d->tokenizer && how->tokenizer->path)
        d->tokenizer = tokenizer_file(s, how->tokenizer);
    else if (kind == TOKENIZER_NONE || (kind == TOKENIZER_FILE && !(d->tokenizer && d->tokenizer->bpe)))
        ctx_raise(s->ctx, ST_INPUT,
                  "text_file needs a tokenizer, `bytes()`, `chars()` or the `file(...)` of one; for ids made elsewhere "
                  "there is "
                  "token_files");
    if (!d->tokenizer)
        ctx_raise(s->ctx, ST_ENVIRONMENT, "%s", why);
    x->tokens = (Tokens){x->file.map, 1, NULL, (int64_t)x->file.bytes};
    if (kind == TOKENIZER_FILE)
        encode_text(s, x, d->tokenizer);
    if (kind != TOKENIZER_CHARS)
        return;
    /* with a vocabulary of another text an ASCII byte may have no id: decode_text says where */
    bool all = is_ascii(x->file.map, x->file.bytes);
    for (size_t i = 0; all && how->known && i < x->file.bytes; i++)
        all = d->tokenizer->ascii[x->file.map[i]] >= 0;
    if (all)
        x->tokens.ascii = d->tokenizer->ascii;
    else
        decode_text(s, x, d->tokenizer);
}

/* ---- token_files ---- */

/* What the index of its folder says of a shard. */
static void check_indexed(Session *s, Shard *x, const TokenIndex *index)
{
    const char *path = x->file.path;
    const TokenShard *is = token_index_shard(index, base_name(path));
    if (!is)
        mapped_wrong(s, path, "%.300s does not list it: it is none of the shards that lie there", index->path);
    if (x->tokens.width && x->tokens.width != index->width)
        mapped_wrong(s, path, "%.300s says that its ids are stored as u%d, and `dtype` is u%d", index->path,
                     8 * index->width, 8 * x->tokens.width);
    x->tokens.width = index->width;
    if ((int64_t)(x->file.bytes / (size_t)index->width) != is->tokens || x->file.bytes % (size_t)index->width)
        mapped_wrong(s, path, "it has %zu bytes, and by %.300s %lld tokens of %d bytes each", x->file.bytes,
                     index->path, (long long)is->tokens, index->width);
}

static void open_shard(Session *s, Shard *x, const char *path, const DataSpec *spec, const TokenIndex *index)
{
    session_defer(s, free_ids, x);
    mapped_open(s, &x->file, path);
    x->tokens.width = spec->bits / 8;
    if (spec->header != HEADER_NONE)
        x->header = token_header(s, &x->file, spec->header, &x->tokens.width);
    else if (index)
        check_indexed(s, x, index);
    if (!x->tokens.width)
        mapped_wrong(s, path,
                     "nothing says how its ids are stored, and no " TOKEN_INDEX
                     " of `vwn tokenize` lies beside it: give `dtype = u16` or `u32`, or the `header` that it has%s",
                     mapped_named(s, spec->span, NULL, NULL));
    size_t bytes = x->file.bytes - x->header, width = (size_t)x->tokens.width, odd = bytes % width;
    if (odd) {
        mapped_wrong(s, path,
                     "byte %zu: the last token is cut: %zu bytes are left where %d are "
                     "needed",
                     x->file.bytes - odd, odd, x->tokens.width);
    }
    x->tokens.at = x->file.map + x->header;
    x->tokens.count = (int64_t)(bytes / width);
    if (!x->tokens.count)
        mapped_wrong(s, path, "byte %zu: the file has no tokens", x->file.bytes);
}

static void free_glob(void *g) { globfree(g); }

/* The folder is taken literally, only the path as written has wildcards. */
static const char *pattern_of(Arena *a, const char *folder, const char *path)
{
    if (path[0] == '/' || !folder || !folder[0])
        return path;
    Buf b = buf_new(a);
    for (const char *c = folder; *c; c++) {
        if (strchr("*?[]\\", *c))
            buf_putc(&b, '\\');
        buf_putc(&b, *c);
    }
    buf_printf(&b, "/%s", path);
    return b.s;
}

static size_t list_files(Session *s, const DataSpec *spec, const char *path, char ***out)
{
    glob_t *g = NEW(s->arena, glob_t);
    session_defer(s, free_glob, g);
    int r = glob(pattern_of(s->arena, spec->folder, path), 0, NULL, g);
    if (r == GLOB_NOMATCH)
        ctx_raise(s->ctx, ST_ENVIRONMENT, "no file matches `%.200s` in the folder `%.200s`%s", path,
                  spec->folder && spec->folder[0] ? spec->folder : ".", mapped_named(s, spec->span, NULL, NULL));
    if (r)
        ctx_raise(s->ctx, ST_ENVIRONMENT, "`%.200s`: the folder could not be read", path);
    *out = g->gl_pathv;
    return g->gl_pathc;
}

/* The index beside a shard, read once for each folder; raises where its shards are not all there yet. */
typedef struct IndexOf {
    const char *folder; /* NULL: none was read */
    size_t n;
    TokenIndex *index;
} IndexOf;
static TokenIndex *index_of(Session *s, IndexOf *of, const char *path)
{
    size_t n = (size_t)(base_name(path) - path);
    if (of->folder && of->n == n && !memcmp(of->folder, path, n))
        return of->index;
    *of = (IndexOf){path, n, token_index_read(s, n > 1 ? arena_copy(s->arena, path, n - 1) : n ? "/" : "")};
    if (of->index && !of->index->complete)
        mapped_wrong(s, of->index->path,
                     "`vwn tokenize` did not come to the end of these shards: the same call goes on with `--resume`");
    return of->index;
}

/* Ids of one vocabulary alone make sense together: those of the shards, the tokenizer's and the model's. */
static void check_vocabulary(Session *s, const Data *d, const TokenIndex *index, const DataOptions *how)
{
    char hash[65];
    if (!model_check_vocabulary(s->ctx, how->model, index->vocab, how->spec->span))
        ctx_raise(s->ctx, ST_INPUT, NULL);
    if (how->spec->separated && how->spec->separator != index->separator)
        ctx_raise(s->ctx, ST_INPUT, "%.300s: documents begin with the token %lld there, and `separator` is %lld%s",
                  index->path, (long long)index->separator, (long long)how->spec->separator,
                  mapped_named(s, how->spec->span, NULL, NULL));
    if (how->tokenizer && (how->tokenizer->kind == TOKENIZER_BYTES || how->tokenizer->kind == TOKENIZER_CHARS)) {
        const char *plain = how->tokenizer->kind == TOKENIZER_BYTES ? "bytes" : "chars";
        Diag *e = diag_error(s->ctx, "E0601", how->tokenizer->span, "another vocabulary",
                             "`%s()` did not make these ids: their vocabulary has %lld entries", plain,
                             (long long)index->vocab);
        diag_note(s->ctx, e, "%.300s says so", index->path);
        diag_help(s->ctx, e, "name the file that made them: `tokenizer = file(\"tokenizer.json\")`");
        ctx_raise(s->ctx, ST_INPUT, NULL);
    }
    if (!d->tokenizer->bpe)
        return;
    tokenizer_ids_hash(d->tokenizer, hash);
    if (strcmp(hash, index->vocabulary) != 0)
        ctx_raise(s->ctx, ST_INPUT,
                  "%.300s: these ids were made by another tokenizer than %.300s: their vocabularies differ",
                  index->path, d->tokenizer->files->file.path);
}

static void open_tokens(Session *s, Data *d, const DataOptions *how, size_t *n_train)
{
    const DataSpec *spec = how->spec;
    char **train, **val = NULL;
    size_t n_val = 0;
    *n_train = list_files(s, spec, spec->path, &train);
    if (spec->val_path)
        n_val = list_files(s, spec, spec->val_path, &val);
    d->n = *n_train + n_val;
    d->shard = NEW_ARRAY(s->arena, Shard, d->n);
    bool file = how->tokenizer && how->tokenizer->kind == TOKENIZER_FILE;
    d->tokenizer = how->known ? how->known
                   : file     ? tokenizer_file(s, how->tokenizer)
                              : tokenizer_plain(s->arena, TOKENIZER_FILE);
    IndexOf of = {0};
    d->train.mark = d->val.mark = spec->separated ? spec->separator : -1;
    for (size_t i = 0; i < d->n; i++) {
        const char *path = i < *n_train ? train[i] : val[i - *n_train];
        const TokenIndex *before = of.index, *index = index_of(s, &of, path);
        open_shard(s, &d->shard[i], path, spec, index);
        if (!index || index == before)
            continue;
        check_vocabulary(s, d, index, how);
        TokenShard all = token_index_all(index);
        d->train.bytes = d->val.bytes = (double)all.bytes / (double)all.tokens;
        d->train.mark = d->val.mark = index->separator;
    }
}

/* ---- splits ---- */

/* Shards of `val_path` are for evaluation; without them the last `val` of all tokens is. */
static void divide(Session *s, Data *d, size_t n_train, const DataSpec *spec)
{
    int64_t *count = NEW_ARRAY(s->arena, int64_t, d->n + 1);
    for (size_t i = 0; i < d->n; i++)
        count[i] = d->shard[i].tokens.count;
    order_divide(&d->train.order, &d->val.order, count, n_train, spec->val_path ? 0 : spec->val);
    for (size_t i = n_train; i < d->n; i++)
        order_add(&d->val.order, i, 0, count[i]);
}

static int64_t separator_of(Session *s, const DataSpec *spec, const Tokenizer *t)
{
    const char *text = spec->separator_text;
    int64_t *id = NEW_ARRAY(s->arena, int64_t, tokenizer_room(t, strlen(text)));
    char why[WHY];
    int64_t n = tokenizer_encode(t, "the separator", text, strlen(text), id, why);
    if (n == 1)
        return id[0];
    if (n < 0)
        ctx_raise(s->ctx, ST_INPUT, "%s%s", why, mapped_named(s, spec->span, NULL, NULL));
    diag_error(s->ctx, "E0610", spec->separator_span, arena_printf(s->ctx->program, "%lld tokens", (long long)n),
               "the separator is not one token");
    ctx_raise(s->ctx, ST_INPUT, NULL);
}

int64_t data_separator(Session *s, const DataSpec *spec, const Tokenizer *t)
{
    uint32_t c;
    if (!spec || !spec->separated || !spec->separator_text)
        return spec && spec->separated ? spec->separator : -1;
    const char *text = spec->separator_text;
    if (t->bpe)
        return separator_of(s, spec, t);
    if (t->kind != TOKENIZER_CHARS)
        return (unsigned char)text[0];
    int64_t id = utf8_read(text, strlen(text), &c) ? tokenizer_id(t, c) : -1;
    if (id >= 0)
        return id;
    diag_error(s->ctx, "E0610", spec->separator_span, "not in the text",
               "the separator does not occur in the training text, so no token stands for it");
    ctx_raise(s->ctx, ST_INPUT, NULL);
}

static void open_splits(Session *s, Data *d, const DataOptions *how)
{
    Split *both[2] = {&d->train, &d->val};
    int64_t separator = data_separator(s, how->spec, d->tokenizer);
    for (int i = 0; i < 2; i++) {
        both[i]->order.context = how->context;
        both[i]->separator = separator;
        both[i]->vocab = model_ids(how->model);
        both[i]->order.range = NEW_ARRAY(s->arena, Stretch, d->n);
        both[i]->shard = d->shard;
        both[i]->name = i ? "validation text" : "training text";
        if (how->spec && how->spec->kind == DATA_TEXT_FILE)
            both[i]->name = arena_printf(s->arena, "%s %.300s",
                                         how->spec->val == 0 ? "text"
                                         : i                 ? "held-out part of"
                                                             : "training part of",
                                         d->shard->file.path);
    }
}

/* The last share `val` of an order that is drawn once is held out: arrays are often sorted. */
static void divide_rows(Session *s, Data *d, const DataOptions *how, double val)
{
    int64_t rows = d->arrays->rows, keep = rows - (int64_t)((double)rows * val);
    d->tokenizer = tokenizer_plain(s->arena, TOKENIZER_NONE);
    int64_t T = how->context;
    d->train = (Split){.arrays = d->arrays, .name = "training part"};
    d->train.order = (Order){.context = T, .windows = keep, .tokens = keep * T};
    d->val = (Split){.arrays = d->arrays, .first = keep, .name = "part held out"};
    d->val.order = (Order){.context = T, .windows = rows - keep, .tokens = (rows - keep) * T};
}

/* A file that is not there: the place that names it is said. */
static void need_file(Session *s, const DataSpec *spec, const char *path)
{
    const char *full = mapped_path(s->arena, spec->folder, path);
    struct stat st;
    bool folder = stat(full, &st) == 0 && S_ISDIR(st.st_mode);
    if (!spec->span.file || (!folder && access(full, R_OK) == 0))
        return;
    ctx_raise(s->ctx, ST_ENVIRONMENT, "%.300s: %s%s", full, folder ? "it is a folder, not a file" : strerror(errno),
              mapped_named(s, spec->span, spec->folder, path));
}

Data *data_open(Session *s, const DataOptions *how)
{
    Data *d = NEW(s->arena, Data);
    size_t n_train = 1;
    d->train.mark = d->val.mark = -1;
    if (how->spec->kind == DATA_TEXT_FILE)
        need_file(s, how->spec, how->spec->path);
    for (size_t i = 0; how->spec->kind == DATA_ARRAYS && i < how->spec->n_array; i++)
        need_file(s, how->spec, how->spec->array[i].path);
    if (how->spec->kind == DATA_ARRAYS) {
        d->arrays = arrays_open(s, how->spec, how->model, how->context);
        divide_rows(s, d, how, how->spec->val);
        return d;
    }
    if (how->spec->kind == DATA_TEXT_FILE)
        open_text(s, d, how);
    else if (how->spec->kind == DATA_TOKEN_FILES)
        open_tokens(s, d, how, &n_train);
    else
        ctx_raise(s->ctx, ST_INPUT, "the file names no `data`");
    Span tokenizer = how->tokenizer ? how->tokenizer->span : NO_SPAN;
    if (!model_check_vocabulary(s->ctx, how->model, d->tokenizer->size, tokenizer))
        ctx_raise(s->ctx, ST_INPUT, NULL);
    open_splits(s, d, how);
    divide(s, d, n_train, how->spec);
    return d;
}

bool data_is_there(Session *s, const DataSpec *spec)
{
    if (spec->kind == DATA_TEXT_FILE)
        return access(mapped_path(s->arena, spec->folder, spec->path), F_OK) == 0;
    bool all = spec->kind == DATA_ARRAYS;
    for (size_t i = 0; i < spec->n_array; i++)
        all = all && access(mapped_path(s->arena, spec->folder, spec->array[i].path), F_OK) == 0;
    if (spec->kind != DATA_TOKEN_FILES)
        return all;
    glob_t found = {0};
    int failed = glob(pattern_of(s->arena, spec->folder, spec->path), 0, NULL, &found);
    globfree(&found);
    return !failed;
}

Data *data_synthetic(Session *s, const DataOptions *how)
{
    enum { WINDOWS = 256 };
    Data *d = NEW(s->arena, Data);
    if (how->spec->kind == DATA_ARRAYS) {
        d->arrays = arrays_drawn(s, how->spec, how->model, how->context);
        divide_rows(s, d, how, 0);
        return d;
    }
    Shard *x = d->shard = NEW(s->arena, Shard);
    d->n = 1;
    d->tokenizer = tokenizer_plain(s->arena, TOKENIZER_FILE);
    x->file.path = "synthetic tokens";
    int64_t count = WINDOWS * how->context;
    uint32_t *drawn = NEW_ARRAY(s->arena, uint32_t, (size_t)count);
    int64_t ids = model_ids(how->model);
    uint64_t below = ids > 0 ? (uint64_t)ids : 256;
    for (int64_t i = 0; i < count; i++)
        drawn[i] = (uint32_t)(mix64((uint64_t)i) % below);
    x->tokens = (Tokens){(const unsigned char *)drawn, sizeof *drawn, NULL, count};
    open_splits(s, d, how);
    order_add(&d->train.order, 0, 0, count);
    return d;
}

void split_need_window(Session *s, const Split *split)
{
    if (split->order.windows)
        return;
    if (split->arrays)
        ctx_raise(s->ctx, ST_ENVIRONMENT, "the %s of the arrays has no row", split->name);
    else
        ctx_raise(s->ctx, ST_ENVIRONMENT, "the %s has %lld tokens%s, fewer than the context of %lld", split->name,
                  (long long)split->order.tokens, split->order.unused > 1 ? " and no file" : "",
                  (long long)split->order.context);
}

/* ---- order ---- */

static int64_t row_of(const Split *s, int64_t i)
{
    enum { KEY = 1 }; /* of no run: every seed holds the same rows out */
    return (int64_t)permute_index(KEY, (uint64_t)s->arrays->rows, (uint64_t)(s->first + i));
}

Window split_window(const Split *s, uint64_t seed, int64_t ordinal)
{
    if (s->arrays)
        return (Window){0, row_of(s, order_row(s->order.windows, seed, ordinal))};
    return order_window(&s->order, seed, ordinal);
}

int64_t split_fixed_windows(const Split *s)
{
    if (s->arrays)
        return s->order.windows;
    return order_fixed_windows(&s->order);
}

Window split_fixed(const Split *s, int64_t i, int64_t of)
{
    if (s->arrays)
        return (Window){0, row_of(s, order_spread(s->order.windows, i, of))};
    return order_fixed(&s->order, i, of);
}

/* ---- reading ---- */

bool split_read(const Split *s, Window w, int64_t *token, int64_t *label, int64_t *document, char why[WHY])
{
    const Shard *x = &s->shard[s->order.range[w.range].file];
    if (!mapped_unchanged(&x->file, why))
        return false;
    int64_t bad = tokens_window(&x->tokens, &s->order, w, s->vocab, s->separator, token, label, document);
    if (bad >= 0)
        snprintf(why, WHY, "%.300s: byte %zu: token %lld is not below the vocabulary of %lld", x->file.path,
                 x->header + (size_t)bad * (size_t)x->tokens.width, (long long)token_at(&x->tokens, bad),
                 (long long)s->vocab);
    return bad < 0;
}

double split_bytes_per_token(Session *s, const Split *split, const Tokenizer *t, int64_t of)
{
    int64_t T = split->order.context, tokens = 0;
    char why[WHY], few[4];
    size_t n, bytes = 0;
    if (split->arrays)
        return 0;
    if (!tokenizer_has_text(t))
        return split->bytes;
    if (t->kind == TOKENIZER_BYTES)
        return 1;
    ArenaMark mark = arena_mark(s->arena);
    int64_t *token = NEW_ARRAY(s->arena, int64_t, (size_t)T), *label = NEW_ARRAY(s->arena, int64_t, (size_t)T);
    for (int64_t i = 0; i < of; i++) {
        if (!split_read(split, split_fixed(split, i, of), token, label, NULL, why))
            ctx_raise(s->ctx, ST_ENVIRONMENT, "%s", why);
        for (int64_t k = 0; k < T; k++)
            if (label[k] >= 0 && tokenizer_decode(t, label[k], few, &n)) {
                bytes += label[k] == split->mark ? 0 : n;
                tokens++;
            }
    }
    arena_reset(s->arena, mark);
    return tokens ? (double)bytes / (double)tokens : 0;
}

/* ---- fingerprints ---- */

void data_fingerprint(const Data *d, Buf *out)
{
    buf_puts(out, "[");
    size_t n = d->arrays ? d->arrays->n : d->n;
    for (size_t i = 0; i < n; i++) {
        const Mapped *x = d->arrays ? &d->arrays->v[i].file : &d->shard[i].file;
        const char *name = base_name(x->path);
        size_t cap = 6 * strlen(name) + 200;
        char *memory = arena_alloc(out->arena, cap), content[24];
        snprintf(content, sizeof content, "%016llx", (unsigned long long)x->content);
        JsonText t;
        json_begin(&t, memory, cap);
        json_open(&t, NULL, '{');
        json_put_string(&t, "name", name);
        json_put_integer(&t, "bytes", (int64_t)x->bytes);
        json_put_string(&t, "content", content);
        json_close(&t, '}');
        buf_printf(out, "%s%s", i ? "," : "", t.s);
    }
    buf_puts(out, "]");
}

static int64_t bytes_of(const Json *file)
{
    const Json *j = json_get(file, "bytes");
    return j && j->whole ? j->integer : -1;
}

static const char *text_of(const Json *file, const char *key)
{
    const char *s = json_string(file, key);
    return s ? s : "?";
}

const char *data_difference(Arena *a, const char *then, const char *now)
{
    JsonError e;
    const Json *x = json_read(a, then, strlen(then), &e), *y = json_read(a, now, strlen(now), &e);
    if (!x || !y || x->kind != JSON_ARRAY || y->kind != JSON_ARRAY)
        return "the list of data files in the checkpoint cannot be read";
    if (x->n != y->n)
        return arena_printf(a, "there were %zu data files when the run began, now there are %zu", x->n, y->n);
    for (x = x->first, y = y->first; x && y; x = x->next, y = y->next) {
        if (strcmp(text_of(x, "name"), text_of(y, "name")))
            return arena_printf(a, "where the data file `%s` was there is now `%s`", text_of(x, "name"),
                                text_of(y, "name"));
        if (bytes_of(x) != bytes_of(y))
            return arena_printf(a,
                                "the data file `%s` had %lld bytes when the run began, now it has "
                                "%lld",
                                text_of(x, "name"), (long long)bytes_of(x), (long long)bytes_of(y));
        if (strcmp(text_of(x, "content"), text_of(y, "content")))
            return arena_printf(a,
                                "the content of the data file `%s` is not what it was when the run "
                                "began",
                                text_of(x, "name"));
    }
    return NULL;
}
