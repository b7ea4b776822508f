/* check_file.c - files: lets, imports, checks.
 *
 * In:  a text and overrides.   Out: a File: what its names are.
 * The one idea: a file is a function of its lets. Importing with arguments, `--set` and growth are the
 * same thing: evaluating the same tree again with some lets (or arguments of calls) replaced.
 */
#include "attribute.h"
#include "check.h"
#include "override.h"
#include "compiler/portable/file.h"
#include "compiler/model/cost.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* ---- reading ---- */

static const char *read_file(Eval *ev, const char *path, size_t *n, const char **why)
{
    enum { MOST = 16 << 20 };
    FILE *f = file_stream(path, "r", why);
    if (!f)
        return NULL;
    char *text = ctx_alloc(ev->ctx, MOST / 64);
    size_t cap = MOST / 64, len = 0, got;
    CtxGuard guard;
    if (!CTX_TRY(ev->ctx, &guard)) {
        fclose(f);
        ctx_raise_again(ev->ctx);
    }
    while ((got = fread(text + len, 1, cap - len, f)) > 0) {
        len += got;
        if (len == cap && cap < MOST)
            text = ctx_resize(ev->ctx, text, cap *= 4);
        if (len >= MOST)
            break;
    }
    *why = ferror(f) ? strerror(errno) : len >= MOST ? "limit `file size` reached: 16 MiB" : NULL;
    ctx_leave(ev->ctx, &guard);
    fclose(f);
    *n = len;
    const char *copy = *why ? NULL : arena_copy(ev->arena, text, len);
    ctx_release(ev->ctx, text);
    return copy;
}

const char *folder_of(Eval *ev, const char *path)
{
    const char *slash = strrchr(path, '/');
    return slash ? arena_copy(ev->arena, path, (size_t)(slash - path)) : ".";
}

char *import_path(Arena *a, const char *folder, const char *path)
{
    char *full = path[0] == '/' || !strcmp(folder, ".") ? arena_copy(a, path, strlen(path))
                                                        : arena_printf(a, "%s/%s", folder, path);
    char *out = full;
    VEC(char *) parts = {0};
    bool absolute = full[0] == '/';
    for (char *p = strtok_r(full, "/", &out); p; p = strtok_r(NULL, "/", &out)) {
        if (!strcmp(p, "."))
            continue;
        if (!strcmp(p, "..") && parts.n && strcmp(parts.v[parts.n - 1], ".."))
            parts.n--;
        else
            vec_push(a, &parts, p);
    }
    Buf b = buf_new(a);
    if (!parts.n)
        buf_puts(&b, absolute ? "/" : ".");
    for (size_t i = 0; i < parts.n; i++)
        buf_printf(&b, "%s%s", i || absolute ? "/" : "", parts.v[i]);
    return b.s;
}

const char *folder_at(Eval *ev, const File *f, Span at)
{
    const char *path = source_path(ev->ctx, at.file);
    return !at.file || path[0] == '<' ? f->folder : folder_of(ev, path);
}

/* The file of the library that is meant, or all of them. */
static void help_library(Eval *ev, Diag *d, const char *name)
{
    VEC(Name) names = {0};
    Buf all = buf_new(ev->arena);
    for (size_t i = 0; i < std_count(); i++) {
        const char *path = std_path(i);
        vec_push(ev->arena, &names, name_printf(ev->ctx, "%.*s", (int)(strrchr(path, '.') - path), path));
        buf_printf(&all, "%s%s", i ? ", " : "", names.v[i]);
    }
    Name best = nearest_name(name_str(ev->ctx, name), names.v, names.n);
    if (best)
        diag_help(ev->ctx, d, "did you mean `%s`?", best);
    else
        diag_help(ev->ctx, d, "the standard library is %s", all.s);
}

/* Some lines, and nothing in them that a model or a setting could be written with. */
static bool is_prose(const char *text, size_t n)
{
    enum { SOME = 200 };
    return n > SOME && !memchr(text, '{', n) && !memchr(text, '=', n) && memchr(text, '\n', n);
}

