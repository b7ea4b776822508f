/* check_model.c - the nodes of a `model`: scopes, embeddings, sublayers, heads.
 *
 * In:  the items of a model, in order.   Out: Builder.model, its graph complete up to the losses.
 * The one idea: C knows the order of things (embed, open, step per sublayer, close, head) and nothing
 * else; what an embedding, a sublayer, a connection or a head computes is a block of the language.
 * `embed LABEL` and `head LABEL` are the blocks `embed_LABEL` and `head_LABEL`.
 */
#include "attribute.h"
#include "check.h"
#include "grammar/foreign.h"
#include "override.h"

#include <stdio.h>

#include <math.h>

bool is_scope_name(Name name) { return attribute_find("model", name) != NULL; }

typedef struct ModelWalk {
    Eval *ev;
    Env *env;
    Scope *scope;
    Value *state;  /* the travelling state of this sequence of sublayers */
    bool in_layer; /* inside a head's own layers: no embeddings, no heads */
} ModelWalk;

static void walk(ModelWalk *w, const Ast *items);

/* ---- nodes ---- */

typedef struct Node1 { /* a node with its block, configured */
    ModelWalk *walk;
    Eval *ev;
    const Ast *ast;
    Name name; /* its kind, or kind.label */
    Name path;
    Scope *scope;
    const BlockValue *block;
    Value layer; /* V_SUB for a nested `layer { }` */
} Node1;

/* The node was applied: `tied` finds it under its name, and no longer an earlier one of that name. */
static void latest_is(const Node1 *n)
{
    Builder *b = n->ev->build;
    *map_at(&b->latest, (uintptr_t)n->name) = map_get(&b->exports, (uintptr_t)n->path);
}

static Span node_span(const Ast *it)
{
    Span s = it->kid[0]->span;
    return it->kid[1] ? span_join(s, it->kid[1]->span) : s;
}

static Value run_nested(Eval *ev, void *self, Value x, Span at)
{
    Node1 *n = self;
    (void)at;
    const Ast *items = NULL;
    for (uint32_t i = 0; n->ast->kid[2] && i < n->ast->kid[2]->n; i++) {
        const Ast *it = n->ast->kid[2]->kid[i];
        if (it->kind == AST_NODE && !strcmp(it->kid[0]->name, "layer"))
            items = it->kid[2];
    }
    ModelWalk w = {.ev = ev, .env = n->walk->env, .state = &x, .in_layer = true};
    w.scope = scope_new(ev, n->scope, name_printf(ev->ctx, "%s.layer", n->path), n->ast->span);
    if (items)
        walk(&w, items);
    return x;
}

/* `connection residual { }`; nothing is missing then. */
static void attribute_as_node(ModelWalk *w, Diag *d, const Ast *it)
{
    Eval *ev = w->ev;
    Name key = it->kid[0]->name;
    if (!it->kid[1]) {
        diag_help(ev->ctx, d, "an attribute: `%s = ...`", key);
        return;
    }
    diag_help(ev->ctx, d, "an attribute: `%s = %s()`", key, it->kid[1]->name);
    Ast *id = NEW(ev->arena, Ast), *args = NEW(ev->arena, Ast), *call = NEW(ev->arena, Ast);
    *id = (Ast){.kind = AST_ID, .name = it->kid[1]->name, .span = it->kid[1]->span, .name_span = it->kid[1]->span};
    *args = (Ast){.kind = AST_ARGS, .span = it->span};
    *call = (Ast){.kind = AST_CALL, .span = it->span, .n = 2, .kid = NEW_ARRAY(ev->arena, Ast *, 2)};
    call->kid[0] = id;
    call->kid[1] = args;
    scope_set(ev, w->scope, key, call, w->env, it->span);
}

static void unknown_node(ModelWalk *w, const Ast *it, Name block_name)
{
    Eval *ev = w->ev;
    const NodeDoc *doc = node_doc_find(it->kid[0]->name);
    if (doc && node_stands_in(doc, "file") && !node_stands_in(doc, "model")) {
        err(ev, "E0110", node_span(it), "", "`%s` stands at the top of a file", doc->name);
        return;
    }
    Diag *d =
        err(ev, "E0102", node_span(it), "not found in this file or its imports", "no block `%s` here", block_name);
    if (is_scope_name(it->kid[0]->name)) {
        attribute_as_node(w, d, it);
        return;
    }
    if (help_import(ev, d, block_name))
        return;
    if (advise_node(ev, d, it, w->env, node_span(it))) {
        const Foreign *row = foreign_next(FOREIGN_NODE, it->kid[0]->name, NULL);
        if (row->ours && !strncmp(row->ours, "embed", 5) && ev->build->embed.kind == V_NONE)
            ev->build->embed = v_poison(); /* that none stands here is said */
        return;
    }
    Name *names;
    bool sure;
    size_t n = env_names(ev, w->env, &names);
    Name best = meant_name(block_name, names, n, &sure);
    size_t kind = it->kid[1] && block_name != it->kid[0]->name ? strlen(it->kid[0]->name) : 0;
    bool place = best && kind && !strncmp(best, block_name, kind + 1); /* embed_token: the label is misspelt */
    if (best && (place || !it->kid[1]))
        diag_fix(ev->ctx, d, node_span(it),
                 place ? name_printf(ev->ctx, "%s %s", it->kid[0]->name, best + kind + 1) : best,
                 sure ? FIX_CERTAIN : FIX_MAYBE, place ? "did you mean `%.*s %s`?" : "did you mean `%.*s%s`?",
                 place ? (int)kind : (int)strlen(best), best, place ? best + kind + 1 : "");
    else if (best)
        diag_help(ev->ctx, d, "did you mean `%s`?", best);
    else if (!env_find(w->env, name_str(ev->ctx, "head_lm")))
        diag_help(ev->ctx, d, "the usual blocks come with `import \"std/transformer\"`");
}

