/* check_optimizer.c - the `optimizer` node of `train`: its kind, its constants, its groups.
 *
 * In:  the node and a checked model.   Out: an Optimizer with a rate, a decay and a rule for every weight.
 * The one idea: a group chooses weights by their group or by path, and rules apply in order; what a kind of
 * optimizer wants beside that is one function that reads its constants.
 */
#include "check_train.h"

#include <math.h>

/* `*` is any text. What stood before the last star is settled: no text of which it could stand later fits better. */
static bool glob(const char *p, const char *s)
{
    const char *star = NULL, *from = NULL;
    while (*s) {
        if (*p == '*') {
            star = ++p;
            from = s;
        } else if (*p == *s) {
            p++;
            s++;
        } else if (star) {
            p = star;
            s = ++from;
        } else {
            return false;
        }
    }
    while (*p == '*')
        p++;
    return !*p;
}

/* Whether some file puts weights into a group of that name: `group = NAME` or `group : name = NAME`. */
static bool names_group(const Ast *e, Name label)
{
    bool here = (e->kind == AST_SET && !strcmp(e->kid[0]->name, "group")) ||
                ((e->kind == AST_NAMED || e->kind == AST_PAR) && !strcmp(e->name, "group"));
    const Ast *value = here && e->n ? e->kid[e->n - 1] : NULL;
    if (value && (value->kind == AST_ID || value->kind == AST_STR) && value->name == label)
        return true;
    for (uint32_t i = 0; i < e->n; i++)
        if (e->kid[i] && names_group(e->kid[i], label))
            return true;
    return false;
}

static bool group_known(Eval *ev, Name label)
{
    if (!strcmp(label, "matrix") || !strcmp(label, "vector"))
        return true;
    for (size_t i = 0; i < ev->files.n; i++)
        if (ev->files.v[i]->ast && names_group(ev->files.v[i]->ast, label))
            return true;
    return false;
}

/* `update = adamw` in a group: which of two optimizers its weights have; NULL: as it was. */
static Name update_of(Attrs *a, const Optimizer *o)
{
    const TrainAttr *t = attrs_get(a, "update");
    if (!t)
        return NULL;
    Name word = t->expr->kind == AST_ID ? t->expr->name : "";
    if (!strcmp(word, o->kind) || (o->by_second && !strcmp(word, "adamw")))
        return word;
    Diag *d = err(a->ev, "E0205", t->expr->span, "",
                  o->by_second ? "`update` must be `%s` or `adamw`" : "`update` can only be `%s` here", o->kind);
    if (!o->by_second)
        diag_note(a->ev->ctx, d, "two optimizers in one run: `optimizer muon { ..., adamw { ... } }`");
    return NULL;
}

/* False when the rule asks an optimizer of matrices for something else, which is said. */
static bool choose_update(Eval *ev, Optimizer *o, const Param *p, size_t i, Name update, Span at)
{
    if (!update || !o->by_second)
        return true;
    o->by_second[i] = update != o->kind;
    if (o->by_second[i] || p->shape.rank >= 2)
        return true;
    Buf shape = buf_new(ev->arena);
    shape_print(&shape, &p->shape);
    err(ev, "E0206", at, "", "`%s` updates matrices, and `%s` is %s", o->kind, p->path, shape.s);
    return false;
}

/* The groups that have weights, with one of each; and where biases and the like are. */
static void list_groups(Eval *ev, Diag *d, const Model *m, Name label)
{
    VEC(Name) seen = {0};
    Buf all = buf_new(ev->arena);
    for (size_t i = 0; i < m->param.n; i++) {
        const Param *p = &m->param.v[i];
        bool known = p->buffer;
        for (size_t k = 0; k < seen.n; k++)
            known |= seen.v[k] == p->group;
        if (known)
            continue;
        vec_push(ev->arena, &seen, p->group);
        buf_printf(&all, "%s`%s` (%s)", all.n ? ", " : "", p->group, p->path);
    }
    if (seen.n)
        diag_note(ev->ctx, d, "the groups of this model are, with a weight of each, %s", all.s);
    if (strstr(label, "bias") || strstr(label, "norm") || !strcmp(label, "gain"))
        diag_help(ev->ctx, d, "biases and the gains of norms are in the group `vector`");
}

