/* plan_launch.c - launches of what is not printed from expressions.
 *
 * In:  a node of the library's.     Out: its launch.
 * The one idea: operands are taken as they lie; fuse.c has seen to it that they can be.
 */
#include "compiler/graph/op.h"
#include "compiler/library/library_c.h"
#include "compiler/library/library_cuda.h"
#include "plan_build.h"

uint32_t plan_kernel(Build *b, Name name, const char *text, size_t length, size_t n_buffer, size_t n_int,
                     size_t n_scalar)
{
    void **slot = map_at(&b->kernel_at, (uintptr_t)name);
    if (!*slot) {
        PlanKernel k = {.name = name,
                        .text = arena_copy(b->arena, text, length),
                        .length = length,
                        .n_buffer = (uint32_t)n_buffer,
                        .n_int = (uint32_t)n_int,
                        .n_scalar = (uint32_t)n_scalar};
        vec_push(b->arena, &b->kernel, k);
        *slot = (void *)(uintptr_t)b->kernel.n;
    }
    return (uint32_t)((uintptr_t)*slot - 1);
}

bool plan_has_text(Build *b, Launch *l, PlanText of, const void *key, size_t n)
{
    b->text = (uintptr_t)hash_bytes(key, n, of) | 1;
    uintptr_t known = (uintptr_t)map_get(&b->text_at, b->text);
    l->kernel = known ? (uint32_t)(known - 1) : 0;
    return known != 0;
}

void plan_keep_text(Build *b, const Launch *l) { *map_at(&b->text_at, b->text) = (void *)(uintptr_t)(l->kernel + 1); }

Launch *plan_launch(Build *b, LaunchKind kind, size_t n_buffer, Val of)
{
    Launch l = {.kind = kind, .n_buffer = (uint32_t)n_buffer, .n_touched = (uint32_t)n_buffer, .grain = 1};
    l.buffer = NEW_ARRAY(b->arena, uint32_t, n_buffer + 1);
    l.shift = NEW_ARRAY(b->arena, uint64_t, n_buffer + 1);
    l.writes = NEW_ARRAY(b->arena, bool, n_buffer + 1);
    l.name = node_at(b->g, of)->name;
    l.span = node_at(b->g, of)->span;
    vec_push(b->arena, &b->launch, l);
    return &b->launch.v[b->launch.n - 1];
}

void plan_argument(Build *b, Launch *l, size_t i, uint32_t buffer, uint64_t shift, bool written)
{
    ((uint32_t *)l->buffer)[i] = buffer; /* allocated by plan_launch() */
    ((uint64_t *)l->shift)[i] = shift;
    ((bool *)l->writes)[i] = written;
    l->bytes += (double)b->buffer.v[buffer].bytes;
}

void plan_ints(Build *b, Launch *l, const int64_t *v, size_t n)
{
    LaunchInt *x = NEW_ARRAY(b->arena, LaunchInt, n + 1);
    for (size_t i = 0; i < n; i++)
        x[i].value = v[i];
    l->ints = x;
    l->n_int = (uint32_t)n;
}

/* Heads are padded: wider ones than the text has room for would run over its arrays. */
static const PlanSize *attention_sizes(Build *b, const AttentionClass *a, uint32_t n)
{
    PlanSize *size = NEW_ARRAY(b->arena, PlanSize, n + 1);
    for (uint32_t i = 0; i < n; i++)
        size[i].multiple = 1;
    size[ATTENTION_D].most = a->d;
    size[ATTENTION_DV].most = a->dv;
    return size;
}

