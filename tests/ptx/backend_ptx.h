/* backend_ptx.h - a backend whose kernels are compiled to PTX by NVRTC and run by the interpreter.
 *
 * In:  plans for a device; the architecture.
 * Out: what they compute. A fault of a launch ends the run with its sentence. Products of the library are
 *      plain loops.
 */
#ifndef VWN_TEST_BACKEND_PTX_H
#define VWN_TEST_BACKEND_PTX_H

#include "runtime/base/backend.h"

enum { PTX_SKIPPED = 77 };
/* Is NVRTC here? false with `why`. */
bool ptx_possible(char why[512]);

typedef struct PtxOptions {
    const Target *target;
    /* For tests that change the PTX of the one plan that is built: what is run instead of what NVRTC makes; and where that is left,
     * of malloc. Each may be NULL. */
    const char *instead;
    char **made;
} PtxOptions;
Status backend_ptx_open(Ctx *ctx, const PtxOptions *how, Backend **out, char why[512]);
void backend_ptx_seed(Backend *b, uint64_t seed); /* of the orders of what follows */
uint64_t backend_ptx_launches(const Backend *b);

/* PTX of malloc, or NULL with `why`. */
char *nvrtc_ptx(const char *text, const char *arch, char why[512]);

#endif
