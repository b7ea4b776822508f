/* plan_device.c - launches of a device that are not printed from expressions.
 *
 * In:  a node of the library's, or a launch with its arguments.     Out: kernels with CUDA text.
 * The one idea: a device's kernel takes the arguments of the CPU's, each by itself; where one
 * launch of the CPU is several of a device, these are ordinary launches with scratch between.
 */
#include "compiler/library/cuda_attention.h"
#include "compiler/library/cuda_expert.h"
#include "compiler/library/cuda_scatter.h"
#include "compiler/library/library_cuda.h"
#include "compiler/graph/op.h"
#include "compiler/portable/device_call.h"
#include "plan_build.h"

/* What it was first printed for: where that stands, what its buffers are. */
static const char *where(const Build *b, const Launch *l)
{
    Buf text = buf_new(b->arena);
    buf_printf(&text, "/* %s\n", plan_comment(b, l));
    for (uint32_t i = 0; i < l->n_buffer; i++) {
        const PlanBuffer *x = &b->buffer.v[l->buffer[i]];
        buf_printf(&text, " *     p%u ", (unsigned)i);
        if (x->shape)
            shape_print(&text, x->shape);
        buf_printf(&text, " %s\n", x->name ? x->name : "");
    }
    buf_puts(&text, " */\n");
    return text.s;
}

void plan_device_kernel(Build *b, Launch *l, const char *library, const char *text, size_t length, const PlanGrid *grid,
                        size_t n_scalar)
{
    Name name = emit_name(b->ctx, b->f->tmp, &text, &length);
    l->kernel = plan_kernel(b, name, text, length, l->n_buffer, l->n_int, n_scalar);
    l->n_scalar = (uint32_t)n_scalar;
    PlanKernel *k = &b->kernel.v[l->kernel];
    if (!k->where) {
        k->grid = *grid;
        k->library = library;
        k->where = where(b, l);
    }
}

/* ---- what changes from run to run ---- */

static bool same_number(const PlanNumber *x, const PlanNumber *y)
{
    return x->kind == y->kind && x->site == y->site && x->host == y->host && x->bits == y->bits;
}

uint32_t plan_numbers_buffer(Build *b)
{
    if (!b->number.n)
        b->plan->numbers = plan_scratch(b, DT_INT, 0, "numbers");
    return b->plan->numbers;
}

/* Launches that want the same numbers in the same order read the same ones. */
void plan_numbers(Build *b, Launch *l, size_t i, const PlanNumber *x, size_t n)
{
    size_t at = 0;
    uint32_t buffer = plan_numbers_buffer(b);
    for (; at < b->number.n; at++) {
        size_t k = 0;
        while (k < n && at + k < b->number.n && same_number(&b->number.v[at + k], &x[k]))
            k++;
        if (k == n)
            break;
    }
    bool found = at < b->number.n;
    for (size_t k = 0; !found && k < n; k++)
        vec_push(b->arena, &b->number, x[k]);
    b->buffer.v[buffer].bytes = 8 * (uint64_t)b->number.n;
    plan_argument(b, l, i, buffer, 8 * (uint64_t)at, false);
    l->bytes -= 8 * (double)(b->number.n - n);
}

/* What changes from run to run of a kind of number. */
static uint64_t drawn(IntKind kind, Name site, uint64_t bits, const RandomKey *key)
{
    switch (kind) {
    case INT_SEED: return philox_key(key->seed, site);
    case INT_STEP: return key->step;
    case INT_FIRST: return bits * key->first;
    default: return bits;
    }
}

uint64_t plan_number(const Plan *p, size_t i, const RandomKey *key, const double *host)
{
    const PlanNumber *x = &p->number[i];
    return x->host >= 0 ? call_number(host[x->host]) : drawn(x->kind, x->site, x->bits, key);
}

int64_t plan_int(const LaunchInt *x, const RandomKey *key)
{
    return (int64_t)drawn(x->kind, x->site, (uint64_t)x->value, key);
}

