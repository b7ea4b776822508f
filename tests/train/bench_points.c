/* bench_points.c - from the end of one schedule of widths to the first step of the next one: on a workbench, and without.
 *
 * In:  [number of schedules] ["kept": only on a workbench].   Out: medians, in ms of processor time of all threads and of
 * the clock.
 * The one idea: what lies between the last step of a run and the first of the next, without that step: the last
 * checkpoint, checking, planning, memory, initial weights.
 */
#include "schedules.h"
#include "support.h"

#include <stdlib.h>
#include <time.h>

enum { MOST = 1000 };

typedef struct Moment {
    double cpu, wall;
} Moment;

static Moment now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (Moment){(double)t.tv_sec + 1e-9 * (double)t.tv_nsec, clock_seconds()};
}

typedef struct Steps {
    Moment at[SCHEDULE_STEPS];
    int n;
} Steps;

static void note(void *user, const vwn_event *e)
{
    Steps *s = user;
    if (e->kind == VWN_EVENT_STEP && s->n < SCHEDULE_STEPS)
        s->at[s->n++] = now();
}

typedef struct Points {
    const char *file;
    int at, n;
    Schedule now;
} Points;

static bool next_point(void *user, vwn_file_options *file)
{
    Points *p = user;
    if (p->at == p->n)
        return false;
    make_schedule(&p->now, p->at++);
    *file = (vwn_file_options){.path = p->file, .set = p->now.set, .n_set = SCHEDULE_SETS};
    return true;
}

static void say(void *user, const vwn_event *e)
{
    (void)user;
    printf("%s\n", e->text);
}

static Steps train(const vwn_options *o, const char *file, const char *run, int i)
{
    Schedule p;
    Steps s = {0};
    vwn_unit *unit;
    make_schedule(&p, i);
    vwn_context *ctx = vwn_open(o);
    vwn_train_options how = {.run = run, .overwrite = true, .event = note, .user = &s};
    vwn_status st = vwn_check(ctx, &(vwn_file_options){.path = file, .set = p.set, .n_set = SCHEDULE_SETS}, &unit);
    if (st == VWN_OK)
        st = vwn_train(unit, &how);
    if (st != VWN_OK || s.n < SCHEDULE_STEPS)
        fprintf(stderr, "schedule %d ends with %d: %s\n", i, (int)st, vwn_message(ctx));
    vwn_close(ctx);
    return s;
}

static int ascending(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static void measure(const char *what, const vwn_options *o, const char *file, const char *run, int n)
{
    double cpu[MOST], wall[MOST];
    Steps before = train(o, file, run, 0);
    for (int i = 1; i < n; i++) {
        Steps s = train(o, file, run, i);
        Moment end = before.at[SCHEDULE_STEPS - 1], last = s.at[SCHEDULE_STEPS - 1], one = s.at[SCHEDULE_STEPS - 2];
        cpu[i - 1] = 1e3 * (s.at[0].cpu - end.cpu - (last.cpu - one.cpu));
        wall[i - 1] = 1e3 * (s.at[0].wall - end.wall - (last.wall - one.wall));
        before = s;
    }
    qsort(cpu, (size_t)n - 1, sizeof *cpu, ascending);
    qsort(wall, (size_t)n - 1, sizeof *wall, ascending);
    printf("%-24s %7.1f ms of processor time, %7.1f ms; medians of %d\n", what, cpu[(n - 1) / 2], wall[(n - 1) / 2],
           n - 1);
}

int main(int argc, char **argv)
{
    int n = argc > 1 ? atoi(argv[1]) : 40;
    n = n < 2 ? 2 : n < MOST ? n : MOST;
    Ctx *ctx = ctx_new(NULL);
    const char *folder = scratch_folder(ctx);
    const char *file = arena_printf(ctx->program, "%s/points.vwn", folder);
    const char *run = arena_printf(ctx->program, "%s/run", folder);
    write_text_file(arena_printf(ctx->program, "%s/text", folder), 20000);
    write_file(file, schedule_model, strlen(schedule_model));
    vwn_options kept = {.workbench = vwn_workbench_open()}, alone = {0};
    vwn_context *v = vwn_open(&kept);
    Points points = {.file = file, .n = n};
    double began = clock_seconds();
    vwn_status st = vwn_prepare(v, &(vwn_prepare_options){next_point, &points, say, NULL});
    printf("prepared in %.1f s\n", clock_seconds() - began);
    vwn_close(v);
    if (st == VWN_OK) {
        measure("on a workbench", &kept, file, run, n);
        if (argc <= 2)
            measure("each by itself", &alone, file, run, n);
    }
    vwn_workbench_close(kept.workbench);
    scratch_remove(folder);
    ctx_free(ctx);
    return st != VWN_OK;
}
