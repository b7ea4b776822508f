/* tokenize.c - `vwn tokenize`: texts as shards of token ids, and how far that is.   In: texts, a tokenizer.   Out: a folder.
 */
#include "runtime/cli/cli.h"

#include <math.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

typedef struct TokenizeShow {
    Call *call;
    double drawn; /* seconds, to draw at most ten times per second */
} TokenizeShow;

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void progress_line(char line[256], const vwn_tokenize_event *e)
{
    char bytes[32], tokens[32], rate[32], eta[32], share[32] = "", left[48] = "";
    ui_rate(bytes, (double)e->bytes);
    ui_rate(tokens, (double)e->tokens);
    ui_rate(rate, e->bytes_per_second);
    if (e->share >= 0)
        snprintf(share, sizeof share, "%3.0f %%  ", 100 * e->share);
    if (e->eta_seconds >= 0) {
        ui_duration(eta, e->eta_seconds);
        snprintf(left, sizeof left, "  eta %s", eta);
    }
    snprintf(line, 256, "%s%s tokens of %sB  %sB/s%s", share, tokens, bytes, rate, left);
}

static void on_event(void *user, const vwn_tokenize_event *e)
{
    TokenizeShow *show = user;
    Ui *ui = &show->call->ui;
    char line[256];
    if (show->call->json)
        return;
    if (e->text) {
        progress_line(line, e);
        if (ui->live)
            ui_progress_end(ui);
        ui_say(ui, "Shard", "%s  (%s)", e->text, line + strspn(line, " "));
    } else if (ui->live && now() - show->drawn >= 0.1) {
        show->drawn = now();
        ui_resize(ui);
        progress_line(line, e);
        ui_progress(ui, line);
    }
}

static vwn_status tokenize(Call *call, vwn_tokenize_options *how)
{
    vwn_writer out = ui_stdout(&call->ui);
    const char *path = how->tokenizer;
    if (path && ends_with(path, ".vwn")) {
        vwn_file_options file = {.path = path};
        how->tokenizer = NULL;
        vwn_status st = vwn_check(call->ctx, &file, &how->unit);
        call_diagnostics(call, false, NULL);
        if (st != VWN_OK && st != VWN_CHECK)
            return st;
    }
    interrupt_start(call);
    vwn_status st = vwn_tokenize(call->ctx, how, &out);
    interrupt_stop(call);
    ui_progress_end(&call->ui);
    call_diagnostics(call, false, NULL);
    return st;
}

static int run(Call *call)
{
    int status;
    int64_t shard = 0, seed = 0;
    TokenizeShow show = {.call = call};
    const char *separator = call_flag(call, "--separator");
    vwn_tokenize_options how = {.text = call->operand,
                                .n_texts = (size_t)call->n_operands,
                                .folder = call_flag(call, "-o"),
                                .tokenizer = call_flag(call, "--tokenizer"),
                                .field = call_flag(call, "--field"),
                                .separator = separator && !strcmp(separator, "none") ? "" : separator,
                                .shuffle = call_flag(call, "--shuffle") != NULL,
                                .resume = call_flag(call, "--resume") != NULL,
                                .overwrite = call_flag(call, "--overwrite") != NULL,
                                .json = call->json,
                                .event = on_event,
                                .user = &show};
    if (!how.folder || !*how.folder)
        return usage_error(call, "shards are written into a folder: say which with `-o DIR`");
    if (!how.tokenizer)
        return usage_error(
            call, "ids are made by a tokenizer: `--tokenizer tokenizer.json`, or a file of a model that names one");
    if (how.resume && how.overwrite)
        return usage_error(call, "`--resume` and `--overwrite` exclude each other");
    if (separator && !*separator)
        return usage_error(call, "`--separator` is the text of a token, or `none`");
    if (!call_whole(call, "--shard-tokens", 1, INT64_MAX / 8, &shard) ||
        !call_whole(call, "--shuffle", 0, INT64_MAX, &seed))
        return VWN_USAGE;
    how.shard_tokens = shard;
    how.seed = (uint64_t)seed;
    if (!call_open(call, &status))
        return status;
    return call_failed(call, tokenize(call, &how));
}

static const Flag flags[] = {
    {"-o", "DIR", "where shards go, and tokens.json, which says what they are"},
    {"--tokenizer", "FILE", "a tokenizer.json, or a .vwn file that names a tokenizer"},
    {"--field", "NAME", "texts are JSON lines, and this member of each is a document (of .jsonl files: else text)"},
    {"--separator", "TOKEN|none", "the token that documents begin with (else the tokenizer's end of text)"},
    {"--shard-tokens", "N", "tokens of a shard (else 100000000)"},
    {"--shuffle", "SEED", "texts, and documents in blocks of 64 MiB, in an order of this seed"},
    {"--resume", NULL, "go on behind the last whole shard"},
    {"--overwrite", NULL, "begin anew in a folder that has shards"},
};
const Verb verb_tokenize = {
    .name = "tokenize",
    .operands = "TEXT|-...",
    .summary = "Turns texts into shards of token ids, on all cores",
    .example = {{"vwn tokenize corpus.txt -o shards --tokenizer t.json", "a text is one document"},
                {"vwn tokenize data/*.jsonl.zst -o shards --tokenizer t.json", "each line is one: its member `text`"}},
    .text =
        "Texts may be packed by gzip or zstd; - is the standard input. Each document begins with the separator. A file "
        "trains on\n"
        "shards by `data = token_files(\"shards/*.bin\")`, which refuses those of another vocabulary. Shards are the "
        "same "
        "bytes\n"
        "with any number of threads, and after a call that was stopped or killed and has gone on with --resume.\n",
    .flag = flags,
    .n_flags = sizeof flags / sizeof flags[0],
    .takes = TAKES_JSON | TAKES_THREADS,
    .least = 1,
    .most = -1,
    .run = run};
