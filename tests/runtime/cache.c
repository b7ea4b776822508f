/* cache.c - compiled kernels on disk: hits, misses, damage, strangers, full and forbidden
 * folders.
 *
 * In:  nothing (a C compiler must be there; some cases need to be root).
 * Out: `N passed, N failed`.
 */
#define _GNU_SOURCE
#include "plans.h"

#include "../../runtime/cache.h"
#include "../../runtime/sha256.h"
#include "children.h"
#include "harness.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const char *const both[] = {"k_scale", HAND_SCALE, "k_twice", HAND_TWICE, NULL};
static const char *const one[] = {"k_scale", HAND_SCALE, NULL};
static const char *const changed[] = {
    "k_scale",
    HAND_SIGNATURE("k_scale") "{\n    (void)p, (void)n, (void)s, (void)lo, (void)hi;\n}\n",
    NULL};

/* Opens a backend with this cache, builds, runs when the first kernel is HAND_SCALE, closes. */
static Status build(const CpuOptions *how, const char *const *texts, BuildReport *r)
{
    char why[512];
    Ctx *ctx = ctx_new(NULL);
    Backend *b;
    Module *m = NULL;
    HandPlan plan;
    CpuOptions o = *how;
    o.products = "plain";
    hand_plan(&plan, ctx, texts);
    Status status = backend_cpu_open(ctx, &o, &b, why);
    if (status == ST_OK) {
        status = b->ops->build(b, &plan.plan, &m, r);
        float x[5] = {1, 2, 3, 4, 5}, y[5] = {0};
        void *p[2] = {x, y};
        int64_t n = 1;
        double two = 2;
        if (status == ST_OK && texts[1] == both[1]) {
            b->ops->launch(b, m, 0, p, &n, &two, 5, 2);
            if (y[4] != 11)
                status = ST_BUG;
        }
        b->ops->drop(b, m);
        b->ops->close(b);
    }
    ctx_free(ctx);
    return status;
}

/* True when a build with this cache finds and compiles so many. */
static bool counts(const char *cache, const char *const *texts, int cached, int compiled)
{
    BuildReport r = {0};
    Status status = build(&(CpuOptions){.cache_dir = cache}, texts, &r);
    if (status != ST_OK || r.cached != cached || r.compiled != compiled)
        fprintf(stderr, "    status %d, cached %d, compiled %d: %s %s\n", (int)status, r.cached,
                r.compiled, r.why, r.note);
    return status == ST_OK && r.cached == cached && r.compiled == compiled && !r.note[0];
}

static void test_hash(Harness *h)
{
    static const char *const cases[][2] = {
        {"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
        {"abc", "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad"},
        {"abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq",
         "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1"}};
    char hex[65];
    Sha256 s;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        sha256_start(&s);
        sha256_add(&s, cases[i][0], strlen(cases[i][0]));
        sha256_hex(&s, hex);
        CHECK(h, !strcmp(hex, cases[i][1]));
    }
    sha256_start(&s); /* a million times "a", in pieces of odd sizes */
    for (int left = 1000000, piece = 1; left > 0; piece = piece % 199 + 1) {
        char text[200];
        memset(text, 'a', sizeof text);
        int n = piece < left ? piece : left;
        sha256_add(&s, text, (size_t)n);
        left -= n;
    }
    sha256_hex(&s, hex);
    CHECK(h, !strcmp(hex, "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0"));
}

static void test_hits(Harness *h, const char *cache)
{
    struct stat st;
    CHECK(h, counts(cache, both, 0, 2));
    CHECK(h, stat(cache, &st) == 0 && (st.st_mode & 07777) == 0700);
    CHECK(h, counts(cache, both, 2, 0));
    CHECK(h, counts(cache, one, 1, 0));
    CHECK(h, counts(cache, changed, 0, 1)); /* the same name, another text */
    CHECK(h, counts(cache, changed, 1, 0));
    CHECK(h, counts("", both, 0, 2));
    /* Another compiler is another key. */
    BuildReport r = {0};
    CHECK(h, build(&(CpuOptions){.cache_dir = cache, .compiler = "env cc"}, both, &r) == ST_OK);
    CHECK(h, r.compiled == 2);
    CHECK(h, count_files(cache, ".tmp-") == 0);
}

