/* train_open.c - everything before the first step: data, run directory, programs, initial or
 * resumed state.
 *
 * In:  a checked file and vwn_train_options.   Out: a Trainer that only has to step, or a
 * raise.
 * The one idea: nothing that was there before is touched until everything else has worked: the
 * data is open, the model compiled, the memory there. Only then does --overwrite remove a run.
 */
#define _DEFAULT_SOURCE
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "compiler/file/check_unit.h"
#include "compiler/model/decode.h"
#include "compiler/model/parts.h"
#include "forecast.h"
#include "runtime/checkpoint/history.h"
#include "trainer.h"

/* ---- data and length ---- */

static Data *open_data(Trainer *tr, const DataSpec *spec, Tokenizer *known)
{
    const Train *t = tr->train;
    DataOptions how = {
        .spec = spec, .tokenizer = &t->tokenizer, .known = known, .context = t->context, .model = tr->model};
    return data_open(&tr->session, &how);
}

static void open_all_data(Trainer *tr)
{
    const Train *t = tr->train;
    if (!tr->data)
        tr->data = open_data(tr, &t->data, NULL);
    split_need_window(&tr->session, &tr->data->train);
    if (t->eval_every <= 0)
        return;
    if (t->eval_data.kind != DATA_NONE) {
        tr->eval_data = open_data(tr, &t->eval_data, tr->data->tokenizer);
        if (tr->eval_data->arrays)
            tr->eval_data->train.name = "evaluation part";
        tr->eval_split = &tr->eval_data->train;
    } else if (tr->data->val.order.tokens) {
        tr->eval_split = &tr->data->val;
    } else {
        ctx_raise(tr->ctx, ST_INPUT,
                  "`eval` has nothing to evaluate on: give `data` a validation "
                  "part (`val = 10%%`), or `eval` its own `data`");
    }
    split_need_window(&tr->session, tr->eval_split);
}

int64_t train_length(const Trainer *tr, const Train *t)
{
    return t->length_steps >= 0 ? t->length_steps
                                : order_steps(t->length_epochs, tr->data->train.order.windows, t->batch_seqs);
}

static void resolve_length(Trainer *tr)
{
    const Train *t = tr->train;
    if (t->context <= 0 || t->batch_seqs <= 0)
        vwn_bug(tr->ctx, "a `train` without context or batch");
    tr->lanes = lanes_of(t->lanes);
    train_share_lanes(tr);
    tr->micro = t->micro_seqs > 0 ? t->micro_seqs : t->batch_seqs;
    if (t->batch_seqs % (tr->micro * tr->lanes.all))
        vwn_bug(tr->ctx, "the micro-batch does not divide a lane of the batch");
    tr->parts = t->batch_seqs / tr->micro;
    tr->steps = progress_end(&tr->now, train_length(tr, t));
    tr->stop_at = tr->steps;
    if (tr->how->until_steps > 0 && tr->how->until_steps < tr->steps)
        tr->stop_at = tr->how->until_steps;
}

/* ---- run-time expressions ---- */

static void set_vars(Trainer *tr, const Progress *p)
{
    double per_epoch = (double)tr->data->train.order.windows * (double)tr->train->context;
    progress_vars(p, (double)(tr->steps - p->from_step), per_epoch, tr->vars);
}

void train_set_vars(Trainer *tr, int64_t ahead)
{
    Progress at = tr->now;
    at.step += ahead;
    at.tokens += ahead * tr->train->batch_seqs * tr->train->context;
    Progress skipped = at; /* if the one step that is ahead was */
    if (ahead && at.loss_scale > 0) {
        loss_scale_after(&at.loss_scale, &at.good_steps, true);
        loss_scale_after(&skipped.loss_scale, &skipped.good_steps, false);
        skipped.skipped++;
    }
    set_vars(tr, &at);
    progress_skipped(&skipped, tr->vars);
}

/* Numbers of the last step: that of an evaluation is known before the next one. In fp16 also what follows from whether that
 * step was skipped. */
static bool is_of_step(const Train *t, HostVar var)
{
    return var == HV_TRAIN_LOSS || var == HV_GRAD_NORM ||
           (half_info(t->compute)->scaled && (var == HV_UPDATES || var == HV_LOSS_SCALE));
}

static bool is_of_length(const Train *t, HostVar var)
{
    (void)t;
    return var == HV_LENGTH || var == HV_PROGRESS;
}

typedef bool (*IsOf)(const Train *t, HostVar var);

static bool reads(const Train *t, const HostExpr *e, IsOf of)
{
    return e && ((e->op == HO_VAR && of(t, e->var)) || reads(t, e->a, of) || reads(t, e->b, of) || reads(t, e->c, of));
}

/* Whether anything that the run computes as it goes, up to its next growth step, reads such a quantity. */
static bool run_reads(const Model *m, const Train *t, const GrowStep *next, IsOf of)
{
    const Optimizer *o = &t->optimizer;
    bool any = reads(t, o->lr, of) || (o->second && reads(t, o->second->lr, of)) || reads(t, t->average, of);
    for (size_t i = 0; i < m->graph->host.n; i++)
        any |= reads(t, m->graph->host.v[i], of);
    for (size_t i = 0; t->births.old && i < 2 * t->births.n; i++) {
        const PartRate *r = i % 2 ? &t->births.old[i / 2] : &t->births.fresh[i / 2];
        any |= r->said && (reads(t, r->scale, of) || reads(t, r->warmup, of));
    }
    const Plateau *window = next ? next->plateau : NULL;
    any |= next && reads(t, next->when, of);
    return any || (window && (reads(t, window->value, of) || reads(t, window->window, of)));
}

