/* source.c - see source.h. */
#include "source.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "compiler/file/check_unit.h"
#include "run_list.h"

bool source_is_folder(const char *path)
{
    struct stat st;
    return !stat(path, &st) && S_ISDIR(st.st_mode);
}

static Checkpoint *open_file(Session *s, const char *path, char why[WHY])
{
    Checkpoint *c = NEW(s->arena, Checkpoint);
    return checkpoint_open(s, path, c, why) ? c : NULL;
}

static Checkpoint *newest_of(Session *s, const char *folder)
{
    char why[WHY] = "";
    StepList l = run_checkpoints(s, folder);
    if (!l.n)
        run_want(s, folder);
    if (!l.n)
        ctx_raise(s->ctx, ST_ENVIRONMENT, "the run `%.300s` has no checkpoint", folder);
    for (size_t i = l.n; i-- > 0;) {
        const char *name = run_checkpoint_name(s->arena, l.step[i]);
        Checkpoint *c = open_file(s, arena_printf(s->arena, "%s/ckpt/%s", folder, name), why);
        if (c)
            return c;
        session_warn(s, arena_printf(s->arena, "a damaged checkpoint is passed over: %s", why));
    }
    ctx_raise(s->ctx, ST_ENVIRONMENT, "no checkpoint of the run can be read: %s", why);
}

/* Raises where the run has no such checkpoint, with those that it has: all of a few, else those around it. */
static void want_step(Session *s, const char *folder, int64_t step)
{
    enum { FEW = 12 };
    StepList l = run_checkpoints(s, folder);
    Buf b = buf_new(s->arena);
    size_t above = 0, n = 0;
    while (above < l.n && l.step[above] < step)
        above++;
    if (above < l.n && l.step[above] == step)
        return;
    run_want(s, folder);
    for (size_t i = 0; i < l.n; i++) {
        if (l.n > FEW && i && i + 1 < l.n && i + 1 != above && i != above)
            continue;
        buf_printf(&b, "%s%lld", n++ ? list_gap(i, l.n, " and ") : "", (long long)l.step[i]);
    }
    ctx_raise(s->ctx, ST_USAGE, "the run `%.300s` has no checkpoint of step %lld%s%s", folder, (long long)step,
              !l.n        ? ", nor any other"
              : l.n > FEW ? arena_printf(s->arena, "; of %zu it has those of steps ", l.n)
              : l.n > 1   ? "; it has those of steps "
                          : "; it has that of step ",
              l.n ? b.s : "");
}

/* A run that is not there: those that are. */
static _Noreturn void no_such_run(Session *s, const char *where, const char *why)
{
    const char *meant = run_meant(s, where);
    if (*meant)
        ctx_raise(s->ctx, ST_ENVIRONMENT, "there is no run or checkpoint `%.300s`%s", where, meant);
    ctx_raise(s->ctx, ST_ENVIRONMENT, "%s", why);
}

/* "runs/nano@1000": the path of that checkpoint, or NULL when it is not written so. */
static const char *at_step(Session *s, const char *where)
{
    const char *at = strrchr(where, '@');
    char *end;
    if (!at || at == where)
        return NULL;
    int64_t step = strtoll(at + 1, &end, 10);
    const char *folder = arena_copy(s->arena, where, (size_t)(at - where));
    if (!source_is_folder(folder) || access(where, F_OK) == 0)
        return NULL;
    if (*end || at[1] < '0' || at[1] > '9') {
        StepList l = run_checkpoints(s, folder);
        ctx_raise(s->ctx, ST_USAGE, "`%.300s`: behind @ stands the step of a checkpoint, as in `%.200s@%lld`", where,
                  folder, l.n ? (long long)l.step[l.n - 1] : 1000LL);
    }
    want_step(s, folder, step);
    return arena_printf(s->arena, "%s/ckpt/%s", folder, run_checkpoint_name(s->arena, step));
}

Checkpoint *source_checkpoint(Session *s, const char *where)
{
    char why[WHY] = "";
    if (!where || !*where)
        ctx_raise(s->ctx, ST_USAGE, "name a run directory or a checkpoint");
    size_t n = strlen(where);
    if (n > 4 && !strcmp(where + n - 4, ".vwn") && !source_is_folder(where))
        ctx_raise(s->ctx, ST_USAGE,
                  "`%.300s` describes a model and holds no weights: train it with `vwn train "
                  "%.300s`, then name the run directory, runs/<name of the model>",
                  where, where);
    if (source_is_folder(where))
        return newest_of(s, where);
    const char *step = at_step(s, where);
    Checkpoint *c = open_file(s, step ? step : where, why);
    if (!c && !step && access(where, F_OK) != 0)
        no_such_run(s, where, why);
    if (!c)
        ctx_raise(s->ctx, ST_ENVIRONMENT, "%s", why);
    return c;
}

static void close_tensors(void *what) { safe_close(what); }

const SafeFile *source_tensors(Session *s, const char *where)
{
    char why[WHY];
    const char *step = at_step(s, where);
    size_t n = strlen(where);
    if (source_is_folder(where) || (n > 4 && !strcmp(where + n - 4, ".vwn")))
        return &source_checkpoint(s, where)->file;
    SafeFile *f = NEW(s->arena, SafeFile);
    f->fd = -1;
    session_defer(s, close_tensors, f);
    if (!safe_open(arena_region(s->arena), step ? step : where, f, why) || !safe_verify(f, false, why)) {
        if (!step && access(where, F_OK) != 0)
            no_such_run(s, where, why);
        ctx_raise(s->ctx, ST_ENVIRONMENT, "%s", why);
    }
    return f;
}

Unit *source_unit(Session *s, const Checkpoint *c, bool model_only, const Hooks *hooks)
{
    CheckOptions how = {.path = arena_printf(s->arena, "%s (text of the model)", c->file.path),
                        .text = c->meta.text,
                        .text_length = strlen(c->meta.text),
                        .model_only = model_only};
    size_t before = diag_count(s->ctx);
    Unit *unit = hooks->check(s->ctx, &how);
    if (diag_only_checks(s->ctx, before))
        diag_truncate(s->ctx, before); /* all this was read when it was trained */
    else
        ctx_raise(s->ctx, ST_INPUT, "the text in %.300s does not check", c->file.path);
    if (!unit->model)
        ctx_raise(s->ctx, ST_INPUT, "%.300s holds no model", c->file.path);
    return unit;
}

Source source_open(Session *s, const char *where, bool model_only, const Hooks *hooks)
{
    Checkpoint *c = source_checkpoint(s, where);
    return (Source){c, source_unit(s, c, model_only, hooks)};
}

bool source_load(Session *s, const Source *source, bool last)
{
    char why[WHY];
    CheckpointPart part = last ? CHECKPOINT_WEIGHTS : CHECKPOINT_AVERAGE;
    if (!checkpoint_load(s, source->unit->model, source->checkpoint, part, why))
        ctx_raise(s->ctx, ST_INPUT, "%s", why);
    return !last && checkpoint_has_average(source->checkpoint);
}

void write_text(const vwn_writer *out, const char *text, size_t n)
{
    if (n)
        out->put(out->user, text, n);
}
