/* threads.h - the one parallel loop of the CPU backend.
 *
 * In:  a range [0, n), a grain, a function.
 * Out: the function was called on every chunk once.
 * The one idea: chunks are cut by the grain alone, and threads take them as they come. What a
 * chunk computes therefore never depends on how many threads there are, nor on which thread
 * took it.
 */
#ifndef VWN_THREADS_H
#define VWN_THREADS_H

#include <stdbool.h>
#include <stdint.h>

/* Computes items lo <= i < hi. `worker` is in [0, threads): an index for scratch memory. */
typedef void (*RangeFn)(void *user, int64_t lo, int64_t hi, int worker);

/* Threads that wait for loops. They start with the first loop, block all signals but crashes, and are
 * started anew in a child after fork(). One loop at a time; loops must not be nested. */
typedef struct Pool Pool;
Pool *pool_open(int threads); /* the caller counts as one; NULL when there is no memory */
void pool_close(Pool *p);     /* NULL is fine */
int pool_threads(const Pool *p);

/* Calls fn on [0, n) in chunks of `grain` items (less than 1 counts as 1) and returns when all
 * are done. NULL is a pool of one. Never fails: with fewer threads to be had the loop merely
 * takes longer. */
void parallel_for(Pool *p, int64_t n, int64_t grain, RangeFn fn, void *user);

/* Starts a thread (`thread`: a pthread_t *) that blocks all signals, which are for the program's own
 * threads, but those of a crash. 0 or an errno. */
int thread_start(void *thread, void *(*fn)(void *), void *user);
/* In such a thread: memory of CRASH_STACK bytes, aligned to 16, that lives as long as it, for a handler
 * of crashes. */
enum { CRASH_STACK = 32 << 10 };
void thread_crash_stack(char *memory);

/* Workers that are left out now. */
int pool_left_out(const Pool *p);

/* When workers are left out. A worker that loses its core within a chunk makes all the others wait
 * at the end of the loop, on a busy machine for some ms. Whether the process is better off without
 * it depends on how the system shares out its cores, so it is tried: in spans of a quarter of a
 * second the processor time that the process gets is measured with those that came late and
 * without them. Without as much as with them, they stay out for a while, and then it is tried
 * again; else they come back at once, and the next trial is put off for longer each time. */
typedef struct Attendance {
    bool running;       /* a span has begun */
    bool out, trial;    /* the late are left out; to see what comes of it */
    double wall, cpu;   /* seconds, where the span began */
    double with;        /* processor time in a second, of the last span with all */
    double next, delay; /* no trial before; put off by this, the last time */
} Attendance;
typedef enum AttendanceMove { STAY_AS_IT_IS, LEAVE_THE_LATE_OUT, TAKE_ALL_IN } AttendanceMove;
double attendance_span_end(const Attendance *a); /* in terms of `wall` */
/* At the end of a span. `cpu`: of the process; `late`: some workers were late in this span. */
AttendanceMove attendance_next(Attendance *a, double wall, double cpu, bool late);

/* How many threads the process may use: its affinity mask, cut by the quota of its control
 * group, rounded up. At least 1. */
int threads_available(void);

#endif
