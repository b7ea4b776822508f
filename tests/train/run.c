/* run.c - training runs: resuming to the bit, kills, interrupts, full disks, divergence,
 * events.
 * When: quick, checked.
 */
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/base/json.h"
#include "runtime/checkpoint/run_dir.h"
#include "runtime/train/train.h"
#include "support.h"

enum { MOST = 600 };

/* What the events of one call said. */
typedef struct Log {
    vwn_context *v;
    double loss[MOST], norm[MOST], eval[MOST];
    int steps, evals, checkpoints, notes, warnings, starts, ends, compiles;
    int64_t interrupt_at, kill_at;
    const struct rlimit *limit; /* of files, once everything is compiled */
    size_t bytes_at_20, bytes_at_40;
    char note[2000], end[600];
} Log;

static void on_event(void *user, const vwn_event *e)
{
    Log *l = user;
    switch (e->kind) {
    case VWN_EVENT_START: l->starts++; break;
    case VWN_EVENT_COMPILE:
        l->compiles++;
        if (l->limit)
            setrlimit(RLIMIT_FSIZE, l->limit);
        break;
    case VWN_EVENT_STEP:
        l->steps++;
        if (e->step < MOST) {
            l->loss[e->step] = e->loss;
            l->norm[e->step] = e->grad_norm;
        }
        if (l->interrupt_at && e->step == l->interrupt_at)
            vwn_interrupt(l->v);
        if (l->kill_at && e->step == l->kill_at)
            kill(getpid(), SIGKILL);
        if (e->step == 22)
            l->bytes_at_20 = l->v->ctx->bytes;
        if (e->step == 29)
            l->bytes_at_40 = l->v->ctx->bytes;
        break;
    case VWN_EVENT_EVAL:
        l->evals++;
        if (e->step < MOST)
            l->eval[e->step] = e->eval_loss;
        break;
    case VWN_EVENT_CHECKPOINT: l->checkpoints++; break;
    case VWN_EVENT_WARNING:
        l->warnings++;
        /* fall through */
    case VWN_EVENT_GROWTH:
    case VWN_EVENT_OUTPUT:
    case VWN_EVENT_BLOCK:
    case VWN_EVENT_TENSOR:
    case VWN_EVENT_NOTE:
        l->notes++;
        snprintf(l->note + strlen(l->note), sizeof l->note - strlen(l->note), "%s\n", e->text);
        break;
    case VWN_EVENT_END:
        l->ends++;
        snprintf(l->end, sizeof l->end, "%s", e->text);
        break;
    }
}

typedef struct Case { /* a run to be made */
    bool reference;
    int threads;
    TinyOptions tiny;
    vwn_train_options how;
    void (*change)(Unit *u);
    int64_t interrupt_at, kill_at;
    const struct rlimit *limit;
} Case;

static Status go(const Case *c, Log *log, char message[512])
{
    *log = (Log){.interrupt_at = c->interrupt_at, .kill_at = c->kill_at, .limit = c->limit};
    vwn_context *v = tiny_context(c->reference, c->threads);
    log->v = v;
    Unit *u = tiny_unit(v->ctx, &c->tiny);
    if (c->change)
        c->change(u);
    vwn_train_options how = c->how;
    how.event = on_event;
    how.user = log;
    Status st = train_unit(v, u, &how, &tiny_hooks);
    bool filed = !v->ctx->message[0] && diag_count(v->ctx);
    snprintf(message, 512, "%s", filed ? diag_get(v->ctx, 0)->message : v->ctx->message);
    tiny_close(v);
    return st;
}

static const char *text_path, *base;
static char why[512];

static Case plain(bool reference, const char *run)
{
    return (Case){.reference = reference,
                  .threads = 2,
                  .how.run = run,
                  .tiny = {.vocab = 8,
                           .width = 8,
                           .context = 16,
                           .batch = 4,
                           .micro = 2,
                           .steps = 30,
                           .text = text_path,
                           .dropout = 0.1}};
}

static const char *in(const char *name)
{
    static char path[4][300];
    static int k;
    k = (k + 1) % 4;
    snprintf(path[k], sizeof path[k], "%s/%s", base, name);
    return path[k];
}

/* The bytes of a checkpoint from the first tensor on, and of its state of progress. */
static bool same_checkpoint(const char *a, const char *b, int64_t step)
{
    char x[400], y[400];
    snprintf(x, sizeof x, "%s/ckpt/step_%08lld.safetensors", a, (long long)step);
    snprintf(y, sizeof y, "%s/ckpt/step_%08lld.safetensors", b, (long long)step);
    Ctx *ctx = ctx_new(NULL);
    size_t n = 0, m = 1;
    char *p = read_file(ctx, x, &n), *q = read_file(ctx, y, &m);
    bool same = p && q && n == m && !memcmp(p, q, n);
    ctx_free(ctx);
    return same;
}

