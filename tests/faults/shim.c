/* shim.c - preloaded into vwn: the n-th call of a kind fails, or the power is cut at the n-th operation on
 * a file of a run.
 *
 * In:  VWN_FAULT="KIND N" with KIND write, fsync, rename, link or malloc: that call fails (0: none);
 *      VWN_FAULT="power N" or "names N": the process ends before operation N, and the files below runs/
 *      are left in a state that POSIX allows then. power: what was not synced is lost, names and removals
 *      are not. names: new names are lost, too, whose folder was not synced, and a name that one of them took
 *      over means the file from before. "names N KEPT": but for those whose bit is set in KEPT, from the first on.
 *      VWN_COUNT: a file for the number of calls and, below it, the operations before which several names may be lost;
 *      at a cut for how many names there are that may be lost.
 * Out: exit status 99 at the cut.
 * The one idea: a disk may keep names and lose bytes, or keep removals and lose names, whatever the order
 * in which they were made; only fsync promises anything.
 *
 * Calls of vwn and of the C library are counted; the libraries of products are not ours. Programs that
 * vwn starts are left alone.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <link.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { FILES = 1024, NAMES = 256, CUT = 99 };

static struct {
    char kind[16];
    long at, count, kept;
    const char *to;
    uintptr_t lo, hi; /* of the program */
} fault;

static struct File {
    ino_t inode;
    char path[256];
    off_t synced; /* bytes that a power cut leaves */
    bool dirty;
} file[FILES];
static int n_file;
static struct Rename {       /* whose folder has not been synced */
    char from[256], to[256]; /* from "": a new name of a file that keeps its other one */
    char old[32];            /* another name of the file that `to` meant, "": there was none */
} renamed[NAMES];
static int n_renamed, n_old;
enum { SEVERAL = 64 };
static long several[SEVERAL]; /* operations before which several names may be lost, the first of each set of names */
static int n_several;

/* ---- which call ---- */

static int on_object(struct dl_phdr_info *info, size_t size, void *user)
{
    (void)size, (void)user;
    for (int i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *h = &info->dlpi_phdr[i];
        uintptr_t lo = info->dlpi_addr + h->p_vaddr;
        if (h->p_type != PT_LOAD)
            continue;
        if (!fault.lo || lo < fault.lo)
            fault.lo = lo;
        if (lo + h->p_memsz > fault.hi)
            fault.hi = lo + h->p_memsz;
    }
    return 1; /* the first is the program */
}

__attribute__((constructor)) static void begin(void)
{
    const char *asked = getenv("VWN_FAULT");
    fault.to = getenv("VWN_COUNT");
    unsetenv("LD_PRELOAD");
    dl_iterate_phdr(on_object, NULL);
    if (asked)
        sscanf(asked, "%15s %ld %ld", fault.kind, &fault.at, &fault.kept);
    fault.count = 0;
}

static void tell(long number)
{
    char text[64 + 32 * SEVERAL];
    int n = snprintf(text, sizeof text, "%ld\n", number);
    for (int i = 0; i < n_several; i++)
        n += snprintf(text + n, sizeof text - (size_t)n, "%ld\n", several[i]);
    int fd = fault.to ? (int)syscall(SYS_openat, AT_FDCWD, fault.to, O_WRONLY | O_CREAT | O_TRUNC, 0666) : -1;
    if (fd >= 0 && syscall(SYS_write, fd, text, n) < 0)
        perror(fault.to);
}

__attribute__((destructor)) static void end(void) { tell(fault.count); }

static bool is_kind(const char *kind) { return !strcmp(fault.kind, kind); }

/* Whether this call is the one that fails. */
static bool fails(const char *kind, int error)
{
    if (!is_kind(kind) || __atomic_add_fetch(&fault.count, 1, __ATOMIC_SEQ_CST) != fault.at)
        return false;
    errno = error;
    return true;
}

/* ---- the power ---- */

static bool power(void) { return is_kind("power") || is_kind("names"); }

static struct File *file_of(int fd)
{
    struct stat st;
    for (int i = 0; fstat(fd, &st) == 0 && i < n_file; i++)
        if (file[i].inode == st.st_ino)
            return &file[i];
    return NULL;
}

static bool is_lost(int name) { return is_kind("names") && !(fault.kept >> name & 1); }

static void cut(void)
{
    for (int i = n_renamed; i-- > 0;) {
        const struct Rename *r = &renamed[i];
        if (!is_lost(i))
            continue;
        if (r->from[0])
            syscall(SYS_rename, r->to, r->from);
        else
            syscall(SYS_unlink, r->to);
        if (r->old[0])
            syscall(SYS_rename, r->old, r->to);
    }
    for (int i = 0; i < n_file; i++)
        for (int k = n_renamed; k-- > 0;)
            if (is_lost(k) && !strcmp(file[i].path, renamed[k].to))
                strcpy(file[i].path, renamed[k].from);
    for (int i = 0; i < n_file; i++)
        if (file[i].dirty)
            syscall(SYS_truncate, file[i].path, file[i].synced);
    tell(n_renamed);
    syscall(SYS_exit_group, CUT);
}

static void operation(void)
{
    static int before;
    if (++fault.count == fault.at)
        cut();
    if (n_renamed > 1 && n_renamed != before && n_several < SEVERAL)
        several[n_several++] = fault.count;
    before = n_renamed;
}

static void written(int fd)
{
    struct File *f = power() ? file_of(fd) : NULL;
    if (!f)
        return;
    operation();
    f->dirty = true;
}

