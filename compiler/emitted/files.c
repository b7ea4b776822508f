/* files.c - see files.h. What is read is not trusted: every length is compared with the file's.
 */
#include "files.h"

#include "file.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const Progress no_progress = {0, 0, 0, INFINITY, INFINITY, INFINITY, 0, 0, 0};

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

/* Bytes of the UTF-8 sequence at s and its code; 0 when there is none. */
static int read_code(const unsigned char *s, int64_t n, uint32_t *code)
{
    int length = s[0] < 0x80       ? 1
                 : s[0] >> 5 == 6  ? 2
                 : s[0] >> 4 == 14 ? 3
                 : s[0] >> 3 == 30 ? 4
                                   : 0;
    if (length == 0 || length > n)
        return 0;
    *code = length == 1 ? s[0] : s[0] & (0x7fu >> length);
    for (int i = 1; i < length; i++) {
        if (s[i] >> 6 != 2)
            return 0;
        *code = *code << 6 | (s[i] & 0x3fu);
    }
    return length;
}

/* The id of a character, or -1. */
static int64_t id_of(uint32_t code)
{
    int64_t lo = 0, hi = model.n_symbols;
    while (lo < hi) {
        int64_t middle = lo + (hi - lo) / 2;
        if (model.symbol[middle] < code)
            lo = middle + 1;
        else
            hi = middle;
    }
    return lo < model.n_symbols && model.symbol[lo] == code ? lo : -1;
}

static void read_characters(Text *text, const unsigned char *s, int64_t n)
{
    for (int64_t i = 0; i < n;) {
        uint32_t code = 0;
        int length = read_code(s + i, n - i, &code);
        int64_t id = length ? id_of(code) : -1;
        if (id < 0)
            stop("%s: byte %" PRId64 ": %s", text->path, i,
                 length ? "a character that the training text of this model did not have"
                        : "not UTF-8");
        text->id[text->count++] = (uint32_t)id;
        i += length;
    }
}

static void read_ids(Text *text, const unsigned char *s, int64_t n)
{
    int width = model.id_bits / 8;
    if (n < model.id_header || (n - model.id_header) % width != 0)
        stop("%s: not a whole number of tokens of %d bits%s", text->path, model.id_bits,
             model.id_header ? " behind a header" : "");
    for (int64_t i = model.id_header; i < n; i += width) {
        uint16_t half;
        uint32_t full = s[i];
        if (width == 2)
            memcpy(&half, s + i, sizeof half), full = half;
        if (width == 4)
            memcpy(&full, s + i, sizeof full);
        if (model.vocab && full >= model.vocab)
            stop("%s: byte %" PRId64 ": token %u is not below the vocabulary of %" PRId64,
                 text->path, i, (unsigned)full, model.vocab);
        text->id[text->count++] = full;
    }
}

Text read_text(const char *path)
{
    int64_t n;
    unsigned char *bytes = read_bytes(path, &n);
    Text text = {.path = path, .id = room((uint64_t)n * sizeof *text.id)};
    if (model.symbol)
        read_characters(&text, bytes, n);
    else
        read_ids(&text, bytes, n);
    free(bytes);
    return text;
}

/* ---- JSON, as far as a safetensors header needs it ---- */

typedef struct Json {
    const char *path, *s, *end;
} Json;

static _Noreturn void damaged(const Json *j)
{
    stop("%s: not a safetensors file, or damaged", j->path);
}

static char next(Json *j)
{
    while (j->s < j->end && strchr(" \t\r\n", *j->s))
        j->s++;
    return j->s < j->end ? *j->s : 0;
}

static bool take(Json *j, char c)
{
    if (next(j) != c || !c)
        return false;
    j->s++;
    return true;
}

static void must(Json *j, char c)
{
    if (!take(j, c))
        damaged(j);
}

