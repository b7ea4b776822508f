/* images.c - models of images: the examples, made small, learn from .npy files.
 *
 * In:  examples/27_vit.vwn and 29_dit.vwn, plain and with hyper-connections; images of stripes.
 * Out: `N passed, N failed`. A classifier finds the direction of the stripes in images it has
 * not seen, noise is predicted better than by zero; a killed run ends with the bytes of one
 * that was not, and so does one with another number of threads; `eval` repeats what training
 * measured, also where the examples fill no batch; what works on texts is refused.
 * When: released, optimised.
 */
#include <math.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/base/json.h"
#include "support/arrays.h"
#include "support/drawn.h"
#include "support.h"

enum { EXAMPLES = 600, HELD_OUT = 60, MOST_SET = 20 };
#define VIT   VWN_SOURCE_DIR "/examples/27_vit.vwn"
#define DIT   VWN_SOURCE_DIR "/examples/29_dit.vwn"
#define HYPER "conn=hyper(n = 2, dynamic = true)"

static const char *folder;

typedef struct Log {
    double first, last, eval, accuracy; /* losses: of the first steps, of the last ones */
    int64_t kill_at, steps;
    char start[300];
} Log;

static double number(const Json *j, const char *key)
{
    const Json *x = j ? json_get(j, key) : NULL;
    return x && x->kind == JSON_NUMBER ? x->number : NAN;
}

/* A number of a line of JSON. */
static double of_line(const char *line, const char *key)
{
    Ctx *ctx = ctx_new(NULL);
    JsonError e;
    double x = number(json_read(ctx->program, line, strlen(line), &e), key);
    ctx_free(ctx);
    return x;
}

static void on_event(void *user, const vwn_event *e)
{
    Log *l = user;
    if (e->kind == VWN_EVENT_START)
        snprintf(l->start, sizeof l->start, "%s", e->text);
    if (e->kind == VWN_EVENT_STEP) {
        l->steps++;
        l->first += e->step <= 10 ? e->loss / 10 : 0;
        l->last += e->step > e->steps - 10 ? e->loss / 10 : 0;
    }
    if (e->kind == VWN_EVENT_EVAL) {
        l->eval = e->eval_loss;
        l->accuracy = of_line(e->json, "metric.accuracy");
    }
    if (e->kind == VWN_EVENT_STEP && l->kill_at && e->step == l->kill_at)
        kill(getpid(), SIGKILL);
}

typedef struct Case {
    const char *file, *run;
    const char *set[MOST_SET]; /* NULL at the end */
    int threads;
    bool resume;
    int64_t kill_at;
} Case;

/* Small enough for a second of training. */
static Case small(const char *file, const char *run, const char *more)
{
    static char data[400], into[8][400];
    static int k;
    k = (k + 1) % 8;
    snprintf(into[k], sizeof into[k], "%s/%s", folder, run);
    snprintf(data, sizeof data, "train.data=arrays(image = \"%s/images.npy\", labels = \"%s/labels.npy\", val = 10%%)",
             folder, folder);
    bool dit = !strcmp(file, DIT);
    Case c = {.file = file, .run = into[k], .threads = 2};
    const char *set[] = {"D=32",
                         "L=1",
                         "H=2",
                         "S=8",
                         "P=2",
                         "C=1",
                         "K=2",
                         data,
                         "train.batch=32 images",
                         "train.micro_batch=32 images",
                         "train.length=960 images", /* 30 steps */
                         "train.precision=fp32",
                         "train.checkpoint.every=25 steps",
                         "train.eval.every=100 steps",
                         dit ? "train.optimizer.lr=3e-3" : "train.optimizer.lr=2e-3",
                         dit ? "embed.noised.scale=2 / 255" : "train.eval.data=none",
                         dit ? "embed.noised.shift=-1" : more,
                         dit ? "head.noise.variance=fixed" : NULL,
                         dit ? more : NULL};
    memcpy(c.set, set, sizeof set);
    return c;
}

/* Instead of the value that small() gave it. */
static void set_length(Case *c, const char *length)
{
    for (size_t i = 0; c->set[i]; i++)
        if (!strncmp(c->set[i], "train.length", 12))
            c->set[i] = length;
}

static vwn_status open_case(const Case *c, vwn_context *ctx, vwn_unit **unit)
{
    size_t n = 0;
    while (c->set[n])
        n++;
    vwn_file_options file = {.path = c->file, .set = c->set, .n_set = n};
    return vwn_check(ctx, &file, unit);
}

static void to_stderr(void *user, const char *text, size_t n)
{
    (void)user;
    fwrite(text, 1, n, stderr);
}

