/* override_paths.c - the paths that settings can have, and which of them somebody meant.
 *
 * In:  a file, a path that leads nowhere.   Out: E0105 with the nearest paths, as flags that can be copied.
 * The one idea: all paths of a file are listed: lets, attributes that nodes have or may have, arguments of the calls in them.
 * A wrong path is compared with each by what people leave out (indices, the way to an attribute) or misspell.
 */
#include <math.h>
#include <stdio.h>

#include "attribute.h"
#include "check_prim.h"
#include "grammar/foreign.h"
#include "override.h"

/* ---- all paths ---- */

typedef struct Paths {
    Eval *ev;
    File *file;
    VEC(Name) path;
    VEC(const Ast *) expr; /* what is written there, or NULL */
} Paths;

static void add(Paths *p, const char *path, const Ast *expr, int depth)
{
    spend(p->ev, expr ? expr->span : NO_SPAN, 1);
    vec_push(p->ev->arena, &p->path, name_str(p->ev->ctx, path));
    vec_push(p->ev->arena, &p->expr, expr);
    while (expr && expr->kind == AST_PAREN)
        expr = expr->kid[0];
    if (!expr || depth > 8)
        return;
    for (int i = 1; i < 3 && expr->kind == AST_COND; i++) {
        size_t had = p->path.n;
        add(p, path, expr->kid[i], depth + 1);
        p->expr.v[had] = NULL;
    }
    if (expr->kind != AST_CALL)
        return;
    bool rate = !depth && strlen(path) > 3 && !strncmp(path, "train.", 6) && !strcmp(path + strlen(path) - 3, ".lr");
    NameList names = {0};
    if (!call_signature(p->ev, p->file, expr, rate ? schedule_prim : NULL, &names))
        return;
    const Ast *args = expr->kid[1];
    for (size_t i = 0; i < names.n; i++) {
        const Ast *written =
            i < args->n && args->kid[i]->kind != AST_NAMED && args->kid[i]->kind != AST_OFF ? args->kid[i] : NULL;
        for (uint32_t k = 0; k < args->n; k++)
            if (args->kid[k]->kind == AST_NAMED && args->kid[k]->name == names.v[i])
                written = args->kid[k]->kid[0];
        if (strcmp(names.v[i], "*") != 0)
            add(p, arena_printf(p->ev->arena, "%s.%s", path, names.v[i]), written, depth + 1);
    }
}

static bool gives(const Ast *items, const char *attr)
{
    for (uint32_t i = 0; items && i < items->n; i++)
        if (items->kid[i]->kind == AST_SET && !items->kid[i]->kid[0]->n && !strcmp(items->kid[i]->kid[0]->name, attr))
            return true;
    return false;
}

/* What the node may have and does not write: `own` is its path with a dot. */
static void unwritten(Paths *p, const Ast *it, const char *own)
{
    Name type = it->kid[0]->name, label = it->kid[1] ? it->kid[1]->name : NULL;
    const char *kind = !strcmp(type, "optimizer") && label ? label : type;
    bool known = false;
    for (size_t i = 0; i < attribute_count(); i++) {
        const AttributeRow *a = attribute_at(i);
        if (strcmp(a->node, kind) != 0)
            continue;
        known = true;
        if (!gives(it->kid[2], a->name))
            add(p, arena_printf(p->ev->arena, "%s%s", own, a->name), NULL, 0);
    }
    bool two = label && (!strcmp(type, "embed") || !strcmp(type, "head"));
    Binding *b = known ? NULL : env_find(p->file->env, two ? name_printf(p->ev->ctx, "%s_%s", type, label) : type);
    if (!b || b->state != BIND_READY || b->value.kind != V_BLOCK)
        return;
    const Ast *params = b->value.block->def->ast->kid[0];
    for (uint32_t i = 0; i < params->n; i++)
        if (!gives(it->kid[2], params->kid[i]->name))
            add(p, arena_printf(p->ev->arena, "%s%s", own, params->kid[i]->name), NULL, 0);
}

