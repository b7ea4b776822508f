/* check_require.c - the checks in the bodies of blocks: what a block asks of those who use it.
 *
 * In:  a `check` and the names around it.   Out: whether it holds; if not, its message.
 * The one idea: a block speaks of its own parameters and dimensions, a message points at what the user wrote.
 * So names are followed outwards: a parameter to its argument, a part of a list to the literal it stands
 * in, a dimension to the name that the caller gave it.
 */
#include "attribute.h"
#include "check_prim.h"

/* ---- from names to the user's text ---- */

/* What an expression stands for: through names, arguments and entries of lists. */
typedef struct RequireSource {
    const Ast *ast;
    Env *env;
    Span span; /* the last text on the way that is not in the library */
} RequireSource;

static RequireSource follow(Eval *ev, const Ast *e, Env *env, Scope *scope, int depth);

static void step_to(Eval *ev, RequireSource *s, const Ast *e, Env *env, Scope *scope, int depth)
{
    Span had = s->span;
    *s = follow(ev, e, env, scope, depth + 1);
    if (!s->span.file)
        s->span = had;
}

static RequireSource follow(Eval *ev, const Ast *e, Env *env, Scope *scope, int depth)
{
    enum { DEEPEST = 16 };
    while (e->kind == AST_PAREN)
        e = e->kid[0];
    RequireSource s = {e, env, in_library(ev, e->span) ? NO_SPAN : e->span};
    if (depth > DEEPEST)
        return s;
    if (e->kind == AST_ID) {
        Binding *b = env_find(env, e->name);
        if (b && b->arg_span.file && !in_library(ev, b->arg_span))
            s.span = b->arg_span;
        if (b && b->expr && b->env)
            step_to(ev, &s, b->expr, b->env, scope, depth);
    } else if (e->kind == AST_INDEX) {
        s = follow(ev, e->kid[0], env, scope, depth + 1);
        for (uint32_t i = 0; i < e->kid[1]->n && s.ast->kind == AST_LIST; i++) {
            double k = 0;
            if (!eval_number(ev, e->kid[1]->kid[i], env, scope, "index", &k) || k < 1 || k > s.ast->n)
                break;
            step_to(ev, &s, s.ast->kid[(size_t)k - 1], s.env, scope, depth);
        }
    }
    return s;
}

/* The first argument an expression speaks of that the user wrote. */
static bool blamed_argument(Eval *ev, const Ast *e, Env *env, Span *out)
{
    if (e->kind == AST_ID) {
        Binding *b = env_find_local(env, e->name);
        if (b && b->is_param_of_block && b->arg_span.file && !in_library(ev, b->arg_span)) {
            *out = b->arg_span;
            return true;
        }
    }
    for (uint32_t i = 0; i < e->n; i++)
        if (e->kid[i] && blamed_argument(ev, e->kid[i], env, out))
            return true;
    return false;
}

static const Ast *attribute(const Ast *check, const char *name)
{
    const Ast *items = check->kid[2];
    for (uint32_t i = 0; items && i < items->n; i++)
        if (items->kid[i]->kind == AST_SET && !strcmp(items->kid[i]->kid[0]->name, name))
            return items->kid[i]->kid[1];
    return NULL;
}

static const char *text_of(Eval *ev, const Site *s, const Ast *check, const char *name)
{
    const Ast *a = attribute(check, name);
    return a && a->kind == AST_STR ? interpolate(ev, a->name, s->env, s->scope, a->span) : NULL;
}

/* What a failed check points at: the part of an argument that `at` names, or the caller with `at = caller`; else
 * the argument the condition speaks of, else where the block was configured, else where it is applied. */
static Span place_of_check(Eval *ev, const Site *s, const Ast *check)
{
    Span at = s->at;
    const Ast *asked = attribute(check, "at");
    if (asked && asked->kind == AST_ID && !strcmp(asked->name, "caller"))
        return at;
    if (asked) {
        RequireSource part = follow(ev, asked, s->env, s->scope, 0);
        if (part.span.file)
            return part.span;
    }
    if (!blamed_argument(ev, check->kid[0], s->env, &at) && s->configured.file && !in_library(ev, s->configured))
        at = s->configured;
    return at;
}

/* ---- where a dimension comes from ---- */

