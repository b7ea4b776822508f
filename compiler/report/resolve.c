/* resolve.c - a checked file with nothing left to defaults, overrides or other files.
 *
 * In:  a Unit and the evaluator's File behind it.   Out: the text of a .vwn file.
 * The one idea: edit the text, then prove it. What is resolved already stays as it was written,
 * comments and all, so a resolved text resolves to itself; an edit replaces the names of other
 * files, overridden values, and what is missing. The text is checked like any other file and
 * compared with the one at hand; when writing defaults out as items changed anything, they are
 * written as comments instead.
 */
#include "resolve.h"

#include "compiler/file/check_unit.h"
#include "compiler/front/attribute.h"
#include "compiler/file/check_train.h"
#include "resolve_expr.h"

#include <stdio.h>

typedef struct Edit { /* these bytes of a source text become `text` */
    Span at;
    const char *text;
} Edit;
typedef VEC(Edit) Edits;

typedef struct ResolvePart { /* of a node's path: "layer" with variable "layer", "attention" without
                         one */
    Name name, variable;
} ResolvePart;
enum { MOST_PARTS = 32 };

typedef struct ResolvePrinter {
    Resolver r;
    Ctx *ctx;
    Arena *arena;
    File *file;
    const Train *train;
    size_t grown; /* growth steps that are carried out */
    bool alone;   /* the text of a run: sweeps are switched off */
    Edits edits;  /* of the text of `file`, and of its base's */
    ResolvePart part[MOST_PARTS];
    int depth;
    bool training; /* inside `train` */
} ResolvePrinter;

static bool seen(Resolver *r, Name name)
{
    for (size_t i = 0; i < r->seen.n; i++)
        if (r->seen.v[i] == name)
            return true;
    vec_push(r->arena, &r->seen, name);
    return false;
}

static const char *one_line(Arena *arena, const Ast *e)
{
    Buf b = buf_new(arena);
    ast_print_expr(&b, e);
    return b.s;
}

static const char *file_text(Ctx *ctx, uint32_t source)
{
    size_t n;
    return source_text(ctx, source, &n);
}

/* ---- edits ---- */

static void edit(Resolver *r, Edits *edits, Span at, const char *text)
{
    vec_push(r->arena, edits, ((Edit){at, text}));
}

static void put_in(Resolver *r, Edits *edits, uint32_t source, uint32_t at, const char *text)
{
    edit(r, edits, (Span){source, at, at}, text);
}

/* What is put in at a place comes before what is replaced from there on. */
static bool edit_before(const Edit *a, const Edit *b)
{
    return a->at.lo < b->at.lo || (a->at.lo == b->at.lo && a->at.hi < b->at.hi);
}

/* Bytes [lo, hi) of the text with the edits inside of them, which do not overlap. */
static void put_edited(Resolver *r, Buf *out, Span at, const Edits *edits)
{
    const char *text = file_text(r->ctx, at.file);
    uint32_t lo = at.lo;
    Edit *sorted = NEW_ARRAY(r->arena, Edit, edits->n + 1);
    size_t n = 0;
    for (size_t i = 0; i < edits->n; i++) {
        size_t k = n++;
        for (; k > 0 && edit_before(&edits->v[i], &sorted[k - 1]); k--)
            sorted[k] = sorted[k - 1];
        sorted[k] = edits->v[i];
    }
    for (size_t i = 0; i < n; i++) {
        if (sorted[i].at.file != at.file || sorted[i].at.lo < lo || sorted[i].at.hi > at.hi)
            continue;
        buf_put(out, text + lo, sorted[i].at.lo - lo);
        buf_puts(out, sorted[i].text);
        lo = sorted[i].at.hi;
    }
    buf_put(out, text + lo, at.hi - lo);
}

/* A comment behind what ends at `at`; what follows on the line goes to the next one. */
static void edit_comment(Resolver *r, Edits *edits, uint32_t source, uint32_t at, const char *comment)
{
    const char *text = file_text(r->ctx, source) + at;
    text += strspn(text, " \t\r");
    bool last = *text == '\n' || *text == '\0' || *text == '#';
    put_in(r, edits, source, at, arena_printf(r->arena, "  # %s%s", comment, last ? "" : "\n"));
}

/* Names of other files inside any tree; with `defaults`, those of its calls too. Returns the
 * number of names replaced. */
