/* abi.h - what the fakes and their tests know of CUDA's C interfaces: numbers, and structures that callers fill.
 *
 * The one idea: every number stands in a list with the name that the real headers give it, so that a test can
 * compare the lists with these headers where they are.
 */
#ifndef FAKE_CUDA_ABI_H
#define FAKE_CUDA_ABI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* NUMBER(ours, value, theirs) */
#define FAKE_DRIVER_NUMBERS(NUMBER)                                                                                    \
    NUMBER(E_OK, 0, CUDA_SUCCESS)                                                                                      \
    NUMBER(E_VALUE, 1, CUDA_ERROR_INVALID_VALUE)                                                                       \
    NUMBER(E_MEMORY, 2, CUDA_ERROR_OUT_OF_MEMORY)                                                                      \
    NUMBER(E_NOT_INITIALIZED, 3, CUDA_ERROR_NOT_INITIALIZED)                                                           \
    NUMBER(E_NO_DEVICE, 100, CUDA_ERROR_NO_DEVICE)                                                                     \
    NUMBER(E_DEVICE, 101, CUDA_ERROR_INVALID_DEVICE)                                                                   \
    NUMBER(E_IMAGE, 200, CUDA_ERROR_INVALID_IMAGE)                                                                     \
    NUMBER(E_CONTEXT, 201, CUDA_ERROR_INVALID_CONTEXT)                                                                 \
    NUMBER(E_NO_BINARY, 209, CUDA_ERROR_NO_BINARY_FOR_GPU)                                                             \
    NUMBER(E_ECC, 214, CUDA_ERROR_ECC_UNCORRECTABLE)                                                                   \
    NUMBER(E_HANDLE, 400, CUDA_ERROR_INVALID_HANDLE)                                                                   \
    NUMBER(E_NOT_FOUND, 500, CUDA_ERROR_NOT_FOUND)                                                                     \
    NUMBER(E_NOT_READY, 600, CUDA_ERROR_NOT_READY)                                                                     \
    NUMBER(E_ADDRESS, 700, CUDA_ERROR_ILLEGAL_ADDRESS)                                                                 \
    NUMBER(E_RESOURCES, 701, CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES)                                                       \
    NUMBER(E_DESTROYED, 709, CUDA_ERROR_CONTEXT_IS_DESTROYED)                                                          \
    NUMBER(E_MISALIGNED, 716, CUDA_ERROR_MISALIGNED_ADDRESS)                                                           \
    NUMBER(E_LAUNCH, 719, CUDA_ERROR_LAUNCH_FAILED)                                                                    \
    NUMBER(E_NOT_SUPPORTED, 801, CUDA_ERROR_NOT_SUPPORTED)                                                             \
    NUMBER(E_CAPTURE_UNSUPPORTED, 900, CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED)                                          \
    NUMBER(E_CAPTURE_INVALIDATED, 901, CUDA_ERROR_STREAM_CAPTURE_INVALIDATED)                                          \
    NUMBER(E_CAPTURE_MERGE, 902, CUDA_ERROR_STREAM_CAPTURE_MERGE)                                                      \
    NUMBER(E_CAPTURE_UNMATCHED, 903, CUDA_ERROR_STREAM_CAPTURE_UNMATCHED)                                              \
    NUMBER(E_CAPTURE_UNJOINED, 904, CUDA_ERROR_STREAM_CAPTURE_UNJOINED)                                                \
    NUMBER(E_CAPTURE_ISOLATION, 905, CUDA_ERROR_STREAM_CAPTURE_ISOLATION)                                              \
    NUMBER(E_CAPTURE_IMPLICIT, 906, CUDA_ERROR_STREAM_CAPTURE_IMPLICIT)                                                \
    NUMBER(E_CAPTURED_EVENT, 907, CUDA_ERROR_CAPTURED_EVENT)                                                           \
    NUMBER(E_CAPTURE_THREAD, 908, CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD)                                              \
    NUMBER(E_UNKNOWN, 999, CUDA_ERROR_UNKNOWN)                                                                         \
    NUMBER(D_THREADS, 1, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK)                                                    \
    NUMBER(D_BLOCK_X, 2, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X)                                                          \
    NUMBER(D_BLOCK_Y, 3, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y)                                                          \
    NUMBER(D_BLOCK_Z, 4, CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z)                                                          \
    NUMBER(D_GRID_X, 5, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X)                                                            \
    NUMBER(D_GRID_Y, 6, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y)                                                            \
    NUMBER(D_GRID_Z, 7, CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z)                                                            \
    NUMBER(D_SHARED, 8, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK)                                               \
    NUMBER(D_WARP, 10, CU_DEVICE_ATTRIBUTE_WARP_SIZE)                                                                  \
    NUMBER(D_PITCH, 11, CU_DEVICE_ATTRIBUTE_MAX_PITCH)                                                                 \
    NUMBER(D_REGISTERS, 12, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK)                                               \
    NUMBER(D_CLOCK, 13, CU_DEVICE_ATTRIBUTE_CLOCK_RATE)                                                                \
    NUMBER(D_SMS, 16, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)                                                        \
    NUMBER(D_INTEGRATED, 18, CU_DEVICE_ATTRIBUTE_INTEGRATED)                                                           \
    NUMBER(D_COMPUTE_MODE, 20, CU_DEVICE_ATTRIBUTE_COMPUTE_MODE)                                                       \
    NUMBER(D_CONCURRENT, 31, CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS)                                                   \
    NUMBER(D_ECC, 32, CU_DEVICE_ATTRIBUTE_ECC_ENABLED)                                                                 \
    NUMBER(D_PCI_BUS, 33, CU_DEVICE_ATTRIBUTE_PCI_BUS_ID)                                                              \
    NUMBER(D_PCI_DEVICE, 34, CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID)                                                        \
    NUMBER(D_MEMORY_CLOCK, 36, CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE)                                                  \
    NUMBER(D_BUS_WIDTH, 37, CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH)                                               \
    NUMBER(D_L2, 38, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE)                                                                \
    NUMBER(D_THREADS_SM, 39, CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR)                                       \
    NUMBER(D_COPY_ENGINES, 40, CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT)                                                 \
    NUMBER(D_UNIFIED, 41, CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING)                                                      \
    NUMBER(D_PCI_DOMAIN, 50, CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID)                                                        \
    NUMBER(D_MAJOR, 75, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)                                                  \
    NUMBER(D_MINOR, 76, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)                                                  \
    NUMBER(D_SHARED_SM, 81, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR)                                  \
    NUMBER(D_REGISTERS_SM, 82, CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_MULTIPROCESSOR)                                   \
    NUMBER(D_MANAGED, 83, CU_DEVICE_ATTRIBUTE_MANAGED_MEMORY)                                                          \
    NUMBER(D_SHARED_OPT_IN, 97, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN)                                 \
    NUMBER(D_BLOCKS_SM, 106, CU_DEVICE_ATTRIBUTE_MAX_BLOCKS_PER_MULTIPROCESSOR)                                        \
    NUMBER(D_RESERVED_SHARED, 111, CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK)                               \
    NUMBER(F_THREADS, 0, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)                                                      \
    NUMBER(F_SHARED, 1, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)                                                           \
    NUMBER(F_CONSTANT, 2, CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)                                                          \
    NUMBER(F_LOCAL, 3, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)                                                             \
    NUMBER(F_REGISTERS, 4, CU_FUNC_ATTRIBUTE_NUM_REGS)                                                                 \
    NUMBER(F_PTX, 5, CU_FUNC_ATTRIBUTE_PTX_VERSION)                                                                    \
    NUMBER(F_BINARY, 6, CU_FUNC_ATTRIBUTE_BINARY_VERSION)                                                              \
    NUMBER(F_DYNAMIC, 8, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)                                              \
    NUMBER(F_CARVEOUT, 9, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT)                                          \
    NUMBER(STREAM_NON_BLOCKING, 1, CU_STREAM_NON_BLOCKING)                                                             \
    NUMBER(EVENT_DEFAULT, 0, CU_EVENT_DEFAULT)                                                                         \
    NUMBER(EVENT_BLOCKING, 1, CU_EVENT_BLOCKING_SYNC)                                                                  \
    NUMBER(EVENT_NO_TIMING, 2, CU_EVENT_DISABLE_TIMING)                                                                \
    NUMBER(RECORD_EXTERNAL, 1, CU_EVENT_RECORD_EXTERNAL)                                                               \
    NUMBER(HOST_PORTABLE, 1, CU_MEMHOSTALLOC_PORTABLE)                                                                 \
    NUMBER(HOST_MAPPED, 2, CU_MEMHOSTALLOC_DEVICEMAP)                                                                  \
    NUMBER(HOST_COMBINED, 4, CU_MEMHOSTALLOC_WRITECOMBINED)                                                            \
    NUMBER(CAPTURE_NONE, 0, CU_STREAM_CAPTURE_STATUS_NONE)                                                             \
    NUMBER(CAPTURE_ACTIVE, 1, CU_STREAM_CAPTURE_STATUS_ACTIVE)                                                         \
    NUMBER(CAPTURE_INVALID, 2, CU_STREAM_CAPTURE_STATUS_INVALIDATED)                                                   \
    NUMBER(CAPTURE_GLOBAL, 0, CU_STREAM_CAPTURE_MODE_GLOBAL)                                                           \
    NUMBER(CAPTURE_THREAD, 1, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL)                                                     \
    NUMBER(CAPTURE_RELAXED, 2, CU_STREAM_CAPTURE_MODE_RELAXED)                                                         \
    NUMBER(MEMORY_HOST, 1, CU_MEMORYTYPE_HOST)                                                                         \
    NUMBER(MEMORY_DEVICE, 2, CU_MEMORYTYPE_DEVICE)                                                                     \
    NUMBER(LIMIT_MALLOC_HEAP, 2, CU_LIMIT_MALLOC_HEAP_SIZE)                                                            \
    NUMBER(MAP_INT32, 3, CU_TENSOR_MAP_DATA_TYPE_INT32)                                                                \
    NUMBER(MAP_FLOAT16, 6, CU_TENSOR_MAP_DATA_TYPE_FLOAT16)                                                            \
    NUMBER(MAP_BFLOAT16, 9, CU_TENSOR_MAP_DATA_TYPE_BFLOAT16)                                                          \
    NUMBER(MAP_TYPES, 12, CU_TENSOR_MAP_DATA_TYPE_TFLOAT32_FTZ)                                                        \
    NUMBER(MAP_PLAIN, 0, CU_TENSOR_MAP_INTERLEAVE_NONE)                                                                \
    NUMBER(MAP_BY_32, 2, CU_TENSOR_MAP_INTERLEAVE_32B)                                                                 \
    NUMBER(MAP_TURNED_32, 1, CU_TENSOR_MAP_SWIZZLE_32B)                                                                \
    NUMBER(MAP_TURNED_128, 3, CU_TENSOR_MAP_SWIZZLE_128B)                                                              \
    NUMBER(MAP_L2_128, 2, CU_TENSOR_MAP_L2_PROMOTION_L2_128B)                                                          \
    NUMBER(MAP_ZEROS, 0, CU_TENSOR_MAP_FLOAT_OOB_FILL_NONE)                                                            \
    NUMBER(MAP_NAN, 1, CU_TENSOR_MAP_FLOAT_OOB_FILL_NAN_REQUEST_ZERO_FMA)

