/* blas.c - libcublasLt: products of matrices, checked when they are called and queued on a stream.
 *
 * The one idea: several ways to compute a product are offered, which differ in the order of their sums, so a program
 * that does not keep the one it has chosen gets other bits. What would sum in 16 bits is refused.
 */
#define _GNU_SOURCE
#include "fake.h"
#include "product.h"
#include "queue.h"

#include <stdlib.h>
#include <string.h>

enum { BLAS = OF_BLAS, BATCH_MOST = 65535, ALIGNMENTS = 4 };
static const uint64_t algo_mark = 0xfa4e0a190;

typedef enum Kind { DESCRIPTION, LAYOUT, PREFERENCE } Kind;
typedef struct Layout {
    int32_t type, order, batch;
    uint64_t rows, columns;
    int64_t ld, stride;
} Layout;
typedef struct Object {
    Kind kind;
    int32_t compute, scale, pointer_mode, transposed[3];
    uint32_t epilogue;
    Layout layout;
    uint32_t search, reduction, alignment[ALIGNMENTS];
    uint64_t workspace, impl;
    float waves;
} Object;

/* What a way to compute is, in FakeAlgo.data. */
typedef struct Algo {
    uint64_t mark;
    int32_t id, tile, split, stages;
    uint32_t reduction, swizzle, custom;
    uint8_t align[ALIGNMENTS]; /* of A, B, C, D: bytes, at most 16 */
    uint32_t types, compute;   /* what it was made for */
    uint16_t inner, cluster;
    uint32_t unused;
} Algo;
_Static_assert(sizeof(Algo) <= sizeof(FakeAlgo), "an algorithm fits");

/* ---- the library ---- */

/* It comes with the compiler. */
FAKE_API size_t cublasLtGetVersion(void)
{
    return (size_t)(fake_settings()->compiler / 1000 * 10000 + fake_settings()->compiler % 1000 * 10);
}

FAKE_API size_t cublasLtGetCudartVersion(void) { return (size_t)fake_settings()->compiler; }

FAKE_API const char *cublasLtGetStatusString(int status)
{
#define NAME(ours, value, theirs) {#ours, value, #theirs},
    static const struct {
        const char *ours;
        int value;
        const char *theirs;
    } known[] = {FAKE_BLAS_NUMBERS(NAME)};
#undef NAME
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (known[i].value == status && !strncmp(known[i].ours, "B_", 2))
            return known[i].theirs;
    return "CUBLAS_STATUS unknown";
}

FAKE_API const char *cublasLtGetStatusName(int status) { return cublasLtGetStatusString(status); }

static int create(const void **out)
{
    static int library;
    if (!out)
        return B_VALUE;
    *out = fake_handle(KIND_BLAS, &library);
    fake_made(KIND_BLAS);
    return B_OK;
}

FAKE_API int cublasLtCreate(const void **out)
{
    FAKE_CALL("cublasLtCreate", BLAS | NEEDS_INIT | NEEDS_CONTEXT, B_ALLOC, create(out));
}

static int give_back(FakeKind kind, const void *handle, int error)
{
    void *object = fake_object(kind, handle);
    if (!object)
        return error ? error : B_VALUE;
    if (kind == KIND_DESCRIPTOR)
        free(object);
    fake_forget(kind, handle);
    fake_given_back(kind);
    return error;
}

FAKE_API int cublasLtDestroy(const void *handle)
{
    int error = fake_enter("cublasLtDestroy", BLAS, B_NOT_INITIALIZED);
    return fake_leave(give_back(KIND_BLAS, handle, error));
}

/* ---- descriptors ---- */

static int new_object(const void **out, Object o)
{
    if (!out)
        return B_VALUE;
    Object *kept = malloc(sizeof *kept);
    *kept = o;
    *out = fake_handle(KIND_DESCRIPTOR, kept);
    fake_made(KIND_DESCRIPTOR);
    return B_OK;
}

static Object *object_of(const void *handle, Kind kind)
{
    Object *o = fake_object(KIND_DESCRIPTOR, handle);
    return o && o->kind == kind ? o : NULL;
}