/* Step and eval lines: their steps in order without a gap; other fields may be about time. */
static bool events_whole(const char *run, int steps)
{
    Ctx *ctx = ctx_new(NULL);
    size_t n = 0;
    char path[400];
    snprintf(path, sizeof path, "%s/events.jsonl", run);
    char *text = read_file(ctx, path, &n);
    int64_t step = 0;
    bool ok = text != NULL;
    for (char *line = text; ok && line < text + n;) {
        char *end = memchr(line, '\n', (size_t)(text + n - line));
        JsonError e;
        Json *j = end ? json_read(ctx->program, line, (size_t)(end - line), &e) : NULL;
        const char *kind = j ? json_string(j, "event") : NULL;
        ok = kind != NULL;
        if (ok && !strcmp(kind, "step"))
            ok = json_get(j, "step")->integer == ++step && json_get(j, "loss.next");
        line = ok ? end + 1 : line;
    }
    ctx_free(ctx);
    return ok && step == steps;
}

static int checkpoints_in(const char *run)
{
    vwn_context *v = tiny_context(true, 1);
    Session s = {0};
    session_open(&s, v);
    StepList l = run_checkpoints(&s, run);
    int n = (int)l.n;
    session_close(&s);
    tiny_close(v);
    return n;
}

static bool meta_is(const char *run, int64_t step, const char *text)
{
    char path[400];
    snprintf(path, sizeof path, "%s/ckpt/step_%08lld.safetensors", run, (long long)step);
    Ctx *ctx = ctx_new(NULL);
    size_t n = 0;
    char *file = read_file(ctx, path, &n);
    bool found = file && n > 8 && strstr(file + 8, text);
    ctx_free(ctx);
    return found;
}

/* ---- the tests ---- */

static void learns(Tally *t, bool reference, Log *log)
{
    const char *run = in(reference ? "whole_ref" : "whole_cpu");
    Case c = plain(reference, run);
    Status st = go(&c, log, why);
    CHECKF(t, st == ST_OK, "%d: %s", st, why);
    CHECK(t, log->steps == 30 && log->evals == 3 && log->checkpoints == 3 && log->ends == 1);
    CHECK(t, log->starts == 1 && log->compiles == 1);
    CHECKF(t, log->loss[30] < log->loss[1] - 0.1, "%g -> %g", log->loss[1], log->loss[30]);
    CHECKF(t, log->eval[30] < log->eval[10], "%g -> %g", log->eval[10], log->eval[30]);
    CHECK(t, checkpoints_in(run) == 2 && events_whole(run, 30));
    CHECK(t, meta_is(run, 30, "\"step\":\"30\"") && meta_is(run, 30, "\"sequences\":\"120\""));
    CHECK(t, meta_is(run, 30, "\"tokens\":\"1920\"") && meta_is(run, 20, "\"step\":\"20\""));
    static const char *const files[] = {"resolved.vwn", "origins.json", "record.jsonl", "events.jsonl", "lock"};
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        char path[400];
        snprintf(path, sizeof path, "%s/%s", run, files[i]);
        CHECKF(t, file_exists(path), "%s", path);
    }
    if (!reference)
        CHECKF(t, log->bytes_at_20 == log->bytes_at_40, "%zu bytes at step 22, %zu at step 29", log->bytes_at_20,
               log->bytes_at_40);
}

/* The same run again, in other pieces: the last checkpoint and every loss agree. */
static void resumes(Tally *t, bool reference, const Log *whole)
{
    const char *run = in(reference ? "pieces_ref" : "pieces_cpu");
    const char *first = in(reference ? "whole_ref" : "whole_cpu");
    Log log;
    Case c = plain(reference, run);
    c.interrupt_at = 7;
    CHECK(t, go(&c, &log, why) == ST_INTERRUPTED && log.steps == 7);
    CHECK(t, strstr(log.end, "interrupted") && checkpoints_in(run) == 1);
    c.how.resume = true;
    c.interrupt_at = 0;
    c.how.until_steps = 15;
    c.threads = 1;
    CHECKF(t, go(&c, &log, why) == ST_OK, "%s", why);
    CHECK(t, log.steps == 8 && !memcmp(log.loss + 8, whole->loss + 8, 8 * sizeof(double)));
    c.how.until_steps = 0;
    c.threads = 3;
    CHECKF(t, go(&c, &log, why) == ST_OK, "%s", why);
    CHECK(t, log.steps == 15 && !memcmp(log.loss + 16, whole->loss + 16, 15 * sizeof(double)));
    CHECK(t, !memcmp(log.norm + 16, whole->norm + 16, 15 * sizeof(double)));
    CHECK(t, log.eval[30] == whole->eval[30] && log.eval[20] == whole->eval[20]);
    CHECK(t, same_checkpoint(run, first, 30) && same_checkpoint(run, first, 20));
    CHECK(t, events_whole(run, 30));
    /* once more at the end: nothing to do, nothing changes */
    CHECK(t, go(&c, &log, why) == ST_OK && log.steps == 0 && same_checkpoint(run, first, 30));
}

static void keep_average(Unit *u)
{
    Train *t = u->train;
    t->average = host_const(u->ctx->program, 0.75);
}

