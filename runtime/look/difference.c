/* difference.c - `vwn diff`: two files, two runs or two checkpoints.
 *
 * In:  checked files, or what lies in run directories.   Out: what is there on one side alone, or is not the same.
 * The one idea: a file is a set of names with values: lets, attributes by the path of their node, weights by theirs, counts. So
 * the order and the form of a text do not count.
 */
#include "difference.h"

#include <math.h>
#include <stdio.h>

#include "compiler/file/check_unit.h"
#include "compiler/file/curve.h"
#include "compiler/report/report.h"
#include "compiler/report/resolve.h"
#include "runtime/checkpoint/history.h"
#include "runtime/checkpoint/run_dir.h"
#include "runtime/checkpoint/source.h"
#include "look.h"

void difference_put(Difference *d, const char *kind, const char *name, const char *a, const char *b)
{
    if (!a || !b || strcmp(a, b))
        vec_push(d->session->arena, &d->found, ((Finding){.kind = kind, .name = name, .a = a, .b = b}));
}

void difference_put_numbers(Difference *d, const char *name, const char *shape, double apart, double relative,
                            double cosine)
{
    Finding f = {.kind = "tensor",
                 .name = name,
                 .a = shape,
                 .b = shape,
                 .numbers = true,
                 .apart = apart,
                 .relative = relative,
                 .cosine = cosine};
    vec_push(d->session->arena, &d->found, f);
}

void difference_same(Difference *d, const char *kind, int64_t n)
{
    vec_push(d->session->arena, &d->same, ((Finding){.kind = kind, .apart = (double)n}));
}

/* ---- names and their values ---- */

typedef struct Named {
    const char *kind;
    Name name;
    const char *path; /* as it is shown and as --set takes it: without the branches on its way */
    const char *value;
    const Ast *expr; /* NULL: the value alone is compared */
} Named;
typedef struct Names {
    Arena *a;
    Ctx *ctx;
    VEC(Named) v;
    Map by_name; /* kind and name as one Name -> place + 1 */
} Names;

static Name key_of(const Names *n, const char *kind, const char *name)
{
    return name_printf(n->ctx, "%s %s", kind, name);
}

/* Without `if#1.` and `else.`: a setting leads into both branches. */
static const char *without_branches(Names *n, const char *name)
{
    Buf b = buf_new(n->a);
    for (const char *at = name; *at;) {
        size_t part = strcspn(at, "."), whole = part + (at[part] == '.');
        if (strncmp(at, "if#", 3) != 0 && strncmp(at, "else.", 5) != 0)
            buf_put(&b, at, whole);
        at += whole;
    }
    return b.n ? b.s : name;
}

static void add_expr(Names *n, const char *kind, const char *name, const char *value, const Ast *expr)
{
    void **slot = map_at(&n->by_name, (uintptr_t)key_of(n, kind, name));
    if (*slot)
        return;
    bool branch = expr && strstr(name, "if#");
    vec_push(n->a, &n->v,
             ((Named){kind, name_str(n->ctx, name), branch ? without_branches(n, name) : name, value, expr}));
    *slot = (void *)(uintptr_t)n->v.n;
}

static void add(Names *n, const char *kind, const char *name, const char *value)
{
    add_expr(n, kind, name, value, NULL);
}

static const Named *same_named(const Names *n, const Named *of)
{
    size_t at = (size_t)(uintptr_t)map_get(&n->by_name, (uintptr_t)key_of(n, of->kind, of->name));
    return at ? &n->v.v[at - 1] : NULL;
}

static Names names_new(Session *s)
{
    Names n = {.a = s->arena, .ctx = s->ctx};
    map_init(&n.by_name, s->arena);
    return n;
}

static const char *expr(Arena *a, const Ast *e)
{
    Buf b = buf_new(a);
    if (e)
        ast_print_expr(&b, e);
    return e ? b.s : NULL;
}

static const Ast *argument(const Ast *args, Name name)
{
    for (uint32_t i = 0; i < args->n; i++)
        if (args->kid[i]->kind == AST_NAMED && args->kid[i]->name == name)
            return args->kid[i]->kid[0];
    return NULL;
}

