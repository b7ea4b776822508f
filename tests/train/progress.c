/* progress.c - the order of work in a step and an evaluation; a progress as texts and back.
 *
 * In:  nothing.   Out: `N passed, N failed`.
 * What is wanted stands here as a list: the calls in order, the fields with their texts.
 * When: quick, checked.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "compiler/portable/loop.h"
#include "compiler/portable/loss_scale.h"
#include "compiler/portable/progress.h"
#include "support.h"

/* ---- calls ---- */

typedef struct Calls {
    char text[400];
    size_t n;
    int64_t micro, at, rows;
} Calls;

static void add(Calls *c, const char *what, int64_t k)
{
    c->n += (size_t)snprintf(c->text + c->n, sizeof c->text - c->n, k < 0 ? "%s " : "%s%d ", what, (int)k);
}

static const char *const names[] = {"count", "fresh", "more", "eval"};

static void begin(void *user) { add(user, "zero", -1); }
static void part(void *user, LoopProgram which, int64_t k) { add(user, names[which], k); }
static void keep(void *user, int level) { add(user, "keep", level); }
static void join(void *user, int level) { add(user, "join", level); }

static int64_t feed(void *user, int64_t first, int64_t of)
{
    Calls *c = user;
    c->at = first;
    c->rows = of - first < c->micro ? of - first : c->micro;
    add(c, "at", first);
    return c->rows;
}

static void run(void *user, LoopProgram which, int64_t first, int64_t rows, int64_t of)
{
    const Calls *c = user;
    add(user, names[which], first == c->at && rows == c->rows ? (int64_t)lround((double)rows / (double)of * 100) : -1);
}

/* Result 0 counts windows, result 1 adds up where they begin. */
static void results(void *user, double *out)
{
    const Calls *c = user;
    out[0] = (double)c->rows;
    out[1] = (double)c->at;
}

static void order(Tally *t)
{
    static const struct {
        int64_t parts;
        bool counts;
        StepLanes lanes;
        const char *want;
    } steps[] = {
        {1, false, {1, 0, 1}, "fresh0 "},
        {1, true, {1, 0, 1}, "fresh0 "}, /* the program counts by itself */
        {3, false, {1, 0, 1}, "zero fresh0 more1 more2 "},
        {3, true, {1, 0, 1}, "zero count0 count1 count2 fresh0 more1 more2 "},
        {4, false, {4, 0, 4}, "zero fresh0 keep0 fresh1 join0 keep1 fresh2 keep0 fresh3 join0 join1 "},
        {8,
         true,
         {4, 2, 2},
         "zero count0 count1 count2 count3 count4 count5 count6 count7 fresh4 more5 keep0 fresh6 more7 join0 "},
        {4, false, {4, 3, 1}, "zero fresh3 "},
    };
    for (size_t i = 0; i < COUNT_OF(steps); i++) {
        Calls c = {.n = 0};
        loop_gradient(&(LoopCalls){begin, part, keep, join}, &c, steps[i].parts, &steps[i].lanes, steps[i].counts);
        CHECKF(t, !strcmp(c.text, steps[i].want), "%s, not %s", c.text, steps[i].want);
    }
    static const struct {
        EvalSize size;
        bool counts;
        double windows; /* of the lanes that are computed here */
        const char *want;
        double sum;
    } evals[] = {
        {{5, 0, 2, 2, 2, {1, 0, 1}}, false, 5, "zero at0 eval40 at2 eval40 at4 eval20 ", 6},
        {{5, 2, 2, 2, 2, {1, 0, 1}}, true, 4, "zero at0 count50 at2 count50 at0 eval50 at2 eval50 ", 2},
        {{5, 3, 2, 8, 2, {1, 0, 1}}, false, 5, "zero at0 eval100 ", 0}, /* more than there are: all */
        {{5, 1, 4, 4, 2, {1, 0, 1}}, false, 4, "zero at0 eval100 ", 0},
        {{5, 0, 2, 1, 2, {4, 0, 4}}, false, 5, "zero at0 eval20 at1 eval20 at2 eval20 at3 eval20 at4 eval20 ", 10},
        {{5, 0, 2, 1, 2, {4, 2, 2}},
         true,
         3,
         "zero at0 count20 at1 count20 at2 count20 at3 count20 at4 count20 at2 eval20 at3 eval20 at4 eval20 ",
         9},
    };
    static const EvalCalls calls = {begin, feed, run, results, NULL};
    for (size_t i = 0; i < COUNT_OF(evals); i++) {
        Calls c = {.micro = evals[i].size.micro};
        double room[2], all[2 * 4];
        int64_t windows = loop_evaluate(&calls, &c, &evals[i].size, evals[i].counts, room, all);
        CHECKF(t, !strcmp(c.text, evals[i].want), "%s, not %s", c.text, evals[i].want);
        CHECK(t, windows == (evals[i].size.batches == 2 || evals[i].size.batches == 1 ? 4 : 5));
        CHECK(t, all[0] == evals[i].windows && all[1] == evals[i].sum);
    }
}

