/* report_ir.c - `vwn ir`: the text of each stage.
 *
 * In:  a Unit or a graph, and the name of a stage.   Out: the stage's dump.
 * The one idea: from the graph on, a stage needs nothing but the graph and the numbers of
 * sequences and positions, so a graph read from text takes the same way as one built from a
 * file.
 */
#include "fuse.h"
#include "plan.h"
#include "report.h"

void report_graph_stage(Buf *out, Ctx *ctx, const Graph *g, Stage stage, int64_t B, int64_t T)
{
    Arena *arena = ctx->scratch;
    if (stage <= STAGE_GRADIENT) {
        graph_dump(out, g);
        return;
    }
    g = graph_simplify(g, arena);
    if (stage == STAGE_SIMPLE) {
        graph_dump(out, g);
        return;
    }
    PlanOptions how = {.B = B, .T = T};
    if (stage == STAGE_FUSE) {
        bool *copied;
        Graph *small = decompose(ctx, arena, g, B, T, false, &copied);
        fuse_dump(out, fuse_graph(ctx, arena, small, B, T, false, copied));
        return;
    }
    Plan *plan = plan_build(ctx, arena, g, &how);
    if (stage == STAGE_KERNEL)
        plan_dump_kernels(out, plan);
    else
        plan_dump(out, plan);
}

/* The graph of a program of this unit, before simplification. */
static Graph *program_graph(Unit *u, const char *program)
{
    const Model *m = report_model(u);
    Arena *arena = u->ctx->scratch;
    if (!program)
        program = u->train ? "train" : "predict";
    if (strcmp(program, "eval") == 0)
        return step_evaluate(m, arena);
    if (strcmp(program, "predict") == 0)
        return step_predict(m, arena);
    if (!u->train)
        ctx_raise(u->ctx, ST_INPUT, "%s has no `train`, so there is no program `%s`", u->path,
                  program);
    if (strcmp(program, "train") == 0)
        return step_gradient(m, u->train, true, arena);
    if (strcmp(program, "update") == 0)
        return step_update(m, u->train, arena);
    ctx_raise(u->ctx, ST_USAGE, "there is no program `%s`: train, update, eval, predict",
              program);
}

void report_stage(Buf *out, Unit *unit, Stage stage, const char *program, int64_t batch_seqs)
{
    const Model *m = stage == STAGE_AST ? NULL : report_model(unit);
    if (stage == STAGE_AST) {
        ast_dump(out, unit->ast, false);
        return;
    }
    if (stage == STAGE_TENSOR) {
        graph_dump(out, m->graph);
        return;
    }
    int64_t B = batch_seqs > 0 ? batch_seqs : unit->train ? unit->train->micro_seqs : 1;
    int64_t T = unit->train ? unit->train->context : m->context;
    report_graph_stage(out, unit->ctx, program_graph(unit, program), stage, B, T);
}

void report_add_gradient(Graph *g)
{
    Val loss = 0;
    VEC(Val) param = {0};
    for (size_t i = 0; i < g->out.n; i++)
        if (strcmp(g->out.v[i].name, "loss") == 0)
            loss = g->out.v[i].value;
    if (!loss || shape_of(g, loss)->rank != 0)
        ctx_raise(g->ctx, ST_INPUT, "the graph has no scalar output `loss` to differentiate");
    for (Val v = 1; v < g->node.n; v++)
        if (node_at(g, v)->op == OP_EXT && g->ext.v[node_at(g, v)->a.i].kind == EXT_PARAM)
            vec_push(g->arena, &param, v);
    Val *grad = NEW_ARRAY(g->arena, Val, param.n + 1);
    graph_gradient(g, loss, param.v, param.n, grad);
    for (size_t i = 0; i < param.n; i++) {
        Name name = g->ext.v[node_at(g, param.v[i])->a.i].name;
        if (!grad[i])
            continue;
        ir_ext(g, EXT_GRAD, name, DT_REAL, shape_of(g, param.v[i]));
        ir_store(g, grad[i], EXT_GRAD, name);
    }
}
