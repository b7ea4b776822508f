/* predict.c - see predict.h. */
#include "predict.h"

#include "compiler/model/decode.h"

enum { BLOCK = 32 }; /* positions of the program that reads known text */

int64_t window_start(int64_t n, int64_t context)
{
    int64_t half = context > 1 ? context / 2 : 1;
    return n <= context ? 0 : (n - context + half - 1) / half * half;
}

/* ---- programs ---- */

/* The rows [texts, vocab] of the logits, one chosen for each text, become the only result. */
static void keep_rows(Predictor *p, Graph *g)
{
    size_t read = 0; /* by the host; the others are stored */
    while (g->out.v[read].ext >= 0)
        read++;
    Val logits = g->out.v[read].value;
    Shape s = *shape_of(g, logits), each = {.rank = 1, .d = {DIM_B}};
    Shape rows = {.rank = 2, .d = {{1, 1, 1}, s.rank ? s.d[s.rank - 1] : DIM(1)}};
    Dim have, want;
    if (s.rank != 3 || !shape_size(&s, &have) || !shape_size(&rows, &want) || !dim_eq(have, want))
        ctx_raise(g->ctx, ST_INPUT, "the logits of model `%s` are not [B, T, vocabulary]",
                  p->source->unit->model->name);
    Val at = ir_ext(g, EXT_INPUT, name_str(g->ctx, "position"), DT_INT, &each);
    Val row = ir_gather(g, ir_reshape(g, logits, &rows), at);
    g->out.v[read] = (Output){p->next, row, -1};
}

static void choose_graph(Predictor *p, bool recompute)
{
    Session *s = p->session;
    Graph *predict = step_predict(p->source->unit->model, s->arena);
    DecodeRefusal no = {0};
    Graph *g = decode_graph(predict, p->context, s->arena, &no);
    p->in_order = g != NULL;
    if (!p->in_order && !decode_looks_ahead(predict, s->arena, &p->ahead))
        p->ahead = no;
    p->why_whole = g || recompute ? NULL
                                  : arena_printf(s->arena, "every token is predicted from the whole context: at %s, %s",
                                                 decode_place(s->ctx, s->arena, &no), no.why);
    if (recompute)
        g = NULL;
    p->whole = !g;
    p->texts = p->whole ? 1 : PREDICT_TEXTS;
    p->graph = g ? g : predict;
    keep_rows(p, g ? g : predict);
}

static ProgramOptions options(const Predictor *p, int64_t positions)
{
    return (ProgramOptions){.name = p->whole ? "predict" : "decode",
                            .B = p->texts,
                            .T = positions,
                            .share_arena = true,
                            .per_row = !p->whole};
}

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

/* Of the program that predicts from the whole context; a device may not be able to at all. */
typedef struct WholeNeed {
    const Predictor *p;
    uint64_t bytes;
} WholeNeed;

static Status whole_need(void *user)
{
    WholeNeed *w = user;
    Session *s = w->p->session;
    const ProgramOptions how = {.B = 1, .T = w->p->context};
    w->bytes = session_program_need(s, step_predict(w->p->source->unit->model, s->arena), &how);
    return ST_OK;
}

/* What does not fit is refused before anything is taken, with what would; or it goes to the processor. */
static void fit(Predictor *p)
{
    static const double GIB = 1024.0 * 1024.0 * 1024.0;
    Session *s = p->session;
    const Model *m = p->source->unit->model;
    uint64_t left, need;
    ProgramOptions one = options(p, p->whole ? p->context : 1), many = options(p, BLOCK);
    const Train bound = {.micro_seqs = p->texts, .context = p->context};
    if (!session_room(s, &left) || session_memory_most(m, &bound) <= left)
        return;
    need = session_program_need(s, p->graph, &one);
    if (!p->whole)
        need = larger(need, session_program_need(s, p->graph, &many));
    if (need <= left)
        return;
    WholeNeed whole = {p, UINT64_MAX};
    bool less = !p->whole && guarded(s->ctx, whole_need, &whole) == ST_OK && whole.bytes <= left;
    const char *advice =
        less ? arena_printf(s->arena, "`--recompute`, which keeps nothing, needs %.2f GiB", (double)whole.bytes / GIB)
             : "`--device cpu` takes the processor";
    const char *why =
        arena_printf(s->arena, "sampling needs %.2f GiB and %.2f are available%s: weights, %s, activations; %s",
                     (double)need / GIB, (double)left / GIB, s->backend->kind->where,
                     p->whole ? "the whole context" : "keys and values of several texts", advice);
    if (!session_use_cpu(s, why))
        ctx_raise(s->ctx, ST_ENVIRONMENT, "%s", why);
}

static Program *build(Predictor *p, int64_t positions)
{
    ProgramOptions how = options(p, positions);
    BuildReport built = {0};
    Program *program = session_program(p->session, p->graph, &how, &built);
    session_warn(p->session, built.note);
    return program;
}

