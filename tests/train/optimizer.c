/* optimizer.c - the update graph against the formulas written out in plain float64.
 *
 * When: quick, checked.
 */
#include <math.h>

#include "compiler/model/optimizer.h"
#include "compiler/pass/simplify.h"
#include "support.h"

/* W is a matrix, X two tall ones, the last parameter is frozen. */
enum { N = 24, PARAMS = 5, TRAINED = 4, STEPS = 7 };
static const char *const names[PARAMS] = {"W", "b", "s", "X", "f"};

typedef struct Plain { /* one parameter, as the papers write it */
    double w[N], m[N], v[N], average[N], lr_scale, decay;
    int n;
    bool frozen;
    int came[N];      /* updates that were done before an element came, or that it missed later */
    int part[N];      /* the growth step that an element came with */
    double factor[N]; /* of its rate now; 0: it is frozen */
} Plain;

typedef struct Setting {
    const char *kind;
    double beta1, beta2, eps, momentum, clip, lr;
    bool nesterov;
    double average; /* largest decay of the average of the weights, 0 = none */
    double rms;     /* of muon, 0 = none */
    int rounds;     /* of muon, 0 = the default */
    bool coupled;   /* decay of sgd */
    int grown; /* 1: by two steps, W and the scalar; CARRIED: so, and the last row of W and the scalar are copies, which
                       began with moments of what was there first */
    int rates; /* what these steps say of rates, 0 = nothing: see factor_at() */
} Setting;

/* Updates when the two steps of growth were done; where they give rates, BEFORE more were done before the first here. */
enum { BEFORE = 5, CAME_1 = -3, CAME_2 = -1 };
enum { CARRIED = 2 };
enum { RISING = 1, FROZEN, RELEASED, NEW_FROZEN };

/* The factor of a part after `done` updates and `step` steps, written out for each kind.
 *   RISING:     the first step says old 0.5 and new 2 with a warm-up of 8, the second old `1 / (step + 2)` with 11
 *   FROZEN:     the first says new 3, the second old 0
 *   RELEASED:   the first says old 0, the second old 0.75 with 9
 *   NEW_FROZEN: the second says new 0 */
static double factor_at(int rates, int part, int done, int step)
{
    int since1 = done + 1 - CAME_1, since2 = done + 1 - CAME_2;
    switch (rates) {
    case RISING: return part == 2 ? 1 : 1.0 / (step + 2) * fmin(1, since2 / 11.0);
    case FROZEN: return part == 2 ? 1 : 0;
    case RELEASED: return part == 2 ? 1 : 0.75 * fmin(1, since2 / 9.0);
    case NEW_FROZEN: return part == 2 ? 0 : 1;
    default: return since1 > 0 ? 1 : NAN;
    }
}

static bool is_muon(const Setting *o) { return !strcmp(o->kind, "muon"); }

enum { SECOND = 3 }; /* the rate of muon's adamw is so many times that of muon */

/* min(largest, (step + 1) / (step + 10)), from step 0 */
static double decay_at(const Setting *o, int step) { return fmin(o->average, (step + 1.0) / (step + 10.0)); }

static double noise(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(int64_t)(*state >> 11) / (double)(1ull << 52) - 1;
}

/* Loshchilov and Hutter 2019, Algorithm 2, with the schedule in the rate. */
static void plain_adamw(const Setting *o, Plain *p, const double *g, int t, double lr)
{
    for (int i = 0; i < p->n; i++) {
        if (p->factor[i] == 0)
            continue;
        double c1 = 1 - pow(o->beta1, t - p->came[i]), c2 = 1 - pow(o->beta2, t - p->came[i]);
        p->m[i] = o->beta1 * p->m[i] + (1 - o->beta1) * g[i];
        p->v[i] = o->beta2 * p->v[i] + (1 - o->beta2) * g[i] * g[i];
        double step = (p->m[i] / c1) / (sqrt(p->v[i] / c2) + o->eps);
        p->w[i] -= lr * p->lr_scale * p->factor[i] * (step + p->decay * p->w[i]);
    }
}

/* Coupled: as torch.optim.SGD says. Else Algorithm 1 of Loshchilov and Hutter 2019, line 9, whose
 * momentum has the rate in it: here the rate stands before the step. */