static size_t edit_tree(Resolver *r, Edits *edits, const Ast *e, File *home, bool defaults)
{
    if (!e || e->kind == AST_OFF)
        return 0;
    const Ast *foreign = e->kind == AST_ID ? resolve_moved(r, e) : resolve_foreign(r, e, home), **more;
    if (foreign) {
        edit(r, edits, e->span, one_line(r->arena, foreign));
        return 1;
    }
    size_t count = 0;
    for (uint32_t i = 0; i < e->n; i++)
        count += edit_tree(r, edits, e->kid[i], home, defaults);
    size_t n = defaults && e->kind == AST_CALL ? resolve_defaults(r, e, home, &more) : 0;
    if (n == 0)
        return count;
    const Ast *args = e->kid[1];
    Buf b = buf_new(r->arena);
    for (size_t i = 0; i < n; i++)
        buf_printf(&b, "%s%s = %s", i || args->n ? ", " : "", more[i]->name, one_line(r->arena, more[i]->kid[0]));
    uint32_t at = args->n ? args->kid[args->n - 1]->span.hi : e->span.hi - 1;
    put_in(r, edits, e->span.file, at, b.s);
    return count;
}

/* ---- overrides of attributes ---- */

/* Which part of the override's path is an attribute of the node where the printer stands; -1: the path leads elsewhere.
 * `condition` gets what the loop variables must be, "" when nothing. */
static int attribute_here(ResolvePrinter *p, const Override *o, Buf *condition)
{
    const Ast *path = o->path;
    Name name[MOST_PARTS + 1];
    const Ast *index[MOST_PARTS + 1];
    int part[MOST_PARTS + 1], n = 0;
    name[n] = path->name;
    part[n] = -1;
    index[n++] = NULL;
    for (uint32_t i = 0; i < path->n && n <= MOST_PARTS; i++) {
        const Ast *kid = path->kid[i];
        bool quoted =
            p->training && kid->kind == AST_AT && kid->kid[0]->kind == AST_STR; /* `group["layer[*].ffn.*"]` */
        if (kid->kind == AST_AT && !quoted) {
            index[n - 1] = kid->kid[0];
        } else {
            name[n] = quoted ? kid->kid[0]->name : kid->name;
            part[n] = (int)i;
            index[n++] = NULL;
        }
    }
    bool whole = p->depth == 0 && !p->training;
    int at = whole ? 1 : p->depth;
    if (n <= at || (whole && strcmp(name[0], "model") != 0))
        return -1;
    for (int i = 0; i < p->depth; i++) {
        if (name[i] != p->part[i].name || (index[i] != NULL) != (p->part[i].variable != NULL))
            return -1;
        if (!index[i] || index[i]->kind == AST_STAR)
            continue;
        buf_printf(condition, "%s%s == ", condition->n ? " and " : "", p->part[i].variable);
        ast_print_expr(condition, index[i]);
    }
    return part[at];
}

/* Whether the attribute is a learning rate, whose calls are schedules. */
static bool is_rate(const ResolvePrinter *p, Name attr)
{
    return p->training && (p->depth == 2 || p->depth == 3) && strcmp(attr, "lr") == 0 &&
           strcmp(p->part[1].name, "optimizer") == 0;
}

static const Ast *parsed(ResolvePrinter *p, const char *text)
{
    return vwn_parse_expr(p->ctx, source_add(p->ctx, "<resolved>", text, strlen(text)));
}

/* `if layer == 3 then a else b` */
static const Ast *chosen(ResolvePrinter *p, const char *condition, const Ast *a, const Ast *b)
{
    Ast *out = NEW(p->arena, Ast);
    *out = (Ast){.kind = AST_COND, .span = a->span, .name_span = a->span, .n = 3};
    out->kid = NEW_ARRAY(p->arena, Ast *, 3);
    out->kid[0] = (Ast *)parsed(p, condition);
    out->kid[1] = (Ast *)a;
    out->kid[2] = (Ast *)(b ? b : parsed(p, "none"));
    return out;
}

/* The value of an attribute after all overrides; *from tells of the last one. NULL: there is
 * none. */
