/* target.h - for what a graph is planned: sizes, a kind of machine, and what is asked for.
 *
 * In:  -     Out: PlanOptions and its Target, which every pass between a graph and its launches may read.
 * The one idea: what passes must know of a machine is a row of properties. They ask for a property and never which
 * machine it is; a further kind of machine is a further row.
 */
#ifndef VWN_TARGET_H
#define VWN_TARGET_H

#include "ir.h"

/* The rows of tuned.def. */
typedef struct Tuned {
#define TUNED(name, value, how, text) int64_t name;
#include "tuned.def"
#undef TUNED
} Tuned;
typedef struct Target {
    const char *name;
    /* How kernels run. */
    bool threads;        /* the threads of blocks share a row or take one each: they hold few elements, and blocks have
                            shared memory of a fixed size */
    int64_t shared;      /* bytes of shared memory of a block */
    int64_t flat_rows;   /* rows of a block of a kernel without loops over a row; 0: by how many results a row has */
    int64_t row_scratch; /* elements of small products that a row may keep from one loop to another */
    uint32_t
        spill_blocks; /* blocks of a kernel whose arrays lie in memory, each with its own; 0: arrays are the thread's */
    bool own_library; /* attention, tables and products by expert are kernels of ours in this dialect, with launches
                            of their own; else those of the CPU */
    bool fixed_launches; /* a launch is the same in each run, so that a graph of them can be replayed: what changes from
                            run to run lies in memory */
    bool
        joins_launches; /* launches are dear: sums go to the library, equal kernels run as one, copies of weights stay */
    /* What arithmetic costs, for the choice of what is computed again. */
    int64_t at_once;     /* simple operations on an element, done in the time in which memory moves a byte */
    bool fast_exp;       /* there is an instruction for it: it costs half */
    bool fused_add;      /* a product that is added to a sum costs nothing more */
    bool tests_are_slow; /* of shifted rows each element is tested by itself, whether it lies inside */
    int remat_kernels;   /* through so many kernels a value may be computed again on the way to a reader */
    int scattered;       /* so many loads and stores of one vector loop may lie apart; 0: any number. The compiler makes
                            permutations of them, and takes long over many */
    bool chains;         /* a row's statements run one after the other, so long computations with few numbers a row are
                            kernels of their own, whose vectors are rows */
    int thin_product_max; /* rows or columns of one matrix for all tokens are not worth a library's launch */
    int product_unroll;   /* rounds of a small product that are written out; 0: as many as of other loops */
    /* 16-bit storage. */
    bool half_kernels;   /* kernels and libraries but products read and write it too, so it is chosen before fusing */
    uint64_t multiplies; /* types of stored numbers that products take: a bit for each Half */
    bool
        warpgroups; /* four warps together multiply matrices of shared memory (wgmma); else each warp what it has in registers */
    /* Memory of a run. */
    bool
        layout; /* weights and gradients lie as launches want them, and copies of weights stay: programs of a run share a PlanLayout */
    bool whole_plans; /* what a plan needs is known when its kernels are there: they bring memory of their own */
    uint64_t
        beside; /* bytes that it takes of its own memory beside tensors: machine code, and what pages leave unused */
    const Tuned *tuned; /* what was chosen for it */
    int64_t stream;     /* bytes; of programs that write more, stores go past the cache. 0: never */
} Target;
extern const Target target_cpu, target_gpu, target_sm_90a;
static inline bool target_multiplies(const Target *t, Half half) { return half && (t->multiplies >> half & 1); }
Half target_half(const Target *t); /* the first type that it multiplies; HALF_NONE: there is none */
/* Of "sm_80", "sm_90a": the one place that knows which architecture has what. */
const Target *target_of_arch(const char *arch);

typedef struct PlanOptions {
    int64_t B, T;
    const Target *target; /* NULL: target_cpu. Read it by plan_target() */
    bool no_fusion;       /* every node its own kernel: for tests */
    bool single;          /* of a device: no launches are made as one: for tests */
    bool programs;        /* keep the text of the kernel programs: for dumps and tests */
    Half half;            /* operands of large products are rounded to it, and kept so but for fp16 on a CPU,
                       which multiplies these in float32; on a device what kernels store for each other, too */
    bool any_order;       /* of a device: gradients of tables are added up in any order, by atomic additions */
    /* What other rows hold changes no bit of a row. Only products of experts differ: which rows
     * an expert has depends on what is in them, so each row is multiplied alone. */
    bool per_row;
    bool arena_only; /* buffers and their places, without kernels: for how much memory it takes; of a CPU */
    bool counted;    /* with `arena_only`: launches say what they compute, for how long that takes */
    int64_t shared;  /* of a device: bytes that a block of a kernel over rows may have; 0: Target.shared */
    struct PlanLayout
        *layout; /* of a device: rounded weights stay from run to run, and weights and gradients lie as batches of
                                  products want them; NULL: each run rounds them, and those lie anywhere */
    struct PassWatch *watch;          /* plan/pipeline.h: somebody who looks at the passes; or NULL */
    struct KernelCache *kernel_cache; /* kernel_cache.h: shared with other plans at this B and T; NULL: its own */
} PlanOptions;
static inline const Target *plan_target(const PlanOptions *how) { return how->target ? how->target : &target_cpu; }
/* Are small products that kernels compute by tensor cores? */
static inline bool plan_has_tensor_cores(const PlanOptions *how) { return plan_target(how)->threads && how->half; }

#endif