static void test_damage(Harness *h, const char *cache)
{
    CHECK(h, counts(cache, both, 0, 2));
    for (int how = 0; how <= 4; how++) {
        damage(cache, ".so", how);
        CHECK(h, counts(cache, both, 0, 2));
        CHECK(h, counts(cache, both, 2, 0)); /* it was replaced */
        damage(cache, ".json", how);
        CHECK(h, counts(cache, both, 0, 2));
        CHECK(h, counts(cache, both, 2, 0));
    }
    CHECK(h, count_files(cache, ".tmp-") == 0);
}

/* The note of one build, which must succeed by compiling. */
static bool note_says(const char *cache, const char *part)
{
    BuildReport r = {0};
    bool ok = build(&(CpuOptions){.cache_dir = cache}, both, &r) == ST_OK && r.compiled == 2;
    if (!ok || !strstr(r.note, part))
        fprintf(stderr, "    compiled %d, why: %s, note: %s\n", r.compiled, r.why, r.note);
    return ok && strstr(r.note, part);
}

static void test_unusable(Harness *h, const char *folder)
{
    char path[400];
    snprintf(path, sizeof path, "%s/a-file", folder);
    int fd = open(path, O_CREAT | O_WRONLY, 0600);
    close(fd);
    CHECK(h, note_says(path, "cannot be used"));
    snprintf(path, sizeof path, "%s/a-file/below", folder);
    CHECK(h, note_says(path, "cannot be used"));
    /* A folder that others may write is closed to them; its contents are ours. */
    struct stat st;
    snprintf(path, sizeof path, "%s/open", folder);
    mkdir(path, 0700);
    chmod(path, 0777);
    CHECK(h, counts(path, both, 0, 2));
    CHECK(h, stat(path, &st) == 0 && (st.st_mode & 07777) == 0700);
    /* The note is given once per backend. */
    char why[512];
    Ctx *ctx = ctx_new(NULL);
    Backend *b;
    Module *m;
    HandPlan plan;
    BuildReport r;
    hand_plan(&plan, ctx, both);
    snprintf(path, sizeof path, "%s/a-file", folder);
    CHECK(h, backend_cpu_open(ctx, &(CpuOptions){.cache_dir = path}, &b, why) == ST_OK);
    CHECK(h, b->ops->build(b, &plan.plan, &m, &r) == ST_OK && r.note[0]);
    b->ops->drop(b, m);
    CHECK(h, b->ops->build(b, &plan.plan, &m, &r) == ST_OK && !r.note[0]);
    b->ops->drop(b, m);
    b->ops->close(b);
    ctx_free(ctx);
}

static void test_places(Harness *h, const char *folder)
{
    char path[400];
    const char *home = getenv("HOME"), *xdg = getenv("XDG_CACHE_HOME");
    char *saved_home = home ? strdup(home) : NULL, *saved_xdg = xdg ? strdup(xdg) : NULL;
    Cache c;
    setenv("XDG_CACHE_HOME", folder, 1);
    cache_open(&c, CACHE_SHARED_OBJECTS, NULL);
    snprintf(path, sizeof path, "%s/vwn", folder);
    CHECK(h, c.readable && c.writable && !strcmp(c.dir, path));
    cache_close(&c);
    setenv("XDG_CACHE_HOME", "relative", 1); /* not absolute: not meant */
    setenv("HOME", folder, 1);
    cache_open(&c, CACHE_SHARED_OBJECTS, NULL);
    snprintf(path, sizeof path, "%s/.cache/vwn", folder);
    CHECK(h, c.readable && !strcmp(c.dir, path));
    cache_close(&c);
    cache_open(&c, CACHE_SHARED_OBJECTS, "");
    CHECK(h, !c.readable && !c.note[0]);
    cache_close(&c);
    unsetenv("HOME");
    unsetenv("XDG_CACHE_HOME");
    if (saved_home)
        setenv("HOME", saved_home, 1);
    if (saved_xdg)
        setenv("XDG_CACHE_HOME", saved_xdg, 1);
    snprintf(path, sizeof path, "%s/.cache/vwn", folder);
    rmdir(path);
    free(saved_home);
    free(saved_xdg);
}