static const char *overridden(ResolvePrinter *p, Name attr, const Ast *written, const char **from)
{
    const Ast *value = written;
    OverridePlace place = {
        .ev = p->file->ev, .file = p->file, .env = p->file->env, .prim = is_rate(p, attr) ? schedule_prim : NULL};
    for (size_t i = 0; i < p->file->overrides.n; i++) {
        const Override *o = &p->file->overrides.v[i];
        Buf condition = buf_new(p->arena);
        int k = o->expr && o->path->n ? attribute_here(p, o, &condition) : -1;
        const Ast *next =
            k < 0 || o->path->kid[k]->name != attr ? NULL : override_inside(&place, o, value, (uint32_t)k + 1);
        if (!next)
            continue;
        value = condition.n ? chosen(p, condition.s, next, value) : next;
        *from = o->origin ? o->origin : "override";
    }
    if (is_rate(p, attr))
        p->r.rate = value;
    return value ? resolve_text(&p->r, value, p->file) : NULL;
}

/* Attributes of this node that only overrides give. */
static size_t added_attributes(ResolvePrinter *p, const Ast *items, Name names[64])
{
    size_t n = 0;
    for (size_t i = 0; i < p->file->overrides.n; i++) {
        const Override *o = &p->file->overrides.v[i];
        Buf unused = buf_new(p->arena);
        int part = attribute_here(p, o, &unused);
        if (part < 0 || (uint32_t)part + 1 != o->path->n || n == 64)
            continue;
        Name last = o->path->kid[part]->name;
        bool known = false;
        for (uint32_t k = 0; items && k < items->n; k++)
            known |= items->kid[k]->kind == AST_SET && items->kid[k]->kid[0]->name == last;
        for (size_t k = 0; k < n; k++)
            known |= names[k] == last;
        if (!known)
            names[n++] = last;
    }
    return n;
}

/* ---- items of a model or of train ---- */

static void print_items(ResolvePrinter *p, const Ast *items, Buf *more);

static void put_set(Buf *out, Name attr, const char *value, const char *from)
{
    buf_printf(out, "%s = %s%s%s\n", attr, value, from ? "  # " : "", from ? from : "");
}

static void print_value(ResolvePrinter *p, const Ast *value) { edit_tree(&p->r, &p->edits, value, p->file, true); }

static void print_set(ResolvePrinter *p, const Ast *it)
{
    const char *from = NULL;
    Name attr = it->kid[0]->name;
    const char *value = it->kid[0]->n ? NULL : overridden(p, attr, it->kid[1], &from);
    if (!from) {
        print_value(p, it->kid[1]);
        return;
    }
    edit(&p->r, &p->edits, it->kid[1]->span, value);
    edit_comment(&p->r, &p->edits, it->span.file, it->span.hi,
                 arena_printf(p->arena, "%s; was %s", from, one_line(p->arena, it->kid[1])));
}

static bool gives(const Ast *items, const char *attr)
{
    for (uint32_t i = 0; items && i < items->n; i++)
        if (items->kid[i]->kind == AST_SET && items->kid[i]->kid[0]->n == 0 &&
            strcmp(items->kid[i]->kid[0]->name, attr) == 0)
            return true;
    return false;
}

static bool holds(const Ast *items, const char *kind)
{
    for (uint32_t i = 0; items && i < items->n; i++)
        if (items->kid[i]->kind == AST_NODE && strcmp(items->kid[i]->kid[0]->name, kind) == 0)
            return true;
    return false;
}

static bool is_given_here(ResolvePrinter *p, const Ast *items, const char *attr)
{
    const char *from = NULL;
    return gives(items, attr) || overridden(p, name_str(p->ctx, attr), NULL, &from);
}

/* Where a default comes from: lines of the library are pinned by `edition`, others move. */
static const char *origin_text(ResolvePrinter *p, const BlockDef *def, Span at)
{
    if (!def->file->is_std)
        return arena_printf(p->arena, "default of %s", def->ast->name);
    return arena_printf(p->arena, "default, %s:%u", source_path(p->ctx, at.file),
                        source_position(p->ctx, at.file, at.lo).line);
}

/* Defaults of a node's block that the node does not set: as items when they are plain values,
 * as comments when they depend on the place. */
