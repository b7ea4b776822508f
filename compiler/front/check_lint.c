/* check_lint.c - warnings: what is legal and probably not meant.
 *
 * In:  a built model, a file.   Out: warnings W03xx, W05xx and W0101, unless `allow = [...]` names the lint.
 * The one idea: a lint looks at the finished graph, so it needs no knowledge of the blocks that made it.
 */
#include "grammar/codes.h"
#include "check.h"
#include "compiler/model/decode.h"

#include <ctype.h>
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

/* Where a node was written, when that is the user's text. */
static Span written_at(Builder *b, const Node *n)
{
    return n->span.file && !in_library(b->file->ev, n->span) ? n->span : place_of(b, n);
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

/* Both factors of a product begin at zero: each waits for the other. */
static void stays_zero(Eval *ev, Builder *b)
{
    enum { MOST = 4 };
    const Model *m = b->model;
    const bool *stays = lint_allowed(b->file, "stays_zero") ? NULL : model_stays_zero(m, ev->arena);
    const Param *first = NULL;
    size_t n = 0;
    Buf all = buf_new(ev->arena);
    for (size_t i = 0; stays && i < m->param.n; i++) {
        const Param *p = &m->param.v[i];
        if (!stays[i] || p->buffer || p->frozen || p->dead == p->elements)
            continue;
        first = first ? first : p;
        if (n++ < MOST)
            buf_printf(&all, "%s`%s`", n > 1 ? ", " : "", p->path);
    }
    if (!first)
        return;
    bool own = first->declared.file && !in_library(ev, first->declared);
    Diag *d = diag_warning(ev->ctx, "W0313", "stays_zero", own ? first->declared : first->used,
                           "begins at zero and never learns", "a gradient can never reach weights that begin at zero");
    if (n > MOST)
        buf_printf(&all, " and %zu more", n - MOST);
    diag_note(ev->ctx, d, "%s", all.s);
    diag_note(
        ev->ctx, d,
        "the gradient of a factor of a product has the other factor in it, and that begins at zero and stays so, too");
    diag_help(ev->ctx, d, "let one of them begin with other numbers, as `normal(std = 0.02)`");
    diag_help(ev->ctx, d, "silence with `allow = [stays_zero]` where that is meant");
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
    diag_note(ev->ctx, d,
              "the product with the output table is faster on a padded one; the further rows are never"
              " the target of a token");
    diag_help(ev->ctx, d, "write `vocab = %lld`", (long long)((v + STEP - 1) / STEP * STEP));
}

static void no_norm(Eval *ev, Builder *b)
{
    if (!b->no_norm.file || lint_allowed(b->file, "no_norm"))
        return;
    Diag *d =
        diag_warning(ev->ctx, "W0303", "no_norm", b->no_norm, "", "this sublayer reads the stream without a norm");
    diag_note(ev->ctx, d, "no enclosing scope sets `pre_norm` or `out_norm`");
    diag_help(ev->ctx, d, "set `pre_norm` in the model; `pre_norm = none` says that this is meant");
}

/* The first product that reads a table, as seen through transposes: its node by the table's. */
static void find_products(const Graph *g, Map *reads)
{
    for (size_t i = 1; i < g->node.n; i++) {
        const Node *n = &g->node.v[i];
        if (n->op != OP_MATMUL)
            continue;
        Val w = n->in[1];
        while (node_at(g, w)->op == OP_PERMUTE)
            w = node_at(g, w)->in[0];
        void **slot = map_at(reads, (uintptr_t)w);
        *slot = *slot ? *slot : (void *)n;
    }
}

static void tie_with_wide_state(Eval *ev, Builder *b)
{
    if (b->embed.kind != V_TENSOR || lint_allowed(b->file, "tie_with_wide_state"))
        return;
    const Shape *e = shape_of(b->g, b->embed.val);
    Map products;
    map_init(&products, ev->arena);
    find_products(b->g, &products);
    for (size_t i = 1; i < b->g->node.n; i++) {
        const Node *n = &b->g->node.v[i];
        if (n->op != OP_GATHER || node_at(b->g, n->in[0])->op != OP_EXT)
            continue;
        const Node *product = map_get(&products, (uintptr_t)n->in[0]);
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
    Diag *d = diag_warning(ev->ctx, "W0305", "sublayer_unused", b->unapplied, "",
                           "the connection never applies this sublayer");
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
        Diag *d = diag_warning(ev->ctx, "W0306", "argument_unused", bd->arg_span, "",
                               "nothing applies this block: `%s` is not looked at here", bd->name);
        diag_note(ev->ctx, d, "another argument switches it off, or the block has no use for it");
        diag_help(ev->ctx, d, "leave it out, or set what switches it on");
    }
#undef PLACE
}

/* By value: whether it depends on the input `tokens`. */
static bool *from_tokens(const Graph *g, Arena *arena)
{
    bool *from = NEW_ARRAY(arena, bool, g->node.n);
    for (Val v = 1; v < g->node.n; v++) {
        const Node *n = node_at(g, v);
        if (n->op == OP_EXT) {
            const Ext *x = &g->ext.v[n->a.i];
            from[v] = x->kind == EXT_INPUT && !strcmp(x->name, "tokens");
        }
        for (size_t k = 0; k < n->n_in; k++)
            from[v] |= from[n->in[k]];
    }
    return from;
}

/* Whether `data` gives labels of its own, which need not be the tokens one place ahead. */
static bool gives_labels(const File *f)
{
    const Ast *items = f->train_ast ? f->train_ast->kid[2] : NULL;
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i],
                  *v = it->kind == AST_SET && !strcmp(it->kid[0]->name, "data") ? it->kid[1] : NULL;
        if (v && v->kind == AST_CALL && v->kid[0]->kind == AST_ID && !strcmp(v->kid[0]->name, "arrays"))
            return true;
    }
    return false;
}

