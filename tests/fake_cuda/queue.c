/* queue.c - the work of streams: who runs when.
 *
 * In:  work, marks of events and waits for them, in the order of the calls.
 * Out: the same work, run in an order that streams and events allow.
 * The one idea: nothing runs before something waits for it (order `late`: then only what that needs), or things run
 * whenever chance has it (`shuffled`), or in the order of the calls, late (`in-order`) or at once (`eager`).
 */
#define _GNU_SOURCE
#include "queue.h"

#include <stdlib.h>
#include <string.h>

static FakeStream *streams; /* all that ever were */
static uint64_t numbers;
static double clock_now; /* microseconds: every piece of work takes as long */
static int lost;
static bool running;

/* ---- streams ---- */

FakeStream *fake_stream_new(unsigned flags, int priority)
{
    FakeStream *s = calloc(1, sizeof *s);
    *s = (FakeStream){.flags = flags, .priority = priority, .live = true, .next = streams};
    streams = s;
    return s;
}

int fake_stream(const void *handle, FakeStream **out)
{
    *out = NULL;
    if ((uintptr_t)handle <= 2) {
        fake_mistake("the legacy stream is used");
        return fake_refuse(E_HANDLE, "the legacy stream");
    }
    *out = fake_object(KIND_STREAM, handle);
    return *out ? E_OK : fake_refuse(E_HANDLE, "no stream");
}

FakeStream *fake_streams(void) { return streams; }

static void drop_op(FakeOp *op)
{
    if (op->kind == OP_WORK && op->work.drop)
        op->work.drop(op->work.data);
    if (op->graph)
        fake_graph_drop(op->graph);
    free(op->ran);
    free(op);
}

static void pop(FakeStream *s)
{
    FakeOp *op = s->first;
    s->done = op->place;
    s->first = op->next;
    if (!s->first)
        s->last = NULL;
    drop_op(op);
}

static void drop_all(void)
{
    for (FakeStream *s = streams; s; s = s->next)
        while (s->first)
            pop(s);
}

int fake_lost(void) { return lost; }

void fake_lose(int error)
{
    lost = lost ? lost : error;
    if (!running)
        drop_all();
}

void fake_ended(void) { drop_all(); }

void fake_streams_drop(void)
{
    for (FakeStream *s = streams; s; s = s->next)
        if (s->live) {
            s->live = false;
            fake_forget(KIND_STREAM, s->handle);
        }
}

/* ---- one step ---- */

bool fake_reached(const FakeStream *s, uint64_t place) { return !s || s->done >= place; }

static bool can_go_on(const FakeStream *s) { return s->first && fake_reached(s->first->on, s->first->until); }

/* An event that lies in a graph; it takes no time. */
static void happen(const void *handle)
{
    FakeEvent *e = fake_object(KIND_EVENT, handle);
    if (e)
        e->time = clock_now;
    else
        fake_mistake("an event of a graph was ended before the graph");
}

static void run_work(const FakeWork *w)
{
    char why[256] = "";
    if (w->event) {
        happen(w->event);
        return;
    }
    clock_now += 5;
    int error = fake_guarded(w->run, w->data, why);
    if (!error)
        return;
    fake_mistake("%s: %s: %s", w->what, why, fake_error_name(error));
    fake_lose(error);
}

static bool node_ready(const FakeOp *op, unsigned i)
{
    const FakeNode *n = &op->graph->node[i];
    for (unsigned k = 0; k < n->n_before; k++)
        if (!op->ran[n->before[k]])
            return false;
    return !op->ran[i];
}

static unsigned next_node(const FakeOp *op)
{
    FakeOrder order = fake_settings()->order;
    unsigned n = op->graph->n, from = order == ORDER_SHUFFLED ? (unsigned)(fake_random() % n) : 0;
    for (unsigned k = 0; k < n; k++) {
        unsigned i = order == ORDER_LATE ? n - 1 - k : (from + k) % n;
        if (node_ready(op, i))
            return i;
    }
    abort(); /* nodes come after nodes that are older */
}

