/* hand.h - CUDA by hand: the functions of the fake libraries, each test in a process of its own.
 *
 * In:  the folder of the fakes (FAKE_CUDA, said by CMake).
 * Out: `cu`, `rtc` and `lt`, functions by their names; hand_run(), which runs a case in a child with its environment.
 * The one idea: the libraries read their settings when they are opened, so each case is a process.
 */
#ifndef HAND_H
#define HAND_H

#define _GNU_SOURCE
#include "abi.h"

#include "runtime/cuda/cuda_open.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

typedef const void *Handle;

/* clang-format off */
#define DRIVER_FUNCTIONS(F) \
    F(cuInit, (unsigned)) F(cuDriverGetVersion, (int *)) F(cuDeviceGetCount, (int *)) F(cuDeviceGet, (int *, int)) \
    F(cuDeviceGetName, (char *, int, int)) F(cuDeviceTotalMem_v2, (size_t *, int)) \
    F(cuDeviceGetAttribute, (int *, int, int)) F(cuDevicePrimaryCtxRetain, (Handle *, int)) \
    F(cuDevicePrimaryCtxRelease_v2, (int)) F(cuCtxSetCurrent, (Handle)) F(cuCtxGetCurrent, (Handle *)) \
    F(cuCtxSynchronize, (void)) F(cuMemGetInfo_v2, (size_t *, size_t *)) F(cuMemAlloc_v2, (uint64_t *, size_t)) \
    F(cuMemFree_v2, (uint64_t)) F(cuMemHostAlloc, (void **, size_t, unsigned)) F(cuMemFreeHost, (void *)) \
    F(cuMemcpyHtoDAsync_v2, (uint64_t, const void *, size_t, Handle)) \
    F(cuMemcpyDtoHAsync_v2, (void *, uint64_t, size_t, Handle)) \
    F(cuMemcpyDtoDAsync_v2, (uint64_t, uint64_t, size_t, Handle)) F(cuMemcpy2DAsync_v2, (const FakeCopy2D *, Handle)) \
    F(cuMemsetD8Async, (uint64_t, unsigned char, size_t, Handle)) \
    F(cuMemsetD32Async, (uint64_t, unsigned, size_t, Handle)) \
    F(cuStreamCreate, (Handle *, unsigned)) F(cuStreamCreateWithPriority, (Handle *, unsigned, int)) \
    F(cuStreamDestroy_v2, (Handle)) F(cuStreamSynchronize, (Handle)) F(cuStreamQuery, (Handle)) \
    F(cuStreamWaitEvent, (Handle, Handle, unsigned)) F(cuEventCreate, (Handle *, unsigned)) \
    F(cuEventDestroy_v2, (Handle)) \
    F(cuEventRecord, (Handle, Handle)) F(cuEventRecordWithFlags, (Handle, Handle, unsigned)) F(cuEventQuery, (Handle)) F(cuEventSynchronize, (Handle)) \
    F(cuEventElapsedTime, (float *, Handle, Handle)) F(cuModuleLoadData, (Handle *, const void *)) \
    F(cuModuleUnload, (Handle)) F(cuModuleGetFunction, (Handle *, Handle, const char *)) \
    F(cuFuncSetAttribute, (Handle, int, int)) F(cuFuncGetAttribute, (int *, int, Handle)) \
    F(cuOccupancyMaxActiveBlocksPerMultiprocessor, (int *, Handle, int, size_t)) \
    F(cuLaunchKernel, (Handle, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, Handle, void **, \
                       void **)) \
    F(cuTensorMapEncodeTiled, (void *, int, unsigned, uint64_t, const uint64_t *, const uint64_t *, const unsigned *, const unsigned *, \
                               int, int, int, int)) \
    F(cuStreamBeginCapture_v2, (Handle, int)) F(cuStreamEndCapture, (Handle, Handle *)) \
    F(cuStreamIsCapturing, (Handle, int *)) F(cuGraphInstantiateWithFlags, (Handle *, Handle, uint64_t)) \
    F(cuGraphLaunch, (Handle, Handle)) F(cuGraphDestroy, (Handle)) F(cuGraphExecDestroy, (Handle)) \
    F(cuGetErrorString, (int, const char **))
