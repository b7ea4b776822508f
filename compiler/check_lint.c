/* check_lint.c - warnings: what is legal and probably not meant.
 *
 * In:  a built model, a file.   Out: warnings W03xx, W05xx and W0101, unless `allow = [...]` names the lint.
 * The one idea: a lint looks at the finished graph, so it needs no knowledge of the blocks that made it.
 */
#include "check.h"

#include <math.h>

/* ---- allow = [lint, ...] ---- */

static const char *lint_name(size_t i, size_t *n)
{
    const char *title;
    if (diag_code_at(i)[0] != 'W' || !diag_explain(diag_code_at(i), &title))
        return NULL;
    *n = strcspn(title, ":");
    return title;
}

void lint_check_allow(Eval *ev, const Ast *list)
{
    VEC(Name) names = {0};
    Buf all = buf_new(ev->arena);
    size_t n;
    for (size_t i = 0; i < diag_code_count(); i++) {
        const char *lint = lint_name(i, &n);
        if (!lint)
            continue;
        buf_printf(&all, "%s%.*s", names.n ? ", " : "", (int)n, lint);
        vec_push(ev->arena, &names, name_of(ev->ctx, lint, n));
    }
    if (list->kind != AST_LIST) {
        Diag *d = err(ev, "E0206", list->span, "", "`allow` must be a list of lints");
        diag_help(ev->ctx, d, "for example `allow = [dead_weights]`");
        return;
    }
    for (uint32_t i = 0; i < list->n; i++) {
        const Ast *word = list->kid[i];
        bool known = false;
        for (size_t k = 0; word->kind == AST_ID && k < names.n; k++)
            known |= names.v[k] == word->name;
        if (known)
            continue;
        Diag *d = err(ev, "E0205", word->span, "", "there is no lint `%s`", expr_text(ev, word));
        diag_note(ev->ctx, d, "lints are %s", all.s);
        if (word->kind == AST_ID)
            suggest(ev, d, word->name, names.v, names.n, word->span);
    }
}

bool lint_allowed(const File *f, const char *lint)
{
    for (uint32_t i = 0; f->allow && i < f->allow->n; i++)
        if (f->allow->kid[i]->kind == AST_ID && !strcmp(f->allow->kid[i]->name, lint))
            return true;
    return f->quiet;
}

/* The node of the model under which a graph node was built. */
static Span place_of(Builder *b, const Node *n)
{
    for (const char *p = n->name; p && *p;) {
        Instance *inst = map_get(&b->instances, (uintptr_t)p);
        for (; inst; inst = inst->up)
            if (inst->at.file && !in_library(b->file->ev, inst->at))
                return inst->at;
        const char *dot = strrchr(p, '.');
        p = dot ? name_of(b->file->ev->ctx, p, (size_t)(dot - p)) : NULL;
    }
    return n->span;
}

/* ---- the lints of a model ---- */

static void dead_weights(Eval *ev, Builder *b)
{
    int64_t dead = 0;
    for (size_t i = 0; i < b->model->param.n; i++)
        dead += b->model->param.v[i].buffer ? 0 : b->model->param.v[i].dead;
    if (!dead || lint_allowed(b->file, "dead_weights"))
        return;
    Attribute *c = scope_find(b->root, name_str(ev->ctx, "connection"), NULL);
    Buf n = buf_new(ev->arena), list = buf_new(ev->arena);
    buf_count(&n, dead);
    Diag *d = diag_warning(ev->ctx, "W0304", "dead_weights", c ? c->expr->span : b->model->span, "",
                           "%s weights can never receive a gradient", n.s);
    int shown = 0, more = 0;
    for (size_t i = 0; i < b->model->param.n; i++) {
        const Param *p = &b->model->param.v[i];
        enum { MOST = 6 };
        if (!p->dead || p->buffer || shown == MOST) {
            more += p->dead && !p->buffer;
            continue;
        }
        buf_printf(&list, "%s%-40s ", shown++ ? "\n" : "", p->path);
        buf_count(&list, p->dead);
    }
    if (more)
        buf_printf(&list, "\nand %d more tensors", more);
    diag_note(ev->ctx, d, "%s", list.s);
    diag_note(ev->ctx, d, "`params` does not count them");
    diag_help(ev->ctx, d, "silence with `allow = [dead_weights]` in the model");
}

static void head_dim_unaligned(Eval *ev, Builder *b)
{
    if (lint_allowed(b->file, "head_dim_unaligned"))
        return;
    for (size_t i = 1; i < b->g->node.n; i++) {
        const Node *n = &b->g->node.v[i];
        int64_t d = n->op == OP_SDPA ? shape_of(b->g, n->in[0])->d[3].n : 8;
        if (d % 2 == 0)
            continue;
        Diag *w = diag_warning(ev->ctx, "W0301", "head_dim_unaligned", place_of(b, n), "",
                               "head_dim %lld is odd: attention runs padded to %lld", (long long)d, (long long)d + 1);
        diag_help(ev->ctx, w, "choose an even `head_dim`, best a multiple of 8");
        return;
    }
}

