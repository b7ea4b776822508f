/* predict.c - see predict.h. */
#include "predict.h"

#include "compiler/model/decode.h"

/* Positions of the programs that read known text; the first one makes text, too. */
static const int64_t positions[PREDICT_PROGRAMS] = {1, 8, PREDICT_BLOCK};
enum { BLOCKS = PREDICT_PROGRAMS - 1, LOGITS_MOST = 1 << 27 /* of a block of all texts */ };

int64_t window_start(int64_t n, int64_t context)
{
    int64_t half = context > 1 ? context / 2 : 1;
    return n <= context ? 0 : (n - context + half - 1) / half * half;
}

/* ---- programs ---- */

/* Of every position the log-probability of a token, and the likeliest tokens with theirs. */
static void keep_scores(Predictor *p, Graph *g, Val logits)
{
    Ctx *ctx = g->ctx;
    Shape each = {.rank = 2, .d = {DIM_B, DIM_T}}, one = {.rank = 3, .d = {DIM_B, DIM_T, DIM(1)}};
    Val target = ir_ext(g, EXT_INPUT, name_str(ctx, "target"), DT_INT, &each);
    Val sum = ir_logsumexp(g, logits, 2, true), top = ir_top_k(g, logits, p->top);
    Val score = ir_binary(g, OP_SUB, ir_pick(g, logits, ir_reshape(g, target, &one)), sum);
    ir_output(g, p->score_name = name_str(ctx, "score"), ir_reshape(g, score, &each));
    ir_output(g, p->top_name = name_str(ctx, "top"), top);
    ir_output(g, p->top_score_name = name_str(ctx, "top.score"), ir_binary(g, OP_SUB, ir_pick(g, logits, top), sum));
}

/* The rows [texts, vocab] of the logits, one chosen for each text, become the only result, but for scores. */
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
    if (p->top)
        keep_scores(p, g, logits);
}

static void choose_graph(Predictor *p, const PredictorOptions *how)
{
    Session *s = p->session;
    bool recompute = how->recompute;
    Graph *predict = step_predict(p->source->unit->model, s->arena);
    DecodeRefusal no = {0};
    Graph *g = how->top ? decode_graph(predict, p->context, true, s->arena, &no) : NULL;
    p->each = g != NULL;
    if (!g)
        g = decode_graph(predict, p->context, false, s->arena, &no);
    p->in_order = g != NULL;
    if (!p->in_order && !decode_looks_ahead(predict, s->arena, &p->ahead))
        p->ahead = no;
    p->why_whole = g || recompute ? NULL
                                  : arena_printf(s->arena, "every token is predicted from the whole context: at %s, %s",
                                                 decode_place(s->ctx, s->arena, &no), no.why);
    if (recompute)
        g = NULL;
    p->whole = !g;
    p->goes_back = g && decode_goes_back(g);
    p->texts = p->whole ? 1 : how->texts;
    while (how->top && p->texts > 1 && p->texts * PREDICT_BLOCK > LOGITS_MOST / p->vocab)
        p->texts /= 2;
    p->graph = g ? g : predict;
    keep_rows(p, g ? g : predict);
}