static void put_node_defaults(ResolvePrinter *p, Buf *out, const BlockDef *def, const Ast *it)
{
    const Ast *params = def->ast->kid[0];
    const char *text = file_text(p->ctx, it->span.file);
    const char *own = arena_copy(p->arena, text + it->span.lo, it->span.hi - it->span.lo);
    for (uint32_t i = 0; i < params->n; i++) {
        const Ast *par = params->kid[i];
        if (!par->kid[1] || is_given_here(p, it->kid[2], par->name))
            continue;
        const char *line = arena_printf(p->arena, "%s = %s  # %s", par->name, one_line(p->arena, par->kid[1]),
                                        origin_text(p, def, par->span));
        bool item = p->r.items && resolve_is_literal(par->kid[1]) && !is_scope_name(par->name);
        const char *comment = arena_printf(p->arena, "# %s", line);
        if (item || !strstr(own, comment))
            buf_printf(out, "%s\n", item ? line : comment);
    }
}

/* Defaults of `train` and of the nodes in it. A part of the step is the whole step by default, and a
 * node that is left out (`log`) has defaults too. */
static void put_train_defaults(ResolvePrinter *p, Buf *out, const Ast *it)
{
    const Ast *items = it->kid[2];
    Name kind = it->kid[0]->name;
    if (!p->train)
        return;
    if (!strcmp(kind, "optimizer") && it->kid[1])
        kind = it->kid[1]->name;
    for (size_t i = 0; i < attribute_count(); i++) {
        const AttributeRow *a = attribute_at(i);
        if (!a->fallback)
            continue;
        const NodeDoc *node = node_doc_find(a->node);
        if (!strcmp(a->node, kind) && !a->example && !is_given_here(p, items, a->name))
            put_set(out, a->name,
                    strcmp(a->fallback, "batch") ? a->fallback
                                                 : arena_printf(p->arena, "%lld seqs", (long long)p->train->micro_seqs),
                    "default");
        else if (a->example && node_stands_in(node, kind) && !holds(items, a->node))
            buf_printf(out, "%s { %s = %s }  # default\n", a->node, a->name, a->fallback);
    }
}

/* The block that a node of the model is made of. */
static const BlockDef *node_block(ResolvePrinter *p, Name kind, Name label)
{
    bool labelled = !strcmp(kind, "embed") || !strcmp(kind, "head");
    return resolve_block(p->file, labelled && label ? name_printf(p->ctx, "%s_%s", kind, label) : kind);
}

static void print_node(ResolvePrinter *p, const Ast *it)
{
    Name kind = it->kid[0]->name, label = it->kid[1] ? it->kid[1]->name : NULL;
    int depth = p->depth;
    bool optimizer = p->training && strcmp(kind, "optimizer") == 0;
    bool is_model = !p->training && depth == 0 && strcmp(kind, "model") == 0;
    if (depth + 2 >= MOST_PARTS)
        ctx_raise(p->ctx, ST_INPUT, "nodes are nested too deeply to be written out");
    if (!is_model)
        p->part[p->depth++] = (ResolvePart){kind, NULL};
    if (label && !is_model && !optimizer)
        p->part[p->depth++] = (ResolvePart){label, NULL};
    Buf more = buf_new(p->arena);
    print_items(p, it->kid[2], &more);
    Name added[64];
    size_t n = added_attributes(p, it->kid[2], added);
    for (size_t i = 0; i < n; i++) {
        const char *from = NULL;
        const char *value = overridden(p, added[i], NULL, &from);
        put_set(&more, added[i], value, from);
    }
    const BlockDef *def = p->training || is_model ? NULL : node_block(p, kind, label);
    if (def)
        put_node_defaults(p, &more, def, it);
    if (p->training)
        put_train_defaults(p, &more, it);
    if (more.n && it->kid[2])
        put_in(&p->r, &p->edits, it->span.file, it->span.hi - 1, arena_printf(p->arena, "\n%s", more.s));
    else if (more.n)
        put_in(&p->r, &p->edits, it->span.file, it->span.hi, arena_printf(p->arena, " {\n%s}", more.s));
    p->depth = depth;
}

static void print_for(ResolvePrinter *p, const Ast *it)
{
    if (p->depth + 1 >= MOST_PARTS)
        ctx_raise(p->ctx, ST_INPUT, "loops are nested too deeply to be written out");
    print_value(p, it->kid[0]);
    p->part[p->depth++] = (ResolvePart){it->name, it->name};
    print_items(p, it->kid[1], NULL);
    p->depth--;
}

