/* attention.c - the CUDA text of attention, emulated, against the reference evaluator's in
 * float64.
 *
 * In:  nothing (skipped where there is no C++ compiler).
 * Out: `N passed, N failed`. Every case runs under both orders of threads, with copies that
 * come at once and as late as they may; results begin as NaN, memory around them is
 * watched, and behind what is read there is none.
 * When: slow. The sanitizers do not watch texts of the library; emu.ops sees what makes them.
 */
#define _GNU_SOURCE
#include "compiler/plan/plan.h"
#include "backend_emu.h"

#include "support/drawn.h"
#include "support/half.h"

#include "compiler/library/cuda_attention.h"
#include "compiler/portable/device_call.h"
#include "compiler/print/emit.h"
#include "compiler/graph/op.h"
#include "support/harness.h"

#include <math.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

typedef struct Case {
    int B, T, S, H, K, d, dv;
    int causal, window;
    double cap, rate;
    bool oldest;
    Half half;
    bool packed;  /* packed: q, k and v are columns of one tensor */
    int any;      /* 1: the text that finds its access while it runs; GROUPS: products of warpgroups */
    double scale; /* 0: 0.3 */
    bool steep;   /* later keys are larger, so that the greatest score of a query grows from tile to tile */
} Case;

#define F32 HALF_NONE
#define BF  HALF_BF16
#define FP  HALF_FP16
enum { GROUPS = 2 };
static const Case cases[] = {
    {2, 67, 67, 4, 2, 80, 80, 1, 0, 0, 0, false, BF, true, false, 0, false},
    {1, 67, 67, 2, 2, 32, 32, 0, 0, 0, 0, false, BF, false, false, 0, false},
    {1, 33, 33, 2, 1, 128, 128, 1, 0, 30, 0, false, BF, true, false, 0, false},
    {1, 67, 67, 3, 1, 64, 64, 1, 17, 0, 0.2, false, BF, false, false, 0, false},
    {2, 31, 31, 2, 2, 6, 6, 1, 0, 0, 0, false, BF, true, false, 0, false},
    {1, 67, 67, 2, 1, 32, 32, 1, 0, 5, 0.1, true, BF, false, false, 0, false},
    {1, 31, 67, 2, 1, 32, 64, 0, 9, 0, 0, false, BF, false, false, 0, false},
    {2, 1, 1, 2, 1, 32, 32, 1, 0, 0, 0, false, BF, false, false, 0, false},
    {1, 35, 35, 1, 1, 144, 132, 1, 0, 0, 0, false, BF, false, false, 0, false},
    {1, 67, 67, 2, 1, 64, 64, 1, 0, 0, 0, false, F32, true, false, 0, false},
    {1, 33, 33, 2, 1, 128, 128, 1, 0, 0, 0.1, false, F32, false, false, 0, false},
    {2, 67, 67, 2, 1, 6, 6, 1, 20, 4, 0, true, F32, true, false, 0, false},
    {1, 31, 31, 2, 2, 80, 80, 0, 5, 0, 0, false, F32, false, false, 0, false},
    {1, 67, 33, 1, 1, 31, 17, 1, 0, 0, 0, false, F32, false, false, 0, false},
    {1, 35, 35, 1, 1, 130, 132, 1, 0, 20, 0.1, true, F32, false, false, 0, false},
    {3, 1, 1, 4, 2, 32, 32, 1, 3, 0, 0, false, F32, false, false, 0, false},
    {2, 67, 67, 4, 2, 80, 80, 1, 0, 0, 0, false, FP, true, false, 0, false},
    {1, 67, 67, 2, 1, 32, 32, 1, 0, 5, 0.1, true, FP, false, false, 0, false},
    {1, 35, 35, 1, 1, 144, 132, 1, 0, 0, 0, false, FP, false, false, 0, false},
    {2, 67, 67, 4, 2, 80, 80, 1, 0, 0, 0, false, BF, true, true, 0, false},
    {2, 67, 67, 4, 2, 74, 74, 1, 0, 0, 0, false, BF, true, true, 0, false},
    {1, 67, 67, 2, 1, 64, 50, 1, 0, 0, 0, false, BF, false, true, 0, false}, /* 16 bytes of keys, 4 of values */
    {1, 67, 67, 2, 1, 24, 26, 0, 9, 0, 0, false, FP, true, true, 0, false},
    {1, 35, 35, 2, 1, 256, 256, 1, 0, 0, 0, false, BF, true, false, 0, false},
    {1, 67, 67, 1, 1, 250, 250, 1, 90, 20, 0.1, true, BF, false, false, 0, false},
    {1, 35, 35, 1, 1, 256, 250, 0, 0, 0, 0, false, FP, false, false, 0, false},
    {1, 35, 35, 2, 1, 256, 256, 1, 17, 0, 0, false, F32, true, false, 0, false},
    {1, 37, 37, 2, 1, 250, 250, 1, 0, 0, 0, false, BF, true, true, 0, false},
    {1, 35, 35, 1, 1, 255, 255, 1, 0, 0, 0, false, F32, false, false, 0, false}, /* the most copies in flight */
    /* the last query that sees the last key of a tile is the first of the next tile, and the other way round */
    {1, 67, 67, 1, 1, 32, 32, 1, 2, 0, 0, false, BF, false, false, 0, false},
    {1, 67, 67, 1, 1, 32, 32, 0, 2, 0, 0, false, BF, false, false, 0, false},
    {1, 99, 99, 1, 1, 32, 32, 1, 34, 0, 0, false, F32, false, false, 0, false},
    {1, 99, 99, 1, 1, 32, 32, 0, 34, 0, 0, false, F32, false, false, 0, false},
    /* tiles that are whole, between such as are not, in each layout */
    {1, 300, 300, 2, 1, 64, 64, 1, 0, 0, 0, false, BF, true, false, 0.05, true},
    {1, 300, 300, 1, 1, 128, 128, 1, 0, 0, 0, false, BF, false, false, 0.05, true},
    {1, 270, 270, 1, 1, 128, 64, 1, 100, 0, 0, false, BF, false, false, 0, false},
    {1, 270, 270, 1, 1, 64, 128, 0, 100, 0, 0, false, FP, false, false, -0.05, true},
    {1, 140, 290, 2, 2, 64, 64, 0, 0, 0, 0, false, BF, false, false, -0.3, false},
    {1, 290, 140, 2, 1, 96, 96, 0, 0, 0, 0, false, FP, false, false, 0, false},
    {1, 200, 200, 1, 1, 64, 64, 1, 0, 0, 0, true, BF, false, false, 0, false},
    {1, 200, 200, 1, 1, 128, 128, 1, 50, 10, 0, true, BF, false, false, -0.3, true},
    {1, 150, 150, 1, 1, 192, 192, 1, 0, 10, 0, false, BF, false, false, 0.05, true},
    {1, 150, 150, 1, 1, 128, 128, 1, 0, 0, 0.1, false, BF, false, false, 0, true},
    {1, 150, 150, 1, 1, 16, 48, 1, 0, 0, 0, false, BF, false, false, -0.3, false},
    {1, 130, 130, 1, 1, 40, 40, 1, 0, 0, 0, false, FP, false, true, 0.3, true}, /* 16 bytes, and not all of the class */
    {1, 150, 150, 1, 1, 64, 64, 1, 0, 0, 0, false, F32, false, false, -0.05, true},
    {1, 70, 70, 1, 1, 64, 64, 1, 0, 0, 0, false, BF, false, false, 1e-30, false},
    /* forward by warpgroups: tiles that are whole and such as are not, rows and columns that are not there */
    {1, 300, 300, 2, 1, 64, 64, 1, 0, 0, 0, false, BF, true, GROUPS, 0.05, true},
    {1, 300, 300, 1, 1, 128, 128, 1, 0, 0, 0, false, BF, false, GROUPS, 0.05, true},
    {1, 400, 400, 1, 1, 128, 64, 1, 100, 0, 0, false, BF, false, GROUPS, 0, false},
    {1, 270, 270, 1, 1, 64, 128, 0, 100, 0, 0, false, FP, false, GROUPS, -0.05, true},
    {1, 140, 290, 2, 2, 56, 64, 0, 0, 0, 0, false, BF, false, GROUPS, -0.3, false},
    {2, 290, 140, 2, 1, 128, 104, 0, 0, 0, 0, false, FP, true, GROUPS, 0, false},
    {2, 1, 1, 2, 1, 64, 64, 1, 0, 0, 0, false, BF, false, GROUPS, 0, false},
    {1, 300, 300, 2, 1, 64, 64, 1, 0, 0, 0, true, BF, true, GROUPS, 0, false},
    {1, 200, 200, 1, 1, 128, 128, 1, 50, 10, 0, true, FP, false, GROUPS, -0.3, true},
    /* more tiles than there are places for, of heads that two groups and that three multiply */
    {1, 130, 700, 1, 1, 128, 128, 0, 0, 0, 0, false, BF, false, GROUPS, 0, false},
    {2, 70, 1200, 1, 1, 64, 48, 0, 0, 0, 0, false, BF, false, GROUPS, 0, false},
    /* from here on some are drawn: heads of every size as a device with warpgroups has them, with all that scores may be, over more tiles */
    {1, 300, 300, 2, 1, 80, 80, 1, 0, 0, 0, false, BF, true, GROUPS, 0, false},
    {1, 1024, 1024, 1, 1, 64, 64, 1, 0, 0, 0, false, BF, false, GROUPS, 0.05, true},
    {2, 301, 301, 2, 2, 128, 128, 1, 0, 0, 0, true, BF, false, GROUPS, 0, false},
    {1, 1024, 1024, 1, 1, 128, 64, 1, 200, 30, 0, true, BF, false, GROUPS, 0, false},
    {1, 301, 301, 1, 1, 256, 256, 1, 0, 0, 0, true, BF, false, GROUPS, 0.05, true},
    {1, 1024, 1024, 1, 1, 128, 128, 1, 0, 0, 0, false, BF, false, GROUPS, 0.05, true},
    {1, 301, 301, 3, 1, 96, 96, 1, 70, 20, 0, true, BF, false, GROUPS, 0, false},
    {1, 1024, 1024, 1, 1, 64, 128, 1, 300, 0, 0, true, FP, false, GROUPS, -0.05, false},
    {1, 300, 300, 4, 1, 64, 64, 1, 0, 15, 0, false, FP, true, GROUPS, 0, false},
    {1, 1024, 1024, 1, 1, 128, 128, 1, 0, 0, 0, true, BF, false, GROUPS, 0, false},
    {1, 300, 300, 1, 1, 64, 256, 1, 0, 0, 0, false, BF, false, GROUPS, 0, false},
    {1, 1024, 1024, 1, 1, 96, 64, 1, 500, 0, 0, false, BF, false, GROUPS, 0, false},
    {1, 300, 1024, 1, 1, 128, 128, 0, 0, 10, 0, false, FP, false, GROUPS, 0.05, true},
    {1, 1024, 300, 1, 1, 64, 64, 0, 0, 0, 0, false, BF, false, GROUPS, 0, false},
    {1, 1024, 1024, 1, 1, 128, 128, 0, 64, 0, 0, false, BF, false, GROUPS, 0, false},
    {1, 300, 300, 1, 1, 80, 128, 1, 0, 0, 0, false, FP, false, GROUPS, -0.3, true},
    {1, 1024, 1024, 2, 1, 64, 64, 1, 100, 20, 0, true, BF, true, GROUPS, 0, false},
    {1, 1024, 1024, 1, 1, 80, 80, 1, 0, 0, 0, true, BF, false, GROUPS, 0, false},
};
enum { CASES = sizeof cases / sizeof cases[0], DRAWN = 58, SEED = 17, STEP = 3, FIRST = 5, GUARD = 64 };

