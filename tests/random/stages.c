/* stages.c - see stages.h: what is printed, formatted, emitted, computed. */
#include "compiler/file/check_unit.h"
#include "runtime/cpu/backend_cpu.h"
#include "child.h"

#include "compiler/model/inside.h"

#include "../emu/backend_emu.h"
#include "generate.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <unistd.h>

const char *const stage_name[STAGES] = {
#define X(id, name, share, seconds, text) name,
    STAGE_ROWS(X)
#undef X
};
const int stage_share[STAGES] = {
#define X(id, name, share, seconds, text) share,
    STAGE_ROWS(X)
#undef X
};
const int stage_seconds[STAGES] = {
#define X(id, name, share, seconds, text) seconds,
    STAGE_ROWS(X)
#undef X
};

_Noreturn void failed(Child *c, const char *fmt, ...)
{
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(c->r->why, sizeof c->r->why, fmt, ap);
    va_end(ap);
    c->r->failed = true;
    _exit(1);
}

static void into_buf(void *user, const char *text, size_t n)
{
    Buf *b = user;
    buf_put(b, text, n);
}

vwn_writer child_writer(Buf *b) { return (vwn_writer){into_buf, b}; }

vwn_context *child_context(Child *c, const char *device)
{
    vwn_context *v = vwn_open(&(vwn_options){.threads = 1, .cache_dir = c->how->cache, .device = device});
    if (!v)
        failed(c, "no context");
    return v;
}

const char *child_diagnostics(Child *c, vwn_context *v, size_t *errors)
{
    Buf b = buf_new(c->text->program);
    vwn_writer w = child_writer(&b);
    *errors = vwn_diagnostics(v, &w, c->how->seed % 2, c->how->seed % 3 == 0, NULL);
    return b.s;
}

bool child_is_full(const Child *c, vwn_context *v, vwn_status st)
{
    enum { MANY_WEIGHTS = 1000 };
    if (st == VWN_ENVIRONMENT && strstr(vwn_message(v), "File too large")) /* than what models.c lets it write */
        return true;
    size_t most = 0;
    for (size_t i = 0; c->unit && i < c->unit->unit->grow.n; i++)
        most = c->unit->unit->grow.v[i].after->param.n > most ? c->unit->unit->grow.v[i].after->param.n : most;
    return st == VWN_ENVIRONMENT && most > MANY_WEIGHTS && strstr(vwn_message(v), "limit `memory` reached");
}

const char *child_expect(Child *c, vwn_context *v, vwn_status st, const char *what)
{
    size_t errors;
    const char *said = child_diagnostics(c, v, &errors);
    if (st == VWN_INPUT && errors == 0)
        failed(c, "%s: refused without an error: %s", what, vwn_message(v));
    if (st != VWN_OK && st != VWN_INPUT && st != VWN_CHECK && !child_is_full(c, v, st))
        failed(c, "%s: status %d: %.800s%.200s", what, (int)st, vwn_message(v), said);
    return said;
}

vwn_status child_check(vwn_context *v, const char *text, vwn_unit **unit)
{
    return vwn_check(v, &(vwn_file_options){.path = "-", .text = text, .text_length = strlen(text)}, unit);
}

void child_write(Child *c, const char *name, const char *text)
{
    FILE *f = fopen(name, "w");
    if (!f || fputs(text, f) < 0 || fclose(f) != 0)
        failed(c, "%s cannot be written", name);
}

static const char *report(Child *c, vwn_unit *u, vwn_report what, const vwn_report_options *how, vwn_status *st)
{
    Buf b = buf_new(c->text->program);
    vwn_writer w = child_writer(&b);
    *st = vwn_write_report(u, what, how, &w);
    return b.s;
}

static const char *weights(Child *c, vwn_unit *u)
{
    vwn_status st;
    const char *s = report(c, u, VWN_REPORT_PARAMS_BY_TENSOR, &(vwn_report_options){.json = true}, &st);
    if (st != VWN_OK)
        failed(c, "params --by tensor: status %d: %s", (int)st, vwn_message(c->v));
    return s;
}

/* Another text of the file is checked and must have the same weights. */
static vwn_unit *same_model(Child *c, const char *text, const char *what)
{
    vwn_context *v = child_context(c, NULL);
    vwn_unit *u;
    vwn_status st = child_check(v, text, &u);
    size_t errors;
    const char *said = child_diagnostics(c, v, &errors);
    if (st != VWN_OK)
        failed(c, "%s is not accepted: %.900s%s", what, said, vwn_message(v));
    if (u->unit->model && strcmp(weights(c, u), weights(c, c->unit)) != 0)
        failed(c, "%s has other weights", what);
    return u; /* its context ends with the process */
}

