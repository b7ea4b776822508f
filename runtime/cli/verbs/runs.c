/* runs.c - `vwn runs`: which runs there are; tags, notes, and taking runs away.
 *
 * In:  a folder, or a word and runs.   Out: a table, or what has changed.
 */
#include "runtime/cli/cli.h"

#include <stdlib.h>
#include <string.h>

static int list(Call *call)
{
    int status;
    vwn_runs_options how = {.folder = call->n_operands ? call->operand[0] : NULL,
                            .sort = call_flag(call, "--sort"),
                            .reverse = call_flag(call, "--reverse") != NULL,
                            .json = call->json};
    if (call->n_operands > 1)
        return usage_error(call, "`vwn runs` takes one folder, or `rm RUN...`, `tag RUN TAG...` or `note RUN TEXT`");
    if (!call_open(call, &status))
        return status;
    how.filter = call_flags(call, "--filter", &how.n_filter);
    vwn_writer out = ui_stdout(&call->ui);
    vwn_status st = vwn_runs(call->ctx, &how, &out);
    free((void *)how.filter);
    return call_failed(call, st);
}

static int take_away(Call *call)
{
    int status;
    if (call->n_operands < 2)
        return usage_error(call, "`vwn runs rm` needs the folder of a run or a sweep: vwn runs rm runs/nano");
    if (!call_open(call, &status))
        return status;
    vwn_writer out = ui_stdout(&call->ui);
    vwn_status st = VWN_OK;
    for (int i = 1; i < call->n_operands && st == VWN_OK; i++)
        st = vwn_remove_run(call->ctx, call->operand[i], call->json, &out);
    return call_failed(call, st);
}

static int label(Call *call, bool tags)
{
    int status, n = call->n_operands - 2;
    vwn_label_options how = {.folder = call->n_operands > 1 ? call->operand[1] : NULL, .json = call->json};
    if (!how.folder)
        return usage_error(call, tags ? "`vwn runs tag` needs a run: vwn runs tag runs/nano good"
                                      : "`vwn runs note` needs a run: vwn runs note runs/nano 'the first one'");
    if (!tags && n > 1)
        return usage_error(call, "a note is one word for the shell: put it in quotes");
    if (!call_open(call, &status))
        return status;
    how.remove = call_flag(call, "--remove") != NULL;
    if (tags && n) {
        how.tag = call->operand + 2;
        how.n_tags = (size_t)n;
    }
    if (!tags)
        how.note = n ? call->operand[2] : how.remove ? "" : NULL;
    vwn_writer out = ui_stdout(&call->ui);
    return call_failed(call, vwn_label(call->ctx, &how, &out));
}

static int run(Call *call)
{
    const char *word = call->n_operands ? call->operand[0] : "";
    bool rm = !strcmp(word, "rm"), tag = !strcmp(word, "tag"), note = !strcmp(word, "note");
    bool listing = !rm && !tag && !note;
    static const char *const of_lists[] = {"--sort", "--reverse", "--filter"};
    for (size_t i = 0; i < sizeof of_lists / sizeof of_lists[0] && !listing; i++)
        if (call_flag(call, of_lists[i]))
            return usage_error(call, "`%s` is for the list of runs, not for `vwn runs %s`", of_lists[i], word);
    if (call_flag(call, "--remove") && !tag && !note)
        return usage_error(call, "`--remove` is for `vwn runs tag` and `vwn runs note`");
    return listing ? list(call) : rm ? take_away(call) : label(call, tag);
}

static const Flag flags[] = {
    {"--sort", "NAME",
     "by a column, or by a setting: loss, eval_loss, time, date, weights, train.seed, ... (else by folder)"},
    {"--reverse", NULL, "the greatest first"},
    {"--filter", "NAME=VALUE",
     "only runs with it, also != < <= > >= and ~ (has the text): state, tag, note, a column, a setting; repeatable"},
    {"--remove", NULL, "of tag and note: take them away"},
};
const Verb verb_runs = {
    .name = "runs",
    .operands = "[DIR] | rm|tag|note RUN...",
    .summary = "Lists all runs and sweeps below a folder; tags, notes, removal",
    .example = {{"vwn runs --filter state=trained --sort eval_loss", "what was trained below runs/, the best first"},
                {"vwn runs runs/nano",
                 "one run, and each of its starts: when, where, with which command, of which commit"}},
    .text =
        "vwn runs rm RUN..., vwn runs tag RUN TAG..., vwn runs note RUN TEXT\n"
        "States: running, trained (to its end), stopped (by --until), interrupted (Ctrl-C), diverged, failed, killed "
        "(ended\n"
        "without a word). Steps are those done, and those of the whole run. `loss` is that of the last step that was\n"
        "told, `eval` of the last evaluation. Settings are shown where the runs of the list differ in them.\n"
        "`rm` removes what vwn has made: a file of yours in such a folder stays, and the folder with it. It refuses a\n"
        "run that goes on, a link, and what belongs to another user. A folder that is called rm, tag or note is ./rm.\n"
        "Each start is a line of record.jsonl in the run; tags and note are in labels.json.\n",
    .flag = flags,
    .n_flags = sizeof flags / sizeof flags[0],
    .takes = TAKES_JSON,
    .least = 0,
    .most = -1,
    .run = run};
