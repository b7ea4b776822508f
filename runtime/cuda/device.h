/* device.h - which device a run is on.
 *
 * In:  what was asked for ("cpu", "reference", "cuda", "cuda:1", "auto"), and the machine.
 * Out: a GPU with the libraries that it needs, or the sentence that says why there is none.
 * The one idea: everything that can be missing is looked for in one order, before anything is opened on the device,
 * and the first thing that is missing is the reason, in `vwn doctor` as in a run.
 */
#ifndef VWN_DEVICE_H
#define VWN_DEVICE_H

#include "cuda_api.h"
#include "nvrtc.h"

typedef enum DeviceKind { DEVICE_CPU, DEVICE_REFERENCE, DEVICE_CUDA, DEVICE_AUTO } DeviceKind;
typedef struct DeviceAsked {
    DeviceKind kind;
    int ordinal; /* of DEVICE_CUDA; -1: the first that can be used */
} DeviceAsked;
/* NULL is the CPU. False when it is none of the words. */
bool device_read(const char *text, DeviceAsked *out);

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
    int64_t shared_most; /* bytes that a block can have */
    char arch[NVRTC_ARCH_NAME]; /* that kernels are compiled for */
} CudaFound;
bool cuda_is_stub(void); /* a library to link with in the place of a driver */
bool cuda_is_here(void); /* a driver and a GPU, whether it can be used or not */
/* ordinal -1: the first GPU that the kernels are for. false with `why`, which says what to do about it. */
bool cuda_find(Ctx *ctx, int ordinal, CudaFound *out, char why[512]);

#endif
