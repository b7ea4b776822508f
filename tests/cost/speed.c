/* speed.c - what `vwn cost` does for the largest examples is in proportion to what they say.
 *
 * In:  examples that take longest, as they are, and the quickstart with more and more layers.
 * Out: the bytes that arenas gave out while a file was read, and while its training was planned with and without
 *      `recompute`, all kernels counted.
 * The one idea: memory that is asked for is a count of work that is the same on every machine, busy or not. A pass that
 *      builds something for each pair of nodes, or structures that are counted again for each layer, ask for more than
 *      is left to them. What visits nodes and asks for nothing is not seen here, but by kernel.chains.
 * When: slow. It counts what plans take; all tests of kernels see what makes plans.
 */
#include "compiler/file/check_unit.h"
#include "harness.h"

#include "compiler/model/model.h"
#include "runtime/exec/session.h"

static const double MOST = 23; /* readings of all: 19.5 are needed */

typedef struct Case {
    Ctx *ctx;
    const char *file, *set;   /* set: an override, or NULL */
    double reading, planning; /* bytes */
    double work;              /* counted */
} Case;

static void add_work(void *user, const Plan *plan, int64_t runs)
{
    Case *c = user;
    for (size_t i = 0; i < plan->n_launch; i++)
        c->work += (plan->launch[i].work.lane + plan->launch[i].flops) * (double)runs;
}

static Status measure(void *arg)
{
    Case *c = arg;
    Ctx *ctx = c->ctx;
    const PlanWatch watch = {add_work, c};
    const MemoryAsk ask = {.both = ctx->program, .watch = &watch};
    char path[1000];
    snprintf(path, sizeof path, "%s/examples/%s", VWN_SOURCE_DIR, c->file);
    const CheckOptions how = {.path = path, .set = &c->set, .n_set = c->set != NULL};
    uint64_t start = ctx->taken;
    const Unit *u = check_file(ctx, &how);
    if (!u->model || !u->train)
        return ST_INPUT;
    uint64_t read = ctx->taken;
    session_memory(ctx, u->model, u->train, 0, &ask);
    c->reading = (double)(read - start);
    c->planning = (double)(ctx->taken - read);
    return ST_OK;
}

static Case measured(Tally *t, const char *file, const char *set)
{
    Case c = {.ctx = ctx_new(NULL), .file = file, .set = set};
    CHECK(t, guarded(c.ctx, measure, &c) == ST_OK, "%s is not planned", file);
    ctx_free(c.ctx);
    printf("%-20s %-5s read with %6.1f MiB, planned with %6.1f\n", file, set ? set : "", c.reading / (1 << 20),
           c.planning / (1 << 20));
    return c;
}

int main(void)
{
    static const char *const files[] = {"07_vwn_x8_moe.vwn", "19_over_encoding.vwn", "20_mtp_chain.vwn",
                                        "24_xformer_moe.vwn", "29_dit.vwn"};
    static const char *const layers[] = {"L=8", "L=16", "L=32", "L=64"};
    Tally t = {0};
    double reading = 0, planning = 0, before = 0;
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        Case c = measured(&t, files[i], NULL);
        CHECK(&t, c.work > 1e12, "%s: %g operations", c.file, c.work);
        reading += c.reading;
        planning += c.planning;
    }
    CHECK(&t, planning < MOST * reading, "%.1f readings", planning / reading);
    for (size_t i = 0; i < COUNT_OF(layers); i++) {
        Case c = measured(&t, "quickstart.vwn", layers[i]);
        CHECK(&t, i == 0 || c.planning < 2.1 * before, "%s: %.2f times what half of its layers take", layers[i],
              c.planning / before);
        before = c.planning;
    }
    return finish(&t);
}
