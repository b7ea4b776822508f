/* perf.c - see perf.h. */
#include "perf.h"

#include "compiler/plan/plan.h"
#include "compiler/portable/device_call.h"

#include <math.h>
#include <stdio.h>

const char *const perf_limit_name[LIMIT_COUNT] = {"issue",  "fma",    "integer", "special", "fp64",   "shared",
                                                  "tensor", "memory", "cache",   "latency", "product"};

enum { SAMPLES = 6, SAMPLES_OF_MANY = 24, WHOLE_BLOCKS = 8192 };
static const uint64_t MOST = 20u * 1000 * 1000; /* instructions of a block, and of a launch twice as many */

int perf_resident(const Gpu *gpu, int threads, int registers, int64_t shared)
{
    enum { RESERVED = 1024, PIECE = 128, WARP_PIECE = 256, SCHEDULERS = 4 };
    int warps = (threads + 31) / 32;
    int64_t of_warp = ((int64_t)registers * 32 + WARP_PIECE - 1) / WARP_PIECE * WARP_PIECE;
    int64_t by_registers = of_warp ? gpu->registers / of_warp / SCHEDULERS * SCHEDULERS / warps : gpu->blocks;
    int64_t by_shared = gpu->shared / ((shared + RESERVED + PIECE - 1) / PIECE * PIECE);
    int64_t n = gpu->warps / warps;
    n = by_registers < n ? by_registers : n;
    n = by_shared < n ? by_shared : n;
    return (int)(n < gpu->blocks ? n : gpu->blocks);
}

/* ---- the model ---- */

double perf_norm(const double *x, size_t n, double exponent)
{
    double most = 0, sum = 0;
    for (size_t i = 0; i < n; i++)
        most = x[i] > most ? x[i] : most;
    for (size_t i = 0; i < n && most > 0; i++)
        sum += pow(x[i] / most, exponent);
    return most > 0 ? most * pow(sum, 1 / exponent) : 0;
}

/* Cycles in which products of warpgroups are multiplied: at the best rate of the library, unless
 * what they multiply comes slower. */
static double grouped_cycles(const Gpu *gpu, const GpuCounts *c)
{
    const double reached = gpu->reached / 2 / gpu->multiprocessors / gpu->clock;
    return c->grouped > 0 ? fmax(c->grouped / reached, c->operands) : 0;
}

/* What `blocks` of a launch take at once, each alone: seconds by what limits. */
static void wave(const Gpu *gpu, const Perf *p, double blocks, double of[LIMIT_COUNT])
{
    const GpuCounts *c = &p->counts;
    double share = blocks / (double)p->blocks;
    double busiest = ceil(blocks / gpu->multiprocessors) / (double)p->blocks; /* part of the launch that one has */
    double cycle = busiest / gpu->clock;
    const double *lanes = gpu->lanes;
    double shared = c->wavefronts - c->operands + c->class[SASS_SHUFFLE] + c->lines;
    of[LIMIT_ISSUE] = c->slots / gpu->issue * cycle;
    of[LIMIT_FMA] = (c->unit[UNIT_FMA] / lanes[UNIT_FMA] + c->unit[UNIT_IMAD] / lanes[UNIT_IMAD]) * 32 * cycle;
    of[LIMIT_INTEGER] = c->unit[UNIT_ALU] / lanes[UNIT_ALU] * 32 * cycle;
    of[LIMIT_SPECIAL] = c->unit[UNIT_XU] / lanes[UNIT_XU] * 32 * cycle;
    of[LIMIT_FP64] = c->unit[UNIT_FP64] / lanes[UNIT_FP64] * 32 * cycle;
    of[LIMIT_SHARED] = shared * cycle;
    of[LIMIT_TENSOR] = ((c->tensor - c->grouped) / lanes[UNIT_TENSOR] + grouped_cycles(gpu, c)) * cycle;
    of[LIMIT_MEMORY] = p->bytes / gpu->copy * share;
    of[LIMIT_CACHE] = 32 * (c->sectors_missed + c->sectors_written) / gpu->l2 * share;
    of[LIMIT_LATENCY] = c->cycles / gpu->clock;
    of[LIMIT_PRODUCT] = 0;
}

