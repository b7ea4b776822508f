/* backend.c - the CPU backend on plans written by hand: kernels, counts, and every way to
 * fail.
 *
 * In:  nothing (a C compiler must be there).   Out: `N passed, N failed`.
 * When: quick, checked, optimised.
 */
#define _GNU_SOURCE
#include "runtime/cpu/backend_cpu.h"
#include "plans.h"

#include "support/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>

static const char *const both[] = {"k_scale", HAND_SCALE, "k_twice", HAND_TWICE, NULL};

static Status open_plain(Ctx *ctx, const BackendOptions *how, Backend **b, char why[512])
{
    BackendOptions o = *how;
    if (!o.products)
        o.products = "plain";
    return backend_cpu_open(ctx, &o, b, why);
}

/* Runs both kernels on n numbers and says whether every number is right. */
static bool run_both(Backend *b, Module *m, int64_t n, int64_t grain)
{
    void *x = NULL, *y = NULL;
    bool ok = b->ops->alloc(b, (uint64_t)n * 4, &x) == ST_OK && b->ops->alloc(b, (uint64_t)n * 4, &y) == ST_OK;
    ok = ok && (uintptr_t)x % 64 == 0 && (uintptr_t)y % 64 == 0;
    for (int64_t i = 0; ok && i < n; i++) {
        float v = (float)(i % 1000);
        ok = ((float *)x)[i] == 0 && b->ops->upload(b, (float *)x + i, &v, 4) == ST_OK;
    }
    void *p[2] = {x, y}, *q[1] = {y};
    int64_t three = 3;
    double half = 0.5;
    ok = ok && b->ops->launch(b, m, 0, p, &three, &half, NULL, n, grain) == ST_OK &&
         b->ops->launch(b, m, 1, q, NULL, NULL, NULL, n, grain) == ST_OK && b->ops->sync(b) == ST_OK;
    for (int64_t i = 0; ok && i < n; i++) {
        float v;
        ok = b->ops->download(b, &v, (float *)y + i, 4) == ST_OK && v == (float)(i % 1000) + 6;
    }
    b->ops->free(b, x, (uint64_t)n * 4);
    b->ops->free(b, y, (uint64_t)n * 4);
    return ok;
}

static void test_kernels(Harness *h)
{
    Ctx *ctx = ctx_new(NULL);
    char why[512];
    HandPlan plan;
    hand_plan(&plan, ctx, both);
    for (int threads = 1; threads <= 4; threads++) {
        Backend *b;
        Module *m, *again;
        BuildReport r;
        BackendOptions how = {.threads = threads, .cache_dir = ""};
        if (!CHECK(h, open_plain(ctx, &how, &b, why) == ST_OK))
            continue;
        CHECK(h, b->ops->build(b, &plan.plan, &m, &r) == ST_OK);
        CHECK(h, r.kernels == 2 && r.cached == 0 && r.compiled == 2 && r.seconds > 0);
        CHECK(h, !r.why[0] && !r.note[0]);
        CHECK(h, run_both(b, m, 1, 1));
        CHECK(h, run_both(b, m, 100003, 1000));
        CHECK(h, run_both(b, m, 1 << 20, 4096)); /* large blocks */
        CHECK(h, b->ops->launch(b, m, 2, NULL, NULL, NULL, NULL, 1, 1) == ST_BUG);
        b->why[0] = 0;
        /* A kernel that was compiled for other sizes refuses. */
        int64_t odd = 24, large = 64;
        plan.kernel[0].n_int = 1;
        plan.kernel[0].size = (const PlanSize[]){{.multiple = 16, .most = 48}};
        CHECK(h, b->ops->launch(b, m, 0, NULL, &odd, NULL, NULL, 1, 1) == ST_BUG);
        CHECK(h, strstr(b->why, "multiples of 16 up to 48 (0: any), not for 24"));
        b->why[0] = 0;
        CHECK(h, b->ops->launch(b, m, 0, NULL, &large, NULL, NULL, 1, 1) == ST_BUG);
        CHECK(h, strstr(b->why, "not for 64"));
        plan.kernel[0].size = NULL;
        /* A second plan of the same backend shares the code, without a cache too. */
        CHECK(h, b->ops->build(b, &plan.plan, &again, &r) == ST_OK);
        CHECK(h, r.cached == 2 && r.compiled == 0);
        b->ops->drop(b, m);
        CHECK(h, run_both(b, again, 1000, 7));
        b->ops->drop(b, again);
        b->ops->close(b);
    }
    HandPlan none;
    hand_plan(&none, ctx, (const char *const[]){NULL});
    Backend *b;
    Module *m;
    CHECK(h, open_plain(ctx, &(BackendOptions){.cache_dir = ""}, &b, why) == ST_OK);
    CHECK(h, b->ops->build(b, &none.plan, &m, NULL) == ST_OK);
    b->ops->drop(b, m);
    b->ops->close(b);
    ctx_free(ctx);
}

