/* runs.c - see child.h: training from files.
 *
 * The one idea: what a run does in the reference evaluator costs no compiler, so every file runs there, through its growth
 * steps too; and what must not matter (parts of a batch, who computes) is another run with the same numbers.
 */
#include "child.h"

#include "compiler/model/parts.h"

#include <math.h>
#include <stdio.h>

enum { RUN_STEPS = 3 };
typedef struct Run {
    double loss[RUN_STEPS + 1], lr[RUN_STEPS + 1], norm[RUN_STEPS + 1], eval[RUN_STEPS + 1];
    int steps, grown;
    char said[400]; /* that a measurement contradicts a proof */
    char refused[800];
} Run;

static void run_event(void *user, const vwn_event *e)
{
    Run *r = user;
    if (e->text && strstr(e->text, "bug of vwn"))
        snprintf(r->said, sizeof r->said, "%s", e->text);
    r->grown += e->kind == VWN_EVENT_GROWTH;
    if (e->step < 0 || e->step > RUN_STEPS)
        return;
    if (e->kind == VWN_EVENT_STEP) {
        r->loss[e->step] = e->loss;
        r->lr[e->step] = e->lr;
        r->norm[e->step] = e->grad_norm;
        r->steps++;
    } else if (e->kind == VWN_EVENT_EVAL) {
        r->eval[e->step] = e->eval_loss;
    }
}

static vwn_status train(Child *c, const char *text, const char *const *set, const char *device, int steps,
                        const char *folder, Run *r)
{
    vwn_context *v = child_context(c, device);
    vwn_unit *u;
    size_t n = 0, errors;
    while (set && set[n])
        n++;
    *r = (Run){0};
    vwn_status st = vwn_check(
        v, &(vwn_file_options){.path = "-", .text = text, .text_length = strlen(text), .set = set, .n_set = n}, &u);
    if (st == VWN_OK)
        st = vwn_train(u, &(vwn_train_options){
                              .run = folder, .overwrite = true, .until_steps = steps, .event = run_event, .user = r});
    const char *said = child_diagnostics(c, v, &errors);
    bool data =
        st == VWN_ENVIRONMENT && strstr(vwn_message(v), ".npy"); /* an edited file has other inputs than its data */
    if (st != VWN_OK && st != VWN_INPUT && st != VWN_DIVERGED && !data && !child_is_full(c, v, st))
        failed(c, "train: status %d: %.600s%.400s", (int)st, vwn_message(v), said);
    if (st != VWN_OK && !errors && !*vwn_message(v))
        failed(c, "train: status %d without a word", (int)st);
    if (r->said[0])
        failed(c, "train: %.400s", r->said);
    if (st != VWN_OK)
        snprintf(r->refused, sizeof r->refused, "%.300s %.400s", vwn_message(v),
                 strstr(said, "error") ? strstr(said, "error") : said);
    vwn_close(v);
    return st;
}

static bool near_to(double a, double b, double by) { return a == b || fabs(a - b) <= by * fmax(fabs(b), 1e-2); }

static bool trains(const Child *c) { return c->unit->unit->train != NULL; }

/* The whole file in the reference. */
void stage_run(Child *c)
{
    Run r;
    if (trains(c) && train(c, c->how->text, NULL, "reference", RUN_STEPS, "run_whole", &r) == VWN_OK)
        c->r->grown += r.grown;
}

/* A batch in parts is the batch: losses, the gradient's norm, what is held out. Losses that are the mean of the parts' own are
 * known as such, and then nothing is said. */
void stage_parts(Child *c)
{
    const Unit *u = c->unit->unit;
    if (!trains(c) || train_half(u->train))
        return;
    Parts *p = parts_of(u->model, c->text->program);
    for (size_t i = 0; i < u->model->loss.n; i++)
        if (u->model->loss.v[i].trained && !parts_exact(p, i))
            return;
    Run parts, whole;
    const char *batch = arena_printf(c->text->program, "train.micro_batch=%d seqs", (int)u->train->batch_seqs);
    const char *micro = arena_printf(c->text->program, "train.micro_batch=%d seqs",
                                     u->train->batch_seqs % 2 ? 1 : (int)u->train->batch_seqs / 2);
    vwn_status a = train(c, c->how->text, (const char *const[]){micro, NULL}, "reference", 1, "run_parts", &parts),
               b = train(c, c->how->text, (const char *const[]){batch, NULL}, "reference", 1, "run_one", &whole);
    if (a != b)
        failed(c, "ends with status %d in parts, with %d as a whole", (int)a, (int)b);
    for (int i = 0; i <= 1; i++)
        if (!near_to(parts.loss[i], whole.loss[i], 1e-6) || !near_to(parts.norm[i], whole.norm[i], 1e-5) ||
            !near_to(parts.eval[i], whole.eval[i], 1e-5))
            failed(c, "step %d in parts: loss %.9g, norm %.9g, held out %.9g; as a whole %.9g, %.9g, %.9g", i,
                   parts.loss[i], parts.norm[i], parts.eval[i], whole.loss[i], whole.norm[i], whole.eval[i]);
}

/* A run at a rate of 0 ends with the weights that it began with, which are those of the file. */
void stage_foreign(Child *c)
{
    const Unit *u = c->unit->unit;
    if (!trains(c) || u->train->start.kind != START_FILE)
        return;
    Run r;
    const char *at = strstr(c->how->text, "\ngrow ");
    const char *text = at ? arena_copy(c->text->program, c->how->text, (size_t)(at - c->how->text)) : c->how->text;
    const char *set[] = {"train.optimizer.lr=0", "train.optimizer.adamw.lr=0", NULL};
    if (!u->train->optimizer.second)
        set[1] = NULL;
    vwn_status st = train(c, text, set, "reference", 1, "run_foreign", &r);
    if (st == VWN_DIVERGED || st == VWN_ENVIRONMENT)
        return; /* numbers of order one in every weight; other data */
    if (st != VWN_OK)
        failed(c, "weights that its words allow are refused: %.700s", r.refused);
    const char *wrong = weights_wrong(c->text, u->model, text, "run_foreign/ckpt/step_00000001.safetensors");
    if (wrong)
        failed(c, "foreign weights: %s", wrong);
}

/* Compiled kernels against the reference. */
void stage_train(Child *c)
{
    if (!trains(c))
        return;
    Run got, want;
    vwn_status a = train(c, c->how->text, NULL, "cpu", RUN_STEPS, "run", &got),
               b = train(c, c->how->text, NULL, "reference", RUN_STEPS, "run_reference", &want);
    if (a != b || got.steps != want.steps)
        failed(c, "ends with status %d after %d steps, in the reference with %d after %d", (int)a, got.steps, (int)b,
               want.steps);
    const double by = train_half(c->unit->unit->train) ? 3e-2 : 2e-3;
    for (int i = 0; i <= RUN_STEPS; i++) {
        if (!near_to(got.lr[i], want.lr[i], 1e-4))
            failed(c, "step %d has the rate %g, in the reference %g", i, got.lr[i], want.lr[i]);
        if (!near_to(got.loss[i], want.loss[i], by) || !near_to(got.norm[i], want.norm[i], 10 * by) ||
            !near_to(got.eval[i], want.eval[i], by))
            failed(c, "step %d: loss %g, norm %g, held out %g; in the reference %g, %g, %g", i, got.loss[i],
                   got.norm[i], got.eval[i], want.loss[i], want.norm[i], want.eval[i]);
    }
}
