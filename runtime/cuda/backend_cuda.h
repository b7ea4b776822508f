/* backend_cuda.h - a GPU as a backend.
 *
 * In:  options.   Out: an open Backend (runtime/base/backend.h), or why there is none.
 */
#ifndef VWN_BACKEND_CUDA_H
#define VWN_BACKEND_CUDA_H

#include "runtime/base/backend.h"

typedef struct CudaOptions {
    int ordinal;           /* -1: the first GPU that can be used */
    int threads;           /* that compile kernels; 0 = as many as the process may use */
    const char *cache_dir; /* NULL = $XDG_CACHE_HOME/vwn or ~/.cache/vwn; "" = no cache */
    BackendUser user;      /* asked to stop between the compiler's programs */
} CudaOptions;
/* ST_ENVIRONMENT with `why`, which says what to do about it, when the GPU cannot be used. Raises when there is no
 * memory. Environment: VWN_CUDA_LIBRARIES (cuda_open.h); VWN_CUDA_SYNC=1 waits for every call, so that what fails is
 * named exactly. */
Status backend_cuda_open(Ctx *ctx, const CudaOptions *how, Backend **out, char why[512]);
/* A GPU failed in such a way that this process gets none again, says the driver: backends are no longer opened. Threads: any. */
bool backend_cuda_lost(void);
void backend_cuda_name(Backend *b, char text[256]); /* "cuda:0, NVIDIA H100, 78.2 of 79.6 GiB free" */
const char *cuda_cache_trouble(const Backend *b); /* as cpu_cache_trouble() */

#endif
