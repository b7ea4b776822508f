/* cache.c - compiled kernels on disk: hits, misses, damage, strangers, full and forbidden
 * folders.
 *
 * In:  nothing (a C compiler must be there; some cases need to be root).
 * Out: `N passed, N failed`.
 * When: quick, checked, optimised.
 */
#define _GNU_SOURCE
#include "runtime/cpu/backend_cpu.h"
#include "plans.h"

#include "runtime/base/cache.h"
#include "runtime/base/sha256.h"
#include "children.h"
#include "support/harness.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>

static const char *const both[] = {"k_scale", HAND_SCALE, "k_twice", HAND_TWICE, NULL};
static const char *const one[] = {"k_scale", HAND_SCALE, NULL};
static const char *const changed[] = {
    "k_scale", HAND_SIGNATURE("k_scale") "{\n    (void)p, (void)n, (void)s, (void)lo, (void)hi;\n}\n", NULL};

/* Whether code of this process is mapped from a file whose path has this part. */
static bool mapped_from(const char *part)
{
    char line[4096];
    bool found = false;
    FILE *f = fopen("/proc/self/maps", "r");
    while (f && fgets(line, sizeof line, f))
        found |= strstr(line, part) && strstr(line, ".so");
    if (f)
        fclose(f);
    return found;
}

/* Opens a backend with this cache, builds, runs when the first kernel is HAND_SCALE, closes. */
static Status build(const BackendOptions *how, const char *const *texts, BuildReport *r)
{
    char why[512];
    Ctx *ctx = ctx_new(NULL);
    Backend *b;
    Module *m = NULL;
    HandPlan plan;
    BackendOptions o = *how;
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
            b->ops->launch(b, m, 0, p, &n, &two, NULL, 5, 2);
            if (y[4] != 11)
                status = ST_BUG;
        }
        /* what lies in the folder may be something else than what was hashed */
        if (o.cache_dir && *o.cache_dir && mapped_from(o.cache_dir))
            status = ST_BUG;
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
    Status status = build(&(BackendOptions){.cache_dir = cache}, texts, &r);
    if (status != ST_OK || r.cached != cached || r.compiled != compiled)
        fprintf(stderr, "    status %d, cached %d, compiled %d: %s %s\n", (int)status, r.cached, r.compiled, r.why,
                r.note);
    return status == ST_OK && r.cached == cached && r.compiled == compiled && !r.note[0];
}

