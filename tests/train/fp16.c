/* fp16.c - operands in fp16 and the scale of the loss: small gradients, steps that are skipped, resuming.
 *
 * In:  tiny models, one whose loss becomes a thousand times as large in step 7.   Out: `N passed, N failed`.
 * When: quick, released.
 */
#include <math.h>
#include <stdlib.h>

#include "compiler/plan/plan.h"
#include "runtime/checkpoint/run_dir.h"
#include "compiler/portable/safetensors.h"
#include "runtime/train/train.h"
#include "runtime/train/trainer.h"
#include "support.h"

enum { SPIKE = 6 }; /* steps before the loss grows */

typedef struct Log {
    int skipped; /* notes of it */
    double scale, first_loss, last_loss, last_lr;
    int64_t skips; /* as steps report them */
    int notes;     /* of precision */
    char note[400];
} Log;

static void on_event(void *user, const vwn_event *e)
{
    Log *l = user;
    if (e->kind == VWN_EVENT_NOTE && strstr(e->text, "was skipped"))
        l->skipped++;
    if (e->kind == VWN_EVENT_NOTE && strstr(e->text, "mixed(")) {
        l->notes++;
        snprintf(l->note, sizeof l->note, "%s", e->text);
    }
    if (e->kind != VWN_EVENT_STEP)
        return;
    if (isnan(l->first_loss))
        l->first_loss = e->loss;
    l->last_loss = e->loss;
    l->last_lr = e->lr;
    const char *scale = strstr(e->json, "\"loss_scale\":"), *skips = strstr(e->json, "\"skipped\":");
    l->scale = scale ? strtod(scale + 13, NULL) : 0;
    l->skips = skips ? strtoll(skips + 10, NULL, 10) : -1;
}

static const char *base, *text_path;

static const char *in(Ctx *ctx, const char *name) { return arena_printf(ctx->program, "%s/%s", base, name); }

static TinyOptions tiny(int64_t steps, double spike_at)
{
    return (TinyOptions){.vocab = 64,
                         .width = 64,
                         .context = 32,
                         .batch = 4,
                         .micro = 2,
                         .steps = steps,
                         .text = text_path,
                         .spike_at = spike_at};
}

static Status go(const TinyOptions *how, const char *run, bool resume, int64_t until, Log *log, char why[512])
{
    *log = (Log){.first_loss = NAN};
    vwn_context *v = tiny_context(false, 2);
    Unit *u = tiny_unit(v->ctx, how);
    u->train->compute = HALF_FP16;
    u->train->precision = "mixed(compute = fp16, master = fp32)";
    vwn_train_options options = {.run = run, .resume = resume, .until_steps = until, .event = on_event, .user = log};
    Status st = train_unit(v, u, &options, &tiny_hooks);
    snprintf(why, 512, "%s", v->ctx->message);
    tiny_close(v);
    return st;
}

/* The bytes of all tensors of a checkpoint. */
static char *tensors(Ctx *ctx, const char *run, int64_t step, size_t *n)
{
    char *bytes =
        read_file(ctx, arena_printf(ctx->program, "%s/ckpt/step_%08lld.safetensors", run, (long long)step), n);
    uint64_t header;
    if (!bytes || *n < sizeof header)
        return NULL;
    memcpy(&header, bytes, sizeof header);
    *n -= 8 + header;
    return bytes + 8 + header;
}

static bool same_tensors(Ctx *ctx, const char *a, int64_t at, const char *b, int64_t bt)
{
    size_t n = 0, m = 0;
    const char *x = tensors(ctx, a, at, &n), *y = tensors(ctx, b, bt, &m);
    return x && y && n == m && n > 1000 && !memcmp(x, y, n);
}

/* A step that overflows changes no weight and no moment; then the scale is small enough. */
static void test_skip(Tally *t, Ctx *ctx)
{
    char why[512];
    Log log;
    TinyOptions how = tiny(16, SPIKE);
    const char *run = in(ctx, "skip"), *whole = in(ctx, "whole");
    CHECKF(t, go(&how, run, false, SPIKE, &log, why) == ST_OK, "%s", why);
    CHECK(t, log.skipped == 0 && log.scale == LOSS_SCALE_FIRST);
    CHECKF(t, go(&how, run, true, SPIKE + 1, &log, why) == ST_OK, "%s", why);
    CHECKF(t, log.skipped == 1 && log.skips == 1 && log.scale == LOSS_SCALE_FIRST / 2, "%d skipped, scale %g",
           log.skipped, log.scale);
    CHECK(t, same_tensors(ctx, run, SPIKE, run, SPIKE + 1));
    CHECKF(t, go(&how, run, true, 0, &log, why) == ST_OK, "%s", why);
    CHECKF(t, log.skips > 1 && log.skips < 10 && log.scale == LOSS_SCALE_FIRST / exp2((double)log.skips),
           "%lld skipped, scale %g", (long long)log.skips, log.scale);
    CHECK(t, !same_tensors(ctx, run, SPIKE, run, 16));
    CHECKF(t, go(&how, whole, false, 0, &log, why) == ST_OK, "%s", why);
    CHECK(t, same_tensors(ctx, run, 16, whole, 16)); /* resumed twice, and not at all */
}

