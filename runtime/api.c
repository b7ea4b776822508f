/* api.c - the public functions: thin glue between vwn.h and the stages.
 *
 * In:  calls of vwn.h.   Out: a status; text through the caller's writer.
 * The one idea: each function packs its arguments, runs one body with a landing place for
 * ctx_raise, and gives back the scratch memory on both ways out.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "compiler/file/check_unit.h"
#include "compiler/portable/file.h"
#include "compiler/portable/threads.h"
#include "compiler/growth/growth.h"
#include "compiler/report/report.h"
#include "compiler/report/resolve.h"
#include "grammar/codes.h"
#include "grammar/foreign.h"
#include "runtime/api.h"
#include "runtime/base/machine.h"
#include "runtime/exec/backends.h"
#include "runtime/exec/session.h"
#include "runtime/lsp/lsp.h"
#include "runtime/measure/rates.h"
#include "runtime/checkpoint/run_dir.h"
#include "runtime/exec/workbench.h"
#include "runtime/token/system_library.h"

extern const char vwn_source_hash[]; /* generated: see CMakeLists.txt */

vwn_workbench *vwn_workbench_open(void) { return workbench_open(); }
void vwn_workbench_close(vwn_workbench *bench) { workbench_close(bench); }

const char *vwn_version(void) { return VWN_VERSION; }

const char *vwn_build_id(void) { return vwn_source_hash; }

/* ---- contexts ---- */

vwn_context *vwn_open(const vwn_options *options)
{
    Allocator mem = {0};
    vwn_options o = options ? *options : (vwn_options){0};
    if (o.resize)
        mem = (Allocator){o.resize, o.user};
    Ctx *ctx = ctx_new(o.resize ? &mem : NULL);
    if (!ctx)
        return NULL;
    ctx->byte_limit = o.memory_limit ? o.memory_limit : (size_t)1 << 30;
    CtxGuard guard;
    if (!CTX_TRY(ctx, &guard)) {
        ctx_free(ctx);
        return NULL;
    }
    vwn_context *context = NEW(ctx->program, vwn_context);
    context->ctx = ctx;
    context->options = o;
    if (o.workbench && !o.resize) {
        ctx_keep_spare(ctx, BENCH_SPARE);
        ctx_hand_spare(o.workbench->ctx, ctx);
    }
    if (o.cache_dir)
        context->options.cache_dir = arena_copy(ctx->program, o.cache_dir, strlen(o.cache_dir));
    if (o.compiler)
        context->options.compiler = arena_copy(ctx->program, o.compiler, strlen(o.compiler));
    if (o.device)
        context->options.device = arena_copy(ctx->program, o.device, strlen(o.device));
    ctx_leave(ctx, &guard);
    return context;
}

void vwn_close(vwn_context *context)
{
    if (!context)
        return;
    ranks_close(context->ranks);
    if (context->options.workbench && !context->options.resize)
        ctx_free_to(context->ctx, context->options.workbench->ctx);
    else
        ctx_free(context->ctx);
}

const char *vwn_message(const vwn_context *context) { return context->ctx->message; }

const char *vwn_warning(const vwn_context *context) { return context->warning; }

void vwn_interrupt(vwn_context *context) { context->interrupted = 1; }

/* What ends this rank ends all: they are told why. One says it to people. */
static vwn_status leave_ranks(vwn_context *c, vwn_status st)
{
    const Diag *first = NULL;
    if (!c->ranks || st == VWN_OK || (st == VWN_INTERRUPTED && !c->ctx->message[0])) /* all have agreed to stop */
        return st;
    for (size_t i = 0; i < diag_count(c->ctx) && !first; i++)
        first = diag_get(c->ctx, i)->level == LEVEL_ERROR ? diag_get(c->ctx, i) : NULL;
    ranks_fail(c->ranks, c->ctx->message[0] ? c->ctx->message : first ? first->message : "its file has errors");
    if (!ranks_speaks(c->ranks))
        c->ctx->message[0] = '\0';
    return st;
}

vwn_status api_run(vwn_context *context, Status (*body)(void *user), void *user)
{
    Ctx *ctx = context->ctx;
    ctx->message[0] = '\0';
    context->warning[0] = '\0';
    ArenaMark mark = arena_mark(ctx->scratch);
    Status st = guarded(ctx, body, user);
    arena_reset(ctx->scratch, mark);
    return leave_ranks(context, (vwn_status)st);
}

/* ---- ranks ---- */

static Status join_body(void *user)
{
    vwn_context *c = user;
    RanksAsk ask;
    char why[RANKS_WHY];
    if (!ranks_ask(&ask, why))
        ctx_raise(c->ctx, ST_USAGE, "%s", why);
    if (ask.size == 1)
        return ST_OK;
    if (!(c->ranks = ranks_open(&ask, why)))
        ctx_raise(c->ctx, ST_ENVIRONMENT, "%s", why);
    char name[16]; /* as `top` shows it */
    snprintf(name, sizeof name, "vwn rank %d", ask.rank);
    prctl(PR_SET_NAME, name);
    c->local = ask.local_rank + 1;
    int threads = threads_available() / ask.local;
    if (!c->options.threads)
        c->options.threads = threads > 0 ? threads : 1;
    return ST_OK;
}

