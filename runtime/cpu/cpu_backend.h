/* cpu_backend.h - the CPU backend's own state, for the files that make it up.
 *
 * backend_cpu.c opens, closes, gives memory and runs; cpu_kernels.c turns kernel texts into
 * functions.
 */
#ifndef VWN_CPU_BACKEND_H
#define VWN_CPU_BACKEND_H

#include "runtime/base/cache.h"
#include "runtime/base/sha256.h"
#include "cpu.h"

typedef void (*KernelFn)(void *const *p, const int64_t *n, const double *s, int64_t lo, int64_t hi);

typedef struct Loaded { /* a kernel that can be called */
    char key[65];
    KernelFn fn;
    size_t before; /* one with the same first digits, plus one */
} Loaded;
typedef struct Object { /* a shared object that is open */
    char name[65];
    void *handle;
    int fd; /* of the memory file, which stays open with it: its name is its number; else -1 */
} Object;

enum { SPARES = 32 };
typedef struct Spare { /* large blocks */
    char *at;
    uint64_t bytes;
} Spare;

typedef struct CpuBackend {
    Backend base;
    Compiler compiler;
    Cache cache;
    Blas blas;
    Pool *pool;
    Arena *arena; /* of the index */
    Map by_key;   /* of the first digits of a kernel's key: which of those loaded, plus one */
    Loaded *loaded;
    Object *object;
    size_t n_loaded, n_object;
    void *expert_memory;
    uint64_t expert_bytes;
    Spare spare[SPARES]; /* given back and kept, by address; neighbours are one */
    int n_spare;
    uint64_t untouched;   /* bytes given out whose pages helpers are still to touch, at most */
    const char *identity; /* of the processor */
    char *prelude;        /* of the last plan, and the hash of all that its kernels share */
    size_t prelude_length;
    Sha256 common;
    bool noted; /* the cache's note has been given */
} CpuBackend;

struct Module {
    const PlanKernel *plan; /* of the plan that it was built from, which outlives it */
    KernelFn *kernel;
    size_t n;
};

static inline CpuBackend *cpu_of(Backend *b) { return (CpuBackend *)b; }

/* Sets `why`, unless an earlier failure has; returns the status. */
Status cpu_fail(Backend *b, Status status, const char *fmt, ...) __attribute__((format(printf, 3, 4)));
/* ctx_alloc, but NULL instead of leaving. */
void *cpu_small_block(Ctx *ctx, size_t bytes);

/* The functions `alloc`, `free`, `build` and `drop` of backend.h. */
Status cpu_alloc(Backend *b, uint64_t bytes, void **memory);
void cpu_free(Backend *b, void *memory, uint64_t bytes);
Status cpu_build(Backend *b, const Plan *plan, Module **module, BuildReport *report);
void cpu_drop(Backend *b, Module *module);

#endif
