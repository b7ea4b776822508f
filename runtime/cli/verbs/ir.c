/* ir.c - `vwn ir`: what each stage of the compiler made.
 *
 * In:  a file, or with --from the text of a graph or of kernels.   Out: the stage's text; stages
 * tensor, gradient, simple and kernel read back with --from.
 */
#include "runtime/cli/cli.h"

#include <string.h>

static const char *const stages[] = {"ast",     "resolved", "tensor", "gradient", "simple", "fuse", "kernel",
                                     "threads", "c",        "cuda",   "plan",     "cubin",  NULL};
enum { AST, RESOLVED, TENSOR, FUSE = 5, KERNEL, THREADS, C_TEXT, CUDA, PLAN, CUBIN, PASSES, PASS };
static const vwn_report reports[] = {VWN_REPORT_AST,    VWN_REPORT_RESOLVED, VWN_REPORT_TENSOR, VWN_REPORT_GRADIENT,
                                     VWN_REPORT_SIMPLE, VWN_REPORT_FUSE,     VWN_REPORT_KERNEL, VWN_REPORT_THREADS,
                                     VWN_REPORT_C,      VWN_REPORT_CUDA,     VWN_REPORT_PLAN,   VWN_REPORT_PLAN,
                                     VWN_REPORT_PASSES, VWN_REPORT_PASS};
static const char *const programs[] = {"train", "accumulate", "keep",       "join",    "update",
                                       "eval",  "count",      "eval_count", "predict", NULL};

static int from_graph(Call *call, const char *path, int stage, const vwn_report_options *how, const vwn_writer *out)
{
    if (stage < TENSOR || stage == CUBIN)
        return usage_error(call, "`--from` reads a graph, which has no stage `%s`", stages[stage]);
    if (call_flag(call, "--set") || call_flag(call, "--program"))
        return usage_error(call, "`--from` reads a graph; `--set` and `--program` are for files");
    Text text = {0};
    const char *why = read_whole_file(path, &text);
    if (why) {
        ui_error(&call->ui, "cannot read %s: %s", path, why);
        text_free(&text);
        return VWN_INPUT;
    }
    vwn_file_options graph = {.path = path, .text = text.s, .text_length = text.n};
    vwn_status st = vwn_graph_report(call->ctx, &graph, reports[stage], how, out);
    call_diagnostics(call, false, NULL);
    text_free(&text);
    return call_failed(call, st);
}

static void on_event(void *user, const vwn_event *e)
{
    Call *call = user;
    if (e->kind == VWN_EVENT_COMPILE)
        ui_say(&call->ui, "Compiled", "%s", e->text);
    else
        ui_warning(&call->ui, "%s", e->text);
}

static vwn_status write_cubins(Call *call, vwn_unit *unit, const vwn_report_options *how)
{
    vwn_cubin_options cubin = {.arch = call_flag(call, "--arch"),
                               .program = how->program,
                               .batch_seqs = how->batch_seqs,
                               .json = call->json,
                               .event = on_event,
                               .user = call};
    vwn_writer out = ui_stdout(&call->ui);
    return vwn_cubins(unit, &cubin, &out);
}

/* The stage that is asked for; a word that is none is the name of a pass. */
static int stage_of(Call *call, vwn_report_options *how)
{
    const char *word = call_flag(call, "--stage");
    int stage = 0;
    if (call_flag(call, "--passes"))
        return word ? usage_error(call, "`--passes` lists all passes: `--stage` has no meaning"), -1 : PASSES;
    while (word && stages[stage] && strcmp(stages[stage], word) != 0)
        stage++;
    if (word && !stages[stage]) {
        how->pass = word;
        return PASS;
    }
    return word ? stage : TENSOR;
}

/* For which target; false after a usage error. */
static bool find_target(Call *call, int stage, vwn_report_options *how)
{
    static const char *const targets[] = {"cpu", "gpu", NULL};
    int target = call_choice(call, "--target", targets, 0);
    how->gpu = target == 1;
    if (target < 0)
        return false;
    if (call_flag(call, "--target") && stage != FUSE && stage != KERNEL && stage != PLAN && stage < PASSES) {
        usage_error(call, "`--target` is for the stages fuse, kernel and plan, for passes, and for `--passes`");
        return false;
    }
    return true;
}