/* Whether all that two calls have without a name is the same. */
static bool same_unnamed(Arena *a, const Ast *x, const Ast *y)
{
    uint32_t i = 0, k = 0;
    for (;; i++, k++) {
        while (i < x->n && (x->kid[i]->kind == AST_NAMED || x->kid[i]->kind == AST_OFF))
            i++;
        while (k < y->n && (y->kid[k]->kind == AST_NAMED || y->kid[k]->kind == AST_OFF))
            k++;
        if (i == x->n || k == y->n)
            return i == x->n && k == y->n;
        if (strcmp(expr(a, x->kid[i]), expr(a, y->kid[k])) != 0)
            return false;
    }
}

static void compare_exprs(Difference *d, const char *kind, const char *path, const Ast *x, const Ast *y);

/* Arguments that two calls of one name have differently, and entries of two lists; false: they are no such pair. */
static bool compare_inside(Difference *d, const char *kind, const char *path, const Ast *x, const Ast *y)
{
    Arena *a = d->session->arena;
    bool lists = x->kind == AST_LIST && y->kind == AST_LIST && x->n == y->n;
    bool calls = x->kind == AST_CALL && y->kind == AST_CALL && !strcmp(expr(a, x->kid[0]), expr(a, y->kid[0]));
    for (uint32_t i = 0; lists && i < x->n; i++)
        compare_exprs(d, kind, arena_printf(a, "%s[%u]", path, i + 1), x->kid[i], y->kid[i]);
    if (!calls || !same_unnamed(a, x->kid[1], y->kid[1]))
        return lists;
    for (uint32_t i = 0; i < x->kid[1]->n; i++) {
        const Ast *arg = x->kid[1]->kid[i];
        if (arg->kind == AST_NAMED)
            compare_exprs(d, kind, arena_printf(a, "%s.%s", path, arg->name), arg->kid[0],
                          argument(y->kid[1], arg->name));
    }
    for (uint32_t i = 0; i < y->kid[1]->n; i++) {
        const Ast *arg = y->kid[1]->kid[i];
        if (arg->kind == AST_NAMED && !argument(x->kid[1], arg->name))
            compare_exprs(d, kind, arena_printf(a, "%s.%s", path, arg->name), NULL, arg->kid[0]);
    }
    return true;
}

static void compare_exprs(Difference *d, const char *kind, const char *path, const Ast *x, const Ast *y)
{
    Arena *a = d->session->arena;
    if (!x || !y || !compare_inside(d, kind, path, x, y))
        difference_put(d, kind, path, expr(a, x), expr(a, y));
}

static void compare_names(Difference *d, const Names *a, const Names *b)
{
    for (size_t i = 0; i < a->v.n; i++) {
        const Named *x = &a->v.v[i], *y = same_named(b, x);
        if (!y || !x->expr || !y->expr || !compare_inside(d, x->kind, x->path, x->expr, y->expr))
            difference_put(d, x->kind, x->path, x->value, y ? y->value : NULL);
    }
    for (size_t i = 0; i < b->v.n; i++)
        if (!same_named(a, &b->v.v[i]))
            difference_put(d, b->v.v[i].kind, b->v.v[i].path, NULL, b->v.v[i].value);
}

/* ---- files ---- */

static const char *joined(Names *n, const char *path, const char *name)
{
    return arena_printf(n->a, "%s%s%s", path, *path ? "." : "", name);
}

static const char *path_text(Names *n, const Ast *path)
{
    Buf b = buf_new(n->a);
    buf_puts(&b, path->name);
    for (uint32_t i = 0; i < path->n; i++)
        if (path->kid[i]->kind == AST_DOT)
            buf_printf(&b, ".%s", path->kid[i]->name);
        else
            buf_printf(&b, "[%s]", path->kid[i]->kid[0]->kind == AST_STAR ? "*" : expr(n->a, path->kid[i]->kid[0]));
    return b.s;
}

