/* attempts.c - a group as a kernel: built, and built again until it is one that a compiler should be given.
 *
 * In:  a group of Fusion.     Out: a scheduled Kernel, or that the group is to be made smaller.
 * The one idea: whether loops are to be split, and how much may be written out, is only known of a kernel that is there. So kernels are built,
 * looked at, and built anew with less; the best one is kept.
 */
#include "compiler/gpu/device.h"
#include "lower_build.h"

enum { ROUNDS_MAX = 12 };

enum { FLAT_ELEMENTS = 1024, FLAT_ROWS_MIN = 64 };

static int64_t partitions_wanted(int64_t rows) { return rows >= 1024 ? 32 : rows / 32 + 1; }

int64_t lower_partitions(int64_t rows)
{
    int64_t want = partitions_wanted(rows), chunk = (rows + want - 1) / want;
    return (rows + chunk - 1) / chunk;
}

/* A fixed number of partitions, a function of the number of rows alone. A flat loop has them too,
 * so that the same elements are always done as vectors and as the remainder of one. */
static void set_partitions(Kernel *k, const Target *target)
{
    int64_t rows = ix_dim_at(k->ix, k->rows);
    int64_t want = target->threads ? kernel_partitions(k, rows) : partitions_wanted(rows);
    k->chunk = (rows + want - 1) / want;
    if (k->flat) {
        int64_t each = FLAT_ELEMENTS / (int64_t)k->root.n / FLAT_ROWS_MIN * FLAT_ROWS_MIN;
        k->chunk = target->flat_rows      ? kernel_flat_rows(k, target->flat_rows, rows)
                   : each > FLAT_ROWS_MIN ? each
                                          : FLAT_ROWS_MIN;
    }
    k->partitions = (rows + k->chunk - 1) / k->chunk;
    k->part = ix_part(k->ix, DIM(k->partitions));
}

static bool has_loops(const Kernel *k)
{
    for (size_t e = 1; e < k->ex.n; e++)
        if (k->ex.v[e].kind == KX_REDUCE)
            return true;
    for (size_t r = 0; r < k->root.n; r++)
        if (k->root.v[r].nest.n)
            return true;
    return false;
}

/* More than this is written as loops. Those are far slower where coefficients are computed inside them: the boundary of a (4,8) connection,
 * 512 wide, took 48 times as long forward and 17 times backward. Kernels without any loop, of models a few elements wide, are not worth
 * the compiler's time, but for long computations with few numbers (fuse_chains.c). */
enum { EXPRESSIONS_MAX = 6000, EXPRESSIONS_FLAT = 600 };
/* So many statements are half a megabyte of text, with few expressions that hang on each other; the longest kernel of an
 * example has 6,500. */
enum { STATEMENTS_MAX = 7500 };

/* With shared loops; what is found to be an argument on the way may change what was built before. What was built
 * since `mark` is given back. */
static void build_shared(Lower *l, Dim rows, ArenaMark mark)
{
    l->searching = false;
    for (uint32_t before = ~l->arguments; before != l->arguments;) {
        before = l->arguments;
        arena_reset(l->arena, mark);
        l->passes->build(l->passes->user, l, rows);
    }
}

/* Where it is not known for which of several sites a loop is to be split, every site gets loops of its own, and the
 * kernel is built to find the splits. Returns whether there are new ones; if not, l is as it was. */
static bool search_splits(Lower *l, Dim rows)
{
    bool row_work;
    Lower shared = *l;
    ArenaMark mark = arena_mark(l->arena);
    l->searching = true;
    l->passes->build(l->passes->user, l, rows);
    bool found = lower_find_splits(l, &row_work);
    arena_reset(l->arena, mark);
    if (!found)
        *l = shared;
    return found;
}

/* A kernel of more expressions than this is given up (half a million take 3 s), unless it is the last attempt. A group
 * that fusion can make smaller is made smaller instead. */
enum { BUILT_LIMIT = 100000 };

/* Without pieces of loops where they were too many. */
static void build_unsplit(Lower *l, Dim rows, ArenaMark mark)
{
    l->unsplit = true;
    for (size_t i = 0; i < l->site.n; i++)
        l->site.v[i].segment.n = 0;
    build_shared(l, rows, mark);
}

/* Builds the kernel again as long as some loop is to be split. */
static void build_all(Lower *l, Dim rows)
{
    bool row_work;
    ArenaMark mark = arena_mark(l->arena);
    build_shared(l, rows, mark);
    for (int round = 0; round < ROUNDS_MAX && !(round && lower_is_beyond(l)); round++) {
        l->unsure = false;
        bool found = lower_find_splits(l, &row_work);
        if (l->unsure && search_splits(l, rows))
            found = true;
        if (!found)
            break;
        build_shared(l, rows, mark);
        if (l->k->ix->overfull && !l->unsplit)
            build_unsplit(l, rows, mark);
    }
}

/* A group that reads places and constants alone makes a table of angles or the like. How many angles there are is no
 * structure: heads of all sizes have one text. */