static ProgramOptions options(const Predictor *p, int64_t T)
{
    return (ProgramOptions){
        .name = p->whole ? "predict" : "decode", .B = p->texts, .T = T, .share_arena = true, .per_row = !p->whole};
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
    ProgramOptions one = options(p, p->whole ? p->context : 1), many = options(p, PREDICT_BLOCK);
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

/* The program of positions[i], or the one of the whole context. */
static Program *program(Predictor *p, int i)
{
    if (p->program[i])
        return p->program[i];
    ProgramOptions how = options(p, p->whole ? p->context : positions[i]);
    BuildReport built = {0};
    p->program[i] = session_program(p->session, p->graph, &how, &built);
    session_warn(p->session, built.note);
    return p->program[i];
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
    p->target = p->top ? input(p, "target") : NULL;
    for (size_t i = 0; i < store_count(s->store); i++) {
        StoreEntry *e = store_at(s->store, i);
        if (e->kind == EXT_INPUT && e != p->tokens && e != p->rows && e != p->at && e != p->on && e != p->target)
            ctx_raise(s->ctx, ST_INPUT, "the model reads the input `%s`, which text does not give", e->name);
    }
}

/* ---- one run ---- */

static void put(const Predictor *p, StoreEntry *e, int64_t n, const int64_t *v)
{
    if (e)
        session_store_ok(p->session, store_put_i64(p->session->store, e, 0, n, v));
}

static void result(Predictor *p, Program *of, Name name, double *out, int64_t room)
{
    uint8_t rank;
    int64_t d[MAX_RANK];
    Status st = program_tensor(of, name, &rank, d, out, (size_t)room);
    if (st != ST_OK)
        ctx_raise(p->session->ctx, st, "%s", program_why(of));
}

static void run(Predictor *p, Program *of, uint64_t seed)
{
    Session *s = p->session;
    const Progress *progress = &p->source->checkpoint->progress;
    double vars[HV_COUNT];
    progress_vars(progress, (double)(progress->step - progress->from_step), 0, vars);
    RunArgs args = {vars, seed, 0, 0};
    session_run(s, of, &args);
    p->runs++;
}

static void run_next(Predictor *p, Program *of, uint64_t seed)
{
    run(p, of, seed);
    result(p, of, p->next, p->logits, p->texts * p->vocab);
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
        run_next(p, program(p, 0), 0);
        memcpy(first, p->logits, bytes);
        put_probe(p, at[i], 1);
        run_next(p, program(p, 0), 0);
        if (memcmp(first, p->logits, bytes) != 0)
            ctx_raise(s->ctx, ST_INPUT,
                      "%s, and what this model predicts at a position depends on later tokens: at %s, %s", p->use,
                      decode_place(s->ctx, s->arena, &p->ahead), p->ahead.why);
    }
}

