/* plan.c - see plan.h: from a graph to launches.
 *
 * The one idea: groups in order, each becomes one launch (two when it sums over rows); then
 * memory is laid out by who lives when.
 */
#include "plan_build.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- a printed kernel ---- */

static void add_op_name(Buf *about, const char *name, const char **seen, size_t *n)
{
    for (size_t i = 0; i < *n; i++)
        if (seen[i] == name)
            return;
    if (*n == 64)
        return;
    buf_printf(about, "%s%s", *n ? ", " : "", name);
    seen[(*n)++] = name;
}

/* What a group computes, ascending: its members, and what it computes again of others. */
static Vals computed_by(const Fusion *f, const Group *gr, Arena *arena)
{
    uint32_t group = (uint32_t)(gr - f->group.v);
    Vals all = {0}, again = {0};
    Map seen;
    map_init(&seen, arena);
    for (size_t m = 0; m < gr->member.n; m++)
        vec_push(arena, &all, gr->member.v[m]);
    for (size_t i = 0; i < all.n + again.n; i++) {
        const Node *n = node_at(f->g, i < all.n ? all.v[i] : again.v[i - all.n]);
        for (size_t k = 0; k < n->n_in; k++) {
            Val u = n->in[k];
            void **slot = map_at(&seen, u);
            if (*slot || fuse_loads(f, group, u) || !fuse_rematerializes(f, group, u))
                continue;
            *slot = &all;
            vec_push(arena, &again, u);
        }
    }
    for (size_t i = 0; i < again.n; i++)
        if (fuse_is_compute(f->g, again.v[i]))
            vec_push(arena, &all, again.v[i]);
    fuse_sort(all.v, all.n);
    return all;
}

/* That in terms that every layer shares. */
static const char *about(const Fusion *f, const Group *gr, const Kernel *k, Arena *arena)
{
    Buf text = buf_new(arena);
    Vals all = computed_by(f, gr, arena);
    const char *seen[64];
    size_t n = 0, line = 0;
    buf_printf(&text, "%s: ", k->flat ? "elements" : k->part ? "rows, sums over rows" : "rows");
    for (size_t i = 0; i < all.n; i++) {
        add_op_name(&text, op_info((Op)node_at(f->g, all.v[i])->op)->name, seen, &n);
        if (text.n - line > 80) {
            buf_puts(&text, "\n  ");
            line = text.n;
        }
    }
    return text.s;
}

/* Does it lie in memory? */
static bool is_number(const Build *b, const KArgument *x)
{
    return b->target->fixed_launches && kernel_argument_changes(x);
}

/* Where the integer i of a text stands among those of a launch. */
static uint32_t place_of(const Build *b, const Printed *p, size_t i)
{
    uint32_t n = 0;
    for (size_t k = 0; k < i; k++)
        n += !is_number(b, &p->ints.v[k]);
    return n;
}

/* What the text takes for granted about sizes. */
static const PlanSize *sizes(Build *b, const Printed *p)
{
    PlanSize *size = NEW_ARRAY(b->arena, PlanSize, p->ints.n + 1);
    for (size_t i = 0; i < p->ints.n; i++)
        size[place_of(b, p, i)].multiple = p->ints.v[i].multiple ? p->ints.v[i].multiple : 1;
    return size;
}

const char *plan_comment(const Build *b, const Launch *x)
{
    Buf text = buf_new(b->f->tmp);
    buf_puts(&text, x->name ? x->name : "");
    if (x->span.file) {
        LineCol at = source_position(b->ctx, x->span.file, x->span.lo);
        buf_printf(&text, "%s%s:%u:%u", text.n ? " " : "", source_base_name(source_path(b->ctx, x->span.file)),
                   (unsigned)at.line, (unsigned)at.column);
    }
    for (size_t i = 0; i < text.n; i++)
        if ((unsigned char)text.s[i] < 0x20)
            text.s[i] = '?';
    return text.s;
}

