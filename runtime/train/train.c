/* train.c - the training loop.
 *
 * In:  a checked file.   Out: a run directory; events while it runs; a status.
 * The one idea: a step is a pure function of the state that a checkpoint holds, and what would
 * not be one (an interrupt, the clock) only decides when to stop. So a run that was stopped
 * anywhere and resumed gives the same bits as one that was not.
 */
#include <math.h>
#include <stdio.h>

#include "runtime/base/machine.h"
#include "jump.h"
#include "trainer.h"
#include "train.h"

/* ---- stopping ---- */

/* A run-time number of the model that is none in this step; NULL: all are fine. */
static const char *bad_scalar(Trainer *tr)
{
    const Graph *g = tr->model->graph;
    for (size_t i = 1; i < g->node.n; i++) {
        const Node *n = &g->node.v[i];
        const HostExpr *e = n->op == OP_HOST ? g->host.v[n->a.i] : NULL;
        double x = e ? host_eval(e, tr->vars) : 0;
        if (isfinite(x))
            continue;
        Buf b = buf_new(tr->session.arena);
        buf_puts(&b, "the run-time number `");
        host_print(&b, e);
        buf_puts(&b, "` is ");
        host_print_number(&b, x);
        return b.s;
    }
    return NULL;
}

static const char *last_checkpoint(const Trainer *tr)
{
    return tr->saved_at >= 0
               ? arena_printf(tr->session.arena, "; the last checkpoint is step_%08lld", (long long)tr->saved_at)
               : "";
}

/* A NaN or an infinity: the module where it begins, from a replay of each micro-batch. The
 * weights are still those before the step. */
static _Noreturn void stop_not_finite(Trainer *tr, const char *what, double value)
{
    Name path = NULL;
    Span span;
    bool found = false;
    train_set_vars(tr, 0);
    for (int64_t k = 0; k < tr->parts && !found && !tr->driver.driven; k++) {
        RunArgs args = {tr->vars, tr->train->seed, (uint64_t)tr->now.step, (uint64_t)(k * tr->micro)};
        feed_train(&tr->feed, &tr->data->train, tr->train->seed, tr->now.sequences + k * tr->micro);
        found = program_first_bad(tr->program.fresh, &args, &path, &span);
    }
    const char *kept = last_checkpoint(tr);
    const char *scalar = bad_scalar(tr);
    if (scalar)
        ctx_raise(tr->ctx, ST_DIVERGED, "step %lld: %s is %s because %s; the weights were not changed by this step%s",
                  (long long)tr->now.step + 1, what, isnan(value) ? "not a number" : "infinite", scalar, kept);
    if (found)
        ctx_raise(tr->ctx, ST_DIVERGED,
                  "step %lld: %s is %s; the first value that is not a number is "
                  "in `%s`; the weights were not changed by this step%s",
                  (long long)tr->now.step + 1, what, isnan(value) ? "not a number" : "infinite",
                  path && *path ? path : "the model", kept);
    if (tr->driver.driven) /* what it was computed from is the caller's */
        ctx_raise(tr->ctx, ST_DIVERGED, "step %lld: %s is %s; the weights were not changed by this step%s",
                  (long long)tr->now.step + 1, what, isnan(value) ? "not a number" : "infinite", kept);
    ctx_raise(tr->ctx, ST_DIVERGED,
              "step %lld: %s is %s; in float64 every value of the step is finite, "
              "so a value left the range of float32; the weights were not changed by this step%s",
              (long long)tr->now.step + 1, what, isnan(value) ? "not a number" : "infinite", kept);
}

static _Noreturn void stop_jump(Trainer *tr, double loss)
{
    ctx_raise(tr->ctx, ST_DIVERGED,
              "step %lld: the loss jumped to %.4f from a median of %.4f over "
              "the last %d steps; the weights were not changed by this step",
              (long long)tr->now.step + 1, loss, jump_median(&tr->now), RECENT);
}