bool train_runs_ahead(const Trainer *tr, const Model *m, const Train *t, const GrowStep *next)
{
    const Backend *b = tr->session.backend;
    return b && b->queues && !tr->driver.driven && !run_reads(m, t, next, is_of_step);
}

bool train_reads_length(const Trainer *tr)
{
    return run_reads(tr->model, tr->train, tr->unit->grow.n ? &tr->unit->grow.v[0] : NULL, is_of_length);
}

/* The values of what an expression reads, as "step = 8, train.loss = 2.5". */
static void list_values(Buf *out, const HostExpr *e, const double *vars, bool seen[HV_COUNT])
{
    if (!e)
        return;
    if (e->op == HO_VAR && !seen[e->var]) {
        buf_printf(out, "%s%s = ", out->n ? ", " : "", host_var_name(e->var));
        host_print_number(out, vars[e->var]);
        seen[e->var] = true;
    }
    list_values(out, e->a, vars, seen);
    list_values(out, e->b, vars, seen);
    list_values(out, e->c, vars, seen);
}

/* A number that the file gives as an expression of the run. */
typedef struct Running {
    const HostExpr *e;
    Span span;
    const char *what, *range;
    double most;
} Running;

/* Its value in a step under tr->vars. One out of range is said at its place in the file, before
 * anything is applied. */
static double value_of(Trainer *tr, const Running *r, int64_t step)
{
    Arena *a = tr->session.arena;
    double x = host_eval(r->e, tr->vars);
    if (isfinite(x) && x >= 0 && x <= r->most)
        return x;
    Buf value = buf_new(a), text = buf_new(a), read = buf_new(a);
    host_print_number(&value, x);
    list_values(&read, r->e, tr->vars, (bool[HV_COUNT]){false});
    if (r->span.file) {
        size_t n;
        const char *file = source_text(tr->ctx, r->span.file, &n);
        buf_put(&text, file + r->span.lo, r->span.hi - r->span.lo);
    } else {
        host_print(&text, r->e);
    }
    Diag *d = diag_error(tr->ctx, "E0208", r->span, value.s, "step %lld: the %s `%s` is %s", (long long)step + 1,
                         r->what, text.s, value.s);
    if (read.n)
        diag_note(tr->ctx, d, "with %s", read.s);
    diag_note(tr->ctx, d, "%s; the weights were not changed", r->range);
    ctx_raise(tr->ctx, ST_INPUT, NULL);
}

static Running rate_of(const Optimizer *o)
{
    return (Running){o->lr, o->lr_span, "learning rate", "a rate is a finite number from 0 on", INFINITY};
}

static Running decay_of(const Train *t)
{
    return (Running){t->average, t->average_span, "decay of the average", "a decay is a number from 0 to 1", 1};
}

/* What growth steps say of rates; none where they say a constant. */
static Running part_of(const PartRate *r)
{
    double x;
    bool runs = r->said && !host_is_const(r->scale, &x);
    return (Running){runs ? r->scale : NULL, r->scale_span, "factor of the rate",
                     "a factor is a finite number from 0 on", INFINITY};
}

double train_rate(Trainer *tr, int64_t step)
{
    const Optimizer *o = &tr->train->optimizer;
    const Running rate = rate_of(o), decay = decay_of(tr->train);
    if (o->second) {
        const Running second = rate_of(o->second);
        value_of(tr, &second, step);
    }
    if (decay.e)
        value_of(tr, &decay, step);
    const GrownParts *births = &tr->train->births;
    for (size_t i = 0; births->old && i < 2 * births->n; i++) {
        const Running part = part_of(i % 2 ? &births->old[i / 2] : &births->fresh[i / 2]);
        if (part.e)
            value_of(tr, &part, step);
    }
    return value_of(tr, &rate, step);
}

/* Under what a number is looked for before a run: steps and tokens are counted on from a progress. */
typedef struct Coming {
    Trainer *tr;
    Progress from;
} Coming;
enum { EVALUATIONS = 1000000 };

static void vars_at(void *user, int64_t step, double vars[HV_COUNT])
{
    const Coming *a = user;
    Progress at = a->from;
    at.step = step;
    at.tokens += (step - a->from.step) * a->tr->train->batch_seqs * a->tr->train->context;
    set_vars(a->tr, &at);
    memmove(vars, a->tr->vars, HV_COUNT * sizeof *vars);
}

/* What no loss decides is known for every step: a bad rate is said before the first. */
static void refuse_values(Trainer *tr, const Running *r)
{
    Coming ahead = {tr, tr->now};
    Forecast s = {.e = r->e, .vars_at = vars_at, .user = &ahead, .most = r->most, .left = EVALUATIONS};
    if (!r->e || reads_losses(r->e))
        return;
    int64_t step = forecast_outside(&s, tr->now.step, tr->stop_at);
    if (step >= tr->stop_at)
        return;
    vars_at(&ahead, step, tr->vars);
    value_of(tr, r, step);
}