/* A let of the file counts by its value, so `8 * 2` is `16`; a block or a schedule as it is written with its defaults. */
static void add_let(Names *n, const Unit *u, const Ast *let)
{
    const char *value = NULL;
    for (size_t i = 0; i < u->let.n && !value; i++)
        value = u->let.v[i].name == let->name ? u->let.v[i].text : NULL;
    bool plain = value && !strchr(value, '(');
    add_expr(n, "let", let->name, plain ? value : expr(n->a, let->kid[1]), plain ? NULL : let->kid[1]);
}

static void add_items(Names *n, const Unit *u, const char *path, const Ast *items)
{
    int branches = 0;
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i];
        size_t length;
        const char *text, *below;
        bool named;
        switch (it->kind) {
        case AST_LET:
            if (*path)
                add(n, "let", joined(n, path, it->name), expr(n->a, it->kid[1]));
            else
                add_let(n, u, it);
            break;
        case AST_SET:
            add_expr(n, "attribute", joined(n, path, path_text(n, it->kid[0])), expr(n->a, it->kid[1]), it->kid[1]);
            break;
        case AST_NODE:
            below = joined(n, path, path_text(n, it->kid[0]));
            named = !strcmp(it->kid[0]->name, "model") ||
                    !strcmp(it->kid[0]->name, "optimizer"); /* paths go without the name */
            if (it->kid[1] && !named)
                below = arena_printf(n->a, strpbrk(it->kid[1]->name, ".*[") ? "%s[\"%s\"]" : "%s.%s", below,
                                     it->kid[1]->name);
            add(n, "node", below, it->kid[1] && named ? it->kid[1]->name : "{ }");
            add_items(n, u, below, it->kid[2]);
            break;
        case AST_FOR:
            below = joined(n, path, arena_printf(n->a, "%s[*]", it->name));
            add(n, "loop", below, expr(n->a, it->kid[0]));
            add_items(n, u, below, it->kid[1]);
            break;
        case AST_IF:
            below = joined(n, path, arena_printf(n->a, "if#%d", ++branches));
            add(n, "condition", below, expr(n->a, it->kid[0]));
            add_items(n, u, below, it->kid[1]);
            if (it->kid[2])
                add_items(n, u, joined(n, below, "else"), it->kid[2]->kind == AST_IF ? it->kid[2]->kid[1] : it->kid[2]);
            break;
        case AST_CHECK: add(n, "check", joined(n, path, expr(n->a, it->kid[0])), ""); break;
        case AST_IMPORT: add(n, "import", it->name, ""); break;
        case AST_BLOCK:
        case AST_ENTRY:
            text = source_text(n->ctx, it->span.file, &length);
            add(n, it->kind == AST_BLOCK ? "block" : "name", joined(n, path, it->name),
                arena_copy(n->a, text + it->span.lo, it->span.hi - it->span.lo));
            break;
        default: break;
        }
    }
}

static void add_count(Names *n, const char *name, double x)
{
    Buf b = buf_new(n->a);
    if (x == floor(x) && fabs(x) < 9e15)
        buf_count(&b, (int64_t)x);
    else
        buf_number(&b, x);
    add(n, "count", name, b.s);
}

/* Of its resolved text. */
static Names names_of_text(Session *s, const Unit *u, const char *text)
{
    Names n = names_new(s);
    size_t before = diag_count(s->ctx);
    const Ast *ast = vwn_parse(s->ctx, source_add(s->ctx, "resolved text", text, strlen(text)));
    diag_truncate(s->ctx, before);
    add_items(&n, u, "", ast);
    return n;
}

static Names names_of_file(Session *s, Unit *u)
{
    Names n = names_of_text(s, u, unit_resolved_file(u, s->arena));
    if (!u->model)
        return n;
    ModelCount c = model_count(u->model);
    add_count(&n, "weights stored", (double)c.stored);
    add_count(&n, "weights that can learn", (double)c.live);
    add_count(&n, "weights active for a token", (double)c.active);
    add_count(&n, "forward FLOPs of a token", model_flops_per_token(u->model));
    add_count(&n, "coordinates of the state", (double)u->model->state_width);
    return n;
}