/* The file of this name that ends in .vwn, where there is one. */
static void help_ending(Eval *ev, Diag *d, const char *path)
{
    const char *slash = strrchr(path, '/'), *dot = strrchr(slash ? slash : path, '.');
    const char *near = arena_printf(ev->arena, "%.*s.vwn", dot ? (int)(dot - path) : (int)strlen(path), path);
    if (strcmp(near, path) && access(near, R_OK) == 0)
        diag_help(ev->ctx, d, "did you mean `%s`?", near);
}

static bool is_library(const char *name) { return !strncmp(name, "std/", 4); }

static bool file_there(const char *path)
{
    const char *why;
    FILE *f = file_stream(path, "r", &why);
    if (f)
        fclose(f);
    return f != NULL;
}

Ast *file_parse(Eval *ev, const char *path, const char *name, const char *text, size_t n, Span from)
{
    const char *why = NULL;
    bool inner = from.file != 0;
    if (inner && is_library(name)) {
        text = std_text(path, &n);
        why = text ? NULL : "the standard library has no such file";
    } else if (inner && ev->text_of && (text = ev->text_of(ev->text_user, path, &n)) != NULL) {
        why = NULL;
    } else if ((why = file_not_vwn(path, inner))) {
        text = NULL;
    } else if (!text) {
        text = read_file(ev, path, &n, &why);
    }
    if (!text) {
        Diag *d = err(ev, "E0106", from, "", "cannot read %s: %s", path, why);
        if (inner && (is_library(name) || !strncmp(name, "std", 3)))
            help_library(ev, d, name);
        else if (inner && std_text(name_printf(ev->ctx, "std/%s.vwn", name), &n))
            diag_fix(ev->ctx, d, from, name_printf(ev->ctx, "\"std/%s\"", name), FIX_MAYBE, "write `\"std/%s\"`", name);
        else if (!inner)
            help_ending(ev, d, path);
        else if (path[0] != '/')
            diag_help(ev->ctx, d, "the path is relative to the folder of %s", source_path(ev->ctx, from.file));
        else if (!inner && path[0] != '<' && file_there(arena_printf(ev->arena, "%s.vwn", path)))
            diag_help(ev->ctx, d, "did you mean `%s.vwn`?", path);
        return NULL;
    }
    if (!inner && is_prose(text, n)) {
        Diag *d = err(ev, "E0106", from, "", "%s is a text and no .vwn file", path);
        diag_help(ev->ctx, d,
                  "a model begins with `vwn new DIR`; its `train` reads texts: `data = text_file(\"%s\", val = 5%%)`",
                  path);
        return NULL;
    }
    bool known = !inner;
    for (size_t i = 0; i < ev->unit->files.n; i++)
        known |= !strcmp(ev->unit->files.v[i], path);
    if (!known)
        vec_push(ev->arena, &ev->unit->files, path);
    return vwn_parse(ev->ctx, source_add(ev->ctx, path, text, n));
}

/* ---- lets, imports, nodes ---- */

/* What a variant has twice, as its base has it already. */
static bool help_braces(Eval *ev, const File *f, Diag *d, Span had, Span again, const char *setting)
{
    bool of_base = f->base && had.file != again.file;
    if (of_base)
        diag_help(ev->ctx, d, "a variant changes what its base has in the braces: `variant \"%s\" { %s = ... }`",
                  f->base->node->kid[1]->name, setting);
    return of_base;
}

static Binding *declare(Eval *ev, File *f, Name name, Span span)
{
    void **slot = map_at(&f->names, (uintptr_t)name);
    if (*slot) {
        Diag *d = err(ev, "E0112", span, "defined again", "`%s` is defined twice", name);
        diag_label(ev->ctx, d, ((Binding *)*slot)->span, "first defined here");
        help_braces(ev, f, d, ((Binding *)*slot)->span, span, name);
        return NULL;
    }
    Binding *b = binding_new(ev, name, span);
    *slot = b;
    vec_push(ev->arena, &f->lets, b);
    return b;
}

