/* order.c - what a device promises of order, and what it does not: programs that rely on more get other numbers.
 *
 * Every case that shows a mistake has a twin without it.
 * When: quick, checked.
 */
#include "hand.h"

#define DIALECT "#define KERNEL(...) extern \"C\" __global__ void __launch_bounds__(__VA_ARGS__)\n"
static const char scale_text[] = DIALECT "KERNEL(64) scale(float *to, const float *from, const float *by, int n)\n"
                                         "{\n"
                                         "    for (int i = blockIdx.x * 64 + threadIdx.x; i < n; i += gridDim.x * 64)\n"
                                         "        to[i] = from[i] * by[0];\n"
                                         "}\n";
enum { N = 200 };

static void scale(Handle function, uint64_t to, uint64_t from, uint64_t by, Handle stream)
{
    int n = N;
    void *each[] = {&to, &from, &by, &n};
    GOOD(cu.cuLaunchKernel(function, 2, 1, 1, 64, 1, 1, 0, stream, each, NULL));
}

typedef struct Things {
    Handle function, stream, other, event;
    uint64_t x, y, by;
    float *host, *factor;
} Things;

static Things things(void)
{
    Things t;
    hand_start();
    t = (Things){.function = hand_function(scale_text, "scale"),
                 .stream = hand_stream(),
                 .other = hand_stream(),
                 .event = hand_event(),
                 .x = hand_memory(N * 4),
                 .y = hand_memory(N * 4),
                 .by = hand_memory(4),
                 .host = hand_pinned(N),
                 .factor = hand_pinned(1)};
    for (int i = 0; i < N; i++)
        t.host[i] = (float)i;
    t.factor[0] = 3;
    return t;
}

/* y is `by` times what x was to be. */
static bool right(const Things *t, float by)
{
    float y[N];
    hand_read(t->y, y, N, t->stream);
    for (int i = 0; i < N; i++)
        if (!(y[i] == by * (float)i))
            return false;
    return true;
}

/* A copy on one stream, its use on another. */
static bool two_streams(bool wait)
{
    Things t = things();
    GOOD(cu.cuMemcpyHtoDAsync_v2(t.by, t.factor, 4, t.stream));
    GOOD(cu.cuMemcpyHtoDAsync_v2(t.x, t.host, N * 4, t.other));
    GOOD(cu.cuEventRecord(t.event, t.other));
    if (wait)
        GOOD(cu.cuStreamWaitEvent(t.stream, t.event, 0));
    scale(t.function, t.y, t.x, t.by, t.stream);
    GOOD(cu.cuStreamSynchronize(t.stream));
    return right(&t, 3);
}

static void event_there(void) { EXPECT(two_streams(true)); }
static void event_missing(void) { EXPECT(!two_streams(false)); }

/* Pinned memory that is written again before the copy from it has run. */
static bool staging(bool wait)
{
    Things t = things();
    GOOD(cu.cuMemcpyHtoDAsync_v2(t.by, t.factor, 4, t.stream));
    GOOD(cu.cuMemcpyHtoDAsync_v2(t.x, t.host, N * 4, t.stream));
    GOOD(cu.cuEventRecord(t.event, t.stream));
    if (wait)
        GOOD(cu.cuEventSynchronize(t.event));
    for (int i = 0; i < N; i++)
        t.host[i] = -1;
    scale(t.function, t.y, t.x, t.by, t.stream);
    return right(&t, 3);
}

static void staging_kept(void) { EXPECT(staging(true)); }
static void staging_reused(void) { EXPECT(!staging(false)); }

/* A number that a kernel reads is another before the kernel runs. */
static bool scalar(bool wait)
{
    Things t = things();
    GOOD(cu.cuMemcpyHtoDAsync_v2(t.x, t.host, N * 4, t.stream));
    GOOD(cu.cuMemcpyHtoDAsync_v2(t.by, t.factor, 4, t.stream));
    if (wait)
        GOOD(cu.cuStreamSynchronize(t.stream));
    scale(t.function, t.y, t.x, t.by, t.stream);
    t.factor[0] = 7;
    return right(&t, 3);
}

static void scalar_kept(void) { EXPECT(scalar(true)); }
static void scalar_early(void) { EXPECT(!scalar(false)); }

/* Pageable memory is copied at the call. */
static void pageable(void)
{
    Things t = things();
    float x[N], by = 2;
    for (int i = 0; i < N; i++)
        x[i] = (float)i;
    GOOD(cu.cuMemcpyHtoDAsync_v2(t.x, x, N * 4, t.stream));
    GOOD(cu.cuMemcpyHtoDAsync_v2(t.by, &by, 4, t.stream));
    memset(x, 0, sizeof x);
    by = 0;
    scale(t.function, t.y, t.x, t.by, t.stream);
    EXPECT(right(&t, 2));
}