static const BlockValue *find_block(ModelWalk *w, const Ast *it, Name name)
{
    Binding *b = env_find(w->env, name);
    if (!b) {
        unknown_node(w, it, name);
        return NULL;
    }
    Value v = binding_get(w->ev, b, w->scope);
    if (v.kind == V_BLOCK)
        return v.block;
    if (v.kind != V_POISON)
        err(w->ev, "E0206", node_span(it), "", "`%s` is %s, not a block", name, value_kind_name(&v));
    return NULL;
}

/* What settings say about this very node. */
static void node_overrides(Node1 *n, Arg *args, size_t *n_args)
{
    Eval *ev = n->ev;
    Name *names;
    OverridePlace place = {.ev = ev, .file = ev->build->file, .node = n->path, .env = n->walk->env, .known = true};
    size_t count = override_attrs(ev, place.file, n->path, &names);
    for (size_t i = 0; i < count; i++) {
        bool config = n->block && block_param(n->block->def, names[i]), scoped = is_scope_name(names[i]);
        const Ast *expr = NULL;
        size_t k = 0;
        while (k < *n_args && args[k].name != names[i])
            k++;
        if (k < *n_args)
            expr = args[k].expr;
        for (size_t j = 0; !expr && scoped && j < n->scope->n_attr; j++)
            expr = n->scope->attr[j].name == names[i] ? n->scope->attr[j].expr : NULL;
        const Override *o = config || scoped ? override_attribute(&place, names[i], &expr) : NULL;
        if (!o)
            continue;
        if (config) {
            args[k] = (Arg){.name = names[i], .expr = expr, .env = place.env, .span = o->span};
            *n_args = k == *n_args ? k + 1 : *n_args;
        }
        if (scoped)
            scope_set(ev, n->scope, names[i], expr, place.env, o->span);
    }
}

/* Splits the node's attributes into the block's configuration and scope attributes. */
static bool node_attributes(Node1 *n, Arg *args, size_t *n_args)
{
    Eval *ev = n->ev;
    const Ast *items = n->ast->kid[2];
    bool ok = true;
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i];
        if (it->kind == AST_OFF)
            continue;
        if (it->kind == AST_NODE && !strcmp(it->kid[0]->name, "layer") && n->block &&
            block_param(n->block->def, name_str(ev->ctx, "layer"))) {
            for (size_t k = 0; k < *n_args; k++)
                if (args[k].value.kind == V_SUB)
                    err(ev, "E0108", it->kid[0]->span, "given twice", "`layer` is given twice");
            Sub *sub = NEW(ev->arena, Sub);
            *sub = (Sub){run_nested, n};
            args[(*n_args)++] =
                (Arg){.name = name_str(ev->ctx, "layer"), .value = {.kind = V_SUB, .sub = sub}, .span = it->span};
            continue;
        }
        if (it->kind != AST_SET || it->kid[0]->n) {
            odd_item(ev, n->ast->kid[0]->name, n->block, it);
            ok = false;
            continue;
        }
        Name key = it->kid[0]->name;
        bool config = n->block && block_param(n->block->def, key);
        for (size_t k = 0; k < *n_args; k++)
            if (args[k].name == key)
                err(ev, "E0108", it->span, "given twice", "`%s` is given twice", key);
        if (!strcmp(key, "allow"))
            err(ev, "E0110", it->span, "", "`allow` stands in the model itself");
        for (size_t k = 0; !config && k < n->scope->n_attr; k++)
            if (n->scope->attr[k].name == key)
                err(ev, "E0108", it->span, "given twice", "`%s` is given twice", key);
        if (config)
            args[(*n_args)++] = (Arg){.name = key, .expr = it->kid[1], .env = n->walk->env, .span = it->span};
        if (is_scope_name(key)) {
            scope_set(ev, n->scope, key, it->kid[1], n->walk->env, it->span);
        } else if (!config) {
            Ast named = {.kind = AST_NAMED, .name = key, .name_span = it->kid[0]->span, .span = it->span};
            Ast *kids[1] = {&named}, fake = {.kind = AST_ARGS, .n = 1};
            fake.kid = kids;
            block_configure(ev, n->block, &fake, n->walk->env, it->span); /* files E0101 */
            ok = false;
        }
    }
    node_overrides(n, args, n_args);
    return ok;
}

/* `nn.Linear { out = 64 }`: a module in front of a node. */
static void node_of_module(ModelWalk *w, const Ast *it)
{
    Ctx *ctx = w->ev->ctx;
    const Ast *path = it->kid[0], *last = path->kid[path->n - 1];
    Diag *d = err(w->ev, "E0110", path->span, "", "a node is named by one word");
    if (last->kind != AST_DOT)
        return;
    const Foreign *row = foreign_next(FOREIGN_NODE, last->name, NULL);
    row = row ? row : foreign_next(FOREIGN_VALUE, last->name, NULL);
    Name ours = row && row->ours ? name_str(ctx, row->ours) : last->name;
    char small[64];
    snprintf(small, sizeof small, "%s", last->name);
    for (char *c = small; *c; c++)
        *c = (char)(*c >= 'A' && *c <= 'Z' ? *c | 32 : *c);
    ours = env_find(w->env, ours) ? ours : name_str(ctx, small);
    if (env_find(w->env, ours))
        diag_help(ctx, d, "write `%s { ... }`", ours);
    else if (row && row->text)
        diag_help(ctx, d, "%s", row->text);
}

