/* check_alias.c - `names` tables: what the weights of the model are called elsewhere.
 *
 * In:  the tables of a file and its model.   Out: Model.alias.
 * The one idea: an entry is a pattern over the paths of the model; what a `[*]` stands for is bound to
 * the loop variable before it, so the other name may be made of it. A tensor that holds several weights is a `concat` of patterns.
 */
#include "check.h"

#include <ctype.h>
#include <stdlib.h>

/* "layer[*].ffn.up.W"; false when the expression is no path. */
static bool put_path(Buf *out, const Ast *e)
{
    if (e->kind == AST_ID) {
        buf_puts(out, e->name);
        return true;
    }
    if (e->kind != AST_FIELD && e->kind != AST_INDEX)
        return false;
    if (!put_path(out, e->kid[0]))
        return false;
    if (e->kind == AST_FIELD) {
        buf_printf(out, ".%s", e->name);
        return true;
    }
    const Ast *index = e->kid[1];
    if (index->n != 1)
        return false;
    buf_putc(out, '[');
    if (index->kid[0]->kind == AST_STAR)
        buf_putc(out, '*');
    else
        ast_print_expr(out, index->kid[0]);
    buf_putc(out, ']');
    return true;
}

/* "3" is a number, "\"a\"" and "a" are text. */
static Value index_value(Eval *ev, const char *text, size_t n)
{
    if (isdigit((unsigned char)*text) || *text == '-')
        return v_num(strtod(text, NULL));
    bool quoted = n >= 2 && *text == '"';
    return (Value){.kind = V_STR, .word = name_of(ev->ctx, text + quoted, n - 2 * (size_t)quoted)};
}

/* Whether the path fits the pattern; *env gets the loop variables before each `[*]`. */
static bool fits(Eval *ev, const char *pattern, const char *path, Env **env)
{
    const char *part = path;
    for (; *pattern && *path; pattern++, path++) {
        if (*path == '.')
            part = path + 1;
        if (*pattern != *path)
            return false;
        if (*path != '[' || pattern[1] != '*')
            continue;
        const char *end = strchr(path, ']');
        if (!end)
            return false;
        Value v = index_value(ev, path + 1, (size_t)(end - path) - 1);
        *env = env_bind(ev, *env, name_of(ev->ctx, part, (size_t)(path - part)), v, NO_SPAN);
        pattern += 2;
        path = end;
    }
    return !*pattern && !*path;
}

typedef struct Tables {
    Eval *ev;
    File *file;
    Model *model;
    Map paths;      /* of parameters: index + 1 */
    Map others;     /* names of tables: index + 1 of the last alias */
    Map joined;     /* of these that are a `concat`: how many parts they have so far */
    Map named;      /* of the table at hand: param + 1, and what one_of() makes of it and an index -> alias index + 1 */
    uint32_t table; /* which it is, from 0 */
    size_t first;   /* its first alias */
    const Ast *layout;     /* of it: what it says of how matrices lie there; NULL: nothing */
    bool out_in;           /* it is `out_in` */
    const uint8_t *summed; /* of parameters: the axes that products sum over */
} Tables;

/* Of matrices, the last two axes of a weight, that a product reads along one axis: 0 or 1, the axis. Else -1. */
static int summed_axis(const Tables *t, size_t param)
{
    int rank = t->model->param.v[param].shape.rank, axes = rank < 2 ? 0 : t->summed[param] >> (rank - 2) & 3;
    return axes == 1 ? 0 : axes == 2 ? 1 : -1;
}

static void collides(Tables *t, const Ast *it, Name other, const char *with, Span first)
{
    Diag *d = err(t->ev, "E0107", it->name_span, "", "`%s` would be two weights", other);
    diag_note(t->ev->ctx, d, "it is the name of `%s` too", with);
    if (first.file)
        diag_label(t->ev->ctx, d, first, "here");
    diag_help(t->ev->ctx, d,
              "a name that stands for many weights is made of what `[*]` is: `\"stage[{layer}].W\" = layer[*].W`");
}

