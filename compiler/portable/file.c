/* file.c - see file.h.
 *
 * In:  a path.   Out: a descriptor of a regular file, or why there is none.
 * The one idea: the kind is asked before opening, since opening alone can do harm, and once more of what
 * was opened, which may be something else by then; in between nothing can wait (O_NONBLOCK, which
 * regular files ignore).
 */
#define _GNU_SOURCE
#include "file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Why it is not opened, or NULL for a regular file. */
static const char *wrong_kind(mode_t mode)
{
    if (S_ISREG(mode))
        return NULL;
    errno = S_ISDIR(mode) ? EISDIR : EINVAL;
    return S_ISDIR(mode)    ? "it is a folder, not a file"
           : S_ISFIFO(mode) ? "it is a pipe, not a file"
           : S_ISSOCK(mode) ? "it is a socket, not a file"
                            : "it is a device, not a file";
}

const char *file_wrong_kind(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 ? wrong_kind(st.st_mode) : NULL;
}

int file_open(const char *path, int flags, const char **why)
{
    struct stat st;
    *why = file_wrong_kind(path);
    if (*why)
        return -1;
    int fd = open(path, flags | O_CLOEXEC | O_NOCTTY | O_NONBLOCK, 0666);
    if (fd >= 0 && fstat(fd, &st) == 0 && !(*why = wrong_kind(st.st_mode)))
        return fd;
    if (!*why)
        *why = strerror(errno);
    int error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    return -1;
}

FILE *file_stream(const char *path, const char *mode, const char **why)
{
    int fd = file_open(path, *mode == 'w' ? O_WRONLY | O_CREAT | O_TRUNC : O_RDONLY, why);
    FILE *f = fd < 0 ? NULL : fdopen(fd, mode);
    if (fd >= 0 && !f) {
        *why = strerror(errno);
        close(fd);
    }
    return f;
}

static bool ends_in_vwn(const char *path)
{
    size_t n = strlen(path);
    return n > 4 && !strcmp(path + n - 4, ".vwn") && path[n - 5] != '/';
}

const char *file_not_vwn(const char *path, bool imported)
{
    if (!ends_in_vwn(path))
        return imported ? "its name does not end in .vwn" : NULL;
    char *real = realpath(path, NULL); /* NULL: opening it says why */
    bool other = real && !ends_in_vwn(real);
    free(real);
    return other ? "it is a link to a file whose name does not end in .vwn" : NULL;
}