/* What the output is computed from; NULL: what any is. */
static bool *read_by_output(const Builder *b, const char *name, Arena *arena)
{
    bool *read = NEW_ARRAY(arena, bool, b->g->node.n);
    for (size_t i = 0; i < b->model->output.n; i++)
        if (!name || !strcmp(b->model->output.v[i].name, name))
            read[b->model->output.v[i].value] = true;
    for (Val v = (Val)b->g->node.n; v-- > 1;)
        for (size_t k = 0; read[v] && k < node_at(b->g, v)->n_in; k++)
            read[node_at(b->g, v)->in[k]] = true;
    return read;
}

/* By value: whether a mask may have hidden some of its positions, in what it is made of element by element. */
static bool *perhaps_masked(const Graph *g, Arena *arena)
{
    bool *masked = NEW_ARRAY(arena, bool, g->node.n);
    for (Val v = 1; v < g->node.n; v++) {
        const Node *n = node_at(g, v);
        OpClass class = op_info((Op)n->op)->class;
        bool by_element = class == CLASS_UNARY || class == CLASS_BINARY || class == CLASS_TERNARY ||
                          class == CLASS_VIEW || class == CLASS_MOVE || class == CLASS_REDUCE;
        for (size_t k = 0; by_element && k < n->n_in; k++)
            masked[v] |= masked[n->in[k]];
        switch ((Op)n->op) {
        case OP_LT:
        case OP_LE:
        case OP_EQ: /* of numbers that are drawn: dropout */
            masked[v] = node_at(g, n->in[0])->op != OP_RAND && node_at(g, n->in[1])->op != OP_RAND;
            break;
        case OP_WHERE: masked[v] = masked[n->in[0]]; break;
        case OP_SIGN:
        case OP_MIN:
        case OP_MAX:
        case OP_CONST: masked[v] = true; break;
        case OP_EXT: {
            const Ext *x = &g->ext.v[n->a.i];
            masked[v] = x->kind == EXT_BUFFER || (x->kind == EXT_INPUT && strcmp(x->name, "tokens") != 0);
            break;
        }
        default: break;
        }
    }
    return masked;
}

/* The first axis, from 1 on, whose extent has B, or T, in it; 0: none. */
static int axis_with(const Shape *s, bool batch)
{
    for (int i = 0; i < s->rank; i++)
        if (batch ? s->d[i].b > 0 : s->d[i].t > 0)
            return i + 1;
    return 0;
}