/* Whether the table's `layout` swaps the axes of a weight; false in *good after a message. */
static bool layout_swaps(Tables *t, const Ast *it, size_t param, bool *good)
{
    const Param *p = &t->model->param.v[param];
    int rank = p->shape.rank;
    uint8_t axes = rank < 2 ? 0 : t->summed[param] & 3 << (rank - 2);
    if (!axes)
        return false;
    if (axes == 3 << (rank - 2)) {
        Diag *d = err(t->ev, "E0324", it->kid[0]->span, "", "products read `%s` along both axes", p->path);
        diag_label(t->ev->ctx, d, t->layout->span, "does not say how it lies there");
        diag_help(t->ev->ctx, d, "put it into a table without `layout`, with `.T` if its axes are swapped there");
        return *good = false;
    }
    return axes == (t->out_in ? 1 : 2) << (rank - 2);
}

/* An entry of a table: `"other" = path`, or `= concat(path, path)`. */
typedef struct NameEntry {
    const Ast *item;
    size_t first;       /* its first alias */
    size_t parts, part; /* how many paths it has, and the one at hand, from 0 */
    bool transposed;    /* `.T` */
    size_t hits;        /* weights that fit the path at hand */
} NameEntry;

static uintptr_t one_of(size_t param, int64_t index) { return ((uintptr_t)param + 1) << 32 | ((uintptr_t)index + 1); }

/* Whether the table has a name for the weight already, or for this index of it; files that. */
static bool is_named(Tables *t, const NameEntry *e, const ModelAlias *a)
{
    const Model *m = t->model;
    const void *one = map_get(&t->named, one_of(a->param, a->entry)), *any = map_get(&t->named, a->param + 1);
    size_t had = (size_t)(uintptr_t)(one ? one : any);
    if (had && (one || a->entry < 0 || m->alias.v[had - 1].entry < 0)) {
        Diag *d =
            err(t->ev, "E0107", e->item->name_span, "", "`%s` has two names in one table", m->param.v[a->param].path);
        diag_label(t->ev->ctx, d, m->alias.v[had - 1].span, "the other one");
        return true;
    }
    *map_at(&t->named, a->param + 1) = *map_at(&t->named, one_of(a->param, a->entry)) =
        (void *)(uintptr_t)(m->alias.n + 1);
    return false;
}

static bool lacks_part(Tables *t, const NameEntry *e, Name other)
{
    err(t->ev, "E0110", e->item->kid[0]->span, "", "`%s` does not have one weight of each path of this `concat`",
        other);
    return false;
}

/* Of a `concat`: the place of `a` behind the weights of the paths before; false after a message. */
static bool join(Tables *t, const NameEntry *e, ModelAlias *a, const ModelAlias *before)
{
    const Model *m = t->model;
    const Param *p = &m->param.v[a->param], *q = before ? &m->param.v[before->param] : p;
    int skip = a->entry >= 0, rank = p->shape.rank - skip;
    bool fits = rank >= 1 && q->shape.rank == p->shape.rank && (!before || before->transposed == a->transposed);
    for (int k = skip; fits && k < p->shape.rank - 1; k++)
        fits = p->shape.d[k].n == q->shape.d[k].n;
    void **parts = map_at(&t->joined, (uintptr_t)a->other);
    if ((size_t)(uintptr_t)*parts != e->part)
        return lacks_part(t, e, a->other);
    *parts = (void *)(uintptr_t)(e->part + 1);
    if (!fits) {
        Diag *d = err(t->ev, "E0301", e->item->kid[0]->span, "", "`%s` and `%s` are not one tensor", q->path, p->path);
        diag_note(t->ev->ctx, d, "what `concat` joins differs in its last axis alone, and lies alike");
        return false;
    }
    a->joined = true;
    a->at = before ? before->of : 0;
    a->of = a->at + p->shape.d[p->shape.rank - 1].n; /* so far; see end_join() */
    return true;
}

/* Gives the parameter its other name; false after a message. */
static bool add_alias(Tables *t, const NameEntry *e, ModelAlias a)
{
    Model *m = t->model;
    size_t path = (size_t)(uintptr_t)map_get(&t->paths, (uintptr_t)a.other);
    size_t had = (size_t)(uintptr_t)map_get(&t->others, (uintptr_t)a.other);
    const ModelAlias *before = had ? &m->alias.v[had - 1] : NULL;
    bool together = had > e->first && e->part; /* a part of the same tensor */
    if (path && (path - 1 != a.param || !alias_is_whole(&a) || e->parts > 1)) {
        collides(t, e->item, a.other, m->param.v[path - 1].path, NO_SPAN);
        return false;
    }
    if (before && !together && (before->param != a.param || before->entry != a.entry || before->joined)) {
        collides(t, e->item, a.other, m->param.v[before->param].path, before->span);
        return false;
    }
    if (is_named(t, e, &a) || (e->parts > 1 && !join(t, e, &a, together ? before : NULL)))
        return false;
    vec_push(t->ev->arena, &m->alias, a);
    *map_at(&t->others, (uintptr_t)a.other) = (void *)(uintptr_t)m->alias.n;
    return true;
}