static int run(Call *call)
{
    vwn_report_options how = {0};
    int status, stage = stage_of(call, &how);
    int program = call_choice(call, "--program", programs, 0);
    if (stage < 0 || program < 0 || !find_target(call, stage, &how))
        return VWN_USAGE;
    how.program = call_flag(call, "--program") ? programs[program] : NULL;
    if (!call_quantity(call, "--batch", "seq", &how.batch_seqs))
        return VWN_USAGE;
    const char *from = call_flag(call, "--from");
    if ((from != NULL) == (call->n_operands == 1))
        return usage_error(call, "`vwn ir` needs either FILE or `--from TEXT`");
    if (call_flag(call, "--positions") && !from)
        return usage_error(call, "`--positions` is for `--from`: a file says it by `context`");
    if (call_flag(call, "--arch") && stage != CUBIN)
        return usage_error(call, "`--arch` is for `--stage cubin`");
    if (!call_whole(call, "--positions", 1, 1 << 30, &how.positions))
        return VWN_USAGE;
    if (!call_open(call, &status))
        return status;
    Text text = {0};
    vwn_writer memory = text_writer(&text), direct = ui_stdout(&call->ui);
    const vwn_writer *out = call->json ? &memory : &direct;
    if (from) {
        status = from_graph(call, from, stage, &how, out);
    } else {
        vwn_unit *unit;
        if (!call_unit(call, 0, &unit, &status))
            return status;
        vwn_status st =
            stage == CUBIN ? write_cubins(call, unit, &how) : vwn_write_report(unit, reports[stage], &how, out);
        if (st != VWN_OK)
            status = call_failed(call, st);
    }
    if (call->json && text.s) {
        ui_print(&call->ui, "{\"v\":1,\"event\":\"ir\",\"stage\":\"%s\",\"text\":",
                 stage == PASSES ? "passes"
                 : stage == PASS ? how.pass
                                 : stages[stage]);
        put_json_string(&call->ui, text.s, text.n);
        ui_print(&call->ui, "}\n");
    }
    text_free(&text);
    return status;
}

static const Flag flags[] = {
    {"--stage", "ast|resolved|tensor|gradient|simple|fuse|kernel|threads|c|cuda|plan|cubin|PASS",
     "what is printed (else tensor)"},
    {"--passes", NULL, "list the passes of the compiler in their order, with what each did"},
    {"--target", "cpu|gpu", "of fuse, kernel, plan and passes: for what is planned (else cpu)"},
    {"--program", "train|accumulate|update|eval|predict", "whose graph"},
    {"--batch", "'8 seqs'", "sequences that plans are made for (else the file's micro batch)"},
    {"--from", "TEXT", "read a graph or kernels, as printed, instead of a file; `-` is stdin"},
    {"--positions", "N", "with --from: positions per sequence that plans are made for (else 1)"},
    {"--arch", "sm_90a", "with --stage cubin: the GPUs it is for (else the one here, or sm_80)"},
};
const Verb verb_ir = {.name = "ir",
                      .operands = "FILE",
                      .summary = "Prints what a stage of the compiler made of a file",
                      .example = {{"vwn ir model.vwn --stage c", "the C text of every kernel"},
                                  {"vwn ir model.vwn --stage cubin --arch sm_90a", "registers and spills on a GPU"}},
                      .text =
                          "The program is train when the file trains, else predict, unless --program says it.\n"
                          "tensor is the forward graph of a program, with the gradients that it asks for declared;\n"
                          "gradient has them as nodes. Stages tensor, gradient and simple read back with --from and\n"
                          "go on as the file would, in float32; kernel reads back too, for stages kernel and c.\n"
                          "threads has the kernels of a GPU, with who of a block does what; it does not read back.\n"
                          "PASS is any pass that --passes lists: what it has made, of a graph, of every kernel or of\n"
                          "all launches. A comment stands where it has removed a line, and behind each barrier of a\n"
                          "GPU's kernel the accesses that it orders. Passes of GPUs alone need no --target.\n"
                          "cubin compiles the kernels for GPUs with NVRTC, those of all programs of a run unless\n"
                          "--program says it, and tells what each uses; it needs the CUDA toolkit and no GPU.\n",
                      .flag = flags,
                      .n_flags = 8,
                      .takes = TAKES_SET | TAKES_JSON,
                      .least = 0,
                      .most = 1,
                      .run = run};
