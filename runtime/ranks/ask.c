/* ask.c - which rank of how many this process is, as its launcher says. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ranks.h"

/* What a launcher calls things, and the library of its MPI. A row counts where `size` is set. */
typedef struct Launcher {
    const char *rank, *size, *local_rank, *local, *mpi;
} Launcher;
static const Launcher launchers[] = {
    {"RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", NULL}, /* vwn launch, torchrun */
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE",
     "libmpi.so.40"},                                                                 /* mpirun of Open MPI */
    {"PMI_RANK", "PMI_SIZE", "MPI_LOCALRANKID", "MPI_LOCALNRANKS", "libmpich.so.12"}, /* mpiexec of MPICH */
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS", "SLURM_LOCALID", NULL,
     NULL}, /* srun, and not a batch script, which has no step */
};

static const char *word_of(const char *name)
{
    const char *word = name ? getenv(name) : NULL;
    return word && *word ? word : NULL;
}

/* A whole number from lo to hi; unset: *out is left alone. */
static bool number_of(const char *name, long lo, long hi, int *out, char why[RANKS_WHY])
{
    const char *word = word_of(name);
    char *end;
    if (!word)
        return true;
    long x = strtol(word, &end, 10);
    if (*end || x < lo || x > hi) {
        snprintf(why, RANKS_WHY, "%s is `%.40s`; it must be a whole number from %ld to %ld", name, word, lo, hi);
        return false;
    }
    *out = (int)x;
    return true;
}

/* The agent of torchrun that starts rank 0 keeps a store of its own at MASTER_PORT, and says so to all. */
static bool torchrun_listens(void)
{
    const char *word = word_of("TORCHELASTIC_USE_AGENT_STORE");
    return word && !strcmp(word, "True");
}

bool ranks_ask(RanksAsk *out, char why[RANKS_WHY])
{
    enum { SILENT_SECONDS = 300, MOST_SECONDS = 1000000 };
    *out = (RanksAsk){.size = 1, .local = 1, .local_rank = -1, .secret = ""};
    int seconds = SILENT_SECONDS;
    const Launcher *l = NULL;
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers && !l; i++)
        if (word_of(launchers[i].size))
            l = &launchers[i];
    if (!l)
        return true;
    if (!number_of(l->size, 1, RANKS_MOST, &out->size, why) ||
        !number_of("VWN_TIMEOUT", 1, MOST_SECONDS, &seconds, why))
        return false;
    if (out->size == 1)
        return true;
    if (!word_of(l->rank)) {
        snprintf(why, RANKS_WHY, "%s is set and %s is not: a process of several has to know which one it is", l->size,
                 l->rank);
        return false;
    }
    if (!number_of(l->rank, 0, out->size - 1, &out->rank, why) ||
        !number_of(l->local, 1, out->size, &out->local, why) ||
        !number_of(l->local_rank, 0, out->size - 1, &out->local_rank, why))
        return false;
    out->timeout = seconds;
    out->by = l->size;
    out->folder = word_of("VWN_SOCKETS");
    out->host = word_of("MASTER_ADDR");
    out->port = word_of("MASTER_PORT");
    out->beside = torchrun_listens();
    out->secret = word_of("VWN_SECRET") ? word_of("VWN_SECRET") : "";
    out->mpi = word_of("VWN_MPI");
    if (out->mpi || out->folder || (out->host && out->port))
        return true;
    out->mpi = l->mpi;
    if (out->mpi)
        return true;
    snprintf(why, RANKS_WHY,
             "%s says that %d processes work together, and nothing says where the first listens: set MASTER_ADDR and "
             "MASTER_PORT, "
             "or start them with `vwn launch -n %d train ...`",
             l->size, out->size, out->size);
    return false;
}
