/* ranks.c - see ranks.h. */
#define _GNU_SOURCE
#include "transport.h"

#include "runtime/base/machine.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- what stands before the bytes of a piece ---- */
enum { PACKET_MARK = 0x76776e31, SENTENCE = 320 };
typedef enum PacketKind {
    PACKET_PIECE,
    PACKET_FAILED,
    PACKET_TOLD,
    PACKET_LEFT
} PacketKind; /* TOLD: it has heard of it, too */
typedef struct Packet {
    uint32_t mark, kind;
    uint64_t turn, bytes; /* the number of the exchange */
} Packet;

/* Where the exchange with one rank stands. */
typedef struct Side {
    Packet packet;
    size_t done, all; /* bytes, with the packet */
    char *bytes;
} Side;

struct Ranks {
    int rank, size;
    double timeout;
    int patience;
    const Transport *way;
    Links links;
    Side *to, *from;
    LinkWant *want;
    RankPiece *piece[2];
    char *room; /* of ranks_scatter() */
    size_t room_bytes;
    uint64_t turn;
    RanksSpent spent;
    char moment[64], why[RANKS_WHY];
    bool failed;
    int of; /* who has failed; -1: who knows says it */
};

RankPlace rank_place(void)
{
    RankPlace p = {.pid = (int32_t)getpid()};
    if (gethostname(p.host, sizeof p.host) != 0)
        snprintf(p.host, sizeof p.host, "this host");
    p.host[sizeof p.host - 1] = 0;
    return p;
}

static void free_ranks(Ranks *r)
{
    r->way->close(&r->links, r->size, r->failed);
    free(r->links.place);
    free(r->to);
    free(r->from);
    free(r->want);
    free(r->piece[0]);
    free(r->piece[1]);
    free(r->room);
    free(r);
}

Ranks *ranks_open(const RanksAsk *ask, char why[RANKS_WHY])
{
    enum { OPEN_SECONDS = 120 };
    Ranks *r = calloc(1, sizeof *r);
    size_t n = (size_t)ask->size;
    snprintf(why, RANKS_WHY, "out of memory");
    if (!r)
        return NULL;
    *r = (Ranks){.rank = ask->rank,
                 .size = ask->size,
                 .timeout = ask->timeout,
                 .patience = 1,
                 .moment = "the beginning",
                 .failed = true};
    r->way = ask->mpi ? &transport_mpi : &transport_sockets;
    r->to = calloc(n, sizeof *r->to);
    r->from = calloc(n, sizeof *r->from);
    r->want = calloc(n, sizeof *r->want);
    r->piece[0] = calloc(n, sizeof *r->piece[0]);
    r->piece[1] = calloc(n, sizeof *r->piece[1]);
    r->links.place = calloc(n, sizeof *r->links.place);
    bool fine = r->to && r->from && r->want && r->piece[0] && r->piece[1] && r->links.place &&
                r->way->open(ask, ask->timeout < OPEN_SECONDS ? ask->timeout : OPEN_SECONDS, &r->links, why);
    r->failed = !fine;
    if (fine)
        return r;
    free_ranks(r);
    return NULL;
}

int ranks_rank(const Ranks *r) { return r->rank; }
int ranks_size(const Ranks *r) { return r->size; }
const char *ranks_why(const Ranks *r) { return r->why; }
RanksSpent ranks_spent(const Ranks *r) { return r->spent; }
void ranks_patience(Ranks *r, int times) { r->patience = times; }

bool ranks_is_first(const Ranks *r)
{
    int first = 0;
    while (strcmp(r->links.place[first].host, r->links.place[r->rank].host) != 0)
        first++;
    return first == r->rank;
}

void ranks_at(Ranks *r, const char *moment) { snprintf(r->moment, sizeof r->moment, "%s", moment); }

/* ---- failures ---- */

/* "rank 2 of 4 (process 123 on host)" and what happened to it. */
__attribute__((format(printf, 3, 4))) static bool fail(Ranks *r, int of, const char *fmt, ...)
{
    char what[SENTENCE];
    va_list ap;
    va_start(ap, fmt);
    vsnprintf(what, sizeof what, fmt, ap);
    va_end(ap);
    if (!r->failed) {
        r->of = of;
        snprintf(r->why, sizeof r->why, "%.60s: rank %d of %d (process %d on %.40s) %s", r->moment, of, r->size,
                 (int)r->links.place[of].pid, r->links.place[of].host, what);
    }
    r->failed = true;
    return false;
}

static bool is_done(const Side *s) { return s->done == s->all; }

/* A short packet to everybody, as far as they take it. */
static void announce(Ranks *r, PacketKind kind, const char *sentence)
{
    struct {
        Packet packet;
        char text[SENTENCE];
    } out;
    size_t n = sentence ? strlen(sentence) : 0;
    n = n < sizeof out.text ? n : sizeof out.text;
    out.packet = (Packet){PACKET_MARK, kind, r->turn, n};
    if (n)
        memcpy(out.text, sentence, n);
    for (int i = 0; i < r->size; i++)
        if (i != r->rank && (!r->to[i].done || is_done(&r->to[i]))) /* not in the middle of a piece */
            (void)!r->way->put(&r->links, i, &out, sizeof out.packet + n);
}

