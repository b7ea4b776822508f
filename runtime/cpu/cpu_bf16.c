/* cpu_bf16.c - products of bfloat16 operands, by oneDNN.
 *
 * In:  the library that cpu_blas.c found, shapes of tiles.
 * Out: tiles C = op(A) op(B) of bf16 operands, added up and written in float32.
 * The one idea: oneDNN makes code for a shape, which takes a tenth of a millisecond and more, so
 * tiles are made when a plan is built and kept; a run only finds and executes them, each on the
 * thread that asks, with that thread's own scratch.
 *
 * The library is opened at run time, so what is used of its interface (versions 2 and 3) is
 * declared here. Its descriptions are structs of the caller's in version 2 and pointers in
 * version 3.
 */
#include "cpu_backend.h"

#include <dlfcn.h>
#include <stdio.h>
#if defined(__x86_64__)
#include <cpuid.h>
#endif

/* ---- the interface ---- */

enum {
    ONEDNN_CPU = 1,
    ONEDNN_IN_ORDER = 1,
    ONEDNN_SCRATCHPAD_USER = 1,
    ONEDNN_BF16 = 2,
    ONEDNN_F32 = 3,
    ONEDNN_SRC = 1,
    ONEDNN_DST = 17,
    ONEDNN_WEIGHTS = 33,
    ONEDNN_SCRATCHPAD = 80,
    ONEDNN_QUERY_IMPLEMENTATION = 8,
    ONEDNN_QUERY_SCRATCHPAD = 136,
    ONEDNN_DIMS = 12,
    DESCRIPTION_BYTES = 1024, /* 696 in version 2 */
    PRODUCT_BYTES = 4096      /* 2800 in version 2 */
};

typedef struct Argument {
    int what;
    void *memory;
} Argument;

typedef struct Interface {
    int version; /* 2 or 3 */
    int (*engine_create)(void **, int kind, size_t index);
    int (*engine_destroy)(void *);
    int (*stream_create)(void **, void *engine, unsigned flags);
    int (*stream_destroy)(void *);
    int (*attr_create)(void **);
    int (*attr_destroy)(void *);
    int (*attr_set_scratchpad)(void *, int mode);
    int (*describe)(void *, int ndims, const int64_t *dims, int type, const int64_t *strides);
    int (*description_destroy)(void *); /* version 3 */
    size_t (*description_bytes)(const void *);
    int (*product_init)(void *, const void *a, const void *b, const void *bias, const void *c);
    int (*plan2)(void **, const void *product, const void *attr, void *engine, const void *);
    int (*plan3)(void **, void *engine, const void *a, const void *b, const void *bias, const void *c,
                 const void *attr);
    int (*plan_query)(const void *, int what, int index, void *);
    const void *(*plan_description)(const void *, int what, int index);
    int (*plan_destroy)(void *);
    int (*primitive_create)(void **, const void *plan);
    int (*primitive_execute)(const void *, void *stream, int n, const Argument *);
    int (*primitive_destroy)(void *);
    int (*memory_create)(void **, const void *description, void *engine, void *handle);
    int (*memory_set)(void *, void *handle);
    int (*memory_destroy)(void *);
} Interface;

