/* safetensors.c - files round trip; a damaged file is an error that names file and offset.
 *
 * When: quick, checked.
 */
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

#include "compiler/portable/safetensors.h"
#include "support.h"
#include "support/f8.h"

static const float numbers[6] = {1.5f, -0.0f, 3e-42f, -INFINITY, 7.0f, 0.1f};
static const double doubles[2] = {0.1, 1e300};

static bool write_sample(Ctx *ctx, const char *folder, const char *name, char why[WHY])
{
    SafeWriter w;
    int64_t d[2] = {2, 3}, two = 2, empty[2] = {0, 4};
    safe_begin(&w, arena_region(ctx->program));
    safe_meta(&w, "text", "a \"line\"\n\xc3\xa9", 11);
    safe_meta(&w, "broken", "\xff", 1);
    safe_declare(&w, "layer[1].W", SAFE_F32, 2, d);
    safe_declare(&w, "nothing", SAFE_F32, 2, empty);
    safe_declare(&w, "twice", SAFE_F64, 1, &two);
    bool ok = safe_create(&w, folder, name, why) && safe_put(&w, numbers, 4, why) &&
              safe_put(&w, numbers + 1, 20, why) && safe_put(&w, doubles, 16, why) && safe_commit(&w, why);
    safe_abandon(&w);
    return ok;
}

static bool opens(Ctx *ctx, const char *path, SafeFile *f, bool own, char why[WHY])
{
    bool ok = safe_open(arena_region(ctx->program), path, f, why) && safe_verify(f, own, why);
    if (!ok)
        safe_close(f);
    return ok;
}

static void round_trip(Tally *t, Ctx *ctx, const char *folder)
{
    char why[WHY] = "";
    double out[6];
    SafeFile f;
    const char *path = arena_printf(ctx->program, "%s/good.safetensors", folder);
    CHECKF(t, write_sample(ctx, folder, "good.safetensors", why), "%s", why);
    if (!opens(ctx, path, &f, true, why)) {
        CHECKF(t, false, "%s", why);
        return;
    }
    const SafeTensor *w = safe_find(&f, "layer[1].W"), *d = safe_find(&f, "twice");
    CHECK(t, f.n == 3 && w && d && w->rank == 2 && w->d[0] == 2 && w->d[1] == 3);
    CHECK(t, safe_read(&f, w, 0, 6, out, why));
    for (int i = 0; i < 6; i++)
        CHECKF(t, (float)out[i] == numbers[i] && !signbit(out[i]) == !signbit(numbers[i]), "number %d: %g, not %g", i,
               out[i], numbers[i]);
    CHECK(t, safe_read(&f, w, 4, 2, out, why) && (float)out[1] == numbers[5]);
    CHECK(t, !safe_read(&f, w, 4, 3, out, why) && !safe_read(&f, w, -1, 1, out, why));
    CHECK(t, safe_read(&f, d, 0, 2, out, why) && out[0] == 0.1 && out[1] == 1e300);
    CHECK(t, safe_find(&f, "nothing")->elements == 0 && !safe_find(&f, "absent"));
    CHECK(t, !strcmp(json_string(f.metadata, "text"), "a \"line\"\n\xc3\xa9"));
    CHECK(t, !strcmp(json_string(f.metadata, "broken"), "\xef\xbf\xbd"));
    safe_close(&f);
    CHECK(t, !file_exists(arena_printf(ctx->program, "%s/.good.safetensors.tmp", folder)));
}

/* Of more bytes than are written at once, put in pieces of all sizes, to end anywhere in a block or with one. */
static void large(Tally *t, Ctx *ctx, const char *folder)
{
    enum { MOST = 700000 };
    char why[WHY] = "";
    float *numbers_of = arena_alloc_array(ctx->program, MOST, sizeof *numbers_of);
    for (int i = 0; i < MOST; i++)
        numbers_of[i] = (float)i * 0.25f;
    for (int k = 0; k < 24; k++) {
        int64_t n = k < 16 ? (2 << 18) - 40 + 4 * k
                           : 100000 + 75000 * (k - 16); /* the first lie around two blocks, with their headers */
        const char *name = arena_printf(ctx->program, "large%d.safetensors", k),
                   *path = arena_printf(ctx->program, "%s/%s", folder, name);
        SafeWriter w;
        safe_begin(&w, arena_region(ctx->program));
        safe_declare(&w, "x", SAFE_F32, 1, &n);
        bool ok = safe_create(&w, folder, name, why);
        for (int64_t at = 0, piece = 1; ok && at < n; at += piece, piece = 1 + piece * 7 % 300007) {
            piece = piece < n - at ? piece : n - at;
            ok = safe_put(&w, numbers_of + at, (size_t)piece * sizeof *numbers_of, why);
        }
        ok = ok && safe_commit(&w, why);
        safe_abandon(&w);
        size_t bytes = 0;
        const char *file = ok ? read_file(ctx, path, &bytes) : NULL;
        size_t data = (size_t)n * sizeof *numbers_of;
        SafeFile f;
        CHECKF(t, file && bytes > data && !memcmp(file + bytes - data, numbers_of, data), "%lld numbers: %s",
               (long long)n, why);
        CHECKF(t, opens(ctx, path, &f, true, why), "%lld numbers: %s", (long long)n, why);
        if (file)
            safe_close(&f);
        unlink(path);
    }
}

