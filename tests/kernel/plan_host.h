/* plan_host.h - runs plans in the tests: the system's compiler, one thread, plain products.
 *
 * In:  plans and tensors.     Out: results and stored tensors as float64.
 * The one idea: it does what plan.h says and nothing more, with canaries around every buffer.
 */
#ifndef VWN_PLAN_HOST_H
#define VWN_PLAN_HOST_H

#include "compiler/plan/plan.h"

typedef struct Host Host;
typedef enum HostMemory { HOST_APART, HOST_ARENA } HostMemory;
typedef struct HostRun {
    int64_t B, T;
    uint64_t seed, step, first;
    const double *host_vars;
    const RefBinding *bind; /* inputs; not changed */
    size_t n_bind;
    HostMemory memory;
    double *seconds;    /* of each launch, the best of `repeat`; may be NULL */
    int repeat;         /* 0 = once */
    bool skip_products; /* leave products out: for measurements */
    int64_t chunk;      /* rows of a range: 0 = all at once, k = uneven ranges of about k */
} HostRun;

/* Plans for a device are run by one: it compiles the kernels of all plans at once; a launch has the addresses
 * of its arguments, and says what is wrong, or NULL. chunk: of HostRun. */
typedef struct HostDevice {
    bool (*compile)(const Plan *first, const PlanKernel *const *kernel, size_t n, char why[512]);
    const char *(*launch)(const PlanKernel *kernel, void **argument, int64_t blocks, uint64_t shared, int64_t chunk);
} HostDevice;

/* Kernels of all added plans are compiled together. `cc` may be NULL: $CC or cc, -O2. */
Host *host_new(const char *cc);
void host_on_device(Host *h, const HostDevice *device); /* NULL: on the CPU */
void host_add(Host *h, const Plan *p);                  /* lives until host_free() */
void host_compile(Host *h);
void host_free(Host *h);
/* Results in plan order, then stored[i] for every binding (NULL where the plan stores nothing).
 * Exits with a message when a canary is broken. Returns seconds. */
double host_run(Host *h, const Plan *p, const HostRun *how, Arena *arena, Tensor **results, Tensor **stored);

#endif