/* clang-format on */

/* clang-format off */
#define NVRTC_FUNCTIONS(F) \
    F(nvrtcCreateProgram, (Handle *, const char *, const char *, int, const char *const *, const char *const *)) \
    F(nvrtcCompileProgram, (Handle, int, const char *const *)) F(nvrtcDestroyProgram, (Handle *)) \
    F(nvrtcGetProgramLogSize, (Handle, size_t *)) F(nvrtcGetProgramLog, (Handle, char *)) \
    F(nvrtcGetCUBINSize, (Handle, size_t *)) F(nvrtcGetCUBIN, (Handle, char *))
/* clang-format on */

/* clang-format off */
#define BLAS_FUNCTIONS(F) \
    F(cublasLtCreate, (Handle *)) F(cublasLtDestroy, (Handle)) F(cublasLtMatmulDescCreate, (Handle *, int, int)) \
    F(cublasLtMatmulDescDestroy, (Handle)) F(cublasLtMatmulDescSetAttribute, (Handle, int, const void *, size_t)) \
    F(cublasLtMatrixLayoutCreate, (Handle *, int, uint64_t, uint64_t, int64_t)) \
    F(cublasLtMatrixLayoutDestroy, (Handle)) \
    F(cublasLtMatrixLayoutSetAttribute, (Handle, int, const void *, size_t)) \
    F(cublasLtMatmulPreferenceCreate, (Handle *)) F(cublasLtMatmulPreferenceDestroy, (Handle)) \
    F(cublasLtMatmulPreferenceSetAttribute, (Handle, int, const void *, size_t)) \
    F(cublasLtMatmulAlgoGetHeuristic, (Handle, Handle, Handle, Handle, Handle, Handle, Handle, int, FakeHeuristic *, \
                                       int *)) \
    F(cublasLtMatmulAlgoCheck, (Handle, Handle, Handle, Handle, Handle, Handle, const FakeAlgo *, FakeHeuristic *)) \
    F(cublasLtMatmul, (Handle, Handle, const void *, const void *, Handle, const void *, Handle, const void *, \
                       const void *, Handle, void *, Handle, const FakeAlgo *, void *, size_t, Handle))
/* clang-format on */

#define MEMBER(name, arguments) int(*name) arguments;
typedef struct Hand {
    DRIVER_FUNCTIONS(MEMBER) NVRTC_FUNCTIONS(MEMBER) BLAS_FUNCTIONS(MEMBER)
} Hand;
extern Hand cu;

/* A case ends the process at the first expectation that is not met. */
#define EXPECT(truth)      hand_expect(truth, #truth, __FILE__, __LINE__)
#define GIVES(error, call) hand_gives(error, call, #call, __FILE__, __LINE__)
#define GOOD(call)         GIVES(0, call)
void hand_expect(bool truth, const char *text, const char *file, int line);
void hand_gives(int error, int result, const char *text, const char *file, int line);

void hand_open(void);  /* the libraries */
void hand_start(void); /* and a context */
Handle hand_stream(void);
Handle hand_event(void);
uint64_t hand_memory(size_t bytes);
float *hand_pinned(size_t n);
void *hand_cubin(const char *text); /* of malloc */
Handle hand_function(const char *text, const char *name);
extern Handle hand_module; /* of the last one */
/* n floats, after everything that was handed over. */
void hand_read(uint64_t from, float *to, size_t n, Handle stream);

typedef struct Case {
    const char *name, *environment; /* "A=1 B=2" */
    void (*run)(void);
    int end; /* the status or the signal (negative) that the process ends with */
} Case;
/* All cases, each in a process; those named by the arguments only. Returns the status of the test. */
int hand_run(int argc, char **argv, const Case *of, size_t n);

/* The number in the line "count NAME n" or "leaked KIND n" of a log; -1: there is no such line. */
long hand_logged(const char *path, const char *what);

#endif
