/* exchange.c - what ranks send each other: sums against a tree added by hand, bytes against the formula of a ring, and what all
 * hear of one that fails, leaves, is silent, does something else or is a stranger.
 *
 * In:  nothing.   Out: `N passed, N failed`.
 * The one idea: ranks are forked here, and each reports by its exit status whether it saw what it should.
 * When: quick, checked.
 */
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/ranks/ranks.h"
#include "tests/support/harness.h"

enum { MOST = 8 };
typedef int RankBody(Ranks *r); /* 0: fine */

static char folder[64];
static double seconds = 20;
static const char *port;                                                          /* NULL: sockets in the folder */
static const char *host = "127.0.0.1", *secret = "words", *last_secret = "words"; /* the latter: of the last rank */
static int beside;
static useconds_t late; /* microseconds by which all but the first come later */

/* The exit status of each rank, a signal as 100 and more; -1 where it could not open. */
static void run(int size, RankBody *body, int status[MOST])
{
    pid_t pid[MOST];
    for (int i = 0; i < size; i++) {
        pid[i] = fork();
        if (pid[i])
            continue;
        char why[RANKS_WHY];
        if (i)
            usleep(late);
        const RanksAsk ask = {.rank = i,
                              .size = size,
                              .local = size,
                              .folder = port ? NULL : folder,
                              .host = host,
                              .port = port,
                              .beside = beside,
                              .secret = i + 1 < size ? secret : last_secret,
                              .timeout = seconds,
                              .by = "WORLD_SIZE"};
        Ranks *r = ranks_open(&ask, why);
        if (!r)
            fprintf(stderr, "%s\n", why);
        int result = r ? body(r) : 99;
        if (result)
            fprintf(stderr, "rank %d of %d: %d, %s\n", i, size, result, r ? ranks_why(r) : why);
        ranks_close(r);
        _exit(result);
    }
    for (int i = 0; i < size; i++) {
        int s;
        waitpid(pid[i], &s, 0);
        status[i] = WIFEXITED(s) ? WEXITSTATUS(s) : 100 + WTERMSIG(s);
        char path[96];
        snprintf(path, sizeof path, "%s/%d", folder, i);
        unlink(path);
    }
}

static bool all_are(const int *status, int size, int want)
{
    for (int i = 0; i < size; i++)
        if (status[i] != want)
            return false;
    return true;
}

/* ---- sums ---- */

/* A number of lane l, of very different sizes, so that another order of adding rounds to something else. */
static double number(int l, int64_t i)
{
    uint64_t s = 0x9e3779b97f4a7c15u * (uint64_t)(l + 1) + (uint64_t)i * 0xbf58476d1ce4e5b9u;
    s ^= s >> 31;
    s *= 0x94d049bb133111ebu;
    s ^= s >> 29;
    return ((double)(s >> 40) - 8388608.0) * (double)(1 << (s & 15)) * 1e-6;
}

/* The sum over lanes lo .. lo + n - 1, by halves. */
static float tree_float(int lo, int n, int64_t i)
{
    return n == 1 ? (float)number(lo, i) : tree_float(lo, n / 2, i) + tree_float(lo + n / 2, n / 2, i);
}
static double tree_double(int lo, int n, int64_t i)
{
    return n == 1 ? number(lo, i) : tree_double(lo, n / 2, i) + tree_double(lo + n / 2, n / 2, i);
}

enum { LANES = 8 };
static const int64_t lengths[] = {0, 1, 5, 1000, 70001};

/* Every number goes to the rank that adds it up, and from there to all. */
static bool add_all(Ranks *r, void *v, int64_t n, size_t item)
{
    RankPiece part[MOST];
    int64_t size = ranks_size(r);
    for (int64_t i = 0; i < size; i++)
        part[i] =
            (RankPiece){(char *)v + (size_t)(n * i / size) * item, (size_t)(n * (i + 1) / size - n * i / size) * item};
    return ranks_scatter(r, part, item) && ranks_spread(r, part);
}

/* Each rank gives the tree of its lanes; the sums are those of a tree over all, whatever the number of ranks. */
static int sums(Ranks *r)
{
    int here = LANES / ranks_size(r), first = here * ranks_rank(r);
    uint64_t want = 0;
    for (size_t k = 0; k < sizeof lengths / sizeof *lengths; k++) {
        int64_t n = lengths[k];
        float *v = malloc((size_t)n * sizeof *v + 1);
        double *w = malloc((size_t)n * sizeof *w + 1);
        for (int64_t i = 0; i < n; i++) {
            v[i] = tree_float(first, here, i);
            w[i] = tree_double(first, here, i);
        }
        if (!add_all(r, v, n, sizeof *v) || !add_all(r, w, n, sizeof *w))
            return 1;
        for (int64_t i = 0; i < n; i++)
            if (v[i] != tree_float(0, LANES, i) || w[i] != tree_double(0, LANES, i))
                return 2;
        for (int i = 0; i < 2; i++) { /* all but the own share, and the own share to all others */
            int64_t mine = n * (ranks_rank(r) + 1) / ranks_size(r) - n * ranks_rank(r) / ranks_size(r);
            want += (uint64_t)(n - mine + (ranks_size(r) - 1) * mine) * (i ? sizeof *w : sizeof *v);
        }
        free(v);
        free(w);
    }
    return ranks_spent(r).sent == want ? 0 : 3;
}

