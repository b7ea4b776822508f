/* report_cost.c - `vwn cost`: what a model costs before it runs, with the formula behind each
 * number.
 *
 * In:  a Model, and the bytes the runtime planned.   Out: sections of name, number and formula,
 * and a table of modules. The one idea: every figure is a Line, printed as text or as JSON.
 */
#include "compiler/model/cost.h"
#include "report.h"

#include <math.h>

typedef enum LineUnit { IN_COUNT, IN_FLOP, IN_BYTES, IN_DAYS, IN_PERCENT, IN_SECONDS } LineUnit;
typedef struct CostLine {
    const char *key;  /* of the JSON */
    const char *name; /* for people; NULL: a heading is `how` */
    double value;
    LineUnit unit;
    const char *how; /* the formula */
} CostLine;
typedef struct Lines {
    Arena *arena;
    VEC(CostLine) line;
} Lines;

static void add(Lines *l, const char *key, const char *name, double value, LineUnit unit, const char *how)
{
    vec_push(l->arena, &l->line, (CostLine){key, name, value, unit, how});
}

static void heading(Lines *l, const char *text) { add(l, NULL, NULL, 0, IN_COUNT, text); }

static void add_weights(Lines *l, const Model *m)
{
    ModelCount c = model_count(m);
    heading(l, "parameters");
    add(l, "stored", "stored", (double)c.stored, IN_COUNT, "elements of all learnable tensors");
    add(l, "dead", "dead", (double)c.dead, IN_COUNT,
        "can never learn, by shape: multiply a constant zero, or nothing reads the result");
    add(l, "live", "live", (double)c.live, IN_COUNT, "stored - dead: what `params` means in a file");
    add(l, "active", "active per token", (double)c.active, IN_COUNT, "routed experts count by active / experts");
    if (c.buffers)
        add(l, "buffers", "buffers", (double)c.buffers, IN_COUNT, "stored, not learned");
}

static void add_work(Lines *l, const Model *m)
{
    Work w = model_work(m);
    heading(l, arena_printf(l->arena, "work per token, forward, at context %lld", (long long)m->context));
    add(l, "flop_products", "matrix products", w.products, IN_FLOP, "2 per multiply-add");
    add(l, "flop_attention", "attention", w.attention, IN_FLOP,
        "scores and values over the full square, 2 per multiply-add");
    add(l, "flops_per_token", "flops_per_token", model_flops_per_token(m), IN_FLOP,
        "products + attention: what `flops_per_token` means in a file");
    add(l, "flop_causal_saving", "causal saving", w.causal_saving, IN_FLOP,
        "the part of attention that masks and windows make unnecessary; not subtracted above");
    add(l, "flop_elementwise", "elementwise", w.elementwise, IN_FLOP,
        "one per element of an elementwise result or of a reduction's input; not added above");
    double dead = model_dead_flops(m);
    if (dead > 0)
        add(l, "flop_dead", "dead weights", dead, IN_FLOP,
            "the part of the products with weights that can never learn; not subtracted above");
    add(l, "flop_training", "training", 3 * model_flops_per_token(m), IN_FLOP,
        "3 x flops_per_token: each product has two more in the backward pass");
}

/* A petaflop day is 1e15 FLOP in each second of a day. */
static void add_run(Lines *l, const Model *m, const Train *t)
{
    static const double PF_DAY = 8.64e19;
    if (!t || t->length_steps <= 0)
        return;
    double tokens = (double)t->length_steps * (double)t->batch_seqs * (double)t->context;
    double flops = model_flops_per_token(m), dead = model_dead_flops(m);
    heading(l, arena_printf(l->arena, "the whole run: %lld steps of %lld x %lld positions", (long long)t->length_steps,
                            (long long)t->batch_seqs, (long long)t->context));
    add(l, "run_tokens", "tokens", tokens, IN_COUNT, "steps x sequences x positions");
    add(l, "run_pf_days", "training", 3 * flops * tokens / PF_DAY, IN_DAYS,
        "petaflop days: 3 x flops_per_token x tokens / 8.64e19");
    if (dead > 0)
        add(l, "run_pf_days_live", "without dead weights", 3 * (flops - dead) * tokens / PF_DAY, IN_DAYS,
            "petaflop days: 3 x (flops_per_token - dead weights) x tokens / 8.64e19");
}