/* What a process of its own does, which may be killed: begins the run, or goes on with it. */
static int child_main(char **arg)
{
    Log log;
    Case c = plain(!strcmp(arg[2], "reference"), arg[3]);
    text_path = arg[4];
    c.tiny.text = text_path;
    c.kill_at = atoi(arg[5]);
    c.how.resume = file_exists(arg[3]);
    if (strstr(arg[3], "average"))
        c.change = keep_average;
    Status st = go(&c, &log, why);
    if (st == ST_USAGE && c.how.resume) { /* it was killed before anything was written */
        c.how.resume = false;
        st = go(&c, &log, why);
    }
    if (st != ST_OK)
        fprintf(stderr, "%s\n", why);
    return st;
}

static pid_t start_child(bool reference, const char *run, int kill_at)
{
    char at[16];
    snprintf(at, sizeof at, "%d", kill_at);
    pid_t child = fork();
    if (child == 0) {
        execl("/proc/self/exe", "run", "--child", reference ? "reference" : "cpu", run, text_path, at, (char *)NULL);
        _exit(99);
    }
    return child;
}

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

/* Killed at random moments, again and again, until the run is whole. */
static void killed(Tally *t, bool reference)
{
    /* Half of what a whole run takes here, when its kernels are there */
    static const char *const timed[2][2] = {{"timed_cpu", "timed_cpu_2"}, {"timed_ref", "timed_ref_2"}};
    double most = 0.9;
    int status = 0;
    for (int i = 0; i < 2; i++) {
        double began = seconds();
        waitpid(start_child(reference, in(timed[reference][i]), 0), &status, 0);
        most = fmin((seconds() - began) / 2, most);
        CHECK(t, WIFEXITED(status) && WEXITSTATUS(status) == 0);
    }
    const char *run = in(reference ? "killed_ref" : "killed_cpu");
    const char *first = in(reference ? "whole_ref" : "whole_cpu");
    uint64_t state = 11;
    int kills = 0;
    for (int round = 0; round < 100; round++) {
        pid_t child = start_child(reference, run, 0);
        state = state * 6364136223846793005u + 1442695040888963407u;
        double longest = most * fmin((round + 1) / 8.0, 1); /* the first are killed early */
        struct timespec wait = {0, (long)(longest * 1e9 * (double)(state >> 33) / 0x1p31)};
        nanosleep(&wait, NULL);
        if (round < 60)
            kill(child, SIGKILL);
        waitpid(child, &status, 0);
        if (WIFEXITED(status))
            break;
        kills++;
    }
    CHECKF(t, WIFEXITED(status) && WEXITSTATUS(status) == 0, "after %d kills: %d", kills, status);
    CHECKF(t, kills > 2, "%d kills", kills);
    CHECK(t, same_checkpoint(run, first, 30) && events_whole(run, 30));
    run = in(reference ? "killed_at_ref" : "killed_at_cpu");
    waitpid(start_child(reference, run, 17), &status, 0);
    CHECK(t, WIFSIGNALED(status) && checkpoints_in(run) == 1);
    Log log;
    Case c = plain(reference, run);
    c.how.resume = true;
    CHECK(t, go(&c, &log, why) == ST_OK && log.steps == 20);
    CHECK(t, same_checkpoint(run, first, 30) && events_whole(run, 30));
}

/* With averages: steps are the same, evaluations are others; a run that was interrupted and
 * one that was killed end with the same bytes. */
static void averages(Tally *t, bool reference, const Log *without)
{
    const char *run = in(reference ? "average_ref" : "average_cpu");
    const char *pieces = in(reference ? "average_pieces_ref" : "average_pieces_cpu");
    const char *dead = in(reference ? "average_killed_ref" : "average_killed_cpu");
    Log log;
    int status = 0;
    Case c = plain(reference, run);
    c.change = keep_average;
    CHECKF(t, go(&c, &log, why) == ST_OK, "%s", why);
    /* up to the first evaluation, which the learning rate of tiny_unit reads */
    CHECK(t, !memcmp(log.loss, without->loss, 11 * sizeof *log.loss));
    CHECK(t, log.eval[10] > without->eval[10] && log.eval[30] != without->eval[30]);
    CHECKF(t, fabs(log.eval[30] - without->eval[30]) < 0.2, "%g and %g", log.eval[30], without->eval[30]);
    CHECK(t, strstr(log.note, "average of the weights"));
    c.how.run = pieces;
    c.interrupt_at = 13;
    CHECK(t, go(&c, &log, why) == ST_INTERRUPTED);
    c.interrupt_at = 0;
    c.how.resume = true;
    CHECKF(t, go(&c, &log, why) == ST_OK, "%s", why);
    CHECK(t, same_checkpoint(run, pieces, 30) && same_checkpoint(run, pieces, 20));
    waitpid(start_child(reference, dead, 17), &status, 0);
    CHECK(t, WIFSIGNALED(status) && checkpoints_in(dead) == 1);
    c.how.run = dead;
    CHECKF(t, go(&c, &log, why) == ST_OK && log.steps == 20, "%s", why);
    CHECK(t, same_checkpoint(run, dead, 30));
    vwn_context *v = tiny_context(reference, 1);
    Unit *u = tiny_unit(v->ctx, &c.tiny);
    MemoryNeed before = session_memory(v->ctx, u->model, u->train, 0, NULL);
    keep_average(u);
    MemoryNeed after = session_memory(v->ctx, u->model, u->train, 0, NULL);
    CHECK(t, !before.average && after.average == after.weights && after.total >= before.total + after.average);
    tiny_close(v);
    c.change = NULL; /* the checkpoint has tensors that this run does not know */
    CHECK(t, go(&c, &log, why) == ST_INPUT && strstr(why, ":average"));
}