/* ---- attention ---- */

typedef struct Attention {
    Build *b;
    Val of;
    bool oldest;
    int64_t B, T, S, H, K;
    CudaAttentionClass class;
} Attention;

static Attention attention_of(Build *b, Val v)
{
    const Node *n = node_at(b->g, v);
    Attention a = {b,
                   v,
                   sdpa_has_oldest(b->g, n),
                   plan_extent(b, n->in[0], 0),
                   plan_extent(b, n->in[0], 1),
                   plan_extent(b, n->in[1], 1),
                   plan_extent(b, n->in[0], 2),
                   plan_extent(b, n->in[1], 2),
                   {0}};
    int64_t d = plan_extent(b, n->in[0], 3), dv = plan_extent(b, n->in[2], 3);
    if (d > CUDA_HEAD_MOST || dv > CUDA_HEAD_MOST)
        ctx_raise(b->ctx, ST_ENVIRONMENT, "attention of %s has heads of %lld numbers; a CUDA kernel has room for %d",
                  n->name ? n->name : "", (long long)(d > dv ? d : dv), CUDA_HEAD_MOST);
    a.class = (CudaAttentionClass){.d = cuda_attention_pad(d),
                                   .dv = cuda_attention_pad(dv),
                                   .capped = n->a.y > 0,
                                   .dropped = n->a.z > 0,
                                   .oldest = a.oldest,
                                   .warpgroups = b->target->warpgroups};
    return a;
}

/* The widest access that sizes, strides and places of q, k and v allow, and places of a gradient's others. */
static int width_of(const Attention *a, CudaAttentionKernel which, const Launch *l, const Operand o[3], Half half)
{
    const Node *n = node_at(a->b->g, a->of);
    int64_t size[16] = {plan_extent(a->b, n->in[0], 3), plan_extent(a->b, n->in[2], 3)};
    for (int i = 0; i < 2 && which != CUDA_SDPA; i++)
        size[14 + i] = (int64_t)l->shift[3 + 2 * i] / half_bytes(half);
    for (int i = 0; i < 3; i++) {
        size[2 + i] = (int64_t)l->shift[i] / half_bytes(half);
        for (int k = 0; k < 3; k++)
            size[5 + 3 * i + k] = o[i].stride[k];
    }
    int width = cuda_attention_width(half, size, COUNT_OF(size));
    if (!width)
        ctx_raise(a->b->ctx, ST_ENVIRONMENT,
                  "attention of %s has heads of an odd number of %s; a CUDA kernel takes pairs", n->name ? n->name : "",
                  half_word(half));
    return width;
}

/* Are there heads of this class that are whole accesses of 16 bytes and others that are not? Then one text
 * is for all of them. Layers of one head size keep the text that knows its access. */
static bool is_mixed(const Attention *a, Half half)
{
    const Build *b = a->b;
    bool whole = false, other = false;
    int size = half_bytes(half);
    for (size_t i = 0; i < b->f->group.n; i++) {
        const Node *n = node_at(b->g, b->f->group.v[i].anchor);
        if (b->f->group.v[i].kind != GROUP_LIBRARY || n->op != OP_SDPA)
            continue;
        int64_t d = plan_extent(b, n->in[0], 3), dv = plan_extent(b, n->in[2], 3);
        if (cuda_attention_pad(d) != a->class.d || cuda_attention_pad(dv) != a->class.dv)
            continue;
        bool is = d * size % 16 == 0 && dv * size % 16 == 0;
        whole = whole || is;
        other = other || !is;
    }
    return whole && other;
}

