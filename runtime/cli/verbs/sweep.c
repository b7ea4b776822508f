/* sweep.c - `vwn sweep`: trains variants of a file and compares them.
 *
 * In:  a file, axes.   Out: a folder of runs; progress on stderr, the table on stdout, with --json one event per line and the
 * table as the last.
 */
#include "runtime/cli/cli.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct Show {
    Call *call;
    bool alone; /* one point at a time: its steps are shown */
} Show;

static void show_step(Show *show, const vwn_sweep_event *e)
{
    char line[512], eta[32], rate[32], all[48] = "";
    const vwn_event *t = e->train;
    if (!show->alone || !show->call->ui.live || t->kind != VWN_EVENT_STEP)
        return;
    ui_duration(eta, t->eta_seconds);
    ui_rate(rate, t->tokens_per_second);
    if (isfinite(e->eta_seconds)) {
        snprintf(all, sizeof all, "  all ");
        ui_duration(all + strlen(all), e->eta_seconds);
    }
    snprintf(line, sizeof line, "%zu/%zu %s  step %lld/%lld  loss %.4f  %s tok/s  eta %s%s", e->finished + 1, e->of,
             e->point, (long long)t->step, (long long)t->steps, t->loss, rate, eta, all);
    ui_progress(&show->call->ui, line);
}

/* A list of many points takes a while. */
static void show_count(Ui *ui, const vwn_sweep_event *e)
{
    char line[64];
    if (!ui->live)
        return;
    snprintf(line, sizeof line, "%zu of %zu counted", e->finished, e->of);
    ui_progress(ui, line);
}

/* "2 of 4 finished, about 0:12 left" */
static const char *so_far(const vwn_sweep_event *e, char text[96])
{
    char eta[32];
    int n = snprintf(text, 96, "%zu of %zu finished", e->finished, e->of);
    if (isfinite(e->eta_seconds) && e->finished < e->of) {
        ui_duration(eta, e->eta_seconds);
        snprintf(text + n, 96 - (size_t)n, ", about %s left", eta);
    }
    return text;
}

static void on_event(void *user, const vwn_sweep_event *e)
{
    Show *show = user;
    Ui *ui = &show->call->ui;
    char done[96];
    if (e->kind == VWN_SWEEP_PLANNED) {
        ui_wait(ui, "Planning", "%zu/%zu %s", e->finished + 1, e->of, e->point);
        return;
    }
    if (e->kind == VWN_SWEEP_COUNTED) {
        show_count(ui, e);
        return;
    }
    if (e->kind == VWN_SWEEP_TRAIN) {
        if (e->train->kind == VWN_EVENT_START)
            ui_wait_end(ui);
        show_step(show, e);
        if (e->train->kind == VWN_EVENT_WARNING) {
            ui_progress_end(ui);
            ui_warning(ui, "%s: %s", e->point, e->train->text);
        }
        return;
    }
    ui_progress_end(ui);
    if (show->call->json && e->json) {
        ui_print(ui, "%s\n", e->json);
        ui_flush(ui);
    }
    switch (e->kind) {
    case VWN_SWEEP_START: ui_say(ui, "Sweep", "%s", e->text); break;
    case VWN_SWEEP_POINT:
        if (show->call->verbose)
            ui_say(ui, "Point", "%s", e->point);
        ui_wait(ui, "Planning", "%zu/%zu %s", e->number, e->of, e->point); /* until it trains */
        break;
    case VWN_SWEEP_WRONG: ui_stderr(ui).put(ui_stderr(ui).user, e->text, strlen(e->text)); break;
    case VWN_SWEEP_END:
        if (e->failed)
            ui_error(ui, "%s: %s (%s)", e->point, e->text, so_far(e, done));
        else
            ui_say(ui, "Point", "%s: %s (%s)", e->point, e->text, so_far(e, done));
        break;
    case VWN_SWEEP_NOTE: ui_say(ui, "Note", "%s%s%s", e->point ? e->point : "", e->point ? ": " : "", e->text); break;
    case VWN_SWEEP_TRAIN:
    case VWN_SWEEP_COUNTED:
    case VWN_SWEEP_PLANNED: break;
    }
}