/* The axis along which the node mixes the sequences of a batch, from 1 on; 0: it does not. */
static int mixing_axis(const Graph *g, const Node *n)
{
    const Shape *s = n->n_in ? shape_of(g, n->in[0]) : &n->shape;
    int axis = axis_with(s, true), last = s->rank - 1;
    switch ((Op)n->op) {
    case OP_SHIFT: return n->a.i == axis - 1 && n->a.j ? axis : 0;
    case OP_ROLL:
    case OP_CUMSUM: return n->a.i == axis - 1 ? axis : 0;
    case OP_SUM:
    case OP_AMAX: return axis && n->a.axes >> (axis - 1) & 1 ? axis : 0;
    case OP_MATMUL: return axis && axis - 1 == (n->a.i & 1 ? last - 1 : last) ? axis : 0;
    default: return 0;
    }
}

/* What moves later positions to the front is no matter of masks; where sums and products run over all of them a mask may hide those. */
static void looks_ahead(Eval *ev, Builder *b, const bool *from)
{
    const bool mixing = !lint_allowed(b->file, "mixes_sequences"); /* that is said then */
    const bool *read = read_by_output(b, "logits", ev->arena), *masked = perhaps_masked(b->g, ev->arena);
    for (Val v = 1; v < b->g->node.n; v++) {
        const Node *n = node_at(b->g, v);
        bool hidden = false;
        for (size_t k = 0; k < n->n_in; k++)
            hidden |= masked[n->in[k]];
        const char *how = read[v] && n->n_in && from[v] && n->op != OP_SDPA ? decode_looks(b->g, n) : NULL;
        if (!how || (hidden && !decode_moves_back(b->g, n)) || (mixing && mixing_axis(b->g, n)))
            continue;
        Diag *d = diag_warning(ev->ctx, "W0307", "sees_the_answer", written_at(b, n),
                               arena_printf(ev->arena, "`%s` %s", decode_written(b->g, n, ev->arena), how),
                               "a model that predicts the next token sees it");
        diag_note(ev->ctx, d, "the label of a position is the token behind it, and `logits` depend on that");
        diag_help(ev->ctx, d,
                  "silence with `allow = [sees_the_answer]` where that is meant; `vwn sample` refuses such a model");
        return;
    }
}

static void mixes_sequences(Eval *ev, Builder *b)
{
    if (lint_allowed(b->file, "mixes_sequences"))
        return;
    const bool *read = read_by_output(b, NULL, ev->arena);
    for (Val v = 1; v < b->g->node.n; v++) {
        const Node *n = node_at(b->g, v);
        int axis = read[v] ? mixing_axis(b->g, n) : 0,
            positions = axis ? axis_with(shape_of(b->g, n->in[0]), false) : 0;
        if (!axis)
            continue;
        const char *what = decode_written(b->g, n, ev->arena);
        Diag *d = diag_warning(ev->ctx, "W0312", "mixes_sequences", written_at(b, n),
                               arena_printf(ev->arena, "`%s` goes along axis %d", what, axis),
                               "this mixes the sequences of a batch");
        if (positions && positions != axis)
            diag_note(ev->ctx, d, "axes count from 1: B is %d, T is %d", axis, positions);
        else
            diag_note(ev->ctx, d, "axes count from 1: B is %d", axis);
        diag_note(ev->ctx, d, "what is predicted of a sequence depends on the others that happen to be in its batch");
        diag_help(ev->ctx, d, "silence with `allow = [mixes_sequences]` where that is meant");
        return;
    }
}

/* Labels of next-token prediction stand in the sequence itself, one place ahead. An encoder of something else may
 * see all of that. */
static void sees_the_answer(Eval *ev, Builder *b)
{
    bool tokens = false, labels = false;
    for (size_t i = 0; i < b->g->ext.n; i++) {
        const Ext *x = &b->g->ext.v[i];
        tokens |= x->kind == EXT_INPUT && !strcmp(x->name, "tokens");
        labels |= x->kind == EXT_INPUT && !strcmp(x->name, "labels") && x->shape.rank == 2;
    }
    if (!tokens || !labels || lint_allowed(b->file, "sees_the_answer") || gives_labels(b->file))
        return;
    const bool *from = from_tokens(b->g, ev->arena);
    for (size_t i = 1; i < b->g->node.n; i++) {
        const Node *n = &b->g->node.v[i];
        if (n->op != OP_SDPA || (n->a.i & 1) || !shape_of(b->g, n->in[1])->d[1].t ||
            !(from[n->in[1]] || from[n->in[2]]))
            continue;
        Diag *d =
            diag_warning(ev->ctx, "W0307", "sees_the_answer", place_of(b, n), "every position sees the ones behind it",
                         "with `mask = full` a model that predicts the next token sees it");
        Attribute *mask = scope_find(b->root, name_str(ev->ctx, "mask"), NULL);
        if (mask && mask->expr->kind == AST_ID && !strcmp(mask->expr->name, "full"))
            diag_label(ev->ctx, d, mask->span, "the mask of the model");
        diag_help(ev->ctx, d, "write `mask = causal`");
        return;
    }
    looks_ahead(ev, b, from);
}

