/* cpu_kernels.c - from kernel texts to functions.
 *
 * In:  the kernels of a plan.
 * Out: a Module of functions to call on ranges of rows.
 * The one idea: a kernel is looked for among those already loaded, then on disk, and only
 * what is left goes to the C compiler, in as many files as there are cores. Objects stay
 * loaded until the backend is closed, so programs that share kernels share their code.
 */
#define _GNU_SOURCE
#include "cpu_backend.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

/* ---- building: one Build per call, on the caller's stack ---- */

typedef struct Missing {
    uint32_t kernel; /* in the plan */
    int unit;
} Missing;
typedef struct CpuBuild {
    CpuBackend *cpu;
    const Plan *plan;
    BuildReport *report;
    Module *module;
    char (*key)[65]; /* of each kernel */
    Missing *missing;
    CompileUnit *unit;
    int n_missing, n_unit;
    char folder[256]; /* "" until made */
    bool interrupted;
    char *bytes; /* of the object being loaded */
} CpuBuild;

/* Of all that kernels of one prelude share; kept, for a plan has mostly that of the one before. */
static const Sha256 *hash_common(CpuBackend *cpu, const Plan *plan)
{
    Sha256 *common = &cpu->common;
    size_t length = plan->prelude_length; /* 0: of a plan without kernels */
    if (cpu->prelude && cpu->prelude_length == length && (!length || !memcmp(cpu->prelude, plan->prelude, length)))
        return common;
    static const char format[] = "vwn kernel for the cpu, 1";
    ctx_release(cpu->base.ctx, cpu->prelude);
    cpu->prelude = NULL;
    cpu->prelude = ctx_alloc(cpu->base.ctx, length + 1);
    if (length)
        memcpy(cpu->prelude, plan->prelude, length);
    cpu->prelude_length = length;
    sha256_start(common);
    sha256_add_string(common, format, sizeof format);
    sha256_add_string(common, plan->prelude, length);
    sha256_add_string(common, compiler_options(), strlen(compiler_options()));
    sha256_add_string(common, cpu->identity, strlen(cpu->identity));
    sha256_add_string(common, cpu->compiler.version, strlen(cpu->compiler.version));
    for (char *const *w = cpu->compiler.word; *w; w++)
        sha256_add_string(common, *w, strlen(*w));
    return common;
}

static void hash_keys(CpuBuild *b)
{
    const Plan *plan = b->plan;
    const Sha256 *common = hash_common(b->cpu, plan);
    for (size_t i = 0; i < plan->n_kernel; i++) {
        Sha256 one = *common;
        sha256_add_string(&one, plan->kernel[i].name, strlen(plan->kernel[i].name));
        sha256_add_string(&one, plan->kernel[i].text, plan->kernel[i].length);
        sha256_hex(&one, b->key[i]);
    }
}

static uintptr_t digits_of(const char *key) { return (uintptr_t)hash_bytes(key, 64, 0) | 1; }

static KernelFn find_loaded(const CpuBackend *cpu, const char *key)
{
    for (size_t i = (uintptr_t)map_get(&cpu->by_key, digits_of(key)); i; i = cpu->loaded[i - 1].before)
        if (!memcmp(cpu->loaded[i - 1].key, key, 64))
            return cpu->loaded[i - 1].fn;
    return NULL;
}

static Object *find_object(const CpuBackend *cpu, const char *name)
{
    for (size_t i = 0; i < cpu->n_object; i++)
        if (!memcmp(cpu->object[i].name, name, 64))
            return &cpu->object[i];
    return NULL;
}

/* Makes room before something is opened, so that an open object is never lost. */
static void reserve_object(CpuBackend *cpu) /* moves the objects: pointers to them end here */
{
    if (cpu->n_object % 16 == 0)
        cpu->object = ctx_resize(cpu->base.ctx, cpu->object, (cpu->n_object + 16) * sizeof *cpu->object);
}

static void reserve_loaded(CpuBackend *cpu)
{
    if (cpu->n_loaded % 64 == 0)
        cpu->loaded = ctx_resize(cpu->base.ctx, cpu->loaded, (cpu->n_loaded + 64) * sizeof *cpu->loaded);
}