/* ---- growth ---- */

const GrowStep *train_growth_due(Trainer *tr, int64_t ahead)
{
    const GrowStep *g = tr->unit->grow.n ? &tr->unit->grow.v[0] : NULL;
    if (tr->now.step + ahead >= tr->stop_at && tr->stop_at < tr->steps)
        return NULL; /* stopped before the end, as was asked for */
    train_set_vars(tr, ahead);
    bool due =
        g && (tr->now.due || (g->plateau ? tr->now.plateau.over : !g->when || host_eval(g->when, tr->vars) != 0));
    return due ? g : NULL;
}

static _Noreturn void refuse_step(Trainer *tr, const GrowStep *g)
{
    uint32_t line = g->refused_at.file ? source_position(tr->ctx, g->refused_at.file, g->refused_at.lo).line : 0;
    ctx_raise(tr->ctx, ST_INPUT,
              "%s:%u: the growth step `%s` has %s, which this version of vwn reads and cannot carry out: "
              "switch it off with `/-`, or stop before the step with `--until`",
              tr->unit->path, line, g->name, g->refused);
}

/* A growth step may come into force during this run that holds what no run carries out: said before the first step. */
static void refuse_growth(Trainer *tr)
{
    for (size_t i = 0; i < tr->unit->grow.n; i++) {
        const GrowStep *g = &tr->unit->grow.v[i];
        if (!g->refused)
            continue;
        Coming ahead = {tr, tr->now};
        Forecast s = {.e = g->when, .vars_at = vars_at, .user = &ahead, .left = EVALUATIONS};
        ahead.from.step = ahead.from.tokens = 0;
        int64_t end = tr->stop_at + (tr->stop_at == tr->steps); /* triggers are tested at the end, too */
        if (g->when && !reads_losses(g->when) && forecast_outside(&s, 0, end) >= end)
            continue;
        refuse_step(tr, g);
    }
}

/* The file again, with other settings, after its first `grown` growth steps. NULL: it has errors then. */
Unit *train_check_again(Trainer *tr, const char *const *set, size_t n_set, size_t grown)
{
    size_t n, before = diag_count(tr->ctx), errors = diag_errors(tr->ctx);
    const Unit *u = tr->file;
    const char *text = u->ast ? source_text(tr->ctx, u->ast->span.file, &n) : NULL;
    CheckOptions how = {.path = u->path, .folder = u->folder, .set = set, .n_set = n_set, .grown = grown};
    if (text && !strcmp(u->path, "-")) {
        how.text = text;
        how.text_length = n;
    }
    Unit *again = tr->hooks->check(tr->ctx, &how);
    bool fine = diag_errors(tr->ctx) == errors;
    diag_truncate(tr->ctx, before);
    return fine ? again : NULL;
}

/* The first n growth steps of the file, as RunMeta.grown. */
static const char *grown_text(Trainer *tr, size_t n)
{
    Buf b = buf_new(tr->session.arena);
    for (size_t i = 0; i < n; i++)
        buf_printf(&b, "%s %.0f ", tr->file->grow.v[i].name, tr->growth.born[i]);
    return b.s;
}

/* How many growth steps the checkpoint has behind it; sets tr->growth.born, which has room for one more. */
size_t train_steps_behind(Trainer *tr)
{
    const char *then = tr->from->meta.grown, *at = then;
    size_t n = 0, most = tr->file->grow.n;
    double *born = NEW_ARRAY(tr->session.arena, double, most + 1);
    for (char *end; *at && n < most; at = end + (*end == ' ')) {
        Name name = tr->file->grow.v[n].name;
        size_t length = strlen(name);
        if (strncmp(at, name, length) || at[length] != ' ')
            break;
        born[n++] = strtod(at + length, &end);
    }
    tr->growth.born = born;
    if (*at) {
        const char *is = n < most ? arena_printf(tr->session.arena, "; that is `%s`", tr->file->grow.v[n].name) : "";
        ctx_raise(tr->ctx, ST_INPUT,
                  "%s has grown by the step `%.*s`, which is not step %zu of the file%s: a run goes on with the growth "
                  "steps that it was grown by, in the order of the file",
                  tr->from->file.path, (int)strcspn(at, " "), at, n + 1, is);
    }
    born[n] = (double)(tr->from->progress.step - tr->from->progress.skipped);
    return n;
}

/* ---- the run directory ---- */

const char *train_run_path(Trainer *tr)
{
    return tr->how->run ? tr->how->run : arena_printf(tr->session.arena, "runs/%s", tr->model->name);
}

/* Its events have all that a run writes: the last step, and the loss behind it where it is measured. */
static bool has_ended(Trainer *tr, const char *path)
{
    Session *s = &tr->session;
    double end = history_read(s, path, "loss").end.x[BY_STEP];
    if (end < (double)tr->steps || !tr->eval_split || tr->train->eval_every <= 0)
        return end >= (double)tr->steps;
    History eval = history_read(s, path, "eval/eval_loss");
    return eval.point.n && eval.point.v[eval.point.n - 1].x[BY_STEP] >= (double)tr->steps;
}

