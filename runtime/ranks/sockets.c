/* sockets.c - ranks that are connected by sockets.
 *
 * In:  a folder, in which rank i listens at `i`; or the address and port where rank 0 listens, and tells all where the others do.
 * Out: one connection for each pair, which the higher rank has made.
 * The one idea: whoever accepts asks for a proof that the other knows the secret, and gives the same proof. A stranger who connects
 * is closed after a moment, and keeps nobody waiting meanwhile.
 */
#define _GNU_SOURCE
#include "transport.h"

#include "runtime/base/machine.h"
#include "runtime/base/sha256.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/un.h>
#include <unistd.h>

typedef struct Address {
    struct sockaddr_storage at;
    socklen_t n;
} Address;

typedef struct Opening {
    const RanksAsk *ask;
    Links *links;
    double seconds, until; /* for all of it */
    int listening;         /* -1: not yet */
    char *why;
} Opening;

static const char *const GREETING = "vwn ranks 1";

static bool failed(Opening *o, const char *what, const char *where)
{
    snprintf(o->why, RANKS_WHY, "rank %d of %d: %s %.120s: %s", o->ask->rank, o->ask->size, what, where,
             strerror(errno));
    return false;
}

/* ---- moving small things, until a moment ---- */

static bool wait_for(int fd, short events, double until)
{
    struct pollfd p = {.fd = fd, .events = events};
    double left = until - clock_seconds();
    return left > 0 && poll(&p, 1, (int)(left * 1e3) + 1) > 0;
}