/* ---- the stages ---- */

static bool is_small(const Unit *u)
{
    if (!u->model)
        return false;
    ModelCount n = model_count(u->model);
    double seqs = u->train ? (double)u->train->batch_seqs : 2,
           T = u->train ? (double)u->train->context : (double)u->model->context;
    return n.stored + n.buffers < 300000 && model_flops_per_token(u->model) * seqs * T < 1e8 && seqs * T <= 400 &&
           u->model->graph->node.n < 6000;
}

static void stage_check(Child *c)
{
    vwn_status st = child_check(c->v, c->how->text, &c->unit);
    const char *said = child_expect(c, c->v, st, "check");
    c->r->accepted = st == VWN_OK;
    if (st != VWN_OK)
        snprintf(c->r->refused, sizeof c->r->refused, "%s", said);
    c->small = st == VWN_OK && is_small(c->unit->unit);
    if (st == VWN_OK && c->unit->unit->model)
        write_weights(c->unit->unit->model, c->how->text);
}

static const char *formatted(Child *c, const char *text, vwn_status *st)
{
    Buf b = buf_new(c->text->program);
    vwn_writer w = child_writer(&b);
    vwn_context *v = child_context(c, NULL);
    *st = vwn_format_file(v, &(vwn_file_options){.path = "-", .text = text, .text_length = strlen(text)}, &w);
    child_expect(c, v, *st, "fmt");
    vwn_close(v);
    return b.s;
}

static void stage_fmt(Child *c)
{
    vwn_status st;
    const char *once = formatted(c, c->how->text, &st);
    if (st != VWN_OK) {
        if (c->r->accepted)
            failed(c, "an accepted file is not formatted");
        return;
    }
    if (strcmp(once, formatted(c, once, &st)) != 0)
        failed(c, "the formatted text is formatted otherwise again");
    if (c->r->accepted)
        same_model(c, once, "the formatted text");
}

static void stage_resolve(Child *c)
{
    vwn_status st;
    const char *once = report(c, c->unit, VWN_REPORT_RESOLVED, &(vwn_report_options){0}, &st);
    if (st != VWN_OK)
        failed(c, "resolve: status %d: %s", (int)st, vwn_message(c->v));
    vwn_unit *u = same_model(c, once, "the resolved text");
    if (u->unit->grow.n != c->unit->unit->grow.n)
        failed(c, "the resolved text has other growth");
    const char *twice = report(c, u, VWN_REPORT_RESOLVED, &(vwn_report_options){0}, &st);
    if (st != VWN_OK || strcmp(once, twice) != 0)
        failed(c, "the resolved text resolves to another one");
    report(c, c->unit, VWN_REPORT_ORIGINS, &(vwn_report_options){0}, &st);
    child_expect(c, c->v, st, "origins");
}

/* What the list names can be drawn. */
static void draw_all(Child *c)
{
    Buf list = buf_new(c->text->program), b = buf_new(c->text->program);
    vwn_writer to_list = child_writer(&list), w = child_writer(&b);
    vwn_status st = vwn_plot(c->v, c->unit, &(vwn_plot_options){.form = VWN_PLOT_TEXT}, &to_list);
    child_expect(c, c->v, st, "plot");
    for (const char *s = list.s; *s; s += strcspn(s, "\n") + 1) {
        if (!strncmp(s, "  nothing: ", 11)) /* a sentence in the place of names */
            continue;
        const char *path = arena_copy(c->text->program, s + 2, strcspn(s + 2, " "));
        vwn_plot_options how = {.path = &path, .n_paths = 1, .points = 50, .form = VWN_PLOT_CSV};
        st = vwn_plot(c->v, c->unit, &how, &w);
        if (st != VWN_ENVIRONMENT) /* a length in epochs of data that is not there */
            child_expect(c, c->v, st, path);
    }
}

static void stage_reports(Child *c)
{
    static const vwn_report all[] = {VWN_REPORT_CHECK,          VWN_REPORT_PARAMS,          VWN_REPORT_PARAMS_BY_LAYER,
                                     VWN_REPORT_PARAMS_BY_NODE, VWN_REPORT_PARAMS_BY_GROUP, VWN_REPORT_PARAMS_BY_TENSOR,
                                     VWN_REPORT_LOSSES,         VWN_REPORT_GRAPH,           VWN_REPORT_COST};
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        vwn_status st;
        if (all[i] == VWN_REPORT_COST && c->how->seed % 8)
            continue; /* plans every program */
        report(c, c->unit, all[i], &(vwn_report_options){.json = (c->how->seed >> i) % 2}, &st);
        if (st != VWN_OK && c->unit->unit->model)
            child_expect(c, c->v, st, "report");
    }
    for (size_t i = 0; i < c->unit->unit->grow.n; i++) {
        vwn_status st;
        report(c, c->unit, VWN_REPORT_GROWTH,
               &(vwn_report_options){.json = i % 2, .program = c->unit->unit->grow.v[i].name}, &st);
        if (st != VWN_OK && st != VWN_CHANGES)
            child_expect(c, c->v, st, "growth");
    }
    draw_all(c);
}