/* What an update that decides by itself has to know of the losses before its step. */
static void report_known(Trainer *tr)
{
    double known[3];
    jump_known(&tr->now, tr->queue.ahead, known);
    if (!memcmp(known, tr->queue.is_known, sizeof known))
        return;
    session_store_ok(&tr->session, store_put_f64(tr->session.store, tr->queue.known, 0, 3, known));
    memcpy(tr->queue.is_known, known, sizeof known);
}

/* ---- one step ---- */

/* Micro-batches of a step that are computed here, and the first of them. */
static int64_t parts_here(const Trainer *tr) { return tr->parts / tr->lanes.all * tr->lanes.here; }
static int64_t first_part(const Trainer *tr) { return tr->parts / tr->lanes.all * tr->lanes.first; }

/* The step that is queued next. */
static int64_t next_step(const Trainer *tr) { return tr->now.step + tr->queue.ahead; }

/* Micro-batch k of it; of the one behind it, too, which begins behind the last. */
static void feed_part(Trainer *tr, int64_t k)
{
    if (tr->driver.feed) {
        tr->driver.feed(tr->driver.user, k * tr->micro);
        tr->feed.of = NULL;
        return;
    }
    feed_train(&tr->feed, &tr->data->train, tr->train->seed,
               tr->now.sequences + tr->queue.ahead * tr->train->batch_seqs + k * tr->micro);
}

/* What comes next goes up while a device that queues its calls computes. */
static void feed_ahead(Trainer *tr, int64_t k)
{
    const Backend *b = tr->session.backend;
    if (b && b->queues && (k < tr->parts || next_step(tr) + 1 < tr->stop_at))
        feed_part(tr, k);
}

static void begin_count(void *user)
{
    Trainer *tr = user;
    count_begin(&tr->session);
}

static void run_part(void *user, LoopProgram which, int64_t k)
{
    Trainer *tr = user;
    Program *p = which == LOOP_COUNT ? tr->program.count : which == LOOP_FRESH ? tr->program.fresh : tr->program.more;
    RunArgs args = {tr->vars, tr->train->seed, (uint64_t)next_step(tr), (uint64_t)(k * tr->micro)};
    feed_part(tr, k);
    session_run(&tr->session, p, &args);
    if (which == LOOP_COUNT)
        return;
    readback_post(tr->queue.step[next_step(tr) % STEPS_QUEUED].readback, p);
    if (k + 1 < first_part(tr) + parts_here(tr))
        feed_ahead(tr, k + 1);
}

static void keep_lane(void *user, int level)
{
    Trainer *tr = user;
    session_run(&tr->session, tr->program.keep[level], NULL);
}

static void join_lane(void *user, int level)
{
    Trainer *tr = user;
    session_run(&tr->session, tr->program.join[level], NULL);
}

/* The results of all micro-batches, lane by lane, and then their sums over the lanes, into tr->out.all; returns the loss. */
static double read_losses(Trainer *tr, Readback *readback)
{
    size_t n = results_size(tr->program.fresh), each = (size_t)(tr->parts / tr->lanes.all);
    for (size_t l = 0; l < (size_t)tr->lanes.here; l++) {
        double *lane = tr->out.all + ((size_t)tr->lanes.first + l) * n;
        for (size_t i = 0; i < n; i++)
            lane[i] = 0;
        for (size_t k = 0; k < each; k++) {
            readback_read(readback, (l * each + k) * n, n, tr->out.part);
            for (size_t i = 0; i < n; i++)
                lane[i] += tr->out.part[i];
        }
    }
    train_gather_lanes(tr, tr->out.all, n);
    lanes_add(tr->out.all, tr->lanes.all, n);
    return tr->out.all[tr->out.loss];
}

/* A loss that ends the run: its update has not changed the weights, or is not made. */
static void check_loss(Trainer *tr, double loss, StepHalt halt)
{
    if (halt == HALT_LOSS)
        stop_not_finite(tr, "the loss", loss);
    if (halt == HALT_JUMP)
        stop_jump(tr, loss);
}

/* The gradient of the step behind those that are queued. Where the update does not decide whether the run goes on, the
 * host does, which waits for the loss. */
