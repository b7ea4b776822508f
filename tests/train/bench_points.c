/* bench_points.c - from the end of one schedule of widths to the first step of the next one: on a workbench, and without.
 *
 * In:  [number of schedules] ["kept": only on a workbench].   Out: medians, in ms of processor time of all threads and of
 * the clock, and of each part.
 * The one idea: what lies between the last step of a run and the first of the next, without that step: the last
 * evaluation and checkpoint, checking, planning, memory, initial weights.
 */
#include "runtime/base/machine.h"
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

/* What lies between the last step of a run and the first one of the next. */
typedef enum Mark {
    MARK_STEP_BEFORE, /* the last step but one */
    MARK_LAST_STEP,
    MARK_EVALUATED,
    MARK_SAVED,   /* the last checkpoint */
    MARK_CLOSED,  /* and the context of the run */
    MARK_CHECKED, /* the file of the next one */
    MARK_OPENED,  /* its data, resolved text, device */
    MARK_PLANNED,
    MARK_FIRST_STEP,
    MARKS
} Mark;
static const char *const part_name[MARKS] = {
    [MARK_EVALUATED] = "evaluation", [MARK_SAVED] = "checkpoint", [MARK_CLOSED] = "closing",
    [MARK_CHECKED] = "checking",     [MARK_OPENED] = "opening",   [MARK_PLANNED] = "planning",
    [MARK_FIRST_STEP] = "weights"};

typedef struct Run {
    Moment at[MARKS];
    int steps;
    const char *before; /* checkpoint of the run before */
} Run;

static void note(void *user, const vwn_event *e)
{
    Run *r = user;
    if (e->kind == VWN_EVENT_STEP && r->steps < SCHEDULE_STEPS) {
        r->steps++;
        if (r->steps == 1) {
            r->at[MARK_FIRST_STEP] = now();
            remove(r->before); /* outside of what is measured: a sweep keeps them */
        }
        if (r->steps == SCHEDULE_STEPS - 1)
            r->at[MARK_STEP_BEFORE] = now();
        if (r->steps == SCHEDULE_STEPS)
            r->at[MARK_LAST_STEP] = now();
    }
    static const Mark mark[] = {[VWN_EVENT_EVAL] = MARK_EVALUATED,
                                [VWN_EVENT_CHECKPOINT] = MARK_SAVED,
                                [VWN_EVENT_START] = MARK_OPENED,
                                [VWN_EVENT_COMPILE] = MARK_PLANNED};
    if ((size_t)e->kind < sizeof mark / sizeof *mark && mark[e->kind])
        r->at[mark[e->kind]] = now();
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

static Run train(const vwn_options *o, const char *file, const char *run, int i)
{
    Schedule p;
    char folder[400], before[500];
    Run r = {.before = before};
    vwn_unit *unit;
    make_schedule(&p, i);
    snprintf(folder, sizeof folder, "%s%d", run, i);
    snprintf(before, sizeof before, "%s%d/ckpt/step_%08d.safetensors", run, i - 1, SCHEDULE_STEPS);
    vwn_context *ctx = vwn_open(o);
    vwn_train_options how = {.run = folder, .overwrite = true, .event = note, .user = &r};
    vwn_status st = vwn_check(ctx, &(vwn_file_options){.path = file, .set = p.set, .n_set = SCHEDULE_SETS}, &unit);
    r.at[MARK_CHECKED] = now();
    if (st == VWN_OK)
        st = vwn_train(unit, &how);
    if (st != VWN_OK || r.steps < SCHEDULE_STEPS)
        fprintf(stderr, "schedule %d ends with %d: %s\n", i, (int)st, vwn_message(ctx));
    vwn_close(ctx);
    r.at[MARK_CLOSED] = now();
    return r;
}

static int ascending(const void *x, const void *y)
{
    double a = *(const double *)x, b = *(const double *)y;
    return (a > b) - (a < b);
}

static double median(double *x, int n)
{
    qsort(x, (size_t)n, sizeof *x, ascending);
    return x[n / 2];
}

static void measure(const char *what, const vwn_options *o, const char *file, const char *run, int n)
{
    static double cpu[MARKS][MOST], wall[MOST]; /* cpu[0]: the whole */
    Run before = train(o, file, run, 0);
    for (int i = 1; i < n; i++) {
        Run r = train(o, file, run, i);
        Moment step = {r.at[MARK_LAST_STEP].cpu - r.at[MARK_STEP_BEFORE].cpu,
                       r.at[MARK_LAST_STEP].wall - r.at[MARK_STEP_BEFORE].wall};
        Moment end = before.at[MARK_LAST_STEP], first = r.at[MARK_FIRST_STEP];
        cpu[0][i - 1] = 1e3 * (first.cpu - end.cpu - step.cpu);
        wall[i - 1] = 1e3 * (first.wall - end.wall - step.wall);
        for (int k = MARK_EVALUATED; k < MARKS; k++) {
            const Run *of = k <= MARK_CLOSED ? &before : &r, *was = k <= MARK_CHECKED ? &before : &r;
            cpu[k][i - 1] = 1e3 * (of->at[k].cpu - was->at[k - 1].cpu - (k == MARK_FIRST_STEP ? step.cpu : 0));
        }
        before = r;
    }
    printf("%-24s %7.1f ms of processor time, %7.1f ms; medians of %d\n", what, median(cpu[0], n - 1),
           median(wall, n - 1), n - 1);
    for (int k = MARK_EVALUATED; k < MARKS; k++)
        printf("    %-20s %7.1f ms of processor time\n", part_name[k], median(cpu[k], n - 1));
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
