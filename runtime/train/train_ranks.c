/* train_ranks.c - a run of several processes.
 *
 * In:  a Trainer, and the ranks of its context.   Out: the same weights in all of them.
 * The one idea: a rank computes lanes of each step, and what it lacks of the others' is exchanged where it is needed: sums of
 * gradients before an update, numbers of losses when they are read. So everything behind that is the same everywhere, and
 * needs no exchange: growth, decisions, the end. Rank 0 alone writes.
 */
#include <stdio.h>

#include "runtime/base/machine.h"
#include "runtime/base/sha256.h"
#include "trainer.h"

static Ranks *ranks_of(const Trainer *tr) { return tr->session.owner->ranks; }
bool train_writes(const Trainer *tr) { return !ranks_of(tr) || ranks_rank(ranks_of(tr)) == 0; }

static void check(Trainer *tr, bool fine)
{
    if (fine)
        return;
    if (tr->session.owner->interrupted) /* as others were, perhaps before they could listen */
        ctx_raise(tr->ctx, ST_INTERRUPTED, "interrupted: %s", ranks_why(ranks_of(tr)));
    ctx_raise(tr->ctx, ST_ENVIRONMENT, "%s", ranks_why(ranks_of(tr)));
}

/* ---- the beginning ---- */

/* What has to be the same in all ranks, as text of one of them. */
typedef struct Fact {
    const char *name; /* "rank 2 has another NAME than rank 0" */
    bool vital;       /* else it is said */
    char hash[65];
} Fact;
enum { FACTS = 6 };

static void hash_fact(Fact *f, const char *name, bool vital, const char *text)
{
    Sha256 s;
    sha256_start(&s);
    sha256_add(&s, text, strlen(text));
    *f = (Fact){name, vital, ""};
    sha256_hex(&s, f->hash);
}

void train_agree(Trainer *tr)
{
    Ranks *r = ranks_of(tr);
    Arena *a = tr->session.arena;
    if (!r)
        return;
    size_t size = (size_t)ranks_size(r), own = (size_t)ranks_rank(r);
    Fact fact[FACTS];
    Buf processor = buf_new(a);
    Buf text = buf_new(a);
    machine_processor(&processor);
    data_fingerprint(tr->data, &text);
    if (tr->eval_data)
        data_fingerprint(tr->eval_data, &text);
    hash_fact(&fact[0], "version of vwn", true, tr->hooks->build);
    hash_fact(&fact[1], "text to train on", true, text.s);
    hash_fact(&fact[2], "file, or other settings,", true,
              arena_printf(a, "%lld %d %s", (long long)tr->stop_at, tr->how->resume, tr->meta.text));
    hash_fact(&fact[3], "kind of device", true, tr->session.backend ? tr->session.backend->kind->word : "reference");
    hash_fact(&fact[4], "checkpoint to go on from", true,
              tr->from ? arena_copy(a, tr->from->file.text, tr->from->file.header) : "");
    hash_fact(&fact[5], "processor", false, processor.s);
    char(*all)[FACTS][65] = arena_alloc_array(a, size, sizeof *all);
    for (size_t i = 0; i < FACTS; i++)
        memcpy(all[own][i], fact[i].hash, sizeof fact[i].hash);
    check(tr, ranks_gather(r, all, sizeof *all));
    for (size_t k = 0; k < FACTS; k++)
        for (size_t i = 1; i < size; i++) {
            if (!memcmp(all[i][k], all[0][k], sizeof all[0][k]))
                continue;
            if (fact[k].vital)
                ctx_raise(tr->ctx, ST_INPUT, "rank %zu has another %s than rank 0", i, fact[k].name);
            train_event(tr, VWN_EVENT_WARNING,
                        "rank %zu has another %s than rank 0: the numbers may not be those of one alone", i,
                        fact[k].name);
            break;
        }
}

void train_share_lanes(Trainer *tr)
{
    const Ranks *r = ranks_of(tr);
    if (!r)
        return;
    int64_t size = ranks_size(r), all = tr->lanes.all;
    if (all % size) {
        Buf b = buf_new(tr->session.arena);
        size_t count = 0, i = 0;
        for (int64_t n = 1; n <= all; n *= 2)
            count++;
        for (int64_t n = 1; n <= all; n *= 2)
            buf_printf(&b, "%s%lld", list_gap(i++, count, " or "), (long long)n);
        const char *more =
            size & (size - 1) ? ""
                              : arena_printf(tr->session.arena,
                                             ", or give `train` more lanes: `--set train.lanes=%lld`", (long long)size);
        ctx_raise(tr->ctx, ST_USAGE, "%lld processes cannot share the %lld lane%s of a step: start %s%s",
                  (long long)size, (long long)all, all == 1 ? "" : "s", b.s, more);
    }
    tr->lanes.here = all / size;
    tr->lanes.first = ranks_rank(r) * tr->lanes.here;
}

