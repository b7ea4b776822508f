/* emit.c - `vwn emit`: a model as a folder of C or CUDA C that builds without vwn.
 *
 * In:  a file.   Out: the folder; the names of its files on stdout.
 */
#include "runtime/cli/cli.h"

#include <string.h>

static int run(Call *call)
{
    int status;
    const char *language = call->operand[0];
    vwn_emit_options how = {.folder = call_flag(call, "-o"),
                            .force = call_flag(call, "--force") != NULL,
                            .cuda = !strcmp(language, "cuda"),
                            .train = call_flag(call, "--train") != NULL,
                            .infer = call_flag(call, "--infer") != NULL,
                            .fast = call_flag(call, "--fast") != NULL,
                            .json = call->json};
    if (!how.cuda && strcmp(language, "c") != 0)
        return usage_error(call, "`vwn emit` writes c or cuda, not `%s`: vwn emit c FILE -o DIR", language);
    if (!how.folder || !*how.folder)
        return usage_error(call, "`vwn emit` needs `-o DIR`, the folder to write");
    if (how.train && how.infer)
        return usage_error(call, "`--train` and `--infer` exclude each other");
    if (how.fast && !how.cuda)
        return usage_error(call, "`--fast` is for `vwn emit cuda`: on the CPU no order of a sum is faster");
    if (!call_quantity(call, "--batch", "seq", &how.batch_seqs))
        return VWN_USAGE;
    vwn_unit *unit;
    if (!call_open(call, &status) || !call_unit(call, 1, &unit, &status) || status != VWN_OK)
        return status;
    vwn_writer out = ui_stdout(&call->ui);
    vwn_status st = vwn_emit(unit, &how, &out);
    call_diagnostics(call, false, NULL);
    if (st == VWN_OK && how.fast && !call->json && !call->ui.quiet)
        ui_print(&call->ui, "\n--fast: gradients of embedding tables are added up in any order; two runs may "
                            "differ in their last bits\n");
    if (st == VWN_OK && !call->json && !call->ui.quiet)
        ui_print(&call->ui,
                 how.cuda ? "\nnext: cd %s && cmake -S . -B build && cmake --build build && cp "
                            "build/model .\nthen: cd %s && ./model eval TEXT\n"
                          : "\nnext: make -C %s\nthen: cd %s && ./model eval TEXT\n",
                 how.folder, how.folder);
    return call_failed(call, st);
}

static const Flag flags[] = {
    {"-o", "DIR", "the folder to write; made when it is not there"},
    {"--train", NULL, "with training: an error when the file has none"},
    {"--infer", NULL, "only evaluation (else training too, if the file has it)"},
    {"--batch", "'8 seqs'", "sequences at a time (else the file's micro batch, or 1)"},
    {"--fast", NULL, "cuda: sums in any order where that is faster; runs differ in their last bits"},
    {"--force", NULL, "write into a folder that holds other files"},
};
const Verb verb_emit = {.name = "emit",
                        .operands = "c|cuda FILE",
                        .summary = "Writes a folder of C or CUDA C that evaluates and trains the model without vwn",
                        .example = {{"vwn emit c model.vwn -o model_c", "then: make -C model_c"},
                                    {"vwn emit cuda model.vwn -o model_cuda", "for a GPU of NVIDIA's"}},
                        .text = "The folder has a README.md that tells what each file is and how it is built. Equal "
                                "input gives\nequal bytes. A model that needs a kernel which is not there in CUDA C "
                                "yet is refused.\n",
                        .flag = flags,
                        .n_flags = 6,
                        .takes = TAKES_SET | TAKES_JSON,
                        .least = 2,
                        .most = 2,
                        .run = run};
