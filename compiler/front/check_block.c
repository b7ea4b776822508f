/* check_block.c - configuring and applying blocks; the statements of a block's body.
 *
 * In:  a block with closures for its configuration, tensors.   Out: a tensor (or any value), and in the
 * model under construction its parameters and losses. The one idea: an application is an instance with a
 * path; configuration is evaluated lazily in the scope of that instance, so `scope.X` in a default means
 * the place where the block ended up.
 */
#include "attribute.h"
#include "check.h"

#include "grammar/foreign.h"

#include <math.h>

BlockValue *block_value(Eval *ev, const Ast *ast, Env *env, File *file)
{
    BlockDef *d = NEW(ev->arena, BlockDef);
    d->ast = ast;
    d->env = env;
    d->file = file;
    const Ast *body = ast->kid[3];
    for (uint32_t i = 0; body && i < body->n; i++)
        if (body->kid[i]->kind == AST_BLOCK &&
            (!strcmp(body->kid[i]->name, "open") || !strcmp(body->kid[i]->name, "step") ||
             !strcmp(body->kid[i]->name, "close")))
            d->has_methods = true;
    BlockValue *b = NEW(ev->arena, BlockValue);
    b->def = d;
    b->span = ast->name_span;
    return b;
}

const Ast *block_param(const BlockDef *d, Name name)
{
    const Ast *params = d->ast->kid[0];
    for (uint32_t i = 0; i < params->n; i++)
        if (params->kid[i]->name == name)
            return params->kid[i];
    return NULL;
}

static const Ast *find_method(const BlockDef *d, Name method)
{
    const Ast *body = d->ast->kid[3];
    for (uint32_t i = 0; d->has_methods && i < body->n; i++)
        if (body->kid[i]->kind == AST_BLOCK && body->kid[i]->name == method)
            return body->kid[i];
    return NULL;
}

/* ---- configuration ---- */

void unknown_parameter(Eval *ev, const BlockDef *d, Name name, Span at)
{
    Diag *diag = err(ev, "E0101", at, "unknown attribute", "`%s` has no attribute `%s`", d->ast->name, name);
    VEC(Name) names = {0};
    Buf list = buf_new(ev->arena);
    for (uint32_t i = 0; i < d->ast->kid[0]->n; i++) {
        vec_push(ev->arena, &names, d->ast->kid[0]->kid[i]->name);
        buf_printf(&list, "%s%s", i ? ", " : "", names.v[i]);
    }
    Name best = nearest_name(name, names.v, names.n);
    const Ast *near = best ? block_param(d, best) : NULL;
    if (near && near->kid[1])
        diag_note(ev->ctx, diag, "a misspelt attribute is never ignored: the run would silently use `%s = %s`", best,
                  expr_text(ev, near->kid[1]));
    else if (names.n)
        diag_note(ev->ctx, diag, "its attributes are %s", list.s);
    else
        diag_note(ev->ctx, diag, "it has none");
    suggest_attribute(ev, diag, name, names.v, names.n, at);
}

Value block_with(Eval *ev, const BlockValue *b, const Arg *extra, size_t n, Span at)
{
    BlockValue *out = NEW(ev->arena, BlockValue);
    *out = *b;
    out->configured = true;
    out->span = in_library(ev, at) && b->span.file && !in_library(ev, b->span) ? b->span : at;
    out->arg = NEW_ARRAY(ev->arena, Arg, b->n_arg + n + 1);
    out->n_arg = 0;
    for (size_t i = 0; i < b->n_arg; i++) {
        bool replaced = false;
        for (size_t k = 0; k < n; k++)
            replaced |= extra[k].name == b->arg[i].name;
        if (!replaced)
            out->arg[out->n_arg++] = b->arg[i];
    }
    for (size_t k = 0; k < n; k++)
        out->arg[out->n_arg++] = extra[k];
    return (Value){.kind = V_BLOCK, .block = out};
}

Value block_configure(Eval *ev, const BlockValue *b, const Ast *args, Env *env, Span at)
{
    Arg *extra = NEW_ARRAY(ev->arena, Arg, args->n + 1);
    size_t n = 0;
    bool bad = false;
    for (uint32_t i = 0; i < args->n; i++) {
        const Ast *a = args->kid[i];
        if (a->kind != AST_NAMED)
            continue;
        if (!block_param(b->def, a->name)) {
            unknown_parameter(ev, b->def, a->name, a->name_span);
            bad = true;
            continue;
        }
        for (size_t k = 0; k < n; k++)
            if (extra[k].name == a->name) {
                err(ev, "E0108", a->span, "given twice", "`%s` is given twice", a->name);
                bad = true;
            }
        extra[n++] = (Arg){.name = a->name, .expr = a->kid[0], .env = env, .span = a->span};
    }
    return bad ? v_poison() : block_with(ev, b, extra, n, at);
}

static bool type_is(const Ast *type, const char *name)
{
    return type && type->kind == AST_ID && !strcmp(type->name, name);
}

/* Binds the configuration parameters of `ast`; defaults see all parameters and dimensions, so their
 * environment is set by config_defaults() once the tensors are bound. */
