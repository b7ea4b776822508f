/* build.c - CUDA text to cubins: several at once, from the cache, and what is said of mistakes.
 *
 * In:  nothing (skipped where there is no NVRTC).
 * Out: `N passed, N failed`.
 * When: quick, released.
 */
#define _GNU_SOURCE
#include "cuda_texts.h"

#include "runtime/children.h"
#include "runtime/plans.h"

static const CudaText *two(void)
{
    static CudaText t[2];
    t[0] = cuda_text("k_one", CUDA_TWICE("k_one", "1"));
    t[1] = cuda_text("k_two", CUDA_TWICE("k_two", "2"));
    return t;
}

/* Builds two kernels with the cache of a folder; counts what was found and compiled. */
static Status build_two(const char *folder, const char *arch, const char *prelude, int *cached, int *compiled,
                        char note[CACHE_NOTE])
{
    Ctx *ctx = ctx_new(NULL);
    Nvrtc n;
    char why[512];
    Cache cache;
    CudaCode code[2];
    CudaBuild b = {.prelude = prelude, .cache = &cache, .jobs = 2};
    *cached = *compiled = 0;
    cache_open(&cache, CACHE_CUBINS, folder);
    Status status = nvrtc_open(ctx, &n, why) ? build_texts(ctx, &n, &b, arch, two(), 2, code) : ST_ENVIRONMENT;
    for (int i = 0; i < 2 && status == ST_OK; i++) {
        *cached += code[i].cached;
        if (code[i].facts.registers < 4 || code[i].facts.max_threads != 128 || !code[i].size)
            status = ST_BUG;
    }
    *compiled = (int)b.compiled;
    if (note)
        snprintf(note, CACHE_NOTE, "%s", cache.note);
    cache_close(&cache);
    ctx_free(ctx);
    return status;
}

static bool counts(const char *folder, int cached, int compiled)
{
    int found, made;
    char note[CACHE_NOTE];
    Status status = build_two(folder, "sm_80", NULL, &found, &made, note);
    bool good = status == ST_OK && found == cached && made == compiled && !note[0];
    if (!good)
        fprintf(stderr,
                "    %d of two kernels came from the cache and %d were compiled, wanted %d and %d; status %d %s\n",
                found, made, cached, compiled, (int)status, note);
    return good;
}

static void test_cache(Harness *h, const char *folder)
{
    int found, made;
    CHECK(h, counts(folder, 0, 2));
    CHECK(h, counts(folder, 2, 0));
    CHECK(h,
          count_files(folder, ".cubin") == 1 && count_files(folder, ".json") == 2 && count_files(folder, ".so") == 0);
    /* Another architecture and another prelude are other keys. */
    CHECK(h, build_two(folder, "sm_90a", NULL, &found, &made, NULL) == ST_OK && made == 2);
    CHECK(h, build_two(folder, "sm_80", "typedef float real;\n#define TWICE(x) (x)\n", &found, &made, NULL) == ST_OK &&
                 made == 2);
    CHECK(h, counts(folder, 2, 0));
    for (int how = 0; how <= 4; how++) {
        damage(folder, ".cubin", how);
        CHECK(h, counts(folder, 0, 2));
        damage(folder, ".json", how);
        CHECK(h, counts(folder, 0, 2));
        CHECK(h, counts(folder, 2, 0)); /* it was replaced */
    }
    CHECK(h, counts("", 0, 2));
    CHECK(h, count_files(folder, ".tmp-") == 0);
}

static bool builds_well(const char *folder)
{
    int found, made;
    return build_two(folder, "sm_80", NULL, &found, &made, NULL) == ST_OK;
}

static void test_at_once(Harness *h, const char *folder)
{
    pid_t child[3];
    for (size_t i = 0; i < COUNT_OF(child); i++)
        child[i] = start_child(builds_well, folder);
    for (size_t i = 0; i < COUNT_OF(child); i++)
        CHECK(h, end_child(child[i]) == 0);
    CHECK(h, counts(folder, 2, 0));
    CHECK(h, count_files(folder, ".tmp-") == 0);
}

static bool note_says(const char *folder, const char *part)
{
    int found, made;
    char note[CACHE_NOTE];
    return build_two(folder, "sm_80", NULL, &found, &made, note) == ST_OK && made == 2 && strstr(note, part);
}

static bool foreign_owner(const char *folder)
{
    if (geteuid() != 0 || chown(folder, NOBODY, NOBODY) != 0)
        return skip_case();
    return note_says(folder, "belongs to another user") && count_files(folder, "") == 0;
}