/* The newest checkpoint that is whole; a damaged one is passed over with a warning. */
static void find_checkpoint(Trainer *tr, const char *path)
{
    Session *s = &tr->session;
    StepList l = run_checkpoints(s, path);
    char why[WHY];
    for (size_t i = l.n; i-- > 0 && !tr->from;) {
        Checkpoint *c = NEW(s->arena, Checkpoint);
        const char *file = arena_printf(s->arena, "%s/ckpt/%s", path, run_checkpoint_name(s->arena, l.step[i]));
        if (checkpoint_open(s, file, c, why))
            tr->from = c;
        else if (i == 0)
            ctx_raise(tr->ctx, ST_ENVIRONMENT, "no checkpoint of `%s` can be read: %s", path, why);
        else
            train_event(tr, VWN_EVENT_WARNING, "a damaged checkpoint is passed over: %s", why);
    }
    if (!tr->from && !tr->train->checkpoint_keep && has_ended(tr, path)) {
        tr->over = true;
        train_event(tr, VWN_EVENT_NOTE, "`%s` has reached its end, and keeps no checkpoint (`keep = 0`)", path);
        return;
    }
    if (!tr->from && tr->train->checkpoint_keep && run_had_checkpoint(s, path))
        ctx_raise(tr->ctx, ST_ENVIRONMENT,
                  "the checkpoints of `%s` are gone: put them back into %s/ckpt, or start anew: "
                  "`vwn train FILE --run %s --overwrite`",
                  path, path, path);
    if (!tr->from)
        train_event(tr, VWN_EVENT_WARNING, "`%s` has no checkpoint yet: starting from the beginning", path);
}

/* Of what rank 0 goes on from. */
static const char *const run_is_over = "over";

static void follow_run(Trainer *tr)
{
    char why[WHY];
    const char *told = train_told(tr, NULL);
    tr->over = told && !strcmp(told, run_is_over);
    if (!told || tr->over)
        return;
    tr->from = NEW(tr->session.arena, Checkpoint);
    if (!checkpoint_open(&tr->session, told, tr->from, why))
        ctx_raise(tr->ctx, ST_ENVIRONMENT, "%s, from which rank 0 goes on, cannot be read here: %s", told, why);
}

static void open_run(Trainer *tr)
{
    Session *s = &tr->session;
    const char *path = train_run_path(tr);
    if (!train_writes(tr)) {
        follow_run(tr);
        return;
    }
    bool there = run_exists(s, path);
    if (tr->how->resume && !there && !tr->how->restarted)
        ctx_raise(tr->ctx, ST_USAGE, "there is no run in `%s` to resume", path);
    if (!there && !tr->how->dry_run && run_is_sweep(s, path))
        ctx_raise(tr->ctx, ST_USAGE, "`%s` holds a sweep: choose another directory with --run NAME", path);
    if (!tr->how->dry_run)
        tr->run = run_open(s, path);
    if (tr->run && tr->growth.begins)
        tr->record = record_begin(s); /* git is asked while kernels are compiled */
    if (there && !tr->how->resume && !tr->how->overwrite && !tr->how->dry_run) {
        StepList l = run_checkpoints(s, path);
        ctx_raise(tr->ctx, ST_USAGE,
                  "`%s` already holds a run%s: go on with --resume, start anew with "
                  "--overwrite, or choose another directory with --run NAME",
                  path, l.n ? arena_printf(s->arena, " (at step %lld)", (long long)l.step[l.n - 1]) : "");
    }
    if (tr->how->resume)
        find_checkpoint(tr, path);
    train_told(tr, tr->over ? run_is_over : tr->from ? tr->from->file.path : NULL);
}

/* {"D":"384"} */
static const char *lets_text(Trainer *tr)
{
    Arena *a = tr->session.arena;
    Buf b = buf_new(a);
    buf_putc(&b, '{');
    for (size_t i = 0; i < tr->unit->let.n; i++) {
        const LetInfo *l = &tr->unit->let.v[i];
        if (i)
            buf_putc(&b, ',');
        buf_json_string(&b, l->name, strlen(l->name));
        buf_putc(&b, ':');
        buf_json_string(&b, l->text, strlen(l->text));
    }
    buf_putc(&b, '}');
    return b.s;
}

static void put_field(Buf *b, const char *before, const char *text)
{
    buf_puts(b, before);
    buf_json_string(b, text ? text : "", text ? strlen(text) : 0);
}

static void write_run_files(Trainer *tr)
{
    const Unit *u = tr->unit;
    Buf b = buf_new(tr->session.arena);
    buf_puts(&b, "{\"v\": 1,\n \"set\": [");
    for (size_t i = 0; i < u->n_set; i++)
        put_field(&b, i ? ", " : "", u->set[i]);
    buf_puts(&b, "],\n \"lets\": [");
    for (size_t i = 0; i < u->let.n; i++) {
        const LetInfo *l = &u->let.v[i];
        put_field(&b, i ? ",\n  {\"name\": " : "\n  {\"name\": ", l->name);
        put_field(&b, ", \"value\": ", l->text);
        put_field(&b, ", \"origin\": ", l->origin);
        buf_puts(&b, "}");
    }
    buf_puts(&b, "\n ]}\n");
    run_write_file(&tr->session, tr->run, "origins.json", b.s, b.n);
    run_write_file(&tr->session, tr->run, RESOLVED_FILE, tr->meta.text, strlen(tr->meta.text));
    if (tr->file->grow.n) {
        const char *text = u == tr->file ? tr->meta.text : tr->hooks->resolved_text(tr->file, tr->session.arena);
        run_write_file(&tr->session, tr->run, GROWS_FILE, text, strlen(text));
    } else {
        run_drop_file(&tr->session, tr->run, GROWS_FILE);
    }
}

