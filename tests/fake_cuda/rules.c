/* rules.c - each rule of the driver is broken once, and gives the error that a driver gives.
 *
 * When: quick, checked.
 */
#include "hand.h"

static const char text[] =
    "#define KERNEL(...) extern \"C\" __global__ void __launch_bounds__(__VA_ARGS__)\n"
    "struct large { char bytes[4096]; };\n"
    "struct larger { char bytes[32756]; };\n"
    "struct largest { char bytes[32764]; };\n"
    "KERNEL(128) set(float *to, float x, int n)\n"
    "{\n"
    "    for (int i = blockIdx.x * blockDim.x + threadIdx.x; i < n; i += gridDim.x * blockDim.x)\n"
    "        to[i] = x;\n"
    "}\n"
    "KERNEL(128) much(large x) { ((float *)x.bytes)[0] = 1; }\n"
    "KERNEL(128) more(larger x, float *to) { to[0] = x.bytes[0]; }\n"
    "KERNEL(128) most(largest x) { ((float *)x.bytes)[0] = 1; }\n"
    "KERNEL(128) too_much(largest x, char y) { ((float *)x.bytes)[0] = y; }\n"
    "KERNEL(32) with_shared(float *to)\n"
    "{\n"
    "    DYN_SMEM(bytes);\n"
    "    ((float *)bytes)[threadIdx.x] = threadIdx.x;\n"
    "    __syncthreads();\n"
    "    to[threadIdx.x] = ((float *)bytes)[31 - threadIdx.x];\n"
    "}\n"
    "KERNEL(32) half_a_barrier(float *to)\n"
    "{\n"
    "    if (threadIdx.x < 16) __syncthreads();\n"
    "    to[threadIdx.x] = 1;\n"
    "}\n"
    "KERNEL(32) odd(float *to) { *emu::aligned((double *)(to + 1), 8) = 1; }\n";

static Handle function, stream;
static uint64_t memory;
enum { N = 1000 };
#if defined(__SANITIZE_ADDRESS__)
enum { STOPPED = 1 };
#else
enum { STOPPED = -SIGSEGV };
#endif

static int launch(Handle f, unsigned blocks, unsigned threads, unsigned shared, void **each)
{
    return cu.cuLaunchKernel(f, blocks, 1, 1, threads, 1, 1, shared, stream, each, NULL);
}

static int set(uint64_t to, int n)
{
    float x = 1;
    void *each[] = {&to, &x, &n};
    return launch(function, 4, 128, 0, each);
}

static void start(void)
{
    hand_start();
    function = hand_function(text, "set");
    stream = hand_stream();
    memory = hand_memory(N * 4);
}

static Handle named(const char *name)
{
    Handle f;
    GOOD(cu.cuModuleGetFunction(&f, hand_module, name));
    return f;
}

/* ---- without a context, devices that there are not ---- */

static void context(void)
{
    uint64_t at;
    Handle c, now;
    int n, device;
    hand_open();
    GIVES(E_NOT_INITIALIZED, cu.cuDeviceGetCount(&n));
    GOOD(cu.cuInit(0));
    GIVES(E_CONTEXT, cu.cuMemAlloc_v2(&at, 16));
    GIVES(E_DEVICE, cu.cuDeviceGet(&device, 7));
    GIVES(E_DEVICE, cu.cuDevicePrimaryCtxRetain(&c, 1));
    GOOD(cu.cuDevicePrimaryCtxRetain(&c, 0));
    GIVES(E_CONTEXT, cu.cuMemAlloc_v2(&at, 16));
    GIVES(E_CONTEXT, cu.cuCtxSetCurrent(&at));
    GOOD(cu.cuCtxSetCurrent(c));
    GOOD(cu.cuCtxGetCurrent(&now));
    EXPECT(now == c);
    GOOD(cu.cuMemAlloc_v2(&at, 16));
    GOOD(cu.cuDevicePrimaryCtxRelease_v2(0));
    GIVES(E_DESTROYED, cu.cuMemFree_v2(at));
    GIVES(E_CONTEXT, cu.cuDevicePrimaryCtxRelease_v2(0));
}