#define FAKE_NVRTC_NUMBERS(NUMBER)                                                                                     \
    NUMBER(N_OK, 0, NVRTC_SUCCESS)                                                                                     \
    NUMBER(N_MEMORY, 1, NVRTC_ERROR_OUT_OF_MEMORY)                                                                     \
    NUMBER(N_CREATION, 2, NVRTC_ERROR_PROGRAM_CREATION_FAILURE)                                                        \
    NUMBER(N_INPUT, 3, NVRTC_ERROR_INVALID_INPUT)                                                                      \
    NUMBER(N_PROGRAM, 4, NVRTC_ERROR_INVALID_PROGRAM)                                                                  \
    NUMBER(N_OPTION, 5, NVRTC_ERROR_INVALID_OPTION)                                                                    \
    NUMBER(N_COMPILATION, 6, NVRTC_ERROR_COMPILATION)                                                                  \
    NUMBER(N_BUILTIN, 7, NVRTC_ERROR_BUILTIN_OPERATION_FAILURE)                                                        \
    NUMBER(N_INTERNAL, 11, NVRTC_ERROR_INTERNAL_ERROR)

#define FAKE_BLAS_NUMBERS(NUMBER)                                                                                      \
    NUMBER(B_OK, 0, CUBLAS_STATUS_SUCCESS)                                                                             \
    NUMBER(B_NOT_INITIALIZED, 1, CUBLAS_STATUS_NOT_INITIALIZED)                                                        \
    NUMBER(B_ALLOC, 3, CUBLAS_STATUS_ALLOC_FAILED)                                                                     \
    NUMBER(B_VALUE, 7, CUBLAS_STATUS_INVALID_VALUE)                                                                    \
    NUMBER(B_ARCH, 8, CUBLAS_STATUS_ARCH_MISMATCH)                                                                     \
    NUMBER(B_EXECUTION, 13, CUBLAS_STATUS_EXECUTION_FAILED)                                                            \
    NUMBER(B_INTERNAL, 14, CUBLAS_STATUS_INTERNAL_ERROR)                                                               \
    NUMBER(B_NOT_SUPPORTED, 15, CUBLAS_STATUS_NOT_SUPPORTED)                                                           \
    NUMBER(R_32F, 0, CUDA_R_32F)                                                                                       \
    NUMBER(R_64F, 1, CUDA_R_64F)                                                                                       \
    NUMBER(R_16F, 2, CUDA_R_16F)                                                                                       \
    NUMBER(R_16BF, 14, CUDA_R_16BF)                                                                                    \
    NUMBER(OP_N, 0, CUBLAS_OP_N)                                                                                       \
    NUMBER(OP_T, 1, CUBLAS_OP_T)                                                                                       \
    NUMBER(COMPUTE_16F, 64, CUBLAS_COMPUTE_16F)                                                                        \
    NUMBER(COMPUTE_16F_PEDANTIC, 65, CUBLAS_COMPUTE_16F_PEDANTIC)                                                      \
    NUMBER(COMPUTE_32F, 68, CUBLAS_COMPUTE_32F)                                                                        \
    NUMBER(COMPUTE_32F_PEDANTIC, 69, CUBLAS_COMPUTE_32F_PEDANTIC)                                                      \
    NUMBER(COMPUTE_32F_FAST_16F, 74, CUBLAS_COMPUTE_32F_FAST_16F)                                                      \
    NUMBER(COMPUTE_32F_FAST_16BF, 75, CUBLAS_COMPUTE_32F_FAST_16BF)                                                    \
    NUMBER(COMPUTE_32F_FAST_TF32, 77, CUBLAS_COMPUTE_32F_FAST_TF32)                                                    \
    NUMBER(LAYOUT_TYPE, 0, CUBLASLT_MATRIX_LAYOUT_TYPE)                                                                \
    NUMBER(LAYOUT_ORDER, 1, CUBLASLT_MATRIX_LAYOUT_ORDER)                                                              \
    NUMBER(LAYOUT_ROWS, 2, CUBLASLT_MATRIX_LAYOUT_ROWS)                                                                \
    NUMBER(LAYOUT_COLS, 3, CUBLASLT_MATRIX_LAYOUT_COLS)                                                                \
    NUMBER(LAYOUT_LD, 4, CUBLASLT_MATRIX_LAYOUT_LD)                                                                    \
    NUMBER(LAYOUT_BATCH, 5, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT)                                                        \
    NUMBER(LAYOUT_STRIDE, 6, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET)                                              \
    NUMBER(ORDER_COL, 0, CUBLASLT_ORDER_COL)                                                                           \
    NUMBER(ORDER_ROW, 1, CUBLASLT_ORDER_ROW)                                                                           \
    NUMBER(DESC_COMPUTE, 0, CUBLASLT_MATMUL_DESC_COMPUTE_TYPE)                                                         \
    NUMBER(DESC_SCALE, 1, CUBLASLT_MATMUL_DESC_SCALE_TYPE)                                                             \
    NUMBER(DESC_POINTER_MODE, 2, CUBLASLT_MATMUL_DESC_POINTER_MODE)                                                    \
    NUMBER(DESC_TRANSA, 3, CUBLASLT_MATMUL_DESC_TRANSA)                                                                \
    NUMBER(DESC_TRANSB, 4, CUBLASLT_MATMUL_DESC_TRANSB)                                                                \
    NUMBER(DESC_TRANSC, 5, CUBLASLT_MATMUL_DESC_TRANSC)                                                                \
    NUMBER(DESC_EPILOGUE, 7, CUBLASLT_MATMUL_DESC_EPILOGUE)                                                            \
    NUMBER(EPILOGUE_DEFAULT, 1, CUBLASLT_EPILOGUE_DEFAULT)                                                             \
    NUMBER(PREF_SEARCH, 0, CUBLASLT_MATMUL_PREF_SEARCH_MODE)                                                           \
    NUMBER(PREF_WORKSPACE, 1, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES)                                                \
    NUMBER(PREF_REDUCTION, 3, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK)                                              \
    NUMBER(PREF_ALIGN_A, 5, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES)                                                \
    NUMBER(PREF_ALIGN_B, 6, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES)                                                \
    NUMBER(PREF_ALIGN_C, 7, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES)                                                \
    NUMBER(PREF_ALIGN_D, 8, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES)                                                \
    NUMBER(PREF_WAVES, 9, CUBLASLT_MATMUL_PREF_MAX_WAVES_COUNT)                                                        \
    NUMBER(PREF_IMPL, 12, CUBLASLT_MATMUL_PREF_IMPL_MASK)                                                              \
    NUMBER(REDUCE_NONE, 0, CUBLASLT_REDUCTION_SCHEME_NONE)                                                             \
    NUMBER(REDUCE_INPLACE, 1, CUBLASLT_REDUCTION_SCHEME_INPLACE)                                                       \
    NUMBER(REDUCE_COMPUTE, 2, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE)                                                  \
    NUMBER(REDUCE_OUTPUT, 4, CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE)                                                    \
    NUMBER(REDUCE_ALL, 7, CUBLASLT_REDUCTION_SCHEME_MASK)                                                              \
    NUMBER(ALGO_ID, 0, CUBLASLT_ALGO_CONFIG_ID)                                                                        \
    NUMBER(ALGO_TILE, 1, CUBLASLT_ALGO_CONFIG_TILE_ID)                                                                 \
    NUMBER(ALGO_SPLIT_K, 2, CUBLASLT_ALGO_CONFIG_SPLITK_NUM)                                                           \
    NUMBER(ALGO_REDUCTION, 3, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME)                                                   \
    NUMBER(ALGO_SWIZZLE, 4, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING)                                                        \
    NUMBER(ALGO_CUSTOM, 5, CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION)                                                         \
    NUMBER(ALGO_STAGES, 6, CUBLASLT_ALGO_CONFIG_STAGES_ID)                                                             \
    NUMBER(ALGO_INNER, 7, CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID)                                                         \
    NUMBER(ALGO_CLUSTER, 8, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID)