static void describe_run(Trainer *tr)
{
    Arena *a = tr->session.arena;
    Buf data = buf_new(a);
    data_fingerprint(tr->data, &data);
    tr->meta = (RunMeta){.version = tr->hooks->version,
                         .model = tr->model->name,
                         .text = tr->hooks->resolved_text(tr->unit, a),
                         .lets = lets_text(tr),
                         .folder = tr->train->data.folder ? tr->train->data.folder : "",
                         .data = data.s,
                         .grown = grown_text(tr, tr->unit->grown),
                         .tokenizer = tr->data->tokenizer,
                         .seed = tr->train->seed};
}

/* ---- programs and state ---- */

/* NULL: the model has nothing for it to count. */
static Program *build(Trainer *tr, ProgramKind kind, int level)
{
    Session *s = &tr->session;
    const ProgramRow *row = program_row(kind);
    Graph *g = program_make(kind, tr->model, tr->train, level, s->arena);
    ProgramOptions how = {.name = row->name,
                          .B = tr->micro,
                          .T = tr->train->context,
                          .share_arena = true,
                          .half = row->float32 ? HALF_NONE : session_half(s, tr->train),
                          .kernel_cache = tr->kernel_cache};
    if (!g)
        return NULL;
    if (kind == PROGRAM_UPDATE)
        program_write_copies(s->store, g);
    return session_program(s, g, &how, &tr->build);
}

static Program **program_slot(TrainPrograms *p, ProgramKind kind, int level)
{
    switch (kind) {
    case PROGRAM_TRAIN: return &p->fresh;
    case PROGRAM_ACCUMULATE: return &p->more;
    case PROGRAM_KEEP: return &p->keep[level];
    case PROGRAM_JOIN: return &p->join[level];
    case PROGRAM_SQUARES: return &p->squares;
    case PROGRAM_UPDATE: return &p->update;
    case PROGRAM_EVAL: return &p->eval;
    case PROGRAM_COUNT: return &p->count;
    case PROGRAM_EVAL_COUNT: return &p->eval_count;
    case PROGRAM_PREDICT:
    case PROGRAM_KINDS: break;
    }
    return NULL;
}

/* Room for the numbers of the steps that are queued at a time. */
static void open_queue(Trainer *tr)
{
    Session *s = &tr->session;
    size_t n = results_size(tr->program.update);
    tr->out.updated = NEW_ARRAY(s->arena, double, n + 1);
    tr->out.norm = result_index(tr->program.update, "grad_norm");
    tr->out.halt = result_index(tr->program.update, "halt");
    if (tr->queue.decides)
        tr->queue.known = store_find(s->store, EXT_STEP, name_str(tr->ctx, "known"));
    for (int i = 0; i < (tr->queue.decides ? STEPS_QUEUED : 1); i++)
        tr->queue.step[i].readback = readback_new(s, (size_t)tr->parts * results_size(tr->program.fresh) + n);
    if (!tr->queue.decides)
        tr->queue.step[1] = tr->queue.step[0];
}

/* What is computed in what, where the file asks for more than float32. */
static void report_precision(Trainer *tr)
{
    const Train *t = tr->train;
    const Backend *b = tr->session.backend;
    const Half half = session_half(&tr->session, t);
    bool everywhere = b && b->target->half_kernels;
    const char *type = half_word(t->compute), *rest = b ? "float32" : "float64";
    HalfCount n = {0};
    if (!t->compute)
        return;
    if (half)
        n = plan_count_half(program_graph(tr->program.fresh), half);
    const char *between = everywhere && n.values
                              ? "what lies between kernels is of that type, too, and all else is computed in "
                              : "all else is computed in ";
    Buf said = buf_new(tr->session.arena);
    if (!half)
        buf_printf(&said, "products are computed in float32: %s", b->no_bf16);
    else if (!n.values)
        buf_printf(&said,
                   "none of the %zu matrix products of a step has %d rows, columns and terms, so nothing is rounded to "
                   "%s, and all is "
                   "computed in %s",
                   n.products, PLAN_HALF_LEAST, type, rest);
    else
        buf_printf(&said, "operands of %zu of the %zu matrix products of a step are rounded to %s and %s; %s%s",
                   n.rounded, n.products, type,
                   !b                                    ? "multiplied in float64"
                   : !target_multiplies(b->target, half) ? "multiplied in float32"
                                                         : "their products added in float32",
                   between, rest);
    if (half_info(t->compute)->scaled)
        buf_printf(&said, "; the loss is scaled, now by %.17g", tr->now.loss_scale);
    train_event(tr, VWN_EVENT_NOTE, "`%s`: %s", t->precision, said.s);
}

