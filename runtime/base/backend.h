/* backend.h - a device: memory, compiled kernels, matrix products. One vtable per backend.
 *
 * Ownership: a Backend is opened and closed by its user; memory it gave out is freed with free().
 * Errors: a Status and a sentence in `why` (never printed here). Threads: one at a time per Backend.
 */
#ifndef VWN_BACKEND_H
#define VWN_BACKEND_H

#include "compiler/plan/plan.h"
#include "ahead.h"
#include "cache.h"

#include <signal.h>

typedef struct Backend Backend;
typedef struct Module Module; /* the compiled kernels of one plan */
typedef struct Box Box;       /* memory of the host that a device writes to while the host does something else */

typedef struct BuildReport {
    int kernels, cached, compiled;
    double seconds;        /* of the backend: finding or compiling them */
    double plan_seconds;   /* simplifying and planning, before it */
    char why[512];         /* of a failure: the failed call, the kernel, the compiler's first error line */
    char note[CACHE_NOTE]; /* said once per backend: the kernel cache is not used or not written, and why */
} BuildReport;

/* Where in a model the next call is, for messages of a device that fails later. */
typedef struct CallPlace {
    const Launch *launch; /* NULL: outside of a program */
    const char *program;
    uint64_t step;
} CallPlace;

/* Who works with a backend now: one that is kept open for several runs has several. */
typedef struct BackendUser {
    Ctx *files;                                    /* whose sources launches come from, for messages */
    void (*compiling)(void *user, size_t kernels); /* as in vwn_options; NULL: nobody asks */
    void *user;
    const volatile sig_atomic_t *stop; /* once not 0 compiling ends with ST_INTERRUPTED; NULL: nobody asks */
} BackendUser;

/* A row of backends.def. */
typedef struct BackendKind {
    const char *word;  /* of `--device` */
    bool numbered;     /* there may be several: "cuda:1" is the second one */
    bool host;         /* the processor: its memory is the host's, which reads it in place */
    bool fails;        /* it may fail under a run, which then goes on from its last checkpoint */
    const char *where; /* its memory is, behind "2.00 GiB are available" */
} BackendKind;
typedef enum BackendId {
#define BACKEND(id, ...) BACKEND_##id,
#include "backends.def"
#undef BACKEND
    BACKEND_COUNT
} BackendId;
extern const BackendKind backend_kinds[BACKEND_COUNT];

/* What `--device` asks for. */
typedef enum DeviceHow { DEVICE_NAMED, DEVICE_REFERENCE, DEVICE_AUTO } DeviceHow;
typedef struct DeviceAsked {
    DeviceHow how;
    BackendId id; /* of DEVICE_NAMED */
    int ordinal;  /* of a numbered one; -1: the first that can be used */
} DeviceAsked;
bool device_read(const char *text, DeviceAsked *out); /* NULL is the processor. False when it is none of the words */
void device_words(Buf *out);                          /* "cpu, ... and reference" */

typedef struct BackendOptions {
    int ordinal;           /* of a numbered one; -1: the first that can be used, or, */
    int local;             /* where it is not 0 and there are several, the one of this number, from 1 */
    int threads;           /* that compute, or compile kernels; 0 = as many as the process may use; at most 1024 */
    const char *cache_dir; /* NULL = $XDG_CACHE_HOME/vwn or ~/.cache/vwn; "" = no cache */
    const char *compiler;  /* of C; NULL = $CC if it is set, else cc, gcc or clang */
    int compile_seconds;   /* that a C file may take; 0 = 600 */
    const char *products;  /* of the processor; NULL = the best there is of "onednn", "openblas", "plain" */
    BackendUser user;      /* asked to stop while kernels are compiled */
} BackendOptions;
/* Why a backend is not there: it cannot be used; there is no such device; there is a library to link with in the place of a driver, and
 * no device; it failed, and this process gets none again, says the driver. */
typedef enum BackendAbsence { ABSENT_UNUSABLE, ABSENT_DEVICE, ABSENT_STUB, ABSENT_LOST } BackendAbsence;
typedef Status BackendOpen(Ctx *ctx, const BackendOptions *how, Backend **out, char why[512]); /* exec/backends.h */
typedef BackendAbsence BackendWhy(void);
typedef void BackendDescribe(Ctx *ctx, const BackendOptions *how, Buf *out);

