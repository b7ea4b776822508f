/* growth_runs.h - every row of growth_rows.h in a run: stopped, killed and resumed before, at and behind the step.
 *
 * In:  a device, which rows.   Out: counts of checks; what differs is printed.
 * The one idea: what is proved of a step has to be seen in a run through it: outputs that are preserved stay within rounding
 * and others do not, new blocks have gradients when the row says so, and a run in pieces is the whole one, bit for bit.
 * Each number of the grown checkpoint is looked up in the one before the step, one at a time. Each piece is a process of
 * its own.
 */
#ifndef VWN_TESTS_GROWTH_RUNS_H
#define VWN_TESTS_GROWTH_RUNS_H

#include "compiler/file/check_unit.h"
#include "drawn.h"
#include "growth_rows.h"
#include "compiler/portable/safetensors.h"
#include "runtime/vwn.h"

#include <math.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { GROWTH_STEP = 3, GROWTH_LENGTH = 5, GROWTH_PASSES = 3 };

static const char growth_train[] =
    "train {\n  data = token_files(\"tokens.bin\", dtype = u16, val = 25%)\n  batch "
    "= 4 seqs\n"
    "  length = 5 steps\n  seed = 7\n  precision = fp32\n  clip = 1\n  average = ema(decay = 0.9)\n"
    "  optimizer adamw { lr = constant(peak = 1e-2), betas = [0.9, 0.95], eps = 1e-8, weight_decay = 0.1 }\n"
    "  eval { every = 5 steps, batches = 2 }\n  checkpoint { every = 1 steps, keep = 9 }\n  log { every = 1 steps "
    "}\n}\n";

/* What a piece of a run told. */
typedef struct GrowthTold {
    vwn_event_kind kill_kind;
    int64_t kill_step; /* killed by the first such event of this step; 0: not */
    int steps, grown, outputs;
    double loss[GROWTH_LENGTH + 1];
    double change, largest;                           /* of all outputs */
    double least[GROWTH_PASSES], most[GROWTH_PASSES]; /* norms of gradients of new blocks after 0, 1, 2 updates */
    char warning[300], message[300];
} GrowthTold;

typedef struct GrowthRuns {
    const char *device, *cache;
    GrowthTold *told; /* in memory that pieces share with the test */
    int checks, failures;
} GrowthRuns;

__attribute__((format(printf, 4, 5))) static inline void growth_expect(GrowthRuns *g, bool good, const char *row,
                                                                       const char *fmt, ...)
{
    g->checks++;
    if (good)
        return;
    va_list args;
    va_start(args, fmt);
    g->failures++;
    printf("%s: ", row);
    vprintf(fmt, args);
    printf("\n");
    va_end(args);
}

static inline double growth_number(const char *json, const char *key)
{
    const char *at = strstr(json, key);
    return !at || !strncmp(at + strlen(key), "null", 4) ? INFINITY : strtod(at + strlen(key), NULL);
}

/* "grad_norm":[[layers at once],[after 1 update],[after 2]] */
static inline void growth_norms(GrowthTold *t, const char *json)
{
    const char *at = strstr(json, "\"grad_norm\":[");
    for (int pass = 0; at && pass < GROWTH_PASSES; pass++) {
        at = strchr(at + (pass == 0 ? 13 : 0), '[');
        for (char *end; at && (*at == '[' || *at == ','); at = end) {
            double x = strtod(at + 1, &end);
            t->least[pass] = fmin(t->least[pass], x);
            t->most[pass] = fmax(t->most[pass], x);
        }
    }
}

static inline void growth_event(void *user, const vwn_event *e)
{
    GrowthTold *t = user;
    if (e->kind == VWN_EVENT_STEP && e->step <= GROWTH_LENGTH) {
        t->loss[e->step] = e->loss;
        t->steps++;
    }
    t->grown += e->kind == VWN_EVENT_GROWTH;
    if (e->kind == VWN_EVENT_OUTPUT && growth_number(e->json, "\"compared\":") > 0) {
        t->change = fmax(t->change, growth_number(e->json, "\"max_change\":"));
        t->largest = fmax(t->largest, growth_number(e->json, "\"largest\":"));
        t->outputs++;
    }
    if (e->kind == VWN_EVENT_BLOCK)
        growth_norms(t, e->json);
    if (e->kind == VWN_EVENT_WARNING)
        snprintf(t->warning, sizeof t->warning, "%s", e->text);
    if (t->kill_step && e->kind == t->kill_kind && e->step == t->kill_step)
        kill(getpid(), SIGKILL);
}