FAKE_API int cublasLtMatmulDescCreate(const void **out, int compute, int scale)
{
    FAKE_CALL(
        "cublasLtMatmulDescCreate", BLAS, B_ALLOC,
        new_object(out,
                   (Object){.kind = DESCRIPTION, .compute = compute, .scale = scale, .epilogue = EPILOGUE_DEFAULT}));
}

FAKE_API int cublasLtMatrixLayoutCreate(const void **out, int type, uint64_t rows, uint64_t columns, int64_t ld)
{
    FAKE_CALL(
        "cublasLtMatrixLayoutCreate", BLAS, B_ALLOC,
        new_object(
            out,
            (Object){
                .kind = LAYOUT,
                .layout = {.type = type, .order = ORDER_COL, .batch = 1, .rows = rows, .columns = columns, .ld = ld}}));
}

FAKE_API int cublasLtMatmulPreferenceCreate(const void **out)
{
    FAKE_CALL("cublasLtMatmulPreferenceCreate", BLAS, B_ALLOC,
              new_object(out, (Object){.kind = PREFERENCE,
                                       .reduction = REDUCE_ALL,
                                       .alignment = {256, 256, 256, 256},
                                       .impl = ~(uint64_t)0}));
}

FAKE_API int cublasLtMatmulDescDestroy(const void *handle)
{
    int error = fake_enter("cublasLtMatmulDescDestroy", BLAS, B_VALUE);
    return fake_leave(give_back(KIND_DESCRIPTOR, handle, error));
}

FAKE_API int cublasLtMatrixLayoutDestroy(const void *handle)
{
    int error = fake_enter("cublasLtMatrixLayoutDestroy", BLAS, B_VALUE);
    return fake_leave(give_back(KIND_DESCRIPTOR, handle, error));
}

FAKE_API int cublasLtMatmulPreferenceDestroy(const void *handle)
{
    int error = fake_enter("cublasLtMatmulPreferenceDestroy", BLAS, B_VALUE);
    return fake_leave(give_back(KIND_DESCRIPTOR, handle, error));
}

typedef struct Field {
    Kind kind;
    int attribute;
    size_t at, size;
} Field;

#define FIELD(kind, attribute, member)                                                                                 \
    {                                                                                                                  \
        kind, attribute, offsetof(Object, member), sizeof(((Object *)0)->member)                                       \
    }
static const Field fields[] = {
    FIELD(DESCRIPTION, DESC_COMPUTE, compute),
    FIELD(DESCRIPTION, DESC_SCALE, scale),
    FIELD(DESCRIPTION, DESC_POINTER_MODE, pointer_mode),
    FIELD(DESCRIPTION, DESC_TRANSA, transposed[0]),
    FIELD(DESCRIPTION, DESC_TRANSB, transposed[1]),
    FIELD(DESCRIPTION, DESC_TRANSC, transposed[2]),
    FIELD(DESCRIPTION, DESC_EPILOGUE, epilogue),
    FIELD(LAYOUT, LAYOUT_TYPE, layout.type),
    FIELD(LAYOUT, LAYOUT_ORDER, layout.order),
    FIELD(LAYOUT, LAYOUT_ROWS, layout.rows),
    FIELD(LAYOUT, LAYOUT_COLS, layout.columns),
    FIELD(LAYOUT, LAYOUT_LD, layout.ld),
    FIELD(LAYOUT, LAYOUT_BATCH, layout.batch),
    FIELD(LAYOUT, LAYOUT_STRIDE, layout.stride),
    FIELD(PREFERENCE, PREF_SEARCH, search),
    FIELD(PREFERENCE, PREF_WORKSPACE, workspace),
    FIELD(PREFERENCE, PREF_REDUCTION, reduction),
    FIELD(PREFERENCE, PREF_ALIGN_A, alignment[0]),
    FIELD(PREFERENCE, PREF_ALIGN_B, alignment[1]),
    FIELD(PREFERENCE, PREF_ALIGN_C, alignment[2]),
    FIELD(PREFERENCE, PREF_ALIGN_D, alignment[3]),
    FIELD(PREFERENCE, PREF_WAVES, waves),
    FIELD(PREFERENCE, PREF_IMPL, impl),
};