static void decay_too_large(Unit *u)
{
    Arena *a = u->ctx->program;
    const HostExpr *late = host_op(a, HO_LT, host_const(a, 7), host_var(a, HV_STEP), NULL);
    keep_average(u);
    u->train->average = host_op(a, HO_IF, late, host_const(a, 1.5), host_const(a, 0.5));
}

static void bad_decay(Tally *t)
{
    Log log;
    Case c = plain(true, in("average_bad"));
    c.change = decay_too_large;
    CHECK(t, go(&c, &log, why) == ST_INPUT && log.steps == 0);
    CHECKF(t, strstr(why, "step 9: the decay of the average") && strstr(why, "is 1.5"), "%s", why);
}

static void refusals(Tally *t)
{
    Log log;
    Case c = plain(true, in("whole_ref"));
    CHECK(t, go(&c, &log, why) == ST_USAGE && strstr(why, "--resume") && strstr(why, "step 30"));
    CHECK(t, log.starts == 0 && same_checkpoint(in("whole_ref"), in("pieces_ref"), 30));
    c.how.overwrite = true;
    c.tiny.batch = c.tiny.micro = 0; /* overwriting that cannot work must not remove the run */
    c.tiny.batch = 4;
    c.tiny.text = "absent.txt";
    CHECK(t, go(&c, &log, why) == ST_ENVIRONMENT && strstr(why, "absent.txt"));
    CHECK(t, checkpoints_in(in("whole_ref")) == 2);
    c = plain(true, in("nothing"));
    c.how.resume = true;
    CHECK(t, go(&c, &log, why) == ST_USAGE && strstr(why, "no run"));
    c.how.resume = false;
    c.how.dry_run = true;
    CHECK(t, go(&c, &log, why) == ST_OK && log.steps == 0 && log.ends == 1 && log.compiles == 1);
    CHECK(t, !file_exists(in("nothing")));
    /* a second trainer in the same directory */
    c = plain(true, in("shared"));
    c.how.until_steps = 2;
    CHECK(t, go(&c, &log, why) == ST_OK);
    vwn_context *v = tiny_context(true, 1);
    Session s = {0};
    session_open(&s, v);
    run_open(&s, in("shared"));
    c.how.resume = true;
    c.how.until_steps = 3;
    CHECK(t, go(&c, &log, why) == ST_USAGE && strstr(why, "another process (pid"));
    session_close(&s);
    tiny_close(v);
    CHECK(t, go(&c, &log, why) == ST_OK && log.steps == 1);
    c.how.resume = false;
    c.how.overwrite = true;
    CHECK(t, go(&c, &log, why) == ST_OK && log.steps == 3 && events_whole(in("shared"), 3));
    c.how.until_steps = 1; /* checkpoints of the run that is overwritten go with it */
    CHECK(t, go(&c, &log, why) == ST_OK && checkpoints_in(in("shared")) == 1);
}

static void other_data(Tally *t)
{
    Log log;
    char text[2000];
    const char *path = in("changing.txt");
    write_text_file(path, 2000);
    Case c = plain(true, in("changing"));
    c.tiny.text = path;
    c.how.until_steps = 3;
    CHECK(t, go(&c, &log, why) == ST_OK);
    write_text_file(path, 1999);
    c.how.resume = true;
    c.how.until_steps = 6;
    CHECKF(t, go(&c, &log, why) == ST_ENVIRONMENT && strstr(why, "2000 bytes"), "%s", why);
    write_text_file(path, 2000);
    c.tiny.steps = 40; /* another text of the file, and another length: a note of each, and on it goes */
    CHECKF(t,
           go(&c, &log, why) == ST_OK && strstr(log.note, "has changed") &&
               strstr(log.note, "and now at step 40: schedules") && log.steps == 3 && log.warnings == 2,
           "%d warnings, the last: %s", (int)log.warnings, log.note);
    c.tiny.width = 9; /* another model: refused, by the tensor that does not fit */
    CHECKF(t, go(&c, &log, why) == ST_INPUT && strstr(why, "the model needs [8, 9]"), "%s", why);
    memset(text, 'x', sizeof text);
    c = plain(true, in("narrow"));
    c.tiny.vocab = 6;
    CHECK(t, go(&c, &log, why) == ST_INPUT && !file_exists(in("narrow")));
}

static void damaged_checkpoint(Tally *t)
{
    Log log;
    Case c = plain(true, in("damaged"));
    CHECK(t, go(&c, &log, why) == ST_OK);
    int fd = open(in("damaged/ckpt/step_00000030.safetensors"), O_WRONLY);
    CHECK(t, fd >= 0 && pwrite(fd, "?", 1, 3500) == 1);
    close(fd);
    c.how.resume = true;
    CHECKF(t, go(&c, &log, why) == ST_OK && log.steps == 10, "%d: %s", log.steps, why);
    CHECKF(t, strstr(log.note, "damaged checkpoint") && strstr(log.note, "step_00000030"), "%s", log.note);
    CHECK(t, log.warnings == 1);
    CHECK(t, same_checkpoint(in("damaged"), in("whole_ref"), 30) && events_whole(in("damaged"), 30));
}

