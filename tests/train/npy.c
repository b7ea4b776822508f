/* npy.c - arrays as data: what their files may hold, and in which order rows come.
 *
 * In:  .npy files, right and wrong, and a model that reads `image` [B, 1, 2, 2] and `labels`
 * [B]. Out: `N passed, N failed`. The same numbers are read from every type; what is wrong is
 * said with the file; no header, however damaged, is read past its end; an epoch has every
 * example once, and what is held out is never trained on.
 * When: quick, checked.
 */
#include <math.h>
#include <stdlib.h>
#include <unistd.h>

#include "runtime/data/feed.h"
#include "runtime/data/npy.h"
#include "support/arrays.h"
#include "support.h"

static const char model_text[] =
    "edition = 1\n"
    "import \"std/transformer\"\n"
    "import \"std/connections\"\n"
    "model small {\n"
    "  context = 1, width = 4, mask = full, init = normal(std = 0.02), out_init = normal(std = "
    "0.02)\n"
    "  pre_norm = layer_norm(eps = 1e-6), connection = residual()\n"
    "  embed patches { image = 2, patch = 2, channels = 1 }\n"
    "  ffn { hidden = 4, activation = gelu }\n"
    "  head classify { pool = first, classes = 3 }\n"
    "}\n";

typedef struct Opening {
    Session s;
    vwn_context *owner;
    const Model *model;
    ArraySpec array[2];
    DataSpec spec;
    Data *data;
} Opening;

static Status open_body(void *user)
{
    Opening *o = user;
    session_open(&o->s, o->owner);
    DataOptions how = {.spec = &o->spec, .model = o->model, .context = o->model->context};
    o->data = data_open(&o->s, &how);
    split_need_window(&o->s, &o->data->train);
    return ST_OK;
}

static Status reopen(Opening *o)
{
    session_close(&o->s);
    o->data = NULL;
    return guarded(o->owner->ctx, open_body, o);
}

static const char *folder;

static Opening opening(vwn_context *v, const Model *m, double val)
{
    Opening o = {.s.owner = v, .owner = v, .model = m};
    o.array[0] = (ArraySpec){name_str(v->ctx, "image"), "image.npy", NO_SPAN};
    o.array[1] = (ArraySpec){name_str(v->ctx, "labels"), "labels.npy", NO_SPAN};
    o.spec = (DataSpec){.kind = DATA_ARRAYS, .folder = folder, .val = val, .n_array = 2};
    return o;
}

static void put(const char *name, int version, const char *type, const char *shape, const void *data, size_t n)
{
    char path[400], header[200];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    snprintf(header, sizeof header, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }", type, shape);
    npy_write(path, version, header, data, n);
}

static void put_image(int rows)
{
    unsigned char v[4096];
    char shape[40];
    for (int i = 0; i < 4 * rows; i++)
        v[i] = (unsigned char)i;
    snprintf(shape, sizeof shape, "(%d, 1, 2, 2)", rows);
    put("image.npy", 1, "|u1", shape, v, (size_t)(4 * rows));
}

static void put_labels(int rows)
{
    unsigned char v[1024];
    char shape[40];
    for (int i = 0; i < rows; i++)
        v[i] = (unsigned char)(i % 3);
    snprintf(shape, sizeof shape, "(%d,)", rows);
    put("labels.npy", 1, "|u1", shape, v, (size_t)rows);
}

/* ---- types ---- */