/* Those of `items` behind `own`, those of the nodes among them behind `inner`. */
static void written(Paths *p, const Ast *items, const char *own, const char *inner)
{
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i];
        if (it->kind == AST_SET && *own && !it->kid[0]->n)
            add(p, arena_printf(p->ev->arena, "%s%s", own, it->kid[0]->name), it->kid[1], 0);
        if (it->kind == AST_FOR) {
            const char *path = arena_printf(p->ev->arena, "%s%s[*].", inner, it->name);
            written(p, it->kid[1], path, path);
        }
        if (it->kind == AST_IF)
            for (uint32_t k = 1; k < it->n; k++)
                written(p, it->kid[k], own, inner);
        if (it->kind != AST_NODE || it->kid[0]->n)
            continue;
        Name type = it->kid[0]->name, label = it->kid[1] ? it->kid[1]->name : NULL;
        bool top = !*own && !*inner, model = top && !strcmp(type, "model");
        if (top && !model && strcmp(type, "train") != 0)
            continue;
        bool plain = !label || model || !strcmp(type, "optimizer"), quoted = label && strpbrk(label, ".*[");
        const char *path = arena_printf(p->ev->arena,
                                        quoted  ? "%s%s[\"%s\"]."
                                        : plain ? "%s%s."
                                                : "%s%s.%s.",
                                        inner, type, label);
        written(p, it->kid[2], path, model ? "" : path);
        unwritten(p, it, path);
    }
}

static Paths all_paths(Eval *ev, File *f)
{
    Paths p = {.ev = ev, .file = f};
    for (size_t i = 0; i < f->lets.n; i++)
        if (f->lets.v[i]->is_let)
            add(&p, f->lets.v[i]->name, f->lets.v[i]->expr, 0);
    written(&p, f->ast, "", "");
    return p;
}

/* ---- which one was meant ---- */

/* Without indices, and without the word `model`. */
static const char *bare(Eval *ev, const char *path)
{
    Buf b = buf_new(ev->arena);
    path += strncmp(path, "model.", 6) ? 0 : 6;
    for (; *path; path++) {
        const char *end = *path == '[' ? strchr(path, ']') : NULL;
        if (end)
            path = end;
        else
            buf_putc(&b, *path);
    }
    return b.n ? b.s : "";
}

static const char *last_part(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot ? dot + 1 : path;
}

static size_t parts(const char *path)
{
    size_t n = 1;
    for (; *path; path++)
        n += *path == '.';
    return n;
}

enum { FAR = 1000, ENDS_SO = 1, MISSPELT = 2, MORE_BEFORE = 90, PARTS_MOST = 16, SAME_LAST = 100, NEAR_LAST = 200 };

/* How far `path` is from what was written, `word`; both bare. */
static size_t distance(const char *word, const char *path)
{
    size_t n = strlen(word), m = strlen(path), limit = n < 6 ? 1 : n < 9 ? n / 3 : 3;
    if (m >= n && !strcmp(path + m - n, word) && (m == n || path[m - n - 1] == '.'))
        return m == n ? 0 : ENDS_SO;
    if (n > m && !strcmp(word + n - m, path) && word[n - m - 1] == '.')
        return MORE_BEFORE - (parts(path) < PARTS_MOST ? parts(path) : PARTS_MOST);
    size_t d = edit_distance(word, path, limit);
    if (d <= limit)
        return MISSPELT + d;
    const char *a = last_part(word), *b = last_part(path);
    size_t shape = parts(word) > parts(path) ? parts(word) - parts(path) : parts(path) - parts(word);
    bool begins = strcspn(word, ".") == strcspn(path, ".") && !strncmp(word, path, strcspn(word, "."));
    shape = 4 * shape + (begins ? 0 : 2);
    if (!strcmp(a, b))
        return SAME_LAST + shape;
    limit = strlen(a) / 3;
    d = edit_distance(a, b, limit);
    return limit && d <= limit && strlen(a) > 2 ? NEAR_LAST + 10 * d + shape : FAR;
}