static void do_import(Eval *ev, File *f, const Ast *it)
{
    File *target = file_load(ev, it->name, NULL, 0, it->name_span, f);
    Import im = {
        .as = it->kid[0] ? it->kid[0]->name : NULL, .file = target, .span = it->name_span, .with = it->kid[1] != NULL};
    if (!target)
        return;
    if (it->kid[1] && it->kid[1]->n) {
        Override *o = NEW_ARRAY(ev->arena, Override, it->kid[1]->n);
        size_t n = 0;
        for (uint32_t i = 0; i < it->kid[1]->n; i++) {
            const Ast *a = it->kid[1]->kid[i];
            if (a->kind == AST_OFF)
                continue;
            if (a->kind != AST_NAMED) {
                err(ev, "E0209", a->span, "", "arguments of an import are named: `(%s = ...)`",
                    target->lets.n ? target->lets.v[0]->name : "name");
                continue;
            }
            bool twice = false;
            for (size_t k = 0; k < n; k++)
                twice |= o[k].path->name == a->name;
            if (twice) {
                err(ev, "E0108", a->span, "given twice", "`%s` is given twice", a->name);
                continue;
            }
            if (!map_get(&target->names, (uintptr_t)a->name)) {
                Diag *d = err(ev, "E0115", a->name_span, "", "%s has no let `%s`", target->path, a->name);
                VEC(Name) names = {0};
                for (size_t k = 0; k < target->lets.n; k++)
                    vec_push(ev->arena, &names, target->lets.v[k]->name);
                suggest(ev, d, a->name, names.v, names.n, a->name_span);
                continue;
            }
            Ast *path = NEW(ev->arena, Ast);
            *path = (Ast){.kind = AST_PATH, .name = a->name, .span = a->name_span, .name_span = a->name_span};
            LineCol at = source_position(ev->ctx, a->span.file, a->span.lo);
            o[n++] = (Override){.path = path,
                                .expr = a->kid[0],
                                .env = f->env,
                                .span = a->span,
                                .origin = name_printf(ev->ctx, "import argument at %s:%u:%u",
                                                      source_path(ev->ctx, a->span.file), at.line, at.column)};
        }
        im.file = target = file_again(ev, target, o, n);
    }
    if (im.as) {
        Binding *b = declare(ev, f, im.as, it->kid[0]->span);
        if (b) {
            b->value = (Value){.kind = V_FILE, .file = target};
            b->used = true;
        }
    } else {
        for (size_t k = 0; k < target->lets.n; k++) {
            Name name = target->lets.v[k]->name;
            for (size_t i = 0; i < f->imports.n; i++) {
                Import *other = &f->imports.v[i];
                if (other->as || !other->file || other->file == target ||
                    !map_get(&other->file->names, (uintptr_t)name) ||
                    (!it->kid[1] && !other->with && !strcmp(other->file->path, target->path)))
                    continue;
                Diag *d = err(ev, "E0113", it->name_span, "", "`%s` comes from two imports", name);
                diag_label(ev->ctx, d, other->span, "the other one");
                diag_help(ev->ctx, d, "name one of them: `import \"%s\" as x` and write `x.%s`", it->name, name);
            }
        }
    }
    vec_push(ev->arena, &f->imports, im);
}

const char *span_text(Eval *ev, Span s)
{
    size_t n;
    return arena_copy(ev->arena, source_text(ev->ctx, s.file, &n) + s.lo, s.hi - s.lo);
}

/* A name of the file's own that an import without `as` brings in as well. */
static void own_and_imported(Eval *ev, File *f)
{
    for (size_t i = 0; !f->quiet && i < f->imports.n; i++) {
        const Import *im = &f->imports.v[i];
        for (size_t k = 0; !im->as && k < f->lets.n; k++) {
            const Binding *own = f->lets.v[k];
            if (!map_get(&im->file->names, (uintptr_t)own->name))
                continue;
            Diag *d = err(ev, "E0113", own->span, "", "`%s` is defined here and comes from an import", own->name);
            diag_label(ev->ctx, d, im->span, "this file has a `%s` too", own->name);
            diag_help(ev->ctx, d,
                      "give this one another name, or name the import: with `import %s as x`"
                      " the imported one is `x.%s`",
                      span_text(ev, im->span), own->name);
        }
    }
}