enum { WIDTH = 64 }; /* of the tiny model */

/* A tensor of a checkpoint. */
static bool numbers(Ctx *ctx, const char *run, int64_t step, const char *name, double out[WIDTH])
{
    char why[WHY];
    SafeFile f;
    const char *path = arena_printf(ctx->program, "%s/ckpt/step_%08lld.safetensors", run, (long long)step);
    if (!safe_open(arena_region(ctx->program), path, &f, why))
        return false;
    const SafeTensor *t = safe_find(&f, name);
    bool read = t && t->elements == WIDTH && safe_read(&f, t, 0, WIDTH, out, why);
    safe_close(&f);
    return read;
}

/* The first update behind skipped steps is that of Adam (Kingma and Ba, Algorithm 1) whose t counts
 * updates: with t counting steps it would be another. No weight decay in a bias. */
static void test_correction(Tally *t, Ctx *ctx)
{
    char why[512];
    Log log;
    TinyOptions how = tiny(16, SPIKE);
    const char *run = in(ctx, "correction");
    int64_t at = SPIKE;
    do {
        at++;
        CHECKF(t, go(&how, run, at > SPIKE + 1, at, &log, why) == ST_OK, "%s", why);
    } while (log.skipped && at < 15);
    double before[WIDTH], w[WIDTH], m[WIDTH], v[WIDTH], worst = 0, other = 0;
    bool read = numbers(ctx, run, at - 1, "hidden.b", before) && numbers(ctx, run, at, "hidden.b", w) &&
                numbers(ctx, run, at, "hidden.b:m", m) && numbers(ctx, run, at, "hidden.b:v", v);
    CHECKF(t, read && at > SPIKE + 1 && at < 15, "step %d", (int)at);
    for (int i = 0; read && i < WIDTH; i++)
        for (int steps = 0; steps < 2; steps++) {
            double n = steps ? (double)at : SPIKE + 1;
            double unbiased = m[i] / (1 - pow(0.9, n)), square = v[i] / (1 - pow(0.99, n));
            double off = fabs(before[i] - w[i] - log.last_lr * unbiased / (sqrt(square) + 1e-8));
            *(steps ? &other : &worst) = fmax(steps ? other : worst, off / log.last_lr);
        }
    CHECKF(t, worst < 1e-5 && other > 0.01, "off by %g of the rate; %g if t counted steps", worst, other);
}

/* The scale is doubled after 2,000 good steps. */
static void test_growth(Tally *t, Ctx *ctx)
{
    char why[512];
    Log log;
    TinyOptions how = {
        .vocab = 8, .width = 4, .context = 4, .batch = 1, .micro = 1, .steps = LOSS_SCALE_STEPS + 1, .text = text_path};
    CHECKF(t, go(&how, in(ctx, "growth"), false, 0, &log, why) == ST_OK, "%s", why);
    CHECKF(t, log.scale == 2 * LOSS_SCALE_FIRST && log.skips == 0, "scale %g", log.scale);
    CHECK(t, log.last_loss < log.first_loss);
}

/* What the gradient of a weight is when the loss is scaled so, divided by the scale. */
static const Tensor *gradient(Ctx *ctx, const Unit *u, bool fp16, double scale)
{
    enum { B = 4, T = 32 };
    PlanOptions how = {.B = B, .T = T, .half = fp16 ? HALF_FP16 : HALF_NONE};
    Graph *g = plan_graph(step_gradient(u->model, u->train, true, ctx->program), ctx->program, &how);
    RefBinding *bind = NEW_ARRAY(ctx->program, RefBinding, g->ext.n + 1);
    const Tensor *found = NULL;
    for (size_t i = 0; i < g->ext.n; i++) {
        const Ext *x = &g->ext.v[i];
        int64_t d[MAX_RANK];
        for (int k = 0; k < x->shape.rank; k++)
            d[k] = dim_at(x->shape.d[k], B, T);
        Tensor *v = tensor_new(ctx->program, x->dtype, x->shape.rank, d);
        bind[i] = (RefBinding){x->kind, x->name, v};
        for (int64_t k = 0; k < v->size; k++)
            if (x->dtype == DT_INT)
                v->integer[k] = (k * 7 + k / 5) % 64;
            else
                v->real[k] = x->kind == EXT_GRAD ? 0 : 0.3 * cos((double)(k * k % 1009 + 3 * k));
        if (x->kind == EXT_GRAD && !strcmp(x->name, "hidden.W"))
            found = v;
    }
    double vars[HV_COUNT] = {[HV_LOSS_SCALE] = scale};
    RefRun run = {.B = B, .T = T, .seed = 1, .host_vars = vars, .bind = bind, .n_bind = g->ext.n};
    ref_evaluate(g, ctx->program, &run, NEW_ARRAY(ctx->program, Tensor *, g->out.n + 1));
    for (int64_t k = 0; found && k < found->size; k++)
        found->real[k] /= scale;
    return found;
}

