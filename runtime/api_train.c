/* api_train.c - the public functions that train, sample, measure and look at runs: thin glue between vwn.h and runtime/.
 *
 * In:  calls of vwn.h.   Out: as api.c.
 */
#include "compiler/file/check_unit.h"
#include "compiler/report/resolve.h"
#include "runtime/api.h"
#include "runtime/checkpoint/record.h"
#include "runtime/checkpoint/run_dir.h"
#include "runtime/exec/session.h"
#include "runtime/look/look.h"
#include "runtime/report/pages.h"
#include "runtime/measure/bench.h"
#include "runtime/measure/rates.h"
#include "runtime/sweep/sweep.h"
#include "runtime/train/train.h"
#include "runtime/use/use.h"

extern const char vwn_source_hash[]; /* generated: see CMakeLists.txt */

static const Hooks hooks = {
    .resolved_text = unit_resolved_text, .check = check_file, .version = VWN_VERSION, .build = vwn_source_hash};

typedef struct RunCall {
    vwn_context *context;
    vwn_unit *unit, *other;
    const void *how;
    const vwn_writer *out;
    vwn_watched *seen;
} RunCall;

static Status train_body(void *user)
{
    RunCall *c = user;
    if (!c->unit->unit)
        return ST_INPUT;
    return train_unit(c->context, c->unit->unit, c->how, &hooks);
}

static Status emit_body(void *user)
{
    RunCall *c = user;
    if (!c->unit->unit)
        return ST_INPUT;
    return emit_unit(c->context, c->unit->unit, c->how, c->out);
}

static Status cubins_body(void *user)
{
    RunCall *c = user;
    if (!c->unit->unit)
        return ST_INPUT;
    return cubins_unit(c->context, c->unit->unit, c->how, c->out);
}

static Status bench_body(void *user)
{
    RunCall *c = user;
    if (!c->unit->unit)
        return ST_INPUT;
    return bench_unit(c->context, c->unit->unit, c->unit->check_seconds, c->how, c->out, &hooks);
}

static Status eval_body(void *user)
{
    RunCall *c = user;
    return eval_source(c->context, c->how, c->out, &hooks);
}

static Status inspect_body(void *user)
{
    RunCall *c = user;
    return inspect_growth(c->context, c->how, c->out, &hooks);
}

static Status compare_body(void *user)
{
    RunCall *c = user;
    return compare_runs(c->context, c->how, c->out);
}

static Status watch_body(void *user)
{
    RunCall *c = user;
    return watch_run(c->context, c->how, c->out, c->seen);
}

static Status runs_body(void *user)
{
    RunCall *c = user;
    return runs_list(c->context, c->how, c->out);
}

static Status label_body(void *user)
{
    RunCall *c = user;
    return runs_label(c->context, c->how, c->out);
}

typedef struct EachCall {
    vwn_context *context;
    const char *const *operand;
    size_t n;
    void (*use)(void *user, const char *run);
    void *user;
} EachCall;

static Status each_body(void *user)
{
    EachCall *c = user;
    return runs_each(c->context, c->operand, c->n, c->use, c->user);
}

typedef struct RemoveCall {
    vwn_context *context;
    const char *folder;
    bool json;
    const vwn_writer *out;
} RemoveCall;

static Status remove_body(void *user)
{
    RemoveCall *c = user;
    return run_remove(c->context, c->folder, c->json, c->out);
}

static Status page_body(void *user)
{
    RunCall *c = user;
    return page_runs(c->context, c->how, c->out, &hooks);
}

static Status sweep_body(void *user)
{
    RunCall *c = user;
    return sweep_run(c->context, c->how, c->out);
}

static Status stats_body(void *user)
{
    RunCall *c = user;
    return tensor_stats(c->context, c->how, c->out);
}

static Status diff_body(void *user)
{
    RunCall *c = user;
    if (c->unit && (!c->unit->unit || !c->other->unit))
        return ST_INPUT;
    return difference_of(c->context, c->unit ? c->unit->unit : NULL, c->unit ? c->other->unit : NULL, c->how, c->out, &hooks);
}

static Status export_body(void *user)
{
    RunCall *c = user;
    return export_events(c->context, c->how, c->out);
}

static Status plot_body(void *user)
{
    RunCall *c = user;
    if (c->unit && !c->unit->unit)
        return ST_INPUT;
    return plot_curves(c->context, c->unit ? c->unit->unit : NULL, c->how, c->out);
}

static Status sample_body(void *user)
{
    RunCall *c = user;
    return sample_source(c->context, c->how, c->out, &hooks);
}

typedef struct PrepareCall {
    vwn_context *context;
    const vwn_prepare_options *how;
} PrepareCall;

static Status prepare_body(void *user)
{
    PrepareCall *c = user;
    return prepare_files(c->context, c->how, &hooks);
}

vwn_status vwn_prepare(vwn_context *context, const vwn_prepare_options *how)
{
    PrepareCall c = {context, how};
    return api_run(context, prepare_body, &c);
}

typedef struct FileCall {
    Session session;
    const char *run, *file;
} FileCall;

static Status file_body(void *user)
{
    FileCall *c = user;
    Session *s = &c->session;
    session_open(s, s->owner);
    run_want(s, c->run);
    const char *file = record_file(s, c->run);
    if (!file)
        ctx_raise(s->ctx, ST_USAGE, "`%.300s` does not say which file it was trained from: `vwn train FILE --run %.300s --resume`", c->run, c->run);
    c->file = arena_copy(s->ctx->program, file, strlen(file));
    return ST_OK;
}

vwn_status vwn_run_file(vwn_context *context, const char *run, const char **file)
{
    FileCall c = {.session.owner = context, .run = run};
    Status st = session_end(&c.session, guarded(context->ctx, file_body, &c));
    *file = c.file;
    return (vwn_status)st;
}