void plan_library_kernel(Build *b, Launch *l, LibraryKernel which, const AttentionClass *a, size_t n_scalar)
{
    size_t length;
    if (b->arena_only)
        return;
    const AttentionClass of = a ? *a : (AttentionClass){0};
    Half half = b->target->own_library ? b->buffer.v[l->buffer[0]].half : HALF_NONE;
    const int64_t key[] = {which, half, of.d, of.dv, of.capped, of.dropped, of.oldest};
    l->n_scalar = (uint32_t)n_scalar;
    if (plan_has_text(b, l, TEXT_OF_LIBRARY, key, sizeof key))
        return;
    ArenaMark mark = arena_mark(b->f->tmp);
    if (b->target->own_library) {
        PlanGrid grid;
        const char *text = library_cuda(b->f->tmp, which, a, half, &grid, &length);
        plan_device_kernel(b, l, library_name(which), text, length, &grid, n_scalar);
        plan_keep_text(b, l);
        arena_reset(b->f->tmp, mark);
        return;
    }
    const char *text = library_c(b->f->tmp, which, a, &length);
    Name name = emit_name(b->ctx, b->f->tmp, &text, &length);
    l->kernel = plan_kernel(b, name, text, length, l->n_buffer, l->n_int, n_scalar);
    plan_keep_text(b, l);
    arena_reset(b->f->tmp, mark);
    PlanKernel *k = &b->kernel.v[l->kernel];
    if (a && !k->size)
        k->size = attention_sizes(b, a, l->n_int);
    if (b->programs && !k->program) {
        KernelText x = {.library = which, .attention = a ? *a : (AttentionClass){0}};
        Buf program = buf_new(b->arena);
        kernels_put(&program, &x);
        k->program = program.s;
    }
}

static int64_t grain_for(int64_t work_per_row)
{
    int64_t grain = 16384 / (work_per_row > 0 ? work_per_row : 1);
    return grain > 0 ? grain : 1;
}

int64_t plan_extent(const Build *b, Val v, int axis) { return dim_at(shape_of(b->g, v)->d[axis], b->B, b->T); }

/* The buffer and place of an operand. */
static uint32_t operand(Build *b, Val v, Operand *o, uint64_t *shift)
{
    *shift = 0;
    if (fuse_empty(b->f, v)) {
        *o = (Operand){.base = v, .rank = shape_of(b->g, v)->rank};
        for (int i = 0; i < o->rank; i++)
            o->extent[i] = plan_extent(b, v, i);
        return plan_scratch(b, (DType)node_at(b->g, v)->dtype, 0, node_at(b->g, v)->name);
    }
    if (!fuse_operand(b->f, v, o))
        vwn_bug(b->ctx, "%%%u is not a view of memory", (unsigned)v);
    uint32_t at = plan_buffer(b, o->base);
    *shift = (uint64_t)o->offset * plan_item_bytes(&b->buffer.v[at]);
    return at;
}

void plan_read(Build *b, Launch *l, size_t i, Val v, Operand *o)
{
    uint64_t shift;
    uint32_t buffer = operand(b, v, o, &shift);
    plan_argument(b, l, i, buffer, shift, false);
}

/* ---- products ---- */

static void launch_matmul(Build *b, Val v)
{
    const Node *n = node_at(b->g, v);
    bool ta = n->a.i & 1, tb = n->a.i >> 1 & 1;
    bool shared = shape_of(b->g, n->in[1])->rank == 2 && n->shape.rank > 2;
    Launch *l = plan_launch(b, LAUNCH_MATMUL, 3, v);
    Operand oa, ob;
    MatrixView x, y;
    plan_read(b, l, 0, n->in[0], &oa);
    plan_read(b, l, 1, n->in[1], &ob);
    plan_argument(b, l, 2, plan_buffer(b, v), 0, true);
    if (!operand_matrix(&oa, shared && !ta, &x) || !operand_matrix(&ob, false, &y))
        vwn_bug(b->ctx, "%%%u: a library cannot take its operands", (unsigned)v);
    PlanMatmul *m = &l->matmul;
    m->half = fuse_half_product(b->f, v) ? b->f->half : HALF_NONE;
    m->rounded = b->f->in_16bit && b->f->in_16bit[v];
    m->accumulate = b->added[v];
    m->transpose_a = ta != x.transposed;
    m->transpose_b = tb != y.transposed;
    m->m = ta ? x.columns : x.rows;
    m->k = ta ? x.rows : x.columns;
    m->n = tb ? y.rows : y.columns;
    m->batch = x.batch;
    m->lda = x.ld;
    m->ldb = y.ld;
    m->ldc = m->n;
    m->step_a = x.step;
    m->step_b = y.step;
    m->step_c = m->m * m->n;
    l->rows = m->batch * m->m;
    l->flops = 2.0 * (double)m->batch * (double)m->m * (double)m->n * (double)m->k;
}

