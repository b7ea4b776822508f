/* arrays.c - see arrays.h. */
#include "arrays.h"

#include <math.h>
#include <stdio.h>

#include "npy.h"
#include "compiler/portable/order.h"

/* ---- what numbers are stored as ---- */

typedef struct Stored {
    const char *name; /* as a header has it */
    size_t size;
    bool real;
    int64_t (*integer)(const unsigned char *p);
    float (*number)(const unsigned char *p);
} Stored;

/* IEEE half precision. */
static float half(const unsigned char *p)
{
    unsigned bits = p[0] | (unsigned)p[1] << 8, exponent = bits >> 10 & 31, low = bits & 1023;
    float x = exponent == 31  ? (low ? NAN : INFINITY)
              : exponent == 0 ? ldexpf((float)low, -24)
                              : ldexpf((float)(low | 1024), (int)exponent - 25);
    return bits >> 15 ? -x : x;
}

#define INTEGER(id, type)                                                                                              \
    static int64_t integer_##id(const unsigned char *p)                                                                \
    {                                                                                                                  \
        type x;                                                                                                        \
        memcpy(&x, p, sizeof x);                                                                                       \
        return (int64_t)x;                                                                                             \
    }                                                                                                                  \
    REAL(id, type)
#define REAL(id, type)                                                                                                 \
    static float real_##id(const unsigned char *p)                                                                     \
    {                                                                                                                  \
        type x;                                                                                                        \
        memcpy(&x, p, sizeof x);                                                                                       \
        return (float)x;                                                                                               \
    }
INTEGER(u1, uint8_t)
INTEGER(i1, int8_t)
INTEGER(u2, uint16_t)
INTEGER(i2, int16_t)
INTEGER(u4, uint32_t)
INTEGER(i4, int32_t)
INTEGER(i8, int64_t)
REAL(f4, float)
REAL(f8, double)

static const Stored stored[] = {
    {"|u1", 1, false, integer_u1, real_u1}, {"|i1", 1, false, integer_i1, real_i1},
    {"<u2", 2, false, integer_u2, real_u2}, {"<i2", 2, false, integer_i2, real_i2},
    {"<u4", 4, false, integer_u4, real_u4}, {"<i4", 4, false, integer_i4, real_i4},
    {"<i8", 8, false, integer_i8, real_i8}, {"<f2", 2, true, NULL, half},
    {"<f4", 4, true, NULL, real_f4},        {"<f8", 8, true, NULL, real_f8},
};

/* ---- opening ---- */

static const Stored *stored_as(Session *s, const Array *x, const char *type)
{
    const Stored *as = NULL;
    for (size_t i = 0; i < COUNT_OF(stored); i++)
        if (!strcmp(type, stored[i].name))
            as = &stored[i];
    if (type[0] == '>')
        mapped_wrong(s, x->file.path,
                     "its numbers, `%s`, have their high byte first: write them with "
                     "astype('<%s')",
                     type, type + 1);
    if (!as)
        mapped_wrong(s, x->file.path,
                     "numbers of type `%s` are not read: write them as u1, i1, u2, i2, u4, i4, i8, "
                     "f2, f4 or f8",
                     type);
    if (as->real && x->dtype == DT_INT)
        mapped_wrong(s, x->file.path, "the input `%s` takes integers, and these are `%s`", x->input, type);
    return as;
}

static const char *shape_text(Arena *a, const int64_t *d, int n, const char *first)
{
    Buf b = buf_new(a);
    buf_printf(&b, "[%s", first);
    for (int i = 0; i < n; i++)
        buf_printf(&b, ", %lld", (long long)d[i]);
    buf_putc(&b, ']');
    return b.s;
}

/* What a row of the input is; its extents go to d[]. */
static int row_shape(const Ext *e, int64_t context, int64_t d[MAX_RANK], int64_t *numbers)
{
    *numbers = 1;
    for (int i = 1; i < e->shape.rank; i++) {
        d[i - 1] = dim_at(e->shape.d[i], 1, context);
        *numbers *= d[i - 1];
    }
    return e->shape.rank - 1;
}

static int64_t check_shape(Session *s, Array *x, const Npy *npy, const Ext *e, int64_t context)
{
    int64_t want[MAX_RANK], bytes;
    int n = row_shape(e, context, want, &x->numbers);
    bool same = npy->rank == n + 1;
    for (int i = 0; same && i < n; i++)
        same = npy->d[i + 1] == want[i];
    if (!same) {
        const char *first = npy->rank ? arena_printf(s->arena, "%lld", (long long)npy->d[0]) : "";
        mapped_wrong(s, x->file.path, "the array is %s, and the input `%s` is %s with one row for each example",
                     shape_text(s->arena, npy->d + 1, npy->rank ? npy->rank - 1 : 0, first), x->input,
                     shape_text(s->arena, want, n, "N"));
    }
    if (npy->fortran && npy->rank > 1)
        mapped_wrong(s, x->file.path,
                     "its first axis is contiguous (fortran_order): write it with "
                     "ascontiguousarray");
    if (npy->d[0] == 0 || x->numbers == 0)
        mapped_wrong(s, x->file.path, "the array has no numbers");
    size_t have = x->file.bytes - npy->header;
    if (!mul_i64(npy->d[0], x->numbers, &bytes) || !mul_i64(bytes, (int64_t)x->as->size, &bytes) ||
        (uint64_t)bytes != have)
        mapped_wrong(s, x->file.path,
                     "byte %zu: its header says %lld rows of %lld numbers of %zu bytes, and %zu "
                     "bytes follow",
                     npy->header, (long long)npy->d[0], (long long)x->numbers, x->as->size, have);
    return npy->d[0];
}

