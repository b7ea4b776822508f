/* compute_cuda.c - see compute.h and blocks.h: a GPU, its memory, kernels, products of matrices.
 *
 * Kernels and products follow each other in one stream; copies wait for what stands before them.
 * Products are those of cuBLAS, in float32 unless operands or results are of another type; sums are
 * float32.
 */
#include "blocks.h"
#include "compute.h"
#include "device_call.h"

#include <cublas_v2.h>
#include <cuda_runtime_api.h>
#include <stdlib.h>

struct Device {
    cublasHandle_t blas;
};
const bool device_has_threads = false;

static void must(cudaError_t error, const char *what)
{
    if (error != cudaSuccess)
        stop("%s: %s", what, cudaGetErrorString(error));
}

static void must_multiply(cublasStatus_t status, const char *what)
{
    if (status != CUBLAS_STATUS_SUCCESS)
        stop("%s: cuBLAS answers with status %d", what, (int)status);
}

/* ---- the device and its memory ---- */

char *device_room(Run *run, uint64_t bytes)
{
    void *memory;
    (void)run;
    cudaError_t error = cudaMalloc(&memory, bytes ? (size_t)bytes : 1);
    if (error != cudaSuccess)
        stop("%.1f MiB of the GPU's memory: %s", (double)bytes / 1048576, cudaGetErrorString(error));
    must(cudaMemset(memory, 0, (size_t)bytes), "zeroing memory");
    return memory;
}

void device_free(Run *run, char *memory)
{
    (void)run;
    must(cudaFree(memory), "freeing memory");
}

void device_open(Run *run, int64_t threads)
{
    int devices = 0, major = 0;
    (void)threads;
    cudaError_t error = cudaGetDeviceCount(&devices);
    if (error != cudaSuccess || devices < 1)
        stop("no GPU can be used: %s", error == cudaSuccess ? "there is none" : cudaGetErrorString(error));
    must(cudaSetDevice(0), "opening the GPU");
    must(cudaDeviceGetAttribute(&major, cudaDevAttrComputeCapabilityMajor, 0), "the GPU");
    if (major < 8)
        stop("the GPU is of compute capability %d; the kernels need 8.0 or more", major);
    run->device = room(sizeof *run->device);
    must_multiply(cublasCreate(&run->device->blas), "opening cuBLAS");
    /* parts of a sum are added in float32, too, also where it is rounded to 16 bits in the end */
    must_multiply(
        cublasSetMathMode(run->device->blas,
                          (cublasMath_t)(CUBLAS_DEFAULT_MATH | CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION)),
        "setting up cuBLAS");
    run->inputs = room(model.input_bytes);
    run->tensors = device_room(run, model.tensor_bytes);
    run->arena = device_room(run, model.arena_bytes);
}

void device_close(Run *run)
{
    must_multiply(cublasDestroy(run->device->blas), "closing cuBLAS");
    device_free(run, run->arena);
    device_free(run, run->tensors);
    free(run->inputs);
    free(run->device);
}

void device_put(Run *run, void *to, const void *from, uint64_t bytes)
{
    (void)run;
    if (bytes)
        must(cudaMemcpy(to, from, (size_t)bytes, cudaMemcpyHostToDevice), "copying to the GPU");
}

void device_get(const Run *run, void *to, const void *from, uint64_t bytes)
{
    (void)run;
    if (bytes)
        must(cudaMemcpy(to, from, (size_t)bytes, cudaMemcpyDeviceToHost), "copying from the GPU");
}

/* ---- kernels ---- */

static void ask_for_shared(const Kernel *k, uint64_t bytes)
{
    int most = 0;
    cudaError_t error = cudaFuncSetAttribute(k->code, cudaFuncAttributeMaxDynamicSharedMemorySize, (int)bytes);
    if (error == cudaSuccess)
        return;
    must(cudaDeviceGetAttribute(&most, cudaDevAttrMaxSharedMemoryPerBlockOptin, 0), "the GPU");
    stop("%s takes %.1f KiB of shared memory and the GPU has %.1f for a block: %s", k->name, (double)bytes / 1024,
         most / 1024.0, cudaGetErrorString(error));
}

