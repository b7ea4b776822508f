/* prompts.c - several texts at once, beyond the context, with and without what earlier tokens left.
 *
 * In:  small models of every kind of attention input, trained for two steps.
 * Out: `prompts: N passed, N failed`.
 * What follows a prompt must be the same with kept keys and values and from the whole context, in the
 * reference evaluator and with kernels; and the logits of a text the same bits in any company.
 * When: released.
 */
#include <math.h>
#include <stdlib.h>

#include "compiler/file/check_unit.h"
#include "compiler/report/resolve.h"
#include "runtime/train/train.h"
#include "runtime/use/predict.h"
#include "runtime/use/use.h"
#include "support.h"

enum { CONTEXT = 72, VOCAB = 8, MORE = 90, TEXTS = 5 };

static const char model_text[] =
    "edition = 1\n"
    "import \"std/transformer\"\n"
    "import \"std/connections\"\n"
    "let D    = 16\n"
    "let path = \"none.txt\"\n"
    "let look = attention(heads = 4, kv_heads = 2, window = 30, position = rope(base = 100))\n"
    "let sub  = ffn(hidden = 24, activation = silu, gated = true)\n"
    "block running()(x: [B, T, D]) -> [B, T, D] {\n"
    "  return cumsum(x, over = 2) / (1 + unsqueeze(cast(arange(T), real)))\n"
    "}\n"
    "block pooled()(x: [B, T, D]) -> [B, T, D] {\n"
    "  return x + 0.1 * ((arange(T) <= unsqueeze(arange(T))) @ x)\n"
    "}\n"
    "block embed_before(buckets: dim)() -> [B, T, _] {\n"
    "  param W : [buckets, scope.width] = normal(std = 1)\n"
    "  return gather(W, (input.tokens + 7 * shift(input.tokens, 1)) mod buckets)\n"
    "}\n"
    "model small {\n"
    "  context = 72, width = D, mask = causal, pre_norm = rms_norm(eps = 1e-6)\n"
    "  connection = hyper(n = 2, dynamic = true), init = normal(std = 0.4), out_init = normal(std = 0.4)\n"
    "  allow = [vocab_not_padded]\n"
    "  embed tokens { vocab = 8 }\n"
    "  embed before { buckets = 11 }\n"
    "  for layer in 1..2 {\n"
    "    look\n"
    "    sub\n"
    "  }\n"
    "  head lm { norm = rms_norm(eps = 1e-6), init = normal(std = 1) }\n"
    "}\n"
    "train {\n"
    "  data = text_file(path), tokenizer = chars(), batch = 2 seqs, length = 2 steps, seed = 1\n"
    "  precision = fp32\n"
    "  optimizer adamw { lr = 1e-2, betas = [0.9, 0.95], eps = 1e-8, weight_decay = 0 }\n"
    "  checkpoint { every = 2 steps }\n"
    "}\n";

static const char *const kinds[][2] = {
    {"gpt", "sub=ffn(hidden = 24, activation = silu, gated = true)"},
    {"moe", "sub=moe(experts = 5, active = 2, hidden = 8, activation = silu, scores = softmax, "
            "normalize = true, balance = 0.01, shared = 1)"},
    {"sums", "sub=running()"},
};

static const Hooks hooks = {unit_resolved_text, check_file, NULL, "test", "test"};

static const char *train(Tally *t, Ctx *ctx, const char *folder, const char *name, const char *sub)
{
    const char *run = arena_printf(ctx->program, "%s/%s", folder, name);
    vwn_context *v = tiny_context(false, 2);
    const char *set[] = {sub, arena_printf(v->ctx->program, "path=\"%s/text.txt\"", folder)};
    CheckOptions how = {.path = "-", .text = model_text, .text_length = strlen(model_text), .set = set, .n_set = 2};
    Unit *u = check_file(v->ctx, &how);
    for (size_t i = 0; i < diag_count(v->ctx); i++)
        if (diag_get(v->ctx, i)->level == LEVEL_ERROR)
            fprintf(stderr, "%s\n", diag_get(v->ctx, i)->message);
    vwn_train_options o = {.run = run};
    CHECKF(t, u->model && u->train && train_unit(v, u, &o, &hooks) == ST_OK, "%s: %s", name, v->ctx->message);
    tiny_close(v);
    return run;
}

