/* runtime.c - CUDA's runtime and cuBLAS on the CPU, for host programs of kernels.
 *
 * In:  calls of cuda_runtime_api.h and cublas_v2.h.
 * Out: what a GPU would have done; a mistake is an error and a sentence on stderr.
 * The one idea: memory of the device can be touched only during a call, so a host program that
 * reads a device's pointer crashes here as it would there.
 */
#define _GNU_SOURCE
#include "cublas_v2.h"

#include "emu/rules.h"
#include "support/half.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

/* A kernel has up to 8 KiB of shared memory of its own, which count. */
/* Of shared memory a kernel may have some of its own. */
enum {
    AREAS = 4096,
    FUNCTIONS = 4096,
    SHARED_UNASKED = EMU_SHARED_UNASKED - (8 << 10),
    SHARED_MOST = EMU_SHARED - 1024
};

/* What a block can have: that of an H100, or what EMULATED_SHARED says. */
static int shared_most(void)
{
    const char *said = getenv("EMULATED_SHARED");
    return said ? atoi(said) : SHARED_MOST;
}

typedef struct Area {
    char *at;
    size_t bytes, mapped;
} Area;
static Area area[AREAS];
static size_t n_area;

static struct {
    const void *code;
    int shared;
} allowed[FUNCTIONS];
static size_t n_allowed;

/* ---- errors ---- */

const char *cudaGetErrorString(cudaError_t error)
{
    switch (error) {
    case cudaSuccess: return "no error";
    case cudaErrorInvalidValue: return "invalid argument";
    case cudaErrorMemoryAllocation: return "out of memory";
    default: return "unspecified launch failure";
    }
}

static cudaError_t wrong(const char *what)
{
    fprintf(stderr, "emulated CUDA: %s\n", what);
    return cudaErrorInvalidValue;
}

/* ---- memory ---- */

static void protect(int how)
{
    for (size_t i = 0; i < n_area; i++)
        if (area[i].at)
            mprotect(area[i].at, area[i].mapped, how);
}

static void begin_call(void) { protect(PROT_READ | PROT_WRITE); }
static void end_call(void) { protect(PROT_NONE); }

/* Bytes that lie in memory of the device. */
static int on_device(const void *at, size_t bytes)
{
    for (size_t i = 0; i < n_area; i++)
        if (area[i].at && (const char *)at >= area[i].at && (const char *)at + bytes <= area[i].at + area[i].bytes)
            return 1;
    return 0;
}

cudaError_t cudaMalloc(void **memory, size_t bytes)
{
    size_t mapped = (bytes + 8191) / 4096 * 4096;
    void *m = mmap(NULL, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (m == MAP_FAILED || n_area == AREAS)
        return cudaErrorMemoryAllocation;
    memset(m, 0xff, mapped); /* what nobody has written is no number */
    mprotect(m, mapped, PROT_NONE);
    area[n_area++] = (Area){m, bytes, mapped};
    *memory = m;
    return cudaSuccess;
}

cudaError_t cudaFree(void *memory)
{
    for (size_t i = 0; i < n_area; i++)
        if (memory && area[i].at == memory) {
            munmap(memory, area[i].mapped);
            area[i] = area[--n_area];
            return cudaSuccess;
        }
    return memory ? wrong("memory is freed that was not given") : cudaSuccess;
}

cudaError_t cudaMemset2D(void *memory, size_t pitch, int value, size_t width, size_t height)
{
    if (height && !on_device(memory, (height - 1) * pitch + width))
        return wrong("memory is set that is not the device's");
    begin_call();
    for (size_t i = 0; i < height; i++)
        memset((char *)memory + i * pitch, value, width);
    end_call();
    return cudaSuccess;
}

cudaError_t cudaMemset(void *memory, int value, size_t bytes) { return cudaMemset2D(memory, bytes, value, bytes, 1); }

cudaError_t cudaMemcpy(void *to, const void *from, size_t bytes, enum cudaMemcpyKind kind)
{
    int to_device = kind != cudaMemcpyDeviceToHost, from_device = kind != cudaMemcpyHostToDevice;
    if (on_device(to, bytes) != to_device || on_device(from, bytes) != from_device)
        return wrong("a copy of another direction than it says, or out of bounds");
    begin_call();
    memcpy(to, from, bytes);
    end_call();
    return cudaSuccess;
}

/* On the device alone. */
cudaError_t cudaMemcpy2D(void *to, size_t to_pitch, const void *from, size_t from_pitch, size_t width, size_t height,
                         enum cudaMemcpyKind kind)
{
    if (kind != cudaMemcpyDeviceToDevice || width > to_pitch || width > from_pitch ||
        (height &&
         (!on_device(to, (height - 1) * to_pitch + width) || !on_device(from, (height - 1) * from_pitch + width))))
        return wrong("rows are copied that are not the device's, or overlap");
    begin_call();
    for (size_t i = 0; i < height; i++)
        memcpy((char *)to + i * to_pitch, (const char *)from + i * from_pitch, width);
    end_call();
    return cudaSuccess;
}

/* ---- the device ---- */

cudaError_t cudaGetDeviceCount(int *n)
{
    *n = 1;
    return cudaSuccess;
}

cudaError_t cudaSetDevice(int device) { return device ? wrong("there is one device") : cudaSuccess; }

cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr what, int device)
{
    *value = what == cudaDevAttrComputeCapabilityMajor         ? 8
             : what == cudaDevAttrMaxSharedMemoryPerBlockOptin ? shared_most()
                                                               : 0;
    return cudaSetDevice(device);
}