static void no_eval(Unit *u)
{
    u->train->eval_every = 0;
    u->train->checkpoint_every = 1000;
}

static void diverges(Tally *t, bool reference)
{
    Log log;
    Case c = plain(reference, in(reference ? "nan_ref" : "nan_cpu"));
    c.tiny.bad_log = true;
    CHECKF(t, go(&c, &log, why) == ST_DIVERGED, "%s", why);
    CHECKF(t, strstr(why, "`broken") && strstr(why, "not"), "%s", why);
    CHECKF(t, strstr(why, "step 9: ") && log.steps == 8, "after %d steps: %s", log.steps, why);
    CHECK(t, log.ends == 1 && strstr(log.end, "diverged") && strstr(why, "the loss is"));
    if (!reference)
        return;
    c = plain(true, in("spike"));
    c.tiny.dropout = 0;
    c.tiny.steps = 300;
    c.tiny.spike_at = 250;
    c.change = no_eval;
    CHECK(t, go(&c, &log, why) == ST_DIVERGED && log.steps == 250);
    CHECKF(t, strstr(why, "step 251: the loss jumped") && strstr(why, "median"), "%s", why);
    c = plain(true, in("early"));
    c.tiny.steps = 160;
    c.tiny.spike_at = 150; /* before step 200 nothing is called a spike */
    c.change = no_eval;
    CHECK(t, go(&c, &log, why) == ST_OK && log.steps == 160);
}

static void set_rate(Unit *u, HostVar var, double at_zero, double slope)
{
    Arena *a = u->ctx->program;
    const HostExpr *part = host_op(a, HO_MUL, host_var(a, var), host_const(a, slope), NULL);
    u->train->optimizer.lr = host_op(a, HO_ADD, host_const(a, at_zero), part, NULL);
}
static void rate_below_zero(Unit *u) { set_rate(u, HV_STEP, 0.01, -0.001); }
static void rate_below_zero_by_loss(Unit *u) /* the same, but a loss could decide it */
{
    Arena *a = u->ctx->program;
    rate_below_zero(u);
    const HostExpr *none = host_op(a, HO_MIN, host_var(a, HV_TRAIN_LOSS), host_const(a, 0), NULL);
    u->train->optimizer.lr = host_op(a, HO_ADD, u->train->optimizer.lr, none, NULL);
}
static void rate_of_loss(Unit *u) { set_rate(u, HV_TRAIN_LOSS, 0, 0.001); }
static void rate_not_a_number(Unit *u) { set_rate(u, HV_STEP, NAN, 1); }

/* A rate that is none stops the run by its own name, and nothing of it is applied. */
static void rates(Tally *t, bool reference)
{
    Log log;
    Case c = plain(reference, in(reference ? "rate_ref" : "rate_cpu"));
    c.change = rate_below_zero;
    CHECKF(t, go(&c, &log, why) == ST_INPUT && log.steps == 0, "%d steps: %s", log.steps, why);
    CHECKF(t, strstr(why, "step 12: the learning rate `(0.01 + (step * -0.001))` is -0.00"), "%s", why);
    c.change = rate_below_zero_by_loss;
    CHECKF(t, go(&c, &log, why) == ST_INPUT && log.steps == 11, "%d steps: %s", log.steps, why);
    CHECKF(t, strstr(why, "step 12: the learning rate `((0.01 + (step * -0.001)) + min("), "%s", why);
    CHECK(t, log.ends == 1 && checkpoints_in(in(reference ? "rate_ref" : "rate_cpu")) == 1);
    c.how.overwrite = true;
    c.change = rate_of_loss;
    CHECKF(t, go(&c, &log, why) == ST_INPUT && log.steps == 0, "%d steps: %s", log.steps, why);
    CHECKF(t, strstr(why, "step 1: ") && strstr(why, "train.loss") && strstr(why, "is inf"), "%s", why);
    c.change = rate_not_a_number;
    CHECKF(t, go(&c, &log, why) == ST_INPUT && log.steps == 0 && strstr(why, "is nan"), "%s", why);
}

/* The evaluation is that of the same sequences, whatever the micro-batch. */
static void eval_in_parts(Tally *t)
{
    Log log;
    double whole = NAN;
    for (int micro = 4; micro >= 1; micro /= 2) {
        Case c = plain(true, in("in_parts"));
        c.how.overwrite = true;
        c.tiny.dropout = 0;
        c.tiny.micro = micro;
        CHECK(t, go(&c, &log, why) == ST_OK && log.evals == 3);
        whole = micro == 4 ? log.eval[30] : whole;
        CHECKF(t, fabs(log.eval[30] - whole) < 1e-9, "micro-batch %d: %.12f and %.12f", micro, log.eval[30], whole);
    }
}

static void quiet(Unit *u) { u->train->log_every = 10; }

/* The disk fills while training: a sentence, no half file, and the run resumes to the same
 * bits. */