static void plain_sgd(const Setting *o, Plain *p, const double *grad, double lr)
{
    for (int i = 0; i < p->n; i++) {
        if (p->factor[i] == 0)
            continue;
        double g = grad[i] + (o->coupled ? p->decay * p->w[i] : 0);
        p->m[i] = o->momentum * p->m[i] + g;
        double step = o->momentum == 0 ? g : o->nesterov ? g + o->momentum * p->m[i] : p->m[i];
        double rate = lr * p->lr_scale * p->factor[i], shrunk = o->coupled ? 0 : rate * p->decay * p->w[i];
        p->w[i] -= rate * step + shrunk;
    }
}

/* Chen et al. 2023, Algorithm 2. */
static void plain_lion(const Setting *o, Plain *p, const double *g, double lr)
{
    for (int i = 0; i < p->n; i++) {
        if (p->factor[i] == 0)
            continue;
        double c = o->beta1 * p->m[i] + (1 - o->beta1) * g[i];
        double sign = c > 0 ? 1 : c < 0 ? -1 : 0;
        p->w[i] -= lr * p->lr_scale * p->factor[i] * (sign + p->decay * p->w[i]);
        p->m[i] = o->beta2 * p->m[i] + (1 - o->beta2) * g[i];
    }
}

/* out [a, c] = x [a, b] y [b, c]; y is [c, b] when turned */
static void plain_product(int a, int b, int c, const double *x, const double *y, bool turned, double *out)
{
    for (int i = 0; i < a; i++)
        for (int j = 0; j < c; j++) {
            out[i * c + j] = 0;
            for (int k = 0; k < b; k++)
                out[i * c + j] += x[i * b + k] * (turned ? y[j * b + k] : y[k * c + j]);
        }
}

/* As Jordan's code has it: a tall matrix is turned first. x is [rows, columns]. */
static void plain_newton_schulz(int rows, int columns, double *x, int rounds)
{
    double t[N], A[N], AA[N], B[N], BX[N], sum = 0;
    bool tall = rows > columns;
    int r = tall ? columns : rows, c = tall ? rows : columns;
    for (int i = 0; i < r * c; i++)
        sum += x[i] * x[i];
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            t[tall ? j * rows + i : i * columns + j] = x[i * columns + j] / (sqrt(sum) + 1e-7);
    for (int round = 0; round < rounds; round++) {
        plain_product(r, c, r, t, t, true, A);
        plain_product(r, r, r, A, A, false, AA);
        for (int i = 0; i < r * r; i++)
            B[i] = -4.7750 * A[i] + 2.0315 * AA[i];
        plain_product(r, r, c, B, t, false, BX);
        for (int i = 0; i < r * c; i++)
            t[i] = 3.4445 * t[i] + BX[i];
    }
    for (int i = 0; i < rows; i++)
        for (int j = 0; j < columns; j++)
            x[i * columns + j] = t[tall ? j * rows + i : i * columns + j];
}

/* A batch of matrices [in, out]; decay is decoupled. */
static void plain_muon(const Setting *o, Plain *p, const double *g, int in, int out, double lr)
{
    double scale = o->rms > 0 ? o->rms * sqrt(in > out ? in : out) : out > in ? sqrt((double)out / in) : 1;
    double step[N];
    for (int i = 0; i < p->n; i++) {
        p->m[i] = o->momentum * p->m[i] + g[i];
        step[i] = o->momentum == 0 ? g[i] : o->nesterov ? g[i] + o->momentum * p->m[i] : p->m[i];
    }
    for (int i = 0; i < p->n; i += in * out)
        plain_newton_schulz(in, out, step + i, o->rounds ? o->rounds : 5);
    for (int i = 0; i < p->n; i++)
        p->w[i] -= lr * p->lr_scale * p->factor[i] * (scale * step[i] + p->decay * p->w[i]);
}

/* One step of parameter i, t steps with this one. */
static void plain_step(const Setting *o, Plain *p, int i, const double *g, int t, double lr)
{
    if (is_muon(o) && (i == 0 || i == 3))
        plain_muon(o, p, g, i == 0 ? 3 : 4, i == 0 ? 4 : 3, lr);
    else if (is_muon(o))
        plain_adamw(o, p, g, t, SECOND * lr);
    else if (!strcmp(o->kind, "adamw"))
        plain_adamw(o, p, g, t, lr);
    else if (!strcmp(o->kind, "lion"))
        plain_lion(o, p, g, lr);
    else
        plain_sgd(o, p, g, lr);
}

