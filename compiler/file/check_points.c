/* check_points.c - the points of a sweep: what is drawn, in which order they run, how far, what they are called.
 *
 * In:  the sweep and its items.   Out: levels of axes that are drawn; SweepPlan.point, bounds, report.
 * The one idea: what a point is depends on its own values alone, so a sweep that gets more points keeps those it had: drawn
 * numbers are keyed by the seed, the axis and their place in the sequence; names are made of values.
 */
#include "check_sweep.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* ---- what is drawn ---- */

static const Value *field(const Value *spec, const char *name)
{
    for (size_t i = 0; i < spec->record->n; i++)
        if (!strcmp(spec->record->field[i].name, name))
            return spec->record->field[i].value;
    return NULL;
}

static Span field_span(const Value *spec, const char *name)
{
    for (size_t i = 0; i < spec->record->n; i++)
        if (!strcmp(spec->record->field[i].name, name))
            return spec->record->field[i].span;
    return spec->record->span;
}

/* A whole number from `least` on. */
static bool whole(Eval *ev, const Value *v, Span at, const char *what, double least, double *out)
{
    if (v->kind == V_POISON)
        return false;
    *out = v->num;
    if (v->kind == V_NUM && is_whole(v->num) && v->num >= least)
        return true;
    err(ev, "E0206", at, "", "`%s` must be a whole number from %.0f, got %s", what, least,
        v->kind == V_NUM ? value_text(ev, v) : value_kind_name(v));
    return false;
}

bool sweep_draws(Sweep *s, const Ast *random)
{
    Eval *ev = s->ev;
    double n = 0, seed = 0;
    if (!random)
        return true;
    Value v = eval(ev, random, s->file->env, NULL);
    const Value *points = &v, *word = NULL, *key = NULL;
    if (v.kind == V_SPEC && !strcmp(v.record->name, "draws")) {
        points = field(&v, "points");
        word = field(&v, "sequence");
        key = field(&v, "seed");
    }
    if (!whole(ev, points, random->span, "random", 1, &n) ||
        (key && key->kind != V_NONE && !whole(ev, key, field_span(&v, "seed"), "seed", 0, &seed)))
        return false;
    if (n > SWEEP_POINTS_MOST)
        limit(ev, random->span, "points of a sweep", SWEEP_POINTS_MOST);
    s->draws =
        (Draws){.n = (size_t)n, .seed = (uint64_t)seed, .seeded = key && key->kind == V_NUM, .span = random->span};
    if (!word)
        return true;
    s->draws.halton = !strcmp(word->word, "halton");
    return true;
}

/* Halton: the digits of i in base b, mirrored at the point. */
static double mirrored(uint64_t i, uint64_t base)
{
    double x = 0, scale = 1;
    for (; i; i /= base) {
        scale /= (double)base;
        x += scale * (double)(i % base);
    }
    return x;
}

/* Number i of the sequence of an axis, or of an entry of lists, which is the `number`th that is drawn; in [0, 1). */
static double drawn(const Sweep *s, const char *axis, size_t number, size_t i)
{
    static const uint8_t prime[HALTON_MOST] = {2,  3,  5,  7,  11, 13, 17, 19, 23, 29,  31,  37,  41,  43,  47,  53,
                                               59, 61, 67, 71, 73, 79, 83, 89, 97, 101, 103, 107, 109, 113, 127, 131};
    uint64_t key = philox_key(s->draws.seed, axis);
    if (!s->draws.halton)
        return philox_uniform(key, 0, i);
    double u = mirrored(i + 1, prime[number]) + (s->draws.seeded ? philox_uniform(key, 1, 0) : 0);
    return u < 1 ? u : u - 1;
}

/* Digits that a name should have, and a multiple of `round` in the range. */
static double tidy(double x, double low, double high, double round)
{
    char text[40];
    if (round > 0) {
        x = round * rint(x / round);
        x = x < low - 1e-9 * round    ? round * ceil(low / round)
            : x > high + 1e-9 * round ? round * floor(high / round)
                                      : x;
    }
    snprintf(text, sizeof text, round > 0 ? "%.12g" : "%.6g", x);
    return strtod(text, NULL);
}