/* Builds one plan that must fail, and checks the sentence and that nothing is left behind. */
static void expect_failure(Harness *h, const BackendOptions *how, const char *const *texts, const char *sentence,
                           const char *also)
{
    Ctx *ctx = ctx_new(NULL);
    char why[512];
    Backend *b;
    Module *m = NULL;
    BuildReport r;
    HandPlan plan;
    hand_plan(&plan, ctx, texts);
    if (CHECK_CASE(h, open_plain(ctx, how, &b, why) == ST_OK, sentence)) {
        CHECK_CASE(h, b->ops->build(b, &plan.plan, &m, &r) == ST_ENVIRONMENT, sentence);
        CHECK(h, !m);
        if (!CHECK_CASE(h, strstr(r.why, sentence) && strstr(r.why, also), sentence))
            fprintf(stderr, "    got: %s\n", r.why);
        /* The backend is still good. */
        hand_plan(&plan, ctx, both);
        if (!how->compiler) {
            CHECK(h, b->ops->build(b, &plan.plan, &m, &r) == ST_OK && run_both(b, m, 100, 9));
            b->ops->drop(b, m);
        }
        b->ops->close(b);
    }
    ctx_free(ctx);
    CHECK(h, waitpid(-1, NULL, WNOHANG) == -1 && errno == ECHILD); /* no zombie */
}

static void write_script(const char *path, const char *text)
{
    FILE *f = fopen(path, "w");
    if (!f)
        return;
    fputs(text, f);
    fclose(f);
    chmod(path, 0700);
}

static void test_failures(Harness *h, const char *folder)
{
    char script[400], command[500];
    BackendOptions none = {.cache_dir = ""};
    const char *const wrong[] = {"k_scale", HAND_SCALE, "k_wrong",
                                 HAND_SIGNATURE("k_wrong") "{\n    not_declared(lo + );\n}\n", NULL};
    expect_failure(h, &none, wrong, "k_wrong:3", "error:");
    const char *const absent[] = {"k_absent", "static int other;\n", NULL};
    expect_failure(h, &none, absent, "k_absent", "no such function");
    const char *const undefined[] = {
        "k_calls", "extern void nobody_has_this(void);\n" HAND_SIGNATURE("k_calls") "{\n    nobody_has_this();\n}\n",
        NULL};
    expect_failure(h, &none, undefined, "cannot be loaded", "nobody_has_this");

    snprintf(script, sizeof script, "%s/cc-dies", folder);
    write_script(script, "#!/bin/sh\ncase \"$1\" in --version) echo dying 1.0; exit 0;; esac\n"
                         "kill -9 $$\n");
    BackendOptions how = {.cache_dir = "", .compiler = script};
    expect_failure(h, &how, both, "signal 9", "k_");
    snprintf(script, sizeof script, "%s/cc-silent", folder);
    write_script(script, "#!/bin/sh\ncase \"$1\" in --version) echo silent 1.0; exit 0;; esac\n"
                         "exit 1\n");
    expect_failure(h, &how, both, "without a message", "k_");
    snprintf(script, sizeof script, "%s/cc-lies", folder);
    write_script(script, "#!/bin/sh\ncase \"$1\" in --version) echo lying 1.0; exit 0;; esac\n"
                         "exit 0\n");
    expect_failure(h, &how, both, "cannot be read", "No such file");
    snprintf(script, sizeof script, "%s/cc-junk", folder);
    write_script(script, "#!/bin/sh\ncase \"$1\" in --version) echo junk 1.0; exit 0;; esac\n"
                         "while [ $# -gt 1 ]; do [ \"$1\" = -o ] && echo junk >\"$2\"; shift; done\n");
    expect_failure(h, &how, both, "cannot be loaded", "");
    /* A compiler with words of its own. */
    snprintf(command, sizeof command, "  env LC_ALL=C  cc ");
    Ctx *ctx = ctx_new(NULL);
    char why[512];
    Backend *b;
    how.compiler = command;
    CHECK(h, open_plain(ctx, &how, &b, why) == ST_OK);
    b->ops->close(b);
    ctx_free(ctx);
}

