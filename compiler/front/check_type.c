/* check_type.c - declared types and shapes: what a place takes, and the signatures of blocks.
 *
 * In:  a value (or an expression) and the type written for its place.   Out: the value as that type, or an error.
 * The one idea: a type is an expression of the language; this file says which ones mean something and what each
 * of them accepts.
 */
#include "check.h"

#include "grammar/foreign.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>

/* ---- declared types ---- */

static const double LARGEST_DIM = 4503599627370496.0; /* 2^52 */

static Value to_init(Eval *ev, Value v, Span at)
{
    Init *i = NEW(ev->arena, Init);
    Value out = {.kind = V_INIT, .init = i};
    if (v.kind == V_INIT || v.kind == V_POISON)
        return v;
    if (v.kind == V_FN && !strcmp(v.prim->name, "zeros"))
        return out;
    if (v.kind == V_FN && !strcmp(v.prim->name, "ones")) {
        i->a = 1;
        return out;
    }
    if (v.kind == V_FN && !strcmp(v.prim->name, "eye")) {
        i->kind = INIT_EYE;
        return out;
    }
    if (v.kind == V_LIST) {
        Value t = to_tensor(ev, v, at);
        if (t.kind != V_TENSOR)
            return v_poison();
        const Node *n = node_at(ev->build->g, t.val);
        *i = (Init){.kind = INIT_LIST, .list = n->a.data, .n = n->a.n};
        return out;
    }
    Diag *d = err(ev, "E0206", at, "", "expected an initialiser, got %s", value_kind_name(&v));
    diag_help(ev->ctx, d, "for example `normal(std = 0.02)`, `zeros`, `ones`, `fill(0.5)` or a nested list");
    return v_poison();
}

static bool says_yes(const char *word)
{
    static const char *const words[] = {"yes", "on", "true", "True", "y", "1"};
    for (size_t i = 0; i < COUNT_OF(words); i++)
        if (!strcmp(word, words[i]))
            return true;
    return false;
}

/* `activation = "gelu"`, `heads = "4"`: what a string says where it is no string. */
void advise_quotes(Eval *ev, Diag *d, const Value *v, const char *want, Span at, Env *env)
{
    bool number = strstr(want, "number") || strstr(want, "dimension");
    const char *end = v->word + strspn(v->word, "0123456789_.eE+-");
    Binding *b = env ? env_find(env, v->word) : NULL;
    size_t word = strlen(v->word);
    const char *such = strchr(want, '`'); /* a block such as `rope(base = 10_000)` */
    bool block = b && (b->is_let || (b->state == BIND_READY && b->value.kind == V_BLOCK));
    size_t n;
    bool here =
        at.file && source_text(ev->ctx, at.file, &n)[at.lo] == '"'; /* else it stands elsewhere, as in `--set` */
    if (number && end > v->word && !*end && !here) {
        diag_help(ev->ctx, d, "numbers are written without quotes: `%s`", v->word);
        Binding *let = env && at.file ? env_find(env, name_str(ev->ctx, span_text(ev, at))) : NULL;
        if (let && let->is_let && let->expr && let->expr->kind == AST_STR && let->expr->span.file == at.file)
            diag_label(ev->ctx, d, let->expr->span, "a string");
    } else if (number && end > v->word && !*end)
        diag_fix(ev->ctx, d, at, v->word, FIX_CERTAIN, "numbers are written without quotes: `%s`", v->word);
    else if (!strcmp(want, "true or false") && here)
        diag_fix(ev->ctx, d, at, says_yes(v->word) ? "true" : "false", FIX_MAYBE, "write `%s`",
                 says_yes(v->word) ? "true" : "false");
    else if (block && here && such && !strncmp(such + 1, v->word, word) && such[word + 1] == '(' &&
             such[word + 2] != ')')
        diag_help(ev->ctx, d, "a block is configured, without quotes: %s", such);
    else if (!number && (prim_find(v->word) || block))
        diag_fix(ev->ctx, d, at, v->word, FIX_CERTAIN, "names are written without quotes: `%s`", v->word);
    else if (!number)
        advise_name(ev, d, v->word, at);
}

