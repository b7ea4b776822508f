/* check_items.c - what may stand in a node that C knows.
 *
 * In:  its name and its items.   Out: E0101, E0108, E0110 and E0112 for what cannot stand there.
 * The one idea: attributes.def says which attributes and nodes a node has, so that whatever it does not name is an error, in
 * whatever form it is written: nothing is read and ignored.
 */
#include "check_items.h"

#include "compiler/front/attribute.h"
#include "grammar/foreign.h"

static bool stands_in(const char *name, const char *what)
{
    const NodeDoc *node = node_doc_find(name);
    return node && node_stands_in(node, what);
}

static void note_items(Eval *ev, Diag *d, const char *what)
{
    const char *known;
    size_t n;
    attribute_names(ev->ctx, ev->arena, what, true, &n, &known);
    bool let = stands_in("let", what), check = stands_in("check", what);
    diag_note(ev->ctx, d, "it holds %s%s%s%s%s", let ? "let" : "", let && check ? ", " : "", check ? "check" : "",
              let || check ? " and " : "", known);
}

static void no_item(Eval *ev, const Ast *it, const char *what)
{
    Diag *d = err(ev, "E0110", it->span, "", "`%s` cannot hold this item", what);
    note_items(ev, d, what);
    if (it->kind == AST_LET && attribute_find(what, it->name))
        diag_help(ev->ctx, d, "an attribute is set without `let`: `%s = %s`; a let stands at the top of the file",
                  it->name, expr_text(ev, it->kid[1]));
}

/* `layer[1].ffn.hidden = 3`, `train.optimizer.lr = 1e-3` */
static void no_path(Eval *ev, const Ast *it, const char *what)
{
    const Ast *path = it->kid[0];
    bool step = !strcmp(what, "grow"), fill = !strcmp(what, "fill"), set = it->kind == AST_SET;
    Diag *d = err(ev, "E0110", path->span, "", "`%s` sets nothing by a path", what);
    const char *last = path->kid[path->n - 1]->name, *value = set ? expr_text(ev, it->kid[1]) : NULL;
    if (step && !strcmp(path->name, "train"))
        diag_help(
            ev->ctx, d,
            "what training has from the step on stands in its `train`: `train { optimizer adamw { lr = 1e-3 } }`");
    else if (step && !stands_in(path->name, what))
        diag_help(
            ev->ctx, d,
            "a step gives lets of the file other values: name this one, `let D = ...`, and write `let D = %s` here",
            value ? value : "64");
    else if (set && fill)
        diag_help(ev->ctx, d, "a path chooses weights: `%s { entry = %s }`", span_text(ev, path->span), value);
    else if (set && last && stands_in(path->name, what))
        diag_help(ev->ctx, d, "write `%s { %s = %s }`", path->name, last, value);
    else
        note_items(ev, d, what);
}

static void unknown_node(Eval *ev, const Ast *it, const char *what)
{
    Name kind = it->kid[0]->name;
    const AttributeRow *attribute = attribute_find(what, kind);
    if (attribute) {
        Diag *d = err(ev, "E0110", it->kid[0]->span, "an attribute", "`%s` is set with `=`", kind);
        diag_help(ev->ctx, d, "`%s = ...`: %s", kind, attribute->values);
        return;
    }
    Diag *d = err(ev, "E0110", it->kid[0]->span, "", "`%s` holds no node `%s`", what, kind);
    note_items(ev, d, what);
    const Foreign *row = foreign_next(FOREIGN_NODE, kind, NULL);
    const char *known;
    size_t n;
    Name *names = attribute_names(ev->ctx, ev->arena, what, true, &n, &known);
    if (row && row->text)
        diag_help(ev->ctx, d, "%s", row->text);
    else if (row && node_doc_find(name_str(ev->ctx, row->ours)))
        diag_fix(ev->ctx, d, it->kid[0]->span, row->ours, FIX_CERTAIN, "it is called `%s` here", row->ours);
    else
        suggest_attribute(ev, d, kind, names, n, it->kid[0]->span);
}

static bool has_label(Name kind) { return !strcmp(kind, "optimizer") || !strcmp(kind, "group"); }

static void no_label(Eval *ev, const Ast *it)
{
    err(ev, "E0110", it->kid[1]->span, "", "`%s` has no label", span_text(ev, it->kid[0]->span));
}

static void node_fits(Eval *ev, const Ast *items, uint32_t i, const char *what)
{
    const Ast *it = items->kid[i];
    Name kind = it->kid[0]->name;
    if (!stands_in(kind, what)) {
        unknown_node(ev, it, what);
        return;
    }
    if (it->kid[1] && !has_label(kind))
        no_label(ev, it);
    for (uint32_t k = 0; k < i && strcmp(kind, "group") != 0; k++) {
        const Ast *had = items->kid[k];
        if (had->kind != AST_NODE || had->kid[0]->n || had->kid[0]->name != kind)
            continue;
        Diag *d = err(ev, "E0112", it->kid[0]->span, "", "a second `%s`", kind);
        diag_label(ev->ctx, d, had->kid[0]->span, "the first one");
        if (!strcmp(kind, "optimizer"))
            diag_help(
                ev->ctx, d,
                "one optimizer has all weights: `group \"PATH\" { ... }` in it gives some of them other rates, and "
                "muon has its own `adamw { ... }`");
        return;
    }
}

