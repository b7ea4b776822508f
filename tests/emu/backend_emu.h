/* backend_emu.h - a backend whose device is emulated: kernels run as CUDA text (cuemu.h).
 *
 * In:  plans made with target_gpu.     Out: numbers, or what a kernel does wrong, in `why`.
 * The one idea: large matrix products, which a device leaves to its library, are left to the CPU's; all
 * else of a training step runs through the text of the kernels.
 */
#ifndef VWN_BACKEND_EMU_H
#define VWN_BACKEND_EMU_H

#include "rules.h"
#include "runtime/base/backend.h"

#include <stdio.h>

typedef struct EmuOptions {
    bool descending;       /* blocks, warps and lanes from the last to the first */
    bool lazy;             /* copies arrive only when they are waited for */
    bool no_copies;        /* there are none; one that comes stops the launch */
    uint32_t blocks_max;   /* 0 = as many as there are rows for */
    const uint32_t *order; /* which block runs when; NULL: as `descending` says */
    const Target *target;  /* what programs are planned for; NULL: target_gpu */
} EmuOptions;
/* ST_ENVIRONMENT with `why` when there is no C++ compiler or the processor is no x86-64. A kernel with copies
 * is launched twice, with copies that arrive at once and late; the bits that it leaves must be the same. */
Status backend_emu_open(Ctx *ctx, const EmuOptions *how, Backend **out, char why[512]);

/* From now on launches run so; what the program that was built last has computed is no number any more. */
void backend_emu_again(Backend *b, const EmuOptions *how);
/* The two ways that results may not depend on, by `run`: from the first to the last thread and block, or from the
 * last to the first with three blocks for all rows. With copies at once and late: four. */
enum { EMU_RUNS = 2 };
void backend_emu_way(Backend *b, int run);

/* CUDA texts as functions: compiled once, kept until the process ends. */
typedef struct EmuText {
    const char *name, *text;
    size_t length;
} EmuText;
typedef struct EmuKernel {
    void (*call)(void **arguments);
    const void *object;
} EmuKernel;
bool emu_possible(char why[512]);
bool emu_missing(void); /* says why a test is skipped, which then ends with EMU_SKIPPED */
enum { EMU_SKIPPED = 77 };
/* False with the compiler's words in `why`. */
bool emu_compile(const char *prelude, size_t length, const EmuText *text, size_t n, EmuKernel *out, char why[512]);
/* The same; in a build with the address sanitizer it watches the kernels too. */
bool emu_compile_watched(const char *prelude, size_t length, const EmuText *text, size_t n, EmuKernel *out,
                         char why[512]);
/* Writes an include of cuemu.h and a text of this name, for emu_object() with these options. */
void emu_write(FILE *f, const char *options, const char *name, const char *text, size_t length);
/* Makes a shared object of a C++ file that includes cuemu.h; the compiler's words go to the file `log`. Several threads
 * may do so at once, after one of them has asked emu_possible(). */
bool emu_object(const char *source, const char *object, const char *log, const char *options);
/* A map as a driver makes it, of the buffer that begins at `memory`; NULL, or what is wrong. */
const char *emu_map_make(emu_map *out, const LaunchMap *m, const void *memory);
/* NULL, or what is wrong. `shared`: bytes of dynamic shared memory. */
const char *emu_launch(const EmuKernel *k, void **arguments, const EmuOptions *how, uint32_t blocks, uint32_t threads,
                       uint64_t shared);

#endif