void ranks_fail(Ranks *r, const char *sentence)
{
    if (r->failed)
        announce(r, PACKET_TOLD, r->why);
    else
        announce(r, PACKET_FAILED, sentence);
    if (!r->failed)
        r->of = r->rank;
    r->failed = true;
}

void ranks_close(Ranks *r)
{
    if (!r)
        return;
    if (!r->failed)
        announce(r, PACKET_LEFT, NULL);
    free_ranks(r);
}

bool ranks_speaks(const Ranks *r) { return r->rank == 0 || (r->rank == 1 && r->failed && r->of == 0); }

/* ---- an exchange ---- */

/* For one of them to have sent something; the own rank: for nobody. */
static void wait_for_links(Ranks *r, int of, int ms)
{
    for (int i = 0; i < r->size; i++)
        r->want[i] = (LinkWant){.take = i == of};
    if (of != r->rank)
        r->way->wait(&r->links, r->want, r->size, ms);
}

/* Instead of a piece a rank has sent why it sends none. */
static bool read_farewell(Ranks *r, int i)
{
    char text[SENTENCE + 1] = "";
    const Packet *f = &r->from[i].packet;
    size_t n = f->bytes < SENTENCE ? (size_t)f->bytes : SENTENCE, have = 0;
    double until = clock_seconds() + 1;
    while (have < n && clock_seconds() < until) {
        ssize_t k = r->way->take(&r->links, i, text + have, n - have);
        if (k < 0)
            break;
        have += (size_t)k;
        wait_for_links(r, k == 0 ? i : r->rank, 100);
    }
    text[have] = 0;
    if (f->kind == PACKET_LEFT)
        return fail(r, i, "has ended before the others");
    if (f->kind == PACKET_FAILED)
        fail(r, i, "has failed: %s", *text ? text : "it does not say why");
    else if (!r->failed)
        snprintf(r->why, sizeof r->why, "%s", text);
    r->failed = true;
    r->of = -1; /* it says so itself */
    return false;
}

/* It may have said why, behind a piece that has come whole. */
static bool gone(Ranks *r, int i)
{
    Packet *p = &r->from[i].packet;
    if (is_done(&r->from[i]) && r->way->take(&r->links, i, p, sizeof *p) == sizeof *p && p->mark == PACKET_MARK &&
        p->kind != PACKET_PIECE)
        return read_farewell(r, i);
    return fail(r, i, "has gone: its connection ended");
}

static bool read_packet(Ranks *r, int i)
{
    const Packet *f = &r->from[i].packet;
    size_t want = r->from[i].all - sizeof *f;
    if (f->mark != PACKET_MARK)
        return fail(r, i, "has sent what no other version of vwn would: build all ranks alike");
    if (f->kind != PACKET_PIECE)
        return read_farewell(r, i);
    if (f->turn != r->turn || f->bytes != want)
        return fail(r, i, "does something else: it sends %llu bytes as exchange %llu, and %zu are awaited as %llu",
                    (unsigned long long)f->bytes, (unsigned long long)f->turn, want, (unsigned long long)r->turn);
    return true;
}

/* The address and length of what is still to be moved: first of the packet, then of the bytes. */
static char *rest_of(Side *s, size_t *n)
{
    bool headed = s->done >= sizeof s->packet;
    *n = headed ? s->all - s->done : sizeof s->packet - s->done;
    return headed ? s->bytes + (s->done - sizeof s->packet) : (char *)&s->packet + s->done;
}

/* As much as goes without waiting; false when the rank has failed. */
static bool move(Ranks *r, int i, bool out, bool *moved)
{
    Side *s = out ? &r->to[i] : &r->from[i];
    while (s->done < s->all) {
        size_t n;
        char *at = rest_of(s, &n);
        ssize_t k = out ? r->way->put(&r->links, i, at, n) : r->way->take(&r->links, i, at, n);
        if (k == 0)
            return true;
        if (k < 0) /* why it has gone may still be there to be read */
            return (out && r->from[i].done < r->from[i].all) || gone(r, i);
        *moved = true;
        s->done += (size_t)k;
        if (!out && s->done == sizeof s->packet && !read_packet(r, i))
            return false;
    }
    return true;
}

/* Sentence for those that are still waited for. */
static bool silent(Ranks *r, double timeout)
{
    for (int i = 0; i < r->size; i++)
        if (i != r->rank && r->from[i].done < r->from[i].all)
            return fail(r, i, "has sent nothing for %.0f seconds", timeout);
    for (int i = 0; i < r->size; i++)
        if (i != r->rank && r->to[i].done < r->to[i].all)
            return fail(r, i, "has taken nothing for %.0f seconds", timeout);
    return true;
}

