/* predict.c - what every launch of a step should take on a GPU that nobody has here, from its
 * machine code.
 *
 *     predict FILE [--gpu h100|h200|a100|b200] [--program NAME] [--batch '8 seqs']
 *             [--set PATH=EXPR]... [--json]
 *     predict --fit LINES [--gpu ...] [--json]
 *
 * In:  a file, NVRTC and nvdisasm of the CUDA toolkit; no GPU. LINES: what the first call prints
 *      with --json, and an object {"event":"measured","kernel":NAME,"seconds":X} for each kernel
 *      that was measured.
 * Out: a table, or an object a line: "predicted" for launches that are alike (counts, limits,
 *      seconds), last "predicted_step"; of a fit the constants of the model ("fitted") and a
 *      "residual" for each kernel. Status: as `vwn` (2: wrong arguments, 5: no toolkit).
 */
#include "fit.h"
#include "perf_report.h"

#include <stdio.h>
#include <stdlib.h>

#include "runtime/api.h"
#include "runtime/use/cubins.h"

typedef struct Predict {
    const char *file, *gpu, *fit;
    const char **set;
    size_t n_set;
    vwn_cubin_options how;
    vwn_unit *unit;
    const Gpu *of;
    Ctx *ctx; /* of a fit */
} Predict;

static void put_stream(void *stream, const char *text, size_t n) { fwrite(text, 1, n, stream); }

static void on_event(void *user, const vwn_event *e)
{
    (void)user;
    if (e->kind == VWN_EVENT_WARNING)
        fprintf(stderr, "warning: %s\n", e->text);
}

static void put_predicted(void *user, const CubinsMade *made)
{
    const Predict *p = user;
    Arena *a = made->arena;
    char why[512];
    const char *tool;
    if (!disassembler_find(a, &tool, why))
        ctx_raise(arena_ctx(a), ST_ENVIRONMENT, "%s", why);
    PerfProgram *program = NEW_ARRAY(a, PerfProgram, made->n_program + 1);
    PerfCode *code = NEW_ARRAY(a, PerfCode, made->n_kernel + 1);
    for (size_t i = 0; i < made->n_program; i++)
        program[i] = (PerfProgram){made->program[i].name, made->program[i].plan, made->program[i].runs,
                                   perf_memory(a, made->program[i].plan, made->unit->model)};
    for (size_t i = 0; i < made->n_kernel; i++)
        code[i] = (PerfCode){made->kernel[i], &made->code[i]};
    PerfReport r = {.arena = a,
                    .gpu = p->of,
                    .disassembler = tool,
                    .program = program,
                    .n_program = made->n_program,
                    .code = code,
                    .n_code = made->n_kernel};
    Buf b = buf_new(a);
    perf_report(&r, &b, p->how.json);
    fwrite(b.s, 1, b.n, stdout);
}

static Status body(void *user)
{
    Predict *p = user;
    const CubinsUse use = {.step = true, .call = put_predicted, .user = p};
    return cubins_make(p->unit->context, p->unit->unit, &p->how, &use);
}

static int usage(const char *why)
{
    fprintf(stderr,
            "error: %s\nuse: predict FILE [--gpu h100|h200|a100|b200] [--program NAME] [--batch '8 "
            "seqs'] [--set PATH=EXPR]... [--json]\n"
            "     predict --fit LINES [--gpu ...] [--json]\n",
            why);
    return ST_USAGE;
}

/* NULL, or what is wrong. */
static const char *arguments(Predict *p, int argc, char **argv)
{
    for (int i = 1; i < argc; i++) {
        const char *value = i + 1 < argc ? argv[i + 1] : NULL;
        char *end = NULL;
        if (!strcmp(argv[i], "--json")) {
            p->how.json = true;
            continue;
        }
        if (strncmp(argv[i], "--", 2)) {
            if (p->file)
                return "one file is predicted";
            p->file = argv[i];
            continue;
        }
        if (!value)
            return "a flag has no value";
        i++;
        if (!strcmp(argv[i - 1], "--gpu"))
            p->gpu = value;
        else if (!strcmp(argv[i - 1], "--fit"))
            p->fit = value;
        else if (!strcmp(argv[i - 1], "--program"))
            p->how.program = value;
        else if (!strcmp(argv[i - 1], "--set"))
            p->set[p->n_set++] = value;
        else if (!strcmp(argv[i - 1], "--batch")) {
            p->how.batch_seqs = strtoll(value, &end, 10);
            if (p->how.batch_seqs < 1 || (*end && strcmp(end, " seqs") && strcmp(end, " seq")))
                return "`--batch` is a number of sequences";
        } else
            return "a flag that is not known";
    }
    p->of = gpu_named(p->gpu);
    p->how.arch = p->of ? p->of->arch : NULL;
    if (p->fit && (p->file || p->n_set || p->how.program || p->how.batch_seqs))
        return "`--fit` reads what was measured, and no file";
    return !p->file && !p->fit ? "there is no file" : !p->of ? "known GPUs are h100, h200, a100 and b200" : NULL;
}

/* ---- fitting ---- */

static Status fit_body(void *user)
{
    const Predict *p = user;
    Ctx *ctx = p->ctx;
    char why[256];
    FitKernel *k;
    size_t n, lost;
    FILE *f = fopen(p->fit, "rb");
    if (!f)
        ctx_raise(ctx, ST_INPUT, "cannot read %s", p->fit);
    Buf text = buf_new(ctx->program), out = buf_new(ctx->program);
    char part[4096];
    for (size_t got; (got = fread(part, 1, sizeof part, f)) > 0;)
        buf_put(&text, part, got);
    fclose(f);
    if (!fit_read(ctx->program, text.s, text.n, &k, &n, &lost, why))
        ctx_raise(ctx, ST_INPUT, "%s: %s", p->fit, why);
    if (lost)
        fprintf(stderr, "warning: %zu kernels were measured and are not predicted\n", lost);
    Fit fitted;
    fit_constants(p->of, k, n, &fitted);
    fit_report(&fitted, k, n, &out, p->how.json);
    fwrite(out.s, 1, out.n, stdout);
    return ST_OK;
}

static int fit(Predict *p)
{
    p->ctx = ctx_new(NULL);
    if (!p->ctx)
        return ST_ENVIRONMENT;
    Status st = guarded(p->ctx, fit_body, p);
    if (st != ST_OK)
        fprintf(stderr, "error: %s\n", p->ctx->message);
    ctx_free(p->ctx);
    return (int)st;
}

int main(int argc, char **argv)
{
    Predict p = {.gpu = "h100", .how.event = on_event, .set = calloc((size_t)argc, sizeof *p.set)};
    const char *why = p.set ? arguments(&p, argc, argv) : "there is no memory";
    if (why) {
        free(p.set);
        return usage(why);
    }
    if (p.fit) {
        free(p.set);
        return fit(&p);
    }
    const vwn_file_options file = {.path = p.file, .set = p.set, .n_set = p.n_set, .no_sweeps = true};
    const vwn_writer err = {put_stream, stderr};
    vwn_context *ctx = vwn_open(NULL);
    vwn_status st = ctx ? vwn_check(ctx, &file, &p.unit) : VWN_ENVIRONMENT;
    if (ctx && vwn_diagnostics(ctx, &err, false, false, NULL) == 0 && st == VWN_OK)
        st = api_run(ctx, body, &p);
    if (st != VWN_OK && ctx && *vwn_message(ctx))
        fprintf(stderr, "error: %s\n", vwn_message(ctx));
    vwn_close(ctx);
    free(p.set);
    return (int)st;
}
