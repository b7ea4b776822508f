/* compare_facts.c - what runs that are compared do not share, besides what is compared.
 *
 * In:  the files and records of runs.   Out: sentences.
 * The one idea: a difference of losses is one of the models only where seeds, data and lengths are the same; what is not is said,
 * and nothing is left out for it.
 */
#include <math.h>
#include <stdlib.h>

#include "compare.h"
#include "runtime/checkpoint/record.h"
#include "runtime/checkpoint/source.h"

/* ---- reading ---- */

static const char *set_to(const RunFacts *f, Ctx *ctx, const char *name)
{
    const char *v = settings_get(&f->setting, name_str(ctx, name));
    return v ? v : "";
}

/* "text.txt of 303139 bytes (5a3f11223344)", and how many more files; all of their marks count. */
static const char *data_text(Arena *a, const char *fingerprint)
{
    JsonError e;
    Buf b = buf_new(a);
    const Json *list = json_read(a, fingerprint, strlen(fingerprint), &e);
    uint64_t all = 0;
    for (const Json *j = list && list->kind == JSON_ARRAY ? list->first : NULL; j; j = j->next) {
        const char *name = json_string(j, "name"), *content = json_string(j, "content");
        const Json *bytes = json_get(j, "bytes");
        if (!name || !content || !bytes)
            return "";
        all = all * 31 + strtoull(content, NULL, 16);
        if (j == list->first)
            buf_printf(&b, "%s of %.0f bytes", name, bytes->number);
    }
    if (b.n && list->n > 1)
        buf_printf(&b, " and %zu more", list->n - 1);
    if (b.n)
        buf_printf(&b, " (%012llx)", (unsigned long long)all & 0xffffffffffffu);
    return b.s;
}

/* The last start is the one that read what the losses are of. */
static void read_record(Session *s, const char *run, RunFacts *f)
{
    Records all = records_read(s, run);
    f->data = f->machine = "";
    if (!all.n)
        return;
    const Json *j = all.v[all.n - 1].json, *threads = json_get(j, "threads");
    const char *host = json_string(j, "host"), *processor = json_string(j, "processor"),
               *device = json_string(j, "device");
    const char *data = json_string(j, "data");
    f->data = data ? data_text(s->arena, data) : "";
    if (host && processor && device)
        f->machine = arena_printf(s->arena, "%s, %s, %s, %.0f threads", host, processor, device,
                                  threads ? threads->number : NAN);
}

/* What the names of two runs begin with, without "-seed" and what joins it: "wide" of "wide-seed1" and "wide-seed2". */
static const char *shared_name(Arena *a, const char *x, const char *y)
{
    size_t n = 0;
    while (x[n] && x[n] == y[n])
        n++;
    while (n && strchr("-_.", x[n - 1]))
        n--;
    if (n >= 4 && !strncmp(x + n - 4, "seed", 4))
        n -= 4;
    while (n && strchr("-_.", x[n - 1]))
        n--;
    return n ? arena_copy(a, x, n) : x;
}

/* Groups whose runs begin alike, "p1" to "p4" and "p5" to "p8", are called after their first runs. */
static void name_apart(RunComparison *c)
{
    size_t n = c->groups.n;
    const char **name = NEW_ARRAY(c->session.arena, const char *, n + 1);
    for (size_t i = 0; i < n; i++) {
        const RunGroup *g = &c->groups.v[i];
        name[i] = g->name;
        for (size_t k = 0; k < n; k++)
            if (k != i && g->path.n > 1 && g->alone && !strcmp(g->name, c->groups.v[k].name))
                name[i] = run_name(c->session.arena, g->path.v[0]);
    }
    for (size_t i = 0; i < n; i++)
        c->groups.v[i].name = name[i];
}

/* Runs that were named alone join the first one whose file differs in the seed alone. */
static void join_seeds(RunComparison *c)
{
    size_t n = 0;
    for (size_t i = 0; i < c->groups.n; i++) {
        RunGroup *g = &c->groups.v[i];
        size_t to = 0;
        while (to < n &&
               !(g->alone && c->groups.v[to].alone &&
                 settings_same_but_seed(&c->groups.v[to].fact[0].setting, &g->fact[0].setting, c->session.ctx)))
            to++;
        if (to == n) {
            c->groups.v[n++] = *g;
            continue;
        }
        RunGroup *first = &c->groups.v[to];
        size_t had = first->path.n;
        RunFacts *fact = NEW_ARRAY(c->session.arena, RunFacts, had + 1);
        memcpy(fact, first->fact, had * sizeof *fact);
        fact[had] = g->fact[0];
        first->fact = fact;
        first->name = shared_name(c->session.arena, first->name, g->name);
        vec_push(c->session.arena, &first->path, g->path.v[0]);
    }
    c->groups.n = n;
    name_apart(c);
}