static void keep_program(Build *b, const CachedKernel *made, Launch *x)
{
    KernelText program = {.kernel = made->low.kernel, .about = made->about, .comment = plan_comment(b, x)};
    PlanKernel *kept = &b->kernel.v[x->kernel];
    Buf text = buf_new(b->arena), threads = buf_new(b->arena);
    kernels_put(&text, &program);
    x->program = text.s;
    if (kept->program)
        return;
    kept->program = text.s;
    if (!made->mapped)
        return;
    program.kernel = made->mapped;
    kernels_put(&threads, &program);
    kept->threads = threads.s;
}

/* The dump of the pass that somebody looks at. */
static void keep_shown(Build *b, const CachedKernel *made, Launch *x)
{
    const char *shown = made->mapped && made->mapped->shown ? made->mapped->shown : made->low.kernel->shown;
    PlanKernel *kept = &b->kernel.v[x->kernel];
    Buf text = buf_new(b->arena);
    if (!shown || kept->shown)
        return;
    buf_puts(&text, "\nkernel ");
    buf_json_string(&text, made->about, strlen(made->about));
    buf_printf(&text, "  # %s\n%s", plan_comment(b, x), shown);
    kept->shown = text.s;
}

/* What a kernel for a device was first printed for: where that stands, what its buffers are. Each line is
 * short: a text has one argument a line. */
static const char *where(const Build *b, const Kernel *k, const Printed *p, const Launch *x)
{
    Buf text = buf_new(b->arena);
    buf_printf(&text, "/* %s\n", plan_comment(b, x));
    for (size_t i = 0; i < p->buffer.n; i++) {
        const KBuffer *kb = &k->buffer.v[p->buffer.v[i]];
        buf_printf(&text, " *     p%zu ", i);
        if (kb->part >= 0)
            buf_printf(&text, "[%lld, %lld]", (long long)k->partitions, (long long)kb->elements);
        else
            shape_print(&text, shape_of(b->g, kb->value));
        buf_printf(&text, " %s\n", kb->name ? kb->name : "");
    }
    if (emit_changing(k, p))
        buf_printf(&text, " *     now [%zu] numbers of the run\n", emit_changing(k, p));
    if (p->grid.blocks)
        buf_printf(&text, " *     p%zu [blocks, n%u] arrays of a row\n", p->buffer.n, (unsigned)p->grid.spilled);
    buf_puts(&text, " */\n");
    return text.s;
}

/* The grid outlives what it was printed with. */
static PlanGrid keep_grid(const Build *b, const Printed *p)
{
    const PlanGrid *g = &p->grid;
    PlanGrid kept = *g;
    PlanShared *term = NEW_ARRAY(b->arena, PlanShared, g->n_term + 1);
    for (size_t i = 0; i < g->n_term; i++)
        term[i] = (PlanShared){place_of(b, p, g->term[i].n), g->term[i].bytes};
    kept.term = term;
    kept.spilled = place_of(b, p, g->spilled);
    return kept;
}

/* How many rows a thread takes at a time. A row prefetches the next one for its own core, so short
 * chunks prefetch in vain: the forward boundary of a (2,3) connection took 1.2 times as long with
 * 4 rows each. Long ones leave threads waiting at the end. */
static int64_t rows_per_chunk(int64_t rows, uint64_t bytes)
{
    const int64_t chunk = 1 << 20, least = 16;
    int64_t row = rows && bytes > (uint64_t)rows ? (int64_t)(bytes / (uint64_t)rows) : 1;
    int64_t most = rows / least < 4096 ? rows / least : 4096;
    int64_t grain = chunk / row < most ? chunk / row : most;
    return grain > 0 ? grain : 1;
}

static int64_t grain_of(const Launch *x, bool by_part)
{
    return by_part ? 1 : rows_per_chunk(x->rows, (uint64_t)x->bytes);
}

