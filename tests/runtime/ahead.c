/* ahead.c - loops that are done ahead: each item once, in every number of threads, also when
 * they are more than may wait, dropped, or left behind by a fork.
 *
 * In:  nothing.   Out: `N passed, N failed`.
 * When: quick, checked.
 */
#define _GNU_SOURCE
#include "runtime/base/ahead.h"
#include "runtime/cpu/cpu.h"
#include "children.h"

#include <stdatomic.h>
#include <time.h>

enum { ITEMS = 500, MANY = 20 };

typedef struct Marks {
    atomic_int seen[ITEMS], chunks;
    _Atomic int64_t longest; /* chunk */
    int pause;               /* nanoseconds of each chunk */
} Marks;

static void mark(void *user, int64_t lo, int64_t hi, int worker)
{
    Marks *m = user;
    if (m->pause)
        nanosleep(&(struct timespec){0, m->pause}, NULL);
    for (int64_t i = lo; i < hi; i++)
        atomic_fetch_add(&m->seen[i], 1 + worker * 100);
    atomic_fetch_add(&m->chunks, 1);
    int64_t longest = atomic_load(&m->longest);
    while (hi - lo > longest && !atomic_compare_exchange_weak(&m->longest, &longest, hi - lo))
        ;
}

/* The first n items were done once, the others not. */
static bool done(const Marks *m, int64_t n)
{
    bool ok = true;
    for (int64_t i = 0; i < ITEMS; i++)
        ok &= atomic_load(&m->seen[i]) == (i < n);
    return ok;
}

static void test_loops(Harness *h)
{
    static const int64_t sizes[] = {0, 1, 7, ITEMS}, grains[] = {-1, 1, 3, 5000};
    for (int threads = 0; threads <= 4; threads++)
        for (size_t s = 0; s < COUNT_OF(sizes); s++)
            for (size_t g = 0; g < COUNT_OF(grains); g++) {
                Ahead *a = threads ? ahead_open(threads) : NULL;
                Marks m = {0}, again = {0};
                ahead_begin(a, sizes[s], grains[g], mark, &m);
                CHECK(h, ahead_pending(a) == (threads && sizes[s]));
                ahead_begin(a, sizes[s], grains[g], mark, &again);
                ahead_drain(a);
                CHECK(h, done(&m, sizes[s]) && done(&again, sizes[s]));
                CHECK(h, !a || atomic_load(&m.longest) <= (grains[g] < 1 ? 1 : grains[g]));
                CHECK(h, !ahead_pending(a));
                ahead_begin(a, 1, 1, mark, &again); /* after a drain they begin anew */
                ahead_drain(a);
                CHECK(h, atomic_load(&again.seen[0]) == 1 + (sizes[s] > 0));
                ahead_close(a);
            }
}

/* More loops than may wait at one time. */
static void test_many(Harness *h)
{
    Marks *m = calloc(MANY, sizeof *m);
    Ahead *a = ahead_open(3);
    bool ok = true;
    for (int i = 0; i < MANY; i++)
        ahead_begin(a, ITEMS, 10, mark, &m[i]);
    ahead_drain(a);
    for (int i = 0; i < MANY; i++)
        ok &= done(&m[i], ITEMS);
    CHECK(h, ok);
    ahead_close(a);
    free(m);
}

/* Helpers go on while the caller does something else; with one thread nobody does. */
static void test_meanwhile(Harness *h)
{
    for (int threads = 1; threads <= 2; threads++) {
        Ahead *a = ahead_open(threads);
        Marks m = {0};
        ahead_begin(a, 1, 1, mark, &m);
        for (int i = 0; i < 5000 && threads > 1 && !atomic_load(&m.seen[0]); i++)
            nanosleep(&(struct timespec){0, 1000000}, NULL);
        CHECK(h, atomic_load(&m.seen[0]) == threads - 1);
        ahead_drain(a);
        CHECK(h, done(&m, 1));
        ahead_close(a);
    }
}

typedef struct Order {
    int64_t at[8];
    int n;
} Order;

static void note(void *user, int64_t lo, int64_t hi, int worker)
{
    Order *o = user;
    (void)worker;
    o->at[o->n++] = hi - lo == 1 ? lo : 100 + hi - lo;
}

/* What cannot be shared goes first, the rest in its order. */
static void test_order(Harness *h)
{
    static const int64_t want[] = {105, 0, 1, 2, 0, 1};
    Ahead *a = ahead_open(1);
    Order o = {0};
    ahead_begin(a, 3, 1, note, &o);
    ahead_begin(a, 2, 1, note, &o);
    ahead_begin(a, 5, 5, note, &o);
    ahead_drain(a);
    CHECK(h, o.n == COUNT_OF(want) && !memcmp(o.at, want, sizeof want));
    ahead_close(a);
}

/* What is dropped stays undone, and nothing of it is written afterwards. */
static void test_drop(Harness *h)
{
    for (int threads = 1; threads <= 3; threads++) {
        Ahead *a = ahead_open(threads);
        Marks m = {.pause = 1000000};
        ahead_begin(a, ITEMS, 1, mark, &m);
        ahead_drop(a);
        int chunks = atomic_load(&m.chunks);
        nanosleep(&(struct timespec){0, 5000000}, NULL);
        CHECK(h, chunks < ITEMS && chunks == atomic_load(&m.chunks) && !ahead_pending(a));
        ahead_begin(a, ITEMS, 1, mark, &m);
        ahead_close(a); /* drops as well */
    }
    ahead_close(NULL);
}

/* A child has no helpers: the loops begin anew there, and the parent's go on. */
static bool child_drains(const char *unused)
{
    (void)unused;
    Ahead *a = ahead_open(3);
    Marks m = {.pause = 100000};
    ahead_begin(a, ITEMS, 1, mark, &m);
    pid_t pid = fork();
    if (pid == 0) {
        memset(&m, 0, sizeof m);
        ahead_drain(a);
        bool ok = done(&m, ITEMS);
        ahead_begin(a, ITEMS, 7, mark, &m);
        ahead_drain(a);
        for (int i = 0; i < ITEMS; i++)
            ok &= atomic_load(&m.seen[i]) == 2;
        ahead_close(a);
        _exit(ok ? 0 : 1);
    }
    ahead_drain(a);
    bool ok = done(&m, ITEMS);
    ahead_close(a);
    return end_child(pid) == 0 && ok;
}

/* The library's first product is made ahead, once, and only for a product that it would do. */
static void test_warm(Harness *h)
{
    char why[512];
    Blas blas;
    const PlanMatmul small = {.m = 8, .n = 8, .k = 8}, large = {.m = 64, .n = 64, .k = 64};
    if (!blas_open(&blas, NULL, why))
        return;
    Ahead *a = ahead_open(2);
    blas_warm(&blas, a, &small);
    CHECK(h, !ahead_pending(a));
    blas_warm(&blas, a, &large);
    CHECK(h, ahead_pending(a) == (blas.kind == BLAS_ONEDNN));
    ahead_drain(a);
    blas_warm(&blas, a, &large);
    CHECK(h, !ahead_pending(a));
    ahead_close(a);
    blas_close(&blas);
}

int main(void)
{
    Harness h = {0};
    test_loops(&h);
    test_many(&h);
    test_meanwhile(&h);
    test_order(&h);
    test_drop(&h);
    check_child(&h, child_drains, "", "loops in a child");
    test_warm(&h);
    return harness_end(&h);
}
