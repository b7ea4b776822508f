/* inspect.c - `vwn inspect --growth`: how far a grown model has moved from the weights before it.
 *
 * In:  a run that has grown, or the checkpoint before a growth step and some after it.   Out: the indicators of
 * growth_metrics.h, a row for each checkpoint.
 * The one idea: tensors are streamed from the files, twice, so memory does not depend on the model: the first time for
 * their range and a sample, the second for their histogram.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "compiler/growth/growth.h"
#include "compiler/report/report.h"
#include "growth_metrics.h"
#include "runtime/checkpoint/run_dir.h"
#include "runtime/checkpoint/source.h"
#include "look.h"

enum { BLOCK = 1 << 14 };

/* Numbers of some tensors of one file, as if they were one array. */
typedef struct InspectPool {
    Session *s;
    const SafeFile *file;
    const SafeTensor **tensor;
    size_t n;
    int64_t elements;
    double lo, hi;
    double *sample, *picked; /* `samples` of them for ranks and densities; the second is sorted in place */
    size_t n_sample;
    int64_t *count; /* of each bin */
} InspectPool;

typedef struct Inspection {
    Session session;
    const vwn_inspect_options *how;
    const vwn_writer *out;
    const Hooks *hooks;
    size_t bins, samples;
    Checkpoint *before;
    VEC(Checkpoint *) later; /* the first is the grown model right after the step where `origin` */
    bool origin;
    const Param **param; /* those that are compared, */
    const Name *now;     /* and what they are called in later checkpoints */
    size_t n_params;
} Inspection;

/* ---- numbers ---- */

static void each_block(const InspectPool *p, void (*use)(void *user, const double *v, size_t n), void *user)
{
    char why[WHY];
    ArenaMark mark = arena_mark(p->s->arena);
    double *v = NEW_ARRAY(p->s->arena, double, BLOCK);
    for (size_t i = 0; i < p->n; i++)
        for (int64_t at = 0; at < p->tensor[i]->elements; at += BLOCK) {
            int64_t left = p->tensor[i]->elements - at, n = left < BLOCK ? left : BLOCK;
            if (!safe_read(p->file, p->tensor[i], at, n, v, why))
                ctx_raise(p->s->ctx, ST_ENVIRONMENT, "%s", why);
            use(user, v, (size_t)n);
        }
    arena_reset(p->s->arena, mark);
}

/* Picks `want` of `left` numbers that are to come, each set of them as likely as any other. */
typedef struct Picking {
    InspectPool *pool;
    uint64_t key, at;
    size_t want;
} Picking;

static void look(void *user, const double *v, size_t n)
{
    Picking *k = user;
    InspectPool *p = k->pool;
    for (size_t i = 0; i < n; i++, k->at++) {
        p->lo = fmin(p->lo, v[i]);
        p->hi = fmax(p->hi, v[i]);
        double left = (double)p->elements - (double)k->at, open = (double)(k->want - p->n_sample);
        if (open > 0 && philox_uniform(k->key, 0, k->at) * left < open)
            p->sample[p->n_sample++] = v[i];
    }
}

typedef struct Binning {
    int64_t *count;
    double lo, hi;
    size_t bins;
} Binning;

static void bin(void *user, const double *v, size_t n)
{
    const Binning *b = user;
    for (size_t i = 0; i < n; i++)
        b->count[histogram_bin(v[i], b->lo, b->hi, b->bins)]++;
}

static const SafeTensor *tensor_of(const Inspection *in, const Checkpoint *c, const Param *p, Name now)
{
    const char *path = c == in->before ? p->path : now;
    const SafeTensor *t = path ? safe_find(&c->file, path) : NULL;
    if (!t && path && path != p->path)
        ctx_raise(in->session.ctx, ST_INPUT,
                  "%.200s has no tensor `%.150s`, which the growth step makes of `%.150s` of %.200s", c->file.path,
                  path, p->path, in->before->file.path);
    if (!t)
        ctx_raise(in->session.ctx, ST_INPUT,
                  "%.200s has no tensor `%.150s`, as the checkpoint before the growth step, %.200s, has", c->file.path,
                  p->path, in->before->file.path);
    return t;
}