static void types(Tally *t, Opening *o)
{
    static const int8_t i1[] = {1, 2, 0, 127};
    static const int16_t i2[] = {1, 2, 0, 127};
    static const int32_t i4[] = {1, 2, 0, 127};
    static const int64_t i8[] = {1, 2, 0, 127};
    static const uint16_t half[] = {0x3c00, 0x4000, 0x0000, 0x57f0};
    static const float f4[] = {1, 2, 0, 127};
    static const double f8[] = {1, 2, 0, 127};
    static const struct {
        const char *type;
        const void *v;
        size_t size;
    } each[] = {{"|i1", i1, 1}, {"|u1", i1, 1}, {"<i2", i2, 2},   {"<u2", i2, 2}, {"<i4", i4, 4},
                {"<u4", i4, 4}, {"<i8", i8, 8}, {"<f2", half, 2}, {"<f4", f4, 4}, {"<f8", f8, 8}};
    char why[WHY];
    put_labels(1);
    for (size_t i = 0; i < COUNT_OF(each); i++) {
        float got[4];
        int64_t label;
        put("image.npy", i % 2 ? 2 : 1, each[i].type, "(1, 1, 2, 2)", each[i].v, 4 * each[i].size);
        if (each[i].type[1] != 'f')
            put("labels.npy", 1, each[i].type, "(1,)", (const char *)each[i].v + each[i].size, each[i].size);
        CHECKF(t, reopen(o) == ST_OK, "%s: %s", each[i].type, o->owner->ctx->message);
        const Arrays *a = o->data->arrays;
        CHECK(t, a->n == 2 && a->rows == 1);
        CHECK(t, array_reals(&a->v[0], 0, got, why) && !memcmp(got, f4, sizeof got));
        CHECK(t, array_integers(&a->v[1], 0, &label, why) && label == 2);
    }
    static const uint16_t halves[] = {0x0001, 0xc500, 0x7bff, 0x8400};
    static const float same[] = {0x1p-24f, -5, 65504, -0x1p-14f};
    float got[4];
    put("image.npy", 1, "<f2", "(1, 1, 2, 2)", halves, sizeof halves);
    CHECK(t, reopen(o) == ST_OK && array_reals(&o->data->arrays->v[0], 0, got, why));
    CHECK(t, !memcmp(got, same, sizeof got));
    static const float bad[] = {1, INFINITY, 2, 3};
    put("image.npy", 1, "<f4", "(1, 1, 2, 2)", bad, sizeof bad);
    CHECK(t, reopen(o) == ST_OK && !array_reals(&o->data->arrays->v[0], 0, got, why));
    CHECKF(t, strstr(why, "image.npy: row 0: number 1 of `image` is not finite"), "%s", why);
}

/* ---- wrong files ---- */