/* Runs keep a checkpoint for each step, and a folder for each sweep, by its name. */
static void name_again(Eval *ev, File *f, const Ast *it)
{
    for (uint32_t i = 0; f->ast->kid[i] != it; i++) {
        const Ast *had = f->ast->kid[i];
        if (f->quiet || had->kind != AST_NODE || had->kid[0]->name != it->kid[0]->name ||
            (had->kid[1] ? had->kid[1]->name : NULL) != (it->kid[1] ? it->kid[1]->name : NULL))
            continue;
        Name kind = it->kid[0]->name, label = it->kid[1] ? it->kid[1]->name : NULL;
        Diag *d = err(ev, "E0107", label ? it->kid[1]->span : it->kid[0]->span, "",
                      label ? "two `%s` nodes have the name `%s`" : "two `%s` nodes have no name", kind, label);
        diag_label(ev->ctx, d, label ? had->kid[1]->span : had->kid[0]->span, "the first one");
        if (f->base && had->span.file != it->span.file)
            diag_help(ev->ctx, d, "in the braces of `variant` it takes the place of the base's");
        diag_help(ev->ctx, d, "give each a name of its own: `%s %s { ... }`", kind,
                  label ? name_printf(ev->ctx, "%s_2", label) : "second");
        return;
    }
}

static void do_top_node(Eval *ev, File *f, const Ast *it)
{
    Name kind = it->kid[0]->name;
    if (!strcmp(kind, "model") || !strcmp(kind, "train")) {
        const Ast **slot = kind[0] == 'm' ? &f->model_ast : &f->train_ast;
        if (*slot) {
            Diag *d = err(ev, "E0112", it->kid[0]->span, "", "a second `%s` in one file", kind);
            diag_label(ev->ctx, d, (*slot)->kid[0]->span, "the first one");
            if (!help_braces(ev, f, d, (*slot)->span, it->span, kind[0] == 'm' ? "model.width" : "train.length"))
                diag_help(ev->ctx, d, "one with other values is a file of its own: `variant \"%s\" { %s = ... }`",
                          f->path, kind[0] == 'm' ? "model.width" : "train.length");
        } else {
            *slot = it;
        }
        if (kind[0] == 't' && it->kid[1])
            err(ev, "E0110", it->kid[1]->span, "", "`train` has no label");
    } else if (!strcmp(kind, "grow") || !strcmp(kind, "sweep")) {
        name_again(ev, f, it);
        if (kind[0] == 'g')
            vec_push(ev->arena, &f->grows, it);
        else
            vec_push(ev->arena, &f->sweeps, it);
    } else if (strcmp(kind, "names")) {
        Diag *d = err(ev, "E0110", it->kid[0]->span, "", "no node `%s` at the top of a file", kind);
        diag_note(ev->ctx, d, "a file holds import, let, block, check, model, train, grow, sweep, names and variant");
        const char *text;
        size_t n;
        Name *known = attribute_names(ev->ctx, ev->arena, "file", true, &n, &text);
        suggest(ev, d, kind, known, n, it->kid[0]->span);
    }
}

static void do_edition(Eval *ev, const Ast *it)
{
    if (it->kid[0]->n || strcmp(it->kid[0]->name, "edition")) {
        Diag *d = err(ev, "E0110", it->kid[0]->span, "", "`%s` cannot be set at the top of a file", it->kid[0]->name);
        const Ast *path = it->kid[0], *last = path->n ? path->kid[path->n - 1] : NULL;
        const char *value = expr_text(ev, it->kid[1]);
        if (last && last->kind == AST_DOT && (!strcmp(path->name, "model") || !strcmp(path->name, "train")))
            diag_help(ev->ctx, d, "write `%s = %s` inside of `%s { ... }`", last->name, value,
                      path->n > 1 && path->kid[path->n - 2]->kind == AST_DOT ? path->kid[path->n - 2]->name
                                                                             : path->name);
        else if (last)
            diag_help(ev->ctx, d, "attributes of a node stand in its braces; from outside it is `--set %s=%s`",
                      span_text(ev, path->span), value);
        else
            diag_help(ev->ctx, d, "write `let %s = ...`", it->kid[0]->name);
    } else if (it->kid[1]->kind != AST_NUM || strcmp(it->kid[1]->name, "1")) {
        diag_fix(ev->ctx, err(ev, "E0114", it->kid[1]->span, "", "this vwn knows edition 1 only"), it->kid[1]->span,
                 "1", FIX_MAYBE, "write `edition = 1`");
    }
}

