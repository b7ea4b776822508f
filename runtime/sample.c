/* sample.c - text from a trained model.
 *
 * In:  a run or a checkpoint, a prompt.   Out: the prompt and what follows, written as it is
 * made.
 * The one idea: one prediction program over a window of `context` positions; of its logits only
 * the row of the last token leaves it. Draws come from the counter-based generator, so that a
 * seed gives the same text everywhere.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "source.h"

typedef struct Choice {
    double p;
    int64_t id;
} Choice;

typedef struct Sampling {
    Session session;
    const vwn_sample_options *how;
    const vwn_writer *out;
    const Hooks *hooks;
    Source source;
    const Tokenizer *tokenizer;
    Program *program;
    StoreEntry *tokens, *position;
    Name next;
    int64_t context, vocab, usable; /* ids below usable may be drawn */
    int64_t *window;                /* context */
    int64_t *id;                    /* the prompt and what was drawn */
    int64_t n, n_prompt;
    double *logits;
    Choice *choice;
} Sampling;

/* ---- the prompt ---- */

/* "464 3290": ids for models whose tokenizer vwn does not know. */
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
                "this model was trained on token ids of another "
                "tokenizer, which vwn does not read: give the prompt as ids, `--prompt '464 "
                "3290'`");
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

static void read_prompt(Sampling *x)
{
    Session *s = &x->session;
    const char *text = x->how->prompt ? x->how->prompt : "";
    size_t n = strlen(text);
    char why[WHY];
    if (x->how->tokens < 0 || x->how->tokens > 1 << 28)
        ctx_raise(s->ctx, ST_USAGE, "%lld tokens cannot be drawn", (long long)x->how->tokens);
    x->id = NEW_ARRAY(s->arena, int64_t, n + (size_t)x->how->tokens + 2);
    bool ids = x->tokenizer->kind != TOKENIZER_BYTES && x->tokenizer->kind != TOKENIZER_CHARS;
    x->n = ids ? read_ids(x, text, x->id)
               : tokenizer_encode(x->tokenizer, "the prompt", text, n, x->id, why);
    if (x->n < 0)
        ctx_raise(s->ctx, ST_USAGE, "%s", why);
    for (int64_t i = 0; i < x->n; i++)
        if (x->id[i] >= x->vocab)
            ctx_raise(s->ctx, ST_USAGE,
                      "the prompt holds a character that the model's vocabulary of "
                      "%lld does not",
                      (long long)x->vocab);
    if (!x->n) { /* something must come first: a line break where there is one */
        int64_t line = ids ? 0
                       : x->tokenizer->kind == TOKENIZER_BYTES
                           ? '\n'
                           : tokenizer_id(x->tokenizer, '\n');
        x->id[x->n++] = line >= 0 && line < x->vocab ? line : 0;
        x->n_prompt = 1;
        return;
    }
    x->n_prompt = x->n;
}

/* ---- the program ---- */

/* step_predict with the logits of one position as its only result. */
static Graph *predict_one(Sampling *x)
{
    Graph *g = step_predict(x->source.unit->model, x->session.arena);
    Val logits = g->out.v[0].value;
    Shape s = *shape_of(g, logits), one = {.rank = 1, .d = {DIM(1)}};
    Shape rows = {.rank = 2, .d = {{1, 1, 1}, s.rank ? s.d[s.rank - 1] : DIM(1)}};
    Dim have, want;
    if (s.rank != 3 || !shape_size(&s, &have) || !shape_size(&rows, &want) ||
        !dim_eq(have, want))
        ctx_raise(g->ctx, ST_INPUT, "the logits of model `%s` are not [B, T, vocabulary]",
                  x->source.unit->model->name);
    Val at = ir_ext(g, EXT_INPUT, name_str(g->ctx, "position"), DT_INT, &one);
    g->out.n = 0;
    ir_output(g, x->next, ir_gather(g, ir_reshape(g, logits, &rows), at));
    return g;
}

static StoreEntry *input(Sampling *x, const char *name)
{
    return store_find(x->session.store, EXT_INPUT, name_str(x->session.ctx, name));
}

static void open_program(Sampling *x)
{
    Session *s = &x->session;
    const Model *m = x->source.unit->model;
    session_open_backend(s);
    session_warn(s, s->note);
    session_add_params(s, m);
    x->next = name_str(s->ctx, "next");
    x->context = m->context;
    ProgramOptions how = {.name = "predict", .B = 1, .T = m->context};
    BuildReport built = {0};
    x->program = session_program(s, predict_one(x), &how, &built);
    session_warn(s, built.note);
    source_load(s, &x->source, x->how->last);
    x->tokens = input(x, "tokens");
    x->position = input(x, "position");
    for (size_t i = 0; i < store_count(s->store); i++) {
        StoreEntry *e = store_at(s->store, i);
        if (e->kind == EXT_INPUT && e != x->tokens && e != x->position)
            ctx_raise(s->ctx, ST_INPUT,
                      "the model reads the input `%s`, which text does not give", e->name);
    }
    x->window = NEW_ARRAY(s->arena, int64_t, (size_t)x->context);
    x->logits = NEW_ARRAY(s->arena, double, (size_t)x->vocab);
    x->choice = NEW_ARRAY(s->arena, Choice, (size_t)x->vocab);
}

/* ---- drawing ---- */

static int likeliest_first(const void *a, const void *b)
{
    const Choice *x = a, *y = b;
    if (x->p != y->p)
        return x->p > y->p ? -1 : 1;
    return (x->id > y->id) - (x->id < y->id);
}