static QueuedStep *queue_gradient(Trainer *tr)
{
    QueuedStep *q = &tr->queue.step[next_step(tr) % STEPS_QUEUED];
    train_set_vars(tr, tr->queue.ahead);
    q->lr = train_rate(tr, next_step(tr));
    readback_empty(q->readback);
    if (tr->queue.decides)
        report_known(tr);
    loop_gradient(&(LoopCalls){begin_count, run_part, keep_lane, join_lane}, tr, tr->parts, &tr->lanes,
                  tr->program.count);
    train_add_gradients(tr);
    if (!tr->queue.decides) {
        double loss = read_losses(tr, q->readback);
        check_loss(tr, loss, !isfinite(loss) ? HALT_LOSS : jump_is(&tr->now, loss) ? HALT_JUMP : HALT_NOT);
    }
    return q;
}

static void run_update(Trainer *tr)
{
    RunArgs args = {tr->vars, tr->train->seed, (uint64_t)next_step(tr), 0};
    train_add_squares(tr, &args);
    session_run(&tr->session, tr->program.update, &args);
    train_spread_weights(tr);
}

static void queue_step(Trainer *tr)
{
    const QueuedStep *q = queue_gradient(tr);
    run_update(tr);
    readback_post(q->readback, tr->program.update);
    if (!tr->program.count || tr->parts == 1)
        feed_ahead(tr, tr->parts + first_part(tr));
    tr->queue.ahead++;
}

/* What the update of the next step has given is there. */
static void end_step(Trainer *tr, double loss)
{
    Progress *p = &tr->now;
    double norm = tr->out.updated[tr->out.norm];
    StepEnd end = progress_norm(p, norm);
    if (end == STEP_BAD)
        stop_not_finite(tr, "the gradient's norm", norm);
    if (end == STEP_SKIPPED)
        train_event(tr, VWN_EVENT_NOTE,
                    "step %lld was skipped: its gradient left the range of %s; the loss is now "
                    "scaled by %.17g",
                    (long long)p->step + 1, half_word(tr->train->compute), p->loss_scale);
    progress_step(p, loss, tr->train->batch_seqs, tr->train->context);
}

/* The first of the steps that are queued: its numbers are waited for. */
static void settle_step(Trainer *tr)
{
    const Progress *p = &tr->now;
    const QueuedStep *q = &tr->queue.step[p->step % STEPS_QUEUED];
    size_t n = results_size(tr->program.fresh);
    /* where the host decides, it has read them before the update */
    double loss = tr->queue.decides ? read_losses(tr, q->readback) : tr->out.all[tr->out.loss];
    readback_read(q->readback, (size_t)parts_here(tr) * n, results_size(tr->program.update), tr->out.updated);
    tr->lr = q->lr;
    if (tr->queue.decides)
        check_loss(tr, loss, (StepHalt)tr->out.updated[tr->out.halt]);
    end_step(tr, loss);
    tr->queue.ahead--;
}

void train_step(Trainer *tr, bool more)
{
    if (!tr->queue.ahead)
        queue_step(tr);
    if (more)
        queue_step(tr);
    settle_step(tr);
}

/* ---- what happens between steps ---- */

static void report_step(Trainer *tr)
{
    double t = clock_seconds();
    int64_t steps = tr->now.step - tr->report.reported_at;
    double tokens = (double)steps * (double)tr->train->batch_seqs * (double)tr->train->context;
    if (t > tr->report.reported) { /* what happened within the last seconds weighs most */
        double passed = t - tr->report.reported, weight = tr->report.rate > 0 ? 1 - exp(-passed / 3) : 1;
        tr->report.rate += weight * (tokens / passed - tr->report.rate);
    }
    train_gather_spent(tr);
    train_event(tr, VWN_EVENT_STEP, NULL);
    tr->report.reported = t;
    tr->report.reported_at = tr->now.step;
}

