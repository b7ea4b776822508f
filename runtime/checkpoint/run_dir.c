/* run_dir.c - see run_dir.h. */
#define _DEFAULT_SOURCE
#include "run_dir.h"
#include "run_list.h"

#include "compiler/portable/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static _Noreturn void failed(Session *s, const char *path, const char *what)
{
    ctx_raise(s->ctx, ST_ENVIRONMENT, "%.300s could not be %s: %s", path, what, strerror(errno));
}

static int open_file(Session *s, const char *path, int flags)
{
    const char *why;
    int fd = file_open(path, flags, &why);
    if (fd < 0)
        ctx_raise(s->ctx, ST_ENVIRONMENT, "%.300s could not be opened: %s", path, why);
    return fd;
}

/* ---- names ---- */

const char *run_checkpoint_name(Arena *a, int64_t step)
{
    return arena_printf(a, "step_%08lld.safetensors", (long long)step);
}

/* The step of "step_00001000.safetensors", or -1. */
static int64_t step_of_name(const char *name)
{
    if (strncmp(name, "step_", 5) || name[5] < '0' || name[5] > '9')
        return -1;
    char *end;
    errno = 0;
    int64_t step = strtoll(name + 5, &end, 10);
    return errno || strcmp(end, ".safetensors") ? -1 : step;
}

static bool is_leftover(const char *name)
{
    size_t n = strlen(name);
    return name[0] == '.' && n > 5 && !strcmp(name + n - 4, ".tmp");
}

static bool exists(const char *path)
{
    struct stat st;
    return !stat(path, &st);
}

/* Calls use(user, name) for every entry, also when use() raises; a missing folder has none. */
static void each_entry(Session *s, const char *path, void (*use)(void *user, const char *name), void *user)
{
    CtxGuard guard;
    DIR *folder = opendir(path);
    if (!folder && errno == ENOENT)
        return;
    if (!folder)
        failed(s, path, "read");
    if (!CTX_TRY(s->ctx, &guard)) {
        closedir(folder);
        ctx_raise(s->ctx, s->ctx->raised, "%s could not be read: out of memory", path);
    }
    for (struct dirent *e; (e = readdir(folder));)
        use(user, e->d_name);
    ctx_leave(s->ctx, &guard);
    closedir(folder);
}

/* ---- checkpoints ---- */

typedef struct Steps {
    Arena *arena;
    VEC(int64_t) step;
} Steps;

static void collect(void *user, const char *name)
{
    Steps *l = user;
    int64_t step = step_of_name(name);
    if (step >= 0)
        vec_push(l->arena, &l->step, step);
}

static int ascending(const void *x, const void *y)
{
    int64_t a = *(const int64_t *)x, b = *(const int64_t *)y;
    return (a > b) - (a < b);
}

StepList run_checkpoints(Session *s, const char *folder)
{
    Steps l = {.arena = s->arena};
    each_entry(s, arena_printf(s->arena, "%s/ckpt", folder), collect, &l);
    if (l.step.n)
        qsort(l.step.v, l.step.n, sizeof *l.step.v, ascending);
    return (StepList){l.step.v, l.step.n};
}

static void remove_checkpoint(Session *s, const RunDir *r, int64_t step)
{
    unlink(arena_printf(s->arena, "%s/%s", r->ckpt, run_checkpoint_name(s->arena, step)));
}

/* Makes sure of a file, or of the names in a folder. */
static void sync_path(Session *s, const char *path, bool folder)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    int bad = fd < 0 || fsync(fd), error = errno;
    if (fd >= 0)
        close(fd);
    errno = error;
    bool fine = folder ? error == EINVAL  /* some file systems have no fsync for folders */
                       : error == ENOENT; /* somebody has removed it */
    if (bad && !fine)
        failed(s, path, "written");
}

void run_keep_checkpoint(Session *s, const RunDir *r, int64_t step, const char *name)
{
    const char *kept = arena_printf(s->arena, "%s/before_%s.safetensors", r->ckpt, name);
    unlink(kept);
    if (link(arena_printf(s->arena, "%s/%s", r->ckpt, run_checkpoint_name(s->arena, step)), kept))
        failed(s, kept, "made");
    sync_path(s, r->ckpt, true); /* before the other name is given to the grown model */
}

typedef struct Kept {
    Arena *arena;
    VEC(const char *) name;
} Kept;

/* The length of NAME in "before_NAME.safetensors", or 0. */
static size_t kept_name(const char *file)
{
    size_t n = strlen(file), around = strlen("before_") + strlen(".safetensors");
    return n > around && !strncmp(file, "before_", 7) && !strcmp(file + n - 12, ".safetensors") ? n - around : 0;
}

