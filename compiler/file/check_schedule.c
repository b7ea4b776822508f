/* check_schedule.c - learning-rate schedules: cosine, wsd, ... as expressions of the step.
 *
 * In:  the attribute `lr`, a Train with batch and length.   Out: a HostExpr.
 * The one idea: a schedule is a record of numbers and lengths; lengths are compared as parts of the run, so
 * that a share and a number of steps can contradict each other.
 */
#include "check_train.h"

#include <math.h>

typedef struct Sched {
    Eval *ev;
    const Record *r;
    const Train *train;
    bool bad;
} Sched;

/* NULL when it was left out, or is none. */
static const Field *field(const Sched *s, const char *name)
{
    for (size_t i = 0; i < s->r->n; i++)
        if (s->r->field[i].name && !strcmp(s->r->field[i].name, name))
            return s->r->field[i].value->kind == V_NONE ? NULL : &s->r->field[i];
    return NULL;
}

/* A constant that can be a learning rate; expressions of the run are not looked into. */
static bool is_rate(Eval *ev, const HostExpr *e, Span at, const char *what)
{
    const double most = attribute_find("adamw", "lr")->most;
    double x;
    if (!host_is_const(e, &x) || (x >= 0 && x <= most))
        return true;
    err(ev, "E0208", at, "", "`%s` = %.6g is no learning rate, which is from 0 to %g", what, x, most);
    return false;
}

static const HostExpr *sched_number(Sched *s, const char *name, double fallback)
{
    const Field *f = field(s, name);
    const HostExpr *e = f ? to_host(s->ev, f->value) : host_const(s->ev->arena, fallback);
    if (!e)
        vwn_bug(s->ev->ctx, "`%s` of `%s` is no number", name, s->r->name);
    if (f && strcmp(name, "exponent") && strcmp(name, "scale"))
        s->bad |= !is_rate(s->ev, e, f->span, name);
    return e;
}

static const HostExpr *sched_steps(Sched *s, const char *name, const HostExpr *fallback)
{
    const Field *f = field(s, name);
    if (!f)
        return fallback;
    const HostExpr *e = steps_of(s->ev, f->value, f->span, name, s->train);
    s->bad |= !e;
    return e;
}

#define H2(op, x, y) host_op(a, op, x, y, NULL)

/* (step + 1) / warmup while step < warmup, then `rest`; linear warm-up to the value at its end. */
static const HostExpr *warmed(Arena *a, const HostExpr *warmup, const HostExpr *at_end, const HostExpr *rest)
{
    const HostExpr *step = host_var(a, HV_STEP), *one = host_const(a, 1);
    const HostExpr *ramp = H2(HO_MUL, at_end, H2(HO_DIV, H2(HO_ADD, step, one), H2(HO_MAX, warmup, one)));
    return host_op(a, HO_IF, H2(HO_LT, step, warmup), ramp, rest);
}

/* How far the run is between two steps, within 0..1. */
static const HostExpr *between(Arena *a, const HostExpr *from, const HostExpr *to)
{
    const HostExpr *one = host_const(a, 1), *zero = host_const(a, 0);
    const HostExpr *x = H2(HO_DIV, H2(HO_SUB, host_var(a, HV_STEP), from), H2(HO_MAX, H2(HO_SUB, to, from), one));
    return H2(HO_MIN, H2(HO_MAX, x, zero), one);
}

static const HostExpr *power_schedule(Sched *s, Arena *a, const HostExpr *peak, const HostExpr *warmup)
{
    /* min(peak, scale * tokens^exponent), tokens counted to the step's end. */
    if (!field(s, "scale")) {
        Diag *d = err(s->ev, "E0104", s->r->span, "missing `scale`", "`power` needs `scale`");
        diag_note(s->ev->ctx, d, "lr = min(peak, scale * tokens ^ exponent)");
        s->bad = true;
        return NULL;
    }
    const HostExpr *scale = sched_number(s, "scale", 1), *exponent = sched_number(s, "exponent", 0);
    if (s->bad)
        return NULL;
    const HostExpr *per_step = host_const(a, (double)s->train->batch_seqs * (double)s->train->context);
    const HostExpr *step1 = H2(HO_ADD, host_var(a, HV_STEP), host_const(a, 1));
    const HostExpr *now = H2(HO_MIN, peak, H2(HO_MUL, scale, H2(HO_POW, H2(HO_MUL, per_step, step1), exponent)));
    const HostExpr *end = H2(HO_MAX, warmup, host_const(a, 1));
    const HostExpr *at_end = H2(HO_MIN, peak, H2(HO_MUL, scale, H2(HO_POW, H2(HO_MUL, per_step, end), exponent)));
    return warmed(a, warmup, at_end, now);
}

