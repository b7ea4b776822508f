/* cuda_runtime_api.h - what programs for a GPU call of CUDA's runtime, for runtime.c to emulate.
 *
 * In:  nothing.     Out: the declarations of the toolkit's header of this name, as far as they are
 *      used here, with its names and meanings.
 * The one idea: a host program is compiled as it is against this header in place of the toolkit's;
 * its kernels.cu is compiled as C++ behind kernels.h.
 */
#ifndef EMULATED_CUDA_RUNTIME_API_H
#define EMULATED_CUDA_RUNTIME_API_H

#include <stddef.h>

typedef enum cudaError {
    cudaSuccess = 0,
    cudaErrorInvalidValue = 1,
    cudaErrorMemoryAllocation = 2,
    cudaErrorLaunchFailure = 719
} cudaError_t;
enum cudaMemcpyKind { cudaMemcpyHostToDevice = 1, cudaMemcpyDeviceToHost = 2, cudaMemcpyDeviceToDevice = 3 };
enum cudaDeviceAttr {
    cudaDevAttrComputeCapabilityMajor = 75,
    cudaDevAttrComputeCapabilityMinor = 76,
    cudaDevAttrMaxSharedMemoryPerBlockOptin = 97
};
enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
typedef enum cudaDataType { CUDA_R_32F = 0, CUDA_R_16F = 2, CUDA_R_16BF = 14 } cudaDataType;
typedef struct CUstream_st *cudaStream_t;
struct dim3 {
    unsigned x, y, z;
};

const char *cudaGetErrorString(cudaError_t error);
cudaError_t cudaGetDeviceCount(int *n);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr what, int device);
cudaError_t cudaMalloc(void **memory, size_t bytes);
cudaError_t cudaFree(void *memory);
cudaError_t cudaMemset(void *memory, int value, size_t bytes);
cudaError_t cudaMemset2D(void *memory, size_t pitch, int value, size_t width, size_t height);
cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind);
cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind);
cudaError_t cudaFuncSetAttribute(const void *code, enum cudaFuncAttribute what, int value);
cudaError_t cudaLaunchKernel(const void *code, struct dim3 grid, struct dim3 block, void **arguments, size_t shared,
                             cudaStream_t stream);
cudaError_t cudaDeviceSynchronize(void);

#endif