vwn_status vwn_join(vwn_context *context, int *rank, int *size)
{
    vwn_status st = context->ranks ? VWN_OK : api_run(context, join_body, context);
    *rank = context->ranks ? ranks_rank(context->ranks) : 0;
    *size = context->ranks ? ranks_size(context->ranks) : 1;
    return st;
}

static void put(const vwn_writer *out, const Buf *b)
{
    if (b->n)
        out->put(out->user, b->s, b->n);
}

/* ---- checking ---- */

typedef struct CheckCall {
    vwn_context *context;
    const vwn_file_options *file;
    vwn_unit *unit;
} CheckCall;

/* The lint that a W code belongs to: the word before the colon of its title. */
static bool is_lint(const char *word)
{
    for (size_t i = 0; i < diag_code_count(); i++) {
        const char *title;
        size_t n = strlen(word);
        if (diag_code_at(i)[0] == 'W' && diag_explain(diag_code_at(i), &title) && strncmp(title, word, n) == 0 &&
            title[n] == ':')
            return true;
    }
    return false;
}

static void check_deny(Ctx *ctx, const vwn_file_options *file)
{
    for (size_t i = 0; i < file->n_deny; i++)
        if (strcmp(file->deny[i], "warnings") != 0 && !is_lint(file->deny[i]))
            ctx_raise(ctx, ST_USAGE, "there is no lint `%s`; see `vwn explain`", file->deny[i]);
}

/* Warnings that are denied become errors until they are rendered. */
static void deny(Ctx *ctx, const vwn_file_options *file, size_t from)
{
    for (size_t i = from; i < diag_count(ctx); i++) {
        Diag *d = (Diag *)diag_get(ctx, i);
        for (size_t k = 0; k < file->n_deny && d->level == LEVEL_WARNING; k++)
            if (strcmp(file->deny[k], "warnings") == 0 || (d->lint && strcmp(file->deny[k], d->lint) == 0))
                d->level = LEVEL_ERROR;
    }
}

/* Errors of the input win over false checks. */
static Status status_of(const Ctx *ctx, size_t from)
{
    if (!diag_only_checks(ctx, from))
        return ST_INPUT;
    for (size_t i = from; i < diag_count(ctx); i++)
        if (diag_get(ctx, i)->level == LEVEL_ERROR)
            return ST_CHECK;
    return ST_OK;
}

/* The name of the file's model, also when something in it is wrong; NULL without one. */
static Name model_name(Ctx *ctx, const CheckOptions *how)
{
    size_t before = diag_count(ctx);
    CheckOptions plain = *how;
    plain.model_only = true;
    Name name = unit_model_name(check_file(ctx, &plain));
    diag_truncate(ctx, before);
    return name;
}

const char *vwn_model_name(const vwn_unit *unit) { return unit->unit ? unit_model_name(unit->unit) : NULL; }

/* Puts the overrides of the run that is resumed before those that are given. */
static void repeat_settings(Ctx *ctx, const vwn_file_options *file, CheckOptions *how)
{
    const char *path = file->resume;
    Name name = *path ? NULL : model_name(ctx, how);
    if (name)
        path = arena_printf(ctx->program, "runs/%s", name);
    Settings then = run_settings(ctx, ctx->program, path);
    const char **all = NEW_ARRAY(ctx->program, const char *, then.n + file->n_set + 1);
    size_t n = 0;
    for (size_t i = 0; i < then.n; i++)
        if (!setting_for(file->set, file->n_set, then.v[i]))
            all[n++] = then.v[i];
    for (size_t i = 0; i < file->n_set; i++)
        all[n++] = file->set[i];
    how->set = all;
    how->n_set = n;
}

static Status check_body(void *user)
{
    CheckCall *c = user;
    Ctx *ctx = c->context->ctx;
    check_deny(ctx, c->file);
    CheckOptions how = {.path = c->file->path,
                        .text = c->file->text,
                        .text_length = c->file->text_length,
                        .folder = c->file->folder,
                        .set = c->file->set,
                        .n_set = c->file->n_set,
                        .model_only = c->file->model_only,
                        .no_sweeps = c->file->no_sweeps};
    if (c->file->resume)
        repeat_settings(ctx, c->file, &how);
    c->unit->unit = check_file(ctx, &how);
    return ST_OK;
}

static Status new_unit(void *user)
{
    CheckCall *c = user;
    c->unit = NEW(c->context->ctx->program, vwn_unit);
    c->unit->context = c->context;
    return ST_OK;
}