static Env *config_bind(Eval *ev, const BlockValue *b, Env *env, Scope *scope, Span at, Binding **first, bool *ok)
{
    const Ast *params = b->def->ast->kid[0];
    VEC(const Ast *) missing = {0};
    for (uint32_t i = 0; i < params->n; i++) {
        const Ast *par = params->kid[i];
        const Arg *arg = NULL;
        for (size_t k = 0; k < b->n_arg; k++)
            if (b->arg[k].name == par->name)
                arg = &b->arg[k];
        Binding *bd = binding_new(ev, par->name, par->name_span);
        bd->type = par->kid[0];
        bd->is_param_of_block = true;
        bd->by_name = type_is(par->kid[0], "init");
        bd->scope = scope;
        bd->prefix = scope->path;
        first[i] = bd;
        if (arg && !arg->expr) {
            bd->value = check_type(ev, arg->value, par->kid[0], arg->span, par->name, env);
            bd->arg_span = arg->span;
        } else if (arg) {
            bd->state = BIND_LAZY;
            bd->expr = arg->expr;
            bd->env = arg->env;
            bd->arg_span = arg->span;
        } else if (par->kid[1]) {
            bd->state = BIND_LAZY;
            bd->expr = par->kid[1];
        } else {
            vec_push(ev->arena, &missing, par);
        }
        env = env_new(ev, env, bd);
    }
    if (missing.n)
        missing_parameters(ev, b->def, missing.v, missing.n, b->span.file ? b->span : at);
    *ok = *ok && !missing.n;
    return env;
}

static void config_defaults(const BlockValue *b, Binding **first, Env *env)
{
    for (uint32_t i = 0; i < b->def->ast->kid[0]->n; i++)
        if (first[i]->state == BIND_LAZY && !first[i]->env)
            first[i]->env = env;
}

/* Remembers the blocks that the user gave, to tell which were never looked at. */
static void note_given(Eval *ev, const BlockDef *d, Binding **first)
{
    for (uint32_t i = 0; ev->build && i < d->ast->kid[0]->n; i++)
        if (type_is(d->ast->kid[0]->kid[i]->kid[0], "block") && first[i]->arg_span.file &&
            !in_library(ev, first[i]->arg_span))
            vec_push(ev->arena, &ev->build->given, first[i]);
}

/* Types of explicit dims, ints and choices are checked even when the body never looks at them. */
static bool config_check(Eval *ev, const BlockValue *b, Binding **first, Scope *scope)
{
    bool ok = true;
    for (uint32_t i = 0; i < b->def->ast->kid[0]->n; i++) {
        Binding *bd = first[i];
        if (bd->by_name || bd->state != BIND_LAZY || !bd->arg_span.file)
            continue;
        if (binding_get(ev, bd, scope).kind == V_POISON)
            ok = false;
        bd->used = false;
    }
    note_given(ev, b->def, first);
    return ok;
}

/* ---- statements ---- */

typedef struct Body {
    Eval *ev;
    Env *env;
    Scope *scope;
    Instance *inst;
    const BlockDef *def;
    Span at;
    Span configured; /* where its configuration was written last, in a user's file if possible */
    bool returned;
    Value result;
} Body;

static void exec(Body *b, const Ast *items);

static Binding *bind_here(Body *b, Name name, Value v, Span span)
{
    Binding *bd = binding_value(b->ev, name, v, span);
    bd->prefix = b->scope->path;
    b->env = env_new(b->ev, b->env, bd);
    return bd;
}

static void exec_let(Body *b, const Ast *it)
{
    Value v = it->kid[0] ? eval_as(b->ev, it->kid[1], b->env, b->scope, it->kid[0], it->name)
                         : eval(b->ev, it->kid[1], b->env, b->scope);
    Env *before = b->env;
    Binding *bd = bind_here(b, it->name, v, it->name_span);
    bd->is_let = true;
    bd->expr = it->kid[1];
    bd->env = before;
}

static void exec_check(Body *b, const Ast *it)
{
    const Site here = {.env = b->env, .scope = b->scope, .def = b->def, .at = b->at, .configured = b->configured};
    if (block_require(b->ev, &here, it))
        return;
    b->returned = true; /* what follows relies on it */
    b->result = v_poison();
}

static void param_options(Body *b, const Ast *it, Param *p)
{
    p->lr_scale = 1;
    p->decay = NAN;
    p->group = name_str(b->ev->ctx, p->shape.rank >= 2 ? "matrix" : "vector");
    for (uint32_t i = 0; it->kid[2] && i < it->kid[2]->n; i++) {
        const Ast *s = it->kid[2]->kid[i];
        if (s->kind == AST_OFF)
            continue;
        Name key = s->kind == AST_SET && !s->kid[0]->n ? s->kid[0]->name : NULL;
        if (key)
            set_before(b->ev, it->kid[2], i);
        if (key && !strcmp(key, "group")) {
            Value v = eval_word(b->ev, s->kid[1], b->env, b->scope);
            if (v.kind == V_WORD)
                p->group = v.word;
        } else if (key && !strcmp(key, "lr_scale")) {
            attribute_number_of(b->ev, attribute_find("param", key), s->kid[1], b->env, b->scope, &p->lr_scale);
        } else if (key && !strcmp(key, "decay")) {
            attribute_number_of(b->ev, attribute_find("param", key), s->kid[1], b->env, b->scope, &p->decay);
        } else if (key && !strcmp(key, "frozen")) {
            static const Ast bool_type = {.kind = AST_ID, .name = "bool"};
            Value v = eval_as(b->ev, s->kid[1], b->env, b->scope, &bool_type, key);
            p->frozen = v.kind == V_BOOL && v.num != 0;
        } else {
            Span at = key ? s->kid[0]->span : s->span;
            Diag *d = key ? err(b->ev, "E0101", at, "unknown attribute", "a `param` has no attribute `%s`", key)
                          : err(b->ev, "E0110", at, "", "a `param` cannot hold this item");
            const char *known;
            size_t n;
            Name *names = attribute_names(b->ev->ctx, b->ev->arena, "param", false, &n, &known);
            diag_note(b->ev->ctx, d, "its attributes are %s", known);
            if (key)
                suggest_attribute(b->ev, d, key, names, n, at);
        }
    }
}

