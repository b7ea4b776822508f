/* cuda_folders.c - where libraries of CUDA may lie besides where the system's loader looks.
 *
 * In:  the environment, and folders of this machine.   Out: those that are there, what is wanted first at the end.
 * The one idea: toolkits and Python packages each have a few roots and one layout below them, so a place is a pattern, and a row here.
 */
#define _GNU_SOURCE
#include "cuda_folders.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "compiler/base/base.h"

/* Below the folder of a toolkit, of an installation of Python, and of one of conda, which is both. */
static const char *const of_toolkit[] = {"targets/*/lib", "lib", "lib64", NULL};
static const char *const of_python[] = {"lib/python3*/*-packages/nvidia/*/lib", NULL};
static const char *const of_stubs[] = {"lib/stubs", "lib64/stubs", NULL};
static const char *const itself[] = {".", NULL};

static void add(glob_t *to, const char *root, const char *below, const char *const *layout)
{
    char pattern[2048];
    if (!root || root[0] != '/' || strpbrk(root, "*?[\\"))
        return;
    for (; *layout; layout++)
        if (snprintf(pattern, sizeof pattern, "%s%s/%s", root, below, *layout) < (int)sizeof pattern)
            glob(pattern, GLOB_APPEND, NULL, to);
}

/* The folder above that of a program of PATH, "/usr" for /usr/bin/python3: as it is called, or where it lies. */
static bool root_of_program(const char *name, bool where_it_lies, char root[PATH_MAX])
{
    char path[PATH_MAX];
    const char *folders = getenv("PATH");
    for (size_t n; folders && *folders; folders += n + (folders[n] == ':')) {
        n = strcspn(folders, ":");
        if (*folders != '/' || snprintf(path, sizeof path, "%.*s/%s", (int)n, folders, name) >= (int)sizeof path ||
            access(path, X_OK) != 0)
            continue;
        if (!where_it_lies)
            strcpy(root, path);
        else if (!realpath(path, root))
            continue;
        for (int i = 0; i < 2; i++) {
            char *last = strrchr(root, '/');
            if (!last)
                return false;
            *last = 0;
        }
        return true;
    }
    return false;
}

static void add_roots(glob_t *to, const char *const *toolkit, const char *const *python)
{
    static const char *const none[] = {NULL};
    char root[PATH_MAX];
    toolkit = toolkit ? toolkit : none;
    python = python ? python : none;
    add(to, "/usr", "", python);
    add(to, "/usr/local", "", python);
    add(to, "/opt/conda", "", python);
    add(to, getenv("HOME"), "/.pyenv/versions/*", python);
    add(to, getenv("HOME"), "/.local", python);
    add(to, "/opt/cuda", "", toolkit);
    add(to, "/usr/local", "/cuda-*", toolkit);
    add(to, "/usr/local/cuda", "", toolkit);
    for (int i = 0; i < 2; i++) {
        if (root_of_program("python3", i == 0, root))
            add(to, root, "", python);
        if (root_of_program("nvcc", i == 0, root))
            add(to, root, "", toolkit);
    }
    add(to, getenv("CONDA_PREFIX"), "", python);
    add(to, getenv("CONDA_PREFIX"), "", toolkit);
    add(to, getenv("VIRTUAL_ENV"), "", python);
    add(to, getenv("CUDA_PATH"), "", toolkit);
    add(to, getenv("CUDA_HOME"), "", toolkit);
}

void cuda_folders(CudaLibrary which, glob_t *out)
{
    *out = (glob_t){0};
    if (which != CUDA_DRIVER) {
        add_roots(out, of_toolkit, of_python);
        return;
    }
    add_roots(out, of_stubs, NULL); /* last: who has nothing else learns that this is what it is */
    add_roots(out, of_toolkit, NULL);
    add(out, "/usr/local/nvidia/lib", "", itself); /* of containers */
    add(out, "/usr/local/nvidia/lib64", "", itself);
    add(out, "/usr/lib/wsl/lib", "", itself);
}