/* Dimension `back` from the end of "[B, T, heads, head_dim]", when it is a plain name. */
static Name dim_name(Eval *ev, const char *shape, size_t back)
{
    const char *end = strrchr(shape, ']');
    for (; end && back > 0; back--)
        for (end--; end > shape && *end != ','; end--)
            ;
    const char *start = end;
    while (start && start > shape && start[-1] != ',' && start[-1] != '[' && start[-1] != ' ')
        start--;
    bool name = start && start > shape && end > start;
    for (const char *p = start; name && p < end; p++)
        name = *p == '_' || (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'z') || (*p >= 'A' && *p <= 'Z');
    return name ? name_of(ev->ctx, start, (size_t)(end - start)) : NULL;
}

/* The binding of the caller that a dimension of this block got its extent from. */
static Binding *dim_origin(Eval *ev, const Site *s, Name dim)
{
    const Ast *tensors = s->def->ast->kid[1];
    const Frame *f = ev->frame;
    if (!f || f->def->ast != s->def->ast || !f->up || !f->up->env)
        return NULL;
    for (uint32_t i = 0; tensors && i < tensors->n && i < f->n_x; i++) {
        const Ast *shape = tensors->kid[i]->kid[0];
        for (uint32_t k = 0; shape->kind == AST_LIST && f->x[i].shape_text && k < shape->n; k++) {
            if (shape->kid[k]->kind != AST_ID || shape->kid[k]->name != dim)
                continue;
            Name name = dim_name(ev, f->x[i].shape_text, shape->n - 1 - k);
            return name ? env_find_local(*f->up->env, name) : NULL;
        }
    }
    return NULL;
}

/* A second label at the argument of the caller that made the dimension: `head_dim = D / heads = 390 / 6 = 65`. */
static void label_origin(Eval *ev, const Site *s, Diag *d, const Ast *e)
{
    Binding *local = e->kind == AST_ID ? env_find_local(s->env, e->name) : NULL;
    Binding *b = local && local->is_dim ? dim_origin(ev, s, e->name) : NULL;
    if (b && b->is_let && b->expr) {
        const Ast *made = b->expr;
        while (made->kind == AST_COND || made->kind == AST_PAREN) {
            Value c = made->kind == AST_COND ? eval(ev, made->kid[0], b->env, s->scope) : v_none();
            made = made->kid[made->kind == AST_PAREN ? 0 : c.kind == V_BOOL && c.num != 0 ? 1 : 2];
        }
        Span at;
        if (blamed_argument(ev, made, b->env, &at) && made->kind == AST_ID)
            diag_label(ev->ctx, d, at, "%s = %s", b->name, value_text(ev, &b->value));
        else if (blamed_argument(ev, made, b->env, &at))
            diag_label(ev->ctx, d, at, "%s = %s = %s = %s", b->name, expr_text(ev, made),
                       expr_values(ev, made, b->env, s->scope), value_text(ev, &b->value));
        return;
    }
    for (uint32_t i = 0; i < e->n; i++)
        if (e->kid[i])
            label_origin(ev, s, d, e->kid[i]);
}

/* Whether an expression is made of an extent of a tensor or of the width in scope. */
static bool speaks_of_extent(const Ast *e, Env *env)
{
    Binding *b = e->kind == AST_ID ? env_find_local(env, e->name) : NULL;
    if ((b && b->is_dim) || (e->kind == AST_FIELD && !strcmp(e->name, "width")))
        return true;
    for (uint32_t i = 0; i < e->n; i++)
        if (e->kid[i] && speaks_of_extent(e->kid[i], env))
            return true;
    return false;
}

static bool asks_divisibility(const Ast *e, Env *env)
{
    if (e->kind == AST_OP && !strcmp(e->name, "mod") && speaks_of_extent(e->kid[0], env))
        return true;
    for (uint32_t i = 0; i < e->n; i++)
        if (e->kid[i] && asks_divisibility(e->kid[i], env))
            return true;
    return false;
}

/* The argument `round` of the width solver that the layer's width comes from, or the call when it has none, for a
 * check that asks for a width that something divides; else NO_SPAN. */
