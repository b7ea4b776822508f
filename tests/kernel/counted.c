/* counted.c - plans without kernels say of each launch what those with kernels say.
 *
 * In:  the models of models.h and the examples, made small; the programs of a training step.
 * Out: a case for each; `N passed, N failed`. Launches, and of each kind, rows, bytes and work are equal, and so is
 *      the arena: `vwn cost` tells a run's memory and time without printing a kernel.
 * When: slow. kernel.ops, kernel.random and equal.models go the same ways.
 */
#include "support/examples.h"

#include "compiler/plan/plan.h"

typedef struct Case {
    const char *text;
    const char *const *set;
    size_t launches, counted; /* with work */
    const char *wrong;        /* what differs, or NULL */
} Case;

static bool same_work(const PlanWork *a, const PlanWork *b)
{
    return a->lane == b->lane && a->single == b->single && a->call == b->call && a->random == b->random &&
           a->product == b->product && a->attention == b->attention && a->scores == b->scores &&
           a->backward == b->backward;
}

static const char *launch_differs(const Launch *a, const Launch *b)
{
    return a->kind != b->kind               ? "kind"
           : a->name != b->name             ? "name"
           : a->bytes != b->bytes           ? "bytes"
           : a->flops != b->flops           ? "operations"
           : a->rows != b->rows             ? "rows"
           : a->grain != b->grain           ? "rows at once"
           : !same_work(&a->work, &b->work) ? "work"
                                            : NULL;
}

static const char *plan_differs(Case *c, const Plan *a, const Plan *b)
{
    const char *wrong = a->n_launch != b->n_launch         ? "launches"
                        : a->arena_bytes != b->arena_bytes ? "arena"
                        : b->n_kernel                      ? "kernels"
                                                           : NULL;
    for (size_t i = 0; i < a->n_launch && !wrong; i++) {
        wrong = launch_differs(&a->launch[i], &b->launch[i]);
        c->launches++;
        c->counted += b->launch[i].work.lane > 0;
    }
    return wrong;
}

static void compare(Ctx *ctx, Case *c, const Unit *u, const Graph *g)
{
    PlanOptions how = {.B = 3, .T = u->train->context, .half = train_half(u->train)}, count = how;
    count.arena_only = count.counted = true;
    const Plan *plan = plan_build(ctx, ctx->program, plan_graph(g, ctx->program, &how), &how);
    const Plan *counted = plan_build(ctx, ctx->program, plan_graph(g, ctx->program, &count), &count);
    const char *wrong = plan_differs(c, plan, counted);
    c->wrong = c->wrong ? c->wrong : wrong;
}

static void compare_programs(Ctx *ctx, void *arg)
{
    Case *c = arg;
    const Unit *u = load_text(ctx, c->text, c->set);
    compare(ctx, c, u, step_gradient(u->model, u->train, true, ctx->program));
    compare(ctx, c, u, step_gradient(u->model, u->train, false, ctx->program));
    compare(ctx, c, u, step_update(u->model, u->train, ctx->program));
}

static bool is_example(size_t i) { return i >= MODELS; }

static const Variant *variant_of(size_t i) { return is_example(i) ? &sources[i - MODELS].v : model_variant(i); }

static const char *case_name(size_t i) { return variant_of(i)->name; }

static bool run_one(size_t i)
{
    Ctx *ctx = ctx_new(NULL);
    const Variant *v = variant_of(i);
    Case c = {.set = v->set};
    c.text = is_example(i) ? example_text(ctx, &sources[i - MODELS]) : variant_text(ctx, v);
    bool ok = guarded(ctx, compare_programs, &c) && !c.wrong && c.counted > 10;
    printf("%-24s %4zu launches, %4zu counted%s%s%s\n", v->name, c.launches, c.counted, c.wrong ? ", differs: " : "",
           c.wrong ? c.wrong : "", ok ? "" : "  FAILED");
    ctx_free(ctx);
    return ok;
}

/* Part of a concatenation is read: always taken. */
static size_t grown_state(void)
{
    size_t i = 0;
    while (strcmp(case_name(i), "a state that grows") != 0)
        i++;
    return i;
}

int main(int argc, char **argv)
{
    CaseDraw draw = {.one_in = 8, .sanitized = 8, .first = grown_state()};
    return run_drawn(argc, argv, &draw, MODELS + COUNT_OF(sources), case_name, run_one);
}
