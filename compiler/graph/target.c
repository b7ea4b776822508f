/* target.c - see target.h: a row for each kind of machine. */
#include "target.h"

#define TAKES(half) (1ull << (half))

/* No GPU has run these kernels: sizes are those of its manual, all else was chosen by predicted times (tests/perf/tool) and is to be
 * measured. A CPU reads what says which nodes are one kernel. */
static const Tuned tuned = {
#define PREDICTED
#define TUNED(name, value, how, text) value,
#include "tuned.def"
#undef TUNED
#undef PREDICTED
};
const Target target_cpu = {
    .name = "CPU",
    .multiplies = TAKES(HALF_BF16),
    .at_once = 4,
    .fused_add = true,
    .tests_are_slow = true,
    .remat_kernels = 1,
    .chains = true,
    .thin_product_max = 32,
    .row_scratch = 96 * 1024, /* in the second-level cache */
    /* GCC 12 looks through the long block of permutations by the square: a kernel of 779 lines with 392 of them took it
     * more than 150 s where it took 1.4 s without vectors, one with 368 took 29 s and 3; with 192 it takes no longer than
     * without. */
    .scattered = 256,
    /* Above this, what a kernel writes is out of the cache before it is read again, and a store past the cache saves
     * reading the line first. Measured on 2 cores with 32 MiB of third-level cache: the forward boundary of a (2,3)
     * connection at D = 768 and 4,096 tokens. */
    .stream = 128000000,
    .tuned = &tuned,
};

#define ANY_GPU                                                                                                             \
    .threads = true,                                                                                                        \
    .shared =                                                                                                               \
        96 *                                                                                                                \
        1024, /* what a block of sm_80 and of all that came later can have; of sm_80 and sm_90 two of a multiprocessor */   \
        .row_scratch = 96 * 1024, /* beyond its shared memory they are spilled */                                           \
        .spill_blocks = 256,      /* two or so of a multiprocessor */                                                       \
        .flat_rows = 2048,        /* eight for each thread: what a block does once is little beside them */                 \
        .own_library = true, .fixed_launches = true, .joins_launches = true,                                                \
    .at_once = 2, /* what is computed again needs registers and shared memory too */                                        \
        .fast_exp = true,                                                                                                   \
    .thin_product_max =                                                                                                     \
        16, /* a thread has a sum of so many by itself; of more a warp would share each, and most of its threads be idle */ \
        .product_unroll =                                                                                                   \
            7, /* rounds of a loop of eight and more beside products of a row are for its warps (map_threads.c) */          \
        .half_kernels = true, .multiplies = TAKES(HALF_BF16) | TAKES(HALF_FP16), .layout = true, .whole_plans = true,       \
    .beside = 64 << 20, .tuned = &tuned

/* Any NVIDIA GPU from sm_80 on; and those of sm_90a, for which the texts of one architecture alone pay. */
const Target target_gpu = {.name = "GPU", ANY_GPU};
const Target target_sm_90a = {.name = "GPU of sm_90a", ANY_GPU, .warpgroups = true};

const Target *target_of_arch(const char *arch) { return strcmp(arch, "sm_90a") == 0 ? &target_sm_90a : &target_gpu; }

Half target_half(const Target *t)
{
    size_t i = 0;
    while (half_at(i) && !target_multiplies(t, half_at(i)->half))
        i++;
    return half_at(i) ? half_at(i)->half : HALF_NONE;
}
