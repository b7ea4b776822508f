/* pipeline.c - see pipeline.h: the function of each row of passes.def, and what runs them in
 * order.
 *
 * In:  a level of passes.def, and what its passes work on.     Out: the same behind all of
 * them. The one idea: this file calls every pass, and nobody else does. A pass that is run
 * without what it needs is a bug.
 */
#include "pipeline.h"
#include "compiler/gpu/device.h"
#include "compiler/pass/join.h"
#include "compiler/pass/recompute.h"
#include "compiler/pass/simplify.h"
#include "plan_build.h"

#include <time.h>

/* ---- counts ---- */

static size_t less(size_t before, size_t after) { return before > after ? before - after : 0; }

static size_t nodes_of(const Graph *g, Op op)
{
    size_t n = 0;
    for (Val v = 1; v < g->node.n; v++)
        n += node_at(g, v)->op == op && !product_is_of_row(g, v);
    return n;
}

static size_t statements_of(const Kernel *k, KStmtKind kind)
{
    size_t n = 0;
    for (size_t i = 0; i < k->stmt.n; i++)
        n += k->stmt.v[i].kind == kind;
    return n;
}

static size_t expressions_of(const Kernel *k, Op op)
{
    size_t n = 0;
    for (Ex e = 1; e < k->ex.n; e++)
        n += kx(k, e)->kind == KX_OP && kx(k, e)->op == op;
    return n;
}

/* Expressions that are computed from others now. */
static size_t changed_expressions(const KEx *before, size_t n, const Kernel *k)
{
    size_t changed = 0;
    for (size_t e = 1; e < n; e++)
        changed += before[e].op != k->ex.v[e].op || memcmp(before[e].in, k->ex.v[e].in, sizeof before[e].in) != 0;
    return changed;
}

/* Loops that stand at another place among the loops, or not any more. */
static size_t changed_loops(const Kernel *a, const Kernel *b)
{
    size_t changed = 0, i = 0, j = 0;
    for (;; i++, j++) {
        while (i < a->stmt.n && a->stmt.v[i].kind != KS_LOOP)
            i++;
        while (j < b->stmt.n && b->stmt.v[j].kind != KS_LOOP)
            j++;
        if (i >= a->stmt.n)
            return changed;
        changed += j >= b->stmt.n || a->stmt.v[i].var != b->stmt.v[j].var;
    }
}

/* ---- GRAPH ---- */

static size_t pass_SIMPLIFY(PassState *s)
{
    size_t before = s->graph->node.n;
    s->graph = graph_simplify(s->graph, s->arena);
    return less(before, s->graph->node.n);
}

static size_t pass_JOIN(PassState *s)
{
    size_t before = nodes_of(s->graph, OP_MATMUL);
    s->graph = graph_join(s->graph, s->arena, s->how);
    return less(before, nodes_of(s->graph, OP_MATMUL));
}

static size_t pass_RELEASE(PassState *s)
{
    size_t before = s->graph->node.n;
    s->graph = graph_release(s->graph, s->arena);
    return less(before, s->graph->node.n);
}

static size_t pass_OPERANDS(PassState *s)
{
    size_t before = nodes_of(s->graph, OP_ROUND_TO);
    s->graph = plan_round_operands(s->graph, s->arena, s->how);
    return less(nodes_of(s->graph, OP_ROUND_TO), before);
}

static size_t pass_BOUNDARIES(PassState *s)
{
    size_t before = nodes_of(s->graph, OP_ROUND_TO);
    s->graph = plan_round_boundaries(s->graph, s->arena, s->how);
    return less(nodes_of(s->graph, OP_ROUND_TO), before);
}

/* ---- GROUPS ---- */

static size_t pass_DECOMPOSE(PassState *s)
{
    size_t before = nodes_of(s->graph, OP_MATMUL);
    s->graph = decompose(s->ctx, s->arena, s->graph, s->how, &s->decomposed);
    return less(before, nodes_of(s->graph, OP_MATMUL));
}

static size_t pass_FUSE(PassState *s)
{
    s->fusion = fuse_graph(s->ctx, s->arena, s->graph, s->how, s->decomposed.copied, s->members, lower_is_flat);
    return s->fusion->order.n;
}

