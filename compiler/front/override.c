/* override.c - settings from outside of what a file writes: --set, growth steps, points of a sweep.
 *
 * In:  a path and what is written there.   Out: the expression with the setting in it.
 * The one idea: a path leads to a let or to an attribute of a node, and from there into the expression, by arguments of calls
 * and entries of lists. A setting is the same tree with one part replaced, so later settings find what earlier ones left.
 */
#include "override.h"

#include "attribute.h"

/* ---- paths ---- */

static void put_part(Buf *b, const Ast *part, bool train)
{
    if (part->kind == AST_DOT ||
        (train && part->kid[0]->kind == AST_STR)) { /* `group["layer[*].ffn.*"]` of an optimizer */
        buf_printf(b, ".%s", part->kind == AST_DOT ? part->name : part->kid[0]->name);
        return;
    }
    buf_putc(b, '[');
    if (part->kid[0]->kind == AST_STAR)
        buf_putc(b, '*');
    else
        ast_print_expr(b, part->kid[0]);
    buf_putc(b, ']');
}

/* The name and the first k parts behind it. */
static const char *beginning(Eval *ev, Override *o, uint32_t k)
{
    const Ast *p = o->path;
    if (!o->beginning) {
        Buf b = buf_new(ev->arena);
        buf_puts(&b, p->name);
        o->beginning = NEW_ARRAY(ev->arena, const char *, p->n + 1);
        for (uint32_t i = 0; i <= p->n; i++) {
            o->beginning[i] = arena_copy(ev->arena, b.s, b.n);
            if (i < p->n)
                put_part(&b, p->kid[i], !strcmp(p->name, "train"));
        }
    }
    return o->beginning[k];
}

/* `model.layer[3].ffn.hidden` is `layer[3].ffn.hidden`; attributes of the model itself keep the word. */
void override_settle(File *f, Override *o)
{
    const Ast *p = o->path;
    bool long_form = p->n > 1 && p->kid[0]->kind == AST_DOT && !strcmp(p->name, "model") &&
                     !is_scope_name(p->kid[0]->name) && !map_get(&f->names, (uintptr_t)p->name);
    if (!long_form)
        return;
    Ast *shorter = NEW(f->ev->arena, Ast);
    *shorter = *p;
    shorter->name = p->kid[0]->name;
    shorter->kid = p->kid + 1;
    shorter->n = p->n - 1;
    o->path = shorter;
    o->beginning = NULL;
}

/* Which part of the path is an attribute of the node; -1: the path leads elsewhere. */
static int attribute_part(Eval *ev, Override *o, Name node)
{
    const Ast *p = o->path;
    if (!p->n || strncmp(node, p->name, strlen(p->name)) != 0)
        return -1;
    for (uint32_t k = 0; k < p->n; k++)
        if (p->kid[k]->kind == AST_DOT && path_matches(beginning(ev, o, k), node))
            return (int)k;
    return -1;
}

size_t override_attrs(Eval *ev, File *f, Name node, Name **attrs)
{
    VEC(Name) v = {0};
    for (size_t i = 0; i < f->overrides.n; i++) {
        Override *o = &f->overrides.v[i];
        int k = attribute_part(ev, o, node);
        bool known = k < 0;
        for (size_t j = 0; j < v.n; j++)
            known |= k >= 0 && v.v[j] == o->path->kid[k]->name;
        if (!known)
            vec_push(ev->arena, &v, o->path->kid[k]->name);
    }
    *attrs = v.v;
    return v.n;
}

/* ---- into expressions ---- */

typedef struct Into {
    Eval *ev;
    File *file;
    Env *env; /* where the expression stands */
    const Ast *path;
    const Ast *value;
    const Prim *(*prim)(const char *name); /* what a call is there, before all else; may be NULL */
    int lets;                              /* names that were followed */
    Span was;                              /* of what the value takes the place */
    /* why it went no further: at which part, a label, the call, what it takes */
    uint32_t part;
    const char *why;
    const Ast *call;
    const char *signature;
    NameList names;
} Into;

