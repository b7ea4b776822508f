/* check_start.c - what a run begins with: `start_from` of `train`, `from` of a growth step.
 *
 * In:  a value of the file.   Out: a StartSpec; diagnostics for what is none.
 * The one idea: what would be lost or drawn at random without a word is allowed by a word of the file, so
 * that a file says all that happens to the weights.
 */
#include "check_train.h"

#include <math.h>

/* `new = draw`: true when the word is there; another word is an error. */
static bool allows(Eval *ev, const Field *f, const char *word)
{
    const Value *v = f->value;
    if (v->kind == V_NONE || v->kind == V_POISON)
        return false;
    if (v->kind == V_WORD && !strcmp(v->word, word))
        return true;
    Diag *d = err(ev, "E0205", f->span, "", "`%s` must be `%s`, or be left out", f->name, word);
    diag_note(ev->ctx, d, "left out it is an error that there are such weights");
    return false;
}

static void read_field(Eval *ev, const Field *f, StartSpec *s)
{
    if (!f->name || !strcmp(f->name, "path"))
        s->path = f->value->word;
    else if (!strcmp(f->name, "new"))
        s->draw_new = allows(ev, f, "draw");
    else if (!strcmp(f->name, "grown"))
        s->draw_grown = allows(ev, f, "draw");
    else if (!strcmp(f->name, "cut"))
        s->drop_cut = allows(ev, f, "drop");
    else if (!strcmp(f->name, "left"))
        s->drop_left = allows(ev, f, "drop");
    else if (!strcmp(f->name, "last"))
        s->last = f->value->num != 0;
    else if (f->value->kind == V_NUM && f->value->num >= 0)
        s->preserves = f->value->num;
    else if (f->value->kind != V_NONE && f->value->kind != V_POISON)
        err(ev, "E0206", f->span, "", "`preserves` must be a number from 0: how much outputs may differ");
}

StartSpec start_spec(Eval *ev, File *f, const Value *v, Span at, const AttributeRow *row)
{
    StartSpec s = {.kind = START_DRAWN, .folder = f->folder, .preserves = INFINITY, .span = at};
    const Record *r = v->kind == V_SPEC ? v->record : NULL;
    if (v->kind == V_NONE || v->kind == V_POISON)
        return s;
    if (v->kind == V_STR)
        s.path = variant_path(ev, at, v->word);
    bool run = r && !strcmp(r->name, "run");
    Diag *d;
    if (!attribute_one_of(ev, row, v, at, &d)) {
        diag_help(ev->ctx, d, "for example `%s = run(\"runs/base\")`", row->name);
        return s;
    }
    for (size_t i = 0; r && i < r->n; i++)
        read_field(ev, &r->field[i], &s);
    if (!s.path || !*s.path) {
        err(ev, "E0206", at, "", "`%s` names no file", row->name);
        return s;
    }
    s.kind = run ? START_RUN : START_FILE;
    return s;
}
