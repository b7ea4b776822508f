/* sample.c - text from a trained model.
 *
 * In:  a run or a checkpoint, prompts.   Out: each prompt and what follows, written as it is
 * made.
 * The one idea: predict.c says what may come next, here it is drawn and written. Draws come
 * from the counter-based generator, keyed by the seed, the place of the prompt in the list and
 * the place of the token, so that a seed gives the same text everywhere; further texts of the prompts follow the
 * first ones there, so that they leave them as they are. Texts are written in the
 * order of their prompts; one that is made ahead of its turn waits.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "choose.h"
#include "predict.h"
#include "use.h"

enum { TEXTS_MOST = 1 << 20 };

typedef struct Sampling {
    Session session;
    const vwn_sample_options *how;
    const vwn_writer *out;
    const Hooks *hooks;
    Source source;
    const Tokenizer *tokenizer;
    Predictor predictor;
    int64_t vocab, usable;     /* ids below usable may be drawn */
    size_t n, each;            /* texts: `each` of every prompt, which are together */
    const char *const *prompt; /* of each text */
    GrowingText *text;         /* n */
    size_t turn;               /* the text that is written as it is made */
    int64_t written;           /* its tokens that are */
    char held[4];              /* the beginning of a character, the rest of which is not there yet */
    size_t n_held;
    Candidate *choice;
    double *logits; /* those that the filters see, where tokens that are there count less, or ids stand for nothing */
    int64_t *hole;  /* ids that stand for nothing: they are not drawn */
    size_t holes;
    unsigned char *seen;     /* of each token */
    char **tail;             /* of each text: the last bytes behind its prompt, in which a stop may have begun */
    size_t *n_tail, longest; /* stops have at most so many bytes */
} Sampling;

/* ---- the prompt ---- */

/* "464 3290": ids for models whose tokenizer the file does not name. */
static int64_t read_ids(Sampling *x, const char *text, int64_t *out)
{
    int64_t n = 0;
    for (const char *s = text; *s;) {
        char *end;
        while (*s == ' ')
            s++;
        if (!*s)
            break;
        int64_t id = strtoll(s, &end, 10);
        if (end == s || (*end && *end != ' '))
            ctx_raise(
                x->session.ctx, ST_USAGE,
                "this model was trained on token ids whose tokenizer the file does not name: give the prompt as ids, "
                "`--prompt '464 3290'`");
        if (id < 0 || id >= x->vocab)
            ctx_raise(x->session.ctx, ST_USAGE,
                      "the id %lld of the prompt is not below the "
                      "vocabulary of %lld",
                      (long long)id, (long long)x->vocab);
        out[n++] = id;
        s = end;
    }
    return n;
}

static void read_prompt(Sampling *x, const char *text, GrowingText *t)
{
    Session *s = &x->session;
    size_t n = strlen(text);
    char why[WHY];
    t->id = NEW_ARRAY(s->arena, int64_t, tokenizer_room(x->tokenizer, n) + (size_t)x->how->tokens + 2);
    bool ids = !tokenizer_has_text(x->tokenizer);
    t->n = ids ? read_ids(x, text, t->id) : tokenizer_encode(x->tokenizer, "the prompt", text, n, t->id, why);
    if (t->n < 0)
        ctx_raise(s->ctx, ST_USAGE, "%s", why);
    for (int64_t i = 0; i < t->n; i++)
        if (t->id[i] >= x->vocab)
            ctx_raise(s->ctx, ST_USAGE,
                      "the prompt holds a character that the model's vocabulary of "
                      "%lld does not",
                      (long long)x->vocab);
    if (!t->n)
        t->id[t->n++] = tokenizer_line(x->tokenizer, x->vocab); /* something must come first */
    t->n_prompt = t->n;
    t->open = x->how->tokens > 0;
}

static void read_prompts(Sampling *x)
{
    static const char *const empty[] = {""};
    if (x->how->tokens < 0 || x->how->tokens > 1 << 28)
        ctx_raise(x->session.ctx, ST_USAGE, "%lld tokens cannot be drawn", (long long)x->how->tokens);
    size_t prompts = x->how->n_prompts ? x->how->n_prompts : 1;
    const char *const *prompt = x->how->n_prompts ? x->how->prompts : empty;
    x->each = x->how->texts ? x->how->texts : 1;
    if (x->each > TEXTS_MOST / prompts)
        ctx_raise(x->session.ctx, ST_USAGE, "%zu texts of %zu prompts are more than %d", x->each, prompts, TEXTS_MOST);
    x->n = prompts * x->each;
    const char **of = NEW_ARRAY(x->session.arena, const char *, x->n);
    x->text = NEW_ARRAY(x->session.arena, GrowingText, x->n);
    for (size_t i = 0; i < x->n; i++) {
        of[i] = prompt[i / x->each];
        read_prompt(x, of[i], &x->text[i]);
    }
    x->prompt = of;
}

