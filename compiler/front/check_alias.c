/* check_alias.c - `names` tables: what the weights of the model are called elsewhere.
 *
 * In:  the tables of a file and its model.   Out: Model.alias.
 * The one idea: an entry is a pattern over the paths of the model; what a `[*]` stands for is bound to
 * the loop variable before it, so the other name may be made of it.
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
    Map paths;             /* of parameters: index + 1 */
    Map others;            /* names of tables: alias index + 1 */
    size_t first;          /* alias of the table at hand */
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

/* Gives the parameter its other name; false after a message. */
static bool add_alias(Tables *t, const Ast *it, size_t param, Name other, bool transposed)
{
    Model *m = t->model;
    size_t path = (size_t)(uintptr_t)map_get(&t->paths, (uintptr_t)other);
    size_t had = (size_t)(uintptr_t)map_get(&t->others, (uintptr_t)other);
    if (path && path - 1 != param) {
        collides(t, it, other, m->param.v[path - 1].path, NO_SPAN);
        return false;
    }
    if (had && m->alias.v[had - 1].param != param) {
        collides(t, it, other, m->param.v[m->alias.v[had - 1].param].path, m->alias.v[had - 1].span);
        return false;
    }
    for (size_t i = t->first; i < m->alias.n; i++)
        if (m->alias.v[i].param == param) {
            Diag *d = err(t->ev, "E0107", it->name_span, "", "`%s` has two names in one table", m->param.v[param].path);
            diag_label(t->ev->ctx, d, m->alias.v[i].span, "the other one");
            return false;
        }
    vec_push(t->ev->arena, &m->alias, ((ModelAlias){other, param, transposed, it->name_span}));
    *map_at(&t->others, (uintptr_t)other) = (void *)(uintptr_t)m->alias.n;
    return true;
}

/* Every parameter that fits; false after a message. *hits counts them. */
static bool add_matching(Tables *t, const Ast *it, const char *pattern, bool transposed, size_t *hits)
{
    Eval *ev = t->ev;
    for (size_t i = 0; i < t->model->param.n; i++) {
        const Param *p = &t->model->param.v[i];
        Env *env = t->file->env;
        if (!fits(ev, pattern, p->path, &env))
            continue;
        spend(ev, it->span, 1);
        size_t errors = diag_errors(ev->ctx);
        ++*hits;
        if (transposed && p->shape.rank < 2) {
            err(ev, "E0301", it->kid[0]->span, "", "`.T` swaps the axes of matrices, and `%s` has none", p->path);
            return false;
        }
        if (transposed && t->layout && t->summed[i]) {
            Diag *d = err(ev, "E0108", it->kid[0]->span, "given twice", "how `%s` lies there is given twice", p->path);
            diag_label(ev->ctx, d, t->layout->span, "first given here, for all matrices of the table");
            diag_help(ev->ctx, d, "leave `.T` out");
            return false;
        }
        bool good = true, swapped = transposed || (t->layout && layout_swaps(t, it, i, &good));
        if (!good)
            return false;
        const char *other = interpolate(ev, it->name, env, NULL, it->name_span);
        if (diag_errors(ev->ctx) > errors || !add_alias(t, it, i, name_str(ev->ctx, other), swapped))
            return false;
    }
    return true;
}

static bool add_entry(Tables *t, const Ast *it)
{
    Eval *ev = t->ev;
    const Ast *value = it->kid[0];
    size_t hits = 0;
    Buf pattern = buf_new(ev->arena), inner = buf_new(ev->arena);
    if (!put_path(&pattern, value)) {
        Diag *d = err(ev, "E0110", value->span, "", "the right side of a name is the path of a weight");
        diag_help(ev->ctx, d, "for example `\"stage[{layer}].up\" = layer[*].ffn.up.W`; `.T` behind it swaps its axes");
        return false;
    }
    if (!add_matching(t, it, pattern.s, false, &hits))
        return false;
    bool last_t = value->kind == AST_FIELD && !strcmp(value->name, "T");
    if (!hits && last_t && put_path(&inner, value->kid[0]) && !add_matching(t, it, inner.s, true, &hits))
        return false;
    if (hits)
        return true;
    Diag *d = err(ev, "E0102", value->span, "", "no weight has the path `%s`", pattern.s);
    VEC(Name) paths = {0};
    for (size_t i = 0; i < t->model->param.n; i++)
        vec_push(ev->arena, &paths, t->model->param.v[i].path);
    Name near = nearest_name(name_str(ev->ctx, pattern.s), paths.v, paths.n);
    if (near)
        diag_help(ev->ctx, d, "did you mean `%s`?", near);
    else if (paths.n)
        diag_note(ev->ctx, d, "paths look like `%s`; `[*]` stands for any index", paths.v[0]);
    return false;
}

/* `layout = out_in` */
static void read_layout(Tables *t, const Ast *it)
{
    Eval *ev = t->ev;
    Name key = it->kid[0]->name;
    if (it->kid[0]->n || strcmp(key, "layout")) {
        Diag *d = err(ev, "E0110", it->span, "", "`names` holds `\"other name\" = path` and `layout`");
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

void build_aliases(Eval *ev, File *f, Model *m)
{
    Tables t = {.ev = ev, .file = f, .model = m};
    map_init(&t.paths, ev->arena);
    map_init(&t.others, ev->arena);
    for (size_t i = 0; i < m->param.n; i++)
        *map_at(&t.paths, (uintptr_t)m->param.v[i].path) = (void *)(uintptr_t)(i + 1);
    for (uint32_t i = 0; i < f->ast->n; i++) {
        const Ast *it = f->ast->kid[i], *body = it->kind == AST_NODE ? it->kid[2] : NULL;
        if (it->kind != AST_NODE || strcmp(it->kid[0]->name, "names"))
            continue;
        t.first = m->alias.n;
        t.layout = NULL;
        t.summed = t.summed ? t.summed : model_summed(m, ev->arena);
        for (uint32_t k = 0; body && k < body->n; k++)
            if (body->kid[k]->kind == AST_SET)
                read_layout(&t, body->kid[k]);
        for (uint32_t k = 0; body && k < body->n; k++) {
            const Ast *entry = body->kid[k];
            if (entry->kind == AST_ENTRY)
                add_entry(&t, entry);
            else if (entry->kind != AST_OFF && entry->kind != AST_SET)
                err(ev, "E0110", entry->span, "", "`names` holds `\"other name\" = path` and `layout`");
        }
        if (!t.layout)
            check_squares(&t);
    }
}