static const HostExpr *spec_schedule(Sched *s)
{
    Arena *a = s->ev->arena;
    const char *name = s->r->name;
    const HostExpr *length = host_var(a, HV_LENGTH), *one = host_const(a, 1);
    const HostExpr *peak = sched_number(s, "peak", 0), *floor_ = sched_number(s, "floor", 0);
    const HostExpr *warmup = sched_steps(s, "warmup", host_const(a, 0)), *total = sched_steps(s, "total", length);
    double high, low;
    const Field *f = field(s, "floor");
    if (s->bad)
        return NULL;
    if (f && host_is_const(peak, &high) && host_is_const(floor_, &low) && low > high) {
        Diag *d = err(s->ev, "E0609", f->span, "", "the rate would rise from %.6g to its floor %.6g", high, low);
        diag_help(s->ev->ctx, d, "write a `floor` below `peak`, for example `floor = peak / 10`");
        return NULL;
    }
    if (!strcmp(name, "constant"))
        return warmed(a, warmup, peak, peak);
    if (!strcmp(name, "power"))
        return power_schedule(s, a, peak, warmup);
    const HostExpr *span = H2(HO_SUB, peak, floor_), *rest;
    if (!strcmp(name, "cosine")) {
        const HostExpr *angle = H2(HO_MUL, host_const(a, acos(-1)), between(a, warmup, total));
        const HostExpr *half = H2(HO_MUL, host_const(a, 0.5), H2(HO_ADD, one, host_op(a, HO_COS, angle, NULL, NULL)));
        rest = H2(HO_ADD, floor_, H2(HO_MUL, span, half));
    } else if (!strcmp(name, "linear")) {
        rest = H2(HO_SUB, peak, H2(HO_MUL, span, between(a, warmup, total)));
    } else if (!strcmp(name, "wsd")) {
        const HostExpr *decay = sched_steps(s, "decay", NULL);
        if (s->bad || !decay)
            return NULL;
        rest = H2(HO_SUB, peak, H2(HO_MUL, span, between(a, H2(HO_SUB, total, decay), total)));
    } else {
        Diag *d = err(s->ev, "E0206", s->r->span, "", "`%s` is not a schedule", name);
        diag_help(s->ev->ctx, d, "schedules are constant, linear, cosine, power and wsd");
        return NULL;
    }
    return warmed(a, warmup, peak, rest);
}

const HostExpr *schedule_expr(Eval *ev, const Value *v, Span at, const Train *train)
{
    const HostExpr *e = to_host(ev, v);
    if (e)
        return is_rate(ev, e, at, "lr") ? e : NULL;
    if (v->kind == V_SPEC) {
        Sched s = {.ev = ev, .r = v->record, .train = train};
        return spec_schedule(&s);
    }
    Diag *d = v->kind != V_POISON
                  ? err(ev, "E0206", at, "", "`lr` must be a number, a run-time expression or a schedule, got %s",
                        value_kind_name(v))
                  : NULL;
    if (v->kind == V_STR)
        diag_help(ev->ctx, d, "for example `lr = cosine(peak = 3e-4, floor = 3e-5, warmup = 1%%)`");
    return NULL;
}

/* `lr = linear(...)` means the schedule here, although `linear` is a block elsewhere; `constant(1e-3)`
 * gives its peak by position. */
static Value schedule_call(Attrs *a, const TrainAttr *t)
{
    const Ast *e = t->expr;
    bool named = e->kind == AST_CALL && e->kid[0]->kind == AST_ID;
    const Prim *prim = named ? schedule_prim(e->kid[0]->name) : NULL;
    return prim ? prim_call(a->ev, prim, e, t->env, NULL) : attr_value(a, t);
}

/* A length of training as a part of the run; false when that is known only with the data. */
static bool part_of_run(const HostExpr *e, const Train *t, double *x)
{
    if (e && e->op == HO_VAR && e->var == HV_LENGTH)
        return *x = 1, true;
    if (e && e->op == HO_MUL && host_is_const(e->a, x))
        return e->b->op == HO_VAR && e->b->var == HV_LENGTH;
    if (!e || !host_is_const(e, x) || t->length_steps <= 0)
        return false;
    *x /= (double)t->length_steps;
    return true;
}

