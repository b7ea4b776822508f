/* check_attribute.c - attributes of the nodes train, grow and sweep, read by their rows in attributes.def.
 *
 * In:  the items of a node, overrides, the length of a sequence and of the batch.   Out: a value of the row's type, in its unit.
 * The one idea: whatever has a unit is turned into sequences and steps here; lengths that depend on the data stay expressions of the
 * run's length.
 */
#include "check_items.h"
#include "check_train.h"

#include <math.h>
#include <stdlib.h>

/* ---- attributes of a node that C knows ---- */

/* `instead`: an override, of the command line, a growth step or a sweep, which takes the place of what the file writes. */
static void attrs_add(Attrs *a, Name name, Span name_span, const Ast *expr, Env *env, Span span, bool instead)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->v[i].name == name) {
            if (!instead)
                diag_label(a->ev->ctx, err(a->ev, "E0108", span, "given twice", "`%s` is given twice", name),
                           a->v[i].span, "first given here");
            a->v[i] = (TrainAttr){name, expr, env, span, name_span, false};
            return;
        }
    a->v[a->n++] = (TrainAttr){name, expr, env, span, name_span, false};
}

static const Ast *attrs_written(const Attrs *a, Name name)
{
    for (size_t i = 0; i < a->n; i++)
        if (a->v[i].name == name)
            return a->v[i].expr;
    return NULL;
}

void attrs_open(Attrs *a, Eval *ev, File *f, const Ast *items, Name path, const char *what, Span at)
{
    Name *over;
    size_t n_over = override_attrs(ev, f, path, &over);
    *a = (Attrs){.ev = ev, .what = what, .at = at};
    a->v = NEW_ARRAY(ev->arena, TrainAttr, (items ? items->n : 0) + n_over + 1);
    items_fit(ev, items, what);
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i];
        if (it->kind == AST_SET && it->kid[0]->n == 0)
            attrs_add(a, it->kid[0]->name, it->kid[0]->span, it->kid[1], f->env, it->span, false);
    }
    for (size_t i = 0; i < n_over; i++) {
        OverridePlace place = {.ev = ev,
                               .file = f,
                               .node = path,
                               .env = f->env,
                               .known = attribute_find(what, over[i]),
                               .prim = strcmp(over[i], "lr") ? NULL : schedule_prim};
        const Ast *expr = attrs_written(a, over[i]);
        Override *o = override_attribute(&place, over[i], &expr);
        if (!o)
            continue;
        Span last = o->path->n ? o->path->kid[o->path->n - 1]->name_span : o->path->name_span;
        last.file = o->span.file; /* the path of `--set` was parsed from a copy of the argument */
        attrs_add(a, over[i], last, expr, f->env, o->span, true);
    }
}

/* Only what the table has can be asked for. */
static const AttributeRow *attrs_row(Attrs *a, const char *name)
{
    const AttributeRow *row = attribute_find(a->what, name);
    if (!row)
        vwn_bug(a->ev->ctx, "`%s` of `%s` is not in attributes.def", name, a->what);
    return row;
}

const TrainAttr *attrs_get(Attrs *a, const char *name)
{
    attrs_row(a, name);
    for (size_t i = 0; i < a->n; i++)
        if (!strcmp(a->v[i].name, name)) {
            a->v[i].used = true;
            return &a->v[i];
        }
    return NULL;
}

const TrainAttr *attrs_need(Attrs *a, const char *name)
{
    const TrainAttr *t = attrs_get(a, name);
    if (t)
        return t;
    for (size_t i = 0; i < a->n; i++) /* a misspelt one is reported by attrs_close() */
        if (!a->v[i].used && (nearest_name(a->v[i].name, &(Name){name}, 1) || attribute_means(a->v[i].name, name)))
            return NULL;
    Diag *d = err(a->ev, "E0104", a->at, "", "`%s` needs `%s`", a->what, name);
    if (d->labels.n)
        d->labels.v[0].text = arena_printf(a->ev->arena, "missing `%s`", name);
    diag_help(a->ev->ctx, d, "for example `%s`", attrs_row(a, name)->example);
    return NULL;
}