/* Of one parameter, or of all. */
static InspectPool numbers_open(Inspection *in, const Checkpoint *c, const Param *only, const char *key)
{
    Session *s = &in->session;
    InspectPool p = {.s = s, .file = &c->file, .lo = INFINITY, .hi = -INFINITY};
    p.tensor = NEW_ARRAY(s->arena, const SafeTensor *, in->n_params + 1);
    for (size_t i = 0; i < in->n_params; i++)
        if (!only || only == in->param[i]) {
            p.tensor[p.n] = tensor_of(in, c, in->param[i], in->now[i]);
            p.elements += p.tensor[p.n++]->elements;
        }
    size_t want = p.elements < (int64_t)in->samples ? (size_t)p.elements : in->samples;
    p.sample = NEW_ARRAY(s->arena, double, want + 1);
    p.picked = NEW_ARRAY(s->arena, double, want + 1);
    each_block(&p, look, &(Picking){.pool = &p, .key = philox_key(in->how->seed, key), .want = want});
    for (size_t i = 0; i < p.n_sample; i++)
        if (!isfinite(p.sample[i]) || !isfinite(p.lo) || !isfinite(p.hi))
            ctx_raise(s->ctx, ST_INPUT, "%.300s holds numbers that are not finite", c->file.path);
    return p;
}

static double overlap(const Inspection *in, const InspectPool *x, const InspectPool *y)
{
    if (in->how->densities)
        return overlap_of_densities(x->sample, x->n_sample, y->sample, y->n_sample);
    Arena *a = in->session.arena;
    double lo = fmin(x->lo, y->lo), hi = fmax(x->hi, y->hi);
    Binning f = {NEW_ARRAY(a, int64_t, in->bins), lo, hi, in->bins},
            g = {NEW_ARRAY(a, int64_t, in->bins), lo, hi, in->bins};
    memset(f.count, 0, in->bins * sizeof *f.count);
    memset(g.count, 0, in->bins * sizeof *g.count);
    each_block(x, bin, &f);
    each_block(y, bin, &g);
    return overlap_of_histograms(f.count, x->elements, g.count, y->elements, in->bins);
}

static double rank_test(const InspectPool *x, const InspectPool *y)
{
    memcpy(x->picked, x->sample, x->n_sample * sizeof *x->sample);
    memcpy(y->picked, y->sample, y->n_sample * sizeof *y->sample);
    return mann_whitney(x->picked, x->n_sample, y->picked, y->n_sample);
}

/* The held-out loss that the run measured at this checkpoint, which is ln of the perplexity; NaN: none. */
static double held_out(const Checkpoint *c)
{
    return c->progress.eval_step == c->progress.step ? c->progress.eval_loss : NAN;
}

/* The states of all later checkpoints, of one parameter or of all together. */
static GrowthState *states(Inspection *in, const Param *only)
{
    GrowthState *s = NEW_ARRAY(in->session.arena, GrowthState, in->later.n + 1);
    InspectPool before = numbers_open(in, in->before, only, "before");
    for (size_t t = 0; t < in->later.n; t++) {
        ArenaMark mark = arena_mark(in->session.arena);
        InspectPool now = numbers_open(in, in->later.v[t], only, "after");
        s[t] = (GrowthState){
            .noc = overlap(in, &before, &now), .u = rank_test(&before, &now), .score = -held_out(in->later.v[t])};
        arena_reset(in->session.arena, mark);
    }
    growth_path(s, in->later.n);
    return s;
}

/* ---- which checkpoints, which tensors ---- */

static Checkpoint *open_one(Inspection *in, const char *path)
{
    char why[WHY];
    Checkpoint *c = NEW(in->session.arena, Checkpoint);
    if (!checkpoint_open(&in->session, path, c, why))
        ctx_raise(in->session.ctx, ST_ENVIRONMENT, "%s", why);
    return c;
}