static void build_programs(Trainer *tr)
{
    Session *s = &tr->session;
    const Model *m = tr->model;
    const Train *t = tr->train;
    BuildReport *total = &tr->build;
    tr->queue.decides = tr->unit->train->decides =
        train_runs_ahead(tr, m, t, tr->unit->grow.n ? &tr->unit->grow.v[0] : NULL);
    session_add_params(s, m);
    tr->kernel_cache = session_kernel_cache(s);
    if (!tr->from || tr->growth.plan)
        tr->drawing = session_begin_params(s, m, t->seed);
    for (ProgramKind kind = 0; kind < PROGRAM_PREDICT; kind++) {
        const ProgramRow *row = program_row(kind);
        const bool is_run = row->held_out ? tr->eval_split != NULL : program_runs(kind, t, tr->micro) > 0;
        for (int level = 0; is_run && level < (row->levels ? lanes_levels(&tr->lanes) : 1); level++)
            *program_slot(&tr->program, kind, level) = build(tr, kind, level);
        if (kind == PROGRAM_UPDATE)
            checkpoint_hold(s, m, t);
    }
    train_share(tr);
    tr->feed = feed_open(s, &tr->data->train, tr->micro, t->context);
    train_event_room(tr);
    size_t n = results_size(tr->program.fresh), n_eval = tr->program.eval ? results_size(tr->program.eval) : 0;
    tr->out.part = NEW_ARRAY(s->arena, double, n + 1);
    tr->out.all = NEW_ARRAY(s->arena, double, (size_t)tr->lanes.all *n + 1);
    tr->out.loss = result_index(tr->program.fresh, "loss");
    open_queue(tr);
    if (tr->program.eval) {
        tr->out.eval_part = NEW_ARRAY(s->arena, double, n_eval + 1);
        tr->out.eval_all = NEW_ARRAY(s->arena, double, (size_t)tr->lanes.all *n_eval + 1);
        tr->out.eval_loss = result_index(tr->program.eval, "loss");
    }
    if (total->note[0])
        train_event(tr, VWN_EVENT_WARNING, "%s", total->note);
    if (s->backend)
        train_event(tr, VWN_EVENT_COMPILE, "%d kernels: %d cached, %d compiled in %.1f s", total->kernels,
                    total->cached, total->compiled, total->seconds);
    else
        train_event(tr, VWN_EVENT_COMPILE, "nothing: running in the float64 reference evaluator");
    report_precision(tr);
    train_prepare(tr);
}

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

static void count_memory(Trainer *tr)
{
    const Program *all[] = {tr->program.fresh, tr->program.more, tr->program.squares, tr->program.update,
                            tr->program.eval};
    uint64_t arena = 0;
    for (size_t i = 0; i < COUNT_OF(all); i++)
        if (all[i])
            arena = larger(arena, program_arena_bytes(all[i]));
    tr->bytes = store_bytes(tr->session.store) + arena;
}

/* The largest number of sequences below `most` that divides the batch. */
static int64_t divisor_below(int64_t batch, int64_t most)
{
    int64_t best = 1;
    for (int64_t i = 1; i <= batch / i; i++) {
        if (batch % i)
            continue;
        if (i < most && i > best)
            best = i;
        if (batch / i < most && batch / i > best)
            best = batch / i;
    }
    return best;
}

static const double GIB = 1024.0 * 1024.0 * 1024.0;

/* What would make a run fit that needs `n`: the largest micro-batch that does, if one does. */
static const char *memory_advice(Trainer *tr, const Train *t, const MemoryNeed *n, uint64_t left)
{
    Arena *a = tr->session.arena;
    const MemoryAsk ask = {.target = tr->session.backend->target};
    if (tr->micro == 1)
        return "a smaller model or `context` needs less";
    MemoryNeed least = session_memory(tr->ctx, tr->model, t, 1, &ask);
    if (least.total > left)
        return arena_printf(a,
                            "even `micro_batch = 1 seqs` would need %.2f GiB: a smaller model "
                            "or `context` needs less",
                            (double)least.total / GIB);
    double each = ((double)n->total - (double)least.total) / (double)(tr->micro - 1);
    double more = each > 0 ? ((double)left - (double)least.total) / each : 0;
    int64_t fit = more < (double)(tr->micro - 1) ? 2 + (int64_t)more : tr->micro;
    MemoryNeed need;
    do {
        fit = divisor_below(tr->train->batch_seqs / tr->lanes.all, fit);
        need = fit > 1 ? session_memory(tr->ctx, tr->model, t, fit, &ask) : least;
    } while (fit > 1 && need.total > left);
    return arena_printf(a, "`micro_batch = %lld seqs` needs %.2f GiB for the same batch of %lld", (long long)fit,
                        (double)need.total / GIB, (long long)tr->train->batch_seqs);
}

/* A run that would not fit is refused before it takes anything; one that was to be on whatever is best goes to the
 * processor. */
static void check_memory(Trainer *tr)
{
    uint64_t left;
    if (!session_room(&tr->session, &left))
        return;
    Train t = *tr->train;
    if (!session_half(&tr->session, &t))
        t.compute = HALF_NONE;
    t = ranks_train(&t, t.ranks); /* what is computed here of a step */
    if (session_memory_most(tr->model, &t) <= left)
        return;
    MemoryNeed n = session_memory(tr->ctx, tr->model, &t, 0, &(MemoryAsk){.target = tr->session.backend->target});
    if (n.total <= left)
        return;
    const char *advice = memory_advice(tr, &t, &n, left);
    const char *why =
        arena_printf(tr->session.arena,
                     "training needs %.2f GiB and %.2f are available%s: weights %.2f, gradients %.2f, "
                     "optimizer %.2f, activations of %lld sequences %.2f; %s",
                     (double)n.total / GIB, (double)left / GIB, tr->session.backend->kind->where,
                     (double)(n.weights + n.copies + n.buffers) / GIB, (double)n.gradients / GIB,
                     (double)(n.optimizer + n.average) / GIB, (long long)tr->micro, (double)n.arena / GIB, advice);
    if (!session_use_cpu(&tr->session, why))
        ctx_raise(tr->ctx, ST_ENVIRONMENT, "%s", why);
}

