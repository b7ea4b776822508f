/* train_measure.c - what a growth step, or a beginning with the weights of a run, does: measured.
 *
 * In:  a Trainer whose programs are not built yet, with the step or the weights at hand.   Out: an event for each output,
 * how far it is from the old model's, and for each kind of new block, the norms of its gradient before and after
 * updates; a raise when outputs change by more than the file allows.
 * The one idea: the old model and the grown one each get a store of their own, which is given back before the run takes
 * its memory; so no number of the run comes from here, and nothing is kept when it stops.
 *
 * The work: W windows go once forward through each model, and three times forward and backward through the grown one,
 * 11 W passes with a backward pass as two; W is 3 / 11 of a batch, at least 1, so a step's 3 passes of a batch are more.
 */
#include <math.h>
#include <stdio.h>

#include "compiler/model/optimizer.h" /* param_is_trained */
#include "trainer.h"

enum { UPDATES = 2, OTHERS = 3, ROW_BLOCKS = 32, MOST_NUMBERS = 1 << 24 };

typedef struct Side {
    Session session;
    const Model *model;
    Program *outputs, *gradient, *update;
    Feed feed;
} Side;

/* An output of the grown model beside that of the old one. */
typedef struct Compared {
    const char *name;
    double change, largest; /* max |new - old|, max |old|: infinite when a number is none */
    int64_t numbers;        /* that both have; 0: they cannot be compared */
} Compared;

typedef double Norms[UPDATES + 1]; /* of a gradient after so many updates */

typedef struct NewBlock {
    size_t entry;
    GrowthRole role;
    Norms norm;
    GrowthContradiction contradicts; /* what these say of the proof, */
    int at;                          /* after so many updates; */
    bool excused;                    /* with other weights it has a gradient */
} NewBlock;

/* Blocks that differ in their layers alone, up to some. */
typedef struct BlockRow {
    const char *path, *role;
    size_t n;
    const NewBlock *block[ROW_BLOCKS];
} BlockRow;

typedef struct Measuring {
    Trainer *tr;
    const Model *before;
    const Checkpoint *old;
    CheckpointPart part; /* of the old one that is compared with */
    const GrowthPlan *plan;
    const GrowthProof *proof; /* NULL: the step is more than growth */
    double tolerance;
    const char *what; /* "the growth step `wider`" */
    const Split *split;
    int64_t windows, T;
    Side was, is;
    Compared *output;
    size_t n_output;
    NewBlock *block;
    size_t n_block;
} Measuring;

/* ---- both sides ---- */

static Program *build(Measuring *m, Side *side, const Graph *g, const char *name)
{
    BuildReport report = {0};
    ProgramOptions how = {.name = name,
                          .B = m->windows,
                          .T = m->T,
                          .share_arena = true,
                          .half = session_half(&side->session, m->tr->train)};
    return session_program(&side->session, g, &how, &report);
}

/* As the run will have it: the same weights, moments and averages. */
static void open_new(Measuring *m)
{
    Trainer *tr = m->tr;
    Side *side = &m->is;
    char why[WHY];
    Train *t = NEW(tr->session.arena, Train);
    *t = *tr->train;
    t->batch_seqs = t->micro_seqs = m->windows;
    t->lanes = 1;
    t->owner = NULL; /* each rank measures all of it */
    side->model = tr->model;
    session_beside(&side->session, &tr->session);
    Arena *a = side->session.arena;
    session_add_params(&side->session, tr->model);
    Drawing *drawing = session_begin_params(&side->session, tr->model, t->seed);
    if (m->n_output)
        side->outputs = build(m, side, step_outputs(tr->model, a), "new outputs");
    if (m->n_block) {
        side->gradient = build(m, side, step_gradient(tr->model, t, true, a), "probe");
        Graph *update = step_update(tr->model, t, a);
        program_write_copies(side->session.store, update);
        side->update = build(m, side, update, "probing update");
    }
    session_end_params(&side->session, drawing);
    checkpoint_hold(&side->session, tr->model, t);
    const GrowthCall grow = {.seed = t->seed, .number = tr->unit->grown, .weights_only = !m->n_block};
    if (tr->start)
        start_load(&side->session, tr->start);
    else if (!checkpoint_grow(&side->session, tr->growth.plan, tr->from, &grow, why))
        ctx_raise(tr->ctx, ST_INPUT, "%s", why);
    side->feed = feed_open(&side->session, m->split, m->windows, m->T);
}