/* What an index has no row for reads as 0, in silence. */
static void ids_outside(Eval *ev, Builder *b)
{
    if (lint_allowed(b->file, "ids_outside"))
        return;
    const IdRange *of = NULL;
    for (size_t i = 1; i < b->g->node.n; i++) {
        const Node *n = &b->g->node.v[i];
        if ((n->op != OP_GATHER && n->op != OP_PICK && n->op != OP_EXPERT_MATMUL) || !n->span.file ||
            in_library(ev, n->span))
            continue;
        const Shape *table = shape_of(b->g, n->in[n->op == OP_EXPERT_MATMUL]);
        const Val index = n->in[n->op == OP_EXPERT_MATMUL ? 2 : 1];
        const Dim rows = table->d[n->op == OP_PICK ? table->rank - 1 : 0];
        of = of ? of : model_id_ranges(b->model, ev->arena);
        const IdRange r = of[index];
        if (!r.known || !dim_static(rows) || ((r.low >= 0 || n->op == OP_PICK) && r.high < (double)rows.n))
            continue; /* a negative label is none */
        Buf ids = buf_new(ev->arena);
        if (isfinite(r.low) && isfinite(r.high))
            buf_printf(&ids, "from %.0f to %.0f", r.low, r.high);
        else
            buf_printf(&ids, isfinite(r.low) ? "of %.0f and more" : "of any size", r.low);
        Diag *d =
            diag_warning(ev->ctx, "W0311", "ids_outside", n->span, arena_printf(ev->arena, "indices are %s", ids.s),
                         "an index may lie beside what has %lld rows", (long long)rows.n);
        diag_note(ev->ctx, d, "a row that is not there reads as 0 and learns nothing");
        diag_help(ev->ctx, d, "`i mod %lld` has no such values; or silence with `allow = [ids_outside]` in the model",
                  (long long)rows.n);
        return;
    }
}

static void empty_loop(Eval *ev, Builder *b)
{
    if (!b->empty_loop.file || lint_allowed(b->file, "empty_loop"))
        return;
    Diag *d = diag_warning(ev->ctx, "W0308", "empty_loop", b->empty_loop, "no values",
                           "this loop runs over nothing: the model lacks what stands in it");
    diag_help(ev->ctx, d, "a range counts up and includes both ends: `1..4` has four values, `1..0` none");
}

/* `for layer in 0..L` runs L + 1 times. */
static void loop_from_zero(Eval *ev, const Builder *b, const Ast *items)
{
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i], *range = it && it->kind == AST_FOR ? it->kid[0] : NULL;
        bool more = range && range->kind == AST_RANGE && range->kid[0]->kind == AST_NUM &&
                    !strcmp(range->kid[0]->name, "0") && range->kid[1]->kind == AST_ID;
        if (more && !lint_allowed(b->file, "loop_from_zero")) {
            const char *high = range->kid[1]->name;
            Diag *d = diag_warning(ev->ctx, "W0314", "loop_from_zero", range->span, "both ends are included",
                                   "this loop runs %s + 1 times", high);
            diag_help(ev->ctx, d,
                      "layers count from 1: write `1..%s`, or silence with `allow = [loop_from_zero]` in the model",
                      high);
        }
        if (it && (it->kind == AST_FOR || it->kind == AST_IF || it->kind == AST_ITEMS))
            loop_from_zero(ev, b, it->kind == AST_ITEMS ? it : &(Ast){.n = it->n - 1, .kid = it->kid + 1});
    }
}