/* Weights of layers that differ alike are one finding. */
static void compare_weights(Difference *d, const Model *a, const Model *b)
{
    Session *s = d->session;
    typedef struct Change {
        Name path;
        const char *from, *to;
        size_t times;
        Name first;
    } Change;
    VEC(Change) change = {0};
    Map paths, seen;
    map_init(&paths, s->arena);
    map_init(&seen, s->arena);
    for (size_t i = 0; i < b->param.n; i++)
        *map_at(&paths, (uintptr_t)b->param.v[i].path) = &b->param.v[i];
    for (size_t i = 0; i < a->param.n + b->param.n; i++) {
        const Param *p = i < a->param.n ? &a->param.v[i] : &b->param.v[i - a->param.n],
                    *q = map_get(&paths, (uintptr_t)p->path);
        Buf from = buf_new(s->arena), to = buf_new(s->arena);
        if (i < a->param.n)
            *map_at(&paths, (uintptr_t)p->path) = NULL; /* what is left is in b alone */
        else if (!q)
            continue;
        if (i < a->param.n)
            shape_print(&from, &p->shape);
        if (q)
            shape_print(&to, &q->shape);
        if (!strcmp(from.s, to.s))
            continue;
        Name path = path_starred(s->ctx, p->path);
        void **slot = map_at(&seen, (uintptr_t)name_printf(s->ctx, "%s %s %s", path, from.s, to.s));
        if (!*slot) {
            vec_push(s->arena, &change, ((Change){path, *from.s ? from.s : NULL, *to.s ? to.s : NULL, 0, p->path}));
            *slot = (void *)(uintptr_t)change.n;
        }
        change.v[(size_t)(uintptr_t)*slot - 1].times++;
    }
    for (size_t i = 0; i < change.n; i++) {
        const Change *c = &change.v[i];
        difference_put(d, "weight", c->times > 1 ? arena_printf(s->arena, "%s x %zu", c->path, c->times) : c->first,
                       c->from, c->to);
    }
}

static void compare_files(Difference *d, Unit *a, Unit *b)
{
    Names x = names_of_file(d->session, a), y = names_of_file(d->session, b);
    compare_names(d, &x, &y);
    if (a->model && b->model)
        compare_weights(d, a->model, b->model);
}

/* At most so many characters of a line, from a bit before `at`. */
static const char *part_of(Arena *a, const char *text, size_t at)
{
    enum { MOST = 60, BEFORE = 20 };
    size_t n = strlen(text), from = n > MOST && at > BEFORE ? at - BEFORE : 0;
    from = n > MOST && from > n - MOST ? n - MOST : from;
    size_t length = n - from > MOST ? MOST : n - from;
    while (from && ((unsigned char)text[from] & 0xc0) == 0x80)
        from++, length--; /* not within a character */
    char *part =
        arena_printf(a, "%s%.*s%s", from ? "... " : "", (int)length, text + from, from + length < n ? " ..." : "");
    for (char *s = part; *s; s++)
        *s = *s == '\n' ? ' ' : *s;
    return part;
}

const char *difference_changes(Session *s, const FileText *then, const FileText *now)
{
    enum { MOST = 3 };
    Difference d = {.session = s};
    Names a = names_of_text(s, then->unit, then->text), b = names_of_text(s, now->unit, now->text);
    compare_names(&d, &a, &b);
    Buf said = buf_new(s->arena);
    for (size_t i = 0; i < d.found.n && i < MOST; i++) {
        const Finding *f = &d.found.v[i];
        size_t at = 0;
        while (f->a && f->b && f->a[at] && f->a[at] == f->b[at])
            at++;
        buf_printf(&said, "%s%s", i ? ", " : "", part_of(s->arena, f->name, 0));
        if (f->a && f->b)
            buf_printf(&said, " %s -> %s", part_of(s->arena, f->a, at), part_of(s->arena, f->b, at));
        else
            buf_puts(&said, f->a ? " is gone" : " is new");
    }
    if (d.found.n > MOST)
        buf_printf(&said, " and %zu more", d.found.n - MOST);
    return said.s;
}

/* ---- runs ---- */