static vwn_status go(const Case *c, Log *log)
{
    *log = (Log){.kill_at = c->kill_at};
    vwn_context *ctx = vwn_open(&(vwn_options){.threads = c->threads});
    vwn_unit *unit;
    vwn_status st = open_case(c, ctx, &unit);
    vwn_train_options how = {.run = c->run, .resume = c->resume, .event = on_event, .user = log};
    if (st == VWN_OK)
        st = vwn_train(unit, &how);
    if (st != VWN_OK) {
        size_t warnings;
        fprintf(stderr, "%s\n", vwn_message(ctx));
        vwn_diagnostics(ctx, &(vwn_writer){to_stderr, NULL}, false, false, &warnings);
    }
    vwn_close(ctx);
    return st;
}

/* ---- trained models ---- */

/* The numbers of the last evaluation of training, from the checkpoint alone; no text is asked
 * of a model of images. */
static void evaluated(Tally *t, const Case *c, const Log *log)
{
    Text out = {.n = 0};
    vwn_context *ctx = vwn_open(&(vwn_options){.threads = 1});
    vwn_eval_options how = {.source = c->run, .json = true};
    CHECKF(t, vwn_eval(ctx, &how, &(vwn_writer){text_take, &out}) == VWN_OK, "%s", vwn_message(ctx));
    CHECKF(t, of_line(out.s, "loss") == log->eval, "%s", out.s);
    CHECK(t, isnan(of_line(out.s, "perplexity")));
    if (!isnan(log->accuracy))
        CHECKF(t, of_line(out.s, "metric.accuracy") == log->accuracy, "%s", out.s);
    how.data = "text.txt";
    CHECK(t, vwn_eval(ctx, &how, &(vwn_writer){text_take, &out}) == VWN_USAGE);
    vwn_sample_options sample = {.source = c->run, .tokens = 3, .top_p = 1};
    CHECK(t, vwn_sample(ctx, &sample, &(vwn_writer){text_take, &out}) == VWN_INPUT);
    CHECKF(t, strstr(vwn_message(ctx), "continues texts") && strstr(vwn_message(ctx), "`image`"), "%s",
           vwn_message(ctx));
    vwn_close(ctx);
}

/* ---- learning: with hyper-connections; plain, too, where all is looked at ---- */

static const char *const conn[] = {NULL, HYPER};

static void classifiers(Tally *t)
{
    for (int k = !test_whole(); k < 2; k++) {
        Log log;
        Case c = small(VIT, k ? "vit_hyper" : "vit", conn[k]);
        set_length(&c, "train.length=8 epochs");
        CHECK(t, go(&c, &log) == VWN_OK);
        CHECKF(t, strstr(log.start, "32 examples from 540"), "%s", log.start);
        CHECKF(t, log.steps == 135, "%lld steps", (long long)log.steps);
        CHECKF(t, log.accuracy > 0.9 && log.eval < 0.3, "%s: accuracy %g, loss %g", c.run, log.accuracy, log.eval);
        evaluated(t, &c, &log);
        double right = log.accuracy * HELD_OUT; /* a share of all that are held out */
        CHECKF(t, fabs(right - round(right)) < 1e-4, "%.6f right of %d", right, HELD_OUT);
    }
}

static void denoisers(Tally *t)
{
    for (int k = !test_whole(); k < 2; k++) {
        Log log;
        Case c = small(DIT, k ? "dit_hyper" : "dit", conn[k]);
        set_length(&c, "train.length=150 steps");
        CHECK(t, go(&c, &log) == VWN_OK);
        CHECKF(t, log.last < 0.8 * log.first && isfinite(log.eval), "%s: %g, then %g", c.run, log.first, log.last);
        if (k == 1)
            evaluated(t, &c, &log);
    }
}

/* ---- the same run ---- */

static bool same_end(const Case *a, const Case *b, int step)
{
    char x[500], y[500];
    snprintf(x, sizeof x, "%s/ckpt/step_%08d.safetensors", a->run, step);
    snprintf(y, sizeof y, "%s/ckpt/step_%08d.safetensors", b->run, step);
    Ctx *ctx = ctx_new(NULL);
    size_t n = 0, m = 1;
    char *p = read_file(ctx, x, &n), *q = read_file(ctx, y, &m);
    bool same = p && q && n == m && !memcmp(p, q, n);
    ctx_free(ctx);
    return same;
}

/* Killed between two checkpoints, in a process of its own. */
static void killed_and_resumed(Tally *t, const char *file)
{
    enum { STEPS = 30 };
    Log log;
    int status;
    Case whole = small(file, "whole", HYPER), dead = small(file, "dead", HYPER);
    Case alone = small(file, "alone", HYPER);
    alone.threads = 1;
    CHECK(t, go(&whole, &log) == VWN_OK && log.steps == STEPS);
    CHECK(t, go(&alone, &log) == VWN_OK && same_end(&whole, &alone, STEPS));
    dead.kill_at = 28;
    pid_t child = fork();
    if (child == 0)
        _exit(go(&dead, &log) == VWN_OK ? 0 : 1);
    waitpid(child, &status, 0);
    CHECKF(t, WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL, "status %d", status);
    CHECK(t, !same_end(&whole, &dead, STEPS));
    dead.kill_at = 0;
    dead.resume = true;
    CHECK(t, go(&dead, &log) == VWN_OK && log.steps == STEPS - 25);
    CHECK(t, same_end(&whole, &dead, STEPS));
    char command[900];
    snprintf(command, sizeof command, "rm -rf '%s' '%s' '%s'", whole.run, alone.run, dead.run);
    CHECK(t, system(command) == 0);
}

