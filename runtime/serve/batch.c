/* batch.c - see batch.h. */
#define _DEFAULT_SOURCE
#include "batch.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "compiler/portable/utf8.h"
#include "runtime/base/machine.h"

const char *batch_token(const LiveBatch *b, int64_t id, char few[24], size_t *n)
{
    *n = 0;
    if (tokenizer_has_text(b->tokenizer))
        return tokenizer_decode(b->tokenizer, id, few, n);
    *n = (size_t)snprintf(few, 24, "%lld ", (long long)id);
    return few;
}

/* ---- the queue ---- */

bool batch_put(LiveBatch *b, BatchText *const *text, size_t n)
{
    pthread_mutex_lock(&b->lock);
    bool room = !b->stops && b->waiting + n <= b->most_waiting;
    for (size_t i = 0; room && i < n; i++) {
        text[i]->n = text[i]->n_prompt;
        *b->last = text[i];
        b->last = &text[i]->next;
        b->waiting++;
    }
    pthread_cond_signal(&b->work);
    pthread_mutex_unlock(&b->lock);
    return room;
}

static struct timespec after(double seconds)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    double all = (double)t.tv_sec + (double)t.tv_nsec * 1e-9 + seconds;
    t.tv_sec = (time_t)all;
    t.tv_nsec = (long)((all - floor(all)) * 1e9);
    return t;
}

void batch_wait(LiveBatch *b, double seconds)
{
    struct timespec until = after(seconds);
    pthread_cond_timedwait(&b->news, &b->lock, &until);
}

static void end_text(BatchText *t, TextState state, const char *finish)
{
    t->state = state;
    t->finish = finish;
}

/* NULL, or why the text is not computed any more. */
static const char *given_up(const BatchText *t, double now)
{
    return t->cancelled ? "nobody waits for it" : now > t->deadline ? "it took longer than a request may" : NULL;
}

/* Takes out of the queue what nobody waits for. */
static void sweep_queue(LiveBatch *b, double now)
{
    for (BatchText **at = &b->first; *at;) {
        BatchText *t = *at;
        const char *why = given_up(t, now);
        if (!why) {
            at = &t->next;
            continue;
        }
        *at = t->next;
        if (b->last == &t->next)
            b->last = at;
        b->waiting--;
        end_text(t, TEXT_FAILED, why);
    }
}

/* ---- rows ---- */

/* Tokens at the beginning of a text that a free row has computed. */
static int64_t shared(const LiveBatch *b, size_t row, const BatchText *t)
{
    int64_t n = 0, most = b->predictor.goes_back && !t->scores ? t->n_prompt - 1 : 0;
    while (n < most && n < b->n_have[row] && b->have[row][n] == t->id[n])
        n++;
    return n;
}

static void free_row(LiveBatch *b, size_t row)
{
    BatchText *t = b->text[row];
    b->n_have[row] = b->row[row].at;
    memcpy(b->have[row], t->id, (size_t)b->row[row].at * sizeof *t->id);
    b->text[row] = NULL;
    b->row[row].id = NULL;
    b->running--;
}

static void begin_text(LiveBatch *b, size_t row, BatchText *t)
{
    b->text[row] = t;
    b->row[row] = (PredictRow){.id = t->id,
                               .known = t->n,
                               .n = t->n,
                               .at = shared(b, row, t),
                               .next = t->most > 0,
                               .score = t->score,
                               .top_score = t->top_score,
                               .top_id = t->top_id};
    t->state = TEXT_RUNS;
    b->running++;
}

static void fill_rows(LiveBatch *b)
{
    size_t rows = (size_t)b->predictor.texts;
    while (b->first && b->running < rows) {
        BatchText *t = b->first;
        size_t best = SIZE_MAX;
        for (size_t i = 0; i < rows; i++)
            if (!b->text[i] && (best == SIZE_MAX || shared(b, i, t) > shared(b, best, t)))
                best = i;
        b->first = t->next;
        if (!b->first)
            b->last = &b->first;
        b->waiting--;
        begin_text(b, best, t);
    }
}

/* ---- a further token ---- */

static bool add_bytes(BatchText *t, const char *s, size_t n)
{
    if (t->n_text + n > t->room) {
        size_t room = 2 * t->room + n + 64;
        char *grown = realloc(t->text, room);
        if (!grown)
            return false;
        t->text = grown;
        t->room = room;
    }
    memcpy(t->text + t->n_text, s, n);
    t->n_text += n;
    return true;
}

static size_t longest_stop(const BatchText *t)
{
    size_t most = 0;
    for (size_t k = 0; k < t->stops; k++)
        most = strlen(t->stop[k]) > most ? strlen(t->stop[k]) : most;
    return most;
}

/* Whether a stop is in the text, of which the last `fresh` bytes are new; the text then ends before it. */
static bool cut_at_stop(BatchText *t, size_t fresh)
{
    size_t before = fresh + longest_stop(t);
    for (size_t at = before < t->n_text ? t->n_text - before : 0; at < t->n_text; at++)
        for (size_t k = 0; k < t->stops; k++) {
            size_t n = strlen(t->stop[k]);
            if (at + n <= t->n_text && at + n > t->n_text - fresh && !memcmp(t->text + at, t->stop[k], n)) {
                t->n_text = at;
                return true;
            }
        }
    return false;
}

size_t batch_settled(const BatchText *t)
{
    size_t most = longest_stop(t), n = t->n_text;
    if (t->state == TEXT_DONE)
        return n;
    size_t held = most ? most - 1 : 0;
    n -= held < n ? held : n;
    while (n && n < t->n_text && ((unsigned char)t->text[n] & 0xc0) == 0x80)
        n--;
    return n - utf8_unfinished(t->text, n);
}

