/* foreign.c - what files of others were trained with: gains of 1 + w, and rotary pairs that are neighbours.
 *
 * In:  blocks of the library.   Out: `N passed, N failed`.
 * The numbers of PyTorch are those of transformers 5 (GemmaRMSNorm; GPT-J's and Cohere's apply_rotary_pos_emb, which agree), in float32;
 * beside them the formulas themselves, in float64.
 */
#include "compiler/plan/plan.h"
#include "support/models.h"

static int passed, failed;

static void expect(const char *what, bool ok)
{
    ok ? passed++ : printf("FAILED: %s\n", what);
    failed += !ok;
}

enum { B = 2, T = 5, H = 2, D = 6, SIZE = B * T * H * D };

/* `call` of z [B, T, H, D]: values, and the gradient of sum(c * values) in z. z and c are the tensors `z` and `c`. */
typedef struct Given {
    const char *call;
    double z[SIZE], c[SIZE], y[SIZE], dz[SIZE];
} Given;

static void compute(Ctx *ctx, void *user)
{
    Given *of = user;
    const char *text = arena_printf(
        ctx->program,
        "edition = 1\nimport \"std/transformer\"\nimport \"std/connections\"\n"
        "block embed_zero()() -> [B, T, 1] { return input(o, [B, T, 1]) }\n"
        "block head_probe()(x: [B, T, W]) -> [B, T, W] {\n"
        "  param z : [%d, %d, %d, %d] = zeros\n  buffer c : [%d, %d, %d, %d] = zeros\n  let f = %s\n  y = f(z)\n"
        "  output.y = y\n  loss.l = sum(y * c)\n  return x\n}\n"
        "model m {\n  context = %d, width = 1, mask = causal, init = zeros, out_init = zeros, connection = residual()\n"
        "  embed zero { }\n  head probe { }\n}\n"
        "train {\n  data = arrays(o = \"none.npy\"), batch = %d images, length = 10 steps, seed = 1\n"
        "  precision = fp32\n  optimizer sgd { lr = 1, momentum = 0, weight_decay = 0 }\n}\n",
        B, T, H, D, B, T, H, D, of->call, T, B);
    Unit *u = load_text(ctx, text, NULL);
    const Graph *g[] = {step_outputs(u->model, ctx->program), step_gradient(u->model, u->train, true, ctx->program)};
    for (int i = 0; i < 2; i++) {
        RefBinding *bind = bind_all(ctx->program, g[i], u->model, B, T, 0);
        for (size_t k = 0; k < g[i]->ext.n; k++) {
            const double *from = !strcmp(bind[k].name, "head.probe.z")   ? of->z
                                 : !strcmp(bind[k].name, "head.probe.c") ? of->c
                                                                         : NULL;
            if (from && bind[k].kind != EXT_GRAD)
                memcpy(bind[k].tensor->real, from, sizeof of->z);
        }
        RefRun run = {.B = B, .T = T, .seed = 1, .bind = bind, .n_bind = g[i]->ext.n};
        Tensor **out = NEW_ARRAY(ctx->program, Tensor *, g[i]->out.n + 1);
        ref_evaluate(g[i], ctx->program, &run, out);
        if (i == 0)
            memcpy(of->y, out[0]->real, sizeof of->y);
        for (size_t k = 0; i && k < g[i]->ext.n; k++)
            if (bind[k].kind == EXT_GRAD && !strcmp(bind[k].name, "head.probe.z"))
                memcpy(of->dz, bind[k].tensor->real, sizeof of->dz);
    }
}

static bool near_all(const double *a, const double *b, int n, double by)
{
    for (int i = 0; i < n; i++)
        if (!(fabs(a[i] - b[i]) <= by * (1 + fabs(b[i]))))
            return false;
    return true;
}

/* ---- rope ---- */

