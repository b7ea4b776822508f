/* numbers.c - see stages.h: kernels of a model against the float64 reference evaluator.
 *
 * The one idea: how far results may be off is measured, not guessed: the reference runs a
 * second time with weights that are rounded otherwise. Where that alone moves a result far, as
 * at a choice of experts that is a tie, nothing can be compared.
 */
#include <float.h>

#include "../kernel/interpret.h"
#include "support/models.h"

#include "stages.h"

#include "runtime/exec/exec.h"
#include "compiler/portable/loss_scale.h"

enum { STEPS = 3 };
static const double MOVED = 1e-14; /* weights that are rounded otherwise, in float64 */

static int64_t sequences(const Unit *u) { return u->train ? u->train->micro_seqs : 2; }
static int64_t positions(const Unit *u) { return u->train ? u->train->context : u->model->context; }

/* Numbers for every ext tensor: weights as they are born and noise, times 1 + `rounding` times
 * noise. */
static RefBinding *bindings(Ctx *ctx, const Graph *g, const Unit *u, double rounding)
{
    const int64_t B = sequences(u), T = positions(u);
    RefBinding *bind = bind_all(ctx->program, g, u->model, B, T, 0.3);
    uint64_t state = 5, other = 11;
    for (size_t i = 0; i < g->ext.n; i++) {
        Tensor *t = bind[i].tensor;
        InputRange r = {0};
        bool documents = strcmp(bind[i].name, "document") == 0;
        if (bind[i].kind == EXT_INPUT && t->dtype == DT_INT)
            r = model_input_range(u->model, bind[i].name);
        for (int64_t k = 0; k < t->size; k++) {
            double x = (noise(&state) + 1) / 2;
            if (t->dtype == DT_INT && bind[i].kind == EXT_INPUT)
                t->integer[k] = documents ? k % T / 3 * 3
                                : r.spared && k % 5 == 4 && bind[i].name[0] == 'l'
                                    ? -1
                                    : (int64_t)(x * (double)(r.below > 0 ? r.below : 7));
            else if (t->dtype == DT_REAL && bind[i].kind == EXT_STATE)
                t->real[k] = 0.1 + x; /* at zero a step would be the sign of noise, and squares
                                         are not negative */
            else if (t->dtype == DT_REAL && bind[i].kind == EXT_GRAD)
                t->real[k] = 2 * x - 1;
            else if (t->dtype == DT_REAL && bind[i].kind == EXT_PARAM)
                t->real[k] *= 1 + rounding * noise(&other);
        }
    }
    return bind;
}

static void run_vars(double vars[HV_COUNT], int step, const Unit *u)
{
    for (int i = 0; i < HV_COUNT; i++)
        vars[i] = 0.5 + i;
    vars[HV_STEP] = step;
    vars[HV_LENGTH] = 10;
    vars[HV_PROGRESS] = 0.1 * step;
    vars[HV_TOKENS] = 30 * step;
    vars[HV_LOSS_SCALE] = train_half(u->train) == HALF_FP16 ? LOSS_SCALE_FIRST : 1;
}

static double largest(const double *v, int64_t n)
{
    double most = 0;
    for (int64_t i = 0; i < n; i++)
        most = fmax(most, fabs(v[i]));
    return most;
}

/* The largest difference, as a share of the tensor's largest number or of `least`. */
static double distance(const double *got, const double *want, int64_t n, double least)
{
    double size = fmax(largest(want, n), least), worst = 0;
    for (int64_t i = 0; i < n; i++) {
        double e = got[i] == want[i] ? 0 : fabs(got[i] - want[i]) / size;
        worst = isfinite(e) ? fmax(worst, e) : INFINITY;
    }
    return worst;
}

/* ---- kernels as they are lowered, interpreted ---- */

typedef struct Evaluated {
    RefBinding *bind;
    Tensor **result;
} Evaluated;

static Evaluated evaluate(Ctx *ctx, const Graph *g, const Unit *u, const double *vars, double rounding)
{
    Evaluated e = {bindings(ctx, g, u, rounding), NEW_ARRAY(ctx->program, Tensor *, g->out.n + 1)};
    RefRun run = {.B = sequences(u),
                  .T = positions(u),
                  .seed = 7,
                  .step = 3,
                  .host_vars = vars,
                  .bind = e.bind,
                  .n_bind = g->ext.n};
    ref_evaluate(g, ctx->program, &run, e.result);
    return e;
}

