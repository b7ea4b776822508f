/* held_out.c - see held_out.h. */
#include "held_out.h"

#include <math.h>

HeldOut held_out_open(Session *s, const Source *source, const char *path)
{
    const Train *t = source->unit->train;
    if (!t)
        ctx_raise(s->ctx, ST_INPUT, "the text in the checkpoint has no `train`: it names the data");
    HeldOut h = {0};
    bool other = t->eval_data.kind != DATA_NONE;
    DataSpec spec = other ? t->eval_data : t->data;
    spec.folder = source->checkpoint->meta.folder;
    h.text = spec.kind != DATA_ARRAYS;
    if (path && !h.text)
        ctx_raise(s->ctx, ST_USAGE,
                  "--data names a text, and this model reads arrays: those held out, or "
                  "`eval { data = arrays(...) }` of the file");
    if (path) {
        spec.path = path;
        spec.folder = "";
        spec.span = NO_SPAN;
        spec.val = 0;
        spec.val_path = NULL;
    }
    DataOptions how = {.spec = &spec,
                       .tokenizer = &t->tokenizer,
                       .known = (Tokenizer *)source->checkpoint->meta.tokenizer,
                       .context = t->context,
                       .model = source->unit->model};
    tokenizer_load(s, how.known);
    Data *d = data_open(s, &how);
    bool whole = other || path;
    if (!whole && !d->val.order.tokens)
        ctx_raise(s->ctx, ST_USAGE,
                  h.text ? "the file keeps no validation text; name some with --data"
                         : "the file holds no part of its arrays out");
    h.split = whole ? &d->train : &d->val;
    h.epoch = whole ? 0 : d->train.order.windows;
    split_need_window(s, h.split);
    return h;
}

void held_out_vars(const Source *source, const HeldOut *data, double *vars)
{
    const Train *t = source->unit->train;
    const Progress *p = &source->checkpoint->progress;
    double length = (double)(t->length_steps > 0 ? t->length_steps : p->step);
    if (t->length_steps < 0 && data->epoch)
        length = (double)order_steps(t->length_epochs, data->epoch, t->batch_seqs);
    progress_vars(p, length, (double)data->epoch * (double)t->context, vars);
}