static Model *all_params(Ctx *ctx, Plain *plain)
{
    static const struct {
        int rank, a, b, c;
    } shapes[PARAMS] = {{2, 3, 4, 1}, {1, 5, 1, 1}, {0, 1, 1, 1}, {3, 2, 4, 3}, {1, 2, 1, 1}};
    Arena *a = ctx->program;
    Model *m = NEW(a, Model);
    m->graph = graph_new(ctx, a);
    uint64_t state = 3;
    for (int i = 0; i < PARAMS; i++) {
        Param p = {.path = name_str(ctx, names[i]), .lr_scale = 1, .decay = NAN};
        p.shape.rank = (uint8_t)shapes[i].rank;
        p.shape.d[0] = DIM(shapes[i].a);
        p.shape.d[1] = DIM(shapes[i].b);
        p.shape.d[2] = DIM(shapes[i].c);
        p.elements = shapes[i].a * shapes[i].b * shapes[i].c;
        plain[i] = (Plain){.n = (int)p.elements,
                           .lr_scale = i == 1 ? 0.25 : 1,
                           .decay = i == 0   ? 0.1
                                    : i == 2 ? 0.03
                                             : 0,
                           .frozen = i == TRAINED};
        for (int k = 0; k < plain[i].n; k++)
            plain[i].w[k] = plain[i].average[k] = noise(&state), plain[i].factor[k] = 1;
        p.value = ir_ext(m->graph, EXT_PARAM, p.path, DT_REAL, &p.shape);
        vec_push(a, &m->param, p);
    }
    return m;
}

static PartRate rate_of(Ctx *ctx, double scale, double warmup)
{
    Arena *a = ctx->program;
    return (PartRate){.said = true, .scale = host_const(a, scale), .warmup = warmup > 0 ? host_const(a, warmup) : NULL};
}