/* To an update that decides: of the step before the first. */
static void tell_last_loss(Trainer *tr)
{
    Store *s = tr->session.store;
    const Progress *p = &tr->now;
    if (tr->queue.decides && p->n_recent)
        session_store_ok(&tr->session, store_put_f64(s, store_find(s, EXT_STEP, name_str(tr->ctx, "last")), 0, 1,
                                                     &p->recent[p->n_recent - 1]));
}

static void load_state(Trainer *tr)
{
    char why[WHY];
    if (!checkpoint_is_exact(&tr->session, tr->from))
        train_event(tr, VWN_EVENT_WARNING,
                    "%s holds numbers of another precision than this run computes "
                    "in: going on from it is not exact",
                    tr->from->file.path);
    if (tr->growth.plan)
        session_end_params(&tr->session, tr->drawing);
    const GrowthCall grow = {.seed = tr->train->seed, .number = tr->unit->grown};
    if (tr->growth.plan ? !checkpoint_grow(&tr->session, tr->growth.plan, tr->from, &grow, why)
                        : !checkpoint_load(&tr->session, tr->model, tr->from, CHECKPOINT_ALL, why))
        ctx_raise(tr->ctx, ST_INPUT, "%s", why);
    if (!tr->growth.plan)
        tr->saved_at = tr->evaluated_at = tr->now.step;
    if (tr->now.step > tr->steps)
        ctx_raise(tr->ctx, ST_INPUT, "%s is at step %lld, but the run has only %lld steps", tr->from->file.path,
                  (long long)tr->now.step, (long long)tr->steps);
}

static void begin_run(Trainer *tr)
{
    if (!tr->run)
        return;
    if (tr->how->overwrite)
        run_clear(&tr->session, tr->run);
    bool over = train_is_over(tr); /* then settings that nothing was trained under are not those of the run */
    if (!over)
        write_run_files(tr);
    if (tr->record && !over)
        record_write(&tr->session, tr->run, tr->record, tr->hooks, tr->file, tr->meta.data, tr->now.step);
    if (tr->from)
        run_sync_files(&tr->session, tr->run); /* its checkpoints are there already */
    run_begin_events(&tr->session, tr->run, tr->now.step);
    train_flush_early(tr);
}

/* ---- all of it ---- */

/* Losses that are not those of the whole batch when it is computed in parts. */
static void report_parts(Trainer *tr)
{
    Buf b = buf_new(tr->session.arena);
    const Parts *p = parts_of(tr->model, tr->session.arena);
    Name last = NULL;
    for (size_t i = 0; tr->parts > 1 && i < tr->model->loss.n; i++) {
        const ModelLoss *l = &tr->model->loss.v[i];
        if (l->trained && l->name != last && !parts_exact(p, i)) {
            buf_printf(&b, "%s`loss.%s`", b.n ? ", " : "", l->name);
            last = l->name;
        }
    }
    if (b.n)
        train_event(tr, VWN_EVENT_NOTE,
                    "%s: the mean of the %lld parts of a step, each computed from its part alone, "
                    "not from the whole batch",
                    b.s, (long long)tr->parts);
}

/* What is trained to predict the next token and may see it. Labels of files are what they are. */
static void report_order(Trainer *tr)
{
    DecodeRefusal ahead;
    if (tr->data->arrays || !model_may_look_ahead(tr->model, tr->session.arena, &ahead))
        return;
    train_event(tr, VWN_EVENT_NOTE,
                "at %s, %s: unless a mask hides them, predictions depend on later tokens, the labels among them, and "
                "`vwn sample` refuses the model",
                decode_place(tr->ctx, tr->session.arena, &ahead), ahead.why);
}

int64_t train_weights(const Trainer *tr)
{
    int64_t weights = 0;
    for (size_t i = 0; i < tr->model->param.n; i++)
        weights += tr->model->param.v[i].buffer ? 0 : tr->model->param.v[i].elements;
    return weights;
}

