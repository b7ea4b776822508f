/* cuda_api.h - the functions of the driver and of cuBLASLt that a run calls, by prototypes of our own.
 *
 * In:  the libraries that cuda_open.h finds.   Out: tables of functions, or a sentence.
 * The one idea: types and numbers are those of the libraries' interface for programs that are compiled already, so
 * no header of CUDA is needed. Functions return 0 or a number of an error.
 */
#ifndef VWN_CUDA_API_H
#define VWN_CUDA_API_H

#include "cuda_open.h"

typedef uint64_t CudaAddress; /* in the device's memory */
typedef struct CudaContextOf *CudaContext;
typedef struct CudaStreamOf *CudaStream;
typedef struct CudaEventOf *CudaEvent;
typedef struct CudaModuleOf *CudaModule;
typedef struct CudaFunctionOf *CudaKernel;
typedef struct CudaRecordOf *CudaRecord; /* CUgraph */
typedef struct CudaGraphOf *CudaGraph;   /* CUgraphExec */

enum { CUDA_OUT_OF_MEMORY = 2 };                               /* of the errors */
enum { CUDA_DEVICE_MEMORY = 2 };                               /* kinds of memory */
enum { CUDA_STREAM_NON_BLOCKING = 1, CUDA_EVENT_NO_TIME = 2 }; /* flags */
enum { CUDA_EVENT_IN_GRAPH = 1 };                              /* of a record: it happens when the graph runs */
enum { CUDA_CAPTURE_THREAD = 1 };                              /* forbids this thread what a record cannot hold */
enum { CUDA_SHARED_DYNAMIC = 8 };                              /* attributes of a function */
enum { CUDA_MULTIPROCESSORS = 16, CUDA_COMPUTE_MODE = 20, CUDA_SHARED_MOST = 97 }; /* and of a device */
enum { CUDA_MODE_PROHIBITED = 2 };

typedef struct CudaCopy2D {
    size_t from_x, from_y;
    int from_kind;
    const void *from_host;
    CudaAddress from;
    void *from_array;
    size_t from_pitch, to_x, to_y;
    int to_kind;
    void *to_host;
    CudaAddress to;
    void *to_array;
    size_t to_pitch, width, height; /* bytes, rows */
} CudaCopy2D;

/* CUtensorMap: a tensor as hardware copies it, and what cuTensorMapEncodeTiled() is told of it. */
typedef struct CudaMap {
    _Alignas(128) uint64_t word[16];
} CudaMap;
enum {
#define DTYPE(id, code, lt, of_map, ...)                                                                               \
    LT_##id = lt, CUDA_MAP_##id = of_map, /* types of elements, in products and in maps */
#include "compiler/graph/dtype.def"
#undef DTYPE
};
enum { CUDA_MAP_PLAIN = 0, CUDA_MAP_TURNED_128 = 3, CUDA_MAP_L2_128 = 2, CUDA_MAP_ZEROS = 0 };

typedef struct CudaApi {
    int (*retain)(CudaContext *out, int device);
    int (*release)(int device);
    int (*set_current)(CudaContext context);
    int (*memory_info)(size_t *free, size_t *total);
    int (*take)(CudaAddress *out, size_t bytes);
    int (*give)(CudaAddress memory);
    int (*take_host)(void **out, size_t bytes, unsigned flags); /* that the device can copy from */
    int (*give_host)(void *memory);
    int (*up)(CudaAddress to, const void *from, size_t bytes, CudaStream stream);
    int (*down)(void *to, CudaAddress from, size_t bytes, CudaStream stream);
    int (*across)(CudaAddress to, CudaAddress from, size_t bytes, CudaStream stream);
    int (*copy_2d)(const CudaCopy2D *how, CudaStream stream);
    int (*fill)(CudaAddress to, unsigned char byte, size_t bytes, CudaStream stream);
    int (*new_stream)(CudaStream *out, unsigned flags);
    int (*end_stream)(CudaStream stream);
    int (*wait_stream)(CudaStream stream);                               /* the host waits */
    int (*wait_for)(CudaStream stream, CudaEvent event, unsigned flags); /* the stream waits */
    int (*new_event)(CudaEvent *out, unsigned flags);
    int (*end_event)(CudaEvent event);
    int (*record)(CudaEvent event, CudaStream stream);
    int (*wait_event)(CudaEvent event); /* the host waits */
    int (*record_flagged)(CudaEvent event, CudaStream stream, unsigned flags);
    int (*elapsed)(float *ms, CudaEvent from, CudaEvent to); /* both have a time, and have happened */
    int (*load)(CudaModule *out, const void *cubin);
    int (*unload)(CudaModule module);
    int (*function)(CudaKernel *out, CudaModule module, const char *name);
    int (*set_attribute)(CudaKernel function, int attribute, int value);
    int (*occupancy)(int *blocks, CudaKernel function, int threads, size_t shared); /* of a multiprocessor */
    int (*launch)(CudaKernel function, unsigned x, unsigned y, unsigned z, unsigned block_x, unsigned block_y,
                  unsigned block_z, unsigned shared, CudaStream stream, void **argument, void **extra);
    int (*make_map)(CudaMap *out, int type, uint32_t rank, void *memory, const uint64_t *extent, const uint64_t *stride,
                    const uint32_t *box, const uint32_t *step, int interleave, int turned, int l2, int beyond);
    int (*begin_capture)(CudaStream stream, int mode); /* calls are recorded instead of made */
    int (*end_capture)(CudaStream stream, CudaRecord *out);
    int (*make_graph)(CudaGraph *out, CudaRecord record, unsigned long long flags);
    int (*launch_graph)(CudaGraph graph, CudaStream stream);
    int (*end_graph)(CudaGraph graph);
    int (*end_record)(CudaRecord record);
} CudaApi;
/* Of a driver that is open. */
bool cuda_api_open(CudaApi *out, char why[512]);
/* "an illegal memory access was encountered (error 700)" */
void cuda_error_text(const CudaDriver *d, int error, char text[160]);

