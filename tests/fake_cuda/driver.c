/* driver.c - libcuda: devices, the primary context, memory and copies.
 *
 * The one idea: what a call is given is checked when it is made, as far as the driver can; what it does is queued.
 */
#define _GNU_SOURCE
#include "driver.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { DEVICES_MAX = 16 };

typedef struct Context {
    int users; /* cuDevicePrimaryCtxRetain */
    void *handle;
} Context;

static bool started;
static Context context[DEVICES_MAX];
static __thread const void *current;
static __thread bool had; /* a context that has ended since */

static int rules(unsigned asked)
{
    if (!started)
        return fake_refuse(E_NOT_INITIALIZED, "cuInit was not called");
    if ((asked & NEEDS_CONTEXT) && !fake_object(KIND_CONTEXT, current))
        return fake_refuse(had ? E_DESTROYED : E_CONTEXT, "no context is current in this thread");
    return E_OK;
}

static void __attribute__((constructor)) begin(void) { fake_set_rules(rules); }

/* ---- the library ---- */

static int init(unsigned flags)
{
    if (flags)
        return E_VALUE;
    if (fake_settings()->devices < 1)
        return E_NO_DEVICE;
    started = true;
    return E_OK;
}

FAKE_API int cuInit(unsigned flags) { FAKE_CALL("cuInit", 0, E_UNKNOWN, init(flags)); }

FAKE_API int cuDriverGetVersion(int *version)
{
    FAKE_CALL("cuDriverGetVersion", 0, E_VALUE, version ? (*version = (int)fake_settings()->driver, E_OK) : E_VALUE);
}

static int error_name(int error, const char **text)
{
    if (text)
        *text = fake_error_name(error);
    return text && *text ? E_OK : E_VALUE;
}

FAKE_API int cuGetErrorName(int error, const char **text)
{
    FAKE_CALL("cuGetErrorName", 0, E_VALUE, error_name(error, text));
}

FAKE_API int cuGetErrorString(int error, const char **text)
{
    FAKE_CALL("cuGetErrorString", 0, E_VALUE, error_name(error, text));
}

/* ---- devices ---- */

static int count(int *n)
{
    if (!n)
        return E_VALUE;
    *n = (int)fake_settings()->devices;
    return E_OK;
}

FAKE_API int cuDeviceGetCount(int *n) { FAKE_CALL("cuDeviceGetCount", NEEDS_INIT, E_UNKNOWN, count(n)); }

static int known(int device)
{
    return device >= 0 && device < fake_settings()->devices && device < DEVICES_MAX ? E_OK : E_DEVICE;
}

static int device_get(int *device, int ordinal)
{
    if (!device)
        return E_VALUE;
    *device = ordinal;
    return known(ordinal);
}

FAKE_API int cuDeviceGet(int *device, int ordinal)
{
    FAKE_CALL("cuDeviceGet", NEEDS_INIT, E_UNKNOWN, device_get(device, ordinal));
}

static int device_name(char *text, int size, int device)
{
    if (!text || size < 1)
        return E_VALUE;
    snprintf(text, (size_t)size, "%s", fake_settings()->name);
    return known(device);
}

FAKE_API int cuDeviceGetName(char *text, int size, int device)
{
    FAKE_CALL("cuDeviceGetName", NEEDS_INIT, E_UNKNOWN, device_name(text, size, device));
}

static int device_memory(size_t *bytes, int device)
{
    if (!bytes)
        return E_VALUE;
    *bytes = (size_t)fake_settings()->memory << 20;
    return known(device);
}

FAKE_API int cuDeviceTotalMem_v2(size_t *bytes, int device)
{
    FAKE_CALL("cuDeviceTotalMem_v2", NEEDS_INIT, E_UNKNOWN, device_memory(bytes, device));
}

static int device_uuid(unsigned char uuid[16], int device)
{
    if (!uuid)
        return E_VALUE;
    memset(uuid, 0, 16);
    uuid[0] = 0xfa;
    uuid[15] = (unsigned char)device;
    return known(device);
}

FAKE_API int cuDeviceGetUuid_v2(unsigned char uuid[16], int device)
{
    FAKE_CALL("cuDeviceGetUuid_v2", NEEDS_INIT, E_UNKNOWN, device_uuid(uuid, device));
}