vwn_status vwn_check(vwn_context *context, const vwn_file_options *file, vwn_unit **unit)
{
    CheckCall c = {.context = context, .file = file};
    double began = clock_seconds();
    size_t from = diag_count(context->ctx);
    vwn_status st = api_run(context, new_unit, &c);
    *unit = c.unit;
    if (st == VWN_OK)
        st = api_run(context, check_body, &c);
    if (c.unit)
        c.unit->check_seconds = clock_seconds() - began;
    deny(context->ctx, file, from);
    return leave_ranks(context, st == VWN_OK || st == VWN_INPUT ? (vwn_status)status_of(context->ctx, from) : st);
}

typedef struct MeantCall {
    CheckCall check;
    const char *word, *path, *inner;
} MeantCall;

static Status meant_body(void *user)
{
    MeantCall *m = user;
    Ctx *ctx = m->check.context->ctx;
    const vwn_file_options *file = m->check.file;
    size_t before = diag_count(ctx);
    CheckOptions how = {.path = file->path, .text = file->text, .text_length = file->text_length, .model_only = true};
    m->path = setting_meant(check_file(ctx, &how), m->word, &m->inner);
    diag_truncate(ctx, before);
    return ST_OK;
}

const char *vwn_setting_meant(vwn_context *context, const vwn_file_options *file, const char *word, const char **inner)
{
    MeantCall m = {.check = {.context = context, .file = file}, .word = word};
    bool fine = api_run(context, meant_body, &m) == VWN_OK;
    *inner = fine ? m.inner : NULL;
    return fine ? m.path : NULL;
}

/* "--max-steps" and "--max_steps" are one name. */
static bool same_flag(const char *x, const char *y)
{
    for (; *x && *y && (*x == *y || (strchr("-_", *x) && strchr("-_", *y))); x++, y++)
        ;
    return *x == *y;
}

bool vwn_other_name(const char *word, size_t i, const char **ours, const char **text)
{
    for (size_t k = 0; k < foreign_count(); k++) {
        const Foreign *row = foreign_at(k);
        if (row->kind != (*word == '-' ? FOREIGN_FLAG : FOREIGN_VERB) || !same_flag(word, row->name) || i--)
            continue;
        *ours = row->ours;
        *text = row->text;
        return true;
    }
    return false;
}

/* ---- diagnostics ---- */

typedef struct DiagCall {
    Ctx *ctx;
    const vwn_writer *out;
    bool json, color;
} DiagCall;

static Status render_body(void *user)
{
    DiagCall *c = user;
    Buf b = buf_new(c->ctx->scratch);
    if (!c->json)
        diag_render_all(c->ctx, &b, c->color);
    for (size_t i = 0; c->json && i < diag_count(c->ctx); i++)
        diag_render_json(c->ctx, &b, diag_get(c->ctx, i));
    put(c->out, &b);
    return ST_OK;
}

size_t vwn_diagnostics(vwn_context *context, const vwn_writer *out, bool json, bool color, size_t *warnings)
{
    Ctx *ctx = context->ctx;
    DiagCall c = {.ctx = ctx, .out = out, .json = json, .color = color};
    char message[sizeof ctx->message];
    char warning[sizeof context->warning];
    memcpy(message, ctx->message, sizeof message); /* of the call before, still to be read */
    memcpy(warning, context->warning, sizeof warning);
    vwn_status st = api_run(context, render_body, &c);
    memcpy(context->warning, warning, sizeof warning);
    if (st == VWN_OK)
        memcpy(ctx->message, message, sizeof message);
    size_t errors = 0, others = 0;
    for (size_t i = 0; i < diag_count(ctx); i++) {
        Diag *d = (Diag *)diag_get(ctx, i);
        errors += d->level == LEVEL_ERROR;
        others += d->level == LEVEL_WARNING;
        if (d->lint) /* what deny() changed: the counts inside diag.c know it as a warning */
            d->level = LEVEL_WARNING;
    }
    diag_truncate(ctx, 0);
    if (warnings)
        *warnings = others;
    return errors;
}

/* ---- fixes ---- */

typedef struct FixCall {
    vwn_unit *unit;
    const vwn_writer *out, *changes;
    size_t fixes;
} FixCall;

static int by_place(const void *a, const void *b)
{
    const DiagHelp *x = *(const DiagHelp *const *)a, *y = *(const DiagHelp *const *)b;
    return (x->replace.lo > y->replace.lo) - (x->replace.lo < y->replace.lo);
}

/* A piece of text between quotes, in one line. */
static void put_piece(Buf *b, const char *text, size_t n)
{
    enum { SHOWN = 60 };
    size_t line = 0, shown;
    while (line < n && text[line] != '\n')
        line++;
    shown = line <= SHOWN ? line : SHOWN;
    while (shown < line && shown > 0 && ((unsigned char)text[shown] & 0xc0) == 0x80)
        shown--;
    if (n)
        buf_printf(b, "`%.*s%s`", (int)shown, text, shown < n ? "..." : "");
}

