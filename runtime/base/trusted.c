/* trusted.c - see trusted.h.
 *
 * In:  a path.   Out: a descriptor of the folder.
 * The one idea: as sshd does with the files that it trusts, every folder from the root on must belong to
 * root or to us, and others may write it only where they cannot rename what is not theirs (a sticky one,
 * as /tmp). Each is opened in the one before, which was judged by then, and never through a link; so what
 * is judged is what is used.
 */
#define _GNU_SOURCE
#include "trusted.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Whether what lies in this folder stays what it is; `path` is its name, for people. */
static bool keeps_its_entries(int fd, const char *path, char why[256])
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        snprintf(why, 256, "%.150s: %s", path, strerror(errno));
    else if (st.st_uid != 0 && st.st_uid != geteuid())
        snprintf(why, 256, "%.150s belongs to another user", path);
    else if ((st.st_mode & 0022) && !(st.st_mode & S_ISVTX))
        snprintf(why, 256, "others may write %.150s", path);
    else
        return true;
    return false;
}

/* Opens the folders of `path`, which begins at the root, one in the other. */
static int walk(char *path, char why[256])
{
    int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    for (char *p = path; fd >= 0 && p[1];) {
        char *name = p + 1, *end = name + strcspn(name, "/"), was = *end;
        *p = 0;
        bool fine = keeps_its_entries(fd, *path ? path : "/", why);
        *p = '/';
        *end = 0;
        int next = fine ? openat(fd, name, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
        if (fine && next < 0)
            snprintf(why, 256, "%.150s: %s", path, strerror(errno));
        *end = was;
        close(fd);
        fd = next;
        p = end;
        if (!was)
            break;
    }
    return fd;
}

int trusted_folder(const char *path, bool inside, char *resolved, size_t size, char why[256])
{
    why[0] = 0;
    char *whole = realpath(path, NULL);
    if (!whole || strlen(whole) >= size) {
        snprintf(why, 256, "%s", whole ? "its name is too long" : strerror(errno));
        free(whole);
        return -1;
    }
    strcpy(resolved, whole);
    int place = walk(whole, why);
    free(whole);
    if (place < 0)
        return -1;
    int fd = openat(place, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (fd < 0)
        snprintf(why, 256, "%s", strerror(errno));
    close(place);
    if (fd >= 0 && inside && !keeps_its_entries(fd, resolved, why)) {
        close(fd);
        fd = -1;
    }
    return fd;
}