static Node1 *open_node(ModelWalk *w, const Ast *it, Name block_name)
{
    Eval *ev = w->ev;
    Node1 *n = NEW(ev->arena, Node1);
    Name label = it->kid[1] ? it->kid[1]->name : NULL;
    Name last = label ? name_printf(ev->ctx, "%s.%s", it->kid[0]->name, label) : it->kid[0]->name;
    *n = (Node1){.ev = ev, .ast = it, .name = last};
    n->walk = NEW(ev->arena, ModelWalk);
    *n->walk = *w;
    n->path = *w->scope->path ? name_printf(ev->ctx, "%s.%s", w->scope->path, last) : last;
    n->scope = scope_new(ev, w->scope, n->path, it->span);
    n->scope->node = it;
    *map_at(&ev->build->scopes, (uintptr_t)n->path) = n->scope;
    if (it->kid[0]->n) {
        node_of_module(w, it);
        return NULL;
    }
    n->block = find_block(w, it, block_name);
    if (!n->block)
        return NULL;
    size_t most = (it->kid[2] ? it->kid[2]->n : 0) + ev->build->file->overrides.n + 1, n_args = 0;
    Arg *args = NEW_ARRAY(ev->arena, Arg, most + 1);
    if (!node_attributes(n, args, &n_args))
        return NULL;
    n->block = block_with(ev, n->block, args, n_args, node_span(it)).block;
    if (map_get(&ev->build->instances, (uintptr_t)n->path)) {
        Instance *had = map_get(&ev->build->instances, (uintptr_t)n->path);
        Diag *d = err(ev, "E0107", node_span(it), "", "two nodes have the path `%s`", n->path);
        diag_related(ev->ctx, d, had->at, "the first one");
        advise_label(ev, d, it, w->env);
        return NULL;
    }
    return n;
}

/* A norm of the scope, applied at `<node>.pre_norm` or `<node>.out_norm`. */
static Value scope_norm(Node1 *n, const char *which, Value x)
{
    bool found;
    Value norm = scope_value(n->ev, n->scope, name_str(n->ev->ctx, which), &found);
    Builder *b = n->ev->build;
    if (!found && !strcmp(which, "pre_norm") && !scope_find(n->scope, name_str(n->ev->ctx, "out_norm"), NULL) &&
        !b->no_norm.file)
        b->no_norm = node_span(n->ast);
    if (!found || norm.kind == V_NONE || x.kind == V_POISON)
        return x;
    if (norm.kind != V_BLOCK) {
        if (norm.kind != V_POISON)
            err(n->ev, "E0206", node_span(n->ast), "", "`%s` must be a block, got %s", which, value_kind_name(&norm));
        return v_poison();
    }
    return block_apply_path(n->ev, norm.block, &x, 1, name_printf(n->ev->ctx, "%s.%s", n->path, which), n->scope,
                            node_span(n->ast));
}

static bool reads_width(Node1 *n, const Value *h)
{
    Eval *ev = n->ev;
    bool found;
    Value w = scope_value(ev, n->scope, name_str(ev->ctx, "width"), &found);
    Span at = node_span(n->ast);
    if (!found) {
        Diag *d = err(ev, "E0203", at, "reads the state of the model", "no `width` for `%s`", n->path);
        diag_note(ev->ctx, d, "`width` is what every sublayer reads and writes; it is checked");
        diag_help(ev->ctx, d, "add `width = ...` to the model or to this node");
        return false;
    }
    if (w.kind == V_POISON)
        return false;
    const Shape *s = shape_of(ev->build->g, h->val);
    Dim d;
    if (!value_dim(ev, &w, at, "width", &d))
        return false;
    if (dim_static(d) && d.n == 0) {
        Diag *zero = err(ev, "E0404", scope_find(n->scope, name_str(ev->ctx, "width"), NULL)->span, "",
                         "`width` of `%s` is 0", n->path);
        diag_help(ev->ctx, zero, "write how many coordinates a sublayer reads and writes, 1 or more");
        return false;
    }
    if (s->rank && dim_eq(s->d[s->rank - 1], d))
        return true;
    Buf b = buf_new(ev->arena);
    shape_print(&b, s);
    Attribute *a = scope_find(n->scope, name_str(ev->ctx, "width"), NULL);
    const Shape *e = ev->build->embed.kind == V_TENSOR ? shape_of(ev->build->g, ev->build->embed.val) : NULL;
    if (ev->build->applied == 1 && e && e->rank && s->rank && dim_eq(e->d[e->rank - 1], s->d[s->rank - 1])) {
        Buf wide = buf_new(ev->arena);
        dim_print(&wide, e->d[e->rank - 1]);
        Diag *first = err(ev, "E0505", ev->build->embed_span, "",
                          "the embedding is %s wide, and the layers read width = %s", wide.s, value_text(ev, &w));
        if (a)
            diag_label(ev->ctx, first, a->span, "width of this scope");
        diag_help(ev->ctx, first,
                  "leave the `width` of the embedding out, or take a connection that cuts or widens it");
        return false;
    }
    Diag *diag =
        err(ev, "E0505", at, "", "`%s` reads %s, but its scope says width = %s", n->path, b.s, value_text(ev, &w));
    if (a)
        diag_label(ev->ctx, diag, a->span, "width of this scope");
    diag_note(ev->ctx, diag, "the connection hands every sublayer a tensor of the scope's width");
    diag_help(ev->ctx, diag,
              "a width that changes over depth needs a connection that cuts or widens its state, such as\n"
              "`connection = carried(head = ..., widths = ...)`");
    return false;
}