static Status fix_body(void *user)
{
    FixCall *c = user;
    Ctx *ctx = c->unit->context->ctx;
    const Ast *ast = c->unit->unit ? c->unit->unit->ast : NULL;
    VEC(const DiagHelp *) fix = {0};
    for (size_t i = 0; ast && i < diag_count(ctx); i++) {
        const Diag *d = diag_get(ctx, i);
        for (size_t k = 0; k < d->helps.n; k++) /* at most one: two could contradict each other */
            if (d->helps.v[k].applicability == FIX_CERTAIN && d->helps.v[k].replace.file == ast->span.file &&
                d->helps.v[k].with) {
                vec_push(ctx->scratch, &fix, &d->helps.v[k]);
                break;
            }
    }
    if (!fix.n)
        return ST_OK;
    qsort(fix.v, fix.n, sizeof *fix.v, by_place);
    size_t n, at = 0;
    const char *text = source_text(ctx, ast->span.file, &n);
    Buf b = buf_new(ctx->scratch), lines = buf_new(ctx->scratch);
    for (size_t i = 0; i < fix.n; i++) {
        Span s = fix.v[i]->replace;
        if (s.lo < at) /* overlaps the one before: left for the next round */
            continue;
        LineCol place = source_position(ctx, s.file, s.lo);
        buf_printf(&lines, "%s:%u:%u: ", source_path(ctx, s.file), place.line, place.column);
        put_piece(&lines, text + s.lo, s.hi - s.lo);
        buf_puts(&lines, s.hi > s.lo ? " -> " : "");
        put_piece(&lines, fix.v[i]->with, strlen(fix.v[i]->with));
        buf_puts(&lines, s.hi > s.lo ? "\n" : " added\n");
        buf_put(&b, text + at, s.lo - at);
        buf_puts(&b, fix.v[i]->with);
        at = s.hi;
        c->fixes++;
    }
    buf_put(&b, text + at, n - at);
    put(c->out, &b);
    put(c->changes, &lines);
    return ST_OK;
}

size_t vwn_fixed_text(vwn_unit *unit, const vwn_writer *out, const vwn_writer *changes)
{
    FixCall c = {.unit = unit, .out = out, .changes = changes};
    return api_run(unit->context, fix_body, &c) == VWN_OK ? c.fixes : 0;
}

/* ---- reports ---- */

/* A step of training is planned twice, with `recompute` and without: once here, and once in another thread. A Ctx is of
 * one thread, so that one checks the file again, which takes a tenth of planning. */
typedef struct Beside {
    CheckOptions how; /* of the unit */
    size_t byte_limit;
    int64_t batch;
    Ahead *ahead;
    Ctx *ctx; /* its own */
    bool done;
    uint64_t arena;
} Beside;

typedef struct ReportCall {
    vwn_unit *unit;
    vwn_report what;
    const vwn_report_options *how;
    const vwn_writer *out;
    Beside beside;
} ReportCall;

static Status other_body(void *user)
{
    Beside *b = user;
    const Unit *u = check_file(b->ctx, &b->how);
    if (!u->model || !u->train || !diag_only_checks(b->ctx, 0))
        return ST_INPUT;
    b->arena = session_memory_other(b->ctx, u->model, u->train, b->batch);
    return ST_OK;
}

static void plan_other(void *user, int64_t lo, int64_t hi, int worker)
{
    Beside *b = user;
    (void)lo, (void)hi, (void)worker;
    b->ctx = ctx_new(NULL);
    if (!b->ctx)
        return;
    b->ctx->byte_limit = b->byte_limit;
    b->done = guarded(b->ctx, other_body, b) == ST_OK;
    ctx_free(b->ctx);
}

/* What it found; when it could not, for whatever reason, it is planned here, and here is told why not. */
static const uint64_t *other_arena(void *user)
{
    Beside *b = user;
    ahead_drain(b->ahead);
    return b->done ? &b->arena : NULL;
}

/* Not with memory of the caller's, which may be for one thread alone. */
static void start_beside(ReportCall *c)
{
    const vwn_options *o = &c->unit->context->options;
    const Unit *u = c->unit->unit;
    int threads = o->threads > 0 ? o->threads : threads_available();
    if (c->what != VWN_REPORT_COST || c->how->ranks || o->resize || threads < 2 || !u->model || !u->train || !u->ast)
        return;
    Beside *b = &c->beside;
    *b = (Beside){.how = {.path = u->path, .set = u->set, .n_set = u->n_set},
                  .byte_limit = u->ctx->byte_limit,
                  .batch = c->how->batch_seqs,
                  .ahead = ahead_open(2)};
    b->how.text = source_text(u->ctx, u->ast->span.file, &b->how.text_length);
    if (b->ahead)
        ahead_begin(b->ahead, 1, 1, plan_other, b);
}

