/* plot.c - `vwn plot`: schedules of a file, curves of a run.   In: a file or a run, and paths.   Out: a drawing in the
 * terminal, a picture, CSV or JSON.
 */
#include "runtime/cli/cli.h"

#include <string.h>

static int run(Call *call)
{
    static const char *const axes[] = {"step", "tokens", "flops", "time", NULL}, *const ends[] = {".svg", ".json",
                                                                                                  ".csv", NULL};
    static const vwn_plot_form forms[] = {VWN_PLOT_SVG, VWN_PLOT_JSON, VWN_PLOT_CSV};
    int status, by = call_choice(call, "--by", axes, 0);
    const char *to = call_flag(call, "-o");
    bool csv = call_flag(call, "--csv"), of_run = is_folder(call->operand[0]);
    vwn_plot_options how = {.run = call->operand[0],
                            .path = call->operand + 1,
                            .n_paths = (size_t)call->n_operands - 1,
                            .points = 4096,
                            .form = csv          ? VWN_PLOT_CSV
                                    : call->json ? VWN_PLOT_JSON
                                                 : VWN_PLOT_TEXT,
                            .columns = ui_columns(),
                            .unicode = ui_unicode()};
    if (by < 0 || !call_whole(call, "--points", 2, 1 << 24, &how.points))
        return VWN_USAGE;
    how.by = (vwn_compare_axis)by;
    if (csv && call->json)
        return usage_error(call, "`--csv` and `--json` exclude each other");
    if (to && (csv || call->json))
        return usage_error(call, "the ending of `-o %s` says the form: leave out `%s`", to, csv ? "--csv" : "--json");
    if (csv && !how.n_paths)
        return usage_error(call, "`--csv` needs a path to draw; without one `vwn plot` lists what there is");
    if (of_run && (call_flag(call, "--set") || call_flag(call, "--points")))
        return usage_error(call, "`%s` is of files, and %s is a run", call_flag(call, "--set") ? "--set" : "--points",
                           call->operand[0]);
    if (call_flag(call, "--by") && !of_run)
        return usage_error(call, "`--by` is of runs; what varies over steps in a file is drawn over steps");
    if (to) {
        int end = file_ending(to, ends);
        if (!how.n_paths)
            return usage_error(call, "`-o` needs a path to draw; without one `vwn plot` lists what there is");
        how.form = forms[end];
    }
    vwn_unit *unit = NULL;
    if (!call_open(call, &status) || (!of_run && !call_unit(call, 0, &unit, &status)))
        return status;
    Text text = {0};
    vwn_writer file = text_writer(&text), out = to ? file : ui_stdout(&call->ui);
    vwn_status st = vwn_plot(call->ctx, unit, &how, &out);
    call_diagnostics(call, false, NULL);
    if (st == VWN_OK && to)
        return save_text(call, to, &text) ? status : VWN_ENVIRONMENT;
    text_free(&text);
    call_failed(call, st);
    return st == VWN_OK ? status : (int)st;
}

static const Flag flags[] = {
    {"-o", "FILE.svg|FILE.json|FILE.csv", "a picture, p.svg, or the points, p.csv or p.json, into a file"},
    {"--by", "step|tokens|flops|time", "of a run: what is below the curves (else step)"},
    {"--points", "N", "of a schedule over steps at most so many points (else 4,096)"},
    {"--csv", NULL, "the points instead of a drawing"},
};
const Verb verb_plot = {
    .name = "plot",
    .operands = "FILE|RUN|SWEEP [PATH...]",
    .summary = "Draws schedules of a file, and numbers of a run",
    .example = {{"vwn plot model.vwn 'layer[*].ffn.hidden'", "hidden sizes over depth"},
                {"vwn plot runs/model loss eval_loss -o curves.svg", "what a run has written"}},
    .text = "Without a path it lists what there is. Of a file: lists (`width`), numbers over depth\n"
            "(`layer[*].attention.heads`; `reads`, `writes` and `params` of any module), and numbers of the\n"
            "run over its steps, across growth steps (`train.optimizer.lr`, or an expression: `4 * step`).\n"
            "Of a run: names of numbers in its events.jsonl.\n",
    .flag = flags,
    .n_flags = 4,
    .takes = TAKES_SET | TAKES_JSON,
    .least = 1,
    .most = -1,
    .run = run};