int fake_shared_most(void) { return emu_shared_of_sm(fake_settings()->capability) - EMU_SHARED_OWN; }

static int attribute_of(int which, int *value)
{
    const FakeSettings *s = fake_settings();
    long small = s->capability % 10 || s->capability == 120;
    const struct {
        int which;
        long value;
    } known_attributes[] = {
        {D_THREADS, EMU_THREADS},
        {D_BLOCK_X, EMU_THREADS},
        {D_BLOCK_Y, EMU_THREADS},
        {D_BLOCK_Z, EMU_THREADS_Z},
        {D_GRID_X, INT32_MAX},
        {D_GRID_Y, EMU_BLOCKS_YZ},
        {D_GRID_Z, EMU_BLOCKS_YZ},
        {D_SHARED, EMU_SHARED_UNASKED},
        {D_WARP, 32},
        {D_PITCH, INT32_MAX},
        {D_REGISTERS, EMU_REGISTERS},
        {D_CLOCK, 1755000},
        {D_SMS, s->sms},
        {D_INTEGRATED, 0},
        {D_COMPUTE_MODE, 0},
        {D_CONCURRENT, 1},
        {D_ECC, 1},
        {D_PCI_BUS, 1},
        {D_PCI_DEVICE, 0},
        {D_MEMORY_CLOCK, 2619000},
        {D_BUS_WIDTH, 5120},
        {D_L2, 50 << 20},
        {D_THREADS_SM, small ? 1536 : 2048},
        {D_COPY_ENGINES, 3},
        {D_UNIFIED, 1},
        {D_PCI_DOMAIN, 0},
        {D_MAJOR, s->capability / 10},
        {D_MINOR, s->capability % 10},
        {D_SHARED_SM, emu_shared_of_sm(s->capability)},
        {D_REGISTERS_SM, EMU_REGISTERS},
        {D_MANAGED, 1},
        {D_SHARED_OPT_IN, fake_shared_most()},
        {D_BLOCKS_SM, small ? 24 : 32},
        {D_RESERVED_SHARED, EMU_SHARED_OWN},
    };
    for (size_t i = 0; i < sizeof known_attributes / sizeof *known_attributes; i++)
        if (known_attributes[i].which == which) {
            *value = (int)known_attributes[i].value;
            return E_OK;
        }
    return fake_refuse(E_VALUE, "attribute %d is not known to the fake", which);
}

int fake_attribute(int which)
{
    int value = 0;
    return attribute_of(which, &value) ? 0 : value;
}

static int attribute(int *value, int which, int device)
{
    if (!value)
        return E_VALUE;
    return known(device) ? E_DEVICE : attribute_of(which, value);
}

FAKE_API int cuDeviceGetAttribute(int *value, int which, int device)
{
    FAKE_CALL("cuDeviceGetAttribute", NEEDS_INIT, E_UNKNOWN, attribute(value, which, device));
}

/* ---- the primary context ---- */

static int retain(void **out, int device)
{
    if (!out)
        return E_VALUE;
    if (known(device))
        return E_DEVICE;
    Context *c = &context[device];
    if (!c->users++)
        c->handle = fake_handle(KIND_CONTEXT, c);
    fake_made(KIND_CONTEXT);
    *out = c->handle;
    return E_OK;
}

FAKE_API int cuDevicePrimaryCtxRetain(void **out, int device)
{
    FAKE_CALL("cuDevicePrimaryCtxRetain", NEEDS_INIT, E_MEMORY, retain(out, device));
}

/* What is still there ends with it; nobody gave it back. */
static void end_context(void)
{
    static const FakeKind of_context[] = {KIND_MODULE, KIND_FUNCTION, KIND_EVENT, KIND_GRAPH, KIND_EXEC};
    for (size_t i = 0; i < sizeof of_context / sizeof *of_context; i++)
        fake_forget_all(of_context[i]);
    fake_ended();
    fake_streams_drop();
    fake_memory_end();
}