static void test_prune(Harness *h, const char *dir)
{
    Cache c;
    char object[12][65], path[CACHE_PATH + 80];
    char bytes[1000];
    cache_open(&c, CACHE_SHARED_OBJECTS, dir);
    c.limit = 5000;
    for (int i = 0; i < 12; i++) {
        memset(bytes, i, sizeof bytes);
        CHECK(h, cache_put_object(&c, bytes, sizeof bytes, object[i]));
        struct timespec t[2] = {{1000 + i, 0}, {1000 + i, 0}};
        snprintf(path, sizeof path, "%s.so", object[i]);
        utimensat(c.fd, path, t, 0);
    }
    CHECK(h, cache_verify(&c, object[0], path, sizeof path)); /* used: the newest now */
    cache_prune(&c);
    int64_t files, size;
    cache_size(&c, &files, &size);
    CHECK(h, files == 5 && size == 5000);
    CHECK(h, cache_verify(&c, object[0], path, sizeof path));
    CHECK(h, !cache_verify(&c, object[1], path, sizeof path));
    CHECK(h, cache_verify(&c, object[11], path, sizeof path));
    /* A file that cannot be written to its end, as when the disk is full, leaves nothing. */
    struct rlimit old, small = {100, 0};
    getrlimit(RLIMIT_FSIZE, &old);
    small.rlim_max = old.rlim_max;
    signal(SIGXFSZ, SIG_IGN);
    setrlimit(RLIMIT_FSIZE, &small);
    memset(bytes, 99, sizeof bytes);
    bool stored = cache_put_object(&c, bytes, sizeof bytes, object[0]);
    setrlimit(RLIMIT_FSIZE, &old);
    signal(SIGXFSZ, SIG_DFL);
    CHECK(h, !stored && !c.writable && strstr(c.note, "cannot be written"));
    CHECK(h, count_files(dir, ".tmp-") == 0);
    cache_close(&c);
}

/* ---- children: several at once, other users, other file systems ---- */

static bool builds_well(const char *folder)
{
    BuildReport r = {0};
    return build(&(CpuOptions){.cache_dir = folder}, both, &r) == ST_OK && !r.note[0] &&
           r.cached + r.compiled == 2;
}

static void test_at_once(Harness *h, const char *cache)
{
    pid_t child[6];
    for (int round = 0; round < 3; round++) {
        for (size_t i = 0; i < COUNT_OF(child); i++)
            child[i] = start_child(builds_well, cache);
        for (size_t i = 0; i < COUNT_OF(child); i++)
            CHECK(h, end_child(child[i]) == 0);
        CHECK(h, counts(cache, both, 2, 0));
        damage(cache, round ? ".so" : ".json", round);
    }
    CHECK(h, count_files(cache, ".tmp-") == 0);
}

static bool foreign_owner(const char *folder)
{
    if (geteuid() != 0 || chown(folder, NOBODY, NOBODY) != 0)
        return skip_case();
    return note_says(folder, "belongs to another user") && count_files(folder, "") == 0;
}

static bool foreign_files(const char *folder)
{
    char path[700];
    if (geteuid() != 0 || !counts(folder, both, 0, 2))
        return skip_case();
    DIR *dir = opendir(folder);
    struct dirent *e;
    while (dir && (e = readdir(dir))) {
        int n = snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (n > 0 && (size_t)n < sizeof path && strstr(e->d_name, ".so") &&
            chown(path, NOBODY, NOBODY) != 0)
            return false;
    }
    closedir(dir);
    return counts(folder, both, 0, 2) && counts(folder, both, 2, 0);
}