Span setting_place(Eval *ev, Span at, Env *env)
{
    enum { DEEPEST = 16 };
    size_t n = 0;
    const char *text = at.file && env ? source_text(ev->ctx, at.file, &n) + at.lo : "";
    size_t word = 0;
    while (at.lo + word < at.hi && (text[word] == '_' || isalnum((unsigned char)text[word])))
        word++;
    if (!word || at.lo + word != at.hi || isdigit((unsigned char)*text))
        return at;
    Binding *b = env_find(env, name_of(ev->ctx, text, word));
    for (int i = 0; i < DEEPEST && b && b->is_let && !b->arg_span.file && b->env && b->expr && b->expr->kind == AST_ID;
         i++)
        b = env_find(b->env, b->expr->name);
    if (!b || !b->is_let || !b->origin || !b->arg_span.file)
        return at;
    Span value = b->expr ? b->expr->span : NO_SPAN;
    return value.file == b->arg_span.file && value.lo > b->arg_span.lo ? value : b->arg_span;
}

/* `D = range(24, 64, 8)` as one writes it who means steps of 8. */
static void advise_steps(Eval *ev, Diag *d, Span at)
{
    size_t n;
    const char *text = source_text(ev->ctx, at.file, &n) + at.lo, *value = text + strcspn(text, "=\n");
    double low, high, step;
    value = *value == '=' && strncmp(text, "range(", 6) ? value + 1 + strspn(value + 1, " ") : text;
    if (sscanf(value, "range(%lf , %lf , %lf )", &low, &high, &step) != 3 || !(step > 0))
        return;
    const char *counts =
        "`range` takes how many numbers, here %.6g from %.6g to %.6g; steps of %.6g are `range(%.6g, %.6g, %.6g)`";
    const char *rounds =
        "`range` takes how many numbers, here %.6g from %.6g to %.6g; with `round = %.6g` they are multiples of it";
    diag_help(ev->ctx, d, is_whole((high - low) / step) ? counts : rounds, step, low, high, step, low, high,
              (high - low) / step + 1);
}

void say_setting(Eval *ev, Diag *d, const Value *v, Span at, Span wanted)
{
    if (at.file == wanted.file && at.lo == wanted.lo)
        return;
    size_t n;
    const char *name = source_text(ev->ctx, wanted.file, &n) + wanted.lo;
    if (v->kind == V_LIST)
        diag_help(ev->ctx, d, "for several values write a sweep: `sweep NAME { vary { %.*s = %s } }`",
                  (int)(wanted.hi - wanted.lo), name, value_text(ev, v));
    if (v->kind == V_NUM)
        advise_steps(ev, d, at);
    diag_related(ev->ctx, d, wanted, "required here");
}

/* `D / 12` where it is not whole: the text, rounded. */
static void advise_round(Eval *ev, Diag *d, const Value *v, Span at)
{
    const char *text = span_text(ev, at);
    if (v->num < 0 || fabs(v->num) > 1e15 || !strncmp(text, "range(", 6))
        return;
    if (at.hi - at.lo < 60 && strcspn(text, " +-*/^(") < strlen(text) && !strchr(text, '='))
        diag_help(ev->ctx, d, "to the nearest whole number: `round(%s)` is %.0f", text, rint(v->num));
    else
        diag_help(ev->ctx, d, "the nearest whole number is %.0f", rint(v->num));
}

/* `n = [2, 4]` where one value is wanted; of a let and of a setting say_setting() tells the same with its name. */
static void advise_list(Eval *ev, Diag *d, const Value *v, const char *what, Span at, Span wanted)
{
    if (at.file == wanted.file && at.lo == wanted.lo && v->list->n > 1)
        diag_help(ev->ctx, d, "for several values write `let %s = %s` and a sweep: `sweep NAME { vary { %s = %s } }`",
                  what, value_text(ev, &v->list->v[0]), what, value_text(ev, v));
}

