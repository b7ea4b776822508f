/* parts.c - a batch in parts gives the losses, the gradient and the weights of the whole batch, also
 * where the parts have different numbers of targets, and where random numbers decide what is a target.
 *
 * In:  models with several losses of different counts; labels of which many are missing; every operator that draws.
 * Out: `N passed, N failed`. In the float64 reference graphs agree to 1e-11, what is not exact is
 * known as such; runs of three steps, with evaluations, agree within float32. An evaluation of the same weights is the
 * same number after any step.
 * When: quick.
 */
#include <stdarg.h>

#include "support/arrays.h"
#include "compiler/model/parts.h"
#include "support/models.h"
#include "compiler/portable/safetensors.h"
#include "runtime/vwn.h"

static int passed, failed;

__attribute__((format(printf, 2, 3))) static void check(bool good, const char *fmt, ...)
{
    va_list ap;
    good ? passed++ : failed++;
    va_start(ap, fmt);
    if (!good) {
        fputs("failed: ", stderr);
        vfprintf(stderr, fmt, ap);
        fputc('\n', stderr);
    }
    va_end(ap);
}

enum { BATCH = 8, T = 8, MOST_RESULTS = 32 };

/* Next tokens (smoothed), tokens further ahead, a loss of the user's over every third position, a
 * weighted one, a penalty of weights, masked positions of the model's own choice. */
static const char text[] = "edition = 1\n"
                           "import \"std/transformer\"\n"
                           "import \"std/connections\"\n"
                           "let D = 8\n"
                           "let norm = rms_norm(eps = 1e-6)\n"
                           "let sub = ffn(hidden = 12, activation = silu)\n"
                           "block others()(x: [B, T, D]) -> [B, T, D] {\n"
                           "  param W : [D, 17] = normal(std = 0.3)\n"
                           "  buffer c : [17] = uniform(low = 0.5, high = 2)\n"
                           "  ce     = cross_entropy(x @ W, input.labels)\n"
                           "  third  = (input.labels >= 0) * (input.tokens mod 3 == 0)\n"
                           "  loss.x = 2 * sum(ce * third) / max(sum(third), 1) + 0.01 * mean(W ^ 2)\n"
                           "  weight = gather(c, input.tokens) * (input.labels >= 0)\n"
                           "  loss.weighted  = 0.5 * sum(ce * weight / (sum(weight) + 1e-3)) - 0.1 * mean(abs(x))\n"
                           "  loss.norm      = mean(mean(x ^ 2, over = [1, 2]))\n"
                           "  metric.targets = sum(third)\n"
                           "  metric.means   = mean(x, over = [1, 2])\n"
                           "  return x\n"
                           "}\n"
                           "model small {\n"
                           "  context = 8, width = D, mask = causal, connection = residual(), pre_norm = norm\n"
                           "  init = normal(std = 0.3), out_init = normal(std = 0.3)\n"
                           "  embed tokens { vocab = 17 }\n"
                           "  attention { heads = 2, position = rope(base = 100) }\n"
                           "  sub\n"
                           "  others\n"
                           "  head lm { norm = norm, smoothing = 0.1, z_loss = 0.01 }\n"
                           "  for ahead in 2..3 {\n"
                           "    head mtp { predict = ahead, weight = 0.3, mix = linear(), norm = norm, layer { ffn { "
                           "hidden = 8, activation = silu } } }\n"
                           "  }\n"
                           "}\n"
                           "train {\n"
                           "  data = arrays(tokens = \"tokens.npy\", labels = \"labels.npy\", val = 25%)\n"
                           "  batch = 8 seqs, length = 3 steps, seed = 1, precision = fp32, clip = 0.5\n"
                           "  optimizer adamw { lr = 1e-2, betas = [0.9, 0.95], eps = 1e-3, weight_decay = 0.1 }\n"
                           "  eval { every = 3 steps, batches = 100 }\n"
                           "}\n";

/* Every operator that draws decides what a loss is divided by, and what its gradient is of. The axis of the sequences stands
 * first, second or in one with positions; some numbers are the same for all sequences. */
