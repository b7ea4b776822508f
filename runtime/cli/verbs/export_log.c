/* export_log.c - `vwn export-log` and `vwn export`: runs for other programs.
 *
 * In:  runs.   Out: events as CSV, JSON lines or a folder of TensorBoard event files; a trained model as a folder of transformers.
 */
#include "runtime/cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { PATH = 4096 };

/* The last part of "runs/a/". */
static void last_part(const char *path, char out[PATH])
{
    size_t n = strlen(path), from;
    while (n > 1 && path[n - 1] == '/')
        n--;
    for (from = n; from && path[from - 1] != '/';)
        from--;
    snprintf(out, PATH, "%.*s", (int)(n - from), path + from);
}

/* DIR/NAME/events.out.tfevents.0.vwn: a folder for each run, as TensorBoard wants it. The same file again when the run has gone on. */
static int write_one(Call *call, const char *folder, const char *run)
{
    char name[PATH], path[2 * PATH];
    Text text = {0};
    vwn_export_options how = {.run = &run, .n_runs = 1, .form = VWN_EXPORT_TENSORBOARD};
    vwn_writer into = text_writer(&text);
    vwn_status st = vwn_export_log(call->ctx, &how, &into);
    int status = call_failed(call, st);
    if (st != VWN_OK) {
        text_free(&text);
        return status;
    }
    last_part(run, name);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    if ((mkdir(folder, 0777) != 0 && errno != EEXIST) || (mkdir(path, 0777) != 0 && errno != EEXIST)) {
        ui_error(&call->ui, "cannot make %s: %s", path, strerror(errno));
        text_free(&text);
        return VWN_ENVIRONMENT;
    }
    size_t n = strlen(path);
    snprintf(path + n, sizeof path - n, "/events.out.tfevents.0.vwn");
    if (!save_text(call, path, &text))
        return VWN_ENVIRONMENT;
    if (call->json) {
        ui_print(&call->ui, "{\"v\":1,\"event\":\"export\",\"file\":");
        put_json_string(&call->ui, path, strlen(path));
        ui_print(&call->ui, "}\n");
    }
    return VWN_OK;
}

typedef struct RunNames {
    char **v;
    int n;
} RunNames;

static void keep_name(void *user, const char *run)
{
    RunNames *names = user;
    char **more = realloc(names->v, (size_t)(names->n + 1) * sizeof *more);
    if (!more)
        return;
    names->v = more;
    names->v[names->n] = strdup(run);
    names->n += names->v[names->n] != NULL;
}

static int write_all(Call *call, const char *folder, const RunNames *runs)
{
    char name[PATH], other[PATH];
    int status = VWN_OK;
    for (int i = 0; i < runs->n; i++)
        for (int k = 0; k < i; k++) {
            last_part(runs->v[i], name);
            last_part(runs->v[k], other);
            if (!strcmp(name, other))
                return usage_error(call, "`%s` and `%s` would be one folder `%s`: export them into two", runs->v[k],
                                   runs->v[i], name);
        }
    for (int i = 0; i < runs->n && status == VWN_OK; i++)
        status = write_one(call, folder, runs->v[i]);
    return status;
}

static int write_folder(Call *call, const char *folder)
{
    RunNames runs = {0};
    vwn_status st = vwn_each_run(call->ctx, call->operand, (size_t)call->n_operands, keep_name, &runs);
    int status = st == VWN_OK ? write_all(call, folder, &runs) : call_failed(call, st);
    for (int i = 0; i < runs.n; i++)
        free(runs.v[i]);
    free(runs.v);
    return status;
}