/* All others have begun this exchange, too: what stands before their pieces is here. */
static bool all_have_come(const Ranks *r)
{
    for (int i = 0; i < r->size; i++)
        if (i != r->rank && r->from[i].done < sizeof(Packet))
            return false;
    return true;
}

bool ranks_exchange(Ranks *r, const RankPiece *to, const RankPiece *from)
{
    double last = clock_seconds(), timeout = r->timeout * r->patience, began = last, came = 0;
    if (r->failed)
        return false;
    r->turn++;
    for (int i = 0; i < r->size; i++) {
        size_t out = i == r->rank ? 0 : to[i].n, in = i == r->rank ? 0 : from[i].n;
        r->to[i] = (Side){{PACKET_MARK, PACKET_PIECE, r->turn, out}, 0, out + sizeof(Packet), to[i].bytes};
        r->from[i] = (Side){.all = in + sizeof(Packet), .bytes = from[i].bytes};
        r->spent.sent += out;
    }
    for (;;) {
        bool moved = false;
        int waiting = 0;
        r->want[r->rank] = (LinkWant){false, false};
        for (int i = 0; i < r->size; i++) {
            if (i == r->rank)
                continue;
            if (!move(r, i, true, &moved) || !move(r, i, false, &moved))
                return false;
            r->want[i] = (LinkWant){.put = !is_done(&r->to[i]), .take = !is_done(&r->from[i])};
            waiting += r->want[i].put || r->want[i].take;
        }
        double now = clock_seconds();
        came = came > 0 || !all_have_come(r) ? came : now;
        if (!waiting)
            break;
        last = moved ? now : last;
        if (now - last >= timeout)
            return silent(r, timeout);
        int ms = timeout - (now - last) < 1 ? (int)((timeout - (now - last)) * 1e3) + 1 : 1000;
        r->way->wait(&r->links, r->want, r->size, moved ? 0 : ms);
    }
    for (int i = 0; i < r->size; i++)
        r->to[i].done = 0;
    r->spent.waiting += came - began;
    r->spent.moving += clock_seconds() - came;
    return true;
}

bool ranks_gather(Ranks *r, void *all, size_t n)
{
    for (int i = 0; i < r->size; i++)
        r->piece[1][i] = (RankPiece){(char *)all + (size_t)i * n, n};
    return ranks_spread(r, r->piece[1]);
}

bool ranks_bring(Ranks *r, int from, void *bytes, size_t n)
{
    for (int i = 0; i < r->size; i++) {
        r->piece[0][i] = (RankPiece){bytes, i == 0 && r->rank == from ? n : 0};
        r->piece[1][i] = (RankPiece){bytes, i == from && r->rank == 0 ? n : 0};
    }
    return ranks_exchange(r, r->piece[0], r->piece[1]);
}

bool ranks_tell(Ranks *r, char *text, size_t n)
{
    for (int i = 0; i < r->size; i++) {
        r->piece[0][i] = (RankPiece){text, r->rank ? 0 : n};
        r->piece[1][i] = (RankPiece){text, i ? 0 : n};
    }
    bool fine = ranks_exchange(r, r->piece[0], r->piece[1]);
    text[n - 1] = 0;
    return fine;
}

/* ---- sums ---- */

static void add_numbers(void *to, const void *more, size_t n, size_t item)
{
    if (item == sizeof(float))
        for (size_t i = 0; i < n; i++)
            ((float *)to)[i] += ((const float *)more)[i];
    else
        for (size_t i = 0; i < n; i++)
            ((double *)to)[i] += ((const double *)more)[i];
}

static bool make_room(Ranks *r, size_t bytes)
{
    if (r->room_bytes >= bytes)
        return true;
    free(r->room);
    r->room = malloc(bytes);
    r->room_bytes = r->room ? bytes : 0;
    return r->room || fail(r, r->rank, "has no memory for sums");
}

bool ranks_scatter(Ranks *r, const RankPiece *part, size_t item)
{
    const RankPiece own = part[r->rank];
    if (!make_room(r, (size_t)r->size * own.n + 1))
        return false;
    for (int i = 0; i < r->size; i++)
        r->piece[1][i] = (RankPiece){r->room + (size_t)i * own.n, own.n};
    if (!ranks_exchange(r, part, r->piece[1]))
        return false;
    if (own.n)
        memcpy(r->room + (size_t)r->rank * own.n, own.bytes, own.n);
    for (int step = 1; step < r->size; step *= 2)
        for (int i = 0; i + step < r->size; i += 2 * step)
            add_numbers(r->room + (size_t)i * own.n, r->room + (size_t)(i + step) * own.n, own.n / item, item);
    if (own.n)
        memcpy(own.bytes, r->room, own.n);
    return true;
}

bool ranks_spread(Ranks *r, const RankPiece *part)
{
    for (int i = 0; i < r->size; i++)
        r->piece[0][i] = part[r->rank];
    return ranks_exchange(r, r->piece[0], part);
}