/* Every truncation, and every byte changed. */
static void damaged(Tally *t, Ctx *ctx, const char *folder)
{
    size_t n;
    char why[WHY];
    SafeFile f;
    char *good = read_file(ctx, arena_printf(ctx->program, "%s/good.safetensors", folder), &n);
    const char *path = arena_printf(ctx->program, "%s/bad.safetensors", folder);
    for (size_t cut = 0; cut < n; cut++) {
        write_file(path, good, cut);
        why[0] = 0;
        bool ok = opens(ctx, path, &f, true, why);
        CHECKF(t, !ok && strstr(why, path) && strstr(why, "byte"), "cut at %zu: %s", cut, why);
    }
    for (size_t i = 0; i < n; i++)
        for (int bit = 0; bit < 8; bit += 1) {
            good[i] = (char)(good[i] ^ 1 << bit);
            write_file(path, good, n);
            why[0] = 0;
            bool ok = opens(ctx, path, &f, true, why);
            CHECKF(t, !ok && strstr(why, "byte"), "bit %d of byte %zu: %s", bit, i, why);
            good[i] = (char)(good[i] ^ 1 << bit);
        }
    write_file(path, good, n);
    CHECK(t, opens(ctx, path, &f, true, why));
    safe_close(&f);
    ctx_release(ctx, good);
}

static void write_raw(const char *path, uint64_t length, const char *header, size_t data)
{
    char file[4096] = {0};
    size_t n = strlen(header);
    for (int i = 0; i < 8; i++)
        file[i] = (char)(length >> 8 * i);
    memcpy(file + 8, header, n);
    write_file(path, file, 8 + n + data);
}

/* Headers that lie. */
static void hostile(Tally *t, Ctx *ctx, const char *folder)
{
    static const struct {
        const char *header;
        size_t data;
        const char *says; /* NULL: a good file */
    } cases[] = {
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, NULL},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[],\"data_offsets\":[0,4]}}", 4, NULL},
        {"{}", 0, NULL},
        {"{}", 4, "belong to no tensor"},
        {"[]", 0, "does not begin"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}",
         12, "overlaps"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}",
         8, "overlaps"},
        /* by one byte, both ways */
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[7,15]}}",
         15, "overlaps"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]},"
         "\"b\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[9,17]}}",
         17, "no tensor"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[1,9]}}", 9, "no tensor"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,8]}}", 9, "no tensor"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[4,12]}}", 12, "no tensor"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[-2],\"data_offsets\":[0,8]}}", 8, "not a count"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2.0],\"data_offsets\":[0,8]}}", 8, "not a count"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[\"2\"],\"data_offsets\":[0,8]}}", 8, "not a count"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":2,\"data_offsets\":[0,8]}}", 8, "no shape"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[4294967296,4294967296],\"data_offsets\":[0,0]}}", 0, "too large"},
        {"{\"a\":{\"dtype\":\"F64\",\"shape\":[2305843009213693952],\"data_offsets\":[0,0]}}", 0, "numbers of"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[1,1,1,1,1,1,1,1,1],\"data_offsets\":[0,4]}}", 4, NULL},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,4]}}", 4, "numbers of"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[8,0]}}", 8, "outside"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[-8,0]}}", 8, "outside"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,1e300]}}", 8, "outside"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0,9223372036854775807]}}", 8, "outside"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[2],\"data_offsets\":[0]}}", 8, "two data_offsets"},
        {"{\"a\":{\"dtype\":\"F99\",\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "unknown type"},
        {"{\"a\":{\"shape\":[2],\"data_offsets\":[0,8]}}", 8, "unknown type"},
        {"{\"a\":7}", 0, "description"},
        {"{\"__metadata__\":{\"x\":1}}", 0, "not a string"},
        {"{\"__metadata__\":[]}", 0, "not an object"},
        {"{\"__metadata__\":null}", 0, NULL},
        {"{\"__metadata__\":{\"x\":null}}", 0, "not a string"},
        {"{\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},"
         "\"a\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]}}",
         0, "twice"},
        {"{\"a\":", 0, "byte"},
    };
    char why[WHY];
    SafeFile f;
    const char *path = arena_printf(ctx->program, "%s/raw.safetensors", folder);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        write_raw(path, strlen(cases[i].header), cases[i].header, cases[i].data);
        why[0] = 0;
        bool ok = opens(ctx, path, &f, false, why);
        if (ok)
            safe_close(&f);
        CHECKF(t, cases[i].says ? !ok && strstr(why, cases[i].says) && strstr(why, path) : ok, "%s: %s",
               cases[i].header, why);
    }
    const char *meta = "{\"__metadata__\":{\"x\":\"ab\",\"y\":\"a\\u0000b\"}}", *text;
    write_raw(path, strlen(meta), meta, 0);
    bool readable = opens(ctx, path, &f, false, why);
    CHECKF(t, readable, "%s", why);
    if (readable) {
        CHECK(t, safe_text(&f, "x", &text, why) && text && !strcmp(text, "ab"));
        CHECK(t, safe_text(&f, "z", &text, why) && !text);
        CHECK(t, !safe_text(&f, "y", &text, why) && strstr(why, "byte 38: the metadata `y` holds a NUL"));
        safe_close(&f);
    }
    static const uint64_t lengths[] = {3, 1u << 30, UINT64_MAX, UINT64_MAX - 7, (uint64_t)1 << 63};
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        write_raw(path, lengths[i], "{}", 0);
        CHECKF(t, !opens(ctx, path, &f, false, why) && strstr(why, "byte 0: a header of"), "%llu: %s",
               (unsigned long long)lengths[i], why);
    }
    CHECK(t, !opens(ctx, folder, &f, false, why) && strstr(why, "not a file"));
    CHECK(t, !opens(ctx, "absent.safetensors", &f, false, why) && strstr(why, "No such file"));
}

