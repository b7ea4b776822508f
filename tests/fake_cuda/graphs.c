/* graphs.c - graphs by capture: replayed they do what the calls did, and what cannot be captured is refused.
 *
 * When: quick, checked.
 */
#include "hand.h"

#include <pthread.h>

static const char text[] = "#define KERNEL(...) extern \"C\" __global__ void __launch_bounds__(__VA_ARGS__)\n"
                           "KERNEL(64) step(float *x, const float *by, int n)\n"
                           "{\n"
                           "    for (int i = threadIdx.x; i < n; i += 64)\n"
                           "        x[i] = x[i] * by[0] + 1;\n"
                           "}\n"
                           "KERNEL(64) add(float *to, const float *from, int n)\n"
                           "{\n"
                           "    for (int i = threadIdx.x; i < n; i += 64)\n"
                           "        to[i] += from[i];\n"
                           "}\n"
                           "KERNEL(64) fresh(float *to, const float *from, int n) { to[0] = from[0]; }\n";
enum { N = 100, STEPS = 3 };

static Handle step, add, stream, side, fork_event, join_event;
static uint64_t x, y, by;
static float *host;

static int launch(Handle f, uint64_t to, uint64_t from, Handle on)
{
    int n = N;
    void *each[] = {&to, &from, &n};
    return cu.cuLaunchKernel(f, 1, 1, 1, 64, 1, 1, 0, on, each, NULL);
}

/* Kernels are launched once: a graph cannot load their code. */
static void start(void)
{
    hand_start();
    step = hand_function(text, "step");
    GOOD(cu.cuModuleGetFunction(&add, hand_module, "add"));
    stream = hand_stream();
    side = hand_stream();
    fork_event = hand_event();
    join_event = hand_event();
    x = hand_memory(N * 4);
    y = hand_memory(N * 4);
    by = hand_memory(4);
    host = hand_pinned(1);
    GOOD(launch(step, x, by, stream));
    GOOD(launch(add, y, x, stream));
    GOOD(cu.cuMemsetD32Async(x, 0, N, stream));
    GOOD(cu.cuMemsetD32Async(y, 0, N, stream));
    GOOD(cu.cuStreamSynchronize(stream));
}

/* The factor goes up, x steps here, y steps twice beside it; then y is added to x. */
static void program(bool joined)
{
    GOOD(cu.cuMemcpyHtoDAsync_v2(by, host, 4, stream));
    GOOD(cu.cuEventRecord(fork_event, stream));
    GOOD(cu.cuStreamWaitEvent(side, fork_event, 0));
    GOOD(launch(step, y, by, side));
    GOOD(launch(step, y, by, side));
    GOOD(launch(step, x, by, stream));
    GOOD(cu.cuEventRecord(join_event, side));
    if (joined)
        GOOD(cu.cuStreamWaitEvent(stream, join_event, 0));
    GOOD(launch(add, x, y, stream));
}