static bool bind(Interface *x, void *library)
{
    const struct {
        const char *name;
        void *function;
    } all[] = {
        {"dnnl_engine_create", &x->engine_create},
        {"dnnl_engine_destroy", &x->engine_destroy},
        {"dnnl_stream_create", &x->stream_create},
        {"dnnl_stream_destroy", &x->stream_destroy},
        {"dnnl_primitive_attr_create", &x->attr_create},
        {"dnnl_primitive_attr_destroy", &x->attr_destroy},
        {"dnnl_primitive_attr_set_scratchpad_mode", &x->attr_set_scratchpad},
        {"dnnl_memory_desc_get_size", &x->description_bytes},
        {"dnnl_primitive_desc_query", &x->plan_query},
        {"dnnl_primitive_desc_query_md", &x->plan_description},
        {"dnnl_primitive_desc_destroy", &x->plan_destroy},
        {"dnnl_primitive_create", &x->primitive_create},
        {"dnnl_primitive_execute", &x->primitive_execute},
        {"dnnl_primitive_destroy", &x->primitive_destroy},
        {"dnnl_memory_create", &x->memory_create},
        {"dnnl_memory_set_data_handle", &x->memory_set},
        {"dnnl_memory_destroy", &x->memory_destroy},
    };
    for (size_t i = 0; i < COUNT_OF(all); i++)
        if (!blas_symbol(library, all[i].name, all[i].function))
            return false;
    x->version = 2;
    if (blas_symbol(library, "dnnl_matmul_desc_init", &x->product_init) &&
        blas_symbol(library, "dnnl_primitive_desc_create", &x->plan2) &&
        blas_symbol(library, "dnnl_memory_desc_init_by_strides", &x->describe))
        return true;
    x->version = 3;
    return blas_symbol(library, "dnnl_matmul_primitive_desc_create", &x->plan3) &&
           blas_symbol(library, "dnnl_memory_desc_destroy", &x->description_destroy) &&
           blas_symbol(library, "dnnl_memory_desc_create_with_strides", &x->describe);
}

/* ---- what is kept ---- */

enum { A, B, C, SCRATCH, MEMORIES };

struct Bf16Tile {
    TileShape shape;
    const Bf16 *owner;
    void *primitive;
    void **memory; /* MEMORIES for each worker */
};

typedef struct Worker {
    void *stream;
    void *block, *scratch; /* scratch: aligned, in block */
} Worker;

struct Bf16 {
    Ctx *ctx;
    Interface lib;
    void *engine, *attr;
    Worker *worker;
    int workers;
    size_t scratch_bytes;
    Bf16Tile **tile;
    size_t n_tile, room;
    char implementation[64];
};

/* A description of a matrix, in the way of either version. */
typedef struct Matrix {
    _Alignas(16) unsigned char inside[DESCRIPTION_BYTES];
    void *outside;
} Matrix;

static const void *description(const Bf16 *x, const Matrix *m)
{
    return x->lib.version == 2 ? (const void *)m->inside : m->outside;
}

static bool describe(const Bf16 *x, Matrix *m, int type, int64_t rows, int64_t columns, int64_t row_stride,
                     int64_t column_stride)
{
    int64_t dims[ONEDNN_DIMS] = {rows, columns};
    int64_t strides[ONEDNN_DIMS] = {row_stride, column_stride};
    m->outside = NULL;
    void *to = x->lib.version == 2 ? (void *)m->inside : &m->outside;
    return x->lib.describe(to, 2, dims, type, strides) == 0;
}

/* The library's plan for a tile, to be destroyed. */
static bool plan_tile(Bf16 *x, const Matrix m[3], void **plan)
{
    const Interface *lib = &x->lib;
    const void *a = description(x, &m[A]), *b = description(x, &m[B]), *c = description(x, &m[C]);
    if (lib->version == 3)
        return lib->plan3(plan, x->engine, a, b, NULL, c, x->attr) == 0;
    _Alignas(16) unsigned char product[PRODUCT_BYTES];
    return lib->product_init(product, a, b, NULL, c) == 0 && lib->plan2(plan, product, x->attr, x->engine, NULL) == 0;
}

static bool make_memories(Bf16 *x, Bf16Tile *t, const Matrix m[3], const void *scratch)
{
    const void *of[MEMORIES] = {description(x, &m[A]), description(x, &m[B]), description(x, &m[C]), scratch};
    t->memory = cpu_small_block(x->ctx, (size_t)x->workers * MEMORIES * sizeof *t->memory);
    for (int i = 0; t->memory && i < x->workers * MEMORIES; i++)
        if (x->lib.memory_create(&t->memory[i], of[i % MEMORIES], x->engine, NULL) != 0)
            return false;
    return t->memory;
}