static int run(Call *call)
{
    static const char *const ends[] = {".csv", ".json", ".jsonl", NULL};
    int status;
    bool board = call_flag(call, "--tensorboard"), csv = call_flag(call, "--csv");
    const char *to = call_flag(call, "-o");
    if (csv && (board || call->json))
        return usage_error(call, "`--csv`, `--tensorboard` and `--json` are different forms: choose one");
    if (to && !strcmp(to, "-"))
        to = NULL;
    if (board && !to)
        return usage_error(call, "`--tensorboard` writes a folder: say which with `-o DIR`");
    if (board && (ends_with(to, ".csv") || ends_with(to, ".json")))
        return usage_error(call, "`--tensorboard` writes a folder, and `%s` is the name of a file", to);
    if (!board && to && file_ending(to, ends) < 0)
        return usage_error(call, "`-o %s`: the name must end in .csv, .json or .jsonl", to);
    for (int i = 0; i < call->n_operands; i++)
        if (file_ending(call->operand[i], ends) >= 0 && !is_folder(call->operand[i]))
            return usage_error(call, "`%s` is no run: the file to write is named by `-o %s`", call->operand[i],
                               call->operand[i]);
    if (!call_open(call, &status))
        return status;
    if (board)
        return write_folder(call, to);
    Text text = {0};
    vwn_export_options how = {.run = call->operand,
                              .n_runs = (size_t)call->n_operands,
                              .form = call->json ? VWN_EXPORT_JSON : VWN_EXPORT_CSV};
    vwn_writer into = text_writer(&text), out = ui_stdout(&call->ui);
    vwn_status st = vwn_export_log(call->ctx, &how, to ? &into : &out);
    status = call_failed(call, st);
    if (st == VWN_OK && to)
        return save_text(call, to, &text) ? VWN_OK : VWN_ENVIRONMENT;
    text_free(&text);
    return status;
}

static const Flag flags[] = {
    {"--csv", NULL, "a row for each event (what is written without a form)"},
    {"--tensorboard", NULL, "an event file for each run, in folders below DIR"},
    {"-o", "FILE.csv|FILE.json|FILE.jsonl|DIR|-", "where it goes; else, and with -, stdout"},
};
const Verb verb_export_log = {
    .name = "export-log",
    .operands = "RUN|SWEEP|FOLDER...",
    .summary = "Writes the events of runs as CSV, or for TensorBoard",
    .example = {{"vwn export-log runs/a runs/b -o events.csv", "every number that the runs have written"},
                {"vwn export-log runs/* --tensorboard -o board", "then: tensorboard --logdir board"}},
    .text = "For TensorBoard the settings of a run are its hyperparameters, and curves are of what training does: no "
            "clocks\n"
            "among them. Events have the seconds of training and no date: there the last one is dated by its file. "
            "There is\n"
            "no Parquet, for which Debian 12 has no library: other programs read the CSV as it is.\n",
    .flag = flags,
    .n_flags = 3,
    .takes = TAKES_JSON,
    .least = 1,
    .most = -1,
    .run = run};

/* ---- vwn export ---- */

static int run_export(Call *call)
{
    static const char *const types[] = {"float32", "bfloat16", "float16", NULL};
    int status, type = call_choice(call, "--dtype", types, 0);
    vwn_hf_options how = {.run = call->operand[0],
                          .folder = call_flag(call, "--hf"),
                          .family = call_flag(call, "--family"),
                          .last = call_flag(call, "--last") != NULL,
                          .json = call->json};
    if (type < 0)
        return VWN_USAGE;
    how.dtype = types[type];
    if (!how.folder || !*how.folder)
        return usage_error(call, "`vwn export` needs `--hf DIR`, the folder to write");
    if (!call_open(call, &status))
        return status;
    vwn_writer out = ui_stdout(&call->ui);
    vwn_status st = vwn_export_hf(call->ctx, &how, &out);
    call_diagnostics(call, false, NULL);
    return call_failed(call, st);
}

static const Flag export_flags[] = {
    {"--hf", "DIR", "the folder to write; made when it is not there"},
    {"--family", "NAME",
     "of several that compute the same: llama, qwen3, ... (else the one that the model is called by)"},
    {"--dtype", "float32|bfloat16|float16", "what numbers are stored in (else float32)"},
    {"--last", NULL, "the weights of the last step, not the average that the run keeps"},
};
const Verb verb_export = {
    .name = "export",
    .operands = "RUN|CKPT",
    .summary = "Writes a trained model for transformers, where it has such a model",
    .example = {{"vwn export runs/nano --hf nano_hf", "then: AutoModelForCausalLM.from_pretrained(\"nano_hf\")"},
                {"vwn export runs/nano@1000 --hf nano_hf --dtype bfloat16", "another checkpoint, in half the room"}},
    .text = "The folder has model.safetensors, config.json and the tokenizer's file. A model that transformers would "
            "compute\n"
            "otherwise is refused: its graph is compared with that of the family. `vwn new DIR --from-hf DIR` goes the "
            "other way.\n",
    .flag = export_flags,
    .n_flags = 4,
    .takes = TAKES_JSON,
    .least = 1,
    .most = 1,
    .run = run_export};