static void group_rule(Eval *ev, File *f, const Ast *it, Model *m, Optimizer *o)
{
    if (!it->kid[1]) {
        err(ev, "E0110", it->span, "", "`group` needs a name or a path in quotes");
        return;
    }
    Name label = it->kid[1]->name;
    bool by_path = strpbrk(label, ".*[") != NULL;
    Attrs a;
    attrs_open(&a, ev, f, it->kid[2], name_printf(ev->ctx, "train.optimizer.group.%s", label), "group",
               it->kid[0]->span);
    double decay = attr_number(&a, "weight_decay"), scale = attr_number(&a, "lr_scale");
    bool freezes, frozen = attr_bool(&a, "frozen", &freezes);
    Name update = update_of(&a, o);
    attrs_close(&a);
    size_t hits = 0;
    bool fits = true;
    VEC(Name) groups = {0};
    for (size_t i = 0; i < m->param.n; i++) {
        const Param *p = &m->param.v[i];
        vec_push(ev->arena, &groups, p->group);
        if (by_path ? !glob(label, p->path) : p->group != label)
            continue;
        hits++;
        if (!isnan(decay))
            o->decay[i] = decay;
        o->lr_scale[i] *= scale;
        if (freezes)
            o->frozen[i] = frozen;
        fits = fits && choose_update(ev, o, p, i, update, it->kid[1]->span);
    }
    Name near = hits ? NULL : nearest_name(label, groups.v, groups.n);
    if (!hits && (by_path || !group_known(ev, label))) {
        Diag *d = err(ev, "E0607", it->kid[1]->span, "",
                      by_path ? "no weight has a path like `%s`" : "no weights in a group `%s`", label);
        if (by_path && m->param.n)
            diag_note(ev->ctx, d, "paths look like `%s`, a bias is called `b`; `*` stands for any text",
                      m->param.v[0].path);
        else if (!by_path)
            list_groups(ev, d, m, label);
        if (near)
            diag_fix(ev->ctx, d, it->kid[1]->span, near, FIX_MAYBE, "did you mean `%s`?", near);
    }
}

static void missing_decay(Eval *ev, const Model *m, const Optimizer *o, Span at)
{
    VEC(Name) done = {0};
    Buf all = buf_new(ev->arena);
    for (size_t i = 0; i < m->param.n; i++) {
        bool seen = m->param.v[i].buffer;
        for (size_t k = 0; k < done.n; k++)
            seen |= done.v[k] == m->param.v[i].group;
        if (seen)
            continue;
        vec_push(ev->arena, &done, m->param.v[i].group);
        buf_printf(&all, "%s%s", all.n ? ", " : "", m->param.v[i].group);
    }
    Buf names = buf_new(ev->arena), held = buf_new(ev->arena);
    Name first = NULL;
    size_t lacking = 0;
    for (size_t k = 0; k < done.n; k++) {
        int64_t weights = 0, tensors = 0;
        for (size_t i = 0; i < m->param.n; i++) {
            const Param *p = &m->param.v[i];
            if (p->buffer || p->group != done.v[k] || !isnan(o->decay[i]))
                continue;
            weights += p->elements;
            tensors++;
        }
        if (!tensors)
            continue;
        first = lacking++ ? first : done.v[k];
        Buf n = buf_new(ev->arena);
        buf_count(&n, weights);
        buf_printf(&names, "%s`%s`", names.n ? ", " : "", done.v[k]);
        buf_printf(&held, "%sgroup `%s` holds %s weights in %lld tensors", held.n ? "; " : "", done.v[k], n.s,
                   (long long)tensors);
    }
    if (!lacking)
        return;
    Diag *d = err(ev, "E0602", at, "", "no weight decay given for group%s %s", lacking > 1 ? "s" : "", names.s);
    if (d->labels.n)
        d->labels.v[0].text = arena_printf(ev->arena, "groups in this model: %s", all.s);
    diag_note(ev->ctx, d, "%s", held.s);
    if (lacking == 1)
        diag_help(ev->ctx, d, "give it a value: `group %s { weight_decay = 0 }`", first);
    diag_help(ev->ctx, d,
              lacking == 1 ? "or give one value for every group: `weight_decay = 0.1`"
                           : "give one value for every group: `weight_decay = 0.1`");
    if (lacking > 1)
        diag_help(ev->ctx, d, "or each its own: `group %s { weight_decay = 0 }`, and so on", first);
}

/* ---- kinds ---- */

static void add_constant(Eval *ev, Optimizer *o, const char *name, double x)
{
    vec_push(ev->arena, &o->constant, (OptimizerConstant){name_str(ev->ctx, name), x});
}