typedef struct Range {
    double low, high, round;
    bool log;
    char rel;
    size_t list; /* as many numbers in a list; 0: one, without a list */
} Range;

/* `n`: of lists, which are drawn whole. */
static bool list_of(Sweep *s, const Value *spec, Range *r)
{
    Eval *ev = s->ev;
    const Value *v = field(spec, "n");
    double n = 0;
    if (!v || v->kind == V_NONE)
        return true;
    if (!whole(ev, v, field_span(spec, "n"), "n", 1, &n))
        return false;
    if (n > SWEEP_NUMBERS_MOST || n * (double)s->draws.n > SWEEP_NUMBERS_MOST)
        limit(ev, field_span(spec, "n"), "drawn numbers of an axis", SWEEP_NUMBERS_MOST);
    r->list = (size_t)n;
    return true;
}

static bool range_of(Eval *ev, const Value *spec, Range *r)
{
    const Value *low = field(spec, "low"), *high = field(spec, "high"), *scale = field(spec, "scale"),
                *round = field(spec, "round");
    bool same = low->kind == high->kind && (low->kind == V_NUM || (low->kind == V_REL && low->rel == high->rel));
    r->low = low->num;
    r->high = high->num;
    r->rel = low->kind == V_REL ? low->rel : 0;
    if (low->kind == V_POISON || high->kind == V_POISON || (round && round->kind == V_POISON))
        return false;
    if (!same) {
        err(ev, "E0206", spec->record->span, "", "`between` needs two numbers, got %s and %s", value_kind_name(low),
            value_kind_name(high));
        return false;
    }
    r->log = scale && !strcmp(scale->word, "log");
    if (round && round->kind != V_NONE) {
        r->round = round->kind == V_NUM ? round->num : NAN;
        if (!(r->round > 0)) {
            err(ev, "E0206", field_span(spec, "round"), "", "`round` must be a number above 0, got %s",
                round->kind == V_NUM ? value_text(ev, round) : value_kind_name(round));
            return false;
        }
    }
    if (!(r->low < r->high) || (r->log && r->low <= 0)) {
        Diag *d = err(ev, "E0208", spec->record->span, "",
                      r->low < r->high ? "a logarithmic range begins above 0" : "`between` begins below its end");
        diag_note(ev->ctx, d, "it goes from %s to %s", value_text(ev, low), value_text(ev, high));
        return false;
    }
    if (r->round > 0 && r->round * ceil(r->low / r->round - 1e-9) > r->high * (1 + 1e-12)) {
        err(ev, "E0208", spec->record->span, "", "no multiple of %s lies in this range", value_text(ev, round));
        return false;
    }
    return true;
}

/* One number as text: of the `number`th sequence, which belongs to `axis`, the ith. */
static double put_drawn(Sweep *s, const Range *r, const char *axis, size_t number, size_t i, Buf *out)
{
    double u = drawn(s, axis, number, i);
    double x = tidy(r->log ? exp(log(r->low) + u * log(r->high / r->low)) : r->low + u * (r->high - r->low), r->low,
                    r->high, r->round);
    buf_number(out, x);
    if (r->rel)
        buf_putc(out, r->rel);
    return x;
}

/* The names of lists are those of the draws that gave them first, counted from 1. */
static void name_lists(Sweep *s, Axis *a)
{
    Map known;
    map_init(&known, s->ev->arena);
    a->label = NEW_ARRAY(s->ev->arena, const char *, a->out.n + 1);
    for (size_t i = 0; i < a->out.n; i++) {
        void **first = map_at(&known, (uintptr_t)name_str(s->ev->ctx, a->out.text[i]));
        if (!*first)
            *first = (void *)arena_printf(s->ev->arena, "%zu", i + 1);
        a->label[i] = *first;
    }
}

