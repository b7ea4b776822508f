/* feed.c - see feed.h. */
#include "feed.h"

/* The inputs of the programs are among those that the arrays were checked against. */
static Feed open_arrays(Session *s, int64_t B, int64_t T)
{
    Feed f = {.session = s, .B = B, .T = T};
    f.input = NEW_ARRAY(s->arena, FeedInput, store_count(s->store) + 1);
    for (size_t i = 0; i < store_count(s->store); i++) {
        StoreEntry *e = store_at(s->store, i);
        if (e->kind != EXT_INPUT)
            continue;
        FeedInput *x = &f.input[f.n_input++];
        *x = (FeedInput){.entry = e, .numbers = e->elements / B};
        if (e->dtype == DT_INT)
            x->integer = NEW_ARRAY(s->arena, int64_t, (size_t)e->elements);
        else
            x->real = NEW_ARRAY(s->arena, float, (size_t)e->elements);
    }
    return f;
}

static Feed open_text(Session *s, int64_t B, int64_t T)
{
    Feed f = {.session = s, .B = B, .T = T};
    for (size_t i = 0; i < store_count(s->store); i++) {
        StoreEntry *e = store_at(s->store, i);
        if (e->kind != EXT_INPUT)
            continue;
        if (!strcmp(e->name, "tokens"))
            f.tokens = e;
        else if (!strcmp(e->name, "labels"))
            f.labels = e;
        else if (!strcmp(e->name, "document"))
            f.document = e;
        else
            vwn_bug(s->ctx, "the input `%s` of a model of text", e->name);
        if (e->elements != B * T || e->dtype != DT_INT)
            vwn_bug(s->ctx, "the input `%s` is not one integer per position", e->name);
    }
    f.token = NEW_ARRAY(s->arena, int64_t, (size_t)(B * T));
    f.label = NEW_ARRAY(s->arena, int64_t, (size_t)(B * T));
    f.begin = NEW_ARRAY(s->arena, int64_t, (size_t)(B * T));
    return f;
}

Feed feed_open(Session *s, const Split *of, int64_t B, int64_t T)
{
    return of->arrays ? open_arrays(s, B, T) : open_text(s, B, T);
}

static const Array *array_of(Feed *f, const Split *split, const FeedInput *x)
{
    for (size_t i = 0; i < split->arrays->n; i++)
        if (split->arrays->v[i].input == x->entry->name)
            return &split->arrays->v[i];
    vwn_bug(f->session->ctx, "no array for the input `%s`", x->entry->name);
}

static void read_example(Feed *f, const Split *split, int64_t from, int64_t row)
{
    char why[WHY];
    for (size_t i = 0; i < f->n_input; i++) {
        const FeedInput *x = &f->input[i];
        const Array *a = array_of(f, split, x);
        bool read = x->real ? array_reals(a, from, x->real + row * x->numbers, why)
                            : array_integers(a, from, x->integer + row * x->numbers, why);
        if (!read)
            ctx_raise(f->session->ctx, ST_ENVIRONMENT, "%s", why);
    }
}

static void read_row(Feed *f, const Split *split, Window w, int64_t row)
{
    char why[WHY];
    if (split->arrays) {
        read_example(f, split, w.first, row);
        return;
    }
    int64_t at = row * f->T;
    if (!split_read(split, w, f->token + at, f->label + at, f->begin + at, why))
        ctx_raise(f->session->ctx, ST_ENVIRONMENT, "%s", why);
}

static void upload(Feed *f)
{
    Session *s = f->session;
    if (f->tokens)
        session_store_ok(s, store_put_i64(s->store, f->tokens, 0, f->B * f->T, f->token));
    if (f->labels)
        session_store_ok(s, store_put_i64(s->store, f->labels, 0, f->B * f->T, f->label));
    if (f->document)
        session_store_ok(s, store_put_i64(s->store, f->document, 0, f->B * f->T, f->begin));
    for (size_t i = 0; i < f->n_input; i++) {
        const FeedInput *x = &f->input[i];
        int64_t n = x->entry->elements;
        session_store_ok(s, x->real ? store_put_f32(s->store, x->entry, 0, n, x->real)
                                    : store_put_i64(s->store, x->entry, 0, n, x->integer));
    }
}

void feed_train(Feed *f, const Split *split, uint64_t seed, int64_t first)
{
    if (f->of == split && f->seed == seed && f->first == first)
        return;
    f->of = NULL;
    for (int64_t row = 0; row < f->B; row++)
        read_row(f, split, split_window(split, seed, first + row), row);
    upload(f);
    f->of = split;
    f->seed = seed;
    f->first = first;
}

