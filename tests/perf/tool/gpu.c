/* gpu.c - see gpu.h. Sources, by what stands in the table:
 *
 * multiprocessors, peak: NVIDIA's architecture papers of A100 and H100, datasheets of A100 80GB
 *     SXM, H100 SXM5, H200 SXM, B200.
 * blocks, warps, registers, shared (1 KiB of which the system takes for each block), lanes: CUDA
 *     C++ Programming Guide, "Compute Capabilities" and the table of arithmetic throughput.
 * lanes of tensor: H100: mma.sync reaches 62 % of the peak, as measured by Luo et al., Benchmarking
 *     and Dissecting the Nvidia Hopper GPU Architecture, arXiv 2402.13499; A100: `reached`.
 * grouped: the peak at the datasheet's clock, 1.83 GHz; m64n256k16 takes 128 cycles (Luo et al.).
 * reached: H100 795 TFLOP/s, cuBLAS, 8,192 cubed (github.com/pranjalssh/fast.cu, README); 794.5 at
 *     2,048 x 2,048 x 13,312 (github.com/stas00/ml-engineering, compute/accelerator/README.md,
 *     2026-08, which says of the H200: the same); A100 271.2 and B200 1,745 there.
 * reached_fp32: H100 47.3 (github.com/waynehacking8/blackwell-tensorcore-kernels, bench.csv,
 *     cublas, 8,192 cubed); that the others reach as great a part of their peaks is assumed.
 * copy, ramp and launch together: SwiGLU and RMS norm of Liger on an H100
 *     (github.com/linkedin/Liger-Kernel, benchmark/data/all_benchmark_data.csv, megatron_swiglu and
 *     megatron_rms_norm, 2026): 11 sizes from 17 to 1,611 MB take 6.6 us and their bytes at 3.08
 *     TB/s, each within 3 %; 3.0 stands here. A100: layer norm there (2024), 34 to 537 MB: 10 us
 *     and 1.72 TB/s. H200, B200: as great a part of 4.8 and 8 TB/s, which is assumed; B200's ramp: softmax there (2026), 17 to 134
 *     MB, each within 7 %.
 * ramp: of an H100 as products of cuBLAS have it (perf_product.c). launch: the rest. What a
 *     recorded graph saves of it nobody has measured here.
 * l2: gpu-l2-cache of github.com/te42kyfo/gpu-benches, results for 10 to 30 MB: 5.4 TB/s of A100
 *     80GB, 6.9 of H100 PCIe with 114 multiprocessors; of H100 SXM and H200 as many each.
 * issue: assumed, 2.4 of 4. together, beyond, uncovered: fitted to FlashAttention-2 and 3 with it,
 *     product_*: to cuBLAS on an H100, as published (tests/perf/published.c).
 * latency: Luo et al.; global, what no block of a kernel has read before, is assumed to take 560 to
 *     700 cycles under load (478 measured without).
 * Assumed besides: clocks under load (below those of datasheets), and of a B200 all but the above:
 * it is here so that its machine code can be counted, and its times are compared with those of softmax alone.
 */
#include "gpu.h"

#define FITTED                                                                                                         \
    .issue = 2.4, .together = 2.6, .beyond = 4, .uncovered = 0.7, .product_rate = 1.08, .product_half = 30,            \
    .product_end = 1.5e-6, .launch = 2.1e-6
#define UNITS(fma, fp64, tensor)                                                                                       \
    .lanes = {[UNIT_FMA] = fma,   [UNIT_IMAD] = 64, [UNIT_ALU] = 64,       [UNIT_XU] = 16,                             \
              [UNIT_FP64] = fp64, [UNIT_LSU] = 32,  [UNIT_TENSOR] = tensor}
#define ROOM(kilobytes, cache)                                                                                         \
    .blocks = 32, .warps = 64, .registers = 65536, .shared = (kilobytes)*1024, .first = (cache)*1024
#define LATENCY(at_shared, at_first, at_second, at_global)                                                             \
    .latency = {.plain = 5,                                                                                            \
                .special = 22,                                                                                         \
                .shuffle = 24,                                                                                         \
                .shared = at_shared,                                                                                   \
                .first = at_first,                                                                                     \
                .second = at_second,                                                                                   \
                .global = at_global,                                                                                   \
                .tensor = 33,                                                                                          \
                .barrier = 25}
#define HOPPER                                                                                                         \
    .arch = "sm_90a", .number = 90, .multiprocessors = 132, .clock = 1.755e9, ROOM(228, 256),                          \
    .l2 = 6.9e12 * 132 / 114, .grouped = 2048, UNITS(128, 64, 1270), .peak = 989e12, .reached = 795e12,                \
    .reached_fp32 = 47.3e12, .ramp = 4.5e-6, FITTED, LATENCY(30, 41, 265, 600)

const Gpu gpus[GPU_COUNT] = {
    {.name = "h100", .people = "H100 SXM", .copy = 3.0e12, HOPPER},
    {.name = "h200", .people = "H200 SXM", .copy = 4.3e12, HOPPER},
    {.name = "a100",
     .people = "A100 80GB SXM",
     .arch = "sm_80",
     .number = 80,
     .multiprocessors = 108,
     .clock = 1.41e9,
     ROOM(164, 192),
     .copy = 1.72e12,
     .l2 = 5.4e12,
     UNITS(64, 32, 890),
     .peak = 312e12,
     .reached = 271.2e12,
     .reached_fp32 = 13.8e12,
     .ramp = 7.9e-6,
     FITTED,
     LATENCY(29, 38, 262, 560)},
    {.name = "b200",
     .people = "B200",
     .arch = "sm_100",
     .number = 100,
     .multiprocessors = 148,
     .clock = 1.85e9,
     ROOM(228, 256),
     .copy = 7.1e12,
     .l2 = 10e12,
     UNITS(128, 64, 1270),
     .peak = 2250e12,
     .reached = 1745e12,
     .reached_fp32 = 53e12,
     .ramp = 5.5e-6,
     FITTED,
     LATENCY(30, 41, 300, 700)},
};

const Gpu *gpu_named(const char *name)
{
    for (size_t i = 0; i < GPU_COUNT; i++)
        if (!strcmp(gpus[i].name, name))
            return &gpus[i];
    return NULL;
}