static void wrong_arrays(Tally *t, Opening *o)
{
    static const unsigned char v[64] = {0, 1, 2, 3};
    static const struct {
        const char *name, *type, *shape;
        size_t n;
        const char *says;
    } each[] = {
        {"image.npy", ">f4", "(2, 1, 2, 2)", 32, "high byte first: write them with astype('<f4')"},
        {"image.npy", "<c8", "(2, 1, 2, 2)", 64, "numbers of type `<c8` are not read"},
        {"image.npy", "|b1", "(2, 1, 2, 2)", 8, "numbers of type `|b1` are not read"},
        {"image.npy", "|u1", "(2, 2, 2, 1)", 8, "the array is [2, 2, 2, 1], and the input `image` is [N, 1, 2, 2]"},
        {"image.npy", "|u1", "(2, 3, 2, 2)", 24, "the array is [2, 3, 2, 2]"},
        {"image.npy", "|u1", "(2, 4)", 8, "the array is [2, 4]"},
        {"image.npy", "|u1", "()", 1, "the array is []"},
        {"image.npy", "|u1", "(0, 1, 2, 2)", 0, "the array has no numbers"},
        {"image.npy", "|u1", "(2, 1, 2, 2)", 7, "2 rows of 4 numbers of 1 bytes, and 7 bytes follow"},
        {"image.npy", "|u1", "(2, 1, 2, 2)", 9, "and 9 bytes follow"},
        {"image.npy", "|u1", "(99999999999999, 1, 2, 2)", 8, "and 8 bytes follow"},
        {"image.npy", "|u1", "(3, 1, 2, 2)", 12, "has 3"},
        {"image.npy", "|u1", "(2, 1, 2, -2)", 8, "no whole number"},
        {"image.npy", "|u1", "(2, 1, 2, 999999999999999999999)", 8, "no whole number"},
        {"image.npy", "|u1", "(1, 1, 1, 1, 1, 1, 1, 1, 1)", 1, "more than 8 axes"},
        {"image.npy", "|u1", "(2, 1, 2, 2", 8, "byte "},
        {"image.npy", "a type that is far too long", "(2, 1, 2, 2)", 8, "this string is none"},
        {"labels.npy", "<f4", "(2,)", 8, "takes integers, and these are `<f4`"},
        {"labels.npy", "|u1", "(2, 1)", 2, "the array is [2, 1], and the input `labels` is [N]"},
        {"labels.npy", "|u1", "(4,)", 4, "row 3: `labels` is 3, and the model knows 0 to 2"},
    };
    for (size_t i = 0; i < COUNT_OF(each); i++) {
        const char *says = o->owner->ctx->message;
        put_image(2);
        put_labels(2);
        put(each[i].name, 1, each[i].type, each[i].shape, v, each[i].n);
        CHECKF(t, reopen(o) == ST_ENVIRONMENT, "%s %s", each[i].type, each[i].shape);
        CHECKF(t, strstr(says, each[i].says) && strstr(says, ".npy: "), "%s", says);
    }
    char path[400];
    put_labels(2);
    snprintf(path, sizeof path, "%s/image.npy", folder);
    npy_write(path, 1, "{'descr': '|u1', 'fortran_order': True, 'shape': (2, 1, 2, 2), }", v, 8);
    CHECK(t, reopen(o) == ST_ENVIRONMENT && strstr(o->owner->ctx->message, "fortran_order"));
    write_file(path, "PNG", 3);
    CHECK(t, reopen(o) == ST_ENVIRONMENT && strstr(o->owner->ctx->message, "not a .npy file"));
    write_file(path, "", 0);
    CHECK(t, reopen(o) == ST_ENVIRONMENT && strstr(o->owner->ctx->message, "is empty"));
    unlink(path);
    CHECK(t, reopen(o) == ST_ENVIRONMENT && strstr(o->owner->ctx->message, "No such file"));
}

/* A negative label is none; a file that is cut while it is read is noticed. */
static void labels(Tally *t, Opening *o)
{
    static const int8_t v[] = {1, -1};
    int64_t got;
    char why[WHY], path[400];
    put_image(2);
    put("labels.npy", 1, "|i1", "(2,)", v, 2);
    CHECKF(t, reopen(o) == ST_OK, "%s", o->owner->ctx->message);
    const Array *x = &o->data->arrays->v[1];
    CHECK(t, array_integers(x, 1, &got, why) && got == -1);
    snprintf(path, sizeof path, "%s/labels.npy", folder);
    CHECK(t, truncate(path, 10) == 0 && !array_integers(x, 1, &got, why));
    CHECKF(t, strstr(why, "the file changed"), "%s", why);
}

/* ---- headers ---- */

/* It is read, within the bytes there are, or refused with a sentence. */
static bool reads(const unsigned char *bytes, size_t n, Npy *out)
{
    char why[NPY_WHY] = "";
    unsigned char *copy = malloc(n ? n : 1); /* so that a sanitizer sees its end */
    memcpy(copy, bytes, n);
    bool good = npy_read(copy, n, out, why);
    free(copy);
    return good ? out->header <= n && out->rank <= NPY_RANK : why[0] != 0;
}

static void headers(Tally *t)
{
    static const char text[] = "\x93NUMPY\x01\0v\0{\"shape\": (3, 40), 'descr': '<f4', 'fortran_order': False}    "
                               "                                                             \n";
    unsigned char bytes[sizeof text - 1];
    const size_t n = 10 + 0x76;
    memcpy(bytes, text, sizeof bytes);
    bytes[8] = 0x76;
    Npy x = {0};
    CHECK(t, sizeof bytes >= n && reads(bytes, n, &x) && x.rank == 2 && x.d[1] == 40);
    CHECK(t, x.header == n && !strcmp(x.type, "<f4") && !x.fortran);
    int accepted = 0;
    for (size_t cut = 0; cut < n; cut++) {
        char why[NPY_WHY];
        accepted += npy_read(bytes, cut, &x, why);
    }
    CHECK(t, accepted == 0);
    uint64_t state = 5;
    for (int round = 0; round < 200000; round++) {
        unsigned char other[sizeof bytes];
        memcpy(other, bytes, sizeof other);
        for (unsigned k = draw(&state, 4) + 1; k > 0; k--)
            other[draw(&state, 80)] = "{}()':,0919TF\xff\0 "[draw(&state, 16)];
        CHECK(t, reads(other, n, &x));
    }
}

