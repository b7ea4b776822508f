/* cuda_products.c - products of matrices by cuBLASLt.
 *
 * In:  a product, row by row.   Out: it is queued.
 * The one idea: what a product needs of the library is made once for its shape, types, pitches and alignment, and so
 * is the choice of an algorithm, which is kept on disk for this GPU and this library: a run repeats bit for bit.
 * Sums are float32: algorithms that add up parts in another type, or in whatever order parts arrive, are not allowed.
 */
#include "cuda_backend.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "compiler/portable/device_call.h"
#include "runtime/base/sha256.h"

enum {
    WORKSPACE = 32 << 20,
    CHOICES = 8,  /* that the library is asked for */
    ALIGNED = 64, /* at most what buffers of a plan are */
    BUCKETS = 256,
    KEYS = 19,
    BY_ROWS = 5, /* of the keys: how matrices are told */
    KEPT_TEXT = 1 << 19,
    KEPT_FORMAT = 2
};

/* Everything that an algorithm is chosen by. */
typedef struct ProductKey {
    int64_t v[KEYS];
} ProductKey;
typedef struct Kept { /* a choice, from the disk or made now */
    ProductKey key;
    LtAlgorithm algorithm;
    struct Kept *next;
} Kept;
typedef struct Product {
    ProductKey key;
    bool by_rows; /* left is the first factor; else everything is transposed, and left the second one */
    LtProduct product;
    LtLayout left, right, out;
    LtAlgorithm algorithm;
    struct Product *next;
} Product;
struct CudaProducts {
    LtHandle handle;
    LtWish wish;
    CudaAddress workspace;
    Product *product[BUCKETS];
    Kept *kept[BUCKETS];
    bool changed; /* since it was written */
    char file[40];
};

/* As cuda_must(). A library that is called behind a kernel that failed only says that it failed itself: the driver says why. */
static Status must_lt(CudaBackend *c, int status, const char *what)
{
    char place[256];
    if (!status)
        return ST_OK;
    int error = c->broken || c->recording || !c->stream ? 0 : c->api.wait_stream(c->stream);
    if (error)
        return cuda_must(c, error, what);
    cuda_place_text(c, &c->base.at, place);
    if (!c->broken)
        snprintf(c->end, sizeof c->end, "cuda:%d failed in %s%.200s: cuBLASLt says %.100s (status %d)",
                 c->found.ordinal, what, place, c->found.lt.status_text(status), status);
    c->broken = true;
    return cuda_fail(c, ST_ENVIRONMENT, "%s", c->end);
}

/* ---- choices on disk ---- */

static size_t bucket_of(const ProductKey *key)
{
    uint64_t h = 0xcbf29ce484222325u;
    for (int i = 0; i < KEYS; i++)
        h = (h ^ (uint64_t)key->v[i]) * 0x100000001b3u;
    return (size_t)(h >> 32) % BUCKETS;
}

static bool same_key(const ProductKey *a, const ProductKey *b) { return memcmp(a->v, b->v, sizeof a->v) == 0; }

static Kept *find_kept(CudaProducts *p, const ProductKey *key)
{
    Kept *k = p->kept[bucket_of(key)];
    while (k && !same_key(&k->key, key))
        k = k->next;
    return k;
}

static void keep(CudaBackend *c, const ProductKey *key, const LtAlgorithm *algorithm)
{
    CudaProducts *p = c->products;
    Kept *k = find_kept(p, key);
    if (!k) {
        size_t i = bucket_of(key);
        k = NEW(c->arena, Kept);
        *k = (Kept){.key = *key, .next = p->kept[i]};
        p->kept[i] = k;
    }
    k->algorithm = *algorithm;
}

