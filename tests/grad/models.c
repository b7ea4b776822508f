/* models.c - gradients of whole models: every parameter tensor of every connection, float64 central differences.
 *
 * In:  the small models of models.h with randomised parameters.   Out: `N passed, N failed`.
 */
#include "support/models.h"

enum { PER_TENSOR = 3 };

static double loss_of(const Graph *g, Arena *arena, RefBinding *bind)
{
    ArenaMark mark = arena_mark(arena);
    RefRun run = {.B = 2, .T = 5, .seed = 1, .bind = bind, .n_bind = g->ext.n};
    Tensor **r = NEW_ARRAY(arena, Tensor *, g->out.n + 1);
    ref_evaluate(g, arena, &run, r);
    double x = r[0]->real[0];
    arena_reset(arena, mark);
    return x;
}

typedef struct Case {
    const Variant *v;
    const char *name; /* where the error is largest */
    size_t tensors;
    double worst; /* relative to the tensor's largest gradient (at least 1e-4: norms make some vanish) */
} Case;

/* The largest relative error over PER_TENSOR elements of each parameter. */
static void compare(Ctx *ctx, void *arg)
{
    Case *c = arg;
    const Variant *v = c->v;
    Unit *u = load_text(ctx, variant_text(ctx, v), v->set);
    Graph *loss = step_forward(u->model, u->train, ctx->program), *grad = step_gradient(u->model, u->train, true, ctx->program);
    RefBinding *lb = bind_all(ctx->program, loss, u->model, 2, 5, 0.3), *gb = bind_all(ctx->program, grad, u->model, 2, 5, 0.3);
    RefRun run = {.B = 2, .T = 5, .seed = 1, .bind = gb, .n_bind = grad->ext.n};
    Tensor **r = NEW_ARRAY(ctx->program, Tensor *, grad->out.n + 1);
    ref_evaluate(grad, ctx->program, &run, r);
    /* The step's gradient is that of one micro-batch, divided by the number of micro-batches (1). */
    double worst = 0;
    uint64_t state = 5;
    for (size_t i = 0; i < u->model->param.n; i++) {
        const Param *p = &u->model->param.v[i];
        Tensor *x = bound(lb, loss, EXT_PARAM, p->path), *g = bound(gb, grad, EXT_GRAD, p->path);
        if (p->buffer)
            continue;
        if (!x || !g) {
            c->name = p->path;
            return;
        }
        c->tensors++;
        double scale = 1e-4;
        for (int64_t k = 0; k < g->size; k++)
            scale = fmax(scale, fabs(g->real[k]));
        for (int k = 0; k < PER_TENSOR; k++) {
            int64_t at = (int64_t)((noise(&state) + 1) / 2 * (double)x->size);
            double had = x->real[at], h = 1e-5;
            x->real[at] = had + h;
            double up = loss_of(loss, ctx->program, lb);
            x->real[at] = had - h;
            double down = loss_of(loss, ctx->program, lb);
            x->real[at] = had;
            double e = fabs((up - down) / (2 * h) - g->real[at]) / scale;
            if (e > worst) {
                worst = e;
                c->name = p->path;
            }
        }
    }
    c->worst = worst;
}

int main(void)
{
    int passed = 0, failed = 0;
    CaseDraw draw = {.one_in = 1, .sanitized = 16};
    for (size_t i = 0; i < MODELS; i++) {
        const Variant *v = model_variant(i);
        if (i >= TEXT_MODELS && image_variants[i - TEXT_MODELS].constants) /* differences see what the gradient leaves out */
            continue;
        if (!case_drawn(&draw, i))
            continue;
        Ctx *ctx = ctx_new(NULL);
        Case c = {.v = v, .name = "", .worst = INFINITY};
        guarded(ctx, compare, &c);
        bool ok = c.worst < 1e-6 && c.tensors > 0;
        printf("%-18s %3zu tensors, worst relative error %.1e at %s%s\n", v->name, c.tensors, c.worst, c.name, ok ? "" : "  FAILED");
        ok ? passed++ : failed++;
        ctx_free(ctx);
    }
    cases_end(&draw);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0 || !passed;
}
