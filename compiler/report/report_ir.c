/* report_ir.c - `vwn ir`: the text of each stage.
 *
 * In:  a Unit or a graph, and the name of a stage.   Out: the stage's dump.
 * The one idea: from the graph on, a stage needs nothing but the graph and the numbers of
 * sequences and positions, so a graph read from text takes the same way as one built from a
 * file.
 */
#include "compiler/library/library_c.h"
#include "compiler/model/programs.h"
#include "compiler/pass/recompute.h"
#include "compiler/pass/simplify.h"
#include "compiler/plan/pipeline.h"
#include "compiler/plan/plan.h"
#include "compiler/print/emit.h"
#include "report.h"

/* ---- passes ---- */

void report_passes(Buf *out)
{
    for (int id = 0; id < PASSES; id++)
        buf_printf(out, "%-12s %s\n", pass_rows[id].name, pass_rows[id].says);
}

/* What a pass has left behind: of a graph, of kernels, of all launches. */
static void put_pass(Buf *out, const Plan *plan, const PassWatch *watch, const Target *target)
{
    const PassRow *row = &pass_rows[watch->show];
    if (row->level == LEVEL_TEXT)
        target->threads ? plan_dump_device(out, plan) : plan_dump_kernels(out, plan);
    else if (row->level > LEVEL_GROUPS && row->level < LEVEL_TEXT)
        plan_dump_shown(out, plan);
    else if (watch->text)
        buf_puts(out, watch->text);
    else
        buf_printf(out, "# the pass `%s` does not run here\n", row->name);
}

static PassWatch *new_watch(Ctx *ctx, Stage stage, const char *pass)
{
    PassWatch *watch = NEW(ctx->scratch, PassWatch);
    *watch = (PassWatch){.show = stage == STAGE_PASS ? pass_of_name(pass) : PASSES};
    if (stage != STAGE_PASS)
        return watch;
    if (watch->show == PASSES)
        ctx_raise(ctx, ST_USAGE, "there is no pass or stage `%s`: `vwn ir FILE --passes` lists all passes", pass);
    if (!pass_rows[watch->show].dump)
        ctx_raise(ctx, ST_USAGE, "the pass `%s` has no text of its own: `vwn ir FILE --passes` says what it did", pass);
    return watch;
}

/* ---- stages ---- */

static bool is_of_gpu(Stage stage, const StageOptions *options, const PassWatch *watch)
{
    PassWhere where = watch && watch->show < PASSES ? pass_rows[watch->show].where : ON_ANY;
    return options->gpu || stage == STAGE_CUDA || stage == STAGE_THREADS ||
           !(where == ON_ANY || where == ON_HALF || where == ON_VECTORS);
}

static void graph_stage(Buf *out, Ctx *ctx, const Graph *g, Stage stage, const StageOptions *options,
                        const PlanOptions *how)
{
    Arena *arena = ctx->scratch;
    if (stage <= STAGE_GRADIENT) {
        graph_dump(out, g);
        return;
    }
    if (stage == STAGE_SIMPLE) {
        graph_dump(out, graph_simplify(g, arena));
        return;
    }
    PlanOptions own = *how;
    PassWatch *watch = stage < STAGE_PASSES && stage != STAGE_FUSE ? NULL : new_watch(ctx, stage, options->pass);
    own.programs = stage == STAGE_KERNEL || stage == STAGE_THREADS || stage == STAGE_PASS;
    own.target = is_of_gpu(stage, options, watch) ? &target_gpu : &target_cpu;
    own.watch = watch;
    if (stage == STAGE_FUSE)
        watch->show = PASS_FUSE;
    Plan *plan = plan_build(ctx, arena, plan_graph(g, arena, &own), &own);
    plan_verify(ctx, plan);
    switch (stage) {
    case STAGE_KERNEL: plan_dump_programs(out, plan); break;
    case STAGE_THREADS: plan_dump_threads(out, plan); break;
    case STAGE_C: plan_dump_kernels(out, plan); break;
    case STAGE_CUDA: plan_dump_device(out, plan); break;
    case STAGE_PASSES: passes_put(out, watch, own.target, own.half, true); break;
    case STAGE_FUSE:
    case STAGE_PASS: put_pass(out, plan, watch, own.target); break;
    default: plan_dump(out, plan); break;
    }
}

/* The text of one kernel as it is compiled; NULL when it stands above already. */
static const char *kernel_c(Ctx *ctx, const KernelText *x, Map *seen, size_t *length)
{
    Arena *arena = ctx->scratch;
    const char *text;
    Name name;
    if (x->kernel) {
        Printed p;
        Kernel k = *x->kernel;
        pipeline_vectors(&k);
        pipeline_rest(&k);
        pipeline_print(&p, &k, &dialect_c, x->about, NULL);
        name = p.name;
        text = p.text;
        *length = p.length;
    } else {
        text = library_c(arena, x->library, &x->attention, length);
        name = emit_name(ctx, arena, &text, length);
    }
    void **slot = map_at(seen, (uintptr_t)name);
    bool again = *slot;
    *slot = (void *)(uintptr_t)name;
    return again ? NULL : text;
}

void report_kernels_stage(Buf *out, Ctx *ctx, const KernelTexts *kernels, Stage stage)
{
    Map seen;
    size_t n;
    map_init(&seen, ctx->scratch);
    if (stage == STAGE_KERNEL)
        kernels_begin(out, kernels->B, kernels->T);
    else
        buf_puts(out, prelude_c(ctx->scratch, &n));
    for (size_t i = 0; i < kernels->kernel.n; i++) {
        const KernelText *x = &kernels->kernel.v[i];
        const char *text = stage == STAGE_C ? kernel_c(ctx, x, &seen, &n) : NULL;
        if (stage == STAGE_KERNEL)
            kernels_put(out, x);
        else if (text) {
            buf_putc(out, '\n');
            buf_put(out, text, n);
        }
    }
}

