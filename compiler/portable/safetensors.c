/* safetensors.c - see safetensors.h. The format: eight bytes of little-endian header length, a
 * JSON object {"__metadata__": {..}, "NAME": {"dtype", "shape", "data_offsets"}..}, then the
 * data. */
#define _GNU_SOURCE
#include "safetensors.h"

#include "file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#if defined(__BYTE_ORDER__) && __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__
#error "checkpoints are little-endian; this machine is not"
#endif

enum { LARGEST_HEADER = 100 << 20, BLOCK = 1 << 20 };

/* Of a floating-point type also the digits behind the point, the exponent of 1, and whether the largest exponent is that of infinity and
 * NaN; else the last code alone is NaN. */
static const struct {
    const char *name;
    int bits, digits, bias;
    bool finite;
} types[SAFE_TYPES] = {
    {.name = "F64", .bits = 64, .digits = 52, .bias = 1023},
    {.name = "F32", .bits = 32, .digits = 23, .bias = 127},
    {.name = "F16", .bits = 16, .digits = 10, .bias = 15},
    {.name = "BF16", .bits = 16, .digits = 7, .bias = 127},
    {.name = "F8_E4M3", .bits = 8, .digits = 3, .bias = 7, .finite = true},
    {.name = "F8_E5M2", .bits = 8, .digits = 2, .bias = 15},
    {.name = "I64", .bits = 64},
    {.name = "I32", .bits = 32},
    {.name = "I16", .bits = 16},
    {.name = "I8", .bits = 8},
    {.name = "U64", .bits = 64},
    {.name = "U32", .bits = 32},
    {.name = "U16", .bits = 16},
    {.name = "U8", .bits = 8},
    {.name = "BOOL", .bits = 8},
    /* not read */
    {.name = "C64", .bits = 64},
    {.name = "F8_E8M0", .bits = 8},
    {.name = "F8_E4M3FNUZ", .bits = 8},
    {.name = "F8_E5M2FNUZ", .bits = 8},
    {.name = "F6_E2M3", .bits = 6},
    {.name = "F6_E3M2", .bits = 6},
    {.name = "F4", .bits = 4},
};

const char *safe_type_name(SafeType type) { return types[type].name; }

/* ---- checksum ---- */

static uint64_t mix(uint64_t lane, uint64_t word)
{
    lane = (lane ^ word) * 0x9fb21c651e98df25u;
    return lane ^ lane >> 29;
}

void checksum_begin(Checksum *c)
{
    *c = (Checksum){.lane = {0x243f6a8885a308d3u, 0x13198a2e03707344u, 0xa4093822299f31d0u, 0x082efa98ec4e6c89u}};
}

/* The lanes are the compiler's own while it runs: bytes could else be those of the lanes. */
static void checksum_stripes(Checksum *c, const unsigned char *p, size_t n)
{
    uint64_t lane[4], word[4];
    memcpy(lane, c->lane, sizeof lane);
    for (; n >= 32; p += 32, n -= 32) {
        memcpy(word, p, sizeof word);
        for (int i = 0; i < 4; i++)
            lane[i] = mix(lane[i], word[i]);
    }
    memcpy(c->lane, lane, sizeof lane);
}

void checksum_add(Checksum *c, const void *data, size_t n)
{
    const unsigned char *p = data;
    size_t have = c->length % 32;
    c->length += n;
    if (have) {
        size_t take = n < 32 - have ? n : 32 - have;
        memcpy(c->rest + have, p, take);
        p += take;
        n -= take;
        if (have + take < 32)
            return;
        checksum_stripes(c, c->rest, 32);
    }
    checksum_stripes(c, p, n);
    if (n % 32)
        memcpy(c->rest, p + (n - n % 32), n % 32);
}

uint64_t checksum_end(const Checksum *c)
{
    Checksum last = *c;
    size_t have = last.length % 32;
    memset(last.rest + have, 0, 32 - have);
    checksum_stripes(&last, last.rest, sizeof last.rest);
    uint64_t h = last.length;
    for (int i = 0; i < 4; i++)
        h = mix(h, last.lane[i]);
    return h;
}