static const char random_text[] =
    "edition = 1\n"
    "import \"std/transformer\"\n"
    "import \"std/connections\"\n"
    "let D = 8\n"
    "block others()(x: [B, T, D]) -> [B, T, D] {\n"
    "  param W : [D, 17] = normal(std = 0.3)\n"
    "  ce   = cross_entropy(x @ W, input.labels)\n"
    "  here = cast(input.labels >= 0, real)\n"
    "  a = drop(here, p = 0.4)\n"
    "  loss.drop = sum(ce * a) / (sum(a) + 1e-3)\n"
    "  b = drop(broadcast(1, [B, 1]), p = 0.5) > 0\n"
    "  loss.kept = sum(ce * b) / max(sum(b), 1e-3)\n"
    "  c = rand([B, T])\n"
    "  loss.rand = sum(ce * c) / sum(c)\n"
    "  d = abs(randn([T, B]))\n"
    "  loss.randn = sum(ce * permute(d, [2, 1])) / sum(d)\n"
    "  e = reshape(bernoulli([B * T], p = 0.4), [B, T])\n"
    "  loss.coin = sum(ce * e) / (sum(e) + 1e-3)\n"
    "  f = rand([T]) + 0.1\n"
    "  loss.shared = mean(ce * f) / mean(f)\n"
    "  g = randn([B, T, 2, 3])\n"
    "  h = mean(abs(sdpa(g, g, g, mask = causal, scale = 1, dropout = 0.4)), over = [3, 4])\n"
    "  loss.attention = sum(ce * h) / (sum(h) + 1e-3)\n"
    "  metric.coins = sum(bernoulli([B], p = 0.5))\n"
    "  metric.mean  = mean(rand([B]))\n"
    "  metric.x     = mean(x ^ 2) + mean(a)\n"
    "  return drop(x, p = 0.3)\n"
    "}\n"
    "model small {\n"
    "  context = 8, width = D, mask = causal, connection = residual(), pre_norm = rms_norm(eps = 1e-6)\n"
    "  init = normal(std = 0.3), out_init = normal(std = 0.3)\n"
    "  embed tokens { vocab = 17 }\n"
    "  attention { heads = 2, position = none, dropout = 0.3 }\n"
    "  others\n"
    "  head lm { norm = rms_norm(eps = 1e-6) }\n"
    "}\n"
    "train {\n"
    "  data = arrays(tokens = \"tokens.npy\", labels = \"labels.npy\", val = 28%)\n"
    "  batch = 8 seqs, length = 3 steps, seed = 1, precision = fp32, clip = 0.5\n"
    "  optimizer adamw { lr = 1e-2, betas = [0.9, 0.95], eps = 1e-3, weight_decay = 0.1 }\n"
    "  eval { every = 1 steps, batches = 100 }\n"
    "}\n";

/* A model of the block `others` alone, and its training. */
#define PLAIN_MODEL                                                                                                    \
    "model small {\n"                                                                                                  \
    "  context = 8, width = D, mask = causal, connection = residual(), pre_norm = rms_norm(eps = 1e-6)\n"              \
    "  init = normal(std = 0.3), out_init = normal(std = 0.3)\n"                                                       \
    "  embed tokens { vocab = 17 }\n"                                                                                  \
    "  others\n"                                                                                                       \
    "  head lm { norm = rms_norm(eps = 1e-6) }\n"                                                                      \
    "}\n"                                                                                                              \
    "train {\n"                                                                                                        \
    "  data = arrays(tokens = \"tokens.npy\", labels = \"labels.npy\"), batch = 8 seqs, length = 3 steps, seed = 1\n"  \
    "  precision = fp32\n"                                                                                             \
    "  optimizer sgd { lr = 0.1, momentum = 0, weight_decay = 0 }\n"                                                   \
    "}\n"