static bool is_table(const Fusion *f, uint32_t group)
{
    const Group *gr = &f->group.v[group];
    bool places = false;
    for (size_t m = 0; m < gr->member.n; m++) {
        const Node *n = node_at(f->g, gr->member.v[m]);
        if (!op_is_map((Op)n->op))
            return false;
        for (size_t k = 0; k < n->n_in; k++) {
            Val u = fuse_base(f, n->in[k]);
            Op op = (Op)node_at(f->g, u)->op;
            bool place = fuse_is_place(f->g, u);
            places = places || place;
            if (!place && op != OP_CONST && op != OP_FILL && f->home[u] != (int32_t)group)
                return false;
        }
    }
    return places;
}

static Lower lower_start(Arena *arena, Arena *splits, const Fusion *f, uint32_t group, const Val *same,
                         const LowerPasses *passes)
{
    const uint32_t small = ((uint32_t)2 << LITERAL_MAX) - 4; /* 2 and more */
    bool table = is_table(f, group);
    return (Lower){.f = f,
                   .g = f->g,
                   .group = group,
                   .same = same,
                   .passes = passes,
                   .arena = arena,
                   .splits = splits,
                   .table = table,
                   .arguments = table ? small : 0};
}

/* what a dump calls them */
static void name_arguments(Lower *l)
{
    for (size_t i = 0; i < l->k->buffer.n; i++)
        l->k->buffer.v[i].name = node_at(l->g, l->k->buffer.v[i].value)->name;
    for (size_t i = 0; i < l->k->scalar.n; i++)
        l->k->scalar.v[i].name = node_at(l->g, l->k->scalar.v[i].origin)->name;
}

static void schedule(Lower *l)
{
    l->k->flat = l->sink.n == 0 && !has_loops(l->k);
    if (l->sink.n || l->k->flat)
        set_partitions(l->k, l->f->target);
    name_arguments(l);
    l->k->device.shared = l->f->shared;
    l->k->device.tensor = l->f->target->threads && l->f->in_16bit;
    l->passes->schedule(l->passes->user, l->k);
}

/* How many times the values that there are registers for does a thread of a device hold? `time`: its operations of one row, as many
 * times over. 0, 0: no device. */
static double register_pressure(const Lower *l, double *time)
{
    if (!l->f->target->threads)
        return *time = 0;
    const Kernel *mapped = l->passes->map(l->passes->user, l->k);
    const Tuned *tuned = l->f->target->tuned; /* of 255 registers the rest is what the compiler moves ahead */
    double times = (double)mapped->device.mapping.pressure /
                   (double)(mapped->device.mapping.by_row ? tuned->live_by_row : tuned->live_written_out);
    *time = kernel_thread_operations(mapped) * (times > 1 ? times : 1);
    return times;
}

/* An attempt that writes out less is given up at so many times the expressions of the kernel kept so far (LONG: of one
 * that is kept although it is too long). While its loops are not split yet it may need ten times as many as it ends with. */
enum { BUILT_MOST = 16, BUILT_MOST_LONG = 4 };

/* The most loads and stores in one vector loop whose elements are not contiguous along it. */
static int scattered(const Kernel *k)
{
    int most = 0, n[NEST_MAX + 3] = {0}, depth = 0;
    IVar lane[NEST_MAX + 3] = {0};
    for (size_t i = 0; i < k->stmt.n; i++) {
        const KStmt *s = &k->stmt.v[i];
        if (kernel_opens(s)) {
            depth++;
            n[depth] = 0;
            lane[depth] = !s->simd || s->vector ? 0 : s->kind == KS_ROWS ? k->row : s->var;
        } else if (s->kind == KS_END) {
            most = n[depth] > most ? n[depth] : most;
            depth--;
        } else if (lane[depth]) {
            bool load = s->kind == KS_LET && kx(k, s->ex)->kind == KX_LOAD;
            bool store = s->kind == KS_STORE || s->kind == KS_SINK;
            int64_t slope = 0;
            Ix at = load ? kx(k, s->ex)->ix : store ? k->root.v[s->root].at : 0;
            n[depth] += (load || store) && !(ix_slope(k->ix, at, lane[depth], &slope) && slope >= 0 && slope <= 1);
        }
    }
    return most;
}

/* On a device: does nothing but elements, and threads of a warp touch places far apart? What is written out is a loop that they
 * had better share. */
static bool is_apart(const Lower *l)
{
    bool sums = l->sink.n > 0;
    for (size_t e = 1; e < l->k->ex.n; e++)
        sums = sums || l->k->ex.v[e].kind == KX_REDUCE;
    return l->f->target->threads && !sums && scattered(l->k) > l->f->target->tuned->scattered_elements;
}

/* Nothing was found that a compiler should be given, and the group may be made smaller. */
static bool is_split(const Fusion *f, uint32_t group, const Lower *l)
{
    bool found = l->k && !l->k->ix->overfull && l->k->ex.n <= EXPRESSIONS_MAX && l->k->stmt.n <= STATEMENTS_MAX;
    return fuse_may_split(f, group) && !(found && !lower_has_low_utilisation(l->k, f, group, l->passes));
}