static int64_t argument(const Build *b, const Kernel *k, const KArgument *s)
{
    return s->kind == KA_DIM || s->kind == KA_FIRST ? dim_at(s->dim, b->B, b->T)
           : s->kind == KA_STREAM                   ? b->stream && k->lines
                                                    : s->value;
}

static IntKind kind_of(const KArgument *s)
{
    return s->kind == KA_SEED ? INT_SEED : s->kind == KA_STEP ? INT_STEP : s->kind == KA_FIRST ? INT_FIRST : INT_CONST;
}

/* The constants among the arguments of a launch, and what changes where that lies in memory. */
typedef struct Arguments {
    LaunchInt *ints;
    LaunchScalar *scalars;
    PlanNumber *numbers;
    uint32_t n_int, n_scalar, n_number;
} Arguments;

static Arguments arguments_of(Build *b, const Kernel *k, const Printed *p)
{
    Arguments a = {NEW_ARRAY(b->arena, LaunchInt, p->ints.n + 1),
                   NEW_ARRAY(b->arena, LaunchScalar, p->scalar.n + 1),
                   NEW_ARRAY(b->f->tmp, PlanNumber, p->ints.n + p->scalar.n + 1),
                   0,
                   0,
                   0};
    for (size_t i = 0; i < p->ints.n; i++) {
        const KArgument *s = &p->ints.v[i];
        if (is_number(b, s))
            a.numbers[a.n_number++] = (PlanNumber){kind_of(s), s->site, -1, 0, (uint64_t)argument(b, k, s)};
        else
            a.ints[a.n_int++] = (LaunchInt){kind_of(s), argument(b, k, s), s->site, s->kind == KA_STREAM && k->lines};
    }
    for (size_t i = 0; i < p->scalar.n; i++) {
        const KScalar *s = &k->scalar.v[p->scalar.v[i]];
        if (b->target->fixed_launches && s->host >= 0)
            a.numbers[a.n_number++] = (PlanNumber){INT_CONST, NULL, s->host, 0, 0};
        else
            a.scalars[a.n_scalar++] = (LaunchScalar){s->host, s->value};
    }
    return a;
}

/* Of a table a launch touches the rows that it reads by index. */
static void count_bytes(Build *b, const Group *gr, Launch *x)
{
    for (size_t i = 0; i < gr->unread.n; i++) {
        const PlanBuffer *table = &b->buffer.v[plan_buffer(b, gr->unread.v[i].table)];
        x->bytes -= (double)gr->unread.v[i].elements * (double)plan_item_bytes(table);
    }
}

/* parts: by buffer of the kernel, the plan's buffer of its partial sums. */
static Launch *kernel_launch(Build *b, const Group *gr, const Lowered *l, const Printed *p, Val of,
                             const uint32_t *parts)
{
    const Kernel *k = l->kernel;
    const Arguments a = arguments_of(b, k, p);
    size_t buffers = p->buffer.n + (a.n_number > 0) + (p->grid.blocks > 0);
    uint32_t kernel = plan_kernel(b, p->name, p->text, p->length, buffers, a.n_int, a.n_scalar);
    if (!b->kernel.v[kernel].size)
        b->kernel.v[kernel].size = sizes(b, p);
    Launch *x = plan_launch(b, LAUNCH_KERNEL, buffers, of);
    x->kernel = kernel;
    if (b->target->threads && !b->kernel.v[kernel].where) {
        b->kernel.v[kernel].grid = keep_grid(b, p);
        b->kernel.v[kernel].where = where(b, k, p, x);
    }
    for (size_t i = 0; i < p->buffer.n; i++) {
        const KBuffer *kb = &k->buffer.v[p->buffer.v[i]];
        plan_argument(b, x, i, kb->part >= 0 ? parts[p->buffer.v[i]] : plan_buffer(b, kb->value), 0, kb->written);
    }
    if (a.n_number)
        plan_numbers(b, x, p->buffer.n, a.numbers, a.n_number);
    if (p->grid.blocks) {
        int64_t each = argument(b, k, &p->ints.v[p->grid.spilled]);
        uint32_t spilled = plan_scratch(b, DT_REAL, plan_blocks(&p->grid, l->rows) * each, NULL);
        plan_argument(b, x, buffers - 1, spilled, 0, true);
    }
    x->ints = a.ints;
    x->n_int = a.n_int;
    x->scalars = a.scalars;
    x->n_scalar = a.n_scalar;
    x->rows = l->rows;
    x->work = l->work;
    count_bytes(b, gr, x);
    x->grain = grain_of(x, lower_by_part(k));
    return x;
}