static double tensor_distance(const Tensor *got, const Tensor *want, double least)
{
    if (want->dtype == DT_REAL)
        return distance(got->real, want->real, want->size, least);
    return memcmp(got->integer, want->integer, (size_t)want->size * sizeof *want->integer) ? INFINITY : 0;
}

static void see(Compared *c, const char *name, double off, double allowed)
{
    if (!(off / allowed <= c->worst)) {
        c->worst = off / allowed;
        c->name = name;
    }
}

/* The place of a result of `of` in g, by name. */
static size_t result_in(Ctx *ctx, const Graph *g, const Output *of)
{
    for (size_t i = 0; i < g->out.n; i++)
        if (g->out.v[i].ext < 0 && strcmp(g->out.v[i].name, of->name) == 0)
            return i;
    vwn_bug(ctx, "the result %s is lost", of->name);
    return 0;
}

/* The reference evaluates the graph as it was made, so that what simplifies it is compared,
 * too; one that is rounded, as it is planned. */
static void interpret_program(Ctx *ctx, const Unit *u, const Graph *made, bool no_fusion, Compared *c)
{
    static const double EXACT = 1e-9, FACTOR = 1e3, FAR = 1e-10;
    Half half = train_half(u->train);
    PlanOptions how = {.B = sequences(u), .T = positions(u), .no_fusion = no_fusion, .programs = true, .half = half};
    Graph *g = plan_graph(made, ctx->program, &how);
    Plan *p = plan_build(ctx, ctx->program, g, &how);
    plan_verify(ctx, p);
    double vars[HV_COUNT], scale = 1e-30, moved = 0;
    run_vars(vars, 1, u);
    RefBinding *bind = bindings(ctx, g, u, 0);
    HostRun run = {.B = how.B, .T = how.T, .seed = 7, .step = 3, .host_vars = vars, .bind = bind, .n_bind = g->ext.n};
    Tensor **result = NEW_ARRAY(ctx->program, Tensor *, p->n_result + 1);
    Tensor **stored = NEW_ARRAY(ctx->program, Tensor *, g->ext.n + 1);
    interpret_plan(ctx, p, &run, false, result, stored);
    const Graph *of = half ? g : made;
    Evaluated want = evaluate(ctx, of, u, vars, 0), other = evaluate(ctx, of, u, vars, MOVED);
    for (size_t i = 0; i < of->ext.n; i++)
        if (want.bind[i].kind == EXT_GRAD)
            scale = fmax(scale, largest(want.bind[i].tensor->real, want.bind[i].tensor->size) / 10);
    for (size_t i = 0; i < of->out.n; i++)
        if (of->out.v[i].ext < 0)
            moved = fmax(moved, tensor_distance(other.result[i], want.result[i], 1e-30));
    for (size_t i = 0; i < of->ext.n; i++)
        if (want.bind[i].kind == EXT_GRAD)
            moved = fmax(moved, tensor_distance(other.bind[i].tensor, want.bind[i].tensor, scale));
    c->unstable = c->unstable || !(moved < FAR);
    if (c->unstable)
        return;
    for (size_t i = 0, k = 0; i < g->out.n; i++)
        if (g->out.v[i].ext < 0)
            see(c, g->out.v[i].name, tensor_distance(result[k++], want.result[result_in(ctx, of, &g->out.v[i])], 1e-30),
                EXACT + FACTOR * moved);
    for (size_t i = 0; i < g->ext.n; i++)
        if (stored[i])
            see(c, bind[i].name, tensor_distance(stored[i], bound(want.bind, of, bind[i].kind, bind[i].name), scale),
                EXACT + FACTOR * moved);
}

void compare_interpreted(Ctx *ctx, const Unit *u, uint64_t seed, Compared *c)
{
    *c = (Compared){.name = ""};
    bool apart = seed % 3 == 0;
    if (u->train) {
        interpret_program(ctx, u, step_gradient(u->model, u->train, true, ctx->program), apart, c);
        if (seed % 4 == 1)
            interpret_program(ctx, u, step_update(u->model, u->train, ctx->program), apart, c);
    }
    if (!u->train || seed % 4 == 2)
        interpret_program(ctx, u, step_evaluate(u->model, ctx->program), apart, c);
    if (seed % 4 == 3 && u->model->output.n)
        interpret_program(ctx, u, step_predict(u->model, ctx->program), apart, c);
}

