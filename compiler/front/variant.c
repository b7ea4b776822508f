/* variant.c - a file that is another one with changes.
 *
 * In:  the tree of a file with `variant "base.vwn" { PATH = EXPR }`.   Out: one tree, and
 * settings. The one idea: a variant is decided before anything is evaluated. The tree becomes
 * that of the base with the file's own items behind it; what the braces set are overrides, as
 * `--set` gives them, and nodes in them go into the `train` of the base. So all that evaluates,
 * writes out or compares files sees a file like any other.
 */
#include "check.h"

typedef VEC(Ast *) ItemList;

typedef struct Chain { /* the variants on the way to a base */
    const struct Chain *up;
    const char *path;
    int n;
} Chain;

typedef struct Merge {
    Eval *ev;
    File *f;
    ItemList items;
    ItemList gone;    /* items of the base that are not the variant's */
    ItemList instead; /* of each of them what takes its place among the items of the file, or NULL */
    size_t from;      /* the first setting of these braces */
    const char *base; /* the path of the file that these braces change */
} Merge;

/* ---- paths of files ---- */

static size_t same_folders(const char *a, const char *b)
{
    size_t same = 0;
    for (size_t i = 0;; i++) {
        bool end_a = !a[i] || a[i] == '/', end_b = !b[i] || b[i] == '/';
        if (end_a && end_b)
            same = i + (a[i] && b[i]);
        if (!a[i] || a[i] != b[i])
            return same;
    }
}

const char *variant_path(Eval *ev, Span at, const char *path)
{
    const char *source = source_path(ev->ctx, at.file);
    if (!at.file || source[0] == '<' || path[0] == '/' || !*path)
        return path;
    const char *here = folder_of(ev, source);
    const char *root = folder_of(ev, import_path(ev->arena, ".", ev->unit->path));
    if (!strcmp(here, root))
        return path;
    const char *full = import_path(ev->arena, here, path);
    root = strcmp(root, ".") ? root : "";
    size_t same = same_folders(root, full);
    if (full[0] == '/' && root[0] != '/')
        return full;
    Buf b = buf_new(ev->arena);
    for (const char *p = root + same; *p; p += strcspn(p, "/"), p += *p == '/')
        buf_puts(&b, "../");
    buf_puts(&b, full + same);
    void **moved = map_at(&ev->moved, (uintptr_t)at.file << 32 | at.lo);
    *moved = b.s;
    return b.s;
}

/* ---- settings ---- */

static bool is_node(const Ast *it, const char *kind)
{
    return it->kind == AST_NODE && !it->kid[0]->n && !strcmp(it->kid[0]->name, kind);
}

static Ast *copy(Eval *ev, const Ast *e, uint32_t n)
{
    Ast *out = NEW(ev->arena, Ast);
    *out = *e;
    out->n = n;
    out->kid = NEW_ARRAY(ev->arena, Ast *, n + 1);
    for (uint32_t i = 0; i < n && i < e->n; i++)
        out->kid[i] = e->kid[i];
    return out;
}

/* `inner` behind `outer`, which may be NULL. */
static const Ast *joined(Eval *ev, const Ast *outer, const Ast *inner)
{
    if (!outer)
        return inner;
    Ast *out = copy(ev, outer, outer->n + 1 + inner->n), *dot = NEW(ev->arena, Ast);
    *dot = *inner;
    dot->kind = AST_DOT;
    dot->span = inner->name_span;
    dot->n = 0;
    out->kid[outer->n] = dot;
    for (uint32_t i = 0; i < inner->n; i++)
        out->kid[outer->n + 1 + i] = inner->kid[i];
    out->span = inner->span;
    return out;
}

