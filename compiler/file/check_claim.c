/* check_claim.c - `check preserves(...)` and `check alive(...)` of a growth step, decided.
 *
 * In:  a step and what it claims.   Out: a CheckResult, or a diagnostic that names the tensor, the reason and the way out.
 * The one idea: a claim is true when growth_prove shows it, and refused when it does not; nothing has to run.
 */
#include "check_claim.h"

#include <limits.h>
#include <math.h>

static const char *const role_name[] = {"", "entry", "exit", "inner", "own"};

typedef enum Trouble { IS_LATE, IS_DEAD, IS_OPEN, IS_FROZEN, HAS_NO_RATE, HAS_NO_SLOPE, IS_FINE } Trouble;

static Trouble trouble_of(const GrowthLife *l, int role, int within)
{
    if (l->after[role] == NO_BLOCK)
        return IS_FINE;
    switch (l->bar[role]) {
    case BAR_FROZEN: return IS_FROZEN;
    case BAR_RATE: return HAS_NO_RATE;
    case BAR_SHAPE: return HAS_NO_SLOPE;
    case BAR_NONE: break;
    }
    int after = l->after[role], may = l->may[role];
    return may == NEVER ? IS_DEAD : may > within || after > within ? IS_LATE : after == NEVER ? IS_OPEN : IS_FINE;
}

/* "layer[1].ffn.up.W (entry)" of the first with this trouble, and how many there are; NULL: there is none. */
static const char *list_blocks(Eval *ev, const Claims *c, Trouble of, int within)
{
    enum { MOST = 6 };
    size_t n = 0;
    Buf b = buf_new(ev->arena);
    for (size_t i = 0; i < c->plan->n; i++)
        for (int r = ROLE_OLD; r <= ROLE_OWN; r++) {
            const GrowthLife *l = &c->proof->life[i];
            if (trouble_of(l, r, within) != of || n++ >= MOST)
                continue;
            buf_printf(&b, "%s%s", n > 1 ? ", " : "", c->plan->entry[i].path);
            if (r != ROLE_OLD)
                buf_printf(&b, " (%s)", role_name[r]);
            if (of == IS_LATE)
                buf_printf(&b, " after %d", l->after[r] == NEVER ? l->may[r] : l->after[r]);
        }
    if (n > MOST)
        buf_printf(&b, " and %zu others", n - MOST);
    return n ? b.s : NULL;
}

/* `all`: blocks that do not move whatever they are filled with are refused, too. */
static void refuse_life(Eval *ev, const Claims *c, Span at, int within, bool all)
{
    static const struct {
        Trouble of;
        const char *label, *note, *help;
    } why[] = {
        {IS_FROZEN, "is frozen", "the file freezes %s", "let the group learn"},
        {HAS_NO_RATE, "has a learning rate of 0", "the learning rate is 0 of %s",
         "give what the step adds a rate, `new { lr_scale = 1 }`"},
        {HAS_NO_SLOPE, "has a gradient of zero that stays zero",
         "no weights give a gradient to %s: the loss does not depend on it, or only through "
         "what has no slope, as `floor`, the index of `top_k` or a softmax over one entry",
         "drop what cannot learn"},
    };
    const GrowthProof *p = c->proof;
    size_t never = p->dead + (all ? p->barred : 0), late = 0;
    for (size_t i = 0; i < c->plan->n; i++)
        for (int r = ROLE_OLD; r <= ROLE_OWN; r++)
            late += trouble_of(&p->life[i], r, within) == IS_LATE;
    const char *label = p->dead ? why[2].label : "";
    for (size_t i = 0; !p->dead && never && i < COUNT_OF(why); i++)
        label = *label || !list_blocks(ev, c, why[i].of, within) ? label : why[i].label;
    Diag *d;
    if (never)
        d = err(ev, "E0702", at, label, "%zu of %zu new blocks can never learn", never, p->blocks);
    else
        d = err(ev, "E0702", at, "", "%zu of %zu new blocks have no gradient after %d update%s", late, p->blocks,
                within, within == 1 ? "" : "s");
    for (size_t i = 0; all && i < COUNT_OF(why); i++) {
        const char *list = list_blocks(ev, c, why[i].of, within);
        if (!list)
            continue;
        diag_note(ev->ctx, d, why[i].note, list);
        if (!p->dead)
            diag_help(ev->ctx, d, "%s", why[i].help);
    }
    if (p->dead) {
        diag_note(ev->ctx, d, "%s", list_blocks(ev, c, IS_DEAD, within));
        diag_note(ev->ctx, d,
                  "what such a block is multiplied by is zero on both sides, or slopes cancel there, so its gradient "
                  "is zero, and stays so");
        diag_help(ev->ctx, d,
                  "let one side of every new unit be zero and the other random: `fill { entry = zeros, exit = "
                  "normal(std = 0.02), "
                  "inner = normal(std = 0.02) }`, or the other way round");
    }
    if (never) {
        diag_help(ev->ctx, d, "or say that it is intended: `check alive(none)`");
    } else {
        diag_note(ev->ctx, d, "%s", list_blocks(ev, c, IS_LATE, within));
        diag_help(ev->ctx, d, "write `alive(steps = %d)`, or fill the other side of the new units with random numbers",
                  p->alive_after);
    }
}