/* The checkpoint before the wanted growth step, the last one without a wish; those after it and before the next step. */
static void open_run(Inspection *in, const char *folder)
{
    Session *s = &in->session;
    run_want(s, folder);
    KeptList kept = run_kept(s, folder);
    const char *want = in->how->step;
    int64_t until = INT64_MAX;
    Buf names = buf_new(s->arena);
    VEC(Checkpoint *) all = {0};
    for (size_t i = 0; i < kept.n; i++) {
        Checkpoint *c = open_one(in, arena_printf(s->arena, "%s/ckpt/before_%s.safetensors", folder, kept.name[i]));
        vec_push(s->arena, &all, c);
        buf_printf(&names, "%s%s", i ? ", " : "", kept.name[i]);
        if (want ? !strcmp(want, kept.name[i]) : !in->before || c->progress.step >= in->before->progress.step)
            in->before = c;
    }
    if (!kept.n)
        ctx_raise(s->ctx, ST_USAGE, "the run %.300s has not grown: it keeps no checkpoint from before a growth step",
                  folder);
    if (!in->before)
        ctx_raise(s->ctx, ST_USAGE, "the run %.200s has not grown by a step `%.100s`; it has %.200s", folder, want,
                  names.s);
    int64_t from = in->before->progress.step;
    for (size_t i = 0; i < all.n; i++)
        if (all.v[i]->progress.step > from && all.v[i]->progress.step < until)
            until = all.v[i]->progress.step;
    StepList l = run_checkpoints(s, folder);
    for (size_t i = 0; i < l.n; i++)
        if (l.step[i] >= from && l.step[i] < until)
            vec_push(
                s->arena, &in->later,
                open_one(in, arena_printf(s->arena, "%s/ckpt/%s", folder, run_checkpoint_name(s->arena, l.step[i]))));
    if (!in->later.n)
        ctx_raise(s->ctx, ST_ENVIRONMENT, "the run %.300s has no checkpoint after the growth step", folder);
    in->origin = in->later.v[0]->progress.step == from;
}

static void open_sources(Inspection *in)
{
    Session *s = &in->session;
    const vwn_inspect_options *how = in->how;
    if (how->n_sources == 1) {
        open_run(in, how->source[0]);
        return;
    }
    if (how->step)
        ctx_raise(s->ctx, ST_USAGE, "`--step` chooses a growth step of one run");
    for (size_t i = 0; i < how->n_sources; i++) {
        Checkpoint *c = source_checkpoint(s, how->source[i]);
        if (!i)
            in->before = c;
        else
            vec_push(s->arena, &in->later, c);
    }
    in->origin = how->n_sources > 2;
}

static bool grew(const SafeTensor *t, const Param *p)
{
    bool same = t->rank == p->shape.rank;
    for (int k = 0; same && k < t->rank; k++)
        same = t->d[k] == p->shape.d[k].n;
    return !same;
}

/* By path before a growth step: the path behind it, which is another one where layers are put between or a tensor is made of a part
 * of another kind. What is left behind is absent. */
static Map paths_behind(const GrowStep *g, Arena *arena)
{
    Map behind;
    map_init(&behind, arena);
    for (size_t i = 0; i < g->after->param.n; i++) {
        Name path = g->after->param.v[i].path, of = g->source && g->source[i] ? g->source[i] : path;
        void **slot = map_at(&behind, (uintptr_t)of);
        bool itself = of == path || (g->moved && g->moved[i]);
        if (!*slot || itself)
            *slot = (void *)(uintptr_t)path;
    }
    return behind;
}

/* How many of the growth steps that the file had still to take lie between the checkpoint before and the first later one. */
static size_t steps_between(const Inspection *in, const Unit *u)
{
    const char *was = in->before->meta.grown, *at = in->later.v[0]->meta.grown;
    size_t n = strlen(was), steps = 0;
    if (strncmp(at, was, n) != 0)
        return 0;
    for (at += n; *at && steps < u->grow.n; steps++) {
        size_t length = strcspn(at, " ");
        if (strlen(u->grow.v[steps].name) != length || strncmp(at, u->grow.v[steps].name, length) != 0)
            break;
        at += length + strspn(at + length, " ");
        at += strcspn(at, " ");
        at += strspn(at, " ");
    }
    return steps;
}