/* ---- sampled text ---- */

/* Prompts shorter than a block, of some blocks, at the edge of the context and beyond it. */
static const int prompt_length[TEXTS] = {3, 40, 72, 171, 64};

static const char *prompt_of(Ctx *ctx, int k)
{
    char *s = arena_alloc(ctx->program, 200);
    for (int i = 0; i < prompt_length[k % TEXTS]; i++)
        s[i] = (char)('a' + (i * (k + 2) + i / 7) % 7);
    s[prompt_length[k % TEXTS]] = 0;
    return s;
}

static void sample(Tally *t, const vwn_sample_options *how, bool reference, Text *out, char warning[768])
{
    *out = (Text){.n = 0};
    vwn_context *v = tiny_context(reference, 2);
    vwn_writer w = {text_take, out};
    CHECKF(t, sample_source(v, how, &w, &hooks) == ST_OK, "%s", v->ctx->message);
    memcpy(warning, v->warning, sizeof v->warning);
    tiny_close(v);
}

static void same_text(Tally *t, Ctx *ctx, const char *run)
{
    const char *prompts[TEXTS];
    for (int k = 0; k < TEXTS; k++)
        prompts[k] = prompt_of(ctx, k);
    Text kept, whole, exact, one;
    char warning[768];
    vwn_sample_options o = {.source = run, .prompts = prompts, .n_prompts = TEXTS, .tokens = MORE};
    sample(t, &o, false, &kept, warning);
    CHECKF(t, !*warning, "%s", warning);
    o.recompute = true;
    sample(t, &o, false, &whole, warning);
    CHECKF(t, !strcmp(kept.s, whole.s), "%s\n%s\n%s", run, kept.s, whole.s);
    o.recompute = false;
    sample(t, &o, true, &exact, warning);
    CHECKF(t, !strcmp(kept.s, exact.s), "%s\n%s\n%s", run, kept.s, exact.s);
    o.temperature = 1.5; /* each prompt has random numbers of its own, whatever else is there */
    o.top_p = 0.9;
    o.seed = 4;
    sample(t, &o, false, &kept, warning);
    o.n_prompts = 2;
    prompts[0] = "gfe";
    sample(t, &o, false, &one, warning);
    const char *second = strstr(kept.s, prompts[1]), *alone = strstr(one.s, prompts[1]);
    CHECKF(t, second && alone && !strncmp(second, alone, (size_t)(prompt_length[1] + MORE)),
           "the second prompt goes on otherwise behind another first one: %s, alone %s", kept.s, one.s);
    prompts[1] = prompts[0];
    sample(t, &o, false, &one, warning);
    char *half = strstr(one.s, "\n\n"); /* equal prompts, other draws */
    CHECKF(t, half && strncmp(one.s, half + 2, 3 + MORE), "two equal prompts get the same draws: %s", one.s);
    o.json = true;
    sample(t, &o, false, &one, warning);
    CHECK(t, strstr(one.s, "\"index\":0}\n{") && strstr(one.s, "\"index\":1}\n"));
    /* three texts of each prompt: the first are those of one each, all others differ */
    Text three;
    o.texts = 3;
    sample(t, &o, false, &three, warning);
    char *line[6] = {three.s};
    for (int k = 1; k < 6; k++) {
        line[k] = line[k - 1] ? strchr(line[k - 1], '\n') : NULL;
        line[k] = line[k] ? line[k] + 1 : NULL;
    }
    CHECKF(t, line[5] && strstr(line[5], "\"text_of_prompt\":2,\"index\":5}\n"), "%s", three.s);
    for (int k = 0; k < 6 && line[5]; k++) {
        size_t n = strcspn(line[k], "}") - strlen("\"text_of_prompt\":0,\"index\":0"); /* without its numbers */
        const char *first = k % 3 ? NULL : k ? strchr(one.s, '\n') + 1 : one.s;
        CHECKF(t, !first || !strncmp(first, line[k], n), "the first text of prompt %d: %s\n%s", k / 3, one.s, three.s);
        for (int i = 0; i < k; i++)
            CHECKF(t, strncmp(line[i], line[k], n) != 0, "texts %d and %d are the same: %s", i, k, three.s);
    }
}

/* ---- bits ---- */