static Value run_sublayer(Eval *ev, void *self, Value h, Span at)
{
    Node1 *n = self;
    (void)at;
    ev->build->applied++;
    if (!reads_width(n, &h))
        return v_poison();
    int64_t reads = coordinates(shape_of(ev->build->g, h.val));
    ev->build->reads += reads;
    if (reads > ev->build->widest_read)
        ev->build->widest_read = reads;
    Value x = scope_norm(n, "pre_norm", h);
    if (x.kind == V_POISON)
        return x;
    Value y = block_apply_path(ev, n->block, &x, 1, n->path, n->scope, node_span(n->ast));
    latest_is(n);
    if (y.kind == V_POISON)
        return y;
    y = to_tensor(ev, y, node_span(n->ast));
    y = y.kind == V_POISON ? y : scope_norm(n, "out_norm", y);
    remember(ev, node_span(n->ast), &y);
    if (y.kind != V_TENSOR)
        return y;
    const Shape *s = shape_of(ev->build->g, h.val), *t = shape_of(ev->build->g, y.val);
    if (shape_eq(s, t))
        return y;
    Buf in = buf_new(ev->arena), out = buf_new(ev->arena);
    shape_print(&in, s);
    shape_print(&out, t);
    Diag *d = err(ev, "E0303", n->ast->span, "", "a sublayer must return the shape it reads");
    if (d->labels.n)
        d->labels.v[0].text = arena_printf(ev->arena, "reads %s, returns %s", in.s, out.s);
    diag_note(ev->ctx, d, "the connection adds what a sublayer returns to what it read");
    diag_help(ev->ctx, d,
              "return to the input width inside the block, or vary the width of whole layers with\n"
              "`connection = carried(head = ..., widths = ...)`");
    return v_poison();
}

static const BlockValue *connection_of(Eval *ev, Scope *scope, Span at)
{
    bool found;
    Value c = scope_value(ev, scope, name_str(ev->ctx, "connection"), &found);
    if (found && c.kind == V_BLOCK) {
        if (c.block->def->has_methods)
            return c.block;
        Span where = scope_find(scope, name_str(ev->ctx, "connection"), NULL)->expr->span;
        Diag *d = err(ev, "E0506", where, "", "`%s` is not a connection", c.block->def->ast->name);
        diag_note(ev->ctx, d, "a connection is a block with the methods open, step and close");
        diag_help(ev->ctx, d, "plain residuals are `connection = residual()`; `std/connections.vwn` has more");
        return NULL;
    }
    if (!found) {
        Diag *d = err(ev, "E0203", at, "needs a connection", "no `connection` for `%s`", scope->path);
        diag_help(ev->ctx, d, "add `connection = residual()` to the model");
    } else if (c.kind != V_POISON) {
        Span where = scope_find(scope, name_str(ev->ctx, "connection"), NULL)->expr->span;
        Diag *d = err(ev, "E0206", where, "", "`connection` must be a block, got %s", value_kind_name(&c));
        diag_help(ev->ctx, d, "plain residuals are `connection = residual()`; `std/connections.vwn` has more");
    }
    return NULL;
}

static bool open_state(ModelWalk *w, Scope *scope, Span at)
{
    Eval *ev = w->ev;
    Builder *b = ev->build;
    if (b->opened)
        return b->state.kind == V_TENSOR;
    b->opened = true;
    if (b->embed.kind != V_TENSOR) {
        if (b->embed.kind == V_NONE)
            diag_help(ev->ctx, err(ev, "E0111", at, "reads nothing", "no `embed` node before this one"),
                      "for text: `embed tokens { vocab = 256 }`, in front of the layers");
        return false;
    }
    const BlockValue *c = connection_of(ev, scope, at);
    if (!c)
        return false;
    b->state = block_method(ev, c, name_str(ev->ctx, "open"), &b->embed, 1, name_str(ev->ctx, "connection.open"),
                            b->root, b->embed_span);
    if (b->state.kind != V_TENSOR)
        return false;
    b->model->state_width = coordinates(shape_of(b->g, b->state.val));
    b->model->embedded = b->embed.val;
    b->model->opened = b->state.val;
    return true;
}

/* The path of a sublayer's connection: below the sublayer, or below what the sublayer stands in. */
static Name connection_path(Eval *ev, Scope *scope)
{
    static const char *const words[] = {"sublayer", "layer"};
    Name attribute = name_str(ev->ctx, "connection_per"), names[COUNT_OF(words)];
    bool found;
    Value v = scope_value(ev, scope, attribute, &found);
    Name own = name_printf(ev->ctx, "%s.connection", scope->path), per = v.kind == V_WORD ? v.word : "";
    if (!found || v.kind == V_POISON || !strcmp(per, words[0]))
        return own;
    if (!strcmp(per, words[1])) {
        Name around = scope->up->path;
        return *around ? name_printf(ev->ctx, "%s.connection", around) : name_str(ev->ctx, "connection");
    }
    Span at = scope_find(scope, attribute, NULL)->expr->span;
    Diag *d = err(ev, "E0205", at, "", "`connection_per` must be `sublayer` or `layer`");
    for (size_t i = 0; i < COUNT_OF(words); i++)
        names[i] = name_str(ev->ctx, words[i]);
    if (*per)
        suggest(ev, d, per, names, COUNT_OF(words), at);
    return own;
}

/* A sublayer that a connection may apply, whose every application is written down. */
typedef struct Application {
    SubFn call;
    void *self;
    Name path;
} Application;

static Value apply_sublayer(Eval *ev, void *self, Value h, Span at)
{
    const Application *a = self;
    Value y = a->call(ev, a->self, h, at);
    if (y.kind == V_TENSOR)
        vec_push(ev->arena, &ev->build->model->sublayer,
                 (ModelSublayer){.path = a->path, .read = h.val, .wrote = y.val});
    return y;
}