static void open_old(Measuring *m)
{
    Side *side = &m->was;
    char why[WHY];
    side->model = m->before;
    session_beside(&side->session, &m->tr->session);
    session_add_params(&side->session, m->before);
    side->outputs = build(m, side, step_outputs(m->before, side->session.arena), "old outputs");
    if (!checkpoint_load(&side->session, m->before, m->old, m->part, why)) {
        session_leave(&side->session);
        if (m->tr->growth.plan)
            open_new(m); /* reading it through the plan says which tensor does not fit the step */
        ctx_raise(m->tr->ctx, ST_INPUT, "%s", why);
    }
    side->feed = feed_open(&side->session, m->split, m->windows, m->T);
}

/* ---- outputs ---- */

static void compare(Compared *c, const double *was, const int64_t *d, const double *is, const int64_t *e, int rank)
{
    int64_t at[MAX_RANK] = {0}, end[MAX_RANK];
    c->numbers = 1;
    for (int k = 0; k < rank; k++) {
        end[k] = d[k] < e[k] ? d[k] : e[k]; /* ids that came are at the end */
        c->numbers *= end[k];
    }
    for (int64_t i = 0; i < c->numbers; i++) {
        int64_t there = 0, here = 0;
        for (int k = 0; k < rank; k++) {
            there = there * d[k] + at[k];
            here = here * e[k] + at[k];
        }
        double change = fabs(is[here] - was[there]), size = fabs(was[there]);
        c->change = change <= c->change ? c->change : isnan(change) ? INFINITY : change;
        c->largest = size <= c->largest ? c->largest : isnan(size) ? INFINITY : size;
        for (int k = rank - 1; k >= 0 && ++at[k] == end[k]; k--)
            at[k] = 0;
    }
}

static const double *read_output(Session *s, Session *to, Program *p, const char *name, uint8_t *rank,
                                 int64_t d[MAX_RANK])
{
    for (size_t i = 0; i < program_results(p); i++) {
        if (strcmp(program_result_name(p, i), name))
            continue;
        size_t n = program_result_size(p, i);
        double *v = NEW_ARRAY(to->arena, double, n + 1);
        Status st = program_tensor(p, program_result_name(p, i), rank, d, v, n);
        if (st != ST_OK)
            ctx_raise(s->ctx, st, "%s", program_why(p));
        return v;
    }
    return NULL;
}

static void run(Side *side, Program *p, const double vars[HV_COUNT])
{
    RunArgs args = run_untrained(vars, 0);
    session_run(&side->session, p, &args);
}

/* Whether the old tables have every id of the windows that were read. */
static bool ids_known(const Model *before, const Feed *f)
{
    int64_t ids = model_ids(before), most = -1;
    for (int64_t i = 0; f->tokens && i < f->B * f->T; i++)
        most = f->token[i] > most ? f->token[i] : most;
    return !ids || most < ids;
}

/* The old ones are read before the new model takes its memory. */
typedef struct Kept {
    const double *v;
    uint8_t rank;
    int64_t d[MAX_RANK];
} Kept;

static Kept *run_old(Measuring *m)
{
    Session *s = &m->was.session, *to = &m->tr->session;
    Kept *kept = NEW_ARRAY(to->arena, Kept, m->n_output + 1);
    open_old(m);
    feed_fixed(&m->was.feed, m->split, 0, m->windows);
    bool known = ids_known(m->before, &m->was.feed);
    if (known)
        run(&m->was, m->was.outputs, m->tr->vars);
    for (size_t i = 0; i < m->n_output && known; i++)
        kept[i].v = read_output(s, to, m->was.outputs, m->output[i].name, &kept[i].rank, kept[i].d);
    session_leave(s);
    return kept;
}