static void test_no_compiler(Harness *h)
{
    Ctx *ctx = ctx_new(NULL);
    char why[512];
    Backend *b;
    BackendOptions how = {.cache_dir = "", .compiler = "/nowhere/cc"};
    CHECK(h, open_plain(ctx, &how, &b, why) == ST_ENVIRONMENT && !b);
    CHECK(h, strstr(why, "/nowhere/cc") && strstr(why, "set CC"));
    how.compiler = "   ";
    CHECK(h, open_plain(ctx, &how, &b, why) == ST_ENVIRONMENT);
    const char *path = getenv("PATH"), *cc = getenv("CC");
    char *saved = strdup(path ? path : ""), *saved_cc = cc ? strdup(cc) : NULL;
    setenv("PATH", "/nowhere", 1);
    unsetenv("CC");
    how.compiler = NULL;
    CHECK(h, open_plain(ctx, &how, &b, why) == ST_ENVIRONMENT);
    CHECK(h, strstr(why, "no C compiler found: install gcc or set CC"));
    setenv("PATH", saved, 1);
    setenv("CC", "/nowhere/cc", 1); /* a compiler that was asked for is not replaced by another */
    CHECK(h, open_plain(ctx, &how, &b, why) == ST_ENVIRONMENT && !b);
    CHECK(h, strstr(why, "'/nowhere/cc' that CC names does not run"));
    setenv("CC", "", 1);
    CHECK(h, open_plain(ctx, &how, &b, why) == ST_OK);
    if (b)
        b->ops->close(b);
    unsetenv("CC");
    if (saved_cc)
        setenv("CC", saved_cc, 1);
    how.products = "magic";
    CHECK(h, backend_cpu_open(ctx, &how, &b, why) == ST_USAGE && strstr(why, "magic"));
    free(saved);
    free(saved_cc);
    ctx_free(ctx);
}

static void test_temporary(Harness *h, const char *folder)
{
    Ctx *ctx = ctx_new(NULL);
    char why[512], stale[400], file[420], young[400];
    Backend *b;
    setenv("TMPDIR", "/nowhere/at/all", 1);
    CHECK(h, open_plain(ctx, &(BackendOptions){.cache_dir = ""}, &b, why) == ST_ENVIRONMENT);
    CHECK(h, strstr(why, "/nowhere/at/all") && strstr(why, "TMPDIR"));
    setenv("TMPDIR", folder, 1);
    /* What a killed build left behind goes; what may still be in use stays. */
    snprintf(stale, sizeof stale, "%s/vwn-build-999999999-aaaaaa", folder);
    snprintf(young, sizeof young, "%s/vwn-build-999999998-aaaaaa", folder);
    snprintf(file, sizeof file, "%s/kernels0.c", stale);
    mkdir(stale, 0700);
    mkdir(young, 0700);
    write_script(file, "");
    struct timespec old[2] = {{1000000, 0}, {1000000, 0}};
    utimensat(AT_FDCWD, stale, old, 0);
    CHECK(h, open_plain(ctx, &(BackendOptions){.cache_dir = ""}, &b, why) == ST_OK);
    CHECK(h, access(stale, F_OK) != 0 && access(young, F_OK) == 0);
    rmdir(young);
    b->ops->close(b);
    ctx_free(ctx);
}

static void test_memory(Harness *h)
{
    Ctx *ctx = ctx_new(NULL);
    char why[512];
    Backend *b;
    void *p = &p;
    CHECK(h, open_plain(ctx, &(BackendOptions){.cache_dir = ""}, &b, why) == ST_OK);
    CHECK(h, b->ops->alloc(b, (uint64_t)1 << 50, &p) == ST_ENVIRONMENT && !p);
    CHECK(h, strstr(b->why, "out of memory") && strstr(b->why, "available"));
    b->why[0] = 0;
    CHECK(h, b->ops->alloc(b, UINT64_MAX - 5, &p) == ST_ENVIRONMENT && !p);
    size_t before = ctx->bytes;
    ctx->byte_limit = ctx->bytes + (8 << 20);
    b->why[0] = 0;
    CHECK(h, b->ops->alloc(b, 9 << 20, &p) == ST_ENVIRONMENT && !p);
    CHECK(h, b->ops->alloc(b, 6 << 20, &p) == ST_OK && p);
    CHECK(h, ctx->bytes >= before + (6 << 20));
    b->ops->free(b, p, 6 << 20);
    CHECK(h, ctx->bytes == before);
    CHECK(h, b->ops->alloc(b, 0, &p) == ST_OK && p);
    b->ops->free(b, p, 0);
    b->ops->free(b, NULL, 10);
    CHECK(h, ctx->bytes == before);
    b->kept = true; /* what it keeps is given back when more is asked for than there is, and is not its own any more */
    ctx->byte_limit = 0;
    for (int round = 0; round < 2; round++) {
        CHECK(h, b->ops->alloc(b, 6 << 20, &p) == ST_OK && p);
        memset(p, round, 6 << 20);
        b->ops->free(b, p, 6 << 20);
        CHECK(h, b->spare >= 6 << 20 && ctx->bytes == before);
        CHECK(h, b->ops->alloc(b, (uint64_t)1 << 50, &p) == ST_ENVIRONMENT && !p && !b->spare);
    }
    b->ops->close(b);
    ctx_free(ctx);
}