/* Two sums over the batch that weights decide: the quotient of the parts' sums is none of them. */
static const char quotient_text[] = "edition = 1\n"
                                    "import \"std/transformer\"\n"
                                    "import \"std/connections\"\n"
                                    "let D = 8\n"
                                    "block others()(x: [B, T, D]) -> [B, T, D] {\n"
                                    "  param W : [D, 17] = normal(std = 0.3)\n"
                                    "  ce     = cross_entropy(x @ W, input.labels)\n"
                                    "  gate   = sigmoid(sum(x, over = -1))\n"
                                    "  loss.q = sum(ce * gate) / sum(gate)\n"
                                    "  return x\n"
                                    "}\n" PLAIN_MODEL;

/* Sums of values that have their sequences in every place that an axis may have, alone and in one axis with what stands behind
 * them: what fills up the last part of an evaluation counts in none. */
static const char flat_text[] =
    "edition = 1\n"
    "import \"std/transformer\"\n"
    "import \"std/connections\"\n"
    "let D = 8\n"
    "block others()(x: [B, T, D]) -> [B, T, D] {\n"
    "  one    = sum(x, over = [2, 3])\n"
    "  metric.sequences = sum(one ^ 2)\n"
    "  metric.first     = sum(exp(sum(x, over = 3)))\n"
    "  metric.second    = sum(exp(permute(sum(x, over = 3), [2, 1])))\n"
    "  metric.middle    = sum(permute(x, [2, 1, 3]) ^ 2)\n"
    "  metric.last      = sum(permute(x, [2, 3, 1]) ^ 2)\n"
    "  metric.tokens    = sum(exp(reshape(x, [B * T, D])))\n"
    "  metric.numbers   = sum(exp(reshape(x, [B * T * D])))\n"
    "  metric.columns   = sum(exp(permute(reshape(x, [B * T, D]), [2, 1])))\n"
    "  metric.middles   = sum(exp(reshape(permute(reshape(x, [B * T, 2, 4]), [2, 1, 3]), [2, B * T, 4])))\n"
    "  metric.groups    = sum(exp(reshape(sum(x, over = 2), [B * D])))\n"
    "  metric.mean      = mean(reshape(x, [B * T, D]) ^ 2) + mean(one)\n"
    "  flat   = reshape(x, [B * T, D])\n"
    "  size   = sum(flat ^ 2, over = 2)\n"
    "  there  = reshape(input.labels >= 0, [B * T])\n"
    "  loss.flat = sum(size * there) / max(sum(there), 1)\n"
    "  return x\n"
    "}\n" PLAIN_MODEL;

#define MOE                                                                                                            \
    "sub=moe(experts = 4, active = 2, hidden = 5, activation = silu, scores = softmax, normalize = true, z_loss = "    \
    "0.01, balance = "

static const struct Case {
    const char *name, *text, *set[2];
    const char *mixed; /* the loss that is not exact, or NULL */
} cases[] = {{"losses", text, {NULL}, NULL},
             {"experts, no balance", text, {MOE "0)", NULL}, NULL},
             {"experts", text, {MOE "0.1)", NULL}, "loss.balance"},
             {"images", classify_text, {NULL}, NULL},
             {"random", random_text, {NULL}, NULL},
             {"noise", denoise_text, {NULL}, NULL},
             {"flat", flat_text, {NULL}, NULL},
             {"quotient", quotient_text, {NULL}, "loss.q"}};

/* ---- graphs ---- */

typedef struct Outcome {
    double result[MOST_RESULTS];
    Name name[MOST_RESULTS];
    size_t n;
} Outcome;

/* Tensors of a kind and name are one in all graphs; inputs begin at a sequence. */
typedef struct Tensors {
    Ctx *ctx;
    const Model *m;
    Map at[EXT_KINDS];
    int64_t first, rows, there; /* so many rows, of which so many count */
    bool trains;
} Tensors;

static int64_t label_of(int64_t sequence, int64_t position)
{
    bool missing = sequence % 4 == 1 ? position > 0 : sequence % 4 == 3 || (sequence + position) % 5 == 0;
    return missing ? -1 : (sequence * 7 + position * 5) % 17;
}

