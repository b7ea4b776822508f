/* mapped.c - see mapped.h. */
#define _DEFAULT_SOURCE
#include "mapped.h"

#include "compiler/portable/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BLOCK = 1 << 16 };

typedef struct Mapping {
    void *at;
    size_t bytes;
} Mapping;

static void unmap(void *what)
{
    Mapping *m = what;
    munmap(m->at, m->bytes);
}

void mapped_wrong(Session *s, const char *path, const char *fmt, ...)
{
    char what[WHY];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    ctx_raise(s->ctx, ST_ENVIRONMENT, "%.300s: %s", path, what);
}

const char *mapped_path(Arena *a, const char *folder, const char *path)
{
    if (path[0] == '/' || !folder || !folder[0])
        return path;
    return arena_printf(a, "%s/%s", folder, path);
}

/* A copy that a run keeps lies elsewhere than the file did. */
static bool lies_in(const char *file, const char *folder)
{
    const char *slash = strrchr(file, '/');
    size_t n = slash ? (size_t)(slash - file) : 0;
    return n ? strlen(folder) == n && !memcmp(file, folder, n) : !*folder || !strcmp(folder, ".");
}

const char *mapped_named(Session *s, Span at, const char *folder, const char *path)
{
    if (!at.file)
        return "";
    const char *file = source_path(s->ctx, at.file);
    LineCol line = source_position(s->ctx, at.file, at.lo);
    const char *named = arena_printf(s->arena, "; it is named in %.200s:%u", file, line.line);
    if (!path || path[0] == '/')
        return named;
    return lies_in(file, folder ? folder : "")
               ? arena_printf(s->arena, "%s, and its path is relative to the folder of that file", named)
               : arena_printf(s->arena, "%s, and its path is relative to the folder `%.300s`", named, folder);
}

void mapped_open(Session *s, Mapped *m, const char *path)
{
    struct stat st;
    const char *why;
    Mapping *mapping = NEW(s->arena, Mapping); /* of the session's: *m may be gone when it ends */
    int fd = file_open(path, O_RDONLY, &why);
    if (fd < 0)
        mapped_wrong(s, path, "%s", why);
    int bad = fstat(fd, &st);
    void *map = MAP_FAILED;
    if (!bad && st.st_size > 0)
        map = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_SHARED, fd, 0);
    int error = errno;
    close(fd);
    if (!bad && st.st_size == 0)
        mapped_wrong(s, path, "byte 0: the file is empty");
    if (bad || map == MAP_FAILED)
        mapped_wrong(s, path, "%s", strerror(error));
    *m = (Mapped){path, map, (size_t)st.st_size, 0, st.st_dev, st.st_ino};
    *mapping = (Mapping){map, m->bytes};
    session_defer(s, unmap, mapping);
    size_t block = m->bytes < BLOCK ? m->bytes : BLOCK;
    m->content = hash_bytes(m->map + m->bytes - block, block, hash_bytes(m->map, block, 0));
}

bool mapped_unchanged(const Mapped *m, char why[WHY])
{
    struct stat st;
    if (!m->map)
        return true; /* drawn, not read */
    if (stat(m->path, &st)) {
        snprintf(why, WHY, "%.300s: %s", m->path, strerror(errno));
        return false;
    }
    if (st.st_dev == m->device && st.st_ino == m->inode && (uint64_t)st.st_size == m->bytes)
        return true;
    snprintf(why, WHY, "%.300s: byte %lld: the file changed while it was read; it had %zu bytes", m->path,
             (long long)st.st_size, m->bytes);
    return false;
}