/* ---- numbers ---- */

/* An array of a device, with a mark before and behind it. */
typedef struct Array {
    Half half;
    int64_t n;
    unsigned char *block;
    void *at;
} Array;

static Array array_new(Half half, int64_t n)
{
    size_t bytes = (size_t)n * (half ? 2 : 4);
    enum { ROOM = 1 << 16 }; /* for planted faults, which write beside it */
    Array a = {half, n, aligned_alloc(64, (bytes + 3 * GUARD) / 64 * 64 + ROOM), NULL};
    memset(a.block, 0xff, (bytes + 3 * GUARD) / 64 * 64); /* NaN */
    memset(a.block, 0xa5, GUARD);
    memset(a.block + GUARD + bytes, 0xa5, GUARD);
    a.at = a.block + GUARD;
    return a;
}

/* An array that is read: behind it is nothing, so whoever reads there ends. It stays. */
static Array array_before_nothing(Half half, int64_t n)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), bytes = ((size_t)n * (half ? 2 : 4) + 15) / 16 * 16;
    size_t whole = (bytes + page - 1) / page * page;
    unsigned char *m = mmap(NULL, whole + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED || mprotect(m + whole, page, PROT_NONE) != 0)
        abort();
    return (Array){half, n, NULL, m + whole - bytes};
}

