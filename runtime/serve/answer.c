/* answer.c - see answer.h.
 *
 * The one idea: each request has a Ctx of its own, with a bound on its memory; what is wrong with a request is raised there, and
 * becomes the answer. A member that is not known is refused, so that nothing that somebody asks for is passed over.
 */
#include "answer.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "runtime/base/json.h"
#include "runtime/base/machine.h"

enum { MEMORY = 256 << 20, TEXTS_OF_REQUEST = 1024, STOPS = 16, TOKENS_DEFAULT = 16 };
static const double LOOK = 0.05; /* seconds, after which a client that waits is looked for */

typedef struct Asked {
    Server *server;
    Ctx *ctx;
    HttpRequest *request;
    const Json *json; /* an object; NULL for GET */
    unsigned status;  /* of what is raised; 0: 500 */
    bool kept;        /* who streams has the Ctx now */
} Asked;

typedef struct Completion {
    Server *server;
    Ctx *ctx;
    Region memory;
    BatchText *text;
    size_t n, prompts;
    size_t *told; /* bytes of each text that are sent */
    bool *ended;
    bool echo, stream, over;
    int64_t logprobs; /* -1: none */
    unsigned long long number;
} Completion;

__attribute__((format(printf, 3, 4))) static _Noreturn void reject(Asked *a, unsigned status, const char *fmt, ...)
{
    char text[400];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(text, sizeof text, fmt, ap);
    va_end(ap);
    a->status = status;
    ctx_raise(a->ctx, ST_USAGE, "%s", text);
}

static JsonText begin_json(const Region *memory)
{
    JsonText t;
    json_begin(&t, region_take(memory, 1024), 1024);
    t.more = memory;
    json_open(&t, NULL, '{');
    return t;
}

static void put_error(JsonText *t, const char *message, unsigned status)
{
    json_open(t, "error", '{');
    json_put_string(t, "message", message);
    json_put_string(t, "type", status < 500 ? "invalid_request_error" : "server_error");
    json_put_integer(t, "code", status);
    json_close(t, '}');
}

static void send(const Asked *a, JsonText *t)
{
    json_close(t, '}');
    http_answer(a->request, 200, t->s, t->n);
}

/* ---- members ---- */

static void only_members(Asked *a, const char *const *known, size_t n)
{
    for (const Json *m = a->json->first; m; m = m->next) {
        bool found = false;
        for (size_t i = 0; i < n && !found; i++)
            found = m->key_n == strlen(known[i]) && !memcmp(m->key, known[i], m->key_n);
        if (!found)
            reject(a, 400, "`%.60s` is not known here", m->key);
    }
}

/* NULL where it is not there, or null. */
static const Json *member(const Asked *a, const char *name)
{
    const Json *m = json_get(a->json, name);
    return m && m->kind != JSON_NULL ? m : NULL;
}

static double number_of(Asked *a, const char *name, double least, double most, double otherwise)
{
    const Json *m = member(a, name);
    if (m && (m->kind != JSON_NUMBER || !(m->number >= least && m->number <= most)))
        reject(a, 400, "`%s` is a number from %g to %g", name, least, most);
    return m ? m->number : otherwise;
}

static int64_t whole_of(Asked *a, const char *name, int64_t least, int64_t most, int64_t otherwise)
{
    const Json *m = member(a, name);
    if (m && (m->kind != JSON_NUMBER || !m->whole || m->integer < least || m->integer > most))
        reject(a, 400, "`%s` is a whole number from %lld to %lld", name, (long long)least, (long long)most);
    return m ? m->integer : otherwise;
}

static bool flag_of(Asked *a, const char *name)
{
    const Json *m = member(a, name);
    if (m && m->kind != JSON_TRUE && m->kind != JSON_FALSE)
        reject(a, 400, "`%s` is true or false", name);
    return m && m->kind == JSON_TRUE;
}

static void check_model(Asked *a)
{
    const Json *m = member(a, "model");
    if (m && (m->kind != JSON_STRING || strcmp(m->s, a->server->model) != 0))
        reject(a, 404, "the model that is served is `%s`", a->server->model);
}