bool draw_axis(Sweep *s, const Ast *path, const Ast *expr, const Value *between)
{
    Eval *ev = s->ev;
    Range r = {0};
    if (!range_of(ev, between, &r) || !list_of(s, between, &r))
        return false;
    size_t n = s->draws.n, each = r.list ? r.list : 1;
    if (s->draws.halton && s->drawn + each > HALTON_MOST)
        limit(ev, expr->span, "numbers of a point of the Halton sequence", HALTON_MOST);
    Axis *a = &s->axis[s->n_axis++];
    *a = (Axis){.path = path, .expr = expr, .name = span_text(ev, path->span), .dim = -1};
    a->out = (SweepAxis){.path = a->name, .n = n, .drawn = true};
    a->out.text = NEW_ARRAY(ev->arena, const char *, n + 1);
    a->out.number = NEW_ARRAY(ev->arena, double, n + 1);
    a->value = NEW_ARRAY(ev->arena, const Ast *, n + 1);
    for (size_t i = 0; i < n; i++) {
        Buf b = buf_new(ev->arena);
        a->out.number[i] = r.list ? NAN : put_drawn(s, &r, a->name, s->drawn, i, &b);
        for (size_t k = 0; k < r.list; k++) {
            buf_puts(&b, k ? ", " : "[");
            put_drawn(s, &r, arena_printf(ev->arena, "%s[%zu]", a->name, k + 1), s->drawn + k, i, &b);
        }
        if (r.list)
            buf_putc(&b, ']');
        a->out.text[i] = b.s;
    }
    s->drawn += each;
    if (r.list)
        name_lists(s, a);
    return true;
}

bool draws_fit(Sweep *s, const Ast *random, bool asked)
{
    const Axis *a = NULL;
    for (size_t i = 0; i < s->n_axis && !a; i++)
        a = s->axis[i].out.drawn ? &s->axis[i] : NULL;
    if (a && !random) {
        Diag *d = err(s->ev, "E0104", a->expr->span, "drawn how often?",
                      "the axis `%s` is drawn, and the sweep does not say how many points", a->name);
        diag_help(s->ev->ctx, d,
                  "for example `random = 20` or `random = draws(20, sequence = halton)` in the sweep, or `vwn sweep "
                  "--random 20`");
        return false;
    }
    if (random && !a && (asked || (!s->n_given && !s->n_cli))) { /* what the command line fixes is not drawn any more */
        Diag *d = err(s->ev, "E0710", random->span, "nothing is drawn", "`random` without an axis that is drawn");
        diag_help(s->ev->ctx, d, "for example `lr = between(1e-4, 1e-2, scale = log)` in `vary`");
        return false;
    }
    return true;
}

/* ---- how far runs go ---- */

static const char *what_it_is(Eval *ev, const Value *v)
{
    return v->kind == V_NUM || v->kind == V_QTY ? value_text(ev, v) : value_kind_name(v);
}

static bool bound_of(Eval *ev, const Value *v, Span at, const char *what, bool time, SweepBound *out)
{
    static const struct {
        const char *word;
        SweepUnit unit;
        double times;
    } known[] = {{"step", SWEEP_STEPS, 1},
                 {"token", SWEEP_TOKENS, 1},
                 {"s", SWEEP_SECONDS, 1},
                 {"min", SWEEP_SECONDS, 60},
                 {"h", SWEEP_SECONDS, 3600}};
    for (size_t i = 0; i < COUNT_OF(known) && v->kind == V_QTY; i++)
        if (!strcmp(known[i].word, v->word) && (time || known[i].unit != SWEEP_SECONDS) && v->num > 0) {
            *out = (SweepBound){known[i].unit, v->num * known[i].times};
            return true;
        }
    if (v->kind == V_POISON)
        return false;
    Diag *d = err(ev, v->kind == V_QTY && v->num > 0 ? "E0201" : "E0206", at, "", "`%s` is counted in steps%s, got %s",
                  what, time ? ", tokens, s, min or h" : " or tokens", what_it_is(ev, v));
    diag_help(ev->ctx, d, "for example `%s`", time ? "until = 2000 steps" : "rungs = [500 steps, 1500 steps]");
    return false;
}

