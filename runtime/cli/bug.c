/* bug.c - what is said and kept when vwn itself is wrong.
 *
 * In:  a broken invariant that the library reports, or a signal of a crash.   Out: a sentence, a file
 * that its finder can send, exit status 70.
 * The one idea: the head of the report is written into static memory before the verb begins, so that
 * after a crash nothing is needed but system calls that a signal handler may use. The handler has a
 * stack of its own: an overflow of the stack is a crash, too.
 */
#define _GNU_SOURCE /* REG_RIP */
#include "cli.h"

#include "runtime/base/trusted.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

static struct {
    char path[1024], head[4096];
    char why[512]; /* where it is not known: why there is no report */
    size_t head_size;
    bool known;
} report;

/* Appends to the head; what does not fit is cut. */
__attribute__((format(printf, 1, 2))) static void head(const char *fmt, ...)
{
    size_t room = sizeof report.head - report.head_size;
    va_list args;
    va_start(args, fmt);
    int n = vsnprintf(report.head + report.head_size, room, fmt, args);
    va_end(args);
    if (n > 0)
        report.head_size += (size_t)n < room ? (size_t)n : room - 1;
}

/* ---- bytes to a descriptor: async-signal-safe ---- */

static void put(int fd, const char *s, size_t n)
{
    while (n) {
        ssize_t put = write(fd, s, n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return;
        s += put;
        n -= (size_t)put;
    }
}

static void puts_to(int fd, const char *s) { put(fd, s, strlen(s)); }

static void put_hex(int fd, uintptr_t v)
{
    char text[2 + 2 * sizeof v], *p = text + sizeof text;
    do
        *--p = "0123456789abcdef"[v % 16];
    while (v /= 16);
    *--p = 'x';
    *--p = '0';
    put(fd, p, (size_t)(text + sizeof text - p));
}

static void put_file(int fd, const char *path)
{
    char block[1024];
    ssize_t n;
    int from = open(path, O_RDONLY | O_CLOEXEC);
    while (from >= 0 && (n = read(from, block, sizeof block)) > 0)
        put(fd, block, (size_t)n);
    if (from >= 0)
        close(from);
}

/* The report's file with its head; -1 when there is none. */
static int begin_report(void)
{
    int fd = report.known ? open(report.path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600) : -1;
    if (fd >= 0)
        put(fd, report.head, report.head_size);
    return fd;
}

static void end_report(int fd)
{
    if (fd < 0) {
        puts_to(STDERR_FILENO, "no report was saved");
        puts_to(STDERR_FILENO, report.known ? "" : ": ");
        puts_to(STDERR_FILENO, report.known ? "" : report.why);
        puts_to(STDERR_FILENO, "\n");
        return;
    }
    close(fd);
    puts_to(STDERR_FILENO, "a report was saved in ");
    puts_to(STDERR_FILENO, report.path);
    puts_to(STDERR_FILENO, "\n");
}

void bug_report(Call *call, const char *message)
{
    ui_error(&call->ui, "this is a bug in vwn: %s", message);
    fflush(stderr);
    int fd = begin_report();
    if (fd >= 0) {
        puts_to(fd, message);
        puts_to(fd, "\n");
    }
    end_report(fd);
}

/* ---- crashes ---- */

static const struct {
    int number;
    const char *what;
} crashes[] = {{SIGSEGV, "it crashed with SIGSEGV (an address that is not its own)"},
               {SIGBUS, "it crashed with SIGBUS (memory that is not there)"},
               {SIGFPE, "it crashed with SIGFPE (a division of integers)"},
               {SIGILL, "it crashed with SIGILL (an unknown instruction)"},
               {SIGABRT, "it crashed with SIGABRT (it or a library gave up)"}};
enum { N_CRASHES = sizeof crashes / sizeof crashes[0], CRASH_STACK = 64 << 10 };

typedef struct Place {
    uintptr_t instruction, stack; /* 0: not known */
} Place;

static Place place_of(const void *context)
{
    const ucontext_t *c = context;
#if defined __x86_64__
    return (Place){(uintptr_t)c->uc_mcontext.gregs[REG_RIP], (uintptr_t)c->uc_mcontext.gregs[REG_RSP]};
#elif defined __aarch64__
    return (Place){(uintptr_t)c->uc_mcontext.pc, (uintptr_t)c->uc_mcontext.sp};
#else
    (void)c;
    return (Place){0};
#endif
}

static uint64_t stack_size; /* that threads may have */

/* Whether a stack ended that `ulimit -s` has made smaller than what vwn is written for. */
static bool small_stack(int number, const siginfo_t *info, Place at)
{
    enum { NEAR = 64 << 10, LEAST = 1 << 20 };
    uintptr_t address = (uintptr_t)info->si_addr;
    return number == SIGSEGV && info->si_code > 0 && address - at.stack + NEAR < 2 * NEAR && stack_size < LEAST;
}

static void on_crash(int number, siginfo_t *info, void *context)
{
    static atomic_flag entered = ATOMIC_FLAG_INIT;
    const char *what = "";
    while (atomic_flag_test_and_set(&entered))
        pause(); /* another thread reports already, and ends the program */
    for (int i = 0; i < N_CRASHES; i++)
        if (crashes[i].number == number)
            what = crashes[i].what;
    Place at = place_of(context);
    if (small_stack(number, info, at)) {
        puts_to(STDERR_FILENO, "error: the stack is too small: raise its limit, as with "
                               "`ulimit -s 8192`\n");
        _exit(VWN_ENVIRONMENT);
    }
    puts_to(STDERR_FILENO, "error: this is a bug in vwn: ");
    puts_to(STDERR_FILENO, what);
    puts_to(STDERR_FILENO, "\n");
    int fd = begin_report();
    if (fd >= 0) {
        puts_to(fd, what);
        puts_to(fd, info->si_code <= 0 ? "\nsent by a program" : "\naddress: ");
        if (info->si_code > 0)
            put_hex(fd, (uintptr_t)info->si_addr);
        puts_to(fd, "\ninstruction: ");
        put_hex(fd, at.instruction);
        puts_to(fd, "\n\nmemory:\n");
        put_file(fd, "/proc/self/maps");
    }
    end_report(fd);
    _exit(VWN_BUG);
}

/* The sanitizers report crashes better than this. */
#if defined __SANITIZE_ADDRESS__
static const bool crashes_are_ours = false;
#else
static const bool crashes_are_ours = true;
#endif

static void watch_crashes(void)
{
    static _Alignas(16) char stack[CRASH_STACK];
    struct rlimit limit;
    stack_size = getrlimit(RLIMIT_STACK, &limit) == 0 ? limit.rlim_cur : RLIM_INFINITY;
    stack_t own = {.ss_sp = stack, .ss_size = sizeof stack};
    struct sigaction how = {.sa_sigaction = on_crash, .sa_flags = SA_SIGINFO | SA_ONSTACK | (int)SA_RESETHAND};
    if (!crashes_are_ours)
        return;
    sigaltstack(&own, NULL);
    sigemptyset(&how.sa_mask);
    for (int i = 0; i < N_CRASHES; i++)
        sigaction(crashes[i].number, &how, NULL);
}

void bug_watch(const Call *call)
{
    char folder[900];
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    report.known = trusted_temporary(folder, sizeof folder, report.why);
    if (report.known)
        snprintf(report.path, sizeof report.path, "%s/vwn-bug-%ld-%lld%09ld", folder, (long)getpid(),
                 (long long)now.tv_sec, now.tv_nsec);
    head("vwn %s (%s)\nverb: %s\n", vwn_version(), vwn_build_id(), call->verb->name);
    for (int i = 0; i < call->n_operands; i++)
        head("operand: %s\n", call->operand[i]);
    for (int i = 0; i < call->n_given; i++)
        head("flag: %s %s\n", call->given[i].flag->name, call->given[i].value);
    head("\n");
    watch_crashes();
}