/* ---- tokens ---- */

static int64_t *encode(Asked *a, const Json *text, int64_t most, int64_t *n)
{
    LiveBatch *b = &a->server->batch;
    char why[WHY];
    if (!tokenizer_has_text(b->tokenizer))
        reject(a, 400, "this model was trained on token ids whose tokenizer is not known: a prompt is a list of ids");
    int64_t *id = NEW_ARRAY(a->ctx->program, int64_t, tokenizer_room(b->tokenizer, text->n) + (size_t)most + 1);
    pthread_mutex_lock(&a->server->encode);
    *n = tokenizer_encode(b->tokenizer, "the text", text->s, text->n, id, why);
    pthread_mutex_unlock(&a->server->encode);
    if (*n < 0)
        reject(a, 400, "%s", why);
    return id;
}

static int64_t *read_ids(Asked *a, const Json *list, int64_t most, int64_t *n)
{
    int64_t *id = NEW_ARRAY(a->ctx->program, int64_t, list->n + (size_t)most + 1);
    *n = 0;
    for (const Json *j = list->first; j; j = j->next) {
        if (j->kind != JSON_NUMBER || !j->whole)
            reject(a, 400, "entry %lld of the tokens is no id", (long long)*n + 1);
        id[(*n)++] = j->integer;
    }
    return id;
}

static void check_ids(Asked *a, const int64_t *id, int64_t n)
{
    int64_t vocab = a->server->batch.predictor.vocab;
    for (int64_t i = 0; i < n; i++)
        if (id[i] < 0 || id[i] >= vocab)
            reject(a, 400, "the token %lld is not below the vocabulary of %lld", (long long)id[i], (long long)vocab);
}

static void put_bytes(const Server *v, int64_t id, Buf *b)
{
    char few[24];
    size_t n;
    const char *text = batch_token(&v->batch, id, few, &n);
    if (text)
        buf_put(b, text, n);
}

/* A token by itself: what is no text by itself is `bytes:\xe2`, so that two of them differ. Returns the characters of its text. */
static size_t token_name(const Server *v, int64_t id, Buf *b)
{
    char few[24];
    size_t n, characters = 0;
    const char *text = batch_token(&v->batch, id, few, &n);
    b->n = 0;
    for (size_t i = 0; text && i < n; i++)
        characters += ((unsigned char)text[i] & 0xc0) != 0x80;
    if (text && utf8_valid(text, n)) {
        buf_put(b, text, n);
        return characters;
    }
    buf_puts(b, "bytes:");
    for (size_t i = 0; text && i < n; i++)
        buf_printf(b, "\\x%02x", (unsigned char)text[i]);
    return characters;
}

static void tokenize(Asked *a)
{
    static const char *const known[] = {"prompt", "model", "add_special_tokens"};
    int64_t n;
    only_members(a, known, COUNT_OF(known));
    check_model(a);
    flag_of(a, "add_special_tokens"); /* these tokenizers add none */
    const Json *prompt = member(a, "prompt");
    if (!prompt || prompt->kind != JSON_STRING)
        reject(a, 400, "`prompt` is a text");
    int64_t *id = encode(a, prompt, 0, &n);
    Region memory = arena_region(a->ctx->program);
    JsonText t = begin_json(&memory);
    json_put_integer(&t, "count", n);
    json_put_integer(&t, "max_model_len", a->server->batch.predictor.context);
    json_open(&t, "tokens", '[');
    for (int64_t i = 0; i < n; i++)
        json_put_integer(&t, NULL, id[i]);
    json_close(&t, ']');
    send(a, &t);
}

