/* steps.c - the graphs made of a model: losses, dropout, gradients over micro-batches.
 *
 * When: quick, checked.
 */
#include <math.h>

#include "compiler/pass/simplify.h"
#include "support.h"

enum { V = 7, W = 5, T = 6, B = 4 };

typedef struct Run {
    Ctx *ctx;
    Graph *g;
    RefBinding *bind;
    Tensor *result[16];
} Run;

static double noise(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(*state >> 11) / (double)(1ull << 52) - 1;
}

/* Values follow from the name and the position alone, so that every graph sees the same. */
static void fill(RefBinding *b, int64_t first_row)
{
    Tensor *x = b->tensor;
    uint64_t state = hash_bytes(b->name, strlen(b->name), 5);
    if (x->dtype == DT_INT) {
        for (int64_t i = 0; i < x->size; i++) {
            int64_t at = first_row * T + i;
            x->integer[i] = b->name[0] == 'l' && at % 5 == 3 && at > 12 ? -1 : (at * 5 + at / 3) % V;
        }
        return;
    }
    for (int64_t i = 0; i < x->size; i++)
        x->real[i] = b->kind == EXT_GRAD ? 0 : noise(&state);
}

static void set_up(Run *r, Graph *g, int64_t rows, int64_t first_row)
{
    r->g = graph_simplify(g, r->ctx->program);
    graph_verify(r->g);
    r->bind = NEW_ARRAY(r->ctx->program, RefBinding, r->g->ext.n);
    for (size_t i = 0; i < r->g->ext.n; i++) {
        const Ext *x = &r->g->ext.v[i];
        int64_t d[MAX_RANK];
        for (int k = 0; k < x->shape.rank; k++)
            d[k] = dim_at(x->shape.d[k], rows, T);
        Tensor *v = tensor_new(r->ctx->program, x->dtype, x->shape.rank, d);
        r->bind[i] = (RefBinding){x->kind, x->name, v};
        fill(&r->bind[i], first_row);
    }
}

static void evaluate(Run *r, int64_t rows)
{
    double vars[HV_COUNT] = {0};
    RefRun run = {.B = rows, .T = T, .seed = 1, .host_vars = vars, .bind = r->bind, .n_bind = r->g->ext.n};
    ref_evaluate(r->g, r->ctx->program, &run, r->result);
}

static double result(const Run *r, const char *name)
{
    for (size_t i = 0; i < r->g->out.n; i++)
        if (r->g->out.v[i].ext < 0 && !strcmp(r->g->out.v[i].name, name))
            return r->result[i]->real[0];
    return NAN;
}

static Tensor *bound(const Run *r, ExtKind kind, const char *name)
{
    for (size_t i = 0; i < r->g->ext.n; i++)
        if (r->bind[i].kind == kind && !strcmp(r->bind[i].name, name))
            return r->bind[i].tensor;
    return NULL;
}

static int count(const Graph *g, Op op)
{
    int n = 0;
    for (Val v = 1; v < g->node.n; v++)
        n += node_at(g, v)->op == op;
    return n;
}

static Unit *unit(Ctx *ctx, double dropout, int64_t micro)
{
    TinyOptions o = {
        .vocab = V, .width = W, .context = T, .batch = B, .micro = micro, .steps = 1, .text = "x", .dropout = dropout};
    return tiny_unit(ctx, &o);
}