static int set_attribute(const void *handle, Kind kind, int which, const void *value, size_t size)
{
    Object *o = object_of(handle, kind);
    if (!o || !value)
        return B_VALUE;
    for (size_t i = 0; i < sizeof fields / sizeof *fields; i++)
        if (fields[i].kind == kind && fields[i].attribute == which) {
            if (size != fields[i].size)
                return fake_refuse(B_VALUE, "attribute %d has %zu bytes", which, fields[i].size);
            memcpy((char *)o + fields[i].at, value, size);
            return B_OK;
        }
    return fake_refuse(B_VALUE, "attribute %d is not known to the fake", which);
}

FAKE_API int cublasLtMatmulDescSetAttribute(const void *handle, int which, const void *value, size_t size)
{
    FAKE_CALL("cublasLtMatmulDescSetAttribute", BLAS, B_VALUE, set_attribute(handle, DESCRIPTION, which, value, size));
}

FAKE_API int cublasLtMatrixLayoutSetAttribute(const void *handle, int which, const void *value, size_t size)
{
    FAKE_CALL("cublasLtMatrixLayoutSetAttribute", BLAS, B_VALUE, set_attribute(handle, LAYOUT, which, value, size));
}

FAKE_API int cublasLtMatmulPreferenceSetAttribute(const void *handle, int which, const void *value, size_t size)
{
    FAKE_CALL("cublasLtMatmulPreferenceSetAttribute", BLAS, B_VALUE,
              set_attribute(handle, PREFERENCE, which, value, size));
}

/* ---- what is asked for ---- */

typedef struct Asked {
    const Object *how;
    const Layout *matrix[4]; /* A, B, C, D */
    int64_t m, n, k;
} Asked;

static size_t size_of(int type) { return type == R_32F ? 4 : type == R_16F || type == R_16BF ? 2 : 0; }

static int check_layout(const Layout *l)
{
    if (!l || !size_of(l->type))
        return fake_refuse(l ? B_NOT_SUPPORTED : B_VALUE, "no layout, or a type that the fake does not know");
    if (l->order != ORDER_COL && l->order != ORDER_ROW)
        return fake_refuse(B_NOT_SUPPORTED, "an order that the fake does not know");
    uint64_t least = l->order == ORDER_COL ? l->rows : l->columns;
    if (!l->rows || !l->columns || l->ld < 0 || (uint64_t)l->ld < least)
        return fake_refuse(B_VALUE, "a matrix of nothing, or its leading dimension is too small");
    if (l->batch < 1 || l->batch > BATCH_MOST)
        return fake_refuse(B_NOT_SUPPORTED, "a batch of %d", l->batch);
    return B_OK;
}

static int check_types(const Asked *q)
{
    int a = q->matrix[0]->type, d = q->matrix[3]->type, compute = q->how->compute;
    if (compute != COMPUTE_32F && compute != COMPUTE_32F_PEDANTIC && compute != COMPUTE_32F_FAST_TF32) {
        fake_mistake("a product of compute type %d, which is not that of float32", compute);
        return fake_refuse(B_NOT_SUPPORTED, "compute type %d", compute);
    }
    if (q->how->scale != R_32F)
        return fake_refuse(B_NOT_SUPPORTED, "alpha and beta are no float32");
    if (q->matrix[1]->type != a || q->matrix[2]->type != d || (d != a && d != R_32F))
        return fake_refuse(B_NOT_SUPPORTED, "types that do not go together");
    return B_OK;
}