/* The eval loss, of as much data as `as` says. */
static double held_out(Trainer *tr, const Train *as)
{
    const EvalShare share = {tr->lanes, train_gather_lanes, tr};
    train_set_vars(tr, 0);
    train_swap_averages(tr, true);
    int64_t windows = evaluate(&tr->feed, tr->program.eval, tr->program.eval_count, tr->eval_split, as->eval_batches,
                               as->batch_seqs, &share, tr->vars, tr->out.eval_part, tr->out.eval_all);
    train_swap_averages(tr, false);
    tr->out.eval_bytes = split_bytes_per_token(&tr->session, tr->eval_split, tr->data->tokenizer, windows);
    return tr->out.eval_all[tr->out.eval_loss];
}

static void run_eval(Trainer *tr)
{
    Progress *p = &tr->now;
    double before = clock_seconds();
    progress_evaluated(p, held_out(tr, tr->train));
    tr->evaluated_at = p->step;
    train_event(tr, VWN_EVENT_EVAL, NULL);
    tr->report.reported += clock_seconds() - before; /* the rate is that of training */
}

/* What a checkpoint would hold is not there, or could not be written. */
static void check_state(Trainer *tr, Status st, const char *why)
{
    if (st == ST_DIVERGED)
        ctx_raise(tr->ctx, st, "step %lld: its update has left the range of the numbers: %s%s", (long long)tr->now.step,
                  why, last_checkpoint(tr));
    if (st != ST_OK)
        ctx_raise(tr->ctx, st, "%s", why);
}

static void save(Trainer *tr)
{
    char why[WHY];
    Session *s = &tr->session;
    if (tr->saved_at == tr->now.step)
        return;
    if (!train_writes(tr)) {
        check_state(tr, checkpoint_give(s, tr->model, why), why);
        tr->saved_at = tr->now.step;
        return;
    }
    double before = clock_seconds();
    ArenaMark mark = arena_mark(s->arena);
    const char *name = run_checkpoint_name(s->arena, tr->now.step);
    run_sync_files(s, tr->run);
    check_state(tr, checkpoint_write(s, tr->model, &tr->meta, &tr->now, tr->run->ckpt, name, why), why);
    tr->saved_at = tr->now.step;
    train_event(tr, VWN_EVENT_CHECKPOINT, "%s/%s", tr->run->ckpt, name);
    arena_reset(s->arena, mark);
    run_prune(s, tr->run, tr->train->checkpoint_keep > 0 ? tr->train->checkpoint_keep : 1);
    tr->report.reported += clock_seconds() - before;
}

/* Where the run stops. One that keeps no checkpoint (`keep = 0`) has none behind its last step: what was written on the way goes
 * when the events are on the disk. */
static void save_stop(Trainer *tr)
{
    if (tr->train->checkpoint_keep || tr->now.step < tr->steps) {
        save(tr);
        return;
    }
    char why[WHY];
    check_state(tr, checkpoint_look(&tr->session, tr->model, why), why);
    if (!train_writes(tr))
        return;
    run_sync_files(&tr->session, tr->run);
    run_sync_events(&tr->session, tr->run);
    run_prune(&tr->session, tr->run, 0);
}

static void between_steps(Trainer *tr)
{
    const Train *t = tr->train;
    int64_t step = tr->now.step;
    bool last = step == tr->steps, stop = step == tr->stop_at;
    if (loop_due(step, t->log_every > 0 ? t->log_every : 1) || last || stop)
        report_step(tr);
    if (tr->program.eval && tr->evaluated_at != step && (loop_due(step, t->eval_every) || last))
        run_eval(tr);
    train_plateau(tr);
    if (loop_due(step, t->checkpoint_every) && !last)
        save(tr);
}

/* Nothing of what happens after the next step asks for its numbers, or for the weights as it leaves them. */
bool train_may_follow(Trainer *tr)
{
    const Train *t = tr->train;
    const Plateau *window = tr->unit->grow.n ? tr->unit->grow.v[0].plateau : NULL;
    int64_t step = tr->now.step + 1;
    if (!tr->queue.decides || step >= tr->stop_at || loop_due(step, t->checkpoint_every) ||
        (tr->program.eval && loop_due(step, t->eval_every)))
        return false;
    train_set_vars(tr, 1);
    if (window && (double)(tr->now.plateau.steps + 1) >= host_eval(window->window, tr->vars))
        return false;
    return !train_growth_due(tr, 1);
}