static size_t pass_RESULTS(PassState *s) { return plan_choose_results(s->build, s->fusion, s->how); }

static size_t pass_FIT(PassState *s)
{
    size_t large = plan_find_large(s->build, &s->decomposed, &s->members);
    s->again = large > 0;
    return large;
}

/* ---- KERNEL, BUILD, SCHEDULE ---- */

static void build_attempt(void *user, struct Lower *l, Dim rows)
{
    PassState s = *(const PassState *)user;
    s.lower = l;
    s.rows = rows;
    pipeline_run(&s, LEVEL_BUILD);
}

static void schedule_attempt(void *user, Kernel *k)
{
    PassState s = *(const PassState *)user;
    s.kernel = k;
    k->device.tried = NULL; /* if anything was mapped it was a kernel without statements */
    s.facts |= IS_BUILT;
    pipeline_run(&s, LEVEL_SCHEDULE);
}

static PassState of_kernel(Kernel *k, PassWatch *watch, uint32_t facts)
{
    return (PassState){
        .ctx = k->ctx, .arena = k->arena, .target = k->target, .watch = watch, .facts = facts, .kernel = k};
}

/* What the passes of a level have changed on trial is kept, for when the kernel is. */
static void note_level(const PassState *s, PassLevel level, KTried *tried)
{
    for (int id = 0; id < PASSES && s->watch; id++)
        if (pass_rows[id].level == level)
            tried->changed[id] = s->watch->count[id].last;
}

static void try_level(PassState *s, PassLevel level, KTried *tried)
{
    pipeline_run(s, level);
    note_level(s, level, tried);
}

/* As far as the cost of an attempt is counted. What lanes do stands outside of loops, and is
 * not counted. If the attempt is kept nobody makes this again. */
static const Kernel *map_attempt(void *user, Kernel *k)
{
    const PassState *outer = user;
    if (k->device.tried)
        return &k->device.tried->mapped;
    KTried *tried = NEW(k->arena, KTried);
    tried->arranged = *k;
    tried->changed = outer->watch ? NEW_ARRAY(k->arena, size_t, PASSES) : NULL;
    PassState s = of_kernel(&tried->arranged, outer->watch, IS_CHECKED);
    s.trial = true;
    try_level(&s, LEVEL_ARRANGE, tried);
    try_level(&s, LEVEL_CHOOSE, tried);
    tried->mapped = s.looked ? *s.looked : tried->arranged;
    tried->choice = *s.choice;
    s.kernel = &tried->mapped;
    if (s.looked)
        note_level(&s, LEVEL_THREADS, tried);
    else
        try_level(&s, LEVEL_THREADS, tried);
    s.facts |= IS_MAPPED | IS_SPILLED;
    try_level(&s, LEVEL_FINISH, tried);
    k->device.tried = tried;
    return &tried->mapped;
}

static size_t pass_UNROLL(PassState *s)
{
    const LowerPasses passes = {s, build_attempt, schedule_attempt, map_attempt};
    lower_group(s->lowered, s->arena, s->fusion, s->group, s->same, &passes);
    s->kernel = s->lowered->kernel;
    s->facts |= s->kernel ? IS_SCHEDULED : IS_NOTHING;
    return s->lowered->attempts;
}

static size_t pass_LOWER(PassState *s)
{
    lower_build(s->lower, s->rows);
    return lower_expressions(s->lower);
}

static size_t pass_RECIPROCALS(PassState *s)
{
    size_t before = expressions_of(s->kernel, OP_DIV);
    kernel_share_reciprocals(s->kernel);
    return less(before, expressions_of(s->kernel, OP_DIV));
}

static size_t pass_SUMS(PassState *s)
{
    Kernel *k = s->kernel;
    size_t n = k->ex.n;
    KEx *before = s->watch ? memcpy(NEW_ARRAY(k->arena, KEx, n), k->ex.v, n * sizeof *before) : NULL;
    kernel_order_sums(k);
    return before ? changed_expressions(before, n, k) : 0;
}