/* ---- drawing ---- */

static int64_t draw(Sampling *x, const GrowingText *t, const double *logits, uint64_t number, uint64_t index)
{
    if (x->logits) {
        memcpy(x->logits, logits, (size_t)x->vocab * sizeof *logits);
        if (x->seen)
            choose_repetition(x->logits, t->id, (size_t)t->n, x->how->repetition, x->seen);
        for (size_t i = 0; i < x->holes; i++)
            x->logits[x->hole[i]] = -INFINITY;
        logits = x->logits;
    }
    const ChooseFilters f = {x->how->temperature, x->how->top_k, x->how->top_p, x->how->min_p};
    double u = philox_uniform(philox_key(x->how->seed, "sample"), number, index);
    int64_t id = choose_token(&f, logits, (size_t)x->usable, x->choice, u);
    if (id < 0)
        ctx_raise(x->session.ctx, ST_DIVERGED, "the model's logits are not finite");
    return id;
}

/* ---- writing ---- */

/* In `few` or where the tokenizer has it. */
static const char *token_text(const Sampling *x, int64_t id, char few[24], size_t *n)
{
    *n = 0;
    if (tokenizer_has_text(x->tokenizer))
        return tokenizer_decode(x->tokenizer, id, few, n);
    *n = (size_t)snprintf(few, 24, "%lld ", (long long)id);
    return few;
}

/* Writes what is whole of what was held back and of what follows; the rest is held back, unless it is the end. */
static void write_whole(Sampling *x, const char *text, size_t n, bool end)
{
    Session *s = &x->session;
    ArenaMark mark = arena_mark(s->arena);
    Buf b = buf_new(s->arena);
    buf_put(&b, x->held, x->n_held);
    buf_put(&b, text, n);
    x->n_held = end ? 0 : utf8_unfinished(b.s, b.n);
    memcpy(x->held, b.s + b.n - x->n_held, x->n_held);
    if (b.n > x->n_held)
        write_text(x->out, b.s, b.n - x->n_held);
    arena_reset(s->arena, mark);
}

static void write_json(Sampling *x, size_t i)
{
    Session *s = &x->session;
    const GrowingText *t = &x->text[i];
    ArenaMark mark = arena_mark(s->arena);
    Buf b = buf_new(s->arena);
    char one[24];
    for (int64_t k = t->n_prompt; k < t->n; k++) {
        size_t length;
        const char *text = token_text(x, t->id[k], one, &length);
        buf_put(&b, text, length);
    }
    size_t cap = 6 * (b.n + strlen(x->prompt[i])) + 400;
    JsonText json;
    json_begin(&json, arena_alloc(s->arena, cap), cap);
    json_open(&json, NULL, '{');
    json_put_integer(&json, "v", 1);
    json_put_string(&json, "event", "sample");
    json_put_string(&json, "prompt", x->prompt[i]);
    json_put_bytes(&json, "text", b.s, b.n);
    json_put_integer(&json, "tokens", t->n - t->n_prompt);
    json_put_integer(&json, "step", x->source.checkpoint->progress.step);
    json_put_integer(&json, "text_of_prompt", (int64_t)(i % x->each));
    json_put_integer(&json, "index", (int64_t)i);
    json_close(&json, '}');
    write_text(x->out, json.s, json.n);
    write_text(x->out, "\n", 1);
    arena_reset(s->arena, mark);
}

/* What is there of the text whose turn it is; then of the next ones, when it is whole. */
static void write_on(Sampling *x)
{
    char one[24];
    for (; x->turn < x->n; x->turn++, x->written = 0) {
        const GrowingText *t = &x->text[x->turn];
        bool silent = !x->prompt[x->turn][0]; /* the token that came first is not its own */
        for (; !x->how->json && x->written < t->n; x->written++)
            if (x->written >= t->n_prompt || !silent) {
                size_t n;
                const char *text = token_text(x, t->id[x->written], one, &n);
                write_whole(x, text, n, false);
            }
        if (t->open)
            return;
        write_whole(x, "", 0, true);
        if (x->how->json)
            write_json(x, x->turn);
        else
            write_text(x->out, "\n\n", x->turn + 1 < x->n ? 2 : 1);
    }
}

/* Whether the token that is added to text i completes one of the stops. */
static bool is_stopped(Sampling *x, size_t i, int64_t id)
{
    char few[24];
    size_t n;
    const char *text = token_text(x, id, few, &n);
    if (!x->longest || !n)
        return false;
    ArenaMark mark = arena_mark(x->session.arena);
    Buf b = buf_new(x->session.arena);
    buf_put(&b, x->tail[i], x->n_tail[i]);
    buf_put(&b, text, n);
    bool found = false;
    for (size_t k = 0; k < x->how->n_stops && !found; k++) {
        size_t length = strlen(x->how->stops[k]);
        for (size_t at = 0; !found && at + length <= b.n; at++)
            found = !memcmp(b.s + at, x->how->stops[k], length);
    }
    x->n_tail[i] = b.n < x->longest - 1 ? b.n : x->longest - 1;
    memcpy(x->tail[i], b.s + b.n - x->n_tail[i], x->n_tail[i]);
    arena_reset(x->session.arena, mark);
    return found;
}