void lint_model(Eval *ev, Builder *b)
{
    sublayer_unused(ev, b);
    argument_unused(ev, b);
    sees_the_answer(ev, b);
    mixes_sequences(ev, b);
    ids_outside(ev, b);
    empty_loop(ev, b);
    loop_from_zero(ev, b, b->file->model_ast->kid[2]);
    dead_weights(ev, b);
    stays_zero(ev, b);
    head_dim_unaligned(ev, b);
    vocab_not_padded(ev, b);
    no_norm(ev, b);
    tie_with_wide_state(ev, b);
}

/* ---- lets that nothing reads ---- */

/* Which of several items name something: the first one, and whether there are more. */
typedef struct Naming {
    uint32_t first;
    bool more;
} Naming;

static void name_used(Ctx *ctx, Map *names, Name name, uint32_t item)
{
    Naming *u = map_get(names, (uintptr_t)name), *made = NULL;
    if (u) {
        u->more |= u->first != item;
        return;
    }
    made = NEW(ctx->program, Naming);
    made->first = item;
    *map_at(names, (uintptr_t)name) = made;
}

/* The words of a text of a check, which may stand in braces. */
static void words_used(Ctx *ctx, Map *names, const char *s, uint32_t item)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_";
    for (s += strcspn(s, letters); *s; s += strcspn(s, letters)) {
        size_t n = strspn(s, letters);
        name_used(ctx, names, name_of(ctx, s, n), item);
        s += n;
    }
}

static void names_used(Ctx *ctx, Map *names, const Ast *e, uint32_t item)
{
    if (e->kind == AST_ID || e->kind == AST_PATH)
        name_used(ctx, names, e->name, item);
    if (e->kind == AST_STR && strchr(e->name, '{'))
        words_used(ctx, names, e->name, item);
    if (e->kind == AST_NODE && e->kid[1]) /* `embed LABEL` is the block embed_LABEL */
        name_used(ctx, names, name_printf(ctx, "%s_%s", e->kid[0]->name, e->kid[1]->name), item);
    for (uint32_t i = 0; i < e->n; i++)
        if (e->kid[i])
            names_used(ctx, names, e->kid[i], item);
}

static bool is_let(const Ast *it) { return it->kind == AST_LET || it->kind == AST_BLOCK; }

/* Lets and blocks among `items` that neither another of them names nor a setting or what is taken away of the file `whole`, NULL: of a part of one. */
static void unused_among(Eval *ev, const Ast *items, const File *whole)
{
    Map names;
    map_init(&names, ev->arena);
    for (uint32_t i = 0; items && i < items->n; i++)
        names_used(ev->ctx, &names, items->kid[i], i);
    for (size_t i = 0; whole && i < whole->overrides.n; i++)
        if (whole->overrides.v[i].expr)
            names_used(ev->ctx, &names, whole->overrides.v[i].expr, items->n);
    for (size_t i = 0; whole && whole->base && i < whole->base->n_gone;
         i++) /* what is used where nothing is taken away */
        names_used(ev->ctx, &names, whole->base->gone[i], items->n);
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i];
        const Naming *u = is_let(it) ? map_get(&names, (uintptr_t)it->name) : NULL;
        if (!is_let(it) || (u && (u->first != i || u->more)))
            continue;
        Diag *d = diag_warning(ev->ctx, "W0101", "unused_let", it->name_span, "nothing reads it", "`%s` is never used",
                               it->name);
        diag_help(ev->ctx, d, "delete it, or put `/-` in front of it");
    }
}

/* ---- bodies of blocks: what a `for` or an `if` binds is bound in the whole body ---- */

typedef struct BodyNames {
    Eval *ev;
    const File *file;
    Map reads;  /* name -> Naming: names that the body reads, but for those that an item reads to bind them again */
    Map buffer; /* name -> its AST_BUFFER */
} BodyNames;

static void read_names(BodyNames *b, const Ast *e, Name own)
{
    if ((e->kind == AST_ID || e->kind == AST_PATH) && e->name != own)
        name_used(b->ev->ctx, &b->reads, e->name, 0);
    if (e->kind == AST_STR && strchr(e->name, '{'))
        words_used(b->ev->ctx, &b->reads, e->name, 0);
    for (uint32_t i = 0; i < e->n; i++)
        if (e->kid[i])
            read_names(b, e->kid[i], own);
}