/* The graphs of `vwn inspect` can be made of every model. */
static void look_inside(Child *c)
{
    const Model *m = c->unit->unit->model;
    Ctx *ctx = m->graph->ctx;
    CtxGuard guard;
    if (!CTX_TRY(ctx, &guard)) {
        failed(c, "inside: raised %d: %s", ctx->raised, ctx->message);
        return;
    }
    Inside in = inside_of(m, ctx->program);
    graph_verify(inside_graph(&in, INSIDE_ALL, ctx->program));
    if (!in.u.why_not)
        graph_verify(unfold_impulses(m, &in.u, 3, ctx->program));
    ctx_leave(ctx, &guard);
}

static void stage_ir(Child *c)
{
    look_inside(c);
    static const vwn_report all[] = {VWN_REPORT_AST,    VWN_REPORT_TENSOR, VWN_REPORT_GRADIENT,
                                     VWN_REPORT_SIMPLE, VWN_REPORT_FUSE,   VWN_REPORT_KERNEL,
                                     VWN_REPORT_C,      VWN_REPORT_CUDA,   VWN_REPORT_PLAN};
    static const char *const programs[] = {"train", "update", "eval", "predict"};
    for (uint64_t i = 0; i < 2; i++) {
        vwn_report what = all[(c->how->seed / 3 + 5 * i) % COUNT_OF(all)];
        vwn_report_options how = {
            .program =
                programs[(c->how->seed / 7 + i) % (c->unit->unit->train ? 4 : 2) + (c->unit->unit->train ? 0 : 2)]};
        vwn_status st;
        const char *s = report(c, c->unit, what, &how, &st);
        child_expect(c, c->v, st, "ir");
        bool graph = what == VWN_REPORT_SIMPLE, kernels = what == VWN_REPORT_KERNEL;
        if (st != VWN_OK || !(graph || kernels))
            continue;
        Buf b = buf_new(c->text->program);
        vwn_writer w = child_writer(&b);
        vwn_context *v = child_context(c, NULL);
        st = vwn_graph_report(v, &(vwn_file_options){.path = "-", .text = s, .text_length = strlen(s)}, what,
                              &(vwn_report_options){0}, &w);
        size_t errors;
        const char *said = child_diagnostics(c, v, &errors);
        if (st != VWN_OK)
            failed(c, "what `ir` printed is not read back: status %d: %.900s%s", (int)st, said, vwn_message(v));
        vwn_close(v);
    }
}

static bool begins_with(const Unit *u) /* weights that a folder does not have */
{
    return u->train && u->train->start.kind != START_DRAWN;
}

/* What is not emitted as a folder is printed: models of images. One that grows is emitted as it
 * begins. */
static void emit(Child *c, bool cuda)
{
    const Unit *u = c->unit->unit;
    vwn_status printed;
    if (!model_reads(u->model, "tokens")) {
        report(c, c->unit, cuda ? VWN_REPORT_CUDA : VWN_REPORT_C,
               &(vwn_report_options){.program = u->train ? "train" : "eval"}, &printed);
        child_expect(c, c->v, printed, "ir");
        return;
    }
    Buf b = buf_new(c->text->program);
    vwn_writer w = child_writer(&b);
    vwn_status st = vwn_emit(c->unit,
                             &(vwn_emit_options){.folder = cuda ? "cuda" : "c",
                                                 .cuda = cuda,
                                                 .infer = u->grow.n > 0 || begins_with(u),
                                                 .fast = cuda && c->how->seed % 5 == 0},
                             &w);
    child_expect(c, c->v, st, "emit");
}

static void stage_emit_c(Child *c) { emit(c, false); }
static void stage_emit_cuda(Child *c) { emit(c, true); }

typedef struct Numbers {
    Child *c;
    Stage stage;
    Compared is;
} Numbers;