static void detokenize(Asked *a)
{
    static const char *const known[] = {"tokens", "model"};
    int64_t n;
    only_members(a, known, COUNT_OF(known));
    check_model(a);
    const Json *tokens = member(a, "tokens");
    if (!tokens || tokens->kind != JSON_ARRAY)
        reject(a, 400, "`tokens` is a list of ids");
    int64_t *id = read_ids(a, tokens, 0, &n);
    check_ids(a, id, n);
    Buf b = buf_new(a->ctx->program);
    for (int64_t i = 0; i < n; i++)
        put_bytes(a->server, id[i], &b);
    Region memory = arena_region(a->ctx->program);
    JsonText t = begin_json(&memory);
    json_put_bytes(&t, "prompt", b.s, b.n);
    send(a, &t);
}

static void tokenizer_info(Asked *a)
{
    const LiveBatch *b = &a->server->batch;
    Region memory = arena_region(a->ctx->program);
    JsonText t = begin_json(&memory);
    json_put_string(&t, "tokenizer_class", "vwn");
    if (b->end >= 0) {
        Buf end = buf_new(a->ctx->program);
        put_bytes(a->server, b->end, &end);
        json_put_bytes(&t, "eos_token", end.s, end.n);
    } else {
        json_put_raw(&t, "eos_token", "null");
    }
    json_put_raw(&t, "bos_token", "null");
    json_put_raw(&t, "pad_token", "null");
    json_put_raw(&t, "chat_template", "null");
    json_put_integer(&t, "model_max_length", b->predictor.context);
    send(a, &t);
}

/* ---- what there is ---- */

static void models(Asked *a)
{
    Region memory = arena_region(a->ctx->program);
    JsonText t = begin_json(&memory);
    json_put_string(&t, "object", "list");
    json_open(&t, "data", '[');
    json_open(&t, NULL, '{');
    json_put_string(&t, "id", a->server->model);
    json_put_string(&t, "object", "model");
    json_put_string(&t, "owned_by", "vwn");
    json_put_integer(&t, "max_model_len", a->server->batch.predictor.context);
    json_close(&t, '}');
    json_close(&t, ']');
    send(a, &t);
}

static void health(Asked *a)
{
    LiveBatch *b = &a->server->batch;
    Region memory = arena_region(a->ctx->program);
    JsonText t = begin_json(&memory);
    pthread_mutex_lock(&b->lock);
    size_t running = b->running, waiting = b->waiting;
    int64_t computed = b->computed, runs = b->runs;
    pthread_mutex_unlock(&b->lock);
    json_put_string(&t, "status", "ok");
    json_put_integer(&t, "running", (int64_t)running);
    json_put_integer(&t, "waiting", (int64_t)waiting);
    json_put_integer(&t, "rows", b->predictor.texts);
    json_put_integer(&t, "computed", computed);
    json_put_integer(&t, "runs", runs);
    send(a, &t);
}

/* ---- completions: the request ---- */

static void read_stops(Asked *a, const char ***out, size_t *n)
{
    const Json *m = member(a, "stop");
    const char **stop = NEW_ARRAY(a->ctx->program, const char *, STOPS);
    *out = stop;
    *n = 0;
    if (!m)
        return;
    if (m->kind != JSON_STRING && (m->kind != JSON_ARRAY || m->n > STOPS))
        reject(a, 400, "`stop` is a text or a list of at most %d", STOPS);
    for (const Json *j = m->kind == JSON_ARRAY ? m->first : m; j; j = m->kind == JSON_ARRAY ? j->next : NULL) {
        if (j->kind != JSON_STRING || !j->n || strlen(j->s) != j->n)
            reject(a, 400, "an entry of `stop` is no text, or an empty one");
        stop[(*n)++] = j->s;
    }
}

