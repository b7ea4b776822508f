/* train.c - `vwn train`: trains a model and shows how it goes.
 *
 * In:  a file.   Out: a run directory; progress on stderr, the result on stdout, with --json
 * one event per line on stdout. Ctrl-C finishes the step, writes a checkpoint and exits with
 * 130.
 */
#include "runtime/cli/cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct Show {
    Call *call;
    int64_t step;      /* of the last event */
    int64_t eval_step; /* where it was measured */
    double eval_loss;  /* of the last evaluation, while it is new, else NaN */
    double eval_seen;  /* seconds, when it was first drawn; 0: not yet */
    double last_drawn; /* seconds, to draw at most ten times per second */
    char line[256];    /* the latest progress line */
    bool drawn;        /* it stands on the terminal */
    char end[512];     /* how the run ended */
} Show;

/* What the progress line may say, in its order. Where a terminal is too narrow the least important go first. */
typedef struct Piece {
    int rank; /* 0: always there */
    char text[96];
} Piece;

enum { PIECES = 9, EVAL_STAYS = 5 };

static int count(const char *json, const char *key)
{
    int n = 0;
    for (const char *at = strstr(json, key); at; at = strstr(at + 1, key))
        n++;
    return n;
}

/* The numbers of this step whose names begin with `key`, as in "ppl 12.3  share 0.25"; lists are left to
 * events.jsonl. */
static void put_numbers(char *out, size_t size, const char *json, const char *key)
{
    size_t n = 0;
    out[0] = '\0';
    for (const char *at = strstr(json, key); at; at = strstr(at, key)) {
        const char *name = at + strlen(key);
        size_t length = strcspn(name, "\"");
        at = name + length;
        if (strncmp(at, "\":", 2) != 0)
            continue;
        char *end;
        double value = strtod(at + 2, &end);
        if (end == at + 2)
            continue;
        int put = snprintf(out + n, size - n, "%s%.*s %.4g", n ? "  " : "", (int)length, name, value);
        if (put < 0 || (size_t)put >= size - n) {
            out[n] = '\0'; /* what does not fit is not cut in the middle */
            return;
        }
        n += (size_t)put;
    }
}

/* The pieces of ranks up to `most` with `gap` between them; its length. */
static size_t join(char line[256], const Piece *piece, int most, const char *gap)
{
    size_t n = 0;
    line[0] = '\0';
    for (int i = 0; i < PIECES && n < 256; i++)
        if (piece[i].text[0] && piece[i].rank <= most)
            n += (size_t)snprintf(line + n, 256 - n, "%s%s", n ? gap : "", piece[i].text);
    return n;
}

/* Numbers alone, ever fewer digits, until they fit. */
static void narrow_line(char line[256], size_t room, const vwn_event *e)
{
    char rate[32], eta[32], loss[320];
    ui_rate(rate, e->tokens_per_second);
    ui_duration(eta, e->eta_seconds);
    snprintf(line, 256, "%.4f %s/s %s", e->loss, rate, eta);
    ui_short_duration(eta, e->eta_seconds);
    for (int digits = 5; strlen(line) > room && digits > 1; digits--) {
        snprintf(loss, sizeof loss, "%.*g", digits, e->loss);
        snprintf(line, 256, "%.40s %s/s %s", loss, rate, eta);
    }
}