static bool param_init_value(Body *b, const Ast *it, Param *p)
{
    if (!p->elements)
        return true; /* nothing to fill, and fan_in may be 0 */
    Fan fan = {1, 1, &p->shape};
    if (p->shape.rank >= 1)
        fan.fan_out = (double)p->shape.d[p->shape.rank - 1].n;
    if (p->shape.rank >= 2)
        fan.fan_in = (double)p->shape.d[p->shape.rank - 2].n;
    Fan *outer = b->ev->fan;
    b->ev->fan = &fan;
    Value v = eval(b->ev, it->kid[1], b->env, b->scope);
    static const Ast init_type = {.kind = AST_ID, .name = "init"};
    if (v.kind != V_POISON && v.kind != V_NONE)
        v = check_type(b->ev, v, &init_type, it->kid[1]->span, it->name, b->env);
    b->ev->fan = outer;
    if (v.kind == V_NONE) {
        err(b->ev, "E0203", it->name_span, "", "no initialiser for `%s`", p->path);
        return false;
    }
    if (v.kind != V_INIT)
        return false;
    p->init = *v.init;
    if (p->init.kind == INIT_EYE && p->shape.rank < 2) {
        err(b->ev, "E0315", it->kid[1]->span, "", "`eye` fills matrices, `%s` is %s", it->name,
            expr_text(b->ev, it->kid[0]));
        return false;
    }
    const Shape *s = &p->shape;
    int64_t n = (int64_t)p->init.a;
    if (p->init.kind == INIT_EYE && n && (s->d[s->rank - 2].n != n || s->d[s->rank - 1].n != n)) {
        Buf is = buf_new(b->ev->arena);
        shape_print(&is, s);
        err(b->ev, "E0315", it->kid[1]->span, "", "`eye` is %lld x %lld here, `%s` is %s", (long long)n, (long long)n,
            it->name, is.s);
        return false;
    }
    if (p->init.kind == INIT_LIST && (int64_t)p->init.n != p->elements) {
        err(b->ev, "E0315", it->kid[1]->span, "", "`%s` has %lld entries, the list has %zu", it->name,
            (long long)p->elements, p->init.n);
        return false;
    }
    return true;
}

static bool param_shape(Body *b, const Ast *it, Shape *shape, int64_t *elements)
{
    if (!eval_shape(b->ev, it->kid[0], b->env, b->scope, shape, it->name))
        return false;
    Dim size;
    for (uint8_t k = 0; k < shape->rank; k++)
        if (!dim_static(shape->d[k])) {
            Diag *d = err(b->ev, "E0202", it->kid[0]->span, "", "the shape of `%s` cannot depend on B or T", it->name);
            diag_note(b->ev->ctx, d,
                      "weights are made before training, which decides how many sequences and positions there are");
            diag_help(b->ev->ctx, d, "for a row per position write `scope.context` in the place of `T`");
            return false;
        }
    shape_size(shape, &size);
    *elements = size.n;
    return true;
}

/* A module that is applied again, to a tensor for which its weights would have another shape. */
static void shared_differs(Body *b, Name path, const Param *p, const Shape *shape)
{
    Eval *ev = b->ev;
    const Instance *first = map_get(&ev->build->instances, (uintptr_t)b->inst->path);
    Buf had = buf_new(ev->arena), here = buf_new(ev->arena);
    shape_print(&had, &p->shape);
    shape_print(&here, shape);
    Diag *d = err(ev, "E0316", b->at, "", "`%s` is shared, but here its shape would differ", path);
    diag_note(ev->ctx, d, "it has the shape %s, and would need %s here", had.s, here.s);
    const char *dot = strrchr(b->inst->path, '.');
    const char *name = dot ? dot + 1 : b->inst->path;
    diag_help(
        ev->ctx, d,
        "a name that is applied twice is one module: for weights of its own write a second `let`, as `let %s2 = ...`",
        name);
    if (first && first != b->inst && first->at.file)
        diag_related(ev->ctx, d, first->at, "applied first here");
}