PlanExpert plan_expert(const Build *b, Val v)
{
    const Node *n = node_at(b->g, v);
    bool dw = n->op == OP_EXPERT_MATMUL_DW;
    Val index = n->in[2], x = n->in[0];
    int ri = shape_of(b->g, index)->rank;
    PlanExpert e = {.what = dw ? EXPERT_DW : EXPERT_Y};
    e.transpose_w = !dw && (n->a.i & 1);
    e.half = fuse_half_product(b->f, v) ? b->f->half : HALF_NONE;
    e.per_row = b->per_row && !dw;
    e.x_per_pair = shape_of(b->g, x)->rank == ri + 1;
    e.choices = plan_extent(b, index, ri - 1);
    e.tokens = e.choices ? plan_elements(b, index) / e.choices : 0;
    e.experts = plan_extent(b, dw ? v : n->in[1], 0);
    e.in = plan_extent(b, x, shape_of(b->g, x)->rank - 1);
    e.out = dw ? plan_extent(b, v, 2) : plan_extent(b, v, n->shape.rank - 1);
    return e;
}

static void launch_expert(Build *b, Val v)
{
    Launch *l = plan_launch(b, LAUNCH_EXPERT, 4, v);
    Operand o;
    for (size_t i = 0; i < 3; i++)
        plan_read(b, l, i, node_at(b->g, v)->in[i], &o);
    plan_argument(b, l, 3, plan_buffer(b, v), 0, true);
    const PlanExpert *e = &l->expert;
    l->expert = plan_expert(b, v);
    l->rows = e->tokens;
    l->flops = 2.0 * (double)(e->tokens * e->choices) * (double)e->in * (double)e->out;
}

/* ---- by index, running sums ---- */

/* On a device: of so many lines a block has a chunk in each of its threads (texts/cumsum.cu). Threads side by side have
 * elements side by side, and a chunk is no shorter than what costs as much as adding it to the others. */
static int64_t cumsum_columns(const Tuned *tuned, int64_t count, int64_t inner)
{
    int64_t columns = 1;
    while (columns < WARP_THREADS && 2 * columns <= inner)
        columns *= 2;
    while (columns < CUMSUM_THREADS && CUMSUM_THREADS / columns * tuned->cumsum_chunk > count)
        columns *= 2;
    return columns;
}

static void launch_cumsum(Build *b, Val v)
{
    const Node *n = node_at(b->g, v);
    Operand o;
    Launch *l = plan_launch(b, LAUNCH_KERNEL, 2, v);
    plan_read(b, l, 0, n->in[0], &o);
    plan_argument(b, l, 1, plan_buffer(b, v), 0, true);
    int64_t count = plan_extent(b, v, (int)n->a.i), inner = 1;
    for (int i = (int)n->a.i + 1; i < n->shape.rank; i++)
        inner *= plan_extent(b, v, i);
    bool chunks = b->target->own_library;
    int64_t outer = plan_elements(b, v) / (count * inner), lines = outer * inner,
            columns = cumsum_columns(b->f->target->tuned, count, inner);
    plan_ints(b, l, (int64_t[]){count, inner, n->a.j, lines, columns}, chunks ? 5 : 3);
    plan_library_kernel(b, l, LIB_CUMSUM, NULL, 0);
    l->rows = chunks ? (lines + columns - 1) / columns : outer;
    l->grain = grain_for(count * inner);
}

static void launch_top_k(Build *b, Val v)
{
    const Node *n = node_at(b->g, v);
    Operand o;
    Launch *l = plan_launch(b, LAUNCH_KERNEL, 2, v);
    plan_read(b, l, 0, n->in[0], &o);
    plan_argument(b, l, 1, plan_buffer(b, v), 0, true);
    int64_t count = plan_extent(b, n->in[0], n->shape.rank - 1);
    plan_ints(b, l, (int64_t[]){count, n->a.j}, 2);
    plan_library_kernel(b, l, LIB_TOP_K, NULL, 0);
    l->rows = plan_elements(b, v) / n->a.j;
    l->work.single = 2 * (double)l->rows * (double)count * (double)n->a.j;
    l->grain = grain_for(count * n->a.j);
}