/* A scheduled kernel, not yet verified. Of one that is long or under register pressure less is written out, as long as that makes it
 * no longer, and a thread that has room for all values takes no longer than it did without: where sums of a few elements hang on each
 * other a matrix that is half written out, or a loop in which each sum runs again, is many times as long as what it was to relieve. */
static Lower lower_scheduled(Arena *arena, Arena *splits, const Fusion *f, uint32_t group, const Val *same,
                             const LowerPasses *passes, size_t *attempts)
{
    Lower start = lower_start(arena, splits, f, group, same, passes), kept = {0};
    bool scheduled = false; /* `kept` is */
    double longest = 0;     /* which may take so long, if only its register pressure is high; 0: any time */
    bool may_split = fuse_may_split(f, group);
    int unroll = f->target->product_unroll;
    start.budget = unroll && lower_has_products(&start) ? unroll : UNROLL_MAX;
    for (bool last = false; !last; start.budget = start.budget / 6 ? start.budget / 6 : 1) {
        /* Memory is where all the matrices that are too many for a thread of a device fit. */
        last = f->target->threads ? start.budget == 1 : start.budget / 6 == 0;
        ArenaMark mark = arena_mark(arena);
        Lower l = start;
        ++*attempts;
        l.most = kept.k               ? (scheduled ? BUILT_MOST : BUILT_MOST_LONG) * kept.k->ex.n
                 : last && !may_split ? 0
                                      : BUILT_LIMIT;
        l.most = l.most < BUILT_LIMIT ? l.most : BUILT_LIMIT;
        build_all(&l, f->group.v[group].rows);
        if (l.k->ix->overfull && !kept.k) { /* less written out is more loops */
            if (!may_split)
                vwn_bug(f->ctx, "too many loops in one kernel");
            return l;
        }
        bool better = !l.k->ix->overfull && (!l.most || l.k->ex.n <= (kept.k ? kept.k->ex.n : l.most));
        bool much = has_loops(l.k) || f->group.v[group].chain;
        bool is_long = !last && l.k->ex.n > (much ? EXPRESSIONS_MAX : EXPRESSIONS_FLAT);
        if (better && !is_long) {
            schedule(&l);
            bool slow = f->target->scattered && scattered(l.k) > f->target->scattered; /* to compile */
            double time, pressure = register_pressure(&l, &time);
            slow = slow || is_apart(&l);
            bool far_less =
                scheduled && 8 * l.k->stmt.n <= kept.k->stmt.n; /* text, which may take half as long again */
            better = !scheduled ||
                     (l.k->stmt.n <= 2 * kept.k->stmt.n && (!longest || time <= longest * (far_less ? 1.5 : 1)));
            if (better && (last || (!slow && pressure <= 1)))
                return l;
            longest = better ? (slow ? 0 : time) : longest;
        }
        if (better && !(is_long && scheduled)) {
            kept = l;
            scheduled = !is_long;
        } else {
            arena_reset(arena, mark);
        }
    }
    if (!scheduled && kept.k && !is_split(f, group, &kept))
        schedule(&kept);
    return kept;
}

size_t lower_expressions(const Lower *l) { return l->k->ex.n; }

static int64_t launch_rows(const Kernel *k) { return k->part ? k->partitions : ix_dim_at(k->ix, k->rows); }

void lower_group(Lowered *out, Arena *arena, const Fusion *f, uint32_t group, const Val *same,
                 const LowerPasses *passes)
{
    size_t attempts = 0;
    Arena *splits = arena_new(f->ctx);
    Lower l = lower_scheduled(arena, splits, f, group, same, passes, &attempts);
    arena_free(splits);
    *out = (Lowered){.is_long = is_split(f, group, &l), .attempts = attempts};
    if (out->is_long)
        return;
    out->rows = launch_rows(l.k);
    for (size_t i = 0; i < l.sink.n; i++)
        vec_push(arena, &out->sink, l.sink.v[i]);
    out->kernel = l.k;
    out->work = kernel_work(l.k);
}

void lower_count(Counted *out, Arena *arena, const Fusion *f, uint32_t group, const Val *same,
                 const LowerPasses *passes)
{
    size_t attempts = 0;
    ArenaMark mark = arena_mark(arena);
    Arena *splits = arena_new(f->ctx);
    Lower l = lower_scheduled(arena, splits, f, group, same, passes, &attempts);
    arena_free(splits);
    *out = (Counted){.is_long = is_split(f, group, &l)};
    if (!out->is_long)
        *out = (Counted){.rows = launch_rows(l.k), .by_part = lower_by_part(l.k), .work = kernel_work(l.k)};
    arena_reset(arena, mark);
}

bool lower_is_flat(Arena *arena, const Fusion *f, uint32_t group, Dim rows)
{
    Lower l = lower_start(arena, arena, f, group, NULL, NULL);
    bool row_work;
    l.searching = true;
    l.budget = UNROLL_MAX;
    lower_build(&l, rows);
    bool cut = lower_find_splits(&l, &row_work);
    for (size_t r = 0; r < l.k->root.n; r++)
        if (l.k->root.v[r].nest.n)
            return false;
    return !cut && !row_work;
}