/* `train.lr`: an attribute of a node inside of this one. True when there is such a node and it was said. */
static bool inner_attribute(Attrs *a, const TrainAttr *t, Diag *d)
{
    const char *inner = NULL;
    for (size_t i = 0; !inner && i < node_doc_count(); i++)
        if (node_stands_in(node_doc_at(i), a->what) && attribute_find(node_doc_at(i)->name, t->name))
            inner = node_doc_at(i)->name;
    if (!inner && !strcmp(a->what, "train") && attribute_find("adamw", t->name))
        inner = "optimizer";
    size_t n;
    if (!inner && attribute_find("train", t->name) && strcmp(a->what, "train") != 0) {
        diag_help(a->ev->ctx, d, "it belongs to `train`, around `%s`", a->what);
        return true;
    }
    if (!inner)
        return false;
    const char *source = t->name_span.file ? source_path(a->ev->ctx, t->name_span.file) : "";
    const char *value = source_text(a->ev->ctx, t->expr->span.file, &n) ? expr_text(a->ev, t->expr) : "...";
    if (!strcmp(source, "<command line>"))
        diag_help(a->ev->ctx, d, "write `--set %s.%s.%s=%s`", a->what, inner, t->name, value);
    else
        diag_help(a->ev->ctx, d, "it belongs to `%s { ... }` inside of `%s`: write `%s = %s` there", inner, a->what,
                  t->name, value);
    return true;
}

void attrs_close(Attrs *a)
{
    const char *known;
    size_t n;
    Name *names = attribute_names(a->ev->ctx, a->ev->arena, a->what, false, &n, &known);
    for (size_t i = 0; i < a->n; i++) {
        if (a->v[i].used)
            continue;
        Span at = a->v[i].name_span;
        Diag *d = err(a->ev, "E0101", at, "unknown attribute", "`%s` has no attribute `%s`", a->what, a->v[i].name);
        diag_note(a->ev->ctx, d, "its attributes are %s", known);
        if (!inner_attribute(a, &a->v[i], d))
            suggest_attribute(a->ev, d, a->v[i].name, names, n, at);
    }
}

Value attr_value(Attrs *a, const TrainAttr *t) { return t ? eval(a->ev, t->expr, t->env, NULL) : v_none(); }

static const AttributeRow *attrs_row_of(Attrs *a, const char *name, AttributeType type)
{
    const AttributeRow *row = attrs_row(a, name);
    if (row->type != type)
        vwn_bug(a->ev->ctx, "`%s` of `%s` is not read as attributes.def has it", name, a->what);
    return row;
}

/* A number of a row that has a range; `instead`: when that is not there, or is said to be wrong. */
static double number_in(Attrs *a, const AttributeRow *row, double fallback, double instead)
{
    const TrainAttr *t = attrs_get(a, row->name);
    double x;
    if (!t)
        return fallback;
    return attribute_number_of(a->ev, row, t->expr, t->env, NULL, &x) ? x : instead;
}

double attr_number(Attrs *a, const char *name)
{
    const AttributeRow *row = attrs_row_of(a, name, TAKES_NUMBER);
    return number_in(a, row, attribute_number(row), 1); /* the error is filed, nothing shall follow from it */
}

int64_t attr_whole(Attrs *a, const char *name)
{
    const AttributeRow *row = attrs_row_of(a, name, TAKES_WHOLE);
    double instead = fmax(row->least, 1), fallback = attribute_number(row);
    return (int64_t)rint(number_in(a, row, isnan(fallback) ? instead : fallback, instead));
}

bool attr_numbers(Attrs *a, const char *name, double *out)
{
    const AttributeRow *row = attrs_row_of(a, name, TAKES_NUMBERS);
    const TrainAttr *t = attrs_get(a, name);
    if (t) {
        Value v = attr_value(a, t);
        return attribute_numbers_of(a->ev, row, &v, t->expr, out);
    }
    char *p = (char *)row->fallback;
    for (int i = 0; p && i < row->count; i++)
        out[i] = strtod(p + strspn(p, "[, "), &p);
    return p != NULL;
}