static Span rounding(Eval *ev, const Site *s, const Ast *condition)
{
    Attribute *width = scope_find(s->scope, name_str(ev->ctx, "width"), NULL);
    if (!width || !asks_divisibility(condition, s->env))
        return NO_SPAN;
    RequireSource made = follow(ev, width->expr, width->env, s->scope, 0);
    const Ast *callee = made.ast->kind == AST_CALL ? made.ast->kid[0] : NULL;
    if (!callee || callee->kind != AST_ID || env_find(made.env, callee->name))
        return NO_SPAN;
    Name round = name_str(ev->ctx, "round");
    const Prim *solver = prim_find(callee->name);
    if (!solver || !prim_has_argument(solver, round))
        return NO_SPAN;
    for (uint32_t i = 0; i < made.ast->kid[1]->n; i++)
        if (made.ast->kid[1]->kid[i]->kind == AST_NAMED && made.ast->kid[1]->kid[i]->name == round)
            return made.ast->kid[1]->kid[i]->span;
    return made.ast->span;
}

/* ---- the check ---- */

static void attributes_known(Eval *ev, const Ast *items)
{
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *s = items->kid[i];
        Name key = s->kind == AST_SET && !s->kid[0]->n ? s->kid[0]->name : NULL;
        bool at = key && !strcmp(key, "at");
        bool fits = at ? s->kid[1]->kind == AST_ID || s->kid[1]->kind == AST_INDEX : key && s->kid[1]->kind == AST_STR;
        if (key && strcmp(key, "note") != 0 && strcmp(key, "help") != 0)
            set_before(ev, items, i);
        if (s->kind == AST_OFF || (fits && attribute_find("check", key)))
            continue;
        const char *known;
        size_t n;
        Name *names = attribute_names(ev->ctx, ev->arena, "check", false, &n, &known);
        Diag *d = err(ev, "E0101", s->span, "unknown attribute", "a `check` has no such attribute");
        diag_note(ev->ctx, d, "its attributes are %s: strings, and `at`: caller, a parameter or an entry of one",
                  known);
        if (key && !attribute_find("check", key))
            suggest_attribute(ev, d, key, names, n, s->kid[0]->span);
    }
}

static void fails(Eval *ev, const Site *s, const Ast *it)
{
    const char *code = text_of(ev, s, it, "code"), *label = text_of(ev, s, it, "label"),
               *also = text_of(ev, s, it, "also");
    const char *text = it->kid[1]
                           ? interpolate(ev, it->kid[1]->name, s->env, s->scope, it->kid[1]->span)
                           : arena_printf(ev->arena, "`%s` needs %s", s->def->ast->name, expr_text(ev, it->kid[0]));
    Span round = rounding(ev, s, it->kid[0]);
    if (round.file)
        code = "E0403";
    Diag *d = err(ev, code ? code : "E0802", place_of_check(ev, s, it), label ? label : "", "%s", text);
    if (also && s->configured.file && !in_library(ev, s->configured))
        diag_label(ev->ctx, d, s->configured, "%s", also);
    label_origin(ev, s, d, it->kid[0]);
    diag_label(ev->ctx, d, round, "the schedule rounds its widths here");
    for (uint32_t i = 0; it->kid[2] && i < it->kid[2]->n; i++) {
        const Ast *a = it->kid[2]->kid[i];
        bool note = a->kind == AST_SET && !strcmp(a->kid[0]->name, "note");
        bool help = a->kind == AST_SET && !strcmp(a->kid[0]->name, "help");
        if ((!note && !help) || a->kid[1]->kind != AST_STR)
            continue;
        const char *t = interpolate(ev, a->kid[1]->name, s->env, s->scope, a->kid[1]->span);
        if (note)
            diag_note(ev->ctx, d, "%s", t);
        else
            diag_help(ev->ctx, d, "%s", t);
    }
    diag_related(ev->ctx, d, (Span){it->span.file, it->span.lo, it->kid[0]->span.hi}, "required here");
}

bool block_require(Eval *ev, const Site *s, const Ast *it)
{
    attributes_known(ev, it->kid[2]);
    Value v = eval(ev, it->kid[0], s->env, s->scope);
    if (v.kind == V_BOOL && v.num != 0)
        return true;
    if (v.kind == V_BOOL)
        fails(ev, s, it);
    else if (v.kind != V_POISON)
        err(ev, "E0206", it->kid[0]->span, "", "a `check` must be true or false, got %s", value_kind_name(&v));
    return false;
}
