/* backend_ptx.c - see backend_ptx.h. */
#include "backend_ptx.h"

#include "compiler/plan/plan.h"
#include "compiler/portable/device_call.h"
#include "compiler/graph/target.h"
#include "number.h"
#include "ptx.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct PtxBackend {
    Backend base;
    PtxOptions how;
    uint64_t seed, launches;
} PtxBackend;

struct Module {
    PtxModule *ptx;
    const Plan *plan;
};

static PtxBackend *of(Backend *b) { return (PtxBackend *)b; }

void backend_ptx_seed(Backend *b, uint64_t seed) { of(b)->seed = seed; }
uint64_t backend_ptx_launches(const Backend *b) { return ((const PtxBackend *)b)->launches; }

static Status failed(Backend *b, const char *why)
{
    snprintf(b->why, sizeof b->why, "%s", why);
    return ST_BUG;
}

static Status ptx_alloc(Backend *b, uint64_t bytes, void **memory)
{
    enum { ALIGNED = 256 };
    *memory = aligned_alloc(ALIGNED, (bytes / ALIGNED + 1) * ALIGNED);
    if (!*memory)
        return failed(b, "no memory");
    memset(*memory, 0, bytes);
    return ST_OK;
}

static void ptx_give(Backend *b, void *memory, uint64_t bytes)
{
    (void)b;
    (void)bytes;
    free(memory);
}

static Status ptx_move(Backend *b, void *to, const void *from, uint64_t bytes)
{
    (void)b;
    if (bytes)
        memcpy(to, from, bytes);
    return ST_OK;
}

/* All kernels of a plan are one program. */
static Status ptx_build(Backend *b, const Plan *plan, Module **module, BuildReport *report)
{
    Buf text = buf_new(b->ctx->program);
    char why[512] = "";
    const char *arch = of(b)->how.target == &target_sm_90a ? "sm_90a" : "sm_80";
    buf_put(&text, plan->device_prelude, plan->device_prelude_length);
    for (size_t i = 0; i < plan->n_kernel; i++)
        if (plan->kernel[i].grid.threads)
            buf_put(&text, plan->kernel[i].text, plan->kernel[i].length);
    *report = (BuildReport){.kernels = (int)plan->n_kernel};
    const PtxOptions *how = &of(b)->how;
    char *ptx = how->instead ? strdup(how->instead) : nvrtc_ptx(text.s, arch, why);
    Module *m = NEW(b->ctx->program, Module);
    m->plan = plan;
    m->ptx = ptx ? ptx_module(ptx, why) : NULL;
    if (how->made)
        *how->made = ptx;
    else
        free(ptx);
    snprintf(report->why, sizeof report->why, "%s", why);
    *module = m;
    return m->ptx ? ST_OK : failed(b, why);
}

static void ptx_drop(Backend *b, Module *m)
{
    (void)b;
    ptx_free(m->ptx);
}

/* The memory of buffer k of the launch, which begins there: once, whatever arguments lie in it. */
static void add_memory(const Plan *plan, const Launch *l, uint32_t k, char *at, PtxMemory *memory, uint32_t *of_buffer,
                       size_t *n)
{
    size_t i = 0;
    while (i < *n && of_buffer[i] != l->buffer[k])
        i++;
    if (i == *n) {
        of_buffer[i] = l->buffer[k];
        memory[(*n)++] = (PtxMemory){at - l->shift[k], plan->buffer[l->buffer[k]].bytes, false};
    }
    memory[i].written |= l->writes[k];
}

/* Of launches that are made as one, the addresses lie in memory. */
static size_t find_memory(const Plan *plan, const Launch *l, void *const *p, PtxMemory *memory, uint32_t *of_buffer)
{
    size_t n = 0;
    for (uint32_t k = 0; k < l->n_buffer; k++)
        add_memory(plan, l, k, p[k], memory, of_buffer, &n);
    size_t list = 0;
    while (list < n && of_buffer[list] != plan->numbers)
        list++;
    for (uint32_t k = l->n_buffer; list < n && k < l->n_touched; k++)
        for (size_t i = 0; i < plan->n_number; i++) {
            const PlanNumber *x = &plan->number[i];
            if (x->kind == INT_PLACE && x->buffer == l->buffer[k] && x->bits == l->shift[k])
                add_memory(plan, l, k, ((char **)(void *)memory[list].at)[i], memory, of_buffer, &n);
        }
    return n;
}

void ptx_map(PtxMap *to, const void *memory, const int64_t *extent, const int64_t *stride, const uint32_t *box)
{
    *to = (PtxMap){.at = memory};
    call_map(PTX_RANK, sizeof(uint16_t), extent, stride, to->extent, to->stride);
    memcpy(to->box, box, sizeof to->box);
}

