/* decides.c - an update that looks at the loss itself, against the host's rule written out: it holds from the first step
 * whose loss or norm is not finite, or whose loss jumps, and nothing changes any more. In fp16 it skips steps instead, and
 * takes the scale and the count of updates that follow from the step before.
 *
 * In:  random losses, many of them near the limit; random gradients.     Out: what a step decides, and whether weights moved.
 * When: quick, checked.
 */
#include <float.h>
#include <math.h>

#include "compiler/model/optimizer.h"
#include "compiler/pass/simplify.h"
#include "runtime/train/jump.h"
#include "support.h"

enum { ROUNDS = 600, RESULTS = 64 };

static double uniform(uint64_t *state)
{
    *state = *state * 6364136223846793005u + 1442695040888963407u;
    return (double)(*state >> 11) / (double)(1ull << 53);
}

static RefBinding *bind(Ctx *ctx, const Graph *g)
{
    RefBinding *b = NEW_ARRAY(ctx->program, RefBinding, g->ext.n);
    for (size_t i = 0; i < g->ext.n; i++) {
        const Ext *x = &g->ext.v[i];
        int64_t d[MAX_RANK] = {0};
        for (int k = 0; k < x->shape.rank; k++)
            d[k] = x->shape.d[k].n;
        b[i] = (RefBinding){x->kind, x->name, tensor_new(ctx->program, x->dtype, x->shape.rank, d)};
    }
    return b;
}

static double *number(const Graph *g, const RefBinding *b, const char *name)
{
    for (size_t i = 0; i < g->ext.n; i++)
        if (b[i].kind == EXT_STEP && !strcmp(b[i].name, name))
            return b[i].tensor->real;
    return NULL;
}

/* Of all that outlives a step but its own numbers. */
static double sum_of(const Graph *g, const RefBinding *b)
{
    double sum = 0;
    for (size_t i = 0; i < g->ext.n; i++)
        for (int64_t k = 0; (b[i].kind == EXT_PARAM || b[i].kind == EXT_STATE) && k < b[i].tensor->size; k++)
            sum += (1 + (double)(k % 7)) * b[i].tensor->real[k];
    return sum;
}

/* The rule, in the plainest words: half of a sorted list. */
static bool jumps(const double *loss, int n, double now)
{
    double sorted[RECENT];
    if (n < 200)
        return false;
    for (int i = 0; i < RECENT; i++) {
        int k = i;
        for (; k > 0 && sorted[k - 1] > loss[n - RECENT + i]; k--)
            sorted[k] = sorted[k - 1];
        sorted[k] = loss[n - RECENT + i];
    }
    double median = (sorted[49] + sorted[50]) / 2;
    return now > 4 * median && now > median + 2;
}

static double next_loss(uint64_t *state, const double *loss, int n)
{
    double level = n / 100 % 2 ? 0.3 : 3;
    double x = level * (0.5 + uniform(state)), kind = uniform(state);
    if (kind < 0.03)
        return kind < 0.01 ? NAN : kind < 0.02 ? INFINITY : -INFINITY;
    if (kind < 0.6 && n >= 200) { /* by the limit of a median nearby: that of a window without its last loss */
        Progress p = {.step = n, .n_recent = RECENT};
        memcpy(p.recent, loss + n - RECENT, sizeof p.recent);
        double median = jump_median(&p), limit = fmax(4 * median, median + 2);
        return limit * (1 + (kind < 0.3 ? 1e-9 : 1e-3) * (uniform(state) - 0.5));
    }
    return x;
}

static void rounds(Tally *t, Ctx *ctx, const Graph *g, RefBinding *b)
{
    static double loss[ROUNDS];
    uint64_t state = 5;
    int met[HALT_NORM + 1] = {0}, n = 0;
    double vars[HV_COUNT] = {0}, *halt = number(g, b, "halt"), *last = number(g, b, "last"),
           *now = number(g, b, "loss");
    for (int round = 0; round < ROUNDS; round++) {
        Progress p = {0};
        int ahead = round % 2 && n ? 1 : 0; /* the last loss is not known to the host */
        p.step = n - ahead;
        for (int i = n - ahead > RECENT ? n - ahead - RECENT : 0; i < n - ahead; i++)
            p.recent[p.n_recent++] = loss[i];
        jump_known(&p, ahead, number(g, b, "known"));
        CHECKF(t, last[0] == (n ? loss[n - 1] : 0), "round %d: the loss before is %g", round, last[0]);
        double x = next_loss(&state, loss, n);
        bool poison = uniform(&state) < 0.05;
        StepHalt want = !isfinite(x) ? HALT_LOSS : jumps(loss, n, x) ? HALT_JUMP : poison ? HALT_NORM : HALT_NOT;
        *now = x;
        for (size_t i = 0; i < g->ext.n; i++)
            for (int64_t k = 0; b[i].kind == EXT_GRAD && k < b[i].tensor->size; k++)
                b[i].tensor->real[k] = poison ? INFINITY : uniform(&state) - 0.4;
        vars[HV_STEP] = vars[HV_UPDATES] = n;
        RefRun run = {.B = 1, .T = 1, .host_vars = vars, .bind = b, .n_bind = g->ext.n};
        Tensor *result[RESULTS];
        double before = sum_of(g, b);
        ref_evaluate(g, ctx->program, &run, result);
        CHECKF(t, *halt == want, "round %d, loss %.17g: halt %g, not %d", round, x, *halt, (int)want);
        CHECKF(t, (sum_of(g, b) == before) == (want != HALT_NOT), "round %d: halt %d, and weights", round, (int)want);
        met[want]++;
        if (want == HALT_NOT) {
            loss[n++] = x;
            continue;
        }
        *now = 1; /* a step that was queued behind it */
        for (size_t i = 0; i < g->ext.n; i++)
            for (int64_t k = 0; b[i].kind == EXT_GRAD && k < b[i].tensor->size; k++)
                b[i].tensor->real[k] = 0.5;
        ref_evaluate(g, ctx->program, &run, result);
        CHECKF(t, *halt == want && sum_of(g, b) == before, "round %d: a step behind a bad one", round);
        *halt = HALT_NOT;
    }
    CHECKF(t, met[HALT_NOT] > 250 && met[HALT_LOSS] > 5 && met[HALT_JUMP] > 50 && met[HALT_NORM] > 5, "%d %d %d %d",
           met[0], met[1], met[2], met[3]);
}

