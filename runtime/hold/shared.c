/* shared.c - memory of tensors that models and their callers hold together.
 *
 * In:  a number of bytes.   Out: memory that goes with its last holder, whichever thread that is on.
 * The one idea: it is of the C library, and of no context, so it may outlive what has computed it.
 */
#define _GNU_SOURCE /* RTLD_DEFAULT */
#include <dlfcn.h>
#include <stdatomic.h>
#include <stdlib.h>

#include "hold.h"

struct vwn_memory {
    atomic_size_t holders;
    uint64_t bytes;
    void *at;
};

enum { ALIGNED = 64 };

struct vwn_memory *memory_new(uint64_t bytes)
{
    if (bytes > SIZE_MAX - ALIGNED)
        return NULL;
    size_t size = ((size_t)bytes / ALIGNED + 1) * ALIGNED;
    struct vwn_memory *m = malloc(sizeof *m);
    void *at = m ? aligned_alloc(ALIGNED, size) : NULL;
    if (!at) {
        free(m);
        return NULL;
    }
    memset(at, 0, size);
    *m = (struct vwn_memory){.bytes = bytes, .at = at};
    atomic_init(&m->holders, 1);
    return m;
}

void *memory_at(const struct vwn_memory *m) { return m->at; }

bool memory_is_alone(const struct vwn_memory *m, uint64_t bytes)
{
    return m->bytes == bytes && atomic_load(&m->holders) == 1;
}

struct vwn_memory *memory_keep(struct vwn_memory *m)
{
    if (m)
        atomic_fetch_add(&m->holders, 1);
    return m;
}

void memory_release(struct vwn_memory *m)
{
    if (!m || atomic_fetch_sub(&m->holders, 1) != 1)
        return;
    free(m->at);
    free(m);
}

/* ---- DLPack ---- */

/* The structures of https://github.com/dmlc/dlpack, version 0.8: an exchange of tensors by their addresses. */
typedef struct DLTensor {
    void *data;
    struct {
        int32_t type, id;
    } device;
    int32_t rank;
    struct {
        uint8_t code, bits;
        uint16_t lanes;
    } dtype;
    int64_t *shape, *strides;
    uint64_t byte_offset;
} DLTensor;
typedef struct DLManagedTensor {
    DLTensor tensor;
    void *context;
    void (*deleter)(struct DLManagedTensor *self);
} DLManagedTensor;
enum { DL_CPU = 1, DL_INT = 0, DL_FLOAT = 2 };

typedef struct Shared {
    DLManagedTensor managed; /* first: its address is this one's */
    struct vwn_memory *memory;
    int64_t shape[VWN_RANK_MOST];
} Shared;

static void drop(DLManagedTensor *managed)
{
    Shared *s = managed->context;
    memory_release(s->memory);
    free(s);
}

void *tensor_dlpack(const vwn_tensor *tensor)
{
    Shared *s = malloc(sizeof *s);
    if (!s)
        return NULL;
    bool integer = tensor->type[0] == 'i';
    *s = (Shared){.memory = memory_keep(tensor->memory)};
    s->managed = (DLManagedTensor){.context = s, .deleter = drop};
    DLTensor *t = &s->managed.tensor;
    t->data = tensor->data;
    t->device.type = DL_CPU;
    t->rank = tensor->rank;
    t->dtype.code = integer ? DL_INT : DL_FLOAT;
    t->dtype.bits = strstr(tensor->type, "64") ? 64 : 32;
    t->dtype.lanes = 1;
    t->shape = s->shape;
    memcpy(s->shape, tensor->extent, sizeof s->shape);
    return &s->managed;
}

/* Python's own functions are asked: they are in the process where there is a capsule. None of the two raises an exception, which one
 * that is on its way would not survive. */
void dlpack_unused(void *capsule)
{
    int (*is_valid)(void *, const char *);
    void *(*pointer)(void *, const char *);
    *(void **)&is_valid = dlsym(RTLD_DEFAULT, "PyCapsule_IsValid");
    *(void **)&pointer = dlsym(RTLD_DEFAULT, "PyCapsule_GetPointer");
    if (!is_valid || !pointer || !is_valid(capsule, "dltensor"))
        return;
    DLManagedTensor *managed = pointer(capsule, "dltensor");
    managed->deleter(managed);
}