const char *call_signature(Eval *ev, File *f, const Ast *call, const Prim *(*prim)(const char *), NameList *names)
{
    const Ast *callee = call->kid[0];
    if (callee->kind != AST_ID)
        return NULL;
    const Prim *p = prim ? prim(callee->name) : NULL;
    Binding *bd = p ? NULL : env_find(f->env, callee->name);
    if (!p && !bd)
        p = prim_find(callee->name);
    if (p) {
        for (const char *s = p->params; *s;) {
            size_t n = strcspn(s, ":.,");
            vec_push(ev->arena, names, name_of(ev->ctx, s, n));
            s += strcspn(s, ",");
            s += strspn(s, ", ");
        }
    } else if (bd && bd->state == BIND_READY && bd->value.kind == V_BLOCK) {
        const Ast *params = bd->value.block->def->ast->kid[0];
        for (uint32_t i = 0; i < params->n; i++)
            vec_push(ev->arena, names, params->kid[i]->name);
    } else {
        return NULL;
    }
    Buf b = buf_new(ev->arena);
    for (size_t i = 0; i < names->n; i++)
        buf_printf(&b, "%s%s", i ? ", " : "", names->v[i]);
    return arena_printf(ev->arena, "%s(%s)", callee->name, b.s);
}

/* The expression with kid i replaced, or with one more. */
static Ast *with_kid(Eval *ev, const Ast *e, uint32_t i, const Ast *kid)
{
    Ast *out = NEW(ev->arena, Ast);
    *out = *e;
    out->n = i < e->n ? e->n : i + 1;
    out->kid = NEW_ARRAY(ev->arena, Ast *, out->n);
    for (uint32_t k = 0; k < e->n; k++)
        out->kid[k] = e->kid[k];
    out->kid[i] = (Ast *)kid;
    return out;
}

static const Ast *stop(Into *in, uint32_t part, const char *why)
{
    in->part = part;
    in->why = why;
    return NULL;
}

static const Ast *nothing_inside(Into *in, const Ast *e, uint32_t k)
{
    const char *of = in->path->kid[k]->kind == AST_DOT ? "arguments" : "entries";
    return stop(in, k, arena_printf(in->ev->arena, "`%s` has no %s", expr_text(in->ev, e), of));
}

static const Ast *into(Into *in, const Ast *e, uint32_t k);

static const Ast *into_call(Into *in, const Ast *e, uint32_t k)
{
    Eval *ev = in->ev;
    Name arg = in->path->kid[k]->name;
    const Ast *args = e->kid[1], *found = NULL;
    NameList names = {0};
    const char *signature = call_signature(ev, in->file, e, in->prim, &names);
    bool takes = !signature || (names.n && !strcmp(names.v[names.n - 1], "*"));
    uint32_t at = args->n;
    size_t place = 0;
    for (size_t i = 0; i < names.n; i++)
        takes |= names.v[i] == arg;
    for (uint32_t i = 0; i < args->n && at == args->n; i++) {
        const Ast *a = args->kid[i];
        bool named = a->kind == AST_NAMED, off = a->kind == AST_OFF;
        if (named ? a->name == arg : !off && place < names.n && names.v[place] == arg)
            at = i, found = a;
        place += !named && !off;
    }
    if (!takes) {
        in->call = e;
        in->signature = signature;
        in->names = names;
        return stop(in, k, NULL);
    }
    if (!found && k + 1 < in->path->n)
        return stop(in, k, arena_printf(ev->arena, "`%s` is not written there", arg));
    const Ast *inner = found ? found->kind == AST_NAMED ? found->kid[0] : found : NULL;
    const Prim *(*prim)(const char *) = in->prim;
    in->prim = NULL;
    const Ast *value = k + 1 == in->path->n ? in->value : into(in, inner, k + 1);
    in->was = k + 1 < in->path->n ? in->was : found ? found->span : e->span;
    in->prim = prim;
    if (!value)
        return NULL;
    if (!found || found->kind == AST_NAMED) {
        Ast *named = NEW(ev->arena, Ast);
        *named = (Ast){.kind = AST_NAMED, .name = arg, .span = value->span, .name_span = value->span};
        value = with_kid(ev, named, 0, value);
    }
    return with_kid(ev, e, 1, with_kid(ev, args, at, value));
}

