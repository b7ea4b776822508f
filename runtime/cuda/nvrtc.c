/* nvrtc.c - see nvrtc.h. */
#define _GNU_SOURCE
#include "nvrtc.h"

#include "runtime/base/sha256.h"
#include "compiler/portable/threads.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

/* ---- the library ---- */

typedef struct NvrtcText *NvrtcProgram; /* nvrtcProgram of its header */
typedef struct NvrtcTable {
    int (*version)(int *major, int *minor);
    int (*count_archs)(int *n);
    int (*archs)(int *list);
    int (*create)(NvrtcProgram *out, const char *text, const char *name, int headers,
                  const char *const *header, const char *const *include_name);
    int (*destroy)(NvrtcProgram *p);
    int (*compile)(NvrtcProgram p, int n, const char *const *option);
    int (*log_size)(NvrtcProgram p, size_t *n);
    int (*log)(NvrtcProgram p, char *text);
    int (*cubin_size)(NvrtcProgram p, size_t *n);
    int (*cubin)(NvrtcProgram p, char *bytes);
    const char *(*error_text)(int result);
} NvrtcTable;

bool nvrtc_open(Ctx *ctx, Nvrtc *out, char why[512])
{
    *out = (Nvrtc){0};
    void *library = cuda_library(CUDA_NVRTC, out->path, why);
    if (!library)
        return false;
    NvrtcTable *t = NEW(ctx->program, NvrtcTable);
    const CudaFunction wanted[] = {
        {"nvrtcVersion", &t->version},
        {"nvrtcGetNumSupportedArchs", &t->count_archs},
        {"nvrtcGetSupportedArchs", &t->archs},
        {"nvrtcCreateProgram", &t->create},
        {"nvrtcDestroyProgram", &t->destroy},
        {"nvrtcCompileProgram", &t->compile},
        {"nvrtcGetProgramLogSize", &t->log_size},
        {"nvrtcGetProgramLog", &t->log},
        {"nvrtcGetCUBINSize", &t->cubin_size},
        {"nvrtcGetCUBIN", &t->cubin},
        {"nvrtcGetErrorString", &t->error_text},
    };
    if (!cuda_functions(library, wanted, COUNT_OF(wanted), why))
        return false;
    int n = 0, list[256];
    if (t->version(&out->major, &out->minor) || t->count_archs(&n) || n < 0 ||
        n > (int)COUNT_OF(list) || (n && t->archs(list))) {
        snprintf(why, 512, "the CUDA compiler %.300s does not say what it can do", out->path);
        return false;
    }
    for (int i = 0; i < n && out->n_arch < NVRTC_ARCHS; i++)
        if (list[i] >= LEAST_CAPABILITY)
            out->arch[out->n_arch++] = list[i];
    cuda_build_id(library, out->build_id, sizeof out->build_id);
    out->call = t;
    return true;
}

const char *nvrtc_arch(char name[NVRTC_ARCH_NAME], int number)
{
    snprintf(name, NVRTC_ARCH_NAME, "sm_%d%s", number, number == 90 ? "a" : "");
    return name;
}

/* The 90 of "sm_90a", or -1. */
static long number_of(const char *arch)
{
    char *end;
    if (strncmp(arch, "sm_", 3) != 0)
        return -1;
    long number = strtol(arch + 3, &end, 10);
    return end > arch + 3 ? number : -1;
}

bool nvrtc_can(const Nvrtc *n, const char *arch, char why[512])
{
    for (int i = 0; i < n->n_arch; i++)
        if (n->arch[i] == number_of(arch))
            return true;
    snprintf(why, 512, "the CUDA compiler %d.%d makes no code for %.40s; kernels are for sm_%d and later", n->major,
             n->minor, arch, LEAST_CAPABILITY);
    return false;
}

int64_t nvrtc_shared(const char *arch)
{
    switch (number_of(arch)) {
    case 80: case 87: return 163 * 1024;
    case 90: case 100: case 103: case 110: return 227 * 1024;
    default: return 99 * 1024; /* 86, 89, 120, 121 */
    }
}

/* ---- options ---- */

/* No built-in headers; addresses in 64 bits; no option that trades exactness for speed. */
static const char *const common_options[] = {"--minimal", "--std=c++17"};
enum { OPTIONS = 16 };