/* Weights of the model before: those that are selected, else those of another shape afterwards. */
static void choose_tensors(Inspection *in)
{
    Session *s = &in->session;
    const Unit *u = source_unit(s, in->before, false, in->hooks);
    const Model *m = u->model;
    const char *want = in->how->tensors;
    const size_t steps = steps_between(in, u);
    Map *behind = NEW_ARRAY(s->arena, Map, steps + 1);
    Name *now = NEW_ARRAY(s->arena, Name, m->param.n + 1);
    for (size_t k = 0; k < steps; k++)
        behind[k] = paths_behind(&u->grow.v[k], s->arena);
    in->param = NEW_ARRAY(s->arena, const Param *, m->param.n + 1);
    in->now = now;
    for (size_t i = 0; i < m->param.n; i++) {
        const Param *p = &m->param.v[i];
        Name path = p->path;
        for (size_t k = 0; k < steps && path; k++)
            path = map_get(&behind[k], (uintptr_t)path);
        if (p->buffer ||
            (want ? !growth_selects(want, p->path) : !path || !grew(tensor_of(in, in->later.v[0], p, path), p)))
            continue;
        now[in->n_params] = path;
        in->param[in->n_params++] = p;
    }
    if (!in->n_params && want)
        ctx_raise(s->ctx, ST_USAGE,
                  "`%.200s` selects no weight of %.200s; `vwn params FILE --by tensor` prints their paths", want,
                  in->before->file.path);
    if (!in->n_params)
        ctx_raise(s->ctx, ST_USAGE, "no weight of %.200s has another shape in %.200s: choose some with --tensors",
                  in->before->file.path, in->later.v[0]->file.path);
}

/* ---- what is printed ---- */

static void cell_number(Table *t, double x) { table_right(t, isfinite(x) ? arena_printf(t->arena, "%.4f", x) : "-"); }

static void table_of(Inspection *in, Buf *out, const GrowthState *s)
{
    static const char *const head[] = {"step", "eval loss", "NOC", "U_P", "NOC%", "U_P%", "R", "|ln R|", "R_E", "R_G"};
    Arena *a = in->session.arena;
    Table t = {.arena = a, .columns = in->origin ? COUNT_OF(head) : 4};
    for (size_t i = 0; i < t.columns; i++)
        table_right(&t, head[i]);
    for (size_t i = 0; i < in->later.n; i++) {
        const double x[] = {held_out(in->later.v[i]),
                            s[i].noc,
                            s[i].u,
                            100 * s[i].noc_change,
                            100 * s[i].u_change,
                            s[i].radius,
                            s[i].log_radius,
                            s[i].euclidean,
                            s[i].grassmann};
        table_right(&t, arena_printf(a, "%lld", (long long)in->later.v[i]->progress.step));
        for (size_t k = 0; k + 1 < t.columns; k++)
            cell_number(&t, x[k]);
    }
    table_print(out, &t);
}

/* ln PPL over |ln R|, as the paper fits it (eq. 19). */
static bool fit(const Inspection *in, const GrowthState *s, FittedLine *line, size_t *points)
{
    double *x = NEW_ARRAY(in->session.arena, double, in->later.n + 1),
           *y = NEW_ARRAY(in->session.arena, double, in->later.n + 1);
    *points = 0;
    for (size_t i = 0; i < in->later.n && in->origin; i++)
        if (isfinite(s[i].log_radius) && isfinite(held_out(in->later.v[i]))) {
            x[*points] = s[i].log_radius;
            y[(*points)++] = held_out(in->later.v[i]);
        }
    return line_through(x, y, *points, line);
}

static void settings(const Inspection *in, Buf *out)
{
    if (in->how->densities)
        buf_printf(
            out,
            "  NOC: Gaussian kernel densities, Scott's bandwidth, %d points, of at most %zu weights of each side\n",
            KDE_POINTS, in->samples);
    else
        buf_printf(out, "  NOC: histograms of all weights, %zu equal bins on the common range\n", in->bins);
    buf_printf(out,
               "  U_P: Mann-Whitney, two-sided, corrected for ties and continuity, of at most %zu weights of each "
               "side, seed %llu\n",
               in->samples, (unsigned long long)in->how->seed);
    if (in->origin)
        buf_puts(out, "  NOC%, U_P% and R: against the first row, the grown model right after the step; R_E, R_G: in "
                      "the two main\n"
                      "  components of (U_P%, NOC%, held-out loss), centred, not scaled\n");
    else
        buf_puts(out, "  NOC%, U_P% and R need the checkpoint right after the step, which is not here\n");
}