/* Every type of the format, four numbers of each in so many bytes as the Python package safetensors 0.8.0 takes, and no others;
 * whole numbers are read, and the numbers of no type that is not known here. */
static void types(Tally *t, Ctx *ctx, const char *folder)
{
    static const struct {
        const char *name;
        size_t bytes;
        double first; /* of bytes 0x81, 0x82, ...; NAN: not read */
    } all[] = {{"BOOL", 4, 0x81},
               {"U8", 4, 0x81},
               {"I8", 4, -0x7f},
               {"I16", 8, -0x7d7f},
               {"U16", 8, 0x8281},
               {"I32", 16, -0x7b7c7d7f},
               {"U32", 16, 0x84838281},
               {"I64", 32, -0x1.dde1e5e9edf1fp62},
               {"U64", 32, 0x1.110f0d0b0907p63},
               {"F4", 2, NAN},
               {"F6_E2M3", 3, NAN},
               {"F6_E3M2", 3, NAN},
               {"F8_E5M2", 4, -0x1p-16},
               {"F8_E4M3", 4, -0x1p-9},
               {"F8_E8M0", 4, NAN},
               {"F8_E4M3FNUZ", 4, NAN},
               {"F8_E5M2FNUZ", 4, NAN},
               {"F16", 8, -0x1.408p-15},
               {"BF16", 8, -0x1.02p-122},
               {"F32", 16, 0},
               {"C64", 32, NAN},
               {"F64", 32, 0}};
    char why[WHY];
    SafeFile f;
    const char *path = arena_printf(ctx->program, "%s/raw.safetensors", folder);
    for (size_t i = 0; i < COUNT_OF(all); i++)
        for (size_t bytes = 0; bytes <= 40; bytes++) {
            char file[200], *header = file + 8;
            int n = snprintf(header, 150, "{\"a\":{\"dtype\":\"%s\",\"shape\":[2,2],\"data_offsets\":[0,%zu]}}",
                             all[i].name, bytes);
            for (int k = 0; k < 8; k++)
                file[k] = (char)((uint64_t)n >> 8 * k);
            for (size_t k = 0; k < bytes; k++)
                header[n + (int)k] = (char)(0x81 + k);
            write_file(path, file, 8 + (size_t)n + bytes);
            bool ok = opens(ctx, path, &f, false, why);
            CHECKF(t, ok == (bytes == all[i].bytes), "four numbers of %s in %zu bytes: %s", all[i].name, bytes,
                   ok ? "taken" : why);
            if (!ok)
                continue;
            double x[4] = {0};
            bool read = safe_read(&f, &f.tensor[0], 0, 4, x, why);
            CHECKF(t, !strcmp(safe_type_name(f.tensor[0].type), all[i].name), "%s is %s", all[i].name,
                   safe_type_name(f.tensor[0].type));
            CHECKF(t, read == !isnan(all[i].first), "%s is%s read", all[i].name, read ? "" : " not");
            if (read && all[i].first != 0)
                CHECKF(t, x[0] == all[i].first, "%s: %.17g, not %.17g", all[i].name, x[0], all[i].first);
            safe_close(&f);
        }
}