/* The losses by hand: next over positions with a label, the mean of the two of one name. */
static void losses(Tally *t, Ctx *ctx)
{
    Run r = {.ctx = ctx}, e = {.ctx = ctx};
    Unit *u = unit(ctx, 0, B), *dropped = unit(ctx, 0.5, B);
    size_t before = u->model->graph->node.n;
    set_up(&r, step_gradient(u->model, u->train, true, ctx->program), B, 0);
    CHECK(t, u->model->graph->node.n == before && u->model->graph->out.n == 0);
    evaluate(&r, B);
    double *E = bound(&r, EXT_PARAM, "embed.W")->real, *W1 = bound(&r, EXT_PARAM, "hidden.W")->real;
    double *b1 = bound(&r, EXT_PARAM, "hidden.b")->real, *W2 = bound(&r, EXT_PARAM, "head.W")->real;
    double gain = bound(&r, EXT_BUFFER, "hidden.gain")->real[0];
    double next = 0, hh = 0, xx = 0, hidden = 0, n = 0;
    for (int i = 0; i < B * T; i++) {
        int64_t token = bound(&r, EXT_INPUT, "tokens")->integer[i];
        int64_t label = bound(&r, EXT_INPUT, "labels")->integer[i];
        double h[W], z[V], most = -INFINITY, sum = 0;
        for (int k = 0; k < W; k++) {
            double a = b1[k];
            for (int j = 0; j < W; j++)
                a += E[token * W + j] * W1[j * W + k];
            h[k] = gain * tanh(a);
            hh += h[k] * h[k] / (B * T * W);
            hidden += h[k] / (B * T * W);
            xx += E[token * W + k] * E[token * W + k] / (B * T * W);
        }
        for (int o = 0; o < V; o++) {
            z[o] = 0;
            for (int k = 0; k < W; k++)
                z[o] += h[k] * W2[k * V + o];
            most = fmax(most, z[o]);
        }
        for (int o = 0; o < V; o++)
            sum += exp(z[o] - most);
        next += label < 0 ? 0 : most + log(sum) - z[label];
        n += label >= 0;
    }
    CHECK(t, n < B * T && n > 10);
    next /= n;
    double size = (1e-3 * hh + 3e-3 * xx) / 2;
    CHECK(t, fabs(result(&r, "loss.next") - next) < 1e-12);
    CHECK(t, fabs(result(&r, "loss.size") - size) < 1e-12);
    CHECK(t, fabs(result(&r, "loss") - next - size) < 1e-12);
    CHECK(t, fabs(result(&r, "metric.hidden") - hidden) < 1e-12);
    /* evaluation of the model with dropout gives the same: the masks are gone */
    set_up(&e, step_evaluate(dropped->model, ctx->program), B, 0);
    evaluate(&e, B);
    CHECK(t, fabs(result(&e, "loss") - result(&r, "loss")) < 1e-12);
    CHECK(t, count(e.g, OP_RAND) == 0);
    set_up(&e, step_gradient(dropped->model, dropped->train, true, ctx->program), B, 0);
    evaluate(&e, B);
    CHECK(t, fabs(result(&e, "loss") - result(&r, "loss")) > 1e-6 && count(e.g, OP_RAND) == 1);
    set_up(&e, step_predict(dropped->model, ctx->program), B, 0);
    CHECK(t, count(e.g, OP_RAND) == 0 && e.g->out.n == 1 && !bound(&e, EXT_INPUT, "labels"));
}

/* Micro-batches add up to the losses and the gradient of the batch, which central differences
 * confirm. tests/equal/parts.c has other models, and labels that are missing. */
