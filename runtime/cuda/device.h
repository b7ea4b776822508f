/* device.h - a GPU that runs can be on.
 *
 * In:  which one is wanted, and the machine.
 * Out: a GPU with the libraries that it needs, or the sentence that says why there is none.
 * The one idea: everything that can be missing is looked for in one order, before anything is opened on the device,
 * and the first thing that is missing is the reason, in `vwn doctor` as in a run.
 */
#ifndef VWN_DEVICE_H
#define VWN_DEVICE_H

#include "cuda_api.h"
#include "nvrtc.h"

/* A GPU and its libraries; nothing has to be closed. */
typedef struct CudaFound {
    CudaDriver driver;
    int driver_version; /* 1000 major + 10 minor */
    Nvrtc nvrtc;
    CudaApi api;
    LtApi lt;
    char lt_build_id[72];
    int ordinal, handle;
    CudaDevice device;
    int multiprocessors;
    int64_t shared_most;        /* bytes that a block can have */
    char arch[NVRTC_ARCH_NAME]; /* that kernels are compiled for */
} CudaFound;
/* ordinal -1: the first GPU that the kernels are for, or, of several, the one of process `local` of this machine, counted from 1; 0: there
 * is one process. false with `why`, which says what to do about it. */
bool cuda_find(Ctx *ctx, int ordinal, int local, CudaFound *out, char why[512]);

#endif
