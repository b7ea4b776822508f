/* watch.c - `vwn watch`: how a run stands.
 *
 * In:  a run directory, or that of a sweep.   Out: a screen of text, one line, or JSON.
 * The one idea: what is said is made of short pieces that go on the next line where the screen ends, so that at any
 * width nothing is cut; the rows that are left show the curve.
 */
#include <math.h>
#include <stdio.h>

#include "compiler/report/report.h"
#include "runtime/draw/chart.h"
#include "run_state.h"
#include "runtime/checkpoint/run_list.h"
#include "runtime/checkpoint/source.h"
#include "look.h"

typedef struct Watch {
    Session session;
    const vwn_watch_options *how;
    const vwn_writer *out;
    vwn_watched *seen;
} Watch;

typedef struct Flow {
    Buf *out;
    int columns, at, rows; /* characters in the line; lines that are done */
} Flow;

/* A piece of ASCII, or of what a user wrote, which is cut where no line can hold it. */
static void piece(Flow *f, const char *text)
{
    int room = f->columns - 1, n = (int)strlen(text);
    if (!n)
        return;
    if (f->at && f->at + 2 + n > room) {
        buf_putc(f->out, '\n');
        f->rows++;
        f->at = 0;
    }
    if (f->at)
        buf_puts(f->out, "  ");
    f->at += f->at ? 2 : 0;
    n = n > room ? room : n;
    while (n && n < (int)strlen(text) && ((unsigned char)text[n] & 0xc0) == 0x80)
        n--; /* not in the middle of a character */
    for (int i = 0; i < n; i++)
        buf_putc(f->out, (unsigned char)text[i] < ' ' || text[i] == 0x7f ? '?' : text[i]);
    f->at += n;
}

static void line_end(Flow *f)
{
    if (f->at) {
        buf_putc(f->out, '\n');
        f->rows++;
    }
    f->at = 0;
}

static const char *clock_text(Arena *a, double seconds)
{
    long s = isfinite(seconds) ? lround(seconds) : 0;
    if (s >= 3600)
        return arena_printf(a, "%ld:%02ld:%02ld", s / 3600, s / 60 % 60, s % 60);
    return arena_printf(a, "%ld:%02ld", s / 60, s % 60);
}

static const char *value_piece(Arena *a, const char *name, const char *format, double v)
{
    Buf b = buf_new(a);
    if (isfinite(v)) {
        char text[64];
        snprintf(text, sizeof text, format, v);
        buf_printf(&b, "%s %s", name, text);
    }
    return b.s;
}

/* The last numbers, the most important ones first. */
static void numbers(Flow *f, Arena *a, const RunState *r, double quiet)
{
    double rate = run_curve_last(r, CURVE_RATE), eval = run_curve_last(r, CURVE_EVAL);
    Buf text = buf_new(a);
    if (isfinite(r->steps))
        piece(f, arena_printf(a, "step %.0f/%.0f", r->last.x[BY_STEP], r->steps));
    piece(f, value_piece(a, "loss", "%.4f", run_curve_last(r, CURVE_LOSS)));
    if (isfinite(eval))
        piece(f, arena_printf(a, r->eval_step == r->last.x[BY_STEP] ? "eval %.4f" : "eval %.4f (step %.0f)", eval,
                              r->eval_step));
    if (r->phase == RUN_GOES_ON && isfinite(r->eta))
        piece(f, arena_printf(a, "eta %s", clock_text(a, fmax(r->eta - quiet, 0))));
    if (isfinite(rate)) {
        chart_tick(&text, rate, rate >= 1e4 ? 1000 : 1);
        piece(f, arena_printf(a, "%s tok/s", text.s));
    }
}

static void further(Flow *f, Arena *a, const RunState *r)
{
    size_t losses = 0;
    for (size_t i = FIXED_CURVES; i < r->curve.n; i++)
        losses += !strncmp(r->curve.v[i].name, "loss.", 5);
    piece(f, value_piece(a, "bits/byte", "%.4f", run_curve_last(r, CURVE_BITS)));
    piece(f, value_piece(a, "lr", "%.2e", run_curve_last(r, CURVE_LR)));
    piece(f, value_piece(a, "gnorm", "%.2f", run_curve_last(r, CURVE_NORM)));
    for (size_t i = FIXED_CURVES; i < r->curve.n; i++) {
        const char *name = r->curve.v[i].name;
        if (!strncmp(name, "metric.", 7) || (losses > 1 && !strncmp(name, "loss.", 5)))
            piece(f, value_piece(a, strchr(name, '.') + 1, "%.4g", run_curve_last(r, i)));
    }
    if (isfinite(r->memory) && r->memory > 0)
        piece(f, arena_printf(a, "memory %s", bytes_text(a, r->memory)));
    piece(f, arena_printf(a, "%s of training", clock_text(a, r->last.x[BY_SECONDS])));
}