static int check_sizes(Asked *q)
{
    const int32_t *t = q->how->transposed;
    const Layout *a = q->matrix[0], *b = q->matrix[1], *c = q->matrix[2], *d = q->matrix[3];
    q->m = (int64_t)(t[0] ? a->columns : a->rows);
    q->k = (int64_t)(t[0] ? a->rows : a->columns);
    q->n = (int64_t)(t[1] ? b->rows : b->columns);
    if ((int64_t)(t[1] ? b->columns : b->rows) != q->k || (int64_t)d->rows != q->m || (int64_t)d->columns != q->n ||
        c->rows != d->rows || c->columns != d->columns)
        return fake_refuse(B_VALUE, "sizes that do not go together");
    if (a->batch != d->batch || b->batch != d->batch || c->batch != d->batch)
        return fake_refuse(B_VALUE, "batches that do not go together");
    int64_t whole = d->ld * (int64_t)(d->order == ORDER_COL ? d->columns : d->rows);
    if (d->batch > 1 && d->stride < whole - d->ld)
        fake_note("results of a batch between those of another");
    if (d->batch > 1 && d->stride == 0)
        return fake_refuse(B_VALUE, "all results of a batch at one place");
    return B_OK;
}

static int read_asked(Asked *q, const void *how, const void *const layout[4])
{
    *q = (Asked){.how = object_of(how, DESCRIPTION)};
    if (!q->how)
        return fake_refuse(B_VALUE, "no description of a product");
    if (q->how->pointer_mode || q->how->epilogue != EPILOGUE_DEFAULT || q->how->transposed[2] ||
        (q->how->transposed[0] | q->how->transposed[1]) & ~1)
        return fake_refuse(B_NOT_SUPPORTED, "what the fake does not know");
    for (int i = 0; i < 4; i++) {
        const Object *o = object_of(layout[i], LAYOUT);
        int error = check_layout(o ? &o->layout : NULL);
        if (error)
            return error;
        q->matrix[i] = &o->layout;
    }
    int error = check_types(q);
    return error ? error : check_sizes(q);
}

/* ---- ways to compute ---- */

static uint32_t types_of(const int type[4])
{
    return (uint32_t)(type[0] | type[1] << 8 | type[2] << 16 | type[3] << 24);
}

static Algo algo_for(int compute, const int type[4], int id)
{
    return (Algo){.mark = algo_mark,
                  .id = id,
                  .tile = 20,
                  .split = id == SUM_HALVES ? 2 : 1,
                  .stages = 1,
                  .reduction = id == SUM_HALVES ? REDUCE_COMPUTE : REDUCE_NONE,
                  .types = types_of(type),
                  .compute = (uint32_t)compute,
                  .align = {1, 1, 1, 1}};
}

static void types_asked(const Asked *q, int type[4])
{
    for (int i = 0; i < 4; i++)
        type[i] = q->matrix[i]->type;
}

/* Bytes of workspace: parts of sums. */
static size_t workspace_of(const Asked *q, const Algo *a)
{
    return a->id == SUM_HALVES ? (size_t)(2 * q->m * q->n * q->matrix[3]->batch) * sizeof(float) : 0;
}

static int check_algo(const Asked *q, const Algo *a)
{
    int type[4];
    types_asked(q, type);
    if (a->mark != algo_mark || a->id < 0 || a->id >= SUMS)
        return fake_refuse(B_VALUE, "no algorithm of this library");
    if (a->types != types_of(type) || a->compute != (uint32_t)q->how->compute)
        return fake_refuse(B_VALUE, "an algorithm for other types");
    if (q->matrix[3]->type != R_32F && (a->reduction & (REDUCE_INPLACE | REDUCE_OUTPUT))) {
        fake_mistake("an algorithm that sums in 16 bits");
        return fake_refuse(B_NOT_SUPPORTED, "sums in 16 bits");
    }
    if ((a->id == SUM_HALVES) != (a->split == 2 && a->reduction == REDUCE_COMPUTE) ||
        (a->id != SUM_HALVES && a->split > 1))
        return fake_refuse(B_NOT_SUPPORTED, "a split that this algorithm does not have");
    return B_OK;
}