static void exec_param(Body *b, const Ast *it)
{
    Builder *build = b->ev->build;
    Name path = name_printf(b->ev->ctx, "%s%s%s", b->scope->path, *b->scope->path ? "." : "", it->name);
    Shape shape;
    int64_t elements;
    Value v = v_poison();
    size_t had = (size_t)(uintptr_t)map_get(&build->params, (uintptr_t)path);
    bool ok = param_shape(b, it, &shape, &elements);
    if (ok && b->inst->inline_call) {
        Diag *d = err(b->ev, "E0204", b->inst->at, "owns weights but has no name",
                      "a block with weights must be named before it is applied");
        diag_help(b->ev->ctx, d, "write `let %s = %s(...)` and apply `%s(x)`: the name becomes the path of its weights",
                  b->def->ast->name, b->def->ast->name, b->def->ast->name);
    } else if (ok && had && b->inst->reused) {
        Param *p = &build->model->param.v[had - 1];
        if (shape_eq(&p->shape, &shape))
            v = v_tensor(p->value);
        else
            shared_differs(b, path, p, &shape);
    } else if (ok && had) {
        Diag *d = err(b->ev, "E0107", it->name_span, "", "two parameters have the path `%s`", path);
        diag_related(b->ev->ctx, d, build->model->param.v[had - 1].declared, "the first one");
    } else if (ok) {
        Param p = {.path = path,
                   .shape = shape,
                   .elements = elements,
                   .active = 1,
                   .buffer = it->kind == AST_BUFFER,
                   .declared = it->name_span,
                   .used = b->at};
        param_options(b, it, &p);
        for (uint8_t k = 0; k < shape.rank; k++)
            p.dims[k] =
                it->kid[0]->kind == AST_LIST && it->kid[0]->n == shape.rank ? expr_text(b->ev, it->kid[0]->kid[k]) : "";
        if (param_init_value(b, it, &p)) {
            build->g->span = it->span;
            build->g->name = path;
            p.value = ir_ext(build->g, p.buffer ? EXT_BUFFER : EXT_PARAM, path, DT_REAL, &shape);
            vec_push(b->ev->arena, &build->model->param, p);
            *map_at(&build->params, (uintptr_t)path) = (void *)(uintptr_t)build->model->param.n;
            v = v_tensor(p.value);
        }
    }
    v.shape_text = expr_text(b->ev, it->kid[0]);
    Binding *bd = bind_here(b, it->name, v, it->name_span);
    bd->type = it; /* a parameter of this body: E0304 when nothing reads it */
}

/* The argument that gives the declared result its last extent, else the place of the block. */
static Span last_extent_at(const Body *b)
{
    const Ast *type = b->def->ast->kid[2];
    const Ast *last = type && type->kind == AST_LIST && type->n ? type->kid[type->n - 1] : NULL;
    const Binding *bd = last && last->kind == AST_ID ? env_find_local(b->env, last->name) : NULL;
    return bd && bd->arg_span.file && !in_library(b->ev, bd->arg_span) ? bd->arg_span : b->at;
}

/* A number of the model: `metric.load = x` with x [n] is kept apart for every module, under its path. */
static void record_number(Body *b, const Ast *it, const char *kind, Name name, Val v)
{
    Ctx *ctx = b->ev->ctx;
    const Graph *g = b->ev->build->g;
    const Shape *s = shape_of(g, v);
    Model *m = b->ev->build->model;
    bool trained = !strcmp(kind, "loss"), vector = !trained && s->rank == 1 && dim_static(s->d[0]);
    Buf got = buf_new(b->ev->arena);
    shape_print(&got, s);
    if (s->rank != 0 && !vector) {
        Diag *d = err(b->ev, "E0317", it->kid[1]->span, "", "`%s.%s` must be one number, got %s", kind, name, got.s);
        diag_help(ctx, d, "take the mean: `%s.%s = mean(...)`", kind, name);
        return;
    }
    if (vector)
        name = name_printf(ctx, "%s.%s", b->inst->path, name);
    for (size_t i = 0; i < m->loss.n; i++) {
        const ModelLoss *l = &m->loss.v[i];
        if (l->name != name || l->trained != trained || shape_eq(shape_of(g, l->value), s))
            continue;
        Diag *d = err(b->ev, "E0317", it->kid[1]->span, "", "`%s.%s` is %s here and something else before", kind, name,
                      got.s);
        diag_related(ctx, d, l->span, "the first one");
        return;
    }
    vec_push(b->ev->arena, &m->loss, (ModelLoss){name, v, trained, it->span});
}

static void exec_record(Body *b, const Ast *it, const char *kind, Name name)
{
    Value v = to_tensor(b->ev, eval(b->ev, it->kid[1], b->env, b->scope), it->kid[1]->span);
    if (v.kind != V_TENSOR)
        return;
    Model *m = b->ev->build->model;
    if (!strcmp(kind, "output")) {
        for (size_t i = 0; i < m->output.n; i++)
            if (m->output.v[i].name == name) {
                err(b->ev, "E0112", it->kid[0]->span, "", "a second output `%s` in one model", name);
                return;
            }
        vec_push(b->ev->arena, &m->output, (ModelOutput){name, v.val});
        if (!strcmp(name, "logits"))
            m->vocab_at = last_extent_at(b);
        return;
    }
    if (node_at(b->ev->build->g, v.val)->dtype == DT_INT)
        err(b->ev, "E0310", it->kid[1]->span, "", "`%s.%s` must be a real number; convert with cast(x, real)", kind,
            name);
    else
        record_number(b, it, kind, name, v.val);
}

/* The NAME of `metric.NAME`, or NAME_i of `metric.NAME[i]`; NULL when the path is neither. */
static Name record_name(Body *b, const Ast *path)
{
    if (path->n < 1 || path->n > 2 || path->kid[0]->kind != AST_DOT)
        return NULL;
    if (path->n == 1)
        return path->kid[0]->name;
    double i;
    if (path->kid[1]->kind == AST_DOT || path->kid[1]->kid[0]->kind == AST_STAR ||
        !eval_number(b->ev, path->kid[1]->kid[0], b->env, b->scope, "index", &i) || !is_whole(i))
        return NULL;
    return name_printf(b->ev->ctx, "%s_%.0f", path->kid[0]->name, i);
}