/* Turned by the angles, or, as the gradient is, back. */
static void turn(const double *x, int dims, bool neighbours, int sign, double *y)
{
    memcpy(y, x, SIZE * sizeof *y);
    for (int row = 0; row < B * T * H; row++)
        for (int i = 0; i < dims / 2; i++) {
            double angle = sign * (row / H % T) * pow(10000, -2.0 * i / dims);
            int a = row * D + (neighbours ? 2 * i : i), b = row * D + (neighbours ? 2 * i + 1 : i + dims / 2);
            y[a] = x[a] * cos(angle) - x[b] * sin(angle);
            y[b] = x[b] * cos(angle) + x[a] * sin(angle);
        }
}

static void rotate(Ctx *ctx)
{
    static const struct {
        const char *call;
        int dims;
        bool neighbours;
    } cases[] = {{"rope(base = 10_000)", D, false},
                 {"rope(base = 10_000, interleaved = true)", D, true},
                 {"rope(base = 10_000, fraction = 4 / 6)", 4, false},
                 {"rope(base = 10_000, fraction = 4 / 6, interleaved = true)", 4, true},
                 {"rope_at(freqs = [1, 10_000 ^ (-1 / 2)], interleaved = true)", 4, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        static Given of;
        double y[SIZE], dz[SIZE];
        uint64_t state = 5;
        of = (Given){.call = cases[i].call};
        for (int k = 0; k < SIZE; k++) {
            of.z[k] = noise(&state);
            of.c[k] = noise(&state);
        }
        turn(of.z, cases[i].dims, cases[i].neighbours, 1, y);
        turn(of.c, cases[i].dims, cases[i].neighbours, -1, dz);
        expect(cases[i].call,
               guarded(ctx, compute, &of) && near_all(of.y, y, SIZE, 1e-13) && near_all(of.dz, dz, SIZE, 1e-13));
    }
    static Given torch = {.call = "rope(base = 10_000, interleaved = true)"};
    static const double at_3[] = {-1.3128600120544434, -1.111567497253418, 1.1966326236724854,
                                  1.7545011043548584,  1.7022467851638794, 1.868183970451355},
                        at_4[] = {0.31443238258361816, -2.9142699241638184, 1.7981208562850952,
                                  2.8087737560272217,  2.5479423999786377,  2.736344337463379};
    for (int t = 0; t < T; t++)
        for (int k = 0; k < D; k++)
            torch.z[t * H * D + k] = (t * D + k - 10) / 7.0;
    expect("interleaved pairs as PyTorch turns them", guarded(ctx, compute, &torch) &&
                                                          near_all(torch.y + 3 * H * D, at_3, D, 1e-6) &&
                                                          near_all(torch.y + 4 * H * D, at_4, D, 1e-6));
}

/* ---- gains ---- */

static const char norms[] =
    "edition = 1\nimport \"std/transformer\"\nimport \"std/connections\"\nlet offset = 0\nlet turn = rope(base = 100)\n"
    "model m {\n  context = 8, width = 64, mask = causal, init = normal(std = 0.3), out_init = normal(std = 0.3)\n"
    "  pre_norm = rms_norm(eps = 1e-6, offset = offset), connection = residual()\n  embed tokens { vocab = 17 }\n"
    "  attention { heads = 2, position = turn }\n  ffn { hidden = 8, activation = silu }\n"
    "  head lm { norm = rms_norm(eps = 1e-6, offset = offset) }\n}\n"
    "train {\n  data = text_file(\"none.txt\"), tokenizer = chars(), batch = 4 seqs, length = 10 steps, seed = 1\n"
    "  precision = fp32\n  optimizer sgd { lr = 1, momentum = 0, weight_decay = 0 }\n}\n";

/* With an offset the first loss is that without one, and a gain begins with what is left. */
static void begins(Ctx *ctx, void *user)
{
    double loss[2];
    (void)user;
    for (int i = 0; i < 2; i++) {
        const char *set[] = {i ? "offset=1" : NULL, NULL};
        Unit *u = load_text(ctx, norms, set);
        const Graph *g = step_evaluate(u->model, ctx->program);
        RefRun run = {
            .B = 4, .T = 8, .seed = 1, .bind = bind_all(ctx->program, g, u->model, 4, 8, 0), .n_bind = g->ext.n};
        Tensor **out = NEW_ARRAY(ctx->program, Tensor *, g->out.n + 1);
        ref_evaluate(g, ctx->program, &run, out);
        loss[i] = out[0]->real[0];
        for (size_t k = 0; k < u->model->param.n; k++)
            if (!strcmp(u->model->param.v[k].path, "head.lm.norm.g"))
                expect("what a gain begins with",
                       u->model->param.v[k].init.kind == INIT_FILL && u->model->param.v[k].init.a == 1 - i);
    }
    expect("an offset is no other beginning", loss[0] > 1 && fabs(loss[0] - loss[1]) < 1e-12);
}

static void gains(Ctx *ctx)
{
    static const char text[] =
        "edition = 1\nimport \"std/transformer\"\nimport \"std/connections\"\n"
        "block embed_zero()() -> [B, T, 1] { return input(o, [B, T, 1]) }\n"
        "block head_probe()(x: [B, T, W]) -> [B, T, W] {\n  param z : [4] = [1, 2, -3, 4]\n  let n = rms_norm(eps = "
        "1e-6, offset = 1)\n"
        "  output.y = n(z)\n  loss.l = sum(n(z))\n  return x\n}\n"
        "model m {\n  context = 2, width = 1, mask = causal, init = zeros, out_init = zeros, connection = residual()\n"
        "  embed zero { }\n  head probe { }\n}\n";
    static const double g[] = {0.5, -0.25, 0, 1},
                        y[] = {0.547722578048706, 0.547722578048706, -1.095445156097412, 2.921186923980713};
    Unit *u = load_text(ctx, text, NULL);
    const Graph *out = step_outputs(u->model, ctx->program);
    RefBinding *bind = bind_all(ctx->program, out, u->model, 1, 2, 0);
    for (size_t k = 0; k < out->ext.n; k++)
        if (!strcmp(bind[k].name, "head.probe.n.g"))
            memcpy(bind[k].tensor->real, g, sizeof g);
    RefRun run = {.B = 1, .T = 2, .seed = 1, .bind = bind, .n_bind = out->ext.n};
    Tensor **got = NEW_ARRAY(ctx->program, Tensor *, out->out.n + 1);
    ref_evaluate(out, ctx->program, &run, got);
    expect("gains of 1 + w as PyTorch has them", near_all(got[0]->real, y, 4, 1e-6));
}

/* ---- neither is a launch more ---- */

static size_t launches(Ctx *ctx, const char *set, const Target *target)
{
    Unit *u = load_text(ctx, norms, (const char *[]){set, NULL});
    PlanOptions how = {.B = 4, .T = 8, .target = target};
    return plan_build(ctx, ctx->program,
                      plan_graph(step_gradient(u->model, u->train, true, ctx->program), ctx->program, &how), &how)
        ->n_launch;
}

static void fused(Ctx *ctx, void *user)
{
    (void)user;
    const Target *targets[] = {&target_cpu, &target_gpu};
    for (int i = 0; i < 2; i++) {
        size_t plain = launches(ctx, NULL, targets[i]);
        expect("a gain of 1 + w takes no launch", plain > 10 && launches(ctx, "offset=1", targets[i]) == plain);
        expect("pairs of neighbours take no launch",
               launches(ctx, "turn=rope(base = 100, interleaved = true)", targets[i]) == plain);
    }
}

int main(void)
{
    Ctx *ctx = ctx_new(NULL);
    rotate(ctx);
    gains(ctx);
    expect("initial values", guarded(ctx, begins, NULL));
    expect("plans", guarded(ctx, fused, NULL));
    ctx_free(ctx);
    printf("%d passed, %d failed\n", passed, failed);
    return failed != 0;
}
