/* cpu_compile.c - calling the system's C compiler.
 *
 * In:  C files in a private folder.
 * Out: shared objects beside them, or the first line that tells of an error.
 * The one idea: the compiler is an ordinary child, waited for by its number, its messages in a file. So
 * nothing can deadlock and no zombie stays. One that hangs is given up, and whatever ends this process
 * ends the compiler, too.
 */
#define _GNU_SOURCE
#include "runtime/base/cache.h"
#include "cpu.h"
#include "runtime/base/trusted.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

/* ---- the processor ---- */

void cpu_identity(Buf *out)
{
    static const char *const wanted[] = {"vendor_id", "cpu family",      "model",    "stepping",
                                         "flags",     "CPU implementer", "CPU part", "Features"};
    FILE *f = fopen("/proc/cpuinfo", "re");
    char *line = NULL;
    size_t cap = 0;
    ssize_t n;
    /* The first processor speaks for all: its block ends at the first empty line. */
    while (f && (n = getline(&line, &cap, f)) > 1)
        for (size_t i = 0; i < COUNT_OF(wanted); i++) {
            size_t w = strlen(wanted[i]);
            if (!strncmp(line, wanted[i], w) && (line[w] == '\t' || line[w] == ' '))
                buf_put(out, line, (size_t)n);
        }
    free(line);
    if (f)
        fclose(f);
#if defined __x86_64__
    buf_printf(out, "x86_64 %s\n", cpu_simd_level());
#else
    buf_puts(out, "other processor\n");
#endif
}

const char *cpu_simd_level(void)
{
#if defined __x86_64__
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl"))
        return "AVX-512";
    if (__builtin_cpu_supports("avx2"))
        return "AVX2";
    return __builtin_cpu_supports("avx") ? "AVX" : "SSE2";
#elif defined __aarch64__
    return "NEON";
#else
    return "unknown";
#endif
}

/* ---- children ---- */

/* The compiler's own children must end with it, and all of them with us, however we end: so it runs below
 * a shell that leads a group of processes and is told by the system when we are no more. */
static const char guard[] = "trap 'kill -9 -$$' TERM; \"$@\" & wait $!";

/* Starts argv with stdin from /dev/null, stdout and stderr into `log`. Returns 0 or errno. The child
 * shares our memory until it is another program, so it only makes system calls. */
__attribute__((noinline)) static int start_child(char *const argv[], const char *log, int *pid)
{
    static const int restored[] = {SIGINT, SIGTERM, SIGHUP, SIGPIPE, SIGCHLD};
    const char *all[COMPILER_WORDS + COMPILER_OPTIONS + 8] = {"sh", "-c", guard, "vwn"};
    size_t n = 4;
    while (*argv && n < COUNT_OF(all) - 1)
        all[n++] = *argv++;
    sigset_t none;
    sigemptyset(&none);
    pid_t parent = getpid();
    pid_t child = vfork();
    if (child < 0)
        return errno;
    if (child) {
        *pid = (int)child;
        return 0;
    }
    for (size_t i = 0; i < COUNT_OF(restored); i++)
        signal(restored[i], SIG_DFL);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int in = open("/dev/null", O_RDONLY), out = open(log, O_WRONLY | O_CREAT | O_TRUNC, 0600);
    if (in >= 0 && out >= 0 && setpgid(0, 0) == 0 && prctl(PR_SET_PDEATHSIG, SIGTERM) == 0 && getppid() == parent &&
        dup2(in, 0) >= 0 && dup2(out, 1) >= 0 && dup2(out, 2) >= 0)
        execv("/bin/sh", (char *const *)all);
    _exit(127);
}

static void end_child(int pid)
{
    kill(-(pid_t)pid, SIGKILL); /* the group; */
    kill((pid_t)pid, SIGKILL);  /* of which it may not be the leader yet */
}

static double seconds_now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

enum { STOP_SECONDS_PART = 10 }; /* how many times a second it is asked whether to stop */