static bool copies_anything(const GrowthPlan *plan)
{
    for (size_t i = 0; i < plan->n; i++) {
        const GrowthEntry *e = &plan->entry[i];
        if (e->copied)
            return true;
        for (int k = 0; e->kind == GROWTH_GROWN && k < e->after->shape.rank; k++)
            for (size_t j = 0; j < e->axis[k].n; j++)
                if (e->axis[k].part[j].fresh && e->axis[k].part[j].from >= 0)
                    return true;
    }
    return false;
}

/* What is proved to change the function, and what is only not shown to keep it, have codes of their own. */
static const char *code_of_change(const GrowthProof *p, bool copies)
{
    bool scaled = p->factor != 0 && fabs(p->factor - 1) > 1e-9;
    return p->recut                          ? "E0704"
           : scaled || p->leak || p->in_norm ? "E0701"
           : p->constant                     ? (copies ? "E0701" : "E0703")
                                             : "E0711";
}

/* Of an output that no value of the new model is compared with. */
static void note_output(Eval *ev, Diag *d, const GrowthProof *p)
{
    if (!p->there) {
        diag_note(ev->ctx, d, "the new model has no output `%s`", p->output);
        return;
    }
    Buf was = buf_new(ev->arena), is = buf_new(ev->arena);
    shape_print(&was, &p->had);
    shape_print(&is, &p->has);
    diag_note(ev->ctx, d, "`%s` was %s and is %s: what is computed of all of it, as a softmax is, is another function",
              p->output, was.s, is.s);
}

