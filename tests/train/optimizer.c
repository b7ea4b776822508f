/* optimizer.c - the update graph against the formulas written out in plain float64. */
#include <math.h>

#include "support.h"

enum { N = 12, PARAMS = 4, STEPS = 7 };

typedef struct Plain { /* one parameter, as the papers write it */
    double w[N], m[N], v[N], average[N], lr_scale, decay;
    int n;
    bool frozen;
} Plain;

typedef struct Setting {
    const char *kind;
    double beta1, beta2, eps, momentum, clip, lr;
    bool nesterov;
    double average; /* largest decay of the average of the weights, 0 = none */
} Setting;

/* min(largest, (step + 1) / (step + 10)), from step 0 */
static double decay_at(const Setting *o, int step)
{
    return fmin(o->average, (step + 1.0) / (step + 10.0));
}

static double noise(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(*state >> 11) / (double)(1ull << 52) - 1;
}

/* Loshchilov and Hutter 2019, Algorithm 2, with the schedule in the rate. */
static void plain_adamw(const Setting *o, Plain *p, const double *g, int t, double lr)
{
    double c1 = 1 - pow(o->beta1, t), c2 = 1 - pow(o->beta2, t);
    for (int i = 0; i < p->n; i++) {
        p->m[i] = o->beta1 * p->m[i] + (1 - o->beta1) * g[i];
        p->v[i] = o->beta2 * p->v[i] + (1 - o->beta2) * g[i] * g[i];
        double step = (p->m[i] / c1) / (sqrt(p->v[i] / c2) + o->eps);
        p->w[i] -= lr * p->lr_scale * (step + p->decay * p->w[i]);
    }
}

static void plain_sgd(const Setting *o, Plain *p, const double *grad, double lr)
{
    for (int i = 0; i < p->n; i++) {
        double g = grad[i] + p->decay * p->w[i];
        p->m[i] = o->momentum * p->m[i] + g;
        double step = o->momentum == 0 ? g : o->nesterov ? g + o->momentum * p->m[i] : p->m[i];
        p->w[i] -= lr * p->lr_scale * step;
    }
}

static Model *four_params(Ctx *ctx, Plain *plain)
{
    static const struct {
        const char *path;
        int rank, a, b;
    } shapes[PARAMS] = {{"W", 2, 3, 4}, {"b", 1, 5, 0}, {"s", 0, 0, 0}, {"f", 1, 2, 0}};
    Arena *a = ctx->program;
    Model *m = NEW(a, Model);
    m->graph = graph_new(ctx, a);
    uint64_t state = 3;
    for (int i = 0; i < PARAMS; i++) {
        Param p = {.path = name_str(ctx, shapes[i].path), .lr_scale = 1, .decay = NAN};
        p.shape.rank = (uint8_t)shapes[i].rank;
        p.shape.d[0] = DIM(shapes[i].a);
        p.shape.d[1] = DIM(shapes[i].b);
        p.elements = i == 0 ? 12 : i == 1 ? 5 : i == 2 ? 1 : 2;
        plain[i] = (Plain){.n = (int)p.elements,
                           .lr_scale = i == 1 ? 0.25 : 1,
                           .decay = i == 0   ? 0.1
                                    : i == 2 ? 0.03
                                             : 0,
                           .frozen = i == 3};
        for (int k = 0; k < plain[i].n; k++)
            plain[i].w[k] = plain[i].average[k] = noise(&state);
        p.value = ir_ext(m->graph, EXT_PARAM, p.path, DT_REAL, &p.shape);
        vec_push(a, &m->param, p);
    }
    return m;
}

