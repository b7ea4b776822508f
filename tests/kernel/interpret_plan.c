/* interpret_plan.c - see interpret.h: the launches of a plan.
 *
 * The one idea: every buffer is an array of its own in float64 with canaries; kernels of the library
 * are done by the reference evaluator's rules or by their definition.
 */
#include "interpret.h"

#include "compiler/graph/op.h"
#include "compiler/plan/pipeline.h"

#include <math.h>
#include <string.h>

enum { CANARIES = 8 };
static const double canary = 0x1.8badcafep+500;

typedef struct PlanRun {
    Ctx *ctx;
    Arena *arena;
    const Plan *p;
    const HostRun *how;
    bool single;
    Cells *cells; /* by buffer */
} PlanRun;

static Cells cells_new(Arena *arena, DType dtype, int64_t n)
{
    Cells c = {.dtype = dtype, .n = n};
    double *real = NEW_ARRAY(arena, double, (size_t)n + 2 * CANARIES);
    for (int64_t i = 0; i < n + 2 * CANARIES; i++)
        real[i] = i < CANARIES || i >= n + CANARIES ? canary : NAN;
    c.real = real + CANARIES;
    c.integer = (int64_t *)(void *)c.real;
    return c;
}

static void check_canaries(const PlanRun *r)
{
    for (size_t b = 0; b < r->p->n_buffer; b++)
        for (int i = 1; i <= CANARIES; i++)
            if (r->cells[b].real[-i] != canary || r->cells[b].real[r->cells[b].n + i - 1] != canary)
                vwn_bug(r->ctx, "something wrote around buffer %zu", b);
}

/* ---- kernels ---- */

static const KernelText *program(PlanRun *r, const char *text)
{
    Buf b = buf_new(r->arena);
    kernels_begin(&b, r->p->B, r->p->T);
    buf_puts(&b, text);
    uint32_t source = source_add(r->ctx, "kernel", b.s, b.n);
    KernelTexts *k = kernels_read(r->ctx, r->arena, source);
    if (!k || k->kernel.n != 1)
        vwn_bug(r->ctx, "a kernel does not read back: %s",
                diag_count(r->ctx) ? diag_get(r->ctx, 0)->labels.v[0].text : "");
    Buf again = buf_new(r->arena);
    kernels_put(&again, &k->kernel.v[0]);
    if (strcmp(again.s, text) != 0)
        vwn_bug(r->ctx, "a kernel that was read prints other lines");
    return &k->kernel.v[0];
}

static double scalar(const PlanRun *r, const LaunchScalar *s)
{
    double x = s->host < 0 ? s->value : host_eval(r->p->host[s->host], r->how->host_vars);
    return r->single ? (double)(float)x : x;
}

/* What a launch stores it stores once and whole; sinks are checked by their second stage. */
static void check_stores(PlanRun *r, const Launch *l, const Kernel *k, const Printed *printed)
{
    for (size_t i = 0; i < printed->buffer.n; i++) {
        const KBuffer *kb = &k->buffer.v[printed->buffer.v[i]];
        Cells *c = &r->cells[l->buffer[i]];
        for (int64_t j = 0; kb->written && kb->part < 0 && j < kb->elements; j++)
            if (!c->stores[j])
                vwn_bug(r->ctx, "element %lld of %s is not stored", (long long)j, kb->name ? kb->name : "");
        c->stores = NULL;
    }
}

static void run_rows(PlanRun *r, const Launch *l)
{
    const PlanKernel *pk = &r->p->kernel[l->kernel];
    const KernelText *text = program(r, l->program);
    const Kernel *k = text->kernel;
    Printed printed;
    pipeline_print(&printed, k, &dialect_c, text->about, NULL);
    if (strcmp(printed.text, pk->text) != 0)
        vwn_bug(r->ctx, "%s: its program prints another text", pk->name);
    KernelCall call = {.k = k, .seed = r->how->seed, .step = r->how->step, .first = r->how->first, .single = r->single};
    call.buffer = NEW_ARRAY(r->arena, Cells *, k->buffer.n + 1);
    double *s = NEW_ARRAY(r->arena, double, k->scalar.n + 1);
    for (size_t i = 0; i < printed.buffer.n; i++) {
        Cells *c = call.buffer[printed.buffer.v[i]] = &r->cells[l->buffer[i]];
        if (l->shift[i])
            vwn_bug(r->ctx, "a printed kernel with a shift");
        c->stores = NEW_ARRAY(r->arena, uint8_t, (size_t)c->n + 1);
    }
    for (size_t i = 0; i < printed.scalar.n; i++)
        s[printed.scalar.v[i]] = scalar(r, &l->scalars[i]);
    call.scalar = s;
    for (int64_t lo = 0; lo < l->rows; lo += 5)
        interpret_kernel(&call, lo, lo + 5 < l->rows ? lo + 5 : l->rows);
    check_stores(r, l, k, &printed);
}