/* Sleeps until the process ends, but no longer than `seconds`. */
static void await(int pid, double seconds)
{
    int fd = (int)syscall(SYS_pidfd_open, pid, 0);
    struct pollfd end = {.fd = fd, .events = POLLIN};
    poll(&end, fd >= 0, fd < 0 ? 2 : seconds < 60 ? (int)(seconds * 1000) + 1 : 60000);
    if (fd >= 0)
        close(fd);
}

/* The status of waitpid; -1 when somebody else took it (SIGCHLD ignored by the program). At `deadline`
 * and when *stop is set it is ended, and *why is ETIMEDOUT or ECANCELED; else 0. */
static int wait_child(int pid, double deadline, const volatile sig_atomic_t *stop, int *why)
{
    const double nap = 1.0 / STOP_SECONDS_PART;
    int status;
    pid_t got;
    *why = 0;
    while ((got = waitpid((pid_t)pid, &status, WNOHANG)) == 0 || (got < 0 && errno == EINTR)) {
        double left = deadline - seconds_now();
        if (left > 0 && !(stop && *stop)) {
            await(pid, stop && left > nap ? nap : left);
            continue;
        }
        *why = stop && *stop ? ECANCELED : ETIMEDOUT;
        end_child(pid);
        do
            got = waitpid((pid_t)pid, &status, 0);
        while (got < 0 && errno == EINTR);
        break;
    }
    return got < 0 ? -1 : status;
}

/* Reads at most size - 1 bytes; false when the file cannot be opened. */
static bool read_text(const char *path, char *text, size_t size)
{
    text[0] = 0;
    FILE *f = fopen(path, "re");
    if (!f)
        return false;
    text[fread(text, 1, size - 1, f)] = 0;
    fclose(f);
    return true;
}

/* ---- finding it ---- */

/* Cuts a command line at its blanks; false when it has no or too many words. */
static bool split_words(Compiler *cc, const char *command)
{
    if (strlen(command) >= sizeof cc->command)
        return false;
    strcpy(cc->command, command);
    int n = 0;
    for (char *p = cc->command; *p;) {
        size_t blank = strspn(p, " \t\n");
        memset(p, 0, blank);
        p += blank;
        if (!*p)
            break;
        if (n == COMPILER_WORDS - 1)
            return false;
        cc->word[n++] = p;
        p += strcspn(p, " \t\n");
    }
    cc->word[n] = NULL;
    return n > 0;
}

/* Whether files can be written there at all; false with `why`. */
static bool try_writing(const char *path, char why[512])
{
    FILE *f = fopen(path, "we");
    bool good = f && fputs("\n", f) >= 0;
    if (f && fclose(f) != 0)
        good = false;
    if (!good)
        snprintf(why, 512, "temporary files cannot be written: %s: %s (set TMPDIR)", path, strerror(errno));
    return good;
}

enum { VERSION_SECONDS = 20 };

/* True when `command --version` runs and says something. */
static bool try_compiler(Compiler *cc, const char *command, int seconds, const char *log)
{
    memset(cc, 0, sizeof *cc);
    cc->seconds = seconds > 0 ? seconds : COMPILE_SECONDS;
    if (!command || !split_words(cc, command))
        return false;
    char *argv[COMPILER_WORDS + 1], option[] = "--version", text[512];
    int n = 0, pid = 0;
    for (; cc->word[n]; n++)
        argv[n] = cc->word[n];
    argv[n++] = option;
    argv[n] = NULL;
    if (start_child(argv, log, &pid) != 0)
        return false;
    int why;
    int status =
        wait_child(pid, seconds_now() + (cc->seconds < VERSION_SECONDS ? cc->seconds : VERSION_SECONDS), NULL, &why);
    bool ran = status == -1 || (WIFEXITED(status) && WEXITSTATUS(status) == 0);
    if (!ran || !read_text(log, text, sizeof text) || !text[0])
        return false;
    text[strcspn(text, "\n")] = 0;
    snprintf(cc->version, sizeof cc->version, "%.255s", text);
    return true;
}