/* ---- reading: the header ---- */

static bool wrong(const SafeFile *f, char why[WHY], uint64_t offset, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
static bool wrong(const SafeFile *f, char why[WHY], uint64_t offset, const char *fmt, ...)
{
    char text[256];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    snprintf(why, WHY, "%.200s: byte %llu: %s", f->path, (unsigned long long)offset, text);
    return false;
}

static bool read_at(const SafeFile *f, void *to, uint64_t n, uint64_t at, char why[WHY])
{
    for (char *p = to; n;) {
        ssize_t got = pread(f->fd, p, n < 1u << 30 ? n : 1u << 30, (off_t)at);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return wrong(f, why, at, "%s", got < 0 ? strerror(errno) : "the file ends here");
        p += got;
        n -= (uint64_t)got;
        at += (uint64_t)got;
    }
    return true;
}

static bool read_shape(const Region *m, const SafeFile *f, const Json *shape, SafeTensor *t, char why[WHY])
{
    if (!shape || shape->kind != JSON_ARRAY)
        return wrong(f, why, shape ? 8 + shape->offset : 8, "tensor `%.80s` has no shape", t->name);
    t->d = region_take(m, (shape->n + 1) * sizeof *t->d);
    t->elements = 1;
    for (const Json *k = shape->first; k; k = k->next) {
        if (k->kind != JSON_NUMBER || !k->whole || k->integer < 0)
            return wrong(f, why, 8 + k->offset, "an extent of tensor `%.80s` is not a count", t->name);
        t->d[t->rank++] = k->integer;
        if (__builtin_mul_overflow(t->elements, k->integer, &t->elements))
            return wrong(f, why, 8 + k->offset, "the shape of tensor `%.80s` is too large", t->name);
    }
    return true;
}

/* The bytes of so many numbers; false where they are no whole bytes. */
static bool bytes_of(SafeType type, int64_t elements, int64_t *bytes)
{
    int bits = types[type].bits;
    int64_t part = elements % 8 * bits; /* of the last numbers */
    return !__builtin_mul_overflow(elements / 8, bits, bytes) && part % 8 == 0 &&
           !__builtin_add_overflow(*bytes, part / 8, bytes);
}

static bool read_entry(const Region *m, const SafeFile *f, const Json *j, SafeTensor *t, char why[WHY])
{
    uint64_t at = 8 + j->offset, room = f->size - 8 - f->header;
    const char *type = json_string(j, "dtype");
    if (j->kind != JSON_OBJECT || strlen(j->key) != j->key_n || !j->key_n)
        return wrong(f, why, at, "not the description of a tensor");
    *t = (SafeTensor){.name = j->key, .type = SAFE_TYPES};
    for (int i = 0; type && i < SAFE_TYPES; i++)
        if (!strcmp(type, types[i].name))
            t->type = (SafeType)i;
    if (t->type == SAFE_TYPES)
        return wrong(f, why, at, "tensor `%.80s` has the unknown type `%.20s`", t->name, type ? type : "");
    if (!read_shape(m, f, json_get(j, "shape"), t, why))
        return false;
    const Json *o = json_get(j, "data_offsets");
    if (!o || o->kind != JSON_ARRAY || o->n != 2)
        return wrong(f, why, at, "tensor `%.80s` needs two data_offsets", t->name);
    const Json *lo = o->first, *hi = o->first->next;
    if (!lo->whole || !hi->whole || lo->integer < 0 || hi->integer < lo->integer || (uint64_t)hi->integer > room)
        return wrong(f, why, 8 + o->offset,
                     "the data_offsets of tensor `%.80s` are outside the %llu "
                     "bytes of data",
                     t->name, (unsigned long long)room);
    int64_t bytes;
    if (!bytes_of(t->type, t->elements, &bytes) || bytes != hi->integer - lo->integer)
        return wrong(f, why, 8 + o->offset, "tensor `%.80s` has %lld numbers of %d bits, but %lld bytes of data",
                     t->name, (long long)t->elements, types[t->type].bits, (long long)(hi->integer - lo->integer));
    t->begin = 8 + f->header + (uint64_t)lo->integer;
    t->end = 8 + f->header + (uint64_t)hi->integer;
    return true;
}

static int by_place(const void *x, const void *y)
{
    const SafeTensor *a = x, *b = y;
    if (a->begin != b->begin)
        return a->begin < b->begin ? -1 : 1;
    if (a->end != b->end)
        return a->end < b->end ? -1 : 1;
    return strcmp(a->name, b->name);
}

static int by_name(const void *x, const void *y)
{
    return strcmp((*(const SafeTensor *const *)x)->name, (*(const SafeTensor *const *)y)->name);
}

/* The data must be covered exactly once. */
static bool check_cover(const SafeFile *f, char why[WHY])
{
    uint64_t at = 8 + f->header;
    for (size_t i = 0; i < f->n; i++) {
        const SafeTensor *t = &f->tensor[i];
        if (t->begin < at)
            return wrong(f, why, t->begin, "tensor `%.80s` overlaps the one before it", t->name);
        if (t->begin > at)
            return wrong(f, why, at, "bytes that belong to no tensor, before `%.80s`", t->name);
        at = t->end;
    }
    return at == f->size ||
           wrong(f, why, at, "%llu bytes that belong to no tensor", (unsigned long long)(f->size - at));
}

static bool check_metadata(const SafeFile *f, const Json *m, char why[WHY])
{
    if (m->kind == JSON_NULL) /* there is none */
        return true;
    if (m->kind != JSON_OBJECT)
        return wrong(f, why, 8 + m->offset, "__metadata__ is not an object");
    for (const Json *k = m->first; k; k = k->next)
        if (k->kind != JSON_STRING)
            return wrong(f, why, 8 + k->offset, "the metadata `%.80s` is not a string", k->key);
    return true;
}

static bool read_header(const Region *m, SafeFile *f, char why[WHY])
{
    unsigned char length[8];
    if (f->size < 8)
        return wrong(f, why, f->size, "the file ends within the length of its header");
    if (!read_at(f, length, 8, 0, why))
        return false;
    for (int i = 8; i-- > 0;)
        f->header = f->header << 8 | length[i];
    if (f->header > f->size - 8 || f->header > LARGEST_HEADER)
        return wrong(f, why, 0, "a header of %llu bytes in a file of %llu: not a safetensors file, or damaged",
                     (unsigned long long)f->header, (unsigned long long)f->size);
    char *text = region_take(m, f->header + 1);
    f->text = text;
    if (!read_at(f, text, f->header, 8, why))
        return false;
    JsonError e;
    if (f->header && text[0] != '{')
        return wrong(f, why, 8, "the header does not begin with `{`");
    Json *j = json_parse(m, text, f->header, &e);
    if (!j)
        return wrong(f, why, 8 + e.offset, "%s", e.what);
    f->tensor = region_take(m, (j->n + 1) * sizeof *f->tensor);
    f->by_name = region_take(m, (j->n + 1) * sizeof *f->by_name);
    for (const Json *k = j->first; k; k = k->next) {
        if (k->key_n == 12 && !memcmp(k->key, "__metadata__", 12)) {
            if (!check_metadata(f, k, why))
                return false;
            f->metadata = k->kind == JSON_OBJECT ? k : NULL;
        } else if (!read_entry(m, f, k, &f->tensor[f->n++], why)) {
            return false;
        }
    }
    qsort(f->tensor, f->n, sizeof *f->tensor, by_place);
    for (size_t i = 0; i < f->n; i++)
        f->by_name[i] = &f->tensor[i];
    qsort(f->by_name, f->n, sizeof *f->by_name, by_name);
    return check_cover(f, why);
}

bool safe_open(Region memory, const char *path, SafeFile *f, char why[WHY])
{
    *f = (SafeFile){.fd = -1, .path = path};
    struct stat st;
    const char *reason;
    f->fd = file_open(path, O_RDONLY, &reason);
    if (f->fd < 0 || fstat(f->fd, &st)) {
        snprintf(why, WHY, "%.300s: %s", path, f->fd < 0 ? reason : strerror(errno));
        safe_close(f);
        return false;
    }
    f->size = (uint64_t)st.st_size;
    bool ok = read_header(&memory, f, why);
    if (!ok)
        safe_close(f);
    return ok;
}

void safe_close(SafeFile *f)
{
    if (f->fd >= 0)
        close(f->fd);
    f->fd = -1;
}

const SafeTensor *safe_find(const SafeFile *f, const char *name)
{
    const SafeTensor key = {.name = name}, *wanted = &key;
    const SafeTensor *const *at = f->n ? bsearch(&wanted, f->by_name, f->n, sizeof *f->by_name, by_name) : NULL;
    return at ? *at : NULL;
}

bool safe_text(const SafeFile *f, const char *key, const char **text, char why[WHY])
{
    const Json *j = json_get(f->metadata, key);
    *text = json_string(f->metadata, key);
    return !j || *text || wrong(f, why, 8 + j->offset, "the metadata `%.80s` holds a NUL: it is damaged", key);
}

/* ---- reading: the numbers ---- */

/* Sign, exponent, digits: a whole number times a power of two, which float64 has. */
static double from_float(SafeType type, uint64_t code)
{
    const int digits = types[type].digits, bits = types[type].bits;
    const uint64_t most = ((uint64_t)1 << (bits - 1 - digits)) - 1, one = (uint64_t)1 << digits;
    const uint64_t exponent = code >> digits & most, fraction = code & (one - 1);
    const double sign = code >> (bits - 1) ? -1 : 1;
    if (exponent == most && (!types[type].finite || fraction == one - 1))
        return fraction ? (double)__builtin_nan("") : sign * (double)__builtin_inf();
    /* without a leading 1 the exponent is that of 1 */
    uint64_t power = (uint64_t)(1023 + (int)(exponent ? exponent : 1) - types[type].bias - digits) << 52;
    double unit;
    memcpy(&unit, &power, sizeof unit);
    return sign * unit * (double)(exponent ? one + fraction : fraction);
}

/* Whole numbers of up to 64 bits, low byte first. */
static double from_whole(SafeType type, const unsigned char *p, int bits)
{
    uint64_t u = 0;
    for (int i = 0; i < bits; i += 8)
        u |= (uint64_t)p[i / 8] << i;
    if (type > SAFE_I8)
        return (double)u;
    u <<= 64 - bits;
    return (double)((int64_t)u >> (64 - bits));
}

static double from_bytes(SafeType type, const unsigned char *p)
{
    double f64;
    float f32;
    uint16_t h;
    switch (type) {
    case SAFE_F64: memcpy(&f64, p, 8); return f64;
    case SAFE_F32: memcpy(&f32, p, 4); return (double)f32;
    case SAFE_F16:
    case SAFE_BF16: memcpy(&h, p, 2); return from_float(type, h);
    case SAFE_F8_E4M3:
    case SAFE_F8_E5M2: return from_float(type, *p);
    default: return from_whole(type, p, types[type].bits);
    }
}

bool safe_read(const SafeFile *f, const SafeTensor *t, int64_t at, int64_t n, double *out, char why[WHY])
{
    unsigned char block[1 << 14];
    size_t size = (size_t)types[t->type].bits / 8;
    if (t->type >= SAFE_NUMBERS)
        return wrong(f, why, t->begin, "tensor `%.80s` is of type %s, whose numbers are not read", t->name,
                     types[t->type].name);
    if (at < 0 || n < 0 || n > t->elements - at)
        return wrong(f, why, t->begin, "tensor `%.80s` has only %lld numbers", t->name, (long long)t->elements);
    for (int64_t done = 0; done < n;) {
        int64_t count = (int64_t)(sizeof block / size);
        if (count > n - done)
            count = n - done;
        if (!read_at(f, block, (uint64_t)count * size, t->begin + (uint64_t)(at + done) * size, why))
            return false;
        for (int64_t i = 0; i < count; i++)
            out[done + i] = from_bytes(t->type, block + (size_t)i * size);
        done += count;
    }
    return true;
}

bool safe_verify(const SafeFile *f, bool required, char why[WHY])
{
    const Json *stored = json_get(f->metadata, "checksum");
    if (!stored)
        return !required || wrong(f, why, 8, "the metadata has no checksum");
    if (stored->n != 16)
        return wrong(f, why, 8 + stored->offset, "the checksum is not 16 digits");
    Checksum sum;
    checksum_begin(&sum);
    size_t at = stored->offset + 1; /* the digits count as zeros */
    checksum_add(&sum, f->text, at);
    checksum_add(&sum, "0000000000000000", 16);
    if (at + 16 < f->header)
        checksum_add(&sum, f->text + at + 16, f->header - at - 16);
    unsigned char block[1 << 14];
    for (uint64_t p = 8 + f->header; p < f->size;) {
        uint64_t n = f->size - p < sizeof block ? f->size - p : sizeof block;
        if (!read_at(f, block, n, p, why))
            return false;
        checksum_add(&sum, block, n);
        p += n;
    }
    char digits[20];
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)checksum_end(&sum));
    if (memcmp(digits, stored->s, 16))
        return wrong(f, why, 8 + at, "the checksum is %s, the file's bytes give %s: it is damaged", stored->s, digits);
    return true;
}

