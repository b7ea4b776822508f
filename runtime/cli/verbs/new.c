/* new.c - `vwn new`: a folder with a first model and a text, ready to train on a CPU, or with a model of transformers.
 *
 * In:  a folder that does not exist yet, or is empty.   Out: model.vwn in it, and text.txt.
 * The one idea: the text is made on the spot (sums such as "7 + 5 = 12", in an order that is
 * always the same), so that a first run needs nothing from elsewhere and its samples can be
 * judged at sight.
 */
#include "runtime/cli/cli.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

typedef struct Template {
    const char *name, *doc, *settings, *embed, *head;
} Template;

static const Template templates[] = {
    {.name = "nano",
     .doc = "## A small GPT on bytes. D is the width, L the number of layers.\n",
     .settings = "  connection = residual()\n",
     .embed = "  embed tokens { vocab = 256 }\n",
     .head = "  head lm { norm = rms_norm(eps = 1e-6) }\n"},
    {.name = "vwn",
     .doc = "## A small virtual-width network on bytes: the layers are D wide, the state that "
            "runs between\n"
            "## them 3/2 D, mixed by generalized hyper-connections with (m, n) = (2, 3).\n",
     .settings = "  connection = ghc(m = 2, n = 3, dynamic = true, reduce = linear(out = D))\n",
     .embed = "  embed tokens { vocab = 256, width = D * 3 / 2 }\n",
     .head = "  head lm { norm = rms_norm(eps = 1e-6) }\n"},
};

/* The model file: its parts around what the template says. */
static void put_model(FILE *f, const Template *t)
{
    fprintf(f, "edition = 1\nimport \"std/transformer\"\nimport \"std/connections\"\n\n%s", t->doc);
    fprintf(f, "let D = 96\nlet L = 2\n\nmodel %s {\n", t->name);
    fprintf(f,
            "  context    = 64\n  width      = D\n  mask       = causal\n"
            "  init       = normal(std = 0.05)\n"
            "  out_init   = normal(std = 0.02 / sqrt(2 * L))\n"
            "  pre_norm   = rms_norm(eps = 1e-6)\n%s\n%s\n",
            t->settings, t->embed);
    fprintf(f,
            "  for layer in 1..L {\n"
            "    attention { heads = 4, position = rope(base = 10_000) }\n"
            "    ffn       { hidden = 4 * D, activation = gelu }\n  }\n\n%s}\n\n",
            t->head);
    fprintf(f,
            "train {\n  data      = text_file(\"text.txt\", val = 5%%)\n"
            "  tokenizer = bytes()\n  batch     = 32 seqs\n  length    = 400 steps\n"
            "  seed      = 1\n  precision = fp32\n  clip      = 1.0\n\n"
            "  optimizer adamw {\n"
            "    lr           = cosine(peak = 4e-3, floor = 4e-4, warmup = 50 steps)\n"
            "    betas        = [0.9, 0.99]\n    eps          = 1e-8\n"
            "    weight_decay = 0.1\n"
            "    group vector { weight_decay = 0 }\n"
            "%s  }\n\n"
            "  eval       { every = 100 steps, batches = 4 }\n"
            "  checkpoint { every = 200 steps, keep = 2 }\n"
            "  log        { every = 10 steps }\n}\n",
            strcmp(t->name, "vwn") == 0 ? "    group static { weight_decay = 0 }\n" : "");
}

static void put_sums(FILE *f)
{
    unsigned long long state = 1;
    for (int i = 0; i < 24000; i++) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        int a = (int)(state >> 33) % 10;
        state = state * 6364136223846793005u + 1442695040888963407u;
        int b = (int)(state >> 33) % 10;
        fprintf(f, "%d + %d = %d\n", a, b, a + b);
    }
}

/* A new file; when there is one already, that is wrong use. */
static FILE *create(Call *call, char path[4096], const char *folder, const char *name, int *status)
{
    snprintf(path, 4096, "%s/%s", folder, name);
    FILE *f = fopen(path, "wx");
    *status = f ? VWN_OK : errno == EEXIST ? VWN_USAGE : VWN_ENVIRONMENT;
    if (!f)
        ui_error(&call->ui, "cannot make %s: %s", path, strerror(errno));
    return f;
}

static bool finish(Call *call, FILE *f, const char *path)
{
    bool fine = !ferror(f);
    if (fclose(f) != 0)
        fine = false;
    if (!fine)
        ui_error(&call->ui, "cannot write %s: %s", path, strerror(errno));
    return fine;
}