const HostExpr *attr_of_run(Attrs *a, const char *name)
{
    const AttributeRow *row = attrs_row_of(a, name, TAKES_OF_RUN);
    const TrainAttr *t = attrs_get(a, name);
    Value v = attr_value(a, t);
    const HostExpr *e = t ? to_host(a->ev, &v) : NULL;
    const char *at = NULL;
    double x;
    size_t n;
    if (e && host_is_const(e, &x) && !(x >= row->least && x <= row->most)) {
        const char *number = attribute_next_value(row, &at, &n);
        err(a->ev, "E0208", t->expr->span, "", "`%s` must be %.*s", name, (int)n, number);
    } else if (t && !e && v.kind != V_POISON) {
        err(a->ev, "E0206", t->expr->span, "", "`%s` must be a number, got %s", name, value_kind_name(&v));
    }
    return e;
}

Value attr_one_of(Attrs *a, const TrainAttr *t, Diag **d)
{
    *d = NULL;
    if (!t)
        return v_none();
    const AttributeRow *row = attrs_row_of(a, t->name, TAKES_ONE_OF);
    bool word = t->expr->kind == AST_ID && attribute_has_bare(row);
    Value v = word ? eval_word(a->ev, t->expr, t->env, NULL) : attr_value(a, t);
    return attribute_one_of(a->ev, row, &v, t->expr->span, d) ? v : v_poison();
}

const Ast *attr_names(Attrs *a, const char *name)
{
    const TrainAttr *t = attrs_get(a, name);
    const AttributeRow *row = attrs_row_of(a, name, TAKES_NAMES);
    if (!t || t->expr->kind == AST_LIST)
        return t ? t->expr : NULL;
    size_t n;
    const char *at = NULL, *example = attribute_next_value(row, &at, &n);
    Diag *d = err(a->ev, "E0206", t->expr->span, "", "`%s` must be a list of names", name);
    diag_help(a->ev->ctx, d, "for example `%s = %.*s`", name, (int)n, example);
    return NULL;
}

Name attr_word(Attrs *a, const char *name)
{
    const AttributeRow *row = attrs_row_of(a, name, TAKES_WORD);
    const TrainAttr *t = attrs_get(a, name);
    Name word = t ? attribute_word(a->ev, row, t->expr, t->env) : NULL;
    return word ? word : row->fallback;
}

bool attr_bool(Attrs *a, const char *name, bool *given)
{
    static const Ast type = {.kind = AST_ID, .name = "bool"};
    const TrainAttr *t = attrs_get(a, name);
    const char *fallback = attrs_row_of(a, name, TAKES_BOOL)->fallback;
    if (given)
        *given = t != NULL;
    if (!t)
        return fallback && !strcmp(fallback, "true");
    Value v = eval_as(a->ev, t->expr, t->env, NULL, &type, t->name);
    return v.kind == V_BOOL && v.num != 0;
}

/* ---- quantities ---- */

static const double MOST_STEPS = 1e15, MOST_EPOCHS = 1e6, MOST_TOKENS = 9007199254740992; /* 2^53 */

void no_unit(Eval *ev, Span at, const char *what, double x, const Train *t, const char *example)
{
    Diag *d = err(ev, "E0201", at, "", "`%s` needs a unit", what);
    if (d->labels.n)
        d->labels.v[0].text = arena_printf(ev->arena, "%.6g of what?", x);
    if (t->context > 1 && !strcmp(what, "batch"))
        diag_note(ev->ctx, d, "with context = %lld the two readings differ by a factor of %lld", (long long)t->context,
                  (long long)t->context);
    Buf n = buf_new(ev->arena);
    buf_count(&n, (int64_t)(x * (double)t->context));
    if (!strcmp(what, "batch"))
        diag_help(ev->ctx, d, "write `%.6g seqs` (%s tokens per step) or `0.5M tokens`", x, n.s);
    else /* the first of the examples with the number that was written */
        diag_help(ev->ctx, d, "write `%.6g%s", x, example + strcspn(example, " "));
}

/* `"3 epochs"`; `[4 seqs, 8 seqs]`. */
static void advise_quantity(Eval *ev, Diag *d, const Value *v, const char *what, Span at)
{
    if (v->kind == V_STR)
        diag_fix(ev->ctx, d, at, v->word, FIX_MAYBE, "quantities are written without quotes: `%s`", v->word);
    if (v->kind == V_LIST && v->list->n > 1)
        diag_help(ev->ctx, d, "for several values write a sweep: `sweep NAME { vary { train.%s = %s } }`", what,
                  value_text(ev, v));
}

/* An image is a sequence of the batch. */
static bool is_seq(const char *unit) { return !strcmp(unit, "seq") || !strcmp(unit, "image"); }