static unsigned hex4(Json *j)
{
    unsigned code = 0;
    for (int i = 0; i < 4; i++, j->s++) {
        const char *digits = "0123456789abcdef0123456789ABCDEF";
        const char *d = j->s < j->end && *j->s ? strchr(digits, *j->s) : NULL;
        if (!d)
            damaged(j);
        code = code << 4 | (unsigned)((d - digits) % 16);
    }
    return code;
}

/* The string that comes next; what does not fit into `size` bytes is cut off. */
static void string(Json *j, char *out, size_t size)
{
    size_t n = 0;
    must(j, '"');
    while (j->s < j->end && *j->s != '"') {
        char text[4] = {*j->s++};
        int length = 1;
        if (text[0] == '\\' && j->s < j->end) {
            static const char from[] = "bfnrt", to[] = "\b\f\n\r\t";
            char c = *j->s++;
            const char *known = strchr(from, c);
            text[0] = known && c ? to[known - from] : c;
            unsigned code = c == 'u' ? hex4(j) : 0;
            if (c == 'u')
                text[0] = (char)code;
            if (code >= 0x800) {
                text[0] = (char)(0xe0 | code >> 12);
                text[length++] = (char)(0x80 | (code >> 6 & 0x3f));
                text[length++] = (char)(0x80 | (code & 0x3f));
            } else if (code >= 0x80) {
                text[0] = (char)(0xc0 | code >> 6);
                text[length++] = (char)(0x80 | (code & 0x3f));
            }
        }
        for (int i = 0; i < length && n + 1 < size; i++)
            out[n++] = text[i];
    }
    out[n] = 0;
    must(j, '"');
}

static int64_t whole(Json *j)
{
    int64_t v = 0;
    if (next(j) < '0' || *j->s > '9')
        damaged(j);
    for (; j->s < j->end && *j->s >= '0' && *j->s <= '9'; j->s++) {
        if (v > (INT64_MAX - 9) / 10)
            damaged(j);
        v = v * 10 + (*j->s - '0');
    }
    return v;
}

/* A list of whole numbers: at most `most`; how many. */
static int numbers(Json *j, int64_t *v, int most)
{
    int n = 0;
    must(j, '[');
    if (take(j, ']'))
        return 0;
    do {
        if (n == most)
            damaged(j);
        v[n++] = whole(j);
    } while (take(j, ','));
    must(j, ']');
    return n;
}

/* ---- reading weights ---- */

typedef struct Entry {
    char name[1024], type[16];
    int rank;
    int64_t shape[8], place[2]; /* bytes behind the header */
} Entry;

static void read_entry(Json *j, Entry *e)
{
    char key[32];
    must(j, '{');
    do {
        string(j, key, sizeof key);
        must(j, ':');
        if (!strcmp(key, "dtype"))
            string(j, e->type, sizeof e->type);
        else if (!strcmp(key, "shape"))
            e->rank = numbers(j, e->shape, 8);
        else if (!strcmp(key, "data_offsets") && numbers(j, e->place, 2) == 2)
            continue;
        else
            damaged(j);
    } while (take(j, ','));
    must(j, '}');
}