void compare_read_facts(RunComparison *c)
{
    Session *s = &c->session;
    for (size_t i = 0; i < c->groups.n; i++) {
        RunGroup *g = &c->groups.v[i];
        g->fact = NEW_ARRAY(s->arena, RunFacts, g->path.n + 1);
        for (size_t k = 0; k < g->path.n; k++) {
            g->fact[k].setting = settings_read(s, s->arena, g->path.v[k]);
            read_record(s, g->path.v[k], &g->fact[k]);
            g->fact[k].tokenizer = set_to(&g->fact[k], s->ctx, "train.tokenizer");
            g->fact[k].seed = set_to(&g->fact[k], s->ctx,
                                     settings_holder(&g->fact[k].setting, s->ctx, name_str(s->ctx, "train.seed")));
        }
    }
    for (size_t i = 0; i < c->groups.n; i++)
        for (size_t k = 0; k < c->groups.v[i].path.n; k++)
            c->mixed |= strcmp(c->groups.v[i].fact[k].tokenizer, c->groups.v->fact->tokenizer) != 0;
    if (c->how->group)
        join_seeds(c);
}

/* ---- notes ---- */

static int by_number(const void *x, const void *y)
{
    double a = strtod(*(const char *const *)x, NULL), b = strtod(*(const char *const *)y, NULL);
    return (a > b) - (a < b);
}

/* "1, 2, 3" */
static const char *seeds_of(Arena *a, const RunGroup *g, bool *twice)
{
    const char **v = NEW_ARRAY(a, const char *, g->n + 1);
    Buf b = buf_new(a);
    for (size_t k = 0; k < g->n; k++)
        v[k] = g->fact[k].seed;
    qsort(v, g->n, sizeof *v, by_number);
    for (size_t k = 0; k < g->n; k++) {
        *twice |= k && *v[k] && !strcmp(v[k], v[k - 1]);
        buf_printf(&b, "%s%s", k ? ", " : "", *v[k] ? v[k] : "unknown");
    }
    return b.s;
}

static void note_seeds(RunComparison *c)
{
    Arena *a = c->session.arena;
    Buf b = buf_new(a);
    bool differ = false;
    const char *first = NULL;
    for (size_t i = 0; i < c->n; i++) {
        bool twice = false;
        const char *seeds = seeds_of(a, &c->group[i], &twice);
        differ |= first && strcmp(first, seeds);
        first = first ? first : seeds;
        buf_printf(&b, "%s%s %s", i ? "; " : "", c->group[i].name, seeds);
        if (twice)
            vec_push(a, &c->note,
                     arena_printf(a, "%s has a seed twice (%s): its interval is not that of seeds", c->group[i].name,
                                  seeds));
    }
    if (differ)
        vec_push(a, &c->note, arena_printf(a, "seeds differ: %s", b.s));
}

/* A value by run; NULL from `of`: nobody knows. Says where runs have several, which group has which. */
static void note_values(RunComparison *c, const char *what, const char *end,
                        const char *(*of)(RunComparison *c, const RunFacts *f, const char *what))
{
    Arena *a = c->session.arena;
    Buf b = buf_new(a);
    bool differ = false;
    const char *first = NULL, *said = NULL;
    for (size_t i = 0; i < c->n; i++)
        for (size_t k = 0; k < c->group[i].n; k++) {
            const char *v = of(c, &c->group[i].fact[k], what);
            if (!*v)
                continue;
            differ |= first && strcmp(first, v);
            first = first ? first : v;
            if (!said || strcmp(said, v))
                buf_printf(&b, "%s%s has %s", b.n ? "; " : "", c->group[i].name, v);
            said = v;
        }
    if (differ)
        vec_push(a, &c->note, arena_printf(a, "%s: %s%s", what, b.s, end));
}

static const char *of_setting(RunComparison *c, const RunFacts *f, const char *what)
{
    return set_to(f, c->session.ctx, what);
}

static const char *of_data(RunComparison *c, const RunFacts *f, const char *what)
{
    (void)c, (void)what;
    return f->data;
}