static GrownParts births_of(Ctx *ctx, const Setting *o)
{
    Arena *a = ctx->program;
    double *updates = NEW_ARRAY(a, double, 2);
    PartRate *old = NEW_ARRAY(a, PartRate, 2), *fresh = NEW_ARRAY(a, PartRate, 2);
    bool *some = NEW_ARRAY(a, bool, PARAMS);
    some[0] = some[2] = true;
    updates[0] = CAME_1 + (o->rates ? BEFORE : 0);
    updates[1] = CAME_2 + (o->rates ? BEFORE : 0);
    if (o->rates == RISING) {
        const HostExpr *later = host_op(a, HO_ADD, host_var(a, HV_STEP), host_const(a, 2), NULL);
        old[0] = rate_of(ctx, 0.5, 0);
        fresh[0] = rate_of(ctx, 2, 8);
        old[1] = rate_of(ctx, 0, 11);
        old[1].scale = host_op(a, HO_DIV, host_const(a, 1), later, NULL);
    } else if (o->rates == FROZEN) {
        fresh[0] = rate_of(ctx, 3, 0);
        old[1] = rate_of(ctx, 0, 0);
    } else if (o->rates == RELEASED) {
        old[0] = rate_of(ctx, 0, 0);
        old[1] = rate_of(ctx, 0.75, 9);
    } else if (o->rates == NEW_FROZEN) {
        fresh[1] = rate_of(ctx, 0, 0);
    }
    return (GrownParts){updates, 2, some, o->grown == CARRIED, o->rates ? old : NULL, o->rates ? fresh : NULL};
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
    Optimizer *second = NEW(a, Optimizer);
    second->kind = name_str(ctx, "adamw");
    second->lr = host_op(a, HO_MUL, t->optimizer.lr, host_const(a, SECOND), NULL);
    t->optimizer.by_second = NEW_ARRAY(a, bool, PARAMS);
    t->optimizer.second = is_muon(o) ? second : NULL;
    if (o->average) {
        const HostExpr *ten = host_const(a, 10), *most = host_const(a, o->average);
        const HostExpr *later = host_op(a, HO_ADD, host_var(a, HV_STEP), ten, NULL);
        const HostExpr *early = host_op(a, HO_DIV, step, later, NULL);
        t->average = host_op(a, HO_MIN, most, early, NULL);
    }
    const struct {
        const char *name;
        double value;
    } all[] = {{"beta1", o->beta1},       {"beta2", o->beta2},
               {"eps", o->eps},           {"momentum", o->momentum},
               {"nesterov", o->nesterov}, {"steps", o->rounds ? o->rounds : 5},
               {"coupled", o->coupled},   {"rms", o->rms}};
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        OptimizerConstant c = {name_str(ctx, all[i].name), all[i].value};
        bool of_second = is_muon(o) && i < 3;
        if (strcmp(all[i].name, "rms") || o->rms > 0)
            vec_push(a, of_second ? &second->constant : &t->optimizer.constant, c);
    }
    if (o->grown)
        t->births = births_of(ctx, o);
    t->optimizer.lr_scale = NEW_ARRAY(a, double, PARAMS);
    t->optimizer.decay = NEW_ARRAY(a, double, PARAMS);
    t->optimizer.frozen = NEW_ARRAY(a, bool, PARAMS);
    for (int i = 0; i < PARAMS; i++) {
        t->optimizer.lr_scale[i] = plain[i].lr_scale;
        t->optimizer.decay[i] = plain[i].decay;
        t->optimizer.frozen[i] = plain[i].frozen;
        t->optimizer.by_second[i] = i != 0 && i != 3;
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
        b[i] = (RefBinding){x->kind, x->name, tensor_new(ctx->program, DT_REAL, x->shape.rank, d)};
        for (int k = 0; x->kind == EXT_PARAM && k < PARAMS; k++)
            if (!strcmp(x->name, names[k]))
                memcpy(b[i].tensor->real, plain[k].w, sizeof(double) * (size_t)plain[k].n);
        for (int k = 0; x->kind == EXT_STATE && strstr(x->name, ":average") && k < PARAMS; k++)
            if (x->name[0] == names[k][0])
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

/* Says what of W and of the scalar came with which growth step. */
static void grow(const Graph *g, RefBinding *b, const Setting *o, Plain *plain)
{
    static const double rows[3] = {0, 0, 2}, columns[4] = {0, 1, 0, 0};
    if (bound(g, b, EXT_STATE, "W:born0")) {
        memcpy(bound(g, b, EXT_STATE, "W:born0")->real, rows, sizeof rows);
        memcpy(bound(g, b, EXT_STATE, "W:born1")->real, columns, sizeof columns);
        bound(g, b, EXT_STATE, "s:born0")->real[0] = 1;
    }
    plain[2].part[0] = 1;
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 4; k++)
            plain[0].part[i * 4 + k] = (int)fmax(rows[i], columns[k]);
    if (o->grown == CARRIED)
        memcpy(bound(g, b, EXT_STATE, "W:since1")->real, columns, sizeof columns); /* "W:since0", "s:since0": zeros */
    for (int i = 0; i < TRAINED; i++)
        for (int k = 0; k < plain[i].n; k++) {
            int part = plain[i].part[k], moments = o->grown != CARRIED ? part : i == 0 ? (int)columns[k % 4] : 0;
            bool froze = o->rates == RELEASED && !moments && part != 1; /* until the second step, what came first */
            plain[i].came[k] = (froze ? CAME_2 - CAME_1 : 0) +
                               (moments ? (moments == 1 ? CAME_1 : CAME_2) + (o->rates ? BEFORE : 0) : 0);
        }
}

static double near(double a, double b)
{
    double d = fabs(a - b) / (1e-12 + fabs(a) + fabs(b));
    return d <= 1 ? d : 1; /* NaN is far */
}

/* The states of the graph are those that memory is counted with. */
static void states(Tally *t, const Graph *g, const RefBinding *b, const Train *train, const char *what)
{
    static const char *const which[] = {"m", "v"};
    for (size_t i = 0; i < TRAINED; i++) {
        int there = 0;
        if (i && !bound(g, b, EXT_GRAD, names[i]))
            continue; /* held: what keeps its states is the checkpoint */
        for (size_t k = 0; k < COUNT_OF(which); k++) {
            char name[12];
            snprintf(name, sizeof name, "%s:%s", names[i], which[k]);
            there += bound(g, b, EXT_STATE, name) != NULL;
        }
        int counted = optimizer_states(&train->optimizer, i);
        CHECKF(t, there == counted, "%s: `%s` has %d states, not %d", what, names[i], there, counted);
    }
}