/* Neighbours first: rounding shows in which order numbers were added. */
static void tree(Tally *t)
{
    double v[8] = {1e16, 1, 1, -1e16, 3, 1e-17, 0.1, 0.2};
    const double a = (v[0] + v[1]) + (v[2] + v[3]), b = (v[4] + v[5]) + (v[6] + v[7]);
    lanes_add(v, 8, 1);
    CHECK(t, v[0] == a + b);
    double two[4] = {1, 2, 30, 40};
    lanes_add(two, 2, 2);
    CHECK(t, two[0] == 31 && two[1] == 42);
}

/* ---- a step ---- */

static bool same_number(double a, double b) { return a == b || (isnan(a) && isnan(b)); }

static void norms(Tally *t)
{
    Progress p = progress_none;
    CHECK(t, progress_norm(&p, INFINITY) == STEP_BAD && progress_norm(&p, NAN) == STEP_BAD && !p.skipped);
    CHECK(t, progress_norm(&p, 2) == STEP_GOOD && p.grad_norm == 2 && p.loss_scale == 0 && p.good_steps == 0);
    p.loss_scale = 4;
    CHECK(t, progress_norm(&p, INFINITY) == STEP_SKIPPED && p.loss_scale == 2 && p.skipped == 1 && p.grad_norm == 2);
    CHECK(t, progress_norm(&p, NAN) == STEP_SKIPPED && p.loss_scale == 1 && p.skipped == 2);
    CHECK(t, progress_norm(&p, NAN) == STEP_BAD && p.loss_scale == 1 && p.skipped == 2);
    for (int i = 0; i < LOSS_SCALE_STEPS; i++)
        CHECK(t, progress_norm(&p, 1) == STEP_GOOD && p.loss_scale == (i + 1 == LOSS_SCALE_STEPS ? 2 : 1));
    for (int i = 0; i < RECENT + 5; i++)
        progress_step(&p, i, 3, 7);
    CHECK(t,
          p.step == RECENT + 5 && p.sequences == 3 * p.step && p.tokens == 21 * p.step && p.train_loss == RECENT + 4);
    CHECK(t, p.n_recent == RECENT && p.recent[0] == 5 && p.recent[RECENT - 1] == RECENT + 4);
    static const double seen[][2] = {{3, 3}, {2, 2}, {4, 2}, {NAN, 2}}; /* losses, and the best of them */
    for (size_t i = 0; i < COUNT_OF(seen); i++) {
        p.step = 10 + (int64_t)i;
        progress_evaluated(&p, seen[i][0]);
        CHECK(t, p.eval_step == p.step && same_number(p.eval_loss, seen[i][0]) && p.best_eval == seen[i][1]);
    }
    p.from_step = 7;
    CHECK(t, progress_end(&p, 20) == 27 && progress_end(&progress_none, 20) == 20);
}

