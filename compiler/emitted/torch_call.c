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

/* The lowest place where nothing lies that lives when value x does; those before it have theirs. */
static uint64_t place_of(const Function *f, const uint64_t *bytes, const uint64_t *place, unsigned x)
{
    uint64_t at = 0;
    for (unsigned i = 0; i < x; i++) {
        bool meet = f->life[i].first <= f->life[x].last && f->life[x].first <= f->life[i].last;
        if (!meet || !bytes[i] || place[i] >= at + bytes[x] || place[i] + bytes[i] <= at)
            continue;
        at = place[i] + bytes[i];
        i = (unsigned)-1; /* from the first one again */
    }
    return at;
}

/* Where each value lies behind these two lists, which a workspace begins with; how long it is. */
static uint64_t place_values(const Function *f, int64_t B, int64_t T, uint64_t *bytes, uint64_t *place)
{
    uint64_t end = 0;
    f->bytes(B, T, bytes);
    for (unsigned i = 0; i < f->values; i++) {
        bytes[i] = rounded(bytes[i]);
        place[i] = place_of(f, bytes, place, i);
        end = place[i] + bytes[i] > end ? place[i] + bytes[i] : end;
    }
    return end;
}

static uint64_t lists(const Function *f) { return rounded(2 * f->values * sizeof(uint64_t) + 1); }

/* How many bytes of workspace a call needs; -1: there is no memory to find out. */
EXPORT int64_t vwn_workspace(unsigned number, int64_t B, int64_t T)
{
    const Function *f = function[number];
    uint64_t *both = malloc((size_t)lists(f));
    if (!both)
        return -1;
    uint64_t end = place_values(f, B, T, both, both + f->values);
    free(both);
    return (int64_t)(end + lists(f) + ALIGNED_TO);
}

EXPORT unsigned vwn_functions(void) { return functions; }

/* tensor: pointers in the order of the table; workspace: of that many bytes; written: bytes of what is. */
EXPORT void vwn_call(unsigned number, int64_t B, int64_t T, void *const *tensor, void *workspace, int threads,
                     uint64_t written)
{
    const Function *f = function[number];
    char *at = (char *)(((uintptr_t)workspace + ALIGNED_TO - 1) / ALIGNED_TO * ALIGNED_TO);
    uint64_t *bytes = (uint64_t *)at, *place = bytes + f->values;
    uint64_t end = place_values(f, B, T, bytes, place);
    Device device = {NULL};
    Run run = {.device = &device};
    bool own = threads > 1 && pthread_mutex_trylock(&busy) == 0;
    if (own && (!pool || pool_threads(pool) != threads)) {
        pool_close(pool);
        pool = pool_open(threads);
    }
    if (own)
        device.pool = pool;
    f->run(&run, (char *const *)tensor, at + lists(f), place, B, T, written + end >= PAST_CACHE);
    if (own)
        pthread_mutex_unlock(&busy);
}