/* ---- gradients ---- */

typedef struct Slope {
    Ctx *ctx;
    const Graph *loss;
    const Unit *u;
    RefBinding *bind;
    const RefBinding *grad, *moved; /* of the gradient program; with weights rounded otherwise */
    const Graph *grad_graph;
    int smooth; /* directions that were compared */
} Slope;

static const Tensor *gradient_of(const Slope *s, const RefBinding *grad, size_t param)
{
    return bound((RefBinding *)grad, s->grad_graph, EXT_GRAD, s->bind[param].name);
}

static double loss_at(Slope *s, int64_t param, uint64_t seed, double h)
{
    ArenaMark mark = arena_mark(s->ctx->program);
    uint64_t state = seed;
    double vars[HV_COUNT];
    run_vars(vars, 1, s->u);
    for (int sign = 1; sign >= -1; sign -= 2) { /* there, and back behind the evaluation */
        state = seed;
        for (size_t i = 0; i < s->loss->ext.n; i++)
            for (int64_t k = 0; s->bind[i].kind == EXT_PARAM && k < s->bind[i].tensor->size; k++) {
                double by = noise(&state);
                if (param < 0 || (size_t)param == i)
                    s->bind[i].tensor->real[k] += sign * h * by;
            }
        if (sign < 0)
            break;
        RefRun run = {.B = sequences(s->u),
                      .T = positions(s->u),
                      .seed = 7,
                      .step = 3,
                      .host_vars = vars,
                      .bind = s->bind,
                      .n_bind = s->loss->ext.n};
        Tensor **r = NEW_ARRAY(s->ctx->program, Tensor *, s->loss->out.n + 1);
        ref_evaluate(s->loss, s->ctx->program, &run, r);
        vars[0] = r[0]->real[0];
    }
    arena_reset(s->ctx->program, mark);
    return vars[0];
}

/* The slope of the loss along a random direction, of one weight or of all, against the
 * gradient. A corner has no slope; and what rounding alone moves far is no gradient: with one key that of a score is what is
 * left of two equal numbers. */
static void see_slope(Slope *s, int64_t param, uint64_t seed, Compared *c)
{
    static const double FAR = 1e-5, WRONG = 1e-4, h = 1e-5;
    double want = 0, moved = 0, size = 1e-4, found[3];
    uint64_t state = seed;
    for (size_t i = 0; i < s->loss->ext.n; i++) {
        if (s->bind[i].kind != EXT_PARAM)
            continue;
        const Tensor *g = gradient_of(s, s->grad, i), *other = gradient_of(s, s->moved, i);
        for (int64_t k = 0; k < s->bind[i].tensor->size; k++) {
            double by = noise(&state);
            if (param >= 0 && (size_t)param != i)
                continue;
            if (!g) /* frozen */
                return;
            want += g->real[k] * by;
            moved += other->real[k] * by;
            size += fabs(g->real[k] * by);
        }
    }
    for (int k = 0; k < 3;
         k++) { /* the largest tells where the loss itself is rounded more coarsely than the others see */
        double by = k == 2 ? 16 * h : k == 1 ? h / 4 : h;
        found[k] = (loss_at(s, param, seed, by) - loss_at(s, param, seed, -by)) / (2 * by);
    }
    double lost = fabs(loss_at(s, param, seed, 0)) * DBL_EPSILON / (h / 4); /* of a slope, beside so large a loss */
    bool smooth = fabs(found[0] - found[1]) < FAR * size && fabs(found[0] - found[2]) < WRONG * size;
    if (!smooth || !(lost < FAR * size) || fabs(moved - want) >= FAR * size)
        return;
    s->smooth++;
    see(c, param < 0 ? "all weights" : s->bind[param].name, fabs(found[1] - want), WRONG * size);
}