/* A parameter that fits, or an index of its first axis. */
static bool add_weight(Tables *t, NameEntry *e, ModelAlias a, Env *env)
{
    Eval *ev = t->ev;
    const Ast *it = e->item;
    const Param *p = &t->model->param.v[a.param];
    const int rank = p->shape.rank - (a.entry >= 0);
    size_t errors = diag_errors(ev->ctx);
    bool good = true;
    spend(ev, it->span, 1);
    e->hits++;
    if (a.transposed && rank < 2) {
        err(ev, "E0301", it->kid[0]->span, "", "`.T` swaps the axes of matrices, and `%s` has none", p->path);
        return false;
    }
    if (a.transposed && t->layout && t->summed[a.param]) {
        Diag *d = err(ev, "E0108", it->kid[0]->span, "given twice", "how `%s` lies there is given twice", p->path);
        diag_label(ev->ctx, d, t->layout->span, "first given here, for all matrices of the table");
        diag_help(ev->ctx, d, "leave `.T` out");
        return false;
    }
    a.transposed = a.transposed || (t->layout && rank >= 2 && layout_swaps(t, it, a.param, &good));
    if (!good)
        return false;
    const char *other = interpolate(ev, it->name, env, NULL, it->name_span);
    if (diag_errors(ev->ctx) > errors)
        return false;
    a.other = name_str(ev->ctx, other);
    a.span = it->name_span;
    a.table = t->table;
    return add_alias(t, e, a);
}

/* Every parameter that fits; false after a message. e->hits counts them. */
static bool add_matching(Tables *t, NameEntry *e, const char *pattern, bool transposed)
{
    for (size_t i = 0; i < t->model->param.n; i++) {
        Env *env = t->file->env;
        if (fits(t->ev, pattern, t->model->param.v[i].path, &env) &&
            !add_weight(t, e, (ModelAlias){.param = i, .entry = -1, .transposed = transposed}, env))
            return false;
    }
    return true;
}

/* `layer[*].moe.gate[*]`, `[3]`: indices of a parameter's first axis, from 1; `[*]` is bound to the name before it. */
static bool add_indices(Tables *t, NameEntry *e, const Ast *value, bool transposed)
{
    Eval *ev = t->ev;
    const Ast *index = value->kind == AST_INDEX && value->kid[1]->n == 1 ? value->kid[1]->kid[0] : NULL;
    Buf pattern = buf_new(ev->arena);
    if (!index || !put_path(&pattern, value->kid[0]))
        return true;
    const char *dot = strrchr(pattern.s, '.');
    Name own = name_str(ev->ctx, dot ? dot + 1 : pattern.s);
    for (size_t i = 0; i < t->model->param.n; i++) {
        const Param *p = &t->model->param.v[i];
        Env *env = t->file->env;
        double first = 1, last = p->shape.rank ? (double)p->shape.d[0].n : 0;
        if (!fits(ev, pattern.s, p->path, &env))
            continue;
        if (index->kind != AST_STAR) {
            if (!eval_number(ev, index, t->file->env, NULL, "the index", &first))
                return false;
            if (!is_whole(first) || first < 1 || first > last) {
                err(ev, "E0208", index->span, "", "the first axis of `%s` has the indices 1 to %.0f", p->path, last);
                return false;
            }
            last = first;
        }
        for (double k = first; k <= last; k++)
            if (!add_weight(t, e, (ModelAlias){.param = i, .entry = (int64_t)k - 1, .transposed = transposed},
                            env_bind(ev, env, own, v_num(k), NO_SPAN)))
                return false;
    }
    return true;
}

static void no_such_path(Tables *t, const Ast *value, const char *pattern)
{
    Eval *ev = t->ev;
    Diag *d = err(ev, "E0102", value->span, "", "no weight has the path `%s`", pattern);
    VEC(Name) paths = {0};
    for (size_t i = 0; i < t->model->param.n; i++)
        vec_push(ev->arena, &paths, t->model->param.v[i].path);
    Name near = nearest_name(name_str(ev->ctx, pattern), paths.v, paths.n);
    if (near)
        diag_help(ev->ctx, d, "did you mean `%s`?", near);
    else if (paths.n)
        diag_note(ev->ctx, d, "paths look like `%s`; `[*]` stands for any index", paths.v[0]);
}