/* How a launch lies on a device. */
typedef struct LaunchShape {
    int64_t blocks;
    int threads;    /* of a block */
    int blocks_sm;  /* that a multiprocessor has at one time */
    int registers;  /* of a thread */
    int64_t shared; /* bytes of a block */
    int64_t spills; /* bytes that a thread writes for want of registers */
    double waves;   /* blocks, by those that the device has at one time */
} LaunchShape;

typedef struct BackendOps {
    const char *name;
    Status (*alloc)(Backend *b, uint64_t bytes, void **memory); /* 64-byte aligned, zeroed */
    void (*free)(Backend *b, void *memory, uint64_t bytes);
    Status (*upload)(Backend *b, void *to, const void *from, uint64_t bytes);
    Status (*download)(Backend *b, void *to, const void *from, uint64_t bytes);
    /* What comes down while more is queued: a box, which goes with the backend; bytes into it behind what is queued, not
     * between begin() and end(); and, when all of them have come, where they lie. NULL: download() waits for nothing. */
    Status (*box)(Backend *b, uint64_t bytes, Box **out);
    Status (*post)(Backend *b, Box *box, uint64_t at, const void *from, uint64_t bytes);
    Status (*receive)(Backend *b, Box *box, const char **memory);
    Status (*build)(Backend *b, const Plan *plan, Module **module, BuildReport *report);
    void (*drop)(Backend *b, Module *module);
    /* Around the calls of a run, which are those of every run while `generation`, that of the memory they are about, is
     * the same, and `marked`, whether moments lie between them. *replayed: all are queued, and none is to be made; else
     * end() follows them, with their status, and returns that of the run. Both may be NULL: then calls are made each
     * time. Nothing is uploaded, downloaded or waited for between. */
    Status (*begin)(Backend *b, Module *m, uint64_t generation, bool marked, bool *replayed);
    Status (*end)(Backend *b, Module *m, Status status);
    Status (*launch)(Backend *b, Module *m, uint32_t kernel, void *const *p, const int64_t *n, const double *s,
                     const LaunchMap *map, int64_t rows, int64_t grain);
    Status (*matmul)(Backend *b, const PlanMatmul *how, const void *x, const void *y, void *z);
    Status (*expert)(Backend *b, const PlanExpert *how, const void *x, const void *w_or_dy, const int64_t *index,
                     float *out);
    Status (*copy)(Backend *b, const PlanCopy *how, int64_t rows, const void *x, void *out);
    Status (*sync)(Backend *b);
    bool (*room)(Backend *b, uint64_t *left, uint64_t *all); /* bytes of a device's own memory; NULL: the host's */
    /* Moment i in what is queued, also in calls that begin() records; and, when the device has been waited for, the
     * seconds from moment i to the next one. NULL: the host's clock tells. */
    Status (*mark)(Backend *b, size_t i);
    Status (*between)(Backend *b, size_t i, double *seconds);
    Status (*shape)(Backend *b, Module *m, uint32_t kernel, const int64_t *n, int64_t rows, LaunchShape *out);
    void (*say)(Backend *b,
                char text[256]); /* "cuda:0, NVIDIA H100, 78.2 of 79.6 GiB free"; NULL: its row's word says enough */
    const char *(*cache_trouble)(const Backend *b); /* why its kernel cache is not used, or NULL; "": none was wanted */
    void (*rest)(Backend *b); /* between runs: another backend may use the device meanwhile; may be NULL */
    void (*close)(Backend *b);
} BackendOps;

struct Backend {
    const BackendOps *ops;
    const BackendKind *kind;
    Ctx *ctx;
    int threads;
    Ahead *ahead;         /* helpers may write its memory as they write the host's; NULL: only upload() may */
    char why[512];        /* sentence of the first failure since the last sync */
    bool queues;          /* calls return before they are done: download() and sync() wait */
    double waited;        /* seconds that the host has spent on waiting for the device */
    int multiprocessors;  /* of a device */
    const Target *target; /* what plans that it runs are made for */
    bool bf16;            /* takes plans with operands of bf16 */
    char no_bf16[512];    /* else: why it does not */
    const char *slow;     /* what would make it several times as fast, or NULL */
    CallPlace at;         /* kept by programs while they run */
    BackendUser user;
    bool kept;        /* for several runs: memory that is given back stays for the next of them, */
    uint64_t spare;   /* so many bytes now */
    char *last_words; /* [512], where a device that fails in the end, or while it is closed, says so; or NULL */
};

#endif
