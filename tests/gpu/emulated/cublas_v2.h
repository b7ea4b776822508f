/* cublas_v2.h - what programs for a GPU call of cuBLAS, for runtime.c to emulate. */
#ifndef EMULATED_CUBLAS_V2_H
#define EMULATED_CUBLAS_V2_H

#include "cuda_runtime_api.h"

typedef enum { CUBLAS_STATUS_SUCCESS = 0, CUBLAS_STATUS_INVALID_VALUE = 7 } cublasStatus_t;
typedef enum { CUBLAS_OP_N = 0, CUBLAS_OP_T = 1 } cublasOperation_t;
typedef enum { CUBLAS_COMPUTE_32F = 68 } cublasComputeType_t;
typedef enum { CUBLAS_GEMM_DEFAULT = -1 } cublasGemmAlgo_t;
typedef enum { CUBLAS_DEFAULT_MATH = 0, CUBLAS_MATH_DISALLOW_REDUCED_PRECISION_REDUCTION = 16 } cublasMath_t;
typedef struct cublasContext *cublasHandle_t;

cublasStatus_t cublasCreate(cublasHandle_t *handle);
cublasStatus_t cublasDestroy(cublasHandle_t handle);
cublasStatus_t cublasSetMathMode(cublasHandle_t handle, cublasMath_t mode);
/* Columns are what is contiguous. */
cublasStatus_t cublasGemmStridedBatchedEx(cublasHandle_t handle, cublasOperation_t transpose_a,
                                          cublasOperation_t transpose_b, int m, int n, int k, const void *alpha,
                                          const void *a, cudaDataType a_type, int lda, long long step_a, const void *b,
                                          cudaDataType b_type, int ldb, long long step_b, const void *beta, void *c,
                                          cudaDataType c_type, int ldc, long long step_c, int batch,
                                          cublasComputeType_t compute, cublasGemmAlgo_t algorithm);

#endif