/* ---- the library ---- */

static int64_t part_place(const Launch *l, int64_t i)
{
    if (l->n_int == 2)
        return i;
    int64_t place = 0;
    for (int axis = PARTS_AXES - 1; axis >= 0; axis--) {
        place += i % l->ints[2 + axis].value * l->ints[2 + PARTS_AXES + axis].value;
        i /= l->ints[2 + axis].value;
    }
    return place;
}

static void fold_parts(const Launch *l, const double *x, double *out, bool max)
{
    int64_t parts = l->ints[0].value, size = l->ints[1].value;
    for (int64_t i = 0; i < l->rows; i++) {
        double total = max ? -INFINITY : 0;
        for (int64_t part = 0; part < parts; part++) {
            double y = x[part * size + part_place(l, i)];
            total = !max ? total + y : y > total ? y : total;
        }
        out[i] = total;
    }
}

static void cumsum(const Launch *l, const double *x, double *out)
{
    int64_t count = l->ints[0].value, inner = l->ints[1].value;
    bool back = l->ints[2].value;
    for (int64_t r = 0; r < l->rows * inner; r++) {
        double sum = 0;
        for (int64_t k = 0; k < count; k++) {
            int64_t i = (r / inner * count + (back ? count - 1 - k : k)) * inner + r % inner;
            out[i] = sum += x[i];
        }
    }
}

static void top_k(const Launch *l, const double *x, int64_t *out)
{
    int64_t count = l->ints[0].value, k = l->ints[1].value;
    for (int64_t r = 0; r < l->rows; r++, x += count)
        for (int64_t c = 0; c < k; c++) {
            int64_t best = -1;
            for (int64_t i = 0; i < count; i++) {
                bool taken = false;
                for (int64_t j = 0; j < c; j++)
                    taken |= out[r * k + j] == i;
                if (!taken && (best < 0 || x[i] > x[best] || (isnan(x[best]) && !isnan(x[i]))))
                    best = i;
            }
            out[r * k + c] = best;
        }
}

static void scatter_add(const Launch *l, const double *dy, const int64_t *index, double *out)
{
    int64_t width = l->ints[1].value;
    for (int64_t i = 0; i < l->rows * width; i++)
        out[i] = 0;
    for (int64_t i = 0; i < l->ints[0].value * width; i++)
        if (index[i / width] >= 0 && index[i / width] < l->rows)
            out[index[i / width] * width + i % width] += dy[i];
}

/* Elements of a row: the kernels count words of 4 bytes. */
static int64_t row_size(const PlanRun *r, const Launch *l)
{
    return l->ints[2].value / (r->p->buffer[l->buffer[0]].dtype == DT_INT ? 2 : 1);
}

static void put(PlanRun *r, const Launch *l, double **m)
{
    const int64_t *start = (const int64_t *)(void *)m[1], *on = (const int64_t *)(void *)m[2];
    int64_t count = l->ints[0].value, rows = l->ints[1].value, size = row_size(r, l);
    for (int64_t i = 0; i < l->rows; i++) {
        int64_t b = i / count, to = start[b] + i % count;
        if (on[b] && to >= 0 && to < rows)
            memcpy(m[3] + (b * rows + to) * size, m[0] + i * size, (size_t)size * 8);
    }
}