static bool array_end(Array *a)
{
    if (!a->block)
        return true;
    bool whole = true;
    const unsigned char *behind = (unsigned char *)a->at + a->n * (a->half ? 2 : 4);
    for (int i = 0; i < GUARD; i++)
        whole &= a->block[i] == 0xa5 && behind[i] == 0xa5;
    free(a->block);
    return whole;
}

static double array_get(const Array *a, int64_t i)
{
    return a->half ? of_half(((uint16_t *)a->at)[i], a->half) : (double)((float *)a->at)[i];
}

/* Stores a number and gives what it has become. */
static double array_put(Array *a, int64_t i, double x)
{
    if (a->half)
        ((uint16_t *)a->at)[i] = to_half(x, a->half);
    else
        ((float *)a->at)[i] = (float)x;
    return array_get(a, i);
}

/* ---- one case ---- */

typedef struct Work {
    Ctx *ctx;
    const Case *c;
    const EmuKernel *kernel; /* [CUDA_SDPA_COUNT] */
    CudaAttentionClass class;
    int64_t stride[9];
    Array in[3], dout, out, lse, mean, dq, dk, dv;
    int64_t offset[3], *oldest;
    Tensor *t_in[7], *t_out, *t_lse, *t_dq, *t_dk, *t_dv;
} Work;

static CudaAttentionClass class_of(const Case *c)
{
    int64_t row = c->packed ? c->H * c->d + c->K * (c->d + c->dv) : 0;
    int64_t sizes[] = {c->d, c->dv, row};
    return (CudaAttentionClass){.d = cuda_attention_pad(c->d),
                                .dv = cuda_attention_pad(c->dv),
                                .half = c->half,
                                .capped = c->cap > 0,
                                .dropped = c->rate > 0,
                                .oldest = c->oldest,
                                .width = c->any == 1 ? CUDA_ACCESS_ANY : cuda_attention_width(c->half, sizes, 3),
                                .warpgroups = c->any == GROUPS};
}

/* Values in [-1, 1) on both sides: as the device has them, and in float64. */
static Tensor *fill(Work *w, Array *a, int64_t offset, const int64_t stride[3], const int64_t d[4], double steep,
                    uint64_t *random)
{
    Tensor *t = tensor_new(w->ctx->program, DT_REAL, 4, d);
    int64_t i = 0;
    for (int64_t b = 0; b < d[0]; b++)
        for (int64_t s = 0; s < d[1]; s++)
            for (int64_t h = 0; h < d[2]; h++)
                for (int64_t j = 0; j < d[3]; j++, i++)
                    t->real[i] = array_put(a, offset + b * stride[0] + s * stride[1] + h * stride[2] + j,
                                           (1.5 + steep * (double)s) * harness_random(random));
    return t;
}

static void make_inputs(Work *w, Array (*array)(Half, int64_t))
{
    const Case *c = w->c;
    uint64_t random = 7;
    int64_t d[3][4] = {{c->B, c->T, c->H, c->d}, {c->B, c->S, c->K, c->d}, {c->B, c->S, c->K, c->dv}};
    int64_t row = c->H * c->d + c->K * (c->d + c->dv), columns = 0;
    if (c->packed)
        w->in[0] = w->in[1] = w->in[2] = array(c->half, c->B * c->T * row);
    for (int i = 0; i < 3; i++) {
        int64_t width = d[i][2] * d[i][3], *stride = w->stride + 3 * i;
        stride[2] = d[i][3];
        stride[1] = c->packed ? row : width;
        stride[0] = stride[1] * d[i][1];
        w->offset[i] = columns;
        columns += c->packed ? width : 0;
        if (!c->packed)
            w->in[i] = array(c->half, c->B * d[i][1] * width);
        w->t_in[i] = fill(w, &w->in[i], w->offset[i], stride, d[i], i == 1 && c->steep ? 0.1 : 0, &random);
    }
    int64_t of_out[4] = {c->B, c->T, c->H, c->dv}, n = c->B * c->T * c->H;
    int64_t plain[3] = {c->T * c->H * c->dv, c->H * c->dv, c->dv};
    w->dout = array(c->half, n * c->dv);
    w->t_in[5] = fill(w, &w->dout, 0, plain, of_out, 0, &random);
    w->oldest = ctx_alloc(w->ctx, (size_t)(c->B * c->T) * sizeof *w->oldest);
    const int64_t document = c->T > 300 ? 170 : 13;
    for (int64_t i = 0; i < c->B * c->T; i++) /* documents of so many positions; once nothing is seen */
        w->oldest[i] = i == 5 ? c->S + 3 : i % c->T / document * document;
    w->out = array_new(c->half, n * c->dv);
    w->lse = array_new(HALF_NONE, n);
    w->mean = array_new(HALF_NONE, n);
    w->dq = array_new(c->half, n * c->d);
    w->dk = array_new(c->half, c->B * c->S * c->K * c->d);
    w->dv = array_new(c->half, c->B * c->S * c->K * c->dv);
}

static double scale_of(const Case *c) { return c->scale != 0 ? c->scale : 0.3; }

