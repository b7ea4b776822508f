/* run_list.c - see run_list.h. */
#define _GNU_SOURCE
#include "run_list.h"

#include <dirent.h>
#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <sys/stat.h>

enum { DEEPEST = 12 }; /* folders below the one that is asked for */

/* ---- points ---- */

/* A point's settings without that of the seed, which names what it shares with others. */
static const char *config_of(Arena *a, const char *name, const Json *set)
{
    Buf b = buf_new(a);
    bool seeded = false;
    for (const Json *j = set ? set->first : NULL; j; j = j->next) {
        bool seed = j->kind == JSON_STRING && !strncmp(j->s, "train.seed=", 11);
        seeded |= seed;
        if (j->kind == JSON_STRING && !seed)
            buf_printf(&b, "%s\n", j->s);
    }
    const char *cut = strstr(name, "seed-");
    for (const char *next = cut; next; next = strstr(next + 1, "seed-"))
        cut = next;
    if (!seeded || !cut || (cut > name && cut[-1] != '_'))
        return name;
    return cut == name ? "" : arena_copy(a, name, (size_t)(cut - name) - 1);
}

ListedSweep sweep_list(Session *s, const char *folder)
{
    Arena *a = s->arena;
    ListedSweep out = {.name = ""};
    size_t n;
    JsonError e;
    const char *path = arena_printf(a, "%s/" SWEEP_MANIFEST, folder), *text = run_read_file(a, path, &n);
    Json *j = text ? json_read(a, text, n, &e) : NULL;
    const Json *points = j && j->kind == JSON_OBJECT ? json_get(j, "points") : NULL;
    if (!points || points->kind != JSON_ARRAY)
        ctx_raise(s->ctx, ST_ENVIRONMENT, "%.300s cannot be read, or is no list of points", path);
    json_make_plain(a, j);
    out.name = json_string(j, "name") ? json_string(j, "name") : "";
    for (const Json *p = points->first; p; p = p->next) {
        const char *name = json_string(p, "name"), *state = json_string(p, "state");
        const Json *params = json_get(p, "params");
        if (!name || !*name || *name == '.' || strchr(name, '/') || !state) /* another folder is no point of this one */
            continue;
        ListedPoint q = {.path = arena_printf(a, "%s/%s", folder, name),
                         .name = name,
                         .state = state,
                         .config = config_of(a, name, json_get(p, "set")),
                         .params = params && params->kind == JSON_NUMBER ? params->number : NAN};
        q.there = run_exists(s, q.path);
        out.waiting += !strcmp(state, "waiting");
        vec_push(a, &out.point, q);
    }
    return out;
}

/* ---- below a folder ---- */

typedef struct FolderNames {
    Arena *arena;
    VEC(const char *) v;
} FolderNames;

static int by_version(const void *x, const void *y)
{
    return strverscmp(*(const char *const *)x, *(const char *const *)y);
}

/* The names in a folder, D-8 before D-16. */
static FolderNames names_in(Session *s, const char *path)
{
    FolderNames names = {.arena = s->arena};
    DIR *dir = opendir(path);
    if (!dir) {
        session_warn(s, arena_printf(s->arena, "%.200s cannot be read: %s", path, strerror(errno)));
        return names;
    }
    CtxGuard guard;
    if (!CTX_TRY(s->ctx, &guard)) {
        closedir(dir);
        ctx_raise_again(s->ctx);
    }
    for (struct dirent *e; (e = readdir(dir));)
        if (e->d_name[0] != '.')
            vec_push(s->arena, &names.v, arena_copy(s->arena, e->d_name, strlen(e->d_name)));
    ctx_leave(s->ctx, &guard);
    closedir(dir);
    if (names.v.n)
        qsort(names.v.v, names.v.n, sizeof *names.v.v, by_version);
    return names;
}