static Train *train_of(Ctx *ctx, const Setting *o, const Plain *plain)
{
    Arena *a = ctx->program;
    Train *t = NEW(a, Train);
    t->clip = o->clip;
    t->batch_seqs = t->micro_seqs = 1;
    t->optimizer.kind = name_str(ctx, o->kind);
    const HostExpr *step = host_op(a, HO_ADD, host_var(a, HV_STEP), host_const(a, 1), NULL);
    t->optimizer.lr = host_op(a, HO_DIV, host_const(a, o->lr), step, NULL);
    if (o->average) {
        const HostExpr *ten = host_const(a, 10), *most = host_const(a, o->average);
        const HostExpr *later = host_op(a, HO_ADD, host_var(a, HV_STEP), ten, NULL);
        const HostExpr *early = host_op(a, HO_DIV, step, later, NULL);
        t->average = host_op(a, HO_MIN, most, early, NULL);
    }
    const struct {
        const char *name;
        double value;
    } all[] = {{"beta1", o->beta1},
               {"beta2", o->beta2},
               {"eps", o->eps},
               {"momentum", o->momentum},
               {"nesterov", o->nesterov}};
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        OptimizerConstant c = {name_str(ctx, all[i].name), all[i].value};
        vec_push(a, &t->optimizer.constant, c);
    }
    t->optimizer.lr_scale = NEW_ARRAY(a, double, PARAMS);
    t->optimizer.decay = NEW_ARRAY(a, double, PARAMS);
    t->optimizer.frozen = NEW_ARRAY(a, bool, PARAMS);
    for (int i = 0; i < PARAMS; i++) {
        t->optimizer.lr_scale[i] = plain[i].lr_scale;
        t->optimizer.decay[i] = plain[i].decay;
        t->optimizer.frozen[i] = plain[i].frozen;
    }
    return t;
}

/* The tensors of the graph, zeroed; weights from `plain`. */
static RefBinding *bind(Ctx *ctx, const Graph *g, const Plain *plain)
{
    RefBinding *b = NEW_ARRAY(ctx->program, RefBinding, g->ext.n);
    for (size_t i = 0; i < g->ext.n; i++) {
        const Ext *x = &g->ext.v[i];
        int64_t d[MAX_RANK];
        for (int k = 0; k < x->shape.rank; k++)
            d[k] = x->shape.d[k].n;
        b[i] =
            (RefBinding){x->kind, x->name, tensor_new(ctx->program, DT_REAL, x->shape.rank, d)};
        for (int k = 0; x->kind == EXT_PARAM && k < PARAMS; k++)
            if (!strcmp(x->name, k == 0 ? "W" : k == 1 ? "b" : k == 2 ? "s" : "f"))
                memcpy(b[i].tensor->real, plain[k].w, sizeof(double) * (size_t)plain[k].n);
        for (int k = 0; x->kind == EXT_STATE && strstr(x->name, ":average") && k < PARAMS; k++)
            if (x->name[0] == "Wbsf"[k])
                memcpy(b[i].tensor->real, plain[k].w, sizeof(double) * (size_t)plain[k].n);
    }
    return b;
}

static Tensor *bound(const Graph *g, const RefBinding *b, ExtKind kind, const char *name)
{
    for (size_t i = 0; i < g->ext.n; i++)
        if (b[i].kind == kind && !strcmp(b[i].name, name))
            return b[i].tensor;
    return NULL;
}

static const char *const names[PARAMS] = {"W", "b", "s", "f"};

static double near(double a, double b)
{
    double d = fabs(a - b) / (1e-12 + fabs(a) + fabs(b));
    return d <= 1 ? d : 1; /* NaN is far */
}

