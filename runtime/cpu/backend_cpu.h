/* backend_cpu.h - the processor as a backend.
 *
 * In:  options.   Out: an open Backend (runtime/base/backend.h), or why there is none.
 */
#ifndef VWN_BACKEND_CPU_H
#define VWN_BACKEND_CPU_H

#include "runtime/base/backend.h"

typedef struct CpuOptions {
    int threads;            /* 0 = as many as the process may use; at most 1024 */
    const char *cache_dir;  /* NULL = $XDG_CACHE_HOME/vwn or ~/.cache/vwn; "" = no cache */
    const char *compiler;   /* NULL = $CC if it is set, else cc, gcc or clang */
    int compile_seconds;    /* that a C file may take; 0 = 600 */
    const char *products;   /* NULL = the best there is of "onednn", "openblas", "plain" */
    BackendUser user;
} CpuOptions;
/* ST_ENVIRONMENT with `why` when there is no C compiler; then use the reference evaluator. Raises when
 * there is no memory. */
Status backend_cpu_open(Ctx *ctx, const CpuOptions *how, Backend **out, char why[512]);
const char *cpu_cache_trouble(const Backend *b); /* why its kernel cache is not used, or NULL; "": none was wanted */
/* What `vwn doctor` shows of the CPU, one "key: value" line each. Libraries that it finds stay mapped. */
void backend_cpu_describe(Ctx *ctx, const CpuOptions *how, Buf *out);

#endif
