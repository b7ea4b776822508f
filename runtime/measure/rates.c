/* rates.c - rates on disk.
 *
 * In:  a context.   Out: the rates that were kept for this machine, or a sentence.
 * The one idea: the name of the file is a hash of everything that rates depend on, so what was
 * measured elsewhere, with other threads or by another version is not found; those of each GPU are its own.
 */
#include "rates.h"

#include <stdio.h>

#include "runtime/base/cache.h"
#include "runtime/cpu/cpu.h"
#include "runtime/cuda/device.h"
#include "runtime/base/json.h"
#include "runtime/base/machine.h"
#include "peak.h"
#include "runtime/base/sha256.h"

enum { RATES_TEXT = 8192, RATES_FORMAT = 1 };

/* The GPU that a run would be on; false: it would be on the CPU. */
static bool on_device(vwn_context *owner, CudaFound *found)
{
    char why[512];
    DeviceAsked asked;
    if (owner->options.reference || !device_read(owner->options.device, &asked) ||
        (asked.how == DEVICE_NAMED ? asked.id != BACKEND_cuda : asked.how != DEVICE_AUTO))
        return false;
    bool there = cuda_find(owner->ctx, asked.ordinal, owner->local, found, why);
    if (!there && asked.how == DEVICE_NAMED)
        ctx_raise(owner->ctx, ST_ENVIRONMENT, "%.440s; `--device cpu` takes the processor", why);
    return there;
}

/* What rates of a GPU depend on. */
static void device_key(const CudaFound *f, Rates *r, Buf *key)
{
    r->threads = 1;
    snprintf(r->products, sizeof r->products, "cuBLASLt %zu", f->lt.version());
    snprintf(r->device, sizeof r->device, "cuda:%d, %.150s", f->ordinal, f->device.name);
    buf_printf(key, "%d %s\n%s\n%d %d %llu\n%d %s %s\n%s\n", RATES_FORMAT, vwn_version(), f->device.name,
               f->device.capability, f->multiprocessors, (unsigned long long)f->device.bytes, f->driver_version,
               f->arch, f->nvrtc.build_id, f->lt_build_id);
}

static void processor_key(vwn_context *owner, Rates *r, Buf *key)
{
    Blas blas;
    char why[512];
    r->threads = owner->options.threads > 0 ? owner->options.threads : threads_available();
    r->products[0] = 0;
    if (blas_open(&blas, NULL, why)) {
        snprintf(r->products, sizeof r->products, "%s", blas.name);
        blas_close(&blas);
    }
    buf_printf(key, "%d %s\n%d threads\n%s\n", RATES_FORMAT, vwn_version(), r->threads, r->products);
    machine_processor(key);
    cpu_identity(key);
}

/* The file's name; also says whose rates they are. */
static void file_name(vwn_context *owner, Rates *r, char name[32])
{
    char hex[65];
    CudaFound found;
    Ctx *ctx = owner->ctx;
    ArenaMark mark = arena_mark(ctx->scratch);
    Buf key = buf_new(ctx->scratch);
    if (on_device(owner, &found))
        device_key(&found, r, &key);
    else
        processor_key(owner, r, &key);
    Sha256 hash;
    sha256_start(&hash);
    sha256_add(&hash, key.s, key.n);
    sha256_hex(&hash, hex);
    snprintf(name, 32, "rates-%.16s.json", hex);
    arena_reset(ctx->scratch, mark);
}

static bool kept_or_why(const Cache *cache, bool kept, char why[512])
{
    if (!kept)
        snprintf(why, 512, "%.511s", cache->note[0] ? cache->note : "there is no cache folder");
    return kept;
}

bool rates_can_keep(vwn_context *owner, char why[512])
{
    Cache cache;
    cache_open(&cache, CACHE_SHARED_OBJECTS, owner->options.cache_dir);
    bool can = kept_or_why(&cache, cache.writable, why);
    cache_close(&cache);
    return can;
}

bool rates_keep(vwn_context *owner, const Rates *r, char why[512])
{
    char name[32], text[RATES_TEXT], key[16];
    Rates same = {0};
    Cache cache;
    JsonText t;
    file_name(owner, &same, name);
    json_begin(&t, text, sizeof text);
    json_open(&t, NULL, '{');
    json_put_integer(&t, "threads", r->threads);
    json_put_string(&t, "products", r->products);
    for (int i = 0; i < RATE_COUNT; i++) {
        snprintf(key, sizeof key, "rate%d", i);
        json_put_number(&t, key, r->v[i]);
    }
    json_close(&t, '}');
    cache_open(&cache, CACHE_SHARED_OBJECTS, owner->options.cache_dir);
    bool kept = kept_or_why(&cache, !t.full && cache.writable && cache_put_text(&cache, name, t.s, t.n), why);
    cache_close(&cache);
    return kept;
}