/* One path of an entry; false after a message. */
static bool add_path(Tables *t, NameEntry *e, const Ast *value)
{
    Eval *ev = t->ev;
    Buf pattern = buf_new(ev->arena), inner = buf_new(ev->arena);
    e->hits = 0;
    if (!put_path(&pattern, value)) {
        Diag *d = err(ev, "E0110", value->span, "", "the right side of a name is the path of a weight");
        diag_help(ev->ctx, d, "for example `\"stage[{layer}].up\" = layer[*].ffn.up.W`; `.T` behind it swaps its axes");
        diag_help(ev->ctx, d, "a tensor that holds several is `concat(layer[*].a.W, layer[*].b.W)`");
        return false;
    }
    if (!add_matching(t, e, pattern.s, e->transposed) || (!e->hits && !add_indices(t, e, value, e->transposed)))
        return false;
    bool last_t = value->kind == AST_FIELD && !strcmp(value->name, "T") && !e->transposed;
    if (!e->hits && last_t && put_path(&inner, value->kid[0]) &&
        (!add_matching(t, e, inner.s, true) || (!e->hits && !add_indices(t, e, value->kid[0], true))))
        return false;
    if (!e->hits)
        no_such_path(t, value, pattern.s);
    return e->hits > 0;
}

/* Every tensor of a `concat` has a weight of each path, and all know how long it is. */
static bool end_join(Tables *t, const NameEntry *e)
{
    Model *m = t->model;
    for (size_t i = e->first; i < m->alias.n; i++) {
        ModelAlias *a = &m->alias.v[i];
        if ((size_t)(uintptr_t)map_get(&t->joined, (uintptr_t)a->other) != e->parts)
            return lacks_part(t, e, a->other);
    }
    for (size_t i = e->first; i < m->alias.n; i++) {
        ModelAlias *a = &m->alias.v[i];
        a->of = m->alias.v[(size_t)(uintptr_t)map_get(&t->others, (uintptr_t)a->other) - 1].of;
    }
    return true;
}

static bool add_entry(Tables *t, const Ast *it)
{
    const Ast *value = it->kid[0], *inner = value;
    NameEntry e = {.item = it, .first = t->model->alias.n, .parts = 1};
    if (value->kind == AST_FIELD && !strcmp(value->name, "T"))
        inner = value->kid[0];
    if (inner->kind != AST_CALL || inner->kid[0]->kind != AST_ID || strcmp(inner->kid[0]->name, "concat"))
        return add_path(t, &e, value);
    const Ast *args = inner->kid[1];
    e.transposed = inner != value;
    e.parts = args->n;
    for (; e.part < e.parts; e.part++)
        if (!add_path(t, &e, args->kid[e.part]))
            return false;
    return e.parts < 2 || end_join(t, &e);
}

/* `layout = out_in` */
static void read_layout(Tables *t, const Ast *it)
{
    Eval *ev = t->ev;
    Name key = it->kid[0]->name;
    if (it->kid[0]->n || strcmp(key, "layout")) {
        Diag *d = err(ev, "E0110", it->span, "", "`names` holds `\"other name\" = path`, `layout` and `if`");
        suggest(ev, d, key, (Name[]){name_str(ev->ctx, "layout")}, it->kid[0]->n ? 0 : 1, it->kid[0]->span);
        return;
    }
    if (t->layout) {
        Diag *d = err(ev, "E0108", it->kid[0]->span, "given twice", "`layout` is given twice");
        diag_label(ev->ctx, d, t->layout->span, "first given here");
        return;
    }
    Name word = attribute_word(ev, attribute_find("names", "layout"), it->kid[1], t->file->env);
    t->layout = word ? it : NULL;
    t->out_in = word && !strcmp(word, "out_in");
}

/* In a table that does not say how matrices lie, a square one is taken as it is written: nothing would show that its `.T` was
 * forgotten. So it lies as most of the table do; of others the shapes tell. */