static size_t pass_SCHEDULE(PassState *s)
{
    kernel_schedule(s->kernel);
    return s->kernel->stmt.n;
}

static size_t pass_VECTORS(PassState *s)
{
    size_t n = 0;
    kernel_find_vectors(s->kernel);
    for (size_t i = 0; i < s->kernel->stmt.n; i++)
        n += s->kernel->stmt.v[i].vector;
    return n;
}

static size_t pass_PREFETCH(PassState *s)
{
    kernel_put_prefetches(s->kernel);
    return s->kernel->prefetch.n;
}

static size_t pass_REST(PassState *s)
{
    size_t n = 0;
    kernel_split_vectors(s->kernel);
    for (size_t i = 0; i < s->kernel->stmt.n && s->watch; i++)
        n += s->kernel->stmt.v[i].rest;
    return n;
}

static size_t pass_CHECK(PassState *s)
{
    kernel_verify(s->kernel);
    return s->kernel->stmt.n;
}

/* ---- ARRANGE to FINISH ---- */

static size_t pass_TILES(PassState *s)
{
    size_t n = 0;
    const Kernel from = *s->kernel;
    kernel_place_tiles(s->kernel, &from);
    for (size_t b = 0; b < s->kernel->buffer.n; b++)
        n += s->kernel->buffer.v[b].tile && s->kernel->buffer.v[b].device.slot >= 0;
    return s->kernel->product.n ? n : 0;
}

static size_t pass_NESTS(PassState *s)
{
    Kernel before = *s->kernel;
    if (s->watch)
        before.stmt.v =
            memcpy(NEW_ARRAY(s->arena, KStmt, before.stmt.n + 1), before.stmt.v, before.stmt.n * sizeof *before.stmt.v);
    kernel_interchange_nests(s->kernel);
    return s->watch ? changed_loops(&before, s->kernel) : 0;
}

/* The kernel of a choice that is looked at. */
static void try_threads(void *user, Kernel *to, const Kernel *from, const KMappingChoice *choice)
{
    PassState *outer = user;
    KMappingChoice own = *choice;
    *to = *from;
    PassState s = of_kernel(to, outer->watch, outer->facts | IS_CHOICE);
    s.trial = true;
    s.choice = &own;
    pipeline_run(&s, LEVEL_THREADS);
    outer->looked = memcpy(NEW(s.arena, Kernel), to, sizeof *to);
}

static size_t pass_CHOOSE(PassState *s)
{
    const KTrial trial = {try_threads, s};
    size_t wide = 0;
    if (s->choice)
        return 0;
    s->choice = NEW(s->arena, KMappingChoice);
    if (!kernel_choose_threads(s->choice, s->kernel, &trial))
        s->looked = NULL;
    for (size_t i = 0; i < s->choice->n; i++)
        wide += s->choice->width[i] > 1;
    return wide;
}

static size_t pass_VARIANTS(PassState *s) { return kernel_cache_settle(s->cache, s->class); }

static size_t pass_SIZES(PassState *s) { return kernel_cache_find_sizes(s->cache, s->class); }

static size_t pass_MAP(PassState *s)
{
    const Kernel from = *s->kernel;
    kernel_map_threads(s->kernel, &from, s->choice);
    return s->watch ? statements_of(s->kernel, KS_BARRIER) : 0;
}

static size_t pass_SPILL(PassState *s)
{
    size_t n = 0;
    kernel_spill_arrays(s->kernel, s->kernel->device.mapping.row_threads, s->kernel->device.mapping.units);
    for (size_t i = 0; i < s->kernel->array.n; i++)
        n += s->kernel->array.v[i].spilled;
    return n;
}

static size_t pass_SWIZZLE(PassState *s)
{
    size_t n = 0;
    kernel_swizzle(s->kernel);
    for (size_t i = 0; i < s->kernel->array.n; i++)
        n += s->kernel->array.v[i].swizzled != 0;
    return n;
}

static size_t pass_REGISTERS(PassState *s)
{
    kernel_count_registers(s->kernel, s->choice->index);
    return s->kernel->device.mapping.pressure;
}

static size_t pass_CUT(PassState *s)
{
    kernel_cut_products(s->kernel);
    return s->kernel->product.n;
}