static bool rungs_of(Sweep *s, const Value *prune)
{
    Eval *ev = s->ev;
    SweepPlan *p = &s->plan;
    const Value *rungs = field(prune, "rungs"), *keep = field(prune, "keep"), *by = field(prune, "by");
    Span at = field_span(prune, "rungs");
    if (rungs->kind == V_POISON || keep->kind == V_POISON || (by && by->kind == V_POISON))
        return false;
    size_t n = rungs->kind == V_LIST ? rungs->list->n : 0;
    p->rung = NEW_ARRAY(ev->arena, SweepBound, n + 1);
    for (size_t i = 0; i < n; i++) {
        if (!bound_of(ev, &rungs->list->v[i], at, "rungs", false, &p->rung[i]))
            return false;
        if (i && (p->rung[i].unit != p->rung[0].unit || p->rung[i].amount <= p->rung[i - 1].amount)) {
            err(ev, "E0208", at, "", "`rungs` must rise, in one unit");
            return false;
        }
    }
    if (!n) {
        err(ev, "E0206", at, "", "`rungs` is a list of lengths such as `[500 steps, 1500 steps]`");
        return false;
    }
    p->n_rungs = n;
    if (keep->kind != V_NUM || !(keep->num > 0 && keep->num < 1)) {
        Diag *d = err(ev, "E0208", field_span(prune, "keep"), "", "`keep` is a share between 0 and 1, got %s",
                      what_it_is(ev, keep));
        diag_help(ev->ctx, d, "for example `keep = 1 / 3`");
        return false;
    }
    p->keep = keep->num;
    bool eval_loss = !by || (by->kind == V_HOST && by->host->op == HO_VAR && by->host->var == HV_EVAL_LOSS);
    p->by_train_loss = !eval_loss && by->kind == V_HOST && by->host->op == HO_VAR && by->host->var == HV_TRAIN_LOSS;
    if (!eval_loss && !p->by_train_loss) {
        err(ev, "E0205", field_span(prune, "by"), "", "points are compared by eval.loss or train.loss");
        return false;
    }
    const SweepBound *last = &p->rung[n - 1];
    if (p->until.unit == last->unit && last->amount >= p->until.amount) {
        err(ev, "E0208", at, "", "the last rung must lie before `until`");
        return false;
    }
    return true;
}

bool sweep_bounds(Sweep *s, const Ast *until, const Ast *prune)
{
    Eval *ev = s->ev;
    if (until) {
        Value v = eval(ev, until, s->file->env, NULL);
        if (!bound_of(ev, &v, until->span, "until", true, &s->plan.until))
            return false;
    }
    if (!prune)
        return true;
    Value v = eval(ev, prune, s->file->env, NULL);
    if (v.kind == V_SPEC && !strcmp(v.record->name, "halving"))
        return rungs_of(s, &v);
    if (v.kind != V_POISON)
        diag_help(ev->ctx,
                  err(ev, "E0206", prune->span, "", "`prune` must be halving(...), got %s", value_kind_name(&v)),
                  "for example `prune = halving(rungs = [500 steps, 1500 steps], keep = 1 / 3)`");
    return false;
}

void prune_fits(Sweep *s, const Train *t)
{
    const SweepPlan *p = &s->plan;
    if (!p->n_rungs || p->by_train_loss)
        return;
    double per = p->rung[0].unit == SWEEP_TOKENS ? (double)t->batch_seqs * (double)t->context : 1,
           first = ceil(p->rung[0].amount / per);
    if (t->eval_every > 0 && (double)t->eval_every <= first)
        return;
    Diag *d =
        err(s->ev, "E0208", p->span, "", "points are compared after %.0f steps, before anything is evaluated", first);
    diag_note(s->ev->ctx, d, t->eval_every > 0 ? "`eval` measures every %lld steps" : "`train` has no `eval`",
              (long long)t->eval_every);
    diag_help(s->ev->ctx, d, "let the first rung be later, evaluate more often, or compare by `train.loss`");
}