/* A text of the request without its prompt. */
static BatchText read_options(Asked *a, Completion *c)
{
    BatchText t = {.deadline = clock_seconds() + a->server->seconds};
    const char **stop;
    t.most = whole_of(a, "max_tokens", 0, 1 << 20, TOKENS_DEFAULT);
    t.seed = (uint64_t)whole_of(a, "seed", 0, INT64_MAX, (int64_t)c->number);
    t.filters = (ChooseFilters){.temperature = number_of(a, "temperature", 0, 100, 1),
                                .top_k = whole_of(a, "top_k", 0, INT64_MAX, 0),
                                .top_p = number_of(a, "top_p", 0, 1, 1),
                                .min_p = number_of(a, "min_p", 0, 1, 0)};
    read_stops(a, &stop, &t.stops);
    t.stop = stop;
    number_of(a, "presence_penalty", 0, 0, 0);
    number_of(a, "frequency_penalty", 0, 0, 0);
    whole_of(a, "best_of", 1, 1, 1);
    c->echo = flag_of(a, "echo");
    c->stream = flag_of(a, "stream");
    c->logprobs = whole_of(a, "logprobs", 0, BATCH_TOP, -1);
    if (!t.most && !c->echo)
        reject(a, 400, "`max_tokens` is 0: without `echo` there is nothing to answer");
    if (c->stream && c->logprobs >= 0)
        reject(a, 400, "`stream` has no `logprobs`");
    t.scores = c->echo && c->logprobs >= 0;
    return t;
}

static BatchText read_prompt(Asked *a, const Completion *c, const Json *prompt, const BatchText *like)
{
    BatchText t = *like;
    const Predictor *p = &a->server->batch.predictor;
    if (prompt->kind != JSON_STRING && prompt->kind != JSON_ARRAY)
        reject(a, 400, "a prompt is a text or a list of ids");
    t.id =
        prompt->kind == JSON_STRING ? encode(a, prompt, t.most, &t.n_prompt) : read_ids(a, prompt, t.most, &t.n_prompt);
    check_ids(a, t.id, t.n_prompt);
    if (!t.n_prompt)
        reject(a, 400, "a prompt has at least one token");
    if (t.n_prompt > p->context || t.n_prompt + t.most > p->context + 1)
        reject(a, 400, "a prompt of %lld tokens and %lld more do not fit into the model's context of %lld",
               (long long)t.n_prompt, (long long)t.most, (long long)p->context);
    if (c->logprobs >= 0) {
        size_t n = (size_t)(t.n_prompt + t.most);
        t.score = NEW_ARRAY(a->ctx->program, double, n);
        t.top_score = NEW_ARRAY(a->ctx->program, double, n *(size_t)p->top);
        t.top_id = NEW_ARRAY(a->ctx->program, int64_t, n * (size_t)p->top);
    }
    return t;
}

static void read_texts(Asked *a, Completion *c)
{
    BatchText like = read_options(a, c);
    const Json *prompt = member(a, "prompt");
    if (!prompt || (prompt->kind != JSON_STRING && prompt->kind != JSON_ARRAY))
        reject(a, 400, "`prompt` is a text, a list of ids, or a list of these");
    bool several = prompt->kind == JSON_ARRAY && prompt->n && prompt->first->kind != JSON_NUMBER;
    size_t each = (size_t)whole_of(a, "n", 1, TEXTS_OF_REQUEST, 1), most = a->server->batch.most_waiting;
    c->prompts = several ? prompt->n : 1;
    most = most < TEXTS_OF_REQUEST ? most : TEXTS_OF_REQUEST;
    if (c->prompts > most / each)
        reject(a, 400, "%zu prompts, %zu times each, are more than the %zu texts that a request may have", c->prompts,
               each, most);
    c->n = c->prompts * each;
    c->text = NEW_ARRAY(a->ctx->program, BatchText, c->n);
    c->told = NEW_ARRAY(a->ctx->program, size_t, c->n);
    c->ended = NEW_ARRAY(a->ctx->program, bool, c->n);
    const Json *one = several ? prompt->first : prompt;
    for (size_t i = 0; i < c->n; i++) {
        c->text[i] = read_prompt(a, c, one, &like);
        c->text[i].place = i;
        if (i % each == each - 1)
            one = one->next;
    }
}

/* ---- completions: the answer ---- */

static void put_head(const Completion *c, JsonText *t)
{
    char id[32];
    snprintf(id, sizeof id, "cmpl-%llu", c->number);
    json_put_string(t, "id", id);
    json_put_string(t, "object", "text_completion");
    json_put_integer(t, "created", (int64_t)time(NULL));
    json_put_string(t, "model", c->server->model);
}