static void take(PlanRun *r, const Launch *l, double **m)
{
    const int64_t *start = (const int64_t *)(void *)m[1];
    int64_t count = l->ints[0].value, rows = l->ints[1].value, size = row_size(r, l);
    int32_t low = (int32_t)l->ints[3].value;
    int64_t whole = (int64_t)((uint64_t)l->ints[4].value << 32 | (uint32_t)low);
    float real;
    memcpy(&real, &low, sizeof real);
    double fill = (double)real;
    if (r->p->buffer[l->buffer[0]].dtype == DT_INT)
        memcpy(&fill, &whole, sizeof fill);
    for (int64_t i = 0; i < l->rows * size; i++) {
        int64_t b = i / size / count, from = start[b] + i / size % count;
        const double *x = m[0] + (b * rows + from) * size + i % size;
        memcpy(m[2] + i, from >= 0 && from < rows ? x : &fill, sizeof fill);
    }
}

/* Sizes are in bytes of float32, as on the CPU. */
static void part(const Launch *l, const double *x, double *out)
{
    const int64_t item = 4;
    for (int64_t r = 0; r < l->rows; r++)
        memcpy(out + r * (l->ints[2].value / item), x + r * (l->ints[1].value / item),
               (size_t)(l->ints[0].value / item) * sizeof *x);
}

static Tensor *dense(PlanRun *r, int64_t b, int64_t t, int64_t h, int64_t d, const double *from,
                     const LaunchInt *stride)
{
    Tensor *x = tensor_new(r->arena, DT_REAL, 4, (int64_t[]){b, t, h, d});
    int64_t own[3] = {t * h * d, h * d, d};
    for (int64_t i = 0; from && i < x->size; i++) {
        int64_t c[3] = {i / own[0], i / own[1] % t, i / d % h}, place = i % d;
        for (int k = 0; k < 3; k++)
            place += c[k] * (stride ? stride[k].value : own[k]);
        x->real[i] = from[place];
    }
    return x;
}

static int64_t attention_batch(const Launch *l, LibraryKernel which)
{
    const LaunchInt *n = l->ints;
    int64_t T = n[0].value, S = n[1].value, H = n[2].value, K = n[3].value;
    int64_t range = ATTENTION_RANGE, slice = ATTENTION_SLICE, block = ATTENTION_BLOCK_Q;
    if (which == LIB_SDPA_AT)
        return l->rows / (H * T);
    if (which == LIB_SDPA)
        return l->rows / (H * ((T + block - 1) / block));
    return l->rows / (n[20].value == GRAD_OF_Q   ? H * ((T + range - 1) / range)
                      : n[20].value == GRAD_OF_K ? K * ((S + slice - 1) / slice)
                                                 : K);
}

/* q, k, v, perhaps first, out, lse; gradients: q, k, v, out, lse, dout, dq, dk, dv, of which
 * n[20] says which are meant. Behind them perhaps the first key of each query. */
static void attention(PlanRun *r, const Launch *l, LibraryKernel which, double **m)
{
    const LaunchInt *n = l->ints;
    int64_t T = n[0].value, S = n[1].value, H = n[2].value, K = n[3].value, d = n[4].value, dv = n[5].value,
            B = attention_batch(l, which);
    bool back = which == LIB_SDPA_GRAD, at = which == LIB_SDPA_AT;
    int n_in = back ? 6 : at ? 4 : 3, n_all = n_in + (back ? 3 : 2);
    bool oldest = (int)l->n_buffer > n_all;
    Tensor *in[7] = {dense(r, B, T, H, d, m[0], n + 8), dense(r, B, S, K, d, m[1], n + 11),
                     dense(r, B, S, K, dv, m[2], n + 14)};
    Tensor *lse = tensor_new(r->arena, DT_REAL, 3, (int64_t[]){B, T, H});
    if (back) {
        in[3] = dense(r, B, T, H, dv, m[3], NULL);
        in[4] = lse;
        memcpy(lse->real, m[4], (size_t)lse->size * sizeof(double));
        in[5] = dense(r, B, T, H, dv, m[5], NULL);
    }
    if (at) {
        in[3] = tensor_new(r->arena, DT_INT, 1, &B);
        memcpy(in[3]->integer, m[3], (size_t)B * sizeof(int64_t));
    }
    if (oldest) {
        in[n_in] = tensor_new(r->arena, DT_INT, 2, (int64_t[]){B, T});
        memcpy(in[n_in]->integer, m[n_all], (size_t)(B * T) * sizeof(int64_t));
    }
    Tensor *out = dense(r, B, T, H, back ? d : dv, NULL, NULL);
    Tensor *aux[2] = {back ? dense(r, B, S, K, d, NULL, NULL) : lse, back ? dense(r, B, S, K, dv, NULL, NULL) : NULL};
    Node node = {.op = back ? OP_SDPA_GRAD : OP_SDPA, .n_in = (uint16_t)(n_in + oldest)};
    node.a = (Attr){.i = n[6].value,
                    .j = n[7].value,
                    .x = scalar(r, &l->scalars[0]),
                    .y = scalar(r, &l->scalars[1]),
                    .z = scalar(r, &l->scalars[2]),
                    .site = n[17].kind == INT_SEED ? n[17].site : NULL};
    RefRun run = {.B = r->p->B, .T = r->p->T, .seed = r->how->seed, .step = r->how->step};
    OpEval e = {.ctx = r->ctx,
                .run = &run,
                .n = &node,
                .in = in,
                .out = out,
                .aux = aux,
                .drawn = node.a.site ? r->how->first * (uint64_t)n[19].value : 0};
    op_rules[node.op].eval(&e);
    const Tensor *result[3] = {out, back ? aux[0] : lse, aux[1]};
    for (int i = 0; i < (back ? 3 : 2); i++)
        if (!back || n[20].value & (i ? GRAD_OF_K : GRAD_OF_Q))
            memcpy(m[n_in + i], result[i]->real, (size_t)result[i]->size * sizeof(double));
}