/* ---- writing ---- */

void safe_begin_plain(SafeWriter *w, Region memory)
{
    enum { ROOM = 1 << 12 };
    *w = (SafeWriter){.memory = memory, .fd = -1, .folder = -1, .in_metadata = true};
    json_begin(&w->header, region_take(&memory, ROOM), ROOM);
    w->header.more = &w->memory;
    json_open(&w->header, NULL, '{');
    json_open(&w->header, "__metadata__", '{');
}

void safe_begin(SafeWriter *w, Region memory)
{
    safe_begin_plain(w, memory);
    json_put_string(&w->header, "checksum", "0000000000000000");
    w->checksum_at = w->header.n - 17;
}

void safe_meta(SafeWriter *w, const char *key, const char *value, size_t n)
{
    json_put_bytes(&w->header, key, value, n);
}

static void end_metadata(SafeWriter *w)
{
    if (w->in_metadata)
        json_close(&w->header, '}');
    w->in_metadata = false;
}

void safe_declare(SafeWriter *w, const char *name, SafeType type, uint8_t rank, const int64_t *d)
{
    JsonText *t = &w->header;
    uint64_t bytes = (uint64_t)types[type].bits / 8;
    end_metadata(w);
    json_open(t, name, '{');
    json_put_string(t, "dtype", types[type].name);
    json_open(t, "shape", '[');
    for (int i = 0; i < rank; i++) {
        json_put_integer(t, NULL, d[i]);
        bytes *= (uint64_t)d[i];
    }
    json_close(t, ']');
    json_open(t, "data_offsets", '[');
    json_put_integer(t, NULL, (int64_t)w->bytes);
    json_put_integer(t, NULL, (int64_t)(w->bytes + bytes));
    json_close(t, ']');
    json_close(t, '}');
    w->bytes += bytes;
}

