/* attribute.c - see attribute.h.
 *
 * In:  a node's name.   Out: its attributes. The one idea: one table for the checker, the resolver and
 * the documentation, so that none can know a name that another does not.
 */
#include "check.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

static const NodeDoc nodes[] = {
#define NODE(name, where, text) {name, where, text},
#define ATTRIBUTE(...)
#include "attributes.def"
#undef NODE
#undef ATTRIBUTE
};
static const AttributeRow attributes[] = {
#define NODE(name, where, text)
#define ATTRIBUTE(node, name, takes, fallback, example, text) {node, name, {takes}, fallback, example, text},
#define RANGE(values, type, ...)                              values, TAKES_##type, __VA_ARGS__
#define TYPE(values, type)                                    values, TAKES_##type, 0, 0, false, 0
#define OWN(values)                                           TYPE(values, OWN)
#define BOOL                                                  TYPE("true, false", BOOL)
#define WORDS(words)                                          TYPE(words, WORD)
#define NUMBER(least)                                         RANGE("a number from " #least, NUMBER, least, INFINITY, false, 1)
#define SHARE                                                 RANGE("a number in [0, 1)", NUMBER, 0, 1, true, 1)
#define WHOLE(least)                                          RANGE("a whole number from " #least, WHOLE, least, 9e15 - 1, false, 1)
#define WHOLE_TO(least, most)                                 RANGE("a whole number from " #least " to " #most, WHOLE, least, most, false, 1)
#define NUMBERS(count, values)                                RANGE(values, NUMBERS, -INFINITY, INFINITY, false, count)
#define SHARES(count, values)                                 RANGE(values, NUMBERS, 0, 1, true, count)
#define OF_RUN(least, most, values)                           RANGE(values, OF_RUN, least, most, false, 1)
#define STEPS(values)                                         TYPE(values, STEPS)
#define SEQS(values)                                          TYPE(values, SEQS)
#define LENGTH(values)                                        TYPE(values, LENGTH)
#define PART_OF_RUN(values)                                   TYPE(values, PART_OF_RUN)
#define NAMES(values)                                         TYPE(values, NAMES)
#define ONE_OF(values)                                        TYPE(values, ONE_OF)
#define FILL(values)                                          TYPE(values, FILL)
#include "attributes.def"
#undef NODE
#undef ATTRIBUTE
};

size_t node_doc_count(void) { return COUNT_OF(nodes); }

const NodeDoc *node_doc_at(size_t i) { return &nodes[i]; }

const NodeDoc *node_doc_find(const char *name)
{
    for (size_t i = 0; i < COUNT_OF(nodes); i++)
        if (!strcmp(nodes[i].name, name))
            return &nodes[i];
    return NULL;
}

bool node_stands_in(const NodeDoc *node, const char *inside)
{
    size_t n = strlen(inside);
    for (const char *p = node->where; *p; p += *p == ' ') {
        size_t word = strcspn(p, " ");
        if (word == n && !strncmp(p, inside, n))
            return true;
        p += word;
    }
    return false;
}

size_t attribute_count(void) { return COUNT_OF(attributes); }

const AttributeRow *attribute_at(size_t i) { return &attributes[i]; }

const AttributeRow *attribute_find(const char *node, const char *name)
{
    for (size_t i = 0; i < COUNT_OF(attributes); i++)
        if (attributes[i].name[0] == name[0] && !strcmp(attributes[i].name, name) && !strcmp(attributes[i].node, node))
            return &attributes[i];
    return NULL;
}

double attribute_number(const AttributeRow *a)
{
    char *end;
    double x = a && a->fallback ? strtod(a->fallback, &end) : NAN;
    return a && a->fallback && end != a->fallback ? x : NAN;
}

Name *attribute_names(Ctx *ctx, Arena *arena, const char *node, bool with_nodes, size_t *n, const char **text)
{
    Name *out = NEW_ARRAY(arena, Name, COUNT_OF(attributes) + COUNT_OF(nodes));
    Buf b = buf_new(arena);
    *n = 0;
    for (size_t i = 0; i < COUNT_OF(attributes); i++)
        if (!strcmp(attributes[i].node, node))
            out[(*n)++] = name_str(ctx, attributes[i].name);
    for (size_t i = 0; with_nodes && i < COUNT_OF(nodes); i++)
        if (node_stands_in(&nodes[i], node) && strcmp(nodes[i].name, "let") && strcmp(nodes[i].name, "check"))
            out[(*n)++] = name_str(ctx, nodes[i].name);
    for (size_t i = 0; i < *n; i++)
        buf_printf(&b, "%s%s", list_gap(i, *n, ", "), out[i]);
    *text = b.s;
    return out;
}

