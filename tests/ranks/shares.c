/* shares.c - what each rank of a run has and sends, and what lanes cost one process alone.
 *
 * In:  examples, as plans.   Out: shares against sums over all parameters; bytes that are moved and operations of a step of eight lanes
 * against those of one; `N passed, N failed`.
 * The one idea: whatever is shared out is there once, and what every rank sends follows from how many numbers there are.
 * When: slow. It counts what plans take; e2e.ranks counts what is sent, and the memory of ranks that run.
 */
#include "compiler/file/check_unit.h"
#include "compiler/model/optimizer.h"
#include "runtime/exec/session.h"
#include "tests/support/harness.h"

static Unit *unit_of(Ctx *ctx, const char *file, const char *const *set, size_t n_set)
{
    char path[1000];
    snprintf(path, sizeof path, "%s/examples/%s", VWN_SOURCE_DIR, file);
    const CheckOptions how = {.path = path, .set = set, .n_set = n_set};
    Unit *u = check_file(ctx, &how);
    if (!u->model || !u->train)
        ctx_raise(ctx, ST_INPUT, "%s", path);
    return u;
}

/* A rank has a range; no range is longer than an even share and half a tensor at either end. */
static void test_owners(Harness *h, const Unit *u)
{
    const Model *m = u->model;
    int64_t all = 0, largest = 0;
    for (size_t i = 0; i < m->param.n; i++)
        if (param_learns(m, u->train, i)) {
            all += m->param.v[i].elements;
            largest = m->param.v[i].elements > largest ? m->param.v[i].elements : largest;
        }
    for (int ranks = 1; ranks <= 16; ranks *= 2) {
        const int *owner = param_owners(m, u->train, ranks, u->ctx->scratch);
        int64_t own[16] = {0};
        for (size_t i = 0; i < m->param.n; i++) {
            CHECK(h, owner[i] >= (i ? owner[i - 1] : 0) && owner[i] < ranks);
            own[owner[i]] += param_learns(m, u->train, i) ? m->param.v[i].elements : 0;
        }
        for (int i = 0; i < ranks; i++)
            CHECK(h, own[i] * ranks <= all + largest * ranks);
    }
}

/* What is shared out is what one process has; what is not each of them has whole. Each sends as many numbers as a ring would, in the
 * mean, and receives as many. */
static void test_needs(Harness *h, const Unit *u)
{
    enum { RANKS = 4 };
    const MemoryAsk ask = {0};
    const RanksAskNeed how = {RANKS, 0, &ask};
    const MemoryNeed one = session_memory(u->ctx, u->model, u->train, 0, &ask);
    const RanksNeed r = ranks_need(u->ctx, u->model, u->train, &how, u->ctx->scratch);
    uint64_t optimizer = 0, average = 0, sent = 0, all = 0;
    for (size_t i = 0; i < u->model->param.n; i++)
        all += param_is_trained(u->model, u->train, i) ? 4 * (uint64_t)u->model->param.v[i].elements : 0;
    for (int i = 0; i < RANKS; i++) {
        optimizer += r.memory[i].optimizer;
        average += r.memory[i].average;
        sent += r.sent[i];
        CHECK(h, r.memory[i].weights == one.weights && r.memory[i].gradients <= one.gradients);
        CHECK(h, r.memory[i].optimizer < one.optimizer / 2 && r.memory[i].exchange > 0);
    }
    CHECK(h, optimizer == one.optimizer && average == one.average && one.exchange == 0);
    CHECK(h, sent == 2 * (RANKS - 1) * all);
    const int64_t longest = (int64_t)(r.memory[0].optimizer / 8),
                  turns = (longest >> 20) + 1;                   /* of four times 2^20 numbers */
    CHECK(h, longest < 1 << 22 && r.exchanges == 2 * turns + 3); /* gradients, weights, and three of a few numbers */
}

typedef struct Moved {
    double bytes, operations;
} Moved;

static void add_moved(void *user, const Plan *plan, int64_t runs)
{
    Moved *m = user;
    for (size_t i = 0; i < plan->n_launch; i++) {
        const Launch *l = &plan->launch[i];
        m->bytes += l->bytes * (double)runs;
        m->operations += (l->flops + l->work.lane) * (double)runs;
    }
}

static Moved moved_by(Ctx *ctx, const char *file, const char *micro, const char *lanes)
{
    const char *const set[] = {lanes, micro, "train.precision=fp32"};
    Moved m = {0, 0};
    const PlanWatch watch = {add_moved, &m};
    const Unit *u = unit_of(ctx, file, set, COUNT_OF(set));
    session_memory(ctx, u->model, u->train, 0, &(MemoryAsk){.watch = &watch});
    return m;
}

/* Gradients of a lane are kept and added instead of being added to as they are computed: 140 bytes for each of them in a step, which
 * weigh more the less a step computes. */
static void test_tree(Harness *h, Ctx *ctx, const char *file, const char *micro, double most)
{
    const Moved one = moved_by(ctx, file, micro, "train.lanes=1"), eight = moved_by(ctx, file, micro, "train.lanes=8");
    double bytes = 100 * (eight.bytes / one.bytes - 1), operations = 100 * (eight.operations / one.operations - 1);
    printf("    %s, eight lanes: %.2f %% more bytes, %.2f %% more operations\n", file, bytes, operations);
    CHECK(h, one.bytes > 1e9 && one.operations > 1e9 && bytes > 0);
    CHECK(h, bytes <= most && operations <= most);
}

typedef struct Tests {
    Harness h;
    Ctx *ctx;
} Tests;

static Status run(void *user)
{
    Tests *t = user;
    const char *const set[] = {"train.lanes=4", "train.average=ema(decay = 0.9)"};
    const Unit *u = unit_of(t->ctx, "01_nano.vwn", set, COUNT_OF(set));
    test_owners(&t->h, u);
    test_needs(&t->h, u);
    test_tree(&t->h, t->ctx, "01_nano.vwn", "train.micro_batch=8 seqs", 3.2);    /* 16,384 positions */
    test_tree(&t->h, t->ctx, "02_olmo_1b.vwn", "train.micro_batch=4 seqs", 0.1); /* 4 million */
    return ST_OK;
}

int main(void)
{
    Tests t = {.ctx = ctx_new(NULL)};
    CHECK(&t.h, guarded(t.ctx, run, &t) == ST_OK);
    if (t.ctx->message[0])
        printf("%s\n", t.ctx->message);
    ctx_free(t.ctx);
    return harness_end(&t.h);
}