static void add_cache(Lines *l, const Model *m)
{
    KvCache kv = model_kv_cache(m, 4);
    heading(l, "keys and values that generation keeps, float32, per sequence");
    add(l, "kv_per_token", "per token", kv.per_token, IN_BYTES, "4 bytes x (keys + values) of every causal attention");
    add(l, "kv_at_context", "at the context", kv.at_context, IN_BYTES, "windowed attention keeps its window");
}

/* The two figures that `recompute` chooses between. */
static void add_recompute(Lines *l, const ReportMemory *b)
{
    Buf words = buf_new(l->arena);
    for (size_t i = 0; i < b->n_recompute; i++)
        buf_printf(&words, "%s%s", i ? ", " : "", b->recompute[i]);
    add(l, "bytes_arena_kept", "  nothing recomputed", (double)b->arena_kept, IN_BYTES, "the same without `recompute`");
    add(l, "bytes_arena_recomputed", "  recomputed", (double)b->arena_recomputed, IN_BYTES,
        arena_printf(l->arena, b->asked ? "with `recompute = [%s]` of the file" : "what `recompute = [%s]` would need",
                     words.s));
}

static void add_memory(Lines *l, const ReportMemory *b)
{
    heading(l, arena_printf(l->arena, "memory of %s%s%s, float32, %lld %s at once", b->exchange ? "rank 0 in " : "",
                            b->device ? "the GPU in " : "", b->training ? "training" : "one forward pass",
                            (long long)b->batch_seqs, b->batch_seqs == 1 ? "sequence" : "sequences"));
    add(l, "bytes_weights", "weights", (double)b->weights, IN_BYTES, "4 x stored");
    if (b->copies)
        add(l, "bytes_copies", "rounded weights", (double)b->copies, IN_BYTES,
            "2 x what products read of them, in rows of a multiple of 8 numbers");
    if (b->buffers)
        add(l, "bytes_buffers", "buffers", (double)b->buffers, IN_BYTES, "4 x buffers");
    if (b->training) {
        add(l, "bytes_gradients", "gradients", (double)b->gradients, IN_BYTES, "4 x stored, without frozen tensors");
        add(l, "bytes_optimizer", "optimizer", (double)b->optimizer, IN_BYTES,
            "its states: 2 per weight for adamw, 1 for lion, muon and sgd with momentum");
        if (b->average)
            add(l, "bytes_average", "average", (double)b->average, IN_BYTES,
                "4 x stored, without frozen tensors: `average` of `train`");
    }
    if (b->exchange)
        add(l, "bytes_exchange", "exchange", (double)b->exchange, IN_BYTES,
            "what is on its way between ranks, coming and going, and weights in whose place averages are evaluated");
    add(l, "bytes_inputs", "inputs", (double)b->inputs, IN_BYTES,
        "what the model and its losses are given: 8 bytes an integer, 4 any other number");
    add(l, "bytes_arena", "activations", (double)b->arena, IN_BYTES,
        "the largest arena of the programs, as planned: values share places once they are "
        "dead");
    if (b->n_recompute)
        add_recompute(l, b);
    add(l, "bytes_program", "program", (double)b->program, IN_BYTES,
        b->device ? "machine code, and what pages leave unused"
                  : "graphs and plans that the compiler keeps, and 20 MiB of libraries");
    add(l, "bytes_total", "peak", (double)b->total, IN_BYTES, "the sum");
}