/* ---- names ---- */

/* Letters that a folder's name and a shell take as they are; what is between them becomes one `_`. */
static void put_safe(Buf *b, const char *text)
{
    enum { LONGEST = 48 };
    size_t from = b->n;
    bool gap = false;
    for (; *text && b->n - from < LONGEST; text++) {
        bool safe = (*text >= '0' && *text <= '9') || (*text >= 'a' && *text <= 'z') ||
                    (*text >= 'A' && *text <= 'Z') || *text == '.' || *text == '-' || *text == '+';
        if (safe && gap && b->n > from)
            buf_putc(b, '_');
        if (safe)
            buf_putc(b, *text);
        gap = !safe;
    }
}

static const char *last_name(const char *path)
{
    const char *dot = strrchr(path, '.');
    return dot ? dot + 1 : path;
}

const char *sweep_point_name(Sweep *s, const size_t *at)
{
    enum { LONGEST = 180 };
    Buf b = buf_new(s->ev->arena);
    uint64_t hash = 0;
    bool lossy = false;
    for (size_t i = 0; i < s->n_axis; i++) {
        const Axis *a = &s->axis[i];
        const char *text = a->label ? a->label[at[i]] : a->out.text[at[i]], *name = last_name(a->name);
        for (size_t k = 0; k < s->n_axis; k++)
            if (k != i && !strcmp(name, last_name(s->axis[k].name)))
                name = s->axis[i].name;
        if (i)
            buf_putc(&b, '_');
        put_safe(&b, name);
        buf_putc(&b, '-');
        size_t before = b.n;
        put_safe(&b, text);
        lossy |= strcmp(b.s + before, text) != 0;
        hash = hash_bytes(text, strlen(text), hash_bytes(s->axis[i].name, strlen(s->axis[i].name), hash));
    }
    bool taken = lossy && map_get(&s->names, (uintptr_t)name_str(s->ev->ctx, b.s));
    if (!taken && b.n <= LONGEST)
        return b.s;
    return arena_printf(s->ev->arena, "%.*s-%08x", LONGEST, b.s, (unsigned)hash);
}

/* ---- order and seeds ---- */

/* In each step a configuration whose values have been taken least often, so that wherever the sweep stops every value of an
 * axis has had about as many points. */
static size_t *balanced(Sweep *s)
{
    size_t n = s->configs.n, *order = NEW_ARRAY(s->ev->arena, size_t, n + 1), *used[SWEEP_AXES_MOST] = {0};
    bool *done = NEW_ARRAY(s->ev->arena, bool, n + 1);
    for (size_t i = 0; i < s->n_axis; i++)
        if (!s->axis[i].out.drawn)
            used[i] = NEW_ARRAY(s->ev->arena, size_t, s->axis[i].out.n);
    spend(s->ev, s->plan.span, (int64_t)(n * n / 1000));
    for (size_t k = 0; k < n; k++) {
        size_t best = n, least = SIZE_MAX;
        for (size_t c = 0; c < n; c++) {
            size_t cost = 0;
            for (size_t i = 0; i < s->n_axis && !done[c]; i++)
                cost += used[i] ? used[i][s->configs.v[c].at[i]] : 0;
            if (!done[c] && cost < least) {
                least = cost;
                best = c;
            }
        }
        order[k] = best;
        done[best] = true;
        for (size_t i = 0; i < s->n_axis; i++)
            if (used[i])
                used[i][s->configs.v[best].at[i]]++;
    }
    return order;
}