/* Each of the 256 numbers of 8 bits. */
static void bytes_of(Tally *t, Ctx *ctx, const char *folder, const char *type, double (*of)(uint16_t code))
{
    char why[WHY] = "", file[400], *header = file + 8;
    double x[256];
    SafeFile f;
    int n = snprintf(header, 130, "{\"a\":{\"dtype\":\"%s\",\"shape\":[256],\"data_offsets\":[0,256]}}", type),
        wrong = 0;
    for (int k = 0; k < 8; k++)
        file[k] = (char)((uint64_t)n >> 8 * k);
    for (int k = 0; k < 256; k++)
        header[n + k] = (char)k;
    const char *path = arena_printf(ctx->program, "%s/raw.safetensors", folder);
    write_file(path, file, 8 + (size_t)n + 256);
    bool ok = opens(ctx, path, &f, false, why) && safe_read(&f, &f.tensor[0], 0, 256, x, why);
    for (int k = 0; k < 256 && ok; k++)
        wrong += isnan(of((uint16_t)k)) ? !isnan(x[k])
                                        : !(x[k] == of((uint16_t)k) && !signbit(x[k]) == !signbit(of((uint16_t)k)));
    CHECKF(t, ok && !wrong, "%s: %d of 256 numbers are wrong %s", type, wrong, why);
    if (ok)
        safe_close(&f);
}

/* No room: the sentence says so, the old file is whole, nothing half-written stays. */
static void no_room(Tally *t, Ctx *ctx, const char *folder)
{
    char why[WHY] = "";
    SafeFile f;
    struct rlimit was, small;
    getrlimit(RLIMIT_FSIZE, &was);
    small = was;
    for (rlim_t limit = 0; limit < 500; limit += 37) {
        small.rlim_cur = limit;
        setrlimit(RLIMIT_FSIZE, &small);
        bool ok = write_sample(ctx, folder, "good.safetensors", why);
        setrlimit(RLIMIT_FSIZE, &was);
        if (limit < 300)
            CHECKF(t, !ok && strstr(why, "could not be written") && strstr(why, "untouched"), "limit %d: %s",
                   (int)limit, why);
        CHECK(t, !file_exists(arena_printf(ctx->program, "%s/.good.safetensors.tmp", folder)));
        CHECK(t, opens(ctx, arena_printf(ctx->program, "%s/good.safetensors", folder), &f, true, why));
        safe_close(&f);
    }
    CHECK(t, !write_sample(ctx, "absent_folder", "x", why) && strstr(why, "No such file"));
}

/* Any way of cutting a stream gives the same checksum. */
static void checksums(Tally *t)
{
    unsigned char bytes[200];
    for (int i = 0; i < 200; i++)
        bytes[i] = (unsigned char)(i * 37);
    for (size_t n = 0; n < 200; n += 13) {
        Checksum whole, parts;
        checksum_begin(&whole);
        checksum_add(&whole, bytes, n);
        for (size_t piece = 1; piece < 70; piece += 3) {
            checksum_begin(&parts);
            for (size_t at = 0; at < n; at += piece)
                checksum_add(&parts, bytes + at, n - at < piece ? n - at : piece);
            CHECK(t, checksum_end(&parts) == checksum_end(&whole));
        }
    }
}

int main(void)
{
    Tally t = {0};
    Ctx *ctx = ctx_new(NULL);
    const char *folder = scratch_folder(ctx);
    signal(SIGXFSZ, SIG_IGN);
    checksums(&t);
    round_trip(&t, ctx, folder);
    large(&t, ctx, folder);
    damaged(&t, ctx, folder);
    hostile(&t, ctx, folder);
    types(&t, ctx, folder);
    bytes_of(&t, ctx, folder, "F8_E4M3", of_e4m3);
    bytes_of(&t, ctx, folder, "F8_E5M2", of_e5m2);
    no_room(&t, ctx, folder);
    scratch_remove(folder);
    ctx_free(ctx);
    return tally_end(&t, "safetensors");
}