/* Loss, tokens a second and the time left stay at any width. */
static void progress_line(Show *show, const vwn_event *e)
{
    Ui *ui = &show->call->ui;
    char rate[32], eta[32];
    const char *json = e->json ? e->json : "";
    Piece piece[PIECES] = {{2, ""}, {0, ""}, {1, ""}, {0, ""}, {0, ""}, {3, ""}, {4, ""}, {5, ""}, {6, ""}};
    ui_rate(rate, e->tokens_per_second);
    ui_duration(eta, e->eta_seconds);
    snprintf(piece[0].text, sizeof piece[0].text, "step %6lld/%lld", (long long)e->step, (long long)e->steps);
    snprintf(piece[1].text, sizeof piece[1].text, "loss %.4f", e->loss);
    if (!isnan(show->eval_loss) && show->eval_step == e->step)
        snprintf(piece[2].text, sizeof piece[2].text, "eval %.4f", show->eval_loss);
    else if (!isnan(show->eval_loss))
        snprintf(piece[2].text, sizeof piece[2].text, "eval %.4f (step %lld)", show->eval_loss,
                 (long long)show->eval_step);
    snprintf(piece[3].text, sizeof piece[3].text, "%s tok/s", rate);
    snprintf(piece[4].text, sizeof piece[4].text, "eta %s", eta);
    if (count(json, "\"loss.") > 1) /* a single one is the loss itself */
        put_numbers(piece[5].text, sizeof piece[5].text, json, "\"loss.");
    put_numbers(piece[6].text, sizeof piece[6].text, json, "\"metric.");
    snprintf(piece[7].text, sizeof piece[7].text, "lr %.2e  gnorm %.2f", e->lr, e->grad_norm);
    ui_bar(piece[8].text, 22, e->steps > 0 ? (double)e->step / (double)e->steps : 0);
    size_t room = ui->live ? (size_t)ui_resize(ui) - 1 : sizeof show->line - 1;
    int most = PIECES;
    while (join(show->line, piece, most, "  ") > room && most > 0)
        most--;
    if (strlen(show->line) > room)
        narrow_line(show->line, room, e);
}

static void show_step(Show *show, const vwn_event *e)
{
    Ui *ui = &show->call->ui;
    progress_line(show, e);
    double t = ui_seconds();
    show->drawn = !ui->live || t - show->last_drawn >= 0.1 || e->step == e->steps;
    if (!show->drawn)
        return;
    show->last_drawn = t;
    ui_progress(ui, show->line);
    if (!isnan(show->eval_loss) && !show->eval_seen)
        show->eval_seen = t;
    if (!ui->live || (show->eval_seen && t - show->eval_seen >= EVAL_STAYS))
        show->eval_loss = NAN;
}

/* A sentence below the progress line, which is first brought up to date. */
static void settle(Show *show)
{
    if (!show->drawn && show->line[0])
        ui_progress(&show->call->ui, show->line);
    show->drawn = true;
    ui_progress_end(&show->call->ui);
}

static void on_event(void *user, const vwn_event *e)
{
    Show *show = user;
    Ui *ui = &show->call->ui;
    const char *text = e->text ? e->text : "";
    interrupt_steps(show->call, e->kind == VWN_EVENT_STEP ? e->step - show->step : 0);
    show->step = e->step;
    if (show->call->json) {
        if (e->json)
            ui_print(ui, "%s\n", e->json);
        ui_flush(ui);
        return;
    }
    switch (e->kind) {
    case VWN_EVENT_START: ui_say(ui, "Training", "%s", text); break;
    case VWN_EVENT_COMPILE: ui_say(ui, "Compiled", "%s", text); break;
    case VWN_EVENT_STEP: show_step(show, e); break;
    case VWN_EVENT_EVAL:
        show->eval_loss = e->eval_loss;
        show->eval_step = e->step;
        show->eval_seen = 0;
        break;
    case VWN_EVENT_CHECKPOINT:
        if (show->call->verbose) {
            settle(show);
            ui_say(ui, "Saved", "%s", text);
        }
        break;
    case VWN_EVENT_GROWTH:
        settle(show);
        ui_say(ui, "Grown", "%s", text);
        break;
    case VWN_EVENT_OUTPUT:
    case VWN_EVENT_BLOCK:
    case VWN_EVENT_TENSOR:
        settle(show);
        ui_say(ui, e->kind == VWN_EVENT_OUTPUT ? "Output" : e->kind == VWN_EVENT_BLOCK ? "New" : "Weights", "%s", text);
        break;
    case VWN_EVENT_NOTE:
        settle(show);
        ui_say(ui, "Note", "%s", text);
        break;
    case VWN_EVENT_WARNING:
        settle(show);
        ui_warning(ui, "%s", text);
        break;
    case VWN_EVENT_END:
        settle(show);
        snprintf(show->end, sizeof show->end, "%s", text);
        break;
    }
}