/* ---- cuBLASLt ---- */

typedef struct LtHandleOf *LtHandle;
typedef struct LtProductOf *LtProduct; /* cublasLtMatmulDesc_t */
typedef struct LtLayoutOf *LtLayout;   /* cublasLtMatrixLayout_t */
typedef struct LtWishOf *LtWish;       /* cublasLtMatmulPreference_t */
typedef struct LtAlgorithm {
    uint64_t word[8];
} LtAlgorithm;
typedef struct LtFound { /* cublasLtMatmulHeuristicResult_t */
    LtAlgorithm algorithm;
    size_t workspace;
    int state;
    float waves;
    int reserved[4];
} LtFound;

enum { LT_NOT_SUPPORTED = 15 };   /* a status: there is no algorithm */
enum { LT_COMPUTE_FLOAT32 = 68 }; /* products are added in float32, without TF32 */
enum { LT_TRANSPOSE_LEFT = 3, LT_TRANSPOSE_RIGHT = 4, LT_TRANSPOSED = 1 };
enum { LT_ORDER = 1, LT_BATCH = 5, LT_STEP = 6 }; /* attributes of a layout */
enum { LT_ORDER_ROWS = 1 };
enum { LT_MOST_WORKSPACE = 1, LT_REDUCTIONS = 3, LT_ALIGNMENT = 5 /* of left, right, C, D: 5 to 8 */ };
enum { LT_REDUCTION_IN_COMPUTE_TYPE = 2 }; /* bits of a mask; without any: one sum in order */

typedef struct LtApi {
    size_t (*version)(void); /* 10000 major + 100 minor + patch */
    int (*create)(LtHandle *out);
    int (*destroy)(LtHandle h);
    const char *(*status_text)(int status);
    int (*new_product)(LtProduct *out, int compute, int scale);
    int (*end_product)(LtProduct p);
    int (*set_product)(LtProduct p, int what, const void *value, size_t bytes);
    int (*new_layout)(LtLayout *out, int type, uint64_t rows, uint64_t columns, int64_t ld);
    int (*end_layout)(LtLayout l);
    int (*set_layout)(LtLayout l, int what, const void *value, size_t bytes);
    int (*new_wish)(LtWish *out);
    int (*end_wish)(LtWish w);
    int (*set_wish)(LtWish w, int what, const void *value, size_t bytes);
    int (*choose)(LtHandle h, LtProduct p, LtLayout left, LtLayout right, LtLayout c, LtLayout d, LtWish w, int asked,
                  LtFound *found, int *n);
    int (*check)(LtHandle h, LtProduct p, LtLayout left, LtLayout right, LtLayout c, LtLayout d,
                 const LtAlgorithm *algorithm, LtFound *out);
    int (*multiply)(LtHandle h, LtProduct p, const void *alpha, CudaAddress left, LtLayout of_left, CudaAddress right,
                    LtLayout of_right, const void *beta, CudaAddress c, LtLayout of_c, CudaAddress d, LtLayout of_d,
                    const LtAlgorithm *algorithm, CudaAddress workspace, size_t bytes, CudaStream stream);
} LtApi;
bool cuda_lt_open(LtApi *out, char path[CUDA_PATH_SIZE], char build_id[72], char why[512]);

#endif