/* ---- the n-th allocation fails ---- */

typedef struct Rationed {
    int left;
} Rationed;

static void *rationed_resize(void *user, void *p, size_t old_size, size_t new_size)
{
    Rationed *r = user;
    (void)old_size;
    if (!new_size) {
        free(p);
        return NULL;
    }
    if (r->left-- <= 0)
        return NULL;
    return realloc(p, new_size);
}

/* Opens, builds and runs with what the ration allows; true when all went well. */
static bool build_rationed(Harness *h, Ctx *ctx, const char *cache)
{
    char why[512] = "";
    Backend *volatile opened = NULL;
    Module *m = NULL;
    BuildReport r;
    HandPlan plan;
    CtxGuard guard;
    if (!CTX_TRY(ctx, &guard)) {
        CHECK(h, ctx->raised == ST_ENVIRONMENT && ctx->message[0]);
        if (opened)
            opened->ops->close(opened);
        return false;
    }
    Backend *b = NULL;
    CHECK(h, open_plain(ctx, &(BackendOptions){.cache_dir = cache}, &b, why) == ST_OK && b);
    opened = b;
    hand_plan(&plan, ctx, both);
    ctx_leave(ctx, &guard);
    Status status = b->ops->build(b, &plan.plan, &m, &r);
    CHECK(h, (status == ST_OK) == (m != NULL) && (status == ST_OK || r.why[0]));
    bool ran = m && run_both(b, m, 10, 3);
    b->ops->drop(b, m);
    b->ops->close(b);
    return ran;
}

/* The cache makes most builds fast enough to let every allocation fail once. */
static void test_nth_allocation(Harness *h, const char *folder)
{
    char cache[400];
    bool whole = false;
    int n = 0;
    snprintf(cache, sizeof cache, "%s/cache", folder);
    for (; n < 500 && !whole; n++) {
        Rationed ration = {n};
        Ctx *ctx = ctx_new(&(Allocator){rationed_resize, &ration});
        if (!ctx)
            continue;
        whole = build_rationed(h, ctx, n % 16 ? cache : "");
        CHECK(h, whole || ration.left <= 0);
        ctx_free(ctx);
    }
    CHECK(h, whole && n > 5);
}

/* ---- other processes, other signals ---- */