static Object *add_object(CpuBackend *cpu, const char *name, void *handle, int fd)
{
    Object *o = &cpu->object[cpu->n_object++];
    memcpy(o->name, name, 65);
    o->handle = handle;
    o->fd = fd;
    return o;
}

/* Kernel i out of an open object; false when it is not in there. */
static bool take_kernel(CpuBuild *b, uint32_t i, const Object *o)
{
    CpuBackend *cpu = b->cpu;
    KernelFn fn;
    void *p = dlsym(o->handle, b->plan->kernel[i].name);
    if (!p)
        return false;
    memcpy(&fn, &p, sizeof fn);
    reserve_loaded(cpu);
    void **last = map_at(&cpu->by_key, digits_of(b->key[i]));
    Loaded *l = &cpu->loaded[cpu->n_loaded++];
    *l = (Loaded){.fn = fn, .before = (uintptr_t)*last};
    memcpy(l->key, b->key[i], 65);
    *last = (void *)(uintptr_t)cpu->n_loaded;
    b->module->kernel[i] = fn;
    return true;
}

static bool write_all(int fd, const char *bytes, size_t n)
{
    for (size_t at = 0; at < n;) {
        ssize_t put = write(fd, bytes + at, n - at);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        at += (size_t)put;
    }
    return true;
}

/* A file in memory with these bytes, which nobody else can change; -1 when there is none. */
static int memory_file(const char *bytes, size_t n)
{
#ifdef MFD_EXEC
    int fd = memfd_create("vwn-kernels", MFD_CLOEXEC | MFD_EXEC);
    if (fd < 0)
        fd = memfd_create("vwn-kernels", MFD_CLOEXEC);
#else
    int fd = memfd_create("vwn-kernels", MFD_CLOEXEC);
#endif
    if (fd >= 0 && write_all(fd, bytes, n))
        return fd;
    if (fd >= 0)
        close(fd);
    return -1;
}

/* The same in a private folder, where memory cannot be executed or there is no /proc. */
static void *open_from_folder(const char *bytes, size_t n, char why[512])
{
    char folder[256], path[300];
    void *handle = NULL;
    if (!build_folder_make(folder, sizeof folder, why))
        return NULL;
    snprintf(path, sizeof path, "%s/kernels.so", folder);
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0700);
    if (fd >= 0 && write_all(fd, bytes, n))
        handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (fd >= 0)
        close(fd);
    build_folder_remove(folder);
    return handle;
}

/* An object of these bytes; NULL with the backend's `why`. */
static Object *load_object(CpuBuild *b, const char *name, const char *bytes, size_t n)
{
    CpuBackend *cpu = b->cpu;
    char path[64], why[512] = "", first[300] = "no memory";
    reserve_object(cpu);
    int fd = memory_file(bytes, n);
    snprintf(path, sizeof path, "/proc/self/fd/%d", fd);
    void *handle = fd < 0 ? NULL : dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!handle) {
        const char *error = fd < 0 ? NULL : dlerror();
        if (error)
            snprintf(first, sizeof first, "%.299s", error);
        if (fd >= 0)
            close(fd);
        fd = -1;
        handle = open_from_folder(bytes, n, why);
    }
    if (handle)
        return add_object(cpu, name, handle, fd);
    cpu_fail(&cpu->base, ST_ENVIRONMENT, "compiled kernels cannot be loaded: %s", first);
    return NULL;
}

/* What the compiler wrote, into b->bytes; 0 when it cannot be read or is empty. */
static size_t read_object(CpuBuild *b, const char *path)
{
    struct stat st;
    size_t got = 0;
    ctx_release(b->cpu->base.ctx, b->bytes);
    b->bytes = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return 0;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size > 0)
        b->bytes = cpu_small_block(b->cpu->base.ctx, (size_t)st.st_size);
    while (b->bytes && got < (size_t)st.st_size) {
        ssize_t n = read(fd, b->bytes + got, (size_t)st.st_size - got);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            break;
        got += (size_t)n;
    }
    close(fd);
    return b->bytes && got == (size_t)st.st_size ? got : 0;
}