static Launch *sum_launch(Build *b, Val v, int64_t partitions, uint32_t parts)
{
    Launch *x = plan_launch(b, LAUNCH_KERNEL, 2, v);
    plan_argument(b, x, 0, parts, 0, false);
    plan_argument(b, x, 1, plan_buffer(b, v), 0, true);
    x->rows = plan_elements(b, v);
    x->grain = 16384 / partitions > 64 ? 16384 / partitions : 64;
    return x;
}

/* The axes of a partial sum in the order of the result: those of one element are left out, and adjacent ones that lie
 * in this order too become one. Returns how many. */
static int parts_axes(const Sink *s, int64_t extent[FACTORS_MAX], int64_t stride[FACTORS_MAX])
{
    int n = 0;
    for (int i = 0; i < s->n_factor; i++) {
        if (s->extent[i] == 1)
            continue;
        bool joins = n > 0 && stride[n - 1] == s->stride[i] * s->extent[i];
        extent[n - joins] = joins ? extent[n - 1] * s->extent[i] : s->extent[i];
        stride[n - joins] = s->stride[i];
        n += !joins;
    }
    return n;
}

/* The second stage of a sum over rows. */
static void sum_parts(Build *b, const Sink *s, int64_t partitions, uint32_t parts)
{
    bool max = s->op == OP_AMAX;
    int64_t extent[FACTORS_MAX], stride[FACTORS_MAX];
    int n = parts_axes(s, extent, stride);
    bool plain = n == 0 || (n == 1 && stride[0] == 1);
    Launch *x = sum_launch(b, s->v, partitions, parts);
    int64_t v[2 + 2 * PARTS_AXES] = {partitions, s->size};
    for (int i = 0; i < PARTS_AXES; i++)
        v[2 + i] = 1;
    if (!plain && n > PARTS_AXES)
        vwn_bug(b->ctx, "a sum over rows has too many factors");
    for (int i = 0; i < n && !plain; i++) {
        v[2 + PARTS_AXES - n + i] = extent[i];
        v[2 + 2 * PARTS_AXES - n + i] = stride[i];
    }
    plan_ints(b, x, v, plain ? 2 : 2 + 2 * PARTS_AXES);
    plan_library_kernel(
        b, x, plain ? (max ? LIB_MAX_PARTS : LIB_SUM_PARTS) : (max ? LIB_MAX_PARTS_AT : LIB_SUM_PARTS_AT), NULL, 0);
}

/* The buffers of what a group stores, and of the partial sums of its sums over rows (by place in
 * `store`), in an order that does not depend on how its kernel is scheduled. */
static uint32_t *group_buffers(Build *b, const Group *gr, int64_t partitions)
{
    uint32_t *parts = NEW_ARRAY(b->f->tmp, uint32_t, gr->store.n + 1);
    for (size_t i = 0; i < gr->store.n; i++) {
        Val v = gr->store.v[i];
        if (fuse_empty(b->f, v))
            continue;
        plan_buffer(b, v);
        if (fuse_rows(b->g, v, gr->rows) == ROWS_SUMMED)
            parts[i] = plan_scratch(b, DT_REAL, plan_elements(b, v) * partitions, node_at(b->g, v)->name);
    }
    return parts;
}

