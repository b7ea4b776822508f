/* files.c - files that verbs write, and what their names say.
 *
 * In:  a name, a content.   Out: the file, whole, or as it was before.
 */
#include "cli.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

bool replace_file(const char *path, const char *text, size_t n)
{
    int made = open(path, O_WRONLY | O_CREAT | O_EXCL, 0666);
    if (made >= 0)
        close(made);
    char *real = realpath(path, NULL);
    if (!real)
        return false;
    size_t size = strlen(real) + 16;
    char *temporary = malloc(size);
    struct stat before;
    bool ok = temporary && stat(real, &before) == 0;
    int fd = -1;
    if (ok) {
        snprintf(temporary, size, "%s.XXXXXX", real);
        fd = mkstemp(temporary);
        ok = fd >= 0 && fchmod(fd, before.st_mode & 07777) == 0;
    }
    for (size_t at = 0; ok && at < n;) {
        ssize_t put = write(fd, text + at, n - at);
        if (put > 0)
            at += (size_t)put;
        else if (errno != EINTR)
            ok = false;
    }
    ok = ok && fsync(fd) == 0;
    if (fd >= 0 && close(fd) != 0)
        ok = false;
    ok = ok && rename(temporary, real) == 0;
    int why = errno;
    if (!ok && fd >= 0)
        unlink(temporary);
    if (!ok && made >= 0)
        unlink(real);
    free(temporary);
    free(real);
    errno = why;
    return ok;
}

bool save_text(Call *call, const char *path, Text *text)
{
    bool fine = !text->failed && replace_file(path, text->s ? text->s : "", text->n);
    if (!fine)
        ui_error(&call->ui, "cannot write %s: %s", path, text->failed ? "out of memory" : strerror(errno));
    else if (!call->json)
        ui_say(&call->ui, "Written", "%s, %zu bytes", path, text->n);
    text_free(text);
    return fine;
}

bool ends_with(const char *s, const char *end)
{
    size_t n = strlen(s), m = strlen(end);
    return n >= m && !strcmp(s + n - m, end);
}

int file_ending(const char *name, const char *const *ends)
{
    for (int i = 0; ends[i]; i++)
        if (ends_with(name, ends[i]) && strcmp(name, ends[i]))
            return i;
    return -1;
}

bool is_folder(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && S_ISDIR(st.st_mode);
}