static void exec_set(Body *b, const Ast *it)
{
    const Ast *path = it->kid[0];
    if (path->n == 0) {
        b->ev->build->g->name = b->scope->path;
        bind_here(b, path->name, eval(b->ev, it->kid[1], b->env, b->scope), path->span);
        return;
    }
    bool known = !strcmp(path->name, "loss") || !strcmp(path->name, "metric") || !strcmp(path->name, "output");
    size_t errors = diag_errors(b->ev->ctx);
    Name name = known ? record_name(b, path) : NULL;
    if (name)
        exec_record(b, it, path->name, name);
    if (name || diag_errors(b->ev->ctx) > errors)
        return;
    Diag *d = err(b->ev, "E0110", path->span, "", "a block cannot set this");
    const Foreign *module = foreign_next(FOREIGN_MODULE, path->name, NULL);
    if (module)
        diag_help(b->ev->ctx, d, "%s", module->text);
    else
        diag_note(b->ev->ctx, d, "a body binds plain names, `loss.NAME`, `metric.NAME` and `output.NAME`");
    if (module && path->n == 1 && path->kid[0]->kind == AST_DOT)
        bind_here(b, path->kid[0]->name, v_poison(), path->span);
}

static void exec_for(Body *b, const Ast *it)
{
    Value range = eval(b->ev, it->kid[0], b->env, b->scope);
    if (range.kind != V_LIST) {
        if (range.kind != V_POISON)
            no_list(b->ev, it->kid[0], &range);
        return;
    }
    Scope *outer = b->scope;
    for (size_t i = 0; i < range.list->n && !b->returned; i++) {
        const Value *v = &range.list->v[i];
        spend(b->ev, it->span, 1);
        b->scope = scope_new(b->ev, outer, iteration_path(b->ev, outer->path, it->name, v, i), it->span);
        bind_here(b, it->name, *v, it->name_span);
        exec(b, it->kid[1]);
    }
    b->scope = outer;
}

static void exec_if(Body *b, const Ast *it)
{
    Value c = eval(b->ev, it->kid[0], b->env, b->scope);
    if (c.kind != V_BOOL) {
        Diag *d = c.kind == V_POISON ? NULL
                                     : err(b->ev, "E0206", it->kid[0]->span, "",
                                           "a condition must be true or false, got %s", value_kind_name(&c));
        if (c.kind == V_TENSOR)
            diag_help(b->ev->ctx, d, "to choose element by element use `where(mask, a, b)`");
        b->returned = true; /* a branch might have, so nothing more is said */
        b->result = v_poison();
        return;
    }
    const Ast *branch = c.num != 0 ? it->kid[1] : it->kid[2];
    if (!branch)
        return;
    if (branch->kind == AST_IF)
        exec_if(b, branch);
    else
        exec(b, branch);
}

static bool comma_behind(Eval *ev, Span at)
{
    size_t n;
    const char *text = source_text(ev->ctx, at.file, &n);
    return text && text[at.hi + strspn(text + at.hi, " ")] == ',';
}

/* An item that no body has: mostly `y` for `return y`, `q, k = ...`, or a node. The next one to look at. */
static uint32_t exec_misplaced(Body *b, const Ast *items, uint32_t i)
{
    Eval *ev = b->ev;
    const Ast *it = items->kid[i];
    bool word = it->kind == AST_NODE && !it->kid[0]->n && !it->kid[1] && !it->kid[2];
    Name name = word ? it->kid[0]->name : NULL;
    bool bound = word && env_find(b->env, name);
    if (bound && i + 1 == items->n && items == b->def->ast->kid[3]) {
        Diag *d = err(ev, "E0110", it->span, "", "the last value of a block is given by `return`");
        diag_fix(ev->ctx, d, it->span, name_printf(ev->ctx, "return %s", name), FIX_CERTAIN, "write `return %s`", name);
        b->result = v_poison();
        b->returned = true;
        return i + 1;
    }
    if (word && i + 1 < items->n && comma_behind(ev, it->span)) {
        Diag *d = err(ev, "E0110", it->span, "", "`=` binds one name");
        bool sizes = false;
        for (uint32_t k = i; k < items->n && !sizes; k++) {
            const Ast *value = items->kid[k]->kind == AST_SET ? items->kid[k]->kid[1] : NULL;
            value = value && value->kind == AST_CALL ? value->kid[0] : value;
            sizes =
                value && value->kind == AST_FIELD && (!strcmp(value->name, "size") || !strcmp(value->name, "shape"));
            if (value || !comma_behind(ev, items->kid[k]->span))
                break;
        }
        if (sizes)
            diag_help(ev->ctx, d, "extents have their names in the header of the block: `(x: [B, T, D])`");
        else
            diag_help(ev->ctx, d,
                      "a value of several parts is a list: `let parts = split(x, 3)`, then `parts[1]`, `parts[2]` and "
                      "`parts[3]`");
        for (; i < items->n && (word || comma_behind(ev, items->kid[i - 1]->span)); i++) { /* q, k, v = ... */
            word = false;
            const Ast *other = items->kid[i];
            if (other->kind == AST_NODE || other->kind == AST_SET)
                bind_here(b, other->kid[0]->name, v_poison(), other->span);
        }
        return i;
    }
    Diag *d = err(ev, "E0110", it->span, "", "a block body cannot hold this item");
    const Foreign *row = word ? foreign_next(FOREIGN_NODE, name, NULL) : NULL;
    if (row && row->text)
        diag_help(ev->ctx, d, "%s", row->text);
    else
        diag_note(ev->ctx, d,
                  "nodes stand in a `model`; a body has let, param, buffer, check, for, if, bindings and return");
    return i + 1;
}

