/* check_inputs.c - does the data of `train` give what the model reads?
 *
 * In:  `data`, evaluated, and a checked model.   Out: the arrays it names, and E0612.
 * The one idea: an array belongs to an input by its name, so nothing here knows what an image is.
 */
#include "check_train.h"

void array_specs(Eval *ev, const Record *r, DataSpec *out)
{
    ArraySpec *a = NEW_ARRAY(ev->arena, ArraySpec, r->n + 1);
    for (size_t i = 0; i < r->n; i++)
        if (strcmp(r->field[i].name, "val"))
            a[out->n_array++] = (ArraySpec){r->field[i].name, r->field[i].value->word, r->field[i].span};
    out->array = a;
}

static const Ext *input_named(const Model *m, Name name)
{
    for (size_t i = 0; i < m->graph->ext.n; i++)
        if (m->graph->ext.v[i].kind == EXT_INPUT && m->graph->ext.v[i].name == name)
            return &m->graph->ext.v[i];
    return NULL;
}

const char *arrays_example(Eval *ev, const Model *m)
{
    Buf b = buf_new(ev->arena);
    for (size_t i = 0; i < m->graph->ext.n; i++)
        if (m->graph->ext.v[i].kind == EXT_INPUT)
            buf_printf(&b, "%s%s = \"%s.npy\"", b.n ? ", " : "arrays(", m->graph->ext.v[i].name,
                       m->graph->ext.v[i].name);
    return b.n ? arena_printf(ev->arena, "%s)", b.s) : "arrays()";
}

/* A row of an array is an example, so an input has one for each sequence of the batch. */
static bool has_rows(const Shape *s)
{
    bool first = s->rank && dim_eq(s->d[0], DIM_B);
    for (int i = 1; i < s->rank; i++)
        first = first && !s->d[i].b;
    return first;
}

static void missing(Eval *ev, const Model *m, const DataSpec *data, const Ext *x)
{
    bool arrays = data->kind == DATA_ARRAYS;
    const char *label = arena_printf(ev->arena, "no `%s`", x->name);
    Diag *d = err(ev, "E0612", data->span, "", "the model reads the input `%s`, which the data does not give", x->name);
    if (d->labels.n)
        d->labels.v[0].text = label;
    if (!arrays)
        diag_note(ev->ctx, d, "a text gives tokens, labels and document: an integer for each position");
    diag_help(ev->ctx, d, "write `data = %s`", arrays_example(ev, m));
}

static void unread(Eval *ev, const Model *m, const ArraySpec *a)
{
    VEC(Name) names = {0};
    for (size_t i = 0; i < m->graph->ext.n; i++)
        if (m->graph->ext.v[i].kind == EXT_INPUT)
            vec_push(ev->arena, &names, m->graph->ext.v[i].name);
    Diag *d = err(ev, "E0612", a->span, "nothing reads it", "the model has no input `%s`", a->input);
    suggest(ev, d, a->input, names.v, names.n, a->span);
}

void check_inputs(Eval *ev, const Model *m, const DataSpec *data)
{
    for (size_t i = 0; i < data->n_array; i++)
        if (!input_named(m, data->array[i].input)) {
            unread(ev, m, &data->array[i]);
            return;
        }
    for (size_t i = 0; i < m->graph->ext.n && data->kind != DATA_NONE; i++) {
        const Ext *x = &m->graph->ext.v[i];
        bool given = data->kind != DATA_ARRAYS && input_is_text(x);
        for (size_t k = 0; k < data->n_array; k++)
            given = given || data->array[k].input == x->name;
        if (x->kind != EXT_INPUT)
            continue;
        if (!given) {
            missing(ev, m, data, x);
            return;
        }
        if (data->kind == DATA_ARRAYS && !has_rows(&x->shape)) {
            Buf b = buf_new(ev->arena);
            shape_print(&b, &x->shape);
            Diag *d = err(ev, "E0612", data->span, "", "the input `%s` is %s, and arrays give a row for each sequence",
                          x->name, b.s);
            diag_help(ev->ctx, d, "let its first extent be B, and no other");
        }
    }
}
