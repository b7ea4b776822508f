/* cpu_describe.c - what the CPU backend finds on this machine, for people.
 *
 * In:  options.
 * Out: "key: value" lines.
 * The one idea: it asks the same functions that a run asks, so it cannot say anything else.
 */
#define _GNU_SOURCE
#include "runtime/base/cache.h"
#include "runtime/base/machine.h"
#include "cpu.h"
#include "backend_cpu.h"

#include <stdio.h>
#include <stdlib.h>

static void describe_memory(Buf *out)
{
    int64_t total, left = memory_available(&total);
    if (total > 0)
        buf_printf(out, "memory: %.1f GiB, %.1f GiB available\n", (double)total / (1 << 30),
                   (double)(left < 0 ? 0 : left) / (1 << 30));
}

static void describe_processor(Buf *out)
{
    char line[256], *model = NULL;
    FILE *f = fopen("/proc/cpuinfo", "re");
    while (f && !model && fgets(line, sizeof line, f))
        if (!strncmp(line, "model name", 10) && (model = strstr(line, ": ")))
            model[strcspn(model, "\n")] = 0;
    if (f)
        fclose(f);
    buf_printf(out, "processor: %s, %s\n", model ? model + 2 : "unknown", cpu_simd_level());
}

static void describe_cache(Buf *out, const BackendOptions *how)
{
    Cache cache;
    cache_open(&cache, CACHE_SHARED_OBJECTS, how->cache_dir);
    int64_t files, bytes;
    cache_size(&cache, &files, &bytes);
    if (cache.readable && cache.writable)
        buf_printf(out, "kernel cache: %s (%lld files, %.1f MiB)\n", cache.dir, (long long)files,
                   (double)bytes / 1048576);
    else
        buf_printf(out, "kernel cache: %s\n", cache.note[0] ? cache.note : "none");
    cache_close(&cache);
}

void backend_cpu_describe(Ctx *ctx, const BackendOptions *how, Buf *out)
{
    static const BackendOptions defaults;
    if (!how)
        how = &defaults;
    char why[512];
    Blas blas;
    Compiler compiler;
    if (compiler_find(&compiler, how->compiler, how->compile_seconds, why)) {
        buf_puts(out, "C compiler:");
        for (char *const *w = compiler.word; *w; w++)
            buf_printf(out, " %s", *w);
        buf_printf(out, " (%s)\n", compiler.version);
    } else {
        buf_printf(out, "C compiler: %s\n", why);
    }
    if (blas_open(&blas, how->products, why)) {
        buf_printf(out, "products: %s\n", blas.name);
        if (bf16_open(&blas, ctx, 1, why))
            buf_printf(out, "bf16 products: %s\n", bf16_implementation(blas.bf16));
        else
            buf_printf(out, "bf16 products: none, float32 instead: %s\n", why);
        bf16_close(blas.bf16);
        blas_close(&blas);
    } else {
        buf_printf(out, "products: %s\n", why);
    }
    int may = threads_available();
    buf_printf(out, "threads: %d of %d\n", how->threads > 0 ? how->threads : may, may);
    describe_processor(out);
    describe_memory(out);
    describe_cache(out, how);
}