static void name_file(CudaBackend *c)
{
    const CudaFound *f = &c->found;
    char text[512], hex[65];
    Sha256 hash;
    int n = snprintf(text, sizeof text, "%d\n%s\n%d\n%d\n%llu\n%d\n%zu\n%s\n", KEPT_FORMAT, f->device.name,
                     f->device.capability, f->multiprocessors, (unsigned long long)f->device.bytes, WORKSPACE,
                     f->lt.version(), f->lt_build_id);
    sha256_start(&hash);
    sha256_add(&hash, text, n > 0 ? (size_t)n : 0);
    sha256_hex(&hash, hex);
    snprintf(c->products->file, sizeof c->products->file, "products-%.16s.txt", hex);
}

/* A line: the numbers of a key, then the words of an algorithm. What is no such line ends the reading. */
static void read_kept(CudaBackend *c)
{
    ArenaMark mark = arena_mark(c->base.ctx->scratch);
    char *text = NEW_ARRAY(c->base.ctx->scratch, char, KEPT_TEXT), *end = text;
    size_t n = c->cache.readable ? cache_get_text(&c->cache, c->products->file, text, KEPT_TEXT) : 0;
    for (char *at = text; n && *at; at = end + (*end == '\n')) {
        ProductKey key;
        LtAlgorithm algorithm;
        int got = 0;
        end = at;
        for (int i = 0; i < KEYS; i++, at = end)
            got += (key.v[i] = strtoll(at, &end, 10), end > at);
        for (int i = 0; i < 8; i++, at = end)
            got += (algorithm.word[i] = strtoull(at, &end, 16), end > at);
        if (got != KEYS + 8 || *end != '\n')
            break;
        keep(c, &key, &algorithm);
    }
    arena_reset(c->base.ctx->scratch, mark);
}

static void write_kept(CudaBackend *c)
{
    Arena *a = c->base.ctx->scratch;
    ArenaMark mark = arena_mark(a);
    Buf b = buf_new(a);
    for (size_t i = 0; i < BUCKETS; i++)
        for (const Kept *k = c->products->kept[i]; k; k = k->next) {
            for (int j = 0; j < KEYS; j++)
                buf_printf(&b, "%" PRId64 " ", k->key.v[j]);
            for (int j = 0; j < 8; j++)
                buf_printf(&b, "%" PRIx64 "%s", k->algorithm.word[j], j < 7 ? " " : "\n");
        }
    if (b.n < KEPT_TEXT)
        cache_put_text(&c->cache, c->products->file, b.s, b.n);
    arena_reset(a, mark);
}

void cuda_products_keep(CudaBackend *c)
{
    CtxGuard guard;
    if (!c->products->changed || !c->cache.writable)
        return;
    c->products->changed = false;
    if (!CTX_TRY(c->base.ctx, &guard))
        return; /* no memory for it now: it is chosen anew next time */
    write_kept(c);
    ctx_leave(c->base.ctx, &guard);
}

/* ---- opening and closing ---- */

static Status set_wish(CudaBackend *c, int what, const void *value, size_t bytes)
{
    return must_lt(c, c->found.lt.set_wish(c->products->wish, what, value, bytes), "asking for algorithms");
}

Status cuda_products_open(CudaBackend *c)
{
    CudaProducts *p = NEW(c->arena, CudaProducts);
    const LtApi *lt = &c->found.lt;
    const uint64_t workspace = WORKSPACE;
    const uint32_t reductions = LT_REDUCTION_IN_COMPUTE_TYPE;
    c->products = p;
    Status st = must_lt(c, lt->create(&p->handle), "opening cuBLASLt");
    if (st == ST_OK)
        st = cuda_must(c, c->api.take(&p->workspace, WORKSPACE), "taking memory for products");
    if (st == ST_OK)
        st = must_lt(c, lt->new_wish(&p->wish), "asking for algorithms");
    if (st == ST_OK)
        st = set_wish(c, LT_MOST_WORKSPACE, &workspace, sizeof workspace);
    if (st == ST_OK)
        st = set_wish(c, LT_REDUCTIONS, &reductions, sizeof reductions);
    if (st != ST_OK)
        return st;
    name_file(c);
    read_kept(c);
    return ST_OK;
}