bool compiler_find(Compiler *out, const char *asked, int seconds, char why[512])
{
    char folder[256], log[300];
    if (!build_folder_make(folder, sizeof folder, why))
        return false;
    snprintf(log, sizeof log, "%s/version", folder);
    if (!try_writing(log, why)) {
        build_folder_remove(folder);
        return false;
    }
    bool found = false;
    const char *habit = getenv("CC"), *from = asked ? "" : " that CC names";
    if (!asked && habit && *habit)
        asked = habit;
    if (asked) {
        found = try_compiler(out, asked, seconds, log);
        if (!found)
            snprintf(why, 512,
                     "the C compiler '%.200s'%s does not run: install it, or set CC to one that "
                     "does",
                     asked, from);
    } else {
        const char *const tried[] = {"cc", "gcc", "clang"};
        for (size_t i = 0; i < COUNT_OF(tried) && !found; i++)
            found = try_compiler(out, tried[i], seconds, log);
        if (!found)
            snprintf(why, 512, "no C compiler found: install gcc or set CC");
    }
    build_folder_remove(folder);
    return found;
}

/* ---- compiling ---- */

/* -O2: vectors are printed, or asked for by a line. Arithmetic as written: no -ffast-math, which
 * would also switch the whole process to flush denormals when the object is loaded. */
static const char *const options[] = {"-std=gnu17",
#if defined __x86_64__ || defined __i386__
                                      "-march=native",
#else
                                      "-mcpu=native",
#endif
                                      "-fno-math-errno",
                                      "-fno-trapping-math",
                                      "-fno-semantic-interposition",
                                      "-fopenmp-simd",
                                      "-fvisibility=hidden",
                                      "-fPIC",
                                      "-shared",
                                      "-s",
                                      "-w",
                                      "-pipe"};

const char *compiler_options(void)
{
    return "-std=gnu17 -O2 native -fno-math-errno -fno-trapping-math "
           "-fno-semantic-interposition "
           "-fopenmp-simd -fvisibility=hidden -fPIC -shared -s -w";
}

_Static_assert(COUNT_OF(options) + 6 < COMPILER_OPTIONS, "start_child has room for all");

const char *compiler_level(int less)
{
    static const char *const level[COMPILE_LEAST + 1] = {"-O2", "-O1", "-O0"};
    return level[less];
}

static void start_unit(const Compiler *cc, CompileUnit *unit)
{
    const char *argv[COMPILER_WORDS + COUNT_OF(options) + 8];
    size_t n = 0;
    for (char *const *w = cc->word; *w; w++)
        argv[n++] = *w;
    argv[n++] = compiler_level(unit->less);
    for (size_t i = 0; i < COUNT_OF(options); i++)
        argv[n++] = options[i];
    argv[n++] = "-o";
    argv[n++] = unit->object;
    argv[n++] = unit->source;
    argv[n++] = "-lm";
    argv[n] = NULL;
    unit->status = 0;
    unit->pid = 0;
    unit->deadline = seconds_now() + cc->seconds;
    unit->error = start_child((char *const *)argv, unit->log, &unit->pid);
}

static void finish_unit(const Compiler *cc, CompileUnit *unit)
{
    if (!unit->error)
        unit->status = wait_child(unit->pid, unit->deadline, cc->stop, &unit->error);
    unit->pid = 0;
}

/* It ended well, or nobody knows how and the object is there. */
bool compiler_made(const CompileUnit *unit)
{
    if (unit->error)
        return false;
    if (unit->status == -1)
        return access(unit->object, R_OK) == 0;
    return WIFEXITED(unit->status) && WEXITSTATUS(unit->status) == 0;
}

bool compiler_crashed(const CompileUnit *unit)
{
    static const char *const words[] = {"internal compiler error", "signal terminated program",
                                        "PLEASE submit a bug report"};
    char log[4096];
    if (unit->error || unit->status == -1 || compiler_made(unit))
        return false;
    read_text(unit->log, log, sizeof log);
    bool found = WIFSIGNALED(unit->status) || WEXITSTATUS(unit->status) > 128;
    for (size_t i = 0; i < COUNT_OF(words); i++)
        found = found || strstr(log, words[i]);
    return found;
}

