/* cubin.h - what the kernels of a cubin need, read from its ELF file.
 *
 * In:  bytes that nobody vouches for.
 * Out: registers, stack, spills and shared memory per kernel; or a sentence that says what is
 * wrong. The one idea: no tool of the toolkit is asked. The compiler leaves attributes in
 * sections .nv.info, among them which instructions spill a register; how much these move says
 * the instruction.
 */
#ifndef VWN_CUBIN_H
#define VWN_CUBIN_H

#include "compiler/base/base.h"

typedef struct CubinKernel {
    const char *name;                  /* in the arena */
    int registers;                     /* per thread */
    int64_t frame;                     /* bytes of stack per thread: arrays with computed indices, and spills */
    int64_t spill_stores, spill_loads; /* bytes per thread, each instruction counted once */
    int64_t shared;                    /* bytes of static shared memory per block */
    int64_t code;                      /* bytes of instructions */
    int max_threads;                   /* __launch_bounds__, 0: not said */
    const uint32_t *constant;          /* its own constants (bank 2), copied to the arena; NULL: none */
    size_t n_constant;                 /* words */
} CubinKernel;
typedef struct Cubin {
    int arch; /* 80, 90, 100 */
    size_t n;
    CubinKernel *kernel;
} Cubin;

bool cubin_read(Arena *arena, const void *bytes, size_t n, Cubin *out, char why[256]);
const CubinKernel *cubin_find(const Cubin *c, const char *name); /* NULL: is not there */

#endif