static void refuse_change(Eval *ev, const Claims *c, const Ast *it)
{
    const GrowthProof *p = c->proof;
    const Node *at = p->departs;
    bool names_place = at && at->span.hi > at->span.lo;
    bool copies = copies_anything(c->plan);
    const char *code = code_of_change(p, copies);
    bool open = !strcmp(code, "E0711");
    Diag *d = open ? err(ev, code, it->kid[0]->span, "is not shown",
                         "it is not shown that this growth step keeps the function of the model")
                   : err(ev, code, it->kid[0]->span, "is not so", "this growth step changes the function of the model");
    if (p->recut) {
        diag_note(ev->ctx, d, "%s is cut at other places than before, so old numbers come to stand in other parts",
                  p->recut->path);
        diag_help(
            ev->ctx, d,
            "let the inner size stay, as `head_dim = 64`, and grow the number of parts; or let both sizes only grow");
    } else if (p->factor != 0 && fabs(p->factor - 1) > 1e-9) {
        diag_note(ev->ctx, d, "`%s` becomes %.6g times what it was", p->output, p->factor);
    } else if (p->leak) {
        diag_note(ev->ctx, d, "new numbers of %s reach `%s`: neither they nor what they are multiplied by is zero",
                  p->leak->path, p->output);
        diag_help(ev->ctx, d,
                  "let one side of the new units be zero: `entry = zeros` or `exit = zeros` in `fill`, for all weights "
                  "or for "
                  "`%s { ... }`",
                  p->leak->path);
    } else if (p->in_norm) {
        diag_note(
            ev->ctx, d,
            "a mean of %s is taken over more coordinates than before; the new ones are zero, so it becomes smaller",
            at && at->name ? at->name : "the model");
        diag_help(
            ev->ctx, d,
            "write %san `eps` that shrinks as the mean does: `let eps = eps * %lld / %lld`, beside `let eps = ...` "
            "in the file",
            growth_rescales(c->plan->step) ? "in the step " : "`norms = rescale` in `fill`, and in the step ",
            (long long)p->mean_of, (long long)p->mean_over);
        diag_help(ev->ctx, d,
                  "or let the norm keep its width, or say that the jump is intended: `check preserves(none)`");
    } else if (at) {
        diag_note(ev->ctx, d,
                  p->constant
                      ? "in %s the same is computed of the old values with another number (%s)"
                      : "in %s something is computed of the old values that the old model does not compute (%s)",
                  at->name ? at->name : "the model", op_info((Op)at->op)->name);
        if (copies)
            diag_help(ev->ctx, d,
                      "what reads a coordinate and its copies is shared out in the order of the copies: `entry = copy, "
                      "exit = split` or "
                      "`entry = replicate, exit = replicate`; layers that are copies add something unless what they "
                      "write is zero");
        else if (p->constant)
            diag_help(ev->ctx, d,
                      "let the number stay what it is: leave it out of the step's lets; one that follows from a size "
                      "that grows is "
                      "stored, `buffer tau : [] = fill(...)`, or written as a number");
    } else if (p->lost) {
        diag_note(ev->ctx, d, "what becomes of old values is not known behind %s (%s)",
                  p->lost->name ? p->lost->name : "the model", op_info((Op)p->lost->op)->name);
    } else if (p->output) {
        note_output(ev, d, p);
    } else {
        diag_note(ev->ctx, d, "the model has no output that could be compared");
    }
    if (names_place)
        diag_label(ev->ctx, d, at->span, "first here");
    if (open && !p->departs && !p->lost)
        diag_help(ev->ctx, d, "say that this is intended: `check preserves(none)`");
    else if (open)
        diag_help(ev->ctx, d,
                  "with `check preserves(none)` the run measures the change of every output on held-out data, before "
                  "it keeps anything");
    else if (!p->in_norm)
        diag_help(ev->ctx, d, "or say that the change is intended: `check preserves(none)`");
}

static const Value *argument(const Value *v, const char *name)
{
    for (size_t i = 0; i < v->record->n; i++)
        if (!v->record->field[i].name || !strcmp(v->record->field[i].name, name))
            return v->record->field[i].value;
    return NULL;
}

/* The tensor that is in most parts, of which the proof looks at each; *n: how many along one axis. */
static const GrowthEntry *most_parts(const GrowthPlan *p, size_t *n)
{
    const GrowthEntry *most = NULL;
    *n = 1;
    for (size_t i = 0; i < p->n; i++)
        for (int k = 0; p->entry[i].after && k < p->entry[i].after->shape.rank; k++)
            if (p->entry[i].axis[k].n > *n) {
                *n = p->entry[i].axis[k].n;
                most = &p->entry[i];
            }
    return most;
}

/* NULL: there is none, which is an error at `at`. */
static const GrowthProof *proof_of(Eval *ev, Claims *c, Span at)
{
    if (!c->proof)
        c->proof = growth_prove(c->plan, ev->arena);
    if (!c->proof->too_large)
        return c->proof;
    enum { MANY = 256 };
    size_t n;
    const GrowthEntry *most = most_parts(c->plan, &n);
    Diag *d = err(ev, "E0008", at, "", "limit `memory of a proof` reached: %d MiB", PROOF_MIB);
    if (n >= MANY)
        diag_note(ev->ctx, d, "it looks at each part of the weights, and %s has %zu along one axis", most->path, n);
    else
        diag_note(ev->ctx, d, "it looks at each value of the models, and at each head of attention");
    diag_help(ev->ctx, d,
              "say that neither is to be proved: `check preserves(none)` and `check alive(none)`; "
              "the run measures both");
    return NULL;
}