static double distance(const Tensor *x, const Tensor *y)
{
    double worst = 0, size = 0;
    for (int64_t k = 0; k < y->size; k++) {
        worst = isfinite(x->real[k]) ? fmax(worst, fabs(x->real[k] - y->real[k])) : INFINITY;
        size = fmax(size, fabs(y->real[k]));
    }
    return worst / size;
}

/* A loss that is very small has no gradient in fp16 until it is scaled. */
static void test_underflow(Tally *t, Ctx *ctx)
{
    const double small = 0x1p-20; /* 1e-6: as if the loss were multiplied by it */
    TinyOptions how = tiny(4, 0);
    how.micro = how.batch; /* alone, it is the whole batch */
    Unit *u = tiny_unit(ctx, &how);
    u->train->compute = HALF_FP16;
    const Tensor *exact = gradient(ctx, u, false, small), *none = gradient(ctx, u, true, small);
    const Tensor *scaled = gradient(ctx, u, true, small * LOSS_SCALE_FIRST);
    CHECKF(t, distance(none, exact) > 0.5, "off by %g without a scale", distance(none, exact));
    CHECKF(t, distance(scaled, exact) < 5e-3 && distance(scaled, exact) > 0, "off by %g with it",
           distance(scaled, exact));
}

/* A run says once what is computed in what. The model is tanh(E[tokens] W1 + b) W2: two products forward, and of each the gradients of
 * both factors; a part has 2 x 32 rows. */
static void test_said(Tally *t, Ctx *ctx)
{
    static const struct {
        int64_t vocab, width;
        Half compute;
        bool reference;
        const char *says;
    } cases[] = {
        {64, 64, HALF_BF16, true,
         "operands of 6 of the 6 matrix products of a step are rounded to bf16 and multiplied in float64; all else is "
         "computed in float64"},
        {32, 64, HALF_BF16, true, "operands of 3 of the 6 matrix products of a step are rounded to bf16"},
        {63, 63, HALF_BF16, true,
         "none of the 6 matrix products of a step has 64 rows, columns and terms, so nothing is rounded to bf16"},
        {64, 64, HALF_FP16, false,
         "operands of 6 of the 6 matrix products of a step are rounded to fp16 and multiplied in float32; all else is "
         "computed in "
         "float32; the loss is scaled, now by 65536"},
        {63, 63, HALF_FP16, false, "so nothing is rounded to fp16, and all is computed in float32; the loss is scaled"},
        {64, 64, HALF_NONE, true, NULL},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        TinyOptions how = tiny(1, 0);
        how.vocab = cases[i].vocab;
        how.width = cases[i].width;
        Log log = {.first_loss = NAN};
        vwn_context *v = tiny_context(cases[i].reference, 1);
        Unit *u = tiny_unit(v->ctx, &how);
        u->train->compute = cases[i].compute;
        u->train->precision = cases[i].compute ? "mixed(...)" : "fp32";
        vwn_train_options options = {.run = in(ctx, "said"), .overwrite = true, .event = on_event, .user = &log};
        Status st = train_unit(v, u, &options, &tiny_hooks);
        CHECKF(t, st == ST_OK && log.notes == (cases[i].says != NULL), "%s: %d notes", v->ctx->message, log.notes);
        CHECKF(t, !cases[i].says || strstr(log.note, cases[i].says), "said: %s", log.note);
        tiny_close(v);
    }
}

int main(void)
{
    Tally t = {0};
    Ctx *ctx = ctx_new(NULL);
    base = scratch_folder(ctx);
    text_path = in(ctx, "text.txt");
    write_text_file(text_path, 20000);
    CtxGuard guard;
    if (CTX_TRY(ctx, &guard)) {
        test_skip(&t, ctx);
        test_correction(&t, ctx);
        test_growth(&t, ctx);
        test_underflow(&t, ctx);
        test_said(&t, ctx);
        ctx_leave(ctx, &guard);
    } else {
        CHECKF(&t, false, "%s", ctx->message);
    }
    scratch_remove(base);
    ctx_free(ctx);
    return tally_end(&t, "fp16");
}