static void fill_input(const Tensors *t, const Ext *e, Tensor *x)
{
    int64_t each = x->size / t->rows;
    for (int64_t i = 0; i < x->size; i++) {
        int64_t row = i / each, sequence = t->first + (row < t->there ? row : 0), k = i % each;
        if (e->dtype == DT_REAL)
            x->real[i] = sin((double)(sequence * 31 + k * 7));
        else
            x->integer[i] = strcmp(e->name, "labels") ? (sequence * 3 + k * k) % 17 : label_of(sequence, k);
    }
}

static Tensor *tensor_for(Tensors *t, const Ext *e)
{
    int64_t d[MAX_RANK];
    for (int k = 0; k < e->shape.rank; k++)
        d[k] = dim_at(e->shape.d[k], t->rows, t->m->context);
    void **slot = map_at(&t->at[e->kind], (uintptr_t)e->name);
    if (e->kind == EXT_INPUT || !*slot)
        *slot = tensor_new(t->ctx->program, e->dtype, e->shape.rank, d);
    Tensor *x = *slot;
    if (e->kind == EXT_INPUT)
        fill_input(t, e, x);
    return x;
}

/* Runs a graph on sequences; adds its results to those of other parts. */
static void evaluate_part(Tensors *t, Graph *g, int64_t first, int64_t rows, int64_t of, Outcome *o)
{
    t->there = rows < of - first ? rows : of - first;
    /* How many sequences of a part count is known of evaluations; in training all do, and nobody says so. */
    const double vars[HV_COUNT] = {
        [HV_SHARE] = (double)t->there / (double)of, [HV_FILLED] = t->trains ? NAN : (double)t->there / (double)rows};
    Tensor **result = NEW_ARRAY(t->ctx->program, Tensor *, g->out.n + 1);
    RefBinding *bind = NEW_ARRAY(t->ctx->program, RefBinding, g->ext.n + 1);
    t->first = first;
    t->rows = rows;
    for (size_t i = 0; i < g->ext.n; i++)
        bind[i] = (RefBinding){g->ext.v[i].kind, g->ext.v[i].name, tensor_for(t, &g->ext.v[i])};
    RefRun run = {.B = rows,
                  .T = t->m->context,
                  .seed = 1,
                  .host_vars = vars,
                  .bind = bind,
                  .n_bind = g->ext.n,
                  .first = (uint64_t)first};
    ref_evaluate(g, t->ctx->program, &run, result);
    o->n = 0;
    for (size_t i = 0; i < g->out.n; i++)
        if (g->out.v[i].ext < 0) {
            o->name[o->n] = g->out.v[i].name;
            o->result[o->n++] += result[i]->real[0];
        }
}

static Tensors tensors_new(Ctx *ctx, const Model *m)
{
    Tensors t = {.ctx = ctx, .m = m};
    for (size_t i = 0; i < EXT_KINDS; i++)
        map_init(&t.at[i], ctx->program);
    for (size_t i = 0; i < m->param.n; i++) {
        const Param *p = &m->param.v[i];
        Ext e = {p->buffer ? EXT_BUFFER : EXT_PARAM, p->path, DT_REAL, p->shape};
        random_param(p, p->buffer ? 0 : 0.1, tensor_for(&t, &e)->real);
    }
    return t;
}

/* `micro` sequences at a time, of `of` in all: training (gradients stay in *t), or evaluation. */
static Outcome in_parts(Tensors *t, const Unit *u, int64_t micro, int64_t of, bool train)
{
    Arena *a = t->ctx->program;
    Train how = *u->train;
    how.batch_seqs = of;
    how.micro_seqs = micro;
    Graph *count = step_count(u->model, !train, a),
          *first = train ? step_gradient(u->model, &how, true, a) : step_held_out(u->model, &how, a);
    Graph *more = train ? step_gradient(u->model, &how, false, a) : first;
    Outcome o = {0}, none = {0};
    t->trains = train;
    map_init(&t->at[EXT_TOTAL], a); /* zeros */
    for (int64_t k = 0; count && k < of; k += micro)
        evaluate_part(t, count, k, micro, of, &none);
    for (int64_t k = 0; k < of; k += micro)
        evaluate_part(t, k ? more : first, k, micro, of, &o);
    return o;
}

static double far(double x, double y)
{
    double d = fabs(x - y) / (1e-3 + fabs(y));
    return d <= 1 ? d : 1;
}