static bool give(int fd, const void *bytes, size_t n, double until)
{
    for (size_t done = 0; done < n;) {
        ssize_t k = send(fd, (const char *)bytes + done, n - done, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (k > 0)
            done += (size_t)k;
        else if (k == 0 || (errno != EAGAIN && errno != EINTR) || !wait_for(fd, POLLOUT, until))
            return false;
    }
    return true;
}

static bool take(int fd, void *bytes, size_t n, double until)
{
    for (size_t done = 0; done < n;) {
        ssize_t k = recv(fd, (char *)bytes + done, n - done, MSG_DONTWAIT);
        if (k > 0)
            done += (size_t)k;
        else if (k == 0 || (errno != EAGAIN && errno != EINTR) || !wait_for(fd, POLLIN, until))
            return false;
    }
    return true;
}

/* A port is in the order of the network. */
static uint16_t *port_at(Address *a)
{
    return a->at.ss_family == AF_INET6 ? &((struct sockaddr_in6 *)&a->at)->sin6_port
                                       : &((struct sockaddr_in *)&a->at)->sin_port;
}

/* ---- who is there ---- */

enum { NONCE = 32, PROOF = 65 };

typedef struct Hello {
    unsigned char nonce[NONCE]; /* of the one that connects */
    char proof[PROOF];
    int32_t rank, size;
    RankPlace place;
    uint16_t port; /* where it listens, in the order of the network; 0: in a folder */
} Hello;

/* Both ends have chosen a part of what is proved: neither can be answered with what was heard before. */
static void prove(char proof[PROOF], const RanksAsk *ask, const unsigned char nonce[2 * NONCE], const char *role,
                  int rank)
{
    Sha256 s;
    char who[64];
    int n = snprintf(who, sizeof who, "%s %d of %d", role, rank, ask->size);
    sha256_start(&s);
    sha256_add_string(&s, GREETING, strlen(GREETING));
    sha256_add_string(&s, ask->secret, strlen(ask->secret));
    sha256_add_string(&s, (const char *)nonce, 2 * NONCE);
    sha256_add_string(&s, who, (size_t)n);
    sha256_hex(&s, proof);
}

/* A connection that was accepted, and has not said yet who it is. */
typedef struct Guest {
    int fd;
    double until;
    Address from;
    unsigned char nonce[2 * NONCE];
    Hello hello;
    size_t have; /* bytes of it */
} Guest;

static bool welcome(Guest *g, int fd, const Address *from)
{
    enum { MOMENT = 2 };
    *g = (Guest){.fd = fd, .until = clock_seconds() + MOMENT, .from = *from};
    return getrandom(g->nonce, NONCE, 0) == NONCE && give(fd, g->nonce, NONCE, g->until);
}

/* What has come of its hello. -1: nobody that is awaited; 0: not all yet; else its rank, which has its answer. */
static int greet(Opening *o, Guest *g)
{
    char proof[PROOF];
    Hello *hello = &g->hello;
    ssize_t k = recv(g->fd, (char *)hello + g->have, sizeof *hello - g->have, MSG_DONTWAIT);
    if (k <= 0)
        return k < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1;
    g->have += (size_t)k;
    if (g->have < sizeof *hello)
        return 0;
    memcpy(g->nonce + NONCE, hello->nonce, NONCE);
    prove(proof, o->ask, g->nonce, "joins", hello->rank);
    if (memcmp(proof, hello->proof, PROOF) != 0 || hello->size != o->ask->size || hello->rank <= o->ask->rank ||
        hello->rank >= o->ask->size || o->links->fd[hello->rank] >= 0)
        return -1;
    prove(proof, o->ask, g->nonce, "accepts", hello->rank);
    const RankPlace here = rank_place();
    return give(g->fd, proof, sizeof proof, g->until) && give(g->fd, &here, sizeof here, g->until) ? hello->rank : -1;
}

/* The other end of it. */
static bool introduce(Opening *o, int fd, uint16_t port, RankPlace *there, double until)
{
    unsigned char nonce[2 * NONCE];
    char proof[PROOF], answer[PROOF];
    Hello hello;
    memset(&hello, 0, sizeof hello); /* also what lies between its parts: it is sent */
    hello.rank = o->ask->rank;
    hello.size = o->ask->size;
    hello.place = rank_place();
    hello.port = port;
    if (!take(fd, nonce, NONCE, until) || getrandom(hello.nonce, NONCE, 0) != NONCE)
        return false;
    memcpy(nonce + NONCE, hello.nonce, NONCE);
    prove(hello.proof, o->ask, nonce, "joins", hello.rank);
    prove(proof, o->ask, nonce, "accepts", hello.rank);
    return give(fd, &hello, sizeof hello, until) && take(fd, answer, sizeof answer, until) &&
           memcmp(answer, proof, PROOF) == 0 && take(fd, there, sizeof *there, until);
}

static void add_link(Opening *o, int rank, int fd, const RankPlace *place)
{
    int one = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one); /* no harm elsewhere */
    o->links->fd[rank] = fd;
    o->links->place[rank] = *place;
    o->links->place[rank].host[sizeof place->host - 1] = 0;
}

/* ---- listening and connecting ---- */

/* To connect does not wait for ever. */
static int new_socket(int family)
{
    const struct timeval some = {.tv_sec = 10};
    int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd >= 0)
        setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &some, sizeof some);
    return fd;
}

