/* cuda_describe.c - what there is of CUDA on this machine, for people.
 *
 * In:  the machine.
 * Out: "key: value" lines; the last one says where training runs, and why there.
 * The one idea: every line is asked of the library itself, and the last one is decided as a run decides it.
 */
#define _GNU_SOURCE
#include "runtime/base/backend.h"
#include "device.h"
#include "backend_cuda.h"

#include <stdio.h>
#include <stdlib.h>

enum { DEVICES_SHOWN = 16 };

static void describe_devices(Buf *out, const CudaDriver *d)
{
    for (int i = 0; i < d->devices && i < DEVICES_SHOWN; i++) {
        CudaDevice device;
        if (!cuda_device(d, i, &device)) {
            buf_printf(out, "CUDA device %d: it says nothing of itself\n", i);
            continue;
        }
        buf_printf(out, "CUDA device %d: %s, compute capability %d.%d, %.1f GiB\n", i, device.name,
                   device.capability / 10, device.capability % 10, (double)device.bytes / (1 << 30));
    }
}

static void describe_driver(Buf *out)
{
    CudaDriver d;
    char why[512];
    int version = 0;
    if (!cuda_driver_open(&d, why)) {
        buf_printf(out, "CUDA driver: %s\n", cuda_switched_off() || d.path[0] ? why : "not found");
        return;
    }
    if (d.state == CUDA_IS_STUB || d.version(&version) != 0) {
        buf_printf(out, "CUDA driver: %s\n", d.state ? why : "it does not say its version");
        return;
    }
    buf_printf(out, "CUDA driver: %d.%d (%s)%s%s\n", version / 1000, version % 1000 / 10, d.path, d.state ? ", " : "",
               d.state ? why : "");
    describe_devices(out, &d);
}

static void describe_compiler(Ctx *ctx, Buf *out)
{
    Nvrtc n;
    char why[512];
    if (!nvrtc_open(ctx, &n, why)) {
        buf_printf(out, "CUDA compiler (NVRTC): %s\n", cuda_switched_off() || n.path[0] ? why : "not found");
        return;
    }
    int least = n.n_arch ? n.arch[0] : 0, most = least;
    for (int i = 1; i < n.n_arch; i++) {
        least = n.arch[i] < least ? n.arch[i] : least;
        most = n.arch[i] > most ? n.arch[i] : most;
    }
    buf_printf(out, "CUDA compiler (NVRTC): %d.%d for sm_%d to sm_%d (%s)\n", n.major, n.minor, least, most, n.path);
}

static void describe_products(Buf *out)
{
    char path[CUDA_PATH_SIZE], why[512];
    size_t (*version)(void);
    const CudaFunction wanted[] = {{"cublasLtGetVersion", &version}};
    void *library = cuda_library(CUDA_BLASLT, path, why);
    if (!library || !cuda_functions(library, wanted, COUNT_OF(wanted), why)) {
        buf_printf(out, "CUDA products (cuBLASLt): %s\n", cuda_switched_off() || path[0] ? why : "not found");
        return;
    }
    size_t v = version(); /* 10000 major + 100 minor + patch */
    buf_printf(out, "CUDA products (cuBLASLt): %zu.%zu.%zu (%s)\n", v / 10000, v % 10000 / 100, v % 100, path);
}

void backend_cuda_describe(Ctx *ctx, const BackendOptions *how, Buf *out)
{
    (void)how;
    char why[512];
    CudaFound found;
    describe_driver(out);
    describe_compiler(ctx, out);
    describe_products(out);
    Backend *b = NULL; /* opened as by a run: others may have its memory */
    bool opens = cuda_find(ctx, -1, 0, &found, why) &&
                 backend_cuda_open(ctx, &(BackendOptions){.ordinal = found.ordinal}, &b, why) == ST_OK;
    if (opens)
        buf_printf(out, "training runs on: cuda:%d (%s); `--device cpu` takes the CPU\n", found.ordinal,
                   found.device.name);
    else
        buf_printf(out, "training runs on: the CPU, because %s\n", why);
    if (opens)
        b->ops->close(b);
}