/* The host's rule, in the plainest words: a gradient that is not finite halves the scale, down to 1, and its step counts as
 * no update. Update `a` decides and is told what would be if the step before was skipped, and what else; `b` is told what is. */
static void skips(Tally *t, Ctx *ctx, const Graph *a, RefBinding *of_a, const Graph *b, RefBinding *of_b)
{
    uint64_t state = 11;
    double scale = 64, vars[HV_COUNT] = {0}, *halt = number(a, of_a, "halt"), *loss = number(a, of_a, "loss");
    int updates = 0, skipped = 0, ended = 0;
    bool last = false;
    for (int round = 0; round < 60 && !ended; round++) {
        bool bad = round == 0 || uniform(&state) < 0.2, may = scale >= 2, known = round % 3 == 0;
        double after_good = last ? 4 * scale : scale, after_bad = last ? scale : scale / 2; /* one of both is so */
        Tensor *result[RESULTS];
        *loss = 1;
        jump_known(&(Progress){0}, 0, number(a, of_a, "known"));
        for (size_t i = 0, seed = state; i < a->ext.n; i++)
            for (int64_t k = 0; of_a[i].kind == EXT_GRAD && k < of_a[i].tensor->size; k++)
                of_a[i].tensor->real[k] =
                    bad && k == 0 ? INFINITY : scale * ((double)((seed + (size_t)k * 7919) % 101) / 50 - 1);
        for (size_t i = 0; i < b->ext.n; i++)
            for (size_t k = 0; of_b[i].kind == EXT_GRAD && k < a->ext.n; k++)
                if (of_a[k].kind == EXT_GRAD && of_a[k].name == of_b[i].name)
                    memcpy(of_b[i].tensor->real, of_a[k].tensor->real, 8 * (size_t)of_b[i].tensor->size);
        vars[HV_STEP] = round;
        vars[HV_UPDATES] = known || !last ? updates : updates + 1;
        vars[HV_SKIPPED_UPDATES] = known || last ? updates : updates - 1;
        vars[HV_LOSS_SCALE] = known ? scale : after_good;
        vars[HV_SKIPPED_LOSS_SCALE] = known ? scale : after_bad;
        vars[HV_MAY_SKIP] = known || !last ? may : !may;
        vars[HV_SKIPPED_MAY_SKIP] = known || last ? may : !may;
        RefRun run = {.B = 1, .T = 1, .host_vars = vars, .bind = of_a, .n_bind = a->ext.n};
        double before = sum_of(a, of_a);
        ref_evaluate(a, ctx->program, &run, result);
        double plain[HV_COUNT] = {
            [HV_STEP] = round, [HV_UPDATES] = updates, [HV_LOSS_SCALE] = scale, [HV_MAY_SKIP] = may};
        run = (RefRun){.B = 1, .T = 1, .host_vars = plain, .bind = of_b, .n_bind = b->ext.n};
        ref_evaluate(b, ctx->program, &run, result);
        ended = bad && !may;
        CHECKF(t, *halt == (ended ? HALT_NORM : HALT_NOT), "round %d at scale %g: halt %g", round, scale, *halt);
        CHECKF(t, (sum_of(a, of_a) == before) == bad, "round %d: bad %d, and weights", round, bad);
        CHECKF(t, sum_of(a, of_a) == sum_of(b, of_b), "round %d: %.17g, not %.17g", round, sum_of(a, of_a),
               sum_of(b, of_b));
        skipped += bad && may;
        scale = bad ? scale / 2 : scale;
        updates += !bad;
        last = bad;
    }
    CHECKF(t, ended && skipped == 6 && updates > 10, "%d skipped, %d updates", skipped, updates);
}

int main(void)
{
    Tally t = {0};
    Ctx *ctx = ctx_new(NULL);
    TinyOptions how = {.vocab = 5, .width = 4, .context = 4, .batch = 2, .micro = 2, .steps = 10, .lr = 1e-3};
    Unit *u = tiny_unit(ctx, &how);
    Train train = *u->train;
    train.decides = true;
    train.average = host_const(ctx->program, 0.9);
    Graph *g = graph_simplify(step_update(u->model, &train, ctx->program), ctx->program);
    graph_verify(g);
    rounds(&t, ctx, g, bind(ctx, g));
    train.average = NULL;
    train.compute = HALF_FP16;
    Graph *a = graph_simplify(step_update(u->model, &train, ctx->program), ctx->program);
    train.decides = false;
    Graph *b = graph_simplify(step_update(u->model, &train, ctx->program), ctx->program);
    skips(&t, ctx, a, bind(ctx, a), b, bind(ctx, b));
    ctx_free(ctx);
    return tally_end(&t, "updates that decide");
}