static void check_range(Session *s, const Array *x, int64_t rows, InputRange r)
{
    const unsigned char *p = x->file.map + x->header;
    for (int64_t i = 0; x->dtype == DT_INT && r.below && i < rows * x->numbers; i++) {
        int64_t v = x->as->integer(p + (size_t)i * x->as->size);
        if (v >= r.below || (v < 0 && !r.spared))
            mapped_wrong(s, x->file.path, "row %lld: `%s` is %lld, and the model knows 0 to %lld%s",
                         (long long)(i / x->numbers), x->input, (long long)v, (long long)r.below - 1,
                         r.spared ? "; negative ones are left out" : "");
    }
}

static int64_t open_array(Session *s, Array *x, const char *path, const Model *m, const Ext *e, int64_t context)
{
    Npy npy = {0};
    char why[NPY_WHY];
    InputRange range = model_input_range(m, e->name);
    x->input = e->name;
    x->dtype = e->dtype;
    mapped_open(s, &x->file, path);
    if (!npy_read(x->file.map, x->file.bytes, &npy, why))
        mapped_wrong(s, path, "%s", why);
    x->as = stored_as(s, x, npy.type);
    x->header = npy.header;
    int64_t rows = check_shape(s, x, &npy, e, context);
    check_range(s, x, rows, range);
    return rows;
}

static const char *path_of(const DataSpec *spec, Name input)
{
    for (size_t i = 0; i < spec->n_array; i++)
        if (spec->array[i].input == input)
            return spec->array[i].path;
    return NULL;
}

Arrays *arrays_open(Session *s, const DataSpec *spec, const Model *m, int64_t context)
{
    const Graph *g = m->graph;
    Arrays *a = NEW(s->arena, Arrays);
    a->v = NEW_ARRAY(s->arena, Array, g->ext.n + 1);
    for (size_t i = 0; i < g->ext.n; i++) {
        const Ext *e = &g->ext.v[i];
        const char *path = e->kind == EXT_INPUT ? path_of(spec, e->name) : NULL;
        if (!path)
            continue;
        Array *x = &a->v[a->n++];
        int64_t rows = open_array(s, x, mapped_path(s->arena, spec->folder, path), m, e, context);
        if (a->n > 1 && rows != a->rows)
            mapped_wrong(s, x->file.path, "the array has %lld rows, and %.300s has %lld", (long long)rows,
                         a->v[0].file.path, (long long)a->rows);
        a->rows = rows;
    }
    return a;
}

Arrays *arrays_drawn(Session *s, const DataSpec *spec, const Model *m, int64_t context)
{
    enum { ROWS = 64 };
    const Graph *g = m->graph;
    Arrays *a = NEW(s->arena, Arrays);
    a->v = NEW_ARRAY(s->arena, Array, g->ext.n + 1);
    a->rows = ROWS;
    for (size_t i = 0; i < g->ext.n; i++) {
        const Ext *e = &g->ext.v[i];
        int64_t d[MAX_RANK];
        if (e->kind != EXT_INPUT || !path_of(spec, e->name))
            continue;
        Array *x = &a->v[a->n++];
        x->input = e->name;
        x->dtype = e->dtype;
        x->file.path = "drawn numbers";
        row_shape(e, context, d, &x->numbers);
        int64_t below = model_input_range(m, e->name).below;
        float *v = NEW_ARRAY(s->arena, float, (size_t)(ROWS * x->numbers));
        for (int64_t k = 0; k < ROWS * x->numbers; k++) {
            uint64_t bits = mix64((uint64_t)k);
            v[k] = e->dtype == DT_REAL ? (float)(bits >> 40) * 0x1p-23f - 1
                                       : (float)(bits % (uint64_t)(below ? below : 2));
        }
        x->drawn = v;
    }
    return a;
}

/* ---- reading ---- */

bool array_integers(const Array *x, int64_t row, int64_t *out, char why[WHY])
{
    if (!mapped_unchanged(&x->file, why))
        return false;
    int64_t at = row * x->numbers;
    for (int64_t i = 0; i < x->numbers; i++)
        out[i] = x->drawn ? (int64_t)x->drawn[at + i]
                          : x->as->integer(x->file.map + x->header + (size_t)(at + i) * x->as->size);
    return true;
}

bool array_reals(const Array *x, int64_t row, float *out, char why[WHY])
{
    if (!mapped_unchanged(&x->file, why))
        return false;
    int64_t at = row * x->numbers;
    for (int64_t i = 0; i < x->numbers; i++) {
        out[i] = x->drawn ? x->drawn[at + i] : x->as->number(x->file.map + x->header + (size_t)(at + i) * x->as->size);
        if (isfinite(out[i]))
            continue;
        snprintf(why, WHY, "%.300s: row %lld: number %lld of `%s` is not finite", x->file.path, (long long)row,
                 (long long)i, x->input);
        return false;
    }
    return true;
}