static void end_product(CudaBackend *c, Product *p)
{
    const LtApi *lt = &c->found.lt;
    LtLayout *const layouts[] = {&p->out, &p->right, &p->left};
    for (size_t i = 0; i < COUNT_OF(layouts); i++) {
        if (*layouts[i])
            must_lt(c, lt->end_layout(*layouts[i]), "forgetting a matrix");
        *layouts[i] = NULL;
    }
    if (p->product)
        must_lt(c, lt->end_product(p->product), "forgetting a product");
    p->product = NULL;
}

void cuda_products_close(CudaBackend *c)
{
    CudaProducts *p = c->products;
    if (!p)
        return;
    for (size_t i = 0; i < BUCKETS; i++)
        for (Product *x = p->product[i]; x; x = x->next)
            end_product(c, x);
    if (p->wish)
        must_lt(c, c->found.lt.end_wish(p->wish), "forgetting what algorithms are asked for");
    if (p->workspace)
        cuda_must(c, c->api.give(p->workspace), "giving memory back");
    if (p->handle)
        must_lt(c, c->found.lt.destroy(p->handle), "closing cuBLASLt");
    c->products = NULL;
}

/* ---- one shape ---- */

static int64_t alignment(const void *at)
{
    uintptr_t lowest = (uintptr_t)at & -(uintptr_t)at;
    return lowest && lowest < ALIGNED ? (int64_t)lowest : ALIGNED;
}

static ProductKey key_of(const PlanMatmul *m, const void *x, const void *y, const void *z)
{
    return (ProductKey){{m->transpose_a, m->transpose_b, m->accumulate, m->half, m->rounded, false, m->m, m->n, m->k,
                         m->batch, m->lda, m->ldb, m->ldc, m->step_a, m->step_b, m->step_c, alignment(x), alignment(y),
                         alignment(z)}};
}

static int type_of(Half half) { return half_info(half)->blas; }

static Status new_layout(CudaBackend *c, const ColumnMatrix *m, int type, bool by_rows, int64_t batch, LtLayout *out)
{
    const LtApi *lt = &c->found.lt;
    const int32_t many = (int32_t)batch, order = LT_ORDER_ROWS;
    Status st =
        must_lt(c, lt->new_layout(out, type, (uint64_t)m->rows, (uint64_t)m->columns, m->ld), "describing a matrix");
    if (st == ST_OK && by_rows)
        st = must_lt(c, lt->set_layout(*out, LT_ORDER, &order, sizeof order), "describing a matrix");
    if (st == ST_OK && batch > 1)
        st = must_lt(c, lt->set_layout(*out, LT_BATCH, &many, sizeof many), "describing a matrix");
    if (st == ST_OK && batch > 1)
        st = must_lt(c, lt->set_layout(*out, LT_STEP, &m->step, sizeof m->step), "describing a matrix");
    return st;
}

/* The same matrices as they lie: rows and columns change places, and so do the factors. */
static ColumnProduct by_rows(const ColumnProduct *by)
{
    const ColumnMatrix *const from[] = {&by->right, &by->left, &by->out};
    ColumnProduct p;
    ColumnMatrix *const to[] = {&p.left, &p.right, &p.out};
    for (int i = 0; i < 3; i++)
        *to[i] = (ColumnMatrix){from[i]->transposed, from[i]->columns, from[i]->rows, from[i]->ld, from[i]->step};
    return p;
}

