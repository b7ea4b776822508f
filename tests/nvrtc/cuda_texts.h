/* cuda_texts.h - what the tests of this folder share: the compiler or the reason to skip, and
 * small kernels as text.
 */
#ifndef VWN_TEST_CUDA_TEXTS_H
#define VWN_TEST_CUDA_TEXTS_H

#include "runtime/cuda/nvrtc.h"
#include "support/harness.h"

enum { SKIPPED = 77 };
static const char *const ARCHS[] = {"sm_80", "sm_90a", "sm_100"};
enum { ARCH_COUNT = 3 };

/* Opens the compiler; where there is none says why, and the program ends with SKIPPED. */
static inline bool open_or_skip(Ctx *ctx, Nvrtc *n)
{
    char why[512];
    if (nvrtc_open(ctx, n, why))
        return true;
    printf("skipped: %s\n", why);
    return false;
}

#define CUDA_PRELUDE "typedef float real;\n#define TWICE(x) ((x) + (x))\nstruct four {\n    real x, y, z, w;\n};\n"
#define CUDA_TWICE(name, constant)                                                                                     \
    "/* twice: x = x + x */\n"                                                                                         \
    "extern \"C\" __global__ void __launch_bounds__(128) " name "(real *x, int n)\n{\n"                                \
    "    int i = blockIdx.x * 128 + threadIdx.x;\n"                                                                    \
    "    if (i < n)\n        x[i] = TWICE(x[i]) + " constant ";\n}\n"
/* 300 numbers in shared memory. */
#define CUDA_SHARED                                                                                                    \
    "extern \"C\" __global__ void __launch_bounds__(256) k_shared(real *x, int n)\n{\n"                                \
    "    __shared__ real s[300];\n    int i = threadIdx.x;\n    s[i] = x[i];\n"                                        \
    "    __syncthreads();\n    x[i] = s[(i * 7 + n) % 256];\n}\n"
/* More live values than 1,024 threads have registers, or as many in several blocks. */
#define CUDA_SPILL              CUDA_MANY("k_spill", "1024")
#define CUDA_MANY(name, bounds) CUDA_VALUES(name, bounds, "40", "168")
/* So many fours, and values of a thread for the fake compiler. */
#define CUDA_VALUES(name, bounds, n, values)                                                                           \
    "/* a thread has " values " values, 0 bytes of arrays */\n"                                                        \
    "extern \"C\" __global__ void __launch_bounds__(" bounds ")\n" name                                                \
    "(const four *x, real *y, int n)\n{\n    four a[" n "];\n    #pragma unroll\n"                                     \
    "    for (int i = 0; i < " n "; i++)\n        a[i] = x[threadIdx.x + i * n];\n"                                    \
    "    for (int r = 0; r < n; r++) {\n        #pragma unroll\n"                                                      \
    "        for (int i = 0; i < " n "; i++) {\n"                                                                      \
    "            a[i].x = a[i].x * a[(i + 7) % " n "].y + 1;\n"                                                        \
    "            a[i].y += a[(i + 3) % " n "].z;\n            a[i].z *= a[(i + 1) % " n "].w;\n"                       \
    "            a[i].w += a[i].x;\n        }\n    }\n    real t = 0;\n    #pragma unroll\n"                           \
    "    for (int i = 0; i < " n "; i++)\n        t += a[i].x + a[i].y + a[i].z + a[i].w;\n"                           \
    "    y[threadIdx.x] = t;\n}\n"
/* The same, of which some have no registers where threads ask for their number again, as rows of printed kernels may. */
#define CUDA_NUMBERED(name, bounds, values)                                                                            \
    "/* const vwn_thread_of_row<256> thread */\n#ifdef VWN_FEW_REGISTERS\n"                                            \
    "#define FOURS 14\n#else\n#define FOURS 24\n#endif\n" CUDA_VALUES(name, bounds, "FOURS", values)
/* The same where no round of a loop is written out. */
#define CUDA_ROUNDS(name, bounds, values)                                                                              \
    "/* #pragma unroll vwn_rounds(2) */\n#ifdef VWN_ONE_ROUND\n"                                                       \
    "#define ROUNDS 14\n#else\n#define ROUNDS 31\n#endif\n" CUDA_VALUES(name, bounds, "ROUNDS", values)
/* An array with computed indices: it has a frame and spills nothing. */
#define CUDA_FRAME CUDA_ARRAY("k_frame", "")
#define CUDA_ARRAY(name, bounds)                                                                                       \
    "/* a thread has 40 values, 200 bytes of arrays */\n"                                                              \
    "extern \"C\" __global__ void " bounds " " name "(real *y, int n)\n{\n    real a[50];\n"                           \
    "    for (int i = 0; i < 50; i++)\n        a[i] = y[i];\n"                                                         \
    "    for (int i = 0; i < n; i++)\n        a[i * 13 % 50] += a[i * 7 % 50];\n"                                      \
    "    y[threadIdx.x] = a[n % 50];\n}\n"

static inline CudaText cuda_text(const char *name, const char *text)
{
    return (CudaText){name, text, strlen(text), ""};
}

/* Builds texts with the small prelude; what the caller sets in *b stays. */
static inline Status build_texts(Ctx *ctx, const Nvrtc *n, CudaBuild *b, const char *arch, const CudaText *text,
                                 size_t count, CudaCode *code)
{
    b->arch = arch;
    if (!b->prelude)
        b->prelude = CUDA_PRELUDE;
    b->prelude_length = strlen(b->prelude);
    b->kernel = text;
    b->n = count;
    b->code = code;
    b->arena = ctx->program;
    return nvrtc_build(n, b);
}

#endif