static void step_state(ModelWalk *w, Scope *scope, const Ast *it, SubFn fn, void *self)
{
    Eval *ev = w->ev;
    Builder *b = ev->build;
    Span at = node_span(it);
    if (!w->in_layer && !open_state(w, scope, at))
        return;
    if (w->state->kind != V_TENSOR)
        return;
    const BlockValue *c = connection_of(ev, scope, at);
    if (!c) {
        *w->state = v_poison();
        return;
    }
    Application *traced = NEW(ev->arena, Application);
    *traced = (Application){fn, self, scope->path};
    Sub *sub = NEW(ev->arena, Sub);
    *sub = w->in_layer ? (Sub){fn, self} : (Sub){apply_sublayer, traced};
    Value x[2] = {*w->state, {.kind = V_SUB, .sub = sub}};
    int64_t applied = b->applied;
    size_t first = b->model->sublayer.n;
    b->reads = b->widest_read = 0;
    b->sublayers++;
    Value out = block_method(ev, c, name_str(ev->ctx, "step"), x, 2, connection_path(ev, scope), scope, at);
    if (out.kind == V_TENSOR && b->applied == applied && !b->unapplied.file)
        b->unapplied = at;
    if (out.kind == V_TENSOR)
        vec_push(ev->arena, &b->model->step,
                 ((ModelStep){scope->path, c->def->ast->name, b->reads, coordinates(shape_of(b->g, x[0].val))}));
    if (!w->in_layer) {
        b->model->steps_of_state++;
        b->model->reads += b->reads;
        if (b->widest_read > b->model->widest_read)
            b->model->widest_read = b->widest_read;
        for (size_t i = first; i < b->model->sublayer.n && out.kind == V_TENSOR; i++)
            b->model->sublayer.v[i].after = out.val;
    }
    *w->state = out.kind == V_TENSOR ? out : v_poison();
}

static void do_sublayer(ModelWalk *w, const Ast *it)
{
    Node1 *n = open_node(w, it, it->kid[0]->name);
    if (n)
        step_state(w, n->scope, it, run_sublayer, n);
    else
        *w->state = v_poison();
}

typedef struct Parallel {
    Node1 **node;
    size_t n;
} Parallel;

static Value run_parallel(Eval *ev, void *self, Value h, Span at)
{
    Parallel *p = self;
    Value sum = v_none();
    for (size_t i = 0; i < p->n; i++) {
        Value y = run_sublayer(ev, p->node[i], h, at);
        if (y.kind != V_TENSOR)
            return y;
        sum = sum.kind == V_NONE ? y : v_tensor(ir_binary(ev->build->g, OP_ADD, sum.val, y.val));
    }
    return sum.kind == V_NONE ? h : sum;
}

static void do_parallel(ModelWalk *w, const Ast *it)
{
    Eval *ev = w->ev;
    Scope *scope =
        scope_new(ev, w->scope,
                  *w->scope->path ? name_printf(ev->ctx, "%s.parallel", w->scope->path) : name_str(ev->ctx, "parallel"),
                  it->span);
    ModelWalk inner = *w;
    inner.scope = scope;
    size_t errors = diag_errors(ev->ctx);
    const Ast *items = it->kid[2];
    if (it->kid[1])
        err(ev, "E0110", it->kid[1]->span, "", "`parallel` has no label");
    Parallel *p = NEW(ev->arena, Parallel);
    p->node = NEW_ARRAY(ev->arena, Node1 *, (items ? items->n : 0) + 1);
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *k = items->kid[i];
        if (k->kind == AST_OFF)
            continue;
        if (k->kind == AST_SET && !k->kid[0]->n && is_scope_name(k->kid[0]->name)) {
            scope_set(ev, scope, k->kid[0]->name, k->kid[1], w->env, k->span);
        } else if (k->kind == AST_NODE) {
            Node1 *n = open_node(&inner, k, k->kid[0]->name);
            if (n)
                p->node[p->n++] = n;
        } else {
            err(ev, "E0110", k->span, "", "`parallel` holds sublayers and scope attributes");
        }
    }
    if (!p->n) {
        if (diag_errors(ev->ctx) == errors)
            err(ev, "E0110", it->span, "", "`parallel` holds no sublayer");
        *w->state = v_poison();
    } else
        step_state(w, scope, it, run_parallel, p);
}

static void do_embed(ModelWalk *w, const Ast *it)
{
    Eval *ev = w->ev;
    Builder *b = ev->build;
    if (!it->kid[1] || b->opened || w->in_layer) {
        Diag *d = err(ev, "E0110", node_span(it), "",
                      b->opened ? "`embed` must stand before the first sublayer" : "`embed` needs a label");
        diag_help(ev->ctx, d, "for example `embed tokens { vocab = 256 }`");
        return;
    }
    Node1 *n = open_node(w, it, name_printf(ev->ctx, "embed_%s", it->kid[1]->name));
    if (!n) {
        b->embed = v_poison();
        return;
    }
    b->embed_span = node_span(it);
    const Ast *params = n->block->def->ast->kid[1];
    bool reads = params && params->n;
    if (reads && b->embed.kind != V_TENSOR) {
        if (b->embed.kind == V_NONE)
            err(ev, "E0111", node_span(it), "reads nothing", "no other `embed` node before this one");
        return;
    }
    Value e = block_apply_path(ev, n->block, &b->embed, reads ? 1 : 0, n->path, n->scope, node_span(it));
    latest_is(n);
    e = e.kind == V_POISON ? e : to_tensor(ev, e, node_span(it));
    remember(ev, node_span(it), &e);
    if (e.kind == V_POISON || b->embed.kind == V_POISON) {
        b->embed = v_poison();
        return;
    }
    Shape out;
    if (reads || b->embed.kind == V_NONE) {
        b->embed = e;
    } else if (shape_broadcast(shape_of(b->g, b->embed.val), shape_of(b->g, e.val), &out)) {
        b->embed = v_tensor(ir_binary(b->g, OP_ADD, b->embed.val, e.val));
    } else {
        Buf s = buf_new(ev->arena), t = buf_new(ev->arena);
        shape_print(&s, shape_of(b->g, b->embed.val));
        shape_print(&t, shape_of(b->g, e.val));
        err(ev, "E0311", node_span(it), "", "embeddings are added: %s and %s do not match", s.s, t.s);
        b->embed = v_poison();
    }
}

