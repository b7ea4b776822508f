/* sample.c - sampling and evaluation from runs and checkpoints.
 *
 * When: quick, checked.
 */
#include <math.h>
#include <stdlib.h>

#include "runtime/base/json.h"
#include "runtime/train/train.h"
#include "runtime/use/use.h"
#include "support.h"

static double last_eval, last_train;

static void on_event(void *user, const vwn_event *e)
{
    (void)user;
    if (e->kind == VWN_EVENT_EVAL)
        last_eval = e->eval_loss;
    if (e->kind == VWN_EVENT_STEP)
        last_train = e->loss;
}

static bool reference;

static Status sample(const vwn_sample_options *how, Text *out, char why[512])
{
    *out = (Text){.n = 0};
    vwn_context *v = tiny_context(reference, 2);
    vwn_writer w = {text_take, out};
    Status st = sample_source(v, how, &w, &tiny_hooks);
    snprintf(why, 512, "%s", v->ctx->message);
    tiny_close(v);
    return st;
}

static Status eval(const vwn_eval_options *how, Text *out, char why[512])
{
    *out = (Text){.n = 0};
    vwn_context *v = tiny_context(reference, 2);
    vwn_writer w = {text_take, out};
    Status st = eval_source(v, how, &w, &tiny_hooks);
    snprintf(why, 512, "%s", v->ctx->message);
    tiny_close(v);
    return st;
}

static bool letters(const char *s, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (s[i] < 'a' || s[i] > 'g')
            return false;
    return true;
}

static void samples(Tally *t, Ctx *ctx, const char *run)
{
    Text a, b;
    char why[512];
    const char *prompt = "abc";
    vwn_sample_options o = {
        .source = run, .prompts = &prompt, .n_prompts = 1, .tokens = 40, .temperature = 0.8, .top_p = 0.9, .seed = 5};
    CHECKF(t, sample(&o, &a, why) == ST_OK, "%s", why);
    CHECKF(t, a.n == 44 && !strncmp(a.s, "abc", 3) && a.s[43] == '\n' && letters(a.s, 43), "%s", a.s);
    CHECK(t, a.pieces >= 41); /* written as it is made */
    CHECK(t, sample(&o, &b, why) == ST_OK && !strcmp(a.s, b.s));
    o.seed = 6;
    CHECK(t, sample(&o, &b, why) == ST_OK && strcmp(a.s, b.s));
    o.temperature = 0;
    CHECK(t, sample(&o, &a, why) == ST_OK);
    o.seed = 7;
    o.source = arena_printf(ctx->program, "%s/ckpt/step_00000300.safetensors", run);
    CHECK(t, sample(&o, &b, why) == ST_OK && !strcmp(a.s, b.s));
    o.top_p = 1e-9; /* a nucleus of one is the most likely at any temperature */
    o.temperature = 3;
    CHECK(t, sample(&o, &b, why) == ST_OK && !strcmp(a.s, b.s));
    /* the text's rule: the letter three further on, most of the time */
    int right = 0;
    for (int i = 3; i < 43; i++)
        right += (a.s[i] - 'a') == (a.s[i - 1] - 'a' + 3) % 7;
    CHECKF(t, right == 40, "%d of 40 follow the rule: %s", right, a.s);
    o.top_p = 1; /* warmer is less orderly */
    int orderly[2] = {0, 0};
    for (int warm = 0; warm < 2; warm++) {
        o.temperature = warm ? 5 : 0.3;
        CHECK(t, sample(&o, &b, why) == ST_OK);
        for (int i = 3; i < 43; i++)
            orderly[warm] += (b.s[i] - 'a') == (b.s[i - 1] - 'a' + 3) % 7;
    }
    CHECKF(t, orderly[0] > 35 && orderly[1] < 25, "%d and %d of 40", orderly[0], orderly[1]);
    prompt = "";
    o.source = arena_printf(ctx->program, "%s@300", run);
    CHECK(t, sample(&o, &b, why) == ST_OK && b.n == 41 && letters(b.s, 40));
    prompt = "abcabcabcabcabcabcabcabcabcabc"; /* longer than the context */
    o.tokens = 0;
    CHECK(t, sample(&o, &b, why) == ST_OK && b.n == 31);
    o.json = true;
    o.tokens = 5;
    CHECK(t, sample(&o, &b, why) == ST_OK);
    JsonError e;
    const Json *j = json_read(ctx->program, b.s, b.n, &e);
    CHECKF(t, j && strlen(json_string(j, "text")) == 5 && json_get(j, "step")->integer == 300, "%s", b.s);
    o.json = false;
    prompt = "abz";
    CHECK(t, sample(&o, &b, why) == ST_USAGE && strstr(why, "`z`") && !b.n);
    prompt = "abc";
    const vwn_sample_options fine = o;
    for (int k = 0; k < 5; k++) {
        o = fine;
        *(double *[]){&o.temperature, &o.top_p, &o.top_p, &o.min_p, &o.min_p}[k] =
            (double[]){-1, -0.1, 1.1, -0.1, NAN}[k];
        CHECKF(t, sample(&o, &b, why) == ST_USAGE && !b.n, "%d: %s", k, why);
    }
    o = fine;
    o.top_k = -1;
    CHECK(t, sample(&o, &b, why) == ST_USAGE);
    o = fine;
    o.temperature = 4; /* one token is the likeliest, whatever the temperature */
    o.top_k = 1;
    CHECK(t, sample(&o, &a, why) == ST_OK);
    o.top_k = 0;
    o.top_p = 1;
    o.min_p = 1;
    CHECK(t, sample(&o, &b, why) == ST_OK && !strcmp(a.s, b.s));
    o = fine;
    o.temperature = 1;
    o.source = "absent";
    CHECK(t, sample(&o, &b, why) == ST_ENVIRONMENT && strstr(why, "absent"));
    o.source = arena_printf(ctx->program, "%s@7", run);
    CHECK(t, sample(&o, &b, why) == ST_USAGE && strstr(why, "no checkpoint of step 7"));
    o.source = arena_printf(ctx->program, "%s/events.jsonl", run);
    CHECK(t, sample(&o, &b, why) == ST_ENVIRONMENT && strstr(why, "byte"));
}

