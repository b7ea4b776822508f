/* bench.c - vwn_bench through the public interface.
 *
 * In:  a small model as text.
 * Out: `N passed, N failed`. Fields are there and fit each other: what kernels take is no more
 * than the step, bounds and shares follow from the figures they are made of; an earlier object
 * is taken or refused for the right reason; nothing is left behind.
 * When: released, optimised.
 */
#include "runtime/base/json.h"
#include "support.h"
#include "support/drawn.h"

#include <math.h>
#include <stdlib.h>
#include <unistd.h>

static const char model_text[] =
    "edition = 1\n"
    "import \"std/transformer\"\n"
    "import \"std/connections\"\n"
    "model small {\n"
    "  context = 16\n"
    "  width = 32\n"
    "  mask = causal\n"
    "  init = normal(std = 0.02)\n"
    "  out_init = normal(std = 0.01)\n"
    "  connection = residual()\n"
    "  pre_norm = rms_norm(eps = 1e-6)\n"
    "  embed tokens { vocab = 61, width = 32 }\n"
    "  attention { heads = 2 }\n"
    "  ffn { hidden = 48, activation = silu, gated = true }\n"
    "  head lm { norm = rms_norm(eps = 1e-6) }\n"
    "}\n"
    "train {\n"
    "  data = token_files(\"absent-*.bin\", dtype = u16)\n"
    "  batch = 4 seqs\n"
    "  micro_batch = 2 seqs\n"
    "  seed = 1\n"
    "  length = 3 steps\n"
    "  precision = fp32\n"
    "  optimizer adamw { lr = 1e-3, betas = [0.9, 0.95], eps = 1e-8, weight_decay = 0.1 }\n"
    "}\n";

typedef struct Result {
    char s[1 << 18];
    size_t n;
    int notes;
} Result;

static void put(void *user, const char *text, size_t n)
{
    Result *r = user;
    if (r->n + n < sizeof r->s)
        memcpy(r->s + r->n, text, n);
    r->n += n;
    r->s[r->n] = 0;
}

static void on_event(void *user, const vwn_event *e)
{
    Result *r = user;
    r->notes += e->kind == VWN_EVENT_NOTE;
}

/* One measurement in a context of its own; `why` gets the message. */
static vwn_status measure(const char *text, const char *set, bool json, const char *against, Result *r, char why[512])
{
    vwn_context *ctx = vwn_open(&(vwn_options){.threads = 2});
    vwn_file_options file = {.path = "-", .text = text, .text_length = strlen(text), .set = &set, .n_set = set ? 1 : 0};
    vwn_unit *unit;
    vwn_status st = vwn_check(ctx, &file, &unit);
    vwn_bench_options how = {.steps = 5,
                             .kernels = true,
                             .json = json,
                             .against = against,
                             .against_length = against ? strlen(against) : 0,
                             .against_name = "old.json",
                             .event = on_event,
                             .user = r};
    r->n = 0;
    r->notes = 0;
    if (st == VWN_OK)
        st = vwn_bench(unit, &how, &(vwn_writer){put, r});
    snprintf(why, 512, "%s", vwn_message(ctx));
    vwn_writer out = {put, r};
    size_t warnings;
    if (st == VWN_INPUT)
        vwn_diagnostics(ctx, &out, false, false, &warnings);
    vwn_close(ctx);
    return st;
}

/* A number at "a.b". */
static double at(const Json *j, const char *group, const char *key)
{
    const Json *g = *group ? json_get(j, group) : j, *v = g ? json_get(g, key) : NULL;
    return v && v->kind == JSON_NUMBER ? v->number : NAN;
}

static bool close_to(double a, double b) { return fabs(a - b) <= 2e-5 * fabs(b); }

static void check_head(Tally *t, const Json *j)
{
    CHECK(t, at(j, "", "v") == 1);
    CHECK(t, !strcmp(json_string(j, "model"), "small"));
    CHECK(t, !strcmp(json_string(j, "data"), "synthetic"));
    CHECK(t, !strcmp(json_string(j, "precision"), "fp32"));
    CHECK(t, at(j, "", "batch") == 4 && at(j, "", "micro_batch") == 2);
    CHECK(t, at(j, "", "tokens_per_step") == 64);
    CHECK(t, at(j, "", "threads") == 2);
    CHECK(t, at(j, "machine", "copy_gb_s") > 0.1 && at(j, "machine", "fma_gflop_s") > 0.1);
    CHECK(t, at(j, "step", "timed") == 5);
    double best = at(j, "step", "best_ms"), median = at(j, "step", "median_ms");
    CHECK(t, best > 0 && best <= median);
    const Json *times = json_get(json_get(j, "step"), "times_ms");
    CHECK(t, times && times->n == 5);
    for (const Json *x = times ? times->first : NULL; x; x = x->next)
        CHECK(t, x->number >= best);
    CHECK(t, close_to(at(j, "tokens_s", "best"), 64e3 / best));
    CHECK(t, close_to(at(j, "tokens_s", "median"), 64e3 / median));
    CHECK(t, close_to(at(j, "roofline", "share_best"), at(j, "roofline", "bound_ms") / best));
    CHECK(t, at(j, "memory", "arena_bytes") > 0 && at(j, "memory", "tensor_bytes") > 0);
    CHECK(t, at(j, "memory", "resident_peak_bytes") > at(j, "memory", "arena_bytes"));
    double all = 0;
    static const char *const parts[] = {"check_ms", "plan_ms", "kernels_ms", "open_ms", "first_step_ms"};
    for (size_t i = 0; i < COUNT_OF(parts); i++) {
        CHECKF(t, at(j, "startup", parts[i]) > 0, "%s", parts[i]);
        all += at(j, "startup", parts[i]);
    }
    CHECK(t, close_to(at(j, "startup", "total_ms"), all));
    CHECK(t, at(j, "startup", "kernels") == at(j, "startup", "cached") + at(j, "startup", "compiled"));
}