static void exec(Body *b, const Ast *items)
{
    for (uint32_t i = 0; i < items->n && !b->returned; i++) {
        const Ast *it = items->kid[i];
        spend(b->ev, it->span, 1);
        switch (it->kind) {
        case AST_LET: exec_let(b, it); break;
        case AST_CHECK: exec_check(b, it); break;
        case AST_PARAM:
        case AST_BUFFER: exec_param(b, it); break;
        case AST_SET: exec_set(b, it); break;
        case AST_FOR: exec_for(b, it); break;
        case AST_IF: exec_if(b, it); break;
        case AST_BLOCK:
            bind_here(b, it->name, (Value){.kind = V_BLOCK, .block = block_value(b->ev, it, b->env, b->def->file)},
                      it->name_span);
            break;
        case AST_RETURN:
            b->result = eval(b->ev, it->kid[0], b->env, b->scope);
            b->returned = true;
            for (uint32_t k = i + 1; k < items->n; k++)
                if (items->kid[k]->kind != AST_OFF) {
                    Diag *d = err(b->ev, "E0110", items->kid[k]->span, "", "nothing after `return` is reached");
                    diag_label(b->ev->ctx, d, it->span, "the block ends here");
                    if (comma_behind(b->ev, it->span))
                        diag_note(b->ev->ctx, d,
                                  "a block returns one value; a second one is `output.NAME` or another block");
                    break;
                }
            break;
        case AST_OFF: break;
        default: i = exec_misplaced(b, items, i) - 1; break;
        }
    }
}

static void unused_params(Body *b, Env *until)
{
    for (Env *e = b->env; e && e != until; e = e->up) {
        Binding *bd = e->binding;
        if (!bd || !bd->type || bd->type->kind != AST_PARAM || bd->used || bd->value.kind == V_POISON)
            continue;
        Diag *d = err(b->ev, "E0304", bd->span, "gets memory and optimizer state but no gradient",
                      "parameter `%s` is never used", bd->name);
        Dim n;
        shape_size(shape_of(b->ev->build->g, bd->value.val), &n);
        Buf t = buf_new(b->ev->arena);
        buf_count(&t, n.n);
        Buf shape = buf_new(b->ev->arena);
        shape_print(&shape, shape_of(b->ev->build->g, bd->value.val));
        diag_note(b->ev->ctx, d, "it would add %s weights per use (%s = %s)", t.s, expr_text(b->ev, bd->type->kid[0]),
                  shape.s);
        diag_help(b->ev->ctx, d, "use it, or delete the line; to keep it for later put `/-` in front");
    }
}

/* ---- application ---- */

static Instance *instance_at(Eval *ev, const BlockDef *d, Name path, const Binding *via, bool inline_call, Span at)
{
    Instance *inst = NEW(ev->arena, Instance);
    uint32_t serial = via ? via->serial : 0;
    *inst = (Instance){.path = path,
                       .up = ev->frame ? ev->frame->inst : NULL,
                       .def = d,
                       .serial = serial,
                       .site = via ? via->span : NO_SPAN,
                       .inline_call = inline_call,
                       .at = at};
    if (inline_call)
        return inst;
    Instance *had = map_get(&ev->build->instances, (uintptr_t)path);
    if (!had) {
        *map_at(&ev->build->instances, (uintptr_t)path) = inst;
        return inst;
    }
    /* inside a module that is applied again the same declaration gives the same module */
    bool again = inst->up && inst->up->reused && had->site.file == inst->site.file && had->site.lo == inst->site.lo;
    if ((had->serial != serial && !again) || had->def->ast != d->ast) {
        Diag *diag = err(ev, "E0107", at, "", "two modules have the path `%s`", path);
        diag_related(ev->ctx, diag, had->at, "the first one");
        diag_help(ev->ctx, diag, "give one of them another name or a label");
        return NULL;
    }
    inst->reused = true;
    return inst;
}

static void returns_nothing(Eval *ev, const Ast *block)
{
    Diag *d = err(ev, "E0314", block->name_span, "", "`%s` returns nothing", block->name);
    const Ast *items = block->kid[3], *last = items->n ? items->kid[items->n - 1] : NULL;
    bool binds = last && last->kind == AST_SET && !last->kid[0]->n;
    diag_help(ev->ctx, d, "its last line is `return %s`", binds ? last->kid[0]->name : "...");
}

/* For the list of the model's modules: what it was given that are tensors, and what it made of them. */
static void record_module(Eval *ev, const BlockDef *d, const Value *x, size_t n, Name path, const Value *result)
{
    if (result->kind != V_TENSOR)
        return;
    Name *name = NEW_ARRAY(ev->arena, Name, n + 1);
    Val *given = NEW_ARRAY(ev->arena, Val, n + 1);
    ModelModule module = {path, d->ast->name, name, given, 0, result->val};
    for (size_t i = 0; i < n; i++)
        if (x[i].kind == V_TENSOR) {
            name[module.n] = d->ast->kid[1]->kid[i]->name;
            given[module.n++] = x[i].val;
        }
    vec_push(ev->arena, &ev->build->model->module, module);
}

