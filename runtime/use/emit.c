/* emit.c - `vwn_emit`: a folder with the model as C or CUDA C, and its initial weights, or with parts of it for PyTorch.
 *
 * In:  a checked file.   Out: files; the compiler prints them, this file only puts them there.
 * The one idea: nothing is written before everything has been printed, and a folder that holds
 * something else is left alone.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "compiler/export/export_torch.h"
#include "compiler/portable/file.h"
#include "compiler/model/init.h"
#include "runtime/base/folder.h"
#include "runtime/data/data.h"
#include "use.h"

typedef struct Emission {
    Session session;
    Unit *unit;
    const vwn_emit_options *how;
    const vwn_writer *out;
    ExportFolder folder;
    const char *package; /* for PyTorch */
} Emission;

enum { DEFAULT_SEED = 1 }; /* of a file without `train` */

static _Noreturn void failed(const Emission *e, const char *name, const char *what)
{
    int why = errno;
    ctx_raise(e->session.ctx, ST_ENVIRONMENT, "%.300s%s%.100s could not be %s: %s", e->how->folder, *name ? "/" : "",
              name, what, strerror(why));
}

/* ---- what is printed ---- */

/* The vocabulary of chars() is that of the training text. */
static void take_symbols(Emission *e, ExportOptions *x)
{
    const Train *t = e->unit->train;
    if (t->tokenizer.kind == TOKENIZER_FILE)
        ctx_raise(
            e->session.ctx, ST_INPUT,
            "the emitted program makes no ids by a tokenizer's file: give it ids that are made, by `token_files`");
    DataOptions how = {.spec = &t->data, .tokenizer = &t->tokenizer, .context = t->context, .model = e->unit->model};
    Data *d = data_open(&e->session, &how);
    x->symbol = d->tokenizer->code;
    x->n_symbols = d->tokenizer->size;
    x->separator = d->train.separator;
}

static void choose_batch(const Emission *e, ExportOptions *x, Train *t)
{
    int64_t asked = e->how->batch_seqs;
    const Train *from = e->unit->train;
    x->batch = asked > 0 ? asked : 1;
    if (!from)
        return;
    if (asked <= 0)
        x->batch = from->micro_seqs > 0 ? from->micro_seqs : from->batch_seqs;
    const int64_t lanes = lanes_of(from->lanes).all;
    if (x->train && from->batch_seqs / lanes % x->batch)
        ctx_raise(e->session.ctx, ST_USAGE, "a %s has %lld sequences, which batches of %lld do not divide",
                  lanes > 1 ? "lane of a step" : "step", (long long)(from->batch_seqs / lanes), (long long)x->batch);
    t->micro_seqs = x->batch;
}

static void print_folder(Emission *e, ExportOptions *x)
{
    Session *s = &e->session;
    Unit *u = e->unit;
    const Train *from = u->train;
    Train *t = NEW(s->arena, Train);
    if (!u->model)
        ctx_raise(s->ctx, ST_INPUT, "the file has no `model` to emit");
    if (from)
        *t = *from;
    else if (e->how->train)
        ctx_raise(s->ctx, ST_INPUT, "the file has no `train`, so there is no training to emit; leave out --train");
    if (half_info(t->compute)->scaled && !e->how->cuda) /* a folder of C computes in float32 */
        t->compute = HALF_NONE;
    *x = (ExportOptions){.unit = u,
                         .train = from && !e->how->infer ? t : NULL,
                         .context = from ? from->context : u->model->context,
                         .data = from ? &from->data : NULL,
                         .seed = from ? from->seed : DEFAULT_SEED,
                         .cuda = e->how->cuda,
                         .fast = e->how->fast};
    if (x->train && u->grow.n)
        ctx_raise(s->ctx, ST_INPUT,
                  "the file grows the model (`grow %s`), which the emitted program does not do: "
                  "emit with --infer, or switch the step off with `/-`",
                  u->grow.v[0].name);
    if (x->train && from->start.kind != START_DRAWN)
        ctx_raise(s->ctx, ST_INPUT,
                  "the file begins with other weights (`start_from`), and the emitted program with drawn ones: emit "
                  "with --infer, or "
                  "switch the line off with `/-`");
    if (from && from->data.kind == DATA_TOKEN_FILES && from->data.header == HEADER_NPY)
        ctx_raise(s->ctx, ST_INPUT,
                  "the emitted program reads ids as they are or behind the header of llm.c, and no .npy files");
    if (from && from->data.kind == DATA_TOKEN_FILES && !from->data.bits)
        ctx_raise(
            s->ctx, ST_INPUT,
            "the emitted program reads ids as the file says that they are stored: give `token_files` its `dtype`");
    choose_batch(e, x, t);
    x->separator = -1;
    if (from && from->tokenizer.kind != TOKENIZER_CHARS)
        x->separator = data_separator(s, &from->data, tokenizer_plain(s->arena, TOKENIZER_BYTES));
    if (from && from->data.kind == DATA_TEXT_FILE && from->tokenizer.kind != TOKENIZER_BYTES)
        take_symbols(e, x);
    export_folder(&e->folder, s->ctx, s->arena, x);
}

