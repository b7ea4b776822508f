/* driver_stream.c - libcuda: streams, events, and graphs by capture. */
#define _GNU_SOURCE
#include "driver.h"

#include <stdlib.h>
#include <string.h>

enum { CONTEXT = NEEDS_INIT | NEEDS_CONTEXT };

/* ---- streams ---- */

static int stream_create(const void **out, unsigned flags, int priority)
{
    if (!out || flags > STREAM_NON_BLOCKING)
        return E_VALUE;
    if (!(flags & STREAM_NON_BLOCKING))
        fake_note("a stream that the legacy stream waits for");
    FakeStream *s = fake_stream_new(flags, priority);
    *out = s->handle = fake_handle(KIND_STREAM, s);
    fake_made(KIND_STREAM);
    return E_OK;
}

FAKE_API int cuStreamCreate(const void **out, unsigned flags)
{
    FAKE_CALL("cuStreamCreate", CONTEXT, E_MEMORY, stream_create(out, flags, 0));
}

FAKE_API int cuStreamCreateWithPriority(const void **out, unsigned flags, int priority)
{
    FAKE_CALL("cuStreamCreateWithPriority", CONTEXT, E_MEMORY, stream_create(out, flags, priority));
}

/* Its work goes on. */
static int stream_destroy(const void *handle, int error)
{
    FakeStream *s = fake_object(KIND_STREAM, handle);
    if (!s)
        return error ? error : fake_refuse(E_HANDLE, "no stream");
    if (s->capture && !error)
        return fake_refuse(E_CAPTURE_UNSUPPORTED, "a stream that is captured");
    s->live = false;
    fake_forget(KIND_STREAM, handle);
    fake_given_back(KIND_STREAM);
    return error;
}

FAKE_API int cuStreamDestroy_v2(const void *handle)
{
    int error = fake_enter("cuStreamDestroy_v2", CONTEXT, E_HANDLE);
    return fake_leave(fake_futile(error) ? error : stream_destroy(handle, error));
}

/* A stream that the host asks something of, which breaks its capture. */
static int asked(const void *handle, FakeStream **s)
{
    int error = fake_stream(handle, s);
    if (error || !(*s)->capture)
        return error;
    fake_capture_invalidate(*s);
    return fake_refuse(E_CAPTURE_UNSUPPORTED, "a stream that is captured");
}

static int stream_synchronize(const void *handle)
{
    FakeStream *s;
    int error = asked(handle, &s);
    return error ? error : fake_wait_stream(s);
}

FAKE_API int cuStreamSynchronize(const void *handle)
{
    FAKE_CALL("cuStreamSynchronize", CONTEXT | UNSAFE, E_LAUNCH, stream_synchronize(handle));
}

/* Who asks again and again sees it done in the end. */
static int query(FakeStream *s, uint64_t place)
{
    if (fake_reached(s, place))
        return E_OK;
    fake_poll(s, place);
    return fake_lost() ? fake_lost() : E_NOT_READY;
}

static int stream_query(const void *handle)
{
    FakeStream *s;
    int error = asked(handle, &s);
    return error ? error : query(s, s->issued);
}

FAKE_API int cuStreamQuery(const void *handle)
{
    FAKE_CALL("cuStreamQuery", CONTEXT | UNSAFE, E_LAUNCH, stream_query(handle));
}

/* ---- events ---- */

static int event_create(const void **out, unsigned flags)
{
    if (!out || flags > 3)
        return E_VALUE;
    FakeEvent *e = calloc(1, sizeof *e);
    e->flags = flags;
    *out = fake_handle(KIND_EVENT, e);
    fake_made(KIND_EVENT);
    return E_OK;
}

FAKE_API int cuEventCreate(const void **out, unsigned flags)
{
    FAKE_CALL("cuEventCreate", CONTEXT, E_MEMORY, event_create(out, flags));
}

static int event_destroy(const void *handle, int error)
{
    if (!fake_object(KIND_EVENT, handle))
        return error ? error : fake_refuse(E_HANDLE, "no event");
    fake_forget(KIND_EVENT, handle);
    fake_given_back(KIND_EVENT);
    return error;
}

FAKE_API int cuEventDestroy_v2(const void *handle)
{
    int error = fake_enter("cuEventDestroy_v2", CONTEXT, E_HANDLE);
    return fake_leave(fake_futile(error) ? error : event_destroy(handle, error));
}