/* `vwn sweep NAME`: not the name of a file, nor one without its ending. */
static bool names_a_sweep(Call *call)
{
    const char *word = call->operand[0];
    char file[512];
    snprintf(file, sizeof file, "%.500s.vwn", word);
    if (call->n_operands != 1 || strpbrk(word, "./-") || !access(word, F_OK) || !access(file, F_OK))
        return false;
    ui_error(&call->ui, "there is no file `%s`; a sweep of that name is run by `vwn sweep FILE %s`", word, word);
    return true;
}

/* What exclude each other. */
static bool fits(Call *call)
{
    static const char *const pair[][2] = {{"--resume", "--overwrite"}, {"--csv", "--json"}, {"--list", "--resume"},
                                          {"--list", "--overwrite"},   {"--list", "--svg"}, {"--list", "--run"},
                                          {"--list", "--launch"}};
    for (size_t i = 0; i < sizeof pair / sizeof pair[0]; i++)
        if (call_flag(call, pair[i][0]) && call_flag(call, pair[i][1])) {
            usage_error(call, "`%s` and `%s` exclude each other", pair[i][0], pair[i][1]);
            return false;
        }
    if (call_flag(call, "--by") && !call_flag(call, "--svg")) {
        usage_error(call, "`--by` is the axis of a picture: give `--svg FILE`, too");
        return false;
    }
    return true;
}

/* The table stands below the line that said how far the points are. */
static void put_table(void *user, const char *text, size_t n)
{
    Call *call = user;
    ui_progress_end(&call->ui);
    vwn_writer out = ui_stdout(&call->ui);
    out.put(out.user, text, n);
}

/* The sweep, and its picture where one is wanted. */
static vwn_status sweep(Call *call, vwn_sweep_options *how)
{
    vwn_writer out = {put_table, call};
    const char *path = call_flag(call, "--svg");
    Text svg = {0};
    vwn_writer picture = text_writer(&svg);
    how->svg = path ? &picture : NULL;
    ui_wait(&call->ui, "Planning", "the points of %s", how->file.path);
    vwn_status st = vwn_sweep(call->ctx, how, &out);
    return (svg.n || svg.failed) && !save_text(call, path, &svg) ? VWN_ENVIRONMENT : st;
}

/* The same call by each of so many processes. The folder of `-C` is this one already. */
static int launch(Call *call, int64_t processes)
{
    if (!strcmp(call->operand[0], "-"))
        return usage_error(call, "only one process can read `-`: name a file");
    char **argv = calloc((size_t)(2 * call->n_given + call->n_operands) + 3, sizeof *argv);
    size_t n = 0;
    if (!argv) {
        ui_error(&call->ui, "out of memory");
        return VWN_ENVIRONMENT;
    }
    argv[n++] = "vwn";
    argv[n++] = "sweep";
    for (int i = 0; i < call->n_operands; i++)
        argv[n++] = (char *)call->operand[i];
    for (int i = 0; i < call->n_given; i++) {
        const char *name = call->given[i].flag->name;
        if (!strcmp(name, "--launch") || !strcmp(name, "-C"))
            continue;
        argv[n++] = (char *)name;
        if (call->given[i].flag->value)
            argv[n++] = (char *)call->given[i].value;
    }
    int status = call_launch(call, processes, argv, false);
    free(argv);
    return status;
}