int64_t feed_fixed(Feed *f, const Split *split, int64_t first, int64_t of)
{
    int64_t rows = of - first < f->B ? of - first : f->B;
    f->of = NULL;
    for (int64_t row = 0; row < f->B; row++)
        read_row(f, split, split_fixed(split, row < rows ? first + row : first, of), row);
    upload(f);
    return rows;
}

size_t results_size(const Program *p)
{
    size_t n = 0;
    for (size_t i = 0; i < program_results(p); i++)
        n += program_result_size(p, i);
    return n;
}

void results_read(Session *s, Program *p, double *v)
{
    for (size_t i = 0; i < program_results(p); i++) {
        uint8_t rank;
        int64_t d[MAX_RANK];
        size_t n = program_result_size(p, i);
        Status st = program_tensor(p, program_result_name(p, i), &rank, d, v, n);
        if (st != ST_OK)
            ctx_raise(s->ctx, st, "%s", program_why(p));
        v += n;
    }
}

int result_index(const Program *p, const char *name)
{
    size_t at = 0;
    for (size_t i = 0; i < program_results(p); i++) {
        if (!strcmp(program_result_name(p, i), name))
            return (int)at;
        at += program_result_size(p, i);
    }
    return -1;
}

int result_of_tokens(const Program *p)
{
    int next = result_index(p, "metric.next"), only = -1, trained = 0;
    if (next < 0)
        next = result_index(p, "loss.next");
    for (size_t i = 0; i < program_results(p); i++) {
        const char *name = program_result_name(p, i);
        if (!strncmp(name, "loss.", 5)) {
            only = result_index(p, name);
            trained++;
        }
    }
    return next >= 0 ? next : trained == 1 ? only : result_index(p, "loss");
}

void result_put(JsonText *t, const char *key, const double *v, size_t n)
{
    if (n == 1) {
        json_put_number(t, key, v[0]);
        return;
    }
    json_open(t, key, '[');
    for (size_t i = 0; i < n; i++)
        json_put_number(t, NULL, v[i]);
    json_close(t, ']');
}

void count_begin(Session *s)
{
    const double zero = 0;
    for (size_t i = 0; i < store_count(s->store); i++) {
        StoreEntry *e = store_at(s->store, i);
        for (int64_t k = 0; e->kind == EXT_TOTAL && k < e->elements; k++)
            session_store_ok(s, store_put_f64(s->store, e, k, 1, &zero));
    }
}

typedef struct Evaluating {
    Feed *feed;
    Program *eval, *count;
    const Split *split;
    const double *vars;
    const EvalShare *share;
} Evaluating;

static void eval_begin_count(void *user)
{
    const Evaluating *e = user;
    count_begin(e->feed->session);
}

static int64_t eval_feed(void *user, int64_t first, int64_t of)
{
    const Evaluating *e = user;
    return feed_fixed(e->feed, e->split, first, of);
}

static void eval_run(void *user, LoopProgram which, int64_t first, int64_t rows, int64_t of)
{
    const Evaluating *e = user;
    double vars[HV_COUNT];
    memcpy(vars, e->vars, sizeof vars);
    vars[HV_SHARE] = (double)rows / (double)of;
    vars[HV_FILLED] = (double)rows / (double)e->feed->B;
    RunArgs args = run_untrained(vars, first);
    session_run(e->feed->session, which == LOOP_EVAL ? e->eval : e->count, &args);
}

static void eval_results(void *user, double *out)
{
    const Evaluating *e = user;
    results_read(e->feed->session, e->eval, out);
}

static void eval_gather(void *user, double *all)
{
    const Evaluating *e = user;
    if (e->share->gather)
        e->share->gather(e->share->of, all, results_size(e->eval));
}

int64_t evaluate(Feed *f, Program *eval, Program *count, const Split *split, int64_t batches, int64_t batch,
                 const EvalShare *share, const double *vars, double *part, double *all)
{
    static const EvalCalls calls = {eval_begin_count, eval_feed, eval_run, eval_results, eval_gather};
    const EvalSize size = {split_fixed_windows(split), batches, batch, f->B, results_size(eval), share->lanes};
    return loop_evaluate(&calls, &(Evaluating){f, eval, count, split, vars, share}, &size, count, part, all);
}