static ChartSeries series_of(Arena *a, const RunCurve *c, bool points)
{
    ChartSeries s = {.name = c->name, .n = c->point.n, .points = points};
    s.x = NEW_ARRAY(a, double, s.n + 1);
    s.y = NEW_ARRAY(a, double, s.n + 1);
    for (size_t i = 0; i < s.n; i++) {
        ((double *)s.x)[i] = c->point.v[i].x[BY_STEP];
        ((double *)s.y)[i] = c->point.v[i].value;
    }
    return s;
}

static void screen(Watch *w, const RunState *r)
{
    Arena *a = w->session.arena;
    Buf b = buf_new(a);
    Flow f = {.out = &b, .columns = w->how->columns};
    piece(&f, arena_printf(a, "%s:", r->path));
    piece(&f, run_phase_text(a, r));
    line_end(&f);
    numbers(&f, a, r, r->quiet);
    line_end(&f);
    further(&f, a, r);
    line_end(&f);
    int left = w->how->rows - f.rows - (r->note.n ? 1 : 0) - 1;
    bool drawn = r->curve.v[CURVE_LOSS].point.n > 1;
    if (drawn) {
        ChartSeries s[2] = {series_of(a, &r->curve.v[CURVE_LOSS], false), series_of(a, &r->curve.v[CURVE_EVAL], true)};
        Chart c = {.x_label = "step", .y_label = "loss", .series = s, .n = s[1].n ? 2 : 1, .falls = true};
        chart_text(&b, &c, w->how->columns, left < 20 ? left : 20, w->how->utf8);
    }
    if (r->note.n) {
        const RunNote *n = &r->note.v[r->note.n - 1];
        piece(&f, arena_printf(a, "step %.0f, %s: %s", n->step, n->kind, n->text));
        line_end(&f);
    }
    write_text(w->out, b.s, b.n);
}

static void line(Watch *w, const RunState *r)
{
    Arena *a = w->session.arena;
    Buf b = buf_new(a);
    Flow f = {.out = &b, .columns = 4096};
    piece(&f, arena_printf(a, "%s:", r->path));
    piece(&f, run_phase_names[r->phase]);
    numbers(&f, a, r, 0);
    line_end(&f);
    write_text(w->out, b.s, b.n);
}

static void json(Watch *w, const RunState *r)
{
    Buf b = buf_new(w->session.arena);
    const struct {
        const char *key;
        double v;
    } of[] = {{"step", r->last.x[BY_STEP]},
              {"steps", r->steps},
              {"tokens", r->last.x[BY_TOKENS]},
              {"flops", r->last.x[BY_FLOPS]},
              {"seconds", r->last.x[BY_SECONDS]},
              {"loss", run_curve_last(r, CURVE_LOSS)},
              {"eval_loss", run_curve_last(r, CURVE_EVAL)},
              {"eval_step", r->eval_step},
              {"bits_per_byte", run_curve_last(r, CURVE_BITS)},
              {"lr", run_curve_last(r, CURVE_LR)},
              {"grad_norm", run_curve_last(r, CURVE_NORM)},
              {"tok_s", run_curve_last(r, CURVE_RATE)},
              {"eta", r->phase == RUN_GOES_ON ? r->eta : NAN},
              {"mem", r->memory},
              {"silent", r->quiet}};
    buf_puts(&b, "{\"v\":1,\"event\":\"watch\",\"run\":");
    buf_json_string(&b, r->path, strlen(r->path));
    buf_printf(&b, ",\"state\":\"%s\"", run_phase_names[r->phase]);
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        buf_printf(&b, ",\"%s\":", of[i].key);
        buf_json_number(&b, of[i].v);
    }
    for (size_t i = FIXED_CURVES; i < r->curve.n; i++) {
        buf_putc(&b, ',');
        buf_json_string(&b, r->curve.v[i].name, strlen(r->curve.v[i].name));
        buf_putc(&b, ':');
        buf_json_number(&b, run_curve_last(r, i));
    }
    buf_puts(&b, "}\n");
    write_text(w->out, b.s, b.n);
}

/* ---- a sweep ---- */

typedef struct WatchedPoint {
    const ListedPoint *point;
    const char *state; /* of the manifest, or of its run, which the manifest does not know of yet */
    bool on;           /* somebody trains there */
    RunState run;      /* where it is there */
} WatchedPoint;
typedef struct WatchedSweep {
    const char *path, *state;
    ListedSweep list;
    WatchedPoint *point;
    size_t finished, on;
    double eta; /* seconds; NaN: nothing tells yet */
    vwn_status ended;
} WatchedSweep;