static size_t pass_GRID(PassState *s)
{
    kernel_choose_grid(s->kernel);
    return (size_t)kernel_shared_bytes(s->kernel);
}

static size_t pass_HOLD(PassState *s)
{
    size_t n = 0;
    kernel_hold(s->kernel);
    for (size_t i = 0; i < s->kernel->stmt.n && s->watch; i++)
        n += s->kernel->stmt.v[i].step != 0;
    return n;
}

static size_t pass_PAIR(PassState *s)
{
    size_t before = s->kernel->stmt.n;
    kernel_pair_products(s->kernel);
    return less(before, s->kernel->stmt.n);
}

static size_t pass_ROWS(PassState *s)
{
    kernel_begin_rows(s->kernel);
    return s->kernel->prefetch.n;
}

static size_t pass_TOTALS(PassState *s)
{
    size_t n = 0;
    kernel_join_totals(s->kernel);
    for (size_t i = 0; i < s->kernel->stmt.n; i++)
        n += s->kernel->stmt.v[i].totals ? kernel_totals(s->kernel, &s->kernel->stmt.v[i])->n : 0;
    return n;
}

static size_t pass_LANES(PassState *s)
{
    kernel_use_lanes(s->kernel);
    return s->kernel->device.column.n;
}

static size_t pass_LOADED(PassState *s)
{
    size_t n = 0;
    kernel_find_loaded(s->kernel);
    for (Ex e = 1; e < s->kernel->ex.n && s->watch; e++)
        n += kx(s->kernel, e)->kind == KX_SELECT && kx(s->kernel, e)->i;
    return n;
}

static size_t pass_ELEMENTS(PassState *s)
{
    size_t n = 0;
    kernel_find_elements(s->kernel);
    for (size_t i = 0; i < s->kernel->stmt.n && s->watch; i++)
        n += s->kernel->stmt.v[i].width > 1 && !kernel_opens(&s->kernel->stmt.v[i]);
    return n;
}

static size_t pass_ARGUMENTS(PassState *s)
{
    kernel_find_arguments(s->kernel, s->slots);
    return s->kernel->argument.n;
}

static size_t pass_RESIDENT(PassState *s)
{
    kernel_choose_resident(s->kernel);
    return s->kernel->device.grid.at_once;
}

static size_t pass_RACES(PassState *s)
{
    kernel_verify_mapping(s->kernel);
    return s->kernel->stmt.n;
}

static size_t pass_PRINT(PassState *s)
{
    emit_kernel(s->printed, s->kernel, s->dialect, s->about);
    return s->printed->length;
}

/* ---- PLAN ---- */

static size_t pass_SAVE(PassState *s) { return plan_save_overwritten(s->build); }

static size_t pass_ADDED(PassState *s)
{
    size_t n = 0;
    plan_choose_added(s->build);
    for (Val v = 1; v < s->build->g->node.n; v++)
        n += s->build->added[v] && node_at(s->build->g, v)->op == OP_ADD;
    return n;
}

static size_t pass_CLASSES(PassState *s) { return plan_find_classes(s->build); }

static size_t pass_COPIES(PassState *s)
{
    size_t n = 0;
    plan_choose_copies(s->build, s->how->layout);
    for (size_t i = 0; s->build->cast && i < s->fusion->group.n; i++)
        n += s->build->cast[i];
    return n;
}

static size_t pass_LAUNCH(PassState *s) { return plan_launch_groups(s->build); }

static size_t pass_OUTPUTS(PassState *s)
{
    plan_finish_outputs(s->build);
    return s->build->plan->n_result;
}

static size_t pass_GATHER(PassState *s)
{
    size_t before = s->build->launch.n;
    plan_gather_and_place(s->build, s->how);
    return less(before, s->build->launch.n);
}

/* ---- dumps and verifiers ---- */

static void dump_graph(Buf *out, const PassState *s) { graph_dump(out, s->graph); }
static void dump_groups(Buf *out, const PassState *s) { fuse_dump(out, s->fusion); }
static void dump_kernel(Buf *out, const PassState *s) { put_with_reasons(out, s->kernel); }
static void dump_text(Buf *out, const PassState *s) { buf_put(out, s->printed->text, s->printed->length); }

