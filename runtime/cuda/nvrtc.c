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
    int (*create)(NvrtcProgram *out, const char *text, const char *name, int headers, const char *const *header,
                  const char *const *include_name);
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
    if (t->version(&out->major, &out->minor) || t->count_archs(&n) || n < 0 || n > (int)COUNT_OF(list) ||
        (n && t->archs(list))) {
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
    case 80:
    case 87: return 163 * 1024;
    case 90:
    case 100:
    case 103:
    case 110: return 227 * 1024;
    default: return 99 * 1024; /* 86, 89, 120, 121 */
    }
}

/* ---- options ---- */

/* No built-in headers; addresses in 64 bits; no option that trades exactness for speed. */
static const char *const common_options[] = {"--minimal", "--std=c++17"};
/* How a kernel is compiled. Of one that spills threads ask for their number wherever it is used (tiles.cu); of what spills with fewer blocks,
 * too, nothing is done that takes registers to save time: compilers have that since 13.0, as far as was seen. At last no loop is written out. */
typedef enum Saving { /* register-saving levels */
                      AS_WRITTEN,
                      NUMBER_AGAIN,
                      ALL_SAVINGS,
                      ONE_ROUND,
                      SAVINGS
} Saving;
enum { SAVING_SINCE = 13 };
static const char *const saving_option[SAVINGS] = {[NUMBER_AGAIN] = "-DVWN_FEW_REGISTERS",
                                                   [ALL_SAVINGS] = "--ptxas-options=--register-usage-level=0",
                                                   [ONE_ROUND] = "-DVWN_ONE_ROUND"};
enum { OPTIONS = 16 };

static int by_text(const void *a, const void *b) { return strcmp(*(const char *const *)a, *(const char *const *)b); }

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
    Saving saving; /* of all of its kernels */
    bool done;     /* false: not tried after another failed */
} Job;
typedef struct Missing {
    uint32_t kernel;
    int64_t blocks; /* that its text is to ask for now, instead of its own; 0: its own */
    Saving saving;
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
    Missing *missing; /* to be compiled now, the longest first */
    size_t n_missing;
    Job *job;
    size_t n_job;
    NvrtcObject *object;
    size_t n_object;
    bool failed; /* set by any thread, read as a hint */
    bool interrupted, reported;
} NvrtcBuild;