static void read_betas(Attrs *a, Optimizer *o)
{
    double b[2];
    if (!attrs_need(a, "betas") || !attr_numbers(a, "betas", b))
        return;
    add_constant(a->ev, o, "beta1", b[0]);
    add_constant(a->ev, o, "beta2", b[1]);
}

static void read_momentum(Attrs *a, Optimizer *o)
{
    add_constant(a->ev, o, "momentum", attrs_need(a, "momentum") ? attr_number(a, "momentum") : 0);
    add_constant(a->ev, o, "nesterov", attr_bool(a, "nesterov", NULL));
}

static void sgd_constants(Attrs *a, Optimizer *o)
{
    read_momentum(a, o);
    add_constant(a->ev, o, "coupled", !strcmp(attr_word(a, "decay"), "coupled"));
}

static void adamw_constants(Attrs *a, Optimizer *o)
{
    read_betas(a, o);
    if (attrs_need(a, "eps"))
        add_constant(a->ev, o, "eps", attr_number(a, "eps"));
}

static void muon_constants(Attrs *a, Optimizer *o)
{
    double k[3] = {MUON_A, MUON_B, MUON_C};
    read_momentum(a, o);
    attr_numbers(a, "coefficients", k);
    add_constant(a->ev, o, "steps", (double)attr_whole(a, "steps"));
    add_constant(a->ev, o, "a", k[0]);
    add_constant(a->ev, o, "b", k[1]);
    add_constant(a->ev, o, "c", k[2]);
    if (attrs_get(a, "rms"))
        add_constant(a->ev, o, "rms", attr_number(a, "rms"));
}

static const struct {
    const char *name;
    void (*constants)(Attrs *a, Optimizer *o);
    bool matrices; /* made for matrices alone: the rest has a second optimizer */
} kinds[] = {{"adamw", adamw_constants, false},
             {"sgd", sgd_constants, false},
             {"lion", read_betas, false},
             {"muon", muon_constants, true}};

/* COUNT_OF(kinds) when there is none of that name. */
static size_t kind_of(const char *name)
{
    size_t k = 0;
    while (k < COUNT_OF(kinds) && strcmp(kinds[k].name, name) != 0)
        k++;
    return k;
}

static void read_rate(Attrs *a, File *f, const TrainAttr *lr, const Train *t, Optimizer *o)
{
    if (!lr)
        return;
    o->lr = schedule_of(a, f, lr, t);
    o->lr_span = lr->expr->span;
}

/* `adamw { ... }` in an optimizer of matrices: what updates the rest. */
static void second_optimizer(Eval *ev, File *f, const Ast *it, const Train *t, Optimizer *o)
{
    Optimizer *second = NEW(ev->arena, Optimizer);
    *second = (Optimizer){.kind = it->kid[0]->name, .lr = o->lr, .lr_span = o->lr_span, .span = it->kid[0]->span};
    for (uint32_t i = 0; it->kid[2] && i < it->kid[2]->n; i++)
        if (it->kid[2]->kid[i]->kind == AST_NODE && !strcmp(it->kid[2]->kid[i]->kid[0]->name, "group"))
            diag_help(ev->ctx,
                      err(ev, "E0110", it->kid[2]->kid[i]->kid[0]->span, "", "groups stand in `optimizer` itself"),
                      "a group has the weights of both optimizers");
    Attrs a;
    attrs_open(&a, ev, f, it->kid[2], name_printf(ev->ctx, "train.optimizer.%s", second->kind), second->kind,
               second->span);
    read_rate(&a, f, attrs_get(&a, "lr"), t, second);
    second->weight_decay = attr_number(&a, "weight_decay");
    adamw_constants(&a, second);
    attrs_close(&a);
    o->second = second;
}

/* Matrices of the group `matrix` are updated as the optimizer's name says, the rest by the second one. */
static void choose_second(Eval *ev, File *f, const Ast *items, const Model *m, const Train *t, Optimizer *o)
{
    o->by_second = NEW_ARRAY(ev->arena, bool, m->param.n + 1);
    for (size_t i = 0; i < m->param.n; i++)
        o->by_second[i] = m->param.v[i].shape.rank < 2 || strcmp(m->param.v[i].group, "matrix") != 0;
    for (uint32_t i = 0; items && i < items->n; i++)
        if (items->kid[i]->kind == AST_NODE && !strcmp(items->kid[i]->kid[0]->name, "adamw"))
            second_optimizer(ev, f, items->kid[i], t, o);
}

