/* train_share.c - what each rank of a run has for itself.
 *
 * In:  gradients of the lanes of each rank.   Out: the same new weights in all of them.
 * The one idea: parameters stand in one order, and each rank updates a range of them (param_owners()): gradients go to the rank that
 * updates what they are of, which adds them up over all ranks, and new weights go from it to all. Nobody else has states of them.
 * So a step sends what a ring would, and the states of a model are there once.
 */
#include <stdio.h>

#include "compiler/model/optimizer.h"
#include "runtime/base/machine.h"
#include "trainer.h"

/* Tensors one behind the other, of which each rank has a range. */
struct TrainOrder {
    StoreEntry **entry;
    int64_t *at; /* where each begins; behind the last: all numbers */
    size_t n;
    int64_t *first,
        longest; /* where the range of each rank begins; behind the last: all numbers. Numbers of the longest */
};

static Ranks *ranks_of(const Trainer *tr) { return tr->session.owner->ranks; }
static size_t item_of(const Trainer *tr) { return tr->session.backend ? sizeof(float) : sizeof(double); }

void train_own(const Trainer *tr, const Model *m, Train *t)
{
    const Ranks *r = ranks_of(tr);
    t->owner = r ? param_owners(m, t, ranks_size(r), tr->session.arena) : NULL;
    t->rank = r ? ranks_rank(r) : 0;
    t->ranks = r ? ranks_size(r) : 1;
}

/* ---- which tensors ---- */

typedef bool HasParam(const Model *m, const Train *t, size_t i);

/* `first`: a tensor of rank 0 in front of the others, or NULL. */
static TrainOrder *order_of(const Trainer *tr, ExtKind kind, HasParam *has, StoreEntry *first)
{
    const Model *m = tr->model;
    const Train *t = tr->train;
    Arena *a = tr->session.arena;
    int size = ranks_size(ranks_of(tr)), rank = 0;
    TrainOrder *o = NEW(a, TrainOrder);
    o->entry = NEW_ARRAY(a, StoreEntry *, m->param.n + 2);
    o->at = NEW_ARRAY(a, int64_t, m->param.n + 2);
    o->first = NEW_ARRAY(a, int64_t, (size_t)size + 1);
    if (first) {
        o->entry[o->n++] = first;
        o->at[1] = first->elements;
    }
    for (size_t i = 0; i < m->param.n; i++) {
        if (!has(m, t, i))
            continue;
        while (rank < t->owner[i])
            o->first[++rank] = o->at[o->n];
        o->entry[o->n] = store_find(tr->session.store, kind, m->param.v[i].path);
        o->at[o->n + 1] = o->at[o->n] + o->entry[o->n]->elements;
        o->n++;
    }
    while (rank < size)
        o->first[++rank] = o->at[o->n];
    for (int i = 0; i < size; i++)
        o->longest = o->first[i + 1] - o->first[i] > o->longest ? o->first[i + 1] - o->first[i] : o->longest;
    return o;
}

/* States of the whole model get a place in the store, with memory where they are this rank's: names and shapes are those of an
 * update of all parameters. */
static void place_states(Trainer *tr)
{
    Session *s = &tr->session;
    const Model *m = tr->model;
    ArenaMark mark = arena_mark(s->arena);
    Train whole = *tr->train;
    whole.owner = NULL;
    const Graph *g = step_update(m, &whole, s->arena);
    Map of; /* path -> parameter, from 1 */
    map_init(&of, s->arena);
    for (size_t i = 0; i < m->param.n; i++)
        *map_at(&of, (uintptr_t)m->param.v[i].path) = (void *)(uintptr_t)(i + 1);
    for (size_t i = 0; i < g->ext.n; i++) {
        const Ext *e = &g->ext.v[i];
        StoreEntry *there;
        int64_t d[MAX_RANK] = {0};
        if (e->kind != EXT_STATE)
            continue;
        const char *which = strrchr(e->name, ':');
        Name path = which ? name_printf(s->ctx, "%.*s", (int)(which - e->name), e->name) : NULL;
        size_t k = path ? (size_t)(uintptr_t)map_get(&of, (uintptr_t)path) : 0;
        if (!k)
            vwn_bug(s->ctx, "the state %s is of no parameter", e->name);
        for (int j = 0; j < e->shape.rank; j++)
            d[j] = e->shape.d[j].n;
        session_store_ok(s, store_add_held(s->store, EXT_STATE, e->name, e->shape.rank, d, tr->train->owner[k - 1],
                                           param_is_here(tr->train, k - 1), &there));
    }
    arena_reset(s->arena, mark);
}

