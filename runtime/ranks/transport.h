/* transport.h - how bytes get from one rank to another; private to runtime/ranks.
 *
 * The one idea: a link to each other rank moves as much as it can without waiting; ranks.c waits for all of them at once.
 */
#ifndef VWN_RANKS_TRANSPORT_H
#define VWN_RANKS_TRANSPORT_H

#include <sys/types.h>

#include "ranks.h"

typedef struct RankPlace {
    char host[64];
    int32_t pid;
} RankPlace;

/* A connection to each rank but this one, whose file is -1. Files are non-blocking. */
typedef struct Links {
    int *fd;
    RankPlace *place; /* who is there */
} Links;

/* sockets.c: all connections, within `seconds`. False with `why`; what is open then is closed by links_close(). */
bool links_open(const RanksAsk *ask, double seconds, Links *links, char why[RANKS_WHY]);
void links_close(Links *links, int size);

#endif