static void missing_second(Eval *ev, const Model *m, const Optimizer *o)
{
    for (size_t i = 0; !o->second && i < m->param.n; i++) {
        if (!o->by_second[i] || o->frozen[i])
            continue;
        const Param *p = &m->param.v[i];
        Buf shape = buf_new(ev->arena);
        shape_print(&shape, &p->shape);
        Diag *d = err(ev, "E0104", o->span, "missing `adamw`", "`%s` needs an `adamw` node for what it does not update",
                      o->kind);
        diag_note(ev->ctx, d, "it updates matrices of the group `matrix`; `%s`, %s, is of group `%s`", p->path, shape.s,
                  p->group);
        diag_help(ev->ctx, d, "for example `adamw { lr = 3e-4, betas = [0.9, 0.95], eps = 1e-8 }`");
        return;
    }
}

/* Where no group says otherwise a weight has the decay of its declaration, else that of the optimizer that updates it, which
 * groups have chosen. */
static void choose_decays(const Model *m, Optimizer *o)
{
    for (size_t i = 0; i < m->param.n; i++) {
        bool second = o->second && o->by_second[i] && !isnan(o->second->weight_decay);
        if (isnan(o->decay[i]))
            o->decay[i] = m->param.v[i].decay;
        if (isnan(o->decay[i]))
            o->decay[i] = second ? o->second->weight_decay : o->weight_decay;
    }
}

static bool kind_is_known(Eval *ev, const Ast *it, const Optimizer *o)
{
    const char *names[COUNT_OF(kinds)];
    for (size_t k = 0; k < COUNT_OF(kinds); k++)
        names[k] = kinds[k].name;
    if (kind_of(o->kind) < COUNT_OF(kinds))
        return true;
    Diag *d = it->kid[1] ? err(ev, "E0102", o->span, "", "no optimizer `%s`", o->kind)
                         : err(ev, "E0110", o->span, "", "`optimizer` needs a kind");
    Buf all = buf_new(ev->arena);
    for (size_t k = 0; k < COUNT_OF(kinds); k++)
        buf_printf(&all, "%s%s", list_gap(k, COUNT_OF(kinds), " and "), names[k]);
    diag_note(ev->ctx, d, "optimizers are %s", all.s);
    suggest(ev, d, o->kind, names, COUNT_OF(kinds), it->kid[1] ? it->kid[1]->span : o->span);
    return false;
}

void build_optimizer(Eval *ev, File *f, const Ast *it, Model *m, Train *t)
{
    Optimizer *o = &t->optimizer;
    const Ast *items = it->kid[2];
    o->span = it->kid[1] ? span_join(it->kid[0]->span, it->kid[1]->span) : it->kid[0]->span;
    o->kind = it->kid[1] ? it->kid[1]->name : name_str(ev->ctx, "");
    if (!kind_is_known(ev, it, o))
        return;
    size_t n = m->param.n, kind = kind_of(o->kind), errors = diag_errors(ev->ctx);
    o->lr_scale = NEW_ARRAY(ev->arena, double, n + 1);
    o->decay = NEW_ARRAY(ev->arena, double, n + 1);
    o->frozen = NEW_ARRAY(ev->arena, bool, n + 1);
    Attrs a;
    attrs_open(&a, ev, f, items, name_str(ev->ctx, "train.optimizer"), o->kind, o->span);
    read_rate(&a, f, attrs_need(&a, "lr"), t, o);
    o->weight_decay = attr_number(&a, "weight_decay");
    for (size_t i = 0; i < n; i++) {
        o->lr_scale[i] = m->param.v[i].lr_scale;
        o->decay[i] = NAN;
        o->frozen[i] = m->param.v[i].frozen || m->param.v[i].buffer;
    }
    kinds[kind].constants(&a, o);
    attrs_close(&a);
    if (kinds[kind].matrices)
        choose_second(ev, f, items, m, t, o);
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *k = items->kid[i];
        Name node = k->kind == AST_NODE ? k->kid[0]->name : "";
        if (!strcmp(node, "group"))
            group_rule(ev, f, k, m, o);
    }
    choose_decays(m, o);
    missing_decay(ev, m, o, o->span);
    if (o->by_second && diag_errors(ev->ctx) == errors)
        missing_second(ev, m, o);
}