static Status describe(CudaBackend *c, const PlanMatmul *m, Product *p)
{
    const LtApi *lt = &c->found.lt;
    const int32_t transposed = LT_TRANSPOSED;
    const RowProduct rows = {m->transpose_a, m->transpose_b, m->m,   m->n,      m->k,      m->batch,
                             m->lda,         m->ldb,         m->ldc, m->step_a, m->step_b, m->step_c};
    const ColumnProduct columns = call_by_columns(&rows), by = p->by_rows ? by_rows(&columns) : columns;
    int type = type_of(m->half);
    Status st = must_lt(c, lt->new_product(&p->product, LT_COMPUTE_FLOAT32, LT_NONE), "describing a product");
    if (st == ST_OK && by.left.transposed)
        st = must_lt(c, lt->set_product(p->product, LT_TRANSPOSE_LEFT, &transposed, sizeof transposed),
                     "describing a product");
    if (st == ST_OK && by.right.transposed)
        st = must_lt(c, lt->set_product(p->product, LT_TRANSPOSE_RIGHT, &transposed, sizeof transposed),
                     "describing a product");
    if (st == ST_OK)
        st = new_layout(c, &by.left, type, p->by_rows, m->batch, &p->left);
    if (st == ST_OK)
        st = new_layout(c, &by.right, type, p->by_rows, m->batch, &p->right);
    return st == ST_OK ? new_layout(c, &by.out, m->rounded ? type : LT_NONE, p->by_rows, m->batch, &p->out) : st;
}

static Status set_alignments(CudaBackend *c, const ProductKey *key)
{
    const int64_t x = key->v[KEYS - 3], y = key->v[KEYS - 2], z = key->v[KEYS - 1];
    const int64_t of[4] = {key->v[BY_ROWS] ? x : y, key->v[BY_ROWS] ? y : x, z, z}; /* left, right, C and D */
    Status st = ST_OK;
    for (int i = 0; i < 4 && st == ST_OK; i++) {
        uint32_t bytes = (uint32_t)of[i];
        st = set_wish(c, LT_ALIGNMENT + i, &bytes, sizeof bytes);
    }
    return st;
}

/* An algorithm that was kept is good when the library says so of this product. */
static bool still_good(CudaBackend *c, const Product *p, const Kept *k)
{
    LtFound found = {0};
    return k &&
           c->found.lt.check(c->products->handle, p->product, p->left, p->right, p->out, p->out, &k->algorithm,
                             &found) == 0 &&
           found.state == 0 && found.workspace <= WORKSPACE;
}

/* An algorithm for the matrices as they are described, where the library has one. */
static Status ask(CudaBackend *c, Product *p, bool *has, int *status)
{
    LtFound found[CHOICES];
    int n = 0;
    ProductKey key = p->key;
    key.v[BY_ROWS] = p->by_rows;
    const Kept *k = find_kept(c->products, &key);
    *has = still_good(c, p, k);
    if (*has) {
        p->algorithm = k->algorithm;
        return ST_OK;
    }
    Status st = set_alignments(c, &key);
    if (st != ST_OK)
        return st;
    *status = c->found.lt.choose(c->products->handle, p->product, p->left, p->right, p->out, p->out, c->products->wish,
                                 CHOICES, found, &n);
    for (int i = 0; !*status && i < n && !*has; i++) {
        if (found[i].state != 0 || found[i].workspace > WORKSPACE)
            continue;
        p->algorithm = found[i].algorithm;
        keep(c, &key, &p->algorithm);
        *has = c->products->changed = true;
    }
    return ST_OK;
}

/* Where the library has none for matrices told by columns, as it counts, it may have one for the same told by rows. */
static Status choose(CudaBackend *c, const PlanMatmul *m, Product *p)
{
    int status = 0;
    bool has = false;
    for (int i = 0; i < 2; i++) {
        end_product(c, p);
        p->by_rows = i == 1;
        Status st = describe(c, m, p);
        if (st == ST_OK)
            st = ask(c, p, &has, &status);
        if (st != ST_OK || has)
            return st;
        if (status && status != LT_NOT_SUPPORTED)
            break;
    }
    return cuda_fail(
        c, ST_ENVIRONMENT,
        "cuBLASLt has no algorithm for %lld products of %lld x %lld x %lld, summed in float32: %s; another version "
        "of it may have one: `vwn doctor` says which file it is",
        (long long)m->batch, (long long)m->m, (long long)m->n, (long long)m->k,
        status ? c->found.lt.status_text(status) : "none that it knows is allowed");
}