static inline vwn_status growth_train_file(const GrowthRuns *g, const char *run, bool resume, int64_t until)
{
    const vwn_options o = {.device = g->device, .threads = 1, .cache_dir = g->cache};
    vwn_context *ctx = vwn_open(&o);
    vwn_unit *unit;
    const vwn_file_options file = {.path = "row.vwn", .resume = resume ? run : NULL};
    vwn_status st = vwn_check(ctx, &file, &unit);
    const vwn_train_options how = {.run = run,
                                   .resume = resume,
                                   .overwrite = !resume,
                                   .until_steps = until,
                                   .event = growth_event,
                                   .user = g->told};
    if (st == VWN_OK)
        st = vwn_train(unit, &how);
    snprintf(g->told->message, sizeof g->told->message, "%s", vwn_message(ctx));
    vwn_close(ctx);
    return st;
}

/* A piece of a run in a process of its own: its status, or -SIGKILL. */
static inline int growth_piece(GrowthRuns *g, const char *run, bool resume, int64_t until, vwn_event_kind kind,
                               int64_t kill_at)
{
    *g->told = (GrowthTold){.kill_kind = kind, .kill_step = kill_at, .least = {INFINITY, INFINITY, INFINITY}};
    fflush(stdout);
    pid_t pid = fork();
    if (pid == 0)
        _exit(growth_train_file(g, run, resume, until));
    int status;
    if (pid < 0 || waitpid(pid, &status, 0) != pid)
        return -1;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
}

/* Whether the last checkpoints of two runs are the same bytes. */
static inline bool growth_same_end(const char *a, const char *b)
{
    bool same = true;
    FILE *f[2];
    for (int i = 0; i < 2; i++) {
        char path[200];
        snprintf(path, sizeof path, "runs/%s/ckpt/step_%08d.safetensors", i ? b : a, GROWTH_LENGTH);
        f[i] = fopen(path, "rb");
        same &= f[i] != NULL;
    }
    for (int c = 0; same && c != EOF;) {
        c = getc(f[0]);
        same = c == getc(f[1]);
    }
    for (int i = 0; i < 2; i++)
        if (f[i])
            fclose(f[i]);
    return same;
}

/* ---- the grown checkpoint, number by number ---- */

/* All numbers of a tensor; NULL: it has none of this name. */
static inline double *growth_tensor(Ctx *ctx, const SafeFile *f, const char *path, const char *what)
{
    char name[300], why[WHY];
    snprintf(name, sizeof name, "%s%s", path, what);
    const SafeTensor *t = safe_find(f, name);
    double *v = t ? NEW_ARRAY(ctx->program, double, t->elements + 1) : NULL;
    return v && safe_read(f, t, 0, t->elements, v, why) ? v : NULL;
}

static inline bool growth_near(double a, double b) { return fabs(a - b) <= 1e-6 * fabs(a) + 1e-30; }

/* An element of a grown tensor. */
typedef struct GrowthOrigin {
    int64_t from;            /* where it is taken from in the old tensor; -1: nowhere */
    double weight, gradient; /* the factors of what is taken, and of its gradient */
    bool fresh;              /* the step adds it */
    bool moments;            /* it begins with moments of what it is taken from */
    bool mean;               /* it is a mean of old numbers */
} GrowthOrigin;

static inline GrowthOrigin growth_origin(const GrowthEntry *e, const int64_t *at, bool zeros)
{
    GrowthOrigin o = {.from = e->before ? 0 : -1, .weight = 1, .gradient = 1, .fresh = growth_added(e)};
    int spread = e->before ? e->after->shape.rank - e->before->shape.rank : 0;
    bool reads = false, writes = false, product = false, gone = false;
    o.moments = !(o.fresh && zeros);
    for (int k = 0; k < e->after->shape.rank && e->before; k++) {
        const GrowthPart *p = e->axis[k].part;
        while (at[k] >= p->at + p->count)
            p++;
        o.weight *= p->weight;
        o.gradient *= p->gradient;
        *(e->axis[k].reads ? &reads : &writes) |= p->fresh;
        product |= e->axis[k].reads;
        o.moments &= !p->fresh || e->axis[k].carried;
        gone |= p->from < 0;
        if (k >= spread)
            o.from = o.from * e->before->shape.d[k - spread].n + p->from + at[k] - p->at;
    }
    GrowthRole role = !product && writes ? ROLE_OWN
                      : reads && writes  ? ROLE_INNER
                      : reads            ? ROLE_EXIT
                      : writes           ? ROLE_ENTRY
                                         : ROLE_OLD;
    o.fresh |= role != ROLE_OLD;
    o.mean = e->means[role];
    if (gone || (role != ROLE_OLD && !e->copies[role]))
        o.from = -1;
    return o;
}