static void do_head(ModelWalk *w, const Ast *it)
{
    Eval *ev = w->ev;
    Builder *b = ev->build;
    Span at = node_span(it);
    if (!it->kid[1] || w->in_layer) {
        Diag *d = err(ev, "E0110", at, "", "`head` needs a label and stands in the model itself");
        diag_help(ev->ctx, d, "for example `head lm { vocab = 256 }`");
        return;
    }
    if (!open_state(w, w->scope, at) || b->state.kind != V_TENSOR)
        return;
    Node1 *n = open_node(w, it, name_printf(ev->ctx, "head_%s", it->kid[1]->name));
    if (!n)
        return;
    const Ast *params = n->block->def->ast->kid[1];
    bool travels = params && params->n == 1 && !strcmp(params->kid[0]->name, "state");
    Value x = travels ? (b->head_state.kind == V_TENSOR ? b->head_state : b->state) : v_none();
    if (!travels) {
        const BlockValue *c = connection_of(ev, n->scope, at);
        if (!c)
            return;
        x = block_method(ev, c, name_str(ev->ctx, "close"), &b->state, 1,
                         name_printf(ev->ctx, "%s.connection.close", n->path), n->scope, at);
    }
    if (x.kind != V_TENSOR)
        return;
    if (!travels && !b->model->closed)
        b->model->closed = x.val;
    Value y = block_apply_path(ev, n->block, &x, 1, n->path, n->scope, at);
    remember(ev, at, &y);
    latest_is(n);
    if (travels && y.kind == V_TENSOR)
        b->head_state = y;
}

/* ---- items ---- */

static void model_allow(ModelWalk *w, const Ast *it)
{
    if (w->scope != w->ev->build->root) {
        err(w->ev, "E0110", it->span, "", "`allow` stands in the model itself");
        return;
    }
    lint_check_allow(w->ev, it->kid[1]);
    w->ev->build->file->allow = it->kid[1]->kind == AST_LIST ? it->kid[1] : NULL;
}

/* The model itself, or an iteration of a loop. */
static OverridePlace scope_place(ModelWalk *w)
{
    Name path = *w->scope->path ? w->scope->path : name_str(w->ev->ctx, "model");
    return (OverridePlace){.ev = w->ev, .file = w->ev->build->file, .node = path, .env = w->env, .known = true};
}

static void do_attribute(ModelWalk *w, const Ast *it)
{
    Eval *ev = w->ev;
    Name key = it->kid[0]->name;
    if (!it->kid[0]->n && is_scope_name(key)) {
        for (size_t i = 0; i < w->scope->n_attr; i++)
            if (w->scope->attr[i].name == key) {
                Diag *d = err(ev, "E0108", it->span, "given twice", "`%s` is given twice", key);
                diag_label(ev->ctx, d, w->scope->attr[i].span, "first given here");
                return;
            }
        if (!strcmp(key, "allow"))
            model_allow(w, it);
        const Ast *expr = it->kid[1];
        OverridePlace place = scope_place(w);
        override_attribute(&place, key, &expr);
        scope_set(ev, w->scope, key, expr, w->env, it->span);
        return;
    }
    const Ast *path = it->kid[0], *value = it->kid[1];
    const char *full = span_text(ev, path->span);
    if (value->kind == AST_CALL && value->kid[0]->kind == AST_FIELD && no_module(ev, value->kid[0])) {
        if (!strcmp(value->kid[0]->name, "Embedding") && ev->build->embed.kind == V_NONE)
            ev->build->embed = v_poison(); /* wte = nn.Embedding(256, D) */
        return;
    }
    Diag *d = err(ev, "E0101", path->span, "unknown attribute", "a model has no attribute `%s`", full);
    const char *known;
    size_t n;
    if (path->n) {
        advise_path(ev, d, path, value);
        return;
    }
    if (value->kind == AST_CALL && value->kid[0]->kind == AST_ID && advise_placed(ev, d, w->env, key, value))
        return;
    Name *names = attribute_names(ev->ctx, ev->arena, "model", false, &n, &known);
    diag_note(ev->ctx, d, "its attributes are %s", known);
    suggest_attribute(ev, d, key, names, n, it->kid[0]->span);
    if (!d->helps.n && it->kid[1]->kind == AST_OP && !strcmp(it->kid[1]->name, "+"))
        diag_help(
            ev->ctx, d,
            "a sublayer is a node, `ffn { ... }`, and `connection = residual()` adds what it gives to the stream");
    else if (!d->helps.n)
        diag_help(ev->ctx, d, "a value of your own is a let: `let %s = ...`", key);
    for (size_t i = 0; i < n; i++) /* what is meant is no longer missing */
        if (is_scope_name(names[i]) && !given_beside(ev, it->kid[0]->span, names[i])) {
            const Ast *meant = meant_value(ev, key, names[i], it->kid[1]);
            if (meant)
                scope_set(ev, w->scope, names[i], meant, w->env, it->span);
        }
}

