/* watch.c - `vwn watch`: how a run stands.
 *
 * In:  a run directory.   Out: a screen of text, one line, or JSON.
 * The one idea: what is said is made of short pieces that go on the next line where the screen ends, so that at any
 * width nothing is cut; the rows that are left show the curve.
 */
#include <math.h>
#include <stdio.h>

#include "compiler/report/report.h"
#include "runtime/draw/chart.h"
#include "run_state.h"
#include "runtime/checkpoint/source.h"

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
        piece(f, arena_printf(a, r->eval_step == r->last.x[BY_STEP] ? "eval %.4f" : "eval %.4f (step %.0f)", eval, r->eval_step));
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
    } of[] = {{"step", r->last.x[BY_STEP]}, {"steps", r->steps}, {"tokens", r->last.x[BY_TOKENS]}, {"flops", r->last.x[BY_FLOPS]},
              {"seconds", r->last.x[BY_SECONDS]}, {"loss", run_curve_last(r, CURVE_LOSS)}, {"eval_loss", run_curve_last(r, CURVE_EVAL)},
              {"eval_step", r->eval_step}, {"lr", run_curve_last(r, CURVE_LR)}, {"grad_norm", run_curve_last(r, CURVE_NORM)},
              {"tok_s", run_curve_last(r, CURVE_RATE)}, {"eta", r->phase == RUN_GOES_ON ? r->eta : NAN}, {"mem", r->memory},
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

static Status watch_body(void *user)
{
    static void (*const print[])(Watch *, const RunState *) = {[VWN_WATCH_SCREEN] = screen, [VWN_WATCH_LINE] = line, [VWN_WATCH_JSON] = json};
    static const vwn_status ended[] = {[RUN_GOES_ON] = VWN_OK, [RUN_TRAINED] = VWN_OK, [RUN_STOPPED] = VWN_OK, [RUN_INTERRUPTED] = VWN_INTERRUPTED,
                                       [RUN_DIVERGED] = VWN_DIVERGED, [RUN_FAILED] = VWN_ENVIRONMENT, [RUN_SILENT] = VWN_ENVIRONMENT};
    Watch *w = user;
    session_open(&w->session, w->session.owner);
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