static void disk_full(Tally *t, bool reference)
{
    Log log;
    struct rlimit was, small;
    const char *name = reference ? "full_ref" : "full_cpu";
    const char *first = in(reference ? "whole_ref" : "whole_cpu");
    char ckpt[300];
    getrlimit(RLIMIT_FSIZE, &was);
    Case c = plain(reference, in(name));
    c.change = quiet;
    c.how.until_steps = 10;
    CHECK(t, go(&c, &log, why) == ST_OK);
    snprintf(ckpt, sizeof ckpt, "%s/ckpt/step_00000010.safetensors", in(name));
    struct stat size = {0};
    CHECK(t, stat(ckpt, &size) == 0);
    small = was;
    small.rlim_cur = (rlim_t)size.st_size - 100; /* a checkpoint does not fit, all else does */
    c.how.until_steps = 0;
    c.how.resume = true;
    c.limit = &small;
    Status st = go(&c, &log, why);
    c.limit = NULL;
    setrlimit(RLIMIT_FSIZE, &was);
    CHECKF(t, st == ST_ENVIRONMENT && strstr(why, "could not be written"), "%d: %s", st, why);
    CHECKF(t, strstr(why, "step_00000020") && strstr(log.end, "failed at step 20"), "%s; %s", why, log.end);
    CHECK(t, checkpoints_in(in(name)) == 1);
    snprintf(ckpt, sizeof ckpt, "%s/ckpt/.step_00000020.safetensors.tmp", in(name));
    CHECK(t, !file_exists(ckpt));
    CHECKF(t, go(&c, &log, why) == ST_OK, "%s", why);
    CHECK(t, same_checkpoint(in(name), first, 30));
}

static void add_growth(Unit *u, const HostExpr *when)
{
    GrowStep g = {.name = name_str(u->ctx, "to_big"), .when = when, .refused = "`old`"};
    vec_push(u->ctx->program, &u->grow, g);
}

static void rate_of_a_long_run(Unit *u) /* 1e11 steps; the rate is bad in one of the last */
{
    Arena *a = u->ctx->program;
    const HostExpr *late = host_op(a, HO_EQ, host_var(a, HV_STEP), host_const(a, 98765432101.0), NULL);
    u->train->length_steps = 100000000000;
    u->train->optimizer.lr = host_op(a, HO_IF, late, host_const(a, -1), host_const(a, 0.01));
}

static const HostExpr *compare(Unit *u, HostVar var, double with)
{
    Arena *a = u->ctx->program;
    return host_op(a, HO_LE, host_const(a, with), host_var(a, var), NULL);
}

static void grow_at_start(Unit *u) { add_growth(u, NULL); }
static void grow_at_tokens(Unit *u) { add_growth(u, compare(u, HV_TOKENS, 640)); }
static void grow_in_a_long_run(Unit *u)
{
    u->train->length_steps = 100000000000;
    add_growth(u, compare(u, HV_TOKENS, 64 * 98765432100.5));
}
static void grow_after_end(Unit *u) { add_growth(u, compare(u, HV_STEP, 31)); }
static void grow_at_loss(Unit *u)
{
    Arena *a = u->ctx->program;
    const HostExpr *low = host_op(a, HO_LT, host_var(a, HV_EVAL_LOSS), host_const(a, 100), NULL);
    add_growth(u, low);
}

/* Files of a run wait for the disk when a checkpoint asks for it, once; one that somebody has removed
 * is no failure. */
static void synced(Tally *t)
{
    Session s = {0};
    vwn_context *v = tiny_context(true, 1);
    session_open(&s, v);
    RunDir *r = run_open(&s, in("synced"));
    CHECK(t, !r->unsynced);
    for (int removed = 0; removed < 2; removed++) {
        run_write_file(&s, r, "origins.json", "{}", 2);
        run_write_file(&s, r, "resolved.vwn", "edition = 1\n", 12);
        CHECK(t, r->unsynced && file_exists(in("synced/resolved.vwn")));
        if (removed)
            unlink(in("synced/resolved.vwn"));
        run_sync_files(&s, r);
        CHECK(t, !r->unsynced);
    }
    session_close(&s);
    tiny_close(v);
}

/* A step that holds what no run carries out is refused where it may come, and only there. */
static void growth(Tally *t)
{
    static const char said[] = "the growth step `to_big` has `old`";
    Log log;
    Case c = plain(true, in("grow"));
    c.change = rate_of_a_long_run; /* both are found without evaluating every step: that would take hours */
    CHECKF(t, go(&c, &log, why) == ST_INPUT && strstr(why, "step 98765432102: the learning rate"), "%s", why);
    c.change = grow_in_a_long_run;
    CHECKF(t, go(&c, &log, why) == ST_INPUT && strstr(why, said), "%s", why);
    c.change = grow_at_start;
    CHECK(t, go(&c, &log, why) == ST_INPUT && strstr(why, said));
    c.change = grow_at_loss;
    CHECK(t, go(&c, &log, why) == ST_INPUT && strstr(why, said));
    c.change = grow_at_tokens; /* 64 tokens per step */
    CHECK(t, go(&c, &log, why) == ST_INPUT && strstr(why, said));
    CHECK(t, log.steps == 0 && !file_exists(in("grow/events.jsonl")));
    c.how.until_steps = 10;
    CHECK(t, go(&c, &log, why) == ST_OK && log.steps == 10);
    c = plain(true, in("grow_never"));
    c.change = grow_after_end;
    CHECK(t, go(&c, &log, why) == ST_OK && log.steps == 30);
}