static int64_t draw(Sampling *x, uint64_t number)
{
    int64_t n = x->usable, best = 0;
    for (int64_t i = 1; i < n; i++)
        if (x->logits[i] > x->logits[best])
            best = i;
    if (!isfinite(x->logits[best]))
        ctx_raise(x->session.ctx, ST_DIVERGED, "the model's logits are not finite");
    if (x->how->temperature <= 0)
        return best;
    double sum = 0;
    for (int64_t i = 0; i < n; i++) {
        double p = exp((x->logits[i] - x->logits[best]) / x->how->temperature);
        x->choice[i] = (Choice){p, i};
        sum += p;
    }
    double most = sum;
    if (x->how->top_p > 0 && x->how->top_p < 1) {
        qsort(x->choice, (size_t)n, sizeof *x->choice, likeliest_first);
        most = 0;
        int64_t kept = 0;
        while (kept < n && most < x->how->top_p * sum)
            most += x->choice[kept++].p;
        n = kept;
    }
    double u = most * philox_uniform(philox_key(x->how->seed, "sample"), number, 0);
    for (int64_t i = 0; i < n; i++) {
        u -= x->choice[i].p;
        if (u < 0)
            return x->choice[i].id;
    }
    return x->choice[n - 1].id;
}

static void predict(Sampling *x)
{
    Session *s = &x->session;
    int64_t from = x->n > x->context ? x->n - x->context : 0, have = x->n - from,
            last = have - 1;
    memcpy(x->window, x->id + from, (size_t)have * sizeof *x->window);
    memset(x->window + have, 0, (size_t)(x->context - have) * sizeof *x->window);
    if (x->tokens)
        session_store_ok(s, store_put_i64(s->store, x->tokens, 0, x->context, x->window));
    session_store_ok(s, store_put_i64(s->store, x->position, 0, 1, &last));
    const Progress *p = &x->source.checkpoint->progress;
    double vars[HV_COUNT];
    progress_vars(p, (double)p->step, 0, vars);
    RunArgs args = {vars, x->how->seed, 0};
    session_run(s, x->program, &args);
    uint8_t rank;
    int64_t d[MAX_RANK];
    Status st = program_tensor(x->program, x->next, &rank, d, x->logits, (size_t)x->vocab);
    if (st != ST_OK)
        ctx_raise(s->ctx, st, "%s", program_why(x->program));
}

/* ---- writing ---- */

static size_t token_text(const Sampling *x, int64_t id, char out[24])
{
    if (x->tokenizer->kind == TOKENIZER_BYTES || x->tokenizer->kind == TOKENIZER_CHARS)
        return tokenizer_decode(x->tokenizer, id, out);
    return (size_t)snprintf(out, 24, "%lld ", (long long)id);
}

static void write_json(Sampling *x)
{
    Session *s = &x->session;
    Buf b = buf_new(s->arena);
    char one[24];
    for (int64_t i = x->n_prompt; i < x->n; i++)
        buf_put(&b, one, token_text(x, x->id[i], one));
    const char *prompt = x->how->prompt ? x->how->prompt : "";
    size_t cap = 6 * (b.n + strlen(prompt)) + 400;
    JsonText t;
    json_begin(&t, arena_alloc(s->arena, cap), cap);
    json_open(&t, NULL, '{');
    json_put_integer(&t, "v", 1);
    json_put_string(&t, "event", "sample");
    json_put_string(&t, "prompt", prompt);
    json_put_bytes(&t, "text", b.s, b.n);
    json_put_integer(&t, "tokens", x->n - x->n_prompt);
    json_put_integer(&t, "step", x->source.checkpoint->progress.step);
    json_close(&t, '}');
    write_text(x->out, t.s, t.n);
    write_text(x->out, "\n", 1);
}

static Status sample_body(void *user)
{
    Sampling *x = user;
    Session *s = &x->session;
    char one[24];
    session_open(s, s->owner);
    if (x->how->temperature < 0 || !(x->how->top_p >= 0 && x->how->top_p <= 1))
        ctx_raise(s->ctx, ST_USAGE, "the temperature is 0 or more, top_p between 0 and 1");
    x->source = source_open(s, x->how->source, true, x->hooks);
    x->tokenizer = x->source.checkpoint->meta.tokenizer;
    x->vocab = x->source.unit->model->vocab;
    if (x->vocab <= 0)
        ctx_raise(s->ctx, ST_INPUT, "the model has no output `logits` to sample from");
    x->usable =
        x->tokenizer->size > 0 && x->tokenizer->size < x->vocab ? x->tokenizer->size : x->vocab;
    read_prompt(x);
    open_program(x);
    if (!x->how->json && x->how->prompt)
        for (int64_t i = 0; *x->how->prompt && i < x->n_prompt; i++)
            write_text(x->out, one, token_text(x, x->id[i], one));
    for (int64_t i = 0; i < x->how->tokens; i++) {
        if (s->owner->interrupted) {
            s->owner->interrupted = 0;
            return ST_INTERRUPTED;
        }
        predict(x);
        x->id[x->n] = draw(x, (uint64_t)i);
        x->n++;
        if (!x->how->json)
            write_text(x->out, one, token_text(x, x->id[x->n - 1], one));
    }
    if (x->how->json)
        write_json(x);
    else
        write_text(x->out, "\n", 1);
    return ST_OK;
}

Status sample_source(vwn_context *owner, const vwn_sample_options *how, const vwn_writer *out,
                     const Hooks *hooks)
{
    Sampling x = {.session.owner = owner, .how = how, .out = out, .hooks = hooks};
    Status st = guarded(owner->ctx, sample_body, &x);
    session_close(&x.session);
    return st;
}