/* The name that an item binds to a value, or NULL: `loss.x = ...` binds none. */
static Name bound_name(const Ast *it)
{
    return it->kind == AST_LET ? it->name : it->kind == AST_SET && !it->kid[0]->n ? it->kid[0]->name : NULL;
}

static void read_items(BodyNames *b, const Ast *items)
{
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i];
        Name own = bound_name(it);
        if (it->kind == AST_BUFFER)
            *map_at(&b->buffer, (uintptr_t)it->name) = (void *)(uintptr_t)it;
        if (it->kind == AST_FOR || it->kind == AST_IF) {
            read_names(b, it->kid[0], NULL);
            for (uint32_t k = 1; k < it->n; k++)
                if (it->kid[k])
                    read_items(b, it->kid[k]->kind == AST_IF ? &(Ast){.kind = AST_ITEMS, .n = 1, .kid = &it->kid[k]}
                                                             : it->kid[k]);
        } else if (it->kind == AST_SET && own) {
            read_names(b, it->kid[1], own);
        } else {
            read_names(b, it, own);
        }
    }
}

/* A block that is applied may log or add to the loss: then its result need not be read. */
static bool applies_block(const Ast *e)
{
    if (e->kind == AST_CALL && (e->kid[0]->kind != AST_ID || !prim_find(e->kid[0]->name)))
        return true;
    for (uint32_t i = 0; i < e->n; i++)
        if (e->kid[i] && applies_block(e->kid[i]))
            return true;
    return false;
}

static void unused_items(BodyNames *b, const Ast *items, bool inner)
{
    Ctx *ctx = b->ev->ctx;
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i];
        if (it->kind == AST_FOR || it->kind == AST_IF)
            for (uint32_t k = 1; k < it->n; k++)
                if (it->kid[k])
                    unused_items(b,
                                 it->kid[k]->kind == AST_IF ? &(Ast){.kind = AST_ITEMS, .n = 1, .kid = &it->kid[k]}
                                                            : it->kid[k],
                                 true);
        Name own = bound_name(it);
        const Ast *buffer = own && it->kind == AST_SET ? map_get(&b->buffer, (uintptr_t)own) : NULL;
        if (buffer && !lint_allowed(b->file, "buffer_shadowed")) {
            Diag *d = diag_warning(ctx, "W0310", "buffer_shadowed", it->kid[0]->span, "a new tensor of the same name",
                                   "the buffer `%s` keeps its initial value", own);
            diag_label(ctx, d, buffer->name_span, "stored with the weights, and never changed");
            diag_note(ctx, d, "`=` binds a name, it does not store: nothing is carried from one step to the next");
            diag_help(ctx, d, "give the tensor another name, for example `new_%s = ...`", own);
        }
        bool tensor = it->kind == AST_SET, counts = own && (tensor ? !applies_block(it->kid[1]) : inner);
        if (!counts || buffer || map_get(&b->reads, (uintptr_t)own) || lint_allowed(b->file, "unused_let"))
            continue;
        Span at = tensor ? it->kid[0]->span : it->name_span;
        Diag *d = diag_warning(ctx, "W0101", "unused_let", at, "nothing reads it", "`%s` is never used", own);
        bool option = tensor && it->kid[1]->kind == AST_BOOL; /* `requires_grad = false` */
        if (!option || !tell_attribute(b->ev, d, own))
            diag_help(ctx, d, "delete it, or put `/-` in front of it");
        name_used(ctx, &b->reads, own, 0); /* said once */
    }
}

static void lint_body(Eval *ev, const File *f, const Ast *body)
{
    BodyNames b = {.ev = ev, .file = f};
    map_init(&b.reads, ev->arena);
    map_init(&b.buffer, ev->arena);
    read_items(&b, body);
    unused_items(&b, body, false);
}

/* `tied(head, lm, NAME)` reads names of another block's body. */
static bool reaches_bodies(const Ast *e)
{
    bool found =
        e->kind == AST_CALL && e->kid[0]->kind == AST_ID && !strcmp(e->kid[0]->name, "tied") && e->kid[1]->n > 2;
    for (uint32_t i = 0; i < e->n && !found; i++)
        found = e->kid[i] && reaches_bodies(e->kid[i]);
    return found;
}