static const Ast *into_list(Into *in, const Ast *e, uint32_t k)
{
    const Ast *index = in->path->kid[k]->kid[0];
    double i = index->kind == AST_NUM ? ast_number(in->ev->ctx, index).value : 0;
    if (!is_whole(i) || i < 1 || i > e->n)
        return stop(in, k,
                    arena_printf(in->ev->arena, "the list has %u entr%s, from [1] on", e->n, e->n == 1 ? "y" : "ies"));
    uint32_t at = (uint32_t)i - 1;
    const Ast *value = k + 1 == in->path->n ? in->value : into(in, e->kid[at], k + 1);
    in->was = k + 1 < in->path->n ? in->was : e->kid[at]->span;
    return value ? with_kid(in->ev, e, at, value) : NULL;
}

/* Names of `e` mean the same in both places. */
static bool same_names(const Ast *e, Env *a, Env *b)
{
    if (e->kind == AST_ID && env_find(a, e->name) != env_find(b, e->name))
        return false;
    for (uint32_t i = 0; i < e->n; i++)
        if (e->kid[i] && !same_names(e->kid[i], a, b))
            return false;
    return true;
}

/* `connection = conn`: what the let is stands there instead of its name. */
static const Ast *into_let(Into *in, const Ast *e, uint32_t k)
{
    Binding *b = env_find(in->env, e->name);
    bool own = b && b->is_let && b->expr && b->env && b->expr != e && same_names(b->expr, b->env, in->env);
    if (!own || in->lets == 32)
        return nothing_inside(in, e, k);
    in->lets++;
    const Ast *out = into(in, b->expr, k);
    in->lets--;
    b->used |= out != NULL;
    return out;
}

/* The expression with the value at what the parts from the kth on lead to; NULL: they lead nowhere. */
static const Ast *into(Into *in, const Ast *e, uint32_t k)
{
    bool dot = in->path->kid[k]->kind == AST_DOT;
    if (e->kind == AST_PAREN) {
        const Ast *inner = into(in, e->kid[0], k);
        return inner ? with_kid(in->ev, e, 0, inner) : NULL;
    }
    if (e->kind == AST_COND) { /* in both, or in that which has it */
        const Ast *no = into(in, e->kid[2], k), *yes = into(in, e->kid[1], k),
                  *out = yes ? with_kid(in->ev, e, 1, yes) : e;
        return no ? with_kid(in->ev, out, 2, no) : yes ? out : NULL;
    }
    if (e->kind == AST_CALL && dot)
        return into_call(in, e, k);
    if (e->kind == AST_LIST && !dot)
        return into_list(in, e, k);
    if (e->kind == AST_ID)
        return into_let(in, e, k);
    return nothing_inside(in, e, k);
}

/* A setting that leads nowhere; of a variant and of a growth step by its path, as these are not from outside. */
Diag *override_error(Eval *ev, File *f, const Override *o, const char *label)
{
    const Base *b = f->base;
    while (b && b->ast->span.file != o->span.file)
        b = b->next;
    if (o->of_step)
        return diag_error(ev->ctx, "E0105", o->span, label, "`%s` names nothing in %s", expr_text(ev, o->path),
                          f->path);
    return o->of_variant && b ? diag_error(ev->ctx, "E0105", o->span, label, "`%s` names nothing in %s",
                                           expr_text(ev, o->path), source_path(ev->ctx, b->next->ast->span.file))
                              : err(ev, "E0105", o->span, label, "`%s` names nothing in %s", o->origin, f->path);
}

static void say_stop(Into *in, Override *o)
{
    Eval *ev = in->ev;
    o->used = true; /* what is wrong with it is said here */
    if (o->said)
        return;
    o->said = true;
    const char *upto = beginning(ev, o, in->part),
               *rest = beginning(ev, o, o->path->n) + strlen(beginning(ev, o, in->part + 1));
    Name last = in->path->kid[in->part]->name;
    Diag *d = override_error(ev, in->file, o, "");
    Span part =
        in->path->kid[in->part]->kind == AST_DOT ? in->path->kid[in->part]->name_span : in->path->kid[in->part]->span;
    if (d->labels.n && part.lo < part.hi)
        d->labels.v[0].span = part;
    if (d->labels.n)
        d->labels.v[0].text = in->why ? in->why : arena_printf(ev->arena, "`%s` has no argument `%s`", upto, last);
    if (in->why)
        return;
    size_t n;
    const char *source = source_path(ev->ctx, in->call->span.file);
    LineCol at = source_position(ev->ctx, in->call->span.file, in->call->span.lo);
    if (source_text(ev->ctx, in->call->span.file, &n) && source[0] != '<')
        diag_note(ev->ctx, d, "`%s` is %s, set at %s:%u:%u", upto, in->signature, source, at.line, at.column);
    else
        diag_note(ev->ctx, d, "`%s` is %s", upto, in->signature);
    Name best = nearest_name(last, in->names.v, in->names.n);
    if (best)
        override_meant(ev, d, o, arena_printf(ev->arena, "%s.%s%s", upto, best, rest));
}

