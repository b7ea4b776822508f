/* threads.c - the parallel loop: every item once, the same bits for every number of threads
 * whoever is late, and when those that are late are left out.
 *
 * In:  nothing.   Out: `N passed, N failed`.
 * When: quick, checked.
 */
#define _GNU_SOURCE
#include "compiler/portable/threads.h"
#include "runtime/cpu/cpu.h"
#include "support/harness.h"

#include <stdatomic.h>
#include <string.h>
#include <time.h>

/* ---- items ---- */

typedef struct Marks {
    int seen[1000];
    int worst_worker;
} Marks;

static void mark(void *user, int64_t lo, int64_t hi, int worker)
{
    Marks *m = user;
    for (int64_t i = lo; i < hi; i++)
        m->seen[i] += 1 + (worker < 0 || worker >= 4) * 100;
}

static void test_loop(Harness *h)
{
    static const int64_t sizes[] = {0, 1, 2, 7, 64, 999, 1000}, grains[] = {-1, 0, 1, 3, 64, 5000};
    for (size_t s = 0; s < COUNT_OF(sizes); s++)
        for (size_t g = 0; g < COUNT_OF(grains); g++)
            for (int threads = 0; threads <= 4; threads++) {
                Pool *pool = threads ? pool_open(threads) : NULL;
                Marks m = {0};
                parallel_for(pool, sizes[s], grains[g], mark, &m);
                bool ok = true;
                for (int64_t i = 0; i < 1000; i++)
                    ok &= m.seen[i] == (i < sizes[s]);
                CHECK(h, ok);
                pool_close(pool);
            }
    CHECK(h, threads_available() >= 1);
}

/* Short loops, one right after the other and with pauses in which the threads fall asleep. */
static void add_one(void *user, int64_t lo, int64_t hi, int worker)
{
    int *v = user;
    (void)worker;
    for (int64_t i = lo; i < hi; i++)
        v[i]++;
}

static void test_many_loops(Harness *h)
{
    enum { LOOPS = 20000, ITEMS = 37 };
    int v[ITEMS] = {0};
    Pool *pool = pool_open(4);
    bool ok = true;
    for (int i = 0; i < LOOPS; i++) {
        parallel_for(pool, 1 + i % ITEMS, 1 + i % 3, add_one, v);
        if (i % 1000 == 999)
            nanosleep(&(struct timespec){0, 2000000}, NULL);
    }
    for (int k = 0; k < ITEMS; k++) {
        int expected = 0;
        for (int i = 0; i < LOOPS; i++)
            expected += 1 + i % ITEMS > k;
        ok &= v[k] == expected;
    }
    CHECK(h, ok);
    pool_close(pool);
    pool_close(NULL);
}

/* ---- bits ---- */

/* Sums of parts, into a place of each part; at random a thread is away for a while. */
enum { PARTS = 96, PART = 50 };

typedef struct Sums {
    float part[PARTS];
    atomic_int times[PARTS];
    uint64_t seed; /* 0: nobody is late */
} Sums;

static void pause_for(long microseconds) { nanosleep(&(struct timespec){0, 1000 * microseconds}, NULL); }

static void add_parts(void *user, int64_t lo, int64_t hi, int worker)
{
    Sums *s = user;
    for (int64_t p = lo; p < hi; p++) {
        uint64_t state = s->seed + (uint64_t)(p * 8 + worker);
        harness_random(&state);
        if (s->seed && harness_random(&state) > 0.9)
            pause_for(500);
        state = (uint64_t)p;
        float sum = 0;
        for (int i = 0; i < PART; i++)
            sum += (float)harness_random(&state);
        s->part[p] = sum;
        atomic_fetch_add(&s->times[p], 1);
    }
}

static void test_bits(Harness *h)
{
    enum { ROUNDS = 4 };
    Sums alone = {0};
    parallel_for(NULL, PARTS, 5, add_parts, &alone);
    for (int threads = 1; threads <= 8; threads++) {
        Pool *pool = pool_open(threads);
        for (int round = 1; round <= ROUNDS; round++) {
            Sums s = {.seed = (uint64_t)(100 * threads + round)};
            parallel_for(pool, PARTS, round == 1 ? 1 : 5, add_parts, &s);
            bool once = true;
            for (int p = 0; p < PARTS; p++)
                once &= atomic_load(&s.times[p]) == 1;
            CHECK(h, once);
            CHECK(h, !memcmp(s.part, alone.part, sizeof s.part));
        }
        pool_close(pool);
    }
}

/* ---- who is left out: the rule, by a clock of the test's own ---- */

/* Goes on to the end of the span, in which the process got `rate` of processor time a second. */
static AttendanceMove span(Attendance *a, double rate, bool late)
{
    double end = attendance_span_end(a);
    return attendance_next(a, end, a->cpu + rate * (end - a->wall), late);
}

