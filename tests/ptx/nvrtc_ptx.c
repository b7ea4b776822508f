/* nvrtc_ptx.c - from CUDA text to PTX, by NVRTC; see backend_ptx.h. */
#include "backend_ptx.h"

#include "runtime/cuda/cuda_open.h"

#include <stdio.h>
#include <stdlib.h>

typedef void *Handle;
typedef struct Compiler {
    int (*create)(Handle *p, const char *text, const char *name, int headers, const char *const *header,
                  const char *const *as);
    int (*destroy)(Handle *p);
    int (*compile)(Handle p, int n, const char *const *option);
    int (*log_size)(Handle p, size_t *n);
    int (*log)(Handle p, char *text);
    int (*size)(Handle p, size_t *n);
    int (*ptx)(Handle p, char *text);
} Compiler;

static bool open_compiler(Compiler *c, char why[512])
{
    char path[CUDA_PATH_SIZE];
    void *library = cuda_library(CUDA_NVRTC, path, why);
    const CudaFunction wanted[] = {
        {"nvrtcCreateProgram", &c->create},
        {"nvrtcDestroyProgram", &c->destroy},
        {"nvrtcCompileProgram", &c->compile},
        {"nvrtcGetProgramLogSize", &c->log_size},
        {"nvrtcGetProgramLog", &c->log},
        {"nvrtcGetPTXSize", &c->size},
        {"nvrtcGetPTX", &c->ptx},
    };
    return library && cuda_functions(library, wanted, sizeof wanted / sizeof wanted[0], why);
}

bool ptx_possible(char why[512])
{
    Compiler c;
    return open_compiler(&c, why);
}

/* Of an architecture that is virtual: no machine code is made. */
char *nvrtc_ptx(const char *text, const char *arch, char why[512])
{
    Compiler c;
    Handle p = NULL;
    size_t n = 0;
    char *out = NULL, option[64];
    if (!open_compiler(&c, why))
        return NULL;
    snprintf(option, sizeof option, "--gpu-architecture=compute_%.20s", arch + sizeof "sm_" - 1);
    const char *const options[] = {"--minimal", "--std=c++17", option};
    if (c.create(&p, text, "kernels.cu", 0, NULL, NULL)) {
        snprintf(why, 512, "NVRTC takes no text");
        return NULL;
    }
    if (c.compile(p, 3, options)) {
        char *log = !c.log_size(p, &n) ? malloc(n + 1) : NULL;
        if (log && !c.log(p, log))
            snprintf(why, 512, "NVRTC: %.400s", log);
        free(log);
    } else if (c.size(p, &n) || !(out = malloc(n + 1)) || c.ptx(p, out)) {
        snprintf(why, 512, "NVRTC gives no PTX");
        free(out);
        out = NULL;
    }
    c.destroy(&p);
    return out;
}