/* The estimate: the sum over the launches that were planned. */
static void add_time(Lines *l, const Train *t, const ReportTime *s, double exchange)
{
    if (!s)
        return;
    const char *head = arena_printf(l->arena, "time of training on %s", *s->device ? s->device : "this processor");
    if (s->why) {
        heading(l, arena_printf(l->arena, "%s: no estimate; %s", head, s->why));
        return;
    }
    double step = s->products + s->experts + s->attention + s->kernels + exchange;
    double tokens = (double)t->batch_seqs * (double)t->context;
    const char *threads =
        *s->device ? "" : arena_printf(l->arena, ", %d thread%s", s->threads, s->threads == 1 ? "" : "s");
    heading(l, arena_printf(l->arena, "%s%s, estimated from its measured rates", head, threads));
    add(l, "time_products", "products", s->products, IN_SECONDS,
        "2 m n k / rate of what is transposed, bf16 or not, + numbers of operands and result / theirs");
    if (s->experts > 0)
        add(l, "time_experts", "by expert", s->experts, IN_SECONDS, "the same by expert");
    if (s->attention > 0)
        add(l, "time_attention", "attention", s->attention, IN_SECONDS,
            "operations within mask and window / rate + scores / theirs");
    add(l, "time_kernels", "other kernels", s->kernels, IN_SECONDS,
        "each the larger of bytes / rate of moving and operations / theirs, by kind, on the threads "
        "that have rows");
    if (exchange > 0)
        add(l, "time_waits", "exchange", exchange, IN_SECONDS,
            "what ranks send each other, while they compute nothing");
    add(l, "time_step", "step", step, IN_SECONDS,
        arena_printf(l->arena,
                     "the sum over its %lld launches; none takes less than moving its bytes, and each "
                     "has the time of an empty one on top",
                     (long long)s->launches));
    add(l, "tokens_per_second", "tokens per second", tokens / step, IN_COUNT, "sequences x positions / step");
    if (t->length_steps > 0)
        add(l, "time_run", "run", step * (double)t->length_steps, IN_SECONDS,
            "steps x step, without evaluation and checkpoints");
}

/* What the papers say of memory: 34 D bytes a block of two sublayers (Korthikanti et al.,
 * arXiv 2205.05198, without the scores), and on top of it what a state wider than that keeps for
 * the backward pass, 2 bytes a value (VWN, arXiv 2511.11238). */
static void add_paper(Lines *l, const Model *m)
{
    const double half = 0.5;
    double plain = 17 * (double)m->reads;
    double state = (double)m->steps_of_state * (double)m->state_width;
    if (!m->steps_of_state || plain <= 0)
        return;
    heading(l, "activations per token as papers count them, 2 bytes a value");
    add(l, "paper_sublayers", "sublayers", plain, IN_BYTES,
        "17 x coordinates that sublayers read: 34 D for a block of two, attention scores not kept");
    if (m->state_width <= m->widest_read) {
        add(l, "paper_state", "state between them", 0, IN_BYTES,
            "as wide as what they read, so it is part of the 34 D");
        return;
    }
    add(l, "paper_state", "half of the states", 2 * half * state, IN_BYTES,
        arena_printf(l->arena,
                     "2 x eta x %lld coordinates x %lld sublayers, eta = 0.5: 4 eta (n/m) D a "
                     "block",
                     (long long)m->state_width, (long long)m->steps_of_state));
    add(l, "paper_percent", "on top", 100 * 2 * half * state / plain, IN_PERCENT, "half of the states / sublayers");
    add(l, "paper_state_all", "states and results", 2 * (state + (double)m->reads), IN_BYTES,
        "all states and all that sublayers return kept: 4 (n/m + 1) D a block");
}

/* ---- printing ---- */

static void buf_seconds(Buf *b, double s)
{
    if (s < 10)
        buf_printf(b, "%.2f ms", 1e3 * s);
    else if (s < 600)
        buf_printf(b, "%.1f s", s);
    else if (s < 2 * 86400)
        buf_printf(b, "%.1f h", s / 3600);
    else
        buf_printf(b, "%.1f days", s / 86400);
}

static void put_value(Table *t, const CostLine *line)
{
    Buf b = buf_new(t->arena);
    if (line->unit == IN_SECONDS)
        buf_seconds(&b, line->value);
    else if (line->unit == IN_DAYS)
        buf_printf(&b, "%.4g PF-days", line->value);
    else if (line->unit == IN_PERCENT)
        buf_printf(&b, "%.2f %%", line->value);
    else
        buf_count(&b, (int64_t)llround(line->value));
    buf_puts(&b, line->unit == IN_FLOP ? " FLOP" : line->unit == IN_BYTES ? " B" : "");
    vec_push(t->arena, &t->cell, (Cell){b.s, true});
    const char *round = line->unit == IN_BYTES ? bytes_text(t->arena, line->value) : "";
    vec_push(t->arena, &t->cell, (Cell){round, true});
}

