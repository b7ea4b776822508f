/* driver_launch.c - libcuda: modules, their functions, and launches. */
#define _GNU_SOURCE
#include "driver.h"

#include "image.h"

#include "../emu/backend_emu.h"
#include "compiler/portable/device_call.h"

#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { CONTEXT = NEEDS_INIT | NEEDS_CONTEXT, ARGUMENT_ALIGN = 128 };

typedef struct Parameter { /* EmuParameter of cuemu.h */
    unsigned bytes, align;
    int address;
} Parameter;
typedef struct Function {
    struct Module *of;
    char name[128];
    const void *handle;
    EmuKernel kernel;
    const Parameter *parameter;
    unsigned n;
    int threads_most; /* launch bounds, or those of a block */
    int shared_most;  /* dynamic, that was asked for */
    bool here;        /* it has been launched: its code is on the device */
    struct Function *next;
} Function;
typedef struct Module {
    void *object;
    void *image; /* a copy of what was loaded */
    bool live;
    int arch;
    Function *functions;
} Module;

/* ---- modules ---- */

/* Machine code of 8.0 runs on 8.x, that of "sm_90a" on 9.0 only. */
static bool fits(const Image *im)
{
    long here = fake_settings()->capability;
    return im->only ? im->arch == here : im->arch / 10 == here / 10 && im->arch <= here;
}

static void *open_object(const Image *im)
{
    static unsigned number;
    char path[128];
    const char *folder = getenv("TMPDIR");
    snprintf(path, sizeof path, "%.80s/fake_cuda_%ld_%u.so", folder && *folder ? folder : "/tmp", (long)getpid(),
             number++);
    FILE *f = fopen(path, "we");
    if (!f)
        return NULL;
    bool whole = fwrite(im->object, 1, im->size, f) == im->size;
    void *object = fclose(f) == 0 && whole ? dlopen(path, RTLD_NOW | RTLD_LOCAL) : NULL;
    unlink(path);
    return object;
}

static int load(const void **out, const void *bytes)
{
    Image im;
    if (!out || !bytes)
        return E_VALUE;
    if (!image_object(bytes, &im))
        return fake_refuse(E_IMAGE, "no cubin of the fake compiler");
    if (fake_settings()->driver / 1000 < im.version)
        return fake_refuse(E_IMAGE, "made by a compiler of version %d, which is too new for the driver", im.version);
    if (!fits(&im))
        return fake_refuse(E_NO_BINARY, "for sm_%d", im.arch);
    Module *m = calloc(1, sizeof *m);
    m->object = open_object(&im);
    if (!m->object) {
        free(m);
        return fake_refuse(E_IMAGE, "%s", dlerror());
    }
    m->image = malloc(image_size(bytes));
    memcpy(m->image, bytes, image_size(bytes));
    m->live = true;
    m->arch = im.arch;
    *out = fake_handle(KIND_MODULE, m);
    fake_made(KIND_MODULE);
    return E_OK;
}

FAKE_API int cuModuleLoadData(const void **out, const void *bytes)
{
    FAKE_CALL("cuModuleLoadData", CONTEXT | UNSAFE, E_MEMORY, load(out, bytes));
}

FAKE_API int cuModuleLoadDataEx(const void **out, const void *bytes, unsigned n, int *option, void **value)
{
    (void)option, (void)value;
    FAKE_CALL("cuModuleLoadDataEx", CONTEXT | UNSAFE, E_MEMORY,
              n ? fake_refuse(E_NOT_SUPPORTED, "the fake knows no options") : load(out, bytes));
}

/* Its code stays mapped: work that still refers to it must find out. */
static int unload(const void *handle, int error)
{
    Module *m = fake_object(KIND_MODULE, handle);
    if (!m)
        return error ? error : fake_refuse(E_HANDLE, "no module");
    for (Function *f = m->functions; f; f = f->next)
        fake_forget(KIND_FUNCTION, f->handle);
    m->live = false;
    free(m->image);
    fake_forget(KIND_MODULE, handle);
    fake_given_back(KIND_MODULE);
    return error;
}

FAKE_API int cuModuleUnload(const void *handle)
{
    int error = fake_enter("cuModuleUnload", CONTEXT | UNSAFE, E_HANDLE);
    return fake_leave(fake_futile(error) ? error : unload(handle, error));
}

/* ---- functions ---- */