/* The path of what stands in the braces of a node. */
static const Ast *path_of_node(Eval *ev, const Ast *outer, const Ast *node)
{
    const Ast *path = joined(ev, outer, node->kid[0]), *label = node->kid[1];
    Name kind = path->n ? path->kid[path->n - 1]->name : path->name;
    if (!label || !kind || !strcmp(kind, "model") || !strcmp(kind, "optimizer"))
        return path;
    Ast *part = NEW(ev->arena, Ast), *out = copy(ev, path, path->n + 1);
    *part = *label;
    part->kind = AST_DOT;
    if (strpbrk(label->name, ".*[")) { /* a group that is named by a path */
        Ast *text = NEW(ev->arena, Ast);
        *text = *part;
        text->kind = AST_STR;
        *part = (Ast){.kind = AST_AT, .span = label->span, .name_span = label->span, .n = 1};
        part->kid = NEW_ARRAY(ev->arena, Ast *, 1);
        part->kid[0] = text;
    }
    out->kid[path->n] = part;
    return out;
}

static bool same_path(Eval *ev, const Ast *a, const Ast *b)
{
    bool same = a->name == b->name && a->n == b->n;
    for (uint32_t i = 0; i < a->n && same; i++) {
        const Ast *x = a->kid[i], *y = b->kid[i];
        same = x->kind == y->kind && x->name == y->name;
        if (same && x->kind == AST_AT)
            same = !strcmp(expr_text(ev, x->kid[0]), expr_text(ev, y->kid[0]));
    }
    return same;
}

/* ---- nodes that are taken away or replaced whole ---- */

static void leaves(Merge *m, Ast *had, Ast *instead)
{
    vec_push(m->ev->arena, &m->gone, had);
    vec_push(m->ev->arena, &m->instead, instead);
}

/* Nodes of which a file may have several. */
static bool is_one_of_several(const Ast *node)
{
    return is_node(node, "grow") || is_node(node, "sweep") || is_node(node, "names");
}

static Ast *without(Merge *m, const Ast *items, const Ast *path, uint32_t k, Name kind);

/* The same for a loop, whose nodes are named `layer[*].ffn`, and for what stands under a condition; NULL: it names none of its nodes. */
static Ast *without_inside(Merge *m, Ast *it, const Ast *path, uint32_t k, Name kind)
{
    Ast *out = NULL;
    if (it->kind == AST_FOR && it->name == kind && k + 1 < path->n && path->kid[k]->kind == AST_AT &&
        path->kid[k]->kid[0]->kind == AST_STAR && path->kid[k + 1]->kind == AST_DOT) {
        k += 2;
        kind = path->kid[k - 1]->name;
    } else if (it->kind != AST_IF) {
        return NULL;
    }
    for (uint32_t i = 1; i < it->n; i++) {
        Ast *kid = it->kid[i];
        Ast *less = !kid                  ? NULL
                    : kid->kind == AST_IF ? without_inside(m, kid, path, k, kind)
                                          : without(m, kid, path, k, kind);
        if (less && !out)
            out = copy(m->ev, it, it->n);
        if (less)
            out->kid[i] = less;
    }
    return out;
}

/* The items without the nodes of this kind that the path names whole, its parts from the kth on being those behind the kind; NULL:
 * it names none. */
static Ast *without(Merge *m, const Ast *items, const Ast *path, uint32_t k, Name kind)
{
    Ast *out = NULL;
    uint32_t left = 0;
    for (uint32_t i = 0; i < items->n; i++) {
        Ast *it = items->kid[i], *part_less = without_inside(m, it, path, k, kind);
        bool node = is_node(it, kind), labelled = node && it->kid[1] && strcmp(kind, "optimizer") != 0;
        const Ast *part = labelled && k < path->n ? path->kid[k] : NULL;
        Name label = !part ? NULL : part->kind == AST_DOT ? part->name : part->kid[0]->name;
        uint32_t next = label && label == it->kid[1]->name ? k + 1 : k;
        bool whole = node && next == path->n, inside = node && !whole && it->kid[2] && !is_one_of_several(it);
        Name inner = inside ? path->kid[next]->name : NULL;
        Ast *less = inner ? without(m, it->kid[2], path, next + 1, inner) : NULL;
        if (!out && (whole || less || part_less))
            out = copy(m->ev, items, items->n);
        if (whole)
            leaves(m, it, NULL);
        if (less) {
            it = copy(m->ev, it, 3);
            it->kid[2] = less;
        }
        if (out && !whole)
            out->kid[left] = part_less ? part_less : it;
        left += !whole;
    }
    if (out)
        out->n = left;
    return out;
}