static size_t dots_in(const char *path)
{
    size_t n = 0;
    for (; (path = strchr(path, '.')); path++)
        n++;
    return n;
}

/* The places of the paths that end in what is called so here, where other programs say the last part of the word: those with the fewest
 * parts first. */
static size_t by_foreign_name(const Paths *p, const char *word, size_t at[4])
{
    enum { DOTS_MOST = 8 };
    size_t n = 0;
    Name last = name_str(p->ev->ctx, last_part(word));
    for (const Foreign *f = NULL; !n && (f = foreign_next(FOREIGN_ATTRIBUTE, last, f));)
        for (size_t dots = 1; f->ours && dots <= DOTS_MOST; dots++)
            for (size_t i = 0; i < p->path.n && n < 4; i++) {
                const char *path = p->path.v[i];
                bool again = dots_in(path) != dots || strcmp(last_part(path), f->ours) != 0;
                for (size_t k = 0; k < n; k++)
                    again |= p->path.v[at[k]] == p->path.v[i];
                if (!again)
                    at[n++] = i;
            }
    return n;
}

/* The places of the nearest paths in `at`; how many there are. */
static size_t nearest(Paths *p, const char *word, size_t at[4])
{
    size_t best = FAR, n = 0;
    word = bare(p->ev, word);
    for (size_t i = 0; i < p->path.n; i++) {
        size_t d = distance(word, bare(p->ev, p->path.v[i]));
        bool again = false;
        if (d < best) {
            best = d;
            n = 0;
        }
        for (size_t k = 0; k < n; k++)
            again |= p->path.v[at[k]] == p->path.v[i];
        if (d == best && d < FAR && n < 4 && !again)
            at[n++] = i;
    }
    return n ? n : by_foreign_name(p, word, at);
}

/* The path of the first argument of the call that is written at the path, NULL: there is no call. */
static const char *first_argument(const Paths *p, size_t at)
{
    const Ast *e = p->expr.v[at];
    bool call = e && e->kind == AST_CALL && at + 1 < p->path.n;
    size_t n = strlen(p->path.v[at]);
    return call && !strncmp(p->path.v[at + 1], p->path.v[at], n) && p->path.v[at + 1][n] == '.' ? p->path.v[at + 1]
                                                                                                : NULL;
}

const char *override_nearest(Eval *ev, File *f, const char *path, const char **inner)
{
    Paths p = all_paths(ev, f);
    size_t at[4], n = nearest(&p, path, at);
    *inner = n ? first_argument(&p, at[0]) : NULL;
    return n ? p.path.v[at[0]] : NULL;
}

/* ---- messages ---- */

/* The unit that a plain number lacks at the path, with a blank before it; else "". */
static const char *unit_lacking(Eval *ev, const Override *o, const char *path)
{
    const char *name = strrchr(path, '.'), *node = name;
    while (node && node > path && node[-1] != '.')
        node--;
    const AttributeRow *row =
        name ? attribute_find(arena_printf(ev->arena, "%.*s", (int)(name - node), node), name + 1) : NULL;
    const char *value = expr_text(ev, o->expr);
    if (!row || value[strspn(value, "0123456789_")])
        return "";
    return row->type == TAKES_SEQS ? " seqs" : row->type == TAKES_STEPS || row->type == TAKES_LENGTH ? " steps" : "";
}

/* Quoted where a shell would read more into it. */
static const char *flag_text(Eval *ev, const Override *o, const char *path)
{
    const char *text = arena_printf(ev->arena, "%s=%s%s", path, expr_text(ev, o->expr), unit_lacking(ev, o, path));
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,:=+-/%";
    if (!text[strspn(text, plain)])
        return arena_printf(ev->arena, "--set %s", text);
    const char *quote = strchr(text, '\'') ? "\"" : "'";
    return arena_printf(ev->arena, "--set %s%s%s", quote, text, quote);
}