/* The plan of the step of this name. */
static Status growth_body(Buf *out, ReportCall *c)
{
    Unit *u = c->unit->unit;
    const char *name = c->how->program;
    for (size_t i = 0; i < u->grow.n; i++)
        if (!strcmp(u->grow.v[i].name, name))
            return report_growth_step(out, &u->grow.v[i], u->ctx->scratch, c->how->json) ? ST_CHANGES : ST_OK;
    if (unit_has_growth(u, name))
        return ST_OK; /* behind a false check no step is planned, and that has been said */
    Buf names = buf_new(u->ctx->scratch);
    for (size_t i = 0; i < u->grow.n; i++)
        buf_printf(&names, "%s%s", i ? ", " : "", u->grow.v[i].name);
    if (!*name && u->grow.n)
        ctx_raise(u->ctx, ST_USAGE, "say which growth step of %s: %s", u->path, names.s);
    ctx_raise(u->ctx, ST_INPUT, *name ? "%s has no growth step `%s`%s%s" : "%s has no growth step%s%s%s", u->path, name,
              u->grow.n ? "; it has " : "", names.n ? names.s : "");
}

static ReportTime time_of(const Estimating *e, const char *why)
{
    return (ReportTime){.why = why,
                        .threads = e->rates.threads,
                        .device = e->rates.device,
                        .products = e->sum.products,
                        .experts = e->sum.experts,
                        .attention = e->sum.attention,
                        .kernels = e->sum.kernels,
                        .launches = e->sum.launches};
}

static RanksNeed ranks_asked(Unit *u, const vwn_report_options *how, const MemoryAsk *memory)
{
    if (!u->train)
        ctx_raise(u->ctx, ST_INPUT, "the file has no `train`, whose lanes %lld ranks could share",
                  (long long)how->ranks);
    const char *refused = ranks_refused(u->ctx->scratch, lanes_of(u->train->lanes).all, how->ranks);
    if (refused)
        ctx_raise(u->ctx, ST_USAGE, "%s", refused);
    const RanksAskNeed ask = {(int)how->ranks, how->batch_seqs, memory};
    return ranks_need(u->ctx, report_model(u), u->train, &ask, u->ctx->scratch);
}

static const RankCost *costs_of(const RanksNeed *ranks, Arena *a)
{
    RankCost *of = NEW_ARRAY(a, RankCost, (size_t)ranks->n + 1);
    for (int i = 0; i < ranks->n; i++) {
        const MemoryNeed *n = &ranks->memory[i];
        of[i] = (RankCost){n->optimizer, n->average, n->exchange, n->arena, n->total, ranks->sent[i]};
    }
    return of;
}

static void cost_body(Buf *b, ReportCall *c)
{
    vwn_context *context = c->unit->context;
    const vwn_report_options *how = c->how;
    Unit *u = c->unit->unit;
    const Model *m = report_model(u);
    char why[512];
    Estimating estimating = {.sum = {0}};
    PlanWatch watch = {estimate_plan, &estimating};
    bool known = u->train && rates_find(context, &estimating.rates, why);
    bool cuda = u->train && estimating.rates.device[0];
    MemoryAsk ask = {
        .both = cuda ? NULL : u->ctx->scratch, .target = cuda ? &target_gpu : NULL, .watch = known ? &watch : NULL};
    if (c->beside.ahead && !cuda)
        ask.other = other_arena, ask.other_user = &c->beside;
    RanksNeed ranks = {0};
    if (how->ranks)
        ranks = ranks_asked(u, how, &ask);
    MemoryNeed n = ranks.n ? ranks.memory[0] : session_memory(u->ctx, m, u->train, how->batch_seqs, &ask);
    int64_t batch = how->batch_seqs > 0 ? how->batch_seqs : u->train ? u->train->micro_seqs : 1;
    ReportMemory memory = {.batch_seqs = batch,
                           .weights = n.weights,
                           .copies = n.copies,
                           .buffers = n.buffers,
                           .gradients = n.gradients,
                           .optimizer = n.optimizer,
                           .average = n.average,
                           .exchange = n.exchange,
                           .inputs = n.inputs,
                           .arena = n.arena,
                           .program = n.program,
                           .total = n.total,
                           .arena_kept = n.arena_kept,
                           .arena_recomputed = n.arena_recomputed,
                           .recompute = n.recompute,
                           .n_recompute = n.n_recompute,
                           .asked = u->train && u->train->n_recompute,
                           .training = u->train != NULL,
                           .device = cuda};
    ReportTime time = time_of(&estimating, known ? NULL : why);
    ReportRanks of = {.n = ranks.n,
                      .of = costs_of(&ranks, u->ctx->scratch),
                      .exchanges = ranks.exchanges,
                      .bandwidth = how->bandwidth,
                      .latency = how->latency};
    report_cost(b, u, &memory, u->train ? &time : NULL, ranks.n ? &of : NULL, how->json);
}

/* AST is the first; RESOLVED, which is no stage of a graph, stands before it. */
static Stage stage_of(vwn_report what) { return (Stage)(what - VWN_REPORT_AST); }