static void facts(void)
{
    int n, x;
    size_t bytes, left;
    hand_start();
    GOOD(cu.cuDriverGetVersion(&x));
    EXPECT(x == 12080);
    GOOD(cu.cuDeviceGetCount(&n));
    EXPECT(n == 2);
    GOOD(cu.cuDeviceTotalMem_v2(&bytes, 1));
    EXPECT(bytes == (size_t)4096 << 20);
    GOOD(cu.cuDeviceGetAttribute(&x, D_SMS, 0));
    EXPECT(x == 108);
    GOOD(cu.cuDeviceGetAttribute(&x, D_SHARED_OPT_IN, 0));
    EXPECT(x == 163 << 10);
    GOOD(cu.cuMemGetInfo_v2(&left, &bytes));
    EXPECT(left < (size_t)1096 << 20 && left > (size_t)700 << 20);
    GIVES(E_VALUE, cu.cuDeviceGetAttribute(&x, 9999, 0));
}

static void no_device(void)
{
    hand_open();
    GIVES(E_NO_DEVICE, cu.cuInit(0));
}

/* ---- memory ---- */

static void memory_calls(void)
{
    uint64_t at;
    void *host;
    float x[4] = {1, 2, 3, 4};
    start();
    GIVES(E_VALUE, cu.cuMemAlloc_v2(&at, 0));
    GIVES(E_VALUE, cu.cuMemAlloc_v2(NULL, 16));
    GIVES(E_MEMORY, cu.cuMemAlloc_v2(&at, (size_t)80001 << 20));
    GIVES(E_VALUE, cu.cuMemFree_v2(memory + 4));
    GIVES(E_VALUE, cu.cuMemFreeHost(x));
    GIVES(E_VALUE, cu.cuMemHostAlloc(&host, 0, 0));
    GIVES(E_VALUE, cu.cuMemcpyHtoDAsync_v2(memory + N * 4 - 8, x, 16, stream));
    GIVES(E_VALUE, cu.cuMemcpyHtoDAsync_v2((uintptr_t)x, x, 16, stream));
    GIVES(E_VALUE, cu.cuMemcpyDtoHAsync_v2((void *)(uintptr_t)memory, memory, 16, stream));
    GIVES(E_VALUE, cu.cuMemcpyDtoDAsync_v2(memory, (uintptr_t)x, 16, stream));
    GIVES(E_VALUE, cu.cuMemsetD8Async(memory, 0, N * 4 + 1, stream));
    GIVES(E_VALUE, cu.cuMemsetD32Async(memory + 2, 0, 1, stream));
    EXPECT(memory % 256 == 0);
    GOOD(cu.cuMemFree_v2(memory));
    GIVES(E_VALUE, cu.cuMemFree_v2(memory));
    GIVES(E_VALUE, cu.cuMemcpyHtoDAsync_v2(memory, x, 16, stream));
    GOOD(cu.cuMemFree_v2(0));
}

static void out_of_memory(void)
{
    uint64_t a, b;
    size_t before, after, all;
    hand_start();
    GOOD(cu.cuMemGetInfo_v2(&before, &all));
    GOOD(cu.cuMemAlloc_v2(&a, before - ((size_t)4 << 20)));
    GIVES(E_MEMORY, cu.cuMemAlloc_v2(&b, (size_t)6 << 20));
    GOOD(cu.cuMemFree_v2(a));
    GOOD(cu.cuMemGetInfo_v2(&after, &all));
    EXPECT(before == after);
    GOOD(cu.cuMemAlloc_v2(&b, (size_t)6 << 20));
}

/* What a context leaves goes with it. */
static void memory_of_a_context(void)
{
    Handle context;
    uint64_t a;
    size_t left, all;
    hand_start();
    GOOD(cu.cuMemGetInfo_v2(&left, &all));
    GOOD(cu.cuMemAlloc_v2(&a, left - ((size_t)4 << 20)));
    GOOD(cu.cuDevicePrimaryCtxRelease_v2(0));
    GOOD(cu.cuDevicePrimaryCtxRetain(&context, 0));
    GOOD(cu.cuCtxSetCurrent(context));
    GOOD(cu.cuMemAlloc_v2(&a, left - ((size_t)4 << 20)));
}