/* ---- kernels ---- */

cudaError_t cudaFuncSetAttribute(const void *code, enum cudaFuncAttribute what, int value)
{
    size_t i = 0;
    if (what != cudaFuncAttributeMaxDynamicSharedMemorySize || value > shared_most())
        return wrong("an attribute of a function that is not known, or too much shared memory");
    while (i < n_allowed && allowed[i].code != code)
        i++;
    if (i == FUNCTIONS)
        return cudaErrorMemoryAllocation;
    n_allowed += i == n_allowed;
    allowed[i].code = code;
    allowed[i].shared = value;
    return cudaSuccess;
}

static size_t shared_of(const void *code)
{
    for (size_t i = 0; i < n_allowed; i++)
        if (allowed[i].code == code)
            return (size_t)allowed[i].shared;
    return SHARED_UNASKED;
}

typedef struct EmuLaunch { /* of cuemu.h */
    void (*kernel)(void **arguments);
    void **arguments;
    unsigned blocks, threads;
    uint64_t shared;
    int descending, lazy;
    const unsigned *order;
} EmuLaunch;
const char *emu_run(const EmuLaunch *l);

cudaError_t cudaLaunchKernel(const void *code, struct dim3 grid, struct dim3 block, void **arguments, size_t shared,
                             cudaStream_t stream)
{
    EmuLaunch l = {NULL, arguments, grid.x, block.x, shared, 0, 0, NULL};
    (void)stream;
    memcpy(&l.kernel, &code, sizeof code);
    if (grid.y != 1 || grid.z != 1 || block.y != 1 || block.z != 1)
        return wrong("a grid of more than one dimension");
    if (shared > SHARED_UNASKED && shared > shared_of(code))
        return wrong("more shared memory than was asked for");
    begin_call();
    const char *trouble = emu_run(&l);
    end_call();
    if (!trouble)
        return cudaSuccess;
    fprintf(stderr, "emulated CUDA: %s\n", trouble);
    return cudaErrorLaunchFailure;
}

cudaError_t cudaDeviceSynchronize(void) { return cudaSuccess; }

/* ---- cuBLAS ---- */

static cublasMath_t math_mode;

cublasStatus_t cublasCreate(cublasHandle_t *handle)
{
    static char it;
    *handle = (cublasHandle_t)(void *)&it;
    math_mode = CUBLAS_DEFAULT_MATH;
    return CUBLAS_STATUS_SUCCESS;
}

cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode)
{
    math_mode = mode;
    return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

cublasStatus_t cublasDestroy(cublasHandle_t handle)
{
    return handle ? CUBLAS_STATUS_SUCCESS : CUBLAS_STATUS_INVALID_VALUE;
}

static Half half_of(cudaDataType type) { return type == CUDA_R_16BF ? HALF_BF16 : HALF_FP16; }

static float element(const void *matrix, cudaDataType type, long long i)
{
    if (type == CUDA_R_32F)
        return ((const float *)matrix)[i];
    return (float)of_half(((const uint16_t *)matrix)[i], half_of(type));
}

static void put_element(void *matrix, cudaDataType type, long long i, float x)
{
    if (type == CUDA_R_32F)
        ((float *)matrix)[i] = x;
    else
        ((uint16_t *)matrix)[i] = to_half((double)x, half_of(type));
}

cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transpose_a,
                                          cublasOperation_t transpose_b, int m, int n, int k, const void *alpha,
                                          const void *a, cudaDataType a_type, int lda, long long step_a, const void *b,
                                          cudaDataType b_type, int ldb, long long step_b, const void *beta, void *c,
                                          cudaDataType c_type, int ldc, long long step_c, int batch,
                                          cublasComputeType_t compute, cublasGemmAlgo_t algorithm)
{
    int ta = transpose_a == CUBLAS_OP_T, tb = transpose_b == CUBLAS_OP_T;
    if (!handle || m < 0 || n < 0 || k < 0 || batch < 0 || a_type != b_type ||
        (c_type != CUDA_R_32F && c_type != a_type) || lda < (ta ? k : m) || ldb < (tb ? n : k) || ldc < m ||
        compute != CUBLAS_COMPUTE_32F || algorithm != CUBLAS_GEMM_DEFAULT || batch > 65535)
        return CUBLAS_STATUS_INVALID_VALUE;
    if (c_type != CUDA_R_32F && !(math_mode & CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)) {
        fprintf(stderr, "emulated: parts of a sum may be rounded to 16 bits before they are added\n");
        return CUBLAS_STATUS_INVALID_VALUE;
    }
    begin_call();
    for (int at = 0; at < batch; at++)
        for (int j = 0; j < n; j++)
            for (int i = 0; i < m; i++) {
                const long long to = at * step_c + (long long)j * ldc + i;
                float sum = 0;
                for (int l = 0; l < k; l++)
                    sum += element(a, a_type, at * step_a + (ta ? (long long)i * lda + l : (long long)l * lda + i)) *
                           element(b, b_type, at * step_b + (tb ? (long long)l * ldb + j : (long long)j * ldb + l));
                put_element(c, c_type, to,
                            *(const float *)alpha * sum +
                                (*(const float *)beta != 0 ? *(const float *)beta * element(c, c_type, to) : 0));
            }
    end_call();
    return CUBLAS_STATUS_SUCCESS;
}
