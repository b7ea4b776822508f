/* train_event.c - what a run says about itself.
 *
 * In:  the state of a run.   Out: a vwn_event for the caller and the same as a line of
 * events.jsonl.
 * The one idea: the text of an event is built in the Trainer's own memory, so that a step that
 * reports itself allocates nothing.
 */
#include <math.h>
#include <stdio.h>

#include "runtime/base/machine.h"
#include "trainer.h"

static const char *const kind_names[] = {
    [VWN_EVENT_START] = "start",   [VWN_EVENT_COMPILE] = "compile",       [VWN_EVENT_STEP] = "step",
    [VWN_EVENT_EVAL] = "eval",     [VWN_EVENT_CHECKPOINT] = "checkpoint", [VWN_EVENT_NOTE] = "note",
    [VWN_EVENT_END] = "end",       [VWN_EVENT_WARNING] = "warning",       [VWN_EVENT_GROWTH] = "growth",
    [VWN_EVENT_OUTPUT] = "output", [VWN_EVENT_BLOCK] = "block",           [VWN_EVENT_TENSOR] = "tensor",
};

static void put_losses(JsonText *t, const Program *p, const double *mean, const char *loss)
{
    for (size_t i = 0; p && i < program_results(p); i++) {
        const char *name = program_result_name(p, i);
        size_t n = program_result_size(p, i);
        result_put(t, strcmp(name, "loss") ? name : loss, mean, n);
        mean += n;
    }
}

static size_t losses_room(const Program *p)
{
    size_t room = 0;
    for (size_t i = 0; p && i < program_results(p); i++)
        room += 8 + strlen(program_result_name(p, i)) + 32 * program_result_size(p, i);
    return room;
}

void train_event_room(Trainer *tr)
{
    size_t fresh = tr->program.fresh ? losses_room(tr->program.fresh) : 0, eval = losses_room(tr->program.eval);
    const Ranks *r = tr->session.owner->ranks;
    size_t ranks = r ? (size_t)ranks_size(r) * SPENT_KINDS * 32 : 0;
    tr->report.json_room = 8192 + (fresh > eval ? fresh : eval) + ranks;
    tr->report.json = NEW_ARRAY(tr->session.arena, char, tr->report.json_room);
}

/* A list by rank of each. */
static void put_spent(JsonText *t, const Trainer *tr)
{
    static const char *const name[SPENT_KINDS] = {"computing", "waiting", "communicating", "sent", "rank_mem"};
    int size = tr->share ? ranks_size(tr->session.owner->ranks) : 0;
    for (SpentKind k = 0; size && k < SPENT_KINDS; k++) {
        json_open(t, name[k], '[');
        for (int i = 0; i < size; i++) {
            double x = tr->share->spent[i][k];
            if (k < SPENT_SENT)
                json_put_number(t, NULL, round(x * 1e6) / 1e6);
            else
                json_put_integer(t, NULL, (int64_t)x);
        }
        json_close(t, ']');
    }
}

/* The line without its newline; 0 when it does not fit. */
static size_t build_json(Trainer *tr, const vwn_event *e, const char *status)
{
    JsonText t;
    json_begin(&t, tr->report.json, tr->report.json_room - 1);
    json_open(&t, NULL, '{');
    json_put_integer(&t, "v", 1);
    json_put_string(&t, "event", kind_names[e->kind]);
    json_put_integer(&t, "step", e->step);
    json_put_integer(&t, "steps", e->steps);
    json_put_integer(&t, "tokens", e->tokens);
    if (e->kind == VWN_EVENT_START) {
        json_put_integer(&t, "weights", train_weights(tr));
        json_put_number(&t, "train_flops_per_token", 3 * model_flops_per_token(tr->model)); /* forward and backward */
    }
    if (e->kind == VWN_EVENT_STEP) {
        put_losses(&t, tr->program.fresh, tr->out.all, "loss");
        json_put_number(&t, "lr", e->lr);
        json_put_number(&t, "grad_norm", e->grad_norm);
        if (tr->now.loss_scale > 0) {
            json_put_number(&t, "loss_scale", tr->now.loss_scale);
            json_put_integer(&t, "skipped", tr->now.skipped);
        }
        json_put_number(&t, "tok_s", floor(e->tokens_per_second));
        json_put_integer(&t, "mem", (int64_t)tr->bytes);
        json_put_number(&t, "eta", round(e->eta_seconds));
        put_spent(&t, tr);
    }
    if (e->kind == VWN_EVENT_EVAL) {
        put_losses(&t, tr->program.eval, tr->out.eval_all, "eval_loss");
        if (tr->out.eval_bytes > 0)
            json_put_number(&t, "bits_per_byte",
                            tr->out.eval_all[result_of_tokens(tr->program.eval)] / log(2) / tr->out.eval_bytes);
    }
    if (e->kind == VWN_EVENT_END) {
        json_put_string(&t, "status", status);
        json_put_number(&t, "loss", e->loss);
        json_put_number(&t, "eval_loss", e->eval_loss);
        if (tr->now.eval_step >= 0)
            json_put_integer(&t, "eval_step", tr->now.eval_step);
    }
    if (tr->report.fields)
        tr->report.fields(&t, tr->report.fields_of);
    if (e->text)
        json_put_string(&t, "text", e->text);
    json_put_number(&t, "seconds", round(e->seconds * 1e3) / 1e3);
    json_close(&t, '}');
    return t.full ? 0 : t.n;
}