static int release(int device)
{
    if (known(device))
        return E_DEVICE;
    Context *c = &context[device];
    if (!c->users)
        return fake_refuse(E_CONTEXT, "it was not retained");
    fake_given_back(KIND_CONTEXT);
    if (--c->users)
        return E_OK;
    fake_wait_all();
    end_context();
    fake_forget(KIND_CONTEXT, c->handle);
    return E_OK;
}

FAKE_API int cuDevicePrimaryCtxRelease_v2(int device)
{
    FAKE_CALL("cuDevicePrimaryCtxRelease_v2", NEEDS_INIT, E_UNKNOWN, release(device));
}

static int set_current(const void *handle)
{
    if (handle && !fake_object(KIND_CONTEXT, handle))
        return fake_refuse(E_CONTEXT, "no context");
    current = handle;
    had = handle != NULL;
    return E_OK;
}

FAKE_API int cuCtxSetCurrent(const void *handle)
{
    FAKE_CALL("cuCtxSetCurrent", NEEDS_INIT, E_CONTEXT, set_current(handle));
}

static int get_current(const void **out)
{
    if (!out)
        return E_VALUE;
    *out = fake_object(KIND_CONTEXT, current) ? current : NULL;
    return E_OK;
}

FAKE_API int cuCtxGetCurrent(const void **out)
{
    FAKE_CALL("cuCtxGetCurrent", NEEDS_INIT, E_UNKNOWN, get_current(out));
}

FAKE_API int cuCtxSynchronize(void)
{
    FAKE_CALL("cuCtxSynchronize", NEEDS_INIT | NEEDS_CONTEXT | UNSAFE, E_LAUNCH, fake_wait_all());
}

static int priorities(int *least, int *greatest)
{
    if (least)
        *least = 0;
    if (greatest)
        *greatest = -5;
    return E_OK;
}

FAKE_API int cuCtxGetStreamPriorityRange(int *least, int *greatest)
{
    FAKE_CALL("cuCtxGetStreamPriorityRange", NEEDS_INIT | NEEDS_CONTEXT, E_UNKNOWN, priorities(least, greatest));
}

/* ---- memory ---- */

static int memory_info(size_t *available, size_t *total)
{
    if (!available || !total)
        return E_VALUE;
    *available = fake_memory_free();
    *total = (size_t)fake_settings()->memory << 20;
    return E_OK;
}

FAKE_API int cuMemGetInfo_v2(size_t *available, size_t *total)
{
    FAKE_CALL("cuMemGetInfo_v2", NEEDS_INIT | NEEDS_CONTEXT, E_UNKNOWN, memory_info(available, total));
}

static int mem_alloc(uint64_t *out, size_t bytes)
{
    fake_say("%zu bytes", bytes);
    if (!out || !bytes)
        return E_VALUE;
    *out = fake_alloc(bytes);
    if (!*out)
        return E_MEMORY;
    fake_made(KIND_ALLOCATION);
    return E_OK;
}

FAKE_API int cuMemAlloc_v2(uint64_t *out, size_t bytes)
{
    FAKE_CALL("cuMemAlloc_v2", NEEDS_INIT | NEEDS_CONTEXT | UNSAFE, E_MEMORY, mem_alloc(out, bytes));
}

bool fake_futile(int error)
{
    return error == E_NOT_INITIALIZED || error == E_CONTEXT || error == E_DESTROYED || error == E_CAPTURE_UNSUPPORTED;
}

static int mem_free(uint64_t at, int error)
{
    if (!at)
        return error;
    if (!fake_free(at))
        return error ? error : fake_refuse(E_VALUE, "no allocation begins there");
    fake_given_back(KIND_ALLOCATION);
    return error;
}

FAKE_API int cuMemFree_v2(uint64_t at)
{
    int error = fake_enter("cuMemFree_v2", NEEDS_INIT | NEEDS_CONTEXT | UNSAFE, E_VALUE);
    return fake_leave(fake_futile(error) ? error : mem_free(at, error));
}

static int host_alloc(void **out, size_t bytes, unsigned flags)
{
    fake_say("%zu bytes", bytes);
    if (!out || !bytes || (flags & ~7u))
        return E_VALUE;
    *out = fake_pin(bytes);
    if (!*out)
        return E_MEMORY;
    fake_made(KIND_PINNED);
    return E_OK;
}

