/* feed.c - see feed.h. */
#include "feed.h"

Feed feed_open(Session *s, int64_t B, int64_t T)
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
            ctx_raise(s->ctx, ST_INPUT,
                      "the model reads the input `%s`, which text does not give", e->name);
        if (e->elements != B * T || e->dtype != DT_INT)
            vwn_bug(s->ctx, "the input `%s` is not one integer per position", e->name);
    }
    f.token = NEW_ARRAY(s->arena, int64_t, (size_t)(B * T));
    f.label = NEW_ARRAY(s->arena, int64_t, (size_t)(B * T));
    f.begin = NEW_ARRAY(s->arena, int64_t, (size_t)(B * T));
    return f;
}

static void read_row(Feed *f, const Split *split, Window w, int64_t row)
{
    char why[WHY];
    if (!split_read(split, w, f->token + row * f->T, f->label + row * f->T, why))
        ctx_raise(f->session->ctx, ST_ENVIRONMENT, "%s", why);
    /* a separator begins the document that follows it */
    int64_t begin = 0;
    for (int64_t i = 0; i < f->T; i++) {
        begin = f->token[row * f->T + i] == split->separator ? i : begin;
        f->begin[row * f->T + i] = begin;
    }
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
}

void feed_train(Feed *f, const Split *split, uint64_t seed, int64_t first)
{
    for (int64_t row = 0; row < f->B; row++)
        read_row(f, split, split_window(split, seed, first + row), row);
    upload(f);
}

int64_t feed_fixed(Feed *f, const Split *split, int64_t first, int64_t of)
{
    int64_t rows = of - first < f->B ? of - first : f->B;
    for (int64_t row = 0; row < f->B; row++) {
        bool real = row < rows;
        read_row(f, split, split_fixed(split, real ? first + row : 0, of), row);
        for (int64_t i = 0; !real && i < f->T; i++)
            f->label[row * f->T + i] = -1;
    }
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

int64_t evaluate(Feed *f, Program *eval, const Split *split, int64_t batches, int64_t batch,
                 const RunArgs *args, double *part, double *mean)
{
    Session *s = f->session;
    size_t n = results_size(eval);
    int64_t of = split_fixed_windows(split);
    if (batches > 0 && batches <= of / batch)
        of = batches * batch;
    for (size_t i = 0; i < n; i++)
        mean[i] = 0;
    for (int64_t first = 0; first < of; first += f->B) {
        double rows = (double)feed_fixed(f, split, first, of);
        session_run(s, eval, args);
        results_read(s, eval, part);
        for (size_t i = 0; i < n; i++)
            mean[i] += rows * part[i];
    }
    for (size_t i = 0; i < n; i++)
        mean[i] /= (double)of;
    return of;
}
