/* connections.h - random connections, each a block of the language in a small transformer: they are one
 * kernel between sublayers, and compute what they say.
 */
#ifndef VWN_CONNECTIONS_H
#define VWN_CONNECTIONS_H

#include "plan_host.h"

const char *connection_text(Arena *arena, int seed, const Target *target); /* with products that are kernels' there */

/* count connections of the seeds behind `from`, with B sequences of T positions. device: runs the plans; NULL: the
 * CPU. Prints what is wrong, and in the end a line; returns the number of failures. */
typedef struct Connections {
    int from, count;
    int64_t B, T;
    const HostDevice *device;
} Connections;
int connections_run(const Connections *of);

#endif