static void compare_results(const struct Case *c, const Outcome *parts, const Outcome *whole, int64_t micro)
{
    for (size_t i = 0; i < whole->n; i++) {
        bool same = far(parts->result[i], whole->result[i]) < 1e-11;
        bool mixed =
            c->mixed && micro < BATCH && (!strcmp(whole->name[i], c->mixed) || !strcmp(whole->name[i], "loss"));
        check(same != mixed, "%s, %s in parts of %d: %.17g, whole %.17g", c->name, whole->name[i], (int)micro,
              parts->result[i], whole->result[i]);
    }
}

/* What is no sum over the parts is the mean of what each of them has alone. */
static void compare_mixed(const struct Case *c, Tensors *t, const Outcome *parts, int64_t micro)
{
    Outcome alone = {0};
    Graph *g = step_evaluate(t->m, t->ctx->program);
    for (int64_t k = 0; k < BATCH; k += micro)
        evaluate_part(t, g, k, micro, BATCH, &alone);
    for (size_t i = 0; i < alone.n; i++) {
        double mean = alone.result[i] * (double)micro / BATCH;
        if (!strcmp(alone.name[i], c->mixed))
            check(far(parts->result[i], mean) < 1e-11, "%s, %s in parts of %d: %.17g, the mean of the parts is %.17g",
                  c->name, c->mixed, (int)micro, parts->result[i], mean);
    }
}

/* Of a condition on a class labels are 0 to classes - 1, or negative for none; the row of none is no label. */
static void labels_of_noise(void)
{
    Ctx *ctx = ctx_new(NULL);
    Unit *u = load_text(ctx, arena_printf(ctx->program, "%s%s", denoise_text, train_images), NULL);
    InputRange r = model_input_range(u->model, name_str(ctx, "labels"));
    check(r.below == 16 && r.spared, "labels below %d", (int)r.below);
    ctx_free(ctx);
}

static void graphs(const struct Case *c)
{
    Ctx *ctx = ctx_new(NULL);
    bool images = !strstr(c->text, "train {");
    const char *file = images ? arena_printf(ctx->program, "%s%s", c->text, train_images) : c->text;
    Unit *u = load_text(ctx, file, c->set);
    Parts *p = parts_of(u->model, ctx->program);
    for (size_t i = 0; i < u->model->loss.n; i++) {
        const char *name = name_printf(ctx, "loss.%s", u->model->loss.v[i].name);
        check(parts_exact(p, i) == !(c->mixed && !strcmp(name, c->mixed)), "%s: %s", c->name, name);
    }
    Tensors whole = tensors_new(ctx, u->model);
    Outcome one = {0}, fixed = {0};
    Train how = *u->train;
    how.batch_seqs = how.micro_seqs = BATCH;
    evaluate_part(&whole, step_gradient(u->model, &how, true, ctx->program), 0, BATCH, BATCH, &one);
    evaluate_part(&whole, step_evaluate(u->model, ctx->program), 0, BATCH, BATCH, &fixed);
    for (int64_t micro = 1; micro < 2 * BATCH; micro++) { /* what is left of the last part does not count */
        Tensors parts = tensors_new(ctx, u->model);
        Outcome held = in_parts(&parts, u, micro, BATCH, false);
        compare_results(c, &held, &fixed, micro);
        if (c->mixed && BATCH % micro == 0)
            compare_mixed(c, &parts, &held, micro);
    }
    for (int64_t micro = 1; micro < BATCH; micro *= 2) {
        Tensors parts = tensors_new(ctx, u->model);
        Outcome some = in_parts(&parts, u, micro, BATCH, true);
        compare_results(c, &some, &one, micro);
        double worst = 0, size = 0;
        for (size_t i = 0; i < u->model->param.n; i++) {
            Tensor *x = map_get(&parts.at[EXT_GRAD], (uintptr_t)u->model->param.v[i].path);
            Tensor *y = map_get(&whole.at[EXT_GRAD], (uintptr_t)u->model->param.v[i].path);
            for (int64_t k = 0; x && k < x->size; k++) {
                worst = fmax(worst, fabs(x->real[k] - y->real[k]));
                size = fmax(size, fabs(y->real[k]));
            }
        }
        check(size > 1e-3 && (worst < 1e-11 * size) == !c->mixed, "%s: gradients in parts of %d: off by %g of %g",
              c->name, (int)micro, worst, size);
    }
    ctx_free(ctx);
}