static int make_folder(Call *call, const char *folder)
{
    if (strlen(folder) > 3000)
        return usage_error(call, "the folder's name is too long");
    if (mkdir(folder, 0777) == 0 || errno == EEXIST)
        return VWN_OK;
    ui_error(&call->ui, "cannot make the folder %s: %s", folder, strerror(errno));
    return VWN_ENVIRONMENT;
}

static void tell_model(Call *call, const char *model)
{
    ui_print(&call->ui, "{\"v\":1,\"event\":\"new\",\"model\":");
    put_json_string(&call->ui, model, strlen(model));
}

/* A model of a folder of transformers. Nothing is made before all of it has been read. */
static int run_from(Call *call, const char *from)
{
    const char *folder = call->operand[0];
    char model[4096];
    int status;
    Text text = {0};
    vwn_writer into = text_writer(&text);
    if (!call_open(call, &status))
        return status;
    vwn_status st = vwn_from_hf(call->ctx, &(vwn_from_options){.folder = from}, &into);
    call_diagnostics(call, false, NULL);
    status = call_failed(call, st);
    FILE *f = NULL;
    if (status == VWN_OK && (status = make_folder(call, folder)) == VWN_OK)
        f = create(call, model, folder, "model.vwn", &status);
    if (f) {
        fwrite(text.s, 1, text.n, f);
        status = finish(call, f, model) ? VWN_OK : VWN_ENVIRONMENT;
    }
    text_free(&text);
    if (status != VWN_OK || call->ui.quiet)
        return status;
    if (call->json) {
        tell_model(call, model);
        ui_print(&call->ui, "}\n");
    } else {
        ui_print(
            &call->ui,
            "%s\n\nnext: put a text at %s/text.txt, and look at `train` in the file\nthen: vwn train %s, vwn export "
            "runs/NAME --hf DIR\n",
            model, folder, model);
    }
    return VWN_OK;
}

static int run(Call *call)
{
    static const char *const names[] = {"nano", "vwn", NULL};
    const char *folder = call->operand[0], *from = call_flag(call, "--from-hf");
    char model[4096], text[4096];
    int status, choice = call_choice(call, "--from", names, 0);
    if (choice < 0)
        return VWN_USAGE;
    if (from && call_flag(call, "--from"))
        return usage_error(call, "`--from` and `--from-hf` exclude each other");
    if (from)
        return run_from(call, from);
    if ((status = make_folder(call, folder)) != VWN_OK)
        return status;
    FILE *f = create(call, model, folder, "model.vwn", &status);
    if (!f)
        return status;
    put_model(f, &templates[choice]);
    if (!finish(call, f, model))
        return VWN_ENVIRONMENT;
    f = create(call, text, folder, "text.txt", &status);
    if (!f)
        return status;
    put_sums(f);
    if (!finish(call, f, text))
        return VWN_ENVIRONMENT;
    if (call->json) {
        tell_model(call, model);
        ui_print(&call->ui, ",\"text\":");
        put_json_string(&call->ui, text, strlen(text));
        ui_print(&call->ui, "}\n");
    } else if (!call->ui.quiet) {
        ui_print(&call->ui,
                 "%s\n%s\n\nnext: vwn train %s    # 5 to 20 s on two cores\nthen: vwn sample %s --temperature 0 "
                 "--tokens 4 --prompt '7 + 5 ='    # 7 + 5 = 12\n",
                 model, text, model, templates[choice].name);
    }
    return VWN_OK;
}

static const Flag flags[] = {
    {"--from", "nano|vwn", "a plain GPT, or one with a (2, 3) virtual width (else nano)"},
    {"--from-hf", "DIR",
     "a model of transformers, with the weights of its folder: Llama, Mistral, Qwen, OLMo, Gemma, Phi-3, GPT-2"},
};
const Verb verb_new = {
    .name = "new",
    .operands = "DIR",
    .summary = "Makes a folder with a first model and a text; it learns to add on a CPU in less than a minute",
    .example = {{"vwn new first", "a small GPT that learns the sums of two digits"},
                {"vwn new wide --from vwn", "the same with a virtual width"}},
    .text =
        "`--from-hf` reads config.json and the headers of safetensors: every key and every tensor must have a place. "
        "The\n"
        "file names the folder, from which a run then begins.\n",
    .flag = flags,
    .n_flags = 2,
    .takes = TAKES_JSON,
    .least = 1,
    .most = 1,
    .run = run};
