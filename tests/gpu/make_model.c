/* make_model.c - a model's training step as the folder of `vwn emit cuda`, to be measured on a GPU.
 *
 *     make_model FOLDER FILE SEQUENCES [PATH=EXPR...]
 *
 * In:  a file, how many sequences a step has, overrides. One without `train` gets that of tests/support/examples.h.
 * Out: FOLDER with the files of the emitted folder, without weights, and calls.txt: for each call of
 *      the programs train and update a line `program number name bytes flops kind where`.
 * The one idea: what a call should cost stands in the plan, so a time has something beside it.
 */
#include <stdio.h>
#include <sys/stat.h>

#include "compiler/export/export.h"
#include "compiler/plan/plan.h"
#include "support/examples.h"

typedef struct Wanted {
    const char *folder, *file;
    int64_t sequences;
    const char **set;
    size_t n_set;
} Wanted;

static void write_file(Ctx *ctx, const char *folder, const char *name, const char *text,
                       size_t n)
{
    const char *path = arena_printf(ctx->program, "%s/%s", folder, name);
    FILE *f = fopen(path, "wb");
    if (!f || fwrite(text, 1, n, f) != n || fclose(f) != 0)
        vwn_bug(ctx, "%s could not be written", path);
}

static const char *kind_of(const Plan *p, const Launch *l)
{
    Half half = l->kind == LAUNCH_MATMUL ? l->matmul.half : HALF_NONE;
    for (uint32_t k = 0; l->kind == LAUNCH_KERNEL && k < l->n_buffer; k++)
        half = half ? half : p->buffer[l->buffer[k]].half;
    return half ? half_word(half) : "f32";
}

/* Calls that round weights are made once, in the first run, which is not measured. */
static void put_calls(Buf *b, Ctx *ctx, const char *program, const Graph *g,
                      const PlanOptions *how)
{
    const Plan *p = plan_build(ctx, ctx->program, plan_graph(g, ctx->program, how), how);
    size_t number = 0;
    for (size_t i = p->n_cast; i < p->n_launch; i++) {
        const Launch *l = &p->launch[i];
        bool product = l->kind == LAUNCH_MATMUL;
        const char *name = product ? "product" : l->kind == LAUNCH_COPY ? "parts" : p->kernel[l->kernel].name;
        if (!product && l->rows <= 0)
            continue;
        buf_printf(b, "%s %zu %s %.0f %.0f %s %s\n", program, number++,
                   name, l->bytes, l->flops, kind_of(p, l),
                   l->name && *l->name ? l->name : "-");
    }
}

static void make(Ctx *ctx, void *arg)
{
    const Wanted *w = arg;
    const char *text = trained_text(ctx, w->file, false);
    CheckOptions how = {.path = w->file, .text = text, .text_length = strlen(text), .set = w->set, .n_set = w->n_set};
    Unit *u = check_file(ctx, &how);
    if (!u || !u->model || !u->train || diag_errors(ctx)) {
        show_diagnostics(ctx);
        vwn_bug(ctx, "%s has no model that trains", w->file);
    }
    Train *t = NEW(ctx->program, Train);
    *t = *u->train;
    t->batch_seqs = t->micro_seqs = w->sequences;
    u->train = t;
    ExportOptions x = {.unit = u,
                       .train = t,
                       .batch = w->sequences,
                       .context = t->context,
                       .data = &t->data,
                       .separator = -1,
                       .seed = 1,
                       .cuda = true};
    ExportFolder folder = {0};
    export_folder(&folder, ctx, ctx->program, &x);
    mkdir(w->folder, 0777);
    for (size_t i = 0; i < folder.n; i++)
        write_file(ctx, w->folder, folder.v[i].name, folder.v[i].text, folder.v[i].length);
    Buf b = buf_new(ctx->program), unused = buf_new(ctx->program);
    PlanLayout layout; /* the programs of a folder share it, in this order */
    plan_layout_init(&layout, ctx->program);
    PlanOptions plan = {
        .B = x.batch, .T = x.context, .target = &target_gpu, .half = train_half(t), .layout = &layout};
    put_calls(&unused, ctx, "eval", step_held_out(u->model, t, ctx->program), &plan);
    put_calls(&b, ctx, "train", step_gradient(u->model, t, true, ctx->program), &plan);
    Graph *update = step_update(u->model, t, ctx->program);
    plan_write_copies(update, &layout);
    put_calls(&b, ctx, "update", update, &plan);
    write_file(ctx, w->folder, "calls.txt", b.s, b.n);
}

int main(int argc, char **argv)
{
    if (argc < 4) {
        fprintf(stderr, "use: make_model FOLDER FILE SEQUENCES [PATH=EXPR...]\n");
        return 2;
    }
    Wanted w = {argv[1], argv[2], strtoll(argv[3], NULL, 10), (const char **)argv + 4,
                (size_t)argc - 4};
    Ctx *ctx = ctx_new(NULL);
    bool ok = w.sequences > 0 && guarded(ctx, make, &w);
    ctx_free(ctx);
    return !ok;
}