static bool is_none(const Ast *it)
{
    return it->kind == AST_SET && it->kid[1]->kind == AST_ID && !strcmp(it->kid[1]->name, "none");
}

/* What the base set in a node that is not there any more. */
static void forget_settings(Merge *m, const Ast *path)
{
    const char *gone = expr_text(m->ev, path);
    size_t n = strlen(gone);
    for (size_t i = 0; i < m->from; i++) {
        const char *text = expr_text(m->ev, m->f->overrides.v[i].path);
        m->f->overrides.v[i].used |= !strncmp(text, gone, n) && (!text[n] || text[n] == '.');
    }
}

static void no_such_node(Merge *m, const Ast *path, Name kind, Span at, bool taken)
{
    Eval *ev = m->ev;
    VEC(Name) names = {0};
    for (size_t i = 0; i < m->items.n; i++)
        if (is_node(m->items.v[i], kind) && m->items.v[i]->kid[1])
            vec_push(ev->arena, &names, name_printf(ev->ctx, "%s.%s", kind, m->items.v[i]->kid[1]->name));
    Name text = name_str(ev->ctx, expr_text(ev, path)), best = nearest_name(text, names.v, names.n);
    Diag *d = err(ev, "E0105", at, "nothing has this path", "`%s` names nothing in %s", text, m->base);
    if (best)
        diag_help(ev->ctx, d, "did you mean `%s`?", best);
    else if (names.n == 1)
        diag_help(ev->ctx, d, "it has `%s`", names.v[0]);
    else if (taken)
        diag_help(ev->ctx, d, "it has none: leave that out");
    else
        diag_help(ev->ctx, d, "what the base does not have stands behind the braces");
}

static bool is_let(const Merge *m, Name name)
{
    for (size_t i = 0; i < m->items.n; i++)
        if (m->items.v[i]->kind == AST_LET && m->items.v[i]->name == name)
            return true;
    return false;
}

/* Whether the path begins with the word of growth steps, sweeps or tables of names, and no let has that name. */
static bool names_one_of_several(const Merge *m, const Ast *path)
{
    bool known = !strcmp(path->name, "grow") || !strcmp(path->name, "sweep") || !strcmp(path->name, "names");
    return known && !is_let(m, path->name);
}

static Ast **item(Merge *m, const char *kind)
{
    for (size_t i = 0; i < m->items.n; i++)
        if (is_node(m->items.v[i], kind))
            return &m->items.v[i];
    return NULL;
}

/* The items without the nodes of the model that the path names, `embed.position`, `layer[*].ffn` or with `model.` before it. */
static Ast *less_of_model(Merge *m, const Ast *all, const Ast *path)
{
    Ast **model = item(m, "model");
    bool from_top = !strcmp(path->name, "model");
    Name kind = !from_top ? path->name : path->n && path->kid[0]->kind == AST_DOT ? path->kid[0]->name : NULL;
    Ast *less = model && (*model)->kid[2] && kind ? without(m, (*model)->kid[2], path, from_top, kind) : NULL;
    if (!less)
        return NULL;
    Ast *out = copy(m->ev, all, all->n), *node = copy(m->ev, *model, 3);
    node->kid[2] = less;
    out->kid[model - m->items.v] = node;
    return out;
}

/* `grow.wider = none`, `sweep = none`, `train.eval = none`, `embed.position = none`. False: the path is one of a setting. */
static bool taken_away(Merge *m, const Ast *path, Span at)
{
    Ast all = {.kind = AST_ITEMS, .n = (uint32_t)m->items.n, .kid = m->items.v};
    bool several = names_one_of_several(m, path), train = !strcmp(path->name, "train");
    Ast *less = several || train        ? without(m, &all, path, 0, path->name)
                : is_let(m, path->name) ? NULL
                                        : less_of_model(m, &all, path);
    if (less) {
        m->items = (ItemList){.v = less->kid, .n = less->n, .cap = less->n};
        forget_settings(m, path);
    } else if (several) {
        no_such_node(m, path, path->name, at, true);
        return true;
    }
    return less != NULL;
}