void override_meant(Eval *ev, Diag *d, const Override *o, const char *path)
{
    if (!strcmp(o->origin, "--set"))
        diag_help(ev->ctx, d, "did you mean `%s`?", flag_text(ev, o, path));
    else
        diag_help(ev->ctx, d, "did you mean `%s`?", path);
}

/* The loop of a model over `variable`. */
static const Ast *loop_over(const Ast *items, Name variable)
{
    const Ast *found = NULL;
    for (uint32_t i = 0; items && i < items->n && !found; i++) {
        const Ast *it = items->kid[i];
        if (it->kind == AST_FOR && it->name == variable)
            return it;
        if (it->kind == AST_FOR)
            found = loop_over(it->kid[1], variable);
        for (uint32_t k = 1; it->kind == AST_IF && k < it->n && !found; k++)
            found = loop_over(it->kid[k], variable);
    }
    return found;
}

/* `layer[9]` where layers are 1 to 8: says so and names the nearest one. */
static bool no_such_iteration(Eval *ev, File *f, const Override *o)
{
    Name variable = o->path->name;
    for (uint32_t i = 0; f->model_ast && i < o->path->n; i++) {
        const Ast *part = o->path->kid[i];
        if (part->kind != AST_AT) {
            variable = part->name;
            continue;
        }
        const Ast *index = part->kid[0]->kind == AST_NEG ? part->kid[0]->kid[0] : part->kid[0];
        const Ast *loop = index->kind == AST_NUM ? loop_over(f->model_ast->kid[2], variable) : NULL;
        size_t before = diag_count(ev->ctx);
        if (!loop)
            return false;
        Value values = eval(ev, loop->kid[0], f->env, NULL);
        diag_truncate(ev->ctx, before);
        if (values.kind != V_LIST || !values.list->n)
            return false;
        double want = ast_number(ev->ctx, index).value, near = values.list->v[0].num;
        if (index != part->kid[0]) { /* as other languages count from the end */
            near =
                want >= 1 && want <= (double)values.list->n ? values.list->v[values.list->n - (size_t)want].num : near;
            want = -want;
        }
        bool there = false;
        for (size_t k = 0; k < values.list->n; k++) {
            double x = values.list->v[k].kind == V_NUM ? values.list->v[k].num : NAN;
            there |= x == want;
            near = want >= 0 && fabs(x - want) < fabs(near - want) ? x : near;
        }
        if (there)
            continue;
        size_t n;
        const char *text = source_text(ev->ctx, o->span.file, &n);
        Diag *d = diag_error(ev->ctx, "E0105", o->span, "", "there is no `%s[%.6g]` in %s", variable, want, f->path);
        bool range = loop->kid[0]->kind == AST_RANGE;
        if (range)
            diag_note(ev->ctx, d, "`for %s in %s` runs from %.6g to %.6g", variable, expr_text(ev, loop->kid[0]),
                      values.list->v[0].num, values.list->v[values.list->n - 1].num);
        else
            diag_note(ev->ctx, d, "`for %s in %s` has the values %s", variable, expr_text(ev, loop->kid[0]),
                      value_text(ev, &values));
        Span at = part->kid[0]->span;
        const char *path = arena_printf(ev->arena, "%.*s%.6g%.*s", (int)(at.lo - o->span.lo), text + o->span.lo, near,
                                        (int)(o->span.hi - at.hi), text + at.hi);
        override_meant(ev, d, o, path);
        return true;
    }
    return false;
}

