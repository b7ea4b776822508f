/* score.c - a model on a task: which of several texts it finds the likeliest.
 *
 * In:  a run or a checkpoint, requests (task.h).   Out: accuracy, accuracy by length, bits per byte, with standard errors; a line
 *      for each request.
 * The one idea: a row of the cache takes one request after the other, and begins a text where it differs from what the row has seen
 * last: of several continuations their context is computed once, of several requests what they begin with.
 *
 * How texts become ids, which parts of a long one are seen and what is divided by what is that of lm-evaluation-harness, so that numbers
 * are comparable: ids of a continuation are those of both texts behind as many as the context has; blanks at the end of a context belong to the
 * continuation; of more tokens than the model has positions the last ones are seen.
 */
#include <math.h>
#include <stdlib.h>

#include "compiler/portable/utf8.h"
#include "predict.h"
#include "runtime/base/machine.h"
#include "task.h"
#include "use.h"

enum { ROWS = 16 };

/* A context and a continuation as ids. */
typedef struct ScoredText {
    int64_t *id;
    int64_t n, context; /* of all; of the context: at least 1 */
    int64_t left_out;   /* tokens at the beginning that do not fit */
    double sum;         /* of log-probabilities of the continuation */
    bool greedy;        /* each of its tokens is the likeliest one */
} ScoredText;

typedef struct ScoredRequest {
    const TaskRequest *of;
    ScoredText *text; /* of->n */
    int64_t longest;
    size_t done;
} ScoredRequest;

typedef struct ScoreRow {
    ScoredRequest *request; /* NULL: it is free */
    const int64_t *have;    /* what the row of the cache has seen, n_have tokens */
    int64_t n_have;
} ScoreRow;

/* A mean and its standard error. */
typedef struct Mean {
    double sum, squares, n;
} Mean;

typedef struct Scoring {
    Session session;
    const vwn_task_options *how;
    const vwn_writer *out;
    const Hooks *hooks;
    Source source;
    const Tokenizer *tokenizer;
    Predictor predictor;
    Task task;
    ScoredRequest *request, **order;
    size_t next, done;
    int64_t tokens, left_out;
    ScoreRow row[ROWS];
    PredictRow fed[ROWS];
    double began, told;
    Mean accuracy, accuracy_norm, bits;
} Scoring;

/* ---- ids ---- */

static _Noreturn void wrong(const Scoring *x, const TaskRequest *q, const char *why)
{
    ctx_raise(x->session.ctx, ST_INPUT, "%.300s:%zu: %s", x->task.path, q->line, why);
}

static int64_t *encode(const Scoring *x, const TaskRequest *q, const char *what, const char *text, size_t n,
                       int64_t *n_ids)
{
    char why[WHY];
    int64_t *id = NEW_ARRAY(x->session.arena, int64_t, tokenizer_room(x->tokenizer, n) + 1);
    *n_ids = tokenizer_encode(x->tokenizer, what, text, n, id, why);
    if (*n_ids < 0)
        wrong(x, q, why);
    for (int64_t i = 0; i < *n_ids; i++)
        if (id[i] >= x->predictor.vocab)
            wrong(x, q,
                  arena_printf(x->session.arena, "%s has the token %lld, and the model's vocabulary ends at %lld", what,
                               (long long)id[i], (long long)x->predictor.vocab));
    return id;
}

/* Bytes of a text without the blanks at its end. */
static size_t without_blanks(TaskText t)
{
    while (t.n && memchr(" \t\n\r\v\f", t.s[t.n - 1], 6))
        t.n--;
    return t.n;
}

/* What comes before a text that has no context. */
static int64_t first_token(const Scoring *x)
{
    int64_t end = tokenizer_end(x->tokenizer);
    return end >= 0 && end < x->predictor.vocab ? end : tokenizer_line(x->tokenizer, x->predictor.vocab);
}

