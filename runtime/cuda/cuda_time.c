/* cuda_time.c - how long the device takes for what is queued, and how a launch lies on it.
 *
 * In:  moments in the stream, kernels and their sizes.   Out: seconds between moments; blocks, waves, registers.
 * The one idea: the device notes the time itself, in events, so the host disturbs nothing. In calls that are recorded
 * they are recorded, too, and so lie between the kernels of a graph, where no kernel waits for the host.
 */
#include "compiler/plan/plan.h"
#include "cuda_backend.h"

/* Events are kept: a moment of the same number takes the same one. */
static Status make_marks(CudaBackend *c, size_t n)
{
    CtxGuard guard;
    Status st = ST_OK;
    if (c->mark.n >= n)
        return ST_OK;
    if (!CTX_TRY(c->base.ctx, &guard))
        return cuda_fail(c, c->base.ctx->raised, "%s", c->base.ctx->message);
    while (st == ST_OK && c->mark.n < n) {
        CudaEvent event = NULL;
        vec_push(c->arena, &c->mark, NULL); /* entered before it is there: then it cannot be lost */
        st = cuda_must(c, c->api.new_event(&event, 0), "making an event");
        c->mark.v[c->mark.n - 1] = st == ST_OK ? event : NULL;
    }
    ctx_leave(c->base.ctx, &guard);
    return st;
}

Status cuda_mark(Backend *b, size_t i)
{
    CudaBackend *c = cuda_of(b);
    Status st = cuda_enter(c);
    if (st == ST_OK)
        st = cuda_flush(c);
    if (st == ST_OK)
        st = make_marks(c, i + 1);
    if (st != ST_OK)
        return st;
    int error = c->recording ? c->api.record_flagged(c->mark.v[i], c->stream, CUDA_EVENT_IN_GRAPH)
                             : c->api.record(c->mark.v[i], c->stream);
    return cuda_must(c, error, "noting a time");
}

Status cuda_between(Backend *b, size_t i, double *seconds)
{
    CudaBackend *c = cuda_of(b);
    float ms = 0;
    *seconds = 0;
    Status st = cuda_enter(c);
    if (st == ST_OK && i + 1 >= c->mark.n)
        return cuda_fail(c, ST_BUG, "moment %zu was not noted", i + 1);
    if (st == ST_OK)
        st = cuda_must(c, c->api.elapsed(&ms, c->mark.v[i], c->mark.v[i + 1]), "asking for a time");
    *seconds = 1e-3 * (double)ms;
    return st;
}

Status cuda_shape(Backend *b, Module *m, uint32_t kernel, const int64_t *n, int64_t rows, LaunchShape *out)
{
    CudaBackend *c = cuda_of(b);
    const PlanKernel *k = &m->plan->kernel[kernel];
    const CudaLoaded *of = m->kernel[kernel];
    uint64_t shared = plan_shared_bytes(&k->grid, n);
    *out = (LaunchShape){.blocks = plan_blocks(&k->grid, rows),
                         .threads = k->grid.threads,
                         .registers = of->facts.registers,
                         .shared = (int64_t)shared + of->facts.shared,
                         .spills = of->facts.spill_stores};
    Status st = cuda_enter(c);
    if (st == ST_OK)
        st = cuda_must(c, c->api.occupancy(&out->blocks_sm, of->function, out->threads, shared),
                       "asking how many blocks fit");
    if (st == ST_OK && out->blocks_sm > 0 && b->multiprocessors > 0)
        out->waves = (double)out->blocks / ((double)out->blocks_sm * b->multiprocessors);
    return st;
}

void cuda_forget_marks(CudaBackend *c)
{
    for (size_t i = 0; i < c->mark.n; i++)
        if (c->mark.v[i])
            cuda_must(c, c->api.end_event(c->mark.v[i]), "ending an event");
    c->mark.n = 0;
}