static void rows(void)
{
    float from[12], to[2][3] = {{0}};
    start();
    for (int i = 0; i < 12; i++)
        from[i] = (float)i;
    GOOD(cu.cuMemcpyHtoDAsync_v2(memory, from, sizeof from, stream));
    FakeCopy2D c = {.from_x = 4,
                    .from_y = 1,
                    .from_kind = MEMORY_DEVICE,
                    .from_device = memory,
                    .from_pitch = 16,
                    .to_kind = MEMORY_HOST,
                    .to_host = to,
                    .to_pitch = 12,
                    .width = 8,
                    .height = 2};
    GOOD(cu.cuMemcpy2DAsync_v2(&c, stream));
    EXPECT(to[0][0] == 5 && to[0][1] == 6 && to[0][2] == 0 && to[1][0] == 9 && to[1][1] == 10);
    c.from_pitch = 11;
    GIVES(E_VALUE, cu.cuMemcpy2DAsync_v2(&c, stream));
    c.from_pitch = 16;
    c.height = N;
    GIVES(E_VALUE, cu.cuMemcpy2DAsync_v2(&c, stream));
    GIVES(E_VALUE, cu.cuMemcpy2DAsync_v2(NULL, stream));
}

/* The host that looks into the device's memory is stopped. */
static void host_looks(void)
{
    start();
    printf("    %g\n", (double)*(volatile float *)(uintptr_t)memory);
}

/* ---- handles ---- */

static void handles(void)
{
    Handle event, other, f;
    int x = 0;
    start();
    event = hand_event();
    other = hand_stream();
    GIVES(E_HANDLE, cu.cuStreamSynchronize(event));
    GIVES(E_HANDLE, cu.cuEventRecord(stream, stream));
    GIVES(E_HANDLE, cu.cuModuleUnload(&x));
    GIVES(E_HANDLE, launch(hand_module, 1, 32, 0, NULL));
    GIVES(E_NOT_FOUND, cu.cuModuleGetFunction(&f, hand_module, "nothing"));
    GIVES(E_IMAGE,
          cu.cuModuleLoadData(&f, "this is no cubin, and long enough for a header of ELF, as everyone can see"));
    GOOD(cu.cuStreamDestroy_v2(other));
    GIVES(E_HANDLE, cu.cuStreamDestroy_v2(other));
    GIVES(E_HANDLE, cu.cuStreamSynchronize(other));
    GOOD(cu.cuEventDestroy_v2(event));
    GIVES(E_HANDLE, cu.cuEventRecord(event, stream));
    GOOD(cu.cuModuleUnload(hand_module));
    GIVES(E_HANDLE, cu.cuModuleUnload(hand_module));
    GIVES(E_HANDLE, set(memory, N));
}

static void legacy_stream(void)
{
    float x = 0;
    start();
    GIVES(E_HANDLE, cu.cuMemcpyHtoDAsync_v2(memory, &x, 4, NULL));
    GIVES(E_HANDLE, cu.cuStreamSynchronize((Handle)(uintptr_t)1));
    GIVES(E_HANDLE, cu.cuStreamSynchronize((Handle)(uintptr_t)2));
}

static void another_arch(void)
{
    Handle m;
    hand_start();
    GIVES(E_NO_BINARY, cu.cuModuleLoadData(&m, hand_cubin(text)));
}

static void old_driver(void)
{
    Handle m;
    hand_start();
    GIVES(E_IMAGE, cu.cuModuleLoadData(&m, hand_cubin(text)));
}

static void old_compiler(void)
{
    Handle p;
    const char *option = "--gpu-architecture=sm_100";
    hand_start();
    hand_function(text, "set");
    GOOD(cu.nvrtcCreateProgram(&p, text, "old", 0, NULL, NULL));
    GIVES(N_OPTION, cu.nvrtcCompileProgram(p, 1, &option));
}

static void events(void)
{
    Handle a, b, e;
    float ms;
    start();
    e = hand_event();
    GOOD(cu.cuEventQuery(e));
    GOOD(cu.cuEventSynchronize(e));
    GOOD(cu.cuStreamWaitEvent(stream, e, 0));
    GIVES(E_VALUE, cu.cuStreamWaitEvent(stream, e, 5));
    GOOD(cu.cuEventCreate(&a, EVENT_DEFAULT));
    GOOD(cu.cuEventCreate(&b, EVENT_DEFAULT));
    GIVES(E_HANDLE, cu.cuEventElapsedTime(&ms, a, b));
    GOOD(cu.cuEventRecord(a, stream));
    GOOD(set(memory, N));
    GOOD(set(memory, N));
    GOOD(cu.cuEventRecord(b, stream));
    GOOD(cu.cuEventRecord(e, stream));
    GIVES(E_NOT_READY, cu.cuEventElapsedTime(&ms, a, b));
    GOOD(cu.cuEventSynchronize(b));
    GOOD(cu.cuEventElapsedTime(&ms, a, b));
    EXPECT(ms > 0.009f && ms < 0.011f);
    GIVES(E_HANDLE, cu.cuEventElapsedTime(&ms, a, e));
    GIVES(E_NOT_READY, cu.cuEventQuery(e));
    GOOD(cu.cuEventQuery(e));
}

