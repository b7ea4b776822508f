/* backend_cpu.h - the processor as a backend: its functions for backends.def.
 *
 * In:  options.   Out: an open Backend (runtime/base/backend.h), or why there is none.
 */
#ifndef VWN_BACKEND_CPU_H
#define VWN_BACKEND_CPU_H

#include "runtime/base/backend.h"

/* ST_ENVIRONMENT with `why` when there is no C compiler; then use the reference evaluator. NULL: no options. */
BackendOpen backend_cpu_open;
BackendWhy backend_cpu_absence;
BackendDescribe backend_cpu_describe; /* libraries that it finds stay mapped */

#endif