static void compare_outputs(Measuring *m, const Kept *kept)
{
    Session *s = &m->is.session;
    feed_fixed(&m->is.feed, m->split, 0, m->windows);
    run(&m->is, m->is.outputs, m->tr->vars);
    for (size_t i = 0; i < m->n_output; i++) {
        ArenaMark mark = arena_mark(s->arena);
        uint8_t rank = 0;
        int64_t d[MAX_RANK];
        const double *now = read_output(s, s, m->is.outputs, m->output[i].name, &rank, d);
        if (now && kept[i].v && rank == kept[i].rank)
            compare(&m->output[i], kept[i].v, kept[i].d, now, d, rank);
        arena_reset(s->arena, mark);
    }
}

/* ---- gradients of new blocks ---- */

/* From one element of a tensor that is taken or grown to the next: where it is, and in which part,
 * along each axis. */
static void next_element(const GrowthEntry *e, size_t *part, int64_t *at)
{
    for (int k = e->after->shape.rank - 1; k >= 0; k--) {
        const GrowthPart *p = &e->axis[k].part[part[k]];
        if (++at[k] < p->at + p->count)
            break;
        if (++part[k] < e->axis[k].n)
            break;
        part[k] = 0;
        at[k] = 0;
    }
}

static double block_norm(const Measuring *m, const NewBlock *b, const double *grad)
{
    const GrowthEntry *e = &m->plan->entry[b->entry];
    double sum = 0;
    if (growth_added(e)) {
        for (int64_t i = 0; i < e->after->elements; i++)
            sum += grad[i] * grad[i];
        return sqrt(sum);
    }
    size_t part[MAX_RANK] = {0};
    int64_t at[MAX_RANK] = {0};
    for (int64_t i = 0; i < e->after->elements; i++, next_element(e, part, at))
        if (growth_role(e, part) == b->role)
            sum += grad[i] * grad[i];
    return sqrt(sum);
}

static void read_norms(Measuring *m, Norms *norm, int pass)
{
    Session *s = &m->is.session;
    double scale = m->tr->now.loss_scale > 0 ? m->tr->now.loss_scale : 1;
    for (size_t i = 0; i < m->n_block; i++) {
        const NewBlock *b = &m->block[i];
        const Param *p = m->plan->entry[b->entry].after;
        const StoreEntry *e = store_find(s->store, EXT_GRAD, p->path);
        ArenaMark mark = arena_mark(s->arena);
        double *grad = NEW_ARRAY(s->arena, double, p->elements + 1);
        session_store_ok(s, store_get_f64(s->store, e, 0, p->elements, grad));
        norm[i][pass] = block_norm(m, b, grad) / scale;
        arena_reset(s->arena, mark);
    }
}

/* norm[i]: of block i. */
static void probe(Measuring *m, Norms *norm)
{
    double vars[HV_COUNT];
    memcpy(vars, m->tr->vars, sizeof vars);
    feed_fixed(&m->is.feed, m->split, 0, m->windows);
    for (int pass = 0; pass <= UPDATES; pass++) {
        run(&m->is, m->is.gradient, vars);
        read_norms(m, norm, pass);
        if (pass < UPDATES)
            run(&m->is, m->is.update, vars);
        vars[HV_STEP]++;
        vars[HV_UPDATES]++;
        vars[HV_SKIPPED_UPDATES]++;
    }
}

/* ---- a proof holds for weights in general position ---- */

/* How far numbers of this size are apart, drawn as weights are. */
static double usual_size(const Param *p)
{
    int r = p->shape.rank;
    return r < 2 || p->shape.d[r - 2].n < 1 ? 0.5 : 1 / sqrt((double)p->shape.d[r - 2].n);
}

/* Old numbers, and copies of them, become others: first near what they are, then as they might have
 * been. */
