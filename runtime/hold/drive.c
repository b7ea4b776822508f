/* drive.c - steps of training that the caller drives.
 *
 * In:  batches of the caller's, or gradients of a loss of its own.   Out: gradients and new weights in the store.
 * The one idea: a Trainer takes them, as it takes those of `vwn train`, and only what it is fed with is another's.
 */
#include "hold.h"

#include <math.h>
#include <string.h>

static Trainer *trainer(vwn_model *v)
{
    Trainer *tr = &v->trainer;
    if (!v->trains)
        ctx_raise(v->ctx, ST_USAGE, "the model was not opened to be trained");
    if (tr->now.step >= tr->steps)
        ctx_raise(v->ctx, ST_USAGE,
                  "the file trains for %lld steps, and all of them are taken: `train.length` says how many",
                  (long long)tr->steps);
    return tr;
}

static void feed(void *user, int64_t first)
{
    vwn_model *v = user;
    hold_feed(v, v->trainer.program.fresh, v->batch, first, NULL, 0);
}

Status hold_gradient(vwn_model *v, const vwn_batch *batch, double *loss)
{
    Trainer *tr = trainer(v);
    int64_t B, T;
    tr->driver.feed = NULL;
    if (batch) {
        hold_measure_batch(v, batch, &B, &T);
        if (B != v->t->batch_seqs || T != v->t->context)
            ctx_raise(
                v->ctx, ST_USAGE,
                "a step of the file has %lld sequences of %lld positions (train.batch, train.context), and the batch "
                "has %lld of %lld",
                (long long)v->t->batch_seqs, (long long)v->t->context, (long long)B, (long long)T);
        v->batch = batch;
        tr->driver.feed = feed;
        tr->driver.user = v;
    }
    v->has_gradient = false; /* also where it fails half way */
    *loss = train_gradient(tr);
    v->has_gradient = true;
    v->loss = *loss;
    return ST_OK;
}

Status hold_backward(vwn_model *v, const vwn_batch *batch, const vwn_tensor *gradient, size_t n, bool add)
{
    Trainer *tr = trainer(v);
    Ctx *ctx = v->ctx;
    int64_t B, T;
    double vars[HV_COUNT];
    Name *name = NEW_ARRAY(ctx->scratch, Name, n + 1);
    Val *value = NEW_ARRAY(ctx->scratch, Val, n + 1);
    vwn_tensor *factor = NEW_ARRAY(ctx->scratch, vwn_tensor, n + 1);
    hold_measure_batch(v, batch, &B, &T);
    for (size_t i = 0; i < n; i++) {
        name[i] = hold_find(v, gradient[i].name, &value[i]);
        const Node *x = value[i] ? node_at(v->m->graph, value[i]) : NULL;
        if (!x)
            ctx_raise(ctx, ST_USAGE, "`%s` is the file's own: vwn_model_gradient differentiates it", name[i]);
        if (x->dtype != DT_REAL)
            ctx_raise(ctx, ST_USAGE, "`%s` is of integers, which have no gradient", name[i]);
        hold_check_gradient(v, &gradient[i], &x->shape, B, T);
        for (size_t k = 0; k < i; k++)
            if (name[k] == name[i])
                ctx_raise(ctx, ST_USAGE, "the gradient of `%s` is given twice", name[i]);
        factor[i] = gradient[i];
        factor[i].name = name_printf(ctx, "%s.grad", name[i]);
    }
    if (!n)
        ctx_raise(ctx, ST_USAGE, "no gradient is given");
    if (add && !v->has_gradient)
        ctx_raise(ctx, ST_USAGE, "there is no gradient to add to");
    const RunArgs args = hold_args(v, vars, true);
    HeldProgram *p = hold_program(v, add ? HELD_MORE_GRADIENT : HELD_GRADIENT, B, T, name, value, n);
    v->has_gradient = false;
    tr->feed.of = NULL;
    hold_feed(v, p->program, batch, 0, factor, n);
    session_run(v->session, p->program, &args);
    v->has_gradient = true;
    v->loss = NAN;
    return ST_OK;
}

Status hold_update(vwn_model *v, double loss, vwn_progress *progress)
{
    Trainer *tr = trainer(v);
    if (!v->has_gradient)
        ctx_raise(v->ctx, ST_USAGE, "there is no gradient to take a step by");
    v->has_gradient = false;
    train_update(tr, isnan(loss) ? v->loss : loss);
    *progress = (vwn_progress){.step = tr->now.step,
                               .steps = tr->steps,
                               .tokens = tr->now.tokens,
                               .loss = tr->now.train_loss,
                               .lr = tr->lr,
                               .grad_norm = tr->now.grad_norm};
    return ST_OK;
}

Status hold_batch(vwn_model *v, vwn_tensor out[3], size_t *n)
{
    static const char *const name[] = {"tokens", "labels", "document"};
    const Trainer *tr = trainer(v);
    const Split *split = &tr->data->train;
    const Train *t = v->t;
    char why[WHY];
    int64_t extent[] = {t->batch_seqs, t->context}, *number[3];
    memset(out, 0, 3 * sizeof *out);
    *n = 0;
    if (split->arrays)
        ctx_raise(v->ctx, ST_USAGE, "the data of the file is arrays: batches of texts alone are handed out");
    for (; *n < 3; ++*n) {
        hold_new(v, name[*n], DT_INT, 2, extent, &out[*n]);
        number[*n] = out[*n].data;
    }
    for (int64_t i = 0; i < t->batch_seqs; i++) {
        int64_t at = i * t->context;
        if (!split_read(split, split_window(split, t->seed, tr->now.sequences + i), number[0] + at, number[1] + at,
                        number[2] + at, why))
            ctx_raise(v->ctx, ST_ENVIRONMENT, "%s", why);
    }
    return ST_OK;
}

Status hold_save(vwn_model *v)
{
    if (!v->trains || !v->trainer.run)
        ctx_raise(v->ctx, ST_USAGE, "the model was opened without a run: there is no folder for a checkpoint");
    train_save(&v->trainer);
    return ST_OK;
}