static void print_if(ResolvePrinter *p, const Ast *it)
{
    print_value(p, it->kid[0]);
    print_items(p, it->kid[1], NULL);
    if (it->kid[2] && it->kid[2]->kind == AST_IF)
        print_if(p, it->kid[2]);
    else
        print_items(p, it->kid[2], NULL);
}

/* A node that a variant puts into one of its base. */
static void put_added(ResolvePrinter *p, const Ast *it, Buf *more)
{
    put_edited(&p->r, more, it->span, &p->edits);
    LineCol at = source_position(p->ctx, it->span.file, it->span.lo);
    buf_printf(more, "  # %s:%u:%u\n", source_path(p->ctx, it->span.file), at.line, at.column);
}

/* Those of other files go to `more`. */
static void print_items(ResolvePrinter *p, const Ast *items, Buf *more)
{
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i];
        switch (it->kind) {
        case AST_SET: print_set(p, it); break;
        case AST_NODE:
            print_node(p, it);
            if (more && it->span.file != items->span.file)
                put_added(p, it, more);
            break;
        case AST_FOR: print_for(p, it); break;
        case AST_IF: print_if(p, it); break;
        default: print_value(p, it); break;
        }
    }
}

/* ---- whole files ---- */

static const char *was_text(Resolver *r, const Ast *e)
{
    return arena_printf(r->arena, "was %s", one_line(r->arena, e));
}

/* The new value of a let that an override or an argument of the import changed; NULL: it is as
 * it was written. */
static const char *changed_let(Resolver *r, File *f, const Ast *it, const char **origin)
{
    Binding *b = map_get(&f->names, (uintptr_t)it->name);
    if (!b || !b->origin)
        return NULL;
    if (!b->expr) /* a value was put in its place */
        ctx_raise(r->ctx, ST_INPUT, "`%s` cannot be written out", it->name);
    *origin = b->origin;
    return resolve_text(r, b->expr, b->env && b->env->file ? b->env->file : f);
}

static void print_let(ResolvePrinter *p, const Ast *it)
{
    const char *origin, *value = changed_let(&p->r, p->file, it, &origin);
    const char *comment = NULL;
    if (value) {
        edit(&p->r, &p->edits, it->kid[1]->span, value);
        comment = arena_printf(p->arena, "%s; %s", origin, was_text(&p->r, it->kid[1]));
    } else if (edit_tree(&p->r, &p->edits, it->kid[1], p->file, true)) {
        comment = was_text(&p->r, it->kid[1]);
    }
    if (comment)
        edit_comment(&p->r, &p->edits, it->span.file, it->span.hi, comment);
}

/* A let of another file, on one line. */
static void take_in_let(Resolver *r, Buf *out, File *f, const Ast *it)
{
    const char *origin, *value = changed_let(r, f, it, &origin);
    LineCol at = source_position(r->ctx, it->span.file, it->span.lo);
    buf_printf(out, "let %s", it->name);
    if (it->kid[0])
        buf_printf(out, ": %s", one_line(r->arena, it->kid[0]));
    if (value)
        buf_printf(out, " = %s  # %s; %s\n", value, origin, was_text(r, it->kid[1]));
    else
        buf_printf(out, " = %s  # %s:%u\n", resolve_text(r, it->kid[1], f), source_path(r->ctx, it->span.file),
                   at.line);
}

static void put_doc(Buf *out, const Ast *it)
{
    const char *line = it->doc;
    while (line && *line) {
        size_t n = strcspn(line, "\n");
        buf_printf(out, "## %.*s\n", (int)n, line);
        line += n + (line[n] == '\n');
    }
}

/* "std/transformer.vwn" and "std/transformer" are one file. */
static Name library_name(Resolver *r, const char *path)
{
    size_t n = strlen(path);
    bool suffix = n > 4 && strcmp(path + n - 4, ".vwn") == 0;
    return name_of(r->ctx, path, suffix ? n - 4 : n);
}

static bool is_library(const char *path) { return strncmp(path, "std/", 4) == 0; }

static void import_library(Resolver *r, const char *path)
{
    Name name = library_name(r, path);
    if (!seen(r, name))
        buf_printf(&r->taken, "import \"%s\"\n", name);
}