static void reference(Work *w)
{
    const Case *c = w->c;
    Arena *arena = w->ctx->program;
    Node n = {.op = OP_SDPA,
              .n_in = 3,
              .a = {.x = scale_of(c), .y = c->cap, .z = c->rate, .i = c->causal, .j = c->window, .site = "at"}};
    RefRun run = {.seed = SEED, .step = STEP};
    const uint64_t drawn = (uint64_t)(FIRST * c->H * c->T * c->S);
    int64_t of_lse[3] = {c->B, c->T, c->H}, of_oldest[2] = {c->B, c->T};
    w->t_out = w->t_in[3] = tensor_new(arena, DT_REAL, 4, w->t_in[5]->d);
    w->t_lse = w->t_in[4] = tensor_new(arena, DT_REAL, 3, of_lse);
    w->t_dq = tensor_new(arena, DT_REAL, 4, w->t_in[0]->d);
    w->t_dk = tensor_new(arena, DT_REAL, 4, w->t_in[1]->d);
    w->t_dv = tensor_new(arena, DT_REAL, 4, w->t_in[2]->d);
    Tensor *oldest = tensor_new(arena, DT_INT, 2, of_oldest);
    memcpy(oldest->integer, w->oldest, (size_t)oldest->size * sizeof(int64_t));
    Tensor *in[4] = {w->t_in[0], w->t_in[1], w->t_in[2], oldest}, *aux[2] = {w->t_lse, NULL};
    n.n_in = (uint16_t)(3 + c->oldest);
    eval_SDPA(&(OpEval){w->ctx, NULL, &run, &n, in, w->t_out, aux, drawn});
    n.op = OP_SDPA_GRAD;
    n.n_in = (uint16_t)(6 + c->oldest);
    w->t_in[6] = oldest;
    aux[0] = w->t_dk;
    aux[1] = w->t_dv;
    eval_SDPA_GRAD(&(OpEval){w->ctx, NULL, &run, &n, w->t_in, w->t_dq, aux, drawn});
}

static const char *launch(Work *w, CudaAttentionKernel which, const EmuOptions *how)
{
    const Case *c = w->c;
    CudaAttentionLaunch l = cuda_attention_launch(which, &w->class);
    bool of_k = which == CUDA_SDPA_GRAD_K;
    int64_t blocks = cuda_attention_blocks(&l, c->B, of_k ? c->S : c->T, of_k ? c->K : c->H);
    void *p[11], *q[3];
    int n = 0;
    for (int i = 0; i < 3; i++)
        q[i] = (char *)w->in[i].at + w->offset[i] * (c->half ? 2 : 4);
    void *const of_forward[] = {q[0], q[1], q[2], w->out.at, w->lse.at};
    void *const of_q[] = {q[0], q[1], q[2], w->out.at, w->lse.at, w->dout.at, w->dq.at, w->mean.at};
    void *const of_keys[] = {q[0], q[1], q[2], w->mean.at, w->lse.at, w->dout.at, w->dk.at, w->dv.at};
    void *const *const all[] = {of_forward, of_q, of_keys};
    for (int count = which == CUDA_SDPA ? 5 : 8; n < count; n++)
        p[n] = all[which][n];
    if (c->oldest)
        p[n++] = w->oldest;
    int64_t drawn[3] = {(int64_t)philox_key(SEED, "at"), STEP, FIRST * c->H * c->T * c->S};
    if (w->class.dropped)
        p[n++] = drawn;
    int64_t ints[19] = {c->T, c->S, c->H, c->K, c->d, c->dv, c->causal, c->window};
    memcpy(ints + 8, w->stride, sizeof w->stride);
    uint64_t scalars[3] = {call_number(scale_of(c)), call_number(c->cap), call_number(c->rate)};
    void *arguments[40];
    int at = 0;
    for (int i = 0; i < n; i++)
        arguments[at++] = &p[i];
    for (int i = 0; i < (w->class.dropped ? 17 : 19); i++)
        arguments[at++] = &ints[i];
    for (int i = 0; i < 3; i++)
        arguments[at++] = &scalars[i];
    arguments[at++] = &blocks;
    emu_map map[3];
    for (uint32_t i = 0; i < cuda_attention_maps(which, &w->class); i++) {
        LaunchMap m = cuda_attention_map(which, &w->class, i, c->B, ints);
        const char *wrong = emu_map_make(&map[i], &m, q[m.buffer]);
        if (wrong)
            return wrong;
        arguments[at++] = &map[i];
    }
    return emu_launch(&w->kernel[which], arguments, how, (uint32_t)blocks, (uint32_t)l.threads, (uint64_t)l.shared);
}

/* The largest difference, relative to the largest number; NaN counts as infinite. Where all
 * numbers are small, they are differences of numbers that are not. */
static double difference(const Array *a, const Tensor *t)
{
    double most = 0, scale = 0.1;
    for (int64_t i = 0; i < t->size; i++) {
        double x = array_get(a, i), y = t->real[i];
        if (x == y) /* infinities, too */
            continue;
        if (!(fabs(x - y) <= most))
            most = isnan(x - y) ? INFINITY : fabs(x - y);
        scale = fmax(scale, fabs(y));
    }
    return most / scale;
}

/* What a result may be off: float32 by its order of sums, bf16 by rounding of probabilities, of
 * gradients of scores and of the result; fp16 has three bits more. */
static void compare(Harness *h, const Work *w, const char *name, const Array *a, const Tensor *t)
{
    double bf16 = a->half ? 1.2e-2 : w->c->half ? 1e-4 : 1e-5, is = difference(a, t);
    double allowed = w->c->half == HALF_FP16 && a->half ? bf16 / 8 : bf16;
    if (getenv("VWN_TEST_VERBOSE"))
        printf("%s %.1e  ", name, is);
    if (!CHECK_CASE(h, is <= allowed, name))
        fprintf(stderr, "    case %d: %s is off by %.2e, %.0e is allowed\n", (int)(w->c - cases), name, is, allowed);
}

static void forget(Array *a) { memset(a->at, 0xff, (size_t)a->n * (a->half ? 2 : 4)); }