static void walk(Session *s, const char *path, int depth, bool link, RunList *out)
{
    bool run = run_exists(s, path), sweep = run_is_sweep(s, path);
    if (run || sweep)
        vec_push(s->arena, out, ((ListedRun){path, !run && sweep}));
    if (run || depth >= DEEPEST || (link && !sweep))
        return;
    FolderNames names = names_in(s, path);
    for (size_t i = 0; i < names.v.n; i++) {
        const char *inner = arena_printf(s->arena, "%s/%s", path, names.v.v[i]);
        struct stat at, st;
        if (lstat(inner, &at) || stat(inner, &st) || !S_ISDIR(st.st_mode))
            continue;
        walk(s, inner, depth + 1, S_ISLNK(at.st_mode), out);
    }
}

static const char *without_slash(Arena *a, const char *path)
{
    size_t n = strlen(path);
    while (n > 1 && path[n - 1] == '/')
        n--;
    return arena_copy(a, path, n);
}

RunList run_list(Session *s, const char *folder)
{
    RunList out = {0};
    struct stat st;
    if (stat(folder, &st) || !S_ISDIR(st.st_mode))
        ctx_raise(s->ctx, ST_USAGE, "there is no folder `%.300s`%s", folder,
                  strcmp(folder, "runs") ? "; `vwn runs` alone lists what is below runs/"
                                         : ": `vwn train` makes it; `vwn runs DIR` looks into another one");
    walk(s, without_slash(s->arena, folder), 0, false, &out);
    return out;
}

const char *run_meant(Session *s, const char *where)
{
    enum { SHOWN = 8 };
    const char *path = without_slash(s->arena, where), *slash = strrchr(path, '/');
    const char *folder = slash > path ? arena_copy(s->arena, path, (size_t)(slash - path)) : "runs";
    VEC(Name) names = {0};
    Buf b = buf_new(s->arena);
    struct stat st;
    bool there = stat(path, &st) == 0;
    if (there && S_ISDIR(st.st_mode) && run_list(s, path).n)
        return arena_printf(s->arena, "; it holds runs, which `vwn runs %.200s` lists: name those that are meant",
                            where);
    if (slash == path || there || stat(folder, &st) || !S_ISDIR(st.st_mode))
        return "";
    RunList l = run_list(s, folder);
    for (size_t i = 0; i < l.n; i++) {
        const char *name = l.v[i].path + (slash || strncmp(l.v[i].path, "runs/", 5) ? 0 : 5);
        vec_push(s->arena, &names, name_str(s->ctx, name));
        if (i < SHOWN)
            buf_printf(&b, "%s`%s`", i ? ", " : "", name);
    }
    Name near = nearest_name(name_str(s->ctx, path), names.v, names.n);
    if (near)
        return arena_printf(s->arena, "; did you mean `%.300s`?", near);
    return l.n ? arena_printf(s->arena, "; %.200s/ holds %.1500s%s", folder, b.s, l.n > SHOWN ? ", ..." : "") : "";
}

/* All runs of a folder that is none itself; false: it is no folder, or has none. */
static bool take_folder(Session *s, const char *folder, RunPaths *out)
{
    struct stat st;
    size_t before = out->n;
    if (stat(folder, &st) || !S_ISDIR(st.st_mode))
        return false;
    RunList all = run_list(s, folder);
    for (size_t i = 0; i < all.n; i++)
        if (!all.v[i].sweep)
            vec_push(s->arena, out, all.v[i].path);
    return out->n > before;
}

RunPaths run_paths(Session *s, const char *const *operand, size_t n)
{
    RunPaths out = {0};
    for (size_t i = 0; i < n; i++) {
        bool run = run_exists(s, operand[i]);
        if (run || !run_is_sweep(s, operand[i])) {
            if (run || !take_folder(s, operand[i], &out))
                vec_push(s->arena, &out, operand[i]);
            continue;
        }
        ListedSweep sweep = sweep_list(s, without_slash(s->arena, operand[i]));
        size_t before = out.n;
        for (size_t k = 0; k < sweep.point.n; k++)
            if (sweep.point.v[k].there)
                vec_push(s->arena, &out, sweep.point.v[k].path);
        if (out.n == before)
            ctx_raise(s->ctx, ST_USAGE, "no point of the sweep in `%.300s` has begun", operand[i]);
    }
    return out;
}