static Names names_of_run(Session *s, const char *run)
{
    Names n = names_new(s);
    Settings set = run_settings(s->ctx, s->arena, run);
    for (size_t i = 0; i < set.n; i++) {
        size_t length = strcspn(set.v[i], "=");
        add(&n, "setting", arena_copy(s->arena, set.v[i], length), set.v[i] + length + (set.v[i][length] == '='));
    }
    static const char *const metric[] = {"loss", "eval_loss"};
    for (size_t i = 0; i < COUNT_OF(metric); i++) {
        History h = history_read(s, run, metric[i]);
        Buf b = buf_new(s->arena);
        if (!i) {
            events_warn(s, run, &h.events);
            add(&n, "result", "steps", arena_printf(s->arena, "%.0f", h.end.x[BY_STEP]));
            add(&n, "result", "tokens", arena_printf(s->arena, "%.0f", h.end.x[BY_TOKENS]));
        }
        if (!h.point.n)
            continue;
        buf_number(&b, h.point.v[h.point.n - 1].value);
        add(&n, "result", arena_printf(s->arena, "last %s", metric[i]), b.s);
    }
    return n;
}

/* The file as the run has it; NULL: it is not there, or this version cannot read it. */
static Unit *file_of_run(Session *s, const char *run, const Hooks *hooks)
{
    CheckOptions how = {.path = arena_printf(s->arena, "%s/" RESOLVED_FILE, run)};
    size_t before = diag_count(s->ctx);
    Unit *u = hooks->check(s->ctx, &how);
    bool fine = diag_only_checks(s->ctx, before) && u->ast;
    diag_truncate(s->ctx, before);
    return fine ? u : NULL;
}

/* What a file of a run that is not compared by its names is, in a few words. */
static const char *words_of(Session *s, const Unit *u, const char *text, size_t n)
{
    return !text ? "is missing" : arena_printf(s->arena, "%zu bytes%s", n, u ? "" : ", no file of this version");
}

/* By their bytes: where a file cannot be read, another text is a difference that cannot be told in names. */
static void compare_texts(Difference *d, const Unit *a, const Unit *b)
{
    Session *s = d->session;
    size_t n, m;
    const char *x = run_read_file(s->arena, arena_printf(s->arena, "%s/" RESOLVED_FILE, d->a), &n);
    const char *y = run_read_file(s->arena, arena_printf(s->arena, "%s/" RESOLVED_FILE, d->b), &m);
    bool same = x && y && n == m && !memcmp(x, y, n);
    session_warn(s, arena_printf(s->arena,
                                 "%.200s/" RESOLVED_FILE
                                 " cannot be read as a file of this version: the files of the runs "
                                 "are compared byte by byte",
                                 a ? d->b : d->a));
    if (!same)
        vec_push(
            s->arena, &d->found,
            ((Finding){.kind = "file", .name = RESOLVED_FILE, .a = words_of(s, a, x, n), .b = words_of(s, b, y, m)}));
}

static void compare_runs_of(Difference *d, const Hooks *hooks)
{
    Session *s = d->session;
    Names x = names_of_run(s, d->a), y = names_of_run(s, d->b);
    compare_names(d, &x, &y);
    Unit *a = file_of_run(s, d->a, hooks), *b = file_of_run(s, d->b, hooks);
    if (a && b)
        compare_files(d, a, b);
    else
        compare_texts(d, a, b);
}

/* ---- what is printed ---- */