/* Cycles of a block beyond those of its busiest unit, as the walk counts both. */
static double waiting(const Gpu *gpu, const Perf *p)
{
    const GpuCounts *c = &p->counts;
    const double *lanes = gpu->lanes;
    const double busy[] = {c->slots / 4,
                           c->unit[UNIT_FMA] / lanes[UNIT_FMA] * 32,
                           c->unit[UNIT_IMAD] / lanes[UNIT_IMAD] * 32,
                           c->unit[UNIT_ALU] / lanes[UNIT_ALU] * 32,
                           c->unit[UNIT_XU] / lanes[UNIT_XU] * 32,
                           c->unit[UNIT_FP64] / lanes[UNIT_FP64] * 32,
                           c->wavefronts,
                           (c->tensor - c->grouped) / lanes[UNIT_TENSOR] +
                               (c->grouped > 0 ? c->grouped / gpu->grouped : 0)};
    double most = 0;
    for (size_t i = 0; i < COUNT_OF(busy); i++)
        most = fmax(most, busy[i]);
    return fmax(0, c->cycles - most / (double)p->blocks);
}

/* Seconds of a wave, of which each limit alone takes of[i]. */
static double joined(const Gpu *gpu, const Perf *p, double blocks, const double of[LIMIT_COUNT])
{
    const double each = ceil(blocks / gpu->multiprocessors);
    const double beyond[] = {perf_norm(of, LIMIT_MEMORY, gpu->together), of[LIMIT_MEMORY], of[LIMIT_CACHE]};
    return fmax(perf_norm(beyond, COUNT_OF(beyond), gpu->beyond) + gpu->uncovered * waiting(gpu, p) / gpu->clock / each,
                of[LIMIT_LATENCY]);
}

static PerfLimit largest(const double of[LIMIT_COUNT])
{
    int best = 0;
    for (int i = 1; i < LIMIT_COUNT; i++)
        best = of[i] > of[best] ? i : best;
    return (PerfLimit)best;
}

void perf_time(const Gpu *gpu, Perf *p)
{
    double at_once = (double)gpu->multiprocessors * p->resident, blocks = (double)p->blocks, of[LIMIT_COUNT];
    double full = floor(blocks / at_once), rest = blocks - full * at_once, whole = 0;
    p->waves = blocks / at_once;
    p->seconds = gpu->ramp;
    memset(p->of, 0, sizeof p->of);
    for (int last = 0; last < 2; last++) {
        double times = last ? rest > 0 : full;
        if (times <= 0)
            continue;
        wave(gpu, p, last ? rest : at_once, of);
        double seconds = joined(gpu, p, last ? rest : at_once, of);
        whole = last && full > 0 ? whole : seconds;
        p->seconds += times * seconds;
        for (int i = 0; i < LIMIT_COUNT; i++)
            p->of[i] += times * of[i];
    }
    p->limit = largest(p->of);
    p->tail = full > 0 ? (p->seconds - gpu->ramp) / (whole * p->waves) : 1;
    p->copy_share = p->bytes / gpu->copy / p->seconds;
    p->peak_share = 2 * p->counts.tensor / gpu->peak / p->seconds;
}

/* Numbers that move: bytes of the plan by what an element of the launch's buffers has in the mean. */
static double numbers_of(const Plan *plan, const Launch *l)
{
    double bytes = 0, numbers = 0;
    for (uint32_t i = 0; i < l->n_touched; i++) {
        const PlanBuffer *b = &plan->buffer[l->buffer[i]];
        bytes += (double)b->bytes;
        numbers += (double)b->bytes / (double)plan_item_bytes(b);
    }
    return bytes > 0 ? l->bytes * numbers / bytes : 0;
}

/* Map i, behind so many bytes of arguments. */
static GpuMap gpu_map(const Launch *l, uint32_t i, uint64_t bytes)
{
    const LaunchMap *m = &l->map[i];
    GpuMap to = {.at = (GPU_ARGUMENTS_90 + bytes + GPU_MAP_BYTES - 1) / GPU_MAP_BYTES * GPU_MAP_BYTES -
                       GPU_ARGUMENTS_90 + GPU_MAP_BYTES * (uint64_t)i,
                 .address = perf_address(l->buffer[m->buffer]) + l->shift[m->buffer],
                 .rank = MAP_RANK,
                 .item = 2};
    for (int k = 0; k < MAP_RANK; k++) {
        to.dim[k] = m->extent[k];
        to.stride[k] = m->stride[k] * to.item;
        to.box[k] = m->box[k];
    }
    return to;
}