static int heuristic(const void *library, const void *how, const void *const layout[4], const void *preference,
                     int most, FakeHeuristic *out, int *found)
{
    const Object *p = object_of(preference, PREFERENCE);
    Asked q;
    int type[4], at = 0;
    if (!fake_object(KIND_BLAS, library) || !p || !out || !found || most < 1)
        return B_VALUE;
    for (int i = 0; i < ALIGNMENTS; i++)
        if (!p->alignment[i] || (p->alignment[i] & (p->alignment[i] - 1)))
            return fake_refuse(B_VALUE, "an alignment that is no power of two");
    *found = 0;
    int error = read_asked(&q, how, layout);
    if (error)
        return error;
    if (q.matrix[3]->type != R_32F && (p->reduction & (REDUCE_INPLACE | REDUCE_OUTPUT))) {
        fake_mistake("algorithms are asked for that may sum in 16 bits");
        return fake_refuse(B_NOT_SUPPORTED, "the mask of reductions allows sums in 16 bits");
    }
    FakeAlgorithms has = fake_settings()->algorithms;
    if (has == ALGORITHMS_NONE || (has == ALGORITHMS_ROWS && q.matrix[3]->order != ORDER_ROW))
        return B_OK; /* which is no error: there are 0 */
    types_asked(&q, type);
    fake_say("%lld x %lld x %lld, %d", (long long)q.m, (long long)q.n, (long long)q.k, q.matrix[3]->batch);
    for (int i = 0; i < SUMS && at < most; i++) {
        Algo a = algo_for(q.how->compute, type, (int)((i + fake_settings()->heuristic) % SUMS));
        for (int j = 0; j < ALIGNMENTS; j++)
            a.align[j] = (uint8_t)(p->alignment[j] < 16 ? p->alignment[j] : 16);
        if ((a.reduction & ~p->reduction) || workspace_of(&q, &a) > p->workspace)
            continue;
        out[at] = (FakeHeuristic){.workspace = workspace_of(&q, &a), .waves = 1};
        memcpy(&out[at++].algo, &a, sizeof a);
    }
    *found = at;
    return at ? B_OK : B_NOT_SUPPORTED;
}

FAKE_API int cublasLtMatmulAlgoGetHeuristic(const void *library, const void *how, const void *a, const void *b,
                                            const void *c, const void *d, const void *preference, int most,
                                            FakeHeuristic *out, int *found)
{
    const void *const layout[4] = {a, b, c, d};
    FAKE_CALL("cublasLtMatmulAlgoGetHeuristic", BLAS | UNSAFE, B_INTERNAL,
              heuristic(library, how, layout, preference, most, out, found));
}

static int algo_check(const void *library, const void *how, const void *const layout[4], const FakeAlgo *algo,
                      FakeHeuristic *out)
{
    Asked q;
    Algo a;
    if (!fake_object(KIND_BLAS, library) || !algo || !out)
        return B_VALUE;
    int error = read_asked(&q, how, layout);
    memcpy(&a, algo, sizeof a);
    error = error ? error : check_algo(&q, &a);
    *out = (FakeHeuristic){.algo = *algo, .state = error, .waves = 1};
    if (!error)
        out->workspace = workspace_of(&q, &a);
    return error;
}

FAKE_API int cublasLtMatmulAlgoCheck(const void *library, const void *how, const void *a, const void *b, const void *c,
                                     const void *d, const FakeAlgo *algo, FakeHeuristic *out)
{
    const void *const layout[4] = {a, b, c, d};
    FAKE_CALL("cublasLtMatmulAlgoCheck", BLAS | UNSAFE, B_NOT_SUPPORTED, algo_check(library, how, layout, algo, out));
}

static int algo_init(const void *library, int compute, int scale, const int type[4], int id, FakeAlgo *out)
{
    if (!fake_object(KIND_BLAS, library) || !out || scale != R_32F || id < 0 || id >= SUMS)
        return B_VALUE;
    Algo a = algo_for(compute, type, id);
    *out = (FakeAlgo){{0}};
    memcpy(out, &a, sizeof a);
    return B_OK;
}

FAKE_API int cublasLtMatmulAlgoInit(const void *library, int compute, int scale, int a, int b, int c, int d, int id,
                                    FakeAlgo *out)
{
    const int type[4] = {a, b, c, d};
    FAKE_CALL("cublasLtMatmulAlgoInit", BLAS, B_VALUE, algo_init(library, compute, scale, type, id, out));
}

#define ALGO_FIELD(attribute, member)                                                                                  \
    {                                                                                                                  \
        DESCRIPTION, attribute, offsetof(Algo, member), sizeof(((Algo *)0)->member)                                    \
    }
