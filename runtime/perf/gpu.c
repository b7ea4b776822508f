/* gpu.c - see gpu.h.
 *
 * Multiprocessors, memory, peaks: NVIDIA's architecture papers of A100 and H100 and the datasheets of A100 80GB SXM, H100 SXM5,
 * H200 SXM and B200 (HGX). Blocks, warps, registers, shared memory of a multiprocessor, 1 KiB of which the system takes for
 * each block, and threads a cycle by unit: CUDA C++ Programming Guide, "Compute Capabilities" and the table of arithmetic
 * throughput. Multiply-adds of warpgroups in a cycle: what the peak of the architecture paper is at its clock; m64n256k16 takes 128
 * cycles, and 32 to 64 columns are the least that reach it from shared memory (Luo et al.), as 128 bytes a cycle would have it. Latencies, and that mma.sync reaches 62 % of H100's peak, which wgmma alone does: Luo et al., Benchmarking and
 * Dissecting the Nvidia Hopper GPU Architecture, arXiv 2402.13499. A copy's 2.91 TB/s of H100's 3.35: published
 * measurements; the others are taken to reach the same share.
 * Bytes of the second-level cache: gpu-l2-cache of github.com/te42kyfo/gpu-benches, whose files of results say for 10 to 30 MB 5.4 TB/s of
 * A100 80GB, 6.9 of H100 PCIe with 114 multiprocessors, 9.7 of H200; of H100 SXM as many a multiprocessor as of H100 PCIe, and of H200
 * no more, since it is not known at which clock that was.
 * Copies by tensor maps: their bytes are those of other copies, in shared memory and of the second-level cache; what is assumed of the hardware
 * that makes them stands in gpu_run.h.
 * Assumed: clocks under load (below those of datasheets), bytes of B200's second-level cache, that mma.sync of B200 does what that of
 * H100 does, its latencies, and that what no block of a kernel has read before comes from memory in 560 to 700 cycles under load
 * (478 measured without).
 */
#include "gpu.h"

#define COPY_SHARE 0.87
#define HOPPER_LANES                                                                                                   \
    {[UNIT_FMA] = 128, [UNIT_IMAD] = 64, [UNIT_ALU] = 64, [UNIT_XU] = 16, [UNIT_FP64] = 64, [UNIT_LSU] = 32,           \
     [UNIT_TENSOR] = 1270}
#define HOPPER_GROUPED 2048 /* 989.4 TFLOP/s at the 1.83 GHz of the datasheet's boost, 132 multiprocessors */
#define HOPPER_L2 (6.9e12 * 132 / 114)
#define HOPPER_LATENCY                                                                                                 \
    {.plain = 5, .special = 22, .shuffle = 24, .shared = 30, .first = 41, .second = 265, .global = 600, .tensor = 33, .barrier = 25}

const Gpu gpus[GPU_COUNT] = {
    {.name = "h100", .people = "H100 SXM", .arch = "sm_90a", .number = 90, .multiprocessors = 132, .clock = 1.755e9,
     .blocks = 32, .warps = 64, .registers = 65536, .shared = 228 * 1024, .first = 256 * 1024, .memory = 3.35e12,
     .copy = 3.35e12 * COPY_SHARE, .l2 = HOPPER_L2, .lanes = HOPPER_LANES, .grouped = HOPPER_GROUPED, .peak = 989e12, .peak_fp32 = 67e12,
     .latency = HOPPER_LATENCY},
    {.name = "h200", .people = "H200 SXM", .arch = "sm_90a", .number = 90, .multiprocessors = 132, .clock = 1.755e9,
     .blocks = 32, .warps = 64, .registers = 65536, .shared = 228 * 1024, .first = 256 * 1024, .memory = 4.8e12,
     .copy = 4.8e12 * COPY_SHARE, .l2 = HOPPER_L2, .lanes = HOPPER_LANES, .grouped = HOPPER_GROUPED, .peak = 989e12, .peak_fp32 = 67e12,
     .latency = HOPPER_LATENCY},
    {.name = "a100", .people = "A100 80GB SXM", .arch = "sm_80", .number = 80, .multiprocessors = 108, .clock = 1.41e9,
     .blocks = 32, .warps = 64, .registers = 65536, .shared = 164 * 1024, .first = 192 * 1024, .memory = 2.039e12,
     .copy = 2.039e12 * COPY_SHARE, .l2 = 5.4e12,
     .lanes = {[UNIT_FMA] = 64, [UNIT_IMAD] = 64, [UNIT_ALU] = 64, [UNIT_XU] = 16, [UNIT_FP64] = 32, [UNIT_LSU] = 32,
               [UNIT_TENSOR] = 1024},
     .peak = 312e12, .peak_fp32 = 19.5e12,
     .latency = {.plain = 5, .special = 22, .shuffle = 24, .shared = 29, .first = 38, .second = 262, .global = 560, .tensor = 33, .barrier = 25}},
    {.name = "b200", .people = "B200", .arch = "sm_100", .number = 100, .multiprocessors = 148, .clock = 1.85e9,
     .blocks = 32, .warps = 64, .registers = 65536, .shared = 228 * 1024, .first = 256 * 1024, .memory = 8.0e12,
     .copy = 8.0e12 * COPY_SHARE, .l2 = 10e12, .lanes = HOPPER_LANES, .peak = 2250e12, .peak_fp32 = 75e12,
     .latency = {.plain = 5, .special = 22, .shuffle = 24, .shared = 30, .first = 41, .second = 300, .global = 700, .tensor = 33, .barrier = 25}},
};

const Gpu *gpu_named(const char *name)
{
    for (size_t i = 0; i < GPU_COUNT; i++)
        if (!strcmp(gpus[i].name, name))
            return &gpus[i];
    return NULL;
}