void blocks(Run *run, int which, int64_t rows, int64_t blocks, uint64_t shared, void *const *p, const int64_t *n,
            const double *s)
{
    const Kernel *k = &kernel[which];
    CallArguments arguments;
    (void)run;
    if (rows <= 0)
        return;
    if (!call_arguments(&arguments, p, (size_t)k->buffers, n, (size_t)k->integers, s, (size_t)k->numbers, &rows))
        stop("%s: too many arguments", k->name);
    if (shared > CALL_SHARED_UNASKED)
        ask_for_shared(k, shared);
    struct dim3 grid = {call_blocks(blocks), 1, 1};
    struct dim3 block = {k->threads, 1, 1};
    must(cudaLaunchKernel(k->code, grid, block, arguments.at, (size_t)shared, NULL), k->name);
}

void copy_parts(Run *run, int64_t rows, int64_t bytes, int64_t from, int64_t to, const void *x, void *out)
{
    (void)run;
    must(cudaMemcpy2D(out, (size_t)to, x, (size_t)from, (size_t)bytes, (size_t)rows, cudaMemcpyDeviceToDevice),
         "copying rows");
}

/* ---- products ---- */

static void empty_sums(const Product *how, char *c)
{
    const size_t item = how->rounded ? (size_t)how->bytes : sizeof(real);
    for (int64_t i = 0; i < how->batch; i++)
        must(cudaMemset2D(c + (size_t)(i * how->step_c) * item, (size_t)how->ldc * item, 0, (size_t)how->n * item,
                          (size_t)how->m),
             "zeroing a product");
}

static cublasOperation_t operation(const ColumnMatrix *m) { return m->transposed ? CUBLAS_OP_T : CUBLAS_OP_N; }

/* Up to 65,535 products. */
static void multiply(Run *run, const Product *how, int64_t batch, const char *a, const char *b, char *c)
{
    const float one = 1, beta = how->accumulate ? 1 : 0;
    const cudaDataType type = how->bytes ? (cudaDataType)how->type : CUDA_R_32F;
    const RowProduct rows = {how->transpose_a, how->transpose_b, how->m,   how->n,      how->k,      batch,
                             how->lda,         how->ldb,         how->ldc, how->step_a, how->step_b, how->step_c};
    const ColumnProduct by = call_by_columns(&rows);
    must_multiply(cublasGemmStridedBatchedEx(run->device->blas, operation(&by.left), operation(&by.right),
                                             (int)by.out.rows, (int)by.out.columns, (int)how->k, &one, b, type,
                                             (int)by.left.ld, by.left.step, a, type, (int)by.right.ld, by.right.step,
                                             &beta, c, how->rounded ? type : CUDA_R_32F, (int)by.out.ld, by.out.step,
                                             (int)batch, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT),
                  "a product of matrices");
}

void product(Run *run, const Product *how, const void *a, const void *b, void *c)
{
    const int64_t real_bytes = sizeof(real), item = how->bytes ? how->bytes : real_bytes,
                  item_out = how->rounded ? item : real_bytes;
    if (how->m <= 0 || how->n <= 0 || how->batch <= 0)
        return;
    if (how->k <= 0) {
        if (!how->accumulate)
            empty_sums(how, c);
        return;
    }
    if (((how->m | how->n | how->k | how->lda | how->ldb | how->ldc) >> 31) != 0)
        stop("a product of %lld x %lld x %lld is too large for cuBLAS", (long long)how->m, (long long)how->n,
             (long long)how->k);
    for (int64_t done = 0, now; done < how->batch; done += now) {
        now = call_batch(how->batch - done);
        multiply(run, how, now, (const char *)a + done * how->step_a * item,
                 (const char *)b + done * how->step_b * item, (char *)c + done * how->step_c * item_out);
    }
}