static StoreEntry *input(const Predictor *p, const char *name)
{
    return store_find(p->session->store, EXT_INPUT, name_str(p->session->ctx, name));
}

static void find_inputs(Predictor *p)
{
    Session *s = p->session;
    p->tokens = input(p, "tokens");
    p->rows = input(p, "position");
    p->at = input(p, DECODE_AT);
    p->on = input(p, DECODE_ON);
    for (size_t i = 0; i < store_count(s->store); i++) {
        StoreEntry *e = store_at(s->store, i);
        if (e->kind == EXT_INPUT && e != p->tokens && e != p->rows && e != p->at && e != p->on)
            ctx_raise(s->ctx, ST_INPUT, "the model reads the input `%s`, which text does not give", e->name);
    }
}

/* ---- one run ---- */

static void put(const Predictor *p, StoreEntry *e, int64_t n, const int64_t *v)
{
    if (e)
        session_store_ok(p->session, store_put_i64(p->session->store, e, 0, n, v));
}

static void run(Predictor *p, Program *program, uint64_t seed)
{
    Session *s = p->session;
    const Progress *progress = &p->source->checkpoint->progress;
    double vars[HV_COUNT];
    progress_vars(progress, (double)(progress->step - progress->from_step), 0, vars);
    RunArgs args = {vars, seed, 0, 0};
    session_run(s, program, &args);
    uint8_t rank;
    int64_t d[MAX_RANK];
    Status st = program_tensor(program, p->next, &rank, d, p->logits, (size_t)(p->texts * p->vocab));
    if (st != ST_OK)
        ctx_raise(s->ctx, st, "%s", program_why(program));
}

/* Two texts that are the same up to position `at`, and whose later tokens all differ. */
static void put_probe(Predictor *p, int64_t at, int64_t which)
{
    for (int64_t i = 0; i < p->context; i++)
        p->ids[i] = (i * 7 + 1 + (i > at ? which : 0)) % p->vocab;
    put(p, p->tokens, p->context, p->ids);
    put(p, p->rows, 1, &at);
}

/* A text is continued by what is predicted before its later tokens are there. Whether a prediction depends on them
 * is computed: at the first, a middle and the last position that has later ones, with other tokens behind it. */
static void check_order(Predictor *p)
{
    Session *s = p->session;
    const int64_t at[] = {0, p->context / 2, p->context - 2};
    size_t bytes = (size_t)p->vocab * sizeof *p->logits;
    double *first = NEW_ARRAY(s->arena, double, (size_t)p->vocab);
    for (size_t i = 0; i < COUNT_OF(at) && p->vocab > 1; i++) {
        if (at[i] < 0 || at[i] + 1 >= p->context)
            continue;
        put_probe(p, at[i], 0);
        run(p, p->one, 0);
        memcpy(first, p->logits, bytes);
        put_probe(p, at[i], 1);
        run(p, p->one, 0);
        if (memcmp(first, p->logits, bytes) != 0)
            ctx_raise(s->ctx, ST_INPUT,
                      "`vwn sample` continues texts, and what this model predicts at a position "
                      "depends on later tokens: at %s, %s",
                      decode_place(s->ctx, s->arena, &p->ahead), p->ahead.why);
    }
}

void predictor_open(Predictor *p, Session *s, const Source *source, bool recompute, bool last)
{
    const Model *m = source->unit->model;
    *p = (Predictor){.session = s, .source = source, .context = m->context, .vocab = m->vocab};
    p->next = name_str(s->ctx, "next");
    session_open_backend(s);
    session_warn(s, s->note);
    choose_graph(p, recompute);
    fit(p);
    session_add_params(s, m);
    p->one = build(p, p->whole ? p->context : 1);
    source_load(s, source, last);
    find_inputs(p);
    int64_t ids = p->whole ? p->context : PREDICT_TEXTS * BLOCK;
    p->ids = NEW_ARRAY(s->arena, int64_t, (size_t)ids);
    p->logits = NEW_ARRAY(s->arena, double, (size_t)(p->texts * p->vocab));
    if (!p->in_order)
        check_order(p);
    session_warn(s, p->why_whole);
}

static bool interrupted(const Predictor *p)
{
    bool yes = p->session->owner->interrupted;
    p->session->owner->interrupted = 0;
    return yes;
}

/* ---- from the whole context ---- */

static Status run_whole(Predictor *p, GrowingText *text, uint64_t seed, PredictReady *ready, void *user)
{
    while (text->open) {
        if (interrupted(p))
            return ST_INTERRUPTED;
        int64_t from = window_start(text->n, p->context), have = text->n - from;
        int64_t last = have - 1;
        memcpy(p->ids, text->id + from, (size_t)have * sizeof *p->ids);
        memset(p->ids + have, 0, (size_t)(p->context - have) * sizeof *p->ids);
        put(p, p->tokens, p->context, p->ids);
        put(p, p->rows, 1, &last);
        run(p, p->one, seed);
        ready(user, text, p->logits);
    }
    return ST_OK;
}