static Status ptx_run(Backend *b, Module *m, uint32_t kernel, void *const *p, const int64_t *n, const double *s,
                      const LaunchMap *map, int64_t rows, int64_t grain)
{
    const Launch *l = b->at.launch;
    const PlanKernel *k = &m->plan->kernel[kernel];
    char why[PTX_WHY];
    (void)grain;
    if (rows <= 0)
        return ST_OK;
    if (!l || l->kernel != kernel || !k->grid.threads || k->n_map > PTX_MAPS)
        return failed(b, "a launch of a kernel that is no device's, or not the one that is told");
    CallArguments *arguments = calloc(1, sizeof *arguments);
    PtxMemory *memory = calloc(l->n_touched + 1, sizeof *memory);
    uint32_t *of_buffer = calloc(l->n_touched + 1, sizeof *of_buffer);
    PtxMap maps[PTX_MAPS];
    for (uint32_t i = 0; i < k->n_map; i++)
        ptx_map(&maps[i], p[map[i].buffer], map[i].extent, map[i].stride, map[i].box);
    PtxLaunch launch = {.kernel = k->name,
                        .blocks = plan_blocks(&k->grid, rows),
                        .shared = plan_shared_bytes(&k->grid, n),
                        .seed = of(b)->seed + of(b)->launches++,
                        .n_map = k->n_map,
                        .map = maps,
                        .memory = memory,
                        .argument = (const void *const *)arguments->at};
    launch.n_argument = call_arguments(arguments, p, l->n_buffer, n, l->n_int, s, l->n_scalar, &rows);
    launch.n_memory = find_memory(m->plan, l, p, memory, of_buffer);
    const bool good = ptx_launch(m->ptx, &launch, why);
    free(arguments);
    free(memory);
    free(of_buffer);
    return good ? ST_OK : failed(b, why);
}

static double element(const void *x, Half half, int64_t i)
{
    if (half == HALF_NONE)
        return (double)((const float *)x)[i];
    const uint16_t u = ((const uint16_t *)x)[i];
    return half == HALF_BF16 ? (double)of_brain(u) : of_half(u);
}

static Status ptx_matmul(Backend *b, const PlanMatmul *m, const void *x, const void *y, void *z)
{
    const Half out = m->rounded ? m->half : HALF_NONE;
    (void)b;
    for (int64_t t = 0; t < m->batch; t++)
        for (int64_t i = 0; i < m->m; i++)
            for (int64_t j = 0; j < m->n; j++) {
                const int64_t at = t * m->step_c + i * m->ldc + j;
                double sum = m->accumulate ? element(z, out, at) : 0;
                for (int64_t k = 0; k < m->k; k++)
                    sum += element(x, m->half, t * m->step_a + (m->transpose_a ? k * m->lda + i : i * m->lda + k)) *
                           element(y, m->half, t * m->step_b + (m->transpose_b ? j * m->ldb + k : k * m->ldb + j));
                if (out == HALF_NONE)
                    ((float *)z)[at] = (float)sum;
                else
                    ((uint16_t *)z)[at] = out == HALF_BF16 ? to_brain((float)sum) : to_half(sum);
            }
    return ST_OK;
}

static Status ptx_copy(Backend *b, const PlanCopy *how, int64_t rows, const void *x, void *out)
{
    (void)b;
    for (int64_t r = 0; r < rows; r++)
        memcpy((char *)out + r * how->to, (const char *)x + r * how->from, (size_t)how->bytes);
    return ST_OK;
}

static Status ptx_sync(Backend *b)
{
    (void)b;
    return ST_OK;
}

static void ptx_close(Backend *b) { (void)b; }

static const BackendOps ptx_ops = {.name = "ptx",
                                   .alloc = ptx_alloc,
                                   .free = ptx_give,
                                   .upload = ptx_move,
                                   .download = ptx_move,
                                   .build = ptx_build,
                                   .drop = ptx_drop,
                                   .launch = ptx_run,
                                   .matmul = ptx_matmul,
                                   .copy = ptx_copy,
                                   .sync = ptx_sync,
                                   .close = ptx_close};

Status backend_ptx_open(Ctx *ctx, const PtxOptions *how, Backend **out, char why[512])
{
    if (!ptx_possible(why))
        return ST_ENVIRONMENT;
    PtxBackend *b = NEW(ctx->program, PtxBackend);
    b->how = *how;
    b->base = (Backend){.ops = &ptx_ops,
                        .kind = &backend_kinds[BACKEND_cuda],
                        .ctx = ctx,
                        .threads = 1,
                        .target = how->target,
                        .bf16 = true,
                        .multiprocessors = 1};
    *out = &b->base;
    return ST_OK;
}