/* seqs, images or tokens as whole sequences. */
static bool to_seqs(Eval *ev, const Value *v, Span at, const char *what, const Train *t, int64_t *out)
{
    double seqs = 0;
    if (v->kind == V_NUM) {
        no_unit(ev, at, what, v->num, t, "`64 seqs`");
        return false;
    }
    if (v->kind != V_QTY) {
        if (v->kind != V_POISON)
            advise_quantity(
                ev,
                err(ev, "E0206", at, "", "`%s` must be a quantity such as `64 seqs`, got %s", what, value_kind_name(v)),
                v, what, at);
        return false;
    }
    if (is_seq(v->word)) {
        seqs = v->num;
    } else if (!strcmp(v->word, "token")) {
        seqs = v->num / (double)t->context;
        if (!is_whole(seqs)) {
            Diag *d = err(ev, "E0605", at, "", "%.0f tokens are not a whole number of sequences of %lld", v->num,
                          (long long)t->context);
            double down = floor(seqs), up = ceil(seqs);
            diag_help(ev->ctx, d, "write %.0f or %.0f tokens, that is %.0f or %.0f seqs; `1Mi tokens` is 2^20",
                      down * (double)t->context, up * (double)t->context, down, up);
            return false;
        }
    } else {
        err(ev, "E0201", at, "", "`%s` is counted in seqs or tokens, not in %ss", what, v->word);
        return false;
    }
    if (seqs > 1e9) {
        err(ev, "E0206", at, "", "`%s` may be 1,000,000,000 sequences at most, got %.16g", what, seqs);
        return false;
    }
    if (!is_whole(seqs) || seqs < 1) {
        err(ev, "E0206", at, "", "`%s` must be at least one whole sequence, got %.6g", what, seqs);
        return false;
    }
    *out = (int64_t)rint(seqs);
    return true;
}

static bool written_share(Eval *ev, Span at)
{
    size_t n;
    const char *text = source_text(ev->ctx, at.file, &n);
    return at.hi > at.lo && text[at.hi - 1] == '%';
}

bool attr_seqs(Attrs *a, const TrainAttr *at, const Train *t, int64_t *seqs)
{
    if (!at)
        return false;
    attrs_row_of(a, at->name, TAKES_SEQS);
    Value v = attr_value(a, at);
    return to_seqs(a->ev, &v, at->expr->span, at->name, t, seqs);
}

/* A length of time as steps: an expression, since epochs are known only with the data. */
const HostExpr *steps_of(Eval *ev, const Value *v, Span at, const char *what, const Train *t)
{
    Arena *a = ev->arena;
    double per_step = (double)t->batch_seqs * (double)t->context;
    if (v->kind == V_HOST)
        return v->host;
    if ((v->kind == V_NUM || v->kind == V_QTY) && v->num < 0) {
        err(ev, "E0208", at, "", "`%s` must not be negative", what);
        return NULL;
    }
    if (v->kind == V_NUM && v->num >= 0 && v->num <= 1)
        return v->num == 0 ? host_const(a, 0) : host_op(a, HO_MUL, host_const(a, v->num), host_var(a, HV_LENGTH), NULL);
    if (v->kind == V_NUM && written_share(ev, at)) {
        err(ev, "E0208", at, "", "`%s` cannot be more than the whole run", what);
        return NULL;
    }
    if (v->kind == V_NUM) {
        no_unit(ev, at, what, v->num, t, "`2000 steps`, `100M tokens` or a share such as `1%`");
        return NULL;
    }
    if (v->kind == V_QTY && !strcmp(v->word, "epoch") && t->length_epochs <= 0) {
        Diag *d = err(ev, "E0201", at, "", "`%s` can be counted in epochs only where `length` is", what);
        diag_help(ev->ctx, d, "write it in steps, tokens or seqs, or as a share of the run such as `1%%`");
        return NULL;
    }
    if (v->kind == V_QTY && !strcmp(v->word, "step"))
        return host_const(a, v->num);
    if (v->kind == V_QTY && !strcmp(v->word, "token"))
        return host_const(a, v->num / per_step);
    if (v->kind == V_QTY && is_seq(v->word))
        return host_const(a, v->num / (double)t->batch_seqs);
    if (v->kind == V_QTY && !strcmp(v->word, "epoch"))
        return host_op(a, HO_MUL, host_const(a, v->num / t->length_epochs), host_var(a, HV_LENGTH), NULL);
    if (v->kind != V_POISON)
        err(ev, "E0201", at, "", "`%s` is a length of training: steps, tokens, epochs or a share", what);
    return NULL;
}