void train_share(Trainer *tr)
{
    Store *s = tr->session.store;
    Ranks *r = ranks_of(tr);
    if (!r)
        return;
    place_states(tr);
    const Train *t = tr->train;
    TrainShare *share = tr->share = NEW(tr->session.arena, TrainShare);
    StoreEntry *loss = t->decides ? store_find(s, EXT_STEP, name_str(tr->ctx, "loss")) : NULL;
    share->loss = loss;
    share->squares = store_find(s, EXT_STEP, name_str(tr->ctx, "squares"));
    share->gradients = order_of(tr, EXT_GRAD, param_is_trained, loss);
    share->weights = order_of(tr, EXT_PARAM, param_is_trained, NULL);
    if (t->average)
        share->learning = order_of(tr, EXT_PARAM, param_learns, NULL);
    int64_t size = ranks_size(r), longest = share->gradients->longest;
    if (share->learning && share->learning->longest > longest)
        longest = share->learning->longest;
    share->each = ranks_turn(longest, (int)size);
    share->numbers = arena_alloc_array(tr->session.arena, (size_t)(share->each * size) + 1, item_of(tr));
    if (share->learning) {
        int rank = ranks_rank(r);
        int64_t own = share->learning->first[rank + 1] - share->learning->first[rank];
        share->set_aside = arena_alloc_array(tr->session.arena, (size_t)own + 1, item_of(tr));
    }
    share->spent = arena_alloc_array(tr->session.arena, (size_t)size, sizeof *share->spent);
    share->square = NEW_ARRAY(tr->session.arena, double, share->weights->n + 1);
}

/* ---- numbers in and out ---- */

/* n numbers of a tensor, from `at` on. */
static void move_entry(Trainer *tr, StoreEntry *e, int64_t at, int64_t n, char *numbers, bool back)
{
    Session *s = &tr->session;
    if (s->backend)
        session_store_ok(s, back ? store_put_f32(s->store, e, at, n, (float *)numbers)
                                 : store_get_f32(s->store, e, at, n, (float *)numbers));
    else
        session_store_ok(s, back ? store_put_f64(s->store, e, at, n, (double *)numbers)
                                 : store_get_f64(s->store, e, at, n, (double *)numbers));
}

/* Numbers from .. from + n - 1 of all, out of the store or back into it. */
static void move_numbers(Trainer *tr, const TrainOrder *o, int64_t from, int64_t n, char *numbers, bool back)
{
    size_t i = 0, hi = o->n;
    while (hi - i > 1) { /* the tensor that `from` lies in */
        size_t mid = i + (hi - i) / 2;
        *(o->at[mid] <= from ? &i : &hi) = mid;
    }
    for (int64_t end = from + n; from < end; i++) {
        int64_t more = (o->at[i + 1] < end ? o->at[i + 1] : end) - from;
        move_entry(tr, o->entry[i], from - o->at[i], more, numbers, back);
        numbers += (size_t)more * item_of(tr);
        from += more;
    }
}

/* Numbers of a range that are on their way together. */
static int64_t turn_of(const TrainOrder *o, int rank, int64_t at, int64_t each, int64_t *from)
{
    int64_t left = o->first[rank + 1] - o->first[rank] - at;
    *from = o->first[rank] + at;
    return left < 0 ? 0 : left < each ? left : each;
}

/* Each rank's range to it, or from it. Bytes that were sent. */
static uint64_t exchange(Trainer *tr, const TrainOrder *o, bool scatter)
{
    Ranks *r = ranks_of(tr);
    TrainShare *share = tr->share;
    size_t item = item_of(tr);
    int size = ranks_size(r), own = ranks_rank(r);
    RankPiece part[RANKS_MOST];
    uint64_t before = ranks_spent(r).sent;
    for (int64_t at = 0, from; at < o->longest; at += share->each) {
        for (int i = 0; i < size; i++) {
            int64_t n = turn_of(o, i, at, share->each, &from);
            part[i] = (RankPiece){share->numbers + (size_t)(i * share->each) * item, (size_t)n * item};
            if (scatter || i == own)
                move_numbers(tr, o, from, n, part[i].bytes, false);
        }
        train_check(tr, scatter ? ranks_scatter(r, part, item) : ranks_spread(r, part));
        for (int i = 0; i < size; i++) {
            int64_t n = turn_of(o, i, at, share->each, &from);
            if (scatter == (i == own))
                move_numbers(tr, o, from, n, part[i].bytes, true);
        }
    }
    return ranks_spent(r).sent - before;
}

/* ---- a step ---- */

void train_add_gradients(Trainer *tr)
{
    if (tr->share)
        tr->share->sent += exchange(tr, tr->share->gradients, true);
}

