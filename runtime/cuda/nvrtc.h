/* nvrtc.h - from CUDA text to cubins, with or without a GPU.
 *
 * In:  kernels as text, the architecture they are for.
 * Out: machine code (cubins) and what it uses of a multiprocessor.
 * The one idea: NVRTC is a library that is opened at run time and needs no device. Several threads compile
 * at once, short kernels a few in one program, whose machine code they share; each has an entry of
 * its own in the cache, so a changed kernel leaves the others there. A kernel that spills is compiled again with threads that ask for
 * their number wherever it is used; one that asks for several blocks of a multiprocessor for fewer, until it does not spill; and what spills
 * then once more with few registers in mind. Its entry is of the last word.
 */
#ifndef VWN_NVRTC_H
#define VWN_NVRTC_H

#include "runtime/base/cache.h"
#include "cubin.h"
#include "cuda_open.h"

#include <signal.h>

enum { NVRTC_ARCHS = 64, LEAST_CAPABILITY = 80 /* of a GPU that the kernels are for */ };
typedef struct Nvrtc {
    int major, minor;
    char path[CUDA_PATH_SIZE];
    char build_id[72];     /* of the library's file: its version alone is coarse */
    int arch[NVRTC_ARCHS]; /* that it can make code for, and the kernels are for: 80, 90, 100, ... */
    int n_arch;
    const struct NvrtcTable *call;
} Nvrtc;

/* Finds the library. false with `why`; nothing has to be closed. */
bool nvrtc_open(Ctx *ctx, Nvrtc *out, char why[512]);
/* "sm_80", and "sm_90a" of 90: instructions that only this one has are in its kernels. Gives `name`. */
enum { NVRTC_ARCH_NAME = 16 };
const char *nvrtc_arch(char name[NVRTC_ARCH_NAME], int number);
bool nvrtc_can(const Nvrtc *n, const char *arch, char why[512]); /* "sm_90a"; false with `why` */
/* Bytes of shared memory that a block can have on such a GPU; of later ones than are known what all of them have. */
int64_t nvrtc_shared(const char *arch);

typedef struct CudaText {
    const char *name; /* of the kernel, extern "C" in its text */
    const char *text; /* without the prelude */
    size_t length;
    const char *place; /* for messages: "layer[2].attn at gpt.vwn:12:5"; may be "" */
} CudaText;
typedef struct CudaCode {
    const void *cubin; /* in the arena; other kernels may lie in it, too */
    size_t size;
    CubinKernel facts;
    const char *log; /* what the compiler said of the program it was in; "" from the cache */
    bool cached;
} CudaCode;
typedef struct CudaBuild {
    const char *arch;    /* "sm_80", "sm_90a" */
    const char *prelude; /* before each text */
    size_t prelude_length;
    const CudaText *kernel;
    size_t n;
    const char *const *option; /* beside the usual ones, a few */
    size_t n_option;
    int jobs;                                      /* threads; 0: as many as the process may use */
    void (*compiling)(void *user, size_t kernels); /* as in vwn_options; NULL: nobody asks */
    void *user;
    const volatile sig_atomic_t *stop; /* once not 0 no further program is begun; NULL: nobody asks */
    Cache *cache;                      /* NULL: none */
    Arena *arena;                      /* for the cubins; its context pays for the rest */
    CudaCode *code;                    /* [n], to be filled */
    size_t compiled;                   /* kernels */
    size_t again;                      /* times that one of them was compiled once more, as it spilled */
    double seconds;
    char why[1024]; /* of a failure: kernel, place, line, the compiler's first error */
} CudaBuild;
/* ST_OK, or ST_ENVIRONMENT or ST_INTERRUPTED with `why`. Kernels of equal name and text may occur repeatedly; what different
 * texts define has different names. */
Status nvrtc_build(const Nvrtc *n, CudaBuild *b);

#endif