static void collect_kept(void *user, const char *file)
{
    Kept *k = user;
    size_t n = kept_name(file);
    if (n)
        vec_push(k->arena, &k->name, arena_copy(k->arena, file + 7, n));
}

KeptList run_kept(Session *s, const char *folder)
{
    Kept k = {.arena = s->arena};
    each_entry(s, arena_printf(s->arena, "%s/ckpt", folder), collect_kept, &k);
    return (KeptList){k.name.v, k.name.n};
}

void run_prune(Session *s, const RunDir *r, int64_t keep)
{
    ArenaMark mark = arena_mark(s->arena);
    StepList l = run_checkpoints(s, r->path);
    for (size_t i = 0; i + (size_t)keep < l.n; i++)
        remove_checkpoint(s, r, l.step[i]);
    arena_reset(s->arena, mark);
}

/* ---- opening ---- */

bool run_exists(Session *s, const char *path)
{
    return exists(arena_printf(s->arena, "%s/events.jsonl", path)) ||
           (exists(arena_printf(s->arena, "%s/.", path)) && run_checkpoints(s, path).n > 0);
}

bool run_is_sweep(Session *s, const char *path) { return exists(arena_printf(s->arena, "%s/" SWEEP_MANIFEST, path)); }

bool run_is_held(Session *s, const char *path)
{
    int fd = open(arena_printf(s->arena, "%s/lock", path), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool held = fd >= 0 && flock(fd, LOCK_SH | LOCK_NB) != 0;
    if (fd >= 0)
        close(fd);
    return held;
}

void run_want(Session *s, const char *path)
{
    if (run_exists(s, path))
        return;
    const char *slash = strrchr(path, '/'), *above = slash ? arena_copy(s->arena, path, (size_t)(slash - path)) : ".";
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    if (run_is_sweep(s, path))
        ctx_raise(s->ctx, ST_USAGE,
                  "`%.300s` is no run directory: it holds a sweep, whose runs are the folders in it: `%.*s/*/`", path,
                  (int)(n < 300 ? n : 300), path);
    bool file = exists(path) && !exists(arena_printf(s->arena, "%s/.", path));
    ctx_raise(s->ctx, ST_USAGE, "`%.300s` is no run directory%s", path,
              file && run_is_sweep(s, above)
                  ? arena_printf(s->arena, ": it is a file of a sweep, whose runs are `%.200s/*/`", above)
                  : run_meant(s, path));
}

static void make_folders(Session *s, const char *path)
{
    char *p = arena_copy(s->arena, path, strlen(path));
    for (char *c = p + 1;; c++) {
        if (*c != '/' && *c)
            continue;
        char was = *c;
        *c = 0;
        if (mkdir(p, 0777) && errno != EEXIST)
            failed(s, p, "made");
        *c = was;
        if (!was)
            return;
    }
}

static void close_run(void *what)
{
    RunDir *r = what;
    if (r->events_fd >= 0)
        close(r->events_fd);
    if (r->lock_fd >= 0)
        close(r->lock_fd); /* gives the lock back */
    r->events_fd = r->lock_fd = -1;
}

static void take_lock(Session *s, RunDir *r)
{
    const char *path = arena_printf(s->arena, "%s/lock", r->path);
    r->lock_fd = open_file(s, path, O_RDWR | O_CREAT);
    char text[32] = "";
    /* a compiler that a killed run was starting may hold a copy for a moment: ask again */
    int tries = 25, locked;
    while ((locked = flock(r->lock_fd, LOCK_EX | LOCK_NB)) && errno == EWOULDBLOCK && --tries)
        nanosleep(&(struct timespec){0, 20000000}, NULL);
    if (locked) {
        if (errno != EWOULDBLOCK)
            failed(s, path, "locked");
        ssize_t n = pread(r->lock_fd, text, sizeof text - 1, 0);
        text[n > 0 ? strcspn(text, "\n") : 0] = 0;
        ctx_raise(s->ctx, ST_USAGE,
                  "another process (%s) is training in `%.300s`; stop it, or choose "
                  "another directory with --run",
                  text[0] ? text : "unknown", r->path);
    }
    int n = snprintf(text, sizeof text, "pid %ld\n", (long)getpid());
    if (ftruncate(r->lock_fd, 0) || pwrite(r->lock_fd, text, (size_t)n, 0) != n)
        failed(s, path, "written");
}

typedef struct Leftovers {
    Session *s;
    const char *folder;
} Leftovers;

static void remove_leftover(void *user, const char *name)
{
    Leftovers *l = user;
    if (is_leftover(name))
        unlink(arena_printf(l->s->arena, "%s/%s", l->folder, name));
}

/* The folder, locked; `inner`: a folder in it, which is made, too. */
static RunDir *open_locked(Session *s, const char *path, const char *inner)
{
    RunDir *r = NEW(s->arena, RunDir);
    *r = (RunDir){.lock_fd = -1, .events_fd = -1};
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    r->path = arena_copy(s->arena, path, n);
    r->ckpt = arena_printf(s->arena, "%s%s", r->path, inner);
    session_defer(s, close_run, r);
    make_folders(s, r->ckpt);
    take_lock(s, r);
    Leftovers in_run = {s, r->path};
    each_entry(s, r->path, remove_leftover, &in_run);
    return r;
}

RunDir *run_open(Session *s, const char *path)
{
    RunDir *r = open_locked(s, path, "/ckpt");
    Leftovers in_ckpt = {s, r->ckpt};
    each_entry(s, r->ckpt, remove_leftover, &in_ckpt);
    return r;
}

RunDir *run_open_folder(Session *s, const char *path) { return open_locked(s, path, ""); }

static const char *const whole_files[] = {RESOLVED_FILE, GROWS_FILE, "origins.json", RECORD_FILE};

typedef struct Clearing {
    Session *s;
    const RunDir *r;
} Clearing;

static void remove_kept(void *user, const char *name)
{
    const Clearing *c = user;
    if (kept_name(name))
        unlink(arena_printf(c->s->arena, "%s/%s", c->r->ckpt, name));
}

void run_clear(Session *s, RunDir *r)
{
    each_entry(s, r->ckpt, remove_kept, &(Clearing){s, r});
    unlink(arena_printf(s->arena, "%s/events.jsonl", r->path));
    unlink(arena_printf(s->arena, "%s/" LABELS_FILE, r->path));
    for (size_t i = 0; i < COUNT_OF(whole_files); i++)
        unlink(arena_printf(s->arena, "%s/%s", r->path, whole_files[i]));
    StepList l = run_checkpoints(s, r->path);
    for (size_t i = 0; i < l.n; i++)
        remove_checkpoint(s, r, l.step[i]);
}

/* ---- events ---- */

enum { LONGEST = 1 << 16 }; /* line */

/* Whether a line was written by a run that had done at most `step` steps. */
static bool belongs(Arena *scratch, const char *line, size_t n, int64_t step)
{
    ArenaMark mark = arena_mark(scratch);
    JsonError e;
    const Json *at = json_get(json_read(scratch, line, n, &e), "step");
    bool ok = at && at->whole && at->integer <= step;
    arena_reset(scratch, mark);
    return ok;
}

static int64_t kept_bytes(Session *s, FILE *f, int64_t step)
{
    char *line = arena_alloc(s->ctx->scratch, LONGEST);
    int64_t kept = 0;
    while (fgets(line, LONGEST, f)) {
        size_t n = strlen(line);
        if (n == 0 || line[n - 1] != '\n' || !belongs(s->ctx->scratch, line, n, step))
            break;
        kept += (int64_t)n;
    }
    return kept;
}

void run_close_stream(void *what)
{
    FILE **f = what;
    if (*f)
        fclose(*f);
    *f = NULL;
}

bool run_had_checkpoint(Session *s, const char *path)
{
    const char *why;
    bool had = false;
    ArenaMark mark = arena_mark(s->ctx->scratch);
    FILE **f = NEW(s->arena, FILE *);
    char *line = arena_alloc(s->ctx->scratch, LONGEST);
    session_defer(s, run_close_stream, f);
    *f = file_stream(arena_printf(s->ctx->scratch, "%s/events.jsonl", path), "r", &why);
    while (*f && !had && fgets(line, LONGEST, *f)) {
        JsonError e;
        ArenaMark each = arena_mark(s->ctx->scratch);
        const char *event = json_string(json_read(s->ctx->scratch, line, strlen(line), &e), "event");
        had = event && !strcmp(event, "checkpoint");
        arena_reset(s->ctx->scratch, each);
    }
    run_close_stream(f);
    arena_reset(s->ctx->scratch, mark);
    return had;
}

void run_begin_events(Session *s, RunDir *r, int64_t step)
{
    const char *path = arena_printf(s->arena, "%s/events.jsonl", r->path);
    FILE **f = NEW(s->arena, FILE *);
    session_defer(s, run_close_stream, f);
    r->events_fd = open_file(s, path, O_WRONLY | O_CREAT | O_APPEND);
    r->events_size = 0;
    const char *why;
    if (step > 0 && (*f = file_stream(path, "r", &why))) {
        ArenaMark mark = arena_mark(s->ctx->scratch);
        r->events_size = kept_bytes(s, *f, step);
        arena_reset(s->ctx->scratch, mark);
        run_close_stream(f);
    }
    if (ftruncate(r->events_fd, r->events_size))
        failed(s, path, "cut");
}

bool run_event(RunDir *r, const char *line, size_t n, char why[WHY])
{
    ssize_t put;
    do
        put = write(r->events_fd, line, n);
    while (put < 0 && errno == EINTR);
    if (put == (ssize_t)n) {
        r->events_size += put;
        return true;
    }
    int error = put < 0 ? errno : ENOSPC;
    if (put > 0 && ftruncate(r->events_fd, r->events_size))
        error = errno;
    snprintf(why, WHY,
             "%.300s/events.jsonl could not be written: %s; the last checkpoint is "
             "untouched, resume from it",
             r->path, strerror(error));
    return false;
}

void run_sync_events(Session *s, const RunDir *r)
{
    if (fsync(r->events_fd))
        failed(s, arena_printf(s->arena, "%s/events.jsonl", r->path), "written");
}

/* ---- overrides ---- */

char *run_read_file(Arena *a, const char *path, size_t *n)
{
    struct stat st;
    const char *why;
    if (stat(path, &st) || st.st_size > 1 << 26)
        return NULL;
    char *text = arena_alloc(a, (size_t)st.st_size + 1); /* before the file is open */
    FILE *f = file_stream(path, "r", &why);
    *n = f ? fread(text, 1, (size_t)st.st_size, f) : 0;
    text[*n] = 0;
    if (f)
        fclose(f);
    return f ? text : NULL;
}

Settings run_settings(Ctx *ctx, Arena *a, const char *path)
{
    size_t n;
    JsonError e;
    VEC(const char *) set = {0};
    char *text = run_read_file(a, arena_printf(ctx->scratch, "%s/origins.json", path), &n);
    const Json *all = text ? json_read(a, text, n, &e) : NULL;
    const Json *list = all && all->kind == JSON_OBJECT ? json_get(all, "set") : NULL;
    for (const Json *j = list ? list->first : NULL; j; j = j->next)
        if (j->kind == JSON_STRING)
            vec_push(a, &set, j->s);
    return (Settings){set.v, set.n};
}

/* The bytes of the path in "PATH = EXPR". */
static size_t path_length(const char *setting)
{
    size_t n = strcspn(setting, "=");
    while (n && setting[n - 1] == ' ')
        n--;
    return n;
}

const char *setting_for(const char *const *set, size_t n, const char *like)
{
    size_t length = path_length(like);
    for (size_t i = n; i-- > 0;)
        if (path_length(set[i]) == length && !memcmp(set[i], like, length))
            return set[i];
    return NULL;
}

/* ---- whole files ---- */

static bool write_whole(int fd, const char *text, size_t n)
{
    while (n) {
        ssize_t put = write(fd, text, n);
        if (put < 0 && errno == EINTR)
            continue;
        if (put <= 0)
            return false;
        text += put;
        n -= (size_t)put;
    }
    return true;
}

void run_write_file(Session *s, RunDir *r, const char *name, const char *text, size_t n)
{
    const char *path = arena_printf(s->arena, "%s/%s", r->path, name);
    const char *temporary = arena_printf(s->arena, "%s/.%s.tmp", r->path, name);
    int fd = open_file(s, temporary, O_WRONLY | O_CREAT | O_TRUNC);
    bool ok = write_whole(fd, text, n);
    ok = ok && (!exists(path) || !fsync(fd)); /* a file that takes the place of one is whole */
    int error = errno;
    close(fd);
    errno = error;
    if (!ok || rename(temporary, path)) {
        error = errno;
        unlink(temporary);
        errno = error;
        failed(s, path, "written");
    }
    r->unsynced = true;
}

void run_drop_file(Session *s, const RunDir *r, const char *name)
{
    const char *path = arena_printf(s->arena, "%s/%s", r->path, name);
    if (unlink(path) && errno != ENOENT)
        failed(s, path, "removed");
}

const char *run_kept_file(Session *s, const char *run)
{
    static const char *const names[] = {GROWS_FILE, RESOLVED_FILE};
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        const char *path = arena_printf(s->arena, "%s/%s", run, names[i]);
        if (exists(path))
            return path;
    }
    return NULL;
}

void run_sync_files(Session *s, RunDir *r)
{
    if (!r->unsynced)
        return;
    for (size_t i = 0; i <= COUNT_OF(whole_files); i++) { /* the last: the folder with their names */
        bool folder = i == COUNT_OF(whole_files);
        const char *path = folder ? r->path : arena_printf(s->arena, "%s/%s", r->path, whole_files[i]);
        if (exists(path))
            sync_path(s, path, folder);
    }
    r->unsynced = false;
}
