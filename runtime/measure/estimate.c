/* estimate.c - what a launch should take at the measured rates.
 *
 * In:  a Plan, Rates.   Out: seconds.
 * The one idea: a launch takes as long as the slower of its two needs, moving its bytes or
 * doing its operations, and a launch waits for the one before it, so a step is their sum.
 */
#include "rates.h"

#include <math.h>

/* Bytes a second where `bytes` are in use, between the sizes that were measured. */
static double move_rate(const Rates *r, double bytes)
{
    const double *rate = r->v + RATE_MOVE, *size = r->v + RATE_MOVE_BYTES;
    int i = 0;
    while (i < RATE_MOVES - 1 && size[i + 1] > 0 && size[i + 1] < bytes)
        i++;
    if (bytes <= size[i] || i == RATE_MOVES - 1 || size[i + 1] <= 0)
        return rate[i];
    double part = log(bytes / size[i]) / log(size[i + 1] / size[i]);
    return rate[i] * pow(rate[i + 1] / rate[i], part);
}

static double product_seconds(const Rates *r, bool half, ProductKind kind, double flops, double numbers)
{
    const double *rate = r->v + (half && r->v[RATE_BF16] > 0 ? RATE_BF16 : RATE_MATMUL);
    return flops / rate[kind] + numbers / rate[RATE_MATMUL_NUMBERS - RATE_MATMUL + (int)kind];
}

static double seconds_matmul(const Rates *r, const Launch *l)
{
    const PlanMatmul *m = &l->matmul;
    return product_seconds(r, target_multiplies(&target_cpu, m->half), product_kind(m->transpose_a, m->transpose_b),
                           l->flops, product_numbers(m));
}

/* Those by expert are measured in float32: in bf16 they are taken to gain what other products do. */
static double expert_seconds(const Rates *r, bool half, ProductKind kind, double flops)
{
    double gain = half && r->v[RATE_BF16] > 0 ? r->v[RATE_BF16 + (int)kind] / r->v[RATE_MATMUL + (int)kind] : 1;
    return flops / (r->v[RATE_EXPERT + (int)kind] * gain);
}

/* The part of the threads that has something to do: rates are those of all threads. */
static double threads_used(const Rates *r, const Launch *l)
{
    double chunks = ceil((double)l->rows / fmax((double)l->grain, 1));
    return fmin(fmax(chunks, 1), r->threads) / r->threads;
}

static double seconds_kernel(const Rates *r, const Launch *l)
{
    const PlanWork *w = &l->work;
    int back = w->backward;
    double seconds = w->lane / r->v[RATE_LANE] + w->single / r->v[RATE_SINGLE] + w->call / r->v[RATE_CALL] +
                     w->product / r->v[RATE_PRODUCT] + w->random / r->v[RATE_RANDOM] +
                     expert_seconds(r, false, PRODUCT_PLAIN, w->expert) +
                     expert_seconds(r, true, PRODUCT_PLAIN, w->expert_half);
    if (w->scores > 0)
        seconds += w->attention / r->v[RATE_ATTENTION + back] + w->scores / r->v[RATE_SCORES + back];
    return seconds / threads_used(r, l);
}

static double seconds_expert(const Rates *r, const Launch *l)
{
    return expert_seconds(r, target_multiplies(&target_cpu, l->expert.half), expert_kind(&l->expert), l->flops);
}

/* Moving its bytes is all that it does. */
static double seconds_copy(const Rates *r, const Launch *l)
{
    (void)r, (void)l;
    return 0;
}

double estimate_launch(const Rates *r, const Launch *l, double plan_bytes)
{
    static double (*const of_kind[LAUNCH_KINDS])(const Rates *, const Launch *) = {
#define LAUNCH(ID, name, ...) [LAUNCH_##ID] = seconds_##name,
#include "compiler/plan/launches.def"
#undef LAUNCH
    };
    return fmax(l->bytes / move_rate(r, plan_bytes), of_kind[l->kind](r, l)) + 1 / r->v[RATE_LAUNCHES];
}

double estimate_plan_bytes(const Plan *plan)
{
    double bytes = (double)plan->arena_bytes;
    for (size_t i = 0; i < plan->n_ext; i++)
        bytes += (double)plan_ext_bytes(&plan->ext[i]);
    return bytes;
}

void estimate_add(Estimate *e, const Rates *r, const Plan *plan, int64_t runs)
{
    double bytes = estimate_plan_bytes(plan);
    for (size_t i = plan->n_cast; i < plan->n_launch; i++) {
        const Launch *l = &plan->launch[i];
        double seconds = (double)runs * estimate_launch(r, l, bytes);
        *(l->kind == LAUNCH_MATMUL                                               ? &e->products
          : l->kind == LAUNCH_EXPERT || l->work.expert + l->work.expert_half > 0 ? &e->experts
          : l->work.scores > 0                                                   ? &e->attention
                                                                                 : &e->kernels) += seconds;
        e->launches += runs;
    }
}

void estimate_plan(void *estimating, const Plan *plan, int64_t runs)
{
    Estimating *e = estimating;
    estimate_add(&e->sum, &e->rates, plan, runs);
}
