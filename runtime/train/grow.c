/* grow.c - a growth step of a trained model, planned or carried out beside its run.
 *
 * In:  a run or a checkpoint, the file, the name of a step.   Out: the plan, after every tensor of the checkpoint was
 * compared with the model before the step; or a checkpoint of the grown model, by the way that training goes.
 */
#include <stdio.h>

#include "compiler/file/check_unit.h"
#include "compiler/report/report.h"
#include "trainer.h"
#include "train.h"

const GrowStep *train_step_wanted(Trainer *tr, const Unit *unit)
{
    const char *path = tr->from->file.path, *then = tr->from->meta.grown;
    const GrowStep *next = unit->grow.n ? &unit->grow.v[0] : NULL;
    bool known = false;
    if (next && !strcmp(next->name, tr->by_hand.step)) {
        if (tr->by_hand.apply_to && next->refused)
            ctx_raise(tr->ctx, ST_INPUT,
                      "the growth step `%s` has %s, which this version of vwn reads and cannot carry out", next->name,
                      next->refused);
        return next;
    }
    for (size_t i = 0; i < tr->file->grow.n; i++)
        known |= !strcmp(tr->file->grow.v[i].name, tr->by_hand.step);
    if (!known && unit_has_growth(tr->file, tr->by_hand.step))
        ctx_raise(tr->ctx, ST_CHECK, "the growth step `%s` is not planned: a check before it is false",
                  tr->by_hand.step);
    if (!known)
        ctx_raise(tr->ctx, ST_INPUT, "%s has no growth step `%s`%s%s", tr->file->path, tr->by_hand.step,
                  next ? "; the next of this checkpoint is " : "", next ? next->name : "");
    if (!next)
        ctx_raise(tr->ctx, ST_INPUT, "%s has all growth steps of %s behind it", path, tr->file->path);
    ctx_raise(tr->ctx, ST_INPUT, "growth steps come in the order of the file: the next of %s is `%s`, not `%s`%s%s",
              path, next->name, tr->by_hand.step, *then ? "; behind it has, with the updates before each, " : "", then);
}

static const SafeTensor *tensor_of(const Checkpoint *c, const Param *p) { return safe_find(&c->file, p->path); }

/* Every tensor of both sides: the checkpoint is of the model before the step, or that is said with both. */
static void compare_sides(Trainer *tr, const GrowStep *step)
{
    const Checkpoint *c = tr->from;
    const Model *m = step->before;
    Arena *a = tr->session.arena;
    Map known;
    map_init(&known, a);
    for (size_t i = 0; i < m->param.n; i++) {
        const Param *p = &m->param.v[i];
        const SafeTensor *t = tensor_of(c, p);
        *map_at(&known, (uintptr_t)p->path) = (void *)(uintptr_t)p;
        bool same = t && t->rank == p->shape.rank;
        for (int k = 0; same && k < t->rank; k++)
            same = t->d[k] == p->shape.d[k].n;
        if (same)
            continue;
        StartEntry e = {.param = p, .tensor = t};
        char there[100], here[100];
        start_shapes(&e, there, here);
        ctx_raise(tr->ctx, ST_INPUT,
                  "%s is not of the model before the growth step `%s`: it has %s `%s`%s%s, which is %s there",
                  c->file.path, step->name, t ? "another shape of" : "no tensor", p->path, t ? ", " : "", there, here);
    }
    for (size_t i = 0; i < c->file.n; i++) {
        Name name = name_str(tr->ctx, c->file.tensor[i].name);
        if (!checkpoint_is_state(name) && !map_get(&known, (uintptr_t)name))
            ctx_raise(tr->ctx, ST_INPUT, "%s is not of the model before the growth step `%s`, which has no tensor `%s`",
                      c->file.path, step->name, name);
    }
}

typedef struct Planning {
    Trainer tr;
    const vwn_writer *out;
    bool json;
} Planning;

static Status plan_body(void *user)
{
    Planning *p = user;
    Trainer *tr = &p->tr;
    session_open(&tr->session, tr->session.owner);
    tr->from = source_checkpoint(&tr->session, tr->by_hand.source);
    size_t behind = train_steps_behind(tr);
    tr->unit = behind ? train_check_again(tr, tr->file->set, tr->file->n_set, behind) : tr->file;
    if (behind && !tr->unit)
        ctx_raise(tr->ctx, ST_INPUT, "the file has errors after its growth step `%s`: see `vwn check`",
                  tr->file->grow.v[behind - 1].name);
    const GrowStep *step = train_step_wanted(tr, tr->unit);
    compare_sides(tr, step);
    Buf b = buf_new(tr->session.arena);
    bool changes = report_growth_step(&b, step, tr->session.arena, p->json);
    if (!p->json)
        buf_printf(&b, "from %s: step %lld, all %zu tensors are those of the model before\n", tr->from->file.path,
                   (long long)tr->from->progress.step, step->before->param.n);
    write_text(p->out, b.s, b.n);
    return changes ? ST_CHANGES : ST_OK;
}

Status grow_unit(vwn_context *owner, Unit *unit, const vwn_grow_options *how, const vwn_writer *out, const Hooks *hooks)
{
    if (how->apply_to)
        return grow_apply(owner, unit, how, hooks);
    Planning p = {.tr = {.ctx = owner->ctx,
                         .file = unit,
                         .hooks = hooks,
                         .session.owner = owner,
                         .by_hand = {.source = how->source, .step = how->step}},
                  .out = out,
                  .json = how->json};
    Status st = guarded(owner->ctx, plan_body, &p);
    return session_end(&p.tr.session, st);
}