static const Field algo_fields[] = {
    ALGO_FIELD(ALGO_ID, id),           ALGO_FIELD(ALGO_TILE, tile),
    ALGO_FIELD(ALGO_SPLIT_K, split),   ALGO_FIELD(ALGO_REDUCTION, reduction),
    ALGO_FIELD(ALGO_SWIZZLE, swizzle), ALGO_FIELD(ALGO_CUSTOM, custom),
    ALGO_FIELD(ALGO_STAGES, stages),   ALGO_FIELD(ALGO_INNER, inner),
    ALGO_FIELD(ALGO_CLUSTER, cluster),
};

static int algo_attribute(FakeAlgo *algo, int which, const void *from, void *to, size_t size, size_t *written)
{
    for (size_t i = 0; algo && i < sizeof algo_fields / sizeof *algo_fields; i++) {
        const Field *f = &algo_fields[i];
        if (f->attribute != which)
            continue;
        if (size != f->size || (!from && !to) || (from && which == ALGO_ID))
            return B_VALUE;
        if (from)
            memcpy((char *)algo + f->at, from, size);
        else if (to)
            memcpy(to, (const char *)algo + f->at, size);
        if (written)
            *written = size;
        return B_OK;
    }
    return B_VALUE;
}

FAKE_API int cublasLtMatmulAlgoConfigSetAttribute(FakeAlgo *algo, int which, const void *value, size_t size)
{
    FAKE_CALL("cublasLtMatmulAlgoConfigSetAttribute", BLAS, B_VALUE,
              algo_attribute(algo, which, value, NULL, size, NULL));
}

FAKE_API int cublasLtMatmulAlgoConfigGetAttribute(const FakeAlgo *algo, int which, void *value, size_t size,
                                                  size_t *written)
{
    FakeAlgo copy = algo ? *algo : (FakeAlgo){{0}};
    FAKE_CALL("cublasLtMatmulAlgoConfigGetAttribute", BLAS, B_VALUE,
              algo ? algo_attribute(&copy, which, NULL, value, size, written) : B_VALUE);
}

/* ---- a product ---- */

static ProductMatrix matrix(const Layout *l, const void *at, bool transposed)
{
    int64_t row = l->order == ORDER_COL ? 1 : l->ld, column = l->order == ORDER_COL ? l->ld : 1;
    return (ProductMatrix){.at = (char *)at,
                           .type = l->type,
                           .row = transposed ? column : row,
                           .column = transposed ? row : column,
                           .step = l->batch > 1 ? l->stride : 0};
}

static uint64_t extent(const Layout *l)
{
    uint64_t major = l->order == ORDER_COL ? l->columns : l->rows, minor = l->order == ORDER_COL ? l->rows : l->columns;
    uint64_t stride = l->batch > 1 ? (uint64_t)l->stride : 0;
    return ((uint64_t)(l->batch - 1) * stride + (major - 1) * (uint64_t)l->ld + minor) * size_of(l->type);
}

static int run(void *data, char why[256])
{
    (void)why;
    const Product *p = data;
    product_run(p);
    if (product_is_zero(p))
        fake_note("a product of zeros: %lld x %lld x %lld", (long long)p->m, (long long)p->n, (long long)p->k);
    return E_OK;
}

static int check_memory(const Asked *q, const void *const at[4], float beta, const uint8_t align[ALIGNMENTS])
{
    for (int i = 0; i < 4; i++) {
        uint64_t a = (uintptr_t)at[i];
        if (i == 2 && beta == 0)
            continue;
        if (!a || a % size_of(q->matrix[i]->type))
            return fake_refuse(B_VALUE, "matrix %d is nowhere, or not aligned", i);
        if (a % align[i])
            return fake_refuse(B_NOT_SUPPORTED, "matrix %d is aligned less than the algorithm was chosen for", i);
        if (!fake_holds(a, extent(q->matrix[i])))
            return fake_refuse(B_VALUE, "matrix %d does not lie in an allocation", i);
    }
    if (beta != 0 && at[2] == at[3] && memcmp(q->matrix[2], q->matrix[3], sizeof(Layout)) != 0)
        return fake_refuse(B_VALUE, "C and D are one matrix of two layouts");
    return B_OK;
}