static int by_text(const void *a, const void *b)
{
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* All options of a build, sorted, with the architecture. Returns how many. */
static int gather_options(const CudaBuild *b, char arch[64], const char *option[OPTIONS])
{
    size_t n = COUNT_OF(common_options);
    memcpy(option, common_options, sizeof common_options);
    snprintf(arch, 64, "--gpu-architecture=%.40s", b->arch);
    option[n++] = arch;
    for (size_t i = 0; i < b->n_option && n < OPTIONS; i++)
        option[n++] = b->option[i];
    qsort(option, n, sizeof *option, by_text);
    return (int)n;
}

/* ---- one build ---- */

enum { COMPILATION = 6, BUILTIN = 7 }; /* results of its header */

/* A program costs some 30 ms of the compiler's own, so kernels share one: longest first, until a program
 * has so much text. That is no matter of threads: the same kernels are the same programs. */
enum { PROGRAM_TEXT = 32 << 10, PROGRAM_KERNELS = 12 };
typedef struct Job {
    size_t first, n;   /* of Build.missing */
    char *cubin, *log; /* of malloc: made by another thread */
    size_t size;
    int result;    /* of NVRTC; -1: no memory */
    size_t failed; /* of Build.missing */
    bool done;     /* false: not tried after another failed */
} Job;
typedef struct Missing {
    uint32_t kernel;
    size_t length; /* of its text */
} Missing;
/* An object of the cache that was read: other kernels of its program lie in it, too. */
typedef struct NvrtcObject {
    char name[65];
    const void *bytes;
    size_t size;
} NvrtcObject;
typedef struct NvrtcBuild {
    const Nvrtc *nvrtc;
    CudaBuild *b;
    Ctx *ctx;
    const char *option[OPTIONS];
    char arch[64], all_options[256];
    int n_option;
    char (*key)[65];
    Missing *missing; /* to be compiled, the longest first */
    size_t n_missing;
    Job *job;
    size_t n_job;
    NvrtcObject *object;
    size_t n_object;
    bool failed; /* set by any thread, read as a hint */
    bool interrupted;
} NvrtcBuild;

static void hash_keys(NvrtcBuild *u)
{
    static const char format[] = "vwn kernel for cuda, 2";
    const CudaBuild *b = u->b;
    char version[32];
    Sha256 common;
    snprintf(version, sizeof version, "%d.%d", u->nvrtc->major, u->nvrtc->minor);
    sha256_start(&common);
    sha256_add_string(&common, format, sizeof format);
    sha256_add_string(&common, b->prelude, b->prelude_length);
    for (int i = 0; i < u->n_option; i++)
        sha256_add_string(&common, u->option[i], strlen(u->option[i]));
    sha256_add_string(&common, version, strlen(version));
    sha256_add_string(&common, u->nvrtc->build_id, strlen(u->nvrtc->build_id));
    for (size_t i = 0; i < b->n; i++) {
        Sha256 one = common;
        sha256_add_string(&one, b->kernel[i].name, strlen(b->kernel[i].name));
        sha256_add_string(&one, b->kernel[i].text, b->kernel[i].length);
        sha256_hex(&one, u->key[i]);
    }
}

static const void *kept(Arena *arena, const void *bytes, size_t size)
{
    return memcpy(arena_alloc(arena, size), bytes, size);
}

/* Finds kernel i in machine code that lies in the arena; false with `why` when it is not what it
 * should be. */
static bool take_kernel(NvrtcBuild *u, size_t i, const void *cubin, size_t size, char why[256])
{
    Cubin facts;
    if (!cubin_read(u->b->arena, cubin, size, &facts, why))
        return false;
    const CubinKernel *k = cubin_find(&facts, u->b->kernel[i].name);
    if (!k) {
        snprintf(why, 256, "the text does not define it");
        return false;
    }
    u->b->code[i] = (CudaCode){.cubin = cubin, .size = size, .facts = *k, .log = ""};
    return true;
}

/* The bytes of an object, read once; NULL is a miss. */
static const NvrtcObject *object_of(NvrtcBuild *u, const char name[65])
{
    for (size_t i = 0; i < u->n_object; i++)
        if (!strcmp(u->object[i].name, name))
            return &u->object[i];
    size_t size;
    void *bytes = cache_read(u->b->cache, u->ctx, name, &size);
    if (!bytes)
        return NULL;
    NvrtcObject *o = &u->object[u->n_object++];
    *o = (NvrtcObject){.bytes = kept(u->b->arena, bytes, size), .size = size};
    snprintf(o->name, sizeof o->name, "%s", name);
    ctx_release(u->ctx, bytes);
    return o;
}

static bool find_cached(NvrtcBuild *u, size_t i)
{
    char object[65], why[256];
    Cache *cache = u->b->cache;
    if (!cache || !cache_find(cache, u->key[i], object))
        return false;
    const NvrtcObject *o = object_of(u, object);
    bool good = o && take_kernel(u, i, o->bytes, o->size, why);
    u->b->code[i].cached = good;
    return good;
}

/* The first kernel of the same text, or i itself. */
static size_t first_alike(const NvrtcBuild *u, size_t i)
{
    for (size_t j = 0; j < i; j++)
        if (!memcmp(u->key[j], u->key[i], 64))
            return j;
    return i;
}

static int longest_first(const void *a, const void *b)
{
    const Missing *x = a, *y = b;
    return x->length != y->length ? (x->length < y->length) - (x->length > y->length)
                                  : (x->kernel > y->kernel) - (x->kernel < y->kernel);
}

static void make_programs(NvrtcBuild *u)
{
    qsort(u->missing, u->n_missing, sizeof *u->missing, longest_first);
    size_t text = 0;
    for (size_t i = 0; i < u->n_missing; i++) {
        Job *last = u->n_job ? &u->job[u->n_job - 1] : NULL;
        text += u->missing[i].length;
        if (!last || text > PROGRAM_TEXT || last->n == PROGRAM_KERNELS) {
            last = &u->job[u->n_job++];
            *last = (Job){.first = i};
            text = u->missing[i].length;
        }
        last->n++;
    }
}

/* Prelude and texts; lines of a kernel are counted from its first, under its name. Of malloc, or NULL. */
static char *source_of(const NvrtcBuild *u, size_t first, size_t n)
{
    const CudaBuild *b = u->b;
    size_t size = b->prelude_length + 1, at = b->prelude_length;
    for (size_t i = first; i < first + n; i++) {
        const CudaText *k = &b->kernel[u->missing[i].kernel];
        size += k->length + strlen(k->name) + 32;
    }
    char *s = malloc(size);
    if (!s)
        return NULL;
    memcpy(s, b->prelude, b->prelude_length);
    for (size_t i = first; i < first + n; i++) {
        const CudaText *k = &b->kernel[u->missing[i].kernel];
        at += (size_t)snprintf(s + at, size - at, "\n#line 1 \"%s\"\n", k->name);
        memcpy(s + at, k->text, k->length);
        at += k->length;
    }
    s[at] = 0;
    return s;
}

/* ---- compiling, on several threads ---- */

static char *take_log(const NvrtcTable *t, NvrtcProgram p)
{
    size_t n = 0;
    if (t->log_size(p, &n) || n < 1)
        return NULL;
    char *log = calloc(n + 1, 1);
    if (log && t->log(p, log)) {
        free(log);
        return NULL;
    }
    return log;
}

static void run_program(const NvrtcBuild *u, Job *job)
{
    const NvrtcTable *t = u->nvrtc->call;
    NvrtcProgram p = NULL;
    char *source = source_of(u, job->first, job->n);
    job->done = true;
    job->failed = job->first;
    job->result = source ? t->create(&p, source, "prelude", 0, NULL, NULL) : -1;
    if (!job->result) {
        job->result = t->compile(p, u->n_option, u->option);
        job->log = take_log(t, p);
        if (!job->result)
            job->result = t->cubin_size(p, &job->size);
        if (!job->result) {
            job->cubin = malloc(job->size ? job->size : 1);
            job->result = job->cubin ? t->cubin(p, job->cubin) : -1;
        }
        t->destroy(&p);
    }
    free(source);
}

/* Where one of several kernels is wrong, each is tried alone, so that what is said is of that one. */
static void run_job(const NvrtcBuild *u, Job *job)
{
    run_program(u, job);
    for (size_t i = 0; job->n > 1 && job->result == COMPILATION && i < job->n; i++) {
        Job one = {.first = job->first + i, .n = 1};
        run_program(u, &one);
        free(one.cubin);
        if (!one.result) {
            free(one.log);
            continue;
        }
        free(job->log);
        job->log = one.log;
        job->failed = one.failed;
        job->result = one.result;
        return;
    }
}

static bool stopped(const NvrtcBuild *u) { return u->b->stop && *u->b->stop; }

static void run_jobs(void *user, int64_t lo, int64_t hi, int worker)
{
    NvrtcBuild *u = user;
    (void)worker;
    for (int64_t i = lo; i < hi; i++) {
        if (stopped(u) || __atomic_load_n(&u->failed, __ATOMIC_RELAXED))
            return;
        run_job(u, &u->job[i]);
        if (u->job[i].result)
            __atomic_store_n(&u->failed, true, __ATOMIC_RELAXED);
    }
}

/* ---- what went wrong ---- */

/* Line `number` of a text without its indentation. */
static const char *line_of(const CudaText *k, long number, int *length)
{
    const char *p = k->text, *end = k->text + k->length;
    for (long i = 1; i < number && p; i++) {
        p = memchr(p, '\n', (size_t)(end - p));
        p = p ? p + 1 : NULL;
    }
    *length = 0;
    if (!p || number < 1)
        return "";
    while (p < end && *p == ' ')
        p++;
    const char *stop = memchr(p, '\n', (size_t)(end - p));
    *length = (int)((stop ? stop : end) - p);
    return p;
}

/* "k_12(7): error: sentence" of a log becomes "line 7: sentence: `text of the line`". */
static void first_error(const CudaText *k, const char *log, char *text, size_t size)
{
    const char *line = log ? strstr(log, "error") : NULL;
    if (!line) {
        snprintf(text, size, "%.300s", log && *log ? log : "it failed without a message");
        text[strcspn(text, "\n")] = 0;
        return;
    }
    while (line > log && line[-1] != '\n')
        line--;
    int length = (int)strcspn(line, "\n"), shown;
    const char *number = memchr(line, '(', (size_t)length);
    const char *sentence = strstr(line, "): error: ");
    bool own = number && sentence && sentence < line + length &&
               strlen(k->name) == (size_t)(number - line) &&
               !memcmp(line, k->name, (size_t)(number - line));
    if (!own) {
        snprintf(text, size, "%.*s", length < 300 ? length : 300, line);
        return;
    }
    long at = strtol(number + 1, NULL, 10);
    const char *source = line_of(k, at, &shown);
    sentence += strlen("): error: ");
    length -= (int)(sentence - line);
    snprintf(text, size, "line %ld: %.*s: `%.*s`", at, length < 300 ? length : 300, sentence,
             shown < 200 ? shown : 200, source);
}

static void report(NvrtcBuild *u, size_t kernel, const char *reason)
{
    const CudaText *k = &u->b->kernel[kernel];
    bool place = k->place && *k->place;
    if (u->b->why[0])
        return;
    snprintf(u->b->why, sizeof u->b->why,
             "the CUDA compiler failed for %.40s on the kernel %.80s%s%.200s: %.600s",
             u->b->arch, k->name, place ? " of " : "", place ? k->place : "", reason);
}

static void report_jobs(NvrtcBuild *u)
{
    for (size_t i = 0; i < u->n_job; i++) {
        const Job *job = &u->job[i];
        char reason[640];
        if (!job->done || !job->result)
            continue;
        size_t kernel = u->missing[job->failed].kernel;
        if (job->result == COMPILATION || (job->log && *job->log))
            first_error(&u->b->kernel[kernel], job->log, reason, sizeof reason);
        else if (job->result == BUILTIN)
            snprintf(reason, sizeof reason, "libnvrtc-builtins does not lie beside %.400s",
                     u->nvrtc->path);
        else
            snprintf(reason, sizeof reason, "%.300s",
                     job->result < 0 ? "out of memory"
                                     : u->nvrtc->call->error_text(job->result));
        report(u, kernel, reason);
    }
}

/* ---- keeping ---- */

static void store(NvrtcBuild *u, size_t i, const char object[65])
{
    const CubinKernel *k = &u->b->code[i].facts;
    char facts[256], compiler[64];
    snprintf(facts, sizeof facts,
             "\"registers\": %d, \"frame\": %lld, \"spilled\": %lld, \"shared\": %lld, ",
             k->registers, (long long)k->frame, (long long)(k->spill_stores + k->spill_loads),
             (long long)k->shared);
    snprintf(compiler, sizeof compiler, "NVRTC %d.%d", u->nvrtc->major, u->nvrtc->minor);
    cache_put_entry(u->b->cache, u->key[i], object, u->b->kernel[i].name, compiler,
                    u->all_options, facts);
}

/* Each kernel has an entry of its own, and those of a program share an object. */
static bool keep_job(NvrtcBuild *u, const Job *job)
{
    CudaBuild *b = u->b;
    char why[256], object[65];
    const void *cubin = kept(b->arena, job->cubin, job->size);
    const char *log = job->log ? arena_copy(b->arena, job->log, strlen(job->log)) : "";
    for (size_t j = job->first; j < job->first + job->n; j++) {
        size_t i = u->missing[j].kernel;
        if (!take_kernel(u, i, cubin, job->size, why)) {
            report(u, i, why);
            return false;
        }
        b->code[i].log = log;
    }
    if (b->cache && cache_put_object(b->cache, cubin, job->size, object))
        for (size_t j = job->first; j < job->first + job->n; j++)
            store(u, u->missing[j].kernel, object);
    return true;
}

static bool keep_jobs(NvrtcBuild *u)
{
    for (size_t j = 0; j < u->n_job; j++)
        if (!keep_job(u, &u->job[j]))
            return false;
    if (u->b->cache)
        cache_prune(u->b->cache);
    return true;
}

static bool compile_missing(NvrtcBuild *u)
{
    int jobs = u->b->jobs > 0 ? u->b->jobs : threads_available();
    make_programs(u);
    Pool *pool = u->n_job > 1 && jobs > 1 ? pool_open(jobs) : NULL;
    parallel_for(pool, (int64_t)u->n_job, 1, run_jobs, u);
    pool_close(pool);
    u->b->compiled = u->n_missing;
    report_jobs(u);
    for (size_t i = 0; i < u->n_job && !u->failed; i++)
        u->interrupted = u->interrupted || !u->job[i].done;
    if (u->interrupted)
        snprintf(u->b->why, sizeof u->b->why, "interrupted while kernels were compiled");
    return !u->failed && !u->interrupted && keep_jobs(u);
}

static bool build_all(NvrtcBuild *u)
{
    CudaBuild *b = u->b;
    hash_keys(u);
    for (size_t i = 0; i < b->n; i++)
        if (first_alike(u, i) == i && !find_cached(u, i))
            u->missing[u->n_missing++] = (Missing){(uint32_t)i, b->kernel[i].length};
    if (u->n_missing && b->compiling)
        b->compiling(b->user, u->n_missing);
    if (u->n_missing && !compile_missing(u))
        return false;
    for (size_t i = 0; i < b->n; i++) {
        size_t first = first_alike(u, i);
        if (first < i) {
            b->code[i] = b->code[first];
            b->code[i].cached = true;
        }
    }
    return true;
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The blocks of a build, released whether it went well or memory ran out. */
static void release(NvrtcBuild *u)
{
    if (u->n_missing && u->b->compiling)
        u->b->compiling(u->b->user, 0);
    for (size_t i = 0; i < u->n_job; i++) {
        free(u->job[i].cubin);
        free(u->job[i].log);
    }
    ctx_release(u->ctx, u->object);
    ctx_release(u->ctx, u->missing);
    ctx_release(u->ctx, u->job);
    ctx_release(u->ctx, u->key);
}

Status nvrtc_build(const Nvrtc *n, CudaBuild *b)
{
    NvrtcBuild u = {.nvrtc = n, .b = b, .ctx = arena_ctx(b->arena)}, *volatile at = &u;
    CtxGuard guard;
    double start = seconds_now();
    b->why[0] = 0;
    b->compiled = 0;
    if (!nvrtc_can(n, b->arch, b->why))
        return ST_ENVIRONMENT;
    u.n_option = gather_options(b, u.arch, u.option);
    for (int i = 0; i < u.n_option; i++)
        snprintf(u.all_options + strlen(u.all_options),
                 sizeof u.all_options - strlen(u.all_options), "%s%s", i ? " " : "",
                 u.option[i]);
    volatile bool good = false;
    if (CTX_TRY(u.ctx, &guard)) {
        at->key = ctx_alloc(at->ctx, (b->n + 1) * sizeof *at->key);
        at->missing = ctx_alloc(at->ctx, (b->n + 1) * sizeof *at->missing);
        at->job = ctx_alloc(at->ctx, (b->n + 1) * sizeof *at->job);
        at->object = ctx_alloc(at->ctx, (b->n + 1) * sizeof *at->object);
        good = build_all(at);
        ctx_leave(at->ctx, &guard);
    } else {
        snprintf(b->why, sizeof b->why, "out of memory while kernels are compiled");
    }
    release(at);
    b->seconds = seconds_now() - start;
    return good ? ST_OK : at->interrupted ? ST_INTERRUPTED : ST_ENVIRONMENT;
}
