/* kernels.c - kernels from text to numbers: the product's own prelude and reader of cubins, the fake compiler and
 * driver.
 *
 * Beside: what the compiler says of mistakes, and what a cubin of it says of itself.
 * When: quick, checked.
 */
#include "hand.h"

#include "compiler/print/emit.h"
#include "runtime/cuda/nvrtc.h"

#include <math.h>

/* Sums of rows by a warp each, through shared memory, and the rows in bf16: in the dialect of the compiler's kernels.
 */
static const char row_text[] = "KERNEL(128) rows(real *__restrict__ sum, bf16 *__restrict__ half, const real "
                               "*__restrict__ x, int64_t n, int64_t m)\n"
                               "{\n"
                               "    DYN_SMEM(bytes);\n"
                               "    real *const mine = (real *)bytes + threadIdx.x / 32 * 32;\n"
                               "    for (int64_t r = blockIdx.x * 4 + threadIdx.x / 32; r < n; r += gridDim.x * 4) {\n"
                               "        real t = 0;\n"
                               "        for (int64_t i = threadIdx.x % 32; i < m; i += 32) {\n"
                               "            t += x[r * m + i];\n"
                               "            half[r * m + i] = vwn_bf16(x[r * m + i]);\n"
                               "        }\n"
                               "        mine[threadIdx.x % 32] = t;\n"
                               "        __syncwarp();\n"
                               "        t = vwn_warp_sum(mine[31 - threadIdx.x % 32]);\n"
                               "        __syncwarp();\n"
                               "        if (threadIdx.x % 32 == 0)\n"
                               "            sum[r] = t;\n"
                               "    }\n"
                               "}\n";
enum { ROWS = 37, COLUMNS = 70 };

static CudaCode compiled(Ctx *ctx)
{
    static CudaCode code;
    char why[512];
    size_t length;
    Nvrtc n;
    const char *prelude = prelude_cuda(ctx->program, &length);
    CudaText text = {"rows", row_text, strlen(row_text), ""};
    CudaBuild b = {.arch = "sm_90a",
                   .prelude = prelude,
                   .prelude_length = length,
                   .kernel = &text,
                   .n = 1,
                   .jobs = 1,
                   .arena = ctx->program,
                   .code = &code};
    EXPECT(nvrtc_open(ctx, &n, why));
    if (nvrtc_build(&n, &b) != ST_OK)
        printf("    %s\n", b.why);
    EXPECT(code.cubin != NULL);
    EXPECT(code.facts.max_threads == 128 && code.facts.registers > 0 && code.facts.code > 0 && !code.facts.spill_loads);
    return code;
}

static float value(int i) { return (float)((i * 37) % 101) / 7 - 5; }

static void rows(void)
{
    Ctx *ctx = ctx_new(NULL);
    Handle module, function, stream;
    float x[ROWS * COLUMNS], sums[ROWS];
    uint16_t half[ROWS * COLUMNS];
    int64_t n = ROWS, m = COLUMNS;
    hand_start();
    CudaCode code = compiled(ctx);
    GOOD(cu.cuModuleLoadData(&module, code.cubin));
    GOOD(cu.cuModuleGetFunction(&function, module, "rows"));
    stream = hand_stream();
    for (int i = 0; i < ROWS * COLUMNS; i++)
        x[i] = value(i);
    uint64_t at = hand_memory(sizeof x), out = hand_memory(sizeof sums), out_half = hand_memory(sizeof half);
    void *each[] = {&out, &out_half, &at, &n, &m};
    GOOD(cu.cuMemcpyHtoDAsync_v2(at, x, sizeof x, stream));
    GOOD(cu.cuLaunchKernel(function, 3, 1, 1, 128, 1, 1, 512, stream, each, NULL));
    GOOD(cu.cuMemcpyDtoHAsync_v2(sums, out, sizeof sums, stream));
    GOOD(cu.cuMemcpyDtoHAsync_v2(half, out_half, sizeof half, stream));
    for (int r = 0; r < ROWS; r++) {
        double sum = 0;
        for (int i = 0; i < COLUMNS; i++) {
            uint32_t u; /* vwn_bf16() cuts what was rounded before */
            memcpy(&u, &x[r * COLUMNS + i], sizeof u);
            sum += (double)x[r * COLUMNS + i];
            EXPECT(half[r * COLUMNS + i] == u >> 16);
        }
        EXPECT(fabs((double)sums[r] - sum) < 1e-4);
    }
    ctx_free(ctx);
}

/* ---- what the compiler says ---- */

static int compile(const char *text, const char *option, char log[1000])
{
    Handle p;
    size_t size;
    GOOD(cu.nvrtcCreateProgram(&p, text, "kernels", 0, NULL, NULL));
    int error = cu.nvrtcCompileProgram(p, 1, &option);
    GOOD(cu.nvrtcGetProgramLogSize(p, &size));
    EXPECT(size <= 1000);
    GOOD(cu.nvrtcGetProgramLog(p, log));
    GIVES(error ? N_PROGRAM : 0, cu.nvrtcGetCUBIN(p, (char[1 << 19]){0}));
    GOOD(cu.nvrtcDestroyProgram(&p));
    EXPECT(p == NULL);
    return error;
}

static void mistakes(void)
{
    static const char good[] = "extern \"C\" __global__ void k(float *x) { x[0] = SIZE; }\n";
    char log[1000];
    size_t n;
    hand_open();
    GOOD(compile(good, "-DSIZE=3", log));
    EXPECT(!log[0]);
    GIVES(N_COMPILATION, compile(good, "--minimal", log));
    EXPECT(strstr(log, "kernels(1): error: identifier \"SIZE\" is undefined") != NULL);
    EXPECT(strstr(log, "1 error detected in the compilation of \"kernels\".") != NULL);
    GIVES(N_OPTION, compile(good, "--use_fast_maths", log));
    GIVES(N_OPTION, compile(good, "--gpu-architecture=sm_35", log));
    GIVES(N_OPTION, compile(good, "-DX=$(touch /tmp/x)", log));
    GIVES(N_PROGRAM, cu.nvrtcGetProgramLogSize(&n, &n));
}

static const Case cases[] = {
    {"rows", "A=", rows, 0},
    {"rows_descending", "FAKE_CUDA_BLOCKS=descending", rows, 0},
    {"rows_shuffled", "FAKE_CUDA_BLOCKS=shuffled;FAKE_CUDA_ORDER=shuffled:5", rows, 0},
    {"without_cache", "FAKE_CUDA_CACHE=", mistakes, 0},
    {"mistakes", "A=", mistakes, 0},
};

int main(int argc, char **argv) { return hand_run(argc, argv, cases, COUNT_OF(cases)); }