/* The machine code of a product comes to the device when the first such product is queued: not while a stream is captured. */
static bool comes_too_late(const Algo *a, bool captured)
{
    static struct {
        uint32_t types, compute;
        int32_t id;
    } here[64];
    static size_t n;
    size_t i = 0;
    while (i < n && (here[i].types != a->types || here[i].compute != a->compute || here[i].id != a->id))
        i++;
    if (i == n && n < sizeof here / sizeof *here && !captured) {
        here[n].types = a->types, here[n].compute = a->compute, here[n].id = a->id;
        n++;
    }
    return captured && i == n;
}

static int matmul(const void *library, const Asked *q, const void *const at[4], const float *alpha, const float *beta,
                  const FakeAlgo *algo, const void *workspace, size_t bytes, const void *stream)
{
    FakeStream *s;
    Algo a;
    if (!fake_object(KIND_BLAS, library) || !alpha || !beta)
        return B_VALUE;
    if (!algo) {
        fake_mistake("a product whose algorithm is left to chance");
        return fake_refuse(B_NOT_SUPPORTED, "no algorithm");
    }
    memcpy(&a, algo, sizeof a);
    int error = check_algo(q, &a);
    error = error ? error : check_memory(q, at, *beta, a.align);
    if (error)
        return error;
    size_t needed = workspace_of(q, &a);
    if (bytes < needed || (needed && !fake_holds((uintptr_t)workspace, bytes)) || (uintptr_t)workspace % 16)
        return fake_refuse(B_VALUE, "%zu bytes of workspace are needed", needed);
    if (fake_stream(stream, &s))
        return B_VALUE;
    if (comes_too_late(&a, fake_capturing(s))) {
        fake_capture_invalidate(s);
        return fake_refuse(
            B_EXECUTION, "the first product of its kind, while a stream is captured: the library has to load its code");
    }
    fake_say("%lld x %lld x %lld, %d, type %d, rows of %lld %lld %lld, algorithm %d%s", (long long)q->m,
             (long long)q->n, (long long)q->k, q->matrix[3]->batch, q->matrix[0]->type, (long long)q->matrix[0]->ld,
             (long long)q->matrix[1]->ld, (long long)q->matrix[3]->ld, a.id, *beta != 0 ? ", added" : "");
    const int32_t *t = q->how->transposed;
    Product *p = malloc(sizeof *p);
    *p = (Product){.m = q->m,
                   .n = q->n,
                   .k = q->k,
                   .batch = q->matrix[3]->batch,
                   .alpha = *alpha,
                   .beta = *beta,
                   .a = matrix(q->matrix[0], at[0], t[0]),
                   .b = matrix(q->matrix[1], at[1], t[1]),
                   .c = matrix(q->matrix[2], at[2], false),
                   .d = matrix(q->matrix[3], at[3], false),
                   .sum = a.id,
                   .tf32 = q->how->compute == COMPUTE_32F_FAST_TF32};
    return fake_enqueue(s, (FakeWork){"a product of cuBLASLt", run, free, p, NULL}) ? B_EXECUTION : B_OK;
}

FAKE_API int cublasLtMatmul(const void *library, const void *how, const void *alpha, const void *a,
                            const void *a_layout, const void *b, const void *b_layout, const void *beta, const void *c,
                            const void *c_layout, void *d, const void *d_layout, const FakeAlgo *algo, void *workspace,
                            size_t bytes, const void *stream)
{
    const void *const layout[4] = {a_layout, b_layout, c_layout, d_layout}, *const at[4] = {a, b, c, d};
    Asked q;
    int error = fake_enter("cublasLtMatmul", BLAS | NEEDS_INIT | NEEDS_CONTEXT, B_EXECUTION);
    error = error ? error : read_asked(&q, how, layout);
    return fake_leave(error ? error : matmul(library, &q, at, alpha, beta, algo, workspace, bytes, stream));
}