static void event_clear(FakeEvent *e)
{
    free(e->nodes.at);
    *e = (FakeEvent){.flags = e->flags};
}

static int event_record(const void *handle, const void *stream)
{
    FakeEvent *e = fake_object(KIND_EVENT, handle);
    FakeStream *s;
    int error = fake_stream(stream, &s);
    if (error || !e)
        return error ? error : fake_refuse(E_HANDLE, "no event");
    if (s->capture && s->capture->invalid)
        return E_CAPTURE_INVALIDATED;
    event_clear(e);
    fake_say("event %p", handle);
    if (s->capture) {
        e->capture = s->capture;
        e->nodes = fake_nodes_copy(&s->tail);
        return E_OK;
    }
    e->on = s;
    e->place = s->issued + 1;
    fake_push(s, (FakeOp){.kind = OP_MARK, .event = e});
    fake_progress();
    return E_OK;
}

FAKE_API int cuEventRecord(const void *event, const void *stream)
{
    FAKE_CALL("cuEventRecord", CONTEXT, E_HANDLE, event_record(event, stream));
}

/* An event that is part of the graph: it happens when the graph comes to it. */
static int event_record_flagged(const void *handle, const void *stream, unsigned flags)
{
    FakeEvent *e = fake_object(KIND_EVENT, handle);
    FakeStream *s;
    if (!flags)
        return event_record(handle, stream);
    int error = fake_stream(stream, &s);
    if (error || !e)
        return error ? error : fake_refuse(E_HANDLE, "no event");
    if (flags != RECORD_EXTERNAL || !s->capture)
        return fake_refuse(E_VALUE, "only a captured stream has events of a graph");
    if (s->capture->invalid)
        return E_CAPTURE_INVALIDATED;
    event_clear(e); /* it has no time before the graph is launched */
    fake_capture_add(s, (FakeWork){.what = "an event", .event = handle});
    return E_OK;
}

FAKE_API int cuEventRecordWithFlags(const void *event, const void *stream, unsigned flags)
{
    FAKE_CALL("cuEventRecordWithFlags", CONTEXT, E_HANDLE, event_record_flagged(event, stream, flags));
}

static int wait_captured(FakeStream *s, const FakeEvent *e)
{
    if (e->capture->invalid || (s->capture && s->capture->invalid))
        return E_CAPTURE_INVALIDATED;
    if (!e->capture->graph)
        return fake_refuse(E_CAPTURED_EVENT, "the capture that the event is of has ended");
    if (s->capture && s->capture != e->capture) {
        fake_capture_invalidate(s);
        return fake_refuse(E_CAPTURE_MERGE, "two captures would become one");
    }
    if (!s->capture)
        s->tail = (FakeNodes){NULL, 0};
    s->capture = e->capture;
    fake_capture_join(s, &e->nodes);
    return E_OK;
}

static int stream_wait_event(const void *stream, const void *event, unsigned flags)
{
    FakeEvent *e = fake_object(KIND_EVENT, event);
    FakeStream *s;
    int error = fake_stream(stream, &s);
    if (error || !e)
        return error ? error : fake_refuse(E_HANDLE, "no event");
    if (flags)
        return E_VALUE;
    if (e->capture)
        return wait_captured(s, e);
    if (s->capture) {
        fake_capture_invalidate(s);
        return fake_refuse(E_CAPTURE_ISOLATION, "a captured stream waits for what is not captured");
    }
    if (!e->on)
        return fake_refuse(E_OK, "an event that was never recorded");
    fake_push(s, (FakeOp){.kind = OP_WAIT, .on = e->on, .until = e->place});
    fake_progress();
    return E_OK;
}

FAKE_API int cuStreamWaitEvent(const void *stream, const void *event, unsigned flags)
{
    FAKE_CALL("cuStreamWaitEvent", CONTEXT, E_HANDLE, stream_wait_event(stream, event, flags));
}

static int event_asked(const void *handle, FakeEvent **e)
{
    *e = fake_object(KIND_EVENT, handle);
    if (!*e)
        return fake_refuse(E_HANDLE, "no event");
    if ((*e)->capture) {
        (*e)->capture->invalid = true;
        return fake_refuse(E_CAPTURED_EVENT, "it was recorded while a stream was captured");
    }
    return E_OK;
}

static int event_query(const void *handle)
{
    FakeEvent *e;
    int error = event_asked(handle, &e);
    return error || !e->on ? error : query(e->on, e->place);
}