static Status report_body(void *user)
{
    ReportCall *c = user;
    Unit *u = c->unit->unit;
    bool json = c->how->json;
    Status st = ST_OK;
    Buf b = buf_new(u->ctx->scratch);
    switch (c->what) {
    case VWN_REPORT_CHECK: report_check(&b, u, json); break;
    case VWN_REPORT_PARAMS: report_params(&b, u, BY_SUMMARY, json); break;
    case VWN_REPORT_PARAMS_BY_LAYER: report_params(&b, u, BY_LAYER, json); break;
    case VWN_REPORT_PARAMS_BY_NODE: report_params(&b, u, BY_NODE, json); break;
    case VWN_REPORT_PARAMS_BY_GROUP: report_params(&b, u, BY_GROUP, json); break;
    case VWN_REPORT_PARAMS_BY_TENSOR: report_params(&b, u, BY_TENSOR, json); break;
    case VWN_REPORT_LOSSES: report_losses(&b, u, json); break;
    case VWN_REPORT_COST: cost_body(&b, c); break;
    case VWN_REPORT_RESOLVED: buf_puts(&b, unit_resolved_file(u, u->ctx->scratch)); break;
    case VWN_REPORT_GROWTH: st = growth_body(&b, c); break;
    case VWN_REPORT_GRAPH: report_graph(&b, u, c->how->program, json); break;
    case VWN_REPORT_ORIGINS: report_origins(&b, u, json); break;
    case VWN_REPORT_AST:
    case VWN_REPORT_TENSOR:
    case VWN_REPORT_GRADIENT:
    case VWN_REPORT_SIMPLE:
    case VWN_REPORT_FUSE:
    case VWN_REPORT_KERNEL:
    case VWN_REPORT_THREADS:
    case VWN_REPORT_C:
    case VWN_REPORT_CUDA:
    case VWN_REPORT_PLAN:
    case VWN_REPORT_PASSES:
    case VWN_REPORT_PASS:
        report_stage(&b, u, stage_of(c->what),
                     &(StageOptions){c->how->program, c->how->pass, c->how->gpu, c->how->batch_seqs});
        break;
    }
    put(c->out, &b);
    return st;
}

vwn_status vwn_write_report(vwn_unit *unit, vwn_report what, const vwn_report_options *how, const vwn_writer *out)
{
    vwn_report_options plain = {0};
    ReportCall c = {.unit = unit, .what = what, .how = how ? how : &plain, .out = out};
    if (!unit->unit) /* vwn_message still says why */
        return VWN_INPUT;
    start_beside(&c);
    vwn_status st = api_run(unit->context, report_body, &c);
    ahead_close(c.beside.ahead);
    return st;
}

/* ---- single files and graphs ---- */

typedef struct FileCall {
    vwn_context *context;
    const vwn_file_options *file;
    vwn_report what;
    const vwn_report_options *how;
    const vwn_writer *out;
} FileCall;

/* The number of the source text that the options name; it is read unless its text is given. */
static uint32_t open_source(Ctx *ctx, const vwn_file_options *file)
{
    bool standard = strcmp(file->path, "-") == 0;
    const char *reason = standard ? NULL : file_not_vwn(file->path, false);
    if (reason)
        ctx_raise(ctx, ST_INPUT, "cannot read %s: %s", file->path, reason);
    if (file->text || standard)
        return source_add(ctx, standard ? "<stdin>" : file->path, file->text ? file->text : "", file->text_length);
    FILE *f = file_stream(file->path, "r", &reason);
    if (!f)
        ctx_raise(ctx, ST_INPUT, "cannot read %s: %s", file->path, reason);
    char part[8192];
    size_t n;
    CtxGuard guard;
    if (!CTX_TRY(ctx, &guard)) {
        fclose(f);
        ctx_raise(ctx, ctx->raised, "cannot read %s: out of memory", file->path);
    }
    Buf b = buf_new(ctx->scratch);
    while ((n = fread(part, 1, sizeof part, f)) > 0)
        buf_put(&b, part, n);
    bool bad = ferror(f);
    int why = errno;
    ctx_leave(ctx, &guard);
    fclose(f);
    if (bad)
        ctx_raise(ctx, ST_INPUT, "cannot read %s: %s", file->path, strerror(why));
    return source_add(ctx, file->path, b.s, b.n);
}

static Status format_body(void *user)
{
    FileCall *c = user;
    Ctx *ctx = c->context->ctx;
    uint32_t source = open_source(ctx, c->file);
    size_t before = diag_errors(ctx);
    const Ast *ast = vwn_parse(ctx, source);
    if (diag_errors(ctx) > before)
        return ST_INPUT;
    Buf b = buf_new(ctx->scratch);
    vwn_format(ctx, source, ast, &b);
    put(c->out, &b);
    return ST_OK;
}

vwn_status vwn_format_file(vwn_context *context, const vwn_file_options *file, const vwn_writer *out)
{
    FileCall c = {.context = context, .file = file, .out = out};
    return api_run(context, format_body, &c);
}