static void take_in_import(Resolver *r, File *f, const Ast *it)
{
    if (is_library(it->name) && !it->kid[0])
        import_library(r, it->name);
    for (size_t i = 0; i < f->imports.n && !it->kid[0]; i++) {
        Import *im = &f->imports.v[i];
        if (im->span.lo == it->name_span.lo && im->span.file == it->name_span.file && im->file && !im->file->is_std)
            resolve_take_in(r, im->file, true);
    }
}

/* Library files stay imports; of other files the blocks are taken in, and when their names are
 * used unqualified the lets too. */
void resolve_take_in(Resolver *r, File *from, bool lets)
{
    if (from->is_std)
        import_library(r, from->path);
    if (from->is_std || from == r->file || (!lets && seen(r, name_printf(r->ctx, "blocks of %s", from->path))))
        return;
    Edits edits = {0};
    for (uint32_t i = 0; i < from->ast->n; i++) {
        const Ast *it = from->ast->kid[i];
        if (it->kind == AST_IMPORT)
            take_in_import(r, from, it);
        if (it->kind == AST_BLOCK && !seen(r, name_printf(r->ctx, "block %s", it->name))) {
            edit_tree(r, &edits, it, from, false);
            put_doc(&r->taken, it);
            put_edited(r, &r->taken, it->span, &edits);
            buf_puts(&r->taken, "\n\n");
        }
        if (it->kind == AST_LET && lets) {
            Buf let = buf_new(r->arena); /* its own needs come before it */
            take_in_let(r, &let, from, it);
            put_doc(&r->taken, it);
            buf_put(&r->taken, let.s, let.n);
        }
    }
}

/* The import that gives the file a grow step or a sweep is `of`; NULL when it is of this file. */
static Name import_of(ResolvePrinter *p, const Ast *node)
{
    const Ast *items = node->kid[2];
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i];
        bool of = it->kind == AST_SET && it->kid[0]->n == 0 && !strcmp(it->kid[0]->name, "of");
        const Ast *e = of ? it->kid[1] : NULL;
        while (e && (e->kind == AST_FIELD || e->kind == AST_PAREN))
            e = e->kid[0];
        if (e && e->kind == AST_ID && resolve_file(p->file, e->name))
            return e->name;
    }
    return NULL;
}

/* A file is a function, and a step or sweep of another file needs the function, not a value of
 * it: such an import stays, which a text that must stand alone cannot have. Those of the library
 * always do. */
static void keep_imports(ResolvePrinter *p, bool alone)
{
    for (uint32_t i = 0; i < p->file->ast->n; i++) {
        const Ast *it = p->file->ast->kid[i];
        if (it->kind == AST_IMPORT && is_library(it->name) && it->kid[0])
            vec_push(p->arena, &p->r.stays, it->kid[0]->name);
        bool off = it->kind == AST_NODE && alone && !strcmp(it->kid[0]->name, "sweep");
        Name target = it->kind == AST_NODE && !off ? import_of(p, it) : NULL;
        if (target && alone)
            ctx_raise(p->ctx, ST_INPUT,
                      "%s:%u: this `%s` is of the imported file `%s`, which a run cannot keep in its"
                      " own text: move it to a file without `train`",
                      source_path(p->ctx, it->span.file), source_position(p->ctx, it->span.file, it->span.lo).line,
                      it->kid[0]->name, target);
        if (target)
            vec_push(p->arena, &p->r.stays, target);
    }
}

static void print_import(ResolvePrinter *p, const Ast *it, Span *first)
{
    Name as = it->kid[0] ? it->kid[0]->name : NULL;
    bool stays = is_library(it->name);
    for (size_t i = 0; i < p->r.stays.n; i++)
        stays |= as && p->r.stays.v[i] == as;
    if (stays) {
        const char *path = is_library(it->name) ? it->name : variant_path(p->r.ev, it->name_span, it->name);
        if (strcmp(path, it->name) != 0)
            edit(&p->r, &p->edits, it->name_span, arena_printf(p->arena, "\"%s\"", path));
        edit_tree(&p->r, &p->edits, it->kid[1], p->file, true);
        return;
    }
    if (first->file != it->span.file || it->span.lo < first->lo)
        *first = it->span;
    edit(&p->r, &p->edits, it->span, "");
    take_in_import(&p->r, p->file, it);
}