static void put_prompt(const Completion *c, const BatchText *x, Buf *b)
{
    for (int64_t i = 0; i < x->n_prompt; i++)
        put_bytes(c->server, x->id[i], b);
}

/* The likeliest tokens of a position, and the one that stands there. */
static void put_top(const Completion *c, JsonText *t, const BatchText *x, int64_t at, Buf *name)
{
    int64_t top = c->server->batch.predictor.top, n = c->logprobs < top ? c->logprobs : top;
    bool found = false;
    json_open(t, NULL, '{');
    for (int64_t k = 0; k < n; k++) {
        int64_t id = x->top_id[(at - 1) * top + k];
        found |= id == x->id[at];
        token_name(c->server, id, name);
        json_put_number(t, name->s, x->top_score[(at - 1) * top + k]);
    }
    token_name(c->server, x->id[at], name);
    if (!found)
        json_put_number(t, name->s, x->score[at - 1]);
    json_close(t, '}');
}

static void put_logprobs(const Completion *c, JsonText *t, const BatchText *x)
{
    int64_t from = c->echo ? 0 : x->n_prompt, offset = 0;
    Buf name = buf_new(c->ctx->program);
    json_open(t, "logprobs", '{');
    json_open(t, "tokens", '[');
    for (int64_t i = from; i < x->n; i++) {
        token_name(c->server, x->id[i], &name);
        json_put_bytes(t, NULL, name.s, name.n);
    }
    json_close(t, ']');
    json_open(t, "token_logprobs", '[');
    for (int64_t i = from; i < x->n; i++)
        json_put_number(t, NULL, i ? x->score[i - 1] : NAN);
    json_close(t, ']');
    json_open(t, "top_logprobs", '[');
    for (int64_t i = from; i < x->n; i++)
        if (i)
            put_top(c, t, x, i, &name);
        else
            json_put_raw(t, NULL, "null");
    json_close(t, ']');
    json_open(t, "text_offset", '[');
    for (int64_t i = 0; i < x->n; i++) {
        if (i >= from)
            json_put_integer(t, NULL, offset);
        offset += (int64_t)token_name(c->server, x->id[i], &name);
    }
    json_close(t, ']');
    json_close(t, '}');
}

static void put_usage(const Completion *c, JsonText *t)
{
    int64_t prompt = 0, made = 0;
    for (size_t i = 0; i < c->n; i++) {
        prompt += i % (c->n / c->prompts) ? 0 : c->text[i].n_prompt;
        made += c->text[i].n - c->text[i].n_prompt;
    }
    json_open(t, "usage", '{');
    json_put_integer(t, "prompt_tokens", prompt);
    json_put_integer(t, "completion_tokens", made);
    json_put_integer(t, "total_tokens", prompt + made);
    json_close(t, '}');
}

static void put_completion(const Completion *c, JsonText *t)
{
    put_head(c, t);
    json_open(t, "choices", '[');
    for (size_t i = 0; i < c->n; i++) {
        const BatchText *x = &c->text[i];
        Buf text = buf_new(c->ctx->program);
        if (c->echo)
            put_prompt(c, x, &text);
        buf_put(&text, x->text, x->n_text);
        json_open(t, NULL, '{');
        json_put_integer(t, "index", (int64_t)i);
        json_put_bytes(t, "text", text.s, text.n);
        if (c->logprobs >= 0)
            put_logprobs(c, t, x);
        else
            json_put_raw(t, "logprobs", "null");
        json_put_string(t, "finish_reason", x->finish);
        json_close(t, '}');
    }
    json_close(t, ']');
    put_usage(c, t);
}

static bool is_over(const BatchText *t) { return t->state == TEXT_DONE || t->state == TEXT_FAILED; }

/* Waits until all texts are over; a client that has gone gives them up. The caller holds the lock. */
static void wait_for_all(Completion *c, HttpRequest *r)
{
    for (size_t i = 0; i < c->n;) {
        if (is_over(&c->text[i])) {
            i++;
            continue;
        }
        if (!r || http_gone(r))
            for (size_t k = 0; k < c->n; k++)
                c->text[k].cancelled = true;
        batch_wait(&c->server->batch, LOOK);
    }
}