/* FOLDER/BEFORE NAME AFTER */
static const char *path_of(const SafeWriter *w, const char *folder, const char *before, const char *name,
                           const char *after)
{
    size_t n = strlen(folder) + strlen(before) + strlen(name) + strlen(after) + 2;
    char *path = region_take(&w->memory, n);
    snprintf(path, n, "%s/%s%s%s", folder, before, name, after);
    return path;
}

static bool failed(SafeWriter *w, char why[WHY], const char *what)
{
    int e = errno;
    snprintf(why, WHY, "%.200s could not be %s: %s%s", w->path, what, strerror(e),
             e == ENOSPC || e == EDQUOT || e == EFBIG
                 ? "; what was there before is untouched, free some space and resume"
                 : "");
    safe_abandon(w);
    return false;
}

static bool write_all(SafeWriter *w, const void *p, size_t n, char why[WHY])
{
    for (const char *s = p; n;) {
        ssize_t put = write(w->fd, s, n < 1u << 30 ? n : 1u << 30);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0) {
            if (put == 0)
                errno = ENOSPC;
            return failed(w, why, "written");
        }
        s += put;
        n -= (size_t)put;
    }
    return true;
}

/* Tensors end anywhere within a page, which costs a file system as much as a page does. */
static bool put_block(SafeWriter *w, const void *p, size_t n, char why[WHY])
{
    for (const char *from = p; n;) {
        size_t take = n < w->block_size - w->in_block ? n : w->block_size - w->in_block;
        memcpy(w->block + w->in_block, from, take);
        w->in_block += take;
        from += take;
        n -= take;
        if (w->in_block == w->block_size) {
            w->in_block = 0;
            if (!write_all(w, w->block, w->block_size, why))
                return false;
        }
    }
    return true;
}

