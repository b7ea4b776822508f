/* gpu_run.h - a block of a kernel, walked through its machine code.
 *
 * In:  a kernel's instructions, the arguments of a launch, what its memory holds.
 * Out: how often each instruction is issued, what shared and global memory are asked for, and how long the block's
 *      longest chain of waiting is.
 * The one idea: nothing is guessed about loops. Integers, addresses, predicates, branches, calls, shuffles and barriers
 * are computed for all 32 threads of every warp, as a device does, so unrolled, hoisted, predicated and divergent code is
 * counted as it runs, bank conflicts and sectors come from the addresses, and data alone is made up: numbers of float
 * tensors are of the size of 1, what tensor cores give is 1.
 */
#ifndef VWN_GPU_RUN_H
#define VWN_GPU_RUN_H

#include "sass.h"

/* Cycles from an instruction to the first that can read what it leaves. */
typedef struct GpuLatency {
    uint32_t plain, special, shuffle, shared, first, second, global, tensor, barrier; /* first, second: caches */
} GpuLatency;

/* Copies by tensor maps: bytes in a cycle that they ask for, as wide as a multiprocessor's way to the second-level cache is; and cycles
 * more than a load takes until its first bytes are there. Both are assumed. */
enum { GPU_COPIER = 64, GPU_COPY_BEGINS = 200 };

/* A tensor map among the arguments (LaunchMap of launch.h), which begins `at` bytes into them: code adds that to c[0x0][0x198], here 0. Among
 * the constants, where arguments begin at 0x210 on sm_90, it lies at a multiple of 128 bytes. */
enum { GPU_ARGUMENTS_90 = 0x210, GPU_MAP_BYTES = 128 };
typedef struct GpuMap {
    uint64_t at, address;
    unsigned rank, item;       /* bytes of an element */
    int64_t dim[5], stride[5]; /* stride: bytes */
    uint32_t box[5];
} GpuMap;

typedef struct GpuLaunch {
    const SassKernel *code;
    int arch; /* 80, 90, 100: where arguments lie */
    uint32_t threads, blocks;
    const uint64_t *argument; /* 8 bytes each */
    size_t n_argument;
    const GpuMap *map;
    size_t n_map;
    const uint32_t *constant; /* words of the kernel's own constants, bank 2; may be NULL */
    size_t n_constant;
    uint64_t shared; /* bytes of a block, static and dynamic */
    int64_t frame;   /* bytes of stack of a thread */
    int64_t cache;   /* bytes of the first-level cache that a block has for itself */
    /* What blocks before have left in the first-level cache, gpu_lines() of it, and what they have read at all, GPU_SEEN; NULL:
     * nothing */
    uint64_t *near, *seen;
    /* The 8 bytes at an address that is a multiple of 8; of what nobody knows something plausible. */
    uint64_t (*load)(void *user, uint64_t address);
    /* What a thread stores, at most 8 bytes of it at a time; NULL: nobody keeps it. */
    void (*store)(void *user, uint64_t address, unsigned bytes, uint64_t value);
    void *user;
    /* Each thread's access to global memory; NULL: nobody asks. */
    void (*touch)(void *toucher, uint64_t address, unsigned bytes, bool writes);
    void *toucher;
    GpuLatency latency;
    const double
        *lanes;    /* by unit, threads that those of a multiprocessor take in a cycle; NULL: nothing waits for a unit */
    uint64_t most; /* instructions of a block, of all its warps, before it is left: GpuCounts.cut */
} GpuLaunch;

enum { GPU_SEEN = 1 << 16 };
static inline uint32_t gpu_lines(const GpuLaunch *l) { return l->cache > 128 ? (uint32_t)(l->cache / 128) : 1; }

typedef struct GpuCounts {
    double slots; /* instructions that warps issue */
    double class[SASS_CLASSES];
    double unit[UNIT_COUNT];
    double partial;                       /* issued for less than all threads of a warp */
    double wavefronts;                    /* cycles of shared memory, shuffles not counted */
    double operands;                      /* of these, in which products of warpgroups read what they multiply */
    double conflicts;                     /* of these beyond what the widths of the accesses want */
    double lines;                         /* requests of 128 bytes to global memory */
    double sectors_read, sectors_written; /* 32 bytes each, of one instruction of a warp */
    double sectors_missed;                /* of those read that are not in the block's first-level cache */
    double bytes_read, bytes_written;     /* that threads ask for */
    double tensor;                        /* multiply-adds */
    double grouped;                       /* of these, of warpgroups */
    double barriers;                      /* that a block waits at */
    double cycles;                        /* of a block that has a multiprocessor for itself: its longest wait */
    double blocks;                        /* that were walked */
    double unknown;                       /* issued instructions of which this program does not know what they do */
    double cut;                           /* blocks that were left before their end: counts are what they had done */
    const char *guess; /* the first whose result was made up though others may branch by it; or NULL */
} GpuCounts;

/* Adds a block's counts. each: NULL, or by instruction how often a thread executes it. False with `why`: a
 * branch nobody can follow, warps that wait for each other. */
bool gpu_run(Arena *arena, const GpuLaunch *l, uint32_t block, GpuCounts *sum, uint64_t *each, char why[256]);

#endif