static const char *of_machine(RunComparison *c, const RunFacts *f, const char *what)
{
    (void)c, (void)what;
    return f->machine;
}

/* Steps of whole runs, and tokens of a step, as the first run of each group has them. */
static void note_lengths(RunComparison *c)
{
    Arena *a = c->session.arena;
    Buf steps = buf_new(a), tokens = buf_new(a);
    bool other_steps = false, other_tokens = false;
    double was[2] = {NAN, NAN};
    for (size_t i = 0; i < c->n; i++) {
        const History *h = &c->group[i].run[0];
        double of[2] = {h->steps, h->end.x[BY_TOKENS] / h->end.x[BY_STEP]};
        other_steps |= of[0] != was[0] && isfinite(was[0]) && isfinite(of[0]);
        other_tokens |= fabs(of[1] - was[1]) > 1e-6 * was[1];
        for (int k = 0; k < 2; k++) {
            was[k] = isfinite(of[k]) ? of[k] : was[k];
            if (isfinite(of[k]))
                buf_printf(k ? &tokens : &steps, "%s%s has %.0f", i ? "; " : "", c->group[i].name, of[k]);
        }
    }
    if (other_steps)
        vec_push(a, &c->note, arena_printf(a, "steps of whole runs: %s", steps.s));
    if (other_tokens)
        vec_push(a, &c->note, arena_printf(a, "tokens of a step: %s", tokens.s));
}

/* ---- schedules ---- */

/* The share of its steps that a run has done at x of an axis; NaN: outside. */
static double progress_at(const History *h, HistoryAxis by, double x)
{
    for (size_t i = 0; i < h->point.n; i++) {
        const HistoryPoint *q = &h->point.v[i], *p = i ? q - 1 : q;
        if (q->x[by] < x)
            continue;
        double share = q->x[by] > p->x[by] ? (x - p->x[by]) / (q->x[by] - p->x[by]) : 1;
        return (p->x[BY_STEP] + share * (q->x[BY_STEP] - p->x[BY_STEP])) / h->steps;
    }
    return NAN;
}

static bool rate_is_constant(RunComparison *c, const RunFacts *f)
{
    const char *lr = set_to(f, c->session.ctx, "train.optimizer.lr");
    char *end;
    strtod(lr, &end);
    return !strncmp(lr, "constant(", 9) || (*lr && !*end);
}

/* A rate that has fallen to its end makes a loss low: what is compared while others are on their way is not at equal terms. */
static void note_schedules(RunComparison *c, const double at[HISTORY_AXES])
{
    Arena *a = c->session.arena;
    bool falling = false;
    for (size_t i = 0; i < c->n; i++)
        falling |= !rate_is_constant(c, &c->group[i].fact[0]);
    for (int by = 0; by < HISTORY_AXES && falling; by++) {
        Buf b = buf_new(a);
        double least = INFINITY, most = -INFINITY;
        for (size_t i = 0; i < c->n && isfinite(at[by]); i++) {
            double share = progress_at(&c->group[i].run[0], (HistoryAxis)by, at[by]);
            if (!isfinite(share))
                continue;
            least = fmin(least, share);
            most = fmax(most, share);
            buf_printf(&b, "%s%s has done %.0f %%", b.n ? ", " : "", c->group[i].name, 100 * share);
        }
        if (most - least > 0.05)
            vec_push(
                a, &c->note,
                arena_printf(a, "at equal %s %s of its steps: a rate that falls to the end favours who is nearer to it",
                             by == BY_STEP ? "steps" : history_axis_name[by], b.s));
        else if (most < 0.95 && by == (int)c->how->by)
            vec_push(a, &c->note,
                     arena_printf(a,
                                  "all are at %.0f %% of their steps, where rates have not fallen to their ends: "
                                  "schedules that end there may "
                                  "bring another order",
                                  100 * most));
    }
}

void compare_note(RunComparison *c, const double at[HISTORY_AXES])
{
    static const char *const measured[] = {"train.data", "train.eval.data", "train.tokenizer", "train.eval.batches"};
    note_seeds(c);
    for (size_t i = 0; i < COUNT_OF(measured); i++)
        note_values(c, measured[i], ": losses of other data are not the same measure", of_setting);
    note_values(c, "data", ": the files have changed between the runs", of_data);
    note_values(c, "context", "", of_setting);
    note_lengths(c);
    if (c->n > 1)
        note_values(c, "machines", ": seconds are not the same measure", of_machine);
    note_schedules(c, at);
}