static Status make(CudaBackend *c, const PlanMatmul *m, const ProductKey *key, Product **out)
{
    CtxGuard guard;
    if (!CTX_TRY(c->base.ctx, &guard))
        return cuda_fail(c, c->base.ctx->raised, "%s", c->base.ctx->message);
    size_t i = bucket_of(key);
    Product *p = NEW(c->arena, Product);
    *p = (Product){.key = *key, .next = c->products->product[i]};
    Status st = choose(c, m, p);
    if (st == ST_OK)
        c->products->product[i] = p;
    else
        end_product(c, p);
    ctx_leave(c->base.ctx, &guard);
    *out = p;
    return st;
}

static Status find(CudaBackend *c, const PlanMatmul *m, const ProductKey *key, Product **out)
{
    Product *p = c->products->product[bucket_of(key)];
    while (p && !same_key(&p->key, key))
        p = p->next;
    *out = p;
    return p ? ST_OK : make(c, m, key, out);
}

/* ---- products ---- */

static Status multiply(CudaBackend *c, const PlanMatmul *m, const void *x, const void *y, void *z)
{
    const float one = 1, beta = m->accumulate ? 1 : 0;
    const CudaProducts *p = c->products;
    const ProductKey key = key_of(m, x, y, z);
    Product *how;
    Status st = find(c, m, &key, &how);
    if (st != ST_OK)
        return st;
    CudaAddress left = (uintptr_t)(how->by_rows ? x : y), right = (uintptr_t)(how->by_rows ? y : x), out = (uintptr_t)z;
    st = must_lt(c,
                 c->found.lt.multiply(p->handle, how->product, &one, left, how->left, right, how->right, &beta, out,
                                      how->out, out, how->out, &how->algorithm, p->workspace, WORKSPACE, c->stream),
                 "a product");
    return st == ST_OK ? cuda_queued(c, "a product") : st;
}

/* A sum of nothing, row by row. */
static Status clear(CudaBackend *c, const PlanMatmul *m, CudaAddress z)
{
    const size_t item = m->rounded ? 2 : sizeof(float);
    Status st = ST_OK;
    for (int64_t i = 0; i < m->batch; i++)
        for (int64_t row = 0; row < m->m && st == ST_OK; row++)
            st = cuda_must(
                c, c->api.fill(z + (uint64_t)(i * m->step_c + row * m->ldc) * item, 0, (size_t)m->n * item, c->stream),
                "zeroing a product");
    return st == ST_OK ? cuda_queued(c, "zeroing a product") : st;
}

Status cuda_matmul(Backend *b, const PlanMatmul *how, const void *x, const void *y, void *z)
{
    CudaBackend *c = cuda_of(b);
    Status st = cuda_enter(c);
    if (st == ST_OK)
        st = cuda_flush(c);
    if (st != ST_OK || how->m <= 0 || how->n <= 0 || how->batch <= 0)
        return st;
    if (how->k <= 0)
        return how->accumulate ? ST_OK : clear(c, how, (CudaAddress)(uintptr_t)z);
    const int64_t item = how->half ? 2 : sizeof(float), item_out = how->rounded ? 2 : sizeof(float);
    PlanMatmul part = *how;
    for (int64_t done = 0; st == ST_OK && done < how->batch; done += part.batch) {
        part.batch = call_batch(how->batch - done);
        st = multiply(c, &part, (const char *)x + done * how->step_a * item,
                      (const char *)y + done * how->step_b * item, (char *)z + done * how->step_c * item_out);
    }
    return st;
}