static void launch_scatter_add(Build *b, Val v)
{
    const Node *n = node_at(b->g, v);
    Operand o;
    Launch *l = plan_launch(b, LAUNCH_KERNEL, 3, v);
    plan_read(b, l, 0, n->in[0], &o);
    plan_read(b, l, 1, n->in[1], &o);
    plan_argument(b, l, 2, plan_buffer(b, v), 0, true);
    int64_t rows = plan_extent(b, v, 0);
    plan_ints(b, l, (int64_t[]){plan_elements(b, n->in[1]), plan_elements(b, v) / rows}, 2);
    plan_library_kernel(b, l, LIB_SCATTER_ADD, NULL, 0);
    l->rows = rows;
    l->grain = (rows + 31) / 32; /* every chunk reads all indices */
    double indices = (double)plan_elements(b, n->in[1]);
    l->work.single = 2 * 32 * indices;
    l->work.lane = 3 * indices * (double)plan_elements(b, v) / (double)rows;
}

/* The start is a number that the plan does not know. The table's rows that x does not cover
 * must be there already: they are when the table is written in place. */
static void launch_put(Build *b, Val v)
{
    const Node *n = node_at(b->g, v);
    Operand o;
    uint64_t shift;
    uint32_t table = operand(b, n->in[0], &o, &shift), out = plan_buffer(b, v);
    if (table != out)
        plan_copy(b, table, shift, out, plan_elements(b, v), (DType)n->dtype, v);
    else if (shift)
        vwn_bug(b->ctx, "%%%u: a part of a table is written in place", (unsigned)v);
    Launch *l = plan_launch(b, LAUNCH_KERNEL, 4, v);
    for (size_t i = 0; i < 3; i++)
        plan_read(b, l, i, n->in[i + 1], &o);
    plan_argument(b, l, 3, out, 0, true);
    int64_t rows = plan_extent(b, v, 0) * plan_extent(b, n->in[1], 1), words = n->dtype == DT_INT ? 2 : 1;
    words *= plan_elements(b, n->in[1]) / rows;
    plan_ints(b, l, (int64_t[]){plan_extent(b, n->in[1], 1), plan_extent(b, v, 1), words}, 3);
    plan_library_kernel(b, l, LIB_DYNAMIC_UPDATE_SLICE, NULL, 0);
    l->rows = rows;
    l->grain = grain_for(words);
}

static void launch_take(Build *b, Val v)
{
    const Node *n = node_at(b->g, v);
    Operand o;
    Launch *l = plan_launch(b, LAUNCH_KERNEL, 3, v);
    plan_read(b, l, 0, n->in[0], &o);
    plan_read(b, l, 1, n->in[1], &o);
    plan_argument(b, l, 2, plan_buffer(b, v), 0, true);
    bool integer = n->dtype == DT_INT;
    int64_t rows = plan_extent(b, v, 0) * plan_extent(b, v, 1), whole = (int64_t)n->a.x;
    int64_t words = plan_elements(b, v) / rows * (integer ? 2 : 1);
    float real = (float)n->a.x;
    int32_t fill[2];
    memcpy(fill, integer ? (void *)&whole : (void *)&real, integer ? 8 : 4);
    plan_ints(
        b, l,
        (int64_t[]){plan_extent(b, v, 1), plan_extent(b, n->in[0], 1), words, fill[0], integer ? fill[1] : 0, integer},
        6);
    plan_library_kernel(b, l, LIB_DYNAMIC_SLICE, NULL, 0);
    l->rows = rows;
    l->grain = grain_for(words);
}

static void launch_table(Build *b, Val v)
{
    const Node *n = node_at(b->g, v);
    uint32_t out = plan_buffer(b, v);
    for (size_t from = 0; from < n->a.n; from += TABLE_PART) {
        size_t count = n->a.n - from < TABLE_PART ? n->a.n - from : TABLE_PART;
        Launch *l = plan_launch(b, LAUNCH_KERNEL, 1, v);
        plan_argument(b, l, 0, out, from * sizeof(float), true);
        LaunchScalar *s = NEW_ARRAY(b->arena, LaunchScalar, TABLE_PART);
        for (size_t i = 0; i < TABLE_PART; i++)
            s[i] = (LaunchScalar){-1, i < count ? n->a.data[from + i] : 0};
        l->scalars = s;
        plan_library_kernel(b, l, LIB_TABLE, NULL, TABLE_PART);
        l->rows = (int64_t)count;
        l->grain = TABLE_PART;
    }
}