/* ---- runs ---- */

enum { SEQUENCES = 64, STEPS = 3, MOST_WEIGHTS = 1 << 13 };

static void write_arrays(void)
{
    static int32_t tokens[SEQUENCES * T], labels[SEQUENCES * T];
    char header[200];
    for (int i = 0; i < SEQUENCES * T; i++) {
        tokens[i] = (i * i + i / T * 3) % 17;
        labels[i] = (int32_t)label_of(i / T, i % T);
    }
    snprintf(header, sizeof header, "{'descr': '<i4', 'fortran_order': False, 'shape': (%d, %d), }", SEQUENCES, T);
    npy_write("tokens.npy", 1, header, tokens, sizeof tokens);
    npy_write("labels.npy", 1, header, labels, sizeof labels);
}

typedef struct Log {
    double loss[STEPS], norm[STEPS], eval[STEPS];
    int steps, evals, notes;
} Log;

static void on_event(void *user, const vwn_event *e)
{
    Log *l = user;
    if (e->kind == VWN_EVENT_STEP && l->steps < STEPS) {
        l->loss[l->steps] = e->loss;
        l->norm[l->steps++] = e->grad_norm;
    }
    if (e->kind == VWN_EVENT_EVAL && l->evals < STEPS)
        l->eval[l->evals++] = e->eval_loss;
    if (e->kind == VWN_EVENT_NOTE && strstr(e->text, "`loss.balance`"))
        l->notes++;
}

/* All weights behind the last step, one after the other. */
static size_t weights(Ctx *ctx, const char *run, double *out)
{
    char why[512];
    SafeFile f;
    size_t n = 0;
    const char *path = arena_printf(ctx->program, "%s/ckpt/step_%08d.safetensors", run, STEPS);
    if (!safe_open(arena_region(ctx->program), path, &f, why))
        return 0;
    for (size_t i = 0; i < f.n; i++) {
        const SafeTensor *x = &f.tensor[i];
        if (strchr(x->name, ':') || n + (size_t)x->elements > MOST_WEIGHTS)
            continue;
        if (!safe_read(&f, x, 0, x->elements, out + n, why))
            return 0;
        n += (size_t)x->elements;
    }
    safe_close(&f);
    return n;
}

static size_t train_in(Ctx *ctx, const struct Case *c, const char *rate, int micro, bool reference, Log *log,
                       double *out)
{
    const char *set[4] = {arena_printf(ctx->program, "train.micro_batch=%d seqs", micro), rate, c->set[0]};
    const char *run = arena_printf(ctx->program, "runs/%d%s", micro, reference ? "_reference" : "");
    vwn_context *v = vwn_open(&(vwn_options){.threads = 1, .reference = reference});
    vwn_unit *unit;
    *log = (Log){0};
    vwn_file_options file = {.path = "parts.vwn", .set = set, .n_set = c->set[0] ? 3 : 2};
    vwn_train_options how = {.run = run, .overwrite = true, .event = on_event, .user = log};
    vwn_status st = vwn_check(v, &file, &unit);
    st = st == VWN_OK ? vwn_train(unit, &how) : st;
    if (st != VWN_OK)
        fprintf(stderr, "%s, %d: %s\n", c->name, micro, vwn_message(v));
    vwn_close(v);
    return st == VWN_OK ? weights(ctx, run, out) : 0;
}

static void put_text(void *user, const char *text_, size_t n)
{
    Buf *b = user;
    buf_put(b, text_, n);
}

