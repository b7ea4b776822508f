/* watch.c - `vwn watch`: follows a run that another process trains.
 *
 * In:  a run directory, which may not be there yet.   Out: on a terminal a screen that is drawn again when something has
 * changed; elsewhere a line for each change; in the end what stands there, on stdout.
 * The one idea: nothing but the run directory is asked, so any number of terminals may watch, and the run never knows.
 */
#include "runtime/cli/cli.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

typedef struct Follow {
    Call *call;
    vwn_watch_options how;
    vwn_watched seen;
    char events[4200]; /* the path of events.jsonl */
    Text last;         /* of a sweep, which has none: what was printed */
    struct stat at;    /* of it, when it was last read */
    bool live;         /* the screen of a terminal is ours */
    bool there;        /* there is a run */
    bool waiting;      /* it was said that there is none yet */
    sigset_t signals;
} Follow;

static void screen_size(Follow *f)
{
    f->how.columns = ui_columns();
    f->how.rows = ui_rows();
}

/* Whether the events are others than the last time. A sweep has none. */
static bool has_changed(Follow *f)
{
    struct stat now;
    if (stat(f->events, &now) != 0)
        return false;
    bool same = now.st_size == f->at.st_size && now.st_ino == f->at.st_ino &&
                now.st_mtim.tv_sec == f->at.st_mtim.tv_sec && now.st_mtim.tv_nsec == f->at.st_mtim.tv_nsec;
    f->at = now;
    return !same;
}

/* A screen is drawn each time, since it tells for how long the run has been silent; a line or an object is printed when
 * something has happened. */
static vwn_status show(Follow *f)
{
    Call *call = f->call;
    Text text = {0};
    vwn_writer into = text_writer(&text);
    vwn_watched before = f->seen;
    bool changed = has_changed(f), sweep = !f->at.st_ino;
    screen_size(f);
    vwn_status st = vwn_watch(call->ctx, &f->how, &into, &f->seen);
    changed |= sweep && text.s && f->last.s && strcmp(f->last.s, text.s) != 0;
    if (st == VWN_OK && (f->live || changed || !f->there || f->seen.going_on != before.going_on)) {
        if (f->live)
            ui_control(&call->ui, "\033[H\033[J");
        ui_put(&call->ui, text.s ? text.s : "", text.n);
        ui_flush(&call->ui);
    }
    text_free(&f->last);
    f->last = text;
    return st;
}

/* A signal that ends it, SIGWINCH, or 0 when the time is up. */
static int sleep_or_signal(Follow *f, double seconds)
{
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    int got = sigtimedwait(&f->signals, NULL, &t);
    return got > 0 ? got : 0;
}

static void begin(Follow *f)
{
    sigemptyset(&f->signals);
    for (const int *s = (const int[]){SIGINT, SIGTERM, SIGHUP, SIGWINCH, 0}; *s; s++)
        sigaddset(&f->signals, *s);
    sigprocmask(SIG_BLOCK, &f->signals, NULL);
    const char *term = getenv("TERM");
    f->live = f->how.form == VWN_WATCH_SCREEN && isatty(STDOUT_FILENO) && term && *term && strcmp(term, "dumb") != 0;
    if (f->live)
        ui_control(&f->call->ui, "\033[?1049h");
    else if (f->how.form == VWN_WATCH_SCREEN)
        f->how.form = VWN_WATCH_LINE;
}

/* Gives the terminal back, and leaves on it what stood there last. */
static void end(Follow *f)
{
    if (f->live)
        ui_control(&f->call->ui, "\033[?1049l");
    bool again = f->live && f->there;
    f->live = f->there = false; /* so that it is printed, below the prompt */
    if (again)
        show(f);
    sigprocmask(SIG_UNBLOCK, &f->signals, NULL);
}

static int follow(Follow *f)
{
    Call *call = f->call;
    vwn_status st = VWN_OK;
    f->seen.going_on = true;
    begin(f);
    while (f->seen.going_on && !call->ui.write_error) {
        double t0 = ui_seconds();
        st = show(f);
        if (st == VWN_USAGE && !f->there && !f->waiting) {
            const char *others = strchr(vwn_message(call->ctx), ';'); /* which runs there are */
            ui_say(&call->ui, "Waiting", "there is no run %s yet%s", f->how.run, others ? others : "");
        }
        f->waiting |= st == VWN_USAGE;
        f->there |= st == VWN_OK;
        if (!f->seen.going_on || (st != VWN_OK && (f->there || st != VWN_USAGE)))
            break;
        double took = ui_seconds() - t0; /* of a long run it takes a while to read its events */
        int number = sleep_or_signal(f, 10 * took > 1 ? 10 * took : 1);
        if (number && number != SIGWINCH)
            break;
    }
    bool there = f->there;
    end(f);
    if (st != VWN_OK && !(st == VWN_USAGE && !there))
        return call_failed(call, st);
    if (there)
        call_failed(call, VWN_OK); /* what was passed over */
    return f->seen.going_on ? VWN_INTERRUPTED : (int)f->seen.ended;
}

/* A file is trained into the run of its model. */
static int is_a_file(Call *call, const char *path)
{
    vwn_unit *unit;
    vwn_file_options file = {.path = path, .model_only = true};
    const char *name = vwn_check(call->ctx, &file, &unit) == VWN_OK ? vwn_model_name(unit) : NULL;
    if (name)
        return usage_error(call,
                           "`%s` is a file and no run: `vwn train %s` trains it into runs/%s, which `vwn watch %s` "
                           "follows",
                           path, path, name, name);
    return usage_error(call, "`%s` is a file and no run: its run is runs/NAME, by the name of its model", path);
}

static int once(Follow *f)
{
    vwn_writer out = ui_stdout(&f->call->ui);
    screen_size(f);
    return call_failed(f->call, vwn_watch(f->call->ctx, &f->how, &out, &f->seen));
}

static int run(Call *call)
{
    int status;
    Follow f = {
        .call = call,
        .how = {.run = call->operand[0], .form = call->json ? VWN_WATCH_JSON : VWN_WATCH_SCREEN, .utf8 = ui_unicode()}};
    if (strlen(f.how.run) > 4000)
        return usage_error(call, "a path of %zu bytes is none", strlen(f.how.run));
    snprintf(f.events, sizeof f.events, "%s/events.jsonl", f.how.run);
    if (!call_open(call, &status))
        return status;
    if (ends_with(f.how.run, ".vwn") && !is_folder(f.how.run))
        return is_a_file(call, f.how.run);
    status = call_flag(call, "--once") ? once(&f) : follow(&f);
    text_free(&f.last);
    return status;
}

static const Flag flags[] = {
    {"--once", NULL, "print how it stands now, and end"},
};
const Verb verb_watch = {
    .name = "watch",
    .operands = "RUN|SWEEP",
    .summary = "Follows a run from another terminal",
    .example = {{"vwn watch runs/nano", "until it ends, or Ctrl-C, which leaves the run alone"},
                {"vwn watch runs/nano --once", "how it stands now"}},
    .text = "Of a sweep it shows the points, and about how long they will take. A run that is not there yet is waited "
            "for. Into a file or a pipe it writes a line for each change, with\n"
            "--json an object.\n"
            "Exit status: as the run ended: 0 fine, 4 it diverged, 5 it failed or ended without a word,\n"
            "130 it was interrupted, or the watching was. With --once: 0, or 2 when there is no run.\n",
    .flag = flags,
    .n_flags = 1,
    .takes = TAKES_JSON,
    .least = 1,
    .most = 1,
    .run = run};
