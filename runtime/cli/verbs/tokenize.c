/* tokenize.c - `vwn tokenize`: texts as shards of token ids, and how far that is.   In: texts, a tokenizer.   Out: a folder.
 */
#include "runtime/cli/cli.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct TokenizeShow {
    Call *call;
    double drawn; /* seconds, to draw at most ten times per second */
} TokenizeShow;

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
    } else if (ui->live && ui_seconds() - show->drawn >= 0.1) {
        show->drawn = ui_seconds();
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

/* "32k", "50257": tokens of a vocabulary; -1 after an error message. */
static int64_t vocabulary_size(Call *call)
{
    const char *text = call_flag(call, "--train");
    char *end;
    long long n = strtoll(text, &end, 10);
    bool fine = isdigit((unsigned char)*text) && n > 0 && n < 1 << 22;
    if (fine && *end == 'k') {
        n *= 1000;
        end++;
    }
    if (fine && !*end)
        return n;
    usage_error(call, "`--train %s`: the tokens of the vocabulary are needed, such as `--train 32k`", text);
    return -1;
}

static void on_training(void *user, const vwn_tokenize_event *e)
{
    TokenizeShow *show = user;
    Ui *ui = &show->call->ui;
    char line[256], bytes[32], rate[32], eta[32] = "";
    if (show->call->json || !ui->live || (ui_seconds() - show->drawn < 0.1 && !e->text))
        return;
    show->drawn = ui_seconds();
    ui_rate(bytes, (double)e->bytes);
    ui_rate(rate, e->bytes_per_second);
    if (e->eta_seconds >= 0)
        ui_duration(eta, e->eta_seconds);
    if (e->tokens)
        snprintf(line, sizeof line, "%3.0f %%  %lld tokens  eta %s", 100 * e->share, (long long)e->tokens, eta);
    else if (e->share >= 0)
        snprintf(line, sizeof line, "%3.0f %%  pieces of %sB  %sB/s  eta %s", 100 * e->share, bytes, rate, eta);
    else
        snprintf(line, sizeof line, "pieces of %sB  %sB/s", bytes, rate);
    ui_resize(ui);
    ui_progress(ui, line);
    if (e->text)
        ui_progress_end(ui);
}

/* `--train`: a tokenizer of the texts instead of their shards. */
static int train(Call *call)
{
    static const char *const others[] = {"--tokenizer", "--shard-tokens", "--shuffle", "--resume"};
    int status;
    TokenizeShow show = {.call = call};
    Text file = {0};
    vwn_writer into = text_writer(&file), out = ui_stdout(&call->ui);
    const char *separator = call_flag(call, "--separator"), *path = call_flag(call, "-o");
    vwn_vocabulary_options how = {.text = call->operand,
                                  .n_texts = (size_t)call->n_operands,
                                  .field = call_flag(call, "--field"),
                                  .separator = separator && !strcmp(separator, "none") ? "" : separator,
                                  .split = call_flag(call, "--split"),
                                  .json = call->json,
                                  .file = &into,
                                  .event = on_training,
                                  .user = &show};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (call_flag(call, others[i]))
            return usage_error(call, "`--train` makes a tokenizer and no shards: leave `%s` out", others[i]);
    if (!path || !ends_with(path, ".json"))
        return usage_error(call, "`--train` writes a tokenizer: say where with `-o tokenizer.json`");
    if (separator && !*separator)
        return usage_error(call, "`--separator` is the text of a token, or `none`");
    if (access(path, F_OK) == 0 && !call_flag(call, "--overwrite"))
        return usage_error(call, "%s is there already: `--overwrite` replaces it", path);
    if ((how.tokens = vocabulary_size(call)) < 0 ||
        !call_whole(call, "--pieces", 1000, INT64_MAX / 8, &how.pieces_most))
        return VWN_USAGE;
    if (!call_open(call, &status))
        return status;
    interrupt_start(call);
    vwn_status st = vwn_train_tokenizer(call->ctx, &how, &out);
    interrupt_stop(call);
    ui_progress_end(&call->ui);
    status = call_failed(call, st);
    if (st != VWN_OK)
        text_free(&file);
    return st != VWN_OK ? status : save_text(call, path, &file) ? VWN_OK : VWN_ENVIRONMENT;
}

static int run(Call *call)
{
    if (call_flag(call, "--train"))
        return train(call);
    if (call_flag(call, "--split") || call_flag(call, "--pieces"))
        return usage_error(call, "`%s` is for `--train`: a tokenizer that is there says itself how a text is cut",
                           call_flag(call, "--split") ? "--split" : "--pieces");
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
    {"-o", "DIR|FILE.json", "where shards go, and tokens.json, which says what they are; with --train a tokenizer"},
    {"--tokenizer", "FILE", "a tokenizer.json, or a .vwn file that names a tokenizer"},
    {"--field", "NAME", "texts are JSON lines, and this member of each is a document (of .jsonl files: else text)"},
    {"--separator", "TOKEN|none", "the token that documents begin with (else the tokenizer's end of text)"},
    {"--train", "N", "make a tokenizer of N tokens instead, such as 32k: byte-level BPE, of these texts"},
    {"--split", "PATTERN", "with --train: how texts are cut into pieces (else as GPT-2's tokenizer does)"},
    {"--pieces", "N",
     "with --train: different pieces that are kept at once, beyond them the rarest go (else 16000000)"},
    {"--shard-tokens", "N", "tokens of a shard (else 100000000)"},
    {"--shuffle", "SEED", "texts, and documents in blocks of 64 MiB, in an order of this seed"},
    {"--resume", NULL, "go on behind the last whole shard"},
    {"--overwrite", NULL, "begin anew in a folder that has shards; replace a tokenizer"},
};
const Verb verb_tokenize = {
    .name = "tokenize",
    .operands = "TEXT|-...",
    .summary = "Turns texts into shards of token ids, on all cores, or into a tokenizer",
    .example = {{"vwn tokenize corpus.txt -o shards --tokenizer t.json", "a text is one document"},
                {"vwn tokenize data/*.jsonl.zst --train 32k -o t.json",
                 "a tokenizer of the member `text` of each line"}},
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