enum { SKIPPED = 4 }; /* the step whose gradient is infinite: schedules count it, updates do not */

static void compare(Tally *t, const Setting *o, const char *what)
{
    Ctx *ctx = ctx_new(NULL);
    Plain plain[PARAMS];
    Model *m = all_params(ctx, plain);
    Train *train = train_of(ctx, o, plain);
    Graph *g = graph_simplify(step_update(m, train, ctx->program), ctx->program);
    graph_verify(g);
    RefBinding *b = bind(ctx, g, plain);
    CHECKF(t, !bound(g, b, EXT_PARAM, "f") && !bound(g, b, EXT_GRAD, "f"), "%s: frozen", what);
    CHECKF(t, !bound(g, b, EXT_STATE, "W:v") == (strcmp(o->kind, "adamw") != 0), "%s: v", what);
    states(t, g, b, train, what);
    bool born = o->grown && (o->grown != CARRIED || o->rates);
    CHECKF(t, !bound(g, b, EXT_STATE, "W:since0") == (o->grown != CARRIED), "%s: since", what);
    CHECKF(t, !bound(g, b, EXT_STATE, "W:born0") == !born && !bound(g, b, EXT_STATE, "b:born0"), "%s: born", what);
    CHECKF(t, !bound(g, b, EXT_GRAD, "X") == (o->rates == FROZEN), "%s: what is frozen as a whole has no gradient",
           what);
    const int before = o->rates ? BEFORE : 0;
    if (o->grown)
        grow(g, b, o, plain);
    uint64_t state = 17;
    for (int step = 0; step < STEPS; step++) {
        double grad[PARAMS][N], sum = 0, worst = 0;
        const int done = step - (step > SKIPPED);
        for (int i = 0; i < TRAINED; i++)
            for (int k = 0; k < plain[i].n; k++) {
                Tensor *of = bound(g, b, EXT_GRAD, names[i]);
                grad[i][k] = noise(&state) * (step == 3 ? 0.01 : 1);
                if (o->rates)
                    plain[i].factor[k] = factor_at(o->rates, plain[i].part[k], done, step);
                sum += plain[i].factor[k] == 0 ? 0 : grad[i][k] * grad[i][k];
                if (of)
                    of->real[k] = grad[i][k];
            }
        if (step == SKIPPED)
            bound(g, b, EXT_GRAD, "W")->real[o->rates == FROZEN ? 11 : 2] = INFINITY; /* it moves */
        double norm = sqrt(sum), factor = o->clip > 0 && norm > o->clip ? o->clip / norm : 1;
        double vars[HV_COUNT] = {[HV_STEP] = step, [HV_UPDATES] = done + before}, lr = o->lr / (step + 1);
        RefRun run = {.B = 1, .T = 1, .host_vars = vars, .bind = b, .n_bind = g->ext.n};
        Tensor *result[64];
        ref_evaluate(g, ctx->program, &run, result);
        if (step == SKIPPED)
            continue;
        for (size_t i = 0; i < g->out.n; i++)
            if (g->out.v[i].ext < 0)
                CHECKF(t, near(result[i]->real[0], norm) < 1e-12, "%s: norm %g, not %g", what, result[i]->real[0],
                       norm);
        for (int i = 0; i < TRAINED; i++) {
            for (int k = 0; k < plain[i].n; k++)
                grad[i][k] *= factor;
            plain_step(o, &plain[i], i, grad[i], done + 1 + before, lr);
            char name[12];
            snprintf(name, sizeof name, "%s:average", names[i]);
            const Tensor *average = bound(g, b, EXT_STATE, name);
            CHECKF(t, (average != NULL) == (o->average > 0), "%s: `%s`", what, name);
            snprintf(name, sizeof name, "%s:m", names[i]);
            const Tensor *moment = bound(g, b, EXT_STATE, name);
            double decay = decay_at(o, step);
            for (int k = 0; k < plain[i].n; k++) {
                double *mean = &plain[i].average[k];
                *mean = decay * *mean + (1 - decay) * plain[i].w[k];
                const Tensor *w = bound(g, b, EXT_PARAM, names[i]);
                if (w)
                    worst = fmax(worst, near(plain[i].w[k], w->real[k]));
                if (average)
                    worst = fmax(worst, near(*mean, average->real[k]));
                if (moment)
                    worst = fmax(worst, near(plain[i].m[k], moment->real[k]));
            }
        }
        CHECKF(t, worst < 1e-12, "%s: step %d: relative difference %g", what, step, worst);
    }
    ctx_free(ctx);
}