enum { GROWTH_STATES = 4 };

/* What element i of a tensor or of a state of it has to be; now: as it is, what is drawn may be anything. */
static inline double growth_wanted(const GrowthOrigin *o, int state, const double *old,
                                   const double *const now[GROWTH_STATES], int64_t i)
{
    double factor[GROWTH_STATES] = {o->weight, o->weight, o->gradient, o->gradient * o->gradient};
    bool average = state == 1;
    if (o->from >= 0 && (state <= 1 || o->moments))
        return factor[state] * old[o->from];
    return state == 0 || (average && o->mean) ? now[state][i] : average ? now[0][i] : 0;
}

static inline void growth_entry_numbers(GrowthRuns *g, const GrowthRow *r, Ctx *ctx, const GrowthEntry *e, bool zeros,
                                        const SafeFile files[2])
{
    static const char *const states[GROWTH_STATES] = {"", ":average", ":m", ":v"};
    const double *old[GROWTH_STATES], *now[GROWTH_STATES], *born[MAX_RANK] = {0}, *since[MAX_RANK] = {0};
    for (int s = 0; s < GROWTH_STATES; s++) {
        old[s] = e->before ? growth_tensor(ctx, &files[0], e->before->path, states[s]) : NULL;
        now[s] = growth_tensor(ctx, &files[1], e->path, states[s]);
    }
    int rank = e->after->shape.rank;
    for (int k = 0; k < rank; k++) {
        char of[2][16];
        snprintf(of[0], sizeof of[0], ":born%d", k);
        snprintf(of[1], sizeof of[1], ":since%d", k);
        born[k] = growth_tensor(ctx, &files[1], e->path, of[0]);
        since[k] = growth_tensor(ctx, &files[1], e->path, of[1]);
    }
    int64_t at[MAX_RANK] = {0}, wrong[GROWTH_STATES] = {0}, came = 0;
    for (int64_t i = 0; i < e->after->elements; i++) {
        const GrowthOrigin o = growth_origin(e, at, zeros);
        for (int s = 0; s < GROWTH_STATES; s++)
            wrong[s] += now[s] && !growth_near(growth_wanted(&o, s, old[s], now, i), now[s][i]);
        bool is_born = false, is_since = false;
        for (int k = 0; k < rank; k++) {
            is_born |= born[k] && born[k][at[k]] == 1;
            is_since |= since[k] && since[k][at[k]] == 1;
        }
        came += (rank && born[0] && is_born != o.fresh) ||
                (rank && since[0] && is_since != (o.fresh && (o.from < 0 || !o.moments)));
        for (int k = rank - 1; k >= 0 && ++at[k] == e->after->shape.d[k].n; k--)
            at[k] = 0;
    }
    for (int s = 0; s < GROWTH_STATES; s++)
        growth_expect(g, wrong[s] == 0, r->name, "%d of %d numbers of %s%s are not what the step makes of them",
                      (int)wrong[s], (int)e->after->elements, e->path, states[s]);
    growth_expect(g, came == 0, r->name, "%d of %d numbers of %s came at another time", (int)came,
                  (int)e->after->elements, e->path);
    growth_expect(g, now[0] && (e->after->buffer || (now[1] && now[2] && now[3])), r->name, "states of %s are missing",
                  e->path);
}

/* Calls `look` for every tensor of the step, with the checkpoints `first` and `second` of the whole run. */
typedef void GrowthLook(GrowthRuns *g, const GrowthRow *r, Ctx *ctx, const GrowthEntry *e, bool zeros,
                        const SafeFile files[2]);
