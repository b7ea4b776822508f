/* threads.c - see threads.h. OpenMP does the work, because the product libraries of Linux
 * systems are built on it: with one runtime in the process there is one set of threads. All
 * of it is in here.
 */
#define _GNU_SOURCE
#include "threads.h"

#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#ifdef _OPENMP
#include <omp.h>
#endif

static void serial_for(int64_t n, int64_t grain, RangeFn fn, void *user)
{
    for (int64_t lo = 0; lo < n; lo += grain)
        fn(user, lo, n - lo < grain ? n : lo + grain, 0);
}

#ifdef _OPENMP
void parallel_for(int threads, int64_t n, int64_t grain, RangeFn fn, void *user)
{
    if (n <= 0)
        return;
    if (grain < 1)
        grain = 1;
    int64_t chunks = n / grain + (n % grain != 0);
    if (threads <= 1 || chunks == 1) {
        int outer = omp_get_max_threads();
        if (outer != 1)
            omp_set_num_threads(1);
        serial_for(n, grain, fn, user);
        if (outer != 1)
            omp_set_num_threads(outer);
        return;
    }
    /* The team always has the same size: libgomp ends and restarts threads when it shrinks. */
#pragma omp parallel num_threads(threads)
    {
        int worker = omp_get_thread_num();
        omp_set_num_threads(1); /* of this task, hence of the libraries called in it */
#pragma omp for schedule(dynamic, 1) nowait
        for (int64_t c = 0; c < chunks; c++) {
            int64_t lo = c * grain;
            fn(user, lo, n - lo < grain ? n : lo + grain, worker);
        }
    }
}

static void end_idle_threads(void)
{
#if _OPENMP >= 201811 || defined __clang__ || __GNUC__ >= 9 /* OpenMP 5 */
    omp_pause_resource_all(omp_pause_soft);
#endif
}

static void watch_forks(void)
{
    pthread_atfork(end_idle_threads, NULL, NULL);
}

void threads_survive_fork(void)
{
    static pthread_once_t once =
        PTHREAD_ONCE_INIT; /* handlers belong to the process, for good */
    pthread_once(&once, watch_forks);
}
#else
void parallel_for(int threads, int64_t n, int64_t grain, RangeFn fn, void *user)
{
    (void)threads;
    if (n > 0)
        serial_for(n, grain < 1 ? 1 : grain, fn, user);
}

void threads_survive_fork(void)
{
}
#endif

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
            snprintf(dir, sizeof dir, "/sys/fs/cgroup%s%.500s", *controllers ? "/cpu" : "",
                     path);
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