static void put_others(Measuring *m, int draw)
{
    Session *s = &m->is.session;
    for (size_t i = 0; i < m->plan->n; i++) {
        const GrowthEntry *e = &m->plan->entry[i];
        if ((e->kind != GROWTH_TAKEN && e->kind != GROWTH_GROWN) || e->after->buffer || !e->after->elements)
            continue;
        StoreEntry *to = store_find(s->store, EXT_PARAM, e->path);
        ArenaMark mark = arena_mark(s->arena);
        int64_t n = e->after->elements, at[MAX_RANK] = {0};
        size_t part[MAX_RANK] = {0};
        double *w = NEW_ARRAY(s->arena, double, n + 1), *by = NEW_ARRAY(s->arena, double, n + 1);
        double sum = 0;
        Param drawn = *e->after;
        drawn.init = (Init){.kind = INIT_UNIFORM, .a = -1, .b = 1};
        param_init(&drawn, (uint64_t)draw + 1, by);
        session_store_ok(s, store_get_f64(s->store, to, 0, n, w));
        for (int64_t k = 0; k < n; k++)
            sum += w[k] * w[k] / (double)n;
        double size = draw ? usual_size(e->after) / draw : fmax(sqrt(sum), 1e-2);
        for (int64_t k = 0; k < n; k++, next_element(e, part, at))
            if (growth_taken(e, part))
                w[k] = (draw ? e->after->shape.rank < 2 : w[k]) + size * by[k];
        session_store_ok(s, store_put_f64(s->store, to, 0, n, w));
        arena_reset(s->arena, mark);
    }
}

/* Whether a part has its rate from the first update on: else that may be 0 for a time. */
static bool moves_at_once(const PartRate *r)
{
    double x;
    return !r->said || (host_is_const(r->scale, &x) && !r->warmup);
}

/* Whether what the proof says of updates holds of these: each has moved everything that is not barred, and by amounts that depend on
 * the gradient's size, for numbers that move by one amount, as those of lion, are back where they were after two. */
static bool all_moved(const Measuring *m)
{
    const Optimizer *o = &m->tr->train->optimizer;
    bool sizes = strcmp(o->kind, "lion") && (!o->second || strcmp(o->second->kind, "lion"));
    double x = 1;
    bool second = !o->second || !o->second->lr || (host_is_const(o->second->lr, &x) && x > 0);
    return sizes && second && m->tr->lr > 0 && moves_at_once(&m->plan->step->fresh) &&
           moves_at_once(&m->plan->step->old);
}

static double largest_norm(const Measuring *m)
{
    double most = fmax(0, m->tr->now.grad_norm); /* what is no number is smaller than all */
    for (size_t i = 0; i < m->n_block; i++)
        most = fmax(most, m->block[i].norm[0]);
    return most;
}

static GrowthContradiction contradiction(const Measuring *m, const NewBlock *b, const double *norm, int *at)
{
    return growth_contradiction(&m->proof->life[b->entry], b->role, norm, UPDATES + 1, largest_norm(m), all_moved(m),
                                at);
}

/* Whether every position that was read is a document of its own: none sees another, so nothing chooses among positions. */
static bool single_positions(const Measuring *m)
{
    const Feed *f = &m->is.feed;
    for (int64_t i = 1; f->document && i < f->B * f->T; i++)
        if (i % f->T && f->begin[i] == f->begin[i - 1])
            return false;
    return f->document != NULL;
}

/* What the norms say of the proof. A block that has no gradient has one with other old weights where
 * the proof is right, which speaks of weights in general position: streams that are still the same,
 * or what is still 0, are not. `norm`: room. */
static void compare_life(Measuring *m, Norms *norm)
{
    bool open = false, single = single_positions(m);
    int at;
    for (size_t i = 0; i < m->n_block; i++) {
        NewBlock *b = &m->block[i];
        b->contradicts = contradiction(m, b, b->norm, &b->at);
        b->excused = single;
        open |= b->contradicts == HAS_NONE && !b->excused;
    }
    for (int draw = 0; open && draw < OTHERS; draw++) {
        put_others(m, draw);
        probe(m, norm);
        open = false;
        for (size_t i = 0; i < m->n_block; i++) {
            NewBlock *b = &m->block[i];
            b->excused |= contradiction(m, b, norm[i], &at) != HAS_NONE;
            open |= b->contradicts == HAS_NONE && !b->excused;
        }
    }
}

static void probe_all(Measuring *m)
{
    Norms *norm = NEW_ARRAY(m->tr->session.arena, Norms, m->n_block + 1);
    probe(m, norm);
    for (size_t i = 0; i < m->n_block; i++)
        memcpy(m->block[i].norm, norm[i], sizeof norm[i]);
    if (m->proof && m->proof->trained)
        compare_life(m, norm);
}