/* A step of growth begins from a checkpoint of the model before it, with the loss that is to be the same after it. */
static bool growth_begins(Trainer *tr)
{
    if (!train_growth_due(tr, 0))
        return false;
    if (tr->program.eval && tr->now.eval_step != tr->now.step)
        run_eval(tr);
    tr->now.due = true;
    tr->saved_at = -1; /* with that loss, which may have been what the step waited for */
    save(tr);
    return true;
}

static bool same_text(const char *a, const char *b) { return a == b || (a && b && !strcmp(a, b)); }

static bool same_data(const DataSpec *a, const DataSpec *b)
{
    bool same = a->kind == b->kind && same_text(a->path, b->path) && same_text(a->val_path, b->val_path) &&
                a->val == b->val && a->separated == b->separated && a->n_array == b->n_array;
    for (size_t i = 0; same && i < a->n_array; i++)
        same = same_text(a->array[i].path, b->array[i].path);
    return same;
}

/* The eval loss of the grown model on what that of the model before was measured on; false: the step brings other data. */
static bool eval_alike(Trainer *tr, double *loss)
{
    const Train *was = tr->growth.was, *now = tr->train;
    bool same = same_data(&was->data, &now->data) && same_data(&was->eval_data, &now->eval_data);
    if (!same || was->context != now->context || was->eval_every <= 0)
        return false;
    bool as_much = was->eval_batches == now->eval_batches && was->batch_seqs == now->batch_seqs;
    *loss = as_much ? tr->now.eval_loss : held_out(tr, was);
    return true;
}

/* `vwn grow --apply`: the checkpoint alone, in a file of the user's. */
static void save_apart(Trainer *tr)
{
    char why[WHY];
    if (!train_writes(tr))
        return;
    const char *to = tr->by_hand.apply_to, *slash = strrchr(to, '/');
    const char *folder = !slash ? "." : slash == to ? "/" : arena_copy(tr->session.arena, to, (size_t)(slash - to));
    check_state(tr, checkpoint_write(&tr->session, tr->model, &tr->meta, &tr->now, folder, slash ? slash + 1 : to, why),
                why);
    train_event(tr, VWN_EVENT_CHECKPOINT, "%s", to);
}

/* The grown model is in the store: its checkpoint takes the place of the one before, which stays under another name. */
static void end_growth(Trainer *tr)
{
    const GrowthPlan *plan = tr->growth.plan;
    double before = tr->now.eval_step == tr->now.step ? tr->now.eval_loss : NAN;
    Buf b = buf_new(tr->session.arena);
    buf_printf(&b, "%s: ", plan->step->name);
    buf_count(&b, plan->taken);
    buf_puts(&b, " numbers stay, ");
    buf_count(&b, plan->added);
    buf_puts(&b, " are new");
    if (tr->program.eval) {
        run_eval(tr);
        double after;
        bool alike = eval_alike(tr, &after);
        if (alike && isnan(before)) /* not measured in this call */
            buf_printf(&b, "; eval loss %.6f", after);
        else if (alike)
            buf_printf(&b, "; eval loss %.6f, before %.6f, difference %.3g", after, before, after - before);
        else
            buf_printf(&b, "; eval loss %.6f, that before, %.6f, is of other data", tr->now.eval_loss, before);
    }
    if (tr->by_hand.apply_to) {
        save_apart(tr);
    } else {
        if (train_writes(tr))
            run_keep_checkpoint(&tr->session, tr->run, tr->now.step, plan->step->name);
        save(tr);
    }
    train_event(tr, VWN_EVENT_GROWTH, "%s", b.s);
}