/* ---- launches ---- */

static void shapes(void)
{
    int n = N;
    float x = 1;
    start();
    void *each[] = {&memory, &x, &n}, *missing[] = {&memory, NULL, &n};
    GIVES(E_VALUE, launch(function, 0, 128, 0, each));
    GIVES(E_VALUE, launch(function, (unsigned)INT32_MAX + 1, 128, 0, each));
    GIVES(E_VALUE, launch(function, 1, 0, 0, each));
    GIVES(E_VALUE, launch(function, 1, 1025, 0, each));
    GIVES(E_RESOURCES, launch(function, 1, 129, 0, each));
    GIVES(E_VALUE, cu.cuLaunchKernel(function, 1, 65536, 1, 32, 1, 1, 0, stream, each, NULL));
    GIVES(E_VALUE, cu.cuLaunchKernel(function, 1, 1, 1, 32, 64, 1, 0, stream, each, NULL));
    GIVES(E_VALUE, cu.cuLaunchKernel(function, 1, 1, 1, 1, 1, 65, 0, stream, each, NULL));
    GIVES(E_NOT_SUPPORTED, cu.cuLaunchKernel(function, 1, 2, 1, 32, 1, 1, 0, stream, each, NULL));
    GIVES(E_VALUE, launch(function, 1, 128, 0, NULL));
    GIVES(E_VALUE, launch(function, 1, 128, 0, missing));
    GIVES(E_HANDLE, cu.cuLaunchKernel(function, 1, 1, 1, 32, 1, 1, 0, NULL, each, NULL));
}

/* 32,764 bytes of arguments, 4,096 with a driver for CUDA 12.0. */
static void arguments(void)
{
    static char bytes[32764];
    void *each[] = {bytes, &memory};
    start();
    GOOD(launch(named("much"), 1, 128, 0, each));
    GOOD(launch(named("most"), 1, 128, 0, each));
    GIVES(E_VALUE, launch(named("more"), 1, 128, 0, each)); /* 32,756, 4 that no one has, 8 */
    GIVES(E_VALUE, launch(named("too_much"), 1, 128, 0, each));
}

static void old_arguments(void)
{
    static char bytes[32764];
    void *each[] = {bytes};
    start();
    GOOD(launch(named("much"), 1, 128, 0, each));
    GIVES(E_VALUE, launch(named("most"), 1, 128, 0, each));
}

static void shared(void)
{
    int x;
    float y[32];
    start();
    Handle f = named("with_shared");
    void *each[] = {&memory};
    GOOD(launch(f, 1, 32, 48 << 10, each));
    GIVES(E_VALUE, launch(f, 1, 32, (48 << 10) + 4, each));
    GIVES(E_VALUE, cu.cuFuncSetAttribute(f, F_DYNAMIC, (227 << 10) + 1));
    GIVES(E_VALUE, cu.cuFuncSetAttribute(f, F_THREADS, 64));
    GOOD(cu.cuFuncSetAttribute(f, F_DYNAMIC, 227 << 10));
    GOOD(cu.cuFuncGetAttribute(&x, F_DYNAMIC, f));
    EXPECT(x == 227 << 10);
    GOOD(launch(f, 1, 32, 227 << 10, each));
    hand_read(memory, y, 32, stream);
    EXPECT(y[0] == 31 && y[31] == 0);
    GOOD(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&x, f, 128, 100 << 10));
    EXPECT(x == 2);
    GOOD(cu.cuOccupancyMaxActiveBlocksPerMultiprocessor(&x, f, 1024, 0));
    EXPECT(x == 1);
}

/* Arguments in one buffer. */
static void buffer(void)
{
    struct {
        uint64_t to;
        float x;
        int n;
    } all;
    float y[N];
    size_t size = sizeof all, small = 12;
    start();
    all.to = memory;
    all.x = 5;
    all.n = N;
    void *extra[] = {FAKE_EXTRA_BUFFER, &all, FAKE_EXTRA_SIZE, &size, FAKE_EXTRA_END};
    void *cut[] = {FAKE_EXTRA_BUFFER, &all, FAKE_EXTRA_SIZE, &small, FAKE_EXTRA_END};
    GOOD(cu.cuLaunchKernel(function, 2, 1, 1, 64, 1, 1, 0, stream, NULL, extra));
    GIVES(E_VALUE, cu.cuLaunchKernel(function, 2, 1, 1, 64, 1, 1, 0, stream, NULL, cut));
    hand_read(memory, y, N, stream);
    EXPECT(y[0] == 5 && y[N - 1] == 5);
}