static int gathers(Ranks *r)
{
    int32_t all[MOST] = {0};
    char text[32] = "";
    all[ranks_rank(r)] = 100 + ranks_rank(r);
    if (!ranks_gather(r, all, sizeof *all))
        return 1;
    for (int i = 0; i < ranks_size(r); i++)
        if (all[i] != 100 + i)
            return 2;
    int last = ranks_size(r) - 1, one = ranks_rank(r) == last ? 77 : 0;
    if (!ranks_bring(r, last, &one, sizeof one) || one != (ranks_rank(r) && ranks_rank(r) < last ? 0 : 77))
        return 4;
    if (ranks_rank(r) == 0)
        snprintf(text, sizeof text, "from the first");
    return ranks_tell(r, text, sizeof text) && !strcmp(text, "from the first") ? 0 : 3;
}

/* Who comes last waits least. */
static int one_is_late(Ranks *r)
{
    double waited[MOST];
    if (ranks_rank(r) == 1)
        usleep(200000);
    if (!ranks_gather(r, (char[MOST]){0}, 1))
        return 1;
    waited[ranks_rank(r)] = ranks_spent(r).waiting;
    if (!ranks_gather(r, waited, sizeof *waited))
        return 2;
    for (int i = 0; i < ranks_size(r); i++)
        if (i != 1 && waited[i] < 2 * waited[1])
            return 3;
    return ranks_spent(r).moving > 0 ? 0 : 4;
}

/* ---- failures ---- */

static int exchange(Ranks *r)
{
    char all[MOST];
    return ranks_gather(r, all, 1);
}

static int hears(Ranks *r, const char *what)
{
    ranks_at(r, "step 7");
    while (exchange(r))
        ;
    ranks_fail(r, "this one, too");
    return strstr(ranks_why(r), what) && !strncmp(ranks_why(r), "step 7: rank 2 of 4 (process ", 29) && !exchange(r)
               ? 0
               : 1;
}

static int one_fails(Ranks *r)
{
    if (ranks_rank(r) != 2)
        return hears(r, " has failed: the disk is full");
    ranks_fail(r, "the disk is full");
    return 0;
}

static int one_is_killed(Ranks *r)
{
    if (ranks_rank(r) == 2 && exchange(r))
        raise(SIGKILL);
    return hears(r, " has gone: its connection ended");
}

static int one_leaves(Ranks *r) { return ranks_rank(r) == 2 ? 0 : hears(r, " has ended before the others"); }

static int one_stops(Ranks *r)
{
    if (ranks_rank(r) == 2)
        sleep(2);
    return ranks_rank(r) == 2 ? 0 : hears(r, " has sent nothing for 1 seconds");
}

/* A rank that has sent its piece, and fails while it still is to take one. */
static int fails_midway(Ranks *r)
{
    enum { MUCH = 64 << 20 };
    char *v = calloc(1, MUCH);
    bool first = ranks_rank(r) == 0;
    const RankPiece to[2] = {{v, 0}, {v, first ? MUCH : 0}}, from[2] = {{v, 1}, {v, 0}};
    if (!v || ranks_exchange(r, to, from))
        return 1;
    ranks_fail(r, "");
    if (!first)
        _exit(0);
    free(v);
    return strstr(ranks_why(r), "does something else: it sends ") ? 0 : 2;
}

/* Each of the two takes the other for it, and who hears of it first tells the rest. */
static int one_does_otherwise(Ranks *r)
{
    char all[2 * MOST];
    if (ranks_gather(r, all, ranks_rank(r) == 2 ? 2 : 1) && exchange(r))
        return 1;
    ranks_fail(r, "this one, too");
    return strstr(ranks_why(r), "does something else: it sends ") ? 0 : 2;
}

/* Who speaks for all when the first one fails. */
static int first_fails(Ranks *r)
{
    if (ranks_rank(r) == 0)
        raise(SIGKILL);
    while (exchange(r))
        ;
    return ranks_speaks(r) == (ranks_rank(r) == 1) ? 0 : 1;
}

