/* ranks.h - processes that train one model together.
 *
 * In:  the environment of a launcher.   Out: a Ranks, through which each of them sends every other one something, and receives as
 * much.
 * The one idea: all ranks make the same calls in the same order. Whoever fails says why to the others, so that all end with one
 * sentence; whoever is silent for too long is named.
 */
#ifndef VWN_RANKS_H
#define VWN_RANKS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { RANKS_WHY = 512, RANKS_MOST = 1024 };

/* Who takes part. The strings are those of the environment. */
typedef struct RanksAsk {
    int rank, size;          /* size 1: this process is alone */
    int local, local_rank;   /* of them on this machine, as far as is known, else 1; and which of these, else -1 */
    const char *mpi;         /* a library, through which they talk; NULL: sockets */
    const char *folder;      /* of Unix sockets; NULL: TCP */
    const char *host, *port; /* where rank 0 listens */
    int beside;              /* added to the port, at which somebody else listens */
    const char *secret;      /* "": none, and then only this machine is talked to */
    double timeout;          /* seconds in which nothing comes from a rank that is waited for */
    const char *by;          /* "RANK and WORLD_SIZE", for messages */
} RanksAsk;
/* False with `why` where variables contradict each other. */
bool ranks_ask(RanksAsk *out, char why[RANKS_WHY]);

typedef struct Ranks Ranks;
/* Waits for all others. NULL with `why`. */
Ranks *ranks_open(const RanksAsk *ask, char why[RANKS_WHY]);
/* Tells the others why this one goes on no more; nothing is exchanged any more. */
void ranks_fail(Ranks *r, const char *sentence);
/* NULL is fine. Who still waits for this one hears that it has ended. */
void ranks_close(Ranks *r);
int ranks_rank(const Ranks *r);
int ranks_size(const Ranks *r);
/* Of the last call that returned false: which rank, host and process, and what it said, or that it has gone or is silent. */
const char *ranks_why(const Ranks *r);
/* Whether this rank is to say it to people: rank 0 is, or the next one where that is what has failed. */
bool ranks_speaks(const Ranks *r);
/* Bytes sent to others since the beginning, without what stands before them; seconds in which an exchange had begun here and not
 * yet everywhere; and seconds of exchanges, from then on. */
typedef struct RanksSpent {
    uint64_t sent;
    double waiting, moving;
} RanksSpent;
RanksSpent ranks_spent(const Ranks *r);
bool ranks_is_first(const Ranks *r); /* of those on its machine */
/* From now on silence lasts so many times as long. */
void ranks_patience(Ranks *r, int times);
/* Of all later failures: "step 12". */
void ranks_at(Ranks *r, const char *moment);

/* What goes to a rank, or comes from it. */
typedef struct RankPiece {
    void *bytes;
    size_t n;
} RankPiece;
/* to[i] goes to rank i and from[i] comes from it, for all others at once. */
bool ranks_exchange(Ranks *r, const RankPiece *to, const RankPiece *from);
/* n bytes of each, in their order, those at all + rank * n being this one's. */
bool ranks_gather(Ranks *r, void *all, size_t n);
/* As many as rank 0 has, to all: `n` bytes of room, what came is ended by a NUL. */
bool ranks_tell(Ranks *r, char *text, size_t n);
/* From rank `from` to rank 0; nothing where that is rank 0. */
bool ranks_bring(Ranks *r, int from, void *bytes, size_t n);
/* part[i]: numbers whose sum over all ranks is rank i's, of which it has as many as all others have for it. Those of this rank become
 * the sums, added as lanes_add() does (compiler/portable/loop.h): neighbours first. `item`: bytes of a number, 4 or 8. */
bool ranks_scatter(Ranks *r, const RankPiece *part, size_t item);
/* The other half: part[i] comes from rank i, and that of this rank goes to all. */
bool ranks_spread(Ranks *r, const RankPiece *part);

#endif
