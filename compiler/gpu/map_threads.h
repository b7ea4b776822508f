/* map_threads.h - a kernel for the threads of a device.
 *
 * In:  a scheduled kernel, and what sizes decide of it.     Out: the same for the threads of a block; whether it has a race.
 * The one idea: kernels that differ in sizes alone have one choice, and so one text.
 */
#ifndef VWN_MAP_THREADS_H
#define VWN_MAP_THREADS_H

#include "compiler/kernel/kernel.h"

/* How threads share a nest of loops: the innermost ones; or each round of this loop, with the loops in it, is for one thread,
 * whose sums go on when the round is over (SHARE_SUMS) or do not, or for one warp. */
typedef enum KShare { SHARE_INSIDE, SHARE_WHOLE, SHARE_SUMS, SHARE_WARPS } KShare;
/* map_threads.c. What sizes decide of how threads share a kernel: of kernels that differ in sizes alone one is
 * taken for all (kernel_cache.c). */
typedef struct KMappingChoice {
    uint32_t row_threads, units, lanes;
    KIndex index;
    bool pieces, sums_shared;
    size_t n_buffer;
    bool *shared;   /* by buffer: partial sums that lie in shared memory */
    size_t n;       /* statements */
    uint8_t *width; /* by statement that is a loop: its vector width, or 1 */
    uint8_t *piece; /* by statement that is a loop: how many elements of that width are computed at one time, or 0 */
    uint8_t *times; /* by statement that is a loop: how often it is written out */
    uint8_t *share; /* by statement that is a loop: KShare of the nest that it encloses */
} KMappingChoice;
/* A kernel of a device, from its tiles to its threads, with the choice that suits it. */
typedef struct KTried {
    Kernel arranged, mapped;
    KMappingChoice choice;
    size_t *changed; /* by pass, how many things it changed; NULL: nobody looks (plan/pipeline.c) */
} KTried;
/* Somebody who makes a kernel for threads of `from`, to look at; the passes of plan/pipeline.c. */
typedef struct KTrial {
    void (*run)(void *user, Kernel *to, const Kernel *from, const KMappingChoice *how);
    void *user;
} KTrial;
/* Chooses what suits the sizes of a kernel whose tiles and nests are in order. True: the choice is the last one that `trial` has run. */
bool kernel_choose_threads(KMappingChoice *s, const Kernel *k, const KTrial *trial);
bool kernel_mapping_same(const KMappingChoice *a, const KMappingChoice *b);
void kernel_narrow_mapping(KMappingChoice *s, const Kernel *k,
                           KIndex index); /* to what this one, of `index`, allows too */
/* `to` is such a kernel `from` for the threads of a device: its statements, totals and barriers. What is decided of it
 * besides are passes of their own (plan/passes.def); pipeline_map() runs all of them. */
void kernel_map_threads(Kernel *to, const Kernel *from, const KMappingChoice *how);
/* The first statement of a mapped kernel that is a race: a thread touches what another may still be at, or waits for
 * others that may never come there. SIZE_MAX: none (kernel_races.c). */
size_t kernel_race(const Kernel *k);
void kernel_verify_mapping(const Kernel *k); /* vwn_bug() when it is broken, or has a race */
/* tile.c: `to` is `from` with its row in an order, and its tiles in places, for little memory */
void kernel_place_tiles(Kernel *to, const Kernel *from);
/* registers.c: registers that its values take at one time, at most and about; that all loads and places of one
 * loop take; how narrow its indices can be. */
uint32_t kernel_register_pressure(const Kernel *k);
uint32_t kernel_loads_in_flight(const Kernel *k); /* of a mapped kernel */
KIndex kernel_index(const Kernel *k);

#endif
