/* cost.c - `vwn cost`: what a model costs before it runs.   In: a file.   Out: a table or JSON.
 */
#include "runtime/cli/cli.h"

#include <malloc.h>

static int run(Call *call)
{
    int status;
    /* Two threads plan. A second arena of malloc lies in heaps of 64 MiB, of which blocks of huge pages waste half. */
    mallopt(M_ARENA_MAX, 1);
    vwn_report_options how = {.json = call->json};
    if (!call_quantity(call, "--batch", "seq", &how.batch_seqs) || !call_whole(call, "--ranks", 1, 1024, &how.ranks) ||
        !call_real(call, "--bandwidth", 1, 1e15, &how.bandwidth) || !call_real(call, "--latency", 0, 1e3, &how.latency))
        return VWN_USAGE;
    if (how.bandwidth > 0 && how.ranks < 2)
        return usage_error(call, "`--bandwidth` is that of several processes: say how many, as `--ranks 8`");
    if (call_flag(call, "--latency") && how.bandwidth <= 0)
        return usage_error(call, "`--latency` goes with a bandwidth in bytes a second, as `--bandwidth 50e9`");
    how.ranks = how.ranks > 1 ? how.ranks : 0;
    vwn_unit *unit;
    if (!call_open(call, &status) || !call_unit(call, 0, &unit, &status))
        return status;
    vwn_writer out = ui_stdout(&call->ui);
    vwn_status st = vwn_write_report(unit, VWN_REPORT_COST, &how, &out);
    return st == VWN_OK ? status : call_failed(call, st);
}

static const Flag flags[] = {
    {"--batch", "'8 seqs'", "sequences in memory at once (else the file's micro batch)"},
    {"--ranks", "8", "of so many processes: memory of each, and what they send each other"},
    {"--bandwidth", "50e9", "bytes a second that each of them sends and receives: how long that takes"},
    {"--latency", "5e-6", "seconds of an exchange, on top of its bytes (else 0)"},
};
const Verb verb_cost = {
    .name = "cost",
    .operands = "FILE",
    .summary = "Counts FLOPs per token and of the run, and the bytes that training needs, as planned",
    .example = {{"vwn cost model.vwn", "as the file says"},
                {"vwn cost model.vwn --ranks 8 --bandwidth 50e9", "each of eight processes, and their exchange"}},
    .text =
        "How long a step should take is said where `vwn doctor --measure` has measured the machine. On a\n"
        "GPU, `--device cuda:0`, memory is the GPU's, and so are the rates: `vwn doctor --measure --device cuda:0`.\n",
    .flag = flags,
    .n_flags = sizeof flags / sizeof flags[0],
    .takes = TAKES_SET | TAKES_JSON | TAKES_DEVICE,
    .least = 1,
    .most = 1,
    .run = run};