void compare_gradient(Ctx *ctx, const Unit *u, uint64_t seed, Compared *c)
{
    *c = (Compared){.name = ""};
    if (!u->train || train_half(u->train) == HALF_FP16)
        return;
    Slope s = {.ctx = ctx, .u = u, .loss = step_forward(u->model, u->train, ctx->program)}; /* what a part adds to it */
    s.grad_graph = step_gradient(u->model, u->train, true, ctx->program);
    double vars[HV_COUNT];
    run_vars(vars, 1, u);
    s.bind = bindings(ctx, s.loss, u, 0);
    s.grad = evaluate(ctx, s.grad_graph, u, vars, 0).bind;
    s.moved = evaluate(ctx, s.grad_graph, u, vars, MOVED).bind;
    bool frozen = false;
    VEC(int64_t) param = {0};
    for (size_t i = 0; i < s.loss->ext.n; i++)
        if (s.bind[i].kind == EXT_PARAM) {
            frozen = frozen || !gradient_of(&s, s.grad, i);
            vec_push(ctx->program, &param, (int64_t)i);
        }
    if (!frozen)
        see_slope(&s, -1, seed + 1, c);
    for (uint64_t k = 0; k < 4 && param.n; k++)
        see_slope(&s, param.v[(seed * 7 + k * 5) % param.n], seed + k + 2, c);
    c->unstable = !s.smooth;
}

/* ---- training steps ---- */

/* What three steps leave: in float64, by ext tensor of each graph. */
typedef struct Steps {
    double loss[STEPS];
    double **grad[STEPS]; /* of the gradient program */
    double **after;       /* of the update program */
    double **before;
} Steps;

static Program *build(Ctx *ctx, Store *s, const Graph *g, const Unit *u, Half half, const char *name)
{
    Program *p;
    BuildReport report;
    ProgramOptions how = {.name = name, .B = sequences(u), .T = positions(u), .half = half};
    if (program_build(s, g, &how, &p, &report) != ST_OK)
        vwn_bug(ctx, "building %s: %s", name, report.why);
    return p;
}

static double **stored_numbers(Ctx *ctx, Store *s, const Graph *g)
{
    double **out = NEW_ARRAY(ctx->program, double *, g->ext.n + 1);
    for (size_t i = 0; i < g->ext.n; i++) {
        StoreEntry *e = store_find(s, g->ext.v[i].kind, g->ext.v[i].name);
        out[i] = NEW_ARRAY(ctx->program, double, e->elements + 1);
        if (e->dtype == DT_REAL)
            store_get_f64(s, e, 0, e->elements, out[i]);
    }
    return out;
}

/* Gradients begin as NaN: what nothing writes is seen. */
static void fill(Ctx *ctx, Store *s, const Graph *g, const RefBinding *bind)
{
    for (size_t i = 0; i < g->ext.n; i++) {
        StoreEntry *e;
        const Tensor *t = bind[i].tensor;
        for (int64_t k = 0; bind[i].kind == EXT_GRAD && k < t->size; k++)
            t->real[k] = NAN;
        Status st = store_add(s, bind[i].kind, bind[i].name, t->dtype, t->rank, t->d, &e);
        if (st == ST_OK)
            st = t->dtype == DT_INT ? store_put_i64(s, e, 0, t->size, t->integer)
                                    : store_put_f64(s, e, 0, t->size, t->real);
        if (st != ST_OK)
            vwn_bug(ctx, "store of %s: %s", bind[i].name, store_why(s));
    }
}

/* b NULL: in the reference evaluator. first: the gradient program that runs, g[0] or what it is
 * rounded to. */
static Steps take_steps(Ctx *ctx, Backend *b, Half half, const Graph *first, const Graph *const g[2], const Unit *u,
                        double rounding, void (*again)(Backend *b, int run), int way)
{
    Steps out;
    Store *s = store_new(ctx, b);
    Program *p[2] = {build(ctx, s, first, u, half, "train"), build(ctx, s, g[1], u, HALF_NONE, "update")};
    for (int k = 1; k >= 0; k--) /* gradients last: they are no numbers at first */
        fill(ctx, s, g[k], bindings(ctx, g[k], u, rounding));
    if (again)
        again(b, way);
    out.before = stored_numbers(ctx, s, g[1]);
    for (int step = 0; step < STEPS; step++) {
        double vars[HV_COUNT];
        run_vars(vars, step, u);
        for (int k = 0; k < 2; k++) {
            if (program_run(p[k], &(RunArgs){.host_vars = vars, .seed = 1, .step = (uint64_t)step}) != ST_OK)
                vwn_bug(ctx, "run: %s", program_why(p[k]));
            if (k == 0)
                out.grad[step] = stored_numbers(ctx, s, g[0]);
        }
        if (program_scalar(p[0], name_str(ctx, "loss"), &out.loss[step]) != ST_OK)
            vwn_bug(ctx, "no loss: %s", program_why(p[0]));
    }
    out.after = stored_numbers(ctx, s, g[1]);
    program_free(p[0]);
    program_free(p[1]);
    store_free(s);
    return out;
}