/* A run in the place of a file: it goes on with the file that it was trained from, or with its own copy of it. */
static bool file_of_run(Call *call, vwn_train_options *how, int *status)
{
    const char *run = call->operand[0];
    bool resume = !strcmp(call->verb->name, "resume"), kept = call_flag(call, "--kept") != NULL;
    vwn_run_text text;
    *status = VWN_USAGE;
    if (!is_folder(run) && !resume && !kept)
        return true;
    if (!is_folder(run) && !resume) {
        usage_error(call, "`%s` is no run, and `--kept` is of runs: `vwn train RUN --resume --kept`", run);
        return false;
    }
    if (!how->resume || how->run) {
        usage_error(call,
                    how->resume          ? "`%s` is the run: leave `--run` out"
                    : is_run_folder(run) ? "`%s` is a folder: `vwn resume %s` goes on with the run in it"
                                         : "`%s` is a folder and holds no run: name a file, such as `%s/model.vwn`",
                    run, run);
        return false;
    }
    vwn_status st = vwn_run_file(call->ctx, run, &text);
    *status = call_failed(call, st);
    if (st != VWN_OK)
        return false;
    bool there = text.file && access(text.file, R_OK) == 0;
    how->run = run;
    call->resume = run;
    call->operand[0] = there ? text.file : text.kept;
    if (there && !kept)
        return true;
    if (!text.kept) {
        *status = VWN_ENVIRONMENT;
        ui_error(&call->ui,
                 "`%s` keeps no copy of its file: `vwn train FILE --run %s --resume` goes on with another one", run,
                 run);
        return false;
    }
    if (!kept)
        ui_warning(&call->ui, "`%s` was trained from %s, which is there no more: it goes on with its own copy, %s", run,
                   text.file ? text.file : "a text that had no name", text.kept);
    call->operand[0] = text.kept;
    call->folder = text.folder;
    return true;
}

/* A run's file does not check, and the run was fine with it as it was. */
static void report_kept(Call *call)
{
    if (call->resume && *call->resume && !call->folder)
        ui_say(&call->ui, "Note", "`vwn resume %s --kept` goes on with the file as the run keeps it", call->resume);
}

static int train(Call *call, vwn_train_options how)
{
    int status;
    char folder[4096];
    Show show = {.call = call, .eval_loss = NAN, .drawn = true};
    how.event = on_event;
    how.user = &show;
    if (!call_quantity(call, "--until", "step", &how.until_steps) || !run_folder(call, folder, &how.run))
        return VWN_USAGE;
    if (how.resume && how.overwrite)
        return usage_error(call, "`--resume` and `--overwrite` exclude each other");
    if (how.resume)
        call->resume = how.run ? how.run : "";
    vwn_unit *unit;
    if (!call_open(call, &status) || !call_join(call, &status) || !file_of_run(call, &how, &status))
        return status;
    if (!call_unit(call, 0, &unit, &status)) {
        report_kept(call);
        return status;
    }
    if (status != VWN_OK)
        return status;            /* a false `check` */
    call->ui.quiet |= call->json; /* the events say it all; errors are still said */
    interrupt_start(call);
    call->ui.running = call->ctx;
    vwn_status st = vwn_train(unit, &how);
    settle(&show);
    call_diagnostics(call, call->json, NULL);
    if ((st == VWN_OK || st == VWN_INTERRUPTED) && !call->json && show.end[0])
        ui_print(&call->ui, "%s\n", show.end);
    return call_failed(call, st);
}