/* `grow wider { ... }` takes the place of that of the base, with all that is in it. */
static void replace_node(Merge *m, Ast *it)
{
    Eval *ev = m->ev;
    Name kind = it->kid[0]->name, label = it->kid[1] ? it->kid[1]->name : NULL;
    for (size_t i = 0; i < m->items.n; i++) {
        Ast *had = m->items.v[i];
        if (!is_node(had, kind) || (had->kid[1] ? had->kid[1]->name : NULL) != label)
            continue;
        if (had->span.file == it->span.file) {
            Diag *d = err(ev, "E0108", it->kid[0]->span, "given twice", "`%s%s%s` is given twice", kind,
                          label ? " " : "", label ? label : "");
            diag_label(ev->ctx, d, had->kid[0]->span, "first given here");
            return;
        }
        m->items.v[i] = it;
        leaves(m, had, it);
        return;
    }
    no_such_node(m, path_of_node(ev, NULL, it), kind,
                 span_join(it->kid[0]->span, it->kid[1] ? it->kid[1]->span : NO_SPAN), false);
}

static void setting(Merge *m, const Ast *outer, const Ast *it)
{
    Eval *ev = m->ev;
    const Ast *path = joined(ev, outer, it->kid[0]);
    Span at = it->kid[0]->span;
    if (is_none(it) && taken_away(m, path, at))
        return;
    if (names_one_of_several(m, path)) {
        Diag *d = err(ev, "E0105", at, "no part of it has a path", "`%s` is set whole or not at all", path->name);
        diag_help(ev->ctx, d, "write `%s NAME { ... }` with all that it holds, or take it away: `%s.NAME = none`",
                  path->name, path->name);
        return;
    }
    for (size_t i = m->from; i < m->f->overrides.n; i++)
        if (same_path(ev, m->f->overrides.v[i].path, path)) {
            const char *text = expr_text(ev, path);
            Diag *d = err(ev, "E0108", at, "given twice", "`%s` is given twice", text);
            diag_label(ev->ctx, d, m->f->overrides.v[i].span, "first given here");
            return;
        }
    LineCol place = source_position(ev->ctx, at.file, at.lo);
    Override o = {.path = path, .expr = it->kid[1], .span = at, .of_variant = true};
    const char *file = source_path(ev->ctx, at.file);
    o.origin = name_printf(ev->ctx, "%s:%u:%u", file, place.line, place.column);
    vec_push(ev->arena, &m->f->overrides, o);
}

static void misplaced(Merge *m, const Ast *it)
{
    Eval *ev = m->ev;
    bool let = it->kind == AST_LET;
    Span at = let ? (Span){it->span.file, it->span.lo, it->name_span.hi} : it->span;
    Diag *d = err(ev, "E0110", at, "", "the braces of `variant` hold what it changes, `PATH = EXPR`");
    if (let)
        diag_help(ev->ctx, d, "write `%s = %s`; a let that the base does not have stands behind the braces", it->name,
                  expr_text(ev, it->kid[1]));
    else
        diag_help(ev->ctx, d, "what the base does not have stands behind the braces");
}

/* Nodes of which a file may have several are no beginnings of paths: they are replaced whole. */
static bool stands_outside(const Ast *node) { return is_one_of_several(node) || is_node(node, "variant"); }

static void settings(Merge *m, const Ast *outer, const Ast *items)
{
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i];
        if (it->kind == AST_SET)
            setting(m, outer, it);
        else if (it->kind == AST_NODE && it->kid[2] && !stands_outside(it))
            settings(m, path_of_node(m->ev, outer, it), it->kid[2]);
        else if (it->kind != AST_OFF)
            misplaced(m, it);
    }
}

/* ---- train ---- */

/* Which of the items is this node; n: none. */
static uint32_t place_of(const Ast *items, const Ast *node)
{
    uint32_t i = 0;
    Name label = node->kid[1] ? node->kid[1]->name : NULL;
    bool one = is_node(node, "optimizer"); /* whatever its kind */
    for (; i < items->n; i++) {
        const Ast *it = items->kid[i];
        Name its = it->kind == AST_NODE && it->kid[1] ? it->kid[1]->name : NULL;
        if (is_node(it, node->kid[0]->name) && (one || its == label))
            break;
    }
    return i;
}