static uint32_t parts_of(Build *b, const Group *gr, const uint32_t *parts, Val v)
{
    for (size_t i = 0; i < gr->store.n; i++)
        if (gr->store.v[i] == v)
            return parts[i];
    vwn_bug(b->ctx, "%%%u is summed and not stored", (unsigned)v);
}

static void plan_rows(Build *b, uint32_t group)
{
    Group *gr = &b->f->group.v[group];
    ArenaMark mark = arena_mark(b->f->tmp);
    CachedKernel made;
    kernel_cache_make(b->kernel_cache, &made, b->f, group, b->same, dialect_of(b->target), about);
    const Kernel *k = made.low.kernel;
    const uint32_t *stored = group_buffers(b, gr, k->partitions);
    uint32_t *parts = NEW_ARRAY(b->f->tmp, uint32_t, k->buffer.n + 1);
    for (size_t i = 0; i < made.low.sink.n; i++) {
        const Sink *s = &made.low.sink.v[i];
        parts[s->buffer] = parts_of(b, gr, stored, s->v);
        if (b->buffer.v[parts[s->buffer]].bytes != 4 * (uint64_t)(s->size * k->partitions))
            vwn_bug(b->ctx, "the parts of %%%u are of another size", (unsigned)s->v);
    }
    Val last = gr->store.v[gr->store.n - 1];
    Launch *x = kernel_launch(b, gr, &made.low, &made.printed, last, parts);
    if (b->programs)
        keep_program(b, &made, x);
    if (b->watch)
        keep_shown(b, &made, x);
    for (size_t v = 0; v < gr->store.n; v++) /* in the order of a plan without kernels */
        for (size_t i = 0; i < made.low.sink.n; i++)
            if (made.low.sink.v[i].v == gr->store.v[v])
                sum_parts(b, &made.low.sink.v[i], k->partitions, parts[made.low.sink.v[i].buffer]);
    arena_reset(b->f->tmp, mark);
}

/* ---- memory alone ---- */

typedef struct Use {
    uint32_t buffer;
    bool written;
} Use;
typedef VEC(Use) Uses;

/* What is loaded and stored in place is one argument. */
static void add_use(Build *b, Uses *uses, uint32_t buffer, bool written)
{
    for (size_t i = 0; i < uses->n; i++)
        if (uses->v[i].buffer == buffer) {
            uses->v[i].written |= written;
            return;
        }
    vec_push(b->f->tmp, uses, ((Use){buffer, written}));
}

/* The launches of a group without its kernel: who is loaded and stored when. */
static void plan_rows_memory(Build *b, uint32_t group)
{
    const Group *gr = &b->f->group.v[group];
    ArenaMark mark = arena_mark(b->f->tmp);
    Vals loads = {0};
    Uses uses = {0};
    fuse_find_loads(b->f, group, &loads);
    int64_t partitions = lower_partitions(dim_at(gr->rows, b->B, b->T));
    const uint32_t *parts = group_buffers(b, gr, partitions);
    for (size_t i = 0; i < loads.n; i++)
        add_use(b, &uses, plan_buffer(b, loads.v[i]), false);
    for (size_t i = 0; i < gr->store.n; i++)
        if (!fuse_empty(b->f, gr->store.v[i]))
            add_use(b, &uses, parts[i] ? parts[i] : plan_buffer(b, gr->store.v[i]), true);
    Launch *x = plan_launch(b, LAUNCH_KERNEL, uses.n, gr->store.v[gr->store.n - 1]);
    for (size_t i = 0; i < uses.n; i++)
        plan_argument(b, x, i, uses.v[i].buffer, 0, uses.v[i].written);
    count_bytes(b, gr, x);
    if (b->counted) {
        Counted count = kernel_cache_count(b->kernel_cache, b->f, group, b->same);
        x->rows = count.rows;
        x->work = count.work;
        x->grain = grain_of(x, count.by_part);
    }
    for (size_t i = 0; i < gr->store.n; i++)
        if (parts[i])
            sum_launch(b, gr->store.v[i], partitions, parts[i]);
    arena_reset(b->f->tmp, mark);
}