FAKE_API int cuEventQuery(const void *handle)
{
    FAKE_CALL("cuEventQuery", CONTEXT | UNSAFE, E_LAUNCH, event_query(handle));
}

static int event_synchronize(const void *handle)
{
    FakeEvent *e;
    int error = event_asked(handle, &e);
    fake_say("event %p", handle);
    return error || !e->on ? error : fake_wait(e->on, e->place);
}

FAKE_API int cuEventSynchronize(const void *handle)
{
    FAKE_CALL("cuEventSynchronize", CONTEXT | UNSAFE, E_LAUNCH, event_synchronize(handle));
}

static int elapsed(float *out, const void *from, const void *to)
{
    FakeEvent *a, *b;
    int error = event_asked(from, &a);
    error = error ? error : event_asked(to, &b);
    if (error || !out)
        return error ? error : E_VALUE;
    if (!a->on || !b->on || ((a->flags | b->flags) & EVENT_NO_TIMING))
        return fake_refuse(E_HANDLE, "an event that has no time");
    if (!fake_reached(a->on, a->place) || !fake_reached(b->on, b->place))
        return E_NOT_READY;
    *out = (float)((b->time - a->time) / 1000);
    return E_OK;
}

FAKE_API int cuEventElapsedTime(float *out, const void *from, const void *to)
{
    FAKE_CALL("cuEventElapsedTime", CONTEXT, E_HANDLE, elapsed(out, from, to));
}

FAKE_API int cuEventElapsedTime_v2(float *out, const void *from, const void *to)
{
    FAKE_CALL("cuEventElapsedTime_v2", CONTEXT, E_HANDLE, elapsed(out, from, to));
}

/* ---- capture ---- */

static int begin_capture(const void *handle, int mode)
{
    FakeStream *s;
    int error = fake_stream(handle, &s);
    if (error)
        return error;
    if (mode < CAPTURE_GLOBAL || mode > CAPTURE_RELAXED)
        return E_VALUE;
    if (s->capture)
        return fake_refuse(E_VALUE, "it is captured already");
    fake_capture_begin(s, mode);
    return E_OK;
}

FAKE_API int cuStreamBeginCapture_v2(const void *handle, int mode)
{
    FAKE_CALL("cuStreamBeginCapture_v2", CONTEXT, E_UNKNOWN, begin_capture(handle, mode));
}

static int is_capturing(const void *handle, int *state)
{
    FakeStream *s;
    int error = fake_stream(handle, &s);
    if (error || !state)
        return error ? error : E_VALUE;
    *state = !s->capture ? CAPTURE_NONE : s->capture->invalid ? CAPTURE_INVALID : CAPTURE_ACTIVE;
    return E_OK;
}

FAKE_API int cuStreamIsCapturing(const void *handle, int *state)
{
    FAKE_CALL("cuStreamIsCapturing", CONTEXT, E_UNKNOWN, is_capturing(handle, state));
}

static int end_capture(const void *handle, const void **out)
{
    FakeStream *s;
    int error = fake_stream(handle, &s);
    if (error || !out)
        return error ? error : E_VALUE;
    *out = NULL;
    FakeCapture *c = s->capture;
    if (!c)
        return fake_refuse(E_VALUE, "it is not captured");
    if (c->origin != s) {
        c->invalid = true;
        return fake_refuse(E_CAPTURE_UNMATCHED, "its capture began on another stream");
    }
    if (c->mode != CAPTURE_RELAXED && !pthread_equal(c->thread, pthread_self()))
        return fake_refuse(E_CAPTURE_THREAD, "its capture began in another thread");
    bool joined = fake_capture_end(c);
    FakeGraph *g = c->graph;
    c->graph = NULL;
    if (c->invalid || !joined) {
        fake_graph_drop(g);
        return c->invalid ? E_CAPTURE_INVALIDATED : fake_refuse(E_CAPTURE_UNJOINED, "a stream did not come back");
    }
    fake_say("%u nodes", g->n);
    *out = fake_handle(KIND_GRAPH, g);
    fake_made(KIND_GRAPH);
    return E_OK;
}

/* One that fails as asked leaves a capture that is over, and no graph, as one that was broken before does. */
static int fail_capture(const void *handle, const void **out, int error)
{
    FakeStream *s;
    if (!fake_stream(handle, &s) && s->capture) {
        fake_capture_invalidate(s);
        end_capture(handle, out);
    }
    return error;
}