/* `layer[1..2]`, `layer[[1, 3]]` as a condition on the variable of the loop, "layer >= 1 and layer <= 2"; NULL: it is one index. */
static const char *condition_of(Eval *ev, const char *variable, const Ast *index)
{
    Buf b = buf_new(ev->arena);
    bool list = index->kind == AST_LIST && index->n;
    if (index->kind == AST_RANGE && index->n == 2)
        buf_printf(&b, "%s >= %s and %s <= %s", variable, expr_text(ev, index->kid[0]), variable,
                   expr_text(ev, index->kid[1]));
    for (uint32_t i = 0; list && i < index->n; i++)
        buf_printf(&b, "%s%s == %s", i ? " or " : "", variable, expr_text(ev, index->kid[i]));
    return b.n ? b.s : NULL;
}

/* `layer[1..2].ffn.hidden = 32`: a path names one iteration or all, and the value tells them from each other. */
static bool several_iterations(Eval *ev, File *f, Override *o)
{
    const char *variable = o->path->name, *condition = NULL;
    Buf path = buf_new(ev->arena);
    buf_puts(&path, o->path->name);
    for (uint32_t i = 0; i < o->path->n; i++) {
        const Ast *part = o->path->kid[i];
        const char *here = part->kind == AST_AT ? condition_of(ev, variable, part->kid[0]) : NULL;
        condition = here ? here : condition;
        if (part->kind == AST_DOT)
            buf_printf(&path, ".%s", variable = part->name);
        else
            buf_printf(&path, "[%s]", here || part->kid[0]->kind == AST_STAR ? "*" : expr_text(ev, part->kid[0]));
    }
    if (!condition || !o->expr)
        return false;
    Paths p = all_paths(ev, f);
    const Ast *had = NULL;
    for (size_t i = 0; i < p.path.n && !had; i++)
        had = strcmp(p.path.v[i], path.s) ? NULL : p.expr.v[i];
    Diag *d = override_error(ev, f, o, "a path names one of a loop's iterations or all");
    const char *value = arena_printf(ev->arena, "if %s then %s else %s", condition, expr_text(ev, o->expr),
                                     had ? expr_text(ev, had) : "...");
    diag_help(ev->ctx, d, strcmp(o->origin, "--set") ? "write `%s = %s`" : "write `--set '%s=%s'`", path.s, value);
    return true;
}

/* `lr=1e-3` where a schedule stands: a number would take its place. */
static void note_call(Eval *ev, Diag *d, const Override *o, Paths *p, size_t at)
{
    const char *inner = first_argument(p, at);
    if (!inner || (o->expr && o->expr->kind != AST_NUM))
        return;
    diag_note(ev->ctx, d, "`%s` is %s, whose place the number would take", p->path.v[at], expr_text(ev, p->expr.v[at]));
    override_meant(ev, d, o, inner);
}

/* `connection.n=4` where `connection = residual()`: the argument that the call has not; NULL: it is no such path. */
static const char *missing_argument(const Paths *p, size_t at, const char *path)
{
    const char *dot = strrchr(path, '.'), *whole = p->path.v[at];
    size_t n = dot ? (size_t)(dot - path) : 0, m = strlen(whole);
    bool call = p->expr.v[at] && p->expr.v[at]->kind == AST_CALL;
    bool same = n && n <= m && !memcmp(whole + m - n, path, n) && (n == m || whole[m - n - 1] == '.');
    return call && same ? dot + 1 : NULL;
}

static Name last_name(const Ast *path)
{
    Name last = path->n ? path->kid[path->n - 1]->name : path->name;
    return last ? last : path->name; /* of `ws[2]` */
}

/* The one part of a setting's path that is another than that of `path`; NO_SPAN: they have not equally many, or several differ. */
static Span other_part(Eval *ev, const Override *o, const char *path)
{
    const char *rest = bare(ev, path);
    Span found = NO_SPAN;
    const Ast *p = o->path;
    for (uint32_t k = 0; k <= p->n; k++) {
        const Ast *part = k ? p->kid[k - 1] : p;
        if (part->kind == AST_AT)
            continue;
        size_t n = strcspn(rest, ".");
        bool same = strlen(part->name) == n && !memcmp(rest, part->name, n);
        if (!n || (!same && found.file))
            return NO_SPAN;
        if (!same)
            found = part->name_span;
        rest += n + (rest[n] == '.');
    }
    bool shown = found.file && found.lo < found.hi;
    return *rest || !shown ? NO_SPAN : found;
}