static ScoredText text_of(const Scoring *x, const TaskRequest *q, const TaskChoice *choice)
{
    Arena *a = x->session.arena;
    TaskText context = q->context[choice->context];
    size_t kept = without_blanks(context);
    Buf both = buf_new(a);
    buf_put(&both, context.s, context.n);
    buf_put(&both, choice->text.s, choice->text.n);
    int64_t n_context = 0, n_both, begin = -1;
    int64_t *first = encode(x, q, "the context", context.s, kept, &n_context);
    int64_t *id = encode(x, q, "the text", both.s, both.n, &n_both);
    if (!n_context) /* something must come first */
        begin = first_token(x);
    if (n_both <= n_context)
        wrong(x, q, "a continuation has no token of its own");
    ScoredText t = {.n = n_both + (begin >= 0), .context = n_context + (begin >= 0)};
    t.id = NEW_ARRAY(a, int64_t, (size_t)t.n);
    memcpy(t.id + (begin >= 0), id, (size_t)n_both * sizeof *id);
    memcpy(t.id + (begin >= 0), first, (size_t)n_context * sizeof *id);
    if (begin >= 0)
        t.id[0] = begin;
    t.left_out = t.n - 1 > x->predictor.context ? t.n - 1 - x->predictor.context : 0;
    if (t.left_out >= t.context)
        wrong(x, q,
              arena_printf(a, "a continuation of %lld tokens does not fit into the model's context of %lld",
                           (long long)(t.n - t.context), (long long)x->predictor.context));
    t.id += t.left_out;
    t.n -= t.left_out;
    t.context -= t.left_out;
    return t;
}

static int by_length(const void *a, const void *b)
{
    const ScoredRequest *x = *(ScoredRequest *const *)a, *y = *(ScoredRequest *const *)b;
    return x->longest != y->longest ? (x->longest < y->longest) - (x->longest > y->longest)
                                    : (x->of->line > y->of->line) - (x->of->line < y->of->line);
}

static void encode_all(Scoring *x)
{
    Arena *a = x->session.arena;
    x->request = NEW_ARRAY(a, ScoredRequest, x->task.n);
    x->order = NEW_ARRAY(a, ScoredRequest *, x->task.n);
    for (size_t i = 0; i < x->task.n; i++) {
        ScoredRequest *r = x->order[i] = &x->request[i];
        r->of = &x->task.request[i];
        r->text = NEW_ARRAY(a, ScoredText, r->of->n);
        for (size_t k = 0; k < r->of->n; k++) {
            r->text[k] = text_of(x, r->of, &r->of->choice[k]);
            r->longest = r->text[k].n > r->longest ? r->text[k].n : r->longest;
            x->tokens += r->text[k].n - r->text[k].context;
            x->left_out += r->text[k].left_out > 0;
        }
    }
    qsort(x->order, x->task.n, sizeof *x->order, by_length);
}

/* ---- a request's numbers ---- */

static void add(Mean *m, double value)
{
    m->sum += value;
    m->squares += value * value;
    m->n++;
}

static double mean(const Mean *m) { return m->sum / m->n; }

/* Of a sample of n: NaN for one. */
static double mean_error(const Mean *m)
{
    double variance = (m->squares - m->sum * m->sum / m->n) / (m->n - 1);
    return m->n > 1 ? sqrt(fmax(variance, 0) / m->n) : NAN;
}

/* The characters of a continuation without the blank that sets it apart from its context. */
static double length_of(TaskText t, double *bytes)
{
    size_t n = 0, from = t.n > 1 && t.s[0] == ' ';
    for (size_t i = from; i < t.n; i++)
        n += ((unsigned char)t.s[i] & 0xc0) != 0x80;
    *bytes = (double)t.n;
    return (double)n;
}

static void count(Scoring *x, const ScoredRequest *r, size_t best[2])
{
    double bytes = 0, most[2] = {-INFINITY, -INFINITY};
    best[0] = best[1] = 0;
    for (size_t k = 0; k < r->of->n; k++) {
        double each[2] = {r->text[k].sum, r->text[k].sum / length_of(r->of->choice[k].text, &bytes)};
        for (int i = 0; i < 2; i++)
            if (each[i] > most[i]) {
                most[i] = each[i];
                best[i] = k;
            }
    }
    length_of(r->of->choice[r->of->gold].text, &bytes);
    add(&x->accuracy, best[0] == r->of->gold);
    add(&x->accuracy_norm, best[1] == r->of->gold);
    add(&x->bits, -r->text[r->of->gold].sum / log(2) / bytes);
}