static double field(Ctx *ctx, const Text *x, const char *key)
{
    JsonError e;
    const Json *j = json_get(json_read(ctx->program, x->s, x->n, &e), key);
    return j ? j->number : NAN;
}

static void evaluations(Tally *t, Ctx *ctx, const char *run, const char *text)
{
    Text x;
    char why[512];
    vwn_eval_options o = {.source = run, .json = true};
    CHECKF(t, eval(&o, &x, why) == ST_OK, "%s", why);
    /* the same windows, weights and program as at the end of training */
    CHECKF(t, field(ctx, &x, "loss") == last_eval, "%.17g, in training %.17g", field(ctx, &x, "loss"), last_eval);
    CHECK(t, fabs(field(ctx, &x, "perplexity") - exp(field(ctx, &x, "loss.next"))) < 1e-9);
    CHECK(t, fabs(field(ctx, &x, "bits_per_byte") * log(2) - field(ctx, &x, "loss.next")) <
                 1e-9); /* its characters are ASCII */
    CHECK(t, field(ctx, &x, "windows") == 8);
    o.batches = 1;
    CHECK(t, eval(&o, &x, why) == ST_OK && field(ctx, &x, "windows") == 4);
    o.batches = 1000; /* all: 200 tokens of validation text are 12 windows */
    CHECK(t, eval(&o, &x, why) == ST_OK && field(ctx, &x, "windows") == 12);
    o.data = text; /* the whole text, of which the last batch is not full */
    CHECK(t, eval(&o, &x, why) == ST_OK && field(ctx, &x, "windows") == 125);
    double in_fours = field(ctx, &x, "loss");
    tiny_batch = 5;
    CHECK(t, eval(&o, &x, why) == ST_OK && field(ctx, &x, "windows") == 125);
    double in_fives = field(ctx, &x, "loss");
    tiny_batch = 0;
    /* one window of 125 has a label less, a second loss sees padded rows */
    CHECKF(t, fabs(in_fours - in_fives) < 2e-4, "%.9f and %.9f", in_fours, in_fives);
    o.json = false;
    CHECK(t, eval(&o, &x, why) == ST_OK && strstr(x.s, "perplexity") && strstr(x.s, "2,000 tokens"));
    o.data = "absent.txt";
    CHECK(t, eval(&o, &x, why) == ST_ENVIRONMENT && strstr(why, "absent.txt") && !x.n);
}

