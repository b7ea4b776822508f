/* cpu_describe.c - what the CPU backend finds on this machine, for people.
 *
 * In:  options.
 * Out: "key: value" lines.
 * The one idea: it asks the same functions that a run asks, so it cannot say anything else.
 */
#define _GNU_SOURCE
#include "runtime/base/cache.h"
#include "cpu.h"
#include "backend_cpu.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <unistd.h>

/* ---- memory ---- */

/* A number of bytes from a file of one number, -1 when there is none ("max"). */
static int64_t number_in(const char *path)
{
    char text[64];
    FILE *f = fopen(path, "re");
    bool ok = f && fgets(text, sizeof text, f);
    if (f)
        fclose(f);
    return ok && text[0] >= '0' && text[0] <= '9' ? (int64_t)strtoull(text, NULL, 10) : -1;
}

/* What `ulimit -v` leaves; -1 without such a limit. */
static int64_t address_space_left(void)
{
    struct rlimit limit;
    int64_t pages = number_in("/proc/self/statm");
    if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY || pages < 0)
        return -1;
    uint64_t used = (uint64_t)pages * (uint64_t)sysconf(_SC_PAGESIZE);
    return limit.rlim_cur > used ? (int64_t)(limit.rlim_cur - used) : 0;
}

int64_t memory_available(int64_t *total)
{
    int64_t free_bytes = -1, swap = 0, value;
    char line[256];
    FILE *f = fopen("/proc/meminfo", "re");
    *total = -1;
    while (f && fgets(line, sizeof line, f)) {
        long long kib;
        if (sscanf(line, "MemTotal: %lld", &kib) == 1)
            *total = kib << 10;
        else if (sscanf(line, "MemAvailable: %lld", &kib) == 1)
            free_bytes = kib << 10;
        else if (sscanf(line, "SwapFree: %lld", &kib) == 1)
            swap = kib << 10;
    }
    if (f)
        fclose(f);
    if (free_bytes >= 0)
        free_bytes += swap;
    int64_t most = number_in("/sys/fs/cgroup/memory.max");
    if (most >= 0 && (value = number_in("/sys/fs/cgroup/memory.current")) >= 0 &&
        (free_bytes < 0 || most - value < free_bytes))
        free_bytes = most > value ? most - value : 0;
    int64_t space = address_space_left();
    if (space >= 0 && (free_bytes < 0 || space < free_bytes))
        free_bytes = space;
    return free_bytes;
}

/* ---- what there is, for people ---- */

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

static void describe_cache(Buf *out, const CpuOptions *how)
{
    Cache cache;
    cache_open(&cache, CACHE_SHARED_OBJECTS, how->cache_dir);
    int64_t files, bytes;
    cache_size(&cache, &files, &bytes);
    if (cache.readable && cache.writable)
        buf_printf(out, "kernel cache: %s (%lld files, %.1f MiB)\n", cache.dir,
                   (long long)files, (double)bytes / 1048576);
    else
        buf_printf(out, "kernel cache: %s\n", cache.note[0] ? cache.note : "none");
    cache_close(&cache);
}

void backend_cpu_describe(Ctx *ctx, const CpuOptions *how, Buf *out)
{
    static const CpuOptions defaults;
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