/* `qk_norm = true`: the block that `want` names, or none. */
static void instead_of_truth(Eval *ev, Diag *d, bool yes, const char *want, const char *what, Span at)
{
    const char *such = strchr(want, '`'), *end = such ? strrchr(want, '`') : NULL;
    size_t n;
    const char *text = at.file ? source_text(ev->ctx, at.file, &n) + at.lo : "";
    bool here = !strncmp(text, yes ? "true" : "false", yes ? 4 : 5);
    if (here && (!yes || end > such)) {
        Name with = yes ? name_of(ev->ctx, such + 1, (size_t)(end - such) - 1) : name_str(ev->ctx, "none");
        diag_fix(ev->ctx, d, at, with, FIX_MAYBE, "write `%s = %s`", what, with);
        if (yes)
            diag_help(ev->ctx, d, "without one it is `%s = none`", what);
    } else {
        diag_help(ev->ctx, d, "a block is named, as `rope(base = 10_000)`; without one it is `%s = none`", what);
    }
}

static Value type_error(Eval *ev, Value v, const char *want, Span at, const char *what, Env *env)
{
    Span wanted = at;
    at = setting_place(ev, at, env);
    if (v.kind == V_HOST && (!strcmp(want, "a dimension") || !strcmp(want, "a whole number"))) {
        Diag *d = err(ev, "E0202", at, "known only while training",
                      "`%s` is a dimension and cannot depend on a run-time quantity", what);
        diag_note(ev->ctx, d,
                  "shapes are fixed when the model is compiled; `step`, `tokens`, `progress`"
                  " and `eval.loss` exist at run time");
        diag_help(ev->ctx, d,
                  "to change a width during training use a growth step:\n"
                  "grow wider { when = step >= 10k, let hidden = 4096, ... }");
        return v_poison();
    }
    Diag *d;
    if (v.kind == V_REL)
        d = err(ev, "E0207", at, "", "`%s` must be %s, got the relative length %s", what, want, value_text(ev, &v));
    else if (v.kind == V_NUM)
        d = err(ev, "E0206", at, "", "`%s` must be %s, got %s", what, want, value_text(ev, &v));
    else
        d = err(ev, "E0206", at, "", "`%s` must be %s, got %s", what, want, value_kind_name(&v));
    if (v.kind == V_STR)
        advise_quotes(ev, d, &v, want, at, env);
    if (v.kind == V_STR && !d->helps.n)
        tell_attribute(ev, d, name_str(ev->ctx, what));
    advise_kind(ev, d, &v);
    if (v.kind == V_NUM && strstr(want, "whole"))
        advise_round(ev, d, &v, at);
    if (v.kind == V_BOOL && strstr(want, "block"))
        instead_of_truth(ev, d, v.num != 0, want, what, at);
    if (v.kind == V_LIST && !strstr(want, "list") && !strstr(want, "string"))
        advise_list(ev, d, &v, what, at, wanted);
    say_setting(ev, d, &v, at, wanted);
    return v_poison();
}

/* The run-time name inside an expression, for the caret of E0202. */
static const Ast *find_host(Eval *ev, const Ast *e, Env *env)
{
    HostVar var;
    if (e->kind == AST_ID && host_name(e->name, &var) && !env_find(env, e->name))
        return e;
    for (uint32_t i = 0; i < e->n; i++) {
        const Ast *f = e->kid[i] ? find_host(ev, e->kid[i], env) : NULL;
        if (f)
            return f;
    }
    return NULL;
}

/* A block of the library that is given by its name alone: what it lacks is missing where it is given. */
static Value given_here(Eval *ev, const BlockValue *b, Span at)
{
    BlockValue *here = NEW(ev->arena, BlockValue);
    *here = *b;
    here->span = at;
    return (Value){.kind = V_BLOCK, .block = here};
}