/* Seeds are `train.seed` of the points, which nothing else gives. */
static bool seeds_fit(Sweep *s, Span at)
{
    static const char path[] = "train.seed";
    Span axis = NO_SPAN;
    bool set = false;
    for (size_t i = 0; i < s->n_axis; i++)
        if (!strcmp(s->axis[i].name, path))
            axis = s->axis[i].path->span, set = true;
    for (size_t i = 0; i < s->n_all; i++)
        set |= !strncmp(s->all[i], path, sizeof path - 1) && s->all[i][sizeof path - 1] == '=';
    if (!set)
        return true;
    Diag *d = err(s->ev, "E0108", at, "given twice", "`seeds` gives `%s` to every point, and so does the sweep", path);
    if (axis.file)
        diag_label(s->ev->ctx, d, axis, "the axis");
    diag_help(s->ev->ctx, d, "leave one of them out");
    return false;
}

/* Numbers with their text; n: how many. NULL when a message was filed. */
static int64_t *seeds_of(Sweep *s, const Ast *seeds, const char *given, size_t *n)
{
    Eval *ev = s->ev;
    Override o;
    if (given && !parse_setting(ev, arena_printf(ev->arena, "seeds=[%s]", given), "--seeds", &o))
        return NULL;
    const Ast *expr = given ? o.expr : seeds;
    Value v = eval(ev, expr, s->file->env, NULL);
    if (v.kind == V_POISON)
        return NULL;
    if (v.kind != V_LIST || !v.list->n) {
        Diag *d = err(ev, "E0206", expr->span, "", "`seeds` is a list of whole numbers, got %s",
                      v.kind == V_LIST ? "an empty one" : value_kind_name(&v));
        diag_help(ev->ctx, d, "for example `seeds = [1, 2, 3]`");
        return NULL;
    }
    int64_t *out = NEW_ARRAY(ev->arena, int64_t, v.list->n);
    for (size_t i = 0; i < v.list->n; i++) {
        double x;
        if (!whole(ev, &v.list->v[i], expr->span, "seeds", 0, &x))
            return NULL;
        out[i] = (int64_t)x;
        for (size_t k = 0; k < i; k++)
            if (out[k] == out[i]) {
                err(ev, "E0108", expr->span, "given twice", "the seed %lld is given twice", (long long)out[i]);
                return NULL;
            }
    }
    *n = v.list->n;
    return seeds_fit(s, expr->span) ? out : NULL;
}

static SweepPoint seeded(Sweep *s, const SweepPoint *config, int64_t seed)
{
    Arena *a = s->ev->arena;
    SweepPoint p = *config;
    p.set = NEW_ARRAY(a, const char *, p.n_set + 2);
    memcpy(p.set, config->set, p.n_set * sizeof *p.set);
    if (s->target->train_ast) /* what has none can be listed */
        p.set[p.n_set++] = arena_printf(a, "train.seed=%lld", (long long)seed);
    p.name = arena_printf(a, "%s%sseed-%lld", config->name, *config->name ? "_" : "", (long long)seed);
    p.seed = seed;
    return p;
}

void sweep_points(Sweep *s, const Ast *order, const Ast *seeds, const char *given)
{
    Eval *ev = s->ev;
    SweepPlan *p = &s->plan;
    size_t n_seeds = 1;
    const AttributeRow *row = attribute_find("sweep", "order");
    Name word = order ? attribute_word(ev, row, order, s->file->env) : row->fallback;
    if (!word)
        return;
    bool interleaved = !strcmp(word, "interleaved");
    p->seeded = seeds || given;
    int64_t *seed = p->seeded ? seeds_of(s, seeds, given, &n_seeds) : NULL;
    if (p->seeded && !seed)
        return;
    int64_t n;
    if (!mul_i64((int64_t)s->configs.n, (int64_t)n_seeds, &n) || n > SWEEP_POINTS_MOST)
        limit(ev, p->span, "points of a sweep", SWEEP_POINTS_MOST);
    const size_t *by = interleaved ? balanced(s) : NULL;
    p->point = NEW_ARRAY(ev->arena, SweepPoint, (size_t)n);
    for (size_t i = 0; i < (size_t)n; i++) {
        size_t c = interleaved ? i % s->configs.n : i / n_seeds, k = interleaved ? i / s->configs.n : i % n_seeds;
        const SweepPoint *config = &s->configs.v[by ? by[c] : c];
        p->point[p->n++] = seed ? seeded(s, config, seed[k]) : *config;
    }
}