static void vocab_not_padded(Eval *ev, Builder *b)
{
    enum { SMALL = 1024, STEP = 64 };
    int64_t v = b->model->vocab;
    bool text = false;
    for (size_t i = 0; i < b->g->ext.n; i++)
        text |= b->g->ext.v[i].kind == EXT_INPUT && !strcmp(b->g->ext.v[i].name, "tokens");
    if (!text || v < SMALL || v % STEP == 0 || lint_allowed(b->file, "vocab_not_padded"))
        return;
    Diag *d = diag_warning(ev->ctx, "W0302", "vocab_not_padded", b->embed_span, "",
                           "a vocabulary of %lld is no multiple of %d", (long long)v, STEP);
    diag_note(ev->ctx, d, "the product with the output table is faster on a padded one; the further rows are never"
                          " the target of a token");
    diag_help(ev->ctx, d, "write `vocab = %lld`", (long long)((v + STEP - 1) / STEP * STEP));
}

static void no_norm(Eval *ev, Builder *b)
{
    if (!b->no_norm.file || lint_allowed(b->file, "no_norm"))
        return;
    Diag *d = diag_warning(ev->ctx, "W0303", "no_norm", b->no_norm, "", "this sublayer reads the stream without a norm");
    diag_note(ev->ctx, d, "no enclosing scope sets `pre_norm` or `out_norm`");
    diag_help(ev->ctx, d, "set `pre_norm` in the model; `pre_norm = none` says that this is meant");
}

/* The table that a gather reads, as seen through transposes: whether a product reads it too. */
static const Node *tied_product(const Graph *g, Val table)
{
    for (size_t i = 1; i < g->node.n; i++) {
        const Node *n = &g->node.v[i];
        if (n->op != OP_MATMUL)
            continue;
        Val w = n->in[1];
        while (node_at(g, w)->op == OP_PERMUTE)
            w = node_at(g, w)->in[0];
        if (w == table)
            return n;
    }
    return NULL;
}

static void tie_with_wide_state(Eval *ev, Builder *b)
{
    if (b->embed.kind != V_TENSOR || lint_allowed(b->file, "tie_with_wide_state"))
        return;
    const Shape *e = shape_of(b->g, b->embed.val);
    for (size_t i = 1; i < b->g->node.n; i++) {
        const Node *n = &b->g->node.v[i];
        if (n->op != OP_GATHER || node_at(b->g, n->in[0])->op != OP_EXT)
            continue;
        const Node *product = tied_product(b->g, n->in[0]);
        const Shape *x = product ? shape_of(b->g, product->in[0]) : NULL;
        if (!x || !e->rank || dim_eq(x->d[x->rank - 1], e->d[e->rank - 1]))
            continue;
        Buf wide = buf_new(ev->arena), reads = buf_new(ev->arena);
        dim_print(&wide, e->d[e->rank - 1]);
        dim_print(&reads, x->d[x->rank - 1]);
        Diag *d = diag_warning(ev->ctx, "W0501", "tie_with_wide_state", place_of(b, product), "",
                               "a tied table serves two spaces: the embedding is %s wide, this head reads %s", wide.s,
                               reads.s);
        diag_help(ev->ctx, d, "leave `tie` out, so that the head has a table of its own");
        return;
    }
}

static void sublayer_unused(Eval *ev, Builder *b)
{
    if (!b->unapplied.file || lint_allowed(b->file, "sublayer_unused"))
        return;
    Diag *d = diag_warning(ev->ctx, "W0305", "sublayer_unused", b->unapplied, "", "the connection never applies this sublayer");
    diag_note(ev->ctx, d, "it has no weights in this model and changes nothing");
    diag_help(ev->ctx, d, "apply `f` in `step` of the connection, or switch the sublayer off with `/-`");
}

/* An argument may be read in one application and not in another: only never is said. */
static void argument_unused(Eval *ev, Builder *b)
{
    enum { MOST = 1 << 14 };
    if (lint_allowed(b->file, "argument_unused") || b->given.n > MOST)
        return;
    Map used;
    map_init(&used, ev->arena);
#define PLACE(s) ((uintptr_t)(s).file << 32 | (s).lo)
    for (size_t i = 0; i < b->given.n; i++)
        if (b->given.v[i]->used)
            *map_at(&used, PLACE(b->given.v[i]->arg_span)) = b;
    for (size_t i = 0; i < b->given.n; i++) {
        Binding *bd = b->given.v[i];
        if ((bd->value.kind != V_BLOCK && bd->value.kind != V_SUB) || map_get(&used, PLACE(bd->arg_span)))
            continue;
        *map_at(&used, PLACE(bd->arg_span)) = b;
        Diag *d = diag_warning(ev->ctx, "W0306", "argument_unused", bd->arg_span, "", "nothing applies this block: `%s` is not looked at here",
                               bd->name);
        diag_note(ev->ctx, d, "another argument switches it off, or the block has no use for it");
        diag_help(ev->ctx, d, "leave it out, or set what switches it on");
    }
#undef PLACE
}

