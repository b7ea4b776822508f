/* run_remove.c - `vwn runs rm`: takes a run or a sweep away, and nothing else.
 *
 * In:  a folder.   Out: the folder without what vwn has put there.
 * The one idea: a file goes when its name and its first bytes are those of a file of a run, it is a file and no link, and it
 * belongs to whoever asks. So a folder of somebody's own loses nothing, whatever its name. The files that tell that it is a run
 * go last, so that what was broken off can be begun again.
 */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "record.h"
#include "run_list.h"
#include "source.h"
#include "run_dir.h"

/* Files of a run, of a sweep, and how each begins. */
typedef struct OwnFile {
    const char *name, *mark;
} OwnFile;
static const OwnFile others[] = {{RESOLVED_FILE, "# Resolved from "},
                                 {GROWS_FILE, "# Resolved from "},
                                 {"origins.json", "{\"v\": 1,\n \"set\": ["},
                                 {LABELS_FILE, "{\"v\":1,\"event\":\"labels\""}};
static const OwnFile telling[] = {{"events.jsonl", "{\"v\":1,\"event\":\""},
                                  {RECORD_FILE, "{\"v\":1,\"event\":\"record\""},
                                  {SWEEP_MANIFEST, "{\"v\":1,\"event\":\"sweep\""}};
enum { TELLS_SWEEP = 2 }; /* its place there */
static const OwnFile lock_file = {"lock", "pid "};
static const char checkpoint_mark[] = "\"format\":\"vwn checkpoint 1\"";

typedef struct Removal {
    Session session;
    const char *folder;
    bool json;
    const vwn_writer *out;
    size_t files;
    double bytes;
    VEC(const char *) left;
} Removal;

/* ---- judging ---- */