FAKE_API int cuMemHostAlloc(void **out, size_t bytes, unsigned flags)
{
    FAKE_CALL("cuMemHostAlloc", NEEDS_INIT | NEEDS_CONTEXT | UNSAFE, E_MEMORY, host_alloc(out, bytes, flags));
}

FAKE_API int cuMemAllocHost_v2(void **out, size_t bytes)
{
    FAKE_CALL("cuMemAllocHost_v2", NEEDS_INIT | NEEDS_CONTEXT | UNSAFE, E_MEMORY, host_alloc(out, bytes, 0));
}

static int host_free(void *at, int error)
{
    if (!fake_unpin(at))
        return error ? error : fake_refuse(E_VALUE, "no pinned memory begins there");
    fake_given_back(KIND_PINNED);
    return error;
}

FAKE_API int cuMemFreeHost(void *at)
{
    int error = fake_enter("cuMemFreeHost", NEEDS_INIT | NEEDS_CONTEXT | UNSAFE, E_VALUE);
    return fake_leave(fake_futile(error) ? error : host_free(at, error));
}

/* ---- what streams do with memory ---- */

/* Rows of bytes; a fill has no `from`, and repeats `unit` bytes of `value`. */
typedef struct Move {
    char *to, *from;
    void *staged; /* `from`, or NULL */
    size_t width, height, to_pitch, from_pitch, unit;
    uint32_t value;
} Move;

static int move(void *data, char why[256])
{
    const Move *m = data;
    (void)why;
    for (size_t y = 0; y < m->height; y++)
        if (m->from)
            memcpy(m->to + y * m->to_pitch, m->from + y * m->from_pitch, m->width);
        else
            for (size_t x = 0; x < m->width; x += m->unit)
                memcpy(m->to + y * m->to_pitch + x, &m->value, m->unit);
    return E_OK;
}

static void move_drop(void *data)
{
    free(((Move *)data)->staged);
    free(data);
}

static int enqueue_move(FakeStream *s, const char *what, Move m)
{
    Move *kept = malloc(sizeof *kept);
    *kept = m;
    return fake_enqueue(s, (FakeWork){what, move, move_drop, kept, NULL});
}

/* Bytes from the first to behind the last. */
static size_t extent(size_t width, size_t height, size_t pitch)
{
    return width && height ? (height - 1) * pitch + width : 0;
}

static char *address(uint64_t at) { return (char *)(uintptr_t)at; }

/* The host's memory is read now where it is no pinned memory, for it may be gone when the copy runs. */
static void stage(Move *m)
{
    size_t bytes = extent(m->width, m->height, m->from_pitch);
    m->staged = malloc(bytes + 1);
    memcpy(m->staged, m->from, bytes);
    m->from = m->staged;
}

static int copy(FakeStream *s, const char *what, Move m, bool from_host, bool to_host)
{
    size_t read = extent(m.width, m.height, m.from_pitch), written = extent(m.width, m.height, m.to_pitch);
    bool pageable_from = from_host && !fake_pinned(m.from, read), pageable_to = to_host && !fake_pinned(m.to, written);
    if (!read)
        return E_OK;
    if ((from_host ? !m.from || fake_is_device((uintptr_t)m.from) : !fake_holds((uintptr_t)m.from, read)) ||
        (to_host ? !m.to || fake_is_device((uintptr_t)m.to) : !fake_holds((uintptr_t)m.to, written)))
        return fake_refuse(E_VALUE, "memory that is not what it should be, or not so long");
    if (pageable_from || pageable_to)
        fake_say("pageable");
    if (pageable_from && !fake_capturing(s))
        stage(&m);
    int error = enqueue_move(s, what, m);
    /* Into pageable memory the driver copies itself, and returns when it has. */
    return error || !pageable_to || fake_capturing(s) ? error : fake_wait_stream(s);
}

static int copy_line(const void *stream, const char *what, void *to, const void *from, size_t bytes, bool from_host,
                     bool to_host)
{
    FakeStream *s;
    int error = fake_stream(stream, &s);
    fake_say("%zu bytes", bytes);
    Move m = {.to = to, .from = (char *)from, .width = bytes, .height = 1, .to_pitch = bytes, .from_pitch = bytes};
    return error ? error : copy(s, what, m, from_host, to_host);
}