static void compare(Tally *t, const Setting *o, const char *what)
{
    Ctx *ctx = ctx_new(NULL);
    Plain plain[PARAMS];
    Model *m = four_params(ctx, plain);
    Train *train = train_of(ctx, o, plain);
    Graph *g = graph_simplify(step_update(m, train, ctx->program), ctx->program);
    graph_verify(g);
    RefBinding *b = bind(ctx, g, plain);
    CHECKF(t, !bound(g, b, EXT_PARAM, "f") && !bound(g, b, EXT_GRAD, "f"), "%s: frozen", what);
    CHECKF(t, !bound(g, b, EXT_STATE, "W:v") == (strcmp(o->kind, "adamw") != 0), "%s: v", what);
    uint64_t state = 17;
    for (int step = 0; step < STEPS; step++) {
        double grad[PARAMS][N], sum = 0, worst = 0;
        for (int i = 0; i < 3; i++)
            for (int k = 0; k < plain[i].n; k++) {
                grad[i][k] = noise(&state) * (step == 3 ? 0.01 : 1);
                sum += grad[i][k] * grad[i][k];
                bound(g, b, EXT_GRAD, names[i])->real[k] = grad[i][k];
            }
        double norm = sqrt(sum), factor = o->clip > 0 && norm > o->clip ? o->clip / norm : 1;
        double vars[HV_COUNT] = {[HV_STEP] = step}, lr = o->lr / (step + 1);
        RefRun run = {.B = 1, .T = 1, .host_vars = vars, .bind = b, .n_bind = g->ext.n};
        Tensor *result[64];
        ref_evaluate(g, ctx->program, &run, result);
        for (size_t i = 0; i < g->out.n; i++)
            if (g->out.v[i].ext < 0)
                CHECKF(t, near(result[i]->real[0], norm) < 1e-12, "%s: norm %g, not %g", what,
                       result[i]->real[0], norm);
        for (int i = 0; i < 3; i++) {
            for (int k = 0; k < plain[i].n; k++)
                grad[i][k] *= factor;
            if (strcmp(o->kind, "adamw"))
                plain_sgd(o, &plain[i], grad[i], lr);
            else
                plain_adamw(o, &plain[i], grad[i], step + 1, lr);
            char name[12];
            snprintf(name, sizeof name, "%s:average", names[i]);
            const Tensor *average = bound(g, b, EXT_STATE, name);
            CHECKF(t, (average != NULL) == (o->average > 0), "%s: `%s`", what, name);
            double decay = decay_at(o, step);
            for (int k = 0; k < plain[i].n; k++) {
                double *mean = &plain[i].average[k];
                *mean = decay * *mean + (1 - decay) * plain[i].w[k];
                worst =
                    fmax(worst, near(plain[i].w[k], bound(g, b, EXT_PARAM, names[i])->real[k]));
                if (average)
                    worst = fmax(worst, near(*mean, average->real[k]));
            }
        }
        CHECKF(t, worst < 1e-12, "%s: step %d: relative difference %g", what, step, worst);
    }
    ctx_free(ctx);
}

/* A gradient with a NaN or an infinity leaves weights and moments as they were. */
static void not_finite(Tally *t, const char *kind, double poison)
{
    Ctx *ctx = ctx_new(NULL);
    Plain plain[PARAMS];
    Setting o = {kind, 0.9, 0.99, 1e-8, 0.9, 1, 0.1, false, 0.5};
    Model *m = four_params(ctx, plain);
    Graph *g =
        graph_simplify(step_update(m, train_of(ctx, &o, plain), ctx->program), ctx->program);
    RefBinding *b = bind(ctx, g, plain);
    for (size_t i = 0; i < g->ext.n; i++)
        for (int64_t k = 0; b[i].kind != EXT_PARAM && k < b[i].tensor->size; k++)
            b[i].tensor->real[k] = 0.5;
    bound(g, b, EXT_GRAD, "b")->real[2] = poison;
    double vars[HV_COUNT] = {0};
    RefRun run = {.B = 1, .T = 1, .host_vars = vars, .bind = b, .n_bind = g->ext.n};
    Tensor *result[64];
    ref_evaluate(g, ctx->program, &run, result);
    for (int i = 0; i < 3; i++)
        CHECKF(t,
               !memcmp(bound(g, b, EXT_PARAM, names[i])->real, plain[i].w,
                       sizeof(double) * (size_t)plain[i].n),
               "%s: `%s` changed", kind, names[i]);
    for (size_t i = 0; i < g->ext.n; i++)
        for (int64_t k = 0; b[i].kind == EXT_STATE && k < b[i].tensor->size; k++)
            CHECKF(t, b[i].tensor->real[k] == 0.5, "%s: a moment changed", kind);
    ctx_free(ctx);
}