bool attr_steps(Attrs *a, const TrainAttr *at, const Train *t, int64_t *steps)
{
    attrs_row_of(a, at->name, TAKES_STEPS);
    Value v = attr_value(a, at);
    const HostExpr *e = v.kind == V_NUM ? NULL : steps_of(a->ev, &v, at->expr->span, at->name, t);
    double x = 0;
    if (v.kind == V_NUM && written_share(a->ev, at->expr->span)) {
        Diag *d =
            err(a->ev, "E0201", at->expr->span, "", "`%s` is a number of steps, not a share of the run", at->name);
        if (t->length_steps > 0)
            diag_help(a->ev->ctx, d, "of %lld steps that is `%.0f steps`", (long long)t->length_steps,
                      fmax(1, rint(v.num * (double)t->length_steps)));
    } else if (v.kind == V_NUM) {
        no_unit(a->ev, at->expr->span, at->name, v.num, t, "`250 steps`");
    }
    if (!e)
        return false;
    if (!host_is_const(e, &x)) {
        err(a->ev, "E0206", at->expr->span, "", "`%s` must be known before the run: steps, tokens or seqs", at->name);
        return false;
    }
    if (x < 1 || x > MOST_STEPS) {
        err(a->ev, "E0208", at->expr->span, "", "`%s` must be at least one step and at most %.0e, got %.6g", at->name,
            MOST_STEPS, x);
        return false;
    }
    *steps = (int64_t)fmax(1, rint(x));
    return true;
}

static void length_of(Eval *ev, const Value *v, Span at, Train *t)
{
    double per_step = (double)t->batch_seqs * (double)t->context;
    if (v->kind == V_NUM) {
        no_unit(ev, at, "length", v->num, t, "`5000 steps`, `100B tokens` or `3 epochs`");
        return;
    }
    if (v->kind != V_QTY) {
        if (v->kind != V_POISON)
            advise_quantity(ev, err(ev, "E0206", at, "", "`length` must be a quantity such as `5000 steps`"), v,
                            "length", at);
        return;
    }
    if (!strcmp(v->word, "epoch")) {
        if (v->num > MOST_EPOCHS) {
            err(ev, "E0208", at, "", "`length` is too large: at most %.0e epochs", MOST_EPOCHS);
            return;
        }
        t->length_epochs = v->num;
        t->length_steps = -1;
    } else if (!strcmp(v->word, "step") || !strcmp(v->word, "token") || is_seq(v->word)) {
        if (v->num > MOST_STEPS) {
            err(ev, "E0208", at, "", "`length` is too large");
            return;
        }
        double steps = v->word[0] == 't' ? v->num / per_step
                       : is_seq(v->word) ? v->num / (double)t->batch_seqs
                                         : v->num;
        t->length_steps = (int64_t)ceil(steps - 1e-9);
    } else {
        diag_help(ev->ctx,
                  err(ev, "E0201", at, "", "`length` is counted in steps, tokens, seqs or epochs, not in %s", v->word),
                  "schedules need a length in steps; of a sweep `until = %.6g %s` ends each run by the clock", v->num,
                  v->word);
        return;
    }
    if (t->length_steps == 0 || v->num <= 0)
        err(ev, "E0206", at, "", "`length` must be at least one step");
    else if ((double)t->length_steps * per_step > MOST_TOKENS)
        err(ev, "E0208", at, "", "`length` is too large: a run has at most 2^53 tokens, this one %.6g",
            (double)t->length_steps * per_step);
}

void attr_length(Attrs *a, const TrainAttr *at, Train *t)
{
    attrs_row_of(a, at->name, TAKES_LENGTH);
    Value v = attr_value(a, at);
    length_of(a->ev, &v, at->expr->span, t);
}

const HostExpr *attr_part_of_run(Attrs *a, const TrainAttr *at, const Train *t)
{
    attrs_row_of(a, at->name, TAKES_PART_OF_RUN);
    Value v = attr_value(a, at);
    return steps_of(a->ev, &v, at->expr->span, at->name, t);
}