/* Strangers at the port, who say nothing, or too much, and one who has another secret. */
static void strangers(Harness *h)
{
    int status[MOST];
    pid_t stranger = fork();
    if (!stranger) {
        const struct sockaddr_in to = {
            .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        char much[5000];
        memset(much, 7, sizeof much);
        for (int i = 0, met = 0; i < 2000 && met < 20; i++) {
            int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
            if (connect(fd, (const struct sockaddr *)&to, sizeof to) == 0)
                met++, (void)!send(fd, much, sizeof much, MSG_NOSIGNAL);
            close(fd);
            usleep(1000);
        }
        _exit(0);
    }
    run(4, gathers, status);
    CHECK(h, all_are(status, 4, 0));
    kill(stranger, SIGKILL);
    waitpid(stranger, NULL, 0);
}

/* Those who say nothing, and stay, in front of all ranks but the first. */
static void silent_strangers(Harness *h)
{
    enum { STRANGERS = 100 };
    int status[MOST];
    pid_t stranger = fork();
    if (!stranger) {
        const struct sockaddr_in to = {
            .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        for (int met = 0; met < STRANGERS;) {
            int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
            if (connect(fd, (const struct sockaddr *)&to, sizeof to) == 0) {
                met++;
                continue;
            }
            close(fd);
            usleep(1000);
        }
        pause();
    }
    seconds = 10;
    late = 300000;
    run(4, gathers, status);
    CHECK(h, all_are(status, 4, 0));
    late = 0;
    kill(stranger, SIGKILL);
    waitpid(stranger, NULL, 0);
    seconds = 1;
    last_secret = "other words";
    run(2, gathers, status);
    CHECK(h, all_are(status, 2, 99));
    last_secret = "words";
    seconds = 20;
}

/* What launchers say, and an address and a port that are not free for everything. */
static void places(Harness *h)
{
    int status[MOST], one = 1, fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    char why[RANKS_WHY];
    RanksAsk ask;
    host = "127.0.1.1"; /* where Debian has the name of a machine */
    secret = last_secret = "";
    run(4, gathers, status);
    CHECK(h, all_are(status, 4, 0));
    host = "127.0.0.1";
    secret = last_secret = "words";
    setenv("RANK", "1", 1);
    setenv("WORLD_SIZE", "2", 1);
    setenv("MASTER_ADDR", host, 1);
    setenv("MASTER_PORT", port, 1);
    CHECK(h, ranks_ask(&ask, why) && ask.rank == 1 && ask.size == 2 && !ask.beside);
    setenv("TORCHELASTIC_USE_AGENT_STORE", "True", 1); /* somebody listens at the port itself */
    CHECK(h, ranks_ask(&ask, why) && ask.beside == 1);
    const struct sockaddr_in at = {
        .sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(port)), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    CHECK(h, bind(fd, (const struct sockaddr *)&at, sizeof at) == 0 && listen(fd, 1) == 0);
    beside = ask.beside;
    run(2, gathers, status);
    CHECK(h, all_are(status, 2, 0));
    beside = 0;
    close(fd);
}

int main(void)
{
    static const struct {
        const char *name;
        RankBody *body;
        double seconds;
        int of_two; /* the status of rank 2, or of rank 0 where that is the one which fails */
    } failures[] = {{"fails", one_fails, 20, 0},
                    {"is killed", one_is_killed, 20, 100 + SIGKILL},
                    {"leaves", one_leaves, 20, 0},
                    {"stops", one_stops, 1, 0},
                    {"does otherwise", one_does_otherwise, 20, 0}};
    Harness h = {0};
    int status[MOST];
    char place[16];
    snprintf(folder, sizeof folder, "/tmp/vwn-exchange-XXXXXX");
    CHECK(&h, mkdtemp(folder) != NULL);
    snprintf(place, sizeof place, "%d", 10000 + (int)getpid() % 20000); /* below those that the system gives away */
    run(4, one_is_late, status);
    CHECK(&h, all_are(status, 4, 0));
    run(2, fails_midway, status);
    CHECK(&h, all_are(status, 2, 0));
    for (int way = 0; way < 2; way++) {
        port = way ? place : NULL;
        for (int size = 2; size <= MOST; size *= 2) {
            run(size, sums, status);
            CHECK_CASE(&h, all_are(status, size, 0), "sums");
            run(size, gathers, status);
            CHECK_CASE(&h, all_are(status, size, 0), "gathers");
        }
        for (size_t i = 0; i < sizeof failures / sizeof *failures; i++) {
            seconds = failures[i].seconds;
            run(4, failures[i].body, status);
            CHECK_CASE(&h, status[2] == failures[i].of_two && all_are(status, 2, 0) && status[3] == 0,
                       failures[i].name);
        }
        seconds = 20;
        run(3, first_fails, status);
        CHECK(&h, status[0] == 100 + SIGKILL && all_are(status + 1, 2, 0));
    }
    strangers(&h);
    silent_strangers(&h);
    places(&h);
    rmdir(folder);
    return harness_end(&h);
}