static const Ast *replaced(Into *in, Override *o, const Ast *e, uint32_t k)
{
    in->path = o->path;
    in->value = o->expr;
    in->was = e ? e->span : NO_SPAN;
    const Ast *out = k == o->path->n ? o->expr : into(in, e, k);
    if (out) {
        o->used = true;
        o->was = in->was;
    } else {
        say_stop(in, o);
    }
    return out;
}

Override *override_attribute(const OverridePlace *at, Name attr, const Ast **expr)
{
    Override *last = NULL;
    for (size_t i = 0; i < at->file->overrides.n; i++) {
        Override *o = &at->file->overrides.v[i];
        int k = attribute_part(at->ev, o, at->node);
        if (k < 0 || o->path->kid[k]->name != attr)
            continue;
        if (!*expr && (uint32_t)k + 1 < o->path->n) {
            o->unwritten = at->known ? (uint32_t)k + 1 : o->unwritten;
            continue;
        }
        Into in = {.ev = at->ev, .file = at->file, .env = at->env, .prim = at->prim};
        const Ast *e = replaced(&in, o, *expr, (uint32_t)k + 1);
        if (!e)
            continue;
        *expr = e;
        last = o;
    }
    return last;
}

const Ast *override_inside(const OverridePlace *at, const Override *o, const Ast *expr, uint32_t k)
{
    if (k == o->path->n)
        return o->expr;
    Into in = {.ev = at->ev, .file = at->file, .env = at->env, .prim = at->prim, .path = o->path, .value = o->expr};
    return expr ? into(&in, expr, k) : NULL;
}

void override_let(Eval *ev, File *f, Binding *b, Override *o)
{
    if (o->path->n == 0) {
        o->was = b->span;
        b->expr = o->expr;
        b->env = o->env ? o->env : f->env;
        b->origin = o->origin;
        b->arg_span = o->span;
        if (!o->expr) {
            b->state = BIND_READY;
            b->value = o->value;
        }
        o->used = true;
        return;
    }
    if (!b->expr)
        return;
    Into in = {.ev = ev, .file = f, .env = b->env};
    const Ast *e = replaced(&in, o, b->expr, 0);
    if (!e)
        return;
    b->expr = e;
    b->origin = o->origin;
}

static bool within(Span part, Span whole)
{
    return part.file == whole.file && part.lo >= whole.lo && part.hi <= whole.hi;
}

void override_notes(Eval *ev, const File *f, const char *with)
{
    bool said = false;
    for (size_t i = 0; i < diag_count(ev->ctx); i++) {
        Diag *d = (Diag *)diag_get(ev->ctx, i);
        const Override *o = NULL;
        Span at = d->labels.n ? d->labels.v[0].span : NO_SPAN;
        for (size_t k = 0; at.file && k < f->overrides.n && !o; k++) {
            const Override *is = &f->overrides.v[k];
            o = within(at, is->span) || (is->expr && within(at, is->expr->span)) ? is : NULL;
        }
        bool there = o && o->was.file && !within(at, o->was) && source_path(ev->ctx, o->was.file)[0] != '<';
        for (size_t k = 0; there && k < d->related.n; k++)
            there = !within(o->was, d->related.v[k].span);
        if (there)
            diag_related(ev->ctx, d, o->was, "it takes the place of this");
        else if (!o && with && !said && d->level == LEVEL_ERROR && at.file && source_path(ev->ctx, at.file)[0] != '<')
            diag_note(ev->ctx, d, "the file is checked with %s", with);
        said |= d->level == LEVEL_ERROR;
    }
}