/* ---- in a file ---- */

typedef struct Texts {
    char text[32][PROGRESS_TEXT];
    const char *key[32], *without; /* a key that is not found */
    size_t n, length[32];
    Json member[32], object; /* the same as metadata */
} Texts;

static void write_texts(Texts *x, const Progress *p)
{
    x->n = 0;
    x->without = "";
    for (size_t i = 0; i < progress_fields; i++)
        if ((x->key[x->n] = progress_text(p, i, x->text[x->n])) != NULL) {
            x->length[x->n] = strlen(x->text[x->n]);
            x->n++;
        }
}

static size_t place(const Texts *x, const char *key)
{
    size_t i = 0;
    while (i < x->n && strcmp(x->key[i], key))
        i++;
    return i;
}

static bool has(const Texts *x, const char *key, const char *text)
{
    size_t i = place(x, key);
    return i < x->n && !strcmp(x->text[i], text);
}

static void write_over(Texts *x, const char *key, const char *text)
{
    size_t i = place(x, key);
    x->length[i] = strlen(text);
    strcpy(x->text[i], text);
}

static const char *read_texts(Texts *x, Progress *p, bool *missing)
{
    x->object = (Json){.kind = JSON_OBJECT};
    for (size_t i = 0; i < x->n; i++) {
        if (!strcmp(x->key[i], x->without))
            continue;
        x->member[i] = (Json){.kind = JSON_STRING,
                              .key = x->key[i],
                              .key_n = strlen(x->key[i]),
                              .s = x->text[i],
                              .n = x->length[i],
                              .next = x->object.first};
        x->object.first = &x->member[i];
    }
    return progress_read(p, &x->object, missing);
}

