/* emit.c - `vwn emit`: a model as a folder of C or CUDA C that builds without vwn, or it or a part of it as a package for PyTorch.
 *
 * In:  a file.   Out: the folder; the names of its files on stdout.
 */
#include "runtime/cli/cli.h"

#include <string.h>

/* What each kind of folder takes. */
typedef enum Kind { KIND_C = 1, KIND_CUDA = 2, KIND_TORCH = 4, KIND_MODEL = KIND_C | KIND_CUDA } Kind;
static const struct {
    const char *word;
    Kind kind;
} kinds[] = {{"c", KIND_C}, {"cuda", KIND_CUDA}, {"torch", KIND_TORCH}};

static const struct {
    const char *flag;
    unsigned of;
    const char *why;
} takes[] = {
    {"--train", KIND_MODEL, "is for `vwn emit c` and `cuda`: a package for PyTorch has no training of its own"},
    {"--infer", KIND_MODEL, "is for `vwn emit c` and `cuda`: a package for PyTorch has no evaluation of its own"},
    {"--batch", KIND_MODEL, "is for `vwn emit c` and `cuda`: a package for PyTorch takes any number of sequences"},
    {"--fast", KIND_CUDA, "is for `vwn emit cuda`: on the CPU no order of a sum is faster"},
    {"--node", KIND_TORCH, "is for `vwn emit torch`"},
    {"--block", KIND_TORCH, "is for `vwn emit torch`"},
    {"--name", KIND_TORCH, "is for `vwn emit torch`"},
    {"--build", KIND_TORCH, "is for `vwn emit torch`"},
};

static void tell_next(Call *call, Kind kind, const vwn_emit_options *how)
{
    if (how->fast)
        ui_print(&call->ui, "\n--fast: gradients of embedding tables are added up in any order; two runs may "
                            "differ in their last bits\n");
    if (kind == KIND_TORCH)
        ui_print(&call->ui, "\nnext: pip install %s\n", how->folder);
    else
        ui_print(&call->ui,
                 kind == KIND_CUDA ? "\nnext: cd %s && cmake -S . -B build && cmake --build build && cp "
                                     "build/model .\nthen: cd %s && ./model eval TEXT\n"
                                   : "\nnext: make -C %s\nthen: cd %s && ./model eval TEXT\n",
                 how->folder, how->folder);
}

static int run(Call *call)
{
    int status;
    const char *language = call->operand[0];
    Kind kind = 0;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0]; i++)
        if (!strcmp(language, kinds[i].word))
            kind = kinds[i].kind;
    vwn_emit_options how = {.folder = call_flag(call, "-o"),
                            .force = call_flag(call, "--force") != NULL,
                            .cuda = kind == KIND_CUDA,
                            .torch = kind == KIND_TORCH,
                            .node = call_flag(call, "--node"),
                            .block = call_flag(call, "--block"),
                            .package = call_flag(call, "--name"),
                            .build = call_flag(call, "--build") != NULL,
                            .train = call_flag(call, "--train") != NULL,
                            .infer = call_flag(call, "--infer") != NULL,
                            .fast = call_flag(call, "--fast") != NULL,
                            .json = call->json};
    if (!kind)
        return usage_error(call, "`vwn emit` writes c, cuda or torch, not `%s`: vwn emit c FILE -o DIR", language);
    if (!how.folder || !*how.folder)
        return usage_error(call, "`vwn emit` needs `-o DIR`, the folder to write");
    if (how.train && how.infer)
        return usage_error(call, "`--train` and `--infer` exclude each other");
    if (how.node && how.block)
        return usage_error(call, "`--node` and `--block` exclude each other");
    for (size_t i = 0; i < sizeof takes / sizeof takes[0]; i++)
        if (call_flag(call, takes[i].flag) && !(takes[i].of & kind))
            return usage_error(call, "`%s` %s", takes[i].flag, takes[i].why);
    if (!call_quantity(call, "--batch", "seq", &how.batch_seqs))
        return VWN_USAGE;
    vwn_unit *unit;
    if (!call_open(call, &status) || !call_unit(call, 1, &unit, &status) || status != VWN_OK)
        return status;
    vwn_writer out = ui_stdout(&call->ui);
    vwn_status st = vwn_emit(unit, &how, &out);
    call_diagnostics(call, false, NULL);
    if (st == VWN_OK && !call->json && !call->ui.quiet)
        tell_next(call, kind, &how);
    return call_failed(call, st);
}

static const Flag flags[] = {
    {"-o", "DIR", "the folder to write; made when it is not there"},
    {"--train", NULL, "with training: an error when the file has none"},
    {"--infer", NULL, "only evaluation (else training too, if the file has it)"},
    {"--batch", "'8 seqs'", "sequences at a time (else the file's micro batch, or 1)"},
    {"--fast", NULL, "cuda: sums in any order where that is faster; runs differ in their last bits"},
    {"--node", "PATH", "torch: connections, of these sublayers: layer[*].ffn; '*': of all"},
    {"--block", "NAME", "torch: modules, by a path, layer[*].ffn, or the name of their block"},
    {"--name", "NAME", "torch: what the package is called (else the model's name)"},
    {"--build", NULL, "torch: compile its library, so that pip needs no C compiler"},
    {"--force", NULL, "write into a folder that holds other files"},
};
const Verb verb_emit = {
    .name = "emit",
    .operands = "c|cuda|torch FILE",
    .summary = "Writes a folder of C or CUDA C that evaluates and trains the model, or a package for PyTorch",
    .example = {{"vwn emit c model.vwn -o model_c", "then: make -C model_c"},
                {"vwn emit torch model.vwn -o model_torch", "then: pip install ./model_torch"}},
    .text = "The folder has a README.md that tells what each file is and how it is built. Equal "
            "input gives\nequal bytes. A model that needs a kernel which is not there in CUDA C "
            "yet is refused.\n"
            "`torch` writes a Python package: the model as an nn.Module, tokens in, logits or the loss out; with "
            "--block\na module of it; with --node a connection as read(state) and write(state, y), so that any layer "
            "of yours\nstands between. All is computed by the same kernels, forward and backward, and needs PyTorch "
            "and nothing\nof vwn.\n",
    .flag = flags,
    .n_flags = sizeof flags / sizeof flags[0],
    .takes = TAKES_SET | TAKES_JSON,
    .least = 2,
    .most = 2,
    .run = run};
