/* work.c - how often files are parsed and checked, and steps planned, for a point, a list and a cost.
 *
 * In:  a small model and its schedules of widths.   Out: counts; `N passed, N failed`.
 * The one idea: the linker puts counters before the functions that do the work (--wrap), so what is counted is what runs.
 * When: released.
 */
#include "compiler/file/check_unit.h"
#include "schedules.h"
#include "support.h"

#include "compiler/plan/plan.h"

#include <stdatomic.h>
#include <stdlib.h>

typedef struct Work {
    int parsed, checked, graphs, planned;
} Work;

static _Atomic int parsed, checked, graphs, planned;

Ast *__real_vwn_parse(Ctx *ctx, uint32_t file);
Ast *__wrap_vwn_parse(Ctx *ctx, uint32_t file);
Ast *__wrap_vwn_parse(Ctx *ctx, uint32_t file)
{
    parsed++;
    return __real_vwn_parse(ctx, file);
}

Unit *__real_check_file(Ctx *ctx, const CheckOptions *how);
Unit *__wrap_check_file(Ctx *ctx, const CheckOptions *how);
Unit *__wrap_check_file(Ctx *ctx, const CheckOptions *how)
{
    checked++;
    return __real_check_file(ctx, how);
}

Graph *__real_plan_graph(const Graph *g, Arena *arena, const PlanOptions *how);
Graph *__wrap_plan_graph(const Graph *g, Arena *arena, const PlanOptions *how);
Graph *__wrap_plan_graph(const Graph *g, Arena *arena, const PlanOptions *how)
{
    graphs++;
    return __real_plan_graph(g, arena, how);
}

Plan *__real_plan_build(Ctx *ctx, Arena *arena, const Graph *g, const PlanOptions *how);
Plan *__wrap_plan_build(Ctx *ctx, Arena *arena, const Graph *g, const PlanOptions *how);
Plan *__wrap_plan_build(Ctx *ctx, Arena *arena, const Graph *g, const PlanOptions *how)
{
    planned++;
    return __real_plan_build(ctx, arena, g, how);
}

static Work counted(void)
{
    Work w = {atomic_exchange(&parsed, 0), atomic_exchange(&checked, 0), atomic_exchange(&graphs, 0),
              atomic_exchange(&planned, 0)};
    printf("    %d texts parsed, %d files checked, %d graphs simplified, %d planned\n", w.parsed, w.checked, w.graphs,
           w.planned);
    return w;
}

static void drop(void *user, const char *text, size_t n) { (void)user, (void)text, (void)n; }

enum {
    POINTS = 5,
    PROGRAMS = 6
}; /* of a step in parts with evaluation: train, accumulate, update, eval, count, eval_count */

static vwn_status sweep(const char *file, const char *run, bool list)
{
    static const char *const vary[] = {"d=32,64,96,128,160"};
    static const vwn_writer nothing = {drop, NULL};
    vwn_options o = {.threads = 2};
    vwn_context *v = vwn_open(&o);
    vwn_sweep_options how = {
        .file = {.path = file}, .vary = vary, .n_vary = 1, .run = run, .list = list, .until = "1 steps"};
    vwn_status st = vwn_sweep(v, &how, &nothing);
    if (st != VWN_OK)
        printf("%s\n", vwn_message(v));
    vwn_close(v);
    return st;
}

/* Of a file, once: the texts that it and its imports are. */
static int texts_of(Tally *t, const char *file)
{
    vwn_options o = {.threads = 2};
    vwn_context *v = vwn_open(&o);
    vwn_unit *unit;
    CHECK(t, vwn_check(v, &(vwn_file_options){.path = file}, &unit) == VWN_OK);
    Work w = counted();
    CHECK(t, w.checked == 1 && w.planned == 0 && w.parsed >= 3 && w.parsed <= 8);
    vwn_close(v);
    return w.parsed;
}

static void cost(Tally *t, const char *file, int threads)
{
    static const vwn_writer nothing = {drop, NULL};
    vwn_options o = {.threads = threads};
    vwn_context *v = vwn_open(&o);
    vwn_unit *unit;
    CHECK(t, vwn_check(v, &(vwn_file_options){.path = file}, &unit) == VWN_OK);
    CHECK(t, vwn_write_report(unit, VWN_REPORT_COST, &(vwn_report_options){0}, &nothing) == VWN_OK);
    vwn_close(v);
}

int main(void)
{
    Tally t = {0};
    Ctx *ctx = ctx_new(NULL);
    const char *folder = scratch_folder(ctx);
    const char *file = arena_printf(ctx->program, "%s/points.vwn", folder),
               *run = arena_printf(ctx->program, "%s/sweep", folder);
    write_text_file(arena_printf(ctx->program, "%s/text", folder), 20000);
    write_file(file, schedule_model, strlen(schedule_model));
    int texts = texts_of(&t, file);

    printf("a list of %d points\n", POINTS);
    CHECK(&t, sweep(file, run, true) == VWN_OK);
    Work w = counted(); /* the file with its axes, and every point once */
    CHECK(&t, w.checked == 1 + POINTS && w.parsed <= texts * w.checked);
    CHECK(&t, w.planned == PROGRAMS * POINTS && w.graphs == w.planned);

    printf("the cost of one, in two threads and in one\n");
    cost(&t, file, 2);
    w = counted(); /* what `recompute` would change is planned besides */
    CHECK(&t, w.checked == 2 && w.planned == PROGRAMS + 1 && w.graphs == w.planned);
    cost(&t, file, 1);
    w = counted();
    CHECK(&t, w.checked == 1 && w.planned == PROGRAMS + 1 && w.graphs == w.planned);

    printf("%d points trained\n", POINTS);
    CHECK(&t, sweep(file, run, false) == VWN_OK);
    w = counted(); /* before the first point: all checked and planned; then again, and the text that a run keeps is formatted and proved */
    CHECK(&t, w.checked == 1 + 3 * POINTS && w.parsed <= texts * w.checked + POINTS);
    CHECK(&t, w.planned == 2 * PROGRAMS * POINTS && w.graphs == w.planned);
    scratch_remove(folder);
    ctx_free(ctx);
    return tally_end(&t, "work");
}
