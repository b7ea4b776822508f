/* api_train.c - the public functions that train, sample, measure and look at runs: thin glue between vwn.h and runtime/.
 *
 * In:  calls of vwn.h.   Out: as api.c.
 */
#include <stdio.h>

#include "compiler/file/check_unit.h"
#include "compiler/report/resolve.h"
#include "runtime/api.h"
#include "runtime/checkpoint/checkpoint.h"
#include "runtime/checkpoint/record.h"
#include "runtime/checkpoint/run_dir.h"
#include "runtime/exec/session.h"
#include "runtime/family/family.h"
#include "runtime/hold/hold.h"
#include "runtime/look/look.h"
#include "runtime/report/pages.h"
#include "runtime/measure/bench.h"
#include "runtime/measure/rates.h"
#include "runtime/serve/serve.h"
#include "runtime/shards/tokenize.h"
#include "runtime/shards/vocabulary_of.h"
#include "runtime/sweep/sweep.h"
#include "runtime/train/train.h"
#include "runtime/use/use.h"

extern const char vwn_source_hash[]; /* generated: see CMakeLists.txt */

static const Hooks hooks = {.resolved_text = unit_resolved_text,
                            .check = check_file,
                            .changes = difference_changes,
                            .version = VWN_VERSION,
                            .build = vwn_source_hash};

typedef struct RunCall {
    vwn_context *context;
    vwn_unit *unit, *other;
    const void *how;
    const vwn_writer *out, *json;
    vwn_watched *seen;
} RunCall;

/* What name() does, behind api_run(): `work` reads the call c. */
#define BODY(name, work)                                                                                               \
    static Status name##_body(void *user)                                                                              \
    {                                                                                                                  \
        RunCall *c = user;                                                                                             \
        return work;                                                                                                   \
    }