static void initial_values(Tally *t)
{
    Ctx *ctx = ctx_new(NULL);
    enum { MANY = 20000 };
    double *v = NEW_ARRAY(ctx->program, double, MANY),
           *w = NEW_ARRAY(ctx->program, double, MANY);
    Param p = {.path = name_str(ctx, "x"),
               .elements = MANY,
               .shape = {.rank = 2, .d = {DIM(100), DIM(200)}}};
    const struct {
        Init init;
        double mean, std, most;
    } cases[] = {
        {{.kind = INIT_FILL, .a = 0.5}, 0.5, 0, 0.5},
        {{.kind = INIT_NORMAL, .a = 0.02}, 0, 0.02, 0.02 * 6},
        /* standard deviation of a normal cut at two: 0.8796 */
        {{.kind = INIT_TRUNC_NORMAL, .a = 0.02, .b = 2}, 0, 0.02 * 0.87962566103423978, 0.04},
        {{.kind = INIT_UNIFORM, .a = -1, .b = 3}, 1, 4 / sqrt(12), 3},
        {{.kind = INIT_EYE}, 0.005, sqrt(0.005 * 0.995), 1},
    };
    for (size_t c = 0; c < COUNT_OF(cases); c++) {
        double sum = 0, square = 0, most = 0;
        p.init = cases[c].init;
        param_init(&p, 1, v);
        for (int i = 0; i < MANY; i++) {
            sum += v[i];
            most = fmax(most, fabs(v[i]));
        }
        double mean = sum / MANY;
        for (int i = 0; i < MANY; i++)
            square += (v[i] - mean) * (v[i] - mean);
        double std = sqrt(square / MANY), room = 4 * cases[c].std / sqrt(MANY) + 1e-12;
        CHECKF(t, fabs(mean - cases[c].mean) < room, "init %d: mean %g", (int)c, mean);
        CHECKF(t, fabs(std - cases[c].std) < 3 * room, "init %d: std %g", (int)c, std);
        CHECKF(t, most <= cases[c].most, "init %d: %g", (int)c, most);
        param_init(&p, 1, w);
        CHECK(t, !memcmp(v, w, MANY * sizeof *v));
        param_init(&p, 2, w);
        CHECK(t, (c != 0 && c != 4) == (memcmp(v, w, MANY * sizeof *v) != 0));
    }
    CHECK(t, v[0] == 1 && v[1] == 0 && v[201] == 1 && v[19999] == 0 && v[99 * 200 + 99] == 1);
    ctx_free(ctx);
}

int main(void)
{
    Tally t = {0};
    compare(&t, &(Setting){"adamw", 0.9, 0.95, 1e-8, 0, 0, 0.1, false, 0}, "adamw");
    compare(&t, &(Setting){"adamw", 0.9, 0.999, 1e-10, 0, 0.5, 0.1, false, 0}, "adamw, clipped");
    compare(&t, &(Setting){"adamw", 0, 0, 1e-2, 0, 100, 0.1, false, 0}, "adamw without memory");
    compare(&t, &(Setting){"sgd", 0, 0, 0, 0, 0, 0.1, false, 0}, "sgd");
    compare(&t, &(Setting){"sgd", 0, 0, 0, 0.9, 0.5, 0.1, false, 0}, "sgd, momentum");
    compare(&t, &(Setting){"sgd", 0, 0, 0, 0.9, 0, 0.1, true, 0}, "sgd, nesterov");
    compare(&t, &(Setting){"adamw", 0.9, 0.95, 1e-8, 0, 0.5, 0.1, false, 0.3}, "averaged");
    compare(&t, &(Setting){"sgd", 0, 0, 0, 0.9, 0, 0.1, true, 0.999}, "sgd, averaged");
    not_finite(&t, "adamw", NAN);
    not_finite(&t, "adamw", INFINITY);
    not_finite(&t, "sgd", -INFINITY);
    initial_values(&t);
    return tally_end(&t, "optimizer");
}