/* ---- with what earlier tokens left ---- */

/* All texts go through the same windows and positions; a text takes part from its own first
 * window on. */
typedef struct PredictWalk {
    Predictor *p;
    GrowingText *text;
    size_t n;
    uint64_t seed;
    PredictReady *ready;
    void *user;
    int64_t at, window;           /* position to be computed; where its window starts */
    int64_t block_end;            /* of the block begun last */
    bool in_block[PREDICT_TEXTS]; /* was computed with the block, not one by one */
} PredictWalk;

/* Is the text computed in this window at all? */
static bool takes_part(const PredictWalk *w, size_t i)
{
    const GrowingText *t = &w->text[i];
    return t->open && window_start(t->n_prompt, w->p->context) <= w->window;
}

/* Up to here a text is known when the window begins: its prompt, and what was drawn before. */
static int64_t known_at_start(const PredictWalk *w, size_t i)
{
    int64_t context = w->p->context, half = context > 1 ? context / 2 : 1;
    int64_t first = w->window ? w->window + context - half + 1 : 0;
    return w->text[i].n_prompt > first ? w->text[i].n_prompt : first;
}

/* Computes `count` positions for the texts that are on, and hands over the logits of those that
 * end there. */
static void compute(PredictWalk *w, Program *program, int64_t count, const int64_t *on)
{
    Predictor *p = w->p;
    int64_t local = w->at - w->window, rows[PREDICT_TEXTS];
    for (int64_t i = 0; i < PREDICT_TEXTS; i++) {
        rows[i] = i * count + count - 1;
        for (int64_t k = 0; k < count; k++) {
            bool known = (size_t)i < w->n && w->at + k < w->text[i].n;
            p->ids[i * count + k] = known ? w->text[i].id[w->at + k] : 0;
        }
    }
    put(p, p->tokens, PREDICT_TEXTS * count, p->ids);
    put(p, p->rows, PREDICT_TEXTS, rows);
    put(p, p->at, 1, &local);
    put(p, p->on, PREDICT_TEXTS, on);
    run(p, program, w->seed);
    for (size_t i = 0; i < w->n; i++)
        if (on[i] && w->text[i].n == w->at + count)
            w->ready(w->user, &w->text[i], p->logits + (int64_t)i * p->vocab);
}

/* The block that begins here, for the texts that are known to its end. */
static void begin_block(PredictWalk *w)
{
    int64_t on[PREDICT_TEXTS] = {0};
    bool any = false;
    w->block_end = w->at + BLOCK;
    for (size_t i = 0; i < w->n; i++) {
        w->in_block[i] = takes_part(w, i) && known_at_start(w, i) >= w->block_end;
        on[i] = w->in_block[i];
        any |= w->in_block[i];
    }
    if (!any)
        return;
    if (!w->p->many)
        w->p->many = build(w->p, BLOCK);
    compute(w, w->p->many, BLOCK, on);
}

static void advance(PredictWalk *w)
{
    int64_t context = w->p->context, start = window_start(w->at + 1, context);
    if (start > w->window)
        w->at = w->window = w->block_end = start;
    int64_t local = w->at - w->window;
    if (w->at >= w->block_end) {
        memset(w->in_block, 0, sizeof w->in_block);
        if (local % BLOCK == 0 && local + BLOCK <= context)
            begin_block(w);
    }
    int64_t on[PREDICT_TEXTS] = {0};
    bool any = false;
    for (size_t i = 0; i < w->n; i++) {
        on[i] = takes_part(w, i) && !w->in_block[i];
        any |= on[i] != 0;
    }
    if (any)
        compute(w, w->p->one, 1, on);
    w->at++;
}

static bool any_open(const GrowingText *text, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (text[i].open)
            return true;
    return false;
}

static Status run_kept(PredictWalk *w)
{
    w->window = INT64_MAX;
    for (size_t i = 0; i < w->n; i++) {
        int64_t start = window_start(w->text[i].n_prompt, w->p->context);
        if (start < w->window)
            w->window = start;
    }
    w->at = w->block_end = w->window;
    while (any_open(w->text, w->n)) {
        if (interrupted(w->p))
            return ST_INTERRUPTED;
        advance(w);
    }
    return ST_OK;
}

Status predictor_run(Predictor *p, GrowingText *text, size_t n, uint64_t seed, PredictReady *ready, void *user)
{
    if (!p->whole) {
        PredictWalk w = {.p = p, .text = text, .n = n, .seed = seed, .ready = ready, .user = user};
        return run_kept(&w);
    }
    for (size_t i = 0; i < n; i++) {
        Status st = run_whole(p, &text[i], seed, ready, user);
        if (st != ST_OK)
            return st;
    }
    return ST_OK;
}