/* As long as the points took that are done, or that are on will take; those that are on go on beside each other. */
static double eta_of(const WatchedSweep *s)
{
    double took = 0, known = 0, own = 0;
    for (size_t i = 0; i < s->list.point.n; i++) {
        const WatchedPoint *p = &s->point[i];
        if (!p->point->there)
            continue;
        double seconds = p->run.last.x[BY_SECONDS];
        bool done = strcmp(p->state, "waiting") && !p->on;
        if (p->on)
            own += isfinite(p->run.eta) ? fmax(p->run.eta - p->run.quiet, 0) : 0;
        if (!done && !(p->on && isfinite(p->run.eta)))
            continue;
        took += done ? seconds : seconds + p->run.eta;
        known++;
    }
    double left = (double)(s->list.waiting - (s->on < s->list.waiting ? s->on : s->list.waiting));
    return s->on && known ? (own + left * took / known) / (double)s->on : NAN;
}

static WatchedSweep read_sweep(Watch *w)
{
    Session *s = &w->session;
    static const struct {
        const char *state;
        vwn_status is;
    } bad[] = {{"failed", VWN_ENVIRONMENT}, {"diverged", VWN_DIVERGED}, {"wrong", VWN_INPUT}};
    WatchedSweep all = {.path = w->how->run};
    bool held = run_is_held(s, all.path); /* before the manifest, which is written last */
    all.list = sweep_list(s, all.path);
    all.point = NEW_ARRAY(s->arena, WatchedPoint, all.list.point.n + 1);
    all.finished = all.list.point.n - all.list.waiting;
    for (size_t i = 0; i < all.list.point.n; i++) {
        WatchedPoint *p = &all.point[i];
        p->point = &all.list.point.v[i];
        p->state = p->point->state;
        if (p->point->there)
            p->run = run_state_read(s, p->point->path);
        p->on = p->point->there && p->run.phase == RUN_GOES_ON;
        all.on += p->on;
    }
    for (size_t k = 0; k < COUNT_OF(bad); k++)
        for (size_t i = 0; i < all.list.point.n && all.ended == VWN_OK; i++)
            all.ended = strcmp(all.point[i].state, bad[k].state) ? VWN_OK : bad[k].is;
    if (all.list.waiting)
        all.ended = VWN_INTERRUPTED;
    all.state = held ? "running" : all.list.waiting ? "stopped" : "done";
    all.eta = held ? eta_of(&all) : NAN;
    return all;
}

static void sweep_line(Flow *f, Arena *a, const WatchedSweep *s)
{
    piece(f, arena_printf(a, "%s:", s->path));
    piece(f, s->state);
    piece(f, arena_printf(a, "%zu of %zu points finished", s->finished, s->list.point.n));
    if (isfinite(s->eta))
        piece(f, arena_printf(a, "about %s left", clock_text(a, s->eta)));
}

static const char *number_or(Arena *a, double x, const char *none)
{
    return isfinite(x) ? arena_printf(a, "%.4f", x) : none;
}

/* The points that are on and behind them those that fit, the latest ones of what is done. */
static void sweep_screen(Watch *w, const WatchedSweep *s)
{
    static const char *const head[] = {"point", "state", "step", "loss", "eval", "eta"};
    Arena *a = w->session.arena;
    Buf b = buf_new(a);
    Flow f = {.out = &b, .columns = w->how->columns};
    Table t = {.arena = a, .columns = COUNT_OF(head)};
    sweep_line(&f, a, s);
    line_end(&f);
    size_t room = w->how->rows > f.rows + 4 ? (size_t)(w->how->rows - f.rows - 4) : 1, n = s->list.point.n, skipped = 0;
    bool all = n <= room;
    size_t first_on = 0;
    while (first_on < n && !s->point[first_on].on)
        first_on++;
    size_t from = all || first_on == n ? 0 : first_on > room / 2 ? first_on - room / 2 : 0;
    from = !all && from + room > n ? n - room : from;
    for (size_t i = 0; i < COUNT_OF(head); i++)
        i < 2 ? table_text(&t, head[i]) : table_right(&t, head[i]);
    for (size_t i = 0; i < n; i++) {
        const WatchedPoint *p = &s->point[i];
        if (!all && !p->on && (i < from || i >= from + room)) {
            skipped++;
            continue;
        }
        bool there = p->point->there;
        table_text(&t, p->point->name);
        table_text(&t, p->on ? "running" : p->state);
        table_right(&t, there ? arena_printf(a, "%.0f/%.0f", p->run.last.x[BY_STEP], p->run.steps) : "-");
        table_right(&t, number_or(a, there ? run_curve_last(&p->run, CURVE_LOSS) : NAN, "-"));
        table_right(&t, number_or(a, there ? run_curve_last(&p->run, CURVE_EVAL) : NAN, "-"));
        table_right(&t, p->on && isfinite(p->run.eta) ? clock_text(a, fmax(p->run.eta - p->run.quiet, 0)) : "");
    }
    table_print(&b, &t);
    if (skipped)
        buf_printf(&b, "  and %zu more\n", skipped);
    write_text(w->out, b.s, b.n);
}