static void run_library(PlanRun *r, const Launch *l, double **m)
{
    LibraryKernel which = program(r, r->p->kernel[l->kernel].program)->library;
    switch (which) {
    case LIB_COPY: memcpy(m[1], m[0], (size_t)l->rows * sizeof(double)); break;
    case LIB_PART: part(l, m[0], m[1]); break;
    case LIB_TABLE:
        for (int64_t i = 0; i < l->rows; i++)
            m[0][i] = scalar(r, &l->scalars[i]);
        break;
    case LIB_SUM_PARTS:
    case LIB_SUM_PARTS_AT: fold_parts(l, m[0], m[1], false); break;
    case LIB_MAX_PARTS:
    case LIB_MAX_PARTS_AT: fold_parts(l, m[0], m[1], true); break;
    case LIB_CUMSUM: cumsum(l, m[0], m[1]); break;
    case LIB_TOP_K: top_k(l, m[0], (int64_t *)(void *)m[1]); break;
    case LIB_SCATTER_ADD: scatter_add(l, m[0], (int64_t *)(void *)m[1], m[2]); break;
    case LIB_DYNAMIC_UPDATE_SLICE: put(r, l, m); break;
    case LIB_DYNAMIC_SLICE: take(r, l, m); break;
    case LIB_SDPA:
    case LIB_SDPA_AT:
    case LIB_SDPA_GRAD: attention(r, l, which, m); break;
    default: vwn_bug(r->ctx, "the library's %s is not interpreted", library_name(which));
    }
}

/* ---- products ---- */

static void matmul(const PlanMatmul *m, const double *a, const double *b, double *c)
{
    for (int64_t z = 0; z < m->batch; z++, a += m->step_a, b += m->step_b, c += m->step_c)
        for (int64_t i = 0; i < m->m; i++)
            for (int64_t j = 0; j < m->n; j++) {
                double sum = m->accumulate ? c[i * m->ldc + j] : 0;
                for (int64_t k = 0; k < m->k; k++)
                    sum += a[m->transpose_a ? k * m->lda + i : i * m->lda + k] *
                           b[m->transpose_b ? j * m->ldb + k : k * m->ldb + j];
                c[i * m->ldc + j] = sum;
            }
}

static void expert(const PlanExpert *e, const double *x, const double *w, const int64_t *index, double *out)
{
    bool dw = e->what == EXPERT_DW;
    int64_t pairs = e->tokens * e->choices;
    for (int64_t i = 0; i < (dw ? e->experts * e->in : pairs) * e->out; i++)
        out[i] = 0;
    for (int64_t p = 0; p < pairs; p++) {
        const double *row = x + (e->x_per_pair ? p : p / e->choices) * e->in;
        int64_t at = index[p];
        for (int64_t i = 0; at >= 0 && at < e->experts && i < e->in; i++)
            for (int64_t o = 0; o < e->out; o++) {
                double *to = &out[dw ? (at * e->in + i) * e->out + o : p * e->out + o];
                *to += row[i] * w[dw               ? p * e->out + o
                                  : e->transpose_w ? (at * e->out + o) * e->in + i
                                                   : (at * e->in + i) * e->out + o];
            }
    }
}

