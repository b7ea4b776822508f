/* cache.c - see cache.h. */
#define _GNU_SOURCE
#include "cache.h"

#include "folder.h"
#include "sha256.h"
#include "trusted.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define TEMPORARY ".tmp-"

static const struct {
    const char *format, *ending;
} kinds[] = {[CACHE_SHARED_OBJECTS] = {"vwn-cpu-1", ".so"}, [CACHE_CUBINS] = {"vwn-cuda-1", ".cubin"}};

/* ---- the folder ---- */

__attribute__((format(printf, 2, 3))) static void note(Cache *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(c->note, sizeof c->note, fmt, ap);
    va_end(ap);
}

/* The default place; false when no home is known. */
static bool default_dir(char *dir, size_t size)
{
    const char *base = getenv("XDG_CACHE_HOME");
    if (base && base[0] == '/')
        return (size_t)snprintf(dir, size, "%s/vwn", base) < size;
    base = getenv("HOME");
    if (!base || base[0] != '/') {
        struct passwd entry, *found = NULL;
        char text[1024];
        getpwuid_r(geteuid(), &entry, text, sizeof text, &found);
        if (!found || !found->pw_dir || found->pw_dir[0] != '/')
            return false;
        return (size_t)snprintf(dir, size, "%s/.cache/vwn", found->pw_dir) < size;
    }
    return (size_t)snprintf(dir, size, "%s/.cache/vwn", base) < size;
}

/* ---- whose folder it is ---- */

/* A file that vwn puts first into a folder that it makes or finds empty: only such a folder is a cache. */
#define TAG "vwn-cache.tag"
static const char tag_text[] = "vwn keeps compiled kernels in this folder. It may be removed while no vwn runs.\n";