static void run_case(Harness *h, const Case *c, const EmuKernel *kernel)
{
    Work w = {.ctx = ctx_new(NULL), .c = c, .kernel = kernel, .class = class_of(c)};
    make_inputs(&w, array_before_nothing);
    reference(&w);
    for (int run = 0; run < 2; run++) {
        EmuOptions how = {.descending = run == 1, .lazy = run == 1};
        Array *const results[] = {&w.out, &w.lse, &w.mean, &w.dq, &w.dk, &w.dv};
        for (size_t i = 0; i < COUNT_OF(results); i++)
            forget(results[i]);
        for (int which = 0; which < CUDA_SDPA_COUNT; which++) {
            const char *wrong = launch(&w, (CudaAttentionKernel)which, &how);
            if (!CHECK(h, !wrong))
                fprintf(stderr, "    case %d, kernel %d: %s\n", (int)(c - cases), which, wrong);
        }
        compare(h, &w, "lse", &w.lse, w.t_lse);
        compare(h, &w, "out", &w.out, w.t_out);
        compare(h, &w, "dq", &w.dq, w.t_dq);
        compare(h, &w, "dk", &w.dk, w.t_dk);
        compare(h, &w, "dv", &w.dv, w.t_dv);
        if (getenv("VWN_TEST_VERBOSE"))
            printf("case %d\n", (int)(c - cases));
    }
    Array *const all[] = {&w.in[0], &w.in[1], &w.in[2], &w.dout, &w.out, &w.lse, &w.mean, &w.dq, &w.dk, &w.dv};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        if (!c->packed || i == 0 || i > 2)
            CHECK(h, array_end(all[i]));
    ctx_free(w.ctx);
}

/* ---- all of them ---- */

