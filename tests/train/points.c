/* points.c - many schedules of widths, one after the other on a workbench: their kernels are compiled before the first
 * of them, and then nothing is; what one leaves open changes no bit of the next.
 *
 * In:  [number of schedules] [device] ["kept": no run is repeated alone].   Out: counts; `N passed, N failed`.
 * The one idea: a run on a workbench and one that opens everything itself have to write the same losses.
 * When: released, whole, optimised. e2e.sweep goes the same ways.
 */
#define _GNU_SOURCE
#include "schedules.h"
#include "support.h"

#include "support/drawn.h"

#include <dirent.h>
#include <stdlib.h>

enum { SETS = SCHEDULE_SETS, STEPS = SCHEDULE_STEPS, LOSSES = 64 };

typedef struct Points {
    const char *file;
    int at, n;
    Schedule now;
    bool broken; /* one more, with an error, comes first */
    const char *bad[1];
} Points;

static bool next_point(void *user, vwn_file_options *file)
{
    Points *p = user;
    if (p->broken) {
        p->broken = false;
        p->bad[0] = "width=[1, 2]";
        *file = (vwn_file_options){.path = p->file, .set = p->bad, .n_set = 1};
        return true;
    }
    if (p->at == p->n)
        return false;
    make_schedule(&p->now, p->at++);
    *file = (vwn_file_options){.path = p->file, .set = p->now.set, .n_set = SETS};
    return true;
}

/* ---- runs ---- */

typedef struct Seen {
    int kernels, compiled, n;
    double loss[LOSSES];
    char text[256];
} Seen;

static void note(void *user, const vwn_event *e)
{
    Seen *s = user;
    int kernels, cached, compiled;
    const char *of = e->kind == VWN_EVENT_COMPILE ? strchr(e->text, ':') : NULL;
    if (of && sscanf(e->text, "%d kernels", &kernels) == 1 &&
        sscanf(of, ": %d cached, %d compiled", &cached, &compiled) == 2) {
        s->kernels += kernels;
        s->compiled += compiled;
        snprintf(s->text, sizeof s->text, "%s", e->text);
    }
    if (e->kind == VWN_EVENT_STEP && s->n < LOSSES)
        s->loss[s->n++] = e->loss;
    if (e->kind == VWN_EVENT_EVAL && s->n < LOSSES)
        s->loss[s->n++] = e->eval_loss;
}

typedef struct Setting {
    const char *folder, *device, *cache;
    char file[400], run[400];
} Setting;

static vwn_options options(const Setting *s, int threads, vwn_workbench *bench)
{
    return (vwn_options){.device = s->device, .threads = threads, .cache_dir = s->cache, .workbench = bench};
}

static vwn_status train(const Setting *s, const vwn_options *o, int i, const char *more, Seen *seen)
{
    Schedule p;
    const char *set[SETS + 1];
    make_schedule(&p, i);
    memcpy(set, p.set, sizeof p.set);
    set[SETS] = more;
    vwn_context *ctx = vwn_open(o);
    vwn_unit *unit;
    vwn_file_options file = {.path = s->file, .set = set, .n_set = SETS + (more != NULL)};
    vwn_status st = vwn_check(ctx, &file, &unit);
    *seen = (Seen){0};
    vwn_train_options how = {.run = s->run, .overwrite = true, .event = note, .user = seen};
    if (st == VWN_OK)
        st = vwn_train(unit, &how);
    vwn_close(ctx);
    return st;
}

static bool same(const Seen *a, const Seen *b)
{
    return a->n == b->n && a->n == STEPS + 1 && !memcmp(a->loss, b->loss, (size_t)a->n * sizeof *a->loss);
}

/* ---- what is counted ---- */

/* Sum of the numbers of this process's threads, and how many there are. */
static int threads_now(long *sum)
{
    int n = 0;
    DIR *d = opendir("/proc/self/task");
    *sum = 0;
    for (struct dirent *e; d && (e = readdir(d));)
        if (e->d_name[0] != '.') {
            *sum += atol(e->d_name);
            n++;
        }
    if (d)
        closedir(d);
    return n;
}

/* All points on one workbench; and, now and then, without. */
static void test_points(Tally *t, const Setting *s, int n, int threads, bool alone_too)
{
    vwn_workbench *bench = vwn_workbench_open();
    vwn_options o = options(s, threads, bench), alone = options(s, threads, NULL);
    vwn_context *ctx = vwn_open(&o);
    Points points = {.file = s->file, .n = n, .broken = true};
    Seen all = {0}, seen, fresh;
    vwn_prepare_options how = {next_point, &points, note, &all};
    CHECKF(t, vwn_prepare(ctx, &how) == VWN_OK, "%s", vwn_message(ctx));
    vwn_close(ctx);
    CHECKF(t, strstr(all.text, "1 files have errors"), "%s", all.text);
    printf("%d threads, %s\n", threads, all.text);
    long first = 0, now;
    int there = 0;
    for (int i = 0; i < n; i++) {
        vwn_status st = train(s, &o, i, NULL, &seen);
        CHECKF(t, st == VWN_OK && seen.n == STEPS + 1, "point %d ends with %d", i, (int)st);
        CHECKF(t, seen.kernels > 0 && seen.compiled == 0, "point %d: %s", i, seen.text);
        if (i == 0)
            there = threads_now(&first);
        CHECKF(t, threads_now(&now) == there && now == first, "point %d has other threads than the first", i);
        if (i == n / 2) { /* a run that fails is no other's trouble */
            Seen failed;
            CHECK(t, train(s, &o, i, "train.data=text_file(\"no such text\")", &failed) != VWN_OK && !failed.n);
        }
        if (!alone_too || (i > 1 && i < n - 2))
            continue;
        CHECK(t, train(s, &alone, i, NULL, &fresh) == VWN_OK);
        CHECKF(t, same(&seen, &fresh), "point %d learns something else on a workbench: %.9g and %.9g", i,
               seen.loss[seen.n ? seen.n - 1 : 0], fresh.loss[fresh.n ? fresh.n - 1 : 0]);
    }
    vwn_workbench_close(bench);
}

int main(int argc, char **argv)
{
    Tally t = {0};
    Ctx *ctx = ctx_new(NULL);
    Setting s = {.folder = scratch_folder(ctx), .device = argc > 2 ? argv[2] : "cpu"};
    int n = argc > 1 ? atoi(argv[1]) : (int)drawn_count(&(CaseDraw){.one_in = 4, .sanitized = 8}, 24);
    char text[400];
    snprintf(text, sizeof text, "%s/text", s.folder);
    snprintf(s.file, sizeof s.file, "%s/points.vwn", s.folder);
    snprintf(s.run, sizeof s.run, "%s/run", s.folder);
    write_text_file(text, 20000);
    write_file(s.file, schedule_model, strlen(schedule_model));
    test_points(&t, &s, n, 2, argc <= 3);
    if (argc == 1)
        test_points(&t, &s, n / 3, 1, true);
    scratch_remove(s.folder);
    ctx_free(ctx);
    return tally_end(&t, "points");
}