static int run(Call *call)
{
    int status;
    int64_t jobs = 0, processes = 1;
    char folder[4096];
    Show show = {.call = call};
    vwn_sweep_options how = {.name = call->n_operands > 1 ? call->operand[1] : NULL,
                             .seeds = call_flag(call, "--seeds"),
                             .until = call_flag(call, "--until"),
                             .random = call_flag(call, "--random"),
                             .list = call_flag(call, "--list") != NULL,
                             .resume = call_flag(call, "--resume") != NULL,
                             .overwrite = call_flag(call, "--overwrite") != NULL,
                             .by = call_flag(call, "--by"),
                             .color = call->ui.color_err,
                             .form = call->json                 ? VWN_SWEEP_JSON
                                     : call_flag(call, "--csv") ? VWN_SWEEP_CSV
                                                                : VWN_SWEEP_TABLE,
                             .event = on_event,
                             .user = &show};
    if (names_a_sweep(call) || !fits(call) || !call_whole(call, "--jobs", 1, 256, &jobs) ||
        !call_whole(call, "--launch", 1, 1024, &processes) || !run_folder(call, folder, &how.run))
        return VWN_USAGE;
    if (processes > 1)
        return launch(call, processes);
    how.jobs = (int)jobs;
    show.alone = jobs <= 1;
    if (!call_open(call, &status) || !call_join(call, &status) || !call_file(call, 0, &how.file, &status))
        return status;
    how.vary = call_flags(call, "--vary", &how.n_vary);
    interrupt_start(call);
    call->ui.running = call->ctx;
    vwn_status st = sweep(call, &how);
    ui_progress_end(&call->ui);
    free((void *)how.vary);
    call_file_done(&how.file);
    call_diagnostics(call, false, NULL);
    return call_failed(call, st);
}

static const Flag flags[] = {
    {"--vary", "PATH=V1,V2|range(a,b,n)|between(a,b)",
     "an axis, in the place of one of the file or besides; repeatable"},
    {"--random", "N|draws(N,..)", "how often axes of between(a,b) are drawn"},
    {"--seeds", "1,2,3", "run every point with each of these seeds"},
    {"--list", NULL, "what every point costs; nothing is trained"},
    {"--run", "NAME",
     "directory runs/NAME, or a path (else the sweep's name; without one, or with the model's, MODEL-sweep)"},
    {"--resume", NULL, "go on where a sweep was stopped or killed, or with more points"},
    {"--overwrite", NULL, "start anew in a directory that holds a sweep"},
    {"--launch", "N", "so many processes of this machine, which share the points; each has a GPU of its own"},
    {"--jobs", "N", "points at a time, each with its share of the threads (else 1)"},
    {"--until", "'1000 steps'", "train each point so far: steps, tokens, s, min or h"},
    {"--csv", NULL, "a line for each point instead of the table"},
    {"--svg", "FILE.svg", "also a picture of losses"},
    {"--by", "PATH|params|stored|flops", "the axis of the picture"},
};
const Verb verb_sweep = {
    .name = "sweep",
    .operands = "FILE [NAME]",
    .summary = "Trains variants of a file, each a run of its own, and compares them",
    .example = {{"vwn sweep model.vwn --vary D=64,128,256 --list", "what three widths cost"},
                {"vwn sweep examples/12_sweep.vwn bottleneck --jobs 2", "trains every point of a `sweep` node"}},
    .text = "Each point is a run runs/SWEEP/POINT for `vwn eval`, `sample`, `compare` and `train --resume`; `runs`, "
            "`watch`,\n"
            "`compare`, `plot`, `report` and `export-log` take runs/SWEEP, also while it goes on. Ctrl-C writes\n"
            "checkpoints; --resume goes on, also after a crash. A point that fails is named, and the others run.\n"
            "Exit status: 0 fine, 1 errors in the file or in a point, 3 a `check` of a point is false, 4 a point "
            "diverged,\n"
            "5 memory, compiler, files or disk, 130 interrupted.\n",
    .flag = flags,
    .n_flags = sizeof flags / sizeof flags[0],
    .takes = TAKES_SET | TAKES_JSON | TAKES_THREADS | TAKES_DEVICE,
    .least = 1,
    .most = 2,
    .run = run};
