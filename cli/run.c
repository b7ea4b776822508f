/* run.c - `vwn eval` and `vwn sample`: what a trained model says.
 *
 * In:  a run directory or a checkpoint.   Out: losses, or text as it is made.
 */
#include "cli.h"

static int run_eval(Call *call)
{
    int status;
    vwn_eval_options how = {.source = call->operand[0],
                            .data = call_flag(call, "--data"),
                            .last = call_flag(call, "--last") != NULL,
                            .json = call->json};
    if (!call_whole(call, "--batches", 1, INT64_MAX, &how.batches))
        return VWN_USAGE;
    if (!call_open(call, &status))
        return status;
    interrupt_start(call);
    vwn_writer out = ui_stdout(&call->ui);
    vwn_status st = vwn_eval(call->ctx, &how, &out);
    call_diagnostics(call, false, NULL);
    return call_failed(call, st);
}

/* Sampled text is shown at once, also in a pipe. */
static void put_now(void *user, const char *text, size_t n)
{
    ui_put(user, text, n);
    ui_flush(user);
}

static int run_sample(Call *call)
{
    int status;
    vwn_sample_options how = {.source = call->operand[0],
                              .prompt = call_flag(call, "--prompt"),
                              .tokens = 200,
                              .temperature = 0.8,
                              .top_p = 0.95,
                              .last = call_flag(call, "--last") != NULL,
                              .json = call->json};
    int64_t seed = 1;
    if (!how.prompt)
        how.prompt = "\n";
    if (!call_whole(call, "--tokens", 1, 1 << 30, &how.tokens) ||
        !call_whole(call, "--seed", 0, INT64_MAX, &seed) ||
        !call_real(call, "--temperature", 0, 100, &how.temperature) ||
        !call_real(call, "--top-p", 0, 1, &how.top_p))
        return VWN_USAGE;
    if (how.top_p == 0)
        return usage_error(call, "`--top-p 0` leaves no token to choose");
    how.seed = (uint64_t)seed;
    if (!call_open(call, &status))
        return status;
    interrupt_start(call);
    call->ui.running = call->ctx;
    vwn_writer out = {put_now, &call->ui};
    vwn_status st = vwn_sample(call->ctx, &how, &out);
    call_diagnostics(call, false, NULL);
    return call_failed(call, st);
}

static const Flag eval_flags[] = {
    {"--data", "PATH", "other data of the same kind (else the run's validation split)"},
    {"--batches", "N", "how many batches (else as the file says)"},
    {"--last", NULL, "the weights of the last step, not the average that the run keeps"},
};
const Verb verb_eval = {
    .name = "eval",
    .operands = "RUN|CKPT",
    .summary = "Measures the losses of a trained model on held-out data",
    .example = {{"vwn eval runs/nano", "the last checkpoint of a run"},
                {"vwn eval runs/nano --data other.txt --batches 50", "on another text"}},
    .flag = eval_flags,
    .n_flags = 3,
    .takes = TAKES_JSON | TAKES_THREADS | TAKES_DEVICE,
    .least = 1,
    .most = 1,
    .run = run_eval};

static const Flag sample_flags[] = {
    {"--prompt", "TEXT", "what the text begins with (else a newline)"},
    {"--tokens", "N", "how many tokens to add (else 200)"},
    {"--temperature", "X", "0 takes the most likely token; above 1 is wilder (else 0.8)"},
    {"--top-p", "X", "choose among the likeliest tokens that hold this share (else 0.95)"},
    {"--seed", "N", "of the random choices (else 1)"},
    {"--last", NULL, "the weights of the last step, not the average that the run keeps"},
};
const Verb verb_sample = {
    .name = "sample",
    .operands = "RUN|CKPT",
    .summary = "Writes text with a trained model",
    .example = {{"vwn sample runs/nano --prompt 'In the beginning'", "200 tokens"},
                {"vwn sample runs/nano --temperature 0 --tokens 50", "the likeliest text"}},
    .flag = sample_flags,
    .n_flags = 6,
    .takes = TAKES_JSON | TAKES_THREADS | TAKES_DEVICE,
    .least = 1,
    .most = 1,
    .run = run_sample};