/* A run with a constant rate (that of tiny_unit reads evaluations), with averages or without. */
static void train_at(Tally *t, const char *run, const char *text, double decay)
{
    vwn_context *v = tiny_context(reference, 2);
    TinyOptions o = {.vocab = 9, .width = 16, .context = 16, .batch = 4, .steps = 100, .text = text};
    Unit *u = tiny_unit(v->ctx, &o);
    u->train->optimizer.lr = host_const(v->ctx->program, 0.03);
    u->train->average = decay > 0 ? host_const(v->ctx->program, decay) : NULL;
    vwn_train_options how = {.run = run, .event = on_event};
    CHECKF(t, train_unit(v, u, &how, &tiny_hooks) == ST_OK, "%s", v->ctx->message);
    tiny_close(v);
}

/* A run that keeps averages is evaluated and sampled from with them, or with its last weights. */
static void averaged(Tally *t, Ctx *ctx, const char *folder, const char *text)
{
    const char *run = arena_printf(ctx->program, "%s/avg%d", folder, reference);
    const char *last = arena_printf(ctx->program, "%s/last%d", folder, reference);
    train_at(t, last, text, 0);
    train_at(t, run, text, 0.9);
    Text x;
    char why[512];
    vwn_eval_options e = {.source = run, .json = true};
    CHECKF(t, eval(&e, &x, why) == ST_OK && field(ctx, &x, "loss") == last_eval, "%s: %.17g, in training %.17g", why,
           field(ctx, &x, "loss"), last_eval);
    CHECK(t, strstr(x.s, "\"weights\":\"average\""));
    double mean = field(ctx, &x, "loss");
    e.last = true;
    CHECK(t, eval(&e, &x, why) == ST_OK && strstr(x.s, "\"weights\":\"last\""));
    double now = field(ctx, &x, "loss");
    e.source = last; /* the same training without averages */
    Status st = eval(&e, &x, why);
    /* another kernel updates the weights then, which may round otherwise */
    double room = reference ? 0 : 1e-6;
    CHECKF(t, st == ST_OK && fabs(field(ctx, &x, "loss") - now) <= room && now != mean,
           "%.17g with averages beside, %.17g without, average %.17g", now, field(ctx, &x, "loss"), mean);
    Text y;
    vwn_sample_options s = {.source = run, .tokens = 40, .temperature = 1, .top_p = 1, .last = true};
    CHECKF(t, sample(&s, &x, why) == ST_OK, "%s", why);
    s.source = last;
    CHECK(t, sample(&s, &y, why) == ST_OK && (!reference || !strcmp(x.s, y.s)));
}

static void both(Tally *t, Ctx *ctx, const char *folder, const char *text)
{
    const char *run = arena_printf(ctx->program, "%s/%s", folder, reference ? "ref" : "cpu");
    vwn_context *v = tiny_context(reference, 2);
    TinyOptions o = {.vocab = 9, .width = 16, .context = 16, .batch = 4, .steps = 300, .text = text, .lr = 0.03};
    vwn_train_options how = {.run = run, .event = on_event};
    CHECKF(t, train_unit(v, tiny_unit(v->ctx, &o), &how, &tiny_hooks) == ST_OK, "%s", v->ctx->message);
    tiny_close(v);
    samples(t, ctx, run);
    evaluations(t, ctx, run, text);
    averaged(t, ctx, folder, text);
}

int main(void)
{
    Tally t = {0};
    Ctx *ctx = ctx_new(NULL);
    const char *folder = scratch_folder(ctx);
    const char *text = arena_printf(ctx->program, "%s/text.txt", folder);
    write_text_file(text, 2000);
    reference = true;
    both(&t, ctx, folder, text);
    reference = false;
    if (!getenv("VWN_TEST_REFERENCE"))
        both(&t, ctx, folder, text);
    scratch_remove(folder);
    ctx_free(ctx);
    return tally_end(&t, "sample");
}