/* A home that cannot be written: the place of the cache cannot even be made. */
static bool read_only_home(const char *folder)
{
    char path[400];
    if (geteuid() == 0 && (chown(folder, NOBODY, NOBODY) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0))
        return skip_case();
    if (access(folder, X_OK) != 0)
        return skip_case();
    chmod(folder, 0500);
    snprintf(path, sizeof path, "%s/.cache/vwn", folder);
    bool good = note_says(path, "cannot be used");
    chmod(folder, 0700);
    return good;
}

/* Cubins are data: a folder that forbids execution keeps them. */
static bool no_execution(const char *folder)
{
    if (!mounted(folder, MS_NOEXEC, "size=16m"))
        return skip_case();
    return counts(folder, 0, 2) && counts(folder, 2, 0);
}

/* The compiler's message of one text, for the architecture. */
static const char *message(Ctx *ctx, const Nvrtc *n, const char *arch, CudaText text)
{
    CudaCode code;
    CudaBuild b = {0};
    Status status = build_texts(ctx, n, &b, arch, &text, 1, &code);
    return arena_printf(ctx->program, "%s%s", status == ST_ENVIRONMENT ? "" : "no failure: ", b.why);
}

static bool says(const char *text, const char *wanted)
{
    if (strcmp(text, wanted) == 0)
        return true;
    fprintf(stderr, "    got    %s\n    wanted %s\n", text, wanted);
    return false;
}

static void test_messages(Harness *h, Ctx *ctx, const Nvrtc *n)
{
    CudaText bad = cuda_text("k_bad", CUDA_TWICE("k_bad", "unknown"));
    bad.place = "layer[2].ffn at gpt.vwn:12:5";
    CHECK(h, says(message(ctx, n, "sm_90a", bad),
                  "the CUDA compiler failed for sm_90a on the kernel k_bad of layer[2].ffn at "
                  "gpt.vwn:12:5: line 6: identifier \"unknown\" is undefined: `x[i] = TWICE(x[i]) + "
                  "unknown;`"));
    CHECK(h, says(message(ctx, n, "sm_80", cuda_text("k_other", CUDA_TWICE("k_bad", "1"))),
                  "the CUDA compiler failed for sm_80 on the kernel k_other: the text does not "
                  "define it"));
    CHECK(h, strstr(message(ctx, n, "sm_30", cuda_text("k_one", "")), "makes no code for sm_30;"));
    CHECK(h, strstr(message(ctx, n, "", cuda_text("k_one", "")), "makes no code for "));
    /* A mistake in the prelude is none of the kernel's lines. */
    CudaCode code;
    CudaBuild b = {.prelude = "typedef nothing real;\n"};
    CudaText text = cuda_text("k_one", CUDA_TWICE("k_one", "1"));
    CHECK(h, build_texts(ctx, n, &b, "sm_80", &text, 1, &code) == ST_ENVIRONMENT);
    CHECK(h, strstr(b.why, "prelude(1): error: identifier \"nothing\" is undefined"));
}

/* Many kernels by one and by several threads: the same bytes, and equal texts once. */
static void test_pool(Harness *h, Ctx *ctx, const Nvrtc *n)
{
    enum { KERNELS = 7 };
    CudaText text[KERNELS + 1];
    CudaCode code[2][KERNELS + 1];
    for (int i = 0; i < KERNELS; i++) {
        const char *name = arena_printf(ctx->program, "k_%d", i);
        text[i] = cuda_text(name, arena_printf(ctx->program,
                                               "extern \"C\" __global__ void %s(real *x)\n{\n"
                                               "    x[threadIdx.x] += %d;\n}\n",
                                               name, i));
    }
    text[KERNELS] = text[3];
    for (int i = 0; i < 2; i++) {
        CudaBuild b = {.jobs = i ? 3 : 1};
        CHECK(h, build_texts(ctx, n, &b, "sm_80", text, KERNELS + 1, code[i]) == ST_OK);
        CHECK(h, b.compiled == KERNELS && !code[i][0].cached && code[i][KERNELS].cached);
        CHECK(h, code[i][KERNELS].cubin == code[i][3].cubin);
    }
    for (int k = 0; k < KERNELS; k++)
        CHECK(h, code[0][k].size == code[1][k].size && !strcmp(code[0][k].facts.name, text[k].name) &&
                     !memcmp(code[0][k].cubin, code[1][k].cubin, code[0][k].size));
    /* Short ones share a program, and each is what it is alone. */
    CHECK(h, code[0][0].cubin == code[0][KERNELS - 1].cubin);
    for (int k = 0; k < KERNELS; k++) {
        CudaCode alone;
        CudaBuild b = {.jobs = 1};
        CHECK(h, build_texts(ctx, n, &b, "sm_80", &text[k], 1, &alone) == ST_OK);
        CHECK(h, alone.size < code[0][k].size && alone.facts.code == code[0][k].facts.code &&
                     alone.facts.registers == code[0][k].facts.registers);
    }
    /* One of them is wrong: nothing is handed out, and it is named. */
    CudaBuild b = {.jobs = 3};
    text[5].text = "no C\n";
    text[5].length = 5;
    CHECK(h, build_texts(ctx, n, &b, "sm_80", text, KERNELS, code[0]) == ST_ENVIRONMENT);
    CHECK(h, strstr(b.why, "the kernel k_5: line 1: "));
}