bool safe_create(SafeWriter *w, const char *folder, const char *name, char why[WHY])
{
    end_metadata(w);
    json_close(&w->header, '}');
    while (w->header.n % 8) /* so that the data is aligned */
        json_pad(&w->header);
    w->path = path_of(w, folder, "", name, "");
    const char *temporary = path_of(w, folder, ".", name, ".tmp");
    uint64_t size = 8 + w->header.n + w->bytes;
    w->block_size = size < BLOCK ? (size_t)size : BLOCK;
    w->block = region_take(&w->memory, w->block_size); /* before anything is open */
    w->folder = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (w->folder < 0)
        return failed(w, why, "created");
    const char *reason;
    w->fd = file_open(temporary, O_WRONLY | O_CREAT | O_TRUNC, &reason);
    if (w->fd < 0)
        return failed(w, why, "created");
    w->temporary = temporary;
#if defined __linux__
    (void)!fallocate(w->fd, FALLOC_FL_KEEP_SIZE, 0,
                     (off_t)size); /* one place on the disk; where there is none, a write tells */
#endif
    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)((uint64_t)w->header.n >> 8 * i);
    checksum_begin(&w->sum);
    checksum_add(&w->sum, w->header.s, w->header.n);
    return put_block(w, length, 8, why) && put_block(w, w->header.s, w->header.n, why);
}