static void by_epochs(Unit *u)
{
    u->train->length_steps = -1;
    u->train->length_epochs = 2;
}

static void lengths(Tally *t)
{
    Log log;
    Case c = plain(true, in("epochs"));
    c.change = by_epochs; /* 1,800 tokens of training text: 111 windows of 16, 4 per step */
    CHECK(t, go(&c, &log, why) == ST_OK);
    CHECKF(t, log.steps == 56, "%d steps", log.steps);
    CHECK(t, log.evals == 6 && log.checkpoints == 6);
}

static void agreement(Tally *t, const Log *ref, const Log *cpu)
{
    for (int i = 1; i <= 30; i++) {
        CHECKF(t, fabs(ref->loss[i] - cpu->loss[i]) < 2e-4, "step %d: %.6f and %.6f", i, ref->loss[i], cpu->loss[i]);
        CHECKF(t, fabs(ref->norm[i] - cpu->norm[i]) < 2e-3, "step %d: norm %.6f and %.6f", i, ref->norm[i],
               cpu->norm[i]);
    }
}

static void no_compiler(Tally *t)
{
    Log log = {0};
    char *path = strdup(getenv("PATH"));
    Case named = plain(false, in("named_compiler"));
    setenv("CC", "/nonexistent/cc", 1); /* asked for: no other one is taken */
    CHECKF(t, go(&named, &log, why) == ST_ENVIRONMENT && strstr(why, "/nonexistent/cc") && strstr(why, "CC names"),
           "%s", why);
    unsetenv("CC");
    setenv("PATH", "/nonexistent", 1);
    log = (Log){0};
    vwn_context *v = tiny_context(false, 1);
    v->options.cache_dir = "";
    log.v = v;
    Case c = plain(false, in("no_compiler"));
    c.tiny.steps = 2;
    vwn_train_options how = c.how;
    how.event = on_event;
    how.user = &log;
    Status st = train_unit(v, tiny_unit(v->ctx, &c.tiny), &how, &tiny_hooks);
    CHECKF(t, st == ST_OK && log.steps == 2, "%s", v->ctx->message);
    CHECKF(t, strstr(log.note, "install") && log.warnings == 1, "%s", log.note);
    tiny_close(v);
    setenv("PATH", path, 1);
    free(path);
}

/* ---- memory that runs out, descriptors that must not leak ---- */

typedef struct Failing {
    long left; /* allocations until one fails; < 0: never */
    long made;
} Failing;

static void *failing_resize(void *user, void *p, size_t old_size, size_t new_size)
{
    Failing *f = user;
    (void)old_size;
    if (new_size == 0) {
        free(p);
        return NULL;
    }
    f->made++;
    return f->left >= 0 && f->left-- == 0 ? NULL : realloc(p, new_size);
}

static int open_descriptors(void)
{
    int n = 0;
    for (int fd = 0; fd < 256; fd++)
        n += fcntl(fd, F_GETFD) >= 0;
    return n;
}

/* A run of two steps, resumed from `run`, in which allocation number `fail` fails. */
static Status with_failure(long fail, const char *run, long *made)
{
    Failing f = {.left = -1};
    Log log = {0};
    Ctx *ctx = ctx_new(&(Allocator){failing_resize, &f});
    vwn_context *v = NEW(ctx->program, vwn_context);
    v->ctx = ctx;
    v->options.reference = true;
    Case c = plain(true, run);
    Unit *u = tiny_unit(ctx, &c.tiny);
    log.v = v;
    vwn_train_options how = {.run = run, .resume = true, .until_steps = 12, .event = on_event, .user = &log};
    f = (Failing){.left = fail};
    Status st = train_unit(v, u, &how, &tiny_hooks);
    *made = f.made;
    snprintf(why, sizeof why, "%s", ctx->message);
    ctx_free(ctx);
    return st;
}

static void allocations(Tally *t)
{
    Log log;
    Case c = plain(true, in("memory_ends"));
    c.how.until_steps = 10;
    CHECK(t, go(&c, &log, why) == ST_OK);
    int before = open_descriptors();
    long made = 0, failures = 0;
    CHECK(t, with_failure(-1, in("memory_ends"), &made) == ST_OK);
    long all = made, stride = all > 400 ? all / 400 + 1 : 1;
    char command[400];
    for (long n = 0; n < all; n += stride) {
        snprintf(command, sizeof command, "%s/ckpt/step_00000012.safetensors", in("memory_ends"));
        unlink(command);
        Status st = with_failure(n, in("memory_ends"), &made);
        failures += st == ST_ENVIRONMENT;
        CHECKF(t, st == ST_ENVIRONMENT || st == ST_OK, "allocation %ld: %d: %s", n, st, why);
        CHECKF(t, open_descriptors() == before, "allocation %ld: %d descriptors, not %d", n, open_descriptors(),
               before);
    }
    CHECKF(t, failures * stride > all / 2, "%ld of %ld failed", failures, all / stride);
    c.how.until_steps = 0;
    c.how.resume = true;
    CHECK(t, go(&c, &log, why) == ST_OK);
    CHECK(t, same_checkpoint(in("memory_ends"), in("whole_ref"), 30));
    CHECK(t, events_whole(in("memory_ends"), 30));
}