void predictor_open(Predictor *p, Session *s, const Source *source, const PredictorOptions *how)
{
    const Model *m = source->unit->model;
    *p = (Predictor){.session = s, .source = source, .use = how->use, .context = m->context, .vocab = m->vocab};
    if (p->vocab <= 0)
        ctx_raise(s->ctx, ST_INPUT, "the model has no output `logits`: %s", p->use);
    if (!model_reads(m, "tokens"))
        ctx_raise(s->ctx, ST_INPUT, "the model reads no `tokens`: %s", p->use);
    p->top = how->top < p->vocab ? how->top : p->vocab;
    p->next = name_str(s->ctx, "next");
    session_open_backend(s);
    session_warn(s, s->note);
    choose_graph(p, how);
    fit(p);
    session_add_params(s, m);
    program(p, 0);
    p->averaged = source_load(s, source, how->last);
    find_inputs(p);
    size_t ids = (size_t)(p->whole ? p->context : p->texts * PREDICT_BLOCK);
    p->ids = NEW_ARRAY(s->arena, int64_t, ids);
    if (p->top) {
        p->targets = NEW_ARRAY(s->arena, int64_t, ids);
        p->score = NEW_ARRAY(s->arena, double, ids);
        p->top_id = NEW_ARRAY(s->arena, double, ids *(size_t)p->top);
        p->top_score = NEW_ARRAY(s->arena, double, ids *(size_t)p->top);
        p->row_on = NEW_ARRAY(s->arena, int64_t, 3 * (size_t)p->texts);
        p->row_at = p->row_on + p->texts;
        p->row_last = p->row_at + p->texts;
    }
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
        run_next(p, program(p, 0), seed);
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
static void compute(PredictWalk *w, int which, const int64_t *on)
{
    Predictor *p = w->p;
    Program *of = program(p, which); /* makes room for its inputs */
    int64_t count = positions[which];
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
    run_next(p, of, w->seed);
    for (size_t i = 0; i < w->n; i++)
        if (on[i] && w->text[i].n == w->at + count)
            w->ready(w->user, &w->text[i], p->logits + (int64_t)i * p->vocab);
}

/* The block that begins here, for the texts that are known to its end. */
static void begin_block(PredictWalk *w)
{
    int64_t on[PREDICT_TEXTS] = {0};
    bool any = false;
    w->block_end = w->at + PREDICT_BLOCK;
    for (size_t i = 0; i < w->n; i++) {
        w->in_block[i] = takes_part(w, i) && known_at_start(w, i) >= w->block_end;
        on[i] = w->in_block[i];
        any |= w->in_block[i];
    }
    if (!any)
        return;
    compute(w, BLOCKS, on);
}

static void advance(PredictWalk *w)
{
    int64_t context = w->p->context, start = window_start(w->at + 1, context);
    if (start > w->window)
        w->at = w->window = w->block_end = start;
    int64_t local = w->at - w->window;
    if (w->at >= w->block_end) {
        memset(w->in_block, 0, sizeof w->in_block);
        if (local % PREDICT_BLOCK == 0 && local + PREDICT_BLOCK <= context)
            begin_block(w);
    }
    int64_t on[PREDICT_TEXTS] = {0};
    bool any = false;
    for (size_t i = 0; i < w->n; i++) {
        on[i] = takes_part(w, i) && !w->in_block[i];
        any |= on[i] != 0;
    }
    if (any)
        compute(w, 0, on);
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

/* ---- rows at positions of their own ---- */

static int64_t left_of(const PredictRow *r) { return r->id ? r->n - r->at : 0; }

/* Which program computes the next positions of which rows; on[]: how many of each. */
static int choose_step(const Predictor *p, const PredictRow *row, int64_t *on)
{
    int64_t longest = 0, first = INT64_MAX;
    for (int64_t i = 0; i < p->texts; i++)
        if (left_of(&row[i]) > 0)
            first = row[i].at < first ? row[i].at : first;
    for (int64_t i = 0; i < p->texts; i++) {
        bool takes_part = p->each || row[i].at == first;
        on[i] = takes_part ? left_of(&row[i]) : 0;
        longest = on[i] > longest ? on[i] : longest;
    }
    if (p->whole)
        return 0;
    int which = BLOCKS;
    if (p->goes_back) /* positions behind a row's tokens are computed again when it has more */
        while (which && positions[which - 1] >= longest)
            which--;
    else
        while (which && positions[which] > longest)
            which--;
    for (int64_t i = 0; i < p->texts; i++)
        on[i] = on[i] > positions[which] ? positions[which] : p->goes_back || on[i] == positions[which] ? on[i] : 0;
    return which;
}

static void take_scores(Predictor *p, Program *of, PredictRow *row, const int64_t *on, int64_t count)
{
    int64_t all = p->texts * count;
    result(p, of, p->score_name, p->score, all);
    result(p, of, p->top_name, p->top_id, all * p->top);
    result(p, of, p->top_score_name, p->top_score, all * p->top);
    for (int64_t i = 0; i < p->texts; i++)
        for (int64_t k = 0; k < on[i] && row[i].score; k++) {
            int64_t from = i * count + k, to = row[i].at + k;
            row[i].score[to] = p->score[from];
            for (int64_t j = 0; j < p->top; j++) {
                row[i].top_id[to * p->top + j] = (int64_t)p->top_id[from * p->top + j];
                row[i].top_score[to * p->top + j] = p->top_score[from * p->top + j];
            }
        }
}

void predictor_feed(Predictor *p, PredictRow *row, uint64_t seed)
{
    int64_t *on = p->row_on, *at = p->row_at, *last = p->row_last;
    bool scores = false, next = false;
    int which = choose_step(p, row, on);
    int64_t count = p->whole ? p->context : positions[which];
    Program *of = program(p, which); /* makes room for its inputs */
    for (int64_t i = 0; i < p->texts; i++) {
        const PredictRow *r = &row[i];
        at[i] = on[i] ? r->at : 0;
        last[i] = i * count + (on[i] ? on[i] - 1 : 0);
        for (int64_t k = 0; k < count; k++) {
            bool is_there = k < on[i];
            p->ids[i * count + k] = is_there ? r->id[r->at + k] : 0;
            p->targets[i * count + k] = is_there && r->at + k + 1 < r->known ? r->id[r->at + k + 1] : 0;
        }
        scores |= on[i] && r->score;
        next |= on[i] && r->next && r->at + on[i] == r->n;
    }
    for (int64_t i = 0; !p->each && i < p->texts; i++)
        at[0] = on[i] ? row[i].at : at[0];
    put(p, p->tokens, p->texts * count, p->ids);
    put(p, p->target, p->texts * count, p->targets);
    put(p, p->rows, p->texts, last);
    put(p, p->at, p->each ? p->texts : 1, at);
    put(p, p->on, p->texts, on);
    run(p, of, seed);
    if (scores)
        take_scores(p, of, row, on, count);
    if (next)
        result(p, of, p->next, p->logits, p->texts * p->vocab);
    for (int64_t i = 0; i < p->texts; i++) {
        row[i].at += on[i];
        p->computed += on[i];
    }
}
