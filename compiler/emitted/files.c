/* files.c - see files.h. What is read is not trusted: every length is compared with the file's.
 */
#include "files.h"

#include "file.h"
#include "safetensors.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- whole files ---- */

static FILE *open_file(const char *path, const char *mode)
{
    const char *why;
    FILE *f = file_stream(path, mode, &why);
    if (!f)
        stop("%s: %s", path, why);
    return f;
}

/* The file's bytes and a zero behind them; the caller frees them. */
static unsigned char *read_bytes(const char *path, int64_t *n)
{
    FILE *f = open_file(path, "rb");
    size_t used = 0, size = 1 << 16, got;
    unsigned char *bytes = malloc(size);
    while (bytes && (got = fread(bytes + used, 1, size - 1 - used, f)) > 0) {
        used += got;
        if (used < size - 1)
            continue;
        unsigned char *more = size > SIZE_MAX / 2 ? NULL : realloc(bytes, size * 2);
        if (!more)
            stop("%s: no memory for it", path);
        bytes = more;
        size *= 2;
    }
    if (!bytes || ferror(f))
        stop("%s: %s", path, bytes ? strerror(errno) : "no memory for it");
    fclose(f);
    bytes[used] = 0;
    *n = (int64_t)used;
    return bytes;
}

/* ---- texts ---- */

static void read_characters(Text *text, size_t n)
{
    size_t at, length;
    uint32_t *id = room(n * sizeof *id);
    int64_t count = tokens_of_text(model.symbol, model.n_symbols, text->bytes, n, id, &at, &length);
    if (count < 0)
        stop("%s: byte %zu: %s", text->path, at,
             length ? "a character that the training text of this model did not have" : "not UTF-8");
    free(text->bytes);
    text->bytes = id;
    text->tokens = (Tokens){text->bytes, sizeof *id, NULL, count};
}

Text read_text(const char *path)
{
    int64_t n, width = model.id_bits / 8;
    Text text = {.path = path, .bytes = read_bytes(path, &n)};
    if (model.symbol) {
        read_characters(&text, (size_t)n);
        return text;
    }
    if (n < model.id_header || (n - model.id_header) % width != 0)
        stop("%s: not a whole number of tokens of %d bits%s", path, model.id_bits,
             model.id_header ? " behind a header" : "");
    text.tokens =
        (Tokens){(unsigned char *)text.bytes + model.id_header, (int)width, NULL, (n - model.id_header) / width};
    for (int64_t i = 0; model.vocab > 0 && i < text.tokens.count; i++) /* at once, and not when it is met */
        if (token_at(&text.tokens, i) >= model.vocab)
            stop("%s: byte %" PRId64 ": token %" PRId64 " is not below the vocabulary of %" PRId64, path,
                 model.id_header + i * width, token_at(&text.tokens, i), model.vocab);
    return text;
}

/* ---- weights ---- */

enum { PIECE = 1 << 14 }; /* numbers at a time */

/* Memory that is given back at once. */
typedef struct Block {
    struct Block *before;
} Block;

static void *take(void *user, size_t bytes)
{
    Block **last = user, *b = room(64 + (uint64_t)bytes);
    b->before = *last;
    *last = b;
    return (char *)b + 64;
}

static void give_back(Block *last)
{
    for (Block *before; last; last = before) {
        before = last->before;
        free(last);
    }
}

/* The weight whose average over steps tensor i is, or -1. */
static int averaged_by(int i)
{
    const char *name = model.tensor[i].name, *which = strrchr(name, ':');
    size_t n = which ? (size_t)(which - name) : 0;
    if (model.tensor[i].kind != STATE || !which || strcmp(which, ":average"))
        return -1;
    for (int k = 0; k < model.n_tensors; k++) {
        const Tensor *t = &model.tensor[k];
        if (t->kind == WEIGHT && strlen(t->name) == n && !memcmp(t->name, name, n))
            return k;
    }
    return -1;
}

static bool is_kept(const Tensor *t) { return t->kind == WEIGHT || t->kind == CONSTANT || t->kind == STATE; }

