/* compare.c - `vwn compare`: runs side by side.   In: run directories.   Out: a table, CSV or JSON; a picture. */
#include "runtime/cli/cli.h"

#include <stdlib.h>

/* The picture, in place of what the file held. */
static int write_svg(Call *call, vwn_compare_options how, const char *path)
{
    Text svg = {0};
    vwn_writer into = text_writer(&svg);
    how.form = VWN_COMPARE_SVG;
    vwn_status st = vwn_compare(call->ctx, &how, &into);
    if (st == VWN_OK)
        return save_text(call, path, &svg) ? VWN_OK : VWN_ENVIRONMENT;
    text_free(&svg);
    return call_failed(call, st);
}

static int run(Call *call)
{
    static const char *const axes[] = {"step", "tokens", "flops", "time", NULL};
    int status, by = call_choice(call, "--by", axes, 0);
    vwn_compare_options how = {.run = call->operand,
                               .n_runs = (size_t)call->n_operands,
                               .metric = call_flag(call, "--metric"),
                               .group = call_flag(call, "--group") != NULL,
                               .form = call->json ? VWN_COMPARE_JSON : VWN_COMPARE_TABLE};
    if (by < 0 || !call_whole(call, "--smooth", 1, 1 << 30, &how.smooth))
        return VWN_USAGE;
    how.by = (vwn_compare_axis)by;
    if (call_flag(call, "--csv") && call->json)
        return usage_error(call, "`--csv` and `--json` exclude each other");
    if (call_flag(call, "--csv"))
        how.form = VWN_COMPARE_CSV;
    if (!call_open(call, &status))
        return status;
    const char *svg = call_flag(call, "--svg");
    if (svg && (status = write_svg(call, how, svg)) != VWN_OK)
        return status;
    vwn_writer out = ui_stdout(&call->ui);
    return call_failed(call, vwn_compare(call->ctx, &how, &out));
}

static const Flag flags[] = {
    {"--by", "step|tokens|flops|time", "at the same what runs are compared (else step)"},
    {"--group", NULL, "runs whose files differ in the seed alone are averaged (points of a sweep always are)"},
    {"--metric", "NAME",
     "a number of events.jsonl (else eval_loss, or loss where there is none; bits_per_byte of different tokenizers)"},
    {"--smooth", "N", "points averaged around each (else 1; of `loss` one in fifty)"},
    {"--svg", "FILE.svg", "also a picture"},
    {"--csv", NULL, "all points instead of the table"},
};
const Verb verb_compare = {
    .name = "compare",
    .operands = "RUN|SWEEP|NAME=RUN,RUN...",
    .summary = "Shows what runs have learned, side by side",
    .example = {{"vwn compare runs/a runs/b --by flops --svg curves.svg", "a table and a picture"},
                {"vwn compare ghc=runs/g1,runs/g2 plain=runs/p1,runs/p2", "means over two seeds"}},
    .text =
        "A table of how far each run has gone, its loss there and where all have been, and below it the losses at\n"
        "equal tokens, FLOPs and seconds. Means over seeds stand with their 95 % intervals (+-, by Student's t); a\n"
        "difference that its interval (Welch's t) hides has a `=`, and is a tie. Other seeds, data, lengths, "
        "machines,\n"
        "and schedules that are not at one place are told. Seconds are of steps, evaluations and checkpoints, from "
        "the\n"
        "first step of each start on: planning and the C compiler do not count.\n"
        "A folder stands for all runs in it.\n",
    .flag = flags,
    .n_flags = sizeof flags / sizeof flags[0],
    .takes = TAKES_JSON,
    .least = 1,
    .most = -1,
    .run = run};