const char *train_told(Trainer *tr, const char *text)
{
    Ranks *r = ranks_of(tr);
    enum { ROOM = 4096 };
    if (!r)
        return text;
    char *said = NEW_ARRAY(tr->session.arena, char, ROOM);
    snprintf(said, ROOM, "%s", text ? text : "");
    check(tr, ranks_tell(r, said, ROOM));
    return *said ? said : NULL;
}

void train_wait_for_kernels(Trainer *tr, bool before)
{
    enum { PATIENCE = 20 };
    Ranks *r = ranks_of(tr);
    if (!r || before == ranks_is_first(r))
        return;
    char one[RANKS_MOST] = {0};
    ranks_patience(r, PATIENCE);
    check(tr, ranks_gather(r, one, 1));
    ranks_patience(r, 1);
}

/* ---- a step ---- */

/* Numbers that are exchanged at a time. */
enum { NUMBERS = 1 << 22 };

static bool is_summed(const StoreEntry *e)
{
    return e->kind == EXT_GRAD || (e->kind == EXT_STEP && !strcmp(e->name, "loss"));
}

/* The numbers from .. from + n - 1 of all tensors that are summed, one behind the other, out of the store or back into it. */
static void move_sums(Trainer *tr, int64_t from, int64_t n, char *numbers, bool back)
{
    Session *s = &tr->session;
    int64_t at = 0; /* of the tensor at hand */
    for (size_t i = 0; i < store_count(s->store) && at < from + n; i++) {
        StoreEntry *e = store_at(s->store, i);
        if (!is_summed(e))
            continue;
        int64_t lo = from > at ? from - at : 0, hi = from + n - at < e->elements ? from + n - at : e->elements;
        int64_t to = at + lo - from;
        at += e->elements;
        if (lo >= hi)
            continue;
        if (s->backend)
            session_store_ok(s, back ? store_put_f32(s->store, e, lo, hi - lo, (float *)numbers + to)
                                     : store_get_f32(s->store, e, lo, hi - lo, (float *)numbers + to));
        else
            session_store_ok(s, back ? store_put_f64(s->store, e, lo, hi - lo, (double *)numbers + to)
                                     : store_get_f64(s->store, e, lo, hi - lo, (double *)numbers + to));
    }
}

void train_add_gradients(Trainer *tr)
{
    Ranks *r = ranks_of(tr);
    Session *s = &tr->session;
    size_t item = s->backend ? sizeof(float) : sizeof(double);
    int64_t all = 0;
    if (!r)
        return;
    for (size_t i = 0; i < store_count(s->store); i++)
        all += is_summed(store_at(s->store, i)) ? store_at(s->store, i)->elements : 0;
    int64_t most = all < NUMBERS ? all : NUMBERS;
    if (!tr->sums)
        tr->sums = arena_alloc_array(s->arena, (size_t)most, item);
    for (int64_t at = 0; at < all; at += most) {
        int64_t n = all - at < most ? all - at : most;
        move_sums(tr, at, n, tr->sums, false);
        check(tr, ranks_add(r, tr->sums, n, item));
        move_sums(tr, at, n, tr->sums, true);
    }
}

void train_gather_lanes(void *trainer, double *v, size_t n)
{
    Trainer *tr = trainer;
    Ranks *r = ranks_of(tr);
    if (r)
        check(tr, ranks_gather(r, v, (size_t)tr->lanes.here * n * sizeof *v));
}

bool train_interrupted(Trainer *tr)
{
    Ranks *r = ranks_of(tr);
    if (!r)
        return tr->session.owner->interrupted;
    char moment[48];
    char any[RANKS_MOST] = {0};
    snprintf(moment, sizeof moment, "step %lld", (long long)tr->now.step);
    ranks_at(r, moment);
    any[ranks_rank(r)] = tr->session.owner->interrupted != 0;
    check(tr, ranks_gather(r, any, 1));
    return memchr(any, 1, (size_t)ranks_size(r)) != NULL;
}
