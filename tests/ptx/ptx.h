/* ptx.h - kernels as PTX, run on the CPU.
 *
 * In:  the text of a module, as NVRTC makes it of CUDA text; a launch: its arguments, the memory that
 *      it may touch, a seed.
 * Out: that memory as the launch leaves it, or a fault: the line of the text and what is wrong there.
 * The one idea: it is written from the PTX ISA alone, and knows nothing of the texts that it runs nor of the
 *      emulator in tests/emu, which runs the CUDA text itself; so the two agree where both are right. What the
 *      ISA leaves open is decided by the seed: the order of warps, of threads that went apart, and
 *      when a copy or a product that was begun is done, as late as a wait allows. What it forbids is a fault:
 *      accesses outside of the memory of a launch or badly aligned, threads missing where all have to
 *      be, shared memory read that nobody wrote, or that others touch without a barrier between.
 */
#ifndef VWN_TEST_PTX_H
#define VWN_TEST_PTX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { PTX_WHY = 512, PTX_MAPS = 4, PTX_RANK = 4 };

typedef struct PtxModule PtxModule;
/* NULL with `why`: what it is that is not understood, with its line. */
PtxModule *ptx_module(const char *text, char why[PTX_WHY]);
void ptx_free(PtxModule *m);

typedef struct PtxMemory { /* addresses of the device are those of the host */
    char *at;
    uint64_t bytes;
    bool written; /* may be */
} PtxMemory;

/* A tensor map of elements of two bytes, in lines of 128 bytes whose 16-byte pieces are turned. */
typedef struct PtxMap {
    const char *at;
    uint64_t extent[PTX_RANK], stride[PTX_RANK]; /* elements; bytes */
    uint32_t box[PTX_RANK];
} PtxMap;
/* extent, stride: elements. Of backend_ptx.c. */
void ptx_map(PtxMap *to, const void *memory, const int64_t *extent, const int64_t *stride, const uint32_t *box);

typedef struct PtxLaunch {
    const char *kernel;
    int64_t blocks;
    uint64_t shared; /* bytes of dynamic shared memory */
    uint64_t seed;
    size_t n_argument, n_map, n_memory;
    const void *const *argument; /* of eight bytes each; maps are behind them */
    const PtxMap *map;
    const PtxMemory *memory;
} PtxLaunch;
/* false with `why`. */
bool ptx_launch(const PtxModule *m, const PtxLaunch *l, char why[PTX_WHY]);

#endif