/* An item that is switched off, for the list of them. */
static void say_off(Eval *ev, const Ast *it, Span at)
{
    LineCol place = source_position(ev->ctx, at.file, at.lo);
    Span s = it->kind == AST_NODE ? it->kid[0]->span : it->name_span;
    size_t n;
    const char *text = source_text(ev->ctx, s.file, &n);
    const Ast *label = it->kind == AST_NODE ? it->kid[1] : NULL;
    vec_push(ev->arena, &ev->unit->disabled,
             arena_printf(ev->arena, "%s:%u:%u %.*s%s%s", source_path(ev->ctx, s.file), place.line, place.column,
                          (int)(s.hi - s.lo), text + s.lo, label ? " " : "", label ? label->name : ""));
}

void file_list_gone(Eval *ev, const File *f, size_t from)
{
    for (size_t i = from; f->base && i < f->base->n_gone; i++)
        say_off(ev, f->base->gone[i], f->base->gone[i]->span);
}

static void disabled(Eval *ev, File *f, const Ast *ast)
{
    if (ast->kind == AST_OFF && ast->n && !f->is_std)
        say_off(ev, ast->kid[0], ast->span);
    for (uint32_t i = 0; i < ast->n; i++)
        if (ast->kid[i])
            disabled(ev, f, ast->kid[i]);
}

static void collect(Eval *ev, File *f)
{
    for (uint32_t i = 0; i < f->ast->n; i++) {
        const Ast *it = f->ast->kid[i];
        switch (it->kind) {
        case AST_IMPORT: do_import(ev, f, it); break;
        case AST_LET: {
            Binding *b = declare(ev, f, it->name, it->name_span);
            if (b) {
                b->is_let = true;
                b->state = BIND_LAZY;
                b->type = it->kid[0];
                b->expr = it->kid[1];
                b->env = f->env;
            }
            break;
        }
        case AST_BLOCK: {
            Binding *b = declare(ev, f, it->name, it->name_span);
            if (b)
                b->value = (Value){.kind = V_BLOCK, .block = block_value(ev, it, f->env, f)};
            if (!f->quiet)
                block_check_signature(ev, it);
            break;
        }
        case AST_CHECK: vec_push(ev->arena, &f->checks, it); break;
        case AST_NODE: do_top_node(ev, f, it); break;
        case AST_SET: do_edition(ev, it); break;
        case AST_OFF: break;
        default: err(ev, "E0110", it->span, "", "this item cannot stand at the top of a file"); break;
        }
    }
    own_and_imported(ev, f);
    for (size_t i = 0; i < f->overrides.n; i++) {
        Override *o = &f->overrides.v[i];
        override_settle(f, o);
        Binding *b = map_get(&f->names, (uintptr_t)o->path->name);
        if (b && b->is_let)
            override_let(ev, f, b, o);
    }
}

static File *new_file(Eval *ev, const File *like)
{
    File *f = NEW(ev->arena, File);
    if (like)
        *f = (File){.path = like->path,
                    .folder = like->folder,
                    .text = like->text,
                    .source = like->source,
                    .is_std = like->is_std,
                    .ast = like->ast,
                    .base = like->base,
                    .from = like->from,
                    .parent = like->parent};
    f->ev = ev;
    f->env = NEW(ev->arena, Env);
    f->env->file = f;
    map_init(&f->names, ev->arena);
    return f;
}

