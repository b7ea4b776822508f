/* grow.c - `vwn grow`: what a growth step does.   In: a file, a step.   Out: the plan, exit status 6 if it changes anything. */
#include "cli.h"

static int run(Call *call)
{
    int status;
    vwn_unit *unit;
    if (!call_flag(call, "--plan"))
        return usage_error(call, "say what to do: `vwn grow FILE STEP --plan` prints the step");
    if (!call_open(call, &status) || !call_unit(call, 0, &unit, &status))
        return status;
    vwn_report_options how = {.json = call->json, .program = call->operand[1]};
    vwn_writer out = ui_stdout(&call->ui);
    vwn_status st = vwn_write_report(unit, VWN_REPORT_GROWTH, &how, &out);
    if (st == VWN_OK || st == VWN_CHANGES)
        return status ? status : (int)st;
    return call_failed(call, st);
}

static const Flag flags[] = {
    {"--plan", NULL, "print what happens to every tensor; exit status 6: something does"},
};
const Verb verb_grow = {.name = "grow",
                        .operands = "FILE STEP",
                        .summary = "Shows what a growth step takes, grows and adds, tensor by tensor",
                        .example = {{"vwn grow model.vwn to_300m --plan", "a difference"},
                                    {"vwn grow model.vwn to_300m --plan --json",
                                     "every tensor, axis and block"}},
                        .flag = flags,
                        .n_flags = 1,
                        .takes = TAKES_SET | TAKES_JSON,
                        .least = 2,
                        .most = 2,
                        .run = run};