static const PlanSize *attention_sizes(Build *b, const CudaAttentionClass *c, uint32_t n)
{
    PlanSize *size = NEW_ARRAY(b->arena, PlanSize, n + 1);
    int width = c->width == CUDA_ACCESS_ANY ? 2 : c->width;
    for (uint32_t i = 0; i < n; i++)
        size[i].multiple = i >= ATTENTION_D && i <= ATTENTION_DV               ? width
                           : i >= ATTENTION_STRIDE && i < ATTENTION_STRIDE + 9 ? width
                                                                               : 1;
    size[ATTENTION_D].most = c->d;
    size[ATTENTION_DV].most = c->dv;
    return size;
}

/* All that heads consist of lies in one type, statistics in float32. */
static void check_types(const Attention *a, CudaAttentionKernel which, const Launch *l)
{
    static const unsigned statistics[] = {1 << 4, 1 << 4 | 1 << 7, 1 << 3 | 1 << 4};
    for (uint32_t i = 0; i < l->n_buffer - a->oldest - a->class.dropped; i++)
        if (a->b->buffer.v[l->buffer[i]].half != (statistics[which] >> i & 1 ? HALF_NONE : a->class.half))
            vwn_bug(a->b->ctx, "%%%u: attention has operands of two types", (unsigned)a->of);
}

/* Argument i: key, step and first sequence of random numbers, which are the last integers. */
static void draw_from_memory(Build *b, Launch *l, size_t i)
{
    PlanNumber number[3];
    l->n_int -= COUNT_OF(number);
    for (size_t k = 0; k < COUNT_OF(number); k++) {
        const LaunchInt *x = &l->ints[l->n_int + k];
        number[k] = (PlanNumber){x->kind, x->site, -1, 0, (uint64_t)x->value};
    }
    plan_numbers(b, l, i, number, COUNT_OF(number));
}

/* The tensor maps of a launch. Operands that none describes, such as one that is repeated, warpgroups do not compute. */
static uint32_t attention_maps(Attention *a, CudaAttentionKernel which, Launch *l)
{
    LaunchMap *map = NEW_ARRAY(a->b->arena, LaunchMap, CUDA_ATTENTION_MAPS);
    int64_t ints[ATTENTION_STRIDE + 9];
    for (size_t i = 0; i < COUNT_OF(ints); i++)
        ints[i] = l->ints[i].value;
    for (uint32_t i = 0; i < cuda_attention_maps(which, &a->class); i++) {
        map[i] = cuda_attention_map(which, &a->class, i, a->B, ints);
        a->class.warpgroups = launch_map_fits(&map[i]);
    }
    l->map = map;
    return cuda_attention_maps(which, &a->class);
}