/* The formulas above against two weights after three steps of torch.optim.SGD (PyTorch 2.15,
 * float64): coupled with its weight_decay, else with w *= 1 - lr decay before each of its steps. */
static void as_pytorch(Tally *t)
{
    static const double grads[3][2] = {{1, -2}, {0.5, 0.25}, {-0.25, 4}};
    static const struct {
        double momentum;
        bool nesterov, coupled;
        double w[2];
    } cases[] = {{0, false, false, {0.744625, -0.6719375}},   {0, false, true, {0.744625, -0.6719375}},
                 {0.9, false, false, {0.533125, -0.3614375}}, {0.9, false, true, {0.411625, -0.3074375}},
                 {0.9, true, false, {0.4528, -0.6114125}},    {0.9, true, true, {0.258362875, -0.5507193125}}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        Setting o = {.momentum = cases[i].momentum};
        o.nesterov = cases[i].nesterov;
        o.coupled = cases[i].coupled;
        Plain p = {.w = {1, -0.5}, .lr_scale = 1, .decay = 0.5, .n = 2, .factor = {1, 1}};
        for (int step = 0; step < 3; step++)
            plain_sgd(&o, &p, grads[step], 0.1);
        for (int k = 0; k < 2; k++)
            CHECKF(t, fabs(p.w[k] - cases[i].w[k]) < 1e-14, "PyTorch, case %d: %.17g, not %.17g", (int)i, p.w[k],
                   cases[i].w[k]);
    }
}

