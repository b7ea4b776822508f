/* grow.c - `vwn grow`: what a growth step does.   In: a file, a step, and perhaps a run.   Out: the plan, exit status 6 if it
 * changes anything; or a checkpoint of the grown model.
 */
#include "runtime/cli/cli.h"

#include <string.h>
#include <sys/stat.h>

static void on_event(void *user, const vwn_event *e)
{
    Call *call = user;
    const char *text = e->text ? e->text : "";
    if (call->json && e->json)
        ui_print(&call->ui, "%s\n", e->json);
    switch (e->kind) {
    case VWN_EVENT_OUTPUT: ui_say(&call->ui, "Output", "%s", text); break;
    case VWN_EVENT_BLOCK: ui_say(&call->ui, "New", "%s", text); break;
    case VWN_EVENT_GROWTH: ui_say(&call->ui, "Grown", "%s", text); break;
    case VWN_EVENT_CHECKPOINT: ui_say(&call->ui, "Saved", "%s", text); break;
    case VWN_EVENT_WARNING: ui_warning(&call->ui, "%s", text); break;
    default: break;
    }
}

/* The settings that a run was started with belong to its model. */
static const char *folder_of(const char *source, char folder[4096])
{
    struct stat st;
    size_t n = strlen(source);
    const char *at = strrchr(source, '@');
    if (stat(source, &st) && at)
        n = (size_t)(at - source);
    if (n >= 4096)
        return NULL;
    memcpy(folder, source, n);
    folder[n] = '\0';
    return !stat(folder, &st) && S_ISDIR(st.st_mode) ? folder : NULL;
}

static int run(Call *call)
{
    int status;
    char folder[4096];
    vwn_unit *unit;
    bool apply = call_flag(call, "--apply"), plan = call_flag(call, "--plan"), from = call->n_operands == 3;
    const char *to = call_flag(call, "-o"), *step = call->n_operands > 1 ? call->operand[call->n_operands - 1] : "";
    if (apply == plan)
        return usage_error(call, "say what to do: `vwn grow FILE STEP --plan` prints the step, `vwn grow RUN FILE STEP "
                                 "--apply -o OUT` does it");
    if (apply && (!from || !to || !*to))
        return usage_error(call, "`--apply` needs a run and a file to write: `vwn grow RUN FILE STEP --apply -o OUT`");
    if (plan && to)
        return usage_error(call, "`--plan` writes no file: `-o` is for `--apply`");
    if (from && ends_with(call->operand[0], ".vwn") && !ends_with(call->operand[1], ".vwn"))
        return usage_error(call, "the run stands before the file: did you mean `vwn grow %s %s %s %s`?",
                           call->operand[1], call->operand[0], step, apply ? "--apply" : "--plan");
    if (from)
        call->resume = folder_of(call->operand[0], folder);
    if (!call_open(call, &status) || !call_unit(call, from, &unit, &status))
        return status;
    vwn_writer out = ui_stdout(&call->ui);
    vwn_status st;
    if (from) {
        vwn_grow_options how = {.source = call->operand[0],
                                .step = step,
                                .apply_to = apply ? to : NULL,
                                .json = call->json,
                                .event = on_event,
                                .user = call};
        st = vwn_grow(unit, &how, &out);
        call_diagnostics(call, call->json, NULL);
    } else {
        vwn_report_options how = {.json = call->json, .program = step};
        st = vwn_write_report(unit, VWN_REPORT_GROWTH, &how, &out);
    }
    if (st == VWN_OK || st == VWN_CHANGES)
        return status ? status : (int)st;
    return call_failed(call, st);
}

static const Flag flags[] = {
    {"--plan", NULL, "print what happens to every tensor; exit status 6: something does"},
    {"--apply", NULL, "measure the step and write a checkpoint of the grown model; RUN stays as it is"},
    {"-o", "OUT.safetensors", "with --apply: the file to write"},
};
const Verb verb_grow = {.name = "grow",
                        .operands = "[RUN] FILE STEP",
                        .summary =
                            "Shows what a growth step takes, grows and adds, tensor by tensor; does it to a checkpoint",
                        .example = {{"vwn grow model.vwn to_300m --plan", "a difference"},
                                    {"vwn grow runs/model@1000 model.vwn to_300m --apply -o grown.safetensors",
                                     "the grown checkpoint, for eval, sample and start_from"}},
                        .flag = flags,
                        .n_flags = 3,
                        .takes = TAKES_SET | TAKES_JSON | TAKES_THREADS | TAKES_DEVICE,
                        .least = 1,
                        .most = 3,
                        .run = run};