/* Kernel i from the disk; false is a miss. */
static bool load_cached(CpuBuild *b, uint32_t i)
{
    CpuBackend *cpu = b->cpu;
    char name[65];
    size_t n;
    if (!cache_find(&cpu->cache, b->key[i], name))
        return false;
    Object *o = find_object(cpu, name);
    if (!o) {
        ctx_release(cpu->base.ctx, b->bytes);
        b->bytes = NULL;
        b->bytes = cache_read(&cpu->cache, cpu->base.ctx, name, &n);
        o = b->bytes ? load_object(b, name, b->bytes, n) : NULL;
        cpu->base.why[0] = 0; /* a miss, no failure: it is compiled again */
    }
    return o && take_kernel(b, i, o);
}

/* Fills the module with what there is; the rest is listed as missing. */
static void find_kernels(CpuBuild *b)
{
    for (uint32_t i = 0; i < b->plan->n_kernel; i++) {
        KernelFn fn = find_loaded(b->cpu, b->key[i]);
        if (fn || load_cached(b, i)) {
            if (fn)
                b->module->kernel[i] = fn;
            b->report->cached++;
            continue;
        }
        bool seen = false;
        for (int j = 0; j < b->n_missing; j++)
            seen |= !memcmp(b->key[b->missing[j].kernel], b->key[i], 64);
        if (!seen)
            b->missing[b->n_missing++].kernel = i;
        else
            b->report->cached++;
    }
    b->report->compiled = b->n_missing;
}

enum { FILE_KERNELS = 48 }; /* a file at most, so that none takes long, however many kernels there are */

/* Deals the missing kernels to files: each, longest first, to the file that is shortest so far.
 */
static void deal_units(CpuBuild *b, int jobs)
{
    Ctx *ctx = b->cpu->base.ctx;
    int files = (b->n_missing + FILE_KERNELS - 1) / FILE_KERNELS;
    b->n_unit = files > jobs ? files : b->n_missing < jobs ? b->n_missing : jobs;
    b->unit = ctx_alloc(ctx, (size_t)b->n_unit * sizeof *b->unit);
    size_t *length = ctx_alloc(ctx, (size_t)b->n_unit * sizeof *length);
    for (int i = 0; i < b->n_missing; i++)
        b->missing[i].unit = -1;
    for (int step = 0; step < b->n_missing; step++) {
        int longest = -1, unit = 0;
        for (int i = 0; i < b->n_missing; i++)
            if (b->missing[i].unit < 0 && (longest < 0 || b->plan->kernel[b->missing[i].kernel].length >
                                                              b->plan->kernel[b->missing[longest].kernel].length))
                longest = i;
        for (int u = 1; u < b->n_unit; u++)
            if (length[u] < length[unit])
                unit = u;
        b->missing[longest].unit = unit;
        length[unit] += b->plan->kernel[b->missing[longest].kernel].length + 1;
    }
    ctx_release(ctx, length);
}

static const char *unit_path(CpuBuild *b, int unit, const char *ending)
{
    char *path = ctx_alloc(b->cpu->base.ctx, sizeof b->folder + 32);
    snprintf(path, sizeof b->folder + 32, "%s/kernels%d.%s", b->folder, unit, ending);
    return path;
}

static bool write_unit(CpuBuild *b, int u)
{
    CompileUnit *unit = &b->unit[u];
    unit->source = unit_path(b, u, "c");
    unit->object = unit_path(b, u, "so");
    unit->log = unit_path(b, u, "log");
    FILE *f = fopen(unit->source, "wxe");
    if (f) {
        fputs("#line 1 \"prelude\"\n", f);
        fwrite(b->plan->prelude, 1, b->plan->prelude_length, f);
        for (int i = 0; i < b->n_missing; i++) {
            const PlanKernel *k = &b->plan->kernel[b->missing[i].kernel];
            if (b->missing[i].unit != u)
                continue;
            fprintf(f, "\n#pragma GCC visibility push(default)\n#line 1 \"%s\"\n", k->name);
            fwrite(k->text, 1, k->length, f);
            fprintf(f, "\n#pragma GCC visibility pop\n");
        }
        bool good = !ferror(f);
        if (fclose(f) == 0 && good)
            return true;
    }
    cpu_fail(&b->cpu->base, ST_ENVIRONMENT, "cannot write %.200s: %s", unit->source, strerror(errno));
    return false;
}