static void micro_batches(Tally *t, Ctx *ctx)
{
    Run whole = {.ctx = ctx}, part = {.ctx = ctx}, more = {.ctx = ctx};
    Unit *u = unit(ctx, 0, B), *m = unit(ctx, 0, 2);
    set_up(&whole, step_gradient(u->model, u->train, true, ctx->program), B, 0);
    set_up(&part, step_gradient(m->model, m->train, true, ctx->program), 2, 0);
    set_up(&more, step_gradient(m->model, m->train, false, ctx->program), 2, 2);
    Run *all[] = {&whole, &part, &more};
    for (int k = 0; k < 3; k++) { /* every position has a label */
        Tensor *l = bound(all[k], EXT_INPUT, "labels");
        for (int64_t i = 0; i < l->size; i++)
            l->integer[i] = l->integer[i] < 0 ? 2 : l->integer[i];
        for (size_t i = 0; i < all[k]->g->ext.n; i++) /* so many labels the batch has */
            if (all[k]->bind[i].kind == EXT_TOTAL)
                all[k]->bind[i].tensor->real[0] = B * T;
    }
    for (size_t i = 0; i < part.g->ext.n; i++) /* stale numbers must be overwritten */
        if (part.bind[i].kind == EXT_GRAD)
            part.bind[i].tensor->real[0] = 1e9;
    evaluate(&whole, B);
    evaluate(&part, 2);
    for (size_t i = 0; i < more.g->ext.n; i++)
        if (more.bind[i].kind == EXT_GRAD)
            more.bind[i].tensor = bound(&part, EXT_GRAD, more.bind[i].name);
    evaluate(&more, 2);
    double sum_of_losses = result(&part, "loss") + result(&more, "loss");
    CHECK(t, fabs(sum_of_losses - result(&whole, "loss")) < 1e-12);
    static const char *const names[] = {"embed.W", "hidden.W", "hidden.b", "head.W"};
    for (size_t k = 0; k < COUNT_OF(names); k++) {
        Tensor *g = bound(&whole, EXT_GRAD, names[k]), *sum = bound(&more, EXT_GRAD, names[k]);
        Tensor *w = bound(&whole, EXT_PARAM, names[k]);
        double gradient[64];
        evaluate(&whole, B);
        for (int64_t i = 0; i < g->size; i++) {
            CHECKF(t, fabs(g->real[i] - sum->real[i]) < 1e-12, "%s[%d]: %.9g, in parts %.9g", names[k], (int)i,
                   g->real[i], sum->real[i]);
            gradient[i] = g->real[i];
        }
        for (int64_t i = 0; i < w->size; i++) {
            double was = w->real[i], loss[2];
            for (int side = 0; side < 2; side++) {
                w->real[i] = was + (side ? 1e-5 : -1e-5);
                evaluate(&whole, B);
                loss[side] = result(&whole, "loss");
            }
            w->real[i] = was;
            double slope = (loss[1] - loss[0]) / 2e-5;
            CHECKF(t, fabs(slope - gradient[i]) < 1e-8, "%s[%d]: %g, not %g", names[k], (int)i, gradient[i], slope);
        }
    }
    /* a parameter that no loss reads: zeros at first, then left alone */
    Param lost = {.path = name_str(ctx, "lost"), .shape = {.rank = 1, .d = {DIM(3)}}, .elements = 3};
    lost.value = ir_ext(m->model->graph, EXT_PARAM, lost.path, DT_REAL, &lost.shape);
    vec_push(ctx->program, &m->model->param, lost);
    m->train->optimizer.frozen = NULL;
    set_up(&part, step_gradient(m->model, m->train, true, ctx->program), 2, 0);
    bound(&part, EXT_GRAD, "lost")->real[1] = 7;
    evaluate(&part, 2);
    CHECK(t, bound(&part, EXT_GRAD, "lost")->real[1] == 0);
    set_up(&more, step_gradient(m->model, m->train, false, ctx->program), 2, 0);
    CHECK(t, !bound(&more, EXT_GRAD, "lost") && bound(&more, EXT_GRAD, "head.W"));
    CHECK(t, !bound(&whole, EXT_GRAD, "hidden.gain"));
    u->train->optimizer.frozen[0] = true;
    set_up(&part, step_gradient(u->model, u->train, true, ctx->program), B, 0);
    CHECK(t, !bound(&part, EXT_GRAD, "embed.W") && bound(&part, EXT_GRAD, "head.W"));
}

int main(void)
{
    Tally t = {0};
    Ctx *ctx = ctx_new(NULL);
    losses(&t, ctx);
    micro_batches(&t, ctx);
    ctx_free(ctx);
    return tally_end(&t, "steps");
}