/* ---- the whole ---- */

static void round_all(PlanRun *r, const Launch *l)
{
    for (uint32_t i = 0; i < l->n_buffer && r->single; i++) {
        Cells *c = &r->cells[l->buffer[i]];
        for (int64_t j = 0; l->writes[i] && c->dtype == DT_REAL && j < c->n; j++)
            c->real[j] = (double)(float)c->real[j];
    }
}

static void run_launch(PlanRun *r, const Launch *l)
{
    ArenaMark mark = arena_mark(r->arena);
    double **m = NEW_ARRAY(r->arena, double *, l->n_buffer + 1);
    for (uint32_t i = 0; i < l->n_buffer; i++) {
        const PlanBuffer *b = &r->p->buffer[l->buffer[i]];
        m[i] = r->cells[l->buffer[i]].real + l->shift[i] / plan_item_bytes(b);
    }
    if (l->kind == LAUNCH_MATMUL)
        matmul(&l->matmul, m[0], m[1], m[2]);
    else if (l->kind == LAUNCH_EXPERT)
        expert(&l->expert, m[0], m[1], (const int64_t *)(const void *)m[2], m[3]);
    else if (l->program)
        run_rows(r, l);
    else
        run_library(r, l, m);
    round_all(r, l);
    check_canaries(r);
    arena_reset(r->arena, mark);
}

static void copy_in(Cells *c, const Tensor *t)
{
    memcpy(c->real, t->dtype == DT_INT ? (const void *)t->integer : (const void *)t->real, (size_t)t->size * 8);
}

static Tensor *copy_out(Arena *arena, const Cells *c, uint8_t rank, const int64_t *d)
{
    Tensor *t = tensor_new(arena, c->dtype, rank, d);
    memcpy(t->dtype == DT_INT ? (void *)t->integer : (void *)t->real, c->real, (size_t)t->size * 8);
    return t;
}

static const RefBinding *binding(const HostRun *how, const Ext *x)
{
    for (size_t i = 0; i < how->n_bind; i++)
        if (how->bind[i].kind == x->kind && how->bind[i].name == x->name)
            return &how->bind[i];
    return NULL;
}

void interpret_plan(Ctx *ctx, const Plan *p, const HostRun *how, bool single, Tensor **results, Tensor **stored)
{
    ArenaMark mark = arena_mark(ctx->scratch);
    PlanRun r = {.ctx = ctx, .arena = ctx->scratch, .p = p, .how = how, .single = single};
    r.cells = NEW_ARRAY(r.arena, Cells, p->n_buffer + 1);
    for (size_t i = 0; i < p->n_buffer; i++) {
        const PlanBuffer *b = &p->buffer[i];
        r.cells[i] = cells_new(r.arena, b->dtype, (int64_t)(b->bytes / plan_item_bytes(b)));
        const RefBinding *t = b->ext >= 0 ? binding(how, &p->ext[b->ext].ext) : NULL;
        if (t)
            copy_in(&r.cells[i], t->tensor);
    }
    for (size_t i = 0; i < p->n_launch; i++)
        run_launch(&r, &p->launch[i]);
    for (size_t i = 0; i < p->n_result; i++)
        results[i] = copy_out(ctx->program, &r.cells[p->result[i].buffer], p->result[i].rank, p->result[i].d);
    for (size_t i = 0; i < how->n_bind; i++) {
        stored[i] = NULL;
        for (size_t b = 0; b < p->n_buffer; b++) {
            const PlanExt *x = p->buffer[b].ext >= 0 ? &p->ext[p->buffer[b].ext] : NULL;
            const Tensor *t = how->bind[i].tensor;
            if (x && x->stored && x->ext.kind == how->bind[i].kind && x->ext.name == how->bind[i].name)
                stored[i] = copy_out(ctx->program, &r.cells[b], t->rank, t->d);
        }
    }
    arena_reset(ctx->scratch, mark);
}
