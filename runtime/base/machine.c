/* machine.c - see machine.h.
 *
 * In:  /proc, git.   Out: names.
 * The one idea: nothing here is needed for a run, so what cannot be told is left out.
 */
#define _GNU_SOURCE
#include "machine.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

double clock_seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

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

void machine_processor(Buf *out)
{
    char line[512];
    FILE *f = fopen("/proc/cpuinfo", "re");
    size_t before = out->n;
    while (f && out->n == before && fgets(line, sizeof line, f)) {
        const char *value = strchr(line, ':');
        if (value && !strncmp(line, "model name", 10)) {
            value += 1 + strspn(value + 1, " ");
            buf_put(out, value, strcspn(value, "\n"));
        }
    }
    if (f)
        fclose(f);
    if (out->n == before)
        buf_puts(out, "unknown");
}

Words machine_command(Arena *a)
{
    enum { MOST = 1 << 14 };
    Words words = {0};
    char *text = arena_alloc(a, MOST + 1);
    FILE *f = fopen("/proc/self/cmdline", "re");
    size_t n = f ? fread(text, 1, MOST, f) : 0;
    if (f)
        fclose(f);
    for (size_t at = 0; at < n; at += strlen(text + at) + 1)
        vec_push(a, &words, text + at);
    return words;
}

/* ---- git ---- */

enum { GIT_SECONDS = 3 }; /* that all of it may take, beside what else goes on */

/* The commit, then what `git diff` says by its status. Nothing of the repository is written, and none of its programs run. */
static const char question[] = "g='git --no-optional-locks -c core.fsmonitor=false'\n"
                               "$g rev-parse --verify -q HEAD || exit 0\n"
                               "$g diff --no-ext-diff --no-textconv --quiet HEAD --; echo $?\n";

GitAsk git_ask(void)
{
    GitAsk ask = {.fd = -1};
    int end[2];
    pid_t pid;
    posix_spawn_file_actions_t files;
    posix_spawnattr_t how;
    const char *const words[] = {"sh", "-c", question, NULL};
    if (pipe2(end, O_CLOEXEC))
        return ask;
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&how);
    posix_spawnattr_setflags(&how, POSIX_SPAWN_SETPGROUP);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, end[1], 1);
    posix_spawn_file_actions_addopen(&files, 2, "/dev/null", O_WRONLY, 0);
    if (!posix_spawn(&pid, "/bin/sh", &files, &how, (char *const *)words, environ))
        ask = (GitAsk){.pid = (int)pid, .fd = end[0], .began = clock_seconds()};
    else
        close(end[0]);
    close(end[1]);
    posix_spawnattr_destroy(&how);
    posix_spawn_file_actions_destroy(&files);
    return ask;
}

/* All that comes until the end, or until it has taken too long. */
static size_t read_answer(const GitAsk *ask, char *text, size_t most)
{
    size_t n = 0;
    while (n < most) {
        double left = ask->began + GIT_SECONDS - clock_seconds();
        struct pollfd in = {.fd = ask->fd, .events = POLLIN};
        int ready = left > 0 ? poll(&in, 1, (int)(left * 1000) + 1) : 0;
        ssize_t got = ready > 0 ? read(ask->fd, text + n, most - n) : ready;
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            break;
        n += (size_t)got;
    }
    return n;
}

GitAnswer git_answer(GitAsk *ask)
{
    GitAnswer answer = {.commit = ""};
    char text[128];
    if (ask->fd < 0)
        return answer;
    size_t n = read_answer(ask, text, sizeof text - 1), hash;
    text[n] = 0;
    kill(-(pid_t)ask->pid, SIGKILL); /* what is left of it */
    while (waitpid((pid_t)ask->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    close(ask->fd);
    ask->fd = -1;
    hash = strspn(text, "0123456789abcdef");
    if (hash < 40 || hash > 64 || text[hash] != '\n')
        return answer;
    memcpy(answer.commit, text, hash);
    answer.commit[hash] = 0;
    answer.known = (text[hash + 1] == '0' || text[hash + 1] == '1') && text[hash + 2] == '\n';
    answer.dirty = text[hash + 1] == '1';
    return answer;
}