vwn_status vwn_train(vwn_unit *unit, const vwn_train_options *how)
{
    vwn_train_options plain = {0};
    RunCall c = {.context = unit->context, .unit = unit, .how = how ? how : &plain};
    return api_run(unit->context, train_body, &c);
}

static Status grow_body(void *user)
{
    RunCall *c = user;
    if (!c->unit->unit)
        return ST_INPUT;
    return grow_unit(c->context, c->unit->unit, c->how, c->out, &hooks);
}

vwn_status vwn_grow(vwn_unit *unit, const vwn_grow_options *how, const vwn_writer *out)
{
    RunCall c = {.context = unit->context, .unit = unit, .how = how, .out = out};
    return api_run(unit->context, grow_body, &c);
}

vwn_status vwn_emit(vwn_unit *unit, const vwn_emit_options *how, const vwn_writer *out)
{
    RunCall c = {.context = unit->context, .unit = unit, .how = how, .out = out};
    return api_run(unit->context, emit_body, &c);
}

vwn_status vwn_cubins(vwn_unit *unit, const vwn_cubin_options *how, const vwn_writer *out)
{
    vwn_cubin_options plain = {0};
    RunCall c = {.context = unit->context,
                 .unit = unit,
                 .how = how ? how : &plain,
                 .out = out};
    return api_run(unit->context, cubins_body, &c);
}

vwn_status vwn_bench(vwn_unit *unit, const vwn_bench_options *how, const vwn_writer *out)
{
    vwn_bench_options plain = {0};
    RunCall c = {.context = unit->context,
                 .unit = unit,
                 .how = how ? how : &plain,
                 .out = out};
    return api_run(unit->context, bench_body, &c);
}

vwn_status vwn_eval(vwn_context *context, const vwn_eval_options *how, const vwn_writer *out)
{
    RunCall c = {.context = context, .how = how, .out = out};
    return api_run(context, eval_body, &c);
}

vwn_status vwn_inspect_growth(vwn_context *context, const vwn_inspect_options *how, const vwn_writer *out)
{
    RunCall c = {.context = context, .how = how, .out = out};
    return api_run(context, inspect_body, &c);
}

typedef struct InsideCall {
    vwn_context *context;
    const vwn_inside_options *how;
    const vwn_writer *text, *json;
} InsideCall;

static Status inside_body(void *user)
{
    InsideCall *c = user;
    return inspect_inside(c->context, c->how, c->text, c->json, &hooks);
}

vwn_status vwn_inspect(vwn_context *context, const vwn_inside_options *how, const vwn_writer *text, const vwn_writer *json)
{
    InsideCall c = {context, how, text, json};
    return api_run(context, inside_body, &c);
}

vwn_status vwn_compare(vwn_context *context, const vwn_compare_options *how, const vwn_writer *out)
{
    RunCall c = {.context = context, .how = how, .out = out};
    return api_run(context, compare_body, &c);
}

vwn_status vwn_runs(vwn_context *context, const vwn_runs_options *how, const vwn_writer *out)
{
    RunCall c = {.context = context, .how = how, .out = out};
    return api_run(context, runs_body, &c);
}

vwn_status vwn_each_run(vwn_context *context, const char *const *operand, size_t n, void (*use)(void *user, const char *run), void *user)
{
    EachCall c = {context, operand, n, use, user};
    return api_run(context, each_body, &c);
}

vwn_status vwn_label(vwn_context *context, const vwn_label_options *how, const vwn_writer *out)
{
    RunCall c = {.context = context, .how = how, .out = out};
    return api_run(context, label_body, &c);
}

vwn_status vwn_remove_run(vwn_context *context, const char *folder, bool json, const vwn_writer *out)
{
    RemoveCall c = {context, folder, json, out};
    return api_run(context, remove_body, &c);
}

vwn_status vwn_watch(vwn_context *context, const vwn_watch_options *how, const vwn_writer *out, vwn_watched *seen)
{
    RunCall c = {.context = context, .how = how, .out = out, .seen = seen};
    return api_run(context, watch_body, &c);
}

vwn_status vwn_page(vwn_context *context, const vwn_page_options *how, const vwn_writer *out)
{
    RunCall c = {.context = context, .how = how, .out = out};
    return api_run(context, page_body, &c);
}

vwn_status vwn_sweep(vwn_context *context, const vwn_sweep_options *how, const vwn_writer *out)
{
    RunCall c = {.context = context, .how = how, .out = out};
    return api_run(context, sweep_body, &c);
}

vwn_status vwn_tensor_stats(vwn_context *context, const vwn_stats_options *how, const vwn_writer *out)
{
    RunCall c = {.context = context, .how = how, .out = out};
    return api_run(context, stats_body, &c);
}

vwn_status vwn_diff(vwn_context *context, vwn_unit *x, vwn_unit *y, const vwn_diff_options *how, const vwn_writer *out)
{
    RunCall c = {.context = context, .unit = x, .other = y, .how = how, .out = out};
    return api_run(context, diff_body, &c);
}

vwn_status vwn_export_log(vwn_context *context, const vwn_export_options *how, const vwn_writer *out)
{
    RunCall c = {.context = context, .how = how, .out = out};
    return api_run(context, export_body, &c);
}

vwn_status vwn_plot(vwn_context *context, vwn_unit *unit, const vwn_plot_options *how, const vwn_writer *out)
{
    RunCall c = {.context = context, .unit = unit, .how = how, .out = out};
    return api_run(context, plot_body, &c);
}

vwn_status vwn_sample(vwn_context *context, const vwn_sample_options *how,
                      const vwn_writer *out)
{
    RunCall c = {.context = context, .how = how, .out = out};
    return api_run(context, sample_body, &c);
}