FAKE_API int cuStreamEndCapture(const void *handle, const void **out)
{
    int error = fake_enter("cuStreamEndCapture", CONTEXT, E_UNKNOWN);
    if (error)
        return fake_leave(fake_futile(error) ? error : fail_capture(handle, out, error));
    return fake_leave(end_capture(handle, out));
}

/* ---- graphs ---- */

static int instantiate(const void **out, const void *graph, uint64_t flags)
{
    FakeGraph *g = fake_object(KIND_GRAPH, graph);
    if (!g)
        return fake_refuse(E_HANDLE, "no graph");
    if (!out || flags)
        return E_VALUE;
    FakeExec *x = calloc(1, sizeof *x);
    x->graph = g;
    g->users++;
    *out = fake_handle(KIND_EXEC, x);
    fake_made(KIND_EXEC);
    return E_OK;
}

FAKE_API int cuGraphInstantiateWithFlags(const void **out, const void *graph, uint64_t flags)
{
    FAKE_CALL("cuGraphInstantiateWithFlags", CONTEXT, E_MEMORY, instantiate(out, graph, flags));
}

static int graph_destroy(const void *handle, int error)
{
    FakeGraph *g = fake_object(KIND_GRAPH, handle);
    if (!g)
        return error ? error : fake_refuse(E_HANDLE, "no graph");
    fake_forget(KIND_GRAPH, handle);
    fake_graph_drop(g);
    fake_given_back(KIND_GRAPH);
    return error;
}

FAKE_API int cuGraphDestroy(const void *handle)
{
    int error = fake_enter("cuGraphDestroy", CONTEXT, E_HANDLE);
    return fake_leave(fake_futile(error) ? error : graph_destroy(handle, error));
}

static int exec_destroy(const void *handle, int error)
{
    FakeExec *x = fake_object(KIND_EXEC, handle);
    if (!x)
        return error ? error : fake_refuse(E_HANDLE, "no executable graph");
    fake_forget(KIND_EXEC, handle);
    fake_graph_drop(x->graph);
    x->graph = NULL;
    fake_given_back(KIND_EXEC);
    return error;
}

FAKE_API int cuGraphExecDestroy(const void *handle)
{
    int error = fake_enter("cuGraphExecDestroy", CONTEXT, E_HANDLE);
    return fake_leave(fake_futile(error) ? error : exec_destroy(handle, error));
}

static int graph_launch(const void *handle, const void *stream)
{
    FakeExec *x = fake_object(KIND_EXEC, handle);
    FakeStream *s;
    int error = fake_stream(stream, &s);
    if (error || !x)
        return error ? error : fake_refuse(E_HANDLE, "no executable graph");
    if (s->capture) {
        fake_capture_invalidate(s);
        return fake_refuse(E_NOT_SUPPORTED, "the fake makes no graphs of graphs");
    }
    fake_say("%u nodes", x->graph->n);
    x->graph->users++;
    fake_push(s, (FakeOp){.kind = OP_GRAPH,
                          .graph = x->graph,
                          .left = x->graph->n,
                          .on = x->last_on,
                          .until = x->last,
                          .ran = calloc(x->graph->n + 1, sizeof(bool))});
    x->last_on = s;
    x->last = s->issued;
    for (unsigned i = 0; i < x->graph->n; i++) {
        FakeEvent *e = x->graph->node[i].work.event ? fake_object(KIND_EVENT, x->graph->node[i].work.event) : NULL;
        if (e) {
            e->on = s;
            e->place = s->issued;
        }
    }
    fake_progress();
    return E_OK;
}

FAKE_API int cuGraphLaunch(const void *handle, const void *stream)
{
    FAKE_CALL("cuGraphLaunch", CONTEXT, E_RESOURCES, graph_launch(handle, stream));
}

static int graph_nodes(const void *handle, const void **nodes, size_t *n)
{
    const FakeGraph *g = fake_object(KIND_GRAPH, handle);
    if (!g || !n)
        return E_VALUE;
    if (nodes)
        return fake_refuse(E_NOT_SUPPORTED, "the fake only counts nodes");
    *n = g->n;
    return E_OK;
}

FAKE_API int cuGraphGetNodes(const void *handle, const void **nodes, size_t *n)
{
    FAKE_CALL("cuGraphGetNodes", CONTEXT, E_UNKNOWN, graph_nodes(handle, nodes, n));
}