void plan_copy(Build *b, uint32_t from, uint64_t shift, uint32_t to, int64_t elements, DType dtype, Val of)
{
    Launch *l = plan_launch(b, LAUNCH_KERNEL, 2, of);
    plan_argument(b, l, 0, from, shift, false);
    plan_argument(b, l, 1, to, 0, true);
    plan_ints(b, l, (int64_t[]){dtype == DT_INT ? 2 : 1}, 1);
    plan_library_kernel(b, l, LIB_COPY, NULL, 0);
    l->rows = elements;
    l->grain = 16384;
}

/* A launch for each slice: all have one text, since where a slice lies is an argument. */
void plan_parts(Build *b, Val v)
{
    const Node *n = node_at(b->g, v);
    uint32_t out = plan_buffer(b, v);
    int64_t item = (int64_t)plan_item_bytes(&b->buffer.v[out]), place = 0;
    int64_t all = item * plan_extent(b, v, n->shape.rank - 1);
    for (size_t k = 0; k < n->n_in; k++) {
        Operand o;
        int64_t rows, pitch, bytes = item * plan_extent(b, n->in[k], n->shape.rank - 1), here = place;
        place += bytes;
        if (b->f->row_of[fuse_base(b->f, n->in[k])] == v)
            continue;
        Launch *l = plan_launch(b, b->target->own_library ? LAUNCH_COPY : LAUNCH_KERNEL, 2, v);
        plan_read(b, l, 0, n->in[k], &o);
        plan_argument(b, l, 1, out, (uint64_t)here, true);
        if (!operand_rows(&o, &rows, &pitch) || b->buffer.v[l->buffer[0]].half != b->buffer.v[out].half)
            vwn_bug(b->ctx, "%%%u: part %zu cannot be copied", (unsigned)v, k);
        l->copy = (PlanCopy){bytes, item * pitch, all};
        if (!b->target->own_library) {
            plan_ints(b, l, (int64_t[]){bytes, item * pitch, all}, 3);
            plan_library_kernel(b, l, LIB_PART, NULL, 0);
        }
        l->rows = rows;
        l->grain = grain_for(bytes);
        l->bytes = 2 * (double)rows * (double)bytes;
    }
}

/* ---- attention ---- */

static Val aux_of(const Build *b, Val v, int64_t which)
{
    for (Val u = v + 1; u < b->g->node.n; u++) {
        const Node *n = node_at(b->g, u);
        if (n->op == OP_AUX && n->in[0] == v && n->a.i == which)
            return u;
    }
    return 0;
}

/* The memory of a further result, which nobody may want. */
uint32_t plan_aux_buffer(Build *b, Val v, int64_t which, int64_t elements)
{
    Val u = aux_of(b, v, which);
    return u ? plan_buffer(b, u) : plan_scratch(b, DT_REAL, elements, node_at(b->g, v)->name);
}

/* grad: which gradients, GRAD_OF_*; 0 forward */
void plan_attention_args(Build *b, Launch *l, Val v, const Operand o[3], int grad)
{
    const Node *n = node_at(b->g, v);
    LaunchInt *x = NEW_ARRAY(b->arena, LaunchInt, 21);
    int64_t value[17] = {plan_extent(b, n->in[0], 1),
                         plan_extent(b, n->in[1], 1),
                         plan_extent(b, n->in[0], 2),
                         plan_extent(b, n->in[1], 2),
                         plan_extent(b, n->in[0], 3),
                         plan_extent(b, n->in[2], 3),
                         n->a.i & 1,
                         n->a.j};
    for (int i = 0; i < 3; i++)
        for (int k = 0; k < 3; k++)
            value[8 + 3 * i + k] = o[i].stride[k];
    for (int i = 0; i < 17; i++)
        x[i].value = value[i];
    if (n->a.z > 0) {
        x[17] = (LaunchInt){.kind = INT_SEED, .site = n->a.site};
        x[18] = (LaunchInt){.kind = INT_STEP};
        x[19] = (LaunchInt){.kind = INT_FIRST, .value = dim_at(draws_of_sequence(b->g, n), b->B, b->T)};
    }
    x[20].value = grad;
    LaunchScalar *s = NEW_ARRAY(b->arena, LaunchScalar, 3);
    s[0] = (LaunchScalar){-1, n->a.x};
    s[1] = (LaunchScalar){-1, n->a.y};
    s[2] = (LaunchScalar){-1, n->a.z};
    l->ints = x;
    l->n_int = grad ? 21 : n->a.z > 0 ? 20 : 19;
    l->scalars = s;
}