static bool read_rates(Ctx *ctx, const char *text, size_t n, Rates *out)
{
    JsonError error;
    char key[16];
    const Json *j = json_read(ctx->scratch, text, n, &error);
    for (int i = 0; i < RATE_COUNT; i++) {
        snprintf(key, sizeof key, "rate%d", i);
        const Json *x = j && j->kind == JSON_OBJECT ? json_get(j, key) : NULL;
        bool may_miss = i < RATE_LANE || (i >= RATE_BF16 && i < RATE_EXPERT);
        if (!x || x->kind != JSON_NUMBER || x->number < 0 || (x->number == 0 && !may_miss))
            return false;
        out->v[i] = x->number;
    }
    return out->v[RATE_MOVE] > 0;
}

bool rates_find(vwn_context *owner, Rates *out, char why[512])
{
    char name[32], text[RATES_TEXT];
    Ctx *ctx = owner->ctx;
    Cache cache;
    *out = (Rates){0};
    file_name(owner, out, name);
    cache_open(&cache, CACHE_SHARED_OBJECTS, owner->options.cache_dir);
    size_t n = cache_get_text(&cache, name, text, sizeof text);
    ArenaMark mark = arena_mark(ctx->scratch);
    bool found = n && read_rates(ctx, text, n, out);
    arena_reset(ctx->scratch, mark);
    if (!found && out->device[0])
        snprintf(why, 512, "%s has not been measured: `vwn doctor --measure --device %.*s` does it, in some seconds",
                 out->device, (int)strcspn(out->device, ","), out->device);
    else if (!found)
        snprintf(why, 512,
                 "this machine has not been measured with %d thread%s: `vwn doctor --measure` "
                 "does it, in a few seconds",
                 out->threads, out->threads == 1 ? "" : "s");
    cache_close(&cache);
    return found;
}

void rates_describe(const Rates *r, Buf *out)
{
    const double *v = r->v;
    const double giga = 1e-9;
    if (r->device[0])
        buf_printf(out, "rates of: %s\n", r->device);
    buf_puts(out, "rate of moving:");
    for (int i = 0; i < RATE_MOVES && v[RATE_MOVE_BYTES + i] > 0; i++)
        buf_printf(out, "%s %.1f GB/s in %.0f MiB", i ? "," : "", giga * v[RATE_MOVE + i],
                   v[RATE_MOVE_BYTES + i] / 1048576);
    buf_printf(out, "\nrate of products: %.0f GFLOP/s, %.0f right transposed, %.0f left transposed\n",
               giga * v[RATE_MATMUL], giga * v[RATE_MATMUL + PRODUCT_RIGHT], giga * v[RATE_MATMUL + PRODUCT_LEFT]);
    if (v[RATE_BF16] > 0)
        buf_printf(out, "rate of bf16 products: %.0f GFLOP/s, %.0f, %.0f\n", giga * v[RATE_BF16],
                   giga * v[RATE_BF16 + PRODUCT_RIGHT], giga * v[RATE_BF16 + PRODUCT_LEFT]);
    buf_printf(out, "rate of products by expert: %.0f GFLOP/s, %.0f, %.0f\n", giga * v[RATE_EXPERT],
               giga * v[RATE_EXPERT + PRODUCT_RIGHT], giga * v[RATE_EXPERT + PRODUCT_LEFT]);
    buf_printf(out, "rate of attention: %.0f GFLOP/s and %.1f G scores/s, backward %.0f and %.1f\n",
               giga * v[RATE_ATTENTION], giga * v[RATE_SCORES], giga * v[RATE_ATTENTION + 1],
               giga * v[RATE_SCORES + 1]);
    buf_printf(out,
               "rate of kernels: %.0f G operations/s, %.1f one by one, %.1f functions, %.2f random "
               "numbers, %.0f GFLOP/s of small products\n",
               giga * v[RATE_LANE], giga * v[RATE_SINGLE], giga * v[RATE_CALL], giga * v[RATE_RANDOM],
               giga * v[RATE_PRODUCT]);
    buf_printf(out, "launch: %.1f us\n", 1e6 / v[RATE_LAUNCHES]);
}