static double log_sum(const LiveBatch *b, const double *logits)
{
    double most = -INFINITY, sum = 0;
    for (int64_t i = 0; i < b->predictor.vocab; i++)
        most = logits[i] > most ? logits[i] : most;
    for (int64_t i = 0; i < b->predictor.vocab; i++)
        sum += exp(logits[i] - most);
    return most + log(sum);
}

/* The likeliest tokens of position t->n - 1 are there: where the token is one of them its log-probability is that. */
static double score_of(const LiveBatch *b, const BatchText *t, int64_t id, double otherwise)
{
    int64_t at = t->n - 1, top = b->predictor.top;
    for (int64_t k = 0; k < top; k++)
        if (t->top_id[at * top + k] == id)
            return t->top_score[at * top + k];
    return otherwise;
}

static void add_token(LiveBatch *b, size_t row)
{
    BatchText *t = b->text[row];
    double *logits = b->predictor.logits + (int64_t)row * b->predictor.vocab;
    double u = philox_uniform(philox_key(t->seed, "serve"), (uint64_t)(t->n - t->n_prompt), t->place);
    double sum = t->score ? log_sum(b, logits) : 0;
    for (int64_t i = 0; i < b->usable; i++)
        if (b->hole[i])
            logits[i] = -INFINITY;
    int64_t id = choose_token(&t->filters, logits, (size_t)b->usable, b->choice, u);
    if (id < 0) {
        end_text(t, TEXT_FAILED, "the model's logits are not finite");
        return;
    }
    if (t->score)
        t->score[t->n - 1] = score_of(b, t, id, logits[id] - sum);
    char few[24];
    size_t n;
    const char *bytes = batch_token(b, id, few, &n);
    t->id[t->n++] = id;
    if (id == b->end) /* it is a token, and no text */
        end_text(t, TEXT_DONE, "stop");
    else if (!add_bytes(t, bytes, n))
        end_text(t, TEXT_FAILED, "there is no memory for its text");
    else if (t->stops && cut_at_stop(t, n))
        end_text(t, TEXT_DONE, "stop");
    else if (t->n - t->n_prompt >= t->most)
        end_text(t, TEXT_DONE, "length");
    b->row[row].known = b->row[row].n = t->n;
}

static void move_on(LiveBatch *b)
{
    double now = clock_seconds();
    b->computed = b->predictor.computed;
    b->runs = b->predictor.runs;
    for (size_t i = 0; i < (size_t)b->predictor.texts; i++) {
        BatchText *t = b->text[i];
        const char *why = t ? given_up(t, now) : NULL;
        if (!t)
            continue;
        if (why)
            end_text(t, TEXT_FAILED, why);
        else if (b->row[i].at == b->row[i].n && t->most)
            add_token(b, i);
        else if (b->row[i].at == b->row[i].n)
            end_text(t, TEXT_DONE, "length");
        if (t->state != TEXT_RUNS)
            free_row(b, i);
    }
    pthread_cond_broadcast(&b->news);
}

/* ---- the whole ---- */

void batch_run(LiveBatch *b, const volatile int *stop)
{
    while (!*stop) {
        pthread_mutex_lock(&b->lock);
        sweep_queue(b, clock_seconds());
        fill_rows(b);
        bool any = b->running > 0;
        if (!any) {
            struct timespec until = after(0.05);
            pthread_cond_timedwait(&b->work, &b->lock, &until);
        }
        pthread_cond_broadcast(&b->news);
        pthread_mutex_unlock(&b->lock);
        if (!any)
            continue;
        predictor_feed(&b->predictor, b->row, 1);
        pthread_mutex_lock(&b->lock);
        move_on(b);
        pthread_mutex_unlock(&b->lock);
    }
}

void batch_stop(LiveBatch *b)
{
    static const char why[] = "the server stops";
    pthread_mutex_lock(&b->lock);
    b->stops = true;
    for (BatchText *t = b->first; t; t = t->next)
        end_text(t, TEXT_FAILED, why);
    for (size_t i = 0; i < BATCH_ROWS; i++)
        if (b->text[i])
            end_text(b->text[i], TEXT_FAILED, why);
    b->first = NULL;
    b->last = &b->first;
    pthread_cond_broadcast(&b->news);
    pthread_mutex_unlock(&b->lock);
}

void batch_open(LiveBatch *b, Session *s, const Source *source, size_t most_waiting, bool last)
{
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_mutex_init(&b->lock, NULL);
    pthread_cond_init(&b->work, &monotonic);
    pthread_cond_init(&b->news, &monotonic);
    pthread_condattr_destroy(&monotonic);
    b->last = &b->first;
    b->most_waiting = most_waiting;
    predictor_open(
        &b->predictor, s, source,
        &(PredictorOptions){.use = "`vwn serve` continues texts", .texts = BATCH_ROWS, .last = last, .top = BATCH_TOP});
    int64_t vocab = b->predictor.vocab, size = b->tokenizer->size;
    b->usable = size > 0 && size < vocab ? size : vocab;
    b->end = tokenizer_end(b->tokenizer);
    b->choice = NEW_ARRAY(s->arena, Candidate, (size_t)vocab);
    b->hole = NEW_ARRAY(s->arena, bool, (size_t)vocab);
    for (int64_t id = 0; id < b->usable; id++) {
        char few[24];
        size_t n;
        b->hole[id] = !batch_token(b, id, few, &n);
    }
    for (size_t i = 0; i < BATCH_ROWS; i++)
        b->have[i] = NEW_ARRAY(s->arena, int64_t, (size_t)b->predictor.context);
}

void batch_close(LiveBatch *b)
{
    pthread_mutex_destroy(&b->lock);
    pthread_cond_destroy(&b->work);
    pthread_cond_destroy(&b->news);
}