/* Every worker's scratch holds at least `bytes`. */
static bool grow_scratch(Bf16 *x, size_t bytes)
{
    enum { LINE = 64 };
    if (bytes <= x->scratch_bytes)
        return true;
    for (int i = 0; i < x->workers; i++) {
        Worker *w = &x->worker[i];
        char *block = cpu_small_block(x->ctx, bytes + LINE);
        if (!block)
            return false;
        ctx_release(x->ctx, w->block);
        w->block = block;
        w->scratch = block + (LINE - (uintptr_t)block % LINE) % LINE;
    }
    x->scratch_bytes = bytes;
    return true;
}

static bool fill_tile(Bf16 *x, Bf16Tile *t)
{
    const TileShape *s = &t->shape;
    Matrix m[3] = {0};
    void *plan = NULL;
    bool good = describe(x, &m[A], ONEDNN_BF16, s->m, s->k, s->ta ? 1 : s->lda, s->ta ? s->lda : 1) &&
                describe(x, &m[B], ONEDNN_BF16, s->k, s->n, s->tb ? 1 : s->ldb, s->tb ? s->ldb : 1) &&
                describe(x, &m[C], ONEDNN_F32, s->m, s->n, s->ldc, 1) && plan_tile(x, m, &plan);
    if (good) {
        const void *scratch = x->lib.plan_description(plan, ONEDNN_QUERY_SCRATCHPAD, 0);
        const char *name = "";
        x->lib.plan_query(plan, ONEDNN_QUERY_IMPLEMENTATION, 0, &name);
        snprintf(x->implementation, sizeof x->implementation, "%s", name);
        good = grow_scratch(x, x->lib.description_bytes(scratch)) && make_memories(x, t, m, scratch) &&
               x->lib.primitive_create(&t->primitive, plan) == 0;
    }
    if (plan)
        x->lib.plan_destroy(plan);
    for (int i = 0; i < 3; i++)
        if (m[i].outside)
            x->lib.description_destroy(m[i].outside);
    return good;
}

static void free_tile(Bf16 *x, Bf16Tile *t)
{
    for (int i = 0; t->memory && i < x->workers * MEMORIES; i++)
        if (t->memory[i])
            x->lib.memory_destroy(t->memory[i]);
    if (t->primitive)
        x->lib.primitive_destroy(t->primitive);
    ctx_release(x->ctx, t->memory);
    ctx_release(x->ctx, t);
}

static bool room_for_one(Bf16 *x)
{
    if (x->n_tile < x->room)
        return true;
    size_t room = x->room ? 2 * x->room : 64;
    Bf16Tile **tile = cpu_small_block(x->ctx, room * sizeof *tile);
    if (!tile)
        return false;
    if (x->n_tile)
        memcpy(tile, x->tile, x->n_tile * sizeof *tile);
    ctx_release(x->ctx, x->tile);
    x->tile = tile;
    x->room = room;
    return true;
}

/* ---- used by cpu_blas.c ---- */

static bool same_shape(const TileShape *a, const TileShape *b)
{
    return a->ta == b->ta && a->tb == b->tb && a->m == b->m && a->n == b->n && a->k == b->k && a->lda == b->lda &&
           a->ldb == b->ldb && a->ldc == b->ldc;
}

const Bf16Tile *bf16_find(const Bf16 *x, const TileShape *shape)
{
    for (size_t i = 0; x && i < x->n_tile; i++)
        if (same_shape(&x->tile[i]->shape, shape))
            return x->tile[i];
    return NULL;
}

bool bf16_make(Bf16 *x, const TileShape *shape)
{
    if (bf16_find(x, shape))
        return true;
    Bf16Tile *t = x && room_for_one(x) ? cpu_small_block(x->ctx, sizeof *t) : NULL;
    if (!t)
        return false;
    t->shape = *shape;
    t->owner = x;
    if (!fill_tile(x, t)) {
        free_tile(x, t);
        return false;
    }
    x->tile[x->n_tile++] = t;
    return true;
}