static Value apply_at(Eval *ev, const BlockValue *b, const Value *x, size_t n, Name path, const Binding *via,
                      bool inline_call, Scope *placement, Span at)
{
    enum { DEEPEST = 64 };
    if (!ev->build) {
        err(ev, "E0206", at, "", "`%s` can be applied to tensors only inside a model", b->def->ast->name);
        return v_poison();
    }
    if (ev->depth >= DEEPEST)
        limit(ev, at, "nested blocks", DEEPEST);
    spend(ev, at, 1);
    if (ev->build->model->param.n > 200000)
        limit(ev, at, "parameters", 200000);
    Instance *inst = instance_at(ev, b->def, path, via, inline_call, at);
    if (!inst)
        return v_poison();
    Frame frame = {.up = ev->frame, .call = at, .def = b->def, .inst = inst, .x = x, .n_x = n};
    ev->frame = &frame;
    ev->depth++;
    Scope *scope = scope_new(ev, placement, path, at);
    Env *start = b->def->is_method ? b->def->env : env_edge(ev, b->def->env);
    Binding **first = NEW_ARRAY(ev->arena, Binding *, b->def->ast->kid[0]->n + 1);
    bool ok = true;
    Env *env = config_bind(ev, b, start, scope, at, first, &ok);
    Value result = v_poison();
    if (ok) {
        ok = block_bind_tensors(ev, b->def, x, n, &env, scope, at);
        config_defaults(b, first, env);
        ok = ok && config_check(ev, b, first, scope);
    }
    if (ok) {
        Body body = {.ev = ev,
                     .env = env,
                     .scope = scope,
                     .inst = inst,
                     .def = b->def,
                     .at = at,
                     .configured = b->span,
                     .result = v_none()};
        frame.env = &body.env;
        size_t before = diag_errors(ev->ctx);
        exec(&body, b->def->ast->kid[3]);
        result = body.result;
        if (diag_errors(ev->ctx) == before)
            unused_params(&body, env);
        if (result.kind == V_NONE && b->def->ast->kid[2]) {
            returns_nothing(ev, b->def->ast);
            result = v_poison();
        }
        if (!block_check_result(ev, b->def, &result, body.env, scope, at))
            result = v_poison();
        if (!inline_call)
            *map_at(&ev->build->exports, (uintptr_t)path) = body.env;
        record_module(ev, b->def, x, n, path, &result);
    }
    ev->depth--;
    ev->frame = frame.up;
    return result;
}

Value block_apply(Eval *ev, const BlockValue *b, const Value *x, size_t n, Name name, Binding *via, Scope *scope,
                  Span at)
{
    Name prefix = scope ? scope->path : name_str(ev->ctx, "");
    if (via && (via->is_param_of_block || via->is_let) && via->prefix && *via->prefix)
        prefix = via->prefix;
    Name last = name ? name : b->def->ast->name;
    Name path = *prefix ? name_printf(ev->ctx, "%s.%s", prefix, last) : last;
    return apply_at(ev, b, x, n, path, via, name == NULL, scope, at);
}

Value block_apply_path(Eval *ev, const BlockValue *b, const Value *x, size_t n, Name path, Scope *scope, Span at)
{
    return apply_at(ev, b, x, n, path, NULL, false, scope, at);
}

/* A method may take `k`, the number of sublayers so far; that of `step` is among them. */
Value block_method(Eval *ev, const BlockValue *b, Name method, const Value *x, size_t n, Name path, Scope *placement,
                   Span at)
{
    const Ast *m = find_method(b->def, method);
    if (!m) {
        Diag *d =
            err(ev, "E0506", at, "", "`%s` is not a connection: it has no method `%s`", b->def->ast->name, method);
        diag_note(ev->ctx, d, "a connection is a block with the methods open, step and close");
        diag_help(ev->ctx, d, "declare `block %s` in it", method);
        diag_related(ev->ctx, d, b->def->ast->name_span, "`%s` is declared here", b->def->ast->name);
        return v_poison();
    }
    Scope *scope = scope_new(ev, placement, path, at);
    Frame frame = {.up = ev->frame, .call = at, .def = b->def, .inst = ev->frame ? ev->frame->inst : NULL};
    ev->frame = &frame;
    Binding **first = NEW_ARRAY(ev->arena, Binding *, b->def->ast->kid[0]->n + 1);
    bool ok = true;
    Env *env = config_bind(ev, b, env_edge(ev, b->def->env), scope, at, first, &ok);
    config_defaults(b, first, env);
    ok = ok && config_check(ev, b, first, scope);
    Instance outer = {.path = path, .def = b->def, .at = at};
    Body body = {.ev = ev, .env = env, .scope = scope, .inst = &outer, .def = b->def, .at = at, .configured = b->span};
    const Ast *items = b->def->ast->kid[3];
    for (uint32_t i = 0; ok && i < items->n && !body.returned; i++) {
        if (items->kid[i]->kind == AST_LET)
            exec_let(&body, items->kid[i]);
        else if (items->kid[i]->kind == AST_CHECK)
            exec_check(&body, items->kid[i]);
    }
    Value result = v_poison();
    if (ok && !body.returned) {
        BlockDef *def = NEW(ev->arena, BlockDef);
        *def = (BlockDef){.ast = m, .env = body.env, .file = b->def->file, .is_method = true};
        Arg k = {.name = name_str(ev->ctx, "k"), .value = v_num((double)ev->build->sublayers), .span = at};
        BlockValue mv = {.def = def, .arg = &k, .n_arg = 1, .span = b->span};
        result = apply_at(ev, &mv, x, n, path, NULL, false, placement, at);
    }
    ev->frame = frame.up;
    return result;
}