/* ---- order ---- */

static void order(Tally *t, Opening *o)
{
    enum { ROWS = 100, KEEP = 80 };
    put_image(ROWS);
    put_labels(ROWS);
    o->spec.val = 0.2;
    CHECK(t, reopen(o) == ST_OK);
    const Split *train = &o->data->train, *val = &o->data->val;
    CHECK(t, train->order.windows == KEEP && split_fixed_windows(val) == ROWS - KEEP);
    int64_t before = -1, moved = 0, ends = 0;
    for (int64_t epoch = 0; epoch < 3; epoch++) {
        unsigned char seen[ROWS] = {0};
        for (int64_t i = 0; i < KEEP; i++) {
            int64_t row = split_window(train, 7, epoch * KEEP + i).first;
            CHECK(t, row >= 0 && row < ROWS && !seen[row]++);
            moved += row != before + 1;
            before = row;
        }
        for (int64_t i = 0; i < ROWS - KEEP; i++) {
            int64_t row = split_fixed(val, i, ROWS - KEEP).first;
            CHECK(t, row >= 0 && row < ROWS && !seen[row]++);
            ends += row >= KEEP;
        }
    }
    CHECK(t, moved > 200); /* of 240 */
    CHECKF(t, ends < 30, "%d of 60 are the last rows", (int)ends);
    CHECK(t, split_window(train, 7, 5).first != split_window(train, 7, 5 + KEEP).first ||
                 split_window(train, 7, 6).first != split_window(train, 7, 6 + KEEP).first);
    Buf now = buf_new(o->owner->ctx->program);
    data_fingerprint(o->data, &now);
    CHECK(t, strstr(now.s, "image.npy") && strstr(now.s, "labels.npy"));
    o->spec.val = 0;
}

/* In the place of examples that a part lacks stands its first one; it does not count (tests/equal/parts.c). */
static void padding(Tally *t, Opening *o)
{
    enum { B = 4 };
    put_image(6);
    put_labels(6);
    CHECK(t, reopen(o) == ST_OK);
    o->s.store = store_new(o->owner->ctx, NULL);
    StoreEntry *image, *label;
    CHECK(t, store_add(o->s.store, EXT_INPUT, name_str(o->owner->ctx, "image"), DT_REAL, 4, (int64_t[]){B, 1, 2, 2},
                       &image) == ST_OK);
    CHECK(t, store_add(o->s.store, EXT_INPUT, name_str(o->owner->ctx, "labels"), DT_INT, 1, (int64_t[]){B}, &label) ==
                 ST_OK);
    Feed f = feed_open(&o->s, &o->data->train, B, 1);
    for (int64_t first = 0; first < 6; first += B) {
        int64_t rows = feed_fixed(&f, &o->data->train, first, 6);
        CHECK(t, rows == (first ? 2 : B));
        for (int64_t i = 0; i < B; i++) {
            double pixel, got;
            CHECK(t, store_get_f64(o->s.store, image, 4 * i + 3, 1, &pixel) == ST_OK);
            CHECK(t, store_get_f64(o->s.store, label, i, 1, &got) == ST_OK);
            int64_t row = split_fixed(&o->data->train, i < rows ? first + i : first, 6).first;
            CHECK(t, pixel == (double)(4 * row + 3));
            CHECK(t, got == (double)(row % 3));
        }
    }
}