File *file_again(Eval *ev, const File *of, const Override *extra, size_t n)
{
    File *f = new_file(ev, of);
    f->quiet = true;
    for (size_t i = 0; i < of->overrides.n; i++)
        vec_push(ev->arena, &f->overrides, of->overrides.v[i]);
    for (size_t i = 0; i < n; i++)
        vec_push(ev->arena, &f->overrides, extra[i]);
    for (size_t i = 0; i < f->overrides.n; i++)
        if (f->overrides.v[i].of_step)
            f->overrides.v[i].env = f->env;
    vec_push(ev->arena, &ev->files, f);
    variant_take_away(ev, f);
    collect(ev, f);
    return f;
}

static bool cycle(Eval *ev, File *parent, const char *path, Span from)
{
    Buf b = buf_new(ev->arena);
    VEC(File *) chain = {0};
    for (File *p = parent; p; p = p->parent) {
        vec_push(ev->arena, &chain, p);
        if (strcmp(p->path, path))
            continue;
        for (size_t i = chain.n; i-- > 0;)
            buf_printf(&b, "%s -> ", chain.v[i]->path);
        buf_puts(&b, path);
        Span first = chain.n >= 2 ? chain.v[chain.n - 2]->from : from;
        Diag *d = err(ev, "E0103", first, "", "import cycle");
        if (d->labels.n)
            d->labels.v[0].text = arena_printf(ev->arena, "%s imports %s ...", source_path(ev->ctx, first.file),
                                               chain.n >= 2 ? chain.v[chain.n - 2]->path : path);
        diag_note(ev->ctx, d, "%s", b.s);
        diag_help(ev->ctx, d, "move the shared `let`s into a fourth file that imports none of these");
        if (chain.n >= 2)
            diag_related(ev->ctx, d, from, "... and %s imports %s again", source_path(ev->ctx, from.file), path);
        return true;
    }
    return false;
}

bool help_import(Eval *ev, Diag *d, Name name)
{
    for (size_t i = 0; i < std_count(); i++) {
        size_t n;
        const char *path = std_path(i), *text = std_text(path, &n);
        if (!strstr(text, arena_printf(ev->arena, "\nblock %s(", name)) &&
            !strstr(text, arena_printf(ev->arena, "\nlet %s = ", name)))
            continue;
        diag_help(ev->ctx, d, "`%s` is in the library: `import \"%.*s\"`", name, (int)(strrchr(path, '.') - path),
                  path);
        return true;
    }
    return false;
}

File *file_load(Eval *ev, const char *name, const char *text, size_t n, Span from, File *parent)
{
    bool is_std = is_library(name) && parent;
    const char *path = is_std ? (strstr(name, ".vwn") ? name : arena_printf(ev->arena, "%s.vwn", name))
                              : import_path(ev->arena, parent ? folder_at(ev, parent, from) : ".", name);
    if (!parent && name[0] == '-' && !name[1])
        path = "<stdin>";
    if (parent && cycle(ev, parent, path, from))
        return NULL;
    for (size_t i = 0; i < ev->files.n; i++) {
        File *had = ev->files.v[i];
        if (strcmp(had->path, path) || had->is_std != is_std)
            continue;
        return is_std ? had : file_again(ev, had, NULL, 0);
    }
    enum { MOST = 64 };
    if (ev->files.n > MOST)
        limit(ev, from, "imported files", MOST);
    size_t errors = diag_errors(ev->ctx);
    Ast *ast = file_parse(ev, path, name, text, n, from);
    if (!ast)
        return NULL;
    File *f = new_file(ev, NULL);
    f->path = path;
    f->folder = folder_of(ev, path);
    f->is_std = is_std;
    f->from = from;
    f->parent = parent;
    f->source = ast->span.file;
    f->text = source_text(ev->ctx, f->source, &n);
    f->ast = ast;
    vec_push(ev->arena, &ev->files, f);
    if (diag_errors(ev->ctx) == errors && variant_merge(ev, f)) {
        disabled(ev, f, f->ast);
        file_list_gone(ev, f, 0);
        collect(ev, f);
    }
    return f;
}

