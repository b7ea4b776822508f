/* torch_call.c - the one function behind all operators of a package for PyTorch.
 *
 * In:  the number of a function, sizes, pointers to tensors, a workspace.   Out: tensors written.
 * The one idea: memory is the caller's, threads are the library's: as many as the caller says, and never two loops at once. A call that
 * finds them busy computes alone; what is computed does not depend on it.
 */
#include "torch_call.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

enum { ALIGNED_TO = 64 };
/* What a call writes beyond a cache is not kept in it. */
static const uint64_t PAST_CACHE = 128000000;

static pthread_mutex_t busy = PTHREAD_MUTEX_INITIALIZER;
static Pool *pool;

void stop(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    abort();
}

void *room(uint64_t bytes)
{
    void *p = aligned_alloc(ALIGNED_TO, (size_t)((bytes + ALIGNED_TO - 1) / ALIGNED_TO * ALIGNED_TO + ALIGNED_TO));
    if (!p)
        stop("no memory for %.1f MiB", (double)bytes / 1048576);
    return p;
}

/* ---- where values lie ---- */

static uint64_t rounded(uint64_t bytes) { return (bytes + ALIGNED_TO - 1) / ALIGNED_TO * ALIGNED_TO; }

enum { NONE = UINT32_MAX };

/* The lists that a workspace begins with. */
typedef struct Places {
    uint64_t *bytes, *place; /* of each value */
    uint32_t *next;          /* of those that live, by place */
} Places;

static Places places_at(const Function *f, void *workspace)
{
    uint64_t *bytes = workspace;
    return (Places){bytes, bytes + f->values, (uint32_t *)(bytes + 2 * f->values)};
}

/* Where each value lies behind these lists: the lowest place where nothing lies that lives when it does; how long that is. Values
 * stand in the order in which their lives begin. */
static uint64_t place_values(const Function *f, int64_t B, int64_t T, const Places *p)
{
    uint64_t end = 0;
    uint32_t first = NONE;
    f->bytes(B, T, p->bytes);
    for (uint32_t x = 0; x < f->values; x++) {
        uint64_t at = 0, size = rounded(p->bytes[x]);
        uint32_t *link = &first;
        while (*link != NONE) {
            uint32_t i = *link;
            if (f->life[i].last < f->life[x].first) {
                *link = p->next[i];
                continue;
            }
            if (p->place[i] >= at + size)
                break;
            at = p->place[i] + p->bytes[i];
            link = &p->next[i];
        }
        p->bytes[x] = size;
        p->place[x] = at;
        p->next[x] = *link;
        *link = x;
        end = at + size > end ? at + size : end;
    }
    return end;
}

static uint64_t lists(const Function *f) { return rounded(f->values * (2 * sizeof(uint64_t) + sizeof(uint32_t)) + 1); }

/* How many bytes of workspace a call needs, and besides 4 for each number of 16 bits and 64 for each tensor of such; -1: there is no memory to find out. */
EXPORT int64_t vwn_workspace(unsigned number, int64_t B, int64_t T)
{
    const Function *f = function[number];
    void *room = malloc((size_t)lists(f));
    if (!room)
        return -1;
    Places p = places_at(f, room);
    uint64_t end = place_values(f, B, T, &p);
    free(room);
    return (int64_t)(end + lists(f) + rounded(f->tensors * sizeof(void *)) + ALIGNED_TO);
}

EXPORT unsigned vwn_functions(void) { return functions; }

/* Float32 numbers for tensors of 16 bits, behind the values; those that are read are there. */
static void stage(const Function *f, Pool *pool, void *const *tensor, const unsigned char *type, const int64_t *numbers,
                  char *room, char **now)
{
    for (unsigned i = 0; i < f->tensors; i++) {
        now[i] = type[i] ? room : tensor[i];
        if (!type[i])
            continue;
        room += rounded((uint64_t)numbers[i] * sizeof(float));
        if (i < f->read)
            numbers_widen(pool, (NumberType)type[i], tensor[i], (float *)now[i], numbers[i]);
    }
}

/* tensor: pointers in the order of the table, the type of each and its numbers; workspace: of that many bytes; written: bytes of what
 * is. */
EXPORT void vwn_call(unsigned number, int64_t B, int64_t T, void *const *tensor, const unsigned char *type,
                     const int64_t *numbers, void *workspace, int threads, uint64_t written)
{
    const Function *f = function[number];
    char *at = (char *)(((uintptr_t)workspace + ALIGNED_TO - 1) / ALIGNED_TO * ALIGNED_TO);
    Places p = places_at(f, at);
    uint64_t end = place_values(f, B, T, &p);
    char **now = (char **)(at + lists(f) + end);
    Device device = {NULL};
    Run run = {.device = &device};
    bool own = threads > 1 && pthread_mutex_trylock(&busy) == 0;
    if (own && (!pool || pool_threads(pool) != threads)) {
        pool_close(pool);
        pool = pool_open(threads);
    }
    if (own)
        device.pool = pool;
    stage(f, device.pool, tensor, type, numbers, (char *)now + rounded(f->tensors * sizeof(void *)), now);
    f->run(&run, now, at + lists(f), p.place, B, T, written + end >= PAST_CACHE);
    for (unsigned i = f->read; i < f->tensors; i++)
        if (type[i])
            numbers_round(device.pool, (NumberType)type[i], (const float *)now[i], tensor[i], numbers[i]);
    if (own)
        pthread_mutex_unlock(&busy);
}
