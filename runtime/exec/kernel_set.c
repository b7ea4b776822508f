/* kernel_set.c - see kernel_set.h. */
#include "kernel_set.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>

struct KernelSet {
    Ctx *ctx; /* names and texts; only under the lock */
    pthread_mutex_t lock;
    Map have; /* by name */
    VEC(PlanKernel) kernel;
    const char *prelude, *device_prelude; /* the same of all plans */
    size_t prelude_length, device_prelude_length;
};

KernelSet *kernel_set_new(void)
{
    KernelSet *s = calloc(1, sizeof *s);
    if (!s || !(s->ctx = ctx_new(NULL))) {
        free(s);
        return NULL;
    }
    map_init(&s->have, s->ctx->program);
    pthread_mutex_init(&s->lock, NULL);
    return s;
}

void kernel_set_free(KernelSet *s)
{
    if (!s)
        return;
    pthread_mutex_destroy(&s->lock);
    ctx_free(s->ctx);
    free(s);
}

static void add(KernelSet *s, const PlanKernel *k)
{
    Arena *a = s->ctx->program;
    Name name = name_str(s->ctx, k->name);
    void **slot = map_at(&s->have, (uintptr_t)name);
    if (*slot)
        return;
    PlanKernel mine = {.name = name,
                       .text = arena_copy(a, k->text, k->length),
                       .length = k->length,
                       .grid = k->grid,
                       .where = k->where ? arena_copy(a, k->where, strlen(k->where)) : NULL};
    mine.grid.term = NULL; /* of launches, and there are none */
    mine.grid.n_term = 0;
    vec_push(a, &s->kernel, mine);
    *slot = s;
}

Status kernel_set_add(KernelSet *s, const Plan *plan, char why[512])
{
    CtxGuard guard;
    volatile Status st = ST_OK;
    pthread_mutex_lock(&s->lock);
    if (CTX_TRY(s->ctx, &guard)) {
        Arena *a = s->ctx->program;
        if (!s->prelude) {
            s->prelude = arena_copy(a, plan->prelude, s->prelude_length = plan->prelude_length);
            if (plan->device_prelude)
                s->device_prelude =
                    arena_copy(a, plan->device_prelude, s->device_prelude_length = plan->device_prelude_length);
        }
        for (size_t i = 0; i < plan->n_kernel; i++)
            add(s, &plan->kernel[i]);
        ctx_leave(s->ctx, &guard);
    } else {
        st = s->ctx->raised;
        snprintf(why, 512, "%s", s->ctx->message);
    }
    pthread_mutex_unlock(&s->lock);
    return st;
}

static int by_name(const void *x, const void *y)
{
    return strcmp(((const PlanKernel *)x)->name, ((const PlanKernel *)y)->name);
}

Plan *kernel_set_plan(KernelSet *s, Ctx *ctx, Arena *arena)
{
    Plan *p = NEW(arena, Plan);
    p->kernel = NEW_ARRAY(arena, PlanKernel, s->kernel.n + 1);
    for (size_t i = 0; i < s->kernel.n; i++) {
        p->kernel[i] = s->kernel.v[i];
        p->kernel[i].name = name_str(ctx, p->kernel[i].name);
    }
    p->n_kernel = s->kernel.n;
    if (p->n_kernel)
        qsort(p->kernel, p->n_kernel, sizeof *p->kernel, by_name);
    p->prelude = s->prelude;
    p->prelude_length = s->prelude_length;
    p->device_prelude = s->device_prelude;
    p->device_prelude_length = s->device_prelude_length;
    return p;
}