/* A gradient with a NaN or an infinity leaves weights and moments as they were. */
static void not_finite(Tally *t, const char *kind, double clip, double poison)
{
    Ctx *ctx = ctx_new(NULL);
    Plain plain[PARAMS];
    Setting o = {kind, 0.9, 0.99, 1e-8, 0.9, clip, 0.1, false, 0.5, 0, 0, false, false, 0};
    Model *m = all_params(ctx, plain);
    Graph *g = graph_simplify(step_update(m, train_of(ctx, &o, plain), ctx->program), ctx->program);
    RefBinding *b = bind(ctx, g, plain);
    for (size_t i = 0; i < g->ext.n; i++)
        for (int64_t k = 0; b[i].kind != EXT_PARAM && k < b[i].tensor->size; k++)
            b[i].tensor->real[k] = 0.5;
    bound(g, b, EXT_GRAD, "b")->real[2] = poison;
    double vars[HV_COUNT] = {0};
    RefRun run = {.B = 1, .T = 1, .host_vars = vars, .bind = b, .n_bind = g->ext.n};
    Tensor *result[64];
    ref_evaluate(g, ctx->program, &run, result);
    for (int i = 0; i < TRAINED; i++)
        CHECKF(t, !memcmp(bound(g, b, EXT_PARAM, names[i])->real, plain[i].w, sizeof(double) * (size_t)plain[i].n),
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
    double *v = NEW_ARRAY(ctx->program, double, MANY), *w = NEW_ARRAY(ctx->program, double, MANY);
    Param p = {.path = name_str(ctx, "x"), .elements = MANY, .shape = {.rank = 2, .d = {DIM(100), DIM(200)}}};
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
    compare(&t, &(Setting){"adamw", 0.9, 0.95, 1e-8, 0, 0, 0.1, false, 0, 0, 0, false, false, 0}, "adamw");
    compare(&t, &(Setting){"adamw", 0.9, 0.95, 1e-8, 0, 0.5, 0.1, false, 0, 0, 0, false, true, 0}, "adamw, grown");
    compare(&t, &(Setting){"adamw", 0.9, 0.999, 1e-10, 0, 0.5, 0.1, false, 0, 0, 0, false, false, 0}, "adamw, clipped");
    compare(&t, &(Setting){"adamw", 0, 0, 1e-2, 0, 100, 0.1, false, 0, 0, 0, false, false, 0}, "adamw without memory");
    compare(&t, &(Setting){"sgd", 0, 0, 0, 0, 0, 0.1, false, 0, 0, 0, false, false, 0}, "sgd");
    compare(&t, &(Setting){"sgd", 0, 0, 0, 0.9, 0.5, 0.1, false, 0, 0, 0, false, false, 0}, "sgd, momentum");
    compare(&t, &(Setting){"sgd", 0, 0, 0, 0.9, 0, 0.1, true, 0, 0, 0, false, false, 0}, "sgd, nesterov");
    compare(&t, &(Setting){"sgd", 0, 0, 0, 0, 0, 0.1, false, 0, 0, 0, true, false, 0}, "sgd, coupled");
    compare(&t, &(Setting){"sgd", 0, 0, 0, 0.9, 0.5, 0.1, false, 0, 0, 0, true, false, 0}, "sgd, momentum, coupled");
    compare(&t, &(Setting){"sgd", 0, 0, 0, 0.9, 0, 0.1, true, 0, 0, 0, true, false, 0}, "sgd, nesterov, coupled");
    compare(&t, &(Setting){"adamw", 0.9, 0.95, 1e-8, 0, 0.5, 0.1, false, 0.3, 0, 0, false, false, 0}, "averaged");
    compare(&t, &(Setting){"sgd", 0, 0, 0, 0.9, 0, 0.1, true, 0.999, 0, 0, false, false, 0}, "sgd, averaged");
    compare(&t, &(Setting){"lion", 0.9, 0.99, 0, 0, 0, 0.01, false, 0, 0, 0, false, false, 0}, "lion");
    compare(&t, &(Setting){"lion", 0.95, 0.98, 0, 0, 0.5, 0.01, false, 0.9, 0, 0, false, false, 0},
            "lion, clipped, averaged");
    compare(&t, &(Setting){"muon", 0.9, 0.95, 1e-8, 0.95, 0, 0.02, true, 0, 0, 0, false, false, 0}, "muon");
    compare(&t, &(Setting){"muon", 0.9, 0.95, 1e-8, 0.9, 0.5, 0.02, false, 0.9, 0.2, 3, false, false, 0},
            "muon by rms, clipped, averaged");
    compare(&t, &(Setting){"muon", 0.9, 0.95, 1e-8, 0, 0, 0.02, true, 0, 0, 1, false, false, 0},
            "muon without momentum");
    static const char *const kinds[] = {"adamw", "sgd", "lion", "muon"};
    static const int rates[] = {RISING, RELEASED, FROZEN, NEW_FROZEN};
    for (size_t i = 0; i < COUNT_OF(kinds) * COUNT_OF(rates); i++) {
        Setting o = {kinds[i / COUNT_OF(rates)], 0.9, 0.95, 1e-8, 0.9, 0.5, 0.05, false, 0.9, 0, 0, false, true,
                     rates[i % COUNT_OF(rates)]};
        if (!strcmp(o.kind, "adamw") || !strcmp(o.kind, "lion"))
            o.momentum = 0;
        if (!is_muon(&o) || o.rates == RISING || o.rates == RELEASED) /* others are refused by check */
            compare(&t, &o, o.kind);
    }
    compare(&t, &(Setting){"sgd", 0, 0, 0, 0.9, 0.5, 0.1, true, 0, 0, 0, true, true, FROZEN}, "sgd, coupled, frozen");
    for (int said = 0; said <= NEW_FROZEN; said++)
        compare(&t, &(Setting){"adamw", 0.9, 0.95, 1e-8, 0, 0.5, 0.05, false, 0, 0, 0, false, CARRIED, said},
                "adamw, moments carried");
    for (int clip = 0; clip < 2; clip++) {
        not_finite(&t, "lion", clip, NAN);
        not_finite(&t, "muon", clip, NAN);
        not_finite(&t, "muon", clip, INFINITY);
        not_finite(&t, "adamw", clip, NAN);
        not_finite(&t, "adamw", clip, INFINITY);
        not_finite(&t, "sgd", clip, -INFINITY);
    }
    as_pytorch(&t);
    initial_values(&t);
    return tally_end(&t, "optimizer");
}
