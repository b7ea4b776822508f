/* cuda_backend.h - the state of a GPU, for the files that make up its backend.
 *
 * backend_cuda.c opens and closes it, gives memory and copies; cuda_kernels.c loads kernels and launches them;
 * cuda_products.c multiplies matrices; cuda_graph.c makes one launch of a program's calls; cuda_time.c takes times.
 */
#ifndef VWN_CUDA_BACKEND_H
#define VWN_CUDA_BACKEND_H

#include <pthread.h>

#include "runtime/base/backend.h"
#include "cuda_api.h"
#include "device.h"
#include "nvrtc.h"

/* A call that was queued, for what is said when the device reports an error later. */
typedef struct CudaQueued {
    const char *what; /* a kernel's name, or a literal */
    CallPlace place;
} CudaQueued;

enum { CUDA_MAPS = 4 }; /* of a launch, at most */

/* Memory of the host that the device copies from, and the device's own that it copies to, while programs run. */
enum { STAGING_SLOTS = 8, STAGING_BYTES = 1 << 20 };
typedef struct CudaSlot {
    char *host;
    CudaAddress device;
    CudaEvent arrived, taken; /* host may be written again; device may be */
    bool used;
} CudaSlot;

/* Numbers on their way to the host, which reads them when the event has happened. */
struct Box {
    char *host;
    CudaEvent come;
    uint64_t bytes;
    struct Box *next;
};

typedef struct CudaLoaded { /* a kernel that can be launched */
    Name name;
    CudaKernel function;
    CubinKernel facts; /* of its machine code */
    uint64_t asked;    /* dynamic shared memory that it may have */
} CudaLoaded;

struct Module {
    const Plan *plan; /* outlives it */
    CudaLoaded **kernel;
    CudaGraph graph;     /* its calls, once they are recorded */
    bool marked;         /* with moments between them */
    uint64_t generation; /* of the memory that they are about */
    bool warm;           /* they have been made one by one */
};

typedef struct CudaProducts CudaProducts;
enum { CUDA_QUEUED = 64 };
typedef struct CudaBackend {
    Backend base;
    CudaFound found;
    CudaApi api; /* of found */
    CudaContext context;
    CudaStream stream, copies; /* what is computed; what comes up meanwhile */
    pthread_t thread;          /* that the context is current on */
    bool has_thread;
    CudaSlot slot[STAGING_SLOTS];
    int next;         /* slot */
    char *pending_to; /* of the bytes that lie in slot `next` and are not on their way */
    uint64_t pending;
    char *landing; /* what comes down, of STAGING_BYTES */
    Box *box;      /* all there are */
    CudaProducts *products;
    Arena *arena; /* modules and kernels, as long as the backend */
    VEC(CudaModule) module;
    VEC(CudaEvent) mark; /* moments that have a time */
    Map by_name;         /* Name -> CudaLoaded */
    Cache cache;
    bool noted; /* the cache's note has been given */
    int threads;
    bool recording;   /* calls are recorded, not queued */
    bool synchronous; /* VWN_CUDA_SYNC: every call is waited for */
    bool broken;      /* nothing can be done any more; `end` says why */
    bool drained;     /* and nothing is queued any more */
    char end[512];
    CudaQueued queued[CUDA_QUEUED]; /* since the device was waited for last */
    uint64_t n_queued;
} CudaBackend;

static inline CudaBackend *cuda_of(Backend *b) { return (CudaBackend *)b; }

/* Before any call: the device works, and the context is that of this thread. */
Status cuda_enter(CudaBackend *c);
/* ST_OK when error is 0; else the device is given up: `what` was being done, and what was queued is named. */
Status cuda_must(CudaBackend *c, int error, const char *what);
/* Sets `why` unless an earlier failure has, and returns the status. */
Status cuda_fail(CudaBackend *c, Status status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* Remembers a call that the device accepted; with VWN_CUDA_SYNC waits for it. */
Status cuda_queued(CudaBackend *c, const char *what);
/* All that is queued is done. */
Status cuda_wait(CudaBackend *c, const char *what);
/* A device that was given up still ends what was queued, where it can. */
void cuda_drain(CudaBackend *c);
/* What was given to upload() is on its way before whatever is queued next. */
Status cuda_flush(CudaBackend *c);
/* " of layers.1.ffn at gpt.vwn:12:5 (train, run 7)", or "" */
void cuda_place_text(CudaBackend *c, const CallPlace *at, char text[256]);

/* cuda_kernels.c: the functions `build`, `drop` and `launch` of backend.h. */
Status cuda_build(Backend *b, const Plan *plan, Module **module, BuildReport *report);
void cuda_drop(Backend *b, Module *module);
Status cuda_launch(Backend *b, Module *m, uint32_t kernel, void *const *p, const int64_t *n, const double *s,
                   const LaunchMap *map, int64_t rows, int64_t grain);
void cuda_unload(CudaBackend *c);

/* cuda_graph.c: the functions `begin` and `end` of backend.h. */
Status cuda_begin(Backend *b, Module *m, uint64_t generation, bool marked, bool *replayed);
Status cuda_end(Backend *b, Module *m, Status st);
/* The device has been waited for. */
void cuda_forget(CudaBackend *c, Module *m);

/* cuda_time.c: the functions `mark`, `between` and `shape` of backend.h. */
Status cuda_mark(Backend *b, size_t i);
Status cuda_between(Backend *b, size_t i, double *seconds);
Status cuda_shape(Backend *b, Module *m, uint32_t kernel, const int64_t *n, int64_t rows, LaunchShape *out);
void cuda_forget_marks(CudaBackend *c);

/* cuda_products.c: cuBLASLt, 32 MiB to work in, and which algorithm each product has. */
Status cuda_products_open(CudaBackend *c);
void cuda_products_close(CudaBackend *c); /* also of what is half open */
Status cuda_matmul(Backend *b, const PlanMatmul *how, const void *x, const void *y, void *z);
/* Writes down which algorithms were chosen since the last time. */
void cuda_products_keep(CudaBackend *c);

#endif