/* ---- without data ---- */

/* `bench` draws images where there are none, `cost` needs none, `emit` refuses. */
static void without_data(Tally *t, const char *file)
{
    Text out = {.n = 0};
    Case c = small(file, "none", HYPER);
    for (size_t i = 0; c.set[i]; i++)
        if (!strncmp(c.set[i], "train.data", 10))
            c.set[i] = "train.data=arrays(image = \"none.npy\", labels = \"none.npy\", val = 10%)";
    vwn_context *ctx = vwn_open(&(vwn_options){.threads = 2});
    vwn_unit *unit;
    CHECK(t, open_case(&c, ctx, &unit) == VWN_OK);
    vwn_writer to = {text_take, &out};
    CHECKF(t, vwn_bench(unit, &(vwn_bench_options){.steps = 2}, &to) == VWN_OK, "%s", vwn_message(ctx));
    CHECK(t, strstr(out.s, "random data"));
    CHECK(t, vwn_write_report(unit, VWN_REPORT_COST, &(vwn_report_options){0}, &to) == VWN_OK);
    CHECK(t, vwn_emit(unit, &(vwn_emit_options){.folder = "none"}, &to) == VWN_INPUT);
    CHECKF(t, strstr(vwn_message(ctx), "reads text"), "%s", vwn_message(ctx));
    CHECK(t, vwn_train(unit, &(vwn_train_options){.run = c.run}) == VWN_ENVIRONMENT);
    CHECKF(t, strstr(vwn_message(ctx), "none.npy: No such file"), "%s", vwn_message(ctx));
    CHECK(t, !file_exists(c.run) && !file_exists("none"));
    vwn_close(ctx);
}

/* ---- labels ---- */

/* Of two classes the labels are 0 and 1; none is negative. A run that has another one does not begin, and says where that is. */
static void labels_in(Tally *t, const char *file, int64_t wrong)
{
    enum { AT = 77 };
    static int64_t label[EXAMPLES];
    char path[400], header[200], data[900], want[200];
    Case c = small(file, "labels", HYPER);
    for (int i = 0; i < EXAMPLES; i++)
        label[i] = i == AT ? wrong : i % 5 ? i % 2 : -1;
    snprintf(path, sizeof path, "%s/other.npy", folder);
    snprintf(header, sizeof header, "{'descr': '<i8', 'fortran_order': False, 'shape': (%d,), }", EXAMPLES);
    npy_write(path, 1, header, label, sizeof label);
    snprintf(data, sizeof data, "train.data=arrays(image = \"%s/images.npy\", labels = \"%s\", val = 10%%)", folder,
             path);
    for (size_t i = 0; c.set[i]; i++)
        if (!strncmp(c.set[i], "train.data", 10))
            c.set[i] = data;
    vwn_context *ctx = vwn_open(&(vwn_options){.threads = 2, .reference = true});
    vwn_unit *unit;
    CHECK(t, open_case(&c, ctx, &unit) == VWN_OK);
    vwn_status st = vwn_train(unit, &(vwn_train_options){.run = c.run, .overwrite = true, .until_steps = 1});
    snprintf(want, sizeof want, "row %d: `labels` is %lld, and the model knows 0 to 1; negative ones are left out", AT,
             (long long)wrong);
    CHECKF(t, wrong < 2 ? st == VWN_OK : st == VWN_ENVIRONMENT && strstr(vwn_message(ctx), want),
           "a label of %lld in %s: status %d, %s", (long long)wrong, file, st, vwn_message(ctx));
    CHECK(t, wrong < 2 || !file_exists(c.run));
    vwn_close(ctx);
}

int main(void)
{
    Tally t = {0};
    Ctx *ctx = ctx_new(NULL);
    folder = scratch_folder(ctx);
    char full[300];
    if (!realpath(folder, full))
        return 2;
    const char *scratch = folder;
    folder = full;
    stripes_write(folder, EXAMPLES);
    if (!SANITIZED || test_whole()) { /* hundreds of steps, which the others take, too */
        classifiers(&t);
        denoisers(&t);
    }
    killed_and_resumed(&t, VIT);
    if (!SANITIZED || test_whole())
        killed_and_resumed(&t, DIT);
    labels_in(&t, DIT, INT64_MAX);
    for (int64_t wrong = 2; wrong >= (SANITIZED ? 2 : 1); wrong--) {
        labels_in(&t, DIT, wrong);
        labels_in(&t, VIT, wrong);
    }
    without_data(&t, VIT);
    without_data(&t, DIT);
    scratch_remove(scratch);
    ctx_free(ctx);
    return tally_end(&t, "images");
}