/* A block without tensors and without methods is a function of static values. */
static Value static_function(Eval *ev, const BlockValue *b, Scope *placement, Span at)
{
    enum { DEEPEST = 64 };
    if (ev->depth >= DEEPEST)
        limit(ev, at, "nested blocks", DEEPEST);
    Frame frame = {.up = ev->frame, .call = at, .def = b->def, .inst = ev->frame ? ev->frame->inst : NULL};
    ev->frame = &frame;
    ev->depth++;
    Scope *scope = scope_new(ev, placement, placement ? placement->path : name_str(ev->ctx, ""), at);
    Binding **first = NEW_ARRAY(ev->arena, Binding *, b->def->ast->kid[0]->n + 1);
    bool ok = true;
    Env *env = config_bind(ev, b, env_edge(ev, b->def->env), scope, at, first, &ok);
    config_defaults(b, first, env);
    Value result = v_poison();
    if (ok && config_check(ev, b, first, scope)) {
        Instance inst = {.path = scope->path, .def = b->def, .inline_call = true, .at = at};
        Body body = {.ev = ev,
                     .env = env,
                     .scope = scope,
                     .inst = &inst,
                     .def = b->def,
                     .at = at,
                     .configured = b->span,
                     .result = v_none()};
        exec(&body, b->def->ast->kid[3]);
        result = body.result;
    }
    ev->depth--;
    ev->frame = frame.up;
    return result;
}

static size_t positional(Eval *ev, const Ast *args, Env *env, Scope *scope, Value **out)
{
    Value *v = NEW_ARRAY(ev->arena, Value, args->n + 1);
    size_t n = 0;
    for (uint32_t i = 0; i < args->n; i++)
        if (args->kid[i]->kind != AST_NAMED && args->kid[i]->kind != AST_OFF)
            v[n++] = eval(ev, args->kid[i], env, scope);
    *out = v;
    return n;
}

static bool has_named(const Ast *args)
{
    for (uint32_t i = 0; i < args->n; i++)
        if (args->kid[i]->kind == AST_NAMED)
            return true;
    return false;
}

static Value call_block(Eval *ev, const BlockValue *b, const Ast *e, Env *env, Scope *scope, Binding *via)
{
    const Ast *callee = e->kid[0], *args = e->kid[1];
    Value *x;
    size_t n = positional(ev, args, env, scope, &x);
    if (n && configured_by_position(ev, b, e, x, n))
        return v_poison();
    if (n && has_named(args)) {
        Diag *d = err(ev, "E0209", e->span, "", "configuration and tensors in one call of `%s`", b->def->ast->name);
        Buf named = buf_new(ev->arena), tensors = buf_new(ev->arena);
        for (uint32_t i = 0; i < args->n; i++)
            if (args->kid[i]->kind == AST_NAMED)
                buf_printf(&named, "%s%s = %s", named.n ? ", " : "", args->kid[i]->name,
                           expr_text(ev, args->kid[i]->kid[0]));
            else if (args->kid[i]->kind != AST_OFF)
                buf_printf(&tensors, "%s%s", tensors.n ? ", " : "", expr_text(ev, args->kid[i]));
        diag_note(ev->ctx, d, "named arguments configure a block, positional ones are what it is applied to");
        const char *block = expr_text(ev, callee), *name = strcmp(block, "f") ? "f" : "g";
        diag_help(ev->ctx, d, "configure it under a name, then apply that: `let %s = %s(%s)`, then `%s(%s)`", name,
                  block, named.s, name, tensors.s);
        return v_poison();
    }
    bool applies = n || (b->configured && !args->n && b->def->ast->kid[1] && !b->def->ast->kid[1]->n);
    if (!applies) {
        Value v = block_configure(ev, b, args, env, e->span);
        bool is_function = !b->def->ast->kid[1] && !b->def->has_methods;
        return v.kind == V_BLOCK && is_function ? static_function(ev, v.block, scope, e->span) : v;
    }
    Name name = callee->kind == AST_ID ? callee->name : NULL;
    return block_apply(ev, b, x, n, name, via, scope, e->span);
}

Value call(Eval *ev, const Ast *e, Env *env, Scope *scope)
{
    const Ast *callee = e->kid[0];
    Binding *via = callee->kind == AST_ID ? env_find(env, callee->name) : NULL;
    if (callee->kind == AST_ID && !via && !strcmp(callee->name, "params") && !ev->build) {
        File *f = NULL;
        for (Env *x = env; x; x = x->up)
            f = x->file ? x->file : f;
        return params_of(ev, f, e, env);
    }
    Value f = via ? binding_get(ev, via, scope) : eval(ev, callee, env, scope);
    switch (f.kind) {
    case V_POISON: return f;
    case V_BLOCK: return call_block(ev, f.block, e, env, scope, via);
    case V_FN: return prim_call(ev, f.prim, e, env, scope);
    case V_SUB: {
        Value *x;
        if (positional(ev, e->kid[1], env, scope, &x) != 1 || has_named(e->kid[1])) {
            err(ev, "E0313", e->span, "", "a sublayer is applied to one tensor");
            return v_poison();
        }
        Value v = to_tensor(ev, x[0], e->span);
        return v.kind == V_POISON ? v : f.sub->call(ev, f.sub->self, v, e->span);
    }
    default: {
        Diag *d = err(ev, "E0210", callee->span, "", "%s cannot be called", value_kind_name(&f));
        if (f.kind == V_NUM)
            diag_help(ev->ctx, d, "to multiply, write `*`");
        return v_poison();
    }
    }
}