/* ---- report ---- */

static bool is_fixed(const Sweep *s, const Ast *e)
{
    const char *name = expr_text(s->ev, e);
    for (size_t i = 0; i < s->n_axis; i++)
        if (!strcmp(s->axis[i].name, name))
            return false;
    return is_given(s, name);
}

/* `table(rows = AXIS, columns = AXIS, value = eval.loss, spread = seeds)`: read as it is written, since axes are names of
 * another file. */
void sweep_report(Sweep *s, const Ast *report)
{
    Eval *ev = s->ev;
    SweepPlan *p = &s->plan;
    p->rows = p->columns = -1;
    if (!report)
        return;
    bool call = report->kind == AST_CALL && report->kid[0]->kind == AST_ID && !strcmp(report->kid[0]->name, "table");
    const Ast *arg[4] = {0};
    static const char *const name[] = {"rows", "columns", "value", "spread"};
    for (uint32_t i = 0; call && i < report->kid[1]->n; i++) {
        const Ast *it = report->kid[1]->kid[i];
        for (size_t k = 0; k < COUNT_OF(name); k++)
            if (it->kind == AST_NAMED && !strcmp(it->name, name[k]))
                arg[k] = it->kid[0];
    }
    if (!arg[0] || !arg[1] || !arg[2]) {
        Diag *d = err(ev, "E0206", report->span, "", "`report` must be table(rows = ..., columns = ..., value = ...)");
        diag_help(ev->ctx, d,
                  "for example `report = table(rows = width.at, columns = width.bottleneck, value = eval.loss, spread "
                  "= seeds)`");
        return;
    }
    if (is_fixed(s, arg[0]) || is_fixed(s, arg[1]))
        return; /* by the command line: there is nothing to lay out */
    const Axis *rows = sweep_axis_named(s, arg[0]), *columns = rows ? sweep_axis_named(s, arg[1]) : NULL;
    if (!columns)
        return;
    p->rows = (int)(rows - s->axis);
    p->columns = (int)(columns - s->axis);
    const char *value = expr_text(ev, arg[2]);
    p->table_train_loss = !strcmp(value, "train.loss");
    if (p->rows == p->columns)
        err(ev, "E0108", arg[1]->span, "given twice", "rows and columns are the same axis");
    else if (!p->table_train_loss && strcmp(value, "eval.loss"))
        err(ev, "E0205", arg[2]->span, "", "`value` is eval.loss or train.loss, got %s", value);
    else if (arg[3] && strcmp(expr_text(ev, arg[3]), "seeds"))
        err(ev, "E0205", arg[3]->span, "", "`spread` is over seeds, got %s", expr_text(ev, arg[3]));
}

/* The text of one file without its sweeps: what they say of a point is in its settings. */
static uint64_t text_hash(Ctx *ctx, const Ast *items, uint64_t hash)
{
    size_t n, from = 0;
    const char *text = source_text(ctx, items->span.file, &n);
    for (uint32_t i = 0; i < items->n; i++) {
        const Ast *it = items->kid[i];
        if (it->kind != AST_NODE || it->kid[0]->n || strcmp(it->kid[0]->name, "sweep") || it->span.lo < from)
            continue;
        hash = hash_bytes(text + from, it->span.lo - from, hash);
        from = it->span.hi;
    }
    return hash_bytes(text + from, n - from, hash);
}

uint64_t sweep_hash(const File *f)
{
    uint64_t hash = f->base ? 0 : text_hash(f->ev->ctx, f->ast, 0);
    for (const Base *b = f->base; b; b = b->next)
        hash = text_hash(f->ev->ctx, b->ast, hash);
    for (size_t i = 0; i < f->imports.n; i++)
        if (f->imports.v[i].file && !f->imports.v[i].file->is_std)
            hash = hash_bytes(&(uint64_t){sweep_hash(f->imports.v[i].file)}, sizeof hash, hash);
    return hash;
}