static int64_t blocks_of(int64_t n, int64_t size) { return (n + size - 1) / size; }

static int64_t attention_rows(const Build *b, const Node *n, LibraryKernel which, int grad)
{
    int64_t B = plan_extent(b, n->in[0], 0), T = plan_extent(b, n->in[0], 1), S = plan_extent(b, n->in[1], 1);
    int64_t H = plan_extent(b, n->in[0], 2), K = plan_extent(b, n->in[1], 2);
    switch (grad) {
    case GRAD_OF_Q: return B * H * blocks_of(T, ATTENTION_RANGE);
    case GRAD_OF_K: return B * K * blocks_of(S, ATTENTION_SLICE);
    case GRAD_OF_Q | GRAD_OF_K: return B * K;
    default: return B * H * (which == LIB_SDPA_AT ? T : blocks_of(T, ATTENTION_BLOCK_Q));
    }
}

/* Scores of a head that its mask and window leave, in whole blocks of keys. */
static double seen_scores(const Build *b, const Node *n)
{
    double T = (double)plan_extent(b, n->in[0], 1), S = (double)plan_extent(b, n->in[1], 1);
    bool causal = n->a.i & 1;
    double past = n->a.j > 0 && (double)n->a.j < S ? (double)n->a.j : S;
    double keys = causal ? past * (1 - past / (2 * S)) : past == S ? S : 2 * past;
    keys += causal || past < S ? ATTENTION_BLOCK_K : 0;
    return T * (keys < S ? keys : S);
}

void plan_attention_work(Build *b, Launch *l, const Node *n, double products, bool backward)
{
    double heads = (double)plan_extent(b, n->in[0], 0) * (double)plan_extent(b, n->in[0], 2);
    l->work.scores = heads * seen_scores(b, n);
    l->work.attention = 2 * l->work.scores * products;
    l->work.random = n->a.z > 0 ? l->work.scores : 0;
    l->work.backward = backward;
}

static void attention_launch(Build *b, Val v, LibraryKernel which, int grad, const uint32_t *out, size_t n_out)
{
    const Node *n = node_at(b->g, v);
    bool oldest = sdpa_has_oldest(b->g, n);
    size_t n_in = n->n_in - (size_t)oldest; /* the first keys stand behind the results */
    Launch *l = plan_launch(b, LAUNCH_KERNEL, n_in + n_out + (size_t)oldest, v);
    Operand o[7] = {{0}};
    for (size_t i = 0; i < n_in; i++)
        plan_read(b, l, i, n->in[i], &o[i]);
    for (size_t i = 0; i < n_out; i++) {
        plan_argument(b, l, n_in + i, out[i], 0, true);
        if (i && out[i] == out[i - 1])
            l->bytes -= (double)b->buffer.v[out[i]].bytes;
    }
    if (oldest)
        plan_read(b, l, n_in + n_out, n->in[n_in], &o[n_in]);
    plan_attention_args(b, l, v, o, grad);
    int64_t d = plan_extent(b, n->in[0], 3), dv = plan_extent(b, n->in[2], 3);
    AttentionClass a = {(d + 15) / 16 * 16, (dv + 15) / 16 * 16, n->a.y > 0, n->a.z > 0, oldest};
    plan_library_kernel(b, l, which, &a, 3);
    l->rows = attention_rows(b, n, which, grad);
    double products = (double)(d + dv); /* scores, and values or their gradient */
    products += grad & GRAD_OF_Q ? (double)d : 0;
    products += grad & GRAD_OF_K ? (double)(d + dv) : 0;
    double heads = (double)plan_extent(b, n->in[0], 0) * (double)plan_extent(b, n->in[0], 2);
    double all = (double)plan_extent(b, n->in[0], 1) * (double)plan_extent(b, n->in[1], 1);
    l->flops = 2 * heads * all * products;
    plan_attention_work(b, l, n, products, grad != 0);
}

/* One kernel for all gradients needs the scores once; with few heads it would leave threads idle,
 * so the gradients of queries and of keys are launched apart. Of the sizes alone, so that results
 * do not change with the machine. */