static void read_metadata(Json *j, Progress *p)
{
    char key[64], value[64];
    must(j, '{');
    if (take(j, '}'))
        return;
    do {
        string(j, key, sizeof key);
        must(j, ':');
        string(j, value, sizeof value);
        const struct {
            const char *key;
            int64_t *whole;
            double *real;
        } known[] = {{"step", &p->step, NULL},           {"tokens", &p->tokens, NULL},
                     {"sequences", &p->sequences, NULL}, {"train_loss", NULL, &p->train_loss},
                     {"eval_loss", NULL, &p->eval_loss}, {"grad_norm", NULL, &p->grad_norm},
                     {"loss_scale", NULL, &p->loss_scale}, {"good_steps", &p->good_steps, NULL},
                     {"skipped_steps", &p->skipped, NULL}};
        for (size_t i = 0; i < sizeof known / sizeof known[0]; i++) {
            if (strcmp(key, known[i].key))
                continue;
            double v = strtod(value, NULL);
            if (known[i].whole)
                *known[i].whole = v >= 0 && v < 1e15 ? (int64_t)v : 0;
            else
                *known[i].real = isnan(v) ? INFINITY : v;
        }
    } while (take(j, ','));
    must(j, '}');
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

static int tensor_named(const char *name, bool states)
{
    for (int i = 0; i < model.n_tensors; i++) {
        TensorKind kind = model.tensor[i].kind;
        bool kept = kind == WEIGHT || kind == CONSTANT ||
                    (kind == STATE && (states || averaged_by(i) >= 0));
        if (kept && !strcmp(model.tensor[i].name, name))
            return i;
    }
    return -1;
}

static void load_entry(const Json *j, const Entry *e, const unsigned char *data, int64_t bytes,
                       const Tensor *t, Run *run)
{
    int size = !strcmp(e->type, "F32") ? 4 : !strcmp(e->type, "F64") ? 8 : 0;
    if (!size)
        stop("%s: `%s` is of type %s; F32 and F64 are understood", j->path, e->name, e->type);
    bool fits = e->rank == t->rank;
    for (int i = 0; fits && i < t->rank; i++)
        fits = e->shape[i] == t->shape[i];
    if (!fits)
        stop("%s: `%s` has another shape than in this model", j->path, e->name);
    if (e->place[0] > e->place[1] || e->place[1] > bytes ||
        e->place[1] - e->place[0] != t->elements * size)
        damaged(j);
    uint64_t room_for = (uint64_t)t->elements * sizeof(real);
    real *to = room(room_for);
    for (int64_t i = 0; i < t->elements; i++) {
        double wide;
        const unsigned char *from = data + e->place[0] + i * size;
        if (size == 8)
            memcpy(&wide, from, 8), to[i] = (real)wide;
        else
            memcpy(&to[i], from, 4);
    }
    device_put(run, run->tensors + t->offset, to, room_for);
    free(to);
}

/* An average of the weights begins as they are. */
static void copy_tensor(Run *run, const Tensor *to, const Tensor *from)
{
    uint64_t bytes = (uint64_t)to->elements * sizeof(real);
    char *between = room(bytes);
    device_get(run, between, run->tensors + from->offset, bytes);
    device_put(run, run->tensors + to->offset, between, bytes);
    free(between);
}

void read_weights(const char *path, Run *run, Progress *progress, bool states)
{
    int64_t n, length = 0;
    unsigned char *file = read_bytes(path, &n);
    bool *seen = room((uint64_t)model.n_tensors);
    Json j = {path, (char *)file + 8, NULL};
    for (int i = 7; i >= 0 && n >= 8; i--)
        length = length << 8 | file[i];
    if (n < 8 || length < 2 || length > n - 8)
        damaged(&j);
    j.end = j.s + length;
    *progress = no_progress;
    must(&j, '{');
    do {
        Entry e = {.rank = -1};
        string(&j, e.name, sizeof e.name);
        must(&j, ':');
        if (!strcmp(e.name, "__metadata__")) {
            read_metadata(&j, progress);
            continue;
        }
        read_entry(&j, &e);
        int i = tensor_named(e.name, states);
        if (i >= 0) {
            load_entry(&j, &e, file + 8 + length, n - 8 - length, &model.tensor[i], run);
            seen[i] = true;
        }
    } while (take(&j, ','));
    for (int i = 0; i < model.n_tensors; i++) {
        TensorKind kind = model.tensor[i].kind;
        const Tensor *to = &model.tensor[i];
        int weight = averaged_by(i);
        if (weight >= 0 && !seen[i] && progress->step == 0) {
            copy_tensor(run, to, &model.tensor[weight]);
            continue;
        }
        bool needed = kind == WEIGHT || kind == CONSTANT ||
                      (kind == STATE && (states || weight >= 0) && progress->step > 0);
        if (needed && !seen[i])
            stop("%s: there is no `%s` in it", path, model.tensor[i].name);
    }
    free(seen);
    free(file);
}

/* ---- writing weights ---- */

static bool is_kept(const Tensor *t)
{
    return t->kind == WEIGHT || t->kind == CONSTANT || t->kind == STATE;
}

static void put_string(FILE *f, const char *s)
{
    fputc('"', f);
    for (; *s; s++)
        if (*s == '"' || *s == '\\')
            fprintf(f, "\\%c", *s);
        else if ((unsigned char)*s < 0x20)
            fprintf(f, "\\u%04x", (unsigned)*s);
        else
            fputc(*s, f);
    fputc('"', f);
}

static void put_header(FILE *f, const Progress *p)
{
    uint64_t at = 0;
    fprintf(f, "{\"__metadata__\":{\"format\":\"vwn folder 1\",\"step\":\"%" PRId64 "\"",
            p->step);
    fprintf(f, ",\"tokens\":\"%" PRId64 "\",\"sequences\":\"%" PRId64 "\"", p->tokens,
            p->sequences);
    fprintf(f, ",\"train_loss\":\"%.17g\",\"eval_loss\":\"%.17g\"", p->train_loss,
            p->eval_loss);
    fprintf(f, ",\"grad_norm\":\"%.17g\"", p->grad_norm);
    if (p->loss_scale > 0)
        fprintf(f,
                ",\"loss_scale\":\"%.17g\",\"good_steps\":\"%" PRId64
                "\",\"skipped_steps\":\"%" PRId64 "\"",
                p->loss_scale, p->good_steps, p->skipped);
    fputc('}', f);
    for (int i = 0; i < model.n_tensors; i++) {
        const Tensor *t = &model.tensor[i];
        if (!is_kept(t))
            continue;
        uint64_t bytes = (uint64_t)t->elements * sizeof(real);
        fputc(',', f);
        put_string(f, t->name);
        fputs(":{\"dtype\":\"F32\",\"shape\":[", f);
        for (int k = 0; k < t->rank; k++)
            fprintf(f, "%s%" PRId64, k ? "," : "", t->shape[k]);
        fprintf(f, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", at, at + bytes);
        at += bytes;
    }
    fputc('}', f);
    while (ftell(f) % 8 != 0)
        fputc(' ', f);
}

static void put_tensor(FILE *f, const Run *run, const Tensor *t)
{
    size_t n = (size_t)t->elements;
    real *numbers = room(n * sizeof *numbers);
    device_get(run, numbers, run->tensors + t->offset, n * sizeof *numbers);
    fwrite(numbers, sizeof *numbers, n, f);
    free(numbers);
}

void write_weights(const char *path, const Run *run, const Progress *progress)
{
    char other[4096];
    if (snprintf(other, sizeof other, "%s.tmp", path) >= (int)sizeof other)
        stop("%s: the name is too long", path);
    FILE *f = open_file(other, "wb");
    unsigned char length[8] = {0};
    fwrite(length, 1, 8, f);
    put_header(f, progress);
    long end = ftell(f);
    for (int i = 0; i < model.n_tensors; i++)
        if (is_kept(&model.tensor[i]))
            put_tensor(f, run, &model.tensor[i]);
    for (int i = 0; i < 8 && end > 0; i++)
        length[i] = (unsigned char)((uint64_t)(end - 8) >> 8 * i);
    bool fine = end > 0 && fseek(f, 0, SEEK_SET) == 0 && fwrite(length, 1, 8, f) == 8;
    fine = !ferror(f) && fine;
    fine = fclose(f) == 0 && fine && rename(other, path) == 0;
    if (!fine)
        stop("%s could not be written: %s", path, strerror(errno));
}