static void print_text(const Difference *d, Buf *b)
{
    Arena *a = d->session->arena;
    Table t = {.arena = a, .columns = 4}, numbers = {.arena = a, .columns = 5};
    static const char *const head[] = {"tensor", "shape", "max |a - b|", "|a - b| / |a|", "cosine"};
    for (size_t i = 0; i < COUNT_OF(head); i++)
        i < 2 ? table_text(&numbers, head[i]) : table_right(&numbers, head[i]);
    size_t heads = numbers.cell.n;
    for (size_t i = 0; i < d->found.n; i++) {
        const Finding *f = &d->found.v[i];
        if (f->numbers) {
            table_text(&numbers, f->name);
            table_text(&numbers, f->a);
            table_right(&numbers, arena_printf(a, "%.4g", f->apart));
            table_right(&numbers, isnan(f->relative) ? "-" : arena_printf(a, "%.4g", f->relative));
            table_right(&numbers, isnan(f->cosine) ? "-" : arena_printf(a, "%.6f", f->cosine));
            continue;
        }
        size_t at = 0; /* where they begin to differ */
        while (f->a && f->b && f->a[at] && f->a[at] == f->b[at])
            at++;
        const char *from = f->a ? part_of(a, f->a, at) : "", *to = f->b ? part_of(a, f->b, at) : "";
        table_text(&t, f->a && f->b ? "~" : f->a ? "-" : "+");
        table_text(&t, f->kind);
        table_text(&t, part_of(a, f->name, 0));
        table_text(&t, f->a && f->b ? arena_printf(a, "%s -> %s", from, to) : f->a ? from : to);
    }
    if (t.cell.n)
        table_print(b, &t);
    if (numbers.cell.n > heads)
        table_print(b, &numbers);
    for (size_t i = 0; i < d->same.n; i++)
        buf_printf(b, "  = %.0f %ss are equal\n", d->same.v[i].apart, d->same.v[i].kind);
    if (!d->found.n)
        buf_puts(b, "  no difference\n");
}

static void json_text(Buf *b, const char *key, const char *text)
{
    buf_printf(b, ",\"%s\":", key);
    if (text)
        buf_json_string(b, text, strlen(text));
    else
        buf_puts(b, "null");
}

static void print_json(const Difference *d, Buf *b)
{
    buf_puts(b, "{\"v\":1,\"event\":\"diff\"");
    json_text(b, "a", d->a);
    json_text(b, "b", d->b);
    buf_printf(b, ",\"same\":%s", d->found.n ? "false" : "true");
    for (size_t i = 0; i < d->same.n; i++)
        buf_printf(b, ",\"equal_%ss\":%.0f", d->same.v[i].kind, d->same.v[i].apart);
    buf_puts(b, ",\"differences\":[");
    for (size_t i = 0; i < d->found.n; i++) {
        const Finding *f = &d->found.v[i];
        buf_printf(b, "%s{\"kind\":\"%s\"", i ? "," : "", f->kind);
        json_text(b, "name", f->name);
        json_text(b, "a", f->a);
        json_text(b, "b", f->b);
        if (f->numbers) {
            buf_puts(b, ",\"max\":");
            buf_json_number(b, f->apart);
            buf_puts(b, ",\"relative\":");
            buf_json_number(b, f->relative);
            buf_puts(b, ",\"cosine\":");
            buf_json_number(b, f->cosine);
        }
        buf_putc(b, '}');
    }
    buf_puts(b, "]}\n");
}

typedef struct DiffCall {
    Session session;
    Unit *a, *b; /* NULL: runs or checkpoints */
    const vwn_diff_options *how;
    const vwn_writer *out;
    const Hooks *hooks;
} DiffCall;

static Status diff_body(void *user)
{
    DiffCall *c = user;
    Session *s = &c->session;
    const vwn_diff_options *how = c->how;
    session_open(s, s->owner);
    Difference d = {.session = s, .a = how->a, .b = how->b};
    if (c->a)
        compare_files(&d, c->a, c->b);
    else if (!how->checkpoints && !how->tensors && source_is_folder(how->a) && source_is_folder(how->b))
        compare_runs_of(&d, c->hooks);
    else
        difference_of_tensors(&d, how->a, how->b, how->tensors, how->states);
    Buf b = buf_new(s->arena);
    if (how->json)
        print_json(&d, &b);
    else
        print_text(&d, &b);
    write_text(c->out, b.s, b.n);
    return d.found.n ? ST_CHANGES : ST_OK;
}

Status difference_of(vwn_context *owner, Unit *a, Unit *b, const vwn_diff_options *how, const vwn_writer *out,
                     const Hooks *hooks)
{
    DiffCall c = {.session.owner = owner, .a = a, .b = b, .how = how, .out = out, .hooks = hooks};
    Status st = guarded(owner->ctx, diff_body, &c);
    return session_end(&c.session, st);
}