/* Faults to plant in a kernel of a case: the n-th place of a text gets another. */
enum {
    OF_WHOLE = 33,
    OF_WHOLE_128 = 34,
    OF_WINDOW = 35,
    OF_LENGTHS = 37,
    GROUPS_64 = 47,
    GROUPS_128,
    MAPS_128 = GROUPS_128,
    MAPS_TWO = 52,
    MAPS_LONG = 56
};
static const struct Fault {
    const char *what, *text, *instead;
    int place, of, which;
} faults[] = {
    {"a missing barrier before a tile is read", "        __syncthreads();\n", "", 0, 0, CUDA_SDPA},
    {"a missing wait", "vwn_copies_wait<0>", "vwn_copies_wait<1>", 0, 0, CUDA_SDPA},
    {"one buffer for two stages", "u0 + COLUMNS, stage ^ 1)", "u0 + COLUMNS, stage)", 0, 0, CUDA_SDPA},
    {"the other stage", "X = passing + stage * PASSING, *const V", "X = passing + (stage ^ 1) * PASSING, *const V", 0,
     0, CUDA_SDPA},
    {"a mask that is late by one", "vwn_keys_seen(ahead + line,", "vwn_keys_seen(ahead + line + 1,", 0, 0, CUDA_SDPA},
    {"a tile on the diagonal that is taken for whole", "!vwn_all_seen(ahead - (AT_ONCE - 1),", "!vwn_all_seen(ahead,",
     0, OF_WHOLE, CUDA_SDPA},
    {"a tile at the end of a window that is taken for whole", "ahead + 16 * R - 1, causal", "ahead, causal", 0,
     OF_WINDOW, CUDA_SDPA},
    {"a tile with keys that are not there, taken for whole", "left < AT_ONCE || ", "", 0, OF_LENGTHS, CUDA_SDPA},
    {"a tile that is seen and left out", "ahead <= -16 * R", "ahead <= 0", 0, OF_WHOLE, CUDA_SDPA},
    {"copies that do not go on", "k + u0 * kt, kt)", "k + u0 / 128 * 128 * kt, kt)", 0, OF_WHOLE, CUDA_SDPA},
    {"sums that do not shrink", "O[i][r % 2 * 2] *= shrink;", ";", 0, OF_WHOLE, CUDA_SDPA},
    {"a row behind the last one", "is = 8 * r < left", "is = 8 * r <= left", 0, 0, CUDA_SDPA},
    {"another head of the keys", "k += b * kb + g * kh;", "k += b * kb + g * kh * 2;", 0, 0, CUDA_SDPA},
    {"columns of another thread", "(int)dv, is)", "(int)dv - 2, is)", 0, 0, CUDA_SDPA},
    {"an odd place", "passing = Q + ROWS * PITCH", "passing = Q + ROWS * PITCH + 1", 0, 0, CUDA_SDPA},
    {"dq: a missing barrier", "        __syncthreads();\n", "", 0, OF_WHOLE, CUDA_SDPA_GRAD_Q},
    {"dq: a missing wait", "vwn_copies_wait<0>", "vwn_copies_wait<1>", 0, OF_WHOLE, CUDA_SDPA_GRAD_Q},
    {"dq: a diagonal taken for whole", "!vwn_all_seen(ahead - (AT_ONCE - 1),", "!vwn_all_seen(ahead,", 0, OF_WHOLE,
     CUDA_SDPA_GRAD_Q},
    {"dk, dv: a missing barrier", "        __syncthreads();\n", "", 0, OF_WHOLE, CUDA_SDPA_GRAD_K},
    {"dk, dv: a missing wait", "vwn_copies_wait<0>", "vwn_copies_wait<1>", 0, OF_WHOLE, CUDA_SDPA_GRAD_K},
    {"dk, dv: one buffer for two stages", "begin(stage ^ 1)", "begin(stage)", 0, OF_WHOLE, CUDA_SDPA_GRAD_K},
    {"dk, dv: a diagonal taken for whole", "!vwn_all_seen(ahead(j0) - (16 * R - 1),", "!vwn_all_seen(ahead(j0),", 0,
     OF_WHOLE, CUDA_SDPA_GRAD_K},
    {"dk, dv: a tile that is seen and left out", "ahead(j0) + AT_ONCE > 0", "ahead(j0) > 0", 0, OF_WHOLE,
     CUDA_SDPA_GRAD_K},
    {"dk, dv: weights that are read before they are there", "        __syncthreads();\n        if (h <",
     "        if (h <", 0, OF_WHOLE_128, CUDA_SDPA_GRAD_K},
    {"dk, dv: the second weights are read before they are there", "        arrive();\n        if (COLUMNS",
     "        if (COLUMNS", 0, OF_WHOLE_128, CUDA_SDPA_GRAD_K},
    {"maps: scores that are not done", "                vwn_group_wait<1>();\n", "", 0, MAPS_128, CUDA_SDPA},
    {"maps: a group that does not let the next one multiply", "                leave(next_turn);\n", "", 0, MAPS_128,
     CUDA_SDPA},
    {"maps: the first group waits for the last one, too", "turn = group_base == 0", "turn = 0", 0, GROUPS_64,
     CUDA_SDPA},
    {"maps: first scores that are not done", "                vwn_group_wait<0>();\n            }\n", "            }\n",
     0, GROUPS_64, CUDA_SDPA},
    {"maps: sums that shrink while products add to them",
     "                vwn_group_wait<0>();\n                vwn_group_registers(O);\n", "", 0, GROUPS_64, CUDA_SDPA},
    {"maps: weights that products still read",
     "            vwn_group_wait<0>();\n            vwn_group_registers(O);\n", "", 0, MAPS_128, CUDA_SDPA},
    {"maps: results that are not done", "        vwn_group_wait<0>();\n        vwn_group_registers(O);\n    }\n",
     "    }\n", 0, GROUPS_64, CUDA_SDPA},
    {"maps: barriers that copies do not see", "        vwn_proxy_fence();\n", "", 0, GROUPS_64, CUDA_SDPA},
    {"maps: barriers that other threads do not see", "    __syncthreads();\n    vwn_turn", "    vwn_turn", 0, GROUPS_64,
     CUDA_SDPA},
    {"maps: a barrier that nobody has made", "            vwn_mbarrier_make(values_left + i, WARPS);\n", "", 0,
     GROUPS_64, CUDA_SDPA},
    {"maps: a barrier that counts too few", "vwn_mbarrier_make(keys_left + i, WARPS)",
     "vwn_mbarrier_make(keys_left + i, WARPS / 2)", 0, MAPS_LONG, CUDA_SDPA},
    {"maps: a barrier that counts too many", "vwn_mbarrier_make(values_left + i, WARPS)",
     "vwn_mbarrier_make(values_left + i, WARPS + 1)", 0, MAPS_LONG, CUDA_SDPA},
    {"maps: queries that are not waited for", "        vwn_mbarrier_wait(queries_come, 0);\n", "        ;\n", 0,
     GROUPS_64, CUDA_SDPA},
    {"maps: keys that are not waited for", "            vwn_mbarrier_wait(keys_come + at.place, at.round);\n", "", 0,
     GROUPS_64, CUDA_SDPA},
    {"maps: values that are not waited for",
     "                vwn_mbarrier_wait(values_come + before.place, before.round);\n", "", 0, MAPS_128, CUDA_SDPA},
    {"maps: the last values that are not waited for",
     "        vwn_mbarrier_wait(values_come + before.place, before.round);\n        vwn_group", "        vwn_group", 0,
     GROUPS_64, CUDA_SDPA},
    {"maps: the other parity", "vwn_mbarrier_wait(keys_come + at.place, at.round)",
     "vwn_mbarrier_wait(keys_come + at.place, at.round ^ 1)", 0, GROUPS_64, CUDA_SDPA},
    {"maps: a place that is filled before its readers left",
     "                vwn_mbarrier_wait(keys_left + at.place, at.round ^ 1);\n", "", 0, MAPS_LONG, CUDA_SDPA},
    {"maps: a parity that lets the next round begin", "vwn_mbarrier_wait(values_left + at.place, at.round ^ 1)",
     "vwn_mbarrier_wait(values_left + at.place, 1)", 0, MAPS_LONG, CUDA_SDPA},
    {"maps: keys that nobody leaves", "            leave(keys_left + at.place);\n", "", 0, MAPS_LONG, CUDA_SDPA},
    {"maps: values that nobody leaves", "                leave(values_left + before.place);\n", "                ;\n",
     0, MAPS_LONG, CUDA_SDPA},
    {"maps: keys that are left before they are read", "            vwn_group_mul<false, D,",
     "            leave(keys_left + at.place);\n            vwn_group_mul<false, D,", 0, MAPS_LONG, CUDA_SDPA},
    {"maps: all threads of a warp leave", "vwn_thread() % 32 == 0", "vwn_thread() % 16 == 0", 0, MAPS_LONG, CUDA_SDPA},
    {"maps: a box of another head", "k_map, g, u0, b", "k_map, g + 1, u0, b", 0, GROUPS_64, CUDA_SDPA},
    {"maps: a box of another sequence", "v_map, g, u0, b", "v_map, g, u0, b + 1", 0, GROUPS_64, CUDA_SDPA},
    {"maps: a box that goes on into the next sequence", "q_map, h, t0, b", "q_map, h, t0 + (int)T, b - 1", 0, MAPS_TWO,
     CUDA_SDPA},
    {"maps: copies for which another barrier counts", "k_map, g, u0, b, keys_come", "k_map, g, u0, b, values_come", 0,
     GROUPS_64, CUDA_SDPA},
    {"maps: more registers than there are", "vwn_group_takes_registers<", "vwn_group_takes_registers<8 + ", 0,
     GROUPS_64, CUDA_SDPA},
    {"maps: registers that nobody gives", "        vwn_group_gives_registers<24>();\n", "", 0, MAPS_128, CUDA_SDPA},
    {"maps: no multiple of 8 registers", "vwn_group_gives_registers<24>", "vwn_group_gives_registers<20>", 0, MAPS_128,
     CUDA_SDPA},
    {"maps: a tile that nobody reads", "u0 < end; u0 += COLUMNS, at =", "u0 < end + COLUMNS; u0 += COLUMNS, at =", 0,
     GROUPS_64, CUDA_SDPA},
    {"maps: a tile too few", "u0 < end; u0 += COLUMNS, at =", "u0 + COLUMNS < end; u0 += COLUMNS, at =", 0, GROUPS_64,
     CUDA_SDPA},
    {"maps: rows of the other group", "vwn_from_lane(warp / 4 * 64, 0)",
     "vwn_from_lane(warp < WARPS ? 64 - warp / 4 * 64 : 128, 0)", 0, MAPS_128, CUDA_SDPA},
    {"maps, dq: keys that are not waited for", "            vwn_mbarrier_wait(keys_come + at.place, at.round);\n", "",
     0, GROUPS_128, CUDA_SDPA_GRAD_Q},
    {"maps, dq: values that are not waited for", "            vwn_mbarrier_wait(values_come + at.place, at.round);\n",
     "", 0, GROUPS_64, CUDA_SDPA_GRAD_Q},
    {"maps, dq: keys that are left while products read them", "                leave(keys_left + before.place);\n",
     "                leave(keys_left + at.place);\n", 0, MAPS_LONG, CUDA_SDPA_GRAD_Q},
    {"maps, dq: values that are left while products read them", "            leave(next_turn);\n",
     "            leave(next_turn);\n            leave(values_left + at.place);\n", 0, MAPS_LONG, CUDA_SDPA_GRAD_Q},
    {"maps, dq: values that nobody leaves", "            leave(values_left + at.place);\n", "", 0, MAPS_LONG,
     CUDA_SDPA_GRAD_Q},
    {"maps, dq: a tile is copied to where products read one", "at.round ^ 1", "1", 0, MAPS_LONG, CUDA_SDPA_GRAD_Q},
    {"maps, dq: the other head's keys", "k_map, g, u0, b", "k_map, g + 1, u0, b", 0, GROUPS_128, CUDA_SDPA_GRAD_Q},
    {"groups, dq: scores that are not done", "vwn_group_wait<LATER>();", "vwn_group_wait<2>();", 0, GROUPS_64,
     CUDA_SDPA_GRAD_Q},
    {"groups, dq: gradients of weights that are not done", "                vwn_group_wait<0>();\n", "", 0, GROUPS_128,
     CUDA_SDPA_GRAD_Q},
    {"groups, dq: a result that is not done", "    vwn_group_wait<0>();\n    vwn_group_registers(A);\n", "", 0,
     GROUPS_64, CUDA_SDPA_GRAD_Q},
    {"groups, dq: queries of the other group", "(t0 + base) * qt", "(t0 + base % 64) * qt", 0, GROUPS_64,
     CUDA_SDPA_GRAD_Q},
    {"groups, dk, dv: copies that products do not see", "        vwn_proxy_fence();\n", "", 0, GROUPS_64,
     CUDA_SDPA_GRAD_K},
    {"groups, dk, dv: a missing wait for copies", "vwn_copies_wait<0>", "vwn_copies_wait<1>", 0, GROUPS_64,
     CUDA_SDPA_GRAD_K},
    {"groups, dk, dv: a missing barrier", "        __syncthreads();\n", "", 0, GROUPS_128, CUDA_SDPA_GRAD_K},
    {"groups, dk, dv: a tile is copied to where products read the last one", "(stage + 1) % 3);\n",
     "(stage + 2) % 3);\n", 0, GROUPS_128, CUDA_SDPA_GRAD_K},
    {"groups, dk, dv: scores that are not done", "vwn_group_wait<!CAPPED>();", "vwn_group_wait<2>();", 0, GROUPS_128,
     CUDA_SDPA_GRAD_K},
    {"groups, dk, dv: gradients of weights that are not done", "vwn_group_wait<1>();", "vwn_group_wait<2>();", 0,
     GROUPS_64, CUDA_SDPA_GRAD_K},
    {"groups, dk, dv: a result that is not done", "    vwn_group_wait<0>();\n    vwn_group_registers(A);\n", "", 0,
     GROUPS_128, CUDA_SDPA_GRAD_K},
    {"groups, dk, dv: keys of the other group", "vwn_from_lane(warp / 4 * 64, 0)",
     "vwn_from_lane(64 - warp / 4 * 64, 0)", 0, GROUPS_128, CUDA_SDPA_GRAD_K},
    {"groups, dk, dv: numbers of queries of another stage", "which = stage * COLUMNS", "which = stage / 2 * COLUMNS", 0,
     GROUPS_64, CUDA_SDPA_GRAD_K},
    {"dk, dv: weights of another warp", "warp % WARPS * (R * COLUMNS / 8 * 32)", "0", 0, OF_WHOLE_128,
     CUDA_SDPA_GRAD_K},
};
enum { FAULTS = sizeof faults / sizeof faults[0], KERNELS = CASES * CUDA_SDPA_COUNT };