bool bf16_run(const Bf16Tile *t, int worker, const uint16_t *a, const uint16_t *b, float *c)
{
    const Interface *lib = &t->owner->lib;
    const Worker *w = &t->owner->worker[worker];
    void *const *m = &t->memory[worker * MEMORIES];
    Argument argument[MEMORIES] = {
        {ONEDNN_SRC, m[A]}, {ONEDNN_WEIGHTS, m[B]}, {ONEDNN_DST, m[C]}, {ONEDNN_SCRATCHPAD, m[SCRATCH]}};
    return lib->memory_set(m[A], (void *)a) == 0 && lib->memory_set(m[B], (void *)b) == 0 &&
           lib->memory_set(m[C], c) == 0 && lib->memory_set(m[SCRATCH], w->scratch) == 0 &&
           lib->primitive_execute(t->primitive, w->stream, MEMORIES, argument) == 0;
}

/* ---- opening and closing ---- */

/* Without these instructions the library would make up for them, slower than in float32. */
static bool processor_has_bf16(void)
{
#if defined(__x86_64__)
    unsigned a = 0, b = 0, c = 0, d = 0;
    return __builtin_cpu_supports("avx512f") && __get_cpuid_count(7, 1, &a, &b, &c, &d) && (a >> 5 & 1);
#else
    return false;
#endif
}

static bool start(Bf16 *x)
{
    const Interface *lib = &x->lib;
    x->worker = cpu_small_block(x->ctx, (size_t)x->workers * sizeof *x->worker);
    if (!x->worker || lib->engine_create(&x->engine, ONEDNN_CPU, 0) != 0 || lib->attr_create(&x->attr) != 0 ||
        lib->attr_set_scratchpad(x->attr, ONEDNN_SCRATCHPAD_USER) != 0)
        return false;
    for (int i = 0; i < x->workers; i++)
        if (lib->stream_create(&x->worker[i].stream, x->engine, ONEDNN_IN_ORDER) != 0)
            return false;
    TileShape probe = {false, false, 64, 64, 64, 64, 64, 64};
    return bf16_make(x, &probe);
}

bool bf16_open(Blas *blas, Ctx *ctx, int workers, char why[512])
{
    blas->bf16 = NULL;
    if (!processor_has_bf16()) {
        snprintf(why, 512, "the processor has no instructions for bf16 (avx512_bf16, amx)");
        return false;
    }
    if (blas->kind != BLAS_ONEDNN) {
        snprintf(why, 512, "bf16 products need oneDNN (install libdnnl2)");
        return false;
    }
    Bf16 *x = cpu_small_block(ctx, sizeof *x);
    if (!x) {
        snprintf(why, 512, "%s", ctx->message);
        return false;
    }
    x->ctx = ctx;
    x->workers = workers;
    int outer = blas_begin(blas);
    if (blas->set_threads)
        blas->set_threads(1);
    bool good = bind(&x->lib, blas->library) && start(x);
    blas_end(blas, outer);
    if (!good)
        snprintf(why, 512, "%s gives no bf16 products", blas->name);
    else if (!strncmp(x->implementation, "ref", 3))
        snprintf(why, 512, "%s has no fast bf16 products here (%s)", blas->name, x->implementation);
    else
        blas->bf16 = x;
    if (!blas->bf16)
        bf16_close(x);
    return blas->bf16;
}

const char *bf16_implementation(const Bf16 *x) { return x->implementation; }

void bf16_close(Bf16 *x)
{
    if (!x)
        return;
    for (size_t i = 0; i < x->n_tile; i++)
        free_tile(x, x->tile[i]);
    for (int i = 0; x->worker && i < x->workers; i++) {
        if (x->worker[i].stream)
            x->lib.stream_destroy(x->worker[i].stream);
        ctx_release(x->ctx, x->worker[i].block);
    }
    if (x->attr)
        x->lib.attr_destroy(x->attr);
    if (x->engine)
        x->lib.engine_destroy(x->engine);
    ctx_release(x->ctx, x->tile);
    ctx_release(x->ctx, x->worker);
    ctx_release(x->ctx, x);
}