static Function *new_function(Module *m, const char *name)
{
    const void *(*parameters)(unsigned *n);
    char symbol[192];
    Function *f = calloc(1, sizeof *f);
    f->of = m;
    snprintf(f->name, sizeof f->name, "%s", name);
    snprintf(symbol, sizeof symbol, "emu_call_%s", name);
    *(void **)&f->kernel.call = dlsym(m->object, symbol);
    snprintf(symbol, sizeof symbol, "emu_parameters_%s", name);
    *(void **)&parameters = dlsym(m->object, symbol);
    f->kernel.object = dlsym(m->object, "emu_run");
    if (!f->kernel.call || !parameters || !f->kernel.object) {
        free(f);
        return NULL;
    }
    f->parameter = parameters(&f->n);
    f->threads_most = image_threads(m->image, name);
    f->threads_most = f->threads_most ? f->threads_most : EMU_THREADS;
    f->shared_most = EMU_SHARED_UNASKED;
    f->handle = fake_handle(KIND_FUNCTION, f);
    f->next = m->functions;
    m->functions = f;
    return f;
}

static int get_function(const void **out, const void *module, const char *name)
{
    Module *m = fake_object(KIND_MODULE, module);
    if (!m)
        return fake_refuse(E_HANDLE, "no module");
    if (!out || !name)
        return E_VALUE;
    fake_say("%.100s", name);
    Function *f = m->functions;
    while (f && strcmp(f->name, name) != 0)
        f = f->next;
    f = f ? f : new_function(m, name);
    if (!f)
        return E_NOT_FOUND;
    *out = f->handle;
    return E_OK;
}

FAKE_API int cuModuleGetFunction(const void **out, const void *module, const char *name)
{
    FAKE_CALL("cuModuleGetFunction", CONTEXT, E_NOT_FOUND, get_function(out, module, name));
}

static int set_attribute(const void *handle, int which, int value)
{
    Function *f = fake_object(KIND_FUNCTION, handle);
    if (!f)
        return fake_refuse(E_HANDLE, "no function");
    fake_say("%.100s %d", f->name, value);
    if (which == F_CARVEOUT)
        return value >= -1 && value <= 100 ? E_OK : E_VALUE;
    if (which != F_DYNAMIC || value < 0 || value > fake_shared_most())
        return E_VALUE;
    f->shared_most = value;
    return E_OK;
}

FAKE_API int cuFuncSetAttribute(const void *handle, int which, int value)
{
    FAKE_CALL("cuFuncSetAttribute", CONTEXT, E_VALUE, set_attribute(handle, which, value));
}

static int get_attribute(int *value, int which, const void *handle)
{
    const Function *f = fake_object(KIND_FUNCTION, handle);
    if (!f || !value)
        return f ? E_VALUE : fake_refuse(E_HANDLE, "no function");
    switch (which) {
    case F_THREADS: *value = f->threads_most; return E_OK;
    case F_SHARED:
    case F_CONSTANT:
    case F_LOCAL: *value = 0; return E_OK;
    case F_REGISTERS: *value = IMAGE_REGISTERS; return E_OK;
    case F_PTX:
    case F_BINARY: *value = f->of->arch; return E_OK;
    case F_DYNAMIC: *value = f->shared_most; return E_OK;
    default: return E_VALUE;
    }
}

FAKE_API int cuFuncGetAttribute(int *value, int which, const void *handle)
{
    FAKE_CALL("cuFuncGetAttribute", CONTEXT, E_VALUE, get_attribute(value, which, handle));
}

static int smaller(int a, int b) { return a < b ? a : b; }

static int occupancy(int *blocks, const void *handle, int threads, size_t shared)
{
    const Function *f = fake_object(KIND_FUNCTION, handle);
    if (!f)
        return fake_refuse(E_HANDLE, "no function");
    if (!blocks || threads < 1 || threads > EMU_THREADS)
        return E_VALUE;
    int whole = (threads + 31) / 32 * 32, reserved = fake_attribute(D_RESERVED_SHARED);
    *blocks = smaller(fake_attribute(D_BLOCKS_SM), fake_attribute(D_THREADS_SM) / whole);
    *blocks = smaller(*blocks, fake_attribute(D_REGISTERS_SM) / (IMAGE_REGISTERS * whole));
    *blocks = smaller(*blocks, (int)((size_t)fake_attribute(D_SHARED_SM) / (shared + (size_t)reserved)));
    if (shared > (size_t)f->shared_most)
        *blocks = 0;
    return E_OK;
}