static bool listen_at(Opening *o, const Address *a, const char *where)
{
    int one = 1;
    o->listening = new_socket(a->at.ss_family);
    if (o->listening < 0)
        return failed(o, "no socket for", where);
    setsockopt(o->listening, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (bind(o->listening, (const struct sockaddr *)&a->at, a->n) != 0 || listen(o->listening, RANKS_MOST) != 0)
        return failed(o, "cannot listen at", where);
    return true;
}

/* Again and again, as the other may not listen yet. */
static bool connect_to(Opening *o, int rank, const Address *a, uint16_t port, const char *where)
{
    RankPlace place;
    int last = ETIMEDOUT;
    while (clock_seconds() < o->until) {
        int fd = new_socket(a->at.ss_family);
        if (fd < 0)
            return failed(o, "no socket for", where);
        if (connect(fd, (const struct sockaddr *)&a->at, a->n) != 0)
            last = errno;
        else if (introduce(o, fd, port, &place, clock_seconds() + 10)) {
            add_link(o, rank, fd, &place);
            return true;
        } else
            last = EACCES;
        close(fd);
        usleep(20000);
    }
    if (last == EACCES)
        snprintf(o->why, RANKS_WHY,
                 "rank %d of %d: who listens at %.120s is not rank %d of this group, or has another VWN_SECRET",
                 o->ask->rank, o->ask->size, where, rank);
    else if (last == ENOENT || last == ECONNREFUSED || last == ETIMEDOUT)
        snprintf(o->why, RANKS_WHY, "rank %d of %d: rank %d has not come to %.120s within %.0f seconds", o->ask->rank,
                 o->ask->size, rank, where, o->seconds);
    else {
        errno = last;
        failed(o, "no connection to", where);
    }
    return false;
}

static bool nobody_came(Opening *o, int missing)
{
    int first = o->ask->rank + 1;
    while (first < o->ask->size - 1 && o->links->fd[first] >= 0)
        first++;
    snprintf(o->why, RANKS_WHY, "rank %d of %d has not come: %d of the %d that `%.40s` names are missing", first,
             o->ask->size, missing, o->ask->size, o->ask->by);
    return false;
}

enum { GUESTS = 64 };
typedef struct Guests {
    Guest of[GUESTS]; /* the oldest first */
    int n;
} Guests;

static void let_go(Guests *g, int i, bool ends)
{
    if (ends)
        close(g->of[i].fd);
    memmove(g->of + i, g->of + i + 1, (size_t)(--g->n - i) * sizeof *g->of);
}

/* One more; the oldest makes room, so that strangers who say nothing keep nobody out. */
static void accept_one(Opening *o, Guests *g)
{
    Address from = {.n = sizeof from.at};
    int fd = accept4(o->listening, (struct sockaddr *)&from.at, &from.n, SOCK_CLOEXEC);
    if (fd < 0)
        return;
    if (g->n == GUESTS)
        let_go(g, 0, true);
    if (welcome(&g->of[g->n], fd, &from))
        g->n++;
    else
        close(fd);
}

/* Those that have said something. How many of them are ranks that were awaited. */
static int greet_all(Opening *o, Guests *g, Address *heard)
{
    int came = 0;
    for (int i = g->n; i-- > 0;) {
        Guest *at = &g->of[i];
        int rank = greet(o, at);
        if (rank == 0 && clock_seconds() < at->until)
            continue;
        if (rank > 0) {
            add_link(o, rank, at->fd, &at->hello.place);
            *port_at(&at->from) = at->hello.port;
            if (heard)
                heard[rank] = at->from;
            came++;
        }
        let_go(g, i, rank <= 0);
    }
    return came;
}

/* Of all higher ranks, in the order in which they come. `heard`: by rank, where they listen; NULL: nobody asks. */
static bool accept_all(Opening *o, Address *heard)
{
    int missing = o->ask->size - 1 - o->ask->rank;
    Guests *g = calloc(1, sizeof *g);
    while (g && missing > 0 && clock_seconds() < o->until) {
        struct pollfd p[GUESTS + 1] = {{.fd = o->listening, .events = POLLIN}};
        for (int i = 0; i < g->n; i++)
            p[i + 1] = (struct pollfd){.fd = g->of[i].fd, .events = POLLIN};
        (void)poll(p, (nfds_t)g->n + 1, 100);
        missing -= greet_all(o, g, heard);
        if (missing > 0 && p[0].revents)
            accept_one(o, g);
    }
    while (g && g->n)
        let_go(g, g->n - 1, true);
    free(g);
    return missing == 0 || nobody_came(o, missing);
}

/* ---- a folder ---- */

static bool socket_file(Opening *o, int rank, Address *a)
{
    struct sockaddr_un *u = (struct sockaddr_un *)&a->at;
    u->sun_family = AF_UNIX;
    a->n = sizeof *u;
    int n = snprintf(u->sun_path, sizeof u->sun_path, "%s/%d", o->ask->folder, rank);
    if (n > 0 && (size_t)n < sizeof u->sun_path)
        return true;
    snprintf(o->why, RANKS_WHY, "the folder VWN_SOCKETS has too long a name for sockets: %.200s", o->ask->folder);
    return false;
}

static bool open_folder(Opening *o)
{
    Address own = {0};
    if (!socket_file(o, o->ask->rank, &own) || !listen_at(o, &own, o->ask->folder))
        return false;
    for (int i = 0; i < o->ask->rank; i++) {
        Address other = {0};
        if (!socket_file(o, i, &other) || !connect_to(o, i, &other, 0, o->ask->folder))
            return false;
    }
    return accept_all(o, NULL);
}

/* ---- TCP ---- */

static bool is_own_machine(const Address *a)
{
    if (a->at.ss_family == AF_INET6)
        return IN6_IS_ADDR_LOOPBACK(&((const struct sockaddr_in6 *)&a->at)->sin6_addr);
    return ntohl(((const struct sockaddr_in *)&a->at)->sin_addr.s_addr) >> 24 == 127;
}

static bool find_first(Opening *o, Address *out, char where[160])
{
    struct addrinfo how = {.ai_socktype = SOCK_STREAM}, *list = NULL;
    int error = getaddrinfo(o->ask->host, o->ask->port, &how, &list);
    if (error) {
        snprintf(o->why, RANKS_WHY, "MASTER_ADDR is `%.100s` and MASTER_PORT `%.20s`: %s", o->ask->host, o->ask->port,
                 gai_strerror(error));
        return false;
    }
    memcpy(&out->at, list->ai_addr, list->ai_addrlen);
    out->n = list->ai_addrlen;
    freeaddrinfo(list);
    *port_at(out) = htons((uint16_t)(ntohs(*port_at(out)) + o->ask->beside));
    snprintf(where, 160, "%.100s port %d", o->ask->host, ntohs(*port_at(out)));
    if (*o->ask->secret || is_own_machine(out))
        return true;
    snprintf(o->why, RANKS_WHY,
             "ranks on several machines need a secret, so that no stranger joins them: set VWN_SECRET to the same "
             "words for all "
             "(MASTER_ADDR is %.100s)",
             o->ask->host);
    return false;
}

/* Any address of the machine; without a secret only its own, and of rank 0 the one that all were told: a machine may have its name
 * at 127.0.1.1. */
static Address own_address(const Opening *o, const Address *first)
{
    Address a = *first;
    bool any = *o->ask->secret;
    if (a.at.ss_family == AF_INET6)
        ((struct sockaddr_in6 *)&a.at)->sin6_addr = any ? in6addr_any : in6addr_loopback;
    else if (any || o->ask->rank)
        ((struct sockaddr_in *)&a.at)->sin_addr.s_addr = htonl(any ? INADDR_ANY : INADDR_LOOPBACK);
    if (o->ask->rank)
        *port_at(&a) = 0;
    return a;
}

/* Where another rank listens. Rank 0 may have heard it at an address that only its own machine has: on others that is rank 0's. */
static Address from_here(Address *heard, const Address *first)
{
    Address a = *heard;
    if (!is_own_machine(heard) || is_own_machine(first))
        return a;
    a = *first;
    *port_at(&a) = *port_at(heard);
    return a;
}

static bool own_port(Opening *o, uint16_t *port)
{
    Address a = {.n = sizeof a.at};
    if (getsockname(o->listening, (struct sockaddr *)&a.at, &a.n) != 0)
        return failed(o, "no port of", "its own");
    *port = *port_at(&a);
    return true;
}

static bool open_tcp(Opening *o, Address *heard)
{
    Address first = {0};
    char where[160];
    uint16_t port;
    size_t bytes = (size_t)o->ask->size * sizeof *heard;
    if (!find_first(o, &first, where))
        return false;
    const Address own = own_address(o, &first);
    if (!listen_at(o, &own, o->ask->rank ? "a port of its own" : where) || !own_port(o, &port))
        return false;
    if (o->ask->rank == 0) {
        if (!accept_all(o, heard))
            return false;
        for (int i = 1; i < o->ask->size; i++)
            if (!give(o->links->fd[i], heard, bytes, o->until))
                return failed(o, "cannot tell a rank at", o->links->place[i].host);
        return true;
    }
    if (!connect_to(o, 0, &first, port, where))
        return false;
    if (!take(o->links->fd[0], heard, bytes, o->until)) {
        snprintf(o->why, RANKS_WHY,
                 "rank %d of %d: rank 0 at %.120s does not say where the others are: not all have come", o->ask->rank,
                 o->ask->size, where);
        return false;
    }
    for (int i = 1; i < o->ask->rank; i++) {
        const Address other = from_here(&heard[i], &first);
        if (!connect_to(o, i, &other, port, "another rank"))
            return false;
    }
    return accept_all(o, NULL);
}

static bool sockets_open(const RanksAsk *ask, double seconds, Links *links, char why[RANKS_WHY])
{
    Opening o = {.ask = ask,
                 .links = links,
                 .seconds = seconds,
                 .until = clock_seconds() + seconds,
                 .listening = -1,
                 .why = why};
    Address *heard = calloc((size_t)ask->size, sizeof *heard);
    links->fd = malloc((size_t)ask->size * sizeof *links->fd);
    for (int i = 0; links->fd && i < ask->size; i++)
        links->fd[i] = -1;
    links->place[ask->rank] = rank_place();
    bool fine = heard && links->fd && (ask->folder ? open_folder(&o) : open_tcp(&o, heard));
    if (o.listening >= 0)
        close(o.listening);
    free(heard);
    return fine;
}

/* ---- streams ---- */

static ssize_t moved(ssize_t k) { return k > 0 ? k : k < 0 && (errno == EAGAIN || errno == EINTR) ? 0 : -1; }

static ssize_t sockets_put(Links *links, int rank, const void *bytes, size_t n)
{
    return moved(send(links->fd[rank], bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT));
}

static ssize_t sockets_take(Links *links, int rank, void *bytes, size_t n)
{
    return moved(recv(links->fd[rank], bytes, n, MSG_DONTWAIT));
}

static void sockets_wait(Links *links, const LinkWant *want, int size, int ms)
{
    struct pollfd p[RANKS_MOST];
    nfds_t n = 0;
    for (int i = 0; i < size; i++)
        if (want[i].put || want[i].take)
            p[n++] = (struct pollfd){.fd = links->fd[i],
                                     .events = (short)((want[i].put ? POLLOUT : 0) | (want[i].take ? POLLIN : 0))};
    (void)poll(p, n, ms);
}

/* TCP throws away what was sent last where bytes that came are not read before the end: they are, for a moment, so that all hear why. */
static void take_leave(const Links *links, int size)
{
    char unread[4096];
    double until = clock_seconds() + 0.5;
    for (int i = 0; i < size; i++) {
        struct pollfd p = {.fd = links->fd[i], .events = POLLIN};
        if (p.fd < 0 || shutdown(p.fd, SHUT_WR) != 0)
            continue;
        while (clock_seconds() < until && poll(&p, 1, 50) >= 0) {
            ssize_t k = p.revents ? recv(p.fd, unread, sizeof unread, MSG_DONTWAIT) : 1;
            if (k == 0 || (k < 0 && errno != EAGAIN && errno != EINTR))
                break;
        }
    }
}

static void sockets_close(Links *links, int size, bool failed)
{
    if (links->fd && failed)
        take_leave(links, size);
    for (int i = 0; links->fd && i < size; i++)
        if (links->fd[i] >= 0)
            close(links->fd[i]);
    free(links->fd);
}

const Transport transport_sockets = {sockets_open, sockets_put, sockets_take, sockets_wait, sockets_close};