static Status train_loop(Trainer *tr)
{
    train_begin(tr);
    if (tr->growth.plan)
        end_growth(tr);
    train_begin_spent(tr);
    while (!(tr->growth.due = growth_begins(tr)) && tr->now.step < tr->stop_at) {
        bool interrupted = train_interrupted(tr);
        if (interrupted && !tr->queue.ahead) {
            save(tr);
            return ST_INTERRUPTED;
        }
        train_step(tr, !interrupted && train_may_follow(tr));
        between_steps(tr);
    }
    if (!tr->growth.due)
        save_stop(tr);
    return ST_OK;
}

/* ---- steps that a caller drives ---- */

double train_gradient(Trainer *tr)
{
    queue_gradient(tr);
    return tr->out.all[tr->out.loss];
}

void train_update(Trainer *tr, double loss)
{
    train_set_vars(tr, 0);
    tr->lr = train_rate(tr, tr->now.step);
    run_update(tr);
    results_read(&tr->session, tr->program.update, tr->out.updated);
    end_step(tr, loss);
    if (tr->run && loop_due(tr->now.step, tr->train->log_every > 0 ? tr->train->log_every : 1))
        report_step(tr);
}

void train_save(Trainer *tr) { save(tr); }

void train_begin(Trainer *tr)
{
    tr->report.began = tr->report.reported = clock_seconds();
    tr->report.reported_at = tr->report.began_at = tr->now.step;
}

/* ---- the call ---- */

static Status train_body(void *user)
{
    Trainer *tr = user;
    train_open(tr);
    if (!tr->by_hand.step)
        return tr->how->dry_run || tr->over ? ST_OK : train_loop(tr);
    end_growth(tr);
    return ST_OK;
}

static Status open_body(void *user)
{
    Trainer *tr = user;
    session_open(&tr->session, tr->session.owner);
    return ST_OK;
}

/* A device that fails leaves what was written before. */
static void name_checkpoint(Trainer *tr)
{
    char *said = tr->ctx->message;
    size_t n = strlen(said), room = sizeof tr->ctx->message;
    if (!tr->session.backend || !tr->session.backend->kind->fails || tr->saved_at < 0 || !n)
        return;
    n = n < room - 64 ? n : room - 64;
    snprintf(said + n, room - n, "; `--resume` goes on from step %lld", (long long)tr->saved_at);
}

/* From one growth step to the next, or to the end of the run. *due: it goes on with the step that begins. */
static Status train_stage(Trainer *t, bool *due)
{
    t->report.began = 0;
    Status st = guarded(t->ctx, open_body, t);
    if (st == ST_OK)
        st = guarded(t->ctx, train_body, t);
    *due = st == ST_OK && t->growth.due;
    if (st == ST_ENVIRONMENT)
        name_checkpoint(t);
    if (t->report.started && !*due && !t->by_hand.step)
        train_end_event(t, st);
    return session_end(&t->session, st);
}

Status grow_apply(vwn_context *owner, Unit *unit, const vwn_grow_options *how, const Hooks *hooks)
{
    vwn_train_options quiet = {.run = how->source, .dry_run = true, .event = how->event, .user = how->user};
    Trainer t = {.ctx = owner->ctx,
                 .file = unit,
                 .how = &quiet,
                 .hooks = hooks,
                 .now = progress_none,
                 .saved_at = -1,
                 .evaluated_at = -1,
                 .session.owner = owner,
                 .by_hand = {.source = how->source, .step = how->step, .apply_to = how->apply_to}};
    bool due;
    return train_stage(&t, &due);
}

Status train_unit(vwn_context *owner, Unit *unit, const vwn_train_options *how, const Hooks *hooks)
{
    static const vwn_train_options plain = {0};
    vwn_train_options now = how ? *how : plain;
    bool due = false, begins = true;
    Status st;
    do {
        Trainer t = {.ctx = owner->ctx,
                     .file = unit,
                     .how = &now,
                     .hooks = hooks,
                     .growth.begins = begins,
                     .now = progress_none,
                     .saved_at = -1,
                     .evaluated_at = -1,
                     .session.owner = owner};
        st = train_stage(&t, &due);
        now.resume = true;
        now.overwrite = begins = false;
    } while (st == ST_OK && due);
    if (st == ST_INTERRUPTED)
        owner->interrupted = 0;
    return st;
}
