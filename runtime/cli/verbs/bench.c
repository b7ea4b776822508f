/* bench.c - `vwn bench`: how fast a file trains here, and where the time goes.
 *
 * In:  a file; perhaps an earlier result.   Out: a table or JSON on stdout, remarks on stderr.
 */
#define _GNU_SOURCE
#include "runtime/cli/cli.h"

#include <errno.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void on_event(void *user, const vwn_event *e)
{
    Call *call = user;
    if (e->kind == VWN_EVENT_COMPILE)
        ui_say(&call->ui, "Compiled", "%s", e->text);
    else if (e->kind == VWN_EVENT_NOTE)
        ui_say(&call->ui, "Note", "%s", e->text);
    else if (e->kind == VWN_EVENT_WARNING)
        ui_warning(&call->ui, "%s", e->text);
}

/* ---- several processes ---- */

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void)st, (void)kind, (void)at;
    return remove(path);
}

/* The words of a training in `folder`, of so many steps; freed by the caller, NULL: there is no memory. */
static char **train_words(const Call *call, char *folder, char *until)
{
    size_t n_set, n = 0;
    const char **set = call_flags(call, "--set", &n_set);
    const char *passed[] = {"--device", "--threads"};
    char **argv = set ? calloc(16 + 2 * n_set, sizeof *argv) : NULL;
    if (argv) {
        char *first[] = {"vwn", "train", (char *)call->operand[0], "--run", folder, "--until", until, "-q"};
        for (size_t i = 0; i < sizeof first / sizeof first[0]; i++)
            argv[n++] = first[i];
        for (size_t i = 0; i < sizeof passed / sizeof passed[0]; i++)
            if (call_flag(call, passed[i])) {
                argv[n++] = (char *)passed[i];
                argv[n++] = (char *)call_flag(call, passed[i]);
            }
        for (size_t i = 0; i < n_set; i++) {
            argv[n++] = "--set";
            argv[n++] = (char *)set[i];
        }
    }
    free(set);
    return argv;
}

/* They train for a few steps in a folder of their own; what they have written about these is read. */
static int run_ranks(Call *call, int64_t ranks, int64_t steps)
{
    enum { OPEN_FILES = 16 };
    int status;
    char folder[256], run[300], until[48];
    const char *temporary = getenv("TMPDIR");
    if (call_flag(call, "--kernels") || call_flag(call, "--against"))
        return usage_error(call, "`--ranks` says what processes compute and wait for, and goes with `--steps` alone");
    if (!strcmp(call->operand[0], "-"))
        return usage_error(call, "only one process can read `-`: name a file");
    snprintf(folder, sizeof folder, "%.200s/vwn-bench-XXXXXX", temporary && *temporary ? temporary : "/tmp");
    if (!mkdtemp(folder)) {
        ui_error(&call->ui, "no folder %s for the run: %s", folder, strerror(errno));
        return VWN_ENVIRONMENT;
    }
    snprintf(run, sizeof run, "%s/run", folder);
    snprintf(until, sizeof until, "%lld steps", (long long)steps);
    char **argv = train_words(call, run, until);
    status = argv ? call_launch(call, ranks, argv, true) : VWN_ENVIRONMENT;
    if (status == VWN_OK && call_open(call, &status)) {
        const vwn_ranks_options how = {.run = run, .json = call->json};
        vwn_writer out = ui_stdout(&call->ui);
        status = call_failed(call, vwn_ranks(call->ctx, &how, &out));
    }
    free(argv);
    nftw(folder, remove_one, OPEN_FILES, FTW_DEPTH | FTW_PHYS);
    return status;
}

static int run(Call *call)
{
    int status;
    Text earlier = {0};
    vwn_unit *unit;
    vwn_bench_options how = {.kernels = call_flag(call, "--kernels") != NULL,
                             .json = call->json,
                             .against_name = call_flag(call, "--against"),
                             .event = on_event,
                             .user = call};
    int64_t ranks = 1;
    if (!call_whole(call, "--steps", 1, 100000, &how.steps) || !call_whole(call, "--ranks", 1, 1024, &ranks))
        return VWN_USAGE;
    if (ranks > 1)
        return run_ranks(call, ranks, how.steps ? how.steps : 10);
    const char *why = how.against_name ? read_whole_file(how.against_name, &earlier) : NULL;
    if (why) {
        ui_error(&call->ui, "cannot read %s: %s", how.against_name, why);
        text_free(&earlier);
        return VWN_ENVIRONMENT;
    }
    how.against = how.against_name ? earlier.s : NULL;
    how.against_length = earlier.n;
    if (call_open(call, &status) && call_unit(call, 0, &unit, &status) && status == VWN_OK) {
        vwn_writer out = ui_stdout(&call->ui);
        vwn_status st = vwn_bench(unit, &how, &out);
        call_diagnostics(call, false, NULL);
        status = call_failed(call, st);
    }
    text_free(&earlier);
    return status;
}

static const Flag flags[] = {
    {"--kernels", NULL, "also every kernel and every shape of products"},
    {"--against", "OLD.json", "compare with what `vwn bench --json` wrote earlier"},
    {"--steps", "N", "how many steps to time (else 10)"},
    {"--ranks", "4", "of so many processes: what each computes, waits for and sends; they train on the file's data"},
};
const Verb verb_bench = {
    .name = "bench",
    .operands = "FILE",
    .summary = "Measures training steps: time, share of the machine's peak, memory, start-up",
    .example = {{"vwn bench model.vwn --kernels", "where the time of a step goes"},
                {"vwn bench model.vwn --ranks 4", "what four processes wait for"}},
    .text = "Nothing is written. Where the file's data is missing, it is drawn at random. `of copy` and\n"
            "`of peak` are shares of a non-temporal copy and of multiply-adds in registers, both\n"
            "measured in the same run with all threads; of a GPU, of a copy and of a product of random\n"
            "numbers. Times are the best of all steps. The fields of --json are described in\n"
            "runtime/vwn.h.\n",
    .flag = flags,
    .n_flags = sizeof flags / sizeof flags[0],
    .takes = TAKES_SET | TAKES_JSON | TAKES_THREADS | TAKES_DEVICE,
    .least = 1,
    .most = 1,
    .run = run};