/* in: values, of which the first three are q, k and v; 0: the buffer `mean`. */
static void attention_launch(Attention *a, CudaAttentionKernel which, const Val *in, size_t n_in, uint32_t mean,
                             const uint32_t *out, size_t n_out)
{
    static const char *const names[] = {"sdpa", "sdpa_grad_q", "sdpa_grad_k"};
    Build *b = a->b;
    const Node *n = node_at(b->g, a->of);
    bool dropped = a->class.dropped;
    Launch *l = plan_launch(b, LAUNCH_KERNEL, n_in + n_out + a->oldest + dropped, a->of);
    Operand o[7];
    for (size_t i = 0; i < n_in; i++)
        if (in[i])
            plan_read(b, l, i, in[i], &o[i]);
        else
            plan_argument(b, l, i, mean, 0, false);
    for (size_t i = 0; i < n_out; i++)
        plan_argument(b, l, n_in + i, out[i], 0, true);
    if (a->oldest)
        plan_read(b, l, n_in + n_out, n->in[n->n_in - 1], &o[6]);
    plan_attention_args(b, l, a->of, o, 0);
    if (dropped)
        draw_from_memory(b, l, l->n_buffer - 1);
    a->class.half = b->buffer.v[l->buffer[0]].half;
    check_types(a, which, l);
    a->class.width = width_of(a, which, l, o, a->class.half);
    if (cuda_attention_takes_any(&a->class) && is_mixed(a, a->class.half))
        a->class.width = CUDA_ACCESS_ANY;
    uint32_t maps = attention_maps(a, which, l);
    CudaAttentionLaunch how = cuda_attention_launch(which, &a->class);
    PlanGrid grid = {.threads = (uint32_t)how.threads, .units = 1, .shared = (uint32_t)how.shared, .whole = true};
    const CudaAttentionClass *c = &a->class;
    const int64_t key[] = {which, c->d, c->dv, c->half, c->capped, c->dropped, c->oldest, c->width, c->warpgroups};
    l->n_scalar = 3;
    if (!plan_has_text(b, l, TEXT_OF_ATTENTION, key, sizeof key)) {
        size_t length;
        ArenaMark mark = arena_mark(b->f->tmp);
        const char *text = cuda_attention(b->f->tmp, which, c, &length);
        plan_device_kernel(b, l, names[which], text, length, &grid, l->n_scalar);
        plan_keep_text(b, l);
        arena_reset(b->f->tmp, mark);
    }
    PlanKernel *k = &b->kernel.v[l->kernel];
    if (!k->size)
        k->size = attention_sizes(b, &a->class, l->n_int);
    k->n_map = maps;
    bool of_k = which == CUDA_SDPA_GRAD_K;
    l->rows = cuda_attention_blocks(&how, a->B, of_k ? a->S : a->T, of_k ? a->K : a->H);
    int64_t d = plan_extent(b, n->in[0], 3), dv = plan_extent(b, n->in[2], 3);
    double products = (double)(d + dv + (which == CUDA_SDPA ? 0 : of_k ? d + dv : d));
    l->flops = 2.0 * (double)(a->B * a->H) * (double)(a->T * a->S) * products;
    plan_attention_work(b, l, n, products, which != CUDA_SDPA);
}

void plan_device_sdpa(Build *b, Val v)
{
    Attention a = attention_of(b, v);
    uint32_t out[2] = {plan_buffer(b, v), plan_aux_buffer(b, v, 0, a.B * a.T * a.H)};
    attention_launch(&a, CUDA_SDPA, node_at(b->g, v)->in, 3, 0, out, 2);
}

/* The sums of dout out are one launch's result and the other's operand. */
void plan_device_sdpa_grad(Build *b, Val v)
{
    Attention a = attention_of(b, v);
    const Node *n = node_at(b->g, v);
    uint32_t mean = plan_scratch(b, DT_REAL, a.B * a.T * a.H, n->name);
    attention_launch(&a, CUDA_SDPA_GRAD_Q, n->in, 6, 0, (uint32_t[]){plan_buffer(b, v), mean}, 2);
    if (fuse_empty(b->f, n->in[1]))
        return;
    uint32_t out[2] = {plan_aux_buffer(b, v, 0, plan_elements(b, n->in[1])),
                       plan_aux_buffer(b, v, 1, plan_elements(b, n->in[2]))};
    Val in[6];
    memcpy(in, n->in, sizeof in);
    in[3] = 0; /* the sums instead of the result */
    attention_launch(&a, CUDA_SDPA_GRAD_K, in, 6, mean, out, 2);
}

/* ---- by index ---- */

/* A launch of one of the texts; its buffers and numbers are there already. */
static void scatter_kernel(Build *b, Launch *l, CudaScatterKernel which, const PlanGrid *grid)
{
    static const char *const names[] = {"scatter_add", "zeros", "scatter_add_any"};
    size_t length;
    ArenaMark mark = arena_mark(b->f->tmp);
    const char *text = cuda_scatter(b->f->tmp, which, b->buffer.v[l->buffer[0]].half, &length);
    plan_device_kernel(b, l, names[which], text, length, grid, 0);
    arena_reset(b->f->tmp, mark);
}