static void sweep_text(Watch *w, const WatchedSweep *s)
{
    Arena *a = w->session.arena;
    Buf b = buf_new(a);
    Flow f = {.out = &b, .columns = 4096};
    sweep_line(&f, a, s);
    for (size_t i = 0; i < s->list.point.n; i++)
        if (s->point[i].on)
            piece(&f,
                  arena_printf(a, "%s step %.0f/%.0f loss %s", s->point[i].point->name, s->point[i].run.last.x[BY_STEP],
                               s->point[i].run.steps, number_or(a, run_curve_last(&s->point[i].run, CURVE_LOSS), "-")));
    line_end(&f);
    write_text(w->out, b.s, b.n);
}

static void sweep_json(Watch *w, const WatchedSweep *s)
{
    Buf b = buf_new(w->session.arena);
    buf_puts(&b, "{\"v\":1,\"event\":\"watch_sweep\",\"sweep\":");
    buf_json_string(&b, s->path, strlen(s->path));
    buf_printf(&b, ",\"state\":\"%s\",\"of\":%zu,\"finished\":%zu,\"eta\":", s->state, s->list.point.n, s->finished);
    buf_json_number(&b, round(s->eta));
    buf_puts(&b, ",\"points\":[");
    for (size_t i = 0; i < s->list.point.n; i++) {
        const WatchedPoint *p = &s->point[i];
        bool there = p->point->there;
        const struct {
            const char *key;
            double v;
        } of[] = {{"step", there ? p->run.last.x[BY_STEP] : NAN},
                  {"steps", there ? p->run.steps : NAN},
                  {"loss", there ? run_curve_last(&p->run, CURVE_LOSS) : NAN},
                  {"eval_loss", there ? run_curve_last(&p->run, CURVE_EVAL) : NAN},
                  {"bits_per_byte", there ? run_curve_last(&p->run, CURVE_BITS) : NAN}};
        buf_puts(&b, i ? ",{\"name\":" : "{\"name\":");
        buf_json_string(&b, p->point->name, strlen(p->point->name));
        buf_printf(&b, ",\"state\":\"%s\"", p->on ? "running" : p->state);
        for (size_t k = 0; k < COUNT_OF(of); k++) {
            buf_printf(&b, ",\"%s\":", of[k].key);
            buf_json_number(&b, of[k].v);
        }
        buf_putc(&b, '}');
    }
    buf_puts(&b, "]}\n");
    write_text(w->out, b.s, b.n);
}

static void watch_sweep(Watch *w)
{
    static void (*const print[])(Watch *, const WatchedSweep *) = {
        [VWN_WATCH_SCREEN] = sweep_screen, [VWN_WATCH_LINE] = sweep_text, [VWN_WATCH_JSON] = sweep_json};
    WatchedSweep s = read_sweep(w);
    print[w->how->form](w, &s);
    if (w->seen)
        *w->seen = (vwn_watched){!strcmp(s.state, "running"), s.ended};
}

/* ---- the call ---- */

static Status watch_body(void *user)
{
    static void (*const print[])(Watch *, const RunState *) = {
        [VWN_WATCH_SCREEN] = screen, [VWN_WATCH_LINE] = line, [VWN_WATCH_JSON] = json};
    static const vwn_status ended[] = {[RUN_GOES_ON] = VWN_OK,        [RUN_TRAINED] = VWN_OK,
                                       [RUN_STOPPED] = VWN_OK,        [RUN_INTERRUPTED] = VWN_INTERRUPTED,
                                       [RUN_DIVERGED] = VWN_DIVERGED, [RUN_FAILED] = VWN_ENVIRONMENT,
                                       [RUN_SILENT] = VWN_ENVIRONMENT};
    Watch *w = user;
    session_open(&w->session, w->session.owner);
    if (!run_exists(&w->session, w->how->run) && run_is_sweep(&w->session, w->how->run)) {
        watch_sweep(w);
        return ST_OK;
    }
    RunState r = run_state_read(&w->session, w->how->run);
    events_warn(&w->session, r.path, &r.events);
    print[w->how->form](w, &r);
    if (w->seen)
        *w->seen = (vwn_watched){r.phase == RUN_GOES_ON, ended[r.phase]};
    return ST_OK;
}

Status watch_run(vwn_context *owner, const vwn_watch_options *how, const vwn_writer *out, vwn_watched *seen)
{
    Watch w = {.session.owner = owner, .how = how, .out = out, .seen = seen};
    Status st = guarded(owner->ctx, watch_body, &w);
    return session_end(&w.session, st);
}