/* ---- what a file can be asked ---- */

const char *file_field_at(size_t i)
{
    static const char *const fields[] = {"params",      "stored_params",   "active_params",
                                         "dead_params", "flops_per_token", "state_width"};
    return i < COUNT_OF(fields) ? fields[i] : NULL;
}

bool is_file_field(Name name)
{
    for (size_t i = 0; file_field_at(i); i++)
        if (!strcmp(file_field_at(i), name))
            return true;
    return false;
}

Value file_field(Eval *ev, File *f, Name field, Span at)
{
    Binding *b = map_get(&f->names, (uintptr_t)field);
    if (b)
        return binding_get(ev, b, NULL);
    if (!is_file_field(field)) {
        Diag *d = err(ev, "E0102", at, "", "%s has no let `%s`", f->path, field);
        VEC(Name) names = {0};
        for (size_t i = 0; i < f->lets.n; i++)
            vec_push(ev->arena, &names, f->lets.v[i]->name);
        diag_note(ev->ctx, d,
                  "a file also has params, stored_params, active_params, dead_params, flops_per_token and state_width");
        suggest(ev, d, field, names.v, names.n, at);
        return v_poison();
    }
    if (!f->model_ast) {
        err(ev, "E0102", at, "", "%s has no model, so it has no `%s`", f->path, field);
        return v_poison();
    }
    Model *m = build_model(ev, f);
    if (!m)
        return v_poison();
    ModelCount c = model_count(m);
    switch (field[0]) {
    case 'p': return v_num((double)c.live);
    case 'a': return v_num((double)c.active);
    case 'd': return v_num((double)c.dead);
    case 'f': return v_num(model_flops_per_token(m));
    default: return v_num(field[2] == 'o' ? (double)c.stored : (double)m->state_width);
    }
}

/* Whether `label` is a component (or a run of components) of the path. */
static bool path_has(const char *path, const char *label)
{
    size_t n = strlen(label);
    for (const char *p = path; (p = strstr(p, label)) != NULL; p++)
        if ((p == path || p[-1] == '.') && (p[n] == '.' || p[n] == '[' || !p[n]))
            return true;
    return false;
}

Value params_of(Eval *ev, File *f, const Ast *e, Env *env)
{
    (void)env;
    const Ast *args = e->kid[1];
    if (args->n != 1 || args->kid[0]->kind == AST_NAMED) {
        err(ev, "E0313", e->span, "", "`params(...)` takes one label or path, for example params(mtp)");
        return v_poison();
    }
    const char *label = args->kid[0]->kind == AST_STR ? args->kid[0]->name : expr_text(ev, args->kid[0]);
    if (!f || !f->model_ast) {
        err(ev, "E0102", e->span, "", "this file has no model, so it has no `params`");
        return v_poison();
    }
    Model *m = build_model(ev, f);
    if (!m)
        return v_poison();
    int64_t n = 0;
    bool any = false;
    for (size_t i = 0; i < m->param.n; i++) {
        const Param *p = &m->param.v[i];
        if (p->buffer || !path_has(p->path, label))
            continue;
        any = true;
        n += p->elements - p->dead;
    }
    if (!any) {
        err(ev, "E0102", args->kid[0]->span, "", "no weights under `%s`", label);
        return v_poison();
    }
    return v_num((double)n);
}

/* ---- checks ---- */

static bool mentions(const Ast *e, const char *name)
{
    if ((e->kind == AST_ID || e->kind == AST_FIELD) && !strcmp(e->name, name))
        return true;
    for (uint32_t i = 0; i < e->n; i++)
        if (e->kid[i] && mentions(e->kid[i], name))
            return true;
    return false;
}