/* `for layer in 1..L` with L = 0 is a model without layers, with L below 0 a mistake. */
static bool loop_may_be_empty(ModelWalk *w, const Ast *range)
{
    double low = 1, high = 0;
    bool known = range->kind == AST_RANGE && eval_number(w->ev, range->kid[0], w->env, w->scope, "start", &low) &&
                 eval_number(w->ev, range->kid[1], w->env, w->scope, "end", &high);
    if (known && high < 0 && low >= 0) {
        err(w->ev, "E0208", range->kid[1]->span, arena_printf(w->ev->arena, "this is %.6g", high),
            "a model cannot have a negative number of layers");
        *w->state = v_poison();
        return false;
    }
    if (!w->ev->build->empty_loop.file)
        w->ev->build->empty_loop = range->span;
    return true;
}

static void do_for(ModelWalk *w, const Ast *it)
{
    Eval *ev = w->ev;
    Value range = eval(ev, it->kid[0], w->env, w->scope);
    if (range.kind != V_LIST) {
        if (range.kind != V_POISON)
            no_list(ev, it->kid[0], &range);
        *w->state = v_poison();
        return;
    }
    enum { MOST = 4096 };
    if (range.list->n > MOST)
        limit(ev, it->kid[0]->span, "layers", MOST);
    if (!range.list->n && !loop_may_be_empty(w, it->kid[0]))
        return;
    for (size_t i = 0; i < range.list->n; i++) {
        ModelWalk inner = *w;
        inner.env = env_bind(ev, w->env, it->name, range.list->v[i], it->name_span);
        inner.scope =
            scope_new(ev, w->scope, iteration_path(ev, w->scope->path, it->name, &range.list->v[i], i), it->span);
        *map_at(&ev->build->scopes, (uintptr_t)inner.scope->path) = inner.scope;
        walk(&inner, it->kid[1]);
    }
}

static void do_if(ModelWalk *w, const Ast *it)
{
    Value c = eval(w->ev, it->kid[0], w->env, w->scope);
    if (c.kind != V_BOOL) {
        if (c.kind != V_POISON)
            err(w->ev, "E0206", it->kid[0]->span, "", "a condition must be true or false, got %s", value_kind_name(&c));
        return;
    }
    const Ast *branch = c.num != 0 ? it->kid[1] : it->kid[2];
    if (branch && branch->kind == AST_IF)
        do_if(w, branch);
    else if (branch)
        walk(w, branch);
}

static void do_node(ModelWalk *w, const Ast *it)
{
    Name kind = it->kid[0]->name;
    if (!strcmp(kind, "embed"))
        do_embed(w, it);
    else if (!strcmp(kind, "head"))
        do_head(w, it);
    else if (!strcmp(kind, "parallel"))
        do_parallel(w, it);
    else
        do_sublayer(w, it);
}

static void do_let(ModelWalk *w, const Ast *it)
{
    Value v = it->kid[0] ? eval_as(w->ev, it->kid[1], w->env, w->scope, it->kid[0], it->name)
                         : eval(w->ev, it->kid[1], w->env, w->scope);
    Binding *b = binding_value(w->ev, it->name, v, it->name_span);
    b->is_let = true;
    b->expr = it->kid[1];
    b->env = w->env;
    b->prefix = w->scope->path;
    w->env = env_new(w->ev, w->env, b);
}

/* Attributes that only settings give. */
static void scope_settings(ModelWalk *w)
{
    Name *names;
    OverridePlace place = scope_place(w);
    size_t n = override_attrs(w->ev, place.file, place.node, &names);
    for (size_t i = 0; i < n; i++) {
        bool known = !is_scope_name(names[i]);
        for (size_t k = 0; k < w->scope->n_attr; k++)
            known |= w->scope->attr[k].name == names[i];
        const Ast *expr = NULL;
        const Override *o = known ? NULL : override_attribute(&place, names[i], &expr);
        if (o)
            scope_set(w->ev, w->scope, names[i], expr, w->env, o->span);
    }
}

/* The attributes of a scope are seen by everything inside, wherever they stand; they see the lets before them. */
static void scope_attributes(ModelWalk *w, const Ast *items)
{
    ModelWalk seen = *w;
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i];
        if (it->kind == AST_SET) {
            do_attribute(&seen, it);
        } else if (it->kind == AST_LET) {
            Binding *b = binding_new(w->ev, it->name, it->name_span);
            b->is_let = true;
            b->state = BIND_LAZY;
            b->type = it->kid[0];
            b->expr = it->kid[1];
            b->env = seen.env;
            b->scope = w->scope;
            seen.env = env_new(w->ev, seen.env, b);
        }
    }
    scope_settings(&seen);
}

static void walk(ModelWalk *w, const Ast *items)
{
    scope_attributes(w, items);
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i];
        spend(w->ev, it->span, 1);
        switch (it->kind) {
        case AST_SET: break;
        case AST_LET: do_let(w, it); break;
        case AST_FOR: do_for(w, it); break;
        case AST_IF: do_if(w, it); break;
        case AST_NODE: do_node(w, it); break;
        case AST_CHECK: run_check(w->ev, w->ev->build->file, it, w->env, "", NULL); break;
        case AST_OFF: break;
        default: err(w->ev, "E0110", it->span, "", "a model cannot hold this item"); break;
        }
    }
}

/* ---- the model ---- */