static void print_torch(Emission *e)
{
    Session *s = &e->session;
    Unit *u = e->unit;
    const char *package = e->how->package;
    if (!u->model)
        ctx_raise(s->ctx, ST_INPUT, "the file has no `model` to emit");
    if (package && !torch_is_name(package))
        ctx_raise(s->ctx, ST_USAGE, "`%.80s` is no name of a package: letters, digits and _, beginning with a letter",
                  package);
    if (!package)
        package = torch_is_name(u->model->name) ? u->model->name : "vwn_model";
    e->package = package;
    export_torch(&e->folder, s->ctx, s->arena,
                 &(TorchOptions){.unit = u, .package = package, .node = e->how->node, .block = e->how->block});
}

/* ---- the folder ---- */

static void make_inner(const Emission *e, const char *name)
{
    const char *path = arena_printf(e->session.arena, "%s/%s", e->how->folder, name);
    struct stat st;
    if (mkdir(path, 0777) != 0 && (errno != EEXIST || lstat(path, &st) || !S_ISDIR(st.st_mode)))
        failed(e, name, "made");
}

static void make_folder(const Emission *e)
{
    struct stat st;
    const char *folder = e->how->folder;
    if (mkdir(folder, 0777) == 0)
        return;
    if (errno != EEXIST)
        failed(e, "", "made");
    if (stat(folder, &st) || !S_ISDIR(st.st_mode))
        ctx_raise(e->session.ctx, ST_USAGE, "%.300s is not a folder", folder);
    bool torch = e->how->torch;
    int foreign = e->how->force ? 0
                                : folder_is_foreign(folder, torch ? "pyproject.toml" : "plan.c",
                                                    torch ? TORCH_MARK : EXPORT_MARK);
    if (foreign < 0)
        failed(e, "", "opened");
    if (foreign)
        ctx_raise(e->session.ctx, ST_USAGE,
                  "the folder %.300s holds files that `vwn emit` has not written; name another, or "
                  "write among them with --force",
                  folder);
}

