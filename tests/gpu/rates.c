/* rates.c - what a GPU does at best, by its driver alone: copies of several sizes, graphs of nothing and of many small pieces.
 *
 *     rates [--most MIB] [--runs N]
 *
 * In:  a driver.     Out: lines of JSON: {copy_mib, best_ms, median_ms, gb_s (read and written)}, {graph_nodes, host_us (to launch
 *      it and wait), us_a_node (of the device, between two events)}. Status 4: there is no GPU.
 * The one idea: each number is the best and the middle one of repeated runs behind one that is not counted.
 */
#include "runtime/cuda/cuda_api.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { RUNS = 64, NO_GPU = 4 };

static CudaDriver driver;
static CudaApi api;
static CudaStream stream;
static CudaEvent from, to;
static int runs = 20;

static void must(int error, const char *what)
{
    char text[160];
    if (!error)
        return;
    cuda_error_text(&driver, error, text);
    fprintf(stderr, "%s: %s\n", what, text);
    exit(1);
}

static double now_us(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return 1e6 * (double)t.tv_sec + 1e-3 * (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    const double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void open_device(void)
{
    char why[512] = "";
    CudaContext context;
    int handle;
    if (!cuda_driver_open(&driver, why) || why[0] || !driver.devices || !cuda_api_open(&api, why) ||
        driver.device(&handle, 0)) {
        fprintf(stderr, "no rates: %s\n", why);
        exit(NO_GPU);
    }
    must(api.retain(&context, handle), "a context");
    must(api.set_current(context), "a context");
    must(api.new_stream(&stream, CUDA_STREAM_NON_BLOCKING), "a stream");
    must(api.new_event(&from, 0), "an event");
    must(api.new_event(&to, 0), "an event");
}

static double elapsed(void)
{
    float ms;
    must(api.wait_stream(stream), "waiting");
    must(api.elapsed(&ms, from, to), "a time");
    return (double)ms;
}

static void copies(uint64_t mib)
{
    const uint64_t bytes = mib << 20;
    CudaAddress a, b;
    double ms[RUNS + 1];
    must(api.take(&a, bytes), "memory");
    must(api.take(&b, bytes), "memory");
    must(api.fill(a, 0x5b, bytes, stream), "filling");
    for (int i = 0; i <= runs; i++) {
        must(api.record(from, stream), "an event");
        must(api.across(b, a, bytes, stream), "a copy");
        must(api.record(to, stream), "an event");
        ms[i] = elapsed();
    }
    must(api.give(a), "memory");
    must(api.give(b), "memory");
    qsort(ms + 1, (size_t)runs, sizeof *ms, by_size);
    printf("{\"copy_mib\":%llu,\"best_ms\":%.6g,\"median_ms\":%.6g,\"gb_s\":%.6g}\n", (unsigned long long)mib, ms[1],
           ms[1 + runs / 2], ms[1] > 0 ? 2e-6 * (double)bytes / ms[1] : 0);
    fflush(stdout);
}

/* Pieces that write four bytes, one behind the other. */
static void graphs(int nodes)
{
    CudaAddress memory;
    CudaRecord record;
    CudaGraph graph;
    double host[RUNS + 1], ms[RUNS + 1];
    must(api.take(&memory, 4096), "memory");
    must(api.begin_capture(stream, CUDA_CAPTURE_THREAD), "recording");
    for (int i = 0; i < nodes; i++)
        must(api.fill(memory, (unsigned char)i, 4, stream), "a piece");
    must(api.end_capture(stream, &record), "recording");
    must(api.make_graph(&graph, record, 0), "a graph");
    for (int i = 0; i <= runs; i++) {
        double start = now_us();
        must(api.launch_graph(graph, stream), "a graph");
        must(api.wait_stream(stream), "waiting");
        host[i] = now_us() - start;
        must(api.record(from, stream), "an event");
        must(api.launch_graph(graph, stream), "a graph");
        must(api.record(to, stream), "an event");
        ms[i] = elapsed();
    }
    must(api.end_graph(graph), "a graph");
    must(api.end_record(record), "a graph");
    must(api.give(memory), "memory");
    qsort(host + 1, (size_t)runs, sizeof *host, by_size);
    qsort(ms + 1, (size_t)runs, sizeof *ms, by_size);
    printf("{\"graph_nodes\":%d,\"host_us\":%.6g,\"us_a_node\":%.6g}\n", nodes, host[1 + runs / 2],
           nodes ? 1e3 * ms[1 + runs / 2] / nodes : 0);
    fflush(stdout);
}

int main(int argc, char **argv)
{
    uint64_t most = 1024;
    for (int i = 1; i + 1 < argc; i += 2) {
        if (!strcmp(argv[i], "--most"))
            most = strtoull(argv[i + 1], NULL, 10);
        else if (!strcmp(argv[i], "--runs"))
            runs = atoi(argv[i + 1]);
    }
    runs = runs < 1 ? 1 : runs > RUNS ? RUNS : runs;
    open_device();
    for (uint64_t mib = most < 8 ? most : 8; mib <= most; mib *= 2)
        copies(mib);
    graphs(0);
    graphs(1);
    graphs(200);
    must(api.end_event(from), "an event");
    must(api.end_event(to), "an event");
    must(api.end_stream(stream), "a stream");
    return 0;
}