static void print_lines(Buf *out, const Lines *l)
{
    /* one table for all sections, so that their columns line up; headings stand between its
     * rows */
    Table t = {.arena = l->arena, .columns = 4};
    for (size_t i = 0; i < l->line.n; i++) {
        const CostLine *line = &l->line.v[i];
        if (!line->name)
            continue;
        table_text(&t, line->name);
        put_value(&t, line);
        table_text(&t, line->how);
    }
    Buf rows = buf_new(l->arena);
    table_print(&rows, &t);
    const char *row = rows.s;
    for (size_t i = 0; i < l->line.n; i++) {
        if (!l->line.v[i].name) {
            buf_printf(out, "%s\n", l->line.v[i].how);
            continue;
        }
        const char *end = strchr(row, '\n') + 1;
        buf_put(out, row, (size_t)(end - row));
        row = end;
    }
}

static void print_modules(Buf *out, const Model *m, Arena *arena)
{
    CostGroups groups = model_cost_groups(m, 2, arena);
    Table t = {.arena = arena, .columns = 6};
    static const char *const head[] = {"", "stored", "products", "attention", "causal saving", "elementwise"};
    for (size_t i = 0; i < COUNT_OF(head); i++)
        vec_push(arena, &t.cell, (Cell){head[i], true});
    for (size_t i = 0; i < groups.n; i++) {
        const CostGroup *g = &groups.v[i];
        const char *path = *g->path ? g->path : "(model)";
        if (g->instances > 1 && strstr(path, "[*]"))
            path = arena_printf(arena, "%s x %lld", path, (long long)g->instances);
        table_text(&t, path);
        table_count(&t, g->count.stored);
        table_count(&t, (int64_t)llround(g->work.products));
        table_count(&t, (int64_t)llround(g->work.attention));
        table_count(&t, (int64_t)llround(g->work.causal_saving));
        table_count(&t, (int64_t)llround(g->work.elementwise));
    }
    buf_puts(out, "by module: weights, and FLOP per token\n");
    table_print(out, &t);
}

static void print_json(Buf *out, const Model *m, const Lines *l, const ReportMemory *b, const ReportRanks *ranks)
{
    buf_puts(out, "{\"v\":1,\"event\":\"cost\",\"model\":");
    buf_json_string(out, m->name, strlen(m->name));
    buf_printf(out, ",\"context\":%lld,\"batch_seqs\":%lld,\"training\":%s", (long long)m->context,
               (long long)b->batch_seqs, b->training ? "true" : "false");
    for (size_t i = 0; i < l->line.n; i++) {
        if (!l->line.v[i].name)
            continue;
        buf_printf(out, ",\"%s\":", l->line.v[i].key);
        buf_number(out, l->line.v[i].value);
    }
    if (ranks)
        report_ranks(out, ranks, l->arena, true);
    buf_puts(out, ",\"modules\":[");
    CostGroups groups = model_cost_groups(m, 2, l->arena);
    for (size_t i = 0; i < groups.n; i++) {
        const CostGroup *g = &groups.v[i];
        buf_printf(out, "%s{\"path\":", i ? "," : "");
        buf_json_string(out, g->path, strlen(g->path));
        buf_printf(out, ",\"instances\":%lld,\"stored\":%lld,\"live\":%lld,\"active\":%lld", (long long)g->instances,
                   (long long)g->count.stored, (long long)g->count.live, (long long)g->count.active);
        buf_puts(out, ",\"flop_products\":");
        buf_number(out, g->work.products);
        buf_puts(out, ",\"flop_attention\":");
        buf_number(out, g->work.attention);
        buf_puts(out, ",\"flop_causal_saving\":");
        buf_number(out, g->work.causal_saving);
        buf_puts(out, ",\"flop_elementwise\":");
        buf_number(out, g->work.elementwise);
        buf_puts(out, "}");
    }
    buf_puts(out, "]}\n");
}

void report_cost(Buf *out, Unit *unit, const ReportMemory *memory, const ReportTime *time, const ReportRanks *ranks,
                 bool json)
{
    const Model *m = report_model(unit);
    Lines lines = {.arena = unit->ctx->scratch};
    add_weights(&lines, m);
    add_work(&lines, m);
    add_run(&lines, m, unit->train);
    add_cache(&lines, m);
    add_memory(&lines, memory);
    add_time(&lines, unit->train, time, ranks ? report_exchange_seconds(ranks) : 0);
    add_paper(&lines, m);
    if (json) {
        print_json(out, m, &lines, memory, ranks);
        return;
    }
    buf_printf(out, "%s\n", m->name);
    print_lines(out, &lines);
    if (ranks)
        report_ranks(out, ranks, lines.arena, false);
    print_modules(out, m, lines.arena);
}
