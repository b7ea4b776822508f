/* difference.c - `vwn diff`: what two files, runs or checkpoints have not in common.   In: two of a kind.   Out: a table or
 * JSON; exit status 6 when there is a difference.
 */
#include "runtime/cli/cli.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* A file and a run: the run keeps the file that it trained, as it was resolved. */
static int of_two_kinds(Call *call, const char *file, const char *other, bool first)
{
    char kept[4096];
    int n = (int)strlen(other);
    while (n > 1 && other[n - 1] == '/')
        n--;
    bool fits = (size_t)snprintf(kept, sizeof kept, "%.*s/resolved.vwn", n, other) < sizeof kept;
    if (fits && access(kept, F_OK) == 0)
        return usage_error(
            call, "`%s` is a file of the language and `%s` is a run; the run's file is in it: `vwn diff %s %s`", file,
            other, first ? file : kept, first ? kept : file);
    return usage_error(call, "`%s` is a file of the language and `%s` is none: compare two of a kind", file, other);
}

static int run(Call *call)
{
    static const char *const ends[] = {".vwn", NULL};
    int status, other = VWN_OK;
    const char *a = call->operand[0], *b = call->operand[1];
    bool file = file_ending(a, ends) >= 0 && !is_folder(a), second = file_ending(b, ends) >= 0 && !is_folder(b);
    vwn_diff_options how = {.a = a,
                            .b = b,
                            .checkpoints = call_flag(call, "--checkpoints"),
                            .tensors = call_flag(call, "--tensors"),
                            .states = call_flag(call, "--states"),
                            .json = call->json};
    if (file != second)
        return of_two_kinds(call, file ? a : b, file ? b : a, file);
    if (file && (how.checkpoints || how.tensors || how.states))
        return usage_error(call, "`%s` is of runs and checkpoints",
                           how.checkpoints ? "--checkpoints"
                           : how.tensors   ? "--tensors"
                                           : "--states");
    if (how.states && !how.checkpoints && !how.tensors && is_folder(a) && is_folder(b))
        return usage_error(
            call, "`--states` is of checkpoints: give `--checkpoints`, too, or name checkpoints, `%s@STEP`", a);
    if (!file && call_flag(call, "--set"))
        return usage_error(call, "`--set` is of files");
    vwn_unit *x = NULL, *y = NULL;
    if (!call_open(call, &status) || (file && !call_unit(call, 0, &x, &status)))
        return status;
    if (file && !call_unit(call, 1, &y, &other))
        return other;
    vwn_writer out = ui_stdout(&call->ui);
    vwn_status st = vwn_diff(call->ctx, x, y, &how, &out);
    call_failed(call, st);
    status = status ? status : other; /* a `check` of a file that is false */
    return st == VWN_OK || st == VWN_CHANGES ? (status ? status : (int)st) : (int)st;
}

static const Flag flags[] = {
    {"--checkpoints", NULL, "of two runs: the weights of their newest checkpoints"},
    {"--tensors", "PATH", "of checkpoints: weights below a path, `layer[*].attention` (else all)"},
    {"--states", NULL, "of checkpoints: also what the optimizer keeps"},
};
const Verb verb_diff = {.name = "diff",
                        .operands = "A B",
                        .summary = "Compares two files, two runs or two checkpoints",
                        .example = {{"vwn diff small.vwn large.vwn", "lets, nodes, attributes, weights, FLOPs"},
                                    {"vwn diff runs/a@1000 runs/a@2000", "how far each tensor has moved"}},
                        .text =
                            "Files are compared as they are resolved, so neither order nor form of the text counts.\n"
                            "A let or an attribute is named as `--set` takes it. Exit status:\n"
                            "0 no difference, 6 there is one.\n",
                        .flag = flags,
                        .n_flags = sizeof flags / sizeof flags[0],
                        .takes = TAKES_SET | TAKES_JSON,
                        .least = 2,
                        .most = 2,
                        .run = run};