typedef struct Texts {
    EmuText text[KERNELS + FAULTS];
    size_t n, at[KERNELS + FAULTS]; /* where the text of a kernel is: equal ones stand once */
} Texts;

static void add_text(Ctx *ctx, Texts *t, size_t kernel, const char *text, size_t length)
{
    EmuText *new = &t->text[t->n];
    *new = (EmuText){.text = text, .length = length};
    new->name = emit_name(ctx, ctx->program, &new->text, &new->length);
    t->at[kernel] = 0;
    while (t->text[t->at[kernel]].name != new->name)
        t->at[kernel]++;
    t->n += t->at[kernel] == t->n;
}

static const char *plant(Ctx *ctx, const char *text, const struct Fault *f)
{
    const char *at = strstr(text, f->text);
    for (int i = 0; at && i < f->place; i++)
        at = strstr(at + 1, f->text);
    if (!at)
        vwn_bug(ctx, "there is no place for the fault: %s", f->what);
    return arena_printf(ctx->program, "%.*s%s%s", (int)(at - text), text, f->instead, at + strlen(f->text));
}

/* Each fault fits its text; a part of them is compiled. */
static bool fault_drawn(size_t i)
{
    static const CaseDraw draw = {.one_in = 59, .sanitized = 59};
    return i % drawn_share(&draw) == 0;
}

/* Of the cases that are behind those which are always taken. */
static bool is_taken(size_t i)
{
    static const CaseDraw draw = {.one_in = 73, .sanitized = 73};
    return i < DRAWN || (i - DRAWN) % drawn_share(&draw) == 0;
}

