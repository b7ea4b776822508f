/* failures.c - any call fails on request; what is not given back is counted; the log says so.
 *
 * When: quick, checked.
 */
#include "hand.h"

/* ---- programs that run in a process of their own, before their log is read ---- */

static void tidy(bool leak)
{
    Handle stream, event, module, blas, layout;
    uint64_t at;
    void *host;
    hand_start();
    stream = hand_stream();
    event = hand_event();
    at = hand_memory(1000);
    host = hand_pinned(10);
    void *cubin = hand_cubin("extern \"C\" __global__ void nothing() { }\n");
    GOOD(cu.cuModuleLoadData(&module, cubin));
    free(cubin);
    GOOD(cu.cublasLtCreate(&blas));
    GOOD(cu.cublasLtMatrixLayoutCreate(&layout, R_32F, 4, 4, 4));
    if (leak)
        return;
    GOOD(cu.cublasLtMatrixLayoutDestroy(layout));
    GOOD(cu.cublasLtDestroy(blas));
    GOOD(cu.cuModuleUnload(module));
    GOOD(cu.cuMemFreeHost(host));
    GOOD(cu.cuMemFree_v2(at));
    GOOD(cu.cuEventDestroy_v2(event));
    GOOD(cu.cuStreamDestroy_v2(stream));
    GOOD(cu.cuDevicePrimaryCtxRelease_v2(0));
}

static void tidy_program(void) { tidy(false); }
static void untidy_program(void) { tidy(true); }

/* Frees also when everything fails: it counts as given back. */
static void lost_program(void)
{
    hand_start();
    uint64_t at = hand_memory(1000);
    Handle stream = hand_stream();
    GIVES(E_LAUNCH, cu.cuStreamSynchronize(stream));
    GIVES(E_LAUNCH, cu.cuMemFree_v2(at));
    GIVES(E_LAUNCH, cu.cuStreamDestroy_v2(stream));
    GOOD(cu.cuDevicePrimaryCtxRelease_v2(0));
}

static const char *const all_kinds[] = {"contexts", "allocations", "streams", "pinned",     "modules",
                                        "events",   "programs",    "blas",    "descriptors"};

static void leaked(const char *path, long wanted, size_t kinds)
{
    for (size_t i = 0; i < kinds; i++) {
        char line[64];
        snprintf(line, sizeof line, "leaked %s", all_kinds[i]);
        if (hand_logged(path, line) != (strcmp(all_kinds[i], "programs") ? wanted : 0)) {
            printf("    %s\n", line);
            EXPECT(!"as many as were left");
        }
        snprintf(line, sizeof line, "made %s", all_kinds[i]);
        EXPECT(hand_logged(path, line) == 1);
    }
}

static void tidy_log(void) { leaked("tidy.log", 0, COUNT_OF(all_kinds)); }
static void untidy_log(void) { leaked("untidy.log", 1, COUNT_OF(all_kinds)); }
static void lost_log(void)
{
    leaked("lost.log", 0, 3);
    EXPECT(hand_logged("lost.log", "count cuMemFree") == 1);
}

/* ---- one failure after the other ---- */

/* A program of eight calls; the one that fails is the one that was asked for. */
static int program(void)
{
    Handle context, stream;
    uint64_t at;
    int errors[8] = {cu.cuInit(0), cu.cuDevicePrimaryCtxRetain(&context, 0)};
    if (errors[0] || errors[1])
        return errors[0] ? 1 : 2;
    if (cu.cuCtxSetCurrent(context))
        return 3;
    if (cu.cuStreamCreate(&stream, 1))
        return 4;
    if (cu.cuMemAlloc_v2(&at, 16))
        return 5;
    if (cu.cuMemsetD8Async(at, 0, 16, stream))
        return 6;
    if (cu.cuStreamSynchronize(stream))
        return 7;
    return cu.cuMemFree_v2(at) ? 8 : 0;
}

static void each_call(void)
{
    hand_open();
    const char *asked = getenv("FAKE_CUDA_FAIL");
    EXPECT(program() == (int)strtol(asked, NULL, 10) % 9);
}

static void named_call(void)
{
    uint64_t at;
    hand_start();
    GOOD(cu.cuMemAlloc_v2(&at, 16));
    GOOD(cu.cuMemAlloc_v2(&at, 16));
    GIVES(E_MEMORY, cu.cuMemAlloc_v2(&at, 16));
    GOOD(cu.cuMemAlloc_v2(&at, 16));
}

static void with_code(void)
{
    uint64_t at;
    hand_start();
    GIVES(E_ECC, cu.cuMemAlloc_v2(&at, 16));
    GIVES(E_ECC, cu.cuCtxSynchronize());
}

/* What a call began fails: the next one that asks for the context says so, a library only that it failed. */
static void late_call(void)
{
    uint64_t at;
    Handle blas;
    hand_start();
    GOOD(cu.cuMemAlloc_v2(&at, 16));
    GIVES(B_EXECUTION, cu.cublasLtCreate(&blas));
    GIVES(E_LAUNCH, cu.cuMemFree_v2(at));
}

static void other_libraries(void)
{
    Handle program_handle, blas;
    hand_start();
    GIVES(B_ALLOC, cu.cublasLtCreate(&blas));
    GOOD(cu.cublasLtCreate(&blas));
    GOOD(cu.nvrtcCreateProgram(&program_handle, "", "x", 0, NULL, NULL));
    GIVES(N_COMPILATION, cu.nvrtcCompileProgram(program_handle, 0, NULL));
}

static const Case cases[] = {
    {"tidy", "FAKE_CUDA_LOG=tidy.log", tidy_program, 0},
    {"tidy_log", "A=", tidy_log, 0},
    {"untidy", "FAKE_CUDA_LOG=untidy.log", untidy_program, 0},
    {"untidy_log", "A=", untidy_log, 0},
    {"lost", "FAKE_CUDA_LOG=lost.log;FAKE_CUDA_FAIL=cuStreamSynchronize:1", lost_program, 0},
    {"lost_log", "A=", lost_log, 0},
    {"call_1", "FAKE_CUDA_FAIL=1", each_call, 0},
    {"call_2", "FAKE_CUDA_FAIL=2", each_call, 0},
    {"call_3", "FAKE_CUDA_FAIL=3", each_call, 0},
    {"call_4", "FAKE_CUDA_FAIL=4", each_call, 0},
    {"call_5", "FAKE_CUDA_FAIL=5", each_call, 0},
    {"call_6", "FAKE_CUDA_FAIL=6", each_call, 0},
    {"call_7", "FAKE_CUDA_FAIL=7", each_call, 0},
    {"call_8", "FAKE_CUDA_FAIL=8", each_call, 0},
    {"call_9", "FAKE_CUDA_FAIL=9", each_call, 0},
    {"named", "FAKE_CUDA_FAIL=cuMemAlloc:3", named_call, 0},
    {"code", "FAKE_CUDA_FAIL=cuMemAlloc:1=214", with_code, 0},
    {"late", "FAKE_CUDA_FAIL=cuMemAlloc:1>719", late_call, 0},
    {"late, which", "FAKE_CUDA_FAIL=cuMemAlloc:1>", each_call, 70},
    {"libraries", "FAKE_CUDA_FAIL=cublasLtCreate:1,nvrtcCompileProgram:1", other_libraries, 0},
    {"unreadable", "FAKE_CUDA_FAIL=cuMemAlloc:often", each_call, 70},
};

int main(int argc, char **argv) { return hand_run(argc, argv, cases, COUNT_OF(cases)); }
