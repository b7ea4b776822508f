/* cuda_graph.c - the calls of a program as one graph, which is recorded once and launched in every run.
 *
 * In:  the calls of a run, between cuda_begin() and cuda_end().     Out: one launch.
 * The one idea: calls are the same in every run, because what changes lies in memory that kernels read (plan.h,
 * PlanNumber). The first run makes them one by one: then libraries have loaded what they need, which they may not while
 * a stream is recorded. The second is recorded; it and all later ones launch the graph. Where memory has moved they may
 * need other things, since addresses are aligned in another way: then both are done again.
 */
#include "cuda_backend.h"

/* Not before it has ended: the device may still be at it. */
void cuda_forget(CudaBackend *c, Module *m)
{
    if (m->graph)
        cuda_must(c, c->api.end_graph(m->graph), "forgetting recorded calls");
    m->graph = NULL;
}

static Status launch_graph(CudaBackend *c, Module *m)
{
    static const char what[] = "recorded calls";
    Status st = cuda_must(c, c->api.launch_graph(m->graph, c->stream), what);
    return st == ST_OK ? cuda_queued(c, what) : st;
}

/* What was recorded, and what libraries have loaded, is good for the memory that it was about. */
static Status forget_another(CudaBackend *c, Module *m, uint64_t generation, bool marked)
{
    bool moved = m->generation != generation;
    Status st = ST_OK;
    if (m->graph && (moved || m->marked != marked)) {
        st = cuda_wait(c, "waiting before calls are recorded anew");
        cuda_forget(c, m);
    }
    m->warm = m->warm && !moved;
    m->generation = generation;
    m->marked = marked;
    return st;
}

Status cuda_begin(Backend *b, Module *m, uint64_t generation, bool marked, bool *replayed)
{
    CudaBackend *c = cuda_of(b);
    Status st = cuda_enter(c);
    *replayed = false;
    if (st == ST_OK)
        st = cuda_flush(c);
    if (st == ST_OK)
        st = forget_another(c, m, generation, marked);
    if (st != ST_OK || c->synchronous)
        return st;
    if (m->graph) {
        *replayed = true;
        return launch_graph(c, m);
    }
    if (m->warm) {
        st = cuda_must(c, c->api.begin_capture(c->stream, CUDA_CAPTURE_THREAD), "recording calls");
        c->recording = st == ST_OK;
    }
    return st;
}

Status cuda_end(Backend *b, Module *m, Status st)
{
    CudaBackend *c = cuda_of(b);
    CudaRecord record = NULL;
    if (!c->recording) {
        m->warm = st == ST_OK;
        return st;
    }
    c->recording = false;
    int error = c->api.end_capture(c->stream, &record); /* also of one that a failure has ended already */
    if (st == ST_OK)
        st = cuda_must(c, error, "recording calls");
    if (st == ST_OK)
        st = cuda_must(c, c->api.make_graph(&m->graph, record, 0), "recording calls");
    error = record ? c->api.end_record(record) : 0;
    if (st == ST_OK)
        st = cuda_must(c, error, "recording calls");
    return st == ST_OK ? launch_graph(c, m) : st;
}