static void dump_plan(Buf *out, const PassState *s)
{
    Plan p = *s->build->plan;
    plan_seal(s->build, &p);
    plan_dump(out, &p);
}

static void verify_graph(const PassState *s) { graph_verify(s->graph); }
static void verify_kernel(const PassState *s) { kernel_verify(s->kernel); }

static void verify_plan(const PassState *s)
{
    Plan p = *s->build->plan;
    plan_seal(s->build, &p);
    plan_verify(s->ctx, &p);
}
#define dump_none   NULL
#define verify_none NULL

/* ---- the rows ---- */

const PassRow pass_rows[PASSES] = {
#define FACT(...)
#define PASS(ID, NAME, LEVEL, WHERE, NEEDS, GIVES, THINGS, DUMP, VERIFY, SAYS)                                         \
    [PASS_##ID] = {.name = NAME,                                                                                       \
                   .things = THINGS,                                                                                   \
                   .says = SAYS,                                                                                       \
                   .level = LEVEL_##LEVEL,                                                                             \
                   .where = ON_##WHERE,                                                                                \
                   .needs = IS_##NEEDS,                                                                                \
                   .gives = IS_##GIVES,                                                                                \
                   .run = pass_##ID,                                                                                   \
                   .dump = dump_##DUMP,                                                                                \
                   .verify = verify_##VERIFY},
#include "passes.def"
};

const char *const fact_words[FACTS] = {
#define FACT(ID, WORDS) [FACT_##ID] = WORDS,
#define PASS(...)
#include "passes.def"
};

bool pass_applies(PassId id, const PassState *s)
{
    const PlanOptions *how = s->how;
    bool half = how && how->half && !(s->graph && s->graph->exact);
    switch (pass_rows[id].where) {
    case ON_THREADS: return s->target->threads;
    case ON_VECTORS: return !s->target->threads;
    case ON_HALF: return half;
    case ON_HALF_THREADS: return half && s->target->half_kernels;
    case ON_JOINS: return s->target->joins_launches;
    case ON_LAYOUT: return s->target->joins_launches && how && how->layout;
    default: return true;
    }
}

static _Noreturn void not_ready(const PassState *s, PassId id)
{
    Buf words = buf_new(s->arena);
    uint32_t lacks = pass_rows[id].needs & ~s->facts;
    for (int f = 0; f < FACTS; f++)
        if (lacks & 1u << f)
            buf_printf(&words, "%s%s", words.n ? ", " : "", fact_words[f]);
    vwn_bug(s->ctx, "the pass `%s` is run before there is what it needs: %s", pass_rows[id].name, words.s);
}

static const char *dump_of(const PassState *s, const PassRow *row)
{
    Buf out = buf_new(s->arena);
    row->dump(&out, s);
    return out.s;
}

/* What a pass makes, as text, if there is something before it and behind it. */
static void keep_dump(PassState *s, const PassRow *row, const char *before)
{
    Buf out = buf_new(s->arena);
    bool of_kernel = row->level > LEVEL_GROUPS && row->level < LEVEL_TEXT;
    if (before)
        put_with_removed(&out, s->arena, before, dump_of(s, row));
    else
        row->dump(&out, s);
    if (of_kernel)
        s->kernel->shown = out.s;
    else
        s->watch->text = out.s;
}

static double now(void) { return (double)clock() / CLOCKS_PER_SEC; }

static void run_watched(PassState *s, PassId id)
{
    const PassRow *row = &pass_rows[id];
    PassCount *count = &s->watch->count[id];
    bool shows = s->watch->show == id && !s->trial && row->dump;
    bool compares = shows && (row->dump == dump_graph || (row->dump == dump_kernel && s->kernel));
    const char *before = compares ? dump_of(s, row) : NULL;
    double outer = s->watch->inner, began = now();
    s->watch->inner = 0;
    size_t changed = row->run(s);
    double took = now() - began;
    count->seconds += took - s->watch->inner;
    s->watch->inner = outer + took;
    count->runs++;
    count->trials += s->trial;
    count->changed += s->trial ? 0 : changed;
    count->last = changed;
    if (row->verify && !s->trial)
        row->verify(s);
    if (shows && !(row->dump == dump_kernel && !s->kernel))
        keep_dump(s, row, before);
}

void pipeline_run(PassState *s, PassLevel level)
{
    for (int id = 0; id < PASSES; id++) {
        if (pass_rows[id].level != level || !pass_applies((PassId)id, s))
            continue;
        if (pass_rows[id].needs & ~s->facts)
            not_ready(s, (PassId)id);
        if (s->watch)
            run_watched(s, (PassId)id);
        else
            pass_rows[id].run(s);
        s->facts |= pass_rows[id].gives;
        if (level == LEVEL_KERNEL && !s->kernel) /* the group is to be made smaller */
            return;
    }
}

void pipeline_groups(PassState *s)
{
    const PassState start = *s;
    for (;;) {
        pipeline_run(s, LEVEL_GROUPS);
        pipeline_run(s, LEVEL_FIT);
        if (!s->again)
            return;
        size_t members = s->members; /* fewer, or products are left to the library */
        fuse_free(s->fusion);
        *s = start;
        s->members = members;
    }
}

Fusion *pipeline_look_at_groups(const Graph *g, Arena *arena, const PlanOptions *how, Decomposed *d)
{
    PassState s = {.ctx = g->ctx,
                   .arena = arena,
                   .how = how,
                   .target = plan_target(how),
                   .watch = how->watch,
                   .trial = true,
                   .facts = IS_GRAPH,
                   .graph = g,
                   .members = MEMBERS_MAX};
    pipeline_run(&s, LEVEL_GROUPS);
    *d = s.decomposed;
    return s.fusion;
}

/* ---- what is asked of them ---- */

Graph *plan_graph(const Graph *g, Arena *arena, const PlanOptions *how)
{
    PassState s = {.ctx = g->ctx,
                   .arena = arena,
                   .how = how,
                   .target = plan_target(how),
                   .watch = how->watch,
                   .facts = IS_GRAPH,
                   .graph = g};
    pipeline_run(&s, LEVEL_GRAPH);
    return (Graph *)s.graph;
}

static PassState of_group(const Fusion *f, Arena *arena, uint32_t group, const Val *same, PassWatch *watch)
{
    return (PassState){.ctx = f->ctx,
                       .arena = arena,
                       .target = f->target,
                       .watch = watch,
                       .facts = IS_GRAPH | IS_GROUPED,
                       .fusion = (Fusion *)f,
                       .group = group,
                       .same = same};
}

void pipeline_lower(Lowered *out, Arena *arena, const Fusion *f, uint32_t group, const Val *same, PassWatch *watch)
{
    PassState s = of_group(f, arena, group, same, watch);
    s.lowered = out;
    pipeline_run(&s, LEVEL_KERNEL);
    if (s.kernel && !s.target->threads) /* a device's has no threads yet */
        pipeline_run(&s, LEVEL_PROOF);
}

void pipeline_count(Counted *out, Arena *arena, const Fusion *f, uint32_t group, const Val *same, PassWatch *watch)
{
    PassState s = of_group(f, arena, group, same, watch);
    const LowerPasses passes = {&s, build_attempt, schedule_attempt, map_attempt};
    s.trial = true;
    lower_count(out, arena, f, group, same, &passes);
}

/* What an attempt has left, unless somebody wants to see it made. */
static const KTried *tried(const Kernel *k, const PassWatch *watch)
{
    return watch && watch->show < PASSES ? NULL : k->device.tried;
}

/* What was on trial is kept. */
static void keep_level(const KTried *t, PassWatch *watch, PassLevel level)
{
    for (int id = 0; id < PASSES && watch && t->changed; id++)
        if (pass_rows[id].level == level) {
            watch->count[id].trials--;
            watch->count[id].changed += t->changed[id];
        }
}

void pipeline_arrange(Kernel *to, const Kernel *from, PassWatch *watch)
{
    if (tried(from, watch)) {
        *to = from->device.tried->arranged;
        to->device.tried = from->device.tried;
        keep_level(from->device.tried, watch, LEVEL_ARRANGE);
        return;
    }
    *to = *from;
    PassState s = of_kernel(to, watch, IS_CHECKED);
    pipeline_run(&s, LEVEL_ARRANGE);
}

void pipeline_choose(KMappingChoice *to, const Kernel *arranged, PassWatch *watch)
{
    Kernel k = *arranged, mapped;
    if (tried(arranged, watch)) {
        *to = arranged->device.tried->choice;
        to->index = arranged->device.tried->mapped.device.mapping.index;
        keep_level(arranged->device.tried, watch, LEVEL_CHOOSE);
        return;
    }
    PassState s = of_kernel(&k, watch, IS_CHECKED | IS_TILES | IS_NESTS);
    pipeline_run(&s, LEVEL_CHOOSE);
    try_threads(&s, &mapped, arranged, s.choice);
    *to = *s.choice;
    to->index = mapped.device.mapping.index;
}

/* Is this the choice that an attempt has mapped it with? */
static bool is_choice_of(const KTried *t, const KMappingChoice *choice)
{
    KMappingChoice own = t->choice;
    own.index = t->mapped.device.mapping.index;
    return !choice || kernel_mapping_same(&own, choice);
}

void pipeline_threads(Kernel *to, const Kernel *arranged, const KMappingChoice *choice, const ArgumentSlots *slots,
                      PassWatch *watch, bool trial)
{
    const KTried *t = tried(arranged, watch);
    bool done = t && is_choice_of(t, choice);
    KMappingChoice own = choice ? *choice : (KMappingChoice){0};
    *to = done ? t->mapped : *arranged;
    PassState s = of_kernel(to, watch, IS_CHECKED | IS_TILES | IS_NESTS | (choice ? IS_CHOICE : 0));
    s.choice = choice ? &own : NULL;
    s.slots = slots;
    s.trial = trial;
    if (!choice && done)
        keep_level(t, watch, LEVEL_CHOOSE);
    else if (!choice)
        pipeline_run(&s, LEVEL_CHOOSE);
    if (done && !trial) {
        keep_level(t, watch, LEVEL_THREADS);
        keep_level(t, watch, LEVEL_FINISH);
    } else if (!done) {
        pipeline_run(&s, LEVEL_THREADS);
        pipeline_run(&s, LEVEL_FINISH);
    }
    s.facts |= IS_PAIRED;
    pipeline_run(&s, LEVEL_TOGETHER);
    if (!trial)
        pipeline_run(&s, LEVEL_PROOF);
}

void pipeline_map(Kernel *to, const Kernel *from, const KMappingChoice *choice)
{
    Kernel arranged;
    pipeline_arrange(&arranged, from, NULL);
    pipeline_threads(to, &arranged, choice, NULL, NULL, true);
}

void pipeline_vectors(Kernel *k)
{
    bool said = kernel_has_vectors(k) || (k->product.n && k->product.v[0].way.a);
    if (!said)
        pass_VECTORS(&(PassState){.ctx = k->ctx, .arena = k->arena, .target = k->target, .kernel = k});
}

void pipeline_rest(Kernel *k) { pass_REST(&(PassState){.kernel = k}); }

void pipeline_arguments(Kernel *k) { pass_ARGUMENTS(&(PassState){.kernel = k}); }

void pipeline_print(Printed *out, const Kernel *k, const Dialect *d, const char *about, PassWatch *watch)
{
    Kernel own = *k;
    PassState s = of_kernel(&own, watch, IS_CHECKED | IS_ELEMENTS | (k->numbered ? IS_ARGUMENTS : 0));
    s.printed = out;
    s.dialect = d;
    s.about = about;
    if (!k->numbered)
        pipeline_run(&s, LEVEL_PROOF);
    pipeline_run(&s, LEVEL_TEXT);
}

void pipeline_class(struct KernelCache *cache, struct VariantClass *class, const Target *target, PassWatch *watch)
{
    PassState s = {.target = target, .watch = watch, .facts = IS_CHOICE, .cache = cache, .class = class};
    pipeline_run(&s, LEVEL_CLASS);
}
