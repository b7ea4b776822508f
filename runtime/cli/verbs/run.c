/* run.c - `vwn eval`, `vwn sample` and `vwn serve`: what a trained model says.
 *
 * In:  a run directory or a checkpoint.   Out: losses, accuracies on a task, or text as it is made.
 */
#include "runtime/cli/cli.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void on_task(void *user, const vwn_task_event *e)
{
    Call *call = user;
    char line[128], rate[32], eta[32] = "";
    if (call->json || !call->ui.live)
        return;
    ui_rate(rate, e->tokens_per_second);
    if (e->eta_seconds >= 0)
        ui_duration(eta, e->eta_seconds);
    snprintf(line, sizeof line, "%3.0f %%  %lld of %lld requests  %s tokens/s  eta %s",
             100 * (double)e->done / (double)e->requests, (long long)e->done, (long long)e->requests, rate, eta);
    ui_resize(&call->ui);
    ui_progress(&call->ui, line);
    if (e->done == e->requests)
        ui_progress_end(&call->ui);
}

/* `--task`: requests that are ranked instead of losses. */
static int run_task(Call *call)
{
    static const char *const others[] = {"--data", "--batches", "--batch"};
    int status;
    Text each = {0};
    const char *path = call_flag(call, "-o");
    vwn_writer into = text_writer(&each), out = ui_stdout(&call->ui);
    vwn_task_options how = {.source = call->operand[0],
                            .task = call_flag(call, "--task"),
                            .each = path ? &into : NULL,
                            .last = call_flag(call, "--last") != NULL,
                            .json = call->json,
                            .event = on_task,
                            .user = call};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (call_flag(call, others[i]))
            return usage_error(call, "`--task` takes its texts from its file: leave `%s` out", others[i]);
    if (!call_open(call, &status))
        return status;
    interrupt_start(call);
    vwn_status st = vwn_eval_task(call->ctx, &how, &out);
    ui_progress_end(&call->ui);
    call_diagnostics(call, false, NULL);
    status = call_failed(call, st);
    if (path && st == VWN_OK)
        return save_text(call, path, &each) ? VWN_OK : VWN_ENVIRONMENT;
    text_free(&each);
    return status;
}