const char *attribute_next_value(const AttributeRow *a, const char **at, size_t *n)
{
    const char *p = *at ? *at + strspn(*at, ", ") : a->values, *start = p;
    int depth = 0;
    for (; *p && (depth || strncmp(p, ", ", 2) != 0); p++)
        depth += (*p == '(' || *p == '[') - (*p == ')' || *p == ']');
    *n = (size_t)(p - start);
    *at = p;
    return *n ? start : NULL;
}

bool attribute_has_word(const AttributeRow *a, const char *word)
{
    size_t n;
    for (const char *at = NULL, *v; (v = attribute_next_value(a, &at, &n));)
        if (strcspn(v, "(,") == strlen(word) && !strncmp(v, word, strlen(word)))
            return true;
    return false;
}

/* ---- values ---- */

Name attribute_word(Eval *ev, const AttributeRow *row, const Ast *e, Env *env)
{
    VEC(Name) names = {0};
    size_t n;
    for (const char *at = NULL, *v; (v = attribute_next_value(row, &at, &n));)
        vec_push(ev->arena, &names, name_of(ev->ctx, v, n));
    Value v = eval_word(ev, e, env, NULL);
    Diag *d;
    bool good = is_word_of(ev, &v, names.v, names.n, e->span, row->name, &d);
    if (d)
        diag_note(ev->ctx, d, "%s", row->text);
    return good ? v.word : NULL;
}

/* Training computes in float32: a number that is 0, 1 or infinite there is another one than the file says. */
static bool is_float(Eval *ev, const AttributeRow *row, double x, Span at)
{
    bool none = fabs(x) < (double)FLT_MIN;
    if (row->below && x < row->most && (double)(float)x == row->most) {
        err(ev, "E0208", at, "", "`%s`: %.12g is %g in float32", row->name, x, row->most);
        return false;
    }
    if (x == 0 || (!none && fabs(x) <= (double)FLT_MAX))
        return true;
    Diag *d = err(ev, "E0208", at, "", "`%s` = %.6g is %s in float32", row->name, x, none ? "0" : "infinite");
    diag_note(ev->ctx, d, "training computes in float32, whose numbers other than 0 lie between 1.18e-38 and 3.4e+38");
    return false;
}

bool attribute_in_range(Eval *ev, const AttributeRow *row, double x, Span at)
{
    bool whole = row->type == TAKES_WHOLE, low = x < row->least, high = row->below ? x >= row->most : x > row->most;
    if (!low && !high && !isnan(x))
        return whole || is_float(ev, row, x, at);
    if (low && row->least == 0)
        err(ev, "E0208", at, "", "`%s` must not be negative", row->name);
    else if (low || isnan(x))
        err(ev, whole ? "E0206" : "E0208", at, "", "`%s` must be %s, got %.6g", row->name, row->values, x);
    else if (!row->below)
        err(ev, "E0208", at, "", "`%s` must be at most %.16g", row->name, row->most);
    else
        err(ev, "E0208", at, "", "`%s` must be in [%g, %g)", row->name, row->least, row->most);
    return false;
}

/* Of what is no number: what the row takes. The message is the last one, if it is filed behind `before`. */
static void advise_number(Eval *ev, const AttributeRow *row, const Ast *e, size_t before)
{
    size_t n = diag_count(ev->ctx);
    Diag *d = n > before ? (Diag *)diag_get(ev->ctx, n - 1) : NULL;
    bool off = row->type == TAKES_NUMBER && row->least == 0 && !isfinite(row->most);
    if (!d || d->level != LEVEL_ERROR || d->helps.n)
        return;
    if (off && e->kind == AST_ID && !strcmp(e->name, "none"))
        diag_fix(ev->ctx, d, e->span, "0", FIX_MAYBE, "for none write `%s = 0`", row->name);
    else if (row->example)
        diag_help(ev->ctx, d, "it is %s, for example `%s`", row->values, row->example);
    else
        diag_help(ev->ctx, d, "it is %s", row->values);
}