/* The argument that gave a parameter its first extent, else the node that placed it. */
static Span first_extent_at(Builder *b, const Param *p)
{
    const char *dot = strrchr(p->path, '.');
    Ctx *ctx = b->file->ev->ctx;
    Env *env = dot ? map_get(&b->exports, (uintptr_t)name_of(ctx, p->path, (size_t)(dot - p->path))) : NULL;
    Binding *bd = env && p->dims[0] ? env_find_local(env, name_str(ctx, p->dims[0])) : NULL;
    return bd && bd->arg_span.file && !in_library(b->file->ev, bd->arg_span) ? bd->arg_span : p->used;
}

/* How many ids the model can look up and how many it can predict, and where that was written. */
static void find_vocabulary(Builder *b)
{
    Model *m = b->model;
    for (size_t i = 0; i < m->output.n; i++)
        if (!strcmp(m->output.v[i].name, "logits")) {
            const Shape *s = shape_of(b->g, m->output.v[i].value);
            m->vocab = s->rank && dim_static(s->d[s->rank - 1]) ? s->d[s->rank - 1].n : 0;
        }
    for (size_t i = 1; i < b->g->node.n; i++) {
        const Node *n = &b->g->node.v[i];
        const Node *ids = n->op == OP_GATHER ? node_at(b->g, n->in[1]) : NULL;
        if (!ids || ids->op != OP_EXT || strcmp(b->g->ext.v[ids->a.i].name, "tokens"))
            continue;
        for (size_t k = 0; k < m->param.n; k++) {
            const Param *p = &m->param.v[k];
            if (p->value != n->in[0] || (m->table_rows && m->table_rows <= p->shape.d[0].n))
                continue;
            m->table_rows = p->shape.d[0].n;
            m->table_at = first_extent_at(b, p);
        }
    }
}

/* Embeddings of images have as many positions as patches, whatever `context` says: work is counted by `context`. */
static void check_context(Eval *ev, Builder *b)
{
    const Shape *s = b->embed.kind == V_TENSOR ? shape_of(b->g, b->embed.val) : NULL;
    if (!s || s->rank < 2 || !dim_static(s->d[1]) || !b->model->context || s->d[1].n == b->model->context)
        return;
    long long n = (long long)s->d[1].n;
    Diag *d = err(ev, "E0613", scope_find(b->root, name_str(ev->ctx, "context"), NULL)->span, "",
                  "`context` is %lld, and the embeddings make %lld positions", (long long)b->model->context, n);
    diag_help(ev->ctx, d, "write `context = %lld`", n);
}

static void finish(Eval *ev, Builder *b, Span at)
{
    Model *m = b->model;
    find_vocabulary(b);
    bool found;
    Value c = scope_value(ev, b->root, name_str(ev->ctx, "context"), &found);
    if (c.kind == V_NUM && is_whole(c.num) && c.num >= 1 && c.num <= 1e8) {
        m->context = (int64_t)c.num;
    } else if (!found) {
        Diag *d = err(ev, "E0104", at, "", "the model needs `context`");
        diag_help(ev->ctx, d, "write the number of positions it is trained on, for example `%s`",
                  attribute_find("model", "context")->example);
    } else if (c.kind != V_POISON) {
        err(ev, "E0206", scope_find(b->root, name_str(ev->ctx, "context"), NULL)->span, "",
            "`context` must be a whole number of positions, got %s", value_text(ev, &c));
    }
    check_context(ev, b);
    size_t before = diag_count(ev->ctx);
    Value w = scope_value(ev, b->root, name_str(ev->ctx, "width"), &found);
    diag_truncate(ev->ctx, before);
    m->width = found && w.kind == V_NUM ? (int64_t)w.num : 0;
    graph_verify(b->g);
    model_find_dead(m);
    lint_model(ev, b);
}

Model *build_model(Eval *ev, File *file)
{
    const Ast *it = file->model_ast;
    if (file->model_state == 2 || !it)
        return file->model;
    if (file->model_state == 1) {
        err(ev, "E0109", it->kid[0]->span, "", "the model of `%s` depends on itself", file->path);
        return NULL;
    }
    file->model_state = 1;
    size_t mistakes = diag_mistakes(ev->ctx);
    Builder *outer = ev->build, *b = NEW(ev->arena, Builder);
    Frame *outer_frame = ev->frame;
    ev->build = b;
    ev->frame = NULL;
    b->file = file;
    b->model = NEW(ev->arena, Model);
    b->g = b->model->graph = graph_new(ev->ctx, ev->arena);
    b->model->name = it->kid[1] ? it->kid[1]->name : name_str(ev->ctx, "model");
    b->model->span = node_span(it);
    map_init(&b->params, ev->arena);
    map_init(&b->instances, ev->arena);
    map_init(&b->exports, ev->arena);
    map_init(&b->latest, ev->arena);
    map_init(&b->scopes, ev->arena);
    map_init(&b->sites, ev->arena);
    b->embed = b->state = b->head_state = v_none();
    b->root = scope_new(ev, NULL, name_str(ev->ctx, ""), it->span);
    ModelWalk w = {.ev = ev, .env = file->env, .scope = b->root, .state = &b->state};
    walk(&w, it->kid[2]);
    if (diag_mistakes(ev->ctx) == mistakes) {
        if (!b->opened)
            err(ev, "E0111", node_span(it), "", "the model has no sublayers and no head");
        else if (!b->model->loss.n && !b->model->output.n && b->state.kind == V_TENSOR)
            diag_help(ev->ctx, err(ev, "E0111", node_span(it), "nothing reads its state", "the model has no head"),
                      "for text: `head lm { norm = rms_norm(eps = 1e-6) }`, behind the layers");
        else
            finish(ev, b, node_span(it));
    }
    ev->build = outer;
    ev->frame = outer_frame;
    file->built = b;
    file->model_state = 2;
    file->model = diag_mistakes(ev->ctx) == mistakes ? b->model : NULL;
    return file->model;
}
