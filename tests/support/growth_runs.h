/* growth_runs.h - every row of growth_rows.h in a run: stopped, killed and resumed before, at and behind the step.
 *
 * In:  a device, which rows.   Out: counts of checks; what differs is printed.
 * The one idea: what is proved of a step has to be seen in a run through it: outputs that are preserved stay within rounding
 * and others do not, new blocks have gradients when the row says so, and a run in pieces is the whole one, bit for bit.
 * Each piece is a process of its own.
 */
#ifndef VWN_TESTS_GROWTH_RUNS_H
#define VWN_TESTS_GROWTH_RUNS_H

#include "drawn.h"
#include "growth_rows.h"
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
    "train {\n  data = token_files(\"tokens.bin\", dtype = u16, val = 25%)\n  tokenizer = file(\"none.json\")\n  batch = 4 seqs\n"
    "  length = 5 steps\n  seed = 7\n  precision = fp32\n  clip = 1\n  average = ema(decay = 0.9)\n"
    "  optimizer adamw { lr = constant(peak = 1e-2), betas = [0.9, 0.95], eps = 1e-8, weight_decay = 0.1 }\n"
    "  eval { every = 5 steps, batches = 2 }\n  checkpoint { every = 1 steps, keep = 9 }\n  log { every = 1 steps }\n}\n";

/* What a piece of a run told. */
typedef struct GrowthTold {
    vwn_event_kind kill_kind;
    int64_t kill_step; /* killed by the first such event of this step; 0: not */
    int steps, grown, outputs;
    double loss[GROWTH_LENGTH + 1];
    double change, largest;                            /* of all outputs */
    double least[GROWTH_PASSES], most[GROWTH_PASSES]; /* norms of gradients of new blocks after 0, 1, 2 updates */
    char warning[300], message[300];
} GrowthTold;

typedef struct GrowthRuns {
    const char *device, *cache;
    GrowthTold *told; /* in memory that pieces share with the test */
    int checks, failures;
} GrowthRuns;

__attribute__((format(printf, 4, 5))) static inline void growth_expect(GrowthRuns *g, bool good, const char *row, const char *fmt, ...)
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
    const vwn_train_options how = {.run = run, .resume = resume, .overwrite = !resume, .until_steps = until, .event = growth_event,
                                   .user = g->told};
    if (st == VWN_OK)
        st = vwn_train(unit, &how);
    snprintf(g->told->message, sizeof g->told->message, "%s", vwn_message(ctx));
    vwn_close(ctx);
    return st;
}

/* A piece of a run in a process of its own: its status, or -SIGKILL. */
static inline int growth_piece(GrowthRuns *g, const char *run, bool resume, int64_t until, vwn_event_kind kind, int64_t kill_at)
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

/* What a whole run measured, beside what the row says. */
static inline void growth_as_proved(GrowthRuns *g, const GrowthRow *r, double rounding)
{
    const GrowthTold *t = g->told;
    bool data = r->alive == HALF_STEPS && strstr(t->warning, "on these windows"); /* what no token of them reaches */
    growth_expect(g, !t->warning[0] || data, r->name, "warned: %s", t->warning);
    growth_expect(g, t->outputs > 0, r->name, "no output was compared");
    if (r->preserved || r->longer)
        growth_expect(g, t->change <= rounding * (1 + t->largest), r->name, "preserved, and outputs change by %g of %g", t->change, t->largest);
    else
        growth_expect(g, t->change > rounding * (1 + t->largest), r->name, "not preserved, and outputs change by %g of %g", t->change, t->largest);
    if (r->alive == HALF_STEPS)
        return;
    for (int pass = 0; pass < GROWTH_PASSES; pass++) {
        bool all = t->least[pass] > 0;
        growth_expect(g, all == (r->alive != NEVER && pass >= r->alive), r->name, "after %d updates norms of new blocks are %g to %g", pass,
                      t->least[pass], t->most[pass]);
    }
}

static inline void growth_row_runs(GrowthRuns *g, const GrowthRow *r, double rounding)
{
    static const struct {
        vwn_event_kind kind;
        int64_t step;
    } kills[] = {{VWN_EVENT_STEP, GROWTH_STEP - 1}, {VWN_EVENT_OUTPUT, GROWTH_STEP}, {VWN_EVENT_GROWTH, GROWTH_STEP}, {VWN_EVENT_STEP, GROWTH_STEP + 1}};
    char text[8192], claims[128], life[64];
    snprintf(life, sizeof life, r->alive >= 0 ? "  check alive(steps = %d)\n" : "  check alive(none)\n", r->alive);
    snprintf(claims, sizeof claims, "%s%s", r->preserved ? "  check preserves(1e-4)\n" : "", life);
    put_growth_row(text, sizeof text, r, growth_train, "step >= 3", claims);
    FILE *f = fopen("row.vwn", "w");
    if (!f || fputs(text, f) < 0 || fclose(f))
        abort();
    int st = growth_piece(g, "runs/whole", false, 0, 0, 0);
    growth_expect(g, st == VWN_OK && g->told->steps == GROWTH_LENGTH && g->told->grown == 1, r->name, "a run ends with %d after %d steps: %s", st,
                  g->told->steps, g->told->message);
    if (st != VWN_OK)
        return;
    growth_as_proved(g, r, rounding);
    for (int64_t until = GROWTH_STEP - 1; until <= GROWTH_LENGTH; until++) {
        st = growth_piece(g, "runs/stopped", until >= GROWTH_STEP, until < GROWTH_LENGTH ? until : 0, 0, 0);
        growth_expect(g, st == VWN_OK, r->name, "stopped at step %d, it ends with %d: %s", (int)until, st, g->told->message);
    }
    growth_expect(g, growth_same_end("whole", "stopped"), r->name, "a run that is stopped ends with other numbers");
    for (size_t i = 0; i < COUNT_OF(kills); i++) {
        st = growth_piece(g, "runs/killed", i > 0, 0, kills[i].kind, kills[i].step);
        growth_expect(g, st == -SIGKILL, r->name, "kill %zu did not come: %d, %s", i, st, g->told->message);
    }
    st = growth_piece(g, "runs/killed", true, 0, 0, 0);
    growth_expect(g, st == VWN_OK && growth_same_end("whole", "killed"), r->name, "a run that is killed ends with %d and other numbers: %s", st,
                  g->told->message);
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

/* Runs the rows that are drawn; what the program ends with. */
static inline int growth_runs(const char *device, const char *cache, CaseDraw *draw, double rounding, int argc, char **argv)
{
    GrowthRuns g = {.device = device, .cache = cache};
    g.told = mmap(NULL, sizeof *g.told, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (g.told == MAP_FAILED)
        abort();
    growth_tokens("tokens.bin");
    for (size_t i = 0; i < COUNT_OF(growth_rows); i++)
        if (argc > 1 ? strstr(growth_rows[i].name, argv[1]) != NULL : case_drawn(draw, i))
            growth_row_runs(&g, &growth_rows[i], rounding);
    cases_end(draw);
    printf("%s: %d checks, %d failures\n", device, g.checks, g.failures);
    return g.failures > 0 || g.checks == 0;
}

#endif