/* ---- a compiler that crashes ---- */

static int add_unit(CpuBuild *b, int less)
{
    b->unit = ctx_resize(b->cpu->base.ctx, b->unit, ((size_t)b->n_unit + 1) * sizeof *b->unit);
    b->unit[b->n_unit] = (CompileUnit){.less = less};
    return b->n_unit++;
}

/* Where the compiler crashed over a file its kernels are tried one by one, and one by itself with less optimisation. False: nothing is
 * left to try for one of them, or it failed in another way. */
static bool try_smaller(CpuBuild *b, int from)
{
    for (int u = from, end = b->n_unit; u < end; u++) {
        int kernels = 0;
        if (compiler_made(&b->unit[u]))
            continue;
        for (int i = 0; i < b->n_missing; i++)
            kernels += b->missing[i].unit == u;
        if (!compiler_crashed(&b->unit[u]) || (kernels == 1 && b->unit[u].less == COMPILE_LEAST))
            return false;
        int less = b->unit[u].less + (kernels == 1);
        for (int i = 0; i < b->n_missing; i++)
            if (b->missing[i].unit == u)
                b->missing[i].unit = add_unit(b, less);
    }
    return true;
}

/* The module that a missing kernel computes for. */
static const char *module_of(const CpuBuild *b, const Missing *m)
{
    for (size_t i = 0; i < b->plan->n_launch; i++)
        if (b->plan->launch[i].kind == LAUNCH_KERNEL && b->plan->launch[i].kernel == m->kernel)
            return b->plan->launch[i].name ? b->plan->launch[i].name : "";
    return "";
}

static void note_crashes(CpuBuild *b)
{
    int n = 0, least = 0;
    const Missing *first = NULL;
    for (int i = 0; i < b->n_missing; i++) {
        int less = b->unit[b->missing[i].unit].less;
        first = less && !first ? &b->missing[i] : first;
        least = less > least ? less : least;
        n += less > 0;
    }
    if (first)
        snprintf(
            b->report->note, sizeof b->report->note,
            "the C compiler %.60s crashed over %d kernel%s (%.30s of %.60s) and made %s with %s: slower than with -O2",
            b->cpu->compiler.word[0], n, n > 1 ? "s" : "", b->plan->kernel[first->kernel].name, module_of(b, first),
            n > 1 ? "them" : "it", compiler_level(least));
}

static void report_compile_error(CpuBuild *b, int from)
{
    for (int u = from; u < b->n_unit; u++) {
        char line[300];
        if (b->unit[u].error == ECANCELED) {
            b->interrupted = true;
            cpu_fail(&b->cpu->base, ST_INTERRUPTED, "interrupted while kernels were compiled");
            return;
        }
        if (!b->unit[u].error && b->unit[u].status == 0)
            continue;
        if (b->unit[u].status == -1 && !b->unit[u].error && access(b->unit[u].log, R_OK) != 0)
            continue; /* not tried after another failed */
        compiler_first_error(&b->unit[u], line, sizeof line);
        const char *kernel = "";
        for (int i = 0; i < b->n_missing && !kernel[0]; i++)
            if (b->missing[i].unit == u)
                kernel = b->plan->kernel[b->missing[i].kernel].name;
        if (compiler_crashed(&b->unit[u])) {
            if (b->unit[u].less < COMPILE_LEAST)
                continue; /* that was not the last try */
            cpu_fail(&b->cpu->base, ST_ENVIRONMENT,
                     "the C compiler %.80s crashes over the kernel %.40s, with -O0, too: %.200s; "
                     "another compiler may not: set CC",
                     b->cpu->compiler.word[0], kernel, line);
            return;
        }
        if (!strncmp(line, "k_", 2)) /* the message begins with its kernel */
            kernel = "";
        cpu_fail(&b->cpu->base, ST_ENVIRONMENT, "the C compiler %.80s failed%s%.40s: %s", b->cpu->compiler.word[0],
                 kernel[0] ? " on a file with the kernel " : "", kernel, line);
        return;
    }
    cpu_fail(&b->cpu->base, ST_ENVIRONMENT, "the C compiler %.80s failed", b->cpu->compiler.word[0]);
}