bool safe_put(SafeWriter *w, const void *p, size_t n, char why[WHY])
{
    checksum_add(&w->sum, p, n);
    w->written += n;
    return put_block(w, p, n, why);
}

bool safe_commit(SafeWriter *w, char why[WHY])
{
    char digits[20];
    snprintf(digits, sizeof digits, "%016llx", (unsigned long long)checksum_end(&w->sum));
    if (w->written != w->bytes) {
        errno = EINVAL; /* more or fewer bytes than declared: a mistake of the caller */
        return failed(w, why, "written");
    }
    if (!write_all(w, w->block, w->in_block, why))
        return false;
    bool told = !w->checksum_at || pwrite(w->fd, digits, 16, (off_t)(8 + w->checksum_at)) == 16;
    if (!told || fsync(w->fd))
        return failed(w, why, "written");
    int fd = w->fd;
    w->fd = -1;
    if (close(fd))
        return failed(w, why, "written");
    if (rename(w->temporary, w->path))
        return failed(w, why, "put in place");
    w->temporary = NULL;
    if (fsync(w->folder) && errno != EINVAL) /* some file systems have no fsync for folders */
        return failed(w, why, "put in place");
    safe_abandon(w);
    return true;
}

void safe_abandon(SafeWriter *w)
{
    if (w->fd >= 0)
        close(w->fd);
    if (w->folder >= 0)
        close(w->folder);
    if (w->temporary)
        unlink(w->temporary);
    w->fd = w->folder = -1;
    w->temporary = NULL;
}