/* As an ordinary user: entries are read, new ones are not written. */
static bool read_only(const char *folder)
{
    char *tmp = strdup("/tmp");
    if (geteuid() == 0) {
        if (chown(folder, NOBODY, NOBODY) != 0 || setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
            return skip_case();
    }
    setenv("TMPDIR", tmp, 1);
    free(tmp);
    BuildReport r = {0};
    if (access(folder, X_OK) != 0) /* the way to it is closed to others */
        return skip_case();
    if (build(&(CpuOptions){.cache_dir = folder}, one, &r) != ST_OK || r.compiled != 1 ||
        r.note[0])
        return false;
    chmod(folder, 0500);
    r = (BuildReport){0};
    bool ok = build(&(CpuOptions){.cache_dir = folder}, both, &r) == ST_OK && r.cached == 1 &&
              r.compiled == 1 && strstr(r.note, "read-only");
    chmod(folder, 0700);
    return ok;
}

/* Kernels in a folder that forbids execution are loaded from memory, now and from then on. */
static bool no_execution(const char *folder)
{
    BuildReport r = {0};
    if (!mounted(folder, MS_NOEXEC, "size=16m"))
        return skip_case();
    if (build(&(CpuOptions){.cache_dir = folder}, both, &r) != ST_OK || r.compiled != 2 ||
        !strstr(r.note, "loaded from memory"))
        return false;
    r = (BuildReport){0};
    if (build(&(CpuOptions){.cache_dir = folder}, both, &r) != ST_OK || r.cached != 2 ||
        !strstr(r.note, "loaded from memory"))
        return false;
    setenv("TMPDIR", folder, 1); /* the temporary folder too */
    r = (BuildReport){0};
    return build(&(CpuOptions){.cache_dir = ""}, both, &r) == ST_OK && r.compiled == 2;
}

static bool full_disk(const char *folder)
{
    if (!mounted(folder, 0, "size=8k"))
        return skip_case();
    bool said = note_says(folder, "cannot be written");
    return said && count_files(folder, ".tmp-") == 0;
}

static bool full_temporary(const char *folder)
{
    BuildReport r = {0};
    if (!mounted(folder, 0, "size=8k"))
        return skip_case();
    setenv("TMPDIR", folder, 1);
    Status status = build(&(CpuOptions){.cache_dir = ""}, both, &r);
    return status == ST_ENVIRONMENT && strstr(r.why, "o space left") &&
           count_files(folder, "vwn-build") == 0;
}

int main(void)
{
    Harness h = {0};
    char folder[256], path[300], temporary[300];
    if (!make_folder(folder))
        return 1;
    snprintf(temporary, sizeof temporary, "%s/tmp", folder);
    mkdir(temporary, 0700);
    setenv("TMPDIR", temporary, 1);
#define PLACE(name) (snprintf(path, sizeof path, "%s/" name, folder), path)
#define MADE(name)  (mkdir(PLACE(name), 0700), path)
    test_hash(&h);
    test_hits(&h, PLACE("hits/deep/in"));
    test_damage(&h, PLACE("damage"));
    test_unusable(&h, folder);
    test_places(&h, MADE("home"));
    test_prune(&h, PLACE("prune"));
    test_at_once(&h, PLACE("at-once"));
    check_child(&h, foreign_owner, MADE("foreign"), "a folder of another user");
    check_child(&h, foreign_files, MADE("foreign-files"), "files of another user");
    check_child(&h, no_execution, MADE("noexec"), "a folder that forbids execution");
    check_child(&h, full_disk, MADE("full"), "a full disk");
    check_child(&h, full_temporary, MADE("full-tmp"), "a full temporary folder");
    CHECK(&h, count_files(temporary, "") == 0);
    char open_place[] = "/tmp/vwn-test-XXXXXX"; /* reachable by other users */
    if (mkdtemp(open_place)) {
        check_child(&h, read_only, open_place, "a read-only folder");
        remove_folder(open_place);
    }
    remove_folder(folder);
    return harness_end(&h);
}
