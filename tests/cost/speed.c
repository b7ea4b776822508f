/* speed.c - what `vwn cost` does for the largest examples takes a moment, on any machine.
 *
 * In:  examples that take longest, as they are.
 * Out: of each the processor time of reading it, and of planning its training with and without `recompute`, all
 *      kernels counted; what all of them take in readings.
 * The one idea: reading the same files is the yardstick. A machine that is slow or busy is so for both, and the best
 *      of some tries counts, so the ratio is the program's own: a pass that takes time by the square of what it is
 *      given, or structures that are counted again for each layer, cost more than it leaves.
 */
#include "harness.h"

#include "../../compiler/model.h"
#include "../../runtime/session.h"

#include <time.h>

enum { TRIES = 4 };
static const double MOST = 16; /* readings of all: 11.5 are needed */

static const char *const files[] = {"07_vwn_x8_moe.vwn", "19_over_encoding.vwn", "20_mtp_chain.vwn", "24_xformer_moe.vwn",
                                    "29_dit.vwn"};

static double seconds(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

typedef struct Case {
    Ctx *ctx;
    const char *file;
    double reading, planning;
    double work; /* counted */
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
    double start = seconds();
    const CheckOptions how = {.path = path};
    const Unit *u = check_file(ctx, &how);
    if (!u->model || !u->train)
        return ST_INPUT;
    double read = seconds();
    session_memory(ctx, u->model, u->train, 0, &ask);
    c->planning = fmin(c->planning, seconds() - read);
    c->reading = fmin(c->reading, read - start);
    return ST_OK;
}

int main(void)
{
    Tally t = {0};
    double reading = 0, planning = 0;
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        Case c = {.file = files[i], .reading = INFINITY, .planning = INFINITY};
        for (int k = 0; k < TRIES; k++) {
            c.ctx = ctx_new(NULL);
            CHECK(&t, guarded(c.ctx, measure, &c) == ST_OK, "%s is not planned", c.file);
            ctx_free(c.ctx);
        }
        printf("%-20s read in %.1f ms, planned in %.1f ms\n", c.file, 1e3 * c.reading, 1e3 * c.planning);
        CHECK(&t, c.work > 1e12, "%s: %g operations", c.file, c.work);
        reading += c.reading;
        planning += c.planning;
    }
    CHECK(&t, planning < MOST * reading, "%.1f readings", planning / reading);
    return finish(&t);
}