/* Stores and loads what the compiler made of one file. */
static bool keep_unit(CpuBuild *b, int u)
{
    CpuBackend *cpu = b->cpu;
    char name[65];
    size_t n = read_object(b, b->unit[u].object);
    if (!n) {
        cpu_fail(&cpu->base, ST_ENVIRONMENT, "the compiled kernels %.200s cannot be read: %s", b->unit[u].object,
                 strerror(errno));
        return false;
    }
    bool stored = cache_put_object(&cpu->cache, b->bytes, n, name);
    Object *o = find_object(cpu, name);
    if (!o)
        o = load_object(b, name, b->bytes, n);
    if (!o)
        return false;
    for (int i = 0; i < b->n_missing; i++) {
        uint32_t k = b->missing[i].kernel;
        if (b->missing[i].unit != u)
            continue;
        if (!take_kernel(b, k, o)) {
            cpu_fail(&cpu->base, ST_BUG, "the kernel text of %s defines no such function", b->plan->kernel[k].name);
            return false;
        }
        if (stored)
            cache_put_entry(&cpu->cache, b->key[k], name, b->plan->kernel[k].name, cpu->compiler.version,
                            compiler_options(), "");
    }
    return true;
}

static bool compile_missing(CpuBuild *b)
{
    CpuBackend *cpu = b->cpu;
    char why[512];
    int jobs = threads_available();
    deal_units(b, jobs);
    if (!build_folder_make(b->folder, sizeof b->folder, why)) {
        b->folder[0] = 0;
        cpu_fail(&cpu->base, ST_ENVIRONMENT, "%s", why);
        return false;
    }
    cpu->compiler.stop = cpu->base.user.stop;
    for (int from = 0, end; from < b->n_unit; from = end) {
        end = b->n_unit;
        for (int u = from; u < end; u++)
            if (!write_unit(b, u))
                return false;
        if (!compiler_run(&cpu->compiler, b->unit + from, end - from, jobs) && !try_smaller(b, from)) {
            report_compile_error(b, from);
            return false;
        }
    }
    for (int u = 0; u < b->n_unit; u++)
        if (compiler_made(&b->unit[u]) && !keep_unit(b, u))
            return false;
    note_crashes(b);
    cache_prune(&cpu->cache);
    /* Kernels of equal text share one function. */
    for (size_t i = 0; i < b->plan->n_kernel; i++)
        if (!b->module->kernel[i])
            b->module->kernel[i] = find_loaded(cpu, b->key[i]);
    return true;
}

/* Memory for the largest product by expert. */
static bool reserve_expert(CpuBuild *b)
{
    CpuBackend *cpu = b->cpu;
    uint64_t most = cpu->expert_bytes;
    for (size_t i = 0; i < b->plan->n_launch; i++) {
        if (b->plan->launch[i].kind != LAUNCH_EXPERT)
            continue;
        int64_t bytes = expert_scratch(&b->plan->launch[i].expert, cpu->base.threads);
        if (bytes < 0) {
            cpu_fail(&cpu->base, ST_ENVIRONMENT, "out of memory: a product by expert is too large");
            return false;
        }
        if ((uint64_t)bytes > most)
            most = (uint64_t)bytes;
    }
    if (most == cpu->expert_bytes)
        return true;
    void *memory;
    if (cpu_alloc(&cpu->base, most, &memory) != ST_OK)
        return false;
    cpu_free(&cpu->base, cpu->expert_memory, cpu->expert_bytes);
    cpu->expert_memory = memory;
    cpu->expert_bytes = most;
    return true;
}