FAKE_API int cuOccupancyMaxActiveBlocksPerMultiprocessor(int *blocks, const void *handle, int threads, size_t shared)
{
    FAKE_CALL("cuOccupancyMaxActiveBlocksPerMultiprocessor", CONTEXT, E_VALUE,
              occupancy(blocks, handle, threads, shared));
}

/* ---- tensor maps ---- */

FAKE_API int cuTensorMapEncodeTiled(void *out, int type, unsigned rank, void *memory, const uint64_t *extent,
                                    const uint64_t *stride, const unsigned *box, const unsigned *step, int interleave,
                                    int turned, int l2, int beyond);

static int make_map(void *out, int type, unsigned rank, void *memory, const uint64_t *extent, const uint64_t *stride,
                    const unsigned *box, const unsigned *step, const int how[4])
{
    if (fake_settings()->capability < 90)
        return fake_refuse(E_NOT_SUPPORTED, "tensor maps are for 9.0 and later");
    if (!extent || !stride || !box || !step)
        return E_VALUE;
    const char *wrong =
        emu_map_encode(out, type, rank, memory, extent, stride, box, step, how[0], how[1], how[2], how[3]);
    return wrong ? fake_refuse(E_VALUE, "%s", wrong) : E_OK;
}

FAKE_API int cuTensorMapEncodeTiled(void *out, int type, unsigned rank, void *memory, const uint64_t *extent,
                                    const uint64_t *stride, const unsigned *box, const unsigned *step, int interleave,
                                    int turned, int l2, int beyond)
{
    const int how[] = {interleave, turned, l2, beyond};
    FAKE_CALL("cuTensorMapEncodeTiled", CONTEXT, E_VALUE,
              make_map(out, type, rank, memory, extent, stride, box, step, how));
}

/* ---- launches ---- */

typedef struct Grid3 {
    unsigned grid[3], block[3], shared;
} Grid3;
typedef struct Started {
    const Function *f;
    Grid3 shape;
    char *argument; /* a copy of each, as the kernel takes them */
    void **at;
} Started;

static void launch_drop(void *data)
{
    Started *l = data;
    free(l->argument);
    free(l->at);
    free(l);
}

/* A kernel can reach the device's memory and pinned memory, not the rest of this process. */
static bool can_reach(const Started *l, char why[256])
{
    for (unsigned i = 0; i < l->f->n; i++) {
        uint64_t at;
        if (!l->f->parameter[i].address)
            continue;
        memcpy(&at, l->at[i], sizeof at);
        if (!at || fake_is_device(at) || fake_pinned((void *)(uintptr_t)at, 1))
            continue;
        snprintf(why, 256, "argument %u points to no memory of a device: %#llx", i, (unsigned long long)at);
        return false;
    }
    return true;
}

/* A random order of blocks; of malloc. */
static uint32_t *shuffled(uint32_t n)
{
    uint32_t *order = malloc(n * sizeof *order);
    for (uint32_t i = 0; i < n; i++) {
        uint32_t k = (uint32_t)(fake_random() % (i + 1));
        order[i] = order[k];
        order[k] = i;
    }
    return order;
}

static int run(void *data, char why[256])
{
    const Started *l = data;
    FakeBlocks blocks = fake_settings()->blocks;
    if (!l->f->of->live) {
        snprintf(why, 256, "its module was unloaded before it ran");
        return E_ADDRESS;
    }
    if (!can_reach(l, why))
        return E_ADDRESS;
    while (!strcmp(l->f->name, fake_settings()->hangs))
        pause();
    uint32_t *order = blocks == BLOCKS_SHUFFLED ? shuffled(l->shape.grid[0]) : NULL;
    EmuOptions how = {.descending = blocks == BLOCKS_DESCENDING, .lazy = blocks != BLOCKS_ASCENDING, .order = order};
    const char *trouble = emu_launch(&l->f->kernel, l->at, &how, l->shape.grid[0], l->shape.block[0], l->shape.shared);
    free(order);
    if (!trouble)
        return E_OK;
    snprintf(why, 256, "%.250s", trouble);
    return strstr(trouble, "multiple of its size") ? E_MISALIGNED : E_LAUNCH;
}