/* The new blocks that are trained. */
static void find_blocks(Measuring *m)
{
    const Model *after = m->plan->step->after; /* the parameters of the grown model, in its order */
    m->block = NEW_ARRAY(m->tr->session.arena, NewBlock, m->plan->n * (ROLE_OWN + 1u) + 1);
    for (size_t i = 0; i < m->plan->n; i++) {
        const GrowthEntry *e = &m->plan->entry[i];
        bool roles[ROLE_OWN + 1] = {growth_added(e)};
        size_t part[MAX_RANK] = {0};
        if (!e->after || !param_is_trained(m->tr->model, m->tr->train, (size_t)(e->after - after->param.v)) ||
            !e->after->elements)
            continue;
        for (int k = e->kind == GROWTH_GROWN && !growth_added(e) ? 0 : -1; k >= 0;) {
            GrowthRole r = growth_role(e, part);
            roles[r] |= r != ROLE_OLD;
            for (k = e->after->shape.rank - 1; k >= 0 && ++part[k] == e->axis[k].n; k--)
                part[k] = 0;
        }
        for (int r = ROLE_OLD; r <= ROLE_OWN; r++)
            if (roles[r])
                m->block[m->n_block++] = (NewBlock){.entry = i, .role = (GrowthRole)r};
    }
}

/* ---- telling ---- */

static void put_output(JsonText *t, const void *of)
{
    const Compared *c = of;
    json_put_string(t, "output", c->name);
    json_put_integer(t, "compared", c->numbers);
    json_put_number(t, "max_change", c->change);
    json_put_number(t, "largest", c->largest);
}

static void put_block(JsonText *t, const void *of)
{
    const BlockRow *r = of;
    json_put_string(t, "path", r->path);
    json_put_string(t, "role", r->role);
    json_open(t, "grad_norm", '['); /* after 0, 1 and 2 updates: of each layer */
    for (int pass = 0; pass <= UPDATES; pass++) {
        json_open(t, NULL, '[');
        for (size_t i = 0; i < r->n; i++)
            json_put_number(t, NULL, r->block[i]->norm[pass]);
        json_close(t, ']');
    }
    json_close(t, ']');
}

/* Whether a product sums over more numbers than before: then the order of a sum may be another one. */
static bool sums_grew(const Measuring *m)
{
    bool grew = false;
    for (size_t i = 0; i < m->plan->n; i++)
        for (int k = 0; m->plan->entry[i].kind == GROWTH_GROWN && k < m->plan->entry[i].after->shape.rank; k++)
            grew |= m->plan->entry[i].axis[k].reads &&
                    m->plan->entry[i].after->shape.d[k].n > m->plan->entry[i].before->shape.d[k].n;
    return grew;
}

/* What rounding alone may change. */
static double rounding(const Measuring *m, const Compared *c)
{
    return (session_half(&m->tr->session, m->tr->train) == HALF_NONE ? 1e-5 : 3e-2) * (1 + c->largest);
}

static void report_output(Measuring *m, const Compared *c)
{
    Buf b = buf_new(m->tr->session.arena);
    buf_printf(&b, "`%s`: ", c->name);
    if (!c->numbers)
        buf_puts(&b, "the old model has none that could be compared");
    else if (c->change == 0)
        buf_puts(&b, "max |new - old| is 0: the same bits");
    else
        buf_printf(&b, "max |new - old| is %.3g%s", c->change,
                   !(c->change <= rounding(m, c)) ? ""
                   : sums_grew(m)                 ? ": rounding, sums became longer"
                                                  : ": as small as rounding");
    if (c->numbers)
        buf_printf(&b, ", max |old| %.3g, on %lld held-out %s of %lld", c->largest, (long long)m->windows,
                   m->windows == 1 ? "window" : "windows", (long long)m->T);
    train_row(m->tr, VWN_EVENT_OUTPUT, put_output, c, b.s);
}

static void report_block(Measuring *m, const BlockRow *r)
{
    static const char *const when[UPDATES + 1] = {"at once", "after 1 update", "after 2"};
    Buf b = buf_new(m->tr->session.arena);
    buf_printf(&b, "%s%s%s", r->path, *r->role ? " " : "", r->role);
    if (r->n > 1)
        buf_printf(&b, " (%zu)", r->n);
    buf_puts(&b, ": gradient norm ");
    for (int pass = 0; pass <= UPDATES; pass++) {
        double least = r->block[0]->norm[pass], most = least;
        for (size_t i = 1; i < r->n; i++) {
            least = fmin(least, r->block[i]->norm[pass]);
            most = fmax(most, r->block[i]->norm[pass]);
        }
        buf_printf(&b, pass ? ", %.2g" : "%.2g", least);
        if (most > least)
            buf_printf(&b, " to %.2g", most);
        buf_printf(&b, " %s", when[pass]);
    }
    train_row(m->tr, VWN_EVENT_BLOCK, put_block, r, b.s);
}

