/* device.c - see device.h. */
#include "device.h"

#include <stdio.h>
#include <stdlib.h>

enum { LEAST_DRIVER = 12000 };

static bool find_driver(CudaFound *f, char why[512])
{
    if (!cuda_driver_open(&f->driver, why) || f->driver.state)
        return false;
    int version = 0;
    if (f->driver.version(&version)) {
        snprintf(why, 512, "the CUDA driver does not say its version");
        return false;
    }
    f->driver_version = version;
    if (version < LEAST_DRIVER) {
        snprintf(why, 512, "the GPU's driver is for CUDA %d.%d, and %d.%d or later is needed: install a newer driver",
                 version / 1000, version % 1000 / 10, LEAST_DRIVER / 1000, LEAST_DRIVER % 1000 / 10);
        return false;
    }
    return true;
}

/* false with `why`, unless kernels can run on it. */
static bool usable(CudaFound *f, int ordinal, char why[512])
{
    int mode = 0, most = 0;
    f->ordinal = ordinal;
    if (!cuda_device(&f->driver, ordinal, &f->device) || f->driver.device(&f->handle, ordinal) ||
        f->driver.attribute(&mode, CUDA_COMPUTE_MODE, f->handle) ||
        f->driver.attribute(&f->multiprocessors, CUDA_MULTIPROCESSORS, f->handle) ||
        f->driver.attribute(&most, CUDA_SHARED_MOST, f->handle)) {
        snprintf(why, 512, "cuda:%d says nothing of itself to the driver: restart the machine or its driver", ordinal);
        return false;
    }
    f->shared_most = most;
    if (f->device.capability < LEAST_CAPABILITY) {
        snprintf(why, 512, "cuda:%d (%s) is of compute capability %d.%d, and the kernels are for %d.%d and later",
                 ordinal, f->device.name, f->device.capability / 10, f->device.capability % 10, LEAST_CAPABILITY / 10,
                 LEAST_CAPABILITY % 10);
        return false;
    }
    if (mode == CUDA_MODE_PROHIBITED) {
        snprintf(why, 512, "cuda:%d (%s) is closed to programs: `nvidia-smi -i %d -c DEFAULT`, as root, opens it",
                 ordinal, f->device.name, ordinal);
        return false;
    }
    return true;
}

static bool find_device(CudaFound *f, int ordinal, int local, char why[512])
{
    int n = f->driver.devices;
    if (n < 1)
        snprintf(why, 512, "the CUDA driver finds no GPU");
    else if (ordinal >= n && n == 1)
        snprintf(why, 512, "there is no cuda:%d: the only GPU here is cuda:0", ordinal);
    else if (ordinal >= n)
        snprintf(why, 512, "there is no cuda:%d: the GPUs here are cuda:0 to cuda:%d", ordinal, n - 1);
    if (n < 1 || ordinal >= n)
        return false;
    if (ordinal < 0 && n > 1 && local > n) {
        snprintf(why, 512,
                 "there is no GPU for process %d of this machine, which has %d: start no more than one for each", local,
                 n);
        return false;
    }
    if (ordinal >= 0 || (n > 1 && local))
        return usable(f, ordinal >= 0 ? ordinal : local - 1, why);
    char later[512];
    bool able = false;
    for (int i = 0; i < n; i++) {
        if (usable(f, i, i ? later : why))
            return true;
        able |= f->device.capability >= LEAST_CAPABILITY;
    }
    if (!able && n > 1)
        snprintf(why, 512, "no GPU here has compute capability %d.%d or more", LEAST_CAPABILITY / 10,
                 LEAST_CAPABILITY % 10);
    return false;
}

/* Machine code is good for later GPUs of the same major number. */
static bool choose_arch(CudaFound *f, char why[512])
{
    int best = 0, wanted = f->device.capability;
    for (int i = 0; i < f->nvrtc.n_arch; i++) {
        int a = f->nvrtc.arch[i];
        if (a / 10 == wanted / 10 && a <= wanted && a > best)
            best = a;
    }
    nvrtc_arch(f->arch, best);
    if (best)
        return true;
    snprintf(
        why, 512,
        "the CUDA compiler %d.%d (%.200s) makes no code for cuda:%d (%s, compute capability %d.%d): install a newer "
        "CUDA toolkit",
        f->nvrtc.major, f->nvrtc.minor, f->nvrtc.path, f->ordinal, f->device.name, wanted / 10, wanted % 10);
    return false;
}

/* A library of a later major version than the driver's does not work with it. One that is older does, down to the oldest
 * that has all that is asked for. */
static bool suits_driver(const CudaFound *f, const char *what, int major, const char *path, char why[512])
{
    if (major < LEAST_DRIVER / 1000) {
        snprintf(why, 512,
                 "%s (%.200s) is of CUDA %d, and that of CUDA %d or later is needed: install a newer CUDA toolkit",
                 what, path, major, LEAST_DRIVER / 1000);
        return false;
    }
    if (major <= f->driver_version / 1000)
        return true;
    snprintf(why, 512,
             "%s (%.200s) is of CUDA %d and the GPU's driver of CUDA %d.%d: install a newer driver, or name the folder "
             "of libraries of CUDA %d in VWN_CUDA_LIBRARIES",
             what, path, major, f->driver_version / 1000, f->driver_version % 1000 / 10, f->driver_version / 1000);
    return false;
}

bool cuda_find(Ctx *ctx, int ordinal, int local, CudaFound *f, char why[512])
{
    char path[CUDA_PATH_SIZE];
    *f = (CudaFound){0};
    if (!find_driver(f, why) || !find_device(f, ordinal, local, why) || !nvrtc_open(ctx, &f->nvrtc, why))
        return false;
    if (!suits_driver(f, "the CUDA compiler NVRTC", f->nvrtc.major, f->nvrtc.path, why) || !choose_arch(f, why) ||
        !cuda_lt_open(&f->lt, path, f->lt_build_id, why))
        return false;
    return suits_driver(f, "cuBLASLt", (int)(f->lt.version() / 10000), path, why) && cuda_api_open(&f->api, why);
}
