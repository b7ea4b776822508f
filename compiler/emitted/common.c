/* common.c - see compute.h: memory of the program, its end, small functions. */
#include "compute.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void stop(const char *fmt, ...)
{
    va_list args;
    va_start(args, fmt);
    fputs("error: ", stderr);
    vfprintf(stderr, fmt, args);
    fputc('\n', stderr);
    va_end(args);
    exit(1);
}

void *room(uint64_t bytes)
{
    uint64_t size = (bytes + 63) / 64 * 64 + 64;
    void *p = size < bytes || size > SIZE_MAX ? NULL : aligned_alloc(64, (size_t)size);
    if (!p)
        stop("no memory for %.1f MiB", (double)bytes / 1048576);
    memset(p, 0, (size_t)size);
    return p;
}

double real_at(const Run *run, const char *numbers, int64_t i)
{
    real x;
    device_get(run, &x, numbers + i * (int64_t)sizeof x, sizeof x);
    return (double)x;
}

double integer_at(const Run *run, const char *numbers, int64_t i)
{
    integer x;
    device_get(run, &x, numbers + i * (int64_t)sizeof x, sizeof x);
    return (double)x;
}