static void report_blocks(Measuring *m)
{
    static const char *const role[] = {"", "entry", "exit", "inner", "own"};
    Arena *a = m->tr->session.arena;
    BlockRow *row = NEW_ARRAY(a, BlockRow, m->n_block + 1);
    size_t n = 0;
    for (size_t i = 0; i < m->n_block; i++) {
        const NewBlock *b = &m->block[i];
        const char *path = path_pattern(a, m->plan->entry[b->entry].path);
        size_t k = 0;
        while (k < n && (row[k].n == ROW_BLOCKS || strcmp(row[k].path, path) || row[k].role != role[b->role]))
            k++;
        if (k == n)
            row[n++] = (BlockRow){.path = path, .role = role[b->role]};
        row[k].block[row[k].n++] = b;
    }
    for (size_t i = 0; i < n; i++)
        report_block(m, &row[i]);
}

/* ---- proof and measurement ---- */

static const char report_it[] = "this is a bug of vwn, please report it with the file";

static void expect_outputs(Measuring *m)
{
    bool proved = m->proof && m->proof->preserved;
    for (size_t i = 0; i < m->n_output; i++) {
        const Compared *c = &m->output[i];
        bool rounded = c->change <= rounding(m, c);
        if (!c->numbers || c->change <= m->tolerance || (rounded && (proved || m->tolerance == INFINITY)))
            continue;
        const char *reason =
            !isfinite(c->change) || !isfinite(c->largest) ? "; numbers left the range of float32"
            : proved ? arena_printf(m->tr->session.arena, "; vwn proved that it does not change: %s", report_it)
                     : "";
        if (isfinite(m->tolerance))
            ctx_raise(m->tr->ctx, ST_DIVERGED,
                      "%s changed the output `%s` by up to %.3g (it is up to %.3g), and the file says `preserves` "
                      "%g%s; nothing "
                      "was kept of it",
                      m->what, c->name, c->change, c->largest, m->tolerance, reason);
        if (proved)
            train_event(m->tr, VWN_EVENT_WARNING, "%s changed the output `%s`%s", m->what, c->name, reason);
    }
}

static void expect_life(Measuring *m)
{
    const NewBlock *first = NULL;
    size_t excused = 0;
    for (size_t i = 0; i < m->n_block; i++) {
        const NewBlock *b = &m->block[i];
        if (b->contradicts == HAS_NONE && b->excused) {
            first = first ? first : b;
            excused++;
        } else if (b->contradicts != FITS) {
            train_event(
                m->tr, VWN_EVENT_WARNING,
                b->contradicts == HAS_ONE
                    ? "`%s` has a gradient after %d updates, and vwn proved that it has none: %s"
                    : "`%s` has no gradient after %d updates on these windows, and vwn proved that it has one: %s",
                m->plan->entry[b->entry].path, b->at, report_it);
        }
    }
    if (excused)
        train_event(m->tr, VWN_EVENT_NOTE,
                    "`%s`%s: no gradient after %d updates with these weights, and one with others: streams or "
                    "copies that are the same stay so, and what is zero may",
                    m->plan->entry[first->entry].path,
                    excused > 1 ? arena_printf(m->tr->session.arena, " and %zu more", excused - 1) : "", first->at);
}

/* ---- what is measured ---- */

/* The grown model has every input of the old one, so its data is for both. */
static bool same_inputs(const Model *was, const Model *is)
{
    for (size_t i = 0; i < was->graph->ext.n; i++) {
        const Ext *e = &was->graph->ext.v[i];
        bool met = e->kind != EXT_INPUT;
        for (size_t k = 0; k < is->graph->ext.n && !met; k++) {
            const Ext *f = &is->graph->ext.v[k];
            met = f->kind == EXT_INPUT && f->name == e->name && f->dtype == e->dtype && shape_eq(&f->shape, &e->shape);
        }
        if (!met)
            return false;
    }
    return true;
}