/* ---- the whole ---- */

static double written_bytes(const Fusion *f)
{
    double bytes = 0;
    for (size_t i = 0; i < f->group.n; i++)
        for (size_t k = 0; k < f->group.v[i].store.n; k++) {
            Dim n = DIM(0);
            if (shape_size(shape_of(f->g, f->group.v[i].store.v[k]), &n))
                bytes += 4 * (double)dim_at(n, f->B, f->T);
        }
    return bytes;
}

static void start_build(Build *b, Ctx *ctx, Arena *arena, const Graph *g, Fusion *f, const PlanOptions *how)
{
    KernelCache *kernel_cache = b->kernel_cache;
    bool *to_library = b->to_library;
    *b = (Build){.ctx = ctx,
                 .arena = arena,
                 .g = g,
                 .f = f,
                 .B = how->B,
                 .T = how->T,
                 .kernel_cache = kernel_cache,
                 .to_library = to_library,
                 .watch = how->watch,
                 .programs = how->programs,
                 .target = f->target,
                 .shared = f->shared,
                 .per_row = how->per_row,
                 .any_order = how->any_order,
                 .arena_only = how->arena_only,
                 .counted = how->counted,
                 .single = how->single};
    b->plan = NEW(arena, Plan);
    b->plan->B = how->B;
    b->plan->T = how->T;
    map_init(&b->kernel_at, arena);
    map_init(&b->text_at, arena);
    b->buffer_of = NEW_ARRAY(arena, int32_t, g->node.n);
    b->direct = NEW_ARRAY(arena, int32_t, g->node.n);
    b->added = NEW_ARRAY(arena, bool, g->node.n);
    b->same = NEW_ARRAY(arena, Val, g->node.n);
    b->ext_buffer = NEW_ARRAY(arena, int32_t, g->ext.n + 1);
    b->leaf = NEW_ARRAY(arena, Val, g->ext.n + 1);
    b->plan->ext = NEW_ARRAY(arena, PlanExt, g->ext.n + 1);
    b->plan->n_ext = g->ext.n;
    for (size_t i = 0; i < g->ext.n; i++) {
        Dim n;
        b->plan->ext[i].ext = g->ext.v[i];
        b->plan->ext[i].half = g->ext.v[i].kind == EXT_COPY ? how->half : HALF_NONE;
        b->ext_buffer[i] = -1;
        if (!shape_size(&g->ext.v[i].shape, &n))
            vwn_bug(ctx, "the size of a tensor overflows");
        b->plan->ext[i].elements = dim_at(n, b->B, b->T);
    }
    for (size_t i = 0; i < g->out.n; i++)
        if (g->out.v[i].ext >= 0)
            b->plan->ext[g->out.v[i].ext].stored = true;
    for (Val v = 0; v < g->node.n; v++) {
        b->buffer_of[v] = b->direct[v] = -1;
        b->same[v] = v;
        if (v && node_at(g, v)->op == OP_EXT)
            b->leaf[node_at(g, v)->a.i] = v;
    }
    b->plan->n_host = g->host.n;
    b->plan->host = NEW_ARRAY(arena, const HostExpr *, g->host.n + 1);
    for (size_t i = 0; i < g->host.n; i++)
        b->plan->host[i] = g->host.v[i];
}

