/* bench.c - `vwn bench`: how fast a file trains here, and where the time goes.
 *
 * In:  a file; perhaps an earlier result.   Out: a table or JSON on stdout, remarks on stderr.
 */
#include "runtime/cli/cli.h"

#include <string.h>

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
    if (!call_whole(call, "--steps", 1, 100000, &how.steps))
        return VWN_USAGE;
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
};
const Verb verb_bench = {
    .name = "bench",
    .operands = "FILE",
    .summary = "Measures training steps: time, share of the machine's peak, memory, start-up",
    .example = {{"vwn bench model.vwn --kernels", "where the time of a step goes"},
                {"vwn bench model.vwn --against old.json", "what has become slower"}},
    .text = "Nothing is written. Where the file's data is missing, it is drawn at random. `of copy` and\n"
            "`of peak` are shares of a non-temporal copy and of multiply-adds in registers, both\n"
            "measured in the same run with all threads; of a GPU, of a copy and of a product of random\n"
            "numbers. Times are the best of all steps. The fields of --json are described in\n"
            "runtime/vwn.h.\n",
    .flag = flags,
    .n_flags = 3,
    .takes = TAKES_SET | TAKES_JSON | TAKES_THREADS | TAKES_DEVICE,
    .least = 1,
    .most = 1,
    .run = run};
