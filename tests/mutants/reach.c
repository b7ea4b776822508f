/* reach.c - which basic blocks of the libraries a test runs through.
 *
 * In:  the libraries, compiled with -fsanitize-coverage=trace-pc and linked with this file into one
 * shared library; VWN_REACH in the environment, a file. Out: a byte of that file for each four
 * bytes of code: 1 where a block has begun. `mutate map` reads it. The one idea: the file is mapped
 * and shared, so what ends by a signal, and what a process started, is in it.
 */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

extern const char __ehdr_start __attribute__((visibility("hidden"))); /* both are the linker's */
extern const char etext __attribute__((visibility("hidden")));

static unsigned char *blocks;

__attribute__((constructor)) static void begin(void)
{
    const char *path = getenv("VWN_REACH");
    size_t size = (size_t)(&etext - &__ehdr_start) / 4 + 1;
    int fd = path ? open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600) : -1;
    if (fd < 0)
        return;
    void *map = MAP_FAILED;
    if (ftruncate(fd, (off_t)size) == 0)
        map = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    if (map != MAP_FAILED)
        blocks = map;
}

/* Called at the begin of every block. */
void __sanitizer_cov_trace_pc(void)
{
    uintptr_t at = ((uintptr_t)__builtin_return_address(0) - (uintptr_t)&__ehdr_start) / 4;
    if (blocks && at <= (uintptr_t)(&etext - &__ehdr_start) / 4 && !blocks[at])
        blocks[at] = 1;
}