static void lint_bodies(Eval *ev, const File *f, const Ast *e)
{
    if (e->kind == AST_BLOCK)
        lint_body(ev, f, e->kid[3]);
    for (uint32_t i = 0; i < e->n; i++)
        if (e->kid[i] && e->kind != AST_OFF &&
            (e->kid[i]->kind == AST_BLOCK || e->kid[i]->kind == AST_ITEMS || e->kind == AST_BLOCK))
            lint_bodies(ev, f, e->kid[i]);
}

/* ---- parameters of blocks that nothing reads ---- */

static bool has_parameter(const Ast *params, Name name)
{
    for (uint32_t i = 0; params && i < params->n; i++)
        if (params->kid[i]->name == name)
            return true;
    return false;
}

/* A word in the braces of a text of a check. */
static bool text_reads(const char *s, Name name)
{
    size_t n = strlen(name);
    for (const char *at = strchr(s, '{'); at && (at = strstr(at, name)) != NULL; at += n) {
        char end = at[n];
        bool begins = !isalnum((unsigned char)at[-1]) && at[-1] != '_';
        if (begins && !isalnum((unsigned char)end) && end != '_')
            return true;
    }
    return false;
}

/* Of a block inside that has the name itself, its defaults alone; of what is bound, what it is bound to. */
static bool reads_name(const Ast *e, Name name)
{
    if (e->kind == AST_ID && e->name == name)
        return true;
    if (e->kind == AST_STR && text_reads(e->name, name))
        return true;
    bool own = e->kind == AST_BLOCK && (has_parameter(e->kid[0], name) || has_parameter(e->kid[1], name));
    for (uint32_t i = 0; i < (own ? 1 : e->n); i++)
        if (e->kid[i] && e->kind != AST_OFF && reads_name(e->kid[i], name))
            return true;
    return false;
}

/* Until the body binds the name anew. */
static bool body_reads(const Ast *body, Name name)
{
    for (uint32_t i = 0; i < body->n; i++) {
        if (reads_name(body->kid[i], name))
            return true;
        if (bound_name(body->kid[i]) == name)
            return false;
    }
    return false;
}

/* The words of a type such as one_of(a, b) are not names, the extents of a shape are. */
static bool parameters_read(const Ast *params, Name name)
{
    for (uint32_t i = 0; params && i < params->n; i++) {
        const Ast *type = params->kid[i]->kid[0], *value = params->kid[i]->kid[1];
        if ((type && type->kind == AST_LIST && reads_name(type, name)) ||
            (value && params->kid[i]->name != name && reads_name(value, name)))
            return true;
    }
    return false;
}

/* `tied(kind, label, NAME)` reads a name of another block. */
static bool tied_reads(const Ast *e, Name name)
{
    bool tied =
        e->kind == AST_CALL && e->kid[0]->kind == AST_ID && !strcmp(e->kid[0]->name, "tied") && e->kid[1]->n > 2;
    if (tied && reads_name(e->kid[1]->kid[2], name))
        return true;
    for (uint32_t i = 0; i < e->n; i++)
        if (e->kid[i] && tied_reads(e->kid[i], name))
            return true;
    return false;
}

static bool is_method(const Ast *e, const Ast *outer)
{
    return outer && outer->kind == AST_BLOCK &&
           (!strcmp(e->name, "open") || !strcmp(e->name, "step") || !strcmp(e->name, "close"));
}

/* What a place gives a block it need not read: its tensors, the number of a sublayer that `step` may have. A scope attribute is for all
 * that is applied inside, too. `outer`: the block in whose body the items are, or NULL. */
static void unused_parameters(Eval *ev, const File *f, const Ast *e, const Ast *outer)
{
    bool block = e->kind == AST_BLOCK && !is_method(e, outer);
    for (uint32_t i = 0; block && i < e->kid[0]->n; i++) {
        const Ast *par = e->kid[0]->kid[i];
        Name name = par->name;
        if (is_scope_name(name) || parameters_read(e->kid[0], name) || parameters_read(e->kid[1], name) ||
            (e->kid[2] && reads_name(e->kid[2], name)) || body_reads(e->kid[3], name) || tied_reads(f->ast, name))
            continue;
        Diag *d = diag_warning(ev->ctx, "W0102", "unused_parameter", par->name_span, "nothing reads it",
                               "`%s` has no use for its parameter `%s`", e->name, name);
        diag_note(ev->ctx, d, "whatever it is set to changes nothing");
        diag_help(ev->ctx, d, "read it in the block, or delete it");
    }
    for (uint32_t i = 0; i < e->n; i++)
        if (e->kid[i] && e->kind != AST_OFF)
            unused_parameters(ev, f, e->kid[i], e->kind == AST_BLOCK ? e : outer);
}