/* ---- kernels that spill ---- */

typedef struct Spilling {
    const char *name, *text;
    size_t again;       /* times it is compiled once more */
    int least, most;    /* registers that it has then */
    bool spills, frame; /* still */
    bool only_fake;     /* the fake compiler alone spills it, and not with few registers in mind: once more */
} Spilling;
/* A thread has some 168 values. */
static const Spilling spilling[] = {
    {"k_room", CUDA_MANY("k_room", "256, 2"), 1, 129, 255, false, false, false},
    {"k_better", CUDA_MANY("k_better", "512, 2"), 2, 65, 128, true, true, false},
    {"k_one_block", CUDA_MANY("k_one_block", "512, 1"), 1, 65, 128, true, true, false},
    {"k_unsaid", CUDA_MANY("k_unsaid", "512"), 1, 16, 128, true, true, false},
    {"k_few", CUDA_VALUES("k_few", "256, 2", "31", "144"), 1, 65, 128, true, true,
     false}, /* few bytes: no block is given up */
    {"k_thrifty", CUDA_VALUES("k_thrifty", "256, 2", "24", "131"), 0, 65, 128, false, false, true},
    {"k_numbers", CUDA_NUMBERED("k_numbers", "256, 3", "86"), 1, 41, 80, false, false,
     false}, /* no block is given up */
    {"k_rounds", CUDA_ROUNDS("k_rounds", "256, 2", "144"), 2, 41, 128, false, false,
     false}, /* few registers in mind are not enough */
    {"k_twice", CUDA_MANY("k_twice", "128, 6"), 3, 129, 255, false, false, false}, /* 5, 4 and 3 */
    {"k_steps", CUDA_MANY("k_steps", "256, 8"), 6, 129, 255, false, false, false}, /* 7 leave the 32 registers of 8 */
    {"k_quarters", CUDA_MANY("k_quarters", "64, 8"), 1, 129, 255, false, false,
     false}, /* 7 leave a quarter four warps, too */
    {"k_array", CUDA_ARRAY("k_array", "__launch_bounds__(128, 4)"), 0, 4, 128, false, true, false},
    {"k_enough", CUDA_TWICE("k_enough", "1"), 0, 4, 128, false, false, false},
};
enum { SPILLING = COUNT_OF(spilling) };

static bool is_fake(const Nvrtc *n) { return strstr(n->path, "fake_cuda") != NULL; }

static size_t again_of(const Spilling *s, const Nvrtc *n) { return s->again + (s->only_fake && is_fake(n)); }

static bool as_wanted(const Spilling *s, const CudaCode *code, bool again)
{
    const CubinKernel *f = &code->facts;
    bool good = again && f->registers >= s->least && f->registers <= s->most && !strcmp(f->name, s->name) &&
                (f->spill_stores > 0) == s->spills && (f->spill_loads > 0) == s->spills && (f->frame > 0) == s->frame;
    if (!good)
        fprintf(stderr, "    %s: compiled %s often, %d registers, %lld bytes spilled, a frame of %lld\n", s->name,
                again ? "as" : "not as", f->registers, (long long)(f->spill_stores + f->spill_loads),
                (long long)f->frame);
    return good;
}

/* What spills is compiled with numbers of threads that are asked for again, where its text has one; for fewer blocks, as long as these
 * leave a thread more registers; with few registers in mind; and at last with no loop written out, where its text has one that is;
 * what is best is kept, and found by the next build. */