static const char *block_example(Eval *ev, const char *what)
{
    const char *norm = strstr(what, "norm"), *such = norm                          ? "rms_norm(eps = 1e-6)"
                                                     : !strcmp(what, "connection") ? "residual()"
                                                     : !strcmp(what, "position")   ? "rope(base = 10_000)"
                                                                                   : "linear()";
    return arena_printf(ev->arena, "a block such as `%s`", such);
}

static Value check_named_type(Eval *ev, Value v, const char *t, Span at, const char *what, Env *env)
{
    if (v.kind == V_POISON || v.kind == V_NONE)
        return v;
    if (!strcmp(t, "dim")) {
        Span wanted = at;
        bool fits = v.kind != V_NUM || (is_whole(v.num) && v.num >= 0 && v.num <= LARGEST_DIM);
        at = fits ? at : setting_place(ev, at, env);
        if (v.kind == V_NUM && v.num > LARGEST_DIM) {
            say_setting(ev, err(ev, "E0208", at, "", "`%s` = %.6g is too large for a dimension", what, v.num), &v, at,
                        wanted);
            return v_poison();
        }
        if (v.kind == V_DIM || (v.kind == V_NUM && is_whole(v.num) && v.num >= 0))
            return v.kind == V_NUM ? v_num(rint(v.num)) : v;
        if (v.kind == V_NUM && v.num < 0) {
            Diag *d = err(ev, "E0404", at, "", "`%s` = %s is negative", what, value_text(ev, &v));
            diag_help(ev->ctx, d, "a dimension is a whole number of 0 or more");
            say_setting(ev, d, &v, at, wanted);
            return v_poison();
        }
        if (v.kind == V_NUM) {
            Diag *d =
                err(ev, "E0302", at, "not a whole number", "dimension `%s` = %.6g is not a whole number", what, v.num);
            advise_round(ev, d, &v, at);
            say_setting(ev, d, &v, at, wanted);
            return v_poison();
        }
        return type_error(ev, v, "a dimension", at, what, env);
    }
    if (!strcmp(t, "int")) {
        if (v.kind == V_NUM && is_whole(v.num))
            return v_num(rint(v.num));
        return type_error(ev, v, "a whole number", at, what, env);
    }
    if (!strcmp(t, "float"))
        return is_host_number(&v) ? v : type_error(ev, v, "a number", at, what, env);
    if (!strcmp(t, "rel"))
        return v.kind == V_NUM || v.kind == V_REL ? v
                                                  : type_error(ev, v, "a number or a relative length", at, what, env);
    if (!strcmp(t, "bool"))
        return v.kind == V_BOOL ? v : type_error(ev, v, "true or false", at, what, env);
    if (!strcmp(t, "string"))
        return v.kind == V_STR ? v : type_error(ev, v, "a string", at, what, env);
    if (!strcmp(t, "list"))
        return v.kind == V_LIST ? v : type_error(ev, v, "a list", at, what, env);
    if (!strcmp(t, "fn"))
        return v.kind == V_FN || v.kind == V_BLOCK ? v : type_error(ev, v, "a function such as `gelu`", at, what, env);
    if (!strcmp(t, "block") && v.kind == V_BLOCK && !v.block->configured && in_library(ev, v.block->span) &&
        !in_library(ev, at))
        v = given_here(ev, v.block, at);
    if (!strcmp(t, "block"))
        return v.kind == V_BLOCK || v.kind == V_SUB || v.kind == V_FN
                   ? v
                   : type_error(ev, v, block_example(ev, what), at, what, env);
    if (!strcmp(t, "tensor"))
        return v.kind == V_TENSOR ? v : ev->build ? to_tensor(ev, v, at) : type_error(ev, v, "a tensor", at, what, env);
    if (!strcmp(t, "name"))
        return v.kind == V_WORD ? v : type_error(ev, v, "a name", at, what, env);
    err(ev, "E0102", at, "", "there is no type `%s` for `%s`", t, what);
    return v_poison();
}