static vwn_event event_of(Trainer *tr, vwn_event_kind kind, const char *text)
{
    const Progress *p = &tr->now;
    double left = (double)(tr->stop_at - p->step) * (double)(tr->parts * tr->micro) * (double)tr->train->context;
    vwn_event e = {.kind = kind,
                   .step = p->step,
                   .steps = tr->steps,
                   .tokens = p->tokens,
                   .loss = p->train_loss,
                   .eval_loss = p->eval_loss,
                   .lr = tr->lr,
                   .grad_norm = p->grad_norm,
                   .tokens_per_second = tr->report.rate,
                   .seconds = tr->report.began > 0 ? clock_seconds() - tr->report.began : 0,
                   .text = text,
                   .json = tr->report.json};
    e.eta_seconds = tr->report.rate > 0 ? left / tr->report.rate : 0;
    return e;
}

/* False with `why` when the line could not be written. */
static bool publish(Trainer *tr, vwn_event *e, const char *status, char why[WHY])
{
    bool ok = true;
    size_t n = build_json(tr, e, status);
    if (n && tr->run && tr->run->events_fd >= 0) {
        tr->report.json[n] = '\n';
        ok = run_event(tr->run, tr->report.json, n + 1, why);
        tr->report.json[n] = 0;
    }
    if (!n)
        e->json = NULL;
    if (tr->how->event && train_writes(tr))
        tr->how->event(tr->how->user, e);
    return ok;
}

void train_event(Trainer *tr, vwn_event_kind kind, const char *fmt, ...)
{
    char why[WHY];
    const char *text = NULL;
    if (fmt) {
        va_list ap;
        va_start(ap, fmt);
        vsnprintf(tr->report.text, sizeof tr->report.text, fmt, ap);
        va_end(ap);
        text = tr->report.text;
    }
    if (kind == VWN_EVENT_START)
        tr->report.started = true;
    vwn_event e = event_of(tr, kind, text);
    bool ok = publish(tr, &e, NULL, why);
    if (tr->run && tr->run->events_fd < 0 && e.json)
        vec_push(tr->session.arena, &tr->report.early, arena_copy(tr->session.arena, e.json, strlen(e.json)));
    if (!ok)
        ctx_raise(tr->ctx, ST_ENVIRONMENT, "%s", why);
}

void train_row(Trainer *tr, vwn_event_kind kind, TrainFields *fields, const void *of, const char *text)
{
    tr->report.fields = fields;
    tr->report.fields_of = of;
    train_event(tr, kind, "%s", text);
    tr->report.fields = NULL;
}

void train_flush_early(Trainer *tr)
{
    char why[WHY];
    for (size_t i = 0; i < tr->report.early.n; i++) {
        size_t n = strlen(tr->report.early.v[i]);
        memcpy(tr->report.json, tr->report.early.v[i], n);
        tr->report.json[n] = '\n';
        if (!run_event(tr->run, tr->report.json, n + 1, why))
            ctx_raise(tr->ctx, ST_ENVIRONMENT, "%s", why);
    }
    tr->report.early.n = 0;
}

void train_end_event(Trainer *tr, Status status)
{
    char why[WHY];
    const Progress *p = &tr->now;
    const char *name = status == ST_OK            ? "ok"
                       : status == ST_INTERRUPTED ? "interrupted"
                       : status == ST_DIVERGED    ? "diverged"
                                                  : "failed";
    int n = snprintf(tr->report.text, sizeof tr->report.text, "%s at step %lld of %lld",
                     tr->how->dry_run && status == ST_OK       ? "dry run: ready"
                     : status == ST_OK && p->step == tr->steps ? "trained"
                     : status == ST_OK                         ? "stopped"
                                                               : name,
                     (long long)p->step, (long long)tr->steps);
    if (!isnan(p->train_loss))
        n += snprintf(tr->report.text + n, sizeof tr->report.text - (size_t)n, ", loss %.4f", p->train_loss);
    if (!isnan(p->eval_loss))
        n += snprintf(tr->report.text + n, sizeof tr->report.text - (size_t)n, ", eval loss %.4f", p->eval_loss);
    if (!isnan(p->eval_loss) && p->eval_step >= 0 && p->eval_step != p->step)
        n += snprintf(tr->report.text + n, sizeof tr->report.text - (size_t)n, " (of step %lld)",
                      (long long)p->eval_step);
    if (tr->run && tr->saved_at >= 0)
        snprintf(tr->report.text + n, sizeof tr->report.text - (size_t)n, ", checkpoint %.300s/step_%08lld.safetensors",
                 tr->run->ckpt, (long long)tr->saved_at);
    vwn_event e = event_of(tr, VWN_EVENT_END, tr->report.text);
    publish(tr, &e, name, why); /* the run is over, and its checkpoint is safe */
}