bool attribute_number_of(Eval *ev, const AttributeRow *row, const Ast *e, Env *env, Scope *scope, double *out)
{
    double x;
    size_t before = diag_count(ev->ctx);
    if (!eval_number(ev, e, env, scope, row->name, &x)) {
        advise_number(ev, row, e, before);
        return false;
    }
    if (!attribute_in_range(ev, row, x, e->span))
        return false;
    if (row->type == TAKES_WHOLE && !is_whole(x)) {
        err(ev, "E0206", e->span, "", "`%s` must be %s, got %.6g", row->name, row->values, x);
        return false;
    }
    *out = x;
    return true;
}

bool attribute_numbers_of(Eval *ev, const AttributeRow *row, const Value *v, const Ast *e, double *out)
{
    static const char *const count[] = {"no", "one", "two", "three"};
    size_t n = (size_t)row->count;
    bool good = v->kind == V_LIST && v->list->n == n;
    for (size_t i = 0; good && i < n; i++)
        good = v->list->v[i].kind == V_NUM;
    if (!good && v->kind != V_POISON)
        diag_help(ev->ctx, err(ev, "E0206", e->span, "", "`%s` is a list of %s numbers", row->name, count[n]),
                  "for example `%s`", row->example ? row->example : row->fallback);
    for (size_t i = 0; good && i < n; i++) {
        out[i] = v->list->v[i].num;
        good = attribute_in_range(ev, row, out[i], e->kind == AST_LIST ? e->kid[i]->span : e->span);
    }
    return good;
}

/* Whether a word that is neither a call nor `none` is a value. */
bool attribute_has_bare(const AttributeRow *row)
{
    size_t n;
    for (const char *at = NULL, *v; (v = attribute_next_value(row, &at, &n));)
        if (*v != '"' && strcspn(v, "(") >= n && (n != 4 || strncmp(v, "none", 4) != 0))
            return true;
    return false;
}

/* "`a`, `b(...)` or the name of a file": values whose text is only an example of theirs are cut short. */
static const char *values_text(Eval *ev, const AttributeRow *row)
{
    Buf b = buf_new(ev->arena);
    size_t n, next;
    const char *at = NULL, *v = attribute_next_value(row, &at, &n), *then;
    for (size_t i = 0; v; v = then, n = next, i++) {
        then = attribute_next_value(row, &at, &next);
        size_t name = strcspn(v, "(");
        bool example = name < n && memchr(v, '"', n);
        buf_puts(&b, list_gap(i, then ? i + 2 : i + 1, " or "));
        if (*v == '"')
            buf_puts(&b, "the name of a file");
        else
            buf_printf(&b, "`%.*s%s`", (int)(example ? name : n), v, example ? "(...)" : "");
    }
    return b.s;
}

Diag *attribute_refuses(Eval *ev, const AttributeRow *row, Span at)
{
    const char *code = attribute_has_bare(row) ? "E0205" : "E0206";
    return err(ev, code, at, "", "`%s` must be %s", row->name, values_text(ev, row));
}

/* A word that is a value by itself: `fp32`, and not `mixed`, which takes arguments. */
static bool has_bare_word(const AttributeRow *row, const char *word)
{
    size_t n;
    for (const char *at = NULL, *v; (v = attribute_next_value(row, &at, &n));)
        if (n == strlen(word) && !memcmp(v, word, n))
            return true;
    return false;
}

bool attribute_one_of(Eval *ev, const AttributeRow *row, const Value *v, Span at, Diag **d)
{
    const char *word = v->kind == V_SPEC   ? v->record->name
                       : v->kind == V_WORD ? v->word
                       : v->kind == V_NONE ? "none"
                                           : NULL;
    *d = NULL;
    if (v->kind == V_POISON ||
        (word && (v->kind == V_SPEC ? attribute_has_word(row, word) : has_bare_word(row, word))) ||
        (v->kind == V_STR && attribute_has_word(row, "\"a file\"")))
        return v->kind != V_POISON;
    *d = attribute_refuses(ev, row, at);
    if (v->kind == V_FN && attribute_has_word(row, v->prim->name)) {
        const char *with = arena_printf(ev->arena, "%s()", v->prim->name);
        bool whole = !strchr(v->prim->params, ':'); /* it takes no argument */
        if (whole)
            diag_fix(ev->ctx, *d, at, with, FIX_CERTAIN, "write `%s`", with);
    }
    return false;
}
