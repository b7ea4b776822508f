/* eval.c - the losses of a trained model on text.
 *
 * In:  a run or a checkpoint.   Out: loss, perplexity and, where tokens stand for bytes, bits per byte.
 * The one idea: the same windows and the same program as the evaluations during training, so
 * the numbers agree with theirs.
 */
#include <math.h>

#include "compiler/model/programs.h"
#include "runtime/checkpoint/held_out.h"
#include "train.h"

typedef struct Evaluation {
    Session session;
    const vwn_eval_options *how;
    const vwn_writer *out;
    const Hooks *hooks;
    Source source;
    Program *program, *count;
    double *mean; /* of all numbers of the results */
    int64_t windows, tokens;
    double bytes; /* of a token; 0: not known */
    HeldOut data;
    bool averaged; /* the weights are averages over steps */
} Evaluation;

static void report(Evaluation *e)
{
    Buf b = buf_new(e->session.arena);
    size_t n = program_results(e->program);
    double loss = e->mean[result_of_tokens(e->program)], bits = loss / log(2) / e->bytes;
    size_t room = 8192 + 64 * n + 32 * results_size(e->program);
    for (size_t i = 0; i < n; i++)
        room += strlen(program_result_name(e->program, i));
    char *memory = NEW_ARRAY(e->session.arena, char, room);
    const double *mean = e->mean;
    JsonText t;
    json_begin(&t, memory, room - 1);
    json_open(&t, NULL, '{');
    json_put_integer(&t, "v", 1);
    json_put_string(&t, "event", "eval");
    json_put_integer(&t, "step", e->source.checkpoint->progress.step);
    for (size_t i = 0; i < n; i++) {
        const char *name = program_result_name(e->program, i);
        size_t size = program_result_size(e->program, i);
        result_put(&t, name, mean, size);
        buf_printf(&b, "%-16s", name);
        for (size_t k = 0; k < size; k++)
            buf_printf(&b, size == 1 ? " %.6f" : " %.3f", mean[k]);
        buf_putc(&b, '\n');
        mean += size;
    }
    if (e->data.text) {
        json_put_number(&t, "perplexity", exp(loss));
        buf_printf(&b, "%-16s %.4f\n", "perplexity", exp(loss));
    }
    if (e->bytes > 0) {
        json_put_number(&t, "bits_per_byte", bits);
        buf_printf(&b, "%-16s %.4f\n", "bits per byte", bits);
    }
    json_put_integer(&t, "windows", e->windows);
    json_put_integer(&t, "tokens", e->tokens);
    json_put_string(&t, "weights", e->averaged ? "average" : "last");
    json_close(&t, '}');
    if (e->how->json && !t.full) {
        memory[t.n] = '\n';
        write_text(e->out, memory, t.n + 1);
        return;
    }
    buf_puts(&b, "on               ");
    buf_count(&b, e->data.text ? e->tokens : e->windows);
    buf_printf(&b, " %s, after step %lld%s\n", e->data.text ? "tokens" : "examples",
               (long long)e->source.checkpoint->progress.step, e->averaged ? ", with the average of the weights" : "");
    write_text(e->out, b.s, b.n);
}

static const double GIB = 1024.0 * 1024.0 * 1024.0;

/* What does not fit is refused before anything is taken, with the largest batch that does; or it goes to the
 * processor. Returns the program's options for the device that is left. */
static ProgramOptions fit(Evaluation *e, const Graph *g, int64_t batch)
{
    Session *s = &e->session;
    const Train *t = e->source.unit->train;
    uint64_t left, need;
    ProgramOptions how = {.name = "eval", .B = batch, .T = t->context, .share_arena = true, .half = session_half(s, t)};
    Train bound = *t;
    bound.micro_seqs = batch;
    if (!session_room(s, &left) || session_memory_most(e->source.unit->model, &bound) <= left ||
        (need = session_program_need(s, g, &how)) <= left)
        return how;
    ProgramOptions less = how;
    uint64_t then = need;
    while (less.B > 1 && then > left) {
        less.B /= 2;
        then = session_program_need(s, g, &less);
    }
    const char *advice = then > left ? "even one sequence does not fit: `--device cpu` takes the processor"
                                     : arena_printf(s->arena, "`--batch '%lld seqs'` needs %.2f GiB", (long long)less.B,
                                                    (double)then / GIB);
    const char *why =
        arena_printf(s->arena, "evaluating %lld sequences at once needs %.2f GiB and %.2f are available%s; %s",
                     (long long)batch, (double)need / GIB, (double)left / GIB, s->backend->kind->where, advice);
    if (!session_use_cpu(s, why))
        ctx_raise(s->ctx, ST_ENVIRONMENT, "%s", why);
    how.half = session_half(s, t);
    return how;
}

static Status eval_body(void *user)
{
    Evaluation *e = user;
    Session *s = &e->session;
    session_open(s, s->owner);
    e->source = source_open(s, e->how->source, false, e->hooks);
    const Model *m = e->source.unit->model;
    const Train *t = e->source.unit->train;
    e->data = held_out_open(s, &e->source, e->how->data);
    const Split *split = e->data.split;
    session_open_backend(s);
    session_warn(s, s->note);
    int64_t batch = e->how->batch_seqs > 0 ? e->how->batch_seqs : t->micro_seqs > 0 ? t->micro_seqs : t->batch_seqs;
    Graph *g = step_held_out(m, NULL, s->arena);
    ProgramOptions how = fit(e, g, batch);
    session_add_params(s, m);
    BuildReport built = {0};
    e->program = session_program(s, g, &how, &built);
    Graph *count = step_count(m, true, s->arena);
    how.name = program_row(PROGRAM_EVAL_COUNT)->name;
    how.half = HALF_NONE;
    e->count = count ? session_program(s, count, &how, &built) : NULL;
    session_warn(s, built.note);
    Feed feed = feed_open(s, split, batch, t->context);
    e->averaged = source_load(s, &e->source, e->how->last);
    double vars[HV_COUNT];
    held_out_vars(&e->source, &e->data, vars);
    size_t numbers = results_size(e->program);
    double *part = NEW_ARRAY(s->arena, double, numbers + 1);
    const EvalShare share = {.lanes = lanes_of(t->lanes)};
    e->mean = NEW_ARRAY(s->arena, double, (size_t)share.lanes.all *numbers + 1);
    int64_t batches = e->how->batches > 0 ? e->how->batches : t->eval_batches;
    e->windows = evaluate(&feed, e->program, e->count, split, batches, t->batch_seqs, &share, vars, part, e->mean);
    e->tokens = e->windows * t->context;
    e->bytes = split_bytes_per_token(s, split, e->source.checkpoint->meta.tokenizer, e->windows);
    report(e);
    return ST_OK;
}

Status eval_source(vwn_context *owner, const vwn_eval_options *how, const vwn_writer *out, const Hooks *hooks)
{
    Evaluation e = {.session.owner = owner, .how = how, .out = out, .hooks = hooks};
    Status st = guarded(owner->ctx, eval_body, &e);
    return session_end(&e.session, st);
}