/* Products of a device's kernels that have not the room for their tiles go to the library. Returns in how many groups. */
static size_t leave_large(Build *b, const Val *made_of, size_t values)
{
    size_t groups = 0;
    VEC(Val) of_row = {0}; /* values of the graph that are such products now */
    for (Val v = 1; v < values; v++)
        if (product_of_row_under(b->g, made_of[v]))
            vec_push(b->f->tmp, &of_row, v);
    for (size_t i = 0; i < b->f->order.n; i++) {
        const Group *gr = &b->f->group.v[b->f->order.v[i]];
        bool products = false;
        for (size_t m = 0; gr->kind == GROUP_ROWS && m < gr->member.n; m++)
            products = products || product_is_of_row(b->g, gr->member.v[m]);
        if (!products)
            continue;
        bool large = kernel_cache_shared(b->kernel_cache, b->f, b->f->order.v[i], b->same) > (uint64_t)b->shared;
        bool left = false;
        for (size_t k = 0; large && k < of_row.n; k++) {
            Val product = product_of_row_under(b->g, made_of[of_row.v[k]]);
            if (b->f->home[product] == (int32_t)b->f->order.v[i])
                b->to_library[of_row.v[k]] = left = true;
        }
        groups += left;
    }
    return groups;
}

static bool any_is_long(Build *b)
{
    bool is_long = false;
    for (uint32_t i = 0; i < b->f->group.n && !is_long; i++)
        if (!b->f->group.v[i].dead && b->f->group.v[i].kind == GROUP_ROWS)
            is_long = kernel_cache_is_long(b->kernel_cache, b->f, i, b->same, b->arena_only);
    return is_long;
}

size_t plan_choose_results(Build *b, Fusion *f, const PlanOptions *how)
{
    size_t n = 0;
    start_build(b, f->ctx, f->arena, f->g, f, how);
    b->stream = f->target->stream && written_bytes(f) >= (double)f->target->stream;
    plan_choose_direct(b);
    for (Val v = 1; v < f->g->node.n; v++)
        n += b->direct[v] >= 0;
    return n;
}

size_t plan_find_large(Build *b, const Decomposed *d, size_t *members)
{
    if (any_is_long(b)) {
        *members /= 4;
        return 1;
    }
    return b->target->threads ? leave_large(b, d->made, d->values) : 0;
}

/* An external tensor that is read as a result or stored into another, and overwritten: its old
 * elements are copied to scratch before anything else runs. */
size_t plan_save_overwritten(Build *b)
{
    size_t before = b->launch.n;
    for (size_t i = 0; i < b->g->out.n; i++) {
        Val v = plan_strip(b, b->g->out.v[i].value);
        const Node *n = node_at(b->g, v);
        if (n->op != OP_EXT || !b->plan->ext[n->a.i].stored || b->buffer_of[v] >= 0 || b->g->out.v[i].ext == n->a.i)
            continue;
        b->buffer_of[v] = (int32_t)plan_temporary(b, v);
        if (!fuse_empty(b->f, v))
            plan_copy(b, plan_buffer(b, v), 0, (uint32_t)b->buffer_of[v], plan_elements(b, v), (DType)n->dtype, v);
    }
    return b->launch.n - before;
}

static uint32_t output_buffer(Build *b, Val v)
{
    if (node_at(b->g, v)->op == OP_EXT && b->buffer_of[v] >= 0)
        return (uint32_t)b->buffer_of[v];
    if (fuse_empty(b->f, v) && node_at(b->g, v)->op != OP_EXT)
        return plan_scratch(b, (DType)node_at(b->g, v)->dtype, 0, node_at(b->g, v)->name);
    return plan_buffer(b, v);
}

void plan_finish_outputs(Build *b)
{
    const Graph *g = b->g;
    b->plan->result = NEW_ARRAY(b->arena, PlanResult, g->out.n + 1);
    for (size_t i = 0; i < g->out.n; i++) {
        const Output *o = &g->out.v[i];
        Val v = plan_strip(b, o->value);
        const Node *n = node_at(g, o->value);
        if (o->ext >= 0) {
            bool itself = node_at(g, v)->op == OP_EXT && node_at(g, v)->a.i == o->ext;
            bool put = b->direct[v] != o->ext && !itself && !fuse_empty(b->f, v);
            if (put && b->plan->ext[o->ext].ext.kind == EXT_COPY)
                vwn_bug(b->ctx, "plan: the copy of %s is no result of a kernel", b->plan->ext[o->ext].ext.name);
            if (put)
                plan_copy(b, output_buffer(b, v), 0, plan_ext_buffer(b, o->ext), plan_elements(b, v), (DType)n->dtype,
                          v);
            continue;
        }
        PlanResult *r = &b->plan->result[b->plan->n_result++];
        *r = (PlanResult){
            .name = o->name, .buffer = output_buffer(b, v), .dtype = (DType)n->dtype, .rank = n->shape.rank};
        for (int k = 0; k < r->rank; k++)
            r->d[k] = dim_at(n->shape.d[k], b->B, b->T);
    }
}