static void contributions(Eval *ev, Diag *d, const Model *m)
{
    CostGroups all = model_cost_groups(m, 2, ev->arena), top = cost_largest(all, 4, ev->arena);
    Buf b = buf_new(ev->arena);
    for (size_t i = 0; i < top.n; i++) {
        Buf n = buf_new(ev->arena);
        buf_count(&n, top.v[i].count.live);
        buf_printf(&b, "%s%-20s %14s   ", i ? "\n" : "", top.v[i].path, n.s);
        cost_shapes(&b, m, &top.v[i], 2, 3);
    }
    diag_note(ev->ctx, d, "%s", b.s);
}

static void check_failed(Eval *ev, File *f, const Ast *it, Env *env, const char *values)
{
    const Ast *cond = it->kid[0];
    const char *text = it->kid[1] ? it->kid[1]->name : expr_text(ev, cond);
    Diag *d = diag_error(ev->ctx, "E0801", cond->span, "", "check failed: %s", text);
    const char *label = values;
    bool is_near = cond->kind == AST_CALL && cond->kid[0]->kind == AST_ID && !strcmp(cond->kid[0]->name, "near") &&
                   cond->kid[1]->n == 3;
    if (is_near) {
        size_t before = diag_count(ev->ctx);
        double x = 0, y = 0;
        if (eval_number(ev, cond->kid[1]->kid[0], env, NULL, "a", &x) &&
            eval_number(ev, cond->kid[1]->kid[1], env, NULL, "b", &y) && y != 0)
            label = arena_printf(ev->arena, "%s, which is %.1f %% %s %s", values, 100 * fabs(x / y - 1),
                                 x < y ? "below" : "above", expr_text(ev, cond->kid[1]->kid[1]));
        diag_truncate(ev->ctx, before);
    }
    d->labels.v[0].text = label;
    double x = 0, y = 0;
    size_t before = diag_count(ev->ctx);
    if (cond->kind == AST_OP && !strcmp(cond->name, "==") && eval_number(ev, cond->kid[0], env, NULL, "", &x) &&
        eval_number(ev, cond->kid[1], env, NULL, "", &y) && fabs(x - y) <= 1e-9 * fabs(y))
        diag_help(ev->ctx, d, "numbers are rounded to 53 binary digits; compare with `near(%s, %s, 1e-9)`",
                  expr_text(ev, cond->kid[0]), expr_text(ev, cond->kid[1]));
    diag_truncate(ev->ctx, before);
    if (f->model && (mentions(cond, "params") || mentions(cond, "stored_params"))) {
        contributions(ev, d, f->model);
        diag_help(ev->ctx, d, "`vwn params %s` prints every tensor", f->path);
    }
}

/* `preserves(...)` or `alive(...)`: what a growth step says of itself. */
static bool is_claim(const Value *v)
{
    return v->kind == V_SPEC && (!strcmp(v->record->name, "preserves") || !strcmp(v->record->name, "alive"));
}

void run_check(Eval *ev, File *f, const Ast *it, Env *env, const char *where, Claims *claims)
{
    CheckResult r = {.text = expr_text(ev, it->kid[0]), .where = where, .span = it->span, .values = ""};
    if (it->kid[2] && it->kid[2]->n)
        err(ev, "E0110", it->kid[2]->kid[0]->span, "", "only a `check` in a block has attributes");
    Value v = eval(ev, it->kid[0], env, NULL);
    if (v.kind == V_POISON)
        return;
    if (is_claim(&v)) {
        if (!ev->decide_claim(ev, claims, it, &v, &r))
            return;
    } else if (v.kind == V_HOST && is_host_truth(&v)) {
        r.state = CHECK_NOT_DONE;
        r.values = "known only while training";
    } else if (v.kind != V_BOOL) {
        err(ev, "E0206", it->kid[0]->span, "", "a `check` must be true or false, got %s", value_kind_name(&v));
        return;
    } else {
        r.state = v.num != 0 ? CHECK_TRUE : CHECK_FALSE;
        r.values = v.num != 0 ? expr_values(ev, it->kid[0], env, NULL) : expr_sides(ev, it->kid[0], env, NULL);
        if (r.state == CHECK_FALSE)
            check_failed(ev, f, it, env, r.values);
    }
    vec_push(ev->arena, &ev->unit->check, r);
}