static size_t up(size_t x, size_t unit) { return (x + unit - 1) / unit * unit; }

/* Arguments from addresses of them, or from a buffer in which they lie as in a structure. */
static int take_arguments(Started *l, void **each, const char *all, size_t size)
{
    const Function *f = l->f;
    size_t n = 0;
    for (unsigned i = 0; i < f->n; i++)
        n = up(n, f->parameter[i].align) + f->parameter[i].bytes;
    const size_t most = call_argument_bytes(fake_settings()->capability, fake_settings()->driver);
    if (n > most)
        return fake_refuse(E_VALUE, "%zu bytes of arguments, and %zu are the most", n, most);
    if (f->n && !each && !all)
        return fake_refuse(E_VALUE, "no arguments");
    if (all && size < n)
        return fake_refuse(E_VALUE, "%zu bytes of arguments instead of %zu", size, n);
    l->argument = aligned_alloc(ARGUMENT_ALIGN, up(n + 16, ARGUMENT_ALIGN));
    memset(l->argument, 0, n + 16);
    l->at = calloc(f->n + 1, sizeof *l->at);
    n = 0;
    for (unsigned i = 0; i < f->n; i++) {
        n = up(n, f->parameter[i].align);
        l->at[i] = l->argument + n;
        if (!all && !each[i])
            return fake_refuse(E_VALUE, "argument %u has no address", i);
        memcpy(l->at[i], all ? all + n : each[i], f->parameter[i].bytes);
        n += f->parameter[i].bytes;
    }
    return E_OK;
}

static int read_extra(void **extra, const char **all, size_t *size)
{
    size_t *at = NULL;
    for (; extra && *extra != FAKE_EXTRA_END; extra += 2)
        if (*extra == FAKE_EXTRA_BUFFER)
            *all = extra[1];
        else if (*extra == FAKE_EXTRA_SIZE)
            at = extra[1];
        else
            return E_VALUE;
    *size = at ? *at : 0;
    return E_OK;
}

static int check_shape(const Function *f, const Grid3 *s)
{
    const char *wrong = emu_launch_wrong(s->grid, s->block, s->shared, (uint64_t)f->shared_most);
    if (wrong)
        return fake_refuse(E_VALUE, "%s", wrong);
    if (s->block[0] * s->block[1] * s->block[2] > (unsigned)f->threads_most)
        return fake_refuse(E_RESOURCES, "more threads than __launch_bounds__ says");
    if (s->grid[1] * s->grid[2] * s->block[1] * s->block[2] != 1)
        return fake_refuse(E_NOT_SUPPORTED, "the fake runs grids of one dimension");
    return E_OK;
}

static int launch(const void *handle, const Grid3 *shape, const void *stream, void **each, void **extra)
{
    Function *f = fake_object(KIND_FUNCTION, handle);
    const char *all = NULL;
    size_t size = 0;
    FakeStream *s;
    if (!f)
        return fake_refuse(E_HANDLE, "no function");
    fake_say("%.100s blocks %u threads %u shared %u", f->name, shape->grid[0], shape->block[0], shape->shared);
    int error = fake_stream(stream, &s);
    error = error ? error : check_shape(f, shape);
    error = error ? error : read_extra(extra, &all, &size);
    if (error || (each && extra))
        return error ? error : E_VALUE;
    if (fake_capturing(s) && !f->here) {
        fake_capture_invalidate(s);
        return fake_refuse(E_CAPTURE_UNSUPPORTED,
                           "its first launch, while a stream is captured: its code has to be loaded");
    }
    f->here = true;
    Started *l = calloc(1, sizeof *l);
    *l = (Started){.f = f, .shape = *shape};
    error = take_arguments(l, each, all, size);
    if (error) {
        launch_drop(l);
        return error;
    }
    return fake_enqueue(s, (FakeWork){f->name, run, launch_drop, l, NULL});
}

FAKE_API int cuLaunchKernel(const void *function, unsigned grid_x, unsigned grid_y, unsigned grid_z, unsigned block_x,
                            unsigned block_y, unsigned block_z, unsigned shared, const void *stream, void **each,
                            void **extra)
{
    Grid3 s = {{grid_x, grid_y, grid_z}, {block_x, block_y, block_z}, shared};
    FAKE_CALL("cuLaunchKernel", CONTEXT, E_RESOURCES, launch(function, &s, stream, each, extra));
}