/* The items of a node of `train` with those that a variant has for it. */
static Ast *merged(Merge *m, const Ast *base, const Ast *path, const Ast *items)
{
    Eval *ev = m->ev;
    Ast *out = copy(ev, base, base->n);
    for (uint32_t i = 0; i < items->n; i++) {
        const Ast *it = items->kid[i];
        Ast *less = is_none(it) ? without(m, out, it->kid[0], 0, it->kid[0]->name) : NULL;
        if (less) {
            out = less;
            forget_settings(m, joined(ev, path, it->kid[0]));
            continue;
        }
        if (it->kind != AST_NODE || it->kid[0]->n || !it->kid[2]) {
            settings(m, path, &(Ast){.n = 1, .kid = (Ast *[]){(Ast *)it}});
            continue;
        }
        uint32_t at = place_of(out, it);
        const Ast *had = at < out->n ? out->kid[at] : NULL;
        bool other =
            had && is_node(it, "optimizer") && (!it->kid[1] || !had->kid[1] || it->kid[1]->name != had->kid[1]->name);
        if (!had)
            out = copy(ev, out, out->n + 1);
        if (other)
            leaves(m, (Ast *)had, NULL);
        if (!had || other || !had->kid[2]) {
            out->kid[at] = (Ast *)it;
        } else {
            out->kid[at] = copy(ev, had, 3);
            out->kid[at]->kid[2] = merged(m, had->kid[2], path_of_node(ev, path, it), it->kid[2]);
        }
    }
    return out;
}

/* ---- braces ---- */

static void braces(Merge *m, const Ast *items)
{
    Eval *ev = m->ev;
    m->from = m->f->overrides.n;
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i];
        bool model = is_node(it, "model"), train = is_node(it, "train") && it->kid[2];
        Ast **base = model ? item(m, "model") : train ? item(m, "train") : NULL;
        if (model && base && it->kid[1]) { /* another name */
            *base = copy(ev, *base, 3);
            (*base)->kid[1] = it->kid[1];
        }
        if (train && !base) {
            vec_push(ev->arena, &m->items, (Ast *)it);
        } else if (train) {
            Ast *node = copy(ev, *base, 3);
            const Ast *had = node->kid[2] ? node->kid[2] : &(Ast){.kind = AST_ITEMS};
            node->kid[2] = merged(m, had, path_of_node(ev, NULL, it), it->kid[2]);
            *base = node;
        } else if (is_one_of_several(it) && it->kid[2]) {
            replace_node(m, (Ast *)it);
        } else if (!(model && base && !it->kid[2])) {
            settings(m, NULL, &(Ast){.n = 1, .kid = (Ast *[]){(Ast *)it}});
        }
    }
}

/* ---- bases ---- */

/* The item that makes a file a variant; NULL: it is none. */
static const Ast *variant_node(Eval *ev, const Ast *items)
{
    const Ast *found = NULL;
    for (uint32_t i = 0; i < items->n; i++) {
        const Ast *it = items->kid[i];
        if (!is_node(it, "variant"))
            continue;
        if (found) {
            Diag *d = err(ev, "E0112", it->kid[0]->span, "", "a second `variant` in one file");
            diag_label(ev->ctx, d, found->kid[0]->span, "the first one");
            diag_help(ev->ctx, d, "a base may be a variant: let one be a variant of the other");
            continue;
        }
        found = it;
        size_t n;
        const Ast *label = it->kid[1];
        if (label && source_text(ev->ctx, label->span.file, &n)[label->span.lo] == '"')
            continue;
        Diag *d =
            label ? err(ev, "E0206", label->span, "", "`variant` takes the name of a file between quotes")
                  : err(ev, "E0104", it->kid[0]->span, "of which file?", "`variant` needs the file that it changes");
        diag_help(ev->ctx, d, "write `variant \"%s.vwn\" { ... }`", label ? label->name : "base");
    }
    return found;
}