bool plan_step(Eval *ev, Claims *c)
{
    const GrowthPlan *p = c->plan = growth_plan(c->step, ev->arena);
    if (p->crowded) {
        Diag *d = err(ev, "E0008", c->step->span, "", "limit `parts of an axis` reached: %d", PARTS_MOST);
        diag_note(ev->ctx, d, "what is new of %s stands in more places", p->crowded->path);
        diag_help(ev->ctx, d,
                  "`copy` and `split` put copies behind what they copy, in few places, and `replicate` each beside it");
    } else if (p->nothing) {
        Diag *d = err(ev, "E0206", p->nothing_rule->span, "", "`%s = %s` has no old numbers to be made of",
                      p->nothing_rule->part, p->nothing_rule->text);
        diag_note(ev->ctx, d, "an axis of %s that grows had nothing before the step", p->nothing->path);
        diag_help(ev->ctx, d, "draw them: `%s { %s = normal(std = 0.02) }`", p->nothing->path, p->nothing_rule->part);
    }
    return !p->crowded && !p->nothing;
}

void refuse_dead(Eval *ev, Claims *c, Span at)
{
    if (!c->life && proof_of(ev, c, at) && c->proof->trained && c->proof->dead)
        refuse_life(ev, c, at, INT_MAX, false);
}

bool decide_claim(Eval *ev, Claims *c, const Ast *it, const Value *v, CheckResult *r)
{
    if (!c) {
        Diag *d = err(ev, "E0206", it->kid[0]->span, "", "`%s` is a claim about a growth step", v->record->name);
        diag_help(ev->ctx, d, "write it inside the step: `grow NAME { ... check %s(...) }`", v->record->name);
        return false;
    }
    c->life |= !strcmp(v->record->name, "alive");
    const Value *limit = argument(v, strcmp(v->record->name, "alive") ? "tolerance" : "steps");
    if (limit && limit->kind == V_NONE) {
        *r = (CheckResult){
            .state = CHECK_TRUE, .text = r->text, .where = r->where, .span = r->span, .values = "a change is intended"};
        return true;
    }
    const GrowthProof *p = proof_of(ev, c, it->kid[0]->span);
    if (!p)
        return false;
    r->state = CHECK_TRUE;
    if (!strcmp(v->record->name, "preserves")) {
        c->step->tolerance = fmin(c->step->tolerance, limit ? limit->num : INFINITY);
        if (!p->preserved) {
            refuse_change(ev, c, it);
            return false;
        }
        r->values = "proved: every output is the same, as real numbers";
        return true;
    }
    int within = limit ? (int)fmin(limit->num, 1e6) : 0;
    if (!p->trained) {
        r->state = CHECK_NOT_DONE;
        r->values = "the model has no loss";
    } else if (p->undefined) {
        Diag *d = err(ev, "E0702", it->kid[0]->span, "", "right after the step gradients are no numbers");
        diag_note(ev->ctx, d, "%s divides by zero, for all it reads there is zero", p->undefined);
        diag_help(ev->ctx, d, "add a small number to its root, or fill what it reads with random numbers");
        return false;
    } else if (p->barred || p->alive_after == NEVER || p->alive_after > within) {
        refuse_life(ev, c, it->kid[0]->span, within, true);
        return false;
    } else {
        const char *when = p->alive_after == 0   ? "at once"
                           : p->alive_after == 1 ? "after one update"
                                                 : arena_printf(ev->arena, "after %d updates", p->alive_after);
        const char *alike = c->plan->alike ? "; copies with equal shares stay copies" : "";
        if (p->open) {
            r->state = CHECK_NOT_DONE;
            r->values = arena_printf(ev->arena,
                                     "not shown for %zu of %zu new blocks, the others have a gradient %s%s: of %s it "
                                     "is a matter of data, as "
                                     "which tokens choose an expert or which ids occur; the run measures it",
                                     p->open, p->blocks, when, alike, list_blocks(ev, c, IS_OPEN, within));
        } else {
            r->values =
                arena_printf(ev->arena, "proved: all %zu new blocks have a gradient %s%s", p->blocks, when, alike);
        }
    }
    return true;
}