/* A new file takes the place of what has the name: a link there is replaced, and what it leads to is left alone. */
static void write_file(const Emission *e, const ExportFile *file)
{
    const char *path = arena_printf(e->session.arena, "%s/%s", e->how->folder, file->name);
    const char *new = arena_printf(e->session.arena, "%s.vwn-new", path);
    const char *why = file_wrong_kind(path);
    if (why)
        ctx_raise(e->session.ctx, ST_ENVIRONMENT, "%.300s could not be written: %s", path, why);
    unlink(new); /* of an emission that was killed */
    int fd = open(new, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    FILE *f = fd < 0 ? NULL : fdopen(fd, "w");
    bool fine = f && fwrite(file->text, 1, file->length, f) == file->length;
    int error = errno;
    if (f ? fclose(f) != 0 : fd >= 0 && close(fd) != 0)
        fine = false;
    else if (!fine)
        errno = error;
    if (!fine || rename(new, path) != 0) {
        error = errno;
        unlink(new);
        errno = error;
        failed(e, file->name, "written");
    }
}

/* ---- weights ---- */

static bool put_initial(Emission *e, SafeWriter *w, const Param *p, uint64_t seed, char why[WHY])
{
    enum { PIECE = 1 << 14 };
    Arena *a = e->session.arena;
    ArenaMark mark = arena_mark(a);
    double *v = NEW_ARRAY(a, double, PIECE);
    float *single = NEW_ARRAY(a, float, PIECE);
    bool ok = true;
    for (int64_t at = 0; ok && at < p->elements; at += PIECE) {
        int64_t n = p->elements - at < PIECE ? p->elements - at : PIECE;
        param_init_range(p, seed, at, n, v);
        for (int64_t i = 0; i < n; i++)
            single[i] = (float)v[i];
        ok = safe_put(w, single, (size_t)n * sizeof *single, why);
    }
    arena_reset(a, mark);
    return ok;
}

static void write_weights(Emission *e, uint64_t seed)
{
    Arena *a = e->session.arena;
    const Model *m = e->unit->model;
    char why[WHY], text[24];
    SafeWriter w;
    safe_begin(&w, arena_region(a));
    snprintf(text, sizeof text, "%llu", (unsigned long long)seed);
    safe_meta(&w, "format", "vwn folder 1", 12);
    safe_meta(&w, "model", m->name, strlen(m->name));
    safe_meta(&w, "seed", text, strlen(text));
    for (size_t i = 0; i < m->param.n; i++) {
        const Param *p = &m->param.v[i];
        int64_t d[MAX_RANK];
        for (int k = 0; k < p->shape.rank; k++)
            d[k] = p->shape.d[k].n;
        safe_declare(&w, p->path, SAFE_F32, p->shape.rank, d);
    }
    bool ok = safe_create(&w, e->how->folder, EXPORT_WEIGHTS, why);
    for (size_t i = 0; ok && i < m->param.n; i++)
        ok = put_initial(e, &w, &m->param.v[i], seed, why);
    ok = ok && safe_commit(&w, why);
    safe_abandon(&w);
    if (!ok)
        ctx_raise(e->session.ctx, ST_ENVIRONMENT, "%s", why);
}

/* ---- the call ---- */

static void report(const Emission *e)
{
    Buf b = buf_new(e->session.arena);
    if (e->how->json)
        buf_printf(&b, "{\"v\":1,\"event\":\"emit\",\"fast\":%s,\"files\":[", e->how->fast ? "true" : "false");
    for (size_t i = 0; i < e->folder.n + !e->how->torch; i++) {
        const char *name = i < e->folder.n ? e->folder.v[i].name : EXPORT_WEIGHTS;
        const char *path = arena_printf(e->session.arena, "%s/%s", e->how->folder, name);
        if (!e->how->json) {
            buf_printf(&b, "%s\n", path);
            continue;
        }
        buf_puts(&b, i ? "," : "");
        buf_json_string(&b, path, strlen(path));
    }
    if (e->how->json)
        buf_puts(&b, "]}\n");
    e->out->put(e->out->user, b.s, b.n);
}

/* The library of a package, by the script that is in it. */
static void build_library(const Emission *e)
{
    extern char **environ;
    const char *csrc = arena_printf(e->session.arena, "%s/%s/csrc/build.sh", e->how->folder, e->package);
    const char *out = arena_printf(e->session.arena, "%s/%s/_kernels.so", e->how->folder, e->package);
    char *argv[] = {"sh", (char *)csrc, (char *)out, NULL};
    pid_t child;
    int status = 0;
    int why = posix_spawnp(&child, "sh", NULL, NULL, argv, environ);
    if (why)
        ctx_raise(e->session.ctx, ST_ENVIRONMENT, "sh could not be started: %s", strerror(why));
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            failed(e, csrc, "waited for");
    if (!WIFEXITED(status) || WEXITSTATUS(status))
        ctx_raise(e->session.ctx, ST_ENVIRONMENT,
                  "the library of kernels could not be compiled: sh %s %s ended with %d", csrc, out,
                  WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
}

static Status emit_torch_body(void *user)
{
    Emission *e = user;
    session_open(&e->session, e->session.owner);
    print_torch(e);
    make_folder(e);
    make_inner(e, e->package);
    make_inner(e, arena_printf(e->session.arena, "%s/csrc", e->package));
    for (size_t i = 0; i < e->folder.n; i++)
        write_file(e, &e->folder.v[i]);
    if (e->how->build)
        build_library(e);
    report(e);
    return ST_OK;
}

static Status emit_body(void *user)
{
    Emission *e = user;
    ExportOptions x;
    session_open(&e->session, e->session.owner);
    print_folder(e, &x);
    make_folder(e);
    for (size_t i = 0; i < e->folder.n; i++)
        write_file(e, &e->folder.v[i]);
    write_weights(e, x.seed);
    report(e);
    return ST_OK;
}

Status emit_unit(vwn_context *owner, Unit *unit, const vwn_emit_options *how, const vwn_writer *out)
{
    Emission e = {.session.owner = owner, .unit = unit, .how = how, .out = out};
    Status st = guarded(owner->ctx, how->torch ? emit_torch_body : emit_body, &e);
    session_close(&e.session);
    return st;
}