static void launch_sdpa_grad(Build *b, Val v)
{
    const Node *n = node_at(b->g, v);
    /* a launch for one gradient names its own buffer where the others would stand */
    uint32_t dq = plan_buffer(b, v);
    if (fuse_empty(b->f, n->in[1])) {
        attention_launch(b, v, LIB_SDPA_GRAD, GRAD_OF_Q, (uint32_t[]){dq, dq, dq}, 3);
        return;
    }
    uint32_t dk = plan_aux_buffer(b, v, 0, plan_elements(b, n->in[1]));
    uint32_t dv = plan_aux_buffer(b, v, 1, plan_elements(b, n->in[2]));
    int all = GRAD_OF_Q | GRAD_OF_K;
    if (attention_rows(b, n, LIB_SDPA_GRAD, all) >= b->f->target->tuned->attention_rows) {
        attention_launch(b, v, LIB_SDPA_GRAD, all, (uint32_t[]){dq, dk, dv}, 3);
    } else {
        attention_launch(b, v, LIB_SDPA_GRAD, GRAD_OF_Q, (uint32_t[]){dq, dq, dq}, 3);
        attention_launch(b, v, LIB_SDPA_GRAD, GRAD_OF_K, (uint32_t[]){dk, dk, dv}, 3);
    }
}

static void launch_sdpa(Build *b, Val v)
{
    const Node *n = node_at(b->g, v);
    int64_t rows = plan_extent(b, v, 0) * plan_extent(b, v, 1) * plan_extent(b, v, 2);
    uint32_t out[2] = {plan_buffer(b, v), plan_aux_buffer(b, v, 0, rows)};
    bool at = n->n_in > 3 && !sdpa_has_oldest(b->g, n);
    if (b->target->own_library && !at) {
        plan_device_sdpa(b, v);
        return;
    }
    attention_launch(b, v, at ? LIB_SDPA_AT : LIB_SDPA, 0, out, 2);
}

void plan_library(Build *b, Val v)
{
    switch ((Op)node_at(b->g, v)->op) {
    case OP_MATMUL: launch_matmul(b, v); break;
    case OP_EXPERT_MATMUL:
    case OP_EXPERT_MATMUL_DW: b->target->own_library ? plan_device_expert(b, v) : launch_expert(b, v); break;
    case OP_CONCAT: plan_parts(b, v); break;
    case OP_CUMSUM: launch_cumsum(b, v); break;
    case OP_TOP_K: launch_top_k(b, v); break;
    case OP_SCATTER_ADD: b->target->own_library ? plan_device_scatter(b, v) : launch_scatter_add(b, v); break;
    case OP_DYNAMIC_UPDATE_SLICE: launch_put(b, v); break;
    case OP_DYNAMIC_SLICE: launch_take(b, v); break;
    case OP_SDPA: launch_sdpa(b, v); break;
    case OP_SDPA_GRAD: b->target->own_library ? plan_device_sdpa_grad(b, v) : launch_sdpa_grad(b, v); break;
    case OP_CONST: launch_table(b, v); break;
    default: vwn_bug(b->ctx, "%s has no launch", op_info((Op)node_at(b->g, v)->op)->name);
    }
}

bool launch_map_fits(const LaunchMap *m)
{
    enum { ITEM = 2, LINE = 128 };
    if (!m->half || m->stride[0] != 1 || m->box[0] * ITEM != LINE)
        return false;
    for (int i = 0; i < MAP_RANK; i++) {
        int64_t bytes = ITEM * m->stride[i];
        if (m->extent[i] < 1 || m->extent[i] > UINT32_MAX || !m->box[i] || m->box[i] > MAP_BOX)
            return false;
        if (i && (bytes % MAP_PIECE || bytes >= (int64_t)1 << 40 || bytes < (i == 1 ? ITEM : 1) * m->extent[i - 1]))
            return false;
    }
    return true;
}

uint64_t plan_shared_bytes(const PlanGrid *g, const int64_t *n)
{
    uint64_t bytes = g->shared;
    for (uint32_t i = 0; i < g->n_term; i++)
        bytes += ((uint64_t)n[g->term[i].n] * g->term[i].bytes + 15) / 16 * 16;
    return bytes;
}