static void hash_keys(NvrtcBuild *u)
{
    static const char format[] = "vwn kernel for cuda, 5";
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
static bool take_kernel(NvrtcBuild *u, size_t i, const void *cubin, size_t size, CudaCode *out, char why[256])
{
    Cubin facts;
    if (!cubin_read(u->b->arena, cubin, size, &facts, why))
        return false;
    const CubinKernel *k = cubin_find(&facts, u->b->kernel[i].name);
    if (!k) {
        snprintf(why, 256, "the text does not define it");
        return false;
    }
    *out = (CudaCode){.cubin = cubin, .size = size, .facts = *k, .log = ""};
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
    bool good = o && take_kernel(u, i, o->bytes, o->size, &u->b->code[i], why);
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
    if (x->saving != y->saving)
        return (int)x->saving - (int)y->saving;
    return x->length != y->length ? (x->length < y->length) - (x->length > y->length)
                                  : (x->kernel > y->kernel) - (x->kernel < y->kernel);
}

static void make_programs(NvrtcBuild *u)
{
    u->n_job = 0;
    qsort(u->missing, u->n_missing, sizeof *u->missing, longest_first);
    size_t text = 0;
    for (size_t i = 0; i < u->n_missing; i++) {
        Job *last = u->n_job ? &u->job[u->n_job - 1] : NULL;
        text += u->missing[i].length;
        if (!last || text > PROGRAM_TEXT || last->n == PROGRAM_KERNELS || last->saving != u->missing[i].saving) {
            last = &u->job[u->n_job++];
            *last = (Job){.first = i, .saving = u->missing[i].saving};
            text = u->missing[i].length;
        }
        last->n++;
    }
}

/* ---- fewer blocks ---- */

/* A text says how many blocks a multiprocessor shall hold at once: `128, 4) name(` stands before its
 * parameters. Out: where the 4 stands, and behind it; false: it says nothing. */
static bool find_bound(const CudaText *k, const char **number, const char **behind)
{
    const char *end = k->text + k->length, *p = k->text;
    size_t n = strlen(k->name);
    for (; (p = memmem(p, (size_t)(end - p), k->name, n)); p += n) {
        const char *at = p;
        if (p + n == end || p[n] != '(')
            continue;
        while (at > k->text && (at[-1] == ' ' || at[-1] == '\n'))
            at--;
        if (at == k->text || *--at != ')')
            continue;
        *behind = at;
        while (at > k->text && at[-1] >= '0' && at[-1] <= '9')
            at--;
        *number = at;
        while (at > k->text && at[-1] == ' ')
            at--;
        if (*number < *behind && at > k->text && at[-1] == ',')
            return true;
    }
    return false;
}

static int64_t blocks_of(const CudaText *k)
{
    const char *number, *behind;
    return find_bound(k, &number, &behind) ? strtol(number, NULL, 10) : 0;
}

/* Registers that so many blocks leave each of their threads: each quarter of a multiprocessor has as many,
 * and its share of the warps; they are dealt out by eights, and an instruction names one of 255. */
static int64_t registers_left(int64_t threads, int64_t blocks)
{
    enum { QUARTERS = 4, QUARTER = 16 << 10, LANES = 32, AT_ONCE = 8, MOST = 255 };
    int64_t warps = (threads + LANES - 1) / LANES * blocks;
    int64_t n = QUARTER / ((warps + QUARTERS - 1) / QUARTERS * LANES) / AT_ONCE * AT_ONCE;
    return n < MOST ? n : MOST;
}

/* The most blocks that leave a thread more registers than `blocks` do; 0: there are none. */
static int64_t fewer_blocks(int64_t threads, int64_t blocks)
{
    int64_t n = blocks - 1;
    while (n > 0 && registers_left(threads, n) <= registers_left(threads, blocks))
        n--;
    return n > 0 ? n : 0;
}

/* Bytes that a thread moves for want of registers. An array with computed indices has a frame and moves none. */
static int64_t spilled(const CudaCode *code) { return code->facts.spill_stores + code->facts.spill_loads; }

/* With how many blocks a kernel that spills is to be compiled again; 0: fewer do not help. A block alone has none beside it
 * that works while it waits: that costs more than moving a few bytes. */
static int64_t blocks_to_try(const NvrtcBuild *u, const Missing *m)
{
    enum { MUCH = 128 }; /* bytes */
    const CudaCode *code = &u->b->code[m->kernel];
    int64_t blocks = m->blocks ? m->blocks : blocks_of(&u->b->kernel[m->kernel]);
    int64_t fewer = code->facts.max_threads > 0 ? fewer_blocks(code->facts.max_threads, blocks) : 0;
    return fewer == 1 && spilled(code) <= MUCH ? 0 : fewer;
}

/* Is the number of a thread in its row a word of the text? */
static bool has_number(const CudaText *k) { return memmem(k->text, k->length, "vwn_thread_of_row<", 18); }
/* Are rounds of a loop of threads written out in it? */
static bool has_rounds(const CudaText *k) { return memmem(k->text, k->length, "vwn_rounds(", 11); }

/* How a kernel that was compiled is to be compiled again; false: it is what it will be. */
static bool next_try(const NvrtcBuild *u, Missing *m)
{
    if (!spilled(&u->b->code[m->kernel]) || m->saving == ONE_ROUND)
        return false;
    if (m->saving == ALL_SAVINGS) {
        m->saving = ONE_ROUND;
        return has_rounds(&u->b->kernel[m->kernel]);
    }
    if (m->saving == AS_WRITTEN && has_number(&u->b->kernel[m->kernel])) {
        m->saving = NUMBER_AGAIN;
        return true;
    }
    int64_t fewer = blocks_to_try(u, m);
    m->saving = fewer ? AS_WRITTEN : ALL_SAVINGS;
    m->blocks = fewer ? fewer : m->blocks;
    return fewer || u->nvrtc->major >= SAVING_SINCE;
}

/* ---- the source ---- */

/* A kernel's text with the blocks that it is to ask for, which have no more digits than its own. Returns its length. */
static size_t put_text(char *out, const CudaText *k, int64_t blocks)
{
    const char *number, *behind, *end = k->text + k->length;
    if (!blocks || !find_bound(k, &number, &behind)) {
        memcpy(out, k->text, k->length);
        return k->length;
    }
    size_t at = (size_t)(number - k->text);
    memcpy(out, k->text, at);
    at += (size_t)sprintf(out + at, "%lld", (long long)blocks);
    memcpy(out + at, behind, (size_t)(end - behind));
    return at + (size_t)(end - behind);
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
        at += put_text(s + at, k, u->missing[i].blocks);
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
    const char *option[OPTIONS + SAVINGS];
    int n_option = u->n_option;
    char *source = source_of(u, job->first, job->n);
    memcpy(option, u->option, sizeof u->option);
    for (Saving a = NUMBER_AGAIN; a < SAVINGS && a <= job->saving; a++)
        option[n_option++] = saving_option[a];
    job->done = true;
    job->failed = job->first;
    job->result = source ? t->create(&p, source, "prelude", 0, NULL, NULL) : -1;
    if (!job->result) {
        job->result = t->compile(p, n_option, option);
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
        Job one = {.first = job->first + i, .n = 1, .saving = job->saving};
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
    bool own = number && sentence && sentence < line + length && strlen(k->name) == (size_t)(number - line) &&
               !memcmp(line, k->name, (size_t)(number - line));
    if (!own) {
        snprintf(text, size, "%.*s", length < 300 ? length : 300, line);
        return;
    }
    long at = strtol(number + 1, NULL, 10);
    const char *source = line_of(k, at, &shown);
    sentence += strlen("): error: ");
    length -= (int)(sentence - line);
    snprintf(text, size, "line %ld: %.*s: `%.*s`", at, length < 300 ? length : 300, sentence, shown < 200 ? shown : 200,
             source);
}

static void report(NvrtcBuild *u, size_t kernel, const char *reason)
{
    const CudaText *k = &u->b->kernel[kernel];
    bool place = k->place && *k->place;
    if (u->b->why[0])
        return;
    snprintf(u->b->why, sizeof u->b->why, "the CUDA compiler failed for %.40s on the kernel %.80s%s%.200s: %.600s",
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
            snprintf(reason, sizeof reason, "libnvrtc-builtins does not lie beside %.400s", u->nvrtc->path);
        else
            snprintf(reason, sizeof reason, "%.300s",
                     job->result < 0 ? "out of memory" : u->nvrtc->call->error_text(job->result));
        report(u, kernel, reason);
    }
}

/* ---- keeping ---- */

static void store(NvrtcBuild *u, size_t i, const char object[65])
{
    const CubinKernel *k = &u->b->code[i].facts;
    char facts[256], compiler[64];
    snprintf(facts, sizeof facts, "\"registers\": %d, \"frame\": %lld, \"spilled\": %lld, \"shared\": %lld, ",
             k->registers, (long long)k->frame, (long long)(k->spill_stores + k->spill_loads), (long long)k->shared);
    snprintf(compiler, sizeof compiler, "NVRTC %d.%d", u->nvrtc->major, u->nvrtc->minor);
    cache_put_entry(u->b->cache, u->key[i], object, u->b->kernel[i].name, compiler, u->all_options, facts);
}

/* Takes the kernels of a program; of one that was compiled before, what spills less. With few registers in mind code takes longer, so it
 * is taken if it spills nothing. */
static bool take_job(NvrtcBuild *u, const Job *job)
{
    CudaBuild *b = u->b;
    char why[256];
    const void *cubin = kept(b->arena, job->cubin, job->size);
    const char *log = job->log ? arena_copy(b->arena, job->log, strlen(job->log)) : "";
    for (size_t j = job->first; j < job->first + job->n; j++) {
        size_t i = u->missing[j].kernel;
        CudaCode made, *code = &b->code[i];
        if (!take_kernel(u, i, cubin, job->size, &made, why)) {
            report(u, i, why);
            return false;
        }
        made.log = log;
        bool better = job->saving ? !spilled(&made) : spilled(&made) < spilled(code);
        if (!code->cubin || better)
            *code = made;
    }
    return true;
}

/* Each kernel has an entry of its own, and those of a program share an object. One that is to be compiled
 * again has none yet: a build that is interrupted must not leave what is not the last word. */
static void store_settled(NvrtcBuild *u)
{
    const void *cubin = NULL;
    char object[65];
    bool there = false;
    for (size_t j = 0; j < u->n_missing && u->b->cache; j++) {
        size_t i = u->missing[j].kernel;
        const CudaCode *code = &u->b->code[i];
        Missing again = u->missing[j];
        if (next_try(u, &again))
            continue;
        if (code->cubin != cubin)
            there = cache_put_object(u->b->cache, code->cubin, code->size, object);
        cubin = code->cubin;
        if (there)
            store(u, i, object);
    }
}

static void free_jobs(NvrtcBuild *u)
{
    for (size_t i = 0; i < u->n_job; i++) {
        free(u->job[i].cubin);
        free(u->job[i].log);
    }
    u->n_job = 0;
}

static bool take_jobs(NvrtcBuild *u)
{
    for (size_t j = 0; j < u->n_job; j++)
        if (!take_job(u, &u->job[j]))
            return false;
    store_settled(u);
    free_jobs(u);
    return true;
}

/* What spills is missing once more. */
static void keep_spilled(NvrtcBuild *u)
{
    size_t n = 0;
    for (size_t j = 0; j < u->n_missing; j++) {
        Missing m = u->missing[j];
        if (next_try(u, &m))
            u->missing[n++] = m;
    }
    u->n_missing = n;
}

static bool compile_missing(NvrtcBuild *u)
{
    int jobs = u->b->jobs > 0 ? u->b->jobs : threads_available();
    make_programs(u);
    Pool *pool = u->n_job > 1 && jobs > 1 ? pool_open(jobs) : NULL;
    parallel_for(pool, (int64_t)u->n_job, 1, run_jobs, u);
    pool_close(pool);
    report_jobs(u);
    for (size_t i = 0; i < u->n_job && !u->failed; i++)
        u->interrupted = u->interrupted || !u->job[i].done;
    if (u->interrupted)
        snprintf(u->b->why, sizeof u->b->why, "interrupted while kernels were compiled");
    return !u->failed && !u->interrupted && take_jobs(u);
}

/* Rounds of kernels that are compiled, the first of all that are missing, later ones of what spills. */
static bool compile_until_settled(NvrtcBuild *u)
{
    CudaBuild *b = u->b;
    b->compiled = u->n_missing;
    while (u->n_missing) {
        if (!compile_missing(u))
            return false;
        keep_spilled(u);
        b->again += u->n_missing;
    }
    if (b->cache && b->compiled)
        cache_prune(b->cache);
    return true;
}

static bool build_all(NvrtcBuild *u)
{
    CudaBuild *b = u->b;
    hash_keys(u);
    for (size_t i = 0; i < b->n; i++)
        if (first_alike(u, i) == i && !find_cached(u, i)) {
            b->code[i] = (CudaCode){0};
            u->missing[u->n_missing++] = (Missing){.kernel = (uint32_t)i, .length = b->kernel[i].length};
        }
    u->reported = u->n_missing && b->compiling;
    if (u->reported)
        b->compiling(b->user, u->n_missing);
    if (!compile_until_settled(u))
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
    if (u->reported)
        u->b->compiling(u->b->user, 0);
    free_jobs(u);
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
    b->compiled = b->again = 0;
    if (!nvrtc_can(n, b->arch, b->why))
        return ST_ENVIRONMENT;
    u.n_option = gather_options(b, u.arch, u.option);
    for (int i = 0; i < u.n_option; i++)
        snprintf(u.all_options + strlen(u.all_options), sizeof u.all_options - strlen(u.all_options), "%s%s",
                 i ? " " : "", u.option[i]);
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