/* Labels of next-token prediction stand in the sequence itself, one place ahead. */
static void sees_the_answer(Eval *ev, Builder *b)
{
    bool tokens = false, labels = false;
    for (size_t i = 0; i < b->g->ext.n; i++) {
        const Ext *x = &b->g->ext.v[i];
        tokens |= x->kind == EXT_INPUT && !strcmp(x->name, "tokens");
        labels |= x->kind == EXT_INPUT && !strcmp(x->name, "labels") && x->shape.rank == 2;
    }
    if (!tokens || !labels || lint_allowed(b->file, "sees_the_answer"))
        return;
    for (size_t i = 1; i < b->g->node.n; i++) {
        const Node *n = &b->g->node.v[i];
        if (n->op != OP_SDPA || (n->a.i & 1))
            continue;
        Diag *d = diag_warning(ev->ctx, "W0307", "sees_the_answer", place_of(b, n), "every position sees the ones behind it",
                               "with `mask = full` a model that predicts the next token sees it");
        Attribute *mask = scope_find(b->root, name_str(ev->ctx, "mask"), NULL);
        if (mask && mask->expr->kind == AST_ID && !strcmp(mask->expr->name, "full"))
            diag_label(ev->ctx, d, mask->span, "the mask of the model");
        diag_help(ev->ctx, d, "write `mask = causal`");
        return;
    }
}

static void empty_loop(Eval *ev, Builder *b)
{
    if (!b->empty_loop.file || lint_allowed(b->file, "empty_loop"))
        return;
    Diag *d = diag_warning(ev->ctx, "W0308", "empty_loop", b->empty_loop, "no values", "this loop runs over nothing: the model lacks what stands in it");
    diag_help(ev->ctx, d, "a range counts up and includes both ends: `1..4` has four values, `1..0` none");
}

void lint_model(Eval *ev, Builder *b)
{
    sublayer_unused(ev, b);
    argument_unused(ev, b);
    sees_the_answer(ev, b);
    empty_loop(ev, b);
    dead_weights(ev, b);
    head_dim_unaligned(ev, b);
    vocab_not_padded(ev, b);
    no_norm(ev, b);
    tie_with_wide_state(ev, b);
}

/* ---- lets that nothing reads ---- */

static bool names_it(const Ast *e, Name name)
{
    if ((e->kind == AST_ID || e->kind == AST_PATH) && e->name == name)
        return true;
    if (e->kind == AST_STR && strchr(e->name, '{') && strstr(e->name, name))
        return true; /* in braces: the texts of checks */
    if (e->kind == AST_NODE && e->kid[1]) { /* `embed LABEL` is the block embed_LABEL */
        size_t n = strlen(e->kid[0]->name);
        if (!strncmp(name, e->kid[0]->name, n) && name[n] == '_' && !strcmp(name + n + 1, e->kid[1]->name))
            return true;
    }
    for (uint32_t i = 0; i < e->n; i++)
        if (e->kid[i] && names_it(e->kid[i], name))
            return true;
    return false;
}

static bool is_let(const Ast *it)
{
    return it->kind == AST_LET || it->kind == AST_BLOCK;
}

/* Lets and blocks among `items` that no other of them names. */
static void unused_among(Eval *ev, const Ast *items)
{
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i];
        bool used = !is_let(it);
        for (uint32_t k = 0; !used && k < items->n; k++)
            used = k != i && names_it(items->kid[k], it->name);
        if (used)
            continue;
        Diag *d = diag_warning(ev->ctx, "W0101", "unused_let", it->name_span, "nothing reads it", "`%s` is never used",
                               it->name);
        diag_help(ev->ctx, d, "delete it, or put `/-` in front of it");
    }
}

/* The lets in the body of every block and in the model. */
static void unused_inside(Eval *ev, const Ast *e)
{
    const Ast *body = e->kind == AST_BLOCK ? e->kid[3] : e->kind == AST_NODE ? e->kid[2] : NULL;
    bool methods = false;
    for (uint32_t i = 0; body && i < body->n; i++) /* open, step and close are called by name from outside */
        methods |= body->kid[i]->kind == AST_BLOCK && !strcmp(body->kid[i]->name, "step");
    if (body && !methods)
        unused_among(ev, body);
    for (uint32_t i = 0; i < e->n; i++)
        if (e->kid[i] && e->kind != AST_OFF)
            unused_inside(ev, e->kid[i]);
}

void lint_unused(Eval *ev, File *f)
{
    if ((!f->model_ast && !f->train_ast) || lint_allowed(f, "unused_let"))
        return;
    unused_among(ev, f->ast);
    for (uint32_t i = 0; i < f->ast->n; i++)
        if (f->ast->kid[i]->kind == AST_BLOCK || f->ast->kid[i] == f->model_ast)
            unused_inside(ev, f->ast->kid[i]);
}
