/* mpi.c - ranks that are connected by the MPI which has started them.
 *
 * In:  the name of a library, which is opened while the program runs.   Out: a link to each other rank.
 * The one idea: of MPI only messages of bytes are wanted, and no sum of its own; so no header is needed but three constants of each
 * family: what the world is called, what a byte is, and by which symbol the family is known (Open MPI; MPICH and its relatives; the
 * ABI of MPI 5). A link is a stream: of a message that is longer than what is asked for the rest is kept.
 */
#define _GNU_SOURCE
#include "transport.h"

#include "runtime/base/machine.h"

#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* A handle of any family: a pointer or an int, which a register holds either way. */
typedef uintptr_t MpiHandle;
enum { MPI_TAG = 77, MPI_SMALL = 512, MPI_MOST = 1 << 30, MPI_STATUS_BYTES = 256, MPI_FUNNELED = 1 };

static struct {
    MpiHandle world, byte;
    int (*init)(int *, char ***, int, int *), (*finalize)(void);
    int (*rank)(MpiHandle, int *), (*size)(MpiHandle, int *);
    int (*isend)(const void *, int, MpiHandle, int, int, MpiHandle, MpiHandle *);
    int (*test)(MpiHandle *, int *, void *);
    int (*iprobe)(int, int, MpiHandle, int *, void *);
    int (*count)(const void *, MpiHandle, int *);
    int (*recv)(void *, int, MpiHandle, int, int, MpiHandle, void *);
} mpi;

/* A message that has been copied, and is on its way. */
typedef struct MpiSmall {
    MpiHandle request;
    struct MpiSmall *next;
    char bytes[MPI_SMALL];
} MpiSmall;

struct MpiLink {
    MpiHandle request; /* of a large message, */
    size_t sending;    /* and its bytes; 0: there is none */
    MpiSmall *small;
    char *kept; /* of a message that was longer than what was asked for */
    size_t kept_at, kept_n, kept_room;
    bool own; /* of this process itself */
};

/* ---- the library ---- */

static bool find_functions(void *library, const char *name, char why[RANKS_WHY])
{
    const struct {
        const char *name;
        void *function;
    } of[] = {{"MPI_Init_thread", &mpi.init}, {"MPI_Finalize", &mpi.finalize}, {"MPI_Comm_rank", &mpi.rank},
              {"MPI_Comm_size", &mpi.size},   {"MPI_Isend", &mpi.isend},       {"MPI_Test", &mpi.test},
              {"MPI_Iprobe", &mpi.iprobe},    {"MPI_Get_count", &mpi.count},   {"MPI_Recv", &mpi.recv}};
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        void *f = dlsym(library, of[i].name);
        if (!f) {
            snprintf(why, RANKS_WHY, "%.200s is no MPI: it has no %s", name, of[i].name);
            return false;
        }
        memcpy(of[i].function, &f, sizeof f);
    }
    return true;
}

/* Open MPI has objects; the ABI of MPI 5 says its version, which MPICH's own library does not. */
static void find_constants(void *library)
{
    int (*abi)(int *, int *) = NULL, major = -1, minor = -1;
    void *version = dlsym(library, "MPI_Abi_get_version"), *world = dlsym(library, "ompi_mpi_comm_world");
    memcpy(&abi, &version, sizeof version);
    if (world) {
        mpi.world = (MpiHandle)world;
        mpi.byte = (MpiHandle)dlsym(library, "ompi_mpi_byte");
    } else if (abi && abi(&major, &minor) == 0 && major >= 1) {
        mpi.world = 0x101;
        mpi.byte = 0x247;
    } else {
        mpi.world = 0x44000000;
        mpi.byte = 0x4c00010d;
    }
}

static bool open_library(const RanksAsk *ask, char why[RANKS_WHY])
{
    int level, rank = -1, size = -1;
    void *library = dlopen(ask->mpi, RTLD_NOW | RTLD_GLOBAL);
    if (!library) {
        snprintf(
            why, RANKS_WHY,
            "%.40s says that %d processes work together, and their MPI cannot be opened (%.200s): name its library in "
            "VWN_MPI, or set MASTER_ADDR and MASTER_PORT",
            ask->by, ask->size, dlerror());
        return false;
    }
    if (!find_functions(library, ask->mpi, why))
        return false;
    find_constants(library);
    if (mpi.init(NULL, NULL, MPI_FUNNELED, &level) != 0) {
        snprintf(why, RANKS_WHY, "%.200s does not begin", ask->mpi);
        return false;
    }
    mpi.rank(mpi.world, &rank);
    mpi.size(mpi.world, &size);
    if (rank == ask->rank && size == ask->size)
        return true;
    snprintf(
        why, RANKS_WHY,
        "%.200s is not the MPI of what has started this process: it says rank %d of %d, and %.40s rank %d of %d; name "
        "another library in VWN_MPI",
        ask->mpi, rank, size, ask->by, ask->rank, ask->size);
    return false;
}

/* ---- messages ---- */

static bool has_arrived(MpiHandle *request)
{
    char status[MPI_STATUS_BYTES];
    int flag = 0;
    mpi.test(request, &flag, status);
    return flag != 0;
}