static const Split *held_out(Measuring *m)
{
    Trainer *tr = m->tr;
    const Train *t = tr->train;
    const Split *split = tr->eval_split ? tr->eval_split : &tr->data->train;
    if (m->T == t->context || split->arrays)
        return split;
    bool other = t->eval_data.kind != DATA_NONE && tr->eval_split;
    DataOptions how = {.spec = other ? &t->eval_data : &t->data,
                       .tokenizer = &t->tokenizer,
                       .known = tr->data->tokenizer,
                       .context = m->T,
                       .model = tr->model};
    Data *d = data_open(&tr->session, &how);
    return other || !tr->eval_split ? &d->train : &d->val;
}

static void prepare(Measuring *m)
{
    Trainer *tr = m->tr;
    Arena *a = tr->session.arena;
    if (tr->start) {
        GrowStep *step = NEW(a, GrowStep);
        *step = (GrowStep){.name = name_str(tr->ctx, "start"), .before = m->before, .after = tr->model};
        m->plan = growth_plan(step, a);
        m->tolerance = tr->start->spec->preserves;
        m->what = "beginning with these weights";
    } else {
        m->plan = tr->growth.plan;
        m->tolerance = tr->growth.plan->step->tolerance;
        m->what = arena_printf(a, "the growth step `%s`", tr->growth.plan->step->name);
    }
    bool grows = true;
    for (size_t i = 0; i < m->plan->n; i++)
        grows &= m->plan->entry[i].kind != GROWTH_CUT && m->plan->entry[i].kind != GROWTH_LEFT;
    m->proof = grows ? growth_prove(m->plan, a) : NULL;
    if (m->proof && m->proof->too_large) {
        train_event(tr, VWN_EVENT_NOTE,
                    "%s: nothing is proved of it, that takes more than %d MiB; what it does is measured all "
                    "the same",
                    m->what, PROOF_MIB);
        m->proof = NULL;
    }
    m->T = m->before->context < tr->train->context ? m->before->context : tr->train->context;
    m->split = held_out(m);
    int64_t numbers = 1, all = split_fixed_windows(m->split);
    for (size_t i = 0; i < tr->model->output.n; i++)
        numbers += m->T * (tr->model->vocab > 0 ? tr->model->vocab : 1024);
    m->windows = 3 * tr->train->batch_seqs / 11;
    if (m->windows > all)
        m->windows = all;
    if (m->windows > MOST_NUMBERS / numbers)
        m->windows = MOST_NUMBERS / numbers;
    if (m->windows < 1)
        m->windows = 1;
    if (same_inputs(m->before, tr->model))
        m->n_output = tr->model->output.n;
    m->output = NEW_ARRAY(a, Compared, m->n_output + 1);
    const Graph *g = m->n_output ? step_outputs(tr->model, a) : NULL;
    for (size_t i = 0; i < m->n_output; i++)
        m->output[i].name = g->out.v[i].name;
    find_blocks(m);
}

void train_measure(Trainer *tr)
{
    Measuring *m = NEW(tr->session.arena, Measuring);
    *m = (Measuring){.tr = tr, .part = CHECKPOINT_WEIGHTS};
    if (tr->start && !tr->start->unit)
        return; /* a file of weights without its model */
    m->before = tr->start ? tr->start->unit->model : tr->growth.plan->step->before;
    m->old = tr->start ? tr->start->checkpoint : tr->from;
    if (tr->start && tr->start->average)
        m->part = CHECKPOINT_AVERAGE;
    train_set_vars(tr, 0);
    tr->lr = train_rate(tr, tr->now.step);
    prepare(m);
    if (!m->n_output && !m->n_block)
        return;
    const Kept *kept = m->n_output ? run_old(m) : NULL;
    open_new(m);
    if (kept)
        compare_outputs(m, kept);
    if (m->n_block)
        probe_all(m);
    session_leave(&m->is.session);
    for (size_t i = 0; i < m->n_output; i++)
        report_output(m, &m->output[i]);
    report_blocks(m);
    expect_outputs(m);
    expect_life(m);
}