/* Columns first is refused where that is another order, at every rank; and what is in C order is read as it is. */
static void column_major(Tally *t, vwn_context *v, int rank)
{
    enum { ROWS = 2, MOST = 32 };
    static const char *const extents[] = {"", ", 2", ", 2, 1", ", 2, 1, 2", ", 2, 1, 2, 2"};
    static const char *const axes[] = {"", "2", "2, 3", "2, 3, 4", "2, 3, 4, 5"};
    static const int numbers[] = {1, 2, 2, 4, 8};
    const char *sum = rank > 1 ? arena_printf(v->ctx->program, "sum(x, over = [%s])", axes[rank - 1]) : "x";
    const char *text = arena_printf(
        v->ctx->program,
        "edition = 1\nimport \"std/transformer\"\nimport \"std/connections\"\n"
        "block embed_it()() -> [B, 1, 1] {\n  x = input(x, [B%s])\n  return reshape(%s, [B, 1, 1])\n}\n"
        "block head_it()(z: [B, N, D]) -> [B, N, D] {\n  param w : [1] = ones\n  loss.f = mean(z * w)\n  return z\n}\n"
        "model it {\n  context = 1, width = 1, mask = full, init = zeros, connection = residual()\n  embed it { }\n  "
        "head it { }\n}\n",
        extents[rank - 1], sum);
    vwn_unit *unit;
    if (vwn_check(v, &(vwn_file_options){.path = "-", .text = text, .text_length = strlen(text)}, &unit) != VWN_OK) {
        CHECKF(t, false, "rank %d: %s", rank, vwn_message(v));
        return;
    }
    Opening o = {.s.owner = v, .owner = v, .model = unit->unit->model};
    o.array[0] = (ArraySpec){name_str(v->ctx, "x"), "x.npy", NO_SPAN};
    o.spec = (DataSpec){.kind = DATA_ARRAYS, .folder = folder, .n_array = 1, .array = o.array};
    float stored[MOST], got[MOST];
    for (int i = 0; i < MOST; i++)
        stored[i] = (float)(i + 1);
    const int n = numbers[rank - 1];
    for (int columns = 0; columns < 2; columns++) {
        const char *header =
            arena_printf(v->ctx->program, "{'descr': '<f4', 'fortran_order': %s, 'shape': (%d,%s), }",
                         columns ? "True" : "False", ROWS, *extents[rank - 1] ? extents[rank - 1] + 1 : "");
        char why[WHY];
        npy_write(arena_printf(v->ctx->program, "%s/x.npy", folder), 1, header, stored,
                  sizeof *stored * (size_t)(ROWS * n));
        bool other = columns && rank > 1;
        Status st = reopen(&o);
        CHECKF(t, st == (other ? ST_ENVIRONMENT : ST_OK), "rank %d, %s: %s", rank, header, v->ctx->message);
        CHECKF(t, !other || strstr(v->ctx->message, "fortran_order"), "rank %d: %s", rank, v->ctx->message);
        for (int row = 0; st == ST_OK && row < ROWS; row++) {
            bool read = array_reals(&o.data->arrays->v[0], row, got, why);
            CHECKF(t, read && !memcmp(got, stored + row * n, sizeof *got * (size_t)n), "rank %d, row %d of %s", rank,
                   row, header);
        }
    }
    session_close(&o.s);
}

int main(void)
{
    Tally t = {0};
    vwn_context *v = vwn_open(&(vwn_options){.threads = 1, .reference = true});
    vwn_unit *unit;
    vwn_file_options file = {.path = "-", .text = model_text, .text_length = strlen(model_text)};
    if (vwn_check(v, &file, &unit) != VWN_OK)
        return 2;
    folder = scratch_folder(v->ctx);
    Opening o = opening(v, unit->unit->model, 0);
    o.spec.array = o.array;
    types(&t, &o);
    wrong_arrays(&t, &o);
    labels(&t, &o);
    headers(&t);
    order(&t, &o);
    padding(&t, &o);
    session_close(&o.s);
    for (int rank = 1; rank <= 5; rank++)
        column_major(&t, v, rank);
    scratch_remove(folder);
    vwn_close(v);
    return tally_end(&t, "npy");
}