/* A public function that takes options and a writer. */
#define CALL(name, Options, work)                                                                                      \
    BODY(name, work)                                                                                                   \
    vwn_status name(vwn_context *context, const Options *how, const vwn_writer *out)                                   \
    {                                                                                                                  \
        RunCall c = {.context = context, .how = how, .out = out};                                                      \
        return api_run(context, name##_body, &c);                                                                      \
    }

/* One of a unit, which does nothing where that has errors. Without options each is 0. */
#define CALL_UNIT(name, Options, work)                                                                                 \
    BODY(name, !c->unit->unit ? ST_INPUT : work)                                                                       \
    vwn_status name(vwn_unit *unit, const Options *how, const vwn_writer *out)                                         \
    {                                                                                                                  \
        static const Options plain;                                                                                    \
        RunCall c = {.context = unit->context, .unit = unit, .how = how ? how : &plain, .out = out};                   \
        return api_run(unit->context, name##_body, &c);                                                                \
    }

CALL_UNIT(vwn_grow, vwn_grow_options, grow_unit(c->context, c->unit->unit, c->how, c->out, &hooks))
CALL_UNIT(vwn_emit, vwn_emit_options, emit_unit(c->context, c->unit->unit, c->how, c->out))
CALL_UNIT(vwn_cubins, vwn_cubin_options, cubins_unit(c->context, c->unit->unit, c->how, c->out))
CALL_UNIT(vwn_bench, vwn_bench_options,
          bench_unit(c->context, c->unit->unit, c->unit->check_seconds, c->how, c->out, &hooks))
CALL(vwn_eval, vwn_eval_options, eval_source(c->context, c->how, c->out, &hooks))
CALL(vwn_eval_task, vwn_task_options, score_task(c->context, c->how, c->out, &hooks))
CALL(vwn_sample, vwn_sample_options, sample_source(c->context, c->how, c->out, &hooks))
CALL(vwn_serve, vwn_serve_options, serve_source(c->context, c->how, c->out, &hooks))
CALL(vwn_from_hf, vwn_from_options, family_begin(c->context, c->how, c->out, &hooks))
CALL(vwn_export_hf, vwn_hf_options, family_export(c->context, c->how, c->out, &hooks))
CALL(vwn_inspect_growth, vwn_inspect_options, inspect_growth(c->context, c->how, c->out, &hooks))
CALL(vwn_compare, vwn_compare_options, compare_runs(c->context, c->how, c->out))
CALL(vwn_runs, vwn_runs_options, runs_list(c->context, c->how, c->out))
CALL(vwn_label, vwn_label_options, runs_label(c->context, c->how, c->out))
CALL(vwn_page, vwn_page_options, page_runs(c->context, c->how, c->out, &hooks))
CALL(vwn_sweep, vwn_sweep_options, sweep_run(c->context, c->how, c->out))
CALL(vwn_tensor_stats, vwn_stats_options, tensor_stats(c->context, c->how, c->out))
CALL(vwn_tokenize, vwn_tokenize_options, tokenize_texts(c->context, c->how, c->out))
CALL(vwn_train_tokenizer, vwn_vocabulary_options, train_tokenizer(c->context, c->how, c->out))
CALL(vwn_ranks, vwn_ranks_options, ranks_seen(c->context, c->how, c->out))
CALL(vwn_export_log, vwn_export_options, export_events(c->context, c->how, c->out))

BODY(vwn_train, !c->unit->unit ? ST_INPUT : train_unit(c->context, c->unit->unit, c->how, &hooks))
vwn_status vwn_train(vwn_unit *unit, const vwn_train_options *how)
{
    static const vwn_train_options plain;
    RunCall c = {.context = unit->context, .unit = unit, .how = how ? how : &plain};
    return api_run(unit->context, vwn_train_body, &c);
}

BODY(vwn_watch, watch_run(c->context, c->how, c->out, c->seen))
vwn_status vwn_watch(vwn_context *context, const vwn_watch_options *how, const vwn_writer *out, vwn_watched *seen)
{
    RunCall c = {.context = context, .how = how, .out = out, .seen = seen};
    return api_run(context, vwn_watch_body, &c);
}

BODY(vwn_inspect, inspect_inside(c->context, c->how, c->out, c->json, &hooks))
vwn_status vwn_inspect(vwn_context *context, const vwn_inside_options *how, const vwn_writer *text,
                       const vwn_writer *json)
{
    RunCall c = {.context = context, .how = how, .out = text, .json = json};
    return api_run(context, vwn_inspect_body, &c);
}

BODY(vwn_plot,
     c->unit && !c->unit->unit ? ST_INPUT : plot_curves(c->context, c->unit ? c->unit->unit : NULL, c->how, c->out))
vwn_status vwn_plot(vwn_context *context, vwn_unit *unit, const vwn_plot_options *how, const vwn_writer *out)
{
    RunCall c = {.context = context, .unit = unit, .how = how, .out = out};
    return api_run(context, vwn_plot_body, &c);
}

static Status diff_body(void *user)
{
    RunCall *c = user;
    if (c->unit && (!c->unit->unit || !c->other->unit))
        return ST_INPUT;
    return difference_of(c->context, c->unit ? c->unit->unit : NULL, c->unit ? c->other->unit : NULL, c->how, c->out,
                         &hooks);
}

vwn_status vwn_diff(vwn_context *context, vwn_unit *x, vwn_unit *y, const vwn_diff_options *how, const vwn_writer *out)
{
    RunCall c = {.context = context, .unit = x, .other = y, .how = how, .out = out};
    return api_run(context, diff_body, &c);
}

BODY(vwn_prepare, prepare_files(c->context, c->how, &hooks))
vwn_status vwn_prepare(vwn_context *context, const vwn_prepare_options *how)
{
    RunCall c = {.context = context, .how = how};
    return api_run(context, vwn_prepare_body, &c);
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

vwn_status vwn_each_run(vwn_context *context, const char *const *operand, size_t n,
                        void (*use)(void *user, const char *run), void *user)
{
    EachCall c = {context, operand, n, use, user};
    return api_run(context, each_body, &c);
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

vwn_status vwn_remove_run(vwn_context *context, const char *folder, bool json, const vwn_writer *out)
{
    RemoveCall c = {context, folder, json, out};
    return api_run(context, remove_body, &c);
}

typedef struct FileCall {
    Session session;
    const char *run;
    vwn_run_text *text;
} FileCall;

/* Where the file of a run lay: what a checkpoint says is right also where the run was moved with its data. */
static const char *folder_of_file(Session *s, const char *run, const char *file)
{
    char why[WHY];
    Checkpoint c;
    StepList l = run_checkpoints(s, run);
    for (size_t i = l.n; i-- > 0;)
        if (checkpoint_open(s, arena_printf(s->arena, "%s/ckpt/%s", run, run_checkpoint_name(s->arena, l.step[i])), &c,
                            why))
            return c.meta.folder;
    const char *slash = file ? strrchr(file, '/') : NULL;
    return slash ? arena_copy(s->arena, file, (size_t)(slash - file)) : ".";
}

static const char *in_program(Session *s, const char *text)
{
    return text ? arena_copy(s->ctx->program, text, strlen(text)) : NULL;
}

static Status file_body(void *user)
{
    FileCall *c = user;
    Session *s = &c->session;
    session_open(s, s->owner);
    run_want(s, c->run);
    const char *file = record_file(s, c->run);
    c->text->file = in_program(s, file);
    c->text->kept = in_program(s, run_kept_file(s, c->run));
    c->text->folder = in_program(s, folder_of_file(s, c->run, file));
    return ST_OK;
}

vwn_status vwn_run_file(vwn_context *context, const char *run, vwn_run_text *text)
{
    FileCall c = {.session.owner = context, .run = run, .text = text};
    *text = (vwn_run_text){0};
    return (vwn_status)session_end(&c.session, guarded(context->ctx, file_body, &c));
}

/* ---- a model that stays open ---- */

vwn_memory *vwn_memory_keep(vwn_memory *memory) { return memory_keep(memory); }

void vwn_memory_release(vwn_memory *memory) { memory_release(memory); }

void *vwn_tensor_dlpack(const vwn_tensor *tensor) { return tensor_dlpack(tensor); }

void vwn_dlpack_unused(void *capsule) { dlpack_unused(capsule); }

typedef struct ModelCall {
    vwn_model *model;
    const vwn_batch *batch;
    const vwn_tensor *given;
    const char *const *name;
    const char *text;
    const int64_t *ids;
    size_t n, *count;
    vwn_tensor_kind kind;
    bool add;
    double number, *loss;
    vwn_progress *progress;
    vwn_tensor *out;
    const vwn_writer *writer;
} ModelCall;

/* One of a model, whose memory a bug may have left in any state. */
static vwn_status model_call(ModelCall c, Status (*body)(void *user))
{
    vwn_model *v = c.model;
    if (v->broken) {
        snprintf(v->ctx->message, sizeof v->ctx->message,
                 "a bug ended an earlier call of this model: it can be closed alone");
        return VWN_USAGE;
    }
    vwn_status st = api_run(v->owner, body, &c);
    v->broken = st == VWN_BUG;
    return st;
}

/* name(model, ...): the parameters, what they are in the call, and what is done with it. */
#define MODEL(name, parameters, call, work)                                                                            \
    static Status name##_body(void *user)                                                                              \
    {                                                                                                                  \
        const ModelCall *c = user;                                                                                     \
        return work;                                                                                                   \
    }                                                                                                                  \
    vwn_status name parameters { return model_call((ModelCall)call, name##_body); }
#define SET(...)                                                                                                       \
    {                                                                                                                  \
        __VA_ARGS__                                                                                                    \
    }

MODEL(vwn_model_describe, (vwn_model * model, const vwn_writer *json), SET(.model = model, .writer = json),
      hold_describe(c->model, c->writer))
MODEL(vwn_model_run, (vwn_model * model, const vwn_batch *batch, const char *const *node, size_t n, vwn_tensor *out),
      SET(.model = model, .batch = batch, .name = node, .n = n, .out = out),
      hold_run(c->model, c->batch, c->name, c->n, c->out))
MODEL(vwn_model_encode, (vwn_model * model, const char *text, size_t n, vwn_tensor *ids),
      SET(.model = model, .text = text, .n = n, .out = ids), hold_encode(c->model, c->text, c->n, c->out))
MODEL(vwn_model_decode, (vwn_model * model, const int64_t *ids, size_t n, const vwn_writer *out),
      SET(.model = model, .ids = ids, .n = n, .writer = out), hold_decode(c->model, c->ids, c->n, c->writer))
MODEL(vwn_model_tensor, (vwn_model * model, vwn_tensor_kind kind, const char *name, vwn_tensor *out),
      SET(.model = model, .kind = kind, .text = name, .out = out), hold_tensor(c->model, c->kind, c->text, c->out))
MODEL(vwn_model_put, (vwn_model * model, vwn_tensor_kind kind, const vwn_tensor *numbers),
      SET(.model = model, .kind = kind, .given = numbers), hold_put(c->model, c->kind, c->given))
MODEL(vwn_model_gradient, (vwn_model * model, const vwn_batch *batch, double *loss),
      SET(.model = model, .batch = batch, .loss = loss), hold_gradient(c->model, c->batch, c->loss))
MODEL(vwn_model_backward, (vwn_model * model, const vwn_batch *batch, const vwn_tensor *gradient, size_t n, bool add),
      SET(.model = model, .batch = batch, .given = gradient, .n = n, .add = add),
      hold_backward(c->model, c->batch, c->given, c->n, c->add))
MODEL(vwn_model_update, (vwn_model * model, double loss, vwn_progress *progress),
      SET(.model = model, .number = loss, .progress = progress), hold_update(c->model, c->number, c->progress))
MODEL(vwn_model_batch, (vwn_model * model, vwn_tensor out[3], size_t *n), SET(.model = model, .out = out, .count = n),
      hold_batch(c->model, c->out, c->count))
MODEL(vwn_model_save, (vwn_model * model), SET(.model = model), hold_save(c->model))

typedef struct OpenCall {
    vwn_context *context;
    const vwn_model_options *how;
    vwn_model **model;
} OpenCall;

static Status open_body(void *user)
{
    OpenCall *c = user;
    return hold_open(c->context, c->how, c->model, &hooks);
}

vwn_status vwn_model_open(vwn_context *context, const vwn_model_options *how, vwn_model **model)
{
    OpenCall c = {context, how, model};
    *model = NULL;
    vwn_status st = api_run(context, open_body, &c);
    if (st != VWN_OK && *model) {
        hold_close(*model);
        *model = NULL;
    }
    return st;
}

void vwn_model_close(vwn_model *model)
{
    if (model)
        hold_close(model);
}