bool is_word_of(Eval *ev, const Value *v, const Name *names, size_t n, Span at, const char *what, Diag **d)
{
    Buf list = buf_new(ev->arena);
    *d = NULL;
    for (size_t i = 0; i < n; i++) {
        buf_printf(&list, "%s`%s`", list_gap(i, n, " or "), names[i]);
        if ((v->kind == V_WORD && !strcmp(v->word, names[i])) || (v->kind == V_NONE && !strcmp("none", names[i])))
            return true;
    }
    if (v->kind == V_POISON)
        return false;
    *d = err(ev, "E0205", at, "", "`%s` must be %s", what, list.s);
    const Foreign *f = v->kind == V_WORD ? foreign_next(FOREIGN_VALUE, v->word, NULL) : NULL;
    bool meant = false;
    for (size_t i = 0; f && f->ours && i < n; i++)
        meant = meant || !strcmp(names[i], f->ours);
    if (meant)
        advise_name(ev, *d, v->word, at);
    else if (v->kind == V_WORD)
        suggest(ev, *d, v->word, names, n, at);
    return false;
}

static Value check_one_of(Eval *ev, Value v, const Ast *type, Span at, const char *what)
{
    const Ast *args = type->kid[1];
    VEC(Name) names = {0};
    Diag *d;
    for (uint32_t i = 0; i < args->n; i++)
        vec_push(ev->arena, &names, args->kid[i]->name);
    return v.kind == V_POISON || is_word_of(ev, &v, names.v, names.n, at, what, &d) ? v : v_poison();
}

static bool is_one_of(const Ast *type)
{
    return type->kind == AST_CALL && type->kid[0]->kind == AST_ID && !strcmp(type->kid[0]->name, "one_of");
}

/* The number of axes, and the extents that are written as numbers. */
static bool literal_shape_fits(Eval *ev, const Value *v, const Ast *type)
{
    const Shape *s = shape_of(ev->build->g, v->val);
    for (uint32_t i = 0; i < type->n; i++)
        if (type->kid[i]->kind == AST_DOTS)
            return true;
    bool fits = s->rank == type->n;
    for (uint32_t i = 0; fits && i < type->n; i++)
        if (type->kid[i]->kind == AST_NUM)
            fits = dim_static(s->d[i]) && (double)s->d[i].n == ast_number(ev->ctx, type->kid[i]).value;
    return fits;
}

Value check_type(Eval *ev, Value v, const Ast *type, Span at, const char *what, Env *env)
{
    if (type->kind == AST_ID) {
        if (!strcmp(type->name, "init"))
            return v.kind == V_NONE ? v : to_init(ev, v, at);
        return check_named_type(ev, v, type->name, at, what, env);
    }
    if (is_one_of(type))
        return check_one_of(ev, v, type, at, what);
    if (type->kind == AST_LIST && v.kind == V_LIST)
        v = to_tensor(ev, v, at);
    if (type->kind == AST_LIST && v.kind == V_TENSOR && !literal_shape_fits(ev, &v, type)) {
        err(ev, "E0312", at, "", "`%s` is declared as %s, got %s", what, expr_text(ev, type), shape_words(ev, &v));
        return v_poison();
    }
    return v;
}

Value eval_as(Eval *ev, const Ast *e, Env *env, Scope *scope, const Ast *type, const char *what)
{
    Value v;
    if ((type->kind == AST_ID && !strcmp(type->name, "name")) || is_one_of(type))
        v = eval_word(ev, e, env, scope);
    else
        v = eval(ev, e, env, scope);
    Span at = e->span;
    bool inherited = e->kind == AST_FIELD && e->kid[0]->kind == AST_ID && !strcmp(e->kid[0]->name, "scope");
    Attribute *set = inherited ? scope_find(scope, e->name, NULL) : NULL;
    if (set)
        at = set->expr->span;
    if (v.kind == V_HOST && type->kind == AST_ID && (!strcmp(type->name, "dim") || !strcmp(type->name, "int"))) {
        const Ast *h = find_host(ev, e, env);
        if (h) {
            Diag *d = err(ev, "E0202", h->span, "known only while training",
                          "`%s` is a dimension and cannot depend on `%s`", what, h->name);
            diag_note(ev->ctx, d,
                      "shapes are fixed when the model is compiled; `step`, `tokens`, `progress`"
                      " and `eval.loss` exist at run time");
            diag_help(ev->ctx, d,
                      "to change a width during training use a growth step:\n"
                      "grow wider { when = step >= 10k, let %s = 4096, ... }",
                      what);
            return v_poison();
        }
    }
    return check_type(ev, v, type, at, what, env);
}

