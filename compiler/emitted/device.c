/* device.c - see compute.h: threads, and memory that is theirs. */
#include "rows.h"

#include <stdlib.h>
#include <string.h>

const bool device_has_threads = true;

char *device_room(Run *run, uint64_t bytes)
{
    (void)run;
    return room(bytes);
}

void device_free(Run *run, char *memory)
{
    (void)run;
    free(memory);
}

void device_open(Run *run, int64_t threads)
{
    int n = threads_available();
    if (threads > 0)
        n = threads < 1024 ? (int)threads : 1024;
    run->inputs = room(model.input_bytes);
    run->tensors = device_room(run, model.tensor_bytes);
    run->arena = device_room(run, model.arena_bytes);
    run->device = room(sizeof *run->device);
    run->device->pool = pool_open(n);
    if (!run->device->pool)
        stop("no memory for threads");
}

void device_close(Run *run)
{
    pool_close(run->device->pool);
    free(run->device);
    device_free(run, run->arena);
    device_free(run, run->tensors);
    free(run->inputs);
}

void device_put(Run *run, void *to, const void *from, uint64_t bytes)
{
    (void)run;
    memcpy(to, from, (size_t)bytes);
}

void device_get(const Run *run, void *to, const void *from, uint64_t bytes)
{
    (void)run;
    memcpy(to, from, (size_t)bytes);
}