static inline void growth_look(GrowthRuns *g, const GrowthRow *r, const char *text, const char *first,
                               const char *second, GrowthLook *look)
{
    Ctx *ctx = ctx_new(NULL);
    const CheckOptions how = {.path = "row.vwn", .text = text, .text_length = strlen(text)};
    CtxGuard guard;
    if (CTX_TRY(ctx, &guard)) {
        const char *names[] = {first, second};
        char why[WHY] = "", path[100];
        const Unit *u = check_file(ctx, &how);
        SafeFile files[2];
        bool open[2];
        for (int i = 0; i < 2; i++) {
            snprintf(path, sizeof path, "runs/whole/ckpt/%s.safetensors", names[i]);
            open[i] = safe_open(arena_region(ctx->program), path, &files[i], why);
        }
        growth_expect(g, open[0] && open[1] && u->grow.n == 1, r->name, "no checkpoints: %s", why);
        const GrowthPlan *plan = u->grow.n == 1 ? growth_plan(&u->grow.v[0], ctx->program) : NULL;
        for (size_t i = 0; plan && open[0] && open[1] && i < plan->n; i++)
            look(g, r, ctx, &plan->entry[i], plan->step->fresh_moments, files);
        for (int i = 0; i < 2; i++)
            if (open[i])
                safe_close(&files[i]);
        ctx_leave(ctx, &guard);
    } else {
        growth_expect(g, false, r->name, "raised: %s", ctx->message);
    }
    ctx_free(ctx);
}

/* What was there before the step stays as it is, and what the step adds moves. */
static inline void growth_old_stays(GrowthRuns *g, const GrowthRow *r, Ctx *ctx, const GrowthEntry *e, bool zeros,
                                    const SafeFile files[2])
{
    const double *then = growth_tensor(ctx, &files[0], e->path, ""), *now = growth_tensor(ctx, &files[1], e->path, "");
    int64_t at[MAX_RANK] = {0}, moved[2] = {0}, all[2] = {0};
    for (int64_t i = 0; then && now && i < e->after->elements; i++) {
        bool fresh = growth_origin(e, at, zeros).fresh;
        all[fresh]++;
        moved[fresh] += then[i] != now[i];
        for (int k = e->after->shape.rank - 1; k >= 0 && ++at[k] == e->after->shape.d[k].n; k--)
            at[k] = 0;
    }
    growth_expect(g, then && now && moved[0] == 0, r->name, "moments = %s: %d of %d old numbers of %s move",
                  zeros ? "zeros" : "copy", (int)moved[0], (int)all[0], e->path);
    growth_expect(g, moved[1] > all[1] / 2 || !all[1], r->name, "moments = %s: %d of %d new numbers of %s move",
                  zeros ? "zeros" : "copy", (int)moved[1], (int)all[1], e->path);
}

/* What a whole run measured, beside what the row says. */
static inline void growth_as_proved(GrowthRuns *g, const GrowthRow *r, double rounding)
{
    const GrowthTold *t = g->told;
    bool data = r->alive == HALF_STEPS && strstr(t->warning, "on these windows"); /* what no token of them reaches */
    growth_expect(g, !t->warning[0] || data, r->name, "warned: %s", t->warning);
    growth_expect(g, t->outputs > 0, r->name, "no output was compared");
    if (r->preserved || r->longer)
        growth_expect(g, t->change <= rounding * (1 + t->largest), r->name, "preserved, and outputs change by %g of %g",
                      t->change, t->largest);
    else
        growth_expect(g, t->change > rounding * (1 + t->largest), r->name,
                      "not preserved, and outputs change by %g of %g", t->change, t->largest);
    if (r->alive == HALF_STEPS)
        return;
    for (int pass = 0; pass < GROWTH_PASSES; pass++) {
        bool all = t->least[pass] > 0;
        growth_expect(g, all == (r->alive != NEVER && pass >= r->alive), r->name,
                      "after %d updates norms of new blocks are %g to %g", pass, t->least[pass], t->most[pass]);
    }
}

static inline void growth_write(char *text, size_t most, const GrowthRow *r, const char *claims)
{
    put_growth_row(text, most, r, growth_train, "step >= 3", claims);
    FILE *f = fopen("row.vwn", "w");
    if (!f || fputs(text, f) < 0 || fclose(f))
        abort();
}

/* Copies are weights that the step adds, whatever they begin with. */
static inline void growth_frozen_runs(GrowthRuns *g, const GrowthRow *r)
{
    char text[8192];
    for (int zeros = 0; zeros < 2; zeros++) {
        growth_write(text, sizeof text, r,
                     zeros ? "  moments = zeros\n  old { lr_scale = 0 }\n  check alive(none)\n"
                           : "  moments = copy\n  old { lr_scale = 0 }\n  check alive(none)\n");
        int st = growth_piece(g, "runs/whole", false, 0, 0, 0);
        growth_expect(g, st == VWN_OK, r->name, "with old weights frozen it ends with %d: %s", st, g->told->message);
        if (st == VWN_OK)
            growth_look(g, r, text, "step_00000003", "step_00000005", growth_old_stays);
    }
}