/* ---- a let of the model that reads as one module ---- */

static void copied(Eval *ev, const Ast *let, Span at, bool loop)
{
    Diag *d = diag_warning(ev->ctx, "W0309", "copied_by_loop", at,
                           loop ? "new weights in every iteration" : "new weights again",
                           "each %s has a `%s` of its own", loop ? "iteration" : "node", let->name);
    diag_label(ev->ctx, d, let->name_span, "this reads as one module");
    diag_note(ev->ctx, d,
              "every node is a module of its own; a name that is applied twice is one module only inside of a block");
    diag_help(ev->ctx, d, "if copies are meant, move `let %s = ...` %sto the top of the file", let->name,
              loop ? "into the loop or " : "");
}

/* Nodes of the model that are the let: the second of them. */
static const Ast *second_node(const Ast *let, const Ast *items, int *seen)
{
    const Ast *found = NULL;
    for (uint32_t i = 0; items && i < items->n && !found; i++) {
        const Ast *it = items->kid[i];
        if (it->kind == AST_NODE && it->kid[0]->name == let->name && ++*seen == 2)
            return it;
        if (it->kind == AST_NODE)
            found = second_node(let, it->kid[2], seen);
        for (uint32_t k = 1; it->kind == AST_IF && k < it->n && !found; k++)
            found = second_node(let, it->kid[k], seen);
    }
    return found;
}

/* Nodes in loops of the model that are the let, or give it to a block. True when one was said. */
static bool find_copied(Eval *ev, const Ast *let, const Ast *items, bool loop)
{
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i];
        bool node = it->kind == AST_NODE && it->kid[0]->name == let->name;
        bool given = it->kind == AST_SET && it->kid[1]->kind == AST_ID && it->kid[1]->name == let->name &&
                     !is_scope_name(it->kid[0]->name);
        if (loop && (node || given)) {
            copied(ev, let, node ? it->kid[0]->span : it->kid[1]->span, true);
            return true;
        }
        const Ast *inner = it->kind == AST_FOR ? it->kid[1] : it->kind == AST_NODE ? it->kid[2] : NULL;
        if (it->kind == AST_IF)
            for (uint32_t k = 1; k < it->n; k++)
                if (it->kid[k] && find_copied(ev, let, it->kid[k], loop))
                    return true;
        if (inner && find_copied(ev, let, inner, loop || it->kind == AST_FOR))
            return true;
    }
    return false;
}

static void copied_by_loop(Eval *ev, const File *f)
{
    const Ast *items = f->model_ast ? f->model_ast->kid[2] : NULL;
    if (lint_allowed(f, "copied_by_loop"))
        return;
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i];
        const Ast *callee = it->kind == AST_LET && it->kid[1]->kind == AST_CALL ? it->kid[1]->kid[0] : NULL;
        int seen = 0;
        if (!callee || (callee->kind == AST_ID && prim_find(callee->name)) || find_copied(ev, it, items, false))
            continue;
        const Ast *second = second_node(it, items, &seen);
        if (second)
            copied(ev, it, second->kid[0]->span, false);
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
        unused_among(ev, body, NULL);
    for (uint32_t i = 0; i < e->n; i++)
        if (e->kid[i] && e->kind != AST_OFF)
            unused_inside(ev, e->kid[i]);
}

void lint_unused(Eval *ev, File *f)
{
    copied_by_loop(ev, f);
    if (!lint_allowed(f, "unused_parameter"))
        unused_parameters(ev, f, f->ast, NULL);
    if (!f->quiet && !reaches_bodies(f->ast))
        lint_bodies(ev, f, f->ast);
    if ((!f->model_ast && !f->train_ast) || lint_allowed(f, "unused_let"))
        return;
    unused_among(ev, f->ast, f);
    for (uint32_t i = 0; i < f->ast->n; i++)
        if (f->ast->kid[i]->kind == AST_BLOCK || f->ast->kid[i] == f->model_ast)
            unused_inside(ev, f->ast->kid[i]);
}