/* What `vwn eval` says of the run in parts of 2, `batch` sequences at a time. */
static double eval_in(Ctx *ctx, int batch)
{
    Buf b = buf_new(ctx->program);
    vwn_context *v = vwn_open(&(vwn_options){.threads = 1});
    vwn_eval_options how = {.source = "runs/2", .batch_seqs = batch, .json = true};
    vwn_status st = vwn_eval(v, &how, &(vwn_writer){put_text, &b});
    if (st != VWN_OK)
        fprintf(stderr, "eval: %s\n", vwn_message(v));
    vwn_close(v);
    const char *loss = st == VWN_OK ? strstr(b.s, "\"loss\":") : NULL;
    return loss ? strtod(loss + 7, NULL) : NAN;
}

static void write_file(const char *path, const char *content)
{
    FILE *f = fopen(path, "wb");
    if (!f || fputs(content, f) < 0 || fclose(f))
        exit(2);
}

/* In parts of `first` sequences, then of a quarter of them as long as there are such. */
static void runs(const struct Case *c, int first)
{
    static double whole[MOST_WEIGHTS], part[MOST_WEIGHTS];
    Ctx *ctx = ctx_new(NULL);
    Log one, log;
    write_file("parts.vwn", c->text);
    size_t n = train_in(ctx, c, "train.optimizer.lr=1e-2", BATCH, true, &one, whole);
    check(n > 500 && one.steps == STEPS && one.evals && one.eval[0] > 1, "%s: %zu weights", c->name, n);
    for (int micro = first; micro >= 1; micro /= 4) {
        size_t m = train_in(ctx, c, "train.optimizer.lr=1e-2", micro, false, &log, part);
        double worst = 0;
        check(m == n && log.steps == STEPS, "%s in parts of %d: %zu weights", c->name, micro, m);
        check(log.notes == (c->mixed && micro < BATCH), "%s: %d notes", c->name, log.notes);
        for (int i = 0; i < STEPS && !c->mixed; i++)
            check(far(log.loss[i], one.loss[i]) < 2e-6 && far(log.norm[i], one.norm[i]) < 2e-5,
                  "%s, step %d in parts of %d: loss %.9g, not %.9g; norm %.9g, not %.9g", c->name, i + 1, micro,
                  log.loss[i], one.loss[i], log.norm[i], one.norm[i]);
        for (size_t k = 0; k < n && k < m; k++)
            worst = fmax(worst, fabs(part[k] - whole[k]));
        check(c->mixed || worst < 1e-5, "%s: weights in parts of %d are off by %g", c->name, micro, worst);
        int last = one.evals - 1;
        check(c->mixed || (log.evals == one.evals && far(log.eval[last], one.eval[last]) < 1e-5),
              "%s: evaluation in parts of %d: %.9g, not %.9g", c->name, micro, log.eval[last], one.eval[last]);
    }
    ctx_free(ctx);
}

/* With a rate of 0 all evaluations are of the same weights: each is the number of the first, in training and by `vwn eval`. */
static void still(const struct Case *c)
{
    static double none[MOST_WEIGHTS];
    Ctx *ctx = ctx_new(NULL);
    double first = NAN;
    write_file("parts.vwn", c->text);
    for (int micro = BATCH; micro >= 1; micro /= 4) {
        Log log;
        train_in(ctx, c, "train.optimizer.lr=0", micro, false, &log, none);
        first = micro == BATCH ? log.eval[0] : first;
        check(log.evals == STEPS, "%d evaluations", log.evals);
        for (int i = 0; i < log.evals; i++)
            check(far(log.eval[i], first) < 2e-6 && (log.eval[i] == log.eval[0]),
                  "%s in parts of %d: evaluation %d of the same weights is %.9g, not %.9g", c->name, micro, i + 1,
                  log.eval[i], first);
    }
    for (int batch = 1; batch <= 32; batch = batch * 3 + 1)
        check(far(eval_in(ctx, batch), first) < 2e-6, "%s: `vwn eval` of %d at a time: %.9g, not %.9g", c->name, batch,
              eval_in(ctx, batch), first);
    ctx_free(ctx);
}

int main(void)
{
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        graphs(&cases[i]);
    labels_of_noise();
    write_arrays();
    runs(&cases[0], BATCH);
    runs(&cases[2], 2);
    runs(&cases[4], BATCH);
    still(&cases[4]);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