/* Phases that are cut off: by the end of the run, or by each other. */
static void lint_phases(Sched *s, File *f)
{
    const HostExpr *all = host_var(s->ev->arena, HV_LENGTH), *none = host_const(s->ev->arena, 0);
    double warmup = 0, decay = 0, total = 1, steps = (double)s->train->length_steps;
    bool known = part_of_run(sched_steps(s, "warmup", none), s->train, &warmup) || !field(s, "warmup");
    known = known && (part_of_run(sched_steps(s, "decay", none), s->train, &decay) || !field(s, "decay"));
    known = known && part_of_run(sched_steps(s, "total", all), s->train, &total);
    const Field *at = decay > 0 && warmup <= total ? field(s, "decay") : field(s, "warmup");
    if (!known || !at || warmup + decay <= total * (1 + 1e-9) || lint_allowed(f, "phases_overlap"))
        return;
    Diag *d = diag_warning(s->ev->ctx, "W0603", "phases_overlap", at->span, "",
                           decay > 0 && warmup <= total ? "the decay starts before the warm-up has ended"
                                                        : "the warm-up is longer than the run");
    if (steps > 0)
        diag_note(s->ev->ctx, d, "warm-up %.6g steps, decay %.6g, of %.6g", warmup * steps, decay * steps,
                  total * steps);
    else
        diag_note(s->ev->ctx, d, "warm-up %.6g %%, decay %.6g %% of the run", 100 * warmup, 100 * decay);
    diag_help(s->ev->ctx, d, "shares of the run keep their proportion whatever its length: `warmup = 1%%`");
}

/* adamw and lion move a weight by about the rate in each step, whatever its gradient is; weights begin near 0.02. */
static void lint_rate(Attrs *a, File *f, const Value *v, const TrainAttr *t)
{
    const double most = 0.1;
    Sched s = {.ev = a->ev, .r = v->kind == V_SPEC ? v->record : NULL};
    const Field *peak = s.r ? field(&s, "peak") : NULL;
    const HostExpr *e = peak ? to_host(a->ev, peak->value) : s.r ? NULL : to_host(a->ev, v);
    double x;
    bool signs = !strcmp(a->what, "adamw") || !strcmp(a->what, "lion");
    if (!signs || !e || !host_is_const(e, &x) || x <= most || lint_allowed(f, "rate_too_high"))
        return;
    Diag *d = diag_warning(a->ev->ctx, "W0602", "rate_too_high", peak ? peak->span : t->expr->span, "",
                           "a learning rate of %.6g is too high for `%s`", x, a->what);
    diag_note(a->ev->ctx, d, "a step moves each weight by about the rate, and weights begin near 0.02");
    diag_help(a->ev->ctx, d, "rates are from 1e-5 to 1e-2, for example `lr = 3e-4`");
}

static void lint_schedule(Attrs *a, File *f, const Value *v, const TrainAttr *t, const Train *train)
{
    const Record *r = v->kind == V_SPEC ? v->record : NULL;
    Sched s = {.ev = a->ev, .r = r, .train = train};
    if (r)
        lint_phases(&s, f);
    if (lint_allowed(f, "lr_never_decays"))
        return;
    const Field *total = r ? field(&s, "total") : NULL;
    double x;
    const HostExpr *e = total ? sched_steps(&s, "total", NULL) : NULL;
    if (!e || !host_is_const(e, &x) || train->length_steps < 0 || x <= (double)train->length_steps + 0.5)
        return;
    Diag *d =
        diag_warning(a->ev->ctx, "W0601", "lr_never_decays", t->expr->span, "",
                     "the schedule is longer than the run: %.0f of %lld steps", x, (long long)train->length_steps);
    diag_help(a->ev->ctx, d, "write `total = length`, or leave `total` out");
}

const HostExpr *schedule_of(Attrs *a, File *f, const TrainAttr *lr, const Train *t)
{
    Value v = schedule_call(a, lr);
    const HostExpr *e = schedule_expr(a->ev, &v, lr->expr->span, t);
    if (e) {
        lint_schedule(a, f, &v, lr, t);
        lint_rate(a, f, &v, lr);
    }
    return e;
}