static Status kernels_body(FileCall *c, uint32_t source)
{
    Ctx *ctx = c->context->ctx;
    if (c->what != VWN_REPORT_KERNEL && c->what != VWN_REPORT_C)
        ctx_raise(ctx, ST_USAGE, "%s holds kernels: `--stage` can be kernel or c", c->file->path);
    if (c->how->batch_seqs > 0 || c->how->positions > 0)
        ctx_raise(ctx, ST_USAGE,
                  "the kernels of %s have their sizes: give neither `--batch` "
                  "nor `--positions`",
                  c->file->path);
    const KernelTexts *kernels = kernels_read(ctx, ctx->scratch, source);
    if (!kernels)
        return ST_INPUT;
    for (size_t i = 0; c->what == VWN_REPORT_C && i < kernels->kernel.n; i++)
        if (kernels->kernel.v[i].kernel && kernels->kernel.v[i].kernel->device.mapping.row_threads)
            ctx_raise(ctx, ST_USAGE, "%s holds kernels for the threads of a GPU: `--stage` can be kernel",
                      c->file->path);
    Buf b = buf_new(ctx->scratch);
    report_kernels_stage(&b, ctx, kernels, stage_of(c->what));
    put(c->out, &b);
    return ST_OK;
}

static Status graph_body(void *user)
{
    FileCall *c = user;
    Ctx *ctx = c->context->ctx;
    if (c->what < VWN_REPORT_TENSOR)
        ctx_raise(ctx, ST_USAGE, "a graph has no such stage");
    uint32_t source = open_source(ctx, c->file);
    if (kernels_are(ctx, source))
        return kernels_body(c, source);
    Graph *g = graph_read(ctx, ctx->scratch, source);
    if (!g)
        return ST_INPUT;
    graph_verify(g);
    if (c->what >= VWN_REPORT_GRADIENT)
        g = report_add_gradient(g);
    Buf b = buf_new(ctx->scratch);
    report_graph_stage(&b, ctx, g, stage_of(c->what), &(StageOptions){.pass = c->how->pass, .gpu = c->how->gpu},
                       c->how->batch_seqs > 0 ? c->how->batch_seqs : 1, c->how->positions > 0 ? c->how->positions : 1);
    put(c->out, &b);
    return ST_OK;
}

vwn_status vwn_graph_report(vwn_context *context, const vwn_file_options *graph, vwn_report what,
                            const vwn_report_options *how, const vwn_writer *out)
{
    vwn_report_options plain = {0};
    FileCall c = {.context = context, .file = graph, .what = what, .how = how ? how : &plain, .out = out};
    return api_run(context, graph_body, &c);
}

/* ---- texts ---- */

typedef struct TextCall {
    vwn_context *context;
    const char *name;
    bool json, measure;
    const vwn_writer *out;
} TextCall;

static bool same_letters(const char *a, const char *b) /* E0201 and e0201 */
{
    for (; *a && *b; a++, b++)
        if (toupper((unsigned char)*a) != toupper((unsigned char)*b))
            return false;
    return *a == *b;
}

static Status explain_body(void *user)
{
    TextCall *c = user;
    Ctx *ctx = c->context->ctx;
    Buf b = buf_new(ctx->scratch);
    Table t = {.arena = ctx->scratch, .columns = 2};
    VEC(Name) codes = {0};
    for (size_t i = 0; i < diag_code_count(); i++) {
        const char *code = diag_code_at(i), *title, *text = diag_explain(code, &title);
        size_t lint = code[0] == 'W' ? strcspn(title, ":") : 0;
        vec_push(ctx->scratch, &codes, name_str(ctx, code));
        if (!c->name) {
            table_text(&t, code);
            table_text(&t, title);
        } else if (same_letters(code, c->name) || (lint && strlen(c->name) == lint && !strncmp(title, c->name, lint))) {
            buf_printf(&b, "%s: %s\n\n%s", code, title, text);
            put(c->out, &b);
            return ST_OK;
        }
    }
    if (c->name) {
        Name near = nearest_name(name_str(ctx, c->name), codes.v, codes.n);
        ctx_raise(ctx, ST_USAGE, "there is no code `%s`; %s%s%s", c->name,
                  near ? "did you mean `" : "`vwn explain` lists all", near ? near : "", near ? "`?" : "");
    }
    table_print(&b, &t);
    put(c->out, &b);
    return ST_OK;
}

vwn_status vwn_explain(vwn_context *context, const char *code, const vwn_writer *out)
{
    TextCall c = {.context = context, .name = code, .out = out};
    return api_run(context, explain_body, &c);
}

/* What has documentation here and another name in other programs. */
static Name called_elsewhere(Ctx *ctx, const char *name)
{
    Buf unused = buf_new(ctx->scratch);
    Name none;
    for (size_t i = 0; i < foreign_count(); i++) {
        const Foreign *f = foreign_at(i);
        if (f->kind <= FOREIGN_NODE && f->ours && !strcmp(f->name, name) && doc_write(ctx, f->ours, &unused, &none))
            return name_str(ctx, f->ours);
    }
    return NULL;
}