static inline void growth_row_runs(GrowthRuns *g, const GrowthRow *r, double rounding)
{
    static const struct {
        vwn_event_kind kind;
        int64_t step;
    } kills[] = {{VWN_EVENT_STEP, GROWTH_STEP - 1},
                 {VWN_EVENT_OUTPUT, GROWTH_STEP},
                 {VWN_EVENT_GROWTH, GROWTH_STEP},
                 {VWN_EVENT_STEP, GROWTH_STEP + 1}};
    char text[8192], claims[128], life[64];
    snprintf(life, sizeof life, r->alive >= 0 ? "  check alive(steps = %d)\n" : "  check alive(none)\n", r->alive);
    snprintf(claims, sizeof claims, "%s%s", r->preserved ? "  check preserves(1e-4)\n" : "", life);
    growth_write(text, sizeof text, r, claims);
    int st = growth_piece(g, "runs/whole", false, 0, 0, 0);
    growth_expect(g, st == VWN_OK && g->told->steps == GROWTH_LENGTH && g->told->grown == 1, r->name,
                  "a run ends with %d after %d steps: %s", st, g->told->steps, g->told->message);
    if (st != VWN_OK)
        return;
    growth_as_proved(g, r, rounding);
    growth_look(g, r, text, "before_g", "step_00000003", growth_entry_numbers);
    for (int64_t until = GROWTH_STEP - 1; until <= GROWTH_LENGTH; until++) {
        st = growth_piece(g, "runs/stopped", until >= GROWTH_STEP, until < GROWTH_LENGTH ? until : 0, 0, 0);
        growth_expect(g, st == VWN_OK, r->name, "stopped at step %d, it ends with %d: %s", (int)until, st,
                      g->told->message);
    }
    growth_expect(g, growth_same_end("whole", "stopped"), r->name, "a run that is stopped ends with other numbers");
    for (size_t i = 0; i < COUNT_OF(kills); i++) {
        st = growth_piece(g, "runs/killed", i > 0, 0, kills[i].kind, kills[i].step);
        growth_expect(g, st == -SIGKILL, r->name, "kill %zu did not come: %d, %s", i, st, g->told->message);
    }
    st = growth_piece(g, "runs/killed", true, 0, 0, 0);
    growth_expect(g, st == VWN_OK && growth_same_end("whole", "killed"), r->name,
                  "a run that is killed ends with %d and other numbers: %s", st, g->told->message);
}

/* Tokens below 32 with some structure. */
static inline void growth_tokens(const char *path)
{
    FILE *f = fopen(path, "wb");
    uint32_t x = 5;
    for (int i = 0; f && i < 4000; i++) {
        x = x * 1664525u + 1013904223u;
        putc((int)((x >> 24) % (uint32_t)(1 + i % 32)), f);
        putc(0, f);
    }
    if (!f || fclose(f))
        abort();
}

/* Runs the rows that are drawn and those that are always, and those whose names stand in `frozen` with old weights frozen; what the
 * program ends with. */
static inline int growth_runs(const char *device, const char *cache, CaseDraw *draw, double rounding,
                              const char *always, const char *frozen, int argc, char **argv)
{
    GrowthRuns g = {.device = device, .cache = cache};
    g.told = mmap(NULL, sizeof *g.told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (g.told == MAP_FAILED)
        abort();
    growth_tokens("tokens.bin");
    for (size_t i = 0; i < COUNT_OF(growth_rows); i++)
        if (argc > 1 ? strstr(growth_rows[i].name, argv[1]) != NULL
                     : case_drawn(draw, i) | !strcmp(growth_rows[i].name, always))
            growth_row_runs(&g, &growth_rows[i], rounding);
    for (size_t i = 0; i < COUNT_OF(growth_rows); i++)
        if (strstr(frozen, growth_rows[i].name))
            growth_frozen_runs(&g, &growth_rows[i]);
    cases_end(draw);
    printf("%s: %d checks, %d failures\n", device, g.checks, g.failures);
    return g.failures > 0 || g.checks == 0;
}

#endif