/* ---- what a context is lost by ---- */

static void lost_with(int error)
{
    uint64_t at;
    const char *words;
    GIVES(error, cu.cuStreamSynchronize(stream));
    GIVES(error, cu.cuStreamSynchronize(stream));
    GIVES(error, cu.cuMemAlloc_v2(&at, 16));
    GIVES(error, set(memory, 1));
    GIVES(error, cu.cuMemFree_v2(memory));
    GOOD(cu.cuGetErrorString(error, &words));
    GOOD(cu.cuDevicePrimaryCtxRelease_v2(0));
}

static void lost_outside(void)
{
    start();
    GOOD(set(memory, N + 64));
    lost_with(E_ADDRESS);
}

static void lost_beside(void)
{
    start();
    GOOD(set(memory, N + 2)); /* inside its pages, behind its end */
    lost_with(E_ADDRESS);
}

static void lost_freed(void)
{
    start();
    uint64_t gone = hand_memory(64);
    GOOD(set(gone, 16));
    GOOD(cu.cuMemFree_v2(gone));
    lost_with(E_ADDRESS);
}

static void lost_nowhere(void)
{
    start();
    GOOD(set(0, 1));
    lost_with(E_ADDRESS);
}

static void lost_host(void)
{
    static float host[N];
    start();
    GOOD(set((uintptr_t)host, N));
    GIVES(E_ADDRESS, cu.cuStreamSynchronize(stream));
    EXPECT(host[0] == 0);
    lost_with(E_ADDRESS);
}

static void lost_module(void)
{
    start();
    GOOD(set(memory, N));
    GOOD(cu.cuModuleUnload(hand_module));
    GIVES(E_ADDRESS, cu.cuStreamSynchronize(stream));
}

static void lost_barrier(void)
{
    start();
    void *each[] = {&memory};
    GOOD(launch(named("half_a_barrier"), 1, 32, 0, each));
    lost_with(E_LAUNCH);
}

static void lost_odd(void)
{
    start();
    void *each[] = {&memory};
    GOOD(launch(named("odd"), 1, 32, 0, each));
    lost_with(E_MISALIGNED);
}

/* "To continue using CUDA, the process must be terminated and relaunched" (cuda.h): a new context is of no use. */
static void lost_for_good(void)
{
    Handle context;
    uint64_t at;
    lost_outside();
    GOOD(cu.cuDevicePrimaryCtxRetain(&context, 0));
    GOOD(cu.cuCtxSetCurrent(context));
    GIVES(E_ADDRESS, cu.cuMemAlloc_v2(&at, 16));
}

/* ---- tensor maps ---- */

typedef struct MapWish {
    int type;
    unsigned rank, box[5], step[5];
    uint64_t memory, extent[5], stride[4];
    int interleave, turned, l2, beyond;
} MapWish;

static int made_of(void *out, const MapWish *w)
{
    return cu.cuTensorMapEncodeTiled(out, w->type, w->rank, w->memory, w->extent, w->stride, w->box, w->step,
                                     w->interleave, w->turned, w->l2, w->beyond);
}