static int run_eval(Call *call)
{
    if (call_flag(call, "--task"))
        return run_task(call);
    if (call_flag(call, "-o"))
        return usage_error(call, "`-o` is for `--task`: a line for each request");
    int status;
    vwn_eval_options how = {.source = call->operand[0],
                            .data = call_flag(call, "--data"),
                            .last = call_flag(call, "--last") != NULL,
                            .json = call->json};
    if (!call_whole(call, "--batches", 1, INT64_MAX, &how.batches) ||
        !call_quantity(call, "--batch", "seq", &how.batch_seqs))
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

/* Adds the lines of `text` behind the prompts that are there; cuts the text into them. */
static bool add_lines(const char ***prompts, size_t *n, Text *text)
{
    size_t lines = 1;
    for (size_t i = 0; i < text->n; i++)
        lines += text->s[i] == '\n';
    const char **all = realloc(*prompts, (*n + lines) * sizeof *all);
    if (!all)
        return false;
    *prompts = all;
    for (char *s = text->s, *end = s + text->n; s < end;) {
        char *line = memchr(s, '\n', (size_t)(end - s));
        all[(*n)++] = s;
        if (!line)
            break; /* what text_put wrote ends with a 0 */
        *line = 0;
        if (line > s && line[-1] == '\r')
            line[-1] = 0;
        s = line + 1;
    }
    return true;
}

/* Every --prompt, then the lines of --prompts, else a line break. The caller frees both. */
static bool read_prompts(Call *call, const char ***prompts, size_t *n, Text *text, int *status)
{
    const char *path = call_flag(call, "--prompts");
    *prompts = call_flags(call, "--prompt", n);
    const char *why = path ? read_whole_file(path, text) : NULL;
    if (why) {
        ui_error(&call->ui, "cannot read %s: %s", path, why);
        *status = VWN_ENVIRONMENT;
        return false;
    }
    if (path && (!text->n || memchr(text->s, 0, text->n))) {
        *status = usage_error(call, text->n ? "%s holds a byte 0" : "%s holds no prompt", path);
        return false;
    }
    if (!*prompts || (path && !add_lines(prompts, n, text))) {
        ui_error(&call->ui, "there is no memory for the prompts");
        *status = VWN_ENVIRONMENT;
        return false;
    }
    if (!*n)
        (*prompts)[(*n)++] = "\n"; /* call_flags leaves room for one more */
    return true;
}

static int sample_prompts(Call *call, vwn_sample_options *how)
{
    int status;
    if (!call_open(call, &status))
        return status;
    interrupt_start(call);
    call->ui.running = call->ctx;
    vwn_writer out = {put_now, &call->ui};
    vwn_status st = vwn_sample(call->ctx, how, &out);
    call_diagnostics(call, false, NULL);
    return call_failed(call, st);
}

static int run_sample(Call *call)
{
    int status = 0;
    vwn_sample_options how = {.source = call->operand[0],
                              .tokens = 200,
                              .temperature = 0.8,
                              .top_p = 0.95,
                              .last = call_flag(call, "--last") != NULL,
                              .json = call->json,
                              .recompute = call_flag(call, "--recompute") != NULL};
    int64_t seed = 1, texts = 1;
    if (!call_whole(call, "--tokens", 1, 1 << 30, &how.tokens) || !call_whole(call, "-n", 1, 1 << 20, &texts) ||
        !call_whole(call, "--seed", 0, INT64_MAX, &seed) ||
        !call_real(call, "--temperature", 0, 100, &how.temperature) ||
        !call_whole(call, "--top-k", 1, INT64_MAX, &how.top_k) || !call_real(call, "--top-p", 0, 1, &how.top_p) ||
        !call_real(call, "--min-p", 0, 1, &how.min_p) || !call_real(call, "--repetition", 0, 100, &how.repetition))
        return VWN_USAGE;
    how.texts = (size_t)texts;
    if (how.top_p == 0)
        return usage_error(call, "`--top-p 0` leaves no token to choose");
    if (call_flag(call, "--repetition") && how.repetition == 0)
        return usage_error(call, "`--repetition 0` leaves nothing of what speaks for a token");
    how.seed = (uint64_t)seed;
    Text text = {0};
    const char **prompts, **stops = call_flags(call, "--stop", &how.n_stops);
    if (!stops) {
        ui_error(&call->ui, "there is no memory for the texts of `--stop`");
        return VWN_ENVIRONMENT;
    }
    how.stops = stops;
    if (read_prompts(call, &prompts, &how.n_prompts, &text, &status)) {
        how.prompts = prompts;
        status = sample_prompts(call, &how);
    }
    free(prompts);
    free(stops);
    text_free(&text);
    return status;
}

static const Flag eval_flags[] = {
    {"--data", "PATH", "other data of the same kind (else the run's validation split)"},
    {"--batches", "N", "how many batches (else as the file says)"},
    {"--batch", "'8 seqs'", "sequences in memory at once (else the file's micro batch); less needs less memory"},
    {"--task", "FILE", "rank the continuations of each request by log-likelihood instead: JSON lines, maybe packed"},
    {"-o", "FILE", "with --task: a line of JSON for each request"},
    {"--last", NULL, "the weights of the last step, not the average that the run keeps"},
};
const Verb verb_eval = {
    .name = "eval",
    .operands = "RUN|CKPT",
    .summary = "Measures the losses of a trained model on held-out data, or its accuracy on a task",
    .example = {{"vwn eval runs/nano", "the last checkpoint of a run"},
                {"vwn eval runs/nano --task arc_easy.jsonl.gz", "how often the right answer is the likeliest"}},
    .text = "A line of a task is {\"context\": ..., \"continuations\": [...], \"gold\": 0}, or, where contexts are "
            "compared,\n"
            "{\"contexts\": [...], \"continuation\": ..., \"gold\": 0}; \"id\" may be there. acc, acc_norm and bits "
            "per byte\n"
            "are those of lm-evaluation-harness.\n",
    .flag = eval_flags,
    .n_flags = sizeof eval_flags / sizeof eval_flags[0],
    .takes = TAKES_JSON | TAKES_THREADS | TAKES_DEVICE,
    .least = 1,
    .most = 1,
    .run = run_eval};

static const Flag sample_flags[] = {
    {"--prompt", "TEXT", "what the text begins with (else a newline); repeatable"},
    {"--prompts", "FILE", "more prompts, one on each line; - is the standard input"},
    {"--tokens", "N", "how many tokens to add to each prompt (else 200)"},
    {"--temperature", "X", "0 takes the most likely token; above 1 is wilder (else 0.8)"},
    {"--top-k", "N", "choose among the N likeliest tokens (else all)"},
    {"--top-p", "X", "of these, among the likeliest that hold this share (else 0.95; 1 is all)"},
    {"--min-p", "X", "of these, among those at least X times as likely as the likeliest (else all)"},
    {"--repetition", "X", "divide what speaks for a token that the text has by X; above 1 there are fewer repeats"},
    {"--stop", "TEXT", "end behind the token that completes TEXT; may be given several times"},
    {"-n", "N", "texts of each prompt (else 1)"},
    {"--seed", "N", "of the random choices (else 1); each text has its own"},
    {"--last", NULL, "the weights of the last step, not the average that the run keeps"},
    {"--recompute", NULL, "predict each token from the whole context, keeping nothing"},
};
const Verb verb_sample = {
    .name = "sample",
    .operands = "RUN|CKPT",
    .summary = "Writes text with a trained model",
    .example = {{"vwn sample runs/nano --prompt 'In the beginning'", "200 tokens"},
                {"vwn sample runs/nano -n 3 --top-k 40 --min-p 0.05", "three texts of fewer surprises"}},
    .text = "A text that outgrows the model's context is continued from its last part, which\n"
            "begins at the text's start, then moves on by half a context at a time. Several\n"
            "texts are made together, are written in order with a blank line between, and do\n"
            "not depend on each other.\n"
            "The temperature divides the logits, then --top-k, --top-p and --min-p choose, in this\n"
            "order; what is left is drawn by its probability.\n",
    .flag = sample_flags,
    .n_flags = sizeof sample_flags / sizeof sample_flags[0],
    .takes = TAKES_JSON | TAKES_THREADS | TAKES_DEVICE,
    .least = 1,
    .most = 1,
    .run = run_sample};

static int run_serve(Call *call)
{
    int status;
    int64_t port = 8000;
    vwn_serve_options how = {.source = call->operand[0],
                             .queue = 256,
                             .seconds = 600,
                             .last = call_flag(call, "--last") != NULL,
                             .json = call->json};
    if (!call_whole(call, "--port", 0, 65535, &port) || !call_whole(call, "--queue", 1, 1 << 20, &how.queue) ||
        !call_whole(call, "--timeout", 1, 1 << 20, &how.seconds))
        return VWN_USAGE;
    how.port = (int)port;
    if (!call_open(call, &status))
        return status;
    interrupt_start(call);
    vwn_writer out = {put_now, &call->ui};
    vwn_status st = vwn_serve(call->ctx, &how, &out);
    call_diagnostics(call, false, NULL);
    return call_failed(call, st);
}

static const Flag serve_flags[] = {
    {"--port", "N", "of 127.0.0.1 (else 8000); 0 is any that is free, and the line that is printed says which"},
    {"--queue", "N", "texts that may wait while others are computed (else 256); more are refused with status 429"},
    {"--timeout", "N", "seconds that a request may take (else 600)"},
    {"--last", NULL, "the weights of the last step, not the average that the run keeps"},
};
const Verb verb_serve = {
    .name = "serve",
    .operands = "RUN|CKPT",
    .summary = "Answers requests of this machine over HTTP with a trained model",
    .example = {{"vwn serve runs/nano", "http://127.0.0.1:8000/v1/completions, until Ctrl-C"},
                {"vwn serve runs/nano --port 0 --json", "any free port, which a program reads"}},
    .text =
        "POST /v1/completions takes what OpenAI's does: texts or ids, stream, echo, logprobs. lm-evaluation-harness "
        "scores the\n"
        "model by it (--model local-completions, base_url=http://127.0.0.1:8000/v1/completions). Also there: "
        "/tokenize,\n"
        "/detokenize, /tokenizer_info, /v1/models, /health. Requests of other hosts and of pages of other origins are\n"
        "refused. Texts are computed together, each at its position.\n",
    .flag = serve_flags,
    .n_flags = sizeof serve_flags / sizeof serve_flags[0],
    .takes = TAKES_JSON | TAKES_THREADS | TAKES_DEVICE,
    .least = 1,
    .most = 1,
    .run = run_serve};