static void test_spills(Harness *h, Ctx *ctx, const Nvrtc *n, const char *folder)
{
    CudaText text[SPILLING];
    CudaCode alone, first[SPILLING], second[SPILLING];
    CudaBuild b = {.jobs = 2};
    Cache cache;
    size_t again = 0;
    for (int i = 0; i < SPILLING; i++) {
        text[i] = cuda_text(spilling[i].name, spilling[i].text);
        again += again_of(&spilling[i], n);
        CHECK(h, build_texts(ctx, n, &b, "sm_90a", &text[i], 1, &alone) == ST_OK);
        CHECK_CASE(h, b.compiled == 1 && as_wanted(&spilling[i], &alone, b.again == again_of(&spilling[i], n)),
                   spilling[i].name);
    }
    cache_open(&cache, CACHE_CUBINS, folder);
    b.cache = &cache;
    CHECK(h, build_texts(ctx, n, &b, "sm_90a", text, SPILLING, first) == ST_OK);
    CHECK(h, b.compiled == SPILLING && b.again == again && count_files(folder, ".json") == SPILLING);
    /* Two programs of those that need no second one, as twelve are one; of k_room with k_better and k_quarters, of k_twice for three blocks, of k_steps for one,
     * of k_numbers, of k_rounds and of k_thrifty. */
    CHECK(h, count_files(folder, ".cubin") == 7 + is_fake(n));
    CHECK(h, build_texts(ctx, n, &b, "sm_90a", text, SPILLING, second) == ST_OK && !b.compiled && !b.again);
    for (int i = 0; i < SPILLING; i++) {
        CHECK_CASE(h, as_wanted(&spilling[i], &first[i], true), "with others");
        CHECK_CASE(h, second[i].cached && as_wanted(&spilling[i], &second[i], true), "from the cache");
        CHECK(h, first[i].size == second[i].size && !memcmp(first[i].cubin, second[i].cubin, first[i].size));
    }
    cache_close(&cache);
}

/* ---- no memory ---- */

/* Every allocation fails once: no crash, and a sentence. */
typedef struct Counter {
    long left;
} Counter;

static void *counted(void *user, void *p, size_t old_size, size_t new_size)
{
    Counter *c = user;
    (void)old_size;
    if (!new_size) {
        free(p);
        return NULL;
    }
    return c->left-- > 0 ? realloc(p, new_size) : NULL;
}

/* One build with so many allocations: 1 it went well, 0 it failed, -1 not even the compiler's
 * functions were found. */
static int build_with(Harness *h, const char *folder, long allocations)
{
    Counter c = {allocations};
    Ctx *ctx = ctx_new(&(Allocator){counted, &c});
    Nvrtc n;
    char why[512];
    Cache cache;
    CudaCode code[2];
    CtxGuard guard;
    CudaBuild b = {.cache = &cache, .jobs = 1};
    volatile int result = -1;
    if (!ctx)
        return result;
    cache_open(&cache, CACHE_CUBINS, folder);
    if (CTX_TRY(ctx, &guard)) {
        if (nvrtc_open(ctx, &n, why))
            result = build_texts(ctx, &n, &b, "sm_80", two(), 2, code) == ST_OK;
        if (result == 0)
            CHECK(h, strstr(b.why, "out of memory"));
        ctx_leave(ctx, &guard);
    }
    cache_close(&cache);
    ctx_free(ctx);
    return result;
}

static void test_no_memory(Harness *h, const char *folder)
{
    int failures = 0, result = 0;
    for (long most = 1; most < 100 && result < 1; most++) {
        result = build_with(h, folder, most);
        failures += result == 0;
    }
    CHECK(h, result == 1 && failures > 0);
}

int main(void)
{
    Harness h = {0};
    Ctx *ctx = ctx_new(NULL);
    Nvrtc n;
    char folder[256], path[300], why[512];
    if (!open_or_skip(ctx, &n)) {
        ctx_free(ctx);
        return SKIPPED;
    }
    CHECK(&h, n.build_id[0] && n.n_arch > 0 && nvrtc_can(&n, "sm_90a", why) && !nvrtc_can(&n, "90", why));
    if (!make_folder(folder))
        return 1;
    test_messages(&h, ctx, &n);
    test_pool(&h, ctx, &n);
    snprintf(path, sizeof path, "%s/cache", folder);
    test_cache(&h, path);
    test_no_memory(&h, path);
    snprintf(path, sizeof path, "%s/spills", folder);
    test_spills(&h, ctx, &n, path);
    snprintf(path, sizeof path, "%s/at-once", folder);
    test_at_once(&h, path);
    snprintf(path, sizeof path, "%s/foreign", folder);
    mkdir(path, 0700);
    check_child(&h, foreign_owner, path, "a folder of another user");
    snprintf(path, sizeof path, "%s/noexec", folder);
    mkdir(path, 0700);
    check_child(&h, no_execution, path, "a folder that forbids execution");
    char open_place[] = "/tmp/vwn-test-XXXXXX"; /* reachable by other users */
    if (mkdtemp(open_place)) {
        check_child(&h, read_only_home, open_place, "a home that cannot be written");
        remove_folder(open_place);
    }
    remove_folder(folder);
    ctx_free(ctx);
    return harness_end(&h);
}