/* The code of all products: of bf16 operands now, of others ahead. */
static bool prepare_products(CpuBuild *b)
{
    CpuBackend *cpu = b->cpu;
    for (size_t i = 0; i < b->plan->n_launch; i++) {
        const PlanMatmul *m = &b->plan->launch[i].matmul;
        const PlanExpert *e = &b->plan->launch[i].expert;
        if (b->plan->launch[i].kind == LAUNCH_EXPERT && !expert_prepare(&cpu->blas, e)) {
            cpu_fail(&cpu->base, ST_ENVIRONMENT, "%s cannot make bf16 products by expert of %lld x %lld",
                     cpu->blas.name, (long long)e->in, (long long)e->out);
            return false;
        }
        if (b->plan->launch[i].kind != LAUNCH_MATMUL)
            continue;
        blas_warm(&cpu->blas, cpu->base.ahead, m);
        if (blas_prepare(&cpu->blas, m))
            continue;
        cpu_fail(&cpu->base, ST_ENVIRONMENT, "%s cannot make a bf16 product of %lld x %lld x %lld", cpu->blas.name,
                 (long long)m->m, (long long)m->n, (long long)m->k);
        return false;
    }
    return true;
}

/* The part that may leave when memory runs out; the Build belongs to the caller. */
static Status build_guarded(CpuBuild *b)
{
    Ctx *ctx = b->cpu->base.ctx;
    CtxGuard guard;
    if (!CTX_TRY(ctx, &guard))
        return cpu_fail(&b->cpu->base, ctx->raised, "%s", ctx->message);
    size_t n = b->plan->n_kernel;
    b->module = ctx_alloc(ctx, sizeof *b->module);
    b->module->kernel = ctx_alloc(ctx, n * sizeof *b->module->kernel);
    b->module->n = n;
    b->module->plan = b->plan->kernel;
    b->key = ctx_alloc(ctx, n * sizeof *b->key);
    b->missing = ctx_alloc(ctx, n * sizeof *b->missing);
    hash_keys(b);
    find_kernels(b);
    const BackendUser *u = &b->cpu->base.user;
    if (b->n_missing && u->compiling)
        u->compiling(u->user, (size_t)b->n_missing);
    bool good = (!b->n_missing || compile_missing(b)) && reserve_expert(b) && prepare_products(b);
    ctx_leave(ctx, &guard);
    return good ? ST_OK : b->interrupted ? ST_INTERRUPTED : ST_ENVIRONMENT;
}

static void build_end(CpuBuild *b)
{
    Ctx *ctx = b->cpu->base.ctx;
    for (int u = 0; b->unit && u < b->n_unit; u++) {
        ctx_release(ctx, (void *)b->unit[u].source);
        ctx_release(ctx, (void *)b->unit[u].object);
        ctx_release(ctx, (void *)b->unit[u].log);
    }
    ctx_release(ctx, b->unit);
    ctx_release(ctx, b->missing);
    ctx_release(ctx, b->key);
    ctx_release(ctx, b->bytes);
    if (b->folder[0])
        build_folder_remove(b->folder);
    const BackendUser *u = &b->cpu->base.user;
    if (b->n_missing && u->compiling)
        u->compiling(u->user, 0);
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void cpu_drop(Backend *b, Module *module)
{
    if (!module)
        return;
    ctx_release(b->ctx, module->kernel);
    ctx_release(b->ctx, module);
}

Status cpu_build(Backend *backend, const Plan *plan, Module **module, BuildReport *report)
{
    CpuBackend *cpu = cpu_of(backend);
    BuildReport unused;
    double start = seconds_now();
    if (!report)
        report = &unused;
    *report = (BuildReport){.kernels = (int)plan->n_kernel};
    *module = NULL;
    backend->why[0] = 0;
    CpuBuild build = {.cpu = cpu, .plan = plan, .report = report};
    Status status = build_guarded(&build);
    build_end(&build);
    report->seconds = seconds_now() - start;
    if (!cpu->noted && cpu->cache.note[0] && !report->note[0]) {
        cpu->noted = true;
        snprintf(report->note, sizeof report->note, "%s", cpu->cache.note);
    }
    if (status != ST_OK) {
        snprintf(report->why, sizeof report->why, "%s", backend->why);
        cpu_drop(backend, build.module);
        return status;
    }
    *module = build.module;
    return ST_OK;
}
