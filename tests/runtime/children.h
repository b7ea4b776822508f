/* children.h - what tests of the kernel cache share: damaged files, several processes at
 * once, other users, other file systems.
 *
 * In:  a folder, a function to run in a child.
 * Out: whether it went well there.
 */
#ifndef VWN_TEST_CHILDREN_H
#define VWN_TEST_CHILDREN_H

#include "support/harness.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

/* Applies a damage to every file whose name ends so: 0 flips a byte, 1 cuts, 2 empties, 3
 * removes, 4 lets others write it. */
static inline void damage(const char *folder, const char *ending, int how)
{
    DIR *dir = opendir(folder);
    struct dirent *e;
    while (dir && (e = readdir(dir))) {
        char path[700], byte;
        struct stat st;
        int n = snprintf(path, sizeof path, "%s/%s", folder, e->d_name);
        if (n < 0 || (size_t)n >= sizeof path || !strstr(e->d_name, ending) || stat(path, &st) != 0)
            continue;
        int fd = open(path, O_RDWR);
        if (how == 0 && pread(fd, &byte, 1, st.st_size / 4) == 1) {
            byte ^= 4;
            if (pwrite(fd, &byte, 1, st.st_size / 4) != 1)
                perror(path);
        }
        if ((how == 1 || how == 2) && ftruncate(fd, how == 1 ? st.st_size / 2 : 0) != 0)
            perror(path);
        if (how == 3)
            unlink(path);
        if (how == 4)
            fchmod(fd, 0666);
        close(fd);
    }
    if (dir)
        closedir(dir);
}

typedef bool (*ChildFn)(const char *folder);
enum { CHILD_SKIPPED = 77 };

static inline pid_t start_child(ChildFn fn, const char *folder)
{
    fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        alarm(120);
        _exit(fn(folder) ? 0 : errno == CHILD_SKIPPED ? CHILD_SKIPPED : 1);
    }
    return pid;
}

static inline int end_child(pid_t pid)
{
    int status = -1;
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static inline void check_child(Harness *h, ChildFn fn, const char *folder, const char *what)
{
    int code = end_child(start_child(fn, folder));
    if (code == CHILD_SKIPPED)
        printf("skipped: %s\n", what);
    else
        CHECK_CASE(h, code == 0, what);
}

static inline bool skip_case(void)
{
    errno = CHILD_SKIPPED;
    return false;
}

enum { NOBODY = 65534 };

static inline bool mounted(const char *folder, unsigned long flags, const char *data)
{
    return unshare(CLONE_NEWNS) == 0 && mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
           mount("tmpfs", folder, "tmpfs", flags, data) == 0 && chmod(folder, 0700) == 0;
}

#endif