static void print_top(ResolvePrinter *p, const Ast *it, Span *first)
{
    Name kind = it->kind == AST_NODE ? it->kid[0]->name : "";
    p->training = strcmp(kind, "train") == 0;
    bool claim = p->grown && it->kind == AST_CHECK; /* of the model before the steps */
    bool sweep = p->alone && !strcmp(kind, "sweep"), off = sweep || claim;
    for (size_t i = 0; i < p->grown; i++)
        off |= p->file->grows.v[i] == it;
    if (off)
        put_in(&p->r, &p->edits, it->span.file, it->span.lo, "/-");
    if (it->kind == AST_IMPORT)
        print_import(p, it, first);
    else if (it->kind == AST_LET)
        print_let(p, it);
    else if (it->kind == AST_BLOCK)
        edit_tree(&p->r, &p->edits, it, p->file, false);
    else if (p->training || strcmp(kind, "model") == 0)
        print_node(p, it);
    else if (!sweep && !claim && edit_tree(&p->r, &p->edits, it, p->file, true) && it->kind == AST_CHECK)
        edit_comment(&p->r, &p->edits, it->span.file, it->span.hi, was_text(&p->r, it->kid[0]));
}

/* What stands around an item of the file: a variant may give a model another name. */
static void print_name(ResolvePrinter *p, const Ast *it)
{
    const Ast *name = it->kind == AST_NODE && !strcmp(it->kid[0]->name, "model") ? it->kid[1] : NULL;
    if (name && name->span.file != it->span.file)
        edit(&p->r, &p->edits, (Span){it->span.file, it->kid[0]->span.hi, it->kid[2]->span.lo},
             arena_printf(p->arena, " %s ", name->name));
}

/* Whether the item stands where one of a base did. */
static bool in_place(const ResolvePrinter *p, const Ast *it)
{
    const Base *base = p->file->base;
    for (size_t i = 0; base && i < base->n_gone; i++)
        if (base->instead[i] == it)
            return true;
    return false;
}

/* The text of one file: of a variant without the node that names its base, but with what stands for its own in there. */
static void put_text(ResolvePrinter *p, Buf *out, const Ast *own, const Ast *node)
{
    size_t n;
    const char *text = source_text(p->ctx, own->span.file, &n);
    uint32_t start = n >= 3 && memcmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0; /* a mark of UTF-8 */
    Span all = {own->span.file, start, (uint32_t)n};
    if (!node) {
        put_edited(&p->r, out, all, &p->edits);
        return;
    }
    put_edited(&p->r, out, (Span){all.file, start, node->span.lo}, &p->edits);
    for (uint32_t i = 0; i < p->file->ast->n; i++) {
        Span at = p->file->ast->kid[i]->span;
        if (at.file == all.file && at.lo > node->span.lo && at.hi < node->span.hi && !in_place(p, p->file->ast->kid[i]))
            put_edited(&p->r, out, at, &p->edits);
    }
    put_edited(&p->r, out, (Span){all.file, node->span.hi, all.hi}, &p->edits);
}

/* The base comes first. */
static void put_texts(ResolvePrinter *p, Buf *out, const Base *b)
{
    if (b->next)
        put_texts(p, out, b->next);
    buf_puts(out, b->next ? "\n" : "");
    put_text(p, out, b->ast, b->node);
}