static void texts(Tally *t)
{
    static Texts x;
    static const char *const always[] = {"step",      "tokens",         "sequences", "train_loss",
                                         "eval_loss", "best_eval_loss", "grad_norm", "recent_losses"};
    /* of a key the others of its group */
    static const char *const with[][2] = {{"loss_scale", "good_steps"},      {"time_from_step", "time_from_tokens"},
                                          {"plateau_last", "plateau_sum"},   {"plateau_last", "plateau_numbers"},
                                          {"plateau_last", "plateau_steps"}, {"plateau_last", "plateau_over"}};
    bool missing;
    Progress p = progress_none, q;
    write_texts(&x, &p);
    CHECK(t, x.n == COUNT_OF(always) && has(&x, "step", "0") && has(&x, "train_loss", "nan") &&
                 has(&x, "recent_losses", ""));
    p = (Progress){.step = 12,
                   .tokens = 1 << 20,
                   .sequences = 99,
                   .eval_step = 10,
                   .train_loss = 0.1,
                   .eval_loss = INFINITY,
                   .grad_norm = 1e-300,
                   .best_eval = -3,
                   .recent = {1, 1.0 / 3, NAN},
                   .n_recent = 3,
                   .loss_scale = 0x1p40,
                   .good_steps = 7,
                   .skipped = 2,
                   .from_step = 4,
                   .from_tokens = 5,
                   .due = true,
                   .plateau = {.sum = 2.5, .last = 3.5, .n = 6, .steps = 8, .over = true}};
    write_texts(&x, &p);
    CHECK(t, x.n == progress_fields);
    CHECK(t, has(&x, "step", "12") && has(&x, "eval_loss", "inf") && has(&x, "loss_scale", "1099511627776") &&
                 has(&x, "growth_due", "yes") && has(&x, "recent_losses", "1 0.33333333333333331 nan"));
    CHECK(t, !read_texts(&x, &q, &missing));
    const struct {
        const char *name;
        double got, wanted;
    } fields[] = {{"step", (double)q.step, 12},
                  {"tokens", (double)q.tokens, 1 << 20},
                  {"sequences", (double)q.sequences, 99},
                  {"step of the evaluation", (double)q.eval_step, 10},
                  {"good steps", (double)q.good_steps, 7},
                  {"skipped steps", (double)q.skipped, 2},
                  {"step that time begins at", (double)q.from_step, 4},
                  {"tokens that time begins at", (double)q.from_tokens, 5},
                  {"a growth step is due", q.due, 1},
                  {"training loss", q.train_loss, 0.1},
                  {"held-out loss", q.eval_loss, INFINITY},
                  {"gradient norm", q.grad_norm, 1e-300},
                  {"best held-out loss", q.best_eval, -3},
                  {"loss scale", q.loss_scale, 0x1p40},
                  {"sum of the plateau", q.plateau.sum, 2.5},
                  {"last value of the plateau", q.plateau.last, 3.5},
                  {"numbers of the plateau", (double)q.plateau.n, 6},
                  {"steps of the plateau", (double)q.plateau.steps, 8},
                  {"the plateau is over", q.plateau.over, 1},
                  {"recent losses", (double)q.n_recent, 3}};
    for (size_t i = 0; i < COUNT_OF(fields); i++)
        CHECKF(t, fields[i].got == fields[i].wanted, "%s: %.17g was read back, %.17g written", fields[i].name,
               fields[i].got, fields[i].wanted);
    for (int i = 0; i < 3; i++)
        CHECK(t, same_number(q.recent[i], p.recent[i]));
    for (size_t i = 0; i < COUNT_OF(always); i++) {
        x.without = always[i];
        const char *bad = read_texts(&x, &q, &missing);
        CHECKF(t, bad && !strcmp(bad, always[i]) && missing, "without %s", always[i]);
    }
    for (size_t i = 0; i < COUNT_OF(with); i++) {
        x.without = with[i][1];
        const char *bad = read_texts(&x, &q, &missing);
        CHECKF(t, bad && !strcmp(bad, with[i][1]) && missing, "without %s", with[i][1]);
        x.without = with[i][0]; /* then the group is not there at all */
        CHECK(t, !read_texts(&x, &q, &missing));
    }
    x.without = "";
    static const char *const wrong[][2] = {{"step", "-1"},        {"step", "1x"},        {"step", ""},
                                           {"tokens", "9e99"},    {"train_loss", "low"}, {"loss_scale", "0"},
                                           {"loss_scale", "nan"}, {"growth_due", "1"},   {"recent_losses", "1 x"}};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        write_texts(&x, &p);
        write_over(&x, wrong[i][0], wrong[i][1]);
        const char *bad = read_texts(&x, &q, &missing);
        CHECKF(t, bad && !strcmp(bad, wrong[i][0]) && !missing, "%s = %s", wrong[i][0], wrong[i][1]);
    }
    for (size_t i = 0; i < progress_fields; i++) { /* a NUL and more behind a text that is fine */
        write_texts(&x, &p);
        strcpy(x.text[i] + x.length[i] + 1, "0");
        x.length[i] += 2;
        const char *bad = read_texts(&x, &q, &missing);
        CHECKF(t, bad && !strcmp(bad, x.key[i]) && !missing, "a NUL in %s", x.key[i]);
    }
    p.n_recent = RECENT;
    for (int i = 0; i < RECENT; i++)
        p.recent[i] = -1.2345678901234567e-300;
    write_texts(&x, &p);
    CHECK(t, !read_texts(&x, &q, &missing) && q.n_recent == RECENT && q.recent[RECENT - 1] == p.recent[0]);
    size_t last = place(&x, "recent_losses");
    strcat(x.text[last], " 1");
    x.length[last] += 2;
    CHECK(t, read_texts(&x, &q, &missing));
}

int main(void)
{
    Tally t = {0};
    order(&t);
    tree(&t);
    norms(&t);
    texts(&t);
    return tally_end(&t, "progress");
}