/* By atomic additions: in any order, but no index is read more than once. */
static void scatter_any(Build *b, Val v, int64_t rows, int64_t width)
{
    const Node *n = node_at(b->g, v);
    Operand o;
    Launch *l = plan_launch(b, LAUNCH_KERNEL, 1, v);
    plan_argument(b, l, 0, plan_buffer(b, v), 0, true);
    scatter_kernel(b, l, CUDA_SCATTER_ZEROS, &(PlanGrid){.threads = 256, .units = 1024});
    l->rows = rows * width;
    l = plan_launch(b, LAUNCH_KERNEL, 3, v);
    plan_read(b, l, 0, n->in[0], &o);
    plan_read(b, l, 1, n->in[1], &o);
    plan_argument(b, l, 2, plan_buffer(b, v), 0, true);
    plan_ints(b, l, (int64_t[]){width, rows}, 2);
    scatter_kernel(b, l, CUDA_SCATTER_ANY, &(PlanGrid){.threads = 256, .units = 8});
    l->rows = plan_elements(b, n->in[1]);
}

/* The pairs of an index sorted, once for all that use it. */
static PlanSorted sorted(Build *b, Val v, Val index, int64_t experts, int low)
{
    Val base = plan_strip(b, index);
    for (size_t i = 0; i < b->sorted.n; i++)
        if (b->sorted.v[i].index == base && b->sorted.v[i].experts == experts && b->sorted.v[i].low == low)
            return b->sorted.v[i];
    int64_t pairs = plan_elements(b, index);
    Name name = node_at(b->g, index)->name;
    PlanSorted s = {base, experts, low, plan_scratch(b, DT_INT, experts + 2, name),
                    plan_scratch(b, DT_INT, pairs, name)};
    vec_push(b->arena, &b->sorted, s);
    Operand o;
    Launch *l = plan_launch(b, LAUNCH_KERNEL, 3, v);
    plan_read(b, l, 0, index, &o);
    plan_argument(b, l, 1, s.start, 0, true);
    plan_argument(b, l, 2, s.order, 0, true);
    plan_ints(b, l, (int64_t[]){pairs, experts, low}, 3);
    PlanGrid grid = {.threads = CUDA_EXPERT_SORT_THREADS, .units = 1};
    size_t length;
    ArenaMark mark = arena_mark(b->f->tmp);
    const char *text = cuda_expert_sort(b->f->tmp, &length);
    plan_device_kernel(b, l, "expert_sort", text, length, &grid, 0);
    arena_reset(b->f->tmp, mark);
    l->rows = experts + 1;
    return s;
}

void plan_device_scatter(Build *b, Val v)
{
    const Node *n = node_at(b->g, v);
    Operand o;
    int64_t rows = plan_extent(b, v, 0), width = plan_elements(b, v) / rows;
    if (b->any_order) {
        scatter_any(b, v, rows, width);
        return;
    }
    PlanSorted sort = sorted(b, v, n->in[1], cuda_scatter_groups(rows), cuda_scatter_low(rows));
    Launch *l = plan_launch(b, LAUNCH_KERNEL, 5, v);
    plan_read(b, l, 0, n->in[0], &o);
    plan_read(b, l, 1, n->in[1], &o);
    plan_argument(b, l, 2, sort.start, 0, false);
    plan_argument(b, l, 3, sort.order, 0, false);
    plan_argument(b, l, 4, plan_buffer(b, v), 0, true);
    plan_ints(b, l, (int64_t[]){width, rows, sort.low}, 3);
    scatter_kernel(
        b, l, CUDA_SCATTER,
        &(PlanGrid){.threads = CUDA_SCATTER_THREADS, .units = 1, .shared = CUDA_SCATTER_SHARED, .whole = true});
    l->rows = cuda_scatter_blocks(rows, width);
}

/* ---- products by expert ---- */

static const PlanSize *expert_sizes(Build *b, const CudaExpertClass *c)
{
    int64_t multiple[4];
    PlanSize *size = NEW_ARRAY(b->arena, PlanSize, 6);
    cuda_expert_multiples(c, multiple);
    for (int i = 0; i < 6; i++)
        size[i].multiple = i < 2 ? 1 : multiple[i - 2];
    return size;
}