static void put_request(const Scoring *x, const ScoredRequest *r, const size_t best[2])
{
    Arena *a = x->session.arena;
    ArenaMark mark = arena_mark(a);
    JsonText t;
    size_t room = 400 + 64 * r->of->n + (r->of->id ? strlen(r->of->id) : 0);
    json_begin(&t, arena_alloc(a, room), room);
    json_open(&t, NULL, '{');
    json_put_integer(&t, "v", 1);
    json_put_string(&t, "event", "request");
    json_put_integer(&t, "line", (int64_t)r->of->line);
    if (r->of->id)
        json_put_raw(&t, "id", r->of->id);
    json_put_integer(&t, "gold", (int64_t)r->of->gold);
    json_put_integer(&t, "choice", (int64_t)best[0]);
    json_put_integer(&t, "choice_norm", (int64_t)best[1]);
    json_open(&t, "logprob", '[');
    for (size_t k = 0; k < r->of->n; k++)
        json_put_number(&t, NULL, r->text[k].sum);
    json_close(&t, ']');
    json_open(&t, "greedy", '[');
    for (size_t k = 0; k < r->of->n; k++)
        json_put_bool(&t, NULL, r->text[k].greedy);
    json_close(&t, ']');
    json_open(&t, "tokens", '[');
    for (size_t k = 0; k < r->of->n; k++)
        json_put_integer(&t, NULL, r->text[k].n - r->text[k].context);
    json_close(&t, ']');
    json_close(&t, '}');
    write_text(x->how->each, t.s, t.n);
    write_text(x->how->each, "\n", 1);
    arena_reset(a, mark);
}

static void report(Scoring *x, bool averaged)
{
    static const char *const name[] = {"acc", "acc_norm", "bits_per_byte"};
    const Mean *const of[] = {&x->accuracy, &x->accuracy_norm, &x->bits};
    Arena *a = x->session.arena;
    Buf b = buf_new(a);
    JsonText t;
    size_t room = 2000 + 6 * strlen(x->task.path);
    json_begin(&t, arena_alloc(a, room), room);
    json_open(&t, NULL, '{');
    json_put_integer(&t, "v", 1);
    json_put_string(&t, "event", "task");
    json_put_string(&t, "task", x->task.path);
    json_put_integer(&t, "step", x->source.checkpoint->progress.step);
    for (int i = 0; i < 3; i++) {
        json_put_number(&t, name[i], mean(of[i]));
        json_put_number(&t, arena_printf(a, "%s_stderr", name[i]), mean_error(of[i]));
        buf_printf(&b, "%-16s %.4f", name[i], mean(of[i]));
        if (of[i]->n > 1)
            buf_printf(&b, " +- %.4f", mean_error(of[i]));
        buf_putc(&b, '\n');
    }
    json_put_integer(&t, "requests", (int64_t)x->task.n);
    json_put_integer(&t, "tokens", x->tokens);
    json_put_integer(&t, "computed", x->predictor.computed);
    json_put_integer(&t, "left_out", x->left_out);
    json_put_string(&t, "weights", averaged ? "average" : "last");
    json_close(&t, '}');
    buf_puts(&b, "on               ");
    buf_count(&b, (int64_t)x->task.n);
    buf_puts(&b, " requests, ");
    buf_count(&b, x->tokens);
    buf_printf(&b, " tokens of continuations, after step %lld%s\n", (long long)x->source.checkpoint->progress.step,
               averaged ? ", with the average of the weights" : "");
    write_text(x->out, x->how->json ? t.s : b.s, x->how->json ? t.n : b.n);
    if (x->how->json)
        write_text(x->out, "\n", 1);
}

/* ---- rows ---- */

/* The next text of the row's request, or of the next request; the row is free when there is none. */
static void begin_text(Scoring *x, size_t i)
{
    ScoreRow *row = &x->row[i];
    PredictRow *fed = &x->fed[i];
    if (row->request && row->request->done == row->request->of->n)
        row->request = NULL;
    if (!row->request && x->next < x->task.n)
        row->request = x->order[x->next++];
    fed->id = NULL;
    if (!row->request)
        return;
    const ScoredText *t = &row->request->text[row->request->done];
    int64_t same = 0;
    while (x->predictor.goes_back && same < row->n_have && same < t->context - 1 && row->have[same] == t->id[same])
        same++;
    fed->id = t->id;
    fed->known = t->n;
    fed->n = t->n - 1;
    fed->at = same;
}

