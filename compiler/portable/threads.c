/* threads.c - see threads.h.
 *
 * The one idea: a loop is over when its chunks are done, not when all threads have met. A
 * thread that the system has taken off its core before it took a chunk holds nobody up;
 * OpenMP's barrier would wait for it, 8 ms at a time on a busy machine. One that is taken off
 * within a chunk does; threads.h says what becomes of it.
 *
 * `ticket` is the number of the loop in its high half and of the chunks still to be had in its
 * low half. Taking a chunk is one compare-and-swap, and whoever got one knows that the loop is
 * not over, so that the description of the loop stays as it is until the chunk is done. A late
 * thread finds no chunks, or those of the next loop.
 */
#define _GNU_SOURCE
#include "threads.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* Looks before a thread sleeps: some 20 us, the length of a short loop. */
enum { SPINS = 1000 };

typedef struct Worker {
    Pool *pool;
    pthread_t thread;
    int index;
    atomic_bool busy; /* in the loop */
    atomic_bool out;  /* left out; changed under the lock */
    bool awaited;     /* it was busy when the caller fell asleep */
    double late;      /* seconds that the caller slept for it in this span */
} Worker;

struct Pool {
    int threads, started;
    pid_t process; /* that the workers belong to */
    Worker *worker;

    /* the loop */
    RangeFn fn;
    void *user;
    int64_t n, grain, chunks, group; /* a ticket is for `group` chunks */
    int64_t tickets;

    _Alignas(64) _Atomic uint64_t ticket;
    _Alignas(64) _Atomic int64_t left; /* tickets whose chunks are not done */
    _Alignas(64) _Atomic int sleepers;
    _Atomic bool caller_sleeps, stop;
    pthread_mutex_t lock;
    pthread_cond_t work, done, again; /* again: for those that are left out */

    Attendance attendance;
    double ended; /* when the last loop did */
};

/* ---- attendance ---- */

static const double SPAN = 0.25, OUT_SPAN = 2; /* seconds: of measuring, of being left out */
static const double DELAY = 1, DELAY_MOST = 64;
static const double LATE_SHARE = 1. / 32; /* of a span: a worker that is late for so long counts */
static const double PAUSE = 0.05;         /* between two loops: what was measured is void */

double attendance_span_end(const Attendance *a) { return a->wall + (a->out && !a->trial ? OUT_SPAN : SPAN); }

AttendanceMove attendance_next(Attendance *a, double wall, double cpu, bool late)
{
    double rate = (cpu - a->cpu) / (wall - a->wall);
    a->wall = wall;
    a->cpu = cpu;
    if (a->trial) {
        a->trial = false;
        if (rate >= a->with) {
            a->delay = 0;
            return STAY_AS_IT_IS;
        }
        a->delay = a->delay == 0 ? DELAY : a->delay < DELAY_MOST ? 2 * a->delay : DELAY_MOST;
        a->next = wall + a->delay;
    } else if (!a->out) {
        a->with = rate;
        if (!late || wall < a->next)
            return STAY_AS_IT_IS;
        a->out = a->trial = true;
        return LEAVE_THE_LATE_OUT;
    }
    a->out = false;
    return TAKE_ALL_IN;
}

