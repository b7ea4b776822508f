/* params.c - `vwn params`: where the weights are.   In: a file.   Out: a table or JSON. */
#include "runtime/cli/cli.h"

static int run(Call *call)
{
    static const char *const by[] = {"node", "layer", "group", "tensor", NULL};
    static const vwn_report report[] = {VWN_REPORT_PARAMS_BY_NODE, VWN_REPORT_PARAMS_BY_LAYER,
                                        VWN_REPORT_PARAMS_BY_GROUP, VWN_REPORT_PARAMS_BY_TENSOR};
    int status, choice = call_choice(call, "--by", by, 4);
    if (choice < 0)
        return VWN_USAGE;
    bool losses = call_flag(call, "--losses") != NULL;
    if (losses && choice < 4)
        return usage_error(call, "`--by` and `--losses` exclude each other");
    vwn_unit *unit;
    if (!call_open(call, &status) || !call_unit(call, 0, &unit, &status))
        return status;
    vwn_report_options how = {.json = call->json};
    vwn_writer out = ui_stdout(&call->ui);
    vwn_report what = losses ? VWN_REPORT_LOSSES : choice < 4 ? report[choice] : VWN_REPORT_PARAMS;
    vwn_status st = vwn_write_report(unit, what, &how, &out);
    return st == VWN_OK ? status : call_failed(call, st);
}

static const Flag flags[] = {
    {"--by", "node|layer|group|tensor", "one line per node, per layer, per group or per tensor"},
    {"--losses", NULL, "the losses that are trained, and the metrics"},
};
const Verb verb_params = {.name = "params",
                          .operands = "FILE",
                          .summary = "Counts the weights: stored, live and dead, by node and by group",
                          .example = {{"vwn params model.vwn", "a summary"},
                                      {"vwn params model.vwn --by tensor --set D=512", "every tensor, another width"}},
                          .flag = flags,
                          .n_flags = 2,
                          .takes = TAKES_SET | TAKES_JSON,
                          .least = 1,
                          .most = 1,
                          .run = run};