/* The kernels of all cases, then those with faults, in one object. */
static bool compile_all(Ctx *ctx, EmuKernel *kernel, char why[512])
{
    Texts *t = NEW(ctx->program, Texts);
    EmuKernel *made = NEW_ARRAY(ctx->program, EmuKernel, KERNELS + FAULTS);
    size_t length, n;
    const char *prelude = prelude_cuda(ctx->program, &length);
    for (size_t i = 0; i < KERNELS; i++) {
        if (!is_taken(i / CUDA_SDPA_COUNT))
            continue;
        CudaAttentionClass class = class_of(&cases[i / CUDA_SDPA_COUNT]);
        const char *text = cuda_attention(ctx->program, (CudaAttentionKernel)(i % CUDA_SDPA_COUNT), &class, &n);
        add_text(ctx, t, i, text, n);
        for (size_t k = 0; k < FAULTS; k++) {
            if ((int)i != faults[k].of * CUDA_SDPA_COUNT + faults[k].which)
                continue;
            const char *bad = plant(ctx, text, &faults[k]);
            if (fault_drawn(k))
                add_text(ctx, t, KERNELS + k, bad, strlen(bad));
        }
    }
    bool good = emu_compile(prelude, length, t->text, t->n, made, why);
    for (size_t i = 0; i < KERNELS + FAULTS && good; i++)
        if (i < KERNELS ? is_taken(i / CUDA_SDPA_COUNT) : fault_drawn(i - KERNELS))
            kernel[i] = made[t->at[i]];
    return good;
}

/* Every fault is seen in one of the runs: by the emulator, in a result or in its bits. What kernels before it make is right. */
static void run_faults(Harness *h, const EmuKernel *bad, const EmuKernel *good)
{
    for (size_t i = 0; i < FAULTS; i++) {
        if (!fault_drawn(i))
            continue;
        const struct Fault *f = &faults[i];
        static Work w; /* arrays that faults write beside are not freed */
        w = (Work){.ctx = ctx_new(NULL), .c = &cases[f->of], .class = class_of(&cases[f->of])};
        make_inputs(&w, array_new);
        reference(&w);
        bool seen = false;
        for (int run = 0; run < 4 && !seen; run++) {
            EmuOptions how = {.descending = run & 1, .lazy = run >> 1};
            Array *const results[] = {&w.out, &w.lse, &w.mean, &w.dq, &w.dk, &w.dv};
            for (size_t k = 0; k < COUNT_OF(results); k++)
                forget(results[k]);
            w.kernel = good + f->of * CUDA_SDPA_COUNT;
            for (int k = 0; k < f->which; k++)
                CHECK_CASE(h, !launch(&w, (CudaAttentionKernel)k, &how), f->what);
            w.kernel = bad + i - f->which;
            seen = launch(&w, (CudaAttentionKernel)f->which, &how);
            const Array *const of[] = {&w.out, &w.lse, &w.dq, &w.mean, &w.dk, &w.dv};
            const Tensor *const right[] = {w.t_out, w.t_lse, w.t_dq, NULL, w.t_dk, w.t_dv};
            for (int k = 2 * f->which; k < 2 * f->which + 2; k++)
                seen = seen || (right[k] && !(difference(of[k], right[k]) <= (k == 1 ? 1e-4 : 1.2e-2)));
        }
        CHECK_CASE(h, seen, f->what);
        ctx_free(w.ctx);
    }
}

/* What a plan may copy by a tensor map the hardware takes, and else not: then warpgroups do not compute it. */
static void test_fits(Harness *h)
{
    const int64_t ints[19] = {40,     50, 6,           2,      56, 128,          1,       0,  40 * 6 * 56,
                              6 * 56, 56, 50 * 2 * 56, 2 * 56, 56, 50 * 2 * 128, 2 * 128, 128};
    const CudaAttentionClass c = {.d = 64, .dv = 128, .half = HALF_BF16, .width = 8, .warpgroups = true};
    CudaAttentionLaunch l = cuda_attention_launch(CUDA_SDPA, &c);
    for (uint32_t i = 0; i < CUDA_ATTENTION_MAPS; i++) {
        const LaunchMap good = cuda_attention_map(CUDA_SDPA, &c, i, 3, ints);
        _Alignas(128) emu_map out;
        int64_t of[3] = {ints[i == 2 ? 5 : 4], ints[i ? 3 : 2], ints[i > 0]};
        CHECK(h, launch_map_fits(&good) && !emu_map_make(&out, &good, &out) && good.extent[3] == 3 && good.buffer == i);
        CHECK(h, good.extent[0] == of[0] && good.extent[1] == of[1] && good.extent[2] == of[2]);
        CHECK(h, good.box[0] == 64 && good.box[2] == (uint32_t)(i ? l.columns : l.rows));
        for (int k = 0; k < MAP_RANK; k++) {
            LaunchMap bad[6] = {good, good, good, good, good, good};
            bad[0].stride[k] = 0;
            bad[1].stride[k] = 4;
            bad[2].stride[k] = (int64_t)1 << 39;
            bad[3].extent[k] = 0;
            bad[4].box[k] = 0;
            bad[5].box[k] = 257;
            for (size_t j = 0; j < COUNT_OF(bad); j++)
                CHECK(h, !launch_map_fits(&bad[j]));
        }
        LaunchMap wide = good;
        wide.half = HALF_NONE;
        CHECK(h, !launch_map_fits(&wide));
    }
    /* keys of one sequence for all of them */
    int64_t again[19];
    memcpy(again, ints, sizeof again);
    again[11] = 0;
    const LaunchMap repeated = cuda_attention_map(CUDA_SDPA, &c, 1, 3, again),
                    one = cuda_attention_map(CUDA_SDPA_GRAD_Q, &c, 0, 1, again);
    CHECK(h, !launch_map_fits(&repeated) && launch_map_fits(&one));
}

int main(void)
{
    Harness h = {0};
    char why[512];
    static EmuKernel kernel[KERNELS + FAULTS];
    if (emu_missing())
        return EMU_SKIPPED;
    Ctx *ctx = ctx_new(NULL);
    if (!CHECK(&h, compile_all(ctx, kernel, why)))
        fprintf(stderr, "    %s\n", why);
    test_fits(&h);
    for (size_t i = 0; i < CASES && !h.failed; i++)
        if (is_taken(i))
            run_case(&h, &cases[i], kernel + i * CUDA_SDPA_COUNT);
    if (!h.failed)
        run_faults(&h, kernel + KERNELS, kernel);
    ctx_free(ctx);
    return harness_end(&h);
}