/* Both kernels in a child process; true when it ends well within a minute. */
static bool child_builds(const char *cache)
{
    pid_t pid = fork();
    if (pid == 0) {
        char why[512];
        Ctx *ctx = ctx_new(NULL);
        Backend *b;
        Module *m;
        HandPlan plan;
        alarm(60);
        hand_plan(&plan, ctx, both);
        bool ok = open_plain(ctx, &(BackendOptions){.cache_dir = cache, .threads = 2}, &b, why) == ST_OK &&
                  b->ops->build(b, &plan.plan, &m, NULL) == ST_OK && run_both(b, m, 10007, 100);
        _exit(ok ? 0 : 1);
    }
    int status = 1;
    waitpid(pid, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void test_processes(Harness *h)
{
    CHECK(h, child_builds(""));
    /* A program that ignores its children's ends still gets its kernels. */
    signal(SIGCHLD, SIG_IGN);
    Ctx *ctx = ctx_new(NULL);
    char why[512];
    Backend *b = NULL;
    Module *m = NULL;
    HandPlan plan;
    hand_plan(&plan, ctx, both);
    CHECK(h, open_plain(ctx, &(BackendOptions){.cache_dir = ""}, &b, why) == ST_OK);
    CHECK(h, b && b->ops->build(b, &plan.plan, &m, NULL) == ST_OK && run_both(b, m, 99, 5));
    b->ops->drop(b, m);
    b->ops->close(b);
    ctx_free(ctx);
    signal(SIGCHLD, SIG_DFL);
}

static void on_alarm(int number) { (void)number; }

/* Signals arrive all the time, and nothing is restarted by the system. */
static void test_signals(Harness *h)
{
    struct sigaction act = {.sa_handler = on_alarm}, before;
    struct itimerval often = {{0, 500}, {0, 500}}, never = {{0, 0}, {0, 0}};
    Ctx *ctx = ctx_new(NULL);
    char why[512];
    Backend *b = NULL;
    Module *m = NULL;
    HandPlan plan;
    hand_plan(&plan, ctx, both);
    sigaction(SIGALRM, &act, &before);
    setitimer(ITIMER_REAL, &often, NULL);
    CHECK(h, open_plain(ctx, &(BackendOptions){.cache_dir = "", .threads = 3}, &b, why) == ST_OK);
    CHECK(h, b && b->ops->build(b, &plan.plan, &m, NULL) == ST_OK && run_both(b, m, 9999, 5));
    setitimer(ITIMER_REAL, &never, NULL);
    sigaction(SIGALRM, &before, NULL);
    b->ops->drop(b, m);
    b->ops->close(b);
    ctx_free(ctx);
}

static void test_describe(Harness *h)
{
    Ctx *ctx = ctx_new(NULL);
    Buf out = buf_new(ctx->program);
    backend_cpu_describe(ctx, &(BackendOptions){.threads = 3, .cache_dir = ""}, &out);
    static const char *const keys[] = {"C compiler: ", "products: ",         "threads: 3 of ", "processor: ",
                                       "memory: ",     "kernel cache: none", "bf16 products: "};
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        CHECK_CASE(h, strstr(out.s, keys[i]) != NULL, keys[i]);
    for (const char *p = out.s; *p; p = strchr(p, '\n') + 1) {
        const char *colon = strstr(p, ": ");
        if (!CHECK(h, strchr(p, '\n') && colon && colon < strchr(p, '\n')))
            break;
    }
    out = buf_new(ctx->program);
    backend_cpu_describe(ctx, &(BackendOptions){.compiler = "/nowhere/cc", .products = "plain"}, &out);
    CHECK(h, strstr(out.s, "/nowhere/cc") && strstr(out.s, "plain loops"));
    CHECK(h, strstr(out.s, "bf16 products: none, float32 instead: "));
    ctx_free(ctx);
}

/* What `--device` may be. */
static void test_words(Harness *h)
{
    static const struct {
        const char *text;
        DeviceAsked is;
    } good[] = {{"cpu", {DEVICE_NAMED, BACKEND_cpu, -1}},    {"cuda", {DEVICE_NAMED, BACKEND_cuda, -1}},
                {"cuda:0", {DEVICE_NAMED, BACKEND_cuda, 0}}, {"cuda:1234", {DEVICE_NAMED, BACKEND_cuda, 1234}},
                {"auto", {DEVICE_AUTO, BACKEND_cpu, -1}},    {"reference", {DEVICE_REFERENCE, BACKEND_cpu, -1}},
                {NULL, {DEVICE_NAMED, BACKEND_cpu, -1}}};
    static const char *const bad[] = {"",        "cp",         "cpu:0", "cuda:",  "cuda:x",
                                      "cuda:1x", "cuda:12345", "cuda1", "auto:0", "CPU"};
    DeviceAsked a;
    for (size_t i = 0; i < COUNT_OF(good); i++)
        CHECK_CASE(h,
                   device_read(good[i].text, &a) && a.how == good[i].is.how && a.id == good[i].is.id &&
                       a.ordinal == good[i].is.ordinal,
                   good[i].text ? good[i].text : "none");
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        CHECK_CASE(h, !device_read(bad[i], &a), bad[i]);
}

int main(void)
{
    Harness h = {0};
    char folder[256], temporary[300];
    if (!make_folder(folder))
        return 1;
    snprintf(temporary, sizeof temporary, "%s/tmp", folder);
    mkdir(temporary, 0700);
    setenv("TMPDIR", temporary, 1);
    test_kernels(&h);
    test_failures(&h, folder);
    test_no_compiler(&h);
    test_memory(&h);
    test_nth_allocation(&h, folder);
    test_processes(&h);
    test_signals(&h);
    test_describe(&h);
    test_words(&h);
    CHECK(&h, count_files(temporary, "") == 0);
    test_temporary(&h, temporary);
    CHECK(&h, count_files(temporary, "") == 0);
    remove_folder(folder);
    return harness_end(&h);
}