static void opened(int fd, const char *path, int flags)
{
    struct stat st;
    if (fd < 0 || !power() || (flags & O_ACCMODE) == O_RDONLY || !strstr(path, "runs/") || fstat(fd, &st) != 0)
        return;
    struct File *f = file_of(fd);
    if (!f && n_file < FILES)
        *(f = &file[n_file++]) = (struct File){.inode = st.st_ino, .synced = st.st_size};
    if (!f)
        return;
    snprintf(f->path, sizeof f->path, "%s", path);
    if (flags & O_TRUNC)
        f->synced = 0, f->dirty = true;
}

static void synced(int fd)
{
    struct stat st;
    struct File *f = file_of(fd);
    if (fstat(fd, &st) != 0)
        return;
    if (f)
        f->dirty = false, f->synced = st.st_size;
    for (int i = 0; S_ISDIR(st.st_mode) && i < n_renamed;) {
        char folder[256];
        struct stat of;
        snprintf(folder, sizeof folder, "%s", renamed[i].to);
        *strrchr(folder, '/') = 0;
        if (stat(folder, &of) != 0 || of.st_ino != st.st_ino) {
            i++;
            continue;
        }
        if (renamed[i].old[0])
            syscall(SYS_unlink, renamed[i].old);
        memmove(renamed + i, renamed + i + 1, (size_t)(--n_renamed - i) * sizeof *renamed);
    }
}

static void named(const char *from, const char *to)
{
    struct Rename *r = &renamed[n_renamed];
    if (n_renamed == NAMES)
        return;
    n_renamed++;
    snprintf(r->from, sizeof r->from, "%s", from);
    snprintf(r->to, sizeof r->to, "%s", to);
    snprintf(r->old, sizeof r->old, "old.%d", n_old++);
    syscall(SYS_unlink, r->old);
    if (!is_kind("names") || syscall(SYS_link, to, r->old) != 0)
        r->old[0] = 0;
}

/* ---- calls on files ---- */

/* The function that this one stands before. */
static void *real(const char *name) { return dlsym(RTLD_NEXT, name); }

int open(const char *path, int flags, ...)
{
    va_list args;
    va_start(args, flags);
    int mode = flags & O_CREAT ? va_arg(args, int) : 0;
    va_end(args);
    if (power() && (flags & O_ACCMODE) != O_RDONLY && strstr(path, "runs/"))
        operation();
    int fd = (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
    opened(fd, path, flags);
    return fd;
}

ssize_t write(int fd, const void *p, size_t n)
{
    if (fd != 2 && fails("write", ENOSPC))
        return -1;
    written(fd);
    return syscall(SYS_write, fd, p, n);
}

ssize_t pwrite(int fd, const void *p, size_t n, off_t at)
{
    if (fails("write", EIO))
        return -1;
    written(fd);
    return syscall(SYS_pwrite64, fd, p, n, at);
}

/* Streams write inside the C library, where no other function can stand in. */
size_t fwrite(const void *p, size_t size, size_t n, FILE *f)
{
    if (f != stderr && fails("write", ENOSPC))
        return 0;
    size_t (*next)(const void *, size_t, size_t, FILE *);
    *(void **)&next = real("fwrite");
    return next(p, size, n, f);
}

int fclose(FILE *f)
{
    bool bad = f != stderr && fails("write", EIO);
    int (*next)(FILE *);
    *(void **)&next = real("fclose");
    int result = next(f);
    if (bad)
        errno = EIO;
    return bad ? EOF : result;
}

int fflush(FILE *f)
{
    int (*next)(FILE *);
    *(void **)&next = real("fflush");
    return f != stderr && f && fails("write", ENOSPC) ? EOF : next(f);
}

int fsync(int fd)
{
    if (fails("fsync", EIO))
        return -1;
    if (power()) {
        operation();
        synced(fd);
        return 0;
    }
    return (int)syscall(SYS_fsync, fd);
}

int rename(const char *from, const char *to)
{
    if (fails("rename", EIO))
        return -1;
    if (power() && strstr(to, "runs/")) {
        operation();
        for (int i = 0; i < n_file; i++)
            if (!strcmp(file[i].path, from))
                snprintf(file[i].path, sizeof file[i].path, "%s", to);
        named(from, to);
    }
    return (int)syscall(SYS_rename, from, to);
}

int link(const char *from, const char *to)
{
    if (fails("link", EIO))
        return -1;
    if (power() && strstr(to, "runs/")) {
        operation();
        named("", to);
    }
    return (int)syscall(SYS_link, from, to);
}

int renameat(int a, const char *from, int b, const char *to)
{
    return fails("rename", EIO) ? -1 : (int)syscall(SYS_renameat2, a, from, b, to, 0);
}

int unlink(const char *path)
{
    if (power() && strstr(path, "runs/"))
        operation();
    return (int)syscall(SYS_unlink, path);
}

/* ---- memory ---- */

extern void *__libc_malloc(size_t), *__libc_calloc(size_t, size_t), *__libc_realloc(void *, size_t),
    *__libc_memalign(size_t, size_t);

static bool no_memory(void *caller)
{
    uintptr_t at = (uintptr_t)caller;
    return at >= fault.lo && at < fault.hi && fails("malloc", ENOMEM);
}

void *malloc(size_t n) { return no_memory(__builtin_return_address(0)) ? NULL : __libc_malloc(n); }

void *calloc(size_t n, size_t size) { return no_memory(__builtin_return_address(0)) ? NULL : __libc_calloc(n, size); }

void *realloc(void *p, size_t n) { return no_memory(__builtin_return_address(0)) ? NULL : __libc_realloc(p, n); }

void *aligned_alloc(size_t alignment, size_t n)
{
    return no_memory(__builtin_return_address(0)) ? NULL : __libc_memalign(alignment, n);
}
