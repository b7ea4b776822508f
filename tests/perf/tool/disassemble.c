/* disassemble.c - the disassembler of the CUDA toolkit, run on a cubin.
 *
 * In:  machine code.   Out: its text; or a sentence.
 * The one idea: it is a program that reads a file, so it gets one in a folder of its own, which goes again.
 */
#define _GNU_SOURCE
#include "perf.h"

#include "runtime/base/trusted.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

extern char **environ;
static const char tool[] = "nvdisasm";

static bool is_program(const char *path)
{
    struct stat s;
    return !stat(path, &s) && S_ISREG(s.st_mode) && !access(path, X_OK);
}

bool disassembler_find(Arena *arena, const char **path, char why[512])
{
    static const char *const roots[] = {"CUDA_HOME", "CUDA_PATH", NULL};
    for (size_t i = 0; i < COUNT_OF(roots); i++) {
        const char *root = roots[i] ? getenv(roots[i]) : "/usr/local/cuda";
        if (!root || root[0] != '/')
            continue;
        *path = arena_printf(arena, "%s/bin/%s", root, tool);
        if (is_program(*path))
            return true;
    }
    const char *folders = getenv("PATH");
    for (size_t n; folders && *folders; folders += n + (folders[n] == ':')) {
        n = strcspn(folders, ":");
        *path = arena_printf(arena, "%.*s/%s", (int)n, folders, tool);
        if (n && folders[0] == '/' && is_program(*path))
            return true;
    }
    snprintf(why, 512,
             "predictions read machine code with %s, which is in none of $CUDA_HOME/bin, $CUDA_PATH/bin, "
             "/usr/local/cuda/bin "
             "and PATH: install the CUDA toolkit (its part cuda-nvdisasm)",
             tool);
    *path = NULL;
    return false;
}

static bool write_file(const char *path, const void *bytes, size_t n)
{
    FILE *f = fopen(path, "wb");
    bool good = f && fwrite(bytes, 1, n, f) == n;
    return f && !fclose(f) && good;
}

static char *read_file(Arena *arena, const char *path)
{
    FILE *f = fopen(path, "rb");
    struct stat s;
    if (!f || fstat(fileno(f), &s)) {
        if (f)
            fclose(f);
        return NULL;
    }
    size_t n = (size_t)s.st_size;
    char *text = arena_take(arena, n + 1);
    bool good = fread(text, 1, n, f) == n;
    text[n] = 0;
    fclose(f);
    return good ? text : NULL;
}

/* Its status, or -1; what it prints goes to a file. */
static int run_tool(const char *path, const char *cubin, const char *out)
{
    char *const args[] = {(char *)path, (char *)"-c", (char *)cubin, NULL};
    posix_spawn_file_actions_t act;
    pid_t child;
    int status = -1;
    if (posix_spawn_file_actions_init(&act))
        return -1;
    bool good = !posix_spawn_file_actions_addopen(&act, 0, "/dev/null", O_RDONLY, 0) &&
                !posix_spawn_file_actions_addopen(&act, 1, out, O_WRONLY | O_CREAT | O_TRUNC, 0600) &&
                !posix_spawn_file_actions_adddup2(&act, 1, 2);
    good = good && !posix_spawn(&child, path, &act, NULL, args, environ);
    posix_spawn_file_actions_destroy(&act);
    while (good && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    return good && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

const char *disassemble(Arena *arena, const char *path, const void *cubin, size_t n, char why[512])
{
    char parent[1024];
    if (!trusted_temporary(parent, sizeof parent, why))
        return NULL;
    char *folder = arena_printf(arena, "%s/vwn-XXXXXX", parent);
    if (!mkdtemp(folder)) {
        snprintf(why, 512, "no folder can be made in %.300s: %s", folder, strerror(errno));
        return NULL;
    }
    const char *in = arena_printf(arena, "%s/kernel.cubin", folder),
               *out = arena_printf(arena, "%s/kernel.sass", folder);
    char *text = NULL;
    int status = 0;
    if (!write_file(in, cubin, n))
        snprintf(why, 512, "%.300s cannot be written: %s", in, strerror(errno));
    else if ((status = run_tool(path, in, out)) != 0)
        snprintf(why, 512, "%.300s failed (status %d): it may be older than the compiler that made the kernels", path,
                 status);
    else if (!(text = read_file(arena, out)))
        snprintf(why, 512, "%.300s cannot be read", out);
    unlink(in);
    unlink(out);
    rmdir(folder);
    return text;
}