bool compiler_run(const Compiler *cc, CompileUnit *unit, int n, int jobs)
{
    bool good = true, all = true; /* no failure; all made */
    if (jobs < 1)
        jobs = 1;
    for (int started = 0, done = 0; done < n; done++) {
        for (; started < n && started - done < jobs && good; started++)
            start_unit(cc, &unit[started]);
        if (done >= started) {
            unit[done].status = -1; /* not tried after a failure */
            continue;
        }
        if (!good && !unit[done].error)
            unit[done].deadline = 0; /* nobody wants it now */
        finish_unit(cc, &unit[done]);
        all &= compiler_made(&unit[done]);
        good &= compiler_made(&unit[done]) || compiler_crashed(&unit[done]);
    }
    return all;
}

static bool disk_is_full(const char *path)
{
    struct statvfs fs;
    return statvfs(path, &fs) == 0 && fs.f_blocks && fs.f_bavail * fs.f_frsize < 16384;
}

/* The line of `log` that `within` points into. */
static void first_line(char *log, char *within, char *text, size_t size)
{
    while (within > log && within[-1] != '\n')
        within--;
    within[strcspn(within, "\n")] = 0;
    snprintf(text, size, "%s", within);
}

void compiler_first_error(const CompileUnit *unit, char *text, size_t size)
{
    char log[4096];
    read_text(unit->log, log, sizeof log);
    char *best = strstr(log, "error:");
    if (!best)
        best = strstr(log, "rror");
    if (unit->error == ETIMEDOUT)
        snprintf(text, size, "it took too long and was ended (VWN_COMPILE_SECONDS is its limit)");
    else if (unit->error)
        snprintf(text, size, "it cannot be started: %s", strerror(unit->error));
    else if (best)
        first_line(log, best, text, size);
    else if (unit->status != -1 && WIFSIGNALED(unit->status)) /* before the shell's word for it */
        snprintf(text, size, "it was ended by signal %d", WTERMSIG(unit->status));
    else if (unit->status != -1 && WEXITSTATUS(unit->status) > 128)
        snprintf(text, size, "it was ended by signal %d", WEXITSTATUS(unit->status) - 128);
    else if (log[0])
        first_line(log, log, text, size);
    else if (disk_is_full(unit->log))
        snprintf(text, size, "no space left for temporary files (set TMPDIR)");
    else
        snprintf(text, size, "it failed without a message");
}

/* ---- private folders ---- */

#define FOLDER_NAME "vwn-build-"

void build_folder_remove(const char *path)
{
    DIR *dir = opendir(path);
    struct dirent *entry;
    while (dir && (entry = readdir(dir)))
        if (strcmp(entry->d_name, ".") && strcmp(entry->d_name, ".."))
            unlinkat(dirfd(dir), entry->d_name, 0);
    if (dir)
        closedir(dir);
    rmdir(path);
}

/* A build that was killed could not clean up: its folder carries the number of its process. */
static void sweep_folders(const char *parent)
{
    DIR *dir = opendir(parent);
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        struct stat st;
        char path[512], *end;
        if (strncmp(entry->d_name, FOLDER_NAME, strlen(FOLDER_NAME)))
            continue;
        long pid = strtol(entry->d_name + strlen(FOLDER_NAME), &end, 10);
        if (*end != '-' || pid <= 0 || kill((pid_t)pid, 0) == 0 || errno != ESRCH)
            continue;
        /* Another container may number its processes differently: leave young ones alone. */
        if (fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(st.st_mode) &&
            st.st_uid == geteuid() && time(NULL) - st.st_mtime > 600 &&
            (size_t)snprintf(path, sizeof path, "%s/%s", parent, entry->d_name) < sizeof path)
            build_folder_remove(path);
    }
    if (dir)
        closedir(dir);
}

bool build_folder_make(char *path, size_t size, char why[512])
{
    char parent[CACHE_PATH];
    if (!trusted_temporary(parent, sizeof parent, why))
        return false;
    int n = snprintf(path, size, "%s/" FOLDER_NAME "%ld-XXXXXX", parent, (long)getpid());
    if (n < 0 || (size_t)n >= size) {
        snprintf(why, 512, "the name of the temporary folder %.200s is too long", parent);
        return false;
    }
    sweep_folders(parent);
    if (!mkdtemp(path)) {
        snprintf(why, 512, "no temporary folder can be made in %.200s: %s (set TMPDIR)", parent, strerror(errno));
        return false;
    }
    return true;
}
