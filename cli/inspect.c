/* inspect.c - `vwn inspect`: what weights have become.   In: a run, or checkpoints.   Out: a table or JSON. */
#include "cli.h"

#include <string.h>

static int run(Call *call)
{
    static const char *const estimators[] = {"histogram", "kde", NULL}, *const by[] = {"tensor", NULL};
    int status;
    if (!call_flag(call, "--growth"))
        return usage_error(call, "say what to look at: `vwn inspect RUN --growth`");
    vwn_inspect_options how = {.source = call->operand,
                               .n_sources = (size_t)call->n_operands,
                               .step = call_flag(call, "--step"),
                               .tensors = call_flag(call, "--tensors"),
                               .bins = 100,
                               .json = call->json};
    int64_t seed = 1;
    int estimator = call_choice(call, "--noc", estimators, 0), each = call_choice(call, "--by", by, 1);
    if (estimator < 0 || each < 0 || !call_whole(call, "--bins", 1, 1 << 20, &how.bins) ||
        !call_whole(call, "--seed", 0, INT64_MAX, &seed))
        return VWN_USAGE;
    how.densities = estimator == 1;
    how.by_tensor = each == 0;
    how.samples = how.densities ? 3000 : 2000;
    if (!call_whole(call, "--samples", 1, 1 << 24, &how.samples))
        return VWN_USAGE;
    if (how.densities && call_flag(call, "--bins"))
        return usage_error(call, "`--bins` is of histograms: leave out `--noc kde`");
    how.seed = (uint64_t)seed;
    if (!call_open(call, &status))
        return status;
    vwn_writer out = ui_stdout(&call->ui);
    vwn_status st = vwn_inspect_growth(call->ctx, &how, &out);
    call_diagnostics(call, false, NULL);
    return call_failed(call, st);
}

static const Flag flags[] = {
    {"--growth", NULL, "how far a grown model is from the weights before: NOC, U_P, R, distances"},
    {"--step", "NAME", "of a run that grew several times: which growth step (else the last)"},
    {"--tensors", "PATH", "weights below a path, `layer[*].attention` (else those that grew)"},
    {"--by", "tensor", "also a table for each weight"},
    {"--noc", "histogram|kde", "how densities are estimated (else histogram)"},
    {"--bins", "N", "of a histogram (else 100)"},
    {"--samples", "N", "weights of each side in ranks and kernel densities (else 2,000; 3,000 with kde)"},
    {"--seed", "N", "of the choice of these (else 1)"},
};
const Verb verb_inspect = {.name = "inspect",
                           .operands = "RUN|CKPT...",
                           .summary = "Compares the weights of a grown model with those before it",
                           .example = {{"vwn inspect runs/nexus --growth", "every checkpoint since the last growth step"},
                                       {"vwn inspect before.safetensors grown.safetensors runs/nexus --growth",
                                        "before, right after, now"}},
                           .text = "With several operands the first is the checkpoint before a growth step. Of three and\n"
                                   "more the second is the grown model right after the step: R is measured from there.\n",
                           .flag = flags,
                           .n_flags = 8,
                           .takes = TAKES_JSON,
                           .least = 1,
                           .most = -1,
                           .run = run};