static int64_t size_of(const Ext *e, const Unit *u)
{
    int64_t n = 1;
    for (int i = 0; i < e->shape.rank; i++)
        n *= dim_at(e->shape.d[i], sequences(u), positions(u));
    return n;
}

/* Calls see() for what `got` is off. With c NULL: returns the largest distance. */
static double differences(const Graph *const g[2], const Unit *u, const Steps *got, const Steps *want, Compared *c,
                          double allowed)
{
    double most = 0;
    for (int step = 0; step < STEPS; step++) {
        double scale = 1e-30, off = fabs(got->loss[step] - want->loss[step]) / fmax(fabs(want->loss[step]), 1e-3);
        most = isfinite(off) ? fmax(most, off) : INFINITY;
        if (c)
            see(c, "loss", off, allowed);
        for (size_t i = 0; i < g[0]->ext.n; i++)
            if (g[0]->ext.v[i].kind == EXT_GRAD)
                scale = fmax(scale, largest(want->grad[step][i], size_of(&g[0]->ext.v[i], u)) / 10);
        for (size_t i = 0; i < g[0]->ext.n; i++) {
            const Ext *e = &g[0]->ext.v[i];
            if (e->kind != EXT_GRAD)
                continue;
            off = distance(got->grad[step][i], want->grad[step][i], size_of(e, u), scale);
            most = fmax(most, off);
            if (c)
                see(c, e->name, off, allowed);
        }
    }
    for (size_t i = 0; i < g[1]->ext.n; i++) {
        const Ext *e = &g[1]->ext.v[i];
        if (e->dtype != DT_REAL || (e->kind != EXT_PARAM && e->kind != EXT_STATE))
            continue;
        int64_t n = size_of(e, u);
        double change = 0, size = largest(want->before[i], n);
        for (int64_t k = 0; k < n; k++)
            change = fmax(change, fabs(want->after[i][k] - want->before[i][k]));
        /* numbers of float32 are off by their rounding, whatever the step */
        double off =
            distance(got->after[i], want->after[i], n, 1e-30) * fmax(size, change) / (change + 0.01 * size + 1e-30);
        most = fmax(most, off);
        if (c)
            see(c, e->name, off, allowed);
    }
    return most;
}

void compare_steps(Ctx *ctx, const Unit *u, Backend *b, void (*again)(Backend *b, int run), Compared *c)
{
    static const double ROUNDING = 6e-8, FACTOR = 40;
    *c = (Compared){.name = ""};
    Half half = train_half(u->train);
    if (half == HALF_BF16 && !b->bf16)
        half = HALF_NONE;
    const double floor = !half ? 1e-4 : b->target->half_kernels ? 6e-2 : 2e-2, far = half ? 3e-2 : 1e-4;
    const Graph *g[2] = {step_gradient(u->model, u->train, true, ctx->program),
                         step_update(u->model, u->train, ctx->program)};
    Steps got = take_steps(ctx, b, half, g[0], g, u, 0, again, 0);
    if (again) {
        Steps other = take_steps(ctx, b, half, g[0], g, u, 0, again, 1);
        for (size_t i = 0; i < g[1]->ext.n; i++)
            if (memcmp(got.after[i], other.after[i], (size_t)size_of(&g[1]->ext.v[i], u) * sizeof(double)))
                vwn_bug(ctx, "another order of threads gives other bits of %s", g[1]->ext.v[i].name);
    }
    const Graph *rounded = g[0];
    if (half)
        rounded = plan_graph(g[0], ctx->program,
                             &(PlanOptions){.B = sequences(u), .T = positions(u), .half = half, .target = b->target});
    Steps want = take_steps(ctx, NULL, HALF_NONE, rounded, g, u, 0, NULL, 0);
    Steps moved = take_steps(ctx, NULL, HALF_NONE, rounded, g, u, ROUNDING, NULL, 0);
    double far_off = differences(g, u, &moved, &want, NULL, 1);
    c->unstable = !(far_off < far);
    if (!c->unstable)
        differences(g, u, &got, &want, c, floor + FACTOR * far_off);
}