/* The first thing of a stream that can go on, or one node of it. */
static void step(FakeStream *s)
{
    FakeOp *op = s->first;
    if (op->kind == OP_GRAPH && op->left) {
        unsigned i = next_node(op);
        run_work(&op->graph->node[i].work);
        op->ran[i] = true;
        if (--op->left)
            return;
    }
    if (op->kind == OP_WORK)
        run_work(&op->work);
    if (op->kind == OP_MARK && op->event->on == s && op->event->place == op->place)
        op->event->time = clock_now;
    pop(s);
}

/* ---- who is next ---- */

static FakeStream *oldest(void)
{
    FakeStream *found = NULL;
    for (FakeStream *s = streams; s; s = s->next)
        if (can_go_on(s) && (!found || s->first->number < found->first->number))
            found = s;
    return found;
}

static FakeStream *any(void)
{
    FakeStream *found = NULL;
    unsigned n = 0;
    for (FakeStream *s = streams; s; s = s->next)
        if (can_go_on(s) && fake_random() % ++n == 0)
            found = s;
    return found;
}

/* What a stream waits for, and what that waits for. */
static FakeStream *needed(FakeStream *s)
{
    while (!can_go_on(s))
        s = s->first->on;
    return s;
}

static FakeStream *next_for(FakeStream *s)
{
    switch (fake_settings()->order) {
    case ORDER_LATE: return needed(s);
    case ORDER_SHUFFLED: return any();
    default: return oldest();
    }
}

static void begin_running(void)
{
    running = true;
    fake_memory_open();
}

static void end_running(void)
{
    running = false;
    if (!fake_memory_close() && !lost) {
        fake_mistake("something wrote beside an allocation");
        lost = E_ADDRESS;
    }
    if (lost)
        drop_all();
}

int fake_wait(FakeStream *s, uint64_t place)
{
    if (fake_reached(s, place) || lost)
        return lost;
    begin_running();
    while (!fake_reached(s, place) && !lost)
        step(next_for(s));
    end_running();
    return lost;
}

int fake_wait_stream(FakeStream *s) { return fake_wait(s, s->issued); }

int fake_wait_all(void)
{
    for (FakeStream *s = streams; s && !lost; s = s->next)
        fake_wait_stream(s);
    return lost;
}

void fake_poll(FakeStream *s, uint64_t place)
{
    if (fake_reached(s, place) || lost)
        return;
    begin_running();
    step(next_for(s));
    end_running();
}

void fake_progress(void)
{
    FakeOrder order = fake_settings()->order;
    bool eager = order == ORDER_EAGER;
    if (lost || (!eager && (order != ORDER_SHUFFLED || fake_random() % 4)))
        return;
    unsigned steps = eager ? ~0u : (unsigned)(fake_random() % 8);
    FakeStream *s = eager ? oldest() : any();
    if (!s || !steps)
        return;
    begin_running();
    for (; s && steps && !lost; steps--) {
        step(s);
        s = eager ? oldest() : any();
    }
    end_running();
}

void fake_push(FakeStream *s, FakeOp op)
{
    FakeOp *o = malloc(sizeof *o);
    op.place = ++s->issued;
    op.number = ++numbers;
    op.next = NULL;
    *o = op;
    if (s->last)
        s->last->next = o;
    else
        s->first = o;
    s->last = o;
}

bool fake_capturing(const FakeStream *s) { return s->capture != NULL; }

int fake_enqueue(FakeStream *s, FakeWork work)
{
    if (s->capture && s->capture->invalid) {
        work.drop(work.data);
        return fake_refuse(E_CAPTURE_INVALIDATED, "the capture is broken");
    }
    if (s->capture) {
        fake_capture_add(s, work);
        return E_OK;
    }
    fake_push(s, (FakeOp){.kind = OP_WORK, .work = work});
    fake_progress();
    return E_OK; /* what goes wrong meanwhile is said by a later call */
}
