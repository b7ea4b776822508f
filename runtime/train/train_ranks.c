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

void train_check(Trainer *tr, bool fine)
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
    train_check(tr, ranks_gather(r, all, sizeof *all));
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
    const char *refused = ranks_refused(tr->session.arena, all, size);
    if (refused)
        ctx_raise(tr->ctx, ST_USAGE, "%s", refused);
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
    train_check(tr, ranks_tell(r, said, ROOM));
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
    train_check(tr, ranks_gather(r, one, 1));
    ranks_patience(r, 1);
}

/* ---- a step ---- */

void train_gather_lanes(void *trainer, double *v, size_t n)
{
    Trainer *tr = trainer;
    Ranks *r = ranks_of(tr);
    if (r)
        train_check(tr, ranks_gather(r, v, (size_t)tr->lanes.here * n * sizeof *v));
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
    train_check(tr, ranks_gather(r, any, 1));
    return memchr(any, 1, (size_t)ranks_size(r)) != NULL;
}
