/* models.c - gradients of whole models: every parameter tensor of every connection, float64 central differences.
 *
 * In:  the small models of models.h with randomised parameters; expressions at places where a function has two slopes.
 * Out: `N passed, N failed`.
 * When: quick, computes.
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
    Graph *loss = step_forward(u->model, u->train, ctx->program),
          *grad = step_gradient(u->model, u->train, true, ctx->program);
    RefBinding *lb = bind_all(ctx->program, loss, u->model, 2, 5, 0.3),
               *gb = bind_all(ctx->program, grad, u->model, 2, 5, 0.3);
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

/* The table "slopes" of grammar/README.md: x is [2, 2, 1] + where. */
static const struct Slope {
    const char *text;
    double where, slope[3];
} slopes[] = {
    {"relu(x)", -2, {0, 0, 0}},
    {"max(x, 0)", -2, {0.5, 0.5, 0}},
    {"min(x, 0)", -2, {0.5, 0.5, 1}},
    {"clamp(x, -1, 2)", 0, {0.5, 0.5, 1}},
    {"clamp(x, -1, 2)", -3, {0.5, 0.5, 0}},
    {"max(x, over = -1)", 0, {0.5, 0.5, 0}},
    {"min(x, over = -1)", -1, {0, 0, 1}},
    {"min(-x, over = -1)", 0, {-0.5, -0.5, 0}},
    {"max(min(x, 1), over = -1)", 0, {0, 0, 0.5 / 3}},
    {"top_k(x, 1).values", 0, {1, 0, 0}},
    {"top_k(x, 2).values", -2, {1, 1, 0}},
    {"top_k(-x, 2).values", 0, {-1, 0, -1}},
    {"abs(x)", -2, {0, 0, -1}},
    {"sign(x) + floor(x) + ceil(x) + round(x)", -2, {0, 0, 0}},
    {"where(x > 0, x, 0)", -2, {0, 0, 0}},
    {"where(x >= 0, x, 0)", -2, {1, 1, 0}},
    {"x mod 2", 0, {1, 1, 1}},
    {"7 mod x", 0, {-3, -3, -7}},
    {"8 mod x", 0, {-4, -4, -8}},
    {"x ^ 2", -2, {0, 0, -2}},
    {"sqrt(x)", -1, {0.5, 0.5, INFINITY}},
};

static bool slope_is(const struct Slope *s)
{
    Ctx *ctx = ctx_new(NULL);
    const char *text = arena_printf(
        ctx->program,
        "edition = 1\nimport \"std/transformer\"\nimport \"std/connections\"\n"
        "block bend()(y: [.., D]) -> [.., D] {\n  param x : [3] = zeros\n  loss.s = sum(%s)\n  return y\n}\n"
        "model m {\n  context = 2, width = 2, mask = none, connection = residual(), init = zeros, pre_norm = none\n"
        "  embed tokens { vocab = 256 }\n  bend\n  head lm { norm = none }\n}\n"
        "train {\n  data = text_file(\"none.txt\"), tokenizer = bytes(), batch = 1 seqs, length = 1 steps, seed = 1, "
        "precision = fp32\n"
        "  optimizer sgd { lr = 1, momentum = 0, weight_decay = 0 }\n}\n",
        s->text);
    Unit *u = load_text(ctx, text, NULL);
    Graph *g = step_gradient(u->model, u->train, true, ctx->program);
    RefBinding *bind = bind_all(ctx->program, g, u->model, 1, 2, 0.3);
    RefRun run = {.B = 1, .T = 2, .seed = 1, .bind = bind, .n_bind = g->ext.n};
    Tensor **r = NEW_ARRAY(ctx->program, Tensor *, g->out.n + 1);
    Name path = name_str(ctx, "bend.x");
    Tensor *x = bound(bind, g, EXT_PARAM, path), *d = bound(bind, g, EXT_GRAD, path);
    for (int k = 0; k < 3; k++)
        x->real[k] = (k < 2 ? 2 : 1) + s->where;
    ref_evaluate(g, ctx->program, &run, r);
    bool good = true;
    for (int k = 0; k < 3; k++)
        if (d->real[k] != s->slope[k]) {
            printf("the slope of %s at %g is %g, not %g  FAILED\n", s->text, x->real[k], d->real[k], s->slope[k]);
            good = false;
        }
    ctx_free(ctx);
    return good;
}

int main(void)
{
    int passed = 0, failed = 0;
    for (size_t i = 0; i < COUNT_OF(slopes); i++)
        slope_is(&slopes[i]) ? passed++ : failed++;
    CaseDraw draw = {.one_in = 1, .sanitized = 16};
    for (size_t i = 0; i < MODELS; i++) {
        const Variant *v = model_variant(i);
        if (i >= TEXT_MODELS &&
            image_variants[i - TEXT_MODELS].constants) /* differences see what the gradient leaves out */
            continue;
        if (!case_drawn(&draw, i))
            continue;
        Ctx *ctx = ctx_new(NULL);
        Case c = {.v = v, .name = "", .worst = INFINITY};
        guarded(ctx, compare, &c);
        bool ok = c.worst < 1e-6 && c.tensors > 0;
        printf("%-18s %3zu tensors, worst relative error %.1e at %s%s\n", v->name, c.tensors, c.worst, c.name,
               ok ? "" : "  FAILED");
        ok ? passed++ : failed++;
        ctx_free(ctx);
    }
    cases_end(&draw);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0 || !passed;
}