/* ---- shapes ---- */

bool value_dim(Eval *ev, const Value *v, Span at, const char *what, Dim *out)
{
    if (v->kind == V_DIM) {
        *out = v->dim;
        return true;
    }
    if (v->kind == V_NUM && v->num > LARGEST_DIM) {
        err(ev, "E0208", at, "", "%.6g is too large for a dimension", v->num);
        return false;
    }
    if (v->kind == V_NUM && is_whole(v->num) && v->num >= 0) {
        *out = DIM((int64_t)rint(v->num));
        return true;
    }
    if (v->kind == V_NUM && v->num < 0)
        diag_help(ev->ctx, err(ev, "E0404", at, "", "dimension %s is negative", what ? what : value_text(ev, v)),
                  "a dimension is a whole number of 0 or more");
    else if (v->kind == V_NUM)
        err(ev, "E0302", at, "not a whole number", "dimension %s = %.6g is not a whole number", what ? what : "here",
            v->num);
    else if (v->kind != V_POISON)
        type_error(ev, *v, "a dimension", at, what ? what : "shape", NULL);
    return false;
}

bool eval_shape(Eval *ev, const Ast *e, Env *env, Scope *scope, Shape *out, const char *what)
{
    *out = (Shape){0};
    Value whole = v_none();
    size_t n = e->n;
    if (e->kind != AST_LIST) {
        whole = eval(ev, e, env, scope);
        if (whole.kind != V_LIST) {
            if (whole.kind != V_POISON)
                err(ev, "E0206", e->span, "", "`%s` must be a list of dimensions", what);
            return false;
        }
        n = whole.list->n;
    }
    for (size_t i = 0; i < n; i++) {
        const Ast *el = e->kind == AST_LIST ? e->kid[i] : e;
        if (e->kind == AST_LIST && el->kind == AST_DOTS) {
            const ValueList *dots = env_dots(env);
            if (!dots) {
                Diag *d = err(ev, "E0308", el->span, "",
                              "`..` stands for nothing here: no tensor of this block has leading dimensions");
                diag_note(
                    ev->ctx, d,
                    "`..` are the leading extents of a tensor that the block reads, and the same in all its shapes");
                diag_help(ev->ctx, d,
                          "write `(x: [.., D])` in the header of the block, or the extents that are meant, as in `[B, "
                          "T, D]`");
                return false;
            }
            for (size_t k = 0; k < dots->n; k++) {
                if (out->rank == MAX_RANK)
                    break;
                Dim d;
                if (!value_dim(ev, &dots->v[k], el->span, NULL, &d))
                    return false;
                out->d[out->rank++] = d;
            }
            continue;
        }
        if (out->rank == MAX_RANK) {
            err(ev, "E0008", e->span, "", "limit `rank` reached: %d", MAX_RANK);
            return false;
        }
        Value v = e->kind == AST_LIST ? eval(ev, el, env, scope) : whole.list->v[i];
        if (!value_dim(ev, &v, el->span, expr_text(ev, el), &out->d[out->rank]))
            return false;
        out->rank++;
    }
    Dim size;
    if (!shape_size(out, &size)) {
        err(ev, "E0008", e->span, "", "limit `tensor size` reached: 2^53 elements");
        return false;
    }
    return true;
}

/* ---- signatures ---- */

