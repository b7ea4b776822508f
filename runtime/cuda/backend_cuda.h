/* backend_cuda.h - a GPU as a backend: its functions for backends.def.
 *
 * In:  options.   Out: an open Backend (runtime/base/backend.h), or why there is none.
 */
#ifndef VWN_BACKEND_CUDA_H
#define VWN_BACKEND_CUDA_H

#include "runtime/base/backend.h"

/* Environment: VWN_CUDA_LIBRARIES (cuda_open.h); VWN_CUDA_SYNC=1 waits for every call, so that what fails is named exactly. */
BackendOpen backend_cuda_open;
BackendWhy backend_cuda_absence;
BackendDescribe backend_cuda_describe; /* driver, devices, compiler, products, and what follows (cuda_describe.c) */

#endif
