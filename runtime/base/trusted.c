/* trusted.c - see trusted.h.
 *
 * In:  a path.   Out: a descriptor of the folder.
 * The one idea: as sshd does with the files that it trusts, every folder from the root on must belong to
 * root or to us, and others may write it only where they cannot rename what is not theirs (a sticky one,
 * as /tmp). Each is opened in the one before, which was judged by then. A link is read in the same way, and
 * followed when it belongs to root or to us; so what is judged is what is used.
 */
#define _GNU_SOURCE
#include "trusted.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINKS_MOST = 40 };
typedef struct Walk {
    TrustedHow how;
    int fd;                  /* of the folder that was reached */
    char name[PATH_MAX];     /* its name without links; "" is the root */
    char rest[2 * PATH_MAX]; /* the path from there on */
    int links;               /* that were followed */
    char *why;
} Walk;

static bool belongs_to_us(const struct stat *st) { return st->st_uid == 0 || st->st_uid == geteuid(); }

static bool refuse(Walk *w, const char *name, const char *reason)
{
    snprintf(w->why, TRUSTED_WHY, "%.350s: %.100s", name, reason);
    return false;
}

/* Whether what lies in this folder stays what it is; `path` is its name, for people. */
static bool keeps_its_entries(int fd, const char *path, char why[TRUSTED_WHY])
{
    struct stat st;
    if (fstat(fd, &st) != 0)
        snprintf(why, TRUSTED_WHY, "%.350s: %s", path, strerror(errno));
    else if (!belongs_to_us(&st))
        snprintf(why, TRUSTED_WHY, "%.350s belongs to another user", path);
    else if ((st.st_mode & 0022) && !(st.st_mode & S_ISVTX))
        snprintf(why, TRUSTED_WHY, "others may write %.350s", path);
    else
        return true;
    return false;
}

static bool begin_at_root(Walk *w)
{
    if (w->fd >= 0)
        close(w->fd);
    w->fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
    w->name[0] = 0;
    return w->fd >= 0 || refuse(w, "/", strerror(errno));
}

/* Puts what a link says in front of the rest. `link` is given back. */
static bool follow(Walk *w, int link, const char *path)
{
    struct stat st;
    char to[PATH_MAX], rest[sizeof w->rest];
    ssize_t n = readlinkat(link, "", to, sizeof to - 1);
    bool known = n > 0 && fstat(link, &st) == 0;
    close(link);
    if (!known)
        return refuse(w, path, strerror(errno));
    if (!belongs_to_us(&st))
        return refuse(w, path, "the link belongs to another user");
    to[n] = 0;
    if (++w->links > LINKS_MOST)
        return refuse(w, path, strerror(ELOOP));
    if ((size_t)snprintf(rest, sizeof rest, "%s/%s", to, w->rest) >= sizeof rest)
        return refuse(w, path, strerror(ENAMETOOLONG));
    strcpy(w->rest, rest);
    return to[0] != '/' || begin_at_root(w);
}

/* The name behind `name`, or, of "..", before it. */
static bool name_of(const Walk *w, const char *name, char path[PATH_MAX])
{
    const char *end = strrchr(w->name, '/');
    if (!strcmp(name, ".."))
        return snprintf(path, PATH_MAX, "%.*s", end ? (int)(end - w->name) : 0, w->name) >= 0;
    return (size_t)snprintf(path, PATH_MAX, "%s/%s", w->name, name) < PATH_MAX;
}

/* Opens `name` in the folder that was reached, or makes it there. */
static bool step(Walk *w, const char *name)
{
    enum { FLAGS = O_PATH | O_NOFOLLOW | O_CLOEXEC };
    struct stat st;
    char path[PATH_MAX];
    if (!name_of(w, name, path))
        return refuse(w, name, strerror(ENAMETOOLONG));
    if (!keeps_its_entries(w->fd, *w->name ? w->name : "/", w->why))
        return false;
    int next = openat(w->fd, name, FLAGS);
    if (next < 0 && errno == ENOENT && w->how == TRUSTED_MAKE && (mkdirat(w->fd, name, 0700) == 0 || errno == EEXIST))
        next = openat(w->fd, name, FLAGS);
    if (next < 0)
        return refuse(w, path, strerror(errno));
    if (fstat(next, &st) == 0 && S_ISLNK(st.st_mode))
        return follow(w, next, path);
    close(w->fd);
    w->fd = next;
    strcpy(w->name, path);
    return true;
}

static bool walk(Walk *w, const char *path)
{
    char here[PATH_MAX] = "", name[NAME_MAX + 1];
    if (path[0] != '/' && !getcwd(here, sizeof here))
        return refuse(w, ".", strerror(errno));
    if ((size_t)snprintf(w->rest, sizeof w->rest, "%s/%s", here, path) >= sizeof w->rest)
        return refuse(w, path, strerror(ENAMETOOLONG));
    if (!*path)
        return refuse(w, path, strerror(ENOENT));
    bool good = begin_at_root(w);
    while (good && *w->rest) {
        size_t n = strcspn(w->rest, "/"), after = n + strspn(w->rest + n, "/");
        good = n <= NAME_MAX || refuse(w, w->rest, strerror(ENAMETOOLONG));
        snprintf(name, sizeof name, "%.*s", (int)(n <= NAME_MAX ? n : 0), w->rest);
        memmove(w->rest, w->rest + after, strlen(w->rest + after) + 1);
        if (good && *name && strcmp(name, "."))
            good = step(w, name);
    }
    return good;
}

int trusted_folder(const char *path, TrustedHow how, char *resolved, size_t size, char why[TRUSTED_WHY])
{
    Walk w = {.how = how, .fd = -1, .why = why};
    int fd = -1;
    why[0] = 0;
    if (walk(&w, path) && (size_t)snprintf(resolved, size, "%s", *w.name ? w.name : "/") >= size) {
        refuse(&w, w.name, strerror(ENAMETOOLONG));
    } else if (!*why) {
        fd = openat(w.fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
        if (fd < 0)
            refuse(&w, w.name, strerror(errno));
    }
    if (w.fd >= 0)
        close(w.fd);
    if (fd >= 0 && how == TRUSTED_INSIDE && !keeps_its_entries(fd, resolved, why)) {
        close(fd);
        fd = -1;
    }
    return fd;
}

bool trusted_temporary(char *resolved, size_t size, char why[512])
{
    char unsafe[TRUSTED_WHY];
    const char *wanted = getenv("TMPDIR");
    if (!wanted || wanted[0] != '/')
        wanted = "/tmp";
    int fd = trusted_folder(wanted, TRUSTED_INSIDE, resolved, size, unsafe);
    if (fd < 0)
        snprintf(why, 512, "no temporary folder can be made in %.150s: %.300s (set TMPDIR)", wanted, unsafe);
    else
        close(fd);
    return fd >= 0;
}