/* Opens a file that is none of a link's, nor of somebody else's; -1: it is not there, or not ours. */
static int open_own(int folder, const char *name, struct stat *st)
{
    int fd = openat(folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (fd >= 0 && (fstat(fd, st) || !S_ISREG(st->st_mode) || st->st_uid != geteuid())) {
        close(fd);
        fd = -1;
    }
    return fd;
}

/* The first bytes, NUL-terminated. */
static bool read_first(int folder, const char *name, char *text, size_t size, struct stat *st)
{
    int fd = open_own(folder, name, st);
    ssize_t n = fd >= 0 ? read(fd, text, size - 1) : -1;
    if (fd >= 0)
        close(fd);
    text[n > 0 ? n : 0] = 0;
    return n >= 0;
}

static bool is_own(int folder, const OwnFile *f, struct stat *st)
{
    char first[64];
    return read_first(folder, f->name, first, sizeof first, st) && !strncmp(first, f->mark, strlen(f->mark));
}

/* ".NAME.tmp", as a run that was killed leaves it. */
static bool is_leftover(const char *name)
{
    size_t n = strlen(name);
    return name[0] == '.' && n > 5 && !strcmp(name + n - 4, ".tmp");
}

static bool is_checkpoint(int folder, const char *name, struct stat *st)
{
    char first[256];
    size_t n = strlen(name);
    bool named = n > 12 && !strcmp(name + n - 12, ".safetensors") &&
                 (!strncmp(name, "step_", 5) || !strncmp(name, "before_", 7));
    if (!named || !read_first(folder, name, first, sizeof first, st))
        return false;
    for (size_t i = 0; i < 8; i++) /* the length of the header */
        first[i] = first[i] ? first[i] : ' ';
    return strstr(first, checkpoint_mark) != NULL;
}

/* Opens the folder of a run, or raises why it is not to be touched. */
static int open_judged(Removal *r, const char *path)
{
    Session *s = &r->session;
    struct stat st, root;
    int fd = open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    int why = fd < 0 ? errno : 0;
    if (why)
        ctx_raise(s->ctx, ST_USAGE, "`%.300s` is not removed: %s%s", path,
                  why == ELOOP || why == ENOTDIR ? "it is a link or no folder: name the folder itself" : strerror(why),
                  why == ENOENT ? run_meant(s, path) : "");
    bool known = false, others_too = fstat(fd, &st) || st.st_uid != geteuid();
    bool is_root = !others_too && stat("/", &root) == 0 && st.st_dev == root.st_dev && st.st_ino == root.st_ino;
    for (size_t i = 0; i < COUNT_OF(telling) && !known; i++)
        known = is_own(fd, &telling[i], &st);
    if (!others_too && known && !is_root)
        return fd;
    close(fd);
    ctx_raise(s->ctx, ST_USAGE, "`%.300s` is not removed: %s", path,
              others_too ? "it belongs to another user"
              : is_root  ? "it is the root of all folders"
                         : "it holds no run or sweep that vwn has made and you own");
}

static void close_folder(void *what)
{
    int *fd = what;
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* The lock, as who trains has it, until the session ends. */
static void lock(Removal *r, const char *path, int folder)
{
    int *fd = NEW(r->session.arena, int);
    struct stat st;
    *fd = open_own(folder, lock_file.name, &st);
    session_defer(&r->session, close_folder, fd);
    if (*fd >= 0 && flock(*fd, LOCK_EX | LOCK_NB))
        ctx_raise(r->session.ctx, ST_USAGE, "`%.300s` is not removed: somebody trains there; stop that first", path);
}

/* ---- removing ---- */

static void remove_file(Removal *r, int folder, const char *path, const char *name, const struct stat *st)
{
    if (unlinkat(folder, name, 0))
        ctx_raise(r->session.ctx, ST_ENVIRONMENT, "%.300s/%.60s could not be removed: %s", path, name, strerror(errno));
    r->files++;
    r->bytes += (double)st->st_size;
}

static void remove_own(Removal *r, int folder, const char *path, const OwnFile *f)
{
    struct stat st;
    if (is_own(folder, f, &st))
        remove_file(r, folder, path, f->name, &st);
}

typedef struct Entries {
    VEC(const char *) v;
} Entries;

static Entries entries_of(Session *s, int folder)
{
    Entries all = {0};
    int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *dir = again >= 0 ? fdopendir(again) : NULL;
    CtxGuard guard;
    if (!dir) {
        if (again >= 0)
            close(again);
        return all;
    }
    if (!CTX_TRY(s->ctx, &guard)) {
        closedir(dir);
        ctx_raise_again(s->ctx);
    }
    for (struct dirent *e; (e = readdir(dir));)
        if (strcmp(e->d_name, ".") && strcmp(e->d_name, ".."))
            vec_push(s->arena, &all.v, arena_copy(s->arena, e->d_name, strlen(e->d_name)));
    ctx_leave(s->ctx, &guard);
    closedir(dir);
    return all;
}

/* What is left is told by name, not the folder of the checkpoints for what it holds. */
static void tell_left(Removal *r, int folder, const char *path)
{
    Entries all = entries_of(&r->session, folder);
    for (size_t i = 0; i < all.v.n; i++)
        if (strcmp(all.v.v[i], "ckpt"))
            vec_push(r->session.arena, &r->left, arena_printf(r->session.arena, "%s/%s", path, all.v.v[i]));
}

static void remove_checkpoints(Removal *r, int folder, const char *path)
{
    Session *s = &r->session;
    struct stat st;
    int *ckpt = NEW(s->arena, int);
    *ckpt = openat(folder, "ckpt", O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    session_defer(s, close_folder, ckpt);
    if (*ckpt < 0 || fstat(*ckpt, &st) || st.st_uid != geteuid())
        return;
    const char *inner = arena_printf(s->arena, "%s/ckpt", path);
    Entries all = entries_of(s, *ckpt);
    for (size_t i = 0; i < all.v.n; i++) {
        char first[2];
        bool own = is_leftover(all.v.v[i]) ? read_first(*ckpt, all.v.v[i], first, sizeof first, &st)
                                           : is_checkpoint(*ckpt, all.v.v[i], &st);
        if (own)
            remove_file(r, *ckpt, inner, all.v.v[i], &st);
    }
    if (unlinkat(folder, "ckpt", AT_REMOVEDIR))
        tell_left(r, *ckpt, inner);
}

static void remove_folder(Removal *r, const char *path);

/* The points of a sweep are runs that this sweep has made. */
static void remove_points(Removal *r, const char *path)
{
    ListedSweep sweep = sweep_list(&r->session, path);
    for (size_t i = 0; i < sweep.point.n; i++)
        if (sweep.point.v[i].there)
            remove_folder(r, sweep.point.v[i].path);
}

static void remove_folder(Removal *r, const char *path)
{
    Session *s = &r->session;
    int *folder = NEW(s->arena, int);
    *folder = -1;
    session_defer(s, close_folder, folder);
    *folder = open_judged(r, path);
    lock(r, path, *folder);
    struct stat st;
    if (is_own(*folder, &telling[TELLS_SWEEP], &st))
        remove_points(r, path);
    remove_checkpoints(r, *folder, path);
    Entries all = entries_of(s, *folder);
    for (size_t i = 0; i < all.v.n; i++) {
        char first[2];
        if (is_leftover(all.v.v[i]) && read_first(*folder, all.v.v[i], first, sizeof first, &st))
            remove_file(r, *folder, path, all.v.v[i], &st);
    }
    for (size_t i = 0; i < COUNT_OF(others); i++)
        remove_own(r, *folder, path, &others[i]);
    for (size_t i = 0; i < COUNT_OF(telling); i++)
        remove_own(r, *folder, path, &telling[i]);
    remove_own(r, *folder, path, &lock_file);
    if (rmdir(path))
        tell_left(r, *folder, path);
}

static void tell(Removal *r)
{
    Buf b = buf_new(r->session.arena);
    if (r->json) {
        buf_puts(&b, "{\"v\":1,\"event\":\"removed\",\"run\":");
        buf_json_string(&b, r->folder, strlen(r->folder));
        buf_printf(&b, ",\"files\":%zu,\"bytes\":%.0f,\"left\":[", r->files, r->bytes);
        for (size_t i = 0; i < r->left.n; i++) {
            buf_puts(&b, i ? "," : "");
            buf_json_string(&b, r->left.v[i], strlen(r->left.v[i]));
        }
        buf_puts(&b, "]}\n");
    } else {
        buf_printf(&b, "%s: %zu files removed, %.1f MiB\n", r->folder, r->files, r->bytes / 1048576);
        for (size_t i = 0; i < r->left.n; i++)
            buf_printf(&b, "  %s stays: no file of vwn's, or not yours\n", r->left.v[i]);
    }
    write_text(r->out, b.s, b.n);
}

static Status remove_body(void *user)
{
    Removal *r = user;
    session_open(&r->session, r->session.owner);
    size_t n = strlen(r->folder);
    while (n > 1 && r->folder[n - 1] == '/')
        n--;
    r->folder = arena_copy(r->session.arena, r->folder, n);
    remove_folder(r, r->folder);
    tell(r);
    return ST_OK;
}

Status run_remove(vwn_context *owner, const char *folder, bool json, const vwn_writer *out)
{
    Removal r = {.session.owner = owner, .folder = folder, .json = json, .out = out};
    return session_end(&r.session, guarded(owner->ctx, remove_body, &r));
}