static void maps(void)
{
    _Alignas(64) char out[192];
    start();
    const MapWish good = {MAP_BFLOAT16,
                          4,
                          {64, 1, 128, 1, 1},
                          {1, 1, 1, 1, 1},
                          memory,
                          {56, 3, 40, 2, 1},
                          {112, 336, 13440, 26880},
                          MAP_PLAIN,
                          MAP_TURNED_128,
                          MAP_L2_128,
                          MAP_ZEROS};
    GOOD(made_of(out, &good));
    GIVES(E_VALUE, made_of(out + 32, &good));
    GIVES(E_VALUE, made_of(NULL, &good));
#define BROKEN(...)                                                                                                    \
    do {                                                                                                               \
        MapWish w = good;                                                                                              \
        __VA_ARGS__;                                                                                                   \
        GIVES(E_VALUE, made_of(out, &w));                                                                              \
    } while (0)
    BROKEN(w.type = -1);
    BROKEN(w.type = MAP_TYPES + 1);
    BROKEN(w.rank = 0);
    BROKEN(w.rank = 6);
    BROKEN(w.rank = 2, w.interleave = MAP_BY_32, w.turned = MAP_TURNED_32);
    BROKEN(w.memory += 8);
    BROKEN(w.memory += 16, w.interleave = MAP_BY_32, w.turned = MAP_TURNED_32, w.stride[0] = 128, w.stride[1] = 384);
    BROKEN(w.extent[2] = 0);
    BROKEN(w.extent[3] = (1ull << 32) + 1);
    BROKEN(w.stride[0] = 120);
    BROKEN(w.stride[2] = 1ull << 40);
    BROKEN(w.stride[0] = 96); /* rows over one another */
    BROKEN(w.stride[1] = 0);
    BROKEN(w.box[2] = 0);
    BROKEN(w.box[2] = 257);
    BROKEN(w.box[0] = 60);
    BROKEN(w.box[0] = 72); /* 144 bytes, of which 128 are turned */
    BROKEN(w.step[1] = 0);
    BROKEN(w.step[1] = 9);
    BROKEN(w.interleave = MAP_BY_32);
    BROKEN(w.interleave = 3);
    BROKEN(w.turned = 7);
    BROKEN(w.l2 = 4);
    BROKEN(w.type = MAP_INT32, w.box[0] = 32, w.stride[0] = 224, w.stride[1] = 672, w.beyond = MAP_NAN);
    MapWish more = good;
    more.extent[1] = 1ull << 32;
    more.stride[1] = 1ull << 39;
    more.stride[2] = 1ull << 39;
    more.box[2] = 256;
    GOOD(made_of(out, &more));
}

static void no_maps(void)
{
    _Alignas(64) char out[128];
    hand_start();
    memory = hand_memory(128);
    const MapWish w = {MAP_FLOAT16, 1, {64}, {1}, memory, {64}, {0}, MAP_PLAIN, MAP_TURNED_128, MAP_L2_128, MAP_ZEROS};
    GIVES(E_NOT_SUPPORTED, made_of(out, &w));
}

static const Case cases[] = {
    {"maps", "A=", maps, 0},
    {"no_maps", "FAKE_CUDA_DEVICE=capability=80", no_maps, 0},
    {"context", "A=", context, 0},
    {"facts", "FAKE_CUDA_DEVICE=memory=4096 taken=3000 sms=108 capability=80 driver=12080 devices=2", facts, 0},
    {"no_device", "FAKE_CUDA_DEVICE=devices=0", no_device, 0},
    {"unreadable", "FAKE_CUDA_DEVICE=memory=much", no_device, 70},
    {"memory", "A=", memory_calls, 0},
    {"out_of_memory", "FAKE_CUDA_DEVICE=memory=400", out_of_memory, 0},
    {"memory_of_a_context", "FAKE_CUDA_DEVICE=memory=400", memory_of_a_context, 0},
    {"rows", "A=", rows, 0},
    {"host_looks", "A=", host_looks, STOPPED},
    {"handles", "A=", handles, 0},
    {"legacy_stream", "A=", legacy_stream, 0},
    {"another_arch", "FAKE_CUDA_DEVICE=capability=100", another_arch, 0},
    {"old_driver", "FAKE_CUDA_DEVICE=driver=12090", old_driver, 0},
    {"old_compiler", "FAKE_CUDA_DEVICE=driver=12090 compiler=12040", old_compiler, 0},
    {"events", "A=", events, 0},
    {"shapes", "A=", shapes, 0},
    {"arguments", "A=", arguments, 0},
    {"old_arguments", "FAKE_CUDA_DEVICE=driver=12000 compiler=12000", old_arguments, 0},
    {"shared", "A=", shared, 0},
    {"buffer", "A=", buffer, 0},
    {"lost_outside", "A=", lost_outside, 0},
    {"lost_beside", "A=", lost_beside, 0},
    {"lost_freed", "A=", lost_freed, 0},
    {"lost_nowhere", "A=", lost_nowhere, 0},
    {"lost_host", "A=", lost_host, 0},
    {"lost_module", "A=", lost_module, 0},
    {"lost_barrier", "A=", lost_barrier, 0},
    {"lost_odd", "A=", lost_odd, 0},
    {"lost_for_good", "A=", lost_for_good, 0},
};

int main(int argc, char **argv) { return hand_run(argc, argv, cases, COUNT_OF(cases)); }