static void tell(Scoring *x, bool end)
{
    double now = clock_seconds(), seconds = now - x->began;
    if (!x->how->event || (!end && now - x->told < 0.1))
        return;
    x->told = now;
    vwn_task_event e = {.done = (int64_t)x->done,
                        .requests = (int64_t)x->task.n,
                        .tokens_per_second = seconds > 0 ? (double)x->predictor.computed / seconds : NAN,
                        .eta_seconds = x->done ? seconds * (double)(x->task.n - x->done) / (double)x->done : NAN};
    x->how->event(x->how->user, &e);
}

static void end_text(Scoring *x, size_t i)
{
    ScoreRow *row = &x->row[i];
    const PredictRow *fed = &x->fed[i];
    ScoredRequest *r = row->request;
    ScoredText *t = &r->text[r->done++];
    t->greedy = true;
    for (int64_t k = t->context - 1; k < t->n - 1; k++) {
        t->sum += fed->score[k];
        t->greedy &= fed->top_id[k * x->predictor.top] == t->id[k + 1];
    }
    if (!isfinite(t->sum))
        ctx_raise(x->session.ctx, ST_DIVERGED, "%.300s:%zu: the model's logits are not finite", x->task.path,
                  r->of->line);
    row->have = t->id;
    row->n_have = t->n - 1;
    x->done += r->done == r->of->n;
}

static Status score_all(Scoring *x)
{
    Predictor *p = &x->predictor;
    size_t rows = (size_t)p->texts;
    x->began = clock_seconds();
    for (size_t i = 0; i < rows; i++) {
        x->fed[i].score = NEW_ARRAY(x->session.arena, double, (size_t)p->context);
        x->fed[i].top_score = NEW_ARRAY(x->session.arena, double, (size_t)(p->context * p->top));
        x->fed[i].top_id = NEW_ARRAY(x->session.arena, int64_t, (size_t)(p->context * p->top));
        begin_text(x, i);
    }
    while (x->done < x->task.n) {
        if (x->session.owner->interrupted) {
            x->session.owner->interrupted = 0;
            return ST_INTERRUPTED;
        }
        predictor_feed(p, x->fed, 1);
        for (size_t i = 0; i < rows; i++)
            if (x->fed[i].id && x->fed[i].at == x->fed[i].n) {
                end_text(x, i);
                begin_text(x, i);
            }
        tell(x, x->done == x->task.n);
    }
    return ST_OK;
}

static Status score_body(void *user)
{
    Scoring *x = user;
    Session *s = &x->session;
    session_open(s, s->owner);
    task_read(s, x->how->task, &x->task);
    x->source = source_open(s, x->how->source, true, x->hooks);
    x->tokenizer = x->source.checkpoint->meta.tokenizer;
    tokenizer_load(s, (Tokenizer *)x->tokenizer);
    if (!tokenizer_has_text(x->tokenizer))
        ctx_raise(s->ctx, ST_INPUT,
                  "`vwn eval --task` scores texts, and this model was trained on token ids whose tokenizer the file "
                  "does not name");
    predictor_open(
        &x->predictor, s, &x->source,
        &(PredictorOptions){.use = "`vwn eval --task` scores texts", .texts = ROWS, .last = x->how->last, .top = 1});
    encode_all(x);
    if (x->left_out)
        session_warn(
            s,
            arena_printf(s->arena,
                         "%lld texts have more tokens than the model's context of %lld: only their last ones were seen",
                         (long long)x->left_out, (long long)x->predictor.context));
    Status st = score_all(x);
    for (size_t i = 0; st == ST_OK && i < x->task.n; i++) {
        size_t best[2];
        count(x, &x->request[i], best);
        if (x->how->each)
            put_request(x, &x->request[i], best);
    }
    if (st == ST_OK)
        report(x, x->predictor.averaged);
    return st;
}

Status score_task(vwn_context *owner, const vwn_task_options *how, const vwn_writer *out, const Hooks *hooks)
{
    Scoring x = {.session.owner = owner, .how = how, .out = out, .hooks = hooks};
    Status st = guarded(owner->ctx, score_body, &x);
    return session_end(&x.session, st);
}