#define FAKE_ENUMERATOR(ours, value, theirs) ours = value,
enum { FAKE_DRIVER_NUMBERS(FAKE_ENUMERATOR) FAKE_NVRTC_NUMBERS(FAKE_ENUMERATOR) FAKE_BLAS_NUMBERS(FAKE_ENUMERATOR) };
#undef FAKE_ENUMERATOR

/* `extra` of cuLaunchKernel: pairs of these and a value, up to the end. */
#define FAKE_EXTRA_END    ((void *)0)
#define FAKE_EXTRA_BUFFER ((void *)1)
#define FAKE_EXTRA_SIZE   ((void *)2)

/* CUDA_MEMCPY2D */
typedef struct FakeCopy2D {
    size_t from_x, from_y;
    int from_kind; /* MEMORY_HOST, MEMORY_DEVICE */
    const void *from_host;
    uint64_t from_device;
    void *from_array;
    size_t from_pitch;
    size_t to_x, to_y;
    int to_kind;
    void *to_host;
    uint64_t to_device;
    void *to_array;
    size_t to_pitch;
    size_t width, height; /* bytes, rows */
} FakeCopy2D;

/* cublasLtMatmulAlgo_t and cublasLtMatmulHeuristicResult_t */
typedef struct FakeAlgo {
    uint64_t data[8];
} FakeAlgo;
typedef struct FakeHeuristic {
    FakeAlgo algo;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} FakeHeuristic;

#endif