/* NULL, or why a text of it failed. */
static const char *failure(const Completion *c)
{
    for (size_t i = 0; i < c->n; i++)
        if (c->text[i].state == TEXT_FAILED)
            return c->text[i].finish;
    return NULL;
}

static void end_completion(void *user)
{
    Completion *c = user;
    pthread_mutex_lock(&c->server->batch.lock);
    wait_for_all(c, NULL);
    pthread_mutex_unlock(&c->server->batch.lock);
    for (size_t i = 0; i < c->n; i++)
        free(c->text[i].text);
    ctx_free(c->ctx);
}

/* ---- completions: events ---- */

static void put_event(Buf *b, const JsonText *t)
{
    buf_puts(b, "data: ");
    buf_put(b, t->s, t->n);
    buf_puts(b, "\n\n");
}

/* What is new of text i; false: nothing. The caller holds the lock. */
static bool put_news(Completion *c, size_t i, Buf *b)
{
    BatchText *x = &c->text[i];
    size_t settled = batch_settled(x);
    bool first = c->echo && !c->told[i];
    bool end = x->state == TEXT_DONE && !c->ended[i];
    if (settled <= c->told[i] && !end)
        return false;
    Buf text = buf_new(c->ctx->scratch);
    Region memory = arena_region(c->ctx->scratch);
    if (first)
        put_prompt(c, x, &text);
    buf_put(&text, x->text + c->told[i], settled - c->told[i]);
    c->told[i] = settled;
    c->ended[i] = end;
    JsonText t = begin_json(&memory);
    put_head(c, &t);
    json_open(&t, "choices", '[');
    json_open(&t, NULL, '{');
    json_put_integer(&t, "index", (int64_t)i);
    json_put_bytes(&t, "text", text.s, text.n);
    json_put_raw(&t, "logprobs", "null");
    if (end)
        json_put_string(&t, "finish_reason", x->finish);
    else
        json_put_raw(&t, "finish_reason", "null");
    json_close(&t, '}');
    json_close(&t, ']');
    json_close(&t, '}');
    put_event(b, &t);
    return true;
}

/* Into b what there is to tell now; empty: nothing yet. The caller holds the lock. */
static void put_all_news(Completion *c, Buf *b)
{
    bool all = true;
    const char *why = failure(c);
    if (why) {
        Region memory = arena_region(c->ctx->scratch);
        JsonText t = begin_json(&memory);
        put_error(&t, why, 503);
        json_close(&t, '}');
        put_event(b, &t);
        c->over = true;
        return;
    }
    for (size_t i = 0; i < c->n; i++) {
        put_news(c, i, b);
        all &= c->ended[i];
    }
    if (all) {
        buf_puts(b, "data: [DONE]\n\n");
        c->over = true;
    }
}

static bool next_events(void *user, HttpRequest *r, const char **text, size_t *n)
{
    Completion *c = user;
    LiveBatch *batch = &c->server->batch;
    CtxGuard guard;
    bool gone = c->over;
    arena_reset(c->ctx->scratch, (ArenaMark){0});
    *n = 0;
    pthread_mutex_lock(&batch->lock);
    if (!gone && CTX_TRY(c->ctx, &guard)) {
        Buf b = buf_new(c->ctx->scratch);
        for (put_all_news(c, &b); !b.n && !c->over && !http_gone(r); put_all_news(c, &b))
            batch_wait(batch, LOOK);
        *text = b.s;
        *n = b.n;
        ctx_leave(c->ctx, &guard);
    }
    pthread_mutex_unlock(&batch->lock);
    return *n > 0;
}

/* ---- completions ---- */