typedef struct Bits {
    GrowingText text[PREDICT_TEXTS];
    double logits[PREDICT_TEXTS][MORE][VOCAB];
} Bits;

static void most_likely(void *user, GrowingText *t, const double *logits)
{
    Bits *b = user;
    int64_t best = 0, k = t->n - t->n_prompt;
    for (int64_t i = 1; i < VOCAB; i++)
        best = logits[i] > logits[best] ? i : best;
    memcpy(b->logits[t - b->text][k], logits, sizeof b->logits[0][0]);
    t->id[t->n++] = best % 7;
    t->open = t->n - t->n_prompt < MORE;
}

/* Text 1 is always the same; how many others there are and what they hold is not. */
static void predict_in_company(Tally *t, const char *run, int threads, size_t n, int company, Bits *b)
{
    vwn_context *v = tiny_context(false, threads);
    Session s = {.owner = v};
    CtxGuard guard;
    if (!CTX_TRY(v->ctx, &guard)) {
        CHECKF(t, false, "%s", v->ctx->message);
    } else {
        Predictor p;
        session_open(&s, v);
        Source source = source_open(&s, run, true, &hooks);
        predictor_open(&p, &s, &source, &(PredictorOptions){.use = "prompts are texts", .texts = PREDICT_TEXTS});
        *b = (Bits){0};
        for (size_t i = 0; i < n; i++) {
            int kind = i == 1 ? 1 : (int)i + company;
            b->text[i].n = b->text[i].n_prompt = prompt_length[kind % TEXTS];
            b->text[i].id = NEW_ARRAY(s.arena, int64_t, 300);
            b->text[i].open = i == 1 || company != 2;
            for (int64_t k = 0; k < b->text[i].n; k++)
                b->text[i].id[k] = k * (kind + 3) % 7;
        }
        CHECK(t, predictor_run(&p, b->text, n, 1, most_likely, b) == ST_OK);
        ctx_leave(v->ctx, &guard);
    }
    session_close(&s);
    tiny_close(v);
}

static void same_bits(Tally *t, const char *run)
{
    static Bits some, other;
    predict_in_company(t, run, 2, 2, 2, &some); /* the other text is closed */
    for (int company = 0; company < 4; company++) {
        predict_in_company(t, run, 1 + company % 2, PREDICT_TEXTS, company, &other);
        CHECKF(t, !memcmp(some.logits[1], other.logits[1], sizeof some.logits[1]),
               "%s: company %d changes the bits of a text", run, company);
    }
}

/* ---- what cannot be kept ---- */

static void falls_back(Tally *t, Ctx *ctx, const char *run)
{
    const char *prompt = prompt_of(ctx, 0);
    Text text;
    char warning[768];
    vwn_sample_options o = {.source = run, .prompts = &prompt, .n_prompts = 1, .tokens = 3};
    sample(t, &o, false, &text, warning);
    CHECKF(t,
           text.n == 7 && strstr(warning, "every token is predicted from the whole context: at ") &&
               strstr(warning, ".safetensors (text of the model):") &&
               strstr(warning, "makes a value of each pair of positions"),
           "%s", warning);
}

static void windows(Tally *t)
{
    for (int64_t context = 1; context < 9; context++)
        for (int64_t n = 1; n < 40; n++) {
            int64_t s = window_start(n, context);
            CHECK(t, s >= 0 && n - s >= 1 && n - s <= context && (n > context || !s));
            CHECK(t, n <= context || n - s > context / 2);
            CHECK(t, window_start(n + 1, context) >= s);
        }
    CHECK(t, window_start(73, 72) == 36 && window_start(108, 72) == 36 && window_start(109, 72) == 72);
}

int main(void)
{
    Tally t = {0};
    Ctx *ctx = ctx_new(NULL);
    const char *folder = scratch_folder(ctx);
    write_text_file(arena_printf(ctx->program, "%s/text.txt", folder), 4000);
    windows(&t);
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        const char *run = train(&t, ctx, folder, kinds[i][0], kinds[i][1]);
        if (t.failed)
            break;
        same_text(&t, ctx, run);
        same_bits(&t, run);
    }
    if (!t.failed)
        falls_back(&t, ctx, train(&t, ctx, folder, "pooled", "sub=pooled()"));
    scratch_remove(folder);
    ctx_free(ctx);
    return tally_end(&t, "prompts");
}
