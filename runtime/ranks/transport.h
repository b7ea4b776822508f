/* transport.h - how bytes get from one rank to another; private to runtime/ranks.
 *
 * The one idea: a link to each other rank is a stream, which moves as much as it can without waiting; ranks.c waits for all of them at
 * once, and knows of no kind of link.
 */
#ifndef VWN_RANKS_TRANSPORT_H
#define VWN_RANKS_TRANSPORT_H

#include <sys/types.h>

#include "ranks.h"

typedef struct RankPlace {
    char host[64];
    int32_t pid;
} RankPlace;
RankPlace rank_place(void); /* of this process */

typedef struct Links {
    RankPlace *place;    /* of each rank */
    int *fd;             /* of sockets: a connection to each rank but this one, whose file is -1; non-blocking */
    struct MpiLink *mpi; /* of MPI */
} Links;

/* What a link is waited for. */
typedef struct LinkWant {
    bool put, take;
} LinkWant;

typedef struct Transport {
    /* All links, within `seconds`; links->place has room. False with `why`; close() comes then, too. */
    bool (*open)(const RanksAsk *ask, double seconds, Links *links, char why[RANKS_WHY]);
    /* How many bytes the link has taken, or given; 0: none now. Negative: the rank has gone. Who was told 0 by put() comes with the same
     * bytes again. */
    ssize_t (*put)(Links *links, int rank, const void *bytes, size_t n);
    ssize_t (*take)(Links *links, int rank, void *bytes, size_t n);
    /* Until one of the links that are wanted may move, but not longer than `ms`. */
    void (*wait)(Links *links, const LinkWant *want, int size, int ms);
    /* After a failure what was sent last is seen off, for a moment. */
    void (*close)(Links *links, int size, bool failed);
} Transport;
extern const Transport transport_sockets, transport_mpi;

#endif