static bool known_type(const Ast *type)
{
    static const char *const names[] = {"dim",  "int", "float", "rel",  "bool",  "string",
                                        "name", "fn",  "init",  "list", "block", "tensor"};
    if (type->kind == AST_CALL && type->kid[0]->kind == AST_ID && !strcmp(type->kid[0]->name, "one_of")) {
        bool words = type->kid[1]->n > 0;
        for (uint32_t i = 0; i < type->kid[1]->n; i++)
            words &= type->kid[1]->kid[i]->kind == AST_ID;
        return words;
    }
    for (size_t i = 0; type->kind == AST_ID && i < COUNT_OF(names); i++)
        if (!strcmp(names[i], type->name))
            return true;
    return type->kind == AST_LIST;
}

static void check_shape_type(Eval *ev, const Ast *type)
{
    for (uint32_t i = 0; type->kind == AST_LIST && i < type->n; i++) {
        AstKind kind = type->kid[i]->kind;
        if (kind == AST_STAR || (kind == AST_DOTS && i > 0)) {
            Diag *d =
                err(ev, "E0308", type->kid[i]->span, "",
                    kind == AST_STAR ? "`*` has no meaning in a shape" : "`..` stands first in a shape, and once");
            diag_help(ev->ctx, d, "`_` stands for any one dimension");
        }
    }
}

static void check_duplicates(Eval *ev, const Ast *block)
{
    for (int a = 0; a < 2; a++)
        for (uint32_t i = 0; block->kid[a] && i < block->kid[a]->n; i++) {
            const Ast *one = block->kid[a]->kid[i];
            for (int b = 0; b <= a; b++)
                for (uint32_t k = 0; block->kid[b] && k < (b == a ? i : block->kid[b]->n); k++)
                    if (block->kid[b]->kid[k]->name == one->name) {
                        Diag *d = err(ev, "E0112", one->name_span, "", "`%s` is declared twice", one->name);
                        diag_label(ev->ctx, d, block->kid[b]->kid[k]->name_span, "first declared here");
                    }
        }
}

void block_check_signature(Eval *ev, const Ast *block)
{
    for (uint32_t i = 0; i < block->kid[0]->n; i++) {
        const Ast *type = block->kid[0]->kid[i]->kid[0];
        check_shape_type(ev, type);
        if (known_type(type))
            continue;
        Diag *d = err(ev, "E0102", type->span, "", "there is no type `%s`", expr_text(ev, type));
        diag_note(ev->ctx, d,
                  "types are dim, int, float, rel, bool, string, name, fn, init, list, block,"
                  " one_of(word, ...) and shapes such as [n, m]");
        const Foreign *f = type->kind == AST_ID ? foreign_next(FOREIGN_TYPE, type->name, NULL) : NULL;
        if (f && f->ours)
            diag_fix(ev->ctx, d, type->span, f->ours, FIX_CERTAIN, "write `%s`", f->ours);
        else if (f)
            diag_help(ev->ctx, d, "%s", f->text);
    }
    for (uint32_t i = 0; block->kid[1] && i < block->kid[1]->n; i++) {
        const Ast *par = block->kid[1]->kid[i], *type = par->kid[0];
        check_shape_type(ev, type);
        bool sub = type->kind == AST_ID && !strcmp(type->name, "block");
        if (type->kind != AST_LIST && !sub)
            err(ev, "E0206", type->span, "", "`%s` is a tensor, so its type is a shape such as [.., D]", par->name);
        else if (par->kid[1])
            err(ev, "E0110", par->kid[1]->span, "", "a tensor has no default");
    }
    if (block->kid[2]) {
        check_shape_type(ev, block->kid[2]);
        if (block->kid[2]->kind != AST_LIST)
            err(ev, "E0206", block->kid[2]->span, "", "the result of a block is declared as a shape such as [.., D]");
    }
    check_duplicates(ev, block);
    for (uint32_t i = 0; i < block->kid[3]->n; i++)
        if (block->kid[3]->kid[i]->kind == AST_BLOCK)
            block_check_signature(ev, block->kid[3]->kid[i]);
}