/* As the reference or a backend adds up. */
static double plus(const Trainer *tr, double a, double b)
{
    return tr->session.backend ? (double)((float)a + (float)b) : a + b;
}

void train_add_squares(Trainer *tr, const RunArgs *args)
{
    Ranks *r = ranks_of(tr);
    TrainShare *share = tr->share;
    Session *s = &tr->session;
    if (!r)
        return;
    /* one number of each trained parameter, in their order, and before them the loss */
    const TrainOrder *o = share->weights;
    RankPiece part[RANKS_MOST];
    int rank = ranks_rank(r);
    double *v = share->square, sum = 0;
    for (int i = 0; i < ranks_size(r); i++)
        part[i] = (RankPiece){v, 0};
    part[0].n = sizeof *v;
    size_t at = 1;
    for (size_t i = 0; i < tr->model->param.n; i++)
        if (param_is_trained(tr->model, tr->train, i)) {
            RankPiece *p = &part[tr->train->owner[i]];
            p->bytes = p->n ? p->bytes : v + at;
            p->n += sizeof *v;
            at++;
        }
    if (tr->program.squares)
        session_run(s, tr->program.squares, args);
    double *own = (double *)part[rank].bytes + (rank == 0);
    for (size_t i = 0; i < tr->model->param.n; i++)
        if (param_is_trained(tr->model, tr->train, i) && param_is_here(tr->train, i) &&
            program_scalar(tr->program.squares, tr->model->param.v[i].path, own++) != ST_OK)
            ctx_raise(tr->ctx, ST_ENVIRONMENT, "%s", program_why(tr->program.squares));
    if (share->loss && rank == 0)
        session_store_ok(s, store_get_f64(s->store, share->loss, 0, 1, v));
    train_check(tr, ranks_spread(r, part));
    for (size_t i = 0; i < o->n; i++)
        sum = i ? plus(tr, sum, v[i + 1]) : v[i + 1];
    session_store_ok(s, store_put_f64(s->store, share->squares, 0, 1, &sum));
    if (share->loss)
        session_store_ok(s, store_put_f64(s->store, share->loss, 0, 1, v));
}

void train_spread_weights(Trainer *tr)
{
    if (tr->share)
        tr->share->sent += exchange(tr, tr->share->weights, false);
}

/* Into the weights of this rank. */
static void put_averages(Trainer *tr)
{
    Session *s = &tr->session;
    int64_t most = tr->share->each * ranks_size(ranks_of(tr));
    for (size_t i = 0; i < tr->model->param.n; i++) {
        const Param *p = &tr->model->param.v[i];
        if (!param_learns(tr->model, tr->train, i) || !param_is_here(tr->train, i))
            continue;
        for (int64_t at = 0; at < p->elements; at += most) {
            int64_t n = p->elements - at < most ? p->elements - at : most;
            move_entry(tr, checkpoint_state(s, p, STATE_AVERAGE), at, n, tr->share->numbers, false);
            move_entry(tr, checkpoint_entry(s, p), at, n, tr->share->numbers, true);
        }
    }
}

void train_swap_averages(Trainer *tr, bool in)
{
    TrainShare *share = tr->share;
    if (!share || !share->learning)
        return;
    const TrainOrder *o = share->learning;
    int rank = ranks_rank(ranks_of(tr));
    move_numbers(tr, o, o->first[rank], o->first[rank + 1] - o->first[rank], share->set_aside, !in);
    if (in)
        put_averages(tr);
    exchange(tr, o, false);
}

/* ---- what it takes ---- */

void train_begin_spent(Trainer *tr)
{
    TrainShare *share = tr->share;
    if (!share)
        return;
    share->told = clock_seconds();
    share->before = ranks_spent(ranks_of(tr));
    share->sent_before = share->sent;
}

void train_gather_spent(Trainer *tr)
{
    TrainShare *share = tr->share;
    Ranks *r = ranks_of(tr);
    if (!share)
        return;
    const RanksSpent now = ranks_spent(r);
    double *own = share->spent[ranks_rank(r)];
    own[SPENT_WAITING] = now.waiting - share->before.waiting;
    own[SPENT_COMMUNICATING] = now.moving - share->before.moving;
    own[SPENT_COMPUTING] = clock_seconds() - share->told - own[SPENT_WAITING] - own[SPENT_COMMUNICATING];
    own[SPENT_SENT] = (double)(share->sent - share->sent_before);
    own[SPENT_MEMORY] = (double)tr->bytes;
    train_check(tr, ranks_gather(r, share->spent, sizeof *share->spent));
    train_begin_spent(tr);
}