FAKE_API int cuMemcpyHtoDAsync_v2(uint64_t to, const void *from, size_t bytes, const void *stream)
{
    FAKE_CALL("cuMemcpyHtoDAsync_v2", NEEDS_INIT | NEEDS_CONTEXT, E_VALUE,
              copy_line(stream, "a copy to the device", address(to), from, bytes, true, false));
}

FAKE_API int cuMemcpyDtoHAsync_v2(void *to, uint64_t from, size_t bytes, const void *stream)
{
    FAKE_CALL("cuMemcpyDtoHAsync_v2", NEEDS_INIT | NEEDS_CONTEXT, E_VALUE,
              copy_line(stream, "a copy to the host", to, address(from), bytes, false, true));
}

FAKE_API int cuMemcpyDtoDAsync_v2(uint64_t to, uint64_t from, size_t bytes, const void *stream)
{
    FAKE_CALL("cuMemcpyDtoDAsync_v2", NEEDS_INIT | NEEDS_CONTEXT, E_VALUE,
              copy_line(stream, "a copy on the device", address(to), address(from), bytes, false, false));
}

static int copy_rows(const FakeCopy2D *c, const void *stream)
{
    FakeStream *s;
    int error = fake_stream(stream, &s);
    if (error || !c)
        return error ? error : E_VALUE;
    bool from_host = c->from_kind == MEMORY_HOST, to_host = c->to_kind == MEMORY_HOST;
    fake_say("%zu x %zu bytes", c->height, c->width);
    if ((!from_host && c->from_kind != MEMORY_DEVICE) || (!to_host && c->to_kind != MEMORY_DEVICE))
        return fake_refuse(E_VALUE, "a kind of memory that the fake does not know");
    size_t from_pitch = c->from_pitch ? c->from_pitch : c->from_x + c->width;
    size_t to_pitch = c->to_pitch ? c->to_pitch : c->to_x + c->width;
    if (from_pitch < c->from_x + c->width || to_pitch < c->to_x + c->width || from_pitch > INT32_MAX ||
        to_pitch > INT32_MAX)
        return fake_refuse(E_VALUE, "a pitch below the width, or above the device's limit");
    char *from = from_host ? (char *)c->from_host : address(c->from_device);
    char *to = to_host ? (char *)c->to_host : address(c->to_device);
    Move m = {.to = to + c->to_y * to_pitch + c->to_x,
              .from = from + c->from_y * from_pitch + c->from_x,
              .width = c->width,
              .height = c->height,
              .to_pitch = to_pitch,
              .from_pitch = from_pitch};
    return copy(s, "a copy of rows", m, from_host, to_host);
}

FAKE_API int cuMemcpy2DAsync_v2(const FakeCopy2D *c, const void *stream)
{
    FAKE_CALL("cuMemcpy2DAsync_v2", NEEDS_INIT | NEEDS_CONTEXT, E_VALUE, copy_rows(c, stream));
}

static int fill(const void *stream, uint64_t at, uint32_t value, size_t unit, size_t n)
{
    FakeStream *s;
    int error = fake_stream(stream, &s);
    fake_say("%zu bytes", unit * n);
    if (error || !n)
        return error;
    if (at % unit || n > SIZE_MAX / unit || !fake_holds(at, unit * n))
        return fake_refuse(E_VALUE, "no memory of the device that is so long, or not aligned");
    return enqueue_move(s, "a fill",
                        (Move){.to = address(at), .width = unit * n, .height = 1, .unit = unit, .value = value});
}

FAKE_API int cuMemsetD8Async(uint64_t at, unsigned char value, size_t n, const void *stream)
{
    FAKE_CALL("cuMemsetD8Async", NEEDS_INIT | NEEDS_CONTEXT, E_VALUE, fill(stream, at, value, 1, n));
}

FAKE_API int cuMemsetD32Async(uint64_t at, unsigned value, size_t n, const void *stream)
{
    FAKE_CALL("cuMemsetD32Async", NEEDS_INIT | NEEDS_CONTEXT, E_VALUE, fill(stream, at, value, 4, n));
}
