/* ahead.c - see ahead.h.
 *
 * The one idea: chunks are some hundred microseconds long, so one lock around a short queue is
 * enough; nothing here runs while a model trains.
 */
#define _GNU_SOURCE
#include "ahead.h"

#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

enum { LOOPS = 8 }; /* that wait at one time */

typedef struct Loop {
    RangeFn fn;
    void *user;
    int64_t n, grain, next; /* next: the first item that nobody has taken */
} Loop;

struct Ahead {
    int helpers, started;
    pid_t process; /* that the helpers belong to */
    pthread_t *helper;
    Loop loop[LOOPS];
    int n_loop, first; /* first: what is before it has been taken */
    bool leaving;      /* helpers end when there is nothing to take */
    pthread_mutex_t lock;
    pthread_cond_t work;
};

Ahead *ahead_open(int threads)
{
    Ahead *a = calloc(1, sizeof *a);
    if (!a)
        return NULL;
    a->helpers = threads > 1 ? threads - 1 : 0;
    a->helper = calloc((size_t)a->helpers + 1, sizeof *a->helper);
    if (a->helper)
        return a;
    free(a);
    return NULL;
}

/* Does one chunk with the lock open; false when there is none. */
static bool take_chunk(Ahead *a)
{
    while (a->first < a->n_loop && a->loop[a->first].next >= a->loop[a->first].n)
        a->first++;
    if (a->first == a->n_loop)
        return false;
    Loop *l = &a->loop[a->first];
    int64_t lo = l->next, hi = l->n - lo < l->grain ? l->n : lo + l->grain;
    RangeFn fn = l->fn;
    void *user = l->user;
    l->next = hi;
    pthread_mutex_unlock(&a->lock);
    fn(user, lo, hi, 0);
    pthread_mutex_lock(&a->lock);
    return true;
}

static void *help(void *user)
{
    _Alignas(16) char crash_stack[CRASH_STACK];
    Ahead *a = user;
    thread_crash_stack(crash_stack);
    pthread_mutex_lock(&a->lock);
    while (take_chunk(a) || !a->leaving)
        if (a->first == a->n_loop && !a->leaving)
            pthread_cond_wait(&a->work, &a->lock);
    pthread_mutex_unlock(&a->lock);
    return NULL;
}

static void start_helpers(Ahead *a)
{
    pthread_mutex_init(&a->lock, NULL);
    pthread_cond_init(&a->work, NULL);
    a->process = getpid();
    a->leaving = false;
    for (a->started = 0; a->started < a->helpers; a->started++)
        if (thread_start(&a->helper[a->started], help, a) != 0)
            break;
}

/* The caller takes chunks until there are none, then waits for those that helpers have begun.
 */
static void finish(Ahead *a, bool drop)
{
    if (!a || !a->n_loop)
        return;
    bool child = a->process != getpid(); /* the helpers stayed with the parent */
    if (child) {
        pthread_mutex_init(&a->lock, NULL);
        for (int i = a->first = 0; i < a->n_loop; i++)
            a->loop[i].next = 0;
    }
    pthread_mutex_lock(&a->lock);
    if (drop)
        a->first = a->n_loop;
    while (take_chunk(a))
        ;
    a->leaving = true;
    if (!child)
        pthread_cond_broadcast(&a->work);
    pthread_mutex_unlock(&a->lock);
    for (int i = 0; i < a->started && !child; i++)
        pthread_join(a->helper[i], NULL);
    a->n_loop = a->first = a->started = 0;
    pthread_mutex_destroy(&a->lock);
    if (!child)
        pthread_cond_destroy(&a->work);
}

void ahead_begin(Ahead *a, int64_t n, int64_t grain, RangeFn fn, void *user)
{
    if (n <= 0)
        return;
    if (!a) {
        fn(user, 0, n, 0);
        return;
    }
    if (a->n_loop == LOOPS || (a->n_loop && a->process != getpid()))
        finish(a, false);
    if (!a->n_loop)
        start_helpers(a);
    Loop loop = {fn, user, n, grain < 1 ? 1 : grain, 0};
    pthread_mutex_lock(&a->lock);
    int at = loop.n <= loop.grain ? a->first : a->n_loop;
    for (int i = a->n_loop++; i > at; i--)
        a->loop[i] = a->loop[i - 1];
    a->loop[at] = loop;
    pthread_cond_broadcast(&a->work);
    pthread_mutex_unlock(&a->lock);
}

bool ahead_pending(const Ahead *a) { return a && a->n_loop > 0; }

void ahead_drain(Ahead *a) { finish(a, false); }

void ahead_drop(Ahead *a) { finish(a, true); }

void ahead_close(Ahead *a)
{
    if (!a)
        return;
    finish(a, true);
    free(a->helper);
    free(a);
}