static Handle captured(void)
{
    Handle graph, exec;
    int state;
    GOOD(cu.cuStreamBeginCapture_v2(stream, CAPTURE_GLOBAL));
    program(true);
    GOOD(cu.cuStreamIsCapturing(side, &state));
    EXPECT(state == CAPTURE_ACTIVE);
    GOOD(cu.cuStreamEndCapture(stream, &graph));
    GOOD(cu.cuStreamIsCapturing(side, &state));
    EXPECT(state == CAPTURE_NONE);
    GOOD(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    GOOD(cu.cuGraphDestroy(graph));
    return exec;
}

/* x after STEPS programs, of which `replayed` come from a graph, with another factor each time. */
static void values(bool replayed, float out[N])
{
    Handle exec = replayed ? captured() : NULL;
    for (int i = 0; i < STEPS; i++) {
        host[0] = (float)i + 0.3f;
        if (replayed)
            GOOD(cu.cuGraphLaunch(exec, stream));
        else
            program(true);
        GOOD(cu.cuStreamSynchronize(stream));
    }
    hand_read(x, out, N, stream);
    if (replayed)
        GOOD(cu.cuGraphExecDestroy(exec));
}

static void replay(void)
{
    float eager[N], graph[N];
    start();
    values(false, eager);
    GOOD(cu.cuMemsetD32Async(x, 0, N, stream));
    GOOD(cu.cuMemsetD32Async(y, 0, N, stream));
    values(true, graph);
    EXPECT(eager[0] > 10 && memcmp(eager, graph, sizeof graph) == 0);
    EXPECT(hand_logged("calls.log", "count cuGraphLaunch") == -1); /* not before the end */
}

/* Nothing runs while it is captured; one graph runs once at a time, in whatever streams. */
static void not_yet(void)
{
    float a[N];
    start();
    host[0] = 2;
    Handle exec = captured();
    hand_read(x, a, N, stream);
    EXPECT(a[0] == 0);
    GOOD(cu.cuGraphLaunch(exec, side));
    GOOD(cu.cuGraphLaunch(exec, stream));
    hand_read(x, a, N, stream);
    EXPECT(a[0] == (0 * 2 + 1 + 3) * 2 + 1 + 15);
}

/* Beside: `host` is read when the graph runs. */
static void scalar_early(void)
{
    float a[N];
    start();
    host[0] = 2;
    Handle exec = captured();
    GOOD(cu.cuGraphLaunch(exec, stream));
    host[0] = 100;
    hand_read(x, a, N, stream);
    EXPECT(a[0] != 1 + 3);
}

static void unjoined(void)
{
    Handle graph;
    start();
    GOOD(cu.cuStreamBeginCapture_v2(stream, CAPTURE_GLOBAL));
    program(false);
    GIVES(E_CAPTURE_UNJOINED, cu.cuStreamEndCapture(stream, &graph));
    EXPECT(graph == NULL);
}

/* A call that cannot be captured fails, and so does the capture from then on. */
static void breaks(int error, int (*call)(void), int mode)
{
    Handle graph;
    int state;
    GOOD(cu.cuStreamBeginCapture_v2(stream, mode));
    GOOD(launch(step, x, by, stream));
    GIVES(error, call());
    GOOD(cu.cuStreamIsCapturing(stream, &state));
    EXPECT(state == CAPTURE_INVALID);
    GIVES(E_CAPTURE_INVALIDATED, launch(step, x, by, stream));
    GIVES(E_CAPTURE_INVALIDATED, cu.cuStreamEndCapture(stream, &graph));
    GOOD(cu.cuStreamIsCapturing(stream, &state));
    EXPECT(state == CAPTURE_NONE);
    GOOD(launch(step, x, by, stream));
}

static uint64_t taken;
static Handle fresh;
static const void *cubin;
static int synchronise(void) { return cu.cuStreamSynchronize(stream); }
static int synchronise_all(void) { return cu.cuCtxSynchronize(); }
static int synchronise_other(void) { return cu.cuStreamSynchronize(side); }
static int query(void) { return cu.cuStreamQuery(stream); }
static int query_event(void) { return cu.cuEventQuery(fork_event); }
static int take(void) { return cu.cuMemAlloc_v2(&taken, 16); }
static int take_host(void) { return cu.cuMemHostAlloc(&(void *){NULL}, 16, 0); }
static int give(void) { return cu.cuMemFree_v2(x); }
static int load_module(void) { return cu.cuModuleLoadData(&(Handle){NULL}, cubin); }
static int unload_module(void) { return cu.cuModuleUnload(hand_module); }
static int first_launch(void) { return launch(fresh, x, by, stream); }
static int isolated(void) { return cu.cuStreamWaitEvent(stream, fork_event, 0); }
static int captured_event(void)
{
    GOOD(cu.cuEventRecord(join_event, stream));
    return cu.cuEventSynchronize(join_event);
}

static void refused(void)
{
    Handle graph;
    start();
    cubin = hand_cubin(text);
    GOOD(cu.cuModuleGetFunction(&fresh, hand_module, "fresh"));
    breaks(E_CAPTURE_UNSUPPORTED, synchronise, CAPTURE_GLOBAL);
    breaks(E_CAPTURE_UNSUPPORTED, synchronise, CAPTURE_RELAXED);
    breaks(E_CAPTURE_UNSUPPORTED, synchronise_all, CAPTURE_GLOBAL);
    breaks(E_CAPTURE_UNSUPPORTED, synchronise_other, CAPTURE_GLOBAL);
    breaks(E_CAPTURE_UNSUPPORTED, query, CAPTURE_THREAD);
    breaks(E_CAPTURE_UNSUPPORTED, query_event, CAPTURE_GLOBAL);
    breaks(E_CAPTURE_UNSUPPORTED, take, CAPTURE_GLOBAL);
    breaks(E_CAPTURE_UNSUPPORTED, take_host, CAPTURE_THREAD);
    breaks(E_CAPTURE_UNSUPPORTED, give, CAPTURE_THREAD);
    breaks(E_CAPTURE_UNSUPPORTED, load_module, CAPTURE_THREAD);
    breaks(E_CAPTURE_UNSUPPORTED, unload_module, CAPTURE_THREAD);
    breaks(E_CAPTURE_UNSUPPORTED, first_launch, CAPTURE_THREAD);
    breaks(E_CAPTURE_UNSUPPORTED, first_launch, CAPTURE_RELAXED);
    GOOD(first_launch());
    GOOD(cu.cuEventRecord(fork_event, side));
    breaks(E_CAPTURE_ISOLATION, isolated, CAPTURE_RELAXED);
    breaks(E_CAPTURED_EVENT, captured_event, CAPTURE_RELAXED);
    GIVES(E_VALUE, cu.cuStreamEndCapture(stream, &graph));
    GIVES(E_VALUE, cu.cuStreamBeginCapture_v2(stream, 3));
    GOOD(cu.cuStreamBeginCapture_v2(stream, CAPTURE_RELAXED));
    GOOD(take());
    GIVES(E_VALUE, cu.cuStreamBeginCapture_v2(stream, CAPTURE_GLOBAL));
    GIVES(E_CAPTURE_UNSUPPORTED, cu.cuStreamDestroy_v2(stream));
    GOOD(cu.cuStreamEndCapture(stream, &graph));
    GIVES(E_HANDLE, cu.cuGraphLaunch(graph, stream));
}

static void two_captures(void)
{
    Handle graph;
    start();
    GOOD(cu.cuStreamBeginCapture_v2(stream, CAPTURE_RELAXED));
    GOOD(cu.cuStreamBeginCapture_v2(side, CAPTURE_RELAXED));
    GOOD(cu.cuEventRecord(fork_event, stream));
    GIVES(E_CAPTURE_MERGE, cu.cuStreamWaitEvent(side, fork_event, 0));
    GIVES(E_CAPTURE_INVALIDATED, cu.cuStreamEndCapture(side, &graph));
    GOOD(cu.cuStreamEndCapture(stream, &graph));
}

static void another_stream(void)
{
    Handle graph;
    start();
    GOOD(cu.cuStreamBeginCapture_v2(stream, CAPTURE_RELAXED));
    GOOD(cu.cuEventRecord(fork_event, stream));
    GOOD(cu.cuStreamWaitEvent(side, fork_event, 0));
    GIVES(E_CAPTURE_UNMATCHED, cu.cuStreamEndCapture(side, &graph));
    GIVES(E_CAPTURE_INVALIDATED, cu.cuStreamEndCapture(stream, &graph));
}

/* ---- another thread ---- */

static Handle context;

/* What the other thread does, once without and once with the context. */
static void *elsewhere(void *call)
{
    int (*does)(void);
    memcpy(&does, &call, sizeof does);
    GIVES(E_CONTEXT, does());
    GOOD(cu.cuCtxSetCurrent(context));
    return (void *)(intptr_t)does();
}

static int in_thread(int (*call)(void))
{
    pthread_t thread;
    void *argument, *result;
    memcpy(&argument, &call, sizeof argument);
    EXPECT(pthread_create(&thread, NULL, elsewhere, argument) == 0);
    pthread_join(thread, &result);
    return (int)(intptr_t)result;
}

static int end(void)
{
    Handle graph;
    return cu.cuStreamEndCapture(stream, &graph);
}

static void threads(void)
{
    start();
    GOOD(cu.cuCtxGetCurrent(&context));
    GOOD(in_thread(take));
    GOOD(cu.cuStreamBeginCapture_v2(stream, CAPTURE_THREAD));
    GOOD(in_thread(take));
    GIVES(E_CAPTURE_THREAD, in_thread(end));
    GOOD(end());
    GOOD(cu.cuStreamBeginCapture_v2(stream, CAPTURE_RELAXED));
    GOOD(in_thread(end));
    GOOD(cu.cuStreamBeginCapture_v2(stream, CAPTURE_GLOBAL));
    GIVES(E_CAPTURE_UNSUPPORTED, in_thread(take));
    GIVES(E_CAPTURE_INVALIDATED, end());
}

/* Events of a graph have times when it has run, anew in each run. */
static void timed(void)
{
    Handle graph, exec, from, to, plain;
    float ms, again;
    start();
    GOOD(cu.cuEventCreate(&from, EVENT_DEFAULT));
    GOOD(cu.cuEventCreate(&to, EVENT_DEFAULT));
    GOOD(cu.cuEventCreate(&plain, EVENT_DEFAULT));
    GIVES(E_VALUE, cu.cuEventRecordWithFlags(from, stream, RECORD_EXTERNAL));
    GOOD(cu.cuStreamBeginCapture_v2(stream, CAPTURE_THREAD));
    GIVES(E_VALUE, cu.cuEventRecordWithFlags(from, stream, 4));
    GOOD(cu.cuEventRecordWithFlags(from, stream, RECORD_EXTERNAL));
    GOOD(launch(step, x, by, stream));
    GOOD(cu.cuEventRecord(plain, stream));
    GOOD(launch(step, x, by, stream));
    GOOD(cu.cuEventRecordWithFlags(to, stream, RECORD_EXTERNAL));
    GOOD(cu.cuStreamEndCapture(stream, &graph));
    GOOD(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    GIVES(E_HANDLE, cu.cuEventElapsedTime(&ms, from, to));
    GIVES(E_CAPTURED_EVENT, cu.cuEventElapsedTime(&ms, from, plain));
    for (int i = 0; i < 2; i++) {
        GOOD(cu.cuGraphLaunch(exec, stream));
        GIVES(E_NOT_READY, cu.cuEventElapsedTime(&ms, from, to));
        GOOD(cu.cuStreamSynchronize(stream));
        GOOD(cu.cuEventElapsedTime(&ms, from, to));
        EXPECT(ms > 0.009f && ms < 0.011f);
        EXPECT(!i || ms == again);
        again = ms;
    }
}

/* A kernel that goes wrong in a graph. */
static void lost(void)
{
    Handle graph, exec;
    start();
    GOOD(cu.cuStreamBeginCapture_v2(stream, CAPTURE_GLOBAL));
    GOOD(launch(step, 0, by, stream));
    GOOD(cu.cuStreamEndCapture(stream, &graph));
    GOOD(cu.cuGraphInstantiateWithFlags(&exec, graph, 0));
    GOOD(cu.cuGraphLaunch(exec, stream));
    GIVES(E_ADDRESS, cu.cuStreamSynchronize(stream));
    GIVES(E_ADDRESS, cu.cuGraphExecDestroy(exec));
}

static const Case cases[] = {
    {"replay_late", "FAKE_CUDA_ORDER=late", replay, 0},
    {"replay_eager", "FAKE_CUDA_ORDER=eager", replay, 0},
    {"replay_in_order", "FAKE_CUDA_ORDER=in-order", replay, 0},
    {"replay_shuffled_1", "FAKE_CUDA_ORDER=shuffled:1", replay, 0},
    {"replay_shuffled_2", "FAKE_CUDA_ORDER=shuffled:2", replay, 0},
    {"replay_shuffled_3", "FAKE_CUDA_ORDER=shuffled:3", replay, 0},
    {"not_yet", "FAKE_CUDA_ORDER=late", not_yet, 0},
    {"not_yet_shuffled", "FAKE_CUDA_ORDER=shuffled:7", not_yet, 0},
    {"scalar_early", "FAKE_CUDA_ORDER=late", scalar_early, 0},
    {"unjoined", "A=", unjoined, 0},
    {"refused", "A=", refused, 0},
    {"two_captures", "A=", two_captures, 0},
    {"another_stream", "A=", another_stream, 0},
    {"threads", "A=", threads, 0},
    {"timed", "FAKE_CUDA_ORDER=late", timed, 0},
    {"lost", "A=", lost, 0},
};

int main(int argc, char **argv) { return hand_run(argc, argv, cases, COUNT_OF(cases)); }