static const char *edited_text(ResolvePrinter *p, const char *path)
{
    const Ast *ast = p->file->ast;
    const Base *base = p->file->base;
    Span first = {0};
    uint32_t edition = 0;
    for (uint32_t i = 0; i < ast->n; i++) {
        const Ast *it = ast->kid[i];
        if (it->kind == AST_SET && edition && it->span.file != edition)
            edit(&p->r, &p->edits, it->span, "");
        else if (it->kind == AST_SET)
            edition = it->span.file;
        if (it->kind == AST_IMPORT && is_library(it->name) && !it->kid[0])
            seen(&p->r, library_name(&p->r, it->name));
        if (it->kind == AST_BLOCK)
            seen(&p->r, name_printf(p->ctx, "block %s", it->name));
    }
    for (size_t i = 0; base && i < base->n_gone; i++)
        put_in(&p->r, &p->edits, base->gone[i]->span.file, base->gone[i]->span.lo, "/-");
    for (uint32_t i = 0; i < ast->n; i++) {
        print_name(p, ast->kid[i]);
        print_top(p, ast->kid[i], &first);
    }
    for (size_t i = 0; base && i < base->n_gone; i++) {
        const Ast *last = in_place(p, base->gone[i]) ? NULL : base->instead[i];
        for (size_t k = i + 1; last && k < base->n_gone; k++) /* what a variant replaces again, or takes away */
            last = base->gone[k] == last ? base->instead[k] : last;
        Buf more = buf_new(p->arena);
        if (!last)
            continue;
        put_added(p, last, &more);
        put_in(&p->r, &p->edits, base->gone[i]->span.file, base->gone[i]->span.hi,
               arena_printf(p->arena, "\n%s", more.s));
    }
    if (p->r.taken.n)
        put_in(&p->r, &p->edits, first.file, first.lo, arena_printf(p->arena, "\n%s", p->r.taken.s));
    static const char header[] = "# Resolved from ";
    const char *text = file_text(p->ctx, p->file->source);
    Buf out = buf_new(p->arena);
    if ((base && base->node) ||
        strncmp(text + (memcmp(text, "\xef\xbb\xbf", 3) ? 0 : 3), header, sizeof header - 1) != 0)
        buf_printf(&out, "%s%s.\n", header, path);
    if (!edition)
        buf_puts(&out, "edition = 1\n");
    put_texts(p, &out, base ? base : &(Base){.ast = p->file->ast});
    return out.s;
}

static char *print_unit(Unit *u, Arena *arena, bool items, bool alone)
{
    File *f = u->file;
    ResolvePrinter p = {.ctx = u->ctx, .arena = arena, .file = f, .train = u->train, .grown = u->grown, .alone = alone};
    p.r = (Resolver){.ctx = u->ctx, .arena = arena, .ev = f->ev, .file = f, .items = items, .taken = buf_new(arena)};
    keep_imports(&p, alone);
    const char *text = edited_text(&p, u->path);
    uint32_t source = source_add(u->ctx, "<resolved>", text, strlen(text));
    size_t before = diag_count(u->ctx);
    const Ast *ast = vwn_parse(u->ctx, source);
    if (diag_count(u->ctx) > before) {
        diag_truncate(u->ctx, before);
        return NULL;
    }
    Buf out = buf_new(arena);
    vwn_format(u->ctx, source, ast, &out);
    return out.s;
}

/* Checks the text and compares; in the folder of the file, or in none when it is to be `alone`.
 */
static bool proves(Unit *u, const char *text, bool alone)
{
    Ctx *ctx = u->ctx;
    Diags *diags = ctx->diags; /* those of the proof are nobody's business */
    volatile bool same = false;
    char message[sizeof ctx->message];
    memcpy(message, ctx->message, sizeof message);
    ctx->diags = NULL;
    CtxGuard guard;
    if (CTX_TRY(ctx, &guard)) {
        CheckOptions how = {
            .path = alone ? "-" : u->path, .text = text, .text_length = strlen(text), .no_sweeps = alone};
        Unit *again = check_file(ctx, &how);
        same = diag_only_checks(ctx, 0) && unit_same(u, again) && (alone || unit_same_sweeps(u, again));
        ctx_leave(ctx, &guard);
        ctx->diags = diags;
    } else {
        ctx->diags = diags;
        if (ctx->raised != ST_INPUT)
            ctx_raise(ctx, ctx->raised, "%s", arena_copy(ctx->scratch, ctx->message, strlen(ctx->message)));
    }
    memcpy(ctx->message, message, sizeof message);
    return same;
}

static char *resolved(Unit *unit, Arena *arena, bool alone)
{
    if (!unit->file || !unit->ast)
        ctx_raise(unit->ctx, ST_INPUT, "%s has errors", unit->path);
    for (int items = 1; items >= 0; items--) {
        char *text = print_unit(unit, arena, items, alone);
        if (text && proves(unit, text, alone))
            return text;
    }
    ctx_raise(unit->ctx, ST_INPUT,
              "%s cannot be written out as one file that builds the same: it uses a name of an imported"
              " file that means something else here; give it another name",
              unit->path);
}

char *unit_resolved_text(Unit *unit, Arena *arena) { return resolved(unit, arena, true); }

char *unit_resolved_file(Unit *unit, Arena *arena) { return resolved(unit, arena, false); }