/* Those that have arrived are let go, the oldest first. */
static void let_small_go(struct MpiLink *l)
{
    while (l->small && has_arrived(&l->small->request)) {
        MpiSmall *done = l->small;
        l->small = done->next;
        free(done);
    }
}

static ssize_t put_small(struct MpiLink *l, int rank, const void *bytes, size_t n)
{
    MpiSmall *m = calloc(1, sizeof *m), **last = &l->small;
    if (!m)
        return -1;
    memcpy(m->bytes, bytes, n);
    while (*last)
        last = &(*last)->next;
    *last = m;
    mpi.isend(m->bytes, (int)n, mpi.byte, rank, MPI_TAG, mpi.world, &m->request);
    return (ssize_t)n;
}

static ssize_t mpi_put(Links *links, int rank, const void *bytes, size_t n)
{
    struct MpiLink *l = &links->mpi[rank];
    let_small_go(l);
    if (!l->sending && n <= MPI_SMALL)
        return put_small(l, rank, bytes, n);
    if (!l->sending) {
        l->sending = n < MPI_MOST ? n : MPI_MOST;
        mpi.isend(bytes, (int)l->sending, mpi.byte, rank, MPI_TAG, mpi.world, &l->request);
    }
    if (!has_arrived(&l->request))
        return 0;
    n = l->sending;
    l->sending = 0;
    return (ssize_t)n;
}

static ssize_t take_kept(struct MpiLink *l, void *bytes, size_t n)
{
    n = n < l->kept_n ? n : l->kept_n;
    memcpy(bytes, l->kept + l->kept_at, n);
    l->kept_at += n;
    l->kept_n -= n;
    return (ssize_t)n;
}

static ssize_t mpi_take(Links *links, int rank, void *bytes, size_t n)
{
    struct MpiLink *l = &links->mpi[rank];
    char status[MPI_STATUS_BYTES];
    int there = 0, count = 0;
    if (l->kept_n)
        return take_kept(l, bytes, n);
    mpi.iprobe(rank, MPI_TAG, mpi.world, &there, status);
    if (!there)
        return 0;
    mpi.count(status, mpi.byte, &count);
    if ((size_t)count <= n) {
        mpi.recv(bytes, count, mpi.byte, rank, MPI_TAG, mpi.world, status);
        return count;
    }
    if (l->kept_room < (size_t)count) {
        free(l->kept);
        l->kept = malloc((size_t)count);
        l->kept_room = l->kept ? (size_t)count : 0;
        if (!l->kept)
            return -1;
    }
    mpi.recv(l->kept, count, mpi.byte, rank, MPI_TAG, mpi.world, status);
    l->kept_at = 0;
    l->kept_n = (size_t)count;
    return take_kept(l, bytes, n);
}

/* Nothing says when a message comes: it is looked for again. */
static void mpi_wait(Links *links, const LinkWant *want, int size, int ms)
{
    (void)links, (void)want, (void)size;
    nanosleep(&(struct timespec){.tv_nsec = ms > 0 ? 50000 : 0}, NULL);
}

static void mpi_close(Links *links, int size, bool failed)
{
    double until = clock_seconds() + 0.5;
    bool first = links->mpi && links->mpi[0].own;
    for (int i = 0; links->mpi && i < size; i++) {
        struct MpiLink *l = &links->mpi[i];
        while (l->small && clock_seconds() < until)
            let_small_go(l);
        free(l->kept);
    }
    /* Whoever has started the processes ends all as soon as one is gone, and the first has to say why. */
    if (links->mpi && !failed)
        mpi.finalize();
    else if (!first)
        nanosleep(&(struct timespec){.tv_nsec = 300000000}, NULL);
    free(links->mpi);
}

static bool mpi_open(const RanksAsk *ask, double seconds, Links *links, char why[RANKS_WHY])
{
    double until = clock_seconds() + seconds;
    RankPlace *own = &links->place[ask->rank];
    if (!open_library(ask, why))
        return false;
    links->mpi = calloc((size_t)ask->size, sizeof *links->mpi);
    if (!links->mpi)
        return false;
    links->mpi[ask->rank].own = true;
    *own = rank_place();
    for (int i = 0; i < ask->size; i++)
        if (i != ask->rank)
            mpi_put(links, i, own, sizeof *own);
    for (int i = 0; i < ask->size; i++)
        for (size_t have = 0; i != ask->rank && have < sizeof *own;) {
            ssize_t k = mpi_take(links, i, (char *)&links->place[i] + have, sizeof *own - have);
            have += k > 0 ? (size_t)k : 0;
            if (k > 0)
                continue;
            if (k < 0 || clock_seconds() > until) {
                snprintf(why, RANKS_WHY, "rank %d of %d has sent nothing for %.0f seconds", i, ask->size, seconds);
                return false;
            }
            mpi_wait(links, NULL, 0, 1);
        }
    return true;
}

const Transport transport_mpi = {mpi_open, mpi_put, mpi_take, mpi_wait, mpi_close};