static void test_hash(Harness *h)
{
    static const char *const cases[][2] = {{"", "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
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
    CHECK(h, build(&(BackendOptions){.cache_dir = cache, .compiler = "env cc"}, both, &r) == ST_OK);
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
    bool ok = build(&(BackendOptions){.cache_dir = cache}, both, &r) == ST_OK && r.compiled == 2;
    if (!ok || !strstr(r.note, part))
        fprintf(stderr, "    compiled %d, why: %s, note: %s\n", r.compiled, r.why, r.note);
    return ok && strstr(r.note, part);
}

/* A new folder FOLDER/NAME with this mode, and a file in it where it is not to be empty. */
static void prepare(char path[400], const char *folder, const char *name, mode_t mode, bool empty)
{
    char file[500];
    snprintf(path, 400, "%s/%s", folder, name);
    mkdir(path, 0700);
    chmod(path, mode);
    snprintf(file, sizeof file, "%s/mine.txt", path);
    if (!empty)
        close(open(file, O_CREAT | O_WRONLY, 0600));
}

static bool has_mode(const char *path, mode_t mode)
{
    struct stat st;
    return stat(path, &st) == 0 && (st.st_mode & 07777) == mode;
}

/* What vwn has not made keeps its mode and its files. */
static void test_not_ours(Harness *h, const char *folder)
{
    char path[400];
    prepare(path, folder, "open", 0777, true);
    CHECK(h, note_says(path, "others may write"));
    CHECK(h, has_mode(path, 0777) && count_files(path, "") == 0);
    prepare(path, folder, "sticky", 01777, true);
    CHECK(h, note_says(path, "others may write"));
    CHECK(h, has_mode(path, 01777) && count_files(path, "") == 0);
    prepare(path, folder, "used", 0755, false);
    CHECK(h, note_says(path, "holds files of others"));
    CHECK(h, has_mode(path, 0755) && count_files(path, "") == 1);
    prepare(path, folder, "empty", 0755, true);
    CHECK(h, counts(path, both, 0, 2) && counts(path, both, 2, 0));
    CHECK(h, has_mode(path, 0755));
    prepare(path, folder, "empty", 0755, false); /* a file beside ours: it stays a cache */
    CHECK(h, counts(path, both, 2, 0));
    prepare(path, folder, "empty", 0775, true);
    CHECK(h, note_says(path, "others may write"));
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
    test_not_ours(h, folder);
    /* The note is given once per backend. */
    char why[512];
    Ctx *ctx = ctx_new(NULL);
    Backend *b;
    Module *m;
    HandPlan plan;
    BuildReport r;
    hand_plan(&plan, ctx, both);
    snprintf(path, sizeof path, "%s/a-file", folder);
    CHECK(h, backend_cpu_open(ctx, &(BackendOptions){.cache_dir = path}, &b, why) == ST_OK);
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
    Ctx *ctx = ctx_new(NULL);
    size_t n;
    CHECK(h, cache_read(&c, ctx, object[0], &n) && n == sizeof bytes); /* used: the newest now */
    cache_prune(&c);
    int64_t files, size;
    cache_size(&c, &files, &size);
    CHECK(h, files == 5 && size == 5000);
    CHECK(h, cache_read(&c, ctx, object[0], &n) != NULL);
    CHECK(h, !cache_read(&c, ctx, object[1], &n));
    CHECK(h, cache_read(&c, ctx, object[11], &n) != NULL);
    ctx_free(ctx);
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
    return build(&(BackendOptions){.cache_dir = folder}, both, &r) == ST_OK && !r.note[0] && r.cached + r.compiled == 2;
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

/* As root: a link that somebody else has put into a sticky folder is not followed, one of ours is. The
 * folder's name is long: the sentence is whole wherever a checkout lies. */
static bool foreign_link(const char *folder)
{
    char name[151] = "", sticky[400], target[400], link[500], mine[500];
    memset(name, 's', sizeof name - 1);
    if (geteuid() != 0)
        return skip_case();
    prepare(target, folder, "target", 0755, true);
    prepare(sticky, folder, name, 01777, true);
    snprintf(link, sizeof link, "%s/link", sticky);
    snprintf(mine, sizeof mine, "%s/mine", sticky);
    if (symlink(target, link) != 0 || lchown(link, NOBODY, NOBODY) != 0 || symlink("../target", mine) != 0)
        return false;
    return note_says(link, "the link belongs to another user") && count_files(target, "") == 0 &&
           has_mode(target, 0755) && counts(mine, both, 0, 2) && counts(target, both, 2, 0);
}

/* As root with the HOME of somebody else: nothing is made there. */
static bool foreign_home(const char *folder)
{
    char note[300];
    if (geteuid() != 0 || chown(folder, NOBODY, NOBODY) != 0)
        return skip_case();
    unsetenv("XDG_CACHE_HOME");
    setenv("HOME", folder, 1);
    snprintf(note, sizeof note, "%s belongs to another user", folder);
    return note_says(NULL, note) && count_files(folder, "") == 0;
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
        if (n > 0 && (size_t)n < sizeof path && strstr(e->d_name, ".so") && chown(path, NOBODY, NOBODY) != 0)
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
    if (build(&(BackendOptions){.cache_dir = folder}, one, &r) != ST_OK || r.compiled != 1 || r.note[0])
        return false;
    chmod(folder, 0500);
    r = (BuildReport){0};
    bool ok = build(&(BackendOptions){.cache_dir = folder}, both, &r) == ST_OK && r.cached == 1 && r.compiled == 1 &&
              strstr(r.note, "read-only");
    chmod(folder, 0700);
    return ok;
}

/* Kernels are loaded from memory, so folders that forbid execution will do. */
static bool no_execution(const char *folder)
{
    BuildReport r = {0};
    if (!mounted(folder, MS_NOEXEC, "size=16m"))
        return skip_case();
    if (!counts(folder, both, 0, 2) || !counts(folder, both, 2, 0))
        return false;
    setenv("TMPDIR", folder, 1); /* the temporary folder too */
    r = (BuildReport){0};
    return build(&(BackendOptions){.cache_dir = ""}, both, &r) == ST_OK && r.compiled == 2;
}

/* ---- a folder that is swapped while kernels are loaded ---- */

enum { STRANGER = 65533 };

/* Swaps FOLDER/cache and FOLDER/evil as fast as it can, until its parent ends. */
static pid_t start_swapping(const char *folder, uid_t user)
{
    char a[400], b[400];
    snprintf(a, sizeof a, "%s/cache", folder);
    snprintf(b, sizeof b, "%s/evil", folder);
    fflush(NULL);
    pid_t parent = getpid(), pid = fork();
    if (pid)
        return pid;
    alarm(120);
    if (user && (setgid(user) != 0 || setuid(user) != 0))
        _exit(1);
    while (getppid() == parent) /* who started it may be another user by now, and may not end it */
        syscall(SYS_renameat2, AT_FDCWD, a, AT_FDCWD, b, 2 /* RENAME_EXCHANGE */);
    _exit(0);
}

static void stop_swapping(pid_t pid)
{
    kill(pid, SIGKILL);
    end_child(pid);
}

/* Puts the other machine code in the place of the object that lies in FOLDER/evil. */
static bool poison(const char *folder)
{
    char command[1000];
    snprintf(command, sizeof command, "cat %s/other/*.so > $(ls %s/evil/*.so)", folder, folder);
    return system(command) == 0;
}

/* FOLDER/cache has the kernels of `one`; FOLDER/evil the same names, but the machine code of another
 * text of the same kernel, which does nothing. */
static bool make_pair(const char *folder)
{
    char cache[400], evil[400], text[800];
    snprintf(cache, sizeof cache, "%s/cache", folder);
    snprintf(evil, sizeof evil, "%s/evil", folder);
    snprintf(text, sizeof text, "%s/other", folder);
    BuildReport r = {0};
    bool made = counts(cache, one, 0, 1) && counts(text, changed, 0, 1) &&
                build(&(BackendOptions){.cache_dir = evil}, one, &r) == ST_OK;
    return made && poison(folder);
}

/* Both users are one: nothing on the way is refused, so the bytes alone decide. build() runs the
 * kernel and compares what it computes; where it has compiled it, the wrong code is put back. */
static bool race_of_one(const char *folder)
{
    char cache[400];
    int cached = 0;
    snprintf(cache, sizeof cache, "%s/cache", folder);
    if (!make_pair(folder))
        return false;
    pid_t swapping = start_swapping(folder, 0);
    bool right = true;
    for (int i = 0; right && i < 20 && cached < 8; i++) {
        BuildReport r = {0};
        right = build(&(BackendOptions){.cache_dir = cache}, one, &r) == ST_OK;
        cached += r.cached;
        right = right && (!r.compiled || poison(folder));
    }
    stop_swapping(swapping);
    return right && cached > 0;
}

/* Bytes of a cubin: those that were hashed or none, whatever lies there meanwhile. */
static bool race_of_bytes(const char *folder)
{
    char path[400], object[2][65], name[1000];
    static char bytes[2][5000];
    for (int i = 0; i < 2; i++) {
        Cache c;
        memset(bytes[i], 'a' + i, sizeof bytes[i]);
        snprintf(path, sizeof path, "%s/%s", folder, i ? "evil" : "cache");
        cache_open(&c, CACHE_CUBINS, path);
        if (!cache_put_object(&c, bytes[i], sizeof bytes[i], object[i]))
            return false;
        cache_close(&c);
    }
    snprintf(name, sizeof name, "mv %s/evil/%s.cubin %s/evil/%s.cubin", folder, object[1], folder, object[0]);
    if (system(name) != 0)
        return false;
    snprintf(path, sizeof path, "%s/cache", folder);
    pid_t swapping = start_swapping(folder, 0);
    int hits = 0, misses = 0;
    bool right = true;
    Ctx *ctx = ctx_new(NULL);
    for (int i = 0; i < 3000 && right; i++) {
        Cache c;
        size_t n;
        cache_open(&c, CACHE_CUBINS, path);
        char *got = cache_read(&c, ctx, object[0], &n);
        hits += got != NULL;
        misses += !got;
        right = !got || (n == sizeof bytes[0] && !memcmp(got, bytes[0], n));
        ctx_release(ctx, got);
        cache_close(&c);
    }
    ctx_free(ctx);
    stop_swapping(swapping);
    return right && hits > 0 && misses > 0;
}

/* Another user may rename what lies in FOLDER: the cache is never used, and it is said why. In the
 * place of our folder he has one with his code. `how`: 0 the folder is his, 1 it is ours, but all may
 * write it. */
static bool race_of_two_in(const char *folder, int how)
{
    char cache[400], note[200];
    snprintf(cache, sizeof cache, "%s/cache", folder);
    if (geteuid() != 0 || chmod(folder, 0755) != 0)
        return skip_case();
    uid_t owner = how == 0 ? STRANGER : NOBODY;
    if (chown(folder, NOBODY, NOBODY) != 0)
        return skip_case();
    pid_t child = fork(); /* as our user: fill it while it is still ours alone */
    if (child == 0)
        _exit(setgid(NOBODY) == 0 && setuid(NOBODY) == 0 && setenv("TMPDIR", "/tmp", 1) == 0 && make_pair(folder) ? 0
                                                                                                                  : 1);
    if (end_child(child) != 0)
        return skip_case();
    snprintf(note, sizeof note, "chown -R %d %s/evil %s/other", STRANGER, folder, folder);
    if (system(note) != 0 || chmod(folder, how == 0 ? 0755 : 0777) != 0 || chown(folder, owner, owner) != 0)
        return skip_case();
    pid_t swapping = start_swapping(folder, STRANGER);
    if (setgid(NOBODY) != 0 || setuid(NOBODY) != 0)
        return skip_case();
    setenv("TMPDIR", "/tmp", 1);
    bool right = true;
    for (int i = 0; right && i < 3; i++) {
        BuildReport r = {0};
        right = build(&(BackendOptions){.cache_dir = cache}, one, &r) == ST_OK && r.cached == 0 && r.compiled == 1 &&
                strstr(r.note, how == 0 ? "belongs to another user" : "others may write");
        if (!right)
            fprintf(stderr, "    cached %d, compiled %d: %s %s\n", r.cached, r.compiled, r.why, r.note);
    }
    return right && swapping > 0;
}

static bool race_of_two_his(const char *folder) { return race_of_two_in(folder, 0); }

static bool race_of_two_open(const char *folder) { return race_of_two_in(folder, 1); }

/* A temporary folder in which others may rename ours is not one to compile in. */
static bool open_temporary(const char *folder)
{
    BuildReport r = {0};
    char inner[400];
    snprintf(inner, sizeof inner, "%s/inner", folder);
    mkdir(inner, 0700);
    setenv("TMPDIR", inner, 1);
    if (build(&(BackendOptions){.cache_dir = ""}, one, &r) != ST_OK)
        return false;
    chmod(folder, 0777);
    bool refused = build(&(BackendOptions){.cache_dir = ""}, one, &r) == ST_ENVIRONMENT;
    chmod(folder, 01777);
    bool sticky = build(&(BackendOptions){.cache_dir = ""}, one, &r) == ST_OK;
    chmod(folder, 0700);
    chmod(inner, 0777);
    bool itself = build(&(BackendOptions){.cache_dir = ""}, one, &r) == ST_ENVIRONMENT;
    chmod(inner, 01777);
    return refused && sticky && itself && build(&(BackendOptions){.cache_dir = ""}, one, &r) == ST_OK;
}

/* Sticky folders on the way are fine, as /tmp is; open ones are not; links are followed once. */
static bool chain(const char *folder)
{
    char inner[400], link[400];
    snprintf(inner, sizeof inner, "%s/inner", folder);
    snprintf(link, sizeof link, "%s/link", folder);
    if (!counts(inner, one, 0, 1) || symlink(inner, link) != 0 || !counts(link, one, 1, 0))
        return false;
    chmod(folder, 0777);
    BuildReport r = {0};
    bool open = build(&(BackendOptions){.cache_dir = inner}, one, &r) == ST_OK && r.compiled == 1 &&
                strstr(r.note, "others may write");
    chmod(folder, 0720);
    bool group = build(&(BackendOptions){.cache_dir = link}, one, &r) == ST_OK && r.compiled == 1 &&
                 strstr(r.note, "others may write");
    chmod(folder, 01777);
    return open && group && counts(inner, one, 1, 0);
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
    Status status = build(&(BackendOptions){.cache_dir = ""}, both, &r);
    return status == ST_ENVIRONMENT && strstr(r.why, "o space left") && count_files(folder, "vwn-build") == 0;
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
    check_child(&h, foreign_link, MADE("foreign-link"), "a link of another user");
    check_child(&h, foreign_home, MADE("foreign-home"), "the home of another user");
    check_child(&h, foreign_files, MADE("foreign-files"), "files of another user");
    check_child(&h, no_execution, MADE("noexec"), "a folder that forbids execution");
    check_child(&h, full_disk, MADE("full"), "a full disk");
    check_child(&h, full_temporary, MADE("full-tmp"), "a full temporary folder");
    check_child(&h, chain, MADE("chain"), "open folders on the way");
    check_child(&h, open_temporary, MADE("open-tmp"), "temporary folders that others may write");
    check_child(&h, race_of_one, MADE("race"), "a folder that is swapped while it is loaded");
    check_child(&h, race_of_bytes, MADE("race-cubin"), "a folder of cubins that is swapped");
    CHECK(&h, count_files(temporary, "") == 0);
    static const ChildFn races[] = {race_of_two_his, race_of_two_open};
    for (size_t i = 0; i < COUNT_OF(races); i++) {
        char race_place[] = "/tmp/vwn-test-XXXXXX";
        if (mkdtemp(race_place)) {
            check_child(&h, races[i], race_place, "a folder that another user swaps");
            remove_folder(race_place);
        }
    }
    char open_place[] = "/tmp/vwn-test-XXXXXX"; /* reachable by other users */
    if (mkdtemp(open_place)) {
        check_child(&h, read_only, open_place, "a read-only folder");
        remove_folder(open_place);
    }
    remove_folder(folder);
    return harness_end(&h);
}
