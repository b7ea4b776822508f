/* resolve.c - `vwn resolve`: nothing left to defaults.
 *
 * In:  a file.   Out: one .vwn text that builds the identical model, with every override and
 * default written out (with --json as the string of one object); with --origins a table of
 * where each value came from.
 */
#include "runtime/cli/cli.h"

static int run(Call *call)
{
    int status;
    bool origins = call_flag(call, "--origins") != NULL;
    vwn_unit *unit;
    if (!call_open(call, &status) || !call_unit(call, 0, &unit, &status))
        return status;
    vwn_report_options how = {.json = call->json};
    Text text = {0};
    bool wrapped = call->json && !origins;
    vwn_writer out = wrapped ? text_writer(&text) : ui_stdout(&call->ui);
    vwn_report what = origins ? VWN_REPORT_ORIGINS : VWN_REPORT_RESOLVED;
    vwn_status st = vwn_write_report(unit, what, &how, &out);
    if (wrapped && st == VWN_OK) {
        ui_print(&call->ui, "{\"v\":1,\"event\":\"resolved\",\"text\":");
        put_json_string(&call->ui, text.s, text.n);
        ui_print(&call->ui, "}\n");
    }
    text_free(&text);
    return st == VWN_OK ? status : call_failed(call, st);
}

static const Flag flags[] = {
    {"--origins", NULL, "a table of all lets, their values and where they come from"},
};
const Verb verb_resolve = {.name = "resolve",
                           .operands = "FILE",
                           .summary = "Prints the file with every override and default written out",
                           .example = {{"vwn resolve model.vwn --set D=512 > fixed.vwn", "builds the same model"},
                                       {"vwn resolve model.vwn --origins", "where each let's value comes from"}},
                           .flag = flags,
                           .n_flags = 1,
                           .takes = TAKES_SET | TAKES_JSON,
                           .least = 1,
                           .most = 1,
                           .run = run};