static bool has_tag(const Cache *c)
{
    struct stat st;
    return fstatat(c->fd, TAG, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid();
}

static DIR *list_folder(const Cache *c)
{
    int fd = openat(c->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = fd >= 0 ? fdopendir(fd) : NULL;
    if (!dir && fd >= 0)
        close(fd);
    return dir;
}

static bool is_empty(const Cache *c)
{
    DIR *dir = list_folder(c);
    bool empty = dir && folder_is_empty(dir);
    if (dir)
        closedir(dir);
    return empty;
}

/* Makes an empty folder a cache. Another process may do so at the same time. */
static void put_tag(Cache *c)
{
    int fd = openat(c->fd, TAG, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (fd < 0)
        return;
    ssize_t put = write(fd, tag_text, sizeof tag_text - 1); /* for people: the name is what counts */
    (void)put;
    close(fd);
}

/* Only a folder that vwn has made, or found empty, which nobody else may write, may hold code that we run.
 * Its mode is the user's: it is not changed. */
static bool folder_is_ours(Cache *c)
{
    struct stat st;
    const char *why = "";
    if (fstat(c->fd, &st) != 0)
        why = strerror(errno);
    else if (st.st_uid != geteuid())
        why = "it belongs to another user";
    else if (st.st_mode & 0022)
        why = "others may write it";
    else if (!has_tag(c) && is_empty(c))
        put_tag(c);
    else if (!has_tag(c)) /* a second look: another process may have made it a cache meanwhile */
        why = "it holds files of others; name a new or an empty folder";
    if (*why)
        note(c, "the kernel cache %.350s is not used: %s", c->dir, why);
    return !*why;
}

void cache_open(Cache *c, CacheKind kind, const char *asked)
{
    *c = (Cache){.kind = kind, .fd = -1, .limit = (uint64_t)512 << 20};
    if (asked && !*asked)
        return;
    if (asked ? (size_t)snprintf(c->dir, sizeof c->dir, "%s", asked) >= sizeof c->dir
              : !default_dir(c->dir, sizeof c->dir)) {
        c->dir[0] = 0;
        note(c, "there is no kernel cache: neither XDG_CACHE_HOME nor HOME names a folder");
        return;
    }
    char resolved[CACHE_PATH], why[TRUSTED_WHY];
    c->fd = trusted_folder(c->dir, TRUSTED_MAKE, resolved, sizeof resolved, why);
    if (c->fd < 0) {
        note(c, "the kernel cache %.350s cannot be used: %s", c->dir, why);
        return;
    }
    if (!folder_is_ours(c)) {
        close(c->fd);
        c->fd = -1;
        return;
    }
    c->readable = true;
    c->writable = faccessat(c->fd, ".", W_OK | X_OK, AT_EACCESS) == 0;
    if (!c->writable)
        note(c, "the kernel cache %.350s is read-only: new kernels are not kept", c->dir);
}

void cache_close(Cache *c)
{
    if (c->fd >= 0)
        close(c->fd);
    c->fd = -1;
    c->readable = c->writable = false;
}

/* ---- reading ---- */

/* Opens a regular file of ours; -1 when it is not there or not ours. */
static int open_own(const Cache *c, const char *name, off_t *size)
{
    struct stat st;
    int fd = openat(c->fd, name, O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK);
    if (fd < 0)
        return -1;
    if (fstat(fd, &st) != 0 || !S_ISREG(st.st_mode) || st.st_uid != geteuid() || (st.st_mode & 0022)) {
        close(fd);
        return -1;
    }
    *size = st.st_size;
    return fd;
}

static ssize_t read_some(int fd, void *p, size_t n)
{
    ssize_t got;
    do
        got = read(fd, p, n);
    while (got < 0 && errno == EINTR);
    return got;
}

static bool is_hex64(const char *s) { return strspn(s, "0123456789abcdef") >= 64; }

/* Copies the 64 digits after "field": " in the text of an entry. */
static bool hex_field(const char *text, const char *field, char hex[65])
{
    const char *p = strstr(text, field);
    if (!p || !is_hex64(p + strlen(field)))
        return false;
    memcpy(hex, p + strlen(field), 64);
    hex[64] = 0;
    return true;
}

size_t cache_get_text(const Cache *c, const char *name, char *text, size_t size)
{
    off_t bytes;
    int fd = c->readable ? open_own(c, name, &bytes) : -1;
    if (fd < 0)
        return 0;
    ssize_t n = read_some(fd, text, size - 1);
    close(fd);
    if (n <= 0 || n != bytes)
        return 0;
    text[n] = 0;
    return (size_t)n;
}

bool cache_find(Cache *c, const char key[65], char object[65])
{
    char name[80], text[2048], format[64], again[65];
    snprintf(format, sizeof format, "\"format\": \"%s\"", kinds[c->kind].format);
    snprintf(name, sizeof name, "%.64s.json", key);
    size_t n = cache_get_text(c, name, text, sizeof text);
    return n && text[n - 1] == '\n' && strstr(text, format) && hex_field(text, "\"key\": \"", again) &&
           !memcmp(again, key, 64) && hex_field(text, "\"object\": \"", object);
}

/* The file of an object, opened; -1 is a miss. */
static int open_object(const Cache *c, const char object[65], off_t *bytes)
{
    char name[80];
    if (!c->readable)
        return -1;
    snprintf(name, sizeof name, "%.64s%s", object, kinds[c->kind].ending);
    return open_own(c, name, bytes);
}

void *cache_read(Cache *c, Ctx *ctx, const char object[65], size_t *size)
{
    off_t bytes;
    int fd = open_object(c, object, &bytes);
    if (fd < 0)
        return NULL;
    char *block = NULL, hex[65];
    size_t got = 0;
    Sha256 hash;
    CtxGuard guard;
    /* The descriptor must not be lost where memory runs out: that is a miss, too. */
    if (bytes > 0 && bytes <= (off_t)c->limit && CTX_TRY(ctx, &guard)) {
        block = ctx_alloc(ctx, (size_t)bytes);
        ctx_leave(ctx, &guard);
    }
    for (ssize_t n = 1; block && got < (size_t)bytes && n > 0; got += (size_t)(n > 0 ? n : 0))
        n = read_some(fd, block + got, (size_t)bytes - got);
    futimens(fd, NULL); /* used now: cache_prune takes the oldest; may fail, no matter */
    close(fd);
    sha256_start(&hash);
    sha256_add(&hash, block, block ? got : 0);
    sha256_hex(&hash, hex);
    *size = got;
    if (block && got == (size_t)bytes && !memcmp(hex, object, 64))
        return block;
    ctx_release(ctx, block);
    return NULL;
}

/* ---- writing ---- */

static bool write_all(int fd, const char *p, size_t n)
{
    while (n) {
        ssize_t put = write(fd, p, n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0) {
            if (put == 0)
                errno = ENOSPC;
            return false;
        }
        p += put;
        n -= (size_t)put;
    }
    return true;
}

/* Writes a file under a temporary name, then renames it. */
static bool put_file(Cache *c, const char *name, const void *bytes, size_t n)
{
    char temporary[160];
    int fd = -1;
    if (!c->writable)
        return false;
    for (int attempt = 0; attempt < 100 && fd < 0; attempt++) {
        snprintf(temporary, sizeof temporary, "%.80s" TEMPORARY "%ld-%u", name, (long)getpid(), c->serial++);
        fd = openat(c->fd, temporary, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
        if (fd < 0 && errno != EEXIST)
            break;
    }
    bool good = fd >= 0 && write_all(fd, bytes, n);
    int error = errno;
    if (fd >= 0 && close(fd) != 0 && good) {
        good = false;
        error = errno;
    }
    if (good && renameat(c->fd, temporary, c->fd, name) != 0) {
        good = false;
        error = errno;
    }
    if (good)
        return true;
    if (fd >= 0)
        unlinkat(c->fd, temporary, 0);
    c->writable = false;
    note(c, "the kernel cache %.350s cannot be written: %s", c->dir, strerror(error));
    return false;
}

bool cache_put_object(Cache *c, const void *bytes, size_t n, char object[65])
{
    Sha256 hash;
    char name[80];
    sha256_start(&hash);
    sha256_add(&hash, bytes, n);
    sha256_hex(&hash, object);
    snprintf(name, sizeof name, "%.64s%s", object, kinds[c->kind].ending);
    return put_file(c, name, bytes, n);
}

/* Copies text for a JSON string; what would need an escape becomes a blank. */
static void plain_text(char *to, size_t size, const char *from)
{
    size_t i = 0;
    for (; from[i] && i + 1 < size; i++) {
        unsigned char ch = (unsigned char)from[i];
        to[i] = ch < 0x20 || ch == '"' || ch == '\\' ? ' ' : (char)ch;
    }
    to[i] = 0;
}

bool cache_put_entry(Cache *c, const char key[65], const char object[65], const char *kernel, const char *compiler,
                     const char *options, const char *facts)
{
    char name[80], text[2048], words[3][400];
    plain_text(words[0], sizeof words[0], kernel);
    plain_text(words[1], sizeof words[1], compiler);
    plain_text(words[2], sizeof words[2], options);
    int n = snprintf(text, sizeof text,
                     "{\"format\": \"%s\", \"key\": \"%.64s\", \"object\": \"%.64s\", "
                     "\"kernel\": \"%s\", %.300s\"compiler\": \"%s\", \"options\": \"%s\"}\n",
                     kinds[c->kind].format, key, object, words[0], facts, words[1], words[2]);
    snprintf(name, sizeof name, "%.64s.json", key);
    return put_file(c, name, text, (size_t)n);
}

bool cache_put_text(Cache *c, const char *name, const char *text, size_t n) { return put_file(c, name, text, n); }

/* ---- keeping it small ---- */

static bool is_object(const char *name)
{
    const char *ending = strrchr(name, '.');
    for (size_t i = 0; ending && i < COUNT_OF(kinds); i++)
        if (!strcmp(ending, kinds[i].ending))
            return true;
    return false;
}

/* Visits the files: sums them, and finds the one used least recently. */
static int64_t survey(const Cache *c, int64_t *files, char oldest[256])
{
    int64_t bytes = 0, oldest_time = INT64_MAX;
    *files = 0;
    oldest[0] = 0;
    DIR *dir = list_folder(c);
    struct dirent *entry;
    while (dir && (entry = readdir(dir))) {
        struct stat st;
        if (fstatat(c->fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(st.st_mode) ||
            !strcmp(entry->d_name, TAG))
            continue;
        if (strstr(entry->d_name, TEMPORARY) && time(NULL) - st.st_mtime > 3600) {
            unlinkat(c->fd, entry->d_name, 0);
            continue;
        }
        ++*files;
        bytes += st.st_size;
        if (is_object(entry->d_name) && st.st_mtime < oldest_time) {
            oldest_time = st.st_mtime;
            snprintf(oldest, 256, "%s", entry->d_name);
        }
    }
    if (dir)
        closedir(dir);
    return bytes;
}

void cache_prune(Cache *c)
{
    char oldest[256];
    int64_t files;
    if (!c->writable)
        return;
    /* An entry without its object is a miss and is written again: so objects go, entries stay.
     */
    for (int i = 0; i < 1000 && survey(c, &files, oldest) > (int64_t)c->limit && oldest[0]; i++)
        if (unlinkat(c->fd, oldest, 0) != 0)
            break;
}

void cache_size(const Cache *c, int64_t *files, int64_t *bytes)
{
    char oldest[256];
    *files = *bytes = 0;
    if (c->fd >= 0)
        *bytes = survey(c, files, oldest);
}