static double seconds_on(clockid_t clock)
{
    struct timespec t;
    clock_gettime(clock, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static double now(void) { return seconds_on(CLOCK_MONOTONIC); }

static void move_workers(Pool *p, AttendanceMove move, double late)
{
    pthread_mutex_lock(&p->lock);
    for (int i = 0; i < p->started; i++) {
        Worker *w = &p->worker[i];
        atomic_store(&w->out, move == LEAVE_THE_LATE_OUT && w->late >= late);
    }
    if (move == TAKE_ALL_IN)
        pthread_cond_broadcast(&p->again);
    pthread_mutex_unlock(&p->lock);
}

/* Before a loop. */
static void see_who_is_late(Pool *p)
{
    Attendance *a = &p->attendance;
    double wall = now();
    bool whole = a->running && wall - p->ended < PAUSE;
    if (whole && wall < attendance_span_end(a))
        return;
    double cpu = seconds_on(CLOCK_PROCESS_CPUTIME_ID);
    if (whole) {
        double least = LATE_SHARE * (wall - a->wall);
        bool late = false;
        for (int i = 0; i < p->started; i++)
            late = late || p->worker[i].late >= least;
        AttendanceMove move = attendance_next(a, wall, cpu, late);
        if (move != STAY_AS_IT_IS)
            move_workers(p, move, least);
    } else {
        a->running = true;
        a->wall = wall;
        a->cpu = cpu;
    }
    for (int i = 0; i < p->started; i++)
        p->worker[i].late = 0;
}

int pool_left_out(const Pool *p)
{
    int n = 0;
    for (int i = 0; p && i < p->started; i++)
        n += atomic_load(&p->worker[i].out);
    return n;
}

/* ---- the loop ---- */

static void pause_a_little(void)
{
#if defined __x86_64__ || defined __i386__
    __builtin_ia32_pause();
#elif defined __aarch64__
    __asm__ volatile("yield");
#endif
}

/* Worker 0 is the caller. */
static bool is_out(const Pool *p, int worker) { return worker > 0 && atomic_load(&p->worker[worker - 1].out); }

/* Takes tickets until there are none. */
static void take_chunks(Pool *p, int worker)
{
    uint64_t t = atomic_load(&p->ticket);
    while ((uint32_t)t && !is_out(p, worker)) {
        if (!atomic_compare_exchange_weak(&p->ticket, &t, t - 1))
            continue;
        int64_t first = (p->tickets - (int64_t)(uint32_t)t) * p->group;
        for (int64_t c = first; c < first + p->group && c < p->chunks; c++) {
            int64_t lo = c * p->grain;
            p->fn(p->user, lo, p->n - lo < p->grain ? p->n : lo + p->grain, worker);
        }
        if (atomic_fetch_sub(&p->left, 1) == 1 && atomic_load(&p->caller_sleeps)) {
            pthread_mutex_lock(&p->lock);
            pthread_cond_signal(&p->done);
            pthread_mutex_unlock(&p->lock);
        }
        t = atomic_load(&p->ticket);
    }
}

static bool has_work(const Worker *w)
{
    const Pool *p = w->pool;
    return atomic_load(&p->stop) || ((uint32_t)atomic_load(&p->ticket) && !atomic_load(&w->out));
}

/* Until there is work, with the lock. */
static void sleep_for_work(Worker *w)
{
    Pool *p = w->pool;
    while (!has_work(w)) {
        if (atomic_load(&w->out)) {
            pthread_cond_wait(&p->again, &p->lock);
            continue;
        }
        atomic_fetch_add(&p->sleepers, 1);
        if (!has_work(w)) /* after `sleepers`: the caller looks at them in the other order */
            pthread_cond_wait(&p->work, &p->lock);
        atomic_fetch_sub(&p->sleepers, 1);
    }
}

int thread_start(void *thread, void *(*fn)(void *), void *user)
{
    static const int crashes[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};
    sigset_t all, before;
    sigfillset(&all);
    for (size_t i = 0; i < sizeof crashes / sizeof crashes[0]; i++)
        sigdelset(&all, crashes[i]);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int error = pthread_create(thread, NULL, fn, user);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

void thread_crash_stack(char *memory)
{
#if defined __SANITIZE_ADDRESS__
    (void)memory; /* threads have one of the sanitizer's, which it would look for */
#else
    stack_t own = {.ss_sp = memory, .ss_size = CRASH_STACK};
    sigaltstack(&own, NULL);
#endif
}

static void *work(void *user)
{
    _Alignas(16) char crash_stack[CRASH_STACK];
    Worker *w = user;
    Pool *p = w->pool;
    thread_crash_stack(crash_stack);
    while (!atomic_load(&p->stop)) {
        if (has_work(w)) {
            atomic_store(&w->busy, true);
            take_chunks(p, w->index);
            atomic_store(&w->busy, false);
        }
        for (int i = 0; i < SPINS && !atomic_load(&w->out) && !has_work(w); i++)
            pause_a_little();
        if (has_work(w))
            continue;
        pthread_mutex_lock(&p->lock);
        sleep_for_work(w);
        pthread_mutex_unlock(&p->lock);
    }
    return NULL;
}

/* Starts the workers where there are none: at the first loop, and in a child after a fork. */
static void start_workers(Pool *p)
{
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->work, NULL);
    pthread_cond_init(&p->done, NULL);
    pthread_cond_init(&p->again, NULL);
    p->attendance = (Attendance){0};
    atomic_store(&p->sleepers, 0);
    p->process = getpid();
    for (p->started = 0; p->started < p->threads - 1; p->started++) {
        Worker *w = &p->worker[p->started];
        *w = (Worker){.pool = p, .index = p->started + 1};
        if (thread_start(&w->thread, work, w) != 0)
            break;
    }
}

Pool *pool_open(int threads)
{
    Pool *p = NULL;
    if (posix_memalign((void **)&p, 64, sizeof *p) != 0)
        return NULL;
    memset(p, 0, sizeof *p);
    p->threads = threads < 1 ? 1 : threads;
    p->worker = calloc((size_t)p->threads, sizeof *p->worker);
    if (!p->worker) {
        free(p);
        return NULL;
    }
    return p;
}

void pool_close(Pool *p)
{
    if (!p)
        return;
    if (p->process && p->process == getpid()) {
        pthread_mutex_lock(&p->lock);
        atomic_store(&p->stop, true);
        pthread_cond_broadcast(&p->work);
        pthread_cond_broadcast(&p->again);
        pthread_mutex_unlock(&p->lock);
        for (int i = 0; i < p->started; i++)
            pthread_join(p->worker[i].thread, NULL);
        pthread_cond_destroy(&p->work);
        pthread_cond_destroy(&p->done);
        pthread_cond_destroy(&p->again);
        pthread_mutex_destroy(&p->lock);
    }
    free(p->worker);
    free(p);
}

int pool_threads(const Pool *p) { return p ? p->threads : 1; }

static void wait_for_the_rest(Pool *p)
{
    for (int i = 0; i < SPINS; i++) {
        if (!atomic_load(&p->left))
            return;
        pause_a_little();
    }
    double from = now();
    for (int i = 0; i < p->started; i++)
        p->worker[i].awaited = atomic_load(&p->worker[i].busy);
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->caller_sleeps, true);
    while (atomic_load(&p->left))
        pthread_cond_wait(&p->done, &p->lock);
    atomic_store(&p->caller_sleeps, false);
    pthread_mutex_unlock(&p->lock);
    double slept = now() - from;
    for (int i = 0; i < p->started; i++)
        p->worker[i].late += p->worker[i].awaited ? slept : 0;
}

void parallel_for(Pool *p, int64_t n, int64_t grain, RangeFn fn, void *user)
{
    if (n <= 0)
        return;
    if (grain < 1)
        grain = 1;
    int64_t chunks = n / grain + (n % grain != 0);
    if (!p || p->threads == 1 || chunks == 1) {
        for (int64_t lo = 0; lo < n; lo += grain)
            fn(user, lo, n - lo < grain ? n : lo + grain, 0);
        return;
    }
    if (p->process != getpid())
        start_workers(p);
    see_who_is_late(p);
    p->fn = fn;
    p->user = user;
    p->n = n;
    p->grain = grain;
    p->chunks = chunks;
    p->group = chunks / UINT32_MAX + 1;
    p->tickets = (chunks - 1) / p->group + 1;
    atomic_store(&p->left, p->tickets);
    uint64_t loop = (atomic_load(&p->ticket) >> 32) + 1;
    atomic_store(&p->ticket, loop << 32 | (uint64_t)p->tickets);
    if (atomic_load(&p->sleepers)) {
        pthread_mutex_lock(&p->lock);
        pthread_cond_broadcast(&p->work);
        pthread_mutex_unlock(&p->lock);
    }
    take_chunks(p, 0);
    wait_for_the_rest(p);
    p->ended = now();
}

/* Reads the first line of DIR/NAME into text; false when there is none. */
static int read_line(const char *dir, const char *name, char *text, int size)
{
    char path[768];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    FILE *f = fopen(path, "re");
    if (!f)
        return 0;
    int ok = fgets(text, size, f) != NULL;
    fclose(f);
    return ok;
}

/* CPUs granted by one control group directory (version 2, then version 1); 0 = no limit. */
static double group_quota(const char *dir)
{
    char text[128];
    double quota = 0, period = 0;
    if (read_line(dir, "cpu.max", text, sizeof text))
        return sscanf(text, "%lf %lf", &quota, &period) == 2 && period > 0 ? quota / period : 0;
    if (!read_line(dir, "cpu.cfs_quota_us", text, sizeof text))
        return 0;
    quota = strtod(text, NULL);
    if (!read_line(dir, "cpu.cfs_period_us", text, sizeof text))
        return 0;
    period = strtod(text, NULL);
    return quota > 0 && period > 0 ? quota / period : 0;
}

/* The smallest quota on the way from the process's control group to the root; 0 = none. */
static double cpu_quota(void)
{
    double least = 0;
    FILE *f = fopen("/proc/self/cgroup", "re");
    char line[512];
    while (f && fgets(line, sizeof line, f)) {
        line[strcspn(line, "\n")] = 0;
        char *controllers = strchr(line, ':');
        char *path = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!path)
            continue;
        *path++ = 0;
        controllers++;
        if (*controllers && !strstr(controllers, "cpu"))
            continue;
        for (;;) {
            char dir[640];
            snprintf(dir, sizeof dir, "/sys/fs/cgroup%s%.500s", *controllers ? "/cpu" : "", path);
            double q = group_quota(dir);
            if (q > 0 && (least == 0 || q < least))
                least = q;
            char *slash = strrchr(path, '/');
            if (!slash)
                break;
            *slash = 0;
        }
    }
    if (f)
        fclose(f);
    return least;
}

static int affinity_count(void)
{
    for (int cpus = CPU_SETSIZE; cpus <= 1 << 18; cpus *= 2) {
        cpu_set_t *set = CPU_ALLOC((size_t)cpus);
        if (!set)
            break;
        size_t size = CPU_ALLOC_SIZE((size_t)cpus);
        int ok = sched_getaffinity(0, size, set) == 0;
        int n = ok ? CPU_COUNT_S(size, set) : 0;
        CPU_FREE(set);
        if (ok)
            return n;
    }
    long n = sysconf(_SC_NPROCESSORS_ONLN);
    return n > 0 ? (int)n : 1;
}

int threads_available(void)
{
    int n = affinity_count();
    double quota = cpu_quota();
    if (quota > 0 && quota < n)
        n = (int)quota + (quota > (int)quota);
    return n < 1 ? 1 : n;
}