static void check_kernels(Tally *t, const Json *j)
{
    const Json *list = json_get(j, "kernels");
    double best = 0, share = 0, bound = 0, flops = 0;
    size_t products = 0, kernels = 0;
    for (const Json *k = list ? list->first : NULL; k; k = k->next) {
        const char *kind = json_string(k, "kind");
        products += !strcmp(kind, "product");
        kernels += !strcmp(kind, "kernel");
        CHECK(t, *json_string(k, "name") && *json_string(k, "what"));
        CHECK(t, at(k, "", "launches") >= 1);
        CHECK(t, at(k, "", "best_ms") <= at(k, "", "median_ms"));
        double needs = fmax(at(k, "", "bytes") / at(j, "machine", "copy_gb_s"),
                            at(k, "", "flops") / at(j, "machine", "fma_gflop_s")) *
                       1e-6;
        CHECKF(t, at(k, "", "bound_ms") >= needs * (1 - 1e-4), "%s: bound", json_string(k, "name"));
        best += at(k, "", "best_ms");
        share += at(k, "", "share");
        bound += at(k, "", "bound_ms");
        flops += strcmp(kind, "product") ? 0 : at(k, "", "flops");
    }
    CHECK(t, products > 5 && kernels > 5);
    CHECKF(t, best <= at(j, "step", "best_ms"), "kernels %g, step %g", best, at(j, "step", "best_ms"));
    CHECKF(t, share > 0.05 && share <= 1, "shares %g", share);
    CHECK(t, fabs(bound - at(j, "roofline", "bound_ms")) < 1e-4 * bound);
    /* 4 x 16 tokens; q, k, v, o, gate, up, down and the head forward, and twice backward */
    double weights = 4 * 32 * 32 + 3 * 32 * 48 + 32 * 61;
    CHECKF(t, flops == 3 * 2 * 64 * weights, "flops of products %.0f", flops);
}

static Json *parsed(Arena *a, const Result *r)
{
    JsonError e;
    return json_read(a, r->s, r->n, &e);
}

/* A copy of the text with one piece replaced. */
static const char *with(Arena *a, const char *text, const char *from, const char *to)
{
    const char *p = strstr(text, from);
    return p ? arena_printf(a, "%.*s%s%s", (int)(p - text), text, to, p + strlen(from)) : "";
}

static void check_against(Tally *t, Arena *a, const char *old, Result *r)
{
    char why[512];
    CHECKF(t, measure(model_text, NULL, true, old, r, why) == VWN_OK, "%s", why);
    const Json *j = parsed(a, r), *c = j ? json_get(j, "against") : NULL;
    double was = c ? at(c, "step", "was_ms") : NAN;
    CHECK(t, close_to(at(c, "step", "ratio"), at(j, "step", "best_ms") / was));
    CHECK(t, json_get(c, "kernels")->n == json_get(j, "kernels")->n);
    CHECK(t, json_get(c, "gone")->n == 0);
    for (const Json *k = json_get(c, "kernels")->first; k; k = k->next)
        CHECK(t, strcmp(json_string(k, "change"), "new") != 0);
    /* a step that took longer, a kernel that was printed differently, one that is no more */
    const char *other = with(a, old, "\"warmup\":2,\"best_ms\":", "\"warmup\":2,\"best_ms\":9876");
    other = with(a, other, "\"name\":\"k_", "\"name\":\"other_");
    other = with(a, other, "\"kind\":\"product\"", "\"kind\":\"sum\"");
    CHECKF(t, measure(model_text, NULL, true, other, r, why) == VWN_OK, "%s", why);
    j = parsed(a, r);
    c = json_get(j, "against");
    CHECK(t, at(c, "step", "ratio") < 0.1);
    CHECK(t, !strcmp(json_string(json_get(c, "step"), "change"), "faster"));
    CHECK(t, json_get(c, "gone")->n == 1);
    size_t fresh = 0;
    for (const Json *k = json_get(c, "kernels")->first; k; k = k->next)
        fresh += !strcmp(json_string(k, "change"), "new");
    CHECKF(t, fresh == 1, "%zu new kernels", fresh);
}