/* Arguments are copied at the call. */
static void arguments(void)
{
    Things t = things();
    int n = N;
    void *each[] = {&t.y, &t.x, &t.by, &n};
    uint64_t y = t.y;
    GOOD(cu.cuMemcpyHtoDAsync_v2(t.x, t.host, N * 4, t.stream));
    GOOD(cu.cuMemcpyHtoDAsync_v2(t.by, t.factor, 4, t.stream));
    GOOD(cu.cuLaunchKernel(t.function, 2, 1, 1, 64, 1, 1, 0, t.stream, each, NULL));
    n = 0;
    t.y = t.x = t.by = 0;
    t.y = y;
    EXPECT(right(&t, 3));
}

/* Fresh memory is no number. */
static void fresh(void)
{
    Things t = things();
    float y[N];
    hand_read(t.y, y, N, t.stream);
    for (int i = 0; i < N; i++)
        EXPECT(y[i] != y[i]);
}

/* Nothing has run before something waits; who asks again and again sees it done. */
static void late(void)
{
    Things t = things();
    GOOD(cu.cuMemcpyHtoDAsync_v2(t.x, t.host, N * 4, t.stream));
    GOOD(cu.cuMemcpyDtoHAsync_v2(t.factor, t.x + 8, 4, t.stream));
    EXPECT(t.factor[0] == 3);
    int asked = 0;
    while (cu.cuStreamQuery(t.stream) == E_NOT_READY)
        EXPECT(++asked < 100);
    EXPECT(asked == 2 && t.factor[0] == 2);
}

/* With events in the right places, every order gives the same. */
static void any_order(void) { EXPECT(two_streams(true)); }

/* ---- blocks ---- */

enum { BLOCKS = 40 };

/* Blocks write their numbers one after the other: in which order they came. */
static void blocks(float out[BLOCKS])
{
    static const char text[] = DIALECT "KERNEL(32) come(float *to, int *n)\n"
                                       "{\n"
                                       "    if (threadIdx.x == 0) to[n[0]++] = blockIdx.x;\n"
                                       "}\n";
    hand_start();
    Handle come = hand_function(text, "come"), stream = hand_stream();
    uint64_t to = hand_memory(BLOCKS * 4), n = hand_memory(4);
    void *each[] = {&to, &n};
    GOOD(cu.cuMemsetD8Async(n, 0, 4, stream));
    GOOD(cu.cuLaunchKernel(come, BLOCKS, 1, 1, 32, 1, 1, 0, stream, each, NULL));
    hand_read(to, out, BLOCKS, stream);
}

static void ascending(void)
{
    float at[BLOCKS];
    blocks(at);
    for (int i = 0; i < BLOCKS; i++)
        EXPECT(at[i] == (float)i);
}

static void descending(void)
{
    float at[BLOCKS];
    blocks(at);
    for (int i = 0; i < BLOCKS; i++)
        EXPECT(at[i] == (float)(BLOCKS - 1 - i));
}

/* Each once, in neither of these orders. */
static void shuffled(void)
{
    float at[BLOCKS];
    bool seen[BLOCKS] = {false};
    int in_order = 0;
    blocks(at);
    for (int i = 0; i < BLOCKS; i++) {
        EXPECT(!seen[(int)at[i]]);
        seen[(int)at[i]] = true;
        in_order += i && at[i] > at[i - 1];
    }
    EXPECT(in_order > BLOCKS / 8 && in_order < BLOCKS * 7 / 8);
}

static const Case cases[] = {
    {"event_there", "FAKE_CUDA_ORDER=late", event_there, 0},
    {"event_missing", "FAKE_CUDA_ORDER=late", event_missing, 0},
    {"staging_kept", "FAKE_CUDA_ORDER=late", staging_kept, 0},
    {"staging_reused", "FAKE_CUDA_ORDER=late", staging_reused, 0},
    {"scalar_kept", "FAKE_CUDA_ORDER=late", scalar_kept, 0},
    {"scalar_early", "FAKE_CUDA_ORDER=late", scalar_early, 0},
    {"pageable", "FAKE_CUDA_ORDER=late", pageable, 0},
    {"arguments", "FAKE_CUDA_ORDER=late", arguments, 0},
    {"fresh", "FAKE_CUDA_ORDER=late", fresh, 0},
    {"late", "FAKE_CUDA_ORDER=late", late, 0},
    {"eager", "FAKE_CUDA_ORDER=eager", any_order, 0},
    {"in_order", "FAKE_CUDA_ORDER=in-order", any_order, 0},
    {"shuffled_1", "FAKE_CUDA_ORDER=shuffled:1", any_order, 0},
    {"shuffled_2", "FAKE_CUDA_ORDER=shuffled:2", any_order, 0},
    {"shuffled_3", "FAKE_CUDA_ORDER=shuffled:3;FAKE_CUDA_BLOCKS=shuffled", any_order, 0},
    {"blocks_descending", "FAKE_CUDA_BLOCKS=descending", any_order, 0},
    {"ascending", "FAKE_CUDA_BLOCKS=ascending", ascending, 0},
    {"descending", "FAKE_CUDA_BLOCKS=descending", descending, 0},
    {"shuffled", "FAKE_CUDA_BLOCKS=shuffled", shuffled, 0},
};

int main(int argc, char **argv) { return hand_run(argc, argv, cases, COUNT_OF(cases)); }