static void print_text(Inspection *in, const GrowthState *s)
{
    Buf b = buf_new(in->session.arena);
    FittedLine line;
    size_t points;
    buf_printf(&b, "Against %s, step %lld\n  ", in->before->file.path, (long long)in->before->progress.step);
    buf_count(&b, (int64_t)in->n_params);
    buf_printf(&b, in->how->tensors ? " weights selected by `%s`\n" : " weights that grew\n", in->how->tensors);
    settings(in, &b);
    buf_putc(&b, '\n');
    table_of(in, &b, s);
    if (fit(in, s, &line, &points))
        buf_printf(&b, "\n  ln PPL = %.4f |ln R| + %.4f, of %zu points, which explains %.0f %% of the variance\n",
                   line.w, line.b, points, 100 * line.share);
    for (size_t i = 0; in->how->by_tensor && i < in->n_params; i++) {
        buf_printf(&b, "\n%s\n", in->param[i]->path);
        table_of(in, &b, states(in, in->param[i]));
    }
    write_text(in->out, b.s, b.n);
}

static void put_rows(Inspection *in, JsonText *t, const GrowthState *s)
{
    json_open(t, "rows", '[');
    for (size_t i = 0; i < in->later.n; i++) {
        json_open(t, NULL, '{');
        json_put_integer(t, "step", in->later.v[i]->progress.step);
        json_put_number(t, "eval_loss", held_out(in->later.v[i]));
        json_put_number(t, "noc", s[i].noc);
        json_put_number(t, "u_p", s[i].u);
        if (in->origin) {
            json_put_number(t, "noc_change", s[i].noc_change);
            json_put_number(t, "u_p_change", s[i].u_change);
            json_put_number(t, "radius", s[i].radius);
            json_put_number(t, "log_radius", s[i].log_radius);
            json_put_number(t, "euclidean", s[i].euclidean);
            json_put_number(t, "grassmann", s[i].grassmann);
        }
        json_close(t, '}');
    }
    json_close(t, ']');
}

static void print_json(Inspection *in, const GrowthState *s)
{
    FittedLine line;
    size_t points, room = 4096 + 320 * in->later.n * (in->how->by_tensor ? in->n_params + 1 : 1);
    for (size_t i = 0; i < in->n_params; i++)
        room += 64 + strlen(in->param[i]->path);
    room += 6 * strlen(in->before->file.path);
    char *memory = NEW_ARRAY(in->session.arena, char, room);
    JsonText t;
    json_begin(&t, memory, room - 1);
    json_open(&t, NULL, '{');
    json_put_integer(&t, "v", 1);
    json_put_string(&t, "event", "inspect_growth");
    json_put_string(&t, "before", in->before->file.path);
    json_put_string(&t, "noc", in->how->densities ? "kde" : "histogram");
    json_put_integer(&t, in->how->densities ? "points" : "bins", in->how->densities ? KDE_POINTS : (int64_t)in->bins);
    json_put_integer(&t, "samples", (int64_t)in->samples);
    json_put_integer(&t, "seed", (int64_t)in->how->seed);
    json_put_integer(&t, "weights", (int64_t)in->n_params);
    put_rows(in, &t, s);
    if (fit(in, s, &line, &points)) {
        json_open(&t, "fit", '{');
        json_put_integer(&t, "points", (int64_t)points);
        json_put_number(&t, "slope", line.w);
        json_put_number(&t, "intercept", line.b);
        json_put_number(&t, "explained", line.share);
        json_close(&t, '}');
    }
    if (in->how->by_tensor) {
        json_open(&t, "tensors", '[');
        for (size_t i = 0; i < in->n_params; i++) {
            json_open(&t, NULL, '{');
            json_put_string(&t, "path", in->param[i]->path);
            put_rows(in, &t, states(in, in->param[i]));
            json_close(&t, '}');
        }
        json_close(&t, ']');
    }
    json_close(&t, '}');
    if (t.full)
        vwn_bug(in->session.ctx, "the memory of a report is too small");
    memory[t.n] = '\n';
    write_text(in->out, memory, t.n + 1);
}

static Status inspect_body(void *user)
{
    Inspection *in = user;
    session_open(&in->session, in->session.owner);
    in->bins = (size_t)in->how->bins;
    in->samples = (size_t)in->how->samples;
    open_sources(in);
    choose_tensors(in);
    const GrowthState *s = states(in, NULL);
    if (in->how->json)
        print_json(in, s);
    else
        print_text(in, s);
    return ST_OK;
}

Status inspect_growth(vwn_context *owner, const vwn_inspect_options *how, const vwn_writer *out, const Hooks *hooks)
{
    Inspection in = {.session.owner = owner, .how = how, .out = out, .hooks = hooks};
    Status st = guarded(owner->ctx, inspect_body, &in);
    return session_end(&in.session, st);
}