bool perf_prepare(Arena *arena, const Gpu *gpu, const SassKernel *sass, const CubinKernel *facts, PerfMemory *memory,
                  const Launch *l, GpuLaunch *g, Perf *out, char why[256])
{
    const Plan *plan = memory->plan;
    const PlanKernel *k = &plan->kernel[l->kernel];
    perf_keep(memory, l);
    size_t n = 0, all = (size_t)l->n_buffer + l->n_int + l->n_scalar + 1;
    uint64_t *argument = NEW_ARRAY(arena, uint64_t, all);
    int64_t *ints = NEW_ARRAY(arena, int64_t, l->n_int + 1u);
    for (uint32_t i = 0; i < l->n_buffer; i++)
        argument[n++] = perf_address(l->buffer[i]) + l->shift[i];
    for (uint32_t i = 0; i < l->n_int; i++)
        argument[n++] = (uint64_t)(ints[i] = l->ints[i].value);
    for (uint32_t i = 0; i < l->n_scalar; i++)
        argument[n++] = call_number(l->scalars[i].host < 0 ? l->scalars[i].value : 1.0);
    argument[n++] = (uint64_t)l->rows;
    GpuMap *map = NEW_ARRAY(arena, GpuMap, k->n_map + 1u);
    for (uint32_t i = 0; i < k->n_map; i++)
        map[i] = gpu_map(l, i, 8 * n);
    *g = (GpuLaunch){.code = sass,
                     .arch = gpu->number,
                     .threads = k->grid.threads,
                     .blocks = (uint32_t)plan_blocks(&k->grid, l->rows),
                     .argument = argument,
                     .n_argument = n,
                     .map = map,
                     .n_map = k->n_map,
                     .constant = facts->constant,
                     .n_constant = facts->n_constant,
                     .shared = (uint64_t)facts->shared + plan_shared_bytes(&k->grid, ints),
                     .frame = facts->frame,
                     .load = perf_load,
                     .store = perf_store,
                     .user = memory,
                     .latency = gpu->latency,
                     .lanes = gpu->lanes,
                     .most = MOST};
    *out = (Perf){.blocks = g->blocks,
                  .threads = (int)g->threads,
                  .registers = facts->registers,
                  .shared = (int64_t)g->shared,
                  .bytes = l->bytes,
                  .numbers = numbers_of(plan, l)};
    out->resident = perf_resident(gpu, out->threads, out->registers, out->shared);
    why[0] = 0;
    if (!out->resident)
        snprintf(why, 256, "a block has more registers or shared memory than a multiprocessor");
    else
        g->cache = gpu->first / out->resident - out->shared;
    return out->resident > 0;
}

/* How many blocks: all of a launch that stores integers, which others go by, unless there are very many; more where blocks are of
 * several launches. */
static int64_t samples_of(const Plan *plan, const Launch *l)
{
    if (perf_keeps(plan, l))
        return plan_blocks(&plan->kernel[l->kernel].grid, l->rows) <= WHOLE_BLOCKS ? WHOLE_BLOCKS : SAMPLES;
    return l->items ? SAMPLES_OF_MANY : SAMPLES;
}

bool perf_launch(Arena *arena, const Gpu *gpu, const SassKernel *sass, const CubinKernel *facts, PerfMemory *memory,
                 const Launch *l, Perf *out, char why[256])
{
    GpuLaunch g;
    if (!perf_prepare(arena, gpu, sass, facts, memory, l, &g, out, why) ||
        (out->blocks && !perf_walk(arena, &g, samples_of(memory->plan, l), &out->counts, why)))
        return false;
    if (out->blocks)
        perf_time(gpu, out);
    return true;
}

void perf_library(const Gpu *gpu, const Launch *l, Perf *out)
{
    const PlanMatmul *x = &l->matmul;
    *out = (Perf){.bytes = l->bytes, .waves = 1, .tail = 1};
    out->of[LIMIT_MEMORY] = l->bytes / gpu->copy;
    if (l->kind == LAUNCH_MATMUL)
        out->of[LIMIT_PRODUCT] =
            perf_product(gpu, (double)x->m, (double)x->n, (double)x->k, (double)x->batch, x->half != HALF_NONE);
    out->limit = largest(out->of);
    out->seconds = out->limit == LIMIT_PRODUCT ? out->of[LIMIT_PRODUCT] : out->of[LIMIT_MEMORY] + gpu->ramp;
    out->copy_share = out->of[LIMIT_MEMORY] / out->seconds;
    out->peak_share = out->of[LIMIT_PRODUCT] > 0 && x->half != HALF_NONE ? l->flops / gpu->peak / out->seconds : 0;
}