static int run(Call *call)
{
    return train(call, (vwn_train_options){.resume = call_flag(call, "--resume") != NULL,
                                           .restarted = getenv(LAUNCH_RESTARTED) != NULL,
                                           .overwrite = call_flag(call, "--overwrite") != NULL,
                                           .dry_run = call_flag(call, "--dry-run") != NULL});
}

static int run_resume(Call *call)
{
    if (!is_folder(call->operand[0]) && ends_with(call->operand[0], ".vwn"))
        return usage_error(call, "`%s` is no run: `vwn train FILE --resume` goes on with the run of a file",
                           call->operand[0]);
    const char *run = call->operand[0], *at = strrchr(run, '@');
    if (!is_folder(run) && at && at > run && at[1] && !at[1 + strspn(at + 1, "0123456789")])
        return usage_error(
            call,
            "a run goes on from its last checkpoint: `vwn resume %.*s`; a new run begins with the weights "
            "of step %s where its file has `start_from = run(\"%s\")` in `train`",
            (int)(at - run), run, at + 1, run);
    return train(call, (vwn_train_options){.resume = true, .dry_run = call_flag(call, "--dry-run") != NULL});
}

static const Flag flags[] = {
    {"--run", "NAME", "run directory runs/NAME, or a path (else the model's name)"},
    {"--resume", NULL, "go on from the last checkpoint of the run, with its --set values"},
    {"--kept", NULL, "of a run: go on with its own copy of the file, whatever became of that"},
    {"--overwrite", NULL, "start anew in a directory that holds a run"},
    {"--dry-run", NULL, "everything up to the first step: check, plan, compile, open the data"},
    {"--until", "'1000 steps'", "stop, with a checkpoint, after this step"},
};
const Verb verb_train = {
    .name = "train",
    .operands = "FILE|RUN",
    .summary = "Trains the model of a file",
    .example = {{"vwn train model.vwn", "into runs/<name of the model>"},
                {"vwn train model.vwn --resume", "go on where it stopped"}},
    .text = "A RUN stands in the place of the file with --resume alone: it goes on, as by `vwn resume RUN`.\n"
            "With --json every event is a line of stdout as in events.jsonl, behind one that says which device was\n"
            "chosen, and stderr has errors alone.\n"
            "Ctrl-C, or a terminal that closes, finishes the step, writes a checkpoint and exits with 130; while\n"
            "kernels are compiled it ends the compiler.\n"
            "Exit status: 0 fine, 1 errors, 3 a `check` is false, 4 the run diverged,\n"
            "5 memory, compiler, files or disk, 130 interrupted.\n",
    .flag = flags,
    .n_flags = sizeof flags / sizeof flags[0],
    .takes = TAKES_SET | TAKES_JSON | TAKES_THREADS | TAKES_DEVICE,
    .least = 1,
    .most = 1,
    .run = run};

static const Flag resume_flags[] = {
    {"--kept", NULL, "with the run's own copy of its file, whatever became of that"},
    {"--until", "'1000 steps'", "stop, with a checkpoint, after this step"},
    {"--dry-run", NULL, "everything up to the first step"},
};
const Verb verb_resume = {
    .name = "resume",
    .operands = "RUN",
    .summary = "Goes on with a run where it stopped, or makes it longer",
    .example = {{"vwn resume nano", "runs/nano, from its last checkpoint, as it was started"},
                {"vwn resume nano --set train.length='2000 steps'", "further than it was to go"}},
    .text =
        "The same as `vwn train FILE --run RUN --resume` with the file that the run was "
        "trained from. What was given with\n"
        "--set then is given again; another value is an error, but for `train.length`. Where the file is gone the run\n"
        "goes on with its own copy of it, and says so.\n",
    .flag = resume_flags,
    .n_flags = sizeof resume_flags / sizeof resume_flags[0],
    .takes = TAKES_SET | TAKES_JSON | TAKES_THREADS | TAKES_DEVICE,
    .least = 1,
    .most = 1,
    .run = run_resume};