static void check_text(Tally *t, const char *old, Result *r)
{
    char why[512];
    CHECKF(t, measure(model_text, NULL, false, old, r, why) == VWN_OK, "%s", why);
    CHECK(t, strstr(r->s, "against    old.json: best step was") != NULL);
}

/* A wider model in bf16: products of bf16 operands are held against a yardstick of their own.
 */
static void check_bf16(Tally *t, Arena *a, Result *r)
{
    char why[512];
    const char *text = with(a, model_text, "context = 16", "context = 64");
    text = with(a, text, "width = 32\n", "width = 64\n");
    text = with(a, text, "width = 32 }", "width = 64 }");
    text = with(a, text, "hidden = 48", "hidden = 64");
    const char *set = "train.precision=mixed(compute = bf16, master = fp32)";
    CHECKF(t, measure(text, set, true, NULL, r, why) == VWN_OK, "%s%s", why, r->s);
    const Json *j = parsed(a, r), *list = j ? json_get(j, "kernels") : NULL;
    size_t products = 0;
    double bf16 = at(j, "machine", "bf16_gflop_s");
    for (const Json *k = list ? list->first : NULL; k; k = k->next) {
        if (!strstr(json_string(k, "name"), ", bf16"))
            continue;
        products++;
        CHECK(t, at(k, "", "bound_ms") >= 1e-6 * (1 - 1e-4) * at(k, "", "flops") / bf16);
    }
    CHECKF(t, r->notes == 2, "%d notes instead of two: of the random data, and of what is computed in what", r->notes);
    CHECK(t, (products > 0) == (bf16 > 0));
}

static void check_refusals(Tally *t, Arena *a, const char *old, Result *r)
{
    const struct {
        const char *against, *says;
    } cases[] = {{"", "it is not JSON"},
                 {"{\"schema\": 1", "it is not JSON"},
                 {"[]", "not written by `vwn bench --json`"},
                 {with(a, old, "vwn.bench", "vwn.other"), "not written by `vwn bench --json`"},
                 {with(a, old, "\"v\":1", "\"v\":2"), "schema is version 2"},
                 {with(a, old, "\"small\"", "\"large\""), "measured the model `large`"},
                 {with(a, old, "\"batch\":4", "\"batch\":8"), "8 sequences a step, this file has 4"},
                 {with(a, old, "\"weights\":", "\"weights\":1"), "weights, this file has"},
                 {with(a, old, "\"context\":16", "\"context\":32"), "32 positions a sequence"},
                 {with(a, old, "\"kernels\":[", "\"cores\":["), "written without `--kernels`"},
                 {with(a, old, "\"best_ms\"", "\"test_ms\""), "`best_ms` is missing"}};
    char why[512];
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        vwn_status st = measure(model_text, NULL, true, cases[i].against, r, why);
        CHECKF(t, st == VWN_USAGE && strstr(why, cases[i].says), "case %zu: %d: %s", i, st, why);
        CHECKF(t, r->n == 0, "case %zu: something was written", i);
    }
    CHECK(t, measure("edition = 1\n", NULL, true, NULL, r, why) == VWN_INPUT);
    CHECKF(t, strstr(why, "no `model`"), "%s", why);
}

int main(void)
{
    Tally t = {0};
    char why[512];
    Ctx *ctx = ctx_new(NULL);
    Result *r = calloc(1, sizeof *r);
    const char *folder = scratch_folder(ctx);
    if (chdir(folder)) {
        printf("no folder to work in\n");
        return 1;
    }
    vwn_status st = measure(model_text, NULL, true, NULL, r, why);
    CHECKF(&t, st == VWN_OK, "%d: %s%s", st, why, r->s);
    const Json *j = st == VWN_OK ? parsed(ctx->program, r) : NULL;
    CHECK(&t, j && r->notes == 1);
    if (j) {
        const char *old = arena_copy(ctx->program, r->s, r->n);
        check_head(&t, j);
        check_kernels(&t, j);
        if (!SANITIZED || test_whole()) { /* most of a measurement is memory that is filled, in whatever build */
            check_against(&t, ctx->program, old, r);
            check_bf16(&t, ctx->program, r);
        }
        check_text(&t, old, r);
        check_refusals(&t, ctx->program, old, r);
    }
    CHECK(&t, !file_exists("runs"));
    if (chdir("/"))
        return 1;
    scratch_remove(folder);
    free(r);
    ctx_free(ctx);
    return tally_end(&t, "measuring");
}