static void check_squares(Tables *t)
{
    const Model *m = t->model;
    const ModelAlias *square = NULL, *other = NULL;
    size_t n[2] = {0}; /* that lie [out, in] there, or not */
    for (size_t i = t->first; i < m->alias.n; i++)
        if (summed_axis(t, m->alias.v[i].param) >= 0)
            n[summed_axis(t, m->alias.v[i].param) ^ (int)m->alias.v[i].transposed]++;
    for (size_t i = t->first; i < m->alias.n; i++) {
        const ModelAlias *a = &m->alias.v[i];
        const Shape *s = &m->param.v[a->param].shape;
        const Dim *d = &s->d[s->rank < 2 ? 0 : s->rank - 2]; /* of a matrix */
        int axis = summed_axis(t, a->param), lies = axis ^ (int)a->transposed;
        if (axis >= 0 && d[0].n == d[1].n && d[0].n > 1 && n[!lies] && n[!lies] >= n[lies] - 1)
            square = square ? square : a;
    }
    for (size_t i = t->first; square && i < m->alias.n && !other; i++) {
        const ModelAlias *a = &m->alias.v[i];
        int axis = summed_axis(t, a->param);
        if (axis >= 0 && (axis ^ (int)a->transposed) != (summed_axis(t, square->param) ^ (int)square->transposed))
            other = a;
    }
    if (!other)
        return;
    Ctx *ctx = t->ev->ctx;
    Diag *d = err(t->ev, "E0324", square->span,
                  square->transposed ? "its axes are swapped there" : "its axes are as in the model",
                  "`%s` is square and lies otherwise than most of this table", m->param.v[square->param].path);
    diag_label(ctx, d, other->span,
               other->transposed ? "the axes of this one are swapped" : "the axes of this one are not");
    diag_note(ctx, d, "no shape would show a forgotten `.T` of a square matrix");
    diag_help(ctx, d, "`layout = out_in` in the table, and no `.T`, is for weights as PyTorch's `Linear` has them");
    diag_help(ctx, d, "what does lie otherwise stands in a table of its own");
}

/* What a table, or a branch of an `if` in it, holds: settings first, then names. */
static void read_items(Tables *t, const Ast *items, bool names)
{
    Eval *ev = t->ev;
    for (uint32_t k = 0; items && k < items->n; k++) {
        const Ast *it = items->kid[k];
        if (it->kind == AST_IF) {
            Value c = eval(ev, it->kid[0], t->file->env, NULL);
            if (c.kind != V_BOOL && c.kind != V_POISON && names)
                err(ev, "E0206", it->kid[0]->span, "", "a condition must be true or false, got %s",
                    value_kind_name(&c));
            const Ast *branch = c.kind != V_BOOL ? NULL : c.num != 0 ? it->kid[1] : it->kid[2];
            read_items(t,
                       branch && branch->kind == AST_IF ? &(Ast){.kind = AST_ITEMS, .n = 1, .kid = (Ast **)&branch}
                                                        : branch,
                       names);
        } else if (it->kind == AST_SET && !names) {
            read_layout(t, it);
        } else if (it->kind == AST_ENTRY && names) {
            add_entry(t, it);
        } else if (it->kind != AST_OFF && it->kind != AST_SET && it->kind != AST_ENTRY && names) {
            err(ev, "E0110", it->span, "", "`names` holds `\"other name\" = path`, `layout` and `if`");
        }
    }
}

void build_aliases(Eval *ev, File *f, Model *m)
{
    Tables t = {.ev = ev, .file = f, .model = m};
    map_init(&t.paths, ev->arena);
    map_init(&t.others, ev->arena);
    map_init(&t.joined, ev->arena);
    for (size_t i = 0; i < m->param.n; i++)
        *map_at(&t.paths, (uintptr_t)m->param.v[i].path) = (void *)(uintptr_t)(i + 1);
    for (uint32_t i = 0; i < f->ast->n; i++) {
        const Ast *it = f->ast->kid[i], *body = it->kind == AST_NODE ? it->kid[2] : NULL;
        if (it->kind != AST_NODE || strcmp(it->kid[0]->name, "names"))
            continue;
        map_init(&t.named, ev->arena);
        t.first = m->alias.n;
        t.layout = NULL;
        t.summed = t.summed ? t.summed : model_summed(m, ev->arena);
        read_items(&t, body, false);
        read_items(&t, body, true);
        if (!t.layout)
            check_squares(&t);
        t.table++;
    }
}