/* Planned memory for float32 against what the store and the arena take. */
static void memory(Tally *t)
{
    vwn_context *v = tiny_context(false, 1);
    Case c = plain(false, in("memory"));
    c.tiny.width = 64;
    Unit *u = tiny_unit(v->ctx, &c.tiny);
    MemoryNeed n = session_memory(v->ctx, u->model, u->train, 0, NULL);
    Log log = {.v = v};
    vwn_train_options how = {.run = in("memory"), .until_steps = 1, .event = on_event, .user = &log};
    CHECK(t, train_unit(v, u, &how, &tiny_hooks) == ST_OK);
    size_t size;
    char *text = read_file(v->ctx, in("memory/events.jsonl"), &size);
    char *mem = text ? strstr(text, "\"mem\":") : NULL;
    double actual = mem ? atof(mem + 6) : 0;
    double planned = (double)(n.total - n.program); /* the program itself is not in the store */
    CHECKF(t, fabs(actual - planned) <= 0.02 * actual, "planned %.0f, used %.0f", planned, actual);
    CHECK(t, n.weights == 4 * (8 * 64 + 64 * 64 + 64 + 64 * 8) && n.buffers == 4);
    CHECK(t, n.gradients == n.weights && n.optimizer == 2 * n.weights);
    /* what cannot fit is refused with the numbers, before anything is taken */
    c = plain(false, in("too_large"));
    c.tiny.batch = c.tiny.micro = (int64_t)1 << 32;
    CHECKF(t, go(&c, &log, why) == ST_ENVIRONMENT && strstr(why, "training needs"), "%s", why);
    CHECKF(t,
           strstr(why, "; `micro_batch = ") && strstr(why, "same batch of 4294967296") &&
               !file_exists(in("too_large/events.jsonl")),
           "%s", why);
    /* the largest power of two that fits was named: it takes more than half of what there is */
    double with = atof(strstr(why, " seqs` needs ") + 13), have = atof(strstr(why, " and ") + 5);
    CHECKF(t, with <= have && with > 0.45 * have, "%s", why);
    c.tiny.lanes = 4; /* a lane is a power of 3: what is named divides that */
    c.tiny.micro = 31381059609;
    c.tiny.batch = 4 * c.tiny.micro;
    CHECKF(t, go(&c, &log, why) == ST_ENVIRONMENT && strstr(why, "; `micro_batch = "), "%s", why);
    CHECKF(t, c.tiny.micro % atoll(strstr(why, "; `micro_batch = ") + 17) == 0, "%s", why);
    c.tiny.lanes = 0;
    c.tiny.batch = c.tiny.micro = (int64_t)1 << 32;
    c.tiny.dropout = 0; /* then the steps are the same */
    CHECKF(t, go(&c, &log, why) == ST_ENVIRONMENT && !strstr(why, "random"), "%s", why);
    c = plain(false, in("too_wide")); /* weights that do not fit: no micro-batch helps */
    c.tiny.width = (int64_t)1 << 20;
    CHECKF(t,
           go(&c, &log, why) == ST_ENVIRONMENT && strstr(why, "even `micro_batch = 1 seqs`") &&
               strstr(why, "a smaller model"),
           "%s", why);
    c.tiny.batch = c.tiny.micro = 1;
    CHECKF(t, go(&c, &log, why) == ST_ENVIRONMENT && !strstr(why, "micro_batch"), "%s", why);
    tiny_close(v);
}

int main(int n_arg, char **arg)
{
    Tally t = {0};
    static Log ref, cpu;
    if (n_arg == 6 && !strcmp(arg[1], "--child"))
        return child_main(arg);
    Ctx *ctx = ctx_new(NULL);
    base = scratch_folder(ctx);
    text_path = arena_printf(ctx->program, "%s/text.txt", base);
    write_text_file(text_path, 2000);
    signal(SIGXFSZ, SIG_IGN);
    bool only_reference = getenv("VWN_TEST_REFERENCE") != NULL;
    learns(&t, true, &ref);
    resumes(&t, true, &ref);
    killed(&t, true);
    averages(&t, true, &ref);
    bad_decay(&t);
    refusals(&t);
    other_data(&t);
    damaged_checkpoint(&t);
    diverges(&t, true);
    rates(&t, true);
    eval_in_parts(&t);
    disk_full(&t, true);
    synced(&t);
    growth(&t);
    lengths(&t);
    no_compiler(&t);
    allocations(&t);
    if (!only_reference) {
        learns(&t, false, &cpu);
        agreement(&t, &ref, &cpu);
        resumes(&t, false, &cpu);
        killed(&t, false);
        averages(&t, false, &cpu);
        disk_full(&t, false);
        diverges(&t, false);
        rates(&t, false);
        memory(&t);
    }
    scratch_remove(base);
    ctx_free(ctx);
    return tally_end(&t, "run");
}