void items_fit(Eval *ev, const Ast *items, const char *what)
{
    bool paths = !strcmp(what, "sweep"), selectors = !strcmp(what, "fill");
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i];
        switch (it->kind) {
        case AST_OFF: break;
        case AST_LET:
        case AST_CHECK:
            if (!stands_in(it->kind == AST_LET ? "let" : "check", what))
                no_item(ev, it, what);
            break;
        case AST_SET:
            if (it->kid[0]->n && !paths)
                no_path(ev, it, what);
            break;
        case AST_NODE:
            if (!it->kid[0]->n)
                node_fits(ev, items, i, what);
            else if (!selectors)
                no_path(ev, it, what);
            else if (it->kid[1])
                no_label(ev, it);
            break;
        default: no_item(ev, it, what); break;
        }
    }
}

/* Whether what a row says of its values names this one. */
static bool names_value(const AttributeRow *row, const char *value)
{
    size_t n = strcspn(value, "(");
    for (const char *at = row->values; n && at && (at = strstr(at, value)); at++)
        if ((at == row->values || strchr(" `", at[-1])) && strchr(",` (", at[n]))
            return true;
    return false;
}

/* `D = [32, 64]` of a sweep without `vary`; `L = 4` of a growth step without `let`. */
static bool forgotten_around(Eval *ev, Diag *d, const Ast *it, const char *what)
{
    Name key = it->kid[0]->name;
    const char *value = expr_text(ev, it->kid[1]);
    const File *file = ev->unit->file;
    bool let = !strcmp(what, "grow") && file && env_find(file->env, key);
    bool axis = !strcmp(what, "sweep") && it->kid[1]->kind == AST_LIST && !foreign_next(FOREIGN_ATTRIBUTE, key, NULL);
    if (let)
        diag_help(ev->ctx, d, "a step gives a let of the file another value: `let %s = %s`", key, value);
    else if (axis)
        diag_help(ev->ctx, d, "axes stand in `vary`: `vary { %s = %s }`", key, value);
    const NodeDoc *inner = NULL;
    bool when = attribute_means(key, "when");
    for (size_t i = 0; i < node_doc_count() && !let && !axis && !when && !inner; i++)
        if (!strcmp(what, "grow") && node_stands_in(node_doc_at(i), what) && attribute_find(node_doc_at(i)->name, key))
            inner = node_doc_at(i);
    if (inner && it->kid[1]->kind == AST_NUM && !strcmp(key, "layers"))
        diag_help(ev->ctx, d, "how many there are a let of the file says, as `let L = %s`", value);
    else if (inner)
        diag_help(ev->ctx, d, "it belongs to `%s`: `%s { %s = %s }`", inner->name, inner->name, key, value);
    return let || axis || inner;
}

/* `fill = zeros` */
static void no_value(Eval *ev, const Ast *it)
{
    Name key = it->kid[0]->name;
    const AttributeRow *first = NULL;
    for (size_t i = 0; !first && i < attribute_count(); i++)
        first = !strcmp(attribute_at(i)->node, key) ? attribute_at(i) : NULL;
    Diag *d = err(ev, "E0110", it->kid[0]->span, "a node has no `=`", "`%s` is a node", key);
    const char *value = expr_text(ev, it->kid[1]);
    for (size_t i = 0; i < attribute_count(); i++) /* `identity` is a value of `layers` alone */
        if (!strcmp(attribute_at(i)->node, key) && !attribute_at(i)->example && first && !names_value(first, value) &&
            names_value(attribute_at(i), value))
            first = attribute_at(i);
    if (first && !first->example)
        diag_help(ev->ctx, d, "for example `%s { %s = %s }`", key, first->name, value);
    else
        diag_help(ev->ctx, d, "write `%s { ... }`", key);
}

void attributes_fit(Eval *ev, const Ast *items, const char *what)
{
    const char *known;
    size_t n;
    Name *names = attribute_names(ev->ctx, ev->arena, what, true, &n, &known);
    items_fit(ev, items, what);
    for (uint32_t i = 0; items && i < items->n; i++) {
        const Ast *it = items->kid[i];
        if (it->kind != AST_SET || it->kid[0]->n)
            continue;
        Name key = it->kid[0]->name;
        if (stands_in(key, what)) {
            no_value(ev, it);
        } else if (!attribute_find(what, key)) {
            Diag *d = err(ev, "E0101", it->kid[0]->span, "unknown attribute", "`%s` has no attribute `%s`", what, key);
            note_items(ev, d, what);
            if (!forgotten_around(ev, d, it, what))
                suggest_attribute(ev, d, key, names, n, it->kid[0]->span);
        }
        set_before(ev, items, i);
    }
}
