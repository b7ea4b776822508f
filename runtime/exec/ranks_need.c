/* ranks_need.c - what a run of several ranks takes, before there is one.
 *
 * In:  a model, its training, a number of ranks.   Out: memory of each, and what each sends in a step.
 * The one idea: a rank is a training of fewer lanes that updates some of the parameters (Train.owner); so its memory is planned as any
 * other's, and what it sends follows from how many numbers it has.
 */
#include "session.h"

#include "compiler/model/optimizer.h"

int64_t ranks_turn(int64_t longest, int ranks)
{
    enum { NUMBERS = 1 << 22 }; /* of all ranks */
    return longest < NUMBERS / ranks ? longest : NUMBERS / ranks;
}

const char *ranks_refused(Arena *a, int64_t lanes, int64_t ranks)
{
    Buf b = buf_new(a);
    size_t count = 0, i = 0;
    if (lanes % ranks == 0)
        return NULL;
    for (int64_t n = 1; n <= lanes; n *= 2)
        count++;
    for (int64_t n = 1; n <= lanes; n *= 2)
        buf_printf(&b, "%s%lld", list_gap(i++, count, " or "), (long long)n);
    const char *more = ranks & (ranks - 1) ? ""
                                           : arena_printf(a, ", or give `train` more lanes: `--set train.lanes=%lld`",
                                                          (long long)ranks);
    return arena_printf(a, "%lld processes cannot share the %lld lane%s of a step: start %s%s", (long long)ranks,
                        (long long)lanes, lanes == 1 ? "" : "s", b.s, more);
}

Train ranks_train(const Train *t, int ranks)
{
    Train own = *t;
    int64_t all = lanes_of(t->lanes).all, here = all / ranks;
    own.batch_seqs = t->batch_seqs / all * here;
    own.lanes = here;
    return own;
}

/* Elements of the parameters of each rank that `has` has. */
static int64_t *elements_of(const Model *m, const Train *t, bool (*has)(const Model *, const Train *, size_t),
                            int ranks, Arena *a, int64_t *longest)
{
    int64_t *n = NEW_ARRAY(a, int64_t, (size_t)ranks);
    for (size_t i = 0; i < m->param.n; i++)
        n[t->owner[i]] += has(m, t, i) ? m->param.v[i].elements : 0;
    for (int i = 0; i < ranks; i++)
        *longest = n[i] > *longest ? n[i] : *longest;
    return n;
}

uint64_t ranks_room(const Model *m, const Train *t, int ranks, Arena *a)
{
    int64_t longest = 0;
    const int64_t *own = elements_of(m, t, param_learns, ranks, a, &longest);
    uint64_t both = 2 * (uint64_t)(ranks_turn(longest, ranks) * ranks);
    return sizeof(float) * (both + (t->average ? (uint64_t)own[t->rank] : 0));
}

RanksNeed ranks_need(Ctx *ctx, const Model *m, const Train *train, const RanksAskNeed *how, Arena *a)
{
    int n = how->ranks;
    RanksNeed out = {.n = n, .memory = NEW_ARRAY(a, MemoryNeed, (size_t)n), .sent = NEW_ARRAY(a, uint64_t, (size_t)n)};
    Train t = ranks_train(train, n);
    int64_t longest = 0, widest = 0, all = 0;
    t.owner = param_owners(m, &t, n, a);
    t.ranks = n;
    out.memory[0] = session_memory(ctx, m, &t, how->batch, how->memory);
    const int64_t *own = elements_of(m, &t, param_is_trained, n, a, &longest);
    elements_of(m, &t, param_learns, n, a, &widest);
    for (int i = 0; i < n; i++)
        all += own[i];
    for (int i = 0; i < n; i++) {
        t.rank = i;
        if (i)
            out.memory[i] = session_memory_update(ctx, m, &t, how->batch, how->memory, &out.memory[0]);
        /* gradients of others go to them, its own weights to all others */
        out.sent[i] = sizeof(float) * (uint64_t)(all - own[i] + (n - 1) * own[i]);
    }
    int64_t each = ranks_turn(t.average ? widest : longest, n);
    enum { SMALL = 3 }; /* sums of squares, losses, whether somebody was interrupted */
    out.exchanges = SMALL + (each ? 2 * ((longest + each - 1) / each) : 0);
    return out;
}