static void report_start(Trainer *tr)
{
    const Train *t = tr->train;
    Buf b = buf_new(tr->session.arena);
    buf_printf(&b, "%s: ", tr->model->name);
    buf_count(&b, train_weights(tr));
    buf_puts(&b, " weights, ");
    buf_count(&b, tr->steps);
    buf_puts(&b, " steps of ");
    bool rows = tr->data->arrays;
    buf_count(&b, rows ? t->batch_seqs : t->batch_seqs * t->context);
    buf_puts(&b, rows ? " examples from " : " tokens from ");
    buf_count(&b, rows ? tr->data->train.order.windows : tr->data->train.order.tokens);
    if (tr->from)
        buf_printf(&b, ", from step %lld", (long long)tr->from->progress.step);
    buf_printf(&b, " (%s)", tr->session.backend ? tr->session.backend->ops->name : "reference");
    train_event(tr, VWN_EVENT_START, "%s", b.s);
    if (tr->session.note[0])
        train_event(tr, VWN_EVENT_WARNING, "%s", tr->session.note);
    if (tr->session.backend && tr->session.backend->slow)
        train_event(tr, VWN_EVENT_WARNING, "%s", tr->session.backend->slow);
    if (t->average && tr->eval_split)
        train_event(tr, VWN_EVENT_NOTE, "evaluations measure the average of the weights");
    report_order(tr);
    report_parts(tr);
    if (tr->data->train.order.unused)
        train_event(tr, VWN_EVENT_NOTE,
                    "%zu data files are shorter than the context of %lld and give "
                    "nothing",
                    tr->data->train.order.unused, (long long)t->context);
}

/* The run is of the file after its first n growth steps. */
static void enter_stage(Trainer *tr, size_t n)
{
    Unit *unit = n ? train_check_again(tr, tr->file->set, tr->file->n_set, n) : tr->file;
    if (n && !unit)
        ctx_raise(tr->ctx, ST_INPUT, "the file has errors after its growth step `%s`: see `vwn check`",
                  tr->file->grow.v[n - 1].name);
    if (unit->grown != n)
        vwn_bug(tr->ctx, "a file with %zu growth steps carried out instead of %zu", unit->grown, n);
    tr->unit = unit;
    tr->model = tr->unit->model;
    tr->train = tr->unit->train;
    if (!tr->model)
        ctx_raise(tr->ctx, ST_INPUT, "the file has no `model` to train");
    if (!tr->train)
        ctx_raise(tr->ctx, ST_INPUT, "the file has no `train`: it says how a model is trained");
    if (n) {
        tr->unit->train->births = train_births(tr, tr->model, n, tr->growth.born);
        tr->data = tr->eval_data = NULL;
    }
    train_own(tr, tr->model, tr->unit->train);
    open_all_data(tr);
    resolve_length(tr);
    describe_run(tr);
}

/* The file as far as the checkpoint has it, and one growth step further where that begins now. */
static void resume_stage(Trainer *tr)
{
    size_t behind = train_steps_behind(tr);
    tr->now = tr->from->progress;
    if (behind)
        enter_stage(tr, behind);
    train_compare(tr);
    const GrowStep *due = tr->by_hand.step   ? train_step_wanted(tr, tr->unit)
                          : tr->how->dry_run ? NULL
                                             : train_growth_due(tr, 0);
    bool measured = tr->by_hand.step || tr->train->eval_every <= 0 || tr->now.eval_step == tr->now.step;
    tr->now.due &= due != NULL;
    if (!due || !measured) /* the loss that is to be the same behind the step is measured first */
        return;
    if (due->refused)
        refuse_step(tr, due);
    tr->growth.plan = growth_plan(due, tr->session.arena);
    tr->growth.was = tr->train;
    train_enter_progress(&tr->now, due);
    enter_stage(tr, behind + 1);
}

void train_open(Trainer *tr)
{
    train_event_room(tr);
    enter_stage(tr, 0);
    refuse_growth(tr);
    if (tr->by_hand.step)
        tr->from = source_checkpoint(&tr->session, tr->by_hand.source);
    else
        open_run(tr);
    if (tr->over)
        return;
    if (tr->from)
        resume_stage(tr);
    else
        tr->start = train_start_open(tr);
    if (!half_info(tr->train->compute)->scaled)
        tr->now.loss_scale = 0;
    else if (tr->now.loss_scale == 0)
        tr->now.loss_scale = LOSS_SCALE_FIRST;
    const Optimizer *o = &tr->train->optimizer;
    const Running rate = rate_of(o), decay = decay_of(tr->train);
    const Running second = rate_of(o->second ? o->second : o);
    refuse_values(tr, &rate);
    refuse_values(tr, &second);
    refuse_values(tr, &decay);
    for (size_t i = 0; tr->train->births.old && i < tr->train->births.n; i++) {
        const Running old = part_of(&tr->train->births.old[i]), fresh = part_of(&tr->train->births.fresh[i]);
        refuse_values(tr, &old);
        refuse_values(tr, &fresh);
    }
    session_open_backend(&tr->session);
    if (tr->session.backend && !tr->session.backend->kind->host)
        check_memory(tr); /* it may yet be another device */
    train_agree(tr);
    report_start(tr);
    train_report_end(tr);
    if (tr->session.backend && tr->session.backend->kind->host)
        check_memory(tr);
    if (tr->start)
        train_start_say(tr, tr->start);
    if (tr->growth.plan || tr->start)
        train_measure(tr);
    train_wait_for_kernels(tr, true);
    build_programs(tr);
    train_wait_for_kernels(tr, false);
    session_store_ok(&tr->session, store_settle(tr->session.store)); /* before --overwrite removes a run */
    count_memory(tr);
    if (tr->from)
        load_state(tr);
    if (tr->start) {
        session_end_params(&tr->session, tr->drawing);
        start_load(&tr->session, tr->start);
    }
    tell_last_loss(tr);
    begin_run(tr); /* while helpers still draw */
    if (!tr->from && !tr->start)
        session_end_params(&tr->session, tr->drawing);
}