static Status doc_body(void *user)
{
    TextCall *c = user;
    Ctx *ctx = c->context->ctx;
    Buf b = buf_new(ctx->scratch);
    Name near;
    if (!doc_write(ctx, c->name, &b, &near)) {
        const char *dot = strrchr(c->name, '.'), *last = dot ? dot + 1 : c->name; /* nn.Linear */
        Name node = dot ? name_of(ctx, c->name, (size_t)(dot - c->name)) : NULL, unused;
        if (node && doc_write(ctx, node, &b, &unused) && doc_write(ctx, last, &b, &unused)) /* adamw.lr */
            near = name_str(ctx, last);
        if (!near)
            near = called_elsewhere(ctx, last);
        ctx_raise(ctx, ST_USAGE, "nothing is called `%s`; %s%s%s", c->name,
                  near ? "did you mean `" : "`vwn doc` lists all names, and `vwn doc --search WORD` finds topics",
                  near ? near : "", near ? "`?" : "");
    }
    put(c->out, &b);
    return ST_OK;
}

vwn_status vwn_doc(vwn_context *context, const char *name, const vwn_writer *out)
{
    TextCall c = {.context = context, .name = name, .out = out};
    return api_run(context, doc_body, &c);
}

static Status passes_body(void *user)
{
    TextCall *c = user;
    Buf b = buf_new(c->context->ctx->scratch);
    report_passes(&b);
    put(c->out, &b);
    return ST_OK;
}

vwn_status vwn_passes(vwn_context *context, const vwn_writer *out)
{
    TextCall c = {.context = context, .out = out};
    return api_run(context, passes_body, &c);
}

static Status search_body(void *user)
{
    TextCall *c = user;
    Ctx *ctx = c->context->ctx;
    Buf b = buf_new(ctx->scratch);
    if (!c->name[strspn(c->name, " ")] || !doc_search(ctx, c->name, &b))
        ctx_raise(ctx, ST_USAGE, "nothing is about `%s`; `vwn doc` lists all names", c->name);
    put(c->out, &b);
    return ST_OK;
}

vwn_status vwn_doc_search(vwn_context *context, const char *word, const vwn_writer *out)
{
    TextCall c = {.context = context, .name = word, .out = out};
    return api_run(context, search_body, &c);
}

/* "key: value" lines as one JSON object. */
static void json_of_lines(Buf *out, const char *lines)
{
    buf_puts(out, "{\"v\":1,\"event\":\"doctor\"");
    while (*lines) {
        size_t n = strcspn(lines, "\n"), key = strcspn(lines, ":");
        if (key < n) {
            size_t value = key + 1 + strspn(lines + key + 1, " ");
            buf_putc(out, ',');
            buf_json_string(out, lines, key);
            buf_putc(out, ':');
            buf_json_string(out, lines + value, n > value ? n - value : 0);
        }
        lines += n + (lines[n] == '\n');
    }
    buf_puts(out, "}\n");
}

static void describe_rates(const TextCall *c, Buf *out)
{
    char why[512];
    Rates r;
    if (c->measure) {
        bool kept = rates_can_keep(c->context, why);
        if (kept) {
            rates_measure(c->context, &r);
            kept = rates_keep(c->context, &r, why);
        }
        if (!kept)
            ctx_raise(c->context->ctx, ST_ENVIRONMENT, "the rates could not be kept: %s", why);
    }
    if (rates_find(c->context, &r, why))
        rates_describe(&r, out);
    else
        buf_printf(out, "rates: %s\n", why);
}

static Status doctor_body(void *user)
{
    TextCall *c = user;
    Ctx *ctx = c->context->ctx;
    const vwn_options *o = &c->context->options;
    const BackendOptions how = {.threads = o->threads, .cache_dir = o->cache_dir, .compiler = o->compiler};
    Buf lines = buf_new(ctx->scratch), json = buf_new(ctx->scratch);
    buf_printf(&lines, "vwn: %s (%s)\n", vwn_version(), vwn_build_id());
    backend_describe(ctx, &how, &lines);
    library_describe(&lines);
    buf_printf(&lines, "library: %zu files\n", std_count());
    describe_rates(c, &lines);
    if (c->json)
        json_of_lines(&json, lines.s);
    put(c->out, c->json ? &json : &lines);
    return ST_OK;
}

vwn_status vwn_doctor(vwn_context *context, bool json, bool measure, const vwn_writer *out)
{
    TextCall c = {.context = context, .json = json, .measure = measure, .out = out};
    return api_run(context, doctor_body, &c);
}

/* ---- a language server ---- */

vwn_server *vwn_server_open(const vwn_server_options *options) { return server_open(options); }

bool vwn_server_take(vwn_server *server, const char *bytes, size_t n, const vwn_writer *out)
{
    return server_take(server, bytes, n, out);
}

vwn_server_counts vwn_server_counted(const vwn_server *server) { return server->counts; }

void vwn_server_close(vwn_server *server) { server_close(server); }