static void numbers(Ctx *ctx, void *arg)
{
    Numbers *n = arg;
    const StageOptions *how = n->c->how;
    CheckOptions file = {.path = "-", .text = how->text, .text_length = strlen(how->text)};
    Unit *u = check_file(ctx, &file);
    Backend *b = NULL;
    char why[512] = "";
    if (n->stage == STAGE_INTERPRET || n->stage == STAGE_GRADIENT) {
        (n->stage == STAGE_INTERPRET ? compare_interpreted : compare_gradient)(ctx, u, how->seed, &n->is);
        return;
    }
    if (!u->train)
        return;
    if (n->stage == STAGE_EMULATED
            ? backend_emu_open(ctx, &(EmuOptions){0}, &b, why) != ST_OK
            : backend_cpu_open(ctx, &(BackendOptions){.threads = 1, .cache_dir = how->cache}, &b, why) != ST_OK)
        vwn_bug(ctx, "no backend: %s", why);
    compare_steps(ctx, u, b, n->stage == STAGE_EMULATED ? backend_emu_way : NULL, &n->is);
    b->ops->close(b);
}

static void stage_numbers(Child *c)
{
    Numbers n = {.c = c, .stage = (Stage)c->r->stage, .is = {.name = ""}};
    Ctx *ctx = ctx_new(NULL);
    CtxGuard guard;
    if (CTX_TRY(ctx, &guard)) {
        numbers(ctx, &n);
        ctx_leave(ctx, &guard);
    } else {
        failed(c, "raised %d: %s", (int)ctx->raised, ctx->message);
    }
    c->r->unstable[n.stage] = n.is.unstable;
    c->r->worst[n.stage] = n.is.worst;
    if (!n.is.unstable && !(n.is.worst < 1))
        failed(c, "differs by %.1f of what is allowed, at %s", n.is.worst, n.is.name ? n.is.name : "nothing");
    ctx_free(ctx);
}

/* Not of a file that says what the backward pass is to leave out. */
static void stage_gradient(Child *c)
{
    static const char *const stops[] = {"stop_gradient", "detach = true", "variance = learned"};
    for (size_t i = 0; i < COUNT_OF(stops); i++)
        if (strstr(c->how->text, stops[i]))
            return;
    stage_numbers(c);
}

/* ---- */

static double processor_seconds(void)
{
    double all = 0;
    const int who[] = {RUSAGE_SELF, RUSAGE_CHILDREN};
    for (size_t i = 0; i < 2; i++) {
        struct rusage r;
        getrusage(who[i], &r);
        all +=
            (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) + 1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
    }
    return all;
}

/* SIGPROF after so many seconds of this process's own, SIGALRM after many more of the clock,
 * which others slow down. */
static void limit_time(double seconds)
{
    struct itimerval t = {.it_value = {.tv_sec = (time_t)seconds, .tv_usec = (suseconds_t)(fmod(seconds, 1) * 1e6)}};
    setitimer(ITIMER_PROF, &t, NULL);
    alarm((unsigned)(20 * seconds));
}

static void (*const stages[STAGES])(Child *) = {
    [STAGE_CHECK] = stage_check,
    [STAGE_FMT] = stage_fmt,
    [STAGE_RESOLVE] = stage_resolve,
    [STAGE_REPORTS] = stage_reports,
    [STAGE_IR] = stage_ir,
    [STAGE_EMIT_C] = stage_emit_c,
    [STAGE_EMIT_CUDA] = stage_emit_cuda,
    [STAGE_GRADIENT] = stage_gradient,
    [STAGE_INTERPRET] = stage_numbers,
    [STAGE_COMPILED] = stage_numbers,
    [STAGE_EMULATED] = stage_numbers,
    [STAGE_TRAIN] = stage_train,
    [STAGE_VARY] = stage_vary,
    [STAGE_RUN] = stage_run,
    [STAGE_PARTS] = stage_parts,
    [STAGE_FOREIGN] = stage_foreign,
    [STAGE_PROGRAM] = stage_program,
};

/* What a stage asks of a file: nothing, that it is accepted, that it has a model, or that it is
 * small, too. */
static bool takes(const Child *c, Stage s)
{
    if (s <= STAGE_FMT || s == STAGE_PROGRAM)
        return true;
    if (!c->r->accepted || s == STAGE_RESOLVE)
        return c->r->accepted;
    return c->unit->unit->model && (s <= STAGE_EMIT_CUDA || c->small);
}

void stages_run(const StageOptions *how, Report *r)
{
    Child c = {.how = how, .r = r, .text = ctx_new(NULL)};
    c.v = child_context(&c, NULL);
    write_data(how->text);
    for (int s = 0; s < STAGES; s++) {
        if (!(how->take[s] || s == STAGE_CHECK) || !takes(&c, (Stage)s))
            continue;
        double before = processor_seconds(), most = how->patience * stage_seconds[s];
        r->stage = s;
        limit_time(most);
        stages[s](&c);
        r->seconds[s] = processor_seconds() - before;
        if (r->seconds[s] > most)
            failed(&c, "takes %.1f s", r->seconds[s]);
        r->ran[s] = true;
    }
    limit_time(0);
    r->done = true;
}