/* `layer[2].ffn` */
static bool names_iteration(const Ast *path)
{
    for (uint32_t i = 0; i < path->n; i++)
        if (path->kid[i]->kind == AST_AT && path->kid[i]->kid[0]->kind == AST_NUM)
            return true;
    return false;
}

void override_unknown(Eval *ev, File *f, Override *o)
{
    if (o->said || no_such_iteration(ev, f, o))
        return;
    o->said = true;
    if (several_iterations(ev, f, o))
        return;
    Paths p = all_paths(ev, f);
    size_t at[4];
    if (o->expr && o->expr->kind == AST_ID && !strcmp(o->expr->name, "none") && names_iteration(o->path)) {
        diag_help(ev->ctx, override_error(ev, f, o, "nothing has this path"),
                  "a node is taken away in all layers, `layer[*].ffn = none`, and in one of them by a condition around "
                  "it: `if layer != 2 { ffn { ... } }`");
        return;
    }
    const char *path = o->of_variant || o->of_step ? expr_text(ev, o->path) : span_text(ev, o->span);
    Diag *d = override_error(ev, f, o, "nothing has this path");
    size_t n = nearest(&p, path, at);
    Span part = n == 1 && !o->unwritten ? other_part(ev, o, p.path.v[at[0]]) : NO_SPAN;
    if (part.file && d->labels.n) {
        d->labels.v[0] = (DiagLabel){part, "nothing is called so there", true};
    }
    if (o->unwritten) {
        d->labels.v[0].text = "the attribute is not written there, so it has no arguments";
    }
    size_t far = n ? distance(bare(ev, path), bare(ev, p.path.v[at[0]])) : FAR;
    if (o->unwritten && (far < MORE_BEFORE - PARTS_MOST || far > MORE_BEFORE)) {
        diag_help(ev->ctx, d, "set all of the attribute, `%s`; `vwn doc %s` says what it takes",
                  o->beginning[o->unwritten], o->path->kid[o->unwritten - 1]->name);
    } else if (n && missing_argument(&p, at[0], path)) {
        const char *call = expr_text(ev, p.expr.v[at[0]]), *name = missing_argument(&p, at[0], path);
        diag_note(ev->ctx, d, "`%s` is %s, which has no `%s`", p.path.v[at[0]], call, name);
        const char *attribute = strrchr(p.path.v[at[0]], '.') ? strrchr(p.path.v[at[0]], '.') + 1 : p.path.v[at[0]];
        diag_help(ev->ctx, d,
                  "give a call that has it, such as `%s = BLOCK(%s = %s)`; `vwn doc --search %s` finds blocks",
                  attribute, name, expr_text(ev, o->expr), attribute);
        return;
    } else if (n) {
        override_meant(ev, d, o, p.path.v[at[0]]);
        note_call(ev, d, o, &p, at[0]);
    }
    if (n > 1 && !o->unwritten) {
        Buf b = buf_new(ev->arena);
        for (size_t i = 1; i < n; i++)
            buf_printf(&b, "%s`%s`", list_gap(i - 1, n - 1, " and "), p.path.v[at[i]]);
        diag_note(ev->ctx, d, "as near %s %s", n == 2 ? "is" : "are", b.s);
    }
    if (!n && !o->unwritten) {
        tell_attribute(ev, d, last_name(o->path));
        diag_help(ev->ctx, d,
                  "paths are lets (`D`), attributes of nodes (`model.width`, `layer[*].attention.heads`, "
                  "`train.seed`), and arguments"
                  " of the calls in them (`conn.n`, `train.optimizer.lr.peak`)");
    }
}