static void read_tensor(const SafeFile *f, const SafeTensor *from, const Tensor *to, Run *run)
{
    char why[WHY];
    double numbers[PIECE];
    real single[PIECE];
    if (from->rank != to->rank || memcmp(from->d, to->shape, (size_t)to->rank * sizeof *to->shape))
        stop("%s: `%s` has another shape than in the model", f->path, to->name);
    for (int64_t at = 0, n; at < to->elements; at += n) {
        n = to->elements - at < PIECE ? to->elements - at : PIECE;
        if (!safe_read(f, from, at, n, numbers, why))
            stop("%s", why);
        for (int64_t i = 0; i < n; i++)
            single[i] = (real)numbers[i];
        device_put(run, run->tensors + to->offset + (size_t)at * sizeof *single, single, (size_t)n * sizeof *single);
    }
}

static void copy_tensor(Run *run, const Tensor *to, const Tensor *from)
{
    uint64_t bytes = (uint64_t)to->elements * sizeof(real);
    char *between = room(bytes);
    device_get(run, between, run->tensors + from->offset, bytes);
    device_put(run, run->tensors + to->offset, between, bytes);
    free(between);
}

/* A file without a step, or of another program, is that of a beginning. */
static Progress read_progress(const SafeFile *f)
{
    bool missing;
    char why[WHY];
    const char *format;
    Progress p = progress_none;
    if (!safe_text(f, "format", &format, why))
        stop("%s", why);
    bool own = format && !strncmp(format, "vwn ", 4);
    const char *bad = own && json_get(f->metadata, "step") ? progress_read(&p, f->metadata, &missing) : NULL;
    if (bad)
        stop("%s: the metadata `%s` is %s", f->path, bad, missing ? "not there" : "not a number of the right kind");
    return p;
}

void read_weights(const char *path, Run *run, Progress *progress, bool states)
{
    Block *memory = NULL;
    SafeFile f;
    char why[WHY];
    if (!safe_open((Region){take, &memory}, path, &f, why) || !safe_verify(&f, false, why))
        stop("%s", why);
    *progress = read_progress(&f);
    for (int i = 0; i < model.n_tensors; i++) {
        const Tensor *to = &model.tensor[i];
        int weight = averaged_by(i);
        if (!is_kept(to) || (to->kind == STATE && !states && weight < 0))
            continue;
        const SafeTensor *from = safe_find(&f, to->name);
        if (from)
            read_tensor(&f, from, to, run);
        else if (weight >= 0 && progress->step == 0)
            copy_tensor(run, to, &model.tensor[weight]);
        else if (to->kind != STATE || progress->step > 0)
            stop("%s: there is no `%s` in it", path, to->name);
    }
    safe_close(&f);
    give_back(memory);
}

static bool write_tensor(SafeWriter *w, const Run *run, const Tensor *t, char why[WHY])
{
    real numbers[PIECE];
    for (int64_t at = 0, n; at < t->elements; at += n) {
        n = t->elements - at < PIECE ? t->elements - at : PIECE;
        device_get(run, numbers, run->tensors + t->offset + (size_t)at * sizeof *numbers, (size_t)n * sizeof *numbers);
        for (int64_t i = 0; i < n; i++)
            if (!isfinite(numbers[i]))
                stop("number %" PRId64 " of `%s` is %s: nothing is written", at + i + 1, t->name,
                     isnan(numbers[i]) ? "not a number" : "infinite");
        if (!safe_put(w, numbers, (size_t)n * sizeof *numbers, why))
            return false;
    }
    return true;
}

void write_weights(const char *path, const Run *run, const Progress *progress)
{
    Block *memory = NULL;
    SafeWriter w;
    char why[WHY], text[PROGRESS_TEXT], *folder = take(&memory, strlen(path) + 2);
    const char *slash = strrchr(path, '/');
    memcpy(folder, slash ? path : ".", slash ? (size_t)(slash - path) + 1 : 1);
    safe_begin(&w, (Region){take, &memory});
    safe_meta(&w, "format", "vwn folder 1", 12);
    for (size_t i = 0; i < progress_fields; i++) {
        const char *key = progress_text(progress, i, text);
        if (key)
            safe_meta(&w, key, text, strlen(text));
    }
    for (int i = 0; i < model.n_tensors; i++)
        if (is_kept(&model.tensor[i]))
            safe_declare(&w, model.tensor[i].name, SAFE_F32, (uint8_t)model.tensor[i].rank, model.tensor[i].shape);
    bool ok = safe_create(&w, folder, slash ? slash + 1 : path, why);
    for (int i = 0; ok && i < model.n_tensors; i++)
        if (is_kept(&model.tensor[i]))
            ok = write_tensor(&w, run, &model.tensor[i], why);
    if (!ok || !safe_commit(&w, why))
        stop("%s", why);
    give_back(memory);
}