static void completions(Asked *a)
{
    static const char *const known[] = {
        "model",   "prompt",           "max_tokens",       "temperature", "top_p", "top_k", "min_p",
        "n",       "stream",           "logprobs",         "echo",        "stop",  "seed",  "user",
        "best_of", "presence_penalty", "frequency_penalty"};
    Server *v = a->server;
    only_members(a, known, COUNT_OF(known));
    check_model(a);
    Completion *c = NEW(a->ctx->program, Completion);
    *c = (Completion){.server = v, .ctx = a->ctx, .number = ++v->requests};
    read_texts(a, c);
    BatchText **all = NEW_ARRAY(a->ctx->program, BatchText *, c->n);
    for (size_t i = 0; i < c->n; i++)
        all[i] = &c->text[i];
    if (!batch_put(&v->batch, all, c->n))
        reject(a, 429, "too many texts wait already: ask again later");
    a->kept = true; /* the texts are the batch's from here on */
    a->ctx->unwind = NULL;
    if (c->stream) {
        http_stream(a->request, next_events, end_completion, c);
        return;
    }
    pthread_mutex_lock(&v->batch.lock);
    wait_for_all(c, a->request);
    pthread_mutex_unlock(&v->batch.lock);
    CtxGuard guard;
    if (CTX_TRY(a->ctx, &guard)) {
        Region memory = arena_region(a->ctx->program);
        JsonText t = begin_json(&memory);
        const char *why = failure(c);
        if (why)
            put_error(&t, why, 503);
        else
            put_completion(c, &t);
        json_close(&t, '}');
        http_answer(a->request, why ? 503 : 200, t.s, t.n);
        ctx_leave(a->ctx, &guard);
    } else {
        static const char none[] = "{\"error\":{\"message\":\"there is no memory for the answer\",\"code\":503}}";
        http_answer(a->request, 503, none, sizeof none - 1);
    }
    end_completion(c);
}

/* ---- all requests ---- */

static const struct Route {
    const char *method, *path;
    void (*answer)(Asked *a);
} routes[] = {
    {"GET", "/health", health},      {"GET", "/v1/models", models},       {"GET", "/tokenizer_info", tokenizer_info},
    {"POST", "/tokenize", tokenize}, {"POST", "/detokenize", detokenize}, {"POST", "/v1/completions", completions}};

static void answer(Asked *a, const char *method, const char *path, const char *body, size_t n)
{
    const struct Route *r = NULL;
    for (size_t i = 0; i < COUNT_OF(routes) && !r; i++)
        r = strcmp(path, routes[i].path) ? NULL : &routes[i];
    if (!r)
        reject(a, 404, "there is nothing at this address");
    if (strcmp(method, r->method) != 0)
        reject(a, 405, "%s takes %s", r->path, r->method);
    if (*r->method == 'P') {
        JsonError error;
        a->json = json_read(a->ctx->program, body, n, &error);
        if (!a->json)
            reject(a, 400, "byte %zu of the request: %s", error.offset + 1, error.what);
        if (a->json->kind != JSON_OBJECT)
            reject(a, 400, "a request is a JSON object");
    }
    r->answer(a);
}

void answer_request(void *user, HttpRequest *request, const char *method, const char *path, const char *body, size_t n)
{
    static const char none[] = "{\"error\":{\"message\":\"there is no memory for the request\",\"code\":503}}";
    Asked a = {.server = user, .ctx = ctx_new(NULL), .request = request};
    CtxGuard guard;
    if (!a.ctx) {
        http_answer(request, 503, none, sizeof none - 1);
        return;
    }
    a.ctx->byte_limit = MEMORY;
    if (CTX_TRY(a.ctx, &guard)) {
        answer(&a, method, path, body, n);
        if (!a.kept)
            ctx_leave(a.ctx, &guard);
    } else {
        char memory[2048];
        JsonText t;
        unsigned status = a.status ? a.status : 503;
        json_begin(&t, memory, sizeof memory);
        json_open(&t, NULL, '{');
        put_error(&t, a.ctx->message, status);
        json_close(&t, '}');
        http_answer(request, status, t.s, t.n);
    }
    if (!a.kept)
        ctx_free(a.ctx);
}