static bool circle(Eval *ev, const Chain *way, const char *path, Span at)
{
    Buf b = buf_new(ev->arena);
    for (const Chain *c = way; c; c = c->up) {
        const char *rest = b.n ? arena_copy(ev->arena, b.s, b.n) : "";
        b = buf_new(ev->arena);
        buf_printf(&b, "%s -> %s", c->path, rest);
        if (strcmp(c->path, path))
            continue;
        Diag *d = err(ev, "E0103", at, "", "%s is a variant of itself", path);
        diag_note(ev->ctx, d, "%s%s", b.s, path);
        diag_help(ev->ctx, d, "one of them has to be no variant: `vwn resolve` writes one out whole");
        return true;
    }
    return false;
}

/* The items of the file with this tree, its base's first; its `Base`, NULL where a message was
 * filed. */
static Base *add_items(Merge *m, Ast *ast, const Chain *way)
{
    enum { MOST = 64 };
    Eval *ev = m->ev;
    size_t errors = diag_errors(ev->ctx);
    const Ast *node = variant_node(ev, ast);
    Base *b = NEW(ev->arena, Base);
    *b = (Base){.ast = ast, .node = node};
    if (diag_errors(ev->ctx) > errors)
        return NULL;
    if (node) {
        Span at = node->kid[1]->span;
        const char *path = import_path(ev->arena, folder_of(ev, way->path), node->kid[1]->name);
        if (circle(ev, way, path, at))
            return NULL;
        if (way->n == MOST)
            limit(ev, at, "variants of variants", MOST);
        Ast *base = file_parse(ev, path, "", NULL, 0, at);
        const Chain longer = {.up = way, .path = path, .n = way->n + 1};
        b->next = base && diag_errors(ev->ctx) == errors ? add_items(m, base, &longer) : NULL;
        if (!b->next)
            return NULL;
        m->base = path;
        braces(m, node->kid[2]);
    }
    for (uint32_t i = 0; i < ast->n; i++) {
        bool claim = way->up && ast->kid[i]->kind == AST_CHECK; /* of the base's own counts */
        if (claim)
            leaves(m, ast->kid[i], NULL);
        else if (ast->kid[i] != node)
            vec_push(ev->arena, &m->items, ast->kid[i]);
    }
    return diag_errors(ev->ctx) == errors ? b : NULL;
}

/* The file has the items, and its base what was taken away. */
static void end_merge(const Merge *m, Base *b)
{
    b->gone = m->gone.v;
    b->instead = m->instead.v;
    b->n_gone = m->gone.n;
    m->f->base = b;
    m->f->ast = copy(m->ev, m->f->ast, 0);
    m->f->ast->kid = m->items.v;
    m->f->ast->n = (uint32_t)m->items.n;
}

bool variant_merge(Eval *ev, File *f)
{
    bool variant = false;
    for (uint32_t i = 0; i < f->ast->n; i++)
        variant |= is_node(f->ast->kid[i], "variant");
    if (!variant)
        return true;
    Merge m = {.ev = ev, .f = f};
    Base *b = add_items(&m, f->ast, &(Chain){.path = f->path});
    if (!b)
        return false;
    end_merge(&m, b);
    return true;
}

void variant_take_away(Eval *ev, File *f)
{
    Base *b = NEW(ev->arena, Base);
    Merge m = {.ev = ev, .f = f, .base = f->path};
    *b = f->base ? *f->base : (Base){.ast = f->ast};
    for (uint32_t i = 0; i < f->ast->n; i++)
        vec_push(ev->arena, &m.items, f->ast->kid[i]);
    for (size_t i = 0; i < b->n_gone; i++)
        leaves(&m, b->gone[i], b->instead[i]);
    size_t left = 0;
    for (size_t i = 0; i < f->overrides.n; i++) {
        const Override *o = &f->overrides.v[i];
        const Ast set = {.kind = AST_SET, .kid = (Ast *[]){(Ast *)o->path, (Ast *)o->expr}};
        bool none = o->expr && !o->of_variant && !o->of_step && is_none(&set);
        m.from = left;
        if (!none || !taken_away(&m, o->path, o->span))
            f->overrides.v[left++] = *o;
    }
    f->overrides.n = left;
    if (m.gone.n == b->n_gone)
        return;
    end_merge(&m, b);
}