/* How many elements from one row of an operand to the next. */
static int64_t expert_operand(Build *b, Launch *l, size_t i, Val v)
{
    Operand o;
    int64_t rows = 0, pitch = 0;
    plan_read(b, l, i, v, &o);
    if (plan_elements(b, v) > 0 && !operand_rows(&o, &rows, &pitch))
        vwn_bug(b->ctx, "%%%u: a kernel cannot take it as rows", (unsigned)v);
    return rows > 1 ? pitch : o.extent[o.rank - 1];
}

void plan_device_expert(Build *b, Val v)
{
    const Node *n = node_at(b->g, v);
    PlanExpert e = plan_expert(b, v);
    int64_t pairs = e.tokens * e.choices;
    Name name = node_at(b->g, n->in[2])->name;
    if (pairs > CUDA_EXPERT_PAIRS)
        ctx_raise(b->ctx, ST_ENVIRONMENT,
                  "%s has %lld pairs of a token and an expert at once; a CUDA kernel counts up to %lld: take fewer "
                  "sequences at once"
                  " (train.micro_batch)",
                  name ? name : "a product by expert", (long long)pairs, (long long)CUDA_EXPERT_PAIRS);
    PlanSorted sort = sorted(b, v, n->in[2], e.experts, 0);
    CudaExpertClass c = {.dw = e.what == EXPERT_DW, .transposed = e.transpose_w, .warpgroups = b->target->warpgroups};
    CudaExpertSizes s = {.pairs = pairs, .experts = e.experts, .in = e.in, .out = e.out};
    Launch *l = plan_launch(b, LAUNCH_KERNEL, 5, v);
    s.pitch_x = expert_operand(b, l, 0, n->in[0]);
    s.pitch_w = expert_operand(b, l, 1, n->in[1]);
    plan_argument(b, l, 2, sort.start, 0, false);
    plan_argument(b, l, 3, sort.order, 0, false);
    plan_argument(b, l, 4, plan_buffer(b, v), 0, true);
    c.x_half = b->buffer.v[l->buffer[0]].half;
    c.w_half = b->buffer.v[l->buffer[1]].half;
    c.y_half = b->buffer.v[l->buffer[4]].half;
    cuda_expert_choose(&c, &s, (int64_t)l->shift[0] / half_bytes(c.x_half),
                       (int64_t)l->shift[1] / half_bytes(c.w_half));
    CudaExpertLaunch how = cuda_expert_launch(&c);
    plan_ints(b, l, (int64_t[]){e.x_per_pair ? 1 : e.choices, e.experts, e.in, e.out, s.pitch_x, s.pitch_w}, 6);
    PlanGrid grid = {.threads = (uint32_t)how.threads, .units = 1, .shared = (uint32_t)how.shared};
    const int64_t key[] = {c.dw,     c.transposed, c.half,    c.x_half,     c.w_half,
                           c.y_half, c.x_width,    c.w_width, c.warpgroups, c.tile};
    if (!plan_has_text(b, l, TEXT_OF_EXPERT, key, sizeof key)) {
        size_t length;
        ArenaMark mark = arena_mark(b->f->tmp);
        const char *text = cuda_expert(b->f->tmp, &c, &length);
        plan_device_kernel(b, l, c.dw ? "expert_dw" : "expert", text, length, &grid, 0);
        plan_keep_text(b, l);
        arena_reset(b->f->tmp, mark);
    }
    PlanKernel *k = &b->kernel.v[l->kernel];
    if (!k->size)
        k->size = expert_sizes(b, &c);
    l->rows = cuda_expert_blocks(&c, &s);
    l->flops = 2.0 * (double)s.pairs * (double)e.in * (double)e.out;
    *(c.half ? &l->work.expert_half : &l->work.expert) = l->flops;
}