void report_graph_stage(Buf *out, Ctx *ctx, const Graph *g, Stage stage, const StageOptions *options, int64_t B,
                        int64_t T)
{
    PlanOptions how = {.B = B, .T = T};
    graph_stage(out, ctx, g, stage, options, &how);
}

/* The graph of a program of this unit, before simplification: that of training with or
 * without its gradients. NULL: the model has nothing for it to count. */
static Graph *program_graph(Unit *u, const char *program, bool differentiate)
{
    const Model *m = report_model(u);
    Arena *arena = u->ctx->scratch;
    if (!program)
        program = u->train ? "train" : "predict";
    ProgramKind kind = program_named(program);
    if (kind == PROGRAM_KINDS)
        ctx_raise(u->ctx, ST_USAGE, "there is no program `%s`: %s", program, program_names(arena));
    if (program_row(kind)->trains && !u->train)
        ctx_raise(u->ctx, ST_INPUT, "%s has no `train`, so there is no program `%s`", u->path, program);
    if (!differentiate && (kind == PROGRAM_TRAIN || kind == PROGRAM_ACCUMULATE))
        return step_forward(m, u->train, arena);
    return program_make(kind, m, u->train, 0, arena);
}

static PlanOptions plan_options(const Unit *unit, const char *program, int64_t batch_seqs)
{
    const Train *t = unit->train;
    bool float32 = program && program_row(program_named(program))->float32;
    return (PlanOptions){.B = batch_seqs > 0 ? batch_seqs
                              : t            ? t->micro_seqs
                                             : 1,
                         .T = t ? t->context : report_model(unit)->context,
                         .half = float32 ? HALF_NONE : train_half(t)};
}

void report_stage(Buf *out, Unit *unit, Stage stage, const StageOptions *options)
{
    if (stage == STAGE_AST) {
        ast_dump(out, unit->ast, false);
        return;
    }
    const Graph *g = program_graph(unit, options->program, stage > STAGE_TENSOR);
    if (!g)
        ctx_raise(unit->ctx, ST_INPUT, "%s has nothing that `%s` counts", unit->path, options->program);
    PlanOptions how = plan_options(unit, options->program, options->batch_seqs);
    graph_stage(out, unit->ctx, g, stage, options, &how);
}

Plan *report_device_plan(Unit *unit, const char *program, int64_t batch_seqs, const Target *target, PlanLayout *layout)
{
    Arena *arena = unit->ctx->scratch;
    Graph *g = program_graph(unit, program, true);
    if (!g)
        return NULL;
    PlanOptions how = plan_options(unit, program, batch_seqs);
    how.target = target;
    how.layout = layout;
    if (layout && program && program_named(program) == PROGRAM_UPDATE)
        plan_write_copies(g, layout);
    Plan *plan = plan_build(unit->ctx, arena, plan_graph(g, arena, &how), &how);
    plan_verify(unit->ctx, plan);
    return plan;
}

/* The gradients that a graph declares and neither stores nor reads: those that are wanted. */
static Ext *unmade_gradients(const Graph *g, size_t *n)
{
    bool *made = NEW_ARRAY(g->arena, bool, g->ext.n + 1);
    for (size_t i = 0; i < g->out.n; i++)
        if (g->out.v[i].ext >= 0)
            made[g->out.v[i].ext] = true;
    for (Val v = 1; v < g->node.n; v++)
        if (node_at(g, v)->op == OP_EXT)
            made[node_at(g, v)->a.i] = true;
    Ext *want = NEW_ARRAY(g->arena, Ext, g->ext.n + 1);
    *n = 0;
    for (size_t i = 0; i < g->ext.n; i++)
        if (g->ext.v[i].kind == EXT_GRAD && !made[i])
            want[(*n)++] = g->ext.v[i];
    return want;
}

/* A gradient must have the shape of its parameter; one without a parameter is zero. */
static void fit_gradient(const Graph *g, const Ext *want)
{
    for (size_t i = 0; i < g->ext.n; i++) {
        const Ext *e = &g->ext.v[i];
        if (e->kind == EXT_PARAM && e->name == want->name &&
            (!shape_eq(&e->shape, &want->shape) || e->dtype != want->dtype))
            ctx_raise(g->ctx, ST_INPUT, "the gradient `%s` has another shape or type than its parameter", want->name);
    }
    if (want->dtype != DT_REAL)
        ctx_raise(g->ctx, ST_INPUT, "the gradient `%s` must be real", want->name);
}

Graph *report_add_gradient(Graph *g)
{
    size_t n, at = 0;
    const Ext *want = unmade_gradients(g, &n);
    if (n == 0)
        return g;
    for (size_t i = 0; i < n; i++)
        fit_gradient(g, &want[i]);
    Val objective = 0;
    for (size_t i = 0; i < g->out.n; i++)
        if (g->out.v[i].ext < 0 && strcmp(g->out.v[i].name, STEP_OBJECTIVE) == 0) {
            objective = g->out.v[i].value;
            at = i;
        }
    if (!objective || shape_of(g, objective)->rank != 0 || node_at(g, objective)->dtype != DT_REAL)
        ctx_raise(g->ctx, ST_INPUT, "the graph has no real scalar output `" STEP_OBJECTIVE "` to differentiate");
    g->out.n--; /* it was there for this */
    memmove(&g->out.v[at], &g->out.v[at + 1], (g->out.n - at) * sizeof *g->out.v);
    Val last = (Val)g->node.n - 1;
    step_store_gradients(g, objective, want, n, true);
    return graph_recompute(g, last, NULL, 0, g->arena);
}