/* The launches of groups that make copies of weights, or of all others. */
static void plan_groups(Build *b, bool casts)
{
    const Fusion *f = b->f;
    for (size_t i = 0; i < f->order.n; i++) {
        uint32_t id = f->order.v[i];
        bool rows = f->group.v[id].kind == GROUP_ROWS;
        if ((b->cast && b->cast[id]) != casts || (rows && b->added[f->group.v[id].first]))
            continue;
        if (rows)
            b->arena_only ? plan_rows_memory(b, id) : plan_rows(b, id);
        else
            plan_library(b, f->group.v[id].anchor);
    }
}

size_t plan_find_classes(Build *b)
{
    const Fusion *f = b->f;
    for (size_t i = 0; i < f->order.n; i++)
        if (f->group.v[f->order.v[i]].kind == GROUP_ROWS && !b->added[f->group.v[f->order.v[i]].first])
            kernel_cache_visit(b->kernel_cache, f, f->order.v[i], b->same, about);
    return kernel_cache_classes(b->kernel_cache);
}

size_t plan_launch_groups(Build *b)
{
    if (b->cast)
        plan_groups(b, true);
    b->plan->n_cast = b->launch.n;
    plan_groups(b, false);
    return b->launch.n;
}

void plan_gather_and_place(Build *b, const PlanOptions *how)
{
    if (b->target->joins_launches && !how->single)
        plan_gather(b, how->layout);
    else
        plan_place(b);
    if (b->target->joins_launches && how->layout)
        plan_keep_layout(b, how->layout);
}

void plan_seal(const Build *b, Plan *p)
{
    p->buffer = b->buffer.v;
    p->n_buffer = b->buffer.n;
    p->kernel = b->kernel.v;
    p->n_kernel = b->kernel.n;
    p->launch = b->launch.v;
    p->n_launch = b->launch.n;
    p->number = b->number.v;
    p->n_number = b->number.n;
}

Plan *plan_build(Ctx *ctx, Arena *arena, const Graph *from, const PlanOptions *how)
{
    Build b = {.kernel_cache = how->kernel_cache ? how->kernel_cache : kernel_cache_new(ctx, arena)};
    const Target *target = plan_target(how);
    b.to_library = NEW_ARRAY(arena, bool, from->node.n);
    PassState s = {.ctx = ctx,
                   .arena = arena,
                   .how = how,
                   .target = target,
                   .watch = how->watch,
                   .facts = IS_GRAPH,
                   .graph = from,
                   .decomposed = {.to_library = b.to_library},
                   .members = MEMBERS_MAX,
                   .build = &b};
    kernel_cache_begin(b.kernel_cache, how->watch);
    pipeline_groups(&s);
    Plan *p = b.plan;
    p->compiler_bytes = arena_size(arena);
    p->prelude = prelude_c(arena, &p->prelude_length);
    if (target->threads)
        p->device_prelude = prelude_cuda(arena, &p->device_prelude_length);
    pipeline_run(&s, LEVEL_PLAN);
    plan_seal(&b, p);
    kernel_cache_begin(b.kernel_cache, NULL);
    if (!how->kernel_cache)
        kernel_cache_free(b.kernel_cache);
    fuse_free(s.fusion);
    return p;
}