static void test_rule(Harness *h)
{
    Attendance a = {.running = true, .wall = 1000, .cpu = 5};
    for (int i = 0; i < 100; i++) /* nobody late: nothing happens, busy or not */
        CHECK(h, span(&a, i % 3, false) == STAY_AS_IT_IS);
    double trial = a.wall;
    CHECK(h, span(&a, 0.6, true) == LEAVE_THE_LATE_OUT);
    CHECK(h, span(&a, 0.7, false) == STAY_AS_IT_IS); /* more without them: they stay out, */
    trial = a.wall - trial;
    double from = a.wall;
    CHECK(h, span(&a, 0.1, false) == TAKE_ALL_IN); /* longer than it takes to see it, */
    CHECK(h, a.wall - from >= 2 * trial);
    CHECK(h, span(&a, 0.6, true) == LEAVE_THE_LATE_OUT); /* and are tried again at once */
    CHECK(h, span(&a, 0.5, false) == TAKE_ALL_IN);       /* less without them */
    /* Trials that fail are put off for longer and longer, up to a limit. */
    int last = 0, most = 0;
    for (int i = 0; i < 8; i++) {
        int waited = 0;
        while (span(&a, 1.9, true) == STAY_AS_IT_IS)
            waited++;
        CHECK(h, waited > last || waited == most);
        most = waited > most ? waited : most;
        last = waited;
        CHECK(h, span(&a, 1, false) == TAKE_ALL_IN);
    }
    CHECK(h, most >= 200 && most <= 300);        /* of 1,000 spans at most 5 are trials */
    while (span(&a, 0.4, true) == STAY_AS_IT_IS) /* one that succeeds ends that */
        ;
    CHECK(h, span(&a, 0.4, false) == STAY_AS_IT_IS);
    CHECK(h, span(&a, 0.4, false) == TAKE_ALL_IN);
    CHECK(h, span(&a, 0.4, true) == LEAVE_THE_LATE_OUT);
}

/* ---- who is left out: workers that are late on purpose ---- */

enum { CREW = 4, CHUNKS = 16 };

typedef struct Late {
    atomic_int chunks[CREW]; /* of each worker */
    atomic_bool blocked[CREW];
    atomic_long sink;
} Late;

/* A blocked worker sleeps within its chunks, as if the system had taken its core. */
static void work_or_sleep(void *user, int64_t lo, int64_t hi, int worker)
{
    Late *l = user;
    (void)lo;
    (void)hi;
    atomic_fetch_add(&l->chunks[worker], 1);
    if (atomic_load(&l->blocked[worker])) {
        pause_for(50000);
        return;
    }
    uint64_t state = (uint64_t)lo;
    for (int i = 0; i < 10000; i++)
        harness_random(&state);
    atomic_fetch_add(&l->sink, (long)state);
}

/* Loops until some are left out, or nobody is. */
static bool until_left_out(Pool *p, Late *l, bool some)
{
    for (int loops = 0; loops < 1000000; loops++) {
        parallel_for(p, CHUNKS, 1, work_or_sleep, l);
        if ((pool_left_out(p) > 0) == some)
            return true;
    }
    return false;
}

static void test_late(Harness *h)
{
    Pool *p = pool_open(CREW);
    Late l = {0};
    atomic_store(&l.blocked[1], true);
    atomic_store(&l.blocked[3], true);
    bool never = true;
    int seen = 0;
    for (long loops = 0; loops < 1000000 && seen < 20; loops++) {
        if (pool_left_out(p) < 2) {
            parallel_for(p, CHUNKS, 1, work_or_sleep, &l);
            continue;
        }
        int before[CREW];
        for (int i = 0; i < CREW; i++)
            before[i] = atomic_load(&l.chunks[i]);
        parallel_for(p, CHUNKS, 1, work_or_sleep, &l);
        if (pool_left_out(p) < 2)
            continue; /* they were taken in before this loop */
        seen++;
        int out = 0, done = 0;
        for (int i = 0; i < CREW; i++) {
            int chunks = atomic_load(&l.chunks[i]) - before[i];
            out += chunks == 0;
            done += chunks;
        }
        never &= out >= 2 && done == CHUNKS;
    }
    CHECK(h, seen == 20 && never);
    atomic_store(&l.blocked[1], false);
    atomic_store(&l.blocked[3], false);
    CHECK(h, until_left_out(p, &l, false));
    int before = atomic_load(&l.chunks[1]) + atomic_load(&l.chunks[3]);
    for (int loops = 0; loops < 1000000; loops++) {
        parallel_for(p, CHUNKS, 1, work_or_sleep, &l);
        if (atomic_load(&l.chunks[1]) + atomic_load(&l.chunks[3]) > before)
            break;
    }
    CHECK(h, atomic_load(&l.chunks[1]) + atomic_load(&l.chunks[3]) > before);
    atomic_store(&l.blocked[2], true); /* a pool is closed also while one is out */
    CHECK(h, until_left_out(p, &l, true));
    pool_close(p);
    CHECK(h, pool_left_out(NULL) == 0);
}

int main(void)
{
    Harness h = {0};
    test_loop(&h);
    test_many_loops(&h);
    test_bits(&h);
    test_rule(&h);
    test_late(&h);
    return harness_end(&h);
}