/* Memory for what the options ask for. */
static void open_options(Sampling *x)
{
    Arena *a = x->session.arena;
    const vwn_sample_options *how = x->how;
    char few[24];
    size_t length;
    x->hole = NEW_ARRAY(a, int64_t, (size_t)x->usable);
    for (int64_t id = 0; id < x->usable; id++)
        if (!token_text(x, id, few, &length))
            x->hole[x->holes++] = id;
    if (how->repetition != 0 && how->repetition != 1)
        x->seen = NEW_ARRAY(a, unsigned char, (size_t)x->vocab);
    if (x->seen || x->holes)
        x->logits = NEW_ARRAY(a, double, (size_t)x->vocab);
    for (size_t k = 0; k < how->n_stops; k++) {
        size_t n = strlen(how->stops[k]);
        if (!n)
            ctx_raise(x->session.ctx, ST_USAGE, "an empty text stops nothing");
        x->longest = n > x->longest ? n : x->longest;
    }
    x->tail = NEW_ARRAY(a, char *, x->n);
    x->n_tail = NEW_ARRAY(a, size_t, x->n);
    for (size_t i = 0; x->longest && i < x->n; i++)
        x->tail[i] = NEW_ARRAY(a, char, x->longest);
}

static void add_token(void *user, GrowingText *t, const double *logits)
{
    Sampling *x = user;
    uint64_t number = (uint64_t)(t->n - t->n_prompt);
    size_t i = (size_t)(t - x->text), place = i % x->each * (x->n / x->each) + i / x->each;
    t->id[t->n] = draw(x, t, logits, number, place);
    t->n++;
    t->open = t->n - t->n_prompt < x->how->tokens && !is_stopped(x, i, t->id[t->n - 1]);
    write_on(x);
}

static Status sample_body(void *user)
{
    Sampling *x = user;
    Session *s = &x->session;
    session_open(s, s->owner);
    const vwn_sample_options *how = x->how;
    if (!(how->temperature >= 0) || !(how->top_p >= 0 && how->top_p <= 1) || !(how->min_p >= 0 && how->min_p <= 1) ||
        how->top_k < 0 || !(how->repetition >= 0 && isfinite(how->repetition)))
        ctx_raise(s->ctx, ST_USAGE,
                  "the temperature, repetition and top_k are 0 or more, top_p and min_p between 0 and 1");
    x->source = source_open(s, x->how->source, true, x->hooks);
    x->tokenizer = x->source.checkpoint->meta.tokenizer;
    tokenizer_load(s, (Tokenizer *)x->tokenizer);
    const Graph *g = x->source.unit->model->graph;
    for (size_t i = 0; i < g->ext.n; i++)
        if (g->ext.v[i].kind == EXT_INPUT && !input_is_text(&g->ext.v[i]))
            ctx_raise(s->ctx, ST_INPUT,
                      "`vwn sample` continues texts, and the model reads the input `%s`, which a "
                      "text does not give",
                      g->ext.v[i].name);
    x->vocab = x->source.unit->model->vocab;
    if (x->vocab <= 0)
        ctx_raise(s->ctx, ST_INPUT, "the model has no output `logits` to sample from");
    x->usable = x->tokenizer->size > 0 && x->tokenizer->size < x->vocab ? x->tokenizer->size : x->vocab;
    read_prompts(x);
    x->choice = NEW_ARRAY(s->arena, Candidate, (size_t)x->vocab);
    open_options(x);
    predictor_open(&x->predictor, s, &x->source,
                   &(PredictorOptions){.use = "`vwn sample` continues texts",
                                       .texts = PREDICT_TEXTS,
                                       .recompute = x->how->recompute,
                                       .last = x->how->last});
    write_on(x);
    for (size_t i = 0; i < x->n; i += PREDICT_TEXTS) {
        size_t n = x->n - i < PREDICT_TEXTS ? x->n - i : PREDICT_TEXTS;
        Status st = predictor_run(&x->predictor, x->text + i, n, x->how->seed, add_token, x);
        if (st != ST_OK)
            return st;
    }
    return ST_OK;
}

Status sample_source(vwn_context *owner, const vwn_sample_options *how, const vwn_writer *out, const Hooks *hooks)
{
    Sampling x = {.session.owner = owner, .how = how, .out = out, .hooks = hooks};
    Status st = guarded(owner->ctx, sample_body, &x);
    return session_end(&x.session, st);
}
